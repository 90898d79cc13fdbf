//! The Vulkan library and an instance of it.

use super::error::{error, failure};
use super::reports::{Reports, receive};
use crate::gpu::cache_file::user_cache_folder;
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use ash::vk;
use magpie_types::kernel::DeviceFeatures;
use std::ffi::{CStr, c_char};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The layer that checks how we use Vulkan.
const VALIDATION: &CStr = c"VK_LAYER_KHRONOS_validation";

/// The library's names, the best one first.
const LIBRARIES: &[&str] = if cfg!(windows) {
    &["vulkan-1.dll"]
} else if cfg!(target_os = "macos") {
    &["libvulkan.dylib", "libvulkan.1.dylib", "libMoltenVK.dylib"]
} else {
    &["libvulkan.so.1", "libvulkan.so"]
};

/// Functions without which the instance is of no use.
const NEEDED: &[&CStr] = &[
    c"vkEnumeratePhysicalDevices",
    c"vkGetPhysicalDeviceProperties2",
    c"vkGetPhysicalDeviceFeatures2",
    c"vkGetPhysicalDeviceMemoryProperties2",
    c"vkGetPhysicalDeviceQueueFamilyProperties",
    c"vkEnumerateDeviceExtensionProperties",
    c"vkCreateDevice",
    c"vkGetDeviceProcAddr",
    c"vkDestroyInstance",
];

/// How to start Vulkan.
#[derive(Clone, Debug, Default)]
pub(crate) struct VulkanOptions {
    /// This library instead of the system's.
    pub(crate) library: Option<PathBuf>,
    /// With the validation layer.
    pub(crate) validate: bool,
    /// Bind buffers through descriptor sets even where they could be pushed.
    pub(crate) no_push_descriptors: bool,
    /// Do not map device memory even where it could be.
    pub(crate) no_mapped_memory: bool,
    /// Features that devices pretend to lack.
    pub(crate) hidden_features: DeviceFeatures,
    /// Where to keep compiled pipelines between processes, if anywhere.
    pub(crate) cache_folder: Option<PathBuf>,
}

impl VulkanOptions {
    /// What the environment asks for: the validation layer with `MAGPIE_VK_VALIDATE=1`, the
    /// user's cache folder.
    pub(crate) fn from_environment(hidden_features: DeviceFeatures) -> VulkanOptions {
        let validate = std::env::var_os("MAGPIE_VK_VALIDATE").is_some_and(|v| v == "1");
        let cache_folder = user_cache_folder();
        VulkanOptions { validate, hidden_features, cache_folder, ..VulkanOptions::default() }
    }
}

/// Held while an instance starts or ends: loaders, layers and drivers change tables of the process
/// then, and not all of them lock these.
static STARTING: Mutex<()> = Mutex::new(());

/// A Vulkan instance; keeps the library loaded.
pub(super) struct Instance {
    raw: ash::Instance,
    messenger: Option<Messenger>,
    reports: Box<Reports>,
    _entry: ash::Entry,
}

struct Messenger {
    functions: ash::ext::debug_utils::Instance,
    handle: vk::DebugUtilsMessengerEXT,
}

impl Instance {
    /// Loads the library and makes an instance.
    ///
    /// # Errors
    /// [`ErrorKind::BackendUnavailable`] when the library is missing, incomplete or does not start.
    pub(super) fn new(options: &VulkanOptions) -> GpuResult<Instance> {
        let mut instance = Instance::start(options)?;
        if options.validate {
            instance.listen()?;
        }
        Ok(instance)
    }

