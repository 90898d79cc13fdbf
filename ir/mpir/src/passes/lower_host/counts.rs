//! Retaining and releasing the handles in a value.

use super::{FnLowering, Lowering};
use crate::{Const, Value};
use magpie_types::abi::RtFn;
use magpie_types::{RefMode, TypeId, TypeKind};

impl FnLowering<'_, '_, '_> {
    /// One more count for every handle in a value.
    pub(super) fn retain(&mut self, ty: TypeId, leaves: &[Value]) {
        self.count(ty, leaves, RtFn::Retain, RtFn::WeakRetain);
    }

    /// One count less for every handle in a value.
    pub(super) fn release(&mut self, ty: TypeId, leaves: &[Value]) {
        self.count(ty, leaves, RtFn::Release, RtFn::WeakRelease);
    }

    /// Counts a handle that may be null.
    pub(super) fn unless_null(&mut self, handle: Value, count: impl FnOnce(&mut Self)) {
        let is_null = self.is_null(handle);
        let (there, done) = (self.b.create_block(), self.b.create_block());
        self.b.cbr(is_null, done, there);
        self.b.seal(there);
        self.b.switch_to(there);
        count(self);
        self.b.br(done);
        self.b.seal(done);
        self.b.switch_to(done);
    }

    fn count(&mut self, ty: TypeId, leaves: &[Value], strong: RtFn, weak: RtFn) {
        // The payload of the other variant is null.
        let is_one_of =
            matches!(self.l.types().kind(ty), TypeKind::Option(_) | TypeKind::Result(..));
        for (leaf, &v) in self.l.leaves(ty).iter().zip(leaves) {
            let rt = match self.l.counted(leaf.ty) {
                Some(Counted::Strong) => strong,
                Some(Counted::Weak) => weak,
                None => continue,
            };
            // Null and immortal texts are not counted.
            match self.b.func().as_const(v) {
                Some(Const::Zero | Const::Str(_)) => {}
                _ if is_one_of => self.unless_null(v, |f| f.rt(rt, &[v])),
                _ => self.rt(rt, &[v]),
            }
        }
    }
}

/// Which count of an object a handle holds.
#[derive(Clone, Copy)]
pub(super) enum Counted {
    Strong,
    Weak,
}

impl Lowering<'_> {
    /// What a leaf counts, if it is a handle that does.
    pub(super) fn counted(&self, leaf: TypeId) -> Option<Counted> {
        match self.types().kind(leaf) {
            TypeKind::Ref(RefMode::Shared, _) => Some(Counted::Strong),
            TypeKind::Ref(RefMode::Weak, _) => Some(Counted::Weak),
            _ => self.types().is_heap(leaf).then_some(Counted::Strong),
        }
    }
}
