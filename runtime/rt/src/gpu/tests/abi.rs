//! The C ABI, called as compiled code calls it: with addresses, handles and out parameters.
//!
//! The functions use the runtime of the process, so these tests take turns.

use super::support::{NEXT, SCALE, bytes, cpu_blob, only, words};
use crate::array::{self, from_handles, new_str_array, try_from_bytes};
use crate::gpu::abi::{
    MpRtGpuHostKernel, MpRtGpuKernelBlob, MpRtGpuKernelEntry, MpRtGpuParam, entry,
    mp_rt_gpu_register_kernels,
};
use crate::gpu::{DriverKind, ErrorKind, GpuConfig, Runtime};
use crate::gpu_error::fields;
use crate::map::str_str_entries;
use crate::object::{self, MpRtHeader};
use crate::string::{as_str, new_str};
use crate::symbol_address;
use crate::testing::without_leaks;
use crate::typeinfo::{self, MpRtTypeInfo};
use magpie_types::abi::RtFn;
use magpie_types::kernel::{BlobCode, GpuBackend, KernelBlob};
use magpie_types::{fixed, kernel_codec};
use std::mem::offset_of;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Handle = *mut MpRtHeader;

static U32: MpRtTypeInfo = MpRtTypeInfo::plain(fixed::U32, 4, 4, c"u32");

/// Configures the runtime of the process; others wait until the guard is gone.
fn process(config: GpuConfig) -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Runtime::global().reset();
    Runtime::global().configure(config);
    turn
}

/// Calls a function of the table with the given parameter types.
macro_rules! call {
    ($f:ident($($arg:expr => $ty:ty),* $(,)?) $(-> $ret:ty)?) => {{
        let address = symbol_address(RtFn::$f);
        // SAFETY: the table's test checks the signatures; the arguments are live.
        unsafe {
            std::mem::transmute::<*const u8, unsafe extern "C" fn($($ty),*) $(-> $ret)?>(address)(
                $($arg),*
            )
        }
    }};
}

/// What a fallible call left in its out parameters.
type Outcome<T> = Result<T, (ErrorKind, String)>;

fn outcome<T>(status: i32, out: T, err: Handle) -> Outcome<T> {
    assert_eq!(status == 0, err.is_null(), "an error comes with status -1 and only then");
    if err.is_null() {
        return Ok(out);
    }
    assert_eq!(status, -1);
    // SAFETY: the error is live and ours.
    unsafe {
        let (kind, message) = (fields(err).kind, as_str(fields(err).message).to_string());
        object::release(err);
        Err((ErrorKind::ALL[kind as usize], message))
    }
}

fn out<T: Copy>(nothing: T, f: impl FnOnce(*mut T, *mut Handle) -> i32) -> Outcome<T> {
    let (mut value, mut err) = (nothing, ptr::dangling_mut());
    let status = f(&mut value, &mut err);
    outcome(status, value, err)
}

fn status(f: impl FnOnce(*mut Handle) -> i32) -> Outcome<()> {
    let mut err = ptr::dangling_mut();
    let status = f(&mut err);
    outcome(status, (), err)
}

fn release(handles: &[Handle]) {
    // SAFETY: the tests own what they release.
    handles.iter().for_each(|&handle| unsafe { object::release(handle) });
}

fn default_device() -> Outcome<Handle> {
    out(ptr::null_mut(), |o, e| call!(GpuDeviceDefault(o => *mut Handle, e => *mut Handle) -> i32))
}

fn buffer_from(dev: Handle, elements: &[u32]) -> Handle {
    let array = try_from_bytes(&U32, &bytes(elements)).unwrap();
    let buffer = out(ptr::null_mut(), |o, e| {
        call!(GpuBufferFromArray(
            dev => Handle, array => Handle, fixed::U32.0 => u32, 13 => u32,
            o => *mut Handle, e => *mut Handle,
        ) -> i32)
    });
    release(&[array]);
    buffer.unwrap()
}

fn to_words(array: Handle) -> Vec<u32> {
    // SAFETY: the array is live and ours.
    let elements = words(unsafe { array::bytes(array) });
    release(&[array]);
    elements
}

fn read_all(buffer: Handle) -> Outcome<Vec<u32>> {
    let info = &raw const U32;
    let array = out(ptr::null_mut(), |o, e| {
        call!(GpuBufferToArray(
            buffer => Handle, info => *const MpRtTypeInfo, o => *mut Handle, e => *mut Handle,
        ) -> i32)
    });
    array.map(to_words)
}

