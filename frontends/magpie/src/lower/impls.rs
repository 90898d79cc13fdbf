//! `impl hash for T = @f` and the like: which functions hash and compare values of a type.

use super::*;
use crate::resolve::FunctionName;
use crate::types::Scope;
use magpie_types::abi::ScalarClass;
use magpie_types::{RefMode, TypeKind};

/// The implementations of a program.
#[derive(Debug, Default)]
pub(super) struct Impls {
    functions: FxHashMap<(Word, TypeId), FunctionName>,
}

/// An interface as a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Word {
    Hash,
    Eq,
    Ord,
}

fn word(interface: Interface) -> Word {
    match interface {
        Interface::Hash => Word::Hash,
        Interface::Eq => Word::Eq,
        Interface::Ord => Word::Ord,
    }
}

/// The word of the language.
pub(super) fn interface_word(interface: Interface) -> &'static str {
    match interface {
        Interface::Hash => "hash",
        Interface::Eq => "eq",
        Interface::Ord => "ord",
    }
}

/// How many values the function takes, and what it returns.
fn shape(interface: Interface) -> (usize, TypeId) {
    match interface {
        Interface::Hash => (1, fixed::U64),
        Interface::Eq => (2, fixed::BOOL),
        Interface::Ord => (2, fixed::I32),
    }
}

impl Lowering<'_> {
    /// Reads the `impl` declarations of all modules.
    pub(super) fn collect_impls(&mut self) {
        let program = self.program;
        for (m, scope) in program.modules.iter().enumerate() {
            let module = ModuleId(m as u32);
            for decl in &scope.ast().decls {
                if let DeclKind::Impl(implementation) = &decl.kind {
                    self.collect_impl(module, decl, implementation);
                }
            }
        }
    }

    fn collect_impl(&mut self, module: ModuleId, decl: &Decl, implementation: &ImplDecl) {
        let program = self.program;
        let scope = program.module(module);
        let span = scope.span(decl.range);
        let ty = self.with_types(|types, cx| {
            types.of_use(cx, module, implementation.ty, Scope::default(), false)
        });
        let Some(ty) = ty else { return };
        let interface = implementation.interface;
        let (interface_word, name) = (interface_word(interface), self.module.types.name(ty));
        let fn_ref = scope.ast()[implementation.function];
        let function = match program.resolve_function(module, fn_ref) {
            Ok(FunctionName::Failed) => return,
            Ok(found) => found,
            Err(reason) => {
                let report = program.unknown_function(module, fn_ref, reason, span, true);
                self.report(report);
                return;
            }
        };
        if ScalarClass::from_u64(ty.0 as u64).is_some() {
            let message = format!("`{interface_word}` of `{name}` is built in");
            self.report(
                Diagnostic::new(Code::MPS0020, span, message)
                    .with_help("remove it, or wrap the value in a struct of your own"),
            );
            return;
        }
        if !self.has_shape(interface, ty, function) {
            let (count, ret) = shape(interface);
            let param = match self.module.types.is_copy(ty) {
                true => name.clone(),
                false => format!("borrow {name}"),
            };
            let params = vec![param; count].join(", ");
            let ret = self.module.types.name(ret);
            let message =
                format!("the function does not implement `{interface_word}` for `{name}`");
            self.report(
                Diagnostic::new(Code::MPT2003, span, message)
                    .with_help(format!("it must be a safe function `({params}) -> {ret}`")),
            );
            return;
        }
        if self.impls.functions.insert((word(interface), ty), function).is_some() {
            let message = format!("`{interface_word}` is implemented twice for `{name}`");
            self.report(
                Diagnostic::new(Code::MPS0020, span, message).with_help("remove one of the two"),
            );
        }
    }

    /// Whether a function takes and returns what the interface asks for.
    fn has_shape(&mut self, interface: Interface, ty: TypeId, function: FunctionName) -> bool {
        let FunctionName::Function(id) = function else { return false };
        let (_, decl) = self.program.function(id);
        if decl.gpu.is_some() || !decl.type_params.is_empty() || decl.is_unsafe {
            return false;
        }
        let (count, ret) = shape(interface);
        let instance = self.host_function(id);
        let instance = &self.instances[instance.0 as usize];
        let types = &self.module.types;
        let fits = |param: &Option<TypeId>| {
            // What is poisoned was reported with the function.
            param.is_none_or(|param| {
                param == ty && types.is_copy(ty)
                    || types.kind(param) == TypeKind::Ref(RefMode::Borrow, ty)
            })
        };
        instance.params.len() == count
            && instance.params.iter().all(fits)
            && instance.result.is_none_or(|found| found == ret)
    }

    /// The function that implements an interface for a type.
    pub(super) fn implementation(&mut self, interface: Interface, ty: TypeId) -> Option<FnId> {
        let &FunctionName::Function(id) = self.impls.functions.get(&(word(interface), ty))? else {
            return None;
        };
        let instance = self.host_function(id);
        Some(self.instances[instance.0 as usize].fn_id)
    }
}
