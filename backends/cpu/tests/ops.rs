//! Every pure scalar op on every type, as machine code, against its meaning.

mod support;

use magpie_interp::Argument;
use magpie_mpir::testing::ops::{op_cases, op_kernel, operand_rows};
use magpie_mpir::{Flags, Op};
use magpie_types::PrimType;
use support::{Case, execute};

#[test]
fn every_op_on_every_type() {
    for case in op_cases() {
        let (mut module, kernel) = op_kernel(&case);
        let f = &mut module.fns[kernel.index()];
        for block in 0..f.blocks.len() {
            for n in 0..f.blocks[block].insts.len() {
                let i = f.blocks[block].insts[n];
                if matches!(f.inst(i).op, Op::GpuBufferLoad | Op::GpuBufferStore) {
                    f.inst_mut(i).flags = Flags::UNCHECKED;
                }
            }
        }
        let mut rows = operand_rows(&case, 100);
        // Whole workgroups: accesses are unchecked.
        let whole = rows.len().next_multiple_of(64);
        rows.resize(whole, rows[0].clone());
        let bytes = |v: u64, p: PrimType| v.to_le_bytes()[..p.size() as usize].to_vec();
        let mut buffers: Vec<Vec<u8>> = case
            .from
            .iter()
            .enumerate()
            .map(|(n, &p)| rows.iter().flat_map(|row| bytes(row[n], p)).collect())
            .collect();
        let size = case.to.size() as usize;
        buffers.push(vec![0; rows.len() * size]);
        let arguments: Vec<Argument> = (0..buffers.len()).map(Argument::Buffer).collect();
        // Workgroups of 64 run in lanes, of 1 one by one.
        for block in [64, 1] {
            let launch = Case {
                grid: [rows.len() as u32 / block, 1, 1],
                block: [block, 1, 1],
                arguments: &arguments,
                buffers: &buffers,
            };
            let out = execute(&module, kernel, &launch);
            for (row, out) in rows.iter().zip(out[case.from.len()].chunks(size)) {
                let mut word = [0; 8];
                word[..size].copy_from_slice(out);
                let (got, want) = (u64::from_le_bytes(word), case.eval(row));
                assert!(case.agree(got, want), "{case:?} of {row:x?}: {got:#x}, not {want:#x}");
            }
        }
    }
}
