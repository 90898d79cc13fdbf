//! Loops.

use super::body::{Body, Val};
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::fixed;

impl Body<'_, '_, '_> {
    pub(super) fn for_loop(&mut self, names: &[Ident], iter: ExprId, body: &Block) -> Lower<()> {
        let program = self.cx.program;
        let span = program.ast[iter].span;
        if let ExprKind::Range { start, end, inclusive } = program.ast[iter].kind {
            if names.len() != 1 {
                let help = "write `for i in 0..n`";
                return Err(self.error(
                    Code::MIR0202,
                    span,
                    "a range gives one value at a time",
                    help,
                ));
            }
            let (a, b) = self.range_ends(start, end, inclusive, Code::MIR0202)?;
            self.counted_loop(names[0], a, b, body);
            return Ok(());
        }
        if let Some(id) = self.resident_of(iter) {
            return Err(self.cross_read(self.locals[id as usize].name, span));
        }
        self.no_alloc(span, "or go through a collection")?;
        if let (Some((text, by)), [_] | [_, _]) = (self.split(iter), names) {
            return self.each_part(text, by, names, body);
        }
        let whole = self.expr(iter, None)?;
        // The loop goes through the collection as it is now.
        let v = if self.is_fixed(iter) { whole.v } else { self.own(whole) };
        let whole = Val { owned: false, v, ..whole };
        match self.cx.tys.kind(whole.ty) {
            TyKind::Range if names.len() == 1 => {
                let (a, b) = (self.field(whole, 0, ty::INT), self.field(whole, 1, ty::INT));
                self.counted_loop(names[0], a, b, body);
            }
            TyKind::Array(t, _) | TyKind::List(t) if names.len() <= 2 => {
                self.each(whole, t, names, None, body, span);
            }
            TyKind::Str if names.len() <= 2 => {
                self.each_character(whole, names, body);
            }
            TyKind::Set(k) if names.len() == 1 => {
                let keys = self.map_keys(whole, k);
                self.each(keys, k, names, None, body, span);
            }
            TyKind::Map(k, v) if names.len() <= 2 => {
                let keys = self.map_keys(whole, k);
                let values = (names.len() == 2).then_some((whole, v));
                self.each(keys, k, names, values, body, span);
            }
            TyKind::Error => return Err(Poisoned),
            _ => {
                let message = format!(
                    "`for` with {} names cannot go through a `{}`",
                    names.len(),
                    self.cx.ty_name(whole.ty)
                );
                let help = "write `for x in list`, `for x, i in list` or `for k, v in map`";
                return Err(self.error(Code::MIR0202, span, message, help));
            }
        }
        Ok(())
    }

    /// The text and the separator of `text.split("separator")`.
    fn split(&mut self, iter: ExprId) -> Option<(ExprId, ExprId)> {
        let ast = &self.cx.program.ast;
        let ExprKind::Call(callee, ref args) = ast[iter].kind else { return None };
        let (ExprKind::Member(text, name), [arg]) = (&ast[callee].kind, &args[..]) else {
            return None;
        };
        let ExprKind::Str(by) = ast[arg.value].kind else { return None };
        let is_split = self.cx.program.name(name.sym) == "split" && arg.name.is_none();
        let is_plain = is_split && !self.cx.program.name(by).is_empty();
        (is_plain && self.is_text(*text)).then_some((*text, arg.value))
    }

    /// Whether an expression is seen to be a text without evaluating it.
    fn is_text(&mut self, e: ExprId) -> bool {
        let program = self.cx.program;
        match program.ast[e].kind {
            ExprKind::Str(_) | ExprKind::Format(_) => true,
            ExprKind::Call(callee, _) => match program.ast[callee].kind {
                ExprKind::Member(base, name) => {
                    let same_type = ["trim", "to_lower", "to_upper"];
                    same_type.contains(&program.name(name.sym)) && self.is_text(base)
                }
                _ => false,
            },
            _ => self.place_type(e) == Some(ty::STR),
        }
    }

    pub(super) fn map_keys(&mut self, map: Val, key: Ty) -> Val {
        let list = self.cx.tys.intern(TyKind::List(key));
        let id = self.machine(list);
        let v = self.b.value(Op::MapKeys, id, &[map.v], 0);
        Val { ty: list, v, owned: false }
    }

    /// Whether a condition is the literal `true`, or the contrary of `false`.
    pub(super) fn is_always(&self, cond: Cond) -> bool {
        match cond {
            Cond::Value { expr, negated } => match self.cx.program.ast[expr].kind {
                ExprKind::Bool(b) => b != negated,
                _ => false,
            },
            Cond::Let(..) => false,
        }
    }

    pub(super) fn forever(&mut self, body: &Block) {
        let (head, exit) = (self.new_block(), self.new_block());
        self.b.br(head);
        self.b.switch_to(head);
        self.begin_loop(exit, head, false);
        self.block(body);
        self.end_loop();
        self.go_to(head);
        self.b.seal(head);
        self.enter(exit);
    }

    /// `for name in a..b`
    fn counted_loop(&mut self, name: Ident, a: Val, b: Val, block: &Block) {
        self.count(a, b, false, &mut |body, i| {
            body.declare_value(name.sym, name.span, i.ty, i.v);
            body.block(block);
        });
    }

    /// Runs `inside` for the integers from `a` up to, but not including, `b`.
    pub(super) fn count(
        &mut self,
        a: Val,
        b: Val,
        is_forall: bool,
        inside: &mut dyn FnMut(&mut Self, Val),
    ) {
        let id = self.machine(a.ty);
        let var = self.b.declare(id);
        self.b.write(var, a.v);
        let (head, within) = (self.new_block(), self.new_block());
        let (next, exit) = (self.new_block(), self.new_block());
        self.b.br(head);
        self.b.switch_to(head);
        let i = self.b.read(var);
        let more = self.b.compare(Op::IcmpSlt, i, b.v);
        self.b.cbr(more, within, exit);
        self.enter(within);
        self.push_scope();
        self.begin_loop(exit, next, is_forall);
        let index = self.val(a.ty, i);
        inside(self, index);
        self.end_loop();
        self.pop_scope();
        self.go_to(next);
        self.enter(next);
        let one = self.b.const_bits(id, 1);
        let after = self.b.same(Op::IAdd, &[i, one]);
        self.b.write(var, after);
        self.b.br(head);
        self.b.seal(head);
        self.enter(exit);
    }

    /// Runs `each` for the `i64`s from 0 below `len`.
    pub(super) fn count_to(&mut self, len: Value, each: &mut dyn FnMut(&mut Self, Value)) {
        let zero = self.i64(0);
        let (zero, len) = (self.val(ty::INT, zero), self.val(ty::INT, len));
        self.count(zero, len, false, &mut |body, i| each(body, i.v));
    }

    /// Goes through an array; the second name is the index, or the value of a map's key.
    fn each(
        &mut self,
        array: Val,
        t: Ty,
        names: &[Ident],
        values: Option<(Val, Ty)>,
        block: &Block,
        span: Span,
    ) {
        let len = self.length(array);
        self.count_to(len, &mut |body, i| {
            let item = body.element(array, i, t, span);
            body.bind_item(names[0], item);
            match (names.get(1), values) {
                (Some(&second), Some((map, v))) => {
                    let step = super::place::Step::Key { key: item, ty: v, span };
                    let value = body.read_step(map, step);
                    body.bind_item(second, value);
                }
                (Some(&second), None) => {
                    body.declare_value(second.sym, second.span, ty::INT, i);
                }
                (None, _) => {}
            }
            body.block(block);
        });
    }

    /// Goes through the characters of a text, byte by byte; the second name is the index.
    fn each_character(&mut self, text: Val, names: &[Ident], block: &Block) {
        let len = self.rt_value(RtFn::StrLen, fixed::I64, &[text.v]);
        let (at, count) = (self.b.declare(fixed::I64), self.b.declare(fixed::I64));
        let (zero, one) = (self.i64(0), self.i64(1));
        self.b.write(at, zero);
        self.b.write(count, zero);
        let (head, within) = (self.new_block(), self.new_block());
        let (next, exit) = (self.new_block(), self.new_block());
        self.b.br(head);
        self.b.switch_to(head);
        let (byte, index) = (self.b.read(at), self.b.read(count));
        let more = self.b.compare(Op::IcmpSlt, byte, len);
        self.b.cbr(more, within, exit);
        self.enter(within);
        self.push_scope();
        self.begin_loop(exit, next, false);
        let character = self.rt_value(RtFn::StrCharFrom, fixed::STR, &[text.v, byte]);
        let bytes = self.rt_value(RtFn::StrLen, fixed::I64, &[character]);
        let item = Val { ty: ty::STR, v: character, owned: false };
        self.bind_item(names[0], item);
        if let Some(&second) = names.get(1) {
            self.declare_value(second.sym, second.span, ty::INT, index);
        }
        self.block(block);
        self.end_loop();
        self.pop_scope();
        self.go_to(next);
        self.enter(next);
        let behind = self.b.same(Op::IAdd, &[byte, bytes]);
        self.b.write(at, behind);
        let following = self.b.same(Op::IAdd, &[index, one]);
        self.b.write(count, following);
        self.b.br(head);
        self.b.seal(head);
        self.enter(exit);
    }

    /// Goes through the parts of a text between separators, each found when it is its turn.
    fn each_part(&mut self, text: ExprId, by: ExprId, names: &[Ident], block: &Block) -> Lower<()> {
        let text = self.expr(text, None)?;
        let text = self.own(text);
        let by = self.expr(by, None)?.v;
        let len = self.rt_value(RtFn::StrLen, fixed::I64, &[text]);
        let step = self.rt_value(RtFn::StrLen, fixed::I64, &[by]);
        let (from, count) = (self.b.declare(fixed::I64), self.b.declare(fixed::I64));
        let (zero, one) = (self.i64(0), self.i64(1));
        self.b.write(from, zero);
        self.b.write(count, zero);
        let [head, last, within, next, more, exit] = std::array::from_fn(|_| self.new_block());
        self.b.br(head);
        self.b.switch_to(head);
        let (start, index) = (self.b.read(from), self.b.read(count));
        let found = self.rt_value(RtFn::StrFind, fixed::I64, &[text, by, start]);
        let end = self.b.declare(fixed::I64);
        self.b.write(end, found);
        let is_last = self.b.compare(Op::IcmpSlt, found, zero);
        self.b.cbr(is_last, last, within);
        self.enter(last);
        self.b.write(end, len);
        self.b.br(within);
        self.enter(within);
        let end = self.b.read(end);
        self.push_scope();
        self.begin_loop(exit, next, false);
        let part = self.rt_value(RtFn::StrSlice, fixed::STR, &[text, start, end]);
        self.bind_item(names[0], Val { ty: ty::STR, v: part, owned: false });
        if let Some(&second) = names.get(1) {
            self.declare_value(second.sym, second.span, ty::INT, index);
        }
        self.block(block);
        self.end_loop();
        self.pop_scope();
        self.go_to(next);
        self.enter(next);
        self.b.cbr(is_last, exit, more);
        self.enter(more);
        let behind = self.b.same(Op::IAdd, &[found, step]);
        self.b.write(from, behind);
        let following = self.b.same(Op::IAdd, &[index, one]);
        self.b.write(count, following);
        self.b.br(head);
        self.b.seal(head);
        self.enter(exit);
        Ok(())
    }

    pub(super) fn bind_item(&mut self, name: Ident, item: Val) {
        self.declare_value(name.sym, name.span, item.ty, item.v);
    }
}
