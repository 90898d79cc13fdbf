//! Flattening of aggregates in device functions and in lowered host functions.
//!
//! An aggregate value becomes the values of its leaves. Parameters stay whole and are read with
//! `leaf.get` at the beginning; elements of memory are loaded and stored leaf by leaf. Calls that
//! were not inlined pass aggregates as before: they are put together for the call and taken apart
//! behind it.

use super::PassContext;
use super::parts::Parts;
use super::replacements::Replacements;
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Terminator, Value};
use magpie_diag::Span;
use magpie_types::{TypeCtx, TypeId, fixed};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Leaves no aggregate values but parameters, and those that calls take and give.
pub fn lower_structs(f: &mut MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> bool {
    if f.domain == Domain::Host || !f.locals.iter().any(|l| types.is_aggregate(l.ty)) {
        return false;
    }
    let PassContext { cfg, parts, replacements, insts: out, .. } = ctx;
    cfg.compute(f);
    parts.start(f);
    replacements.start(f);
    let mut order = cfg.rpo().to_vec();
    order.extend(f.block_ids().filter(|&b| !cfg.is_reachable(b)));
    let shapes = FxHashMap::default();
    out.clear();
    let mut lowering = Lowering { f, types, parts, replacements, shapes, out, span: Span::NONE };
    lowering.parameters();
    for b in order {
        lowering.block(b);
    }
    lowering.finish();
    true
}

/// The types of the leaves of an aggregate.
type Shape = Rc<[TypeId]>;

struct Lowering<'a> {
    f: &'a mut MpirFn,
    types: &'a TypeCtx,
    parts: &'a mut Parts,
    replacements: &'a mut Replacements,
    shapes: FxHashMap<TypeId, Shape>,
    /// What the current block becomes.
    out: &'a mut Vec<Inst>,
    span: Span,
}

