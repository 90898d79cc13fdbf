//! Local names and what they are.

use crate::ast::Sym;
use crate::ty::Ty;
use magpie_diag::Span;
use magpie_mpir::{Value, Variable};

/// A local name.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub(super) name: Sym,
    pub(super) ty: Ty,
    pub(super) mutable: bool,
    pub(super) span: Span,
    pub(super) kind: LocalKind,
}

/// What a local name is.
#[derive(Clone, Debug)]
pub(super) enum LocalKind {
    /// A variable with a value of its own.
    Var(Variable),
    /// A value that does not change, or a view.
    Value(Value),
    /// A device-resident binding, in host code.
    Resident(Vec<Part>),
    /// A device buffer, in a kernel.
    Buffer(Buffer),
    /// A resident value of several buffers (a struct of collections), in a kernel.
    Buffers(Vec<Buffer>),
    /// An array of the workgroup or of the invocation, in a kernel.
    Memory { memory: Value, element: Ty },
}

/// One buffer of a device-resident binding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Type of its elements.
    pub(super) element: Ty,
    /// The handle of the binding.
    pub(super) var: Variable,
    /// Which field of the bound struct it is.
    pub(super) field: Option<u32>,
}

/// A buffer of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) param: Value,
    pub(super) element: Ty,
    /// Whether it stands for one value, not for an array.
    pub(super) single: bool,
    pub(super) field: Option<u32>,
}
