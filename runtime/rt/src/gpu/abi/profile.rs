//! `mp_rt_gpu_profile_*`: sessions, their events, memory statistics.

use super::launch::Request;
use super::{Payload, drop_payload, finish, finish_with_object, new_object, payload};
use crate::array::{self, from_handles, new_str_array};
use crate::fs;
use crate::gpu::context::Context;
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use crate::gpu::launch::LaunchSize;
use crate::gpu::profile::{Detail, Event, Session, TraceEvent, chrome_trace};
use crate::map::{new_str_f64_map, new_str_str_map, str_str_entries};
use crate::memory::or_die;
use crate::object::{self, MpRtHeader};
use crate::panic::guarded;
use crate::string::{as_str, new_str};
use crate::typeinfo::MpRtTypeInfo;
use magpie_types::fixed;
use std::sync::Arc;

static SESSION: MpRtTypeInfo = MpRtTypeInfo::opaque(
    fixed::GPU_PROFILE_SESSION,
    size_of::<Session>(),
    align_of::<Session>(),
    drop_payload::<Session>,
    c"gpu.TProfileSession",
);

impl Payload for Session {
    const INFO: &'static MpRtTypeInfo = &SESSION;
    const NAME: &'static str = "gpu.TProfileSession";
}

/// The payload of a `gpu.TProfileEvent`, a heap struct of the language.
#[repr(C)]
struct EventFields {
    name: *mut MpRtHeader,
    start_ns: u64,
    end_ns: u64,
    /// `Map<Str, Str>`.
    metadata: *mut MpRtHeader,
}

static EVENT_HANDLES: [u32; 2] = [0, 24];

static EVENT: MpRtTypeInfo = MpRtTypeInfo {
    num_strong: 2,
    strong: EVENT_HANDLES.as_ptr(),
    ..MpRtTypeInfo::plain(
        fixed::GPU_PROFILE_EVENT,
        size_of::<EventFields>() as u32,
        align_of::<EventFields>() as u32,
        c"gpu.TProfileEvent",
    )
};

/// A `gpu.TProfileEvent` as an element: a handle.
static EVENT_ELEMENT: MpRtTypeInfo =
    MpRtTypeInfo::handle(fixed::GPU_PROFILE_EVENT, c"gpu.TProfileEvent");

/// The payload of a `gpu.TMemoryStats`.
#[repr(C)]
struct MemoryStatsFields {
    allocated_bytes: u64,
    peak_allocated_bytes: u64,
    num_allocations: u64,
    num_frees: u64,
    device_total_bytes: u64,
    device_available_bytes: u64,
}

static MEMORY_STATS: MpRtTypeInfo = MpRtTypeInfo::plain(
    fixed::GPU_MEMORY_STATS,
    size_of::<MemoryStatsFields>() as u32,
    align_of::<MemoryStatsFields>() as u32,
    c"gpu.TMemoryStats",
);

/// A new object of a struct of the language.
///
/// # Safety
/// `info` has the size and alignment of `F`.
unsafe fn new_struct<F>(info: &'static MpRtTypeInfo, fields: F) -> *mut MpRtHeader {
    let obj = or_die(object::try_alloc(info));
    // SAFETY: forwarded from the caller.
    unsafe { object::payload_ptr(obj).cast::<F>().write(fields) };
    obj
}

fn event_object(event: &Event) -> *mut MpRtHeader {
    let sizes = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    let clock = if event.device_clock { "device" } else { "host" };
    let mut metadata =
        vec![("cat", event.category().name().to_string()), ("clock", clock.to_string())];
    match event.detail {
        Detail::Launch { grid, block, unchecked } => metadata.extend([
            ("grid", sizes(grid)),
            ("block", sizes(block)),
            ("body", if unchecked { "unchecked" } else { "checked" }.to_string()),
        ]),
        Detail::Transfer { bytes } => metadata.push(("bytes", bytes.to_string())),
        Detail::Region => {}
    }
    let fields = EventFields {
        name: new_str(&event.name),
        start_ns: event.start_ns,
        end_ns: event.end_ns,
        metadata: new_str_str_map(metadata),
    };
    // SAFETY: the info was made for these fields.
    unsafe { new_struct(&EVENT, fields) }
}

