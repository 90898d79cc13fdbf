//! Looking names up.

use super::*;
use crate::builtins::{self, is_mlx};
use magpie_diag::{Code, closest};

/// Why a name means nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unresolved {
    /// There is no such module.
    NoModule,
    /// The module does not declare it.
    NotDeclared,
    /// The module declares it and does not export it.
    NotExported,
}

impl Unresolved {
    /// A message about the name, written with its sigil, in a module.
    pub(crate) fn message(self, name: &str, module: &str) -> String {
        match self {
            Unresolved::NoModule => format!("there is no module `{module}`"),
            Unresolved::NotDeclared => format!("module `{module}` has no `{name}`"),
            Unresolved::NotExported => format!("module `{module}` does not export `{name}`"),
        }
    }
}

impl Program {
    /// What a reference to a function in a module means.
    pub(crate) fn resolve_function(
        &self,
        module: ModuleId,
        fn_ref: FnRef,
    ) -> Result<FunctionName, Unresolved> {
        let scope = self.module(module);
        let Some(path) = fn_ref.path else {
            return scope.functions[fn_ref.name.index()].ok_or(Unresolved::NotDeclared);
        };
        let name = scope.name(fn_ref.name);
        match scope.paths[path.index()] {
            Some(ModulePath::User(other)) if other == module => {
                scope.functions[fn_ref.name.index()].ok_or(Unresolved::NotDeclared)
            }
            Some(ModulePath::User(_) | ModulePath::Language) => {
                self.function_in(scope.name(path), name)
            }
            Some(ModulePath::Unknown) | None => Err(Unresolved::NoModule),
        }
    }

    /// What a dotted or plain name of a type in a module means.
    pub(crate) fn resolve_type(
        &self,
        module: ModuleId,
        name: Symbol,
    ) -> Result<TypeName, Unresolved> {
        let scope = self.module(module);
        match scope.name(name).rsplit_once('.') {
            None => scope.types[name.index()].ok_or(Unresolved::NotDeclared),
            Some((path, name)) if path == scope.path => {
                let symbol = scope.parsed.interner.lookup(name);
                let found = symbol.and_then(|symbol| scope.types[symbol.index()]);
                found.ok_or(Unresolved::NotDeclared)
            }
            Some((path, name)) => self.type_in(path, name),
        }
    }

    /// The function that another module makes public.
    pub(super) fn function_in(&self, path: &str, name: &str) -> Result<FunctionName, Unresolved> {
        let Some(&other) = self.by_path.get(path) else {
            if is_mlx(path) {
                return Ok(FunctionName::MissingPackage);
            }
            let found = builtins::BuiltinId::find(path, name).map(FunctionName::Builtin);
            let is_module = builtins::names_in(path).next().is_some();
            let reason = if is_module { Unresolved::NotDeclared } else { Unresolved::NoModule };
            return found.ok_or(reason);
        };
        let scope = self.module(other);
        let symbol = scope.parsed.interner.lookup(name).ok_or(Unresolved::NotDeclared)?;
        let meaning = scope.functions[symbol.index()];
        if meaning == Some(FunctionName::Failed) {
            return Ok(FunctionName::Failed);
        }
        let declared = meaning.filter(|meaning| self.declares(other, *meaning));
        match declared {
            None => Err(Unresolved::NotDeclared),
            Some(_) if !scope.exports_function(symbol) => Err(Unresolved::NotExported),
            Some(meaning) => Ok(meaning),
        }
    }

    /// Whether a name means something of the module itself: what it imports is not public.
    fn declares(&self, module: ModuleId, meaning: FunctionName) -> bool {
        match meaning {
            FunctionName::Function(id) => self.functions[id.0 as usize].module == module,
            FunctionName::Global(at) | FunctionName::Extern(at) => at.module == module,
            FunctionName::Builtin(_) | FunctionName::MissingPackage | FunctionName::Failed => false,
        }
    }

    /// The type that another module makes public.
    pub(super) fn type_in(&self, path: &str, name: &str) -> Result<TypeName, Unresolved> {
        let Some(&other) = self.by_path.get(path) else {
            return if is_mlx(path) {
                Ok(TypeName::MissingPackage)
            } else if builtins::names_in(path).next().is_some() {
                Err(Unresolved::NotDeclared)
            } else {
                Err(Unresolved::NoModule)
            };
        };
        let scope = self.module(other);
        let symbol = scope.parsed.interner.lookup(name).ok_or(Unresolved::NotDeclared)?;
        match scope.types[symbol.index()] {
            Some(TypeName::Failed) => Ok(TypeName::Failed),
            Some(TypeName::Decl(id)) if self.types[id.0 as usize].module == other => {
                match scope.exports_type(symbol) {
                    true => Ok(TypeName::Decl(id)),
                    false => Err(Unresolved::NotExported),
                }
            }
            Some(_) | None => Err(Unresolved::NotDeclared),
        }
    }

