//! [`SpirvTarget`]: what a kernel is compiled for.

use magpie_gpu::layout::{LayoutRules, ScalarRule};
use magpie_gpu::legalize::LegalOps;
use magpie_types::kernel::DeviceFeatures;

/// A Vulkan device, as far as kernels depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpirvTarget {
    /// What the device offers.
    pub features: DeviceFeatures,
    /// Bytes of push constants; Vulkan promises 128.
    pub push_constant_bytes: u32,
}

impl SpirvTarget {
    /// What is common to desktop and server GPUs: the target when no device is known. Kernels use
    /// less than it, and a blob lists what it uses.
    pub const COMMON: SpirvTarget = SpirvTarget {
        features: DeviceFeatures(
            DeviceFeatures::INT8.0
                | DeviceFeatures::INT16.0
                | DeviceFeatures::INT64.0
                | DeviceFeatures::FLOAT16.0
                | DeviceFeatures::FLOAT64.0
                | DeviceFeatures::STORAGE8.0
                | DeviceFeatures::STORAGE16.0
                | DeviceFeatures::ATOMIC_INT64.0
                | DeviceFeatures::SUBGROUP.0,
        ),
        push_constant_bytes: 128,
    };

    /// How parameters travel.
    pub fn layout_rules(&self) -> LayoutRules {
        LayoutRules {
            scalars: ScalarRule::PushConstants { limit: self.push_constant_bytes },
            storage8: self.features.contains(DeviceFeatures::STORAGE8),
            storage16: self.features.contains(DeviceFeatures::STORAGE16),
            // No buffer has 2^32 elements.
            hidden_length: 4,
            fixed_workgroup: false,
        }
    }

    /// What the device does as exactly as the numeric table says.
    pub(crate) fn legal_ops(&self) -> LegalOps {
        LegalOps {
            float16: self.features.contains(DeviceFeatures::FLOAT16),
            bfloat16: false,
            bfloat16_casts: false,
            int8: self.features.contains(DeviceFeatures::INT8),
            int16: self.features.contains(DeviceFeatures::INT16),
            float64: self.features.contains(DeviceFeatures::FLOAT64),
            total_division: false,
            masked_shifts: false,
            rotates: false,
            ctz: true,
            saturating_casts: false,
            // Vulkan allows 2.5 ulp for a quotient, and more for a root.
            exact_division: false,
            // Vulkan lets an fma be a multiplication and an addition.
            exact_fma: false,
            ordered_min_max: true,
            exact_rem: false,
            half_division: false,
            // Drivers go through f32.
            double_to_half: false,
            // `GLSL.std.450` has them.
            math: true,
        }
    }
}
