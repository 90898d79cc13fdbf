//! [`Polynomial`]: whole numbers as sums of products of what a launch decides.

/// A number that a launch decides, such as a scalar parameter: an index into the symbols of
/// [`super::forms::Forms`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Symbol(pub(super) u32);

/// Products of more symbols are not looked at.
const MAX_DEGREE: usize = 4;
/// Nor are sums of more products.
const MAX_TERMS: usize = 16;

/// A sum of products of symbols with whole factors. Products are sorted and distinct, no factor is
/// 0, and 0 is the empty sum.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Polynomial {
    terms: Vec<(Vec<Symbol>, i128)>,
}

impl Polynomial {
    pub(super) fn constant(c: i128) -> Polynomial {
        let terms = if c == 0 { Vec::new() } else { vec![(Vec::new(), c)] };
        Polynomial { terms }
    }

    pub(super) fn symbol(s: Symbol) -> Polynomial {
        Polynomial { terms: vec![(vec![s], 1)] }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    /// The number, if no symbol is in it.
    pub(super) fn as_constant(&self) -> Option<i128> {
        match &self.terms[..] {
            [] => Some(0),
            [(product, c)] if product.is_empty() => Some(*c),
            _ => None,
        }
    }

    /// The summand without symbols.
    pub(super) fn constant_part(&self) -> i128 {
        self.terms.first().filter(|t| t.0.is_empty()).map_or(0, |t| t.1)
    }

    /// The symbol and its factor, if this is a multiple of one symbol plus a constant.
    pub(super) fn as_multiple(&self) -> Option<(Symbol, i128)> {
        let mut others = self.terms.iter().filter(|t| !t.0.is_empty());
        match (others.next(), others.next()) {
            (Some((product, c)), None) if product.len() == 1 => Some((product[0], *c)),
            _ => None,
        }
    }

    /// The largest factor's size.
    pub(super) fn largest_factor(&self) -> i128 {
        self.terms.iter().map(|t| t.1.saturating_abs()).max().unwrap_or(0)
    }

    /// Whether no factor is negative.
    pub(super) fn has_no_negative_factor(&self) -> bool {
        self.terms.iter().all(|t| t.1 >= 0)
    }

    /// `self + factor · other`. `None` when that is too large to be kept.
    pub(super) fn plus(&self, other: &Polynomial, factor: i128) -> Option<Polynomial> {
        let mut sum = self.clone();
        for (product, c) in &other.terms {
            sum.add(product.clone(), c.checked_mul(factor)?)?;
        }
        Some(sum)
    }

    pub(super) fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut sum = Polynomial::default();
        for (p, c) in &self.terms {
            for (q, d) in &other.terms {
                let mut product = [&p[..], &q[..]].concat();
                product.sort_unstable();
                sum.add(product, c.checked_mul(*d)?)?;
            }
        }
        Some(sum)
    }

    fn add(&mut self, product: Vec<Symbol>, c: i128) -> Option<()> {
        if product.len() > MAX_DEGREE {
            return None;
        }
        match self.terms.binary_search_by(|t| (t.0.len(), &t.0).cmp(&(product.len(), &product))) {
            Ok(n) => {
                self.terms[n].1 = self.terms[n].1.checked_add(c)?;
                if self.terms[n].1 == 0 {
                    self.terms.remove(n);
                }
            }
            Err(n) if c != 0 => self.terms.insert(n, (product, c)),
            Err(_) => {}
        }
        (self.terms.len() <= MAX_TERMS).then_some(())
    }

    /// The quotient, if the divisor, which is positive, divides every factor.
    pub(super) fn divided(&self, by: i128) -> Option<Polynomial> {
        let is_divisible = self.terms.iter().all(|t| t.1 % by == 0);
        is_divisible.then(|| Polynomial {
            terms: self.terms.iter().map(|(p, c)| (p.clone(), c / by)).collect(),
        })
    }

    /// Whether this is 0 or more, whatever the symbols are from their least values upwards. `least`
    /// gives those; a symbol without one may be anything.
    pub(super) fn is_nonnegative(&self, least: &impl Fn(Symbol) -> Option<i128>) -> bool {
        self.shifted(least).is_some_and(|p| p.has_no_negative_factor())
    }

    /// The size, if the sign is known.
    pub(super) fn size(&self, least: &impl Fn(Symbol) -> Option<i128>) -> Option<Polynomial> {
        let negated = Polynomial::default().plus(self, -1)?;
        if self.is_nonnegative(least) {
            Some(self.clone())
        } else if negated.is_nonnegative(least) {
            Some(negated)
        } else {
            None
        }
    }

    /// Written with how much larger each symbol is than its least value.
    fn shifted(&self, least: &impl Fn(Symbol) -> Option<i128>) -> Option<Polynomial> {
        let mut sum = Polynomial::default();
        for (product, c) in &self.terms {
            let mut expanded = Polynomial::constant(*c);
            for &s in product {
                let larger = Polynomial::symbol(s).plus(&Polynomial::constant(least(s)?), 1)?;
                expanded = expanded.times(&larger)?;
            }
            sum = sum.plus(&expanded, 1)?;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: Symbol = Symbol(0);
    const M: Symbol = Symbol(1);

    /// `c + n·N + nm·N·M`.
    fn number(c: i128, n: i128, nm: i128) -> Polynomial {
        let (x, y) = (Polynomial::symbol(N), Polynomial::symbol(M));
        let product = x.times(&y).unwrap();
        let sum = Polynomial::constant(c).plus(&x, n);
        sum.and_then(|sum| sum.plus(&product, nm)).unwrap()
    }

    #[test]
    fn terms_cancel() {
        let sum = number(1, 2, 3).plus(&number(1, 2, 3), -1).unwrap();
        assert!(sum.is_zero());
        assert_eq!(number(5, 0, 0).as_constant(), Some(5));
        assert_eq!(number(0, 4, 8).divided(4), Some(number(0, 1, 2)));
        assert_eq!(number(2, 4, 8).divided(4), None);
    }

    #[test]
    fn signs_follow_from_the_least_values() {
        let least = |at_least: i128| move |_: Symbol| Some(at_least);
        // N·M - N + 0 is 0 or more when both are 1 or more, not when they may be 0.
        assert!(number(0, -1, 1).is_nonnegative(&least(1)));
        assert!(!number(0, -1, 1).is_nonnegative(&least(0)));
        assert!(!number(-1, -1, 1).is_nonnegative(&least(1)));
        assert!(number(-1, -1, 1).is_nonnegative(&least(2)));
        assert!(!number(0, 1, 0).is_nonnegative(&|_| None));
        assert_eq!(number(-1, -2, 0).size(&least(0)), Some(number(1, 2, 0)));
        assert_eq!(number(-1, 2, 0).size(&least(0)), None);
    }

    #[test]
    fn large_products_are_given_up() {
        let x = number(0, 1, 0);
        let x4 = x.times(&x).and_then(|p| p.times(&p)).unwrap();
        assert_eq!(x4.times(&x), None);
        assert_eq!(Polynomial::constant(i128::MAX).plus(&Polynomial::constant(1), 1), None);
    }
}
