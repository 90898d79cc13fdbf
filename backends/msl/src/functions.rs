//! [`Function`]: functions of ours that a kernel's source begins with when it calls them.

/// A function. The order is that of the source: what a function calls stands before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

struct Row {
    name: &'static str,
    calls: Option<Function>,
    text: &'static str,
}

/// By function.
static TABLE: [Row; 18] = [
    // Equal operands have equal bits, or are zeros.
    Row {
        name: "magpie_min",
        calls: None,
        text: "template <typename U, typename F>
static F magpie_min(F a, F b) {
    return select(fmin(a, b), as_type<F>(U(as_type<U>(a) | as_type<U>(b))), a == b);
}
",
    },
    Row {
        name: "magpie_max",
        calls: None,
        text: "template <typename U, typename F>
static F magpie_max(F a, F b) {
    return select(fmax(a, b), as_type<F>(U(as_type<U>(a) & as_type<U>(b))), a == b);
}
",
    },
    // NaN does not differ from anything.
    Row {
        name: "magpie_differ",
        calls: None,
        text: "template <typename F>
static auto magpie_differ(F a, F b) -> decltype(a < b) {
    return (a < b) | (b < a);
}
",
    },
    Row {
        name: "magpie_insert",
        calls: None,
        text: "template <typename V, typename E>
static V magpie_insert(V v, uint lane, E x) {
    v[lane] = x;
    return v;
}
",
    },
    // From the first component to the last.
    Row {
        name: "magpie_dot",
        calls: None,
        text: "template <uint N, typename E, typename V>
static E magpie_dot(V a, V b) {
    E sum = a[0] * b[0];
    for (uint n = 1; n < N; n++) {
        sum = sum + a[n] * b[n];
    }
    return sum;
}
",
    },
    Row {
        name: "magpie_length",
        calls: Some(Function::Dot),
        text: "template <uint N, typename E, typename V>
static E magpie_length(V v) {
    return E(precise::sqrt(float(magpie_dot<N, E>(v, v))));
}
",
    },
    Row {
        name: "magpie_normalize",
        calls: Some(Function::Length),
        text: "template <uint N, typename E, typename V>
static V magpie_normalize(V v) {
    return v / magpie_length<N, E>(v);
}
",
    },
    Row {
        name: "magpie_cross",
        calls: None,
        text: "template <uint N, typename E, typename V>
static V magpie_cross(V a, V b) {
    return a.yzx * b.zxy - a.zxy * b.yzx;
}
",
    },
    Row {
        name: "magpie_reflect",
        calls: Some(Function::Dot),
        text: "template <uint N, typename E, typename V>
static V magpie_reflect(V v, V n) {
    E d = magpie_dot<N, E>(n, v);
    return v - (d + d) * n;
}
",
    },
    Row {
        name: "magpie_mix",
        calls: None,
        text: "template <uint N, typename E, typename V>
static V magpie_mix(V x, V y, V t) {
    return x * (E(1) - t) + y * t;
}
",
    },
    // The weak form may fail without cause.
    Row {
        name: "magpie_compare_exchange",
        calls: None,
        text: "template <typename P, typename T>
static T magpie_compare_exchange(P place, T expected, T desired) {
    T seen = expected;
    while (!atomic_compare_exchange_weak_explicit(place, &seen, desired, memory_order_relaxed, memory_order_relaxed) && seen == expected) {
    }
    return seen;
}
",
    },
    Row {
        name: "magpie_atomic_exchange",
        calls: None,
        text: "template <typename P>
static float magpie_atomic_exchange(P place, float value) {
    return as_type<float>(atomic_exchange_explicit(place, as_type<uint>(value), memory_order_relaxed));
}
",
    },
    Row {
        name: "magpie_atomic_add",
        calls: None,
        text: "template <typename P>
static float magpie_atomic_add(P place, float value) {
    uint seen = atomic_load_explicit(place, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(place, &seen, as_type<uint>(as_type<float>(seen) + value), memory_order_relaxed, memory_order_relaxed)) {
    }
    return as_type<float>(seen);
}
",
    },
    Row {
        name: "magpie_atomic_min",
        calls: Some(Function::Min),
        text: "template <typename P>
static float magpie_atomic_min(P place, float value) {
    uint seen = atomic_load_explicit(place, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(place, &seen, as_type<uint>(magpie_min<uint>(as_type<float>(seen), value)), memory_order_relaxed, memory_order_relaxed)) {
    }
    return as_type<float>(seen);
}
",
    },
    Row {
        name: "magpie_atomic_max",
        calls: Some(Function::Max),
        text: "template <typename P>
static float magpie_atomic_max(P place, float value) {
    uint seen = atomic_load_explicit(place, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(place, &seen, as_type<uint>(magpie_max<uint>(as_type<float>(seen), value)), memory_order_relaxed, memory_order_relaxed)) {
    }
    return as_type<float>(seen);
}
",
    },
    // Over the active lanes below `end`.
    Row {
        name: "magpie_simd_sum",
        calls: None,
        text: "static ulong magpie_simd_sum(ulong value, uint width, uint end) {
    ulong active = ulong((simd_vote::vote_t)simd_active_threads_mask());
    ulong sum = 0;
    for (uint lane = 0; lane < width; lane++) {
        ulong other = as_type<ulong>(simd_shuffle(as_type<uint2>(value), ushort(lane)));
        sum += lane < end && (active >> lane & 1ul) != 0 ? other : 0;
    }
    return sum;
}
",
    },
    Row {
        name: "magpie_simd_min",
        calls: None,
        text: "template <typename T>
static T magpie_simd_min(T value, uint width) {
    ulong active = ulong((simd_vote::vote_t)simd_active_threads_mask());
    T least = value;
    for (uint lane = 0; lane < width; lane++) {
        T other = as_type<T>(simd_shuffle(as_type<uint2>(value), ushort(lane)));
        least = (active >> lane & 1ul) != 0 ? min(least, other) : least;
    }
    return least;
}
",
    },
    Row {
        name: "magpie_simd_max",
        calls: None,
        text: "template <typename T>
static T magpie_simd_max(T value, uint width) {
    ulong active = ulong((simd_vote::vote_t)simd_active_threads_mask());
    T most = value;
    for (uint lane = 0; lane < width; lane++) {
        T other = as_type<T>(simd_shuffle(as_type<uint2>(value), ushort(lane)));
        most = (active >> lane & 1ul) != 0 ? max(most, other) : most;
    }
    return most;
}
",
    },
];

