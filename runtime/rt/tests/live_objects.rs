//! The number of live objects over several threads. One test, so that nothing else makes objects.

use magpie_rt::object::{self, MpRtHeader};
use magpie_rt::{array, map, string};
use std::ptr;

#[test]
fn live_objects_counts_those_of_all_threads() {
    assert_eq!(object::live_objects(), 0);
    let make = || {
        let texts = array::new_str_array(&["a", "b", "c"]);
        let map = map::new_str_str_map([("k", "v")]);
        [texts, map].map(|obj| obj.expose_provenance())
    };
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(make)).collect();
    let addresses: Vec<usize> =
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let text = string::new_str("one more");
    assert_eq!(object::live_objects(), 8 * (4 + 3) + 1);

    let (here, there) = addresses.split_at(7);
    let release = |addresses: &[usize]| {
        for &address in addresses {
            let obj: *mut MpRtHeader = ptr::with_exposed_provenance_mut(address);
            // SAFETY: each object is released once.
            unsafe { object::release(obj) };
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| release(there));
    });
    release(here);
    // SAFETY: as above.
    unsafe { object::release(text) };
    assert_eq!(object::live_objects(), 0);
}
