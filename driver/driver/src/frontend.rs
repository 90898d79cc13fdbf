//! Source file → MPIR: the extension chooses the front end.

use crate::kernels::check_beside_errors;
use crate::miri::MiriChecks;
use crate::modules::Packages;
use crate::project::{Project, display_name};
use crate::session::{Session, Stop};
use crate::source_file;
use magpie_diag::{Code, Diagnostic, FileId};
use magpie_gpu::surface::RuleSet;
use magpie_lang::ParsedModule;
use magpie_mpir::verify::{Stage, verify_module};
use magpie_mpir::{Domain, FnId, Module, MpirFn, parse_with_own_places};
use magpie_types::fixed;
use std::path::Path;

/// A program in MPIR that the verifier has accepted ([`Stage::Surface`]).
#[derive(Debug)]
pub(crate) struct Program {
    /// Every function.
    pub module: Module,
    /// Where it starts.
    pub main: Option<FnId>,
    /// What can be launched.
    pub kernels: Vec<FnId>,
    /// What `magpie test` runs.
    pub tests: Vec<FnId>,
    /// The entry file.
    pub entry: FileId,
    /// What the language forbids in kernels.
    pub rules: RuleSet,
    /// What is left to check of a Miri program.
    pub miri: Option<MiriChecks>,
}

/// MPIR text is no language: it may hold what any language may, and only what no kernel can do is
/// forbidden.
const MPIR_RULES: RuleSet = RuleSet::RECURSION.union(RuleSet::EXCESS).union(RuleSet::LARGE_SHARED);

/// The languages that a program can be written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Language {
    Magpie,
    Miri,
    Mpir,
}

impl Language {
    /// The language of a file.
    ///
    /// # Errors
    /// `MPT2050`, `MPL0006`: a language that this build does not have, or none.
    pub(crate) fn of(session: &mut Session, path: &Path) -> Result<Language, Stop> {
        let later = |session: &mut Session, name: &str| {
            let message = format!("{name} programs are not supported by this build");
            let help = "this build compiles Magpie (`.mp`), Miri (`.mi`) and MPIR text (`.mpir`)";
            Err(session.refuse(Code::MPT2050, message, help))
        };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("mp") => Ok(Language::Magpie),
            Some("mpir") => Ok(Language::Mpir),
            Some("mi") => Ok(Language::Miri),
            Some("nupp") => later(session, "Nupp (`.nupp`)"),
            _ => {
                let message = format!("`{}` is no source file", path.display());
                let help = "the extension chooses the language: `.mp` for Magpie, `.mi` for Miri, `.mpir` for MPIR text";
                Err(session.refuse(Code::MPL0006, message, help))
            }
        }
    }
}

/// Reads a program and every module it imports, and compiles it to MPIR.
///
/// # Errors
/// The program is refused.
pub(crate) fn load(session: &mut Session, project: &Project) -> Result<Program, Stop> {
    load_file(session, project, &project.entry)
}

/// As [`load`], with another entry file of the project.
pub(crate) fn load_file(
    session: &mut Session,
    project: &Project,
    path: &Path,
) -> Result<Program, Stop> {
    let language = Language::of(session, path)?;
    let entry = source_file::read(session, path, &display_name(path))?;
    let mut program = session.time("frontend", |session| match language {
        Language::Magpie => compile_magpie(session, project, entry),
        Language::Miri => compile_miri(session, path, entry),
        Language::Mpir => read_mpir(session, entry),
    })?;
    if project.manifest.ptx.shared_opt_in {
        program.rules = program.rules.without(RuleSet::LARGE_SHARED);
    }
    program.module.files = session.sources.iter().map(|(_, file)| file.name.clone()).collect();
    // The rules of a language speak of what it lets stand in kernels; MPIR text has no such rules.
    let stage = match language {
        Language::Magpie => Stage::Surface,
        Language::Miri | Language::Mpir => Stage::Core,
    };
    session.time("verify", |session| {
        verify_module(&program.module, stage).map_err(|errors| {
            session.report_all(errors);
            Stop::Refused
        })
    })?;
    Ok(program)
}

// ----- Magpie -----

/// Whether the command compares the digests of modules with their text.
fn compares_digests(command: &str) -> bool {
    matches!(command, "build" | "run" | "test" | "lint")
}

/// Parses a module of the session and compares its digest where the command does.
pub(crate) fn parse_magpie(session: &mut Session, file: FileId) -> ParsedModule {
    let text = session.sources.file(file).map(|f| f.text.as_str()).unwrap_or_default();
    let parsed = magpie_lang::parse_module(file, text);
    if compares_digests(session.options.command) {
        let mismatch = magpie_lang::check_digest(&parsed, text);
        session.report_all(mismatch);
    }
    parsed
}

