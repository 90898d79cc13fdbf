//! Sizes, alignments and the flattening of aggregates.
//!
//! One layout serves arrays, device buffers and the scalar block (language reference, section
//! 5.3): fields in order at natural alignment, the size rounded up to the alignment. For structs
//! of scalars this is std430.

use crate::{Category, PrimType, TypeCtx, TypeId, TypeKind};

/// Size and alignment in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    #[allow(missing_docs)]
    pub size: u32,
    #[allow(missing_docs)]
    pub align: u32,
}

/// One scalar or handle inside a value, with its byte offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    #[allow(missing_docs)]
    pub ty: TypeId,
    /// Bytes from the start of the value.
    pub offset: u32,
}

/// Places fields one behind the other; returns their offsets and the whole layout. A size past
/// `u32` stays at its largest value: front ends refuse such types.
pub fn place(fields: impl IntoIterator<Item = Layout>) -> (Vec<u32>, Layout) {
    let mut offsets = Vec::new();
    let (mut size, mut align) = (0u32, 1u32);
    let up = |size: u32, align| size.checked_next_multiple_of(align).unwrap_or(u32::MAX);
    for f in fields {
        size = up(size, f.align);
        offsets.push(size);
        size = size.saturating_add(f.size);
        align = align.max(f.align);
    }
    (offsets, Layout { size: up(size, align), align })
}

/// Where the fields of a heap object lie in its payload (the memory behind the object header).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectLayout {
    /// Size and alignment of the payload in bytes.
    pub payload: Layout,
    /// Byte offsets from the start of the payload: one list for a struct or for the captures of a
    /// callable, one list a variant for an enum.
    pub fields: Vec<Vec<u32>>,
}

impl TypeCtx {
    /// The payload of a heap struct or heap enum; `None` for other types.
    ///
    /// A struct holds its fields in order at natural alignment. An enum holds its tag, an `i32`,
    /// and then the fields of **all** variants one behind the other; those of inactive variants
    /// are zero. So the place of a handle does not depend on the tag.
    pub fn object_layout(&self, ty: TypeId) -> Option<ObjectLayout> {
        match self.kind(ty) {
            TypeKind::Struct(s) if self.struct_def(s).category == Category::Heap => {
                let (offsets, payload) = self.field_offsets(0, &self.struct_def(s).fields);
                Some(ObjectLayout { payload, fields: vec![offsets] })
            }
            TypeKind::Enum(e) if self.enum_def(e).category == Category::Heap => {
                let variants = &self.enum_def(e).variants;
                let tag = self.layout(PrimType::I32.id());
                let fields = variants.iter().flat_map(|v| &v.fields);
                let (offsets, payload) =
                    place(std::iter::once(tag).chain(fields.map(|f| self.layout(f.ty))));
                let mut rest = offsets.into_iter().skip(1);
                let take = |v: &crate::Variant| rest.by_ref().take(v.fields.len()).collect();
                Some(ObjectLayout { payload, fields: variants.iter().map(take).collect() })
            }
            _ => None,
        }
    }

    /// The payload of a callable: the code address (8 bytes), then the captured values in order.
    pub fn callable_layout(&self, captures: &[TypeId]) -> ObjectLayout {
        let code = Layout { size: 8, align: 8 };
        let (mut offsets, payload) =
            place(std::iter::once(code).chain(captures.iter().map(|&c| self.layout(c))));
        offsets.remove(0);
        ObjectLayout { payload, fields: vec![offsets] }
    }

    /// The types of the members of an aggregate in memory order, or `None` for other types.
    ///
    /// Aggregates are value structs, `TOption` (tag, payload) and `TResult` (tag, ok, err). The
    /// payload of a variant that is not active is zero, so that handles in it are null.
    pub fn members(&self, ty: TypeId) -> Option<Vec<TypeId>> {
        match self.kind(ty) {
            TypeKind::Struct(s) if self.struct_def(s).category == Category::Value => {
                Some(self.struct_def(s).fields.iter().map(|f| f.ty).collect())
            }
            TypeKind::Option(t) => Some(vec![PrimType::I32.id(), t]),
            TypeKind::Result(t, e) => Some(vec![PrimType::I32.id(), t, e]),
            _ => None,
        }
    }

    /// Whether values are spread over several scalars ([`TypeCtx::members`]).
    pub fn is_aggregate(&self, ty: TypeId) -> bool {
        match self.kind(ty) {
            TypeKind::Struct(s) => self.struct_def(s).category == Category::Value,
            TypeKind::Option(_) | TypeKind::Result(..) => true,
            _ => false,
        }
    }

    /// Whether values are addresses of counted heap objects.
    pub fn is_heap(&self, ty: TypeId) -> bool {
        match self.kind(ty) {
            TypeKind::Str
            | TypeKind::Opaque(_)
            | TypeKind::Array(_)
            | TypeKind::Map(..)
            | TypeKind::Callable(_)
            | TypeKind::Buffer(_)
            | TypeKind::MlxArray(_) => true,
            TypeKind::Struct(s) => self.struct_def(s).category == Category::Heap,
            TypeKind::Enum(e) => self.enum_def(e).category == Category::Heap,
            TypeKind::Prim(_)
            | TypeKind::Vec(..)
            | TypeKind::Option(_)
            | TypeKind::Result(..)
            | TypeKind::RawPtr(_)
            | TypeKind::SharedArray(..)
            | TypeKind::LocalArray(..)
            | TypeKind::Ref(..) => false,
        }
    }

