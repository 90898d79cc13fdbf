//! Subgroup operations. Metal's functions take scalars of at most 32 bits: smaller integers and
//! bools are widened, larger ones exchanged in halves and reduced lane by lane.

use crate::arguments::Builtin;
use crate::functions::Function;
use crate::language::Msl;
use magpie_gpu::text::{Emit, Text};
use magpie_mpir::Inst;
use magpie_types::PrimType;
use magpie_types::kernel::DeviceFeatures;

impl Msl<'_> {
    /// An operation among the invocations of a subgroup, from a template.
    pub(crate) fn simd_statement(&mut self, text: &mut Text<'_>, i: Inst, template: &str) -> Emit {
        self.features |= DeviceFeatures::SUBGROUP;
        if !text.is_read(i) {
            // It does nothing but give a value.
            return Ok(());
        }
        text.open_result(self, i)?;
        text.expand(self, i, template)?;
        text.end_statement();
        Ok(())
    }

    /// An exchange of operand 0 by operand 1.
    pub(crate) fn simd_shuffle(&mut self, text: &mut Text<'_>, i: Inst, name: &str) -> Emit {
        let template = match text.shape_of_result(i)?.prim {
            PrimType::I64 | PrimType::U64 => {
                format!("as_type<$T>({name}(as_type<uint2>(#0), ushort(#1)))")
            }
            PrimType::Bool | PrimType::I8 | PrimType::U8 => {
                format!("$T({name}(ushort(#0), ushort(#1)))")
            }
            _ => format!("{name}(#0, ushort(#1))"),
        };
        self.simd_statement(text, i, &template)
    }

    /// A sum over all active lanes, or over those before this one.
    pub(crate) fn simd_sum(&mut self, text: &mut Text<'_>, i: Inst, is_prefix: bool) -> Emit {
        let name = if is_prefix { "simd_prefix_exclusive_sum" } else { "simd_sum" };
        let template = match text.shape_of_result(i)?.prim {
            PrimType::I64 | PrimType::U64 => {
                self.functions.call(Function::SimdSum);
                let width = self.builtin(text, Builtin::SimdWidth);
                let end = match is_prefix {
                    true => self.builtin(text, Builtin::LaneId),
                    false => width.clone(),
                };
                format!("$T({}($U(#0), {width}, {end}))", Function::SimdSum.name())
            }
            p if p.is_float() => format!("{name}(#0)"),
            // In unsigned integers, which wrap.
            _ => format!("$T({name}(uint(#0)))"),
        };
        self.simd_statement(text, i, &template)
    }

    /// The smallest or largest over all active lanes; `wide` is for 64 bits.
    pub(crate) fn simd_extremum(
        &mut self,
        text: &mut Text<'_>,
        i: Inst,
        name: &str,
        wide: Function,
    ) -> Emit {
        let template = match text.shape_of_result(i)?.prim {
            PrimType::I64 | PrimType::U64 => {
                self.functions.call(wide);
                let width = self.builtin(text, Builtin::SimdWidth);
                format!("{}(#0, {width})", wide.name())
            }
            PrimType::I8 | PrimType::I16 => format!("$T({name}(int(#0)))"),
            PrimType::U8 | PrimType::U16 => format!("$T({name}(uint(#0)))"),
            _ => format!("{name}(#0)"),
        };
        self.simd_statement(text, i, &template)
    }
}
