//! Arrays: length, reading and writing inline, the rest by the runtime.

use super::FnLowering;
use crate::{Inst, Op, Value};
use magpie_types::abi::object_layout::{ARR_DATA, ARR_LEN};
use magpie_types::abi::{PanicKind, RtFn};
use magpie_types::{TypeId, TypeKind, fixed};

impl FnLowering<'_, '_, '_> {
    /// The element type of the array that an operand is or shows.
    pub(super) fn element_type(&self, array: Value) -> TypeId {
        let ty = self.ty(array);
        match self.l.types().kind(self.view_target(ty).unwrap_or(ty)) {
            TypeKind::Array(element) => element,
            kind => unreachable!("{kind:?} is no array"),
        }
    }

    /// An index or a length as `i64`. One that is negative or past the signed numbers stays
    /// negative, which no valid one is.
    pub(super) fn index_operand(&mut self, v: Value) -> Value {
        let v = self.one(v);
        self.b.cast(v, fixed::I64)
    }

    /// A length as the result of instruction `i`.
    pub(super) fn length_result(&mut self, i: Inst, len: Value) -> Vec<Value> {
        let ty = self.old.inst(i).ty;
        vec![self.b.cast(len, ty)]
    }

    pub(super) fn array_len(&mut self, array: Value) -> Value {
        self.load_low(fixed::I64, array, ARR_LEN)
    }

    /// The address of element `index` (`i64`), which exists.
    pub(super) fn element_address(&mut self, array: Value, element: TypeId, index: Value) -> Value {
        let data = self.load_low(self.l.address, array, ARR_DATA);
        let stride = self.l.types().stride(element);
        let bytes = if stride == 1 {
            index
        } else {
            let stride = self.i64(stride as i64);
            self.b.same(Op::IMul, &[index, stride])
        };
        self.b.value(Op::PtrAdd, self.l.address, &[data, bytes], 0)
    }

    /// The address of the element that an index operand names; panics outside.
    fn checked_element(&mut self, array: Value, element: TypeId, index: Value) -> Value {
        let index = self.index_operand(index);
        let len = self.array_len(array);
        let inside = self.b.compare(Op::IcmpUlt, index, len);
        self.require(inside, PanicKind::IndexOutOfBounds, Some((index, len)));
        self.element_address(array, element, index)
    }

    pub(super) fn new_array(&mut self, element: TypeId, capacity: Value) -> Value {
        let info = self.type_info(element, 0);
        self.rt_value(RtFn::ArrNew, self.l.address, &[info, capacity])
    }

    pub(super) fn push(&mut self, array: Value, element: TypeId, leaves: &[Value]) {
        let slot = self.spill(element, leaves);
        self.rt(RtFn::ArrPush, &[array, slot]);
    }

    fn result_element(&self, i: Inst) -> TypeId {
        match self.l.types().kind(self.old.inst(i).ty) {
            TypeKind::Array(element) => element,
            kind => unreachable!("{kind:?} is no array"),
        }
    }

    pub(super) fn arr_new(&mut self, i: Inst) -> Vec<Value> {
        let capacity = self.index_operand(self.old.arg(i, 0));
        vec![self.new_array(self.result_element(i), capacity)]
    }

    /// The room for all elements is there: they are stored one by one, then the length.
    pub(super) fn arr_from(&mut self, i: Inst) -> Vec<Value> {
        let old = self.old;
        let element = self.result_element(i);
        let len = self.i64(old.args(i).len() as i64);
        let array = self.new_array(element, len);
        if !old.args(i).is_empty() {
            let data = self.load_low(self.l.address, array, ARR_DATA);
            let stride = self.l.types().stride(element);
            for (n, &v) in old.args(i).iter().enumerate() {
                let leaves = self.get(v);
                self.store(element, data, stride * n as u32, &leaves);
            }
            self.b.effect(Op::MemStore, &[array, len], ARR_LEN as u64);
        }
        vec![array]
    }

    pub(super) fn arr_len(&mut self, i: Inst) -> Vec<Value> {
        let array = self.one(self.old.arg(i, 0));
        let len = self.array_len(array);
        self.length_result(i, len)
    }

    pub(super) fn arr_get(&mut self, i: Inst) -> Vec<Value> {
        let (v, index) = (self.old.arg(i, 0), self.old.arg(i, 1));
        let element = self.element_type(v);
        let array = self.one(v);
        let address = self.checked_element(array, element, index);
        self.show(element, self.old.inst(i).ty, address, 0)
    }

    pub(super) fn arr_set(&mut self, i: Inst) -> Vec<Value> {
        let &[v, index, value] = self.old.args(i) else { unreachable!("arr.set has 3 operands") };
        let element = self.element_type(v);
        let array = self.one(v);
        let address = self.checked_element(array, element, index);
        self.replace(element, address, 0, value);
        Vec::new()
    }

    pub(super) fn arr_push(&mut self, i: Inst) -> Vec<Value> {
        let (v, value) = (self.old.arg(i, 0), self.old.arg(i, 1));
        let (array, leaves) = (self.one(v), self.get(value));
        self.push(array, self.element_type(v), &leaves);
        Vec::new()
    }

    pub(super) fn arr_pop(&mut self, i: Inst) -> Vec<Value> {
        let array = self.one(self.old.arg(i, 0));
        self.rt_result(RtFn::ArrPop, &[array], self.old.inst(i).ty)
    }

    pub(super) fn arr_slice(&mut self, i: Inst) -> Vec<Value> {
        let &[v, start, end] = self.old.args(i) else { unreachable!("arr.slice has 3 operands") };
        let array = self.one(v);
        let (start, end) = (self.index_operand(start), self.index_operand(end));
        vec![self.rt_value(RtFn::ArrSlice, self.l.address, &[array, start, end])]
    }

    pub(super) fn arr_contains(&mut self, i: Inst) -> Vec<Value> {
        let (v, value) = (self.old.arg(i, 0), self.old.arg(i, 1));
        let element = self.element_type(v);
        let array = self.one(v);
        let address = self.address_of(value, element);
        let eq = self.comparator(self.old.inst(i).imm_lo(), element);
        vec![self.rt_value(RtFn::ArrContains, fixed::BOOL, &[array, address, eq])]
    }

    pub(super) fn arr_sort(&mut self, i: Inst) -> Vec<Value> {
        let v = self.old.arg(i, 0);
        let element = self.element_type(v);
        let array = self.one(v);
        let ord = self.comparator(self.old.inst(i).imm_lo(), element);
        self.rt(RtFn::ArrSort, &[array, ord]);
        Vec::new()
    }
}