    /// What to do about an import that means nothing.
    pub(super) fn import_help(&self, path: &str, name: &str, kind: ExportKind) -> String {
        let sigil = if kind == ExportKind::Function { "@" } else { "" };
        match self.similar(path, name, kind) {
            Some(similar) => format!("did you mean `{sigil}{similar}`?"),
            None => format!("add `{sigil}{name}` to the `exports` of `{path}`, or remove it here"),
        }
    }

    /// A public name of a module that looks like `name`.
    fn similar(&self, path: &str, name: &str, kind: ExportKind) -> Option<&str> {
        let Some(&other) = self.by_path.get(path) else {
            let is_function = kind == ExportKind::Function;
            let names: Vec<&'static str> = builtins::names_in(path).collect();
            return if is_function { closest(name, names) } else { None };
        };
        let scope = self.module(other);
        let exports = scope.ast()[scope.ast().header.exports].iter();
        let names = exports.filter(|e| e.kind == kind).map(|e| scope.name(e.name.symbol));
        closest(name, names)
    }

    /// The report about a reference to a function that means nothing, with similar names where that
    /// is asked for.
    pub(crate) fn unknown_function(
        &self,
        module: ModuleId,
        fn_ref: FnRef,
        reason: Unresolved,
        span: Span,
        may_suggest: bool,
    ) -> Diagnostic {
        let scope = self.module(module);
        let name = scope.name(fn_ref.name);
        let Some(path) = fn_ref.path else {
            let error = Diagnostic::new(
                Code::MPT2004,
                span,
                format!("there is no function `@{name}` in this module"),
            );
            let functions = scope.functions.iter().enumerate();
            let known =
                functions.take_while(|_| may_suggest).filter(|(_, meaning)| meaning.is_some());
            let known = known.map(|(i, _)| scope.name(Symbol::from_index(i as u32)));
            if let Some(similar) = closest(name, known) {
                return error.with_help(format!("did you mean `@{similar}`?"));
            }
            let elsewhere = builtins::module_paths()
                .find(|path| builtins::BuiltinId::find(path, name).is_some());
            return match elsewhere {
                Some(path) => error.with_help(format!(
                    "write `{path}.@{name}`, or add `{path}::{{@{name}}}` to `imports`"
                )),
                None => error.with_help("declare it, or import it from the module that does"),
            };
        };
        let path = scope.name(path);
        let message = reason.message(&format!("@{name}"), path);
        let error = Diagnostic::new(Code::MPT2004, span, message);
        let language = builtins::module_paths().map(|path| -> &str { path });
        let known = language.chain(self.modules.iter().map(|m| m.path.as_str()));
        let similar_module = closest(path, known.take_while(|_| may_suggest));
        match (reason, similar_module) {
            (Unresolved::NoModule, Some(similar)) => {
                error.with_help(format!("did you mean `{similar}.@{name}`?"))
            }
            (Unresolved::NoModule, None) => {
                error.with_help("check the path, and the `[dependencies]` of the manifest")
            }
            _ => error.with_help(self.import_help(path, name, ExportKind::Function)),
        }
    }

    /// The names of the types that a module can use by a short name.
    pub(crate) fn type_names(&self, module: ModuleId) -> impl Iterator<Item = &str> {
        let scope = self.module(module);
        let known = scope.types.iter().enumerate().filter(|(_, meaning)| meaning.is_some());
        known.map(|(i, _)| scope.name(Symbol::from_index(i as u32)))
    }

    /// Whether the module imports from `mlx`, which was reported there.
    pub(crate) fn imports_mlx(&self, module: ModuleId) -> bool {
        let scope = self.module(module);
        let ast = scope.ast();
        ast[ast.header.imports].iter().any(|import| is_mlx(scope.name(import.path.symbol)))
    }
}

/// The report about the first mention of `mlx` in a module.
pub(crate) fn missing_mlx(span: Span) -> Diagnostic {
    Diagnostic::new(Code::MPT2050, span, "this build has no `mlx` package")
        .with_help("compute with kernels (`gpu fn`) and `gpu.host`, or use a build with MLX")
}
