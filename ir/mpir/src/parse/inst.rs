//! Instructions: result, op, flags, immediates, operands, place.

use super::function::{Body, LabelId, NameId};
use super::lexer::{Kind, Token};
use super::{Parsed, Parser, constant};
use crate::print::FAST_WORD;
use crate::{Const, Flags, ImmKind, Immediate, Op};
use magpie_diag::Span;
use magpie_types::abi::RtFn;
use magpie_types::{TypeId, fixed};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// An operand as written.
#[derive(Clone, Copy)]
pub(super) enum Operand {
    Name(NameId),
    Const(TypeId, Const),
}

/// An instruction as written.
pub(super) struct PendingInst {
    pub(super) result: Option<NameId>,
    pub(super) op: Op,
    pub(super) flags: Flags,
    pub(super) ty: TypeId,
    pub(super) imm: u64,
    /// A range of [`Body::operands`].
    pub(super) operands: Range<usize>,
    /// Of a phi: a range of [`Body::arm_labels`] as long as `operands`.
    pub(super) arm_labels: Range<usize>,
    pub(super) span: Span,
}

impl<'a> Parser<'a> {
    pub(super) fn inst(&mut self, body: &mut Body<'a>) -> Parsed<()> {
        let start = self.tok;
        let (mut result, mut ty) = (None, fixed::UNIT);
        if start.kind == Kind::Value {
            self.bump();
            self.expect(b':')?;
            let type_at = self.tok;
            ty = self.ty()?;
            if ty == fixed::UNIT {
                return Err(self.error(
                    type_at,
                    "an instruction of type `unit` has no result; leave out the name and the type",
                ));
            }
            self.expect(b'=')?;
            result = Some(start);
        }
        let op_at = self.tok;
        if op_at.kind != Kind::Word {
            return Err(self.expected_at_start("an instruction or a terminator"));
        }
        self.bump();
        let Some(op) = Op::from_name(self.slice(op_at)) else {
            let name = self.slice(op_at);
            return Err(self.error(op_at, format!("there is no operation `{name}`")));
        };
        let flags = self.flags(op)?;
        let imm = self.immediate(op.info().immediate)?;
        let (first, first_label) = (body.operands.len(), body.arm_labels.len());
        while !self.end_of_operands() {
            if body.operands.len() > first {
                self.expect(b',')?;
            }
            if op == Op::Phi {
                self.phi_arm(body)?;
            } else {
                let operand = self.operand(body)?;
                body.operands.push(operand);
            }
        }
        let mark = self.place()?;
        let span = self.stored_place(start, mark);
        self.end_of_line()?;
        let result = result.map(|tok| self.define_value(body, tok));
        body.insts.push(PendingInst {
            result,
            op,
            flags,
            ty,
            imm,
            operands: first..body.operands.len(),
            arm_labels: first_label..body.arm_labels.len(),
            span,
        });
        Ok(())
    }

    pub(super) fn end_of_operands(&self) -> bool {
        self.tok.first_in_line
            || matches!(self.tok.kind, Kind::Place | Kind::End | Kind::Punct(b'}'))
    }

    /// `[bb0: %1]`.
    fn phi_arm(&mut self, body: &mut Body<'a>) -> Parsed<()> {
        self.expect(b'[')?;
        let label: LabelId = self.label(body, "the label of a predecessor")?;
        self.expect(b':')?;
        let value = self.operand(body)?;
        self.expect(b']')?;
        body.arm_labels.push(label);
        body.operands.push(value);
        Ok(())
    }

    /// `%name`, or a type and the payload of a constant.
    pub(super) fn operand(&mut self, body: &mut Body<'a>) -> Parsed<Operand> {
        match self.tok.kind {
            Kind::Value => {
                let tok = self.bump();
                Ok(Operand::Name(body.value(self.slice(tok), tok)))
            }
            Kind::Word | Kind::Str => {
                let ty = self.ty()?;
                Ok(Operand::Const(ty, self.constant(ty)?))
            }
            _ => Err(self.expected("a value: `%name`, or a type and a constant")),
        }
    }

