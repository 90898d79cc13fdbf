//! Subgroup operations. Metal's functions take scalars of at most 32 bits: smaller integers and
//! bools are widened, larger ones exchanged in halves and reduced lane by lane.

use crate::arguments::Builtin;
use crate::functions::Function;
use crate::language::Msl;
use magpie_gpu::text::{Emit, Text};
use magpie_mpir::{Inst, Op};
use magpie_types::PrimType;
use magpie_types::kernel::DeviceFeatures;

impl Msl<'_> {
    /// Writes the size of a subgroup or the position in it.
    pub(crate) fn write_simd_builtin(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let builtin = match text.f.inst(i).op {
            Op::GpuSubgroupSize => Builtin::SimdWidth,
            _ => Builtin::LaneId,
        };
        let name = self.builtin(text, builtin);
        text.out.push_str(&name);
        Ok(())
    }

    /// Writes an operation among the invocations of a subgroup.
    pub(crate) fn write_simd(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        if !text.is_read(i) {
            // It does nothing but give a value.
            return Ok(());
        }
        self.features |= DeviceFeatures::SUBGROUP;
        let template = match text.f.inst(i).op {
            Op::GpuSubgroupShuffle | Op::GpuMetalSimdShuffle | Op::GpuSubgroupBroadcast => {
                shuffle(text, i, "simd_shuffle")?
            }
            Op::GpuSubgroupShuffleDown => shuffle(text, i, "simd_shuffle_down")?,
            Op::GpuSubgroupShuffleUp => shuffle(text, i, "simd_shuffle_up")?,
            Op::GpuSubgroupShuffleXor => shuffle(text, i, "simd_shuffle_xor")?,
            Op::GpuSubgroupSum | Op::GpuMetalSimdSum => self.sum(text, i, "simd_sum")?,
            Op::GpuSubgroupPrefixSum | Op::GpuMetalSimdPrefixSum => {
                self.sum(text, i, "simd_prefix_exclusive_sum")?
            }
            Op::GpuSubgroupMin => self.extremum(text, i, Function::SimdMin, "simd_min")?,
            Op::GpuSubgroupMax => self.extremum(text, i, Function::SimdMax, "simd_max")?,
            Op::GpuSubgroupAny => "simd_any(#0)".to_string(),
            Op::GpuSubgroupAll => "simd_all(#0)".to_string(),
            Op::GpuSubgroupBallot => "ulong((simd_vote::vote_t)simd_ballot(#0))".to_string(),
            _ => return Err(text.broken_at(i, "is no operation of a subgroup")),
        };
        text.open_result(self, i)?;
        text.expand(self, i, &template)?;
        text.end_statement();
        Ok(())
    }

    /// A sum over all active lanes, or over those before this one.
    fn sum(&mut self, text: &mut Text<'_>, i: Inst, name: &str) -> Emit<String> {
        Ok(match text.shape_of_result(i)?.prim {
            PrimType::I64 | PrimType::U64 => {
                self.functions.call(Function::SimdSum);
                let width = self.builtin(text, Builtin::SimdWidth);
                let end = match name {
                    "simd_sum" => width.clone(),
                    _ => self.builtin(text, Builtin::LaneId),
                };
                format!("$T(magpie_simd_sum($U(#0), {width}, {end}))")
            }
            p if p.is_float() => format!("{name}(#0)"),
            // In unsigned integers, which wrap.
            _ => format!("$T({name}(uint(#0)))"),
        })
    }

    /// The smallest or largest over all active lanes.
    fn extremum(
        &mut self,
        text: &mut Text<'_>,
        i: Inst,
        wide: Function,
        name: &str,
    ) -> Emit<String> {
        Ok(match text.shape_of_result(i)?.prim {
            PrimType::I64 | PrimType::U64 => {
                self.functions.call(wide);
                let width = self.builtin(text, Builtin::SimdWidth);
                format!("magpie_{name}(#0, {width})")
            }
            PrimType::I8 | PrimType::I16 => format!("$T({name}(int(#0)))"),
            PrimType::U8 | PrimType::U16 => format!("$T({name}(uint(#0)))"),
            _ => format!("{name}(#0)"),
        })
    }
}

/// An exchange of operand 0 by operand 1.
fn shuffle(text: &Text<'_>, i: Inst, name: &str) -> Emit<String> {
    Ok(match text.shape_of_result(i)?.prim {
        PrimType::I64 | PrimType::U64 => {
            format!("as_type<$T>({name}(as_type<uint2>(#0), ushort(#1)))")
        }
        PrimType::Bool | PrimType::I8 | PrimType::U8 => {
            format!("$T({name}(ushort(#0), ushort(#1)))")
        }
        _ => format!("{name}(#0, ushort(#1))"),
    })
}
