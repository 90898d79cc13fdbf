//! Maps, all by the runtime.

use super::FnLowering;
use crate::{Inst, Op, Value};
use magpie_types::abi::{PanicKind, RtFn};
use magpie_types::{TypeId, TypeKind, fixed};

impl FnLowering<'_, '_, '_> {
    /// Key and value types of the map that an operand is or shows.
    fn entry_types(&self, map: Value) -> (TypeId, TypeId) {
        let ty = self.ty(map);
        match self.l.types().kind(self.view_target(ty).unwrap_or(ty)) {
            TypeKind::Map(k, v) => (k, v),
            kind => unreachable!("{kind:?} is no map"),
        }
    }

    pub(super) fn map_new(&mut self, i: Inst) -> Vec<Value> {
        let data = *self.old.inst(i);
        let TypeKind::Map(key, value) = self.l.types().kind(data.ty) else {
            unreachable!("map.new makes a map");
        };
        let (key_info, value_info) = (self.type_info(key, 0), self.type_info(value, 0));
        let hash = self.comparator(data.imm_lo(), key);
        let eq = self.comparator(data.imm_hi(), key);
        let args = [key_info, value_info, hash, eq];
        vec![self.rt_value(RtFn::MapNew, self.l.address, &args)]
    }

    pub(super) fn map_set(&mut self, i: Inst) -> Vec<Value> {
        let &[map, key, value] = self.old.args(i) else { unreachable!("map.set has 3 operands") };
        let (key_ty, value_ty) = self.entry_types(map);
        if let Some(place) = self.place_of_taken(i) {
            let (key, null) = (self.get(key), self.get(value));
            self.store(value_ty, place, 0, &null);
            self.release(key_ty, &key);
            return Vec::new();
        }
        let map = self.one(map);
        let (key, value) = (self.get(key), self.get(value));
        let (key, value) = (self.spill(key_ty, &key), self.spill(value_ty, &value));
        self.rt(RtFn::MapSet, &[map, key, value]);
        Vec::new()
    }

    /// Where the value lies that was taken right before `i` puts null there.
    fn place_of_taken(&self, i: Inst) -> Option<Value> {
        let clone = self.moves.get(&i)?;
        self.map_places.get(&self.old.arg(*clone, 0)).copied()
    }

    /// The map and the address of the key.
    fn map_and_key(&mut self, i: Inst) -> (Value, Value) {
        let (map, key) = (self.old.arg(i, 0), self.old.arg(i, 1));
        let (key_ty, _) = self.entry_types(map);
        let map = self.one(map);
        (map, self.address_of(key, key_ty))
    }

    /// The address of the value of a key, or null, and whether it is null.
    fn lookup(&mut self, i: Inst) -> (Value, Value) {
        let (map, key) = self.map_and_key(i);
        let found = self.rt_value(RtFn::MapGet, self.l.address, &[map, key]);
        (found, self.is_null(found))
    }

    pub(super) fn map_get(&mut self, i: Inst) -> Vec<Value> {
        let (_, ty) = self.entry_types(self.old.arg(i, 0));
        let (found, missing) = self.lookup(i);
        let option = self.zeros(self.old.inst(i).ty);
        let result = self.variables(&option);
        let (there, done) = (self.b.create_block(), self.b.create_block());
        self.b.cbr(missing, done, there);
        self.b.seal(there);
        self.b.switch_to(there);
        let value = self.load(ty, found, 0);
        self.retain(ty, &value);
        let tag = self.i32(1);
        for (&var, leaf) in result.iter().zip([tag].into_iter().chain(value)) {
            self.b.write(var, leaf);
        }
        self.b.br(done);
        self.b.seal(done);
        self.b.switch_to(done);
        result.into_iter().map(|var| self.b.read(var)).collect()
    }

    /// The address of the value of a key; panics without one.
    fn value_address(&mut self, i: Inst) -> Value {
        let (found, missing) = self.lookup(i);
        let yes = self.b.func().const_bool(true);
        let there = self.b.same(Op::IXor, &[missing, yes]);
        self.require(there, PanicKind::MissingKey, None);
        found
    }

    pub(super) fn map_get_ref(&mut self, i: Inst) -> Vec<Value> {
        let (_, ty) = self.entry_types(self.old.arg(i, 0));
        let found = self.value_address(i);
        if let Some(view) = self.old.inst(i).result() {
            self.map_places.insert(view, found);
        }
        self.show(ty, self.old.inst(i).ty, found, 0)
    }

    pub(super) fn map_place(&mut self, i: Inst) -> Vec<Value> {
        let (_, ty) = self.entry_types(self.old.arg(i, 0));
        let found = self.value_address(i);
        vec![self.place(ty, found, 0)]
    }

    pub(super) fn map_len(&mut self, i: Inst) -> Vec<Value> {
        let map = self.one(self.old.arg(i, 0));
        let len = self.rt_value(RtFn::MapLen, fixed::I64, &[map]);
        self.length_result(i, len)
    }

    pub(super) fn map_contains_key(&mut self, i: Inst) -> Vec<Value> {
        let (_, missing) = self.lookup(i);
        let yes = self.b.func().const_bool(true);
        vec![self.b.same(Op::IXor, &[missing, yes])]
    }

    pub(super) fn map_delete(&mut self, i: Inst) -> Vec<Value> {
        let (map, key) = self.map_and_key(i);
        self.rt_result(RtFn::MapDelete, &[map, key], self.old.inst(i).ty)
    }

    /// Releasing the zero of a value that was not there does nothing.
    pub(super) fn map_delete_void(&mut self, i: Inst) -> Vec<Value> {
        let (_, ty) = self.entry_types(self.old.arg(i, 0));
        let (map, key) = self.map_and_key(i);
        let slot = self.zeroed(ty);
        self.b.value(Op::RtRaw, fixed::BOOL, &[map, key, slot], RtFn::MapDelete as u64);
        if !self.l.types().is_copy(ty) {
            let value = self.load(ty, slot, 0);
            self.release(ty, &value);
        }
        Vec::new()
    }

    pub(super) fn map_list(&mut self, i: Inst) -> Vec<Value> {
        let map = self.one(self.old.arg(i, 0));
        let rt = match self.old.inst(i).op {
            Op::MapKeys => RtFn::MapKeys,
            _ => RtFn::MapValues,
        };
        vec![self.rt_value(rt, self.l.address, &[map])]
    }
}
