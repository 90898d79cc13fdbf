//! How far a device has come, told by the handlers of its command buffers.

use crate::gpu::device::Timing;
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Which command buffers are done.
#[derive(Default)]
pub(super) struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// All up to this one are done.
    completed: u64,
    /// Done before some older one.
    ahead: BTreeSet<u64>,
    /// A fault that nobody has heard of yet.
    fault: Option<GpuError>,
    /// The device is gone: every call says so.
    lost: Option<GpuError>,
    timings: Vec<Timing>,
}

impl Progress {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a command buffer is done, and how it went.
    pub(super) fn finish(&self, serial: u64, outcome: GpuResult<Option<Timing>>) {
        let mut state = self.state();
        match outcome {
            Ok(timing) => state.timings.extend(timing),
            Err(error) if error.kind == ErrorKind::DeviceLost => {
                state.lost.get_or_insert(error);
            }
            Err(error) => {
                state.fault.get_or_insert(error);
            }
        }
        state.ahead.insert(serial);
        while state.ahead.first() == Some(&(state.completed + 1)) {
            state.ahead.pop_first();
            state.completed += 1;
        }
        self.changed.notify_all();
    }

    /// The newest serial up to which everything is done.
    pub(super) fn completed(&self) -> u64 {
        self.state().completed
    }

    /// Fails when the device is gone.
    pub(super) fn check(&self) -> GpuResult<()> {
        self.state().lost.clone().map_or(Ok(()), Err)
    }

    /// Waits until everything up to `serial` is done; false when the time ran out first. A fault of
    /// queued work comes back here, once.
    pub(super) fn wait(&self, serial: u64, limit: Option<Duration>) -> GpuResult<bool> {
        let end = limit.map(|limit| Instant::now().checked_add(limit));
        let mut state = self.state();
        while state.completed < serial {
            state = match end {
                // A limit beyond what a clock can show is none.
                None | Some(None) => {
                    self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                Some(Some(end)) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(false);
                    }
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        let fault = state.lost.clone().or_else(|| state.fault.take());
        fault.map_or(Ok(true), Err)
    }

    /// Moves the measurements of completed work to `out`.
    pub(super) fn take_timings(&self, out: &mut Vec<Timing>) {
        out.append(&mut self.state().timings);
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::error;
    use super::*;

    #[test]
    fn serials_complete_in_order() {
        let progress = Progress::default();
        progress.finish(2, Ok(None));
        assert_eq!(progress.completed(), 0);
        assert!(!progress.wait(1, Some(Duration::ZERO)).unwrap());
        progress.finish(1, Ok(Some(Timing { token: 7, start_ns: 1, end_ns: 2 })));
        assert_eq!(progress.completed(), 2);
        assert!(progress.wait(2, None).unwrap());
        let mut timings = Vec::new();
        progress.take_timings(&mut timings);
        assert_eq!(timings.len(), 1);
    }

    #[test]
    fn a_waiting_thread_wakes_up() {
        let progress = Progress::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| progress.wait(1, Some(Duration::MAX)));
            progress.finish(1, Ok(None));
            assert!(waiter.join().unwrap().unwrap());
        });
    }

    #[test]
    fn faults_are_told_once_and_losses_for_ever() {
        let progress = Progress::default();
        progress.finish(1, Err(error(ErrorKind::LaunchFailed, "page fault")));
        assert!(progress.check().is_ok());
        assert_eq!(progress.wait(1, None).unwrap_err().kind, ErrorKind::LaunchFailed);
        assert!(progress.wait(1, None).unwrap());
        progress.finish(2, Err(error(ErrorKind::DeviceLost, "removed")));
        for _ in 0..2 {
            assert_eq!(progress.wait(2, None).unwrap_err().kind, ErrorKind::DeviceLost);
            assert!(progress.check().is_err());
        }
    }
}
