//! [`Resident`]: the elements of a device-resident binding, which lie on the host until a kernel
//! first needs them and on the device from then on.

use super::buffer::{Buffer, Element};
use super::context::Context;
use super::device::MemoryHint;
use super::error::GpuResult;
use super::telemetry::{Cost, count};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The elements of a binding.
pub(crate) struct Resident<A> {
    pub(crate) element: Element,
    pub(crate) len: u64,
    /// Whether it is the first buffer of a binding, for which costs are counted.
    is_first: bool,
    /// Whether its first upload is still to be counted.
    counted: AtomicBool,
    state: Mutex<State<A>>,
}

/// Where the elements are. `A` is a host array.
pub(crate) enum State<A> {
    Host {
        /// `None` for zeros.
        array: Option<A>,
        /// What of them has no room on a device: nobody minds before a kernel needs it.
        unfit: Option<Box<Unfit>>,
    },
    Device(Buffer),
}

/// Values of the host that do not fit the elements of a device.
pub(crate) struct Unfit {
    /// About the first of them.
    pub(crate) message: String,
    /// Those that are elements themselves, by index.
    pub(crate) values: Vec<(u64, i64)>,
    /// Whether others are parts of elements.
    pub(crate) has_parts: bool,
}

impl<A: AsRef<[u8]>> Resident<A> {
    /// `len` elements that are those of `array`, or zeros.
    pub(crate) fn new(element: Element, len: u64, array: Option<A>, is_first: bool) -> Resident<A> {
        Resident {
            element,
            len,
            is_first,
            counted: AtomicBool::new(true),
            state: Mutex::new(State::Host { array, unfit: None }),
        }
    }

    /// With what does not fit.
    pub(crate) fn with_unfit(self, unfit: Option<Unfit>) -> Resident<A> {
        if let State::Host { unfit: known, .. } = &mut *self.state() {
            *known = unfit.map(Box::new);
        }
        self
    }

    /// `len` zeros that belong to an operation of the runtime itself.
    pub(crate) fn uncounted(element: Element, len: u64) -> Resident<A> {
        Resident {
            element,
            len,
            is_first: true,
            counted: AtomicBool::new(false),
            state: Mutex::new(State::Host { array: None, unfit: None }),
        }
    }

    /// Counts what is done with the binding.
    pub(crate) fn count(&self, cost: Cost) {
        if self.is_first {
            count(cost);
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The buffer on the device, made when there is none yet.
    pub(crate) fn buffer(&self, device: &Arc<Context>) -> GpuResult<Buffer> {
        let mut state = self.state();
        let array = match &*state {
            State::Device(buffer) => return Ok(buffer.clone()),
            State::Host { array, .. } => array,
        };
        let buffer = match array {
            Some(array) => Buffer::from_bytes(device, self.element, array.as_ref(), 0)?,
            None => Buffer::new(device, self.element, self.len, 0, MemoryHint::Auto)?,
        };
        if self.len > 0 && self.counted.load(Ordering::Relaxed) {
            self.count(Cost::Upload);
        }
        *state = State::Device(buffer.clone());
        Ok(buffer)
    }

    /// Replaces the elements by those of `array`, of which there are as many.
    pub(crate) fn assign(&self, array: A) -> GpuResult<()> {
        self.count(Cost::Upload);
        let mut state = self.state();
        match &*state {
            State::Device(buffer) => return buffer.write(0, array.as_ref()),
            State::Host { .. } => {}
        }
        // The assignment is counted, the first use of what it assigned is not.
        self.counted.store(false, Ordering::Relaxed);
        *state = State::Host { array: Some(array), unfit: None };
        Ok(())
    }
}

impl<A> Drop for Resident<A> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if matches!(state, State::Device(_)) {
            count(Cost::Release);
        }
    }
}
