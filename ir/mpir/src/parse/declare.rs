//! The first pass: names of types, signatures and functions, so that the second may meet them
//! before their definition.

use super::lexer::{Kind, Lexer, Token};
use super::{MAX_ERRORS, Parser, lexer};
use crate::FnId;
use magpie_types::{Category, fixed};
use std::borrow::Cow;

impl<'a> Parser<'a> {
    /// Declares what the text defines outside braces and parentheses. Leaves the position alone.
    pub(super) fn declare(&mut self) {
        self.declare_builtin_types();
        let mut lexer = Lexer::new(self.text);
        let mut category = Category::Value;
        let mut depth = 0u32;
        let mut functions = 0;
        loop {
            let tok = lexer.next();
            match tok.kind {
                Kind::End => return,
                Kind::Punct(b'{' | b'(') => depth += 1,
                Kind::Punct(b'}' | b')') => depth = depth.saturating_sub(1),
                Kind::Word if depth == 0 && self.errors.len() < MAX_ERRORS => {
                    match self.slice(tok) {
                        "value" => category = Category::Value,
                        "heap" => category = Category::Heap,
                        word @ ("struct" | "enum") => {
                            let is_struct = word == "struct";
                            self.declare_type(&mut lexer, category, is_struct);
                        }
                        "sig" => self.declare_sig(&mut lexer),
                        "fn" => {
                            self.declare_fn(&mut lexer, FnId::new(functions));
                            functions += 1;
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }

    fn declare_builtin_types(&mut self) {
        let types = &self.m.types;
        let structs = types.structs().map(|(_, d)| (d.name.clone(), d.ty));
        let enums = types.enums().map(|(_, d)| (d.name.clone(), d.ty));
        self.types_by_name = structs.chain(enums).map(|(n, ty)| (Cow::Owned(n), ty)).collect();
    }

    /// The name that follows; the second pass reports one that is missing or malformed.
    fn declared_name(&mut self, lexer: &mut Lexer<'a>) -> Option<(Token, Cow<'a, str>)> {
        let mut ahead = *lexer;
        let tok = ahead.next();
        let name = match tok.kind {
            Kind::Word => Cow::Borrowed(self.slice(tok)),
            Kind::Str => Cow::Owned(lexer::unescape(self.slice(tok)).ok()?),
            _ => return None,
        };
        *lexer = ahead;
        Some((tok, name))
    }

    fn declare_type(&mut self, lexer: &mut Lexer<'a>, category: Category, is_struct: bool) {
        let Some((tok, name)) = self.declared_name(lexer) else { return };
        if self.types_by_name.contains_key(&name) {
            self.error(tok, format!("type `{name}` is defined twice"));
            return;
        }
        let ty = match is_struct {
            true => self.m.types.declare_struct(name.clone(), category),
            false => self.m.types.declare_enum(name.clone(), category),
        };
        self.types_by_name.insert(name, ty);
    }

    fn declare_sig(&mut self, lexer: &mut Lexer<'a>) {
        let Some((tok, name)) = self.declared_name(lexer) else { return };
        if self.sigs_by_name.contains_key(&name) {
            self.error(tok, format!("signature `{name}` is defined twice"));
            return;
        }
        let id = self.m.types.define_sig(name.clone(), Vec::new(), fixed::UNIT);
        self.sigs_by_name.insert(name, id);
    }

    fn declare_fn(&mut self, lexer: &mut Lexer<'a>, id: FnId) {
        let Some((tok, name)) = self.declared_name(lexer) else { return };
        if self.fns_by_name.insert(name.clone(), id).is_some() {
            self.error(tok, format!("function `{name}` is defined twice"));
        }
    }
}
