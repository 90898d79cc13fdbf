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
