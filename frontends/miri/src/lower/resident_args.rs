//! Device-resident arguments of host functions: those touch them in `forall`s only.

use super::body::Body;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::residency::host_use;
use magpie_diag::{Code, Diagnostic, Span};

impl Body<'_, '_, '_> {
    /// Device-resident arguments of a host function: it must touch them in `forall`s only.
    pub(super) fn check_resident_args(
        &mut self,
        decl: FnDeclId,
        exprs: &[ExprId],
        residents: &[Option<u32>],
    ) -> Lower<()> {
        let program = self.cx.program;
        let mut fine = Ok(());
        for (n, resident) in residents.iter().enumerate() {
            let param = &program.ast[decl].params[n];
            let Some(id) = *resident else {
                if param.residency == Some(Residency::Gpu) {
                    let span = self.expr_span(exprs[n]);
                    let message = "this parameter takes device-resident arguments only";
                    fine = Err(self.error(
                        Code::MIR1904,
                        span,
                        message,
                        "bind the value with `gpu let`",
                    ));
                }
                continue;
            };
            let span = self.expr_span(exprs[n]);
            let name = self.locals[id as usize].name;
            self.check_moved(id, span)?;
            let params = &program.ast[decl].params;
            let is_shared =
                (0..n).any(|m| residents[m] == *resident && (param.out || params[m].out));
            if is_shared {
                let message = format!("`{}` is given twice, once as `out`", program.name(name));
                fine = Err(self.error(Code::MIR0214, span, message, "give two bindings"));
                continue;
            }
            let forced = match param.residency {
                Some(Residency::Host) => Some(param.name.span),
                _ => host_use(program, decl, n),
            };
            if let Some(at) = forced {
                let (text, function) = (
                    program.name(name).to_string(),
                    program.name(program.ast[decl].name.sym).to_string(),
                );
                let message = format!(
                    "`{text}` is device-resident, but `{function}` uses its parameter `{}` in host code",
                    program.name(param.name.sym)
                );
                let help = self.bulk_copy(name);
                self.cx.report(
                    Diagnostic::new(Code::MIR1605, span, message)
                        .with_secondary(at, "used in host code here")
                        .with_help(help),
                );
                fine = Err(Poisoned);
            } else if param.out && !self.locals[id as usize].mutable {
                let text = program.name(name).to_string();
                let message = format!("`{text}` is a `gpu let`, but the parameter is `out`");
                fine = Err(self.error(Code::MIR0203, span, message, "bind it with `gpu var`"));
            } else {
                fine = fine.and(self.check_resident_type(decl, n, id, span));
            }
        }
        fine
    }

    /// The type of a resident argument: `int` and `i32`, `float` and `f32` elements are the same.
    pub(super) fn check_resident_type(
        &mut self,
        decl: FnDeclId,
        n: usize,
        id: u32,
        span: Span,
    ) -> Lower<()> {
        let f = &self.cx.program.ast[decl];
        if !f.generics.is_empty() {
            return Ok(());
        }
        let wanted = self.cx.resolve(f.params[n].ty, &Vec::new())?;
        let found = self.locals[id as usize].ty;
        if self.cx.same_on_device(found, wanted) {
            return Ok(());
        }
        Err(self.mismatch(span, found, wanted))
    }
}
