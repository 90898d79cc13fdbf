//! What an operation costs besides host work: the classes that the forms of the language show.

use magpie_diag::Span;

/// A class of costs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CostClass {
    /// A value is sent to the device, when a kernel first needs it or at once.
    Upload,
    /// A kernel runs.
    Launch,
    /// The host waits for the device and a value comes back.
    Readback,
}

impl CostClass {
    /// The name of the class.
    pub fn name(self) -> &'static str {
        match self {
            CostClass::Upload => "upload",
            CostClass::Launch => "launch",
            CostClass::Readback => "fence + readback",
        }
    }
}

/// The cost of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Where it stands.
    pub span: Span,
    #[allow(missing_docs)]
    pub class: CostClass,
    /// Bytes that travel, where the sizes are known.
    pub bytes: Option<u64>,
}
