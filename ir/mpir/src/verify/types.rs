//! Soundness of the type definitions: after this, layouts and leaves of any type can be computed in
//! little time and space.

use super::MAX_ERRORS;
use crate::MAX_TYPE_DEPTH;
use magpie_diag::{Code, Diagnostic, Span};
use magpie_types::{Category, Field, TypeCtx, TypeId, TypeKind};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

/// How many members an aggregate or a heap object may have, those of nested aggregates included.
/// That bounds its size too.
pub const MAX_MEMBERS: u32 = 4096;

/// What is known of an aggregate.
#[derive(Clone, Copy)]
struct Extent {
    /// Levels of nesting.
    depth: usize,
    /// Members in all, the type itself included.
    members: u32,
}

const SCALAR: Extent = Extent { depth: 0, members: 1 };

enum State {
    /// On the path from the root of the search.
    Open,
    Done(Extent),
}

pub(super) fn check(types: &TypeCtx) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    let mut fault =
        |message: String| errors.push(Diagnostic::new(Code::MPS0032, Span::NONE, message));
    check_names(types, &mut fault);
    check_enums(types, &mut fault);
    // Other types cannot even be named in a message.
    if check_references(types, &mut fault) && check_nesting(types, &mut fault) {
        let mut states = FxHashMap::with_capacity_and_hasher(types.iter().count(), FxBuildHasher);
        for (ty, _) in types.iter() {
            measure(types, ty, &mut states, &mut fault);
        }
        check_objects(types, &states, &mut fault);
    }
    errors.truncate(MAX_ERRORS);
    errors
}

fn check_names(types: &TypeCtx, fault: &mut impl FnMut(String)) {
    let mut seen = FxHashSet::default();
    let structs = types.structs().map(|(_, d)| &d.name);
    for name in structs.chain(types.enums().map(|(_, d)| &d.name)) {
        if !seen.insert(name) {
            fault(format!("type `{name}` is defined twice"));
        }
    }
    let mut seen = FxHashSet::default();
    for (_, sig) in types.sigs() {
        if !seen.insert(&sig.name) {
            fault(format!("signature `{}` is defined twice", sig.name));
        }
    }
}

fn check_enums(types: &TypeCtx, fault: &mut impl FnMut(String)) {
    for (_, def) in types.enums() {
        let has_fields = def.variants.iter().any(|v| !v.fields.is_empty());
        if def.category == Category::Value && has_fields {
            fault(format!("value enum `{}` has a variant with fields", def.name));
        }
    }
}

/// Every type that another one is made of exists.
fn check_references(types: &TypeCtx, fault: &mut impl FnMut(String)) -> bool {
    let mut sound = true;
    let mut check = |ty: TypeId| {
        if !types.contains(ty) {
            fault(format!("type {} does not exist", ty.0));
            sound = false;
        }
    };
    for (_, kind) in types.iter() {
        arguments(kind).into_iter().flatten().for_each(&mut check);
    }
    let structs = types.structs().flat_map(|(_, d)| &d.fields);
    let enums = types.enums().flat_map(|(_, d)| d.variants.iter().flat_map(|v| &v.fields));
    structs.chain(enums).for_each(|field| check(field.ty));
    for (_, sig) in types.sigs() {
        sig.params.iter().chain([&sig.ret]).for_each(|&ty| check(ty));
    }
    sound
}

/// The types that a type names directly.
fn arguments(kind: TypeKind) -> [Option<TypeId>; 2] {
    match kind {
        TypeKind::Array(t)
        | TypeKind::Option(t)
        | TypeKind::Buffer(t)
        | TypeKind::MlxArray(t)
        | TypeKind::RawPtr(t)
        | TypeKind::SharedArray(t, _)
        | TypeKind::LocalArray(t, _)
        | TypeKind::Ref(_, t) => [Some(t), None],
        TypeKind::Map(a, b) | TypeKind::Result(a, b) => [Some(a), Some(b)],
        TypeKind::Prim(_)
        | TypeKind::Vec(..)
        | TypeKind::Str
        | TypeKind::Opaque(_)
        | TypeKind::Callable(_)
        | TypeKind::Struct(_)
        | TypeKind::Enum(_) => [None, None],
    }
}

