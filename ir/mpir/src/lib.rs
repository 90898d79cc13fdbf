//! MPIR: the one SSA intermediate representation, typed, over a control-flow graph.
//!
//! The law of this crate:
//! - A function is flat tables; [`Value`], [`Inst`], [`Block`] are indices into them.
//! - One ordered instruction list a block: order is meaning.
//! - The op table ([`Op::info`]) is the single definition of an op, [`eval`] its meaning on scalars.
//! - No pass makes a reducible graph irreducible, gives a convergent op another control dependence,
//!   makes uniform control flow divergent, or moves a memory op across one that may touch the same
//!   memory.
//! - What [`verify`](mod@verify) accepts makes no pass and no back end panic.

pub mod analysis;
mod builder;
pub mod eval;
mod func;
mod ids;
mod inst;
mod module;
mod module_eq;
mod op;
mod op_sets;
pub mod ownership;
mod parse;
pub mod passes;
mod print;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod verify;

pub use builder::{Builder, Variable};
pub use func::MpirFn;
pub use ids::{Block, FnId, Inst, StrId, Value};
pub use inst::{
    AddressSpace, Const, Domain, Flags, InstData, KernelSpans, MpirBlock, MpirGpuMeta,
    MpirLocalDecl, Terminator, ValueDef, imm_pair,
};
pub use module::Module;
pub use module_eq::module_eq;
pub use op::{Class, Consumes, ImmKind, ImmPart, Immediate, Memory, Op, OpInfo, Place, Signature};
pub use parse::{MAX_TYPE_DEPTH, parse, parse_with_own_places};
pub use print::{print_fn, print_inst, print_module, print_type};
pub use verify::{Stage, verify_fn, verify_module};
