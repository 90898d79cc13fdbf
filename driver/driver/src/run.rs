//! `magpie run`: a program in this process.

use crate::device_config::device_config;
use crate::executable::{AttachedProgram, Parts};
use crate::frontend::{self, Program, main_of};
use crate::host::{self, HostFn};
use crate::kernels::Kernels;
use crate::project::Project;
use crate::provider::Provider;
use crate::session::{Session, Stop, note};
use crate::targets::{Compiler, Interpreter};
use magpie_diag::Code;
use magpie_mpir::FnId;
use magpie_rt::gpu::{BlobProvider, DeviceChoice, DriverKind, Runtime};
use magpie_types::kernel::{GpuBackend, KernelBlob};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A program that is ready to run.
pub struct Runnable {
    main: HostFn,
}

/// Compiles the program of the session and makes its devices ready. Kernels are compiled when they
/// are first launched.
///
/// # Errors
/// The program is refused, or the device asked for is missing.
pub fn prepare_run(session: &mut Session) -> Result<Runnable, Stop> {
    let project = Project::find(session)?;
    let program = frontend::load(session, &project)?;
    let main = main_of(session, &program)?;
    prepare(session, &project, program, main, false)
}

/// Makes the program behind this command ready to run.
///
/// # Errors
/// It was made by another version of the command, or the device asked for is missing.
pub fn prepare_attached(
    session: &mut Session,
    attached: &AttachedProgram,
) -> Result<Runnable, Stop> {
    let Parts { program, main, project, blobs } = attached.parts(session)?;
    let kernels = Kernels::of_checked(session, &program)?;
    let main = host::compile(session, program, main)?;
    install(session, &project, kernels, blobs, false)?;
    Ok(Runnable { main })
}

/// Makes a function of a program ready to run.
pub(crate) fn prepare(
    session: &mut Session,
    project: &Project,
    program: Program,
    root: FnId,
    is_test: bool,
) -> Result<Runnable, Stop> {
    let kernels = Kernels::prepare(session, &program)?;
    let main = host::compile(session, program, root)?;
    install(session, project, kernels, Blobs::default(), is_test)?;
    Ok(Runnable { main })
}

/// The kernels of a program, registered with the runtime of this process.
#[derive(Debug)]
pub struct LoadedKernels {
    hashes: Vec<(String, u64)>,
}

impl LoadedKernels {
    /// The number by which the runtime knows the kernel `name` (without `@`).
    pub fn hash(&self, name: &str) -> Option<u64> {
        self.hashes.iter().find(|(known, _)| known == name).map(|&(_, hash)| hash)
    }
}

/// For hosts written in Rust: registers the kernels of the session's program with
/// [`Runtime::global`], which compiles each for a device when it is first launched there.
///
/// # Errors
/// The program is refused, or the device asked for is missing.
pub fn load_kernels(session: &mut Session) -> Result<LoadedKernels, Stop> {
    let project = Project::find(session)?;
    let program = frontend::load(session, &project)?;
    let kernels = Kernels::prepare(session, &program)?;
    session.stop_on_errors()?;
    let hashes = kernels.iter().flat_map(|kernels| {
        let name = |&id| (kernels.name(id).trim_start_matches('@').to_string(), kernels.hash(id));
        kernels.ids.iter().map(name)
    });
    let loaded = LoadedKernels { hashes: hashes.collect() };
    install(session, &project, kernels, Blobs::default(), false)?;
    Ok(loaded)
}

