//! Type parameters: what they stand for in a use of a generic declaration.

use super::body::Body;
use super::types::Subst;
use super::{Cx, Lower};
use crate::ast::*;
use crate::ty::{Ty, TyKind, TyList, fixed as ty, param_of_size};
use magpie_diag::{Code, Span};

/// What is known of the type parameters of a declaration.
pub(super) struct Inference {
    /// Each parameter as a type of its own.
    pub(super) open: Subst,
    found: Subst,
}

impl Inference {
    /// Nothing is known.
    pub(super) fn new(cx: &mut Cx<'_>, generics: &[Ident]) -> Inference {
        let open = generics.iter().map(|g| (g.sym, cx.tys.intern(TyKind::Param(g.sym)))).collect();
        Inference { open, found: Subst::new() }
    }

    /// A type of the declaration, with its parameters.
    pub(super) fn pattern(&self, cx: &mut Cx<'_>, t: TypeExprId) -> Lower<Ty> {
        cx.resolve(t, &self.open)
    }

    /// What a pattern is, when all of its parameters are known.
    pub(super) fn known(&self, cx: &mut Cx<'_>, pattern: Ty) -> Option<Ty> {
        let t = cx.substitute(pattern, &self.found);
        (!cx.has_param(t)).then_some(t)
    }

    /// Learns from a value's type.
    pub(super) fn learn(&mut self, cx: &mut Cx<'_>, pattern: Ty, found: Ty) {
        cx.unify(pattern, found, &mut self.found);
    }

    /// The type arguments; reported when one is not known.
    pub(super) fn finish(
        self,
        body: &mut Body<'_, '_, '_>,
        what: &str,
        generics: &[Ident],
        span: Span,
    ) -> Lower<Vec<Ty>> {
        let mut args = Vec::with_capacity(generics.len());
        for g in generics {
            match self.found.iter().find(|s| s.0 == g.sym) {
                Some(&(_, ty::UNIT)) => {
                    let message = format!("`{what}` needs a function that returns a value");
                    let help = "use a `for` loop for what has no value";
                    return Err(body.error(Code::MIR0202, span, message, help));
                }
                Some(&(_, t)) => args.push(t),
                None => {
                    let name = body.cx.program.name(g.sym);
                    let message = format!("nothing says what `{name}` of `{what}` is");
                    let help =
                        "pass a value whose type shows it, or declare the type of the binding";
                    return Err(body.error(Code::MIR0202, span, message, help));
                }
            }
        }
        Ok(args)
    }
}

