//! A kernel: its modules, and how it is launched.

use super::Vendor;
use super::api::Handle;
use super::core::Core;
use super::cubin::with_budget;
use super::cuda::MAX_DYNAMIC_SHARED;
use super::device::Inner;
use super::error::error;
use crate::gpu::device::{DeviceKernel, Dispatch, Serial};
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use magpie_types::kernel::{
    BlobCode, CUDA_STATIC_SHARED, KernelBlob, KernelLayout, ParamLayout, ScalarTransport,
};
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// First bytes of machine code.
const ELF: &[u8] = b"\x7fELF";

/// A kernel that the device has taken.
pub(super) struct StreamKernel {
    inner: Arc<Inner>,
    name: Box<str>,
    entry: CString,
    /// The checked body, then the unchecked one if there is one.
    codes: Vec<Vec<u8>>,
    arguments: Vec<Argument>,
    /// Invocations that the code's registers are shared out among.
    invocations: u32,
    /// Bytes of shared memory that a launch asks for.
    dynamic_shared: u32,
    variants: Mutex<Vec<Variant>>,
    places: Mutex<Places>,
    last_use: AtomicU64,
}

/// Where an argument comes from.
#[derive(Clone, Copy)]
enum Argument {
    /// The address of the buffer with this position.
    Buffer(u32),
    /// The scalar block, from this byte on.
    Block(u32),
}

/// A loaded module for a body and a register budget.
#[derive(Clone, Copy)]
struct Variant {
    body: usize,
    invocations: u32,
    module: Handle,
    function: Handle,
}

