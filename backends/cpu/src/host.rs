//! Host functions (`Domain::LowHost`) as machine code.

use crate::jit::{Code, Executable, JitError};
use crate::pure::{Calls, Pure, clif_type, constant};
use crate::runtime::Runtime;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, BlockArg, InstBuilder, MemFlagsData, Signature, StackSlotData, StackSlotKind,
    TrapCode, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_module::{FuncId, Linkage, Module as _};
use magpie_diag::Span;
use magpie_mpir::analysis::{Cfg, Dominators, LoopId, Loops, Positions};
use magpie_mpir::{Block, Const, Domain, FnId, Inst, Module, MpirFn, Op, Terminator, Value};
use magpie_types::abi::{PanicKind, RtFn};
use magpie_types::{Category, PrimType, TypeCtx, TypeId, TypeKind, fixed};
use rustc_hash::FxHashMap;

/// Compiled host functions.
pub struct HostCode {
    entries: Vec<Option<*const u8>>,
    /// Keeps the code mapped.
    _code: Executable,
}

impl HostCode {
    /// The address of a function, if it was reached from the roots. Its signature is
    /// `extern "C"` with one parameter a leaf, as `docs/internals/pipeline.md` says.
    pub fn address(&self, f: FnId) -> Option<*const u8> {
        self.entries.get(f.index()).copied().flatten()
    }
}

/// Compiles the functions reachable from `roots`. All must be `Domain::LowHost`.
pub fn compile_host(
    module: &Module,
    roots: &[FnId],
    runtime: &mut dyn Runtime,
) -> Result<HostCode, JitError> {
    let mut code = Code::new(runtime)?;
    let reachable = reachable(module, roots);
    let mut ids: Vec<Option<FuncId>> = vec![None; module.fns.len()];
    for &f in &reachable {
        let func = module.func(f);
        let sig = signature(&code, &module.types, func);
        let name = format!("mp$0$FN${}${}", &func.sid.as_str()[2..], f.0);
        ids[f.index()] = Some(code.jit.declare_function(&name, Linkage::Local, &sig)?);
    }
    let mut ctx = code.jit.make_context();
    let mut scratch = FunctionBuilderContext::new();
    for &f in &reachable {
        let Some(id) = ids[f.index()] else { continue };
        let func = module.func(f);
        code.start_function();
        ctx.func.signature = signature(&code, &module.types, func);
        ctx.func.name = ir::UserFuncName::user(0, id.as_u32());
        let b = FunctionBuilder::new(&mut ctx.func, &mut scratch);
        let config = code.jit.target_config();
        let mut t = Translator {
            module,
            f: func,
            b,
            code: &mut code,
            ids: &ids,
            values: vec![None; func.locals.len()],
            vectors: FxHashMap::default(),
            blocks: Vec::new(),
            rotated: Vec::new(),
            variables: Vec::new(),
            entries: FxHashMap::default(),
            waiting: Vec::new(),
            loops: Loops::default(),
            kept: FxHashMap::default(),
            passage: None,
            zero: None,
            here: None,
        };
        t.function();
        t.b.finalize(config);
        code.jit.define_function(id, &mut ctx)?;
        code.jit.clear_context(&mut ctx);
    }
    code.jit.finalize_definitions()?;
    let entries = ids.iter().map(|id| id.map(|id| code.jit.get_finalized_function(id))).collect();
    Ok(HostCode { entries, _code: Executable::new(code.jit) })
}

/// The functions that `roots` call or take the address of, themselves included, in id order.
fn reachable(module: &Module, roots: &[FnId]) -> Vec<FnId> {
    let mut seen = vec![false; module.fns.len()];
    let mut work = roots.to_vec();
    while let Some(f) = work.pop() {
        if std::mem::replace(&mut seen[f.index()], true) {
            continue;
        }
        let func = module.func(f);
        for block in &func.blocks {
            for &i in &block.insts {
                let data = func.inst(i);
                if matches!(data.op, Op::Call | Op::FnAddr) {
                    work.push(data.func());
                }
            }
        }
    }
    module.fn_ids().filter(|f| seen[f.index()]).collect()
}

/// The machine type of a value.
fn machine_type(ctx: &TypeCtx, ty: TypeId) -> ir::Type {
    match ctx.kind(ty) {
        TypeKind::Prim(p) => clif_type(p),
        TypeKind::Enum(e) if ctx.enum_def(e).category == Category::Value => types::I32,
        _ => types::I64,
    }
}

