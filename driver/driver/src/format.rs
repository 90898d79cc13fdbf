//! `magpie fmt`: source files in their canonical form.

use crate::project::{Project, display_name};
use crate::session::{Session, Stop};
use crate::source_file;
use magpie_diag::{Code, FileId};
use std::path::{Path, PathBuf};

/// Folders of this depth are not searched: there is a cycle of links.
const MAX_DEPTH: usize = 64;

/// Rewrites the files given, or every module of the project; gives the names of those that changed,
/// or under `check` would change. `fix_meta` adds and completes `meta` blocks. A file with errors stays as it is, and so does one that cannot
/// be written.
///
/// # Errors
/// A file has errors or cannot be read or written; the others are done all the same.
pub fn format(
    session: &mut Session,
    files: &[PathBuf],
    check: bool,
    fix_meta: bool,
) -> Result<Vec<String>, Stop> {
    let files = if files.is_empty() { project_files(session)? } else { expand(session, files)? };
    let mut changed = Vec::new();
    for path in files {
        let name = display_name(&path);
        let Ok(file) = source_file::read(session, &path, &name) else { continue };
        let Some(text) = canonical(session, file, fix_meta) else { continue };
        if session.sources.file(file).is_some_and(|source| source.text == text) {
            continue;
        }
        let written =
            if check { Ok(()) } else { magpie_rt::fs::write_whole(&path, text.as_bytes()) };
        match written {
            Ok(()) => {
                if !check {
                    session.artifacts.push(name.clone());
                }
                changed.push(name);
            }
            Err(why) => {
                let message = format!("cannot write `{name}`: {why}");
                session.refuse(Code::MPL0004, message, "the file is as it was before");
            }
        }
    }
    session.stop_on_errors()?;
    Ok(changed)
}

/// The canonical text of a module; its errors are reported.
fn canonical(session: &mut Session, file: FileId, fix_meta: bool) -> Option<String> {
    let text = session.sources.file(file).map(|f| f.text.as_str()).unwrap_or_default();
    let parsed = magpie_lang::parse_module(file, text);
    let format = match fix_meta {
        true => magpie_lang::format_module_with_meta,
        false => magpie_lang::format_module,
    };
    let canonical = format(&parsed, text);
    session.report_all(parsed.diagnostics);
    canonical
}

/// The modules below `src` and `tests` of the project.
fn project_files(session: &mut Session) -> Result<Vec<PathBuf>, Stop> {
    let project = Project::find(session)?;
    if session.options.entry.is_some() {
        return Ok(vec![project.entry]);
    }
    let mut files = Vec::new();
    for folder in ["src", "tests"] {
        let folder = project.root.join(folder);
        if folder.is_dir() {
            search(session, &folder, &mut files, 0)?;
        }
    }
    Ok(files)
}

fn expand(session: &mut Session, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Stop> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            search(session, path, &mut files, 0)?;
        } else if path.extension().is_some_and(|extension| extension == "mp") {
            files.push(path.clone());
        } else {
            let message = format!("`{}` is no Magpie module", path.display());
            return Err(session.refuse(Code::MPL0006, message, "`fmt` formats `.mp` files"));
        }
    }
    Ok(files)
}

/// Adds the modules below a folder, in the order of their names.
fn search(
    session: &mut Session,
    folder: &Path,
    files: &mut Vec<PathBuf>,
    depth: usize,
) -> Result<(), Stop> {
    let entries = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>());
    let mut paths = match entries {
        Ok(paths) => paths,
        Err(error) => {
            let (name, why) = (display_name(folder), source_file::reason(&error));
            let message = format!("cannot read the folder `{name}`: {why}");
            return Err(session.refuse(Code::MPP0001, message, "name files instead"));
        }
    };
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if depth < MAX_DEPTH {
                search(session, &path, files, depth + 1)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "mp") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    const UNTIDY: &str =
        "module a exports { } imports { } digest \"\"\nfn @f() -> i64 { bb0: ret const.i64 1 }\n";

    fn run(files: &[PathBuf], check: bool) -> (Result<usize, Stop>, Vec<String>) {
        let mut session = Session::new(Options::new("fmt"));
        let changed = format(&mut session, files, check, false);
        let messages = session.take_findings().shown.into_iter().map(|d| d.message).collect();
        (changed.map(|changed| changed.len()), messages)
    }

    #[test]
    fn files_are_rewritten_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/a.mp");
        std::fs::create_dir(dir.path().join("deep")).unwrap();
        std::fs::write(&path, UNTIDY).unwrap();
        std::fs::write(dir.path().join("deep/a.txt"), "no module").unwrap();
        let folder = [dir.path().to_path_buf()];
        assert_eq!(run(&folder, true).0, Ok(1));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), UNTIDY);
        assert_eq!(run(&folder, false).0, Ok(1));
        assert_ne!(std::fs::read_to_string(&path).unwrap(), UNTIDY);
        assert_eq!(run(&folder, false).0, Ok(0));
        assert_eq!(run(&folder, true).0, Ok(0));
    }

    #[test]
    fn files_with_errors_stay_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let (bad, good) = (dir.path().join("a.mp"), dir.path().join("b.mp"));
        std::fs::write(&bad, "module").unwrap();
        std::fs::write(&good, UNTIDY).unwrap();
        let (result, messages) = run(&[bad.clone(), good.clone()], false);
        assert_eq!(result, Err(Stop::Refused));
        assert!(!messages.is_empty());
        assert_eq!(std::fs::read_to_string(bad).unwrap(), "module");
        assert_ne!(std::fs::read_to_string(good).unwrap(), UNTIDY);
        let (result, messages) = run(&[dir.path().join("a.txt")], false);
        assert_eq!(result, Err(Stop::Usage));
        assert!(messages[0].ends_with("a.txt` is no Magpie module"));
    }

    #[test]
    #[cfg(unix)]
    fn read_only_files_are_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.mp");
        std::fs::write(&path, UNTIDY).unwrap();
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&path, permissions).unwrap();
        let (result, messages) = run(std::slice::from_ref(&path), false);
        assert_eq!(result, Err(Stop::Refused));
        assert!(messages[0].ends_with("a.mp`: the file is read-only"), "{messages:?}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), UNTIDY);
    }
}
