//! Global value numbering: equal computations are done once.
//!
//! A walk down the dominator tree with a table of the computations seen. Loads take part with the
//! state of their memory class as a further operand. States are numbered: a write starts a new
//! one, and so does a block where ways with different states meet or that begins a loop which
//! writes the class.

use super::PassContext;
use super::context::refill;
use super::fold::is_commutative;
use super::replacements::Replacements;
use crate::analysis::guards::{Bound, Guards};
use crate::analysis::predicate::Relation;
use crate::analysis::{Cfg, ClassSet, Dominators, Loops, MemoryClasses};
use crate::{Block, Domain, Inst, Memory, MpirFn, Op, Value};
use magpie_types::{PrimType, TypeCtx};
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Replaces computations, and loads that no write can have changed, by equal ones that dominate
/// them; and behind a branch, its condition and what it compares with a constant by what the
/// branch proves.
pub fn gvn(f: &mut MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> bool {
    if f.domain == Domain::Host {
        return false;
    }
    ctx.find_loops(f);
    let PassContext {
        cfg, dom, loops, memory, guards, replacements, numbering, insts: kept, ..
    } = ctx;
    let Numbering { table, states, known } = numbering;
    memory.compute(f, types);
    guards.compute(f, cfg, dom);
    states.start(f, cfg, loops, memory);
    let stores = f.blocks.iter().flat_map(|b| &b.insts).filter(|&&i| is_forwarded(f, i)).count();
    table.start(f.live_inst_count() + stores);
    known.start(f);
    replacements.start(f);
    let mut changed = false;
    for &b in dom.preorder() {
        known.enter(f, guards, dom, b);
        states.enter(cfg, loops, b);
        let mut insts = std::mem::take(&mut f.block_mut(b).insts);
        kept.clear();
        for &i in &insts {
            replacements.resolve_args(f, i);
            let op = f.inst(i).op;
            // A phi reads its operands elsewhere.
            if op != Op::Phi {
                changed |= known.resolve_args(f, i);
            }
            let version = match is_numbered_load(op) {
                true => states.version(memory.effects(f, i).reads),
                false => has_one_result(op).then_some(0),
            };
            let leader = match (version, f.inst(i).result()) {
                (Some(version), Some(_)) => table.find_or_insert(f, i, b, version, dom),
                _ => {
                    let written = memory.effects(f, i).writes;
                    states.write(written);
                    if is_forwarded(f, i)
                        && let Some(version) = states.version(written)
                    {
                        forward(f, table, replacements, (i, b, version), dom);
                    }
                    None
                }
            };
            match leader.and_then(|l| f.inst(l).result()).zip(f.inst(i).result()) {
                Some((leader, result)) => replacements.set(result, leader),
                None => kept.push(i),
            }
        }
        changed |= kept.len() != insts.len();
        insts.clear();
        insts.extend_from_slice(kept);
        states.leave(b);
        let block = f.block_mut(b);
        block.insts = insts;
        if let Some(v) = block.term.operand_mut() {
            let before = replacements.get(*v);
            *v = known.get(before);
            changed |= *v != before;
        }
    }
    replacements.apply(f);
    changed
}

fn is_numbered_load(op: Op) -> bool {
    matches!(op, Op::GpuBufferLoad | Op::GpuLeafLoad | Op::MemLoad)
}

/// Whether what an instruction stores is what a load from there gives. A store to a buffer may be
/// dropped.
fn is_forwarded(f: &MpirFn, i: Inst) -> bool {
    f.inst(i).op == Op::MemStore
}

/// Remembers a load that no block lists behind a store to the same place, and that it gives what
/// is stored.
fn forward(
    f: &mut MpirFn,
    table: &mut Table,
    replacements: &mut Replacements,
    (store, b, version): (Inst, Block, u32),
    dom: &Dominators,
) {
    let inst = *f.inst(store);
    let &[address, stored] = f.args(store) else { return };
    let ty = f.ty(stored);
    let load = f.make_inst(Op::MemLoad, inst.flags, ty, &[address], inst.imm, inst.span);
    if table.find_or_insert(f, load, b, version, dom).is_none()
        && let Some(loaded) = f.inst(load).result()
    {
        replacements.set(loaded, stored);
    }
}

/// Whether equal operands give equal results; an op that traps has then trapped before.
fn has_one_result(op: Op) -> bool {
    let info = op.info();
    let only_traps = info.may_trap && info.memory == Memory::None && !info.convergent;
    op == Op::Phi || op.is_pure() || only_traps
}

/// Working memory of the pass.
#[derive(Clone, Default, Debug)]
pub(super) struct Numbering {
    table: Table,
    states: States,
    known: Known,
}

// ----- the table -----

const EMPTY: u32 = u32::MAX;

/// A place of the index: the hash beside the entry, so that most others are passed over here.
#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    entry: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    inst: Inst,
    block: Block,
    version: u32,
}

