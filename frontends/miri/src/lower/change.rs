//! Changing parts of variables.
//!
//! A variable of a copied type is taken apart and put together again, in registers. In anything
//! else the part is changed where it lies: the handle in the variable is made the only one of its
//! object, then that of each object on the way, which is copied if somebody else has it too; the
//! views that lead from one to the next belong to nobody.

use super::Lower;
use super::body::{Body, Val};
use super::place::{Path, Step};
use crate::ty::Ty;
use magpie_mpir::{Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::{RefMode, TypeKind};

impl Body<'_, '_, '_> {
    /// Assigns a part of a variable; `value` is owned and of the part's type.
    pub(super) fn write_path(&mut self, path: &Path, value: Value) {
        match path.steps.split_last() {
            None => self.b.write(path.root, value),
            Some(_) if self.is_copy(path.root_ty) => {
                let root = self.b.read(path.root);
                let new = self.with_part(root, path.root_ty, &path.steps, value);
                self.b.write(path.root, new);
            }
            Some((&last, before)) => {
                let container = self.container(path, before);
                self.put(container, last, value);
            }
        }
    }

    /// Changes a counted object in a variable or in a part of one: `edit` gets it as the only
    /// handle or as an exclusive view, and gives back what takes its place, if anything does.
    pub(super) fn change_path(
        &mut self,
        path: &Path,
        edit: impl FnOnce(&mut Self, Value) -> Lower<Option<Value>>,
    ) -> Lower<()> {
        match path.steps.split_last() {
            None => {
                let root = self.unique_root(path);
                if let Some(new) = edit(self, root)? {
                    self.b.write(path.root, new);
                }
            }
            Some((&last, before)) => {
                let container = self.container(path, before);
                let object = self.part_place(container, last);
                if let Some(new) = edit(self, object)? {
                    self.put(container, last, new);
                }
            }
        }
        Ok(())
    }

    /// Replaces a part of a variable: `make` gets the owned part, which has left its place, and
    /// gives back the new one.
    pub(super) fn replace_path(
        &mut self,
        path: &Path,
        make: impl FnOnce(&mut Self, Value) -> Lower<Value>,
    ) -> Lower<()> {
        let Some((&last, before)) = path.steps.split_last() else {
            let old = self.b.read(path.root);
            let new = make(self, old)?;
            self.b.write(path.root, new);
            return Ok(());
        };
        if self.is_copy(path.root_ty) {
            let old = self.read_path(path);
            let new = make(self, old.v)?;
            self.write_path(path, new);
            return Ok(());
        }
        let container = self.container(path, before);
        let old = self.part_of(container, last);
        let old = self.take(container, last, old);
        let new = make(self, old)?;
        self.put(container, last, new);
        Ok(())
    }

    /// The container at the end of `steps`, which nobody else has. The variable is of no copied
    /// type.
    pub(super) fn container(&mut self, path: &Path, steps: &[Step]) -> Value {
        let root = self.unique_root(path);
        steps.iter().fold(root, |container, &step| self.part_place(container, step))
    }

    /// The value of a variable, made the only handle of its object.
    fn unique_root(&mut self, path: &Path) -> Value {
        let root = self.b.read(path.root);
        let root = self.unique(root);
        self.b.write(path.root, root);
        root
    }

    /// A handle that nobody else has; other values as they are.
    fn unique(&mut self, v: Value) -> Value {
        let id = self.b.ty(v);
        let types = &self.cx.module.types;
        let has_parts = match types.kind(id) {
            TypeKind::Array(_) | TypeKind::Map(..) => true,
            TypeKind::Struct(_) => types.is_heap(id),
            _ => false,
        };
        match has_parts {
            true => self.rt_value(RtFn::HandleUnique, id, &[v]),
            false => v,
        }
    }

    /// An exclusive view of a part of a container that nobody else has.
    fn part_place(&mut self, container: Value, step: Step) -> Value {
        let id = self.machine(step.ty());
        let view = self.cx.intern(TypeKind::Ref(RefMode::MutBorrow, id));
        match step {
            Step::Element { index, len, span, .. } => {
                self.at(span);
                self.b.value(Op::ArrPlace, view, &[container, index], len)
            }
            Step::Key { key, span, .. } => {
                self.at(span);
                self.b.value(Op::MapPlace, view, &[container, key.v], 0)
            }
            Step::Field { n, .. } => self.b.value(Op::FieldPlace, view, &[container], n.into()),
        }
    }

    /// A part of a container in memory.
    pub(super) fn part_of(&mut self, container: Value, step: Step) -> Val {
        // Its own type does not matter: it is none that is at hand.
        self.read_step(Val { ty: step.ty(), v: container, owned: false }, step)
    }

    /// Takes a part, which `old` shows, out of its place in a container that nobody else has. A
    /// null stands there meanwhile, so that the part is not shared just because it has a place.
    pub(super) fn take(&mut self, container: Value, step: Step, old: Val) -> Value {
        let id = self.machine(step.ty());
        if self.cx.module.types.is_copy(id) {
            return self.own(old);
        }
        let null = self.b.func().zero(id);
        match step {
            // The key comes first, so that the part is taken and replaced at once.
            Step::Key { key, span, .. } => {
                self.at(span);
                let key = self.own(Val { owned: false, ..key });
                let taken = self.own(old);
                self.b.effect(Op::MapSet, &[container, key, null], 0);
                taken
            }
            Step::Element { .. } | Step::Field { .. } => {
                let taken = self.own(old);
                self.put(container, step, null);
                taken
            }
        }
    }

    /// Replaces a part of a container in memory that nobody else has by an owned value.
    pub(super) fn put(&mut self, container: Value, step: Step, value: Value) {
        match step {
            Step::Element { index, len, span, .. } => {
                self.at(span);
                self.b.effect(Op::ArrSet, &[container, index, value], len);
            }
            Step::Key { key, span, .. } => {
                self.at(span);
                let key = self.own(Val { owned: false, ..key });
                self.b.effect(Op::MapSet, &[container, key, value], 0);
            }
            Step::Field { n, .. } => {
                self.b.effect(Op::SetField, &[container, value], n.into());
            }
        }
    }

    /// The value `whole` of a copied type with the part at `steps` replaced.
    fn with_part(&mut self, whole: Value, whole_ty: Ty, steps: &[Step], value: Value) -> Value {
        let Some((&step, rest)) = steps.split_first() else { return value };
        let new = match rest {
            [] => value,
            _ => {
                let val = Val { ty: whole_ty, v: whole, owned: false };
                let old = self.read_step(val, step);
                self.with_part(old.v, step.ty(), rest, value)
            }
        };
        match step {
            Step::Element { index, ty, span, .. } => {
                self.at(span);
                let new = self.val(ty, new);
                self.with_inline_element(whole, index, new)
            }
            Step::Field { n, ty } => self.with_field(whole, n, ty, new),
            // A map is of no copied type.
            Step::Key { .. } => whole,
        }
    }

    fn with_field(&mut self, whole: Value, n: u32, t: Ty, value: Value) -> Value {
        let id = self.b.ty(whole);
        if let TypeKind::Vec(..) = self.cx.module.types.kind(id) {
            return self.b.value(Op::VecInsert, id, &[whole, value], n.into());
        }
        let members = self.cx.module.types.members(id).unwrap_or_default();
        let value = match self.device {
            true => self.as_member(Val { ty: t, v: value, owned: true }),
            false => value,
        };
        let parts: Vec<Value> = (0..members.len())
            .map(|i| match i as u32 == n {
                true => value,
                false => self.b.value(Op::StructGet, members[i], &[whole], i as u64),
            })
            .collect();
        self.b.value(Op::StructNew, id, &parts, 0)
    }
}
