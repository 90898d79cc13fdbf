//! `cargo xtask dist`: one archive with everything a user needs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::step::{Failure, cargo, output, run};
use crate::{root, target_dir};

/// Files and folders of the workspace that go into the archive beside the binary.
const CONTENTS: &[&str] = &["README.md", "LICENSE", "examples"];

/// Writes `target/dist/magpie-VERSION-TRIPLE.tar.gz`, whole or not at all.
pub(crate) fn dist() -> Result<(), Failure> {
    for name in CONTENTS {
        if !root().join(name).exists() {
            return Err(Failure::new(format!("dist needs `{name}` in the root of the workspace")));
        }
    }
    run("cargo build", cargo().args(["build", "--release", "--package", "magpie_cli"]))?;
    let name = format!("magpie-{}-{}", env!("CARGO_PKG_VERSION"), host_triple()?);
    let dist = target_dir().join("dist");
    let staging = dist.join(format!("{name}.staging"));
    let result = pack(&name, &dist, &staging);
    let removed = remove(&staging);
    result.and(removed)
}

fn pack(name: &str, dist: &Path, staging: &Path) -> Result<(), Failure> {
    remove(staging)?;
    let folder = staging.join(name);
    create_dir(&folder)?;
    let binary = format!("magpie{}", std::env::consts::EXE_SUFFIX);
    copy(&target_dir().join("release").join(&binary), &folder.join(&binary))?;
    for item in CONTENTS {
        copy(&root().join(item), &folder.join(item))?;
    }
    let archive = format!("{name}.tar.gz");
    let partial = staging.join(&archive);
    run("tar", Command::new("tar").arg("-C").arg(staging).arg("-czf").arg(&partial).arg(name))?;
    let finished = dist.join(&archive);
    fs::rename(&partial, &finished).map_err(|error| cannot("write", &finished, &error))?;
    println!("{}", finished.display());
    Ok(())
}

/// The triple of the machine that compiles, as rustc names it.
fn host_triple() -> Result<String, Failure> {
    let text = output("rustc -vV", Command::new("rustc").arg("-vV").current_dir(root()))?;
    let triple = text.lines().find_map(|line| line.strip_prefix("host: "));
    triple.map(str::to_owned).ok_or_else(|| Failure::new("`rustc -vV` does not name its host"))
}

/// Copies a file, or a folder with all below it.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop).map_err(|error| cannot("copy", from, &error));
    }
    create_dir(to)?;
    let entries = fs::read_dir(from).map_err(|error| cannot("read", from, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| cannot("read", from, &error))?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn create_dir(dir: &Path) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|error| cannot("make the folder", dir, &error))
}

fn remove(dir: &Path) -> Result<(), Failure> {
    if !dir.exists() {
        return Ok(());
    }
    fs::remove_dir_all(dir).map_err(|error| cannot("remove", dir, &error))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("dist: cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_copied_with_all_below() {
        let dir = std::env::temp_dir().join(format!("xtask-dist-{}", std::process::id()));
        let from = dir.join("from/inner");
        fs::create_dir_all(&from).unwrap();
        fs::write(from.join("file"), "text").unwrap();
        copy(&dir.join("from"), &dir.join("to")).unwrap();
        assert_eq!(fs::read_to_string(dir.join("to/inner/file")).unwrap(), "text");
        remove(&dir).unwrap();
        assert!(!dir.exists());
        assert!(copy(&dir.join("from"), &dir.join("to")).unwrap_err().message.contains("from"));
    }

    #[test]
    fn triple_has_the_architecture() {
        assert!(host_triple().unwrap().starts_with(std::env::consts::ARCH));
    }
}
