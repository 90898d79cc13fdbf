//! [`Buffer`]: typed memory of a device, and the transfers to and from it.

use super::context::Context;
use super::device::{DeviceMemory, MemoryHint};
use super::error::{ErrorKind, GpuError, GpuResult};
use super::profile::recorder::Detail;
use super::widen::{device_stride, narrow, widen};
use magpie_types::TypeId;
use std::sync::Arc;

/// Usage flags of the C ABI: storage, uniform, transfer source, transfer destination.
const KNOWN_USAGE: u32 = 0b1111;

/// Elements that are widened or narrowed at a time: 64 KiB on the device.
const WIDEN_ELEMENTS: usize = 16 * 1024;

/// The elements of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element {
    /// Type id, to tell small scalars from small structs.
    pub ty: TypeId,
    /// Bytes between elements in host arrays.
    pub size: u32,
}

/// A counted handle to memory of a device that holds `len` elements. The memory is freed when the
/// last handle is gone and the launches that use it are done.
#[derive(Clone, Debug)]
pub struct Buffer(Arc<State>);

#[derive(Debug)]
struct State {
    context: Arc<Context>,
    memory: DeviceMemory,
    element: Element,
    device_stride: u32,
    len: u64,
    bytes: u64,
}

impl Drop for State {
    fn drop(&mut self) {
        self.context.device().free(&self.memory);
        self.context.account.freed(self.bytes);
    }
}

impl Buffer {
    /// A zero-filled buffer. `usage` is 0 or a combination of the flags of the C ABI.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`]; [`ErrorKind::BufferError`] for an impossible element or flag.
    pub fn new(
        context: &Arc<Context>,
        element: Element,
        len: u64,
        usage: u32,
        hint: MemoryHint,
    ) -> GpuResult<Buffer> {
        let buffer = Buffer::uninit(context, element, len, usage, hint)?;
        let token =
            context.recorder.begin("buffer_fill", Detail::Transfer { bytes: buffer.0.bytes });
        let filled = context.device().fill_zero(&buffer.0.memory, buffer.0.bytes);
        context.recorder.end(token);
        filled.map(|()| buffer)
    }

