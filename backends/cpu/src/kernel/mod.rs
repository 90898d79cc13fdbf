//! Kernels as work-group functions ([`magpie_types::kernel::HostKernelFn`]).
//!
//! A kernel is cut where its invocations meet ([`regions`]); each region becomes a loop over the invocations
//! of the workgroup inside one function, and the edges between regions become the spine. Values
//! that live across regions are carried as [`carried`] decides. Subgroups ([`subgroup`]) are
//! [`magpie_types::kernel::HOST_SUBGROUP_SIZE`] invocations. Recursive functions are functions of their
//! own ([`calls`]).

mod body;
mod calls;
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
use calls::Callees;
use cranelift_codegen::ir;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{FuncId, Linkage, Module as _};
use emit::{Emitter, Kind, Unit};
use magpie_mpir::analysis::{Cfg, Uniformity};
use magpie_mpir::passes::{IndexWidth, PassContext, Pipeline, lower_vectors};
use magpie_mpir::{Module, MpirFn};
use magpie_types::kernel::{HostKernel, KernelLayout, ParamLayout};
use memory::Memory;

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

/// Rewrites a body of a kernel, and the functions that it carries, to what [`compile_kernel`] takes.
pub fn lower_kernel(module: &Module, body: &mut MpirFn, pipeline: &mut Pipeline) {
    let mut lower = |f: &mut MpirFn| {
        pipeline.lower_bounds_checks(module, f, IndexWidth::Bits64);
        // Behind the checks: a robust load of a vector chooses between it and zero.
        lower_vectors(f, &module.types, &mut PassContext::new());
    };
    lower(body);
    body.callees.iter_mut().for_each(|(_, callee)| lower(callee));
}

/// Compiles bodies of one kernel. Each is closed but for recursive functions that it carries, without
/// aggregates other than parameters, vectors, or checked accesses ([`lower_kernel`]); `layout` is that
/// of the kernel's own parameters.
pub fn compile_kernel(
    module: &Module,
    bodies: &[KernelBody],
    layout: &KernelLayout,
    runtime: &mut dyn Runtime,
) -> Result<KernelCode, JitError> {
    let code = Code::new(runtime)?;
    let ctx = code.jit.make_context();
    let mut compiler = Compiler { module, code, ctx, scratch: FunctionBuilderContext::new() };
    let mut made = Vec::new();
    let mut shared_bytes = 0;
    for (n, body) in bodies.iter().enumerate() {
        let name = format!("mp$0$KERNEL${}${n}", body.code.sid.as_str());
        let callees = compiler.functions(&name, body.code)?;
        let sig = emit::signature(&compiler.code);
        let id = compiler.code.jit.declare_function(&name, Linkage::Local, &sig)?;
        let kind = Kind::Kernel(body.workgroup);
        let memory = compiler.define(id, sig, body.code, &layout.params, &callees, kind)?;
        shared_bytes = shared_bytes.max(memory.shared_bytes);
        made.push((id, memory.frame_bytes));
    }
    let mut code = compiler.code;
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

/// Makes the functions of a kernel's bodies, one after the other.
struct Compiler<'a, 'r> {
    module: &'a Module,
    code: Code<'r>,
    ctx: cranelift_codegen::Context,
    scratch: FunctionBuilderContext,
}

impl Compiler<'_, '_> {
    /// The recursive functions that a body of a kernel carries.
    fn functions(&mut self, kernel: &str, body: &MpirFn) -> Result<Callees, JitError> {
        let mut callees = Callees::new();
        for (n, (callee, f)) in body.callees.iter().enumerate() {
            calls::check(&self.module.types, f)?;
            let sig = calls::signature(&self.code, self.module, f);
            let name = format!("{kernel}${n}");
            let id = self.code.jit.declare_function(&name, Linkage::Local, &sig)?;
            callees.push((*callee, id));
        }
        for ((_, f), &(_, id)) in body.callees.iter().zip(&callees) {
            let sig = calls::signature(&self.code, self.module, f);
            let params = calls::params(self.module, f);
            self.define(id, sig, f, &params, &callees, Kind::Function)?;
        }
        Ok(callees)
    }

    /// Defines a function; gives back the memory that it needs.
    fn define(
        &mut self,
        id: FuncId,
        sig: ir::Signature,
        f: &MpirFn,
        params: &[ParamLayout],
        callees: &Callees,
        kind: Kind,
    ) -> Result<Memory, JitError> {
        let Compiler { module, code, ctx, scratch } = self;
        let mut f = f.clone();
        let meetings = regions::split_at_meetings(&mut f);
        let cfg = Cfg::new(&f);
        let uniform = Uniformity::new(&f, &module.types, &cfg);
        let plan = regions::plan(&f, &cfg, &uniform, &meetings);
        let carried = carried::carried(&f, &module.types, &plan, &uniform);
        code.start_function();
        ctx.func.signature = sig;
        ctx.func.name = ir::UserFuncName::user(0, id.as_u32());
        let config = code.jit.target_config();
        let b = FunctionBuilder::new(&mut ctx.func, scratch);
        let unit = Unit { module, f: &f, params, plan: &plan, carried: &carried, callees, kind };
        let mut emitter = Emitter::new(unit, b, code);
        match kind {
            Kind::Kernel(_) => emitter.function(),
            Kind::Function => emitter.region_body(),
        }
        let Emitter { b, memory, failure, .. } = emitter;
        if let Some(reason) = failure {
            return Err(JitError(reason));
        }
        b.finalize(config);
        code.jit.define_function(id, ctx)?;
        code.jit.clear_context(ctx);
        Ok(memory)
    }
}