/// The computations seen, in a list and an index into it by hash in open addressing. An entry whose
/// block does not dominate the current one never will again, and gives its place to an equal one.
#[derive(Clone, Default, Debug)]
struct Table {
    index: Vec<Slot>,
    entries: Vec<Entry>,
}

impl Table {
    fn start(&mut self, insts: usize) {
        let size = (insts + insts / 2).next_power_of_two().max(16);
        refill(&mut self.index, size, Slot { hash: 0, entry: EMPTY });
        self.entries.clear();
    }

    /// The equal instruction that dominates `i`; otherwise `i` is remembered.
    fn find_or_insert(
        &mut self,
        f: &MpirFn,
        i: Inst,
        block: Block,
        version: u32,
        dom: &Dominators,
    ) -> Option<Inst> {
        let hash = hash(f, i, block, version);
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        let new = Entry { inst: i, block, version };
        while self.index[at].entry != EMPTY {
            if self.index[at].hash == hash {
                let entry = &mut self.entries[self.index[at].entry as usize];
                if entry.version == version && are_equal(f, entry.inst, entry.block, i, block) {
                    if dom.dominates(entry.block, block) {
                        return Some(entry.inst);
                    }
                    *entry = new;
                    return None;
                }
            }
            at = (at + 1) & mask;
        }
        self.index[at] = Slot { hash, entry: self.entries.len() as u32 };
        self.entries.push(new);
        None
    }
}

