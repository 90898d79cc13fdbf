//! Maps.

use super::body::{Annotation, Body};
use super::*;
use magpie_mpir::{Value as MpirValue, imm_pair};
use magpie_types::TypeKind;

impl Body<'_, '_> {
    /// Checks a map that an operation reads or changes; gives its key and value types.
    fn map(&mut self, op: AstOp, v: MpirValue, changes: bool) -> Lower<(TypeId, TypeId)> {
        let found = self.f.ty(v);
        let object = self.seen_through(found);
        let TypeKind::Map(key, value) = self.kind(object) else {
            let name = self.type_name(found);
            let message = format!("`{}` needs a map, not `{name}`", op.name());
            let help = "give a `Map<K, V>` or a borrow of one";
            return Err(self.error(Code::MPT2015, message, help));
        };
        if changes {
            self.changed(v, object, op.name());
        }
        Ok((key, value))
    }

    pub(super) fn map_new(&mut self, types: &[TypeArg]) -> Lower {
        let [TypeArg::Type(key), TypeArg::Type(value)] = *types else { return Err(Poisoned) };
        let (key, value) = (self.type_use(key), self.type_use(value));
        let (key, value) = (key?, value?);
        if let Some(&stored) = [key, value].iter().find(|&&ty| self.is_view(ty)) {
            let name = self.type_name(stored);
            let message = format!("a map cannot hold a borrow, `{name}`");
            return Err(self.error(
                Code::MPO0003,
                message,
                "store owned values or `shared` handles",
            ));
        }
        let hash = self.comparator(Interface::Hash, key)?;
        let eq = self.comparator(Interface::Eq, key)?;
        let ty = self.intern(TypeKind::Map(key, value));
        Ok(self.emit(MpirOp::MapNew, ty, &[], imm_pair(hash, eq)))
    }

    pub(super) fn map_len(&mut self, args: &[Arg], want: Annotation) -> Lower {
        let values = self.args::<1>(args)?;
        self.map(AstOp::MapLen, values[0], false)?;
        let ty = self.length_type(AstOp::MapLen, want)?;
        Ok(self.emit(MpirOp::MapLen, ty, &values, 0))
    }

    pub(super) fn map_get(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        let (key, value) = self.map(AstOp::MapGet, values[0], false)?;
        self.looked_at(AstOp::MapGet, values[1], key)?;
        if !self.is_copied(value) {
            let name = self.type_name(value);
            let message = format!("the values, `{name}`, cannot be copied out of the map");
            let help = "look at the value with `map.get_ref`, or move it out with `map.delete`";
            return Err(self.error(Code::MPO0103, message, help));
        }
        let ty = self.intern(TypeKind::Option(value));
        Ok(self.emit(MpirOp::MapGet, ty, &values, 0))
    }

    pub(super) fn map_get_ref(&mut self, args: &[Arg], want: Annotation) -> Lower {
        let values = self.args::<2>(args)?;
        let (key, value) = self.map(AstOp::MapGetRef, values[0], false)?;
        self.looked_at(AstOp::MapGetRef, values[1], key)?;
        let shown = self.shown(value, want);
        Ok(self.emit(MpirOp::MapGetRef, shown, &values, 0))
    }

    pub(super) fn map_set(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<3>(args)?;
        let (key, value) = self.map(AstOp::MapSet, values[0], true)?;
        let key = self.stored(values[1], key, Code::MPT2014, |_| "the key".to_string());
        let value = self.stored(values[2], value, Code::MPT2014, |_| "the value".to_string());
        key.and(value)?;
        Ok(self.emit(MpirOp::MapSet, fixed::UNIT, &values, 0))
    }

    pub(super) fn map_contains_key(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        let (key, _) = self.map(AstOp::MapContainsKey, values[0], false)?;
        self.looked_at(AstOp::MapContainsKey, values[1], key)?;
        Ok(self.emit(MpirOp::MapContainsKey, fixed::BOOL, &values, 0))
    }

    pub(super) fn map_delete(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        let (key, value) = self.map(AstOp::MapDelete, values[0], true)?;
        self.looked_at(AstOp::MapDelete, values[1], key)?;
        let ty = self.intern(TypeKind::Option(value));
        Ok(self.emit(MpirOp::MapDelete, ty, &values, 0))
    }

    pub(super) fn map_delete_void(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        let (key, _) = self.map(AstOp::MapDeleteVoid, values[0], true)?;
        self.looked_at(AstOp::MapDeleteVoid, values[1], key)?;
        Ok(self.emit(MpirOp::MapDeleteVoid, fixed::UNIT, &values, 0))
    }

    /// `map.keys` and `map.values`.
    pub(super) fn map_list(&mut self, args: &[Arg], keys: bool) -> Lower {
        let values = self.args::<1>(args)?;
        let op = if keys { AstOp::MapKeys } else { AstOp::MapValues };
        let (key, value) = self.map(op, values[0], false)?;
        let listed = if keys { key } else { value };
        // Keys that are text are copied as handles: nothing changes a `Str`.
        if !self.is_copied(listed) && listed != fixed::STR {
            let name = self.type_name(listed);
            let message = format!("`{}` would copy values of type `{name}`", op.name());
            let help = "keep `shared` handles in the map";
            return Err(self.error(Code::MPT1022, message, help));
        }
        let ty = self.intern(TypeKind::Array(listed));
        let mpir = if keys { MpirOp::MapKeys } else { MpirOp::MapValues };
        Ok(self.emit(mpir, ty, &values, 0))
    }
}
