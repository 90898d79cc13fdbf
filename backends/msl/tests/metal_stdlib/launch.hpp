// Launches: one workgroup after the other, an invocation a fiber. A fiber runs until it waits for
// the others, at a barrier or at an operation of its SIMD group.
#pragma once

#include <ucontext.h>

#include <memory>
#include <vector>

#include "types.hpp"

namespace magpie {

using metal::uint;
using metal::ulong;

// Invocations of a SIMD group.
constexpr uint simd_width = 32;

// A buffer argument, and a launch, as the runtime's CPU device passes them.
struct HostBuffer {
    void* data;
    uint64_t len;
};
struct Launch {
    const HostBuffer* buffers;
    const uint8_t* scalars;
    uint grid[3];
    uint block[3];
};

// Why a launch is wrong; 0 when it is not. The host knows the numbers.
enum Fault : int {
    no_fault = 0,
    divergent_barrier = 1,
    undefined_arithmetic = 2,
};
inline int faults[3];

inline void report(Fault what) { __atomic_store_n(&faults[what], 1, __ATOMIC_RELAXED); }

// What the invocations of a SIMD group that meet know of each other.
struct Meeting {
    ulong values[64];
    ulong mask;
};

enum class Waits { nowhere, at_barrier, in_simd_group };

// An invocation.
struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool is_done;
    Waits waits;
    // The line of the source where it waits.
    int line;
    ulong value;
    Meeting meeting;
    uint index;
};

// Ids and sizes as the attributes of kernel parameters give them.
struct Ids {
    metal::uint3 thread_position_in_grid, thread_position_in_threadgroup;
    metal::uint3 threadgroup_position_in_grid, threads_per_threadgroup, threadgroups_per_grid;
    uint thread_index_in_simdgroup, threads_per_simdgroup;
};

// Runs one invocation.
using Body = void (*)(const Launch&, const Ids&);

constexpr size_t stack_bytes = 256 << 10;

struct Workgroup {
    const Launch& launch;
    Body body;
    uint id[3];
    ucontext_t scheduler;
    std::vector<Fiber> fibers;
    Fiber* current;

    // Position of an invocation, by its number in the workgroup.
    Ids ids(uint index) const {
        const uint* block = launch.block;
        uint position[3] = {index % block[0], index / block[0] % block[1], index / block[0] / block[1]};
        Ids out;
        for (int d = 0; d < 3; d++) {
            out.thread_position_in_threadgroup[d] = position[d];
            out.threadgroup_position_in_grid[d] = id[d];
            out.threads_per_threadgroup[d] = block[d];
            out.threadgroups_per_grid[d] = launch.grid[d];
            out.thread_position_in_grid[d] = id[d] * block[d] + position[d];
        }
        out.thread_index_in_simdgroup = index % simd_width;
        out.threads_per_simdgroup = simd_width;
        return out;
    }
};
inline thread_local Workgroup* workgroup;

// Gives up control until the scheduler goes on with this fiber.
__attribute__((noinline)) inline void wait(Waits where, int line) {
    Fiber* self = workgroup->current;
    self->waits = where;
    self->line = line;
    swapcontext(&self->context, &workgroup->scheduler);
}

inline void fiber_main() {
    Fiber* self = workgroup->current;
    workgroup->body(workgroup->launch, workgroup->ids(self->index));
    self->is_done = true;
    swapcontext(&self->context, &workgroup->scheduler);
}

// Lets those meet that wait at the first line of each SIMD group; false when none waits.
inline bool meet_in_simd_groups(Workgroup& group) {
    const uint width = simd_width;
    bool met = false;
    for (size_t first = 0; first < group.fibers.size(); first += width) {
        size_t end = first + width < group.fibers.size() ? first + width : group.fibers.size();
        int line = INT32_MAX;
        for (size_t n = first; n < end; n++) {
            const Fiber& fiber = group.fibers[n];
            if (!fiber.is_done && fiber.waits == Waits::in_simd_group && fiber.line < line) line = fiber.line;
        }
        if (line == INT32_MAX) continue;
        met = true;
        Meeting meeting = {};
        auto takes_part = [&](const Fiber& f) {
            return !f.is_done && f.waits == Waits::in_simd_group && f.line == line;
        };
        for (size_t n = first; n < end; n++) {
            if (!takes_part(group.fibers[n])) continue;
            meeting.values[n - first] = group.fibers[n].value;
            meeting.mask |= ulong(1) << (n - first);
        }
        for (size_t n = first; n < end; n++) {
            if (!takes_part(group.fibers[n])) continue;
            group.fibers[n].meeting = meeting;
            group.fibers[n].waits = Waits::nowhere;
        }
    }
    return met;
}

// Runs one workgroup with fibers.
inline void run_fibers(Workgroup& group) {
    for (Fiber& fiber : group.fibers) {
        fiber.is_done = false;
        fiber.waits = Waits::nowhere;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = stack_bytes;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, fiber_main, 0);
    }
    for (;;) {
        bool all_done = true, all_at_barrier = true;
        int line = -1;
        for (Fiber& fiber : group.fibers) {
            if (!fiber.is_done && fiber.waits == Waits::nowhere) {
                group.current = &fiber;
                swapcontext(&group.scheduler, &fiber.context);
            }
            all_done &= fiber.is_done;
            if (line < 0) line = fiber.line;
            all_at_barrier &= !fiber.is_done && fiber.waits == Waits::at_barrier && fiber.line == line;
        }
        if (all_done) return;
        if (all_at_barrier) {
            for (Fiber& fiber : group.fibers) fiber.waits = Waits::nowhere;
        } else if (!meet_in_simd_groups(group)) {
            return report(divergent_barrier);
        }
    }
}

// Runs the workgroups with linear numbers first .. last of a launch. `waits` says whether
// invocations wait for each other anywhere; without, they need no fibers.
inline void run(const Launch& launch, uint64_t first, uint64_t last, bool waits, Body body) {
    Workgroup group = {launch, body, {}, {}, {}, nullptr};
    workgroup = &group;
    const uint invocations = launch.block[0] * launch.block[1] * launch.block[2];
    if (waits) {
        group.fibers.resize(invocations);
        for (uint n = 0; n < invocations; n++) {
            group.fibers[n].stack.reset(new char[stack_bytes]);
            group.fibers[n].index = n;
        }
    }
    for (uint64_t n = first; n < last; n++) {
        group.id[0] = uint(n % launch.grid[0]);
        group.id[1] = uint(n / launch.grid[0] % launch.grid[1]);
        group.id[2] = uint(n / launch.grid[0] / launch.grid[1]);
        if (waits) {
            run_fibers(group);
        } else {
            for (uint index = 0; index < invocations; index++) body(launch, group.ids(index));
        }
    }
}

}  // namespace magpie

namespace metal {

enum class mem_flags : uint {
    mem_none = 0,
    mem_device = 1,
    mem_threadgroup = 2,
};
inline mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }

inline void threadgroup_barrier(mem_flags, int line = __builtin_LINE()) {
    magpie::wait(magpie::Waits::at_barrier, line);
}

}  // namespace metal
