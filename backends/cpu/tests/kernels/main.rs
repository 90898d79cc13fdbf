//! Kernels as machine code against the reference interpreter.

mod calls;
mod random;
mod regions;
mod rows;
mod subgroups;
#[path = "../support/mod.rs"]
mod support;

use magpie_diag::FileId;
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::passes::{Pipeline, carry_callees};
use magpie_mpir::{FnId, Module, parse};
use magpie_types::TypeKind;
use support::{Case, execute};

/// Runs the first kernel of a module on both, and gives the buffers of the machine code. Buffers
/// and scalars (one behind the other, each at its size) fill the parameters in order. Loops with
/// barriers run as they are and unrolled.
fn run(
    text: &str,
    grid: [u32; 3],
    block: [u32; 3],
    buffers: &[(Vec<u8>, u64)],
    scalars: &[u8],
) -> Vec<Vec<u8>> {
    let mut module: Module = parse(text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
    let kernel = module.fn_ids().find(|&f| module.func(f).is_kernel()).expect("a kernel");
    carry_callees(&mut module, kernel);
    let (mut buffer, mut at) = (0, 0);
    let arguments: Vec<Argument> = module
        .func(kernel)
        .params
        .iter()
        .map(|&(_, ty)| match module.types.kind(ty) {
            TypeKind::Buffer(_) => {
                buffer += 1;
                Argument::Buffer(buffer - 1)
            }
            _ => {
                let size = module.types.layout(ty).size as usize;
                at += size;
                Argument::Scalar(scalars[at - size..at].to_vec())
            }
        })
        .collect();
    let bytes: Vec<Vec<u8>> = buffers.iter().map(|(b, _)| b.clone()).collect();
    let case = Case { grid, block, arguments: &arguments, buffers: &bytes };
    let out = execute(&module, kernel, &case);
    assert_eq!(out, interpret(&module, kernel, &case), "machine code and interpreter differ");
    let mut unrolled = module.func(kernel).clone();
    Pipeline::new().unroll_barriers(&module, &mut unrolled);
    module.fns[kernel.index()] = unrolled;
    assert_eq!(out, execute(&module, kernel, &case), "the unrolled kernel differs");
    out
}

/// The buffers after the launch on the interpreter.
fn interpret(module: &Module, kernel: FnId, case: &Case) -> Vec<Vec<u8>> {
    let mut memory = case.buffers.to_vec();
    let mut views: Vec<Buffer> = memory.iter_mut().map(|m| Buffer { bytes: m }).collect();
    let launch = Launch::new(case.grid, case.block);
    run_kernel(module, kernel, launch, case.arguments, &mut views, &mut |_| {})
        .unwrap_or_else(|e| panic!("{e}"));
    memory
}

fn u32s(v: &[u32]) -> (Vec<u8>, u64) {
    (v.iter().flat_map(|x| x.to_le_bytes()).collect(), v.len() as u64)
}

fn f32s(v: &[f32]) -> (Vec<u8>, u64) {
    (v.iter().flat_map(|x| x.to_le_bytes()).collect(), v.len() as u64)
}

fn as_u32s(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}
