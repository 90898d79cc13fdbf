//! The CPU device.

use super::conformance::Subject;
use super::support::{
    EMPTY, SPIN, buffer, bytes, cpu_blob, cpu_runtime, empty, extent_fits, host_blob, layout, line,
    only, scalar, word, words,
};
use crate::gpu::{Buffer, DriverKind, Element, ErrorKind, GpuConfig, LaunchSize};
use crate::testing::outputs;
use magpie_types::kernel::{BlobCode, GpuBackend, HostKernel, HostLaunch};
use magpie_types::print::{PrintPart, PrintSite, WORDS};
use magpie_types::{PrimType, fixed};
use std::time::{Duration, Instant};

fn subject(threads: usize) -> Subject {
    let config = GpuConfig { cpu_threads: Some(threads), ..only(DriverKind::Cpu) };
    Subject::new(cpu_runtime(config))
}

#[test]
fn conforms() {
    for threads in [1, 2, 5] {
        subject(threads).check_all();
    }
}

/// Writes 1 + z * 100 + y * 10 + x of each workgroup to its element.
unsafe extern "C" fn place(launch: *const HostLaunch, first: u64, last: u64, scratch: *mut u8) {
    // SAFETY: the test's layout has one buffer with an element a workgroup, and 100 bytes of
    // shared memory and 4 bytes of frame an invocation.
    unsafe {
        let HostLaunch { buffers, grid, block, .. } = *launch;
        let frame = scratch.add(128).cast::<u32>();
        for group in first..last {
            let (x, y) = (group % u64::from(grid[0]), group / u64::from(grid[0]));
            let (y, z) = (y % u64::from(grid[1]), y / u64::from(grid[1]));
            let invocations = block.iter().product::<u32>() as usize;
            (0..invocations).for_each(|i| *frame.add(i) = 1);
            let ones: u32 = (0..invocations).map(|i| *frame.add(i)).sum();
            let place = (z * 100 + y * 10 + x) as u32 + ones / invocations as u32;
            (*buffers).data.cast::<u32>().add(group as usize).write(place);
        }
    }
}

#[test]
fn workgroups_are_numbered_x_first_and_have_scratch() {
    let subject = subject(3);
    let params = vec![buffer(0, fixed::U32, 4, true)];
    let mut blob = host_blob(layout("place", params, GpuBackend::Cpu), place);
    blob.layout.shared_bytes = 100;
    blob.code = BlobCode::Host(HostKernel { entry: place as *const () as usize, frame_bytes: 4 });
    subject.runtime.register_kernel(77, "place", vec![blob], None);
    let element = Element { ty: fixed::U32, size: 4 };
    let out = Buffer::from_bytes(&subject.context, element, &bytes(&[0; 24]), 0).unwrap();
    let size = LaunchSize { grid: [4, 3, 2], block: [8, 4, 2] };
    subject.runtime.launch(&subject.context, 77, size, &[&out], &[]).unwrap();
    let expected: Vec<u32> = (0..24).map(|g| 1 + g / 12 * 100 + g / 4 % 3 * 10 + g % 4).collect();
    assert_eq!(words(&out.read_all().unwrap()), expected);
}

/// What tests of preconditions launch as the unchecked body: marks the first element.
unsafe extern "C" fn mark(launch: *const HostLaunch, _: u64, _: u64, _: *mut u8) {
    // SAFETY: the test's layout has one buffer, which has an element even if it is empty.
    unsafe { (*(*launch).buffers).data.cast::<u32>().write(1) };
}

#[test]
fn the_unchecked_body_runs_when_all_preconditions_hold() {
    let subject = subject(2);
    let params = vec![buffer(0, fixed::U32, 4, true), buffer(1, fixed::U32, 4, false)];
    let mut blob = host_blob(layout("k", params, GpuBackend::Cpu), empty);
    blob.layout.preconditions = vec![extent_fits(0), extent_fits(1)];
    blob.unchecked =
        Some(BlobCode::Host(HostKernel { entry: mark as *const () as usize, frame_bytes: 0 }));
    subject.runtime.register_kernel(77, "k", vec![blob], None);
    let element = Element { ty: fixed::U32, size: 4 };
    let buffer =
        |len| Buffer::from_bytes(&subject.context, element, &bytes(&vec![0; len]), 0).unwrap();
    for (first, second, unchecked) in [(128, 128, 1), (128, 127, 0), (127, 128, 0), (500, 129, 1)] {
        let (a, b) = (buffer(first), buffer(second));
        subject.runtime.launch(&subject.context, 77, line(2), &[&a, &b], &[]).unwrap();
        assert_eq!(words(&a.read_all().unwrap())[0], unchecked, "{first} {second}");
    }
}

