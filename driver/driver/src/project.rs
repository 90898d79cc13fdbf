//! Where a program belongs: its manifest, its profile and the folder of its artifacts.

use crate::manifest::{self, GpuKeys, Manifest};
use crate::session::{Session, Stop};
use crate::source_file;
use crate::target;
use magpie_diag::{Code, closest};
use std::path::{Path, PathBuf};

/// The project of a program, or the folder that stands for one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Project {
    /// The entry file.
    pub entry: PathBuf,
    /// The folder of the manifest, else that of the entry file. Artifacts go below it.
    pub root: PathBuf,
    /// Whether there is a manifest.
    pub has_manifest: bool,
    /// The manifest, or its defaults.
    pub manifest: Manifest,
    /// The profile in use.
    pub profile: String,
}

impl Project {
    /// Finds the entry file and its manifest: `--entry`, else `[build] entry` of the manifest of
    /// the working directory. The manifest is looked up from the folder of the entry upward, then
    /// from the working directory.
    ///
    /// # Errors
    /// Neither a file nor a project, a manifest that cannot be read, an unknown profile.
    pub(crate) fn find(session: &mut Session) -> Result<Project, Stop> {
        let entry = session.options.entry.clone();
        let from_entry = entry.as_deref().and_then(folder_of).and_then(|dir| find_up(&dir));
        let found = from_entry.or_else(|| find_up(&std::env::current_dir().ok()?));
        let manifest = match &found {
            Some(path) => read_manifest(session, path)?,
            None => Manifest::default(),
        };
        let manifest_dir = found.as_deref().and_then(Path::parent);
        let entry = match (entry, manifest_dir) {
            (Some(entry), _) => entry,
            (None, Some(dir)) => {
                dir.join(manifest.entry.as_deref().unwrap_or(Path::new(DEFAULT_ENTRY)))
            }
            (None, None) => {
                let command = session.options.command;
                let message =
                    format!("no file given, and no {} here or above", manifest::FILE_NAME);
                let help = format!(
                    "name a program (`magpie {command} FILE`) or make a project (`magpie new NAME`)"
                );
                return Err(session.refuse(Code::MPL0006, message, &help));
            }
        };
        let root = match manifest_dir {
            Some(dir) => dir.to_path_buf(),
            None => folder_of(&entry).unwrap_or_default(),
        };
        let profile = profile(session, &manifest)?;
        check_targets(session)?;
        Ok(Project { entry, root, has_manifest: found.is_some(), manifest, profile })
    }

    /// The folder of artifacts: `target/TRIPLE/PROFILE` of the project.
    pub(crate) fn artifact_dir(&self) -> PathBuf {
        self.root.join("target").join(target::TRIPLE).join(&self.profile)
    }

    /// The keys of `[gpu]` for this profile.
    pub(crate) fn gpu(&self) -> GpuKeys {
        self.manifest.gpu_for(&self.profile)
    }

