//! Legalisation: rewriting what a target cannot do, or does less exactly than the numeric table
//! says, into what it does exactly.
//!
//! [`LegalOps`] says what a target offers; [`legalize`] brings a kernel into that form. Every
//! rewrite is bit-exact with [`magpie_mpir::eval`]. Kernels are free of struct and vector values
//! here ([`magpie_mpir::passes`]).

mod casts;
mod exact;
mod exact64;
mod float16;
mod float_ops;
mod fma;
mod format;
mod half;
mod integers;
mod math;
mod rem;
mod retype;
mod seq;
mod small_ints;
mod vectors;
mod wide_floats;

pub use float16::{first_computing, legalize_float16, mentions};
pub use rem::lower_float_rem;
pub use small_ints::legalize_small_ints;
pub use vectors::keeps_vectors;

use magpie_mpir::{Flags, MpirFn, Op, Value};
use magpie_types::{PrimType, TypeCtx, TypeId};
use rustc_hash::FxHashMap;
use seq::Seq;

/// What a target does natively, exactly as the numeric table says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LegalOps {
    /// f16 arithmetic, correctly rounded, with subnormals.
    pub float16: bool,
    /// bf16 arithmetic.
    pub bfloat16: bool,
    /// Conversions between bf16 and f32.
    pub bfloat16_casts: bool,
    /// 8-bit integer arithmetic.
    pub int8: bool,
    /// 16-bit integer arithmetic.
    pub int16: bool,
    /// f64, for intermediate results.
    pub float64: bool,
    /// Integer division and remainder of any operands.
    pub total_division: bool,
    /// Shift amounts are taken modulo the width.
    pub masked_shifts: bool,
    /// Rotations.
    pub rotates: bool,
    /// Trailing zero count, 32 bits.
    pub ctz: bool,
    /// Float to integer conversions saturate; NaN gives 0.
    pub saturating_casts: bool,
    /// Division and square root are correctly rounded.
    pub exact_division: bool,
    /// fma rounds once.
    pub exact_fma: bool,
    /// Minimum and maximum order zeros and ignore one NaN.
    pub ordered_min_max: bool,
    /// f.rem is exact.
    pub exact_rem: bool,
    /// Division and square root of f16 are correctly rounded. What `exact_division` says is then
    /// about f32 and f64 only.
    pub half_division: bool,
    /// f64 to f16 rounds once.
    pub double_to_half: bool,
    /// Elementary functions. Without them f16 and bf16 go through f32, and what remains is
    /// `f.exp2 f.log2 f.sin f.cos` of f32 with the flag `afn`: the fast approximations of GPUs.
    pub math: bool,
}

impl LegalOps {
    /// A target on which everything is legal.
    pub const ALL: LegalOps = LegalOps {
        float16: true,
        bfloat16: true,
        bfloat16_casts: true,
        int8: true,
        int16: true,
        float64: true,
        total_division: true,
        masked_shifts: true,
        rotates: true,
        ctz: true,
        saturating_casts: true,
        exact_division: true,
        exact_fma: true,
        ordered_min_max: true,
        exact_rem: true,
        half_division: true,
        double_to_half: true,
        math: true,
    };
}

/// Rewrites a kernel until everything in it is legal. Gives whether anything changed.
pub fn legalize(f: &mut MpirFn, types: &mut TypeCtx, legal: &LegalOps) -> bool {
    let lacks = |p| match p {
        PrimType::F16 => !legal.float16,
        _ => !legal.bfloat16,
    };
    let mut changed = legalize_float16(f, types, &lacks, legal);
    changed |= math::lower_math(f, legal);
    changed |= wide_floats::lower_wide_floats(f, legal);
    if !legal.exact_rem {
        changed |= lower_float_rem(f);
    }
    changed |= legalize_small_ints(f, &|p| match p.bit_width() {
        8 => !legal.int8,
        _ => !legal.int16,
    });
    changed | legalize_ops(f, legal)
}

