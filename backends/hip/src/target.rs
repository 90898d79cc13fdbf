//! [`HipTarget`]: what a kernel is compiled for.

use magpie_codegen_llvm::Flavor;
use magpie_types::kernel::GpuBackend;

/// An AMD GPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HipTarget {
    /// The processor, as `gfx1030`; what follows a colon in HIP's names (`gfx90a:xnack-`) are its
    /// settings.
    arch: String,
}

/// The processor when no device is known (GPU specification, section 7.4).
const DEFAULT_ARCH: &str = "gfx1030";

impl Default for HipTarget {
    fn default() -> HipTarget {
        HipTarget { arch: DEFAULT_ARCH.to_string() }
    }
}

impl HipTarget {
    /// The target with a name: `gfx` and the generation, the revision and the stepping in
    /// hexadecimal digits, then perhaps settings.
    ///
    /// # Errors
    /// The name is no such thing.
    pub fn new(name: &str) -> Result<HipTarget, String> {
        let arch = name.split(':').next().unwrap_or_default();
        let digits = arch.strip_prefix("gfx").unwrap_or_default();
        let is_hex = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let known = (3..=5).contains(&digits.len()) && is_hex;
        let settings = name[arch.len()..].split(':').skip(1);
        let proper = |s: &str| matches!(s, "xnack+" | "xnack-" | "sramecc+" | "sramecc-");
        match known && settings.clone().all(proper) {
            true => Ok(HipTarget { arch: name.to_string() }),
            false => Err(format!("`{name}` is no AMD GPU: names are like `{DEFAULT_ARCH}`")),
        }
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

    /// The flavour of LLVM IR: wavefronts have 64 lanes up to generation 9, and 32 from then on.
    pub fn flavor(&self) -> Flavor {
        Flavor::Amdgcn { wave64: self.generation() < 10 }
    }

    /// The back end.
    pub const BACKEND: GpuBackend = GpuBackend::Hip;
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
        for bad in ["", "gfx", "sm_70", "gfx10z0", "gfx1030:fast", "gfx1030;rm"] {
            assert!(HipTarget::new(bad).is_err(), "{bad}");
        }
    }
}
