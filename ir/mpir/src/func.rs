//! [`MpirFn`]: one function in SSA form.
//!
//! Law of the data structure (checked by [`crate::verify`]):
//! - `blocks[0]` is the entry; it has no predecessors.
//! - A block is an ordered list of instructions and one terminator. Phis come first.
//! - A value is defined once: by `params`, by one instruction, or as an interned constant.
//! - A phi has exactly one arm per predecessor *block*.
//! - Instructions that no block lists are dead; [`MpirFn::compact`] drops them.

use crate::inst::Range;
use crate::{
    AddressSpace, Block, Const, Domain, Flags, FnId, Inst, InstData, MpirBlock, MpirGpuMeta,
    MpirLocalDecl, Op, Terminator, Value, ValueDef,
};
use magpie_diag::Span;
use magpie_types::print::PrintSite;
use magpie_types::{PrimType, Sid, TypeId, fixed};
use rustc_hash::FxHashMap;

/// A function.
#[derive(Clone, Debug)]
pub struct MpirFn {
    /// Stable id.
    pub sid: Sid,
    /// Full name, `module.path.@name`.
    pub name: String,
    /// Parameter values with their types.
    pub params: Vec<(Value, TypeId)>,
    /// Source names of the parameters, without `%`; as many as `params`.
    pub param_names: Vec<String>,
    /// Source places of the parameters; as many as `params`.
    pub param_spans: Vec<Span>,
    #[allow(missing_docs)]
    pub ret_ty: TypeId,
    #[allow(missing_docs)]
    pub blocks: Vec<MpirBlock>,
    /// Every value of the function.
    pub locals: Vec<MpirLocalDecl>,
    #[allow(missing_docs)]
    pub is_async: bool,
    /// Set for kernels.
    pub gpu_meta: Option<MpirGpuMeta>,
    /// The functions that a kernel still calls after inlining, and those that they call
    /// ([`crate::passes::carry_callees`]).
    pub callees: Vec<(FnId, MpirFn)>,
    /// What a kernel prints, after `gpu.print` was lowered to stores.
    pub prints: Vec<PrintSite>,
    #[allow(missing_docs)]
    pub domain: Domain,
    /// Source place of the head.
    pub span: Span,
    insts: Vec<InstData>,
    args: Vec<Value>,
    phi_blocks: Vec<Block>,
    consts: FxHashMap<(TypeId, Const), Value>,
}

impl MpirFn {
    /// A function without blocks.
    pub fn new(sid: Sid, name: impl Into<String>, ret_ty: TypeId, domain: Domain) -> MpirFn {
        MpirFn {
            sid,
            name: name.into(),
            params: Vec::new(),
            param_names: Vec::new(),
            param_spans: Vec::new(),
            ret_ty,
            blocks: Vec::new(),
            locals: Vec::new(),
            is_async: false,
            gpu_meta: None,
            callees: Vec::new(),
            prints: Vec::new(),
            domain,
            span: Span::NONE,
            insts: Vec::new(),
            args: Vec::new(),
            phi_blocks: Vec::new(),
            consts: FxHashMap::default(),
        }
    }

    /// A function with the same head and no blocks.
    pub fn head(&self) -> MpirFn {
        let mut head = MpirFn::new(self.sid.clone(), &*self.name, self.ret_ty, self.domain);
        head.span = self.span;
        for ((name, &(_, ty)), &span) in
            self.param_names.iter().zip(&self.params).zip(&self.param_spans)
        {
            head.add_param(&**name, ty, span);
        }
        head
    }

    /// Whether it can be launched.
    pub fn is_kernel(&self) -> bool {
        self.gpu_meta.is_some()
    }

    // ----- values -----

    /// Adds a parameter.
    pub fn add_param(&mut self, name: impl Into<String>, ty: TypeId, span: Span) -> Value {
        let v = self.new_value(ty, ValueDef::Param(self.params.len() as u32));
        self.params.push((v, ty));
        self.param_names.push(name.into());
        self.param_spans.push(span);
        v
    }

    fn new_value(&mut self, ty: TypeId, def: ValueDef) -> Value {
        let v = Value::new(self.locals.len());
        self.locals.push(MpirLocalDecl { ty, def });
        v
    }

    /// The type of a value.
    pub fn ty(&self, v: Value) -> TypeId {
        self.locals[v.index()].ty
    }

    /// The origin of a value.
    pub fn def(&self, v: Value) -> ValueDef {
        self.locals[v.index()].def
    }

    /// The instruction that defines a value, if one does.
    pub fn def_inst(&self, v: Value) -> Option<Inst> {
        match self.def(v) {
            ValueDef::Inst(i) => Some(i),
            ValueDef::Param(_) | ValueDef::Const(_) => None,
        }
    }

