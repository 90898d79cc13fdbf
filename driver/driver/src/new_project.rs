//! `magpie new`: a project that runs.

use crate::manifest::{self, is_package_name};
use crate::session::{Session, Stop};
use magpie_diag::{Code, FileId};
use std::fs;
use std::path::{Path, PathBuf};

/// Makes a project in a new folder. The last part of the path is the name of the package. On failure
/// nothing is left behind.
///
/// # Errors
/// A name that no package can have, a folder that exists, a place that cannot be written to.
pub fn new_project(session: &mut Session, path: &Path) -> Result<(), Stop> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !is_package_name(name) {
        let message = format!("`{}` cannot be the name of a project", path.display());
        let help = "the name of the folder becomes that of the package: letters, digits and `_`, \
                    starting with a letter; `std`, `gpu` and `mlx` are taken";
        return Err(session.refuse(Code::MPL0006, message, help));
    }
    if path.symlink_metadata().is_ok() {
        let message = format!("`{}` already exists", path.display());
        return Err(session.refuse(
            Code::MPL0006,
            message,
            "choose another name, or remove it first",
        ));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Err(error) = make(parent.unwrap_or(Path::new(".")), path, name) {
        let why = crate::source_file::reason(&error);
        let message = format!("cannot make the project `{}`: {why}", path.display());
        let help = "choose a folder that exists and can be written to";
        return Err(session.refuse(Code::MPL0004, message, help));
    }
    session.artifacts.extend(files(name).iter().map(|(file, _)| {
        let path: PathBuf = [path, Path::new(file)].iter().collect();
        path.display().to_string()
    }));
    Ok(())
}

/// Fills a folder of another name and renames it when it is complete.
fn make(parent: &Path, path: &Path, name: &str) -> std::io::Result<()> {
    let partial = tempfile::Builder::new().prefix(&format!(".{name}-")).tempdir_in(parent)?;
    let root = partial.path().join(name);
    for (file, text) in files(name) {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap_or(&root))?;
        fs::write(file, text)?;
    }
    fs::rename(&root, path)
}

fn files(name: &str) -> [(&'static str, String); 6] {
    let fill = |text: &str| text.replace("NAME", name);
    // In canonical form, with the true digest.
    let module = |text: &str| {
        let text = fill(text);
        let parsed = magpie_lang::parse_module(FileId(0), &text);
        magpie_lang::format_module(&parsed, &text).unwrap_or(text)
    };
    [
        (manifest::FILE_NAME, fill(include_str!("../project/Magpie.toml"))),
        ("Magpie.lock", fill(include_str!("../project/Magpie.lock"))),
        ("src/main.mp", module(include_str!("../project/src/main.mp"))),
        ("src/scale.mp", module(include_str!("../project/src/scale.mp"))),
        ("tests/scale.mp", module(include_str!("../project/tests/scale.mp"))),
        (".gitignore", "/target\n".to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;
    use crate::options::{Fallback, Options};

    fn refusal(path: &Path) -> String {
        let mut session = Session::new(Options::new("new"));
        assert!(new_project(&mut session, path).is_err());
        session.take_findings().shown[0].message.clone()
    }

    #[test]
    fn a_project_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("blur");
        let mut session = Session::new(Options::new("new"));
        new_project(&mut session, &path).unwrap();
        assert_eq!(session.artifacts.len(), 6);
        let text = fs::read_to_string(path.join("Magpie.toml")).unwrap();
        let (manifest, findings) = Manifest::parse(&text, magpie_diag::FileId(0));
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(manifest.package.as_deref(), Some("blur"));
        assert_eq!(manifest.gpu_for("dev").fallback, Some(Fallback::Cpu));
        assert_eq!(manifest.gpu_for("release").fallback, None);
        for file in ["src/main.mp", "src/scale.mp", "tests/scale.mp"] {
            let text = fs::read_to_string(path.join(file)).unwrap();
            let parsed = magpie_lang::parse_module(FileId(0), &text);
            assert!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
            assert_eq!(magpie_lang::format_module(&parsed, &text), Some(text));
        }
        assert!(refusal(&path).contains("already exists"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn names_and_places_are_checked() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["my-app", "", "9", "std", "..", "a b", "é"] {
            assert!(refusal(&dir.path().join(name)).contains("cannot be the name"), "{name}");
        }
        assert!(refusal(&dir.path().join("none/app")).contains("no such file or directory"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
