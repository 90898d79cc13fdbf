//! Keeps SSA right while edges are rerouted.
//!
//! An edge that is rerouted becomes a *transfer*: at the block where it starts (the source) its
//! target and the arms of the target's phis are put into variables; control then passes any number
//! of joins until a dispatch reads the target and goes there. One transfer is under way at a time,
//! so one selector variable serves the whole function, and slots for phis can be shared.
//!
//! When the graph is final, [`Transfers::resolve`] repairs values whose definition no longer
//! dominates a use because of a join between them, and turns the variables into phis.

use super::escapes::{Escapes, Site};
use super::ssa::{At, Builder, Out, Undefined};
use magpie_diag::Span;
use magpie_mpir::analysis::{Cfg, Dominators, Loops};
use magpie_mpir::{Block, Flags, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::{TypeId, fixed};
use rustc_hash::FxHashMap;

/// The dominator tree from before edges are rerouted.
pub(super) struct Before {
    dom: Dominators,
    num_blocks: usize,
}

impl Before {
    pub(super) fn new(f: &MpirFn) -> Before {
        Before { dom: Dominators::new(&Cfg::new(f)), num_blocks: f.blocks.len() }
    }

    /// False for blocks that came later.
    fn dominates(&self, a: Block, b: Block) -> bool {
        let is_old = |b: Block| b.index() < self.num_blocks;
        is_old(a) && is_old(b) && self.dom.dominates(a, b)
    }
}

/// A variable that is still to be turned into SSA values.
struct Variable {
    ty: TypeId,
    /// Values at the ends of blocks.
    defs: Vec<(Block, Value)>,
    /// Blocks that read it, and the value that stands for what they read. It is an unlisted
    /// instruction's result until then.
    reads: Vec<(Block, Value)>,
}

/// The transfers of a function.
pub(super) struct Transfers {
    /// Blocks where a transfer starts: what other transfers carried is dead there.
    is_source: Vec<bool>,
    /// Blocks that hand a transfer on.
    passes: Vec<bool>,
    is_lowered: Vec<bool>,
    selector: Variable,
    slots: Vec<Variable>,
    /// The slots that many targets share.
    shared_slots: FxHashMap<(TypeId, u32), usize>,
}

/// The first so many slots belong to one phi each, which keeps unrelated values apart in the code
/// of drivers; then targets share, so that phis do not multiply.
const OWN_SLOTS: usize = 256;

/// The blocks that a choice by the selector took.
#[derive(Default)]
pub(super) struct Dispatch {
    pub(super) blocks: Vec<Block>,
    /// Those of them that are reached when no target is selected.
    pub(super) open: Vec<Block>,
}

fn set(flags: &mut Vec<bool>, b: Block) {
    if flags.len() <= b.index() {
        flags.resize(b.index() + 1, false);
    }
    flags[b.index()] = true;
}

fn get(flags: &[bool], b: Block) -> bool {
    flags.get(b.index()).copied().unwrap_or(false)
}

impl Transfers {
    pub(super) fn new() -> Transfers {
        Transfers {
            is_source: Vec::new(),
            passes: Vec::new(),
            is_lowered: Vec::new(),
            selector: Variable { ty: fixed::U32, defs: Vec::new(), reads: Vec::new() },
            slots: Vec::new(),
            shared_slots: FxHashMap::default(),
        }
    }

    /// Marks a block through which transfers go on their way.
    pub(super) fn set_passing(&mut self, b: Block) {
        set(&mut self.passes, b);
    }

    /// Whether transfers go through the block.
    pub(super) fn is_passing(&self, b: Block) -> bool {
        get(&self.passes, b)
    }

    /// Lets the edge from `from`, which has one successor, be a transfer to `target`.
    pub(super) fn start(&mut self, f: &mut MpirFn, from: Block, target: Block) {
        let id = f.const_u32(target.0);
        self.selector.defs.push((from, id));
        if !self.is_passing(from) {
            set(&mut self.is_source, from);
        }
    }

    /// Takes the phis of a block away: each becomes a slot that every predecessor fills. The
    /// predecessors must have one successor each. Does nothing the second time.
    pub(super) fn lower_phis(&mut self, f: &mut MpirFn, target: Block) {
        if get(&self.is_lowered, target) {
            return;
        }
        set(&mut self.is_lowered, target);
        let phis: Vec<Inst> = f.phis(target).collect();
        f.block_mut(target).insts.drain(..phis.len());
        let mut used: FxHashMap<TypeId, u32> = FxHashMap::default();
        for phi in phis {
            let data = *f.inst(phi);
            let Some(result) = data.result() else { continue };
            let nth = used.entry(data.ty).or_insert(0);
            let slot = match self.shared_slots.get(&(data.ty, *nth)) {
                Some(&slot) => slot,
                None => {
                    self.slots.push(Variable { ty: data.ty, defs: vec![], reads: vec![] });
                    let slot = self.slots.len() - 1;
                    if slot >= OWN_SLOTS {
                        self.shared_slots.insert((data.ty, *nth), slot);
                    }
                    slot
                }
            };
            *nth += 1;
            for (pred, value) in f.phi_arms(phi) {
                set(&mut self.is_source, pred);
                self.slots[slot].defs.push((pred, value));
            }
            self.slots[slot].reads.push((target, result));
        }
    }

    /// Appends the question whether the transfer under way goes to `target`.
    pub(super) fn is_selected(
        &mut self,
        f: &mut MpirFn,
        at: Block,
        target: Block,
        span: Span,
    ) -> Value {
        self.compare(f, Op::IcmpEq, at, target, span)
    }

    fn compare(&mut self, f: &mut MpirFn, op: Op, at: Block, target: Block, span: Span) -> Value {
        let selector = self.read_selector(f, at, span);
        let id = f.const_u32(target.0);
        let i = f.make_inst(op, Flags::NONE, fixed::BOOL, &[selector, id], 0, span);
        f.block_mut(at).insts.push(i);
        f.inst(i).result().unwrap_or(selector)
    }

    /// Ends `at` in a choice among `targets` by the selector. With `or_else` the selector may name
    /// something else too: then control goes to a new empty block, which is the caller's to end.
    /// (A `switch` would not do: an arm that leaves a loop goes behind it as a transfer of its
    /// own.)
    pub(super) fn dispatch(
        &mut self,
        f: &mut MpirFn,
        at: Block,
        targets: &[Block],
        or_else: bool,
    ) -> Dispatch {
        let mut targets = targets.to_vec();
        targets.sort_unstable();
        let mut new = Dispatch::default();
        let span = f.block(at).term_span;
        // A binary search: its depth is the logarithm of the number of targets.
        let mut work = vec![(at, &targets[..])];
        while let Some((at, targets)) = work.pop() {
            let mut add = |f: &mut MpirFn, this: &mut Transfers| {
                let b = f.add_block();
                f.block_mut(b).term_span = span;
                this.set_passing(b);
                new.blocks.push(b);
                b
            };
            f.block_mut(at).term = match *targets {
                [] => Terminator::Unreachable,
                [only] if !or_else => Terminator::Br(only),
                [then] => {
                    let cond = self.is_selected(f, at, then, span);
                    let else_ = add(f, self);
                    new.open.push(else_);
                    Terminator::Cbr { cond, then, else_ }
                }
                [then, else_] if !or_else => {
                    let cond = self.is_selected(f, at, then, span);
                    Terminator::Cbr { cond, then, else_ }
                }
                _ => {
                    let (low, high) = targets.split_at(targets.len() / 2);
                    let cond = self.compare(f, Op::IcmpUlt, at, high[0], span);
                    let (then, else_) = (add(f, self), add(f, self));
                    work.extend([(else_, high), (then, low)]);
                    Terminator::Cbr { cond, then, else_ }
                }
            };
        }
        new
    }

    /// The target of the transfer under way, as a value readable at the end of a block that starts
    /// none.
    fn read_selector(&mut self, f: &mut MpirFn, at: Block, span: Span) -> Value {
        if let Some(&(block, value)) = self.selector.reads.last()
            && block == at
        {
            return value;
        }
        let placeholder = f.make_phi(fixed::U32, &[], span);
        let value = f.inst(placeholder).result().unwrap_or(Value(0));
        self.selector.reads.push((at, value));
        value
    }

    /// Whether no edge was rerouted and no join was made, so that every definition still dominates
    /// its uses.
    fn is_idle(&self) -> bool {
        self.selector.defs.is_empty() && self.slots.is_empty() && !self.passes.contains(&true)
    }

    /// The definitions of every slot.
    pub(super) fn slot_defs(&self) -> impl Iterator<Item = &[(Block, Value)]> {
        self.slots.iter().map(|s| &s.defs[..])
    }

    /// Where slots are read, and the values that stand for what is read.
    pub(super) fn slot_reads(&self) -> impl Iterator<Item = (Block, Value)> + '_ {
        self.slots.iter().flat_map(|s| s.reads.iter().copied())
    }

    /// Replaces all variables by values, on the final graph. `before` is the dominator tree from
    /// before edges were rerouted; blocks that came later are known to [`Transfers::set_passing`]
    /// or have their predecessor of that time in `origin`.
    pub(super) fn resolve(
        mut self,
        f: &mut MpirFn,
        before: &Before,
        origin: &FxHashMap<Block, Block>,
        undefined: &mut Undefined,
    ) {
        if self.is_idle() && origin.is_empty() {
            return;
        }
        let cfg = Cfg::new(f);
        let dom = Dominators::new(&cfg);
        let loops = Loops::new(&cfg, &dom);
        // First values whose definition no longer dominates a use. What reads a slot counts as
        // defined where it reads, so this comes before slots become values from elsewhere.
        let escapes = Escapes::find(f, &cfg, &dom, &self);
        let mut builder = Builder::new(f, &cfg, &loops, undefined);
        let mut replaced = Vec::with_capacity(escapes.uses.len());
        for (value, uses) in escapes.by_value() {
            let Some(def) = escapes.def_block[value.index()] else { continue };
            builder.begin(builder.f.ty(value));
            builder.define(def, value);
            let outside = |b: Block| {
                if !get(&self.is_source, b) {
                    Out::FromAbove
                } else if dom.dominates(def, b) {
                    Out::Value(value)
                } else if before.dominates(def, origin.get(&b).copied().unwrap_or(b)) {
                    Out::FromAbove
                } else {
                    Out::Undefined
                }
            };
            let reads: Vec<_> = uses.iter().map(|u| (u.block, u.at)).collect();
            let values = builder.values(&reads, outside);
            replaced.extend(uses.iter().zip(values).map(|(u, v)| (u.site, v)));
        }
        builder.finish();
        for (site, value) in replaced {
            match site {
                Site::Operand(i, n) => f.args_mut(i)[n as usize] = value,
                Site::Slot(slot, n) => self.slots[slot as usize].defs[n as usize].1 = value,
                Site::Terminator(b) => {
                    if let Some(v) = f.block_mut(b).term.operand_mut() {
                        *v = value;
                    }
                }
            }
        }

        let mut builder = Builder::new(f, &cfg, &loops, undefined);
        let mut map = FxHashMap::default();
        for variable in self.slots.iter().chain([&self.selector]) {
            builder.begin(variable.ty);
            for &(b, v) in &variable.defs {
                builder.define(b, v);
            }
            let outside = |b: Block| match get(&self.is_source, b) {
                true => Out::Undefined,
                false => Out::FromAbove,
            };
            let reads: Vec<_> = variable.reads.iter().map(|&(b, _)| (b, At::Start)).collect();
            let values = builder.values(&reads, outside);
            for (&(_, placeholder), value) in variable.reads.iter().zip(values) {
                if placeholder != value {
                    map.insert(placeholder, value);
                }
            }
        }
        builder.finish();
        f.replace_uses(&map);
    }
}
