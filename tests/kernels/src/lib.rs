//! Comparisons of a back end for kernels with the reference interpreter, for the tests of each.
//!
//! A [`Subject`] is a back end with a target, a checker of its code, and a device when there is
//! one. Without a device, kernels are compiled and checked only.

pub mod accuracy;
mod device;
pub mod files;
pub mod graphs;
pub mod ops;
pub mod random;
mod tool;

pub use device::{Gpu, Translate, narrow, widen};
#[cfg(unix)]
pub use tool::write_script;
pub use tool::{run_tool, skip};

use magpie_gpu::compile::BodyCompiler;
use magpie_types::kernel::{BlobCode, KernelBlob};

/// A back end under test.
pub struct Subject<'a, C> {
    /// How the target is called in messages.
    pub name: String,
    /// The back end with its target.
    pub compiler: C,
    /// Panics when a tool refuses the code; gets what the code is of.
    pub validate: &'a dyn Fn(&str, &[u8]),
    /// Where kernels are run.
    pub gpu: Option<&'a Gpu>,
}

impl<C: BodyCompiler> Subject<'_, C> {
    /// Has the code of a blob checked.
    fn check(&self, what: &str, blob: &KernelBlob) {
        let what = format!("{what} for {}", self.name);
        for code in std::iter::once(&blob.code).chain(&blob.unchecked) {
            (self.validate)(&what, bytes(code));
        }
    }

    /// Invocations of a subgroup of the device.
    fn subgroup_size(&self) -> u32 {
        self.gpu.map_or(32, Gpu::subgroup_size)
    }
}

/// The bytes of a blob's code.
pub fn bytes(code: &BlobCode) -> &[u8] {
    match code {
        BlobCode::Bytes(bytes) => bytes,
        BlobCode::Host(_) => panic!("a host kernel"),
    }
}
