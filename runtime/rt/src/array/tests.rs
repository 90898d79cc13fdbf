use super::*;
use crate::testing::{outputs, without_leaks};
use crate::typeinfo::TypeInfos;
use magpie_types::abi::ScalarClass;
use magpie_types::{Category, Field, PrimType, TypeCtx, TypeId, TypeKind};
use proptest::prelude::*;
use std::ptr;

fn info_of(ty: TypeId) -> &'static MpRtTypeInfo {
    TypeInfos::new(&TypeCtx::new()).for_value(ty)
}

fn array_of<T>(info: &'static MpRtTypeInfo, items: &[T]) -> *mut MpRtHeader {
    assert_eq!(info.stride(), size_of::<T>());
    // SAFETY: the elements have the type that the info describes.
    unsafe {
        let arr = mp_rt_arr_new(info, 0);
        for item in items {
            mp_rt_arr_push(arr, ptr::from_ref(item).cast());
        }
        arr
    }
}

/// # Safety
/// `arr` is an owned array of `T`s without handles.
unsafe fn take<T: Copy>(arr: *mut MpRtHeader) -> Vec<T> {
    // SAFETY: forwarded from the caller.
    unsafe {
        let array = object::payload::<MpRtArray>(arr);
        let items = std::slice::from_raw_parts(array.data.as_ptr().cast(), array.len());
        let items = items.to_vec();
        object::release(arr);
        items
    }
}

#[test]
fn elements_are_pushed_and_popped() {
    without_leaks(|| {
        let arr = array_of(info_of(fixed::I32), &(0..1000).collect::<Vec<i32>>());
        // SAFETY: the array is live and holds `i32`s.
        unsafe {
            let array = object::payload::<MpRtArray>(arr);
            assert_eq!(array.data.as_ptr() as usize % DATA_ALIGN, 0);
            let mut out = 0i32;
            let address = ptr::from_mut(&mut out).cast();
            for expected in (0..1000).rev() {
                assert!(mp_rt_arr_pop(arr, address));
                assert_eq!(out, expected);
            }
            out = 7;
            assert!(!mp_rt_arr_pop(arr, ptr::from_mut(&mut out).cast()));
            assert_eq!(out, 0);
            object::release(arr);
        }
    });
}

#[test]
fn elements_change_their_places() {
    let mut ctx = TypeCtx::new();
    let ty = ctx.declare_struct("m.TTriple", Category::Value);
    let TypeKind::Struct(id) = ctx.kind(ty) else { panic!("a struct was declared") };
    let field = |name: &str| Field { name: name.into(), ty: fixed::I64 };
    ctx.define_struct(id, vec![field("a"), field("b"), field("c")]);
    let triple = TypeInfos::new(&ctx).for_value(ty);
    without_leaks(|| {
        // SAFETY: the arrays are live and hold what their infos describe.
        unsafe {
            let moved = |from, to| {
                let arr = array_of(info_of(fixed::I32), &[0, 1, 2, 3, 4]);
                mp_rt_arr_move(arr, from, to);
                take::<i32>(arr)
            };
            assert_eq!(moved(4, 1), [0, 4, 1, 2, 3]);
            assert_eq!(moved(0, 3), [1, 2, 3, 0, 4]);
            assert_eq!(moved(2, 2), [0, 1, 2, 3, 4]);
            for len in 0..6i64 {
                let items: Vec<[i64; 3]> = (0..len).map(|n| [n, -n, 7]).collect();
                let arr = array_of(triple, &items);
                mp_rt_arr_reverse(arr);
                let reversed: Vec<[i64; 3]> = items.into_iter().rev().collect();
                assert_eq!(take::<[i64; 3]>(arr), reversed);
            }
            let arr = array_of(info_of(fixed::U8), &[1u8, 2, 3]);
            mp_rt_arr_reverse(arr);
            assert_eq!(take::<u8>(arr), [3, 2, 1]);
            let texts = new_str_array(&["a", "b", "c"]);
            mp_rt_arr_reverse(texts);
            mp_rt_arr_move(texts, 0, 2);
            let found: Vec<&str> = handles(texts).iter().map(|&s| string::as_str(s)).collect();
            assert_eq!(found, ["b", "a", "c"]);
            object::release(texts);
            let zeroed = mp_rt_arr_zeroed(info_of(fixed::F64), 3);
            assert_eq!(take::<f64>(zeroed), [0.0; 3]);
        }
    });
}