fn compile_magpie(
    session: &mut Session,
    project: &Project,
    entry: FileId,
) -> Result<Program, Stop> {
    let parsed = parse_magpie(session, entry);
    let path = parsed.name(parsed.ast.header.module.symbol);
    let own = path.split('.').next().unwrap_or_default().to_string();
    let packages = Packages::find(session, project, &own)?;
    let mut load = |path: &str| {
        let file = packages.read(session, path)?;
        Some(parse_magpie(session, file))
    };
    let limit = project.manifest.max_mono_instances;
    let output = magpie_lang::compile(parsed, &mut load, limit);
    session.report_all(output.diagnostics);
    let checked = session.stop_on_errors();
    session.report_all(output.kernel_findings);
    if session.options.command == "lint" {
        session.report_all(output.lints);
    }
    checked?;
    let magpie_lang::Output { module, main, kernels, tests, .. } = output;
    Ok(Program { module, main, kernels, tests, entry, rules: RuleSet::MAGPIE, miri: None })
}

// ----- Miri -----

fn compile_miri(session: &mut Session, path: &Path, entry: FileId) -> Result<Program, Stop> {
    let library = session.sources.add(magpie_miri::LIBRARY_NAME, magpie_miri::LIBRARY);
    let source = |session: &Session, file| {
        let found = session.sources.file(file)?;
        Some(magpie_miri::Source { file, name: found.name.clone(), text: found.text.clone() })
    };
    let Some(own) = source(session, entry) else { return Err(Stop::Refused) };
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let mut read = |module: &str| {
        let path = folder.join(module).with_extension("mi");
        // What is there and cannot be read was reported.
        let file = path.exists().then(|| source_file::read(session, &path, &display_name(&path)));
        source(session, file?.ok()?)
    };
    let output = magpie_miri::compile(&own, library, &mut read);
    let magpie_miri::Output { module, main, kernels, costs, .. } = output;
    let checks = MiriChecks {
        unlaunched: output.unlaunched,
        doubtful_writes: output.doubtful_writes,
        costs,
    };
    session.report_all(output.diagnostics);
    if session.has_errors() {
        check_beside_errors(session, module, &kernels, &checks);
        return Err(Stop::Refused);
    }
    let miri = Some(checks);
    let tests = Vec::new();
    Ok(Program { module, main, kernels, tests, entry, rules: MPIR_RULES, miri })
}

// ----- MPIR text -----

fn read_mpir(session: &mut Session, entry: FileId) -> Result<Program, Stop> {
    let text = session.sources.file(entry).map(|f| f.text.as_str()).unwrap_or_default();
    let module = parse_with_own_places(text, entry).map_err(|errors| {
        session.report_all(errors);
        Stop::Refused
    })?;
    let find = |wanted: &dyn Fn(&MpirFn) -> bool| -> Vec<FnId> {
        module.fn_ids().filter(|&f| wanted(module.func(f))).collect()
    };
    let mains = find(&|f| short_name(f) == "main" && is_host(f));
    let kernels = find(&MpirFn::is_kernel);
    let tests = find(&|f| {
        let is_test = short_name(f).starts_with("test_") && f.ret_ty == fixed::UNIT;
        is_test && is_host(f) && f.params.is_empty()
    });
    let main = match mains[..] {
        [] => None,
        [main] => Some(main),
        [_, second, ..] => {
            let f = module.func(second);
            let d = Diagnostic::new(Code::MPL0005, f.span, "the program has two functions `@main`");
            session.report(d.with_help("keep one of them"));
            return Err(Stop::Refused);
        }
    };
    if let Some(main) = main {
        check_main(session, module.func(main))?;
    }
    Ok(Program { module, main, kernels, tests, entry, rules: MPIR_RULES, miri: None })
}

/// A module that a front end made and that was checked then, and the function it starts with, by
/// name; `None` when there is no such function.
pub(crate) fn attached(module: Module, main: &str) -> Option<(Program, FnId)> {
    let main = module.fn_ids().find(|&f| module.func(f).name == main)?;
    let kernels = module.fn_ids().filter(|&f| module.func(f).is_kernel()).collect();
    let (entry, rules, tests) = (FileId(0), MPIR_RULES, Vec::new());
    let program = Program { module, main: Some(main), kernels, tests, entry, rules, miri: None };
    Some((program, main))
}

/// The name of a function without its module.
pub(crate) fn short_name(f: &MpirFn) -> &str {
    f.name.rsplit('@').next().unwrap_or(&f.name)
}

fn is_host(f: &MpirFn) -> bool {
    matches!(f.domain, Domain::Host | Domain::LowHost)
}

fn check_main(session: &mut Session, f: &MpirFn) -> Result<(), Stop> {
    let fits = f.params.is_empty() && matches!(f.ret_ty, fixed::UNIT | fixed::I32 | fixed::I64);
    if fits {
        return Ok(());
    }
    let message = "`@main` takes no parameters and returns i64, i32 or unit";
    session.report(
        Diagnostic::new(Code::MPL0005, f.span, message)
            .with_help("program arguments come from `std.os.@args`"),
    );
    Err(Stop::Refused)
}

/// The function that a program starts with.
///
/// # Errors
/// `MPL0005` when there is none.
pub(crate) fn main_of(session: &mut Session, program: &Program) -> Result<FnId, Stop> {
    program.main.ok_or_else(|| {
        let start = magpie_diag::Span::new(program.entry, 0, 0);
        session.report(
            Diagnostic::new(Code::MPL0005, start, "the program has no `@main` to start with")
                .with_help("add `fn @main() -> i64`, or name another entry file with --entry FILE"),
        );
        Stop::Refused
    })
}
