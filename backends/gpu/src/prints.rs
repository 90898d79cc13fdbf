//! `gpu.print` becomes stores: kernels put what they print into a hidden buffer, from which the
//! runtime makes lines ([`magpie_types::print`]).

use magpie_diag::Span;
use magpie_mpir::{Block, Const, Flags, FnId, Inst, Module, MpirFn, Op, Value};
use magpie_types::print::{PrintPart, PrintSite, RECORD_HEAD, WORDS, text_of, value_words};
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind, fixed};

/// The type of the hidden buffer.
pub fn print_buffer(types: &mut TypeCtx) -> TypeId {
    types.intern(TypeKind::Buffer(fixed::U32))
}

/// Whether a function prints.
pub fn prints(f: &MpirFn) -> bool {
    f.blocks.iter().flat_map(|b| &b.insts).any(|&i| f.inst(i).op == Op::GpuPrint)
}

/// Gives a kernel that prints the hidden buffer as its last parameter, and replaces what prints by
/// atomic operations and stores, which every target has. Functions that kernels call have no such
/// parameter: what is not inlined cannot print.
pub fn lower_prints(module: &mut Module, kernel: FnId) {
    if !prints(module.func(kernel)) {
        return;
    }
    let ty = print_buffer(&mut module.types);
    let mut f = module.func(kernel).clone();
    let buffer = f.add_param("prints", ty, Span::NONE);
    for b in f.block_ids() {
        for i in std::mem::take(&mut f.block_mut(b).insts) {
            match f.inst(i).op {
                Op::GpuPrint => lower_print(module, &mut f, b, i, buffer),
                _ => f.block_mut(b).insts.push(i),
            }
        }
    }
    // The texts are no constants of the kernel any more.
    f.compact(|_| true);
    module.fns[kernel.index()] = f;
}

/// Appends a record to the buffer, at the end of a block. Stores that do not fit leave no trace, as
/// any outside of a buffer.
fn lower_print(module: &Module, f: &mut MpirFn, b: Block, print: Inst, buffer: Value) {
    let (span, args) = (f.inst(print).span, f.args(print).to_vec());
    let site = f.const_u32(f.prints.len() as u32);
    let mut record = Record { f, b, span, words: vec![site] };
    for dim in 0..3 {
        let id = record.put(Op::GpuGlobalId, fixed::U32, &[], dim);
        record.words.push(id);
    }
    let parts = args.iter().map(|&v| record.part(module, v)).collect();
    record.store(buffer);
    f.prints.push(PrintSite { parts });
}

/// A record under construction.
struct Record<'f> {
    f: &'f mut MpirFn,
    b: Block,
    span: Span,
    words: Vec<Value>,
}

impl Record<'_> {
    /// An instruction with a result.
    fn put(&mut self, op: Op, ty: TypeId, args: &[Value], imm: u64) -> Value {
        let result = self.f.append(self.b, op, Flags::NONE, ty, args, imm, self.span);
        result.unwrap_or_else(|| self.f.zero(ty))
    }

    /// An operand of the print as a part of its line.
    fn part(&mut self, module: &Module, v: Value) -> PrintPart {
        if let Some(Const::Str(text)) = self.f.as_const(v) {
            return PrintPart::Text(module.str(text).to_string());
        }
        let prim = module.types.prim(self.f.ty(v)).unwrap_or(PrimType::Unit);
        if let Some(bits) = self.f.as_bits(v) {
            return PrintPart::Text(text_of(prim, bits));
        }
        self.value(v, prim);
        PrintPart::Value(prim)
    }

    /// Adds the bits of a value.
    fn value(&mut self, v: Value, prim: PrimType) {
        let bits_type = prim.bits_type();
        let bits = match prim.is_float() {
            true => self.put(Op::BitsCast, bits_type.id(), &[v], 0),
            false => v,
        };
        self.word(bits);
        if value_words(prim) == 2 {
            let ty = self.f.ty(bits);
            let amount = self.f.const_bits(ty, 32);
            let high = self.put(Op::ILshr, ty, &[bits, amount], 0);
            self.word(high);
        }
    }

    /// Adds the low 32 bits of an integer.
    fn word(&mut self, v: Value) {
        let word = match self.f.ty(v) {
            fixed::U32 => v,
            _ => self.put(Op::Cast, fixed::U32, &[v], 0),
        };
        self.words.push(word);
    }

    /// Reserves room for the words and stores them there.
    fn store(mut self, buffer: Value) {
        debug_assert!(self.words.len() >= RECORD_HEAD as usize);
        let (zero, one) = (self.f.const_u32(0), self.f.const_u32(1));
        let (count, room) = (self.f.const_u32(self.words.len() as u32), self.f.const_u32(WORDS));
        // A counter that stops behind the end does not come round.
        let used = self.put(Op::GpuAtomicAdd, fixed::U32, &[buffer, zero, zero], 0);
        let is_full = self.put(Op::IcmpUge, fixed::BOOL, &[used, room], 0);
        let count = self.put(Op::Select, fixed::U32, &[is_full, zero, count], 0);
        let mut at = self.put(Op::GpuAtomicAdd, fixed::U32, &[buffer, zero, count], 0);
        for word in std::mem::take(&mut self.words) {
            at = self.put(Op::IAdd, fixed::U32, &[at, one], 0);
            let (none, unit) = (Flags::NONE, fixed::UNIT);
            let args = [buffer, at, word];
            self.f.append(self.b, Op::GpuBufferStore, none, unit, &args, 0, self.span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_diag::FileId;
    use magpie_mpir::verify::{Stage, verify_fn};
    use magpie_mpir::{parse, print_fn};

    fn lowered(body: &str) -> (Module, MpirFn) {
        let head = "gpu fn m.@k(%n: i32, %x: f64, %h: f16, %b: bool) -> unit workgroup(1, 1, 1)";
        let mut m = parse(&format!("{head} {{\nbb0:\n{body}  ret\n}}\n"), FileId(0)).unwrap();
        lower_prints(&mut m, FnId(0));
        verify_fn(&m, m.func(FnId(0)), Stage::Core).unwrap();
        let f = m.func(FnId(0)).clone();
        (m, f)
    }

    #[test]
    fn values_become_words_and_constants_text() {
        let (m, f) = lowered("  gpu.print Str \"n is\", %n, u64 7, %x, %h, %b\n  gpu.print\n");
        assert!(!prints(&f), "{}", print_fn(&m, &f));
        assert_eq!((f.params.len(), f.prints.len()), (5, 2));
        let [value, text] = [PrintPart::Value, |_| PrintPart::Text("n is".into())];
        let parts = [
            text(PrimType::Unit),
            value(PrimType::I32),
            PrintPart::Text("7".into()),
            value(PrimType::F64),
            value(PrimType::F16),
            value(PrimType::Bool),
        ];
        assert_eq!(f.prints[0].parts, parts);
        let stores = |f: &MpirFn| {
            let insts = f.blocks[0].insts.iter().map(|&i| f.inst(i).op);
            insts.filter(|&op| op == Op::GpuBufferStore).count() as u32
        };
        assert_eq!(stores(&f), f.prints.iter().map(PrintSite::record_words).sum::<u32>());
    }

    #[test]
    fn kernels_that_do_not_print_stay_as_they_are() {
        let (_, f) = lowered("");
        assert_eq!((f.params.len(), f.prints.len()), (4, 0));
    }
}
