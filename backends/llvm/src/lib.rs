//! LLVM IR of kernels as text, and the LLVM that turns it into code.
//!
//! [`write_kernel`] takes a kernel that the pipeline has closed and optimised
//! (`docs/internals/pipeline.md`), legalises a copy of it for a [`Flavor`], makes its bounds checks
//! explicit, and writes one module. [`tool`] finds an LLVM on the machine and runs it.
//!
//! # The module
//!
//! - Opaque pointers; for LLVM 16 and newer. No data layout: LLVM puts in that of its target.
//! - One function with the calling convention of kernels and the name of the layout, after the
//!   recursive functions that it calls, which are internal. Parameters in
//!   the order of the kernel: a buffer is a pointer into address space 1, a scalar is by value (a
//!   bool is a byte), a value struct or vector is an array of its bytes. The lengths of buffers
//!   follow, as `i64`.
//! - The workgroup size of the source bounds registers: `maxntid` of NVIDIA, the flat workgroup
//!   size of AMD. `gpu.workgroup_size` reads what the launch says.
//! - Values are `%v` and the number of the MPIR value, blocks are `%b` and theirs: the control-flow
//!   graph is the kernel's own, reducible or not, and phis stay phis.
//! - Float constants are the bits of their value.
//!
//! # Memory
//!
//! - Shared arrays are globals in address space 3; on NVIDIA GPUs they lie in one dynamic array when
//!   they need more than [`magpie_types::kernel::CUDA_STATIC_SHARED`]. Private arrays are allocas.
//! - Vectors move as wholes, with the alignment of their element.
//! - Parameters may be one buffer, so nothing is `noalias`.
//! - Atomics are relaxed, at the scope of the device for buffers and of the workgroup for shared
//!   arrays.
//! - `gpu.barrier` orders the workgroup's accesses: `barrier0` of NVIDIA does so itself; on AMD
//!   GPUs it stands between a release and an acquire fence of the workgroup.
//!
//! # Numbers
//!
//! | operation | how |
//! | --- | --- |
//! | integer ops, comparisons, conversions | native; legalised where LLVM's are undefined (division, shifts); float to integer by the saturating intrinsics |
//! | floats | native, with those fast-math flags that the flags of the op allow: `contract`, `reassoc`, `afn arcp`, `nnan`, `nsz` |
//! | `÷`, `sqrt` | correctly rounded by the code generators; f16 through f32; the approximations of NVIDIA hardware where `afn` allows them |
//! | `f.min f.max` | `minimumnum maximumnum` from LLVM 22 on; before, `minnum maxnum`, and equal operands joined bit by bit so that -0 is below +0 |
//! | bf16 | `bfloat` from sm_90 on; else carried as its bits and computed in f32 |
//! | `f.rem`, elementary functions | legalised; `exp2 log2 sin cos` of f32 by hardware where `afn` allows it |
//!
//! Loops without side effects are not undefined: there is no `mustprogress`.

mod emitter;
mod flavor;
mod interface;
mod intrinsics;
mod lines;
mod memory;
mod ops;
pub mod tool;
mod types;

pub use flavor::{Flavor, MIN_LLVM};

use emitter::{Emitter, Function, ModuleText};
use interface::tail;
use magpie_diag::{Diagnostic, SourceMap};
use magpie_gpu::compile::{lower_callees, lower_for_target};
use magpie_gpu::layout::{LayoutRules, compute_layout};
use magpie_mpir::MpirFn;
use magpie_mpir::passes::{IndexWidth, PassContext, lower_vectors};
use magpie_types::TypeCtx;
use magpie_types::kernel::KernelLayout;

/// The module of a kernel for the LLVM of a major version; instructions have their places in
/// `sources`, when those are given. Equal input gives equal text.
///
/// # Errors
/// What the flavour cannot express.
pub fn write_kernel(
    kernel: &MpirFn,
    types: &TypeCtx,
    layout: &KernelLayout,
    flavor: Flavor,
    llvm: u32,
    sources: Option<&SourceMap>,
) -> Result<String, Vec<Diagnostic>> {
    let legal = flavor.legal_ops(llvm);
    let (mut f, mut scratch) = lower_for_target(kernel, types, &legal, IndexWidth::Bits64);
    let mut callees = lower_callees(kernel, &mut scratch, &legal, IndexWidth::Bits64);
    // What is exact on vectors is so on their components.
    let lower = |f| lower_vectors(f, &scratch.types, &mut PassContext::default());
    lower(&mut f);
    callees.iter_mut().for_each(|(_, callee)| _ = lower(callee));
    let layouts = kernel.callees.iter().map(|(id, callee)| {
        // Entries have no dot in their name.
        let entry = format!("device.{}", id.0);
        KernelLayout { entry, ..compute_layout(callee, types, &LayoutRules::ARGUMENTS) }
    });
    let functions: Vec<Function> = callees
        .iter()
        .zip(layouts)
        .map(|((id, f), layout)| Function { id: *id, f, layout })
        .collect();
    let mut module = ModuleText::default();
    let mut write = |f, layout, sources| {
        let emitter = Emitter::new(&scratch.types, f, layout, &functions, flavor, llvm, sources);
        emitter.write(&mut module).map_err(|d| vec![*d])
    };
    functions.iter().try_for_each(|function| write(function.f, &function.layout, None))?;
    write(&f, layout, sources)?;
    Ok(module.finish(&layout.entry, flavor, &tail(layout, flavor)))
}
