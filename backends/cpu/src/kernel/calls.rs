//! Calls of the recursive functions that a kernel carries.
//!
//! Each is a function of its own and runs for one invocation. Its first argument is the address of
//! what it must know of that invocation, the [`Context`], which the kernel keeps on its stack; a
//! buffer is two arguments, its data and its length. A call for which little of the stack is left
//! reports that calls are too deep and returns zero, as do all later ones of the invocation.

use super::emit::{Counters, Emitter, prim_of};
use super::launch::{BufferArg, Launch};
use super::memory::array_bytes;
use crate::jit::{Code, JitError};
use crate::pure::{clif_type, constant};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, InstBuilder, MemFlagsData, Signature, StackSlotData, StackSlotKind, types,
};
use cranelift_frontend::FunctionBuilder;
use cranelift_module::{FuncId, Module as _};
use magpie_mpir::{FnId, Inst, Module, MpirFn, Op, Value};
use magpie_types::kernel::{BufferParam, HostLaunch, ParamLayout};
use magpie_types::{TypeCtx, TypeId, TypeKind, fixed};
use std::mem::offset_of;

/// Bytes of stack that calls of one invocation may take together. Threads have at least twice as
/// much.
const STACK_BYTES: i64 = 1 << 20;
/// Bytes of arrays that a recursive function may have: that a call is too deep shows when it has
/// begun.
const MAX_ARRAY_BYTES: u32 = 256 << 10;

/// What a function knows of the invocation that it runs for.
#[repr(C)]
struct Context {
    workgroup: [u32; 3],
    thread: [u32; 3],
    linear: u64,
    launch: u64,
    /// Below this address the stack may not grow.
    limit: u64,
}

const TRUSTED: MemFlagsData = MemFlagsData::trusted();

/// Refuses a recursive function with so large arrays that its first call could leave the stack.
pub(super) fn check(types: &TypeCtx, f: &MpirFn) -> Result<(), JitError> {
    let insts = f.blocks.iter().flat_map(|b| &b.insts).map(|&i| f.inst(i));
    let arrays = insts.filter(|inst| inst.op == Op::GpuLocal);
    let bytes = arrays.fold(0u32, |sum, inst| sum.saturating_add(array_bytes(types, inst.ty)));
    match bytes <= MAX_ARRAY_BYTES {
        true => Ok(()),
        false => Err(JitError(format!(
            "the recursive function `{}` has {bytes} bytes of arrays, more than {MAX_ARRAY_BYTES}",
            f.name
        ))),
    }
}

/// The signature of a recursive function.
pub(super) fn signature(code: &Code, module: &Module, f: &MpirFn) -> Signature {
    let mut sig = code.jit.make_signature();
    sig.params.push(AbiParam::new(types::I64));
    for &(_, ty) in &f.params {
        match module.types.kind(ty) {
            TypeKind::Buffer(_) => sig.params.extend([AbiParam::new(types::I64); 2]),
            _ => sig.params.push(AbiParam::new(clif_type(prim_of(module, ty)))),
        }
    }
    if f.ret_ty != fixed::UNIT {
        sig.returns.push(AbiParam::new(clif_type(prim_of(module, f.ret_ty))));
    }
    sig
}

/// The parameters of a recursive function, for [`Emitter`]; only what they are counts, as they come in
/// registers.
pub(super) fn params(module: &Module, f: &MpirFn) -> Vec<ParamLayout> {
    let mut buffers = 0;
    let param = |&(_, ty): &(_, TypeId)| match module.types.kind(ty) {
        TypeKind::Buffer(elem) => {
            buffers += 1;
            let stride = module.types.stride(elem);
            ParamLayout::Buffer(BufferParam {
                index: buffers - 1,
                binding: buffers - 1,
                elem,
                host_stride: stride,
                device_stride: stride,
                writes: true,
            })
        }
        _ => ParamLayout::Scalar { offset: 0, size: module.types.layout(ty).size, ty },
    };
    f.params.iter().map(param).collect()
}

