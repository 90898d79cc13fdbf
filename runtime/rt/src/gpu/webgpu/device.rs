//! The device as the runtime sees it: memory, transfers, waiting.

use super::api::{
    ALLOW_PROCESS_EVENTS, BufferDescriptor, CallbackInfo, MAP_READ_MODE, Object, SUCCESS,
    StringView, UserData, usage,
};
use super::core::Core;
use super::error::error;
use super::instance::Adapter;
use super::kernel::WebGpuKernel;
use crate::gpu::device::{Device, DeviceKernel, DeviceMemory, MemoryHint, Serial, Timing};
use crate::gpu::error::{ErrorKind, GpuResult};
use crate::gpu::properties::DeviceProperties;
use magpie_types::kernel::KernelBlob;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes that are read back in one piece.
const PIECE: u64 = 8 << 20;

/// Transfers and sizes are multiples of this.
const WORD: u64 = 4;

/// A device of the library.
pub(super) struct WebGpuDevice {
    core: Arc<Core>,
    properties: DeviceProperties,
    next_id: AtomicU64,
    /// A buffer of [`PIECE`] bytes that the host reads; 0 until it is needed.
    staging: Mutex<usize>,
    timings: Arc<Mutex<Vec<Timing>>>,
}

impl WebGpuDevice {
    pub(super) fn open(adapter: &Adapter) -> GpuResult<WebGpuDevice> {
        Ok(WebGpuDevice {
            core: Arc::new(Core::open(adapter)?),
            properties: adapter.properties.clone(),
            next_id: AtomicU64::new(1),
            staging: Mutex::new(0),
            timings: Arc::default(),
        })
    }

    fn create_buffer(&self, size: u64, usage: u64) -> GpuResult<Object> {
        create_buffer(&self.core, size, usage)
    }

    /// Records commands and submits them.
    fn run(&self, what: &str, record: impl FnOnce(&super::api::Api, Object)) -> GpuResult<Serial> {
        let mut batch = self.core.record();
        self.core.flush(&mut batch, true)?;
        let commands = self.core.scoped(what, ErrorKind::DriverError, |api| {
            // SAFETY: the device is valid; the encoder is used here only.
            unsafe {
                let encoder = (api.create_encoder)(self.core.device, ptr::null());
                record(api, encoder);
                let commands = (api.encoder_finish)(encoder, ptr::null());
                (api.encoder_release)(encoder);
                commands
            }
        })?;
        let serial = self.core.next_serial();
        self.core.submit(commands, serial);
        Ok(serial)
    }

    fn touch(memory: &DeviceMemory, serial: Serial) {
        memory.last_use.fetch_max(serial.0, Ordering::Relaxed);
    }

    /// Writes whole words.
    fn write_words(&self, dst: &DeviceMemory, offset: u64, src: &[u8]) -> GpuResult<()> {
        let mut batch = self.core.record();
        self.core.flush(&mut batch, true)?;
        self.core.scoped("upload", ErrorKind::BufferError, |api| {
            // SAFETY: the buffer is valid, and the library copies the bytes during the call.
            unsafe {
                (api.write_buffer)(
                    self.core.queue,
                    dst.handle as usize as Object,
                    offset,
                    src.as_ptr().cast(),
                    src.len(),
                );
            }
        })
    }

    /// Reads whole words, at most [`PIECE`] bytes.
    fn read_words(&self, src: &DeviceMemory, offset: u64, dst: &mut [u8]) -> GpuResult<()> {
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        if *staging == 0 {
            *staging = self.create_buffer(PIECE, usage::MAP_READ | usage::COPY_DST)? as usize;
        }
        let (from, to) = (src.handle as usize as Object, *staging as Object);
        let size = dst.len() as u64;
        let serial = self.run("download", |api, encoder| {
            // SAFETY: both buffers and the encoder are valid.
            unsafe { (api.encoder_copy)(encoder, from, offset, to, 0, size) };
        })?;
        Self::touch(src, serial);
        self.core.wait(serial, None)?;
        let status = Arc::new(AtomicU32::new(0));
        let callback = CallbackInfo {
            next: ptr::null(),
            mode: ALLOW_PROCESS_EVENTS,
            callback: on_mapped as super::api::BufferMap,
            userdata1: Arc::into_raw(Arc::clone(&status)).cast_mut().cast(),
            userdata2: ptr::null_mut(),
        };
        self.core.scoped("download", ErrorKind::BufferError, |api| {
            // SAFETY: the buffer is valid and not mapped; the callback takes its reference.
            unsafe {
                (api.buffer_map)(to, MAP_READ_MODE, 0, dst.len(), callback);
                while status.load(Ordering::Acquire) == 0 {
                    (api.poll)(self.core.device, 1, ptr::null());
                }
            }
        })?;
        if status.load(Ordering::Acquire) != SUCCESS {
            return Err(error(ErrorKind::BufferError, "download: the memory cannot be mapped"));
        }
        let api = self.core.api();
        // SAFETY: the range is mapped until it is unmapped.
        unsafe {
            let mapped = (api.buffer_mapped)(to, 0, dst.len());
            if !mapped.is_null() {
                ptr::copy_nonoverlapping(mapped.cast(), dst.as_mut_ptr(), dst.len());
            }
            (api.buffer_unmap)(to);
        }
        Ok(())
    }
}

