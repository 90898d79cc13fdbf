//! Rules of conversions, choice, vectors and aggregates.

use super::inst::InstCheck;
use super::{Check, Fault};
use crate::{Domain, ValueDef};
use magpie_types::{PrimType, TypeId, TypeKind, fixed};

impl InstCheck<'_, '_> {
    /// Scalars, or vectors of as many components; the language reference, section 8.5, says which.
    pub(super) fn cast(&self) -> Check {
        let [from] = self.operands()?;
        let (to, types) = (self.data.ty, self.types());
        if types.lanes(from) != types.lanes(to) {
            return Err(self.wrong_result("a scalar or vector like the operand"));
        }
        let no_cast = Err(Fault::ill_typed(format!(
            "there is no conversion from `{}` to `{}`",
            self.name(from),
            self.name(to)
        )));
        match (types.element_prim(from), types.element_prim(to)) {
            (Some(PrimType::Unit), _) | (_, Some(PrimType::Unit)) | (None, _) | (_, None) => {
                no_cast
            }
            (Some(from), Some(PrimType::Bool | PrimType::U1)) if from.is_float() => no_cast,
            (Some(_), Some(_)) => Ok(()),
        }
    }

    pub(super) fn bits_cast(&self) -> Check {
        let [from] = self.operands()?;
        let (to, types) = (self.data.ty, self.types());
        let is_address = |ty: TypeId| matches!(types.kind(ty), TypeKind::RawPtr(_));
        let is_word = |ty: TypeId| matches!(ty, fixed::I64 | fixed::U64);
        let same_bits = match (types.element_prim(from), types.element_prim(to)) {
            (Some(a), Some(b)) => {
                types.lanes(from) == types.lanes(to)
                    && a.bit_width() == b.bit_width()
                    && a != PrimType::Unit
            }
            _ => {
                (is_address(from) && is_address(to))
                    || (is_address(from) && is_word(to))
                    || (is_word(from) && is_address(to))
            }
        };
        if same_bits {
            return Ok(());
        }
        let (from, to) = (self.name(from), self.name(to));
        Err(Fault::ill_typed(format!("`{from}` and `{to}` do not have the same width")))
    }

    pub(super) fn select(&self) -> Check {
        let [cond, a, b] = self.operands()?;
        if cond != fixed::BOOL {
            let is_vec = matches!(self.types().kind(a), TypeKind::Vec(..));
            if !is_vec || self.truth_type(a)? != cond {
                return Err(self.wrong_operand(0, cond, "`bool`, or a vector of `bool`"));
            }
        }
        self.same(2, b, a)?;
        self.v.may_be_merged(a)?;
        // Lowered host code counts by itself, before that nothing says who owns the result.
        if self.v.f.domain == Domain::Host && !self.types().is_copy(a) {
            return Err(self.wrong_operand(1, a, "a type whose values are copied"));
        }
        self.result_is(a)
    }

    // ----- vectors -----

    fn vec_operand(&self, n: usize, ty: TypeId) -> Check<(PrimType, u8)> {
        match self.types().kind(ty) {
            TypeKind::Vec(p, lanes) => Ok((p, lanes)),
            _ => Err(self.wrong_operand(n, ty, "a vector")),
        }
    }

    fn float_vec_operand(&self, n: usize, ty: TypeId) -> Check<PrimType> {
        match self.types().kind(ty) {
            TypeKind::Vec(p, _) if p.is_float() => Ok(p),
            _ => Err(self.wrong_operand(n, ty, "a vector of floats")),
        }
    }

    fn vec_result(&self) -> Check<(PrimType, u8)> {
        match self.types().kind(self.data.ty) {
            TypeKind::Vec(p, lanes) => Ok((p, lanes)),
            _ => Err(self.wrong_result("a vector")),
        }
    }

    pub(super) fn vec_new(&self) -> Check {
        let (p, lanes) = self.vec_result()?;
        let parts = self.operand_types(lanes as usize)?;
        parts.iter().enumerate().try_for_each(|(n, &ty)| self.same(n, ty, p.id()))
    }

    pub(super) fn vec_splat(&self) -> Check {
        let (p, _) = self.vec_result()?;
        let [part] = self.operands()?;
        self.same(0, part, p.id())
    }

    pub(super) fn vec_extract(&self) -> Check {
        let [vec] = self.operands()?;
        let (p, lanes) = self.vec_operand(0, vec)?;
        self.below("lane", lanes as usize)?;
        self.result_is(p.id())
    }

    pub(super) fn vec_insert(&self) -> Check {
        let [vec, part] = self.operands()?;
        let (p, lanes) = self.vec_operand(0, vec)?;
        self.below("lane", lanes as usize)?;
        self.same(1, part, p.id())?;
        self.result_is(vec)
    }

    pub(super) fn vec_dot(&self) -> Check {
        let [a, b] = self.operands()?;
        let p = self.float_vec_operand(0, a)?;
        self.same(1, b, a)?;
        self.result_is(p.id())
    }

    pub(super) fn vec_cross(&self) -> Check {
        match self.types().lanes(self.data.ty) {
            Some(3) => Ok(()),
            _ => Err(self.wrong_result("a vector of 3 components")),
        }
    }

    pub(super) fn vec_length(&self) -> Check {
        let [vec] = self.operands()?;
        let p = self.float_vec_operand(0, vec)?;
        self.result_is(p.id())
    }

    pub(super) fn vec_any(&self) -> Check {
        let [vec] = self.operands()?;
        match self.types().kind(vec) {
            TypeKind::Vec(PrimType::Bool, _) => self.result_is(fixed::BOOL),
            _ => Err(self.wrong_operand(0, vec, "a vector of `bool`")),
        }
    }

    // ----- aggregates -----

    pub(super) fn struct_new(&self) -> Check {
        let Some(members) = self.types().members(self.data.ty) else {
            return Err(self.wrong_result("a value struct, `TOption` or `TResult`"));
        };
        self.has_types(&members)
    }

    /// The operands have these types.
    pub(super) fn has_types(&self, wanted: &[TypeId]) -> Check {
        let found = self.operand_types(wanted.len())?;
        let mut pairs = found.iter().zip(wanted).enumerate();
        pairs.try_for_each(|(n, (&found, &wanted))| self.same(n, found, wanted))
    }

    pub(super) fn struct_get(&self) -> Check {
        let [aggregate] = self.operands()?;
        let Some(members) = self.types().members(aggregate) else {
            let wanted = "a value struct, `TOption` or `TResult`";
            return Err(self.wrong_operand(0, aggregate, wanted));
        };
        let member = members[self.below("field", members.len())?];
        // The rest of the aggregate would have no owner: `enum.payload` moves out.
        if self.v.f.domain == Domain::Host && !self.types().is_copy(member) {
            let message = format!("member of type `{}` cannot be copied out", self.name(member));
            return Err(Fault::ill_typed(message));
        }
        self.result_is(member)
    }

    pub(super) fn leaf_get(&self) -> Check {
        let [aggregate] = self.operands()?;
        if !self.types().is_aggregate(aggregate) {
            return Err(self.wrong_operand(0, aggregate, "an aggregate"));
        }
        if !matches!(self.v.f.def(self.args()[0]), ValueDef::Param(_)) {
            return Err(Fault::structure("operand 0 is not a parameter"));
        }
        let leaves = self.types().leaves(aggregate);
        let leaf = leaves[self.below("leaf", leaves.len())?];
        self.result_is(leaf.ty)
    }
}
