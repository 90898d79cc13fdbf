//! `Magpie.toml` (language reference, section 16; GPU specification, section 12).

mod read;
mod tables;

pub(crate) use tables::is_package_name;

use crate::options::Fallback;
use magpie_diag::{Code, Diagnostic, FileId, Span};
use magpie_types::kernel::GpuBackend;
use std::path::PathBuf;

/// The file's name.
pub(crate) const FILE_NAME: &str = "Magpie.toml";

/// Copies of generic items that a build may make unless the manifest says otherwise.
pub(crate) const DEFAULT_MAX_INSTANCES: u32 = 10_000;

/// Everything a manifest says. What it leaves out is `None` or the default.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Manifest {
    /// `[package] name`: the first word of the paths of its modules.
    pub package: Option<String>,
    /// `[build] entry`, relative to the manifest.
    pub entry: Option<PathBuf>,
    /// `[build] profile_default`.
    pub profile_default: Option<String>,
    /// `[build] max_mono_instances`.
    pub max_mono_instances: u32,
    /// `[dependencies]` that are folders.
    pub dependencies: Vec<Dependency>,
    /// `[gpu]`.
    pub gpu: GpuKeys,
    /// `[gpu.profiles.NAME]`.
    pub gpu_profiles: Vec<(String, GpuKeys)>,
    /// `[gpu.tools]`.
    pub tools: Tools,
    /// `[gpu.ptx]`.
    pub ptx: PtxKeys,
    /// `[mlx] enabled`.
    pub mlx_enabled: bool,
    /// `[lint]`.
    pub lints: Vec<(Code, LintLevel)>,
}

impl Default for Manifest {
    fn default() -> Manifest {
        Manifest {
            package: None,
            entry: None,
            profile_default: None,
            max_mono_instances: DEFAULT_MAX_INSTANCES,
            dependencies: Vec::new(),
            gpu: GpuKeys::default(),
            gpu_profiles: Vec::new(),
            tools: Tools::default(),
            ptx: PtxKeys::default(),
            mlx_enabled: false,
            lints: Vec::new(),
        }
    }
}

impl Manifest {
    /// Reads a manifest. What is wrong comes beside what could be read: `MPL0002` for text that is
    /// no TOML, for values of the wrong type, and for unknown keys of `[gpu*]` and `[mlx]`;
    /// `MPL0003` for other unknown keys.
    pub(crate) fn parse(text: &str, file: FileId) -> (Manifest, Vec<Diagnostic>) {
        tables::manifest(text, file)
    }

    /// `[gpu]` with the keys of a profile over it.
    pub(crate) fn gpu_for(&self, profile: &str) -> GpuKeys {
        let over = self.gpu_profiles.iter().find(|(name, _)| name == profile);
        over.map_or(self.gpu, |(_, over)| self.gpu.under(over))
    }
}

/// A package in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dependency {
    /// The first word of the paths of its modules.
    pub name: String,
    /// Its folder, relative to the manifest.
    pub path: PathBuf,
    /// Where the manifest says so.
    pub span: Span,
}

/// The keys of `[gpu]` and of its profiles.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct GpuKeys {
    /// `backend`.
    pub backend: Option<GpuBackend>,
    /// `fallback`.
    pub fallback: Option<Fallback>,
    /// `device_index`; `Some(None)` is `-1`, the runtime's own choice.
    pub device_index: Option<Option<u32>>,
    /// `mock_in_tests`.
    pub mock_in_tests: Option<bool>,
}

impl GpuKeys {
    /// These keys where `over` has none.
    fn under(&self, over: &GpuKeys) -> GpuKeys {
        GpuKeys {
            backend: over.backend.or(self.backend),
            fallback: over.fallback.or(self.fallback),
            device_index: over.device_index.or(self.device_index),
            mock_in_tests: over.mock_in_tests.or(self.mock_in_tests),
        }
    }
}

/// `[gpu.tools]`: programs used instead of those that are found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tools {
    /// LLVM's code generator.
    pub llc: Option<PathBuf>,
    /// LLVM's linker for AMD code objects.
    pub lld: Option<PathBuf>,
}

/// `[gpu.ptx]`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct PtxKeys {
    /// Shared memory past 48 KB.
    pub shared_opt_in: bool,
    /// Which of the two PTX writers.
    pub codegen: PtxCodegen,
}

/// How PTX is made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum PtxCodegen {
    /// LLVM where one is found.
    #[default]
    Auto,
    /// LLVM.
    Llvm,
    /// Without LLVM.
    Direct,
}

/// What `[lint]` does to a finding that is no error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LintLevel {
    /// Not reported.
    Allow,
    /// A warning.
    Warn,
    /// An error.
    Deny,
}

#[cfg(test)]
mod tests;
