//! The table of runtime functions: the one place where compiler and runtime agree on a C call.
//!
//! A row gives the variant, the C symbol, the parameters and what comes back. The compiler emits
//! calls from it, the runtime must export every row (its symbol table is an exhaustive match),
//! and the C header is printed from it.
//!
//! Objects are passed as addresses of their header. "Consumes" means that the callee takes over
//! one strong count; other objects are borrowed for the call. Results are owned.

mod math_fn;
pub mod object_layout;

pub use math_fn::MathFn;

/// A machine type of the C ABI.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AbiType {
    /// `bool`, one byte, 0 or 1.
    Bool,
    /// `int32_t` or `uint32_t`.
    I32,
    /// `int64_t` or `uint64_t`.
    I64,
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// An address: an object header, a type info, an element, a C string.
    Ptr,
}

/// How a runtime function gives its result back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AbiReturn {
    /// Nothing.
    Void,
    /// Does not come back.
    Never,
    /// The value itself.
    Value(AbiType),
    /// `int32_t` 0 or -1. One more parameter `out_err` (`MpRtHeader**`) receives an owned error
    /// object on failure. For `TResult<unit, E>`.
    Status,
    /// Like [`AbiReturn::Status`], with a parameter `out` before `out_err` that receives a value
    /// of the given type on success. For `TResult<T, E>`.
    StatusOut(AbiType),
    /// `bool`: whether there is a value of the given type. One more parameter, the address of
    /// storage for it. For `TOption<T>`; elements count as [`AbiType::Ptr`], whatever they are.
    Maybe(AbiType),
}

/// The text of a documentation attribute as `stringify!` writes it: `doc = r" text"`.
fn doc_text(attribute: &str) -> Option<&str> {
    let quoted = attribute.strip_prefix("doc =")?.trim_start().trim_start_matches('r');
    Some(quoted.trim_matches('"').trim())
}

macro_rules! runtime_functions {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal ($($param:ident: $ty:ident),*) -> $ret:expr;)*) => {
        /// A function of the runtime's C ABI.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u16)]
        #[allow(missing_docs)]
        pub enum RtFn { $($(#[$doc])* $name,)* }

        impl RtFn {
            /// Every function, in table order.
            pub const ALL: &'static [RtFn] = &[$(RtFn::$name,)*];

            /// The C symbol.
            pub fn symbol(self) -> &'static str {
                match self { $(RtFn::$name => $symbol,)* }
            }

            /// Parameter names and types, without the out parameters that [`AbiReturn`] adds.
            pub fn params(self) -> &'static [(&'static str, AbiType)] {
                match self { $(RtFn::$name => &[$((stringify!($param), AbiType::$ty)),*],)* }
            }

            /// What the function does: the documentation of its row, a line of text per line.
            pub fn doc(self) -> String {
                let attributes: &[&str] = match self {
                    $(RtFn::$name => &[$(stringify!($doc)),*],)*
                };
                let lines: Vec<&str> = attributes.iter().filter_map(|a| doc_text(a)).collect();
                lines.join("\n")
            }

            /// How the result comes back.
            pub fn ret(self) -> AbiReturn {
                use AbiReturn::*;
                use AbiType::*;
                match self { $(RtFn::$name => $ret,)* }
            }
        }
    };
}

