//! Ownership rules (language reference, section 10), checked on rich host MPIR.
//!
//! Every owned value is gone once an op consumes it ([`moves`]); a borrow is confined to the source
//! block that makes it and excludes what it excludes ([`borrows`]). MPIR is the right place: the op
//! table says what an op consumes, and `try` has been taken apart into ordinary edges.

mod borrows;
mod moves;

use magpie_diag::Diagnostic;
use magpie_mpir::ownership::takes_over;
use magpie_mpir::{Block, Inst, Module, MpirFn, Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::{RefMode, TypeId, TypeKind};

/// What the check needs to know of the source of a function.
pub(crate) struct Source<'a> {
    /// The source block that each MPIR block is part of: `try` splits source blocks.
    pub(crate) source_block: &'a [u32],
    /// The name of a value as written, with `%`.
    pub(crate) name: &'a dyn Fn(Value) -> String,
}

/// Checks a host function. Findings come in no particular order.
pub(crate) fn check_ownership(module: &Module, f: &MpirFn, source: &Source) -> Vec<Diagnostic> {
    let mut checker = Checker { module, f, source, findings: Vec::new() };
    checker.moves();
    checker.borrows();
    checker.findings
}

struct Checker<'a> {
    module: &'a Module,
    f: &'a MpirFn,
    source: &'a Source<'a>,
    findings: Vec<Diagnostic>,
}

/// What an instruction does with an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    /// Looks at it.
    Read,
    /// Changes the object behind it.
    Mutate,
    /// Takes it over.
    Consume,
}

impl Checker<'_> {
    fn name(&self, v: Value) -> String {
        (self.source.name)(v)
    }

    fn ref_mode(&self, ty: TypeId) -> Option<RefMode> {
        match self.module.types.kind(ty) {
            TypeKind::Ref(mode, _) => Some(mode),
            _ => None,
        }
    }

    /// Whether the value is a view that owns nothing.
    fn is_borrow(&self, v: Value) -> bool {
        matches!(self.ref_mode(self.f.ty(v)), Some(RefMode::Borrow | RefMode::MutBorrow))
    }

    /// Whether the value must be moved instead of copied.
    fn is_owned(&self, v: Value) -> bool {
        !self.module.types.is_copy(self.f.ty(v)) && self.f.as_const(v).is_none()
    }

    /// What operand `n` of an instruction is used for.
    fn use_of(&self, i: Inst, n: usize) -> Use {
        if self.is_owned(self.f.arg(i, n)) && takes_over(self.module, self.f, i, n) {
            return Use::Consume;
        }
        if self.mutates(i, n) { Use::Mutate } else { Use::Read }
    }

    fn mutates(&self, i: Inst, n: usize) -> bool {
        let data = self.f.inst(i);
        match data.op {
            Op::SetField
            | Op::ArrSet
            | Op::ArrPush
            | Op::ArrPop
            | Op::ArrSort
            | Op::MapSet
            | Op::MapDelete
            | Op::MapDeleteVoid
            | Op::BorrowMut => n == 0,
            Op::Call => {
                let callee = self.module.func(data.func());
                callee
                    .params
                    .get(n)
                    .is_some_and(|&(_, ty)| self.ref_mode(ty) == Some(RefMode::MutBorrow))
            }
            Op::RtCall => n == 0 && rt_mutates(data.rt()),
            Op::GpuLaunchProfiled => n == 0,
            _ => false,
        }
    }

    fn source_block(&self, b: Block) -> u32 {
        self.source.source_block.get(b.index()).copied().unwrap_or(b.0)
    }
}

/// Whether a runtime function changes the object that is its first parameter.
fn rt_mutates(f: RtFn) -> bool {
    matches!(
        f,
        RtFn::SbAppendStr
            | RtFn::SbAppendI64
            | RtFn::SbAppendU64
            | RtFn::SbAppendF64
            | RtFn::SbAppendBool
            | RtFn::GpuProfileMarkBegin
            | RtFn::GpuProfileMarkEnd
            | RtFn::GpuProfileEnableCounters
    )
}
