//! Kernels: MSL compiled at load, pipelines made and kept for what launches need.

use super::arguments::{Argument, Slot, overlap, slots};
use super::device::Inner;
use super::error::{error, failure};
use super::memory::buffer_of;
use super::queue::ComputeEncoder;
use crate::gpu::buffer::Buffer;
use crate::gpu::device::{DeviceKernel, Dispatch, Serial};
use crate::gpu::error::{ErrorKind, GpuResult};
use magpie_types::kernel::{BlobCode, BufferParam, KernelBlob};
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::{NSDictionary, NSObject, NSString, ns_string};
use objc2_metal::{
    MTLCompileOptions, MTLComputeCommandEncoder, MTLComputePipelineDescriptor,
    MTLComputePipelineState, MTLDevice, MTLFunction, MTLLibrary, MTLPipelineOption, MTLSize,
};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

type Pipeline = ProtocolObject<dyn MTLComputePipelineState>;
type Function = ProtocolObject<dyn MTLFunction>;

/// What makes code differ between launches.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Variant {
    /// Without bounds checks.
    unchecked: bool,
    /// For arguments that share memory.
    aliased: bool,
    /// Invocations of a workgroup, for which registers are assigned.
    threads: usize,
}

/// A kernel that a device has taken.
pub(super) struct MetalKernel {
    inner: Arc<Inner>,
    name: Arc<str>,
    entry: String,
    checked: String,
    unchecked: Option<String>,
    buffers: Vec<BufferParam>,
    slots: Vec<Slot>,
    made: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    functions: Vec<((bool, bool), Retained<Function>)>,
    pipelines: Vec<(Variant, Retained<Pipeline>)>,
}

impl MetalKernel {
    /// Compiles the bodies of a blob.
    pub(super) fn new(inner: &Arc<Inner>, name: &str, blob: &KernelBlob) -> GpuResult<MetalKernel> {
        let kernel = MetalKernel {
            inner: Arc::clone(inner),
            name: Arc::from(name),
            entry: blob.layout.entry.clone(),
            checked: source(name, &blob.code)?,
            unchecked: blob.unchecked.as_ref().map(|code| source(name, code)).transpose()?,
            buffers: blob.layout.buffers().cloned().collect(),
            slots: slots(&blob.layout),
            made: Mutex::default(),
        };
        // What is wrong with the source shows now, not at the first launch.
        let threads = blob.layout.workgroup.iter().map(|&n| n as usize).product();
        kernel.pipeline(Variant { unchecked: false, aliased: false, threads })?;
        Ok(kernel)
    }

