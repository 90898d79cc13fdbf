//! Functions with codes in the place of characters.

use super::find::{Characters, holds_texts, literal_code, with_codes};
use super::place::Places;
use crate::analysis::Positions;
use crate::{
    Block, Const, Domain, Flags, FnId, Inst, Module, MpirFn, Op, Terminator, Value, ValueDef,
};
use magpie_diag::Span;
use magpie_types::abi::RtFn;
use magpie_types::abi::object_layout::{CODE_EMPTY, CODE_LONGER};
use magpie_types::{TypeId, fixed};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Rewrites all host functions.
pub(super) fn rewrite(m: &mut Module, characters: &Characters) {
    for id in m.fn_ids() {
        if m.func(id).domain != Domain::Host {
            continue;
        }
        let head = m.func(id).head();
        let f = std::mem::replace(&mut m.fns[id.index()], head);
        let rewriting = Rewriting {
            id,
            characters,
            literals: literals(m, &f),
            coded: coded_types(m, &f),
            types: f.locals.iter().map(|local| local.ty).collect(),
            f,
            codes: FxHashMap::default(),
            texts: FxHashMap::default(),
            replaced: FxHashMap::default(),
            list: Vec::new(),
        };
        m.fns[id.index()] = rewriting.run();
    }
}

/// The codes of the literals of a function, [`CODE_LONGER`] for those of several characters.
fn literals(m: &Module, f: &MpirFn) -> FxHashMap<Value, i32> {
    let code = |(n, def)| match def {
        ValueDef::Const(Const::Str(text)) => {
            Some((Value::new(n), literal_code(m.str(text)).unwrap_or(CODE_LONGER)))
        }
        ValueDef::Const(_) | ValueDef::Inst(_) | ValueDef::Param(_) => None,
    };
    f.locals.iter().map(|local| local.def).enumerate().filter_map(code).collect()
}

/// The types of the values of a function that may hold texts, and what they are with codes.
fn coded_types(m: &mut Module, f: &MpirFn) -> FxHashMap<TypeId, TypeId> {
    let mut coded = FxHashMap::default();
    for ty in f.locals.iter().map(|local| local.ty).chain([f.ret_ty]) {
        if holds_texts(&m.types, ty) {
            coded.entry(ty).or_insert_with(|| with_codes(&mut m.types, ty));
        }
    }
    coded
}

/// A place in a block: before the instruction of this number, or behind all.
type At = (Block, usize);
const END: usize = usize::MAX;

struct Rewriting<'a> {
    id: FnId,
    characters: &'a Characters,
    f: MpirFn,
    literals: FxHashMap<Value, i32>,
    /// The types of lists and options of texts, with codes in their place.
    coded: FxHashMap<TypeId, TypeId>,
    /// The types that the values had.
    types: Vec<TypeId>,
    /// The codes of characters, but for copies and views of others.
    codes: FxHashMap<Value, Value>,
    /// The texts of characters that some use needs.
    texts: FxHashMap<Value, Value>,
    /// Instructions that give a code in the place of those that gave a character.
    replaced: FxHashMap<Inst, Inst>,
    /// The new instructions of the current block.
    list: Vec<Inst>,
}

