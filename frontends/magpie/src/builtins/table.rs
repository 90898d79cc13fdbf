//! The rows.

use super::{Body, Builtin, Lowering, Ty};
use magpie_mpir::Op;
use magpie_types::abi::RtFn;
use magpie_types::fixed;

const UNIT: Ty = Ty::Fixed(fixed::UNIT);
const BOOL: Ty = Ty::Fixed(fixed::BOOL);
const I32: Ty = Ty::Fixed(fixed::I32);
const I64: Ty = Ty::Fixed(fixed::I64);
const U32: Ty = Ty::Fixed(fixed::U32);
const U64: Ty = Ty::Fixed(fixed::U64);
const F32: Ty = Ty::Fixed(fixed::F32);
const F64: Ty = Ty::Fixed(fixed::F64);
const STR: Ty = Ty::Fixed(fixed::STR);
const TEXT: Ty = Ty::Borrow(&STR);
const BYTES: Ty = Ty::Array(&Ty::Fixed(fixed::U8));
const TEXTS: Ty = Ty::Array(&STR);
const DEVICE: Ty = Ty::Fixed(fixed::GPU_DEVICE);
const SESSION: Ty = Ty::Fixed(fixed::GPU_PROFILE_SESSION);
const ERROR: Ty = Ty::Fixed(fixed::GPU_ERROR);
const T: Ty = Ty::Param;
const BUFFER: Ty = Ty::Buffer(&T);
const ARRAY: Ty = Ty::Array(&T);
const EVENTS: Ty = Ty::Array(&Ty::Fixed(fixed::GPU_PROFILE_EVENT));
const COUNTERS: Ty = Ty::Map(&STR, &F64);

/// Fails with a text.
const fn io(ok: &'static Ty) -> Ty {
    Ty::Result(ok, &STR)
}

/// Fails with `gpu.TError`.
const fn gpu(ok: &'static Ty) -> Ty {
    Ty::Result(ok, &ERROR)
}

const fn rt(function: RtFn) -> Lowering {
    Lowering::Runtime(function)
}

const fn op(op: Op) -> Lowering {
    Lowering::Op(op)
}

macro_rules! rows {
    (@generic) => { false };
    (@generic $param:ident) => { true };
    ($($module:literal: {
        $($name:ident $(<$generic:ident>)? ($($param:ident: $ty:expr),*) -> $result:expr => $lowering:expr;)*
    })*) => {
        pub(super) static ROWS: &[Builtin] = &[$($(Builtin {
            module: $module,
            name: stringify!($name),
            generic: rows!(@generic $($generic)?),
            params: &[$((stringify!($param), $ty)),*],
            result: $result,
            lowering: $lowering,
        },)*)*];
    };
}

