//! `lower_arc` on random graphs: along any path, every owned value ends exactly once, behind its
//! last use.

use magpie_diag::Span;
use magpie_mpir::analysis::{Cfg, Dominators};
use magpie_mpir::{
    Block, Domain, Flags, FnId, Inst, Module, MpirFn, Op, Stage, Terminator, Value, ownership,
    passes, verify_module,
};
use magpie_types::{Sid, SidKind, TypeId, TypeKind, fixed};
use proptest::prelude::*;
use proptest::test_runner::TestRng;
use std::collections::{BTreeMap, BTreeSet};

struct Random(TestRng);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

fn function(name: &str) -> MpirFn {
    MpirFn::new(Sid::new(SidKind::Function, name), name, fixed::UNIT, Domain::Host)
}

/// A module with `@take(Array<i32>)` and a random function that obeys the rules of ownership.
fn random_module(r: &mut Random) -> Module {
    let mut m = Module::new();
    let array = m.types.intern(TypeKind::Array(fixed::I32));
    let mut take = function("@take");
    take.add_param("a", array, Span::NONE);
    let b = take.add_block();
    take.block_mut(b).term = Terminator::Ret(None);
    m.add_fn(take);
    let mut f = function("@f");
    f.add_param("c", fixed::BOOL, Span::NONE);
    f.add_param("a", array, Span::NONE);
    let blocks = 2 + r.below(8);
    (0..blocks).for_each(|_| _ = f.add_block());
    for n in 0..blocks {
        let mut target = || Block::new(1 + r.below(blocks - 1));
        let (a, b) = (target(), target());
        let cond = f.params[0].0;
        f.block_mut(Block::new(n)).term = match r.below(5) {
            0 => Terminator::Ret(None),
            1 | 2 => Terminator::Br(a),
            _ => Terminator::Cbr { cond, then: a, else_: b },
        };
    }
    let cfg = Cfg::new(&f);
    f.compact(|b| cfg.is_reachable(b));
    let cfg = Cfg::new(&f);
    add_definitions(r, &mut f, &cfg, array);
    let mut owned = add_looks(r, &mut f, &cfg, array);
    add_phis(r, &mut f, &cfg, array, &mut owned);
    add_gifts(r, &mut f, &cfg, &owned);
    m.add_fn(f);
    m
}

fn add_definitions(r: &mut Random, f: &mut MpirFn, cfg: &Cfg, array: TypeId) {
    let zero = f.const_bits(fixed::I64, 0);
    for &b in cfg.rpo() {
        for _ in 0..r.below(3) {
            f.append(b, Op::ArrNew, Flags::NONE, array, &[zero], 0, Span::NONE);
        }
    }
}

fn is_array(f: &MpirFn, v: Value, array: TypeId) -> bool {
    f.ty(v) == array
}

/// Looks at values where their definition dominates. Returns all owned values.
fn add_looks(r: &mut Random, f: &mut MpirFn, cfg: &Cfg, array: TypeId) -> Vec<Value> {
    let dominators = Dominators::new(cfg);
    let mut owned = vec![(f.params[1].0, Block(0))];
    for &b in cfg.rpo() {
        let made = f.block(b).insts.iter().filter_map(|&i| f.inst(i).result());
        owned.extend(made.filter(|&v| is_array(f, v, array)).map(|v| (v, b)));
    }
    for &b in cfg.rpo() {
        let usable: Vec<Value> =
            owned.iter().filter(|&&(_, d)| dominators.dominates(d, b)).map(|o| o.0).collect();
        for _ in 0..r.below(4) {
            if !usable.is_empty() {
                let v = usable[r.below(usable.len())];
                f.append(b, Op::ArrLen, Flags::NONE, fixed::I64, &[v], 0, Span::NONE);
            }
        }
    }
    owned.into_iter().map(|o| o.0).collect()
}

/// Whether a path that starts in one of the blocks, and does not pass the definition of `v`, meets
/// a block with a property of its beginning (before a definition there) or of the rest.
fn reaches(
    f: &MpirFn,
    cfg: &Cfg,
    from: &[Block],
    v: Value,
    at_start: impl Fn(Block) -> bool,
    behind: impl Fn(Block) -> bool,
) -> bool {
    let defines = |b: Block| f.block(b).insts.iter().any(|&i| f.inst(i).result() == Some(v));
    let mut seen = BTreeSet::new();
    let mut work: Vec<Block> = from.to_vec();
    while let Some(b) = work.pop() {
        if at_start(b) {
            return true;
        }
        if !defines(b) && seen.insert(b) {
            if behind(b) {
                return true;
            }
            work.extend(cfg.succs(b));
        }
    }
    false
}

/// Whether a phi of the block has the value among its arms.
fn passes_on(f: &MpirFn, b: Block, v: Value) -> bool {
    f.phis(b).any(|i| f.args(i).contains(&v))
}

fn uses(f: &MpirFn, b: Block, v: Value) -> bool {
    f.block(b).insts.iter().any(|&i| f.args(i).contains(&v))
}

fn is_needed_behind(f: &MpirFn, cfg: &Cfg, b: Block, v: Value) -> bool {
    reaches(f, cfg, cfg.succs(b), v, |b| passes_on(f, b, v), |b| uses(f, b, v))
}

