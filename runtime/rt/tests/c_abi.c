/* A program in C that makes, uses and frees objects through the published header. It compiles as C++ too. */
#include "magpie_rt.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
#define SAME(a, b) static_assert((a) == (b), #a)
#else
#define SAME(a, b) _Static_assert((a) == (b), #a)
#endif

SAME(sizeof(MpRtHeader), 32);
SAME(offsetof(MpRtHeader, type_id), 16);
SAME(offsetof(MpRtHeader, info), 24);
SAME(sizeof(MpRtTypeInfo), 56);
SAME(sizeof(MpRtStr), 40);
SAME(offsetof(MpRtArray, len), 32);
SAME(offsetof(MpRtArray, data), 48);
SAME(offsetof(MpRtCallable, code), 32);
SAME(offsetof(MpRtGpuError, kind), 32);
SAME(offsetof(MpRtGpuError, backend), 40);
SAME(offsetof(MpRtGpuError, message), 48);
SAME(offsetof(MpRtGpuError, code), 56);

/* The signatures of the GPU specification, appendix B. */
static MpRtHeader* (*const error_new)(int32_t, const char*, const char*, int32_t) = mp_rt_gpu_error_new;
static int32_t (*const error_kind)(MpRtHeader*) = mp_rt_gpu_error_kind;
static MpRtHeader* (*const error_message)(MpRtHeader*) = mp_rt_gpu_error_message;
static MpRtHeader* (*const error_backend)(MpRtHeader*) = mp_rt_gpu_error_backend;
static int32_t (*const error_code)(MpRtHeader*) = mp_rt_gpu_error_code;
static uint32_t (*const device_count)(void) = mp_rt_gpu_device_count_unified;
static int32_t (*const device_default)(MpRtHeader**, MpRtHeader**) = mp_rt_gpu_device_default_unified;
static int32_t (*const device_backends)(MpRtHeader*, MpRtHeader**, MpRtHeader**) = mp_rt_gpu_device_backends;
static uint32_t (*const device_limits[])(MpRtHeader*) = {
    mp_rt_gpu_device_max_workgroup_size, mp_rt_gpu_device_max_shared_bytes,
    mp_rt_gpu_device_max_buffers, mp_rt_gpu_device_warp_size};
static uint64_t (*const device_memory[])(MpRtHeader*) = {
    mp_rt_gpu_device_memory_total, mp_rt_gpu_device_memory_available};
static int32_t (*const buffer_new)(MpRtHeader*, uint32_t, uint32_t, uint64_t, uint32_t, uint32_t,
                                   MpRtHeader**, MpRtHeader**) = mp_rt_gpu_buffer_new_hinted;
static int32_t (*const profile_makers[])(MpRtHeader*, MpRtHeader**, MpRtHeader**) = {
    mp_rt_gpu_profile_begin, mp_rt_gpu_profile_end, mp_rt_gpu_profile_read_counters,
    mp_rt_gpu_profile_memory_stats};
static int32_t (*const profile_actions[])(MpRtHeader*, MpRtHeader*, MpRtHeader**) = {
    mp_rt_gpu_profile_mark_begin, mp_rt_gpu_profile_mark_end, mp_rt_gpu_profile_export_chrome,
    mp_rt_gpu_profile_enable_counters};

/* heap struct TNode { field value: i64  field next: TOption<TNode> } */
typedef struct Node {
    MpRtHeader header;
    int64_t value;
    int32_t tag;
    MpRtHeader* next;
} Node;

static const uint32_t node_handles[] = {16};
static const MpRtTypeInfo node_info = {1000, 0, 24, 8, 1, 0, node_handles, NULL, NULL, "TNode"};
static const MpRtTypeInfo i64_info = {5, 0, 8, 8, 0, 0, NULL, NULL, NULL, "i64"};

static int32_t descending(const void* a, const void* b) {
    const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static MpRtHeader* text(int64_t n) {
    MpRtHeader* b = mp_rt_sb_new();
    mp_rt_sb_append_i64(b, n);
    return mp_rt_sb_build(b);
}

static void use_strings(void) {
    MpRtHeader* s = mp_rt_str_concat(text(-12), text(34));
    int64_t number = 0;
    MpRtHeader* err = NULL;
    assert(mp_rt_str_len(s) == 5 && memcmp(mp_rt_str_data(s), "-1234", 5) == 0);
    assert(mp_rt_str_parse_i64(s, &number, &err) == 0 && number == -1234 && err == NULL);
    mp_rt_println(s);
    mp_rt_release(s);
}

static void use_arrays(void) {
    MpRtHeader* arr = mp_rt_arr_new(&i64_info, 0);
    const int64_t five = 5;
    int64_t i, last = 0;
    for (i = 0; i < 10; i++) {
        mp_rt_arr_push(arr, &i);
    }
    mp_rt_arr_sort(arr, (uint64_t)(uintptr_t)descending);
    assert(((MpRtArray*)arr)->len == 10 && *(int64_t*)((MpRtArray*)arr)->data == 9);
    assert(mp_rt_arr_contains(arr, &five, MP_RT_CLASS_I64));
    assert(mp_rt_arr_pop(arr, &last) && last == 0);
    mp_rt_release(arr);
}

static void use_maps(void) {
    MpRtHeader* map = mp_rt_map_new(&i64_info, &i64_info, MP_RT_CLASS_I64, MP_RT_CLASS_I64);
    int64_t key, value = 0;
    for (key = 0; key < 100; key++) {
        value = key * key;
        mp_rt_map_set(map, &key, &value);
    }
    key = 7;
    assert(*(const int64_t*)mp_rt_map_get(map, &key) == 49);
    assert(mp_rt_map_delete(map, &key, &value) && value == 49);
    assert(mp_rt_map_get(map, &key) == NULL && mp_rt_map_len(map) == 99);
    mp_rt_release(map);
}

static void use_structs(void) {
    MpRtHeader* list = NULL;
    MpRtHeader* weak;
    int64_t i;
    for (i = 0; i < 1000000; i++) {
        MpRtHeader* node = mp_rt_alloc(&node_info);
        ((Node*)node)->value = i;
        ((Node*)node)->tag = list != NULL;
        ((Node*)node)->next = list;
        list = node;
    }
    mp_rt_retain(list);
    weak = mp_rt_weak_downgrade(list);
    mp_rt_release(list);
    assert(mp_rt_weak_upgrade(weak) == NULL);
    mp_rt_weak_release(weak);
}

static void use_errors(void) {
    MpRtHeader* err = error_new(MP_RT_GPU_ERROR_BUFFER_ERROR, "spv", "no room", -2);
    MpRtHeader* message = error_message(err);
    MpRtHeader* backend = error_backend(err);
    assert(err->type_id == 33 && error_kind(err) == 5 && error_code(err) == -2);
    assert(memcmp(mp_rt_str_data(message), "no room", mp_rt_str_len(message)) == 0);
    assert(memcmp(mp_rt_str_data(backend), "spv", mp_rt_str_len(backend)) == 0);
    mp_rt_release(message);
    mp_rt_release(backend);
    mp_rt_release(err);
}

int main(void) {
    assert(device_count != NULL && device_default != NULL && device_backends != NULL);
    assert(device_limits[3] != NULL && device_memory[1] != NULL && buffer_new != NULL);
    assert(profile_makers[3] != NULL && profile_actions[3] != NULL);
    use_strings();
    use_arrays();
    use_maps();
    use_structs();
    use_errors();
    mp_rt_println_f64(0.5);
    /* Returning flushes what was printed. */
    return 0;
}
