//! Launches of the CPU device that nobody waits for yet: they run in order on a thread of their
//! own, which uses the pool like any caller.

use super::pool::{Job, Pool};
use crate::gpu::clock::now_ns;
use crate::gpu::device::{Serial, Timing, TimingToken};
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use crate::gpu::host_memory;
use magpie_types::kernel::{HostBuffer, HostKernelFn, HostLaunch};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Queued launches after which a further one waits for room.
const MAX_PENDING: usize = 64;

/// Bytes of a scalar block with the alignment that kernels expect.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub(crate) struct ScalarChunk(pub(crate) [u8; 16]);

/// A launch with its arguments.
#[derive(Default)]
pub(crate) struct QueuedLaunch {
    pub(crate) entry: Option<HostKernelFn>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) groups: u64,
    pub(crate) scratch_bytes: u64,
    pub(crate) buffers: Vec<HostBuffer>,
    pub(crate) scalars: Vec<ScalarChunk>,
    pub(crate) timing: Option<TimingToken>,
}

// SAFETY: the pointers in `buffers` are device memory, which stays alive until the launch's serial
// has completed, and the order of launches decides who touches it.
unsafe impl Send for QueuedLaunch {}

struct State {
    pending: VecDeque<Box<QueuedLaunch>>,
    /// Launches whose vectors are used again, in turn.
    spare: VecDeque<Box<QueuedLaunch>>,
    newest: u64,
    completed: u64,
    /// Memory to free when a serial has completed.
    garbage: BinaryHeap<Reverse<Garbage>>,
    fault: Option<GpuError>,
    timings: Vec<Timing>,
    thread: Option<JoinHandle<()>>,
    stop: bool,
}

/// Memory without an owner. Ordered by the serial that uses it last.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Garbage {
    last_use: u64,
    memory: NonNull<u8>,
    size: u64,
}

// SAFETY: the memory has no other owner any more.
unsafe impl Send for Garbage {}

impl Garbage {
    fn free(self) {
        // SAFETY: the piece came from `host_memory::allocate`; its last use has completed.
        unsafe { host_memory::free(self.memory, self.size) };
    }
}

/// The pool with its queue.
pub(crate) struct Engine {
    pool: Pool,
    state: Mutex<State>,
    /// Something to do for the thread.
    work: Condvar,
    /// A launch has completed.
    done: Condvar,
}

