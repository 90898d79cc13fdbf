//! Integers, floats, comparisons, conversions, choice.

use super::body::Body;
use super::*;
use magpie_mpir::{Flags, Value as MpirValue};
use magpie_types::{PrimType, TypeKind};

impl Body<'_, '_> {
    /// Two operands of one type.
    #[inline]
    fn pair(&mut self, op: AstOp, args: &[Arg]) -> Lower<([MpirValue; 2], TypeId)> {
        let [a, b] = self.args::<2>(args)?;
        let (ta, tb) = (self.f.ty(a), self.f.ty(b));
        if ta != tb {
            return Err(self.report_types_differ(op, args, ta, tb));
        }
        Ok(([a, b], ta))
    }

    #[cold]
    fn report_types_differ(&mut self, op: AstOp, args: &[Arg], a: TypeId, b: TypeId) -> Poisoned {
        let (a, b) = (self.type_name(a), self.type_name(b));
        let message = format!("the operands of `{}` are `{a}` and `{b}`", op.name());
        let mut error = Diagnostic::new(Code::MPT2014, self.span, message)
            .with_help("convert one of them with `cast`: nothing is converted by itself");
        for (arg, ty) in args.iter().zip([a, b]) {
            error = error.with_secondary(self.scope.span(arg.value_range), format!("a `{ty}`"));
        }
        self.cx.report(error);
        Poisoned
    }

    #[cold]
    fn wrong_kind(&mut self, op: AstOp, found: TypeId, wanted: &str) -> Poisoned {
        let found_name = self.type_name(found);
        let message = format!("`{}` needs {wanted}, not `{found_name}`", op.name());
        let is_float = PrimType::from_id(found).is_some_and(PrimType::is_float);
        let is_int = PrimType::from_id(found).is_some_and(PrimType::is_int);
        let help = match op.name().split_once('.') {
            Some(("i", rest)) if is_float => format!("for floats write `f.{rest}`"),
            Some(("icmp", _)) if is_float => {
                "compare floats with `fcmp.oeq`, `fcmp.olt`, …".to_string()
            }
            Some(("f", rest)) if is_int => format!("for integers write `i.{rest}`"),
            Some(("fcmp", _)) if is_int => {
                "compare integers with `icmp.eq`, `icmp.slt`, `icmp.ult`, …".to_string()
            }
            _ => format!("give {wanted}"),
        };
        self.error(Code::MPT2015, message, help)
    }

    #[inline]
    fn require(
        &mut self,
        op: AstOp,
        ty: TypeId,
        fits: fn(PrimType) -> bool,
        wanted: &str,
    ) -> Lower<()> {
        match PrimType::from_id(ty) {
            Some(prim) if fits(prim) => Ok(()),
            _ => Err(self.wrong_kind(op, ty, wanted)),
        }
    }

    /// `i.*` with two operands.
    #[inline]
    pub(super) fn integers(&mut self, op: AstOp, args: &[Arg], mpir: MpirOp) -> Lower {
        let (values, ty) = self.pair(op, args)?;
        self.require(op, ty, PrimType::is_int, "integers")?;
        Ok(self.emit(mpir, ty, &values, 0))
    }

    /// `i.*` with one operand.
    pub(super) fn integer(&mut self, op: AstOp, args: &[Arg], mpir: MpirOp) -> Lower {
        let values = self.args::<1>(args)?;
        let ty = self.f.ty(values[0]);
        self.require(op, ty, PrimType::is_int, "an integer")?;
        Ok(self.emit(mpir, ty, &values, 0))
    }

    /// Bitwise operations, also on `bool`.
    pub(super) fn bits(&mut self, op: AstOp, args: &[Arg], mpir: MpirOp) -> Lower {
        let (values, ty) = self.pair(op, args)?;
        self.require(op, ty, is_int_or_bool, "integers or `bool`")?;
        Ok(self.emit(mpir, ty, &values, 0))
    }

