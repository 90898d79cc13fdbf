//! Scalarisation of vectors, for targets without them.
//!
//! A vector value becomes the values of its components. Vectors remain at the borders: parameters,
//! loads and calls give them (their components are taken out at once), stores and calls take them
//! (they are put together just before).

use super::PassContext;
use super::parts::Parts;
use super::replacements::Replacements;
use crate::eval::float_bits;
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Signature, Terminator, Value};
use magpie_diag::Span;
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};

/// Leaves no vector operations but `vec.extract` of what comes in and `vec.new` of what goes out.
pub fn lower_vectors(f: &mut MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> bool {
    let is_vector = |ty| matches!(types.kind(ty), TypeKind::Vec(..));
    if f.domain == Domain::Host || !f.locals.iter().any(|l| is_vector(l.ty)) {
        return false;
    }
    let PassContext { cfg, parts, replacements, insts: out, .. } = ctx;
    cfg.compute(f);
    parts.start(f);
    replacements.start(f);
    let mut order = cfg.rpo().to_vec();
    order.extend(f.block_ids().filter(|&b| !cfg.is_reachable(b)));
    out.clear();
    let mut lowering = Lowering { f, types, parts, replacements, out, span: Span::NONE };
    lowering.parameters();
    for b in order {
        lowering.block(b);
    }
    lowering.finish();
    true
}

struct Lowering<'a> {
    f: &'a mut MpirFn,
    types: &'a TypeCtx,
    parts: &'a mut Parts,
    replacements: &'a mut Replacements,
    /// What the current block becomes.
    out: &'a mut Vec<Inst>,
    span: Span,
}

