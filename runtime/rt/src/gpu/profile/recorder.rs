//! The recorder of a device: what happened on it while a profiling session was active.

use crate::gpu::clock::now_ns;
use crate::gpu::device::{Timing, TimingToken};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Events after which a session stops recording, so that a forgotten session cannot eat the
/// memory of a long run.
const MAX_EVENTS: usize = 1 << 20;

/// What an event is about; the `cat` of a Chrome trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Category {
    /// A kernel launch.
    Launch,
    /// A transfer between host and device, a device copy or a fill.
    Transfer,
    /// A region that the program marked.
    Region,
}

impl Category {
    /// `gpu.launch`, `gpu.transfer` or `gpu.region`.
    pub fn name(self) -> &'static str {
        match self {
            Category::Launch => "gpu.launch",
            Category::Transfer => "gpu.transfer",
            Category::Region => "gpu.region",
        }
    }
}

/// What an event adds to its name and times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Shape of a launch and whether the body without bounds checks ran.
    Launch {
        #[allow(missing_docs)]
        grid: [u32; 3],
        #[allow(missing_docs)]
        block: [u32; 3],
        #[allow(missing_docs)]
        unchecked: bool,
    },
    /// Bytes moved.
    Transfer {
        #[allow(missing_docs)]
        bytes: u64,
    },
    /// Nothing.
    Region,
}

/// Something that happened during a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Kernel, transfer (`buffer_write` …) or region name.
    pub name: String,
    /// Start in nanoseconds since the runtime's clock began.
    pub start_ns: u64,
    /// End in nanoseconds of the same clock.
    pub end_ns: u64,
    /// Whether the device measured the times; else they are the host's view.
    pub device_clock: bool,
    /// Shape or size.
    pub detail: Detail,
}

impl Event {
    /// What the event is about.
    pub fn category(&self) -> Category {
        match self.detail {
            Detail::Launch { .. } => Category::Launch,
            Detail::Transfer { .. } => Category::Transfer,
            Detail::Region => Category::Region,
        }
    }
}

#[derive(Default)]
struct Recording {
    /// Tells sessions of one device apart.
    session: u64,
    /// The token of the first event. Tokens are never used twice, because measurements of an
    /// abandoned session may still arrive.
    first_token: TimingToken,
    events: Vec<Event>,
    dropped: u64,
    marks: Vec<(String, u64)>,
}

impl Recording {
    fn event(&mut self, token: TimingToken) -> Option<&mut Event> {
        let index = token.checked_sub(self.first_token)?;
        self.events.get_mut(usize::try_from(index).ok()?)
    }
}

/// Records the events of one device while a session is active. Inactive, it costs one load.
#[derive(Default)]
pub(crate) struct Recorder {
    active: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: u64,
    tokens: TimingToken,
    recording: Option<Recording>,
}

