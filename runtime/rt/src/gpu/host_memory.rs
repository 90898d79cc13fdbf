//! Device memory that is host memory: of the CPU device, the interpreter and the mock device, and
//! mapped memory of drivers that share it.

use super::device::DeviceMemory;
use super::error::{ErrorKind, GpuError, GpuResult};
use std::alloc::Layout;
use std::ptr::NonNull;

/// Alignment of every piece, enough for any vector register and a cache line.
pub(crate) const ALIGN: usize = 64;

/// Allocations from this size on are compared with what the machine has left, because the
/// operating system promises more than it can give.
const LARGE: u64 = 64 << 20;

/// Undefined bytes, at least `bytes` of them.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`] with the sizes.
pub(crate) fn allocate(backend: &'static str, bytes: u64) -> GpuResult<DeviceMemory> {
    let info = if bytes >= LARGE { MemoryInfo::read() } else { None };
    let available = info.map_or(u64::MAX, |info| info.available);
    let layout = usize::try_from(bytes.max(1))
        .ok()
        .and_then(|n| Layout::from_size_align(n.checked_next_multiple_of(ALIGN)?, ALIGN).ok());
    let pointer = match layout {
        // SAFETY: the layout has at least 64 bytes.
        Some(layout) if bytes <= available => NonNull::new(unsafe { std::alloc::alloc(layout) }),
        _ => None,
    };
    let (Some(layout), Some(pointer)) = (layout, pointer) else {
        let left = match available {
            u64::MAX => String::new(),
            available => format!("; {available} are available"),
        };
        let message = format!("cannot allocate {bytes} bytes of host memory for a buffer{left}");
        return Err(GpuError::new(ErrorKind::OutOfMemory, backend, message));
    };
    let mut memory = DeviceMemory::new(pointer.as_ptr() as u64, 0, layout.size() as u64);
    memory.host = Some(pointer);
    Ok(memory)
}

/// Gives memory of [`allocate`] back.
///
/// # Safety
/// `host` and `size` are those of one piece, which nothing uses any more.
pub(crate) unsafe fn free(host: NonNull<u8>, size: u64) {
    // SAFETY: `allocate` made the memory with this layout, which was valid then.
    unsafe {
        std::alloc::dealloc(host.as_ptr(), Layout::from_size_align_unchecked(size as usize, ALIGN));
    }
}

/// The address of `offset` when `bytes` bytes from there lie in memory that the host reaches.
fn range(backend: &'static str, at: &DeviceMemory, offset: u64, bytes: u64) -> GpuResult<*mut u8> {
    let end = offset.checked_add(bytes).filter(|&end| end <= at.size);
    let (Some(host), Some(_)) = (at.host, end) else {
        let size = at.size;
        let message = format!("{bytes} bytes at {offset} leave memory of {size} bytes");
        return Err(GpuError::new(ErrorKind::BufferError, backend, message));
    };
    // SAFETY: the offset is inside the memory, as just checked.
    Ok(unsafe { host.as_ptr().add(offset as usize) })
}

/// Copies `src` in. No queued work may be using the memory.
pub(crate) fn write(
    backend: &'static str,
    dst: &DeviceMemory,
    offset: u64,
    src: &[u8],
) -> GpuResult<()> {
    let to = range(backend, dst, offset, src.len() as u64)?;
    // SAFETY: `to` has room for the bytes of `src`, which is memory of the caller's own.
    unsafe { to.copy_from_nonoverlapping(src.as_ptr(), src.len()) };
    Ok(())
}

/// Copies out to `dst`. No queued work may be writing the memory.
pub(crate) fn read(
    backend: &'static str,
    src: &DeviceMemory,
    offset: u64,
    dst: &mut [u8],
) -> GpuResult<()> {
    let from = range(backend, src, offset, dst.len() as u64)?;
    // SAFETY: `from` has the bytes that `dst` holds, which is memory of the caller's own.
    unsafe { from.copy_to_nonoverlapping(dst.as_mut_ptr(), dst.len()) };
    Ok(())
}

