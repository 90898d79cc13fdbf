//! The threads of the CPU device.
//!
//! One job runs at a time. Its workgroups are claimed in chunks from a shared counter by the
//! calling thread and by as many of the waiting threads as wake up in time, so a short job never
//! waits for a sleeper and a long one is balanced. The caller wakes one thread and each that wakes
//! up wakes two more while there is work, so a short job does not pay for all of them. A run
//! allocates nothing, except when it needs more scratch memory than any run before it.

use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use crate::gpu::host_memory;
use magpie_types::kernel::{HostKernelFn, HostLaunch};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Chunks a thread claims on average: enough to balance uneven workgroups, few enough to keep the
/// counter cold.
const CHUNKS_PER_LANE: u64 = 16;

/// Scratch memory that all threads together may take for one launch.
const MAX_SCRATCH: u64 = 4 << 30;

/// The work of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) entry: HostKernelFn,
    pub(crate) launch: *const HostLaunch,
    /// Number of workgroups.
    pub(crate) groups: u64,
    /// Scratch memory of a thread in bytes.
    pub(crate) scratch_bytes: u64,
}

/// A job as the threads see it.
#[derive(Clone, Copy)]
struct Shared {
    job: Job,
    chunk: u64,
    scratch: *mut u8,
    scratch_stride: usize,
}

// SAFETY: the pointers are read by the threads only between the publication of the job and the
// moment when `Pool::run` has seen the last of them leave it; `run` keeps them valid until then.
unsafe impl Send for Shared {}

struct State {
    job: Option<Shared>,
    /// Threads inside the job.
    active: usize,
    stop: bool,
}

struct Control {
    state: Mutex<State>,
    /// A job was published, or the pool ends.
    start: Condvar,
    /// The last thread left the job.
    done: Condvar,
    /// First workgroup that nobody has claimed.
    next: AtomicU64,
}

impl Control {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims and runs chunks until there are none left.
    fn work(&self, shared: &Shared, lane: usize) {
        let Shared { job, chunk, scratch, scratch_stride } = *shared;
        // SAFETY: the scratch memory has `scratch_stride` bytes for each lane.
        let scratch = unsafe { scratch.add(lane * scratch_stride) };
        loop {
            let first = self.next.fetch_add(chunk, Ordering::Relaxed);
            if first >= job.groups {
                return;
            }
            let last = first.saturating_add(chunk).min(job.groups);
            // SAFETY: the kernel was compiled for this signature, its launch arguments were
            // checked against its layout, and `scratch` is memory of this lane alone.
            unsafe { (job.entry)(job.launch, first, last, scratch) };
        }
    }
}

