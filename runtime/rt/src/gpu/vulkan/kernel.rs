//! A kernel on a Vulkan device: modules, layouts, and a pipeline for each workgroup size.

use super::device::Inner;
use super::error::{compile_failure, error};
use super::pipeline_cache::PipelineCache;
use super::queue::{Access, Bound};
use super::{adapter::MAX_BUFFERS, core::Core, spirv};
use crate::gpu::device::{DeviceKernel, Dispatch, Serial};
use crate::gpu::error::{ErrorKind, GpuResult};
use ash::vk;
use magpie_types::kernel::{BlobCode, BufferParam, KernelBlob, KernelLayout, ScalarTransport};
use std::ffi::{CStr, CString};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A kernel that the device has taken.
pub(super) struct VulkanKernel {
    inner: Arc<Inner>,
    name: Arc<str>,
    buffers: Vec<BufferParam>,
    transport: ScalarTransport,
    objects: Objects,
    variants: Mutex<Vec<Variant>>,
    last_use: AtomicU64,
}

/// A pipeline for a workgroup size and a body.
#[derive(Clone, Copy)]
struct Variant {
    block: [u32; 3],
    unchecked: bool,
    pipeline: vk::Pipeline,
}

/// What all pipelines of a kernel share.
#[derive(Default)]
struct Objects {
    entry: CString,
    /// The checked body, then the unchecked one if there is one.
    modules: Vec<vk::ShaderModule>,
    set_layout: vk::DescriptorSetLayout,
    pipeline_layout: vk::PipelineLayout,
    template: vk::DescriptorUpdateTemplate,
    pushes: bool,
}

impl VulkanKernel {
    pub(super) fn new(
        inner: &Arc<Inner>,
        name: &str,
        blob: &KernelBlob,
    ) -> GpuResult<VulkanKernel> {
        let layout = &blob.layout;
        let code = check(inner.core(), name, blob)?;
        let mut objects = Objects::default();
        if let Err(code) = objects.make(inner.core(), layout, &code) {
            // SAFETY: nothing uses the objects.
            unsafe { objects.destroy(&inner.core().device) };
            let label = inner.core().adapter.properties.label();
            return Err(compile_failure(code, &format!("cannot load kernel `{name}` on {label}")));
        }
        if matches!(layout.transport, ScalarTransport::Uniform { .. }) {
            inner.prepare_uploads(layout.block_size as usize)?;
        }
        Ok(VulkanKernel {
            inner: Arc::clone(inner),
            name: Arc::from(name),
            buffers: layout.buffers().cloned().collect(),
            transport: layout.transport,
            objects,
            variants: Mutex::default(),
            last_use: AtomicU64::new(0),
        })
    }

    /// The pipeline for a workgroup size, made at its first use.
    fn pipeline(&self, block: [u32; 3], unchecked: bool) -> GpuResult<vk::Pipeline> {
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        let known = variants.iter().find(|v| v.block == block && v.unchecked == unchecked);
        if let Some(variant) = known {
            return Ok(variant.pipeline);
        }
        let (core, cache) = (self.inner.core(), self.inner.cache());
        let pipeline = self.objects.pipeline(core, cache, block, unchecked).map_err(|code| {
            let label = core.adapter.properties.label();
            let what = format!("cannot compile kernel `{}` for {label}", self.name);
            compile_failure(code, &what)
        })?;
        cache.note_change();
        variants.push(Variant { block, unchecked, pipeline });
        Ok(pipeline)
    }
}

impl DeviceKernel for VulkanKernel {
    fn launch(&self, dispatch: &Dispatch<'_>) -> GpuResult<Serial> {
        let pipeline = self.pipeline(dispatch.block, dispatch.unchecked)?;
        let (push_constants, uniform) = match self.transport {
            ScalarTransport::PushConstants => (dispatch.scalars, None),
            ScalarTransport::Uniform { .. } => (&[][..], Some(dispatch.scalars)),
            ScalarTransport::None | ScalarTransport::Arguments => (&[][..], None),
        };
        let bound = Bound {
            name: &self.name,
            pipeline,
            pipeline_layout: self.objects.pipeline_layout,
            set_layout: self.objects.set_layout,
            template: self.objects.template,
            pushes: self.objects.pushes,
            push_constants,
            uniform,
            grid: dispatch.grid,
            timing: dispatch.timing,
        };
        let buffers = self.buffers.iter().zip(dispatch.buffers).map(|(param, buffer)| {
            let access = Access { memory: buffer.memory(), writes: param.writes };
            (access, buffer.bound_bytes())
        });
        let mut queue = self.inner.queue()?;
        let serial = queue.launch(self.inner.core(), &bound, buffers, dispatch.blocking)?;
        self.last_use.store(serial, Ordering::Relaxed);
        Ok(Serial(serial))
    }
}

