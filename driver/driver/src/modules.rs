//! Module path → file.
//!
//! A module `a.b.c` is the file `src/b/c.mp` of package `a`. The packages are the program's own and
//! those that `[dependencies]` reach.

use crate::manifest::{self, Manifest};
use crate::project::{Project, display_name};
use crate::session::{Session, Stop};
use crate::source_file;
use magpie_diag::{Code, Diagnostic, FileId};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The packages of a program with their folders.
#[derive(Debug)]
pub(crate) struct Packages {
    folders: BTreeMap<String, PathBuf>,
    /// Folder for modules of the program's own package when it has no manifest.
    beside_entry: Option<PathBuf>,
}

impl Packages {
    /// The packages of a project. `own` is the first word of the entry module's path, the name of
    /// the package when the manifest has none.
    ///
    /// # Errors
    /// A dependency whose manifest cannot be read, or two folders of one name.
    pub(crate) fn find(
        session: &mut Session,
        project: &Project,
        own: &str,
    ) -> Result<Packages, Stop> {
        let beside_entry = (!project.has_manifest).then(|| project.root.clone());
        // A program without a manifest may still have the usual folders: src/main.mp, src/util.mp.
        let root = match &beside_entry {
            Some(dir) if dir.ends_with("src") => dir.parent().unwrap_or(dir),
            _ => &project.root,
        };
        let own = project.manifest.package.as_deref().unwrap_or(own);
        let folders = BTreeMap::from([(own.to_string(), root.to_path_buf())]);
        let mut packages = Packages { folders, beside_entry };
        packages.add_dependencies(session, &project.root, &project.manifest)?;
        Ok(packages)
    }

    fn add_dependencies(
        &mut self,
        session: &mut Session,
        root: &Path,
        manifest: &Manifest,
    ) -> Result<(), Stop> {
        let mut work = vec![(root.to_path_buf(), manifest.clone())];
        while let Some((root, manifest)) = work.pop() {
            for dependency in &manifest.dependencies {
                let folder = root.join(&dependency.path);
                let refuse = |session: &mut Session, message: String, help: &str| {
                    let d = Diagnostic::new(Code::MPL0002, dependency.span, message);
                    session.report(d.with_help(help));
                    Stop::Refused
                };
                let Ok(real) = std::fs::canonicalize(&folder) else {
                    let (name, at) = (&dependency.name, display_name(&folder));
                    let message = format!("dependency `{name}` has no folder `{at}`");
                    return Err(refuse(session, message, "the path is relative to this manifest"));
                };
                if let Some(known) = self.folders.get(&dependency.name) {
                    if std::fs::canonicalize(known).is_ok_and(|known| known == real) {
                        continue;
                    }
                    let (name, known) = (&dependency.name, display_name(known));
                    let message =
                        format!("two packages are called `{name}`: the other is `{known}`");
                    return Err(refuse(
                        session,
                        message,
                        "packages of one program need different names",
                    ));
                }
                self.folders.insert(dependency.name.clone(), folder.clone());
                let path = folder.join(manifest::FILE_NAME);
                if path.is_file() {
                    work.push((folder, dependency_manifest(session, &path)?));
                }
            }
        }
        Ok(())
    }

    /// The files that a module may be, the first that exists counts.
    fn candidates(&self, path: &str) -> Vec<PathBuf> {
        let mut words = path.split('.');
        let package = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let below = if rest.is_empty() { package.to_string() } else { rest.join("/") };
        let below = format!("{below}.mp");
        let mut out = Vec::new();
        if let Some(folder) = self.folders.get(package) {
            out.push(folder.join("src").join(&below));
            out.extend(self.beside_entry.as_ref().map(|dir| dir.join(&below)));
        }
        out
    }

