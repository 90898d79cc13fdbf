//! [`Flavor`]: the machines that the writer knows, and what each does natively.

use magpie_gpu::legalize::LegalOps;
use magpie_types::kernel::GpuBackend;

/// The oldest LLVM that the text is for.
pub const MIN_LLVM: u32 = 16;

/// What a kernel becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flavor {
    /// Code for NVIDIA GPUs.
    Nvptx {
        /// Compute capability: 70 for 7.0.
        sm: u32,
    },
    /// Code for AMD GPUs.
    Amdgcn {
        /// Whether wavefronts have 64 lanes; 32 otherwise.
        wave64: bool,
    },
}

/// Memory that pointers of a kernel name, by where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Space {
    /// Buffers.
    Global,
    /// Arrays of the workgroup.
    Shared,
    /// Arrays of the invocation.
    Private,
    /// Parameters that are passed as bytes.
    Argument,
}

impl Flavor {
    /// The target triple.
    pub fn triple(self) -> &'static str {
        match self {
            Flavor::Nvptx { .. } => "nvptx64-nvidia-cuda",
            Flavor::Amdgcn { .. } => "amdgcn-amd-amdhsa",
        }
    }

    /// The back end that the code is for.
    pub fn backend(self) -> GpuBackend {
        match self {
            Flavor::Nvptx { .. } => GpuBackend::Ptx,
            Flavor::Amdgcn { .. } => GpuBackend::Hip,
        }
    }

    /// What LLVM's code generators do as exactly as the numeric table says.
    pub fn legal_ops(self, llvm: u32) -> LegalOps {
        let is_amd = matches!(self, Flavor::Amdgcn { .. });
        LegalOps {
            float16: true,
            // Emulation by LLVM rounds some operations twice.
            bfloat16: matches!(self, Flavor::Nvptx { sm: 90.. }) && llvm >= 18,
            bfloat16_casts: false,
            int8: true,
            int16: true,
            float64: true,
            // Division by zero is undefined.
            total_division: false,
            // Larger amounts give poison.
            masked_shifts: false,
            rotates: true,
            ctz: true,
            saturating_casts: true,
            // Before 18 square roots on AMD GPUs are what the hardware gives, which is an ulp off.
            exact_division: !is_amd || llvm >= 18,
            exact_fma: true,
            ordered_min_max: true,
            exact_rem: false,
            half_division: false,
            double_to_half: true,
            math: false,
        }
    }

    /// Lanes of a subgroup.
    pub(crate) fn lanes(self) -> u32 {
        match self {
            Flavor::Amdgcn { wave64: true } => 64,
            Flavor::Amdgcn { wave64: false } | Flavor::Nvptx { .. } => 32,
        }
    }

    /// The type of a set of lanes.
    pub(crate) fn lane_mask(self) -> &'static str {
        if self.lanes() == 64 { "i64" } else { "i32" }
    }

    /// The pointer type of a space.
    pub(crate) fn pointer(self, space: Space) -> &'static str {
        match (space, self) {
            (Space::Global, _) => "ptr addrspace(1)",
            (Space::Shared, _) => "ptr addrspace(3)",
            (Space::Private, Flavor::Amdgcn { .. }) => "ptr addrspace(5)",
            (Space::Argument, Flavor::Amdgcn { .. }) => "ptr addrspace(4)",
            (Space::Private | Space::Argument, Flavor::Nvptx { .. }) => "ptr",
        }
    }

    /// Who sees an atomic operation.
    pub(crate) fn scope(self, space: Space) -> &'static str {
        match (space, self) {
            (Space::Shared, Flavor::Nvptx { .. }) => "block",
            (Space::Shared, Flavor::Amdgcn { .. }) => "workgroup",
            (_, Flavor::Nvptx { .. }) => "device",
            (_, Flavor::Amdgcn { .. }) => "agent",
        }
    }
}
