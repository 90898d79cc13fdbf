//! Every pure scalar op on every type it takes: assembled for architectures whose code differs, and
//! compared with its meaning on a CUDA device when there is one.

mod support;

use magpie_kernel_tests::ops::{check_all, within_ulps};
use support::{assembled, assembler, cuda, on_device, targets_of};

#[test]
fn every_op_is_assembled() {
    for sm in [70, 80, 90] {
        let validate = assembler(sm);
        check_all(&assembled(sm, &validate), |_, _, _| true);
    }
}

#[test]
fn every_op_on_a_device() {
    let Some(gpu) = cuda() else { return };
    for sm in targets_of(&gpu) {
        check_all(&on_device(&gpu, sm), |case, operands, got| {
            within_ulps(case, operands, got, 4.0)
        });
    }
}