    /// The entry's file name without its extension: what artifacts are called.
    pub(crate) fn stem(&self) -> String {
        self.entry.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The entry of a project that does not name one.
pub(crate) const DEFAULT_ENTRY: &str = "src/main.mp";

fn folder_of(file: &Path) -> Option<PathBuf> {
    std::path::absolute(file).ok()?.parent().map(Path::to_path_buf)
}

/// The manifest of a folder or of the nearest one above it.
fn find_up(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().map(|dir| dir.join(manifest::FILE_NAME)).find(|path| path.is_file())
}

/// How messages call a file: relative to the working directory where it lies below it.
pub(crate) fn display_name(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    below.unwrap_or(path).display().to_string()
}

fn read_manifest(session: &mut Session, path: &Path) -> Result<Manifest, Stop> {
    let file = source_file::read(session, path, &display_name(path))?;
    let text = session.sources.file(file).map(|f| f.text.as_str()).unwrap_or_default();
    let (manifest, findings) = Manifest::parse(text, file);
    session.report_all(findings);
    session.set_lints(&manifest);
    session.stop_on_errors()?;
    Ok(manifest)
}

fn profile(session: &mut Session, manifest: &Manifest) -> Result<String, Stop> {
    const BUILT_IN: [&str; 3] = ["dev", "release", "test"];
    if session.options.command == "test" && session.options.profile.is_none() {
        return Ok("test".to_string());
    }
    let asked = session.options.profile.as_ref().or(manifest.profile_default.as_ref());
    let Some(name) = asked else { return Ok("dev".to_string()) };
    let own = manifest.gpu_profiles.iter().map(|(name, _)| name.as_str());
    let known: Vec<&str> = BUILT_IN.into_iter().chain(own).collect();
    if known.contains(&name.as_str()) {
        return Ok(name.clone());
    }
    let message = format!("unknown profile `{name}`");
    let help = match closest(name, known.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("known are {}, and those of [gpu.profiles.NAME]", BUILT_IN.join(", ")),
    };
    Err(session.refuse(Code::MPL0006, message, &help))
}

/// What is asked for must be something that this build can make.
fn check_targets(session: &mut Session) -> Result<(), Stop> {
    if let Some(other) = session.options.target.clone()
        && !matches!(other.as_str(), target::TRIPLE | "native")
    {
        let message =
            format!("this build makes programs for {} only, not `{other}`", target::TRIPLE);
        return Err(session.refuse(Code::MPT2050, message, "leave out --target"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn project(dir: &Path, entry: &str, profile: Option<&str>) -> Result<Project, Stop> {
        let options = Options {
            entry: Some(dir.join(entry)),
            profile: profile.map(str::to_string),
            ..Options::new("check")
        };
        Project::find(&mut Session::new(options))
    }

    #[test]
    fn the_nearest_manifest_above_the_entry_counts() {
        let dir = tempfile::tempdir().unwrap();
        let dir = std::fs::canonicalize(dir.path()).unwrap();
        let inner = dir.join("inner/src");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(dir.join("Magpie.toml"), "[package]\nname = 'outer'\n").unwrap();
        let found = project(&dir, "inner/src/main.mp", None).unwrap();
        assert_eq!(found.manifest.package.as_deref(), Some("outer"));
        assert_eq!((&found.root, found.stem().as_str()), (&dir, "main"));
        std::fs::write(dir.join("inner/Magpie.toml"), "[package]\nname = 'inner'\n").unwrap();
        let found = project(&dir, "inner/src/main.mp", None).unwrap();
        assert_eq!(found.root, dir.join("inner"));
        assert_eq!(found.artifact_dir(), dir.join("inner/target").join(target::TRIPLE).join("dev"));
    }

    #[test]
    fn profiles_must_be_known() {
        let dir = tempfile::tempdir().unwrap();
        let manifest =
            "[build]\nprofile_default = 'release'\n[gpu.profiles.ci]\nfallback = 'cpu'\n";
        std::fs::write(dir.path().join("Magpie.toml"), manifest).unwrap();
        let profile = |asked| project(dir.path(), "a.mp", asked).map(|p| p.profile);
        assert_eq!(profile(None).as_deref(), Ok("release"));
        assert_eq!(profile(Some("ci")).as_deref(), Ok("ci"));
        assert_eq!(profile(Some("relaese")), Err(Stop::Usage));
    }

    #[test]
    fn a_broken_manifest_refuses() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("Magpie.toml"), "[gpu]\nfallback = 1\n").unwrap();
        assert_eq!(project(dir.path(), "a.mp", None), Err(Stop::Refused));
        std::fs::write(dir.path().join("Magpie.toml"), "[lint]\nMPL0003 = 'deny'\nX = 'warn'\n")
            .unwrap();
        assert!(project(dir.path(), "a.mp", None).is_ok(), "lints apply to what comes after them");
    }
}
