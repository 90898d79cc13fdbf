//! `cargo xtask dist`: one archive with everything a user needs.

use std::fs;
use std::path::{Path, PathBuf};
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
    let binary = format!("magpie{}", std::env::consts::EXE_SUFFIX);
    let mut items = vec![target_dir().join("release").join(binary)];
    items.extend(CONTENTS.iter().map(|item| root().join(item)));
    let archive = pack(&name, &items, &target_dir().join("dist"))?;
    println!("{}", archive.display());
    Ok(())
}

/// Writes `NAME.tar.gz` into the folder `dist`; the archive holds the items in a folder NAME.
fn pack(name: &str, items: &[PathBuf], dist: &Path) -> Result<PathBuf, Failure> {
    let staging = dist.join(format!("{name}.staging"));
    remove(&staging)?;
    let packed = fill(name, items, dist, &staging);
    let removed = remove(&staging);
    packed.and_then(|archive| removed.map(|()| archive))
}

fn fill(name: &str, items: &[PathBuf], dist: &Path, staging: &Path) -> Result<PathBuf, Failure> {
    let folder = staging.join(name);
    create_dir(&folder)?;
    for item in items {
        copy(item, &folder.join(item.file_name().unwrap_or_default()))?;
    }
    let partial = staging.join("archive");
    run("tar", Command::new("tar").arg("-C").arg(staging).arg("-czf").arg(&partial).arg(name))?;
    let archive = dist.join(format!("{name}.tar.gz"));
    fs::rename(&partial, &archive).map_err(|error| cannot("write", &archive, &error))?;
    Ok(archive)
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
    fn archive_is_whole_or_absent() {
        let dir = std::env::temp_dir().join(format!("xtask-dist-{}", std::process::id()));
        let from = dir.join("examples/inner");
        fs::create_dir_all(&from).unwrap();
        fs::write(from.join("file"), "text").unwrap();
        fs::write(dir.join("LICENSE"), "words").unwrap();
        let dist = dir.join("dist");

        let missing = [dir.join("LICENSE"), dir.join("nothing")];
        assert!(pack("m", &missing, &dist).unwrap_err().message.contains("nothing"));
        assert_eq!(fs::read_dir(&dist).unwrap().count(), 0);

        let archive = pack("m", &[dir.join("LICENSE"), dir.join("examples")], &dist).unwrap();
        assert_eq!(fs::read_dir(&dist).unwrap().count(), 1);
        let list = output("tar", Command::new("tar").arg("-tzf").arg(&archive)).unwrap();
        let mut files: Vec<&str> = list.lines().filter(|line| !line.ends_with('/')).collect();
        files.sort();
        assert_eq!(files, ["m/LICENSE", "m/examples/inner/file"]);
        remove(&dir).unwrap();
    }

    #[test]
    fn triple_has_the_architecture() {
        assert!(host_triple().unwrap().starts_with(std::env::consts::ARCH));
    }
}
