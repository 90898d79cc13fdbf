//! `Array<T>`: a growable sequence of elements of one type, described by an info at run time.

use crate::element::{self, EqFn, Operation, OrdFn};
use crate::memory::{AllocError, array_layout, or_die};
use crate::object::{self, HEADER_SIZE, MpRtHeader};
use crate::panic::{die, guarded};
use crate::small_memory;
use crate::string::{self, checked_range};
use crate::typeinfo::{self, MpRtTypeInfo};
use magpie_types::abi::object_layout;
use magpie_types::fixed;
use std::alloc::Layout;
use std::io;
use std::mem::offset_of;
use std::ptr::{self, NonNull};

/// The payload of an array. Compiled code reads `len` and `data`.
#[repr(C)]
pub struct MpRtArray {
    /// Number of elements.
    len: u64,
    /// Number of elements that fit without growing.
    cap: u64,
    /// The elements, [`MpRtTypeInfo::stride`] bytes apart. Not null.
    data: NonNull<u8>,
    /// Describes an element.
    elem: &'static MpRtTypeInfo,
}

const _: () = {
    assert!(HEADER_SIZE + offset_of!(MpRtArray, len) == object_layout::ARR_LEN as usize);
    assert!(HEADER_SIZE + offset_of!(MpRtArray, cap) == object_layout::ARR_CAP as usize);
    assert!(HEADER_SIZE + offset_of!(MpRtArray, data) == object_layout::ARR_DATA as usize);
};

static ARRAY: MpRtTypeInfo = MpRtTypeInfo::opaque(
    fixed::ARRAY,
    size_of::<MpRtArray>(),
    align_of::<MpRtArray>(),
    drop_array,
    c"Array",
);

/// Alignment of element memory at least: what vector loads and device uploads like.
const DATA_ALIGN: usize = 16;

impl MpRtArray {
    fn element_layout(&self) -> Layout {
        // Memory of this layout was allocated before, so the layout exists.
        elements_layout(self.elem, self.cap as usize).unwrap_or(Layout::new::<()>())
    }

    fn at(&self, index: usize) -> *mut u8 {
        self.data.as_ptr().wrapping_add(index * self.elem.stride())
    }

    fn len(&self) -> usize {
        self.len as usize
    }

    fn bytes_len(&self) -> usize {
        self.len() * self.elem.stride()
    }

    /// Makes room for at least one more element.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Result<(), AllocError> {
        let cap = (self.cap as usize).saturating_mul(2).max(4);
        let new_layout = elements_layout(self.elem, cap)?;
        // SAFETY: the memory has the layout of the present capacity.
        self.data =
            unsafe { small_memory::reallocate(self.data, self.element_layout(), new_layout)? };
        self.cap = cap as u64;
        Ok(())
    }
}

fn elements_layout(elem: &MpRtTypeInfo, cap: usize) -> Result<Layout, AllocError> {
    array_layout(cap, elem.stride(), DATA_ALIGN.max(elem.align as usize))
}

fn wrap(
    elem: &'static MpRtTypeInfo,
    len: usize,
    cap: usize,
    data: NonNull<u8>,
) -> Result<*mut MpRtHeader, AllocError> {
    let obj = object::try_alloc(&ARRAY)?;
    let array = MpRtArray { len: len as u64, cap: cap as u64, data, elem };
    // SAFETY: the payload of the new object has the size of an `MpRtArray`.
    unsafe { object::payload_ptr(obj).cast::<MpRtArray>().write(array) };
    Ok(obj)
}

/// An empty array with room for `cap` elements.
pub fn try_new(elem: &'static MpRtTypeInfo, cap: usize) -> Result<*mut MpRtHeader, AllocError> {
    wrap(elem, 0, cap, small_memory::allocate(elements_layout(elem, cap)?)?)
}

/// An array of `len` elements whose bytes are all zero.
pub fn try_new_zeroed(
    elem: &'static MpRtTypeInfo,
    len: usize,
) -> Result<*mut MpRtHeader, AllocError> {
    wrap(elem, len, len, small_memory::allocate_zeroed(elements_layout(elem, len)?)?)
}

