//! [`Capability`]: the words of `requires()`, where each exists, and which operation needs which.

use magpie_mpir::Op;
use magpie_types::PrimType;
use magpie_types::kernel::GpuBackend;

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident $word:literal $spv:literal $msl:literal $ptx:literal $hip:literal $wgsl:literal;)*) => {
        /// A capability that a kernel can require (GPU specification, section 6.1).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Capability { $($(#[$doc])* $name,)* }

        impl Capability {
            /// Every capability, in table order.
            pub const ALL: &'static [Capability] = &[$(Capability::$name,)*];

            /// The word in `requires()`.
            pub fn word(self) -> &'static str {
                match self { $(Capability::$name => $word,)* }
            }

            /// Whether the five targets have it, in the order of [`GpuBackend::TARGETS`].
            fn row(self) -> [bool; 5] {
                match self {
                    $(Capability::$name => [$spv == 1, $msl == 1, $ptx == 1, $hip == 1, $wgsl == 1],)*
                }
            }
        }
    };
}

capabilities! {
    //                                                              spv msl ptx hip wgsl
    /// Device-side allocation.
    DeviceMalloc "device_malloc"                                    0 0 1 1 0;
    /// Functions that call themselves.
    Recursion "recursion"                                           0 0 1 1 0;
    /// Kernels that launch kernels.
    DynamicParallelism "dynamic_parallelism"                        0 0 1 1 0;
    /// Atomics on `f32`.
    AtomicsF32 "atomics_f32"                                        1 1 1 1 0;
    /// Atomics on `f64`.
    AtomicsF64 "atomics_f64"                                        0 0 1 1 0;
    /// Operations among the invocations of a subgroup.
    Subgroups "subgroups"                                           1 1 1 1 0;
    /// Cooperative groups.
    CooperativeGroups "cooperative_groups"                          0 0 1 1 0;
    /// 64-bit integers.
    Int64 "int64"                                                   1 1 1 1 0;
    /// Native `f16` arithmetic.
    F16Arithmetic "f16_arithmetic"                                  1 1 1 1 1;
    /// A limit, answered by a host function.
    MaxWorkgroupSize "max_workgroup_size"                           1 1 1 1 0;
    /// A limit, answered by a host function.
    MaxSharedBytes "max_shared_bytes"                               1 1 1 1 0;
    /// A limit, answered by a host function.
    MaxBuffers "max_buffers"                                        1 1 1 1 0;
    /// A limit, answered by a host function.
    WarpSize "warp_size"                                            1 1 1 1 0;
    /// `gpu.metal.simd_shuffle`.
    MetalSimdShuffle "metal.simd_shuffle"                           0 1 0 0 0;
    /// `gpu.metal.simd_sum`.
    MetalSimdReduce "metal.simd_reduce"                             0 1 0 0 0;
    /// `gpu.metal.simd_prefix_sum`.
    MetalSimdPrefix "metal.simd_prefix"                             0 1 0 0 0;
    /// Image blocks.
    MetalImageblock "metal.imageblock"                              0 1 0 0 0;
    /// Memory of tile shaders.
    MetalTileMemory "metal.tile_memory"                             0 1 0 0 0;
    /// Matrix units.
    CudaTensorCores "cuda.tensor_cores"                             0 0 1 0 0;
    /// Cooperative launches.
    CudaCooperativeLaunch "cuda.cooperative_launch"                 0 0 1 0 0;
    /// Wavefronts of 64.
    HipWave64 "hip.wave64"                                          0 0 0 1 0;
}

impl Capability {
    /// The capability of a word.
    pub fn from_word(word: &str) -> Option<Capability> {
        Capability::ALL.iter().copied().find(|c| c.word() == word)
    }

    /// Whether a target has it. The host has what every GPU target has.
    pub fn is_on(self, target: GpuBackend) -> bool {
        match GpuBackend::TARGETS.iter().position(|&t| t == target) {
            Some(column) => self.row()[column],
            None => self.row()[..4].iter().all(|&has| has),
        }
    }

    /// The targets that have it.
    pub fn targets(self) -> impl Iterator<Item = GpuBackend> {
        GpuBackend::TARGETS.into_iter().filter(move |&t| self.is_on(t))
    }

