//! Addresses that differ from one computed before by a constant.
//!
//! `a[i - 1]`, `a[i]` and `a[i + 1]` lie side by side, unless an index wraps between them. It cannot: accesses
//! are inside of their array when they execute, arrays end [`REACH`] elements before the indices do
//! (that is part of what lets a row run in lanes), and those of one block, or of one path, execute
//! together.

use super::guard::Guard;
use cranelift_codegen::ir;
use magpie_mpir::{MpirFn, Op, Value};
use rustc_hash::FxHashMap;

/// How far apart two indices may be, in elements.
pub(super) const REACH: i64 = 1 << 16;
/// The longest buffer in which a 32-bit index cannot wrap between elements that are near each other.
pub const MAX_NEAR_LEN: u64 = (1 << 32) - REACH as u64;
/// The largest element whose neighbours are found this way, in bytes: distances fit an instruction.
pub(super) const MAX_STRIDE: u32 = 1 << 12;
/// The most values that an index is the sum of.
const MAX_TERMS: usize = 8;
/// The deepest sum that is taken apart.
const MAX_DEPTH: u32 = 8;

/// An address in an array and how many bytes behind it the element is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) address: ir::Value,
    pub(crate) offset: i32,
}

/// The elements of an array whose indices have the same terms.
type Key = (Value, Vec<(Value, i32)>);

/// Addresses that the block or the path has computed, with the constants in their indices.
#[derive(Debug, Default)]
pub(crate) struct Places {
    known: FxHashMap<Key, (ir::Value, u32)>,
}

impl Places {
    pub(crate) fn clear(&mut self) {
        self.known.clear();
    }

    /// The place of an element with a 32-bit index; `compute` gives its address when no other is near.
    /// The index is `ahead` of what its terms were when they were first seen. `stride` is the size of
    /// elements in bytes.
    pub(crate) fn find(
        &mut self,
        f: &MpirFn,
        guard: &Guard,
        [array, index]: [Value; 2],
        ahead: i32,
        stride: u32,
        compute: impl FnOnce() -> ir::Value,
    ) -> Place {
        let mut sum = Sum::default();
        if !sum.add(f, guard, index, 1, MAX_DEPTH) {
            return Place { address: compute(), offset: 0 };
        }
        let Sum { mut terms, constant } = sum;
        let constant = constant.wrapping_add(ahead as u32);
        terms.sort_unstable();
        let key = (array, terms);
        if let Some(&(address, from)) = self.known.get(&key) {
            let distance = i64::from(constant.wrapping_sub(from) as i32);
            if distance.abs() < REACH && stride <= MAX_STRIDE {
                return Place { address, offset: distance as i32 * stride as i32 };
            }
        }
        let address = compute();
        self.known.insert(key, (address, constant));
        Place { address, offset: 0 }
    }
}

/// A 32-bit number as a sum, modulo 2^32: values with how often they count, and a constant.
#[derive(Default)]
struct Sum {
    terms: Vec<(Value, i32)>,
    constant: u32,
}

impl Sum {
    /// Adds a value `times` times. False when the sum becomes too long.
    fn add(&mut self, f: &MpirFn, guard: &Guard, v: Value, times: i32, depth: u32) -> bool {
        let v = guard.choice(v).unwrap_or(v);
        if let Some(bits) = f.as_bits(v) {
            self.constant = self.constant.wrapping_add((bits as u32).wrapping_mul(times as u32));
            return true;
        }
        if let (Some(i), Some(depth)) = (f.def_inst(v), depth.checked_sub(1)) {
            let second = match f.inst(i).op {
                Op::IAdd => times,
                Op::ISub => -times,
                _ => 0,
            };
            if second != 0 {
                let args = f.args(i);
                return self.add(f, guard, args[0], times, depth)
                    && self.add(f, guard, args[1], second, depth);
            }
        }
        match self.terms.iter_mut().find(|(term, _)| *term == v) {
            Some((_, count)) => *count += times,
            None => self.terms.push((v, times)),
        }
        self.terms.retain(|&(_, count)| count != 0);
        self.terms.len() <= MAX_TERMS
    }
}
