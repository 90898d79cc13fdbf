//! Several rounds at once of loops of lowered host code that count up by one.
//!
//! In front of such a loop comes one that does several rounds for each comparison, as long as so
//! many are left and the index checks are known to hold for them ([`enter`]). It works on vectors
//! where that gives the same ([`plan`], [`vectors`]), else it has the body several times
//! ([`unroll`]). The loop itself does the rest, so that whatever goes wrong goes wrong where it did
//! before.

mod choice;
mod enter;
mod find;
mod linear;
mod memory;
mod plan;
mod reduction;
mod unroll;
mod vectors;

use super::PassContext;
use super::insert_preheaders::loops_with_preheaders;
use crate::{Block, Domain, Flags, MpirFn, Op, Value};
use find::LoopView;
use magpie_types::{TypeCtx, TypeId};

/// A function may grow by so many instructions.
const MAX_GROWTH: usize = 2048;

/// Widens the innermost loops that count up by one to a bound and call nothing.
pub fn widen_counted(f: &mut MpirFn, types: &mut TypeCtx, ctx: &mut PassContext) -> bool {
    if f.domain != Domain::LowHost || f.blocks.len() < 2 {
        return false;
    }
    // Without a loop there is no retreating edge; this is cheaper to see than the loops.
    ctx.cfg.compute(f);
    let cfg = &ctx.cfg;
    let mut edges = cfg.rpo().iter().flat_map(|&b| cfg.succs(b).iter().map(move |&s| (b, s)));
    if !edges.any(|(b, s)| cfg.is_retreating(b, s)) {
        return false;
    }
    let changed = loops_with_preheaders(f, ctx);
    let PassContext { cfg, dom, loops, positions, replacements, values, .. } = ctx;
    if !loops.is_reducible() {
        return changed;
    }
    positions.compute(f);
    replacements.start(f);
    let mut growth = 0;
    for l in loops.ids().filter(|&l| loops.is_innermost(l)) {
        let view = LoopView { f, cfg, dom, loops, positions, l };
        let Some(counted) = view.counted() else { continue };
        if let Some(plan) = plan::plan(&view, &counted) {
            growth += vectors::build(f, types, &counted, &plan);
        } else {
            let unrolled = unroll::Unrolled::new(&view, &counted);
            growth += unrolled.size();
            if growth > MAX_GROWTH {
                break;
            }
            unrolled.build(f, &counted, values, replacements);
        }
        if growth > MAX_GROWTH {
            break;
        }
    }
    replacements.apply(f);
    changed || growth > 0
}

/// Appends an operation with a result to a block.
fn append(f: &mut MpirFn, b: Block, op: Op, ty: TypeId, args: &[Value]) -> Value {
    let span = f.block(b).term_span;
    f.append(b, op, Flags::NONE, ty, args, 0, span).unwrap_or(args[0])
}
