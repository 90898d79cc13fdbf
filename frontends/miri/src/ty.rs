//! Types of the language, interned.

use crate::ast::Sym;
use magpie_types::PrimType;
use rustc_hash::FxHashMap;

/// A type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Ty(pub(crate) u32);

/// A list of types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TyList(u32);

/// What a type is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum TyKind {
    /// Of what was reported.
    Error,
    Unit,
    Bool,
    /// 64 bits on the host, 32 in kernels.
    Int,
    /// 64 bits on the host, 32 in kernels.
    Float,
    /// A number of named width.
    Prim(PrimType),
    Str,
    /// `a..b` as a value.
    Range,
    /// With its length, or [`size_of_param`].
    Array(Ty, u64),
    List(Ty),
    Set(Ty),
    Map(Ty, Ty),
    Tuple(TyList),
    Struct(u32, TyList),
    Enum(u32, TyList),
    Option(Ty),
    Result(Ty, Ty),
    Fn(TyList, Ty),
    /// `Vec2`, `Vec3`, `Vec4`
    Vector(Ty, u8),
    Atomic(Ty),
    /// A constant integer as a type argument: `Tensor<T, 2>`.
    Number(u64),
    /// A type parameter, where a generic function is matched with its arguments.
    Param(Sym),
}

/// More elements than any array has: from here on sizes stand for type parameters, where a generic
/// function is matched with its arguments.
const PARAM_SIZES: u64 = 1 << 32;

/// The size that stands for a type parameter: `N` of `Array<f32, N>`.
pub(crate) fn size_of_param(name: Sym) -> u64 {
    PARAM_SIZES + u64::from(name.0)
}

/// The type parameter that a size stands for.
pub(crate) fn param_of_size(size: u64) -> Option<Sym> {
    size.checked_sub(PARAM_SIZES).map(|n| Sym(n as u32))
}

/// Types with fixed ids, in the order in which [`Types::new`] makes them.
pub(crate) mod fixed {
    use super::Ty;
    pub(crate) const ERROR: Ty = Ty(0);
    pub(crate) const UNIT: Ty = Ty(1);
    pub(crate) const BOOL: Ty = Ty(2);
    pub(crate) const INT: Ty = Ty(3);
    pub(crate) const FLOAT: Ty = Ty(4);
    pub(crate) const STR: Ty = Ty(5);
    pub(crate) const RANGE: Ty = Ty(6);
    pub(crate) const F32: Ty = Ty(7);
    pub(crate) const I32: Ty = Ty(8);
    pub(crate) const U32: Ty = Ty(9);
}

/// All types of a program.
#[derive(Debug)]
pub(crate) struct Types {
    kinds: Vec<TyKind>,
    ids: FxHashMap<TyKind, Ty>,
    lists: Vec<Vec<Ty>>,
    list_ids: FxHashMap<Vec<Ty>, TyList>,
}

impl Types {
    pub(crate) fn new() -> Types {
        let mut types = Types {
            kinds: Vec::new(),
            ids: FxHashMap::default(),
            lists: Vec::new(),
            list_ids: FxHashMap::default(),
        };
        let kinds = [
            TyKind::Error,
            TyKind::Unit,
            TyKind::Bool,
            TyKind::Int,
            TyKind::Float,
            TyKind::Str,
            TyKind::Range,
            TyKind::Prim(PrimType::F32),
            TyKind::Prim(PrimType::I32),
            TyKind::Prim(PrimType::U32),
        ];
        for kind in kinds {
            types.intern(kind);
        }
        types.list(&[]);
        types
    }

    pub(crate) fn intern(&mut self, kind: TyKind) -> Ty {
        if let Some(&ty) = self.ids.get(&kind) {
            return ty;
        }
        let ty = Ty(self.kinds.len() as u32);
        self.kinds.push(kind);
        self.ids.insert(kind, ty);
        ty
    }

    pub(crate) fn list(&mut self, tys: &[Ty]) -> TyList {
        if let Some(&list) = self.list_ids.get(tys) {
            return list;
        }
        let list = TyList(self.lists.len() as u32);
        self.lists.push(tys.to_vec());
        self.list_ids.insert(tys.to_vec(), list);
        list
    }

    pub(crate) fn kind(&self, ty: Ty) -> TyKind {
        self.kinds[ty.0 as usize]
    }

    pub(crate) fn items(&self, list: TyList) -> &[Ty] {
        &self.lists[list.0 as usize]
    }

    pub(crate) fn prim(&mut self, prim: PrimType) -> Ty {
        self.intern(TyKind::Prim(prim))
    }

    /// The machine type of a scalar: `int` and `float` are 32 bits wide in kernels.
    pub(crate) fn scalar(&self, ty: Ty, device: bool) -> Option<PrimType> {
        match self.kind(ty) {
            TyKind::Bool => Some(PrimType::Bool),
            TyKind::Int if device => Some(PrimType::I32),
            TyKind::Int => Some(PrimType::I64),
            TyKind::Float if device => Some(PrimType::F32),
            TyKind::Float => Some(PrimType::F64),
            TyKind::Prim(p) => Some(p),
            _ => None,
        }
    }

    /// Whether it is a number, and of which kind.
    pub(crate) fn is_int(&self, ty: Ty) -> bool {
        self.scalar(ty, false).is_some_and(PrimType::is_int)
    }

    pub(crate) fn is_float(&self, ty: Ty) -> bool {
        self.scalar(ty, false).is_some_and(PrimType::is_float)
    }

    pub(crate) fn is_number(&self, ty: Ty) -> bool {
        self.is_int(ty) || self.is_float(ty)
    }

    /// The element type of an array or a list.
    pub(crate) fn element(&self, ty: Ty) -> Option<Ty> {
        match self.kind(ty) {
            TyKind::Array(t, _) | TyKind::List(t) => Some(t),
            _ => None,
        }
    }
}
