//! Values of an invocation.

use magpie_mpir::Value;
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};

/// What an SSA value holds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Val {
    /// A scalar: its bits, zero-extended.
    Bits(u64),
    /// The components of a vector or the members of an aggregate.
    Many(Vec<Val>),
    /// Memory: where an access goes.
    Array(ArrayRef),
}

/// A buffer or an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArrayRef {
    /// A buffer of the launch, by number.
    Buffer(usize),
    /// A shared array of the workgroup, by number.
    Shared(usize),
    /// A private array of the invocation, by number.
    Local(usize),
}

impl Val {
    /// The bits of a scalar.
    pub(crate) fn bits(&self) -> u64 {
        match self {
            Val::Bits(b) => *b,
            Val::Many(_) | Val::Array(_) => 0,
        }
    }

    /// Component or member `n`.
    pub(crate) fn member(&self, n: usize) -> Val {
        match self {
            Val::Many(m) => m.get(n).cloned().unwrap_or(Val::Bits(0)),
            Val::Bits(_) | Val::Array(_) => self.clone(),
        }
    }

    /// The zero of a type.
    pub(crate) fn zero(types: &TypeCtx, ty: TypeId) -> Val {
        if let Some(members) = types.members(ty) {
            return Val::Many(members.into_iter().map(|m| Val::zero(types, m)).collect());
        }
        match types.kind(ty) {
            TypeKind::Vec(_, n) => Val::Many(vec![Val::Bits(0); n as usize]),
            _ => Val::Bits(0),
        }
    }

    /// The scalars and vectors of an aggregate, depth first; itself otherwise.
    pub(crate) fn leaf(&self, types: &TypeCtx, ty: TypeId, n: usize) -> Val {
        fn walk(v: &Val, types: &TypeCtx, ty: TypeId, n: &mut usize) -> Option<Val> {
            if ty == magpie_types::fixed::UNIT {
                return None;
            }
            match types.members(ty) {
                None if *n == 0 => Some(v.clone()),
                None => {
                    *n -= 1;
                    None
                }
                Some(members) => {
                    members.iter().enumerate().find_map(|(i, &m)| walk(&v.member(i), types, m, n))
                }
            }
        }
        let mut n = n;
        walk(self, types, ty, &mut n).unwrap_or(Val::Bits(0))
    }
}

/// The values of one invocation, by [`Value`].
pub(crate) type Frame = Vec<Option<Val>>;

/// The scalar type of a scalar or of a vector's components; 64-bit for anything else.
pub(crate) fn prim(types: &TypeCtx, ty: TypeId) -> PrimType {
    types.element_prim(ty).unwrap_or(PrimType::U64)
}

/// Reads a value that the verifier proved to be defined.
pub(crate) fn read(frame: &Frame, v: Value) -> Val {
    frame.get(v.index()).and_then(|v| v.clone()).unwrap_or(Val::Bits(0))
}
