//! `system.math`.

use super::body::{Body, Val};
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value};
use magpie_types::{PrimType, fixed};

impl Body<'_, '_, '_> {
    pub(super) fn math(
        &mut self,
        name: &'static str,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        if name == "hash_u32" {
            let [x] = self.plain_args(name, args, span)?;
            let x = self.expr_as(x, ty::U32)?;
            return Ok(self.hash(x));
        }
        let count = match name {
            "clamp" | "mix" | "smoothstep" => 3,
            "min" | "max" | "pow" | "atan2" | "step" => 2,
            "" | "Array" | "Map" | "Set" => return Err(self.not_callable(name, span)),
            _ => 1,
        };
        if args.len() != count {
            let message = format!("`{name}` gets {} arguments instead of {count}", args.len());
            return Err(self.error(Code::MIR0211, span, message, "give one for each parameter"));
        }
        let vals = self.same_numbers(args, want, span)?;
        let t = vals[0].ty;
        if let TyKind::Vector(..) = self.cx.tys.kind(t) {
            if name == "mix" {
                return self.vector_mix(&vals, span);
            }
            let message = format!("`{name}` takes numbers, not vectors");
            return Err(self.error(Code::MIR2201, span, message, "apply it to the components"));
        }
        let Some(p) = self.scalar(t).filter(|p| p.is_float() || p.is_int()) else {
            let message = format!("`{name}` takes numbers, not a `{}`", self.cx.ty_name(t));
            return Err(self.error(Code::MIR0202, span, message, "give a float"));
        };
        self.at(span);
        let v: Vec<Value> = vals.iter().map(|v| v.v).collect();
        if p.is_int() {
            return self.int_math(name, p, t, &v, span);
        }
        let x = v[0];
        let result = match name {
            "abs" => self.b.same(Op::FAbs, &[x]),
            "min" => self.b.same(Op::FMin, &v),
            "max" => self.b.same(Op::FMax, &v),
            "pow" => self.b.same(Op::FPow, &v),
            "sqrt" => self.b.same(Op::FSqrt, &[x]),
            "exp" => self.b.same(Op::FExp, &[x]),
            "exp2" => self.b.same(Op::FExp2, &[x]),
            "log" => self.b.same(Op::FLog, &[x]),
            "log2" => self.b.same(Op::FLog2, &[x]),
            "floor" => self.b.same(Op::FFloor, &[x]),
            "ceil" => self.b.same(Op::FCeil, &[x]),
            "round" => self.b.same(Op::FRound, &[x]),
            "sin" => self.b.same(Op::FSin, &[x]),
            "cos" => self.b.same(Op::FCos, &[x]),
            "tan" => self.b.same(Op::FTan, &[x]),
            "tanh" => self.b.same(Op::FTanh, &[x]),
            "atan2" => self.b.same(Op::FAtan2, &v),
            "step" => {
                let below = self.b.compare(Op::FcmpOlt, v[1], x);
                let (zero, one) = (self.float(p, 0.0), self.float(p, 1.0));
                self.b.select(below, zero, one)
            }
            "clamp" => {
                let low = self.b.same(Op::FMax, &[x, v[1]]);
                self.b.same(Op::FMin, &[low, v[2]])
            }
            "mix" => {
                let one = self.float(p, 1.0);
                let rest = self.float_op(Op::FSub, &[one, v[2]]);
                let a = self.float_op(Op::FMul, &[x, rest]);
                let b = self.float_op(Op::FMul, &[v[1], v[2]]);
                self.float_op(Op::FAdd, &[a, b])
            }
            "fract" => {
                let floor = self.b.same(Op::FFloor, &[x]);
                self.float_op(Op::FSub, &[x, floor])
            }
            "sign" => {
                let (zero, one, minus) =
                    (self.float(p, 0.0), self.float(p, 1.0), self.float(p, -1.0));
                let above = self.b.compare(Op::FcmpOgt, x, zero);
                let below = self.b.compare(Op::FcmpOlt, x, zero);
                let low = self.b.select(below, minus, zero);
                self.b.select(above, one, low)
            }
            "smoothstep" => {
                let (low, high, x) = (v[0], v[1], v[2]);
                let width = self.float_op(Op::FSub, &[high, low]);
                let above = self.float_op(Op::FSub, &[x, low]);
                let t = self.float_op(Op::FDiv, &[above, width]);
                let (zero, one) = (self.float(p, 0.0), self.float(p, 1.0));
                let t = self.b.same(Op::FMax, &[t, zero]);
                let t = self.b.same(Op::FMin, &[t, one]);
                let (two, three) = (self.float(p, 2.0), self.float(p, 3.0));
                let double = self.float_op(Op::FMul, &[two, t]);
                let rest = self.float_op(Op::FSub, &[three, double]);
                let square = self.float_op(Op::FMul, &[t, t]);
                self.float_op(Op::FMul, &[square, rest])
            }
            "sigmoid" => {
                let minus = self.b.same(Op::FNeg, &[x]);
                let e = self.b.same(Op::FExp, &[minus]);
                let one = self.float(p, 1.0);
                let below = self.float_op(Op::FAdd, &[one, e]);
                self.float_op(Op::FDiv, &[one, below])
            }
            _ => return Err(self.not_callable(name, span)),
        };
        Ok(self.val(t, result))
    }

    fn not_callable(&mut self, name: &str, span: Span) -> Poisoned {
        let message = format!("`{name}` cannot be called like this");
        let help = "types need their arguments: `Array<int, 4>()`, `Map<String, int>()`";
        self.error(Code::MIR0202, span, message, help)
    }

    fn float(&mut self, p: PrimType, x: f64) -> Value {
        let bits = match p {
            PrimType::F32 => u64::from((x as f32).to_bits()),
            PrimType::F16 => u64::from(magpie_types::float16::f64_to_f16(x)),
            _ => x.to_bits(),
        };
        self.b.const_bits(p.id(), bits)
    }

    /// The arguments in one type: literals adapt, otherwise the widest wins.
    fn same_numbers(&mut self, args: &[Arg], want: Option<Ty>, span: Span) -> Lower<Vec<Val>> {
        let want = want.filter(|&t| self.cx.tys.is_float(t));
        let literal: Vec<bool> = args.iter().map(|a| self.cx.adapts(a.value)).collect();
        let mut vals: Vec<Option<Val>> = vec![None; args.len()];
        let mut widest: Option<Val> = None;
        for (n, arg) in args.iter().enumerate() {
            if literal[n] {
                continue;
            }
            let val = self.expr(arg.value, want)?;
            let width = |body: &Self, t: Ty| match body.cx.tys.kind(t) {
                TyKind::Vector(..) => u32::MAX,
                _ => body.scalar(t).map_or(0, PrimType::bit_width),
            };
            if widest.is_none_or(|w| width(self, val.ty) > width(self, w.ty)) {
                widest = Some(val);
            }
            vals[n] = Some(val);
        }
        let component = widest.map(|w| match self.cx.tys.kind(w.ty) {
            TyKind::Vector(c, _) => c,
            _ => w.ty,
        });
        for (n, arg) in args.iter().enumerate() {
            if vals[n].is_some() {
                continue;
            }
            let val = self.expr(arg.value, component.or(want))?;
            vals[n] = Some(val);
        }
        let all_vectors =
            widest.is_some_and(|w| matches!(self.cx.tys.kind(w.ty), TyKind::Vector(..)));
        let vals: Vec<Val> = vals.into_iter().flatten().collect();
        if all_vectors {
            return Ok(vals);
        }
        let target = component.unwrap_or(vals[0].ty);
        let mut out = Vec::with_capacity(vals.len());
        for val in vals {
            out.push(self.coerce(val, target, span)?);
        }
        Ok(out)
    }

    fn int_math(&mut self, name: &str, p: PrimType, t: Ty, v: &[Value], span: Span) -> Lower<Val> {
        let signed = p.is_signed();
        let pick = |s, u| if signed { s } else { u };
        let result = match name {
            "abs" if !signed => v[0],
            "abs" => {
                let zero = self.b.const_bits(p.id(), 0);
                let minus = self.b.same(Op::ISub, &[zero, v[0]]);
                self.b.same(Op::ISmax, &[v[0], minus])
            }
            "min" => self.b.same(pick(Op::ISmin, Op::IUmin), v),
            "max" => self.b.same(pick(Op::ISmax, Op::IUmax), v),
            "clamp" => {
                let low = self.b.same(pick(Op::ISmax, Op::IUmax), &v[..2]);
                self.b.same(pick(Op::ISmin, Op::IUmin), &[low, v[2]])
            }
            _ => {
                let message = format!("`{name}` takes floats, not a `{}`", self.cx.ty_name(t));
                let help = "convert the argument: `x as f32`";
                return Err(self.error(Code::MIR0202, span, message, help));
            }
        };
        Ok(self.val(t, result))
    }

    fn hash(&mut self, x: Val) -> Val {
        let mul = |body: &mut Self, h: Value, k: u32| {
            let k = body.b.func().const_u32(k);
            body.b.same(Op::IMul, &[h, k])
        };
        let mix = |body: &mut Self, h: Value, shift: u32| {
            let shift = body.b.func().const_u32(shift);
            let high = body.b.same(Op::ILshr, &[h, shift]);
            body.b.same(Op::IXor, &[h, high])
        };
        debug_assert_eq!(self.b.ty(x.v), fixed::U32);
        let h = mul(self, x.v, 374_761_393);
        let h = mix(self, h, 16);
        let h = mul(self, h, 2_246_822_519);
        let h = mix(self, h, 13);
        let h = mul(self, h, 3_266_489_917);
        let h = mix(self, h, 16);
        self.val(ty::U32, h)
    }
}
