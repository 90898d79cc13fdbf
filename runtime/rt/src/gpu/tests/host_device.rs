//! The device of the reference interpreter and the mock device.

use super::conformance::Subject;
use super::support::{
    EMPTY, NEXT, SCALE, SPIN, bytes, cpu_blob, layout, line, only, signature, word, words,
};
use crate::gpu::{
    Buffer, DriverKind, Element, ErrorKind, ExecutorLaunch, GpuConfig, GpuError, GpuResult,
    KernelExecutor, MemoryHint, Runtime,
};
use magpie_types::fixed;
use magpie_types::kernel::{BlobCode, GpuBackend, HostKernelFn, HostLaunch, KernelBlob};
use std::sync::Arc;

/// Runs the CPU bodies of the kernels, one workgroup after the other.
struct Executor;

impl KernelExecutor for Executor {
    fn launch(&self, launch: &ExecutorLaunch<'_>) -> GpuResult<()> {
        let BlobCode::Host(kernel) = cpu_blob(launch.kernel).code else { return Ok(()) };
        let mut scalars = [0u128; 1];
        if !launch.scalars.is_empty() {
            scalars[0] = u128::from_ne_bytes(launch.scalars.try_into().unwrap());
        }
        let arguments = HostLaunch {
            buffers: launch.buffers.as_ptr(),
            scalars: scalars.as_ptr().cast(),
            grid: launch.grid,
            block: launch.block,
            fault: std::ptr::null_mut(),
        };
        // SAFETY: the function is one of the tests' own.
        let entry = unsafe { std::mem::transmute::<usize, HostKernelFn>(kernel.entry) };
        // SAFETY: the arguments are those of the kernel, which uses no scratch memory.
        unsafe { entry(&arguments, 0, u64::from(launch.grid[0]), std::ptr::null_mut()) };
        Ok(())
    }
}

fn interp_blob(kernel: u64) -> KernelBlob {
    let (name, params) = signature(kernel);
    KernelBlob {
        backend: GpuBackend::Interp,
        layout: layout(name, params, GpuBackend::Interp),
        code: BlobCode::Bytes(Vec::new()),
        unchecked: None,
    }
}

fn interpreter(executor: Arc<dyn KernelExecutor>) -> Subject {
    let runtime = Runtime::new(only(DriverKind::Interp));
    runtime.set_executor(executor);
    for kernel in [SCALE, NEXT, EMPTY, SPIN] {
        runtime.register_kernel(kernel, signature(kernel).0, vec![interp_blob(kernel)], None);
    }
    Subject::new(runtime)
}

#[test]
fn interpreter_conforms() {
    interpreter(Arc::new(Executor)).check_all();
}

#[test]
fn faults_of_the_interpreter_are_errors_of_the_launch() {
    struct Faulty;
    impl KernelExecutor for Faulty {
        fn launch(&self, launch: &ExecutorLaunch<'_>) -> GpuResult<()> {
            let message = format!("race in {}", launch.layout.entry);
            Err(GpuError::new(ErrorKind::LaunchFailed, "interp", message))
        }
    }
    let subject = interpreter(Arc::new(Faulty));
    let error = subject.runtime.launch(&subject.context, EMPTY, line(1), &[], &[]).unwrap_err();
    assert_eq!(error.message, "race in empty");
}

#[test]
fn without_an_executor_there_is_no_interpreter() {
    let error = Runtime::new(only(DriverKind::Interp)).default_device().unwrap_err();
    assert_eq!((error.kind, error.backend), (ErrorKind::BackendUnavailable, "interp"));
}

#[test]
fn mock_launches_do_nothing_but_are_checked() {
    let runtime =
        Runtime::new(GpuConfig { mock: true, cpu_fallback: true, ..GpuConfig::default() });
    runtime.register_kernel(SCALE, "scale", vec![cpu_blob(SCALE)], None);
    runtime.register_kernel(EMPTY, "empty", vec![], None);
    assert_eq!(runtime.device_count(), 1);
    let context = runtime.default_device().unwrap();
    assert!(Arc::ptr_eq(&context, &runtime.device(0).unwrap()));
    assert_eq!(runtime.device(1).unwrap_err().kind, ErrorKind::BackendUnavailable);
    assert_eq!(context.properties().name, "mock");
    assert_eq!(runtime.backends_of(&context), ["mock"]);
    let element = Element { ty: fixed::U32, size: 4 };
    let buffer = Buffer::from_bytes(&context, element, &bytes(&[1, 2]), 0).unwrap();
    runtime.launch(&context, SCALE, line(1), &[&buffer], &word(9)).unwrap();
    assert!(
        runtime
            .launch_async(&context, SCALE, line(1), &[&buffer], &word(9))
            .unwrap()
            .wait(None)
            .unwrap()
    );
    assert_eq!(words(&buffer.read_all().unwrap()), [1, 2]);
    let copy = Buffer::new(&context, element, 2, 0, MemoryHint::Auto).unwrap();
    buffer.copy_to(&copy).unwrap();
    assert_eq!(words(&copy.read_all().unwrap()), [1, 2]);
    let error = runtime.launch(&context, SCALE, line(0), &[&buffer], &word(9)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LaunchFailed);
    let error = runtime.launch(&context, SCALE, line(1), &[], &word(9)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LaunchFailed);
    // Kernels without a blob, or not registered at all, are launched all the same.
    runtime.launch(&context, EMPTY, line(1), &[&buffer], &[]).unwrap();
    runtime.launch(&context, 0xDEAD, line(1), &[&buffer], &[]).unwrap();
}
