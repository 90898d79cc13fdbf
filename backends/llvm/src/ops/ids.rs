//! Where an invocation is in its launch.

use crate::emitter::{Emit, Emitter, Operand};
use crate::flavor::Flavor;
use magpie_mpir::Inst;

/// Places in the implicit arguments of a kernel on AMD GPUs (code object version 5): the numbers
/// of workgroups are words, and the sizes of a workgroup half-words behind them.
const AMD_GROUP_COUNTS: u32 = 0;
const AMD_GROUP_SIZES: u32 = 12;

/// What a launch tells in each dimension.
#[derive(Clone, Copy)]
pub(super) enum Id {
    /// Position of the invocation in its workgroup.
    Invocation,
    /// Position of the workgroup.
    Workgroup,
    /// Invocations of a workgroup.
    WorkgroupSize,
    /// Workgroups of the launch.
    Workgroups,
}

impl Emitter<'_> {
    pub(super) fn launch_id(&mut self, i: Inst, id: Id) -> Emit {
        let v = self.id(i, id);
        self.define(i, format_args!("bitcast i32 {v} to i32"))
    }

    pub(super) fn global_id(&mut self, i: Inst) -> Emit {
        let [group, size, own] =
            [Id::Workgroup, Id::WorkgroupSize, Id::Invocation].map(|id| self.id(i, id));
        let first = self.emit(format_args!("mul i32 {group}, {size}"));
        self.define(i, format_args!("add i32 {first}, {own}"))
    }

    /// One number, read where it is needed: reading it costs nothing.
    fn id(&mut self, i: Inst, id: Id) -> Operand {
        let dim = self.f.inst(i).dim().min(2);
        let axis = ["x", "y", "z"][usize::from(dim)];
        if let Flavor::Nvptx { .. } = self.flavor {
            let register = match id {
                Id::Invocation => "tid",
                Id::Workgroup => "ctaid",
                Id::WorkgroupSize => "ntid",
                Id::Workgroups => "nctaid",
            };
            return self.read(&format!("llvm.nvvm.read.ptx.sreg.{register}.{axis}"), "i32");
        }
        match id {
            Id::Invocation => self.read(&format!("llvm.amdgcn.workitem.id.{axis}"), "i32"),
            Id::Workgroup => self.read(&format!("llvm.amdgcn.workgroup.id.{axis}"), "i32"),
            Id::WorkgroupSize => {
                let size = self.implicit(AMD_GROUP_SIZES + 2 * u32::from(dim), "i16", 2);
                self.emit(format_args!("zext i16 {size} to i32"))
            }
            Id::Workgroups => self.implicit(AMD_GROUP_COUNTS + 4 * u32::from(dim), "i32", 4),
        }
    }

    /// The result of an intrinsic without operands.
    pub(super) fn read(&mut self, name: &str, ty: &str) -> Operand {
        self.intrinsics.declare(name, ty, "");
        self.emit(format_args!("call {ty} @{name}()"))
    }

    /// An implicit argument.
    fn implicit(&mut self, offset: u32, ty: &str, align: u32) -> Operand {
        let start = self.read("llvm.amdgcn.implicitarg.ptr", "ptr addrspace(4)");
        let at = self.emit(format_args!(
            "getelementptr inbounds i8, ptr addrspace(4) {start}, i64 {offset}"
        ));
        self.emit(format_args!(
            "load {ty}, ptr addrspace(4) {at}, align {align}, !invariant.load !{{}}"
        ))
    }
}
