//! How large a type is as a tree: bounds on it keep names short and walks over types shallow, even
//! when generic functions and types make larger ones of small ones.

use super::*;
use magpie_types::TypeKind;

/// Levels and nodes of a type written out, arguments of generic types included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    depth: u32,
    nodes: u32,
}

/// Below the limit of the verifier, because operations make types around those that are written.
const MAX_DEPTH: u32 = magpie_mpir::MAX_TYPE_DEPTH as u32 - 4;
/// Each node of an option or a result adds a few members, of which the verifier allows 4096.
const MAX_NODES: u32 = 1000;

impl Extent {
    const LEAF: Extent = Extent { depth: 0, nodes: 1 };

    /// The extent of a type with these parts.
    pub(super) fn around(parts: impl IntoIterator<Item = Extent>) -> Extent {
        parts.into_iter().fold(Extent::LEAF, |whole, part| Extent {
            depth: whole.depth.max(part.depth + 1),
            nodes: whole.nodes.saturating_add(part.nodes),
        })
    }

    /// Whether a type may be so large.
    pub(super) fn fits(self) -> bool {
        self.depth <= MAX_DEPTH && self.nodes <= MAX_NODES
    }
}

impl Types {
    /// The extent of a type. Its parts fit, so that the walk is shallow.
    pub(super) fn extent(&mut self, ctx: &TypeCtx, ty: TypeId) -> Extent {
        if let Some(&known) = self.extents.get(&ty) {
            return known;
        }
        let extent = match ctx.kind(ty) {
            TypeKind::Array(t)
            | TypeKind::Option(t)
            | TypeKind::Buffer(t)
            | TypeKind::MlxArray(t)
            | TypeKind::RawPtr(t)
            | TypeKind::SharedArray(t, _)
            | TypeKind::LocalArray(t, _)
            | TypeKind::Ref(_, t) => Extent::around([self.extent(ctx, t)]),
            TypeKind::Map(a, b) | TypeKind::Result(a, b) => {
                Extent::around([self.extent(ctx, a), self.extent(ctx, b)])
            }
            // The extents of copies of generic types are known since they were made.
            TypeKind::Prim(_)
            | TypeKind::Vec(..)
            | TypeKind::Str
            | TypeKind::Opaque(_)
            | TypeKind::Callable(_)
            | TypeKind::Struct(_)
            | TypeKind::Enum(_) => return Extent::LEAF,
        };
        self.extents.insert(ty, extent);
        extent
    }
}
