//! Device features: what a driver offers, what we switch on, and what that means for kernels.
//!
//! Only features that kernels or this driver use are switched on.

use super::instance::Instance;
use ash::vk;
use magpie_types::kernel::DeviceFeatures;
use std::ffi::CStr;

/// The feature structures that we look at.
#[derive(Clone, Copy, Default)]
pub(super) struct Features {
    core: vk::PhysicalDeviceFeatures,
    v11: vk::PhysicalDeviceVulkan11Features<'static>,
    v12: vk::PhysicalDeviceVulkan12Features<'static>,
    v13: vk::PhysicalDeviceVulkan13Features<'static>,
    atomic_float: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
    atomic_float2: vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT<'static>,
    has_atomic_float: bool,
    has_atomic_float2: bool,
}

impl Features {
    /// What a device offers; `has` tells whether it has an extension.
    pub(super) fn offered(
        instance: &Instance,
        physical: vk::PhysicalDevice,
        has: impl Fn(&CStr) -> bool,
    ) -> Features {
        let mut features = Features {
            has_atomic_float: has(ash::ext::shader_atomic_float::NAME),
            has_atomic_float2: has(ash::ext::shader_atomic_float2::NAME),
            ..Features::default()
        };
        features.core = features.chain(|chain| {
            // SAFETY: the chain holds structures that the device's version and extensions define.
            unsafe { instance.raw().get_physical_device_features2(physical, chain) };
            chain.features
        });
        features
    }

    /// Calls `body` with all structures linked.
    pub(super) fn chain<R>(
        &mut self,
        body: impl FnOnce(&mut vk::PhysicalDeviceFeatures2<'_>) -> R,
    ) -> R {
        let mut chain = vk::PhysicalDeviceFeatures2::default()
            .features(self.core)
            .push_next(&mut self.v11)
            .push_next(&mut self.v12)
            .push_next(&mut self.v13);
        if self.has_atomic_float {
            chain = chain.push_next(&mut self.atomic_float);
        }
        if self.has_atomic_float2 {
            chain = chain.push_next(&mut self.atomic_float2);
        }
        let result = body(&mut chain);
        for next in [
            &mut self.v11.p_next,
            &mut self.v12.p_next,
            &mut self.v13.p_next,
            &mut self.atomic_float.p_next,
            &mut self.atomic_float2.p_next,
        ] {
            *next = std::ptr::null_mut();
        }
        result
    }

    /// Those of the offered features that we switch on.
    pub(super) fn wanted(&self) -> Features {
        let mut wanted = Features {
            has_atomic_float: self.has_atomic_float,
            has_atomic_float2: self.has_atomic_float2,
            ..Features::default()
        };
        macro_rules! copy {
            ($($group:ident . $name:ident),* $(,)?) => {
                $(wanted.$group.$name = self.$group.$name;)*
            };
        }
        copy!(
            core.shader_int16,
            core.shader_int64,
            core.shader_float64,
            v11.storage_buffer16_bit_access,
            v11.uniform_and_storage_buffer16_bit_access,
            v11.storage_push_constant16,
            v12.shader_float16,
            v12.shader_int8,
            v12.storage_buffer8_bit_access,
            v12.uniform_and_storage_buffer8_bit_access,
            v12.storage_push_constant8,
            v12.shader_buffer_int64_atomics,
            v12.shader_shared_int64_atomics,
            v12.shader_subgroup_extended_types,
            v12.scalar_block_layout,
            v12.uniform_buffer_standard_layout,
            v12.timeline_semaphore,
            v13.synchronization2,
            v13.maintenance4,
            atomic_float.shader_buffer_float32_atomics,
            atomic_float.shader_buffer_float32_atomic_add,
            atomic_float.shader_shared_float32_atomics,
            atomic_float.shader_shared_float32_atomic_add,
            atomic_float.shader_buffer_float64_atomics,
            atomic_float.shader_buffer_float64_atomic_add,
            atomic_float.shader_shared_float64_atomics,
            atomic_float.shader_shared_float64_atomic_add,
            atomic_float2.shader_buffer_float32_atomic_min_max,
            atomic_float2.shader_shared_float32_atomic_min_max,
        );
        wanted
    }

    /// Names of extensions whose features may be switched on.
    pub(super) fn extensions(&self) -> Vec<&'static CStr> {
        let mut names = Vec::new();
        if self.has_atomic_float {
            names.push(ash::ext::shader_atomic_float::NAME);
        }
        if self.has_atomic_float2 {
            names.push(ash::ext::shader_atomic_float2::NAME);
        }
        names
    }

