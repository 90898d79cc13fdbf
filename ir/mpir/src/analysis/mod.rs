//! Facts about functions. An analysis is computed from a function as it stands; a change of the
//! function makes it stale. Tables are indexed by id, and `compute` reuses their memory.

mod cfg;
mod dominators;

pub use cfg::Cfg;
pub use dominators::{Dominators, PostDominators};
