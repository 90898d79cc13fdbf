//! Kernels in text form, checked, run and compared with the reference interpreter.
//!
//! Comments of a file say how it is run:
//!
//! ```text
//! ; grid X Y Z            number of workgroups
//! ; arg NAME N            a buffer of N elements
//! ; arg NAME = V          a scalar
//! ; needs FEATURE         not for devices without it
//! ; has TEXT              the code as text contains the text
//! ; lacks TEXT            it does not
//! ```

use crate::{Subject, bytes};
use magpie_diag::FileId;
use magpie_gpu::compile::BodyCompiler;
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::eval::float_bits;
use magpie_mpir::testing::Rng;
use magpie_mpir::{FnId, Module, Stage, parse_with_own_places, verify_module};
use magpie_rt::gpu::LaunchSize;
use magpie_types::kernel::{KernelLayout, ParamLayout};
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};
use std::path::{Path, PathBuf};

/// A file.
pub struct KernelFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its kernel is the first function.
    pub module: Module,
    plan: Plan,
}

/// What a kernel is launched with.
pub struct Launched {
    /// One a buffer parameter, in host layout.
    pub buffers: Vec<Vec<u8>>,
    /// The scalar block, without hidden lengths.
    pub scalars: Vec<u8>,
    /// Workgroups and invocations.
    pub size: LaunchSize,
}

/// How a file wants to be run.
struct Plan {
    grid: [u32; 3],
    /// By parameter: elements of a buffer.
    elements: Vec<usize>,
    /// By parameter: value of a scalar.
    values: Vec<Option<f64>>,
    needs: Vec<String>,
    has: Vec<String>,
    lacks: Vec<String>,
}

fn plan(text: &str, names: &[String]) -> Plan {
    let mut plan = Plan {
        grid: [1; 3],
        elements: vec![0; names.len()],
        values: vec![None; names.len()],
        needs: Vec::new(),
        has: Vec::new(),
        lacks: Vec::new(),
    };
    let number = |n: &str| n.parse().expect("a number");
    for line in text.lines().filter_map(|l| l.strip_prefix("; ")) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        match (word, words.as_slice()) {
            ("grid", [x, y, z]) => plan.grid = [x, y, z].map(|n| number(n)),
            ("arg", [name, value @ ..]) => {
                let n = names.iter().position(|p| p == name).expect("a parameter");
                match value {
                    ["=", v] => plan.values[n] = Some(v.parse().expect("a number")),
                    [count] => plan.elements[n] = number(count) as usize,
                    _ => panic!("{line}"),
                }
            }
            ("needs", _) => plan.needs.push(rest.to_string()),
            ("has", _) => plan.has.push(rest.to_string()),
            ("lacks", _) => plan.lacks.push(rest.to_string()),
            _ => {}
        }
    }
    plan
}

/// Writes plain values of a type: small integers, floats with few digits.
fn fill(types: &TypeCtx, ty: TypeId, bytes: &mut [u8], random: &mut Rng) {
    for leaf in types.leaves(ty) {
        let (prim, lanes) = match types.kind(leaf.ty) {
            TypeKind::Vec(p, n) => (p, n as usize),
            _ => (types.prim(leaf.ty).unwrap_or(PrimType::I32), 1),
        };
        for lane in 0..lanes {
            let n = random.bits() % 256;
            let bits = match prim {
                PrimType::Bool => n & 1,
                p if p.is_float() => float_bits(p, n as f64 / 8.0 - 16.0),
                _ => n,
            };
            put(bytes, leaf.offset as usize + lane * prim.size() as usize, prim, bits);
        }
    }
}

fn put(bytes: &mut [u8], at: usize, p: PrimType, bits: u64) {
    let size = p.size() as usize;
    bytes[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
}

/// Buffers, arguments for the interpreter, and the scalar block.
fn arguments(
    types: &TypeCtx,
    layout: &KernelLayout,
    plan: &Plan,
) -> (Vec<Vec<u8>>, Vec<Argument>, Vec<u8>) {
    let mut random = Rng::new(7);
    let (mut buffers, mut arguments) = (Vec::new(), Vec::new());
    let mut block = vec![0; layout.scalar_size as usize];
    // The buffer of what a kernel prints is no argument.
    for (n, param) in layout.params.iter().take(plan.elements.len()).enumerate() {
        match param {
            ParamLayout::Buffer(b) => {
                let stride = b.host_stride as usize;
                let mut content = vec![0; plan.elements[n] * stride];
                content.chunks_mut(stride).for_each(|e| fill(types, b.elem, e, &mut random));
                arguments.push(Argument::Buffer(buffers.len()));
                buffers.push(content);
            }
            &ParamLayout::Scalar { offset, size, ty } => {
                let content = &mut block[offset as usize..][..size as usize];
                match (plan.values[n], types.prim(ty)) {
                    (Some(v), Some(p)) if p.is_float() => put(content, 0, p, float_bits(p, v)),
                    (Some(v), Some(p)) => put(content, 0, p, v as i64 as u64),
                    _ => fill(types, ty, content, &mut random),
                }
                arguments.push(Argument::Scalar(content.to_vec()));
            }
        }
    }
    (buffers, arguments, block)
}

/// The kernels in a folder, by name.
pub fn read_folder(folder: impl AsRef<Path>) -> Vec<KernelFile> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths.into_iter().map(KernelFile::read).collect()
}

