// Atomic operations.
#pragma once

#include "types.hpp"

namespace metal {

enum memory_order { memory_order_relaxed };

template <class T>
struct _atomic {
    T value;
};
using atomic_int = _atomic<int>;
using atomic_uint = _atomic<uint>;

// P is a pointer to an atomic in some address space, T its content. Workgroups run on several
// threads of the host.
template <class P, class T = decltype(P()->value + 0)>
inline T atomic_load_explicit(P place, memory_order) {
    return __atomic_load_n(&place->value, __ATOMIC_RELAXED);
}
template <class P, class T = decltype(P()->value + 0)>
inline T atomic_exchange_explicit(P place, T value, memory_order) {
    return __atomic_exchange_n(&place->value, value, __ATOMIC_RELAXED);
}
// Fails without cause every third time, as the weak form may.
template <class P, class T = decltype(P()->value + 0)>
inline bool atomic_compare_exchange_weak_explicit(P place, T* expected, T desired, memory_order,
                                                  memory_order) {
    static thread_local unsigned calls = 0;
    if (++calls % 3 == 0) {
        *expected = atomic_load_explicit(place, memory_order_relaxed);
        return false;
    }
    return __atomic_compare_exchange_n(&place->value, expected, desired, true, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

#define MAGPIE_ATOMIC(name, builtin)                                              \
    template <class P, class T = decltype(P()->value + 0)>                        \
    inline T atomic_fetch_##name##_explicit(P place, T value, memory_order) {     \
        return builtin(&place->value, value, __ATOMIC_RELAXED);                   \
    }
MAGPIE_ATOMIC(add, __atomic_fetch_add)
MAGPIE_ATOMIC(sub, __atomic_fetch_sub)
MAGPIE_ATOMIC(min, __atomic_fetch_min)
MAGPIE_ATOMIC(max, __atomic_fetch_max)
MAGPIE_ATOMIC(and, __atomic_fetch_and)
MAGPIE_ATOMIC(or, __atomic_fetch_or)
MAGPIE_ATOMIC(xor, __atomic_fetch_xor)
#undef MAGPIE_ATOMIC

}  // namespace metal
