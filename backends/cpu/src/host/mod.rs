//! Host functions (`Domain::LowHost`) as machine code.

mod control;
mod counts;
mod insts;
mod loops;
mod signature;
mod vectors;

use crate::jit::{Code, Executable, JitError};
use crate::pure::constant;
use crate::runtime::Runtime;
use crate::terminators::Terminators;
use cranelift_codegen::ir::{self, InstBuilder, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_module::{FuncId, Linkage, Module as _};
use magpie_mpir::analysis::{Cfg, Dominators, LoopId, Loops};
use magpie_mpir::{Block, Const, FnId, Inst, Module, MpirFn, Op, Terminator, Value};
use magpie_types::fixed;
use rustc_hash::FxHashMap;
use signature::{machine_prim, machine_type, signature};

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

/// Compiles the functions reachable from `roots`. All must be `Domain::LowHost`. While they run, no
/// other thread may use an object that they use: they count handles without atomic operations.
pub fn compile_host(
    module: &Module,
    roots: &[FnId],
    runtime: &mut dyn Runtime,
) -> Result<HostCode, JitError> {
    let mut code = Code::new(runtime)?;
    let Reachable { fns, from_outside, runs_once } = Reachable::new(module, roots);
    let mut ids: Vec<Option<FuncId>> = vec![None; module.fns.len()];
    for &f in &fns {
        let func = module.func(f);
        let sig = signature(&code, &module.types, func, from_outside[f.index()]);
        let name = format!("mp$0$FN${}${}", &func.sid.as_str()[2..], f.0);
        ids[f.index()] = Some(code.jit.declare_function(&name, Linkage::Local, &sig)?);
    }
    let mut ctx = code.jit.make_context();
    let mut scratch = FunctionBuilderContext::new();
    for &f in &fns {
        let Some(id) = ids[f.index()] else { continue };
        let func = module.func(f);
        code.start_function();
        ctx.func.signature = signature(&code, &module.types, func, from_outside[f.index()]);
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
            groups: FxHashMap::default(),
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
            runs_once: runs_once[f.index()],
        };
        t.function();
        t.b.finalize(config);
        code.jit.define_function(id, &mut ctx)?;
        code.jit.clear_context(&mut ctx);
    }
    code.define_detours(&mut ctx, &mut scratch)?;
    code.jit.finalize_definitions()?;
    let entries = ids.iter().map(|id| id.map(|id| code.jit.get_finalized_function(id))).collect();
    Ok(HostCode { entries, _code: Executable::new(code.jit) })
}

/// The functions that the roots call or take the address of, themselves included.
struct Reachable {
    /// In id order.
    fns: Vec<FnId>,
    /// By function: whether it is called by its address.
    from_outside: Vec<bool>,
    /// By function: whether it is a root, or only called by one, at one place.
    runs_once: Vec<bool>,
}

impl Reachable {
    fn new(module: &Module, roots: &[FnId]) -> Reachable {
        let mut from_outside = vec![false; module.fns.len()];
        roots.iter().for_each(|f| from_outside[f.index()] = true);
        let mut seen = vec![false; module.fns.len()];
        let mut is_called_again = vec![false; module.fns.len()];
        let mut is_called_by_root = vec![false; module.fns.len()];
        let mut work = roots.to_vec();
        while let Some(f) = work.pop() {
            if std::mem::replace(&mut seen[f.index()], true) {
                continue;
            }
            let func = module.func(f);
            for &i in func.blocks.iter().flat_map(|b| &b.insts) {
                let data = func.inst(i);
                if matches!(data.op, Op::Call | Op::FnAddr) {
                    let callee = data.func().index();
                    from_outside[callee] |= data.op == Op::FnAddr;
                    let is_first = roots.contains(&f) && !is_called_by_root[callee];
                    is_called_by_root[callee] |= is_first;
                    is_called_again[callee] |= !is_first || data.op == Op::FnAddr;
                    work.push(data.func());
                }
            }
        }
        let runs_once = is_called_again.iter().map(|again| !again).collect();
        let fns = module.fn_ids().filter(|f| seen[f.index()]).collect();
        Reachable { fns, from_outside, runs_once }
    }
}

pub(crate) struct Translator<'a, 'f, 'r> {
    pub(crate) module: &'a Module,
    pub(crate) f: &'a MpirFn,
    pub(crate) b: FunctionBuilder<'f>,
    pub(crate) code: &'a mut Code<'r>,
    ids: &'a [Option<FuncId>],
    pub(crate) values: Vec<Option<ir::Value>>,
    /// By what a call gives back that is several values: these.
    groups: FxHashMap<Value, Vec<ir::Value>>,
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
    /// Whether what is in no loop is done once.
    runs_once: bool,
}

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
                if b.index() > 0 && is_cold(f, b) {
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
        self.terminator(block, &self.f.block(block).term);
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
}

/// Whether a block is seldom reached: it ends the program, or asks the runtime for what is done in
/// place elsewhere.
fn is_cold(f: &MpirFn, b: Block) -> bool {
    let asks = |&i: &Inst| f.inst(i).op == Op::RtRaw && f.inst(i).rt().is_fallback();
    matches!(f.block(b).term, Terminator::Unreachable) || f.block(b).insts.iter().any(asks)
}
