//! The whole driver: it does what every device must do, by each of its ways, without a wrong call.

use super::fake::Fake;
use super::{StreamOptions, VENDORS, Vendor, blob, layout, subject};
use crate::gpu::tests::support::{SCALE, SPIN, bytes, line, word, words};
use crate::gpu::{Buffer, DeviceType, Element, ErrorKind, LaunchSize, MemoryHint, PciAddress};
use magpie_types::fixed;
use magpie_types::kernel::{BlobCode, CUDA_STATIC_SHARED};
use std::time::Duration;

const U32: Element = Element { ty: fixed::U32, size: 4 };

#[test]
fn conforms() {
    for vendor in VENDORS {
        let fake = Fake::new();
        subject(&fake, vendor, StreamOptions::default()).check_all();
        fake.assert_clean();
        assert!(fake.calls("cuMemAllocAsync") > 0 && fake.calls("cuMemAlloc_v2") == 0);
    }
}

#[test]
fn conforms_with_a_pool_of_our_own() {
    for vendor in VENDORS {
        let fake = Fake::new();
        let options = StreamOptions { own_pool: true, ..StreamOptions::default() };
        subject(&fake, vendor, options).check_all();
        fake.assert_clean();
        assert!(fake.calls("cuMemAllocAsync") == 0 && fake.calls("cuMemAlloc_v2") > 0);
    }
}

#[test]
fn a_device_without_pools_gets_ours() {
    let fake = Fake::new();
    fake.without_pools();
    let subject = subject(&fake, Vendor::Cuda, StreamOptions::default());
    for _ in 0..10 {
        drop(Buffer::new(&subject.context, U32, 1000, 0, MemoryHint::Auto).unwrap());
    }
    assert_eq!(fake.calls("cuMemAlloc_v2"), 1, "freed memory is used again");
    // What is spare gives way to what is needed.
    let most = subject.context.properties().memory_total / 4;
    let all = Buffer::new(&subject.context, U32, most, 0, MemoryHint::Auto).unwrap();
    assert!(fake.calls("cuMemFree_v2") >= 1);
    drop((all, subject));
    fake.assert_clean();
}

#[test]
fn describes_the_device() {
    for vendor in VENDORS {
        let fake = Fake::new();
        let subject = subject(&fake, vendor, StreamOptions::default());
        let properties = subject.context.properties();
        assert_eq!((properties.driver, &*properties.name), (vendor.driver(), "Fake GPU"));
        assert_eq!(properties.device_type, DeviceType::Discrete);
        let (info, architecture) = match vendor {
            Vendor::Cuda => ("CUDA 12.9", "sm_90"),
            Vendor::Hip => ("HIP 6.0", "gfx90a"),
        };
        assert_eq!((&*properties.driver_info, &*properties.architecture), (info, architecture));
        let mut uuid = [7; 16];
        uuid[15] = 0;
        assert_eq!(properties.uuid, Some(uuid));
        let pci = PciAddress { domain: 1, bus: 0x2a, device: 3, function: 0 };
        assert_eq!(properties.pci, Some(pci));
        let limits = properties.limits;
        assert_eq!(limits.workgroup_size, [1024, 1024, 64]);
        assert_eq!(limits.workgroup_count, [i32::MAX as u32, 65535, 65535]);
        assert_eq!(limits.workgroup_invocations, 1024);
        let shared = if vendor == Vendor::Cuda { 227 << 10 } else { 48 << 10 };
        assert_eq!(limits.shared_bytes, shared);
        assert_eq!((properties.subgroup_size, properties.memory_total), (32, 256 << 20));
        assert!(subject.context.memory_available() > 0);
    }
}

#[test]
fn several_devices_are_several() {
    let fake = Fake::new();
    fake.devices(3);
    let runtime = super::runtime(&fake, Vendor::Cuda, StreamOptions::default());
    assert_eq!(runtime.device_count(), 3);
    let (first, last) = (runtime.device(0).unwrap(), runtime.device(2).unwrap());
    let data = Buffer::from_bytes(&last, U32, &bytes(&[1, 2]), 0).unwrap();
    let other = Buffer::from_bytes(&first, U32, &bytes(&[3]), 0).unwrap();
    assert_eq!(words(&data.read_all().unwrap()), [1, 2]);
    assert_eq!(words(&other.read_all().unwrap()), [3]);
    assert_ne!(first.properties().uuid, last.properties().uuid);
}

