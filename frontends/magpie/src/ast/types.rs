//! Written types, each kept once a module.

use super::{ByteRange, Slice};
use crate::hash_index::HashIndex;
use crate::interner::Symbol;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::ops::Index;

/// Names a [`TypeExpr`] of the module. Equal ids mean the same written type, so a pass over the
/// module resolves each type once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TypeExprId(u32);

impl TypeExprId {
    /// The position in the module's types: dense from 0, so that it can index a side table.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A type as written at one place.
#[derive(Clone, Copy, Debug)]
pub struct TypeUse {
    /// The type; equal types of a module have equal ids.
    pub id: TypeExprId,
    /// Where.
    pub range: ByteRange,
}

/// How a type is held.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Modifier {
    /// No word before the type.
    None,
    /// `shared T`
    Shared,
    /// `borrow T`
    Borrow,
    /// `mutborrow T`
    MutBorrow,
    /// `weak T`
    Weak,
}

/// A type as written: `[modifier] path [<arguments>]`.
#[derive(Clone, Copy, Debug)]
pub struct TypeExpr {
    /// How the type is held.
    pub modifier: Modifier,
    /// The dotted name.
    pub path: Symbol,
    /// The arguments: at most [`TypeExpr::MAX_DEPTH`] levels of them.
    pub args: Slice<TypeExprId>,
}

impl TypeExpr {
    /// How deeply type arguments may nest: a walk over a type may recurse.
    pub const MAX_DEPTH: u32 = 64;
}

/// The types of a module. An argument has a smaller id than the type that has it.
#[derive(Clone, Debug, Default)]
pub struct TypeExprs {
    types: Vec<TypeExpr>,
    args: Vec<TypeExprId>,
    index: HashIndex,
    /// By symbol: the type that is this one word, plus one; 0 where there is none.
    words: Vec<u32>,
}

impl TypeExprs {
    /// How many types there are; [`TypeExprId::index`] is below it.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether the module writes no type.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Every type with its id; arguments before the types that have them.
    pub fn iter(&self) -> impl Iterator<Item = (TypeExprId, &TypeExpr)> {
        self.types.iter().enumerate().map(|(i, ty)| (TypeExprId(i as u32), ty))
    }

    /// The arguments of a type.
    pub fn args(&self, ty: &TypeExpr) -> &[TypeExprId] {
        &self.args[ty.args.range()]
    }

    /// The type that is one path without modifier and arguments: the usual case, without hashing.
    #[inline]
    pub(crate) fn intern_path(&mut self, path: Symbol) -> TypeExprId {
        if self.words.len() <= path.index() {
            self.words.resize(path.index() + 1, 0);
        }
        if let Some(id) = self.words[path.index()].checked_sub(1) {
            return TypeExprId(id);
        }
        let id = self.intern(Modifier::None, path, &[]);
        self.words[path.index()] = id.0 + 1;
        id
    }

    pub(crate) fn intern(
        &mut self,
        modifier: Modifier,
        path: Symbol,
        args: &[TypeExprId],
    ) -> TypeExprId {
        let mut hasher = FxHasher::default();
        (modifier, path, args).hash(&mut hasher);
        let hash = hasher.finish();
        let hash = (hash ^ (hash >> 32)) as u32;
        let found = self.index.find(hash, |id| {
            let ty = &self.types[id as usize];
            ty.modifier == modifier && ty.path == path && self.args(ty) == args
        });
        if let Some(id) = found {
            return TypeExprId(id);
        }
        let start = self.args.len();
        self.args.extend_from_slice(args);
        let args = Slice::new(start, self.args.len());
        self.types.push(TypeExpr { modifier, path, args });
        TypeExprId(self.index.insert(hash))
    }
}

impl Index<TypeExprId> for TypeExprs {
    type Output = TypeExpr;

    fn index(&self, id: TypeExprId) -> &TypeExpr {
        &self.types[id.index()]
    }
}
