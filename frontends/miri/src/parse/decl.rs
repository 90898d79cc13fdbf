//! Files and declarations.

use super::{Failed, Parse, Parser};
use crate::ast::*;
use crate::lex::Tok;

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
        let mut private = false;
        while matches!(self.peek(), Tok::Public | Tok::Private | Tok::Protected) {
            private = self.peek() == Tok::Private;
            self.bump();
        }
        let name = match self.peek() {
            Tok::Use => {
                file.uses.push(self.use_decl()?);
                return Ok(());
            }
            Tok::Fn if self.peek2() != Tok::LParen => self.item_fn(file, false)?,
            Tok::Gpu if self.peek2() == Tok::Fn => {
                self.bump();
                self.item_fn(file, true)?
            }
            Tok::Struct => {
                file.structs.push(self.struct_decl()?);
                file.structs.last().map(|decl| decl.name)
            }
            Tok::Enum => {
                file.enums.push(self.enum_decl()?);
                file.enums.last().map(|decl| decl.name)
            }
            Tok::Trait => {
                file.traits.push(self.trait_decl()?);
                file.traits.last().map(|decl| decl.name)
            }
            Tok::Type => {
                self.bump();
                let name = self.ident("the name of the type")?;
                self.expect(Tok::Is, "write `type Name is Other`")?;
                file.aliases.push((name, self.ty()?));
                Some(name)
            }
            _ => {
                let id = self.statement()?;
                file.stmts.push(id);
                match &self.ast[id].kind {
                    StmtKind::Const(binder) => Some(binder.name),
                    _ => None,
                }
            }
        };
        file.private.extend(name.filter(|_| private).map(|name| name.span));
        Ok(())
    }

    fn item_fn(&mut self, file: &mut File, gpu: bool) -> Parse<Option<Ident>> {
        let id = self.function(gpu)?;
        file.fns.push(id);
        Ok(Some(self.ast[id].name))
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
        self.distinct(names.iter().copied());
        Ok(names)
    }

    pub(super) fn params(&mut self) -> Parse<Vec<Param>> {
        if self.peek() != Tok::LParen {
            let message = format!("expected `(`, found {}", self.peek().describe());
            return Err(self.error_here(message, "write the parameters: `(a int, b int)`"));
        }
        let params = self.in_brackets(Tok::RParen, |p| p.list_until(Tok::RParen, Self::param))?;
        self.distinct(params.iter().map(|p| p.name));
        Ok(params)
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
        let head = self.fn_head(gpu)?;
        let body = self.block()?;
        Ok(self.ast.add(FnDecl { body, ..head }))
    }

    /// A function up to its body.
    fn fn_head(&mut self, gpu: bool) -> Parse<FnDecl> {
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
        Ok(FnDecl { name, gpu, generics, params, result, body: Block::default(), head })
    }

    /// Makes a function a method of a type with type parameters: they become its own, and its first
    /// parameter is `self`.
    fn method(&mut self, mut f: FnDecl, owner: Ident, generics: &[Ident]) -> FnDeclId {
        let mut name = |kind| self.ast.add(TypeExpr { kind, span: owner.span });
        let args = generics.iter().map(|g| TypeArg::Type(name(TypeExprKind::Name(g.sym, vec![]))));
        let args = args.collect();
        let ty = name(TypeExprKind::Name(owner.sym, args));
        let this = Ident { sym: self.names.intern("self"), span: f.name.span };
        let param = Param { name: this, out: false, residency: None, ty, default: None };
        f.params.insert(0, param);
        f.generics.splice(0..0, generics.iter().copied());
        self.ast.add(f)
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
        let mut methods = Vec::new();
        self.block_of(&mut |p| {
            while matches!(p.peek(), Tok::Public | Tok::Private | Tok::Var | Tok::Let) {
                p.bump();
            }
            let span = p.here();
            if p.peek() == Tok::Fn {
                let mut f = p.fn_head(false)?;
                f.body = p.block()?;
                methods.push(p.method(f, name, &generics));
            } else {
                let name = p.ident("the name of a field")?;
                fields.push((name, p.ty()?));
            }
            Ok(p.ast.add(Stmt { kind: StmtKind::Error, span }))
        })?;
        let own: Vec<Ident> = methods.iter().map(|&id: &FnDeclId| self.ast[id].name).collect();
        self.distinct(fields.iter().map(|f: &(Ident, TypeExprId)| f.0).chain(own));
        Ok(StructDecl { name, generics, implements, fields, methods, head })
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
        self.distinct(variants.iter().map(|v: &(Ident, Vec<TypeExprId>)| v.0));
        Ok(EnumDecl { name, generics, variants })
    }

    fn trait_decl(&mut self) -> Parse<TraitDecl> {
        self.bump();
        let name = self.ident("the name of the trait")?;
        self.generics()?;
        let owner = Ident { sym: self.names.intern("Self"), span: name.span };
        let (mut required, mut provided) = (Vec::new(), Vec::new());
        self.block_of(&mut |p| {
            let span = p.here();
            while matches!(p.peek(), Tok::Public | Tok::Private) {
                p.bump();
            }
            if p.peek() != Tok::Fn {
                let message = format!("expected a function, found {}", p.peek().describe());
                return Err(p.error_here(message, "a trait holds functions: `fn name() int`"));
            }
            let mut f = p.fn_head(false)?;
            let has_body =
                p.peek() == Tok::Colon || p.peek() == Tok::Newline && p.token().column > p.column;
            if has_body {
                f.body = p.block()?;
            }
            let id = p.trait_method(f, owner);
            if has_body { &mut provided } else { &mut required }.push(id);
            Ok(p.ast.add(Stmt { kind: StmtKind::Error, span }))
        })?;
        Ok(TraitDecl { name, required, provided })
    }

    /// A method for any type `Self`.
    fn trait_method(&mut self, mut f: FnDecl, owner: Ident) -> FnDeclId {
        f.generics.insert(0, owner);
        self.method(f, owner, &[])
    }
}
