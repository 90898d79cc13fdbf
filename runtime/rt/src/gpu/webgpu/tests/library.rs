//! Libraries that are missing, incomplete or of another version: errors, never a crash.

use super::super::WebGpuDriver;
use crate::gpu::discovery::Driver;
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