/// An array whose elements have the given bytes. `elem` must be without handles; bytes behind the
/// last whole element are dropped.
pub fn try_from_bytes(
    elem: &'static MpRtTypeInfo,
    bytes: &[u8],
) -> Result<*mut MpRtHeader, AllocError> {
    debug_assert!(!elem.has_handles());
    let len = bytes.len().checked_div(elem.stride()).unwrap_or(0);
    // SAFETY: there are bytes of `len` whole elements, and no handles in them.
    unsafe { try_copy(elem, bytes.as_ptr(), len) }
}

/// An array of copies of `len` elements that lie side by side, handles retained.
///
/// # Safety
/// `elements` is the address of as many live values that `elem` describes.
unsafe fn try_copy(
    elem: &'static MpRtTypeInfo,
    elements: *const u8,
    len: usize,
) -> Result<*mut MpRtHeader, AllocError> {
    let layout = elements_layout(elem, len)?;
    let data = small_memory::allocate(layout)?;
    // SAFETY: both have the bytes of `len` elements, and the copies hold counts of their own.
    unsafe {
        data.as_ptr().copy_from_nonoverlapping(elements, layout.size());
        if elem.has_handles() {
            object::retain_values(elem, elements, len);
        }
    }
    wrap(elem, len, len, data)
}

