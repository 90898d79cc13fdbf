//! `lower_arc`: makes the end of every owned value explicit.
//!
//! A front end guarantees that no path uses a value after giving it away. This pass adds
//! `arc.release` so that every path either gives an owned value away or releases it, once: behind
//! the last use in the block where its life ends, behind its definition when nothing uses it, or
//! at the beginning of a successor that does not need it any more; a critical edge is split for
//! that. Values seen through views ([`ownership::shows`]) live as long as the views are used.
//!
//! The life of each value is found by walking backwards from its uses, so the cost is the size of
//! the lives.

use crate::analysis::Cfg;
use crate::{Block, Domain, Flags, Inst, Module, MpirFn, Op, Terminator, Value, ownership};
use magpie_diag::Span;
use magpie_types::fixed;
use std::collections::BTreeMap;

/// Makes the end of every owned value explicit in all host functions that are not lowered. Returns
/// whether a release was added.
pub fn lower_arc(m: &mut Module) -> bool {
    let mut changed = false;
    for n in 0..m.fns.len() {
        if m.fns[n].domain == Domain::Host {
            let ends = ends_of_lives(m, &m.fns[n]);
            changed |= !ends.is_empty();
            ends.insert(&mut m.fns[n]);
        }
    }
    changed
}

/// Where a value is read inside its block: at the position of an instruction (behind all of them
/// for the terminator), and whether it is given away there.
#[derive(Clone, Copy)]
struct Use {
    block: Block,
    at: u32,
    gives_away: bool,
}

/// The uses of the owned values, by value.
#[derive(Default)]
struct Uses {
    inside: Vec<(Value, Use)>,
    /// Arms of phis: the value passes along the edge.
    on_edges: Vec<(Value, Block, Block)>,
}

const TERMINATOR: u32 = u32::MAX;

impl Uses {
    /// Collects the uses; sorted by value, then by place.
    fn collect(m: &Module, f: &MpirFn, cfg: &Cfg) -> Uses {
        let owner = owners(m, f, cfg);
        let mut uses = Uses::default();
        for &b in cfg.rpo() {
            let block = f.block(b);
            for (at, &i) in block.insts.iter().enumerate() {
                if f.inst(i).op == Op::Phi {
                    for (pred, v) in f.phi_arms(i) {
                        if let (Some(v), true) = (owner[v.index()], cfg.is_reachable(pred)) {
                            uses.on_edges.push((v, pred, b));
                        }
                    }
                    continue;
                }
                for (n, &v) in f.args(i).iter().enumerate() {
                    let Some(owned) = owner[v.index()] else { continue };
                    let gives_away = owned == v && ownership::takes_over(m, f, i, n);
                    uses.inside.push((owned, Use { block: b, at: at as u32, gives_away }));
                }
            }
            if let Some(v) = block.term.operand()
                && let Some(owned) = owner[v.index()]
            {
                let gives_away = owned == v && matches!(block.term, Terminator::Ret(_));
                uses.inside.push((owned, Use { block: b, at: TERMINATOR, gives_away }));
            }
        }
        uses.inside.sort_by_key(|(v, u)| (*v, u.block, u.at));
        uses.on_edges.sort_unstable();
        uses
    }
}

/// The owned value that each value is or shows, if any.
fn owners(m: &Module, f: &MpirFn, cfg: &Cfg) -> Vec<Option<Value>> {
    let mut owner = vec![None; f.locals.len()];
    let mut define = |v: Value| {
        owner[v.index()] = match ownership::shows(&m.types, f, v) {
            // What a view shows is defined before it.
            Some(shown) => owner[shown.index()],
            None => (!m.types.is_copy(f.ty(v))).then_some(v),
        };
    };
    f.params.iter().for_each(|&(v, _)| define(v));
    for &b in cfg.rpo() {
        f.block(b).insts.iter().filter_map(|&i| f.inst(i).result()).for_each(&mut define);
    }
    owner
}

