//! The whole driver: it does what every device must do, by each of its ways, without a word from
//! the validation layer.

use super::{VulkanOptions, options, subject, subject_with};
use crate::gpu::tests::support::{EMPTY, NEXT, SCALE, SPIN, bytes, line, word, words};
use crate::gpu::{Buffer, DeviceType, DriverKind, Element, ErrorKind, LaunchSize};
use magpie_types::fixed;

const U32: Element = Element { ty: fixed::U32, size: 4 };

#[test]
fn conforms() {
    if let Some(subject) = subject(options()) {
        subject.check_all();
    }
}

#[test]
fn conforms_with_descriptor_sets() {
    if let Some(subject) = subject(VulkanOptions { no_push_descriptors: true, ..options() }) {
        subject.check_all();
    }
}

#[test]
fn conforms_with_staged_transfers() {
    if let Some(subject) = subject(VulkanOptions { no_mapped_memory: true, ..options() }) {
        subject.check_all();
    }
}

#[test]
fn conforms_with_uniform_blocks() {
    for no_push_descriptors in [false, true] {
        let options = VulkanOptions { no_push_descriptors, ..options() };
        if let Some(subject) = subject_with(options, true) {
            subject.check_all();
        }
    }
}

#[test]
fn describes_the_device() {
    let Some(subject) = subject(options()) else { return };
    let properties = subject.context.properties();
    assert_eq!(properties.driver, DriverKind::Vulkan);
    assert!(!properties.name.is_empty() && properties.driver_info.contains("Vulkan 1."));
    assert!(properties.uuid.is_some());
    assert!(properties.memory_total > 0);
    assert!(subject.context.memory_available() <= properties.memory_total);
    assert!(properties.subgroup_size >= 1);
    let limits = properties.limits;
    assert!(limits.workgroup_invocations >= 128 && limits.shared_bytes >= 16384);
    assert!(limits.buffers >= 4 && limits.push_constant_bytes >= 128);
    assert_eq!(subject.runtime.backends_of(&subject.context), ["spv"]);
    assert!(properties.device_type != DeviceType::Host);
}

#[test]
fn more_launches_than_a_batch_holds() {
    for no_push_descriptors in [false, true] {
        let options = VulkanOptions { no_push_descriptors, ..options() };
        let Some(subject) = subject(options) else { return };
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
}

#[test]
fn large_transfers_go_in_pieces() {
    for no_mapped_memory in [false, true] {
        let options = VulkanOptions { no_mapped_memory, ..options() };
        let Some(subject) = subject(options) else { return };
        // More than all staging memory, and no multiple of a piece.
        let len = (80 << 20) / 4 + 12345;
        let data: Vec<u32> = (0..len).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
        let data = bytes(&data);
        let buffer = Buffer::from_bytes(&subject.context, U32, &data, 0).unwrap();
        let copy = Buffer::new(&subject.context, U32, len.into(), 0, Default::default()).unwrap();
        buffer.copy_to(&copy).unwrap();
        assert!(copy.read_all().unwrap() == data);
    }
}

#[test]
fn limits_are_checked_before_the_driver_sees_them() {
    let Some(subject) = subject(options()) else { return };
    let launch = |grid, block| {
        let size = LaunchSize { grid, block };
        subject.runtime.launch(&subject.context, EMPTY, size, &[], &[])
    };
    let [most, ..] = subject.context.properties().limits.workgroup_count;
    if let Some(more) = most.checked_add(1) {
        let error = launch([more, 1, 1], [1, 1, 1]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::LaunchFailed);
        let numbers = [more, most].map(|n| n.to_string());
        assert!(numbers.iter().all(|n| error.message.contains(n)), "{error}");
    }
    let largest = subject.context.properties().limits.workgroup_invocations;
    launch([1, 1, 1], [largest, 1, 1]).unwrap();
    assert_eq!(launch([1, 1, 1], [largest, 2, 1]).unwrap_err().kind, ErrorKind::LaunchFailed);
    // A buffer may be larger than what a kernel can see of one.
    let limit = subject.context.properties().limits.buffer_bytes;
    if limit < 512 << 20 {
        let element = Element { ty: fixed::U32, size: 4 };
        let len = limit / 4 + 1;
        let buffer = Buffer::new(&subject.context, element, len, 0, Default::default()).unwrap();
        let launched =
            subject.runtime.launch(&subject.context, SCALE, line(1), &[&buffer], &word(1));
        let error = launched.unwrap_err();
        assert_eq!(error.kind, ErrorKind::ResourceExhausted);
        assert!(error.message.contains(&limit.to_string()), "{error}");
    }
}

#[test]
fn a_device_is_closed_with_work_under_way() {
    let Some(subject) = subject(options()) else { return };
    let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[0; 4096]), 0).unwrap();
    for _ in 0..10 {
        let rounds = word(1000);
        let size = line(64);
        subject.runtime.launch_async(&subject.context, SPIN, size, &[&buffer], &rounds).unwrap();
    }
}