    /// Reads a module. `None` when there is no file for it, or one that cannot be read, which was
    /// reported.
    pub(crate) fn read(&self, session: &mut Session, path: &str) -> Option<FileId> {
        let file = self.candidates(path).into_iter().find(|file| file.exists())?;
        source_file::read(session, &file, &display_name(&file)).ok()
    }
}

fn dependency_manifest(session: &mut Session, path: &Path) -> Result<Manifest, Stop> {
    let file = source_file::read(session, path, &display_name(path))?;
    let text = session.sources.file(file).map(|f| f.text.as_str()).unwrap_or_default();
    let (manifest, findings) = Manifest::parse(text, file);
    session.report_all(findings.into_iter().filter(Diagnostic::is_error));
    session.stop_on_errors()?;
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn write(dir: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = dir.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    /// The text of a module, of a program with this entry.
    fn text_of(dir: &Path, entry: &str, module: &str) -> Result<Option<String>, String> {
        let options = Options { entry: Some(dir.join(entry)), ..Options::new("check") };
        let mut session = Session::new(options);
        let project = Project::find(&mut session).unwrap();
        let found = Packages::find(&mut session, &project, "app");
        let Ok(packages) = found else {
            return Err(session.take_findings().shown[0].message.clone());
        };
        let file = packages.read(&mut session, module);
        Ok(file.and_then(|file| Some(session.sources.file(file)?.text.clone())))
    }

    #[test]
    fn modules_lie_in_src_of_their_package() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        write(
            dir,
            &[
                (
                    "app/Magpie.toml",
                    "[package]\nname = 'app'\n[dependencies]\nutil = { path = '../util' }\n",
                ),
                ("app/src/main.mp", "main"),
                ("app/src/image/blur.mp", "blur"),
                (
                    "util/Magpie.toml",
                    "[dependencies]\ndeep = { path = 'deep' }\napp = { path = '../app' }\n",
                ),
                ("util/src/text.mp", "text"),
                ("util/deep/src/deep.mp", "deep"),
            ],
        );
        let text = |module| text_of(dir, "app/src/main.mp", module).unwrap();
        assert_eq!(text("app.image.blur").as_deref(), Some("blur"));
        assert_eq!(text("util.text").as_deref(), Some("text"));
        assert_eq!(text("deep").as_deref(), Some("deep"));
        for missing in ["app.blur", "util", "other.text", "app.image", "", "."] {
            assert_eq!(text(missing), None, "{missing}");
        }
    }

    #[test]
    fn programs_without_a_manifest_find_their_neighbours() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        write(
            dir,
            &[("a.mp", ""), ("util.mp", "beside"), ("p/src/main.mp", ""), ("p/src/x.mp", "x")],
        );
        assert_eq!(text_of(dir, "a.mp", "app.util"), Ok(Some("beside".to_string())));
        assert_eq!(text_of(dir, "p/src/main.mp", "app.x"), Ok(Some("x".to_string())));
        assert_eq!(text_of(dir, "a.mp", "other.util"), Ok(None));
    }

    #[test]
    fn broken_dependencies_are_said() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        write(
            dir,
            &[
                ("gone/Magpie.toml", "[dependencies]\nx = { path = 'nowhere' }\n"),
                ("twice/Magpie.toml", "[dependencies]\nx = { path = 'x' }\ny = { path = 'y' }\n"),
                ("twice/x/Magpie.toml", ""),
                ("twice/y/Magpie.toml", "[dependencies]\nx = { path = '.' }\n"),
                ("bad/Magpie.toml", "[dependencies]\nx = { path = 'x' }\n"),
                ("bad/x/Magpie.toml", "[gpu]\nfallback = 1\n"),
            ],
        );
        let error = |entry| text_of(dir, entry, "x").unwrap_err();
        assert!(error("gone/a.mp").starts_with("dependency `x` has no folder"));
        assert!(error("twice/a.mp").starts_with("two packages are called `x`"));
        assert!(error("bad/a.mp").starts_with("`gpu.fallback` must be a string"));
    }
}
