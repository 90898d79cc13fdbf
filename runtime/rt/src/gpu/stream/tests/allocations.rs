//! A launch allocates nothing after the first.

use super::fake::Fake;
use super::{StreamOptions, VENDORS, subject};
use crate::gpu::tests::allocations::allocations;
use crate::gpu::tests::support::{EMPTY, NEXT, SCALE, bytes, line, word};
use crate::gpu::{Buffer, Element};
use magpie_types::fixed;

const U32: Element = Element { ty: fixed::U32, size: 4 };
const LAUNCHES: u32 = 2_000;

#[test]
fn launches_allocate_nothing_after_the_first() {
    for vendor in VENDORS {
        let fake = Fake::new();
        let subject = subject(&fake, vendor, StreamOptions::default());
        let (runtime, context) = (&subject.runtime, &subject.context);
        let buffer = || Buffer::from_bytes(context, U32, &bytes(&[0; 64]), 0).unwrap();
        let (a, b, factor) = (buffer(), buffer(), word(1));
        let measure = |what: &str, launch: &dyn Fn(u32)| {
            // The first launches load modules and fill queues and vectors.
            (0..LAUNCHES).for_each(launch);
            let count = allocations(|| (0..LAUNCHES).for_each(launch));
            assert_eq!(count, 0, "{}, {what}: allocations in {LAUNCHES} launches", vendor.name());
        };
        measure("empty", &|_| runtime.launch(context, EMPTY, line(1), &[], &[]).unwrap());
        measure("with a scalar", &|_| {
            runtime.launch(context, SCALE, line(1), &[&a], &factor).unwrap();
        });
        measure("with buffers", &|_| {
            runtime.launch(context, NEXT, line(1), &[&a, &b], &[]).unwrap();
        });
        measure("queued", &|n| {
            let queued = runtime.launch_async(context, SCALE, line(1), &[&a], &factor);
            let fence = queued.unwrap();
            if n % 100 == 0 {
                assert!(fence.wait(None).unwrap());
            }
        });
        drop((a, b, subject));
        fake.assert_clean();
    }
}
