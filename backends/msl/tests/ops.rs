//! Every pure scalar op on every type that Metal has, on the CPU, compared with its meaning.

mod support;

use magpie_gpu_msl::{MslTarget, MslVersion};
use magpie_kernel_tests::ops::{check_cases, within_ulps};
use magpie_types::PrimType;
use support::on_cpu;

fn check(version: MslVersion) {
    on_cpu(MslTarget { version }, false, |subject| {
        // What the C library's functions are off by, and what rounding an operand adds.
        let agrees = |case: &_, operands: &[u64], got| within_ulps(case, operands, got, 4.0);
        check_cases(
            subject,
            |case| !case.from.contains(&PrimType::F64) && case.to != PrimType::F64,
            agrees,
        );
    });
}

#[test]
fn every_op_in_msl_2_4() {
    check(MslVersion::V2_4);
}

#[test]
fn every_op_in_msl_3_1() {
    check(MslVersion::V3_1);
}
