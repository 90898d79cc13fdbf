//! Heads of functions, blocks and terminators.

use super::lexer::{Kind, Token};
use super::{MAX_ERRORS, Parsed, Parser, constant};
use crate::parse::inst::{Operand, PendingInst};
use crate::{Domain, MpirFn, MpirGpuMeta};
use magpie_diag::Span;
use magpie_types::kernel::GpuBackend;
use magpie_types::{Sid, SidKind, TypeId, fixed};
use rustc_hash::FxHashMap;

/// A value name of a function: an index into [`Body::values`].
#[derive(Clone, Copy)]
pub(super) struct NameId(pub(super) u32);

/// A label of a function: an index into [`Body::labels`].
#[derive(Clone, Copy)]
pub(super) struct LabelId(pub(super) u32);

/// Where a name was first met and where it was defined.
#[derive(Clone, Copy)]
pub(super) struct NameUse {
    pub(super) first: Token,
    pub(super) defined: bool,
}

/// A terminator whose names are not resolved.
pub(super) enum PendingTerm {
    Ret(Option<Operand>),
    Br(LabelId),
    Cbr(Operand, LabelId, LabelId),
    Switch(Operand, Vec<(Token, LabelId)>, LabelId),
    Unreachable,
}

/// A block whose names are not resolved.
pub(super) struct PendingBlock {
    pub(super) label: LabelId,
    /// The instructions: a range of [`Body::insts`].
    pub(super) insts: std::ops::Range<usize>,
    pub(super) term: PendingTerm,
    pub(super) term_span: Span,
}

/// The body of a function as it was written: names may stand before their definition.
#[derive(Default)]
pub(super) struct Body<'a> {
    pub(super) blocks: Vec<PendingBlock>,
    pub(super) insts: Vec<PendingInst>,
    /// The operands of all instructions, one behind the other.
    pub(super) operands: Vec<Operand>,
    /// The labels of all phi arms, one behind the other.
    pub(super) arm_labels: Vec<LabelId>,
    pub(super) params: Vec<NameId>,
    pub(super) values: Vec<NameUse>,
    pub(super) labels: Vec<NameUse>,
    value_ids: FxHashMap<&'a str, NameId>,
    label_ids: FxHashMap<&'a str, LabelId>,
}

impl<'a> Body<'a> {
    pub(super) fn value(&mut self, name: &'a str, tok: Token) -> NameId {
        *self.value_ids.entry(name).or_insert_with(|| {
            self.values.push(NameUse { first: tok, defined: false });
            NameId(self.values.len() as u32 - 1)
        })
    }

    fn label(&mut self, name: &'a str, tok: Token) -> LabelId {
        *self.label_ids.entry(name).or_insert_with(|| {
            self.labels.push(NameUse { first: tok, defined: false });
            LabelId(self.labels.len() as u32 - 1)
        })
    }
}

impl<'a> Parser<'a> {
    pub(super) fn function(&mut self) -> Parsed<()> {
        let start = self.tok;
        let is_async = self.eat_word("async");
        let is_unsafe = self.eat_word("unsafe");
        let kernel = self.is_word("gpu");
        let domain = match self.slice(self.tok) {
            "gpu" | "device" => Domain::Device,
            "lowhost" => Domain::LowHost,
            _ => Domain::Host,
        };
        if is_unsafe && !kernel {
            return Err(self.expected("`gpu fn` after `unsafe`"));
        }
        if kernel || self.is_word("device") || self.is_word("lowhost") {
            self.bump();
        }
        self.expect_word("fn")?;
        let name = self.name("the name of the function")?.into_owned();
        let sid = Sid::new(SidKind::Function, &name);
        let mut f = MpirFn::new(sid, name, fixed::UNIT, domain);
        f.is_async = is_async;
        let mut body = Body::default();
        self.params(&mut f, &mut body)?;
        f.ret_ty = self.result_type()?;
        if kernel {
            f.gpu_meta = Some(MpirGpuMeta {
                target: GpuBackend::Spv,
                workgroup: [64, 1, 1],
                is_unsafe,
                requires: Vec::new(),
                spans: Default::default(),
            });
        }
        self.clauses(&mut f, start)?;
        self.expect(b'{')?;
        self.body(&mut body)?;
        self.resolve(&mut f, &body);
        self.m.add_fn(f);
        Ok(())
    }

