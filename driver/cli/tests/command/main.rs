//! The command as its users call it: every command's way to success and its ways to fail.

mod artifacts;
mod diagnostics;
mod docs;
mod examples;
mod executables;
mod miri_examples;
mod miri_random;
mod programs;
mod projects;
mod support;
mod usage;
