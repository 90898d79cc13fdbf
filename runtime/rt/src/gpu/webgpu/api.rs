//! wgpu-native's C interface, as far as the driver uses it: `webgpu.h` and `wgpu.h` of version 29.
//!
//! Structures and numbers are those of the headers. Objects are addresses that mean nothing here.

use libloading::Library;
use std::ffi::{c_char, c_void};

/// A reference to an object of the library.
pub(super) type Object = *mut c_void;
/// A `WGPUBool`.
pub(super) type Bool = u32;
/// Data of a caller that comes back in a callback.
pub(super) type UserData = *mut c_void;

/// Text with a length; not terminated.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct StringView {
    pub(super) data: *const c_char,
    pub(super) length: usize,
}

impl StringView {
    /// No text.
    pub(super) const NONE: StringView = StringView { data: std::ptr::null(), length: usize::MAX };

    /// A view of text that the library reads during the call.
    pub(super) fn of(text: &str) -> StringView {
        StringView { data: text.as_ptr().cast(), length: text.len() }
    }

    /// A copy of the text.
    ///
    /// # Safety
    /// `data` is null or as long as `length` says; terminated when that is `usize::MAX`.
    pub(super) unsafe fn to_text(self) -> String {
        if self.data.is_null() {
            return String::new();
        }
        // SAFETY: as the caller promises.
        let bytes = unsafe {
            match self.length {
                usize::MAX => std::ffi::CStr::from_ptr(self.data).to_bytes(),
                length => std::slice::from_raw_parts(self.data.cast(), length),
            }
        };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// The head of a structure that extends another.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Chained {
    pub(super) next: *const Chained,
    pub(super) kind: u32,
}

/// `WGPUSType_InstanceExtras`, an extension of wgpu-native.
pub(super) const INSTANCE_EXTRAS: u32 = 0x0003_0004;
/// `WGPUInstanceFlag_Default`.
pub(super) const DEFAULT_FLAGS: u64 = 1 << 24;
/// `WGPUSType_ShaderSourceWGSL`.
pub(super) const SHADER_SOURCE_WGSL: u32 = 2;
/// `WGPUCallbackMode_AllowProcessEvents`.
pub(super) const ALLOW_PROCESS_EVENTS: u32 = 2;
/// `WGPUShaderStage_Compute`.
pub(super) const STAGE_COMPUTE: u64 = 4;
/// `WGPUMapMode_Read`.
pub(super) const MAP_READ_MODE: u64 = 1;
/// The status of every callback that went well.
pub(super) const SUCCESS: u32 = 1;

/// Backends that are no emulation: Vulkan, Metal, Direct3D 12 (`WGPUInstanceBackend`).
pub(super) const NATIVE_BACKENDS: u64 = 1 | 1 << 2 | 1 << 3;

/// `WGPUFeatureName`.
pub(super) mod feature {
    pub(in super::super) const SHADER_F16: u32 = 0x0b;
    /// wgpu-native's own: it does not report the standard one.
    pub(in super::super) const NATIVE_SUBGROUP: u32 = 0x0003_0021;
}

/// `WGPUBufferUsage`.
pub(super) mod usage {
    pub(in super::super) const MAP_READ: u64 = 1;
    pub(in super::super) const COPY_SRC: u64 = 4;
    pub(in super::super) const COPY_DST: u64 = 8;
    pub(in super::super) const UNIFORM: u64 = 0x40;
    pub(in super::super) const STORAGE: u64 = 0x80;
}

/// `WGPUErrorType`, and the filters of error scopes.
pub(super) mod error_type {
    pub(in super::super) const NONE: u32 = 1;
    pub(in super::super) const OUT_OF_MEMORY: u32 = 3;
    /// Filters: validation, out of memory. The library ends the process when asked for internal
    /// errors, which come as uncaptured ones.
    pub(in super::super) const FILTERS: [u32; 2] = [1, 2];
}

/// `WGPUBufferBindingType`.
pub(super) mod binding {
    pub(in super::super) const UNIFORM: u32 = 2;
    pub(in super::super) const STORAGE: u32 = 3;
    pub(in super::super) const READ_ONLY_STORAGE: u32 = 4;
}

#[repr(C)]
pub(super) struct InstanceDescriptor {
    pub(super) next: *const Chained,
    pub(super) feature_count: usize,
    pub(super) features: *const u32,
    pub(super) limits: *const c_void,
}

/// What follows the flags is zero, which means the defaults.
#[repr(C)]
pub(super) struct InstanceExtras {
    pub(super) chain: Chained,
    pub(super) backends: u64,
    pub(super) flags: u64,
    pub(super) compilers: [u32; 3],
    pub(super) dxc_path: StringView,
    pub(super) dxc: [u32; 2],
    pub(super) budgets: [*const u8; 2],
    pub(super) display: [usize; 3],
}

#[repr(C)]
pub(super) struct EnumerateOptions {
    pub(super) next: *const Chained,
    pub(super) backends: u64,
}

#[repr(C)]
pub(super) struct AdapterInfo {
    pub(super) next: *const Chained,
    pub(super) vendor: StringView,
    pub(super) architecture: StringView,
    pub(super) device: StringView,
    pub(super) description: StringView,
    pub(super) backend: u32,
    pub(super) adapter_type: u32,
    pub(super) vendor_id: u32,
    pub(super) device_id: u32,
    pub(super) subgroup_min: u32,
    pub(super) subgroup_max: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Limits {
    pub(super) next: *const Chained,
    /// Textures, bind groups, dynamic buffers, samplers.
    others: [u32; 11],
    pub(super) storage_buffers_per_stage: u32,
    storage_textures_per_stage: u32,
    uniform_buffers_per_stage: u32,
    pub(super) uniform_binding_bytes: u64,
    pub(super) storage_binding_bytes: u64,
    pub(super) uniform_alignment: u32,
    storage_alignment: u32,
    vertex_buffers: u32,
    pub(super) buffer_bytes: u64,
    /// Of vertices and colours.
    drawing: [u32; 5],
    pub(super) workgroup_storage_bytes: u32,
    pub(super) workgroup_invocations: u32,
    pub(super) workgroup_size: [u32; 3],
    pub(super) workgroups_per_dimension: u32,
    immediate_bytes: u32,
}

impl Limits {
    /// Room for the library to fill.
    pub(super) fn empty() -> Limits {
        Limits {
            next: std::ptr::null(),
            others: [0; 11],
            storage_buffers_per_stage: 0,
            storage_textures_per_stage: 0,
            uniform_buffers_per_stage: 0,
            uniform_binding_bytes: 0,
            storage_binding_bytes: 0,
            uniform_alignment: 0,
            storage_alignment: 0,
            vertex_buffers: 0,
            buffer_bytes: 0,
            drawing: [0; 5],
            workgroup_storage_bytes: 0,
            workgroup_invocations: 0,
            workgroup_size: [0; 3],
            workgroups_per_dimension: 0,
            immediate_bytes: 0,
        }
    }
}

/// A callback with the structure that tells the library about it.
#[repr(C)]
pub(super) struct CallbackInfo<F> {
    pub(super) next: *const Chained,
    pub(super) mode: u32,
    pub(super) callback: F,
    pub(super) userdata1: UserData,
    pub(super) userdata2: UserData,
}

/// As [`CallbackInfo`], without a mode.
#[repr(C)]
pub(super) struct UncapturedErrorInfo {
    pub(super) next: *const Chained,
    pub(super) callback: UncapturedError,
    pub(super) userdata1: UserData,
    pub(super) userdata2: UserData,
}

pub(super) type RequestDevice = unsafe extern "C" fn(u32, Object, StringView, UserData, UserData);
pub(super) type DeviceLost =
    unsafe extern "C" fn(*const Object, u32, StringView, UserData, UserData);
pub(super) type UncapturedError =
    unsafe extern "C" fn(*const Object, u32, StringView, UserData, UserData);
pub(super) type PopErrorScope = unsafe extern "C" fn(u32, u32, StringView, UserData, UserData);
pub(super) type BufferMap = unsafe extern "C" fn(u32, StringView, UserData, UserData);
pub(super) type WorkDone = unsafe extern "C" fn(u32, StringView, UserData, UserData);

#[repr(C)]
pub(super) struct QueueDescriptor {
    pub(super) next: *const Chained,
    pub(super) label: StringView,
}

#[repr(C)]
pub(super) struct DeviceDescriptor {
    pub(super) next: *const Chained,
    pub(super) label: StringView,
    pub(super) feature_count: usize,
    pub(super) features: *const u32,
    pub(super) limits: *const Limits,
    pub(super) queue: QueueDescriptor,
    pub(super) lost: CallbackInfo<DeviceLost>,
    pub(super) error: UncapturedErrorInfo,
}

#[repr(C)]
pub(super) struct BufferDescriptor {
    pub(super) next: *const Chained,
    pub(super) label: StringView,
    pub(super) usage: u64,
    pub(super) size: u64,
    pub(super) mapped: Bool,
}

#[repr(C)]
pub(super) struct ShaderSource {
    pub(super) chain: Chained,
    pub(super) code: StringView,
}

#[repr(C)]
pub(super) struct ShaderDescriptor {
    pub(super) next: *const Chained,
    pub(super) label: StringView,
}

#[repr(C)]
pub(super) struct PipelineDescriptor {
    pub(super) next: *const Chained,
    pub(super) label: StringView,
    pub(super) layout: Object,
    pub(super) stage_next: *const Chained,
    pub(super) module: Object,
    pub(super) entry: StringView,
    pub(super) constant_count: usize,
    pub(super) constants: *const c_void,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct BufferBinding {
    pub(super) next: *const Chained,
    pub(super) kind: u32,
    pub(super) dynamic_offset: Bool,
    pub(super) min_size: u64,
}

/// A binding; what is said of samplers and textures is zero, which means that it is neither.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct LayoutEntry {
    pub(super) next: *const Chained,
    pub(super) binding: u32,
    pub(super) visibility: u64,
    pub(super) array_size: u32,
    pub(super) buffer: BufferBinding,
    pub(super) sampler: [usize; 2],
    pub(super) texture: [usize; 3],
    pub(super) storage_texture: [usize; 3],
}

#[repr(C)]
pub(super) struct GroupLayoutDescriptor {
    pub(super) next: *const Chained,
    pub(super) label: StringView,
    pub(super) count: usize,
    pub(super) entries: *const LayoutEntry,
}

#[repr(C)]
pub(super) struct PipelineLayoutDescriptor {
    pub(super) next: *const Chained,
    pub(super) label: StringView,
    pub(super) count: usize,
    pub(super) layouts: *const Object,
    pub(super) immediate_bytes: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct GroupEntry {
    pub(super) next: *const Chained,
    pub(super) binding: u32,
    pub(super) buffer: Object,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) sampler: Object,
    pub(super) texture: Object,
}

#[repr(C)]
pub(super) struct GroupDescriptor {
    pub(super) next: *const Chained,
    pub(super) label: StringView,
    pub(super) layout: Object,
    pub(super) count: usize,
    pub(super) entries: *const GroupEntry,
}

macro_rules! functions {
    ($($field:ident $symbol:literal ($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The functions of an opened library.
        pub(super) struct Api {
            $(pub(super) $field: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            /// Last, so that it is closed last.
            _library: Library,
        }

        impl Api {
            /// The names of the functions.
            #[cfg(test)]
            pub(super) const NAMES: &[&str] = &[$($symbol),*];

            /// Looks every function up.
            ///
            /// # Errors
            /// The name of the first one that is missing.
            ///
            /// # Safety
            /// The library is a wgpu-native of a version that this file describes.
            pub(super) unsafe fn new(library: Library) -> Result<Api, &'static str> {
                $(
                    // SAFETY: the type is that of the header, as the caller promises.
                    let $field = *unsafe { library.get(concat!($symbol, "\0")) }
                        .map_err(|_| $symbol)?;
                )*
                Ok(Api { $($field,)* _library: library })
            }
        }
    };
}

functions! {
    version "wgpuGetVersion" () -> u32;
    create_instance "wgpuCreateInstance" (*const InstanceDescriptor) -> Object;
    enumerate_adapters "wgpuInstanceEnumerateAdapters" (Object, *const EnumerateOptions, *mut Object) -> usize;
    process_events "wgpuInstanceProcessEvents" (Object);
    instance_release "wgpuInstanceRelease" (Object);
    adapter_info "wgpuAdapterGetInfo" (Object, *mut AdapterInfo) -> u32;
    adapter_info_free "wgpuAdapterInfoFreeMembers" (AdapterInfo);
    adapter_limits "wgpuAdapterGetLimits" (Object, *mut Limits) -> u32;
    adapter_has_feature "wgpuAdapterHasFeature" (Object, u32) -> Bool;
    request_device "wgpuAdapterRequestDevice" (Object, *const DeviceDescriptor, CallbackInfo<RequestDevice>) -> u64;
    adapter_release "wgpuAdapterRelease" (Object);
    device_queue "wgpuDeviceGetQueue" (Object) -> Object;
    device_release "wgpuDeviceRelease" (Object);
    queue_release "wgpuQueueRelease" (Object);
    poll "wgpuDevicePoll" (Object, Bool, *const u64) -> Bool;
    push_error_scope "wgpuDevicePushErrorScope" (Object, u32);
    pop_error_scope "wgpuDevicePopErrorScope" (Object, CallbackInfo<PopErrorScope>) -> u64;
    create_buffer "wgpuDeviceCreateBuffer" (Object, *const BufferDescriptor) -> Object;
    buffer_destroy "wgpuBufferDestroy" (Object);
    buffer_release "wgpuBufferRelease" (Object);
    buffer_map "wgpuBufferMapAsync" (Object, u64, usize, usize, CallbackInfo<BufferMap>) -> u64;
    buffer_mapped "wgpuBufferGetConstMappedRange" (Object, usize, usize) -> *const c_void;
    buffer_unmap "wgpuBufferUnmap" (Object);
    create_shader "wgpuDeviceCreateShaderModule" (Object, *const ShaderDescriptor) -> Object;
    shader_release "wgpuShaderModuleRelease" (Object);
    create_group_layout "wgpuDeviceCreateBindGroupLayout" (Object, *const GroupLayoutDescriptor) -> Object;
    group_layout_release "wgpuBindGroupLayoutRelease" (Object);
    create_pipeline_layout "wgpuDeviceCreatePipelineLayout" (Object, *const PipelineLayoutDescriptor) -> Object;
    pipeline_layout_release "wgpuPipelineLayoutRelease" (Object);
    create_pipeline "wgpuDeviceCreateComputePipeline" (Object, *const PipelineDescriptor) -> Object;
    pipeline_release "wgpuComputePipelineRelease" (Object);
    create_group "wgpuDeviceCreateBindGroup" (Object, *const GroupDescriptor) -> Object;
    group_release "wgpuBindGroupRelease" (Object);
    create_encoder "wgpuDeviceCreateCommandEncoder" (Object, *const c_void) -> Object;
    encoder_copy "wgpuCommandEncoderCopyBufferToBuffer" (Object, Object, u64, Object, u64, u64);
    encoder_clear "wgpuCommandEncoderClearBuffer" (Object, Object, u64, u64);
    encoder_finish "wgpuCommandEncoderFinish" (Object, *const c_void) -> Object;
    encoder_release "wgpuCommandEncoderRelease" (Object);
    begin_pass "wgpuCommandEncoderBeginComputePass" (Object, *const c_void) -> Object;
    pass_pipeline "wgpuComputePassEncoderSetPipeline" (Object, Object);
    pass_group "wgpuComputePassEncoderSetBindGroup" (Object, u32, Object, usize, *const u32);
    pass_dispatch "wgpuComputePassEncoderDispatchWorkgroups" (Object, u32, u32, u32);
    pass_end "wgpuComputePassEncoderEnd" (Object);
    pass_release "wgpuComputePassEncoderRelease" (Object);
    commands_release "wgpuCommandBufferRelease" (Object);
    submit "wgpuQueueSubmitForIndex" (Object, usize, *const Object) -> u64;
    write_buffer "wgpuQueueWriteBuffer" (Object, Object, u64, *const c_void, usize);
    on_work_done "wgpuQueueOnSubmittedWorkDone" (Object, CallbackInfo<WorkDone>) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a C compiler lays the structures of the headers out.
    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<StringView>(), 16);
        assert_eq!(size_of::<InstanceDescriptor>(), 32);
        assert_eq!(size_of::<InstanceExtras>(), 112);
        assert_eq!(std::mem::offset_of!(InstanceExtras, dxc_path), 48);
        assert_eq!(size_of::<AdapterInfo>(), 96);
        assert_eq!(size_of::<Limits>(), 152);
        assert_eq!(std::mem::offset_of!(Limits, uniform_binding_bytes), 64);
        assert_eq!(std::mem::offset_of!(Limits, buffer_bytes), 96);
        assert_eq!(std::mem::offset_of!(Limits, workgroup_storage_bytes), 124);
        assert_eq!(size_of::<CallbackInfo<BufferMap>>(), 40);
        assert_eq!(size_of::<DeviceDescriptor>(), 144);
        assert_eq!(size_of::<BufferDescriptor>(), 48);
        assert_eq!(size_of::<PipelineDescriptor>(), 80);
        assert_eq!(size_of::<LayoutEntry>(), 120);
        assert_eq!(size_of::<GroupEntry>(), 56);
    }
}
