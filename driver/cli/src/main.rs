//! The magpie command.
fn main() {}
