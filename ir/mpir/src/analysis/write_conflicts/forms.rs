//! [`Form`]: integers of a kernel as sums of digits of invocation ids and loop rounds.
//!
//! A form is a number, not a machine word: it equals the value modulo 2^N. Where a launch is so
//! large that an index wraps round, nothing is said; see [`super::write_conflicts`]. A factor that
//! wraps in launches of a common size has no form.

use super::LaunchDomain;
use super::polynomial::{Polynomial, Symbol};
use crate::analysis::{Cfg, Loops, Positions};
use crate::eval::sign_extend;
use crate::{Block, Inst, MpirFn, Op, Value, ValueDef};
use magpie_types::{PrimType, TypeId};
use rustc_hash::FxHashMap;

/// Something that counts from 0 and may differ between invocations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Source {
    /// `gpu.thread_id` of a dimension.
    Thread(u8),
    /// `gpu.workgroup_id` of a dimension.
    Workgroup(u8),
    /// `gpu.global_id` of a dimension, where the other two do not occur.
    Global(u8),
    /// How often the loop of a phi has gone round.
    Round(Value),
}

/// A part of a number in a mixed radix: `number / low % (high / low)`, or `number / low` for the
/// highest digit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Digit {
    pub(super) source: Source,
    low: u64,
    high: Option<u64>,
}

/// `constant + Σ factor · digit`. Digits are sorted and distinct, no factor is 0.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Form {
    pub(super) constant: Polynomial,
    pub(super) terms: Vec<(Digit, Polynomial)>,
}

/// Depth of expressions that are looked at.
const MAX_DEPTH: u32 = 32;
/// Digits of a form.
const MAX_TERMS: usize = 8;
/// Digits that one number is divided into.
const MAX_CUTS: usize = 6;
/// What counts as a common size: ids and rounds without a bound are taken to be less than this
/// when asking whether an index wraps.
const COMMON: i128 = 1 << 16;

impl Form {
    fn constant(c: Polynomial) -> Form {
        Form { constant: c, terms: Vec::new() }
    }

    /// `self + factor · other`.
    pub(super) fn plus(&self, other: &Form, factor: i128) -> Option<Form> {
        let mut sum = self.clone();
        sum.constant = sum.constant.plus(&other.constant, factor)?;
        for (digit, c) in &other.terms {
            match sum.terms.binary_search_by_key(digit, |t| t.0) {
                Ok(n) => {
                    sum.terms[n].1 = sum.terms[n].1.plus(c, factor)?;
                    if sum.terms[n].1.is_zero() {
                        sum.terms.remove(n);
                    }
                }
                Err(n) => sum.terms.insert(n, (*digit, Polynomial::default().plus(c, factor)?)),
            }
        }
        (sum.terms.len() <= MAX_TERMS).then_some(sum)
    }

    /// The factor of a digit that occurs.
    pub(super) fn factor(&self, digit: Digit) -> Option<&Polynomial> {
        self.terms.iter().find(|t| t.0 == digit).map(|t| &t.1)
    }

    fn times(&self, factor: &Polynomial) -> Option<Form> {
        let mut product = Form::constant(self.constant.times(factor)?);
        for (digit, c) in &self.terms {
            let c = c.times(factor)?;
            if !c.is_zero() {
                product.terms.push((*digit, c));
            }
        }
        Some(product)
    }
}

/// A launch-wide number by how it is computed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Key {
    Const(TypeId, u64),
    Param(u32),
    Op(Op, u64, TypeId, Vec<Symbol>),
}

/// Finds forms in a function.
pub(super) struct Forms<'a> {
    f: &'a MpirFn,
    cfg: &'a Cfg,
    domain: LaunchDomain,
    loops: &'a Loops,
    positions: &'a Positions,
    /// Dimensions in which `gpu.global_id` is taken apart.
    is_apart: [bool; 3],
    /// Dimensions in which invocations of several workgroups are compared.
    has_workgroups: [bool; 3],
    /// Where numbers are cut into digits, ascending; each divides the next.
    cuts: FxHashMap<Source, Vec<u64>>,
    /// Forms found so far are of other digits than those to come.
    has_new_cuts: bool,
    known: FxHashMap<Value, Option<Form>>,
    keys: FxHashMap<Key, Symbol>,
    /// By symbol: the least value, where there is one.
    least: Vec<Option<i128>>,
    launch_wide: FxHashMap<Value, Option<Symbol>>,
}

