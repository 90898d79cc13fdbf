//! The kernels of the tests: their layouts, and their bodies as host functions.

use crate::gpu::config::{DeviceChoice, GpuConfig};
use crate::gpu::launch::LaunchSize;
use crate::gpu::properties::DriverKind;
use crate::gpu::runtime::Runtime;
use magpie_types::kernel::{
    BlobCode, BufferParam, DeviceFeatures, GpuBackend, HiddenLength, HostKernel, HostKernelFn,
    HostLaunch, KernelBlob, KernelLayout, ParamLayout, PreOp, Precondition, ScalarTransport,
};
use magpie_types::{TypeId, fixed};

/// `data[i] = data[i] * factor + 1` for every element, `factor: u32`.
pub(crate) const SCALE: u64 = 1;
/// `out[i] = in[i] + 1` for every element of both; may be launched with one buffer twice.
pub(crate) const NEXT: u64 = 2;
/// Nothing, without parameters.
pub(crate) const EMPTY: u64 = 3;
/// `data[i]` in a loop of `rounds: u32` rounds: slow enough to be waited for.
pub(crate) const SPIN: u64 = 4;

/// A buffer parameter with elements of a type.
pub(crate) fn buffer(index: u32, elem: TypeId, stride: u32, writes: bool) -> ParamLayout {
    let (host_stride, device_stride) = (stride, stride);
    let binding = index;
    ParamLayout::Buffer(BufferParam { index, binding, elem, host_stride, device_stride, writes })
}

/// A `u32` parameter.
pub(crate) fn scalar(offset: u32) -> ParamLayout {
    ParamLayout::Scalar { offset, size: 4, ty: fixed::U32 }
}

/// The layout of a kernel of these tests for a back end: hidden lengths for SPIR-V and WGSL.
pub(crate) fn layout(entry: &str, params: Vec<ParamLayout>, backend: GpuBackend) -> KernelLayout {
    let scalars = params.iter().filter(|p| matches!(p, ParamLayout::Scalar { .. })).count() as u32;
    let scalar_size = (scalars * 4).next_multiple_of(16);
    let buffers = params.len() as u32 - scalars;
    let needs_lengths = matches!(backend, GpuBackend::Spv | GpuBackend::Wgsl);
    let hidden: Vec<HiddenLength> = (0..if needs_lengths { buffers } else { 0 })
        .map(|buffer| HiddenLength { buffer, offset: scalar_size + buffer * 4, size: 4 })
        .collect();
    let block_size = (scalar_size + hidden.len() as u32 * 4).next_multiple_of(16);
    let transport = match (backend, block_size) {
        (_, 0) => ScalarTransport::None,
        (GpuBackend::Spv, _) => ScalarTransport::PushConstants,
        (GpuBackend::Wgsl, _) => ScalarTransport::Uniform { binding: buffers },
        _ => ScalarTransport::Arguments,
    };
    KernelLayout {
        entry: entry.to_string(),
        params,
        scalar_size,
        hidden,
        block_size,
        transport,
        workgroup: [64, 1, 1],
        fixed_workgroup: backend == GpuBackend::Wgsl,
        shared_bytes: 0,
        features: DeviceFeatures::default(),
        preconditions: Vec::new(),
        prints: Vec::new(),
    }
}

/// Name and parameters of a kernel.
pub(crate) fn signature(kernel: u64) -> (&'static str, Vec<ParamLayout>) {
    let word = |index, writes| buffer(index, fixed::U32, 4, writes);
    match kernel {
        SCALE => ("scale", vec![word(0, true), scalar(0)]),
        NEXT => ("next", vec![word(0, false), word(1, true)]),
        EMPTY => ("empty", vec![]),
        _ => ("spin", vec![word(0, true), scalar(0)]),
    }
}

/// The blob of a host function.
pub(crate) fn host_blob(layout: KernelLayout, entry: HostKernelFn) -> KernelBlob {
    let code = BlobCode::Host(HostKernel { entry: entry as usize, frame_bytes: 0 });
    KernelBlob { backend: GpuBackend::Cpu, layout, code, unchecked: None }
}

