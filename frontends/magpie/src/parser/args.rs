//! Argument blocks `{ key=value, … }` and what operations demand of them.

use super::report::quote;
use super::value::Dotted;
use super::*;
use magpie_diag::closest;

/// What an instruction's messages about its arguments point at: the instruction's first line.
#[derive(Clone, Copy)]
pub(super) struct Owner {
    /// The range of the operation's name.
    pub(super) range: ByteRange,
}

impl Parser<'_> {
    /// Reads an argument block onto the argument stack and gives the height that the stack had.
    pub(super) fn arg_block(&mut self) -> Parse<usize> {
        self.expect(TokenKind::LBrace)?;
        let base = self.arg_stack.len();
        let starts_item = |p: &Self| p.at(TokenKind::Word) && p.byte_after_token() == Some(b'=');
        let result = self.comma_list(TokenKind::RBrace, starts_item, |p| {
            let arg = p.arg()?;
            p.arg_stack.push(arg);
            Ok(())
        });
        if result.is_err() {
            self.arg_stack.truncate(base);
        }
        result.map(|()| base)
    }

    fn arg(&mut self) -> Parse<Arg> {
        let key = self.expect_plain_word("an argument such as `key=value`")?;
        if self.at(TokenKind::Colon) {
            return Err(self.unexpected("`=`", "arguments are written `key=value`"));
        }
        self.expect(TokenKind::Eq)?;
        let start = self.token.range.start;
        let kind = match self.token.kind {
            TokenKind::LBracket => ArgKind::List(self.list()?),
            TokenKind::Word if !self.at_const() => match self.dotted("a value")? {
                Dotted::Function(id) => ArgKind::Function(id),
                Dotted::Path(path) => ArgKind::Word(path.symbol),
            },
            _ => match self.list_item_kind()? {
                ListItemKind::Value(value) => ArgKind::Value(value),
                ListItemKind::Function(id) => ArgKind::Function(id),
            },
        };
        let value_range = self.range_from(start);
        Ok(Arg { key: key.symbol, key_start: key.range.start, kind, value_range })
    }

    fn list(&mut self) -> Parse<Slice<ListItem>> {
        self.advance();
        let start = self.ast.pools.list_items.len();
        let starts_item = |p: &Self| {
            p.at_value()
                || matches!(p.token.kind, TokenKind::FnName | TokenKind::Str | TokenKind::Number)
        };
        self.comma_list(TokenKind::RBracket, starts_item, |p| {
            let start = p.token.range.start;
            let kind = p.list_item_kind()?;
            let range = p.range_from(start);
            p.ast.pools.list_items.push(ListItem { kind, range });
            Ok(())
        })?;
        Ok(Slice::new(start, self.ast.pools.list_items.len()))
    }

    /// A value, a string or a function.
    fn list_item_kind(&mut self) -> Parse<ListItemKind> {
        match self.token.kind {
            TokenKind::Str => {
                let contents = self.string_contents()?;
                let constant = Const {
                    ty: self.ast.types.intern_path(symbols::STR),
                    literal: Literal::Str(contents.symbol),
                    literal_range: contents.range,
                };
                Ok(ListItemKind::Value(Value::Const(self.ast.pools.add_const(constant))))
            }
            TokenKind::FnName => Ok(ListItemKind::Function(self.fn_ref()?)),
            TokenKind::Word if !self.at_const() => match self.dotted("a value")? {
                Dotted::Function(id) => Ok(ListItemKind::Function(id)),
                Dotted::Path(path) => {
                    let message = format!("expected a value, found `{}`", self.name_of(path));
                    let error = self.syntax_error(path.range, message);
                    Err(self.report(error.with_help("value names start with `%`")))
                }
            },
            _ => Ok(ListItemKind::Value(self.value()?)),
        }
    }

    /// The argument block of a call: any keys; values, functions and lists given for them.
    pub(super) fn call_args(&mut self, owner: Owner) -> Parse<Slice<Arg>> {
        if !self.at(TokenKind::LBrace) {
            return Err(self.missing_with_help(
                "the arguments of the call",
                "write `{ name=value, … }`, or `{ }` when there are none",
            ));
        }
        let base = self.arg_block()?;
        // The names of parameters are a matter of the function, those of keys one of the grammar.
        self.reject_repeated_keys(base, Code::MPT2001);
        for i in base..self.arg_stack.len() {
            if let ArgKind::Word(_) = self.arg_stack[i].kind {
                self.check_shape(owner, ArgShape::Value, self.arg_stack[i]);
            }
        }
        Ok(self.take_args(base))
    }

    /// An argument block in which every argument is a value, except for `args=[…]` where
    /// `positional` allows that.
    pub(super) fn value_args(&mut self, owner: Owner, positional: bool) -> Parse<Slice<Arg>> {
        let base = self.required_arg_block()?;
        self.reject_repeated_keys(base, Code::MPP0002);
        self.checked_value_args(owner, positional, base)
    }

    /// An argument block that gives the fields of a struct or a variant. That each field is given
    /// once is a rule of types.
    pub(super) fn field_args(&mut self, owner: Owner) -> Parse<Slice<Arg>> {
        let base = self.required_arg_block()?;
        self.checked_value_args(owner, false, base)
    }

    fn required_arg_block(&mut self) -> Parse<usize> {
        if !self.at(TokenKind::LBrace) {
            return Err(self.missing_with_help(
                "an argument block",
                "write `{ name=value, … }`, or `{ }` when there are no arguments",
            ));
        }
        self.arg_block()
    }

    /// Takes the arguments above `base`, which are values.
    fn checked_value_args(
        &mut self,
        owner: Owner,
        positional: bool,
        base: usize,
    ) -> Parse<Slice<Arg>> {
        let is_positional = positional
            && matches!(
                self.arg_stack[base..],
                [Arg { key: symbols::ARGS, kind: ArgKind::List(_), .. }]
            );
        for i in base..self.arg_stack.len() {
            let shape = if is_positional { ArgShape::List } else { ArgShape::Value };
            self.check_shape(owner, shape, self.arg_stack[i]);
        }
        Ok(self.take_args(base))
    }

    /// The arguments of a regular operation, put in the order of its row.
    pub(super) fn op_args(&mut self, op: AstOp, owner: Owner) -> Parse<Slice<Arg>> {
        let has_block = self.at(TokenKind::LBrace);
        match op.row().keys {
            Keys::Fixed(keys) => {
                let base = if has_block { self.arg_block()? } else { self.arg_stack.len() };
                Ok(self.fixed_args(op, keys, owner, base))
            }
            Keys::Fields => self.field_args(owner),
            Keys::Unspecified if !has_block => Ok(Slice::EMPTY),
            Keys::Unspecified => {
                let base = self.arg_block()?;
                self.reject_repeated_keys(base, Code::MPP0002);
                Ok(self.take_args(base))
            }
            Keys::CapacityOrElements => {
                let base = if has_block { self.arg_block()? } else { self.arg_stack.len() };
                Ok(self.capacity_or_elements(op, owner, base))
            }
        }
    }

    /// Moves the arguments above `base` from the stack to the pool.
    fn take_args(&mut self, base: usize) -> Slice<Arg> {
        let start = self.ast.pools.args.len();
        self.ast.pools.args.extend(self.arg_stack.drain(base..));
        Slice::new(start, self.ast.pools.args.len())
    }

    /// Takes the arguments above `base`, one for each key. What is wrong with them is reported;
    /// the text was well formed, so that parsing goes on behind the block.
    fn fixed_args(
        &mut self,
        op: AstOp,
        keys: &'static [Key],
        owner: Owner,
        base: usize,
    ) -> Slice<Arg> {
        if self.is_in_order(keys, base) {
            return self.take_args(base);
        }
        let mut slots: [Option<Arg>; MAX_KEYS] = [None; MAX_KEYS];
        let mut named = None;
        let mut aliased = None;
        let mut wrong = false;
        for i in base..self.arg_stack.len() {
            let arg = self.arg_stack[i];
            let is_key = |key: &Key| key.name == arg.key || key.alias == Some(arg.key);
            let Some(slot) = keys.iter().position(is_key) else {
                if !wrong {
                    self.report_unknown_key(op, keys, owner, arg);
                }
                wrong = true;
                continue;
            };
            let key = &keys[slot];
            if slots[slot].is_some() {
                self.report_repeated_key(arg, Code::MPP0002);
                wrong = true;
            }
            if key.alias.is_some() {
                let spelling = if key.name == arg.key { &mut named } else { &mut aliased };
                *spelling = Some(arg);
            }
            wrong |= !self.check_shape(owner, key.shape, arg);
            slots[slot] = Some(Arg { key: key.name, ..arg });
        }
        self.arg_stack.truncate(base);
        if let (Some(named), Some(aliased), false) = (named, aliased, wrong) {
            self.report_mixed_keys(op, owner, named, aliased);
            wrong = true;
        }
        let missing = |(key, slot): (&Key, &Option<Arg>)| key.required && slot.is_none();
        if !wrong && keys.iter().zip(&slots).any(missing) {
            self.report_missing_keys(op, keys, owner, &slots);
        }
        let start = self.ast.pools.args.len();
        self.ast.pools.args.extend(slots.into_iter().flatten());
        Slice::new(start, self.ast.pools.args.len())
    }

    /// Whether the arguments above `base` are values only, one for each key, in the order of the
    /// keys and by their names: nearly always so.
    fn is_in_order(&self, keys: &[Key], base: usize) -> bool {
        let args = &self.arg_stack[base..];
        args.len() == keys.len()
            && args.iter().zip(keys).all(|(arg, key)| {
                arg.key == key.name
                    && key.shape == ArgShape::Value
                    && matches!(arg.kind, ArgKind::Value(_))
            })
    }

    /// `cap=N`, or `v0=A, v1=B, …` put in the order of the numbers.
    fn capacity_or_elements(&mut self, op: AstOp, owner: Owner, base: usize) -> Slice<Arg> {
        const CAPACITY: &[Key] =
            &[Key { name: symbols::CAP, alias: None, shape: ArgShape::Value, required: true }];
        let element = |p: &Self, arg: &Arg| element_number(p.interner.resolve(arg.key));
        let Some(first) = self.arg_stack.get(base) else {
            return self.fixed_args(op, CAPACITY, owner, base);
        };
        if element(self, first).is_none() {
            return self.fixed_args(op, CAPACITY, owner, base);
        }
        let in_order = (base..self.arg_stack.len())
            .all(|i| element(self, &self.arg_stack[i]) == Some((i - base) as u32));
        if !in_order {
            let mut args = self.arg_stack.split_off(base);
            args.sort_by_key(|arg| element(self, arg).unwrap_or(u32::MAX));
            let misfit =
                args.iter().enumerate().find(|&(i, arg)| element(self, arg) != Some(i as u32));
            if let Some((i, &misfit)) = misfit {
                let message = format!("`{}` is not the next element", self.name(misfit.key));
                let error = self
                    .syntax_error(owner.range, message)
                    .with_secondary(self.span(misfit.range()), format!("expected `v{i}`"))
                    .with_help("number the elements `v0`, `v1`, … without gaps");
                self.report(error);
            }
            self.arg_stack.extend(args);
        }
        for i in base..self.arg_stack.len() {
            self.check_shape(owner, ArgShape::Value, self.arg_stack[i]);
        }
        self.take_args(base)
    }

    /// Whether an argument has the shape; reports it otherwise.
    fn check_shape(&mut self, owner: Owner, shape: ArgShape, arg: Arg) -> bool {
        let (wanted, help) = match (shape, arg.kind) {
            (ArgShape::Value, ArgKind::Value(_))
            | (ArgShape::Word, ArgKind::Word(_))
            | (ArgShape::Function, ArgKind::Function(_)) => return true,
            (ArgShape::List, ArgKind::List(items)) => return self.check_list(owner, items),
            (ArgShape::Triple, ArgKind::List(items)) if items.len() == 3 => {
                return self.check_list(owner, items);
            }
            (ArgShape::Choice(words), ArgKind::Word(word)) if words.contains(&word) => {
                return true;
            }
            (ArgShape::Value, ArgKind::Function(_)) => {
                self.report_function_as_value(owner, arg.value_range);
                return false;
            }
            (ArgShape::Value, _) => ("a value", "write `%name` or `const.T literal`".to_string()),
            (ArgShape::Word, _) => {
                ("a name", "write a plain word, such as the name of a field".to_string())
            }
            (ArgShape::Function, _) => ("a function", "write `@name` or `path.@name`".to_string()),
            (ArgShape::Triple, _) => (
                "three values",
                "write `[x, y, z]`; unused dimensions are `const.u32 1`".to_string(),
            ),
            (ArgShape::List, _) => {
                ("a list", "write the values in brackets: `[%a, %b]`".to_string())
            }
            (ArgShape::Choice(words), _) => {
                let words: Vec<_> = words.iter().map(|w| format!("`{}`", self.name(*w))).collect();
                ("another word", format!("write {}", words.join(" or ")))
            }
        };
        let given = format!("not `{}`", quote(arg.value_range.of(self.text)));
        let error = self
            .syntax_error(owner.range, format!("`{}` takes {wanted}", self.name(arg.key)))
            .with_secondary(self.span(arg.value_range), given)
            .with_help(help);
        self.report(error);
        false
    }

    fn check_list(&mut self, owner: Owner, items: Slice<ListItem>) -> bool {
        let function = self.ast[items].iter().find_map(|item| match item.kind {
            ListItemKind::Function(_) => Some(item.range),
            ListItemKind::Value(_) => None,
        });
        if let Some(range) = function {
            self.report_function_as_value(owner, range);
        }
        function.is_none()
    }

    fn report_function_as_value(&mut self, owner: Owner, range: ByteRange) {
        let message = format!("`{}` is a function, not a value", range.of(self.text));
        let error = Diagnostic::new(Code::MPS0016, self.span(owner.range), message)
            .with_secondary(self.span(range), "a value is wanted here")
            .with_help("make a callable with `callable.capture` and give that");
        self.report(error);
    }

    fn name(&self, symbol: Symbol) -> &str {
        self.interner.resolve(symbol)
    }

    fn reject_repeated_keys(&mut self, base: usize, code: Code) {
        // Blocks are short; a long one is sorted once instead of compared pairwise.
        let args = &self.arg_stack[base..];
        let mut order: Vec<(Symbol, usize)> = Vec::new();
        let repeated = if args.len() <= 8 {
            (1..args.len()).find(|&i| args[..i].iter().any(|other| other.key == args[i].key))
        } else {
            order.extend(args.iter().enumerate().map(|(i, arg)| (arg.key, i)));
            order.sort_unstable();
            order.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).min()
        };
        if let Some(i) = repeated {
            self.report_repeated_key(self.arg_stack[base + i], code);
        }
    }

    fn report_repeated_key(&mut self, arg: Arg, code: Code) {
        let message = format!("`{}` is given twice", self.name(arg.key));
        let error = Diagnostic::new(code, self.span(arg.range()), message);
        self.report(error.with_help("remove one of the two"));
    }

    fn report_unknown_key(&mut self, op: AstOp, keys: &[Key], owner: Owner, arg: Arg) {
        let key = self.name(arg.key);
        let names = keys.iter().map(|key| self.name(key.name));
        let suggestion = closest(key, names).map(|name| format!("did you mean `{name}`? "));
        let help = format!("{}{}", suggestion.unwrap_or_default(), self.describe_keys(op, keys));
        let error = self
            .syntax_error(owner.range, format!("`{}` has no argument `{key}`", op.name()))
            .with_secondary(self.span(arg.range()), "unknown argument")
            .with_help(help);
        self.report(error);
    }

    fn report_missing_keys(
        &mut self,
        op: AstOp,
        keys: &[Key],
        owner: Owner,
        slots: &[Option<Arg>],
    ) {
        let missing: Vec<_> = keys
            .iter()
            .zip(slots)
            .filter(|(key, slot)| key.required && slot.is_none())
            .map(|(key, _)| format!("`{}`", self.name(key.name)))
            .collect();
        let message = format!("`{}` needs {}", op.name(), missing.join(", "));
        let help = self.describe_keys(op, keys);
        let error = self.syntax_error(owner.range, message).with_help(help);
        self.report(error);
    }

    fn report_mixed_keys(&mut self, op: AstOp, owner: Owner, named: Arg, aliased: Arg) {
        let message = format!(
            "`{}` mixes the spellings `{}` and `{}`",
            op.name(),
            self.name(named.key),
            self.name(aliased.key)
        );
        let error = self
            .syntax_error(owner.range, message)
            .with_secondary(self.span(aliased.range()), "the other spelling")
            .with_help("write `lhs` and `rhs`, or `a` and `b`");
        self.report(error);
    }

    fn describe_keys(&self, op: AstOp, keys: &[Key]) -> String {
        let Some((last, others)) = keys.split_last() else {
            return format!("`{}` takes no arguments", op.name());
        };
        let name = |key: &Key| {
            let optional = if key.required { "" } else { " (optional)" };
            format!("`{}`{optional}", self.name(key.name))
        };
        let others: Vec<_> = others.iter().map(name).collect();
        let last = name(last);
        match others.is_empty() {
            true => format!("`{}` takes {last}", op.name()),
            false => format!("`{}` takes {} and {last}", op.name(), others.join(", ")),
        }
    }
}

/// The number in `v0`, `v1`, …
fn element_number(key: &str) -> Option<u32> {
    let digits = key.strip_prefix('v')?;
    let is_canonical = digits == "0" || !digits.starts_with('0');
    (is_canonical && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}
