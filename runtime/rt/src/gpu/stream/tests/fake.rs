//! The library of the folder `fake_driver`: compiled once, loaded once for each test.

use crate::gpu::tests::library::library;
use libloading::Library;
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// One crate in three parts.
const SOURCE: &str = concat!(
    include_str!("fake_driver/state.rs"),
    include_str!("fake_driver/interface.rs"),
    include_str!("fake_driver/modules.rs"),
);

/// A copy of the library, which has its own state.
pub(super) struct Fake {
    library: Library,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

/// The compiled library with some symbols under other names; each is compiled once.
fn compiled(renamed: &[(&str, &str)]) -> Vec<u8> {
    static COMPILED: Mutex<Option<HashMap<String, Vec<u8>>>> = Mutex::new(None);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = compiled.get_or_insert_default();
    let key = format!("{renamed:?}");
    let compile = || {
        let folder = tempfile::tempdir().unwrap();
        let source = renamed.iter().fold(SOURCE.to_string(), |s, (from, to)| s.replace(from, to));
        std::fs::read(library(folder.path(), "fake.so", &source)).unwrap()
    };
    known.entry(key).or_insert_with(compile).clone()
}

impl Fake {
    /// The library with everything that a driver has.
    pub(super) fn new() -> Fake {
        Fake::renamed(&[])
    }

    /// The library with some symbols under other names.
    pub(super) fn renamed(renamed: &[(&str, &str)]) -> Fake {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libfake.so");
        std::fs::write(&path, compiled(renamed)).unwrap();
        // SAFETY: the library is our own and does nothing when it is loaded.
        let library = unsafe { Library::new(&path) }.unwrap();
        Fake { library, path, _folder: folder }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Forgets everything.
    pub(super) fn reset(&self) {
        // SAFETY: the function takes nothing.
        unsafe { self.library.get::<extern "C" fn()>(b"fake_reset\0").unwrap()() };
    }

    /// Lets the `nth` call from now of a function, by CUDA's name, fail.
    pub(super) fn fail(&self, name: &str, nth: u32, code: i32) {
        type Fail = unsafe extern "C" fn(*const c_char, u32, c_int);
        let name = CString::new(name).unwrap();
        // SAFETY: the name ends with NUL.
        unsafe { self.library.get::<Fail>(b"fake_fail\0").unwrap()(name.as_ptr(), nth, code) };
    }

    /// How often a function, by CUDA's name, was called.
    pub(super) fn calls(&self, name: &str) -> u32 {
        type Calls = unsafe extern "C" fn(*const c_char) -> u32;
        let name = CString::new(name).unwrap();
        // SAFETY: the name ends with NUL.
        unsafe { self.library.get::<Calls>(b"fake_calls\0").unwrap()(name.as_ptr()) }
    }

    /// Lets the interface have this many devices.
    pub(super) fn devices(&self, count: i32) {
        // SAFETY: the function takes a number.
        unsafe { self.library.get::<extern "C" fn(c_int)>(b"fake_devices\0").unwrap()(count) };
    }

    /// Lets devices have no allocation in the order of a stream.
    pub(super) fn without_pools(&self) {
        // SAFETY: the function takes nothing.
        unsafe { self.library.get::<extern "C" fn()>(b"fake_without_pools\0").unwrap()() };
    }

    /// Everything that was done wrong or not given back.
    pub(super) fn violations(&self) -> String {
        type Violations = unsafe extern "C" fn(*mut u8, usize) -> usize;
        let mut text = vec![0; 4096];
        // SAFETY: the text has the room that is told.
        let length = unsafe {
            let violations = self.library.get::<Violations>(b"fake_violations\0").unwrap();
            violations(text.as_mut_ptr(), text.len())
        };
        text.truncate(length);
        String::from_utf8(text).unwrap()
    }

    /// Fails when something was done wrong or not given back.
    pub(super) fn assert_clean(&self) {
        assert_eq!(self.violations(), "");
    }
}
