//! Structural equality of modules.

use crate::{Const, ImmKind, Module, MpirFn, Op, ValueDef};
use magpie_types::{EnumDef, Field, StructDef, TypeId, TypeKind};
use rustc_hash::FxHashMap;

/// Whether two modules are the same: files, definitions in order, and functions in order with
/// their heads, blocks, values, instructions and source places. Types are compared by structure
/// and by the names of definitions, texts by content, so that the order in which either was
/// interned does not matter. Instructions that no block lists do not count.
pub fn module_eq(a: &Module, b: &Module) -> bool {
    let eq = Comparison { a, b, types: corresponding_types(a, b) };
    a.files == b.files
        && same_list(a.types.structs(), b.types.structs(), |x, y| eq.structs(x.1, y.1))
        && same_list(a.types.enums(), b.types.enums(), |x, y| eq.enums(x.1, y.1))
        && same_list(a.types.sigs(), b.types.sigs(), |x, y| {
            x.1.name == y.1.name
                && eq.ty(x.1.ret, y.1.ret)
                && same_list(&x.1.params, &y.1.params, |&x, &y| eq.ty(x, y))
        })
        && same_list(&a.fns, &b.fns, |x, y| eq.functions(x, y))
}

fn same_list<T, U>(
    a: impl IntoIterator<Item = T>,
    b: impl IntoIterator<Item = U>,
    same: impl Fn(T, U) -> bool,
) -> bool {
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(x), Some(y)) => {
                if !same(x, y) {
                    return false;
                }
            }
            (Some(_), None) | (None, Some(_)) => return false,
        }
    }
}

/// The type of `b` for each type of `a` that `b` has too. A type is interned after the types it
/// is made of, so one pass in id order meets them first.
fn corresponding_types(a: &Module, b: &Module) -> FxHashMap<TypeId, TypeId> {
    let structs: FxHashMap<&str, TypeId> =
        b.types.structs().map(|(_, d)| (d.name.as_str(), d.ty)).collect();
    let enums: FxHashMap<&str, TypeId> =
        b.types.enums().map(|(_, d)| (d.name.as_str(), d.ty)).collect();
    let sigs: FxHashMap<&str, _> = b.types.sigs().map(|(id, d)| (d.name.as_str(), id)).collect();
    let mut map: FxHashMap<TypeId, TypeId> = FxHashMap::default();
    for (id, kind) in a.types.iter() {
        let get = |t: TypeId| map.get(&t).copied();
        let same_kind = match kind {
            TypeKind::Prim(_) | TypeKind::Vec(..) | TypeKind::Str | TypeKind::Opaque(_) => {
                Some(kind)
            }
            TypeKind::Array(t) => get(t).map(TypeKind::Array),
            TypeKind::Map(k, v) => get(k).zip(get(v)).map(|(k, v)| TypeKind::Map(k, v)),
            TypeKind::Option(t) => get(t).map(TypeKind::Option),
            TypeKind::Result(t, e) => get(t).zip(get(e)).map(|(t, e)| TypeKind::Result(t, e)),
            TypeKind::Buffer(t) => get(t).map(TypeKind::Buffer),
            TypeKind::MlxArray(t) => get(t).map(TypeKind::MlxArray),
            TypeKind::RawPtr(t) => get(t).map(TypeKind::RawPtr),
            TypeKind::SharedArray(t, n) => get(t).map(|t| TypeKind::SharedArray(t, n)),
            TypeKind::LocalArray(t, n) => get(t).map(|t| TypeKind::LocalArray(t, n)),
            TypeKind::Ref(mode, t) => get(t).map(|t| TypeKind::Ref(mode, t)),
            TypeKind::Callable(s) => {
                sigs.get(a.types.sig_def(s).name.as_str()).map(|&s| TypeKind::Callable(s))
            }
            TypeKind::Struct(s) => {
                structs.get(a.types.struct_def(s).name.as_str()).map(|&t| b.types.kind(t))
            }
            TypeKind::Enum(e) => {
                enums.get(a.types.enum_def(e).name.as_str()).map(|&t| b.types.kind(t))
            }
        };
        if let Some(other) = same_kind.and_then(|kind| b.types.lookup(kind)) {
            map.insert(id, other);
        }
    }
    map
}

struct Comparison<'a> {
    a: &'a Module,
    b: &'a Module,
    types: FxHashMap<TypeId, TypeId>,
}

impl Comparison<'_> {
    fn ty(&self, a: TypeId, b: TypeId) -> bool {
        self.types.get(&a) == Some(&b)
    }

    fn fields(&self, a: &[Field], b: &[Field]) -> bool {
        same_list(a, b, |x, y| x.name == y.name && self.ty(x.ty, y.ty))
    }

    fn structs(&self, a: &StructDef, b: &StructDef) -> bool {
        a.name == b.name && a.category == b.category && self.fields(&a.fields, &b.fields)
    }

    fn enums(&self, a: &EnumDef, b: &EnumDef) -> bool {
        a.name == b.name
            && a.category == b.category
            && same_list(&a.variants, &b.variants, |x, y| {
                x.name == y.name && self.fields(&x.fields, &y.fields)
            })
    }

    fn functions(&self, a: &MpirFn, b: &MpirFn) -> bool {
        a.sid == b.sid
            && a.name == b.name
            && a.is_async == b.is_async
            && a.domain == b.domain
            && a.gpu_meta == b.gpu_meta
            && a.span == b.span
            && a.param_names == b.param_names
            && a.param_spans == b.param_spans
            && self.ty(a.ret_ty, b.ret_ty)
            && same_list(&a.params, &b.params, |x, y| x.0 == y.0 && self.ty(x.1, y.1))
            && same_list(&a.locals, &b.locals, |x, y| {
                self.ty(x.ty, y.ty) && self.definitions(x.def, y.def)
            })
            && same_list(a.block_ids(), b.block_ids(), |n, _| self.blocks(a, b, n))
    }

    /// Where an instruction stands is compared with its result.
    fn definitions(&self, a: ValueDef, b: ValueDef) -> bool {
        match (a, b) {
            (ValueDef::Const(Const::Str(a)), ValueDef::Const(Const::Str(b))) => {
                self.a.str(a) == self.b.str(b)
            }
            (ValueDef::Inst(_), ValueDef::Inst(_)) => true,
            (a, b) => a == b,
        }
    }

    fn blocks(&self, a: &MpirFn, b: &MpirFn, n: crate::Block) -> bool {
        let (x, y) = (a.block(n), b.block(n));
        x.term == y.term
            && x.term_span == y.term_span
            && same_list(&x.insts, &y.insts, |&i, &j| {
                let (d, e) = (a.inst(i), b.inst(j));
                d.op == e.op
                    && d.flags == e.flags
                    && d.span == e.span
                    && d.result() == e.result()
                    && self.ty(d.ty, e.ty)
                    && a.args(i) == b.args(j)
                    && match d.op {
                        Op::Phi => a.phi_arms(i).eq(b.phi_arms(j)),
                        op => self.immediates(op, d.imm, e.imm),
                    }
            })
    }

    fn immediates(&self, op: Op, a: u64, b: u64) -> bool {
        let parts = op.info().immediate.parts();
        if parts.iter().any(|part| part.kind == ImmKind::Type) {
            return a >> 32 == b >> 32 && self.ty(TypeId(a as u32), TypeId(b as u32));
        }
        a == b
    }
}
