//! Which types devices can have.

use super::body::{Body, Val};
use super::{Cx, Lower};
use crate::ast::*;
use crate::program::Item;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::Span;
use magpie_mpir::Op;

impl Cx<'_> {
    /// Whether values of a type may be elements of a device buffer.
    pub(super) fn is_element(&mut self, t: Ty) -> bool {
        if self.open.len() > 64 {
            return false;
        }
        self.open.push(t);
        let fits = match self.tys.kind(t) {
            TyKind::Bool
            | TyKind::Int
            | TyKind::Float
            | TyKind::Prim(_)
            | TyKind::Vector(..)
            | TyKind::Error => true,
            TyKind::Atomic(_) => true,
            TyKind::Tuple(items) => {
                let items = self.tys.items(items).to_vec();
                items.iter().all(|&t| self.is_element(t))
            }
            TyKind::Struct(n, args) => {
                self.is_declared_accelerable(n) && {
                    let fields = self.fields(n, args);
                    fields.iter().all(|f| self.is_inline_array(f.1) || self.is_element(f.1))
                }
            }
            _ => false,
        };
        self.open.pop();
        fits
    }

    pub(super) fn is_declared_accelerable(&self, n: u32) -> bool {
        let decl = &self.program.structs[n as usize];
        decl.implements.iter().any(|name| self.program.name(name.sym) == "Accelerable")
    }

    /// Whether a type or its elements are structs that say that they are accelerable: when they are
    /// not, that is reported where they are declared.
    pub(super) fn is_reported_element(&self, t: Ty) -> bool {
        let t = self.tys.element(t).unwrap_or(t);
        matches!(self.tys.kind(t), TyKind::Struct(n, _) if self.is_declared_accelerable(n))
    }

    /// The array among the fields of accelerable structs that are elements of a collection.
    pub(super) fn array_field(&mut self, t: Ty) -> Option<String> {
        let element = self.tys.element(t)?;
        let TyKind::Struct(n, args) = self.tys.kind(element) else { return None };
        let fields = self.fields(n, args);
        let is_array = |cx: &Self, t: Ty| matches!(cx.tys.kind(t), TyKind::Array(..));
        let found = fields.iter().find(|f| is_array(self, f.1) && !self.is_inline_array(f.1));
        let (name, _) = found.filter(|_| self.is_declared_accelerable(n))?;
        Some(self.program.name(*name).to_string())
    }

    /// Whether a type may be bound with `gpu`.
    pub(super) fn is_accelerable(&mut self, t: Ty) -> bool {
        match self.tys.kind(t) {
            TyKind::Array(t, _) | TyKind::List(t) => self.is_element(t),
            TyKind::Struct(n, args) if self.is_declared_accelerable(n) => {
                let fields = self.fields(n, args);
                fields.iter().all(|f| match self.tys.kind(f.1) {
                    TyKind::Array(t, _) | TyKind::List(t) => self.is_element(t),
                    _ => self.is_element(f.1),
                })
            }
            TyKind::Atomic(_) => false,
            _ => self.is_element(t),
        }
    }
}

impl Body<'_, '_, '_> {
    /// The methods of the trait `Accelerable`, which nobody needs to write.
    pub(super) fn accelerable_method(
        &mut self,
        val: Val,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        let is_method = matches!(name, "byte_size" | "binding_kind");
        if !is_method || self.device || !self.cx.is_accelerable(val.ty) {
            return Ok(None);
        }
        let [] = self.plain_args(name, args, span)?;
        let t = self.cx.resident_type(val.ty);
        if name == "byte_size" {
            let bytes = match (self.cx.resident_bytes(t), self.cx.tys.kind(t)) {
                (None, TyKind::List(element)) => {
                    let id = self.cx.element_machine(element);
                    let stride = self.i64(self.cx.module.types.stride(id).into());
                    let len = self.array_len(val.v);
                    self.b.same(Op::IMul, &[len, stride])
                }
                (bytes, _) => self.i64(bytes.unwrap_or(0) as i64),
            };
            return Ok(Some(self.val(ty::INT, bytes)));
        }
        // Numbers travel with the launch, everything else in buffers.
        let variant = u64::from(self.cx.tys.scalar(t, true).is_some());
        let program = self.cx.program;
        let kind = program.names.find("AcceleratorBindingKind");
        let Some(Item::Enum(n)) = kind.and_then(|name| program.item(name, span)) else {
            return Ok(None);
        };
        let list = self.cx.tys.list(&[]);
        let kind = self.cx.tys.intern(TyKind::Enum(n, list));
        Ok(Some(self.const_val(kind, variant)))
    }
}
