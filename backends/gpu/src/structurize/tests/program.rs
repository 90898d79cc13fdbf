//! Random kernels over random control-flow graphs.

use magpie_diag::Span;
use magpie_mpir::analysis::{Cfg, Dominators};
use magpie_mpir::{Block, Domain, Flags, MpirFn, Op, Terminator, Value};
use magpie_types::{Sid, SidKind, TypeCtx, TypeId, TypeKind, fixed};

/// Decisions taken from a list, so that a shorter list gives a smaller program.
pub(super) struct Choices<'a> {
    list: &'a [u32],
    at: usize,
}

impl Choices<'_> {
    pub(super) fn new(list: &[u32]) -> Choices<'_> {
        Choices { list, at: 0 }
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        let raw = self.list.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        (raw % n.max(1) as u32) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A number below `n`, unless the list is used up.
    pub(super) fn next_below(&mut self, n: usize) -> Option<usize> {
        (self.at < self.list.len()).then(|| self.below(n))
    }
}

/// A kernel with the graph behind an entry block. Block `n + 1` is node `n`. Decisions are values
/// loaded from the first buffer; what happens is stored to the second.
pub(super) fn kernel(succs: &[Vec<usize>], c: &mut Choices<'_>) -> (MpirFn, TypeCtx) {
    let mut types = TypeCtx::new();
    let buffer = types.intern(TypeKind::Buffer(fixed::U32));
    let sid = Sid::new(SidKind::Function, "t.@k");
    let mut f = MpirFn::new(sid, "t.@k", fixed::UNIT, Domain::Device);
    let input = f.add_param("input", buffer, Span::NONE);
    let output = f.add_param("output", buffer, Span::NONE);
    let number = f.add_param("number", fixed::U32, Span::NONE);
    let entry = f.add_block();
    f.block_mut(entry).term = Terminator::Br(Block(1));
    for targets in succs {
        let b = f.add_block();
        let targets: Vec<Block> = targets.iter().map(|&t| Block::new(t + 1)).collect();
        f.block_mut(b).term = match *targets {
            [] => Terminator::Ret(None),
            [t] => Terminator::Br(t),
            [then, else_] if c.chance(80) => {
                Terminator::Cbr { cond: f.const_bool(true), then, else_ }
            }
            [default, ref rest @ ..] => {
                let mut cases: Vec<(u64, Block)> =
                    rest.iter().enumerate().map(|(n, &t)| (n as u64, t)).collect();
                if c.chance(30) {
                    cases.push((cases.len() as u64, rest[0]));
                }
                Terminator::Switch { value: number, cases, default }
            }
        };
    }
    fill(&mut f, c, input, output, number);
    (f, types)
}

/// Gives blocks phis and instructions that use what dominates them.
fn fill(f: &mut MpirFn, c: &mut Choices<'_>, input: Value, output: Value, number: Value) {
    let cfg = Cfg::new(f);
    let dom = Dominators::new(&cfg);
    let (span, none) = (Span::NONE, Flags::NONE);
    // Values by block, of types u32, u64 and bool.
    let mut made: Vec<Vec<Value>> = vec![vec![]; f.blocks.len()];
    made[0].push(number);
    made[0].push(f.const_bits(fixed::U64, 7));
    made[0].push(f.const_bool(true));
    let kinds = [fixed::U32, fixed::U64, fixed::BOOL];
    let mut phis = Vec::new();
    for &b in cfg.rpo() {
        if cfg.preds(b).len() > 1 || c.chance(5) && !cfg.preds(b).is_empty() {
            for _ in 0..c.below(3) {
                let ty = kinds[c.below(kinds.len())];
                let phi = f.make_phi(ty, &[], span);
                f.block_mut(b).insts.push(phi);
                made[b.index()].extend(f.inst(phi).result());
                phis.push((b, phi));
            }
        }
    }
    for &b in dom.preorder() {
        let id = f.const_u32(b.0);
        let pick = |f: &mut MpirFn, c: &mut Choices<'_>, made: &[Vec<Value>], ty: TypeId| {
            available(f, &dom, made, b, ty, c)
        };
        let decision = f.append(b, Op::GpuBufferLoad, none, fixed::U32, &[input, id], 0, span);
        let decision = decision.unwrap_or(number);
        made[b.index()].push(decision);
        for _ in 0..c.below(3) {
            let x = pick(f, c, &made, fixed::U32);
            let sum = f.append(b, Op::IAdd, none, fixed::U32, &[x, decision], 0, span);
            made[b.index()].extend(sum);
        }
        let traced = pick(f, c, &made, fixed::U32);
        f.append(b, Op::GpuBufferStore, none, fixed::UNIT, &[output, id, traced], 0, span);
        if c.chance(40) {
            let wide = pick(f, c, &made, fixed::U64);
            let wide = f.append(b, Op::IAdd, none, fixed::U64, &[wide, wide], 0, span);
            let flag = pick(f, c, &made, fixed::BOOL);
            let narrow =
                f.append(b, Op::Cast, none, fixed::U32, &[wide.unwrap_or(number)], 0, span);
            let args = [flag, narrow.unwrap_or(number), decision];
            let chosen = f.append(b, Op::Select, none, fixed::U32, &args, 0, span);
            made[b.index()].extend([wide, chosen].into_iter().flatten());
            let args = [output, id, chosen.unwrap_or(number)];
            f.append(b, Op::GpuBufferStore, none, fixed::UNIT, &args, 0, span);
        }
        let term = f.block(b).term.clone();
        match term {
            Terminator::Cbr { .. } => {
                let one = f.const_u32(1);
                let bit = f.append(b, Op::IAnd, none, fixed::U32, &[decision, one], 0, span);
                let args = [bit.unwrap_or(number), one];
                let cond = f.append(b, Op::IcmpEq, none, fixed::BOOL, &args, 0, span);
                made[b.index()].extend(cond);
                if let (Some(v), Some(cond)) = (f.block_mut(b).term.operand_mut(), cond) {
                    *v = cond;
                }
            }
            Terminator::Switch { cases, .. } => {
                let n = f.const_u32(cases.len() as u32 + 1);
                let rest = f.append(b, Op::IUrem, none, fixed::U32, &[decision, n], 0, span);
                if let (Some(v), Some(rest)) = (f.block_mut(b).term.operand_mut(), rest) {
                    *v = rest;
                }
            }
            Terminator::Ret(_) | Terminator::Br(_) | Terminator::Unreachable => {}
        }
    }
    for (b, phi) in phis {
        let ty = f.inst(phi).ty;
        let mut arms = Vec::new();
        for &p in cfg.preds(b) {
            arms.push((p, available(f, &dom, &made, p, ty, c)));
        }
        f.set_phi_arms(phi, &arms);
    }
}

/// A value of the type that is known at the end of `b`.
fn available(
    f: &MpirFn,
    dom: &Dominators,
    made: &[Vec<Value>],
    b: Block,
    ty: TypeId,
    c: &mut Choices<'_>,
) -> Value {
    // Values from a few dominators, and those of the entry block.
    let near = std::iter::successors(Some(b), |&x| dom.idom(x)).take(20);
    let found: Vec<Value> = near
        .chain([Block(0)])
        .flat_map(|x| made[x.index()].iter().copied())
        .filter(|&v| f.ty(v) == ty)
        .collect();
    found[c.below(found.len())]
}
