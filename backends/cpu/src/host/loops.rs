//! Loops: conditions at the end of a round, and values from outside.

use super::Translator;
use super::signature::machine_type;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, types};
use magpie_mpir::analysis::{Cfg, LoopId, Positions};
use magpie_mpir::{Block, Inst, Op, Terminator, Value};

/// Instructions of the head of a loop, phis not counted, that are worth being emitted again.
const MAX_ROTATED_INSTS: usize = 8;
/// Blocks before the head of a loop, each of which gets a copy.
const MAX_ROTATED_PREDS: usize = 4;
/// Values from outside that a loop gets copies of.
const MAX_KEPT: usize = 16;

impl Translator<'_, '_, '_> {
    /// Whether a block is the head of a loop that is small enough to be emitted more than once.
    pub(super) fn is_worth_rotating(&self, cfg: &Cfg, b: Block) -> bool {
        let f = self.f;
        let preds = cfg.preds(b);
        let is_loop = preds.iter().any(|&p| cfg.is_reachable(p) && cfg.is_retreating(p, b));
        let mut insts = f.block(b).insts.iter().filter(|&&i| f.inst(i).op != Op::Phi);
        let is_cheap = |&i: &Inst| {
            !self.is_of_vectors(i)
                && !matches!(
                    f.inst(i).op,
                    Op::Call | Op::CallAddr | Op::RtRaw | Op::StackSlot | Op::StructNew
                )
        };
        is_loop
            && b != Block(0)
            && !preds.contains(&b)
            && preds.len() <= MAX_ROTATED_PREDS
            && matches!(f.block(b).term, Terminator::Cbr { .. })
            && insts.clone().count() <= MAX_ROTATED_INSTS
            && !f.phis(b).any(|i| self.is_of_vectors(i))
            && insts.all(is_cheap)
    }

    /// Finds the values from outside that the innermost loops read. A value that lives across a
    /// call is kept in memory by the register allocator, and then it is in the whole loop behind
    /// the call, which reads and writes it there in each round. A copy made at the entry does not
    /// live across a call.
    pub(super) fn keep_in_loops(&mut self, cfg: &Cfg) {
        let f = self.f;
        let calls = |&b: &Block| {
            let is_call = |&i: &Inst| matches!(f.inst(i).op, Op::Call | Op::CallAddr | Op::RtRaw);
            !matches!(f.block(b).term, Terminator::Unreachable)
                && f.block(b).insts.iter().any(is_call)
        };
        if !cfg.rpo().iter().any(calls) {
            return;
        }
        let positions = Positions::new(f);
        // The last loop for which each value was noted, plus one.
        let mut noted = vec![0; f.locals.len()];
        for l in self.loops.ids() {
            let blocks = self.loops.blocks(l);
            let is_short = self.loops.is_innermost(l) && !blocks.iter().any(calls);
            if !is_short || !self.rotated[self.loops.header(l).index()] {
                continue;
            }
            let mut kept = Vec::new();
            let insts = blocks.iter().flat_map(|&b| &f.block(b).insts);
            for &v in insts.filter(|&&i| f.inst(i).op != Op::Phi).flat_map(|&i| f.args(i)) {
                let is_outside = self.registers_of(f.ty(v)).is_empty()
                    && !self.module.types.is_aggregate(f.ty(v))
                    && positions.def_block(f, v).is_some_and(|b| !self.loops.contains(l, b));
                if is_outside
                    && kept.len() < MAX_KEPT
                    && std::mem::replace(&mut noted[v.index()], l.0 + 1) != l.0 + 1
                {
                    kept.push(v);
                }
            }
            let declare = |v: Value| (v, machine_type(&self.module.types, f.ty(v)));
            let kept = kept.into_iter().map(declare);
            let kept = kept.filter(|(_, ty)| matches!(ty.bytes(), 4 | 8) && !ty.is_vector());
            let kept = kept.map(|(v, ty)| (v, self.b.declare_var(ty))).collect();
            self.kept.insert(l, kept);
        }
    }

    /// Copies what a loop reads from outside, in front of it.
    pub(super) fn keep(&mut self, l: LoopId) {
        let Some(kept) = self.kept.get(&l).filter(|kept| !kept.is_empty()).cloned() else { return };
        let values: Vec<ir::Value> = kept.iter().map(|&(v, _)| self.value(v)).collect();
        let copies = self.through_memory(&values);
        for (&(_, variable), copy) in kept.iter().zip(copies) {
            self.b.def_var(variable, copy);
        }
    }

    /// Copies of values, at most [`MAX_KEPT`], that the optimiser does not know to be copies, so
    /// that the register allocator finds places for them without regard to the values' own.
    pub(super) fn through_memory(&mut self, values: &[ir::Value]) -> Vec<ir::Value> {
        let slot = *self.passage.get_or_insert_with(|| {
            let size = 8 * MAX_KEPT as u32;
            self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3))
        });
        let to = self.b.ins().stack_addr(types::I64, slot, 0);
        // With a zero of which it does not know, the optimiser does not see that what is loaded is
        // what was stored.
        let address = *self.zero.get_or_insert_with(|| self.code.runtime.c_string(""));
        let address = self.b.ins().iconst(types::I64, address as i64);
        let trusted = MemFlagsData::trusted();
        let zero = self.b.ins().uload8(types::I64, trusted, address, 0);
        let from = self.b.ins().iadd(to, zero);
        for (n, &value) in (0..).zip(values) {
            self.b.ins().store(trusted, value, to, 8 * n);
        }
        let types = values.iter().map(|&value| self.b.func.dfg.value_type(value));
        let types: Vec<ir::Type> = types.collect();
        (0..).zip(types).map(|(n, ty)| self.b.ins().load(ty, trusted, from, 8 * n)).collect()
    }

    /// Emits the head of a loop at the end of a block before it.
    pub(super) fn head(&mut self, from: Block, head: Block) {
        let f = self.f;
        self.here = self.loops.innermost(from);
        let arms = |phi| Some((f.inst(phi).result()?, f.phi_value(phi, from)?));
        let arms: Vec<(Value, Value)> = f.phis(head).filter_map(arms).collect();
        // An arm may be another phi of the head: all are read before any changes.
        let read: Vec<ir::Value> = arms.iter().map(|&(_, arm)| self.value(arm)).collect();
        for (&(v, _), value) in arms.iter().zip(read) {
            self.define(v, value);
        }
        if let Some(l) = self.loops.innermost(head).filter(|&l| !self.loops.contains(l, from)) {
            self.keep(l);
        }
        self.block(head);
    }
}