/// Copies between two pieces. No queued work may be using them.
pub(crate) fn copy(
    backend: &'static str,
    src: &DeviceMemory,
    dst: &DeviceMemory,
    bytes: u64,
) -> GpuResult<()> {
    let from = range(backend, src, 0, bytes)?;
    let to = range(backend, dst, 0, bytes)?;
    // SAFETY: both have room for the bytes.
    unsafe { to.copy_from(from, bytes as usize) };
    Ok(())
}

/// Sets the first `bytes` bytes to zero. No queued work may be using the memory.
pub(crate) fn fill_zero(backend: &'static str, dst: &DeviceMemory, bytes: u64) -> GpuResult<()> {
    let to = range(backend, dst, 0, bytes)?;
    // SAFETY: `to` has room for the bytes.
    unsafe { to.write_bytes(0, bytes as usize) };
    Ok(())
}

/// Memory of the machine in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MemoryInfo {
    pub(crate) total: u64,
    /// What can be had without pushing others out.
    pub(crate) available: u64,
}

impl MemoryInfo {
    /// Asks the operating system; `None` where it does not say.
    pub(crate) fn read() -> Option<MemoryInfo> {
        #[cfg(target_os = "linux")]
        {
            MemoryInfo::parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
        }
        #[cfg(target_os = "macos")]
        {
            let total = macos::memory_bytes()?;
            Some(MemoryInfo { total, available: total })
        }
        #[cfg(not(any(target_os = "linux", target_os = "macos")))]
        None
    }

    /// Reads the text of `/proc/meminfo`.
    #[cfg(any(target_os = "linux", test))]
    fn parse(text: &str) -> Option<MemoryInfo> {
        let field = |name: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        let total = field("MemTotal")?;
        Some(MemoryInfo { total, available: field("MemAvailable").unwrap_or(total).min(total) })
    }
}

#[cfg(target_os = "macos")]
mod macos {
    use std::ffi::{c_char, c_int, c_void};

    unsafe extern "C" {
        fn sysctlbyname(
            name: *const c_char,
            old: *mut c_void,
            old_len: *mut usize,
            new: *mut c_void,
            new_len: usize,
        ) -> c_int;
    }

    pub(super) fn memory_bytes() -> Option<u64> {
        let (mut bytes, mut size) = (0u64, size_of::<u64>());
        // SAFETY: `hw.memsize` is a 64-bit number and the size says so.
        let status = unsafe {
            let out = (&raw mut bytes).cast();
            sysctlbyname(c"hw.memsize".as_ptr(), out, &mut size, std::ptr::null_mut(), 0)
        };
        (status == 0).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_text() {
        let text = "MemTotal:       24000 kB\nMemFree:  1 kB\nMemAvailable:   20000 kB\n";
        let info = MemoryInfo { total: 24000 << 10, available: 20000 << 10 };
        assert_eq!(MemoryInfo::parse(text), Some(info));
        assert_eq!(MemoryInfo::parse("nonsense"), None);
    }

    #[test]
    fn memory_is_aligned_and_bounded() {
        let memory = allocate("cpu", 100).unwrap();
        let host = memory.host.unwrap();
        assert_eq!((host.as_ptr() as usize % ALIGN, memory.size), (0, 128));
        write("cpu", &memory, 96, &[7; 32]).unwrap();
        let mut back = [0; 32];
        read("cpu", &memory, 96, &mut back).unwrap();
        assert_eq!(back, [7; 32]);
        for (offset, len) in [(128, 1), (127, 2), (u64::MAX, 1)] {
            let error = write("cpu", &memory, offset, &vec![0; len]).unwrap_err();
            assert_eq!(error.kind, ErrorKind::BufferError);
        }
        // SAFETY: nothing uses the memory any more.
        unsafe { free(host, memory.size) };
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for bytes in [u64::MAX, u64::MAX / 2, 4_000_000_000_000] {
            let error = allocate("cpu", bytes).unwrap_err();
            assert_eq!(error.kind, ErrorKind::OutOfMemory);
            assert!(error.message.contains(&bytes.to_string()), "{error}");
        }
    }
}
