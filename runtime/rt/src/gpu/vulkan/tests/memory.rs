//! Device memory: reuse, blocks, exhaustion.

use super::{options, subject};
use crate::gpu::tests::support::{SPIN, bytes, line, word, words};
use crate::gpu::{Buffer, Element, ErrorKind, MemoryHint};
use magpie_types::fixed;

const U32: Element = Element { ty: fixed::U32, size: 4 };

#[test]
fn memory_is_used_again() {
    let Some(subject) = subject(options()) else { return };
    // More than lavapipe has, one after the other, of changing sizes.
    let mut sum = 0;
    let mut size = 1;
    while sum < 3 << 30 {
        let len = (size * 7_919_u64) % (96 << 20) / 4 + 1;
        let hint = MemoryHint::from_u32((size % 5) as u32).unwrap();
        let buffer = Buffer::new(&subject.context, U32, len, 0, hint).unwrap();
        buffer.write(len - 1, &bytes(&[size as u32])).unwrap();
        sum += 4 * buffer.len();
        size += 997;
    }
    assert_eq!(subject.context.memory_stats().allocated_bytes, 0);
}

#[test]
fn small_buffers_share_blocks_without_touching() {
    let Some(subject) = subject(options()) else { return };
    let make = |n: u32| {
        let len = n as usize % 300 + 1;
        Buffer::from_bytes(&subject.context, U32, &bytes(&vec![n; len]), 0).unwrap()
    };
    let mut buffers: Vec<Buffer> = (0..2000).map(make).collect();
    for n in (0..2000).step_by(3) {
        buffers[n] = make(n as u32);
    }
    for (n, buffer) in buffers.iter().enumerate() {
        assert!(words(&buffer.read_all().unwrap()).iter().all(|&w| w == n as u32), "{n}");
    }
}

#[test]
fn exhaustion_is_an_error_that_passes() {
    let Some(subject) = subject(options()) else { return };
    let total = subject.context.properties().memory_total;
    if total > 8 << 30 {
        println!("skipped: needs a device with little memory");
        return;
    }
    let mut held = Vec::new();
    let error = loop {
        // Not written to, so that the host does not run out first.
        match Buffer::new(&subject.context, U32, 64 << 20, 0, MemoryHint::Auto) {
            Ok(buffer) => held.push(buffer),
            Err(error) => break error,
        }
        assert!(held.len() < 64, "a heap of {total} bytes has no end");
    };
    assert_eq!(error.kind, ErrorKind::OutOfMemory);
    let size = (256u64 << 20).to_string();
    assert!(error.message.contains(&size) && error.code == -2, "{error}");
    held.clear();
    Buffer::new(&subject.context, U32, 64 << 20, 0, MemoryHint::Auto).unwrap();
}

#[test]
fn memory_that_is_still_used_is_waited_for() {
    let Some(subject) = subject(options()) else { return };
    for round in 0..200u32 {
        let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[0; 1024]), 0).unwrap();
        let rounds = word(round);
        subject
            .runtime
            .launch_async(&subject.context, SPIN, line(16), &[&buffer], &rounds)
            .unwrap();
    }
    subject.context.synchronize().unwrap();
    assert_eq!(subject.context.memory_stats().allocated_bytes, 0);
}
