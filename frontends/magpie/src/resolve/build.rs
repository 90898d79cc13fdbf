//! Building the tables: declarations, then exports, then imports.

use super::*;
use crate::builtins::{self, is_language_module, is_mlx};
use crate::types::is_language_type;
use magpie_diag::{Code, closest};

pub(super) fn build(parsed: Vec<ParsedModule>, diagnostics: &mut Vec<Diagnostic>) -> Program {
    let mut program = Program::default();
    for (n, module) in parsed.into_iter().enumerate() {
        let path = module.name(module.ast.header.module.symbol).to_string();
        program.by_path.entry(path.clone()).or_insert(ModuleId(n as u32));
        let count = module.interner.len();
        program.modules.push(ModuleScope {
            parsed: module,
            path,
            functions: vec![None; count],
            types: vec![None; count],
            exports: vec![0; count],
            paths: vec![None; count],
        });
    }
    let ids: Vec<ModuleId> = (0..program.modules.len() as u32).map(ModuleId).collect();
    for &id in &ids {
        check_path(&program, id, diagnostics);
        declare(&mut program, id, diagnostics);
    }
    for &id in &ids {
        export(&mut program, id, diagnostics);
    }
    for &id in &ids {
        paths(&mut program, id);
        import(&mut program, id, diagnostics);
    }
    program
}

/// Reports a module whose path belongs to another one.
fn check_path(program: &Program, id: ModuleId, diagnostics: &mut Vec<Diagnostic>) {
    let module = program.module(id);
    let span = module.span(module.ast().header.module.range);
    let path = &module.path;
    if is_language_module(path) {
        let message = format!("`{path}` is a path of the language itself");
        let help = "start the path with the name of your package";
        diagnostics.push(Diagnostic::new(Code::MPS0004, span, message).with_help(help));
    } else if program.by_path.get(path) != Some(&id) {
        let message = format!("there is another module `{path}`");
        let help = "the path of a module is that of its file: `a.b` is `src/b.mp` of package `a`";
        diagnostics.push(Diagnostic::new(Code::MPS0004, span, message).with_help(help));
    }
}

/// Enters the declarations of a module.
fn declare(program: &mut Program, id: ModuleId, diagnostics: &mut Vec<Diagnostic>) {
    let Program { modules, functions, types, .. } = program;
    let module = &mut modules[id.0 as usize];
    // Where each name was declared first, for the message about the second.
    let mut function_places: FxHashMap<Symbol, Span> = FxHashMap::default();
    let mut type_places: FxHashMap<Symbol, Span> = FxHashMap::default();
    for (n, decl) in module.parsed.ast.decls.iter().enumerate() {
        let at = DeclRef { module: id, decl: n as u32 };
        let mut enter = |code: Code, what: &str, name: Name, head: ByteRange| -> bool {
            let is_type = matches!(code, Code::MPS0021 | Code::MPS0023);
            let places = if is_type { &mut type_places } else { &mut function_places };
            let span = module.parsed.span(head);
            let text = module.parsed.name(name.symbol);
            if is_type && is_language_type(text) {
                let message = format!("`{text}` is a type of the language");
                let error = Diagnostic::new(code, span, message);
                diagnostics.push(error.with_help("give yours another name"));
                return false;
            }
            let Some(&first) = places.get(&name.symbol) else {
                places.insert(name.symbol, module.parsed.span(name.range));
                return true;
            };
            let sigil = if is_type { "" } else { "@" };
            diagnostics.push(
                Diagnostic::new(code, span, format!("{what} `{sigil}{text}` is declared twice"))
                    .with_secondary(first, "first declared here")
                    .with_help("rename one of the two, or remove it"),
            );
            false
        };
        match &decl.kind {
            DeclKind::Fn(f) => {
                let function = FunctionId(functions.len() as u32);
                functions.push(at);
                if enter(Code::MPS0020, "function", f.name, f.head) {
                    module.functions[f.name.symbol.index()] =
                        Some(FunctionName::Function(function));
                }
            }
            DeclKind::Global(g) => {
                if enter(Code::MPS0020, "global", g.name, g.name.range) {
                    module.functions[g.name.symbol.index()] = Some(FunctionName::Global(at));
                }
            }
            DeclKind::Extern(e) => {
                for f in &module.parsed.ast[e.functions] {
                    if enter(Code::MPS0020, "function", f.name, f.name.range) {
                        module.functions[f.name.symbol.index()] = Some(FunctionName::Extern(at));
                    }
                }
            }
            DeclKind::Type(t) => {
                let ty = TypeDeclId(types.len() as u32);
                types.push(at);
                if enter(Code::MPS0021, "type", t.name, t.name.range) {
                    module.types[t.name.symbol.index()] = Some(TypeName::Decl(ty));
                }
            }
            DeclKind::Sig(s) => {
                let ty = TypeDeclId(types.len() as u32);
                types.push(at);
                if enter(Code::MPS0023, "signature", s.name, s.name.range) {
                    module.types[s.name.symbol.index()] = Some(TypeName::Decl(ty));
                }
            }
            DeclKind::Impl(_) => {}
        }
    }
}

