//! Elementary functions for targets without a mathematical library, in straight-line code.
//!
//! One text serves f32 and f64: a [`Library`] says how many terms the polynomials have. f16 and
//! bf16 go through f32. Everything is built from exact operations, so results are the same on all
//! targets that use it; `docs/numerics.md` says how close they are.
//!
//! Where the flag `afn` allows it, f32 functions are made of four approximations that GPUs have in
//! hardware: 2^x, log2, sine and cosine. Those four stay.

mod arcs;
mod exponentials;
mod library;
mod powers;
mod trigonometry;

use super::seq::Seq;
use super::{LegalOps, rewrite_ops};
use library::Library;
use magpie_mpir::{Flags, MpirFn, Op, Value};
use magpie_types::PrimType;

/// Expands elementary functions. What it writes is legal after the passes that follow.
pub(super) fn lower_math(f: &mut MpirFn, legal: &LegalOps) -> bool {
    if legal.math {
        return false;
    }
    // Twice: the first time f16 and bf16 become f32.
    let narrow = rewrite_ops(f, is_elementary, |s, op, ty, args| match PrimType::from_id(ty)? {
        PrimType::F16 | PrimType::Bf16 => Some(through_f32(s, op, args)),
        _ => None,
    });
    let wide = rewrite_ops(f, is_elementary, |s, op, ty, args| {
        let library = Library::of(PrimType::from_id(ty)?)?;
        expand(s, library, op, args)
    });
    narrow | wide
}

/// Functions with an accuracy instead of a value.
fn is_elementary(op: Op) -> bool {
    matches!(
        op,
        Op::FExp
            | Op::FExp2
            | Op::FLog
            | Op::FLog2
            | Op::FSin
            | Op::FCos
            | Op::FTan
            | Op::FAsin
            | Op::FAcos
            | Op::FAtan
            | Op::FSinh
            | Op::FCosh
            | Op::FTanh
            | Op::FAtan2
            | Op::FPow
    )
}

fn through_f32(s: &mut Seq, op: Op, args: &[Value]) -> Value {
    let to = s.prim(args[0]);
    let wide: Vec<Value> = args.iter().map(|&v| s.cast(v, PrimType::F32)).collect();
    let r = s.inst(op, PrimType::F32.id(), &wide, s.flags);
    s.cast(r, to)
}

/// The replacement of a function of f32 or f64, or `None` when it stays.
fn expand(s: &mut Seq, lib: &Library, op: Op, args: &[Value]) -> Option<Value> {
    let x = *args.first()?;
    Some(match op {
        Op::FExp2 | Op::FLog2 | Op::FSin | Op::FCos if has_approximations(s, lib) => return None,
        Op::FExp => exponentials::exp(s, lib, x),
        Op::FExp2 => exponentials::exp2(s, lib, x),
        Op::FSinh => exponentials::sinh(s, lib, x),
        Op::FCosh => exponentials::cosh(s, lib, x),
        Op::FTanh => exponentials::tanh(s, lib, x),
        Op::FLog => powers::log(s, lib, x),
        Op::FLog2 => powers::log2(s, lib, x),
        Op::FPow => powers::pow(s, lib, x, *args.get(1)?),
        Op::FSin => trigonometry::sin(s, lib, x),
        Op::FCos => trigonometry::cos(s, lib, x),
        Op::FTan => trigonometry::tan(s, lib, x),
        Op::FAsin => arcs::asin(s, lib, x),
        Op::FAcos => arcs::acos(s, lib, x),
        Op::FAtan => {
            let one = lib.number(s, 1.0);
            arcs::atan2(s, lib, x, one)
        }
        Op::FAtan2 => arcs::atan2(s, lib, x, *args.get(1)?),
        _ => return None,
    })
}

/// Whether the hardware's approximations may be used.
fn has_approximations(s: &Seq, lib: &Library) -> bool {
    s.flags.contains(Flags::AFN) && lib.format.float == PrimType::F32
}

/// One of the approximations of the hardware.
fn approximate(s: &mut Seq, op: Op, x: Value) -> Value {
    let ty = s.f.ty(x);
    s.inst(op, ty, &[x], Flags::AFN)
}

/// A quotient, or with one operand a root; approximate when the function may be.
fn divide(s: &mut Seq, op: Op, args: &[Value]) -> Value {
    let ty = s.f.ty(args[0]);
    s.inst(op, ty, args, s.flags.intersect(Flags::AFN))
}

#[cfg(test)]
mod tests;
