//! [`Runs`]: which invocations execute a store and with which index, worked out one by one.
//!
//! What a launch decides is carried along by name: two equal computations from the same numbers
//! have one name, so that two invocations may be seen to write the same element without knowing
//! which.

use super::paths::Path;
use super::{Invocation, LaunchDomain, Store};
use crate::analysis::{Cfg, Loops, Positions};
use crate::eval::eval;
use crate::{Block, Inst, MpirFn, Op, Value, ValueDef};
use magpie_types::{PrimType, TypeId, fixed};
use rustc_hash::FxHashMap;

/// Invocations that are worked out.
const MAX_INVOCATIONS: usize = 2048;
/// Values that are computed for each.
const MAX_STEPS: usize = 256;
/// Depth of expressions.
const MAX_DEPTH: u32 = 64;

/// A value of an invocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Word {
    Bits(u64),
    /// The same number wherever this name is.
    Name(u32),
}

/// How a name is computed.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Param(u32),
    Const(Value),
    Op(Op, u64, TypeId, TypeId, Vec<Word>),
}

/// One value of a program; operands are positions of values before it.
enum Step {
    Bits(u64),
    Name(u32),
    Op(Inst, Vec<usize>),
}

/// A store as an invocation executes it.
pub(super) struct Execution {
    pub(super) invocation: Invocation,
    /// What a launch decides about whether it is executed, sorted: it is, if each of these has these
    /// bits.
    pub(super) conditions: Vec<(u32, u64)>,
    pub(super) index: Word,
    /// What is written, if that can be said.
    pub(super) value: Option<Word>,
}

