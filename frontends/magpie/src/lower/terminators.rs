//! How blocks end.

use super::body::Body;
use super::*;
use magpie_mpir::Terminator as MpirTerminator;
use magpie_types::{PrimType, RefMode, TypeKind};
use rustc_hash::FxHashSet;

impl Body<'_, '_> {
    /// Lowers the terminator of the current source block; its targets are in place.
    pub(super) fn terminator(&mut self, terminator: &Terminator) {
        let part = self.s.last_part[self.source as usize];
        self.block = part;
        self.f.block_mut(part).term_span = self.span;
        let lowered = match *terminator {
            Terminator::Ret(value) => self.ret(value),
            Terminator::Br(_) | Terminator::Unreachable | Terminator::Missing => return,
            Terminator::Cbr { condition, .. } => self.condition(condition),
            Terminator::Switch { value, cases, .. } => self.switch(value, cases),
        };
        match lowered {
            Ok(Some(term)) => self.f.block_mut(part).term = term,
            Ok(None) => {}
            Err(Poisoned) => self.cut(part),
        }
    }

    /// Keeps the targets of a terminator whose operand is poisoned.
    fn cut(&mut self, part: magpie_mpir::Block) {
        let ty = match &self.f.block(part).term {
            MpirTerminator::Cbr { .. } => fixed::BOOL,
            MpirTerminator::Switch { .. } => fixed::I32,
            MpirTerminator::Ret(_) | MpirTerminator::Br(_) | MpirTerminator::Unreachable => return,
        };
        let stand_in = self.f.zero(ty);
        if let Some(operand) = self.f.block_mut(part).term.operand_mut() {
            *operand = stand_in;
        }
    }

    fn ret(&mut self, value: Option<Value>) -> Lower<Option<MpirTerminator>> {
        let wanted = self.result;
        let Some(value) = value else {
            return match wanted {
                Some(fixed::UNIT) | None => Ok(Some(MpirTerminator::Ret(None))),
                Some(ty) => {
                    let name = self.type_name(ty);
                    let message = format!("`ret` needs a value of type `{name}`");
                    Err(self.error(Code::MPT2014, message, "write `ret %value`"))
                }
            };
        };
        let v = self.value(value)?;
        let Some(wanted) = wanted else { return Err(Poisoned) };
        let found = self.f.ty(v);
        if found != wanted {
            if let TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, lent) = self.kind(found)
                && lent == wanted
            {
                let name = self.type_name(found);
                let message = format!("a `{name}` cannot be returned: its owner stays behind");
                let help = "return an owned value, or let the caller lend one to be filled";
                self.ownership_error(Code::MPHIR03, message, help);
                return Err(Poisoned);
            }
            let (found, wanted) = (self.type_name(found), self.type_name(wanted));
            let message = format!("the function returns `{wanted}`, but the value is `{found}`");
            let help = format!("return a `{wanted}`, or change the result type of the function");
            return Err(self.error(Code::MPT2014, message, help));
        }
        let value = (wanted != fixed::UNIT).then_some(v);
        Ok(Some(MpirTerminator::Ret(value)))
    }

    fn condition(&mut self, condition: Value) -> Lower<Option<MpirTerminator>> {
        let cond = self.value(condition)?;
        if self.f.ty(cond) != fixed::BOOL {
            let found = self.type_name(self.f.ty(cond));
            let message = format!("the condition of `cbr` is `{found}`, not `bool`");
            return Err(self.error(
                Code::MPS0017,
                message,
                "compare it, for example with `icmp.ne`",
            ));
        }
        let part = self.block;
        // A label that does not exist has made the choice a plain branch.
        if let MpirTerminator::Cbr { cond: operand, .. } = &mut self.f.block_mut(part).term {
            *operand = cond;
        }
        Ok(None)
    }

    fn switch(&mut self, value: Value, cases: Slice<Case>) -> Lower<Option<MpirTerminator>> {
        let v = self.value(value)?;
        let ty = self.f.ty(v);
        let prim = PrimType::from_id(ty).filter(|p| !p.is_float() && *p != PrimType::Unit);
        let Some(prim) = prim else {
            let found = self.type_name(ty);
            let message = format!("`switch` needs an integer or `bool`, not `{found}`");
            let help = "switch on the tag of an enum: `enum.tag { v=%value }`";
            return Err(self.error(Code::MPT2015, message, help));
        };
        let ast = self.ast;
        let part = self.block;
        let mut seen: FxHashSet<u64> = FxHashSet::default();
        let mut bits = Vec::with_capacity(cases.len());
        let mut failed = false;
        for case in &ast[cases] {
            let Some(case_bits) = self.case_bits(case.literal, prim) else {
                let span = self.scope.span(case.range);
                let message = format!("the case does not fit `{}`", prim.name());
                let error = Diagnostic::new(Code::MPS0010, span, message);
                let help = format!("give a literal that is a `{}`", prim.name());
                self.cx.report(error.with_help(help));
                failed = true;
                continue;
            };
            if !seen.insert(case_bits) {
                let span = self.scope.span(case.range);
                let error = Diagnostic::new(Code::MPS0010, span, "this case stands twice");
                self.cx.report(error.with_help("remove one of the two"));
                failed = true;
            }
            bits.push(case_bits);
        }
        if failed {
            return Err(Poisoned);
        }
        if let MpirTerminator::Switch { value: operand, cases, .. } =
            &mut self.f.block_mut(part).term
        {
            *operand = v;
            for (case, bits) in cases.iter_mut().zip(bits) {
                case.0 = bits;
            }
        }
        Ok(None)
    }

    fn case_bits(&self, literal: Literal, prim: PrimType) -> Option<u64> {
        match literal {
            Literal::Int { negative, magnitude } if prim != PrimType::Bool => {
                super::constant::int_bits(negative, magnitude, prim)
            }
            Literal::Bool(b) if prim == PrimType::Bool => Some(b as u64),
            _ => None,
        }
    }
}
