//! Memory of small objects and short arrays. Programs make and drop many of them in a row, so each
//! thread keeps what they leave for the next ones of about that size.

use crate::memory::{self, AllocError};
use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// Sizes are rounded up to multiples of this, which is the alignment too.
const UNIT: usize = 16;
/// Different sizes.
const CLASSES: usize = 8;
/// Pieces of a size that are kept, at most.
const MOST: u32 = 16 * 1024;

/// A piece of memory that nobody uses.
struct Piece {
    next: *mut Piece,
}

/// Pieces of one size.
struct Kept {
    first: Cell<*mut Piece>,
    count: Cell<u32>,
}

impl Kept {
    const fn new() -> Kept {
        Kept { first: Cell::new(ptr::null_mut()), count: Cell::new(0) }
    }

    #[inline]
    fn take(&self) -> Option<NonNull<u8>> {
        let piece = NonNull::new(self.first.get())?;
        // SAFETY: `put` wrote a `Piece` there, and nobody has used the memory since.
        self.first.set(unsafe { piece.as_ref().next });
        self.count.set(self.count.get() - 1);
        Some(piece.cast())
    }

    /// Keeps a piece, unless there are many.
    ///
    /// # Safety
    /// The memory is a piece of this size that nobody uses.
    #[inline]
    unsafe fn put(&self, memory: NonNull<u8>) -> bool {
        let is_wanted = self.count.get() < MOST;
        if is_wanted {
            let piece = memory.cast::<Piece>();
            // SAFETY: a piece has room for this and is aligned for it.
            unsafe { piece.write(Piece { next: self.first.get() }) };
            self.first.set(piece.as_ptr());
            self.count.set(self.count.get() + 1);
        }
        is_wanted
    }
}

/// What a thread keeps.
struct Store([Kept; CLASSES]);

impl Drop for Store {
    fn drop(&mut self) {
        for (class, kept) in self.0.iter().enumerate() {
            while let Some(piece) = kept.take() {
                // SAFETY: pieces of the class were made with its layout.
                unsafe { memory::free(piece, layout_of(class)) };
            }
        }
    }
}

thread_local! {
    static STORE: Store = const { Store([const { Kept::new() }; CLASSES]) };
}

/// The class of pieces that memory of a layout is, if it is small.
#[inline]
fn class_of(layout: Layout) -> Option<usize> {
    let class = layout.size().wrapping_sub(1) / UNIT;
    (class < CLASSES && layout.align() <= UNIT).then_some(class)
}

fn layout_of(class: usize) -> Layout {
    let unit = Layout::new::<u128>();
    debug_assert_eq!((unit.size(), unit.align()), (UNIT, UNIT));
    Layout::array::<u128>(class + 1).unwrap_or(unit)
}

/// Memory with arbitrary content, to be given back to [`free`]; a dangling address when the size is 0.
#[inline]
pub(crate) fn allocate(layout: Layout) -> Result<NonNull<u8>, AllocError> {
    let Some(class) = class_of(layout) else { return memory::allocate(layout) };
    match STORE.try_with(|store| store.0[class].take()) {
        Ok(Some(piece)) => Ok(piece),
        // The thread keeps none, or it is ending.
        Ok(None) | Err(_) => memory::allocate(layout_of(class)),
    }
}

/// Zeroed memory, otherwise like [`allocate`].
pub(crate) fn allocate_zeroed(layout: Layout) -> Result<NonNull<u8>, AllocError> {
    if class_of(layout).is_none() {
        return memory::allocate_zeroed(layout);
    }
    let memory = allocate(layout)?;
    // SAFETY: the memory is new and has this size.
    unsafe { memory.write_bytes(0, layout.size()) };
    Ok(memory)
}

