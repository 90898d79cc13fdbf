//! [`PtxTarget`]: what a kernel is compiled for.

use magpie_gpu::layout::LayoutRules;
use magpie_gpu::legalize::LegalOps;
use magpie_types::kernel::CUDA_STATIC_SHARED;

/// Who makes the PTX of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Codegen {
    /// LLVM when it is found, else the direct writer.
    #[default]
    Auto,
    /// LLVM only.
    Llvm,
    /// The direct writer only.
    Direct,
}

impl Codegen {
    /// The choice of a word of the manifest: `auto`, `llvm` or `direct`.
    pub fn from_name(name: &str) -> Option<Codegen> {
        match name {
            "auto" => Some(Codegen::Auto),
            "llvm" => Some(Codegen::Llvm),
            "direct" => Some(Codegen::Direct),
            _ => None,
        }
    }
}

/// An NVIDIA GPU, as far as kernels depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PtxTarget {
    /// Compute capability: 70 for 7.0. PTX for one runs on all that are newer.
    pub sm: u32,
    /// Bytes of shared memory that a kernel may have. Above 48 KiB it is a choice of the user
    /// (`shared_opt_in`), because not every device has it.
    pub shared_limit: u32,
    /// Who makes the PTX.
    pub codegen: Codegen,
}

/// The oldest architecture that kernels are made for: the first that schedules the invocations of
/// a warp independently.
pub const MIN_SM: u32 = 70;

/// Architectures in ascending order, each with the PTX version that introduced it or, where that is
/// newer, the one whose instructions kernels use.
const ARCHITECTURES: [(u32, &str); 15] = [
    (70, "6.5"),
    (72, "6.5"),
    (75, "6.5"),
    (80, "7.1"),
    (86, "7.1"),
    (87, "7.4"),
    (89, "7.8"),
    (90, "7.8"),
    (100, "8.6"),
    (101, "8.6"),
    (103, "8.8"),
    (110, "9.0"),
    (120, "8.7"),
    (121, "8.8"),
    (u32::MAX, ""),
];

/// The first architecture with bf16 arithmetic for every operation.
pub(crate) const NATIVE_BFLOAT16: u32 = 90;

impl PtxTarget {
    /// The target when no device is known.
    pub const DEFAULT: PtxTarget =
        PtxTarget { sm: MIN_SM, shared_limit: CUDA_STATIC_SHARED, codegen: Codegen::Auto };

    /// The target with the compute capability of a device.
    pub fn of_capability(major: u32, minor: u32) -> PtxTarget {
        PtxTarget { sm: major * 10 + minor, ..PtxTarget::DEFAULT }
    }

    /// The architecture named in the text, which is the newest known one that the device has, and
    /// the version of PTX.
    pub fn architecture(&self) -> (u32, &'static str) {
        let known = ARCHITECTURES.windows(2).find(|pair| self.sm < pair[1].0);
        known.map_or(ARCHITECTURES[0], |pair| pair[0])
    }

    /// How parameters travel.
    pub fn layout_rules(&self) -> LayoutRules {
        LayoutRules::ARGUMENTS
    }

    /// Whether bf16 arithmetic exists for every operation.
    pub(crate) fn has_bfloat16(&self) -> bool {
        self.sm >= NATIVE_BFLOAT16
    }

    /// What PTX does as exactly as the numeric table says.
    pub fn legal_ops(&self) -> LegalOps {
        LegalOps {
            float16: true,
            bfloat16: self.has_bfloat16(),
            bfloat16_casts: self.has_bfloat16(),
            int8: false,
            int16: false,
            float64: true,
            total_division: false,
            // Amounts stop at the width.
            masked_shifts: false,
            rotates: false,
            ctz: true,
            saturating_casts: true,
            exact_division: true,
            exact_fma: true,
            ordered_min_max: true,
            exact_rem: false,
            half_division: false,
            double_to_half: true,
            math: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_get_the_newest_architecture_that_they_have() {
        let of = |sm| PtxTarget { sm, ..PtxTarget::DEFAULT }.architecture();
        assert_eq!(of(50), (70, "6.5"), "the oldest that kernels are made for");
        assert_eq!(of(70), (70, "6.5"));
        assert_eq!(of(88), (87, "7.4"));
        assert_eq!(of(90), (90, "7.8"));
        assert_eq!(of(150), (121, "8.8"));
        assert_eq!(PtxTarget::of_capability(9, 0).sm, 90);
        assert!(ARCHITECTURES.is_sorted_by_key(|a| a.0));
    }

    #[test]
    fn words_of_the_manifest() {
        assert_eq!(Codegen::from_name("direct"), Some(Codegen::Direct));
        assert_eq!(Codegen::from_name("llvm"), Some(Codegen::Llvm));
        assert_eq!(Codegen::from_name("auto"), Some(Codegen::Auto));
        assert_eq!(Codegen::from_name("nvcc"), None);
    }
}