impl Drop for VulkanKernel {
    fn drop(&mut self) {
        // A device that fails to finish has nothing running any more.
        let _ = self.inner.wait_for(Serial(self.last_use.load(Ordering::Relaxed)), None);
        let variants = self.variants.get_mut().unwrap_or_else(PoisonError::into_inner);
        let device = &self.inner.core().device;
        // SAFETY: the last launch is done, and nobody else has the handles.
        unsafe {
            variants.iter().for_each(|variant| device.destroy_pipeline(variant.pipeline, None));
            self.objects.destroy(device);
        }
    }
}

/// Checks what the driver might take badly. The words of the bodies.
fn check(core: &Core, name: &str, blob: &KernelBlob) -> GpuResult<Vec<Vec<u32>>> {
    let invalid = |why: &str| {
        let label = core.adapter.properties.label();
        error(ErrorKind::InvalidKernel, format!("kernel `{name}` on {label}: {why}"))
    };
    let layout = &blob.layout;
    let mut bindings: Vec<u32> = layout.buffers().map(|b| b.binding).collect();
    if let ScalarTransport::Uniform { binding } = layout.transport {
        bindings.push(binding);
    }
    bindings.sort_unstable();
    if bindings.last().is_some_and(|&last| last > MAX_BUFFERS) {
        return Err(invalid("its binding numbers are too large"));
    }
    if bindings.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(invalid("two of its parameters have one binding"));
    }
    if layout.transport == ScalarTransport::Arguments {
        return Err(invalid("its scalars are arguments, which Vulkan has not"));
    }
    let mut words = Vec::new();
    for code in std::iter::once(&blob.code).chain(&blob.unchecked) {
        let BlobCode::Bytes(bytes) = code else { return Err(invalid("its blob is no SPIR-V")) };
        words.push(spirv::check(bytes, &layout.entry).map_err(|why| invalid(&why))?);
    }
    Ok(words)
}