    /// What an operation on elements of a type needs; `None` when it is portable.
    pub fn of(op: Op, elem: Option<PrimType>) -> Option<Capability> {
        if OF_SUBGROUPS.contains(&op) {
            return Some(Capability::Subgroups);
        }
        if ATOMICS.contains(&op) {
            return match elem {
                Some(PrimType::F32) => Some(Capability::AtomicsF32),
                Some(PrimType::F64) => Some(Capability::AtomicsF64),
                _ => None,
            };
        }
        OF_METAL.iter().find(|row| row.0 == op).map(|row| row.1)
    }

    /// Whether it belongs to Metal, which has a diagnostic of its own.
    pub fn is_metal(self) -> bool {
        self.word().starts_with("metal.")
    }
}

/// Atomic operations.
pub(crate) const ATOMICS: &[Op] = &[
    Op::GpuAtomicAdd,
    Op::GpuAtomicSub,
    Op::GpuAtomicMin,
    Op::GpuAtomicMax,
    Op::GpuAtomicAnd,
    Op::GpuAtomicOr,
    Op::GpuAtomicXor,
    Op::GpuAtomicExchange,
    Op::GpuAtomicCas,
];

const OF_SUBGROUPS: &[Op] = &[
    Op::GpuSubgroupSize,
    Op::GpuSubgroupLaneId,
    Op::GpuSubgroupShuffle,
    Op::GpuSubgroupShuffleDown,
    Op::GpuSubgroupShuffleUp,
    Op::GpuSubgroupShuffleXor,
    Op::GpuSubgroupBroadcast,
    Op::GpuSubgroupSum,
    Op::GpuSubgroupMin,
    Op::GpuSubgroupMax,
    Op::GpuSubgroupPrefixSum,
    Op::GpuSubgroupAny,
    Op::GpuSubgroupAll,
    Op::GpuSubgroupBallot,
];

const OF_METAL: &[(Op, Capability)] = &[
    (Op::GpuMetalSimdShuffle, Capability::MetalSimdShuffle),
    (Op::GpuMetalSimdSum, Capability::MetalSimdReduce),
    (Op::GpuMetalSimdPrefixSum, Capability::MetalSimdPrefix),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_distinct() {
        for &c in Capability::ALL {
            assert_eq!(Capability::from_word(c.word()), Some(c));
        }
        assert_eq!(Capability::from_word("nonsense"), None);
    }

    /// Ops that belong together have names that begin alike: none is missing in the lists.
    #[test]
    fn ops_are_listed_by_family() {
        for &op in Op::ALL {
            let name = op.name();
            assert_eq!(OF_SUBGROUPS.contains(&op), name.starts_with("gpu.subgroup."), "{name}");
            assert_eq!(ATOMICS.contains(&op), name.starts_with("gpu.atomic."), "{name}");
            let is_metal = OF_METAL.iter().any(|row| row.0 == op);
            assert_eq!(is_metal, name.starts_with("gpu.metal."), "{name}");
        }
    }

    #[test]
    fn the_table_of_the_specification() {
        let on = |c: Capability| c.targets().map(|t| t.name()).collect::<Vec<_>>().join(" ");
        assert_eq!(on(Capability::DeviceMalloc), "ptx hip");
        assert_eq!(on(Capability::AtomicsF32), "spv msl ptx hip");
        assert_eq!(on(Capability::F16Arithmetic), "spv msl ptx hip wgsl");
        assert_eq!(on(Capability::MetalTileMemory), "msl");
        assert_eq!(on(Capability::CudaTensorCores), "ptx");
        assert_eq!(on(Capability::HipWave64), "hip");
        assert!(Capability::Subgroups.is_on(GpuBackend::Cpu));
        assert!(!Capability::DeviceMalloc.is_on(GpuBackend::Interp));
    }

    #[test]
    fn float_atomics_need_one() {
        let of = |elem| Capability::of(Op::GpuAtomicAdd, Some(elem));
        assert_eq!(of(PrimType::I32), None);
        assert_eq!(of(PrimType::F32), Some(Capability::AtomicsF32));
        assert_eq!(of(PrimType::F64), Some(Capability::AtomicsF64));
        assert_eq!(Capability::of(Op::IAdd, Some(PrimType::F32)), None);
    }
}
