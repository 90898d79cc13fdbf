//! `mp_rt_gpu_init` and `mp_rt_gpu_register_kernels`: the kernels of a linked program.

use crate::gpu::registry::RegisteredBlob;
use crate::gpu::runtime::Runtime;
use crate::panic::guarded;
use magpie_types::kernel::{BlobCode, GpuBackend, HostKernel, KernelBlob};
use magpie_types::kernel_codec;
use std::ffi::{CStr, c_char};

/// A blob of a kernel (GPU specification, section 10.1).
///
/// `data` is a container as `magpie_types::kernel_codec` writes it, which holds the layout beside
/// the code. For back end 0x40 (CPU) it is an [`MpRtGpuHostKernel`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MpRtGpuKernelBlob {
    /// Number of the back end.
    pub backend: u8,
    /// First byte.
    pub data: *const u8,
    /// Number of bytes.
    pub data_len: u32,
}

/// A parameter of a kernel (base ABI).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MpRtGpuParam {
    /// 1 buffer, 2 scalar, 3 hidden length (not counted in `num_params`).
    pub kind: u8,
    #[allow(missing_docs)]
    pub reserved0: u8,
    #[allow(missing_docs)]
    pub reserved1: u16,
    /// Type of the element or scalar.
    pub type_id: u32,
    /// Binding of a buffer, offset of a scalar.
    pub offset_or_binding: u32,
    /// Size of the element or scalar in bytes.
    pub size: u32,
}

/// A kernel of a program (GPU specification, section 10.1).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MpRtGpuKernelEntry {
    /// FNV-1a hash of the stable id.
    pub sid_hash: u64,
    /// Number of entries of `blobs`.
    pub num_blobs: u32,
    /// One entry a back end.
    pub blobs: *const MpRtGpuKernelBlob,
    /// Number of entries of `params`, hidden lengths not counted.
    pub num_params: u32,
    /// The parameters in order.
    pub params: *const MpRtGpuParam,
    /// Number of buffers among them.
    pub num_buffers: u32,
    /// Bytes of the scalar block.
    pub push_const_size: u32,
}

/// The CPU blob of a linked program: functions that the linker placed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MpRtGpuHostKernel {
    /// The layout as `magpie_types::kernel_codec::encode_layout` writes it.
    pub layout: *const u8,
    /// Number of bytes of the layout.
    pub layout_len: u64,
    /// A `HostKernelFn` (`magpie_types::kernel`).
    pub entry: usize,
    /// Its unchecked body, or 0.
    pub unchecked: usize,
    /// Scratch memory of `entry`, in bytes for each invocation.
    pub frame_bytes: u32,
    /// The same of `unchecked`.
    pub unchecked_frame_bytes: u32,
    /// The kernel's name in messages, a C string or null.
    pub name: *const c_char,
}

/// See [`magpie_types::abi::RtFn::GpuInit`]. Drivers are loaded when they are first needed, so this
/// only makes the runtime ready.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mp_rt_gpu_init() {
    guarded(|| {
        Runtime::global();
    });
}

/// Registers the kernels of a program. A blob that cannot be read makes launches that need it fail
/// with `InvalidKernel` and the reason. Everything is copied.
///
/// # Safety
/// `entries` has `count` entries, and what they point to has the lengths they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_gpu_register_kernels(
    entries: *const MpRtGpuKernelEntry,
    count: u32,
) {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        for entry in unsafe { list(entries, count) } {
            // SAFETY: forwarded from the caller.
            let blobs = unsafe { list(entry.blobs, entry.num_blobs) };
            let blobs: Vec<RegisteredBlob> = blobs
                .iter()
                // SAFETY: forwarded from the caller.
                .map(|blob| (blob.backend, unsafe { read_blob(entry, blob) }))
                .collect();
            let layouts = blobs.iter().filter_map(|(_, blob)| blob.as_ref().ok());
            let name = layouts.map(|blob| blob.layout.entry.clone()).next();
            let name = name.unwrap_or_else(|| format!("{:#018x}", entry.sid_hash));
            Runtime::global().register_read_kernel(entry.sid_hash, &name, blobs);
        }
    });
}

/// # Safety
/// `start` is null, or has `count` entries that stay unchanged during `'a`.
unsafe fn list<'a, T>(start: *const T, count: u32) -> &'a [T] {
    if start.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: forwarded from the caller.
    unsafe { std::slice::from_raw_parts(start, count as usize) }
}

/// # Safety
/// The blob's data has the length it says; the addresses in a host kernel are right.
unsafe fn read_blob(
    entry: &MpRtGpuKernelEntry,
    blob: &MpRtGpuKernelBlob,
) -> Result<KernelBlob, String> {
    let backend = GpuBackend::from_u8(blob.backend)
        .ok_or_else(|| format!("unknown back end {}", blob.backend))?;
    // SAFETY: forwarded from the caller.
    let data = unsafe { list(blob.data, blob.data_len) };
    let read = match backend {
        // SAFETY: forwarded from the caller.
        GpuBackend::Cpu => unsafe { read_host_kernel(data) }?,
        GpuBackend::Spv
        | GpuBackend::Msl
        | GpuBackend::Ptx
        | GpuBackend::Hip
        | GpuBackend::Wgsl
        | GpuBackend::Interp => kernel_codec::decode(data).map_err(|e| e.to_string())?,
    };
    if read.backend != backend {
        return Err(format!("a {} blob in the place of {}", read.backend.name(), backend.name()));
    }
    let layout = &read.layout;
    let (params, buffers) = (layout.visible_params().len(), layout.num_arguments());
    let counts = (params, buffers, layout.scalar_size as usize);
    let said =
        (entry.num_params as usize, entry.num_buffers as usize, entry.push_const_size as usize);
    if counts != said {
        return Err(format!(
            "(parameters, buffers, scalar bytes) of the blob are {counts:?}, of its entry {said:?}"
        ));
    }
    Ok(read)
}

/// # Safety
/// If `data` is long enough it is an [`MpRtGpuHostKernel`] with right addresses.
unsafe fn read_host_kernel(data: &[u8]) -> Result<KernelBlob, String> {
    if data.len() != size_of::<MpRtGpuHostKernel>() {
        let (found, expected) = (data.len(), size_of::<MpRtGpuHostKernel>());
        return Err(format!("a CPU blob has {expected} bytes, not {found}"));
    }
    // SAFETY: the length is right; the caller says that it is one.
    let host = unsafe { data.as_ptr().cast::<MpRtGpuHostKernel>().read_unaligned() };
    let length =
        u32::try_from(host.layout_len).map_err(|_| "its layout is too long".to_string())?;
    // SAFETY: forwarded from the caller.
    let layout = unsafe { list(host.layout, length) };
    let mut layout = kernel_codec::decode_layout(layout).map_err(|e| e.to_string())?;
    if !host.name.is_null() {
        // SAFETY: forwarded from the caller.
        layout.entry = unsafe { CStr::from_ptr(host.name) }.to_string_lossy().into_owned();
    }
    let code = |entry, frame_bytes| BlobCode::Host(HostKernel { entry, frame_bytes });
    let unchecked = (host.unchecked != 0).then(|| code(host.unchecked, host.unchecked_frame_bytes));
    let code = code(host.entry, host.frame_bytes);
    Ok(KernelBlob { backend: GpuBackend::Cpu, layout, code, unchecked })
}
