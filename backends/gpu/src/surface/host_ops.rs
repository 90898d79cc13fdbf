//! Operations that exist on the host only: what each is in a kernel.

use magpie_diag::Code;
use magpie_mpir::{InstData, Op, Place};
use magpie_types::abi::RtFn;

/// A finding about an operation of the host.
pub(super) struct HostOp {
    pub(super) code: Code,
    pub(super) text: &'static str,
    pub(super) help: &'static str,
}

const ALLOCATES: HostOp = HostOp {
    code: Code::MPG_CORE_1100,
    text: "allocates on the heap",
    help: "use a value struct, `gpu.shared`, `gpu.local`, or a buffer that the host makes",
};
const OWNS: HostOp = HostOp {
    code: Code::MPG_CORE_1101,
    text: "handles ownership, which kernels do not have",
    help: "share handles on the host, and pass buffers and plain values to the kernel",
};
const DISPATCHES: HostOp = HostOp {
    code: Code::MPG_CORE_1102,
    text: "decides at run time what to call",
    help: "call functions by name, or `switch` over a number",
};
const OTHER: HostOp = HostOp {
    code: Code::MPG_CORE_1304,
    text: "exists on the host only",
    help: "do this part on the host, and pass the values that come out of it",
};

const ALLOCATING: &[Op] = &[
    Op::New,
    Op::EnumNew,
    Op::ArrNew,
    Op::ArrFrom,
    Op::ArrSlice,
    Op::MapNew,
    Op::MapKeys,
    Op::MapValues,
    Op::CallableCapture,
];

const OWNING: &[Op] = &[
    Op::BorrowShared,
    Op::BorrowMut,
    Op::Share,
    Op::CloneShared,
    Op::WeakDowngrade,
    Op::WeakUpgrade,
    Op::CloneWeak,
    Op::Retain,
    Op::Release,
];

const DISPATCHING: &[Op] =
    &[Op::CallIndirect, Op::ArrMap, Op::ArrFilter, Op::ArrReduce, Op::ArrForeach];

/// Raw memory accesses: judged by the type of their address.
pub(super) const POINTER_OPS: &[Op] = &[Op::MemLoad, Op::MemStore, Op::PtrAdd];

/// What is wrong with an instruction in a kernel; `None` when it may stand there.
pub(super) fn host_inst(inst: &InstData) -> Option<&'static HostOp> {
    // The one allocation without an operation of its own.
    if inst.op == Op::RtCall && inst.rt() == RtFn::SbNew {
        return Some(&ALLOCATES);
    }
    host_op(inst.op)
}

fn host_op(op: Op) -> Option<&'static HostOp> {
    match op.info().place {
        Place::Both | Place::Device => None,
        Place::Host | Place::AnyHost | Place::LowHost => {
            if ALLOCATING.contains(&op) {
                Some(&ALLOCATES)
            } else if OWNING.contains(&op) {
                Some(&OWNS)
            } else if DISPATCHING.contains(&op) {
                Some(&DISPATCHES)
            } else if POINTER_OPS.contains(&op) {
                None
            } else {
                Some(&OTHER)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_op_is_refused_with_its_code() {
        for &op in Op::ALL {
            let code = host_op(op).map(|h| h.code);
            let name = op.name();
            let is_device = matches!(op.info().place, Place::Both | Place::Device);
            assert_eq!(code.is_none(), is_device || POINTER_OPS.contains(&op), "{name}");
            if name.starts_with("arc.") || name.starts_with("borrow.") {
                assert_eq!(code, Some(Code::MPG_CORE_1101), "{name}");
            }
            if name.ends_with(".new") && !is_device {
                assert_eq!(code, Some(Code::MPG_CORE_1100), "{name}");
            }
        }
        let code = |op| host_op(op).map(|h| h.code);
        assert_eq!(code(Op::CallIndirect), Some(Code::MPG_CORE_1102));
        assert_eq!(code(Op::ArrReduce), Some(Code::MPG_CORE_1102));
        assert_eq!(code(Op::CallableCapture), Some(Code::MPG_CORE_1100));
        assert_eq!(code(Op::New), Some(Code::MPG_CORE_1100));
        assert_eq!(code(Op::Panic), Some(Code::MPG_CORE_1304));
        assert_eq!(code(Op::GpuLaunch), Some(Code::MPG_CORE_1304));
    }
}
