//! The whole driver: it does what every device must do, and survives what is wrong.

use super::{subject, wgsl_blob};
use crate::gpu::tests::support::{EMPTY, NEXT, SCALE, SPIN, bytes, line, word, words};
use crate::gpu::{Buffer, DeviceType, DriverKind, Element, ErrorKind, GpuError, LaunchSize};
use magpie_types::fixed;
use magpie_types::kernel::{BlobCode, DeviceFeatures, KernelBlob, ParamLayout};

const U32: Element = Element { ty: fixed::U32, size: 4 };

#[test]
fn conforms() {
    if let Some(subject) = subject() {
        subject.check_all();
    }
}

#[test]
fn describes_the_device() {
    let Some(subject) = subject() else { return };
    let properties = subject.context.properties();
    assert_eq!(properties.driver, DriverKind::WebGpu);
    assert!(!properties.name.is_empty() && properties.driver_info.contains("wgpu-native 29"));
    assert!(properties.memory_total > 0 && properties.subgroup_size >= 1);
    let limits = properties.limits;
    assert!(limits.workgroup_invocations >= 256 && limits.shared_bytes >= 16384);
    assert!(limits.buffers >= 8 && limits.uniform_bytes >= 16384);
    assert_eq!(limits.workgroup_count[0], 65535);
    assert_eq!(subject.runtime.backends_of(&subject.context), ["wgsl"]);
    assert!(properties.device_type != DeviceType::Host);
}

fn refusal(blob: KernelBlob) -> Option<GpuError> {
    let subject = subject()?;
    subject.runtime.register_kernel(77, "bent", vec![blob], None);
    let refused = subject.runtime.launch(&subject.context, 77, line(1), &[], &[]).unwrap_err();
    // The device still works.
    let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[1; 64]), 0).unwrap();
    subject.runtime.launch(&subject.context, SCALE, line(1), &[&buffer], &word(4)).unwrap();
    assert_eq!(words(&buffer.read_all().unwrap()), [5; 64]);
    Some(refused)
}

#[test]
fn bad_modules_are_errors() {
    let with = |code: &[u8]| {
        refusal(KernelBlob { code: BlobCode::Bytes(code.to_vec()), ..wgsl_blob(EMPTY) })
    };
    for code in [
        &b"this is no module"[..],
        b"",
        b"@compute @workgroup_size(64) fn other() {}",
        b"@compute @workgroup_size(64) fn main() { let x: u32 = 1.5; }",
        b"@compute @workgroup_size(100000) fn main() {}",
        b"@group(0) @binding(9) var<storage, read_write> x: array<u32>;
          @compute @workgroup_size(64) fn main() { x[0] = 1u; }",
    ] {
        let Some(error) = with(code) else { return };
        assert_eq!(error.kind, ErrorKind::CompilationFailed, "{error}");
        assert!(error.message.contains("`bent`"), "{error}");
        assert_eq!(error.backend, "wgsl");
    }
    let error = with(&[0xff, 0xfe]).unwrap();
    assert_eq!(error.kind, ErrorKind::InvalidKernel);
    let mut twice = wgsl_blob(NEXT);
    for param in &mut twice.layout.params {
        if let ParamLayout::Buffer(buffer) = param {
            buffer.binding = 3;
        }
    }
    assert!(refusal(twice).unwrap().message.contains("one binding"));
}

#[test]
fn missing_features_are_named() {
    let mut blob = wgsl_blob(EMPTY);
    blob.layout.features = DeviceFeatures::FLOAT64 | DeviceFeatures::INT64;
    let Some(error) = refusal(blob) else { return };
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("lacks int64, float64"), "{error}");
}

#[test]
fn the_lines_for_browsers_are_left_out() {
    let Some(subject) = subject() else { return };
    let mut blob = wgsl_blob(EMPTY);
    let BlobCode::Bytes(code) = &mut blob.code else { panic!("WGSL is text") };
    let head = b"enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n";
    code.splice(0..0, head.iter().copied());
    subject.runtime.register_kernel(78, "head", vec![blob], None);
    subject.runtime.launch(&subject.context, 78, line(1), &[], &[]).unwrap();
}

#[test]
fn one_buffer_for_two_parameters_is_refused() {
    let Some(subject) = subject() else { return };
    let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[1; 64]), 0).unwrap();
    let launched =
        subject.runtime.launch(&subject.context, NEXT, line(1), &[&buffer, &buffer], &[]);
    let error = launched.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ValidationFailed);
    assert!(error.message.contains("buffers 0 and 1 are one"), "{error}");
}