/// What a launch points to; kept, so that launches allocate nothing.
#[derive(Default)]
struct Places {
    addresses: Vec<u64>,
    /// Addresses of arguments, as numbers.
    arguments: Vec<usize>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StreamKernel {
    pub(super) fn new(
        inner: &Arc<Inner>,
        name: &str,
        blob: &KernelBlob,
    ) -> GpuResult<StreamKernel> {
        let (core, layout) = (&inner.core, &blob.layout);
        let arguments = check(core, name, layout)?;
        let mut codes = Vec::new();
        for code in std::iter::once(&blob.code).chain(&blob.unchecked) {
            match code {
                BlobCode::Bytes(bytes) => codes.push(bytes.clone()),
                BlobCode::Host(_) => {
                    return Err(invalid(core, name, "its blob is a host function"));
                }
            }
        }
        let Ok(entry) = CString::new(layout.entry.as_str()) else {
            return Err(invalid(core, name, "its entry point has no name"));
        };
        let is_dynamic =
            core.api.vendor == Vendor::Cuda && layout.shared_bytes > CUDA_STATIC_SHARED;
        let kernel = StreamKernel {
            inner: Arc::clone(inner),
            name: Box::from(name),
            entry,
            codes,
            arguments,
            invocations: layout.workgroup.iter().product(),
            dynamic_shared: if is_dynamic { layout.shared_bytes } else { 0 },
            variants: Mutex::default(),
            places: Mutex::default(),
            last_use: AtomicU64::new(0),
        };
        // Code that the device does not take is found out now.
        kernel.function(kernel.invocations, false)?;
        Ok(kernel)
    }

    /// The function for a number of invocations of a workgroup, loaded at its first use.
    fn function(&self, invocations: u32, unchecked: bool) -> GpuResult<Handle> {
        let core = &self.inner.core;
        // Registers that suffice for more invocations suffice for fewer.
        let needs_more = core.api.vendor == Vendor::Cuda && invocations > self.invocations;
        let invocations = if needs_more { invocations } else { self.invocations };
        let body = usize::from(unchecked && self.codes.len() > 1);
        let mut variants = lock(&self.variants);
        let known = variants.iter().find(|v| (v.body, v.invocations) == (body, invocations));
        if let Some(variant) = known {
            return Ok(variant.function);
        }
        core.enter()?;
        let code = &self.codes[body];
        let (module, function) = match needs_more && !code.starts_with(ELF) {
            true => self.load(&with_budget(code, invocations))?,
            false => self.load(code)?,
        };
        variants.push(Variant { body, invocations, module, function });
        Ok(function)
    }

    /// Loads code, which is PTX for CUDA or machine code, and finds the entry point.
    fn load(&self, code: &[u8]) -> GpuResult<(Handle, Handle)> {
        let core = &self.inner.core;
        if core.api.vendor == Vendor::Hip || code.starts_with(ELF) {
            return self.load_image(code);
        }
        let cubins = &self.inner.cubins;
        let image = cubins.assemble(core, &self.name, code)?;
        match self.load_image(&image) {
            // What was on disk may be of another machine.
            Err(failure) if core.works() && failure.kind == ErrorKind::InvalidKernel => {
                cubins.forget(code);
                let image = cubins.assemble(core, &self.name, code)?;
                self.load_image(&image)
            }
            other => other,
        }
    }

    fn load_image(&self, image: &[u8]) -> GpuResult<(Handle, Handle)> {
        let core = &self.inner.core;
        let what = |what: &str| {
            let label = core.adapter.properties.label();
            format!("cannot {what} kernel `{}` on {label}", self.name)
        };
        let (mut module, mut function) = (0, 0);
        // SAFETY: the image is machine code, which says its own length, or ends with NUL.
        let code = unsafe { (core.api.call.module_load)(&raw mut module, image.as_ptr().cast()) };
        core.check(code, || what("load"))?;
        // SAFETY: the module was just loaded; the name ends with NUL.
        let found = unsafe {
            let found =
                (core.api.call.module_function)(&raw mut function, module, self.entry.as_ptr());
            core.check(found, || what("find the entry point of")).and_then(|()| {
                match core.api.function_attribute {
                    Some(set) if self.dynamic_shared > 0 => {
                        let bytes = self.dynamic_shared as i32;
                        let code = set(function, MAX_DYNAMIC_SHARED, bytes);
                        core.check(code, || what("get the shared memory of"))
                    }
                    _ => Ok(()),
                }
            })
        };
        if let Err(failure) = found {
            // SAFETY: nothing uses the module.
            unsafe { (core.api.call.module_unload)(module) };
            return Err(failure);
        }
        Ok((module, function))
    }
}

fn invalid(core: &Core, name: &str, why: &str) -> GpuError {
    let label = core.adapter.properties.label();
    let message = format!("kernel `{name}` on {label}: {why}");
    error(core.api.vendor, ErrorKind::InvalidKernel, message)
}

/// Checks what the interface would take badly; the arguments in the kernel's order.
fn check(core: &Core, name: &str, layout: &KernelLayout) -> GpuResult<Vec<Argument>> {
    if !matches!(layout.transport, ScalarTransport::Arguments | ScalarTransport::None) {
        return Err(invalid(core, name, "its scalars are no arguments"));
    }
    if layout.hidden.iter().any(|h| h.size != 8) {
        return Err(invalid(core, name, "its buffer lengths do not have 8 bytes"));
    }
    let (bytes, limit) = (layout.shared_bytes, core.adapter.properties.limits.shared_bytes);
    if bytes > limit {
        let label = core.adapter.properties.label();
        let message =
            format!("kernel `{name}` has {bytes} bytes of shared memory; {label} allows {limit}");
        return Err(error(core.api.vendor, ErrorKind::ResourceExhausted, message));
    }
    let own = layout.params.iter().map(|param| match param {
        ParamLayout::Buffer(buffer) => Argument::Buffer(buffer.index),
        &ParamLayout::Scalar { offset, .. } => Argument::Block(offset),
    });
    Ok(own.chain(layout.hidden.iter().map(|h| Argument::Block(h.offset))).collect())
}

impl DeviceKernel for StreamKernel {
    fn launch(&self, dispatch: &Dispatch<'_>) -> GpuResult<Serial> {
        let core = &self.inner.core;
        let invocations = dispatch.block.iter().product();
        let function = self.function(invocations, dispatch.unchecked)?;
        let mut places = lock(&self.places);
        let Places { addresses, arguments } = &mut *places;
        addresses.clear();
        addresses.extend(dispatch.buffers.iter().map(|b| b.memory().handle + b.memory().offset));
        arguments.clear();
        arguments.extend(self.arguments.iter().map(|&argument| match argument {
            Argument::Buffer(n) => (&raw const addresses[n as usize]) as usize,
            Argument::Block(at) => dispatch.scalars.as_ptr().wrapping_add(at as usize) as usize,
        }));
        let ([gx, gy, gz], [bx, by, bz]) = (dispatch.grid, dispatch.block);
        let mut queue = self.inner.queue()?;
        let end = match dispatch.timing {
            Some(token) => Some(queue.measure(core, token)?),
            None => None,
        };
        // SAFETY: the arguments are as many and as large as the kernel's parameters by its layout;
        // they are read before the call returns.
        let code = unsafe {
            (core.api.call.launch)(
                function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                self.dynamic_shared,
                core.stream,
                arguments.as_mut_ptr().cast::<*mut c_void>(),
                std::ptr::null_mut(),
            )
        };
        let launched = core.check(code, || {
            let (label, name) = (core.adapter.properties.label(), &self.name);
            let (grid, block) = (dispatch.grid, dispatch.block);
            format!("launch of `{name}` on {label}, grid {grid:?}, block {block:?}")
        });
        if let Err(failure) = launched {
            end.into_iter().for_each(|end| queue.unmeasure(end));
            return Err(failure);
        }
        let serial = queue.queued();
        for buffer in dispatch.buffers {
            buffer.memory().last_use.store(serial, Ordering::Relaxed);
        }
        self.last_use.store(serial, Ordering::Relaxed);
        if let Some(end) = end {
            queue.measured(core, end)?;
        }
        if !dispatch.blocking {
            queue.mark(core)?;
        }
        Ok(Serial(serial))
    }
}

impl Drop for StreamKernel {
    fn drop(&mut self) {
        let core = &self.inner.core;
        // A device that fails to finish has nothing running any more.
        let _ = self.inner.wait_for(self.last_use.load(Ordering::Relaxed), None);
        let variants = self.variants.get_mut().unwrap_or_else(PoisonError::into_inner);
        if core.enter().is_ok() {
            for variant in variants {
                // SAFETY: the last launch is done, and nobody else has the module.
                unsafe { (core.api.call.module_unload)(variant.module) };
            }
        }
    }
}
