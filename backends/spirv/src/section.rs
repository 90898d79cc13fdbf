//! A section of a SPIR-V module: a stream of encoded instructions.

use spirv::Op;

/// The longest text put into one instruction, in bytes: names are cut there.
const MAX_TEXT: usize = 1024;

/// Encoded instructions, one behind the other.
#[derive(Default)]
pub(crate) struct Section {
    words: Vec<u32>,
    too_long: bool,
}

impl Section {
    /// An empty section with room for `words`.
    pub(crate) fn with_capacity(words: usize) -> Section {
        Section { words: Vec::with_capacity(words), too_long: false }
    }

    /// Appends an instruction.
    #[inline]
    pub(crate) fn op(&mut self, op: Op, operands: &[u32]) {
        self.words.push((operands.len() as u32 + 1) << 16 | op as u32);
        self.words.extend_from_slice(operands);
    }

    /// Appends an instruction with a result.
    #[inline]
    pub(crate) fn value(&mut self, op: Op, ty: u32, id: u32, operands: &[u32]) {
        self.words.extend([(operands.len() as u32 + 3) << 16 | op as u32, ty, id]);
        self.words.extend_from_slice(operands);
    }

    /// Appends an instruction whose operands are not in one slice.
    pub(crate) fn op_iter(&mut self, op: Op, operands: impl IntoIterator<Item = u32>) {
        let start = self.words.len();
        self.words.push(0);
        self.words.extend(operands);
        self.patch(start, op);
    }

    /// Appends an instruction with a text between its other operands.
    pub(crate) fn op_text(&mut self, op: Op, before: &[u32], text: &str, after: &[u32]) {
        let start = self.words.len();
        self.words.push(0);
        self.words.extend_from_slice(before);
        let mut end = text.len().min(MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // Texts end in a zero byte, so one that fills its last word gets another word.
        let bytes = &text.as_bytes()[..end];
        for chunk in bytes.chunks(4) {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words.push(u32::from_le_bytes(word));
        }
        if bytes.len().is_multiple_of(4) {
            self.words.push(0);
        }
        self.words.extend_from_slice(after);
        self.patch(start, op);
    }

    fn patch(&mut self, start: usize, op: Op) {
        let count = self.words.len() - start;
        self.too_long |= count > u16::MAX as usize;
        self.words[start] = (count as u32) << 16 | op as u32;
    }

    /// Whether an instruction has more words than its head can count.
    pub(crate) fn too_long(&self) -> bool {
        self.too_long
    }

    /// The encoded instructions.
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_words(text: &str) -> Vec<u32> {
        let mut s = Section::default();
        s.op_text(Op::Name, &[7], text, &[]);
        s.words().to_vec()
    }

    #[test]
    fn texts_end_in_a_zero_byte() {
        assert_eq!(text_words("ab"), [3 << 16 | 5, 7, 0x6261]);
        assert_eq!(text_words("abcd"), [4 << 16 | 5, 7, 0x6463_6261, 0]);
        assert_eq!(text_words(""), [3 << 16 | 5, 7, 0]);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let words = text_words(&"ä".repeat(600));
        assert_eq!(words.len(), 2 + MAX_TEXT / 4 + 1);
        let words = text_words(&format!("x{}", "ä".repeat(600)));
        assert_eq!(words.len(), 2 + MAX_TEXT / 4);
    }

    #[test]
    fn an_instruction_counts_its_words_in_16_bits() {
        let mut s = Section::default();
        s.op_iter(Op::Switch, 0..65534);
        assert!(!s.too_long());
        s.op_iter(Op::Switch, 0..65535);
        assert!(s.too_long());
    }
}
