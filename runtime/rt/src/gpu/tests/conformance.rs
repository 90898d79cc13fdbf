//! What must be true on every device. The runtime given has all kernels of `support`.

use super::support::{EMPTY, NEXT, SCALE, SPIN, bytes, line, word, words};
use crate::gpu::profile::{Category, Session};
use crate::gpu::{
    Buffer, Context, DriverKind, Element, ErrorKind, GpuResult, LaunchSize, MemoryHint, Runtime,
};
use magpie_types::fixed;
use std::sync::Arc;
use std::time::Duration;

const U32: Element = Element { ty: fixed::U32, size: 4 };

/// A device under test.
pub(crate) struct Subject {
    pub(crate) runtime: Runtime,
    pub(crate) context: Arc<Context>,
}

impl Subject {
    pub(crate) fn new(runtime: Runtime) -> Subject {
        let context = runtime.default_device().unwrap();
        Subject { runtime, context }
    }

    fn buffer(&self, elements: &[u32]) -> Buffer {
        Buffer::from_bytes(&self.context, U32, &bytes(elements), 0).unwrap()
    }

    /// The one interface that fixes workgroup sizes and forbids two names for one buffer.
    fn is_webgpu(&self) -> bool {
        self.context.properties().driver == DriverKind::WebGpu
    }

    fn launch(
        &self,
        kernel: u64,
        size: LaunchSize,
        buffers: &[&Buffer],
        scalars: &[u8],
    ) -> GpuResult<()> {
        self.runtime.launch(&self.context, kernel, size, buffers, scalars)
    }

    /// Everything below.
    pub(crate) fn check_all(&self) {
        self.transfers_keep_every_byte();
        self.ranges_are_checked();
        self.copies_stay_on_the_device();
        self.impossible_buffers_are_refused();
        self.launches_compute();
        self.empty_buffers_work();
        self.one_buffer_may_be_two_parameters();
        self.launch_sizes_are_checked();
        self.arguments_are_checked();
        self.queued_launches_keep_their_order();
        self.fences_tell_when_work_is_done();
        self.memory_is_accounted_for();
        self.buffers_outlive_their_handles();
        self.sessions_record();
        self.threads_may_share_a_device();
    }

    fn transfers_keep_every_byte(&self) {
        for (ty, size) in [
            (fixed::BOOL, 1),
            (fixed::U8, 1),
            (fixed::I16, 2),
            (fixed::F16, 2),
            (fixed::F32, 4),
            (fixed::F64, 8),
            (magpie_types::TypeId(1000), 12),
        ] {
            for len in [0usize, 1, 3, 1000, 70_000] {
                let data: Vec<u8> = (0..len * size).map(|i| (i * 7 + i / 251) as u8).collect();
                let element = Element { ty, size: size as u32 };
                let buffer = Buffer::from_bytes(&self.context, element, &data, 0).unwrap();
                assert_eq!(buffer.len(), len as u64);
                assert!(buffer.read_all().unwrap() == data, "type {ty:?}, {len} elements");
            }
        }
        for hint in [
            MemoryHint::Auto,
            MemoryHint::DeviceLocal,
            MemoryHint::Unified,
            MemoryHint::Staging,
            MemoryHint::Cached,
        ] {
            let buffer = Buffer::new(&self.context, U32, 1000, 13, hint).unwrap();
            assert_eq!(buffer.read_all().unwrap(), vec![0; 4000], "{hint:?} is zero-filled");
            buffer.write(990, &bytes(&[9; 10])).unwrap();
            let mut tail = [0; 40];
            buffer.read(990, &mut tail).unwrap();
            assert_eq!(words(&tail), [9; 10], "{hint:?}");
        }
    }

    fn ranges_are_checked(&self) {
        let buffer = self.buffer(&[1, 2, 3, 4]);
        let mut one = [0; 4];
        for (first, bad) in [(4, true), (u64::MAX, true), (3, false)] {
            assert_eq!(buffer.read(first, &mut one).is_err(), bad);
            assert_eq!(buffer.write(first, &one).is_err(), bad);
        }
        let error = buffer.write(2, &[0; 16]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BufferError);
        assert!(error.message.contains("4 elements from element 2"), "{error}");
        assert_eq!(buffer.read(0, &mut [0; 3]).unwrap_err().kind, ErrorKind::BufferError);
        assert!(buffer.read(4, &mut []).is_ok() && buffer.write(4, &[]).is_ok());
    }

