//! Libraries that tests load as drivers.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a library with the compiler that compiles this test.
pub(crate) fn library(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (source_path, path) = (folder.join(format!("{name}.rs")), folder.join(name));
    std::fs::write(&source_path, source).unwrap();
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let options = ["--crate-name", "stub", "--crate-type", "cdylib", "--edition", "2024"];
    let status = Command::new(compiler)
        .args(options)
        .args(["-C", "panic=abort", "-C", "opt-level=1", "-o"])
        .args([&path, &source_path])
        .status();
    assert!(status.unwrap().success());
    path
}
