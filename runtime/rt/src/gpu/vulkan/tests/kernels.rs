//! Loading kernels: what is refused and why, features, the unchecked body, the pipeline cache.

use super::assembler::{assemble, spirv_blob};
use super::{VulkanOptions, options, subject};
use crate::gpu::tests::conformance::Subject;
use crate::gpu::tests::support::{EMPTY, NEXT, SCALE, bytes, extent_fits, line, word, words};
use crate::gpu::{Buffer, Element, ErrorKind, GpuError};
use magpie_types::fixed;
use magpie_types::kernel::{BlobCode, DeviceFeatures, KernelBlob, ParamLayout, ScalarTransport};

const U32: Element = Element { ty: fixed::U32, size: 4 };

fn refusal(subject: &Subject, blob: KernelBlob) -> GpuError {
    subject.runtime.register_kernel(77, "bent", vec![blob], None);
    subject.runtime.launch(&subject.context, 77, line(1), &[], &[]).unwrap_err()
}

#[test]
fn corrupt_blobs_are_invalid_kernels() {
    let Some(subject) = subject(options()) else { return };
    let BlobCode::Bytes(good) = spirv_blob(EMPTY, false).code else { panic!("SPIR-V has bytes") };
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        let error = refusal(
            &subject,
            KernelBlob { code: BlobCode::Bytes(bytes), ..spirv_blob(EMPTY, false) },
        );
        assert_eq!((error.kind, error.backend), (ErrorKind::InvalidKernel, "spv"), "{error}");
        assert!(error.message.contains("`bent`"), "{error}");
    };
    with(&|bytes| bytes.clear());
    with(&|bytes| bytes.truncate(bytes.len() - 4));
    with(&|bytes| bytes.truncate(bytes.len() - 1));
    with(&|bytes| bytes[0] ^= 1);
    let mut renamed = spirv_blob(EMPTY, false);
    renamed.layout.entry = "other".to_string();
    let error = refusal(&subject, renamed);
    assert!(error.message.contains("no entry point `other`"), "{error}");
    let mut twice = spirv_blob(NEXT, false);
    for param in &mut twice.layout.params {
        if let ParamLayout::Buffer(buffer) = param {
            buffer.binding = 3;
        }
    }
    assert!(refusal(&subject, twice).message.contains("one binding"));
}

#[test]
fn missing_features_are_named() {
    let hidden_features = DeviceFeatures::FLOAT64 | DeviceFeatures::INT64;
    let Some(subject) = subject(VulkanOptions { hidden_features, ..options() }) else { return };
    let mut blob = spirv_blob(EMPTY, false);
    blob.layout.features = DeviceFeatures::FLOAT64 | DeviceFeatures::INT64;
    let error = refusal(&subject, blob);
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("lacks int64, float64"), "{error}");
}

#[test]
fn block_sizes_are_checked_against_the_device() {
    let Some(subject) = subject(options()) else { return };
    let mut blob = spirv_blob(SCALE, false);
    blob.layout.block_size = 1 << 20;
    let error = refusal(&subject, blob.clone());
    assert_eq!(error.kind, ErrorKind::ResourceExhausted);
    assert!(error.message.contains("1048576 bytes of push constants"), "{error}");
    blob.layout.block_size = 1 << 30;
    blob.layout.transport = ScalarTransport::Uniform { binding: 1 };
    assert!(refusal(&subject, blob).message.contains("1073741824 bytes of a uniform block"));
}

