//! The race: contenders take turns, round by round, and are compared by their medians.

use std::time::{Duration, Instant};

/// A named piece of work that several contenders do.
pub(crate) struct Benchmark {
    /// Unique; filters match a part of it.
    pub(crate) name: &'static str,
    /// What one run does, for the throughput column.
    pub(crate) work: Work,
    /// The contender that the others are compared with.
    pub(crate) peer: &'static str,
    /// How far checksums may differ from the peer's, relative to its size.
    pub(crate) tolerance: f64,
    /// Makes the contenders, each with its own data, for a number of threads.
    pub(crate) contenders: fn(threads: usize) -> Vec<Box<dyn Contender>>,
}

/// The amount of work in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) amount: f64,
    /// What is counted, such as `B` or `flop`.
    pub(crate) unit: &'static str,
}

/// One implementation of a benchmark's work.
pub(crate) trait Contender {
    /// Unique in its benchmark.
    fn name(&self) -> &str;

    /// Does the work once. This is what is timed.
    fn run(&mut self);

    /// A number that is equal for equal results, after any number of runs.
    fn checksum(&self) -> f64;
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// For each contender.
    pub(crate) time: Duration,
    /// Rounds to run even when the time is over.
    pub(crate) min_rounds: usize,
}

/// What a race measured.
#[derive(Debug)]
pub(crate) struct Race {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    pub(crate) peer: &'static str,
    pub(crate) results: Vec<Measured>,
}

/// The samples of one contender.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) name: String,
    /// Seconds for one run.
    pub(crate) median: f64,
    /// Seconds for one run.
    pub(crate) min: f64,
    /// Median divided by the peer's.
    pub(crate) ratio: f64,
    pub(crate) samples: usize,
}

/// A sample shorter than this repeats the run, so that the clock does not matter.
const MIN_SAMPLE: Duration = Duration::from_millis(1);
/// No race needs more rounds.
const MAX_ROUNDS: usize = 10_000;

/// Runs a benchmark. Fails when it has no peer or a contender computes something else than the peer.
pub(crate) fn race(benchmark: &Benchmark, threads: usize, budget: Budget) -> Result<Race, String> {
    let mut contenders = (benchmark.contenders)(threads);
    let peer = contenders.iter().position(|contender| contender.name() == benchmark.peer);
    let peer = peer
        .ok_or_else(|| format!("{}: there is no contender `{}`", benchmark.name, benchmark.peer))?;

    let repeats: Vec<u32> = contenders.iter_mut().map(|c| warm_up(c.as_mut())).collect();
    check_results(benchmark, &contenders, peer)?;

    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
    let start = Instant::now();
    let limit = budget.time * contenders.len() as u32;
    for round in 0..MAX_ROUNDS {
        if round >= budget.min_rounds && start.elapsed() >= limit {
            break;
        }
        // Each round starts with another contender, so that none always follows the same one.
        for turn in 0..contenders.len() {
            let index = (round + turn) % contenders.len();
            let time = time(contenders[index].as_mut(), repeats[index]);
            samples[index].push(time.as_secs_f64() / f64::from(repeats[index]));
        }
    }
    check_results(benchmark, &contenders, peer)?;

    let peer_median = median(&mut samples[peer]);
    let results = contenders
        .iter()
        .zip(&mut samples)
        .map(|(contender, samples)| {
            let median = median(samples);
            Measured {
                name: contender.name().to_owned(),
                median,
                min: samples.iter().copied().fold(f64::INFINITY, f64::min),
                ratio: median / peer_median,
                samples: samples.len(),
            }
        })
        .collect();
    Ok(Race { name: benchmark.name, work: benchmark.work, peer: benchmark.peer, results })
}

/// Runs once to fill caches and pages, then finds how many runs make a sample.
fn warm_up(contender: &mut dyn Contender) -> u32 {
    contender.run();
    let mut repeats = 1;
    while time(contender, repeats) < MIN_SAMPLE && repeats < 1 << 20 {
        repeats *= 2;
    }
    repeats
}

fn time(contender: &mut dyn Contender, repeats: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..repeats {
        contender.run();
    }
    start.elapsed()
}

fn check_results(
    benchmark: &Benchmark,
    contenders: &[Box<dyn Contender>],
    peer: usize,
) -> Result<(), String> {
    let want = contenders[peer].checksum();
    for contender in contenders {
        let got = contender.checksum();
        let error = (got - want).abs();
        if !(got == want || error <= benchmark.tolerance * want.abs()) {
            return Err(format!(
                "{}: `{}` computes {got}, its peer `{}` {want}",
                benchmark.name,
                contender.name(),
                benchmark.peer
            ));
        }
    }
    Ok(())
}

/// Sorts the samples and takes the middle one, or the mean of the two in the middle.
fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    match samples.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => samples[middle],
        _ => (samples[middle - 1] + samples[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        static ORDER: RefCell<String> = const { RefCell::new(String::new()) };
    }

    struct Sleeper {
        name: &'static str,
        time: Duration,
        sum: f64,
    }

    impl Contender for Sleeper {
        fn name(&self) -> &str {
            self.name
        }

        fn run(&mut self) {
            ORDER.with_borrow_mut(|order| order.push_str(self.name));
            std::thread::sleep(self.time);
        }

        fn checksum(&self) -> f64 {
            self.sum
        }
    }

    fn sleeper(name: &'static str, ms: u64, sum: f64) -> Box<dyn Contender> {
        Box::new(Sleeper { name, time: Duration::from_millis(ms), sum })
    }

    fn benchmark(contenders: fn(usize) -> Vec<Box<dyn Contender>>) -> Benchmark {
        let work = Work { amount: 1.0, unit: "run" };
        Benchmark { name: "sleep", work, peer: "a", tolerance: 0.01, contenders }
    }

    const SHORT: Budget = Budget { time: Duration::ZERO, min_rounds: 3 };

    #[test]
    fn contenders_take_turns_and_are_compared() {
        let slow = benchmark(|_| vec![sleeper("a", 4, 1.0), sleeper("b", 12, 1.001)]);
        let race = race(&slow, 1, SHORT).unwrap();
        let order = ORDER.take();
        // Warm-up runs each contender twice; then the rounds begin with a, b, a.
        assert_eq!(order, "aabb".to_owned() + "ab" + "ba" + "ab");
        assert_eq!(race.results[0].ratio, 1.0);
        assert!(race.results[1].ratio > 1.5, "{race:?}");
        assert!(race.results.iter().all(|r| r.samples == 3 && r.min <= r.median));
    }

    #[test]
    fn short_runs_are_repeated() {
        let mut quick = Sleeper { name: "q", time: Duration::ZERO, sum: 0.0 };
        assert!(warm_up(&mut quick) > 1);
        ORDER.take();
    }

    #[test]
    fn wrong_results_and_missing_peers_are_refused() {
        let wrong = benchmark(|_| vec![sleeper("a", 1, 1.0), sleeper("b", 1, 2.0)]);
        assert!(race(&wrong, 1, SHORT).unwrap_err().contains("`b` computes 2"));
        let nan = benchmark(|_| vec![sleeper("a", 1, 1.0), sleeper("b", 1, f64::NAN)]);
        assert!(race(&nan, 1, SHORT).is_err());
        let alone = benchmark(|_| vec![sleeper("b", 1, 2.0)]);
        assert!(race(&alone, 1, SHORT).unwrap_err().contains("no contender `a`"));
    }

    #[test]
    fn median_of_samples() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&mut []).is_nan());
    }
}
