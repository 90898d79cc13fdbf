//! Errors of the driver.

use super::api::error_type;
use crate::gpu::error::{ErrorKind, GpuError};
use magpie_types::kernel::GpuBackend;

/// An error in this driver.
pub(super) fn error(kind: ErrorKind, message: impl Into<String>) -> GpuError {
    GpuError::new(kind, GpuBackend::Wgsl.name(), message)
}

/// What the library reported while it did `what`; `otherwise` is the kind of everything but a lack
/// of memory.
pub(super) fn reported(code: u32, message: &str, what: &str, otherwise: ErrorKind) -> GpuError {
    let kind = match code {
        error_type::OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        _ => otherwise,
    };
    // The library's messages have several lines, the last ones with the reason.
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    error(kind, format!("{what}: {}", lines.join("; "))).with_code(code as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_fit_on_a_line() {
        let e =
            reported(2, "Validation Error\n\nCaused by:\n  no\n", "load", ErrorKind::DriverError);
        assert_eq!((e.kind, e.code), (ErrorKind::DriverError, 2));
        assert_eq!(e.message, "load: Validation Error; Caused by:; no");
        let e = reported(error_type::OUT_OF_MEMORY, "", "x", ErrorKind::DriverError);
        assert_eq!(e.kind, ErrorKind::OutOfMemory);
    }
}
