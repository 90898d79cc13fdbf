//! The runtime of Magpie programs: counted heap objects, strings, arrays, maps, input and output,
//! files, and devices.
//!
//! Its face is the C ABI of [`magpie_types::abi`]: the compiler calls `mp_rt_*` functions and
//! nothing else, whether the program is run in memory or linked. [`symbol_address`] finds a
//! function by its row, `include/magpie_rt.h` declares them for C and C++. Hosts written in Rust
//! also use the modules directly.
//!
//! The law: no function of the C ABI unwinds, aborts or recurses by the size of its data. What
//! goes wrong in a program ends it by [`panic::die`] (one line, exit code 101) or comes back as an
//! error object. All functions may be called from any thread; who changes an object has it alone.

pub mod append;
pub mod array;
pub mod callable;
pub mod characters;
pub mod codes;
mod decimal;
mod element;
pub mod fs;
pub mod gpu;
pub mod gpu_error;
pub mod handle;
pub mod header;
pub mod io;
mod live;
pub mod map;
pub mod math;
pub mod memory;
mod merge_sort;
pub mod native;
pub mod object;
pub mod os;
pub mod panic;
pub mod program_stack;
mod signature;
mod small_memory;
mod status;
pub mod string;
pub mod string_builder;
mod symbols;
#[cfg(test)]
mod testing;
pub mod text;
pub mod time;
pub mod typeinfo;

pub use symbols::symbol_address;

const _: () = assert!(usize::BITS == 64, "handles and sizes are 64-bit");
