//! The driver over a library of our own that is no device: it runs work on the host as late as a
//! device may, checks every call, and fails those it is told to (`fake_driver`).

mod allocations;
mod cache;
mod cuda;
mod driver;
mod failures;
mod fake;
mod libraries;

use super::{StreamDriver, StreamOptions, Vendor};
use crate::gpu::runtime::Runtime;
use crate::gpu::tests::conformance::Subject;
use crate::gpu::tests::support::{EMPTY, NEXT, SCALE, SPIN, only, signature};
use fake::Fake;
use magpie_types::kernel::{
    BlobCode, DeviceFeatures, HiddenLength, KernelBlob, KernelLayout, ParamLayout, ScalarTransport,
};

/// The layout of a kernel of `support` as CUDA and HIP take it: all lengths are told.
fn layout(kernel: u64) -> KernelLayout {
    let (entry, params) = signature(kernel);
    let is_scalar = |p: &&ParamLayout| matches!(p, ParamLayout::Scalar { .. });
    let scalars = params.iter().filter(is_scalar).count() as u32;
    let scalar_size = (scalars * 4).next_multiple_of(16);
    let hidden: Vec<HiddenLength> = (0..params.len() as u32 - scalars)
        .map(|buffer| HiddenLength { buffer, offset: scalar_size + buffer * 8, size: 8 })
        .collect();
    let block_size = (scalar_size + hidden.len() as u32 * 8).next_multiple_of(16);
    KernelLayout {
        entry: entry.to_string(),
        params,
        scalar_size,
        hidden,
        block_size,
        transport: match block_size {
            0 => ScalarTransport::None,
            _ => ScalarTransport::Arguments,
        },
        workgroup: [64, 1, 1],
        fixed_workgroup: false,
        shared_bytes: 0,
        features: DeviceFeatures::default(),
        preconditions: Vec::new(),
        prints: Vec::new(),
    }
}

/// A kernel of `support` as a text for the library.
fn blob(vendor: Vendor, kernel: u64) -> KernelBlob {
    let layout = layout(kernel);
    let head = match vendor {
        Vendor::Cuda => ".maxntid 64, 1, 1\n",
        Vendor::Hip => "\x7fELF",
    };
    // Machine code says its own length; this one ends with NUL.
    let code = BlobCode::Bytes(format!("{head}kernel {}\n\0", layout.entry).into_bytes());
    KernelBlob { backend: vendor.driver().backend().unwrap(), layout, code, unchecked: None }
}

/// A runtime with all kernels on a device of the library.
fn runtime(fake: &Fake, vendor: Vendor, options: StreamOptions) -> Runtime {
    let options = StreamOptions { library: Some(fake.path().to_path_buf()), ..options };
    let driver = StreamDriver::new(vendor, options);
    let runtime = Runtime::with_drivers(only(vendor.driver()), vec![Box::new(driver)]);
    for kernel in [SCALE, NEXT, EMPTY, SPIN] {
        runtime.register_kernel(kernel, signature(kernel).0, vec![blob(vendor, kernel)], None);
    }
    runtime
}

/// A device to test.
fn subject(fake: &Fake, vendor: Vendor, options: StreamOptions) -> Subject {
    Subject::new(runtime(fake, vendor, options))
}

/// Both interfaces.
const VENDORS: [Vendor; 2] = [Vendor::Cuda, Vendor::Hip];