    /// The op that defines a value, if an instruction does.
    pub fn def_op(&self, v: Value) -> Option<Op> {
        self.def_inst(v).map(|i| self.inst(i).op)
    }

    /// The constant a value is, if it is one.
    pub fn as_const(&self, v: Value) -> Option<Const> {
        match self.def(v) {
            ValueDef::Const(c) => Some(c),
            ValueDef::Param(_) | ValueDef::Inst(_) => None,
        }
    }

    /// The bits of a scalar constant.
    pub fn as_bits(&self, v: Value) -> Option<u64> {
        match self.as_const(v)? {
            Const::Bits(b) => Some(b),
            Const::Zero => PrimType::from_id(self.ty(v)).map(|_| 0),
            Const::Unit | Const::Str(_) => None,
        }
    }

    /// The constant of a type and payload. Scalars are always `Const::Bits`.
    pub fn constant(&mut self, ty: TypeId, c: Const) -> Value {
        let c = match (c, PrimType::from_id(ty)) {
            (_, Some(PrimType::Unit)) => Const::Unit,
            (Const::Zero, Some(_)) => Const::Bits(0),
            (Const::Bits(b), Some(p)) => Const::Bits(b & p.mask()),
            _ => c,
        };
        if let Some(&v) = self.consts.get(&(ty, c)) {
            return v;
        }
        let v = self.new_value(ty, ValueDef::Const(c));
        self.consts.insert((ty, c), v);
        v
    }

    /// A constant that stands for itself: another value than every equal one. What is owned is told
    /// apart by it.
    pub fn distinct_constant(&mut self, ty: TypeId, c: Const) -> Value {
        self.new_value(ty, ValueDef::Const(c))
    }

    /// A scalar constant from its bits.
    pub fn const_bits(&mut self, ty: TypeId, bits: u64) -> Value {
        self.constant(ty, Const::Bits(bits))
    }

    /// A `u32` constant.
    pub fn const_u32(&mut self, v: u32) -> Value {
        self.const_bits(fixed::U32, v as u64)
    }

    /// A `bool` constant.
    pub fn const_bool(&mut self, v: bool) -> Value {
        self.const_bits(fixed::BOOL, v as u64)
    }

    /// The zero of a type.
    pub fn zero(&mut self, ty: TypeId) -> Value {
        self.constant(ty, Const::Zero)
    }

    // ----- instructions -----

    /// The data of an instruction.
    pub fn inst(&self, i: Inst) -> &InstData {
        &self.insts[i.index()]
    }

    /// The data of an instruction, to be changed in place. Its operands and result stay.
    pub fn inst_mut(&mut self, i: Inst) -> &mut InstData {
        &mut self.insts[i.index()]
    }

    /// Number of instructions ever made; bound of [`Inst`] ids.
    pub fn num_insts(&self) -> usize {
        self.insts.len()
    }

    /// The operands of an instruction.
    pub fn args(&self, i: Inst) -> &[Value] {
        &self.args[self.insts[i.index()].args.get()]
    }

    /// The operands of an instruction, to be replaced one by one.
    pub fn args_mut(&mut self, i: Inst) -> &mut [Value] {
        &mut self.args[self.insts[i.index()].args.get()]
    }

    /// Operand `n` of an instruction.
    pub fn arg(&self, i: Inst, n: usize) -> Value {
        self.args(i)[n]
    }

    /// Makes an instruction that no block lists yet. A `unit` type gives it no result.
    pub fn make_inst(
        &mut self,
        op: Op,
        flags: Flags,
        ty: TypeId,
        args: &[Value],
        imm: u64,
        span: Span,
    ) -> Inst {
        debug_assert!(op != Op::Phi, "phis are made by make_phi");
        self.raw_inst(op, flags, ty, args, imm, span)
    }

    fn raw_inst(
        &mut self,
        op: Op,
        flags: Flags,
        ty: TypeId,
        args: &[Value],
        imm: u64,
        span: Span,
    ) -> Inst {
        let i = Inst::new(self.insts.len());
        let result = match ty {
            fixed::UNIT => u32::MAX,
            _ => self.new_value(ty, ValueDef::Inst(i)).0,
        };
        let args = self.push_args(args);
        self.insts.push(InstData { op, flags, ty, result, args, imm, span });
        i
    }

    fn push_args(&mut self, args: &[Value]) -> Range {
        let start = self.args.len() as u32;
        self.args.extend_from_slice(args);
        Range { start, len: args.len() as u32 }
    }

