//! Changing the types that memory and values have, for formats that a target lacks.

use magpie_mpir::{Const, MpirFn, Value, ValueDef};
use magpie_types::{Category, Field, PrimType, TypeCtx, TypeId, TypeKind};
use rustc_hash::FxHashMap;

/// Replaces scalar types inside other types.
pub(super) struct Retype<'a> {
    types: &'a mut TypeCtx,
    scalar: &'a dyn Fn(PrimType) -> PrimType,
    done: FxHashMap<TypeId, TypeId>,
}

impl<'a> Retype<'a> {
    pub(super) fn new(types: &'a mut TypeCtx, scalar: &'a dyn Fn(PrimType) -> PrimType) -> Self {
        Retype { types, scalar, done: FxHashMap::default() }
    }

    /// The type with its scalars replaced. Structs get a copy of their own, of the same layout when
    /// the scalars keep their sizes.
    pub(super) fn map(&mut self, ty: TypeId) -> TypeId {
        if let Some(&done) = self.done.get(&ty) {
            return done;
        }
        let new = match self.types.kind(ty) {
            TypeKind::Prim(p) => (self.scalar)(p).id(),
            TypeKind::Vec(p, n) => {
                let p = (self.scalar)(p);
                self.types.intern(TypeKind::Vec(p, n))
            }
            TypeKind::Buffer(t) => {
                let t = self.map(t);
                self.types.intern(TypeKind::Buffer(t))
            }
            TypeKind::SharedArray(t, n) => {
                let t = self.map(t);
                self.types.intern(TypeKind::SharedArray(t, n))
            }
            TypeKind::LocalArray(t, n) => {
                let t = self.map(t);
                self.types.intern(TypeKind::LocalArray(t, n))
            }
            TypeKind::Struct(id) if self.types.struct_def(id).category == Category::Value => {
                let def = self.types.struct_def(id).clone();
                let fields: Vec<Field> = def
                    .fields
                    .iter()
                    .map(|f| Field { name: f.name.clone(), ty: self.map(f.ty) })
                    .collect();
                if fields == def.fields {
                    ty
                } else {
                    let new = self.types.declare_struct(def.name + ".legal", Category::Value);
                    if let TypeKind::Struct(id) = self.types.kind(new) {
                        self.types.define_struct(id, fields);
                    }
                    new
                }
            }
            _ => ty,
        };
        self.done.insert(ty, new);
        new
    }

    /// Gives a value its new type.
    pub(super) fn value(&mut self, f: &mut MpirFn, v: Value) {
        let ty = self.map(f.ty(v));
        f.locals[v.index()].ty = ty;
    }

    /// Gives every parameter its new type.
    pub(super) fn params(&mut self, f: &mut MpirFn) {
        for n in 0..f.params.len() {
            let (v, ty) = f.params[n];
            f.params[n].1 = self.map(ty);
            self.value(f, v);
        }
    }
}

/// The bits of a value that is a scalar constant.
pub(super) fn const_bits(f: &MpirFn, v: Value) -> Option<u64> {
    match f.def(v) {
        ValueDef::Const(Const::Bits(bits)) => Some(bits),
        ValueDef::Const(Const::Zero) => Some(0),
        ValueDef::Const(_) | ValueDef::Param(_) | ValueDef::Inst(_) => None,
    }
}
