//! A remainder beside the quotient of the same numbers.
//!
//! Processors take much longer to divide than to multiply: where a block has both, the remainder is
//! what the quotient leaves.

use super::PassContext;
use crate::{Domain, Flags, Inst, MpirFn, Op, Value};
use magpie_types::{PrimType, fixed};
use rustc_hash::FxHashMap;

/// Two numbers, and whether they are signed.
type Numbers = (Value, Value, bool);

/// Computes remainders from quotients of the same block, in lowered host code. That the remainder of a
/// division by zero is zero is still asked, if it is not known to be another number.
pub fn share_divisions(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    if f.domain != Domain::LowHost {
        return false;
    }
    let PassContext { replacements, .. } = ctx;
    replacements.start(f);
    let mut quotients: FxHashMap<Numbers, usize> = FxHashMap::default();
    let mut remainders: FxHashMap<Numbers, usize> = FxHashMap::default();
    for b in f.block_ids() {
        if !f.block(b).insts.iter().any(|&i| matches!(f.inst(i).op, Op::ISrem | Op::IUrem)) {
            continue;
        }
        quotients.clear();
        remainders.clear();
        for (at, &i) in f.block(b).insts.iter().enumerate() {
            let Some(numbers) = divided(f, i) else { continue };
            let of_kind = match f.inst(i).op {
                Op::ISdiv | Op::IUdiv => &mut quotients,
                _ => &mut remainders,
            };
            of_kind.entry(numbers).or_insert(at);
        }
        remainders.retain(|numbers, _| quotients.contains_key(numbers));
        if remainders.is_empty() {
            continue;
        }
        let insts = std::mem::take(&mut f.block_mut(b).insts);
        let mut new = Vec::with_capacity(insts.len() + 4 * remainders.len());
        for (at, &i) in insts.iter().enumerate() {
            let numbers = divided(f, i);
            let Some((numbers, &first)) = numbers.and_then(|n| Some((n, remainders.get(&n)?)))
            else {
                new.push(i);
                continue;
            };
            let quotient = insts[quotients[&numbers]];
            // The quotient moves to where the first of the two is.
            if at == first.min(quotients[&numbers]) {
                new.push(quotient);
            }
            if at == first
                && let Some(q) = f.inst(quotient).result()
                && let Some(old) = f.inst(i).result()
            {
                let rest = remainder(f, i, numbers, q, &mut new);
                replacements.set(old, rest);
            } else if i != quotient {
                new.push(i);
            }
        }
        f.block_mut(b).insts = new;
    }
    let changed = !replacements.is_empty();
    replacements.apply(f);
    changed
}

/// The numbers that an instruction divides.
fn divided(f: &MpirFn, i: Inst) -> Option<Numbers> {
    let is_signed = match f.inst(i).op {
        Op::ISdiv | Op::ISrem => true,
        Op::IUdiv | Op::IUrem => false,
        _ => return None,
    };
    let &[a, b] = f.args(i) else { return None };
    PrimType::from_id(f.inst(i).ty).map(|_| (a, b, is_signed))
}

/// What quotient `q` leaves, in place of remainder `i`.
fn remainder(
    f: &mut MpirFn,
    i: Inst,
    (a, b, _): Numbers,
    q: Value,
    insts: &mut Vec<Inst>,
) -> Value {
    let (ty, span) = (f.inst(i).ty, f.inst(i).span);
    let zero = f.const_bits(ty, 0);
    let mut make = |op, ty, args: &[Value]| {
        let i = f.make_inst(op, Flags::NONE, ty, args, 0, span);
        insts.push(i);
        f.inst(i).result().unwrap_or(zero)
    };
    let product = make(Op::IMul, ty, &[q, b]);
    let rest = make(Op::ISub, ty, &[a, product]);
    let nothing = make(Op::IcmpEq, fixed::BOOL, &[b, zero]);
    make(Op::Select, ty, &[nothing, zero, rest])
}