    /// `i.*.checked`: the result when it fits.
    pub(super) fn checked(
        &mut self,
        op: AstOp,
        args: &[Arg],
        mpir: MpirOp,
        overflows: MpirOp,
    ) -> Lower {
        let (values, ty) = self.pair(op, args)?;
        self.require(op, ty, PrimType::is_int, "integers")?;
        let option = self.intern(TypeKind::Option(ty));
        let result = self.emit_value(mpir, ty, &values, 0)?;
        let outside = self.emit_value(overflows, fixed::BOOL, &values, 0)?;
        let none = self.f.const_bits(fixed::I32, 0);
        let some = self.f.const_bits(fixed::I32, 1);
        let zero = self.f.zero(ty);
        let tag = self.emit_value(MpirOp::Select, fixed::I32, &[outside, none, some], 0)?;
        let payload = self.emit_value(MpirOp::Select, ty, &[outside, zero, result], 0)?;
        Ok(self.emit(MpirOp::StructNew, option, &[tag, payload], 0))
    }

    /// `f.*` with two operands.
    #[inline]
    pub(super) fn floats(&mut self, op: AstOp, args: &[Arg], mpir: MpirOp, flags: Flags) -> Lower {
        let (values, ty) = self.pair(op, args)?;
        self.require(op, ty, PrimType::is_float, "floats")?;
        Ok(self.emit_flags(mpir, flags, ty, &values, 0))
    }

    /// `f.*` with one operand.
    pub(super) fn float(&mut self, op: AstOp, args: &[Arg], mpir: MpirOp) -> Lower {
        let values = self.args::<1>(args)?;
        let ty = self.f.ty(values[0]);
        self.require(op, ty, PrimType::is_float, "a float")?;
        Ok(self.emit(mpir, ty, &values, 0))
    }

    pub(super) fn fma(&mut self, op: AstOp, args: &[Arg]) -> Lower {
        let values = self.args::<3>(args)?;
        let [a, b, c] = values.map(|v| self.f.ty(v));
        if a != b || a != c {
            let other = if a != b { b } else { c };
            return Err(self.report_types_differ(op, &[], a, other));
        }
        self.require(op, a, PrimType::is_float, "floats")?;
        Ok(self.emit(MpirOp::FFma, a, &values, 0))
    }

    /// `bf16.*`
    pub(super) fn bf16s(&mut self, op: AstOp, args: &[Arg], mpir: MpirOp) -> Lower {
        let (values, ty) = self.pair(op, args)?;
        self.require(op, ty, |p| p == PrimType::Bf16, "`bf16` operands")?;
        Ok(self.emit(mpir, ty, &values, 0))
    }

    /// The conversions from and to `bf16`.
    pub(super) fn convert(&mut self, op: AstOp, args: &[Arg], from: TypeId, to: TypeId) -> Lower {
        let values = self.args::<1>(args)?;
        let found = self.f.ty(values[0]);
        if found != from {
            let wanted = format!("a `{}`", self.type_name(from));
            return Err(self.wrong_kind(op, found, &wanted));
        }
        Ok(self.emit(MpirOp::Cast, to, &values, 0))
    }

    #[inline]
    pub(super) fn compare_integers(&mut self, op: AstOp, args: &[Arg], mpir: MpirOp) -> Lower {
        let (values, ty) = self.pair(op, args)?;
        self.require(op, ty, is_int_or_bool, "integers or `bool`")?;
        Ok(self.emit(mpir, fixed::BOOL, &values, 0))
    }

    #[inline]
    pub(super) fn compare_floats(&mut self, op: AstOp, args: &[Arg], mpir: MpirOp) -> Lower {
        let (values, ty) = self.pair(op, args)?;
        self.require(op, ty, PrimType::is_float, "floats")?;
        Ok(self.emit(mpir, fixed::BOOL, &values, 0))
    }

