//! The library with its instance, and the adapters it knows.

use super::api::{
    self, AdapterInfo, Api, Chained, EnumerateOptions, InstanceDescriptor, InstanceExtras, Limits,
    Object, StringView, feature,
};
use super::error::error;
use crate::gpu::error::{ErrorKind, GpuResult};
use crate::gpu::properties::{DeviceLimits, DeviceProperties, DeviceType, DriverKind};
use libloading::Library;
use magpie_types::kernel::DeviceFeatures;
use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;

/// The variable that names the library.
const VARIABLE: &str = "MAGPIE_WGPU_LIBRARY";

/// The library's version is in the first byte of its version number.
const MAJOR_VERSION: u32 = 29;

/// An opened library.
pub(super) struct Instance {
    pub(super) api: Api,
    pub(super) handle: Object,
}

// SAFETY: the library's objects may be used from any thread.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

/// Where a library may be.
pub(super) fn candidates() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return vec![named.into()];
    }
    let mut out = Vec::new();
    // Programs that cargo runs: the tools of their workspace.
    if let Some(folder) = std::env::var_os("CARGO_MANIFEST_DIR") {
        let tools = PathBuf::from(folder);
        let mut paths = tools.ancestors().map(|a| a.join(".tools/wgpu-native/libwgpu_native.so"));
        out.extend(paths.find(|path| path.exists()));
    }
    out.extend(["libwgpu_native.so", "libwgpu_native.dylib", "wgpu_native.dll"].map(PathBuf::from));
    out
}

impl Instance {
    /// Opens the first library that is there.
    pub(super) fn open(candidates: &[PathBuf]) -> GpuResult<Instance> {
        let unavailable = |why: String| Err(error(ErrorKind::BackendUnavailable, why));
        let mut reasons = Vec::new();
        let library = candidates.iter().find_map(|path| {
            // SAFETY: loading runs the library's initialisers, which for a WebGPU library do nothing
            // that this process could not bear.
            match unsafe { Library::new(path) } {
                Ok(library) => Some((path, library)),
                Err(e) => {
                    reasons.push(format!("{} ({e})", path.display()));
                    None
                }
            }
        });
        let Some((path, library)) = library else {
            return unavailable(format!(
                "no WebGPU library: {}; install wgpu-native and name it in {VARIABLE}",
                reasons.join(", ")
            ));
        };
        let path = path.display();
        // SAFETY: of the functions only the version is called before it is known to be right.
        let functions = match unsafe { Api::new(library) } {
            Ok(functions) => functions,
            Err(name) => {
                return unavailable(format!(
                    "the WebGPU library {path} lacks the function {name}: it is no wgpu-native \
                     {MAJOR_VERSION}"
                ));
            }
        };
        // SAFETY: it takes nothing and gives a number.
        let version = unsafe { (functions.version)() } >> 24;
        if version != MAJOR_VERSION {
            return unavailable(format!(
                "the WebGPU library {path} is wgpu-native {version}; this runtime needs \
                 {MAJOR_VERSION}"
            ));
        }
        // Others are not even started: OpenGL would look for a display.
        let extras = InstanceExtras {
            chain: Chained { next: ptr::null(), kind: api::INSTANCE_EXTRAS },
            backends: api::NATIVE_BACKENDS,
            flags: api::DEFAULT_FLAGS,
            compilers: [0; 3],
            dxc_path: StringView::NONE,
            dxc: [0; 2],
            budgets: [ptr::null(); 2],
            display: [0; 3],
        };
        let descriptor = InstanceDescriptor {
            next: (&raw const extras).cast(),
            feature_count: 0,
            features: ptr::null(),
            limits: ptr::null(),
        };
        // SAFETY: both structures are those of the header, and read during the call.
        let handle = unsafe { (functions.create_instance)(&descriptor) };
        if handle.is_null() {
            return unavailable(format!("the WebGPU library {path} does not start"));
        }
        Ok(Instance { api: functions, handle })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: the instance is ours, and nothing of it is left.
        unsafe { (self.api.instance_release)(self.handle) };
    }
}

/// An adapter.
pub(super) struct Adapter {
    pub(super) instance: Arc<Instance>,
    pub(super) handle: Object,
    pub(super) properties: DeviceProperties,
    pub(super) limits: Limits,
}

