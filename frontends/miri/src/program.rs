//! [`Program`]: the declarations of all files of a program, and what names mean in each of them.

use crate::ast::*;
use crate::lower::library;
use crate::modules::{self, Parsed};
use crate::receivers;
use magpie_diag::{Code, Diagnostic, FileId, Span};
use rustc_hash::FxHashMap;

/// What a name at the top of a file means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    Fn(FnDeclId),
    Struct(u32),
    Enum(u32),
    Trait(u32),
    Alias(TypeExprId),
    Const(StmtId),
}

/// What a name before a dot means, when it is a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Module {
    /// Any module of the library: its names are known without it.
    Library,
    File(FileId),
}

/// What names mean in one file.
#[derive(Default)]
pub(crate) struct Scope {
    /// Declarations: its own ones, imported ones, those of the library.
    pub(crate) items: FxHashMap<Sym, Item>,
    /// What other files may use.
    exported: FxHashMap<Sym, Item>,
    /// What a module is called here: `M` after `use system.math as M`.
    modules: FxHashMap<Sym, Module>,
    /// Other names for names of the library: `c` after `use system.math.{cos as c}`.
    renamed: FxHashMap<Sym, Sym>,
    /// What stands before its names in names of the whole program: `geometry.`.
    prefix: String,
}

/// A program's text as trees, and what its names mean.
pub(crate) struct Program {
    pub(crate) ast: Ast,
    pub(crate) names: Interner,
    pub(crate) structs: Vec<StructDecl>,
    pub(crate) enums: Vec<EnumDecl>,
    pub(crate) traits: Vec<TraitDecl>,
    /// By file.
    scopes: FxHashMap<FileId, Scope>,
    /// Functions of the program's files, in source order.
    pub(crate) fns: Vec<FnDeclId>,
    /// The file of the library.
    pub(crate) library: FileId,
    /// The file that the program starts in.
    pub(crate) entry: FileId,
    /// Statements at the top of that file, constants left out.
    pub(crate) script: Vec<StmtId>,
    /// Constants in source order.
    pub(crate) consts: Vec<StmtId>,
}

