//! Instructions: every form of operation.

use super::args::Owner;
use super::value::Dotted;
use super::*;
use magpie_diag::closest;

impl Parser<'_> {
    /// `%x: T = operation`, or an operation alone.
    pub(super) fn instruction(&mut self, in_unsafe: bool) -> Parse<()> {
        let start = self.token.range.start;
        let result = if self.at(TokenKind::SsaName) { Some(self.result_def()?) } else { None };
        let op = self.operation(result.is_some())?;
        let range = self.range_from(start);
        self.ast.pools.instrs.push(Instr { range, result, in_unsafe, op });
        Ok(())
    }

    fn result_def(&mut self) -> Parse<ResultDef> {
        let name = self.symbol;
        self.advance();
        if self.at(TokenKind::Eq) {
            return Err(self.unexpected("`:` and a type", "write `%name: T = operation`"));
        }
        self.expect(TokenKind::Colon)?;
        let ty = self.type_use()?;
        self.expect(TokenKind::Eq)?;
        Ok(ResultDef { name, ty })
    }

    fn operation(&mut self, has_result: bool) -> Parse<Op> {
        let word = match self.token.kind {
            TokenKind::Word if self.at_const() => return Ok(Op::Const(self.constant()?)),
            TokenKind::Word | TokenKind::FnName => match self.dotted("an operation")? {
                Dotted::Function(callee) => return self.call(CallForm::Direct, callee),
                Dotted::Path(word) => word,
            },
            TokenKind::SsaName => {
                return Err(self.missing_with_help(
                    "an operation",
                    "use the value itself instead of giving it another name",
                ));
            }
            _ => {
                let help = "write an operation such as `i.add { lhs=%x, rhs=%y }`";
                return Err(match has_result {
                    true => self.missing_with_help("an operation", help),
                    false => self.unexpected("an instruction", help),
                });
            }
        };
        if let Some(op) = AstOp::from_symbol(word.symbol) {
            return self.regular(op, word.range);
        }
        match word.symbol {
            symbols::CALL => {
                let callee = self.fn_ref()?;
                self.call(CallForm::Call, callee)
            }
            symbols::CALL_VOID => {
                self.reject_result(word, has_result);
                let callee = self.fn_ref()?;
                self.call(CallForm::CallVoid, callee)
            }
            symbols::SUSPEND_CALL if self.at(TokenKind::SsaName) => {
                self.call_indirect(IndirectForm::Suspend, word)
            }
            symbols::SUSPEND_CALL => {
                let callee = self.fn_ref()?;
                self.call(CallForm::Suspend, callee)
            }
            symbols::CALL_INDIRECT => self.call_indirect(IndirectForm::Call, word),
            symbols::CALL_VOID_INDIRECT => {
                self.reject_result(word, has_result);
                self.call_indirect(IndirectForm::CallVoid, word)
            }
            symbols::TRY => self.try_op(),
            symbols::CALLABLE_CAPTURE => {
                let callee = self.fn_ref()?;
                let args = self.value_args(Owner { range: word.range }, false)?;
                Ok(Op::Capture { callee, args })
            }
            symbols::NEW => {
                let ty = self.type_use()?;
                let args = self.field_args(Owner { range: word.range })?;
                Ok(Op::New { ty, args })
            }
            symbols::PHI => self.phi(),
            _ => Err(self.unknown_operation(word, has_result)),
        }
    }

    fn regular(&mut self, op: AstOp, name: ByteRange) -> Parse<Op> {
        let type_args = self.op_type_args(op, name)?;
        let args = self.op_args(op, Owner { range: name })?;
        Ok(Op::Regular { op, name, type_args, args })
    }

    fn op_type_args(&mut self, op: AstOp, name: ByteRange) -> Parse<Slice<TypeArg>> {
        let start = self.ast.pools.type_args.len();
        let wanted = op.row().type_args;
        if !self.at(TokenKind::Lt) {
            if !matches!(wanted, TypeArgs::None | TypeArgs::OptionalOne) {
                self.report_type_args(op, name);
            }
            return Ok(Slice::EMPTY);
        }
        if wanted == TypeArgs::None {
            self.report_type_args(op, self.token.range);
            // Read them as types, so that what follows is not misread.
            self.type_use_list()?;
            return Ok(Slice::EMPTY);
        }
        self.advance();
        match wanted {
            TypeArgs::None => {}
            TypeArgs::One | TypeArgs::OptionalOne => self.type_arg()?,
            TypeArgs::Two => {
                self.type_arg()?;
                self.expect(TokenKind::Comma)?;
                self.type_arg()?;
            }
            TypeArgs::LengthAndType => {
                self.length_arg()?;
                self.expect(TokenKind::Comma)?;
                self.type_arg()?;
            }
            TypeArgs::Variant => self.variant_arg()?,
            TypeArgs::VariantOrIndex => self.variant_or_index_arg()?,
        }
        if self.at(TokenKind::Comma) {
            self.report_type_args(op, self.token.range);
            return Err(Reported);
        }
        self.expect(TokenKind::Gt)?;
        Ok(Slice::new(start, self.ast.pools.type_args.len()))
    }

    fn type_arg(&mut self) -> Parse<()> {
        let ty = self.type_use()?;
        self.ast.pools.type_args.push(TypeArg::Type(ty));
        Ok(())
    }

    /// A number, or the name of a global constant with or without `@`.
    fn length_arg(&mut self) -> Parse<()> {
        const WHAT: &str = "a length: a number or the name of a global constant";
        let arg = match self.token.kind {
            TokenKind::Word => match self.dotted(WHAT)? {
                Dotted::Function(id) => TypeArg::Global(id),
                Dotted::Path(name) => {
                    let fn_ref = FnRef { path: None, name: name.symbol, range: name.range };
                    TypeArg::Global(self.ast.pools.add_fn_ref(fn_ref))
                }
            },
            TokenKind::FnName => TypeArg::Global(self.fn_ref()?),
            _ => TypeArg::Int(self.unsigned(WHAT, u64::MAX)?),
        };
        self.ast.pools.type_args.push(arg);
        Ok(())
    }

    fn variant_arg(&mut self) -> Parse<()> {
        let name = self.expect_plain_word("the name of a variant")?;
        self.ast.pools.type_args.push(TypeArg::Variant(name));
        Ok(())
    }

    fn variant_or_index_arg(&mut self) -> Parse<()> {
        let name = Name { symbol: self.symbol, range: self.token.range };
        let ty = self.type_use()?;
        if self.eat(TokenKind::Comma) {
            let index = self.unsigned("the number of a variant", u32::MAX.into())?;
            self.ast.pools.type_args.extend([TypeArg::Type(ty), TypeArg::Int(index)]);
            return Ok(());
        }
        if ty.range != name.range || name.range.of(self.text).contains('.') {
            let error = self
                .syntax_error(ty.range, "expected the name of a variant, found a type")
                .with_help("write `enum.new<Variant>` or `enum.new<Type, N>`");
            return Err(self.report(error));
        }
        self.ast.pools.type_args.push(TypeArg::Variant(name));
        Ok(())
    }

    fn report_type_args(&mut self, op: AstOp, range: ByteRange) {
        let name = op.name();
        let form = match op.row().type_args {
            TypeArgs::None => format!("`{name}` without `<` and `>`"),
            TypeArgs::One => format!("`{name}<T>` with one type"),
            TypeArgs::OptionalOne => format!("`{name}<T>` or `{name}`"),
            TypeArgs::Two => format!("`{name}<A, B>` with two types"),
            TypeArgs::LengthAndType => format!("`{name}<N, T>` with a length and a type"),
            TypeArgs::Variant => format!("`{name}<Variant>` with the name of a variant"),
            TypeArgs::VariantOrIndex => format!("`{name}<Variant>` or `{name}<Type, N>`"),
        };
        let error = self
            .syntax_error(range, format!("wrong type arguments of `{name}`"))
            .with_help(format!("write {form}"));
        self.report(error);
    }

    /// The type arguments and arguments of a call by name.
    fn call(&mut self, form: CallForm, callee: FnRefId) -> Parse<Op> {
        let (type_args, args) = self.call_rest(callee)?;
        Ok(Op::Call { form, callee, type_args, args })
    }

    fn call_rest(&mut self, callee: FnRefId) -> Parse<(Slice<TypeUse>, Slice<Arg>)> {
        let type_args = self.type_use_list()?;
        let args = self.call_args(Owner { range: self.ast[callee].range })?;
        Ok((type_args, args))
    }

    /// `<T, …>`, `<>` or nothing.
    fn type_use_list(&mut self) -> Parse<Slice<TypeUse>> {
        let start = self.ast.pools.type_uses.len();
        if self.eat(TokenKind::Lt) {
            let starts_item = |p: &Self| p.at(TokenKind::Word);
            self.comma_list(TokenKind::Gt, starts_item, |p| {
                let ty = p.type_use()?;
                p.ast.pools.type_uses.push(ty);
                Ok(())
            })?;
        }
        Ok(Slice::new(start, self.ast.pools.type_uses.len()))
    }

    fn call_indirect(&mut self, form: IndirectForm, word: Name) -> Parse<Op> {
        let callee = self.value()?;
        let args = self.value_args(Owner { range: word.range }, true)?;
        Ok(Op::CallIndirect { form, callee, args })
    }

    fn reject_result(&mut self, word: Name, has_result: bool) {
        if has_result {
            let message = format!("`{}` has no result", self.name_of(word));
            let instead = match word.symbol {
                symbols::CALL_VOID => "call",
                _ => "call.indirect",
            };
            let help = format!("write `{instead}`, or remove the name before the `=`");
            let error = self.syntax_error(word.range, message).with_help(help);
            self.report(error);
        }
    }

    /// What follows `try`.
    fn try_op(&mut self) -> Parse<Op> {
        if !self.at(TokenKind::SsaName) {
            let callee = self.fn_ref()?;
            let (type_args, args) = self.call_rest(callee)?;
            return Ok(Op::TryCall { callee, type_args, args });
        }
        let value = self.symbol;
        self.advance();
        let target = self.target()?;
        Ok(Op::TryBranch { value, target })
    }

    /// What follows `phi`.
    fn phi(&mut self) -> Parse<Op> {
        let ty = match self.token.kind {
            TokenKind::LBrace | TokenKind::LBracket => None,
            _ => Some(self.type_use()?),
        };
        let start = self.ast.pools.phi_arms.len();
        let in_braces = self.eat(TokenKind::LBrace);
        loop {
            let arm = self.phi_arm()?;
            self.ast.pools.phi_arms.push(arm);
            let comma = self.eat(TokenKind::Comma);
            if !comma && !self.at(TokenKind::LBracket) {
                break;
            }
        }
        if in_braces {
            self.expect(TokenKind::RBrace)?;
        }
        Ok(Op::Phi { ty, arms: Slice::new(start, self.ast.pools.phi_arms.len()) })
    }

    fn phi_arm(&mut self) -> Parse<PhiArm> {
        let start = self.token.range.start;
        if !self.at(TokenKind::LBracket) {
            return Err(self.missing_with_help(
                "an arm of the phi",
                "write `[label: value]` for each block that leads here",
            ));
        }
        self.advance();
        let target = self.target()?;
        self.expect(TokenKind::Colon)?;
        let value = self.value()?;
        let projection = match value {
            Value::Ssa(_) if self.eat(TokenKind::Dot) => Some(self.projection()?),
            Value::Ssa(_) | Value::Const(_) => None,
        };
        self.expect(TokenKind::RBracket)?;
        let label = Name { symbol: target.label, range: target.range };
        Ok(PhiArm { range: self.range_from(start), label, value, projection })
    }

    fn projection(&mut self) -> Parse<Projection> {
        let projection = match self.symbol {
            symbols::OK_PROJECTION => Projection::Ok,
            symbols::ERR_PROJECTION => Projection::Err,
            _ => return Err(self.missing_with_help("`ok` or `err`", "write `%r.ok` or `%r.err`")),
        };
        self.expect(TokenKind::Word)?;
        Ok(projection)
    }

    fn unknown_operation(&mut self, word: Name, has_result: bool) -> Reported {
        let text = self.name_of(word);
        if symbols::is_terminator(word.symbol) && has_result {
            let message = format!("`{text}` ends a block and has no result");
            let error = self.syntax_error(word.range, message);
            return self.report(error.with_help("remove the name before the `=`"));
        }
        let operations = AstOp::ALL.iter().map(|op| op.name());
        let suggestion = closest(text, operations.chain(symbols::statement_words()));
        let error = self.syntax_error(word.range, format!("unknown operation `{text}`"));
        let error = match suggestion {
            Some(name) => {
                error.with_help(format!("did you mean `{name}`?")).with_fix(magpie_diag::Fix {
                    title: format!("replace it by `{name}`"),
                    span: self.span(word.range),
                    replacement: name.to_string(),
                })
            }
            None if self.at(TokenKind::LBrace) => {
                error.with_help(format!("to call a function write `call @{text} {{ … }}`"))
            }
            None => error.with_help("operations are dotted words such as `i.add`"),
        };
        self.report(error)
    }
}