impl<'a> Forms<'a> {
    /// Prepares the search. When invocations of one workgroup only are compared, global ids are
    /// taken apart.
    pub(super) fn new(
        f: &'a MpirFn,
        cfg: &'a Cfg,
        domain: LaunchDomain,
        loops: &'a Loops,
        positions: &'a Positions,
        is_one_workgroup: bool,
    ) -> Forms<'a> {
        let [mut is_apart, mut reads_workgroup] = [[is_one_workgroup; 3], [false; 3]];
        for &i in cfg.rpo().iter().flat_map(|&b| &f.block(b).insts) {
            let (op, dim) = (f.inst(i).op, f.inst(i).dim().min(2) as usize);
            is_apart[dim] |= matches!(op, Op::GpuThreadId | Op::GpuWorkgroupId);
            reads_workgroup[dim] |= matches!(op, Op::GpuGlobalId | Op::GpuWorkgroupId);
        }
        let mut is_open = [!is_one_workgroup; 3];
        for d in 0..3 {
            // The first dimension is the one that every launch has.
            if domain.grid.is_none() && d > 0 && !reads_workgroup[d] {
                [is_apart[d], is_open[d]] = [true, false];
            }
        }
        Forms {
            f,
            cfg,
            domain,
            loops,
            positions,
            is_apart,
            has_workgroups: is_open,
            cuts: FxHashMap::default(),
            has_new_cuts: false,
            known: FxHashMap::default(),
            keys: FxHashMap::default(),
            least: Vec::new(),
            launch_wide: FxHashMap::default(),
        }
    }

    /// Whether forms found until now have to be found again, because a later one needed more
    /// digits.
    pub(super) fn must_repeat(&mut self) -> bool {
        if self.has_new_cuts {
            self.known.clear();
        }
        std::mem::take(&mut self.has_new_cuts)
    }

    /// The form of an integer; `None` when it has none.
    pub(super) fn of(&mut self, v: Value) -> Option<Form> {
        self.form(v, MAX_DEPTH)
    }

    /// The form of constant bits.
    pub(super) fn of_bits(&self, ty: TypeId, bits: u64) -> Option<Form> {
        let p = integer(ty)?;
        let number = sign_extend(bits & p.mask(), p.bit_width());
        Some(Form::constant(Polynomial::constant(number as i128)))
    }

    /// The ids in which two invocations may differ.
    pub(super) fn open_sources(&mut self) -> Vec<Source> {
        let mut open = Vec::new();
        for d in 0..3u8 {
            if self.is_apart[d as usize] {
                open.push(Source::Thread(d));
                open.extend(self.has_workgroups[d as usize].then_some(Source::Workgroup(d)));
            } else {
                open.push(Source::Global(d));
            }
        }
        open.retain(|&source| !self.is_single(source));
        open
    }

    /// The digits that a source is cut into, lowest first.
    pub(super) fn digits(&self, source: Source) -> Vec<Digit> {
        let cuts = self.cuts.get(&source).map_or(&[][..], |c| c);
        let lows = std::iter::once(1).chain(cuts.iter().copied());
        let highs = cuts.iter().copied().map(Some).chain(std::iter::once(None));
        lows.zip(highs).map(|(low, high)| Digit { source, low, high }).collect()
    }

    /// A number's digits with their weights.
    pub(super) fn weighted_digits(&self, source: Source) -> Vec<(Digit, i128)> {
        self.digits(source).into_iter().map(|d| (d, d.low as i128)).collect()
    }

    /// How many values a source may have.
    pub(super) fn limit(&mut self, source: Source) -> Option<Polynomial> {
        let workgroup = self.domain.workgroup;
        let threads = |d: u8| Polynomial::constant(workgroup[d as usize] as i128);
        match source {
            Source::Thread(d) => Some(threads(d)),
            Source::Workgroup(d) => Some(self.workgroups(d)),
            Source::Global(d) => self.workgroups(d).times(&threads(d)),
            Source::Round(_) => None,
        }
    }

    /// Whether a source is always 0.
    fn is_single(&mut self, source: Source) -> bool {
        self.limit(source).and_then(|limit| limit.as_constant()).is_some_and(|n| n <= 1)
    }

    fn workgroups(&mut self, dim: u8) -> Polynomial {
        match self.domain.grid {
            Some(grid) => Polynomial::constant(grid[dim as usize] as i128),
            None => {
                let ty = PrimType::U32.id();
                let key = Key::Op(Op::GpuNumWorkgroups, dim as u64, ty, Vec::new());
                Polynomial::symbol(self.intern(key, Some(1)))
            }
        }
    }

    /// The largest value of a digit, if it is a constant.
    pub(super) fn most(&mut self, digit: Digit) -> Option<i128> {
        let by_place = digit.high.map(|high| (high / digit.low) as i128 - 1);
        let limit = self.limit(digit.source).and_then(|limit| limit.as_constant());
        let by_source = limit.map(|n| (n - 1).max(0) / digit.low as i128);
        match (by_place, by_source) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The least value of a symbol as far as its type tells.
    pub(super) fn least(&self, s: Symbol) -> Option<i128> {
        self.least.get(s.0 as usize).copied().flatten()
    }

    /// Whether the machine word is the form's number, read as unsigned.
    pub(super) fn is_plain(&self, form: &Form) -> bool {
        let factors = || form.terms.iter().map(|t| &t.1).chain([&form.constant]);
        factors().all(|c| c.is_nonnegative(&|s| self.least(s)))
            && factors().all(Polynomial::has_no_negative_factor)
    }

    fn form(&mut self, v: Value, depth: u32) -> Option<Form> {
        if let Some(known) = self.known.get(&v) {
            return known.clone();
        }
        let p = integer(self.f.ty(v))?;
        if let Some(bits) = self.f.as_bits(v) {
            return self.of_bits(self.f.ty(v), bits);
        }
        let depth = depth.checked_sub(1)?;
        let by_op = match self.f.def(v) {
            ValueDef::Inst(i) => self.by_op(i, v, depth),
            ValueDef::Param(_) | ValueDef::Const(_) => None,
        };
        let form = match by_op.filter(|form| self.fits(form, p)) {
            Some(form) => Some(form),
            None if p.bit_width() < 32 => None,
            None => {
                let symbol = self.launch_wide(v, depth);
                symbol.map(|s| Form::constant(Polynomial::symbol(s)))
            }
        };
        self.known.insert(v, form.clone());
        form
    }

    /// Whether a form does not wrap in its type. In types of less than 32 bits it has to be certain.
    fn fits(&mut self, form: &Form, p: PrimType) -> bool {
        let is_narrow = p.bit_width() < 32;
        let mut most = form.constant.largest_factor();
        for (digit, c) in &form.terms {
            let bound = match (self.most(*digit), is_narrow) {
                (Some(most), _) => most,
                (None, true) => return false,
                (None, false) => (COMMON / digit.low as i128).max(1),
            };
            most = most.saturating_add(c.largest_factor().saturating_mul(bound));
        }
        let bits = p.bit_width() - p.is_signed() as u32;
        let is_constant = |c: &Polynomial| c.as_constant().is_some_and(|c| c >= 0);
        let is_certain =
            is_constant(&form.constant) && form.terms.iter().all(|t| is_constant(&t.1));
        most < 1 << bits && (!is_narrow || is_certain)
    }

    fn by_op(&mut self, i: Inst, v: Value, depth: u32) -> Option<Form> {
        let f = self.f;
        let inst = f.inst(i);
        let (op, dim) = (inst.op, inst.dim().min(2));
        if op == Op::GpuThreadId {
            return Some(self.number(Source::Thread(dim)));
        }
        if op == Op::GpuWorkgroupId {
            return Some(self.number(Source::Workgroup(dim)));
        }
        if op == Op::GpuGlobalId {
            return match self.is_apart[dim as usize] {
                true => {
                    let size = Polynomial::constant(self.domain.workgroup[dim as usize] as i128);
                    let first = self.number(Source::Workgroup(dim)).times(&size)?;
                    first.plus(&self.number(Source::Thread(dim)), 1)
                }
                false => Some(self.number(Source::Global(dim))),
            };
        }
        if op == Op::GpuWorkgroupSize {
            let size = self.domain.workgroup[dim as usize];
            return Some(Form::constant(Polynomial::constant(size as i128)));
        }
        if op == Op::GpuNumWorkgroups {
            return Some(Form::constant(self.workgroups(dim)));
        }
        if op == Op::Phi {
            return self.counter(i, v, depth);
        }
        let &[x, ref rest @ ..] = f.args(i) else { return None };
        if op == Op::Cast || op == Op::BitsCast {
            let (from, to) = (integer(f.ty(x))?, integer(inst.ty)?);
            let form = self.form(x, depth)?;
            let is_kept = to.bit_width() <= from.bit_width() || from.is_signed();
            return (is_kept || self.is_plain(&form)).then_some(form);
        }
        let &[y] = rest else { return None };
        if op == Op::IAdd {
            return self.form(x, depth)?.plus(&self.form(y, depth)?, 1);
        }
        if op == Op::ISub {
            return self.form(x, depth)?.plus(&self.form(y, depth)?, -1);
        }
        if op == Op::IMul {
            let (a, b) = (self.form(x, depth)?, self.form(y, depth)?);
            return match (a.terms.is_empty(), b.terms.is_empty()) {
                (_, true) => a.times(&b.constant),
                (true, false) => b.times(&a.constant),
                (false, false) => None,
            };
        }
        if op == Op::IOr {
            let (a, b) = (self.form(x, depth)?, self.form(y, depth)?);
            return self.joined(&a, &b).or_else(|| self.joined(&b, &a));
        }
        let p = integer(inst.ty)?;
        let c = f.as_bits(y)? & p.mask();
        let power = 1u64 << (c % p.bit_width() as u64);
        if op == Op::IShl {
            return self.form(x, depth)?.times(&Polynomial::constant(power as i128));
        }
        let divided = |this: &mut Self, by: u64| {
            let form = this.form(x, depth)?;
            this.divided(&form, by)
        };
        let is_positive = !p.is_signed() || sign_extend(c, p.bit_width()) > 0;
        if matches!(op, Op::IUdiv | Op::ISdiv) && is_positive {
            return Some(divided(self, c)?.0);
        }
        if matches!(op, Op::IUrem | Op::ISrem) && is_positive {
            return Some(divided(self, c)?.1);
        }
        if matches!(op, Op::ILshr | Op::IAshr) {
            return Some(divided(self, power)?.0);
        }
        if op == Op::IAnd {
            let (above, cleared) = (c.checked_add(1)?, (!c & p.mask()).checked_add(1)?);
            if above.is_power_of_two() {
                return Some(divided(self, above)?.1);
            }
            if cleared.is_power_of_two() {
                let low = divided(self, cleared)?.1;
                return self.form(x, depth)?.plus(&low, -1);
            }
        }
        None
    }

    fn number(&mut self, source: Source) -> Form {
        if self.is_single(source) {
            return Form::default();
        }
        let weight = |(d, low)| (d, Polynomial::constant(low));
        let terms = self.weighted_digits(source).into_iter().map(weight).collect();
        Form { constant: Polynomial::default(), terms }
    }

    /// A phi that a loop changes by the same number in each round.
    fn counter(&mut self, i: Inst, v: Value, depth: u32) -> Option<Form> {
        let f = self.f;
        let header = self.positions.block(i)?;
        let l = self.loops.innermost(header).filter(|&l| self.loops.header(l) == header)?;
        let is_back = |b: Block| self.loops.contains(l, b);
        let arms = || f.phi_arms(i).filter(|&(p, _)| self.cfg.is_reachable(p));
        let mut starts = arms().filter(|&(p, _)| !is_back(p)).map(|arm| arm.1);
        let start = starts.next()?;
        if starts.any(|other| other != start) {
            return None;
        }
        let backs: Vec<Value> = arms().filter(|&(p, _)| is_back(p)).map(|arm| arm.1).collect();
        let mut step = None;
        for back in backs {
            let add = f.def_inst(back)?;
            let (sign, other) = match (f.inst(add).op, f.args(add)) {
                (Op::IAdd, &[x, y]) if x == v => (1, y),
                (Op::IAdd, &[x, y]) if y == v => (1, x),
                (Op::ISub, &[x, y]) if x == v => (-1, y),
                _ => return None,
            };
            if other == v {
                return None;
            }
            self.launch_wide(other, depth)?;
            let form = self.form(other, depth)?;
            let by = Polynomial::default().plus(&form.constant, sign)?;
            if !form.terms.is_empty() || step.replace(by.clone()).is_some_and(|s| s != by) {
                return None;
            }
        }
        let start = self.form(start, depth)?;
        start.plus(&self.number(Source::Round(v)).times(&step?)?, 1)
    }

    /// `high | low` where no bit is set in both.
    fn joined(&mut self, high: &Form, low: &Form) -> Option<Form> {
        let most = self.most_of(low)?;
        let unit = (most as u128 + 1).next_power_of_two() as i128;
        let is_multiple = |c: &Polynomial| c.divided(unit).is_some();
        let fits = is_multiple(&high.constant) && high.terms.iter().all(|t| is_multiple(&t.1));
        if fits && self.is_plain(high) { high.plus(low, 1) } else { None }
    }

    /// The largest value of a form that is never negative, if it is a constant.
    fn most_of(&mut self, form: &Form) -> Option<i128> {
        let mut most = form.constant.as_constant().filter(|&c| c >= 0)?;
        for (digit, c) in &form.terms {
            let c = c.as_constant().filter(|&c| c >= 0)?;
            most = most.checked_add(c.checked_mul(self.most(*digit)?)?)?;
        }
        Some(most)
    }

    /// Quotient and remainder. When digits would have to be cut for it, they will be.
    fn divided(&mut self, form: &Form, by: u64) -> Option<(Form, Form)> {
        if by == 0 || !self.is_plain(form) {
            return None;
        }
        let (by, low) = (by as i128, form.constant.constant_part() % by as i128);
        let high = form.constant.plus(&Polynomial::constant(low), -1)?;
        let mut quotient = Form::constant(high.divided(by)?);
        let mut rest = Form::constant(Polynomial::constant(low));
        for (digit, c) in &form.terms {
            match c.divided(by) {
                Some(c) => quotient.terms.push((*digit, c)),
                None => rest.terms.push((*digit, c.clone())),
            }
        }
        if self.most_of(&rest).is_some_and(|most| most < by) {
            return Some((quotient, rest));
        }
        for (digit, c) in &rest.terms {
            if let Some(c) = c.as_constant()
                && by % c == 0
            {
                self.cut(*digit, (by / c) as u64);
            }
        }
        None
    }

    /// Cuts a digit in two, if the parts are whole.
    fn cut(&mut self, digit: Digit, at: u64) {
        let Some(at) = digit.low.checked_mul(at) else { return };
        let is_needed = self.most(digit).is_none_or(|most| most >= (at / digit.low) as i128);
        let cuts = self.cuts.entry(digit.source).or_default();
        let is_chain = cuts.iter().all(|&c| c != at && (at % c == 0 || c % at == 0));
        if is_needed && is_chain && at > 1 && cuts.len() < MAX_CUTS {
            cuts.push(at);
            cuts.sort_unstable();
            self.has_new_cuts = true;
        }
    }

    fn intern(&mut self, key: Key, least: Option<i128>) -> Symbol {
        if let Some(&s) = self.keys.get(&key) {
            return s;
        }
        let s = Symbol(self.least.len() as u32);
        self.least.push(least);
        self.keys.insert(key, s);
        s
    }

    /// The symbol of a value that is the same for all invocations of a launch; equal computations
    /// have one symbol.
    fn launch_wide(&mut self, v: Value, depth: u32) -> Option<Symbol> {
        if let Some(&known) = self.launch_wide.get(&v) {
            return known;
        }
        let f = self.f;
        let key = match f.def(v) {
            ValueDef::Const(_) => f.as_bits(v).map(|bits| Key::Const(f.ty(v), bits)),
            ValueDef::Param(n) => f.is_kernel().then_some(Key::Param(n)),
            ValueDef::Inst(i) => self.launch_wide_op(i, depth),
        };
        let p = PrimType::from_id(f.ty(v));
        let least = match key {
            Some(Key::Op(Op::GpuNumWorkgroups, ..)) => Some(1),
            _ => p.filter(|p| p.is_int() && !p.is_signed()).map(|_| 0),
        };
        let symbol = key.map(|key| self.intern(key, least));
        self.launch_wide.insert(v, symbol);
        symbol
    }

    fn launch_wide_op(&mut self, i: Inst, depth: u32) -> Option<Key> {
        let inst = *self.f.inst(i);
        let is_leaf = matches!(inst.op, Op::GpuNumWorkgroups | Op::GpuWorkgroupSize);
        let args = self.f.args(i);
        if !inst.op.is_pure() || args.is_empty() && !is_leaf {
            return None;
        }
        let depth = depth.checked_sub(1)?;
        let args = args.iter().map(|&v| self.launch_wide(v, depth)).collect::<Option<_>>()?;
        Some(Key::Op(inst.op, inst.imm, inst.ty, args))
    }
}

/// The integer type of at most 64 bits that a type is.
fn integer(ty: TypeId) -> Option<PrimType> {
    PrimType::from_id(ty).filter(|p| p.is_int() && (8..=64).contains(&p.bit_width()))
}
