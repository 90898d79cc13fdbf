//! Declarations.

use super::*;

impl Parser<'_> {
    /// Every declaration up to the end of the file.
    pub(super) fn decls(&mut self) {
        // After an error, text that is no declaration is most likely a part of the broken one.
        let mut broken = !self.diagnostics.is_empty();
        while !self.at(TokenKind::Eof) {
            let errors = self.diagnostics.len();
            let behind = self.previous_end;
            let first_comment = self.lexer.comments.partition_point(|c| c.range.start < behind);
            let comments = Slice::new(first_comment, self.lexer.comments.len());
            let start = self.token.range.start;
            match self.decl() {
                Ok(Some(kind)) => {
                    let range = self.range_from(start);
                    self.ast.decls.push(Decl { range, comments, kind });
                }
                Ok(None) => {
                    if !broken {
                        self.unexpected(
                            "a declaration",
                            "declarations start with `fn`, `gpu fn`, `unsafe`, `async`, `heap`, `value`, `sig`, `global`, `impl` or `extern`",
                        );
                    }
                    self.advance();
                    self.skip_to_decl();
                }
                Err(Reported) => self.skip_to_decl(),
            }
            broken = self.diagnostics.len() > errors;
        }
    }

    /// One declaration; `None` when none starts here.
    fn decl(&mut self) -> Parse<Option<DeclKind>> {
        if !self.at(TokenKind::Word) {
            return Ok(None);
        }
        Ok(Some(match self.symbol {
            symbols::FN | symbols::ASYNC | symbols::UNSAFE | symbols::GPU => {
                DeclKind::Fn(self.fn_decl()?)
            }
            symbols::HEAP | symbols::VALUE => DeclKind::Type(self.type_decl()?),
            symbols::EXTERN => DeclKind::Extern(self.extern_decl()?),
            symbols::GLOBAL => DeclKind::Global(self.global_decl()?),
            symbols::IMPL => DeclKind::Impl(self.impl_decl()?),
            symbols::SIG => DeclKind::Sig(self.sig_decl()?),
            _ => return Ok(None),
        }))
    }

    /// A function; when its head cannot be read, its body is read all the same, for its errors.
    fn fn_decl(&mut self) -> Parse<FnDecl> {
        let start = self.token.range;
        match self.fn_head() {
            Ok(mut decl) => {
                let body = self.body(decl.head)?;
                decl.body = body.range;
                decl.blocks = body.blocks;
                decl.unsafe_groups = body.unsafe_groups;
                Ok(decl)
            }
            Err(Reported) => {
                self.skip_to_body();
                if self.at(TokenKind::LBrace) {
                    self.open_braces = 0;
                    self.body(start)?;
                }
                Err(Reported)
            }
        }
    }

    fn fn_head(&mut self) -> Parse<FnDecl> {
        let start = self.token.range.start;
        let is_async = self.eat_word(symbols::ASYNC);
        let is_unsafe = self.eat_word(symbols::UNSAFE);
        let is_gpu = self.eat_word(symbols::GPU);
        if is_async && (is_unsafe || is_gpu) {
            let error = self
                .syntax_error(
                    self.range_from(start),
                    "an `async` function is neither `unsafe` nor `gpu`",
                )
                .with_help("remove one of the words");
            return Err(self.report(error));
        }
        if !self.eat_word(symbols::FN) {
            return Err(self.missing("`fn`"));
        }
        let name = self.expect_name(TokenKind::FnName)?;
        let head = self.range_from(start);
        let type_params = self.type_params()?;
        let params = self.params()?;
        let result = self.result_type()?;
        let (gpu, meta) = self.clauses(is_gpu, head)?;
        Ok(FnDecl {
            head,
            name,
            is_async,
            is_unsafe,
            gpu,
            type_params,
            params,
            result,
            meta,
            body: ByteRange::default(),
            blocks: Slice::EMPTY,
            unsafe_groups: Slice::EMPTY,
        })
    }

    /// `(%a: T, …)`
    fn params(&mut self) -> Parse<Slice<Param>> {
        self.expect(TokenKind::LParen)?;
        let start = self.ast.pools.params.len();
        let starts_item = |p: &Self| p.at(TokenKind::SsaName);
        self.comma_list(TokenKind::RParen, starts_item, |p| {
            let name = p.expect_name(TokenKind::SsaName)?;
            p.expect(TokenKind::Colon)?;
            let ty = p.type_use()?;
            p.ast.pools.params.push(Param { name, ty });
            Ok(())
        })?;
        Ok(Slice::new(start, self.ast.pools.params.len()))
    }

    fn result_type(&mut self) -> Parse<TypeUse> {
        if !self.eat(TokenKind::Arrow) {
            return Err(self.missing_with_help(
                "`->` and the result type",
                "write `-> unit` for a function without a result",
            ));
        }
        self.type_use()
    }

    /// The clauses of a kernel and the `meta` block, in any order.
    fn clauses(
        &mut self,
        is_gpu: bool,
        head: ByteRange,
    ) -> Parse<(Option<GpuClauses>, Option<Meta>)> {
        let mut target = None;
        let mut workgroup = None;
        let mut requires = None;
        let mut meta = None;
        while self.at(TokenKind::Word) {
            let word = Name { symbol: self.symbol, range: self.token.range };
            let is_repeated = match word.symbol {
                symbols::META => meta.is_some(),
                symbols::TARGET => target.is_some(),
                symbols::WORKGROUP => workgroup.is_some(),
                symbols::REQUIRES => requires.is_some(),
                _ => break,
            };
            if is_repeated {
                self.report_repeated_word();
            }
            if word.symbol != symbols::META && !is_gpu {
                let message = format!("`{}` belongs to a `gpu fn`", self.name_of(word));
                let error = self.syntax_error(word.range, message);
                self.report(error.with_help("write `gpu fn`, or remove the clause"));
            }
            self.advance();
            match word.symbol {
                symbols::META => meta = Some(self.meta(word.range.start)?),
                symbols::TARGET => target = Some(self.target_clause(word.range.start)?),
                symbols::WORKGROUP => workgroup = Some(self.workgroup(word.range.start)?),
                _ => requires = Some(self.requires(word.range.start)?),
            }
        }
        if !is_gpu {
            return Ok((None, meta));
        }
        if target.is_none() && self.at(TokenKind::LBrace) {
            let error = self
                .syntax_error(head, "the kernel has no `target( )` clause")
                .with_help("write `target(spv)`, `target(msl)`, `target(ptx)`, `target(hip)` or `target(wgsl)` after the result type");
            self.report(error);
        }
        let empty = Name { symbol: symbols::EMPTY, range: head };
        let (target, target_clause) = target.unwrap_or((empty, head));
        Ok((Some(GpuClauses { target, target_clause, workgroup, requires }), meta))
    }

    /// Reports the current word as given a second time.
    fn report_repeated_word(&mut self) {
        let message = format!("{} is given twice", self.found());
        let error = self.syntax_error(self.token.range, message);
        self.report(error.with_help("remove one of the two"));
    }

    /// The word in `target( )` and the clause.
    fn target_clause(&mut self, start: u32) -> Parse<(Name, ByteRange)> {
        self.expect(TokenKind::LParen)?;
        let target = self.expect_plain_word("the name of a target")?;
        self.expect(TokenKind::RParen)?;
        Ok((target, self.range_from(start)))
    }

    fn workgroup(&mut self, start: u32) -> Parse<Workgroup> {
        self.expect(TokenKind::LParen)?;
        let mut size = [1; 3];
        for (i, size) in size.iter_mut().enumerate() {
            if i > 0 {
                self.expect(TokenKind::Comma)?;
            }
            *size = self.workgroup_dimension()?;
        }
        self.expect(TokenKind::RParen)?;
        Ok(Workgroup { size, range: self.range_from(start) })
    }

    /// A number; one that no workgroup could have is reported as such.
    fn workgroup_dimension(&mut self) -> Parse<u32> {
        let range = self.token.range;
        let text = range.of(self.text);
        match self.literal(None)? {
            Literal::Int { negative: false, magnitude } if magnitude <= u32::MAX.into() => {
                Ok(magnitude as u32)
            }
            _ => {
                let error = Diagnostic::new(
                    Code::MPG_CORE_1302,
                    self.span(range),
                    format!("`{text}` is not a number of invocations"),
                );
                self.report(error.with_help("write a number from 1 to 1024"));
                Ok(1)
            }
        }
    }

    fn requires(&mut self, start: u32) -> Parse<Requires> {
        self.expect(TokenKind::LParen)?;
        let first = self.ast.pools.names.len();
        if self.at(TokenKind::RParen) {
            return Err(self.missing_with_help(
                "the name of a capability",
                "name at least one capability, or remove the clause",
            ));
        }
        let starts_item = |p: &Self| p.at(TokenKind::Word);
        self.comma_list(TokenKind::RParen, starts_item, |p| {
            let name = p.path("the name of a capability")?;
            p.ast.pools.names.push(name);
            Ok(())
        })?;
        let capabilities = Slice::new(first, self.ast.pools.names.len());
        Ok(Requires { capabilities, range: self.range_from(start) })
    }

    /// What follows `meta`: up to three groups, in any order.
    fn meta(&mut self, start: u32) -> Parse<Meta> {
        self.expect(TokenKind::LBrace)?;
        let mut meta = Meta {
            range: ByteRange::default(),
            uses: Slice::EMPTY,
            effects: Slice::EMPTY,
            cost: Slice::EMPTY,
        };
        let mut seen = Vec::new();
        while !self.eat(TokenKind::RBrace) {
            let group = self.symbol;
            if !(self.at_word(symbols::USES)
                || self.at_word(symbols::EFFECTS)
                || self.at_word(symbols::COST))
            {
                return Err(self.missing("`uses`, `effects`, `cost` or `}`"));
            }
            if seen.contains(&group) {
                self.report_repeated_word();
            }
            seen.push(group);
            self.advance();
            self.expect(TokenKind::LBrace)?;
            match group {
                symbols::USES => meta.uses = self.meta_uses()?,
                symbols::EFFECTS => meta.effects = self.meta_effects()?,
                _ => meta.cost = self.meta_cost()?,
            }
        }
        meta.range = self.range_from(start);
        Ok(meta)
    }

    fn meta_uses(&mut self) -> Parse<Slice<MetaUse>> {
        let start = self.ast.pools.meta_uses.len();
        while !self.eat(TokenKind::RBrace) {
            let entry = match self.dotted("a name or `}`")? {
                super::value::Dotted::Function(id) => MetaUse::Function(id),
                super::value::Dotted::Path(path) => MetaUse::Path(path),
            };
            self.ast.pools.meta_uses.push(entry);
            self.eat(TokenKind::Comma);
        }
        Ok(Slice::new(start, self.ast.pools.meta_uses.len()))
    }

    fn meta_effects(&mut self) -> Parse<Slice<Name>> {
        let start = self.ast.pools.names.len();
        while !self.eat(TokenKind::RBrace) {
            let name = self.path("a name or `}`")?;
            self.ast.pools.names.push(name);
            self.eat(TokenKind::Comma);
        }
        Ok(Slice::new(start, self.ast.pools.names.len()))
    }

    fn meta_cost(&mut self) -> Parse<Slice<MetaCost>> {
        let start = self.ast.pools.meta_costs.len();
        while !self.eat(TokenKind::RBrace) {
            let key = self.path("a name or `}`")?;
            self.expect(TokenKind::Eq)?;
            let amount = self.literal(None)?;
            self.ast.pools.meta_costs.push(MetaCost { key, amount });
            self.eat(TokenKind::Comma);
        }
        Ok(Slice::new(start, self.ast.pools.meta_costs.len()))
    }

    fn type_decl(&mut self) -> Parse<TypeDecl> {
        let is_heap = self.symbol == symbols::HEAP;
        self.advance();
        let is_struct = self.at_word(symbols::STRUCT);
        if !is_struct && !self.at_word(symbols::ENUM) {
            return Err(self.missing("`struct` or `enum`"));
        }
        self.advance();
        let name = self.type_name("the name of a type such as `TPoint`")?;
        let type_params = self.type_params()?;
        let start = self.expect(TokenKind::LBrace)?.start;
        let level = self.open_braces;
        let kind = match is_struct {
            true => TypeDeclKind::Struct(self.struct_fields(level)),
            false => TypeDeclKind::Enum(self.variants(level)),
        };
        let body = self.close_members(start)?;
        Ok(TypeDecl { name, is_heap, type_params, body, kind })
    }

    /// The `}` after members, and the range from the `{` at `start`.
    fn close_members(&mut self, start: u32) -> Parse<ByteRange> {
        if !self.at(TokenKind::RBrace) {
            return Err(self.missing("`}`"));
        }
        self.advance();
        Ok(self.range_from(start))
    }

    fn struct_fields(&mut self, level: u32) -> Slice<Field> {
        let first = self.ast.pools.fields.len();
        self.members(symbols::FIELD, "`field name: T` or `}`", level, |p| {
            let field = p.field()?;
            p.ast.pools.fields.push(field);
            Ok(())
        });
        Slice::new(first, self.ast.pools.fields.len())
    }

    fn variants(&mut self, level: u32) -> Slice<Variant> {
        let first = self.ast.pools.variants.len();
        self.members(symbols::VARIANT, "`variant Name { … }` or `}`", level, |p| {
            let variant = p.variant()?;
            p.ast.pools.variants.push(variant);
            Ok(())
        });
        Slice::new(first, self.ast.pools.variants.len())
    }

    /// Members that start with `word`, up to the `}` that closes brace number `level`.
    fn members(
        &mut self,
        word: Symbol,
        what: &str,
        level: u32,
        mut member: impl FnMut(&mut Self) -> Parse<()>,
    ) {
        while !matches!(self.token.kind, TokenKind::RBrace | TokenKind::Eof) {
            let result = match self.at_word(word) {
                true => member(self),
                false if self.at_decl() => return,
                false => {
                    let error = self.unexpected(what, &format!("write {what} here"));
                    self.advance();
                    Err(error)
                }
            };
            if result.is_err() {
                self.skip_to_member(&[word], level);
            }
        }
    }

    fn field(&mut self) -> Parse<Field> {
        let start = self.token.range.start;
        self.advance();
        let name = self.expect_plain_word("the name of a field")?;
        self.expect(TokenKind::Colon)?;
        let ty = self.type_use()?;
        let range = self.range_from(start);
        self.eat(TokenKind::Comma);
        Ok(Field { range, name, ty })
    }

    fn variant(&mut self) -> Parse<Variant> {
        let start = self.token.range.start;
        self.advance();
        let name = self.expect_free_word("the name of a variant")?;
        self.expect(TokenKind::LBrace)?;
        let first = self.ast.pools.fields.len();
        while self.at_word(symbols::FIELD) {
            let field = self.field()?;
            self.ast.pools.fields.push(field);
        }
        let fields = Slice::new(first, self.ast.pools.fields.len());
        if !self.at(TokenKind::RBrace) {
            return Err(self.missing("`field name: T` or `}`"));
        }
        self.advance();
        let range = self.range_from(start);
        self.eat(TokenKind::Comma);
        Ok(Variant { range, name, fields })
    }

    fn global_decl(&mut self) -> Parse<GlobalDecl> {
        self.advance();
        let name = self.expect_name(TokenKind::FnName)?;
        self.expect(TokenKind::Colon)?;
        let ty = self.type_use()?;
        self.expect(TokenKind::Eq)?;
        if !self.at_const() {
            return Err(self.missing_with_help(
                "a constant",
                "the value of a global is written `const.T literal`",
            ));
        }
        let value = self.constant()?;
        Ok(GlobalDecl { name, ty, value })
    }

    fn sig_decl(&mut self) -> Parse<SigDecl> {
        self.advance();
        let name = self.type_name("the name of a signature such as `TUnary`")?;
        self.expect(TokenKind::LParen)?;
        let start = self.ast.pools.type_uses.len();
        let starts_item = |p: &Self| p.at(TokenKind::Word);
        self.comma_list(TokenKind::RParen, starts_item, |p| {
            let ty = p.type_use()?;
            p.ast.pools.type_uses.push(ty);
            Ok(())
        })?;
        let params = Slice::new(start, self.ast.pools.type_uses.len());
        let result = self.result_type()?;
        Ok(SigDecl { name, params, result })
    }

    fn impl_decl(&mut self) -> Parse<ImplDecl> {
        self.advance();
        let interface = match self.symbol {
            _ if !self.at(TokenKind::Word) => None,
            symbols::HASH => Some(Interface::Hash),
            symbols::EQ => Some(Interface::Eq),
            symbols::ORD => Some(Interface::Ord),
            _ => None,
        };
        let Some(interface) = interface else {
            return Err(self.missing("`hash`, `eq` or `ord`"));
        };
        self.advance();
        if !self.eat_word(symbols::FOR) {
            return Err(self.missing("`for`"));
        }
        let ty = self.type_use()?;
        self.expect(TokenKind::Eq)?;
        let function = self.fn_ref()?;
        Ok(ImplDecl { interface, ty, function })
    }

    fn extern_decl(&mut self) -> Parse<ExternDecl> {
        self.advance();
        let abi = self.string_contents()?;
        if !self.eat_word(symbols::MODULE) {
            return Err(self.missing("`module`"));
        }
        let module = self.expect_free_word("the name of the foreign module")?;
        let start = self.expect(TokenKind::LBrace)?.start;
        let level = self.open_braces;
        let first = self.ast.pools.extern_fns.len();
        self.members(symbols::FN, "`fn @name(…) -> T` or `}`", level, |p| {
            let function = p.extern_fn()?;
            p.ast.pools.extern_fns.push(function);
            Ok(())
        });
        let functions = Slice::new(first, self.ast.pools.extern_fns.len());
        let body = self.close_members(start)?;
        Ok(ExternDecl { abi, module, body, functions })
    }

    fn extern_fn(&mut self) -> Parse<ExternFn> {
        let start = self.token.range.start;
        self.advance();
        let name = self.expect_name(TokenKind::FnName)?;
        let params = self.params()?;
        let result = self.result_type()?;
        let attributes = match self.eat_word(symbols::ATTRS) {
            true => self.attributes()?,
            false => Slice::EMPTY,
        };
        Ok(ExternFn { range: self.range_from(start), name, params, result, attributes })
    }

    /// `{ key="value" … }`
    fn attributes(&mut self) -> Parse<Slice<Attribute>> {
        self.expect(TokenKind::LBrace)?;
        let start = self.ast.pools.attributes.len();
        while !self.eat(TokenKind::RBrace) {
            let key = self.expect_plain_word("an attribute such as `returns=\"owned\"`, or `}`")?;
            self.expect(TokenKind::Eq)?;
            let value = self.string_contents()?;
            self.ast.pools.attributes.push(Attribute { key, value });
            self.eat(TokenKind::Comma);
        }
        Ok(Slice::new(start, self.ast.pools.attributes.len()))
    }
}
