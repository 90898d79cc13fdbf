//! What is wrong with structs, whether they are used or not.

use super::Cx;
use super::types::Subst;
use crate::ast::*;
use crate::program::Item;
use crate::ty::{TyKind, fixed as ty};
use magpie_diag::{Code, Diagnostic};

impl Cx<'_> {
    /// Reports structs that say that they implement a trait and do not.
    pub(super) fn check_structs(&mut self) {
        let program = self.program;
        for decl in &program.structs {
            for name in &decl.implements {
                let text = program.name(name.sym);
                let known = matches!(program.item(name.sym, name.span), Some(Item::Trait(_)));
                if !known && !matches!(text, "Accelerable" | "Equatable" | "Addable") {
                    let message = format!("there is no trait `{text}`");
                    self.error(Code::MIR0201, name.span, message, "declare it, or leave it out");
                }
            }
            self.check_required(decl);
            if !decl.generics.is_empty() {
                let unknown = decl.generics.iter().map(|g| (g.sym, ty::ERROR)).collect();
                for &(_, t) in &decl.fields {
                    // What is wrong with it is reported.
                    let _ = self.resolve(t, &unknown);
                }
                continue;
            }
            let accelerable =
                decl.implements.iter().any(|name| program.name(name.sym) == "Accelerable");
            for &(name, t) in &decl.fields {
                let Ok(t) = self.resolve(t, &Subst::new()) else { continue };
                let fits = match self.tys.kind(t) {
                    TyKind::Array(t, _) | TyKind::List(t) => self.is_element(t),
                    _ => self.is_element(t),
                };
                if accelerable && !fits && !self.is_reported_element(t) {
                    let (own, field) = (program.name(decl.name.sym), program.name(name.sym));
                    let message = format!(
                        "`{own}` cannot be `Accelerable`: its field `{field}` is a `{}`, which is not",
                        self.ty_name(t)
                    );
                    let help = "use fields of accelerable types, or leave the trait out";
                    self.error(Code::MIR1601, decl.head, message, help);
                }
            }
        }
    }

    /// A struct has the methods that its traits require, with the same types.
    fn check_required(&mut self, decl: &StructDecl) {
        let program = self.program;
        for name in &decl.implements {
            let Some(Item::Trait(n)) = program.item(name.sym, name.span) else { continue };
            // Sizes and bindings of accelerable structs follow from their fields.
            if program.name(name.sym) == "Accelerable" {
                continue;
            }
            for &required in &program.traits[n as usize].required {
                let wanted = &program.ast[required];
                let text = program.name(wanted.name.sym);
                let (own, of) = (program.name(decl.name.sym), program.name(name.sym));
                let found = decl
                    .methods
                    .iter()
                    .copied()
                    .find(|&id| program.ast[id].name.sym == wanted.name.sym);
                let Some(found) = found else {
                    let message = format!("`{own}` implements `{of}`, but has no method `{text}`");
                    let help = "write it in the struct, or leave the trait out";
                    self.error(Code::MIR0202, decl.head, message, help);
                    continue;
                };
                if decl.generics.is_empty() && !self.same_signature(required, found) {
                    let message = format!("`{text}` of `{own}` has other types than `{of}` says");
                    self.report(
                        Diagnostic::new(Code::MIR0202, program.ast[found].head, message)
                            .with_secondary(wanted.head, "required like this")
                            .with_help("use the types of the trait"),
                    );
                }
            }
        }
    }

    /// Whether a method has the types that a trait requires; `Self` is its receiver's type.
    fn same_signature(&mut self, required: FnDeclId, found: FnDeclId) -> bool {
        let program = self.program;
        let (wanted, own) = (&program.ast[required], &program.ast[found]);
        let Ok(this) = self.resolve(own.params[0].ty, &Subst::new()) else { return true };
        let subst = vec![(wanted.generics[0].sym, this)];
        let mut same = |a: TypeExprId, b: TypeExprId| {
            match (self.resolve(a, &subst), self.resolve(b, &Subst::new())) {
                (Ok(a), Ok(b)) => a == b,
                // Reported already.
                _ => true,
            }
        };
        let results = match (wanted.result, own.result) {
            (Some(a), Some(b)) => same(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        results
            && wanted.params.len() == own.params.len()
            && wanted.params.iter().zip(&own.params).all(|(a, b)| same(a.ty, b.ty))
    }
}