/// Compiles every kernel of the session's program for those of these back ends for which it may
/// exist, without a cache; gives them with their names, kernel by kernel.
///
/// # Errors
/// The program is refused.
pub fn compile_kernels(
    session: &mut Session,
    backends: &[GpuBackend],
) -> Result<Vec<(String, KernelBlob)>, Stop> {
    let project = Project::find(session)?;
    let program = frontend::load(session, &project)?;
    let kernels = Kernels::prepare(session, &program)?;
    let compiler = Compiler::uncached(&project.manifest, session.log());
    let mut blobs = Vec::new();
    if let Some(kernels) = &kernels {
        let of_kernel = |&id: &FnId| backends.iter().map(move |&backend| (id, backend));
        let mut jobs: Vec<_> = kernels.ids.iter().flat_map(of_kernel).collect();
        jobs.retain(|&(id, backend)| kernels.may_exist_for(id, backend));
        let compiled = compiler.compile_all(kernels, &jobs, &session.options);
        for (&(id, _), result) in jobs.iter().zip(compiled) {
            match result {
                Ok(blob) => blobs.push((kernels.name(id).to_string(), blob)),
                Err(errors) => session.report_all(errors),
            }
        }
    }
    session.stop_on_errors().map(|()| blobs)
}

/// What kernels were compiled to before the program runs, by the hashes of their stable ids.
pub(crate) type Blobs = FxHashMap<u64, Vec<KernelBlob>>;

/// Configures the runtime of the process and registers kernels with it.
fn install(
    session: &mut Session,
    project: &Project,
    kernels: Option<Kernels>,
    mut blobs: Blobs,
    is_test: bool,
) -> Result<(), Stop> {
    let config = device_config(&session.options, &project.gpu(), project.has_manifest, is_test);
    let runtime = Runtime::global();
    runtime.configure(config.runtime);
    let kernels = kernels.map(Arc::new);
    runtime.set_executor(Arc::new(Interpreter { kernels: kernels.clone() }));
    let Some(kernels) = kernels else { return Ok(()) };
    let compiler = Compiler::new(&session.options, &project.manifest, session.log());
    let provider: Arc<dyn BlobProvider> = Arc::new(Provider::new(
        Arc::clone(&kernels),
        compiler,
        session.log(),
        config.announces_cpu,
    ));
    for &id in &kernels.ids {
        let provider = Some(Arc::clone(&provider));
        let (hash, name) = (kernels.hash(id), kernels.name(id));
        runtime.register_kernel(hash, name, blobs.remove(&hash).unwrap_or_default(), provider);
    }
    require_device(session, runtime)
}

/// A device that was named must be there: to go on without it would only hide why nothing works.
/// Otherwise devices are left alone until the program asks for one.
fn require_device(session: &mut Session, runtime: &Runtime) -> Result<(), Stop> {
    let is_named = match session.options.device {
        Some(DeviceChoice::Driver(DriverKind::Cpu | DriverKind::Interp | DriverKind::Mock)) => {
            false
        }
        Some(DeviceChoice::Gpu | DeviceChoice::Driver(_) | DeviceChoice::Index(_)) => true,
        Some(DeviceChoice::Auto) | None => false,
    };
    if !is_named && !session.options.is_verbose() {
        return Ok(());
    }
    match runtime.default_device() {
        Ok(context) => session.log().say(|| format!("device: {}", context.properties().label())),
        Err(error) if is_named => {
            let help = "`magpie devices` lists what is there, `magpie doctor` how to get more";
            return Err(session.refuse(Code::MPL0007, error.message, help));
        }
        Err(error) => session.log().say(|| format!("device: {}", error.message)),
    }
    Ok(())
}

impl Runnable {
    /// Runs the program once; it can be run again. For hosts that measure it.
    pub fn call(&self, args: Vec<String>) -> i64 {
        magpie_rt::os::set_program_args(args);
        let result = self.main.call();
        magpie_rt::io::flush_stdout();
        result
    }

    /// Runs the program to its end; gives its exit code, the low 8 bits of its result.
    pub fn execute(self, args: Vec<String>) -> u8 {
        let code = self.call(args);
        if let Err(fault) = Runtime::global().finish() {
            note(&format!("a launch that the program did not wait for: {}", fault.message));
        }
        Runtime::global().save_caches();
        code as u8
    }
}
