//! The CUDA driver without anything around it: what launches and copies cost at least.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use libloading::Library;

type Handle = *mut c_void;
type Launch = unsafe extern "C" fn(
    function: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: Handle,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> c_int;

/// The functions of `cuda.h` that are needed here, in the primary context of the first device.
pub(super) struct Driver {
    alloc: unsafe extern "C" fn(*mut u64, usize) -> c_int,
    fill: unsafe extern "C" fn(u64, u8, usize) -> c_int,
    copy: unsafe extern "C" fn(u64, u64, usize, Handle) -> c_int,
    read: unsafe extern "C" fn(*mut c_void, u64, usize) -> c_int,
    launch: Launch,
    wait: unsafe extern "C" fn(Handle) -> c_int,
    stream: Handle,
    load: unsafe extern "C" fn(*mut Handle, *const c_void) -> c_int,
    function: unsafe extern "C" fn(*mut Handle, Handle, *const c_char) -> c_int,
    /// The functions live as long as this.
    _library: Library,
}

/// Memory of the device; it is there until the process ends.
#[derive(Clone, Copy)]
pub(super) struct Memory(u64);

/// A kernel.
pub(super) struct Function(Handle);

fn check(what: &str, result: c_int) {
    assert!(result == 0, "{what}: CUDA error {result}");
}

impl Driver {
    /// # Panics
    /// When there is no driver or no device: then there is nothing to compare with.
    pub(super) fn new() -> Driver {
        // SAFETY: starting the library runs nothing but its own initialisers.
        let library = unsafe { Library::new("libcuda.so.1") };
        let library = library.unwrap_or_else(|error| panic!("this needs a CUDA driver: {error}"));
        // SAFETY: the types are those of the header; the library is kept with the functions, and
        // what is passed to them lives during the calls.
        unsafe {
            macro_rules! get {
                ($name:literal) => {
                    *library.get($name).unwrap_or_else(|error| panic!("libcuda: {error}"))
                };
            }
            let init: unsafe extern "C" fn(c_uint) -> c_int = get!(b"cuInit");
            let device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int = get!(b"cuDeviceGet");
            let retain: unsafe extern "C" fn(*mut Handle, c_int) -> c_int =
                get!(b"cuDevicePrimaryCtxRetain");
            let enter: unsafe extern "C" fn(Handle) -> c_int = get!(b"cuCtxSetCurrent");
            let new_stream: unsafe extern "C" fn(*mut Handle, c_uint) -> c_int =
                get!(b"cuStreamCreate");
            let (mut number, mut context, mut stream) = (0, null_mut(), null_mut());
            check("cuInit", init(0));
            check("cuDeviceGet", device(&mut number, 0));
            check("cuDevicePrimaryCtxRetain", retain(&mut context, number));
            check("cuCtxSetCurrent", enter(context));
            // One that does not wait for the default stream.
            check("cuStreamCreate", new_stream(&mut stream, 1));
            Driver {
                alloc: get!(b"cuMemAlloc_v2"),
                fill: get!(b"cuMemsetD8_v2"),
                copy: get!(b"cuMemcpyDtoDAsync_v2"),
                read: get!(b"cuMemcpyDtoH_v2"),
                launch: get!(b"cuLaunchKernel"),
                wait: get!(b"cuStreamSynchronize"),
                stream,
                load: get!(b"cuModuleLoadData"),
                function: get!(b"cuModuleGetFunction"),
                _library: library,
            }
        }
    }

    /// Zeroed memory.
    pub(super) fn memory(&self, bytes: usize) -> Memory {
        let mut memory = 0;
        // SAFETY: the address is that of a live variable.
        check("cuMemAlloc", unsafe { (self.alloc)(&mut memory, bytes) });
        let memory = Memory(memory);
        self.clear(memory, bytes);
        memory
    }

    pub(super) fn clear(&self, memory: Memory, bytes: usize) {
        // SAFETY: the memory was allocated with at least this size.
        check("cuMemsetD8", unsafe { (self.fill)(memory.0, 0, bytes) });
    }

    /// A kernel of machine code.
    pub(super) fn function(&self, code: &[u8], name: &std::ffi::CStr) -> Function {
        let (mut module, mut function) = (null_mut(), null_mut());
        // SAFETY: the code is a whole cubin, the name a C string.
        unsafe {
            check("cuModuleLoadData", (self.load)(&mut module, code.as_ptr().cast()));
            check("cuModuleGetFunction", (self.function)(&mut function, module, name.as_ptr()));
        }
        Function(function)
    }

    /// Queues a launch of one workgroup of 256 for a kernel that takes one address and one number.
    pub(super) fn launch(&self, function: &Function, memory: Memory, n: u32) {
        let (mut memory, mut n) = (memory.0, n);
        let mut params = [(&raw mut memory).cast::<c_void>(), (&raw mut n).cast()];
        // SAFETY: the kernel has these two parameters, which are copied during the call.
        let result = unsafe {
            let params = params.as_mut_ptr();
            (self.launch)(function.0, 1, 1, 1, 256, 1, 1, 0, self.stream, params, null_mut())
        };
        check("cuLaunchKernel", result);
    }

    /// Queues a copy.
    pub(super) fn copy(&self, to: Memory, from: Memory, bytes: usize) {
        // SAFETY: both were allocated with at least this size.
        check("cuMemcpyDtoDAsync", unsafe { (self.copy)(to.0, from.0, bytes, self.stream) });
    }

    /// Waits for what is queued.
    pub(super) fn wait(&self) {
        // SAFETY: the stream is live.
        check("cuStreamSynchronize", unsafe { (self.wait)(self.stream) });
    }

    /// The first word of some memory.
    pub(super) fn first_word(&self, memory: Memory) -> u32 {
        let mut word = 0u32;
        // SAFETY: the memory has at least four bytes.
        check("cuMemcpyDtoH", unsafe { (self.read)((&raw mut word).cast(), memory.0, 4) });
        word
    }
}
