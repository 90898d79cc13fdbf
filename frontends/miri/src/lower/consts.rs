//! Constants: values known when the program is compiled.

use super::library;
use super::types::Subst;
use super::{Cx, Lower};
use crate::ast::*;
use crate::program::{Item, Module};
use crate::ty::{Ty, TyKind, fixed as ty};
use crate::walk::{Node, walk_expr};
use magpie_diag::{Code, Diagnostic, Span};
use magpie_types::PrimType;

/// The value of a constant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum ConstValue {
    Int(i128),
    Float(f64),
    Bool(bool),
    Str(Sym),
    /// A text made of others, by its number in [`Cx::joined_texts`].
    Joined(u32),
}

/// A constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Const {
    pub(super) value: ConstValue,
    /// The declared type; without one a number takes the type of its context, as a literal does.
    pub(super) ty: Option<Ty>,
}

/// Bytes of a constant text at most.
const MAX_TEXT: usize = 1 << 20;
/// Constants that lead to each other.
const MAX_DEPTH: u32 = 64;

impl Cx<'_> {
    /// Evaluates every constant, so that each is reported where it stands.
    pub(super) fn check_consts(&mut self) {
        for &id in &self.program.consts {
            self.check_const(id);
        }
    }

    /// Evaluates a constant; reports it when it cannot be.
    pub(super) fn check_const(&mut self, id: StmtId) {
        let program = self.program;
        let StmtKind::Const(binder) = &program.ast[id].kind else { return };
        if self.constant_of(id).is_some() {
            return;
        }
        let end = binder.init.map_or(binder.name.span, |e| program.ast[e].span).end;
        let is_reported = |d: &Diagnostic| {
            let at = d.primary;
            at.file == binder.name.span.file && at.start >= binder.name.span.start && at.end <= end
        };
        if !self.diagnostics.iter().any(is_reported) && !self.report_zero(binder.init) {
            let message = format!("`{}` is not constant", program.name(binder.name.sym));
            let help = "a constant is made of literals and other constants with operators";
            self.error(Code::MIR0202, binder.name.span, message, help);
        }
    }

    /// Reports a division of constants by zero.
    fn report_zero(&mut self, init: Option<ExprId>) -> bool {
        let ast = &self.program.ast;
        let mut divisors = Vec::new();
        if let Some(e) = init {
            walk_expr(ast, e, &mut |node| {
                if let Node::Expr(e) = node
                    && let ExprKind::Binary(BinaryOp::Div | BinaryOp::Rem, _, b) = ast[e].kind
                {
                    divisors.push((e, b));
                }
            });
        }
        let zero = divisors.into_iter().find(|d| self.const_int(d.1, &Subst::new()) == Some(0));
        if let Some((e, _)) = zero {
            let help = "divide by something else";
            self.error(Code::MIR0204, ast[e].span, "this divides by zero", help);
        }
        zero.is_some()
    }

    /// Whether a constant is a value of its declared type; reported when it is not.
    fn check_const_type(&mut self, value: ConstValue, t: Ty, at: Span) -> bool {
        let fits = match value {
            ConstValue::Int(_) => self.tys.is_int(t),
            ConstValue::Float(_) => self.tys.is_float(t),
            ConstValue::Bool(_) => t == ty::BOOL,
            ConstValue::Str(_) | ConstValue::Joined(_) => t == ty::STR,
        };
        let name = self.ty_name(t);
        if !fits {
            let found = match value {
                ConstValue::Int(_) => "int",
                ConstValue::Float(_) => "float",
                ConstValue::Bool(_) => "bool",
                ConstValue::Str(_) | ConstValue::Joined(_) => "String",
            };
            let message = format!("expected `{name}`, found `{found}`");
            self.error(Code::MIR0202, at, message, format!("give a `{name}`"));
            return false;
        }
        if let (ConstValue::Int(n), Some(p)) = (value, self.tys.scalar(t, false)) {
            let (min, max) = super::literal::range(p);
            // Words of 64 bits may be written as they lie in memory.
            if n < min || n > max && p != PrimType::I64 {
                let message = format!("{n} does not fit `{name}` ({min} to {max})");
                let help = "use a smaller number, or a wider type";
                self.error(Code::MIR0213, at, message, help);
                return false;
            }
        }
        true
    }

    /// The constant of a name, if it is one and can be evaluated: of a function around the present
    /// place, or of the file.
    pub(super) fn constant(&mut self, name: Sym, at: Span) -> Option<Const> {
        let local = self.local_consts.iter().rev().find(|c| c.0 == name);
        match (local, self.program.item(name, at)) {
            (Some(&(_, id)), _) | (None, Some(Item::Const(id))) => self.constant_of(id),
            _ => None,
        }
    }

    /// What `module.name` means.
    pub(super) fn item_of_module(&self, base: ExprId, name: Ident) -> Option<Item> {
        let base = &self.program.ast[base];
        match base.kind {
            ExprKind::Name(module) => match self.program.module(module, base.span)? {
                Module::File(file) => self.program.exported(file, name.sym),
                Module::Library => None,
            },
            _ => None,
        }
    }

    pub(super) fn constant_of(&mut self, id: StmtId) -> Option<Const> {
        let StmtKind::Const(binder) = &self.program.ast[id].kind else { return None };
        if let Some(&known) = self.consts.get(&id) {
            return known;
        }
        // While it is being evaluated it has no value: a constant cannot be made of itself.
        self.consts.insert(id, None);
        let declared = binder.ty.and_then(|t| self.resolve(t, &Subst::new()).ok());
        let value = binder.init.and_then(|e| self.const_value(e, &Subst::new(), 0));
        let at = binder.init.map_or(binder.name.span, |e| self.program.ast[e].span);
        let value = value.filter(|&v| declared.is_none_or(|t| self.check_const_type(v, t, at)));
        let known = value.map(|value| Const { value, ty: declared });
        self.consts.insert(id, known);
        known
    }

    /// The value of a constant integer expression.
    pub(super) fn const_int(&mut self, e: ExprId, subst: &Subst) -> Option<i128> {
        match self.const_value(e, subst, 0)? {
            ConstValue::Int(n) => Some(n),
            _ => None,
        }
    }

    /// The value of a constant expression, local names not considered.
    pub(super) fn const_value(
        &mut self,
        e: ExprId,
        subst: &Subst,
        depth: u32,
    ) -> Option<ConstValue> {
        use ConstValue::*;
        if depth > MAX_DEPTH * 4 {
            return None;
        }
        let program = self.program;
        Some(match program.ast[e].kind {
            ExprKind::Int(n) => Int(n as i128),
            ExprKind::Float(text) => Float(program.name(text).parse().ok()?),
            ExprKind::Bool(b) => Bool(b),
            ExprKind::Str(s) => Str(s),
            ExprKind::Name(name) => {
                if let Some(&(_, t)) = subst.iter().find(|(param, _)| *param == name)
                    && let TyKind::Number(n) = self.tys.kind(t)
                {
                    return Some(Int(n as i128));
                }
                let span = program.ast[e].span;
                match self.constant(name, span) {
                    Some(known) => known.value,
                    None if program.item(name, span).is_none() => {
                        Float(library::number(program.name(program.library_name(name, span)))?)
                    }
                    None => return None,
                }
            }
            ExprKind::Member(base, name) => match self.item_of_module(base, name) {
                Some(Item::Const(id)) => self.constant_of(id)?.value,
                Some(_) => return None,
                None => {
                    let ExprKind::Name(module) = program.ast[base].kind else { return None };
                    let span = program.ast[base].span;
                    if program.module(module, span) != Some(Module::Library) {
                        return None;
                    }
                    Float(library::number(program.name(name.sym))?)
                }
            },
            ExprKind::Cast(e, t) => {
                let value = self.const_value(e, subst, depth + 1)?;
                let to = self.resolve(t, subst).ok().and_then(|t| self.tys.scalar(t, false))?;
                convert(value, to)?
            }
            ExprKind::Unary(op, e) => match (op, self.const_value(e, subst, depth + 1)?) {
                (UnaryOp::Neg, Int(n)) => Int(-n),
                (UnaryOp::Neg, Float(x)) => Float(-x),
                (UnaryOp::Plus, v @ (Int(_) | Float(_))) => v,
                (UnaryOp::Not, Bool(b)) => Bool(!b),
                (UnaryOp::BitNot, Int(n)) => Int(!n),
                _ => return None,
            },
            ExprKind::Cond { cond, then, otherwise } => {
                let Bool(cond) = self.const_value(cond, subst, depth + 1)? else { return None };
                let chosen = if cond { then } else { otherwise };
                return self.const_value(chosen, subst, depth + 1);
            }
            ExprKind::Binary(op, a, b) => {
                let a = self.const_value(a, subst, depth + 1)?;
                let b = self.const_value(b, subst, depth + 1)?;
                if op == BinaryOp::Add
                    && let (Some(x), Some(y)) = (self.const_text(a), self.const_text(b))
                {
                    if x.len() + y.len() > MAX_TEXT {
                        return None;
                    }
                    let joined = format!("{x}{y}");
                    self.joined_texts.push(joined);
                    return Some(Joined(self.joined_texts.len() as u32 - 1));
                }
                return binary(op, a, b);
            }
            _ => return None,
        })
    }

    /// The text of a constant that is one.
    pub(super) fn const_text(&self, value: ConstValue) -> Option<&str> {
        match value {
            ConstValue::Str(s) => Some(self.program.name(s)),
            ConstValue::Joined(n) => self.joined_texts.get(n as usize).map(String::as_str),
            ConstValue::Int(_) | ConstValue::Float(_) | ConstValue::Bool(_) => None,
        }
    }

    /// Whether an expression is a literal, or made of literals, so that it takes the type of its
    /// context.
    pub(super) fn adapts(&mut self, e: ExprId) -> bool {
        let program = self.program;
        match &program.ast[e].kind {
            ExprKind::Int(_) | ExprKind::Float(_) => true,
            &ExprKind::Unary(UnaryOp::Neg | UnaryOp::Plus, e) => self.adapts(e),
            &ExprKind::Binary(op, a, b) if op.is_arithmetic() => self.adapts(a) && self.adapts(b),
            &ExprKind::Cond { then, otherwise, .. } => self.adapts(then) && self.adapts(otherwise),
            &ExprKind::Name(name) => self.constant(name, program.ast[e].span).is_some_and(|c| {
                c.ty.is_none() && matches!(c.value, ConstValue::Int(_) | ConstValue::Float(_))
            }),
            _ => false,
        }
    }

    /// A constant integer, with an error when it is none.
    pub(super) fn need_const_int(
        &mut self,
        e: ExprId,
        subst: &Subst,
        code: Code,
        what: &str,
        help: &str,
    ) -> Lower<i128> {
        match self.const_int(e, subst) {
            Some(n) => Ok(n),
            None => {
                let span = self.program.ast[e].span;
                Err(self.error(code, span, format!("{what} is no constant"), help))
            }
        }
    }
}

