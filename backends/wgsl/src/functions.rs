//! Functions that modules declare when they use them: what WGSL has only loosely, or not at all.

use crate::types::type_name;
use magpie_gpu::text::Shape;
use magpie_types::PrimType;
use std::fmt::Write;

/// A function of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Function {
    /// Its operand, of which a compiler cannot know where it comes from.
    Exact,
    /// The same, made in another way.
    ExactAgain,
    /// Whether a number is NaN, from its bits.
    IsNan,
    /// The comparisons that are true when an operand is NaN, and the one for different numbers.
    UnorderedEqual,
    UnorderedNotEqual,
    UnorderedLess,
    UnorderedLessEqual,
    OrderedNotEqual,
    /// The smaller; the other one of a NaN; -0 below +0.
    Min,
    Max,
    /// x^y for all operands.
    Pow,
    /// The angle of any point.
    Atan2,
    /// The upper half of a product.
    MulHighU,
    MulHighS,
    /// Geometric functions in the order of their definition.
    Dot,
    Cross,
    Reflect,
    Mix,
}

impl Function {
    const ALL: [Function; 18] = [
        Function::Exact,
        Function::ExactAgain,
        Function::IsNan,
        Function::UnorderedEqual,
        Function::UnorderedNotEqual,
        Function::UnorderedLess,
        Function::UnorderedLessEqual,
        Function::OrderedNotEqual,
        Function::Min,
        Function::Max,
        Function::Pow,
        Function::Atan2,
        Function::MulHighU,
        Function::MulHighS,
        Function::Dot,
        Function::Cross,
        Function::Reflect,
        Function::Mix,
    ];
}

/// Whether a word is the name of a function.
pub(crate) fn is_function(word: &str) -> bool {
    let shapes = [PrimType::F32, PrimType::F16].into_iter();
    let mut shapes = shapes.flat_map(|prim| (1..=4).map(move |lanes| Shape { prim, lanes }));
    shapes.any(|shape| Function::ALL.into_iter().any(|f| name(f, shape) == word))
}

/// The functions of a module in the order of their declaration.
#[derive(Default)]
pub(crate) struct Functions {
    declared: Vec<(Function, Shape)>,
    text: String,
}

impl Functions {
    /// The name of a function for operands of a shape, which is declared if it is not yet.
    pub(crate) fn name(&mut self, function: Function, shape: Shape) -> &'static str {
        if !self.declared.contains(&(function, shape)) {
            self.declared.push((function, shape));
            self.declare(function, shape);
        }
        name(function, shape)
    }

    /// The declarations.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn declare(&mut self, function: Function, shape: Shape) {
        let is_half = shape.prim == PrimType::F16;
        let (single, bits) = (shape.of(PrimType::F32), shape.of(PrimType::U32));
        let (t, u) = (type_name(shape), type_name(bits));
        let b = type_name(shape.of(PrimType::Bool));
        let name = name(function, shape);
        let word = |text: &str| match shape.lanes {
            1 => text.to_string(),
            _ => format!("{u}({text})"),
        };
        let nan = match function {
            Function::Exact
            | Function::ExactAgain
            | Function::IsNan
            | Function::MulHighU
            | Function::MulHighS
            | Function::Dot
            | Function::Cross
            | Function::Reflect
            | Function::Mix => "",
            Function::UnorderedEqual
            | Function::UnorderedNotEqual
            | Function::UnorderedLess
            | Function::UnorderedLessEqual
            | Function::OrderedNotEqual
            | Function::Min
            | Function::Max
            | Function::Pow
            | Function::Atan2 => self.name(Function::IsNan, shape),
        };
        let body = match function {
            Function::Exact | Function::ExactAgain | Function::Min | Function::Max if is_half => {
                // Every f16 is an f32.
                let s = type_name(single);
                let of_single = self.name(function, single);
                match function {
                    Function::Exact | Function::ExactAgain => {
                        format!(
                            "(x: {t}, zero: u32) -> {t} {{\n    return {t}({of_single}({s}(x), zero));\n}}"
                        )
                    }
                    _ => format!(
                        "(a: {t}, b: {t}) -> {t} {{\n    return {t}({of_single}({s}(a), {s}(b)));\n}}"
                    ),
                }
            }
            Function::Exact => hidden(t, u, "^", &word("zero")),
            Function::ExactAgain => hidden(t, u, "|", &word("zero")),
            Function::IsNan if is_half => {
                let s = type_name(single);
                let of_single = self.name(function, single);
                format!("(x: {t}) -> {b} {{\n    return {of_single}({s}(x));\n}}")
            }
            Function::IsNan => format!(
                "(x: {t}) -> {b} {{\n    return (bitcast<{u}>(x) & {}) > {};\n}}",
                word("0x7fffffffu"),
                word("0x7f800000u")
            ),
            Function::UnorderedEqual => unordered(t, b, nan, "=="),
            Function::UnorderedNotEqual => unordered(t, b, nan, "!="),
            Function::UnorderedLess => unordered(t, b, nan, "<"),
            Function::UnorderedLessEqual => unordered(t, b, nan, "<="),
            Function::OrderedNotEqual => format!(
                "(a: {t}, b: {t}) -> {b} {{\n    return (a != b) & !({nan}(a) | {nan}(b));\n}}"
            ),
            Function::Min => extremum(t, u, nan, "<", "|"),
            Function::Max => extremum(t, u, nan, ">", "&"),
            Function::Pow => POW.to_string(),
            Function::Atan2 => ATAN2.to_string(),
            Function::MulHighU => MUL_HIGH_U.to_string(),
            Function::MulHighS => {
                self.name(Function::MulHighU, Shape::U32);
                MUL_HIGH_S.to_string()
            }
            Function::Dot => self.dot(shape),
            Function::Cross => self.cross(shape),
            Function::Reflect => self.reflect(shape),
            Function::Mix => self.mix(shape),
        };
        // Writing to a string does not fail.
        let _ = write!(self.text, "\nfn {name}{body}\n");
    }
}

