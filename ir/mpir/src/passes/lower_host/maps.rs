//! Maps, by the runtime, but for values that were just read.

use super::FnLowering;
use crate::analysis::Cfg;
use crate::ownership::{is_clone, shown, viewed};
use crate::{Block, Inst, MpirFn, Op, Value};
use magpie_types::abi::{PanicKind, RtFn};
use magpie_types::{TypeId, TypeKind, fixed};
use rustc_hash::FxHashMap;

/// Instructions between reading and writing a value, at most.
const MAX_BETWEEN: usize = 16;

/// Finds where a program replaces what it has just read, as in `counts[word] += 1`: for each such
/// `map.set`, what the read gave. The value is still where it was found.
pub(super) fn replaced_values(f: &MpirFn) -> FxHashMap<Inst, Value> {
    let mut found = FxHashMap::default();
    for block in &f.blocks {
        for (n, &set) in block.insts.iter().enumerate() {
            if f.inst(set).op == Op::MapSet {
                let read = value_read(f, set, &block.insts[..n]);
                found.extend(read.map(|v| (set, v)));
            }
        }
    }
    found
}

/// What a read of the same entry gave, if nothing behind it touches maps.
fn value_read(f: &MpirFn, set: Inst, before: &[Inst]) -> Option<Value> {
    let read = *before.iter().rev().take(MAX_BETWEEN).find(|i| !is_quiet(f, **i))?;
    let is_read = f.inst(read).op == Op::MapGetRef && is_same_entry(f, read, set);
    f.inst(read).result().filter(|_| is_read)
}

/// Finds where a program asks for the entry that it has just asked for, as in `if word in counts` and
/// then `counts[word]`: for each such instruction, the first that asked.
pub(super) fn repeated_lookups(f: &MpirFn) -> FxHashMap<Inst, Inst> {
    let mut found = FxHashMap::default();
    let insts = f.blocks.iter().flat_map(|b| &b.insts);
    if insts.filter(|&&i| is_lookup(f, i)).count() < 2 {
        return found;
    }
    let cfg = Cfg::new(f);
    for &b in cfg.rpo() {
        for (n, &i) in f.block(b).insts.iter().enumerate() {
            if is_lookup(f, i)
                && let Some(first) = lookup_before(f, &cfg, i, (b, n))
            {
                let first = found.get(&first).copied().unwrap_or(first);
                found.insert(i, first);
            }
        }
    }
    found
}

/// What asked for the same entry on the only way to an instruction, if nothing behind it changes a map.
fn lookup_before(f: &MpirFn, cfg: &Cfg, i: Inst, (b, n): (Block, usize)) -> Option<Inst> {
    let mut before = &f.block(b).insts[..n];
    let mut block = b;
    for _ in 0..MAX_BETWEEN {
        for &i_before in before.iter().rev().take(MAX_BETWEEN) {
            match is_lookup(f, i_before) {
                true if is_same_entry(f, i_before, i) => return Some(i_before),
                false if !is_quiet(f, i_before) => return None,
                true | false => {}
            }
        }
        let &[pred] = cfg.preds(block) else { return None };
        if before.len() > MAX_BETWEEN {
            return None;
        }
        block = pred;
        before = &f.block(pred).insts;
    }
    None
}

/// Whether an instruction finds an entry and changes nothing.
fn is_lookup(f: &MpirFn, i: Inst) -> bool {
    matches!(f.inst(i).op, Op::MapContainsKey | Op::MapGet | Op::MapGetRef)
}

/// Whether an instruction leaves all maps as they are.
fn is_quiet(f: &MpirFn, i: Inst) -> bool {
    match f.inst(i).op {
        Op::BorrowShared => true,
        // A text holds nothing else that goes with it.
        Op::Release => f.ty(f.arg(i, 0)) == fixed::STR,
        op => op.is_pure() || is_clone(f, i),
    }
}

/// Whether two instructions are about the same entry of the same map.
fn is_same_entry(f: &MpirFn, a: Inst, b: Inst) -> bool {
    viewed(f, f.arg(a, 0)) == viewed(f, f.arg(b, 0))
        && shown(f, f.arg(a, 1)) == shown(f, f.arg(b, 1))
}

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
        let read = self.replaced_values.get(&i).and_then(|read| self.map_places.get(read));
        if let Some(&place) = read.filter(|_| self.l.types().is_copy(value_ty)) {
            let (key, value) = (self.get(key), self.get(value));
            self.store(value_ty, place, 0, &value);
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
        let first = self.repeated_lookups.get(&i).copied().unwrap_or(i);
        let found = match self.entries.get(&first) {
            Some(&found) => found,
            None => {
                let (map, key) = self.map_and_key(i);
                self.rt_value(RtFn::MapGet, self.l.address, &[map, key])
            }
        };
        self.entries.insert(i, found);
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
