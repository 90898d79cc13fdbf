use super::*;
use crate::testing::without_leaks;
use crate::typeinfo::TypeInfos;
use magpie_types::{TypeCtx, TypeId};
use proptest::prelude::*;

fn info_of(ty: TypeId) -> &'static MpRtTypeInfo {
    TypeInfos::new(&TypeCtx::new()).for_value(ty)
}

/// A map whose key class is that of the key type.
fn new_map(key: TypeId, value: TypeId) -> *mut MpRtHeader {
    // SAFETY: the class fits the key.
    unsafe { mp_rt_map_new(info_of(key), info_of(value), key.0.into(), key.0.into()) }
}

fn address<T>(value: &T) -> *const u8 {
    ptr::from_ref(value).cast()
}

/// # Safety
/// `map` is a live map of `K` to `V`; both are without handles.
unsafe fn get<K, V: Copy>(map: *const MpRtHeader, key: K) -> Option<V> {
    // SAFETY: forwarded from the caller.
    unsafe { mp_rt_map_get(map, address(&key)).cast::<V>().as_ref().copied() }
}

/// # Safety
/// As [`get`].
unsafe fn delete<K, V: Copy + Default>(map: *mut MpRtHeader, key: K) -> Option<V> {
    let mut out = V::default();
    // SAFETY: forwarded from the caller.
    unsafe { mp_rt_map_delete(map, address(&key), ptr::from_mut(&mut out).cast()) }.then_some(out)
}

