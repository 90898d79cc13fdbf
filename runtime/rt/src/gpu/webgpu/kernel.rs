//! Kernels: WGSL modules as pipelines, and their launches.

use super::api::{
    Api, BufferBinding, Chained, GroupDescriptor, GroupEntry, GroupLayoutDescriptor, LayoutEntry,
    Object, PipelineDescriptor, PipelineLayoutDescriptor, SHADER_SOURCE_WGSL, STAGE_COMPUTE,
    ShaderDescriptor, ShaderSource, StringView, binding, usage,
};
use super::core::Core;
use super::device::create_buffer;
use super::error::error;
use crate::gpu::clock::now_ns;
use crate::gpu::device::{DeviceKernel, Dispatch, Serial, Timing};
use crate::gpu::error::{ErrorKind, GpuResult};
use magpie_types::kernel::{BlobCode, BufferParam, KernelBlob, KernelLayout, ScalarTransport};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// How many sets of arguments are remembered.
const GROUPS: usize = 8;

/// A kernel that the library has taken.
pub(super) struct WebGpuKernel {
    core: Arc<Core>,
    name: String,
    buffers: Vec<BufferParam>,
    /// The uniform block and its binding.
    uniform: Option<(u32, Object)>,
    group_layout: Object,
    pipeline_layout: Object,
    checked: Object,
    unchecked: Object,
    groups: Mutex<Groups>,
    timings: Arc<Mutex<Vec<Timing>>>,
}

// SAFETY: the library's objects may be used from any thread.
unsafe impl Send for WebGpuKernel {}
// SAFETY: as above.
unsafe impl Sync for WebGpuKernel {}

/// Arguments that were bound before.
#[derive(Default)]
struct Groups {
    /// The numbers of the buffers, and the bind group.
    known: Vec<(Vec<u64>, Object)>,
    /// Which one is replaced next.
    next: usize,
    entries: Vec<GroupEntry>,
}

/// The dialect of wgpu-native: its compiler does not know the lines that browsers want in front of
/// subgroup operations.
fn native_dialect(text: &str) -> String {
    let is_known = |line: &&str| {
        !line.starts_with("enable subgroups;") && !line.starts_with("diagnostic(off, subgroup")
    };
    text.lines().filter(is_known).flat_map(|line| [line, "\n"]).collect()
}

impl WebGpuKernel {
    pub(super) fn load(
        core: &Arc<Core>,
        timings: Arc<Mutex<Vec<Timing>>>,
        name: &str,
        blob: &KernelBlob,
    ) -> GpuResult<WebGpuKernel> {
        let layout = &blob.layout;
        let _turn = core.record();
        let mut kernel = WebGpuKernel {
            core: Arc::clone(core),
            name: name.to_string(),
            buffers: layout.buffers().cloned().collect(),
            uniform: None,
            group_layout: ptr::null_mut(),
            pipeline_layout: ptr::null_mut(),
            checked: ptr::null_mut(),
            unchecked: ptr::null_mut(),
            groups: Mutex::default(),
            timings,
        };
        kernel.uniform = match layout.transport {
            ScalarTransport::None => None,
            ScalarTransport::Uniform { binding } => {
                let size = u64::from(layout.block_size);
                let block = create_buffer(core, size, usage::UNIFORM | usage::COPY_DST)?;
                Some((binding, block))
            }
            ScalarTransport::PushConstants | ScalarTransport::Arguments => {
                return Err(kernel.invalid("its scalars are not in a uniform block"));
            }
        };
        kernel.create_layouts()?;
        kernel.checked = kernel.create_pipeline(layout, &blob.code)?;
        if let Some(code) = &blob.unchecked {
            kernel.unchecked = kernel.create_pipeline(layout, code)?;
        }
        Ok(kernel)
    }

    fn invalid(&self, why: &str) -> crate::gpu::error::GpuError {
        error(ErrorKind::InvalidKernel, format!("kernel `{}`: {why}", self.name))
    }

