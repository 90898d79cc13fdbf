//! [`Program`]: the declarations of all files of a program, by name.

use crate::ast::*;
use magpie_diag::{Code, Diagnostic, Span};
use rustc_hash::FxHashMap;

/// What a name at the top of a file means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    Fn(FnDeclId),
    Struct(u32),
    Enum(u32),
    Trait,
    Alias(TypeExprId),
    Const(StmtId),
}

/// A program's text as trees, and what its names mean.
pub(crate) struct Program {
    pub(crate) ast: Ast,
    pub(crate) names: Interner,
    pub(crate) structs: Vec<StructDecl>,
    pub(crate) enums: Vec<EnumDecl>,
    pub(crate) items: FxHashMap<Sym, Item>,
    /// Functions of the program itself, in source order.
    pub(crate) fns: Vec<FnDeclId>,
    /// Statements at the top of the program, constants left out.
    pub(crate) script: Vec<StmtId>,
    /// Constants in source order.
    pub(crate) consts: Vec<StmtId>,
    /// What a module is called here: `M` after `use system.math as M`.
    pub(crate) modules: FxHashMap<Sym, ()>,
    /// Other names for names of the library: `c` after `use system.math.{cos as c}`.
    pub(crate) renamed: FxHashMap<Sym, Sym>,
}

/// Modules of the language. Their names are known without a `use`.
const MODULES: &[&str] = &[
    "system.io",
    "system.gpu",
    "system.gpu.atomic",
    "system.gpu.vector",
    "system.math",
    "system.accelerator",
    "system.collections",
    "system.collections.array",
    "system.collections.list",
    "system.collections.map",
    "system.collections.set",
    "system.collections.tensor",
    "system.fs",
    "system.os",
];

impl Program {
    /// Collects the declarations of the library and of the program.
    pub(crate) fn new(
        ast: Ast,
        names: Interner,
        library: File,
        file: File,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Program {
        let mut program = Program {
            ast,
            names,
            structs: Vec::new(),
            enums: Vec::new(),
            items: FxHashMap::default(),
            fns: Vec::new(),
            script: Vec::new(),
            consts: Vec::new(),
            modules: FxHashMap::default(),
            renamed: FxHashMap::default(),
        };
        program.add_file(library, false, diagnostics);
        program.add_file(file, true, diagnostics);
        program
    }

    fn add_file(&mut self, file: File, own: bool, diagnostics: &mut Vec<Diagnostic>) {
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
        declared.extend(file.traits.iter().map(|&name| (name, Item::Trait)));
        declared.extend(file.aliases.iter().map(|&(name, ty)| (name, Item::Alias(ty))));
        declared.extend(file.fns.iter().map(|&id| (self.ast[id].name, Item::Fn(id))));
        for id in file.stmts {
            match &self.ast[id].kind {
                StmtKind::Const(binder) => {
                    declared.push((binder.name, Item::Const(id)));
                    self.consts.push(id);
                }
                _ => self.script.push(id),
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
            self.items.insert(name.sym, item);
        }
        for used in file.uses {
            self.use_module(used, diagnostics);
        }
    }

    fn use_module(&mut self, used: UseDecl, diagnostics: &mut Vec<Diagnostic>) {
        let words: Vec<&str> = used.path.iter().map(|name| self.names.name(name.sym)).collect();
        let mut path = words.join(".");
        let mut single = None;
        if !MODULES.contains(&path.as_str()) {
            // `use system.math.PI`
            if let Some((module, _)) = path.rsplit_once('.')
                && MODULES.contains(&module)
            {
                single = used.path.last().copied();
                path = module.to_string();
            }
        }
        if !MODULES.contains(&path.as_str()) {
            let (message, help) = match words.first() {
                Some(&"local") => (
                    format!("`{path}`: modules of the program are not supported"),
                    "put the declarations into this file".to_string(),
                ),
                _ => (
                    format!("there is no module `{path}`"),
                    format!("the modules are {}", MODULES.join(", ")),
                ),
            };
            diagnostics.push(Diagnostic::new(Code::MIR0209, used.span, message).with_help(help));
            return;
        }
        for &(name, own) in used.names.iter().flatten() {
            self.renamed.insert(own.sym, name.sym);
        }
        match (single, used.alias) {
            (Some(name), Some(own)) => {
                self.renamed.insert(own.sym, name.sym);
            }
            (Some(_), None) => {}
            (None, Some(own)) => {
                self.modules.insert(own.sym, ());
            }
            // The last word of the path names the module, unless a declaration has that name.
            (None, None) => {
                if let Some(last) = used.path.last() {
                    self.modules.insert(last.sym, ());
                }
            }
        }
    }

    /// The text of a name.
    pub(crate) fn name(&self, sym: Sym) -> &str {
        self.names.name(sym)
    }

    /// What a name declared at the top of a file means.
    pub(crate) fn item(&self, sym: Sym) -> Option<Item> {
        self.items.get(&sym).copied()
    }
}
