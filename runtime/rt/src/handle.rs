//! Copies of handles, and of objects that several handles share: what languages whose values are
//! copied when they are changed need.

use crate::object::{self, MpRtHeader};
use crate::panic::guarded;
use crate::{array, map};
use magpie_types::fixed;

/// See [`magpie_types::abi::RtFn::HandleClone`].
///
/// # Safety
/// `obj` is null or a live object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_handle_clone(obj: *mut MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe { object::retain(obj) };
    obj
}

/// See [`magpie_types::abi::RtFn::HandleUnique`].
///
/// # Safety
/// `obj` is null, or a live object that is an array, a map, a text or a struct, and the caller
/// gives up a strong count of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_handle_unique(obj: *mut MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    if unsafe { object::is_only_handle(obj) } {
        return obj;
    }
    // SAFETY: as above; the copy takes the place of the handle given up.
    guarded(|| unsafe {
        let new = copy(obj);
        object::release(obj);
        new
    })
}

/// # Safety
/// `obj` is a live object that is an array, a map, a text or a struct.
unsafe fn copy(obj: *mut MpRtHeader) -> *mut MpRtHeader {
    // SAFETY: forwarded from the caller.
    unsafe {
        let id = (*obj).type_id();
        if id == fixed::ARRAY.0 {
            let len = array::len(obj) as i64;
            array::mp_rt_arr_slice(obj, 0, len)
        } else if id == fixed::MAP.0 {
            map::copy(obj)
        } else if id == fixed::STR.0 {
            mp_rt_handle_clone(obj)
        } else {
            object::copy_plain(obj)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{string, typeinfo};

    #[test]
    fn what_is_shared_is_copied_once() {
        // SAFETY: the objects are live and used according to their counts.
        unsafe {
            let a = array::try_from_bytes(&typeinfo::U8, &[1, 2, 3]).unwrap();
            assert_eq!(mp_rt_handle_unique(a), a);
            let b = mp_rt_handle_clone(a);
            let c = mp_rt_handle_unique(b);
            assert!(c != a && array::bytes(c) == [1, 2, 3]);
            array::bytes_mut(c)[0] = 9;
            assert_eq!(array::bytes(a), [1, 2, 3]);
            assert_eq!(mp_rt_handle_unique(a), a);
            let s = string::new_str("x");
            let t = mp_rt_handle_unique(mp_rt_handle_clone(s));
            assert_eq!(t, s);
            for o in [a, c, s, t] {
                object::release(o);
            }
        }
    }
}
