//! [`WgslTarget`]: what a kernel is compiled for.

use magpie_gpu::layout::{LayoutRules, ScalarRule};
use magpie_gpu::legalize::LegalOps;
use magpie_types::kernel::DeviceFeatures;

/// A WebGPU device, as far as kernels depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WgslTarget {
    /// What the device offers: [`DeviceFeatures::FLOAT16`] (`shader-f16`) and
    /// [`DeviceFeatures::SUBGROUP`] (`subgroups`).
    pub features: DeviceFeatures,
}

impl WgslTarget {
    /// The target when no device is known. f16 is left out, because a kernel can do without it and
    /// many browsers do not have it; subgroups are there, because a kernel that uses them cannot.
    pub const COMMON: WgslTarget = WgslTarget { features: DeviceFeatures::SUBGROUP };

    /// How parameters travel. Buffers hold words: WGSL has no integers below 32 bits, and widening
    /// is decided for a buffer before any kernel sees it, so f16 is no exception.
    pub fn layout_rules(&self) -> LayoutRules {
        LayoutRules {
            scalars: ScalarRule::Uniform,
            storage8: false,
            storage16: false,
            // No buffer has 2^32 elements.
            hidden_length: 4,
            fixed_workgroup: true,
        }
    }

    /// What WGSL does as exactly as the numeric table says.
    pub(crate) fn legal_ops(&self) -> LegalOps {
        LegalOps {
            float16: self.features.contains(DeviceFeatures::FLOAT16),
            bfloat16: false,
            bfloat16_casts: false,
            int8: false,
            int16: false,
            float64: false,
            // What a zero divisor gives is defined, but an error when the divisor is a constant.
            total_division: false,
            masked_shifts: false,
            rotates: false,
            ctz: true,
            saturating_casts: false,
            exact_division: false,
            exact_fma: false,
            // By a function of the module.
            ordered_min_max: true,
            exact_rem: false,
            half_division: false,
            double_to_half: true,
            math: true,
        }
    }
}
