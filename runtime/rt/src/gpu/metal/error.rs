//! What the errors of Metal mean to a program.

use crate::gpu::error::{ErrorKind, GpuError};

/// The back-end word of this driver.
pub(super) const BACKEND: &str = "msl";

/// An error of this driver that Metal did not report.
pub(super) fn error(kind: ErrorKind, message: impl Into<String>) -> GpuError {
    GpuError::new(kind, BACKEND, message)
}

/// The kind of a command buffer's error (`MTLCommandBufferError`).
pub(super) fn kind_of_command_buffer(code: isize) -> ErrorKind {
    match code {
        // Timeout, page fault, stack overflow.
        2 | 3 | 12 => ErrorKind::LaunchFailed,
        // Access revoked, device removed.
        4 | 11 => ErrorKind::DeviceLost,
        7 => ErrorKind::Unsupported,
        8 => ErrorKind::OutOfMemory,
        9 => ErrorKind::BufferError,
        _ => ErrorKind::DriverError,
    }
}

#[cfg(target_os = "macos")]
mod apple {
    use super::{BACKEND, kind_of_command_buffer};
    use crate::gpu::error::{ErrorKind, GpuError};
    use objc2_foundation::NSError;

    /// An error that Metal reported, about an operation with its sizes and device.
    pub(in crate::gpu::metal) fn failure(
        kind: ErrorKind,
        what: &str,
        reported: &NSError,
    ) -> GpuError {
        let code = reported.code();
        let message = format!("{what}: {} ({code})", reported.localizedDescription());
        GpuError::new(kind, BACKEND, message).with_code(i32::try_from(code).unwrap_or(i32::MAX))
    }

    /// The error of a command buffer.
    pub(in crate::gpu::metal) fn launch_failure(what: &str, reported: &NSError) -> GpuError {
        failure(kind_of_command_buffer(reported.code()), what, reported)
    }
}

#[cfg(target_os = "macos")]
pub(super) use apple::{failure, launch_failure};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_kinds() {
        for (code, kind) in [
            (1, ErrorKind::DriverError),
            (2, ErrorKind::LaunchFailed),
            (3, ErrorKind::LaunchFailed),
            (8, ErrorKind::OutOfMemory),
            (11, ErrorKind::DeviceLost),
            (-5, ErrorKind::DriverError),
        ] {
            assert_eq!(kind_of_command_buffer(code), kind, "{code}");
        }
        assert_eq!(error(ErrorKind::BufferError, "x").backend, BACKEND);
    }
}
