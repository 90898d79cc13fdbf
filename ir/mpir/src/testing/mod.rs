//! Random kernels for tests: well formed, well defined and terminating by construction.
//!
//! [`random_kernel`] makes a module with one kernel, some device functions that it calls, and the
//! arguments of a launch. What makes its result the same on every back end:
//! - Loops count to a small bound.
//! - An invocation writes only its own elements of the output buffers, and reads no others of
//!   them. Input buffers are never written. Indices outside occur; accesses are checked.
//! - Shared memory is written before a barrier and read behind it, in uniform control flow.
//! - Atomics are of one kind a kernel, commute, and nothing depends on their results.
//! - The bits of a NaN are never looked at: compare buffers with [`RandomBuffer::agrees_with`].
//!
//! The same seed and configuration give the same kernel.

mod control;
mod device_fn;
mod graph;
mod host_calls;
mod host_loop;
mod kernel;
mod memory;
pub mod ops;
mod rng;
mod scalar;

use crate::{FnId, Module, Op};
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};

pub use graph::{GraphShape, any_graph, random_graph_kernel, reducible_graph};
pub use host_calls::random_calls;
pub use host_loop::{LoopProgram, random_loop};
pub use kernel::random_kernel;
pub use rng::Rng;

/// What a random kernel may contain.
#[derive(Clone, Debug)]
pub struct KernelConfig {
    /// Scalar types to compute with, besides `u32` and `bool`, which are always used.
    pub types: Vec<PrimType>,
    /// Which scalar operations to use. Those that the generator does not know are never used.
    pub ops: fn(Op) -> bool,
    /// About how many instructions.
    pub size: usize,
    /// How deep branches and loops nest.
    pub depth: usize,
    /// Branches, switches, loops and early returns.
    pub control_flow: bool,
    /// Shared arrays and barriers.
    pub shared_memory: bool,
    /// Private arrays.
    pub local_memory: bool,
    /// Atomics on integers.
    pub atomics: bool,
    /// Vectors of floats and integers.
    pub vectors: bool,
    /// Value structs, as values and in buffers.
    pub structs: bool,
    /// Calls of device functions.
    pub calls: bool,
    /// Subgroup operations, in uniform control flow.
    pub subgroups: bool,
    /// Infinities, NaN and subnormal numbers among the constants and inputs.
    pub float_specials: bool,
    /// Two output parameters that are one buffer.
    pub aliasing: bool,
}

impl KernelConfig {
    /// Everything but subgroups, with all types of at most 64 bits.
    pub fn all() -> KernelConfig {
        use PrimType::*;
        KernelConfig {
            types: vec![I8, I16, I32, I64, U8, U16, U32, U64, F16, Bf16, F32, F64],
            ops: |_| true,
            size: 60,
            depth: 3,
            control_flow: true,
            shared_memory: true,
            local_memory: true,
            atomics: true,
            vectors: true,
            structs: true,
            calls: true,
            subgroups: false,
            float_specials: true,
            aliasing: true,
        }
    }

    /// What every back end has: 32-bit types, no structs, no vectors.
    pub fn portable() -> KernelConfig {
        KernelConfig {
            types: vec![PrimType::I32, PrimType::U32, PrimType::F32],
            ops: has_exact_result,
            vectors: false,
            structs: false,
            float_specials: false,
            aliasing: false,
            ..KernelConfig::all()
        }
    }
}

/// Whether the result of a scalar operation is the same on every target, bit by bit.
pub fn has_exact_result(op: Op) -> bool {
    !op.info().doc.contains("within the target's accuracy")
}

/// An argument of a random kernel.
#[derive(Clone, Debug)]
pub enum RandomArgument {
    /// The buffer of this number. Two arguments may name one buffer.
    Buffer(usize),
    /// The bytes of a scalar or value struct.
    Scalar(Vec<u8>),
}

/// A buffer of a launch.
#[derive(Clone, Debug)]
pub struct RandomBuffer {
    /// Type of the elements.
    pub element: TypeId,
    /// The elements before the launch, in host layout.
    pub bytes: Vec<u8>,
}

impl RandomBuffer {
    /// Whether two contents of this buffer are the same; all NaN count as one, and bytes between
    /// the members of elements are not looked at.
    pub fn agrees_with(&self, types: &TypeCtx, a: &[u8], b: &[u8]) -> bool {
        self.first_difference(types, a, b).is_none()
    }

    /// The first element in which two contents of this buffer differ.
    pub fn first_difference(&self, types: &TypeCtx, a: &[u8], b: &[u8]) -> Option<usize> {
        let stride = types.stride(self.element).max(1) as usize;
        if a.len() != b.len() {
            return Some(a.len().min(b.len()) / stride);
        }
        let leaves = types.leaves(self.element);
        a.chunks(stride).zip(b.chunks(stride)).position(|(a, b)| {
            leaves.iter().any(|leaf| {
                let (p, lanes) = match types.kind(leaf.ty) {
                    TypeKind::Vec(p, n) => (p, n as usize),
                    _ => (types.element_prim(leaf.ty).unwrap_or(PrimType::U8), 1),
                };
                let size = p.size() as usize;
                (0..lanes).any(|lane| {
                    let at = leaf.offset as usize + lane * size;
                    let bits = |bytes: &[u8]| {
                        let mut word = [0; 8];
                        word[..size]
                            .copy_from_slice(bytes.get(at..at + size).unwrap_or(&[0; 8][..size]));
                        u64::from_le_bytes(word)
                    };
                    let (x, y) = (bits(a), bits(b));
                    let nan = |v| p.is_float() && crate::eval::float_value(p, v).is_nan();
                    x != y && !(nan(x) && nan(y))
                })
            })
        })
    }
}

/// A kernel with the arguments of a launch.
#[derive(Clone, Debug)]
pub struct RandomKernel {
    /// The kernel and the functions that it calls.
    pub module: Module,
    /// The kernel.
    pub kernel: FnId,
    /// Workgroups of the launch.
    pub grid: [u32; 3],
    /// Invocations of a workgroup; the kernel's own size.
    pub block: [u32; 3],
    /// In parameter order.
    pub arguments: Vec<RandomArgument>,
    /// The buffers that the arguments name.
    pub buffers: Vec<RandomBuffer>,
}
