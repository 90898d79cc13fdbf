//! Libraries that are missing, incomplete, old or without devices.

use super::fake::Fake;
use super::{StreamDriver, StreamOptions, VENDORS, Vendor, subject};
use crate::gpu::discovery::Driver;
use crate::gpu::tests::library::library;
use crate::gpu::{ErrorKind, GpuError};
use std::path::Path;

fn driver(vendor: Vendor, library: &Path) -> StreamDriver {
    let library = Some(library.to_path_buf());
    StreamDriver::new(vendor, StreamOptions { library, ..StreamOptions::default() })
}

fn failure(vendor: Vendor, library: &Path) -> GpuError {
    driver(vendor, library).adapters().unwrap_err()
}

#[test]
fn missing_libraries_are_errors() {
    for (vendor, message) in
        [(Vendor::Cuda, "no CUDA library: /none.so"), (Vendor::Hip, "no HIP library: /none.so")]
    {
        let error = failure(vendor, Path::new("/none.so"));
        assert_eq!((error.kind, error.backend), (ErrorKind::BackendUnavailable, vendor.backend()));
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn files_that_are_no_libraries_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.so");
    std::fs::write(&path, "not a library").unwrap();
    assert_eq!(failure(Vendor::Cuda, &path).kind, ErrorKind::BackendUnavailable);
    let path = library(folder.path(), "empty.so", "");
    let error = failure(Vendor::Cuda, &path);
    assert_eq!(error.kind, ErrorKind::BackendUnavailable);
    assert!(error.message.contains("empty.so lacks cuInit"), "{error}");
}

#[test]
fn a_missing_function_is_named() {
    let renamed = [("cuLaunchKernel", "cuLaunchOld"), ("hipModuleLaunchKernel", "hipLaunchOld")];
    let fake = Fake::renamed(&renamed);
    for (vendor, symbol) in
        [(Vendor::Cuda, "cuLaunchKernel"), (Vendor::Hip, "hipModuleLaunchKernel")]
    {
        let error = failure(vendor, fake.path());
        assert_eq!(error.kind, ErrorKind::BackendUnavailable);
        let wanted = format!("lacks {symbol}: update the {} driver", vendor.name());
        assert!(error.message.contains(&wanted), "{error}");
    }
}

/// Without what came later: pools, the linker, names of errors; properties by their old name.
#[test]
fn old_libraries_work() {
    let fake = Fake::renamed(&[
        ("cuMemAllocAsync", "cuMemAllocLater"),
        ("hipMallocAsync", "hipMallocLater"),
        ("cuLinkCreate_v2", "cuLinkCreateLater"),
        ("cuGetErrorName", "cuGetErrorLater"),
        ("hipGetDevicePropertiesR0600", "hipGetDeviceProperties"),
    ]);
    for vendor in VENDORS {
        fake.reset();
        let subject = subject(&fake, vendor, StreamOptions::default());
        subject.check_all();
        let architecture = if vendor == Vendor::Cuda { "sm_90" } else { "gfx90a" };
        assert_eq!(subject.context.properties().architecture, architecture);
        drop(subject);
        fake.assert_clean();
    }
}

#[test]
fn a_driver_without_devices_has_none() {
    for vendor in VENDORS {
        let fake = Fake::new();
        fake.devices(0);
        assert_eq!(driver(vendor, fake.path()).adapters(), Ok(Vec::new()));
        // Some say so when they start.
        fake.fail("cuInit", 1, 100);
        fake.fail("cuDeviceGetCount", 1, 100);
        assert_eq!(driver(vendor, fake.path()).adapters(), Ok(Vec::new()));
    }
}

#[test]
fn a_driver_that_does_not_start_is_an_error() {
    let fake = Fake::new();
    fake.fail("cuInit", 1, 999);
    let error = failure(Vendor::Cuda, fake.path());
    assert_eq!((error.kind, error.code), (ErrorKind::BackendUnavailable, 999));
    assert_eq!(error.message, "CUDA does not start: FAKE_UNKNOWN (999)");
}
