//! Scalar and vector computations.

use super::kernel::Generator;
use crate::eval::float_bits;
use crate::{Class, Memory, Op, Place, Signature, Value};
use magpie_types::{PrimType, TypeId, TypeKind, fixed};

/// Whether the generator has a form for the op as a pure scalar operation.
fn is_scalar_op(op: Op) -> bool {
    let info = op.info();
    let known = match info.signature {
        Signature::Same(_, class) => class != Class::FloatVec,
        Signature::Compare(_) => true,
        Signature::Convert | Signature::Leaf | Signature::Own => {
            matches!(op, Op::Cast | Op::BitsCast | Op::Select)
        }
    };
    known
        && info.memory == Memory::None
        && info.place == Place::Both
        && !info.may_trap
        && !info.convergent
}

fn belongs(p: PrimType, class: Class) -> bool {
    match class {
        Class::Int => p.is_int(),
        Class::IntOrBool => p.is_int() || p == PrimType::Bool,
        Class::Float => p.is_float(),
        Class::FloatVec => false,
    }
}

impl Generator<'_> {
    /// Computes something from what is there.
    pub(super) fn computation(&mut self) {
        let ops: Vec<Op> = Op::ALL
            .iter()
            .copied()
            .filter(|&op| is_scalar_op(op) && (self.config.ops)(op))
            .collect();
        let Some(op) = self.rng.pick(&ops) else { return };
        let v = match op.info().signature {
            Signature::Same(n, class) => {
                let Some(p) = self.prim_of(class) else { return };
                let args: Vec<Value> = (0..n).map(|_| self.scalar(p)).collect();
                self.emit(op, p.id(), &args)
            }
            Signature::Compare(class) => {
                let Some(p) = self.prim_of(class) else { return };
                let args = [self.scalar(p), self.scalar(p)];
                self.emit(op, fixed::BOOL, &args)
            }
            Signature::Convert | Signature::Leaf | Signature::Own => {
                let Some(v) = self.conversion(op) else { return };
                v
            }
        };
        self.values.push(v);
    }

    fn prim_of(&mut self, class: Class) -> Option<PrimType> {
        let fitting: Vec<PrimType> =
            self.types.iter().copied().filter(|&p| belongs(p, class)).collect();
        self.rng.pick(&fitting)
    }

    fn conversion(&mut self, op: Op) -> Option<Value> {
        let (from, to) = (self.random_prim(), self.random_prim());
        let x = self.scalar(from);
        if op == Op::Select {
            let cond = self.scalar(PrimType::Bool);
            let y = self.scalar(from);
            return Some(self.emit(op, from.id(), &[cond, x, y]));
        }
        if op == Op::Cast {
            let allowed = !(from.is_float() && to == PrimType::Bool);
            return allowed.then(|| self.emit(op, to.id(), &[x]));
        }
        if from.bit_width() != to.bit_width() {
            return None;
        }
        // The bits of NaN differ from target to target.
        let x = if from.is_float() && !to.is_float() {
            let number = self.emit(Op::FcmpOrd, fixed::BOOL, &[x, x]);
            let zero = self.f.zero(from.id());
            self.emit(Op::Select, from.id(), &[number, x, zero])
        } else {
            x
        };
        Some(self.emit(op, to.id(), &[x]))
    }

    /// A value of a scalar type: something computed, or a constant.
    pub(super) fn scalar(&mut self, p: PrimType) -> Value {
        self.value_of(p.id()).unwrap_or_else(|| self.constant(p))
    }

    pub(super) fn constant(&mut self, p: PrimType) -> Value {
        let bits = self.random_bits(p);
        self.f.const_bits(p.id(), bits)
    }

    /// One of the values of a type, most often a late one.
    pub(super) fn value_of(&mut self, ty: TypeId) -> Option<Value> {
        let known: Vec<Value> =
            self.values.iter().copied().filter(|&v| self.f.ty(v) == ty).collect();
        if known.is_empty() || self.rng.chance(15) {
            return None;
        }
        let back = self.rng.below(known.len()).min(self.rng.below(known.len()));
        Some(known[known.len() - 1 - back])
    }

    /// A value of any type that can be computed with.
    pub(super) fn any_value(&mut self, ty: TypeId) -> Value {
        if let Some(v) = self.value_of(ty) {
            return v;
        }
        if let Some(p) = PrimType::from_id(ty) {
            return self.constant(p);
        }
        match self.module.types.kind(ty) {
            TypeKind::Vec(p, n) => {
                let lanes: Vec<Value> = (0..n).map(|_| self.scalar(p)).collect();
                self.emit(Op::VecNew, ty, &lanes)
            }
            _ => {
                let members = self.module.types.members(ty).unwrap_or_default();
                let parts: Vec<Value> = members.into_iter().map(|m| self.any_value(m)).collect();
                self.emit(Op::StructNew, ty, &parts)
            }
        }
    }

    /// Bits of a number: often one at an end of the type, often a small one.
    pub(super) fn random_bits(&mut self, p: PrimType) -> u64 {
        if p.is_float() {
            const PLAIN: [f64; 10] = [0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -0.25, 100.0, 1e-3, -7.75];
            const SPECIAL: [f64; 6] =
                [-0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-40, 6e-8];
            let special = self.config.float_specials && self.rng.chance(20);
            let list: &[f64] = if special { &SPECIAL } else { &PLAIN };
            let v = self.rng.pick(list).unwrap_or(0.0);
            return float_bits(p, v);
        }
        let bits = match self.rng.below(6) {
            0 => self.rng.bits(),
            1 => p.mask() >> 1,
            2 => (p.mask() >> 1) + 1,
            3 => p.mask(),
            _ => self.rng.below(20) as u64,
        };
        bits & p.mask()
    }

    // ----- vectors and structs -----

    pub(super) fn vector_computation(&mut self) {
        let Some(ty) = self.vector_type() else { return };
        let TypeKind::Vec(p, n) = self.module.types.kind(ty) else { return };
        let (a, b) = (self.any_value(ty), self.any_value(ty));
        let v = if p.is_float() {
            let ops = [
                Op::FAdd,
                Op::FMul,
                Op::FSub,
                Op::VecDot,
                Op::VecLength,
                Op::VecReflect,
                Op::VecMix,
                Op::VecNormalize,
                Op::VecCross,
            ];
            let Some(op) = self.rng.pick(&ops) else { return };
            if op == Op::VecCross && n != 3 {
                return;
            }
            match op.info().signature {
                Signature::Same(count, _) => {
                    let args = [a, b, a];
                    self.emit(op, ty, &args[..count as usize])
                }
                Signature::Compare(_) | Signature::Convert | Signature::Leaf | Signature::Own => {
                    let args: &[Value] = if op == Op::VecDot { &[a, b] } else { &[a] };
                    self.emit(op, p.id(), args)
                }
            }
        } else {
            let ops = [Op::IAdd, Op::IMul, Op::IXor, Op::IUmin, Op::IShl];
            let Some(op) = self.rng.pick(&ops) else { return };
            self.emit(op, ty, &[a, b])
        };
        self.values.push(v);
        let truths = self.module.types.intern(TypeKind::Vec(PrimType::Bool, n));
        let lane = self.rng.below(n as usize) as u64;
        let more = match self.rng.below(5) {
            0 => self.emit_imm(Op::VecExtract, p.id(), &[a], lane),
            1 => {
                let x = self.scalar(p);
                self.emit_imm(Op::VecInsert, ty, &[a, x], lane)
            }
            2 => {
                let x = self.scalar(p);
                self.emit(Op::VecSplat, ty, &[x])
            }
            3 => {
                let cmp = if p.is_float() { Op::FcmpOlt } else { Op::IcmpUlt };
                let truth = self.emit(cmp, truths, &[a, b]);
                let chosen = self.emit(Op::Select, ty, &[truth, a, b]);
                self.values.push(chosen);
                let join = if self.rng.chance(50) { Op::VecAny } else { Op::VecAll };
                self.emit(join, fixed::BOOL, &[truth])
            }
            _ => {
                let cond = self.scalar(PrimType::Bool);
                self.emit(Op::Select, ty, &[cond, a, b])
            }
        };
        self.values.push(more);
    }

    pub(super) fn struct_computation(&mut self) {
        let Some(ty) = self.struct_ty else { return };
        let a = self.any_value(ty);
        let members = self.module.types.members(ty).unwrap_or_default();
        let field = self.rng.below(members.len());
        let member = self.emit_imm(Op::StructGet, members[field], &[a], field as u64);
        self.values.push(member);
        if self.rng.chance(50) {
            let cond = self.scalar(PrimType::Bool);
            let b = self.any_value(ty);
            let chosen = self.emit(Op::Select, ty, &[cond, a, b]);
            self.values.push(chosen);
        }
    }
}
