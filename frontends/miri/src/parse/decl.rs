//! Files and declarations.

use super::{Failed, Parse, Parser};
use crate::ast::*;
use crate::lex::Tok;
use magpie_diag::Code;

impl Parser<'_> {
    pub(super) fn file(&mut self) -> File {
        let mut file = File::default();
        while self.token().tok != Tok::Eof {
            self.line_begun = false;
            self.brackets = 0;
            if self.token().column > 0 {
                let help = "begin the lines of the file in the first column";
                self.error_here("this line is indented, but nothing opens a block", help);
                self.skip_statement();
                continue;
            }
            match self.item(&mut file) {
                Ok(()) if matches!(self.peek(), Tok::Newline | Tok::Eof) => {
                    self.line_begun = false;
                    self.check_deeper_line();
                }
                Ok(()) => {
                    let message =
                        format!("expected the end of the line, found {}", self.peek().describe());
                    self.error_here(message, "begin a new line");
                    self.skip_statement();
                }
                Err(Failed) => self.skip_statement(),
            }
        }
        file
    }

    fn item(&mut self, file: &mut File) -> Parse<()> {
        while matches!(self.peek(), Tok::Public | Tok::Private | Tok::Protected) {
            self.bump();
        }
        match self.peek() {
            Tok::Use => file.uses.push(self.use_decl()?),
            Tok::Fn if self.peek2() != Tok::LParen => file.fns.push(self.function(false)?),
            Tok::Gpu if self.peek2() == Tok::Fn => {
                self.bump();
                file.fns.push(self.function(true)?);
            }
            Tok::Struct => file.structs.push(self.struct_decl()?),
            Tok::Enum => file.enums.push(self.enum_decl()?),
            Tok::Trait => file.traits.push(self.trait_decl()?),
            Tok::Type => {
                self.bump();
                let name = self.ident("the name of the type")?;
                self.expect(Tok::Is, "write `type Name is Other`")?;
                file.aliases.push((name, self.ty()?));
            }
            _ => file.stmts.push(self.statement()?),
        }
        Ok(())
    }

    fn use_decl(&mut self) -> Parse<UseDecl> {
        let start = self.here();
        self.bump();
        let mut path = vec![self.member()?];
        let mut names = None;
        while self.eat(Tok::Dot) {
            match self.peek() {
                Tok::Star => {
                    self.bump();
                    break;
                }
                Tok::LBrace => {
                    names = Some(self.in_brackets(Tok::RBrace, |p| {
                        p.list_until(Tok::RBrace, |p| {
                            let name = p.member()?;
                            let own = if p.eat(Tok::As) { p.ident("a name")? } else { name };
                            Ok((name, own))
                        })
                    })?);
                    break;
                }
                _ => path.push(self.member()?),
            }
        }
        let alias = if self.eat(Tok::As) { Some(self.ident("a name")?) } else { None };
        Ok(UseDecl { path, names, alias, span: self.span_from(start) })
    }

    fn generics(&mut self) -> Parse<Vec<Ident>> {
        if self.peek() != Tok::Less {
            return Ok(Vec::new());
        }
        self.bump();
        let names = self.list_until(Tok::Greater, |p| p.ident("a type parameter"))?;
        self.expect(Tok::Greater, "close the type parameters with `>`")?;
        Ok(names)
    }

    pub(super) fn params(&mut self) -> Parse<Vec<Param>> {
        if self.peek() != Tok::LParen {
            let message = format!("expected `(`, found {}", self.peek().describe());
            return Err(self.error_here(message, "write the parameters: `(a int, b int)`"));
        }
        self.in_brackets(Tok::RParen, |p| p.list_until(Tok::RParen, Self::param))
    }

    fn param(&mut self) -> Parse<Param> {
        let name = self.ident("the name of a parameter")?;
        let is_word = |p: &Self, word: &str| {
            let next = p.raw(1).tok;
            p.peek() == Tok::Ident
                && p.text(p.token()) == word
                && matches!(
                    next,
                    Tok::Ident | Tok::LBracket | Tok::LBrace | Tok::LParen | Tok::Fn | Tok::Gpu
                )
        };
        let out = is_word(self, "out");
        if out {
            self.bump();
        }
        let residency = if self.eat(Tok::Gpu) {
            Some(Residency::Gpu)
        } else if is_word(self, "host") {
            self.bump();
            Some(Residency::Host)
        } else {
            None
        };
        let ty = self.ty()?;
        let default = if self.eat(Tok::Eq) { Some(self.expr()?) } else { None };
        Ok(Param { name, out, residency, ty, default })
    }

    fn function(&mut self, gpu: bool) -> Parse<FnDeclId> {
        let start = self.here();
        self.bump();
        // Words of the language are reported as names of kernels, not as syntax.
        let name = match gpu && self.peek().is_word() {
            true => self.member()?,
            false => self.ident("the name of the function")?,
        };
        let generics = self.generics()?;
        let params = self.params()?;
        let result = if self.starts_type() { Some(self.ty()?) } else { None };
        let head = self.span_from(start);
        let body = self.block()?;
        Ok(self.ast.add(FnDecl { name, gpu, generics, params, result, body, head }))
    }

    fn struct_decl(&mut self) -> Parse<StructDecl> {
        let start = self.here();
        self.bump();
        let name = self.ident("the name of the struct")?;
        let generics = self.generics()?;
        let mut implements = Vec::new();
        if self.eat(Tok::Implements) {
            implements.push(self.ident("the name of a trait")?);
            while self.eat(Tok::Comma) {
                implements.push(self.ident("the name of a trait")?);
            }
        }
        let head = self.span_from(start);
        let mut fields = Vec::new();
        self.block_of(&mut |p| {
            while matches!(p.peek(), Tok::Public | Tok::Private | Tok::Var | Tok::Let) {
                p.bump();
            }
            if p.peek() == Tok::Fn {
                let span = p.here();
                let help = "write a function that takes the struct";
                return Err(p.error(Code::MIR0103, span, "methods are not supported", help));
            }
            let span = p.here();
            let name = p.ident("the name of a field")?;
            fields.push((name, p.ty()?));
            Ok(p.ast.add(Stmt { kind: StmtKind::Error, span }))
        })?;
        Ok(StructDecl { name, generics, implements, fields, head })
    }

    fn enum_decl(&mut self) -> Parse<EnumDecl> {
        self.bump();
        let name = self.ident("the name of the enum")?;
        let generics = self.generics()?;
        let mut variants = Vec::new();
        self.block_of(&mut |p| {
            let span = p.here();
            loop {
                let name = p.ident("the name of a variant")?;
                let fields = match p.peek() == Tok::LParen {
                    true => p.in_brackets(Tok::RParen, |p| p.list_until(Tok::RParen, Self::ty))?,
                    false => Vec::new(),
                };
                variants.push((name, fields));
                if !p.eat(Tok::Comma) || p.peek() == Tok::Newline {
                    break;
                }
            }
            Ok(p.ast.add(Stmt { kind: StmtKind::Error, span }))
        })?;
        Ok(EnumDecl { name, generics, variants })
    }

    /// A trait with the heads of its functions. Nothing calls through traits.
    fn trait_decl(&mut self) -> Parse<Ident> {
        self.bump();
        let name = self.ident("the name of the trait")?;
        self.generics()?;
        self.block_of(&mut |p| {
            let span = p.here();
            while matches!(p.peek(), Tok::Public | Tok::Private) {
                p.bump();
            }
            p.expect(Tok::Fn, "a trait holds functions: `fn name() int`")?;
            p.ident("the name of the function")?;
            p.params()?;
            if p.starts_type() {
                p.ty()?;
            }
            if matches!(p.peek(), Tok::Colon)
                || p.peek() == Tok::Newline && p.token().column > p.column
            {
                let span = p.here();
                let message = "functions with a body in a trait are not supported";
                let help = "write a plain function";
                return Err(p.error(Code::MIR0103, span, message, help));
            }
            Ok(p.ast.add(Stmt { kind: StmtKind::Error, span }))
        })?;
        Ok(name)
    }
}
