//! A value in every lane.

use super::LANES;
use crate::pure::clif_type;
use crate::simd;
use cranelift_codegen::ir::{self, InstBuilder, types};
use cranelift_frontend::FunctionBuilder;
use magpie_types::PrimType;

/// A value of all lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lanes {
    /// One scalar for all.
    Same(ir::Value),
    /// An integer that differs by a constant from lane to lane: the first, and the step.
    Linear(ir::Value, i64),
    /// A vector of 32-bit components.
    Simd(ir::Value),
    /// A `bool`: a vector of 32-bit components that are all ones or zero.
    Mask(ir::Value),
    /// A scalar a lane.
    Each([ir::Value; LANES as usize]),
}

/// The vector type of a 32-bit scalar type.
pub(crate) fn simd_type(p: PrimType) -> Option<ir::Type> {
    match p {
        PrimType::F32 => Some(types::F32X4),
        PrimType::I32 | PrimType::U32 => Some(types::I32X4),
        _ => None,
    }
}

impl Lanes {
    /// The scalar of each lane.
    pub(crate) fn each(self, b: &mut FunctionBuilder, p: PrimType) -> [ir::Value; 4] {
        match self {
            Lanes::Same(v) => [v; 4],
            Lanes::Each(v) => v,
            Lanes::Linear(v, step) => {
                [0, 1, 2, 3].map(|n| if n == 0 { v } else { b.ins().iadd_imm_s(v, n * step) })
            }
            Lanes::Simd(v) => [0, 1, 2, 3].map(|n| b.ins().extractlane(v, n)),
            Lanes::Mask(v) => [0, 1, 2, 3].map(|n| {
                let word = b.ins().extractlane(v, n);
                let bit = b.ins().band_imm_u(word, 1);
                b.ins().ireduce(clif_type(p), bit)
            }),
        }
    }

    /// The value as a vector. `p` has 32 bits.
    pub(crate) fn simd(self, b: &mut FunctionBuilder, p: PrimType) -> ir::Value {
        let ty = simd_type(p).unwrap_or(types::I32X4);
        match self {
            Lanes::Simd(v) | Lanes::Mask(v) => v,
            Lanes::Same(v) => b.ins().splat(ty, v),
            Lanes::Linear(v, step) => {
                let base = b.ins().splat(ty, v);
                let steps = steps(b, step);
                b.ins().iadd(base, steps)
            }
            Lanes::Each(v) => {
                let mut vector = b.ins().splat(ty, v[0]);
                for (n, &x) in v.iter().enumerate().skip(1) {
                    vector = b.ins().insertlane(vector, x, n as u8);
                }
                vector
            }
        }
    }

    /// A `bool` as a mask.
    pub(crate) fn mask(self, b: &mut FunctionBuilder) -> ir::Value {
        match self {
            Lanes::Mask(v) | Lanes::Simd(v) => v,
            Lanes::Same(v) => {
                let word = b.ins().uextend(types::I32, v);
                let all = b.ins().ineg(word);
                b.ins().splat(types::I32X4, all)
            }
            Lanes::Linear(..) | Lanes::Each(_) => {
                let words = self.each(b, PrimType::Bool).map(|v| {
                    let word = b.ins().uextend(types::I32, v);
                    b.ins().ineg(word)
                });
                Lanes::Each(words).simd(b, PrimType::I32)
            }
        }
    }
}

/// The vector `0, step, 2 step, 3 step`.
fn steps(b: &mut FunctionBuilder, step: i64) -> ir::Value {
    let mut bytes = Vec::with_capacity(16);
    for n in 0..LANES as i64 {
        bytes.extend((n.wrapping_mul(step) as i32).to_le_bytes());
    }
    simd::bytes(b, types::I32X4, bytes)
}
