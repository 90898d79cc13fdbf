// Operations of a SIMD group. As with Apple's, values are of at most 32 bits a lane.
#pragma once

#include "launch.hpp"
#include "math.hpp"

namespace metal {

template <class T>
concept exchangeable = sizeof(T) <= 4 && !is_vector<T>;

// The values of those who are at the same line.
template <class T>
inline const magpie::Meeting& meet(T value, int line) {
    magpie::Fiber* self = magpie::workgroup->current;
    self->value = 0;
    __builtin_memcpy(&self->value, &value, sizeof value);
    magpie::wait(magpie::Waits::in_simd_group, line);
    return self->meeting;
}
template <class T>
inline T value_of(const magpie::Meeting& meeting, uint lane) {
    T out;
    __builtin_memcpy(&out, &meeting.values[lane], sizeof out);
    return out;
}
inline bool is_in(const magpie::Meeting& meeting, uint lane) {
    return lane < 64 && meeting.mask >> lane & 1;
}
inline uint own_lane() {
    return magpie::workgroup->current->index % magpie::simd_width;
}

// Of a lane that takes no part, anything may come: here all bits are set.
template <exchangeable T>
inline T simd_shuffle(T value, ushort lane, int line = __builtin_LINE()) {
    const magpie::Meeting& meeting = meet(value, line);
    if (is_in(meeting, lane)) return value_of<T>(meeting, lane);
    T nothing;
    __builtin_memset(&nothing, 0xff, sizeof nothing);
    return nothing;
}
template <exchangeable T>
inline T simd_broadcast(T value, ushort lane, int line = __builtin_LINE()) {
    return simd_shuffle(value, lane, line);
}
template <exchangeable T>
inline T simd_shuffle_down(T value, ushort delta, int line = __builtin_LINE()) {
    return simd_shuffle(value, ushort(own_lane() + delta), line);
}
template <exchangeable T>
inline T simd_shuffle_up(T value, ushort delta, int line = __builtin_LINE()) {
    return simd_shuffle(value, ushort(own_lane() - delta), line);
}
template <exchangeable T>
inline T simd_shuffle_xor(T value, ushort mask, int line = __builtin_LINE()) {
    return simd_shuffle(value, ushort(own_lane() ^ mask), line);
}
template <is_vector V>
inline V simd_shuffle(V value, ushort lane, int line = __builtin_LINE()) {
    V out;
    for (int n = 0; n < element_of<V>::lanes; n++) {
        out[n] = simd_shuffle(element<V>(value[n]), lane, line);
    }
    return out;
}
template <is_vector V>
inline V simd_shuffle_down(V value, ushort delta, int line = __builtin_LINE()) {
    return simd_shuffle(value, ushort(own_lane() + delta), line);
}
template <is_vector V>
inline V simd_shuffle_up(V value, ushort delta, int line = __builtin_LINE()) {
    return simd_shuffle(value, ushort(own_lane() - delta), line);
}
template <is_vector V>
inline V simd_shuffle_xor(V value, ushort mask, int line = __builtin_LINE()) {
    return simd_shuffle(value, ushort(own_lane() ^ mask), line);
}

template <class T, class F>
inline T fold(const magpie::Meeting& meeting, uint lanes, F join, bool& found) {
    T out = T(0);
    found = false;
    for (uint lane = 0; lane < lanes; lane++) {
        if (!is_in(meeting, lane)) continue;
        T value = value_of<T>(meeting, lane);
        out = found ? T(join(out, value)) : value;
        found = true;
    }
    return out;
}
template <class T>
inline T sum(T a, T b) {
    if constexpr (__is_integral(T)) {
        return T(uint(a) + uint(b));
    } else {
        return a + b;
    }
}
template <exchangeable T>
inline T simd_sum(T value, int line = __builtin_LINE()) {
    bool found;
    return fold<T>(meet(value, line), 64, [](T a, T b) { return sum(a, b); }, found);
}
template <exchangeable T>
inline T simd_min(T value, int line = __builtin_LINE()) {
    bool found;
    return fold<T>(meet(value, line), 64, [](T a, T b) { return b < a ? b : a; }, found);
}
template <exchangeable T>
inline T simd_max(T value, int line = __builtin_LINE()) {
    bool found;
    return fold<T>(meet(value, line), 64, [](T a, T b) { return a < b ? b : a; }, found);
}
template <exchangeable T>
inline T simd_prefix_exclusive_sum(T value, int line = __builtin_LINE()) {
    bool found;
    return fold<T>(meet(value, line), own_lane(), [](T a, T b) { return sum(a, b); }, found);
}

inline bool simd_any(bool value, int line = __builtin_LINE()) {
    const magpie::Meeting& meeting = meet(value, line);
    for (uint lane = 0; lane < 64; lane++) {
        if (is_in(meeting, lane) && value_of<bool>(meeting, lane)) return true;
    }
    return false;
}
inline bool simd_all(bool value, int line = __builtin_LINE()) { return !simd_any(!value, line); }

struct simd_vote {
    using vote_t = ulong;
    vote_t bits;
    explicit operator vote_t() const { return bits; }
};
inline simd_vote simd_ballot(bool value, int line = __builtin_LINE()) {
    const magpie::Meeting& meeting = meet(value, line);
    simd_vote out = {0};
    for (uint lane = 0; lane < 64; lane++) {
        if (is_in(meeting, lane) && value_of<bool>(meeting, lane)) out.bits |= ulong(1) << lane;
    }
    return out;
}
inline simd_vote simd_active_threads_mask(int line = __builtin_LINE()) {
    return simd_ballot(true, line);
}

}  // namespace metal
