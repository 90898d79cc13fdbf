//! The choice of a lowering for each op.

use super::FnLowering;
use crate::{Inst, Op};

impl FnLowering<'_, '_, '_> {
    /// Lowers one instruction that is no phi.
    pub(super) fn inst(&mut self, i: Inst) {
        let leaves = match self.old.inst(i).op {
            crate::integer_ops!()
            | crate::trap_ops!()
            | crate::float_ops!()
            | crate::icmp_ops!()
            | crate::fcmp_ops!()
            | crate::vector_ops!()
            | Op::Cast => self.scalar_op(i),
            Op::BitsCast => self.bits_cast(i),
            Op::MemLoad | Op::MemStore | Op::PtrAdd => self.raw_memory(i),
            Op::Select => self.select(i),
            Op::StructNew => self.struct_new(i),
            Op::StructGet => self.struct_get(i),
            Op::LeafGet => self.leaf_get(i),

            Op::Call => self.call(i),
            Op::RtCall => self.rt_call(i),
            Op::CallIndirect => self.call_indirect(i),
            Op::CallableCapture => self.callable_capture(i),
            Op::Panic => self.panic_with_text(i),
            Op::GpuLaunch | Op::GpuLaunchAsync | Op::GpuLaunchProfiled => self.launch(i),

            Op::BorrowShared | Op::BorrowMut => self.borrow(i),
            Op::Share => self.share(i),
            Op::CloneShared | Op::CloneWeak => self.clone_handle(i),
            Op::WeakDowngrade => self.weak_downgrade(i),
            Op::WeakUpgrade => self.weak_upgrade(i),
            Op::Retain => self.retain_operand(i),
            Op::Release => self.release_operand(i),
            Op::New => self.new_object(i),
            Op::GetField => self.get_field(i),
            Op::SetField => self.set_field(i),
            Op::FieldPlace => self.field_place(i),

            Op::EnumNew => self.enum_new(i),
            Op::EnumTag => self.enum_tag(i),
            Op::EnumIs => self.enum_is(i),
            Op::EnumPayload => self.enum_payload(i),

            Op::ArrNew => self.arr_new(i),
            Op::ArrFrom => self.arr_from(i),
            Op::ArrLen => self.arr_len(i),
            Op::ArrGet => self.arr_get(i),
            Op::ArrSet => self.arr_set(i),
            Op::ArrPlace => self.arr_place(i),
            Op::ArrPush => self.arr_push(i),
            Op::ArrPop => self.arr_pop(i),
            Op::ArrSlice => self.arr_slice(i),
            Op::ArrContains => self.arr_contains(i),
            Op::ArrSort => self.arr_sort(i),
            Op::ArrMap => self.arr_map(i),
            Op::ArrFilter => self.arr_filter(i),
            Op::ArrReduce => self.arr_reduce(i),
            Op::ArrForeach => self.arr_foreach(i),

            Op::MapNew => self.map_new(i),
            Op::MapSet => self.map_set(i),
            Op::MapGet => self.map_get(i),
            Op::MapGetRef => self.map_get_ref(i),
            Op::MapPlace => self.map_place(i),
            Op::MapLen => self.map_len(i),
            Op::MapContainsKey => self.map_contains_key(i),
            Op::MapDelete => self.map_delete(i),
            Op::MapDeleteVoid => self.map_delete_void(i),
            Op::MapKeys | Op::MapValues => self.map_list(i),

            op @ (crate::id_ops!()
            | crate::atomic_ops!()
            | crate::subgroup_ops!()
            | crate::access_ops!()
            | Op::Phi
            | Op::GpuBufferLen
            | Op::GpuShared
            | Op::GpuLocal
            | Op::GpuBarrier
            | Op::GpuPrint
            | Op::StackSlot
            | Op::FnAddr
            | Op::TypeInfoAddr
            | Op::RtRaw
            | Op::CallAddr) => unreachable!("the verifier keeps {op:?} out of host code"),
        };
        self.define(i, leaves);
    }
}
