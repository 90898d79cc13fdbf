//! Names that programs use without declaring them.

/// The names of the library that the compiler knows.
const NAMES: &[&str] = &[
    "print",
    "println",
    "eprint",
    "eprintln",
    "panic",
    "Some",
    "None",
    "Ok",
    "Err",
    "PI",
    "E",
    "INF",
    "abs",
    "min",
    "max",
    "pow",
    "sqrt",
    "exp",
    "exp2",
    "log",
    "log2",
    "floor",
    "ceil",
    "round",
    "sin",
    "cos",
    "tan",
    "tanh",
    "atan2",
    "step",
    "clamp",
    "mix",
    "fract",
    "sign",
    "smoothstep",
    "sigmoid",
    "hash_u32",
    "dot",
    "length",
    "normalize",
    "cross",
    "reflect",
    "gpu_reset_telemetry",
    "gpu_uploads",
    "gpu_launches",
    "gpu_readbacks",
    "gpu_fences",
    "gpu_releases",
    "is_gpu_available",
    "atomic_add",
    "atomic_sub",
    "atomic_max",
    "atomic_min",
    "atomic_and",
    "atomic_or",
    "atomic_xor",
    "atomic_exchange",
    "atomic_compare_exchange",
    "List",
    "Array",
    "Map",
    "Set",
    "read_bytes",
    "write_bytes",
    "read_text",
    "write_text",
    "args",
    "__find",
    "__part",
    "__bytes",
    "__zeroed",
];

/// The name itself when the library has it, else an empty one.
pub(super) fn known(name: &str) -> &'static str {
    NAMES.iter().find(|&&known| known == name).copied().unwrap_or("")
}

/// Whether the compiler knows a name of the library: that of a value, a function or a type.
pub(crate) fn is_known(name: &str) -> bool {
    !known(name).is_empty() || super::types::BUILTIN.contains(&name)
}

/// The parameters of what the language itself has: functions, methods, and the components of
/// vectors. Empty where arguments have no names.
pub(super) fn params(name: &str) -> &'static [&'static str] {
    match name {
        "print" | "println" | "eprint" | "eprintln" | "hash_u32" => &["s"],
        "panic" => &["text"],
        "abs" | "sqrt" | "exp" | "exp2" | "log" | "log2" | "floor" | "ceil" | "round" | "sin"
        | "cos" | "tan" | "tanh" | "fract" | "sign" | "sigmoid" => &["x"],
        "min" | "max" | "dot" | "cross" => &["a", "b"],
        "pow" => &["x", "y"],
        "atan2" => &["y", "x"],
        "step" => &["edge", "x"],
        "clamp" => &["x", "lo", "hi"],
        "mix" => &["a", "b", "t"],
        "smoothstep" => &["lo", "hi", "x"],
        "normalize" => &["v"],
        "reflect" => &["v", "n"],
        "atomic_compare_exchange" => &["buf", "i", "expected", "desired"],
        "atomic_add" | "atomic_sub" | "atomic_max" | "atomic_min" | "atomic_and" | "atomic_or"
        | "atomic_xor" | "atomic_exchange" => &["buf", "i", "v"],
        "read_bytes" | "read_text" => &["path"],
        "write_bytes" | "write_text" => &["path", "data"],
        "Vec2" | "Vec3" | "Vec4" => &["x", "y", "z", "w"],
        "launch" => &["grid", "block"],
        "shuffle_down" => &["v", "n"],
        "reduce" => &["init", "fold"],
        "set" | "insert" => &["i", "v"],
        "element_at" | "get" | "remove_at" => &["i"],
        "push" | "add" | "contains" | "index_of" => &["v"],
        "take" | "skip" => &["n"],
        _ => &[],
    }
}

/// The numbers of the library.
pub(super) fn number(name: &str) -> Option<f64> {
    Some(match name {
        "PI" => std::f64::consts::PI,
        "E" => std::f64::consts::E,
        "INF" => f64::INFINITY,
        _ => return None,
    })
}

/// Functions that print or read: not for kernels.
pub(super) fn is_io(name: &str) -> bool {
    matches!(
        name,
        "print"
            | "println"
            | "eprint"
            | "eprintln"
            | "panic"
            | "read_bytes"
            | "write_bytes"
            | "read_text"
            | "write_text"
            | "args"
    )
}
