//! Transformations of functions: one file and one public function each. A pass returns whether it
//! changed something. The list of passes in order is [`pipeline`].
//!
//! The optimisation passes work on device functions and on lowered host functions; they leave
//! functions of [`crate::Domain::Host`] alone, where instructions also move ownership.

mod context;
mod dce;
mod fold;
mod gvn;
mod replacements;
mod sccp;
mod simplify_cfg;

pub use context::PassContext;
pub use dce::dce;
pub use fold::fold;
pub use gvn::gvn;
pub use sccp::sccp;
pub use simplify_cfg::simplify_cfg;