/// The scalar behind a value: handles and addresses are 64-bit numbers.
fn machine_prim(ctx: &TypeCtx, ty: TypeId) -> PrimType {
    match ctx.kind(ty) {
        TypeKind::Prim(p) => p,
        TypeKind::Enum(e) if ctx.enum_def(e).category == Category::Value => PrimType::I32,
        _ => PrimType::U64,
    }
}

fn param(ctx: &TypeCtx, ty: TypeId) -> AbiParam {
    match ty {
        fixed::BOOL => AbiParam::new(types::I8).uext(),
        _ => AbiParam::new(machine_type(ctx, ty)),
    }
}

fn signature(code: &Code, ctx: &TypeCtx, f: &MpirFn) -> Signature {
    debug_assert!(f.domain == Domain::LowHost, "{} is lowered before emission", f.name);
    let mut sig = code.jit.make_signature();
    sig.params.extend(f.params.iter().map(|&(_, ty)| param(ctx, ty)));
    if f.ret_ty != fixed::UNIT {
        sig.returns.push(param(ctx, f.ret_ty));
    }
    sig
}

pub(crate) struct Translator<'a, 'f, 'r> {
    pub(crate) module: &'a Module,
    pub(crate) f: &'a MpirFn,
    pub(crate) b: FunctionBuilder<'f>,
    pub(crate) code: &'a mut Code<'r>,
    ids: &'a [Option<FuncId>],
    pub(crate) values: Vec<Option<ir::Value>>,
    /// By vector: its registers.
    pub(crate) vectors: FxHashMap<Value, Vec<ir::Value>>,
    blocks: Vec<Option<ir::Block>>,
    /// The heads of loops that are emitted at the end of each block before them, instead of once:
    /// the loop then tests its condition at the end of a round, and a round has one jump.
    rotated: Vec<bool>,
    /// By value: what holds it, when it is defined in such a head.
    variables: Vec<Option<Variable>>,
    /// The block for a conditional edge to such a head.
    entries: FxHashMap<(Block, Block), ir::Block>,
    /// Edges of `entries` whose block is still empty.
    waiting: Vec<(Block, Block)>,
    loops: Loops,
    /// By loop: copies of the values from outside that it reads ([`Translator::keep_in_loop`]).
    kept: FxHashMap<LoopId, Vec<(Value, Variable)>>,
    /// Where values pass through ([`Translator::through_memory`]).
    passage: Option<ir::StackSlot>,
    /// The address of a zero.
    zero: Option<*const u8>,
    /// The innermost loop around the block that is emitted.
    here: Option<LoopId>,
}

/// Instructions of the head of a loop, phis not counted, that are worth being emitted again.
const MAX_ROTATED_INSTS: usize = 8;
/// Blocks before the head of a loop, each of which gets a copy.
const MAX_ROTATED_PREDS: usize = 4;
/// Values from outside that a loop gets copies of.
const MAX_KEPT: usize = 16;

