//! [`Function`]: functions of ours that a kernel's source begins with when it calls them.

/// A function. The order is that of the source: what a function calls stands before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Function {
    Min,
    Max,
    Differ,
    Insert,
    Dot,
    Length,
    Normalize,
    Cross,
    Reflect,
    Mix,
    CompareExchange,
    AtomicExchange,
    AtomicAdd,
    AtomicMin,
    AtomicMax,
    SimdSum,
    SimdMin,
    SimdMax,
}

impl Function {
    const ALL: [Function; 18] = [
        Function::Min,
        Function::Max,
        Function::Differ,
        Function::Insert,
        Function::Dot,
        Function::Length,
        Function::Normalize,
        Function::Cross,
        Function::Reflect,
        Function::Mix,
        Function::CompareExchange,
        Function::AtomicExchange,
        Function::AtomicAdd,
        Function::AtomicMin,
        Function::AtomicMax,
        Function::SimdSum,
        Function::SimdMin,
        Function::SimdMax,
    ];

    /// What it calls.
    fn calls(self) -> Option<Function> {
        match self {
            Function::AtomicMin => Some(Function::Min),
            Function::AtomicMax => Some(Function::Max),
            Function::Length | Function::Reflect => Some(Function::Dot),
            Function::Normalize => Some(Function::Length),
            Function::Min
            | Function::Max
            | Function::Differ
            | Function::Insert
            | Function::Dot
            | Function::Cross
            | Function::Mix
            | Function::CompareExchange
            | Function::AtomicExchange
            | Function::AtomicAdd
            | Function::SimdSum
            | Function::SimdMin
            | Function::SimdMax => None,
        }
    }

