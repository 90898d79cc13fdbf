//! Objects whose payload is a Rust value: builders, maps, devices, buffers.

use crate::memory::or_die;
use crate::object::{self, MpRtHeader};
use crate::panic::guarded;
use crate::typeinfo::MpRtTypeInfo;
use magpie_types::TypeId;
use std::ffi::CStr;
use std::marker::PhantomData;

/// A type of objects that hold a `T`. Make it a `static`: objects refer to it.
pub struct NativeType<T> {
    info: MpRtTypeInfo,
    holds: PhantomData<fn() -> T>,
}

impl<T: Send + Sync + 'static> NativeType<T> {
    /// Objects with this run-time type id.
    pub const fn new(id: TypeId, name: &'static CStr) -> NativeType<T> {
        const { assert!(align_of::<T>() <= 32) };
        let info =
            MpRtTypeInfo::opaque(id, size_of::<T>(), align_of::<T>(), drop_native::<T>, name);
        NativeType { info, holds: PhantomData }
    }

    /// A new object with one strong count. The last release drops the value.
    pub fn alloc(&'static self, value: T) -> *mut MpRtHeader {
        let obj = or_die(object::try_alloc(&self.info));
        // SAFETY: the payload has the size and alignment of a `T`.
        unsafe { object::payload_ptr(obj).cast::<T>().write(value) };
        obj
    }

    /// The value of an object.
    ///
    /// # Safety
    /// `obj` is a live object that [`NativeType::alloc`] of this type made, and nobody writes to
    /// the value during `'a`.
    #[inline]
    pub unsafe fn get<'a>(&self, obj: *const MpRtHeader) -> &'a T {
        self.check(obj);
        // SAFETY: forwarded from the caller.
        unsafe { object::payload(obj) }
    }

    /// The value of an object, to change it.
    ///
    /// # Safety
    /// As [`NativeType::get`], and nobody else uses the value during `'a`.
    #[inline]
    pub unsafe fn get_mut<'a>(&self, obj: *mut MpRtHeader) -> &'a mut T {
        self.check(obj);
        // SAFETY: forwarded from the caller.
        unsafe { object::payload_mut(obj) }
    }

    fn check(&self, obj: *const MpRtHeader) {
        // SAFETY: both callers pass a live object.
        debug_assert_eq!(unsafe { (*obj).type_id() }, self.info.type_id);
    }
}

unsafe extern "C" fn drop_native<T>(obj: *mut MpRtHeader) {
    // SAFETY: called once, for an object whose payload is a `T`.
    guarded(|| unsafe { object::payload_ptr(obj).cast::<T>().drop_in_place() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_types::fixed;
    use std::sync::Arc;

    static TYPE: NativeType<Arc<()>> = NativeType::new(fixed::GPU_KERNEL, c"gpu.TKernel");

    #[test]
    fn the_value_is_dropped_with_the_last_strong_handle() {
        let value = Arc::new(());
        let obj = TYPE.alloc(value.clone());
        // SAFETY: the object is live and counted as the calls say.
        unsafe {
            assert_eq!((*obj).type_id(), 50);
            assert!(Arc::ptr_eq(TYPE.get(obj), &value));
            object::weak_retain(obj);
            object::release(obj);
            assert_eq!(Arc::strong_count(&value), 1);
            assert!(object::upgrade(obj).is_null());
            object::weak_release(obj);
        }
    }
}