/// Marks what a module exports.
fn export(program: &mut Program, id: ModuleId, diagnostics: &mut Vec<Diagnostic>) {
    let module = &mut program.modules[id.0 as usize];
    for export in &module.parsed.ast[module.parsed.ast.header.exports] {
        let symbol = export.name.symbol;
        let (known, sigil, bit) = match export.kind {
            ExportKind::Function => (module.functions[symbol.index()].is_some(), "@", 1),
            ExportKind::Type => (module.types[symbol.index()].is_some(), "", 2),
        };
        module.exports[symbol.index()] |= bit;
        if !known {
            let name = module.parsed.name(symbol);
            let message = format!("`{sigil}{name}` is exported and not declared in this module");
            diagnostics.push(
                Diagnostic::new(Code::MPS0002, module.parsed.span(export.name.range), message)
                    .with_help(format!("declare `{sigil}{name}`, or remove it from `exports`")),
            );
        }
    }
}

/// Finds the modules that dotted paths of a module name.
fn paths(program: &mut Program, id: ModuleId) {
    let mut found = Vec::new();
    let module = program.module(id);
    let ast = module.ast();
    let imports = ast[ast.header.imports].iter().map(|import| import.path.symbol);
    let used = ast.pools.fn_refs.iter().filter_map(|fn_ref| fn_ref.path);
    for symbol in imports.chain(used) {
        let path = module.name(symbol);
        let target = match program.by_path.get(path) {
            Some(&user) => ModulePath::User(user),
            None if builtins::names_in(path).next().is_some() || is_mlx(path) => {
                ModulePath::Language
            }
            None => ModulePath::Unknown,
        };
        found.push((symbol, target));
    }
    for (symbol, target) in found {
        program.modules[id.0 as usize].paths[symbol.index()] = Some(target);
    }
}