#[test]
fn large_transfers_go_in_pieces() {
    let fake = Fake::new();
    let subject = subject(&fake, Vendor::Cuda, StreamOptions::default());
    // More than staging memory holds, in both directions.
    let data: Vec<u32> = (0..20 << 20).map(|n: u32| n.wrapping_mul(0x9E37_79B9)).collect();
    let data = bytes(&data);
    let buffer = Buffer::from_bytes(&subject.context, U32, &data, 0).unwrap();
    assert!(buffer.read_all().unwrap() == data);
    drop((buffer, subject));
    fake.assert_clean();
}

#[test]
fn small_transfers_use_staging_memory_again() {
    let fake = Fake::new();
    let subject = subject(&fake, Vendor::Hip, StreamOptions::default());
    let buffer = Buffer::new(&subject.context, U32, 1 << 18, 0, MemoryHint::Auto).unwrap();
    for n in 0..100u32 {
        buffer.write(0, &bytes(&vec![n; 1 << 18])).unwrap();
    }
    assert_eq!(words(&buffer.read_all().unwrap()), vec![99; 1 << 18]);
    // One block for each direction.
    assert_eq!(fake.calls("cuMemHostAlloc"), 2);
    drop((buffer, subject));
    fake.assert_clean();
}

#[test]
fn memory_for_transfers_grows_with_them() {
    let fake = Fake::new();
    let subject = subject(&fake, Vendor::Cuda, StreamOptions::default());
    let buffer = Buffer::new(&subject.context, U32, 1 << 20, 0, MemoryHint::Auto).unwrap();
    // Small pieces are still on their way when a large one asks for other memory.
    for n in 0..1000 {
        buffer.write(n * 4, &bytes(&[n as u32; 4])).unwrap();
    }
    let mut few = [0; 16];
    buffer.read(3996, &mut few).unwrap();
    assert_eq!(words(&few), [999; 4]);
    assert_eq!(fake.calls("cuMemHostAlloc"), 2);
    buffer.write(1 << 19, &bytes(&vec![7; 1 << 19])).unwrap();
    let all = words(&buffer.read_all().unwrap());
    assert!((0..4000).all(|i| all[i] == i as u32 / 4), "small pieces are lost");
    assert!(all[1 << 19..].iter().all(|&n| n == 7));
    assert_eq!(fake.calls("cuMemHostAlloc"), 4);
    assert_eq!(fake.calls("cuMemFreeHost"), 2);
    drop((buffer, subject));
    fake.assert_clean();
}

#[test]
fn more_launches_than_there_are_events() {
    let fake = Fake::new();
    let subject = subject(&fake, Vendor::Cuda, StreamOptions::default());
    let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[0; 64]), 0).unwrap();
    let launch = || {
        let (runtime, context) = (&subject.runtime, &subject.context);
        runtime.launch_async(context, SCALE, line(1), &[&buffer], &word(1)).unwrap()
    };
    let fences: Vec<_> = (0..1000).map(|_| launch()).collect();
    assert!(fences[0].wait(None).unwrap());
    assert!(fences[999].wait(Some(Duration::from_secs(60))).unwrap());
    assert_eq!(words(&buffer.read_all().unwrap()), [1000; 64]);
    assert!(fake.calls("cuEventCreate") < 300);
    drop((fences, buffer, subject));
    fake.assert_clean();
}

#[test]
fn waits_end_with_their_limit() {
    let fake = Fake::new();
    let subject = subject(&fake, Vendor::Cuda, StreamOptions::default());
    let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[0; 64]), 0).unwrap();
    let queue = || {
        let (runtime, context) = (&subject.runtime, &subject.context);
        runtime.launch_async(context, SPIN, line(1), &[&buffer], &word(10)).unwrap()
    };
    (0..50).for_each(|_| drop(queue()));
    let fence = queue();
    assert!(!fence.wait(Some(Duration::ZERO)).unwrap(), "50 launches are before it");
    assert!(fence.wait(Some(Duration::from_secs(60))).unwrap());
}

