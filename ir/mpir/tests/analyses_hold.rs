//! What the analyses claim is true of executions of random kernels.

use magpie_mpir::analysis::{
    Cfg, Dominators, LaunchFacts, Liveness, LoopId, Loops, Positions, Ranges, Uniformity,
};
use magpie_mpir::eval::{eval, sign_extend};
use magpie_mpir::passes::{PassContext, inline_calls, lower_structs, lower_vectors};
use magpie_mpir::testing::{KernelConfig, Rng, random_kernel};
use magpie_mpir::{Block, Memory, MpirFn, Op, Terminator, Value, ValueDef, print_fn};
use magpie_types::{PrimType, TypeCtx, TypeKind};
use std::collections::BTreeMap;

/// Where an invocation stands: id in the workgroup, and the size of that.
#[derive(Clone, Copy)]
struct Place {
    thread: [u32; 3],
    group: [u32; 3],
    block: [u32; 3],
    grid: [u32; 3],
}

/// An execution of one invocation in which loads give made-up values: equal ones for equal places
/// in buffers, other ones for each invocation in private arrays.
struct Execution<'a> {
    f: &'a MpirFn,
    types: &'a TypeCtx,
    loops: &'a Loops,
    place: Place,
    seed: u64,
    values: Vec<Option<u64>>,
    /// By loop: the round it is in.
    rounds: Vec<u32>,
}

fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |h, &p| Rng::new(h ^ p).bits())
}

impl Execution<'_> {
    fn value(&self, v: Value) -> Option<u64> {
        self.values[v.index()]
    }

    /// The rounds of the loops around a block.
    fn rounds_at(&self, b: Block) -> Vec<u32> {
        let chain = std::iter::successors(self.loops.innermost(b), |&l| self.loops.parent(l));
        chain.map(|l: LoopId| self.rounds[l.index()]).collect()
    }

    /// Runs to the end; `see` is told of every block entered and every value computed.
    fn run(&mut self, mut see: impl FnMut(&Self, Block, Option<(Value, u64)>)) {
        let mut b = Block(0);
        for _ in 0..20_000 {
            see(self, b, None);
            for &i in &self.f.block(b).insts {
                let Some(v) = self.f.inst(i).result() else { continue };
                if self.f.inst(i).op != Op::Phi {
                    self.values[v.index()] = self.compute(i);
                }
                if let Some(bits) = self.value(v) {
                    see(self, b, Some((v, bits)));
                }
            }
            let next = match &self.f.block(b).term {
                Terminator::Ret(_) | Terminator::Unreachable => return,
                Terminator::Br(t) => *t,
                Terminator::Cbr { cond, then, else_ } => match self.value(*cond).unwrap() & 1 {
                    1 => *then,
                    _ => *else_,
                },
                Terminator::Switch { value, cases, default } => {
                    let bits = self.value(*value).unwrap();
                    cases.iter().find(|c| c.0 == bits).map_or(*default, |c| c.1)
                }
            };
            let phis: Vec<_> = self
                .f
                .phis(next)
                .map(|i| (self.f.inst(i).result().unwrap(), self.f.phi_value(i, b).unwrap()))
                .map(|(phi, v)| (phi, self.value(v)))
                .collect();
            phis.into_iter().for_each(|(phi, bits)| self.values[phi.index()] = bits);
            if let Some(l) = self.loops.innermost(next).filter(|&l| self.loops.header(l) == next) {
                let again = self.loops.contains(l, b);
                let round = &mut self.rounds[l.index()];
                *round = if again { *round + 1 } else { 0 };
            }
            b = next;
        }
        panic!("does not end");
    }

    fn compute(&self, i: magpie_mpir::Inst) -> Option<u64> {
        let inst = self.f.inst(i);
        // A vector is a number from which its components are made up.
        let to = PrimType::from_id(inst.ty).unwrap_or(PrimType::U64);
        let args = self.f.args(i);
        let dim = inst.dim() as usize;
        let p = &self.place;
        let id = match inst.op {
            Op::GpuThreadId => Some(p.thread[dim]),
            Op::GpuWorkgroupId => Some(p.group[dim]),
            Op::GpuWorkgroupSize => Some(p.block[dim]),
            Op::GpuNumWorkgroups => Some(p.grid[dim]),
            Op::GpuGlobalId => Some(p.group[dim] * p.block[dim] + p.thread[dim]),
            _ => None,
        };
        if let Some(id) = id {
            return Some(id as u64);
        }
        if inst.op == Op::GpuBufferLen || inst.op.info().memory != Memory::None {
            let &array = args.first()?;
            let private = matches!(self.types.kind(self.f.ty(array)), TypeKind::LocalArray(..));
            let varies = private || inst.op.info().memory == Memory::Atomic;
            let who = if varies { mix(&self.place.thread.map(u64::from)) } else { 0 };
            let index = args.get(1).and_then(|&v| self.value(v)).unwrap_or(0);
            let made_up = mix(&[self.seed, who, array.0 as u64, index, inst.imm]);
            // Lengths and truths are small numbers.
            return Some(if inst.op == Op::GpuBufferLen {
                made_up % 50
            } else {
                made_up & to.mask()
            });
        }
        if matches!(inst.op, Op::VecExtract | Op::LeafGet) {
            let whole = self.value(args[0]).unwrap_or(0);
            return Some(mix(&[whole, inst.imm]) & to.mask());
        }
        let bits: Vec<u64> = args.iter().map(|&v| self.value(v)).collect::<Option<_>>()?;
        let typed = if inst.op == Op::Select { args.get(1)? } else { args.first()? };
        eval(inst.op, PrimType::from_id(self.f.ty(*typed))?, to, &bits)
    }
}

