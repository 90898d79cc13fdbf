//! `mp_rt_gpu_resident_*`: device-resident bindings.

use super::{Payload, drop_payload, new_object, payload};
use crate::array;
use crate::gpu::buffer::Element;
use crate::gpu::error::{GpuError, GpuResult};
use crate::gpu::resident::{Resident, State, Unfit};
use crate::gpu::runtime::Runtime;
use crate::gpu::telemetry::Cost;
use crate::memory::or_die;
use crate::object::{self, MpRtHeader};
use crate::panic::{die, guarded};
use crate::typeinfo::MpRtTypeInfo;
use crate::{gpu_error, io, string};
use magpie_types::{TypeId, fixed};
use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::io::Write;

/// Exit code of a program whose launch was refused.
const REFUSED_EXIT_CODE: i32 = 3;

/// A strong count of an array of scalars.
struct HostArray(*mut MpRtHeader);

// SAFETY: it lies in an object, which stays on the threads that may use the array, and nobody changes an
// array that is shared.
unsafe impl Send for HostArray {}

impl HostArray {
    /// # Safety
    /// `arr` is a live array.
    unsafe fn share(arr: *mut MpRtHeader) -> HostArray {
        // SAFETY: forwarded from the caller.
        unsafe { object::retain(arr) };
        HostArray(arr)
    }
}

impl AsRef<[u8]> for HostArray {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the count keeps the array alive.
        unsafe { array::bytes(self.0) }
    }
}

impl Drop for HostArray {
    fn drop(&mut self) {
        // SAFETY: the count is ours.
        unsafe { object::release(self.0) }
    }
}

type Binding = Resident<HostArray>;

static RESIDENT: MpRtTypeInfo = MpRtTypeInfo::opaque(
    fixed::GPU_RESIDENT,
    size_of::<Binding>(),
    align_of::<Binding>(),
    drop_payload::<Binding>,
    c"gpu.TResident",
);

impl Payload for Binding {
    const INFO: &'static MpRtTypeInfo = &RESIDENT;
    const NAME: &'static str = "gpu.TResident";
}

/// Ends the program: something about a device was refused.
///
/// # Safety
/// `place` is null or a C string.
#[cold]
unsafe fn stop(message: &str, place: *const c_char) -> ! {
    let place = match place.is_null() {
        true => String::new(),
        // SAFETY: forwarded from the caller.
        false => format!("{}: ", unsafe { CStr::from_ptr(place) }.to_string_lossy()),
    };
    io::flush_before_death();
    let line = format!("{place}refused: {message}\n");
    // Nobody is left to tell when standard error is gone.
    let _ = std::io::stderr().write_all(line.as_bytes());
    std::process::exit(REFUSED_EXIT_CODE)
}

/// # Safety
/// `place` is null or a C string.
unsafe fn or_stop<T>(result: GpuResult<T>, place: *const c_char) -> T {
    match result {
        Ok(value) => value,
        // SAFETY: forwarded from the caller.
        Err(GpuError { message, .. }) => unsafe { stop(&message, place) },
    }
}

/// See [`magpie_types::abi::RtFn::GpuResidentNew`].
///
/// # Safety
/// `arr` is a live array of elements without handles.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_resident_new(
    arr: *mut MpRtHeader,
    elem_type_id: u32,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    guarded(|| new_object(unsafe { of_array(arr, elem_type_id, true) }))
}

/// See [`magpie_types::abi::RtFn::GpuResidentPart`].
///
/// # Safety
/// As [`mp_rt_gpu_resident_new`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_resident_part(
    arr: *mut MpRtHeader,
    elem_type_id: u32,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    guarded(|| new_object(unsafe { of_array(arr, elem_type_id, false) }))
}