/// The CPU blob of a kernel.
pub(crate) fn cpu_blob(kernel: u64) -> KernelBlob {
    let (name, params) = signature(kernel);
    let entry: HostKernelFn = match kernel {
        SCALE => scale,
        NEXT => next,
        EMPTY => empty,
        _ => spin,
    };
    host_blob(layout(name, params, GpuBackend::Cpu), entry)
}

/// The precondition that a one-dimensional launch stays inside a buffer.
pub(crate) fn extent_fits(buffer: u32) -> Precondition {
    Precondition { bound: vec![PreOp::Extent(0)], buffer }
}

/// Numbers of the invocations of workgroups `first .. last` of a one-dimensional launch.
unsafe fn invocations(launch: *const HostLaunch, first: u64, last: u64) -> std::ops::Range<u64> {
    // SAFETY: the runtime passes a valid launch.
    let block = u64::from(unsafe { (*launch).block[0] });
    first * block..last * block
}

/// The elements of a buffer argument that is written.
unsafe fn elements<'a>(launch: *const HostLaunch, index: usize) -> &'a mut [u32] {
    // SAFETY: the runtime passes a valid launch; invocations touch elements of their own.
    unsafe {
        let buffer = *(*launch).buffers.add(index);
        std::slice::from_raw_parts_mut(buffer.data.cast(), buffer.len as usize)
    }
}

unsafe fn scalar_argument(launch: *const HostLaunch) -> u32 {
    // SAFETY: the kernel has a scalar block.
    unsafe { (*launch).scalars.cast::<u32>().read() }
}

unsafe extern "C" fn scale(launch: *const HostLaunch, first: u64, last: u64, _: *mut u8) {
    // SAFETY: the layout of the kernel has one buffer and one scalar.
    let (range, data, factor) =
        unsafe { (invocations(launch, first, last), elements(launch, 0), scalar_argument(launch)) };
    for i in range {
        if let Some(element) = data.get_mut(i as usize) {
            *element = element.wrapping_mul(factor).wrapping_add(1);
        }
    }
}

unsafe extern "C" fn next(launch: *const HostLaunch, first: u64, last: u64, _: *mut u8) {
    // SAFETY: the layout of the kernel has two buffers, which may be one: so no references.
    unsafe {
        let (src, dst) = (*(*launch).buffers, *(*launch).buffers.add(1));
        for i in invocations(launch, first, last).filter(|&i| i < src.len && i < dst.len) {
            let value = src.data.cast::<u32>().add(i as usize).read();
            dst.data.cast::<u32>().add(i as usize).write(value.wrapping_add(1));
        }
    }
}

pub(crate) unsafe extern "C" fn empty(_: *const HostLaunch, _: u64, _: u64, _: *mut u8) {}

unsafe extern "C" fn spin(launch: *const HostLaunch, first: u64, last: u64, _: *mut u8) {
    // SAFETY: the layout of the kernel has one buffer and one scalar.
    let (range, data, rounds) =
        unsafe { (invocations(launch, first, last), elements(launch, 0), scalar_argument(launch)) };
    for i in range {
        if let Some(element) = data.get_mut(i as usize) {
            for round in 0..rounds {
                *element = std::hint::black_box(*element).wrapping_add(round);
            }
        }
    }
}

/// A configuration that names a driver.
pub(crate) fn only(driver: DriverKind) -> GpuConfig {
    GpuConfig { device: DeviceChoice::Driver(driver), ..GpuConfig::default() }
}

/// A runtime with the CPU blobs of all kernels.
pub(crate) fn cpu_runtime(config: GpuConfig) -> Runtime {
    let runtime = Runtime::new(config);
    for kernel in [SCALE, NEXT, EMPTY, SPIN] {
        runtime.register_kernel(kernel, signature(kernel).0, vec![cpu_blob(kernel)], None);
    }
    runtime
}

/// A one-dimensional launch of 64 invocations a workgroup.
pub(crate) fn line(groups: u32) -> LaunchSize {
    LaunchSize { grid: [groups, 1, 1], block: [64, 1, 1] }
}

/// The scalar block of one `u32`.
pub(crate) fn word(value: u32) -> [u8; 16] {
    let mut block = [0; 16];
    block[..4].copy_from_slice(&value.to_ne_bytes());
    block
}

/// The bytes of words.
pub(crate) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_ne_bytes()).collect()
}

/// The words of bytes.
pub(crate) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|&w| u32::from_ne_bytes(w)).collect()
}