// SAFETY: the library's objects may be used from any thread.
unsafe impl Send for Adapter {}

impl Drop for Adapter {
    fn drop(&mut self) {
        // SAFETY: the adapter is ours.
        unsafe { (self.instance.api.adapter_release)(self.handle) };
    }
}

/// The adapters of an instance, preferred ones first.
pub(super) fn adapters(instance: &Arc<Instance>) -> GpuResult<Vec<Adapter>> {
    let api = &instance.api;
    let options = EnumerateOptions { next: ptr::null(), backends: api::NATIVE_BACKENDS };
    // SAFETY: the first call counts, the second fills as many places.
    let handles = unsafe {
        let count = (api.enumerate_adapters)(instance.handle, &options, ptr::null_mut());
        let mut handles: Vec<Object> = vec![ptr::null_mut(); count];
        let filled = (api.enumerate_adapters)(instance.handle, &options, handles.as_mut_ptr());
        handles.truncate(filled);
        handles
    };
    let mut out: Vec<Adapter> = handles.into_iter().map(|h| describe(instance, h)).collect();
    if out.is_empty() {
        return Err(error(ErrorKind::BackendUnavailable, "the WebGPU library finds no adapter"));
    }
    out.sort_by_key(|a| a.properties.device_type);
    Ok(out)
}

fn describe(instance: &Arc<Instance>, handle: Object) -> Adapter {
    let api = &instance.api;
    let none = StringView::NONE;
    let mut info = AdapterInfo {
        next: ptr::null(),
        vendor: none,
        architecture: none,
        device: none,
        description: none,
        backend: 0,
        adapter_type: 0,
        vendor_id: 0,
        device_id: 0,
        subgroup_min: 0,
        subgroup_max: 0,
    };
    let mut limits = Limits::empty();
    // SAFETY: the adapter is valid and both structures are there to be filled; the texts are read
    // before they are given back.
    let (name, description, has_f16, has_subgroups) = unsafe {
        (api.adapter_info)(handle, &mut info);
        (api.adapter_limits)(handle, &mut limits);
        let texts = (info.device.to_text(), info.description.to_text());
        let has = |name| (api.adapter_has_feature)(handle, name) != 0;
        let (f16, subgroups) = (has(feature::SHADER_F16), has(feature::NATIVE_SUBGROUP));
        (texts.0, texts.1, f16, subgroups)
    };
    let backend = match info.backend {
        4 => "Direct3D 12",
        5 => "Metal",
        6 => "Vulkan",
        _ => "unknown",
    };
    let (subgroup_size, adapter_type) = (info.subgroup_min.max(1), info.adapter_type);
    // SAFETY: it was filled by the library, and nothing of it is used afterwards.
    unsafe { (api.adapter_info_free)(info) };
    limits.next = ptr::null();
    let mut features = DeviceFeatures::default();
    if has_f16 {
        features |= DeviceFeatures::FLOAT16;
    }
    if has_subgroups {
        features |= DeviceFeatures::SUBGROUP;
    }
    let properties = DeviceProperties {
        name,
        driver: DriverKind::WebGpu,
        driver_info: format!("wgpu-native {MAJOR_VERSION} over {backend}: {description}"),
        device_type: match adapter_type {
            1 => DeviceType::Discrete,
            2 => DeviceType::Integrated,
            3 => DeviceType::Software,
            _ => DeviceType::Other,
        },
        uuid: None,
        pci: None,
        features,
        limits: DeviceLimits {
            workgroup_size: limits.workgroup_size,
            workgroup_invocations: limits.workgroup_invocations,
            workgroup_count: [limits.workgroups_per_dimension; 3],
            shared_bytes: limits.workgroup_storage_bytes,
            buffers: limits.storage_buffers_per_stage,
            buffer_bytes: limits.storage_binding_bytes,
            push_constant_bytes: 0,
            uniform_bytes: u32::try_from(limits.uniform_binding_bytes).unwrap_or(u32::MAX),
        },
        subgroup_size,
        architecture: String::new(),
        // WebGPU does not tell; a buffer has at most as much.
        memory_total: limits.buffer_bytes,
    };
    Adapter { instance: Arc::clone(instance), handle, properties, limits }
}