/// The first buffer of a binding or a further one.
///
/// # Safety
/// `arr` is a live array of elements without handles.
unsafe fn of_array(arr: *mut MpRtHeader, elem_type_id: u32, is_first: bool) -> Binding {
    // SAFETY: forwarded from the caller.
    let (size, len, array) = unsafe {
        (array::element_info(arr).stride() as u32, array::len(arr), HostArray::share(arr))
    };
    let element = Element { ty: TypeId(elem_type_id), size };
    Binding::new(element, len as u64, Some(array), is_first).with_unfit(UNFIT.take())
}

thread_local! {
    /// What does not fit of the array that the next binding is made of.
    static UNFIT: RefCell<Option<Unfit>> = const { RefCell::new(None) };
}

/// See [`magpie_types::abi::RtFn::GpuResidentUnfit`].
///
/// # Safety
/// `message` is a live `Str`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_resident_unfit(
    message: *const MpRtHeader,
    index: i64,
    value: i64,
) {
    guarded(|| {
        UNFIT.with_borrow_mut(|unfit| {
            let unfit = unfit.get_or_insert_with(|| Unfit {
                // SAFETY: forwarded from the caller.
                message: unsafe { string::as_str(message) }.to_string(),
                values: Vec::new(),
                has_parts: false,
            });
            match u64::try_from(index) {
                Ok(index) => unfit.values.push((index, value)),
                Err(_) => unfit.has_parts = true,
            }
        });
    });
}

/// See [`magpie_types::abi::RtFn::GpuResidentRestore`].
///
/// # Safety
/// `res` is null or a live object; `arr` is a live array of `i64`s that nobody else has.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_resident_restore(
    res: *const MpRtHeader,
    arr: *mut MpRtHeader,
    start: u64,
) {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        let Ok(binding) = (unsafe { payload::<Binding>(res) }) else { return };
        let State::Host { unfit: Some(unfit), .. } = &*binding.state() else { return };
        // SAFETY: the array has no handles and is ours alone.
        let (words, _) = unsafe { array::bytes_mut(arr) }.as_chunks_mut::<8>();
        for &(index, value) in &unfit.values {
            let at = index.checked_sub(start).and_then(|at| words.get_mut(at as usize));
            if let Some(word) = at {
                *word = value.to_ne_bytes();
            }
        }
    });
}

/// See [`magpie_types::abi::RtFn::GpuResidentZeros`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mp_rt_gpu_resident_zeros(
    len: u64,
    elem_type_id: u32,
    elem_size: u32,
) -> *mut MpRtHeader {
    let element = Element { ty: TypeId(elem_type_id), size: elem_size };
    guarded(|| new_object(Binding::new(element, len, None, true)))
}

/// See [`magpie_types::abi::RtFn::GpuResidentCell`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mp_rt_gpu_resident_cell(
    elem_type_id: u32,
    elem_size: u32,
) -> *mut MpRtHeader {
    let element = Element { ty: TypeId(elem_type_id), size: elem_size };
    guarded(|| new_object(Binding::uncounted(element, 1)))
}

/// See [`magpie_types::abi::RtFn::GpuResidentScratch`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mp_rt_gpu_resident_scratch(
    len: u64,
    elem_type_id: u32,
    elem_size: u32,
) -> *mut MpRtHeader {
    let element = Element { ty: TypeId(elem_type_id), size: elem_size };
    guarded(|| new_object(Binding::uncounted(element, len)))
}

/// The binding of a handle.
///
/// # Safety
/// `res` is null or a live object; `place` is null or a C string.
unsafe fn binding<'a>(res: *const MpRtHeader, place: *const c_char) -> &'a Binding {
    // SAFETY: forwarded from the caller.
    unsafe { or_stop(payload::<Binding>(res), place) }
}

/// See [`magpie_types::abi::RtFn::GpuResidentBuffer`].
///
/// # Safety
/// `res` is null or a live object; `place` is null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_resident_buffer(
    res: *const MpRtHeader,
    place: *const c_char,
) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe {
        let device = or_stop(Runtime::global().default_device(), place);
        let binding = binding(res, place);
        if let State::Host { unfit: Some(unfit), .. } = &*binding.state() {
            let place = CStr::from_ptr(place).to_string_lossy();
            die(format_args!("{}, where a kernel needs it: {place}", unfit.message))
        }
        new_object(or_stop(binding.buffer(&device), place))
    })
}

