//! `magpie build --emit`: artifacts, made in memory and then written whole.

use crate::executable::executable;
use crate::frontend::{self, Program, main_of};
use crate::kernels::Kernels;
use crate::project::{Project, display_name};
use crate::registry;
use crate::session::{Session, Stop};
use crate::targets::Compiler;
use magpie_diag::{Code, Diagnostic, SourceMap, Span, closest};
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_hip::HipEmitter;
use magpie_gpu_msl::MslEmitter;
use magpie_gpu_ptx::PtxEmitter;
use magpie_gpu_spirv::{SpirvEmitter, disassemble};
use magpie_gpu_wgsl::WgslEmitter;
use magpie_mpir::{FnId, print_module};
use magpie_types::kernel::{BlobCode, GpuBackend, KernelBlob};
use std::path::{Path, PathBuf};

/// What `--emit` can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Artifact {
    /// `<stem>.mpir`: the program as its front end made it.
    Mpir,
    /// `gpu/<sid>.<extension>`: what a device's driver loads.
    Kernels(GpuBackend),
    /// `gpu/<sid>.spvasm`: SPIR-V, disassembled.
    SpvText,
    /// The kernels for all back ends.
    All,
    /// `<stem>`: the program with everything that it needs.
    Executable,
    /// Known, but not made by this build.
    Later,
}

const NAMES: &[(&str, Artifact)] = &[
    ("mpir", Artifact::Mpir),
    ("spv", Artifact::Kernels(GpuBackend::Spv)),
    ("spv-text", Artifact::SpvText),
    ("msl", Artifact::Kernels(GpuBackend::Msl)),
    ("ptx", Artifact::Kernels(GpuBackend::Ptx)),
    ("hip", Artifact::Kernels(GpuBackend::Hip)),
    ("wgsl", Artifact::Kernels(GpuBackend::Wgsl)),
    ("all", Artifact::All),
    ("exe", Artifact::Executable),
    ("object", Artifact::Later),
    ("asm", Artifact::Later),
    ("shared-lib", Artifact::Later),
    ("llvm-ir", Artifact::Later),
    ("llvm-bc", Artifact::Later),
    ("ast", Artifact::Later),
    ("symgraph", Artifact::Later),
    ("depsgraph", Artifact::Later),
    ("cfggraph", Artifact::Later),
    ("ownershipgraph", Artifact::Later),
    ("mpd", Artifact::Later),
    ("mpdbg", Artifact::Later),
];

const MADE_HERE: &str = "this build makes exe, mpir, spv, spv-text, msl, ptx, hip, wgsl and all";

/// The extension of a kernel's file.
fn extension(backend: GpuBackend) -> &'static str {
    match backend {
        GpuBackend::Spv => SpirvEmitter::EXTENSION,
        GpuBackend::Msl => MslEmitter::EXTENSION,
        GpuBackend::Ptx => PtxEmitter::EXTENSION,
        GpuBackend::Hip => HipEmitter::EXTENSION,
        GpuBackend::Wgsl => WgslEmitter::EXTENSION,
        // Their kernels are no files.
        GpuBackend::Cpu | GpuBackend::Interp => "bin",
    }
}

/// Compiles the program of the session and writes what `emit` names, an executable when it is
/// empty, and with any kernel the registry. Gives the names of the files written.
///
/// # Errors
/// The program is refused, a name is unknown, a file cannot be written.
pub fn build(session: &mut Session, emit: &[String]) -> Result<Vec<String>, Stop> {
    let (wanted, later) = parse_emit(session, emit)?;
    for backend in wanted.iter().filter_map(|&artifact| kernels_of(artifact)) {
        if !session.options.blobs.contains(&backend) {
            session.options.blobs.push(backend);
        }
    }
    let project = Project::find(session)?;
    let program = frontend::load(session, &project)?;
    let kernels = Kernels::prepare(session, &program)?;
    session.stop_on_errors()?;
    // What is wrong with the program is worth more than what cannot be made of it.
    for name in later {
        let message = format!("`--emit {name}` is not supported by this build");
        session.refuse(Code::MPT2050, message, MADE_HERE);
    }
    session.stop_on_errors()?;
    let files =
        session.time("emit", |session| make(session, &project, program, kernels, &wanted))?;
    session.time("write", |session| write(session, &project, files))
}