fn worker(control: &Control, lane: usize) {
    let mut state = control.state();
    loop {
        if state.stop {
            return;
        }
        let fresh = state.job.filter(|s| control.next.load(Ordering::Relaxed) < s.job.groups);
        let Some(shared) = fresh else {
            state = control.start.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        state.active += 1;
        drop(state);
        control.start.notify_one();
        control.start.notify_one();
        control.work(&shared, lane);
        state = control.state();
        state.active -= 1;
        if state.active == 0 {
            control.done.notify_one();
        }
    }
}

/// Scratch memory of all lanes.
struct Scratch {
    memory: Option<(NonNull<u8>, u64)>,
}

// SAFETY: the memory belongs to this value alone.
unsafe impl Send for Scratch {}

impl Scratch {
    /// Memory of at least `bytes` bytes.
    fn reserve(&mut self, bytes: u64) -> GpuResult<*mut u8> {
        match self.memory {
            Some((memory, size)) if size >= bytes => return Ok(memory.as_ptr()),
            _ => self.clear(),
        }
        let memory = host_memory::allocate("cpu", bytes)?;
        self.memory = memory.host.map(|host| (host, memory.size));
        Ok(self.memory.map_or(std::ptr::null_mut(), |(host, _)| host.as_ptr()))
    }

    fn clear(&mut self) {
        if let Some((memory, size)) = self.memory.take() {
            // SAFETY: the piece came from `host_memory::allocate` and no job is running.
            unsafe { host_memory::free(memory, size) };
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A fixed set of threads that run one job at a time.
pub(crate) struct Pool {
    control: Arc<Control>,
    threads: Vec<JoinHandle<()>>,
    /// Held while a job runs.
    scratch: Mutex<Scratch>,
}

impl Pool {
    /// A pool of `lanes` threads, the caller of [`Pool::run`] counted in. It has fewer when the
    /// system refuses more.
    pub(crate) fn new(lanes: usize) -> Pool {
        let control = Arc::new(Control {
            state: Mutex::new(State { job: None, active: 0, stop: false }),
            start: Condvar::new(),
            done: Condvar::new(),
            next: AtomicU64::new(0),
        });
        let spawn = |lane| {
            let control = Arc::clone(&control);
            let builder = std::thread::Builder::new().name(format!("magpie-cpu-{lane}"));
            builder.spawn(move || worker(&control, lane)).ok()
        };
        let threads = (1..lanes.max(1)).map_while(spawn).collect();
        Pool { control, threads, scratch: Mutex::new(Scratch { memory: None }) }
    }

    /// Number of threads that take part in a job.
    pub(crate) fn lanes(&self) -> usize {
        self.threads.len() + 1
    }

    /// Runs all workgroups of a job and waits for them.
    ///
    /// # Errors
    /// [`ErrorKind::ResourceExhausted`] or [`ErrorKind::OutOfMemory`] when there is no scratch
    /// memory; nothing has run then.
    ///
    /// # Safety
    /// `job.launch` and all that it points to are valid for the kernel `job.entry`, which runs any
    /// workgroups of the launch in `job.scratch_bytes` bytes of scratch memory.
    pub(crate) unsafe fn run(&self, job: Job) -> GpuResult<()> {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let lanes = self.lanes() as u64;
        // Two cache lines apart: neighbours are fetched together.
        let stride = job.scratch_bytes.checked_next_multiple_of(128);
        let Some(total) = stride.and_then(|s| s.checked_mul(lanes)).filter(|&t| t <= MAX_SCRATCH)
        else {
            let message = format!(
                "the kernel needs {} bytes of scratch memory on each of {lanes} threads; all \
                 together may take {MAX_SCRATCH}: use a smaller workgroup",
                job.scratch_bytes
            );
            return Err(GpuError::new(ErrorKind::ResourceExhausted, "cpu", message));
        };
        let shared = Shared {
            job,
            chunk: (job.groups / (lanes * CHUNKS_PER_LANE)).max(1),
            scratch: scratch.reserve(total)?,
            scratch_stride: stride.unwrap_or_default() as usize,
        };
        let control = &*self.control;
        control.next.store(0, Ordering::Relaxed);
        if lanes == 1 || job.groups <= shared.chunk {
            control.work(&shared, 0);
            return Ok(());
        }
        control.state().job = Some(shared);
        control.start.notify_one();
        control.work(&shared, 0);
        let mut state = control.state();
        state.job = None;
        while state.active > 0 {
            state = control.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.control.state().stop = true;
        self.control.start.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to clean up.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_types::kernel::HostBuffer;

    /// Adds 1 to the element of each workgroup; fails the check when scratch is shared.
    unsafe extern "C" fn count(launch: *const HostLaunch, first: u64, last: u64, scratch: *mut u8) {
        // SAFETY: the tests pass one buffer with an element a workgroup and 64 bytes of scratch.
        unsafe {
            let counts = (*(*launch).buffers).data.cast::<u32>();
            for group in first..last {
                scratch.cast::<u64>().write_volatile(group);
                let seen = scratch.cast::<u64>().read_volatile() == group;
                *counts.add(group as usize) += u32::from(seen);
            }
        }
    }

    fn run(pool: &Pool, groups: usize) -> Vec<u32> {
        let mut counts = vec![0u32; groups];
        let buffer = HostBuffer { data: counts.as_mut_ptr().cast(), len: groups as u64 };
        let launch = HostLaunch {
            buffers: &buffer,
            scalars: std::ptr::null(),
            grid: [groups as u32, 1, 1],
            block: [1; 3],
            fault: std::ptr::null_mut(),
        };
        let job = Job { entry: count, launch: &launch, groups: groups as u64, scratch_bytes: 64 };
        // SAFETY: the launch describes what `count` expects.
        unsafe { pool.run(job) }.unwrap();
        counts
    }

    #[test]
    fn every_workgroup_runs_once() {
        for lanes in [1, 2, 3, 8] {
            let pool = Pool::new(lanes);
            assert_eq!(pool.lanes(), lanes);
            for groups in [1, 2, 7, 128, 129, 100_000] {
                assert!(run(&pool, groups).iter().all(|&n| n == 1), "{lanes} lanes, {groups}");
            }
            for _ in 0..2000 {
                assert_eq!(run(&pool, 3), [1, 1, 1]);
            }
        }
    }

    #[test]
    fn jobs_of_several_callers_take_turns() {
        let pool = Pool::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..300).for_each(|_| assert!(run(&pool, 50).iter().all(|&n| n == 1)))
                });
            }
        });
    }

    #[test]
    fn impossible_scratch_is_refused_before_anything_runs() {
        let pool = Pool::new(2);
        for scratch_bytes in [u64::MAX, MAX_SCRATCH] {
            let job = Job { entry: count, launch: std::ptr::null(), groups: 1, scratch_bytes };
            // SAFETY: the job is refused.
            let error = unsafe { pool.run(job) }.unwrap_err();
            assert_eq!(error.kind, ErrorKind::ResourceExhausted);
        }
    }
}