    fn copies_stay_on_the_device(&self) {
        let (src, dst) = (self.buffer(&[1, 2, 3]), self.buffer(&[9; 5]));
        src.copy_to(&dst).unwrap();
        assert_eq!(words(&dst.read_all().unwrap()), [1, 2, 3, 9, 9]);
        src.copy_to(&src.clone()).unwrap();
        let error = dst.copy_to(&src).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BufferError);
        assert!(error.message.contains("5 elements to a buffer of 3"), "{error}");
        let wide = Element { ty: fixed::F64, size: 8 };
        let wide = Buffer::new(&self.context, wide, 8, 0, MemoryHint::Auto).unwrap();
        assert_eq!(src.copy_to(&wide).unwrap_err().kind, ErrorKind::BufferError);
        let empty = self.buffer(&[]);
        empty.copy_to(&dst).unwrap();
        assert_eq!(src.copy_to(&empty).unwrap_err().kind, ErrorKind::BufferError);
    }

    fn impossible_buffers_are_refused(&self) {
        let new = |element, len, usage| {
            Buffer::new(&self.context, element, len, usage, MemoryHint::Auto).unwrap_err()
        };
        for len in [u64::MAX, u64::MAX / 4, 1_000_000_000_000] {
            let error = new(U32, len, 0);
            assert_eq!(error.kind, ErrorKind::OutOfMemory, "{error}");
            assert!(error.message.len() > 20, "{error}");
        }
        assert_eq!(new(Element { size: 0, ..U32 }, 1, 0).kind, ErrorKind::BufferError);
        assert_eq!(new(U32, 1, 16).kind, ErrorKind::BufferError);
    }

    fn launches_compute(&self) {
        let input: Vec<u32> = (0..1000).collect();
        let buffer = self.buffer(&input);
        self.launch(SCALE, line(16), &[&buffer], &word(3)).unwrap();
        let expected: Vec<u32> = input.iter().map(|v| v * 3 + 1).collect();
        assert_eq!(words(&buffer.read_all().unwrap()), expected);
        // Another workgroup size; fewer invocations than elements.
        let block = if self.is_webgpu() { 64 } else { 7 };
        let size = LaunchSize { grid: [3, 1, 1], block: [block, 1, 1] };
        self.launch(SCALE, size, &[&buffer], &word(0)).unwrap();
        let changed = words(&buffer.read_all().unwrap());
        let (now, before) = changed.split_at(3 * block as usize);
        assert!(now.iter().all(|&v| v == 1));
        assert_eq!(before, &expected[now.len()..]);
        self.launch(EMPTY, line(1), &[], &[]).unwrap();
    }

    fn empty_buffers_work(&self) {
        let empty = self.buffer(&[]);
        self.launch(SCALE, line(2), &[&empty], &word(3)).unwrap();
        assert!(empty.read_all().unwrap().is_empty());
        let full = self.buffer(&[5, 6]);
        self.launch(NEXT, line(1), &[&empty, &full], &[]).unwrap();
        assert_eq!(words(&full.read_all().unwrap()), [5, 6]);
    }

    fn one_buffer_may_be_two_parameters(&self) {
        let buffer = self.buffer(&[1, 2, 3]);
        let launched = self.launch(NEXT, line(1), &[&buffer, &buffer], &[]);
        if self.is_webgpu() {
            // It may not be.
            assert_eq!(launched.unwrap_err().kind, ErrorKind::ValidationFailed);
            return;
        }
        launched.unwrap();
        assert_eq!(words(&buffer.read_all().unwrap()), [2, 3, 4]);
    }

    fn launch_sizes_are_checked(&self) {
        let buffer = self.buffer(&[1; 64]);
        let launch = |grid, block| {
            let size = LaunchSize { grid, block };
            self.launch(SCALE, size, &[&buffer], &word(1)).unwrap_err()
        };
        let zero = launch([0, 1, 1], [64, 1, 1]);
        assert_eq!(zero.kind, ErrorKind::LaunchFailed);
        assert!(zero.message.contains("`scale`") && zero.message.contains("[0, 1, 1]"), "{zero}");
        assert_eq!(launch([1, 1, 1], [1, 0, 1]).kind, ErrorKind::LaunchFailed);
        let wide = launch([1, 1, 1], [100_000, 1, 1]);
        let limit = self.context.properties().limits.workgroup_size[0].to_string();
        assert!(wide.message.contains("100000") && wide.message.contains(&limit), "{wide}");
        let limit = self.context.properties().limits.workgroup_invocations.to_string();
        let many = launch([1, 1, 1], [64, 64, 64]);
        assert!(many.message.contains(&limit) || many.message.contains("64 invocations"), "{many}");
        assert_eq!(launch([u32::MAX; 3], [1, 1, 1]).kind, ErrorKind::LaunchFailed);
        assert_eq!(words(&buffer.read_all().unwrap()), [1; 64], "nothing ran");
    }

    fn arguments_are_checked(&self) {
        let buffer = self.buffer(&[1]);
        let kind = |buffers: &[&Buffer], scalars: &[u8]| {
            self.launch(SCALE, line(1), buffers, scalars).unwrap_err().kind
        };
        assert_eq!(kind(&[], &word(1)), ErrorKind::LaunchFailed);
        assert_eq!(kind(&[&buffer, &buffer], &word(1)), ErrorKind::LaunchFailed);
        assert_eq!(kind(&[&buffer], &[]), ErrorKind::LaunchFailed);
        assert_eq!(kind(&[&buffer], &[0; 32]), ErrorKind::LaunchFailed);
        let wide = Element { ty: fixed::F64, size: 8 };
        let wide = Buffer::new(&self.context, wide, 1, 0, MemoryHint::Auto).unwrap();
        assert_eq!(kind(&[&wide], &word(1)), ErrorKind::BufferError);
        let unknown = self.launch(0xDEAD, line(1), &[], &[]).unwrap_err();
        assert_eq!(unknown.kind, ErrorKind::InvalidKernel);
        assert!(unknown.message.contains("0x000000000000dead"), "{unknown}");
    }

    fn queued_launches_keep_their_order(&self) {
        let (a, b) = (self.buffer(&[0; 256]), self.buffer(&[0; 256]));
        let queue = |kernel, buffers: &[&Buffer], scalars: &[u8]| {
            self.runtime.launch_async(&self.context, kernel, line(4), buffers, scalars).unwrap();
        };
        for _ in 0..50 {
            queue(NEXT, &[&a, &b], &[]);
            queue(NEXT, &[&b, &a], &[]);
            queue(SCALE, &[&a], &word(1));
        }
        assert_eq!(words(&a.read_all().unwrap()), [150; 256]);
        assert_eq!(words(&b.read_all().unwrap()), [148; 256]);
        // A transfer between two launches.
        queue(SCALE, &[&a], &word(0));
        a.write(0, &bytes(&[7])).unwrap();
        queue(SCALE, &[&a], &word(2));
        a.copy_to(&b).unwrap();
        queue(SCALE, &[&a], &word(2));
        self.context.synchronize().unwrap();
        assert_eq!(words(&b.read_all().unwrap())[..2], [15, 3]);
        assert_eq!(words(&a.read_all().unwrap())[..2], [31, 7]);
    }

    fn fences_tell_when_work_is_done(&self) {
        let buffer = self.buffer(&[0; 64]);
        let spin = |rounds| {
            let size = line(1);
            self.runtime.launch_async(&self.context, SPIN, size, &[&buffer], &word(rounds)).unwrap()
        };
        let fence = spin(1000);
        assert!(fence.wait(None).unwrap() && fence.wait(Some(Duration::ZERO)).unwrap());
        let expected = 999 * 1000 / 2;
        assert_eq!(words(&buffer.read_all().unwrap()), [expected; 64]);
        let (first, last) = (spin(10), spin(10));
        assert!(last.wait(Some(Duration::from_secs(600))).unwrap());
        assert!(first.wait(Some(Duration::ZERO)).unwrap(), "launches end in order");
        assert!(last.wait(Some(Duration::MAX)).unwrap());
    }

    fn memory_is_accounted_for(&self) {
        let before = self.context.memory_stats();
        let a = self.buffer(&[0; 1000]);
        let b = self.buffer(&[0; 500]);
        drop(a);
        let after = self.context.memory_stats();
        assert_eq!(after.allocated_bytes - before.allocated_bytes, 2000);
        assert!(after.peak_allocated_bytes >= before.allocated_bytes + 6000);
        assert_eq!(after.num_allocations - before.num_allocations, 2);
        assert_eq!(after.num_frees - before.num_frees, 1);
        assert!(after.device_available_bytes <= after.device_total_bytes);
        drop(b);
        assert_eq!(self.context.memory_stats().allocated_bytes, before.allocated_bytes);
    }

    /// Memory of a buffer that dies while launches use it is not given to another before.
    fn buffers_outlive_their_handles(&self) {
        for round in 0..20u32 {
            let used = self.buffer(&[round; 4096]);
            let fence = self
                .runtime
                .launch_async(&self.context, SPIN, line(64), &[&used], &word(2000))
                .unwrap();
            drop(used);
            let fresh = self.buffer(&[0xABCD; 4096]);
            assert!(fence.wait(None).unwrap());
            assert_eq!(words(&fresh.read_all().unwrap()), [0xABCD; 4096]);
        }
    }

    fn sessions_record(&self) {
        let session = Session::begin(&self.context).unwrap();
        let second = Session::begin(&self.context).unwrap_err();
        assert!(second.message.contains("MPG_PROF_1002"), "{second}");
        session.mark_begin("region").unwrap();
        let buffer = self.buffer(&[0; 64]);
        for _ in 0..3 {
            self.launch(SCALE, line(1), &[&buffer], &word(2)).unwrap();
        }
        self.runtime.launch_async(&self.context, SCALE, line(1), &[&buffer], &word(2)).unwrap();
        assert_eq!(words(&buffer.read_all().unwrap()), [15; 64]);
        session.mark_end("region").unwrap();
        assert_eq!(session.mark_end("region").unwrap_err().kind, ErrorKind::ValidationFailed);
        let warnings = session.enable_counters(&["a", "b"]);
        let codes = ["MPG_PROF_1001", "MPG_PROF_1003", "MPG_PROF_1003"];
        assert!(warnings.len() == 3 && warnings.iter().zip(codes).all(|(w, c)| w.contains(c)));
        let events = session.end().unwrap();
        let count = |category| events.iter().filter(|e| e.category() == category).count();
        assert_eq!(count(Category::Launch), 4);
        assert_eq!(count(Category::Transfer), 2);
        assert_eq!(count(Category::Region), 1);
        assert!(events.iter().all(|e| e.start_ns <= e.end_ns));
        assert!(events.is_sorted_by_key(|e| e.start_ns));
        let launches: Vec<_> = events.iter().filter(|e| e.category() == Category::Launch).collect();
        assert!(launches.iter().all(|e| e.device_clock && e.name == "scale"), "{launches:?}");
        let region = events.iter().find(|e| e.category() == Category::Region).unwrap();
        // The clocks of host and device may be read a little apart.
        let slack = 20_000_000;
        for launch in launches {
            assert!(launch.start_ns + slack >= region.start_ns, "{launch:?} {region:?}");
            assert!(launch.end_ns <= region.end_ns + slack, "{launch:?} {region:?}");
        }
        assert_eq!(session.end().unwrap_err().kind, ErrorKind::ValidationFailed);
        drop(Session::begin(&self.context).unwrap());
        assert!(Session::begin(&self.context).unwrap().end().unwrap().is_empty());
    }

    fn threads_may_share_a_device(&self) {
        std::thread::scope(|scope| {
            for n in 0..4u32 {
                scope.spawn(move || {
                    let buffer = self.buffer(&[n; 300]);
                    for _ in 0..25 {
                        self.launch(SCALE, line(5), &[&buffer], &word(1)).unwrap();
                        self.runtime
                            .launch_async(&self.context, SCALE, line(5), &[&buffer], &word(1))
                            .unwrap();
                    }
                    assert_eq!(words(&buffer.read_all().unwrap()), [n + 50; 300]);
                });
            }
        });
    }
}
