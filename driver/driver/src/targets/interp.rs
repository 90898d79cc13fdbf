//! Kernels in the reference interpreter.

use super::cpu::RULES;
use crate::kernels::Kernels;
use magpie_gpu::layout::compute_layout;
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::FnId;
use magpie_rt::gpu::{ErrorKind, ExecutorLaunch, GpuError, GpuResult, KernelExecutor};
use magpie_types::kernel::{BlobCode, GpuBackend, KernelBlob, ParamLayout};
use std::sync::Arc;

/// A blob without code: [`Interpreter`] has the kernels themselves.
pub(super) fn compile(kernels: &Kernels, id: FnId) -> KernelBlob {
    let layout = compute_layout(kernels.func(id), &kernels.module.types, &RULES);
    let code = BlobCode::Bytes(Vec::new());
    KernelBlob { backend: GpuBackend::Interp, layout, code, unchecked: None }
}

/// Runs launches of the `interp` device.
pub(crate) struct Interpreter {
    /// `None` for a program without kernels, which may still look at devices.
    pub(crate) kernels: Option<Arc<Kernels>>,
}

impl KernelExecutor for Interpreter {
    fn launch(&self, launch: &ExecutorLaunch<'_>) -> GpuResult<()> {
        let fail = |kind, message| Err(GpuError::new(kind, GpuBackend::Interp.name(), message));
        let kernels = self.kernels.as_deref();
        let found = kernels.and_then(|kernels| Some((kernels, kernels.by_hash(launch.kernel)?)));
        let Some((kernels, id)) = found else {
            let message = format!("no kernel with hash {:#018x}", launch.kernel);
            return fail(ErrorKind::InvalidKernel, message);
        };
        let (mut buffers, mut numbers) = (Vec::new(), Vec::new());
        for (n, buffer) in launch.buffers.iter().enumerate() {
            // Two arguments may be one buffer; it must not be borrowed twice.
            let first = launch.buffers[..n].iter().position(|other| other.data == buffer.data);
            match first {
                Some(first) => numbers.push(numbers[first]),
                None => {
                    numbers.push(buffers.len());
                    buffers.push(launch_buffer(launch, n));
                }
            }
        }
        let argument = |param: &ParamLayout| match param {
            ParamLayout::Buffer(buffer) => Argument::Buffer(numbers[buffer.index as usize]),
            ParamLayout::Scalar { offset, size, .. } => {
                let start = *offset as usize;
                Argument::Scalar(launch.scalars[start..start + *size as usize].to_vec())
            }
        };
        let arguments: Vec<Argument> = launch.layout.params.iter().map(argument).collect();
        let module = &kernels.module;
        let size = Launch::new(launch.grid, launch.block);
        let mut print = |line: &str| magpie_rt::io::print_line(line);
        run_kernel(module, id, size, &arguments, &mut buffers, &mut print).or_else(|fault| {
            let place = kernels.sources.describe(fault.span);
            let place = place.map_or_else(String::new, |place| format!("{place}: "));
            let message = format!("{place}kernel `{}`: {}", kernels.name(id), fault.message);
            fail(ErrorKind::LaunchFailed, message)
        })
    }
}

/// The memory of a buffer argument.
fn launch_buffer<'a>(launch: &ExecutorLaunch<'a>, n: usize) -> Buffer<'a> {
    let buffer = launch.buffers[n];
    let stride = launch.layout.buffers().nth(n).map_or(0, |b| b.host_stride as usize);
    if buffer.data.is_null() {
        return Buffer { bytes: &mut [] };
    }
    // SAFETY: the runtime passes `len` elements of the layout's stride that nothing else touches
    // during the launch, and the caller borrows each buffer once.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(buffer.data, buffer.len as usize * stride) };
    Buffer { bytes }
}
