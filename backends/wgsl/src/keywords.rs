//! Words that no identifier of a kernel may be.

use crate::functions::is_function;

/// Whether a word means something to WGSL or to the code around the body of a kernel.
pub(crate) fn is_reserved(word: &str) -> bool {
    let is_listed = [KEYWORDS, TYPES, USED].iter().any(|l| l.split(' ').any(|w| w == word));
    is_listed || is_function(word) || word.starts_with("Element")
}

/// Keywords and reserved words of WGSL (sections 15.1 and 15.2) that source names can have.
const KEYWORDS: &str = "alias break case const const_assert continue continuing default diagnostic discard else \
     enable false fn for if let loop override requires return struct switch true var while NULL \
     Self abstract active alignas alignof as asm asm_fragment async attribute auto await become \
     cast catch class co_await co_return co_yield coherent column_major common compile \
     compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype \
     delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external \
     fallthrough filter final finally friend from fxgroup get goto groupshared highp impl \
     implements import inline instanceof interface layout lowp macro macro_rules match mediump \
     meta mod module move mut mutable namespace new nil noexcept noinline nointerpolation \
     non_coherent noncoherent noperspective null nullptr of operator package packoffset partition \
     pass patch pixelfragment precise precision premerge priv protected pub public readonly ref \
     regardless register reinterpret_cast require resource restrict self set shared sizeof smooth \
     snorm static static_assert static_cast std subroutine super target template this \
     thread_local throw trait try type typedef typeid typename typeof union unless unorm unsafe \
     unsized use using varying virtual volatile wgsl where with writeonly yield";

/// Types that kernels use; an identifier may have such a name, but then hides the type.
const TYPES: &str = "array atomic bool f16 f32 i32 u32 vec2 vec3 vec4 function private storage uniform workgroup \
     read read_write write";

/// What the emitted code calls and declares besides its own functions and structures: built-in
/// functions, entry parameters, the scalar block.
const USED: &str = "abs acos all any arrayLength asin atan atan2 atomicAdd atomicAnd atomicCompareExchangeWeak \
     atomicExchange atomicLoad atomicMax atomicMin atomicOr atomicStore atomicSub atomicXor \
     bitcast ceil cos cosh countLeadingZeros countOneBits countTrailingZeros cross dot exp exp2 \
     floor fma length log log2 max min mix normalize pack2x16float pow reflect round select sin \
     sinh sqrt storageBarrier subgroupAdd subgroupAll subgroupAny subgroupExclusiveAdd \
     subgroupMax subgroupMin subgroupShuffle subgroupShuffleDown subgroupShuffleUp \
     subgroupShuffleXor tan tanh trunc unpack2x16float workgroupBarrier workgroupUniformLoad main \
     scalars Scalars zero local_id workgroup_id global_id num_workgroups local_index \
     subgroup_size subgroup_lane";