impl Program {
    /// Collects the declarations of the files: the library first, the program's own file last, and
    /// files before those that use them.
    pub(crate) fn new(
        ast: Ast,
        names: Interner,
        files: Vec<Parsed>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Program {
        let library = files.first().map_or(FileId(0), |file| file.id);
        let entry = files.last().map_or(FileId(0), |file| file.id);
        let mut program = Program {
            ast,
            names,
            structs: Vec::new(),
            enums: Vec::new(),
            traits: Vec::new(),
            scopes: FxHashMap::default(),
            fns: Vec::new(),
            library,
            entry,
            script: Vec::new(),
            consts: Vec::new(),
        };
        let mut library_items = FxHashMap::default();
        for (n, parsed) in files.into_iter().enumerate() {
            let mut scope = Scope { items: library_items.clone(), ..Scope::default() };
            if !parsed.path.is_empty() {
                scope.prefix = format!("{}.", parsed.path.replace('/', "."));
            }
            for used in &parsed.uses {
                program.import(&mut scope, used, diagnostics);
            }
            let id = parsed.id;
            program.declare(&mut scope, parsed, n > 0, diagnostics);
            if n == 0 {
                library_items.clone_from(&scope.items);
            }
            program.scopes.insert(id, scope);
        }
        receivers::mark(&mut program);
        program
    }

    /// Adds the declarations of a file.
    fn declare(
        &mut self,
        scope: &mut Scope,
        parsed: Parsed,
        own: bool,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let file = parsed.file;
        let mut seen: FxHashMap<Sym, Span> = FxHashMap::default();
        let mut declared = Vec::new();
        for decl in file.structs {
            declared.push((decl.name, Item::Struct(self.structs.len() as u32)));
            self.structs.push(decl);
        }
        for decl in file.enums {
            declared.push((decl.name, Item::Enum(self.enums.len() as u32)));
            self.enums.push(decl);
        }
        for decl in file.traits {
            declared.push((decl.name, Item::Trait(self.traits.len() as u32)));
            self.traits.push(decl);
        }
        declared.extend(file.aliases.iter().map(|&(name, ty)| (name, Item::Alias(ty))));
        declared.extend(file.fns.iter().map(|&id| (self.ast[id].name, Item::Fn(id))));
        for id in file.stmts {
            match &self.ast[id].kind {
                StmtKind::Const(binder) => {
                    declared.push((binder.name, Item::Const(id)));
                    self.consts.push(id);
                }
                _ if parsed.id == self.entry => self.script.push(id),
                _ => {
                    let span = self.ast[id].span;
                    let message = "statements of a module are not executed";
                    diagnostics.push(
                        Diagnostic::new(Code::MIR0215, span, message)
                            .with_help("move the statement into a function, or use a `const`"),
                    );
                }
            }
        }
        if own {
            self.fns.extend(&file.fns);
        }
        for (name, item) in declared {
            if let Some(&first) = seen.get(&name.sym) {
                let text = self.names.name(name.sym);
                diagnostics.push(
                    Diagnostic::new(
                        Code::MIR0208,
                        name.span,
                        format!("`{text}` is declared twice"),
                    )
                    .with_secondary(first, "here first")
                    .with_help("give one of them another name"),
                );
                continue;
            }
            seen.insert(name.sym, name.span);
            scope.items.insert(name.sym, item);
            if !file.private.contains(&name.span) {
                scope.exported.insert(name.sym, item);
            }
        }
    }

    /// Adds what a `use` makes known.
    fn import(
        &self,
        scope: &mut Scope,
        used: &(UseDecl, Option<FileId>),
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let (decl, file) = (&used.0, used.1);
        let Some(last) = decl.path.last() else { return };
        let module = file.map_or(Module::Library, Module::File);
        let Some(file) = file else {
            for &(name, own) in decl.names.iter().flatten() {
                if let Some(&item) = scope.items.get(&name.sym) {
                    scope.items.insert(own.sym, item);
                    continue;
                }
                let is_known = library::is_known(self.names.name(name.sym))
                    || modules::is_library(&self.names, decl.path.iter().chain([&name]));
                if !is_known {
                    diagnostics.push(self.no_export(*last, name));
                }
                scope.renamed.insert(own.sym, name.sym);
            }
            let own = decl.alias.unwrap_or(*last);
            // The last word of the path names the module, unless a declaration has that name.
            if decl.names.is_none() {
                scope.modules.insert(own.sym, module);
            }
            return;
        };
        let exported = self.scopes.get(&file).map(|s| &s.exported);
        let mut imported: Vec<(Sym, Item)> = Vec::new();
        match &decl.names {
            Some(names) => {
                for &(name, own) in names {
                    if let Some(&item) = exported.and_then(|items| items.get(&name.sym)) {
                        imported.push((own.sym, item));
                        continue;
                    }
                    diagnostics.push(self.no_export(*last, name));
                }
            }
            None => {
                if decl.alias.is_none() {
                    imported
                        .extend(exported.into_iter().flatten().map(|(&sym, &item)| (sym, item)));
                    imported.sort_unstable_by_key(|(sym, _)| *sym);
                }
                scope.modules.insert(decl.alias.unwrap_or(*last).sym, module);
            }
        }
        for (name, item) in imported {
            let other = scope.items.insert(name, item).filter(|&other| other != item);
            if other.is_some_and(|other| self.is_imported(other)) {
                let message = format!("two modules have a `{}`", self.names.name(name));
                diagnostics.push(
                    Diagnostic::new(Code::MIR0208, decl.span, message)
                        .with_help("write `use local.module as M`, then `M.name`"),
                );
            }
        }
    }

    fn no_export(&self, module: Ident, name: Ident) -> Diagnostic {
        let (module, text) = (self.names.name(module.sym), self.names.name(name.sym));
        let message = format!("`{module}` has no public `{text}`");
        Diagnostic::new(Code::MIR0201, name.span, message)
            .with_help("declare it there, or correct its spelling")
    }

    /// Whether a declaration is one of the program's files.
    fn is_imported(&self, item: Item) -> bool {
        let span = match item {
            Item::Fn(id) => self.ast[id].name.span,
            Item::Struct(n) => self.structs[n as usize].name.span,
            Item::Enum(n) => self.enums[n as usize].name.span,
            Item::Trait(n) => self.traits[n as usize].name.span,
            Item::Alias(id) => self.ast[id].span,
            Item::Const(id) => self.ast[id].span,
        };
        self.scopes.get(&span.file).is_some_and(|scope| !scope.prefix.is_empty())
    }

    /// The text of a name.
    pub(crate) fn name(&self, sym: Sym) -> &str {
        self.names.name(sym)
    }

    /// What names mean at a place.
    pub(crate) fn scope(&self, at: Span) -> Option<&Scope> {
        self.scopes.get(&at.file)
    }

    /// What stands before the names of a declaration's file in names of the whole program.
    pub(crate) fn prefix(&self, at: Span) -> &str {
        self.scope(at).map_or("", |scope| &scope.prefix)
    }

    /// What a name means at a place, when a file declares it.
    pub(crate) fn item(&self, sym: Sym, at: Span) -> Option<Item> {
        self.scope(at)?.items.get(&sym).copied()
    }

    /// The module that a name means at a place.
    pub(crate) fn module(&self, sym: Sym, at: Span) -> Option<Module> {
        self.scope(at)?.modules.get(&sym).copied()
    }

    /// What a name of a module means.
    pub(crate) fn exported(&self, file: FileId, sym: Sym) -> Option<Item> {
        self.scopes.get(&file)?.exported.get(&sym).copied()
    }

    /// The library's name for a name: `use` may have given it another one.
    pub(crate) fn library_name(&self, sym: Sym, at: Span) -> Sym {
        self.scope(at).and_then(|scope| scope.renamed.get(&sym)).copied().unwrap_or(sym)
    }

    /// The name of the struct or trait whose method a function is.
    pub(crate) fn owner(&self, id: FnDeclId) -> Option<Sym> {
        let this = self.ast[id].params.first()?;
        match self.ast[this.ty].kind {
            // Written by nobody: it stands where the method's name does.
            TypeExprKind::Name(owner, _) if this.name.span == self.ast[id].name.span => Some(owner),
            _ => None,
        }
    }

    /// The method that `x.name` in a function means, where `x` is a parameter, `self` or a struct
    /// that is made there.
    pub(crate) fn called_method(&self, caller: FnDeclId, callee: ExprId) -> Option<FnDeclId> {
        let ExprKind::Member(base, method) = self.ast[callee].kind else { return None };
        let item = match self.ast[base].kind {
            ExprKind::Name(name) => {
                let params = &self.ast[caller].params;
                let ty = &self.ast[params.iter().find(|p| p.name.sym == name)?.ty];
                match ty.kind {
                    TypeExprKind::Name(name, _) => self.item(name, ty.span)?,
                    _ => return None,
                }
            }
            ExprKind::Call(made, _) => match self.ast[made].kind {
                ExprKind::Name(name) => self.item(name, self.ast[made].span)?,
                _ => return None,
            },
            _ => return None,
        };
        match item {
            Item::Struct(n) => self.method(n, method.sym),
            _ => None,
        }
    }

    /// The method of a struct: its own one, or one that a trait provides.
    pub(crate) fn method(&self, owner: u32, name: Sym) -> Option<FnDeclId> {
        let named =
            |ids: &[FnDeclId]| ids.iter().copied().find(|&id| self.ast[id].name.sym == name);
        let decl = &self.structs[owner as usize];
        named(&decl.methods).or_else(|| {
            decl.implements.iter().find_map(|of| match self.item(of.sym, of.span)? {
                Item::Trait(n) => named(&self.traits[n as usize].provided),
                _ => None,
            })
        })
    }
}