    /// How it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Function::Min => "magpie_min",
            Function::Max => "magpie_max",
            Function::Differ => "magpie_differ",
            Function::Insert => "magpie_insert",
            Function::Dot => "magpie_dot",
            Function::Length => "magpie_length",
            Function::Normalize => "magpie_normalize",
            Function::Cross => "magpie_cross",
            Function::Reflect => "magpie_reflect",
            Function::Mix => "magpie_mix",
            Function::CompareExchange => "magpie_compare_exchange",
            Function::AtomicExchange => "magpie_atomic_exchange",
            Function::AtomicAdd => "magpie_atomic_add",
            Function::AtomicMin => "magpie_atomic_min",
            Function::AtomicMax => "magpie_atomic_max",
            Function::SimdSum => "magpie_simd_sum",
            Function::SimdMin => "magpie_simd_min",
            Function::SimdMax => "magpie_simd_max",
        }
    }

    fn text(self) -> &'static str {
        match self {
            // Equal operands have equal bits, or are zeros.
            Function::Min => {
                "template <typename U, typename F>
static F magpie_min(F a, F b) {
    return select(fmin(a, b), as_type<F>(U(as_type<U>(a) | as_type<U>(b))), a == b);
}
"
            }
            Function::Max => {
                "template <typename U, typename F>
static F magpie_max(F a, F b) {
    return select(fmax(a, b), as_type<F>(U(as_type<U>(a) & as_type<U>(b))), a == b);
}
"
            }
            // NaN does not differ from anything.
            Function::Differ => {
                "template <typename F>
static auto magpie_differ(F a, F b) -> decltype(a < b) {
    return (a < b) | (b < a);
}
"
            }
            Function::Insert => {
                "template <typename V, typename E>
static V magpie_insert(V v, uint lane, E x) {
    v[lane] = x;
    return v;
}
"
            }
            // From the first component to the last.
            Function::Dot => {
                "template <uint N, typename E, typename V>
static E magpie_dot(V a, V b) {
    E sum = a[0] * b[0];
    for (uint n = 1; n < N; n++) {
        sum = sum + a[n] * b[n];
    }
    return sum;
}
"
            }
            Function::Length => {
                "template <uint N, typename E, typename V>
static E magpie_length(V v) {
    return E(precise::sqrt(float(magpie_dot<N, E>(v, v))));
}
"
            }
            Function::Normalize => {
                "template <uint N, typename E, typename V>
static V magpie_normalize(V v) {
    return v / magpie_length<N, E>(v);
}
"
            }
            Function::Cross => {
                "template <uint N, typename E, typename V>
static V magpie_cross(V a, V b) {
    return a.yzx * b.zxy - a.zxy * b.yzx;
}
"
            }
            Function::Reflect => {
                "template <uint N, typename E, typename V>
static V magpie_reflect(V v, V n) {
    E d = magpie_dot<N, E>(n, v);
    return v - (d + d) * n;
}
"
            }
            Function::Mix => {
                "template <uint N, typename E, typename V>
static V magpie_mix(V x, V y, V t) {
    return x * (E(1) - t) + y * t;
}
"
            }
            // The weak form may fail without cause.
            Function::CompareExchange => {
                "template <typename P, typename T>
static T magpie_compare_exchange(P place, T expected, T desired) {
    T seen = expected;
    while (!atomic_compare_exchange_weak_explicit(place, &seen, desired, memory_order_relaxed, memory_order_relaxed) && seen == expected) {
    }
    return seen;
}
"
            }
            Function::AtomicExchange => {
                "template <typename P>
static float magpie_atomic_exchange(P place, float value) {
    return as_type<float>(atomic_exchange_explicit(place, as_type<uint>(value), memory_order_relaxed));
}
"
            }
            Function::AtomicAdd => {
                "template <typename P>
static float magpie_atomic_add(P place, float value) {
    uint seen = atomic_load_explicit(place, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(place, &seen, as_type<uint>(as_type<float>(seen) + value), memory_order_relaxed, memory_order_relaxed)) {
    }
    return as_type<float>(seen);
}
"
            }
            Function::AtomicMin => {
                "template <typename P>
static float magpie_atomic_min(P place, float value) {
    uint seen = atomic_load_explicit(place, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(place, &seen, as_type<uint>(magpie_min<uint>(as_type<float>(seen), value)), memory_order_relaxed, memory_order_relaxed)) {
    }
    return as_type<float>(seen);
}
"
            }
            Function::AtomicMax => {
                "template <typename P>
static float magpie_atomic_max(P place, float value) {
    uint seen = atomic_load_explicit(place, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(place, &seen, as_type<uint>(magpie_max<uint>(as_type<float>(seen), value)), memory_order_relaxed, memory_order_relaxed)) {
    }
    return as_type<float>(seen);
}
"
            }
            // Over the active lanes below `end`.
            Function::SimdSum => {
                "static ulong magpie_simd_sum(ulong value, uint width, uint end) {
    ulong active = ulong((simd_vote::vote_t)simd_active_threads_mask());
    ulong sum = 0;
    for (uint lane = 0; lane < width; lane++) {
        ulong other = as_type<ulong>(simd_shuffle(as_type<uint2>(value), ushort(lane)));
        sum += lane < end && (active >> lane & 1ul) != 0 ? other : 0;
    }
    return sum;
}
"
            }
            Function::SimdMin => {
                "template <typename T>
static T magpie_simd_min(T value, uint width) {
    ulong active = ulong((simd_vote::vote_t)simd_active_threads_mask());
    T least = value;
    for (uint lane = 0; lane < width; lane++) {
        T other = as_type<T>(simd_shuffle(as_type<uint2>(value), ushort(lane)));
        least = (active >> lane & 1ul) != 0 ? min(least, other) : least;
    }
    return least;
}
"
            }
            Function::SimdMax => {
                "template <typename T>
static T magpie_simd_max(T value, uint width) {
    ulong active = ulong((simd_vote::vote_t)simd_active_threads_mask());
    T most = value;
    for (uint lane = 0; lane < width; lane++) {
        T other = as_type<T>(simd_shuffle(as_type<uint2>(value), ushort(lane)));
        most = (active >> lane & 1ul) != 0 ? max(most, other) : most;
    }
    return most;
}
"
            }
        }
    }
}

/// The functions that a kernel calls.
#[derive(Clone, Copy, Default)]
pub(crate) struct Functions(u32);

impl Functions {
    /// Notes a call.
    pub(crate) fn call(&mut self, function: Function) {
        let mut next = Some(function);
        while let Some(function) = next {
            self.0 |= 1 << function as u32;
            next = function.calls();
        }
    }

    /// Writes them, each with an empty line behind it.
    pub(crate) fn write(self, out: &mut String) {
        for function in Function::ALL.into_iter().filter(|&f| self.0 >> f as u32 & 1 == 1) {
            out.push_str(function.text());
            out.push('\n');
        }
    }
}
