//! What the validation layer says.

use super::error::error;
use crate::gpu::error::{ErrorKind, GpuResult};
use ash::vk;
use std::ffi::{CStr, c_void};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Messages of the validation layer that no call has delivered yet.
#[derive(Default)]
pub(super) struct Reports {
    pending: AtomicBool,
    messages: Mutex<Vec<String>>,
}

impl Reports {
    /// The faults reported since the last call.
    ///
    /// # Errors
    /// [`ErrorKind::ValidationFailed`] with their texts when there are any.
    pub(super) fn check(&self) -> GpuResult<()> {
        if !self.pending.swap(false, Ordering::Acquire) {
            return Ok(());
        }
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let text = messages.drain(..).collect::<Vec<String>>().join("; ");
        Err(error(ErrorKind::ValidationFailed, text))
    }

    fn add(&self, message: String) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        self.pending.store(true, Ordering::Release);
    }
}

/// Prints a message; one of severity error is also delivered by the next call.
///
/// # Safety
/// Called by Vulkan with valid data; `user_data` is the address of [`Reports`].
pub(super) unsafe extern "system" fn receive(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    user_data: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: forwarded from the caller; the texts are C strings.
    let (text, reports) = unsafe {
        let text = data.as_ref().and_then(|d| d.p_message.as_ref()).map(|m| CStr::from_ptr(m));
        (text.unwrap_or_default().to_string_lossy(), user_data.cast::<Reports>().as_ref())
    };
    // Nobody is left to tell when standard error is gone.
    let _ = writeln!(std::io::stderr(), "vulkan validation: {text}");
    if let (true, Some(reports)) =
        (severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR), reports)
    {
        reports.add(text.into_owned());
    }
    vk::FALSE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_delivered_once_and_together() {
        let reports = Reports::default();
        assert!(reports.check().is_ok());
        let say = |severity, text: &CStr| {
            let data = vk::DebugUtilsMessengerCallbackDataEXT::default().message(text);
            let types = vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION;
            // SAFETY: the data is valid and the user data is of the right type.
            unsafe { receive(severity, types, &data, (&raw const reports).cast_mut().cast()) }
        };
        say(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR, c"first");
        say(vk::DebugUtilsMessageSeverityFlagsEXT::WARNING, c"only printed");
        say(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR, c"second");
        let error = reports.check().unwrap_err();
        assert_eq!((error.kind, &*error.message), (ErrorKind::ValidationFailed, "first; second"));
        assert!(reports.check().is_ok());
    }
}