rows! {
    "std.io": {
        print(s: TEXT) -> UNIT => rt(RtFn::Print);
        println(s: TEXT) -> UNIT => rt(RtFn::Println);
        eprintln(s: TEXT) -> UNIT => rt(RtFn::Eprintln);
        println_i64(v: I64) -> UNIT => rt(RtFn::PrintlnI64);
        println_u64(v: U64) -> UNIT => rt(RtFn::PrintlnU64);
        println_f64(v: F64) -> UNIT => rt(RtFn::PrintlnF64);
        println_bool(v: BOOL) -> UNIT => rt(RtFn::PrintlnBool);
        readln() -> STR => rt(RtFn::Readln);
    }

    "std.test": {
        assert(cond: BOOL, msg: TEXT) -> UNIT => Lowering::Function(Body::Assert);
        assert_eq(lhs: I64, rhs: I64, msg: TEXT) -> UNIT => Lowering::Function(Body::AssertEq);
        assert_ne(lhs: I64, rhs: I64, msg: TEXT) -> UNIT => Lowering::Function(Body::AssertNe);
        fail(msg: TEXT) -> UNIT => Lowering::Function(Body::Fail);
    }

    "std.math": {
        abs_i32(v: I32) -> I32 => Lowering::Abs;
        abs_i64(v: I64) -> I64 => Lowering::Abs;
        min_i32(a: I32, b: I32) -> I32 => op(Op::ISmin);
        min_i64(a: I64, b: I64) -> I64 => op(Op::ISmin);
        min_f32(a: F32, b: F32) -> F32 => op(Op::FMin);
        min_f64(a: F64, b: F64) -> F64 => op(Op::FMin);
        max_i32(a: I32, b: I32) -> I32 => op(Op::ISmax);
        max_i64(a: I64, b: I64) -> I64 => op(Op::ISmax);
        max_f32(a: F32, b: F32) -> F32 => op(Op::FMax);
        max_f64(a: F64, b: F64) -> F64 => op(Op::FMax);
        sqrt_f32(v: F32) -> F32 => op(Op::FSqrt);
        sqrt_f64(v: F64) -> F64 => op(Op::FSqrt);
        floor_f32(v: F32) -> F32 => op(Op::FFloor);
        floor_f64(v: F64) -> F64 => op(Op::FFloor);
        ceil_f32(v: F32) -> F32 => op(Op::FCeil);
        ceil_f64(v: F64) -> F64 => op(Op::FCeil);
        exp_f32(v: F32) -> F32 => op(Op::FExp);
        exp_f64(v: F64) -> F64 => op(Op::FExp);
        log_f32(v: F32) -> F32 => op(Op::FLog);
        log_f64(v: F64) -> F64 => op(Op::FLog);
        sin_f32(v: F32) -> F32 => op(Op::FSin);
        sin_f64(v: F64) -> F64 => op(Op::FSin);
        cos_f32(v: F32) -> F32 => op(Op::FCos);
        cos_f64(v: F64) -> F64 => op(Op::FCos);
        pow_f32(a: F32, b: F32) -> F32 => op(Op::FPow);
        pow_f64(a: F64, b: F64) -> F64 => op(Op::FPow);
    }

    "std.time": {
        now_ns() -> U64 => rt(RtFn::NowNs);
        sleep_ms(ms: U64) -> UNIT => rt(RtFn::SleepMs);
    }

    "std.os": {
        args() -> TEXTS => rt(RtFn::OsArgs);
        env_var(name: TEXT) -> Ty::Option(&STR) => rt(RtFn::OsEnvVar);
        exit(code: I32) -> UNIT => rt(RtFn::OsExit);
        cwd() -> STR => rt(RtFn::OsCwd);
    }

    "std.fs": {
        read_bytes(path: TEXT) -> io(&BYTES) => rt(RtFn::FsReadBytes);
        write_bytes(path: TEXT, data: Ty::Borrow(&BYTES)) -> io(&UNIT) => rt(RtFn::FsWriteBytes);
        read_text(path: TEXT) -> io(&STR) => rt(RtFn::FsReadText);
        write_text(path: TEXT, text: TEXT) -> io(&UNIT) => rt(RtFn::FsWriteText);
    }

    "std.hash": {
        hash_Str(s: TEXT) -> U64 => rt(RtFn::HashStr);
        hash_i32(v: I32) -> U64 => rt(RtFn::HashI64);
        hash_i64(v: I64) -> U64 => rt(RtFn::HashI64);
    }

    "gpu.host": {
        device_count() -> U32 => rt(RtFn::GpuDeviceCount);
        device_default() -> gpu(&DEVICE) => rt(RtFn::GpuDeviceDefault);
        device_by_index(idx: U32) -> gpu(&DEVICE) => rt(RtFn::GpuDeviceByIndex);
        device_name(dev: Ty::Borrow(&DEVICE)) -> STR => rt(RtFn::GpuDeviceName);
        device_backends(dev: Ty::Borrow(&DEVICE)) -> TEXTS => rt(RtFn::GpuDeviceBackends);
        device_max_workgroup_size(dev: Ty::Borrow(&DEVICE)) -> U32 => rt(RtFn::GpuDeviceMaxWorkgroupSize);
        device_max_shared_bytes(dev: Ty::Borrow(&DEVICE)) -> U32 => rt(RtFn::GpuDeviceMaxSharedBytes);
        device_max_buffers(dev: Ty::Borrow(&DEVICE)) -> U32 => rt(RtFn::GpuDeviceMaxBuffers);
        device_warp_size(dev: Ty::Borrow(&DEVICE)) -> U32 => rt(RtFn::GpuDeviceWarpSize);
        device_memory_total(dev: Ty::Borrow(&DEVICE)) -> U64 => rt(RtFn::GpuDeviceMemoryTotal);
        device_memory_available(dev: Ty::Borrow(&DEVICE)) -> U64 => rt(RtFn::GpuDeviceMemoryAvailable);
        device_sync(dev: Ty::Borrow(&DEVICE)) -> gpu(&UNIT) => rt(RtFn::GpuDeviceSync);
        buffer_new<T>(dev: Ty::Borrow(&DEVICE), len: U64, usage_flags: U32, hint: Ty::MemoryHint) -> gpu(&BUFFER) => rt(RtFn::GpuBufferNew);
        buffer_from_array<T>(dev: Ty::Borrow(&DEVICE), src: Ty::Borrow(&ARRAY), usage_flags: U32) -> gpu(&BUFFER) => rt(RtFn::GpuBufferFromArray);
        buffer_to_array<T>(buf: Ty::Borrow(&BUFFER)) -> gpu(&ARRAY) => rt(RtFn::GpuBufferToArray);
        buffer_len<T>(buf: Ty::Borrow(&BUFFER)) -> U64 => rt(RtFn::GpuBufferLen);
        buffer_copy<T>(src: Ty::Borrow(&BUFFER), dst: Ty::Borrow(&BUFFER)) -> gpu(&UNIT) => rt(RtFn::GpuBufferCopy);
        buffer_write<T>(buf: Ty::Borrow(&BUFFER), offset: U64, src: Ty::Borrow(&ARRAY)) -> gpu(&UNIT) => rt(RtFn::GpuBufferWrite);
        buffer_read<T>(buf: Ty::Borrow(&BUFFER), offset: U64, len: U64) -> gpu(&ARRAY) => rt(RtFn::GpuBufferRead);
        fence_wait(f: Ty::Borrow(&Ty::Fixed(fixed::GPU_FENCE)), timeout_ms: U64) -> gpu(&BOOL) => rt(RtFn::GpuFenceWait);
    }

    "gpu.profile": {
        begin(dev: Ty::Borrow(&DEVICE)) -> gpu(&SESSION) => rt(RtFn::GpuProfileBegin);
        end(session: SESSION) -> gpu(&EVENTS) => rt(RtFn::GpuProfileEnd);
        mark_begin(session: Ty::MutBorrow(&SESSION), name: TEXT) -> gpu(&UNIT) => rt(RtFn::GpuProfileMarkBegin);
        mark_end(session: Ty::MutBorrow(&SESSION), name: TEXT) -> gpu(&UNIT) => rt(RtFn::GpuProfileMarkEnd);
        export_chrome_trace(events: Ty::Borrow(&EVENTS), path: TEXT) -> gpu(&UNIT) => rt(RtFn::GpuProfileExportChrome);
        launch_profiled(session: Ty::MutBorrow(&SESSION), dev: Ty::Borrow(&DEVICE)) -> gpu(&UNIT) => Lowering::ProfiledLaunch;
        available_counters(dev: Ty::Borrow(&DEVICE)) -> TEXTS => rt(RtFn::GpuProfileAvailableCounters);
        enable_counters(session: Ty::MutBorrow(&SESSION), counters: Ty::Borrow(&TEXTS)) -> gpu(&UNIT) => rt(RtFn::GpuProfileEnableCounters);
        read_counters(session: Ty::Borrow(&SESSION)) -> gpu(&COUNTERS) => rt(RtFn::GpuProfileReadCounters);
        memory_stats(dev: Ty::Borrow(&DEVICE)) -> gpu(&Ty::Fixed(fixed::GPU_MEMORY_STATS)) => rt(RtFn::GpuProfileMemoryStats);
    }
}
