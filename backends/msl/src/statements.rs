//! One arm an op: instructions that do more than compute a value from their operands.

use crate::functions::Function;
use crate::language::Msl;
use magpie_gpu::text::{Emit, Text};
use magpie_mpir::{Inst, Op};

impl Msl<'_> {
    /// Writes an instruction that reads or writes memory, or in which invocations meet.
    pub(crate) fn write_statement(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let inst = text.f.inst(i);
        match inst.op {
            Op::GpuBufferLoad => self.write_load(text, i, 0),
            Op::GpuLeafLoad => self.write_load(text, i, inst.imm_lo()),
            Op::GpuBufferStore => self.write_store(text, i, 0),
            Op::GpuLeafStore => self.write_store(text, i, inst.imm_lo()),
            Op::GpuShared | Op::GpuLocal => self.write_array(text, i),
            Op::GpuBarrier => {
                // All memory, whatever the kernel has of it.
                let flags = "mem_flags::mem_device | mem_flags::mem_threadgroup";
                text.line(&format!("threadgroup_barrier({flags});"));
                Ok(())
            }

            Op::GpuAtomicAdd => self.atomic(text, i, "fetch_add", Some(("", Function::AtomicAdd))),
            Op::GpuAtomicSub => self.atomic(text, i, "fetch_sub", Some(("-", Function::AtomicAdd))),
            Op::GpuAtomicMin => self.atomic(text, i, "fetch_min", Some(("", Function::AtomicMin))),
            Op::GpuAtomicMax => self.atomic(text, i, "fetch_max", Some(("", Function::AtomicMax))),
            Op::GpuAtomicAnd => self.atomic(text, i, "fetch_and", None),
            Op::GpuAtomicOr => self.atomic(text, i, "fetch_or", None),
            Op::GpuAtomicXor => self.atomic(text, i, "fetch_xor", None),
            Op::GpuAtomicExchange => {
                self.atomic(text, i, "exchange", Some(("", Function::AtomicExchange)))
            }
            Op::GpuAtomicCas => self.atomic_cas(text, i),

            Op::GpuSubgroupShuffle | Op::GpuMetalSimdShuffle | Op::GpuSubgroupBroadcast => {
                self.simd_shuffle(text, i, "simd_shuffle")
            }
            Op::GpuSubgroupShuffleDown => self.simd_shuffle(text, i, "simd_shuffle_down"),
            Op::GpuSubgroupShuffleUp => self.simd_shuffle(text, i, "simd_shuffle_up"),
            Op::GpuSubgroupShuffleXor => self.simd_shuffle(text, i, "simd_shuffle_xor"),
            Op::GpuSubgroupSum | Op::GpuMetalSimdSum => self.simd_sum(text, i, false),
            Op::GpuSubgroupPrefixSum | Op::GpuMetalSimdPrefixSum => self.simd_sum(text, i, true),
            Op::GpuSubgroupMin => self.simd_extremum(text, i, "simd_min", Function::SimdMin),
            Op::GpuSubgroupMax => self.simd_extremum(text, i, "simd_max", Function::SimdMax),
            Op::GpuSubgroupAny => self.simd_statement(text, i, "simd_any(#0)"),
            Op::GpuSubgroupAll => self.simd_statement(text, i, "simd_all(#0)"),
            Op::GpuSubgroupBallot => {
                self.simd_statement(text, i, "ulong((simd_vote::vote_t)simd_ballot(#0))")
            }

            magpie_mpir::integer_ops!()
            | magpie_mpir::float_ops!()
            | magpie_mpir::icmp_ops!()
            | magpie_mpir::fcmp_ops!()
            | magpie_mpir::vector_ops!()
            | magpie_mpir::struct_ops!()
            | magpie_mpir::id_ops!()
            | Op::GpuSubgroupSize
            | Op::GpuSubgroupLaneId
            | Op::Cast
            | Op::BitsCast
            | Op::Select
            | Op::Phi
            | Op::GpuBufferLen => Err(text.broken_at(i, "is no statement")),
            // What `available` refuses.
            Op::GpuPrint | Op::Call => Err(text.broken_at(i, "must be refused before emission")),
            magpie_mpir::host_code_ops!() => Err(text.broken_at(i, "host code in a kernel")),
        }
    }
}