impl Lowering<'_> {
    /// Component type and number of components of a vector type.
    fn vector(&self, ty: TypeId) -> Option<(PrimType, usize)> {
        match self.types.kind(ty) {
            TypeKind::Vec(p, n) => Some((p, n as usize)),
            _ => None,
        }
    }

    fn parameters(&mut self) {
        for n in 0..self.f.params.len() {
            let (param, ty) = self.f.params[n];
            if self.vector(ty).is_some() {
                self.span = self.f.param_spans[n];
                self.take_apart(param);
            }
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
            && self.vector(self.f.ty(v)).is_some()
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
        let Lowering { f, types, parts, replacements, .. } = self;
        parts.finish_phis(f, |f, v, _| {
            let p = types.element_prim(f.ty(v)).unwrap_or(PrimType::Unit);
            f.zero(p.id())
        });
        replacements.apply(f);
    }

    /// The components of a vector. One that was not seen yet is constant, or unreachable.
    fn lanes(&mut self, v: Value) -> Vec<Value> {
        let Some((p, n)) = self.vector(self.f.ty(v)) else { return vec![v] };
        match self.parts.get(v, n) {
            Some(parts) => parts.to_vec(),
            None => vec![self.f.zero(p.id()); n],
        }
    }

    fn inst(&mut self, i: Inst) {
        let inst = *self.f.inst(i);
        let Some(result) = inst.result() else {
            self.put_operands_together(i);
            self.out.push(i);
            return;
        };
        match self.vector(inst.ty) {
            Some((p, n)) => self.vector_result(i, result, p, n),
            None => match self.scalar_result(i) {
                Some(v) => self.replacements.set(result, v),
                None => {
                    self.put_operands_together(i);
                    self.out.push(i);
                }
            },
        }
    }

    /// A scalar made of vectors.
    fn scalar_result(&mut self, i: Inst) -> Option<Value> {
        let inst = *self.f.inst(i);
        let &first = self.f.args(i).first()?;
        self.vector(self.f.ty(first))?;
        let flags = inst.flags;
        let lanes = self.lanes(first);
        let mut join = |op, lanes: Vec<Value>| {
            lanes.into_iter().reduce(|x, y| self.emit(op, flags, inst.ty, &[x, y]))
        };
        if inst.op == Op::VecExtract {
            lanes.get(inst.imm_lo() as usize).copied()
        } else if inst.op == Op::VecAny {
            join(Op::IOr, lanes)
        } else if inst.op == Op::VecAll {
            join(Op::IAnd, lanes)
        } else if inst.op == Op::VecDot {
            Some(self.dot(first, self.f.arg(i, 1), flags))
        } else if inst.op == Op::VecLength {
            Some(self.length(first, flags))
        } else {
            None
        }
    }

    fn vector_result(&mut self, i: Inst, result: Value, p: PrimType, n: usize) {
        let inst = *self.f.inst(i);
        if inst.op == Op::Phi {
            self.parts.split_phi(self.f, i, &vec![p.id(); n], self.out);
            return;
        }
        match self.lanes_of_result(i, p, n) {
            Some(lanes) => self.parts.set(result, lanes),
            None => {
                self.put_operands_together(i);
                self.out.push(i);
                self.take_apart(result);
            }
        }
    }

    /// The components of the result of `i`; `None` when they come out of a vector that stays.
    fn lanes_of_result(&mut self, i: Inst, p: PrimType, n: usize) -> Option<Vec<Value>> {
        let inst = *self.f.inst(i);
        let (flags, ty) = (inst.flags, p.id());
        let args = self.f.args(i).to_vec();
        let operands: Vec<Vec<Value>> = args.iter().map(|&v| self.lanes(v)).collect();
        if inst.op == Op::VecNew {
            return Some(args);
        }
        if inst.op == Op::VecSplat {
            return Some(vec![args[0]; n]);
        }
        if inst.op == Op::VecInsert {
            let mut lanes = operands[0].clone();
            *lanes.get_mut(inst.imm_lo() as usize)? = args[1];
            return Some(lanes);
        }
        if inst.op == Op::VecCross {
            let [a, b] = [&operands[0], &operands[1]];
            let lane = |c: usize| {
                let (j, k) = ((c + 1) % 3, (c + 2) % 3);
                let x = self.emit(Op::FMul, flags, ty, &[a[j], b[k]]);
                let y = self.emit(Op::FMul, flags, ty, &[a[k], b[j]]);
                self.emit(Op::FSub, flags, ty, &[x, y])
            };
            return Some((0..3).map(lane).collect());
        }
        if inst.op == Op::VecNormalize {
            let length = self.length(args[0], flags);
            let lane = |&x| self.emit(Op::FDiv, flags, ty, &[x, length]);
            return Some(operands[0].iter().map(lane).collect());
        }
        if inst.op == Op::VecReflect {
            let dot = self.dot(args[1], args[0], flags);
            let two = self.f.const_bits(ty, float_bits(p, 2.0));
            let scale = self.emit(Op::FMul, flags, ty, &[two, dot]);
            let lane = |(&x, &normal)| {
                let along = self.emit(Op::FMul, flags, ty, &[scale, normal]);
                self.emit(Op::FSub, flags, ty, &[x, along])
            };
            return Some(operands[0].iter().zip(&operands[1]).map(lane).collect());
        }
        if inst.op == Op::VecMix {
            let one = self.f.const_bits(ty, float_bits(p, 1.0));
            let lane = |c: usize| {
                let (x, y, t) = (operands[0][c], operands[1][c], operands[2][c]);
                let rest = self.emit(Op::FSub, flags, ty, &[one, t]);
                let x = self.emit(Op::FMul, flags, ty, &[x, rest]);
                let y = self.emit(Op::FMul, flags, ty, &[y, t]);
                self.emit(Op::FAdd, flags, ty, &[x, y])
            };
            return Some((0..n).map(lane).collect());
        }
        let by_component = match inst.op.info().signature {
            Signature::Same(..) | Signature::Compare(_) | Signature::Convert => true,
            Signature::Leaf | Signature::Own => {
                matches!(inst.op, Op::Select | Op::Cast | Op::BitsCast)
            }
        };
        by_component.then(|| {
            let lane = |c: usize| {
                let part = |lanes: &Vec<Value>| *lanes.get(c).unwrap_or(&lanes[0]);
                let args: Vec<Value> = operands.iter().map(part).collect();
                self.emit(inst.op, flags, ty, &args)
            };
            (0..n).map(lane).collect()
        })
    }

    fn dot(&mut self, a: Value, b: Value, flags: Flags) -> Value {
        let (a, b) = (self.lanes(a), self.lanes(b));
        let ty = self.f.ty(a[0]);
        let mut sum = self.emit(Op::FMul, flags, ty, &[a[0], b[0]]);
        for (&x, &y) in a.iter().zip(&b).skip(1) {
            let product = self.emit(Op::FMul, flags, ty, &[x, y]);
            sum = self.emit(Op::FAdd, flags, ty, &[sum, product]);
        }
        sum
    }

    fn length(&mut self, v: Value, flags: Flags) -> Value {
        let square = self.dot(v, v, flags);
        self.emit(Op::FSqrt, flags, self.f.ty(square), &[square])
    }

    fn take_apart(&mut self, v: Value) {
        let Some((p, n)) = self.vector(self.f.ty(v)) else { return };
        let lanes: Vec<Value> = (0..n)
            .map(|lane| {
                let value = self.emit(Op::VecExtract, Flags::NONE, p.id(), &[v]);
                if let Some(i) = self.f.def_inst(value) {
                    self.f.inst_mut(i).imm = lane as u64;
                }
                value
            })
            .collect();
        self.parts.set(v, lanes);
    }

    fn put_operands_together(&mut self, i: Inst) {
        for n in 0..self.f.args(i).len() {
            let v = self.f.arg(i, n);
            if self.vector(self.f.ty(v)).is_some() {
                let whole = self.put_together(v);
                self.f.args_mut(i)[n] = whole;
            }
        }
    }

    /// A vector made of the components of `v`; `v` itself when they were taken out of it.
    fn put_together(&mut self, v: Value) -> Value {
        let lanes = self.lanes(v);
        let mut from_v = lanes.iter().map(|&l| {
            let extract = self.f.def_inst(l).filter(|&i| self.f.inst(i).op == Op::VecExtract);
            extract.is_some_and(|i| self.f.arg(i, 0) == v)
        });
        if self.f.as_const(v).is_some() || from_v.all(|is| is) {
            return v;
        }
        self.emit(Op::VecNew, Flags::NONE, self.f.ty(v), &lanes)
    }

    fn emit(&mut self, op: Op, flags: Flags, ty: TypeId, args: &[Value]) -> Value {
        let i = self.f.make_inst(op, flags, ty, args, 0, self.span);
        self.out.push(i);
        match self.f.inst(i).result() {
            Some(v) => v,
            None => self.f.zero(ty),
        }
    }
}