/// # Safety
/// `arr` is an owned array of `Str`s.
unsafe fn texts(arr: *mut MpRtHeader) -> Vec<String> {
    // SAFETY: forwarded from the caller.
    unsafe {
        let texts = array::handles(arr).iter().map(|&s| string::as_str(s).to_string()).collect();
        object::release(arr);
        texts
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set(String, String),
    Get(String),
    Delete(String),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || "[a-e]{0,3}";
    let step = prop_oneof![
        4 => (key(), ".{0,4}").prop_map(|(key, value)| Step::Set(key, value)),
        1 => key().prop_map(Step::Get),
        3 => key().prop_map(Step::Delete),
    ];
    prop::collection::vec(step, 0..400)
}

proptest! {
    /// The model is a list of pairs, searched from the front.
    #[test]
    fn agrees_with_a_list_of_pairs(steps in steps()) {
        without_leaks(|| {
            let map = new_map(fixed::STR, fixed::STR);
            let mut model: Vec<(String, String)> = Vec::new();
            for step in steps {
                // SAFETY: the map holds strings; keys and values are live or given away.
                unsafe { check_step(map, &mut model, step) };
            }
            let (keys, values): (Vec<_>, Vec<_>) = model.into_iter().unzip();
            // SAFETY: the map is ours.
            unsafe {
                assert_eq!(texts(mp_rt_map_keys(map)), keys);
                assert_eq!(texts(mp_rt_map_values(map)), values);
                object::release(map);
            }
        });
    }
}

unsafe fn check_step(map: *mut MpRtHeader, model: &mut Vec<(String, String)>, step: Step) {
    let position = |model: &[(String, String)], key: &str| model.iter().position(|e| e.0 == key);
    // SAFETY: the caller passes a live map of strings.
    unsafe {
        match step {
            Step::Set(key, value) => {
                let handles = (string::new_str(&key), string::new_str(&value));
                mp_rt_map_set(map, address(&handles.0), address(&handles.1));
                match position(model, &key) {
                    Some(at) => model[at].1 = value,
                    None => model.push((key, value)),
                }
            }
            Step::Get(key) => {
                let handle = string::new_str(&key);
                let found: Option<*mut MpRtHeader> = get(map, handle);
                let expected = position(model, &key).map(|at| &*model[at].1);
                assert_eq!(found.map(|s| string::as_str(s)), expected);
                object::release(handle);
            }
            Step::Delete(key) => {
                let handle = string::new_str(&key);
                let mut out = ptr::dangling_mut::<MpRtHeader>();
                let found = mp_rt_map_delete(map, address(&handle), ptr::from_mut(&mut out).cast());
                match position(model, &key) {
                    Some(at) => {
                        assert!(found);
                        assert_eq!(string::as_str(out), model.remove(at).1);
                    }
                    None => assert!(!found && out.is_null()),
                }
                object::release(out);
                object::release(handle);
            }
        }
        assert_eq!(mp_rt_map_len(map), model.len() as u64);
    }
}

#[test]
fn growth_and_shrinking_keep_order_and_content() {
    without_leaks(|| {
        let map = new_map(fixed::I64, fixed::I32);
        // SAFETY: the map holds `i64` and `i32`.
        unsafe {
            for key in 0..10_000i64 {
                mp_rt_map_set(map, address(&(key << 40)), address(&(key as i32)));
            }
            for key in (0..10_000i64).filter(|key| key % 100 != 7) {
                assert_eq!(delete(map, key << 40), Some(key as i32));
            }
            assert_eq!(mp_rt_map_len(map), 100);
            assert!(MAP.get(map).cap < 1000, "deleted entries stay forever");
            let keys = mp_rt_map_keys(map);
            let expected: Vec<u8> =
                (0..100i64).flat_map(|i| ((i * 100 + 7) << 40).to_ne_bytes()).collect();
            assert_eq!(array::bytes(keys), expected);
            assert_eq!(get(map, 907i64 << 40), Some(907i32));
            assert_eq!(get(map, 908i64 << 40), None::<i32>);
            object::release(keys);
            object::release(map);
        }
    });
}

#[test]
fn a_queue_of_constant_length_does_not_grow() {
    let map = new_map(fixed::U64, fixed::U64);
    // SAFETY: the map holds `u64`s.
    unsafe {
        for i in 0..100_000u64 {
            mp_rt_map_set(map, address(&i), address(&i));
            if i >= 10 {
                assert_eq!(delete(map, i - 10), Some(i - 10));
            }
        }
        assert!(MAP.get(map).cap < 100);
        object::release(map);
    }
}

#[test]
fn float_keys_are_compared_by_value() {
    let map = new_map(fixed::F64, fixed::U8);
    // SAFETY: the map holds `f64` and `u8`.
    unsafe {
        mp_rt_map_set(map, address(&0.0f64), address(&1u8));
        mp_rt_map_set(map, address(&f64::NAN), address(&2u8));
        mp_rt_map_set(map, address(&-f64::NAN), address(&3u8));
        assert_eq!(get(map, -0.0f64), Some(1u8));
        assert_eq!(get(map, f64::NAN), Some(3u8));
        assert_eq!(mp_rt_map_len(map), 2);
        object::release(map);
    }
}

#[test]
fn functions_of_the_program_compare_keys() {
    unsafe extern "C" fn hash(key: *const u8) -> u64 {
        // Deliberately bad: everything collides with half of everything.
        // SAFETY: keys are `i32`s.
        unsafe { key.cast::<i32>().read().rem_euclid(2) as u64 }
    }
    unsafe extern "C" fn eq(a: *const u8, b: *const u8) -> bool {
        // SAFETY: keys are `i32`s.
        unsafe { a.cast::<i32>().read() == b.cast::<i32>().read() }
    }
    let (hash, eq) = (hash as HashFn as usize as u64, eq as EqFn as usize as u64);
    // SAFETY: the functions fit the keys.
    unsafe {
        let map = mp_rt_map_new(info_of(fixed::I32), info_of(fixed::I32), hash, eq);
        for key in 0..300i32 {
            mp_rt_map_set(map, address(&key), address(&(key * key)));
        }
        for key in (0..300i32).step_by(3) {
            assert_eq!(delete(map, key), Some(key * key));
        }
        for key in 0..300i32 {
            assert_eq!(get(map, key), (key % 3 != 0).then_some(key * key));
        }
        object::release(map);
    }
}

#[test]
fn maps_of_the_runtime() {
    without_leaks(|| {
        let numbers = new_str_f64_map([("occupancy", 0.5), ("b", 1.0), ("occupancy", 0.75)]);
        let texts = new_str_str_map([("kernel", "@add"), ("device", "cpu")]);
        // SAFETY: the maps are live until released.
        unsafe {
            assert_eq!(mp_rt_map_len(numbers), 2);
            let key = string::new_str("occupancy");
            assert_eq!(get(numbers, key), Some(0.75f64));
            let entries: Vec<_> = str_str_entries(texts).collect();
            assert_eq!(entries, [("kernel", "@add"), ("device", "cpu")]);
            for obj in [key, numbers, texts] {
                object::release(obj);
            }
        }
    });
}