/// Enters the imported names of a module.
fn import(program: &mut Program, id: ModuleId, diagnostics: &mut Vec<Diagnostic>) {
    let mut functions = Vec::new();
    let mut types = Vec::new();
    let module = program.module(id);
    let ast = module.ast();
    let mut missing_package = None;
    for import in &ast[ast.header.imports] {
        let path = module.name(import.path.symbol);
        if is_mlx(path) {
            missing_package.get_or_insert(import.path.range);
        }
        if module.paths[import.path.symbol.index()] == Some(ModulePath::Unknown) {
            diagnostics.push(unknown_module(program, id, import.path));
            // Names from it are reported once, here.
            for item in import.items.into_iter().flat_map(|items| &ast[items]) {
                match item.kind {
                    ExportKind::Function => {
                        functions.push((item.name, FunctionName::Failed, import.path))
                    }
                    ExportKind::Type => types.push((item.name, TypeName::Failed, import.path)),
                }
            }
            continue;
        }
        for item in import.items.into_iter().flat_map(|items| &ast[items]) {
            let name = module.name(item.name.symbol);
            let failure = match item.kind {
                ExportKind::Function => {
                    let found = program.function_in(path, name);
                    let meaning = found.as_ref().map_or(FunctionName::Failed, |&found| found);
                    functions.push((item.name, meaning, import.path));
                    found.err()
                }
                ExportKind::Type => {
                    let found = program.type_in(path, name);
                    let meaning = found.as_ref().map_or(TypeName::Failed, |&found| found);
                    types.push((item.name, meaning, import.path));
                    found.err()
                }
            };
            if let Some(failure) = failure {
                let sigil = if item.kind == ExportKind::Function { "@" } else { "" };
                let message = failure.message(&format!("{sigil}{name}"), path);
                let span = module.span(item.name.range);
                let error = Diagnostic::new(Code::MPS0002, span, message);
                diagnostics.push(error.with_help(program.import_help(path, name, item.kind)));
            }
        }
    }
    if let Some(range) = missing_package {
        diagnostics.push(super::lookup::missing_mlx(module.span(range)));
    }
    let module = &mut program.modules[id.0 as usize];
    let mut clash = |name: Name, sigil: &str, path: Name, is_import, module: &ModuleScope| {
        let text = module.name(name.symbol);
        let with = if is_import { "another import" } else { "a declaration of this module" };
        let message = format!("the imported `{sigil}{text}` clashes with {with}");
        diagnostics.push(
            Diagnostic::new(Code::MPS0004, module.span(name.range), message).with_help(format!(
                "remove it from `imports` and write `{}.{sigil}{text}` in full",
                module.name(path.symbol)
            )),
        );
    };
    let mut imported: FxHashMap<(bool, Symbol), ()> = FxHashMap::default();
    for (name, meaning, path) in functions {
        let slot = module.functions[name.symbol.index()];
        let is_import = imported.insert((false, name.symbol), ()).is_some();
        match slot {
            None => module.functions[name.symbol.index()] = Some(meaning),
            Some(known) if known == meaning => {}
            Some(_) => {
                clash(name, "@", path, is_import, module);
                // What it means is open: nothing more is said where it is used.
                module.functions[name.symbol.index()] = Some(FunctionName::Failed);
            }
        }
    }
    for (name, meaning, path) in types {
        let slot = module.types[name.symbol.index()];
        let is_import = imported.insert((true, name.symbol), ()).is_some();
        match slot {
            None => module.types[name.symbol.index()] = Some(meaning),
            Some(known) if known == meaning => {}
            Some(_) => {
                clash(name, "", path, is_import, module);
                // What it means is open: nothing more is said where it is used.
                module.types[name.symbol.index()] = Some(TypeName::Failed);
            }
        }
    }
}

fn unknown_module(program: &Program, id: ModuleId, path: Name) -> Diagnostic {
    let module = program.module(id);
    let text = module.name(path.symbol);
    let message = format!("there is no module `{text}`");
    let error = Diagnostic::new(Code::MPS0002, module.span(path.range), message);
    let users = program.modules.iter().map(|m| m.path.as_str());
    let language = builtins::module_paths().map(|path| -> &str { path });
    let known = language.chain(users.filter(|&p| p != text));
    match closest(text, known) {
        Some(known) => error.with_help(format!("did you mean `{known}`?")),
        None if is_language_module(text) => {
            let known: Vec<_> = builtins::module_paths().collect();
            error.with_help(format!("the language has the modules {}", known.join(", ")))
        }
        None => {
            let mut words = text.split('.');
            let package = words.next().unwrap_or_default();
            let rest: Vec<&str> = words.collect();
            let file = if rest.is_empty() { package.to_string() } else { rest.join("/") };
            error.with_help(format!(
                "module `{text}` is the file `src/{file}.mp` of package `{package}`"
            ))
        }
    }
}
