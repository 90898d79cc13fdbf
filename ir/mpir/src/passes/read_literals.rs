//! The lengths of literals, and whether they are ASCII, where a function became part of another one.
//!
//! A function asks its parameter, a text, what it is. Inlined with a literal in its place, it is known:
//!
//! ```text
//! %n = mem.load [header] offset=32 Str "abc"     ⇒     i64 3
//! ```

use super::PassContext;
use crate::{Const, Domain, Inst, Module, MpirFn, Op, Value};
use magpie_types::abi::object_layout::{FLAG_ASCII, FLAG_IMMORTAL, FLAGS, STR_LEN};

/// Replaces loads from the heads of literals in lowered host code.
pub fn read_literals(f: &mut MpirFn, m: &Module, ctx: &mut PassContext) -> bool {
    if f.domain != Domain::LowHost {
        return false;
    }
    let PassContext { replacements, insts: gone, .. } = ctx;
    replacements.start(f);
    gone.clear();
    for b in f.block_ids() {
        for n in 0..f.block(b).insts.len() {
            let i = f.block(b).insts[n];
            if let Some((old, known)) = known(f, m, i) {
                replacements.set(old, known);
                gone.push(i);
            }
        }
    }
    if gone.is_empty() {
        return false;
    }
    gone.sort_unstable();
    for block in &mut f.blocks {
        block.insts.retain(|i| gone.binary_search(i).is_err());
    }
    replacements.apply(f);
    true
}

/// What a load gives, and the constant that it is.
fn known(f: &mut MpirFn, m: &Module, i: Inst) -> Option<(Value, Value)> {
    let data = *f.inst(i);
    if data.op != Op::MemLoad {
        return None;
    }
    let Some(Const::Str(text)) = f.as_const(f.arg(i, 0)) else { return None };
    let text = m.str(text);
    let bits = match data.imm as u32 {
        STR_LEN => text.len() as u64,
        FLAGS => u64::from(FLAG_IMMORTAL | if text.is_ascii() { FLAG_ASCII } else { 0 }),
        _ => return None,
    };
    Some((data.result()?, f.const_bits(data.ty, bits)))
}