runtime_functions! {
    // Counted objects. Null is accepted by retain and release and does nothing.
    /// A new object with zeroed payload and one strong count.
    Alloc = "mp_rt_alloc"(info: Ptr) -> Value(Ptr);
    /// One more strong count.
    Retain = "mp_rt_retain"(obj: Ptr) -> Void;
    /// One strong count less; drops at zero.
    Release = "mp_rt_release"(obj: Ptr) -> Void;
    /// A weak handle to the object; the strong count is consumed.
    WeakDowngrade = "mp_rt_weak_downgrade"(obj: Ptr) -> Value(Ptr);
    /// A strong count on the object of a weak handle, or null when it is gone.
    WeakUpgrade = "mp_rt_weak_upgrade"(obj: Ptr) -> Value(Ptr);
    /// One more weak count.
    WeakRetain = "mp_rt_weak_retain"(obj: Ptr) -> Void;
    /// One weak count less.
    WeakRelease = "mp_rt_weak_release"(obj: Ptr) -> Void;
    /// Retains every handle of a value in memory (a copy of it was made).
    RetainValue = "mp_rt_retain_value"(info: Ptr, value: Ptr) -> Void;
    /// Releases every handle of a value in memory.
    ReleaseValue = "mp_rt_release_value"(info: Ptr, value: Ptr) -> Void;

    // Handles whose type the caller knows.
    /// Another strong handle to the object.
    HandleClone = "mp_rt_handle_clone"(obj: Ptr) -> Value(Ptr);
    /// A handle that nobody else has: the one given when it is such, else that of a copy of an
    /// array, a map or a struct, whose own handles are retained. Consumes the handle.
    HandleUnique = "mp_rt_handle_unique"(obj: Ptr) -> Value(Ptr);

    // Panics: flush standard output, one line on standard error, exit code 101.
    /// Panics with the text of a `Str`.
    Panic = "mp_rt_panic"(msg: Ptr) -> Never;
    /// Panics with a built-in message; `kind` is a [`PanicKind`], `place` a C string
    /// `file:line:column` or null, `a` and `b` what the message shows (index and length).
    PanicBuiltin = "mp_rt_panic_builtin"(kind: I32, place: Ptr, a: I64, b: I64) -> Never;

    // Strings.
    /// Consumes both.
    StrConcat = "mp_rt_str_concat"(a: Ptr, b: Ptr) -> Value(Ptr);
    /// Length in bytes.
    StrLen = "mp_rt_str_len"(s: Ptr) -> Value(I64);
    /// Same bytes.
    StrEq = "mp_rt_str_eq"(a: Ptr, b: Ptr) -> Value(Bool);
    /// Negative, zero or positive as `a` comes before `b`, is equal to it or comes after it, by code
    /// points.
    StrCompare = "mp_rt_str_compare"(a: Ptr, b: Ptr) -> Value(I32);
    /// Bytes `start .. end`; panics outside and off character boundaries.
    StrSlice = "mp_rt_str_slice"(s: Ptr, start: I64, end: I64) -> Value(Ptr);
    /// `Array<u8>` of the bytes; `info` describes `u8`.
    StrBytes = "mp_rt_str_bytes"(s: Ptr, info: Ptr) -> Value(Ptr);
    /// Decimal text to a number, or an owned `Str` that says why not.
    StrParseI64 = "mp_rt_str_parse_i64"(s: Ptr) -> StatusOut(I64);
    /// Decimal text of an unsigned number.
    StrParseU64 = "mp_rt_str_parse_u64"(s: Ptr) -> StatusOut(I64);
    /// Decimal text of a number, with or without exponent, `inf` or `NaN`.
    StrParseF64 = "mp_rt_str_parse_f64"(s: Ptr) -> StatusOut(F64);
    /// `true` or `false`.
    StrParseBool = "mp_rt_str_parse_bool"(s: Ptr) -> StatusOut(Bool);
    /// The text with another one behind it, in place where nobody else has it. Consumes `s`, as all
    /// that append do.
    StrAppend = "mp_rt_str_append"(s: Ptr, t: Ptr) -> Value(Ptr);
    /// Appends decimal digits, with a sign when negative.
    StrAppendI64 = "mp_rt_str_append_i64"(s: Ptr, v: I64) -> Value(Ptr);
    /// Appends decimal digits.
    StrAppendU64 = "mp_rt_str_append_u64"(s: Ptr, v: I64) -> Value(Ptr);
    /// Appends a float of 16, 32 or 64 bits as Miri prints it: exact digits and `.0` when whole, else
    /// the shortest digits that read back, never an exponent.
    StrAppendFloat = "mp_rt_str_append_float"(s: Ptr, v: F64, bits: I32) -> Value(Ptr);
    /// Appends `true` or `false`.
    StrAppendBool = "mp_rt_str_append_bool"(s: Ptr, v: Bool) -> Value(Ptr);
    /// The text in upper case (0), in lower case (1), or without white space around it (2).
    StrTransform = "mp_rt_str_transform"(s: Ptr, how: I32) -> Value(Ptr);
    /// The byte at which `part` first occurs from byte `from` on, or -1.
    StrFind = "mp_rt_str_find"(s: Ptr, part: Ptr, from: I64) -> Value(I64);
    /// Whether `part` occurs.
    StrContains = "mp_rt_str_contains"(s: Ptr, part: Ptr) -> Value(Bool);
    /// Decimal text to a number, if it is one.
    StrToI64 = "mp_rt_str_to_i64"(s: Ptr) -> Maybe(I64);
    /// Decimal text to a number as `StrParseF64` reads it, if it is one.
    StrToF64 = "mp_rt_str_to_f64"(s: Ptr) -> Maybe(F64);
    /// Number of characters.
    StrCount = "mp_rt_str_count"(s: Ptr) -> Value(I64);
    /// The character at an index, as a text; panics outside, with the C string `place`.
    StrCharAt = "mp_rt_str_char_at"(s: Ptr, index: I64, place: Ptr) -> Value(Ptr);
    /// The character that begins at a byte, as a text; an empty text where none does.
    StrCharFrom = "mp_rt_str_char_from"(s: Ptr, at: I64) -> Value(Ptr);

    // Characters without an object. A text of one character is its code point here, an empty text
    // `CODE_EMPTY`.
    /// `StrCharAt` without an object.
    StrCodeAt = "mp_rt_str_code_at"(s: Ptr, index: I64, place: Ptr) -> Value(I32);
    /// `StrCharFrom` without an object; a character begins at the byte `at`, which is none behind
    /// the text.
    StrCodeFrom = "mp_rt_str_code_from"(s: Ptr, at: I64) -> Value(I32);
    /// The code of a text, `CODE_LONGER` for one of several characters.
    StrCode = "mp_rt_str_code"(s: Ptr) -> Value(I32);
    /// The text of a code. That of an ASCII character exists already.
    CodeText = "mp_rt_code_text"(code: I32) -> Value(Ptr);
    /// Length in bytes.
    CodeLen = "mp_rt_code_len"(code: I32) -> Value(I64);
    /// A digit to its number.
    CodeToI64 = "mp_rt_code_to_i64"(code: I32) -> Maybe(I64);
    /// As `StrTransform`.
    CodeTransform = "mp_rt_code_transform"(code: I32, how: I32) -> Value(Ptr);
    /// Appends a character.
    StrAppendCode = "mp_rt_str_append_code"(s: Ptr, code: I32) -> Value(Ptr);
    /// Whether a character occurs.
    StrContainsCode = "mp_rt_str_contains_code"(s: Ptr, code: I32) -> Value(Bool);
    /// An empty builder.
    SbNew = "mp_rt_sb_new"() -> Value(Ptr);
    /// Appends a text.
    SbAppendStr = "mp_rt_sb_append_str"(b: Ptr, s: Ptr) -> Void;
    /// Appends decimal digits, with a sign when negative.
    SbAppendI64 = "mp_rt_sb_append_i64"(b: Ptr, v: I64) -> Void;
    /// Appends decimal digits.
    SbAppendU64 = "mp_rt_sb_append_u64"(b: Ptr, v: I64) -> Void;
    /// Shortest digits that read back, as Rust's `{}` prints.
    SbAppendF64 = "mp_rt_sb_append_f64"(b: Ptr, v: F64) -> Void;
    /// Appends `true` or `false`.
    SbAppendBool = "mp_rt_sb_append_bool"(b: Ptr, v: Bool) -> Void;
    /// The text so far; consumes the builder.
    SbBuild = "mp_rt_sb_build"(b: Ptr) -> Value(Ptr);

    // Arrays. `info` describes the element. Elements are passed by address and are moved.
    /// An empty array with room for `cap` elements (a negative `cap` panics).
    ArrNew = "mp_rt_arr_new"(info: Ptr, cap: I64) -> Value(Ptr);
    /// An array of `len` elements whose bytes are all zero (a negative `len` panics).
    ArrZeroed = "mp_rt_arr_zeroed"(info: Ptr, len: I64) -> Value(Ptr);
    /// Appends; moves the element in.
    ArrPush = "mp_rt_arr_push"(arr: Ptr, elem: Ptr) -> Void;
    /// Makes room for at least one more element.
    ArrGrow = "mp_rt_arr_grow"(arr: Ptr) -> Void;
    /// Removes the last element into the out storage.
    ArrPop = "mp_rt_arr_pop"(arr: Ptr) -> Maybe(Ptr);
    /// A new array of elements `start .. end`, handles retained; panics outside.
    ArrSlice = "mp_rt_arr_slice"(arr: Ptr, start: I64, end: I64) -> Value(Ptr);
    /// Element `from` becomes element `to`; those between move by one place. Both exist.
    ArrMove = "mp_rt_arr_move"(arr: Ptr, from: I64, to: I64) -> Void;
    /// The last element becomes the first, and so on.
    ArrReverse = "mp_rt_arr_reverse"(arr: Ptr) -> Void;
    /// Whether an equal element exists. `eq` is a [`ScalarClass`] below 64, else the address of
    /// `bool (*)(const void*, const void*)`.
    ArrContains = "mp_rt_arr_contains"(arr: Ptr, elem: Ptr, eq: I64) -> Value(Bool);
    /// Stable ascending sort. `ord` is a [`ScalarClass`] below 64, else the address of
    /// `int32_t (*)(const void*, const void*)` (negative, zero, positive).
    ArrSort = "mp_rt_arr_sort"(arr: Ptr, ord: I64) -> Void;

    // Maps: insertion-ordered.
    /// An empty map. `key` and `value` are type infos; `hash` is a [`ScalarClass`] below 64, else
    /// the address of `uint64_t (*)(const void*)`, and `eq` as for arrays.
    MapNew = "mp_rt_map_new"(key: Ptr, value: Ptr, hash: I64, eq: I64) -> Value(Ptr);
    /// Moves key and value in; a replaced value (and the new, equal key) is released.
    MapSet = "mp_rt_map_set"(map: Ptr, key: Ptr, value: Ptr) -> Void;
    /// The address of the value inside the map, or null. The key is borrowed.
    MapGet = "mp_rt_map_get"(map: Ptr, key: Ptr) -> Value(Ptr);
    /// Moves the value out. The key is borrowed.
    MapDelete = "mp_rt_map_delete"(map: Ptr, key: Ptr) -> Maybe(Ptr);
    /// Number of entries.
    MapLen = "mp_rt_map_len"(map: Ptr) -> Value(I64);
    /// A new array in insertion order, handles retained.
    MapKeys = "mp_rt_map_keys"(map: Ptr) -> Value(Ptr);
    /// A new array in insertion order of the keys, handles retained.
    MapValues = "mp_rt_map_values"(map: Ptr) -> Value(Ptr);

    // Callables: an object whose payload is a code address (8 bytes) and then the captures.
    /// A callable with `info` describing the captures (offsets counted from the payload start, the
    /// code address included in the size).
    CallableNew = "mp_rt_callable_new"(info: Ptr, code: Ptr) -> Value(Ptr);

    // std.io, std.time, std.os, std.fs.
    /// Writes a text to standard output.
    Print = "mp_rt_print"(s: Ptr) -> Void;
    /// Writes a line to standard output.
    Println = "mp_rt_println"(s: Ptr) -> Void;
    /// Ends the last line of standard output, unless the program did.
    EndLine = "mp_rt_end_line"() -> Void;
    /// Writes a line to standard error, after all that was printed before.
    Eprintln = "mp_rt_eprintln"(s: Ptr) -> Void;
    /// Writes a text to standard error, after all that was printed before.
    Eprint = "mp_rt_eprint"(s: Ptr) -> Void;
    /// Writes a number on a line.
    PrintlnI64 = "mp_rt_println_i64"(v: I64) -> Void;
    /// Writes a number on a line.
    PrintlnU64 = "mp_rt_println_u64"(v: I64) -> Void;
    /// Writes a number on a line, as Rust's `{}` prints.
    PrintlnF64 = "mp_rt_println_f64"(v: F64) -> Void;
    /// Writes `true` or `false` on a line.
    PrintlnBool = "mp_rt_println_bool"(v: Bool) -> Void;
    /// One line without its end; empty at the end of input.
    Readln = "mp_rt_readln"() -> Value(Ptr);
    /// Nanoseconds of a monotonic clock.
    NowNs = "mp_rt_now_ns"() -> Value(I64);
    /// Sleeps; what was printed before appears before.
    SleepMs = "mp_rt_sleep_ms"(ms: I64) -> Void;
    /// Program arguments, without the program's own name; `info` describes `Str`.
    OsArgs = "mp_rt_os_args"(info: Ptr) -> Value(Ptr);
    /// The value of an environment variable as a `Str`.
    OsEnvVar = "mp_rt_os_env_var"(name: Ptr) -> Maybe(Ptr);
    /// Flushes and ends the process.
    OsExit = "mp_rt_os_exit"(code: I32) -> Never;
    /// The path of the working directory.
    OsCwd = "mp_rt_os_cwd"() -> Value(Ptr);
    /// A whole file as `Array<u8>`; the error is a `Str`. `info` describes `u8`.
    FsReadBytes = "mp_rt_fs_read_bytes"(path: Ptr, info: Ptr) -> StatusOut(Ptr);
    /// Writes a whole file: complete, or the old file stays.
    FsWriteBytes = "mp_rt_fs_write_bytes"(path: Ptr, data: Ptr) -> Status;
    /// A whole file as a `Str`; not valid UTF-8 is an error.
    FsReadText = "mp_rt_fs_read_text"(path: Ptr) -> StatusOut(Ptr);
    /// Like `mp_rt_fs_write_bytes`, of a text.
    FsWriteText = "mp_rt_fs_write_text"(path: Ptr, text: Ptr) -> Status;
    /// FNV-1a of the bytes.
    HashStr = "mp_rt_hash_str"(s: Ptr) -> Value(I64);
    /// FNV-1a of the eight bytes, lowest first.
    HashI64 = "mp_rt_hash_i64"(v: I64) -> Value(I64);

    // Elementary functions that no back end has as an instruction.
    /// A [`MathFn`] of `x`, or of `x` and `y`.
    MathF64 = "mp_rt_math_f64"(op: I32, x: F64, y: F64) -> Value(F64);
    /// The same, rounded once to `float`.
    MathF32 = "mp_rt_math_f32"(op: I32, x: F32, y: F32) -> Value(F32);

    // GPU (GPU specification, appendix B and the base ABI). Errors are `gpu.TError`.
    /// Makes the runtime ready; a program that uses devices calls it first.
    GpuInit = "mp_rt_gpu_init"() -> Void;
    /// A `gpu.TError`; `kind` is a tag of `gpu.ErrorKind`, the texts are C strings and copied.
    GpuErrorNew = "mp_rt_gpu_error_new"(kind: I32, backend: Ptr, message: Ptr, code: I32) -> Value(Ptr);
    /// The tag of `gpu.ErrorKind`.
    GpuErrorKind = "mp_rt_gpu_error_kind"(err: Ptr) -> Value(I32);
    /// What happened, an owned `Str`.
    GpuErrorMessage = "mp_rt_gpu_error_message"(err: Ptr) -> Value(Ptr);
    /// The back-end word, an owned `Str`.
    GpuErrorBackend = "mp_rt_gpu_error_backend"(err: Ptr) -> Value(Ptr);
    /// The driver's own code, or 0.
    GpuErrorCode = "mp_rt_gpu_error_code"(err: Ptr) -> Value(I32);
    /// Number of devices; one that several back ends reach counts once.
    GpuDeviceCount = "mp_rt_gpu_device_count_unified"() -> Value(I32);
    /// The device that programs run on unless they choose.
    GpuDeviceDefault = "mp_rt_gpu_device_default_unified"() -> StatusOut(Ptr);
    /// The device of a number below the count.
    GpuDeviceByIndex = "mp_rt_gpu_device_by_index"(idx: I32) -> StatusOut(Ptr);
    /// The name that the driver gives, an owned `Str`.
    GpuDeviceName = "mp_rt_gpu_device_name"(dev: Ptr) -> Value(Ptr);
    /// An `Array<Str>` of back-end words. In the language this cannot fail: on error the compiler's
    /// code yields an empty array.
    GpuDeviceBackends = "mp_rt_gpu_device_backends"(dev: Ptr) -> StatusOut(Ptr);
    /// Most invocations of a workgroup.
    GpuDeviceMaxWorkgroupSize = "mp_rt_gpu_device_max_workgroup_size"(dev: Ptr) -> Value(I32);
    /// Most bytes of shared memory of a workgroup.
    GpuDeviceMaxSharedBytes = "mp_rt_gpu_device_max_shared_bytes"(dev: Ptr) -> Value(I32);
    /// Most buffer parameters of a kernel.
    GpuDeviceMaxBuffers = "mp_rt_gpu_device_max_buffers"(dev: Ptr) -> Value(I32);
    /// Invocations of a subgroup.
    GpuDeviceWarpSize = "mp_rt_gpu_device_warp_size"(dev: Ptr) -> Value(I32);
    /// Device memory in bytes.
    GpuDeviceMemoryTotal = "mp_rt_gpu_device_memory_total"(dev: Ptr) -> Value(I64);
    /// Device memory that is free now, in bytes.
    GpuDeviceMemoryAvailable = "mp_rt_gpu_device_memory_available"(dev: Ptr) -> Value(I64);
    /// Waits until all work of the device is done.
    GpuDeviceSync = "mp_rt_gpu_device_sync"(dev: Ptr) -> Status;
    /// Zero-filled.
    GpuBufferNew = "mp_rt_gpu_buffer_new_hinted"(dev: Ptr, elem_type_id: I32, elem_size: I32, len: I64, usage_flags: I32, hint: I32) -> StatusOut(Ptr);
    /// A buffer with the elements of an array.
    GpuBufferFromArray = "mp_rt_gpu_buffer_from_array"(dev: Ptr, arr: Ptr, elem_type_id: I32, usage_flags: I32) -> StatusOut(Ptr);
    /// `info` describes the element.
    GpuBufferToArray = "mp_rt_gpu_buffer_to_array"(buf: Ptr, info: Ptr) -> StatusOut(Ptr);
    /// Number of elements.
    GpuBufferLen = "mp_rt_gpu_buffer_len"(buf: Ptr) -> Value(I64);
    /// Copies all elements of `src` to the first elements of `dst`.
    GpuBufferCopy = "mp_rt_gpu_buffer_copy"(src: Ptr, dst: Ptr) -> Status;
    /// Copies all of `src` to elements `offset ..` of the buffer.
    GpuBufferWrite = "mp_rt_gpu_buffer_write"(buf: Ptr, offset: I64, src: Ptr) -> Status;
    /// Elements `offset .. offset + len` as a new array; `info` describes the element.
    GpuBufferRead = "mp_rt_gpu_buffer_read"(buf: Ptr, offset: I64, len: I64, info: Ptr) -> StatusOut(Ptr);
    /// `args`: 8 bytes a buffer (handles, in order of the buffer parameters), then the scalar block.
    GpuLaunchSync = "mp_rt_gpu_launch_sync"(dev: Ptr, kernel: I64, gx: I32, gy: I32, gz: I32, bx: I32, by: I32, bz: I32, args: Ptr, args_len: I64) -> Status;
    /// Like `mp_rt_gpu_launch_sync`; runs on the CPU device when the device given cannot run the kernel.
    GpuLaunchSyncFallback = "mp_rt_gpu_launch_sync_fallback"(dev: Ptr, kernel: I64, gx: I32, gy: I32, gz: I32, bx: I32, by: I32, bz: I32, args: Ptr, args_len: I64) -> Status;
    /// Like `mp_rt_gpu_launch_sync`, without waiting; gives a fence.
    GpuLaunchAsync = "mp_rt_gpu_launch_async"(dev: Ptr, kernel: I64, gx: I32, gy: I32, gz: I32, bx: I32, by: I32, bz: I32, args: Ptr, args_len: I64) -> StatusOut(Ptr);
    /// Whether the launch was done within the time.
    GpuFenceWait = "mp_rt_gpu_fence_wait"(fence: Ptr, timeout_ms: I64) -> StatusOut(Bool);
    /// Starts a profiling session on a device.
    GpuProfileBegin = "mp_rt_gpu_profile_begin"(dev: Ptr) -> StatusOut(Ptr);
    /// Consumes the session, also on failure.
    GpuProfileEnd = "mp_rt_gpu_profile_end"(session: Ptr) -> StatusOut(Ptr);
    /// Starts a named region.
    GpuProfileMarkBegin = "mp_rt_gpu_profile_mark_begin"(session: Ptr, name: Ptr) -> Status;
    /// Ends a named region.
    GpuProfileMarkEnd = "mp_rt_gpu_profile_mark_end"(session: Ptr, name: Ptr) -> Status;
    /// Writes an `Array<gpu.TProfileEvent>` as a Chrome trace.
    GpuProfileExportChrome = "mp_rt_gpu_profile_export_chrome"(events: Ptr, path: Ptr) -> Status;
    /// An `Array<Str>` of the hardware counters that a session can read.
    GpuProfileAvailableCounters = "mp_rt_gpu_profile_available_counters"(dev: Ptr) -> StatusOut(Ptr);
    /// Chooses the counters, an `Array<Str>`, that the session records.
    GpuProfileEnableCounters = "mp_rt_gpu_profile_enable_counters"(session: Ptr, counters: Ptr) -> Status;
    /// A `Map<Str, f64>` of the chosen counters.
    GpuProfileReadCounters = "mp_rt_gpu_profile_read_counters"(session: Ptr) -> StatusOut(Ptr);
    /// A `gpu.TMemoryStats` of the device.
    GpuProfileMemoryStats = "mp_rt_gpu_profile_memory_stats"(dev: Ptr) -> StatusOut(Ptr);
    /// `gpu.profile.@launch_profiled`: a launch recorded in the session.
    GpuProfileLaunch = "mp_rt_gpu_profile_launch"(session: Ptr, dev: Ptr, kernel: I64, gx: I32, gy: I32, gz: I32, bx: I32, by: I32, bz: I32, args: Ptr, args_len: I64) -> Status;

    // Device-resident bindings of Miri: what is sent to the default device when a kernel first
    // needs it. Their failures end the program with exit code 3; `place` is a C string
    // `file:line:column` for the message.
    /// A binding with the elements of an array, which it shares; `elem_type_id` is of the result.
    GpuResidentNew = "mp_rt_gpu_resident_new"(arr: Ptr, elem_type_id: I32) -> Value(Ptr);
    /// A further buffer of the binding made before, as [`Self::GpuResidentNew`]: costs are counted
    /// for the first one.
    GpuResidentPart = "mp_rt_gpu_resident_part"(arr: Ptr, elem_type_id: I32) -> Value(Ptr);
    /// A binding of `len` zeros.
    GpuResidentZeros = "mp_rt_gpu_resident_zeros"(len: I64, elem_type_id: I32, elem_size: I32) -> Value(Ptr);
    /// A binding of one zero that a reduction fills; its upload is not counted.
    GpuResidentCell = "mp_rt_gpu_resident_cell"(elem_type_id: I32, elem_size: I32) -> Value(Ptr);
    /// A binding of `len` zeros that an operation needs for itself; its upload is not counted.
    GpuResidentScratch = "mp_rt_gpu_resident_scratch"(len: I64, elem_type_id: I32, elem_size: I32) -> Value(Ptr);
    /// The `gpu.TBuffer` of a binding, uploaded by the first call.
    GpuResidentBuffer = "mp_rt_gpu_resident_buffer"(res: Ptr, place: Ptr) -> Value(Ptr);
    /// Elements `start .. end` as a new array; panics outside.
    GpuResidentRead = "mp_rt_gpu_resident_read"(res: Ptr, start: I64, end: I64, place: Ptr, info: Ptr) -> Value(Ptr);
    /// Replaces all elements by those of an array of the same length; panics for another length.
    GpuResidentAssign = "mp_rt_gpu_resident_assign"(res: Ptr, arr: Ptr, place: Ptr) -> Void;
    /// Notes about the array that the next binding is made of, or assigned: a value that does not
    /// fit its element. `message` tells of it when a kernel needs the binding; `index` is that of
    /// an element which is the value itself, else negative.
    GpuResidentUnfit = "mp_rt_gpu_resident_unfit"(message: Ptr, index: I64, value: I64) -> Void;
    /// Puts the values that do not fit on a device back into an array of `i64` that was read from
    /// element `start` of a binding.
    GpuResidentRestore = "mp_rt_gpu_resident_restore"(res: Ptr, arr: Ptr, start: I64) -> Void;
    /// Number of elements.
    GpuResidentLen = "mp_rt_gpu_resident_len"(res: Ptr) -> Value(I64);
    /// The default device.
    GpuDeviceOrStop = "mp_rt_gpu_device_or_stop"(place: Ptr) -> Value(Ptr);
    /// Whether a device can be opened.
    GpuIsAvailable = "mp_rt_gpu_is_available"() -> Value(Bool);
    /// Ends the program because a launch was refused: one line with the message of the
    /// `gpu.TError`, exit code 3.
    GpuStop = "mp_rt_gpu_stop"(err: Ptr, place: Ptr) -> Never;
    /// Sets all counters to 0.
    GpuTelemetryReset = "mp_rt_gpu_telemetry_reset"() -> Void;
    /// One more launch.
    GpuTelemetryLaunch = "mp_rt_gpu_telemetry_launch"() -> Void;
    /// A counter: 0 uploads, 1 launches, 2 readbacks, 3 fences, 4 releases.
    GpuTelemetry = "mp_rt_gpu_telemetry"(which: I32) -> Value(I64);
}

