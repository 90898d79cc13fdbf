//! A launch allocates nothing after the first, and 10,000 launches do not grow memory.

use magpie_rt::gpu::{
    Buffer, Context, DeviceChoice, DriverKind, Element, ErrorKind, GpuConfig, LaunchSize, Runtime,
};
use magpie_rt::object::MpRtHeader;
use magpie_rt::symbol_address;
use magpie_types::abi::RtFn;
use magpie_types::fixed;
use magpie_types::kernel::{
    BlobCode, BufferParam, DeviceFeatures, GpuBackend, HostKernel, HostLaunch, KernelBlob,
    KernelLayout, ParamLayout, ScalarTransport,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what all threads allocate.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: forwarded from the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: forwarded from the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const EMPTY: u64 = 1;
const FULL: u64 = 2;
const LAUNCHES: u32 = 10_000;

unsafe extern "C" fn nothing(_: *const HostLaunch, _: u64, _: u64, _: *mut u8) {}

/// A kernel `k` with an empty body: ids 1 void, 2 function type, 3 `u32`, 4 to 6 the specialisation
/// constants of the workgroup size, 7 the function, 8 its label.
#[rustfmt::skip]
const EMPTY_SPIRV: [u32; 62] = [
    0x0723_0203, 0x0001_0600, 0, 9, 0, // header of version 1.6
    2 << 16 | 17, 1, // OpCapability Shader
    3 << 16 | 14, 0, 1, // OpMemoryModel Logical GLSL450
    4 << 16 | 15, 5, 7, 0x6B, // OpEntryPoint GLCompute %7 "k"
    6 << 16 | 331, 7, 38, 4, 5, 6, // OpExecutionModeId %7 LocalSizeId %4 %5 %6
    4 << 16 | 71, 4, 1, 0, // OpDecorate %4 SpecId 0
    4 << 16 | 71, 5, 1, 1, // OpDecorate %5 SpecId 1
    4 << 16 | 71, 6, 1, 2, // OpDecorate %6 SpecId 2
    2 << 16 | 19, 1, // %1 = OpTypeVoid
    3 << 16 | 33, 2, 1, // %2 = OpTypeFunction %1
    4 << 16 | 21, 3, 32, 0, // %3 = OpTypeInt 32 0
    4 << 16 | 50, 3, 4, 1, // %4 = OpSpecConstant %3 1
    4 << 16 | 50, 3, 5, 1, // %5 = OpSpecConstant %3 1
    4 << 16 | 50, 3, 6, 1, // %6 = OpSpecConstant %3 1
    5 << 16 | 54, 1, 7, 0, 2, // %7 = OpFunction %1 None %2
    2 << 16 | 248, 8, // %8 = OpLabel
    1 << 16 | 253, // OpReturn
    1 << 16 | 56, // OpFunctionEnd
];

/// A kernel that does nothing, with or without two buffers and a scalar.
fn blob(backend: GpuBackend, full: bool) -> KernelBlob {
    let buffer = |index| {
        ParamLayout::Buffer(BufferParam {
            index,
            binding: index,
            elem: fixed::F32,
            host_stride: 4,
            device_stride: 4,
            writes: index == 1,
        })
    };
    let mut params = vec![];
    if full {
        let scalar = ParamLayout::Scalar { offset: 0, size: 4, ty: fixed::F32 };
        params.extend([buffer(0), buffer(1), scalar]);
    }
    let size = if full { 16 } else { 0 };
    let transport = match (backend, full) {
        (_, false) => ScalarTransport::None,
        (GpuBackend::Cpu, true) => ScalarTransport::Arguments,
        (_, true) => ScalarTransport::PushConstants,
    };
    let layout = KernelLayout {
        entry: "k".to_string(),
        params,
        scalar_size: size,
        hidden: Vec::new(),
        block_size: size,
        transport,
        workgroup: [64, 1, 1],
        fixed_workgroup: false,
        shared_bytes: 256,
        features: DeviceFeatures::default(),
        preconditions: Vec::new(),
        prints: Vec::new(),
    };
    let code = match backend {
        GpuBackend::Cpu => {
            BlobCode::Host(HostKernel { entry: nothing as *const () as usize, frame_bytes: 16 })
        }
        _ => BlobCode::Bytes(EMPTY_SPIRV.iter().flat_map(|w| w.to_le_bytes()).collect()),
    };
    KernelBlob { backend, layout, code, unchecked: None }
}

/// Pages of the process that are in memory, in bytes; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Launches often and checks that neither allocations nor memory grow.
fn measure(what: &str, mut launch: impl FnMut(u32)) {
    // The first launches fill batches, queues and vectors.
    (0..2_500).for_each(&mut launch);
    let (allocations, resident) = (ALLOCATIONS.load(Ordering::Relaxed), resident_bytes());
    (0..LAUNCHES).for_each(&mut launch);
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
    // Reading the size of the process allocates, but after the counter.
    let grown = resident_bytes().saturating_sub(resident);
    assert!(allocations <= 8, "{what}: {allocations} allocations in {LAUNCHES} launches");
    assert!(grown < 2 << 20, "{what}: memory grew by {grown} bytes");
}

fn check(runtime: &Runtime, context: &Arc<Context>) {
    let driver = context.properties().driver.name();
    let element = Element { ty: fixed::F32, size: 4 };
    let buffer = || Buffer::from_bytes(context, element, &[0; 4096], 0).unwrap();
    let (a, b, scalars) = (buffer(), buffer(), [0; 16]);
    let size = LaunchSize { grid: [16, 1, 1], block: [64, 1, 1] };
    measure(&format!("{driver}, empty"), |_| {
        runtime.launch(context, EMPTY, size, &[], &[]).unwrap();
    });
    measure(&format!("{driver}, with arguments"), |_| {
        runtime.launch(context, FULL, size, &[&a, &b], &scalars).unwrap();
    });
    measure(&format!("{driver}, queued"), |n| {
        let fence = runtime.launch_async(context, FULL, size, &[&a, &b], &scalars).unwrap();
        if n % 500 == 0 {
            assert!(fence.wait(None).unwrap());
        }
    });
}

/// The same through the C ABI.
fn check_c_abi() {
    type Handle = *mut MpRtHeader;
    type Default = unsafe extern "C" fn(*mut Handle, *mut Handle) -> i32;
    type Launch = unsafe extern "C" fn(
        Handle,
        u64,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        *const u8,
        u64,
        *mut Handle,
    ) -> i32;
    let runtime = Runtime::global();
    let device = DeviceChoice::Driver(DriverKind::Cpu);
    runtime.configure(GpuConfig { device, ..GpuConfig::default() });
    runtime.register_kernel(EMPTY, "empty", vec![blob(GpuBackend::Cpu, false)], None);
    let (mut device, mut error): (Handle, Handle) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the functions have these signatures, and the arguments are live.
    unsafe {
        let default = symbol_address(RtFn::GpuDeviceDefault);
        let default = std::mem::transmute::<*const u8, Default>(default);
        assert_eq!(default(&mut device, &mut error), 0);
        let launch = symbol_address(RtFn::GpuLaunchSync);
        let launch = std::mem::transmute::<*const u8, Launch>(launch);
        measure("C ABI", |_| {
            let status = launch(device, EMPTY, 4, 1, 1, 64, 1, 1, ptr::null(), 0, &mut error);
            assert_eq!(status, 0);
        });
        magpie_rt::object::release(device);
    }
}

#[test]
fn launches_allocate_nothing_after_the_first() {
    check_c_abi();
    for (driver, backend) in
        [(DriverKind::Cpu, GpuBackend::Cpu), (DriverKind::Vulkan, GpuBackend::Spv)]
    {
        let device = DeviceChoice::Driver(driver);
        let runtime = Runtime::new(GpuConfig { device, ..GpuConfig::default() });
        runtime.register_kernel(EMPTY, "empty", vec![blob(backend, false)], None);
        runtime.register_kernel(FULL, "full", vec![blob(backend, true)], None);
        match runtime.default_device() {
            Ok(context) => check(&runtime, &context),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::BackendUnavailable);
                assert!(std::env::var_os("CI").is_none(), "needs Vulkan: {error}");
                println!("skipped: needs Vulkan ({error})");
            }
        }
    }
}