#[test]
fn small_elements_are_widened_where_the_device_lacks_them() {
    let hidden_features = DeviceFeatures::STORAGE8 | DeviceFeatures::STORAGE16;
    for no_mapped_memory in [false, true] {
        let options = VulkanOptions { hidden_features, no_mapped_memory, ..options() };
        let Some(subject) = subject(options) else { return };
        let i16s = Element { ty: fixed::I16, size: 2 };
        let data: Vec<u8> = (0..80_000u32).flat_map(|i| (i as u16).to_ne_bytes()).collect();
        let buffer = Buffer::from_bytes(&subject.context, i16s, &data, 0).unwrap();
        assert_eq!(buffer.device_stride(), 4);
        assert!(buffer.read_all().unwrap() == data);
        let mut some = [0; 6];
        buffer.read(70_000, &mut some).unwrap();
        assert_eq!(some, data[140_000..140_006]);
        // A kernel for widened elements sees one word each.
        let mut layout = spirv_blob(SCALE, false).layout;
        let ParamLayout::Buffer(param) = &mut layout.params[0] else { panic!("a buffer") };
        (param.elem, param.host_stride) = (fixed::I16, 2);
        let blob = assemble(SCALE, layout);
        subject.runtime.register_kernel(77, "wide", vec![blob.clone()], None);
        let size = line(1250);
        subject.runtime.launch(&subject.context, 77, size, &[&buffer], &word(2)).unwrap();
        let expected: Vec<u8> =
            (0..80_000u32).flat_map(|i| ((i as u16).wrapping_mul(2) + 1).to_ne_bytes()).collect();
        assert!(buffer.read_all().unwrap() == expected);
        // One for elements as the host stores them does not fit this device.
        let mut narrow = blob;
        if let ParamLayout::Buffer(param) = &mut narrow.layout.params[0] {
            param.device_stride = 2;
        }
        let error = refusal(&subject, narrow);
        assert_eq!(error.kind, ErrorKind::InvalidKernel);
        assert!(error.message.contains("every 2 bytes; the device stores them every 4"), "{error}");
    }
}

#[test]
fn the_unchecked_body_runs_when_the_launch_fits() {
    let Some(subject) = subject(options()) else { return };
    let mut blob = spirv_blob(NEXT, false);
    let BlobCode::Bytes(scale) = spirv_blob(EMPTY, false).code else { panic!("SPIR-V has bytes") };
    // The other body does nothing, so that one can tell which one ran.
    blob.unchecked = Some(BlobCode::Bytes(scale));
    blob.layout.entry = "empty".to_string();
    let BlobCode::Bytes(checked) = &mut blob.code else { panic!("SPIR-V has bytes") };
    let mut layout = spirv_blob(NEXT, false).layout;
    layout.entry = "empty".to_string();
    let BlobCode::Bytes(renamed) = assemble(NEXT, layout).code else { panic!("SPIR-V has bytes") };
    *checked = renamed;
    blob.layout.preconditions = vec![extent_fits(0), extent_fits(1)];
    subject.runtime.register_kernel(77, "two", vec![blob], None);
    for (len, ran_checked) in [(64, false), (63, true), (200, false)] {
        let buffer = |value| {
            Buffer::from_bytes(&subject.context, U32, &bytes(&vec![value; len]), 0).unwrap()
        };
        let (a, b) = (buffer(5), buffer(0));
        subject.runtime.launch(&subject.context, 77, line(1), &[&a, &b], &[]).unwrap();
        assert_eq!(words(&b.read_all().unwrap())[0] == 6, ran_checked, "{len}");
    }
}

#[test]
fn faults_that_validation_finds_are_errors() {
    let Some(subject) = subject(options()) else { return };
    // A module with a capability that was not switched on.
    let mut blob = spirv_blob(SCALE, false);
    let BlobCode::Bytes(code) = &mut blob.code else { panic!("SPIR-V has bytes") };
    code[24] = spirv::Capability::Geometry as u8;
    subject.runtime.register_kernel(77, "bent", vec![blob], None);
    let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[1]), 0).unwrap();
    let launch =
        |kernel| subject.runtime.launch(&subject.context, kernel, line(1), &[&buffer], &word(1));
    let error = launch(77).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ValidationFailed, "{error}");
    assert!(error.message.contains("VUID"), "{error}");
    launch(SCALE).unwrap();
}

#[test]
fn pipelines_are_kept_on_disk() {
    if subject(options()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let cache_folder = Some(folder.path().join("magpie"));
        let subject = subject(VulkanOptions { cache_folder, ..options() }).unwrap();
        let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[1]), 0).unwrap();
        subject.runtime.launch(&subject.context, SCALE, line(1), &[&buffer], &word(2)).unwrap();
        assert_eq!(words(&buffer.read_all().unwrap()), [3]);
        subject.runtime.save_caches();
        let files: Vec<_> = std::fs::read_dir(folder.path().join("magpie")).unwrap().collect();
        assert_eq!(files.len(), 1);
        files.into_iter().next().unwrap().unwrap().path()
    };
    let path = run();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with("vulkan-") && name.ends_with(".bin") && name.len() == 43, "{name}");
    let first = std::fs::read(&path).unwrap();
    run();
    // A damaged file is ignored and replaced.
    std::fs::write(&path, &first[..first.len() / 2]).unwrap();
    run();
    assert!(std::fs::read(&path).unwrap().len() > first.len() / 2);
    std::fs::write(&path, b"something else").unwrap();
    run();
}