/// An argument block.
fn block(buffers: &[Handle], scalar: Option<u32>) -> Vec<u8> {
    let mut block: Vec<u8> =
        buffers.iter().flat_map(|b| (b.expose_provenance() as u64).to_ne_bytes()).collect();
    if let Some(scalar) = scalar {
        block.extend_from_slice(&scalar.to_ne_bytes());
        block.resize(buffers.len() * 8 + 16, 0);
    }
    block
}

type LaunchFn = unsafe extern "C" fn(
    Handle,
    u64,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    *const u8,
    u64,
    *mut Handle,
) -> i32;

fn launch(f: RtFn, dev: Handle, kernel: u64, groups: u32, args: &[u8]) -> Outcome<()> {
    // SAFETY: both launch functions have this signature; the arguments are live.
    status(|e| unsafe {
        let function = std::mem::transmute::<*const u8, LaunchFn>(symbol_address(f));
        function(dev, kernel, groups, 1, 1, 64, 1, 1, args.as_ptr(), args.len() as u64, e)
    })
}

fn text(handle: Handle) -> String {
    // SAFETY: the text is live and ours.
    let text = unsafe { as_str(handle) }.to_string();
    release(&[handle]);
    text
}

#[test]
fn a_program_runs_on_the_cpu_device() {
    let _turn = process(only(DriverKind::Cpu));
    without_leaks(|| {
        call!(GpuInit());
        Runtime::global().register_kernel(SCALE, "scale", vec![cpu_blob(SCALE)], None);
        assert_eq!(call!(GpuDeviceCount() -> u32), 1);
        let dev = default_device().unwrap();
        // SAFETY: the device is live.
        assert_eq!(unsafe { (*dev).type_id() }, 30);
        assert!(!text(call!(GpuDeviceName(dev => Handle) -> Handle)).is_empty());
        let backends = out(
            ptr::null_mut(),
            |o, e| call!(GpuDeviceBackends(dev => Handle, o => *mut Handle, e => *mut Handle) -> i32),
        );
        let backends = backends.unwrap();
        // SAFETY: the array is live and holds texts.
        unsafe { assert_eq!(as_str(array::handles(backends)[0]), "cpu") };
        for (f, least) in [
            (RtFn::GpuDeviceMaxWorkgroupSize, 128),
            (RtFn::GpuDeviceMaxSharedBytes, 16384),
            (RtFn::GpuDeviceMaxBuffers, 4),
            (RtFn::GpuDeviceWarpSize, 1),
        ] {
            let address = symbol_address(f);
            // SAFETY: these functions take a device and give a number.
            let number = unsafe {
                std::mem::transmute::<*const u8, unsafe extern "C" fn(Handle) -> u32>(address)(dev)
            };
            assert!(number >= least, "{f:?} {number}");
        }
        let total = call!(GpuDeviceMemoryTotal(dev => Handle) -> u64);
        assert!(total > 0 && call!(GpuDeviceMemoryAvailable(dev => Handle) -> u64) <= total);

        let buffer = buffer_from(dev, &[1, 2, 3]);
        assert_eq!(call!(GpuBufferLen(buffer => Handle) -> u64), 3);
        launch(RtFn::GpuLaunchSync, dev, SCALE, 1, &block(&[buffer], Some(10))).unwrap();
        assert_eq!(read_all(buffer).unwrap(), [11, 21, 31]);

        let args = block(&[buffer], Some(2));
        let fence = out(ptr::null_mut(), |o, e| {
            call!(GpuLaunchAsync(
                dev => Handle, SCALE => u64, 1 => u32, 1 => u32, 1 => u32, 64 => u32, 1 => u32,
                1 => u32, args.as_ptr() => *const u8, args.len() as u64 => u64,
                o => *mut Handle, e => *mut Handle,
            ) -> i32)
        });
        let fence = fence.unwrap();
        let done = out(false, |o, e| {
            call!(GpuFenceWait(
                fence => Handle, 10_000 => u64, o => *mut bool, e => *mut Handle,
            ) -> i32)
        });
        assert_eq!(done, Ok(true));
        status(|e| call!(GpuDeviceSync(dev => Handle, e => *mut Handle) -> i32)).unwrap();
        assert_eq!(read_all(buffer).unwrap(), [23, 43, 63]);
        release(&[fence, buffer, backends, dev]);
    });
}

