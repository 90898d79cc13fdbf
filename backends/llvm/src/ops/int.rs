//! Arithmetic, comparisons and bit counts on integers and bools.

use crate::emitter::{Emit, Emitter, Operand};
use crate::types::{scalar, suffix};
use magpie_mpir::Inst;

impl Emitter<'_> {
    pub(super) fn int_binary(&mut self, i: Inst, name: &str) -> Emit {
        let (shape, a, b) = (self.result_shape(i)?, self.arg(i, 0)?, self.arg(i, 1)?);
        self.define(i, format_args!("{name} {shape} {a}, {b}"))
    }

    pub(super) fn int_compare(&mut self, i: Inst, predicate: &str) -> Emit {
        let shape = self.shape_of(self.arg_value(i, 0)?)?;
        let (a, b) = (self.arg(i, 0)?, self.arg(i, 1)?);
        self.define(i, format_args!("icmp {predicate} {shape} {a}, {b}"))
    }

    /// An intrinsic on two operands of the type of the result.
    pub(super) fn int_intrinsic(&mut self, i: Inst, name: &str) -> Emit {
        let p = self.result_shape(i)?.prim;
        let (a, b) = (self.arg(i, 0)?, self.arg(i, 1)?);
        let call =
            self.call(&format!("llvm.{name}.{}", suffix(p)), scalar(p), scalar(p), &[&a, &b]);
        self.define(i, format_args!("call {call}"))
    }

    /// A rotation: a funnel shift of a number with itself, whose amount is taken modulo the width.
    pub(super) fn rotate(&mut self, i: Inst, name: &str) -> Emit {
        let p = self.result_shape(i)?.prim;
        let (v, amount) = (self.arg(i, 0)?, self.arg(i, 1)?);
        let name = format!("llvm.{name}.{}", suffix(p));
        let call = self.call(&name, scalar(p), scalar(p), &[&v, &v, &amount]);
        self.define(i, format_args!("call {call}"))
    }

    pub(super) fn popcount(&mut self, i: Inst) -> Emit {
        let (p, v) = (self.result_shape(i)?.prim, self.arg(i, 0)?);
        let call = self.call(&format!("llvm.ctpop.{}", suffix(p)), scalar(p), scalar(p), &[&v]);
        self.define(i, format_args!("call {call}"))
    }

    /// The number of zeros at one end, which is the width for zero.
    pub(super) fn count_zeros(&mut self, i: Inst, name: &str) -> Emit {
        let (p, v) = (self.result_shape(i)?.prim, self.arg(i, 0)?);
        let ty = scalar(p);
        let name = format!("llvm.{name}.{}", suffix(p));
        self.intrinsics.declare(&name, ty, &format!("{ty}, i1 immarg"));
        self.define(i, format_args!("call {ty} @{name}({ty} {v}, i1 false)"))
    }

    /// The upper half of a product of twice the width.
    pub(super) fn mul_high(&mut self, i: Inst, extend: &str) -> Emit {
        let p = self.result_shape(i)?.prim;
        let (ty, width) = (scalar(p), p.bit_width());
        let wide = width * 2;
        let [a, b] = [self.arg(i, 0)?, self.arg(i, 1)?]
            .map(|v: Operand| self.emit(format_args!("{extend} {ty} {v} to i{wide}")));
        let product = self.emit(format_args!("mul i{wide} {a}, {b}"));
        let high = self.emit(format_args!("lshr i{wide} {product}, {width}"));
        self.define(i, format_args!("trunc i{wide} {high} to {ty}"))
    }
}
