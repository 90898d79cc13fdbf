//! The driver: everything between the command and the compiler crates.
//!
//! A [`Session`] is one call of the command. A command finds its project and manifest, loads a
//! program through a front end, and takes it through the pipelines (`docs/internals/pipeline.md`):
//! host functions become machine code of this process, kernels become blobs when a device or an
//! artifact needs them.
//!
//! The law: what is wrong is a [`magpie_diag::Diagnostic`] in the session, never printed here and
//! never a panic; a function that cannot go on gives a [`Stop`]. Nothing is done before it is
//! needed: a program without kernels touches no device, no driver and no cache.

mod cache;
mod check;
mod cost;
mod device_config;
mod devices;
mod doctor;
mod emit;
mod executable;
mod format;
mod frontend;
mod host;
mod host_runtime;
mod kernels;
mod manifest;
mod miri;
mod modules;
mod new_project;
mod options;
mod project;
mod provider;
mod registry;
mod run;
mod session;
mod source_file;
mod target;
mod targets;
mod test_runner;

pub use check::{check, parse, verify_mpir};
pub use cost::{CostList, cost};
pub use devices::{DeviceList, devices};
pub use doctor::{Checkup, doctor};
pub use emit::build;
pub use executable::{AttachedProgram, attached_program};
pub use format::format;
pub use new_project::new_project;
pub use options::{DEFAULT_MAX_ERRORS, DEFAULT_OPT_LEVEL, Fallback, LogLevel, Options};
pub use run::{
    LoadedKernels, Runnable, compile_kernels, load_kernels, prepare_attached, prepare_run,
};
pub use session::{Findings, Log, Session, Stop};
pub use target::TRIPLE;
pub use test_runner::{TestResult, TestSummary, run_test, test};