/// The text of a `Str` argument.
///
/// # Safety
/// `s` is null or a live object that stays alive during `'a`.
unsafe fn text<'a>(s: *const MpRtHeader, what: &str) -> GpuResult<&'a str> {
    // SAFETY: forwarded from the caller.
    match unsafe { s.as_ref() } {
        // SAFETY: it is a `Str`, as just checked.
        Some(header) if header.type_id() == fixed::STR.0 => Ok(unsafe { as_str(s) }),
        _ => Err(invalid(format!("expected a Str as {what}"))),
    }
}

/// The handles in an array argument whose elements have the given type.
///
/// # Safety
/// `arr` is null or a live object that stays alive and unchanged during `'a`.
unsafe fn handles<'a>(
    arr: *const MpRtHeader,
    elem: u32,
    what: &str,
) -> GpuResult<&'a [*mut MpRtHeader]> {
    // SAFETY: forwarded from the caller; the elements are handles, as just checked.
    unsafe {
        let is_array = arr.as_ref().is_some_and(|h| h.type_id() == fixed::ARRAY.0);
        if !is_array || !array::element_info(arr).has_handles() {
            return Err(invalid(format!("expected an Array of {what}")));
        }
        let handles = array::handles(arr);
        let fits = |handle: &*mut MpRtHeader| handle.as_ref().is_some_and(|h| h.type_id() == elem);
        if handles.iter().all(fits) {
            Ok(handles)
        } else {
            Err(invalid(format!("expected an Array of {what}")))
        }
    }
}

fn invalid(message: String) -> GpuError {
    GpuError::new(ErrorKind::ValidationFailed, "", message)
}

/// See [`magpie_types::abi::RtFn::GpuProfileBegin`].
///
/// # Safety
/// `dev` is null or a live object; `out_session` and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_profile_begin(
    dev: *const MpRtHeader,
    out_session: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        unsafe {
            let session = payload::<Arc<Context>>(dev).and_then(Session::begin);
            finish_with_object(session.map(new_object), out_session, out_err)
        }
    })
}

/// See [`magpie_types::abi::RtFn::GpuProfileEnd`].
///
/// # Safety
/// `session` is null or a live object of which the caller gives up a strong count; `out_events`
/// and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_profile_end(
    session: *mut MpRtHeader,
    out_events: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        unsafe {
            let events = payload::<Session>(session).and_then(Session::end).map(|events| {
                let handles: Vec<_> = events.iter().map(event_object).collect();
                from_handles(&EVENT_ELEMENT, &handles)
            });
            object::release(session);
            finish_with_object(events, out_events, out_err)
        }
    })
}

/// See [`magpie_types::abi::RtFn::GpuProfileMarkBegin`].
///
/// # Safety
/// `session` and `name` are null or live objects; `out_err` is null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_profile_mark_begin(
    session: *const MpRtHeader,
    name: *const MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        unsafe {
            let marked = payload::<Session>(session)
                .and_then(|session| session.mark_begin(text(name, "the name of a region")?));
            finish(marked, out_err)
        }
    })
}

/// See [`magpie_types::abi::RtFn::GpuProfileMarkEnd`].
///
/// # Safety
/// As [`mp_rt_gpu_profile_mark_begin`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_profile_mark_end(
    session: *const MpRtHeader,
    name: *const MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        unsafe {
            let marked = payload::<Session>(session)
                .and_then(|session| session.mark_end(text(name, "the name of a region")?));
            finish(marked, out_err)
        }
    })
}

/// See [`magpie_types::abi::RtFn::GpuProfileExportChrome`]. The file is complete or not there.
///
/// # Safety
/// `events` and `path` are null or live objects; `out_err` is null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_profile_export_chrome(
    events: *const MpRtHeader,
    path: *const MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    let export = || {
        // SAFETY: forwarded from the caller.
        let (path, events) = unsafe {
            let events = handles(events, fixed::GPU_PROFILE_EVENT.0, "gpu.TProfileEvent")?;
            (text(path, "the path of the trace")?, events)
        };
        // SAFETY: the handles are of events, as `handles` has checked.
        let trace = chrome_trace(events.iter().map(|&event| unsafe { trace_event(event) }));
        fs::write(path, trace.as_bytes()).map_err(|why| {
            GpuError::new(ErrorKind::DriverError, "", format!("trace export: {why}"))
        })
    };
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { finish(export(), out_err) })
}

