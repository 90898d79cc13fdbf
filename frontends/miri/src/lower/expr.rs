//! Expressions.

use super::body::{Body, Val};
use super::locals::LocalKind;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::program::{Item, Module};
use crate::ty::{Ty, TyKind, fixed as ty};
use crate::walk::{Node, walk_expr};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::{PrimType, fixed};

impl Body<'_, '_, '_> {
    /// A value that the context wants to be of a type; converted as far as that happens by itself.
    pub(super) fn expr_as(&mut self, e: ExprId, want: Ty) -> Lower<Val> {
        let want = self.norm(want);
        let val = self.expr(e, Some(want))?;
        let span = self.expr_span(e);
        self.coerce(val, want, span)
    }

    /// Converts a value where the language does so without being asked.
    pub(super) fn coerce(&mut self, val: Val, want: Ty, span: Span) -> Lower<Val> {
        let want = self.norm(want);
        if val.ty == want {
            return Ok(val);
        }
        let (from, to) = (self.cx.tys.kind(val.ty), self.cx.tys.kind(want));
        if let TyKind::Option(t) = to
            && !matches!(from, TyKind::Option(_))
        {
            self.no_alloc(span, "an option")?;
            let val = self.coerce(val, t, span)?;
            return Ok(self.some(val, want));
        }
        if let (Some(a), Some(b)) = (self.scalar(val.ty), self.scalar(want)) {
            let widens = a.is_float() && b.is_float() && b.bit_width() >= a.bit_width()
                || a.is_int() && b.is_int() && fits_in(a, b);
            if widens || from == TyKind::Float && b == PrimType::F32 {
                let v = self.b.cast(val.v, b.id());
                return Ok(self.val(want, v));
            }
            if from == TyKind::Int && b.is_int() && !self.device {
                return Ok(self.narrow_int(val, want, b, span));
            }
        }
        match (from, to) {
            // A vector of the same components.
            (TyKind::Error, _) | (_, TyKind::Error) => Err(Poisoned),
            _ => Err(self.mismatch(span, val.ty, want)),
        }
    }

    /// An `int` as an integer of another type, in which it must fit.
    pub(super) fn narrow_int(&mut self, val: Val, want: Ty, to: PrimType, span: Span) -> Val {
        self.at(span);
        let v = self.b.cast(val.v, to.id());
        let back = self.b.cast(v, fixed::I64);
        let mut bad = self.b.compare(Op::IcmpNe, back, val.v);
        if to == PrimType::U64 {
            let zero = self.i64(0);
            bad = self.b.compare(Op::IcmpSlt, val.v, zero);
        }
        let text = format!("the value does not fit `{}`", to.name());
        self.panic_if(bad, &text);
        self.val(want, v)
    }

    pub(super) fn some(&mut self, val: Val, option: Ty) -> Val {
        let id = self.machine(option);
        let v = self.own(val);
        let v = self.b.value(Op::EnumNew, id, &[v], 1);
        self.val(option, v)
    }

    pub(super) fn none(&mut self, option: Ty) -> Val {
        let id = self.machine(option);
        let v = self.b.value(Op::EnumNew, id, &[], 0);
        self.val(option, v)
    }

    /// A value; `want` is what the context expects of literals.
    pub(super) fn expr(&mut self, e: ExprId, want: Option<Ty>) -> Lower<Val> {
        let val = self.expr_or_nothing(e, want)?;
        if val.ty != ty::UNIT {
            return Ok(val);
        }
        if !self.is_live() {
            // Nobody gets it: the program ends before.
            let t = want.filter(|&t| t != ty::UNIT).unwrap_or(ty::BOOL);
            let id = self.machine(t);
            let v = self.b.func().zero(id);
            return Ok(self.val(t, v));
        }
        let span = self.expr_span(e);
        let help = "use something that has a value here";
        Err(self.error(Code::MIR0202, span, "this has no value", help))
    }

    /// As [`Body::expr`], for what need not have a value.
    pub(super) fn expr_or_nothing(&mut self, e: ExprId, want: Option<Ty>) -> Lower<Val> {
        let program = self.cx.program;
        let node = &program.ast[e];
        let span = node.span;
        self.at(span);
        match &node.kind {
            ExprKind::Error => Err(Poisoned),
            &ExprKind::Int(n) => self.int_literal(n.into(), want, span),
            &ExprKind::Float(text) => {
                let text = program.name(text);
                Ok(self.float_literal(text.parse().unwrap_or(0.0), Some(text), want))
            }
            &ExprKind::Bool(b) => Ok(self.const_val(ty::BOOL, u64::from(b))),
            &ExprKind::Str(s) => self.text_value(s, span),
            ExprKind::Format(parts) => self.format(parts, span),
            ExprKind::None => match want.map(|t| self.cx.tys.kind(t)) {
                Some(TyKind::Option(_)) => {
                    self.no_alloc(span, "an option")?;
                    Ok(self.none(want.unwrap_or(ty::ERROR)))
                }
                _ => {
                    let help = "declare the type: `let x int? = None`";
                    Err(self.error(
                        Code::MIR0202,
                        span,
                        "nothing says what `None` is an option of",
                        help,
                    ))
                }
            },
            &ExprKind::Name(name) => self.name(name, want, span),
            ExprKind::Type(_) => {
                let help = "call it: `Array<f32, 4>()`";
                Err(self.error(Code::MIR0202, span, "a type is no value", help))
            }
            &ExprKind::Member(base, name) => self.member(base, name, want, span),
            &ExprKind::Field(base, n) => {
                let val = self.expr(base, None)?;
                self.tuple_item(val, n, span)
            }
            &ExprKind::Index(base, index) => self.index(base, index, span),
            ExprKind::Call(callee, args) => self.call(*callee, args, want, span),
            &ExprKind::Unary(op, operand) => self.unary(op, operand, want, span),
            &ExprKind::Binary(op, a, b) => self.binary(op, a, b, want, span),
            &ExprKind::Cast(value, t) => self.cast(value, t, span),
            &ExprKind::Cond { cond, then, otherwise } => {
                self.conditional(cond, then, otherwise, want)
            }
            &ExprKind::Range { start, end, inclusive } => self.range_value(start, end, inclusive),
            ExprKind::List(items) => self.list(items, want, span),
            ExprKind::Map(entries) => self.map(entries, want, span),
            ExprKind::Set(items) => self.set(items, want, span),
            ExprKind::Tuple(items) => self.tuple(items, want),
            &ExprKind::Lambda(id) => self.lambda(id, span),
            ExprKind::Match { scrutinee, arms } => {
                let val = self.match_expr(*scrutinee, arms, want, span)?;
                Ok(val.unwrap_or_else(|| self.unit()))
            }
        }
    }

    // ----- names -----

    /// The value of a local.
    pub(super) fn local_value(&mut self, id: u32, span: Span) -> Lower<Val> {
        let local = self.locals[id as usize].clone();
        if local.ty == ty::ERROR {
            return Err(Poisoned);
        }
        match local.kind {
            LocalKind::Var(var) => {
                let v = self.b.read(var);
                Ok(Val { ty: local.ty, v, owned: false })
            }
            LocalKind::Value(v) => Ok(Val { ty: local.ty, v, owned: false }),
            LocalKind::Resident(_) => Err(self.mixed_residency(local.name, span)),
            LocalKind::Buffer(buffer) if buffer.single => {
                let zero = self.i32(0);
                Ok(self.buffer_load(buffer.param, buffer.element, zero))
            }
            LocalKind::Buffer(_) | LocalKind::Buffers(_) | LocalKind::Memory { .. } => {
                let text = self.cx.program.name(local.name).to_string();
                let message = format!("`{text}` as a whole is no value in a kernel");
                Err(self.error(Code::MIR0202, span, message, "use its elements"))
            }
        }
    }

    fn name(&mut self, name: Sym, want: Option<Ty>, span: Span) -> Lower<Val> {
        if let Some(id) = self.lookup(name) {
            return self.local_value(id, span);
        }
        match self.subst.iter().find(|s| s.0 == name).map(|s| self.cx.tys.kind(s.1)) {
            Some(TyKind::Number(n)) => return self.int_literal(n.into(), want, span),
            Some(TyKind::Error) => return Err(Poisoned),
            Some(_) | None => {}
        }
        if let Some(known) = self.cx.constant(name, span) {
            return self.const_value(known.value, known.ty, want, span);
        }
        if self.cx.local_consts.iter().any(|c| c.0 == name) {
            return Err(Poisoned);
        }
        if let Some(item) = self.cx.program.item(name, span) {
            return self.item_value(item, name, want, span);
        }
        match super::library::number(self.library_name(name, span)) {
            Some(x) => Ok(self.float_literal(x, None, want)),
            None => Err(self.undefined(name, span)),
        }
    }

    /// The value of a declaration at the top of a file.
    fn item_value(&mut self, item: Item, name: Sym, want: Option<Ty>, span: Span) -> Lower<Val> {
        match item {
            // What is no constant is reported where it is declared.
            Item::Const(id) => {
                let known = self.cx.constant_of(id).ok_or(Poisoned)?;
                self.const_value(known.value, known.ty, want, span)
            }
            Item::Fn(id) => self.function_value(id, span),
            Item::Struct(_) | Item::Enum(_) | Item::Trait(_) | Item::Alias(_) => {
                let message = format!("`{}` is a type, not a value", self.cx.program.name(name));
                Err(self.error(Code::MIR0202, span, message, "call it with its fields"))
            }
        }
    }

    /// The library's name for a name: `use` may have given it another one.
    pub(super) fn library_name(&self, name: Sym, span: Span) -> &'static str {
        let program = self.cx.program;
        super::library::known(program.name(program.library_name(name, span)))
    }

    /// The module that an expression names, so that a member of it is a name of the module.
    pub(super) fn module_of(&self, e: ExprId) -> Option<Module> {
        let node = &self.cx.program.ast[e];
        match node.kind {
            ExprKind::Name(name)
                if self.lookup(name).is_none()
                    && self.cx.program.item(name, node.span).is_none() =>
            {
                self.cx.program.module(name, node.span)
            }
            _ => None,
        }
    }

    /// The declaration that a name, or a name of a module, stands for.
    pub(super) fn item_of(&self, e: ExprId) -> Option<Item> {
        let node = &self.cx.program.ast[e];
        match node.kind {
            ExprKind::Name(name) if self.lookup(name).is_none() => {
                self.cx.program.item(name, node.span)
            }
            ExprKind::Member(base, name) if self.module_of(base).is_some() => {
                self.cx.item_of_module(base, name)
            }
            _ => None,
        }
    }

    pub(super) fn no_such_member(&mut self, name: Ident) -> Poisoned {
        let message = format!("the module has no public `{}`", self.cx.program.name(name.sym));
        self.error(Code::MIR0201, name.span, message, "declare it there, or correct its spelling")
    }

    /// The name of an expression that is one, if no local has it.
    pub(super) fn free_name(&self, e: ExprId) -> Option<&str> {
        match &self.cx.program.ast[e].kind {
            ExprKind::Name(name) if self.lookup(*name).is_none() => {
                Some(self.cx.program.name(*name))
            }
            _ => None,
        }
    }

    fn member(&mut self, base: ExprId, name: Ident, want: Option<Ty>, span: Span) -> Lower<Val> {
        match self.module_of(base) {
            Some(Module::Library) => return self.name(name.sym, want, span),
            Some(Module::File(file)) => {
                return match self.cx.program.exported(file, name.sym) {
                    Some(item) => self.item_value(item, name.sym, want, span),
                    None => Err(self.no_such_member(name)),
                };
            }
            None => {}
        }
        if let Some(val) = self.context_member(base, name, span)? {
            return Ok(val);
        }
        if let Some(Item::Enum(n)) = self.item_of(base) {
            return self.variant(n, name, &[], want, span);
        }
        if let Some(id) = self.resident_of(base) {
            return Err(self.cross_read(self.locals[id as usize].name, span));
        }
        if let Some(val) = self.single_field(base, name) {
            return Ok(val);
        }
        let val = self.expr(base, None)?;
        let (n, t) = self.field_of(val.ty, name)?;
        Ok(self.field(val, n, t))
    }

    fn tuple_item(&mut self, val: Val, n: u32, span: Span) -> Lower<Val> {
        let t = self.tuple_item_type(val.ty, n, span)?;
        Ok(self.field(val, n, t))
    }

    pub(super) fn tuple_item_type(&mut self, tuple: Ty, n: u32, span: Span) -> Lower<Ty> {
        let TyKind::Tuple(items) = self.cx.tys.kind(tuple) else {
            let message = format!("a `{}` has no items by number", self.cx.ty_name(tuple));
            return Err(self.error(Code::MIR0202, span, message, "only tuples have them"));
        };
        let Some(&t) = self.cx.tys.items(items).get(n as usize) else {
            let count = self.cx.tys.items(items).len();
            let message = format!("item {n} of a tuple of {count}");
            return Err(self.error(Code::MIR0205, span, message, "count from 0"));
        };
        Ok(self.norm(t))
    }

    /// The constant index of a tuple.
    pub(super) fn tuple_index(&mut self, index: ExprId) -> Lower<u32> {
        let subst = self.subst.clone();
        let help = "write a literal: `t[0]`";
        let what = "the index of a tuple";
        let n = self.cx.need_const_int(index, &subst, Code::MIR0202, what, help)?;
        Ok(u32::try_from(n).unwrap_or(u32::MAX))
    }

    fn index(&mut self, base: ExprId, index: ExprId, span: Span) -> Lower<Val> {
        if self.device
            && let Some(val) = self.device_index(base, index, span)?
        {
            return Ok(val);
        }
        if let Some(id) = self.resident_of(base) {
            return Err(self.cross_read(self.locals[id as usize].name, span));
        }
        let array = self.expr(base, None)?;
        let array = self.keep(array, &[index]);
        match self.cx.tys.kind(array.ty) {
            TyKind::Array(t, n) => {
                self.check_const_index(index, n, span)?;
                let index = self.index_value(index)?;
                Ok(self.element(array, index, t, span))
            }
            TyKind::List(t) => {
                let index = self.index_value(index)?;
                Ok(self.element(array, index, t, span))
            }
            TyKind::Map(k, v) => {
                let key = self.expr_as(index, k)?;
                let step = super::place::Step::Key { key, ty: v, span };
                Ok(self.read_step(array, step))
            }
            TyKind::Str => {
                let index = self.index_value(index)?;
                self.at(span);
                let place = self.place(span);
                let args = [array.v, index, place];
                let v = self.rt_value(RtFn::StrCharAt, fixed::STR, &args);
                Ok(self.val(ty::STR, v))
            }
            TyKind::Tuple(_) => {
                let n = self.tuple_index(index)?;
                self.tuple_item(array, n, span)
            }
            TyKind::Error => Err(Poisoned),
            _ => {
                let message = format!("a `{}` has no elements", self.cx.ty_name(array.ty));
                let help = "index an array, a list, a map, a text or a tuple";
                Err(self.error(Code::MIR0202, span, message, help))
            }
        }
    }

    // ----- choice and ranges -----

    /// A condition.
    pub(super) fn condition(&mut self, e: ExprId) -> Lower<Value> {
        let val = self.expr(e, Some(ty::BOOL))?;
        if val.ty != ty::BOOL {
            let span = self.expr_span(e);
            return Err(self.mismatch(span, val.ty, ty::BOOL));
        }
        Ok(val.v)
    }

    fn conditional(
        &mut self,
        cond: ExprId,
        then: ExprId,
        otherwise: ExprId,
        want: Option<Ty>,
    ) -> Lower<Val> {
        let cond = self.condition(cond)?;
        let (yes, no, join) = (self.new_block(), self.new_block(), self.new_block());
        self.b.cbr(cond, yes, no);
        // A branch of literals takes the type of the other one.
        let flip = self.cx.adapts(then) && !self.cx.adapts(otherwise) && want.is_none();
        let (first, second) = if flip { (otherwise, then) } else { (then, otherwise) };
        let (first_block, second_block) = if flip { (no, yes) } else { (yes, no) };
        self.enter(first_block);
        let option = want.filter(|&t| matches!(self.cx.tys.kind(t), TyKind::Option(_)));
        let mut a = self.expr_or_nothing(first, want);
        // Either branch may be a plain value where an option is wanted.
        if let (Ok(val), Some(option)) = (a, option)
            && val.ty != ty::UNIT
        {
            let span = self.expr_span(first);
            a = self.coerce(val, option, span);
        }
        // A branch that ends the program has no type of its own.
        let a_ends = a.is_ok_and(|a| a.ty == ty::UNIT) && !self.is_live();
        let a = match a {
            Ok(a) if !a_ends => a,
            _ => {
                self.go_to(join);
                self.enter(second_block);
                let b = self.expr_or_nothing(second, want);
                self.go_to(join);
                self.enter(join);
                return if a_ends { b } else { Err(Poisoned) };
            }
        };
        let id = self.machine(a.ty);
        let result = self.b.declare(id);
        let v = self.own(a);
        if id != fixed::UNIT {
            self.b.write(result, v);
        }
        self.go_to(join);
        self.enter(second_block);
        let b = match a.ty {
            ty::UNIT => {
                let b = self.expr_or_nothing(second, None);
                let span = self.expr_span(second);
                b.and_then(|b| self.coerce(b, ty::UNIT, span))
            }
            t => self.expr_as(second, t),
        };
        if let Ok(b) = b {
            let v = self.own(b);
            if id != fixed::UNIT {
                self.b.write(result, v);
            }
        }
        self.go_to(join);
        self.enter(join);
        b?;
        if id == fixed::UNIT {
            return Ok(self.unit());
        }
        let v = self.b.read(result);
        Ok(self.val(a.ty, v))
    }

    /// The value of a constant integer expression, which no local name is part of.
    pub(super) fn known_int(&mut self, e: ExprId) -> Option<i128> {
        let ast = &self.cx.program.ast;
        let mut is_constant = true;
        walk_expr(ast, e, &mut |node| {
            if let Node::Expr(e) = node
                && let ExprKind::Name(name) = ast[e].kind
            {
                is_constant &= self.lookup(name).is_none();
            }
        });
        if !is_constant {
            return None;
        }
        let subst = std::mem::take(&mut self.subst);
        let known = self.cx.const_int(e, &subst);
        self.subst = subst;
        known
    }

    /// Checks that the ends of a range are integers, with the given code when they are not.
    fn check_ends(&mut self, ends: [(Val, ExprId); 2], code: Code) -> Lower<()> {
        for (val, e) in ends {
            if val.ty == ty::ERROR {
                return Err(Poisoned);
            }
            if !self.cx.tys.is_int(val.ty) {
                let span = self.expr_span(e);
                let message =
                    format!("a range of integers ends at a `{}`", self.cx.ty_name(val.ty));
                return Err(self.error(code, span, message, "convert it: `… as int`"));
            }
        }
        Ok(())
    }

    /// The two ends of a range of integers, the second excluded.
    pub(super) fn range_ends(
        &mut self,
        start: ExprId,
        end: ExprId,
        inclusive: bool,
        code: Code,
    ) -> Lower<(Val, Val)> {
        let int = self.norm(ty::INT);
        let a = self.expr(start, Some(int))?;
        let b = self.expr(end, Some(int))?;
        self.check_ends([(a, start), (b, end)], code)?;
        let id = self.machine(int);
        let constant = |body: &mut Self, e: ExprId, more: i128| {
            let n = body.known_int(e)? + more;
            Some(body.b.const_bits(id, n as u64))
        };
        let a = constant(self, start, 0).unwrap_or_else(|| self.b.cast(a.v, id));
        let b = constant(self, end, inclusive.into()).unwrap_or_else(|| {
            let b = self.b.cast(b.v, id);
            let one = self.b.const_bits(id, 1);
            if inclusive { self.b.same(Op::IAdd, &[b, one]) } else { b }
        });
        Ok((self.val(int, a), self.val(int, b)))
    }

    fn range_value(&mut self, start: ExprId, end: ExprId, inclusive: bool) -> Lower<Val> {
        let (a, b) = self.range_ends(start, end, inclusive, Code::MIR0202)?;
        let id = self.machine(ty::RANGE);
        let v = self.b.value(Op::StructNew, id, &[a.v, b.v], 0);
        Ok(self.val(ty::RANGE, v))
    }

    // ----- collections -----

    pub(super) fn no_alloc(&mut self, span: Span, what: &str) -> Lower<()> {
        if !self.device {
            return Ok(());
        }
        let message = format!("a kernel cannot make {what}");
        let help = "use numbers and arrays of constant size";
        Err(self.error(Code::MIR1802, span, message, help))
    }
}

/// Whether every value of one integer type is one of another.
pub(super) fn fits_in(a: PrimType, b: PrimType) -> bool {
    let ((a_min, a_max), (b_min, b_max)) = (super::literal::range(a), super::literal::range(b));
    a_min >= b_min && a_max <= b_max
}