/// An array of all that `input` gives, which is expected to be `expected` bytes. `elem` describes
/// elements of one byte.
///
/// # Errors
/// Those of `input`, and [`io::ErrorKind::OutOfMemory`].
pub(crate) fn read_from(
    elem: &'static MpRtTypeInfo,
    expected: usize,
    input: &mut impl io::Read,
) -> io::Result<*mut MpRtHeader> {
    debug_assert_eq!(elem.stride(), 1);
    let no_memory = |error: AllocError| io::Error::new(io::ErrorKind::OutOfMemory, error);
    // With room for one byte more, a read finds the end before the array would have to grow.
    let obj = try_new_zeroed(elem, expected.saturating_add(1)).map_err(no_memory)?;
    // SAFETY: the array is new and nobody else has it.
    let array = unsafe { object::payload_mut::<MpRtArray>(obj) };
    let mut filled = 0;
    let end = loop {
        if filled == array.len() {
            if let Err(error) = array.grow() {
                break Err(no_memory(error));
            }
            let room = array.cap as usize - filled;
            // SAFETY: the bytes up to the capacity belong to the array.
            unsafe { array.at(filled).write_bytes(0, room) };
            array.len = array.cap;
        }
        let room = array.len() - filled;
        // SAFETY: all bytes up to the length are written.
        let room = unsafe { std::slice::from_raw_parts_mut(array.at(filled), room) };
        match input.read(room) {
            Ok(0) => break Ok(obj),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    array.len = filled as u64;
    if end.is_err() {
        // SAFETY: the array is not given away.
        unsafe { object::release(obj) };
    }
    end
}

/// An `Array<Str>` of the given texts.
pub fn new_str_array<S: AsRef<str>>(texts: &[S]) -> *mut MpRtHeader {
    let handles: Vec<_> = texts.iter().map(|text| string::new_str(text.as_ref())).collect();
    from_handles(&typeinfo::STR, &handles)
}

/// An array of copies of the elements at the given addresses, at most `cap`, handles retained.
///
/// # Safety
/// The addresses are of live values that `elem` describes.
pub(crate) unsafe fn try_collect(
    elem: &'static MpRtTypeInfo,
    cap: usize,
    elements: impl Iterator<Item = *const u8>,
) -> Result<*mut MpRtHeader, AllocError> {
    let obj = try_new(elem, cap)?;
    for element in elements.take(cap) {
        // SAFETY: the array is new and has room; the element is live.
        unsafe {
            object::retain_value(elem, element);
            push(object::payload_mut(obj), element);
        }
    }
    Ok(obj)
}

/// An array that takes over one count of each handle. `elem` describes a handle.
pub fn from_handles(elem: &'static MpRtTypeInfo, handles: &[*mut MpRtHeader]) -> *mut MpRtHeader {
    debug_assert_eq!(elem.strong_offsets(), [0]);
    let array = or_die(try_new(elem, handles.len()));
    for handle in handles {
        // SAFETY: the array is new and its elements are handles.
        unsafe { push(object::payload_mut(array), ptr::from_ref(handle).cast()) };
    }
    array
}

/// Number of elements.
///
/// # Safety
/// `arr` is a live array.
pub unsafe fn len(arr: *const MpRtHeader) -> usize {
    // SAFETY: forwarded from the caller.
    unsafe { object::payload::<MpRtArray>(arr) }.len()
}

/// What describes the elements.
///
/// # Safety
/// `arr` is a live array.
pub unsafe fn element_info(arr: *const MpRtHeader) -> &'static MpRtTypeInfo {
    // SAFETY: forwarded from the caller.
    unsafe { object::payload::<MpRtArray>(arr) }.elem
}

/// The bytes of all elements.
///
/// # Safety
/// `arr` is a live array that nobody changes during `'a`.
pub unsafe fn bytes<'a>(arr: *const MpRtHeader) -> &'a [u8] {
    // SAFETY: forwarded from the caller; the elements lie one behind the other.
    unsafe {
        let array = object::payload::<MpRtArray>(arr);
        std::slice::from_raw_parts(array.data.as_ptr(), array.bytes_len())
    }
}

/// The bytes of all elements, to overwrite them.
///
/// # Safety
/// `arr` is a live array without handles that nobody else uses during `'a`.
pub unsafe fn bytes_mut<'a>(arr: *mut MpRtHeader) -> &'a mut [u8] {
    // SAFETY: forwarded from the caller; the elements lie one behind the other.
    unsafe {
        let array = object::payload_mut::<MpRtArray>(arr);
        std::slice::from_raw_parts_mut(array.data.as_ptr(), array.bytes_len())
    }
}

/// The handles that are the elements of an array.
///
/// # Safety
/// `arr` is a live array whose elements are handles, and nobody changes it during `'a`.
pub unsafe fn handles<'a>(arr: *const MpRtHeader) -> &'a [*mut MpRtHeader] {
    // SAFETY: forwarded from the caller.
    unsafe {
        let array = object::payload::<MpRtArray>(arr);
        std::slice::from_raw_parts(array.data.as_ptr().cast(), array.len())
    }
}

/// Moves an element in.
///
/// # Safety
/// `elem` is the address of a value of the element type, outside the array.
#[inline]
unsafe fn push(array: &mut MpRtArray, elem: *const u8) {
    if array.len == array.cap {
        or_die(array.grow());
    }
    let (place, size) = (array.at(array.len()), array.elem.size as usize);
    // SAFETY: there is room for one more element, padding included.
    unsafe {
        element::copy(place, elem, size);
        if array.elem.stride() != size {
            place.add(size).write_bytes(0, array.elem.stride() - size);
        }
    }
    array.len += 1;
}

unsafe extern "C" fn drop_array(obj: *mut MpRtHeader) {
    // SAFETY: called once, for an array whose last strong handle is gone.
    unsafe {
        let array = object::payload::<MpRtArray>(obj);
        if array.elem.has_handles() {
            object::release_values(array.elem, array.at(0), array.len());
        }
        small_memory::free(array.data, array.element_layout());
    }
}

/// See [`magpie_types::abi::RtFn::ArrNew`].
///
/// # Safety
/// `info` describes an element and lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_arr_new(info: *const MpRtTypeInfo, cap: i64) -> *mut MpRtHeader {
    let Ok(cap) = usize::try_from(cap) else {
        die(format_args!("an array cannot have room for {cap} elements"))
    };
    // SAFETY: forwarded from the caller.
    or_die(try_new(unsafe { &*info }, cap))
}

/// See [`magpie_types::abi::RtFn::ArrZeroed`].
///
/// # Safety
/// `info` describes an element and lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_arr_zeroed(info: *const MpRtTypeInfo, len: i64) -> *mut MpRtHeader {
    let Ok(len) = usize::try_from(len) else {
        die(format_args!("an array cannot have {len} elements"))
    };
    // SAFETY: forwarded from the caller.
    or_die(try_new_zeroed(unsafe { &*info }, len))
}

/// See [`magpie_types::abi::RtFn::ArrPush`].
///
/// # Safety
/// `arr` is a live array that nobody else uses, `elem` the address of a value of its element type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_arr_push(arr: *mut MpRtHeader, elem: *const u8) {
    // SAFETY: forwarded from the caller.
    unsafe { push(object::payload_mut(arr), elem) }
}