/// `value as to`
fn convert(value: ConstValue, to: PrimType) -> Option<ConstValue> {
    let (min, max) = super::literal::range(to);
    Some(match value {
        ConstValue::Int(n) if to.is_float() => ConstValue::Float(n as f64),
        // The low bits, as a number of the type.
        ConstValue::Int(n) => ConstValue::Int((n - min).rem_euclid(max - min + 1) + min),
        ConstValue::Float(x) if to == PrimType::F32 => ConstValue::Float(f64::from(x as f32)),
        ConstValue::Float(x) if to.is_float() => ConstValue::Float(x),
        ConstValue::Float(x) => ConstValue::Int((x as i128).clamp(min, max)),
        ConstValue::Bool(_) | ConstValue::Str(_) | ConstValue::Joined(_) => return None,
    })
}

/// An operation on constants; integers are those of 64 bits.
fn binary(op: BinaryOp, a: ConstValue, b: ConstValue) -> Option<ConstValue> {
    use BinaryOp::*;
    use ConstValue::{Bool, Float, Int};
    Some(match (a, b) {
        (Int(a), Int(b)) => {
            let wrap = |n: i128| Int(i128::from(n as i64));
            match op {
                Add => wrap(a + b),
                Sub => wrap(a - b),
                Mul => wrap(a.wrapping_mul(b)),
                Div => wrap(a.checked_div(b)?),
                Rem => wrap(a.checked_rem(b)?),
                BitAnd => Int(a & b),
                BitOr => Int(a | b),
                BitXor => Int(a ^ b),
                Eq => Bool(a == b),
                Ne => Bool(a != b),
                Lt => Bool(a < b),
                Le => Bool(a <= b),
                Gt => Bool(a > b),
                Ge => Bool(a >= b),
                And | Or | In | Coalesce => return None,
            }
        }
        (Float(a), Float(b)) => match op {
            Add => Float(a + b),
            Sub => Float(a - b),
            Mul => Float(a * b),
            Div => Float(a / b),
            Rem => Float(a % b),
            Eq => Bool(a == b),
            Ne => Bool(a != b),
            Lt => Bool(a < b),
            Le => Bool(a <= b),
            Gt => Bool(a > b),
            Ge => Bool(a >= b),
            BitAnd | BitOr | BitXor | And | Or | In | Coalesce => return None,
        },
        (Bool(a), Bool(b)) => match op {
            And => Bool(a && b),
            Or => Bool(a || b),
            Eq => Bool(a == b),
            Ne => Bool(a != b),
            _ => return None,
        },
        _ => return None,
    })
}
