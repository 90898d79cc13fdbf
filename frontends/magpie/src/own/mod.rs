//! Ownership rules (language reference, section 10), checked on rich host MPIR.
//!
//! Every owned value is gone once an op consumes it ([`moves`]); a borrow is confined to the source
//! block that makes it and excludes what it excludes ([`borrows`]). MPIR is the right place: the op
//! table says what an op consumes, and `try` has been taken apart into ordinary edges.

mod borrows;
mod moves;

use magpie_diag::Diagnostic;
use magpie_mpir::analysis::Cfg;
use magpie_mpir::ownership::{is_view, takes_over};
use magpie_mpir::{Block, Inst, Module, MpirFn, Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::{RefMode, TypeId, TypeKind};
use rustc_hash::FxHashMap;

/// What the check needs to know of the source of a function.
pub(crate) struct Source<'a> {
    /// The source block that each MPIR block is part of: `try` splits source blocks.
    pub(crate) source_block: &'a [u32],
    /// The name of a value as written, with `%`.
    pub(crate) name: &'a dyn Fn(Value) -> String,
    /// The constant texts that have names, and with that an owner, with the MPIR blocks in which
    /// they are named.
    pub(crate) texts: FxHashMap<Value, Block>,
}

impl Source<'_> {
    fn block(&self, b: Block) -> u32 {
        self.source_block.get(b.index()).copied().unwrap_or(b.0)
    }
}

/// Checks a host function. Findings come in no particular order.
pub(crate) fn check_ownership(
    module: &Module,
    f: &MpirFn,
    cfg: &Cfg,
    source: &Source,
) -> Vec<Diagnostic> {
    let mut checker = Checker { module, f, cfg, source, findings: Vec::new() };
    checker.moves();
    checker.borrows();
    checker.findings
}

struct Checker<'a> {
    module: &'a Module,
    f: &'a MpirFn,
    cfg: &'a Cfg,
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
        is_view(&self.module.types, self.f.ty(v))
    }

    /// Whether the value must be moved instead of copied.
    fn is_owned(&self, v: Value) -> bool {
        !self.module.types.is_copy(self.f.ty(v))
            && (self.f.as_const(v).is_none() || self.source.texts.contains_key(&v))
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
        if data.op == Op::Call {
            let callee = self.module.func(data.func());
            return callee.params.get(n).is_some_and(|&(_, ty)| self.is_exclusive(ty));
        }
        if data.op == Op::CallIndirect {
            let callable = self.module.types.kind(self.seen_through(self.f.arg(i, 0)));
            let TypeKind::Callable(sig) = callable else { return false };
            let params = &self.module.types.sig_def(sig).params;
            return n > 0 && params.get(n - 1).is_some_and(|&ty| self.is_exclusive(ty));
        }
        let changes_receiver = matches!(
            data.op,
            Op::SetField
                | Op::ArrSet
                | Op::ArrPush
                | Op::ArrPop
                | Op::ArrSort
                | Op::MapSet
                | Op::MapDelete
                | Op::MapDeleteVoid
                | Op::BorrowMut
                | Op::GpuLaunchProfiled
        );
        n == 0 && (changes_receiver || data.op == Op::RtCall && rt_mutates(data.rt()))
    }

    fn is_exclusive(&self, ty: TypeId) -> bool {
        self.ref_mode(ty) == Some(RefMode::MutBorrow)
    }

    /// The type of what a value is or shows.
    fn seen_through(&self, v: Value) -> TypeId {
        match self.module.types.kind(self.f.ty(v)) {
            TypeKind::Ref(_, t) => t,
            _ => self.f.ty(v),
        }
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
