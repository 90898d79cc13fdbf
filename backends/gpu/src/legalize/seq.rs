//! Writing instructions in front of the one that is being replaced.

use magpie_diag::Span;
use magpie_mpir::{Flags, Inst, MpirFn, Op, Value};
use magpie_types::{PrimType, TypeId, fixed};

/// A straight run of new instructions. Values are 32-bit unless a method says otherwise.
pub(super) struct Seq<'a> {
    pub(super) f: &'a mut MpirFn,
    pub(super) out: &'a mut Vec<Inst>,
    pub(super) span: Span,
    /// Freedoms of the float instruction that is being replaced.
    pub(super) flags: Flags,
}

impl Seq<'_> {
    /// An instruction with a result of type `ty`.
    pub(super) fn inst(&mut self, op: Op, ty: TypeId, args: &[Value], flags: Flags) -> Value {
        let i = self.f.make_inst(op, flags, ty, args, 0, self.span);
        self.out.push(i);
        // Only used for types other than `unit`.
        self.f.inst(i).result().unwrap_or(Value(0))
    }

    /// The scalar type of a value; everything that is legalised is a scalar.
    pub(super) fn prim(&self, v: Value) -> PrimType {
        PrimType::from_id(self.f.ty(v)).unwrap_or(PrimType::U32)
    }

    /// An exact op on operands of one type, with a result of that type.
    pub(super) fn same(&mut self, op: Op, args: &[Value]) -> Value {
        let ty = self.f.ty(args[0]);
        self.inst(op, ty, args, Flags::NONE)
    }

    /// A comparison.
    pub(super) fn cmp(&mut self, op: Op, a: Value, b: Value) -> Value {
        self.inst(op, fixed::BOOL, &[a, b], Flags::NONE)
    }

    /// `if cond { a } else { b }`
    pub(super) fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let ty = self.f.ty(a);
        self.inst(Op::Select, ty, &[cond, a, b], Flags::NONE)
    }

    /// A value conversion.
    pub(super) fn cast(&mut self, v: Value, to: PrimType) -> Value {
        if self.f.ty(v) == to.id() {
            return v;
        }
        self.inst(Op::Cast, to.id(), &[v], Flags::NONE)
    }

    /// The same bits as another type.
    pub(super) fn bits(&mut self, v: Value, to: PrimType) -> Value {
        if self.f.ty(v) == to.id() {
            return v;
        }
        self.inst(Op::BitsCast, to.id(), &[v], Flags::NONE)
    }

    /// A constant of the type of `like`.
    pub(super) fn like(&mut self, like: Value, bits: u64) -> Value {
        let ty = self.f.ty(like);
        self.f.const_bits(ty, bits)
    }

    pub(super) fn u32(&mut self, v: u32) -> Value {
        self.f.const_u32(v)
    }

    pub(super) fn i32(&mut self, v: i32) -> Value {
        self.f.const_bits(fixed::I32, v as u32 as u64)
    }

    pub(super) fn f32(&mut self, v: f32) -> Value {
        self.f.const_bits(fixed::F32, v.to_bits() as u64)
    }

    /// A `bool` constant.
    pub(super) fn truth(&mut self, v: bool) -> Value {
        self.f.const_bool(v)
    }

    pub(super) fn add(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::IAdd, &[a, b])
    }

    pub(super) fn sub(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::ISub, &[a, b])
    }

    pub(super) fn mul(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::IMul, &[a, b])
    }

    pub(super) fn and(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::IAnd, &[a, b])
    }

    pub(super) fn or(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::IOr, &[a, b])
    }

    pub(super) fn xor(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::IXor, &[a, b])
    }

    /// `a & constant`
    pub(super) fn mask(&mut self, a: Value, bits: u64) -> Value {
        let b = self.like(a, bits);
        self.and(a, b)
    }

    /// `a + constant`
    pub(super) fn plus(&mut self, a: Value, n: i64) -> Value {
        let b = self.like(a, n as u64);
        self.add(a, b)
    }

    /// `a << n` for a constant below the width.
    pub(super) fn shl(&mut self, a: Value, n: u32) -> Value {
        let b = self.like(a, n as u64);
        self.same(Op::IShl, &[a, b])
    }

    /// `a >> n`, filling with zeros, for a constant below the width.
    pub(super) fn lshr(&mut self, a: Value, n: u32) -> Value {
        let b = self.like(a, n as u64);
        self.same(Op::ILshr, &[a, b])
    }

    /// `a >> n`, filling with the sign, for a constant below the width.
    pub(super) fn ashr(&mut self, a: Value, n: u32) -> Value {
        let b = self.like(a, n as u64);
        self.same(Op::IAshr, &[a, b])
    }

    /// `a == constant`
    pub(super) fn is(&mut self, a: Value, bits: u64) -> Value {
        let b = self.like(a, bits);
        self.cmp(Op::IcmpEq, a, b)
    }

    /// Smaller of two numbers.
    pub(super) fn smin(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::ISmin, &[a, b])
    }

    /// Larger of two numbers.
    pub(super) fn smax(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::ISmax, &[a, b])
    }

    /// A bit 0 or 1 from a truth value, as the type of `like`.
    pub(super) fn bit(&mut self, truth: Value, like: Value) -> Value {
        let (one, zero) = (self.like(like, 1), self.like(like, 0));
        self.select(truth, one, zero)
    }
}
