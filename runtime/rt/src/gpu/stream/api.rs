//! The functions of CUDA's driver interface and of HIP, by one set of names.

use super::Vendor;
use super::error::{error, failure, is_sticky};
use super::{cuda, hip};
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;

/// A pointer to something of the interface's own: context, stream, event, module, function, pool.
pub(super) type Handle = usize;

/// What functions return; 0 is success.
pub(super) type Code = c_int;

/// Declares [`Functions`] and how it is loaded: name, arguments, the symbol in CUDA and in HIP.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($arg:ty),*) $cuda:literal $hip:literal;)*) => {
        /// What both interfaces must have.
        pub(super) struct Functions {
            $($(#[$doc])* pub(super) $name: unsafe extern "system" fn($($arg),*) -> Code,)*
        }

        impl Functions {
            fn load(library: &Loaded) -> GpuResult<Functions> {
                Ok(Functions {
                    $($name: library.needed(match library.vendor {
                        Vendor::Cuda => $cuda,
                        Vendor::Hip => $hip,
                    })?,)*
                })
            }
        }
    };
}

functions! {
    init(c_uint) "cuInit" "hipInit";
    driver_version(*mut c_int) "cuDriverGetVersion" "hipDriverGetVersion";
    device_count(*mut c_int) "cuDeviceGetCount" "hipGetDeviceCount";
    device_get(*mut c_int, c_int) "cuDeviceGet" "hipDeviceGet";
    device_name(*mut c_char, c_int, c_int) "cuDeviceGetName" "hipDeviceGetName";
    /// Value, attribute, device.
    device_attribute(*mut c_int, c_int, c_int) "cuDeviceGetAttribute" "hipDeviceGetAttribute";
    device_total_memory(*mut usize, c_int) "cuDeviceTotalMem_v2" "hipDeviceTotalMem";
    /// Free and total bytes of the current device.
    memory_info(*mut usize, *mut usize) "cuMemGetInfo_v2" "hipMemGetInfo";
    alloc(*mut u64, usize) "cuMemAlloc_v2" "hipMalloc";
    free(u64) "cuMemFree_v2" "hipFree";
    /// Pinned host memory: address, bytes, flags.
    host_alloc(*mut *mut c_void, usize, c_uint) "cuMemHostAlloc" "hipHostMalloc";
    host_free(*mut c_void) "cuMemFreeHost" "hipHostFree";
    /// The device's address of pinned host memory.
    host_device_address(*mut u64, *mut c_void, c_uint)
        "cuMemHostGetDevicePointer_v2" "hipHostGetDevicePointer";
    copy_to_device(u64, *const c_void, usize, Handle) "cuMemcpyHtoDAsync_v2" "hipMemcpyHtoDAsync";
    copy_to_host(*mut c_void, u64, usize, Handle) "cuMemcpyDtoHAsync_v2" "hipMemcpyDtoHAsync";
    copy_on_device(u64, u64, usize, Handle) "cuMemcpyDtoDAsync_v2" "hipMemcpyDtoDAsync";
    /// Address, word, number of words.
    fill_words(u64, c_uint, usize, Handle) "cuMemsetD32Async" "hipMemsetD32Async";
    stream_create(*mut Handle, c_uint) "cuStreamCreate" "hipStreamCreateWithFlags";
    stream_destroy(Handle) "cuStreamDestroy_v2" "hipStreamDestroy";
    stream_synchronize(Handle) "cuStreamSynchronize" "hipStreamSynchronize";
    event_create(*mut Handle, c_uint) "cuEventCreate" "hipEventCreateWithFlags";
    event_destroy(Handle) "cuEventDestroy_v2" "hipEventDestroy";
    /// Event, stream.
    event_record(Handle, Handle) "cuEventRecord" "hipEventRecord";
    event_query(Handle) "cuEventQuery" "hipEventQuery";
    event_synchronize(Handle) "cuEventSynchronize" "hipEventSynchronize";
    /// Milliseconds between two events.
    event_elapsed(*mut f32, Handle, Handle) "cuEventElapsedTime" "hipEventElapsedTime";
    module_load(*mut Handle, *const c_void) "cuModuleLoadData" "hipModuleLoadData";
    module_unload(Handle) "cuModuleUnload" "hipModuleUnload";
    module_function(*mut Handle, Handle, *const c_char) "cuModuleGetFunction" "hipModuleGetFunction";
    /// Function, grid, block, dynamic shared bytes, stream, addresses of the arguments, extra.
    launch(
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
        *mut *mut c_void, *mut *mut c_void
    ) "cuLaunchKernel" "hipModuleLaunchKernel";
}