fn hash(f: &MpirFn, i: Inst, block: Block, version: u32) -> u32 {
    let inst = f.inst(i);
    let mut h = FxHasher::default();
    h.write_u32(inst.op as u32 | (inst.flags.0 as u32) << 8);
    h.write_u32(inst.ty.0);
    h.write_u32(version);
    if inst.op == Op::Phi {
        h.write_u32(block.0);
    } else {
        h.write_u64(inst.imm);
    }
    match *f.args(i) {
        [x, y, ref rest @ ..] if is_commutative(inst.op) => {
            h.write_u32(x.0.min(y.0));
            h.write_u32(x.0.max(y.0));
            rest.iter().for_each(|v| h.write_u32(v.0));
        }
        ref args => args.iter().for_each(|v| h.write_u32(v.0)),
    }
    // Ids are close to each other: without another round their hashes lie in clusters.
    let mixed = (h.finish() ^ h.finish() >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

fn are_equal(f: &MpirFn, a: Inst, block_a: Block, b: Inst, block_b: Block) -> bool {
    let (x, y) = (f.inst(a), f.inst(b));
    if (x.op, x.flags, x.ty) != (y.op, y.flags, y.ty) {
        return false;
    }
    if x.op == Op::Phi {
        return block_a == block_b && f.phi_arms(a).eq(f.phi_arms(b));
    }
    let swapped = || match (f.args(a), f.args(b)) {
        ([a0, a1, ra @ ..], [b0, b1, rb @ ..]) => a0 == b1 && a1 == b0 && ra == rb,
        _ => false,
    };
    x.imm == y.imm && (f.args(a) == f.args(b) || is_commutative(x.op) && swapped())
}

// ----- states of memory -----

/// Numbers for the content of each memory class. Classes that are never written stay at 0.
#[derive(Clone, Default, Debug)]
struct States {
    classes: usize,
    written: ClassSet,
    written_in_loop: Vec<ClassSet>,
    is_reducible: bool,
    /// By class.
    now: Vec<u32>,
    /// By block and class: the state behind a block.
    behind: Vec<u32>,
    next: u32,
}

impl States {
    fn start(&mut self, f: &MpirFn, cfg: &Cfg, loops: &Loops, memory: &MemoryClasses) {
        self.classes = memory.count();
        self.written = ClassSet::NONE;
        self.is_reducible = loops.is_reducible();
        self.next = 1;
        refill(&mut self.now, self.classes, 0);
        refill(&mut self.written_in_loop, loops.ids().len(), ClassSet::NONE);
        for &b in cfg.rpo() {
            let block = f.block(b).insts.iter();
            let writes =
                block.map(|&i| memory.effects(f, i).writes).fold(ClassSet::NONE, ClassSet::union);
            self.written = self.written.union(writes);
            if let Some(l) = loops.innermost(b) {
                let all = &mut self.written_in_loop[l.index()];
                *all = all.union(writes);
            }
        }
        for l in loops.ids().rev() {
            if let Some(outer) = loops.parent(l) {
                let writes = self.written_in_loop[l.index()];
                let all = &mut self.written_in_loop[outer.index()];
                *all = all.union(writes);
            }
        }
        if self.classes < 64 {
            self.written.0 &= (1 << self.classes) - 1;
        }
        let cells = if self.written.is_empty() { 0 } else { f.blocks.len() * self.classes };
        refill(&mut self.behind, cells, 0);
    }

    fn enter(&mut self, cfg: &Cfg, loops: &Loops, b: Block) {
        let of_loop = loops.innermost(b).filter(|&l| loops.header(l) == b);
        for class in self.written.iter() {
            let mut state = None;
            let mut differ = of_loop
                .is_some_and(|l| self.written_in_loop[l.index()].intersects(ClassSet(1 << class)));
            for &p in cfg.preds(b).iter().filter(|&&p| cfg.is_reachable(p)) {
                if cfg.is_retreating(p, b) {
                    differ |= !self.is_reducible;
                } else {
                    let behind = self.behind[p.index() * self.classes + class];
                    differ |= *state.get_or_insert(behind) != behind;
                }
            }
            self.now[class] = match state {
                Some(state) if !differ => state,
                _ => self.fresh(),
            };
        }
    }

    fn leave(&mut self, b: Block) {
        for class in self.written.iter() {
            self.behind[b.index() * self.classes + class] = self.now[class];
        }
    }

    fn write(&mut self, classes: ClassSet) {
        for class in ClassSet(classes.0 & self.written.0).iter() {
            self.now[class] = self.fresh();
        }
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// The state of a single class; `None` when the memory is not known.
    fn version(&self, class: ClassSet) -> Option<u32> {
        (class.0.count_ones() == 1).then(|| self.now[class.0.trailing_zeros() as usize])
    }
}

// ----- what branches prove -----

/// Values that are known constants in the blocks below the current ones in the dominator tree.
#[derive(Clone, Default, Debug)]
struct Known {
    constant: Vec<u32>,
    /// What was learnt, newest last: the value, and what was known of it before.
    learnt: Vec<(Value, u32)>,
    scopes: Vec<(Block, usize)>,
}

impl Known {
    fn start(&mut self, f: &MpirFn) {
        refill(&mut self.constant, f.locals.len(), EMPTY);
        self.learnt.clear();
        self.scopes.clear();
    }

    fn enter(&mut self, f: &mut MpirFn, guards: &Guards, dom: &Dominators, b: Block) {
        while let Some(&(from, first)) = self.scopes.last()
            && !dom.dominates(from, b)
        {
            for (v, before) in self.learnt.drain(first..).rev() {
                self.constant[v.index()] = before;
            }
            self.scopes.pop();
        }
        let first = self.learnt.len();
        for guard in guards.of(b) {
            if guard.predicate.relation != Relation::Eq || f.as_const(guard.left).is_some() {
                continue;
            }
            let ty = f.ty(guard.left);
            let bits = match guard.right {
                Bound::Bits(bits) => Some(bits),
                Bound::Value(v) => f.as_bits(v),
            };
            if let Some(bits) = bits.filter(|_| PrimType::from_id(ty).is_some()) {
                let constant = f.const_bits(ty, bits);
                let slot = &mut self.constant[guard.left.index()];
                self.learnt.push((guard.left, std::mem::replace(slot, constant.0)));
            }
        }
        if self.learnt.len() > first {
            self.scopes.push((b, first));
        }
    }

    fn get(&self, v: Value) -> Value {
        match self.constant.get(v.index()) {
            Some(&c) if c != EMPTY => Value(c),
            _ => v,
        }
    }

    fn resolve_args(&self, f: &mut MpirFn, i: Inst) -> bool {
        let mut changed = false;
        if !self.scopes.is_empty() {
            for v in f.args_mut(i) {
                let known = self.get(*v);
                changed |= known != *v;
                *v = known;
            }
        }
        changed
    }
}
