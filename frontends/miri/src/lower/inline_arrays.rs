//! Arrays of fixed length inside of accelerable structs. A device has them as members of the
//! struct: an index that is not constant chooses among the members.

use super::body::{Body, Val};
use super::place::Step;
use super::{Cx, Form, Lower};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty, param_of_size};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value};
use magpie_types::{TypeId, fixed};

/// Elements of such an array at most.
const MAX_LENGTH: u64 = 64;

/// Numbers in such an array at most.
const MAX_SCALARS: u64 = 256;

impl Cx<'_> {
    /// Whether an array of a type may be a field of the elements of a device buffer.
    pub(super) fn is_inline_array(&mut self, t: Ty) -> bool {
        let TyKind::Array(e, n) = self.tys.kind(t) else { return false };
        let is_atomic = matches!(self.tys.kind(e), TyKind::Atomic(_));
        (1..=MAX_LENGTH).contains(&n)
            && (self.tys.scalar(e, true).is_some() || !is_atomic && self.is_element(e))
            && n * self.scalars_in(e) <= MAX_SCALARS
    }

    /// How many numbers an element of a buffer is made of.
    fn scalars_in(&mut self, t: Ty) -> u64 {
        match self.tys.kind(t) {
            TyKind::Array(e, n) => n.saturating_mul(self.scalars_in(e)),
            TyKind::Vector(_, n) => n.into(),
            TyKind::Struct(..) | TyKind::Tuple(_) => {
                let members = self.members_of(t);
                members.into_iter().fold(0, |sum, t| self.scalars_in(t).saturating_add(sum))
            }
            _ => 1,
        }
    }

    /// How many elements every array of a type has; 0 when its values differ in that.
    pub(super) fn fixed_length(&self, t: Ty) -> u64 {
        match self.tys.kind(t) {
            TyKind::Array(_, n) if param_of_size(n).is_none() => n,
            _ => 0,
        }
    }
}

