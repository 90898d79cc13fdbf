//! Atomic operations on buffers and shared arrays: relaxed, on elements of 32 bits.

use crate::functions::Function;
use crate::language::Msl;
use magpie_gpu::text::{Emit, Text};
use magpie_mpir::{Inst, Op};
use magpie_types::PrimType;

impl Msl<'_> {
    /// Writes an atomic operation. It gives the old element.
    pub(crate) fn write_atomic(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let op = text.f.inst(i).op;
        match text.shape_of_result(i)?.prim {
            PrimType::F32 => self.write_float_atomic(text, i),
            PrimType::I32 if op == Op::GpuAtomicCas => {
                self.exchange_if(text, i, "atomic_int", false)
            }
            PrimType::U32 if op == Op::GpuAtomicCas => {
                self.exchange_if(text, i, "atomic_uint", false)
            }
            PrimType::I32 => self.fetch(text, i, "atomic_int"),
            PrimType::U32 => self.fetch(text, i, "atomic_uint"),
            _ => Err(text.broken_at(i, "elements that no atomic operation takes")),
        }
    }

    fn fetch(&mut self, text: &mut Text<'_>, i: Inst, atomic: &str) -> Emit {
        let name = match text.f.inst(i).op {
            Op::GpuAtomicAdd => "atomic_fetch_add_explicit",
            Op::GpuAtomicSub => "atomic_fetch_sub_explicit",
            Op::GpuAtomicMin => "atomic_fetch_min_explicit",
            Op::GpuAtomicMax => "atomic_fetch_max_explicit",
            Op::GpuAtomicAnd => "atomic_fetch_and_explicit",
            Op::GpuAtomicOr => "atomic_fetch_or_explicit",
            Op::GpuAtomicXor => "atomic_fetch_xor_explicit",
            _ => "atomic_exchange_explicit",
        };
        text.open_result(self, i)?;
        text.out.push_str(name);
        text.out.push('(');
        self.write_atomic_place(text, i, atomic)?;
        text.out.push_str(", ");
        let value = text.arg(i, 2)?;
        text.argument(self, value)?;
        text.out.push_str(", memory_order_relaxed)");
        text.end_statement();
        Ok(())
    }

    /// A compare-and-swap, of bits when the elements are floats.
    fn exchange_if(&mut self, text: &mut Text<'_>, i: Inst, atomic: &str, as_bits: bool) -> Emit {
        self.functions.call(Function::CompareExchange);
        text.open_result(self, i)?;
        text.out.push_str(if as_bits {
            "as_type<float>(magpie_compare_exchange("
        } else {
            "magpie_compare_exchange("
        });
        self.write_atomic_place(text, i, atomic)?;
        for n in 2..4 {
            let value = text.arg(i, n)?;
            text.out.push_str(if as_bits { ", as_type<uint>(" } else { ", " });
            text.argument(self, value)?;
            text.out.push_str(if as_bits { ")" } else { "" });
        }
        text.out.push_str(if as_bits { "))" } else { ")" });
        text.end_statement();
        Ok(())
    }

    /// Operations on the bits of floats.
    fn write_float_atomic(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let (function, call, negate) = match text.f.inst(i).op {
            Op::GpuAtomicCas => return self.exchange_if(text, i, "atomic_uint", true),
            Op::GpuAtomicAdd => (Function::AtomicAdd, "magpie_atomic_add(", false),
            Op::GpuAtomicSub => (Function::AtomicAdd, "magpie_atomic_add(", true),
            Op::GpuAtomicMin => (Function::AtomicMin, "magpie_atomic_min(", false),
            Op::GpuAtomicMax => (Function::AtomicMax, "magpie_atomic_max(", false),
            Op::GpuAtomicExchange => {
                let value = text.arg(i, 2)?;
                text.open_result(self, i)?;
                text.out.push_str("as_type<float>(atomic_exchange_explicit(");
                self.write_atomic_place(text, i, "atomic_uint")?;
                text.out.push_str(", as_type<uint>(");
                text.argument(self, value)?;
                text.out.push_str("), memory_order_relaxed))");
                text.end_statement();
                return Ok(());
            }
            _ => return Err(text.broken_at(i, "bitwise on floats")),
        };
        self.functions.call(function);
        let value = text.arg(i, 2)?;
        text.open_result(self, i)?;
        text.out.push_str(call);
        self.write_atomic_place(text, i, "atomic_uint")?;
        text.out.push_str(", ");
        if negate {
            text.out.push('-');
            text.operand(self, value)?;
        } else {
            text.argument(self, value)?;
        }
        text.out.push(')');
        text.end_statement();
        Ok(())
    }
}