    /// Features of this driver itself that are missing; version 1.3 promises them.
    pub(super) fn missing(&self) -> Option<&'static str> {
        let needed = [
            (self.v12.timeline_semaphore, "timelineSemaphore"),
            (self.v13.synchronization2, "synchronization2"),
            (self.v13.maintenance4, "maintenance4"),
        ];
        needed.into_iter().find(|&(offered, _)| offered == vk::FALSE).map(|(_, name)| name)
    }

    /// What kernels may use, given the float controls and subgroup properties of the device.
    pub(super) fn for_kernels(
        &self,
        floats: &vk::PhysicalDeviceFloatControlsProperties<'_>,
        subgroups: &vk::PhysicalDeviceSubgroupProperties<'_>,
    ) -> DeviceFeatures {
        let (core, v11, v12) = (&self.core, &self.v11, &self.v12);
        let (af, af2) = (&self.atomic_float, &self.atomic_float2);
        let mut features = DeviceFeatures::default();
        let mut offer = |feature: DeviceFeatures, needs: &[vk::Bool32]| {
            if needs.iter().all(|&n| n == vk::TRUE) {
                features |= feature;
            }
        };
        offer(DeviceFeatures::INT8, &[v12.shader_int8]);
        offer(DeviceFeatures::INT16, &[core.shader_int16]);
        offer(DeviceFeatures::INT64, &[core.shader_int64]);
        offer(DeviceFeatures::FLOAT16, &[v12.shader_float16]);
        offer(DeviceFeatures::FLOAT64, &[core.shader_float64]);
        offer(DeviceFeatures::STORAGE8, &[v12.storage_buffer8_bit_access]);
        offer(DeviceFeatures::STORAGE16, &[v11.storage_buffer16_bit_access]);
        let scalar8 = [v12.storage_push_constant8, v12.uniform_and_storage_buffer8_bit_access];
        offer(DeviceFeatures::SCALAR8, &scalar8);
        let scalar16 = [v11.storage_push_constant16, v11.uniform_and_storage_buffer16_bit_access];
        offer(DeviceFeatures::SCALAR16, &scalar16);
        let int64 = [v12.shader_buffer_int64_atomics, v12.shader_shared_int64_atomics];
        offer(DeviceFeatures::ATOMIC_INT64, &int64);
        offer(
            DeviceFeatures::ATOMIC_FLOAT32_ADD,
            &[
                af.shader_buffer_float32_atomics,
                af.shader_buffer_float32_atomic_add,
                af.shader_shared_float32_atomics,
                af.shader_shared_float32_atomic_add,
            ],
        );
        offer(
            DeviceFeatures::ATOMIC_FLOAT64_ADD,
            &[
                af.shader_buffer_float64_atomics,
                af.shader_buffer_float64_atomic_add,
                af.shader_shared_float64_atomics,
                af.shader_shared_float64_atomic_add,
            ],
        );
        offer(
            DeviceFeatures::ATOMIC_FLOAT32_MINMAX,
            &[af2.shader_buffer_float32_atomic_min_max, af2.shader_shared_float32_atomic_min_max],
        );
        offer(
            DeviceFeatures::FLOAT32_CONTROLS,
            &[floats.shader_signed_zero_inf_nan_preserve_float32],
        );
        offer(
            DeviceFeatures::FLOAT16_CONTROLS,
            &[floats.shader_signed_zero_inf_nan_preserve_float16],
        );
        offer(
            DeviceFeatures::FLOAT64_CONTROLS,
            &[floats.shader_signed_zero_inf_nan_preserve_float64],
        );
        // A mode may be set for one width alone only where the widths are independent.
        let alone = |independence: vk::ShaderFloatControlsIndependence, is32: bool| {
            let all = independence == vk::ShaderFloatControlsIndependence::ALL;
            let only32 = independence == vk::ShaderFloatControlsIndependence::TYPE_32_ONLY;
            vk::Bool32::from(all || only32 && is32)
        };
        let (denorms, rounding) =
            (floats.denorm_behavior_independence, floats.rounding_mode_independence);
        for (feature, offered, independence, is32) in [
            (DeviceFeatures::FLOAT32_DENORMS, floats.shader_denorm_preserve_float32, denorms, true),
            (
                DeviceFeatures::FLOAT16_DENORMS,
                floats.shader_denorm_preserve_float16,
                denorms,
                false,
            ),
            (
                DeviceFeatures::FLOAT64_DENORMS,
                floats.shader_denorm_preserve_float64,
                denorms,
                false,
            ),
            (DeviceFeatures::FLOAT32_RTE, floats.shader_rounding_mode_rte_float32, rounding, true),
            (DeviceFeatures::FLOAT16_RTE, floats.shader_rounding_mode_rte_float16, rounding, false),
            (DeviceFeatures::FLOAT64_RTE, floats.shader_rounding_mode_rte_float64, rounding, false),
        ] {
            offer(feature, &[offered, alone(independence, is32)]);
        }
        let operations = vk::SubgroupFeatureFlags::BASIC
            | vk::SubgroupFeatureFlags::VOTE
            | vk::SubgroupFeatureFlags::BALLOT
            | vk::SubgroupFeatureFlags::ARITHMETIC
            | vk::SubgroupFeatureFlags::SHUFFLE
            | vk::SubgroupFeatureFlags::SHUFFLE_RELATIVE;
        let has_operations = subgroups.supported_operations.contains(operations)
            && subgroups.supported_stages.contains(vk::ShaderStageFlags::COMPUTE);
        // The operations must take every type that kernels can compute with.
        let small_types =
            [v12.shader_int8, v12.shader_float16, core.shader_int16, core.shader_int64];
        let takes_all = v12.shader_subgroup_extended_types == vk::TRUE
            || small_types.iter().all(|&offered| offered == vk::FALSE);
        offer(DeviceFeatures::SUBGROUP, &[vk::Bool32::from(has_operations && takes_all)]);
        features
    }
}
