//! What host code may not do with device-resident bindings, and the ways out.

use super::body::Body;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::walk::{Node, walk_block};
use magpie_diag::{Code, Diagnostic, Fix, Span};

impl Body<'_, '_, '_> {
    /// The way out of most refusals: a copy on the host.
    pub(super) fn bulk_copy(&self, name: Sym) -> String {
        let text = self.cx.program.name(name);
        format!("copy the whole binding to the host first: `let h = {text}`, then use `h`")
    }

    pub(super) fn cross_read(&mut self, name: Sym, span: Span) -> Poisoned {
        let text = self.cx.program.name(name).to_string();
        let message = format!(
            "`{text}` is device-resident: each access to an element from host code would be a \
             readback of its own"
        );
        let help = self.bulk_copy(name);
        let fix = Fix {
            title: format!("read `{text}` back once, above, and index the copy"),
            span: Span::new(span.file, span.start, span.start + text.len() as u32),
            replacement: "h".to_string(),
        };
        self.cx.report(Diagnostic::new(Code::MIR1603, span, message).with_help(help).with_fix(fix));
        Poisoned
    }

    pub(super) fn refuse_on_host(&mut self, name: Sym, span: Span) -> Poisoned {
        let text = self.cx.program.name(name).to_string();
        let message = format!("`{text}` is device-resident and is given to host code");
        let help = self.bulk_copy(name);
        self.error(Code::MIR1605, span, message, help)
    }

    pub(super) fn mixed_residency(&mut self, name: Sym, span: Span) -> Poisoned {
        let text = self.cx.program.name(name).to_string();
        let message = format!("`{text}` is device-resident and is used in host code");
        let help = self.bulk_copy(name);
        self.error(Code::MIR1606, span, message, help)
    }

    pub(super) fn refuse_method(&mut self, of: Sym, name: &str, span: Span) -> Poisoned {
        let text = self.cx.program.name(of).to_string();
        let message = format!(
            "`{name}` of `{text}`, which is device-resident: host code may call `length`, `slice` and `reduce` only"
        );
        let help = self.bulk_copy(of);
        self.error(Code::MIR1604, span, message, help)
    }

    /// Operands of different residency.
    pub(super) fn check_residencies(
        &mut self,
        op: BinaryOp,
        a: ExprId,
        b: ExprId,
        span: Span,
    ) -> Lower<()> {
        if self.device {
            return Ok(());
        }
        let (x, y) = (self.resident_of(a), self.resident_of(b));
        let Some(id) = x.or(y) else { return Ok(()) };
        let name = self.locals[id as usize].name;
        let text = self.cx.program.name(name).to_string();
        let message = match (x, y) {
            (Some(_), Some(_)) => {
                format!(
                    "both operands of `{}` are device-resident, and the host computes it",
                    op.text()
                )
            }
            _ => {
                let other = if x.is_some() { b } else { a };
                let other = self.source(other);
                format!(
                    "`{}` has one operand on the device, `{text}`, and one on the host, `{other}`",
                    op.text()
                )
            }
        };
        let help = format!("bring both to one residency: {}", self.bulk_copy(name));
        Err(self.error(Code::MIR1606, span, message, help))
    }

    /// The text of an expression.
    pub(super) fn source(&self, e: ExprId) -> String {
        self.cx.places.text(self.cx.program.ast[e].span).to_string()
    }

    pub(super) fn check_moved(&mut self, id: u32, span: Span) -> Lower<()> {
        let Some(&moved) = self.moved.get(&id) else { return Ok(()) };
        let text = self.cx.program.name(self.locals[id as usize].name).to_string();
        let message = format!("`{text}` has given its device buffer to another binding");
        self.cx.report(
            Diagnostic::new(Code::MIR1607, span, message)
                .with_secondary(moved, "moved here")
                .with_help("use the binding that has the buffer now"),
        );
        Err(Poisoned)
    }

    /// Arguments of what runs on the host only.
    pub(super) fn refuse_resident_args(&mut self, args: &[Arg]) -> Lower<()> {
        for arg in args {
            if let Some(id) = self.resident_of(arg.value) {
                let at = self.expr_span(arg.value);
                return Err(self.refuse_on_host(self.locals[id as usize].name, at));
            }
        }
        Ok(())
    }

    /// A use of a binding in a lambda, by what is done with it there.
    pub(super) fn refuse_capture(&mut self, name: Sym, body: &Block, span: Span) -> Poisoned {
        let ast = &self.cx.program.ast;
        let is_it = |e: ExprId| matches!(ast[e].kind, ExprKind::Name(other) if other == name);
        let mut element = None;
        walk_block(ast, body, &mut |node| {
            if let Node::Expr(e) = node
                && let ExprKind::Index(base, _) = ast[e].kind
                && is_it(base)
            {
                element.get_or_insert(ast[e].span);
            }
        });
        match element {
            Some(at) => self.cross_read(name, at),
            None => self.refuse_on_host(name, span),
        }
    }
}