impl RtFn {
    /// Whether the callee takes over one strong count of parameter `index`.
    pub fn consumes(self, index: usize) -> bool {
        match self {
            RtFn::StrConcat => true,
            RtFn::HandleUnique
            | RtFn::StrAppend
            | RtFn::StrAppendCode
            | RtFn::StrAppendI64
            | RtFn::StrAppendU64
            | RtFn::StrAppendFloat
            | RtFn::StrAppendBool
            | RtFn::SbBuild
            | RtFn::WeakDowngrade
            | RtFn::Release
            | RtFn::WeakRelease => index == 0,
            RtFn::GpuProfileEnd => index == 0,
            _ => false,
        }
    }
}

impl RtFn {
    /// Whether compiled code calls the function only where it cannot do the same in place, which is
    /// seldom.
    pub fn is_fallback(self) -> bool {
        matches!(
            self,
            RtFn::HandleUnique
                | RtFn::ArrGrow
                | RtFn::StrCount
                | RtFn::StrCode
                | RtFn::StrCodeAt
                | RtFn::StrCodeFrom
                | RtFn::CodeLen
        )
    }

    /// Whether the function changes nothing that describes a live object (lengths, where elements
    /// are), but counts, and objects that it makes or drops.
    pub fn keeps_headers(self) -> bool {
        matches!(
            self,
            RtFn::Retain
                | RtFn::Release
                | RtFn::HandleClone
                | RtFn::HandleUnique
                | RtFn::Alloc
                | RtFn::ArrNew
                | RtFn::ArrZeroed
                | RtFn::ArrSlice
        )
    }

