//! Declarations without a body: globals and foreign functions.

use super::*;
use crate::types::Scope;
use magpie_types::TypeKind;

impl Lowering<'_> {
    /// Checks globals and foreign functions. Where a global is used its value is read again.
    pub(super) fn check_declarations(&mut self) {
        let program = self.program;
        for (m, scope) in program.modules.iter().enumerate() {
            let module = ModuleId(m as u32);
            for decl in &scope.ast().decls {
                match &decl.kind {
                    DeclKind::Global(global) => constant::check_global(self, module, global),
                    DeclKind::Extern(decl) => self.check_extern(module, decl),
                    DeclKind::Fn(_) | DeclKind::Type(_) | DeclKind::Impl(_) | DeclKind::Sig(_) => {}
                }
            }
        }
    }

    fn check_extern(&mut self, module: ModuleId, decl: &ExternDecl) {
        let scope = self.program.module(module);
        let ast = scope.ast();
        for f in &ast[decl.functions] {
            let mut of = |ty| {
                self.with_types(|types, cx| types.of_use(cx, module, ty, Scope::default(), false))
            };
            ast[f.params].iter().for_each(|param| _ = of(param.ty));
            let result = of(f.result);
            let is_pointer =
                result.is_some_and(|ty| matches!(self.module.types.kind(ty), TypeKind::RawPtr(_)));
            let says_who_frees = ast[f.attributes].iter().any(|a| {
                scope.name(a.key.symbol) == "returns"
                    && matches!(scope.name(a.value.symbol), "owned" | "borrowed")
            });
            if is_pointer && !says_who_frees {
                let name = scope.name(f.name.symbol);
                let message =
                    format!("`@{name}` returns a raw pointer and does not say who frees it");
                self.report(
                    Diagnostic::new(Code::MPF0001, scope.span(f.range), message).with_help(
                        "add `attrs { returns=\"owned\" }` or `attrs { returns=\"borrowed\" }`",
                    ),
                );
            }
        }
    }
}