#[test]
fn buffers_take_and_give_ranges() {
    let _turn = process(only(DriverKind::Cpu));
    without_leaks(|| {
        let dev = default_device().unwrap();
        let new = |size, len, hint| {
            out(ptr::null_mut(), |o, e| {
                call!(GpuBufferNew(
                    dev => Handle, fixed::U32.0 => u32, size => u32, len => u64, 0 => u32,
                    hint => u32, o => *mut Handle, e => *mut Handle,
                ) -> i32)
            })
        };
        let buffer = new(4, 5, 1).unwrap();
        assert_eq!(read_all(buffer).unwrap(), [0; 5]);
        assert_eq!(new(4, 5, 9).unwrap_err().0, ErrorKind::BufferError);
        assert_eq!(new(4, u64::MAX, 0).unwrap_err().0, ErrorKind::OutOfMemory);
        let source = try_from_bytes(&U32, &bytes(&[7, 8])).unwrap();
        let write = |offset| {
            status(|e| {
                call!(GpuBufferWrite(
                    buffer => Handle, offset => u64, source => Handle, e => *mut Handle,
                ) -> i32)
            })
        };
        write(3).unwrap();
        assert_eq!(write(4).unwrap_err().0, ErrorKind::BufferError);
        let read = |offset, len| {
            let info = &raw const U32;
            let array = out(ptr::null_mut(), |o, e| {
                call!(GpuBufferRead(
                    buffer => Handle, offset => u64, len => u64, info => *const MpRtTypeInfo,
                    o => *mut Handle, e => *mut Handle,
                ) -> i32)
            });
            array.map(to_words)
        };
        assert_eq!(read(2, 3), Ok(vec![0, 7, 8]));
        assert_eq!(read(5, 0), Ok(vec![]));
        for (offset, len) in [(3, 3), (6, 0), (0, u64::MAX), (u64::MAX, 1)] {
            assert_eq!(read(offset, len).unwrap_err().0, ErrorKind::BufferError);
        }
        let small = buffer_from(dev, &[1]);
        let copy = |src, dst| {
            status(|e| call!(GpuBufferCopy(src => Handle, dst => Handle, e => *mut Handle) -> i32))
        };
        copy(small, buffer).unwrap();
        assert_eq!(read_all(buffer).unwrap(), [1, 0, 0, 7, 8]);
        assert_eq!(copy(buffer, small).unwrap_err().0, ErrorKind::BufferError);
        // Arrays of handles are not for devices.
        let texts = new_str_array(&["a"]);
        let refused = out(ptr::null_mut(), |o, e| {
            call!(GpuBufferFromArray(
                dev => Handle, texts => Handle, 20 => u32, 0 => u32, o => *mut Handle, e => *mut Handle,
            ) -> i32)
        });
        assert_eq!(refused.unwrap_err().0, ErrorKind::BufferError);
        release(&[texts, small, source, buffer, dev]);
    });
}

#[test]
fn wrong_handles_are_errors() {
    let _turn = process(only(DriverKind::Cpu));
    without_leaks(|| {
        Runtime::global().register_kernel(NEXT, "next", vec![cpu_blob(NEXT)], None);
        let dev = default_device().unwrap();
        let buffer = buffer_from(dev, &[1]);
        for wrong in [ptr::null_mut(), dev] {
            assert_eq!(read_all(wrong).unwrap_err().0, ErrorKind::ValidationFailed);
            assert_eq!(call!(GpuBufferLen(wrong => Handle) -> u64), 0);
            let args = block(&[buffer, wrong], None);
            let (kind, message) = launch(RtFn::GpuLaunchSync, dev, NEXT, 1, &args).unwrap_err();
            assert_eq!(kind, ErrorKind::ValidationFailed);
            assert!(message.contains("expected a gpu.TBuffer"), "{message}");
        }
        let sync = status(|e| call!(GpuDeviceSync(buffer => Handle, e => *mut Handle) -> i32));
        assert_eq!(sync.unwrap_err().0, ErrorKind::ValidationFailed);
        assert_eq!(call!(GpuDeviceMaxBuffers(ptr::null_mut() => Handle) -> u32), 0);
        assert_eq!(text(call!(GpuDeviceName(buffer => Handle) -> Handle)), "");
        let (kind, message) = launch(RtFn::GpuLaunchSync, dev, NEXT, 1, &[0; 12]).unwrap_err();
        assert_eq!(kind, ErrorKind::LaunchFailed);
        assert!(message.contains("12 bytes"), "{message}");
        let (kind, _) =
            launch(RtFn::GpuLaunchSync, dev, NEXT, 0, &block(&[buffer; 2], None)).unwrap_err();
        assert_eq!(kind, ErrorKind::LaunchFailed);
        // Nobody takes the error.
        let mut unused: Handle = ptr::null_mut();
        assert_eq!(
            call!(GpuDeviceByIndex(
            9 => u32, &raw mut unused => *mut Handle, ptr::null_mut() => *mut Handle,
        ) -> i32),
            -1
        );
        release(&[buffer, dev]);
    });
}

