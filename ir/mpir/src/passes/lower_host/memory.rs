//! Stack slots, loads and stores of whole values, views.

use super::FnLowering;
use crate::{Block, Builder, Inst, Op, Value, imm_pair};
use magpie_types::abi::object_layout::HEADER_SIZE;
use magpie_types::{Layout, RefMode, TypeId, TypeKind, fixed};
use rustc_hash::FxHashMap;

/// The stack slots of a function. Scratch slots serve one old instruction after the other.
pub(super) struct Slots {
    entry: Block,
    scratch: Vec<(Inst, Value, Layout)>,
    taken: usize,
    /// By type: where results of functions of the program come back.
    results: FxHashMap<TypeId, Value>,
}

impl Slots {
    /// Slots are made in the block `entry`, which dominates all code.
    pub(super) fn new(entry: Block) -> Slots {
        Slots { entry, scratch: Vec::new(), taken: 0, results: FxHashMap::default() }
    }

    pub(super) fn entry(&self) -> Block {
        self.entry
    }

    /// The scratch slots taken so far are free again.
    pub(super) fn reuse(&mut self) {
        self.taken = 0;
    }

    fn make(&self, b: &mut Builder<'_>, address: TypeId, layout: Layout) -> (Inst, Value) {
        let current = b.current();
        b.switch_to(self.entry);
        let v = b.value(Op::StackSlot, address, &[], slot_size(layout));
        b.switch_to(current);
        let inst = b.func().def_inst(v).expect("an instruction made it");
        (inst, v)
    }

    /// A slot of its own that is written to at the beginning of the function.
    pub(super) fn make_initialised(
        &self,
        b: &mut Builder<'_>,
        address: TypeId,
        layout: Layout,
        write: impl FnOnce(&mut Builder<'_>, Value),
    ) -> Value {
        let (_, v) = self.make(b, address, layout);
        let current = b.current();
        b.switch_to(self.entry);
        write(b, v);
        b.switch_to(current);
        v
    }

    /// A slot of its own.
    fn own(&self, b: &mut Builder<'_>, address: TypeId, layout: Layout) -> Value {
        self.make(b, address, layout).1
    }

    /// A slot until the end of the old instruction.
    fn scratch(&mut self, b: &mut Builder<'_>, address: TypeId, layout: Layout) -> Value {
        if self.taken == self.scratch.len() {
            let (inst, v) = self.make(b, address, layout);
            self.scratch.push((inst, v, layout));
        }
        let (inst, v, old) = &mut self.scratch[self.taken];
        old.size = old.size.max(layout.size);
        old.align = old.align.max(layout.align);
        b.func().inst_mut(*inst).imm = slot_size(*old);
        self.taken += 1;
        *v
    }
}

/// The immediate of a slot.
fn slot_size(layout: Layout) -> u64 {
    imm_pair(layout.size.max(1), layout.align)
}

impl FnLowering<'_, '_, '_> {
    /// Memory for a value until the end of the old instruction.
    pub(super) fn scratch(&mut self, layout: Layout) -> Value {
        self.slots.scratch(&mut self.b, self.l.address, layout)
    }

    /// Memory for the result of a call, one place for all results of a type: what is loaded and
    /// stored there has the same types, so that the place can go when the callee is inlined.
    pub(super) fn result_slot(&mut self, ty: TypeId) -> Value {
        if let Some(&slot) = self.slots.results.get(&ty) {
            return slot;
        }
        let slot = self.own_slot(ty);
        self.slots.results.insert(ty, slot);
        slot
    }

    /// Memory for a value of a type that keeps it as long as the function runs.
    pub(super) fn own_slot(&mut self, ty: TypeId) -> Value {
        let layout = self.l.types().layout(ty);
        self.slots.own(&mut self.b, self.l.address, layout)
    }

    /// Stores the leaves of a value at `address + offset`.
    pub(super) fn store(&mut self, ty: TypeId, address: Value, offset: u32, leaves: &[Value]) {
        self.l.store(&mut self.b, ty, address, offset, leaves);
    }