impl Objects {
    /// Makes everything but the pipelines. What was made before a failure stays, for `destroy`.
    fn make(
        &mut self,
        core: &Core,
        layout: &KernelLayout,
        code: &[Vec<u32>],
    ) -> Result<(), vk::Result> {
        // A name of SPIR-V ends at its first NUL, so an entry point that was found has none.
        self.entry = CString::new(layout.entry.as_str()).unwrap_or_default();
        let device = &core.device;
        for words in code {
            let info = vk::ShaderModuleCreateInfo::default().code(words);
            // SAFETY: the words are a SPIR-V module by its structure.
            self.modules.push(unsafe { device.create_shader_module(&info, None) }?);
        }
        let storage = layout.buffers().map(|b| (b.binding, vk::DescriptorType::STORAGE_BUFFER));
        let uniform = match layout.transport {
            ScalarTransport::Uniform { binding } => {
                Some((binding, vk::DescriptorType::UNIFORM_BUFFER))
            }
            _ => None,
        };
        let descriptors: Vec<(u32, vk::DescriptorType)> = storage.chain(uniform).collect();
        self.pushes =
            core.push.is_some() && descriptors.len() as u32 <= core.adapter.max_push_descriptors;
        let bindings: Vec<_> = descriptors
            .iter()
            .map(|&(binding, ty)| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(binding)
                    .descriptor_type(ty)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let flags = match self.pushes {
            true => vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR,
            false => vk::DescriptorSetLayoutCreateFlags::empty(),
        };
        let info = vk::DescriptorSetLayoutCreateInfo::default().flags(flags).bindings(&bindings);
        // SAFETY: the bindings are distinct and within the device's limits.
        self.set_layout = unsafe { device.create_descriptor_set_layout(&info, None) }?;
        let (sets, constants) = (
            [self.set_layout],
            [vk::PushConstantRange::default()
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
                .size(layout.block_size)],
        );
        let mut info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
        if layout.transport == ScalarTransport::PushConstants {
            info = info.push_constant_ranges(&constants);
        }
        // SAFETY: the block was checked against the device's limit.
        self.pipeline_layout = unsafe { device.create_pipeline_layout(&info, None) }?;
        if !descriptors.is_empty() {
            self.template = self.new_template(device, &descriptors)?;
        }
        Ok(())
    }

    /// A template that writes descriptors from an array of `vk::DescriptorBufferInfo`.
    fn new_template(
        &self,
        device: &ash::Device,
        descriptors: &[(u32, vk::DescriptorType)],
    ) -> Result<vk::DescriptorUpdateTemplate, vk::Result> {
        const STRIDE: usize = size_of::<vk::DescriptorBufferInfo>();
        let entries: Vec<_> = descriptors
            .iter()
            .enumerate()
            .map(|(n, &(binding, ty))| {
                vk::DescriptorUpdateTemplateEntry::default()
                    .dst_binding(binding)
                    .descriptor_count(1)
                    .descriptor_type(ty)
                    .offset(n * STRIDE)
                    .stride(STRIDE)
            })
            .collect();
        let template_type = match self.pushes {
            true => vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR,
            false => vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET,
        };
        let info = vk::DescriptorUpdateTemplateCreateInfo::default()
            .descriptor_update_entries(&entries)
            .template_type(template_type)
            .descriptor_set_layout(self.set_layout)
            .pipeline_bind_point(vk::PipelineBindPoint::COMPUTE)
            .pipeline_layout(self.pipeline_layout)
            .set(0);
        // SAFETY: the entries name bindings of the layouts.
        unsafe { device.create_descriptor_update_template(&info, None) }
    }

    /// Compiles a body for a workgroup size: specialisation constants 0, 1, 2.
    fn pipeline(
        &self,
        core: &Core,
        cache: &PipelineCache,
        block: [u32; 3],
        unchecked: bool,
    ) -> Result<vk::Pipeline, vk::Result> {
        let module = self.modules[usize::from(unchecked && self.modules.len() > 1)];
        let entry = |constant: u32| {
            let (offset, size) = (constant * 4, size_of::<u32>());
            vk::SpecializationMapEntry::default().constant_id(constant).offset(offset).size(size)
        };
        let entries = [entry(0), entry(1), entry(2)];
        let sizes: [[u8; 4]; 3] = block.map(u32::to_ne_bytes);
        let specialization =
            vk::SpecializationInfo::default().map_entries(&entries).data(sizes.as_flattened());
        let name: &CStr = &self.entry;
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(name)
            .specialization_info(&specialization);
        let info =
            [vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.pipeline_layout)];
        // SAFETY: the handles are of the device; the entry point exists in the module.
        let made = unsafe { core.device.create_compute_pipelines(cache.handle(), &info, None) };
        match made {
            Ok(pipelines) => pipelines.first().copied().ok_or(vk::Result::ERROR_UNKNOWN),
            Err((pipelines, code)) => {
                for pipeline in pipelines {
                    // SAFETY: nothing uses the pipeline; a null handle is ignored.
                    unsafe { core.device.destroy_pipeline(pipeline, None) };
                }
                Err(code)
            }
        }
    }

    /// # Safety
    /// The device does not use the objects any more, and they are not destroyed twice.
    unsafe fn destroy(&self, device: &ash::Device) {
        // SAFETY: forwarded from the caller; null handles are ignored.
        unsafe {
            device.destroy_descriptor_update_template(self.template, None);
            device.destroy_pipeline_layout(self.pipeline_layout, None);
            device.destroy_descriptor_set_layout(self.set_layout, None);
            for &module in &self.modules {
                device.destroy_shader_module(module, None);
            }
        }
    }
}

// The template's entries rely on this layout.
const _: () = assert!(offset_of!(vk::DescriptorBufferInfo, buffer) == 0);
