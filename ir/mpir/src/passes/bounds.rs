//! What the passes about bounds checks have in common.

use crate::{Flags, Inst, Memory, MpirFn, Op, Value};
use magpie_types::PrimType;

/// What kind of access an op is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Load,
    Store,
    Atomic,
}

/// The kind of access of device memory that an op makes, if it makes one.
pub(super) fn access(op: Op) -> Option<Access> {
    if matches!(op, Op::GpuBufferLoad | Op::GpuLeafLoad) {
        Some(Access::Load)
    } else if matches!(op, Op::GpuBufferStore | Op::GpuLeafStore) {
        Some(Access::Store)
    } else {
        (op.info().memory == Memory::Atomic).then_some(Access::Atomic)
    }
}

/// Array and index of an access that is checked.
pub(super) fn checked_access(f: &MpirFn, i: Inst) -> Option<(Value, Value)> {
    let inst = f.inst(i);
    access(inst.op).filter(|_| !inst.flags.contains(Flags::UNCHECKED))?;
    match *f.args(i) {
        [array, index, ..] => Some((array, index)),
        _ => None,
    }
}

/// Whether an index may be negative by its type.
pub(super) fn is_signed_index(f: &MpirFn, index: Value) -> bool {
    PrimType::from_id(f.ty(index)).is_none_or(PrimType::is_signed)
}
