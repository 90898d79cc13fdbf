//! Which blob a device gets.

use super::support::{EMPTY, SCALE, bytes, cpu_blob, cpu_runtime, line, only, word, words};
use crate::gpu::{
    BlobProvider, Buffer, DeviceProperties, DriverKind, Element, ErrorKind, GpuConfig, GpuError,
    GpuResult, Runtime,
};
use magpie_types::fixed;
use magpie_types::kernel::{
    BlobCode, DeviceFeatures, GpuBackend, KernelBlob, ParamLayout, ScalarTransport,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn cpu() -> Runtime {
    Runtime::new(only(DriverKind::Cpu))
}

fn launch_error(runtime: &Runtime) -> GpuError {
    let context = runtime.default_device().unwrap();
    runtime.launch(&context, EMPTY, line(1), &[], &[]).unwrap_err()
}

#[test]
fn the_blob_of_the_device_is_chosen_among_several() {
    let runtime = cpu();
    let spirv = KernelBlob {
        backend: GpuBackend::Spv,
        code: BlobCode::Bytes(vec![1, 2, 3]),
        ..cpu_blob(EMPTY)
    };
    runtime.register_kernel(EMPTY, "empty", vec![spirv.clone(), cpu_blob(EMPTY)], None);
    let context = runtime.default_device().unwrap();
    runtime.launch(&context, EMPTY, line(1), &[], &[]).unwrap();
    runtime.register_kernel(EMPTY, "empty", vec![spirv], None);
    let error = launch_error(&runtime);
    assert_eq!((error.kind, error.backend), (ErrorKind::InvalidKernel, "cpu"));
    assert!(error.message.contains("no cpu blob (it has: spv)"), "{error}");
}

#[test]
fn layouts_that_contradict_themselves_or_the_device_are_refused() {
    let refused = |change: fn(&mut KernelBlob), kind: ErrorKind, text: &str| {
        let runtime = cpu();
        let mut blob = cpu_blob(SCALE);
        change(&mut blob);
        runtime.register_kernel(EMPTY, "bent", vec![blob], None);
        let error = launch_error(&runtime);
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(text) && error.message.contains("`bent`"), "{error}");
    };
    use ErrorKind::{InvalidKernel, ResourceExhausted};
    refused(|b| b.layout.scalar_size = 17, InvalidKernel, "17");
    refused(|b| b.layout.transport = ScalarTransport::None, InvalidKernel, "without a transport");
    refused(|b| b.layout.shared_bytes = 1 << 20, ResourceExhausted, "1048576 bytes of shared");
    refused(
        |b| match &mut b.layout.params[0] {
            ParamLayout::Buffer(buffer) => buffer.device_stride = 8,
            ParamLayout::Scalar { .. } => {}
        },
        InvalidKernel,
        "every 8 bytes; the device stores them every 4",
    );
}

#[derive(Default)]
struct Provider {
    asked: AtomicU32,
    failing: bool,
}

impl BlobProvider for Provider {
    fn can_provide(&self, _kernel: u64, backend: GpuBackend) -> bool {
        backend == GpuBackend::Cpu
    }

    fn provide(
        &self,
        kernel: u64,
        backend: GpuBackend,
        device: &DeviceProperties,
    ) -> GpuResult<Option<KernelBlob>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(device.features.contains(DeviceFeatures::FLOAT64));
        if self.failing {
            let message = "no register is left";
            return Err(GpuError::new(ErrorKind::CompilationFailed, backend.name(), message));
        }
        Ok((backend == GpuBackend::Cpu).then(|| cpu_blob(kernel)))
    }
}

