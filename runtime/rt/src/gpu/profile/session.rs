//! [`Session`]: records what happens on a device between its beginning and its end.

use super::recorder::Event;
use crate::gpu::context::Context;
use crate::gpu::error::{ErrorKind, GpuResult};
use std::sync::Arc;

/// An active profiling session of a device. There is at most one a device; dropping it ends it.
#[derive(Debug)]
pub struct Session {
    context: Arc<Context>,
    number: u64,
}

impl Session {
    /// Starts recording.
    ///
    /// # Errors
    /// [`ErrorKind::ValidationFailed`] with code `MPG_PROF_1002` when a session is active.
    pub fn begin(context: &Arc<Context>) -> GpuResult<Session> {
        let Some(number) = context.recorder.start() else {
            let device = context.properties().label();
            let message = format!(
                "error[MPG_PROF_1002]: a profiling session is already active on {device}; end it first"
            );
            return Err(context.error(ErrorKind::ValidationFailed, message));
        };
        Ok(Session { context: Arc::clone(context), number })
    }

    /// The device.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Ends the session and gives what was recorded, by start time. Launches that are still queued
    /// are waited for.
    ///
    /// # Errors
    /// Faults of queued work; the session has ended also then. [`ErrorKind::ValidationFailed`] when
    /// it ended before.
    pub fn end(&self) -> GpuResult<Vec<Event>> {
        let settled = self.context.synchronize();
        let mut timings = Vec::new();
        self.context.device().take_timings(&mut timings);
        let events = self.context.recorder.stop(self.number, &timings);
        settled?;
        events.ok_or_else(|| self.inactive("end"))
    }

    /// Opens a region of the program.
    ///
    /// # Errors
    /// [`ErrorKind::ValidationFailed`] after the end of the session.
    pub fn mark_begin(&self, name: &str) -> GpuResult<()> {
        let opened = self.context.recorder.mark_begin(self.number, name);
        if opened { Ok(()) } else { Err(self.inactive("mark_begin")) }
    }

    /// Closes the innermost open region with this name.
    ///
    /// # Errors
    /// [`ErrorKind::ValidationFailed`] when no such region is open.
    pub fn mark_end(&self, name: &str) -> GpuResult<()> {
        if self.context.recorder.mark_end(self.number, name) {
            return Ok(());
        }
        if !self.context.recorder.is_recording(self.number) {
            return Err(self.inactive("mark_end"));
        }
        let message =
            format!("mark_end: no region named {name:?} is open; begin it with mark_begin");
        Err(self.context.error(ErrorKind::ValidationFailed, message))
    }

    /// Whether operations on the device are being recorded for this session.
    pub fn is_active(&self) -> bool {
        self.context.recorder.is_recording(self.number)
    }

    /// Asks for hardware counters. Returns one warning for each thing that cannot be had; none of
    /// the drivers offers counters yet, so that is each of them.
    pub fn enable_counters(&self, counters: &[&str]) -> Vec<String> {
        let device = self.context.properties().label();
        let mut warnings = vec![format!(
            "warning[MPG_PROF_1001]: {device} offers no hardware counters; events are still recorded"
        )];
        warnings.extend(counters.iter().map(|counter| {
            format!("warning[MPG_PROF_1003]: {device} does not support the counter {counter:?}")
        }));
        warnings
    }

    fn inactive(&self, operation: &str) -> crate::gpu::GpuError {
        let message = format!("{operation}: the profiling session has ended");
        self.context.error(ErrorKind::ValidationFailed, message)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.context.recorder.stop(self.number, &[]);
    }
}