#[test]
fn equal_elements_are_found() {
    fn finds<T: Copy>(ty: TypeId, class: ScalarClass, items: &[T], wanted: T) -> bool {
        let arr = array_of(info_of(ty), items);
        // SAFETY: the array is live and its elements are of the class.
        unsafe {
            let found = mp_rt_arr_contains(arr, ptr::from_ref(&wanted).cast(), class as u64);
            object::release(arr);
            found
        }
    }
    without_leaks(|| {
        let many: Vec<i64> = (0..200).collect();
        assert!((0..200).all(|n| finds(fixed::I64, ScalarClass::I64, &many, n)));
        assert!(!finds(fixed::I64, ScalarClass::I64, &many, 200));
        assert!(!finds(fixed::I64, ScalarClass::I64, &[], 0i64));
        assert!(finds(fixed::U8, ScalarClass::U8, &[1u8, 2, 255], 255));
        assert!(finds(fixed::F64, ScalarClass::F64, &[1.0, -0.0], 0.0));
        assert!(!finds(fixed::F64, ScalarClass::F64, &[1.0, f64::NAN], f64::NAN));
        assert!(finds(fixed::F16, ScalarClass::F16, &[0x3c00u16, 0x8000], 0));
    });
}

#[test]
fn slices_retain_their_handles() {
    without_leaks(|| {
        let arr = new_str_array(&["a", "b", "c"]);
        // SAFETY: arrays and strings are live until released.
        unsafe {
            let part = mp_rt_arr_slice(arr, 1, 3);
            let [_, b, c] = *handles(arr) else { panic!("three strings") };
            assert_eq!(handles(part), [b, c]);
            assert_eq!(((*b).strong_count(), (*c).strong_count()), (2, 2));
            object::release(arr);
            assert_eq!(string::as_str(handles(part)[1]), "c");
            object::release(part);
        }
    });
}

#[test]
fn structs_and_units_are_elements_too() {
    without_leaks(|| {
        let mut ctx = TypeCtx::new();
        let ty = ctx.declare_struct("m.TPair", Category::Value);
        let TypeKind::Struct(id) = ctx.kind(ty) else { panic!("a struct was declared") };
        let field = |name: &str, ty| Field { name: name.into(), ty };
        ctx.define_struct(id, vec![field("a", fixed::U8), field("b", fixed::F64)]);
        let vec3 = ctx.intern(TypeKind::Vec(PrimType::F32, 3));
        let infos = TypeInfos::new(&ctx);
        let arr = array_of(infos.for_value(ty), &[[1u64, 2], [3, 4]]);
        // SAFETY: the arrays hold what their infos describe.
        unsafe {
            let arr = (mp_rt_arr_slice(arr, 0, 2), object::release(arr)).0;
            assert_eq!(take::<[u64; 2]>(arr), [[1, 2], [3, 4]]);

            let vectors = mp_rt_arr_new(infos.for_value(vec3), 0);
            mp_rt_arr_push(vectors, ptr::from_ref(&[1f32, 2.0, 3.0]).cast());
            mp_rt_arr_push(vectors, ptr::from_ref(&[4f32, 5.0, 6.0]).cast());
            let expected = [[1f32, 2.0, 3.0, 0.0], [4.0, 5.0, 6.0, 0.0]];
            assert_eq!(take::<[f32; 4]>(vectors), expected);

            let units = array_of(infos.for_value(fixed::UNIT), &[(); 9]);
            let part = mp_rt_arr_slice(units, 2, 9);
            assert_eq!((len(units), len(part)), (9, 7));
            object::release(units);
            object::release(part);
        }
    });
}

#[test]
fn bytes_become_elements() {
    without_leaks(|| {
        let bytes_of_two = [1, 0, 0, 0, 2, 0, 0, 0];
        let arr = try_from_bytes(info_of(fixed::U32), &bytes_of_two).unwrap();
        let zeroed = try_new_zeroed(info_of(fixed::U32), 3).unwrap();
        // SAFETY: the arrays are live and hold `u32`s.
        unsafe {
            assert_eq!(bytes(arr), bytes_of_two);
            assert_eq!(take::<u32>(arr), [1u32, 2].map(u32::to_le));
            bytes_mut(zeroed)[4] = 5;
            assert_eq!(element_info(zeroed).type_id, fixed::U32.0);
            assert_eq!(take::<u32>(zeroed), [0, 5u32.to_le(), 0]);
        }
    });
}

#[test]
fn floats_are_equal_by_value() {
    let arr = array_of(info_of(fixed::F64), &[0.0, f64::NAN]);
    let class = u64::from(fixed::F64.0);
    let contains = |value: f64| {
        // SAFETY: the array is live and holds `f64`s.
        unsafe { mp_rt_arr_contains(arr, ptr::from_ref(&value).cast(), class) }
    };
    assert!(contains(-0.0));
    assert!(!contains(f64::NAN));
    assert!(!contains(1.0));
    // SAFETY: the array is ours.
    unsafe { object::release(arr) };
}

