//! An opened device: its context, its stream, and whether it still works.

use super::adapter::Adapter;
use super::api::{Api, Code, Current, Handle};
use super::error::error;
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use std::sync::{Arc, OnceLock};

/// A stream that does not wait for the default one: the same number in both interfaces.
const NON_BLOCKING: u32 = 1;

pub(super) struct Core {
    pub(super) api: Arc<Api>,
    pub(super) adapter: Adapter,
    context: Handle,
    pub(super) stream: Handle,
    /// What made the device useless.
    lost: OnceLock<GpuError>,
}

impl Core {
    pub(super) fn open(api: &Arc<Api>, adapter: &Adapter) -> GpuResult<Core> {
        let label = || adapter.properties.label();
        let mut core = Core {
            api: Arc::clone(api),
            adapter: adapter.clone(),
            context: 0,
            stream: 0,
            lost: OnceLock::new(),
        };
        if let Current::Context { retain, .. } = api.current {
            // SAFETY: the place lives through the call.
            let code = unsafe { retain(&raw mut core.context, adapter.device) };
            api.check(code, || format!("cannot open {}", label()))?;
        }
        core.enter()?;
        let mut stream = 0;
        // SAFETY: the device is current, the place lives through the call.
        let code = unsafe { (api.call.stream_create)(&raw mut stream, NON_BLOCKING) };
        // The context is given back when `core` is dropped.
        api.check(code, || format!("cannot make a stream on {}", label()))?;
        core.stream = stream;
        Ok(core)
    }

    /// Makes the device the one that this thread calls.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceLost`] when it does not work any more.
    pub(super) fn enter(&self) -> GpuResult<()> {
        if let Some(first) = self.lost.get() {
            let (label, why) = (self.adapter.properties.label(), &first.message);
            let message = format!("{label} does not work any more since: {why}");
            return Err(
                error(self.api.vendor, ErrorKind::DeviceLost, message).with_code(first.code)
            );
        }
        // SAFETY: the context is retained, the device exists.
        let code = unsafe {
            match self.api.current {
                Current::Context { set, .. } => set(self.context),
                Current::Device { set } => set(self.adapter.device),
            }
        };
        self.check(code, || format!("cannot use {}", self.adapter.properties.label()))
    }

    /// Whether a code means success. After an error that the device does not recover from every
    /// further operation fails.
    pub(super) fn check(&self, code: Code, what: impl FnOnce() -> String) -> GpuResult<()> {
        if code == 0 {
            return Ok(());
        }
        let failure = self.api.failure(code, &what());
        if self.api.is_fatal(&failure) {
            // The first one counts.
            let _ = self.lost.set(failure.clone());
        }
        Err(failure)
    }

    /// Whether the device still works.
    pub(super) fn works(&self) -> bool {
        self.lost.get().is_none()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: nothing uses the stream and the context any more. What a lost device answers is
        // of no interest.
        unsafe {
            if self.stream != 0 && self.enter().is_ok() {
                (self.api.call.stream_destroy)(self.stream);
            }
            if let Current::Context { release, .. } = self.api.current
                && self.context != 0
            {
                release(self.adapter.device);
            }
        }
    }
}
