//! The queue of a device: records work in batches, submits them, keeps accesses in order.
//!
//! Work is recorded into the open batch and goes out when somebody waits for it, when the batch is
//! full, or when the device has nothing to do. Serial `n` is the work of the `n`-th batch; the
//! device's timeline counts finished batches.
//!
//! Hazards: between two barriers no memory is written by one command and touched by another. Each
//! piece of memory remembers the epoch (the number of barriers recorded so far) in which it was
//! last read and written; an access that conflicts within the present epoch gets a barrier first.
//! Batches begin with a barrier against those before and end with one towards the host.

use super::batch::{Batch, MAX_LAUNCHES};
use super::core::Core;
use super::device_clock::DeviceClock;
use super::error::error;
use super::staging::{Piece, Upload};
use crate::gpu::clock::now_ns;
use crate::gpu::device::{DeviceMemory, Timing, TimingToken};
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use ash::vk::{self, Handle};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Batches that are used in turn: how far the host may run ahead of the device.
const BATCHES: usize = 8;

/// What a launch binds, besides its buffers.
pub(super) struct Bound<'a> {
    pub(super) name: &'a Arc<str>,
    pub(super) pipeline: vk::Pipeline,
    pub(super) pipeline_layout: vk::PipelineLayout,
    pub(super) set_layout: vk::DescriptorSetLayout,
    /// Writes the descriptors of `descriptors`; null when the kernel has none.
    pub(super) template: vk::DescriptorUpdateTemplate,
    /// Whether descriptors are pushed.
    pub(super) pushes: bool,
    pub(super) push_constants: &'a [u8],
    /// The contents of a uniform block, bound behind the buffers.
    pub(super) uniform: Option<&'a [u8]>,
    pub(super) grid: [u32; 3],
    pub(super) timing: Option<TimingToken>,
}

/// An access of a command to memory.
#[derive(Clone, Copy)]
pub(super) struct Access<'a> {
    pub(super) memory: &'a DeviceMemory,
    pub(super) writes: bool,
}

/// The state of recording and submission.
pub(super) struct Queue {
    handle: vk::Queue,
    batches: Vec<Batch>,
    is_open: bool,
    submitted: u64,
    /// Number of barriers recorded so far; see the module's text.
    epoch: u64,
    pub(super) upload: Option<Upload>,
    descriptors: Vec<vk::DescriptorBufferInfo>,
    /// After a fault the device is of no use any more: every call gives it back.
    fault: Option<GpuError>,
    newest_kernel: Option<Arc<str>>,
    clock: Option<DeviceClock>,
    timings: Vec<Timing>,
}

impl Queue {
    pub(super) fn new(core: &Core) -> Queue {
        // SAFETY: one queue of this family was asked for.
        let handle = unsafe { core.device.get_device_queue(core.adapter.queue_family, 0) };
        Queue {
            handle,
            batches: Vec::with_capacity(BATCHES),
            is_open: false,
            submitted: 0,
            epoch: 1,
            upload: None,
            descriptors: Vec::new(),
            fault: None,
            newest_kernel: None,
            clock: None,
            timings: Vec::new(),
        }
    }

    /// The serial of the newest recorded work.
    pub(super) fn newest(&self) -> u64 {
        self.submitted + u64::from(self.is_open)
    }

    /// Fails when the device has failed before.
    pub(super) fn check(&self) -> GpuResult<()> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// Remembers a failure after which the order of work is lost.
    pub(super) fn fail(&mut self, mut failure: GpuError) -> GpuError {
        if let Some(kernel) = &self.newest_kernel {
            failure.message = format!("{}; the newest launch was of `{kernel}`", failure.message);
        }
        self.fault.get_or_insert(failure).clone()
    }

    fn failed(&mut self, core: &Core, code: vk::Result, what: &str) -> GpuError {
        self.fail(core.failure(code, what))
    }

    fn batch(&mut self) -> &mut Batch {
        let index = self.newest() as usize % BATCHES;
        &mut self.batches[index]
    }