    fn create_layouts(&mut self) -> GpuResult<()> {
        let entry = |binding, kind| LayoutEntry {
            next: ptr::null(),
            binding,
            visibility: STAGE_COMPUTE,
            array_size: 0,
            buffer: BufferBinding { next: ptr::null(), kind, dynamic_offset: 0, min_size: 0 },
            sampler: [0; 2],
            texture: [0; 3],
            storage_texture: [0; 3],
        };
        let storage = |b: &BufferParam| match b.writes {
            true => entry(b.binding, binding::STORAGE),
            false => entry(b.binding, binding::READ_ONLY_STORAGE),
        };
        let mut entries: Vec<LayoutEntry> = self.buffers.iter().map(storage).collect();
        entries.extend(self.uniform.map(|(at, _)| entry(at, binding::UNIFORM)));
        let mut bindings: Vec<u32> = entries.iter().map(|e| e.binding).collect();
        bindings.sort_unstable();
        if bindings.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(self.invalid("two parameters have one binding"));
        }
        let groups = GroupLayoutDescriptor {
            next: ptr::null(),
            label: StringView::NONE,
            count: entries.len(),
            entries: entries.as_ptr(),
        };
        let what = format!("kernel `{}` on {}: bindings", self.name, self.core.label);
        let device = self.core.device;
        let (group_layout, pipeline_layout) =
            self.core.scoped(&what, ErrorKind::ResourceExhausted, |api| {
                // SAFETY: device and descriptors are valid; the library copies what it needs.
                unsafe {
                    let group_layout = (api.create_group_layout)(device, &groups);
                    let descriptor = PipelineLayoutDescriptor {
                        next: ptr::null(),
                        label: StringView::NONE,
                        count: 1,
                        layouts: &group_layout,
                        immediate_bytes: 0,
                    };
                    (group_layout, (api.create_pipeline_layout)(device, &descriptor))
                }
            })?;
        (self.group_layout, self.pipeline_layout) = (group_layout, pipeline_layout);
        Ok(())
    }

    fn create_pipeline(&self, layout: &KernelLayout, code: &BlobCode) -> GpuResult<Object> {
        let BlobCode::Bytes(bytes) = code else {
            return Err(self.invalid("it is a host function"));
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(self.invalid("its WGSL is not text"));
        };
        let text = native_dialect(text);
        let source = ShaderSource {
            chain: Chained { next: ptr::null(), kind: SHADER_SOURCE_WGSL },
            code: StringView::of(&text),
        };
        let descriptor =
            ShaderDescriptor { next: (&raw const source).cast(), label: StringView::NONE };
        let device = self.core.device;
        let what = format!("compile kernel `{}` for {}", self.name, self.core.label);
        let module = self.core.scoped(&what, ErrorKind::CompilationFailed, |api| {
            // SAFETY: device and descriptor are valid; the library copies the text.
            unsafe { (api.create_shader)(device, &descriptor) }
        })?;
        let descriptor = PipelineDescriptor {
            next: ptr::null(),
            label: StringView::NONE,
            layout: self.pipeline_layout,
            stage_next: ptr::null(),
            module,
            entry: StringView::of(&layout.entry),
            constant_count: 0,
            constants: ptr::null(),
        };
        let pipeline = self.core.scoped(&what, ErrorKind::CompilationFailed, |api| {
            // SAFETY: device and descriptor are valid.
            unsafe { (api.create_pipeline)(device, &descriptor) }
        });
        // SAFETY: the module is ours, and the pipeline has what it needs of it.
        unsafe { (self.core.api().shader_release)(module) };
        pipeline
    }

    /// Refuses a buffer that is bound twice when one of the parameters is written.
    fn check_aliases(&self, dispatch: &Dispatch<'_>) -> GpuResult<()> {
        for (n, a) in self.buffers.iter().enumerate() {
            for (m, b) in self.buffers.iter().enumerate().skip(n + 1) {
                let same = dispatch.buffers[n].memory().slot == dispatch.buffers[m].memory().slot;
                if same && (a.writes || b.writes) {
                    let why = format!(
                        "launch of `{}` on {}: buffers {n} and {m} are one, and the kernel writes \
                         to it; WebGPU does not allow that",
                        self.name, self.core.label
                    );
                    return Err(error(ErrorKind::ValidationFailed, why));
                }
            }
        }
        Ok(())
    }

    /// The bind group of arguments that were bound before.
    fn known_group(&self, groups: &Groups, dispatch: &Dispatch<'_>) -> Option<Object> {
        let ids = || dispatch.buffers.iter().map(|b| b.memory().slot);
        let known = groups.known.iter().find(|(known, _)| known.iter().copied().eq(ids()));
        known.map(|&(_, group)| group)
    }

    /// Makes a bind group for the arguments of a launch.
    fn new_group(&self, api: &Api, groups: &mut Groups, dispatch: &Dispatch<'_>) -> Object {
        let entry = |binding, buffer, size| GroupEntry {
            next: ptr::null(),
            binding,
            buffer,
            offset: 0,
            size,
            sampler: ptr::null_mut(),
            texture: ptr::null_mut(),
        };
        groups.entries.clear();
        let bound = dispatch.buffers.iter().zip(&self.buffers).map(|(buffer, param)| {
            let memory = buffer.memory();
            // The memory of an empty buffer holds one element.
            let size = buffer.bound_bytes().max(u64::from(param.device_stride));
            let size = size.next_multiple_of(4).min(memory.size);
            entry(param.binding, memory.handle as usize as Object, size)
        });
        groups.entries.extend(bound);
        if let Some((binding, block)) = self.uniform {
            // All of it.
            groups.entries.push(entry(binding, block, u64::MAX));
        }
        let descriptor = GroupDescriptor {
            next: ptr::null(),
            label: StringView::NONE,
            layout: self.group_layout,
            count: groups.entries.len(),
            entries: groups.entries.as_ptr(),
        };
        // SAFETY: device and descriptor are valid; the library copies the entries.
        unsafe { (api.create_group)(self.core.device, &descriptor) }
    }

    /// Keeps a bind group that works.
    fn remember(&self, groups: &mut Groups, dispatch: &Dispatch<'_>, group: Object) {
        let ids = dispatch.buffers.iter().map(|b| b.memory().slot).collect();
        if groups.known.len() < GROUPS {
            groups.known.push((ids, group));
            return;
        }
        let old = std::mem::replace(&mut groups.known[groups.next], (ids, group));
        groups.next = (groups.next + 1) % GROUPS;
        // SAFETY: the group is ours; commands that use it have references of their own.
        unsafe { (self.core.api().group_release)(old.1) };
    }

    /// Records a launch.
    fn record(
        &self,
        api: &Api,
        pipeline: Object,
        group: Object,
        dispatch: &Dispatch<'_>,
    ) -> Object {
        let ([x, y, z], core) = (dispatch.grid, &self.core);
        // SAFETY: all objects are valid; pass and encoder are used here only. The block is written
        // behind everything that was submitted before.
        unsafe {
            if let Some((_, block)) = self.uniform {
                let scalars = dispatch.scalars;
                let (data, size) = (scalars.as_ptr().cast(), scalars.len());
                (api.write_buffer)(core.queue, block, 0, data, size);
            }
            let encoder = (api.create_encoder)(core.device, ptr::null());
            let pass = (api.begin_pass)(encoder, ptr::null());
            (api.pass_pipeline)(pass, pipeline);
            (api.pass_group)(pass, 0, group, 0, ptr::null());
            (api.pass_dispatch)(pass, x, y, z);
            (api.pass_end)(pass);
            (api.pass_release)(pass);
            let commands = (api.encoder_finish)(encoder, ptr::null());
            (api.encoder_release)(encoder);
            commands
        }
    }

    /// Records a launch, with error scopes around what was not done before.
    fn commands(&self, pipeline: Object, dispatch: &Dispatch<'_>) -> GpuResult<Object> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let core = &self.core;
        if let Some(group) = self.known_group(&groups, dispatch) {
            core.check_alive()?;
            return Ok(self.record(core.api(), pipeline, group, dispatch));
        }
        let what = format!("launch of `{}` on {}", self.name, core.label);
        let recorded = core.scoped(&what, ErrorKind::LaunchFailed, |api| {
            let group = self.new_group(api, &mut groups, dispatch);
            (group, self.record(api, pipeline, group, dispatch))
        });
        let (group, commands) = recorded?;
        self.remember(&mut groups, dispatch, group);
        Ok(commands)
    }
}