    /// A buffer with the elements in `data`, as many as it holds whole ones.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn from_bytes(
        context: &Arc<Context>,
        element: Element,
        data: &[u8],
        usage: u32,
    ) -> GpuResult<Buffer> {
        let len = data.len().checked_div(element.size as usize).unwrap_or_default() as u64;
        if len == 0 {
            return Buffer::new(context, element, 0, usage, MemoryHint::Auto);
        }
        let buffer = Buffer::uninit(context, element, len, usage, MemoryHint::Auto)?;
        buffer.write(0, data)?;
        Ok(buffer)
    }

    fn uninit(
        context: &Arc<Context>,
        element: Element,
        len: u64,
        usage: u32,
        hint: MemoryHint,
    ) -> GpuResult<Buffer> {
        if element.size == 0 {
            let message = "elements of a buffer must have at least one byte";
            return Err(context.error(ErrorKind::BufferError, message));
        }
        if usage & !KNOWN_USAGE != 0 {
            let message = format!(
                "usage flags {usage:#x} of a buffer contain unknown bits: 1 is storage, 2 uniform, \
                 4 transfer source, 8 transfer destination"
            );
            return Err(context.error(ErrorKind::BufferError, message));
        }
        let stride = device_stride(context.properties().features, element.ty, element.size);
        // An empty buffer still has one element for kernels that read a clamped index.
        let Some(bytes) = len.max(1).checked_mul(u64::from(stride)) else {
            let device = context.properties().label();
            let message = format!("a buffer of {len} elements of {stride} bytes on {device}");
            return Err(context.error(ErrorKind::OutOfMemory, message));
        };
        let memory = context.device().allocate(bytes, hint)?;
        context.account.allocated(bytes);
        let context = Arc::clone(context);
        Ok(Buffer(Arc::new(State { context, memory, element, device_stride: stride, len, bytes })))
    }

    /// The device of the buffer.
    pub fn context(&self) -> &Arc<Context> {
        &self.0.context
    }

    /// Number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Type and host size of the elements.
    pub fn element(&self) -> Element {
        self.0.element
    }

    /// Bytes between elements on the device.
    pub fn device_stride(&self) -> u32 {
        self.0.device_stride
    }

    pub(crate) fn memory(&self) -> &DeviceMemory {
        &self.0.memory
    }

    /// Bytes that a kernel may see: those of the elements, or of one element of an empty buffer.
    pub(crate) fn bound_bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Copies whole elements from `src` to elements `first ..`.
    ///
    /// # Errors
    /// [`ErrorKind::BufferError`] when they do not fit.
    pub fn write(&self, first: u64, src: &[u8]) -> GpuResult<()> {
        let state = &*self.0;
        let count = state.whole_elements("write to", src.len())?;
        state.check_range("write to", first, count)?;
        if count == 0 {
            return Ok(());
        }
        let token = state.context.recorder.begin("buffer_write", state.transfer(count));
        let done = state.upload(first, src);
        state.context.recorder.end(token);
        done
    }

    /// Copies elements `first ..` to `dst`, as many as it holds, after all work queued before.
    ///
    /// # Errors
    /// [`ErrorKind::BufferError`] when the buffer has fewer; faults of queued work.
    pub fn read(&self, first: u64, dst: &mut [u8]) -> GpuResult<()> {
        let state = &*self.0;
        let count = state.whole_elements("read of", dst.len())?;
        state.check_range("read of", first, count)?;
        state.context.settle_if_limited()?;
        let token = state.context.recorder.begin("buffer_read", state.transfer(count));
        let done = state.download(first, dst);
        state.context.recorder.end(token);
        done
    }

    /// Whether both handles are of one buffer.
    pub fn same(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// All elements as the host stores them.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] of the host; faults of queued work.
    pub fn read_all(&self) -> GpuResult<Vec<u8>> {
        let state = &*self.0;
        let mut bytes = Vec::new();
        let size = usize::try_from(state.len.saturating_mul(u64::from(state.element.size)));
        let reserved = size.ok().filter(|&size| bytes.try_reserve_exact(size).is_ok());
        let Some(size) = reserved else {
            let (len, size) = (state.len, state.element.size);
            let message = format!("no host memory for {len} elements of {size} bytes");
            return Err(state.context.error(ErrorKind::OutOfMemory, message));
        };
        bytes.resize(size, 0);
        self.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies all elements of `self` to the first elements of `dst`, on the device.
    ///
    /// # Errors
    /// [`ErrorKind::BufferError`] when `dst` is shorter, of another device, or has elements of
    /// another size.
    pub fn copy_to(&self, dst: &Buffer) -> GpuResult<()> {
        let (src, dst) = (&*self.0, &*dst.0);
        let context = &src.context;
        if !Arc::ptr_eq(context, &dst.context) {
            let (from, to) = (context.properties().label(), dst.context.properties().label());
            let message = format!(
                "copy from a buffer of {from} to one of {to}: read it to an array and write that"
            );
            return Err(context.error(ErrorKind::BufferError, message));
        }
        if (src.element.size, src.device_stride) != (dst.element.size, dst.device_stride) {
            let message = format!(
                "copy of elements of {} bytes to a buffer with elements of {} bytes",
                src.element.size, dst.element.size
            );
            return Err(context.error(ErrorKind::BufferError, message));
        }
        if src.len > dst.len {
            let (from, to) = (src.len, dst.len);
            let message = format!("copy of {from} elements to a buffer of {to} elements");
            return Err(context.error(ErrorKind::BufferError, message));
        }
        if src.len == 0 || std::ptr::eq(src, dst) {
            return Ok(());
        }
        let token = context.recorder.begin("buffer_copy", src.transfer(src.len));
        let done = context.device().copy(&src.memory, &dst.memory, src.bytes);
        context.recorder.end(token);
        done
    }
}

impl State {
    fn transfer(&self, count: u64) -> Detail {
        Detail::Transfer { bytes: count * u64::from(self.element.size) }
    }

    fn whole_elements(&self, what: &str, bytes: usize) -> GpuResult<u64> {
        let size = self.element.size as usize;
        if bytes.is_multiple_of(size) {
            return Ok((bytes / size) as u64);
        }
        let message =
            format!("{what} a buffer: {bytes} bytes are no whole elements of {size} bytes");
        Err(self.buffer_error(message))
    }

    fn check_range(&self, what: &str, first: u64, count: u64) -> GpuResult<()> {
        match first.checked_add(count) {
            Some(end) if end <= self.len => Ok(()),
            _ => {
                let len = self.len;
                let message = format!(
                    "{what} a buffer: {count} elements from element {first} leave its {len} elements"
                );
                Err(self.buffer_error(message))
            }
        }
    }

    fn buffer_error(&self, message: String) -> GpuError {
        self.context.error(ErrorKind::BufferError, message)
    }

    fn upload(&self, first: u64, src: &[u8]) -> GpuResult<()> {
        let (size, stride) = (self.element.size as usize, u64::from(self.device_stride));
        let device = self.context.device();
        if size as u64 == stride {
            return device.upload(&self.memory, first * stride, src);
        }
        let mut words = vec![0; 4 * WIDEN_ELEMENTS.min(src.len() / size)];
        for (n, part) in src.chunks(size * WIDEN_ELEMENTS).enumerate() {
            let wide = &mut words[..part.len() / size * 4];
            widen(size, part, wide);
            let at = first + (n * WIDEN_ELEMENTS) as u64;
            device.upload(&self.memory, at * stride, wide)?;
        }
        Ok(())
    }

    fn download(&self, first: u64, dst: &mut [u8]) -> GpuResult<()> {
        let (size, stride) = (self.element.size as usize, u64::from(self.device_stride));
        let device = self.context.device();
        if size as u64 == stride {
            return device.download(&self.memory, first * stride, dst);
        }
        let mut words = vec![0; 4 * WIDEN_ELEMENTS.min(dst.len() / size)];
        for (n, part) in dst.chunks_mut(size * WIDEN_ELEMENTS).enumerate() {
            let wide = &mut words[..part.len() / size * 4];
            let at = first + (n * WIDEN_ELEMENTS) as u64;
            device.download(&self.memory, at * stride, wide)?;
            narrow(size, wide, part);
        }
        Ok(())
    }
}