/// Nesting of types that are not laid out inside each other. A type is interned after its
/// arguments, so one pass in id order meets them first.
fn check_nesting(types: &TypeCtx, fault: &mut impl FnMut(String)) -> bool {
    let mut depths: FxHashMap<TypeId, usize> =
        FxHashMap::with_capacity_and_hasher(types.iter().count(), FxBuildHasher);
    let mut sound = true;
    for (ty, kind) in types.iter() {
        let below = |t: TypeId| depths.get(&t).copied().unwrap_or(0) + 1;
        let depth = arguments(kind).into_iter().flatten().map(below).max().unwrap_or(0);
        if depth == MAX_TYPE_DEPTH + 1 {
            fault(format!("a type nests more than {MAX_TYPE_DEPTH} levels deep"));
            sound = false;
        }
        depths.insert(ty, depth);
    }
    sound
}

/// Depth-first over members of aggregates, without recursion.
fn measure(
    types: &TypeCtx,
    root: TypeId,
    states: &mut FxHashMap<TypeId, State>,
    fault: &mut impl FnMut(String),
) {
    if states.contains_key(&root) {
        return;
    }
    // A type on the stack, its members, and how many of them are measured.
    let mut stack: Vec<(TypeId, Vec<TypeId>, usize)> = Vec::new();
    let members = |ty: TypeId| types.members(ty);
    match members(root) {
        None => {
            states.insert(root, State::Done(SCALAR));
            return;
        }
        Some(list) => {
            states.insert(root, State::Open);
            stack.push((root, list, 0));
        }
    }
    while let Some((ty, list, at)) = stack.last_mut() {
        let Some(&member) = list.get(*at) else {
            let extent = extent_of(types, *ty, list, states, fault);
            states.insert(*ty, State::Done(extent));
            stack.pop();
            continue;
        };
        *at += 1;
        match states.get(&member) {
            Some(State::Done(_)) => {}
            Some(State::Open) => {
                let name = types.name(member);
                fault(format!("a value of type `{name}` would contain itself"));
                // Measured as a scalar, so that the search ends.
                states.insert(member, State::Done(SCALAR));
            }
            None => match members(member) {
                None => {
                    states.insert(member, State::Done(SCALAR));
                }
                Some(list) => {
                    states.insert(member, State::Open);
                    stack.push((member, list, 0));
                }
            },
        }
    }
}

fn extent_of(
    types: &TypeCtx,
    ty: TypeId,
    members: &[TypeId],
    states: &FxHashMap<TypeId, State>,
    fault: &mut impl FnMut(String),
) -> Extent {
    let mut whole = SCALAR;
    for member in members {
        let part = done(states, *member);
        whole.depth = whole.depth.max(part.depth + 1);
        whole.members = whole.members.saturating_add(part.members);
    }
    let message = if whole.depth > MAX_TYPE_DEPTH {
        format!("nests more than {MAX_TYPE_DEPTH} levels deep")
    } else if whole.members > MAX_MEMBERS {
        format!("has more than {MAX_MEMBERS} members in all")
    } else {
        return whole;
    };
    // One report for a type, none for those that contain it.
    fault(format!("a value of type `{}` {message}", types.name(ty)));
    SCALAR
}

fn done(states: &FxHashMap<TypeId, State>, ty: TypeId) -> Extent {
    match states.get(&ty) {
        Some(State::Done(extent)) => *extent,
        Some(State::Open) | None => SCALAR,
    }
}

/// The payloads of heap structs and heap enums.
fn check_objects(
    types: &TypeCtx,
    states: &FxHashMap<TypeId, State>,
    fault: &mut impl FnMut(String),
) {
    let members = |fields: &[Field]| {
        fields.iter().map(|f| done(states, f.ty).members).fold(0, u32::saturating_add)
    };
    let structs = types.structs().map(|(_, d)| (&d.name, members(&d.fields)));
    let enums = types.enums().map(|(_, d)| {
        let all = d.variants.iter().map(|v| members(&v.fields)).fold(0, u32::saturating_add);
        (&d.name, all)
    });
    for (name, count) in structs.chain(enums) {
        if count > MAX_MEMBERS {
            fault(format!("type `{name}` has more than {MAX_MEMBERS} members in all"));
        }
    }
}
