//! Who owns what in host code before lowering: which operands an instruction takes over, and which
//! results only show a part of another value.
//!
//! A value is *owned* when its type is not [`is_copy`](TypeCtx::is_copy) and a parameter or an
//! instruction defines it. Constants of such types are immortal or null and need no owner.

use crate::analysis::Uses;
use crate::{Const, Consumes, Inst, Module, MpirFn, Op, Value, ValueDef};
use magpie_types::abi::RtFn;
use magpie_types::{RefMode, TypeCtx, TypeId, TypeKind};

/// Whether an operation takes over operand `n`: its op, its immediate, and the type of operand 0. A copy is never taken over; that is the caller's to see.
pub fn consumes(m: &Module, op: Op, imm: u64, receiver: Option<TypeId>, n: usize) -> bool {
    match op.info().consumes {
        Consumes::None => false,
        Consumes::All => true,
        Consumes::Rest => n > 0,
        // A view or a shared handle of an enum stays what it is; only an owned one is taken apart.
        Consumes::First => {
            n == 0 && !receiver.is_some_and(|ty| matches!(m.types.kind(ty), TypeKind::Ref(..)))
        }
        Consumes::Second => n == 1,
        Consumes::Callee if op == Op::Call => m
            .fns
            .get(imm as u32 as usize)
            .and_then(|f| f.params.get(n))
            .is_some_and(|&(_, ty)| !is_view(&m.types, ty)),
        Consumes::Callee if op == Op::CallIndirect => {
            let Some(TypeKind::Callable(sig)) = receiver.map(|ty| behind(&m.types, ty)) else {
                return false;
            };
            let params = &m.types.sig_def(sig).params;
            n > 0 && params.get(n - 1).is_some_and(|&ty| !is_view(&m.types, ty))
        }
        Consumes::Callee => {
            let Some(&rt) = RtFn::ALL.get(imm as usize) else { return false };
            operand_params(rt).nth(n).is_some_and(|param| rt.consumes(param))
        }
    }
}

/// Whether instruction `i` of `f` takes over operand `n`, which is owned.
pub fn takes_over(m: &Module, f: &MpirFn, i: Inst, n: usize) -> bool {
    let data = f.inst(i);
    let receiver = f.args(i).first().map(|&v| f.ty(v));
    !m.types.is_copy(f.ty(f.args(i)[n])) && consumes(m, data.op, data.imm, receiver, n)
}

/// The value that a view shows (a part of): it, or what it shows in turn, must live as long as the
/// view is used. `None` for values that are no views and for parameters.
pub fn shows(types: &TypeCtx, f: &MpirFn, v: Value) -> Option<Value> {
    match f.def(v) {
        ValueDef::Inst(i) if is_view(types, f.ty(v)) && f.inst(i).op != Op::Phi => {
            f.args(i).first().copied()
        }
        ValueDef::Inst(_) | ValueDef::Param(_) | ValueDef::Const(_) => None,
    }
}

/// What looks at the part that `clone`, a clone of a handle, is made of, if that is all it is looked at
/// for and `store` puts null in its place: then the handle is taken out.
pub(crate) fn taken_out(f: &MpirFn, uses: &Uses, clone: Inst, store: Inst) -> Option<Inst> {
    let is_clone = is_clone(f, clone);
    let look = f.def_inst(f.args(clone).first().copied().filter(|_| is_clone)?)?;
    let (&null, place) = f.args(store).split_last()?;
    let (from, to) = (f.inst(look), f.inst(store));
    let is_same_place = match (from.op, to.op) {
        (Op::ArrGet, Op::ArrSet) | (Op::GetField, Op::SetField) => place == f.args(look),
        // The key of the store is given away: it is another handle of the same one.
        (Op::MapGetRef, Op::MapSet) => {
            let of_store = place.iter().map(|&v| shown(f, v));
            of_store.eq(f.args(look).iter().map(|&v| shown(f, v)))
        }
        _ => false,
    };
    let is_taken = is_same_place
        && from.imm == to.imm
        && f.as_const(null) == Some(Const::Zero)
        && uses.of(f.arg(clone, 0)).len() == 1;
    is_taken.then_some(look)
}