impl Rewriting<'_> {
    fn run(mut self) -> MpirFn {
        let places = self.text_places();
        self.rewrite_head();
        self.retype();
        self.make_codes();
        let texts = self.make_texts(&places);
        for b in self.f.block_ids() {
            self.rewrite_block(b, &texts);
        }
        self.rewrite_phis();
        self.f
    }

    fn is_character(&self, v: Value) -> bool {
        self.characters.is_code(self.id, v) && self.coded_type(v).is_none()
    }

    /// Whether a value holds codes in the place of texts.
    fn holds_codes(&self, v: Value) -> bool {
        self.characters.is_code(self.id, v) && self.coded_type(v).is_some()
    }

    /// The type with codes of what may hold texts.
    fn coded_type(&self, v: Value) -> Option<TypeId> {
        self.coded.get(self.types.get(v.index())?).copied()
    }

    /// Whether a text is a character or a literal of at most one.
    fn has_known_code(&self, v: Value) -> bool {
        self.is_character(v) || self.literals.get(&v).is_some_and(|&code| code != CODE_LONGER)
    }

    // ----- what needs a text -----

    /// Whether operand `n` of an instruction, a character, is read as a code.
    fn reads_code(&self, i: Inst, n: usize) -> bool {
        let data = self.f.inst(i);
        match data.op {
            Op::Call => self.characters.takes_code(data.func(), n),
            Op::Phi | Op::BorrowShared => data.result().is_some_and(|v| self.is_character(v)),
            Op::ArrContains | Op::ArrPush | Op::ArrSet | Op::ArrFrom | Op::EnumNew => {
                self.takes_code(i, n)
            }
            Op::RtCall => match data.rt() {
                RtFn::StrEq | RtFn::StrLen | RtFn::StrCount | RtFn::StrToI64 => true,
                RtFn::StrTransform => n == 0,
                // Codes have the order of texts, but for texts that are longer.
                RtFn::StrCompare => self.has_known_code(self.f.arg(i, 1 - n)),
                RtFn::StrAppend | RtFn::StrContains => n == 1,
                RtFn::HandleClone => data.result().is_some_and(|v| self.is_character(v)),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether operand `n` of an operation on lists and options is a text, and is taken as a code.
    fn takes_code(&self, i: Inst, n: usize) -> bool {
        let args = self.f.args(i);
        let (of_what, at) = match self.f.inst(i).op {
            Op::ArrFrom | Op::EnumNew => (self.f.inst(i).result(), n),
            Op::ArrContains | Op::ArrPush => (args.first().copied(), 1),
            Op::ArrSet => (args.first().copied(), 2),
            _ => return false,
        };
        let is_text = n == at && self.coded_type(args[n]).is_none();
        is_text && of_what.is_some_and(|v| self.holds_codes(v))
    }

    /// Where the texts of characters are needed, in the order of the characters.
    fn text_uses(&self) -> BTreeMap<Value, Vec<At>> {
        let f = &self.f;
        let mut uses: BTreeMap<Value, Vec<At>> = BTreeMap::new();
        let mut note = |v, at| uses.entry(v).or_default().push(at);
        for b in f.block_ids() {
            for (n, &i) in f.block(b).insts.iter().enumerate() {
                let is_phi = f.inst(i).op == Op::Phi;
                let preds = if is_phi { Some(f.phi_arms(i).map(|arm| arm.0)) } else { None };
                let mut preds = preds.into_iter().flatten();
                for (operand, &v) in f.args(i).iter().enumerate() {
                    let at = preds.next().map_or((b, n), |pred| (pred, END));
                    if self.is_character(v) && !self.reads_code(i, operand) {
                        note(v, at);
                    }
                }
            }
            if let Terminator::Ret(Some(v)) = f.block(b).term
                && self.is_character(v)
                && !self.characters.returns_code(self.id)
            {
                note(v, (b, END));
            }
        }
        uses
    }

    /// Where each text that is needed is made.
    fn text_places(&self) -> BTreeMap<At, Vec<Value>> {
        let mut result: BTreeMap<At, Vec<Value>> = BTreeMap::new();
        let uses = self.text_uses();
        if uses.is_empty() {
            return result;
        }
        let (places, positions) = (Places::new(&self.f), Positions::new(&self.f));
        for (v, uses) in uses {
            let def = positions.def_block(&self.f, v).unwrap_or(Block(0));
            let blocks = uses.iter().map(|at| at.0);
            let common = blocks.reduce(|a, b| places.common(a, b)).unwrap_or(def);
            let b = places.outside_loops(common, def);
            let first = uses.iter().filter(|at| at.0 == b).map(|at| at.1).min().unwrap_or(END);
            result.entry((b, first)).or_default().push(v);
        }
        result
    }

    // ----- what is made -----

    fn rewrite_head(&mut self) {
        for n in 0..self.f.params.len() {
            let v = self.f.params[n].0;
            if self.is_character(v) {
                self.f.params[n].1 = fixed::I32;
                self.f.locals[v.index()].ty = fixed::I32;
                self.codes.insert(v, v);
            }
        }
        if self.characters.returns_code(self.id) {
            self.f.ret_ty = self.coded.get(&self.f.ret_ty).copied().unwrap_or(fixed::I32);
        }
    }

    /// Gives the values that hold codes their types.
    fn retype(&mut self) {
        for n in 0..self.types.len() {
            let v = Value::new(n);
            let Some(ty) = self.coded_type(v).filter(|_| self.holds_codes(v)) else { continue };
            self.f.locals[n].ty = ty;
            match self.f.def(v) {
                ValueDef::Inst(i) => self.f.inst_mut(i).ty = ty,
                ValueDef::Param(_) => {
                    let param = self.f.params.iter_mut().find(|param| param.0 == v);
                    param.into_iter().for_each(|param| param.1 = ty);
                }
                ValueDef::Const(_) => {}
            }
        }
    }

    /// A value for those who want it with codes: nothing, which has no code in it, is made anew.
    fn with_codes(&mut self, v: Value) -> Value {
        match (self.f.as_const(v), self.coded_type(v)) {
            (Some(nothing), Some(ty)) => self.f.constant(ty, nothing),
            _ => v,
        }
    }

    /// Makes the instructions that give codes. Their operands are still the old ones.
    fn make_codes(&mut self) {
        let insts: Vec<Inst> = self.f.blocks.iter().flat_map(|b| &b.insts).copied().collect();
        for i in insts {
            let data = *self.f.inst(i);
            let Some(character) = data.result().filter(|&v| self.is_character(v)) else { continue };
            let args = self.f.args(i).to_vec();
            let literal = args.first().and_then(|v| self.literals.get(v)).copied();
            let mut make =
                |imm| self.f.make_inst(data.op, Flags::NONE, fixed::I32, &args, imm, data.span);
            let new = match data.op {
                Op::Phi => self.f.make_phi(fixed::I32, &[], data.span),
                Op::Call | Op::ArrGet | Op::EnumPayload => make(data.imm),
                Op::RtCall if data.rt() == RtFn::StrCharAt => make(RtFn::StrCodeAt as u64),
                Op::RtCall if data.rt() == RtFn::StrCharFrom => make(RtFn::StrCodeFrom as u64),
                // Copies and views have the code of what they show.
                _ => {
                    let code = literal.map(|code| self.constant(code));
                    self.codes.extend(code.map(|code| (character, code)));
                    continue;
                }
            };
            self.replaced.insert(i, new);
            if let Some(code) = self.f.inst(new).result() {
                self.codes.insert(character, code);
            }
        }
    }

    /// Makes the instructions that give texts.
    fn make_texts(&mut self, places: &BTreeMap<At, Vec<Value>>) -> BTreeMap<At, Vec<Inst>> {
        let mut made = BTreeMap::new();
        for (&at, characters) in places {
            let mut insts = Vec::new();
            for &v in characters {
                let code = self.code_of_character(v);
                let span = self.f.def_inst(v).map_or(self.f.span, |i| self.f.inst(i).span);
                let rt = RtFn::CodeText as u64;
                let mut make = |op, ty, arg, imm| {
                    let i = self.f.make_inst(op, Flags::NONE, ty, &[arg], imm, span);
                    insts.push(i);
                    self.f.inst(i).result()
                };
                let mut text = make(Op::RtCall, fixed::STR, code, rt);
                if self.types[v.index()] != fixed::STR {
                    let view = self.types[v.index()];
                    text = text.and_then(|text| make(Op::BorrowShared, view, text, 0));
                }
                self.texts.extend(text.map(|text| (v, text)));
            }
            made.insert(at, insts);
        }
        made
    }

    fn code_of_character(&self, mut v: Value) -> Value {
        loop {
            match (self.codes.get(&v), self.f.def_inst(v)) {
                (Some(&code), _) => return code,
                (None, Some(copy)) => v = self.f.arg(copy, 0),
                (None, None) => unreachable!("{v:?} is a copy or a view of a character"),
            }
        }
    }

    /// The code of a text; it is found at the end of the list if nobody knows it.
    fn code(&mut self, v: Value, span: Span) -> Value {
        if self.is_character(v) {
            return self.code_of_character(v);
        }
        let mut text = v;
        while let Some(view) =
            self.f.def_inst(text).filter(|&i| self.f.inst(i).op == Op::BorrowShared)
        {
            text = self.f.arg(view, 0);
        }
        if let Some(&code) = self.literals.get(&text) {
            return self.constant(code);
        }
        self.push(Op::RtCall, fixed::I32, &[v], RtFn::StrCode as u64, span)
    }

    /// The code of a text, or what holds texts with codes in their place.
    fn code_or_holder(&mut self, v: Value, span: Span) -> Value {
        match self.coded_type(v) {
            Some(_) => self.with_codes(v),
            None => self.code(v, span),
        }
    }

    fn constant(&mut self, code: i32) -> Value {
        self.f.const_bits(fixed::I32, code as u32 as u64)
    }

    /// Makes an instruction with a result at the end of the list.
    fn push(&mut self, op: Op, ty: TypeId, args: &[Value], imm: u64, span: Span) -> Value {
        let i = self.f.make_inst(op, Flags::NONE, ty, args, imm, span);
        self.list.push(i);
        self.f.inst(i).result().expect("the type is not unit")
    }

    // ----- blocks -----

    fn rewrite_block(&mut self, b: Block, texts: &BTreeMap<At, Vec<Inst>>) {
        let old = std::mem::take(&mut self.f.block_mut(b).insts);
        for (n, &i) in old.iter().enumerate() {
            self.list.extend(texts.get(&(b, n)).into_iter().flatten());
            let is_character = self.f.inst(i).result().is_some_and(|v| self.is_character(v));
            let i = match self.replaced.get(&i) {
                Some(&new) => new,
                None if is_character => continue,
                None => i,
            };
            if self.f.inst(i).op != Op::Phi {
                self.rewrite_inst(i);
            }
            self.list.push(i);
        }
        self.list.extend(texts.get(&(b, END)).into_iter().flatten());
        if let Terminator::Ret(Some(v)) = self.f.block(b).term {
            let span = self.f.block(b).term_span;
            let v = match self.characters.returns_code(self.id) {
                true => self.code_or_holder(v, span),
                false => self.text(v),
            };
            self.f.block_mut(b).term = Terminator::Ret(Some(v));
        }
        self.f.block_mut(b).insts = std::mem::take(&mut self.list);
    }

    /// The text of a character; other values as they are.
    fn text(&self, v: Value) -> Value {
        self.texts.get(&v).copied().unwrap_or(v)
    }

    /// The operands of an instruction that is no phi, and what it does with codes.
    fn rewrite_inst(&mut self, i: Inst) {
        let data = *self.f.inst(i);
        let args = self.f.args(i).to_vec();
        if data.op == Op::Call {
            for (n, &v) in args.iter().enumerate() {
                self.f.args_mut(i)[n] = match self.characters.takes_code(data.func(), n) {
                    true => self.code_or_holder(v, data.span),
                    false => self.text(v),
                };
            }
            return;
        }
        if data.op == Op::RtCall && self.rewrite_rt_call(i, data.rt(), &args, data.span) {
            return;
        }
        let is_read = matches!(data.op, Op::ArrGet | Op::EnumPayload) && data.ty == fixed::I32;
        let holds_codes = is_read
            || data.result().is_some_and(|v| self.holds_codes(v))
            || args.iter().any(|&v| self.holds_codes(v));
        for (n, &v) in args.iter().enumerate() {
            self.f.args_mut(i)[n] = match holds_codes && self.coded_type(v).is_some() {
                true => self.with_codes(v),
                false if self.takes_code(i, n) => self.code(v, data.span),
                false => self.text(v),
            };
        }
    }

    /// Makes a call of the runtime with a character one with its code, or none; whether it did.
    fn rewrite_rt_call(&mut self, i: Inst, rt: RtFn, args: &[Value], span: Span) -> bool {
        let is_character = |n: usize| args.get(n).is_some_and(|&v| self.is_character(v));
        let is_known = |n: usize| {
            let is_one = |&code: &i32| code > CODE_EMPTY;
            is_character(n) || self.literals.get(&args[n]).is_some_and(is_one)
        };
        let new = match rt {
            RtFn::StrEq if is_character(0) || is_character(1) => {
                let codes = [self.code(args[0], span), self.code(args[1], span)];
                self.f.rewrite(i, Op::IcmpEq, &codes, 0);
                return true;
            }
            RtFn::StrCompare
                if (is_character(0) || is_character(1))
                    && args.iter().all(|&v| self.has_known_code(v)) =>
            {
                let codes = [self.code(args[0], span), self.code(args[1], span)];
                self.f.rewrite(i, Op::ISub, &codes, 0);
                return true;
            }
            RtFn::StrCount if is_character(0) => {
                let (code, empty) = (self.code(args[0], span), self.constant(CODE_EMPTY));
                let is_one = self.push(Op::IcmpNe, fixed::BOOL, &[code, empty], 0, span);
                self.f.rewrite(i, Op::Cast, &[is_one], 0);
                return true;
            }
            RtFn::StrLen if is_character(0) => RtFn::CodeLen,
            RtFn::StrToI64 if is_character(0) => RtFn::CodeToI64,
            RtFn::StrTransform if is_character(0) => RtFn::CodeTransform,
            RtFn::StrAppend if is_character(1) => RtFn::StrAppendCode,
            RtFn::StrContains if is_known(1) => RtFn::StrContainsCode,
            _ => return false,
        };
        let at = match new {
            RtFn::StrAppendCode | RtFn::StrContainsCode => 1,
            _ => 0,
        };
        let mut new_args: Vec<Value> = args.iter().map(|&v| self.text(v)).collect();
        new_args[at] = self.code(args[at], span);
        self.f.rewrite(i, Op::RtCall, &new_args, new as u64);
        true
    }

    /// The arms of all phis. What they need is at the end of the predecessors.
    fn rewrite_phis(&mut self) {
        let old: FxHashMap<Inst, Inst> =
            self.replaced.iter().map(|(&old, &new)| (new, old)).collect();
        for b in self.f.block_ids() {
            let phis: Vec<Inst> = self.f.phis(b).collect();
            for phi in phis {
                let from = old.get(&phi).copied().unwrap_or(phi);
                let span = self.f.inst(phi).span;
                let holds_codes = self.f.inst(phi).result().is_some_and(|v| self.holds_codes(v));
                let mut arms: Vec<(Block, Value)> = self.f.phi_arms(from).collect();
                for (pred, v) in &mut arms {
                    if from == phi {
                        *v = if holds_codes { self.with_codes(*v) } else { self.text(*v) };
                        continue;
                    }
                    *v = self.code(*v, span);
                    let found = std::mem::take(&mut self.list);
                    self.f.block_mut(*pred).insts.extend(found);
                }
                self.f.set_phi_arms(phi, &arms);
            }
        }
    }
}
