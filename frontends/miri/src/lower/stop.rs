//! Ending the program with messages of numbers that are known when it runs.

use super::body::Body;
use magpie_mpir::{Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::fixed;

/// A part of a message.
pub(super) enum Word<'a> {
    Text(&'a str),
    /// A `Str` of the program.
    Str(Value),
    /// An `i64` of the program.
    Int(Value),
}

impl Body<'_, '_, '_> {
    /// Ends the program with a message.
    pub(super) fn stop(&mut self, words: &[Word<'_>]) {
        let message = self.message(words);
        self.b.inst(Op::Panic, fixed::UNIT, &[message], 0);
        self.b.unreachable();
    }

    /// A text of some parts.
    pub(super) fn message(&mut self, words: &[Word<'_>]) -> Value {
        let builder = self.rt_value(RtFn::SbNew, fixed::STR_BUILDER, &[]);
        for word in words {
            let (f, v) = match *word {
                Word::Text(text) => (RtFn::SbAppendStr, self.text(text).v),
                Word::Str(v) => (RtFn::SbAppendStr, v),
                Word::Int(v) => (RtFn::SbAppendI64, v),
            };
            self.rt(f, fixed::UNIT, &[builder, v]);
        }
        self.rt_value(RtFn::SbBuild, fixed::STR, &[builder])
    }

    /// Ends the program where `start <= end <= len` does not hold, all from 0.
    pub(super) fn check_slice(&mut self, what: &str, [start, end, len]: [Value; 3]) {
        let zero = self.i64(0);
        let tests = [(start, zero), (end, start), (len, end)];
        let bad = tests.map(|(a, b)| self.b.compare(Op::IcmpSlt, a, b));
        let bad = bad.into_iter().reduce(|a, b| self.b.same(Op::IOr, &[a, b]));
        let (stop, go_on) = (self.new_block(), self.new_block());
        if let Some(bad) = bad {
            self.b.cbr(bad, stop, go_on);
        }
        self.enter(stop);
        let head = format!("{what} out of bounds at {}: ", self.cx.place_text(self.span));
        self.stop(&[
            Word::Text(&head),
            Word::Int(start),
            Word::Text(" .. "),
            Word::Int(end),
            Word::Text(" of "),
            Word::Int(len),
            Word::Text(" elements"),
        ]);
        self.enter(go_on);
    }
}