    /// The two types between `<` and `>` of a conversion, and its operand, which has the first.
    fn conversion(
        &mut self,
        op: AstOp,
        types: &[TypeArg],
        args: &[Arg],
    ) -> Lower<(TypeId, TypeId, MpirValue)> {
        let [TypeArg::Type(from), TypeArg::Type(to)] = *types else { return Err(Poisoned) };
        let (from, to, value) = (self.type_use(from), self.type_use(to), self.args::<1>(args));
        let (from, to, [value]) = (from?, to?, value?);
        let found = self.f.ty(value);
        if found != from {
            let (from, found) = (self.type_name(from), self.type_name(found));
            let message = format!("`{}<{from}, …>` of a `{found}`", op.name());
            let help = format!("write `{}<{found}, …>`", op.name());
            return Err(self.error(Code::MPT2014, message, help));
        }
        Ok((from, to, value))
    }

    pub(super) fn cast(&mut self, types: &[TypeArg], args: &[Arg]) -> Lower {
        let (from, to, value) = self.conversion(AstOp::Cast, types, args)?;
        let help = match (PrimType::from_id(from), PrimType::from_id(to)) {
            (Some(PrimType::Unit), _) | (_, Some(PrimType::Unit)) | (None, _) | (_, None) => {
                "`cast` converts between numbers and `bool`"
            }
            (Some(PrimType::Bf16), _) => "`bf16` is converted with `bf16.to_f32` and `f32.to_bf16`",
            (_, Some(PrimType::Bf16)) => "`bf16` is converted with `f32.to_bf16` and `bf16.to_f32`",
            (Some(f), Some(PrimType::Bool | PrimType::U1)) if f.is_float() => {
                "compare it: `fcmp.one { lhs=%x, rhs=const.f32 0.0 }`"
            }
            (Some(_), Some(_)) if from == to => return Ok(Out::Value(value)),
            (Some(_), Some(_)) => return Ok(self.emit(MpirOp::Cast, to, &[value], 0)),
        };
        let (from, to) = (self.type_name(from), self.type_name(to));
        Err(self.error(Code::MPT2011, format!("there is no cast from `{from}` to `{to}`"), help))
    }

    pub(super) fn bits_cast(&mut self, types: &[TypeArg], args: &[Arg]) -> Lower {
        let (from, to, value) = self.conversion(AstOp::BitsCast, types, args)?;
        let fits = match (PrimType::from_id(from), PrimType::from_id(to)) {
            (Some(a), Some(b)) => a.bit_width() == b.bit_width() && a != PrimType::Unit,
            _ => false,
        };
        if !fits {
            let (from, to) = (self.type_name(from), self.type_name(to));
            let message = format!("`{from}` and `{to}` are no primitive types of one width");
            return Err(self.error(Code::MPT2011, message, "convert values with `cast`"));
        }
        if from == to {
            return Ok(Out::Value(value));
        }
        Ok(self.emit(MpirOp::BitsCast, to, &[value], 0))
    }

    pub(super) fn select(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<3>(args)?;
        let [cond, a, b] = values.map(|v| self.f.ty(v));
        if cond != fixed::BOOL {
            let found = self.type_name(cond);
            let message = format!("the condition of `select` is `{found}`, not `bool`");
            return Err(self.error(
                Code::MPT2015,
                message,
                "compare it, for example with `icmp.ne`",
            ));
        }
        if a != b {
            return Err(self.report_types_differ(AstOp::Select, &args[1..], a, b));
        }
        let types = &self.cx.module.types;
        let is_view = magpie_mpir::ownership::is_view(types, a);
        let is_array =
            matches!(types.kind(a), TypeKind::SharedArray(..) | TypeKind::LocalArray(..));
        if !types.is_copy(a) && !self.on_device || is_view || is_array {
            let name = self.type_name(a);
            let message = format!("`select` between values of type `{name}`");
            let help = "choose with `cbr` and a `phi`: only copied values can be selected";
            return Err(self.error(Code::MPT2015, message, help));
        }
        if a == fixed::UNIT {
            return Ok(Out::Unit);
        }
        Ok(self.emit(MpirOp::Select, a, &values, 0))
    }
}

fn is_int_or_bool(prim: PrimType) -> bool {
    prim.is_int() || prim == PrimType::Bool
}
