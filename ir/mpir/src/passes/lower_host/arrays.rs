//! Arrays: length, reading and writing inline, the rest by the runtime.

use super::FnLowering;
use crate::analysis::{User, Uses};
use crate::{Flags, Inst, Op, Value, ownership};
use magpie_types::abi::object_layout::{ARR_CAP, ARR_DATA, ARR_LEN};
use magpie_types::abi::{PanicKind, RtFn};
use magpie_types::{Layout, PrimType, TypeId, TypeKind, fixed};

/// A handle in lowered code.
#[derive(Clone, Copy)]
pub(super) struct Handle {
    pub(super) v: Value,
    /// Whether it is that of a live object wherever it is known, and not null on some ways.
    is_object: bool,
}

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

    /// Loads what describes an array or a text. That it may be done early is said where the handle
    /// is certainly one of a live object.
    pub(super) fn load_header(&mut self, ty: TypeId, handle: Handle, offset: u32) -> Value {
        self.b.set_flags(if handle.is_object { Flags::HEADER } else { Flags::NONE });
        let loaded = self.load_low(ty, handle.v, offset);
        self.b.set_flags(Flags::NONE);
        loaded
    }

    fn set_length(&mut self, array: Value, len: Value) {
        self.store_header(array, ARR_LEN, len);
    }

    /// Changes what describes an array or a text.
    pub(super) fn store_header(&mut self, object: Value, offset: u32, v: Value) {
        self.b.set_flags(Flags::HEADER);
        self.b.effect(Op::MemStore, &[object, v], offset as u64);
        self.b.set_flags(Flags::NONE);
    }

    /// The handle of an operand of the old function.
    pub(super) fn handle(&mut self, v: Value) -> Handle {
        Handle { v: self.one(v), is_object: self.is_object(v) }
    }

    pub(super) fn array_len(&mut self, array: Value) -> Value {
        self.load_low(fixed::I64, array, ARR_LEN)
    }

    /// The address of element `index` (`i64`), which exists.
    pub(super) fn element_address(&mut self, array: Value, element: TypeId, index: Value) -> Value {
        let data = self.load_low(self.l.address, array, ARR_DATA);
        self.address_in(data, element, index)
    }

    /// The address of element `index` (`i64`) of those that begin at `data`.
    fn address_in(&mut self, data: Value, element: TypeId, index: Value) -> Value {
        let stride = self.l.types().stride(element);
        let bytes = if stride == 1 {
            index
        } else {
            let stride = self.i64(stride as i64);
            self.b.same(Op::IMul, &[index, stride])
        };
        self.b.value(Op::PtrAdd, self.l.address, &[data, bytes], 0)
    }

    /// The length of the array in which instruction `i` finds an element.
    fn indexed_length(&mut self, i: Inst, array: Handle) -> Value {
        match self.old.inst(i).imm {
            0 => self.load_header(fixed::I64, array, ARR_LEN),
            known => self.i64(known as i64),
        }
    }

    /// The address of the element that the index operand of `i` names; panics outside.
    fn checked_element(&mut self, i: Inst, element: TypeId) -> Value {
        let array = self.handle(self.old.arg(i, 0));
        let index = self.index_operand(self.old.arg(i, 1));
        let len = self.indexed_length(i, array);
        let inside = self.b.compare(Op::IcmpUlt, index, len);
        self.require(inside, PanicKind::IndexOutOfBounds, Some((index, len)));
        let data = self.load_header(self.l.address, array, ARR_DATA);
        self.address_in(data, element, index)
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

    /// The room for all elements is there: they are stored one by one.
    pub(super) fn arr_from(&mut self, i: Inst) -> Vec<Value> {
        let old = self.old;
        let element = self.result_element(i);
        let len = self.i64(old.args(i).len() as i64);
        let array = self.new_array(element, len);
        if !old.args(i).is_empty() {
            self.set_length(array, len);
            let handle = Handle { v: array, is_object: true };
            let data = self.load_header(self.l.address, handle, ARR_DATA);
            let stride = self.l.types().stride(element);
            for (n, &v) in old.args(i).iter().enumerate() {
                let leaves = self.get(v);
                self.store(element, data, stride * n as u32, &leaves);
            }
        }
        vec![array]
    }

    pub(super) fn arr_len(&mut self, i: Inst) -> Vec<Value> {
        let array = self.handle(self.old.arg(i, 0));
        let len = self.load_header(fixed::I64, array, ARR_LEN);
        self.length_result(i, len)
    }

    pub(super) fn arr_get(&mut self, i: Inst) -> Vec<Value> {
        let element = self.element_type(self.old.arg(i, 0));
        if self.old.inst(i).flags.contains(Flags::SPECULATIVE) {
            let find = |f: &mut Self, address| f.load_early(element, address, 0);
            return vec![self.element_if_there(i, element, find)];
        }
        let address = self.checked_element(i, element);
        self.show(element, self.old.inst(i).ty, address, 0)
    }

    pub(super) fn arr_place(&mut self, i: Inst) -> Vec<Value> {
        let element = self.element_type(self.old.arg(i, 0));
        if self.old.inst(i).flags.contains(Flags::SPECULATIVE) {
            let find = |f: &mut Self, address| f.place(element, address, 0);
            return vec![self.element_if_there(i, element, find)];
        }
        let address = self.checked_element(i, element);
        vec![self.place(element, address, 0)]
    }

    /// What is found at the address of the element that `i` names, if the index is inside.
    fn element_if_there(
        &mut self,
        i: Inst,
        element: TypeId,
        find: impl FnOnce(&mut Self, Value) -> Value,
    ) -> Value {
        let array = self.handle(self.old.arg(i, 0));
        let index = self.index_operand(self.old.arg(i, 1));
        let len = self.indexed_length(i, array);
        let outside = self.b.compare(Op::IcmpUge, index, len);
        self.unless(outside, element, |f| {
            let data = f.load_header(f.l.address, array, ARR_DATA);
            let address = f.address_in(data, element, index);
            find(f, address)
        })
    }

    /// An array without elements that is never counted: what a view shows where nothing is.
    pub(super) fn empty_array(&mut self) -> Value {
        if let Some(array) = self.empty_array {
            return array;
        }
        let layout = Layout { size: ARR_DATA + 8, align: 8 };
        let array = self.slots.make_initialised(&mut self.b, self.l.address, layout, |b, array| {
            let zero = b.const_bits(fixed::I64, 0);
            let address = b.ty(array);
            let null = b.func().zero(address);
            b.set_flags(Flags::HEADER);
            b.effect(Op::MemStore, &[array, zero], ARR_LEN.into());
            b.effect(Op::MemStore, &[array, null], ARR_DATA.into());
            b.set_flags(Flags::NONE);
        });
        self.empty_array = Some(array);
        array
    }

    pub(super) fn arr_set(&mut self, i: Inst) -> Vec<Value> {
        let element = self.element_type(self.old.arg(i, 0));
        let address = self.checked_element(i, element);
        self.replace(i, element, address, 0, self.old.arg(i, 2));
        Vec::new()
    }

    pub(super) fn arr_push(&mut self, i: Inst) -> Vec<Value> {
        let (v, value) = (self.old.arg(i, 0), self.old.arg(i, 1));
        let (array, leaves) = (self.handle(v), self.get(value));
        let element = self.element_type(v);
        // Without padding, which the runtime makes zero.
        let sizes = leaves.iter().map(|&leaf| self.l.types().layout(self.b.ty(leaf)).size);
        match sizes.sum::<u32>() == self.l.types().stride(element) {
            true => self.push_in_place(array, element, &leaves),
            false => self.push(array.v, element, &leaves),
        }
        Vec::new()
    }

    /// Appends an element, when there is room for it.
    fn push_in_place(&mut self, array: Handle, element: TypeId, leaves: &[Value]) {
        let len = self.load_header(fixed::I64, array, ARR_LEN);
        let room = self.load_header(fixed::I64, array, ARR_CAP);
        let fits = self.b.compare(Op::IcmpUlt, len, room);
        let (store, grow) = (self.b.create_block(), self.b.create_block());
        self.b.cbr(fits, store, grow);
        self.b.seal(grow);
        self.b.switch_to(grow);
        self.rt(RtFn::ArrGrow, &[array.v]);
        self.b.br(store);
        self.b.seal(store);
        self.b.switch_to(store);
        let data = self.load_header(self.l.address, array, ARR_DATA);
        let address = self.address_in(data, element, len);
        self.store(element, address, 0, leaves);
        let one = self.i64(1);
        let longer = self.b.same(Op::IAdd, &[len, one]);
        self.set_length(array.v, longer);
    }

    pub(super) fn arr_pop(&mut self, i: Inst) -> Vec<Value> {
        let v = self.old.arg(i, 0);
        let (array, element) = (self.one(v), self.element_type(v));
        let zeros = self.zeros(self.old.inst(i).ty);
        let result = self.variables(&zeros);
        let len = self.array_len(array);
        let zero = self.i64(0);
        let is_empty = self.b.compare(Op::IcmpEq, len, zero);
        let (take, done) = (self.b.create_block(), self.b.create_block());
        self.b.cbr(is_empty, done, take);
        self.b.seal(take);
        self.b.switch_to(take);
        let one = self.i64(1);
        let last = self.b.same(Op::ISub, &[len, one]);
        let address = self.element_address(array, element, last);
        let taken = self.load(element, address, 0);
        self.set_length(array, last);
        let tag = self.i32(1);
        for (&var, leaf) in result.iter().zip([tag].into_iter().chain(taken)) {
            self.b.write(var, leaf);
        }
        self.b.br(done);
        self.b.seal(done);
        self.b.switch_to(done);
        result.into_iter().map(|var| self.b.read(var)).collect()
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
        let is_number = PrimType::from_id(element).is_some_and(|p| p.is_int());
        if is_number && self.old.inst(i).imm_lo() == 0 && self.ty(value) == element {
            if element == fixed::I32
                && let Some(characters) = self.characters_in(v)
            {
                let code = self.one(value);
                return vec![self.is_one_of(&characters, code)];
            }
            return vec![self.contains_number(v, element, value)];
        }
        let array = self.one(v);
        let address = self.address_of(value, element);
        let eq = self.comparator(self.old.inst(i).imm_lo(), element);
        vec![self.rt_value(RtFn::ArrContains, fixed::BOOL, &[array, address, eq])]
    }

    /// The elements of an array that is made of ASCII characters and only looked at.
    fn characters_in(&mut self, array: Value) -> Option<Vec<u8>> {
        let old = self.old;
        let array = ownership::viewed(old, array);
        let from = old.def_inst(array).filter(|&i| old.inst(i).op == Op::ArrFrom)?;
        let bits = |&v: &Value| old.as_bits(v).filter(|&bits| bits < 128).map(|bits| bits as u8);
        let characters: Vec<u8> = old.args(from).iter().map(bits).collect::<Option<_>>()?;
        self.is_only_looked_at(array).then_some(characters)
    }

    /// Whether nothing may change an object that is made in this function.
    fn is_only_looked_at(&mut self, object: Value) -> bool {
        let old = self.old;
        let uses = self.uses.get_or_insert_with(|| Uses::new(old));
        let mut shown = vec![object];
        while let Some(v) = shown.pop() {
            for &user in uses.of(v) {
                let User::Inst(i, _) = user else { return false };
                match old.inst(i).op {
                    Op::ArrContains | Op::ArrLen | Op::Release => {}
                    Op::ArrGet if self.l.types().is_copy(old.inst(i).ty) => {}
                    Op::BorrowShared => shown.extend(old.inst(i).result()),
                    _ => return false,
                }
            }
        }
        true
    }

    /// Whether an array holds a number: they are compared one by one.
    fn contains_number(&mut self, array: Value, element: TypeId, wanted: Value) -> Value {
        let (array, wanted) = (self.handle(array), self.one(wanted));
        let len = self.load_header(fixed::I64, array, ARR_LEN);
        let data = self.load_header(self.l.address, array, ARR_DATA);
        let (index, found) = (self.b.declare(fixed::I64), self.b.declare(fixed::BOOL));
        let (zero, no) = (self.i64(0), self.b.func().const_bool(false));
        self.b.write(index, zero);
        self.b.write(found, no);
        let [head, inside, next, done] = std::array::from_fn(|_| self.b.create_block());
        self.b.br(head);
        self.b.switch_to(head);
        let at = self.b.read(index);
        let more = self.b.compare(Op::IcmpSlt, at, len);
        self.b.cbr(more, inside, done);
        self.b.seal(inside);
        self.b.switch_to(inside);
        let address = self.address_in(data, element, at);
        let value = self.load_low(element, address, 0);
        let is_equal = self.b.compare(Op::IcmpEq, value, wanted);
        self.b.write(found, is_equal);
        self.b.cbr(is_equal, done, next);
        self.b.seal(next);
        self.b.switch_to(next);
        let one = self.i64(1);
        let after = self.b.same(Op::IAdd, &[at, one]);
        self.b.write(index, after);
        self.b.br(head);
        self.b.seal(head);
        self.b.seal(done);
        self.b.switch_to(done);
        self.b.read(found)
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
