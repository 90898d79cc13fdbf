// Address spaces, scalars and vectors.
#pragma once

#include <stdint.h>

#define kernel
#define device __attribute__((address_space(1)))
#define constant const __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#define thread

namespace metal {

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
using half = _Float16;

template <class To, class From>
inline To as_type(From from) {
    static_assert(sizeof(To) == sizeof(From), "as_type between types of different sizes");
    return __builtin_bit_cast(To, from);
}

// bfloat: the upper half of a float. Conversions round to nearest even.
struct bfloat {
    ushort bits;

    bfloat() = default;
    explicit bfloat(float value) {
        uint all = as_type<uint>(value);
        bool is_nan = (all & 0x7fffffffu) > 0x7f800000u;
        bits = ushort((is_nan ? all | 0x400000u : all + 0x7fffu + (all >> 16 & 1u)) >> 16);
    }
    explicit operator float() const { return as_type<float>(uint(bits) << 16); }
};

// A vector type of each length, and its element type.
template <class T, int N>
struct vector_of;
template <class V>
struct element_of;

#define MAGPIE_VECTOR(T, N)                                  \
    typedef T T##N __attribute__((ext_vector_type(N)));      \
    template <>                                              \
    struct vector_of<T, N> {                                 \
        using type = T##N;                                   \
    };                                                       \
    template <>                                              \
    struct element_of<T##N> {                                \
        using type = T;                                      \
        static constexpr int lanes = N;                      \
    };
#define MAGPIE_VECTORS(T) MAGPIE_VECTOR(T, 2) MAGPIE_VECTOR(T, 3) MAGPIE_VECTOR(T, 4)
MAGPIE_VECTORS(bool)
MAGPIE_VECTORS(char)
MAGPIE_VECTORS(uchar)
MAGPIE_VECTORS(short)
MAGPIE_VECTORS(ushort)
MAGPIE_VECTORS(int)
MAGPIE_VECTORS(uint)
MAGPIE_VECTORS(long)
MAGPIE_VECTORS(ulong)
MAGPIE_VECTORS(half)
MAGPIE_VECTORS(float)
#undef MAGPIE_VECTORS
#undef MAGPIE_VECTOR

template <class V>
using element = typename element_of<V>::type;

// Vector constructors: from one scalar, from as many scalars as there are lanes, from a vector.
template <class V, class A>
inline V construct(A a) {
    if constexpr (requires { element_of<A>::lanes; }) {
        V v;
        for (int n = 0; n < element_of<V>::lanes; n++) v[n] = element<V>(a[n]);
        return v;
    } else {
        V v;
        for (int n = 0; n < element_of<V>::lanes; n++) v[n] = element<V>(a);
        return v;
    }
}
template <class V, class... A>
    requires(sizeof...(A) > 1)
inline V construct(A... a) {
    static_assert(sizeof...(A) == element_of<V>::lanes, "one scalar a lane");
    V v;
    int n = 0;
    ((v[n++] = element<V>(a)), ...);
    return v;
}

}  // namespace metal

// Clang has no constructor syntax for its vectors.
#define bool2(...) metal::construct<metal::bool2>(__VA_ARGS__)
#define bool3(...) metal::construct<metal::bool3>(__VA_ARGS__)
#define bool4(...) metal::construct<metal::bool4>(__VA_ARGS__)
#define char2(...) metal::construct<metal::char2>(__VA_ARGS__)
#define char3(...) metal::construct<metal::char3>(__VA_ARGS__)
#define char4(...) metal::construct<metal::char4>(__VA_ARGS__)
#define uchar2(...) metal::construct<metal::uchar2>(__VA_ARGS__)
#define uchar3(...) metal::construct<metal::uchar3>(__VA_ARGS__)
#define uchar4(...) metal::construct<metal::uchar4>(__VA_ARGS__)
#define short2(...) metal::construct<metal::short2>(__VA_ARGS__)
#define short3(...) metal::construct<metal::short3>(__VA_ARGS__)
#define short4(...) metal::construct<metal::short4>(__VA_ARGS__)
#define ushort2(...) metal::construct<metal::ushort2>(__VA_ARGS__)
#define ushort3(...) metal::construct<metal::ushort3>(__VA_ARGS__)
#define ushort4(...) metal::construct<metal::ushort4>(__VA_ARGS__)
#define int2(...) metal::construct<metal::int2>(__VA_ARGS__)
#define int3(...) metal::construct<metal::int3>(__VA_ARGS__)
#define int4(...) metal::construct<metal::int4>(__VA_ARGS__)
#define uint2(...) metal::construct<metal::uint2>(__VA_ARGS__)
#define uint3(...) metal::construct<metal::uint3>(__VA_ARGS__)
#define uint4(...) metal::construct<metal::uint4>(__VA_ARGS__)
#define long2(...) metal::construct<metal::long2>(__VA_ARGS__)
#define long3(...) metal::construct<metal::long3>(__VA_ARGS__)
#define long4(...) metal::construct<metal::long4>(__VA_ARGS__)
#define ulong2(...) metal::construct<metal::ulong2>(__VA_ARGS__)
#define ulong3(...) metal::construct<metal::ulong3>(__VA_ARGS__)
#define ulong4(...) metal::construct<metal::ulong4>(__VA_ARGS__)
#define half2(...) metal::construct<metal::half2>(__VA_ARGS__)
#define half3(...) metal::construct<metal::half3>(__VA_ARGS__)
#define half4(...) metal::construct<metal::half4>(__VA_ARGS__)
#define float2(...) metal::construct<metal::float2>(__VA_ARGS__)
#define float3(...) metal::construct<metal::float3>(__VA_ARGS__)
#define float4(...) metal::construct<metal::float4>(__VA_ARGS__)