/// See [`magpie_types::abi::RtFn::GpuResidentRead`].
///
/// # Safety
/// `res` is null or a live object; `info` describes an element and lives as long as the process;
/// `place` is null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_resident_read(
    res: *const MpRtHeader,
    start: i64,
    end: i64,
    place: *const c_char,
    info: *const MpRtTypeInfo,
) -> *mut MpRtHeader {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        let (binding, info) = unsafe { (binding(res, place), &*info) };
        let Some((from, to)) = string::checked_range(start, end, binding.len as usize) else {
            let len = binding.len;
            die(format_args!("slice out of bounds: {start} .. {end} of {len} elements"))
        };
        let state = binding.state();
        match &*state {
            State::Host { unfit: Some(unfit), .. } if unfit.has_parts => {
                die(format_args!("{}", unfit.message))
            }
            State::Host { array: Some(array), .. } if to - from == binding.len as usize => {
                // SAFETY: the binding keeps the array alive.
                unsafe { object::retain(array.0) };
                array.0
            }
            // SAFETY: as above, and the range is inside.
            State::Host { array: Some(array), .. } => unsafe {
                array::mp_rt_arr_slice(array.0, from as i64, to as i64)
            },
            State::Host { array: None, .. } => or_die(array::try_new_zeroed(info, to - from)),
            State::Device(buffer) => {
                binding.count(Cost::Readback);
                binding.count(Cost::Fence);
                let array = or_die(array::try_new_zeroed(info, to - from));
                // SAFETY: the array is new, without handles, and ours alone.
                let read = buffer.read(from as u64, unsafe { array::bytes_mut(array) });
                // SAFETY: forwarded from the caller.
                unsafe { or_stop(read, place) };
                array
            }
        }
    })
}

/// See [`magpie_types::abi::RtFn::GpuResidentAssign`].
///
/// # Safety
/// `res` is null or a live object, `arr` a live array of elements like those of the binding;
/// `place` is null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_resident_assign(
    res: *const MpRtHeader,
    arr: *mut MpRtHeader,
    place: *const c_char,
) {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        let (binding, len) = unsafe { (binding(res, place), array::len(arr) as u64) };
        if len != binding.len {
            let own = binding.len;
            die(format_args!("{len} elements are assigned to a device binding of {own}"))
        }
        if let Some(unfit) = UNFIT.take() {
            die(format_args!("{}", unfit.message))
        }
        // SAFETY: forwarded from the caller.
        unsafe { or_stop(binding.assign(HostArray::share(arr)), place) }
    })
}

/// See [`magpie_types::abi::RtFn::GpuResidentLen`].
///
/// # Safety
/// `res` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_resident_len(res: *const MpRtHeader) -> u64 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { payload::<Binding>(res) }.map_or(0, |binding| binding.len))
}

/// See [`magpie_types::abi::RtFn::GpuDeviceOrStop`].
///
/// # Safety
/// `place` is null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_device_or_stop(place: *const c_char) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    guarded(|| new_object(unsafe { or_stop(Runtime::global().default_device(), place) }))
}

/// See [`magpie_types::abi::RtFn::GpuIsAvailable`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mp_rt_gpu_is_available() -> bool {
    guarded(|| Runtime::global().default_device().is_ok())
}

/// See [`magpie_types::abi::RtFn::GpuStop`].
///
/// # Safety
/// `err` is a live `gpu.TError`; `place` is null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_stop(err: *const MpRtHeader, place: *const c_char) -> ! {
    // SAFETY: forwarded from the caller; the message of an error is a live text.
    unsafe { stop(string::as_str(gpu_error::fields(err).message), place) }
}
