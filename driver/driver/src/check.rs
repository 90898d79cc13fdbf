//! `magpie check`, `lint`, `parse` and `mpir verify`: diagnostics only.

use crate::frontend::{self, Language, main_of, parse_magpie};
use crate::kernels::Kernels;
use crate::project::{Project, display_name};
use crate::session::{Session, Stop};
use crate::source_file;
use crate::targets::Compiler;
use magpie_diag::Code;
use magpie_gpu::surface::{check_bounds_guards, check_unproved_writes};
use magpie_mpir::parse_with_own_places;
use magpie_mpir::verify::{Stage, verify_module};
use std::path::Path;

/// Reports everything that would keep a program from running.
///
/// # Errors
/// The program is refused.
pub fn check(session: &mut Session) -> Result<(), Stop> {
    let project = Project::find(session)?;
    let program = frontend::load(session, &project)?;
    // The text form also serves to check single functions, and a module of tests has no start.
    let is_magpie = Language::of(session, &project.entry)? == Language::Magpie;
    if is_magpie && program.tests.is_empty() {
        main_of(session, &program)?;
    }
    if let Some(kernels) = Kernels::prepare(session, &program)? {
        session.time("targets", |session| check_targets(session, &project, &kernels, is_magpie));
    }
    session.stop_on_errors()
}

/// Accesses without a guard, writes that may collide, and what declared targets cannot do. MPIR text need not declare one.
fn check_targets(
    session: &mut Session,
    project: &Project,
    kernels: &Kernels,
    declares_targets: bool,
) {
    let compiler = Compiler::for_checks(&project.manifest, session.log());
    for &id in &kernels.ids {
        session.report_all(check_bounds_guards(kernels.func(id), &kernels.module.types));
        session.report_all(check_unproved_writes(kernels.func(id), &kernels.module.types));
        let declared = kernels.target(id).filter(|_| declares_targets);
        if let Some(backend) = declared {
            session.report_all(compiler.check(kernels, id, backend));
        }
    }
}

/// Reports what is wrong with the text of one module.
///
/// # Errors
/// It is no module.
pub fn parse(session: &mut Session, path: &Path) -> Result<(), Stop> {
    let language = Language::of(session, path)?;
    let file = source_file::read(session, path, &display_name(path))?;
    match language {
        Language::Magpie => {
            let parsed = parse_magpie(session, file);
            session.report_all(parsed.diagnostics);
        }
        Language::Miri => {
            let text = session.sources.file(file).map(|f| f.text.as_str()).unwrap_or_default();
            let errors = magpie_miri::syntax_errors(file, text);
            session.report_all(errors);
        }
        Language::Mpir => {
            let text = session.sources.file(file).map(|f| f.text.as_str()).unwrap_or_default();
            let errors = parse_with_own_places(text, file).err().unwrap_or_default();
            session.report_all(errors);
        }
    }
    session.stop_on_errors()
}

/// Reports what the verifier finds in a module of MPIR text.
///
/// # Errors
/// It is not well-formed, or no MPIR text.
pub fn verify_mpir(session: &mut Session, path: &Path) -> Result<(), Stop> {
    if Language::of(session, path)? != Language::Mpir {
        let message = format!("`{}` is not MPIR text", path.display());
        let help = "`magpie build --emit mpir` writes the MPIR of a program";
        return Err(session.refuse(Code::MPL0006, message, help));
    }
    let file = source_file::read(session, path, &display_name(path))?;
    let text = session.sources.file(file).map(|f| f.text.as_str()).unwrap_or_default();
    let checked =
        parse_with_own_places(text, file).and_then(|module| verify_module(&module, Stage::Core));
    session.report_all(checked.err().unwrap_or_default());
    session.stop_on_errors()
}