    /// Replaces op, operands and immediate of an instruction; result, type and span stay.
    pub fn rewrite(&mut self, i: Inst, op: Op, args: &[Value], imm: u64) {
        let args = self.push_args(args);
        let data = &mut self.insts[i.index()];
        data.op = op;
        data.args = args;
        data.imm = imm;
    }

    /// Makes a phi that no block lists yet.
    pub fn make_phi(&mut self, ty: TypeId, arms: &[(Block, Value)], span: Span) -> Inst {
        let i = self.raw_inst(Op::Phi, Flags::NONE, ty, &[], 0, span);
        self.set_phi_arms(i, arms);
        i
    }

    /// The arms of a phi: predecessor block and value.
    pub fn phi_arms(&self, i: Inst) -> impl ExactSizeIterator<Item = (Block, Value)> + Clone + '_ {
        let data = &self.insts[i.index()];
        debug_assert!(data.op == Op::Phi);
        let values = &self.args[data.args.get()];
        let blocks = &self.phi_blocks[data.imm as usize..data.imm as usize + values.len()];
        blocks.iter().copied().zip(values.iter().copied())
    }

    /// The value of a phi for an edge.
    pub fn phi_value(&self, i: Inst, pred: Block) -> Option<Value> {
        self.phi_arms(i).find(|&(b, _)| b == pred).map(|(_, v)| v)
    }

    /// Replaces all arms of a phi.
    pub fn set_phi_arms(&mut self, i: Inst, arms: &[(Block, Value)]) {
        let start = self.args.len() as u32;
        self.args.extend(arms.iter().map(|&(_, v)| v));
        let blocks = self.phi_blocks.len() as u64;
        self.phi_blocks.extend(arms.iter().map(|&(b, _)| b));
        let data = &mut self.insts[i.index()];
        data.args = Range { start, len: arms.len() as u32 };
        data.imm = blocks;
    }

    /// Renames predecessor blocks in a phi; the number of arms stays.
    pub fn map_phi_blocks(&mut self, i: Inst, mut f: impl FnMut(Block) -> Block) {
        let data = &self.insts[i.index()];
        let range = data.imm as usize..data.imm as usize + data.args.len as usize;
        self.phi_blocks[range].iter_mut().for_each(|b| *b = f(*b));
    }

    // ----- blocks -----

    /// Adds an empty block that ends in `unreachable`.
    pub fn add_block(&mut self) -> Block {
        let b = Block::new(self.blocks.len());
        self.blocks.push(MpirBlock {
            insts: Vec::new(),
            term: Terminator::Unreachable,
            term_span: Span::NONE,
        });
        b
    }

    /// A block.
    pub fn block(&self, b: Block) -> &MpirBlock {
        &self.blocks[b.index()]
    }

    /// A block, to be changed.
    pub fn block_mut(&mut self, b: Block) -> &mut MpirBlock {
        &mut self.blocks[b.index()]
    }

    /// Every block id in order.
    pub fn block_ids(&self) -> impl DoubleEndedIterator<Item = Block> + ExactSizeIterator + use<> {
        (0..self.blocks.len()).map(Block::new)
    }

    /// Makes an instruction at the end of a block; returns its result (or nothing for `unit`).
    #[allow(clippy::too_many_arguments)]
    pub fn append(
        &mut self,
        b: Block,
        op: Op,
        flags: Flags,
        ty: TypeId,
        args: &[Value],
        imm: u64,
        span: Span,
    ) -> Option<Value> {
        let i = self.make_inst(op, flags, ty, args, imm, span);
        self.blocks[b.index()].insts.push(i);
        self.inst(i).result()
    }

    /// The phis of a block.
    pub fn phis(&self, b: Block) -> impl Iterator<Item = Inst> + '_ {
        self.block(b).insts.iter().copied().take_while(|&i| self.inst(i).op == Op::Phi)
    }

    /// The successors of a block, each once, in order.
    pub fn successors(&self, b: Block) -> Vec<Block> {
        let mut out = Vec::new();
        self.block(b).term.for_each_target(|t| {
            if !out.contains(&t) {
                out.push(t);
            }
        });
        out
    }

    /// The memory that operand 0 of an access names.
    pub fn space(&self, types: &magpie_types::TypeCtx, i: Inst) -> AddressSpace {
        use magpie_types::TypeKind;
        match self.args(i).first().map(|&v| types.kind(self.ty(v))) {
            Some(TypeKind::Buffer(_)) => AddressSpace::Buffer,
            Some(TypeKind::SharedArray(..)) => AddressSpace::Shared,
            Some(TypeKind::LocalArray(..)) => AddressSpace::Local,
            _ if self.inst(i).op == Op::GpuLocal => AddressSpace::Local,
            _ => AddressSpace::Host,
        }
    }

    /// Replaces every use of a value, in operands and terminators, as `map` says. Chains are
    /// followed (`a → b`, `b → c` gives `c`); a cycle is the caller's fault.
    pub fn replace_uses(&mut self, map: &FxHashMap<Value, Value>) {
        if map.is_empty() {
            return;
        }
        let find = |mut v: Value| {
            while let Some(&n) = map.get(&v) {
                v = n;
            }
            v
        };
        for block in 0..self.blocks.len() {
            for n in 0..self.blocks[block].insts.len() {
                let i = self.blocks[block].insts[n];
                let range = self.insts[i.index()].args.get();
                self.args[range].iter_mut().for_each(|v| *v = find(*v));
            }
            if let Some(v) = self.blocks[block].term.operand_mut() {
                *v = find(*v);
            }
        }
    }

    /// Number of instructions that blocks list.
    pub fn live_inst_count(&self) -> usize {
        self.blocks.iter().map(|b| b.insts.len()).sum()
    }

    /// Drops blocks for which `keep` is false (they must not be reachable) together with the phi
    /// arms from them, and everything that no block lists; renumbers blocks, values and
    /// instructions in order of appearance.
    pub fn compact(&mut self, keep: impl Fn(Block) -> bool) {
        let mut new_block = vec![None; self.blocks.len()];
        let mut kept = 0;
        for b in self.block_ids() {
            if keep(b) {
                new_block[b.index()] = Some(Block::new(kept));
                kept += 1;
            }
        }
        let empty =
            MpirFn::new(self.sid.clone(), std::mem::take(&mut self.name), self.ret_ty, self.domain);
        let old = std::mem::replace(self, empty);
        self.is_async = old.is_async;
        self.gpu_meta = old.gpu_meta;
        self.prints = old.prints;
        self.span = old.span;
        let mut new_value: Vec<Option<Value>> = vec![None; old.locals.len()];
        for (n, &(v, ty)) in old.params.iter().enumerate() {
            let nv = self.add_param("", ty, old.param_spans[n]);
            new_value[v.index()] = Some(nv);
        }
        self.param_names = old.param_names;
        // Results first: a phi may read a value that is defined further down.
        for (b, block) in old.blocks.iter().enumerate() {
            if new_block[b].is_none() {
                continue;
            }
            let nb = self.add_block();
            for &i in &block.insts {
                let d = &old.insts[i.index()];
                let ni = self.raw_inst(d.op, d.flags, d.ty, &[], d.imm, d.span);
                if let (Some(v), Some(nv)) = (d.result(), self.inst(ni).result()) {
                    new_value[v.index()] = Some(nv);
                }
                self.blocks[nb.index()].insts.push(ni);
            }
        }
        let mut map = |f: &mut MpirFn, v: Value| {
            if let Some(nv) = new_value[v.index()] {
                return nv;
            }
            let decl = old.locals[v.index()];
            let nv = match decl.def {
                ValueDef::Const(c) => f.constant(decl.ty, c),
                // A use of something no kept block defines: the verifier reports it.
                ValueDef::Inst(_) | ValueDef::Param(_) => f.zero(decl.ty),
            };
            new_value[v.index()] = Some(nv);
            nv
        };
        let mut arms = Vec::new();
        let mut args = Vec::new();
        for (b, block) in old.blocks.iter().enumerate() {
            let Some(nb) = new_block[b] else { continue };
            for (n, &i) in block.insts.iter().enumerate() {
                let ni = self.blocks[nb.index()].insts[n];
                let d = &old.insts[i.index()];
                if d.op == Op::Phi {
                    arms.clear();
                    let values = &old.args[d.args.get()];
                    let blocks = &old.phi_blocks[d.imm as usize..];
                    for (&pb, &pv) in blocks.iter().zip(values) {
                        if let Some(pb) = new_block[pb.index()] {
                            arms.push((pb, map(self, pv)));
                        }
                    }
                    self.set_phi_arms(ni, &arms);
                } else {
                    args.clear();
                    for &v in &old.args[d.args.get()] {
                        args.push(map(self, v));
                    }
                    let range = self.push_args(&args);
                    self.insts[ni.index()].args = range;
                }
            }
            let mut term = block.term.clone();
            if let Some(v) = term.operand_mut() {
                *v = map(self, *v);
            }
            term.map_targets(|t| new_block[t.index()].unwrap_or(t));
            let nb = &mut self.blocks[nb.index()];
            nb.term = term;
            nb.term_span = block.term_span;
        }
    }
}
