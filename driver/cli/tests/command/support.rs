//! A folder to work in and the command to run there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A program of `tests/programs`.
pub(crate) fn program(name: &str) -> String {
    format!("{}/tests/programs/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A case program of the project's file tests.
pub(crate) fn case(name: &str) -> String {
    format!("{}/../../tests/filetests/magpie/{name}.mp", env!("CARGO_MANIFEST_DIR"))
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        Ended {
            code: output.status.code().expect("the command is not ended by a signal"),
            stdout: String::from_utf8(output.stdout).expect("output is text"),
            stderr: String::from_utf8(output.stderr).expect("messages are text"),
        }
    }
}

impl Ended {
    /// The call succeeded without a word to standard error.
    #[track_caller]
    pub(crate) fn succeeds(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// The call failed with this exit code and wrote nothing to standard output.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{}", self.stderr);
        self.stderr
    }

    /// Standard output as one JSON object.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        json(&self.stdout)
    }
}

/// A text as one JSON object on one line.
#[track_caller]
pub(crate) fn json(text: &str) -> serde_json::Value {
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A folder that is removed at the end.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().expect("a folder can be made") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("the file lies in the folder")).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The files below a folder, sorted.
    pub(crate) fn files(&self, name: &str) -> Vec<String> {
        let root = self.path(name);
        let mut files = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    false => {
                        let path = entry.path();
                        let below = path.strip_prefix(&root).unwrap();
                        files.push(below.to_str().unwrap().to_owned());
                    }
                }
            }
        }
        files.sort();
        files
    }

    /// The command in this folder, untouched by the user's environment.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_magpie"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command.env_remove("MAGPIE_DEVICE").env("MAGPIE_CACHE_DIR", cache_dir());
        command.env_remove("NO_COLOR").env("HOME", self.dir.path());
        // Graphics libraries complain on standard error without one.
        command.env("XDG_RUNTIME_DIR", self.dir.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.command(args).output().expect("the command starts").into()
    }

    /// Runs the command in a folder below.
    pub(crate) fn run_in(&self, folder: &str, args: &[&str]) -> Ended {
        let mut command = self.command(args);
        command.current_dir(self.path(folder)).output().expect("the command starts").into()
    }
}

/// A cache of the tests' own.
pub(crate) fn cache_dir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Whether kernels can run on Vulkan here; says so when a test does less because of it. With `CI`
/// set it must be so.
pub(crate) fn has_vulkan() -> bool {
    let place = Place::new();
    let found = place.run(&["run", "--device", "vulkan", &program("scale.mp")]);
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    assert!(found.code == 0 || !ci, "Vulkan must be there when CI is set: {found:?}");
    if found.code != 0 {
        eprintln!("skipped: needs a Vulkan device");
    }
    found.code == 0
}
