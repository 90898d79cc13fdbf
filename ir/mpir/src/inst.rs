//! What functions are made of: flags, constants, instructions, terminators, blocks, and what makes a
//! function a kernel.

use crate::{Block, FnId, Inst, Op, StrId, Value};
use magpie_diag::Span;
use magpie_types::TypeId;
use magpie_types::kernel::GpuBackend;

/// What a float op may do beyond exact IEEE 754, and whether a memory access is checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// Exact; checked.
    pub const NONE: Flags = Flags(0);
    /// A multiply and an add may be fused.
    pub const CONTRACT: Flags = Flags(1);
    /// Operations may be reassociated.
    pub const REASSOC: Flags = Flags(2);
    /// Approximate functions and reciprocal division are allowed.
    pub const AFN: Flags = Flags(4);
    /// Operands and results are no NaN.
    pub const NNAN: Flags = Flags(8);
    /// The sign of zero does not matter.
    pub const NSZ: Flags = Flags(16);
    /// All float freedoms: `.fast`.
    pub const FAST: Flags = Flags(31);
    /// The access is known to lie inside, or outside is undefined (`unsafe`).
    pub const UNCHECKED: Flags = Flags(32);
    /// The access is to what describes an object (the length of an array, where its elements are),
    /// not to what the object holds. A load may be done wherever its address is known: that is the
    /// handle of a live object.
    pub const HEADER: Flags = Flags(64);
    /// A view of an object that is asked for before it is known to be there. Where there is none,
    /// because the index is outside or the container is not there, the view is null, that of an
    /// array shows one without elements. Only who knows better may use it.
    pub const SPECULATIVE: Flags = Flags(128);

    /// Names of the bits in the text form, from bit 0.
    pub const NAMES: [&'static str; 8] =
        ["contract", "reassoc", "afn", "nnan", "nsz", "unchecked", "header", "speculative"];

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of either.
    pub fn union(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The bits of both.
    pub fn intersect(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }
}

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> =
            (0..8).filter(|i| self.0 >> i & 1 == 1).map(|i| Flags::NAMES[i]).collect();
        f.write_str(&names.join("."))
    }
}

/// The payload of a constant. Equal payload and type mean the same [`Value`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Const {
    /// A scalar of at most 64 bits: its bits, zero-extended. `bool` is 0 or 1.
    Bits(u64),
    /// The value of type `unit`.
    Unit,
    /// All bits zero: null handles, empty aggregates, zero vectors.
    Zero,
    /// Text: a `Str`, or the address of NUL-terminated bytes for a `rawptr<u8>`.
    Str(StrId),
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// The parameter of this position.
    Param(u32),
    /// The result of an instruction.
    Inst(Inst),
    /// A constant.
    Const(Const),
}

