//! [`GpuError`]: what every fallible operation of a device gives back.

use std::fmt;

/// What kind of thing went wrong, numbered as the GPU specification does (section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(i32)]
pub enum ErrorKind {
    /// The device became unavailable.
    DeviceLost = 0,
    /// Device or host memory is exhausted.
    OutOfMemory = 1,
    /// A dispatch was refused or failed.
    LaunchFailed = 2,
    /// A kernel is unknown, corrupt or made for another device.
    InvalidKernel = 3,
    /// There is no such device, or its driver cannot be loaded.
    BackendUnavailable = 4,
    /// Allocation, transfer or binding of a buffer is impossible.
    BufferError = 5,
    /// A wait ran out of time.
    TimeoutExpired = 6,
    /// The device cannot do this.
    Unsupported = 7,
    /// The driver's compiler refused the kernel.
    CompilationFailed = 8,
    /// Any other failure of a driver.
    DriverError = 9,
    /// A limit on descriptors, shared memory or pipelines is exceeded.
    ResourceExhausted = 10,
    /// A validation layer reported a fault, or an argument breaks a rule of the interface.
    ValidationFailed = 11,
}

impl ErrorKind {
    /// Every kind, by number.
    pub const ALL: [ErrorKind; 12] = [
        ErrorKind::DeviceLost,
        ErrorKind::OutOfMemory,
        ErrorKind::LaunchFailed,
        ErrorKind::InvalidKernel,
        ErrorKind::BackendUnavailable,
        ErrorKind::BufferError,
        ErrorKind::TimeoutExpired,
        ErrorKind::Unsupported,
        ErrorKind::CompilationFailed,
        ErrorKind::DriverError,
        ErrorKind::ResourceExhausted,
        ErrorKind::ValidationFailed,
    ];

    /// The name of the variant of `gpu.ErrorKind`.
    pub fn name(self) -> &'static str {
        magpie_types::ERROR_KINDS[self as usize]
    }
}

/// A failed operation of the GPU runtime.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuError {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// The back end in whose driver it happened: `spv`, `cpu`, `interp`, `mock` …
    pub backend: &'static str,
    /// The operation, the sizes, the device and the way out.
    pub message: String,
    /// The driver's own code (`VkResult` …), 0 when it has none.
    pub code: i32,
}

/// The result of a GPU operation.
pub type GpuResult<T> = Result<T, GpuError>;

impl GpuError {
    /// An error without a driver's code.
    pub fn new(kind: ErrorKind, backend: &'static str, message: impl Into<String>) -> GpuError {
        GpuError { kind, backend, message: message.into(), code: 0 }
    }

    /// The same error with a driver's code.
    pub fn with_code(mut self, code: i32) -> GpuError {
        self.code = code;
        self
    }
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.kind.name(), self.backend, self.message)
    }
}

impl std::error::Error for GpuError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_numbers_and_names_of_the_type_tables() {
        for (number, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            assert_eq!(kind.name(), format!("{kind:?}"));
        }
    }
}
