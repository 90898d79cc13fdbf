//! The order of a device's work: serials and the events that tell when they are done.
//!
//! Every launch, copy and fill has a serial of its own. Events are recorded behind work that is
//! likely to be waited for, and behind the newest work when somebody waits for other work: an event
//! with a later serial than the one asked for tells a little too much.

use super::api::Handle;
use super::core::Core;
use super::error::NOT_READY;
use super::staging::Upload;
use crate::gpu::clock::now_ns;
use crate::gpu::device::{Timing, TimingToken};
use crate::gpu::error::GpuResult;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Events in use at a time. The oldest is recorded anew when there are more.
const EVENTS: usize = 256;

/// Event flags, the same in both interfaces: no times, which makes them cheap.
const DISABLE_TIMING: u32 = 2;

/// A measured launch that may not be done yet.
struct Measured {
    token: TimingToken,
    serial: u64,
    events: [Handle; 2],
}

/// When the device's clock was looked at.
#[derive(Clone, Copy)]
struct Meeting {
    event: Handle,
    host_ns: u64,
}

pub(super) struct Queue {
    newest: u64,
    completed: u64,
    /// Recorded events with their serials, oldest first.
    recorded: VecDeque<(Handle, u64)>,
    idle: Vec<Handle>,
    /// Events with times that nobody uses.
    idle_clocks: Vec<Handle>,
    measured: Vec<Measured>,
    timings: Vec<Timing>,
    meeting: Option<Meeting>,
    /// Made by the first transfer that needs it.
    pub(super) upload: Option<Upload>,
}

/// What to wait for, without the queue.
#[derive(Clone, Copy)]
pub(super) struct Target {
    event: Handle,
    serial: u64,
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue {
            newest: 0,
            completed: 0,
            // Launches allocate nothing.
            recorded: VecDeque::with_capacity(EVENTS),
            idle: Vec::with_capacity(EVENTS),
            idle_clocks: Vec::new(),
            measured: Vec::new(),
            timings: Vec::new(),
            meeting: None,
            upload: None,
        }
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// The serial of work that is about to be queued.
    pub(super) fn next(&self) -> u64 {
        self.newest + 1
    }

