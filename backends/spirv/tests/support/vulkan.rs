use ash::vk;
pub struct Gpu {
    dev: ash::Device,
    q: vk::Queue,
    mem: vk::PhysicalDeviceMemoryProperties,
    _inst: ash::Instance,
    _entry: ash::Entry,
}
impl Gpu {
    pub fn open() -> Gpu {
        unsafe {
            let entry = ash::Entry::load().unwrap();
            let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
            let inst = entry
                .create_instance(&vk::InstanceCreateInfo::default().application_info(&app), None)
                .unwrap();
            let pd = inst.enumerate_physical_devices().unwrap()[0];
            let mem = inst.get_physical_device_memory_properties(pd);
            let mut f11 = vk::PhysicalDeviceVulkan11Features::default();
            let mut f12 = vk::PhysicalDeviceVulkan12Features::default();
            let mut f13 = vk::PhysicalDeviceVulkan13Features::default();
            let mut af = vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT::default();
            let mut af2 = vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT::default();
            let mut f2 = vk::PhysicalDeviceFeatures2::default()
                .push_next(&mut f11)
                .push_next(&mut f12)
                .push_next(&mut f13)
                .push_next(&mut af)
                .push_next(&mut af2);
            inst.get_physical_device_features2(pd, &mut f2);
            let prio = [1.0f32];
            let qi = [vk::DeviceQueueCreateInfo::default()
                .queue_family_index(0)
                .queue_priorities(&prio)];
            let en =
                [c"VK_EXT_shader_atomic_float".as_ptr(), c"VK_EXT_shader_atomic_float2".as_ptr()];
            let dev = inst
                .create_device(
                    pd,
                    &vk::DeviceCreateInfo::default()
                        .queue_create_infos(&qi)
                        .enabled_extension_names(&en)
                        .push_next(&mut f2),
                    None,
                )
                .unwrap();
            let q = dev.get_device_queue(0, 0);
            Gpu { dev, q, mem, _inst: inst, _entry: entry }
        }
    }
    pub fn run(
        &self,
        code: &[u32],
        buffers: &mut [Vec<u8>],
        push: &[u8],
        uniform: Option<&[u8]>,
        grid: [u32; 3],
    ) {
        unsafe {
            let dev = &self.dev;
            let mk = |data: &[u8], usage| {
                let size = data.len().max(4) as u64;
                let b = dev
                    .create_buffer(&vk::BufferCreateInfo::default().size(size).usage(usage), None)
                    .unwrap();
                let r = dev.get_buffer_memory_requirements(b);
                let ty = (0..self.mem.memory_type_count)
                    .find(|&i| {
                        r.memory_type_bits & (1 << i) != 0
                            && self.mem.memory_types[i as usize].property_flags.contains(
                                vk::MemoryPropertyFlags::HOST_VISIBLE
                                    | vk::MemoryPropertyFlags::HOST_COHERENT,
                            )
                    })
                    .unwrap();
                let m = dev
                    .allocate_memory(
                        &vk::MemoryAllocateInfo::default()
                            .allocation_size(r.size)
                            .memory_type_index(ty),
                        None,
                    )
                    .unwrap();
                dev.bind_buffer_memory(b, m, 0).unwrap();
                let p = dev.map_memory(m, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()).unwrap()
                    as *mut u8;
                std::ptr::copy_nonoverlapping(data.as_ptr(), p, data.len());
                (b, m, p)
            };
            let mut bufs: Vec<_> =
                buffers.iter().map(|d| mk(d, vk::BufferUsageFlags::STORAGE_BUFFER)).collect();
            let n = buffers.len();
            if let Some(u) = uniform {
                bufs.push(mk(u, vk::BufferUsageFlags::UNIFORM_BUFFER));
            }
            let kind = |i| {
                if i < n {
                    vk::DescriptorType::STORAGE_BUFFER
                } else {
                    vk::DescriptorType::UNIFORM_BUFFER
                }
            };
            let sm = dev
                .create_shader_module(&vk::ShaderModuleCreateInfo::default().code(code), None)
                .unwrap();
            let bs: Vec<_> = (0..bufs.len())
                .map(|i| {
                    vk::DescriptorSetLayoutBinding::default()
                        .binding(i as u32)
                        .descriptor_type(kind(i))
                        .descriptor_count(1)
                        .stage_flags(vk::ShaderStageFlags::COMPUTE)
                })
                .collect();
            let dsl = [dev
                .create_descriptor_set_layout(
                    &vk::DescriptorSetLayoutCreateInfo::default().bindings(&bs),
                    None,
                )
                .unwrap()];
            let pc = [vk::PushConstantRange::default()
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
                .size(128)];
            let pl = dev
                .create_pipeline_layout(
                    &vk::PipelineLayoutCreateInfo::default()
                        .set_layouts(&dsl)
                        .push_constant_ranges(&pc),
                    None,
                )
                .unwrap();
            let pipe = dev
                .create_compute_pipelines(
                    vk::PipelineCache::null(),
                    &[vk::ComputePipelineCreateInfo::default().layout(pl).stage(
                        vk::PipelineShaderStageCreateInfo::default()
                            .stage(vk::ShaderStageFlags::COMPUTE)
                            .module(sm)
                            .name(c"main"),
                    )],
                    None,
                )
                .unwrap()[0];
            let ps = [
                vk::DescriptorPoolSize::default()
                    .ty(vk::DescriptorType::STORAGE_BUFFER)
                    .descriptor_count(bufs.len() as u32 + 1),
                vk::DescriptorPoolSize::default()
                    .ty(vk::DescriptorType::UNIFORM_BUFFER)
                    .descriptor_count(1),
            ];
            let dp = dev
                .create_descriptor_pool(
                    &vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&ps),
                    None,
                )
                .unwrap();
            let ds = dev
                .allocate_descriptor_sets(
                    &vk::DescriptorSetAllocateInfo::default().descriptor_pool(dp).set_layouts(&dsl),
                )
                .unwrap()[0];
            for (i, b) in bufs.iter().enumerate() {
                let bi = [vk::DescriptorBufferInfo::default().buffer(b.0).range(vk::WHOLE_SIZE)];
                dev.update_descriptor_sets(
                    &[vk::WriteDescriptorSet::default()
                        .dst_set(ds)
                        .dst_binding(i as u32)
                        .descriptor_type(kind(i))
                        .buffer_info(&bi)],
                    &[],
                );
            }
            let cp = dev.create_command_pool(&vk::CommandPoolCreateInfo::default(), None).unwrap();
            let cb = dev
                .allocate_command_buffers(
                    &vk::CommandBufferAllocateInfo::default()
                        .command_pool(cp)
                        .level(vk::CommandBufferLevel::PRIMARY)
                        .command_buffer_count(1),
                )
                .unwrap()[0];
            dev.begin_command_buffer(cb, &vk::CommandBufferBeginInfo::default()).unwrap();
            dev.cmd_bind_pipeline(cb, vk::PipelineBindPoint::COMPUTE, pipe);
            dev.cmd_bind_descriptor_sets(cb, vk::PipelineBindPoint::COMPUTE, pl, 0, &[ds], &[]);
            if !push.is_empty() {
                dev.cmd_push_constants(cb, pl, vk::ShaderStageFlags::COMPUTE, 0, push);
            }
            dev.cmd_dispatch(cb, grid[0], grid[1], grid[2]);
            dev.end_command_buffer(cb).unwrap();
            let f = dev.create_fence(&vk::FenceCreateInfo::default(), None).unwrap();
            dev.queue_submit(self.q, &[vk::SubmitInfo::default().command_buffers(&[cb])], f)
                .unwrap();
            dev.wait_for_fences(&[f], true, u64::MAX).unwrap();
            for (d, b) in buffers.iter_mut().zip(&bufs) {
                let n = d.len();
                std::ptr::copy_nonoverlapping(b.2, d.as_mut_ptr(), n);
            }
            dev.destroy_fence(f, None);
            dev.destroy_command_pool(cp, None);
            dev.destroy_descriptor_pool(dp, None);
            dev.destroy_pipeline(pipe, None);
            dev.destroy_pipeline_layout(pl, None);
            dev.destroy_descriptor_set_layout(dsl[0], None);
            dev.destroy_shader_module(sm, None);
            for b in bufs {
                dev.destroy_buffer(b.0, None);
                dev.free_memory(b.1, None);
            }
        }
    }
}
