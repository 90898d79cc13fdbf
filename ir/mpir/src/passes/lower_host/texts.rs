//! Texts in place: what the runtime does with them is done without a call where the text is a
//! literal, short, or ASCII.

use super::FnLowering;
use super::arrays::Handle;
use crate::{Const, Inst, Op, Value};
use magpie_types::abi::object_layout::{CODE_EMPTY, STR_BYTES, STR_LEN, STR_MEMORY_STEP};
use magpie_types::abi::{PanicKind, RtFn};
use magpie_types::{TypeId, fixed};

/// Bytes up to which a literal is compared in place.
const MAX_COMPARED: usize = 32;
/// Characters up to which a code is compared with each.
const MAX_COMPARED_CODES: u32 = 8;
/// Bytes up to which a literal is appended in place.
const MAX_APPENDED: usize = 32;

impl FnLowering<'_, '_, '_> {
    /// The result of a call of the runtime that needs none, or not always.
    pub(super) fn text_in_place(
        &mut self,
        i: Inst,
        rt: RtFn,
        args: &[Value],
    ) -> Option<Vec<Value>> {
        let old = self.old;
        let text = |f: &mut Self| f.handle(old.arg(i, 0));
        match rt {
            RtFn::StrLen => {
                let text = text(self);
                let len = self.text_length(text);
                Some(self.length_result(i, len))
            }
            RtFn::StrCount => {
                let text = text(self);
                let count = self.text_count(text);
                Some(self.length_result(i, count))
            }
            RtFn::StrEq => self.equals_literal(args[0], args[1]).map(|equal| vec![equal]),
            RtFn::StrCode => Some(vec![self.text_code(args[0])]),
            RtFn::StrCodeAt => {
                let text = text(self);
                Some(vec![self.code_at(text, args[1], args[2])])
            }
            RtFn::StrCodeFrom => Some(vec![self.code_from(args[0], args[1])]),
            RtFn::CodeLen => {
                let len = self.code_length(args[0]);
                Some(self.length_result(i, len))
            }
            RtFn::CodeToI64 => Some(self.code_to_number(args[0])),
            RtFn::StrAppendCode if self.literal(args[0]).is_none() => {
                Some(vec![self.append_code(args[0], args[1])])
            }
            RtFn::StrAppend if self.literal(args[0]).is_none() => {
                let text = self.literal(args[1]).filter(|text| text.is_ascii())?;
                match *text.as_bytes() {
                    [byte] => {
                        let code = self.i32(byte.into());
                        Some(vec![self.append_code(args[0], code)])
                    }
                    [_, _, ..] if text.len() <= MAX_APPENDED => {
                        Some(vec![self.append_literal(args[0], args[1], &text)])
                    }
                    _ => None,
                }
            }
            RtFn::StrContainsCode => {
                let text = self.literal(args[0]).filter(|text| text.is_ascii())?;
                let is_character = self.is_character(old.arg(i, 1));
                Some(vec![self.literal_contains(&text, args[1], is_character)])
            }
            _ => None,
        }
    }

    /// The text of a literal.
    pub(super) fn literal(&mut self, v: Value) -> Option<String> {
        match self.b.func().as_const(v) {
            Some(Const::Str(text)) => Some(self.l.m.str(text).to_string()),
            _ => None,
        }
    }

    /// What one of two ways gives.
    fn choose<const N: usize>(
        &mut self,
        cond: Value,
        types: [TypeId; N],
        yes: impl FnOnce(&mut Self) -> [Value; N],
        no: impl FnOnce(&mut Self) -> [Value; N],
    ) -> [Value; N] {
        let results = types.map(|ty| self.b.declare(ty));
        let [then, else_, done] = std::array::from_fn(|_| self.b.create_block());
        self.b.cbr(cond, then, else_);
        self.b.seal(then);
        self.b.seal(else_);
        self.b.switch_to(then);
        let values = yes(self);
        results.iter().zip(values).for_each(|(&var, v)| self.b.write(var, v));
        self.b.br(done);
        self.b.switch_to(else_);
        let values = no(self);
        results.iter().zip(values).for_each(|(&var, v)| self.b.write(var, v));
        self.b.br(done);
        self.b.seal(done);
        self.b.switch_to(done);
        results.map(|var| self.b.read(var))
    }

    // ----- what is known of a text -----

    /// Length in bytes, an `i64`.
    fn text_length(&mut self, text: Handle) -> Value {
        if let Some(literal) = self.literal(text.v) {
            return self.i64(literal.len() as i64);
        }
        match self.texts.of(text.v) {
            Some(facts) => facts.len,
            None => self.load_header(fixed::I64, text, STR_LEN),
        }
    }

    /// Whether the text is ASCII.
    fn is_ascii(&mut self, text: Handle) -> Value {
        if let Some(literal) = self.literal(text.v) {
            return self.b.func().const_bool(literal.is_ascii());
        }
        match self.texts.of(text.v) {
            Some(facts) => facts.is_ascii,
            None => self.load_is_ascii(text),
        }
    }

    /// Number of characters, an `i64`.
    fn text_count(&mut self, text: Handle) -> Value {
        let len = self.text_length(text);
        let is_ascii = self.is_ascii(text);
        let count = |f: &mut Self| [f.rt_value(RtFn::StrCount, fixed::I64, &[text.v])];
        let [count] = self.choose(is_ascii, [fixed::I64], |_| [len], count);
        count
    }

    /// The byte at `index`, an `i64` inside the text.
    fn byte_at(&mut self, text: Value, index: Value) -> Value {
        let address = self.b.value(Op::PtrAdd, self.l.address, &[text, index], 0);
        self.load_low(fixed::U8, address, STR_BYTES)
    }

    // ----- equality -----

    /// Whether two texts are equal, when one is a short literal: its length and its words are
    /// compared.
    fn equals_literal(&mut self, a: Value, b: Value) -> Option<Value> {
        let (text, other) = match (self.literal(a), self.literal(b)) {
            (_, Some(text)) => (text, a),
            (Some(text), None) => (text, b),
            (None, None) => return None,
        };
        if text.len() > MAX_COMPARED {
            return None;
        }
        let found = self.load_low(fixed::U64, other, STR_LEN);
        let wanted = self.b.const_bits(fixed::U64, text.len() as u64);
        let has_length = self.b.compare(Op::IcmpEq, found, wanted);
        let words = text.as_bytes().chunks(8).zip((STR_BYTES..).step_by(8));
        match text.len() {
            0 => Some(has_length),
            // There is a first word in any case.
            1..=8 => Some(words.fold(has_length, |equal, (bytes, at)| {
                let same = self.has_bytes(other, at, bytes);
                self.b.same(Op::IAnd, &[equal, same])
            })),
            _ => {
                let no = self.b.func().const_bool(false);
                let compare = |f: &mut Self| {
                    let yes = f.b.func().const_bool(true);
                    [words.fold(yes, |equal, (bytes, at)| {
                        let same = f.has_bytes(other, at, bytes);
                        f.b.same(Op::IAnd, &[equal, same])
                    })]
                };
                let [equal] = self.choose(has_length, [fixed::BOOL], compare, |_| [no]);
                Some(equal)
            }
        }
    }

    /// Whether the word at an offset begins with at most 8 bytes.
    fn has_bytes(&mut self, text: Value, offset: u32, bytes: &[u8]) -> Value {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let found = self.load_low(fixed::U64, text, offset);
        let mask = self.b.const_bits(fixed::U64, u64::MAX >> (64 - 8 * bytes.len()));
        let found = self.b.same(Op::IAnd, &[found, mask]);
        let wanted = self.b.const_bits(fixed::U64, u64::from_le_bytes(word));
        self.b.compare(Op::IcmpEq, found, wanted)
    }

    // ----- codes of characters -----

    /// Whether a code is not that of an empty text, because it was found in one.
    fn is_character(&self, code: Value) -> bool {
        self.old.def_inst(code).is_some_and(|i| {
            let is_call = self.old.inst(i).op == Op::RtCall;
            is_call && matches!(self.old.inst(i).rt(), RtFn::StrCodeAt | RtFn::StrCodeFrom)
        })
    }

    /// Whether a code is that of an ASCII character.
    fn is_ascii_code(&mut self, code: Value) -> Value {
        self.is_below(code, 128)
    }

    /// A text of one byte is that character.
    fn text_code(&mut self, text: Value) -> Value {
        let len = self.load_low(fixed::I64, text, STR_LEN);
        let one = self.i64(1);
        let is_byte = self.b.compare(Op::IcmpEq, len, one);
        let byte = |f: &mut Self| {
            let byte = f.load_low(fixed::U8, text, STR_BYTES);
            [f.b.cast(byte, fixed::I32)]
        };
        let call = |f: &mut Self| [f.rt_value(RtFn::StrCode, fixed::I32, &[text])];
        let [code] = self.choose(is_byte, [fixed::I32], byte, call);
        code
    }

    /// In ASCII the index is that of a byte.
    fn code_at(&mut self, text: Handle, index: Value, place: Value) -> Value {
        let len = self.text_length(text);
        let is_ascii = self.is_ascii(text);
        let byte = |f: &mut Self| {
            let is_inside = f.b.compare(Op::IcmpUlt, index, len);
            let (go_on, fail) = (f.b.create_block(), f.b.create_block());
            f.b.cbr(is_inside, go_on, fail);
            f.b.seal(go_on);
            f.b.seal(fail);
            f.b.switch_to(fail);
            f.panic_at(PanicKind::IndexOutOfBounds, place, Some((index, len)));
            f.b.switch_to(go_on);
            let byte = f.byte_at(text.v, index);
            [f.b.cast(byte, fixed::I32)]
        };
        let args = [text.v, index, place];
        let call = |f: &mut Self| [f.rt_value(RtFn::StrCodeAt, fixed::I32, &args)];
        let [code] = self.choose(is_ascii, [fixed::I32], byte, call);
        code
    }

    /// The length comes with it: whoever goes through a text needs it next.
    fn code_from(&mut self, text: Value, at: Value) -> Value {
        let byte = |f: &mut Self| {
            let byte = f.byte_at(text, at);
            f.b.cast(byte, fixed::I32)
        };
        let one = self.i64(1);
        let (code, len) = if self.literal(text).is_some_and(|text| text.is_ascii()) {
            (byte(self), one)
        } else if let Some(facts) = self.texts.of(text) {
            let types = [fixed::I32, fixed::I64];
            let yes = |f: &mut Self| [byte(f), one];
            let [code, len] =
                self.choose(facts.is_ascii, types, yes, |f| f.any_code_from(text, at));
            (code, len)
        } else {
            self.any_code_from(text, at).into()
        };
        self.code_lengths.insert(code, len);
        code
    }

    /// The code and the length of a character of any text.
    fn any_code_from(&mut self, text: Value, at: Value) -> [Value; 2] {
        let byte = self.byte_at(text, at);
        let byte = self.b.cast(byte, fixed::I32);
        let one = self.i64(1);
        let end = self.i32(128);
        let is_ascii = self.b.compare(Op::IcmpSlt, byte, end);
        let call = |f: &mut Self| {
            let code = f.rt_value(RtFn::StrCodeFrom, fixed::I32, &[text, at]);
            let two = f.i64(2);
            let len = [0x800, 0x10000].into_iter().fold(two, |len, end| {
                let end = f.i32(end);
                let is_longer = f.b.compare(Op::IcmpSge, code, end);
                let more = f.b.cast(is_longer, fixed::I64);
                f.b.same(Op::IAdd, &[len, more])
            });
            [code, len]
        };
        self.choose(is_ascii, [fixed::I32, fixed::I64], |_| [byte, one], call)
    }

    fn code_length(&mut self, code: Value) -> Value {
        if let Some(&len) = self.code_lengths.get(&code) {
            return len;
        }
        let is_ascii = self.is_ascii_code(code);
        let one = self.i64(1);
        let call = |f: &mut Self| [f.rt_value(RtFn::CodeLen, fixed::I64, &[code])];
        let [len] = self.choose(is_ascii, [fixed::I64], |_| [one], call);
        len
    }

    /// The leaves of an option.
    fn code_to_number(&mut self, code: Value) -> Vec<Value> {
        let zero = self.i32('0' as i32);
        let number = self.b.same(Op::ISub, &[code, zero]);
        let is_digit = self.is_below(number, 10);
        let tag = self.b.cast(is_digit, fixed::I32);
        let number = self.b.cast(number, fixed::I64);
        let nothing = self.i64(0);
        vec![tag, self.b.select(is_digit, number, nothing)]
    }

    /// Whether an `i32`, read as unsigned, is below a limit.
    fn is_below(&mut self, v: Value, limit: u32) -> Value {
        let bits = self.b.value(Op::BitsCast, fixed::U32, &[v], 0);
        let limit = self.b.const_bits(fixed::U32, limit.into());
        self.b.compare(Op::IcmpUlt, bits, limit)
    }

    /// Appends in place where the text has no other handle, the character is ASCII and there is
    /// room for one more byte, as there is wherever the text does not end with its memory.
    fn append_code(&mut self, text: Value, code: Value) -> Value {
        let is_own = self.is_only_handle(text);
        let len = self.load_low(fixed::I64, text, STR_LEN);
        let (start, step) = (self.i64(STR_BYTES.into()), self.i64((STR_MEMORY_STEP - 1).into()));
        let end = self.b.same(Op::IAdd, &[len, start]);
        let used = self.b.same(Op::IAnd, &[end, step]);
        let zero = self.i64(0);
        let has_room = self.b.compare(Op::IcmpNe, used, zero);
        let is_ascii = self.is_ascii_code(code);
        let conditions = [is_own, has_room];
        let fits = conditions.into_iter().fold(is_ascii, |a, b| self.b.same(Op::IAnd, &[a, b]));
        let store = |f: &mut Self| {
            let byte = f.b.cast(code, fixed::U8);
            let address = f.b.value(Op::PtrAdd, f.l.address, &[text, len], 0);
            f.b.effect(Op::MemStore, &[address, byte], STR_BYTES.into());
            let one = f.i64(1);
            let len = f.b.same(Op::IAdd, &[len, one]);
            f.store_header(text, STR_LEN, len);
            [text]
        };
        let call = |f: &mut Self| [f.rt_value(RtFn::StrAppendCode, fixed::STR, &[text, code])];
        let [text] = self.choose(fits, [fixed::STR], store, call);
        text
    }

    /// Appends a literal of ASCII characters in place where the text has no other handle and its
    /// memory has room for it.
    fn append_literal(&mut self, text: Value, other: Value, literal: &str) -> Value {
        let is_own = self.is_only_handle(text);
        let len = self.load_low(fixed::I64, text, STR_LEN);
        // The last byte that is used; memory ends where the bits below its highest one, and those of
        // the least step, are all set.
        let before = self.i64(i64::from(STR_BYTES) - 1);
        let last = self.b.same(Op::IAdd, &[len, before]);
        let last = self.b.value(Op::BitsCast, fixed::U64, &[last], 0);
        let zeros = self.b.same(Op::IClz, &[last]);
        let below = self.b.const_bits(fixed::U64, u64::MAX >> 1);
        let below = self.b.same(Op::ILshr, &[below, zeros]);
        let step = self.b.const_bits(fixed::U64, u64::from(STR_MEMORY_STEP) - 1);
        let end = self.b.same(Op::IOr, &[last, step]);
        let end = self.b.same(Op::IOr, &[end, below]);
        let more = self.b.const_bits(fixed::U64, literal.len() as u64);
        let needed = self.b.same(Op::IAdd, &[last, more]);
        let has_room = self.b.compare(Op::IcmpUle, needed, end);
        let fits = self.b.same(Op::IAnd, &[is_own, has_room]);
        let store = |f: &mut Self| {
            let address = f.b.value(Op::PtrAdd, f.l.address, &[text, len], 0);
            f.store_bytes(address, STR_BYTES, literal.as_bytes());
            let more = f.i64(literal.len() as i64);
            let len = f.b.same(Op::IAdd, &[len, more]);
            f.store_header(text, STR_LEN, len);
            [text]
        };
        let call = |f: &mut Self| [f.rt_value(RtFn::StrAppend, fixed::STR, &[text, other])];
        let [text] = self.choose(fits, [fixed::STR], store, call);
        text
    }

    /// Stores bytes, as many at once as there are.
    fn store_bytes(&mut self, address: Value, mut offset: u32, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (ty, size) = match bytes.len() {
                8.. => (fixed::U64, 8),
                4.. => (fixed::U32, 4),
                2.. => (fixed::U16, 2),
                _ => (fixed::U8, 1),
            };
            let mut word = [0; 8];
            word[..size].copy_from_slice(&bytes[..size]);
            let word = self.b.const_bits(ty, u64::from_le_bytes(word));
            self.b.effect(Op::MemStore, &[address, word], offset.into());
            offset += size as u32;
            bytes = &bytes[size..];
        }
    }

    /// Whether a literal of ASCII characters holds a character.
    fn literal_contains(&mut self, text: &str, code: Value, is_character: bool) -> Value {
        let holds = self.is_one_of(text.as_bytes(), code);
        if is_character {
            return holds;
        }
        let empty = self.i32(CODE_EMPTY);
        let is_empty = self.b.compare(Op::IcmpEq, code, empty);
        self.b.same(Op::IOr, &[holds, is_empty])
    }

    /// Whether a code is one of some ASCII characters: a range of them is compared with its ends, a
    /// few with each, any others are bits of two words.
    pub(super) fn is_one_of(&mut self, characters: &[u8], code: Value) -> Value {
        let mut words = [0u64; 2];
        characters.iter().for_each(|byte| words[usize::from(byte / 64)] |= 1 << (byte % 64));
        let all = u128::from(words[1]) << 64 | u128::from(words[0]);
        let (first, count) = (all.trailing_zeros(), all.count_ones());
        if all == 0 {
            return self.b.func().const_bool(false);
        }
        if all >> first == u128::MAX >> (128 - count) {
            let first = self.i32(first as i32);
            let distance = self.b.same(Op::ISub, &[code, first]);
            return self.is_below(distance, count);
        }
        if count <= MAX_COMPARED_CODES {
            let one_of = (0..128).filter(|n| all >> n & 1 == 1);
            let equal: Vec<Value> = one_of
                .map(|n| {
                    let character = self.i32(n);
                    self.b.compare(Op::IcmpEq, code, character)
                })
                .collect();
            let no = self.b.func().const_bool(false);
            return equal.into_iter().fold(no, |a, b| self.b.same(Op::IOr, &[a, b]));
        }
        // Shifts take the low six bits: what they give for other codes does not count.
        let is_ascii = self.is_ascii_code(code);
        let bit = self.bit_of(words, code);
        self.b.same(Op::IAnd, &[is_ascii, bit])
    }

    /// Bit number `code`, if that is below 128, of two words.
    fn bit_of(&mut self, words: [u64; 2], code: Value) -> Value {
        let [low, high] = words.map(|word| self.b.const_bits(fixed::U64, word));
        let half = self.i32(64);
        let is_low = self.b.compare(Op::IcmpSlt, code, half);
        let word = self.b.select(is_low, low, high);
        let wide = self.b.cast(code, fixed::U64);
        // Shifts take the low six bits.
        let bits = self.b.same(Op::ILshr, &[word, wide]);
        let one = self.b.const_bits(fixed::U64, 1);
        let bit = self.b.same(Op::IAnd, &[bits, one]);
        self.b.compare(Op::IcmpEq, bit, one)
    }

    // ----- texts of codes -----

    /// The code of which a value is the text.
    pub(super) fn code_of_text(&self, v: Value) -> Option<Value> {
        let i = self.old.def_inst(v)?;
        let is_text = self.old.inst(i).op == Op::RtCall && self.old.inst(i).rt() == RtFn::CodeText;
        is_text.then(|| self.old.arg(i, 0))
    }

    /// Releases the text of a code: that of an ASCII character is not counted.
    pub(super) fn release_character(&mut self, text: Value, code: Value) {
        let (text, code) = (self.one(text), self.one(code));
        let is_ascii = self.is_ascii_code(code);
        let (release, done) = (self.b.create_block(), self.b.create_block());
        self.b.cbr(is_ascii, done, release);
        self.b.seal(release);
        self.b.switch_to(release);
        self.rt(RtFn::Release, &[text]);
        self.b.br(done);
        self.b.seal(done);
        self.b.switch_to(done);
    }
}
