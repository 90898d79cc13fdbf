//! Regions for several invocations at once: [`LANES`] neighbours in x run as one.
//!
//! Values that differ between the lanes are 128-bit vectors where the type has 32 bits, and one
//! scalar a lane elsewhere; values that are the same stay scalar ([`lanes`]). A region is eligible
//! when its branches do not depend on x ([`vary`]), apart from guards such as `x < n` at its start,
//! which become bounds of the invocation loop ([`guard`]). Invocations of a region are unordered,
//! so running them side by side changes nothing that a kernel may rely on.

mod access;
mod body;
mod compute;
pub(crate) mod guard;
mod lanes;
pub(crate) mod path;
mod places;
mod still;
pub(crate) mod vary;

pub(crate) use body::Vector;
pub use places::MAX_NEAR_LEN;

/// The dimension in which neighbours run as one.
pub(crate) const ALONG_ROWS: [bool; 3] = [true, false, false];
/// The dimensions that tell one row from another.
pub(crate) const ACROSS_ROWS: [bool; 3] = [false, true, true];
/// Invocations that run as one.
pub(crate) const LANES: u32 = 4;