impl Cx<'_> {
    /// A type with its parameters replaced.
    pub(super) fn substitute(&mut self, t: Ty, subst: &Subst) -> Ty {
        let kind = match self.tys.kind(t) {
            TyKind::Param(name) => {
                return subst.iter().find(|s| s.0 == name).map_or(t, |s| s.1);
            }
            TyKind::Array(t, n) => {
                let known = param_of_size(n).and_then(|name| subst.iter().find(|s| s.0 == name));
                let size = match known.map(|s| self.tys.kind(s.1)) {
                    Some(TyKind::Number(n)) => n,
                    _ => n,
                };
                TyKind::Array(self.substitute(t, subst), size)
            }
            TyKind::List(t) => TyKind::List(self.substitute(t, subst)),
            TyKind::Set(t) => TyKind::Set(self.substitute(t, subst)),
            TyKind::Option(t) => TyKind::Option(self.substitute(t, subst)),
            TyKind::Map(k, v) => TyKind::Map(self.substitute(k, subst), self.substitute(v, subst)),
            TyKind::Result(a, b) => {
                TyKind::Result(self.substitute(a, subst), self.substitute(b, subst))
            }
            TyKind::Tuple(list) => TyKind::Tuple(self.substitute_list(list, subst)),
            TyKind::Struct(n, list) => TyKind::Struct(n, self.substitute_list(list, subst)),
            TyKind::Enum(n, list) => TyKind::Enum(n, self.substitute_list(list, subst)),
            TyKind::Fn(list, r) => {
                TyKind::Fn(self.substitute_list(list, subst), self.substitute(r, subst))
            }
            TyKind::Vector(t, n) => TyKind::Vector(self.substitute(t, subst), n),
            _ => return t,
        };
        self.tys.intern(kind)
    }

    fn substitute_list(&mut self, list: TyList, subst: &Subst) -> TyList {
        let items = self.tys.items(list).to_vec();
        let items: Vec<Ty> = items.into_iter().map(|t| self.substitute(t, subst)).collect();
        self.tys.list(&items)
    }

    /// Whether more types stand in each other than `most`.
    pub(super) fn is_deep(&self, t: Ty, most: u32) -> bool {
        let Some(most) = most.checked_sub(1) else { return true };
        let any = |list| self.tys.items(list).iter().any(|&t| self.is_deep(t, most));
        match self.tys.kind(t) {
            TyKind::Array(t, _) | TyKind::List(t) | TyKind::Set(t) | TyKind::Option(t) => {
                self.is_deep(t, most)
            }
            TyKind::Map(a, b) | TyKind::Result(a, b) => {
                self.is_deep(a, most) || self.is_deep(b, most)
            }
            TyKind::Tuple(list) | TyKind::Struct(_, list) | TyKind::Enum(_, list) => any(list),
            TyKind::Fn(list, r) => any(list) || self.is_deep(r, most),
            _ => false,
        }
    }

    /// Whether type parameters are left in a type.
    pub(super) fn has_param(&self, t: Ty) -> bool {
        let any = |list| self.tys.items(list).iter().any(|&t| self.has_param(t));
        match self.tys.kind(t) {
            TyKind::Param(_) => true,
            TyKind::Array(t, n) => param_of_size(n).is_some() || self.has_param(t),
            TyKind::List(t) | TyKind::Set(t) | TyKind::Option(t) | TyKind::Vector(t, _) => {
                self.has_param(t)
            }
            TyKind::Map(a, b) | TyKind::Result(a, b) => self.has_param(a) || self.has_param(b),
            TyKind::Tuple(list) | TyKind::Struct(_, list) | TyKind::Enum(_, list) => any(list),
            TyKind::Fn(list, r) => any(list) || self.has_param(r),
            _ => false,
        }
    }

    /// Finds what the parameters in `pattern` stand for when it is `found`.
    pub(super) fn unify(&mut self, pattern: Ty, found: Ty, subst: &mut Subst) {
        let lists = |cx: &mut Self, a, b, subst: &mut Subst| {
            let (a, b) = (cx.tys.items(a).to_vec(), cx.tys.items(b).to_vec());
            for (p, f) in a.into_iter().zip(b) {
                cx.unify(p, f, subst);
            }
        };
        match (self.tys.kind(pattern), self.tys.kind(found)) {
            (TyKind::Param(name), _) if !subst.iter().any(|s| s.0 == name) => {
                subst.push((name, found));
            }
            (TyKind::Array(p, size), TyKind::Array(f, n)) => {
                if let Some(name) = param_of_size(size)
                    && !subst.iter().any(|s| s.0 == name)
                {
                    subst.push((name, self.tys.intern(TyKind::Number(n))));
                }
                self.unify(p, f, subst);
            }
            (TyKind::List(p), TyKind::List(f) | TyKind::Array(f, _))
            | (TyKind::Set(p), TyKind::Set(f))
            | (TyKind::Option(p), TyKind::Option(f))
            | (TyKind::Vector(p, _), TyKind::Vector(f, _)) => self.unify(p, f, subst),
            (TyKind::Map(a, b), TyKind::Map(c, d))
            | (TyKind::Result(a, b), TyKind::Result(c, d)) => {
                self.unify(a, c, subst);
                self.unify(b, d, subst);
            }
            (TyKind::Tuple(a), TyKind::Tuple(b)) => lists(self, a, b, subst),
            (TyKind::Struct(n, a), TyKind::Struct(m, b))
            | (TyKind::Enum(n, a), TyKind::Enum(m, b))
                if n == m =>
            {
                lists(self, a, b, subst);
            }
            (TyKind::Fn(a, r), TyKind::Fn(b, s)) => {
                lists(self, a, b, subst);
                self.unify(r, s, subst);
            }
            _ => {}
        }
    }
}