impl Recorder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts recording; `None` when a session is active already. The number names the session.
    pub(crate) fn start(&self) -> Option<u64> {
        let mut state = self.state();
        if state.recording.is_some() {
            return None;
        }
        state.sessions += 1;
        let (session, first_token) = (state.sessions, state.tokens);
        state.recording = Some(Recording { session, first_token, ..Recording::default() });
        self.active.store(true, Ordering::Release);
        Some(session)
    }

    /// Ends the session and returns its events by start time; `None` when it is not active.
    /// `timings` are what the device measured for the tokens given out.
    pub(crate) fn stop(&self, session: u64, timings: &[Timing]) -> Option<Vec<Event>> {
        let mut state = self.state();
        let mut recording = state.recording.take_if(|r| r.session == session)?;
        state.tokens += recording.events.len() as TimingToken;
        self.active.store(false, Ordering::Release);
        drop(state);
        for timing in timings {
            if let Some(event) = recording.event(timing.token) {
                event.start_ns = timing.start_ns;
                event.end_ns = timing.end_ns.max(timing.start_ns);
                event.device_clock = true;
            }
        }
        if recording.dropped > 0 {
            let now = now_ns();
            recording.events.push(Event {
                name: format!("{} further events were not recorded", recording.dropped),
                start_ns: now,
                end_ns: now,
                device_clock: false,
                detail: Detail::Region,
            });
        }
        recording.events.sort_by_key(|e| (e.start_ns, e.end_ns));
        Some(recording.events)
    }

    /// Whether the session with this number is the active one.
    pub(crate) fn is_recording(&self, session: u64) -> bool {
        self.state().recording.as_ref().is_some_and(|r| r.session == session)
    }

    /// Notes the start of an operation. The token goes to the driver, which may measure it, and
    /// back to [`Recorder::end`]. `None` when nothing is recorded.
    pub(crate) fn begin(&self, name: &str, detail: Detail) -> Option<TimingToken> {
        if !self.active.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.state();
        let recording = state.recording.as_mut()?;
        if recording.events.len() >= MAX_EVENTS {
            recording.dropped += 1;
            return None;
        }
        let now = now_ns();
        recording.events.push(Event {
            name: name.to_string(),
            start_ns: now,
            end_ns: now,
            device_clock: false,
            detail,
        });
        Some(recording.first_token + recording.events.len() as TimingToken - 1)
    }

    /// Notes the end of an operation as the host sees it.
    pub(crate) fn end(&self, token: Option<TimingToken>) {
        let Some(token) = token else { return };
        let mut state = self.state();
        if let Some(event) = state.recording.as_mut().and_then(|r| r.event(token)) {
            event.end_ns = now_ns();
        }
    }

    /// Opens a region of the program; `false` when the session is not active.
    pub(crate) fn mark_begin(&self, session: u64, name: &str) -> bool {
        let mut state = self.state();
        let recording = state.recording.as_mut().filter(|r| r.session == session);
        recording.map(|r| r.marks.push((name.to_string(), now_ns()))).is_some()
    }

    /// Closes the innermost open region of this name; `false` when there is none.
    pub(crate) fn mark_end(&self, session: u64, name: &str) -> bool {
        let mut state = self.state();
        let Some(recording) = state.recording.as_mut().filter(|r| r.session == session) else {
            return false;
        };
        let Some(open) = recording.marks.iter().rposition(|(n, _)| n == name) else {
            return false;
        };
        let (name, start_ns) = recording.marks.remove(open);
        if recording.events.len() >= MAX_EVENTS {
            recording.dropped += 1;
        } else {
            let end_ns = now_ns();
            let detail = Detail::Region;
            recording.events.push(Event { name, start_ns, end_ns, device_clock: false, detail });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_session_at_a_time_and_only_its_owner_ends_it() {
        let recorder = Recorder::default();
        assert_eq!(recorder.begin("idle", Detail::Region), None);
        let first = recorder.start().unwrap();
        assert_eq!(recorder.start(), None);
        assert_eq!(recorder.stop(first + 1, &[]), None);
        assert_eq!(recorder.stop(first, &[]), Some(vec![]));
        assert_eq!(recorder.stop(first, &[]), None);
        let second = recorder.start().unwrap();
        assert!(second != first && recorder.is_recording(second) && !recorder.is_recording(first));
    }

    #[test]
    fn device_times_replace_host_times() {
        let recorder = Recorder::default();
        let session = recorder.start().unwrap();
        let launch = Detail::Launch { grid: [1; 3], block: [1; 3], unchecked: false };
        let a = recorder.begin("a", launch);
        recorder.end(a);
        let b = recorder.begin("b", Detail::Transfer { bytes: 8 });
        recorder.end(b);
        let timings = [
            Timing { token: a.unwrap(), start_ns: u64::MAX - 2, end_ns: u64::MAX - 1 },
            Timing { token: 77, start_ns: 0, end_ns: 0 },
        ];
        let events = recorder.stop(session, &timings).unwrap();
        assert_eq!(events[0].name, "b");
        assert!(!events[0].device_clock && events[0].start_ns <= events[0].end_ns);
        assert_eq!((events[1].start_ns, events[1].end_ns), (u64::MAX - 2, u64::MAX - 1));
        assert!(events[1].device_clock);
    }

    #[test]
    fn late_measurements_of_an_abandoned_session_are_ignored() {
        let recorder = Recorder::default();
        let first = recorder.start().unwrap();
        let stale = recorder.begin("old", Detail::Region).unwrap();
        recorder.stop(first, &[]).unwrap();
        let second = recorder.start().unwrap();
        let fresh = recorder.begin("new", Detail::Region);
        assert_ne!(fresh, Some(stale));
        let timing = Timing { token: stale, start_ns: 1, end_ns: 2 };
        let events = recorder.stop(second, &[timing]).unwrap();
        assert!(!events[0].device_clock);
    }

    #[test]
    fn regions_nest_and_must_be_open() {
        let recorder = Recorder::default();
        let session = recorder.start().unwrap();
        assert!(recorder.mark_begin(session, "outer"));
        assert!(recorder.mark_begin(session, "inner"));
        assert!(recorder.mark_begin(session, "inner"));
        assert!(recorder.mark_end(session, "inner"));
        assert!(recorder.mark_end(session, "outer"));
        assert!(!recorder.mark_end(session, "outer"));
        assert!(!recorder.mark_begin(session + 1, "other"));
        let events = recorder.stop(session, &[]).unwrap();
        let names: Vec<&str> = events.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["outer", "inner"]);
        assert!(events[0].end_ns >= events[1].end_ns);
    }
}