    /// The pipeline of a variant, made when it is first asked for.
    fn pipeline(&self, variant: Variant) -> GpuResult<Retained<Pipeline>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pipeline)) = made.pipelines.iter().find(|(v, _)| *v == variant) {
            return Ok(pipeline.clone());
        }
        let function = autoreleasepool(|_| self.function(&mut made, variant))?;
        let pipeline = autoreleasepool(|_| self.make_pipeline(&function, variant.threads))?;
        made.pipelines.push((variant, pipeline.clone()));
        Ok(pipeline)
    }

    fn what(&self, what: &str) -> String {
        format!("{what} kernel `{}` for {}", self.name, self.inner.label())
    }

    fn function(&self, made: &mut Made, variant: Variant) -> GpuResult<Retained<Function>> {
        let key = (variant.unchecked, variant.aliased);
        if let Some((_, function)) = made.functions.iter().find(|(k, _)| *k == key) {
            return Ok(function.clone());
        }
        let source = match &self.unchecked {
            Some(source) if variant.unchecked => source,
            _ => &self.checked,
        };
        let options = MTLCompileOptions::new();
        // The newer `mathMode` does not exist before macOS 15.
        #[allow(deprecated)]
        options.setFastMathEnabled(false);
        if variant.aliased {
            let value: &NSObject = ns_string!("volatile");
            let macros = NSDictionary::from_slices(&[ns_string!("MAY_ALIAS")], &[value]);
            // SAFETY: the keys are strings and so is the value.
            unsafe { options.setPreprocessorMacros(Some(&macros)) };
        }
        let device = self.inner.device();
        let source = NSString::from_str(source);
        let library = device.newLibraryWithSource_options_error(&source, Some(&options));
        let library = library.map_err(|reported| {
            failure(ErrorKind::CompilationFailed, &self.what("cannot compile"), &reported)
        })?;
        let function = library.newFunctionWithName(&NSString::from_str(&self.entry));
        let function = function.ok_or_else(|| {
            let message = format!("kernel `{}`: its source has no `{}`", self.name, self.entry);
            error(ErrorKind::InvalidKernel, message)
        })?;
        made.functions.push((key, function.clone()));
        Ok(function)
    }

    fn make_pipeline(&self, function: &Function, threads: usize) -> GpuResult<Retained<Pipeline>> {
        let descriptor = MTLComputePipelineDescriptor::new();
        descriptor.setComputeFunction(Some(function));
        descriptor.setMaxTotalThreadsPerThreadgroup(threads);
        let device = self.inner.device();
        let pipeline = device.newComputePipelineStateWithDescriptor_options_reflection_error(
            &descriptor,
            MTLPipelineOption::None,
            None,
        );
        let pipeline = pipeline.map_err(|reported| {
            failure(
                ErrorKind::CompilationFailed,
                &self.what("cannot make a pipeline of"),
                &reported,
            )
        })?;
        let most = pipeline.maxTotalThreadsPerThreadgroup();
        if threads > most {
            let message = format!(
                "kernel `{}`: a workgroup of {threads} invocations; {} runs {most} of it at most",
                self.name,
                self.inner.label()
            );
            return Err(error(ErrorKind::ResourceExhausted, message));
        }
        Ok(pipeline)
    }

    fn encode(&self, encoder: &ComputeEncoder, pipeline: &Pipeline, dispatch: &Dispatch<'_>) {
        encoder.setComputePipelineState(pipeline);
        for (param, buffer) in self.buffers.iter().zip(dispatch.buffers) {
            let memory = buffer.memory();
            let offset = memory.offset as usize;
            // SAFETY: the slot takes a buffer, and the offset lies in it.
            unsafe {
                encoder.setBuffer_offset_atIndex(
                    Some(buffer_of(memory)),
                    offset,
                    param.binding as usize,
                );
            }
        }
        for slot in &self.slots {
            let Some(bytes) = dispatch.scalars.get(slot.bytes.clone()) else { continue };
            // SAFETY: Metal copies the bytes in the call.
            unsafe {
                encoder.setBytes_length_atIndex(
                    NonNull::from(bytes).cast(),
                    bytes.len(),
                    slot.index,
                );
            }
        }
        let size = |[x, y, z]: [u32; 3]| MTLSize {
            width: x as usize,
            height: y as usize,
            depth: z as usize,
        };
        encoder
            .dispatchThreadgroups_threadsPerThreadgroup(size(dispatch.grid), size(dispatch.block));
    }
}

fn source(name: &str, code: &BlobCode) -> GpuResult<String> {
    let text = match code {
        BlobCode::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        BlobCode::Host(_) => None,
    };
    text.map(str::to_string).ok_or_else(|| {
        let message = format!("kernel `{name}`: its Metal blob is no text");
        error(ErrorKind::InvalidKernel, message)
    })
}

impl DeviceKernel for MetalKernel {
    fn launch(&self, dispatch: &Dispatch<'_>) -> GpuResult<Serial> {
        let arguments =
            self.buffers.iter().zip(dispatch.buffers).map(|(param, buffer): (_, &Buffer)| {
                let memory = buffer.memory();
                Argument {
                    handle: memory.handle,
                    offset: memory.offset,
                    bytes: buffer.bound_bytes(),
                    writes: param.writes,
                }
            });
        let variant = Variant {
            unchecked: dispatch.unchecked && self.unchecked.is_some(),
            aliased: overlap(arguments),
            threads: dispatch.block.iter().map(|&n| n as usize).product(),
        };
        let pipeline = self.pipeline(variant)?;
        let mut queue = self.inner.queue();
        let serial = queue.launch(&self.name, dispatch.timing, dispatch.blocking, |encoder| {
            self.encode(encoder, &pipeline, dispatch);
        })?;
        for buffer in dispatch.buffers {
            buffer.memory().last_use.store(serial, Ordering::Relaxed);
        }
        Ok(Serial(serial))
    }
}
