//! Exact float remainder (C `fmod`) for any quotient, in integer code: the dividend's significand
//! is reduced a few bits at a time, so that nothing is ever rounded.

use super::format::{F32, F64, Format, take_apart};
use super::seq::Seq;
use magpie_mpir::{Block, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::{PrimType, fixed};
use rustc_hash::FxHashMap;

/// Quotient bits a round: what the integer type has above a significand.
fn step(format: &Format) -> u32 {
    format.width() - 1 - format.fraction
}

/// Replaces every `f.rem` on f32 and f64 by a loop. Each splits its block.
pub fn lower_float_rem(f: &mut MpirFn) -> bool {
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    let mut work: Vec<Block> = f.block_ids().collect();
    while let Some(b) = work.pop() {
        let is_rem = |&i: &Inst| {
            let data = f.inst(i);
            data.op == Op::FRem && matches!(data.ty, fixed::F32 | fixed::F64)
        };
        let Some(at) = f.block(b).insts.iter().position(is_rem) else { continue };
        let i = f.block(b).insts[at];
        let (value, end) = lower(f, b, at);
        if let Some(old) = f.inst(i).result() {
            map.insert(old, value);
        }
        work.push(end);
    }
    f.replace_uses(&map);
    !map.is_empty()
}

/// Replaces the instruction at a place; gives its value and the block that goes on behind it.
fn lower(f: &mut MpirFn, b: Block, at: usize) -> (Value, Block) {
    let i = f.block(b).insts[at];
    let span = f.inst(i).span;
    let format = if f.inst(i).ty == fixed::F64 { F64 } else { F32 };
    let (a, d) = (f.arg(i, 0), f.arg(i, 1));
    let (head, body, end) = (f.add_block(), f.add_block(), f.add_block());
    let rest = f.block_mut(b).insts.split_off(at).split_off(1);
    let term = std::mem::replace(&mut f.block_mut(b).term, Terminator::Br(head));
    let term_span = f.block(b).term_span;

    let mut out = std::mem::take(&mut f.block_mut(b).insts);
    let mut s = Seq { f, out: &mut out, span, flags: magpie_mpir::Flags::NONE };
    let start = prepare(&mut s, &format, a, d);
    f.block_mut(b).insts = out;

    let int = format.int.id();
    let m = f.make_phi(int, &[], span);
    let left = f.make_phi(fixed::U32, &[], span);
    let (mv, lv) = (f.inst(m).result().unwrap_or(a), f.inst(left).result().unwrap_or(a));
    let mut out = vec![m, left];
    let mut s = Seq { f, out: &mut out, span, flags: magpie_mpir::Flags::NONE };
    let zero = s.u32(0);
    let more = s.cmp(Op::IcmpNe, lv, zero);
    f.block_mut(head).insts = out;
    f.block_mut(head).term = Terminator::Cbr { cond: more, then: body, else_: end };

    let mut out = Vec::new();
    let mut s = Seq { f, out: &mut out, span, flags: magpie_mpir::Flags::NONE };
    let step = s.u32(step(&format));
    let step = s.same(Op::IUmin, &[lv, step]);
    let amount = s.cast(step, format.int);
    let shifted = s.same(Op::IShl, &[mv, amount]);
    let m2 = s.same(Op::IUrem, &[shifted, start.divisor]);
    let left2 = s.sub(lv, step);
    f.block_mut(body).insts = out;
    f.block_mut(body).term = Terminator::Br(head);
    f.set_phi_arms(m, &[(b, start.reduced), (body, m2)]);
    f.set_phi_arms(left, &[(b, start.rounds), (body, left2)]);

    let mut out = Vec::new();
    let mut s = Seq { f, out: &mut out, span, flags: magpie_mpir::Flags::NONE };
    let value = finish(&mut s, &format, &start, mv);
    out.extend(rest);
    for t in [head, body] {
        f.block_mut(t).term_span = span;
    }
    let tail = f.block_mut(end);
    tail.insts = out;
    tail.term = term;
    tail.term_span = term_span;
    for t in f.successors(end) {
        let phis: Vec<Inst> = f.phis(t).collect();
        for phi in phis {
            f.map_phi_blocks(phi, |p| if p == b { end } else { p });
        }
    }
    (value, end)
}

/// What is known before the loop.
struct Start {
    sign: Value,
    magnitude: Value,
    /// The divisor's significand and exponent.
    divisor: Value,
    exponent: Value,
    /// The dividend's significand, below the divisor's.
    reduced: Value,
    /// Quotient bits to go, as `u32`; 0 when the dividend is the result.
    rounds: Value,
    /// The dividend is smaller than the divisor.
    small: Value,
    invalid: Value,
}

fn prepare(s: &mut Seq, format: &Format, a: Value, d: Value) -> Start {
    let (ua, ud) = (s.bits(a, format.int), s.bits(d, format.int));
    let sign = s.mask(ua, format.sign());
    let (ma, md) = (s.mask(ua, format.sign() - 1), s.mask(ud, format.sign() - 1));
    let (x, ex) = take_apart(s, format, ma);
    let (y, ey) = take_apart(s, format, md);
    let infinity = s.like(ma, format.infinity());
    let a_bad = s.cmp(Op::IcmpUge, ma, infinity);
    let d_nan = s.cmp(Op::IcmpUgt, md, infinity);
    let d_zero = s.is(md, 0);
    let invalid = s.or(a_bad, d_nan);
    let invalid = s.or(invalid, d_zero);
    let small = s.cmp(Op::IcmpUlt, ma, md);
    let idle = s.or(small, invalid);
    // One conditional subtraction brings the significand below the divisor's.
    let at_least = s.cmp(Op::IcmpUge, x, y);
    let difference = s.sub(x, y);
    let reduced = s.select(at_least, difference, x);
    let rounds = s.sub(ex, ey);
    let rounds = s.cast(rounds, PrimType::U32);
    let none = s.u32(0);
    let rounds = s.select(idle, none, rounds);
    // Never divide by zero, whatever the operands.
    let one = s.like(y, 1);
    let divisor = s.select(d_zero, one, y);
    Start { sign, magnitude: ma, divisor, exponent: ey, reduced, rounds, small, invalid }
}

/// The remainder as a float: its significand times two to the divisor's exponent is exact.
fn finish(s: &mut Seq, format: &Format, start: &Start, m: Value) -> Value {
    let w = format.int.bit_width() as i64;
    let zeros = s.same(Op::IClz, &[m]);
    let shift = s.plus(zeros, -(w - 1 - format.fraction as i64));
    let exponent = s.sub(start.exponent, shift);
    let zero = s.like(m, 0);
    let is_normal = s.cmp(Op::IcmpSgt, exponent, zero);
    let amount = s.mask(shift, w as u64 - 1);
    let up = s.same(Op::IShl, &[m, amount]);
    let fraction = s.mask(up, format.hidden() - 1);
    let field = s.shl(exponent, format.fraction);
    let normal = s.or(field, fraction);
    // Subnormal: the significand in units of the smallest number, up or down from where it is.
    let base = s.plus(start.exponent, -1);
    let is_up = s.cmp(Op::IcmpSge, base, zero);
    let left = s.mask(base, w as u64 - 1);
    let raised = s.same(Op::IShl, &[m, left]);
    let right = s.sub(zero, base);
    let right = s.mask(right, w as u64 - 1);
    let lowered = s.same(Op::ILshr, &[m, right]);
    let subnormal = s.select(is_up, raised, lowered);
    let r = s.select(is_normal, normal, subnormal);
    let none = s.is(m, 0);
    let r = s.select(none, zero, r);
    let r = s.or(r, start.sign);
    let nan = s.like(m, format.quiet_nan());
    let ua = s.or(start.magnitude, start.sign);
    let r = s.select(start.small, ua, r);
    let r = s.select(start.invalid, nan, r);
    s.bits(r, format.float)
}