    /// Whether the function, when it comes back, has changed nothing: it looks at texts.
    pub fn only_reads(self) -> bool {
        matches!(
            self,
            RtFn::StrEq
                | RtFn::StrCompare
                | RtFn::StrFind
                | RtFn::StrContains
                | RtFn::StrContainsCode
                | RtFn::StrCount
                | RtFn::StrCode
                | RtFn::StrCodeAt
                | RtFn::StrCodeFrom
                | RtFn::CodeLen
                | RtFn::HashStr
        )
    }
}

/// What went wrong in a built-in panic ([`RtFn::PanicBuiltin`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum PanicKind {
    /// A result outside its integer type.
    Overflow = 0,
    /// Division or remainder by zero.
    DivisionByZero = 1,
    /// Index `a` of something with `b` elements.
    IndexOutOfBounds = 2,
    /// A key that the map lacks.
    MissingKey = 3,
    /// A payload of a variant that is not active.
    WrongVariant = 4,
    /// An `unreachable` was reached.
    Unreachable = 5,
}

impl PanicKind {
    /// Every kind, by discriminant.
    pub const ALL: [PanicKind; 6] = [
        PanicKind::Overflow,
        PanicKind::DivisionByZero,
        PanicKind::IndexOutOfBounds,
        PanicKind::MissingKey,
        PanicKind::WrongVariant,
        PanicKind::Unreachable,
    ];
}

