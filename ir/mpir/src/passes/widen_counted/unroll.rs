//! The body several times for each comparison, without the checks that are known to hold:
//!
//! ```text
//! while i < end
//!     body(i), body(i + 1), body(i + 2), body(i + 3)
//!     i += 4
//! ```
//!
//! Accesses whose addresses differ by constants share one address. What is loaded from where the
//! round before has stored is carried over.

use super::super::context::refill;
use super::super::replacements::Replacements;
use super::super::unroll::Copier;
use super::append;
use super::enter::{enter, join};
use super::find::{Counted, LoopView};
use super::linear::Linear;
use super::memory::offset_of;
use crate::{Block, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::fixed;

/// Rounds for each comparison.
const ROUNDS: usize = 4;
/// In loops of at most [`SMALL_SIZE`] instructions.
const ROUNDS_OF_SMALL: usize = 8;
const SMALL_SIZE: usize = 16;

pub(super) struct Unrolled {
    rounds: usize,
    size: usize,
    /// What the addresses of the accesses begin with.
    bases: Vec<Linear>,
    accesses: Vec<Access>,
    /// The accesses that load what the one store of the round before has stored, and that.
    carried: Option<(usize, usize)>,
}

/// An access to memory.
#[derive(Clone, Copy)]
struct Access {
    inst: Inst,
    /// The number of its base.
    base: usize,
    /// The constant of its address.
    offset: i64,
}

impl Unrolled {
    pub(super) fn new(view: &LoopView, counted: &Counted) -> Unrolled {
        let f = view.f;
        let size = counted.candidate.size;
        let rounds = if size <= SMALL_SIZE { ROUNDS_OF_SMALL } else { ROUNDS };
        let (bases, accesses) = (Vec::new(), Vec::new());
        let mut unrolled = Unrolled { rounds, size: size * rounds, bases, accesses, carried: None };
        let insts = counted.blocks.iter().flat_map(|&b| &f.block(b).insts);
        for &inst in insts.filter(|&&i| matches!(f.inst(i).op, Op::MemLoad | Op::MemStore)) {
            let address = f.arg(inst, 0);
            let sum = Linear::of(view, counted.counter, address).filter(|sum| sum.step != 0);
            let Some(sum) = sum.filter(|sum| sum.pointer.is_some()) else { continue };
            let Some(offset) = offset_of(f, inst, &sum) else { continue };
            let last = sum.step.checked_mul(rounds as i64 - 1);
            if last.and_then(|last| last.checked_add(offset)).is_none_or(|last| !fits(last)) {
                continue;
            }
            let known = unrolled.bases.iter().position(|base| base.is_parallel(&sum));
            let base = known.unwrap_or_else(|| {
                unrolled.bases.push(sum);
                unrolled.bases.len() - 1
            });
            unrolled.accesses.push(Access { inst, base, offset });
        }
        unrolled.carried = unrolled.find_carried(view, counted);
        unrolled
    }

    fn find_carried(&self, view: &LoopView, counted: &Counted) -> Option<(usize, usize)> {
        let f = view.f;
        let is_always = |i| {
            let block = view.positions.block(i);
            block.is_some_and(|b| view.dom.dominates(b, counted.candidate.latch))
        };
        let insts = counted.blocks.iter().flat_map(|&b| &f.block(b).insts);
        let mut stores = insts.filter(|&&i| f.inst(i).op == Op::MemStore);
        let (&store, None) = (stores.next()?, stores.next()) else { return None };
        let n = self.accesses.iter().position(|a| a.inst == store && is_always(a.inst))?;
        let stored = &self.accesses[n];
        let before = stored.offset.checked_sub(self.bases[stored.base].step)?;
        let load = self.accesses.iter().position(|a| {
            (a.base, a.offset) == (stored.base, before)
                && f.inst(a.inst).ty == f.ty(f.arg(store, 1))
                && is_always(a.inst)
        })?;
        Some((load, n))
    }

    /// The number of instructions, about.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn build(
        &self,
        f: &mut MpirFn,
        counted: &Counted,
        values: &mut Vec<Value>,
        replacements: &mut Replacements,
    ) {
        let c = &counted.candidate;
        let entrance = enter(f, counted, self.rounds as u64);
        let bases: Vec<Value> =
            self.bases.iter().map(|base| base.base(f, entrance.decision)).collect();

        refill(values, f.locals.len(), Value(u32::MAX));
        let [start, head, body] = [(); 3].map(|()| f.add_block());
        let phis: Vec<Inst> = f.phis(c.header).collect();
        let mut carried = Vec::with_capacity(phis.len());
        for &phi in &phis {
            let inst = *f.inst(phi);
            let (Some(v), Some(first)) = (inst.result(), f.phi_value(phi, c.preheader)) else {
                continue;
            };
            let copy = f.make_phi(inst.ty, &[(start, first)], inst.span);
            f.block_mut(head).insts.push(copy);
            let Some(copied) = f.inst(copy).result() else { continue };
            carried.push((phi, copy, first, copied));
            values[v.index()] = copied;
        }
        let counter = values[counted.counter.index()];
        let span = f.block(c.header).term_span;
        for b in [start, head, body] {
            f.block_mut(b).term_span = span;
        }
        f.block_mut(start).term = Terminator::Br(head);
        let carried_over = self.carried.map(|(load, store)| {
            let Access { inst, base, offset } = self.accesses[load];
            let address = self.bases[base].at(f, start, bases[base], counted.first);
            let inst = *f.inst(inst);
            let args = [address];
            let first =
                f.append(start, Op::MemLoad, inst.flags, inst.ty, &args, offset as u64, inst.span);
            let phi = f.make_phi(inst.ty, &[(start, first.unwrap_or(address))], inst.span);
            f.block_mut(head).insts.push(phi);
            (self.accesses[load].inst, self.accesses[store].inst, phi)
        });
        let goes_on = append(f, head, Op::IcmpSlt, fixed::BOOL, &[counter, entrance.end]);
        f.block_mut(head).term = Terminator::Cbr { cond: goes_on, then: body, else_: c.header };
        let addresses: Vec<Value> = self
            .bases
            .iter()
            .zip(bases)
            .map(|(sum, base)| sum.at(f, body, base, counter))
            .collect();
        let holds = f.const_bool(true);

        let blocks: Vec<Block> = counted.blocks.iter().chain(&c.ends).copied().collect();
        let mut copier = Copier { f, blocks: &blocks, candidate: c, values, replacements };
        let (mut from, mut last_stored) = (body, None);
        for round in 0..self.rounds {
            let copies: Vec<Block> = blocks.iter().map(|_| copier.f.add_block()).collect();
            match round {
                0 => copier.f.block_mut(body).term = Terminator::Br(copies[0]),
                _ => copier.enter(from, copies[0], round),
            }
            let made = copier.copy_insts(&copies, blocks.len());
            for n in 0..blocks.len() {
                copier.copy_terminator(n, &copies, false);
            }
            for (i, copy) in made {
                if let Some((load, store, phi)) = carried_over {
                    let results = copier.f.inst(copy).result().zip(copier.f.inst(phi).result());
                    if let Some((loaded, before)) = results.filter(|_| i == load && round == 0) {
                        copier.replacements.set(loaded, before);
                    }
                    if i == store {
                        last_stored = Some(copier.f.arg(copy, 1));
                    }
                }
                if let Some(access) = self.accesses.iter().find(|a| a.inst == i) {
                    let step = self.bases[access.base].step;
                    copier.f.args_mut(copy)[0] = addresses[access.base];
                    copier.f.inst_mut(copy).imm = (access.offset + step * round as i64) as u64;
                }
            }
            for check in &counted.checks {
                let copy = copier.value(check.holds);
                if copy != check.holds {
                    copier.replacements.set(copy, holds);
                }
            }
            from = copies[copier.position(c.latch)];
        }
        // The next values of the phis, before the loop itself gets other first ones.
        let next: Vec<Option<Value>> = carried
            .iter()
            .map(|&(phi, ..)| copier.f.phi_value(phi, c.latch).map(|v| copier.value(v)))
            .collect();
        f.block_mut(from).term = Terminator::Br(head);
        for (&(_, copy, first, _), next) in carried.iter().zip(next) {
            let Some(next) = next else { continue };
            f.set_phi_arms(copy, &[(start, first), (from, next)]);
        }
        if let Some((_, _, phi)) = carried_over {
            let mut arms: Vec<_> = f.phi_arms(phi).collect();
            arms.extend(last_stored.map(|v| (from, v)));
            f.set_phi_arms(phi, &arms);
        }
        let left: Vec<Value> = carried.iter().map(|c| c.3).collect();
        join(f, counted, &entrance, start, (head, &left));
    }
}

/// Whether the machine has the number as a distance from an address.
pub(super) fn fits(offset: i64) -> bool {
    i32::try_from(offset).is_ok()
}