impl Lowering<'_> {
    fn shape(&mut self, ty: TypeId) -> Shape {
        let types = self.types;
        let leaves = || types.leaves(ty).iter().map(|l| l.ty).collect();
        self.shapes.entry(ty).or_insert_with(leaves).clone()
    }

    /// Reads the leaves of aggregate parameters into `out`, which the entry block continues.
    fn parameters(&mut self) {
        for n in 0..self.f.params.len() {
            let (param, ty) = self.f.params[n];
            if !self.types.is_aggregate(ty) {
                continue;
            }
            self.span = self.f.param_spans[n];
            let shape = self.shape(ty);
            let leaf = |(n, &ty)| self.emit(Op::LeafGet, Flags::NONE, ty, &[param], n as u64);
            let leaves: Vec<Value> = shape.iter().enumerate().map(leaf).collect();
            self.parts.set(param, leaves);
        }
    }

    fn block(&mut self, b: Block) {
        if b != Block(0) {
            self.out.clear();
        }
        let mut insts = std::mem::take(&mut self.f.block_mut(b).insts);
        for &i in &insts {
            self.span = self.f.inst(i).span;
            if self.f.inst(i).op != Op::Phi {
                self.replacements.resolve_args(self.f, i);
            }
            self.inst(i);
        }
        if let Terminator::Ret(Some(v)) = self.f.block(b).term
            && self.types.is_aggregate(self.f.ty(v))
        {
            self.span = self.f.block(b).term_span;
            let whole = self.put_together(v);
            self.f.block_mut(b).term = Terminator::Ret(Some(whole));
        }
        insts.clear();
        insts.extend_from_slice(self.out);
        self.f.block_mut(b).insts = insts;
    }

    fn finish(self) {
        let Lowering { f, parts, replacements, mut shapes, types, .. } = self;
        parts.finish_phis(f, |f, v, n| {
            let ty = f.ty(v);
            let leaves = || types.leaves(ty).iter().map(|l| l.ty).collect();
            let leaf = shapes.entry(ty).or_insert_with(leaves)[n];
            f.zero(leaf)
        });
        replacements.apply(f);
    }

    fn is_aggregate(&self, v: Value) -> bool {
        self.types.is_aggregate(self.f.ty(v))
    }

    /// The leaves of an aggregate. One that was not seen yet is constant, or unreachable.
    fn leaves(&mut self, v: Value) -> Vec<Value> {
        let shape = self.shape(self.f.ty(v));
        match self.parts.get(v, shape.len()) {
            Some(parts) => parts.to_vec(),
            None => shape.iter().map(|&ty| self.f.zero(ty)).collect(),
        }
    }

    fn inst(&mut self, i: Inst) {
        let inst = *self.f.inst(i);
        if let Some(result) = inst.result().filter(|_| self.types.is_aggregate(inst.ty)) {
            self.aggregate(i, result);
        } else if inst.op == Op::StructGet {
            self.member(i);
        } else if inst.op == Op::GpuBufferStore && self.is_aggregate(self.f.arg(i, 2)) {
            let (array, index) = (self.f.arg(i, 0), self.f.arg(i, 1));
            for (n, leaf) in self.leaves(self.f.arg(i, 2)).into_iter().enumerate() {
                let args = [array, index, leaf];
                self.emit(Op::GpuLeafStore, inst.flags, fixed::UNIT, &args, n as u64);
            }
        } else {
            // A parameter is read leaf by leaf as it is; anything else is a call.
            if inst.op != Op::LeafGet {
                self.put_operands_together(i);
            }
            self.out.push(i);
        }
    }

    /// An instruction that gives an aggregate.
    fn aggregate(&mut self, i: Inst, result: Value) {
        let inst = *self.f.inst(i);
        let shape = self.shape(inst.ty);
        if inst.op == Op::Phi {
            self.parts.split_phi(self.f, i, &shape, self.out);
            return;
        }
        let leaves = if inst.op == Op::StructNew {
            let mut leaves = Vec::with_capacity(shape.len());
            for n in 0..self.f.args(i).len() {
                let v = self.f.arg(i, n);
                if self.is_aggregate(v) {
                    leaves.extend(self.leaves(v));
                } else if self.f.ty(v) != fixed::UNIT {
                    leaves.push(v);
                }
            }
            leaves
        } else if inst.op == Op::StructGet {
            self.member_leaves(i)
        } else if inst.op == Op::Select {
            let (x, y) = (self.leaves(self.f.arg(i, 1)), self.leaves(self.f.arg(i, 2)));
            let cond = self.f.arg(i, 0);
            let choose = |((&ty, x), y)| self.emit(Op::Select, inst.flags, ty, &[cond, x, y], 0);
            shape.iter().zip(x).zip(y).map(choose).collect()
        } else if inst.op == Op::GpuBufferLoad {
            let args = [self.f.arg(i, 0), self.f.arg(i, 1)];
            let load = |(n, &ty)| self.emit(Op::GpuLeafLoad, inst.flags, ty, &args, n as u64);
            shape.iter().enumerate().map(load).collect()
        } else {
            self.put_operands_together(i);
            self.out.push(i);
            let mut leaves = Vec::with_capacity(shape.len());
            self.take_apart(result, &mut leaves);
            leaves
        };
        self.parts.set(result, leaves);
    }

    /// `struct.get` of what is not an aggregate itself.
    fn member(&mut self, i: Inst) {
        let leaf = self.member_leaves(i).first().copied();
        if let Some((result, leaf)) = self.f.inst(i).result().zip(leaf) {
            self.replacements.set(result, leaf);
        }
    }

    fn member_leaves(&mut self, i: Inst) -> Vec<Value> {
        let v = self.f.arg(i, 0);
        let (first, count) = self.types.member_leaves(self.f.ty(v), self.f.inst(i).imm_lo());
        self.leaves(v)[first..first + count].to_vec()
    }

    fn put_operands_together(&mut self, i: Inst) {
        for n in 0..self.f.args(i).len() {
            let v = self.f.arg(i, n);
            if self.is_aggregate(v) {
                let whole = self.put_together(v);
                self.f.args_mut(i)[n] = whole;
            }
        }
    }

    /// An aggregate made of the leaves of `v`.
    fn put_together(&mut self, v: Value) -> Value {
        let leaves = self.leaves(v);
        self.build(self.f.ty(v), &mut leaves.into_iter())
    }

    fn build(&mut self, ty: TypeId, leaves: &mut std::vec::IntoIter<Value>) -> Value {
        let members = self.types.members(ty).unwrap_or_default();
        let mut args = Vec::with_capacity(members.len());
        for member in members {
            let part = match self.types.is_aggregate(member) {
                true => self.build(member, leaves),
                false if member == fixed::UNIT => self.f.zero(member),
                false => leaves.next().unwrap_or_else(|| self.f.zero(member)),
            };
            args.push(part);
        }
        self.emit(Op::StructNew, Flags::NONE, ty, &args, 0)
    }

    fn take_apart(&mut self, v: Value, leaves: &mut Vec<Value>) {
        let members = self.types.members(self.f.ty(v)).unwrap_or_default();
        for (n, member) in members.into_iter().enumerate() {
            if member == fixed::UNIT {
                continue;
            }
            let part = self.emit(Op::StructGet, Flags::NONE, member, &[v], n as u64);
            match self.types.is_aggregate(member) {
                true => self.take_apart(part, leaves),
                false => leaves.push(part),
            }
        }
    }

    fn emit(&mut self, op: Op, flags: Flags, ty: TypeId, args: &[Value], imm: u64) -> Value {
        let i = self.f.make_inst(op, flags, ty, args, imm, self.span);
        self.out.push(i);
        match self.f.inst(i).result() {
            Some(v) => v,
            None => self.f.zero(ty),
        }
    }
}