    /// Whether a value may be used any number of times (language reference, section 5.4).
    pub fn is_copy(&self, ty: TypeId) -> bool {
        match self.kind(ty) {
            TypeKind::Ref(mode, _) => {
                matches!(mode, crate::RefMode::Borrow | crate::RefMode::MutBorrow)
            }
            TypeKind::Option(t) => self.is_copy(t),
            TypeKind::Result(t, e) => self.is_copy(t) && self.is_copy(e),
            _ => !self.is_heap(ty),
        }
    }

    /// Size and alignment of a value in memory. Handles and addresses take 8 bytes.
    pub fn layout(&self, ty: TypeId) -> Layout {
        match self.kind(ty) {
            TypeKind::Prim(p) => Layout { size: p.size(), align: p.size().max(1) },
            TypeKind::Vec(p, n) => {
                // std430: a 3-vector is aligned like a 4-vector.
                let slots = if n == 3 { 4 } else { n as u32 };
                Layout { size: p.size() * n as u32, align: p.size() * slots }
            }
            TypeKind::Enum(e) if self.enum_def(e).category == Category::Value => {
                Layout { size: 4, align: 4 }
            }
            _ => match self.members(ty) {
                Some(members) => place(members.iter().map(|&m| self.layout(m))).1,
                None => Layout { size: 8, align: 8 },
            },
        }
    }

    /// Layout of the payload of a heap struct, or of one variant's fields placed after an `i32`
    /// tag: byte offsets of `fields` from `start`.
    pub fn field_offsets(&self, start: u32, fields: &[crate::Field]) -> (Vec<u32>, Layout) {
        let head = Layout { size: start, align: 1 };
        let (mut offsets, whole) =
            place(std::iter::once(head).chain(fields.iter().map(|f| self.layout(f.ty))));
        offsets.remove(0);
        (offsets, whole)
    }

    /// Distance in bytes between elements of an array or a buffer of `ty`.
    pub fn stride(&self, ty: TypeId) -> u32 {
        let l = self.layout(ty);
        l.size.next_multiple_of(l.align)
    }

    /// The scalars, vectors and handles that make up a value, depth first, with byte offsets.
    /// `unit` members have no leaf.
    pub fn leaves(&self, ty: TypeId) -> Vec<Leaf> {
        let mut out = Vec::new();
        self.push_leaves(ty, 0, &mut out);
        out
    }

    fn push_leaves(&self, ty: TypeId, base: u32, out: &mut Vec<Leaf>) {
        if ty == crate::fixed::UNIT {
            return;
        }
        match self.members(ty) {
            None => out.push(Leaf { ty, offset: base }),
            Some(members) => {
                let (offsets, _) = place(members.iter().map(|&m| self.layout(m)));
                for (&m, o) in members.iter().zip(offsets) {
                    self.push_leaves(m, base + o, out);
                }
            }
        }
    }

    /// The position of the first leaf of member `index` among the leaves of aggregate `ty`, and
    /// how many leaves the member has.
    pub fn member_leaves(&self, ty: TypeId, index: u32) -> (usize, usize) {
        let members = self.members(ty).unwrap_or_default();
        let count = |m: TypeId| self.leaves(m).len();
        let first = members.iter().take(index as usize).map(|&m| count(m)).sum();
        (first, members.get(index as usize).map_or(0, |&m| count(m)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, Variant, fixed};

    fn fields(types: &[TypeId]) -> Vec<Field> {
        types.iter().map(|&ty| Field { name: String::new(), ty }).collect()
    }

    #[test]
    fn gpu_error_has_the_layout_of_the_c_struct() {
        let layout = TypeCtx::new().object_layout(fixed::GPU_ERROR).unwrap();
        assert_eq!(layout.fields, [[0, 8, 16, 24]]);
        assert_eq!(layout.payload, Layout { size: 32, align: 8 });
    }

    #[test]
    fn variants_of_an_enum_do_not_overlap() {
        let mut ctx = TypeCtx::new();
        let ty = ctx.declare_enum("m.TShape", Category::Heap);
        let TypeKind::Enum(id) = ctx.kind(ty) else { panic!("an enum was declared") };
        let variant = |types: &[TypeId]| Variant { name: String::new(), fields: fields(types) };
        let variants =
            vec![variant(&[fixed::F64, fixed::U8]), variant(&[]), variant(&[fixed::STR])];
        ctx.define_enum(id, variants);
        let layout = ctx.object_layout(ty).unwrap();
        assert_eq!(layout.fields, [vec![8, 16], vec![], vec![24]]);
        assert_eq!(layout.payload, Layout { size: 32, align: 8 });
    }

    #[test]
    fn captures_follow_the_code_address() {
        let layout = TypeCtx::new().callable_layout(&[fixed::I32, fixed::STR, fixed::BOOL]);
        assert_eq!(layout.fields, [[8, 16, 24]]);
        assert_eq!(layout.payload, Layout { size: 32, align: 8 });
    }

    #[test]
    fn other_types_are_not_objects_with_fields() {
        let ctx = TypeCtx::new();
        for ty in [fixed::I32, fixed::STR, fixed::GPU_DEVICE, fixed::GPU_ERROR_KIND] {
            assert_eq!(ctx.object_layout(ty), None);
        }
    }
}