/// See [`magpie_types::abi::RtFn::ArrGrow`].
///
/// # Safety
/// `arr` is a live array that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_arr_grow(arr: *mut MpRtHeader) {
    // SAFETY: forwarded from the caller.
    or_die(unsafe { object::payload_mut::<MpRtArray>(arr) }.grow())
}

/// See [`magpie_types::abi::RtFn::ArrPop`]. Storage for a missing value is zeroed.
///
/// # Safety
/// `arr` is a live array that nobody else uses, `out` storage for a value of its element type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_arr_pop(arr: *mut MpRtHeader, out: *mut u8) -> bool {
    // SAFETY: forwarded from the caller; the last element is moved out.
    unsafe {
        let array = object::payload_mut::<MpRtArray>(arr);
        let size = array.elem.size as usize;
        let Some(last) = array.len.checked_sub(1) else {
            out.write_bytes(0, size);
            return false;
        };
        array.len = last;
        element::copy(out, array.at(array.len()), size);
        true
    }
}

/// See [`magpie_types::abi::RtFn::ArrSlice`].
///
/// # Safety
/// `arr` is a live array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_arr_slice(
    arr: *const MpRtHeader,
    start: i64,
    end: i64,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    let array = unsafe { object::payload::<MpRtArray>(arr) };
    let len = array.len();
    let Some((from, to)) = checked_range(start, end, len) else {
        die(format_args!("array slice out of bounds: {start} .. {end} of {len} elements"))
    };
    // SAFETY: the range lies inside the array, and its elements are live.
    or_die(unsafe { try_copy(array.elem, array.at(from), to - from) })
}

/// See [`magpie_types::abi::RtFn::ArrMove`].
///
/// # Safety
/// `arr` is a live array that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_arr_move(arr: *mut MpRtHeader, from: i64, to: i64) {
    // SAFETY: forwarded from the caller.
    let array = unsafe { object::payload_mut::<MpRtArray>(arr) };
    let inside = |at: i64| usize::try_from(at).ok().filter(|&at| at < array.len());
    let (Some(from), Some(to)) = (inside(from), inside(to)) else {
        die(format_args!("error inside the runtime: no elements {from} and {to}"))
    };
    let (first, last) = (from.min(to), from.max(to));
    // SAFETY: the elements lie inside the array.
    let elements =
        unsafe { element::Run::new(array.at(first), last - first + 1, array.elem.stride()) };
    if from < to { elements.rotate_left() } else { elements.rotate_right() }
}

/// See [`magpie_types::abi::RtFn::ArrReverse`].
///
/// # Safety
/// `arr` is a live array that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_arr_reverse(arr: *mut MpRtHeader) {
    // SAFETY: forwarded from the caller; all elements lie inside the array, the first aligned to
    // `DATA_ALIGN` at least.
    unsafe {
        let array = object::payload_mut::<MpRtArray>(arr);
        element::Run::new(array.at(0), array.len(), array.elem.stride()).reverse();
    }
}

/// See [`magpie_types::abi::RtFn::ArrContains`].
///
/// # Safety
/// `arr` is a live array, `elem` the address of a value of its element type, `eq` the class of
/// that type or the address of an [`EqFn`] for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_arr_contains(
    arr: *const MpRtHeader,
    elem: *const u8,
    eq: u64,
) -> bool {
    // SAFETY: forwarded from the caller.
    unsafe {
        let array = object::payload::<MpRtArray>(arr);
        let eq = Operation::<EqFn>::from_word(eq);
        element::contains(array.data.as_ptr(), array.len(), array.elem.stride(), elem, eq)
    }
}

/// See [`magpie_types::abi::RtFn::ArrSort`].
///
/// # Safety
/// `arr` is a live array that nobody else uses, `ord` the class of its element type or the address
/// of an [`OrdFn`] for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_arr_sort(arr: *mut MpRtHeader, ord: u64) {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe {
        let array = object::payload_mut::<MpRtArray>(arr);
        let ord = Operation::<OrdFn>::from_word(ord);
        element::sort(array.data.as_ptr(), array.len(), array.elem.stride(), ord);
    })
}

#[cfg(test)]
mod tests;
