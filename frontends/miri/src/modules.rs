//! The files of a program: `use local.a.b` stands for the file `a/b.mi` beside the program.

use crate::ast::*;
use crate::parse;
use magpie_diag::{Code, Diagnostic, FileId};
use rustc_hash::FxHashMap;

/// A text that is compiled.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its number in places.
    pub file: FileId,
    /// Its name in messages.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A file as a tree, with the files that it uses.
pub(crate) struct Parsed {
    pub(crate) id: FileId,
    /// `a/b` for a module of the program, empty for the program's own file and the library.
    pub(crate) path: String,
    pub(crate) file: File,
    /// Each `use`, and the file it means; none for modules of the library.
    pub(crate) uses: Vec<(UseDecl, Option<FileId>)>,
}

/// Modules of the language. Their names are known without a `use`.
const LIBRARY: &[&str] = &[
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

/// Whether the words are the path of a module of the language.
pub(crate) fn is_library<'a>(names: &Interner, path: impl Iterator<Item = &'a Ident>) -> bool {
    let words: Vec<&str> = path.map(|word| names.name(word.sym)).collect();
    LIBRARY.contains(&words.join(".").as_str())
}

/// Files that use each other in a row at most.
const MAX_DEPTH: usize = 64;

/// Reads the files of a program.
pub(crate) struct Loader<'a> {
    pub(crate) ast: &'a mut Ast,
    pub(crate) names: &'a mut Interner,
    pub(crate) diagnostics: &'a mut Vec<Diagnostic>,
    /// Gives the text of a path `a/b`, if there is such a file.
    pub(crate) read: &'a mut dyn FnMut(&str) -> Option<Source>,
    /// Files before those that use them.
    pub(crate) files: Vec<Parsed>,
    /// The texts of the modules.
    pub(crate) sources: Vec<Source>,
    /// By path; `None` while the files that it uses are read.
    known: FxHashMap<String, Option<FileId>>,
    depth: usize,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(
        ast: &'a mut Ast,
        names: &'a mut Interner,
        diagnostics: &'a mut Vec<Diagnostic>,
        read: &'a mut dyn FnMut(&str) -> Option<Source>,
    ) -> Loader<'a> {
        Loader {
            ast,
            names,
            diagnostics,
            read,
            files: Vec::new(),
            sources: Vec::new(),
            known: FxHashMap::default(),
            depth: 0,
        }
    }

    /// Parses a file, after the files that it uses.
    pub(crate) fn add(&mut self, id: FileId, path: &str, text: &str) {
        let (mut file, found) = parse::parse(id, text, self.ast, self.names);
        self.diagnostics.extend(found);
        let uses = std::mem::take(&mut file.uses);
        let uses = uses.into_iter().filter_map(|decl| self.resolve(decl)).collect();
        self.files.push(Parsed { id, path: path.to_string(), file, uses });
    }

    /// Finds the module of a `use`; the last word of a path may be a name in a module.
    fn resolve(&mut self, mut decl: UseDecl) -> Option<(UseDecl, Option<FileId>)> {
        let words: Vec<String> =
            decl.path.iter().map(|name| self.names.name(name.sym).to_string()).collect();
        let is_local = words[0] == "local" && words.len() > 1;
        let whole = words[usize::from(is_local)..].join(if is_local { "/" } else { "." });
        if !is_local {
            if LIBRARY.contains(&whole.as_str()) {
                return Some((decl, None));
            }
            if whole.rsplit_once('.').is_some_and(|(module, _)| LIBRARY.contains(&module)) {
                single_name(&mut decl);
                return Some((decl, None));
            }
            let message = format!("there is no module `{whole}`");
            let help = format!("the modules are {} and, for files, local.name", LIBRARY.join(", "));
            self.refuse(&decl, message, &help);
            return None;
        }
        if let Some(found) = self.module(&whole, &decl) {
            return found.map(|file| (decl, Some(file)));
        }
        if let Some((module, _)) = whole.rsplit_once('/')
            && decl.names.is_none()
            && let Some(found) = self.module(module, &decl)
        {
            single_name(&mut decl);
            return found.map(|file| (decl, Some(file)));
        }
        let message = format!("there is no file `{whole}.mi` beside the program");
        self.refuse(&decl, message, "`use local.a.b` means the file `a/b.mi`");
        None
    }

    /// The file of a path. `None`: there is none; `Some(None)`: it was reported.
    fn module(&mut self, path: &str, decl: &UseDecl) -> Option<Option<FileId>> {
        match self.known.get(path) {
            Some(Some(file)) => return Some(Some(*file)),
            Some(None) => {
                let message = format!("`{path}.mi` uses itself, directly or through others");
                self.refuse(decl, message, "move what both need into a file of its own");
                return Some(None);
            }
            None => {}
        }
        if self.depth >= MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} files use each other in a row");
            self.refuse(decl, message, "use fewer files");
            return Some(None);
        }
        let source = (self.read)(path)?;
        self.known.insert(path.to_string(), None);
        self.depth += 1;
        self.add(source.file, path, &source.text);
        self.depth -= 1;
        self.known.insert(path.to_string(), Some(source.file));
        let file = source.file;
        self.sources.push(source);
        Some(Some(file))
    }

    fn refuse(&mut self, decl: &UseDecl, message: String, help: &str) {
        self.diagnostics.push(Diagnostic::new(Code::MIR0209, decl.span, message).with_help(help));
    }
}

/// `use a.b.name as own` is `use a.b.{name as own}`.
fn single_name(decl: &mut UseDecl) {
    if let Some(name) = decl.path.pop() {
        decl.names = Some(vec![(name, decl.alias.take().unwrap_or(name))]);
    }
}