    /// Opens a batch if none is open; the serial of the open one.
    pub(super) fn begin(&mut self, core: &Core) -> GpuResult<u64> {
        if self.is_open {
            return Ok(self.submitted + 1);
        }
        let serial = self.submitted + 1;
        let index = serial as usize % BATCHES;
        while self.batches.len() <= index {
            let batch = Batch::new(core);
            let batch = batch.map_err(|code| core.failure(code, "cannot make a command buffer"))?;
            self.batches.push(batch);
        }
        let previous = self.batches[index].serial;
        core.wait_for(previous, u64::MAX).map_err(|failure| self.fail(failure))?;
        self.read_times(core, index)?;
        if let Err(code) = self.batches[index].begin(core, serial) {
            return Err(self.failed(core, code, "cannot begin a command buffer"));
        }
        self.is_open = true;
        self.barrier(core, vk::PipelineStageFlags2::ALL_COMMANDS);
        Ok(serial)
    }

    /// Makes all writes so far visible to everything that follows on `to`.
    fn barrier(&mut self, core: &Core, to: vk::PipelineStageFlags2) {
        self.epoch += 1;
        let barriers = [vk::MemoryBarrier2::default()
            .src_stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)
            .src_access_mask(vk::AccessFlags2::MEMORY_WRITE)
            .dst_stage_mask(to)
            .dst_access_mask(vk::AccessFlags2::MEMORY_READ | vk::AccessFlags2::MEMORY_WRITE)];
        let info = vk::DependencyInfo::default().memory_barriers(&barriers);
        let commands = self.batch().commands;
        // SAFETY: the batch is being recorded.
        unsafe { core.device.cmd_pipeline_barrier2(commands, &info) };
    }

    /// Orders the accesses of the next command after those that they conflict with.
    fn order<'a>(&mut self, core: &Core, accesses: impl Iterator<Item = Access<'a>> + Clone) {
        let epoch = self.epoch;
        let conflicts = |a: Access<'_>| {
            let written = a.memory.write_mark.load(Ordering::Relaxed) == epoch;
            written || a.writes && a.memory.read_mark.load(Ordering::Relaxed) == epoch
        };
        if accesses.clone().any(conflicts) {
            self.barrier(core, vk::PipelineStageFlags2::ALL_COMMANDS);
        }
        let serial = self.newest();
        for Access { memory, writes } in accesses {
            let mark = if writes { &memory.write_mark } else { &memory.read_mark };
            mark.store(self.epoch, Ordering::Relaxed);
            memory.last_use.store(serial, Ordering::Relaxed);
        }
    }

    /// Submits the open batch, if any.
    pub(super) fn submit(&mut self, core: &Core) -> GpuResult<()> {
        if !self.is_open {
            return Ok(());
        }
        self.barrier(core, vk::PipelineStageFlags2::HOST);
        let (commands, serial) = (self.batch().commands, self.newest());
        self.is_open = false;
        self.submitted = serial;
        let buffers = [vk::CommandBufferSubmitInfo::default().command_buffer(commands)];
        let signals = [vk::SemaphoreSubmitInfo::default()
            .semaphore(core.timeline)
            .value(serial)
            .stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)];
        let submits = [vk::SubmitInfo2::default()
            .command_buffer_infos(&buffers)
            .signal_semaphore_infos(&signals)];
        // SAFETY: the command buffer was recorded completely and belongs to the queue's family.
        let submitted = unsafe {
            core.device
                .end_command_buffer(commands)
                .and_then(|()| core.device.queue_submit2(self.handle, &submits, vk::Fence::null()))
        };
        submitted.map_err(|code| self.failed(core, code, "cannot submit work"))
    }

    /// Submits the open batch when the device has nothing else to do.
    fn submit_if_idle(&mut self, core: &Core) -> GpuResult<()> {
        if core.completed().map_err(|failure| self.fail(failure))? < self.submitted {
            return Ok(());
        }
        self.submit(core)
    }

    /// Submits work up to `serial`.
    pub(super) fn submit_up_to(&mut self, core: &Core, serial: u64) -> GpuResult<()> {
        if serial > self.submitted { self.submit(core) } else { Ok(()) }
    }

    /// Copies bytes to staging memory for the open batch, which may become another one for it.
    fn stage(&mut self, core: &Core, src: &[u8], align: u64) -> GpuResult<Piece> {
        loop {
            let serial = self.begin(core)?;
            let completed = core.completed().map_err(|failure| self.fail(failure))?;
            let Some(upload) = &mut self.upload else {
                return Err(error(ErrorKind::DriverError, "transfer without staging memory"));
            };
            upload.release(completed);
            if upload.is_too_small(src.len()) {
                if let Some(oldest) = upload.oldest() {
                    self.finish(core, oldest)?;
                    continue;
                }
                // SAFETY: the ring has no piece that a batch uses.
                unsafe { upload.grow(core, src.len()) }?;
            }
            if let Some(piece) = upload.put(src, align, serial) {
                return Ok(piece);
            }
            let Some(oldest) = upload.oldest() else {
                let message = format!("{} bytes do not fit in staging memory", src.len());
                return Err(error(ErrorKind::ResourceExhausted, message));
            };
            self.finish(core, oldest)?;
        }
    }

    /// Submits work up to `serial` and waits for it.
    fn finish(&mut self, core: &Core, serial: u64) -> GpuResult<()> {
        self.submit_up_to(core, serial)?;
        core.wait_for(serial, u64::MAX).map(drop).map_err(|failure| self.fail(failure))
    }

    /// Records a copy of host bytes to memory.
    pub(super) fn upload(
        &mut self,
        core: &Core,
        dst: &DeviceMemory,
        offset: u64,
        src: &[u8],
    ) -> GpuResult<()> {
        let piece = self.stage(core, src, 16)?;
        self.order(core, [Access { memory: dst, writes: true }].into_iter());
        let to = Piece { buffer: vk::Buffer::from_raw(dst.handle), offset: dst.offset + offset };
        self.copy_pieces(core, piece, to, src.len() as u64);
        Ok(())
    }

    /// Records a copy from memory to a piece that the host reads later, and submits it.
    pub(super) fn download(
        &mut self,
        core: &Core,
        src: &DeviceMemory,
        offset: u64,
        to: Piece,
        bytes: u64,
    ) -> GpuResult<u64> {
        let serial = self.begin(core)?;
        self.order(core, [Access { memory: src, writes: false }].into_iter());
        let from = Piece { buffer: vk::Buffer::from_raw(src.handle), offset: src.offset + offset };
        self.copy_pieces(core, from, to, bytes);
        self.submit(core)?;
        Ok(serial)
    }

    /// Records a copy between two pieces of memory.
    pub(super) fn copy(
        &mut self,
        core: &Core,
        src: &DeviceMemory,
        dst: &DeviceMemory,
        bytes: u64,
    ) -> GpuResult<()> {
        self.begin(core)?;
        let accesses =
            [Access { memory: src, writes: false }, Access { memory: dst, writes: true }];
        self.order(core, accesses.into_iter());
        let piece =
            |m: &DeviceMemory| Piece { buffer: vk::Buffer::from_raw(m.handle), offset: m.offset };
        self.copy_pieces(core, piece(src), piece(dst), bytes);
        Ok(())
    }

    fn copy_pieces(&mut self, core: &Core, from: Piece, to: Piece, bytes: u64) {
        let regions =
            [vk::BufferCopy::default().src_offset(from.offset).dst_offset(to.offset).size(bytes)];
        let commands = self.batch().commands;
        // SAFETY: both pieces have the bytes and do not overlap; the batch is being recorded.
        unsafe { core.device.cmd_copy_buffer(commands, from.buffer, to.buffer, &regions) };
    }

    /// Records the zeroing of the first `bytes` bytes, a multiple of 4.
    pub(super) fn fill_zero(
        &mut self,
        core: &Core,
        dst: &DeviceMemory,
        bytes: u64,
    ) -> GpuResult<()> {
        self.begin(core)?;
        self.order(core, [Access { memory: dst, writes: true }].into_iter());
        let (commands, buffer) = (self.batch().commands, vk::Buffer::from_raw(dst.handle));
        // SAFETY: the memory has the bytes; its offset is a multiple of 4.
        unsafe { core.device.cmd_fill_buffer(commands, buffer, dst.offset, bytes, 0) };
        Ok(())
    }

    /// Records a launch. `buffers` gives the bound range of each buffer parameter in the order of
    /// the template's entries, and how the kernel accesses it.
    pub(super) fn launch<'a>(
        &mut self,
        core: &Core,
        bound: &Bound<'_>,
        buffers: impl Iterator<Item = (Access<'a>, u64)> + Clone,
        blocking: bool,
    ) -> GpuResult<u64> {
        let measured = bound.timing.filter(|_| core.adapter.timestamp_bits > 0);
        if measured.is_some() {
            self.clock_for(core)?;
        }
        self.begin(core)?;
        if self.batch().launches >= MAX_LAUNCHES {
            self.submit(core)?;
            self.begin(core)?;
        }
        let set = self.bind(core, bound, buffers.clone())?;
        self.order(core, buffers.map(|(access, _)| access));
        if let Some(token) = measured {
            self.batch().tokens.push(token);
            self.write_time(core, false)?;
        }
        self.record(core, bound, set);
        if measured.is_some() {
            self.write_time(core, true)?;
        }
        let serial = self.newest();
        self.batch().launches += 1;
        self.newest_kernel = Some(Arc::clone(bound.name));
        if !blocking {
            self.submit_if_idle(core)?;
        }
        Ok(serial)
    }

    /// Collects the descriptors of a launch in `self.descriptors` and, where they are not pushed,
    /// writes them to a set of the open batch, which may become another one for it.
    fn bind<'a>(
        &mut self,
        core: &Core,
        bound: &Bound<'_>,
        buffers: impl Iterator<Item = (Access<'a>, u64)> + Clone,
    ) -> GpuResult<vk::DescriptorSet> {
        self.collect(core, bound, buffers.clone())?;
        if bound.pushes || self.descriptors.is_empty() {
            return Ok(vk::DescriptorSet::null());
        }
        let mut set = self.batch().descriptor_set(core, bound.set_layout);
        if let Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL) = set {
            self.submit(core)?;
            self.collect(core, bound, buffers)?;
            set = self.batch().descriptor_set(core, bound.set_layout);
        }
        let set = set.map_err(|code| core.failure(code, "cannot bind buffers"))?;
        let data = self.descriptors.as_ptr().cast();
        // SAFETY: the template was made for as many descriptors as the vector has.
        unsafe { core.device.update_descriptor_set_with_template(set, bound.template, data) };
        Ok(set)
    }

    fn collect<'a>(
        &mut self,
        core: &Core,
        bound: &Bound<'_>,
        buffers: impl Iterator<Item = (Access<'a>, u64)>,
    ) -> GpuResult<()> {
        self.begin(core)?;
        self.descriptors.clear();
        self.descriptors.extend(buffers.map(|(Access { memory, .. }, range)| {
            let buffer = vk::Buffer::from_raw(memory.handle);
            vk::DescriptorBufferInfo { buffer, offset: memory.offset, range }
        }));
        if let Some(block) = bound.uniform {
            let align = core.adapter.uniform_alignment.max(16);
            let Piece { buffer, offset } = self.stage(core, block, align)?;
            let range = block.len() as u64;
            self.descriptors.push(vk::DescriptorBufferInfo { buffer, offset, range });
        }
        Ok(())
    }

    /// Records the commands of a launch.
    fn record(&mut self, core: &Core, bound: &Bound<'_>, set: vk::DescriptorSet) {
        let commands = self.batch().commands;
        let (device, layout) = (&core.device, bound.pipeline_layout);
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: the batch is being recorded; pipeline, layout and template belong together, and
        // the template was made for as many descriptors as the vector has.
        unsafe {
            device.cmd_bind_pipeline(commands, point, bound.pipeline);
            if !self.descriptors.is_empty() {
                match &core.push {
                    Some(push) if bound.pushes => push.cmd_push_descriptor_set_with_template(
                        commands,
                        bound.template,
                        layout,
                        0,
                        self.descriptors.as_ptr().cast(),
                    ),
                    _ => device.cmd_bind_descriptor_sets(commands, point, layout, 0, &[set], &[]),
                }
            }
            if !bound.push_constants.is_empty() {
                let stage = vk::ShaderStageFlags::COMPUTE;
                device.cmd_push_constants(commands, layout, stage, 0, bound.push_constants);
            }
            let [x, y, z] = bound.grid;
            device.cmd_dispatch(commands, x, y, z);
        }
    }

    fn write_time(&mut self, core: &Core, end: bool) -> GpuResult<()> {
        let written = self.batch().write_time(core, end);
        written.map_err(|code| core.failure(code, "cannot measure a launch"))
    }

    /// Compares the device's clock with the host's before the first measured launch.
    fn clock_for(&mut self, core: &Core) -> GpuResult<()> {
        if self.clock.is_some() {
            return Ok(());
        }
        self.submit(core)?;
        // The clocks met between the two looks at the host's; the closer these are, the better.
        let close =
            |best: Option<(u64, u64, u64)>| best.is_some_and(|(_, from, to)| to - from < 100_000);
        let mut best: Option<(u64, u64, u64)> = None;
        for _ in 0..10 {
            if close(best) {
                break;
            }
            let serial = self.begin(core)?;
            self.batch().tokens.push(0);
            self.write_time(core, false)?;
            self.write_time(core, true)?;
            let index = serial as usize % BATCHES;
            let before = now_ns();
            self.submit(core)?;
            core.wait_for(serial, u64::MAX).map_err(|failure| self.fail(failure))?;
            let after = now_ns();
            let times = self.batches[index].times(core, 0);
            let [ticks, _] =
                times.map_err(|code| self.failed(core, code, "cannot read a clock"))?;
            self.batches[index].tokens.clear();
            if best.is_none_or(|(_, from, to)| after - before < to - from) {
                best = Some((ticks, before, after));
            }
        }
        if let Some((ticks, before, after)) = best {
            let (bits, period) = (core.adapter.timestamp_bits, core.adapter.timestamp_period);
            self.clock = Some(DeviceClock::new(ticks, before.midpoint(after), bits, period));
        }
        self.begin(core)?;
        Ok(())
    }

    /// Takes the measurements of a batch that is done.
    fn read_times(&mut self, core: &Core, index: usize) -> GpuResult<()> {
        let batch = &mut self.batches[index];
        let tokens = std::mem::take(&mut batch.tokens);
        for (n, &token) in tokens.iter().enumerate() {
            let times = self.batches[index].times(core, n as u32);
            let [start, end] =
                times.map_err(|code| self.failed(core, code, "cannot read a measurement"))?;
            if let Some(clock) = &self.clock {
                let (start_ns, end_ns) = (clock.host_ns(start), clock.host_ns(end));
                self.timings.push(Timing { token, start_ns, end_ns });
            }
        }
        // The vector keeps its memory for the next use.
        self.batches[index].tokens = tokens;
        self.batches[index].tokens.clear();
        Ok(())
    }

    /// Moves the measurements of finished work to `out`. The next measured launch compares the
    /// clocks anew, because they drift.
    pub(super) fn take_timings(&mut self, core: &Core, out: &mut Vec<Timing>) {
        let completed = core.completed().unwrap_or(0);
        for index in 0..self.batches.len() {
            let batch = &self.batches[index];
            let is_recording = self.is_open && batch.serial == self.newest();
            if !is_recording && batch.serial <= completed && self.read_times(core, index).is_err() {
                return;
            }
        }
        out.append(&mut self.timings);
        self.clock = None;
    }

    /// Destroys what the queue has made.
    ///
    /// # Safety
    /// The device is idle and the queue is not used afterwards.
    pub(super) unsafe fn destroy(&mut self, device: &ash::Device) {
        // SAFETY: forwarded from the caller.
        unsafe {
            self.batches.drain(..).for_each(|batch| batch.destroy(device));
            if let Some(upload) = self.upload.take() {
                upload.destroy(device);
            }
        }
    }
}
