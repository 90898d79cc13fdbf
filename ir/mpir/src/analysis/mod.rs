//! Facts about functions. An analysis is computed from a function as it stands; a change of the
//! function makes it stale. Tables are indexed by id, and `compute` reuses their memory.

mod affine;
mod call_graph;
mod cfg;
mod dominators;
mod finite_loops;
pub(crate) mod guards;
mod liveness;
mod loops;
mod meeting_order;
mod memory;
mod own_arrays;
mod positions;
pub(crate) mod predicate;
mod ranges;
mod uniformity;
mod uses;
mod write_conflicts;

pub use affine::{Affine, AffineForms, Term, Variable};
pub use call_graph::CallGraph;
pub use cfg::Cfg;
pub use dominators::{Dominators, PostDominators};
pub use finite_loops::counters_of_finite_loops;
pub use liveness::Liveness;
pub use loops::{LoopId, Loops};
pub use meeting_order::meeting_order;
pub use memory::{ClassSet, Effects, MemoryClasses};
pub use positions::Positions;
pub use ranges::{LaunchFacts, Range, Ranges};
pub use uniformity::Uniformity;
pub use uses::{User, Uses};
pub use write_conflicts::{
    Collision, Invocation, LaunchDomain, StoreConflicts, WriteAnswer, write_conflicts,
};
