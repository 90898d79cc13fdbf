//! [`MathFn`]: functions of floats that the runtime computes.

/// The operation argument of [`RtFn::MathF64`](super::RtFn::MathF64) and [`RtFn::MathF32`](super::RtFn::MathF32).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum MathFn {
    Exp = 0,
    Exp2 = 1,
    Log = 2,
    Log2 = 3,
    Sin = 4,
    Cos = 5,
    Tan = 6,
    Asin = 7,
    Acos = 8,
    Atan = 9,
    Sinh = 10,
    Cosh = 11,
    Tanh = 12,
    Atan2 = 13,
    Pow = 14,
    Rem = 15,
    Round = 16,
}

impl MathFn {
    /// Every function, by discriminant.
    pub const ALL: [MathFn; 17] = [
        MathFn::Exp,
        MathFn::Exp2,
        MathFn::Log,
        MathFn::Log2,
        MathFn::Sin,
        MathFn::Cos,
        MathFn::Tan,
        MathFn::Asin,
        MathFn::Acos,
        MathFn::Atan,
        MathFn::Sinh,
        MathFn::Cosh,
        MathFn::Tanh,
        MathFn::Atan2,
        MathFn::Pow,
        MathFn::Rem,
        MathFn::Round,
    ];

    /// The value on `f64` operands; `y` is ignored by functions of one argument.
    pub fn eval_f64(self, x: f64, y: f64) -> f64 {
        match self {
            MathFn::Exp => x.exp(),
            MathFn::Exp2 => x.exp2(),
            MathFn::Log => x.ln(),
            MathFn::Log2 => x.log2(),
            MathFn::Sin => x.sin(),
            MathFn::Cos => x.cos(),
            MathFn::Tan => x.tan(),
            MathFn::Asin => x.asin(),
            MathFn::Acos => x.acos(),
            MathFn::Atan => x.atan(),
            MathFn::Sinh => x.sinh(),
            MathFn::Cosh => x.cosh(),
            MathFn::Tanh => x.tanh(),
            MathFn::Atan2 => x.atan2(y),
            MathFn::Pow => x.powf(y),
            MathFn::Rem => x % y,
            MathFn::Round => x.round_ties_even(),
        }
    }

    /// The value on `f32` operands: the `f64` value rounded once.
    pub fn eval_f32(self, x: f32, y: f32) -> f32 {
        self.eval_f64(x as f64, y as f64) as f32
    }
}
