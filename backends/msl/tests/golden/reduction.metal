#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

#ifndef MAY_ALIAS
#define MAY_ALIAS
#endif

kernel void reduce(
    MAY_ALIAS const device float* x [[buffer(0)]],
    MAY_ALIAS device float* sums [[buffer(1)]],
    constant ulong* lengths [[buffer(2)]],
    uint3 tid [[thread_position_in_threadgroup]],
    uint3 gid [[thread_position_in_grid]],
    uint3 wgid [[threadgroup_position_in_grid]])
{
    uint v1;
    ulong v2 = lengths[1];
    threadgroup float shared[64];
    uint v3 = tid.x;
    uint v4 = gid.x;
    bool v5 = ulong(v4) < lengths[0];
    float v6 = x[v5 ? v4 : 0u];
    shared[v3] = v5 ? v6 : as_type<float>(0x00000000u);
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    v1 = 32u;
    for (;;) {
        if (!(v1 > 0u)) {
            break;
        }
        if (v3 < v1) {
            float v7 = shared[v3];
            float v8 = shared[v3 + v1];
            shared[v3] = v7 + v8;
        }
        threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
        uint v9 = v1 >> 1u;
        v1 = v9;
    }
    if (v3 == 0u) {
        float v10 = shared[0u];
        uint v11 = wgid.x;
        if (ulong(v11) < v2) {
            sums[v11] = v10;
        }
    }
}
