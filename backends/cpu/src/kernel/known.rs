//! Arithmetic on what is known when code is generated, such as the bounds of loops.

use super::emit::Emitter;
use crate::pure::{Pure, constant};
use cranelift_codegen::ir::{self, InstructionData, Opcode};
use magpie_mpir::Op;
use magpie_mpir::eval::eval;
use magpie_types::PrimType;

impl Emitter<'_, '_, '_> {
    /// The bits of an integer that is a constant.
    pub(crate) fn known(&self, v: ir::Value) -> Option<u64> {
        let dfg = &self.b.func.dfg;
        match dfg.insts[dfg.value_def(v).inst()?] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(imm.bits() as u64),
            _ => None,
        }
    }

    /// A pure op: done at once when its operands are known integers, else emitted.
    pub(crate) fn pure(
        &mut self,
        op: Op,
        from: PrimType,
        to: PrimType,
        args: &[ir::Value],
    ) -> Option<ir::Value> {
        let bits: Option<Vec<u64>> = args.iter().map(|&v| self.known(v)).collect();
        let done = bits.filter(|_| !to.is_float()).and_then(|bits| eval(op, from, to, &bits));
        match done {
            Some(bits) => Some(constant(&mut self.b, to, bits)),
            None => Pure { b: &mut self.b, calls: self.code }.emit(op, from, to, args),
        }
    }

    /// An op on integers, which always has a result.
    pub(crate) fn integer_op(
        &mut self,
        op: Op,
        [from, to]: [PrimType; 2],
        args: &[ir::Value],
    ) -> ir::Value {
        self.pure(op, from, to, args).expect("the op is pure")
    }
}
