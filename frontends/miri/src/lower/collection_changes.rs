//! Methods that change a collection in a variable, or in a part of one.

use super::Lower;
use super::body::{Body, Val};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::fixed;

impl Body<'_, '_, '_> {
    /// Methods that change a variable, or a part of one.
    pub(super) fn changing_method(
        &mut self,
        base: ExprId,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        // A value that is no place cannot be changed, and nobody would see it.
        let path = self.path(base)?;
        let kind = self.cx.tys.kind(path.ty);
        let element = self.cx.tys.element(path.ty);
        let is_list = matches!(kind, TyKind::List(_));
        let mut operands: Vec<Val> = Vec::new();
        let mut wanted: Vec<Ty> = Vec::new();
        match (kind, name) {
            (_, "set") if element.is_some() => {
                wanted.extend([ty::INT, element.unwrap_or(ty::ERROR)])
            }
            (_, "sort" | "reverse") if element.is_some() => {}
            (_, "push" | "remove") if is_list => wanted.extend(element),
            (_, "pop" | "clear") if is_list => {}
            (_, "insert") if is_list => wanted.extend([ty::INT, element.unwrap_or(ty::ERROR)]),
            (_, "remove_at") if is_list => wanted.push(ty::INT),
            (TyKind::Map(k, v), "set" | "insert") => wanted.extend([k, v]),
            (TyKind::Map(k, _) | TyKind::Set(k), "remove") => wanted.push(k),
            (TyKind::Set(k), "add") => wanted.push(k),
            (TyKind::Map(..) | TyKind::Set(_), "clear") => {}
            _ => return Ok(None),
        }
        self.check_names(name, args)?;
        if wanted.len() != args.len() {
            let message =
                format!("`{name}` gets {} arguments instead of {}", args.len(), wanted.len());
            return Err(self.error(Code::MIR0211, span, message, "give one for each parameter"));
        }
        for (arg, &t) in args.iter().zip(&wanted) {
            let val = self.expr_as(arg.value, t)?;
            // The operand may be the variable that is changed.
            let v = self.own(val);
            operands.push(self.val(t, v));
        }
        let path_ty = path.ty;
        let mut result: Option<Val> = None;
        self.at(span);
        self.change_path(&path, |body, v| {
            let (new, val) = body.change_collection(v, path_ty, name, &operands, span)?;
            result = val;
            Ok(new)
        })?;
        Ok(Some(match result {
            Some(val) => val,
            None => self.unit(),
        }))
    }

    /// Changes a collection that nobody else has; gives what takes its place, if anything does, and
    /// the result of the method.
    pub(super) fn change_collection(
        &mut self,
        v: Value,
        t: Ty,
        name: &str,
        args: &[Val],
        span: Span,
    ) -> Lower<(Option<Value>, Option<Val>)> {
        self.at(span);
        let id = self.machine(t);
        if let (TyKind::Map(..) | TyKind::Set(_), kind) = (self.cx.tys.kind(t), self.cx.tys.kind(t))
        {
            return Ok(match name {
                "clear" => (Some(self.b.value(Op::MapNew, id, &[], 0)), None),
                "remove" => {
                    let had = self.b.value(Op::MapContainsKey, fixed::BOOL, &[v, args[0].v], 0);
                    let (yes, join) = (self.new_block(), self.new_block());
                    self.b.cbr(had, yes, join);
                    self.enter(yes);
                    self.b.effect(Op::MapDeleteVoid, &[v, args[0].v], 0);
                    self.b.br(join);
                    self.enter(join);
                    (None, Some(self.val(ty::BOOL, had)))
                }
                _ => {
                    let key = self.own(args[0]);
                    let value = match kind {
                        TyKind::Set(_) => self.b.func().const_bool(true),
                        _ => self.own(args[1]),
                    };
                    self.b.effect(Op::MapSet, &[v, key, value], 0);
                    (None, None)
                }
            });
        }
        let element = self.cx.tys.element(t).unwrap_or(ty::ERROR);
        let val = Val { ty: t, v, owned: false };
        Ok(match name {
            "push" => {
                let item = self.own(args[0]);
                self.b.effect(Op::ArrPush, &[v, item], 0);
                (None, None)
            }
            "pop" => {
                let option = self.cx.tys.intern(TyKind::Option(element));
                let option_id = self.machine(option);
                let item = self.b.value(Op::ArrPop, option_id, &[v], 0);
                (None, Some(self.val(option, item)))
            }
            "clear" => {
                let zero = self.i64(0);
                (Some(self.b.value(Op::ArrNew, id, &[zero], 0)), None)
            }
            "set" => {
                let item = self.own(args[1]);
                self.b.effect(Op::ArrSet, &[v, args[0].v, item], 0);
                (None, None)
            }
            "sort" => {
                if self.cx.tys.scalar(element, false).is_none() && element != ty::STR {
                    let message = format!("a `{}` has no order", self.cx.ty_name(element));
                    return Err(self.error(Code::MIR0103, span, message, "sort numbers or texts"));
                }
                self.b.effect(Op::ArrSort, &[v], 0);
                (None, None)
            }
            "reverse" => {
                self.rt(RtFn::ArrReverse, fixed::UNIT, &[v]);
                (None, None)
            }
            "insert" => {
                let (zero, len) = (self.i64(0), self.array_len(v));
                self.check_slice("insertion", [zero, args[0].v, len]);
                let item = self.own(args[1]);
                self.b.effect(Op::ArrPush, &[v, item], 0);
                self.rt(RtFn::ArrMove, fixed::UNIT, &[v, len, args[0].v]);
                (None, None)
            }
            "remove_at" => {
                let gone = self.element(val, args[0].v, element, span);
                let gone = self.own(gone);
                self.remove_element(v, element, args[0].v);
                (None, Some(self.val(element, gone)))
            }
            _ => {
                // `remove`: the first equal one.
                let len = self.array_len(v);
                let found = self.b.declare(fixed::I64);
                self.b.write(found, len);
                let wanted = args[0];
                self.count_to(len, &mut |body, i| {
                    let item = body.element(val, i, element, span);
                    let same = body.equal_values(item, wanted);
                    let (yes, no) = (body.new_block(), body.new_block());
                    body.b.cbr(same, yes, no);
                    body.enter(yes);
                    body.b.write(found, i);
                    body.leave_loop();
                    body.enter(no);
                });
                let at = self.b.read(found);
                let is_there = self.b.compare(Op::IcmpSlt, at, len);
                let (yes, join) = (self.new_block(), self.new_block());
                self.b.cbr(is_there, yes, join);
                self.enter(yes);
                self.remove_element(v, element, at);
                self.b.br(join);
                self.enter(join);
                (None, Some(self.val(ty::BOOL, is_there)))
            }
        })
    }

    /// Removes the element at an index, which exists.
    fn remove_element(&mut self, v: Value, element: Ty, at: Value) {
        let (one, len) = (self.i64(1), self.array_len(v));
        let last = self.b.same(Op::ISub, &[len, one]);
        self.rt(RtFn::ArrMove, fixed::UNIT, &[v, at, last]);
        let option = self.cx.tys.intern(TyKind::Option(element));
        let option = self.machine(option);
        self.b.value(Op::ArrPop, option, &[v], 0);
    }
}
