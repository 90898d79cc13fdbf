//! Sizes of types: what would be too large for the later stages is refused here, by name.

use super::*;
use magpie_types::{Field as TypeField, TypeKind, fixed};

/// Members in all, those of nested value structs included: the limit of the verifier.
const MAX_MEMBERS: u32 = 4096;
/// Levels of nesting of value structs, options and results: the limit of the verifier.
const MAX_DEPTH: u32 = magpie_mpir::MAX_TYPE_DEPTH as u32;

#[derive(Clone, Copy)]
struct Extent {
    depth: u32,
    members: u32,
}

/// Reports types that are too large; those without a declaration at `elsewhere`.
pub(crate) fn check_limits(
    types: &Types,
    ctx: &TypeCtx,
    elsewhere: Span,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut extents: FxHashMap<TypeId, Extent> = FxHashMap::default();
    let mut refuse = |ty: TypeId, what: String| {
        let span = types.places.get(&ty).copied().unwrap_or(elsewhere);
        let message = format!("`{}` {what}", display_name(ctx, ty));
        diagnostics.push(
            Diagnostic::new(Code::MPT2050, span, message)
                .with_help("split it, or keep the data in arrays"),
        );
    };
    for (_, def) in ctx.structs() {
        let extent = sum(ctx, &def.fields, &mut extents);
        check(def.ty, extent, &mut refuse);
    }
    for (_, def) in ctx.enums() {
        let parts = def.variants.iter().map(|v| sum(ctx, &v.fields, &mut extents));
        let extent = parts.fold(Extent { depth: 0, members: 0 }, join);
        check(def.ty, extent, &mut refuse);
    }
    for (ty, kind) in ctx.iter() {
        if matches!(kind, TypeKind::Option(_) | TypeKind::Result(..)) {
            check(ty, extent(ctx, ty, &mut extents), &mut refuse);
        }
    }
}

fn check(ty: TypeId, extent: Extent, refuse: &mut impl FnMut(TypeId, String)) {
    if extent.members >= MAX_MEMBERS {
        refuse(ty, format!("has more than {MAX_MEMBERS} members in all"));
    } else if extent.depth >= MAX_DEPTH {
        refuse(ty, format!("nests more than {MAX_DEPTH} levels deep"));
    }
}

fn join(a: Extent, b: Extent) -> Extent {
    Extent { depth: a.depth.max(b.depth), members: a.members.saturating_add(b.members) }
}

fn sum(ctx: &TypeCtx, fields: &[TypeField], extents: &mut FxHashMap<TypeId, Extent>) -> Extent {
    let parts = fields.iter().map(|f| extent(ctx, f.ty, extents));
    parts.fold(Extent { depth: 0, members: 0 }, join)
}

/// The extent of a value of a type; value structs do not contain themselves.
fn extent(ctx: &TypeCtx, root: TypeId, extents: &mut FxHashMap<TypeId, Extent>) -> Extent {
    let mut work = vec![root];
    while let Some(&ty) = work.last() {
        if extents.contains_key(&ty) {
            work.pop();
            continue;
        }
        let members = match ctx.kind(ty) {
            TypeKind::Struct(_) | TypeKind::Option(_) | TypeKind::Result(..) => {
                ctx.members(ty).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let missing = work.len();
        work.extend(members.iter().filter(|m| !extents.contains_key(m)));
        if work.len() > missing {
            continue;
        }
        let mut whole = Extent { depth: 0, members: 1 };
        for member in &members {
            let part = extents[member];
            whole = join(whole, Extent { depth: part.depth + 1, members: part.members });
        }
        extents.insert(ty, whole);
        work.pop();
    }
    extents
        .get(&root)
        .copied()
        .unwrap_or(Extent { depth: 0, members: u32::from(root != fixed::UNIT) })
}
