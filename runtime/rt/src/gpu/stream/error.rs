//! What the codes of CUDA and HIP mean to a program. The two number their errors alike.

use super::Vendor;
use super::api::Code;
use crate::gpu::error::{ErrorKind, GpuError};

/// An error that the interface did not report.
pub(super) fn error(vendor: Vendor, kind: ErrorKind, message: impl Into<String>) -> GpuError {
    GpuError::new(kind, vendor.backend(), message)
}

/// The error for a code that a function returned.
pub(super) fn failure(vendor: Vendor, code: Code, name: &str, what: &str) -> GpuError {
    error(vendor, kind(code), format!("{what}: {name} ({code})")).with_code(code)
}

fn kind(code: Code) -> ErrorKind {
    match code {
        2 => ErrorKind::OutOfMemory,
        // Not initialised, shutting down, stub library, unavailable, no device.
        3 | 4 | 34 | 46 | 100 | 101 | 802..=804 => ErrorKind::BackendUnavailable,
        // An invalid image, no code for this device, invalid or unsupported PTX.
        200 | 209 | 300 | 301 => ErrorKind::InvalidKernel,
        218 | 220..=222 => ErrorKind::CompilationFailed,
        // Symbol not found.
        302 | 303 | 500 => ErrorKind::InvalidKernel,
        // An unrecoverable memory error of the hardware, a hang, a destroyed context.
        201 | 214 | 702 | 709 | 710 | 721 => ErrorKind::DeviceLost,
        // Faults of kernels: addresses, instructions, stacks.
        700 | 713..=719 => ErrorKind::LaunchFailed,
        701 | 720 => ErrorKind::ResourceExhausted,
        801 => ErrorKind::Unsupported,
        1 | 400 => ErrorKind::ValidationFailed,
        _ => ErrorKind::DriverError,
    }
}

/// Whether nothing works any more on the device after this code.
pub(super) fn is_sticky(code: Code) -> bool {
    matches!(code, 201 | 214 | 700 | 702 | 709 | 710 | 713..=719 | 721)
}

/// The code that says that work is not done yet.
pub(super) const NOT_READY: Code = 600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_kinds_and_stay_in_the_message() {
        let error = failure(Vendor::Cuda, 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "launch of `k`");
        assert_eq!((error.kind, error.code, error.backend), (ErrorKind::LaunchFailed, 700, "ptx"));
        assert_eq!(error.message, "launch of `k`: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        assert_eq!(failure(Vendor::Hip, 2, "x", "y").backend, "hip");
        for (code, expected) in [
            (2, ErrorKind::OutOfMemory),
            (100, ErrorKind::BackendUnavailable),
            (209, ErrorKind::InvalidKernel),
            (218, ErrorKind::CompilationFailed),
            (500, ErrorKind::InvalidKernel),
            (701, ErrorKind::ResourceExhausted),
            (702, ErrorKind::DeviceLost),
            (801, ErrorKind::Unsupported),
            (999, ErrorKind::DriverError),
        ] {
            assert_eq!(kind(code), expected, "{code}");
        }
        assert!(is_sticky(700) && is_sticky(719) && !is_sticky(701) && !is_sticky(2));
    }
}
