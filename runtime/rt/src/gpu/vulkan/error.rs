//! What the codes of Vulkan mean to a program.

use crate::gpu::error::{ErrorKind, GpuError};
use ash::vk;

/// The back-end word of this driver.
pub(super) const BACKEND: &str = "spv";

/// An error of this driver that Vulkan did not report.
pub(super) fn error(kind: ErrorKind, message: impl Into<String>) -> GpuError {
    GpuError::new(kind, BACKEND, message)
}

/// The error for a code that a Vulkan function returned. `what` is the operation with its sizes
/// and device.
pub(super) fn failure(code: vk::Result, what: &str) -> GpuError {
    let message = format!("{what}: {} ({})", name(code), code.as_raw());
    error(kind(code), message).with_code(code.as_raw())
}

/// The same for functions that compile kernels, where most codes mean that the compiler gave up.
pub(super) fn compile_failure(code: vk::Result, what: &str) -> GpuError {
    let failure = failure(code, what);
    match failure.kind {
        ErrorKind::DriverError | ErrorKind::BackendUnavailable | ErrorKind::InvalidKernel => {
            GpuError { kind: ErrorKind::CompilationFailed, ..failure }
        }
        _ => failure,
    }
}

fn kind(code: vk::Result) -> ErrorKind {
    match code {
        vk::Result::ERROR_DEVICE_LOST => ErrorKind::DeviceLost,
        vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => {
            ErrorKind::OutOfMemory
        }
        vk::Result::ERROR_INITIALIZATION_FAILED | vk::Result::ERROR_INCOMPATIBLE_DRIVER => {
            ErrorKind::BackendUnavailable
        }
        vk::Result::ERROR_LAYER_NOT_PRESENT
        | vk::Result::ERROR_EXTENSION_NOT_PRESENT
        | vk::Result::ERROR_FEATURE_NOT_PRESENT
        | vk::Result::ERROR_FORMAT_NOT_SUPPORTED => ErrorKind::Unsupported,
        vk::Result::ERROR_TOO_MANY_OBJECTS
        | vk::Result::ERROR_FRAGMENTED_POOL
        | vk::Result::ERROR_FRAGMENTATION
        | vk::Result::ERROR_OUT_OF_POOL_MEMORY => ErrorKind::ResourceExhausted,
        vk::Result::ERROR_MEMORY_MAP_FAILED => ErrorKind::BufferError,
        vk::Result::TIMEOUT => ErrorKind::TimeoutExpired,
        vk::Result::ERROR_INVALID_SHADER_NV => ErrorKind::InvalidKernel,
        vk::Result::ERROR_VALIDATION_FAILED_EXT => ErrorKind::ValidationFailed,
        _ => ErrorKind::DriverError,
    }
}

fn name(code: vk::Result) -> String {
    let text = format!("{code:?}");
    // Codes that the bindings do not know print as their number.
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        format!("VK_{text}")
    } else {
        "unknown code".to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_kinds_and_stay_in_the_message() {
        let lost = failure(vk::Result::ERROR_DEVICE_LOST, "wait for work on GPU");
        assert_eq!((lost.kind, lost.code), (ErrorKind::DeviceLost, -4));
        assert_eq!(lost.message, "wait for work on GPU: VK_ERROR_DEVICE_LOST (-4)");
        let memory = failure(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, "x");
        assert_eq!((memory.kind, memory.code), (ErrorKind::OutOfMemory, -2));
        let odd = failure(vk::Result::from_raw(-123_456), "x");
        assert_eq!(
            (odd.kind, &*odd.message),
            (ErrorKind::DriverError, "x: unknown code (-123456)")
        );
        let code = vk::Result::ERROR_INITIALIZATION_FAILED;
        assert_eq!(failure(code, "x").kind, ErrorKind::BackendUnavailable);
        assert_eq!(compile_failure(code, "x").kind, ErrorKind::CompilationFailed);
        let memory = compile_failure(vk::Result::ERROR_OUT_OF_HOST_MEMORY, "x");
        assert_eq!(memory.kind, ErrorKind::OutOfMemory);
    }
}
