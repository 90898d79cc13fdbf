//! What is known of a text in front of the loops that ask for it.
//!
//! As long as a value is not given away, nobody changes the text that it is a handle or a view of: a
//! text is only changed in place by whoever has its one handle. So the length of a text and whether
//! it is ASCII are the same from where the value is made; what the program does with other texts
//! between does not matter.

use super::FnLowering;
use super::arrays::Handle;
use crate::analysis::{Cfg, Dominators, Loops, Positions};
use crate::{Block, Inst, MpirFn, Op, Value, ownership};
use magpie_types::abi::RtFn;
use magpie_types::abi::object_layout::{FLAG_ASCII, FLAGS, STR_LEN};
use magpie_types::fixed;
use rustc_hash::{FxHashMap, FxHashSet};

/// What a text is.
#[derive(Clone, Copy)]
pub(super) struct TextFacts {
    /// Its bytes, an `i64`.
    pub(super) len: Value,
    pub(super) is_ascii: Value,
}

#[derive(Default)]
pub(super) struct KnownTexts {
    /// Values of the old function that a loop asks for which does not make them.
    asked: FxHashSet<Value>,
    /// By their handles.
    facts: FxHashMap<Value, TextFacts>,
}

impl KnownTexts {
    pub(super) fn new(f: &MpirFn) -> KnownTexts {
        KnownTexts { asked: asked_in_loops(f), facts: FxHashMap::default() }
    }

    pub(super) fn of(&self, text: Value) -> Option<TextFacts> {
        self.facts.get(&text).copied()
    }
}

/// Whether an instruction asks what its first operand, a text, is.
fn asks(f: &MpirFn, i: Inst) -> bool {
    f.inst(i).op == Op::RtCall
        && matches!(
            f.inst(i).rt(),
            RtFn::StrCodeAt | RtFn::StrCodeFrom | RtFn::StrCount | RtFn::StrLen
        )
}

fn asked_in_loops(f: &MpirFn) -> FxHashSet<Value> {
    let mut asked = FxHashSet::default();
    if f.blocks.len() < 2 || !f.blocks.iter().flat_map(|b| &b.insts).any(|&i| asks(f, i)) {
        return asked;
    }
    let cfg = Cfg::new(f);
    let dom = Dominators::new(&cfg);
    let loops = Loops::new(&cfg, &dom);
    if loops.is_empty() {
        return asked;
    }
    let positions = Positions::new(f);
    for b in f.block_ids() {
        let Some(l) = loops.innermost(b) else { continue };
        for &i in f.block(b).insts.iter().filter(|&&i| asks(f, i)) {
            let text = ownership::viewed(f, f.arg(i, 0));
            let home = positions.def_block(f, text).unwrap_or(Block(0));
            if f.as_const(text).is_none() && !loops.contains(l, home) {
                asked.insert(text);
            }
        }
    }
    asked
}

impl FnLowering<'_, '_, '_> {
    /// Looks at the texts among the parameters that loops ask for.
    pub(super) fn learn_parameters(&mut self) {
        for &(param, _) in &self.old.params {
            self.learn_text(param);
        }
    }

    /// Looks at a text that has just been made, if a loop asks for it.
    pub(super) fn learn_text(&mut self, v: Value) {
        if !self.texts.asked.contains(&v) || !self.is_object(v) {
            return;
        }
        let text = self.handle(v);
        if self.b.ty(text.v) != fixed::STR {
            return;
        }
        let len = self.load_header(fixed::I64, text, STR_LEN);
        let is_ascii = self.load_is_ascii(text);
        self.texts.facts.insert(text.v, TextFacts { len, is_ascii });
    }

    /// Whether a text that is no literal is ASCII.
    pub(super) fn load_is_ascii(&mut self, text: Handle) -> Value {
        let flags = self.load_header(fixed::U32, text, FLAGS);
        let mask = self.b.const_bits(fixed::U32, FLAG_ASCII.into());
        let set = self.b.same(Op::IAnd, &[flags, mask]);
        let zero = self.b.const_bits(fixed::U32, 0);
        self.b.compare(Op::IcmpNe, set, zero)
    }
}
