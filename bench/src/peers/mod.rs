//! Reference loops: what a Rust programmer would write for the CPU, compiled with `-O3`.
//!
//! Each is one public function over slices that takes the number of threads. They use no
//! intrinsics and no target features beyond the default, like the code they are compared with.

pub(crate) mod blur;
pub(crate) mod mandelbrot;
pub(crate) mod matmul;
pub(crate) mod nbody;
pub(crate) mod reduction;
pub(crate) mod saxpy;

use std::sync::Mutex;
use std::thread;

/// Calls `work(index, chunk)` for each chunk of `out`, of `chunk_len` elements (the last may be
/// shorter), on `threads` threads that take the next chunk when they have finished one.
pub(crate) fn for_each_chunk<T: Send>(
    out: &mut [T],
    chunk_len: usize,
    threads: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    if threads <= 1 {
        for (index, chunk) in out.chunks_mut(chunk_len).enumerate() {
            work(index, chunk);
        }
        return;
    }
    let queue = Mutex::new(out.chunks_mut(chunk_len).enumerate());
    // A thread that panics poisons the queue; the others then stop and the scope panics.
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let worker = || {
        while let Some((index, chunk)) = next() {
            work(index, chunk);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(worker);
        }
        worker();
    });
}

/// The length of chunks that give each thread one.
pub(crate) fn even_chunk(len: usize, threads: usize) -> usize {
    len.div_ceil(threads.max(1)).max(1)
}

/// `len` numbers in -1..1 that are the same in every run.
pub(crate) fn numbers(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_done_once() {
        for threads in [1, 2, 5] {
            let mut out = vec![0u32; 103];
            for_each_chunk(&mut out, 10, threads, |index, chunk| {
                for (i, value) in chunk.iter_mut().enumerate() {
                    *value += (index * 10 + i) as u32 + 1;
                }
            });
            assert!(out.iter().enumerate().all(|(i, &value)| value == i as u32 + 1));
        }
        for_each_chunk(&mut Vec::<u32>::new(), even_chunk(0, 2), 2, |_, _| unreachable!());
    }

    #[test]
    fn numbers_repeat_and_spread() {
        let numbers_a = numbers(1000, 1);
        assert_eq!(numbers_a, numbers(1000, 1));
        assert_ne!(numbers_a, numbers(1000, 2));
        assert!(numbers_a.iter().all(|x| (-1.0..1.0).contains(x)));
        assert!(numbers_a.iter().sum::<f32>().abs() < 100.0);
    }
}
