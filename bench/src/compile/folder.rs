//! A folder for the source of a contender.

use std::path::{Path, PathBuf};

/// A folder among the temporary ones that is removed with this.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A folder with one file. `name` is unique among those of this process.
    pub(super) fn new(name: &str, file: &str, text: &str) -> Folder {
        let name = format!("magpie-bench-{}-{name}", std::process::id());
        let folder = Folder { path: std::env::temp_dir().join(name) };
        let written = std::fs::create_dir_all(&folder.path);
        written.unwrap_or_else(|error| panic!("{}: {error}", folder.path.display()));
        folder.write(file, text);
        folder
    }

    /// Writes another file.
    pub(super) fn write(&self, file: &str, text: &str) {
        let path = self.path.join(file);
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The length of a file; zero when it is missing.
    pub(super) fn size_of(&self, file: &str) -> f64 {
        std::fs::metadata(self.path.join(file)).map_or(0.0, |file| file.len() as f64)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder left among temporary files does no harm.
        std::fs::remove_dir_all(&self.path).ok();
    }
}
