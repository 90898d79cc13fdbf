//! Rules of device memory, atomics and subgroups.

use super::inst::InstCheck;
use super::{Check, Fault, Stage};
use crate::Const;
use magpie_types::{PrimType, TypeId, TypeKind, fixed};

/// The largest shared or local array, in bytes.
const MAX_ARRAY_BYTES: u64 = 1 << 31;

impl InstCheck<'_, '_> {
    /// The element type of a buffer, shared array or local array.
    fn memory(&self, ty: TypeId) -> Check<TypeId> {
        match self.types().kind(ty) {
            TypeKind::Buffer(t) | TypeKind::SharedArray(t, _) | TypeKind::LocalArray(t, _) => Ok(t),
            _ => Err(self.wrong_operand(0, ty, "a buffer, a shared or a local array")),
        }
    }

    fn element_index(&self, ty: TypeId) -> Check {
        match ty {
            fixed::U32 | fixed::U64 | fixed::I32 | fixed::I64 => Ok(()),
            _ => Err(self.wrong_operand(1, ty, "`u32`, `u64`, `i32` or `i64`")),
        }
    }

    pub(super) fn buffer_load(&self) -> Check {
        let [memory, index] = self.operands()?;
        let element = self.memory(memory)?;
        self.element_index(index)?;
        self.result_is(element)
    }

    pub(super) fn buffer_store(&self) -> Check {
        let [memory, index, value] = self.operands()?;
        let element = self.memory(memory)?;
        self.element_index(index)?;
        self.same(2, value, element)?;
        self.result_is(fixed::UNIT)
    }

    /// The scalar of an element that the immediate names.
    fn leaf(&self, element: TypeId) -> Check<TypeId> {
        let leaves = self.types().leaves(element);
        Ok(leaves[self.below("leaf", leaves.len())?].ty)
    }

    pub(super) fn leaf_load(&self) -> Check {
        let [memory, index] = self.operands()?;
        let leaf = self.leaf(self.memory(memory)?)?;
        self.element_index(index)?;
        self.result_is(leaf)
    }

    pub(super) fn leaf_store(&self) -> Check {
        let [memory, index, value] = self.operands()?;
        let leaf = self.leaf(self.memory(memory)?)?;
        self.element_index(index)?;
        self.same(2, value, leaf)?;
        self.result_is(fixed::UNIT)
    }

    pub(super) fn buffer_len(&self) -> Check {
        let [memory] = self.operands()?;
        self.memory(memory)?;
        match self.data.ty {
            fixed::U32 | fixed::U64 => Ok(()),
            _ => Err(self.wrong_result("`u32` or `u64`")),
        }
    }

    pub(super) fn shared_array(&self) -> Check {
        match self.types().kind(self.data.ty) {
            TypeKind::SharedArray(t, len) => self.array_size(t, len),
            _ => Err(self.wrong_result("a shared array")),
        }
    }

    pub(super) fn local_array(&self) -> Check {
        match self.types().kind(self.data.ty) {
            TypeKind::LocalArray(t, len) => self.array_size(t, len),
            _ => Err(self.wrong_result("a local array")),
        }
    }

    /// The limits of targets are checked with the rules of the language; this one is for arithmetic
    /// on sizes after them.
    fn array_size(&self, element: TypeId, len: u32) -> Check {
        let bytes = self.types().stride(element) as u64 * len as u64;
        if len == 0 || (bytes > MAX_ARRAY_BYTES && self.v.stage == Stage::Core) {
            let message = format!("the array has {len} elements of {bytes} bytes in all");
            return Err(Fault::structure(message));
        }
        Ok(())
    }

    /// Atomics on 32- and 64-bit integers, some also on floats.
    pub(super) fn atomic(&self, operands: usize, floats: bool) -> Check {
        let types = self.operand_types(operands)?;
        if matches!(self.types().kind(types[0]), TypeKind::LocalArray(..)) {
            return Err(self.wrong_operand(0, types[0], "a buffer or a shared array"));
        }
        let element = self.memory(types[0])?;
        self.element_index(types[1])?;
        let (fits, wanted) = match element {
            fixed::I32 | fixed::U32 | fixed::I64 | fixed::U64 => (true, ""),
            fixed::F32 | fixed::F64 if floats => (true, ""),
            _ if floats => (false, "elements of `i32 u32 i64 u64 f32 f64`"),
            _ => (false, "elements of `i32 u32 i64 u64`"),
        };
        if !fits {
            return Err(self.wrong_operand(0, types[0], wanted));
        }
        for (n, &ty) in types.iter().enumerate().skip(2) {
            self.same(n, ty, element)?;
        }
        self.result_is(element)
    }

    // ----- subgroups -----

    fn scalar_operand(&self, ty: TypeId) -> Check<PrimType> {
        let prim = self.types().prim(ty).filter(|&p| p != PrimType::Unit);
        prim.ok_or_else(|| self.wrong_operand(0, ty, "a scalar"))
    }

    pub(super) fn shuffle(&self) -> Check {
        let [value, lane] = self.operands()?;
        self.scalar_operand(value)?;
        self.same(1, lane, fixed::U32)?;
        self.result_is(value)
    }

    pub(super) fn subgroup_reduction(&self) -> Check {
        let [value] = self.operands()?;
        if self.scalar_operand(value)? == PrimType::Bool {
            return Err(self.wrong_operand(0, value, "a number"));
        }
        self.result_is(value)
    }

    pub(super) fn subgroup_vote(&self, result: TypeId) -> Check {
        let [value] = self.operands()?;
        self.same(0, value, fixed::BOOL)?;
        self.result_is(result)
    }

    pub(super) fn print(&self) -> Check {
        for (n, &v) in self.args().iter().enumerate() {
            let ty = self.ty(n);
            let is_text = matches!(self.v.f.as_const(v), Some(Const::Str(_)));
            let is_scalar = self.types().prim(ty).is_some_and(|p| p != PrimType::Unit);
            if !is_scalar && !is_text && self.v.stage == Stage::Core {
                return Err(self.wrong_operand(n, ty, "a scalar or a constant text"));
            }
        }
        self.result_is(fixed::UNIT)
    }
}