/// A kernel with scalars only, and the runs of one workgroup.
fn for_each_run(seed: u64, mut visit: impl FnMut(&MpirFn, &TypeCtx, &Loops, Vec<Execution>)) {
    let config = KernelConfig { size: 90, depth: 4, ..KernelConfig::all() };
    let k = random_kernel(seed, &config);
    let mut module = k.module;
    inline_calls(&mut module, &mut Vec::new());
    let mut ctx = PassContext::new();
    let types = module.types.clone();
    let f = &mut module.fns[k.kernel.index()];
    lower_structs(f, &types, &mut ctx);
    lower_vectors(f, &types, &mut ctx);
    f.compact(|_| true);
    let cfg = Cfg::new(f);
    let loops = Loops::new(&cfg, &Dominators::new(&cfg));
    let mut rng = Rng::new(seed);
    let params: Vec<u64> = f
        .params
        .iter()
        .map(|p| PrimType::from_id(p.1).map_or(0, |p| (rng.bits() >> rng.below(64)) & p.mask()))
        .collect();
    let f = &module.fns[k.kernel.index()];
    let mut runs = Vec::new();
    for linear in 0..k.block.iter().product() {
        let thread = [
            linear % k.block[0],
            linear / k.block[0] % k.block[1],
            linear / k.block[0] / k.block[1],
        ];
        let values = f.locals.iter().enumerate().map(|(v, local)| match local.def {
            ValueDef::Param(n) => Some(params[n as usize]),
            ValueDef::Const(_) => f.as_bits(Value::new(v)),
            ValueDef::Inst(_) => None,
        });
        runs.push(Execution {
            f,
            types: &types,
            loops: &loops,
            place: Place { thread, group: [1, 0, 0], block: k.block, grid: k.grid },
            seed,
            values: values.collect(),
            rounds: vec![0; loops.ids().len()],
        });
    }
    visit(f, &types, &loops, runs);
}

#[test]
fn values_lie_in_their_ranges() {
    for seed in 0..1500 {
        for_each_run(seed, |f, types, _, runs| {
            let cfg = Cfg::new(f);
            let dom = Dominators::new(&cfg);
            let ranges = Ranges::new(f, &cfg, &dom, LaunchFacts::of(f));
            for mut run in runs {
                run.run(|_, _, computed| {
                    let Some((v, bits)) = computed else { return };
                    let Some(p) = PrimType::from_id(f.ty(v)) else { return };
                    if !p.is_int() && p != PrimType::Bool {
                        return;
                    }
                    let r = ranges.of(v);
                    let signed = sign_extend(bits, p.bit_width());
                    let inside = r.umin <= bits && bits <= r.umax;
                    assert!(
                        inside && r.smin <= signed && signed <= r.smax,
                        "seed {seed}: {v:?} is {bits}, not in {r:?}\n{}",
                        show(f, types)
                    );
                });
            }
        });
    }
}

