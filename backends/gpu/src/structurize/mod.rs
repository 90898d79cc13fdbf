//! Structured control flow for the targets that need it: SPIR-V, MSL and WGSL.
//!
//! [`structurize`] rewrites a kernel so that its control-flow graph *is* structured, and returns
//! the tree. The graph stays SSA: an emitter that keeps phis (SPIR-V) prints blocks as they are
//! and adds the merge instructions, an emitter of text takes its control flow from the tree and
//! its phis from [`phi_copies`].
//!
//! What holds afterwards:
//! - Every reachable block stands in the tree once: as a [`Node::Block`], as the header or as the
//!   latch of a [`Node::Loop`]. Blocks come before those they dominate.
//! - A list that is not empty begins with a block or a loop. Its last block ends in a `br` to the
//!   place where the construct around the list goes on, or the list ends in a leaving node.
//! - An `IfElse`, a `Switch` or a `Loop` is followed in its list by its merge block, which is the
//!   merge block of no other construct, neither a loop header nor a latch, and dominated by the
//!   block before the construct. When no path leads there it ends in `unreachable`.
//! - A loop is entered at its header only, has one edge back, from its latch, and is left only
//!   through `Break`, `Return` and `Unreachable` of its own level. An exit through several levels
//!   has become a selector value that each level on the way out tests.
//! - No block with several successors has an edge to a block with phis.
//! - Arrays (`gpu.shared`, `gpu.local`) are made in the entry block.
//! - Arms of new phis whose value nobody reads are zero and known to
//!   [`StructuredBody::is_undefined`]. An emitter does better to leave them undefined: a copy of
//!   zero costs an instruction, and Mesa 22.3 lets it overwrite a value that is still needed.

mod arms;
mod edges;
mod error;
mod escapes;
mod exits;
mod irreducible;
mod phi_copies;
mod prepare;
mod regions;
mod ssa;
#[cfg(test)]
mod tests;
mod tree;
mod variables;

pub use error::StructurizeError;
pub use irreducible::lower_irreducible;
pub use phi_copies::{PhiCopies, PhiCopy, edge_copies, phi_copies};
pub use tree::{Event, Node, NodeList, StructuredBody, SwitchArm};

use exits::LoopLowering;
use magpie_mpir::MpirFn;
use magpie_mpir::analysis::{Cfg, Dominators, Loops};
use magpie_types::TypeCtx;
use regions::Regions;
use ssa::Undefined;
use variables::Transfers;

/// Makes the control flow of a kernel structured.
///
/// # Errors
/// A cycle that is entered at several blocks. `f` is then as it was, but for unreachable blocks.
pub fn structurize(f: &mut MpirFn, types: &TypeCtx) -> Result<StructuredBody, StructurizeError> {
    prepare::prepare(f, types);
    let (cfg, loops) = shape(f);
    structurize_prepared(f, &cfg, &loops, Undefined::default())
}

/// As [`structurize`]; cycles that are entered at several blocks get one entry first
/// ([`lower_irreducible`]).
///
/// # Errors
/// None that are known.
pub fn structurize_any(
    f: &mut MpirFn,
    types: &TypeCtx,
) -> Result<StructuredBody, StructurizeError> {
    prepare::prepare(f, types);
    let mut undefined = Undefined::default();
    let (mut cfg, mut loops) = shape(f);
    if !loops.is_reducible() {
        irreducible::lower_prepared(f, cfg, &mut undefined);
        (cfg, loops) = shape(f);
    }
    structurize_prepared(f, &cfg, &loops, undefined)
}

fn shape(f: &MpirFn) -> (Cfg, Loops) {
    let cfg = Cfg::new(f);
    let loops = Loops::new(&cfg, &Dominators::new(&cfg));
    (cfg, loops)
}

fn structurize_prepared(
    f: &mut MpirFn,
    cfg: &Cfg,
    loops: &Loops,
    mut undefined: Undefined,
) -> Result<StructuredBody, StructurizeError> {
    if !loops.is_reducible() {
        return Err(StructurizeError::find(f, cfg));
    }
    let lowering = LoopLowering::new(f, cfg, loops);
    let before = lowering.before();
    let mut transfers = Transfers::new();
    let loops = lowering.lower_multi_exits(&mut transfers);
    let (mut body, origin) = Regions::build(f, &loops, &mut transfers);
    transfers.resolve(f, &before, &origin, &mut undefined);
    arms::tidy_arms(f, &mut body);
    body.set_undefined(undefined.settle(f));
    Ok(body)
}