#[test]
fn the_workgroup_size_is_fixed() {
    let Some(subject) = subject() else { return };
    let size = LaunchSize { grid: [1, 1, 1], block: [32, 1, 1] };
    let error = subject.runtime.launch(&subject.context, EMPTY, size, &[], &[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ValidationFailed);
    assert!(
        error.message.contains("[32, 1, 1]") && error.message.contains("[64, 1, 1]"),
        "{error}"
    );
}

#[test]
fn parts_of_words_are_written() {
    let Some(subject) = subject() else { return };
    // Elements of 3 bytes, of which the device knows nothing.
    let element = Element { ty: magpie_types::TypeId(1000), size: 3 };
    let mut data: Vec<u8> = (0..99).collect();
    let buffer = Buffer::from_bytes(&subject.context, element, &data, 0).unwrap();
    for first in [0, 1, 7, 31] {
        buffer.write(first, &[0xaa, 0xbb, 0xcc, 1, 2, 3]).unwrap();
        data[first as usize * 3..][..6].copy_from_slice(&[0xaa, 0xbb, 0xcc, 1, 2, 3]);
        assert_eq!(buffer.read_all().unwrap(), data);
        let mut some = [0; 6];
        buffer.read(first, &mut some).unwrap();
        assert_eq!(some, [0xaa, 0xbb, 0xcc, 1, 2, 3]);
    }
}

#[test]
fn large_transfers_go_in_pieces() {
    let Some(subject) = subject() else { return };
    let len = (20 << 20) / 4 + 12345;
    let data: Vec<u32> = (0..len).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
    let data = bytes(&data);
    let buffer = Buffer::from_bytes(&subject.context, U32, &data, 0).unwrap();
    let copy = Buffer::new(&subject.context, U32, len.into(), 0, Default::default()).unwrap();
    buffer.copy_to(&copy).unwrap();
    assert!(copy.read_all().unwrap() == data);
}

#[test]
fn more_arguments_than_are_remembered() {
    let Some(subject) = subject() else { return };
    for n in 0..40u32 {
        let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[n; 64]), 0).unwrap();
        subject.runtime.launch(&subject.context, SCALE, line(1), &[&buffer], &word(3)).unwrap();
        assert_eq!(words(&buffer.read_all().unwrap()), [n * 3 + 1; 64]);
    }
}

#[test]
fn buffers_that_are_too_large_are_errors() {
    let Some(subject) = subject() else { return };
    let len = subject.context.properties().memory_total / 4 + 1;
    let error = Buffer::new(&subject.context, U32, len, 0, Default::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::OutOfMemory);
    let limit = subject.context.properties().limits.buffer_bytes;
    if limit < 512 << 20 {
        let buffer =
            Buffer::new(&subject.context, U32, limit / 4 + 1, 0, Default::default()).unwrap();
        let launched =
            subject.runtime.launch(&subject.context, SCALE, line(1), &[&buffer], &word(1));
        assert_eq!(launched.unwrap_err().kind, ErrorKind::ResourceExhausted);
    }
}

#[test]
fn a_device_is_closed_with_work_under_way() {
    let Some(subject) = subject() else { return };
    let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[0; 4096]), 0).unwrap();
    for _ in 0..10 {
        let (size, rounds) = (line(64), word(1000));
        subject.runtime.launch_async(&subject.context, SPIN, size, &[&buffer], &rounds).unwrap();
    }
}

#[test]
fn more_launches_than_may_be_pending() {
    let Some(subject) = subject() else { return };
    let buffers: Vec<Buffer> = (0..3)
        .map(|_| Buffer::from_bytes(&subject.context, U32, &bytes(&[0; 64]), 0).unwrap())
        .collect();
    for n in 0..3000 {
        let (from, to) = (&buffers[n % 3], &buffers[(n + 1) % 3]);
        let launched =
            subject.runtime.launch_async(&subject.context, NEXT, line(1), &[from, to], &[]);
        launched.unwrap();
    }
    assert_eq!(words(&buffers[0].read_all().unwrap()), [3000; 64]);
}

#[test]
fn launches_of_a_batch_have_scalars_of_their_own() {
    let Some(subject) = subject() else { return };
    let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[1; 64]), 0).unwrap();
    let mut expected = 1u32;
    for n in 0..200 {
        let factor = n % 7;
        expected = expected.wrapping_mul(factor).wrapping_add(1);
        let (size, factor) = (line(1), word(factor));
        subject.runtime.launch_async(&subject.context, SCALE, size, &[&buffer], &factor).unwrap();
    }
    assert_eq!(words(&buffer.read_all().unwrap()), [expected; 64]);
}