/// Moves the content to memory of another size with the same alignment. On failure the old memory
/// stays as it is.
///
/// # Safety
/// `memory` came from this module with the layout `old`.
pub(crate) unsafe fn reallocate(
    memory: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Result<NonNull<u8>, AllocError> {
    let (from, to) = (class_of(old), class_of(new));
    if from.is_none() && to.is_none() {
        // SAFETY: forwarded from the caller; it came from there.
        return unsafe { memory::reallocate(memory, old, new) };
    }
    if from == to {
        return Ok(memory);
    }
    let moved = allocate(new)?;
    // SAFETY: both have room for the smaller content, and the old memory is given up.
    unsafe {
        moved.copy_from_nonoverlapping(memory, old.size().min(new.size()));
        free(memory, old);
    }
    Ok(moved)
}

/// Gives memory back.
///
/// # Safety
/// `memory` came from [`allocate`] with this layout, on any thread, and is not used afterwards.
#[inline]
pub(crate) unsafe fn free(memory: NonNull<u8>, layout: Layout) {
    let Some(class) = class_of(layout) else {
        // SAFETY: forwarded from the caller; it came from there.
        return unsafe { memory::free(memory, layout) };
    };
    // SAFETY: the memory is a piece of the class, and the caller has given it up.
    let is_kept = STORE.try_with(|store| unsafe { store.0[class].put(memory) });
    if is_kept != Ok(true) {
        // SAFETY: pieces of the class were made with its layout.
        unsafe { memory::free(memory, layout_of(class)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_used_again() {
        std::thread::spawn(|| {
            let small = Layout::from_size_align(40, 8).unwrap();
            let other = Layout::from_size_align(48, 16).unwrap();
            let large = Layout::from_size_align(4096, 8).unwrap();
            let wide = Layout::from_size_align(40, 32).unwrap();
            let first = allocate(small).unwrap();
            let second = allocate(small).unwrap();
            assert_ne!(first, second);
            // SAFETY: each piece is given back once, with a layout of its class.
            unsafe {
                free(first, small);
                free(second, other);
                assert_eq!(allocate(other), Ok(second));
                assert_eq!(allocate(small), Ok(first));
                free(first, small);
                free(second, small);
                for layout in [large, wide] {
                    let memory = allocate(layout).unwrap();
                    assert_eq!(memory.as_ptr() as usize % layout.align(), 0);
                    free(memory, layout);
                }
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn content_moves_between_sizes() {
        let layout = |size| Layout::from_size_align(size, 8).unwrap();
        // SAFETY: the memory has the size that it was last moved to.
        unsafe {
            let mut memory = allocate_zeroed(layout(24)).unwrap();
            let mut before = 24;
            for size in [32, 8, 64, 200, 1000, 120, 0, 16] {
                memory.write_bytes(size as u8, before.min(size));
                memory = reallocate(memory, layout(before), layout(size)).unwrap();
                let content = std::slice::from_raw_parts(memory.as_ptr(), before.min(size));
                assert!(content.iter().all(|&byte| byte == size as u8));
                before = size;
            }
            free(memory, layout(before));
            let zeroed = allocate_zeroed(layout(16)).unwrap();
            assert_eq!(zeroed.cast::<[u64; 2]>().read(), [0, 0]);
            free(zeroed, layout(16));
        }
    }

    #[test]
    fn few_are_kept_and_threads_give_theirs_to_others() {
        let layout = Layout::from_size_align(100, 8).unwrap();
        let addresses = std::thread::spawn(move || {
            let all =
                (0..MOST + 10).map(|_| allocate(layout).unwrap().as_ptr().expose_provenance());
            all.collect::<Vec<usize>>()
        });
        for address in addresses.join().unwrap() {
            let memory = NonNull::new(ptr::with_exposed_provenance_mut(address)).unwrap();
            // SAFETY: it was allocated with this layout, and its thread has ended.
            unsafe { free(memory, layout) };
        }
        STORE.with(|store| assert_eq!(store.0[class_of(layout).unwrap()].count.get(), MOST));
    }
}