impl Translator<'_, '_, '_> {
    fn function(&mut self) {
        let f = self.f;
        let cfg = Cfg::new(f);
        self.blocks = vec![None; f.blocks.len()];
        self.loops = Loops::new(&cfg, &Dominators::new(&cfg));
        self.rotated = vec![false; f.blocks.len()];
        self.variables = vec![None; f.locals.len()];
        for &b in cfg.rpo() {
            if self.is_worth_rotating(&cfg, b) {
                self.rotated[b.index()] = true;
                for v in f.block(b).insts.iter().filter_map(|&i| f.inst(i).result()) {
                    let ty = machine_type(&self.module.types, f.ty(v));
                    self.variables[v.index()] = Some(self.b.declare_var(ty));
                }
            } else {
                let block = self.b.create_block();
                // The entry is no cold block, even of a function that only ends the program.
                if b.index() > 0 && matches!(f.block(b).term, Terminator::Unreachable) {
                    self.b.set_cold_block(block);
                }
                self.blocks[b.index()] = Some(block);
            }
        }
        let Some(entry) = self.blocks.first().copied().flatten() else { return };
        self.b.append_block_params_for_function_params(entry);
        for (n, &(v, _)) in f.params.iter().enumerate() {
            self.values[v.index()] = Some(self.b.block_params(entry)[n]);
        }
        for &b in cfg.rpo() {
            for phi in f.phis(b) {
                let data = f.inst(phi);
                if let (Some(v), Some(block)) = (data.result(), self.blocks[b.index()]) {
                    if self.is_of_vectors(phi) {
                        let registers = self.registers_of(data.ty).into_iter();
                        let registers = registers.map(|ty| self.b.append_block_param(block, ty));
                        let registers = registers.collect();
                        self.vectors.insert(v, registers);
                        continue;
                    }
                    let ty = machine_type(&self.module.types, data.ty);
                    self.values[v.index()] = Some(self.b.append_block_param(block, ty));
                }
            }
        }
        self.keep_in_loops(&cfg);
        for &b in cfg.rpo() {
            if let Some(block) = self.blocks[b.index()] {
                self.b.switch_to_block(block);
                self.block(b);
            }
        }
        while let Some((from, to)) = self.waiting.pop() {
            self.b.switch_to_block(self.entries[&(from, to)]);
            self.head(from, to);
        }
        self.b.seal_all_blocks();
    }

    /// Whether a block is the head of a loop that is small enough to be emitted more than once.
    fn is_worth_rotating(&self, cfg: &Cfg, b: Block) -> bool {
        let f = self.f;
        let preds = cfg.preds(b);
        let is_loop = preds.iter().any(|&p| cfg.is_reachable(p) && cfg.is_retreating(p, b));
        let mut insts = f.block(b).insts.iter().filter(|&&i| f.inst(i).op != Op::Phi);
        let is_cheap = |&i: &Inst| {
            !self.is_of_vectors(i)
                && !matches!(f.inst(i).op, Op::Call | Op::CallAddr | Op::RtRaw | Op::StackSlot)
        };
        is_loop
            && b != Block(0)
            && !preds.contains(&b)
            && preds.len() <= MAX_ROTATED_PREDS
            && matches!(f.block(b).term, Terminator::Cbr { .. })
            && insts.clone().count() <= MAX_ROTATED_INSTS
            && !f.phis(b).any(|i| self.is_of_vectors(i))
            && insts.all(is_cheap)
    }

    /// Finds the values from outside that the innermost loops read. A value that lives across a
    /// call is kept in memory by the register allocator, and then it is in the whole loop behind
    /// the call, which reads and writes it there in each round. A copy made at the entry does not
    /// live across a call.
    fn keep_in_loops(&mut self, cfg: &Cfg) {
        let f = self.f;
        let calls = |&b: &Block| {
            let is_call = |&i: &Inst| matches!(f.inst(i).op, Op::Call | Op::CallAddr | Op::RtRaw);
            !matches!(f.block(b).term, Terminator::Unreachable)
                && f.block(b).insts.iter().any(is_call)
        };
        if !cfg.rpo().iter().any(calls) {
            return;
        }
        let positions = Positions::new(f);
        // The last loop for which each value was noted, plus one.
        let mut noted = vec![0; f.locals.len()];
        for l in self.loops.ids() {
            let blocks = self.loops.blocks(l);
            let is_short = self.loops.is_innermost(l) && !blocks.iter().any(calls);
            if !is_short || !self.rotated[self.loops.header(l).index()] {
                continue;
            }
            let mut kept = Vec::new();
            let insts = blocks.iter().flat_map(|&b| &f.block(b).insts);
            for &v in insts.filter(|&&i| f.inst(i).op != Op::Phi).flat_map(|&i| f.args(i)) {
                let is_outside = self.registers_of(f.ty(v)).is_empty()
                    && positions.def_block(f, v).is_some_and(|b| !self.loops.contains(l, b));
                if is_outside
                    && kept.len() < MAX_KEPT
                    && std::mem::replace(&mut noted[v.index()], l.0 + 1) != l.0 + 1
                {
                    kept.push(v);
                }
            }
            let declare = |v: Value| (v, machine_type(&self.module.types, f.ty(v)));
            let kept = kept.into_iter().map(declare);
            let kept = kept.filter(|(_, ty)| matches!(ty.bytes(), 4 | 8) && !ty.is_vector());
            let kept = kept.map(|(v, ty)| (v, self.b.declare_var(ty))).collect();
            self.kept.insert(l, kept);
        }
    }

    /// Copies what a loop reads from outside, in front of it.
    fn keep(&mut self, l: LoopId) {
        let Some(kept) = self.kept.get(&l).filter(|kept| !kept.is_empty()).cloned() else { return };
        let values: Vec<ir::Value> = kept.iter().map(|&(v, _)| self.value(v)).collect();
        let copies = self.through_memory(&values);
        for (&(_, variable), copy) in kept.iter().zip(copies) {
            self.b.def_var(variable, copy);
        }
    }

    /// Copies of values, at most [`MAX_KEPT`], that the optimiser does not know to be copies, so
    /// that the register allocator finds places for them without regard to the values' own.
    fn through_memory(&mut self, values: &[ir::Value]) -> Vec<ir::Value> {
        let slot = *self.passage.get_or_insert_with(|| {
            let size = 8 * MAX_KEPT as u32;
            self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3))
        });
        let to = self.b.ins().stack_addr(types::I64, slot, 0);
        // With a zero of which it does not know, the optimiser does not see that what is loaded is
        // what was stored.
        let address = *self.zero.get_or_insert_with(|| self.code.runtime.c_string(""));
        let address = self.b.ins().iconst(types::I64, address as i64);
        let trusted = MemFlagsData::trusted();
        let zero = self.b.ins().uload8(types::I64, trusted, address, 0);
        let from = self.b.ins().iadd(to, zero);
        for (n, &value) in (0..).zip(values) {
            self.b.ins().store(trusted, value, to, 8 * n);
        }
        let types = values.iter().map(|&value| self.b.func.dfg.value_type(value));
        let types: Vec<ir::Type> = types.collect();
        (0..).zip(types).map(|(n, ty)| self.b.ins().load(ty, trusted, from, 8 * n)).collect()
    }

    /// Emits the head of a loop at the end of a block before it.
    fn head(&mut self, from: Block, head: Block) {
        let f = self.f;
        self.here = self.loops.innermost(from);
        let arms = |phi| Some((f.inst(phi).result()?, f.phi_value(phi, from)?));
        let arms: Vec<(Value, Value)> = f.phis(head).filter_map(arms).collect();
        // An arm may be another phi of the head: all are read before any changes.
        let read: Vec<ir::Value> = arms.iter().map(|&(_, arm)| self.value(arm)).collect();
        for (&(v, _), value) in arms.iter().zip(read) {
            self.define(v, value);
        }
        if let Some(l) = self.loops.innermost(head).filter(|&l| !self.loops.contains(l, from)) {
            self.keep(l);
        }
        self.block(head);
    }

    fn define(&mut self, v: Value, value: ir::Value) {
        match self.variables[v.index()] {
            Some(variable) => self.b.def_var(variable, value),
            None => self.values[v.index()] = Some(value),
        }
    }

    fn block(&mut self, block: Block) {
        let f = self.f;
        self.here = self.loops.innermost(block);
        for &i in &f.block(block).insts {
            if f.inst(i).op == Op::Phi {
                continue;
            }
            if self.is_of_vectors(i) {
                self.vector_inst(i);
                continue;
            }
            let value = self.inst(i);
            if let (Some(v), Some(value)) = (f.inst(i).result(), value) {
                self.define(v, value);
            }
        }
        self.terminator(block);
    }

    pub(crate) fn value(&mut self, v: Value) -> ir::Value {
        if let Some(kept) = self.here.and_then(|l| self.kept.get(&l))
            && let Some(&(_, variable)) = kept.iter().find(|kept| kept.0 == v)
        {
            return self.b.use_var(variable);
        }
        if let Some(variable) = self.variables[v.index()] {
            return self.b.use_var(variable);
        }
        if let Some(value) = self.values[v.index()] {
            return value;
        }
        let ty = self.f.ty(v);
        let prim = machine_prim(&self.module.types, ty);
        match self.f.as_const(v) {
            Some(Const::Bits(bits)) => constant(&mut self.b, prim, bits),
            Some(Const::Str(s)) => {
                let text = self.module.str(s);
                let address = match ty {
                    fixed::STR => self.code.runtime.str_object(text),
                    _ => self.code.runtime.c_string(text),
                };
                self.b.ins().iconst(types::I64, address as i64)
            }
            // The verifier proves that every other value was defined on the way here.
            Some(Const::Zero | Const::Unit) | None => constant(&mut self.b, prim, 0),
        }
    }

    fn args(&mut self, i: Inst) -> Vec<ir::Value> {
        let f = self.f;
        f.args(i).iter().map(|&v| self.value(v)).collect()
    }

    fn prim(&self, v: Value) -> PrimType {
        machine_prim(&self.module.types, self.f.ty(v))
    }

    fn inst(&mut self, i: Inst) -> Option<ir::Value> {
        let f = self.f;
        let data = f.inst(i);
        let trusted = MemFlagsData::trusted();
        match data.op {
            Op::MemLoad => {
                let address = self.value(f.arg(i, 0));
                let ty = machine_type(&self.module.types, data.ty);
                Some(self.b.ins().load(ty, trusted, address, data.imm as i64 as i32))
            }
            Op::MemStore => {
                let args = self.args(i);
                self.b.ins().store(trusted, args[1], args[0], data.imm as i64 as i32);
                None
            }
            Op::PtrAdd => {
                let args = self.args(i);
                Some(self.b.ins().iadd(args[0], args[1]))
            }
            Op::StackSlot => {
                let align = data.imm_hi().max(1).next_power_of_two().trailing_zeros() as u8;
                let slot = self.b.create_sized_stack_slot(StackSlotData::new(
                    StackSlotKind::ExplicitSlot,
                    data.imm_lo(),
                    align,
                ));
                Some(self.b.ins().stack_addr(types::I64, slot, 0))
            }
            Op::FnAddr => {
                let r = self.fn_ref(data.func())?;
                Some(self.b.ins().func_addr(types::I64, r))
            }
            Op::TypeInfoAddr => {
                let address = self.code.runtime.type_info(TypeId(data.imm_lo()), data.imm_hi());
                Some(self.b.ins().iconst(types::I64, address as i64))
            }
            Op::RtRaw => {
                let mut args = self.args(i);
                // The registers of a call that is made once should not decide where the numbers
                // that it shows are kept in a loop.
                if data.rt() == RtFn::PanicBuiltin {
                    let shown = self.through_memory(&args[2..]);
                    args.truncate(2);
                    args.extend(shown);
                }
                let r = self.code.rt(self.b.func, data.rt());
                let call = self.b.ins().call(r, &args);
                self.b.inst_results(call).first().copied()
            }
            Op::Call => {
                let args = self.args(i);
                let r = self.fn_ref(data.func())?;
                let call = self.b.ins().call(r, &args);
                self.b.inst_results(call).first().copied()
            }
            Op::CallAddr => {
                let args = self.args(i);
                let mut sig = self.code.jit.make_signature();
                for &v in &f.args(i)[1..] {
                    sig.params.push(param(&self.module.types, f.ty(v)));
                }
                if data.ty != fixed::UNIT {
                    sig.returns.push(param(&self.module.types, data.ty));
                }
                let sig = self.b.import_signature(sig);
                let call = self.b.ins().call_indirect(sig, args[0], &args[1..]);
                self.b.inst_results(call).first().copied()
            }
            Op::IAddTrap | Op::ISubTrap | Op::IMulTrap => {
                let args = self.args(i);
                let p = self.prim(f.arg(i, 0));
                let (value, outside) = Pure { b: &mut self.b, calls: self.code }
                    .overflow(data.op, p, args[0], args[1]);
                self.panic_if(outside, PanicKind::Overflow, data.span);
                Some(value)
            }
            Op::ISdivTrap | Op::IUdivTrap | Op::ISremTrap | Op::IUremTrap => {
                Some(self.checked_division(i))
            }
            op => {
                let args = self.args(i);
                // `select` has its condition first.
                let first = f.args(i).get((op == Op::Select) as usize);
                let from = first.map_or(PrimType::U64, |&v| self.prim(v));
                let to = machine_prim(&self.module.types, data.ty);
                Pure { b: &mut self.b, calls: self.code }.emit(op, from, to, &args)
            }
        }
    }

    fn fn_ref(&mut self, f: FnId) -> Option<ir::FuncRef> {
        let id = self.ids[f.index()]?;
        Some(self.code.jit.declare_func_in_func(id, self.b.func))
    }

    fn checked_division(&mut self, i: Inst) -> ir::Value {
        let data = self.f.inst(i);
        let args = self.args(i);
        let p = self.prim(self.f.arg(i, 0));
        let zero = self.b.ins().icmp_imm_s(IntCC::Equal, args[1], 0);
        self.panic_if(zero, PanicKind::DivisionByZero, data.span);
        let total = match data.op {
            Op::ISdivTrap => {
                let min = constant(&mut self.b, p, 1 << (p.bit_width() - 1));
                let is_min = self.b.ins().icmp(IntCC::Equal, args[0], min);
                let minus = self.b.ins().icmp_imm_s(IntCC::Equal, args[1], -1);
                let outside = self.b.ins().band(is_min, minus);
                self.panic_if(outside, PanicKind::Overflow, data.span);
                Op::ISdiv
            }
            Op::ISremTrap => Op::ISrem,
            Op::IUdivTrap => Op::IUdiv,
            _ => Op::IUrem,
        };
        Pure { b: &mut self.b, calls: self.code }.emit(total, p, p, &args).unwrap_or(args[0])
    }

    /// Goes on when `condition` is false; else panics in a block off the hot path.
    fn panic_if(&mut self, condition: ir::Value, kind: PanicKind, span: Span) {
        let (cold, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(cold);
        self.b.ins().brif(condition, cold, &[], next, &[]);
        self.b.switch_to_block(cold);
        let place = match self.code.runtime.describe(span) {
            Some(text) => self.code.runtime.c_string(&text),
            None => std::ptr::null(),
        };
        let kind = self.b.ins().iconst(types::I32, kind as i64);
        let place = self.b.ins().iconst(types::I64, place as i64);
        let none = self.b.ins().iconst(types::I64, 0);
        let r = self.code.rt(self.b.func, RtFn::PanicBuiltin);
        self.b.ins().call(r, &[kind, place, none, none]);
        self.b.ins().trap(TrapCode::unwrap_user(1));
        self.b.switch_to_block(next);
    }

    fn edge(&mut self, from: Block, to: Block) -> (ir::Block, Vec<BlockArg>) {
        let f = self.f;
        if self.rotated[to.index()] {
            let block = match self.entries.get(&(from, to)) {
                Some(&block) => block,
                None => {
                    let block = self.b.create_block();
                    self.entries.insert((from, to), block);
                    self.waiting.push((from, to));
                    block
                }
            };
            return (block, Vec::new());
        }
        let mut args = Vec::new();
        for phi in f.phis(to) {
            let Some(v) = f.phi_value(phi, from) else { continue };
            if self.is_of_vectors(phi) {
                args.extend(self.registers_for_phi(v).into_iter().map(BlockArg::Value));
            } else {
                args.push(BlockArg::Value(self.value(v)));
            }
        }
        // Every target of a reachable block is reachable.
        let block = self.blocks[to.index()].expect("targets of reachable blocks have blocks");
        (block, args)
    }

    fn terminator(&mut self, block: Block) {
        let f = self.f;
        match &f.block(block).term {
            Terminator::Ret(v) => match v {
                Some(v) if f.ret_ty != fixed::UNIT => {
                    let v = self.value(*v);
                    self.b.ins().return_(&[v]);
                }
                Some(_) | None => {
                    self.b.ins().return_(&[]);
                }
            },
            Terminator::Br(to) if self.rotated[to.index()] => self.head(block, *to),
            Terminator::Br(to) => {
                let (to, args) = self.edge(block, *to);
                self.b.ins().jump(to, &args);
            }
            Terminator::Cbr { cond, then, else_ } => {
                let cond = self.value(*cond);
                let (then, then_args) = self.edge(block, *then);
                let (else_, else_args) = self.edge(block, *else_);
                self.b.ins().brif(cond, then, &then_args, else_, &else_args);
            }
            Terminator::Switch { value, cases, default } => {
                let p = self.prim(*value);
                let v = self.value(*value);
                for &(bits, to) in cases {
                    let c = constant(&mut self.b, p, bits);
                    let equal = self.b.ins().icmp(IntCC::Equal, v, c);
                    let (to, args) = self.edge(block, to);
                    let next = self.b.create_block();
                    self.b.ins().brif(equal, to, &args, next, &[]);
                    self.b.switch_to_block(next);
                }
                let (to, args) = self.edge(block, *default);
                self.b.ins().jump(to, &args);
            }
            Terminator::Unreachable => {
                self.b.ins().trap(TrapCode::unwrap_user(2));
            }
        }
    }
}
