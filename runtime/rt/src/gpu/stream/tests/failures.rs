//! Calls that fail: the program gets an error, nothing is used wrongly, and what was made before is
//! given back.

use super::fake::Fake;
use super::{StreamOptions, VENDORS, Vendor, runtime, subject};
use crate::gpu::profile::Session;
use crate::gpu::tests::support::{NEXT, SCALE, SPIN, bytes, line, word, words};
use crate::gpu::{Buffer, Element, ErrorKind, GpuResult, LaunchSize, MemoryHint};
use magpie_types::fixed;

const U32: Element = Element { ty: fixed::U32, size: 4 };

/// Every function that a program leads to.
const FUNCTIONS: &[&str] = &[
    "cuInit",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetUuid",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemAllocAsync",
    "cuMemHostAlloc",
    "cuMemHostGetDevicePointer_v2",
    "cuDeviceGetDefaultMemPool",
    "cuMemPoolSetAttribute",
    "cuMemPoolGetAttribute",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD32Async",
    "cuStreamCreate",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuLaunchKernel",
    "cuLinkCreate_v2",
    "cuLinkAddData_v2",
    "cuLinkComplete",
];

/// A program that uses everything, and ends with the first error.
fn program(fake: &Fake, vendor: Vendor, own_pool: bool) -> GpuResult<()> {
    let runtime = runtime(fake, vendor, StreamOptions { own_pool, ..StreamOptions::default() });
    let context = runtime.default_device()?;
    context.memory_available();
    let buffer = Buffer::from_bytes(&context, U32, &bytes(&[1; 64]), 0)?;
    let other = Buffer::new(&context, U32, 64, 0, MemoryHint::Auto)?;
    let pinned = Buffer::new(&context, U32, 64, 0, MemoryHint::Staging)?;
    let session = Session::begin(&context)?;
    runtime.launch(&context, SCALE, line(1), &[&buffer], &word(2))?;
    let fence = runtime.launch_async(&context, NEXT, line(1), &[&buffer, &other], &[])?;
    fence.wait(Some(std::time::Duration::from_secs(60)))?;
    other.copy_to(&pinned)?;
    let large = LaunchSize { grid: [1, 1, 1], block: [128, 1, 1] };
    runtime.launch(&context, SPIN, large, &[&pinned], &word(2))?;
    drop(pinned);
    session.end()?;
    assert_eq!(words(&other.read_all()?), [4; 64]);
    context.synchronize()
}

#[test]
fn every_call_may_fail() {
    let fake = Fake::new();
    for vendor in VENDORS {
        for own_pool in [false, true] {
            fake.reset();
            program(&fake, vendor, own_pool).unwrap();
            fake.assert_clean();
            for name in FUNCTIONS {
                let calls = fake.calls(name).min(5);
                for nth in 1..=calls {
                    for code in [2, 999, 700] {
                        fake.reset();
                        fake.fail(name, nth, code);
                        let result = program(&fake, vendor, own_pool);
                        let what = format!("{vendor:?}, call {nth} of {name} fails with {code}");
                        assert_eq!(fake.violations(), "", "{what}");
                        if let Err(error) = result {
                            assert_eq!(error.backend, vendor.backend(), "{what}: {error}");
                            assert!(!error.message.is_empty(), "{what}");
                        }
                    }
                }
                // What follows counts the calls of an undisturbed program.
                fake.reset();
                program(&fake, vendor, own_pool).unwrap();
            }
        }
    }
}

#[test]
fn a_fault_of_a_kernel_is_told_and_the_device_is_lost() {
    for vendor in VENDORS {
        let fake = Fake::new();
        let subject = subject(&fake, vendor, StreamOptions::default());
        let (runtime, context) = (&subject.runtime, &subject.context);
        let buffer = Buffer::from_bytes(context, U32, &bytes(&[1; 64]), 0).unwrap();
        let fence = runtime.launch_async(context, SCALE, line(1), &[&buffer], &word(2)).unwrap();
        fake.fail("cuEventSynchronize", 1, 700);
        let error = fence.wait(None).unwrap_err();
        assert_eq!((error.kind, error.code), (ErrorKind::LaunchFailed, 700));
        assert!(error.message.contains("FAKE_ILLEGAL_ADDRESS (700)"), "{error}");
        for error in [
            buffer.read_all().unwrap_err(),
            buffer.write(0, &bytes(&[1])).unwrap_err(),
            runtime.launch(context, SCALE, line(1), &[&buffer], &word(2)).unwrap_err(),
            Buffer::new(context, U32, 1, 0, MemoryHint::Auto).unwrap_err(),
            context.synchronize().unwrap_err(),
        ] {
            assert_eq!((error.kind, error.code), (ErrorKind::DeviceLost, 700), "{error}");
            assert!(error.message.contains("FAKE_ILLEGAL_ADDRESS"), "{error}");
        }
        drop((fence, buffer, subject));
        fake.assert_clean();
    }
}

#[test]
fn memory_that_is_gone_is_waited_for() {
    let fake = Fake::new();
    let subject = subject(&fake, Vendor::Cuda, StreamOptions::default());
    let context = &subject.context;
    let half = context.properties().memory_total / 8 + 1000;
    let first = Buffer::new(context, U32, half, 0, MemoryHint::Auto).unwrap();
    drop(first);
    // The first is freed when the stream gets there.
    let second = Buffer::new(context, U32, half, 0, MemoryHint::Auto).unwrap();
    let error = Buffer::new(context, U32, half, 0, MemoryHint::Auto).unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::OutOfMemory, 2));
    assert!(error.message.contains("Fake GPU"), "{error}");
    drop((second, subject));
    fake.assert_clean();
}