impl DeviceKernel for WebGpuKernel {
    fn launch(&self, dispatch: &Dispatch<'_>) -> GpuResult<Serial> {
        self.check_aliases(dispatch)?;
        let pipeline = match dispatch.unchecked && !self.unchecked.is_null() {
            true => self.unchecked,
            false => self.checked,
        };
        let core = &self.core;
        let _turn = core.record();
        let commands = self.commands(pipeline, dispatch)?;
        if let Some(token) = dispatch.timing {
            // Measured by the host, alone on the device.
            core.wait(core.newest(), None)?;
            let start_ns = now_ns();
            let serial = core.submit(commands);
            core.wait(serial, None)?;
            let timing = Timing { token, start_ns, end_ns: now_ns() };
            self.timings.lock().unwrap_or_else(PoisonError::into_inner).push(timing);
            return Ok(serial);
        }
        let serial = core.submit(commands);
        for buffer in dispatch.buffers {
            buffer.memory().last_use.fetch_max(serial.0, Ordering::Relaxed);
        }
        Ok(serial)
    }
}

impl Drop for WebGpuKernel {
    fn drop(&mut self) {
        let groups = std::mem::take(&mut self.groups);
        let groups = groups.into_inner().unwrap_or_else(PoisonError::into_inner);
        let api = self.core.api();
        let release = |object: Object, release: unsafe extern "C" fn(Object)| {
            if !object.is_null() {
                // SAFETY: the object is ours; work that uses it has references of its own.
                unsafe { release(object) };
            }
        };
        groups.known.iter().for_each(|&(_, group)| release(group, api.group_release));
        release(self.checked, api.pipeline_release);
        release(self.unchecked, api.pipeline_release);
        release(self.pipeline_layout, api.pipeline_layout_release);
        release(self.group_layout, api.group_layout_release);
        release(self.uniform.map_or(ptr::null_mut(), |u| u.1), api.buffer_release);
    }
}
