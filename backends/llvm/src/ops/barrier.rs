//! The barrier of the workgroup.

use crate::emitter::{Emit, Emitter, line};
use crate::flavor::Flavor;

impl Emitter<'_> {
    /// Waits for the workgroup; all its stores to shared and buffer memory before it are visible
    /// to it afterwards.
    pub(super) fn barrier(&mut self) -> Emit {
        match self.flavor {
            Flavor::Nvptx { .. } => {
                self.intrinsics.declare("llvm.nvvm.barrier0", "void", "");
                line!(self, "call void @llvm.nvvm.barrier0()");
            }
            // The instruction itself orders nothing.
            Flavor::Amdgcn { .. } => {
                self.intrinsics.declare("llvm.amdgcn.s.barrier", "void", "");
                line!(self, "fence syncscope(\"workgroup\") release");
                line!(self, "call void @llvm.amdgcn.s.barrier()");
                line!(self, "fence syncscope(\"workgroup\") acquire");
            }
        }
        Ok(())
    }
}
