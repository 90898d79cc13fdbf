//! Loops that end, whatever the kernel's arguments.
//!
//! C++ lets a compiler assume that a loop without side effects ends, and conclude from it what does
//! not hold in a loop without end. Targets with that rule have to know which loops end anyway.

use super::predicate::{Predicate, Relation};
use super::{Cfg, Dominators, LoopId, Loops, Positions};
use crate::eval::sign_extend;
use crate::{Block, Inst, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_types::PrimType;
use rustc_hash::FxHashSet;

/// Counters of loops that end: phis of the loops' headers.
///
/// Every turn compares such a counter with a bound that is the same in all turns. The counter either
/// changes by an odd number in each turn, so that it takes every value of its type sooner or later,
/// one of which fails the comparison; or it is halved, and zero fails.
pub fn counters_of_finite_loops(f: &MpirFn) -> FxHashSet<Inst> {
    let cfg = Cfg::new(f);
    let dom = Dominators::new(&cfg);
    let loops = Loops::new(&cfg, &dom);
    if loops.is_empty() {
        return FxHashSet::default();
    }
    let search = Search { f, cfg: &cfg, dom: &dom, loops: &loops, positions: Positions::new(f) };
    let mut found = FxHashSet::default();
    for l in loops.ids() {
        let tests = search.tests(l);
        found.extend(f.phis(loops.header(l)).filter(|&phi| search.counts(l, phi, &tests)));
    }
    found
}

/// What has to hold for the loop to go on.
struct Test {
    value: Value,
    predicate: Predicate,
    bound: Value,
}

struct Search<'a> {
    f: &'a MpirFn,
    cfg: &'a Cfg,
    dom: &'a Dominators,
    loops: &'a Loops,
    positions: Positions,
}

impl Search<'_> {
    /// The comparisons with fixed bounds that every turn of a loop makes to leave it.
    fn tests(&self, l: LoopId) -> Vec<Test> {
        let every_turn =
            |b: Block| self.loops.latches(self.cfg, l).all(|latch| self.dom.dominates(b, latch));
        let exits = self.loops.exits(self.cfg, l).filter(|&(from, _)| every_turn(from));
        exits.filter_map(|(from, to)| self.test(l, from, to)).collect()
    }

    fn test(&self, l: LoopId, from: Block, to: Block) -> Option<Test> {
        let &Terminator::Cbr { cond, then, else_ } = &self.f.block(from).term else { return None };
        if then == else_ {
            return None;
        }
        let i = self.f.def_inst(cond)?;
        let predicate = Predicate::of(self.f.inst(i).op)?;
        let [a, b] = *self.f.args(i) else { return None };
        let (value, predicate, bound) = match (self.is_fixed(l, a), self.is_fixed(l, b)) {
            (false, true) => (a, predicate, b),
            (true, false) => (b, predicate.swapped(), a),
            (true, true) | (false, false) => return None,
        };
        let predicate = if then == to { predicate.opposite() } else { predicate };
        Some(Test { value, predicate, bound })
    }

    /// Whether a value is the same in every turn.
    fn is_fixed(&self, l: LoopId, v: Value) -> bool {
        match self.f.def(v) {
            ValueDef::Param(_) | ValueDef::Const(_) => true,
            ValueDef::Inst(i) => {
                self.positions.block(i).is_some_and(|b| !self.loops.contains(l, b))
            }
        }
    }

    /// Whether a phi of the header is a counter that fails one of the tests.
    fn counts(&self, l: LoopId, phi: Inst, tests: &[Test]) -> bool {
        let Some(counter) = self.f.inst(phi).result() else { return false };
        let mut inside = self.f.phi_arms(phi).filter(|&(pred, _)| self.loops.contains(l, pred));
        let Some((_, next)) = inside.next() else { return false };
        if inside.any(|(_, v)| v != next) {
            return false;
        }
        let mut tests = tests.iter().filter(|t| t.value == counter || t.value == next);
        match self.step(counter, next) {
            Some(Step::Odd) => tests.any(|t| self.some_value_fails(t)),
            Some(Step::Halved) => tests.any(|t| self.zero_fails(t)),
            None => false,
        }
    }

    fn step(&self, counter: Value, next: Value) -> Option<Step> {
        let i = self.f.def_inst(next)?;
        let [a, b] = *self.f.args(i) else { return None };
        let (op, ty) = (self.f.inst(i).op, PrimType::from_id(self.f.inst(i).ty)?);
        let constant = |v: Value| self.f.as_bits(v);
        let is_odd = |v: Value| constant(v).is_some_and(|bits| bits & 1 == 1);
        if op == Op::IAdd && (a == counter && is_odd(b) || b == counter && is_odd(a))
            || op == Op::ISub && a == counter && is_odd(b)
        {
            return Some(Step::Odd);
        }
        let shrinks = op == Op::ILshr
            && constant(b).is_some_and(|n| n % u64::from(ty.bit_width().max(1)) != 0)
            || op == Op::IUdiv && constant(b).is_some_and(|n| n > 1);
        (a == counter && shrinks).then_some(Step::Halved)
    }

    /// Whether some value fails a test.
    fn some_value_fails(&self, test: &Test) -> bool {
        let Some((bound, [least, most])) = self.bound_in_range(test) else {
            // The bound itself fails.
            return matches!(test.predicate.relation, Relation::Ne | Relation::Lt | Relation::Gt);
        };
        match test.predicate.relation {
            Relation::Eq | Relation::Ne | Relation::Lt | Relation::Gt => true,
            Relation::Le => bound != most,
            Relation::Ge => bound != least,
        }
    }

    /// Whether zero fails a test.
    fn zero_fails(&self, test: &Test) -> bool {
        let bound = self.bound_in_range(test).map(|(bound, _)| bound);
        match (test.predicate.relation, bound) {
            (Relation::Gt, _) if !test.predicate.signed => true,
            (Relation::Ne, Some(bound)) => bound == 0,
            (Relation::Gt, Some(bound)) => bound >= 0,
            (Relation::Ge, Some(bound)) => bound > 0,
            (Relation::Eq, Some(bound)) => bound != 0,
            (Relation::Lt, Some(bound)) => bound <= 0,
            (Relation::Le, Some(bound)) => bound < 0,
            (_, None) => false,
        }
    }

    /// A constant bound as a number, with the ends of its type.
    fn bound_in_range(&self, test: &Test) -> Option<(i128, [i128; 2])> {
        let p = PrimType::from_id(self.f.ty(test.bound)).filter(|p| p.is_int())?;
        let bits = self.f.as_bits(test.bound)?;
        let (w, most) = (p.bit_width(), i128::from(p.mask()));
        Some(match test.predicate.signed {
            true => (i128::from(sign_extend(bits, w)), [-(most / 2) - 1, most / 2]),
            false => (i128::from(bits & p.mask()), [0, most]),
        })
    }
}

