//! PTX by LLVM: assembled for architectures whose code differs, and compared with the reference
//! interpreter on a CUDA device when there is one.

mod support;

use magpie_codegen_llvm::tool::Llvm;
use magpie_kernel_tests::files::{KernelFile, read_folder};
use magpie_kernel_tests::ops::{check_all, within_ulps};
use magpie_kernel_tests::{graphs, random};
use magpie_mpir::testing::{GraphShape, KernelConfig, has_exact_result};
use support::{assembler, by_llvm, cuda, llvm, targets_of};

const ARCHITECTURES: [u32; 3] = [70, 80, 90];

/// The files of the SPIR-V back end, which say what any target must do.
fn files() -> Vec<KernelFile> {
    read_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../spirv/tests/kernels"))
}

fn subgroups() -> KernelConfig {
    KernelConfig { subgroups: true, ..KernelConfig::portable() }
}

fn each_architecture(check: impl Fn(&Llvm, u32)) {
    let Some(llvm) = llvm() else { return };
    ARCHITECTURES.iter().for_each(|&sm| check(&llvm, sm));
}

#[test]
fn kernels_are_assembled() {
    each_architecture(|llvm, sm| {
        let validate = assembler(sm);
        files().iter().for_each(|file| file.check(&by_llvm(llvm, sm, &validate, None)));
    });
}

#[test]
fn every_op_is_assembled() {
    each_architecture(|llvm, sm| {
        let validate = assembler(sm);
        check_all(&by_llvm(llvm, sm, &validate, None), |_, _, _| true);
    });
}

#[test]
fn random_kernels_are_assembled() {
    each_architecture(|llvm, sm| {
        let validate = assembler(sm);
        let subject = by_llvm(llvm, sm, &validate, None);
        let first = 10 * u64::from(sm);
        (first..first + 5).for_each(|seed| random::check(&subject, seed, &KernelConfig::all()));
        (first..first + 3).for_each(|seed| random::check(&subject, seed, &subgroups()));
        for (seed, nodes) in (first..first + 4).zip([4, 8, 16, 24]) {
            graphs::check(&subject, seed, GraphShape::Reducible, nodes);
            graphs::check(&subject, seed, GraphShape::Any, nodes);
        }
    });
}

#[test]
fn kernels_do_what_the_interpreter_does() {
    let (Some(gpu), Some(llvm)) = (cuda(), llvm()) else { return };
    for sm in targets_of(&gpu) {
        let subject = by_llvm(&llvm, sm, &|_, _| (), Some(&gpu));
        files().iter().for_each(|file| file.check(&subject));
        check_all(&subject, |case, operands, got| within_ulps(case, operands, got, 4.0));
        let exact = KernelConfig { ops: has_exact_result, ..KernelConfig::all() };
        (0..100).for_each(|seed| random::check(&subject, seed, &exact));
        (0..100).for_each(|seed| random::check(&subject, seed, &subgroups()));
        let nodes = |seed: u64| 4 + seed as usize % 24;
        (0..60).for_each(|seed| graphs::check(&subject, seed, GraphShape::Any, nodes(seed)));
    }
}
