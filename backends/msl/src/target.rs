//! [`MslTarget`]: what a kernel is compiled for.

use magpie_gpu::layout::{LayoutRules, ScalarRule};
use magpie_gpu::legalize::LegalOps;

/// A version of the language.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MslVersion {
    /// macOS 12.
    V2_4,
    /// macOS 14: `bfloat`.
    V3_1,
}

/// A Metal device, as far as kernels depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MslTarget {
    /// The newest version that may be used.
    pub version: MslVersion,
}

impl MslTarget {
    /// What every supported device has: the target when no device is known.
    pub const COMMON: MslTarget = MslTarget { version: MslVersion::V2_4 };

    /// The target of a device, by what the runtime says of its architecture: `msl3.1`.
    pub fn for_architecture(architecture: &str) -> MslTarget {
        let version = match architecture {
            "msl3.1" => MslVersion::V3_1,
            _ => MslVersion::V2_4,
        };
        MslTarget { version }
    }

    /// How parameters travel.
    pub fn layout_rules(&self) -> LayoutRules {
        LayoutRules {
            scalars: ScalarRule::Arguments,
            storage8: true,
            storage16: true,
            // Buffers of bytes can have more than 2^32 elements.
            hidden_length: 8,
            fixed_workgroup: false,
        }
    }

    /// What Metal without fast-math does as exactly as the numeric table says.
    pub(crate) fn legal_ops(&self) -> LegalOps {
        LegalOps {
            float16: true,
            bfloat16: false,
            bfloat16_casts: self.version >= MslVersion::V3_1,
            int8: false,
            int16: false,
            float64: false,
            total_division: false,
            masked_shifts: false,
            rotates: false,
            ctz: true,
            saturating_casts: false,
            exact_division: true,
            exact_fma: true,
            ordered_min_max: true,
            exact_rem: false,
            half_division: true,
            double_to_half: true,
            math: true,
        }
    }
}