#[test]
fn asynchronous_launches_return_at_once() {
    let subject = subject(2);
    let element = Element { ty: fixed::U32, size: 4 };
    let buffer = Buffer::from_bytes(&subject.context, element, &bytes(&[0; 64]), 0).unwrap();
    let start = Instant::now();
    let rounds = word(500_000);
    let fence =
        subject.runtime.launch_async(&subject.context, SPIN, line(1), &[&buffer], &rounds).unwrap();
    let queued = start.elapsed();
    assert!(!fence.wait(Some(Duration::from_micros(1))).unwrap(), "a fence can time out");
    assert!(fence.wait(None).unwrap());
    assert!(queued * 4 < start.elapsed(), "queued in {queued:?} of {:?}", start.elapsed());
}

#[test]
fn waits_have_a_limit_when_asked_for() {
    let config = GpuConfig { wait_limit: Some(Duration::from_millis(5)), ..only(DriverKind::Cpu) };
    let subject = Subject::new(cpu_runtime(config));
    let element = Element { ty: fixed::U32, size: 4 };
    let buffer = Buffer::from_bytes(&subject.context, element, &bytes(&[0; 64]), 0).unwrap();
    let rounds = word(1_000_000);
    let fence =
        subject.runtime.launch_async(&subject.context, SPIN, line(1), &[&buffer], &rounds).unwrap();
    let error = subject.context.synchronize().unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimeoutExpired);
    assert!(error.message.contains("0.005 s"), "{error}");
    assert_eq!(buffer.read_all().unwrap_err().kind, ErrorKind::TimeoutExpired);
    assert!(fence.wait(None).unwrap());
    subject.context.synchronize().unwrap();
}

#[test]
fn blobs_without_a_function_are_invalid() {
    let subject = subject(1);
    for code in
        [BlobCode::Bytes(vec![0xC3]), BlobCode::Host(HostKernel { entry: 0, frame_bytes: 0 })]
    {
        let mut blob = cpu_blob(EMPTY);
        blob.code = code;
        subject.runtime.register_kernel(77, "bad", vec![blob], None);
        let error = subject.runtime.launch(&subject.context, 77, line(1), &[], &[]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidKernel);
        assert!(error.message.contains("`bad`"), "{error}");
    }
}

#[test]
fn scratch_beyond_all_bounds_is_refused() {
    let subject = subject(2);
    let mut blob = cpu_blob(EMPTY);
    blob.code =
        BlobCode::Host(HostKernel { entry: empty as *const () as usize, frame_bytes: u32::MAX });
    subject.runtime.register_kernel(77, "greedy", vec![blob], None);
    let error = subject.runtime.launch(&subject.context, 77, line(1), &[], &[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ResourceExhausted);
    // Queued, the fault comes back from the next call that waits, once.
    subject.runtime.launch_async(&subject.context, 77, line(1), &[], &[]).unwrap();
    assert_eq!(subject.context.synchronize().unwrap_err().kind, ErrorKind::ResourceExhausted);
    subject.context.synchronize().unwrap();
}

/// Puts a record of invocation 64 and one of invocation 1 into the buffer, and says that it wanted to
/// put as many words more as the argument says.
unsafe extern "C" fn report(launch: *const HostLaunch, _: u64, last: u64, _: *mut u8) {
    // SAFETY: the test's layout has one scalar and the buffer for what is printed.
    unsafe {
        let wanted = (*launch).scalars.cast::<u32>().read();
        let buffer = *(*launch).buffers;
        assert_eq!(buffer.len, u64::from(WORDS));
        if last == 2 {
            // Nothing comes of what stands behind a place that there is not.
            let words = [10 + wanted, 0, 64, 0, 0, 7, 0, 1, 0, 0, 6, 99];
            buffer.data.cast::<[u32; 12]>().write(words);
        }
    }
}

fn print_from_a_kernel() {
    let subject = subject(1);
    let params = vec![scalar(0), buffer(0, fixed::U32, 4, true)];
    let mut blob = host_blob(layout("report", params, GpuBackend::Cpu), report);
    let parts = vec![PrintPart::Text("got".into()), PrintPart::Value(PrimType::U32)];
    blob.layout.prints = vec![PrintSite { parts }];
    subject.runtime.register_kernel(77, "report", vec![blob], None);
    for wanted in [0, WORDS] {
        subject.runtime.launch(&subject.context, 77, line(2), &[], &word(wanted)).unwrap();
    }
}

#[test]
fn what_kernels_print_comes_in_order_and_with_a_note_when_some_is_lost() {
    let test =
        "gpu::tests::cpu::what_kernels_print_comes_in_order_and_with_a_note_when_some_is_lost";
    let (code, stdout, stderr) = outputs(test, &[print_from_a_kernel]).remove(0);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.ends_with("\ngot 6\ngot 7\ngot 6\ngot 7\n"), "{stdout}");
    let note = "note: a launch of `report` printed more than its buffer of 4 MiB holds";
    assert_eq!(stderr.matches(note).count(), 1, "{stderr}");
}
