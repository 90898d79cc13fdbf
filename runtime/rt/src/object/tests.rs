use super::*;
use crate::string::as_str;
use crate::testing::{outputs, without_leaks};
use crate::typeinfo::TypeInfos;
use crate::{array, map};
use magpie_types::{Category, Field, RefMode, TypeCtx, TypeKind, fixed};

/// `heap struct TNode { field next: TOption<TNode>  field up: weak TNode  field children:
/// Array<TNode> }`: infos of the object and of a handle to it.
fn node() -> (&'static MpRtTypeInfo, &'static MpRtTypeInfo) {
    let mut ctx = TypeCtx::new();
    let ty = ctx.declare_struct("m.TNode", Category::Heap);
    let TypeKind::Struct(id) = ctx.kind(ty) else { panic!("a struct was declared") };
    let next = ctx.intern(TypeKind::Option(ty));
    let up = ctx.intern(TypeKind::Ref(RefMode::Weak, ty));
    let children = ctx.intern(TypeKind::Array(ty));
    let field = |name: &str, ty| Field { name: name.into(), ty };
    let fields = vec![field("next", next), field("up", up), field("children", children)];
    ctx.define_struct(id, fields);
    let infos = TypeInfos::new(&ctx);
    (infos.for_object(ty).unwrap(), infos.for_value(ty))
}

const NEXT: usize = 8;
const UP: usize = 16;
const CHILDREN: usize = 24;

fn new_node(info: &'static MpRtTypeInfo) -> *mut MpRtHeader {
    // SAFETY: the info describes an object and stays.
    unsafe { mp_rt_alloc(info) }
}

/// # Safety
/// `node` is a live node, `handle` an owned handle of the field's type.
unsafe fn set(node: *mut MpRtHeader, field: usize, handle: *mut MpRtHeader) {
    // SAFETY: the field lies in the payload at this offset.
    unsafe { payload_ptr(node).add(field).cast::<*mut MpRtHeader>().write(handle) }
}

#[test]
fn null_is_harmless() {
    let null = ptr::null_mut();
    // SAFETY: all of these accept null.
    unsafe {
        mp_rt_retain(null);
        mp_rt_release(null);
        mp_rt_weak_retain(null);
        mp_rt_weak_release(null);
        assert!(mp_rt_weak_downgrade(null).is_null());
        assert!(mp_rt_weak_upgrade(null).is_null());
    }
}

#[test]
fn a_new_object_is_zeroed_and_counted_once() {
    without_leaks(|| {
        let (info, _) = node();
        let obj = new_node(info);
        // SAFETY: the object is live until its release.
        unsafe {
            assert_eq!((*obj).strong_count(), 1);
            assert_eq!((*obj).type_id(), info.type_id);
            let payload = std::slice::from_raw_parts(payload_ptr(obj), info.size as usize);
            assert!(payload.iter().all(|&byte| byte == 0));
            release(obj);
        }
    });
}

#[test]
fn weak_handles_outlive_the_object() {
    without_leaks(|| {
        let obj = new_node(node().0);
        // SAFETY: every count that is given up here was taken before.
        unsafe {
            retain(obj);
            let weak = mp_rt_weak_downgrade(obj);
            mp_rt_weak_retain(weak);
            let strong = mp_rt_weak_upgrade(weak);
            assert_eq!((strong, (*obj).strong_count()), (obj, 2));
            release(strong);
            release(obj);
            assert!(mp_rt_weak_upgrade(weak).is_null());
            mp_rt_weak_release(weak);
            assert!(mp_rt_weak_upgrade(weak).is_null());
            mp_rt_weak_release(weak);
        }
    });
}

#[test]
fn a_weak_back_reference_makes_no_cycle() {
    without_leaks(|| {
        let (info, _) = node();
        let (parent, child) = (new_node(info), new_node(info));
        // SAFETY: the parent takes over the child's count, the child a weak one.
        unsafe {
            weak_retain(parent);
            set(child, UP, parent);
            set(parent, NEXT, child);
            release(parent);
        }
    });
}

/// Runs on a stack that any recursion by the length of the data would overflow.
fn on_a_small_stack(body: fn()) {
    let thread = std::thread::Builder::new().stack_size(64 * 1024);
    thread.spawn(move || without_leaks(body)).unwrap().join().unwrap();
}

#[test]
fn a_long_list_is_dropped_without_recursion() {
    on_a_small_stack(|| {
        let (info, _) = node();
        let mut list = ptr::null_mut();
        for _ in 0..1_000_000 {
            let node = new_node(info);
            // SAFETY: the new node takes over the list.
            unsafe { set(node, NEXT, list) };
            list = node;
        }
        // SAFETY: the list is ours.
        unsafe { release(list) };
    });
}

