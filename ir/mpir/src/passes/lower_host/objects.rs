//! Views, shared and weak handles, heap structs.

use super::FnLowering;
use crate::{Const, Flags, Inst, Op, Value, ValueDef};
use magpie_types::abi::RtFn;
use magpie_types::abi::object_layout::{FLAG_HAD_WEAK, FLAG_IMMORTAL, FLAGS, STRONG};
use magpie_types::{Category, TypeId, TypeKind, fixed};

impl FnLowering<'_, '_, '_> {
    /// A view of an object is its handle; anything else is copied to where the view can point.
    pub(super) fn borrow(&mut self, i: Inst) -> Vec<Value> {
        let v = self.old.arg(i, 0);
        let ty = self.ty(v);
        let leaves = self.get(v).to_vec();
        let is_view = self.view_target(ty).is_some();
        if is_view || self.l.types().is_heap(ty) {
            return leaves;
        }
        let slot = self.own_slot(ty);
        self.store(ty, slot, 0, &leaves);
        vec![slot]
    }

    /// An owned handle is a counted one.
    pub(super) fn share(&mut self, i: Inst) -> Vec<Value> {
        self.get(self.old.arg(i, 0)).to_vec()
    }

    pub(super) fn clone_handle(&mut self, i: Inst) -> Vec<Value> {
        let v = self.old.arg(i, 0);
        let leaves = self.get(v).to_vec();
        self.retain(self.ty(v), &leaves);
        leaves
    }

    pub(super) fn weak_downgrade(&mut self, i: Inst) -> Vec<Value> {
        let v = self.old.arg(i, 0);
        let handle = self.one(v);
        // The runtime takes one strong count for the weak one.
        self.retain(self.ty(v), &[handle]);
        let low = self.l.low(self.old.inst(i).ty);
        vec![self.rt_value(RtFn::WeakDowngrade, low, &[handle])]
    }

    pub(super) fn weak_upgrade(&mut self, i: Inst) -> Vec<Value> {
        let handle = self.one(self.old.arg(i, 0));
        let low = self.l.low(self.ty(self.old.arg(i, 0)));
        let strong = self.rt_value(RtFn::WeakUpgrade, low, &[handle]);
        let gone = self.is_null(strong);
        let (none, some) = (self.i32(0), self.i32(1));
        let tag = self.b.select(gone, none, some);
        vec![tag, strong]
    }

    pub(super) fn retain_operand(&mut self, i: Inst) -> Vec<Value> {
        let v = self.old.arg(i, 0);
        let leaves = self.get(v);
        self.retain(self.ty(v), &leaves);
        Vec::new()
    }

    pub(super) fn release_operand(&mut self, i: Inst) -> Vec<Value> {
        if self.moves.contains_key(&i) {
            return Vec::new();
        }
        let v = self.old.arg(i, 0);
        match self.code_of_text(v) {
            Some(code) => self.release_character(v, code),
            None => {
                let leaves = self.get(v);
                self.release(self.ty(v), &leaves);
            }
        }
        Vec::new()
    }

    /// Whether a handle of the old function is that of a live object wherever it is defined. One
    /// that was taken out of an option, say, is null where the option is empty.
    pub(super) fn is_object(&self, mut v: Value) -> bool {
        loop {
            let i = match self.old.def(v) {
                ValueDef::Param(_) => return true,
                ValueDef::Const(_) => return false,
                ValueDef::Inst(i) => i,
            };
            match self.old.inst(i).op {
                Op::BorrowShared | Op::BorrowMut => v = self.old.arg(i, 0),
                op => {
                    return matches!(
                        op,
                        Op::RtCall
                            | Op::Call
                            | Op::ArrNew
                            | Op::ArrFrom
                            | Op::New
                            | Op::ArrGet
                            | Op::GetField
                            | Op::MapGetRef
                            | Op::ArrPlace
                            | Op::FieldPlace
                            | Op::MapPlace
                    );
                }
            }
        }
    }

    /// Whether values of a type are handles whose lowered form is an address.
    pub(super) fn is_address(&self, ty: TypeId) -> bool {
        self.l.types().is_heap(ty) && self.l.low(ty) == self.l.address
    }

    /// An exclusive view of a part of type `part` at `address + offset`: of an object, its only
    /// handle, which then lies there; of anything else its address.
    pub(super) fn place(&mut self, part: TypeId, address: Value, offset: u32) -> Value {
        if !self.l.types().is_heap(part) {
            return self.offset(address, offset);
        }
        let handle = self.load_low(self.l.address, address, offset);
        self.unique_with(handle, true, |f, copied| {
            f.b.effect(Op::MemStore, &[address, copied], offset.into());
        })
    }

    /// A handle that nobody else has: this one, if it is the only one, else that of a copy.
    pub(super) fn unique(&mut self, handle: Value, is_object: bool) -> Value {
        self.unique_with(handle, is_object, |_, _| {})
    }

    /// Whether an object has one strong handle, is not immortal and was never seen by a weak handle.
    pub(super) fn is_only_handle(&mut self, object: Value) -> Value {
        let strong = self.load_low(fixed::U64, object, STRONG);
        let one = self.b.const_bits(fixed::U64, 1);
        let is_only = self.b.compare(Op::IcmpEq, strong, one);
        let flags = self.load_low(fixed::U32, object, FLAGS);
        let mask = self.b.const_bits(fixed::U32, (FLAG_IMMORTAL | FLAG_HAD_WEAK).into());
        let flags = self.b.same(Op::IAnd, &[flags, mask]);
        let none = self.b.const_bits(fixed::U32, 0);
        let is_plain = self.b.compare(Op::IcmpEq, flags, none);
        self.b.same(Op::IAnd, &[is_only, is_plain])
    }

    fn unique_with(
        &mut self,
        handle: Value,
        is_object: bool,
        keep: impl FnOnce(&mut Self, Value),
    ) -> Value {
        let result = self.b.declare(self.b.ty(handle));
        self.b.write(result, handle);
        let (copy, done) = (self.b.create_block(), self.b.create_block());
        if !is_object {
            let look = self.b.create_block();
            let is_null = self.is_null(handle);
            self.b.cbr(is_null, done, look);
            self.b.seal(look);
            self.b.switch_to(look);
        }
        let is_unique = self.is_only_handle(handle);
        self.b.cbr(is_unique, done, copy);
        self.b.seal(copy);
        self.b.switch_to(copy);
        let copied = self.rt_value(RtFn::HandleUnique, self.b.ty(handle), &[handle]);
        keep(self, copied);
        self.b.write(result, copied);
        self.b.br(done);
        self.b.seal(done);
        self.b.switch_to(done);
        self.b.read(result)
    }

    // ----- heap structs -----

    /// A new object of a heap struct or heap enum, its payload zero.
    pub(super) fn allocate(&mut self, ty: TypeId) -> Value {
        let info = self.type_info(ty, 1);
        self.rt_value(RtFn::Alloc, self.l.address, &[info])
    }

    pub(super) fn new_object(&mut self, i: Inst) -> Vec<Value> {
        let ty = self.old.inst(i).ty;
        let object = self.allocate(ty);
        let old = self.old;
        for (n, &v) in old.args(i).iter().enumerate() {
            let leaves = self.get(v);
            let offset = self.field_offset(ty, 0, n);
            self.store(self.ty(v), object, offset, &leaves);
        }
        vec![object]
    }

    /// The type and the offset of a field of the struct that an operand is or shows. A value
    /// struct behind a view starts where the view points.
    fn field(&self, ty: TypeId, n: usize) -> (TypeId, u32) {
        let object = self.view_target(ty).unwrap_or(ty);
        let types = self.l.types();
        let TypeKind::Struct(s) = types.kind(object) else {
            unreachable!("fields belong to structs");
        };
        let def = types.struct_def(s);
        let offset = match def.category {
            Category::Heap => self.field_offset(object, 0, n),
            Category::Value => types.field_offsets(0, &def.fields).0[n],
        };
        (def.fields[n].ty, offset)
    }

    pub(super) fn get_field(&mut self, i: Inst) -> Vec<Value> {
        let v = self.old.arg(i, 0);
        let data = self.old.inst(i);
        let (ty, offset) = self.field(self.ty(v), data.imm_lo() as usize);
        let object = self.one(v);
        if self.may_be_missing(v) && self.l.types().is_heap(ty) {
            let missing = self.is_null(object);
            return vec![self.unless(missing, ty, |f| f.load_early(ty, object, offset))];
        }
        self.show(ty, data.ty, object, offset)
    }

    pub(super) fn set_field(&mut self, i: Inst) -> Vec<Value> {
        let (v, value) = (self.old.arg(i, 0), self.old.arg(i, 1));
        let (ty, offset) = self.field(self.ty(v), self.old.inst(i).imm_lo() as usize);
        let object = self.one(v);
        self.replace(i, ty, object, offset, value);
        Vec::new()
    }

    pub(super) fn field_place(&mut self, i: Inst) -> Vec<Value> {
        let v = self.old.arg(i, 0);
        let (ty, offset) = self.field(self.ty(v), self.old.inst(i).imm_lo() as usize);
        let object = self.one(v);
        if self.may_be_missing(v) {
            let missing = self.is_null(object);
            return vec![self.unless(missing, ty, |f| f.place(ty, object, offset))];
        }
        vec![self.place(ty, object, offset)]
    }

    /// Whether a view may be null because nobody knew whether there is something to see.
    pub(super) fn may_be_missing(&self, v: Value) -> bool {
        let i = self.old.def_inst(v);
        i.is_some_and(|i| self.old.inst(i).flags.contains(Flags::SPECULATIVE))
    }

    /// A view of an object of a type, unless it is missing: then null, an array without elements or a
    /// text without characters.
    pub(super) fn unless(
        &mut self,
        missing: Value,
        ty: TypeId,
        find: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let nothing = match self.l.types().kind(ty) {
            TypeKind::Array(_) => self.empty_array(),
            TypeKind::Str => self.empty_text(),
            _ => self.b.func().zero(self.l.address),
        };
        let low = self.b.ty(nothing);
        let result = self.b.declare(low);
        self.b.write(result, nothing);
        let (there, done) = (self.b.create_block(), self.b.create_block());
        self.b.cbr(missing, done, there);
        self.b.seal(there);
        self.b.switch_to(there);
        let found = find(self);
        self.b.write(result, found);
        self.b.br(done);
        self.b.seal(done);
        self.b.switch_to(done);
        self.b.read(result)
    }

    /// A handle that is looked at before the program comes to it. A text may have been taken out, so
    /// that it can be changed: that is one without characters.
    pub(super) fn load_early(&mut self, ty: TypeId, address: Value, offset: u32) -> Value {
        let low = self.l.low(ty);
        let handle = self.load_low(low, address, offset);
        if ty != fixed::STR {
            return handle;
        }
        let bits = self.load_low(fixed::U64, address, offset);
        let zero = self.b.const_bits(fixed::U64, 0);
        let is_taken = self.b.compare(Op::IcmpEq, bits, zero);
        let empty = self.empty_text();
        self.b.select(is_taken, empty, handle)
    }

    fn empty_text(&mut self) -> Value {
        let empty = Const::Str(self.l.m.intern_str(""));
        self.b.func().constant(fixed::STR, empty)
    }

    /// Stores a value for instruction `i`; what was there is released afterwards, because that may
    /// run any code.
    pub(super) fn replace(
        &mut self,
        i: Inst,
        ty: TypeId,
        address: Value,
        offset: u32,
        value: Value,
    ) {
        let leaves = self.get(value);
        if self.l.types().is_copy(ty) || self.moves.contains_key(&i) {
            return self.store(ty, address, offset, &leaves);
        }
        let before = self.load(ty, address, offset);
        self.store(ty, address, offset, &leaves);
        if !self.is_address(ty) {
            return self.release(ty, &before);
        }
        // Nothing is there while a part is changed.
        let is_null = self.is_null(before[0]);
        let (release, done) = (self.b.create_block(), self.b.create_block());
        self.b.cbr(is_null, done, release);
        self.b.seal(release);
        self.b.switch_to(release);
        self.release(ty, &before);
        self.b.br(done);
        self.b.seal(done);
        self.b.switch_to(done);
    }

    // ----- panic -----

    pub(super) fn panic_with_text(&mut self, i: Inst) -> Vec<Value> {
        let text = self.one(self.old.arg(i, 0));
        self.rt(RtFn::Panic, &[text]);
        Vec::new()
    }
}
