//! [`HipTarget`]: what a kernel is compiled for.

use magpie_codegen_llvm::{Flavor, MIN_LLVM};
use magpie_gpu::capability::Capability;
use magpie_mpir::MpirFn;
use magpie_types::kernel::GpuBackend;

/// An AMD GPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HipTarget {
    /// The processor, as `gfx1030`; what follows colons in HIP's names (`gfx90a:xnack-`) are its
    /// settings.
    arch: String,
}

/// The processor when no device is known (GPU specification, section 7.4).
const DEFAULT_ARCH: &str = "gfx1030";

/// Processors that kernels can be made for, by the first LLVM that knows them. Those of the oldest
/// LLVM that is used are one group.
const PROCESSORS: [(u32, &[&str]); 7] = [
    (
        MIN_LLVM,
        &[
            "gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx90c",
            "gfx940", "gfx1010", "gfx1011", "gfx1012", "gfx1013", "gfx1030", "gfx1031", "gfx1032",
            "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1100", "gfx1101", "gfx1102", "gfx1103",
        ],
    ),
    (17, &["gfx941", "gfx942", "gfx1150", "gfx1151"]),
    (18, &["gfx1200", "gfx1201"]),
    (19, &["gfx1152"]),
    (20, &["gfx950", "gfx1153"]),
    (21, &["gfx1250"]),
    (22, &["gfx1251"]),
];

impl Default for HipTarget {
    fn default() -> HipTarget {
        HipTarget { arch: DEFAULT_ARCH.to_string() }
    }
}

/// The processor when no device is known and a kernel needs wavefronts of 64 lanes.
const DEFAULT_WAVE64: &str = "gfx90a";

impl HipTarget {
    /// The target of a kernel when no device is known.
    pub fn for_kernel(kernel: &MpirFn) -> HipTarget {
        let arch = if needs_wave64(kernel) { DEFAULT_WAVE64 } else { DEFAULT_ARCH };
        HipTarget { arch: arch.to_string() }
    }

    /// The target with a name, such as `gfx90a` or `gfx90a:sramecc+:xnack-`.
    ///
    /// # Errors
    /// The name is no processor that kernels can be made for.
    pub fn new(name: &str) -> Result<HipTarget, String> {
        let mut parts = name.split(':');
        let arch = parts.next().unwrap_or_default();
        if !PROCESSORS.iter().any(|(_, names)| names.contains(&arch)) {
            let known: Vec<&str> =
                PROCESSORS.iter().flat_map(|(_, names)| *names).copied().collect();
            let known = known.join(", ");
            return Err(format!("`{arch}` is no AMD GPU that is known; those are {known}"));
        }
        let settings = ["xnack+", "xnack-", "sramecc+", "sramecc-"];
        match parts.find(|s| !settings.contains(s)) {
            Some(s) => {
                let settings = settings.join(", ");
                Err(format!("`{s}` is no setting of an AMD GPU; those are {settings}"))
            }
            None => Ok(HipTarget { arch: name.to_string() }),
        }
    }

    /// The first LLVM that knows the processor.
    pub(crate) fn first_llvm(&self) -> u32 {
        let of = |group: &&(u32, &[&str])| group.1.contains(&self.processor());
        PROCESSORS.iter().find(of).map_or(MIN_LLVM, |group| group.0)
    }

    /// The name, as HIP has it.
    pub fn name(&self) -> &str {
        &self.arch
    }

    /// The processor alone.
    pub fn processor(&self) -> &str {
        self.arch.split(':').next().unwrap_or_default()
    }

    /// The generation: 9 for `gfx90a`, 10 for `gfx1030`.
    fn generation(&self) -> u32 {
        let digits = self.processor().strip_prefix("gfx").unwrap_or_default();
        let major = digits.get(..digits.len().saturating_sub(2)).unwrap_or_default();
        major.parse().unwrap_or(0)
    }

    /// The settings as LLVM has them: `+xnack,-sramecc`.
    pub(crate) fn features(&self) -> String {
        let feature = |s: &str| {
            let (name, sign) = s.split_at(s.len() - 1);
            format!("{sign}{name}")
        };
        self.arch.split(':').skip(1).map(feature).collect::<Vec<_>>().join(",")
    }

    /// Whether wavefronts have 64 lanes, as up to generation 9, or 32.
    pub(crate) fn has_wave64(&self) -> bool {
        self.generation() < 10
    }

    /// The flavour of LLVM IR.
    pub fn flavor(&self) -> Flavor {
        Flavor::Amdgcn { wave64: self.has_wave64() }
    }

    /// The back end.
    pub const BACKEND: GpuBackend = GpuBackend::Hip;
}

/// Whether a kernel requires wavefronts of 64 lanes.
pub(crate) fn needs_wave64(kernel: &MpirFn) -> bool {
    let word = Capability::HipWave64.word();
    kernel.gpu_meta.as_ref().is_some_and(|meta| meta.requires.iter().any(|r| r == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_taken_apart() {
        let of = |name: &str| HipTarget::new(name).unwrap();
        assert_eq!(of("gfx90a:sramecc+:xnack-").features(), "+sramecc,-xnack");
        assert_eq!(of("gfx90a:xnack-").processor(), "gfx90a");
        assert_eq!(of("gfx942").flavor(), Flavor::Amdgcn { wave64: true });
        assert_eq!(of("gfx1030").flavor(), Flavor::Amdgcn { wave64: false });
        assert_eq!(of("gfx1100").features(), "");
        assert_eq!((of("gfx90a:xnack+").first_llvm(), of("gfx950").first_llvm()), (MIN_LLVM, 20));
        for bad in ["", "gfx", "sm_70", "gfx803", "gfx1030:fast", "gfx1030:", "gfx1030;rm"] {
            let e = HipTarget::new(bad).unwrap_err();
            assert!(e.contains("those are"), "{bad}: {e}");
        }
    }
}