/// Makes a buffer.
pub(super) fn create_buffer(core: &Core, size: u64, usage: u64) -> GpuResult<Object> {
    let descriptor =
        BufferDescriptor { next: ptr::null(), label: StringView::NONE, usage, size, mapped: 0 };
    let what = format!("allocate {size} bytes on {}", core.label);
    let buffer = core.scoped(&what, ErrorKind::OutOfMemory, |api| {
        // SAFETY: device and descriptor are valid.
        unsafe { (api.create_buffer)(core.device, &descriptor) }
    })?;
    match buffer.is_null() {
        true => Err(error(ErrorKind::OutOfMemory, what)),
        false => Ok(buffer),
    }
}

unsafe extern "C" fn on_mapped(status: u32, _: StringView, place: UserData, _: UserData) {
    // SAFETY: the reference of `WebGpuDevice::read_words`.
    let place = unsafe { Arc::from_raw(place.cast_const().cast::<AtomicU32>()) };
    place.store(status, Ordering::Release);
}

impl Device for WebGpuDevice {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn memory_available(&self) -> u64 {
        self.properties.memory_total
    }

    fn allocate(&self, bytes: u64, _hint: MemoryHint) -> GpuResult<DeviceMemory> {
        let size = bytes.max(WORD).checked_next_multiple_of(WORD).unwrap_or(u64::MAX);
        if size > self.properties.memory_total {
            let (most, device) = (self.properties.memory_total, &self.core.label);
            let why = format!("allocate {bytes} bytes: a buffer on {device} has at most {most}");
            return Err(error(ErrorKind::OutOfMemory, why));
        }
        let flags = usage::STORAGE | usage::COPY_SRC | usage::COPY_DST;
        let buffer = self.create_buffer(size, flags)?;
        let mut memory = DeviceMemory::new(buffer as usize as u64, 0, size);
        // Addresses of buffers come again; this number does not.
        memory.slot = self.next_id.fetch_add(1, Ordering::Relaxed);
        Ok(memory)
    }

    fn free(&self, memory: &DeviceMemory) {
        let api = self.core.api();
        let buffer = memory.handle as usize as Object;
        if self.core.is_open(Serial(memory.last_use.load(Ordering::Relaxed))) {
            // What goes wrong comes back from the call that waits for it.
            let _ = self.core.flush(&mut self.core.record(), true);
        }
        // SAFETY: the buffer is ours and is given back once; the work that uses it is submitted, and
        // the library keeps its memory until that is done.
        unsafe {
            (api.buffer_destroy)(buffer);
            (api.buffer_release)(buffer);
        }
    }

    fn upload(&self, dst: &DeviceMemory, offset: u64, src: &[u8]) -> GpuResult<()> {
        let end = offset + src.len() as u64;
        if offset.is_multiple_of(WORD) && end.is_multiple_of(WORD) {
            return self.write_words(dst, offset, src);
        }
        // The words at both ends belong to others too.
        let (first, last) = (offset - offset % WORD, end.next_multiple_of(WORD));
        let mut words = vec![0; (last - first) as usize];
        let len = words.len();
        self.read_words(dst, first, &mut words[..4])?;
        if len > 4 {
            self.read_words(dst, last - WORD, &mut words[len - 4..])?;
        }
        words[(offset - first) as usize..][..src.len()].copy_from_slice(src);
        self.write_words(dst, first, &words)
    }

    fn download(&self, src: &DeviceMemory, offset: u64, dst: &mut [u8]) -> GpuResult<()> {
        let end = offset + dst.len() as u64;
        let (first, last) = (offset - offset % WORD, end.next_multiple_of(WORD));
        let mut at = first;
        while at < last {
            let size = (last - at).min(PIECE);
            let (from, to) = (at.max(offset), (at + size).min(end));
            let part = &mut dst[(from - offset) as usize..(to - offset) as usize];
            if part.len() as u64 == size {
                self.read_words(src, at, part)?;
            } else {
                let mut words = vec![0; size as usize];
                self.read_words(src, at, &mut words)?;
                part.copy_from_slice(&words[(from - at) as usize..][..part.len()]);
            }
            at += size;
        }
        Ok(())
    }

    fn copy(&self, src: &DeviceMemory, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        let size = bytes.next_multiple_of(WORD);
        let (from, to) = (src.handle as usize as Object, dst.handle as usize as Object);
        let serial = self.run("copy", |api, encoder| {
            // SAFETY: both buffers are valid and have as many words.
            unsafe { (api.encoder_copy)(encoder, from, 0, to, 0, size) };
        })?;
        Self::touch(src, serial);
        Self::touch(dst, serial);
        Ok(())
    }

    fn fill_zero(&self, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
        let (size, to) = (bytes.next_multiple_of(WORD), dst.handle as usize as Object);
        let serial = self.run("fill", |api, encoder| {
            // SAFETY: the buffer is valid and has as many words.
            unsafe { (api.encoder_clear)(encoder, to, 0, size) };
        })?;
        Self::touch(dst, serial);
        Ok(())
    }

    fn load_kernel(
        &self,
        name: &str,
        _hash: u64,
        blob: &KernelBlob,
    ) -> GpuResult<Box<dyn DeviceKernel>> {
        let timings = Arc::clone(&self.timings);
        Ok(Box::new(WebGpuKernel::load(&self.core, timings, name, blob)?))
    }

    fn newest(&self) -> Serial {
        self.core.newest()
    }

    fn wait(&self, serial: Serial, limit: Option<Duration>) -> GpuResult<bool> {
        self.core.wait(serial, limit)
    }

    fn take_timings(&self, out: &mut Vec<Timing>) {
        out.append(&mut self.timings.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for WebGpuDevice {
    fn drop(&mut self) {
        let staging = *self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        if staging != 0 {
            // SAFETY: the buffer is ours, and nothing waits for it.
            unsafe { (self.core.api().buffer_release)(staging as Object) };
        }
    }
}