    fn params(&mut self, f: &mut MpirFn, body: &mut Body<'a>) -> Parsed<()> {
        self.expect(b'(')?;
        while !self.eat(b')') {
            if !f.params.is_empty() {
                self.expect(b',')?;
            }
            let start = self.tok;
            if start.kind != Kind::Value {
                return Err(self.expected("a parameter, or `)`"));
            }
            self.bump();
            let id = self.define_value(body, start);
            body.params.push(id);
            let written = &self.slice(start)[1..];
            let name = match self.is_punct(b':') {
                true if written.bytes().all(|b| b.is_ascii_digit()) => String::new(),
                true => written.to_string(),
                false => self.name("the name of the parameter, or `:`")?.into_owned(),
            };
            self.expect(b':')?;
            let ty = self.ty()?;
            let mark = self.place()?;
            let span = self.stored_place(start, mark);
            f.add_param(name, ty, span);
        }
        Ok(())
    }

    /// What stands between the result type and the body, in any order.
    fn clauses(&mut self, f: &mut MpirFn, start: Token) -> Parsed<()> {
        f.span = self.stored_place(start, Span::NONE);
        if let (Some(meta), true) = (&mut f.gpu_meta, self.own_places) {
            meta.spans.head = f.span;
        }
        loop {
            if self.tok.kind == Kind::Place {
                let mark = self.place()?;
                if !self.own_places {
                    f.span = mark;
                }
                continue;
            }
            if self.tok.kind != Kind::Word {
                return Ok(());
            }
            let at = self.tok;
            let word = self.slice(at);
            self.bump();
            if word == "sid" {
                self.expect(b'(')?;
                let text_at = self.tok;
                let text = self.string()?;
                let Some(sid) = Sid::parse(&text) else {
                    return Err(self.error(text_at, format!("`{text}` is no stable id")));
                };
                f.sid = sid;
                self.expect(b')')?;
                continue;
            }
            let Some(meta) = &mut f.gpu_meta else {
                return Err(
                    self.error(at, format!("`{word}` does not belong to this function head"))
                );
            };
            match word {
                "head" => {}
                "target" => {
                    self.expect(b'(')?;
                    let name_at = self.tok;
                    let name = self.name("the name of a target")?;
                    let Some(target) = GpuBackend::from_name(&name) else {
                        let names = GpuBackend::ALL.map(GpuBackend::name).join(" ");
                        let message = format!("target `{name}` is none of {names}");
                        return Err(self.error(name_at, message));
                    };
                    meta.target = target;
                    self.expect(b')')?;
                }
                "workgroup" => {
                    for (n, size) in meta.workgroup.iter_mut().enumerate() {
                        self.expect(if n == 0 { b'(' } else { b',' })?;
                        *size = self.number_u32("a workgroup size")?;
                    }
                    self.expect(b')')?;
                }
                "requires" => {
                    self.expect(b'(')?;
                    while !self.eat(b')') {
                        if !meta.requires.is_empty() {
                            self.expect(b',')?;
                        }
                        meta.requires.push(self.name("a capability, or `)`")?.into_owned());
                    }
                }
                _ => {
                    let message = format!(
                        "`{word}` is none of `head`, `target`, `workgroup`, `requires`, `sid`"
                    );
                    return Err(self.error(at, message));
                }
            }
            let mark = self.place()?;
            let span = self.stored_place(at, mark);
            match word {
                "head" if self.own_places => {}
                "head" => meta.spans.head = span,
                "target" => meta.spans.target = span,
                "workgroup" => meta.spans.workgroup = span,
                _ => meta.spans.requires = span,
            }
        }
    }

    /// Blocks up to the closing brace. After an error it goes on at the next line.
    fn body(&mut self, body: &mut Body<'a>) -> Parsed<()> {
        while !self.eat(b'}') {
            if self.tok.kind == Kind::End {
                return Err(self.expected("`}` at the end of the function"));
            }
            if self.errors.len() >= MAX_ERRORS {
                return Ok(());
            }
            if self.block(body).is_err() {
                self.skip_line();
            }
        }
        Ok(())
    }

    fn skip_line(&mut self) {
        while self.tok.kind != Kind::End && !self.tok.first_in_line {
            self.bump();
        }
    }

