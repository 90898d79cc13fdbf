//! Functions that kernels call: they are compiled into the kernel, so that they must be able to
//! run on a device, with everything that they call.

use super::body::{Body, Val};
use super::generics::Inference;
use super::instances::Key;
use super::types::Subst;
use super::{Cx, Lower, Poisoned};
use crate::ast::*;
use crate::program::Item;
use crate::ty::{Ty, TyKind};
use crate::walk::{Node, walk_block};
use magpie_diag::{Code, Diagnostic, Span};

/// Why a function cannot run on a device.
struct Obstacle {
    code: Code,
    why: String,
    at: Span,
}

impl Body<'_, '_, '_> {
    /// Calls a function from a kernel; `early` holds arguments that are evaluated already.
    pub(super) fn call_on_device(
        &mut self,
        id: FnDeclId,
        type_args: Vec<Ty>,
        exprs: &[ExprId],
        early: &[Option<Val>],
        span: Span,
    ) -> Lower<Val> {
        let program = self.cx.program;
        let decl = &program.ast[id];
        let text = program.name(decl.name.sym).to_string();
        let subst: Subst =
            decl.generics.iter().map(|g| g.sym).zip(type_args.iter().copied()).collect();
        if let Some(obstacle) = self.cx.obstacle(id, &subst, &mut Vec::new()) {
            let message = format!("`{text}` cannot run on a device: {}", obstacle.why);
            let help = "call functions of numbers that return a number, and print on the host";
            self.cx.report(
                Diagnostic::new(obstacle.code, span, message)
                    .with_secondary(obstacle.at, "here")
                    .with_help(help),
            );
            return Err(Poisoned);
        }
        let resident = vec![None; decl.params.len()];
        let key = Key { decl: id, device: true, args: type_args, resident };
        let instance = self.cx.instance(key);
        if instance.poisoned {
            return Err(Poisoned);
        }
        let mut operands = Vec::with_capacity(exprs.len());
        for (n, (&e, &t)) in exprs.iter().zip(&instance.params).enumerate() {
            let val = match early[n] {
                Some(val) => {
                    let at = self.expr_span(e);
                    self.coerce(val, t, at)?
                }
                None => self.expr_as(e, t)?,
            };
            operands.push(val.v);
        }
        self.at(span);
        let t = self.norm(instance.ret);
        let ret = self.machine(t);
        match self.b.call(instance.fn_id, ret, &operands) {
            Some(v) => Ok(self.val(t, v)),
            None => Err(Poisoned),
        }
    }
}

impl Cx<'_> {
    /// What keeps a function from running on a device.
    fn obstacle(
        &mut self,
        id: FnDeclId,
        subst: &Subst,
        path: &mut Vec<FnDeclId>,
    ) -> Option<Obstacle> {
        let program = self.program;
        let decl = &program.ast[id];
        let text = program.name(decl.name.sym);
        let at = decl.head;
        let refuse = |why: String, at| Some(Obstacle { code: Code::MIR1803, why, at });
        if path.contains(&id) {
            let why = format!("`{text}` calls itself, directly or through others");
            return Some(Obstacle { code: Code::MIR1804, why, at });
        }
        if path.len() > 64 {
            return refuse("it calls through too many functions".to_string(), at);
        }
        if decl.result.is_none() {
            return refuse(format!("`{text}` returns nothing"), at);
        }
        for param in &decl.params {
            let t = self.resolve(param.ty, subst).ok()?;
            if param.out || !self.is_device_value(t) {
                let why = format!(
                    "parameter `{}` of `{text}` is {}",
                    program.name(param.name.sym),
                    if param.out {
                        "`out`".to_string()
                    } else {
                        format!("a `{}`", self.ty_name(t))
                    }
                );
                return refuse(why, param.name.span);
            }
        }
        if let Some(t) = decl.result {
            let t = self.resolve(t, subst).ok()?;
            if !self.is_device_value(t) {
                return refuse(format!("`{text}` returns a `{}`", self.ty_name(t)), at);
            }
        }
        path.push(id);
        let mut calls = Vec::new();
        let mut found = None;
        walk_block(&program.ast, &decl.body, &mut |node| {
            let Node::Expr(e) = node else { return };
            let span = program.ast[e].span;
            match &program.ast[e].kind {
                ExprKind::Call(callee, _) => {
                    calls.extend(program.called_method(id, *callee));
                    if self.makes_collection(*callee) {
                        found.get_or_insert((format!("`{text}` makes a collection"), span));
                    }
                    if let ExprKind::Name(name) = program.ast[*callee].kind {
                        match program.item(name, span) {
                            Some(Item::Fn(f)) => calls.push(f),
                            Some(_) => {}
                            None if super::library::is_io(program.name(name)) => {
                                let why = format!("`{text}` calls `{}`", program.name(name));
                                found.get_or_insert((why, span));
                            }
                            None => {}
                        }
                    }
                }
                ExprKind::Str(_) | ExprKind::Format(_) => {
                    found.get_or_insert((format!("`{text}` makes a text"), span));
                }
                ExprKind::Map(_) | ExprKind::Set(_) => {
                    found.get_or_insert((format!("`{text}` makes a collection"), span));
                }
                ExprKind::Lambda(_) => {
                    found.get_or_insert((format!("`{text}` makes a function"), span));
                }
                _ => {}
            }
        });
        let mut result = found.and_then(|(why, at)| refuse(why, at));
        calls.sort_unstable_by_key(|f| program.ast[*f].head.start);
        calls.dedup();
        for f in calls {
            if result.is_none() {
                // Type arguments of the call are not known yet: its own check follows.
                let open = Inference::new(self, &program.ast[f].generics).open;
                result = self.obstacle(f, &open, path);
            }
        }
        path.pop();
        result
    }

    /// Whether the constructor of a collection, an option or a result is called.
    fn makes_collection(&self, callee: ExprId) -> bool {
        let program = self.program;
        let is_word = |name: Sym, at: Span| {
            let known =
                matches!(program.name(name), "List" | "Map" | "Set" | "Some" | "Ok" | "Err");
            known && program.item(name, at).is_none()
        };
        match program.ast[callee].kind {
            ExprKind::Name(name) => is_word(name, program.ast[callee].span),
            ExprKind::Type(t) => match program.ast[t].kind {
                TypeExprKind::Name(name, _) => is_word(name, program.ast[t].span),
                _ => false,
            },
            _ => false,
        }
    }

    fn is_device_value(&mut self, t: Ty) -> bool {
        match self.tys.kind(t) {
            TyKind::Atomic(_) => false,
            TyKind::Param(_) => true,
            _ => self.is_element(t) || self.is_plain_enum(t),
        }
    }
}