impl Body<'_, '_, '_> {
    /// The element of an array in a kernel; zero when there is none of this index.
    pub(super) fn inline_element(&mut self, array: Val, index: Value, t: Ty) -> Val {
        let t = self.norm(t);
        let member = self.cx.member_machine(t);
        let length = self.cx.fixed_length(array.ty);
        let known = self.b.func().as_bits(index).filter(|&n| n < length);
        let mut found = match known {
            Some(n) => self.b.value(Op::StructGet, member, &[array.v], n),
            None => self.b.func().zero(member),
        };
        if known.is_none() {
            for n in (0..length).rev() {
                let v = self.b.value(Op::StructGet, member, &[array.v], n);
                let is = self.is_index(index, n);
                found = self.choose(is, v, found);
            }
        }
        self.member_value(found, t)
    }

    /// One of two members, number by number.
    fn choose(&mut self, condition: Value, a: Value, b: Value) -> Value {
        let id = self.b.ty(a);
        let Some(members) = self.cx.module.types.members(id) else {
            return self.b.select(condition, a, b);
        };
        let mut parts = Vec::with_capacity(members.len());
        for (n, member) in members.into_iter().enumerate() {
            let [a, b] = [a, b].map(|v| self.b.value(Op::StructGet, member, &[v], n as u64));
            parts.push(self.choose(condition, a, b));
        }
        self.b.value(Op::StructNew, id, &parts, 0)
    }

    /// An array in a kernel with one element replaced.
    pub(super) fn with_inline_element(&mut self, array: Value, index: Value, new: Val) -> Value {
        let id = self.b.ty(array);
        let members = self.cx.module.types.members(id).unwrap_or_default();
        let mut parts = Vec::with_capacity(members.len());
        let value = self.as_member(new);
        for (n, member) in members.into_iter().enumerate() {
            let old = self.b.value(Op::StructGet, member, &[array], n as u64);
            let is = self.is_index(index, n as u64);
            parts.push(self.choose(is, value, old));
        }
        self.b.value(Op::StructNew, id, &parts, 0)
    }

    fn is_index(&mut self, index: Value, n: u64) -> Value {
        let id = self.b.ty(index);
        let n = self.b.const_bits(id, n);
        self.b.compare(Op::IcmpEq, index, n)
    }

    /// Stores the numbers of a value to a part of an element of a buffer. The part is `steps` away
    /// from a member of machine type `whole` that begins with the number `first` of the element.
    pub(super) fn store_part(
        &mut self,
        at: [Value; 2],
        whole: TypeId,
        first: u32,
        steps: &[Step],
        leaves: &[Value],
    ) {
        let Some((&step, rest)) = steps.split_first() else {
            for (n, &leaf) in leaves.iter().enumerate() {
                let number = u64::from(first) + n as u64;
                self.b.effect(Op::GpuLeafStore, &[at[0], at[1], leaf], number);
            }
            return;
        };
        let members = self.cx.module.types.members(whole).unwrap_or_default();
        let mut places = Vec::with_capacity(members.len());
        let mut next = first;
        for member in members {
            places.push((member, next));
            next += self.cx.module.types.leaves(member).len() as u32;
        }
        match step {
            Step::Field { n, .. } => {
                let (member, first) = places[n as usize];
                self.store_part(at, member, first, rest, leaves);
            }
            Step::Element { index, .. } => match self.b.func().as_bits(index) {
                Some(n) => {
                    if let Some(&(member, first)) = places.get(n as usize) {
                        self.store_part(at, member, first, rest, leaves);
                    }
                }
                None => {
                    for (n, (member, first)) in places.into_iter().enumerate() {
                        let is = self.is_index(index, n as u64);
                        let (here, go_on) = (self.new_block(), self.new_block());
                        self.b.cbr(is, here, go_on);
                        self.enter(here);
                        self.store_part(at, member, first, rest, leaves);
                        self.b.br(go_on);
                        self.enter(go_on);
                    }
                }
            },
            // Maps are in no buffer.
            Step::Key { .. } => {}
        }
    }

    /// `[a, b]` in a kernel, where a struct wants an array.
    pub(super) fn inline_literal(
        &mut self,
        items: &[ExprId],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        let wanted = want.filter(|&t| self.cx.is_inline_array(t));
        let Some((t, TyKind::Array(element, n))) = wanted.map(|t| (t, self.cx.tys.kind(t))) else {
            let help = "declare a local array: `var t = Array<f32, 4>()`";
            return Err(self.error(
                Code::MIR1802,
                span,
                "a kernel cannot make an array here",
                help,
            ));
        };
        if n != items.len() as u64 {
            let found = self.cx.tys.intern(TyKind::Array(element, items.len() as u64));
            return Err(self.mismatch(span, found, t));
        }
        let mut parts = Vec::with_capacity(items.len());
        for &item in items {
            let val = self.expr_as(item, element)?;
            parts.push(self.as_member(val));
        }
        let t = self.norm(t);
        let id = self.cx.machine(t, Form::Packed);
        let v = self.b.value(Op::StructNew, id, &parts, 0);
        Ok(self.val(t, v))
    }

    /// An array of a host struct as the members that a device has.
    pub(super) fn pack_inline(
        &mut self,
        array: Val,
        element: Ty,
        of: super::pack::Origin,
    ) -> Value {
        let id = self.cx.machine(array.ty, Form::Packed);
        let mut parts = Vec::new();
        for n in 0..self.cx.fixed_length(array.ty) {
            let index = self.i64(n as i64);
            let item = self.element(array, index, element, Span::NONE);
            parts.push(match element {
                ty::BOOL => self.b.cast(item.v, fixed::U32),
                _ => self.packed(item, of),
            });
        }
        self.b.value(Op::StructNew, id, &parts, 0)
    }

    /// Members that a device had as the array of a host struct.
    pub(super) fn unpack_inline(&mut self, v: Value, array: Ty, element: Ty) -> Val {
        let member = self.cx.member_machine(element);
        let mut items = Vec::new();
        for n in 0..self.cx.fixed_length(array) {
            let part = self.b.value(Op::StructGet, member, &[v], n);
            items.push(self.unpacked_member(part, element).v);
        }
        let id = self.machine(array);
        let v = self.b.value(Op::ArrFrom, id, &items, 0);
        self.val(array, v)
    }
}