    fn block(&mut self, body: &mut Body<'a>) -> Parsed<()> {
        let at = self.tok;
        if at.kind != Kind::Word {
            return Err(self.expected_at_start("a label or `}`"));
        }
        let label = self.label(body, "a label")?;
        if std::mem::replace(&mut body.labels[label.0 as usize].defined, true) {
            let name = self.slice(at);
            self.error(at, format!("label `{name}` is used twice"));
        }
        self.expect(b':')?;
        let first = body.insts.len();
        loop {
            if self.errors.len() >= MAX_ERRORS {
                return Ok(());
            }
            let line = self.tok;
            if self.tok.kind == Kind::End || self.is_punct(b'}') || self.at_label() {
                let name = self.slice(at);
                self.error(at, format!("block `{name}` has no terminator"));
                return Ok(());
            }
            match self.terminator(body) {
                Ok(None) => {
                    if self.inst(body).is_err() {
                        self.skip_line();
                    }
                }
                Ok(Some(term)) => {
                    let mark = self.place()?;
                    let term_span = self.stored_place(line, mark);
                    let insts = first..body.insts.len();
                    body.blocks.push(PendingBlock { label, insts, term, term_span });
                    return self.end_of_line();
                }
                Err(refused) => return Err(refused),
            }
        }
    }

    fn at_label(&self) -> bool {
        self.tok.kind == Kind::Word && self.peek().kind == Kind::Punct(b':')
    }

    pub(super) fn end_of_line(&mut self) -> Parsed<()> {
        if self.tok.first_in_line || self.tok.kind == Kind::End || self.is_punct(b'}') {
            return Ok(());
        }
        Err(self.expected("the end of the line"))
    }

    pub(super) fn label(&mut self, body: &mut Body<'a>, what: &str) -> Parsed<LabelId> {
        if self.tok.kind != Kind::Word {
            return Err(self.expected(what));
        }
        let tok = self.bump();
        Ok(body.label(self.slice(tok), tok))
    }

    pub(super) fn define_value(&mut self, body: &mut Body<'a>, tok: Token) -> NameId {
        let id = body.value(self.slice(tok), tok);
        if std::mem::replace(&mut body.values[id.0 as usize].defined, true) {
            let name = self.slice(tok);
            self.error(tok, format!("value `{name}` is defined twice"));
        }
        id
    }

    /// A terminator, or `None` when the line is something else.
    fn terminator(&mut self, body: &mut Body<'a>) -> Parsed<Option<PendingTerm>> {
        let word = if self.tok.kind == Kind::Word { self.slice(self.tok) } else { "" };
        if !matches!(word, "ret" | "br" | "cbr" | "switch" | "unreachable") {
            return Ok(None);
        }
        self.bump();
        let term = match word {
            "ret" => {
                let ends = self.end_of_operands();
                PendingTerm::Ret(if ends { None } else { Some(self.operand(body)?) })
            }
            "br" => PendingTerm::Br(self.label(body, "a label")?),
            "cbr" => {
                let cond = self.operand(body)?;
                self.expect(b',')?;
                let then = self.label(body, "a label")?;
                self.expect(b',')?;
                PendingTerm::Cbr(cond, then, self.label(body, "a label")?)
            }
            "switch" => {
                let value = self.operand(body)?;
                let mut cases = Vec::new();
                loop {
                    self.expect(b',')?;
                    if self.eat_word("else") {
                        break;
                    }
                    self.expect(b'[')?;
                    if self.tok.kind != Kind::Number {
                        return Err(self.expected("a number, or `else`"));
                    }
                    let number = self.bump();
                    self.expect(b':')?;
                    let target = self.label(body, "a label")?;
                    self.expect(b']')?;
                    cases.push((number, target));
                }
                PendingTerm::Switch(value, cases, self.label(body, "a label")?)
            }
            _ => PendingTerm::Unreachable,
        };
        Ok(Some(term))
    }

    /// The bits of a case of a switch over a value of type `ty`.
    pub(super) fn case_bits(&mut self, tok: Token, ty: TypeId) -> u64 {
        let width = self.m.types.prim(ty).map_or(64, |p| p.bit_width().clamp(1, 64));
        let text = self.slice(tok);
        let bits = constant::integer(text).and_then(|v| constant::integer_bits(v, width));
        bits.unwrap_or_else(|| {
            self.error(tok, format!("case `{text}` is no {width}-bit number"));
            0
        })
    }
}
