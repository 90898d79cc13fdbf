//! What kernels in LLVM IR do, for each flavour, compared with the reference interpreter: every op on
//! every type, kernels in text form, random kernels, random graphs.

#![cfg(target_os = "linux")]

mod host;

use host::on_cpu;
use magpie_codegen_llvm::Flavor;
use magpie_kernel_tests::files::read_folder;
use magpie_kernel_tests::ops::{check_all, within_ulps};
use magpie_kernel_tests::{graphs, random};
use magpie_mpir::testing::{GraphShape, KernelConfig, has_exact_result};

const FLAVORS: [Flavor; 4] = [
    Flavor::Nvptx { sm: 70 },
    Flavor::Nvptx { sm: 80 },
    Flavor::Amdgcn { wave64: true },
    Flavor::Amdgcn { wave64: false },
];

/// One flavour: arithmetic is the same in all.
#[test]
fn every_op_on_every_type() {
    on_cpu(FLAVORS[0], |subject| {
        check_all(subject, |case, operands, got| within_ulps(case, operands, got, 4.0));
    });
}

#[test]
fn kernels_do_what_the_interpreter_does() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../spirv/tests/kernels");
    for flavor in FLAVORS {
        on_cpu(flavor, |subject| read_folder(folder).iter().for_each(|file| file.check(subject)));
    }
}

#[test]
fn random_kernels() {
    let exact = KernelConfig { ops: has_exact_result, ..KernelConfig::all() };
    let subgroups = KernelConfig { subgroups: true, ..KernelConfig::portable() };
    for (n, flavor) in FLAVORS.into_iter().enumerate() {
        on_cpu(flavor, |subject| {
            let first = 100 * n as u64;
            (first..first + 4).for_each(|seed| random::check(subject, seed, &exact));
            (first..first + 4).for_each(|seed| random::check(subject, seed, &subgroups));
            for (seed, nodes) in (first..first + 2).zip([7, 20]) {
                graphs::check(subject, seed, GraphShape::Reducible, nodes);
                graphs::check(subject, seed, GraphShape::Any, nodes);
            }
        });
    }
}