    fn start(options: &VulkanOptions) -> GpuResult<Instance> {
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = load(options)?;
        // SAFETY: the entry points were loaded; the pointers live through the calls.
        let (extensions, layers) = unsafe {
            let extensions = entry.enumerate_instance_extension_properties(None);
            let layers = entry.enumerate_instance_layer_properties();
            let failed = |code| failure(code, "cannot list the extensions of Vulkan");
            (extensions.map_err(failed)?, layers.map_err(failed)?)
        };
        let has = |name: &CStr| extensions.iter().any(|e| c_name(&e.extension_name) == name);
        if options.validate && !layers.iter().any(|l| c_name(&l.layer_name) == VALIDATION) {
            let message = "MAGPIE_VK_VALIDATE is set but the layer VK_LAYER_KHRONOS_validation is \
                           not installed (Debian package vulkan-validationlayers)";
            return Err(error(ErrorKind::BackendUnavailable, message));
        }
        let mut enabled_extensions: Vec<*const c_char> = Vec::new();
        let mut flags = vk::InstanceCreateFlags::empty();
        if has(ash::khr::portability_enumeration::NAME) {
            enabled_extensions.push(ash::khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }
        let mut enabled_layers: Vec<*const c_char> = Vec::new();
        if options.validate {
            // These extensions come with the layer.
            enabled_extensions.push(ash::ext::debug_utils::NAME.as_ptr());
            enabled_extensions.push(ash::ext::validation_features::NAME.as_ptr());
            enabled_layers.push(VALIDATION.as_ptr());
        }
        let application = vk::ApplicationInfo::default()
            .application_name(c"magpie")
            .engine_name(c"magpie")
            .api_version(vk::API_VERSION_1_3);
        let reports = Box::<Reports>::default();
        let mut messages = messenger_info(&reports);
        let mut info = vk::InstanceCreateInfo::default()
            .flags(flags)
            .application_info(&application)
            .enabled_extension_names(&enabled_extensions)
            .enabled_layer_names(&enabled_layers);
        // Hazards between commands are checked too.
        let checks = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
        let mut features =
            vk::ValidationFeaturesEXT::default().enabled_validation_features(&checks);
        if options.validate {
            info = info.push_next(&mut messages).push_next(&mut features);
        }
        // SAFETY: everything that the info points to lives through the call.
        let raw = unsafe { entry.create_instance(&info, None) }
            .map_err(|code| failure(code, "Vulkan does not start (vkCreateInstance)"))?;
        check_functions(&entry, &raw)?;
        Ok(Instance { raw, messenger: None, reports, _entry: entry })
    }

    fn listen(&mut self) -> GpuResult<()> {
        let functions = ash::ext::debug_utils::Instance::new(&self._entry, &self.raw);
        let info = messenger_info(&self.reports);
        // SAFETY: the extension is enabled; the reports outlive the messenger (see `drop`).
        let handle = unsafe { functions.create_debug_utils_messenger(&info, None) }
            .map_err(|code| failure(code, "cannot receive validation messages"))?;
        self.messenger = Some(Messenger { functions, handle });
        Ok(())
    }

    pub(super) fn raw(&self) -> &ash::Instance {
        &self.raw
    }

    pub(super) fn reports(&self) -> &Reports {
        &self.reports
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ending = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: devices hold the instance, so none is left; each handle is destroyed once.
        unsafe {
            if let Some(Messenger { functions, handle }) = &self.messenger {
                functions.destroy_debug_utils_messenger(*handle, None);
            }
            self.raw.destroy_instance(None);
        }
    }
}

/// Checks the functions of a new instance, because the bindings panic when a missing one is called.
/// An instance without them is left alone, since it may lack the one that destroys it.
fn check_functions(entry: &ash::Entry, instance: &ash::Instance) -> GpuResult<()> {
    for name in NEEDED {
        // SAFETY: the instance is valid and the name is a C string.
        let address = unsafe { entry.get_instance_proc_addr(instance.handle(), name.as_ptr()) };
        if address.is_none() {
            return Err(lacking(name));
        }
    }
    Ok(())
}

fn lacking(name: &CStr) -> GpuError {
    let message = format!("the Vulkan library lacks the function {}", name.to_string_lossy());
    error(ErrorKind::BackendUnavailable, message)
}

fn messenger_info(reports: &Reports) -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(
            vk::DebugUtilsMessageSeverityFlagsEXT::WARNING
                | vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
        )
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
        .pfn_user_callback(Some(receive))
        .user_data(std::ptr::from_ref(reports).cast_mut().cast())
}

fn load(options: &VulkanOptions) -> GpuResult<ash::Entry> {
    let names: Vec<PathBuf> = match &options.library {
        Some(path) => vec![path.clone()],
        None => LIBRARIES.iter().map(PathBuf::from).collect(),
    };
    let mut reasons = Vec::new();
    for name in &names {
        // SAFETY: a Vulkan library may be loaded at any time.
        match unsafe { ash::Entry::load_from(name) } {
            Ok(entry) => return checked(entry),
            Err(reason) => reasons.push(reason.to_string()),
        }
    }
    let message = format!("no Vulkan library: {}", reasons.join("; "));
    Err(error(ErrorKind::BackendUnavailable, message))
}

/// Checks the functions that are needed before there is an instance, because the bindings panic
/// when a missing one is called.
fn checked(entry: ash::Entry) -> GpuResult<ash::Entry> {
    let global = [
        c"vkCreateInstance",
        c"vkEnumerateInstanceExtensionProperties",
        c"vkEnumerateInstanceLayerProperties",
    ];
    for name in global {
        // SAFETY: these functions are asked for without an instance; the name is a C string.
        let address = unsafe { entry.get_instance_proc_addr(vk::Instance::null(), name.as_ptr()) };
        if address.is_none() {
            return Err(lacking(name));
        }
    }
    // SAFETY: an instance need not exist for this call.
    let version = unsafe { entry.try_enumerate_instance_version() }.ok().flatten();
    let version = version.unwrap_or(vk::API_VERSION_1_0);
    if version < vk::API_VERSION_1_1 {
        let message = "the Vulkan library offers version 1.0; 1.3 is needed";
        return Err(error(ErrorKind::BackendUnavailable, message));
    }
    Ok(entry)
}

/// A name in a fixed array of characters.
pub(super) fn c_name(chars: &[c_char]) -> &CStr {
    // SAFETY: characters and bytes have the same layout.
    let bytes = unsafe { std::slice::from_raw_parts(chars.as_ptr().cast::<u8>(), chars.len()) };
    CStr::from_bytes_until_nul(bytes).unwrap_or_default()
}
