//! [`are_apart`]: the proof that different invocations write different elements.
//!
//! Let two invocations write the same element. Then the difference of the two indices is 0, and so
//! is that of any other number that has to be the same for both, such as an id that a guard
//! compares with a constant. Each is an equation between the differences of digits. A digit whose
//! factor is larger than all other terms together can be must agree: its term could not be made up
//! for. When all digits of all ids agree in the end, the two were one.

use super::facts::{StoreFacts, UpperBound, bounds_of_source};
use super::forms::{Digit, Form, Forms, Source};
use super::polynomial::{Polynomial, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;

/// Whose digit it is, where the two invocations' digits do not come as a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Both,
    First,
    Second,
}

/// `constant + Σ factor · difference of digits + Σ factor · digit of one = 0`.
struct Equation {
    constant: Polynomial,
    differences: Vec<(Digit, Polynomial)>,
    single: Vec<(Side, Digit, Polynomial)>,
}

/// A summand by its size.
struct Summand {
    side: Side,
    digit: Digit,
    factor: Polynomial,
    /// What the digit of one invocation adds to; a difference may do either.
    sign: Option<Sign>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sign {
    Plus,
    Minus,
}

/// Bounds that are tried for one pair of stores.
const MAX_TRIES: usize = 1024;
/// Equations that are looked at.
const MAX_EQUATIONS: usize = 16;

/// Whether no element is written by an invocation through one store and by another through the
/// other. `open` are the ids in which two invocations may differ; workgroup ids that are not among
/// them are the same.
pub(super) fn are_apart(
    forms: &mut Forms,
    first: &StoreFacts,
    second: &StoreFacts,
    open: &[Source],
) -> bool {
    let (Some(a), Some(b)) = (&first.index, &second.index) else { return false };
    let mut equations = Vec::new();
    equations.extend(equation(a, b));
    for x in &first.zeros {
        equations.extend(second.zeros.iter().filter_map(|y| equation(x, y)));
    }
    equations.truncate(MAX_EQUATIONS);
    let mut least: FxHashMap<Symbol, i128> = FxHashMap::default();
    for &(s, at_least) in first.least.iter().chain(&second.least) {
        let known = least.entry(s).or_insert(at_least);
        *known = at_least.max(*known);
    }
    let proof = Proof {
        bounds: collect_bounds(forms, first, second, open, a, b),
        least,
        forms,
        tries: Cell::new(MAX_TRIES),
    };
    let mut same: FxHashSet<Digit> = FxHashSet::default();
    for (digit, _) in equations.iter().flat_map(|e| &e.differences) {
        if matches!(digit.source, Source::Workgroup(_)) && !open.contains(&digit.source) {
            same.insert(*digit);
        }
    }
    for (side, bound) in &proof.bounds {
        if *side == Side::Both && bound.most.as_constant().is_some_and(|most| most <= 0) {
            same.extend(bound.terms.iter().map(|t| t.0));
        }
    }
    let mut goes_on = true;
    while std::mem::take(&mut goes_on) {
        for equation in &equations {
            match proof.solve(equation, &same) {
                Solved::Never => return true,
                Solved::Digit(digit) => goes_on |= same.insert(digit),
                Solved::Nothing => {}
            }
        }
    }
    let is_same = |&source: &Source| proof.forms.digits(source).iter().all(|d| same.contains(d));
    open.iter().all(is_same)
        || proof.is_less(Side::First, a, b)
        || proof.is_less(Side::Second, b, a)
}

/// What has to hold for two numbers to be equal, if it can be written with differences of ids.
fn equation(a: &Form, b: &Form) -> Option<Equation> {
    let constant = a.constant.plus(&b.constant, -1)?;
    let mut e = Equation { constant, differences: Vec::new(), single: Vec::new() };
    let mut digits: Vec<Digit> = a.terms.iter().chain(&b.terms).map(|t| t.0).collect();
    digits.sort_unstable();
    digits.dedup();
    for digit in digits {
        let (x, y) = (a.factor(digit), b.factor(digit));
        if let (Some(factor), true) = (x, x == y) {
            e.differences.push((digit, factor.clone()));
        } else if matches!(digit.source, Source::Round(_)) {
            e.single.extend(x.map(|factor| (Side::First, digit, factor.clone())));
            e.single.extend(y.map(|factor| (Side::Second, digit, factor.clone())));
        } else {
            return None;
        }
    }
    Some(e)
}

fn collect_bounds(
    forms: &mut Forms,
    first: &StoreFacts,
    second: &StoreFacts,
    open: &[Source],
    a: &Form,
    b: &Form,
) -> Vec<(Side, UpperBound)> {
    let mut bounds = Vec::new();
    let zeros = first.zeros.iter().chain(&second.zeros);
    let terms = [a, b].into_iter().chain(zeros).flat_map(|form| &form.terms);
    let mut sources: Vec<Source> = terms.map(|t| t.0.source).chain(open.iter().copied()).collect();
    sources.sort_unstable();
    sources.dedup();
    // What guards say comes first: it is more.
    for bound in &first.bounds {
        bounds.push((Side::First, bound.clone()));
        for other in second.bounds.iter().filter(|other| other.terms == bound.terms) {
            match (bound.most.as_constant(), other.most.as_constant()) {
                (Some(x), Some(y)) => {
                    let most = Polynomial::constant(x.max(y));
                    bounds.push((Side::Both, UpperBound { most, ..bound.clone() }));
                }
                _ if other.most == bound.most => bounds.push((Side::Both, bound.clone())),
                _ => {}
            }
        }
    }
    bounds.extend(second.bounds.iter().map(|bound| (Side::Second, bound.clone())));
    for source in sources {
        for bound in bounds_of_source(forms, source) {
            for side in [Side::Both, Side::First, Side::Second] {
                bounds.push((side, bound.clone()));
            }
        }
    }
    bounds
}

enum Solved {
    /// The equation does not hold.
    Never,
    /// This digit agrees.
    Digit(Digit),
    Nothing,
}

struct Proof<'a, 'f> {
    bounds: Vec<(Side, UpperBound)>,
    least: FxHashMap<Symbol, i128>,
    forms: &'a Forms<'f>,
    /// How many more bounds may be tried.
    tries: Cell<usize>,
}

impl Proof<'_, '_> {
    fn least(&self, s: Symbol) -> Option<i128> {
        let by_type = self.forms.least(s);
        let by_guard = self.least.get(&s).copied();
        by_type.max(by_guard)
    }

