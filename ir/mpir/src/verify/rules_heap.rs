//! Rules of ownership, heap structs, enums, arrays and maps.

use super::inst::InstCheck;
use super::{Check, Fault};
use magpie_types::abi::ScalarClass;
use magpie_types::{Category, RefMode, TypeId, TypeKind, fixed};

impl InstCheck<'_, '_> {
    // ----- receivers and views -----

    /// The type behind a view or a shared handle; other types as they are.
    pub(super) fn seen_through(&self, ty: TypeId) -> TypeId {
        match self.types().kind(ty) {
            TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow | RefMode::Shared, t) => t,
            _ => ty,
        }
    }

    /// The type that an operation changes: of an owned value or behind an exclusive view.
    fn changed(&self, ty: TypeId) -> TypeId {
        match self.types().kind(ty) {
            TypeKind::Ref(RefMode::MutBorrow, t) => t,
            _ => ty,
        }
    }

    fn array(&self, ty: TypeId, object: TypeId) -> Check<TypeId> {
        match self.types().kind(object) {
            TypeKind::Array(t) => Ok(t),
            _ => Err(self.wrong_operand(0, ty, "an array")),
        }
    }

    fn read_array(&self, ty: TypeId) -> Check<TypeId> {
        self.array(ty, self.seen_through(ty))
    }

    fn changed_array(&self, ty: TypeId) -> Check<TypeId> {
        self.array(ty, self.changed(ty))
    }

    fn map(&self, ty: TypeId, object: TypeId) -> Check<(TypeId, TypeId)> {
        match self.types().kind(object) {
            TypeKind::Map(k, v) => Ok((k, v)),
            _ => Err(self.wrong_operand(0, ty, "a map")),
        }
    }

    fn read_map(&self, ty: TypeId) -> Check<(TypeId, TypeId)> {
        self.map(ty, self.seen_through(ty))
    }

    fn changed_map(&self, ty: TypeId) -> Check<(TypeId, TypeId)> {
        self.map(ty, self.changed(ty))
    }

    /// The result shows a part of type `part` of an object: a copy of a copyable part; another
    /// counted handle for a shared or weak one; else a view.
    fn result_shows(&self, part: TypeId) -> Check {
        let types = self.types();
        if types.is_copy(part) {
            return self.result_is(part);
        }
        let seen = match (types.kind(part), types.kind(self.data.ty)) {
            (TypeKind::Ref(RefMode::Shared, t), TypeKind::Ref(RefMode::Borrow, u)) => t == u,
            (TypeKind::Ref(..), _) => self.data.ty == part,
            (_, TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, t)) => t == part,
            _ => false,
        };
        let name = self.name(part);
        if seen { Ok(()) } else { Err(self.wrong_result(&format!("a view of `{name}`"))) }
    }

    /// The result is the type made of `kind`.
    fn result_kind(&self, kind: TypeKind, wanted: &str) -> Check {
        if self.types().kind(self.data.ty) == kind {
            return Ok(());
        }
        Err(self.wrong_result(wanted))
    }

    fn no_result(&self) -> Check {
        self.result_is(fixed::UNIT)
    }

    fn length_result(&self) -> Check {
        match self.data.ty {
            fixed::I32 | fixed::U32 | fixed::I64 | fixed::U64 => Ok(()),
            _ => Err(self.wrong_result("`i32`, `u32`, `i64` or `u64`")),
        }
    }

    /// Operand `n` is a value of type `wanted` that is only looked at.
    fn looks_at(&self, n: usize, ty: TypeId, wanted: TypeId) -> Check {
        match ty == wanted {
            true => Ok(()),
            false => self.same(n, self.seen_through(ty), wanted),
        }
    }

    // ----- ownership -----

    pub(super) fn borrow(&self) -> Check {
        let [value] = self.operands()?;
        let mode = match self.data.op {
            crate::Op::BorrowMut => RefMode::MutBorrow,
            _ => RefMode::Borrow,
        };
        let object = match self.types().kind(value) {
            TypeKind::Ref(RefMode::MutBorrow, t) => t,
            TypeKind::Ref(RefMode::Borrow | RefMode::Shared, t) if mode == RefMode::Borrow => t,
            TypeKind::Ref(..) => {
                return Err(self.wrong_operand(0, value, "a value that may be viewed so"));
            }
            _ => value,
        };
        let name = self.name(object);
        self.result_kind(TypeKind::Ref(mode, object), &format!("a view of `{name}`"))
    }

    pub(super) fn share(&self) -> Check {
        let [value] = self.operands()?;
        if !self.types().is_heap(value) {
            return Err(self.wrong_operand(0, value, "an owned heap object"));
        }
        self.result_kind(TypeKind::Ref(RefMode::Shared, value), "a shared handle of the operand")
    }

    fn handle(&self, mode: RefMode) -> Check<TypeId> {
        let [value] = self.operands()?;
        match self.types().kind(value) {
            TypeKind::Ref(m, t) if m == mode && self.types().is_heap(t) => Ok(t),
            _ => Err(self.wrong_operand(0, value, &format!("a {} handle", mode.name()))),
        }
    }

    pub(super) fn clone_shared(&self) -> Check {
        self.handle(RefMode::Shared)?;
        self.result_is(self.ty(0))
    }

    pub(super) fn clone_weak(&self) -> Check {
        self.handle(RefMode::Weak)?;
        self.result_is(self.ty(0))
    }

    pub(super) fn weak_downgrade(&self) -> Check {
        let object = self.handle(RefMode::Shared)?;
        self.result_kind(TypeKind::Ref(RefMode::Weak, object), "a weak handle of the object")
    }

    pub(super) fn weak_upgrade(&self) -> Check {
        let object = self.handle(RefMode::Weak)?;
        let shared = self.types().lookup(TypeKind::Ref(RefMode::Shared, object));
        let result = shared.and_then(|s| self.types().lookup(TypeKind::Option(s)));
        match result {
            Some(result) => self.result_is(result),
            None => Err(self.wrong_result("`TOption` of a shared handle of the object")),
        }
    }

    pub(super) fn count(&self) -> Check {
        let [_] = self.operands()?;
        self.no_result()
    }

    // ----- heap structs -----

    fn heap_struct(&self, ty: TypeId) -> Option<Vec<TypeId>> {
        match self.types().kind(ty) {
            TypeKind::Struct(s) if self.types().struct_def(s).category == Category::Heap => {
                Some(self.types().struct_def(s).fields.iter().map(|f| f.ty).collect())
            }
            _ => None,
        }
    }

    pub(super) fn new_object(&self) -> Check {
        match self.heap_struct(self.data.ty) {
            Some(fields) => self.has_types(&fields),
            None => Err(self.wrong_result("a heap struct")),
        }
    }

    pub(super) fn get_field(&self) -> Check {
        let [object] = self.operands()?;
        let Some(fields) = self.fields_in_memory(object, self.seen_through(object)) else {
            return Err(self.wrong_operand(0, object, "a heap struct, or a view of a struct"));
        };
        self.result_shows(fields[self.below("field", fields.len())?])
    }

    /// The fields of the struct `seen` that an operand of type `object` is or shows. A value struct
    /// behind a view is memory too; one at hand is taken apart by `struct.get`.
    fn fields_in_memory(&self, object: TypeId, seen: TypeId) -> Option<Vec<TypeId>> {
        let of_value = match self.types().kind(seen) {
            TypeKind::Struct(_) if seen != object => self.types().members(seen),
            _ => None,
        };
        of_value.or_else(|| self.heap_struct(seen))
    }

    fn changed_field(&self, object: TypeId) -> Check<TypeId> {
        let Some(fields) = self.fields_in_memory(object, self.changed(object)) else {
            return Err(self.wrong_operand(0, object, "a struct in memory that may be changed"));
        };
        Ok(fields[self.below("field", fields.len())?])
    }

    pub(super) fn set_field(&self) -> Check {
        let [object, value] = self.operands()?;
        let field = self.changed_field(object)?;
        self.same(1, value, field)?;
        self.no_result()
    }

    pub(super) fn field_place(&self) -> Check {
        let [object] = self.operands()?;
        self.result_is_place(self.changed_field(object)?)
    }

    /// The result is an exclusive view of a part that has parts itself.
    fn result_is_place(&self, part: TypeId) -> Check {
        let wanted = format!("an exclusive view of `{}`", self.name(part));
        match self.types().kind(part) {
            TypeKind::Array(_) | TypeKind::Map(..) | TypeKind::Struct(_) => {
                self.result_kind(TypeKind::Ref(RefMode::MutBorrow, part), &wanted)
            }
            _ => Err(Fault::ill_typed(format!("a `{}` has no parts", self.name(part)))),
        }
    }

    // ----- enums -----

    /// Field types of each variant of an enum, `TOption` or `TResult`.
    fn variants(&self, ty: TypeId) -> Option<Vec<Vec<TypeId>>> {
        match self.types().kind(ty) {
            TypeKind::Option(t) => Some(vec![vec![], vec![t]]),
            TypeKind::Result(t, e) => Some(vec![vec![t], vec![e]]),
            TypeKind::Enum(e) => {
                let variants = &self.types().enum_def(e).variants;
                Some(variants.iter().map(|v| v.fields.iter().map(|f| f.ty).collect()).collect())
            }
            _ => None,
        }
    }

    fn enum_operand(&self) -> Check<Vec<Vec<TypeId>>> {
        let [value] = self.operands()?;
        let variants = self.variants(self.seen_through(value));
        variants.ok_or_else(|| self.wrong_operand(0, value, "an enum, `TOption` or `TResult`"))
    }

    pub(super) fn enum_new(&self) -> Check {
        let Some(variants) = self.variants(self.data.ty) else {
            return Err(self.wrong_result("an enum, `TOption` or `TResult`"));
        };
        self.no_field()?;
        self.has_types(&variants[self.below("variant", variants.len())?])
    }

    fn no_field(&self) -> Check {
        match self.data.imm_hi() {
            0 => Ok(()),
            _ => Err(Fault::structure("`field` belongs to `enum.payload`")),
        }
    }

    pub(super) fn enum_tag(&self) -> Check {
        self.enum_operand()?;
        self.result_is(fixed::I32)
    }

    pub(super) fn enum_is(&self) -> Check {
        let variants = self.enum_operand()?;
        self.no_field()?;
        self.below("variant", variants.len())?;
        self.result_is(fixed::BOOL)
    }

    /// An owned enum gives up the field, a view shows it.
    pub(super) fn enum_payload(&self) -> Check {
        let variants = self.enum_operand()?;
        let fields = &variants[self.below("variant", variants.len())?];
        let Some(&field) = fields.get(self.data.imm_hi() as usize) else {
            let message = format!("`field={}`, but there are {}", self.data.imm_hi(), fields.len());
            return Err(Fault::structure(message));
        };
        match self.seen_through(self.ty(0)) == self.ty(0) {
            true => self.result_is(field),
            false => self.result_shows(field),
        }
    }

    // ----- arrays -----

    pub(super) fn arr_new(&self) -> Check {
        let [capacity] = self.operands()?;
        self.is_int(0, capacity)?;
        match self.types().kind(self.data.ty) {
            TypeKind::Array(_) => Ok(()),
            _ => Err(self.wrong_result("an array")),
        }
    }

    pub(super) fn arr_from(&self) -> Check {
        let TypeKind::Array(element) = self.types().kind(self.data.ty) else {
            return Err(self.wrong_result("an array"));
        };
        self.has_types(&vec![element; self.args().len()])
    }

    pub(super) fn arr_len(&self) -> Check {
        let [array] = self.operands()?;
        self.read_array(array)?;
        self.length_result()
    }

    pub(super) fn arr_get(&self) -> Check {
        let [array, index] = self.operands()?;
        let element = self.read_array(array)?;
        self.is_int(1, index)?;
        self.result_shows(element)
    }

    pub(super) fn arr_place(&self) -> Check {
        let [array, index] = self.operands()?;
        let element = self.changed_array(array)?;
        self.is_int(1, index)?;
        self.result_is_place(element)
    }

    pub(super) fn arr_set(&self) -> Check {
        let [array, index, value] = self.operands()?;
        let element = self.changed_array(array)?;
        self.is_int(1, index)?;
        self.same(2, value, element)?;
        self.no_result()
    }

    pub(super) fn arr_push(&self) -> Check {
        let [array, value] = self.operands()?;
        let element = self.changed_array(array)?;
        self.same(1, value, element)?;
        self.no_result()
    }

    pub(super) fn arr_pop(&self) -> Check {
        let [array] = self.operands()?;
        let element = self.changed_array(array)?;
        self.result_kind(TypeKind::Option(element), "`TOption` of the element type")
    }

    pub(super) fn arr_slice(&self) -> Check {
        let [array, start, end] = self.operands()?;
        let element = self.read_array(array)?;
        self.is_int(1, start)?;
        self.is_int(2, end)?;
        self.result_kind(TypeKind::Array(element), "an array like operand 0")
    }

    pub(super) fn arr_contains(&self) -> Check {
        let [array, value] = self.operands()?;
        let element = self.read_array(array)?;
        self.looks_at(1, value, element)?;
        self.comparator("eq", self.data.imm_lo(), element, 2, fixed::BOOL)?;
        self.result_is(fixed::BOOL)
    }

    pub(super) fn arr_sort(&self) -> Check {
        let [array] = self.operands()?;
        let element = self.changed_array(array)?;
        self.comparator("ord", self.data.imm_lo(), element, 2, fixed::I32)?;
        self.no_result()
    }

    /// The function behind `key`: `count` parameters of the type or views of it. Without one the
    /// type has a built-in comparison.
    fn comparator(&self, key: &str, slot: u32, ty: TypeId, count: usize, ret: TypeId) -> Check {
        let Some(id) = slot.checked_sub(1) else {
            if ScalarClass::from_u64(ty.0 as u64).is_some() {
                return Ok(());
            }
            let name = self.name(ty);
            return Err(Fault::ill_typed(format!("`{name}` needs `{key}=`")));
        };
        let f = self.v.m.func(crate::FnId(id));
        let fits = f.params.len() == count
            && f.params.iter().all(|p| self.is_or_views(p.1, ty))
            && f.ret_ty == ret
            && f.domain == crate::Domain::Host;
        if fits {
            return Ok(());
        }
        let (f, name, ret) = (&f.name, self.name(ty), self.name(ret));
        let message = format!("`{f}` does not take {count} values `{name}` and return `{ret}`");
        Err(Fault::ill_typed(message))
    }

    /// Whether a parameter takes values of type `ty` without owning them.
    fn is_or_views(&self, param: TypeId, ty: TypeId) -> bool {
        (param == ty && self.types().is_copy(ty))
            || self.types().kind(param) == TypeKind::Ref(RefMode::Borrow, ty)
    }

    /// Callable operand `n` is called with an element; gives its result type.
    fn element_callable(&self, n: usize, first: &[TypeId], element: TypeId) -> Check<TypeId> {
        let sig = self.callable(n)?;
        let fits = sig.params.len() == first.len() + 1
            && sig.params.starts_with(first)
            && self.is_or_views(sig.params[first.len()], element);
        if fits {
            return Ok(sig.ret);
        }
        let wanted = format!("a callable that takes `{}`", self.name(element));
        Err(self.wrong_operand(n, self.ty(n), &wanted))
    }

    pub(super) fn arr_map(&self) -> Check {
        let [array, _] = self.operands()?;
        let element = self.read_array(array)?;
        let result = self.element_callable(1, &[], element)?;
        self.result_kind(TypeKind::Array(result), "an array of the callable's results")
    }

    pub(super) fn arr_filter(&self) -> Check {
        let [array, callable] = self.operands()?;
        let element = self.read_array(array)?;
        if self.element_callable(1, &[], element)? != fixed::BOOL {
            return Err(self.wrong_operand(1, callable, "a callable that returns `bool`"));
        }
        self.result_kind(TypeKind::Array(element), "an array like operand 0")
    }

    pub(super) fn arr_reduce(&self) -> Check {
        let [array, init, callable] = self.operands()?;
        let element = self.read_array(array)?;
        if self.element_callable(2, &[init], element)? != init {
            let wanted = "a callable that returns what it takes first";
            return Err(self.wrong_operand(2, callable, wanted));
        }
        self.result_is(init)
    }

    pub(super) fn arr_foreach(&self) -> Check {
        let [array, callable] = self.operands()?;
        let element = self.read_array(array)?;
        if self.element_callable(1, &[], element)? != fixed::UNIT {
            return Err(self.wrong_operand(1, callable, "a callable that returns `unit`"));
        }
        self.no_result()
    }

    // ----- maps -----

    pub(super) fn map_new(&self) -> Check {
        let [] = self.operands()?;
        let TypeKind::Map(key, _) = self.types().kind(self.data.ty) else {
            return Err(self.wrong_result("a map"));
        };
        self.comparator("hash", self.data.imm_lo(), key, 1, fixed::U64)?;
        self.comparator("eq", self.data.imm_hi(), key, 2, fixed::BOOL)
    }

    pub(super) fn map_set(&self) -> Check {
        let [map, key, value] = self.operands()?;
        let (k, v) = self.changed_map(map)?;
        self.same(1, key, k)?;
        self.same(2, value, v)?;
        self.no_result()
    }

    /// `map.get` and `map.delete`.
    pub(super) fn map_get(&self) -> Check {
        let [map, key] = self.operands()?;
        let (k, v) = match self.data.op {
            crate::Op::MapDelete => self.changed_map(map)?,
            _ => self.read_map(map)?,
        };
        self.looks_at(1, key, k)?;
        self.result_kind(TypeKind::Option(v), "`TOption` of the value type")
    }

    pub(super) fn map_get_ref(&self) -> Check {
        let [map, key] = self.operands()?;
        let (k, v) = self.read_map(map)?;
        self.looks_at(1, key, k)?;
        self.result_shows(v)
    }

    pub(super) fn map_place(&self) -> Check {
        let [map, key] = self.operands()?;
        let (k, v) = self.changed_map(map)?;
        self.looks_at(1, key, k)?;
        self.result_is_place(v)
    }

    pub(super) fn map_len(&self) -> Check {
        let [map] = self.operands()?;
        self.read_map(map)?;
        self.length_result()
    }

    pub(super) fn map_contains_key(&self) -> Check {
        let [map, key] = self.operands()?;
        let (k, _) = self.read_map(map)?;
        self.looks_at(1, key, k)?;
        self.result_is(fixed::BOOL)
    }

    pub(super) fn map_delete_void(&self) -> Check {
        let [map, key] = self.operands()?;
        let (k, _) = self.changed_map(map)?;
        self.looks_at(1, key, k)?;
        self.no_result()
    }

    pub(super) fn map_list(&self, keys: bool) -> Check {
        let [map] = self.operands()?;
        let (k, v) = self.read_map(map)?;
        self.result_kind(TypeKind::Array(if keys { k } else { v }), "an array of the entries")
    }
}