    /// Loads the leaves of a value from `address + offset`.
    pub(super) fn load(&mut self, ty: TypeId, address: Value, offset: u32) -> Vec<Value> {
        self.l.load(&mut self.b, ty, address, offset)
    }

    /// Loads one scalar or address of a lowered type.
    pub(super) fn load_low(&mut self, low: TypeId, address: Value, offset: u32) -> Value {
        self.b.value(Op::MemLoad, low, &[address], offset as u64)
    }

    /// A scratch slot that holds a value.
    pub(super) fn spill(&mut self, ty: TypeId, leaves: &[Value]) -> Value {
        let layout = self.l.types().layout(ty);
        let slot = self.scratch(layout);
        self.store(ty, slot, 0, leaves);
        slot
    }

    /// A scratch slot that holds the zero of a type.
    pub(super) fn zeroed(&mut self, ty: TypeId) -> Value {
        let zeros = self.zeros(ty);
        self.spill(ty, &zeros)
    }

    /// `address + bytes`.
    pub(super) fn offset(&mut self, address: Value, bytes: u32) -> Value {
        if bytes == 0 {
            return address;
        }
        let bytes = self.i64(bytes as i64);
        self.b.value(Op::PtrAdd, self.l.address, &[address, bytes], 0)
    }

    /// Whether an address is null.
    pub(super) fn is_null(&mut self, address: Value) -> Value {
        let bits = self.b.value(Op::BitsCast, fixed::U64, &[address], 0);
        let zero = self.b.const_bits(fixed::U64, 0);
        self.b.compare(Op::IcmpEq, bits, zero)
    }

    /// The address of the description of a type: 0 of values, 1 of payloads, 2 of the payloads of
    /// callables.
    pub(super) fn type_info(&mut self, ty: TypeId, object: u32) -> Value {
        self.b.value(Op::TypeInfoAddr, self.l.address, &[], imm_pair(ty.0, object))
    }

    /// What shows a part of type `part` at `address + offset` as a value of type `shown`: a copy,
    /// another counted handle, or a view.
    pub(super) fn show(
        &mut self,
        part: TypeId,
        shown: TypeId,
        address: Value,
        offset: u32,
    ) -> Vec<Value> {
        let types = self.l.types();
        let by_address = !types.is_copy(part)
            && part != shown
            && self.view_target(shown).is_some_and(|target| !types.is_heap(target));
        if by_address {
            return vec![self.offset(address, offset)];
        }
        let leaves = self.load(part, address, offset);
        if !self.l.types().is_copy(part) && part == shown {
            self.retain(part, &leaves);
        }
        leaves
    }

    /// The type behind a view or a shared handle.
    pub(super) fn view_target(&self, ty: TypeId) -> Option<TypeId> {
        match self.l.types().kind(ty) {
            TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow | RefMode::Shared, t) => Some(t),
            _ => None,
        }
    }

    /// The address of a value of type `wanted` that an operand is or views: where a view points,
    /// else a scratch copy.
    pub(super) fn address_of(&mut self, v: Value, wanted: TypeId) -> Value {
        let leaves = self.get(v);
        let views_storage = self.ty(v) != wanted && !self.l.types().is_heap(wanted);
        if views_storage { leaves[0] } else { self.spill(wanted, &leaves) }
    }

    /// The leaves of an argument for a parameter of type `param`.
    pub(super) fn pass(&mut self, v: Value, param: TypeId) -> Vec<Value> {
        let ty = self.ty(v);
        match self.view_target(param) {
            // A value that is no object is viewed where it is stored.
            Some(target) if target == ty && !self.l.types().is_heap(target) => {
                vec![self.address_of(v, target)]
            }
            _ => self.get(v).to_vec(),
        }
    }

    /// The offset of field `n` of a heap struct from its handle.
    pub(super) fn field_offset(&self, ty: TypeId, variant: usize, n: usize) -> u32 {
        let layout = self.l.types().object_layout(ty);
        let fields = layout.map(|l| l.fields).unwrap_or_default();
        HEADER_SIZE + fields[variant][n]
    }
}