#[test]
fn error_objects_can_be_made_and_read() {
    without_leaks(|| {
        let make = |backend: *const i8, message: *const i8| {
            call!(GpuErrorNew(
                5 => i32, backend => *const i8, message => *const i8, -4 => i32,
            ) -> Handle)
        };
        let err = make(c"spv".as_ptr().cast(), c"bad \xFF text".as_ptr().cast());
        // SAFETY: the error is live.
        assert_eq!(unsafe { (*err).type_id() }, 33);
        assert_eq!(call!(GpuErrorKind(err => Handle) -> i32), 5);
        assert_eq!(call!(GpuErrorCode(err => Handle) -> i32), -4);
        assert_eq!(text(call!(GpuErrorBackend(err => Handle) -> Handle)), "spv");
        assert_eq!(text(call!(GpuErrorMessage(err => Handle) -> Handle)), "bad \u{FFFD} text");
        assert_eq!(call!(GpuErrorKind(ptr::null_mut() => Handle) -> i32), -1);
        assert!(call!(GpuErrorMessage(ptr::null_mut() => Handle) -> Handle).is_null());
        let empty = make(ptr::null(), ptr::null());
        assert_eq!(text(call!(GpuErrorMessage(empty => Handle) -> Handle)), "");
        release(&[err, empty]);
    });
}

#[test]
fn structs_have_the_layout_of_c() {
    assert_eq!(size_of::<MpRtGpuKernelBlob>(), 24);
    assert_eq!(offset_of!(MpRtGpuKernelBlob, data), 8);
    assert_eq!(offset_of!(MpRtGpuKernelBlob, data_len), 16);
    assert_eq!(size_of::<MpRtGpuParam>(), 16);
    assert_eq!(offset_of!(MpRtGpuParam, type_id), 4);
    assert_eq!(offset_of!(MpRtGpuParam, offset_or_binding), 8);
    assert_eq!(offset_of!(MpRtGpuParam, size), 12);
    assert_eq!(size_of::<MpRtGpuKernelEntry>(), 48);
    assert_eq!(offset_of!(MpRtGpuKernelEntry, num_blobs), 8);
    assert_eq!(offset_of!(MpRtGpuKernelEntry, blobs), 16);
    assert_eq!(offset_of!(MpRtGpuKernelEntry, num_params), 24);
    assert_eq!(offset_of!(MpRtGpuKernelEntry, params), 32);
    assert_eq!(offset_of!(MpRtGpuKernelEntry, num_buffers), 40);
    assert_eq!(offset_of!(MpRtGpuKernelEntry, push_const_size), 44);
    assert_eq!(size_of::<MpRtGpuHostKernel>(), 48);
    assert!(RtFn::ALL.iter().all(|&f| f.symbol().starts_with("mp_rt_gpu_") == entry(f).is_some()));
}