/// Works out invocations of a kernel.
pub(super) struct Runs<'a> {
    f: &'a MpirFn,
    cfg: &'a Cfg,
    loops: &'a Loops,
    positions: &'a Positions,
    domain: LaunchDomain,
    /// Whether it is a workgroup like any other, instead of those with the first ids.
    is_any_workgroup: bool,
    invocations: Vec<Invocation>,
    is_whole_launch: bool,
    names: FxHashMap<Key, u32>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(
        f: &'a MpirFn,
        cfg: &'a Cfg,
        loops: &'a Loops,
        positions: &'a Positions,
        domain: LaunchDomain,
        is_any_workgroup: bool,
    ) -> Runs<'a> {
        let grid = if is_any_workgroup { Some([1; 3]) } else { domain.grid };
        let (invocations, is_all) = invocations(domain.workgroup, grid.unwrap_or([1; 3]));
        let is_whole_launch = is_all && grid.is_some();
        Runs {
            f,
            cfg,
            loops,
            positions,
            domain,
            is_any_workgroup,
            invocations,
            is_whole_launch,
            names: FxHashMap::default(),
        }
    }

    /// The executions of a store in the first round of all loops around it, as far as they are
    /// certain.
    pub(super) fn certain(&mut self, store: &Store, path: &Path) -> Vec<Execution> {
        if !path.is_complete {
            return Vec::new();
        }
        let mut program = Program { around: Some(store.block), ..Program::default() };
        let conditions: Option<Vec<(usize, u64)>> = path
            .conditions
            .iter()
            .map(|&(v, bits)| Some((program.add(self, v, MAX_DEPTH)?, bits)))
            .collect();
        let (Some(conditions), Some(index)) =
            (conditions, program.add(self, store.index, MAX_DEPTH))
        else {
            return Vec::new();
        };
        let value = program.add(self, store.value, MAX_DEPTH);
        let mut executions = Vec::new();
        let mut words = Vec::new();
        for n in 0..self.invocations.len() {
            let invocation = self.invocations[n];
            self.run(&program, invocation, &mut words);
            let mut open = Vec::new();
            let is_executed = conditions.iter().all(|&(at, wanted)| match words[at] {
                Word::Bits(bits) => bits == wanted,
                Word::Name(name) => {
                    open.push((name, wanted));
                    true
                }
            });
            if is_executed && store.may_write(words[index]) {
                open.sort_unstable();
                open.dedup();
                executions.push(Execution {
                    invocation,
                    conditions: open,
                    index: words[index],
                    value: value.map(|at| words[at]),
                });
            }
        }
        executions
    }

    /// The elements that each invocation of the launch may write through a store, in whatever
    /// round. `None` when there are too many invocations or the index is not known.
    pub(super) fn all(&mut self, store: &Store, path: &Path) -> Option<Vec<(Invocation, u64)>> {
        if !self.is_whole_launch {
            return None;
        }
        let mut program = Program::default();
        let index = program.add(self, store.index, MAX_DEPTH)?;
        let conditions: Vec<(usize, u64)> = path
            .conditions
            .iter()
            .filter_map(|&(v, bits)| Some((program.add(self, v, MAX_DEPTH)?, bits)))
            .collect();
        let mut elements = Vec::new();
        let mut words = Vec::new();
        for n in 0..self.invocations.len() {
            let invocation = self.invocations[n];
            self.run(&program, invocation, &mut words);
            let is_skipped = |&(at, wanted): &(usize, u64)| matches!(words[at], Word::Bits(bits) if bits != wanted);
            if conditions.iter().any(is_skipped) {
                continue;
            }
            match words[index] {
                Word::Bits(bits) => elements.push((invocation, bits)),
                Word::Name(_) => return None,
            }
        }
        Some(elements)
    }

    fn run(&mut self, program: &Program, at: Invocation, words: &mut Vec<Word>) {
        words.clear();
        for step in &program.steps {
            let word = match *step {
                Step::Bits(bits) => Word::Bits(bits),
                Step::Name(name) => Word::Name(name),
                Step::Op(i, ref operands) => {
                    let operands: Vec<Word> = operands.iter().map(|&n| words[n]).collect();
                    self.op(i, operands, at)
                }
            };
            words.push(word);
        }
    }

    fn op(&mut self, i: Inst, operands: Vec<Word>, at: Invocation) -> Word {
        let f = self.f;
        let inst = *f.inst(i);
        let dim = inst.dim().min(2) as usize;
        let size = self.domain.workgroup[dim];
        let known = match inst.op {
            Op::GpuThreadId => Some(at.thread[dim] as u64),
            Op::GpuWorkgroupSize => Some(size as u64),
            Op::GpuNumWorkgroups => self.domain.grid.map(|grid| grid[dim] as u64),
            Op::GpuWorkgroupId if !self.is_any_workgroup => Some(at.workgroup[dim] as u64),
            Op::GpuGlobalId if !self.is_any_workgroup => Some(at.global(self.domain, dim) as u64),
            _ => None,
        };
        if let Some(bits) = known {
            let mask = PrimType::from_id(inst.ty).map_or(u64::MAX, |p| p.mask());
            return Word::Bits(bits & mask);
        }
        if inst.op == Op::GpuGlobalId {
            let thread = Word::Bits(at.thread[dim] as u64);
            return self.name(Key::Op(inst.op, inst.imm, inst.ty, inst.ty, vec![thread]));
        }
        match (inst.op, &operands[..]) {
            (Op::Phi, &[start]) => return start,
            (Op::Select, &[Word::Bits(bits), x, y]) => return if bits == 0 { y } else { x },
            (Op::IMul | Op::IAnd, &[x, y]) if [x, y].contains(&Word::Bits(0)) => {
                return Word::Bits(0);
            }
            (Op::IAdd, &[x, Word::Bits(0)] | &[Word::Bits(0), x]) => return x,
            _ => {}
        }
        let args = f.args(i);
        let typed = (inst.op == Op::Select) as usize;
        let from = args.get(typed).or(args.first()).map_or(inst.ty, |&v| f.ty(v));
        let bits: Option<Vec<u64>> = operands
            .iter()
            .map(|word| match word {
                Word::Bits(bits) => Some(*bits),
                Word::Name(_) => None,
            })
            .collect();
        // Floats have names: they are computed by the device.
        let whole = |ty| PrimType::from_id(ty).filter(|&p| p.is_int() || ty == fixed::BOOL);
        if let (Some(bits), Some(from), Some(to)) = (bits, whole(from), whole(inst.ty))
            && let Some(result) = eval(inst.op, from, to, &bits)
        {
            return Word::Bits(result);
        }
        self.name(Key::Op(inst.op, inst.imm, inst.ty, from, operands))
    }

    fn name(&mut self, key: Key) -> Word {
        let next = self.names.len() as u32;
        Word::Name(*self.names.entry(key).or_insert(next))
    }
}