/// How a thread comes to use a device.
pub(super) enum Current {
    /// It makes the device's primary context its own.
    Context {
        retain: unsafe extern "system" fn(*mut Handle, c_int) -> Code,
        release: unsafe extern "system" fn(c_int) -> Code,
        set: unsafe extern "system" fn(Handle) -> Code,
    },
    /// It names the device.
    Device { set: unsafe extern "system" fn(c_int) -> Code },
}

/// Allocation in the order of a stream.
pub(super) struct StreamPool {
    pub(super) alloc: unsafe extern "system" fn(*mut u64, usize, Handle) -> Code,
    pub(super) free: unsafe extern "system" fn(u64, Handle) -> Code,
    pub(super) of_device: unsafe extern "system" fn(*mut Handle, c_int) -> Code,
    pub(super) get: unsafe extern "system" fn(Handle, c_int, *mut c_void) -> Code,
    pub(super) set: unsafe extern "system" fn(Handle, c_int, *mut c_void) -> Code,
}

/// CUDA's way from PTX to machine code.
pub(super) struct Linker {
    /// Number of options, options, their values, state.
    pub(super) create:
        unsafe extern "system" fn(c_uint, *mut c_int, *mut *mut c_void, *mut Handle) -> Code,
    /// State, kind of input, data, bytes, name, number of options, options, their values.
    pub(super) add: unsafe extern "system" fn(
        Handle,
        c_int,
        *mut c_void,
        usize,
        *const c_char,
        c_uint,
        *mut c_int,
        *mut *mut c_void,
    ) -> Code,
    /// State, the machine code and its bytes, which live as long as the state.
    pub(super) complete: unsafe extern "system" fn(Handle, *mut *mut c_void, *mut usize) -> Code,
    pub(super) destroy: unsafe extern "system" fn(Handle) -> Code,
}

/// Gives the name of an error.
enum ErrorName {
    /// Through its second argument.
    Out(unsafe extern "system" fn(Code, *mut *const c_char) -> Code),
    /// As its result.
    Result(unsafe extern "system" fn(Code) -> *const c_char),
}

/// An opened library.
pub(super) struct Api {
    pub(super) vendor: Vendor,
    pub(super) call: Functions,
    pub(super) current: Current,
    pub(super) pool: Option<StreamPool>,
    pub(super) linker: Option<Linker>,
    pub(super) uuid: Option<unsafe extern "system" fn(*mut [u8; 16], c_int) -> Code>,
    /// Function, attribute, value.
    pub(super) function_attribute: Option<unsafe extern "system" fn(Handle, c_int, c_int) -> Code>,
    /// HIP's structure of properties, of whatever version.
    pub(super) properties: Option<unsafe extern "system" fn(*mut c_void, c_int) -> Code>,
    error_name: Option<ErrorName>,
    /// As CUDA counts: 12090 is 12.9.
    pub(super) version: c_int,
    _library: Library,
}

/// A library while its functions are looked up.
struct Loaded {
    vendor: Vendor,
    path: String,
    library: Library,
}

impl Loaded {
    fn open(vendor: Vendor, library: Option<&Path>) -> GpuResult<Loaded> {
        let named: Vec<String> = match library {
            Some(path) => vec![path.to_string_lossy().into_owned()],
            None => match vendor {
                Vendor::Cuda => cuda::LIBRARIES,
                Vendor::Hip => hip::LIBRARIES,
            }
            .iter()
            .map(|name| (*name).to_string())
            .collect(),
        };
        let mut reason = String::new();
        for path in named {
            // SAFETY: the vendor's library initialises itself when it is loaded; that is what the
            // user of a device asks for.
            match unsafe { Library::new(&path) } {
                Ok(library) => return Ok(Loaded { vendor, path, library }),
                Err(why) if reason.is_empty() => reason = describe(&path, &why),
                Err(_) => {}
            }
        }
        let message = format!("no {} library: {reason}", vendor.name());
        Err(error(vendor, ErrorKind::BackendUnavailable, message))
    }

    /// A function of the type that the caller says.
    fn find<T: Copy>(&self, symbol: &str) -> Option<T> {
        let name = CString::new(symbol).ok()?;
        // SAFETY: the types in this file are those that the interfaces document.
        unsafe { self.library.get::<T>(name.as_bytes_with_nul()) }.ok().map(|found| *found)
    }

    fn needed<T: Copy>(&self, symbol: &str) -> GpuResult<T> {
        self.find(symbol).ok_or_else(|| {
            let (path, name) = (&self.path, self.vendor.name());
            let message =
                format!("{path} lacks {symbol}: update the {name} driver of this machine");
            error(self.vendor, ErrorKind::BackendUnavailable, message)
        })
    }