/// Takes the arguments of a recursive function as those of a launch, and refuses to go on when
/// calls are too deep.
pub(super) fn receive(
    b: &mut FunctionBuilder,
    entry: ir::Block,
    counters: &Counters,
    module: &Module,
    f: &MpirFn,
    params: &[ParamLayout],
) -> Launch {
    let mut args = b.block_params(entry).to_vec().into_iter();
    let mut next = || args.next().expect("the signature has an argument for each parameter");
    let context = next();
    let (mut buffers, mut scalars) = (Vec::new(), Vec::new());
    for param in params {
        match param {
            ParamLayout::Buffer(_) => {
                buffers.push(BufferArg { data: next(), len: next() });
                scalars.push(None);
            }
            ParamLayout::Scalar { .. } => scalars.push(Some(next())),
        }
    }
    let load =
        |b: &mut FunctionBuilder, ty, at: usize| b.ins().load(ty, TRUSTED, context, at as i32);
    let launch = load(b, types::I64, offset_of!(Context, launch));

    let (deep, fine) = (b.create_block(), b.create_block());
    let limit = load(b, types::I64, offset_of!(Context, limit));
    let stack = b.ins().get_stack_pointer(types::I64);
    let is_deep = b.ins().icmp(IntCC::UnsignedLessThan, stack, limit);
    b.ins().brif(is_deep, deep, &[], fine, &[]);
    b.seal_block(deep);
    b.seal_block(fine);
    b.switch_to_block(deep);
    let fault = b.ins().load(types::I64, TRUSTED, launch, offset_of!(HostLaunch, fault) as i32);
    let one = b.ins().iconst(types::I32, 1);
    b.ins().atomic_store(TRUSTED, one, fault);
    let never = b.ins().iconst(types::I64, -1);
    b.ins().store(TRUSTED, never, context, offset_of!(Context, limit) as i32);
    let zero = (f.ret_ty != fixed::UNIT).then(|| constant(b, prim_of(module, f.ret_ty), 0));
    b.ins().return_(zero.as_slice());
    b.switch_to_block(fine);

    let words = [
        (counters.workgroup, offset_of!(Context, workgroup)),
        (counters.thread, offset_of!(Context, thread)),
    ];
    for (vars, at) in words {
        for (n, var) in vars.into_iter().enumerate() {
            let v = load(b, types::I32, at + 4 * n);
            b.def_var(var, v);
        }
    }
    let linear = load(b, types::I64, offset_of!(Context, linear));
    b.def_var(counters.linear, linear);
    Launch::of_call(b, [launch, context], buffers, scalars)
}

impl Emitter<'_, '_, '_> {
    /// A call of a recursive function; its result, when it has one.
    pub(super) fn call(&mut self, i: Inst) -> Option<ir::Value> {
        let f = self.f;
        let callee = f.inst(i).func();
        let Some(&(_, id)) = self.callees.iter().find(|(known, _)| *known == callee) else {
            self.fail(|| "a call of a function that the kernel does not carry".to_string());
            return None;
        };
        let context = match self.launch.context {
            Some(context) => context,
            None => self.new_context(),
        };
        let mut args = vec![context];
        for n in 0..f.args(i).len() {
            let v = f.arg(i, n);
            match self.buffer(v) {
                Some(BufferArg { data, len }) => args.extend([data, len]),
                None => args.push(self.value(v)),
            }
        }
        let function = self.code.jit.declare_func_in_func(id, self.b.func);
        let call = self.b.ins().call(function, &args);
        self.b.inst_results(call).first().copied()
    }

    /// The address of what a function must know of the invocation that runs now.
    fn new_context(&mut self) -> ir::Value {
        let bytes = size_of::<Context>() as u32;
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
        let slot = *self.context_slot.get_or_insert_with(|| self.b.create_sized_stack_slot(data));
        let address = self.b.ins().stack_addr(types::I64, slot, 0);
        let store = |s: &mut Self, v, at: usize| {
            s.b.ins().store(TRUSTED, v, address, at as i32);
        };
        for n in 0..3 {
            let workgroup = self.b.use_var(self.counters.workgroup[n]);
            store(self, workgroup, offset_of!(Context, workgroup) + 4 * n);
            let thread = self.b.use_var(self.counters.thread[n]);
            store(self, thread, offset_of!(Context, thread) + 4 * n);
        }
        let linear = self.b.use_var(self.counters.linear);
        store(self, linear, offset_of!(Context, linear));
        store(self, self.launch.launch, offset_of!(Context, launch));
        let stack = self.b.ins().get_stack_pointer(types::I64);
        let limit = self.b.ins().iadd_imm_s(stack, -STACK_BYTES);
        store(self, limit, offset_of!(Context, limit));
        address
    }

    /// Ends a recursive function.
    pub(super) fn return_value(&mut self, v: Option<Value>) {
        let value = v.filter(|_| self.f.ret_ty != fixed::UNIT).map(|v| self.value(v));
        self.b.ins().return_(value.as_slice());
    }
}

/// What a function that a kernel carries is called by.
pub(super) type Callees = Vec<(FnId, FuncId)>;
