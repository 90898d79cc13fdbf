//! Accesses of buffers that no comparison guards: a lint of `magpie check`.
//!
//! An access counts as guarded when a branch that decides whether it is executed compares a value
//! that its index is made of, or when the index is cut to size where it is computed.

use magpie_diag::{Code, Diagnostic, sort_diagnostics};
use magpie_mpir::analysis::{Cfg, Dominators};
use magpie_mpir::{Block, Flags, Inst, Memory, MpirFn, Op, Value, ValueDef};
use magpie_types::{TypeCtx, TypeKind};

/// Values looked at to find what an index or a condition is made of.
const MANY: usize = 64;

/// Reports each checked access of a closed kernel to a buffer with no visible guard
/// (`MPG_CORE_1404`).
pub fn check_bounds_guards(kernel: &MpirFn, types: &TypeCtx) -> Vec<Diagnostic> {
    let f = kernel;
    if f.blocks.is_empty() {
        return Vec::new();
    }
    let cfg = Cfg::new(f);
    let dom = Dominators::new(&cfg);
    let mut out = Vec::new();
    // How many conditions around the place mention a value.
    let mut guarded = vec![0u32; f.locals.len()];
    let mut open: Vec<(Block, Vec<Value>)> = Vec::new();
    for &b in dom.preorder() {
        while let Some((above, values)) = open.pop_if(|(above, _)| !dom.dominates(*above, b)) {
            let _ = above;
            values.iter().for_each(|v| guarded[v.index()] -= 1);
        }
        let condition = match *cfg.preds(b) {
            [p] if cfg.succs(p).len() > 1 => f.block(p).term.operand(),
            _ => None,
        };
        let values = condition.map_or_else(Vec::new, |c| parts(f, c));
        values.iter().for_each(|v| guarded[v.index()] += 1);
        open.push((b, values));
        for &i in &f.block(b).insts {
            if let Some(index) = checked_index(f, types, i)
                && !is_cut(f, index)
                && parts(f, index).iter().all(|v| guarded[v.index()] == 0)
            {
                out.push(finding(f, i));
            }
        }
    }
    sort_diagnostics(&mut out);
    out
}

fn finding(f: &MpirFn, i: Inst) -> Diagnostic {
    let buffer = f.args(i).first().and_then(|&v| match f.def(v) {
        ValueDef::Param(n) => f.param_names.get(n as usize),
        ValueDef::Inst(_) | ValueDef::Const(_) => None,
    });
    let of = buffer.map_or(String::new(), |name| format!(" of `%{name}`"));
    let message = format!("no comparison guards the index of this access{of}");
    Diagnostic::new(Code::MPG_CORE_1404, f.inst(i).span, message)
        .with_note("outside of the buffer a load gives zero, and a store is dropped")
        .with_help("compare the index with the number of elements (`gpu.buffer_len`) first")
}

/// The index of an access of a buffer that is checked when it is executed.
fn checked_index(f: &MpirFn, types: &TypeCtx, i: Inst) -> Option<Value> {
    let data = f.inst(i);
    let accesses = matches!(data.op.info().memory, Memory::Read | Memory::Write | Memory::Atomic);
    let &[memory, index, ..] = f.args(i) else { return None };
    let is_buffer = matches!(types.kind(f.ty(memory)), TypeKind::Buffer(_));
    let is_known = f.as_const(index).is_some();
    (accesses && is_buffer && !is_known && !data.flags.contains(Flags::UNCHECKED)).then_some(index)
}

/// Whether the index is a remainder, masked, or a minimum.
fn is_cut(f: &MpirFn, index: Value) -> bool {
    let mut v = index;
    while f.def_op(v) == Some(Op::Cast)
        && let Some(i) = f.def_inst(v)
    {
        v = f.arg(i, 0);
    }
    matches!(f.def_op(v), Some(Op::IUrem | Op::IAnd | Op::IUmin | Op::ISmin))
}

/// The values that a value is computed from, itself included, without constants.
fn parts(f: &MpirFn, v: Value) -> Vec<Value> {
    let mut found = Vec::new();
    let mut work = vec![v];
    while let Some(v) = work.pop() {
        if f.as_const(v).is_some() || found.contains(&v) || found.len() >= MANY {
            continue;
        }
        found.push(v);
        if let Some(i) = f.def_inst(v)
            && f.inst(i).op.is_pure()
        {
            work.extend(f.args(i));
        }
    }
    found
}