/// # Safety
/// `event` is a live `gpu.TProfileEvent` that stays alive during `'a`.
unsafe fn trace_event<'a>(event: *const MpRtHeader) -> TraceEvent<'a> {
    // SAFETY: forwarded from the caller; the fields of an event are live objects.
    unsafe {
        let fields: &EventFields = object::payload(event);
        let details: Vec<(&str, &str)> = str_str_entries(fields.metadata).collect();
        let category = details.iter().find(|(key, _)| *key == "cat").map_or("gpu", |&(_, cat)| cat);
        TraceEvent {
            name: as_str(fields.name),
            category,
            start_ns: fields.start_ns,
            end_ns: fields.end_ns,
            details,
        }
    }
}

/// See [`magpie_types::abi::RtFn::GpuProfileAvailableCounters`]. No driver offers any yet.
///
/// # Safety
/// `dev` is null or a live object; `out_arr` and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_profile_available_counters(
    dev: *const MpRtHeader,
    out_arr: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        unsafe {
            let names = payload::<Arc<Context>>(dev).map(|_| new_str_array::<&str>(&[]));
            finish_with_object(names, out_arr, out_err)
        }
    })
}

/// See [`magpie_types::abi::RtFn::GpuProfileEnableCounters`]. What cannot be had is a warning on
/// standard error.
///
/// # Safety
/// `session` and `counters` are null or live objects; `out_err` is null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_profile_enable_counters(
    session: *const MpRtHeader,
    counters: *const MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    let enable = || {
        // SAFETY: forwarded from the caller; the handles are of texts, as `handles` has checked.
        let (session, names) = unsafe {
            let names = handles(counters, fixed::STR.0, "Str")?;
            let names: Vec<&str> = names.iter().map(|&name| as_str(name)).collect();
            (payload::<Session>(session)?, names)
        };
        session.enable_counters(&names).iter().for_each(|warning| eprintln!("{warning}"));
        Ok(())
    };
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { finish(enable(), out_err) })
}

/// See [`magpie_types::abi::RtFn::GpuProfileReadCounters`]. An empty map: no counter is enabled.
///
/// # Safety
/// `session` is null or a live object; `out_map` and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_profile_read_counters(
    session: *const MpRtHeader,
    out_map: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        unsafe {
            let none: [(&str, f64); 0] = [];
            let map = payload::<Session>(session).map(|_| new_str_f64_map(none));
            finish_with_object(map, out_map, out_err)
        }
    })
}

/// See [`magpie_types::abi::RtFn::GpuProfileMemoryStats`].
///
/// # Safety
/// `dev` is null or a live object; `out_stats` and `out_err` are null or can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_profile_memory_stats(
    dev: *const MpRtHeader,
    out_stats: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    guarded(|| {
        // SAFETY: forwarded from the caller; the info was made for these fields.
        unsafe {
            let stats = payload::<Arc<Context>>(dev).map(|context| {
                let stats = context.memory_stats();
                let fields = MemoryStatsFields {
                    allocated_bytes: stats.allocated_bytes,
                    peak_allocated_bytes: stats.peak_allocated_bytes,
                    num_allocations: stats.num_allocations,
                    num_frees: stats.num_frees,
                    device_total_bytes: stats.device_total_bytes,
                    device_available_bytes: stats.device_available_bytes,
                };
                new_struct(&MEMORY_STATS, fields)
            });
            finish_with_object(stats, out_stats, out_err)
        }
    })
}

/// See [`magpie_types::abi::RtFn::GpuProfileLaunch`].
///
/// # Safety
/// As `mp_rt_gpu_launch_sync`; `session` is null or a live object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mp_rt_gpu_profile_launch(
    session: *const MpRtHeader,
    dev: *const MpRtHeader,
    kernel: u64,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    args: *const u8,
    args_len: u64,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    let size = LaunchSize { grid: [gx, gy, gz], block: [bx, by, bz] };
    let request = Request { device: dev, kernel, size, args, args_len };
    let launch = || {
        // SAFETY: forwarded from the caller.
        let (session, context) = unsafe { (payload::<Session>(session)?, request.context()?) };
        if !session.is_active() || !Arc::ptr_eq(session.context(), context) {
            let (device, own) =
                (context.properties().label(), session.context().properties().label());
            let message = format!(
                "launch on {device} in a session that has ended or is of another device ({own})"
            );
            return Err(context.error(ErrorKind::ValidationFailed, message));
        }
        // SAFETY: forwarded from the caller.
        unsafe { request.launch() }
    };
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { finish(launch(), out_err) })
}
