//! What is CUDA's own: the library's names and numbers of its interface.

use super::adapter::Attributes;
use super::api::Code;
use std::ffi::c_int;

/// The library's names, the best one first.
pub(super) const LIBRARIES: &[&str] =
    if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };

/// `CU_DEVICE_ATTRIBUTE_*`.
pub(super) const ATTRIBUTES: Attributes = Attributes {
    invocations: 1,
    block: [2, 3, 4],
    grid: [5, 6, 7],
    shared: 8,
    shared_opt_in: Some(97),
    subgroup: 10,
    integrated: 18,
    pci_domain: 50,
    pci_bus: 33,
    pci_device: 34,
    capability: [75, 76],
    memory_pools: 115,
};

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`
pub(super) const MAX_DYNAMIC_SHARED: c_int = 8;

/// `CU_JIT_INPUT_PTX`
pub(super) const INPUT_PTX: c_int = 1;
/// `CU_JIT_ERROR_LOG_BUFFER`
pub(super) const ERROR_LOG: c_int = 5;
/// `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`
pub(super) const ERROR_LOG_BYTES: c_int = 6;

/// Whether a code says that there is a driver and no device: the same number in both interfaces.
pub(super) fn is_no_device(code: Code) -> bool {
    code == 100
}