impl Function {
    /// How it is called.
    pub(crate) fn name(self) -> &'static str {
        TABLE[self as usize].name
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
            next = TABLE[function as usize].calls;
        }
    }

    /// Writes them, each with an empty line behind it.
    pub(crate) fn write(self, out: &mut String) {
        for (n, row) in TABLE.iter().enumerate() {
            if self.0 >> n & 1 == 1 {
                out.push_str(row.text);
                out.push('\n');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_defined_before_they_are_called() {
        for (n, row) in TABLE.iter().enumerate() {
            assert!(row.text.contains(&format!(" {}(", row.name)), "{}", row.name);
            for (m, other) in TABLE.iter().enumerate().filter(|&(m, _)| m != n) {
                let is_called = row.text.contains(&format!("{}<", other.name))
                    || row.text.contains(&format!("{}(", other.name));
                let is_noted = row.calls.is_some_and(|f| f as usize == m);
                assert_eq!(is_called, is_noted, "{} calls {}", row.name, other.name);
                assert!(!is_called || m < n, "{} stands before {}", row.name, other.name);
            }
        }
        let mut all = Functions::default();
        all.call(Function::Normalize);
        let mut text = String::new();
        all.write(&mut text);
        assert!(text.contains("magpie_dot") && !text.contains("magpie_cross"), "{text}");
    }
}
