//! Where an invocation is in its launch.

use crate::emitter::{Emit, Emitter, Operand};
use crate::flavor::Flavor;
use magpie_mpir::{Inst, Op};

/// Places in the implicit arguments of a kernel on AMD GPUs (code object version 5): the numbers
/// of workgroups are words, and the sizes of a workgroup half-words behind them.
const AMD_GROUP_COUNTS: u32 = 0;
const AMD_GROUP_SIZES: u32 = 12;

impl Emitter<'_> {
    /// Positions and sizes of the launch.
    pub(super) fn launch_id(&mut self, i: Inst) -> Emit {
        let inst = self.f.inst(i);
        let dim = inst.dim().min(2);
        let v = match inst.op {
            Op::GpuGlobalId => {
                let group = self.id(Op::GpuWorkgroupId, dim);
                let size = self.id(Op::GpuWorkgroupSize, dim);
                let own = self.id(Op::GpuThreadId, dim);
                let first = self.emit(format_args!("mul i32 {group}, {size}"));
                return self.define(i, format_args!("add i32 {first}, {own}"));
            }
            op => self.id(op, dim),
        };
        self.define(i, format_args!("bitcast i32 {v} to i32"))
    }

    /// One number, read where it is needed: reading it costs nothing.
    fn id(&mut self, op: Op, dim: u8) -> Operand {
        let axis = ["x", "y", "z"][usize::from(dim)];
        match (self.flavor, op) {
            (Flavor::Nvptx { .. }, _) => {
                let register = match op {
                    Op::GpuThreadId => "tid",
                    Op::GpuWorkgroupId => "ctaid",
                    Op::GpuWorkgroupSize => "ntid",
                    _ => "nctaid",
                };
                self.read(&format!("llvm.nvvm.read.ptx.sreg.{register}.{axis}"), "i32")
            }
            (Flavor::Amdgcn { .. }, Op::GpuThreadId) => {
                self.read(&format!("llvm.amdgcn.workitem.id.{axis}"), "i32")
            }
            (Flavor::Amdgcn { .. }, Op::GpuWorkgroupId) => {
                self.read(&format!("llvm.amdgcn.workgroup.id.{axis}"), "i32")
            }
            (Flavor::Amdgcn { .. }, Op::GpuWorkgroupSize) => {
                let size = self.implicit(AMD_GROUP_SIZES + 2 * u32::from(dim), "i16", 2);
                self.emit(format_args!("zext i16 {size} to i32"))
            }
            (Flavor::Amdgcn { .. }, _) => {
                self.implicit(AMD_GROUP_COUNTS + 4 * u32::from(dim), "i32", 4)
            }
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