/// Built-in comparison, hashing and order of elements, where an address of a function is not needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ScalarClass {
    #[allow(missing_docs)]
    Bool = 1,
    #[allow(missing_docs)]
    I8 = 2,
    #[allow(missing_docs)]
    I16 = 3,
    #[allow(missing_docs)]
    I32 = 4,
    #[allow(missing_docs)]
    I64 = 5,
    #[allow(missing_docs)]
    U8 = 7,
    #[allow(missing_docs)]
    U16 = 8,
    #[allow(missing_docs)]
    U32 = 9,
    #[allow(missing_docs)]
    U64 = 10,
    #[allow(missing_docs)]
    F16 = 13,
    #[allow(missing_docs)]
    F32 = 14,
    #[allow(missing_docs)]
    F64 = 15,
    #[allow(missing_docs)]
    Bf16 = 16,
    /// By bytes of the text.
    Str = 20,
}

impl ScalarClass {
    /// The class whose discriminant is `value`; discriminants are the fixed type ids.
    pub fn from_u64(value: u64) -> Option<ScalarClass> {
        use ScalarClass::*;
        [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64, Bf16, Str]
            .into_iter()
            .find(|&c| c as u64 == value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_carry_their_documentation() {
        assert_eq!(RtFn::StrConcat.doc(), "Consumes both.");
        assert_eq!(RtFn::PanicBuiltin.doc().lines().count(), 2);
        assert!(RtFn::ALL.iter().all(|f| !f.doc().is_empty()));
    }

    #[test]
    fn symbols_are_distinct() {
        let mut symbols: Vec<&str> = RtFn::ALL.iter().map(|f| f.symbol()).collect();
        symbols.sort_unstable();
        symbols.dedup();
        assert_eq!(symbols.len(), RtFn::ALL.len());
    }
}
