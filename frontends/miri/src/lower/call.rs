//! Calls: what is called, and which argument is whose.

use super::body::{Body, Val};
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::program::{Item, Module};
use crate::ty::{Ty, TyKind};
use magpie_diag::{Code, Span};

impl Body<'_, '_, '_> {
    pub(super) fn call(
        &mut self,
        callee: ExprId,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        let program = self.cx.program;
        match &program.ast[callee].kind {
            &ExprKind::Name(name) => self.call_name(name, args, want, span),
            &ExprKind::Member(base, name) => {
                match self.module_of(base) {
                    Some(Module::Library) => return self.call_name(name.sym, args, want, span),
                    Some(Module::File(file)) => {
                        return match program.exported(file, name.sym) {
                            Some(item) => self.call_item(item, name.sym, args, want, span),
                            None => Err(self.no_such_member(name)),
                        };
                    }
                    None => {}
                }
                if let Some(val) = self.context_call(base, name, args, span)? {
                    return Ok(val);
                }
                if program.name(name.sym) == "launch"
                    && let ExprKind::Call(kernel, kernel_args) = &program.ast[base].kind
                    && let Some(Item::Fn(decl)) = self.item_of(*kernel)
                    && program.ast[decl].gpu
                {
                    return self.launch(decl, kernel_args, args, span);
                }
                if let Some(Item::Enum(n)) = self.item_of(base) {
                    return self.variant(n, name, args, want, span);
                }
                self.method(base, name, args, want, span)
            }
            &ExprKind::Type(t) => {
                let t = self.resolve(t)?;
                self.construct(t, args, span)
            }
            ExprKind::Error => Err(Poisoned),
            _ => {
                let val = self.expr(callee, None)?;
                self.call_value(val, args, span)
            }
        }
    }

    fn call_name(&mut self, name: Sym, args: &[Arg], want: Option<Ty>, span: Span) -> Lower<Val> {
        if let Some(id) = self.lookup(name) {
            let val = self.local_value(id, span)?;
            return self.call_value(val, args, span);
        }
        if let Some(item) = self.cx.program.item(name, span) {
            return self.call_item(item, name, args, want, span);
        }
        match self.library_name(name, span) {
            "" => Err(self.undefined(name, span)),
            text => self.call_library(text, args, want, span),
        }
    }

    /// Calls a declaration of a file.
    fn call_item(
        &mut self,
        item: Item,
        name: Sym,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        match item {
            Item::Fn(decl) => self.call_fn(decl, args, want, span),
            Item::Struct(n) => {
                let decl = &self.cx.program.structs[n as usize];
                if decl.generics.is_empty() {
                    let list = self.cx.tys.list(&[]);
                    let t = self.cx.tys.intern(TyKind::Struct(n, list));
                    return self.construct(t, args, span);
                }
                self.construct_generic(n, args, want, span)
            }
            Item::Alias(t) => {
                let subst = self.subst.clone();
                let t = self.cx.resolve_alias(t, span, &subst)?;
                self.construct(t, args, span)
            }
            Item::Enum(_) | Item::Trait(_) | Item::Const(_) => {
                let message = format!("`{}` is no function", self.cx.program.name(name));
                Err(self.error(Code::MIR0202, span, message, "call a function"))
            }
        }
    }

    // ----- arguments -----

    /// The arguments of a function of the program in the order of its parameters, defaults included.
    pub(super) fn ordered_args(
        &mut self,
        what: &str,
        params: &[Param],
        args: &[Arg],
        span: Span,
    ) -> Lower<Vec<ExprId>> {
        let names: Vec<Sym> = params.iter().map(|p| p.name.sym).collect();
        let optional: Vec<bool> = params.iter().map(|p| p.default.is_some()).collect();
        let found = self.match_args(what, &names, &optional, args, span)?;
        Ok(found.iter().zip(params).filter_map(|(&arg, p)| arg.or(p.default)).collect())
    }

    /// Names of arguments of what the language itself has: those of the parameters, in their order.
    pub(super) fn check_names(&mut self, what: &str, args: &[Arg]) -> Lower<()> {
        let params = super::library::params(what);
        for (n, arg) in args.iter().enumerate() {
            let Some(name) = arg.name else { continue };
            let text = self.cx.program.name(name.sym);
            if params.get(n) == Some(&text) {
                continue;
            }
            let (message, help) = match params {
                [] => {
                    (format!("`{what}` has no named parameters"), "leave the name out".to_string())
                }
                _ => (
                    format!("parameter {} of `{what}` is not `{text}`", n + 1),
                    format!("its parameters are {}, in this order", params.join(", ")),
                ),
            };
            return Err(self.error(Code::MIR0211, name.span, message, help));
        }
        Ok(())
    }

    /// The argument of each parameter, by position or by name.
    pub(super) fn match_args(
        &mut self,
        what: &str,
        names: &[Sym],
        optional: &[bool],
        args: &[Arg],
        span: Span,
    ) -> Lower<Vec<Option<ExprId>>> {
        let mut found: Vec<Option<ExprId>> = vec![None; names.len()];
        let list = || -> String {
            let names: Vec<&str> = names.iter().map(|&n| self.cx.program.name(n)).collect();
            match names[..] {
                [] => "it takes none".to_string(),
                _ => format!("it takes {}", names.join(", ")),
            }
        };
        for (n, arg) in args.iter().enumerate() {
            let at = match arg.name {
                Some(name) => names.iter().position(|&p| p == name.sym),
                None => (n < names.len()).then_some(n),
            };
            let (message, place) = match (at, arg.name) {
                (Some(at), _) if found[at].is_none() => {
                    found[at] = Some(arg.value);
                    continue;
                }
                (Some(at), _) => {
                    let text = self.cx.program.name(names[at]);
                    (format!("`{what}` gets `{text}` twice"), self.expr_span(arg.value))
                }
                (None, Some(name)) => {
                    let text = self.cx.program.name(name.sym);
                    (format!("`{what}` has no parameter `{text}`"), name.span)
                }
                (None, None) => (
                    format!("`{what}` gets {} arguments instead of {}", args.len(), names.len()),
                    span,
                ),
            };
            let help = list();
            return Err(self.error(Code::MIR0211, place, message, help));
        }
        let missing = (0..names.len()).find(|&n| found[n].is_none() && !optional[n]);
        if let Some(n) = missing {
            let text = self.cx.program.name(names[n]);
            let message = format!("`{what}` needs `{text}`");
            let help = list();
            return Err(self.error(Code::MIR0211, span, message, help));
        }
        Ok(found)
    }

    /// So many arguments without names.
    pub(super) fn plain_args<const N: usize>(
        &mut self,
        what: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<[ExprId; N]> {
        self.check_names(what, args)?;
        let values: Vec<ExprId> = args.iter().map(|a| a.value).collect();
        let count = values.len();
        <[ExprId; N]>::try_from(values).map_err(|_| {
            let message = format!("`{what}` gets {count} arguments instead of {N}");
            self.error(Code::MIR0211, span, message, "give one for each parameter")
        })
    }
}
