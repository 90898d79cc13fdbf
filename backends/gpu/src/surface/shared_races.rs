//! Reads of shared memory that another invocation has just written, with no barrier between.
//!
//! Only what is certain is reported: both accesses are executed by all invocations, one right
//! after the other, at indices that depend on nothing but the position in the workgroup. These are
//! computed for every invocation of the declared workgroup and compared.

use magpie_diag::{Code, Diagnostic, sort_diagnostics};
use magpie_mpir::analysis::{Cfg, Uniformity};
use magpie_mpir::eval::eval;
use magpie_mpir::{Block, Inst, Memory, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_types::{PrimType, TypeCtx, TypeKind};
use rustc_hash::FxHashMap;

/// Larger workgroups are not looked at.
const MAX_INVOCATIONS: usize = 1024;

/// Reports loads of a closed kernel that race with a store before them (`MPG_CORE_1402`).
pub fn check_shared_races(kernel: &MpirFn, types: &TypeCtx) -> Vec<Diagnostic> {
    let size = kernel.gpu_meta.as_ref().map_or([64, 1, 1], |m| m.workgroup);
    let invocations = size.iter().try_fold(1usize, |n, &d| n.checked_mul(d as usize));
    let Some(invocations) = invocations.filter(|n| (1..=MAX_INVOCATIONS).contains(n)) else {
        return Vec::new();
    };
    if !kernel.blocks.iter().flat_map(|b| &b.insts).any(|&i| kernel.inst(i).op == Op::GpuShared) {
        return Vec::new();
    }
    let cfg = Cfg::new(kernel);
    let uniformity = Uniformity::new(kernel, types, &cfg);
    let mut races = Races {
        f: kernel,
        types,
        size,
        invocations,
        indices: FxHashMap::default(),
        out: Vec::new(),
    };
    for &b in cfg.rpo() {
        // A run of blocks that follow each other: begin at its first.
        let continues = matches!(*cfg.preds(b), [p] if follows(kernel, &cfg, p) == Some(b));
        if uniformity.is_uniform_block(b) && !continues {
            races.run(&cfg, b);
        }
    }
    sort_diagnostics(&mut races.out);
    races.out
}

/// The block that always comes after `b`, and only after it.
fn follows(f: &MpirFn, cfg: &Cfg, b: Block) -> Option<Block> {
    match f.block(b).term {
        Terminator::Br(next) if cfg.preds(next).len() == 1 => Some(next),
        Terminator::Br(_)
        | Terminator::Ret(_)
        | Terminator::Cbr { .. }
        | Terminator::Switch { .. }
        | Terminator::Unreachable => None,
    }
}

struct Races<'a> {
    f: &'a MpirFn,
    types: &'a TypeCtx,
    size: [u32; 3],
    invocations: usize,
    /// Index values by invocation; `None` when they depend on something else.
    indices: FxHashMap<Value, Option<Vec<u64>>>,
    out: Vec<Diagnostic>,
}