    fn current(&self) -> GpuResult<Current> {
        Ok(match self.vendor {
            Vendor::Cuda => Current::Context {
                retain: self.needed("cuDevicePrimaryCtxRetain")?,
                release: self.needed("cuDevicePrimaryCtxRelease_v2")?,
                set: self.needed("cuCtxSetCurrent")?,
            },
            Vendor::Hip => Current::Device { set: self.needed("hipSetDevice")? },
        })
    }

    fn pool(&self) -> Option<StreamPool> {
        let name = |cuda, hip| match self.vendor {
            Vendor::Cuda => cuda,
            Vendor::Hip => hip,
        };
        Some(StreamPool {
            alloc: self.find(name("cuMemAllocAsync", "hipMallocAsync"))?,
            free: self.find(name("cuMemFreeAsync", "hipFreeAsync"))?,
            of_device: self
                .find(name("cuDeviceGetDefaultMemPool", "hipDeviceGetDefaultMemPool"))?,
            get: self.find(name("cuMemPoolGetAttribute", "hipMemPoolGetAttribute"))?,
            set: self.find(name("cuMemPoolSetAttribute", "hipMemPoolSetAttribute"))?,
        })
    }

    fn linker(&self) -> Option<Linker> {
        Some(Linker {
            create: self.find("cuLinkCreate_v2")?,
            add: self.find("cuLinkAddData_v2")?,
            complete: self.find("cuLinkComplete")?,
            destroy: self.find("cuLinkDestroy")?,
        })
    }

    fn error_name(&self) -> Option<ErrorName> {
        match self.vendor {
            Vendor::Cuda => self.find("cuGetErrorName").map(ErrorName::Out),
            Vendor::Hip => self
                .find("hipDrvGetErrorName")
                .map(ErrorName::Out)
                .or_else(|| self.find("hipGetErrorName").map(ErrorName::Result)),
        }
    }
}

/// The loader's reason, which names the file.
fn describe(path: &str, error: &libloading::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    if line.contains(path) { line.to_string() } else { format!("{path}: {line}") }
}

impl Api {
    /// Opens the library and initialises the interface.
    ///
    /// # Errors
    /// [`ErrorKind::BackendUnavailable`] when the library is missing, incomplete or does not start.
    pub(super) fn load(vendor: Vendor, library: Option<&Path>) -> GpuResult<Api> {
        let loaded = Loaded::open(vendor, library)?;
        let is_cuda = vendor == Vendor::Cuda;
        let mut api = Api {
            vendor,
            call: Functions::load(&loaded)?,
            current: loaded.current()?,
            pool: loaded.pool(),
            linker: if is_cuda { loaded.linker() } else { None },
            uuid: loaded.find(if is_cuda { "cuDeviceGetUuid" } else { "hipDeviceGetUuid" }),
            function_attribute: if is_cuda { loaded.find("cuFuncSetAttribute") } else { None },
            properties: match vendor {
                Vendor::Cuda => None,
                Vendor::Hip => hip::PROPERTIES.iter().find_map(|symbol| loaded.find(symbol)),
            },
            error_name: loaded.error_name(),
            version: 0,
            _library: loaded.library,
        };
        // SAFETY: the interface is initialised before anything else.
        let code = unsafe { (api.call.init)(0) };
        if code != 0 && !cuda::is_no_device(code) {
            let failure = api.failure(code, &format!("{} does not start", vendor.name()));
            return Err(GpuError { kind: ErrorKind::BackendUnavailable, ..failure });
        }
        // SAFETY: the place lives through the call.
        unsafe { (api.call.driver_version)(&raw mut api.version) };
        Ok(api)
    }

    /// The name of an error code, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub(super) fn name_of(&self, code: Code) -> String {
        let name = match &self.error_name {
            None => std::ptr::null(),
            Some(ErrorName::Out(f)) => {
                let mut name = std::ptr::null();
                // SAFETY: the place lives through the call.
                unsafe { f(code, &raw mut name) };
                name
            }
            // SAFETY: the function takes any code.
            Some(ErrorName::Result(f)) => unsafe { f(code) },
        };
        if name.is_null() {
            return "unknown error".to_string();
        }
        // SAFETY: names are texts of the library that end with NUL.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }

    /// The error for a code that a function returned. `what` is the operation with its sizes and
    /// device.
    pub(super) fn failure(&self, code: Code, what: &str) -> GpuError {
        failure(self.vendor, code, &self.name_of(code), what)
    }

    /// Whether a code means success.
    ///
    /// # Errors
    /// What it means otherwise.
    pub(super) fn check(&self, code: Code, what: impl FnOnce() -> String) -> GpuResult<()> {
        if code == 0 { Ok(()) } else { Err(self.failure(code, &what())) }
    }

    /// Whether the device is of no use any more after this error.
    pub(super) fn is_fatal(&self, error: &GpuError) -> bool {
        is_sticky(error.code)
    }
}
