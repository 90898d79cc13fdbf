//! Operations of a subgroup: between two regions, on the operands that the invocations left in the
//! frame, by a function of this crate.

use super::carried::Carry;
use super::emit::{Emitter, prim_of};
use crate::helpers::Helper;
use crate::pure::Calls;
use cranelift_codegen::ir::{self, InstBuilder, types};
use magpie_mpir::eval::SubgroupOp;
use magpie_mpir::{Inst, Value};
use magpie_types::PrimType;
use magpie_types::kernel::HOST_SUBGROUP_SIZE;

impl Emitter<'_, '_, '_> {
    /// Executes an operation for all subgroups of the workgroup. Invocations take part when the
    /// region with this turn is their next, or always when they do not part.
    pub(crate) fn subgroup_operation(&mut self, i: Inst, turn: u32) {
        let f = self.f;
        let data = f.inst(i);
        let (Some(op), Some(result)) = (SubgroupOp::of(data.op), data.result()) else { return };
        let prim = prim_of(self.module, f.ty(f.arg(i, 0)));
        let kind = self.b.ins().iconst(types::I64, op as i64 | (prim.id().0 as i64) << 8);
        let none = self.b.ins().iconst(types::I64, 0);
        let value = self.slot_of_all(f.arg(i, 0));
        let lane = f.args(i).get(1).map_or(none, |&v| self.slot_of_all(v));
        let result = self.slot_of_all(result);
        let next = match self.memory.next_region {
            Some(offset) => self.frame_of_all(offset),
            None => none,
        };
        let turn = self.b.ins().iconst(types::I64, i64::from(turn));
        let helper = self.code.helper(self.b.func, Helper::Subgroup);
        let arguments = [kind, self.launch.invocations, value, lane, next, turn, result];
        self.b.ins().call(helper, &arguments);
    }

    /// What the operation gave this invocation.
    pub(crate) fn subgroup_result(&mut self, i: Inst) -> Option<ir::Value> {
        let (v, prim) = (self.f.inst(i).result()?, prim_of(self.module, self.f.inst(i).ty));
        match self.carried.get(v) {
            Carry::Frame(offset) => Some(self.load_slot(offset, prim)),
            Carry::No | Carry::Again | Carry::Scalar(_) => None,
        }
    }

    pub(crate) fn lane_id(&mut self) -> ir::Value {
        let linear = self.b.use_var(self.counters.linear);
        let linear = self.b.ins().ireduce(types::I32, linear);
        self.b.ins().band_imm_u(linear, i64::from(HOST_SUBGROUP_SIZE - 1))
    }

    /// The address of a carried value of the first invocation; the others' follow.
    fn slot_of_all(&mut self, v: Value) -> ir::Value {
        match self.carried.get(v) {
            Carry::Frame(offset) => self.frame_of_all(self.memory.slots + offset),
            Carry::No | Carry::Again | Carry::Scalar(_) => self.missing(v),
        }
    }
}

/// Executes a subgroup operation for a workgroup.
///
/// `kind` is the operation and, from bit 8 on, the type of its first operand. `values`, `others` and
/// `results` have one element for each invocation, `next` too unless it is null; `others` is null
/// for an operation of one operand.
pub(crate) extern "C" fn execute(
    kind: u64,
    invocations: u64,
    values: *const u8,
    others: *const u32,
    next: *const u32,
    turn: u64,
    results: *mut u8,
) {
    let op = SubgroupOp::ALL.get((kind & 0xff) as usize);
    let prim = PrimType::from_id(magpie_types::TypeId((kind >> 8) as u32));
    let (Some(&op), Some(prim)) = (op, prim) else { return };
    let size = prim.size() as usize;
    let result_size = op.result_type(prim).size() as usize;
    let mut operands = [None; HOST_SUBGROUP_SIZE as usize];
    let mut out = [0; HOST_SUBGROUP_SIZE as usize];
    for first in (0..invocations as usize).step_by(operands.len()) {
        let lanes = operands.len().min(invocations as usize - first);
        for (n, slot) in operands[..lanes].iter_mut().enumerate() {
            let at = first + n;
            // SAFETY: the work-group function passes arrays of its frame with an element for each
            // invocation, and invocations that are on their way here have written theirs.
            *slot = unsafe {
                let takes_part = next.is_null() || u64::from(next.add(at).read()) == turn;
                takes_part.then(|| {
                    let mut value = [0; 8];
                    let from = values.add(at * size);
                    std::ptr::copy_nonoverlapping(from, value.as_mut_ptr(), size);
                    let other = if others.is_null() { 0 } else { others.add(at).read() };
                    [u64::from_le_bytes(value), u64::from(other)]
                })
            };
        }
        op.apply(prim, &operands[..lanes], &mut out);
        for (n, _) in operands[..lanes].iter().enumerate().filter(|(_, o)| o.is_some()) {
            let value = out[n].to_le_bytes();
            // SAFETY: as above; the elements have `result_size` bytes.
            unsafe {
                let to = results.add((first + n) * result_size);
                std::ptr::copy_nonoverlapping(value.as_ptr(), to, result_size);
            }
        }
    }
}