#[test]
fn a_larger_block_gets_code_with_another_register_budget() {
    let fake = Fake::new();
    let subject = subject(&fake, Vendor::Cuda, StreamOptions::default());
    let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[1; 512]), 0).unwrap();
    let launch = |block: u32| {
        let size = LaunchSize { grid: [512 / block, 1, 1], block: [block, 1, 1] };
        let (runtime, context) = (&subject.runtime, &subject.context);
        runtime.launch(context, SCALE, size, &[&buffer], &word(1)).unwrap();
    };
    launch(64);
    launch(16);
    assert_eq!(fake.calls("cuModuleLoadData"), 1, "a smaller block needs no other code");
    // The library refuses launches beyond the budget.
    launch(256);
    launch(256);
    launch(512);
    assert_eq!(fake.calls("cuModuleLoadData"), 3);
    assert_eq!(words(&buffer.read_all().unwrap()), [6; 512]);
    drop((buffer, subject));
    fake.assert_clean();
}

#[test]
fn large_shared_memory_is_asked_for() {
    let fake = Fake::new();
    let subject = subject(&fake, Vendor::Cuda, StreamOptions::default());
    let (runtime, context) = (&subject.runtime, &subject.context);
    let buffer = Buffer::from_bytes(context, U32, &bytes(&[1; 64]), 0).unwrap();
    let register = |bytes| {
        let mut blob = blob(Vendor::Cuda, SCALE);
        blob.layout.shared_bytes = bytes;
        let text = ".maxntid 64, 1, 1\n// dynamic\nkernel scale\n";
        blob.code = BlobCode::Bytes(text.into());
        runtime.register_kernel(100 + u64::from(bytes), "large", vec![blob], None);
        100 + u64::from(bytes)
    };
    let large = register(CUDA_STATIC_SHARED + 1024);
    runtime.launch(context, large, line(1), &[&buffer], &word(2)).unwrap();
    assert_eq!(fake.calls("cuFuncSetAttribute"), 1);
    assert_eq!(words(&buffer.read_all().unwrap()), [3; 64]);
    let too_large = register(228 << 10);
    let error = runtime.launch(context, too_large, line(1), &[&buffer], &word(2)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ResourceExhausted);
    assert!(error.message.contains("233472") && error.message.contains("232448"), "{error}");
    drop((buffer, subject));
    fake.assert_clean();
}

#[test]
fn blobs_that_do_not_fit_are_refused() {
    let fake = Fake::new();
    let subject = subject(&fake, Vendor::Cuda, StreamOptions::default());
    let refused = |change: &dyn Fn(&mut magpie_types::kernel::KernelBlob)| {
        let mut blob = blob(Vendor::Cuda, SCALE);
        change(&mut blob);
        subject.runtime.register_kernel(9, "bad", vec![blob], None);
        let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[1]), 0).unwrap();
        let launched = subject.runtime.launch(&subject.context, 9, line(1), &[&buffer], &word(1));
        launched.unwrap_err()
    };
    let error = refused(&|b| b.layout.entry = "missing".to_string());
    assert_eq!((error.kind, error.code), (ErrorKind::InvalidKernel, 500));
    assert!(error.message.contains("entry point of kernel `bad`"), "{error}");
    let error = refused(&|b| b.layout.hidden[0].size = 4);
    assert_eq!(error.kind, ErrorKind::InvalidKernel);
    let error = refused(&|b| b.code = BlobCode::Bytes(b"kernel scale\nof another device".into()));
    assert_eq!((error.kind, error.code), (ErrorKind::InvalidKernel, 209));
    let error = refused(&|b| b.code = BlobCode::Bytes(b"kernel scale\ndoes not assemble".into()));
    assert_eq!((error.kind, error.code), (ErrorKind::CompilationFailed, 218));
    assert!(error.message.contains("FAKE_INVALID_PTX: line 3: unexpected word"), "{error}");
    assert_eq!(layout(SCALE).check(), Ok(()));
    drop(subject);
    fake.assert_clean();
}
