//! What a loop changes by the same amount in every round: indices and addresses.

use super::append;
use super::find::LoopView;
use crate::{Block, MpirFn, Op, Value};
use magpie_types::{PrimType, TypeId, fixed};

/// Operations that are taken apart.
const MAX_OPS: usize = 32;

/// A number of 64 bits, or an address, as a sum; it wraps as these do.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    ty: TypeId,
    /// The part that is an address.
    pub(super) pointer: Option<Value>,
    /// Numbers that are the same in all rounds, each with its factor; in the order of the values.
    pub(super) terms: Vec<(Value, i64)>,
    pub(super) constant: i64,
    /// The factor of the counter.
    pub(super) step: i64,
}

impl Linear {
    /// `v` as a sum; `None` when it is anything else.
    pub(super) fn of(view: &LoopView, counter: Value, v: Value) -> Option<Linear> {
        let f = view.f;
        let mut sum =
            Linear { ty: f.ty(v), pointer: None, terms: Vec::new(), constant: 0, step: 0 };
        let mut work = vec![(v, 1i64)];
        let mut ops = 0;
        while let Some((v, factor)) = work.pop() {
            let is_number = match PrimType::from_id(f.ty(v)) {
                Some(PrimType::I64) => true,
                Some(_) => return None,
                None => false,
            };
            if v == counter {
                sum.step = sum.step.wrapping_add(factor);
            } else if let Some(bits) = f.as_bits(v).filter(|_| is_number) {
                sum.constant = sum.constant.wrapping_add((bits as i64).wrapping_mul(factor));
            } else if ops < MAX_OPS
                && let Some(parts) = parts(f, v, factor)
            {
                ops += 1;
                work.extend(parts.into_iter().flatten());
            } else if view.is_inside(v) {
                return None;
            } else if is_number {
                sum.terms.push((v, factor));
            } else if sum.pointer.is_none() && factor == 1 {
                sum.pointer = Some(v);
            } else {
                return None;
            }
        }
        sum.terms.sort_by_key(|term| term.0);
        sum.terms.dedup_by(|next, term| {
            let is_same = next.0 == term.0;
            if is_same {
                term.1 = term.1.wrapping_add(next.1);
            }
            is_same
        });
        sum.terms.retain(|term| term.1 != 0);
        Some(sum)
    }

    /// Whether the two differ by a constant.
    pub(super) fn is_parallel(&self, other: &Linear) -> bool {
        (self.pointer, &self.terms, self.step) == (other.pointer, &other.terms, other.step)
    }

    /// Appends what it is without the counter and the constant.
    pub(super) fn base(&self, f: &mut MpirFn, b: Block) -> Value {
        let mut sum = None;
        for &(v, factor) in &self.terms {
            let term = scaled(f, b, v, factor);
            sum = Some(match sum {
                Some(sum) => append(f, b, Op::IAdd, fixed::I64, &[sum, term]),
                None => term,
            });
        }
        match (self.pointer, sum) {
            (Some(pointer), Some(sum)) => append(f, b, Op::PtrAdd, self.ty, &[pointer, sum]),
            (Some(pointer), None) => pointer,
            (None, Some(sum)) => sum,
            (None, None) => f.const_bits(fixed::I64, 0),
        }
    }

    /// Appends what it is, without the constant, when the base and the counter are these.
    pub(super) fn at(&self, f: &mut MpirFn, b: Block, base: Value, counter: Value) -> Value {
        if self.step == 0 {
            return base;
        }
        let moved = scaled(f, b, counter, self.step);
        let op = if self.pointer.is_some() { Op::PtrAdd } else { Op::IAdd };
        append(f, b, op, self.ty, &[base, moved])
    }

    /// Appends the number when the counter is this.
    pub(super) fn number_at(&self, f: &mut MpirFn, b: Block, counter: Value) -> Value {
        let base = self.base(f, b);
        let sum = self.at(f, b, base, counter);
        let constant = f.const_bits(fixed::I64, self.constant as u64);
        append(f, b, Op::IAdd, fixed::I64, &[sum, constant])
    }
}

/// The numbers whose sum, each times its factor, is `v` times `factor`.
fn parts(f: &MpirFn, v: Value, factor: i64) -> Option<[Option<(Value, i64)>; 2]> {
    let i = f.def_inst(v)?;
    let &[x, y] = f.args(i) else { return None };
    let op = f.inst(i).op;
    let by = f.as_bits(y).map(|bits| bits as i64);
    if op == Op::IAdd || op == Op::PtrAdd {
        Some([Some((x, factor)), Some((y, factor))])
    } else if op == Op::ISub {
        Some([Some((x, factor)), Some((y, factor.wrapping_neg()))])
    } else if op == Op::IMul {
        Some([Some((x, factor.wrapping_mul(by?))), None])
    } else if op == Op::IShl {
        Some([Some((x, factor.wrapping_shl(by? as u32 & 63))), None])
    } else {
        None
    }
}

fn scaled(f: &mut MpirFn, b: Block, v: Value, factor: i64) -> Value {
    if factor == 1 {
        return v;
    }
    let factor = f.const_bits(fixed::I64, factor as u64);
    append(f, b, Op::IMul, fixed::I64, &[v, factor])
}