    /// Notes that the work with the serial [`Queue::next`] was queued.
    pub(super) fn queued(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    fn event(core: &Core, idle: &mut Vec<Handle>, flags: u32) -> GpuResult<Handle> {
        if let Some(event) = idle.pop() {
            return Ok(event);
        }
        let mut event = 0;
        // SAFETY: the device is current, the place lives through the call.
        let code = unsafe { (core.api.call.event_create)(&raw mut event, flags) };
        core.check(code, || "cannot make an event".to_string()).map(|()| event)
    }

    fn record(core: &Core, event: Handle) -> GpuResult<()> {
        // SAFETY: event and stream are of the current device.
        let code = unsafe { (core.api.call.event_record)(event, core.stream) };
        core.check(code, || "cannot record an event".to_string())
    }

    /// Records an event behind the newest work.
    pub(super) fn mark(&mut self, core: &Core) -> GpuResult<()> {
        if self.recorded.back().is_some_and(|r| r.1 == self.newest) {
            return Ok(());
        }
        let event = match self.recorded.len() < EVENTS {
            true => Queue::event(core, &mut self.idle, DISABLE_TIMING)?,
            // Whoever waits for it waits for the newest work instead.
            false => self.recorded.pop_front().map_or(0, |r| r.0),
        };
        if let Err(error) = Queue::record(core, event) {
            self.idle.push(event);
            return Err(error);
        }
        self.recorded.push_back((event, self.newest));
        Ok(())
    }

    /// What to wait for until a serial is done; `None` when it is.
    pub(super) fn target(&mut self, core: &Core, serial: u64) -> GpuResult<Option<Target>> {
        if serial <= self.completed {
            return Ok(None);
        }
        if self.recorded.back().is_none_or(|r| r.1 < serial) {
            self.mark(core)?;
        }
        let found = self.recorded.iter().find(|r| r.1 >= serial);
        Ok(found.map(|&(event, serial)| Target { event, serial }))
    }

    /// Notes that everything up to a serial is done.
    pub(super) fn done(&mut self, serial: u64) {
        self.completed = self.completed.max(serial);
        while let Some(&(event, of)) = self.recorded.front()
            && of <= self.completed
        {
            self.recorded.pop_front();
            self.idle.push(event);
        }
        if let Some(upload) = &mut self.upload {
            upload.release(self.completed);
        }
    }

    /// Looks which work is done, without waiting.
    pub(super) fn poll(&mut self, core: &Core) -> GpuResult<()> {
        while let Some(&(event, serial)) = self.recorded.front() {
            // SAFETY: the event is of the current device.
            match unsafe { (core.api.call.event_query)(event) } {
                NOT_READY => break,
                code => core.check(code, || waiting(core))?,
            }
            self.done(serial);
        }
        Ok(())
    }

    // ----- measurements -----

    /// Records the start of a measured launch; gives the event that its end is to be recorded with.
    pub(super) fn measure(&mut self, core: &Core, token: TimingToken) -> GpuResult<Handle> {
        if self.meeting.is_none() {
            let event = self.clock(core)?;
            // SAFETY: the event is of the current device.
            let code = unsafe { (core.api.call.event_synchronize)(event) };
            if let Err(failure) = core.check(code, || waiting(core)) {
                self.idle_clocks.push(event);
                return Err(failure);
            }
            self.meeting = Some(Meeting { event, host_ns: now_ns() });
        }
        let end = Queue::event(core, &mut self.idle_clocks, 0)?;
        match self.clock(core) {
            Ok(start) => {
                let serial = self.next();
                self.measured.push(Measured { token, serial, events: [start, end] });
                Ok(end)
            }
            Err(failure) => {
                self.idle_clocks.push(end);
                Err(failure)
            }
        }
    }

    /// An event with a time, recorded now.
    fn clock(&mut self, core: &Core) -> GpuResult<Handle> {
        let event = Queue::event(core, &mut self.idle_clocks, 0)?;
        match Queue::record(core, event) {
            Ok(()) => Ok(event),
            Err(failure) => {
                self.idle_clocks.push(event);
                Err(failure)
            }
        }
    }

    /// Forgets a measured launch that was not queued; `end` is from [`Queue::measure`].
    pub(super) fn unmeasure(&mut self, end: Handle) {
        let idle = &mut self.idle_clocks;
        self.measured.retain(|m| {
            let is_other = m.events[1] != end;
            if !is_other {
                idle.extend(m.events);
            }
            is_other
        });
    }

    /// Records the end of a measured launch.
    pub(super) fn measured(&mut self, core: &Core, end: Handle) -> GpuResult<()> {
        Queue::record(core, end).inspect_err(|_| self.unmeasure(end))
    }

    /// Moves the measurements of finished work to `out`.
    pub(super) fn take_timings(&mut self, core: &Core, out: &mut Vec<Timing>) {
        let completed = self.completed;
        let Some(meeting) = self.meeting else { return };
        let at = |event| {
            let mut milliseconds = 0f32;
            // SAFETY: both events were recorded with times and are done.
            let code = unsafe {
                (core.api.call.event_elapsed)(&raw mut milliseconds, meeting.event, event)
            };
            let nanoseconds = (f64::from(milliseconds) * 1e6) as i64;
            (code == 0).then(|| meeting.host_ns.saturating_add_signed(nanoseconds))
        };
        let (timings, idle) = (&mut self.timings, &mut self.idle_clocks);
        self.measured.retain(|m| {
            if m.serial > completed {
                return true;
            }
            if let [Some(start_ns), Some(end_ns)] = m.events.map(at) {
                timings.push(Timing { token: m.token, start_ns, end_ns: end_ns.max(start_ns) });
            }
            idle.extend(m.events);
            false
        });
        out.append(&mut self.timings);
        // The clocks drift: they meet anew before the next measured launch.
        if self.measured.is_empty()
            && let Some(meeting) = self.meeting.take()
        {
            self.idle_clocks.push(meeting.event);
        }
    }

    /// Destroys what the queue has made.
    ///
    /// # Safety
    /// The device is idle and the queue is not used afterwards.
    pub(super) unsafe fn destroy(&mut self, core: &Core) {
        if core.enter().is_err() {
            return;
        }
        let measured = self.measured.drain(..).flat_map(|m| m.events);
        let events = self.recorded.drain(..).map(|r| r.0).chain(self.idle.drain(..));
        let clocks = self.idle_clocks.drain(..).chain(self.meeting.take().map(|m| m.event));
        // SAFETY: forwarded from the caller.
        unsafe {
            for event in measured.chain(events).chain(clocks) {
                (core.api.call.event_destroy)(event);
            }
            if let Some(upload) = self.upload.take() {
                upload.destroy(core);
            }
        }
    }
}

impl Target {
    /// The serial that is done then.
    pub(super) fn serial(self) -> u64 {
        self.serial
    }

    /// Waits; `false` when the time ran out first.
    pub(super) fn wait(self, core: &Core, limit: Option<Duration>) -> GpuResult<bool> {
        core.enter()?;
        let Some(limit) = limit else {
            // SAFETY: the event is of the current device.
            let code = unsafe { (core.api.call.event_synchronize)(self.event) };
            return core.check(code, || waiting(core)).map(|()| true);
        };
        let deadline = Instant::now().checked_add(limit);
        let mut pause = Duration::from_micros(1);
        loop {
            // SAFETY: as above.
            match unsafe { (core.api.call.event_query)(self.event) } {
                NOT_READY => {}
                code => return core.check(code, || waiting(core)).map(|()| true),
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(false);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }
}

fn waiting(core: &Core) -> String {
    format!("wait for work on {}", core.adapter.properties.label())
}
