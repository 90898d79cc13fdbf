//! The verifier: what a well-formed module is.
//!
//! What it accepts makes no pass and no back end panic. It reports several faults in one run, each
//! with the function, the block, the instruction and what was expected.
//!
//! **Types** (`types.rs`), of the whole module:
//! 1. Definitions have distinct names. Types nest at most [`MAX_TYPE_DEPTH`](crate::MAX_TYPE_DEPTH)
//!    levels deep, as arguments and as members. Aggregates do not contain themselves and, like heap
//!    objects, have at most [`MAX_MEMBERS`] members in all. Value enums have no fields.
//!
//! **Functions** (`function.rs`):
//! 2. Names of functions are distinct. Every type, value, block, function and text named exists.
//! 3. A value is a parameter, the result of one instruction, or a constant, and its type is that of
//!    its origin. There are as many names and places of parameters as parameters.
//! 4. Constants: `Bits` for scalars of at most 64 bits (no bits above the width) and value enums,
//!    `Unit` for `unit`, `Str` for `Str` and `rawptr<u8>`, `Zero` for any other type.
//! 5. Kernels belong to [`Domain::Device`](crate::Domain::Device), return `unit`, have a workgroup
//!    size of at least 1 in each dimension. At [`Stage::Core`] neither they nor lowered host
//!    functions have parameters of type `unit`.
//! 6. At [`Stage::Core`] the values of device code have device types: scalars of at most 64 bits,
//!    vectors of them, value structs of such, buffers and arrays of such. Host code has no vectors,
//!    device arrays, `u1` or scalars of 128 bits, lowered host code no aggregates.
//!
//! **Control flow** (`control.rs`):
//! 7. There is a block; the first has no predecessors. Targets exist. Every block lists its phis
//!    first, and no instruction stands in two places.
//! 8. A phi has exactly one arm per predecessor block, unreachable ones included, of the phi's type.
//!    Neither a phi nor a `select` handles `unit`, values that name device memory, or views in host
//!    code.
//! 9. `ret` gives a value exactly when the result type is not `unit`, of that type. `cbr` tests a
//!    `bool`; `switch` an integer of at most 64 bits or a `bool`, with distinct cases that fit.
//!
//! **Dominance** (`dominance.rs`):
//! 10. A definition stands before each use in its block or in a block that dominates the use; for a
//!     phi the use is at the end of the predecessor. Uses in unreachable blocks are free, except
//!     that a definition in the same block stands first.
//!
//! **Instructions** (`inst.rs`, `rules_*.rs`):
//! 11. Flags are known ones, `unchecked` only on accesses of device memory, `header` only
//!     on those of host memory. Immediates are in their
//!     range; unused halves are 0.
//! 12. An op stands where its [`Place`](crate::Place) allows. Before the language's own rules were
//!     checked ([`Stage::Surface`]) device code may hold host ops.
//! 13. Operands and result have the types that the op table and the op's rule say; `unit` results
//!     name no value.
//! 14. Calls go to functions of the same domain that are no kernels; launches name kernels and pass
//!     their parameters.

mod control;
mod dominance;
mod function;
mod inst;
mod rules_call;
mod rules_device;
mod rules_heap;
mod rules_low;
mod rules_value;
mod types;

use crate::{Block, Inst, Module, MpirFn, print_inst};
use magpie_diag::{Code, Diagnostic, Span};

pub use types::MAX_MEMBERS;

/// How far a module has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// As a front end makes it: device code may hold what the language's rules will refuse.
    Surface,
    /// After those rules were checked.
    Core,
}

/// A run stops after this many faults.
const MAX_ERRORS: usize = 50;

/// Checks a module: its types first, then the heads of its functions, then every function. Faults of
/// a step keep the next from being made.
pub fn verify_module(m: &Module, stage: Stage) -> Result<(), Vec<Diagnostic>> {
    let mut errors = types::check(&m.types);
    if errors.is_empty() {
        function::check_heads(m, &mut errors);
    }
    if errors.is_empty() {
        for f in &m.fns {
            if errors.len() >= MAX_ERRORS {
                break;
            }
            errors.extend(check_fn(m, f, stage));
        }
    }
    errors.truncate(MAX_ERRORS);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Checks one function of `m`, whose types passed [`verify_module`]. `f` may be a changed copy that
/// is not in `m`; what it calls is.
pub fn verify_fn(m: &Module, f: &MpirFn, stage: Stage) -> Result<(), Vec<Diagnostic>> {
    let errors = check_fn(m, f, stage);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn check_fn(m: &Module, f: &MpirFn, stage: Stage) -> Vec<Diagnostic> {
    let mut v = Verifier { m, f, stage, errors: Vec::new() };
    // Each step relies on the ones before it.
    v.check_head();
    v.check_values();
    v.check_graph();
    if v.errors.is_empty() {
        v.check_insts();
        v.check_flow();
    }
    v.errors
}

/// Why something is refused.
struct Fault {
    code: Code,
    message: String,
}

impl Fault {
    fn ill_typed(message: impl Into<String>) -> Fault {
        Fault { code: Code::MPS0031, message: message.into() }
    }

    fn structure(message: impl Into<String>) -> Fault {
        Fault { code: Code::MPS0032, message: message.into() }
    }
}

type Check<T = ()> = Result<T, Fault>;

struct Verifier<'a> {
    m: &'a Module,
    f: &'a MpirFn,
    stage: Stage,
    errors: Vec<Diagnostic>,
}

impl Verifier<'_> {
    fn is_full(&self) -> bool {
        self.errors.len() >= MAX_ERRORS
    }

    fn report(&mut self, span: Span, code: Code, message: String) {
        if !self.is_full() {
            let place = if span.is_some() { span } else { self.f.span };
            let message = format!("in `{}`: {message}", self.f.name);
            self.errors.push(Diagnostic::new(code, place, message));
        }
    }

    fn head_fault(&mut self, message: impl Into<String>) {
        self.report(self.f.span, Code::MPS0032, message.into());
    }

    fn block_fault(&mut self, b: Block, fault: Fault) {
        let span = self.f.block(b).term_span;
        self.report(span, fault.code, format!("{b:?}: {}", fault.message));
    }

    fn inst_fault(&mut self, b: Block, i: Inst, fault: Fault) {
        if self.is_full() {
            return;
        }
        let span = self.f.inst(i).span;
        let text = print_inst(self.m, self.f, i);
        self.report(span, fault.code, format!("{b:?}: `{text}`: {}", fault.message));
    }
}