#[test]
fn nesting_through_arrays_and_maps_is_dropped_without_recursion() {
    on_a_small_stack(|| {
        let (info, handle) = node();
        let mut inner = ptr::null_mut();
        for depth in 0..100_000 {
            let node = new_node(info);
            // SAFETY: array and map take over the inner node, the new node takes over both.
            unsafe {
                if depth % 2 == 0 {
                    set(node, CHILDREN, array::from_handles(handle, &[inner]));
                } else {
                    let class = fixed::I64.0.into();
                    let key = TypeInfos::new(&TypeCtx::new()).for_value(fixed::I64);
                    let map = map::mp_rt_map_new(key, handle, class, class);
                    let inner = ptr::from_ref(&inner).cast();
                    map::mp_rt_map_set(map, ptr::from_ref(&depth).cast(), inner);
                    set(node, CHILDREN, map);
                }
            }
            inner = node;
        }
        // SAFETY: the outermost node is ours.
        unsafe { release(inner) };
    });
}

#[test]
fn literals_are_never_counted() {
    let image = object_layout::str_literal("abc");
    let mut words = vec![0u64; image.len().div_ceil(8)];
    let literal = words.as_mut_ptr().cast::<MpRtHeader>();
    // SAFETY: the words have room for the image, which is that of a `Str`.
    unsafe {
        literal.cast::<u8>().copy_from_nonoverlapping(image.as_ptr(), image.len());
        assert_eq!(as_str(literal), "abc");
        retain(literal);
        for _ in 0..9 {
            release(literal);
            weak_release(literal);
        }
        assert_eq!(upgrade(downgrade(literal)), literal);
        assert_eq!((*literal).strong_count(), 1);
        assert_eq!(as_str(literal), "abc");
    }
}

#[test]
fn values_are_retained_and_released_by_their_handles() {
    without_leaks(|| {
        let mut ctx = TypeCtx::new();
        let weak = ctx.intern(TypeKind::Ref(RefMode::Weak, fixed::STR));
        let result = ctx.intern(TypeKind::Result(fixed::STR, weak));
        let info = TypeInfos::new(&ctx).for_value(result);
        let text = crate::string::new_str("text");
        let value: [*mut MpRtHeader; 3] = [ptr::null_mut(), text, text];
        let address = ptr::from_ref(&value).cast();
        // SAFETY: the value has the layout of the result: tag, strong handle, weak handle.
        unsafe {
            mp_rt_retain_value(info, address);
            assert_eq!((*text).strong_count(), 2);
            release(text);
            mp_rt_release_value(info, address);
        }
    });
}

#[test]
fn threads_may_count_at_the_same_time() {
    let obj = new_node(node().0);
    let address = obj.expose_provenance();
    let work = move || {
        let obj: *mut MpRtHeader = ptr::with_exposed_provenance_mut(address);
        for _ in 0..50_000 {
            // SAFETY: the test holds a count until all threads are done.
            unsafe {
                retain(obj);
                weak_retain(obj);
                let again = upgrade(obj);
                release(obj);
                weak_release(obj);
                release(again);
            }
        }
    };
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(work)).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // SAFETY: the last handle is released.
    unsafe {
        assert_eq!((*obj).strong_count(), 1);
        assert_eq!((*obj).weak.load(Ordering::Relaxed), 1);
        release(obj);
    }
}

#[test]
fn only_one_thread_drops() {
    for _ in 0..200 {
        let obj = new_node(node().0);
        let address = obj.expose_provenance();
        let work = move || {
            let obj: *mut MpRtHeader = ptr::with_exposed_provenance_mut(address);
            // SAFETY: each thread was given a strong and a weak count.
            unsafe {
                release(obj);
                release(upgrade(obj));
                weak_release(obj);
            }
        };
        let threads: Vec<_> = (0..4)
            .map(|_| {
                // SAFETY: the test still holds its own count.
                unsafe {
                    retain(obj);
                    weak_retain(obj);
                }
                std::thread::spawn(work)
            })
            .collect();
        // SAFETY: the test gives up its count.
        unsafe { release(obj) };
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn a_program_counts_for_itself() {
    assert!(!KEPT.get());
    crate::program_stack::with_program_stack(|| {
        assert!(KEPT.get());
        a_new_object_is_zeroed_and_counted_once();
        weak_handles_outlive_the_object();
        a_weak_back_reference_makes_no_cycle();
        values_are_retained_and_released_by_their_handles();
        literals_are_never_counted();
    });
}

#[test]
fn an_object_too_large_for_memory_is_a_panic_of_the_program() {
    let cases: [fn(); 1] = [|| {
        let info = Box::leak(Box::new(MpRtTypeInfo::plain(fixed::STR, u32::MAX, 8, c"T")));
        let mut objects = Vec::new();
        for _ in 0..1 << 20 {
            objects.push(try_alloc(info));
            if let Some(Err(error)) = objects.last() {
                or_die::<()>(Err(*error));
            }
        }
    }];
    let [(code, _, stderr)] =
        &outputs("object::tests::an_object_too_large_for_memory_is_a_panic_of_the_program", &cases)
            [..]
    else {
        panic!("there is one case")
    };
    assert_eq!(*code, Some(101));
    assert_eq!(stderr, "panic: out of memory: 4294967327 bytes were asked for\n");
}