/// The back end whose kernels an artifact holds.
fn kernels_of(artifact: Artifact) -> Option<GpuBackend> {
    match artifact {
        Artifact::Kernels(backend) => Some(backend),
        Artifact::SpvText => Some(GpuBackend::Spv),
        Artifact::Mpir | Artifact::All | Artifact::Executable | Artifact::Later => None,
    }
}

/// What is to be made, and the names of what this build does not make.
fn parse_emit<'n>(
    session: &mut Session,
    emit: &'n [String],
) -> Result<(Vec<Artifact>, Vec<&'n str>), Stop> {
    let names: Vec<&str> = match emit {
        [] => vec!["exe"],
        _ => emit.iter().map(|name| name.trim()).collect(),
    };
    let (mut wanted, mut later) = (Vec::new(), Vec::new());
    for name in names {
        let known = NAMES.iter().find(|(known, _)| *known == name).map(|&(_, artifact)| artifact);
        match known {
            Some(
                artifact @ (Artifact::Mpir
                | Artifact::Kernels(_)
                | Artifact::SpvText
                | Artifact::Executable),
            ) => wanted.push(artifact),
            Some(Artifact::All) => wanted.extend(GpuBackend::TARGETS.map(Artifact::Kernels)),
            Some(Artifact::Later) => later.push(name),
            None => {
                let message = format!("unknown emit name `{name}`");
                let help = match closest(name, NAMES.iter().map(|(known, _)| *known)) {
                    Some(word) => format!("did you mean `{word}`?"),
                    None => MADE_HERE.to_string(),
                };
                session.report(Diagnostic::new(Code::MPL0001, Span::NONE, message).with_help(help));
            }
        }
    }
    session.stop_on_errors()?;
    if session.options.out.is_some() && !wanted.contains(&Artifact::Executable) {
        let message = "`--out` names an executable, and none is asked for";
        return Err(session.refuse(Code::MPL0006, message, "add `exe` to `--emit`"));
    }
    Ok((wanted, later))
}

/// A file to be written.
struct File {
    /// Below the artifact folder, or anywhere if absolute.
    path: PathBuf,
    content: Vec<u8>,
    is_program: bool,
}

impl File {
    fn new(path: impl Into<PathBuf>, content: Vec<u8>) -> File {
        File { path: path.into(), content, is_program: false }
    }
}

fn make(
    session: &mut Session,
    project: &Project,
    mut program: Program,
    kernels: Option<Kernels>,
    wanted: &[Artifact],
) -> Result<Vec<File>, Stop> {
    // Names in artifacts do not depend on where the command is run.
    let sources = relative_sources(session, &project.root);
    program.module.files = sources.iter().map(|(_, file)| file.name.clone()).collect();
    let stem = project.stem();
    let mut files = Vec::new();
    if wanted.contains(&Artifact::Mpir) {
        let text = print_module(&program.module).into_bytes();
        files.push(File::new(format!("{stem}.mpir"), text));
    }
    let compiled = match kernels {
        Some(mut kernels) => {
            kernels.sources = sources.clone();
            let entries = compile(session, project, &kernels)?;
            for (id, blobs) in &entries {
                let name = kernels.func(*id).sid.file_name();
                files.extend(blobs.iter().flat_map(|blob| kernel_files(blob, &name, wanted)));
            }
            let registered: Vec<registry::Entry> = entries
                .iter()
                .map(|(id, blobs)| registry::Entry { kernel: kernels.func(*id), blobs })
                .collect();
            let registry = registry::text(&kernels.module.types, &registered);
            files.push(File::new(format!("{stem}.gpu_registry.ll"), registry.into_bytes()));
            entries.into_iter().map(|(id, blobs)| (kernels.hash(id), blobs)).collect()
        }
        None => Vec::new(),
    };
    if wanted.contains(&Artifact::Executable) {
        let main = main_of(session, &program)?;
        let main = program.module.func(main).name.clone();
        let made = executable(&session.options, project, &program, &main, &sources, &compiled);
        let content = made.map_err(|why| {
            let message = format!("no executable can be made: {why}");
            session.refuse(Code::MPL0004, message, "`magpie run` runs the program")
        })?;
        let path = match &session.options.out {
            Some(out) => std::path::absolute(out).unwrap_or_else(|_| out.clone()),
            None => format!("{stem}{}", std::env::consts::EXE_SUFFIX).into(),
        };
        files.push(File { path, content, is_program: true });
    }
    Ok(files)
}

