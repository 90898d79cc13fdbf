//! The front end of the Magpie language: `.mp` text to MPIR.
//!
//! [`parse_module`] reads a module and never fails; [`format_module`] writes it back in its
//! canonical form, whose hash is the module's digest. [`compile`] makes MPIR of the modules of a
//! program. This crate does no I/O.

pub mod ast;
mod builtins;
mod compile;
mod digest;
mod format;
mod hash_index;
mod interner;
mod lexer;
mod literal;
mod lower;
mod own;
mod parser;
mod resolve;
pub mod symbols;
mod types;

pub use compile::{Output, compile};
pub use digest::{check_digest, module_digest};
pub use format::{format_module, format_module_with_meta};
pub use interner::{Interner, Symbol};
pub use parser::{ParsedModule, parse_module};
