//! [`StoreFacts`]: what holds of an invocation that executes a store.

use super::forms::{Digit, Form, Forms, Source};
use super::polynomial::{Polynomial, Symbol};
use crate::analysis::Dominators;
use crate::analysis::guards::{Bound, Guard, Guards};
use crate::analysis::predicate::Relation;
use crate::{Block, MpirFn, Value};

/// `Σ factor · digit <= most`, with positive factors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct UpperBound {
    pub(super) terms: Vec<(Digit, i128)>,
    pub(super) most: Polynomial,
}

/// The index of a store and what the branches around it prove.
#[derive(Clone, Default, Debug)]
pub(super) struct StoreFacts {
    pub(super) index: Option<Form>,
    /// Numbers that are 0.
    pub(super) zeros: Vec<Form>,
    pub(super) bounds: Vec<UpperBound>,
    /// Symbols with a number that they are not less than.
    pub(super) least: Vec<(Symbol, i128)>,
}

/// Comparisons around a store that are looked at; the innermost come first.
const MAX_GUARDS: usize = 24;

impl StoreFacts {
    /// Gathers the facts of a store in a block.
    pub(super) fn gather(
        f: &MpirFn,
        forms: &mut Forms,
        guards: &Guards,
        dom: &Dominators,
        b: Block,
        index: Value,
    ) -> StoreFacts {
        let mut facts = StoreFacts { index: forms.of(index), ..StoreFacts::default() };
        let above = std::iter::successors(Some(b), |&b| dom.idom(b));
        for guard in above.flat_map(|b| guards.of(b)).take(MAX_GUARDS) {
            facts.guard(f, forms, guard);
        }
        facts
    }

    fn guard(&mut self, f: &MpirFn, forms: &mut Forms, guard: &Guard) -> Option<()> {
        let left = forms.of(guard.left)?;
        let right = match guard.right {
            Bound::Value(v) => forms.of(v)?,
            Bound::Bits(bits) => forms.of_bits(f.ty(guard.left), bits)?,
        };
        let (less, more, by) = match guard.predicate.relation {
            Relation::Eq => {
                self.zeros.push(left.plus(&right, -1)?);
                self.compare(forms, &right, &left, 0, false);
                (left, right, 0)
            }
            Relation::Ne => return None,
            Relation::Lt => (left, right, 1),
            Relation::Le => (left, right, 0),
            Relation::Gt => (right, left, 1),
            Relation::Ge => (right, left, 0),
        };
        self.compare(forms, &less, &more, by, guard.predicate.signed)
    }

    /// Adds what follows from `less + by <= more`.
    fn compare(
        &mut self,
        forms: &mut Forms,
        less: &Form,
        more: &Form,
        by: i128,
        is_signed: bool,
    ) -> Option<()> {
        // A number below 0 would be a large word.
        if !is_signed && !forms.is_plain(more) {
            return None;
        }
        let room = more.plus(less, -1)?;
        let mut most = room.constant.plus(&Polynomial::constant(by), -1)?;
        let mut terms = Vec::new();
        for (digit, c) in &room.terms {
            match c.as_constant() {
                Some(c) if c < 0 => terms.push((*digit, -c)),
                Some(c) => most = most.plus(&Polynomial::constant(forms.most(*digit)?), c)?,
                None => {
                    // What is taken away may be left out.
                    let size = Polynomial::default().plus(c, -1)?;
                    if !size.is_nonnegative(&|s| forms.least(s)) {
                        return None;
                    }
                }
            }
        }
        if let Some((s, factor)) = most.as_multiple()
            && factor > 0
        {
            // 0 <= factor · s + constant.
            self.least.push((s, -most.constant_part().div_euclid(factor)));
        }
        self.bound(terms, most);
        Some(())
    }

    fn bound(&mut self, terms: Vec<(Digit, i128)>, most: Polynomial) {
        for &(digit, c) in &terms {
            let alone = match most.as_constant() {
                Some(most) => Polynomial::constant(most.div_euclid(c)),
                None => most.divided(c).unwrap_or_else(|| most.clone()),
            };
            self.bounds.push(UpperBound { terms: vec![(digit, 1)], most: alone });
        }
        if terms.len() > 1 {
            self.bounds.push(UpperBound { terms, most });
        }
    }
}

/// The bounds that the launch sets to the digits of a source.
pub(super) fn bounds_of_source(forms: &mut Forms, source: Source) -> Vec<UpperBound> {
    let terms = forms.weighted_digits(source);
    let mut bounds = Vec::new();
    for &(digit, _) in &terms {
        if let Some(most) = forms.most(digit) {
            let most = Polynomial::constant(most);
            bounds.push(UpperBound { terms: vec![(digit, 1)], most });
        }
    }
    if let Some(limit) = forms.limit(source)
        && let Some(most) = limit.plus(&Polynomial::constant(1), -1)
    {
        // The highest digit alone, where the limit divides.
        if let [.., (digit, low)] = terms[..]
            && let Some(limit) = limit.divided(low)
            && let Some(most) = limit.plus(&Polynomial::constant(1), -1)
        {
            bounds.push(UpperBound { terms: vec![(digit, 1)], most });
        }
        if terms.len() > 1 {
            bounds.push(UpperBound { terms, most });
        }
    }
    bounds
}
