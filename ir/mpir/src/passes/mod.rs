//! Transformations of functions: one file and one public function each. A pass returns whether it
//! changed something. [`Pipeline`] runs them in order.
//!
//! The optimisation passes work on device functions and on lowered host functions; they leave
//! functions of [`crate::Domain::Host`] alone, where instructions also move ownership. Only
//! [`specialize_callables`], [`promote_cells`], [`unbox_characters`], [`elide_clones`],
//! [`hoist_uniqueness`] and [`hoist_views`] are about these.

mod bounds;
mod by_name;
mod carry_callees;
mod carry_loads;
mod context;
mod dce;
mod definitions;
mod elide_bounds_checks;
mod elide_clones;
mod elide_index_checks;
mod fold;
mod fuse_branches;
mod fuse_range_tests;
mod gvn;
mod hoist_uniqueness;
mod hoist_views;
mod if_convert;
mod inline_calls;
mod inline_small_calls;
mod insert_preheaders;
mod licm;
mod locations;
mod lower_arc;
mod lower_bounds_checks;
mod lower_host;
mod lower_structs;
mod lower_vectors;
mod parts;
mod pipeline;
mod preconditions;
mod promote_cells;
mod promote_slots;
mod read_literals;
mod replacements;
mod sccp;
mod search_literals;
mod share_divisions;
mod shorten_chains;
mod simplify_cfg;
mod specialize_callables;
mod tail_calls;
mod thread_jumps;
mod unbox_characters;
mod unroll;
mod unswitch_loops;
mod use_ranges;
mod widen_counted;

pub use by_name::run_named_pass;
pub use carry_callees::{callees_of, carry_callees, reached_by_calls};
pub use carry_loads::carry_loads;
pub use context::PassContext;
pub use dce::dce;
pub use elide_bounds_checks::elide_bounds_checks;
pub use elide_clones::elide_clones;
pub use elide_index_checks::elide_index_checks;
pub use fold::fold;
pub use fuse_branches::fuse_branches;
pub use fuse_range_tests::fuse_range_tests;
pub use gvn::gvn;
pub use hoist_uniqueness::hoist_uniqueness;
pub use hoist_views::hoist_views;
pub use if_convert::{if_convert, if_convert_loops};
pub use inline_calls::{MAX_KERNEL_SIZE, inline_calls};
pub use insert_preheaders::insert_preheaders;
pub use licm::licm;
pub use lower_arc::lower_arc;
pub use lower_bounds_checks::{IndexWidth, lower_bounds_checks};
pub use lower_host::lower_host;
pub use lower_structs::lower_structs;
pub use lower_vectors::lower_vectors;
pub use pipeline::Pipeline;
pub use preconditions::{Unchecked, preconditions};
pub use promote_cells::promote_cells;
pub use promote_slots::promote_slots;
pub use read_literals::read_literals;
pub use sccp::sccp;
pub use search_literals::search_literals;
pub use share_divisions::share_divisions;
pub use shorten_chains::shorten_chains;
pub use simplify_cfg::simplify_cfg;
pub use specialize_callables::specialize_callables;
pub use tail_calls::tail_calls;
pub use thread_jumps::thread_jumps;
pub use unbox_characters::unbox_characters;
pub use unroll::{unroll, unroll_barriers};
pub use unswitch_loops::unswitch_loops;
pub use use_ranges::use_ranges;
pub use widen_counted::widen_counted;
