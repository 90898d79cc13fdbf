// Functions on numbers: as section "Math Functions" of the Metal Shading Language Specification
// names them. Vectors take them lane by lane. No header of the C library is included: its functions
// would be found beside these.
#pragma once

#include "types.hpp"

namespace metal {

template <class V>
concept is_vector = requires { element_of<V>::lanes; };

// Applies a function to each lane.
template <class V, class F, class... Rest>
inline V each(F f, V first, Rest... rest) {
    V out;
    for (int n = 0; n < element_of<V>::lanes; n++) out[n] = f(first[n], rest[n]...);
    return out;
}

// ----- integers -----

template <class T>
    requires(!is_vector<T>)
inline T min(T a, T b) {
    return b < a ? b : a;
}
template <class T>
    requires(!is_vector<T>)
inline T max(T a, T b) {
    return a < b ? b : a;
}
template <is_vector V>
inline V min(V a, V b) {
    return each([](auto x, auto y) { return min(x, y); }, a, b);
}
template <is_vector V>
inline V max(V a, V b) {
    return each([](auto x, auto y) { return max(x, y); }, a, b);
}

inline int mulhi(int a, int b) { return int(long(a) * long(b) >> 32); }
inline uint mulhi(uint a, uint b) { return uint(ulong(a) * ulong(b) >> 32); }
inline long mulhi(long a, long b) { return long(__int128(a) * __int128(b) >> 64); }
inline ulong mulhi(ulong a, ulong b) {
    return ulong((unsigned __int128)a * (unsigned __int128)b >> 64);
}

inline uint popcount(uint x) { return uint(__builtin_popcount(x)); }
inline uint clz(uint x) { return x == 0 ? 32u : uint(__builtin_clz(x)); }
inline uint ctz(uint x) { return x == 0 ? 32u : uint(__builtin_ctz(x)); }
inline int popcount(int x) { return int(popcount(uint(x))); }
inline int clz(int x) { return int(clz(uint(x))); }
inline int ctz(int x) { return int(ctz(uint(x))); }

// ----- floats -----

// A function of one float; half is rounded once more, which changes nothing for exact results.
#define MAGPIE_FUNCTION(name, from_libm)                                            \
    inline float name(float x) { return from_libm(x); }                             \
    inline half name(half x) { return half(from_libm(float(x))); }                  \
    template <is_vector V>                                                          \
    inline V name(V v) {                                                            \
        return each([](auto x) { return name(x); }, v);                             \
    }
#define MAGPIE_FUNCTIONS        \
    MAGPIE_FUNCTION(exp, __builtin_expf) \
    MAGPIE_FUNCTION(exp2, __builtin_exp2f) \
    MAGPIE_FUNCTION(log, __builtin_logf) \
    MAGPIE_FUNCTION(log2, __builtin_log2f) \
    MAGPIE_FUNCTION(sin, __builtin_sinf) \
    MAGPIE_FUNCTION(cos, __builtin_cosf) \
    MAGPIE_FUNCTION(tan, __builtin_tanf) \
    MAGPIE_FUNCTION(asin, __builtin_asinf) \
    MAGPIE_FUNCTION(acos, __builtin_acosf) \
    MAGPIE_FUNCTION(atan, __builtin_atanf) \
    MAGPIE_FUNCTION(sinh, __builtin_sinhf) \
    MAGPIE_FUNCTION(cosh, __builtin_coshf) \
    MAGPIE_FUNCTION(tanh, __builtin_tanhf) \
    MAGPIE_FUNCTION(sqrt, __builtin_sqrtf) \
    MAGPIE_FUNCTION(fabs, __builtin_fabsf) \
    MAGPIE_FUNCTION(floor, __builtin_floorf) \
    MAGPIE_FUNCTION(ceil, __builtin_ceilf) \
    MAGPIE_FUNCTION(trunc, __builtin_truncf) \
    MAGPIE_FUNCTION(rint, __builtin_rintf)
#define MAGPIE_FUNCTION2(name, from_libm)                                               \
    inline float name(float x, float y) { return from_libm(x, y); }                     \
    inline half name(half x, half y) { return half(from_libm(float(x), float(y))); }    \
    template <is_vector V>                                                              \
    inline V name(V v, V w) {                                                           \
        return each([](auto x, auto y) { return name(x, y); }, v, w);                   \
    }
// Not those of the C library: the order of zeros is not promised.
inline float smaller(float x, float y) { return x != x || y < x ? y : x; }
inline float larger(float x, float y) { return x != x || x < y ? y : x; }
inline float quotient(float x, float y) { return x / y; }
#define MAGPIE_FUNCTIONS2           \
    MAGPIE_FUNCTION2(atan2, __builtin_atan2f) \
    MAGPIE_FUNCTION2(pow, __builtin_powf) \
    MAGPIE_FUNCTION2(fmin, smaller)    \
    MAGPIE_FUNCTION2(fmax, larger)     \
    MAGPIE_FUNCTION2(divide, quotient)

MAGPIE_FUNCTIONS
MAGPIE_FUNCTIONS2
// These are for float.
namespace precise {
using namespace metal;
}  // namespace precise
namespace fast {
using namespace metal;
}  // namespace fast

inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
// The sum is exact in a double wherever it lies near the middle of two halves.
inline half fma(half a, half b, half c) {
    return half(__builtin_fma(double(a), double(b), double(c)));
}
template <is_vector V>
inline V fma(V a, V b, V c) {
    return each([](auto x, auto y, auto z) { return fma(x, y, z); }, a, b, c);
}

template <class F>
inline bool isordered(F x, F y) {
    return x == x && y == y;
}
template <class F>
inline bool isunordered(F x, F y) {
    return x != x || y != y;
}
template <is_vector V>
inline auto isordered(V x, V y) {
    return (x == x) & (y == y);
}
template <is_vector V>
inline auto isunordered(V x, V y) {
    return (x != x) | (y != y);
}

// ----- vectors -----

template <class T>
    requires(!is_vector<T>)
inline T select(T if_false, T if_true, bool condition) {
    return condition ? if_true : if_false;
}
// Comparisons of clang's vectors give vectors of integers.
template <is_vector V, is_vector C>
inline V select(V if_false, V if_true, C condition) {
    V out;
    for (int n = 0; n < element_of<V>::lanes; n++) out[n] = condition[n] ? if_true[n] : if_false[n];
    return out;
}
template <is_vector C>
inline bool any(C v) {
    bool out = false;
    for (int n = 0; n < element_of<C>::lanes; n++) out |= bool(v[n]);
    return out;
}
template <is_vector C>
inline bool all(C v) {
    bool out = true;
    for (int n = 0; n < element_of<C>::lanes; n++) out &= bool(v[n]);
    return out;
}
template <is_vector V>
inline element<V> dot(V a, V b) {
    element<V> sum = a[0] * b[0];
    for (int n = 1; n < element_of<V>::lanes; n++) sum = sum + a[n] * b[n];
    return sum;
}
template <is_vector V>
inline V cross(V a, V b) {
    return V{a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <is_vector V>
inline element<V> length(V v) {
    return sqrt(dot(v, v));
}
template <is_vector V>
inline V normalize(V v) {
    return v / length(v);
}

}  // namespace metal
