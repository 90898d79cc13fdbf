/*
 * The C interface of the Magpie runtime.
 *
 * Written by runtime/rt/src/header.rs; do not edit.
 *
 * Objects. A handle is the address of an object's header. Functions borrow the objects they are
 * given, unless their comment says "consumes": then they take over one strong count. Objects that
 * a function gives back are owned by the caller: one strong count, to be given up with
 * mp_rt_release. Null is accepted by the functions that count, and by no other.
 *
 * Values of a type that only the program knows (elements, keys) are passed by address and
 * described by an MpRtTypeInfo, which must live as long as the process.
 *
 * Errors. Functions with a parameter `out_err` give back 0, or -1 and an owned error object there;
 * on success they store null. The error is a gpu.TError for the mp_rt_gpu functions, else a Str.
 * `out` receives the result on success, else zero. Functions with `out` that give back a bool
 * store a value there when they give back true, else zero.
 *
 * Panics. An error of the program, such as an index out of bounds, flushes standard output, writes
 * one line to standard error and ends the process with exit code 101.
 *
 * Threads. Any function may be called from any thread. An array, map or builder that is being
 * changed must not be used by another thread at the same time.
 */
#ifndef MAGPIE_RT_H
#define MAGPIE_RT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
#define MP_RT_NORETURN [[noreturn]]
extern "C" {
#else
#define MP_RT_NORETURN _Noreturn
#endif

struct MpRtTypeInfo;

/* What every object starts with. The payload follows. */
typedef struct MpRtHeader {
    uint64_t strong;                 /* strong handles; changed atomically */
    uint64_t weak;                   /* weak handles, and one for all strong ones; likewise */
    uint32_t type_id;
    uint32_t flags;                  /* MP_RT_FLAG_IMMORTAL; the others are the runtime's own */
    const struct MpRtTypeInfo* info; /* describes the payload */
} MpRtHeader;

/* The object is never counted and never freed, and its info may be null. */
#define MP_RT_FLAG_IMMORTAL 1u

/* Describes a value, or the payload of an object. */
typedef struct MpRtTypeInfo {
    uint32_t type_id;
    uint32_t flags;         /* 0, or MP_RT_INFO_LENGTH_PREFIXED */
    uint32_t size;          /* in bytes */
    uint32_t align;         /* a power of two, at most 32 for objects */
    uint32_t num_strong;    /* entries of strong */
    uint32_t num_weak;      /* entries of weak */
    const uint32_t* strong; /* byte offsets of strong handles */
    const uint32_t* weak;   /* byte offsets of weak handles */
    void (*drop_fn)(MpRtHeader* obj); /* called when an object dies, before its handles are
                                         released; may be null */
    const char* name;
} MpRtTypeInfo;

/* The payload is a uint64_t and that many bytes more. */
#define MP_RT_INFO_LENGTH_PREFIXED 1u

/* Str: UTF-8 text that never changes and need not end with a zero byte. */
typedef struct MpRtStr {
    MpRtHeader header;
    uint64_t len; /* in bytes; the text follows */
} MpRtStr;

static inline const char* mp_rt_str_data(const MpRtHeader* s) {
    return (const char*)s + sizeof(MpRtStr);
}

/* Array<T>. */
typedef struct MpRtArray {
    MpRtHeader header;
    uint64_t len; /* elements */
    uint64_t cap; /* elements that fit without moving */
    void* data;   /* the elements; not null */
    const MpRtTypeInfo* elem;
} MpRtArray;

/* TCallable<S>. The code is called with the address of `code` as its first argument. */
typedef struct MpRtCallable {
    MpRtHeader header;
    const void* code; /* the captured values follow */
} MpRtCallable;

/* gpu.TError. */
typedef struct MpRtGpuError {
    MpRtHeader header;
    int32_t kind;        /* MpRtGpuErrorKind */
    MpRtHeader* backend; /* Str: "spv", "msl", "ptx", "hip", "wgsl", "cpu" ... */
    MpRtHeader* message; /* Str */
    int32_t code;        /* the driver's error code, or 0 */
} MpRtGpuError;

/* The code of a kernel for one back end. `data` is a container with code and layout as the
   compiler writes it; for back end 0x40 (CPU) it is one MpRtGpuHostKernel. */
typedef struct MpRtGpuKernelBlob {
    uint8_t backend; /* MpRtGpuBackend */
    const uint8_t* data;
    uint32_t data_len;
} MpRtGpuKernelBlob;

/* A parameter of a kernel. */
typedef struct MpRtGpuParam {
    uint8_t kind; /* 1 buffer, 2 scalar, 3 hidden length, which num_params does not count */
    uint8_t reserved0;
    uint16_t reserved1;
    uint32_t type_id; /* of the element or scalar */
    uint32_t offset_or_binding;
    uint32_t size; /* of the element or scalar, in bytes */
} MpRtGpuParam;

/* A kernel of the program. */
typedef struct MpRtGpuKernelEntry {
    uint64_t sid_hash; /* FNV-1a of the stable id */
    uint32_t num_blobs;
    const MpRtGpuKernelBlob* blobs;
    uint32_t num_params;
    const MpRtGpuParam* params;
    uint32_t num_buffers;
    uint32_t push_const_size; /* bytes of the scalar block */
} MpRtGpuKernelEntry;

/* A kernel as machine code of the program. */
typedef struct MpRtGpuHostKernel {
    const uint8_t* layout;
    uint64_t layout_len;
    uintptr_t entry;
    uintptr_t unchecked; /* the body without bounds checks, or 0 */
    uint32_t frame_bytes;
    uint32_t unchecked_frame_bytes;
    const char* name; /* may be null */
} MpRtGpuHostKernel;

typedef enum MpRtPanicKind {
    MP_RT_PANIC_OVERFLOW = 0,
    MP_RT_PANIC_DIVISION_BY_ZERO = 1,
    MP_RT_PANIC_INDEX_OUT_OF_BOUNDS = 2,
    MP_RT_PANIC_MISSING_KEY = 3,
    MP_RT_PANIC_WRONG_VARIANT = 4,
    MP_RT_PANIC_UNREACHABLE = 5
} MpRtPanicKind;

typedef enum MpRtScalarClass {
    MP_RT_CLASS_BOOL = 1,
    MP_RT_CLASS_I8 = 2,
    MP_RT_CLASS_I16 = 3,
    MP_RT_CLASS_I32 = 4,
    MP_RT_CLASS_I64 = 5,
    MP_RT_CLASS_U8 = 7,
    MP_RT_CLASS_U16 = 8,
    MP_RT_CLASS_U32 = 9,
    MP_RT_CLASS_U64 = 10,
    MP_RT_CLASS_F16 = 13,
    MP_RT_CLASS_F32 = 14,
    MP_RT_CLASS_F64 = 15,
    MP_RT_CLASS_BF16 = 16,
    MP_RT_CLASS_STR = 20
} MpRtScalarClass;

typedef enum MpRtMathFn {
    MP_RT_MATH_EXP = 0,
    MP_RT_MATH_EXP2 = 1,
    MP_RT_MATH_LOG = 2,
    MP_RT_MATH_LOG2 = 3,
    MP_RT_MATH_SIN = 4,
    MP_RT_MATH_COS = 5,
    MP_RT_MATH_TAN = 6,
    MP_RT_MATH_ASIN = 7,
    MP_RT_MATH_ACOS = 8,
    MP_RT_MATH_ATAN = 9,
    MP_RT_MATH_SINH = 10,
    MP_RT_MATH_COSH = 11,
    MP_RT_MATH_TANH = 12,
    MP_RT_MATH_ATAN2 = 13,
    MP_RT_MATH_POW = 14,
    MP_RT_MATH_REM = 15,
    MP_RT_MATH_ROUND = 16
} MpRtMathFn;

typedef enum MpRtGpuErrorKind {
    MP_RT_GPU_ERROR_DEVICE_LOST = 0,
    MP_RT_GPU_ERROR_OUT_OF_MEMORY = 1,
    MP_RT_GPU_ERROR_LAUNCH_FAILED = 2,
    MP_RT_GPU_ERROR_INVALID_KERNEL = 3,
    MP_RT_GPU_ERROR_BACKEND_UNAVAILABLE = 4,
    MP_RT_GPU_ERROR_BUFFER_ERROR = 5,
    MP_RT_GPU_ERROR_TIMEOUT_EXPIRED = 6,
    MP_RT_GPU_ERROR_UNSUPPORTED = 7,
    MP_RT_GPU_ERROR_COMPILATION_FAILED = 8,
    MP_RT_GPU_ERROR_DRIVER_ERROR = 9,
    MP_RT_GPU_ERROR_RESOURCE_EXHAUSTED = 10,
    MP_RT_GPU_ERROR_VALIDATION_FAILED = 11
} MpRtGpuErrorKind;

typedef enum MpRtGpuMemoryHint {
    MP_RT_GPU_HINT_AUTO = 0,
    MP_RT_GPU_HINT_DEVICE_LOCAL = 1,
    MP_RT_GPU_HINT_UNIFIED = 2,
    MP_RT_GPU_HINT_STAGING = 3,
    MP_RT_GPU_HINT_CACHED = 4
} MpRtGpuMemoryHint;

typedef enum MpRtGpuBackend {
    MP_RT_GPU_BACKEND_SPV = 1,
    MP_RT_GPU_BACKEND_MSL = 2,
    MP_RT_GPU_BACKEND_PTX = 3,
    MP_RT_GPU_BACKEND_HIP = 4,
    MP_RT_GPU_BACKEND_WGSL = 5,
    MP_RT_GPU_BACKEND_CPU = 64,
    MP_RT_GPU_BACKEND_INTERP = 65
} MpRtGpuBackend;

/* A new object with zeroed payload and one strong count. */
MpRtHeader* mp_rt_alloc(const MpRtTypeInfo* info);

/* One more strong count. */
void mp_rt_retain(MpRtHeader* obj);

/* One strong count less; drops at zero. */
void mp_rt_release(MpRtHeader* obj);

/* A weak handle to the object; the strong count is consumed. */
MpRtHeader* mp_rt_weak_downgrade(MpRtHeader* obj);

/* A strong count on the object of a weak handle, or null when it is gone. */
MpRtHeader* mp_rt_weak_upgrade(MpRtHeader* obj);

/* One more weak count. */
void mp_rt_weak_retain(MpRtHeader* obj);

/* One weak count less. */
void mp_rt_weak_release(MpRtHeader* obj);

/* Retains every handle of a value in memory (a copy of it was made). */
void mp_rt_retain_value(const MpRtTypeInfo* info, const void* value);

/* Releases every handle of a value in memory. */
void mp_rt_release_value(const MpRtTypeInfo* info, const void* value);

/* Another strong handle to the object. */
MpRtHeader* mp_rt_handle_clone(MpRtHeader* obj);

/* A handle that nobody else has: the one given when it is such, else that of a copy of an
   array, a map or a struct, whose own handles are retained. Consumes the handle. */
MpRtHeader* mp_rt_handle_unique(MpRtHeader* obj);

/* Panics with the text of a `Str`. */
MP_RT_NORETURN void mp_rt_panic(MpRtHeader* msg);

/* Panics with a built-in message; `kind` is a `MpRtPanicKind`, `place` a C string
   `file:line:column` or null, `a` and `b` what the message shows (index and length). */
MP_RT_NORETURN void mp_rt_panic_builtin(int32_t kind, const char* place, int64_t a, int64_t b);

/* Consumes both. */
MpRtHeader* mp_rt_str_concat(MpRtHeader* a, MpRtHeader* b);

/* Length in bytes. */
uint64_t mp_rt_str_len(MpRtHeader* s);

/* Same bytes. */
bool mp_rt_str_eq(MpRtHeader* a, MpRtHeader* b);

/* Negative, zero or positive as `a` comes before `b`, is equal to it or comes after it, by code
   points. */
int32_t mp_rt_str_compare(MpRtHeader* a, MpRtHeader* b);

/* Bytes `start .. end`; panics outside and off character boundaries. */
MpRtHeader* mp_rt_str_slice(MpRtHeader* s, int64_t start, int64_t end);

/* `Array<u8>` of the bytes; `info` describes `u8`. */
MpRtHeader* mp_rt_str_bytes(MpRtHeader* s, const MpRtTypeInfo* info);

/* Decimal text to a number, or an owned `Str` that says why not. */
int32_t mp_rt_str_parse_i64(MpRtHeader* s, int64_t* out, MpRtHeader** out_err);

/* Decimal text of an unsigned number. */
int32_t mp_rt_str_parse_u64(MpRtHeader* s, uint64_t* out, MpRtHeader** out_err);

/* Decimal text of a number, with or without exponent, `inf` or `NaN`. */
int32_t mp_rt_str_parse_f64(MpRtHeader* s, double* out, MpRtHeader** out_err);

/* `true` or `false`. */
int32_t mp_rt_str_parse_bool(MpRtHeader* s, bool* out, MpRtHeader** out_err);

/* The text with another one behind it, in place where nobody else has it. Consumes `s`, as all
   that append do. */
MpRtHeader* mp_rt_str_append(MpRtHeader* s, MpRtHeader* t);

/* Appends decimal digits, with a sign when negative. */
MpRtHeader* mp_rt_str_append_i64(MpRtHeader* s, int64_t v);

/* Appends decimal digits. */
MpRtHeader* mp_rt_str_append_u64(MpRtHeader* s, uint64_t v);

/* Appends a float of 16, 32 or 64 bits as Miri prints it: exact digits and `.0` when whole, else
   the shortest digits that read back, never an exponent. */
MpRtHeader* mp_rt_str_append_float(MpRtHeader* s, double v, int32_t bits);

/* Appends `true` or `false`. */
MpRtHeader* mp_rt_str_append_bool(MpRtHeader* s, bool v);

/* The text in upper case (0), in lower case (1), or without white space around it (2). */
MpRtHeader* mp_rt_str_transform(MpRtHeader* s, int32_t how);

/* The byte at which `part` first occurs from byte `from` on, or -1. */
int64_t mp_rt_str_find(MpRtHeader* s, MpRtHeader* part, int64_t from);

/* Whether `part` occurs. */
bool mp_rt_str_contains(MpRtHeader* s, MpRtHeader* part);

/* Decimal text to a number, if it is one. */
bool mp_rt_str_to_i64(MpRtHeader* s, int64_t* out);

/* Decimal text to a number as `StrParseF64` reads it, if it is one. */
bool mp_rt_str_to_f64(MpRtHeader* s, double* out);

/* Number of characters. */
int64_t mp_rt_str_count(MpRtHeader* s);

/* The character at an index, as a text; panics outside, with the C string `place`. */
MpRtHeader* mp_rt_str_char_at(MpRtHeader* s, int64_t index, const char* place);

/* The character that begins at a byte, as a text; an empty text where none does. */
MpRtHeader* mp_rt_str_char_from(MpRtHeader* s, int64_t at);

/* `StrCharAt` without an object. */
int32_t mp_rt_str_code_at(MpRtHeader* s, int64_t index, const char* place);

/* `StrCharFrom` without an object; a character begins at the byte `at`, which is none behind
   the text. */
int32_t mp_rt_str_code_from(MpRtHeader* s, int64_t at);

/* The code of a text, `CODE_LONGER` for one of several characters. */
int32_t mp_rt_str_code(MpRtHeader* s);

/* The text of a code. That of an ASCII character exists already. */
MpRtHeader* mp_rt_code_text(int32_t code);

/* Length in bytes. */
int64_t mp_rt_code_len(int32_t code);

/* A digit to its number. */
bool mp_rt_code_to_i64(int32_t code, int64_t* out);

/* As `StrTransform`. */
MpRtHeader* mp_rt_code_transform(int32_t code, int32_t how);

/* Appends a character. */
MpRtHeader* mp_rt_str_append_code(MpRtHeader* s, int32_t code);

/* Whether a character occurs. */
bool mp_rt_str_contains_code(MpRtHeader* s, int32_t code);

/* An empty builder. */
MpRtHeader* mp_rt_sb_new(void);

/* Appends a text. */
void mp_rt_sb_append_str(MpRtHeader* b, MpRtHeader* s);

/* Appends decimal digits, with a sign when negative. */
void mp_rt_sb_append_i64(MpRtHeader* b, int64_t v);

/* Appends decimal digits. */
void mp_rt_sb_append_u64(MpRtHeader* b, uint64_t v);

/* Shortest digits that read back, as Rust's `{}` prints. */
void mp_rt_sb_append_f64(MpRtHeader* b, double v);

/* Appends `true` or `false`. */
void mp_rt_sb_append_bool(MpRtHeader* b, bool v);

/* The text so far; consumes the builder. */
MpRtHeader* mp_rt_sb_build(MpRtHeader* b);

/* An empty array with room for `cap` elements (a negative `cap` panics). */
MpRtHeader* mp_rt_arr_new(const MpRtTypeInfo* info, int64_t cap);

/* An array of `len` elements whose bytes are all zero (a negative `len` panics). */
MpRtHeader* mp_rt_arr_zeroed(const MpRtTypeInfo* info, int64_t len);

/* Appends; moves the element in. */
void mp_rt_arr_push(MpRtHeader* arr, const void* elem);

/* Makes room for at least one more element. */
void mp_rt_arr_grow(MpRtHeader* arr);

/* Removes the last element into the out storage. */
bool mp_rt_arr_pop(MpRtHeader* arr, void* out);

/* A new array of elements `start .. end`, handles retained; panics outside. */
MpRtHeader* mp_rt_arr_slice(MpRtHeader* arr, int64_t start, int64_t end);

/* Element `from` becomes element `to`; those between move by one place. Both exist. */
void mp_rt_arr_move(MpRtHeader* arr, int64_t from, int64_t to);

/* The last element becomes the first, and so on. */
void mp_rt_arr_reverse(MpRtHeader* arr);

/* Whether an equal element exists. `eq` is a `MpRtScalarClass` below 64, else the address of
   `bool (*)(const void*, const void*)`. */
bool mp_rt_arr_contains(MpRtHeader* arr, const void* elem, uint64_t eq);

/* Stable ascending sort. `ord` is a `MpRtScalarClass` below 64, else the address of
   `int32_t (*)(const void*, const void*)` (negative, zero, positive). */
void mp_rt_arr_sort(MpRtHeader* arr, uint64_t ord);

/* An empty map. `key` and `value` are type infos; `hash` is a `MpRtScalarClass` below 64, else
   the address of `uint64_t (*)(const void*)`, and `eq` as for arrays. */
MpRtHeader* mp_rt_map_new(const MpRtTypeInfo* key, const MpRtTypeInfo* value, uint64_t hash,
    uint64_t eq);

/* Moves key and value in; a replaced value (and the new, equal key) is released. */
void mp_rt_map_set(MpRtHeader* map, const void* key, const void* value);

/* The address of the value inside the map, or null. The key is borrowed. */
const void* mp_rt_map_get(MpRtHeader* map, const void* key);

/* Moves the value out. The key is borrowed. */
bool mp_rt_map_delete(MpRtHeader* map, const void* key, void* out);

/* Number of entries. */
uint64_t mp_rt_map_len(MpRtHeader* map);

/* A new array in insertion order, handles retained. */
MpRtHeader* mp_rt_map_keys(MpRtHeader* map);

/* A new array in insertion order of the keys, handles retained. */
MpRtHeader* mp_rt_map_values(MpRtHeader* map);

/* A callable with `info` describing the captures (offsets counted from the payload start, the
   code address included in the size). */
MpRtHeader* mp_rt_callable_new(const MpRtTypeInfo* info, const void* code);

/* Writes a text to standard output. */
void mp_rt_print(MpRtHeader* s);

/* Writes a line to standard output. */
void mp_rt_println(MpRtHeader* s);

/* Ends the last line of standard output, unless the program did. */
void mp_rt_end_line(void);

/* Writes a line to standard error, after all that was printed before. */
void mp_rt_eprintln(MpRtHeader* s);

/* Writes a text to standard error, after all that was printed before. */
void mp_rt_eprint(MpRtHeader* s);

/* Writes a number on a line. */
void mp_rt_println_i64(int64_t v);

/* Writes a number on a line. */
void mp_rt_println_u64(uint64_t v);

/* Writes a number on a line, as Rust's `{}` prints. */
void mp_rt_println_f64(double v);

/* Writes `true` or `false` on a line. */
void mp_rt_println_bool(bool v);

/* One line without its end; empty at the end of input. */
MpRtHeader* mp_rt_readln(void);

/* Nanoseconds of a monotonic clock. */
uint64_t mp_rt_now_ns(void);

/* Sleeps; what was printed before appears before. */
void mp_rt_sleep_ms(uint64_t ms);

/* Program arguments, without the program's own name; `info` describes `Str`. */
MpRtHeader* mp_rt_os_args(const MpRtTypeInfo* info);

/* The value of an environment variable as a `Str`. */
bool mp_rt_os_env_var(MpRtHeader* name, MpRtHeader** out);

/* Flushes and ends the process. */
MP_RT_NORETURN void mp_rt_os_exit(int32_t code);

/* The path of the working directory. */
MpRtHeader* mp_rt_os_cwd(void);

/* A whole file as `Array<u8>`; the error is a `Str`. `info` describes `u8`. */
int32_t mp_rt_fs_read_bytes(MpRtHeader* path, const MpRtTypeInfo* info, MpRtHeader** out,
    MpRtHeader** out_err);

/* Writes a whole file: complete, or the old file stays. */
int32_t mp_rt_fs_write_bytes(MpRtHeader* path, MpRtHeader* data, MpRtHeader** out_err);

/* A whole file as a `Str`; not valid UTF-8 is an error. */
int32_t mp_rt_fs_read_text(MpRtHeader* path, MpRtHeader** out, MpRtHeader** out_err);

/* Like `mp_rt_fs_write_bytes`, of a text. */
int32_t mp_rt_fs_write_text(MpRtHeader* path, MpRtHeader* text, MpRtHeader** out_err);

/* FNV-1a of the bytes. */
uint64_t mp_rt_hash_str(MpRtHeader* s);

/* FNV-1a of the eight bytes, lowest first. */
uint64_t mp_rt_hash_i64(int64_t v);

/* A `MpRtMathFn` of `x`, or of `x` and `y`. */
double mp_rt_math_f64(int32_t op, double x, double y);

/* The same, rounded once to `float`. */
float mp_rt_math_f32(int32_t op, float x, float y);

/* Makes the runtime ready; a program that uses devices calls it first. */
void mp_rt_gpu_init(void);

/* A `gpu.TError`; `kind` is a tag of `gpu.ErrorKind`, the texts are C strings and copied. */
MpRtHeader* mp_rt_gpu_error_new(int32_t kind, const char* backend, const char* message,
    int32_t code);

/* The tag of `gpu.ErrorKind`. */
int32_t mp_rt_gpu_error_kind(MpRtHeader* err);

/* What happened, an owned `Str`. */
MpRtHeader* mp_rt_gpu_error_message(MpRtHeader* err);

/* The back-end word, an owned `Str`. */
MpRtHeader* mp_rt_gpu_error_backend(MpRtHeader* err);

/* The driver's own code, or 0. */
int32_t mp_rt_gpu_error_code(MpRtHeader* err);

/* Number of devices; one that several back ends reach counts once. */
uint32_t mp_rt_gpu_device_count_unified(void);

/* The device that programs run on unless they choose. */
int32_t mp_rt_gpu_device_default_unified(MpRtHeader** out, MpRtHeader** out_err);

/* The device of a number below the count. */
int32_t mp_rt_gpu_device_by_index(uint32_t idx, MpRtHeader** out, MpRtHeader** out_err);

/* The name that the driver gives, an owned `Str`. */
MpRtHeader* mp_rt_gpu_device_name(MpRtHeader* dev);

/* An `Array<Str>` of back-end words. In the language this cannot fail: on error the compiler's
   code yields an empty array. */
int32_t mp_rt_gpu_device_backends(MpRtHeader* dev, MpRtHeader** out, MpRtHeader** out_err);

/* Most invocations of a workgroup. */
uint32_t mp_rt_gpu_device_max_workgroup_size(MpRtHeader* dev);

/* Most bytes of shared memory of a workgroup. */
uint32_t mp_rt_gpu_device_max_shared_bytes(MpRtHeader* dev);

/* Most buffer parameters of a kernel. */
uint32_t mp_rt_gpu_device_max_buffers(MpRtHeader* dev);

/* Invocations of a subgroup. */
uint32_t mp_rt_gpu_device_warp_size(MpRtHeader* dev);

/* Device memory in bytes. */
uint64_t mp_rt_gpu_device_memory_total(MpRtHeader* dev);

/* Device memory that is free now, in bytes. */
uint64_t mp_rt_gpu_device_memory_available(MpRtHeader* dev);

/* Waits until all work of the device is done. */
int32_t mp_rt_gpu_device_sync(MpRtHeader* dev, MpRtHeader** out_err);

/* Zero-filled. */
int32_t mp_rt_gpu_buffer_new_hinted(MpRtHeader* dev, uint32_t elem_type_id, uint32_t elem_size,
    uint64_t len, uint32_t usage_flags, uint32_t hint, MpRtHeader** out, MpRtHeader** out_err);

/* A buffer with the elements of an array. */
int32_t mp_rt_gpu_buffer_from_array(MpRtHeader* dev, MpRtHeader* arr, uint32_t elem_type_id,
    uint32_t usage_flags, MpRtHeader** out, MpRtHeader** out_err);

/* `info` describes the element. */
int32_t mp_rt_gpu_buffer_to_array(MpRtHeader* buf, const MpRtTypeInfo* info, MpRtHeader** out,
    MpRtHeader** out_err);

/* Number of elements. */
uint64_t mp_rt_gpu_buffer_len(MpRtHeader* buf);

/* Copies all elements of `src` to the first elements of `dst`. */
int32_t mp_rt_gpu_buffer_copy(MpRtHeader* src, MpRtHeader* dst, MpRtHeader** out_err);

/* Copies all of `src` to elements `offset ..` of the buffer. */
int32_t mp_rt_gpu_buffer_write(MpRtHeader* buf, uint64_t offset, MpRtHeader* src,
    MpRtHeader** out_err);

/* Elements `offset .. offset + len` as a new array; `info` describes the element. */
int32_t mp_rt_gpu_buffer_read(MpRtHeader* buf, uint64_t offset, uint64_t len,
    const MpRtTypeInfo* info, MpRtHeader** out, MpRtHeader** out_err);

/* `args`: 8 bytes a buffer (handles, in order of the buffer parameters), then the scalar block. */
int32_t mp_rt_gpu_launch_sync(MpRtHeader* dev, uint64_t kernel, uint32_t gx, uint32_t gy,
    uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, const void* args, uint64_t args_len,
    MpRtHeader** out_err);

/* Like `mp_rt_gpu_launch_sync`; runs on the CPU device when the device given cannot run the kernel. */
int32_t mp_rt_gpu_launch_sync_fallback(MpRtHeader* dev, uint64_t kernel, uint32_t gx, uint32_t gy,
    uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, const void* args, uint64_t args_len,
    MpRtHeader** out_err);

/* Like `mp_rt_gpu_launch_sync`, without waiting; gives a fence. */
int32_t mp_rt_gpu_launch_async(MpRtHeader* dev, uint64_t kernel, uint32_t gx, uint32_t gy,
    uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, const void* args, uint64_t args_len,
    MpRtHeader** out, MpRtHeader** out_err);

/* Whether the launch was done within the time. */
int32_t mp_rt_gpu_fence_wait(MpRtHeader* fence, uint64_t timeout_ms, bool* out,
    MpRtHeader** out_err);

/* Starts a profiling session on a device. */
int32_t mp_rt_gpu_profile_begin(MpRtHeader* dev, MpRtHeader** out, MpRtHeader** out_err);

/* Consumes the session, also on failure. */
int32_t mp_rt_gpu_profile_end(MpRtHeader* session, MpRtHeader** out, MpRtHeader** out_err);

/* Starts a named region. */
int32_t mp_rt_gpu_profile_mark_begin(MpRtHeader* session, MpRtHeader* name, MpRtHeader** out_err);

/* Ends a named region. */
int32_t mp_rt_gpu_profile_mark_end(MpRtHeader* session, MpRtHeader* name, MpRtHeader** out_err);

/* Writes an `Array<gpu.TProfileEvent>` as a Chrome trace. */
int32_t mp_rt_gpu_profile_export_chrome(MpRtHeader* events, MpRtHeader* path, MpRtHeader** out_err);

/* An `Array<Str>` of the hardware counters that a session can read. */
int32_t mp_rt_gpu_profile_available_counters(MpRtHeader* dev, MpRtHeader** out,
    MpRtHeader** out_err);

/* Chooses the counters, an `Array<Str>`, that the session records. */
int32_t mp_rt_gpu_profile_enable_counters(MpRtHeader* session, MpRtHeader* counters,
    MpRtHeader** out_err);

/* A `Map<Str, f64>` of the chosen counters. */
int32_t mp_rt_gpu_profile_read_counters(MpRtHeader* session, MpRtHeader** out,
    MpRtHeader** out_err);

/* A `gpu.TMemoryStats` of the device. */
int32_t mp_rt_gpu_profile_memory_stats(MpRtHeader* dev, MpRtHeader** out, MpRtHeader** out_err);

/* `gpu.profile.@launch_profiled`: a launch recorded in the session. */
int32_t mp_rt_gpu_profile_launch(MpRtHeader* session, MpRtHeader* dev, uint64_t kernel,
    uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, const void* args,
    uint64_t args_len, MpRtHeader** out_err);

/* A binding with the elements of an array, which it shares; `elem_type_id` is of the result. */
MpRtHeader* mp_rt_gpu_resident_new(MpRtHeader* arr, uint32_t elem_type_id);

/* A further buffer of the binding made before, as `MpRtSelf::GpuResidentNew`: costs are counted
   for the first one. */
MpRtHeader* mp_rt_gpu_resident_part(MpRtHeader* arr, uint32_t elem_type_id);

/* A binding of `len` zeros. */
MpRtHeader* mp_rt_gpu_resident_zeros(uint64_t len, uint32_t elem_type_id, uint32_t elem_size);

/* A binding of one zero that a reduction fills; its upload is not counted. */
MpRtHeader* mp_rt_gpu_resident_cell(uint32_t elem_type_id, uint32_t elem_size);

/* A binding of `len` zeros that an operation needs for itself; its upload is not counted. */
MpRtHeader* mp_rt_gpu_resident_scratch(uint64_t len, uint32_t elem_type_id, uint32_t elem_size);

/* The `gpu.TBuffer` of a binding, uploaded by the first call. */
MpRtHeader* mp_rt_gpu_resident_buffer(MpRtHeader* res, const char* place);

/* Elements `start .. end` as a new array; panics outside. */
MpRtHeader* mp_rt_gpu_resident_read(MpRtHeader* res, int64_t start, int64_t end, const char* place,
    const MpRtTypeInfo* info);

/* Replaces all elements by those of an array of the same length; panics for another length. */
void mp_rt_gpu_resident_assign(MpRtHeader* res, MpRtHeader* arr, const char* place);

/* Notes about the array that the next binding is made of, or assigned: a value that does not
   fit its element. `message` tells of it when a kernel needs the binding; `index` is that of
   an element which is the value itself, else negative. */
void mp_rt_gpu_resident_unfit(MpRtHeader* message, int64_t index, int64_t value);

/* Puts the values that do not fit on a device back into an array of `i64` that was read from
   element `start` of a binding. */
void mp_rt_gpu_resident_restore(MpRtHeader* res, MpRtHeader* arr, uint64_t start);

/* Number of elements. */
uint64_t mp_rt_gpu_resident_len(MpRtHeader* res);

/* The default device. */
MpRtHeader* mp_rt_gpu_device_or_stop(const char* place);

/* Whether a device can be opened. */
bool mp_rt_gpu_is_available(void);

/* Ends the program because a launch was refused: one line with the message of the
   `gpu.TError`, exit code 3. */
MP_RT_NORETURN void mp_rt_gpu_stop(MpRtHeader* err, const char* place);

/* Sets all counters to 0. */
void mp_rt_gpu_telemetry_reset(void);

/* One more launch. */
void mp_rt_gpu_telemetry_launch(void);

/* A counter: 0 uploads, 1 launches, 2 readbacks, 3 fences, 4 releases. */
int64_t mp_rt_gpu_telemetry(int32_t which);

/* Functions that compiled programs do not call. */

/* Registers kernels; everything is copied. */
void mp_rt_gpu_register_kernels(const MpRtGpuKernelEntry* entries, uint32_t count);

/* Releases the strings of a gpu.TError: its drop_fn. */
void mp_rt_gpu_error_drop(MpRtHeader* err);

/* Older names. */
uint32_t mp_rt_gpu_device_count(void);
int32_t mp_rt_gpu_device_default(MpRtHeader** out, MpRtHeader** out_err);
int32_t mp_rt_gpu_buffer_new(MpRtHeader* dev, uint32_t elem_type_id, uint64_t elem_size,
                             uint64_t len, uint32_t usage_flags, MpRtHeader** out,
                             MpRtHeader** out_err);

#ifdef __cplusplus
}
#endif

#endif
