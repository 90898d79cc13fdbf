//! Dead code elimination: instructions without effect whose results nobody needs.

use super::PassContext;
use super::context::refill;
use crate::{Const, Domain, Inst, MpirFn, Op, Value};
use magpie_types::abi::RtFn;

/// Removes instructions that no effect and no branch depends on; cycles of phis too. A local array
/// goes with its stores when nothing reads it.
pub fn dce(f: &mut MpirFn, ctx: &mut PassContext) -> bool {
    if f.domain == Domain::Host {
        return false;
    }
    let PassContext { marks: live, insts: work, .. } = ctx;
    refill(live, f.num_insts(), false);
    work.clear();
    let mut waiting = WaitingStores::default();
    for block in &f.blocks {
        for &i in &block.insts {
            if is_root(f, i, &mut waiting) {
                live[i.index()] = true;
                work.push(i);
            }
        }
        if let Some(i) = block.term.operand().and_then(|v| f.def_inst(v))
            && !std::mem::replace(&mut live[i.index()], true)
        {
            work.push(i);
        }
    }
    while let Some(i) = work.pop() {
        let is_store = is_store(f.inst(i).op);
        for (n, &v) in f.args(i).iter().enumerate() {
            let Some(def) = f.def_inst(v) else { continue };
            if !std::mem::replace(&mut live[def.index()], true) {
                work.push(def);
            }
            if f.inst(def).op == Op::GpuLocal && !(is_store && n == 0) {
                waiting.release(v, |store| {
                    if !std::mem::replace(&mut live[store.index()], true) {
                        work.push(store);
                    }
                });
            }
        }
    }
    let mut changed = false;
    for block in &mut f.blocks {
        let before = block.insts.len();
        block.insts.retain(|i| live[i.index()]);
        changed |= block.insts.len() != before;
    }
    changed
}

fn is_store(op: Op) -> bool {
    matches!(op, Op::GpuBufferStore | Op::GpuLeafStore)
}

fn is_root(f: &MpirFn, i: Inst, waiting: &mut WaitingStores) -> bool {
    let op = f.inst(i).op;
    if op == Op::GpuLocal {
        return false;
    }
    if is_store(op)
        && let Some(&array) = f.args(i).first()
        && f.def_op(array) == Some(Op::GpuLocal)
    {
        waiting.add(array, i, f.locals.len());
        return false;
    }
    !op.is_removable() && !is_idle_release(f, i)
}

/// Whether an instruction releases what is never counted on any way: null, or a literal.
fn is_idle_release(f: &MpirFn, i: Inst) -> bool {
    let is_constant = |v| matches!(f.as_const(v), Some(Const::Zero | Const::Str(_)));
    if f.inst(i).op != Op::RtRaw || f.inst(i).rt() != RtFn::Release {
        return false;
    }
    let released = f.arg(i, 0);
    is_constant(released)
        || f.def_inst(released).is_some_and(|def| {
            f.inst(def).op == Op::Phi && f.phi_arms(def).all(|(_, arm)| is_constant(arm))
        })
}

/// Stores to local arrays, which are needed when the array is read. Lists by array, linked.
#[derive(Default)]
struct WaitingStores {
    last: Vec<u32>,
    stores: Vec<(Inst, u32)>,
}

const NONE: u32 = u32::MAX;

impl WaitingStores {
    fn add(&mut self, array: Value, store: Inst, values: usize) {
        if self.last.is_empty() {
            self.last.resize(values, NONE);
        }
        let before = std::mem::replace(&mut self.last[array.index()], self.stores.len() as u32);
        self.stores.push((store, before));
    }

    fn release(&mut self, array: Value, mut visit: impl FnMut(Inst)) {
        let Some(last) = self.last.get_mut(array.index()) else { return };
        let mut at = std::mem::replace(last, NONE);
        while let Some(&(store, before)) = self.stores.get(at as usize) {
            visit(store);
            at = before;
        }
    }
}