impl KernelFile {
    fn read(path: PathBuf) -> KernelFile {
        let text = std::fs::read_to_string(&path).expect("a text");
        let module = match parse_with_own_places(&text, FileId(0)) {
            Ok(module) => module,
            Err(errors) => panic!("{}: {errors:?}", path.display()),
        };
        if let Err(errors) = verify_module(&module, Stage::Core) {
            panic!("{}: {errors:?}", path.display());
        }
        let plan = plan(&text, &module.func(FnId(0)).param_names);
        KernelFile { path, module, plan }
    }

    /// Whether it can run on a device with these features.
    pub fn runs_on(&self, features: &[&str]) -> bool {
        self.plan.needs.iter().all(|n| features.contains(&n.as_str()))
    }

    /// Compiles, checks, runs and compares the kernel.
    pub fn check<C: BodyCompiler>(&self, subject: &Subject<'_, C>) {
        let (module, kernel) = (&self.module, FnId(0));
        let what = format!("{} for {}", self.path.display(), subject.name);
        let emit = || {
            let blob = subject.compiler.emit(module, kernel);
            blob.unwrap_or_else(|errors| panic!("{what}: {errors:?}"))
        };
        let blob = emit();
        subject.check(&what, &blob);
        assert_eq!(bytes(&blob.code), bytes(&emit().code), "{what}: two runs differ");

        let Some(gpu) = subject.gpu else { return };
        let Launched { mut buffers, scalars, size } = self.arguments(&blob.layout);
        gpu.run(&blob, &mut buffers, &scalars, size);
        self.compare(&what, &blob.layout, subject.subgroup_size(), &buffers);
    }

    /// What the kernel is launched with.
    pub fn arguments(&self, layout: &KernelLayout) -> Launched {
        let (buffers, _, scalars) = arguments(&self.module.types, layout, &self.plan);
        let size = LaunchSize { grid: self.plan.grid, block: layout.workgroup };
        Launched { buffers, scalars, size }
    }

    /// Panics when the buffers after a launch are not those of the interpreter.
    pub fn compare(
        &self,
        what: &str,
        layout: &KernelLayout,
        subgroup_size: u32,
        buffers: &[Vec<u8>],
    ) {
        let (mut expected, arguments, _) = arguments(&self.module.types, layout, &self.plan);
        let mut views: Vec<Buffer> = expected.iter_mut().map(|b| Buffer { bytes: b }).collect();
        let mut launch = Launch::new(self.plan.grid, layout.workgroup);
        launch.subgroup_size = subgroup_size;
        let (module, kernel) = (&self.module, FnId(0));
        let ran = run_kernel(module, kernel, launch, &arguments, &mut views, &mut |_| {});
        ran.expect("the interpreter runs it");
        assert_eq!(buffers.len(), expected.len(), "{what}");
        for (n, (got, wanted)) in buffers.iter().zip(&expected).enumerate() {
            if let Some(at) = (0..wanted.len()).find(|&at| got.get(at) != wanted.get(at)) {
                let near = at & !7..(at + 8).min(wanted.len()) & !7;
                let (got, wanted) = (got.get(near.clone()), &wanted[near]);
                panic!("{what}: buffer {n} at byte {at}: {got:02x?} instead of {wanted:02x?}");
            }
        }
    }

    /// Compares the code, as text, with what the file expects of it.
    pub fn check_text(&self, text: &str) {
        let path = self.path.display();
        for wanted in &self.plan.has {
            assert!(text.contains(wanted), "{path}: no `{wanted}` in\n{text}");
        }
        for unwanted in &self.plan.lacks {
            assert!(!text.contains(unwanted), "{path}: `{unwanted}` in\n{text}");
        }
    }
}
