//! Conversions and vectors.
//!
//! Conversions from float to integer come here legalised: the value lies inside the result type.

use crate::functions::Function;
use crate::language::Wgsl;
use crate::types::{Scalar, type_name};
use magpie_gpu::text::{Emit, Shape, Text};
use magpie_mpir::{Flags, Inst};
use magpie_types::PrimType;
use std::fmt::Write;

/// What lets a device's own geometric function stand for the definition.
const LOOSE: Flags = Flags(Flags::CONTRACT.0 | Flags::REASSOC.0);

impl Wgsl {
    pub(crate) fn cast(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let (from, to) = (text.shape_of_operand(i, 0)?, text.shape_of_result(i)?);
        if from.prim != to.prim && (from.prim == PrimType::Bf16 || to.prim == PrimType::Bf16) {
            return Err(text.broken_at(i, "conversion of bf16"));
        }
        let (a, b) = (Scalar::of(from.prim), Scalar::of(to.prim));
        let unused = match from.prim {
            p if p.is_int() => 32u32.saturating_sub(p.bit_width()),
            _ => 0,
        };
        match (a, b) {
            (Scalar::Bool, Scalar::Bool) => text.expand(self, i, "#0"),
            (_, Scalar::Bool) => text.expand(self, i, "$0 != %T()"),
            (Scalar::Bool, _) => text.expand(self, i, "select($T(), $T(1), #0)"),
            // The upper bits of the carrier mean nothing yet.
            _ if unused > 0 && to.prim.bit_width() > from.prim.bit_width() => {
                let amount = match from.lanes {
                    1 => format!("{unused}u"),
                    _ => format!("%U({unused}u)"),
                };
                let shifts = format!("($0 << {amount}) >> {amount}");
                match a == b {
                    true => text.expand(self, i, &shifts),
                    false => text.expand(self, i, &format!("$T({shifts})")),
                }
            }
            _ if a == b => text.expand(self, i, "#0"),
            _ => text.expand(self, i, "$T(#0)"),
        }
    }

    /// The same bits as another type.
    pub(crate) fn bit_cast(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let (from, to) = (text.shape_of_operand(i, 0)?, text.shape_of_result(i)?);
        let (a, b) = (Scalar::of(from.prim), Scalar::of(to.prim));
        match (a, b) {
            _ if from.lanes != to.lanes => Err(text.broken_at(i, "between vectors")),
            _ if a == b => text.expand(self, i, "#0"),
            (Scalar::F16, _) | (_, Scalar::F16) if from.lanes > 1 => {
                Err(text.broken_at(i, "on vectors of f16"))
            }
            // 16 bits in a word.
            (Scalar::F16, Scalar::U32) => {
                text.expand(self, i, "pack2x16float(vec2<f32>(f32(#0), 0.0))")
            }
            (Scalar::F16, _) => text.expand(self, i, "i32(pack2x16float(vec2<f32>(f32(#0), 0.0)))"),
            (_, Scalar::F16) => text.expand(self, i, "f16(unpack2x16float(u32(#0)).x)"),
            (Scalar::Bool, _) | (_, Scalar::Bool) => Err(text.broken_at(i, "on bool")),
            _ => text.expand(self, i, "bitcast<$T>(#0)"),
        }
    }

    pub(crate) fn vec_new(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let shape = text.shape_of_result(i)?;
        let lanes = text.f.args(i).to_vec();
        if lanes.len() != shape.lanes as usize {
            return Err(text.broken_at(i, "operands are missing"));
        }
        let _ = write!(text.out, "{}(", type_name(shape));
        for (n, &v) in lanes.iter().enumerate() {
            if n > 0 {
                text.out.push_str(", ");
            }
            text.argument(self, v)?;
        }
        text.out.push(')');
        Ok(())
    }

    pub(crate) fn vec_insert(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let shape = text.shape_of_result(i)?;
        let lane = text.f.inst(i).imm_lo();
        let chosen: Vec<String> =
            (0..shape.lanes as u32).map(|n| (n == lane).to_string()).collect();
        let mask = type_name(shape.of(PrimType::Bool));
        let chosen = chosen.join(", ");
        text.expand(self, i, &format!("select(#0, $T(#1), {mask}({chosen}))"))
    }

    /// A geometric function: the device's own where the flags allow it, else in the order of its
    /// definition.
    pub(crate) fn geometric(
        &mut self,
        text: &mut Text<'_>,
        i: Inst,
        function: Function,
        loose: &str,
    ) -> Emit {
        if text.f.inst(i).flags.contains(LOOSE) {
            return text.expand(self, i, loose);
        }
        let shape: Shape = text.shape_of_operand(i, 0)?;
        self.open_call(text, function, shape);
        let zero = self.zero();
        let operands = if text.f.args(i).len() > 2 { "#0, #1, #2" } else { "#0, #1" };
        text.expand(self, i, &format!("{operands}, {zero})"))
    }
}