/// Passes values along the edges into some blocks, where nothing behind the edge needs them.
fn add_phis(r: &mut Random, f: &mut MpirFn, cfg: &Cfg, array: TypeId, owned: &mut Vec<Value>) {
    let dominators = Dominators::new(cfg);
    let def_block = |f: &MpirFn, v: Value| {
        let lists = |b: &Block| f.block(*b).insts.iter().any(|&i| f.inst(i).result() == Some(v));
        f.block_ids().find(lists).unwrap_or(Block(0))
    };
    for b in cfg.rpo().to_vec().into_iter().filter(|&b| cfg.preds(b).len() > 1) {
        let arms: Vec<(Block, Value)> = cfg
            .preds(b)
            .iter()
            .filter_map(|&pred| {
                let fits = |&&v: &&Value| {
                    let takers: Vec<Block> =
                        f.block_ids().filter(|&b| passes_on(f, b, v)).collect();
                    let needed = |at: Block| at == pred || uses(f, at, v);
                    dominators.dominates(def_block(f, v), pred)
                        && !reaches(f, cfg, &[b], v, |b| passes_on(f, b, v), needed)
                        && !reaches(f, cfg, &takers, v, |_| false, |at| at == pred)
                };
                let fitting: Vec<Value> = owned.iter().filter(fits).copied().collect();
                (!fitting.is_empty()).then(|| (pred, fitting[r.below(fitting.len())]))
            })
            .collect();
        if arms.len() == cfg.preds(b).len() {
            let phi = f.make_phi(array, &arms, Span::NONE);
            f.block_mut(b).insts.insert(0, phi);
            let v = f.inst(phi).result().expect("an array is a value");
            if r.one_in(2) {
                f.append(b, Op::ArrLen, Flags::NONE, fixed::I64, &[v], 0, Span::NONE);
            }
            owned.push(v);
        }
    }
}

/// Turns some last uses into calls that take the value.
fn add_gifts(r: &mut Random, f: &mut MpirFn, cfg: &Cfg, owned: &[Value]) {
    for &b in cfg.rpo() {
        for &v in owned {
            let looks = |&i: &Inst| f.inst(i).op == Op::ArrLen && f.args(i).contains(&v);
            let last = f.block(b).insts.iter().rposition(looks);
            let Some(last) = last.filter(|_| r.one_in(2)) else { continue };
            if !is_needed_behind(f, cfg, b, v) {
                let call = f.make_inst(Op::Call, Flags::NONE, fixed::UNIT, &[v], 0, Span::NONE);
                f.block_mut(b).insts[last] = call;
            }
        }
    }
}

/// Walks a random path and counts.
fn walk(r: &mut Random, m: &Module, f: &MpirFn) -> Result<(), String> {
    let owned = |v: Value| !m.types.is_copy(f.ty(v)) && f.as_const(v).is_none();
    let mut alive: BTreeMap<Value, bool> = BTreeMap::new();
    f.params.iter().filter(|p| owned(p.0)).for_each(|p| _ = alive.insert(p.0, true));
    let (mut b, mut from) = (Block(0), Block(0));
    for _ in 0..60 {
        // All phis read before any is written.
        for phi in f.phis(b) {
            let v = f.phi_value(phi, from).ok_or("an arm is missing")?;
            if alive.insert(v, false) != Some(true) {
                return Err(format!("{v:?} is passed on after its end"));
            }
        }
        for &i in &f.block(b).insts {
            step(m, f, i, &mut alive, owned)?;
        }
        let mut targets = Vec::new();
        f.block(b).term.for_each_target(|t| targets.push(t));
        if targets.is_empty() {
            let left: Vec<Value> = alive.iter().filter(|(_, a)| **a).map(|(v, _)| *v).collect();
            return if left.is_empty() { Ok(()) } else { Err(format!("{left:?} leak at {b:?}")) };
        }
        from = b;
        b = targets[r.below(targets.len())];
    }
    Ok(())
}

fn step(
    m: &Module,
    f: &MpirFn,
    i: Inst,
    alive: &mut BTreeMap<Value, bool>,
    owned: impl Fn(Value) -> bool,
) -> Result<(), String> {
    let operands = if f.inst(i).op == Op::Phi { &[] } else { f.args(i) };
    for (n, &v) in operands.iter().enumerate().filter(|(_, v)| owned(**v)) {
        if alive.get(&v) != Some(&true) {
            return Err(format!("{v:?} is used after its end by {:?}", f.inst(i).op));
        }
        if ownership::takes_over(m, f, i, n) {
            alive.insert(v, false);
        }
    }
    if let Some(v) = f.inst(i).result().filter(|&v| owned(v))
        && alive.insert(v, true) == Some(true)
    {
        return Err(format!("{v:?} is made again while alive"));
    }
    Ok(())
}

proptest! {

    #[test]
    fn every_value_ends_once(seed in any::<[u8; 32]>()) {
        let mut r = Random(TestRng::from_seed(prop::test_runner::RngAlgorithm::ChaCha, &seed));
        let mut m = random_module(&mut r);
        prop_assert!(verify_module(&m, Stage::Core).is_ok());
        let before = magpie_mpir::print_module(&m);
        passes::lower_arc(&mut m);
        let text = magpie_mpir::print_module(&m);
        if let Err(errors) = verify_module(&m, Stage::Core) {
            prop_assert!(false, "{}\n{text}", errors[0].message);
        }
        for _ in 0..50 {
            let walked = walk(&mut r, &m, m.func(FnId(1)));
            prop_assert!(walked.is_ok(), "{walked:?}\n{before}\n{text}");
        }
    }
}