    /// `[contract nsz]`.
    fn flags(&mut self, op: Op) -> Parsed<Flags> {
        // Brackets after `phi` are its arms.
        if op == Op::Phi || !self.eat(b'[') {
            return Ok(Flags::NONE);
        }
        let mut flags = Flags::NONE;
        while !self.eat(b']') {
            let at = self.tok;
            let word = if at.kind == Kind::Word { self.slice(at) } else { "" };
            let bit = Flags::NAMES.iter().position(|&name| name == word).map(|n| Flags(1 << n));
            let Some(flag) = bit.or((word == FAST_WORD).then_some(Flags::FAST)) else {
                let names = Flags::NAMES.join(" ");
                return Err(self.expected(&format!("one of {names} {FAST_WORD}, or `]`")));
            };
            self.bump();
            flags = flags.union(flag);
        }
        Ok(flags)
    }

    /// The `key=value` parts that the op table gives the op, in any order.
    fn immediate(&mut self, immediate: Immediate) -> Parsed<u64> {
        let parts = immediate.parts();
        let mut seen = [false; 2];
        let mut imm = 0u64;
        while self.tok.kind == Kind::Word && self.peek().kind == Kind::Punct(b'=') {
            let key_at = self.bump();
            let key = self.slice(key_at);
            self.bump();
            let Some(n) = parts.iter().position(|part| part.key == key) else {
                let keys: Vec<&str> = parts.iter().map(|part| part.key).collect();
                let known = match keys.as_slice() {
                    [] => "none".to_string(),
                    keys => format!("`{}`", keys.join("`, `")),
                };
                let message = format!("the operation has no `{key}`; its immediates: {known}");
                return Err(self.error(key_at, message));
            };
            if std::mem::replace(&mut seen[n], true) {
                return Err(self.error(key_at, format!("`{key}` is given twice")));
            }
            let bits = self.immediate_part(parts[n].kind, key)?;
            imm |= if parts[n].high { bits << 32 } else { bits };
        }
        match parts.iter().zip(seen).find(|(part, seen)| !part.optional && !seen) {
            Some((part, _)) => Err(self.expected(&format!("`{}=`", part.key))),
            None => Ok(imm),
        }
    }

    /// The bits of one part: 32 of them, except for [`ImmKind::Signed`].
    fn immediate_part(&mut self, kind: ImmKind, key: &str) -> Parsed<u64> {
        let at = self.tok;
        match kind {
            ImmKind::Number => Ok(self.number_u32(&format!("the number of `{key}`"))? as u64),
            ImmKind::Signed => {
                let value = (at.kind == Kind::Number)
                    .then(|| constant::integer(self.slice(at)))
                    .flatten()
                    .and_then(|v| i64::try_from(v).ok());
                let Some(value) = value else {
                    return Err(self.expected("a signed 64-bit number"));
                };
                self.bump();
                Ok(value as u64)
            }
            ImmKind::Func => Ok(self.fn_name(at)? as u64),
            ImmKind::OptionalFunc => Ok(self.fn_name(at)? as u64 + 1),
            ImmKind::Rt => {
                let symbol = self.name("the C symbol of a runtime function")?;
                match rt_by_symbol().get(symbol.as_ref()) {
                    Some(&rt) => Ok(rt as u64),
                    None => Err(self.error(at, format!("there is no runtime function `{symbol}`"))),
                }
            }
            ImmKind::Type => Ok(self.ty()?.0 as u64),
        }
    }

    fn fn_name(&mut self, at: Token) -> Parsed<u32> {
        let name = self.name("the name of a function")?;
        match self.fns_by_name.get(&name) {
            Some(id) => Ok(id.0),
            None => Err(self.error(at, format!("function `{name}` is not defined"))),
        }
    }
}

fn rt_by_symbol() -> &'static FxHashMap<&'static str, RtFn> {
    static BY_SYMBOL: OnceLock<FxHashMap<&'static str, RtFn>> = OnceLock::new();
    BY_SYMBOL.get_or_init(|| RtFn::ALL.iter().map(|&f| (f.symbol(), f)).collect())
}
