//! [`UniformLoads`]: loads whose result WGSL has to know to be uniform.
//!
//! A barrier may only stand where WGSL sees uniform control flow. It takes a load from writable
//! memory for divergent, whatever the index; `workgroupUniformLoad` gives one that is not.

use magpie_gpu::structurize::{Event, StructuredBody};
use magpie_mpir::analysis::{Cfg, Uniformity};
use magpie_mpir::{Block, Inst, MpirFn, Op, Value, ValueDef};
use magpie_types::TypeCtx;
use rustc_hash::{FxHashMap, FxHashSet};

/// The loads of a kernel that decide whether a barrier is reached.
#[derive(Default)]
pub(crate) struct UniformLoads {
    loads: FxHashSet<Inst>,
}

impl UniformLoads {
    /// Those of a structured kernel; `is_written` tells whether a buffer is.
    pub(crate) fn find(
        f: &MpirFn,
        types: &TypeCtx,
        body: &StructuredBody,
        is_written: impl Fn(Value) -> bool,
    ) -> UniformLoads {
        let has_barrier =
            f.blocks.iter().flat_map(|b| &b.insts).any(|&i| f.inst(i).op == Op::GpuBarrier);
        if !has_barrier {
            return UniformLoads::default();
        }
        let (conditions, condition_of) = deciding_conditions(f, body);
        let uniformity = Uniformity::new(f, types, &Cfg::new(f));
        let block_of: FxHashMap<Inst, Block> =
            f.block_ids().flat_map(|b| f.block(b).insts.iter().map(move |&i| (i, b))).collect();
        let mut loads = FxHashSet::default();
        let mut seen = vec![false; f.locals.len()];
        let mut work = conditions;
        while let Some(v) = work.pop() {
            if std::mem::replace(&mut seen[v.index()], true) {
                continue;
            }
            let ValueDef::Inst(i) = f.def(v) else { continue };
            let Some(&block) = block_of.get(&i) else { continue };
            let op = f.inst(i).op;
            if matches!(op, Op::GpuBufferLoad | Op::GpuLeafLoad) {
                let from_written = f.args(i).first().is_some_and(|&object| is_written(object));
                let is_uniform = uniformity.is_uniform(v) && uniformity.is_uniform_block(block);
                if from_written && is_uniform {
                    loads.insert(i);
                }
            }
            if op == Op::Phi {
                work.extend(condition_of.get(&block));
            }
            work.extend(f.args(i));
        }
        UniformLoads { loads }
    }

    pub(crate) fn contains(&self, i: Inst) -> bool {
        self.loads.contains(&i)
    }
}

/// A construct that is open during the walk.
struct Open {
    condition: Option<Value>,
    merge: Block,
    is_loop: bool,
    /// Contains a barrier, or a way out of something that may contain one.
    decides: bool,
}

/// The conditions around barriers and around ways out; and by merge block the condition of what
/// ends there.
fn deciding_conditions(f: &MpirFn, body: &StructuredBody) -> (Vec<Value>, FxHashMap<Block, Value>) {
    let mut open: Vec<Open> = Vec::new();
    let mut deciding = Vec::new();
    let mut condition_of = FxHashMap::default();
    body.walk(|event| match event {
        Event::If { cond, merge } => {
            open.push(Open { condition: Some(cond), merge, is_loop: false, decides: false });
        }
        Event::Switch { value, merge } => {
            open.push(Open { condition: Some(value), merge, is_loop: false, decides: false });
        }
        Event::Loop { merge, .. } => {
            open.push(Open { condition: None, merge, is_loop: true, decides: false });
        }
        Event::Block(b) => {
            let is_barrier = |&i: &Inst| f.inst(i).op == Op::GpuBarrier;
            if let Some(last) = open.last_mut() {
                last.decides |= f.block(b).insts.iter().any(is_barrier);
            }
        }
        Event::Break | Event::Continue | Event::Return | Event::Unreachable => {
            if let Some(last) = open.last_mut() {
                last.decides = true;
            }
        }
        Event::EndIf | Event::EndSwitch | Event::EndLoop => {
            let Some(closed) = open.pop() else { return };
            if let Some(condition) = closed.condition {
                condition_of.insert(closed.merge, condition);
                if closed.decides {
                    deciding.push(condition);
                }
            }
            if let Some(last) = open.last_mut() {
                last.decides |= closed.decides || closed.is_loop;
            }
        }
        Event::Else
        | Event::Continuing { .. }
        | Event::Case { .. }
        | Event::Default
        | Event::EndCase => {}
    });
    (deciding, condition_of)
}
