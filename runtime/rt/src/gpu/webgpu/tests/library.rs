//! Libraries that are missing, incomplete or of another version: errors, never a crash.

use super::super::WebGpuDriver;
use super::super::api::Api;
use crate::gpu::discovery::Driver;
use crate::gpu::tests::library::library;
use crate::gpu::{ErrorKind, GpuError};
use std::path::{Path, PathBuf};

fn failure(library: &Path) -> GpuError {
    let error = WebGpuDriver::with_library(library.to_path_buf()).adapters().unwrap_err();
    assert_eq!((error.kind, error.backend), (ErrorKind::BackendUnavailable, "wgsl"), "{error}");
    error
}

#[test]
fn a_missing_library_is_an_error() {
    let error = failure(Path::new("/nonexistent/libwgpu_native.so"));
    assert!(error.message.contains("/nonexistent/libwgpu_native.so"), "{error}");
    assert!(error.message.contains("MAGPIE_WGPU_LIBRARY"), "{error}");
}

#[test]
fn a_file_that_is_no_library_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.so");
    std::fs::write(&path, "not a library").unwrap();
    failure(&path);
}

#[test]
fn a_library_without_the_functions_is_an_error() {
    // The C library is one.
    let library = PathBuf::from("libc.so.6");
    if cfg!(target_os = "linux") {
        let error = failure(&library);
        assert!(error.message.contains("lacks the function wgpuGetVersion"), "{error}");
    }
}

/// A library in which every function gives 0, but for those in `own`.
fn stub(folder: &Path, name: &str, own: &str) -> PathBuf {
    let mut source = own.to_string();
    for function in Api::NAMES.iter().filter(|f| !own.contains(&format!("fn {f}("))) {
        source += "#[unsafe(no_mangle)] pub extern \"C\" fn ";
        source += function;
        source += "() -> usize { 0 }\n";
    }
    library(folder, name, &source)
}

const VERSION_29: &str =
    "#[unsafe(no_mangle)] pub extern \"C\" fn wgpuGetVersion() -> u32 { 29 << 24 }\n";
const INSTANCE: &str =
    "#[unsafe(no_mangle)] pub extern \"C\" fn wgpuCreateInstance(_: usize) -> usize { 1 }\n";
const ONE_ADAPTER: &str =
    "#[unsafe(no_mangle)] pub unsafe extern \"C\" fn wgpuInstanceEnumerateAdapters(
         _: usize, _: usize, out: *mut usize,
     ) -> usize {
         if !out.is_null() { unsafe { *out = 1 } }
         1
     }\n";
/// Tells the caller that there is no device.
const NO_DEVICE: &str =
    "#[repr(C)] pub struct Text { data: *const u8, length: usize }
     #[repr(C)] pub struct Callback {
         next: usize, mode: u32, call: extern \"C\" fn(u32, usize, Text, usize, usize), a: usize, b: usize,
     }
     #[unsafe(no_mangle)] pub extern \"C\" fn wgpuAdapterRequestDevice(
         _: usize, _: usize, callback: Callback,
     ) -> u64 {
         let text = \"out of order\";
         (callback.call)(3, 0, Text { data: text.as_ptr(), length: text.len() }, callback.a, callback.b);
         0
     }\n";

#[test]
fn libraries_that_do_not_start_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let error = failure(&stub(folder.path(), "old.so", ""));
    assert!(error.message.contains("is wgpu-native 0; this runtime needs 29"), "{error}");
    let error = failure(&stub(folder.path(), "dead.so", VERSION_29));
    assert!(error.message.contains("does not start"), "{error}");
    let error = failure(&stub(folder.path(), "empty.so", &format!("{VERSION_29}{INSTANCE}")));
    assert!(error.message.contains("finds no adapter"), "{error}");
}

#[test]
fn devices_that_do_not_open_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let one = format!("{VERSION_29}{INSTANCE}{ONE_ADAPTER}");
    // One library never answers, the other says no.
    for (name, source, why) in
        [("silent.so", one.clone(), "no answer"), ("busy.so", one + NO_DEVICE, "out of order")]
    {
        let mut driver = WebGpuDriver::with_library(stub(folder.path(), name, &source));
        assert_eq!(driver.adapters().unwrap().len(), 1);
        let error = driver.open(0).err().unwrap();
        assert_eq!(error.kind, ErrorKind::BackendUnavailable);
        assert!(error.message.contains(why), "{error}");
        assert!(driver.open(1).err().unwrap().message.contains("no device 1"));
    }
}
