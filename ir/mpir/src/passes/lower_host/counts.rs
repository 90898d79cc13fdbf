//! Retaining and releasing the handles in a value.

use super::{FnLowering, Lowering};
use crate::{Const, Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::abi::object_layout::STRONG;
use magpie_types::{Leaf, RefMode, TypeId, TypeKind, fixed};

impl FnLowering<'_, '_, '_> {
    /// One more count for every handle in a value.
    pub(super) fn retain(&mut self, ty: TypeId, leaves: &[Value]) {
        self.count(ty, leaves, RtFn::Retain, RtFn::WeakRetain);
    }

    /// One count less for every handle in a value.
    pub(super) fn release(&mut self, ty: TypeId, leaves: &[Value]) {
        // Mostly a variant without handles is there, or it is known which one is.
        match self.l.types().kind(ty) {
            TypeKind::Option(payload) => self.release_variant(leaves, 1, payload, 1),
            TypeKind::Result(ok, error) => {
                let first_of_error = 1 + self.l.leaves(ok).len();
                self.release_variant(leaves, 0, ok, 1);
                self.release_variant(leaves, 1, error, first_of_error);
            }
            _ => self.count(ty, leaves, RtFn::Release, RtFn::WeakRelease),
        }
    }

    /// Releases the payload of a variant, whose leaves begin at `first`, if it is the active one.
    fn release_variant(&mut self, leaves: &[Value], variant: i32, payload: TypeId, first: usize) {
        let parts = self.l.leaves(payload);
        let part = &leaves[first..first + parts.len()];
        let is_counted = |(leaf, &v): (&Leaf, &Value)| {
            self.l.counted(leaf.ty).is_some() && !is_uncounted(self.b.func().as_const(v))
        };
        if !parts.iter().zip(part).any(is_counted) {
            return;
        }
        let wanted = self.i32(variant);
        let is_active = self.b.compare(Op::IcmpEq, leaves[0], wanted);
        let (active, done) = (self.b.create_block(), self.b.create_block());
        self.b.cbr(is_active, active, done);
        self.b.seal(active);
        self.b.switch_to(active);
        self.release(payload, part);
        self.b.br(done);
        self.b.seal(done);
        self.b.switch_to(done);
    }

    /// Whether a handle of the old function, or what it shows, is an object of type `ty` that is there
    /// and counted: texts may be immortal.
    pub(super) fn is_counted_object(&self, v: Value, ty: TypeId) -> bool {
        let is_counted = matches!(
            self.l.types().kind(ty),
            TypeKind::Array(_) | TypeKind::Map(..) | TypeKind::Struct(_)
        );
        is_counted && self.is_address(ty) && self.is_object(v) && !self.may_be_missing(v)
    }

    /// One more strong count of an object that is there and counted. Nobody else counts: the objects of
    /// a program are used by one thread.
    pub(super) fn count_once_more(&mut self, object: Value) {
        let strong = self.load_low(fixed::U64, object, STRONG);
        let one = self.b.const_bits(fixed::U64, 1);
        let more = self.b.same(Op::IAdd, &[strong, one]);
        self.b.effect(Op::MemStore, &[object, more], STRONG.into());
    }

    fn count(&mut self, ty: TypeId, leaves: &[Value], strong: RtFn, weak: RtFn) {
        for (leaf, &v) in self.l.leaves(ty).iter().zip(leaves) {
            let rt = match self.l.counted(leaf.ty) {
                Some(Counted::Strong) => strong,
                Some(Counted::Weak) => weak,
                None => continue,
            };
            if !is_uncounted(self.b.func().as_const(v)) {
                self.rt(rt, &[v]);
            }
        }
    }
}

/// Null and immortal texts are not counted.
fn is_uncounted(handle: Option<Const>) -> bool {
    matches!(handle, Some(Const::Zero | Const::Str(_)))
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
