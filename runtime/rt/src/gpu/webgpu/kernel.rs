//! Kernels: WGSL modules as pipelines, and their launches.

use super::api::{
    Api, BufferBinding, Chained, GroupDescriptor, GroupEntry, GroupLayoutDescriptor, LayoutEntry,
    Object, PipelineDescriptor, PipelineLayoutDescriptor, SHADER_SOURCE_WGSL, STAGE_COMPUTE,
    ShaderDescriptor, ShaderSource, StringView, binding, usage,
};
use super::core::{Batch, Core};
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

/// How many launches of a batch have scalars of their own.
const SLOTS: u32 = 64;

/// A kernel that the library has taken.
pub(super) struct WebGpuKernel {
    core: Arc<Core>,
    name: String,
    buffers: Vec<BufferParam>,
    uniform: Option<Uniform>,
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

/// The uniform block: one slot for each launch of a batch.
#[derive(Clone, Copy)]
struct Uniform {
    binding: u32,
    block: Object,
    /// Bytes of the block.
    size: u64,
    /// Bytes from one slot to the next.
    stride: u32,
}

/// Arguments that were bound before.
#[derive(Default)]
struct Groups {
    /// The batch that slots of the uniform block are taken by, and how many.
    batch: Serial,
    slots: u32,
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
                let stride = layout.block_size.next_multiple_of(core.uniform_alignment);
                let bytes = u64::from(stride) * u64::from(SLOTS);
                let block = create_buffer(core, bytes, usage::UNIFORM | usage::COPY_DST)?;
                Some(Uniform { binding, block, size: u64::from(layout.block_size), stride })
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
        let entry = |binding, kind, dynamic_offset| LayoutEntry {
            next: ptr::null(),
            binding,
            visibility: STAGE_COMPUTE,
            array_size: 0,
            buffer: BufferBinding { next: ptr::null(), kind, dynamic_offset, min_size: 0 },
            sampler: [0; 2],
            texture: [0; 3],
            storage_texture: [0; 3],
        };
        let storage = |b: &BufferParam| match b.writes {
            true => entry(b.binding, binding::STORAGE, 0),
            false => entry(b.binding, binding::READ_ONLY_STORAGE, 0),
        };
        let mut entries: Vec<LayoutEntry> = self.buffers.iter().map(storage).collect();
        entries.extend(self.uniform.map(|u| entry(u.binding, binding::UNIFORM, 1)));
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
        groups.entries.extend(self.uniform.map(|u| entry(u.binding, u.block, u.size)));
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

    /// The bind group for the arguments of a launch; error scopes are around a new one.
    fn group(&self, groups: &mut Groups, dispatch: &Dispatch<'_>) -> GpuResult<Object> {
        if let Some(group) = self.known_group(groups, dispatch) {
            self.core.check_alive()?;
            return Ok(group);
        }
        let what = format!("launch of `{}` on {}", self.name, self.core.label);
        let group = self
            .core
            .scoped(&what, ErrorKind::LaunchFailed, |api| self.new_group(api, groups, dispatch))?;
        self.remember(groups, dispatch, group);
        Ok(group)
    }

    /// Records a launch into a batch.
    fn record(
        &self,
        batch: &mut Option<Batch>,
        pipeline: Object,
        dispatch: &Dispatch<'_>,
    ) -> GpuResult<Serial> {
        let core = &self.core;
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let group = self.group(&mut groups, dispatch)?;
        if groups.slots == SLOTS && batch.as_ref().is_some_and(|b| b.serial == groups.batch) {
            core.flush(batch, true)?;
        }
        let open = core.open_batch(batch);
        if groups.batch != open.serial {
            (groups.batch, groups.slots) = (open.serial, 0);
        }
        let ([x, y, z], api) = (dispatch.grid, core.api());
        let (mut offset, mut offsets) = (0, 0);
        // SAFETY: all objects are valid. The slot of the block is written behind everything that was
        // submitted before, and in front of this batch, which uses it once.
        unsafe {
            if let Some(uniform) = self.uniform {
                (offset, offsets) = (groups.slots * uniform.stride, 1);
                groups.slots += 1;
                let (data, size) = (dispatch.scalars.as_ptr().cast(), dispatch.scalars.len());
                (api.write_buffer)(core.queue, uniform.block, u64::from(offset), data, size);
            }
            (api.pass_pipeline)(open.pass, pipeline);
            (api.pass_group)(open.pass, 0, group, offsets, &offset);
            (api.pass_dispatch)(open.pass, x, y, z);
        }
        open.launches += 1;
        for buffer in dispatch.buffers {
            buffer.memory().last_use.fetch_max(open.serial.0, Ordering::Relaxed);
        }
        Ok(open.serial)
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
        let mut batch = core.record();
        let Some(token) = dispatch.timing else {
            let serial = self.record(&mut batch, pipeline, dispatch)?;
            core.flush(&mut batch, dispatch.blocking)?;
            return Ok(serial);
        };
        // Measured by the host, alone on the device.
        core.flush(&mut batch, true)?;
        core.wait(core.newest(), None)?;
        let start_ns = now_ns();
        let serial = self.record(&mut batch, pipeline, dispatch)?;
        core.flush(&mut batch, true)?;
        core.wait(serial, None)?;
        let timing = Timing { token, start_ns, end_ns: now_ns() };
        self.timings.lock().unwrap_or_else(PoisonError::into_inner).push(timing);
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
        release(self.uniform.map_or(ptr::null_mut(), |u| u.block), api.buffer_release);
    }
}
