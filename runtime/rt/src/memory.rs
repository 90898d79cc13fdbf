//! Memory whose size a program decides: requests that fail are errors, never aborts.

use crate::panic::die;
use std::alloc::Layout;
use std::ptr::NonNull;

/// A request that the system could not meet, or that no system can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllocError {
    /// The number of bytes asked for; `None` when it does not fit an address.
    pub bytes: Option<usize>,
}

impl std::fmt::Display for AllocError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.bytes {
            Some(bytes) => write!(f, "out of memory: {bytes} bytes were asked for"),
            None => f.write_str("out of memory: the size asked for exceeds the address space"),
        }
    }
}

impl std::error::Error for AllocError {}

/// The value, or a panic of the program that says how much memory was asked for.
#[inline]
pub fn or_die<T>(result: Result<T, AllocError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => die(format_args!("{error}")),
    }
}

/// The layout of `count` elements of `stride` bytes.
#[inline]
pub fn array_layout(count: usize, stride: usize, align: usize) -> Result<Layout, AllocError> {
    let bytes = count.checked_mul(stride).ok_or(AllocError { bytes: None })?;
    Layout::from_size_align(bytes, align).map_err(|_| AllocError { bytes: None })
}

/// Memory with arbitrary content; a dangling address when the size is 0.
#[inline]
pub fn allocate(layout: Layout) -> Result<NonNull<u8>, AllocError> {
    if layout.size() == 0 {
        return Ok(layout.dangling_ptr());
    }
    // SAFETY: the size is not 0.
    let memory = unsafe { std::alloc::alloc(layout) };
    NonNull::new(memory).ok_or(AllocError { bytes: Some(layout.size()) })
}

/// Zeroed memory; a dangling address when the size is 0.
#[inline]
pub fn allocate_zeroed(layout: Layout) -> Result<NonNull<u8>, AllocError> {
    if layout.size() == 0 {
        return Ok(layout.dangling_ptr());
    }
    // SAFETY: the size is not 0.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) };
    NonNull::new(memory).ok_or(AllocError { bytes: Some(layout.size()) })
}

/// Moves the content to memory of another size with the same alignment. On failure the old memory
/// stays as it is.
///
/// # Safety
/// `memory` came from this module with the layout `old`.
pub unsafe fn reallocate(
    memory: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Result<NonNull<u8>, AllocError> {
    debug_assert_eq!(old.align(), new.align());
    if old.size() == 0 {
        return allocate(new);
    }
    if new.size() == 0 {
        // SAFETY: forwarded from the caller.
        unsafe { free(memory, old) };
        return Ok(new.dangling_ptr());
    }
    // SAFETY: the memory has the layout `old`, and neither size is 0.
    let moved = unsafe { std::alloc::realloc(memory.as_ptr(), old, new.size()) };
    NonNull::new(moved).ok_or(AllocError { bytes: Some(new.size()) })
}

/// Gives memory back.
///
/// # Safety
/// `memory` came from this module with this layout and is not used afterwards.
#[inline]
pub unsafe fn free(memory: NonNull<u8>, layout: Layout) {
    if layout.size() != 0 {
        // SAFETY: memory of a size above 0 came from the allocator with this layout.
        unsafe { std::alloc::dealloc(memory.as_ptr(), layout) }
    }
}
