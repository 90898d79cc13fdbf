//! A batch: the commands that go to the device in one submission.

use super::adapter::MAX_BUFFERS;
use super::core::Core;
use crate::gpu::device::TimingToken;
use ash::vk;

/// Launches of a batch at most; a full one is submitted.
pub(super) const MAX_LAUNCHES: u32 = 256;

/// One of the batches that a queue uses in turn.
pub(super) struct Batch {
    pool: vk::CommandPool,
    pub(super) commands: vk::CommandBuffer,
    /// For buffers that are not pushed; made when first needed.
    descriptors: vk::DescriptorPool,
    /// For measured launches; made when first needed.
    queries: vk::QueryPool,
    /// The serial of the work that was recorded last.
    pub(super) serial: u64,
    pub(super) launches: u32,
    /// Measured launches: number `n` has the queries `2 n` and `2 n + 1`.
    pub(super) tokens: Vec<TimingToken>,
    queries_are_reset: bool,
}

impl Batch {
    pub(super) fn new(core: &Core) -> Result<Batch, vk::Result> {
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::TRANSIENT)
            .queue_family_index(core.adapter.queue_family);
        // SAFETY: the device is valid; the pool is destroyed when it has no command buffer.
        unsafe {
            let pool = core.device.create_command_pool(&info, None)?;
            let info = vk::CommandBufferAllocateInfo::default()
                .command_pool(pool)
                .level(vk::CommandBufferLevel::PRIMARY)
                .command_buffer_count(1);
            let commands = match core.device.allocate_command_buffers(&info) {
                Ok(buffers) => buffers.first().copied().unwrap_or_default(),
                Err(code) => {
                    core.device.destroy_command_pool(pool, None);
                    return Err(code);
                }
            };
            Ok(Batch {
                pool,
                commands,
                descriptors: vk::DescriptorPool::null(),
                queries: vk::QueryPool::null(),
                serial: 0,
                launches: 0,
                tokens: Vec::new(),
                queries_are_reset: false,
            })
        }
    }

    /// Empties the batch and starts recording work of a serial. The work recorded before is done.
    pub(super) fn begin(&mut self, core: &Core, serial: u64) -> Result<(), vk::Result> {
        self.serial = serial;
        self.launches = 0;
        self.tokens.clear();
        self.queries_are_reset = false;
        let info = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the device has finished with the batch.
        unsafe {
            core.device.reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty())?;
            if self.descriptors != vk::DescriptorPool::null() {
                let flags = vk::DescriptorPoolResetFlags::empty();
                core.device.reset_descriptor_pool(self.descriptors, flags)?;
            }
            core.device.begin_command_buffer(self.commands, &info)
        }
    }

    /// A descriptor set for one launch of this batch; `ERROR_OUT_OF_POOL_MEMORY` when the batch
    /// has used up its descriptors.
    pub(super) fn descriptor_set(
        &mut self,
        core: &Core,
        layout: vk::DescriptorSetLayout,
    ) -> Result<vk::DescriptorSet, vk::Result> {
        if self.descriptors == vk::DescriptorPool::null() {
            let size = |ty, count| vk::DescriptorPoolSize::default().ty(ty).descriptor_count(count);
            let sizes = [
                size(vk::DescriptorType::STORAGE_BUFFER, 8 * MAX_LAUNCHES + MAX_BUFFERS),
                size(vk::DescriptorType::UNIFORM_BUFFER, MAX_LAUNCHES),
            ];
            let info =
                vk::DescriptorPoolCreateInfo::default().max_sets(MAX_LAUNCHES).pool_sizes(&sizes);
            // SAFETY: the device is valid.
            self.descriptors = unsafe { core.device.create_descriptor_pool(&info, None) }?;
        }
        let layouts = [layout];
        let info = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(self.descriptors)
            .set_layouts(&layouts);
        let mut set = vk::DescriptorSet::null();
        // The bindings' own function allocates a vector for each call.
        let allocate = core.device.fp_v1_0().allocate_descriptor_sets;
        // SAFETY: pool and layout are valid; one layout gives one set.
        unsafe { allocate(core.device.handle(), &info, &mut set) }.result_with_success(set)
    }

    /// Writes the time when all commands so far are done. `end` says which of the two times of the
    /// newest measured launch it is.
    pub(super) fn write_time(&mut self, core: &Core, end: bool) -> Result<(), vk::Result> {
        if self.queries == vk::QueryPool::null() {
            let info = vk::QueryPoolCreateInfo::default()
                .query_type(vk::QueryType::TIMESTAMP)
                .query_count(2 * MAX_LAUNCHES);
            // SAFETY: the device is valid.
            self.queries = unsafe { core.device.create_query_pool(&info, None) }?;
        }
        let query = 2 * (self.tokens.len() as u32 - 1) + u32::from(end);
        // SAFETY: the batch is being recorded; a batch has at most `MAX_LAUNCHES` tokens.
        unsafe {
            if !std::mem::replace(&mut self.queries_are_reset, true) {
                let count = 2 * MAX_LAUNCHES;
                core.device.cmd_reset_query_pool(self.commands, self.queries, 0, count);
            }
            let stage = vk::PipelineStageFlags2::ALL_COMMANDS;
            core.device.cmd_write_timestamp2(self.commands, stage, self.queries, query);
        }
        Ok(())
    }

    /// The two times of measured launch number `index` of a batch that is done.
    pub(super) fn times(&self, core: &Core, index: u32) -> Result<[u64; 2], vk::Result> {
        let mut times = [0u64; 2];
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
        // SAFETY: the batch is done, so its queries have been written.
        unsafe {
            core.device.get_query_pool_results(self.queries, 2 * index, &mut times, flags)?;
        }
        Ok(times)
    }

    /// Destroys the objects of the batch.
    ///
    /// # Safety
    /// The device has finished with it, and it is not destroyed twice.
    pub(super) unsafe fn destroy(&self, device: &ash::Device) {
        // SAFETY: forwarded from the caller; null handles are ignored.
        unsafe {
            device.destroy_query_pool(self.queries, None);
            device.destroy_descriptor_pool(self.descriptors, None);
            device.destroy_command_pool(self.pool, None);
        }
    }
}