fn hidden(t: &str, u: &str, op: &str, zero: &str) -> String {
    format!(
        "(x: {t}, zero: u32) -> {t} {{\n    return bitcast<{t}>(bitcast<{u}>(x) {op} {zero});\n}}"
    )
}

/// Strict arithmetic rounds every step: each goes through `exact`.
impl Functions {
    fn dot(&mut self, shape: Shape) -> String {
        let lane = Shape { lanes: 1, ..shape };
        let (t, s) = (type_name(shape), type_name(lane));
        let exact = self.name(Function::Exact, lane);
        let mut sum = format!("{exact}(a.x * b.x, zero)");
        for c in ["y", "z", "w"].into_iter().take(shape.lanes as usize - 1) {
            sum = format!("{exact}({sum} + {exact}(a.{c} * b.{c}, zero), zero)");
        }
        format!("(a: {t}, b: {t}, zero: u32) -> {s} {{\n    return {sum};\n}}")
    }

    fn cross(&mut self, shape: Shape) -> String {
        let t = type_name(shape);
        let exact = self.name(Function::Exact, shape);
        format!(
            "(a: {t}, b: {t}, zero: u32) -> {t} {{
    return {exact}(a.yzx * b.zxy, zero) - {exact}(a.zxy * b.yzx, zero);
}}"
        )
    }

    fn reflect(&mut self, shape: Shape) -> String {
        let t = type_name(shape);
        let (exact, dot) = (self.name(Function::Exact, shape), self.name(Function::Dot, shape));
        // Doubling is exact.
        format!(
            "(v: {t}, n: {t}, zero: u32) -> {t} {{
    let twice = 2.0 * {dot}(n, v, zero);
    return v - {exact}({t}(twice) * n, zero);
}}"
        )
    }

    fn mix(&mut self, shape: Shape) -> String {
        let t = type_name(shape);
        let exact = self.name(Function::Exact, shape);
        format!(
            "(x: {t}, y: {t}, t: {t}, zero: u32) -> {t} {{
    let rest = {exact}({t}(1.0) - t, zero);
    return {exact}(x * rest, zero) + {exact}(y * t, zero);
}}"
        )
    }
}

fn unordered(t: &str, b: &str, nan: &str, op: &str) -> String {
    format!("(a: {t}, b: {t}) -> {b} {{\n    return {nan}(a) | {nan}(b) | (a {op} b);\n}}")
}

/// Equal operands are joined bit by bit, so that a minimum has the sign bit that either has and a
/// maximum the one that both have.
fn extremum(t: &str, u: &str, nan: &str, before: &str, join: &str) -> String {
    format!(
        "(a: {t}, b: {t}) -> {t} {{
    let joined = bitcast<{t}>(bitcast<{u}>(a) {join} bitcast<{u}>(b));
    let chosen = select(select(b, a, a {before} b), joined, a == b);
    return select(select(chosen, a, {nan}(b)), b, {nan}(a));
}}"
    )
}

