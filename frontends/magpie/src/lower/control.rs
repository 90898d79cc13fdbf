//! `try`: what was split by the skeleton is filled in.

use super::body::Body;
use super::*;
use crate::interner::Symbol;
use magpie_mpir::{Terminator as MpirTerminator, Value as MpirValue};
use magpie_types::TypeKind;

const OK: u64 = 0;
const ERR: u64 = 1;

impl Body<'_, '_> {
    /// `try %r bb_x`
    pub(super) fn try_branch(&mut self, value: Symbol) -> Lower {
        let result = self.ssa(value).and_then(|v| self.result_operand(v).map(|t| (v, t)));
        self.take_apart(result, |_, _| Ok(None))
    }

    /// `try @f { … }`
    pub(super) fn try_call(
        &mut self,
        callee: FnRefId,
        type_args: Slice<TypeUse>,
        args: Slice<Arg>,
    ) -> Lower {
        let result = self.call_by_name(callee, type_args, args).and_then(|out| match out {
            Out::Value(v) => self.result_operand(v).map(|t| (v, t)),
            Out::Unit => {
                let help = "call it without `try`";
                Err(self.error(Code::MPT2015, "the function has no result that could fail", help))
            }
        });
        self.take_apart(result, |body, error| body.return_error(error).map(Some))
    }

    /// The types of the two payloads of a value that `try` takes apart.
    fn result_operand(&mut self, v: MpirValue) -> Lower<(TypeId, TypeId)> {
        let found = self.f.ty(v);
        match self.kind(found) {
            TypeKind::Result(ok, err) => Ok((ok, err)),
            _ => {
                let name = self.type_name(found);
                let message = format!("`try` of a `{name}`, which is no `TResult`");
                let help = "`try` takes a `TResult<T, E>` apart";
                Err(self.error(Code::MPT2015, message, help))
            }
        }
    }

    /// Chooses between the two parts of a split; `on_error` ends the error's part, when it does not
    /// go on to a label.
    fn take_apart(
        &mut self,
        result: Lower<(MpirValue, (TypeId, TypeId))>,
        on_error: impl FnOnce(&mut Self, Option<MpirValue>) -> Lower<Option<MpirTerminator>>,
    ) -> Lower {
        let split_index = self.next_split as usize;
        self.next_split += 1;
        let split = self.s.splits[split_index];
        let part = self.block;
        let cond = match result {
            Ok((v, _)) => self.emit_value(MpirOp::EnumIs, fixed::BOOL, &[v], OK)?,
            Err(Poisoned) => self.f.zero(fixed::BOOL),
        };
        if let MpirTerminator::Cbr { cond: operand, .. } = &mut self.f.block_mut(part).term {
            *operand = cond;
        }
        self.f.block_mut(part).term_span = self.span;
        self.block = split.error;
        self.f.block_mut(split.error).term_span = self.span;
        let mut ended = Ok(None);
        if let Ok((v, (_, err))) = result {
            let payload = match self.emit(MpirOp::EnumPayload, err, &[v], ERR) {
                Out::Value(payload) => Some(payload),
                Out::Unit => None,
            };
            self.s.splits[split_index].payload = payload;
            ended = on_error(self, payload);
            if let Ok(Some(term)) = &ended {
                self.f.block_mut(split.error).term = term.clone();
            }
        }
        self.block = split.next;
        let (v, (ok, _)) = result?;
        let out = self.emit(MpirOp::EnumPayload, ok, &[v], OK);
        ended.map(|_| out)
    }

    /// Returns the error of a failed call from the function.
    fn return_error(&mut self, error: Option<MpirValue>) -> Lower<MpirTerminator> {
        let Some(result) = self.result else { return Err(Poisoned) };
        let error_ty = error.map_or(fixed::UNIT, |v| self.f.ty(v));
        let (TypeKind::Result(_, wanted), name) = (self.kind(result), self.type_name(error_ty))
        else {
            let name = self.type_name(result);
            let message = format!("`try` hands an error on, but the function returns `{name}`");
            let help = "return a `TResult`, or handle the error with `try %r label`";
            return Err(self.error(Code::MPT2040, message, help));
        };
        if wanted != error_ty {
            let wanted = self.type_name(wanted);
            let message =
                format!("`try` hands on a `{name}`, but the function fails with `{wanted}`");
            let help = "use one error type, or handle the error with `try %r label`";
            return Err(self.error(Code::MPT2040, message, help));
        }
        let error = match error {
            Some(error) => error,
            None => self.f.zero(fixed::UNIT),
        };
        let returned = self.emit_value(MpirOp::EnumNew, result, &[error], ERR)?;
        Ok(MpirTerminator::Ret(Some(returned)))
    }
}