impl Engine {
    pub(crate) fn new(lanes: usize) -> Engine {
        let state = State {
            pending: VecDeque::new(),
            spare: VecDeque::new(),
            newest: 0,
            completed: 0,
            garbage: BinaryHeap::new(),
            fault: None,
            timings: Vec::new(),
            thread: None,
            stop: false,
        };
        Engine {
            pool: Pool::new(lanes),
            state: Mutex::new(state),
            work: Condvar::new(),
            done: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep<'a>(&self, condvar: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        condvar.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of threads that take part in a launch.
    pub(crate) fn lanes(&self) -> usize {
        self.pool.lanes()
    }

    /// A launch that is done, to be filled again.
    pub(crate) fn spare(&self) -> Box<QueuedLaunch> {
        self.state().spare.pop_front().unwrap_or_default()
    }

    /// Runs the launch, at once when `blocking` and nothing is queued before it.
    pub(crate) fn launch(
        self: &Arc<Self>,
        launch: Box<QueuedLaunch>,
        blocking: bool,
    ) -> GpuResult<Serial> {
        let mut state = self.state();
        if (blocking && state.completed == state.newest) || !self.start(&mut state) {
            let serial = state.newest;
            drop(state);
            let ran = self.run(&launch);
            self.state().spare.push_back(launch);
            return ran.map(|()| Serial(serial));
        }
        while state.pending.len() >= MAX_PENDING {
            state = self.sleep(&self.done, state);
        }
        state.newest += 1;
        state.pending.push_back(launch);
        self.work.notify_one();
        Ok(Serial(state.newest))
    }

    /// Makes sure that the thread runs; `false` when the system gives none.
    fn start(self: &Arc<Self>, state: &mut State) -> bool {
        if state.thread.is_none() {
            let engine = Arc::clone(self);
            let builder = std::thread::Builder::new().name("magpie-cpu-queue".to_string());
            state.thread = builder.spawn(move || engine.serve()).ok();
            // Enough for a full queue, one that runs and one that is being filled.
            state.spare.resize_with(MAX_PENDING + 2, Box::default);
            state.pending.reserve(MAX_PENDING);
        }
        state.thread.is_some()
    }

    fn run(&self, launch: &QueuedLaunch) -> GpuResult<()> {
        let Some(entry) = launch.entry else { return Ok(()) };
        let fault = AtomicU32::new(0);
        let arguments = HostLaunch {
            buffers: launch.buffers.as_ptr(),
            scalars: launch.scalars.as_ptr().cast(),
            grid: launch.grid,
            block: launch.block,
            fault: fault.as_ptr(),
        };
        let job = Job {
            entry,
            launch: &arguments,
            groups: launch.groups,
            scratch_bytes: launch.scratch_bytes,
        };
        let start_ns = launch.timing.map(|_| now_ns());
        // SAFETY: the arguments were checked against the layout of this kernel.
        unsafe { self.pool.run(job) }?;
        if fault.load(Ordering::Relaxed) != 0 {
            let message = "calls in a kernel became too deep for the stack";
            return Err(GpuError::new(ErrorKind::LaunchFailed, "cpu", message));
        }
        if let (Some(token), Some(start_ns)) = (launch.timing, start_ns) {
            let timing = Timing { token, start_ns, end_ns: now_ns() };
            self.state().timings.push(timing);
        }
        Ok(())
    }

    /// The thread: runs queued launches until told to stop.
    fn serve(&self) {
        let mut state = self.state();
        loop {
            let Some(launch) = state.pending.pop_front() else {
                if state.stop {
                    return;
                }
                state = self.sleep(&self.work, state);
                continue;
            };
            drop(state);
            let ran = self.run(&launch);
            state = self.state();
            state.completed += 1;
            state.spare.push_back(launch);
            if let Err(error) = ran {
                state.fault.get_or_insert(error);
            }
            let completed = state.completed;
            while state.garbage.peek().is_some_and(|Reverse(g)| g.last_use <= completed) {
                let Some(Reverse(garbage)) = state.garbage.pop() else { break };
                garbage.free();
            }
            self.done.notify_all();
        }
    }

    /// The serial of the newest queued launch.
    pub(crate) fn newest(&self) -> Serial {
        Serial(self.state().newest)
    }

    /// Waits for a serial; gives the first fault of a queued launch back, once.
    pub(crate) fn wait(&self, serial: Serial, limit: Option<Duration>) -> GpuResult<bool> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut state = self.state();
        while state.completed < serial.0 {
            let Some(deadline) = deadline else {
                state = self.sleep(&self.done, state);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let waited = self.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match state.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(true),
        }
    }

    /// Frees memory, now or when the serial that uses it last has completed.
    pub(crate) fn free(&self, memory: NonNull<u8>, size: u64, last_use: u64) {
        let garbage = Garbage { last_use, memory, size };
        let mut state = self.state();
        if last_use > state.completed {
            state.garbage.push(Reverse(garbage));
        } else {
            drop(state);
            garbage.free();
        }
    }

    /// Moves the measurements to `out`.
    pub(crate) fn take_timings(&self, out: &mut Vec<Timing>) {
        out.append(&mut self.state().timings);
    }

    /// Lets the thread finish what is queued and ends it.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.stop = true;
        let thread = state.thread.take();
        drop(state);
        self.work.notify_one();
        if let Some(thread) = thread {
            // A thread that panicked has nothing left to clean up.
            let _ = thread.join();
        }
    }
}