const MUL_HIGH_U: &str = "(a: u32, b: u32) -> u32 {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let first = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let second = (a & 0xffffu) * (b >> 16u) + (first & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >> 16u);
}";

/// Of two's complements: a negative operand stands for itself plus 2^32.
const MUL_HIGH_S: &str = "(a: i32, b: i32) -> i32 {
    let high = mul_high_u(bitcast<u32>(a), bitcast<u32>(b));
    let of_a = select(0u, bitcast<u32>(b), a < 0);
    let of_b = select(0u, bitcast<u32>(a), b < 0);
    return bitcast<i32>(high - of_a - of_b);
}";

/// WGSL knows no power of a negative base, nor of zero unless the exponent is positive.
const POW: &str = "(x: f32, y: f32) -> f32 {
    let size = abs(x);
    if (y == 0.0 || (size == 1.0 && !(x < 0.0))) {
        return 1.0;
    }
    if (is_nan(x) || is_nan(y)) {
        return bitcast<f32>(bitcast<u32>(x) | 0x7fc00000u);
    }
    let is_integer = trunc(y) == y;
    let is_odd = is_integer && trunc(y * 0.5) != y * 0.5;
    let sign = select(0u, bitcast<u32>(x) & 0x80000000u, is_odd);
    var power = pow(size, y);
    if (size == 1.0) {
        power = 1.0;
    }
    if (size == 0.0) {
        power = bitcast<f32>(select(0u, 0x7f800000u, y < 0.0));
    }
    if (x < 0.0 && !is_integer && (bitcast<u32>(size) < 0x7f800000u)) {
        return bitcast<f32>(bitcast<u32>(size) | 0x7fc00000u);
    }
    return bitcast<f32>(bitcast<u32>(power) | sign);
}";

/// WGSL knows no angle of the four points at zero and the four at infinity: others in the same
/// direction take their place.
const ATAN2: &str = "(y: f32, x: f32) -> f32 {
    let size_x = bitcast<u32>(x) & 0x7fffffffu;
    let size_y = bitcast<u32>(y) & 0x7fffffffu;
    let at_zero = size_x == 0u && size_y == 0u;
    let at_infinity = size_x == 0x7f800000u && size_y == 0x7f800000u;
    let one_x = bitcast<f32>((bitcast<u32>(x) & 0x80000000u) | 0x3f800000u);
    let one_y = bitcast<f32>((bitcast<u32>(y) & 0x80000000u) | 0x3f800000u);
    return atan2(select(y, one_y, at_infinity), select(x, one_x, at_zero || at_infinity));
}";

fn name(function: Function, shape: Shape) -> &'static str {
    let half = shape.prim == PrimType::F16;
    let lanes = (shape.lanes as usize).clamp(1, 4) - 1;
    macro_rules! names {
        ($single:literal, $half:literal) => {
            match half {
                false => [
                    $single,
                    concat!($single, "_2"),
                    concat!($single, "_3"),
                    concat!($single, "_4"),
                ][lanes],
                true => {
                    [$half, concat!($half, "_2"), concat!($half, "_3"), concat!($half, "_4")][lanes]
                }
            }
        };
    }
    match function {
        Function::Exact => names!("exact", "exact_f16"),
        Function::ExactAgain => names!("exact_again", "exact_again_f16"),
        Function::IsNan => names!("is_nan", "is_nan_f16"),
        Function::UnorderedEqual => names!("unordered_equal", "unordered_equal_f16"),
        Function::UnorderedNotEqual => names!("unordered_not_equal", "unordered_not_equal_f16"),
        Function::UnorderedLess => names!("unordered_less", "unordered_less_f16"),
        Function::UnorderedLessEqual => {
            names!("unordered_less_equal", "unordered_less_equal_f16")
        }
        Function::OrderedNotEqual => names!("ordered_not_equal", "ordered_not_equal_f16"),
        Function::Min => names!("ordered_min", "ordered_min_f16"),
        Function::Max => names!("ordered_max", "ordered_max_f16"),
        Function::Pow => "power",
        Function::Atan2 => "angle",
        Function::MulHighU => "mul_high_u",
        Function::MulHighS => "mul_high_s",
        Function::Dot => names!("strict_dot", "strict_dot_f16"),
        Function::Cross => names!("strict_cross", "strict_cross_f16"),
        Function::Reflect => names!("strict_reflect", "strict_reflect_f16"),
        Function::Mix => names!("strict_mix", "strict_mix_f16"),
    }
}