/// The releases to be added.
#[derive(Default)]
struct Ends {
    /// Behind the instruction at a position, `None` for the beginning of the block (behind phis).
    inside: BTreeMap<(Block, Option<u32>), Vec<Value>>,
    on_edges: BTreeMap<(Block, Block), Vec<Value>>,
}

/// Scratch memory: which blocks the current value lives into and out of.
struct Life {
    into: Vec<u32>,
    out_of: Vec<u32>,
    /// The blocks it lives out of, in the order in which they were found.
    crossed: Vec<Block>,
    work: Vec<Block>,
}

impl Life {
    fn lives_into(&self, b: Block, v: Value) -> bool {
        self.into[b.index()] == v.0
    }

    fn lives_out_of(&self, b: Block, v: Value) -> bool {
        self.out_of[b.index()] == v.0
    }

    /// The value is needed where `b` begins, unless `b` defines it.
    fn need_at_start(&mut self, b: Block, v: Value, def: Block) {
        if b != def && std::mem::replace(&mut self.into[b.index()], v.0) != v.0 {
            self.work.push(b);
        }
    }

    /// The value is needed where `b` ends.
    fn need_at_end(&mut self, b: Block, v: Value, def: Block) {
        if std::mem::replace(&mut self.out_of[b.index()], v.0) != v.0 {
            self.crossed.push(b);
            self.need_at_start(b, v, def);
        }
    }
}

/// Where an owned value begins: at an instruction, or at the beginning of the block behind the
/// phis.
#[derive(Clone, Copy)]
struct Definition {
    v: Value,
    block: Block,
    at: Option<u32>,
}

fn ends_of_lives(m: &Module, f: &MpirFn) -> Ends {
    let cfg = Cfg::new(f);
    let uses = Uses::collect(m, f, &cfg);
    let nowhere = vec![u32::MAX; f.blocks.len()];
    let mut life =
        Life { into: nowhere.clone(), out_of: nowhere, crossed: Vec::new(), work: Vec::new() };
    let mut ends = Ends::default();
    let params = f.params.iter().map(|&(v, _)| Definition { v, block: Block(0), at: None });
    let results = cfg.rpo().iter().flat_map(|&block| {
        let insts = f.block(block).insts.iter().enumerate();
        insts.filter_map(move |(at, &i)| {
            let at = (f.inst(i).op != Op::Phi).then_some(at as u32);
            f.inst(i).result().map(|v| Definition { v, block, at })
        })
    });
    for def in params.chain(results) {
        if !m.types.is_copy(f.ty(def.v)) {
            ends.of_value(&cfg, &uses, &mut life, def);
        }
    }
    ends
}

/// The entries of a sorted list that belong to a value.
fn of<T>(list: &[T], v: Value, value: impl Fn(&T) -> Value) -> &[T] {
    let start = list.partition_point(|entry| value(entry) < v);
    let len = list[start..].partition_point(|entry| value(entry) == v);
    &list[start..start + len]
}

impl Ends {
    fn is_empty(&self) -> bool {
        self.inside.is_empty() && self.on_edges.is_empty()
    }