#[test]
fn linked_kernels_are_registered_and_bad_ones_say_why() {
    let _turn = process(only(DriverKind::Cpu));
    without_leaks(|| {
        let blob = cpu_blob(SCALE);
        let BlobCode::Host(code) = blob.code else { panic!("a host function") };
        let layout = kernel_codec::encode_layout(&blob.layout);
        let host = MpRtGpuHostKernel {
            layout: layout.as_ptr(),
            layout_len: layout.len() as u64,
            entry: code.entry,
            unchecked: 0,
            frame_bytes: 0,
            unchecked_frame_bytes: 0,
            name: c"linked".as_ptr(),
        };
        let spirv = kernel_codec::encode(&KernelBlob {
            backend: GpuBackend::Spv,
            code: BlobCode::Bytes(vec![1, 2, 3]),
            ..blob.clone()
        });
        let spirv = spirv.unwrap();
        let host_blob = MpRtGpuKernelBlob {
            backend: 0x40,
            data: (&raw const host).cast(),
            data_len: size_of::<MpRtGpuHostKernel>() as u32,
        };
        let spirv_blob =
            MpRtGpuKernelBlob { backend: 1, data: spirv.as_ptr(), data_len: spirv.len() as u32 };
        let register = |blobs: &[MpRtGpuKernelBlob], num_buffers| {
            let entries = [MpRtGpuKernelEntry {
                sid_hash: SCALE,
                num_blobs: blobs.len() as u32,
                blobs: blobs.as_ptr(),
                num_params: 2,
                params: ptr::null(),
                num_buffers,
                push_const_size: 16,
            }];
            // SAFETY: the entry and what it points to are live.
            unsafe { mp_rt_gpu_register_kernels(entries.as_ptr(), 1) };
        };
        let dev = default_device().unwrap();
        let buffer = buffer_from(dev, &[1]);
        let run = || launch(RtFn::GpuLaunchSync, dev, SCALE, 1, &block(&[buffer], Some(2)));
        register(&[spirv_blob, host_blob], 1);
        run().unwrap();
        assert_eq!(read_all(buffer).unwrap(), [3]);
        let refused = |text: &str| {
            let (kind, message) = run().unwrap_err();
            assert_eq!(kind, ErrorKind::InvalidKernel);
            assert!(message.contains(text), "{message}");
        };
        register(&[host_blob], 2);
        refused("(2, 1, 16), of its entry (2, 2, 16)");
        register(&[MpRtGpuKernelBlob { data_len: 4, ..host_blob }], 1);
        refused("a CPU blob has 48 bytes, not 4");
        register(&[spirv_blob], 1);
        refused("it has no cpu blob (it has: spv)");
        register(&[], 1);
        refused("it has: none");
        // SAFETY: no entries.
        unsafe { mp_rt_gpu_register_kernels(ptr::null(), 7) };
        release(&[buffer, dev]);
    });
}

#[test]
fn a_missing_device_is_an_error_with_the_back_end() {
    let _turn = process(GpuConfig { backend: Some(GpuBackend::Ptx), ..GpuConfig::default() });
    without_leaks(|| {
        let mut err: Handle = ptr::null_mut();
        let mut dev: Handle = ptr::dangling_mut();
        let status = call!(GpuDeviceDefault(
            &raw mut dev => *mut Handle, &raw mut err => *mut Handle,
        ) -> i32);
        assert_eq!((status, dev), (-1, ptr::null_mut()));
        assert_eq!(call!(GpuErrorKind(err => Handle) -> i32), ErrorKind::BackendUnavailable as i32);
        assert_eq!(text(call!(GpuErrorBackend(err => Handle) -> Handle)), "ptx");
        release(&[err]);
    });
}

