//! Libraries that are missing, incomplete or do not start: errors, never a crash.

use super::{VulkanDriver, VulkanOptions};
use crate::gpu::discovery::Driver;
use crate::gpu::tests::library::library;
use crate::gpu::{ErrorKind, GpuError};
use std::path::Path;

fn failure(library: &Path) -> GpuError {
    let library = Some(library.to_path_buf());
    let mut driver = VulkanDriver::new(VulkanOptions { library, ..VulkanOptions::default() });
    driver.adapters().unwrap_err()
}

#[test]
fn a_missing_library_is_an_error() {
    let error = failure(Path::new("/nonexistent/libvulkan.so.1"));
    assert_eq!((error.kind, error.backend), (ErrorKind::BackendUnavailable, "spv"));
    assert!(error.message.contains("no Vulkan library: /nonexistent/libvulkan.so.1"), "{error}");
}

#[test]
fn a_file_that_is_no_library_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.so");
    std::fs::write(&path, "not a library").unwrap();
    assert_eq!(failure(&path).kind, ErrorKind::BackendUnavailable);
}

#[test]
fn incomplete_libraries_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let without = library(folder.path(), "without.so", "");
    assert_eq!(failure(&without).kind, ErrorKind::BackendUnavailable);

    let empty = library(
        folder.path(),
        "empty.so",
        "#[unsafe(no_mangle)]
         pub extern \"C\" fn vkGetInstanceProcAddr(_: usize, _: *const u8) -> usize { 0 }",
    );
    let error = failure(&empty);
    assert_eq!(error.kind, ErrorKind::BackendUnavailable);
    assert!(error.message.contains("lacks the function vkCreateInstance"), "{error}");

    // Creates what the constant says, and knows nothing else.
    let starting = "
        use std::ffi::{CStr, c_char};
        extern \"C\" fn version(out: *mut u32) -> i32 { unsafe { *out = VERSION }; 0 }
        extern \"C\" fn none(_: usize, count: *mut u32, _: usize) -> i32 { unsafe { *count = 0 }; 0 }
        extern \"C\" fn no_layers(count: *mut u32, _: usize) -> i32 { unsafe { *count = 0 }; 0 }
        extern \"C\" fn create(_: usize, _: usize, out: *mut usize) -> i32 {
            unsafe { *out = 1 };
            CODE
        }
        #[unsafe(no_mangle)]
        pub extern \"C\" fn vkGetInstanceProcAddr(_: usize, name: *const c_char) -> usize {
            match unsafe { CStr::from_ptr(name) }.to_bytes() {
                b\"vkEnumerateInstanceVersion\" => version as *const () as usize,
                b\"vkEnumerateInstanceExtensionProperties\" => none as *const () as usize,
                b\"vkEnumerateInstanceLayerProperties\" => no_layers as *const () as usize,
                b\"vkCreateInstance\" => create as *const () as usize,
                _ => 0,
            }
        }";
    let source =
        format!("const VERSION: u32 = 1 << 22 | 3 << 12; const CODE: i32 = -9; {starting}");
    let error = failure(&library(folder.path(), "refusing.so", &source));
    assert_eq!((error.kind, error.code), (ErrorKind::BackendUnavailable, -9));
    assert!(error.message.contains("VK_ERROR_INCOMPATIBLE_DRIVER"), "{error}");

    let source = format!("const VERSION: u32 = 1 << 22 | 3 << 12; const CODE: i32 = 0; {starting}");
    let error = failure(&library(folder.path(), "bare.so", &source));
    assert_eq!(error.kind, ErrorKind::BackendUnavailable);
    assert!(error.message.contains("lacks the function vkEnumeratePhysicalDevices"), "{error}");

    let source = format!("const VERSION: u32 = 1 << 22; const CODE: i32 = 0; {starting}");
    let error = failure(&library(folder.path(), "old.so", &source));
    assert!(error.message.contains("version 1.0; 1.3 is needed"), "{error}");
}

#[test]
fn validation_without_the_layer_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let source = "
        use std::ffi::{CStr, c_char};
        extern \"C\" fn version(out: *mut u32) -> i32 { unsafe { *out = 1 << 22 | 3 << 12 }; 0 }
        extern \"C\" fn none(_: usize, count: *mut u32, _: usize) -> i32 { unsafe { *count = 0 }; 0 }
        extern \"C\" fn no_layers(count: *mut u32, _: usize) -> i32 { unsafe { *count = 0 }; 0 }
        #[unsafe(no_mangle)]
        pub extern \"C\" fn vkGetInstanceProcAddr(_: usize, name: *const c_char) -> usize {
            match unsafe { CStr::from_ptr(name) }.to_bytes() {
                b\"vkEnumerateInstanceVersion\" => version as *const () as usize,
                b\"vkEnumerateInstanceLayerProperties\" => no_layers as *const () as usize,
                b\"vkCreateInstance\" | b\"vkEnumerateInstanceExtensionProperties\" => {
                    none as *const () as usize
                }
                _ => 0,
            }
        }";
    let library = Some(library(folder.path(), "bare.so", source));
    let options = VulkanOptions { library, validate: true, ..VulkanOptions::default() };
    let error = VulkanDriver::new(options).adapters().unwrap_err();
    assert_eq!(error.kind, ErrorKind::BackendUnavailable);
    assert!(error.message.contains("VK_LAYER_KHRONOS_validation"), "{error}");
}
