//! [`Affine`]: integers as sums of ids, loop counters and uniform values with constant factors.

use super::{Cfg, Dominators, Loops, Positions, Uniformity};
use crate::{MpirFn, Op, Value, ValueDef};
use magpie_types::PrimType;

/// What varies in an [`Affine`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Variable {
    /// `gpu.thread_id` of a dimension.
    ThreadId(u8),
    /// `gpu.workgroup_id` of a dimension.
    WorkgroupId(u8),
    /// `gpu.global_id` of a dimension.
    GlobalId(u8),
    /// A phi at the head of a loop that is not divergent.
    LoopCounter(Value),
    /// A value that is the same for all invocations of a workgroup.
    Uniform(Value),
}

/// One summand: a factor, a uniform value if the factor has one, and what they multiply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Term {
    /// The constant factor, modulo 2^N.
    pub factor: u64,
    /// A further factor that is uniform.
    pub scale: Option<Value>,
    #[allow(missing_docs)]
    pub variable: Variable,
}

/// `constant + Σ factor · scale · variable`, equal to the value it describes modulo 2^N, where N
/// is the width of its type. Terms are sorted and distinct; no factor is 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Affine {
    /// The type of the value.
    pub ty: PrimType,
    /// What is left when all variables are 0.
    pub constant: u64,
    #[allow(missing_docs)]
    pub terms: Vec<Term>,
}

/// A sum with more terms is not affine to us.
const MAX_TERMS: usize = 8;
/// Depth of the expression.
const MAX_DEPTH: u32 = 12;

/// Finds affine forms in a function.
#[derive(Debug)]
pub struct AffineForms<'a> {
    f: &'a MpirFn,
    uniformity: &'a Uniformity,
    loops: Loops,
    positions: Positions,
}

impl<'a> AffineForms<'a> {
    /// Prepares the search.
    pub fn new(f: &'a MpirFn, cfg: &Cfg, uniformity: &'a Uniformity) -> AffineForms<'a> {
        let loops = Loops::new(cfg, &Dominators::new(cfg));
        AffineForms { f, uniformity, loops, positions: Positions::new(f) }
    }

    /// The affine form of an integer; `None` when it has none.
    pub fn of(&self, v: Value) -> Option<Affine> {
        self.form(v, MAX_DEPTH)
    }

    fn form(&self, v: Value, depth: u32) -> Option<Affine> {
        let ty = PrimType::from_id(self.f.ty(v))
            .filter(|p| p.is_int() && (8..=64).contains(&p.bit_width()))?;
        if let Some(bits) = self.f.as_bits(v) {
            return Some(Affine { ty, constant: bits, terms: Vec::new() });
        }
        if let (Some(depth), ValueDef::Inst(i)) = (depth.checked_sub(1), self.f.def(v))
            && let Some(form) = self.by_op(i, ty, depth)
        {
            return Some(form);
        }
        let variable = match self.f.def(v) {
            ValueDef::Inst(i) if self.is_counter(i, v) => Variable::LoopCounter(v),
            _ if self.uniformity.is_uniform(v) => Variable::Uniform(v),
            _ => return None,
        };
        Some(Affine::variable(ty, variable))
    }

    fn is_counter(&self, i: crate::Inst, v: Value) -> bool {
        let at_head = self.positions.block(i).is_some_and(|b| self.loops.is_header(b));
        self.f.inst(i).op == Op::Phi && at_head && self.uniformity.is_uniform(v)
    }

    fn by_op(&self, i: crate::Inst, ty: PrimType, depth: u32) -> Option<Affine> {
        let inst = self.f.inst(i);
        let op = inst.op;
        let dim = inst.dim();
        if op == Op::GpuThreadId {
            return Some(Affine::variable(ty, Variable::ThreadId(dim)));
        }
        if op == Op::GpuWorkgroupId {
            return Some(Affine::variable(ty, Variable::WorkgroupId(dim)));
        }
        if op == Op::GpuGlobalId {
            return Some(Affine::variable(ty, Variable::GlobalId(dim)));
        }
        let args = self.f.args(i);
        let form = |n: usize| self.form(*args.get(n)?, depth);
        if op == Op::IAdd {
            return form(0)?.plus(&form(1)?, 1);
        }
        if op == Op::ISub {
            return form(0)?.plus(&form(1)?, u64::MAX);
        }
        if op == Op::IMul {
            return self.product(args[0], args[1], depth);
        }
        if op == Op::IShl {
            let amount = self.f.as_bits(args[1])? % ty.bit_width() as u64;
            return Some(form(0)?.times(1 << amount));
        }
        // A conversion keeps the sum modulo the narrower width only.
        if op == Op::Cast || op == Op::BitsCast {
            let from = PrimType::from_id(self.f.ty(args[0]))?;
            let narrows = from.is_int() && from.bit_width() >= ty.bit_width();
            return if narrows { Some(form(0)?.retyped(ty)) } else { self.widened(args[0], ty) };
        }
        None
    }

    /// A product with a constant, or with a uniform value.
    fn product(&self, x: Value, y: Value, depth: u32) -> Option<Affine> {
        let (a, b) = (self.form(x, depth)?, self.form(y, depth)?);
        if b.terms.is_empty() {
            return Some(a.times(b.constant));
        }
        if a.terms.is_empty() {
            return Some(b.times(a.constant));
        }
        if self.uniformity.is_uniform(y) {
            return a.scaled(y);
        }
        if self.uniformity.is_uniform(x) { b.scaled(x) } else { None }
    }

    /// An id in a wider type: it does not wrap there, so it is itself and nothing more.
    fn widened(&self, v: Value, ty: PrimType) -> Option<Affine> {
        let form = self.form(v, 1)?;
        match form.terms[..] {
            [Term { factor: 1, scale: None, variable }]
                if form.constant == 0 && !form.ty.is_signed() =>
            {
                Some(Affine::variable(ty, variable))
            }
            _ => None,
        }
    }
}

