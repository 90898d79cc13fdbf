//! Kernels as work-group functions ([`magpie_types::kernel::HostKernelFn`]).
//!
//! A kernel is cut where its invocations meet ([`regions`]); each region becomes a loop over the invocations
//! of the workgroup inside one function, and the edges between regions become the spine. Values
//! that live across regions are carried as [`carried`] decides. Subgroups ([`subgroup`]) are
//! [`magpie_types::kernel::HOST_SUBGROUP_SIZE`] invocations.

mod body;
mod carried;
mod dispatch;
mod emit;
mod exchange;
mod known;
mod launch;
mod memory;
mod range;
mod regions;
mod row;
mod subgroup;
mod vector;
mod vectors;

pub(crate) use subgroup::execute as execute_subgroup;
pub use vector::MAX_NEAR_LEN;

use crate::jit::{Code, Executable, JitError};
use crate::runtime::Runtime;
use cranelift_codegen::ir;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{Linkage, Module as _};
use magpie_mpir::analysis::{Cfg, Uniformity};
use magpie_mpir::passes::{IndexWidth, PassContext, Pipeline, lower_vectors};
use magpie_mpir::{Module, MpirFn};
use magpie_types::kernel::{HostKernel, KernelLayout};

/// A compiled body of a kernel; its code lives as long as the [`KernelCode`] it is part of.
pub struct KernelCode {
    /// Entry and frame size of each body, in the order given.
    pub bodies: Vec<HostKernel>,
    /// Shared memory of a workgroup in bytes, for [`KernelLayout::shared_bytes`].
    pub shared_bytes: u32,
    /// Keeps the code mapped.
    pub code: Executable,
}

/// A body of a kernel, to be compiled.
#[derive(Clone, Copy, Debug)]
pub struct KernelBody<'a> {
    /// Its code, after [`lower_kernel`].
    pub code: &'a MpirFn,
    /// The size of workgroups, when the body is for launches of this size only, in which no buffer
    /// has more than [`MAX_NEAR_LEN`] elements.
    pub workgroup: Option<[u32; 3]>,
}

/// Rewrites a closed body of a kernel to what [`compile_kernel`] takes.
pub fn lower_kernel(module: &Module, body: &mut MpirFn, pipeline: &mut Pipeline) {
    pipeline.lower_bounds_checks(module, body, IndexWidth::Bits64);
    // Behind the checks: a robust load of a vector chooses between it and zero.
    lower_vectors(body, &module.types, &mut PassContext::new());
}

/// Compiles bodies of one kernel. Each is closed, without aggregates other than parameters,
/// vectors, or checked accesses ([`lower_kernel`]); `layout` is that of the kernel's own parameters.
pub fn compile_kernel(
    module: &Module,
    bodies: &[KernelBody],
    layout: &KernelLayout,
    runtime: &mut dyn Runtime,
) -> Result<KernelCode, JitError> {
    let mut code = Code::new(runtime)?;
    let mut ctx = code.jit.make_context();
    let mut scratch = FunctionBuilderContext::new();
    let mut made = Vec::new();
    let mut shared_bytes = 0;
    for (n, body) in bodies.iter().enumerate() {
        let mut f = body.code.clone();
        let meetings = regions::split_at_meetings(&mut f);
        let cfg = Cfg::new(&f);
        let uniform = Uniformity::new(&f, &module.types, &cfg);
        let plan = regions::plan(&f, &cfg, &uniform, &meetings);
        let carried = carried::carried(&f, &module.types, &plan, &uniform);
        code.start_function();
        let sig = emit::signature(&code);
        let name = format!("mp$0$KERNEL${}${n}", f.sid.as_str());
        let id = code.jit.declare_function(&name, Linkage::Local, &sig)?;
        ctx.func.signature = sig;
        ctx.func.name = ir::UserFuncName::user(0, id.as_u32());
        let config = code.jit.target_config();
        let body = KernelBody { code: &f, ..*body };
        let b = FunctionBuilder::new(&mut ctx.func, &mut scratch);
        let mut emitter = emit::Emitter::new(module, body, layout, &plan, &carried, b, &mut code);
        emitter.function();
        if let Some(reason) = emitter.failure {
            return Err(JitError(reason));
        }
        let frame_bytes = emitter.frame_bytes();
        shared_bytes = shared_bytes.max(emitter.shared_bytes());
        emitter.b.finalize(config);
        code.jit.define_function(id, &mut ctx)?;
        code.jit.clear_context(&mut ctx);
        made.push((id, frame_bytes));
    }
    code.jit.finalize_definitions()?;
    let bodies = made
        .into_iter()
        .map(|(id, frame_bytes)| HostKernel {
            entry: code.jit.get_finalized_function(id) as usize,
            frame_bytes,
        })
        .collect();
    Ok(KernelCode { bodies, shared_bytes, code: Executable::new(code.jit) })
}
