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

/// Places fields one behind the other; returns their offsets and the whole layout.
pub fn place(fields: impl IntoIterator<Item = Layout>) -> (Vec<u32>, Layout) {
    let mut offsets = Vec::new();
    let (mut size, mut align) = (0u32, 1u32);
    for f in fields {
        size = size.next_multiple_of(f.align);
        offsets.push(size);
        size += f.size;
        align = align.max(f.align);
    }
    (offsets, Layout { size: size.next_multiple_of(align), align })
}

impl TypeCtx {
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