impl Races<'_> {
    /// Looks at a run of blocks, from barrier to barrier.
    fn run(&mut self, cfg: &Cfg, first: Block) {
        let mut stores: Vec<Inst> = Vec::new();
        let mut at = Some(first);
        while let Some(b) = at {
            for &i in &self.f.block(b).insts {
                match self.f.inst(i).op.info().memory {
                    Memory::Fence | Memory::Any => stores.clear(),
                    Memory::Write if self.array(i).is_some() => stores.push(i),
                    Memory::Read => self.load(i, &stores),
                    Memory::None | Memory::Write | Memory::Atomic => {}
                }
            }
            at = follows(self.f, cfg, b);
        }
    }

    /// The shared array that an access names.
    fn array(&self, i: Inst) -> Option<Value> {
        let v = *self.f.args(i).first()?;
        matches!(self.types.kind(self.f.ty(v)), TypeKind::SharedArray(..)).then_some(v)
    }

    fn load(&mut self, load: Inst, stores: &[Inst]) {
        /// Stores further back are not compared.
        const FEW: usize = 16;
        let Some(array) = self.array(load) else { return };
        for &store in stores.iter().rev().take(FEW) {
            if self.array(store) != Some(array) {
                continue;
            }
            let (written, read) = (self.f.arg(store, 1), self.f.arg(load, 1));
            if let Some((writer, reader, index)) = self.meet(written, read) {
                let message = format!(
                    "invocation {reader} of the workgroup reads element {index}, which invocation \
                     {writer} writes without a barrier between"
                );
                let at = self.f.inst(load).span;
                let d = Diagnostic::new(Code::MPG_CORE_1402, at, message)
                    .with_secondary(self.f.inst(store).span, "written here")
                    .with_help("put a `gpu.barrier` between the two");
                self.out.push(d);
                return;
            }
        }
    }

    /// Two different invocations, of which the first writes what the second reads.
    fn meet(&mut self, written: Value, read: Value) -> Option<(usize, usize, u64)> {
        let (written, read) = (self.index(written)?, self.index(read)?);
        let mut writers: FxHashMap<u64, usize> = FxHashMap::default();
        for (n, &index) in written.iter().enumerate() {
            writers.entry(index).or_insert(n);
        }
        read.iter().enumerate().find_map(|(reader, index)| {
            let &writer = writers.get(index)?;
            (writer != reader).then_some((writer, reader, *index))
        })
    }

    /// The values of an index, by invocation.
    fn index(&mut self, v: Value) -> Option<Vec<u64>> {
        if let Some(known) = self.indices.get(&v) {
            return known.clone();
        }
        let values = self.compute(v);
        self.indices.insert(v, values.clone());
        values
    }

    fn compute(&self, v: Value) -> Option<Vec<u64>> {
        // The instructions it depends on, operands first.
        const MANY: usize = 64;
        let mut order: Vec<Value> = Vec::new();
        let mut work = vec![(v, false)];
        let mut steps = 0;
        while let Some((v, is_expanded)) = work.pop() {
            steps += 1;
            if steps > MANY {
                return None;
            }
            if is_expanded || order.contains(&v) {
                order.push(v);
                continue;
            }
            work.push((v, true));
            if let ValueDef::Inst(i) = self.f.def(v) {
                if !self.f.inst(i).op.is_pure() {
                    return None;
                }
                work.extend(self.f.args(i).iter().map(|&a| (a, false)));
            }
        }
        let mut values: FxHashMap<Value, Vec<u64>> = FxHashMap::default();
        for v in order {
            if !values.contains_key(&v) {
                let column = self.column(v, &values)?;
                values.insert(v, column);
            }
        }
        values.remove(&v)
    }

    fn column(&self, v: Value, values: &FxHashMap<Value, Vec<u64>>) -> Option<Vec<u64>> {
        let i = match self.f.def(v) {
            ValueDef::Param(_) => return None,
            ValueDef::Const(_) => return Some(vec![self.f.as_bits(v)?; self.invocations]),
            ValueDef::Inst(i) => i,
        };
        let data = self.f.inst(i);
        if data.op == Op::GpuThreadId {
            let [x, y, _] = self.size.map(|d| d as usize);
            let of = |n: usize| match data.dim() {
                0 => n % x,
                1 => n / x % y,
                _ => n / (x * y),
            };
            return Some((0..self.invocations).map(|n| of(n) as u64).collect());
        }
        let args = self.f.args(i);
        let typed = args.get((data.op == Op::Select) as usize).or(args.first())?;
        let from = PrimType::from_id(self.f.ty(*typed))?;
        let to = PrimType::from_id(data.ty)?;
        let columns: Vec<&Vec<u64>> = args.iter().map(|a| values.get(a)).collect::<Option<_>>()?;
        (0..self.invocations)
            .map(|n| {
                let row: Vec<u64> = columns.iter().map(|c| c[n]).collect();
                eval(data.op, from, to, &row)
            })
            .collect()
    }
}
