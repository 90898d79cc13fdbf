//! Loop-invariant code motion: what gives the same in every round is computed before the loop.

use super::PassContext;
use super::context::refill;
use super::insert_preheaders::loops_with_preheaders;
use crate::analysis::{Cfg, ClassSet, LoopId, Loops, MemoryClasses, Positions};
use crate::{Block, Domain, Flags, Inst, MpirFn, Op};
use magpie_types::TypeCtx;

/// Moves pure operations out of loops that do not change their operands, and loads out of loops
/// that do not write their memory. An unchecked load is moved only if the loop executes it at its
/// very beginning: elsewhere a condition may be what makes it valid.
pub fn licm(f: &mut MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> bool {
    if f.domain == Domain::Host || f.blocks.len() < 2 {
        return false;
    }
    // Without a loop there is no retreating edge; this is cheaper to see than the loops.
    ctx.cfg.compute(f);
    let has_loop = |cfg: &Cfg, &b: &Block| cfg.succs(b).iter().any(|&s| cfg.is_retreating(b, s));
    if !ctx.cfg.rpo().iter().any(|b| has_loop(&ctx.cfg, b)) {
        return false;
    }
    let mut changed = loops_with_preheaders(f, ctx);
    let PassContext { cfg, loops, positions, memory, loop_writes, insts: kept, blocks, .. } = ctx;
    positions.compute(f);
    memory.compute(f, types);
    writes_of_loops(f, loops, memory, loop_writes);
    // Every loop has one now; looking for it means looking at all that enters the header.
    blocks.clear();
    blocks.extend(loops.ids().map(|l| loops.preheader(cfg, l).unwrap_or(loops.header(l))));
    for n in 0..cfg.rpo().len() {
        let b = cfg.rpo()[n];
        let Some(l) = loops.innermost(b) else { continue };
        let mut insts = std::mem::take(&mut f.block_mut(b).insts);
        kept.clear();
        for &i in &insts {
            let motion = Motion { f, preheaders: blocks, loops, positions, memory, loop_writes };
            match motion.target(i, b, l) {
                Some(preheader) => {
                    f.block_mut(preheader).insts.push(i);
                    positions.set(i, preheader);
                    changed = true;
                }
                None => kept.push(i),
            }
        }
        insts.clear();
        insts.extend_from_slice(kept);
        f.block_mut(b).insts = insts;
    }
    changed
}

/// The memory that each loop writes, inner loops included.
pub(super) fn writes_of_loops(
    f: &MpirFn,
    loops: &Loops,
    memory: &MemoryClasses,
    writes: &mut Vec<ClassSet>,
) {
    refill(writes, loops.ids().len(), ClassSet::NONE);
    for b in f.block_ids() {
        if let Some(l) = loops.innermost(b) {
            for &i in &f.block(b).insts {
                let w = memory.effects(f, i).writes;
                writes[l.index()] = writes[l.index()].union(w);
            }
        }
    }
    for l in loops.ids().rev() {
        if let Some(outer) = loops.parent(l) {
            writes[outer.index()] = writes[outer.index()].union(writes[l.index()]);
        }
    }
}

struct Motion<'a> {
    f: &'a MpirFn,
    preheaders: &'a [Block],
    loops: &'a Loops,
    positions: &'a Positions,
    memory: &'a MemoryClasses,
    loop_writes: &'a [ClassSet],
}

impl Motion<'_> {
    /// The preheader of the outermost loop that an instruction may leave.
    fn target(&self, i: Inst, b: Block, innermost: LoopId) -> Option<Block> {
        let inst = self.f.inst(i);
        let is_load = matches!(inst.op, Op::GpuBufferLoad | Op::GpuLeafLoad | Op::MemLoad);
        if !is_load && !inst.op.is_pure() {
            return None;
        }
        // Host memory is there only where the program says so.
        let first_only = match inst.op {
            Op::MemLoad => !inst.flags.contains(Flags::HEADER),
            _ => inst.flags.contains(Flags::UNCHECKED),
        };
        let reads = if is_load { self.memory.effects(self.f, i).reads } else { ClassSet::NONE };
        let mut at = b;
        let mut left = Some(innermost);
        while let Some(l) = left {
            let inside = |v| {
                let def = self.positions.def_block(self.f, v);
                def.is_some_and(|d| self.loops.contains(l, d))
            };
            if self.f.args(i).iter().any(|&v| inside(v))
                || reads.intersects(self.loop_writes[l.index()])
                || is_load && first_only && at != self.loops.header(l)
            {
                break;
            }
            at = self.preheaders[l.index()];
            left = self.loops.parent(l);
        }
        (at != b).then_some(at)
    }
}