#[test]
fn a_session_gives_events_and_a_trace() {
    let _turn = process(only(DriverKind::Cpu));
    without_leaks(|| {
        Runtime::global().register_kernel(SCALE, "scale", vec![cpu_blob(SCALE)], None);
        let dev = default_device().unwrap();
        let begin = || {
            out(
                ptr::null_mut(),
                |o, e| call!(GpuProfileBegin(dev => Handle, o => *mut Handle, e => *mut Handle) -> i32),
            )
        };
        let session = begin().unwrap();
        // SAFETY: the session is live.
        assert_eq!(unsafe { (*session).type_id() }, 35);
        assert!(begin().unwrap_err().1.contains("MPG_PROF_1002"));
        let counters = out(
            ptr::null_mut(),
            |o, e| call!(GpuProfileAvailableCounters(dev => Handle, o => *mut Handle, e => *mut Handle) -> i32),
        );
        let counters = counters.unwrap();
        // SAFETY: the array is live.
        assert_eq!(unsafe { array::len(counters) }, 0);
        status(|e| {
            call!(GpuProfileEnableCounters(
                session => Handle, counters => Handle, e => *mut Handle,
            ) -> i32)
        })
        .unwrap();
        let map = out(
            ptr::null_mut(),
            |o, e| call!(GpuProfileReadCounters(session => Handle, o => *mut Handle, e => *mut Handle) -> i32),
        );
        let name = new_str("region \"one\"");
        let mark = |begin: bool| {
            status(|e| match begin {
                true => call!(GpuProfileMarkBegin(
                    session => Handle, name => Handle, e => *mut Handle,
                ) -> i32),
                false => call!(GpuProfileMarkEnd(
                    session => Handle, name => Handle, e => *mut Handle,
                ) -> i32),
            })
        };
        assert_eq!(mark(false).unwrap_err().0, ErrorKind::ValidationFailed);
        mark(true).unwrap();
        let buffer = buffer_from(dev, &[1, 2]);
        let args = block(&[buffer], Some(3));
        let profiled = |session| {
            status(|e| {
                call!(GpuProfileLaunch(
                    session => Handle, dev => Handle, SCALE => u64, 1 => u32, 1 => u32, 1 => u32,
                    64 => u32, 1 => u32, 1 => u32, args.as_ptr() => *const u8,
                    args.len() as u64 => u64, e => *mut Handle,
                ) -> i32)
            })
        };
        profiled(session).unwrap();
        launch(RtFn::GpuLaunchSync, dev, SCALE, 1, &args).unwrap();
        mark(false).unwrap();
        // The call takes the handle over.
        // SAFETY: the session is live; the test keeps a count.
        unsafe { object::retain(session) };
        let end = || {
            out(
                ptr::null_mut(),
                |o, e| call!(GpuProfileEnd(session => Handle, o => *mut Handle, e => *mut Handle) -> i32),
            )
        };
        let events = end().unwrap();
        assert_eq!(profiled(session).unwrap_err().0, ErrorKind::ValidationFailed);
        assert_eq!(end().unwrap_err().0, ErrorKind::ValidationFailed);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        let export = |events: Handle, path: &str| {
            let path = new_str(path);
            let done = status(|e| {
                call!(GpuProfileExportChrome(
                    events => Handle, path => Handle, e => *mut Handle,
                ) -> i32)
            });
            release(&[path]);
            done
        };
        export(events, path.to_str().unwrap()).unwrap();
        let trace: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let list = trace["traceEvents"].as_array().unwrap();
        let named = |name: &str| list.iter().filter(|e| e["name"] == name).collect::<Vec<_>>();
        assert_eq!(named("scale").len(), 2);
        assert_eq!(named("scale")[0]["args"]["grid"], "1x1x1");
        assert_eq!(named("buffer_write")[0]["args"]["bytes"], "8");
        assert_eq!(named("region \"one\"")[0]["cat"], "gpu.region");
        assert_eq!(list.len(), 4);
        // The fields of the objects are those of the trace.
        // SAFETY: the events are live objects of the language.
        unsafe {
            for (&event, json) in array::handles(events).iter().zip(list) {
                assert_eq!((*event).type_id(), 36);
                let payload = object::payload_ptr(event);
                let start = payload.add(8).cast::<u64>().read();
                assert_eq!(json["ts"].as_f64().unwrap(), start as f64 / 1000.0);
                let metadata = payload.add(24).cast::<Handle>().read();
                assert!(str_str_entries(metadata).any(|(k, v)| k == "cat" && json["cat"] == v));
            }
        }
        let (kind, message) = export(events, "/nonexistent/trace.json").unwrap_err();
        assert_eq!(kind, ErrorKind::DriverError);
        assert!(message.contains("/nonexistent/trace.json"), "{message}");
        let wrong = from_handles(&typeinfo::STR, &[new_str("no event")]);
        let (kind, _) = export(wrong, path.to_str().unwrap()).unwrap_err();
        assert_eq!(kind, ErrorKind::ValidationFailed);

        let stats = out(
            ptr::null_mut(),
            |o, e| call!(GpuProfileMemoryStats(dev => Handle, o => *mut Handle, e => *mut Handle) -> i32),
        );
        let stats = stats.unwrap();
        // SAFETY: the object has six words.
        let numbers = unsafe { object::payload_ptr(stats).cast::<[u64; 6]>().read() };
        assert_eq!((numbers[0], numbers[2], numbers[3]), (8, 1, 0));
        assert!(numbers[5] <= numbers[4]);
        // SAFETY: the object is live.
        assert_eq!(unsafe { (*stats).type_id() }, 37);
        release(&[stats, wrong, events, buffer, name, map.unwrap(), counters, dev]);
    });
}