/// Whether an instruction gives another handle of an object.
pub fn is_clone(f: &MpirFn, i: Inst) -> bool {
    f.inst(i).op == Op::RtCall && f.inst(i).rt() == RtFn::HandleClone
}

/// The value that a view shows, or of which it is another handle.
pub fn shown(f: &MpirFn, v: Value) -> Value {
    followed(f, v, |i| f.inst(i).op == Op::BorrowShared || is_clone(f, i))
}

/// The value that a view shows.
pub fn viewed(f: &MpirFn, v: Value) -> Value {
    followed(f, v, |i| f.inst(i).op == Op::BorrowShared)
}

fn followed(f: &MpirFn, mut v: Value, is_passed: impl Fn(Inst) -> bool) -> Value {
    while let Some(i) = f.def_inst(v).filter(|&i| is_passed(i)) {
        v = f.arg(i, 0);
    }
    v
}

/// Whether values of a type are borrowed handles.
pub fn is_view(types: &TypeCtx, ty: TypeId) -> bool {
    matches!(types.kind(ty), TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, _))
}

/// Whether a parameter of a runtime function is no operand of `rt.call`: host lowering derives it
/// from the result type.
pub fn is_derived_param(name: &str) -> bool {
    matches!(name, "info" | "elem_type_id" | "elem_size")
}

/// The parameters of a runtime function that are operands of `rt.call`, by position.
pub fn operand_params(rt: RtFn) -> impl Iterator<Item = usize> {
    let params = rt.params().iter().enumerate();
    params.filter(|(_, (name, _))| !is_derived_param(name)).map(|(at, _)| at)
}

/// The structure behind a handle of any mode but weak.
fn behind(types: &TypeCtx, ty: TypeId) -> TypeKind {
    match types.kind(ty) {
        TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow | RefMode::Shared, t) => types.kind(t),
        kind => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use magpie_diag::FileId;

    #[test]
    fn operands_taken_over() {
        let m = parse(
            "heap struct m.TN { s: Str, n: i32 }
            heap enum m.TE { A { s: Str } }
            sig m.TS(Str, borrow Str) -> unit
            fn @two(%a: Str, %b: borrow Str) {
            e:
              ret
            }
            fn @f(%s: Str, %t: Str, %c: TCallable<m.TS>, %a: Array<Str>, %o: TOption<Str>, %h: shared m.TE) {
            e:
              call fn=@two %s, %t
              %1: Str = rt.call rt=mp_rt_str_concat %s, %t
              rt.call rt=mp_rt_println %s
              call.indirect %c, %s, %t
              arr.push %a, %s
              %2: m.TN = new %s, i32 1
              %3: Str = enum.payload variant=1 %o
              %4: borrow Str = arr.get %a, i32 0
              %5: borrow Str = borrow.shared %4
              %6: borrow Str = enum.payload variant=0 %h
              ret
            }",
            FileId(0),
        )
        .unwrap();
        let f = m.fns.last().unwrap();
        let taken: Vec<Vec<usize>> = f.blocks[0]
            .insts
            .iter()
            .map(|&i| (0..f.args(i).len()).filter(|&n| takes_over(&m, f, i, n)).collect())
            .collect();
        let expected: [&[usize]; 10] = [&[0], &[0, 1], &[], &[1], &[1], &[0], &[0], &[], &[], &[]];
        assert_eq!(taken, expected);
        let last = f.inst(f.blocks[0].insts[8]).result().unwrap();
        let element = shows(&m.types, f, last).unwrap();
        assert_eq!(shows(&m.types, f, element), Some(f.params[3].0));
        assert_eq!(shows(&m.types, f, f.params[3].0), None);
    }
}
