//! Profiling: sessions, their events and the trace file (GPU specification, section 11).

pub(crate) mod recorder;
mod session;
mod trace;

pub use recorder::{Category, Detail, Event};
pub use session::Session;
pub use trace::{TraceEvent, chrome_trace};
