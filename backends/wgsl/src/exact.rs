//! Strict arithmetic. WGSL lets a compiler fuse, reorder and simplify float arithmetic as if there
//! were no NaN, no infinity and one zero only. Operands that it cannot see through keep it from
//! doing so: they are combined with a zero of which it does not know that it is one.

use crate::functions::Function;
use crate::language::Wgsl;
use magpie_gpu::text::{Emit, Text};
use magpie_mpir::{Const, Flags, Inst, Op, Value, ValueDef};
use magpie_types::kernel::ParamLayout;

/// Freedoms under which numbers are as in a textbook.
const FINITE: Flags = Flags(Flags::NNAN.0 | Flags::NSZ.0);

impl Wgsl {
    /// Writes a sum, difference or product.
    pub(crate) fn float_binary(&mut self, text: &mut Text<'_>, i: Inst, op: &str) -> Emit {
        let [a, b] = [text.arg(i, 0)?, text.arg(i, 1)?];
        let flags = text.f.inst(i).flags;
        self.guarded(text, a, needs_guard(text, flags, a).then_some(Function::Exact))?;
        text.out.push_str(op);
        // x - x is not zero when x is infinite: the second is made in another way.
        let is_same = a == b && text.f.inst(i).op == Op::FSub && !flags.contains(Flags::NNAN);
        let guard = match is_same {
            true => Some(Function::ExactAgain),
            false => needs_guard(text, flags, b).then_some(Function::Exact),
        };
        self.guarded(text, b, guard)
    }

    fn guarded(&mut self, text: &mut Text<'_>, v: Value, guard: Option<Function>) -> Emit {
        let Some(function) = guard else { return text.operand(self, v) };
        let shape = text.shape_of(v)?;
        self.open_call(text, function, shape);
        text.argument(self, v)?;
        let zero = self.zero();
        text.out.push_str(", ");
        text.out.push_str(zero);
        text.out.push(')');
        Ok(())
    }
}

/// Whether a compiler that sees where an operand comes from could change the result.
fn needs_guard(text: &Text<'_>, flags: Flags, v: Value) -> bool {
    if let Some(c) = text.f.as_const(v) {
        let is_zero = match c {
            // Either sign.
            Const::Bits(bits) => matches!(bits, 0 | 0x8000 | 0x8000_0000),
            Const::Zero => true,
            Const::Unit | Const::Str(_) => false,
        };
        return is_zero && !flags.contains(FINITE);
    }
    let Some(def) = text.f.def_inst(v) else { return false };
    let inst = text.f.inst(def);
    match inst.op {
        // It may be fused: then it is not rounded.
        Op::FMul if flags.intersect(inst.flags).contains(Flags::CONTRACT) => false,
        magpie_mpir::float_ops!() | magpie_mpir::vector_ops!() | Op::Select | Op::Phi => {
            !flags.contains(Flags::REASSOC)
        }
        // A compiler may take the number from where the kernel stored it, or from before its bits
        // were looked at.
        Op::GpuBufferLoad | Op::GpuLeafLoad => {
            !flags.contains(Flags::REASSOC) && is_written(text, text.f.arg(def, 0))
        }
        Op::BitsCast => !flags.contains(Flags::REASSOC),
        // Numbers from elsewhere.
        magpie_mpir::integer_ops!()
        | magpie_mpir::trap_ops!()
        | magpie_mpir::icmp_ops!()
        | magpie_mpir::fcmp_ops!()
        | magpie_mpir::struct_ops!()
        | magpie_mpir::id_ops!()
        | magpie_mpir::atomic_ops!()
        | magpie_mpir::subgroup_ops!()
        | Op::GpuBufferStore
        | Op::GpuLeafStore
        | magpie_mpir::ownership_ops!()
        | magpie_mpir::object_ops!()
        | magpie_mpir::launch_ops!()
        | magpie_mpir::low_host_ops!()
        | Op::Cast
        | Op::GpuBufferLen
        | Op::GpuShared
        | Op::GpuLocal
        | Op::GpuBarrier
        | Op::GpuPrint
        | Op::Call
        | Op::RtCall
        | Op::CallIndirect
        | Op::CallableCapture
        | Op::Panic => false,
    }
}

/// Whether a buffer or an array may hold what the kernel stored.
fn is_written(text: &Text<'_>, memory: Value) -> bool {
    let ValueDef::Param(n) = text.f.def(memory) else { return true };
    match text.layout.params.get(n as usize) {
        Some(ParamLayout::Buffer(buffer)) => buffer.writes,
        Some(ParamLayout::Scalar { .. }) | None => true,
    }
}
