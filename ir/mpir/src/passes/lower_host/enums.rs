//! Enums of the heap, value enums, `TOption` and `TResult`.

use super::FnLowering;
use crate::{Inst, Op, Value};
use magpie_types::abi::PanicKind;
use magpie_types::abi::object_layout::HEADER_SIZE;
use magpie_types::{Category, TypeId, TypeKind, fixed, place};

/// Where an enum is.
enum Storage {
    /// Its leaves: the tag first.
    Leaves(Vec<Value>),
    /// At an address: the tag at this offset.
    Memory { address: Value, tag: u32 },
}

impl FnLowering<'_, '_, '_> {
    fn is_heap_enum(&self, ty: TypeId) -> bool {
        match self.l.types().kind(ty) {
            TypeKind::Enum(e) => self.l.types().enum_def(e).category == Category::Heap,
            _ => false,
        }
    }

    /// The enum that an operand is or shows, and where it is.
    fn enum_storage(&mut self, v: Value) -> (TypeId, Storage) {
        let ty = self.ty(v);
        let target = self.view_target(ty);
        let leaves = self.get(v);
        let shown = target.unwrap_or(ty);
        let storage = if self.is_heap_enum(shown) {
            Storage::Memory { address: leaves[0], tag: HEADER_SIZE }
        } else if target.is_some() {
            Storage::Memory { address: leaves[0], tag: 0 }
        } else {
            Storage::Leaves(leaves.to_vec())
        };
        (shown, storage)
    }

    fn tag(&mut self, storage: &Storage) -> Value {
        match storage {
            Storage::Leaves(leaves) => leaves[0],
            Storage::Memory { address, tag } => self.load_low(fixed::I32, *address, *tag),
        }
    }

    /// The position of a variant's only payload among the members of `TOption` or `TResult`.
    fn payload_member(&self, ty: TypeId, variant: u32) -> u32 {
        match self.l.types().kind(ty) {
            // (tag, payload): the variant `None` has none.
            TypeKind::Option(_) => 1,
            // (tag, ok, err).
            _ => 1 + variant,
        }
    }

    pub(super) fn enum_new(&mut self, i: Inst) -> Vec<Value> {
        let (old, data) = (self.old, *self.old.inst(i));
        let (ty, variant) = (data.ty, data.imm_lo());
        let tag = self.i32(variant as i32);
        if self.is_heap_enum(ty) {
            let object = self.allocate(ty);
            self.store(fixed::I32, object, HEADER_SIZE, &[tag]);
            for (n, &v) in old.args(i).iter().enumerate() {
                let leaves = self.get(v);
                let offset = self.field_offset(ty, variant as usize, n);
                self.store(self.ty(v), object, offset, &leaves);
            }
            return vec![object];
        }
        let mut leaves = self.zeros(ty);
        leaves[0] = tag;
        if let Some(&payload) = old.args(i).first() {
            let member = self.payload_member(ty, variant);
            let (first, count) = self.l.types().member_leaves(ty, member);
            leaves[first..first + count].copy_from_slice(&self.get(payload));
        }
        leaves
    }

    pub(super) fn enum_tag(&mut self, i: Inst) -> Vec<Value> {
        let (_, storage) = self.enum_storage(self.old.arg(i, 0));
        vec![self.tag(&storage)]
    }

    pub(super) fn enum_is(&mut self, i: Inst) -> Vec<Value> {
        let (_, storage) = self.enum_storage(self.old.arg(i, 0));
        let tag = self.tag(&storage);
        let variant = self.i32(self.old.inst(i).imm_lo() as i32);
        vec![self.b.compare(Op::IcmpEq, tag, variant)]
    }

    /// Moves a field out of an owned enum, or shows it behind a view.
    pub(super) fn enum_payload(&mut self, i: Inst) -> Vec<Value> {
        let v = self.old.arg(i, 0);
        let data = *self.old.inst(i);
        let (variant, field) = (data.imm_lo(), data.imm_hi() as usize);
        let (ty, storage) = self.enum_storage(v);
        let tag = self.tag(&storage);
        let wanted = self.i32(variant as i32);
        let active = self.b.compare(Op::IcmpEq, tag, wanted);
        self.require(active, PanicKind::WrongVariant, None);
        match storage {
            Storage::Leaves(leaves) => {
                let member = self.payload_member(ty, variant);
                let (first, count) = self.l.types().member_leaves(ty, member);
                leaves[first..first + count].to_vec()
            }
            Storage::Memory { address, .. } => {
                let (part, offset) = self.payload_place(ty, variant, field);
                if self.ty(v) != ty {
                    return self.show(part, data.ty, address, offset);
                }
                // The field outlives the object.
                let leaves = self.load(part, address, offset);
                self.retain(part, &leaves);
                self.release(ty, &[address]);
                leaves
            }
        }
    }

    /// Type and offset of a payload in memory.
    fn payload_place(&self, ty: TypeId, variant: u32, field: usize) -> (TypeId, u32) {
        let types = self.l.types();
        if let TypeKind::Enum(e) = types.kind(ty) {
            let part = types.enum_def(e).variants[variant as usize].fields[field].ty;
            return (part, self.field_offset(ty, variant as usize, field));
        }
        let members = types.members(ty).unwrap_or_default();
        let member = self.payload_member(ty, variant) as usize;
        let (offsets, _) = place(members.iter().map(|&m| types.layout(m)));
        (members[member], offsets[member])
    }
}