/// Replaces single ops by straight-line code. Allowed inexactness keeps the native op.
pub fn legalize_ops(f: &mut MpirFn, legal: &LegalOps) -> bool {
    rewrite_ops(f, may_need_work, |s, op, ty, args| expand(s, legal, op, ty, args))
}

/// Replaces the instructions for which `expand` writes others; it is asked about those with
/// `wanted` ops that have operands and a result.
fn rewrite_ops(
    f: &mut MpirFn,
    wanted: impl Fn(Op) -> bool,
    mut expand: impl FnMut(&mut Seq, Op, TypeId, &[Value]) -> Option<Value>,
) -> bool {
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    for b in f.block_ids() {
        if !f.block(b).insts.iter().any(|&i| wanted(f.inst(i).op)) {
            continue;
        }
        let old = std::mem::take(&mut f.block_mut(b).insts);
        let mut out = Vec::with_capacity(old.len());
        for i in old {
            let data = *f.inst(i);
            let args: Vec<Value> = match wanted(data.op) {
                true => f.args(i).to_vec(),
                false => Vec::new(),
            };
            let new = match data.result() {
                Some(_) if !args.is_empty() => {
                    let span = data.span;
                    let mut s = Seq { f, out: &mut out, span, flags: data.flags };
                    expand(&mut s, data.op, data.ty, &args)
                }
                _ => None,
            };
            match (data.result(), new) {
                (Some(old), Some(new)) => {
                    map.insert(old, new);
                }
                _ => out.push(i),
            }
        }
        f.block_mut(b).insts = out;
    }
    f.replace_uses(&map);
    !map.is_empty()
}

/// Ops with a rule below.
fn may_need_work(op: Op) -> bool {
    matches!(
        op,
        Op::ISdiv
            | Op::IUdiv
            | Op::ISrem
            | Op::IUrem
            | Op::IShl
            | Op::ILshr
            | Op::IAshr
            | Op::IRotl
            | Op::IRotr
            | Op::IPopcount
            | Op::IClz
            | Op::ICtz
            | Op::IMulHiS
            | Op::IMulHiU
            | Op::IAddOverflows
            | Op::ISubOverflows
            | Op::IMulOverflows
            | Op::Cast
            | Op::FDiv
            | Op::FSqrt
            | Op::FMin
            | Op::FMax
    )
}

fn expand(s: &mut Seq, legal: &LegalOps, op: Op, ty: TypeId, args: &[Value]) -> Option<Value> {
    let to = PrimType::from_id(ty)?;
    let first = *args.first()?;
    let second = args.get(1).copied().unwrap_or(first);
    match op {
        Op::Cast => casts::expand(s, legal, first, to),
        Op::FDiv | Op::FSqrt if s.flags.contains(Flags::AFN) => None,
        Op::FDiv | Op::FSqrt => {
            let exact = |s: &mut Seq, a, b| match op {
                _ if legal.exact_division && op == Op::FDiv => s.same(op, &[a, b]),
                _ if legal.exact_division => s.same(op, &[a]),
                Op::FDiv => exact::div_f32(s, a, b),
                _ => exact::sqrt_f32(s, a),
            };
            match to {
                PrimType::F32 if legal.exact_division => None,
                PrimType::F32 => Some(exact(s, first, second)),
                PrimType::F16 if legal.half_division => None,
                // A correctly rounded f32 result rounds once more to the right f16.
                PrimType::F16 => {
                    let (a, b) = (s.cast(first, PrimType::F32), s.cast(second, PrimType::F32));
                    let r = exact(s, a, b);
                    Some(s.cast(r, PrimType::F16))
                }
                _ => None,
            }
        }
        Op::FMin | Op::FMax if !legal.ordered_min_max => {
            if s.flags.contains(Flags::NNAN) && s.flags.contains(Flags::NSZ) {
                return None;
            }
            Some(float_ops::min_max(s, op, first, second))
        }
        _ => integers::expand(s, legal, op, args),
    }
}

#[cfg(test)]
mod tests;