#[test]
fn functions_of_the_program_compare() {
    unsafe extern "C" fn same_last_digit(a: *const u8, b: *const u8) -> bool {
        // SAFETY: the array holds `i32`s.
        unsafe { a.cast::<i32>().read() % 10 == b.cast::<i32>().read() % 10 }
    }
    unsafe extern "C" fn by_last_digit(a: *const u8, b: *const u8) -> i32 {
        // SAFETY: the array holds `i32`s.
        unsafe { a.cast::<i32>().read() % 10 - b.cast::<i32>().read() % 10 }
    }
    let arr = array_of(info_of(fixed::I32), &[21, 12, 11, 32, 1, 30]);
    // SAFETY: the array holds `i32`s, and the functions compare such.
    unsafe {
        let eq = same_last_digit as EqFn as usize as u64;
        assert!(mp_rt_arr_contains(arr, ptr::from_ref(&42i32).cast(), eq));
        assert!(!mp_rt_arr_contains(arr, ptr::from_ref(&43i32).cast(), eq));
        mp_rt_arr_sort(arr, by_last_digit as OrdFn as usize as u64);
        assert_eq!(take::<i32>(arr), [30, 21, 11, 1, 12, 32]);
    }
}

#[test]
fn text_is_sorted_and_found_by_bytes() {
    without_leaks(|| {
        let arr = new_str_array(&["b", "ä", "", "a", "B"]);
        let wanted = string::new_str("ä");
        let class = u64::from(fixed::STR.0);
        // SAFETY: the array holds `Str`s and is live until released.
        unsafe {
            assert!(mp_rt_arr_contains(arr, ptr::from_ref(&wanted).cast(), class));
            object::release(wanted);
            mp_rt_arr_sort(arr, class);
            let texts: Vec<_> = handles(arr).iter().map(|&s| string::as_str(s)).collect();
            assert_eq!(texts, ["", "B", "a", "b", "ä"]);
            object::release(arr);
        }
    });
}

#[test]
fn nan_comes_last_and_zeros_keep_their_order() {
    let values = [f64::NAN, 1.0, 0.0, -0.0, f64::NEG_INFINITY, -f64::NAN, f64::INFINITY];
    let arr = array_of(info_of(fixed::F64), &values);
    // SAFETY: the array holds `f64`s.
    let sorted = unsafe {
        mp_rt_arr_sort(arr, fixed::F64.0.into());
        take::<f64>(arr)
    };
    let text = format!("{sorted:?}");
    assert_eq!(text, "[-inf, 0.0, -0.0, 1.0, inf, NaN, NaN]");
    let halves = [0x3c00u16, 0xbc00, 0x0000, 0x7c00];
    let arr = array_of(info_of(fixed::F16), &halves);
    // SAFETY: the array holds `f16`s.
    let sorted = unsafe {
        mp_rt_arr_sort(arr, fixed::F16.0.into());
        take::<u16>(arr)
    };
    assert_eq!(sorted, [0xbc00, 0x0000, 0x3c00, 0x7c00]);
}

macro_rules! sorts_like_the_standard_library {
    ($($name:ident: $ty:ty, $id:expr;)*) => {
        proptest! {
            $(#[test]
            fn $name(mut items: Vec<$ty>) {
                let arr = array_of(info_of($id), &items);
                // SAFETY: the array holds elements of this type.
                let sorted = unsafe {
                    mp_rt_arr_sort(arr, $id.0.into());
                    take::<$ty>(arr)
                };
                items.sort();
                prop_assert_eq!(sorted, items);
            })*
        }
    };
}

sorts_like_the_standard_library! {
    sorts_bool: bool, fixed::BOOL;
    sorts_i8: i8, fixed::I8;
    sorts_i16: i16, fixed::I16;
    sorts_i32: i32, fixed::I32;
    sorts_i64: i64, fixed::I64;
    sorts_u8: u8, fixed::U8;
    sorts_u16: u16, fixed::U16;
    sorts_u32: u32, fixed::U32;
    sorts_u64: u64, fixed::U64;
}

#[test]
fn impossible_requests_panic() {
    // SAFETY: infos and arrays are as the functions want them.
    let cases: [fn(); 5] = unsafe {
        [
            || _ = mp_rt_arr_new(info_of(fixed::I64), -1),
            || _ = mp_rt_arr_new(info_of(fixed::I64), i64::MAX),
            || _ = mp_rt_arr_new(info_of(fixed::I64), 1 << 56),
            || _ = mp_rt_arr_slice(new_str_array(&["a"]), 0, 2),
            || mp_rt_arr_sort(new_str_array(&["a"]), 63),
        ]
    };
    let messages = [
        "an array cannot have room for -1 elements",
        "out of memory: the size asked for exceeds the address space",
        "out of memory: 576460752303423488 bytes were asked for",
        "array slice out of bounds: 0 .. 2 of 1 elements",
        "error inside the runtime: no element class 63",
    ];
    let outputs = outputs("array::tests::impossible_requests_panic", &cases);
    for ((code, _, stderr), message) in outputs.iter().zip(messages) {
        assert_eq!((*code, &**stderr), (Some(101), &*format!("panic: {message}\n")));
    }
}