/// Type and origin of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MpirLocalDecl {
    #[allow(missing_docs)]
    pub ty: TypeId,
    #[allow(missing_docs)]
    pub def: ValueDef,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Range {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Range {
    pub(crate) fn get(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// An instruction. Operands are read through [`MpirFn::args`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstData {
    #[allow(missing_docs)]
    pub op: Op,
    /// Float freedoms; `UNCHECKED` on memory accesses.
    pub flags: Flags,
    /// Type of the result; `unit` when there is none.
    pub ty: TypeId,
    pub(crate) result: u32,
    pub(crate) args: Range,
    /// The immediate, as the op table says. Two halves: [`InstData::imm_lo`], [`InstData::imm_hi`].
    pub imm: u64,
    /// Source location.
    pub span: Span,
}

impl InstData {
    /// The value defined, if the result type is not `unit`.
    pub fn result(&self) -> Option<Value> {
        (self.result != u32::MAX).then_some(Value(self.result))
    }

    /// Lower half of the immediate.
    pub fn imm_lo(&self) -> u32 {
        self.imm as u32
    }

    /// Upper half of the immediate.
    pub fn imm_hi(&self) -> u32 {
        (self.imm >> 32) as u32
    }

    /// The dimension of an id op.
    pub fn dim(&self) -> u8 {
        self.imm as u8
    }

    /// The function of an op with [`crate::Immediate::Func`].
    pub fn func(&self) -> FnId {
        FnId(self.imm_lo())
    }

    /// The runtime function of an op with [`crate::Immediate::Rt`].
    pub fn rt(&self) -> magpie_types::abi::RtFn {
        let all = magpie_types::abi::RtFn::ALL;
        all[(self.imm as usize).min(all.len() - 1)]
    }
}

/// Joins two halves to an immediate.
pub fn imm_pair(lo: u32, hi: u32) -> u64 {
    lo as u64 | (hi as u64) << 32
}

/// How a block ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Terminator {
    /// Returns; `None` from a `unit` function.
    Ret(Option<Value>),
    /// Goes on in a block.
    Br(Block),
    /// Goes on in `then` when `cond` is true, else in `else_`. They may be the same block.
    Cbr {
        #[allow(missing_docs)]
        cond: Value,
        #[allow(missing_docs)]
        then: Block,
        #[allow(missing_docs)]
        else_: Block,
    },
    /// Goes on in the block of the equal case (compared as bits), else in `default`.
    Switch {
        #[allow(missing_docs)]
        value: Value,
        /// Distinct bits, zero-extended, in source order.
        cases: Vec<(u64, Block)>,
        #[allow(missing_docs)]
        default: Block,
    },
    /// Cannot be reached.
    Unreachable,
}

impl Terminator {
    /// Calls `f` on every target, in order, with repetitions.
    pub fn for_each_target(&self, mut f: impl FnMut(Block)) {
        match self {
            Terminator::Ret(_) | Terminator::Unreachable => {}
            Terminator::Br(b) => f(*b),
            Terminator::Cbr { then, else_, .. } => {
                f(*then);
                f(*else_);
            }
            Terminator::Switch { cases, default, .. } => {
                cases.iter().for_each(|&(_, b)| f(b));
                f(*default);
            }
        }
    }

    /// Replaces every target.
    pub fn map_targets(&mut self, mut f: impl FnMut(Block) -> Block) {
        match self {
            Terminator::Ret(_) | Terminator::Unreachable => {}
            Terminator::Br(b) => *b = f(*b),
            Terminator::Cbr { then, else_, .. } => {
                *then = f(*then);
                *else_ = f(*else_);
            }
            Terminator::Switch { cases, default, .. } => {
                cases.iter_mut().for_each(|(_, b)| *b = f(*b));
                *default = f(*default);
            }
        }
    }

    /// The value read, if any.
    pub fn operand(&self) -> Option<Value> {
        match self {
            Terminator::Ret(v) => *v,
            Terminator::Cbr { cond, .. } => Some(*cond),
            Terminator::Switch { value, .. } => Some(*value),
            Terminator::Br(_) | Terminator::Unreachable => None,
        }
    }

    /// The value read, to be replaced.
    pub fn operand_mut(&mut self) -> Option<&mut Value> {
        match self {
            Terminator::Ret(v) => v.as_mut(),
            Terminator::Cbr { cond, .. } => Some(cond),
            Terminator::Switch { value, .. } => Some(value),
            Terminator::Br(_) | Terminator::Unreachable => None,
        }
    }
}

/// A basic block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MpirBlock {
    /// In execution order, phis first.
    pub insts: Vec<Inst>,
    #[allow(missing_docs)]
    pub term: Terminator,
    /// Source location of the terminator.
    pub term_span: Span,
}

/// Places in the source of a kernel's clauses, for diagnostics.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KernelSpans {
    /// The words `gpu fn` with the name.
    pub head: Span,
    #[allow(missing_docs)]
    pub target: Span,
    #[allow(missing_docs)]
    pub workgroup: Span,
    #[allow(missing_docs)]
    pub requires: Span,
}

/// What makes a function a kernel (GPU specification, section 3.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MpirGpuMeta {
    /// The declared target.
    pub target: GpuBackend,
    /// Workgroup size; (64, 1, 1) when not declared.
    pub workgroup: [u32; 3],
    /// `unsafe gpu fn`.
    pub is_unsafe: bool,
    /// Capabilities listed.
    pub requires: Vec<String>,
    #[allow(missing_docs)]
    pub spans: KernelSpans,
}

/// Where a function runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domain {
    /// On the host, before host lowering: all host ops.
    Host,
    /// On the host, after host lowering: the small core of ops only.
    LowHost,
    /// In kernels: a device function, or a kernel when `gpu_meta` is set.
    Device,
}

/// The memory an access touches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddressSpace {
    /// Device buffers. Two buffer parameters may be the same buffer.
    Buffer,
    /// A shared array; different arrays are disjoint.
    Shared,
    /// A private array; different arrays are disjoint.
    Local,
    /// Host memory.
    Host,
}
