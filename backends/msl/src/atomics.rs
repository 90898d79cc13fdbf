//! Atomic operations on buffers and shared arrays: relaxed, on elements of 32 bits. They give the
//! old element.

use crate::functions::Function;
use crate::language::Msl;
use magpie_gpu::text::{Emit, Text};
use magpie_mpir::Inst;
use magpie_types::PrimType;
use std::fmt::Write;

impl Msl<'_> {
    /// The operation `atomic_NAME_explicit` with operand 2. Floats have a function of ours, which
    /// takes the operand behind a sign.
    pub(crate) fn atomic(
        &mut self,
        text: &mut Text<'_>,
        i: Inst,
        name: &str,
        of_floats: Option<(&str, Function)>,
    ) -> Emit {
        let value = text.arg(i, 2)?;
        if text.shape_of_result(i)?.prim == PrimType::F32 {
            let Some((sign, function)) = of_floats else {
                return Err(text.broken_at(i, "bits of floats"));
            };
            self.functions.call(function);
            text.open_result(self, i)?;
            let _ = write!(text.out, "{}(", function.name());
            self.write_atomic_place(text, i, "atomic_uint")?;
            let _ = write!(text.out, ", {sign}");
            match sign {
                "" => text.argument(self, value)?,
                _ => text.operand(self, value)?,
            }
            text.out.push(')');
        } else {
            let atomic = self.atomic_type(text, i)?;
            text.open_result(self, i)?;
            let _ = write!(text.out, "atomic_{name}_explicit(");
            self.write_atomic_place(text, i, atomic)?;
            text.out.push_str(", ");
            text.argument(self, value)?;
            text.out.push_str(", memory_order_relaxed)");
        }
        text.end_statement();
        Ok(())
    }

    /// A compare-and-swap of operands 2 and 3.
    pub(crate) fn atomic_cas(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let atomic = self.atomic_type(text, i)?;
        self.functions.call(Function::CompareExchange);
        text.open_result(self, i)?;
        let _ = write!(text.out, "{}(", Function::CompareExchange.name());
        self.write_atomic_place(text, i, atomic)?;
        for n in 2..4 {
            let value = text.arg(i, n)?;
            text.out.push_str(", ");
            text.argument(self, value)?;
        }
        text.out.push(')');
        text.end_statement();
        Ok(())
    }

    fn atomic_type(&self, text: &Text<'_>, i: Inst) -> Emit<&'static str> {
        match text.shape_of_result(i)?.prim {
            PrimType::I32 => Ok("atomic_int"),
            PrimType::U32 => Ok("atomic_uint"),
            _ => Err(text.broken_at(i, "elements that no atomic operation takes")),
        }
    }
}