#[test]
fn a_provider_is_asked_once_a_device() {
    let provider = Arc::new(Provider::default());
    let runtime = cpu();
    runtime.register_kernel(SCALE, "scale", vec![], Some(provider.clone()));
    let context = runtime.default_device().unwrap();
    let element = Element { ty: fixed::U32, size: 4 };
    let buffer = Buffer::from_bytes(&context, element, &bytes(&[1]), 0).unwrap();
    assert_eq!(provider.asked.load(Ordering::Relaxed), 0, "nothing is compiled before a launch");
    for _ in 0..5 {
        runtime.launch(&context, SCALE, line(1), &[&buffer], &word(2)).unwrap();
    }
    assert_eq!(provider.asked.load(Ordering::Relaxed), 1);
    assert_eq!(words(&buffer.read_all().unwrap()), [63]);
}

#[test]
fn what_a_provider_says_is_the_error() {
    let runtime = cpu();
    let provider = Arc::new(Provider { failing: true, ..Provider::default() });
    runtime.register_kernel(EMPTY, "empty", vec![], Some(provider));
    let error = launch_error(&runtime);
    assert_eq!(
        (error.kind, &*error.message),
        (ErrorKind::CompilationFailed, "no register is left")
    );
}

#[test]
fn registering_again_replaces_the_kernel() {
    let runtime = cpu_runtime(only(DriverKind::Cpu));
    let context = runtime.default_device().unwrap();
    runtime.launch(&context, EMPTY, line(1), &[], &[]).unwrap();
    runtime.register_kernel(EMPTY, "empty", vec![cpu_blob(SCALE)], None);
    let error = runtime.launch(&context, EMPTY, line(1), &[], &[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LaunchFailed, "the new kernel has parameters");
    runtime.reset();
    let error = runtime.launch(&context, EMPTY, line(1), &[], &[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidKernel);
}

#[test]
fn buffers_of_another_device_are_refused() {
    let (mine, other) = (cpu_runtime(only(DriverKind::Cpu)), cpu_runtime(only(DriverKind::Cpu)));
    let (mine_context, other_context) =
        (mine.default_device().unwrap(), other.default_device().unwrap());
    let element = Element { ty: fixed::U32, size: 4 };
    let buffer = Buffer::from_bytes(&other_context, element, &bytes(&[1]), 0).unwrap();
    let error = mine.launch(&mine_context, SCALE, line(1), &[&buffer], &word(2)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::BufferError);
    let own = Buffer::from_bytes(&mine_context, element, &bytes(&[1]), 0).unwrap();
    assert_eq!(own.copy_to(&buffer).unwrap_err().kind, ErrorKind::BufferError);
}

#[test]
fn a_launch_may_fall_back_to_the_cpu() {
    let runtime = Runtime::new(GpuConfig { mock: false, ..only(DriverKind::Interp) });
    struct Nothing;
    impl crate::gpu::KernelExecutor for Nothing {
        fn launch(&self, _: &crate::gpu::ExecutorLaunch<'_>) -> GpuResult<()> {
            Ok(())
        }
    }
    runtime.set_executor(Arc::new(Nothing));
    runtime.register_kernel(SCALE, "scale", vec![cpu_blob(SCALE)], None);
    runtime.register_kernel(EMPTY, "empty", vec![], None);
    let context = runtime.default_device().unwrap();
    let element = Element { ty: fixed::U32, size: 4 };
    let buffer = Buffer::from_bytes(&context, element, &bytes(&[1, 2]), 0).unwrap();
    let launch = |groups: u32| {
        runtime.launch_with_fallback(&context, SCALE, line(groups), &[&buffer], &word(10))
    };
    launch(1).unwrap();
    assert_eq!(words(&buffer.read_all().unwrap()), [11, 21]);
    assert_eq!(launch(0).unwrap_err().kind, ErrorKind::LaunchFailed);
    let error = runtime.launch_with_fallback(&context, EMPTY, line(1), &[], &[]).unwrap_err();
    assert_eq!((error.kind, error.backend), (ErrorKind::InvalidKernel, "interp"));
    assert!(error.message.contains("nor on the CPU"), "{error}");
}