    /// Finds where the life of a value ends.
    fn of_value(&mut self, cfg: &Cfg, uses: &Uses, life: &mut Life, def: Definition) {
        let v = def.v;
        let inside = of(&uses.inside, v, |u| u.0);
        let on_edges = of(&uses.on_edges, v, |u| u.0);
        life.crossed.clear();
        inside.iter().for_each(|(_, u)| life.need_at_start(u.block, v, def.block));
        on_edges.iter().for_each(|&(_, pred, _)| life.need_at_end(pred, v, def.block));
        while let Some(b) = life.work.pop() {
            for &pred in cfg.preds(b).iter().filter(|&&p| cfg.is_reachable(p)) {
                life.need_at_end(pred, v, def.block);
            }
        }
        // In blocks that it does not leave: behind the last use, or behind the definition.
        for uses in inside.chunk_by(|(_, a), (_, b)| a.block == b.block) {
            let Some(&(_, last)) = uses.last() else { continue };
            let given_away = uses.iter().any(|(_, u)| u.at == last.at && u.gives_away);
            if !given_away && !life.lives_out_of(last.block, v) {
                self.inside.entry((last.block, Some(last.at))).or_default().push(v);
            }
        }
        let used_in_def = inside.iter().any(|(_, u)| u.block == def.block);
        if !used_in_def && !life.lives_out_of(def.block, v) {
            self.inside.entry((def.block, def.at)).or_default().push(v);
        }
        // On edges to blocks that do not need it.
        for &b in &life.crossed {
            for &next in cfg.succs(b) {
                let passed_on = on_edges.binary_search(&(v, b, next)).is_ok();
                if life.lives_into(next, v) || passed_on {
                    continue;
                }
                if cfg.preds(next).len() == 1 {
                    self.inside.entry((next, None)).or_default().push(v);
                } else {
                    self.on_edges.entry((b, next)).or_default().push(v);
                }
            }
        }
    }

    fn insert(self, f: &mut MpirFn) {
        let mut at_block = self.inside.into_iter().peekable();
        while let Some(&((b, _), _)) = at_block.peek() {
            let old = std::mem::take(&mut f.block_mut(b).insts);
            let phis = old.iter().take_while(|&&i| f.inst(i).op == Op::Phi).count();
            let mut new = Vec::with_capacity(old.len() + 1);
            let mut copied = 0;
            while let Some(((_, at), values)) = at_block.next_if(|((block, _), _)| *block == b) {
                let end = match at {
                    None => phis,
                    Some(at) => (at as usize).saturating_add(1).min(old.len()),
                };
                new.extend_from_slice(&old[copied..end]);
                copied = end;
                let span = match new.last() {
                    Some(&i) => f.inst(i).span,
                    None => f.block(b).term_span,
                };
                new.extend(values.iter().map(|&v| release(f, v, span)));
            }
            new.extend_from_slice(&old[copied..]);
            f.block_mut(b).insts = new;
        }
        split_edges(f, &self.on_edges);
    }
}

fn release(f: &mut MpirFn, v: Value, span: Span) -> Inst {
    f.make_inst(Op::Release, Flags::NONE, fixed::UNIT, &[v], 0, span)
}

/// Puts a block with releases on each of the edges. Branches and phis are renamed once for all
/// edges that leave or enter a block.
fn split_edges(f: &mut MpirFn, releases: &BTreeMap<(Block, Block), Vec<Value>>) {
    let mut edges: Vec<(Block, Block, Block)> = Vec::new();
    for (&(from, to), values) in releases {
        let span = f.block(from).term_span;
        let between = f.add_block();
        let insts = values.iter().map(|&v| release(f, v, span)).collect();
        let block = f.block_mut(between);
        block.insts = insts;
        block.term = Terminator::Br(to);
        block.term_span = span;
        edges.push((from, to, between));
    }
    for leaving in edges.chunk_by(|a, b| a.0 == b.0) {
        let between = |t: Block| leaving.binary_search_by_key(&t, |edge| edge.1);
        let term = &mut f.block_mut(leaving[0].0).term;
        term.map_targets(|t| between(t).map_or(t, |n| leaving[n].2));
    }
    edges.sort_unstable_by_key(|&(from, to, _)| (to, from));
    for entering in edges.chunk_by(|a, b| a.1 == b.1) {
        let between = |b: Block| entering.binary_search_by_key(&b, |edge| edge.0);
        let phis: Vec<Inst> = f.phis(entering[0].1).collect();
        for phi in phis {
            f.map_phi_blocks(phi, |b| between(b).map_or(b, |n| entering[n].2));
        }
    }
}
