//! Names: what the modules of a program declare, import and export.
//!
//! [`Program`] owns the parsed modules and a table a module from symbols to what they name. It is
//! built once, before any type is looked at; later stages only read it.

mod build;
mod lookup;

pub(crate) use lookup::{Unresolved, missing_mlx};

use crate::ast::*;
use crate::builtins::BuiltinId;
use crate::interner::Symbol;
use crate::parser::ParsedModule;
use magpie_diag::{Diagnostic, Span};
use rustc_hash::FxHashMap;

/// A module of the program: an index into [`Program::modules`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ModuleId(pub(crate) u32);

/// A function or kernel as written: an index into [`Program::functions`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct FunctionId(pub(crate) u32);

/// A struct, enum or signature as written: an index into [`Program::types`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct TypeDeclId(pub(crate) u32);

/// A declaration: module and position in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct DeclRef {
    pub(crate) module: ModuleId,
    pub(crate) decl: u32,
}

/// What a name with `@` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FunctionName {
    Function(FunctionId),
    Global(DeclRef),
    /// A foreign function, which this release does not call.
    Extern(DeclRef),
    Builtin(BuiltinId),
    /// A function of a package that this build does not have.
    MissingPackage,
    /// An error about it has been reported.
    Failed,
}

/// What a name of a type means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TypeName {
    Decl(TypeDeclId),
    /// A type of a package that this build does not have.
    MissingPackage,
    /// An error about it has been reported.
    Failed,
}

/// A module with its names.
#[derive(Debug)]
pub(crate) struct ModuleScope {
    pub(crate) parsed: ParsedModule,
    /// The dotted path.
    pub(crate) path: String,
    /// By symbol: what `@name` means in this module.
    functions: Vec<Option<FunctionName>>,
    /// By symbol: what `TName` means in this module.
    types: Vec<Option<TypeName>>,
    /// By symbol: bit 0 for an exported `@name`, bit 1 for an exported `TName`.
    exports: Vec<u8>,
    /// By symbol: the module that a dotted path names.
    paths: Vec<Option<ModulePath>>,
}

/// What a dotted path names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ModulePath {
    User(ModuleId),
    /// A module of the language, by its path.
    Language,
    Unknown,
}

impl ModuleScope {
    /// The text of a symbol.
    pub(crate) fn name(&self, symbol: Symbol) -> &str {
        self.parsed.name(symbol)
    }

    /// A place in the module's file.
    pub(crate) fn span(&self, range: ByteRange) -> Span {
        self.parsed.span(range)
    }

    /// The syntax tree.
    pub(crate) fn ast(&self) -> &Ast {
        &self.parsed.ast
    }

    /// `path.@name`
    pub(crate) fn full_function_name(&self, name: Symbol) -> String {
        format!("{}.@{}", self.path, self.name(name))
    }

    fn exports_function(&self, name: Symbol) -> bool {
        self.exports[name.index()] & 1 != 0
    }

    fn exports_type(&self, name: Symbol) -> bool {
        self.exports[name.index()] & 2 != 0
    }
}

/// The modules of a program and their names.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The entry first, then in the order of discovery.
    pub(crate) modules: Vec<ModuleScope>,
    /// Every function and kernel, by module and in the order of the text.
    pub(crate) functions: Vec<DeclRef>,
    /// Every struct, enum and signature, by module and in the order of the text.
    pub(crate) types: Vec<DeclRef>,
    by_path: FxHashMap<String, ModuleId>,
}

impl Program {
    /// The program of these modules, and what is wrong with its names.
    pub(crate) fn new(modules: Vec<ParsedModule>, diagnostics: &mut Vec<Diagnostic>) -> Program {
        build::build(modules, diagnostics)
    }

    /// A module.
    pub(crate) fn module(&self, id: ModuleId) -> &ModuleScope {
        &self.modules[id.0 as usize]
    }

    /// The module that a function stands in, and its declaration.
    pub(crate) fn function(&self, id: FunctionId) -> (ModuleId, &FnDecl) {
        let at = self.functions[id.0 as usize];
        match &self.decl(at).kind {
            DeclKind::Fn(decl) => (at.module, decl),
            _ => unreachable!("{id:?} is no function"),
        }
    }

    /// A declaration.
    pub(crate) fn decl(&self, at: DeclRef) -> &Decl {
        &self.module(at.module).ast().decls[at.decl as usize]
    }

    /// The ids of all functions, in order.
    pub(crate) fn function_ids(&self) -> impl Iterator<Item = FunctionId> + use<> {
        (0..self.functions.len() as u32).map(FunctionId)
    }

    /// The full name of a function: `path.@name`.
    pub(crate) fn function_name(&self, id: FunctionId) -> String {
        let (module, decl) = self.function(id);
        self.module(module).full_function_name(decl.name.symbol)
    }
}