impl Affine {
    fn variable(ty: PrimType, variable: Variable) -> Affine {
        Affine { ty, constant: 0, terms: vec![Term { factor: 1, scale: None, variable }] }
    }

    /// `self + factor · other`.
    fn plus(mut self, other: &Affine, factor: u64) -> Option<Affine> {
        let mask = self.ty.mask();
        self.constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor)) & mask;
        for term in &other.terms {
            let added = term.factor.wrapping_mul(factor) & mask;
            let key = |t: &Term| (t.variable, t.scale);
            match self.terms.binary_search_by_key(&key(term), key) {
                Ok(n) => {
                    let sum = self.terms[n].factor.wrapping_add(added) & mask;
                    if sum == 0 {
                        self.terms.remove(n);
                    } else {
                        self.terms[n].factor = sum;
                    }
                }
                Err(n) if added != 0 => self.terms.insert(n, Term { factor: added, ..*term }),
                Err(_) => {}
            }
        }
        (self.terms.len() <= MAX_TERMS).then_some(self)
    }

    fn times(mut self, factor: u64) -> Affine {
        let mask = self.ty.mask();
        self.constant = self.constant.wrapping_mul(factor) & mask;
        self.terms.iter_mut().for_each(|t| t.factor = t.factor.wrapping_mul(factor) & mask);
        self.terms.retain(|t| t.factor != 0);
        self
    }

    /// Multiplied by a uniform value.
    fn scaled(self, scale: Value) -> Option<Affine> {
        if self.terms.iter().any(|t| t.scale.is_some()) {
            return None;
        }
        let constant = Affine { ty: self.ty, constant: 0, terms: Vec::new() };
        let mut all = Affine {
            ty: self.ty,
            constant: 0,
            terms: self.terms.iter().map(|&t| Term { scale: Some(scale), ..t }).collect(),
        };
        all.terms.sort_by_key(|t| (t.variable, t.scale));
        let uniform = Affine::variable(self.ty, Variable::Uniform(scale));
        all.plus(&constant.plus(&uniform, self.constant)?, 1)
    }

    fn retyped(mut self, ty: PrimType) -> Affine {
        let mask = ty.mask();
        self.ty = ty;
        self.constant &= mask;
        self.terms.iter_mut().for_each(|t| t.factor &= mask);
        self.terms.retain(|t| t.factor != 0);
        self
    }

    /// The factor of an invocation id or counter that has no uniform factor besides; 0 when it does
    /// not occur.
    pub fn factor_of(&self, variable: Variable) -> u64 {
        let term = self.terms.iter().find(|t| t.variable == variable && t.scale.is_none());
        term.map_or(0, |t| t.factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_diag::FileId;

    /// The form of the last value computed.
    fn last(body: &str) -> Option<String> {
        let text = format!(
            "gpu fn t.@k(%b: gpu.TBuffer<u32>, %n: u32, %m: u32) -> unit {{\n{body}\nret\n}}\n"
        );
        let m = crate::parse(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
        let f = &m.fns[0];
        let cfg = Cfg::new(f);
        let uniformity = Uniformity::new(f, &m.types, &cfg);
        let v = f.blocks.iter().rev().flat_map(|b| b.insts.iter().rev());
        let v = v.filter_map(|&i| f.inst(i).result()).next();
        let form = AffineForms::new(f, &cfg, &uniformity).of(v?)?;
        let mut parts: Vec<String> = form
            .terms
            .iter()
            .map(|t| {
                let scale = t.scale.map_or(String::new(), |s| format!("{s:?} "));
                format!("{} {scale}{:?}", t.factor as u32 as i32, t.variable)
            })
            .collect();
        parts.push(form.constant.to_string());
        Some(parts.join(" + "))
    }

    #[test]
    fn row_and_column() {
        let form = last(
            "bb0:
            %x: u32 = gpu.global_id dim=0
            %y: u32 = gpu.thread_id dim=1
            %0: u32 = i.mul %y, %n
            %1: u32 = i.add %0, %x
            %2: u32 = i.sub %1, u32 1
            %3: u32 = i.shl %2, u32 1",
        );
        let wanted = "2 %1 ThreadId(1) + 2 GlobalId(0) + 4294967294";
        assert_eq!(form.as_deref(), Some(wanted));
    }

    #[test]
    fn terms_cancel() {
        let form = last(
            "bb0:
            %x: u32 = gpu.thread_id dim=0
            %0: u32 = i.mul %x, u32 3
            %1: u32 = i.add %0, %n
            %2: u32 = i.sub %1, %x
            %3: u32 = i.sub %2, %x
            %4: u32 = i.sub %3, %x",
        );
        assert_eq!(form.as_deref(), Some("1 Uniform(%1) + 0"));
    }

    #[test]
    fn what_is_divergent_otherwise_has_no_form() {
        let form = last(
            "bb0:
            %x: u32 = gpu.thread_id dim=0
            %0: u32 = gpu.buffer_load %b, %x
            %1: u32 = i.add %0, u32 1",
        );
        assert_eq!(form, None);
    }

    #[test]
    fn wrapping_sums_do_not_widen() {
        let sum = "bb0:
            %x: u32 = gpu.global_id dim=0
            %0: u32 = i.add %x, %n
            %1: u64 = cast %0";
        assert_eq!(last(sum), None);
        let id = "bb0:
            %x: u32 = gpu.global_id dim=0
            %1: u64 = cast %x
            %2: u64 = i.mul %1, u64 4";
        assert_eq!(last(id).as_deref(), Some("4 GlobalId(0) + 0"));
    }
}