/// How a counter changes.
enum Step {
    Odd,
    Halved,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FnId;

    /// Number of loops found finite in a loop around a step and a test.
    fn count(step: &str, test: &str) -> usize {
        let text = format!(
            "gpu fn m.@k(%x: gpu.TBuffer<u32>, %n: u32) -> unit {{
entry:
  br head
head:
  %i: u32 = phi [entry: u32 7], [body: %next]
  {test}
  cbr %stay, body, end
body:
  gpu.buffer_store %x, %i, %i
  %next: u32 = {step}
  br head
end:
  ret
}}
"
        );
        let module = crate::parse(&text, magpie_diag::FileId(0)).unwrap();
        counters_of_finite_loops(module.func(FnId(0))).len()
    }

    #[test]
    fn steps_and_tests() {
        let below = "%stay: bool = icmp.ult %i, %n";
        for (step, test, finite) in [
            ("i.add %i, u32 1", below, 1),
            ("i.add u32 3, %i", below, 1),
            ("i.sub %i, u32 1", "%stay: bool = icmp.ugt %i, u32 0", 1),
            ("i.add %i, u32 1", "%stay: bool = icmp.ne %n, %i", 1),
            ("i.add %i, u32 1", "%stay: bool = icmp.ule %i, u32 9", 1),
            ("i.lshr %i, u32 1", "%stay: bool = icmp.ugt %i, u32 0", 1),
            ("i.udiv %i, u32 2", "%stay: bool = icmp.ne %i, u32 0", 1),
            // May skip the bound and begin again.
            ("i.add %i, u32 2", below, 0),
            ("i.mul %i, u32 2", below, 0),
            // No value is larger.
            ("i.add %i, u32 1", "%stay: bool = icmp.ule %i, u32 4294967295", 0),
            ("i.add %i, u32 1", "%stay: bool = icmp.ule %i, %n", 0),
            ("i.sub %i, u32 1", "%stay: bool = icmp.uge %i, u32 0", 0),
            // Stays at zero.
            ("i.lshr %i, u32 1", "%stay: bool = icmp.uge %i, u32 0", 0),
            ("i.lshr %i, u32 32", "%stay: bool = icmp.ugt %i, u32 0", 0),
            // The bound changes.
            ("i.add %i, u32 1", "%m: u32 = i.add %i, %n\n  %stay: bool = icmp.ult %i, %m", 0),
        ] {
            assert_eq!(count(step, test), finite, "{step}, {test}");
        }
    }
}