/// Compiles each kernel for its target and for those of `--blobs`.
fn compile(
    session: &mut Session,
    project: &Project,
    kernels: &Kernels,
) -> Result<Vec<(FnId, Vec<KernelBlob>)>, Stop> {
    let compiler = Compiler::new(&session.options, &project.manifest, session.log());
    let mut jobs = Vec::new();
    for &id in &kernels.ids {
        jobs.extend(GpuBackend::TARGETS.map(|backend| (id, backend)));
    }
    jobs.retain(|&(id, backend)| {
        let asked = session.options.blobs.contains(&backend);
        (asked || kernels.target(id) == Some(backend)) && kernels.may_exist_for(id, backend)
    });
    let compiled = compiler.compile_all(kernels, &jobs, &session.options);
    let mut compiled = jobs.iter().zip(compiled).peekable();
    let mut entries = Vec::new();
    for &id in &kernels.ids {
        let mut blobs = Vec::new();
        while let Some((&(_, backend), result)) = compiled.next_if(|((of, _), _)| *of == id) {
            match result {
                Ok(blob) => {
                    session.report_all(compiler.warning(kernels, id, backend, None));
                    blobs.push(blob);
                }
                Err(errors) => session.report_all(errors),
            }
        }
        entries.push((id, blobs));
    }
    session.stop_on_errors()?;
    Ok(entries)
}

/// The files that are wanted of a kernel; `name` is its stable id.
fn kernel_files(blob: &KernelBlob, name: &str, wanted: &[Artifact]) -> Vec<File> {
    let BlobCode::Bytes(code) = &blob.code else { return Vec::new() };
    let mut files = Vec::new();
    if wanted.contains(&Artifact::Kernels(blob.backend)) {
        let path = format!("gpu/{name}.{}", extension(blob.backend));
        files.push(File::new(path, code.clone()));
    }
    if blob.backend == GpuBackend::Spv && wanted.contains(&Artifact::SpvText) {
        files.push(File::new(format!("gpu/{name}.spvasm"), disassembly(code).into_bytes()));
    }
    files
}

fn disassembly(code: &[u8]) -> String {
    let words: Vec<u32> = code
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    disassemble(&words).unwrap_or_else(|why| format!("; {why}\n"))
}

/// The sources under names relative to the project where they lie below it.
fn relative_sources(session: &Session, root: &Path) -> SourceMap {
    let root = std::path::absolute(root).unwrap_or_default();
    let mut sources = SourceMap::new();
    for (_, file) in session.sources.iter() {
        let path = std::path::absolute(&file.name).unwrap_or_default();
        let below = path.strip_prefix(&root).ok();
        let name = below.map_or(file.name.clone(), |below| below.display().to_string());
        sources.add(name, file.text.clone());
    }
    sources
}

fn write(session: &mut Session, project: &Project, files: Vec<File>) -> Result<Vec<String>, Stop> {
    let folder = project.artifact_dir();
    let mut names = Vec::new();
    for File { path, content, is_program } in files {
        let path = folder.join(path);
        // Folders are made below the project; one that the user names is there or misspelt.
        let own = path.parent().filter(|parent| parent.starts_with(&folder));
        let made = own.map_or(Ok(()), std::fs::create_dir_all);
        let made = made.map_err(|error| crate::source_file::reason(&error));
        let write = match is_program {
            true => magpie_rt::fs::write_program,
            false => magpie_rt::fs::write_whole,
        };
        let written = made.and_then(|()| write(&path, &content));
        if let Err(why) = written {
            let message = format!("cannot write `{}`: {why}", display_name(&path));
            let help = "free space or change permissions; a file of that name is still complete";
            return Err(session.refuse(Code::MPL0004, message, help));
        }
        let below = path.strip_prefix(&project.root).unwrap_or(&path);
        session.artifacts.push(below.display().to_string());
        names.push(display_name(&path));
    }
    Ok(names)
}