fn show(f: &MpirFn, types: &TypeCtx) -> String {
    let mut module = magpie_mpir::Module::new();
    module.types = types.clone();
    print_fn(&module, f)
}

#[test]
fn what_is_uniform_is_the_same_for_all() {
    let (mut uniform_values, mut uniform_blocks) = (0, 0);
    for seed in 0..1500 {
        for_each_run(seed, |f, types, _, runs| {
            let uniformity = Uniformity::new(f, types, &Cfg::new(f));
            let mut values: BTreeMap<(Value, Vec<u32>), u64> = BTreeMap::new();
            let mut visits: Option<BTreeMap<(Block, Vec<u32>), u32>> = None;
            for mut run in runs {
                let mut own = BTreeMap::new();
                run.run(|run, b, computed| match computed {
                    None if uniformity.is_uniform_block(b) => {
                        *own.entry((b, run.rounds_at(b))).or_insert(0) += 1;
                    }
                    None => {}
                    Some((v, bits)) if uniformity.is_uniform(v) => {
                        let known = *values.entry((v, run.rounds_at(b))).or_insert(bits);
                        uniform_values += 1;
                        assert_eq!(known, bits, "seed {seed}: {v:?} in {b:?}\n{}", show(f, types));
                    }
                    Some(_) => {}
                });
                uniform_blocks += own.len();
                let known = visits.get_or_insert_with(|| own.clone());
                assert_eq!(*known, own, "seed {seed}\n{}", show(f, types));
            }
        });
    }
    assert!(uniform_values > 10_000 && uniform_blocks > 1_000);
}

#[test]
fn live_values_are_those_on_the_way_to_a_use() {
    for seed in 0..60 {
        for_each_run(seed, |f, _, _, _| {
            let cfg = Cfg::new(f);
            let live = Liveness::new(f, &cfg);
            let positions = Positions::new(f);
            // By definition: the least solution of the equations over all blocks.
            let mut live_in = vec![vec![false; f.locals.len()]; f.blocks.len()];
            let mut live_out = live_in.clone();
            let mut changed = true;
            while changed {
                changed = false;
                for &b in cfg.rpo().iter().rev() {
                    let mut out = vec![false; f.locals.len()];
                    for &s in cfg.succs(b) {
                        for v in 0..out.len() {
                            out[v] |= live_in[s.index()][v];
                        }
                        for i in f.phis(s) {
                            let v = f.phi_value(i, b).unwrap();
                            out[v.index()] |= f.as_const(v).is_none();
                        }
                    }
                    let mut now = out.clone();
                    let read =
                        |now: &mut Vec<bool>, v: Value| now[v.index()] = f.as_const(v).is_none();
                    if let Some(v) = f.block(b).term.operand() {
                        read(&mut now, v);
                    }
                    for &i in f.block(b).insts.iter().rev() {
                        if let Some(v) = f.inst(i).result() {
                            now[v.index()] = false;
                        }
                        if f.inst(i).op != Op::Phi {
                            f.args(i).iter().for_each(|&v| read(&mut now, v));
                        }
                    }
                    for &(v, _) in f.params.iter().filter(|_| b == Block(0)) {
                        now[v.index()] = false;
                    }
                    changed |= now != live_in[b.index()] || out != live_out[b.index()];
                    live_in[b.index()] = now;
                    live_out[b.index()] = out;
                }
            }
            for &b in cfg.rpo() {
                let list = |set: &[bool]| -> Vec<Value> {
                    (0..set.len()).filter(|&v| set[v]).map(Value::new).collect()
                };
                assert_eq!(live.live_in(b), list(&live_in[b.index()]), "seed {seed}, in {b:?}");
                assert_eq!(live.live_out(b), list(&live_out[b.index()]), "seed {seed}, out {b:?}");
            }
            assert_eq!(positions.block(f.blocks[0].insts[0]), Some(Block(0)));
        });
    }
}
