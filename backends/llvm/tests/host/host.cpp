// What kernels in LLVM IR find on a GPU, on the CPU: ids, barriers, operations of a subgroup. The IR
// calls `host.nvvm.…` and `host.amdgcn.…` where it would call intrinsics.
#include <cmath>

#include "launch.hpp"

using magpie::Launch;
using magpie::simd_width;
using magpie::workgroup;
using metal::uint;
using metal::ulong;

#define NAMED(result, function, name, ...) \
    extern "C" result function(__VA_ARGS__) __asm__(name); \
    result function(__VA_ARGS__)

static thread_local void (*invoke)(const Launch*);

extern "C" void host_run(const Launch* launch, uint64_t first, uint64_t last, void (*body)(const Launch*)) {
    invoke = body;
    magpie::run(*launch, first, last, true, [](const Launch& l, const magpie::Ids&) { invoke(&l); });
}

static uint index_in_workgroup() { return workgroup->current->index; }
static uint lane() { return index_in_workgroup() % simd_width; }
static magpie::Ids ids() { return workgroup->ids(index_in_workgroup()); }

// ----- ids -----

#define DIMENSION(axis, d) \
    NAMED(uint, tid_##axis, "host.nvvm.read.ptx.sreg.tid." #axis) { return ids().thread_position_in_threadgroup[d]; } \
    NAMED(uint, ctaid_##axis, "host.nvvm.read.ptx.sreg.ctaid." #axis) { return ids().threadgroup_position_in_grid[d]; } \
    NAMED(uint, ntid_##axis, "host.nvvm.read.ptx.sreg.ntid." #axis) { return ids().threads_per_threadgroup[d]; } \
    NAMED(uint, nctaid_##axis, "host.nvvm.read.ptx.sreg.nctaid." #axis) { return ids().threadgroups_per_grid[d]; } \
    NAMED(uint, workitem_##axis, "host.amdgcn.workitem.id." #axis) { return ids().thread_position_in_threadgroup[d]; } \
    NAMED(uint, group_##axis, "host.amdgcn.workgroup.id." #axis) { return ids().threadgroup_position_in_grid[d]; }
DIMENSION(x, 0)
DIMENSION(y, 1)
DIMENSION(z, 2)

// The implicit arguments of code object version 5, as far as kernels read them.
struct Implicit {
    uint32_t counts[3];
    uint16_t sizes[3];
};
NAMED(const void*, implicit_arguments, "host.amdgcn.implicitarg.ptr") {
    static thread_local Implicit arguments;
    for (int d = 0; d < 3; d++) {
        arguments.counts[d] = workgroup->launch.grid[d];
        arguments.sizes[d] = uint16_t(workgroup->launch.block[d]);
    }
    return &arguments;
}

// ----- memory -----

static void barrier() { magpie::wait(magpie::Waits::at_barrier, 0); }
NAMED(void, nvvm_barrier, "host.nvvm.barrier0") { barrier(); }
NAMED(void, amdgcn_barrier, "host.amdgcn.s.barrier") { barrier(); }

// ----- subgroups -----

// The values of those who are at the same call.
static const magpie::Meeting& meet(uint value, void* call) {
    magpie::Fiber* self = workgroup->current;
    self->value = value;
    magpie::wait(magpie::Waits::in_simd_group, int(reinterpret_cast<uintptr_t>(call) & INT32_MAX));
    return self->meeting;
}
#define MEET(value) meet(value, __builtin_return_address(0))

static uint of_lane(const magpie::Meeting& meeting, uint from) {
    from %= simd_width;
    return meeting.mask >> from & 1 ? uint(meeting.values[from]) : 0xdeadbeef;
}
static ulong set(const magpie::Meeting& meeting) {
    ulong lanes = 0;
    for (uint n = 0; n < simd_width; n++) lanes |= (meeting.mask >> n & meeting.values[n] & 1) << n;
    return lanes;
}

NAMED(uint, lane_id, "host.nvvm.read.ptx.sreg.laneid") { return lane(); }
NAMED(uint, activemask, "host.activemask") { return uint(MEET(1).mask); }
NAMED(uint, shfl_idx, "host.nvvm.shfl.sync.idx.i32", uint, uint v, uint from, uint) { return of_lane(MEET(v), from); }
NAMED(uint, shfl_bfly, "host.nvvm.shfl.sync.bfly.i32", uint, uint v, uint bits, uint) { return of_lane(MEET(v), lane() ^ bits); }
NAMED(uint, shfl_up, "host.nvvm.shfl.sync.up.i32", uint, uint v, uint n, uint) {
    const magpie::Meeting& meeting = MEET(v);
    return n > lane() ? v : of_lane(meeting, lane() - n);
}
NAMED(uint, shfl_down, "host.nvvm.shfl.sync.down.i32", uint, uint v, uint n, uint) {
    const magpie::Meeting& meeting = MEET(v);
    return n >= simd_width - lane() ? v : of_lane(meeting, lane() + n);
}
NAMED(uint, vote_ballot, "host.nvvm.vote.ballot.sync", uint, unsigned char v) { return uint(set(MEET(v & 1))); }
NAMED(bool, vote_any, "host.nvvm.vote.any.sync", uint, unsigned char v) { return set(MEET(v & 1)) != 0; }
NAMED(bool, vote_all, "host.nvvm.vote.all.sync", uint, unsigned char v) {
    const magpie::Meeting& meeting = MEET(v & 1);
    return set(meeting) == meeting.mask;
}

template <class T, class F>
static uint reduce(const magpie::Meeting& meeting, F join) {
    bool found = false;
    T out = 0;
    for (uint n = 0; n < simd_width; n++) {
        if (!(meeting.mask >> n & 1)) continue;
        out = found ? join(out, T(meeting.values[n])) : T(meeting.values[n]);
        found = true;
    }
    return uint(out);
}
#define REDUX(function, name, T, expression) \
    NAMED(uint, function, "host.nvvm.redux.sync." name, uint v, uint) { \
        return reduce<T>(MEET(v), [](T a, T b) { return T(expression); }); \
    }
REDUX(redux_add, "add", uint, a + b)
REDUX(redux_min, "min", int32_t, a < b ? a : b)
REDUX(redux_max, "max", int32_t, a > b ? a : b)
REDUX(redux_umin, "umin", uint, a < b ? a : b)
REDUX(redux_umax, "umax", uint, a > b ? a : b)

NAMED(uint, ballot_32, "host.amdgcn.ballot.i32", unsigned char v) { return uint(set(MEET(v & 1))); }
NAMED(ulong, ballot_64, "host.amdgcn.ballot.i64", unsigned char v) { return set(MEET(v & 1)); }
NAMED(uint, bpermute, "host.amdgcn.ds.bpermute", uint address, uint v) { return of_lane(MEET(v), address / 4); }
NAMED(uint, mbcnt_low, "host.amdgcn.mbcnt.lo", uint mask, uint base) {
    uint below = lane() < 32 ? (1u << lane()) - 1 : ~0u;
    return base + uint(__builtin_popcount(mask & below));
}
NAMED(uint, mbcnt_high, "host.amdgcn.mbcnt.hi", uint mask, uint base) {
    uint below = lane() < 32 ? 0 : (1u << (lane() - 32)) - 1;
    return base + uint(__builtin_popcount(mask & below));
}

// ----- approximations -----

NAMED(float, approximate_div, "host.nvvm.div.approx.f", float a, float b) { return a / b; }
NAMED(float, approximate_sqrt, "host.nvvm.sqrt.approx.f", float a) { return std::sqrt(a); }
NAMED(float, approximate_ex2, "host.nvvm.ex2.approx.f", float a) { return std::exp2(a); }
NAMED(float, approximate_lg2, "host.nvvm.lg2.approx.f", float a) { return std::log2(a); }
NAMED(float, approximate_sin, "host.nvvm.sin.approx.f", float a) { return std::sin(a); }
NAMED(float, approximate_cos, "host.nvvm.cos.approx.f", float a) { return std::cos(a); }

// Exact where the product of f32 is; the CPU would round twice.
NAMED(_Float16, half_fma, "host.fma.f16", _Float16 a, _Float16 b, _Float16 c) {
    double x = double(a) * double(b), y = double(c);
    double sum = x + y, part = sum - x;
    double error = (x - (sum - part)) + (y - part);
    if (error != 0 && std::isfinite(error)) {
        long bits;
        __builtin_memcpy(&bits, &sum, 8);
        if (!(bits & 1)) bits += (error > 0) == (sum > 0) ? 1 : -1;
        __builtin_memcpy(&sum, &bits, 8);
    }
    return _Float16(sum);
}
