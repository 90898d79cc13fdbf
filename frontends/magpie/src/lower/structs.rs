//! Structs, and the operations that hold and share values.

use super::body::{Annotation, Body};
use super::*;
use crate::interner::Symbol;
use magpie_mpir::Value as MpirValue;
use magpie_types::{Category, RefMode, StructId, TypeKind};

impl Body<'_, '_> {
    /// The type behind a borrow or a shared handle; other types as they are.
    pub(super) fn seen_through(&self, ty: TypeId) -> TypeId {
        match self.kind(ty) {
            TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow | RefMode::Shared, t) => t,
            _ => ty,
        }
    }

    /// Whether values of a type are borrows.
    pub(super) fn is_view(&self, ty: TypeId) -> bool {
        magpie_mpir::ownership::is_view(&self.cx.module.types, ty)
    }

    /// Checks a value that goes into something of type `wanted`; `code` is for another type. A borrow
    /// in its place is reported as such.
    pub(super) fn stored(
        &mut self,
        v: MpirValue,
        wanted: TypeId,
        code: Code,
        what: impl FnOnce(&Self) -> String,
    ) -> Lower<()> {
        let found = self.f.ty(v);
        if found == wanted {
            return Ok(());
        }
        let what = what(self);
        let (found_name, wanted_name) = (self.type_name(found), self.type_name(wanted));
        if self.is_view(found) {
            let message = format!("{what} cannot hold a borrow, `{found_name}`");
            let help = "store an owned value or a `shared` handle";
            return Err(self.error(Code::MPO0003, message, help));
        }
        let message =
            format!("{what} has the type `{wanted_name}`, but the value is `{found_name}`");
        Err(self.error(code, message, format!("give a `{wanted_name}`")))
    }

    /// What a part of type `part` of an object looks like from outside: a copy of a copyable part, a
    /// handle or a borrow of another one, as the result's type asks for.
    pub(super) fn shown(&mut self, part: TypeId, want: Annotation) -> TypeId {
        if self.cx.module.types.is_copy(part) {
            return part;
        }
        let wanted = want.ty();
        if let (TypeKind::Ref(RefMode::Weak, _), _) | (TypeKind::Ref(..), true) =
            (self.kind(part), wanted == Some(part))
        {
            return part;
        }
        let object = match self.kind(part) {
            TypeKind::Ref(RefMode::Shared, t) => t,
            _ => part,
        };
        let exclusive = wanted.is_some_and(|ty| {
            self.kind(ty) == TypeKind::Ref(RefMode::MutBorrow, object) && object == part
        });
        let mode = if exclusive { RefMode::MutBorrow } else { RefMode::Borrow };
        self.intern(TypeKind::Ref(mode, object))
    }

    // ----- structs -----

    /// `new T { … }`
    pub(super) fn new_struct(&mut self, ty: TypeUse, args: Slice<Arg>) -> Lower {
        let ast = self.ast;
        let ty = self.type_use(ty)?;
        let TypeKind::Struct(id) = self.kind(ty) else {
            let name = self.type_name(ty);
            let help = match self.kind(ty) {
                TypeKind::Enum(_) | TypeKind::Option(_) | TypeKind::Result(..) => {
                    "make a variant with `enum.new<Variant> { … }`"
                }
                TypeKind::Array(_) => "make an array with `arr.new<T> { cap=const.i64 0 }`",
                TypeKind::Map(..) => "make a map with `map.new<K, V> { }`",
                TypeKind::Ref(..) => "make the struct, then `share` or borrow it",
                _ => "`new` makes structs",
            };
            return Err(self.error(Code::MPT2015, format!("`{name}` is no struct"), help));
        };
        let count = self.cx.module.types.struct_def(id).fields.len();
        let mut values: Vec<Option<MpirValue>> = vec![None; count];
        let mut poisoned = false;
        let mut given = vec![false; count];
        for arg in &ast[args] {
            let Some(n) = self.field(id, arg.key) else {
                self.unknown_field(ty, id, arg.key);
                poisoned = true;
                continue;
            };
            if std::mem::replace(&mut given[n], true) {
                let name = self.scope.name(arg.key);
                let message = format!("field `{name}` is given twice");
                self.error(Code::MPT2016, message, "give each field one value");
                poisoned = true;
                continue;
            }
            let Ok(v) = self.arg(arg) else {
                poisoned = true;
                continue;
            };
            if self.cx.types.is_failed_member(ty, 0, n as u32) {
                poisoned = true;
                continue;
            }
            let wanted = self.cx.module.types.struct_def(id).fields[n].ty;
            let key = arg.key;
            let what = |b: &Self| format!("field `{}`", b.scope.name(key));
            match self.stored(v, wanted, Code::MPT2019, what) {
                Ok(()) => values[n] = Some(v),
                Err(Poisoned) => poisoned = true,
            }
        }
        if given.contains(&false) {
            let def = self.cx.module.types.struct_def(id);
            let missing: Vec<String> = def
                .fields
                .iter()
                .zip(&given)
                .filter(|(_, given)| !**given)
                .map(|(f, _)| format!("`{}`", f.name))
                .collect();
            let message = format!("`new {}` does not give {}", def.name, missing.join(", "));
            return Err(self.error(Code::MPT2020, message, "give every field a value"));
        }
        let values: Option<Vec<MpirValue>> = values.into_iter().collect();
        let Some(values) = values.filter(|_| !poisoned) else { return Err(Poisoned) };
        let op = match self.cx.module.types.struct_def(id).category {
            Category::Heap => MpirOp::New,
            Category::Value => MpirOp::StructNew,
        };
        Ok(self.emit(op, ty, &values, 0))
    }

    /// The position of a field.
    fn field(&self, id: StructId, name: Symbol) -> Option<usize> {
        let name = self.scope.name(name);
        self.cx.module.types.struct_def(id).fields.iter().position(|f| f.name == name)
    }

    fn unknown_field(&mut self, ty: TypeId, id: StructId, name: Symbol) -> Poisoned {
        let name = self.scope.name(name);
        let def = self.cx.module.types.struct_def(id);
        let fields: Vec<&str> = def.fields.iter().map(|f| f.name.as_str()).collect();
        let help = match magpie_diag::closest(name, fields.iter().copied()) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => format!("the fields are {}", fields.join(", ")),
        };
        let message = format!("`{}` has no field `{name}`", self.type_name(ty));
        self.error(Code::MPT2017, message, help)
    }

    /// The object and the field that `getfield` and `setfield` name.
    fn member(&mut self, args: &[Arg]) -> Lower<(MpirValue, TypeId, StructId, usize)> {
        let [obj, field, ..] = args else { return Err(Poisoned) };
        let v = self.arg(obj)?;
        let ArgKind::Word(name) = field.kind else { return Err(Poisoned) };
        let ty = self.seen_through(self.f.ty(v));
        let TypeKind::Struct(id) = self.kind(ty) else {
            let found = self.type_name(self.f.ty(v));
            let help = match self.kind(ty) {
                TypeKind::Enum(_) | TypeKind::Option(_) | TypeKind::Result(..) => {
                    "take the payload of a variant with `enum.payload<Variant> { v=… }`"
                }
                TypeKind::Ref(RefMode::Weak, _) => "make a shared handle with `weak.upgrade` first",
                _ => "only structs have fields",
            };
            return Err(self.error(Code::MPT2015, format!("`{found}` is no struct"), help));
        };
        let Some(n) = self.field(id, name) else { return Err(self.unknown_field(ty, id, name)) };
        if self.cx.types.is_failed_member(ty, 0, n as u32) {
            return Err(Poisoned);
        }
        Ok((v, ty, id, n))
    }

    pub(super) fn get_field(&mut self, args: &[Arg], want: Annotation) -> Lower {
        let (v, ty, id, n) = self.member(args)?;
        let part = self.cx.module.types.struct_def(id).fields[n].ty;
        if ty == self.f.ty(v) && self.cx.module.types.is_aggregate(ty) {
            return Ok(self.emit(MpirOp::StructGet, part, &[v], n as u64));
        }
        let held = match self.kind(self.f.ty(v)) {
            TypeKind::Ref(RefMode::Shared, _) => Some("a shared handle"),
            TypeKind::Ref(..) => None,
            _ => Some("owned"),
        };
        if let Some(held) = held.filter(|_| !self.on_device) {
            let ArgKind::Value(Value::Ssa(name)) = args[0].kind else { return Err(Poisoned) };
            let name = self.scope.name(name);
            let message = format!("`getfield` needs a borrow of `%{name}`, which is {held}");
            let help =
                format!("write `%b = borrow.shared {{ v=%{name} }}` and give `%b` as the `obj`");
            self.ownership_error(Code::MPHIR01, message, help);
        }
        let shown = self.shown(part, want);
        Ok(self.emit(MpirOp::GetField, shown, &[v], n as u64))
    }

    pub(super) fn set_field(&mut self, args: &[Arg]) -> Lower {
        let member = self.member(args);
        let Some(val) = args.get(2) else { return Err(Poisoned) };
        let value = self.arg(val);
        let (v, ty, id, n) = member?;
        let value = value?;
        let def = self.cx.module.types.struct_def(id);
        if def.category == Category::Value {
            let name = def.name.clone();
            let message = format!("`{name}` is a value struct and cannot be changed in place");
            let help = format!("make a new one: `new {name} {{ … }}`");
            return Err(self.error(Code::MPT2015, message, help));
        }
        let wanted = def.fields[n].ty;
        let what =
            |b: &Self| format!("field `{}`", b.cx.module.types.struct_def(id).fields[n].name);
        self.stored(value, wanted, Code::MPT2019, what)?;
        self.changed(v, ty, "setfield");
        Ok(self.emit(MpirOp::SetField, fixed::UNIT, &[v, value], n as u64))
    }

    /// Checks that a value may be changed through the handle at hand; reports that it may not.
    pub(super) fn changed(&mut self, v: MpirValue, object: TypeId, op: &str) {
        let TypeKind::Ref(mode, _) = self.kind(self.f.ty(v)) else { return };
        let (code, what) = match mode {
            RefMode::MutBorrow => return,
            RefMode::Borrow if op == "setfield" => (Code::MPHIR02, "a read-only borrow"),
            RefMode::Borrow => (Code::MPO0004, "a read-only borrow"),
            RefMode::Shared | RefMode::Weak => (Code::MPO0004, "a handle that others hold too"),
        };
        let name = self.type_name(object);
        let message = format!("`{op}` cannot change the `{name}`: it is reached through {what}");
        let help = "change it through `borrow.mut` of its owner, before it is shared";
        self.ownership_error(code, message, help);
    }

    // ----- ownership -----

    pub(super) fn borrow(&mut self, args: &[Arg], op: MpirOp) -> Lower {
        let [v] = self.args::<1>(args)?;
        let exclusive = op == MpirOp::BorrowMut;
        if self.on_device {
            let message = format!("`{}` handles ownership, which kernels do not have", op.name());
            let help = "use the value or the buffer itself; nothing is moved or counted here";
            let finding = Diagnostic::new(Code::MPG_CORE_1101, self.span, message).with_help(help);
            self.cx.kernel_findings.push(finding);
            return Err(Poisoned);
        }
        let found = self.f.ty(v);
        let object = match self.kind(found) {
            TypeKind::Ref(RefMode::MutBorrow, t) => t,
            TypeKind::Ref(RefMode::Borrow | RefMode::Shared, t) if !exclusive => t,
            TypeKind::Ref(RefMode::Weak, _) => {
                let name = self.type_name(found);
                let help = "make a shared handle with `weak.upgrade` and borrow that";
                return Err(self.error(
                    Code::MPT2015,
                    format!("`{name}` cannot be borrowed"),
                    help,
                ));
            }
            TypeKind::Ref(_, t) => {
                self.changed(v, t, "borrow.mut");
                t
            }
            _ => found,
        };
        let mode = if exclusive { RefMode::MutBorrow } else { RefMode::Borrow };
        let ty = self.intern(TypeKind::Ref(mode, object));
        Ok(self.emit(op, ty, &[v], 0))
    }

    pub(super) fn share(&mut self, args: &[Arg]) -> Lower {
        let [v] = self.args::<1>(args)?;
        let found = self.f.ty(v);
        if !self.cx.module.types.is_heap(found) {
            let name = self.type_name(found);
            let (code, help) = match self.kind(found) {
                TypeKind::Option(_) => (Code::MPT0002, "share the value inside"),
                TypeKind::Result(..) => (Code::MPT0003, "share the value inside"),
                TypeKind::Ref(RefMode::Shared, _) => {
                    (Code::MPT2015, "make another handle with `clone.shared`")
                }
                TypeKind::Ref(..) => (Code::MPT2015, "share the owned value"),
                _ => (Code::MPT2015, "it is copied; use it as it is"),
            };
            return Err(self.error(code, format!("`{name}` cannot be shared"), help));
        }
        let ty = self.intern(TypeKind::Ref(RefMode::Shared, found));
        Ok(self.emit(MpirOp::Share, ty, &[v], 0))
    }

    /// The operand, a handle of the mode, and the type of its object.
    fn handle(&mut self, op: AstOp, args: &[Arg], mode: RefMode) -> Lower<(MpirValue, TypeId)> {
        let [v] = self.args::<1>(args)?;
        let found = self.f.ty(v);
        match self.kind(found) {
            TypeKind::Ref(m, t) if m == mode => Ok((v, t)),
            _ => {
                let (name, word) = (self.type_name(found), mode.name());
                let message = format!("`{}` needs a {word} handle, not `{name}`", op.name());
                let help = match mode {
                    RefMode::Weak => "make one with `weak.downgrade` of a shared handle",
                    _ => "make one with `share`",
                };
                Err(self.error(Code::MPT2015, message, help))
            }
        }
    }

    pub(super) fn clone_shared(&mut self, args: &[Arg]) -> Lower {
        let (v, _) = self.handle(AstOp::CloneShared, args, RefMode::Shared)?;
        Ok(self.emit(MpirOp::CloneShared, self.f.ty(v), &[v], 0))
    }

    pub(super) fn clone_weak(&mut self, args: &[Arg]) -> Lower {
        let (v, _) = self.handle(AstOp::CloneWeak, args, RefMode::Weak)?;
        Ok(self.emit(MpirOp::CloneWeak, self.f.ty(v), &[v], 0))
    }

    pub(super) fn weak_downgrade(&mut self, args: &[Arg]) -> Lower {
        let (v, object) = self.handle(AstOp::WeakDowngrade, args, RefMode::Shared)?;
        let ty = self.intern(TypeKind::Ref(RefMode::Weak, object));
        Ok(self.emit(MpirOp::WeakDowngrade, ty, &[v], 0))
    }

    pub(super) fn weak_upgrade(&mut self, args: &[Arg]) -> Lower {
        let (v, object) = self.handle(AstOp::WeakUpgrade, args, RefMode::Weak)?;
        let shared = self.intern(TypeKind::Ref(RefMode::Shared, object));
        let ty = self.intern(TypeKind::Option(shared));
        Ok(self.emit(MpirOp::WeakUpgrade, ty, &[v], 0))
    }

    pub(super) fn panic(&mut self, args: &[Arg]) -> Lower {
        let [text] = self.args::<1>(args)?;
        self.text(AstOp::Panic, text)?;
        Ok(self.emit(MpirOp::Panic, fixed::UNIT, &[text], 0))
    }
}
