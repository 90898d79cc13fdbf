//! Functions of which `GLSL.std.450` promises an accuracy only, and only for f32. Operands of other
//! widths are converted to f32 and the result back.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::types::{Scalar, Shape};
use magpie_mpir::Inst;
use spirv::{GlslStd450Op as Glsl, Op};

/// Bits of an f32.
const SIGN: u64 = 0x8000_0000;
const ONE: u64 = 0x3f80_0000;
const INFINITY: u64 = 0x7f80_0000;
const NAN: u64 = 0x7fc0_0000;

impl Emitter<'_> {
    /// A function of one operand.
    pub(super) fn math(&mut self, i: Inst, op: Glsl) -> Emit {
        self.in_f32(i, |e, shape, operands: [Id; 1]| {
            let ty = e.b.shape(shape);
            e.emit_ext(op, ty, &operands)
        })
    }

    /// The angle of a point. `GLSL.std.450` knows none for the four points at zero and the four at
    /// infinity: others in the same direction take their place.
    pub(super) fn atan2(&mut self, i: Inst) -> Emit {
        self.in_f32(i, |e, shape, [y, x]| {
            let ty = e.b.shape(shape);
            let at_zero = e.both(shape, [y, x], 0);
            let at_infinity = e.both(shape, [y, x], INFINITY);
            let one_x = e.signed_one(shape, x);
            let one_y = e.signed_one(shape, y);
            let bool_ty = e.b.shape(shape.of(Scalar::Bool));
            let special = e.emit(Op::LogicalOr, bool_ty, &[at_zero, at_infinity]);
            let x = e.emit(Op::Select, ty, &[special, one_x, x]);
            let y = e.emit(Op::Select, ty, &[at_infinity, one_y, y]);
            e.emit_ext(Glsl::Atan2, ty, &[y, x])
        })
    }

    /// x^y. `GLSL.std.450` knows none for negative x, nor for zero unless y is positive.
    pub(super) fn pow(&mut self, i: Inst) -> Emit {
        self.in_f32(i, |e, shape, [x, y]| {
            let (ty, bool_ty) = (e.b.shape(shape), e.b.shape(shape.of(Scalar::Bool)));
            let bits_ty = e.b.shape(shape.of(Scalar::Int32));
            let [zero, one, infinity, nan] =
                [0, ONE, INFINITY, NAN].map(|bits| e.b.constant(shape, bits));
            let half = e.b.constant(shape, 0.5f32.to_bits() as u64);
            let size = e.emit_ext(Glsl::FAbs, ty, &[x]);
            let mut power = e.emit_ext(Glsl::Pow, ty, &[size, y]);
            // Zero gives zero or infinity, NaN gives NaN; but one, and every base to the power of
            // zero, gives one.
            let base_is_zero = e.emit(Op::FOrdEqual, bool_ty, &[x, zero]);
            let falls = e.emit(Op::FOrdLessThan, bool_ty, &[y, zero]);
            let of_zero = e.emit(Op::Select, ty, &[falls, infinity, zero]);
            power = e.emit(Op::Select, ty, &[base_is_zero, of_zero, power]);
            let not_numbers = [x, y].map(|v| e.emit(Op::FUnordNotEqual, bool_ty, &[v, v]));
            let not_a_number = e.emit(Op::LogicalOr, bool_ty, &not_numbers);
            power = e.emit(Op::Select, ty, &[not_a_number, nan, power]);
            let is_unit = e.emit(Op::FOrdEqual, bool_ty, &[size, one]);
            let no_power = e.emit(Op::FOrdEqual, bool_ty, &[y, zero]);
            let gives_one = e.emit(Op::LogicalOr, bool_ty, &[is_unit, no_power]);
            power = e.emit(Op::Select, ty, &[gives_one, one, power]);
            // A negative base gives its sign to odd powers; powers that are no integers have none.
            let is_integer = e.is_integer(shape, y);
            let halved = e.emit(Op::FMul, ty, &[y, half]);
            let is_even = e.is_integer(shape, halved);
            let sign = e.masked_bits(shape, x, SIGN);
            let unsigned = e.b.constant(shape.of(Scalar::Int32), 0);
            let sign = e.emit(Op::Select, bits_ty, &[is_even, unsigned, sign]);
            let bits = e.emit(Op::Bitcast, bits_ty, &[power]);
            let bits = e.emit(Op::BitwiseXor, bits_ty, &[bits, sign]);
            let signed = e.emit(Op::Bitcast, ty, &[bits]);
            let power = e.emit(Op::Select, ty, &[is_integer, signed, power]);
            let below_zero = e.emit(Op::FOrdLessThan, bool_ty, &[x, zero]);
            let is_finite = e.emit(Op::FOrdLessThan, bool_ty, &[size, infinity]);
            let negative = e.emit(Op::LogicalAnd, bool_ty, &[below_zero, is_finite]);
            let of_negative = e.emit(Op::Select, ty, &[is_integer, power, nan]);
            let power_of = e.emit(Op::Select, ty, &[negative, of_negative, power]);
            e.emit(Op::Select, ty, &[no_power, one, power_of])
        })
    }

    /// Computes in f32.
    fn in_f32<const N: usize>(
        &mut self,
        i: Inst,
        compute: impl FnOnce(&mut Self, Shape, [Id; N]) -> Id,
    ) -> Emit {
        let shape = self.float_shape(i)?;
        let single = shape.of(Scalar::Float32);
        self.used_float(shape);
        self.used_float(single);
        let mut operands: [Id; N] = self.operands(i)?;
        let (ty, single_ty) = (self.b.shape(shape), self.b.shape(single));
        if shape != single {
            operands = operands.map(|v| self.emit(Op::FConvert, single_ty, &[v]));
        }
        let mut result = compute(self, single, operands);
        if shape != single {
            result = self.emit(Op::FConvert, ty, &[result]);
        }
        self.set_result(i, ty, result);
        Ok(())
    }

    /// Whether the bits of both numbers without their signs are `magnitude`.
    fn both(&mut self, shape: Shape, numbers: [Id; 2], magnitude: u64) -> Id {
        let word = shape.of(Scalar::Int32);
        let bool_ty = self.b.shape(shape.of(Scalar::Bool));
        let wanted = self.b.constant(word, magnitude);
        let each = numbers.map(|v| {
            let bits = self.masked_bits(shape, v, SIGN - 1);
            self.emit(Op::IEqual, bool_ty, &[bits, wanted])
        });
        self.emit(Op::LogicalAnd, bool_ty, &each)
    }

    /// 1 with the sign of a number.
    fn signed_one(&mut self, shape: Shape, v: Id) -> Id {
        let (ty, word) = (self.b.shape(shape), shape.of(Scalar::Int32));
        let bits_ty = self.b.shape(word);
        let sign = self.masked_bits(shape, v, SIGN);
        let one = self.b.constant(word, ONE);
        let bits = self.emit(Op::BitwiseOr, bits_ty, &[sign, one]);
        self.emit(Op::Bitcast, ty, &[bits])
    }

    /// Some bits of a number.
    fn masked_bits(&mut self, shape: Shape, v: Id, mask: u64) -> Id {
        let word = shape.of(Scalar::Int32);
        let bits_ty = self.b.shape(word);
        let mask = self.b.constant(word, mask);
        let bits = self.emit(Op::Bitcast, bits_ty, &[v]);
        self.emit(Op::BitwiseAnd, bits_ty, &[bits, mask])
    }

    /// Whether a number has no fraction; infinities have none.
    fn is_integer(&mut self, shape: Shape, v: Id) -> Id {
        let (ty, bool_ty) = (self.b.shape(shape), self.b.shape(shape.of(Scalar::Bool)));
        let whole = self.emit_ext(Glsl::Trunc, ty, &[v]);
        self.emit(Op::FOrdEqual, bool_ty, &[whole, v])
    }
}