    fn is_nonnegative(&self, p: &Polynomial) -> bool {
        p.is_nonnegative(&|s| self.least(s))
    }

    fn size(&self, p: &Polynomial) -> Option<Polynomial> {
        p.size(&|s| self.least(s))
    }

    /// Looks for a digit that must agree, of those that are not known to.
    fn solve(&self, e: &Equation, same: &FxHashSet<Digit>) -> Solved {
        let one = Polynomial::constant(1);
        let Some(constant) = self.size(&e.constant) else { return Solved::Nothing };
        let mut summands = Vec::new();
        let singles = e.single.iter().map(|(side, d, c)| (*side, d, c));
        let differences = e.differences.iter().filter(|(d, _)| !same.contains(d));
        for (side, &digit, c) in differences.map(|(d, c)| (Side::Both, d, c)).chain(singles) {
            let Some(factor) = self.size(c) else { return Solved::Nothing };
            let sign = match (side, &factor == c) {
                (Side::Both, _) => None,
                (Side::First, true) | (Side::Second, false) => Some(Sign::Plus),
                (Side::First, false) | (Side::Second, true) => Some(Sign::Minus),
            };
            summands.push(Summand { side, digit, factor, sign });
        }
        // Without any digit the constant is what has to be 0, and so has it when it is larger than
        // all digits can make up for.
        if let Some(room) = constant.plus(&one, -1)
            && self.is_larger(room, &summands, usize::MAX)
        {
            return Solved::Never;
        }
        for (n, top) in summands.iter().enumerate().filter(|(_, s)| s.side == Side::Both) {
            let room = top.factor.plus(&constant, -1).and_then(|room| room.plus(&one, -1));
            if room.is_some_and(|room| self.is_larger(room, &summands, n)) {
                return Solved::Digit(top.digit);
            }
        }
        Solved::Nothing
    }

    /// Whether the summands, without the one of a position, are together never further from 0 than
    /// `room`, on either side.
    fn is_larger(&self, room: Polynomial, summands: &[Summand], without: usize) -> bool {
        [Sign::Plus, Sign::Minus].into_iter().all(|sign| {
            let rest = summands
                .iter()
                .enumerate()
                .filter(|&(n, s)| n != without && s.sign.is_none_or(|own| own == sign));
            let rest: Vec<&Summand> = rest.map(|(_, s)| s).collect();
            self.has_room(room.clone(), &rest)
        })
    }

    /// Tries the bounds of the first summand, and goes on with what is left.
    fn has_room(&self, room: Polynomial, rest: &[&Summand]) -> bool {
        let Some(first) = rest.first() else { return self.is_nonnegative(&room) };
        for (side, bound) in &self.bounds {
            if *side != first.side || self.tries.get() == 0 {
                continue;
            }
            let Some((times, left)) = taken_together(bound, rest) else { continue };
            self.tries.set(self.tries.get() - 1);
            let size = bound.most.times(&times);
            if let Some(room) = size.and_then(|size| room.plus(&size, -1))
                && self.has_room(room, &left)
            {
                return true;
            }
        }
        false
    }

    /// Whether the index `a`, that of the store on a side, is always less than `b`.
    fn is_less(&self, side: Side, a: &Form, b: &Form) -> bool {
        let summands: Vec<Summand> = a
            .terms
            .iter()
            .map(|(digit, factor)| Summand {
                side,
                digit: *digit,
                factor: factor.clone(),
                sign: Some(Sign::Plus),
            })
            .collect();
        let has_signs = a.terms.iter().chain(&b.terms).all(|t| self.is_nonnegative(&t.1));
        let room = b.constant.plus(&a.constant, -1);
        let room = room.and_then(|room| room.plus(&Polynomial::constant(1), -1));
        has_signs && room.is_some_and(|room| self.is_larger(room, &summands, usize::MAX))
    }
}

/// The summands that a bound holds for, if they are a multiple of it: the multiple, and the
/// summands that are left.
fn taken_together<'s>(
    bound: &UpperBound,
    rest: &[&'s Summand],
) -> Option<(Polynomial, Vec<&'s Summand>)> {
    let first = rest.first()?;
    let of = |digit: Digit| rest.iter().find(|s| s.digit == digit && s.side == first.side);
    let mut times = None;
    for &(digit, c) in &bound.terms {
        let multiple = of(digit)?.factor.divided(c)?;
        if times.get_or_insert_with(|| multiple.clone()) != &multiple {
            return None;
        }
    }
    let is_taken = |s: &Summand| {
        s.side == first.side && bound.terms.iter().any(|&(digit, _)| digit == s.digit)
    };
    if !is_taken(first) {
        return None;
    }
    Some((times?, rest.iter().copied().filter(|s| !is_taken(s)).collect()))
}
