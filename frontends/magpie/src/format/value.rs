//! Names, types, constants and literals.

use super::*;
use crate::literal::encode_string;
use crate::symbols;

impl Printer<'_> {
    pub(super) fn ssa(&mut self, symbol: Symbol) {
        self.out.push('%');
        self.out.push_str(self.name(symbol));
    }

    pub(super) fn fn_ref(&mut self, id: FnRefId) {
        let FnRef { path, name, .. } = self.ast[id];
        if let Some(path) = path {
            self.out.push_str(self.name(path));
            self.out.push('.');
        }
        self.out.push('@');
        self.out.push_str(self.name(name));
    }

    pub(super) fn ty(&mut self, id: TypeExprId) {
        let ast = self.ast;
        let ty = &ast[id];
        self.out.push_str(match ty.modifier {
            Modifier::None => "",
            Modifier::Shared => "shared ",
            Modifier::Borrow => "borrow ",
            Modifier::MutBorrow => "mutborrow ",
            Modifier::Weak => "weak ",
        });
        self.out.push_str(self.name(ty.path));
        if !ty.args.is_empty() {
            self.out.push('<');
            self.separated(ast.types.args(ty), ", ", |p, arg| p.ty(arg));
            self.out.push('>');
        }
    }

    pub(super) fn value(&mut self, value: Value) {
        match value {
            Value::Ssa(symbol) => self.ssa(symbol),
            Value::Const(id) => self.constant(id),
        }
    }

    pub(super) fn constant(&mut self, id: ConstId) {
        let constant = self.ast[id];
        self.out.push_str("const.");
        self.ty(constant.ty);
        self.out.push(' ');
        self.literal(constant.literal, self.float_format(constant.ty));
    }

    fn float_format(&self, id: TypeExprId) -> Option<FloatFormat> {
        let ty = &self.ast[id];
        match ty.path {
            _ if ty.modifier != Modifier::None || !ty.args.is_empty() => None,
            symbols::F16 => Some(FloatFormat::F16),
            symbols::F32 => Some(FloatFormat::F32),
            symbols::F64 => Some(FloatFormat::F64),
            symbols::BF16 => Some(FloatFormat::Bf16),
            _ => None,
        }
    }

    /// A literal in the shortest form that denotes the same value of the type. What is no value
    /// of its type, which a later stage reports, stays as written.
    pub(super) fn literal(&mut self, literal: Literal, format: Option<FloatFormat>) {
        match literal {
            Literal::Int { negative, magnitude } => {
                let sign = if negative && (magnitude != 0 || format.is_some()) { "-" } else { "" };
                let digits = format!("{sign}{magnitude}");
                let float = format.and_then(|format| format.shortest(format.parse(&digits)?));
                self.out.push_str(float.as_deref().unwrap_or(&digits));
            }
            Literal::Float { digits, suffix } => {
                let digits = self.name(digits);
                let format = format.filter(|&format| suffix.is_none_or(|s| s == format));
                let float = format.and_then(|format| format.shortest(format.parse(digits)?));
                match float {
                    Some(float) => self.out.push_str(&float),
                    None => {
                        self.out.push_str(digits);
                        self.out.push_str(suffix.map_or("", FloatFormat::name));
                    }
                }
            }
            Literal::Str(contents) => {
                let contents = self.name(contents);
                encode_string(contents, &mut self.out);
            }
            Literal::Bool(true) => self.out.push_str("true"),
            Literal::Bool(false) => self.out.push_str("false"),
            Literal::Unit => self.out.push_str("unit"),
        }
    }
}