/// The values that a question depends on, operands first.
#[derive(Default)]
struct Program {
    /// The block in which the first rounds of all loops around it are asked for; without one, any
    /// round.
    around: Option<Block>,
    steps: Vec<Step>,
    position: FxHashMap<Value, Option<usize>>,
}

impl Program {
    /// Adds a value; `None` when it depends on memory, on other invocations or on the round.
    fn add(&mut self, runs: &mut Runs, v: Value, depth: u32) -> Option<usize> {
        if let Some(&known) = self.position.get(&v) {
            return known;
        }
        let step = depth.checked_sub(1).and_then(|depth| self.step(runs, v, depth));
        let position = step.filter(|_| self.steps.len() < MAX_STEPS).map(|step| {
            self.steps.push(step);
            self.steps.len() - 1
        });
        self.position.insert(v, position);
        position
    }

    fn step(&mut self, runs: &mut Runs, v: Value, depth: u32) -> Option<Step> {
        let f = runs.f;
        let name = |runs: &mut Runs, key| match runs.name(key) {
            Word::Name(name) => Step::Name(name),
            Word::Bits(bits) => Step::Bits(bits),
        };
        let i = match f.def(v) {
            ValueDef::Param(n) => return f.is_kernel().then(|| name(runs, Key::Param(n))),
            ValueDef::Const(_) => {
                return Some(match f.as_bits(v) {
                    Some(bits) => Step::Bits(bits),
                    None => name(runs, Key::Const(v)),
                });
            }
            ValueDef::Inst(i) => i,
        };
        if f.inst(i).op == Op::Phi {
            let start = self.start_of(runs, i)?;
            return Some(Step::Op(i, vec![self.add(runs, start, depth)?]));
        }
        if !f.inst(i).op.is_pure() || f.inst(i).op == Op::GpuSubgroupLaneId {
            return None;
        }
        let args = f.args(i).iter();
        let operands = args.map(|&v| self.add(runs, v, depth)).collect::<Option<_>>()?;
        Some(Step::Op(i, operands))
    }

    /// What a phi is in the first round of its loop.
    fn start_of(&self, runs: &Runs, phi: Inst) -> Option<Value> {
        let header = runs.positions.block(phi)?;
        let l = runs.loops.innermost(header).filter(|&l| runs.loops.header(l) == header)?;
        if !runs.loops.contains(l, self.around?) {
            return None;
        }
        let outside =
            |&(p, _): &(Block, Value)| runs.cfg.is_reachable(p) && !runs.loops.contains(l, p);
        let mut starts = runs.f.phi_arms(phi).filter(outside).map(|arm| arm.1);
        let start = starts.next()?;
        starts.all(|other| other == start).then_some(start)
    }
}

/// Invocations of a launch, the first workgroups of each dimension first, and whether these are all.
fn invocations(workgroup: [u32; 3], grid: [u32; 3]) -> (Vec<Invocation>, bool) {
    let all = |size: [u32; 3]| {
        let [nx, ny, nz] = size;
        (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])))
    };
    let corners = [[0, 0, 0], [0, 1, 0], [0, 0, 1]];
    let exists = |at: &[u32; 3]| (0..3).all(|d| at[d] < grid[d]);
    let first = corners.into_iter().filter(exists);
    let groups = first.chain(all(grid).filter(|at| !corners.contains(at)));
    let mut out = Vec::new();
    for group in groups {
        for thread in all(workgroup) {
            if out.len() == MAX_INVOCATIONS {
                return (out, false);
            }
            out.push(Invocation { workgroup: group, thread });
        }
    }
    (out, true)
}
