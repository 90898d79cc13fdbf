//! Kernels in text form, validated, run on the device and compared with the reference interpreter.
//!
//! Comments of a file in `tests/kernels` say how it is run:
//!
//! ```text
//! ; grid X Y Z            number of workgroups
//! ; arg NAME N            a buffer of N elements
//! ; arg NAME = V          a scalar
//! ; needs FEATURE         not for devices without it
//! ; has TEXT              the disassembly contains the text
//! ; lacks TEXT            it does not
//! ```

mod support;

use magpie_diag::FileId;
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_spirv::{SpirvEmitter, SpirvTarget, disassemble};
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::eval::float_bits;
use magpie_mpir::testing::Rng;
use magpie_mpir::{FnId, Module, Stage, parse_with_own_places, verify_module};
use magpie_rt::gpu::LaunchSize;
use magpie_types::kernel::{DeviceFeatures, KernelLayout, ParamLayout};
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};
use std::path::{Path, PathBuf};
use support::{Gpu, bytes, validate, words};

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
    for line in text.lines().filter_map(|l| l.strip_prefix("; ")) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        match (word, words.as_slice()) {
            ("grid", [x, y, z]) => plan.grid = [x, y, z].map(|n| n.parse().unwrap()),
            ("arg", [name, value @ ..]) => {
                let n = names.iter().position(|p| p == name).unwrap();
                match value {
                    ["=", v] => plan.values[n] = Some(v.parse().unwrap()),
                    [count] => plan.elements[n] = count.parse().unwrap(),
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
    for (n, param) in layout.params.iter().enumerate() {
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

fn read(path: &Path) -> (String, Module) {
    let text = std::fs::read_to_string(path).unwrap();
    let module = match parse_with_own_places(&text, FileId(0)) {
        Ok(module) => module,
        Err(errors) => panic!("{}: {errors:?}", path.display()),
    };
    if let Err(errors) = verify_module(&module, Stage::Core) {
        panic!("{}: {errors:?}", path.display());
    }
    (text, module)
}

fn run(path: &Path, gpu: &Gpu, target: SpirvTarget) {
    let (text, module) = read(path);
    let kernel = FnId(0);
    let plan = plan(&text, &module.func(kernel).param_names);
    let offered = target.features.names();
    if plan.needs.iter().any(|n| !offered.contains(&n.as_str())) {
        return;
    }
    let emitter = SpirvEmitter { target, sources: None };
    let blob = emitter.emit(&module, kernel).unwrap();
    let what = format!("{} for {offered:?}", path.display());
    validate(&what, bytes(&blob.code));
    let again = emitter.emit(&module, kernel).unwrap();
    assert_eq!(bytes(&blob.code), bytes(&again.code), "{what}: two runs differ");

    let (mut buffers, arguments, scalars) = arguments(&module.types, &blob.layout, &plan);
    let mut expected = buffers.clone();
    let mut views: Vec<Buffer> = expected.iter_mut().map(|b| Buffer { bytes: b }).collect();
    let mut launch = Launch::new(plan.grid, blob.layout.workgroup);
    launch.subgroup_size = gpu.subgroup_size();
    run_kernel(&module, kernel, launch, &arguments, &mut views, &mut |_| {}).unwrap();

    let size = LaunchSize { grid: plan.grid, block: blob.layout.workgroup };
    gpu.run(&blob, &mut buffers, &scalars, size);
    for (n, (got, wanted)) in buffers.iter().zip(&expected).enumerate() {
        if let Some(at) = (0..got.len()).find(|&at| got[at] != wanted[at]) {
            let near = at & !7..(at + 8).min(got.len()) & !7;
            let (got, wanted) = (&got[near.clone()], &wanted[near]);
            panic!("{what}: buffer {n} at byte {at}: {got:02x?} instead of {wanted:02x?}");
        }
    }
}

fn files() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

#[test]
fn kernels_do_what_the_interpreter_does() {
    let Some(gpu) = Gpu::open() else { return };
    let all = gpu.target();
    let without = |features| SpirvTarget { features: all.features.minus(features), ..all };
    let optional = [
        DeviceFeatures::ATOMIC_FLOAT32_ADD | DeviceFeatures::ATOMIC_FLOAT32_MINMAX,
        DeviceFeatures::INT8 | DeviceFeatures::INT16 | DeviceFeatures::FLOAT16,
        DeviceFeatures::STORAGE8 | DeviceFeatures::STORAGE16,
    ];
    for path in files() {
        run(&path, &gpu, all);
        for features in optional {
            run(&path, &gpu, without(features));
        }
        run(&path, &gpu, SpirvTarget { push_constant_bytes: 0, ..all });
    }
}

#[test]
fn modules_say_what_the_files_expect() {
    for path in files() {
        let (text, module) = read(&path);
        let plan = plan(&text, &module.func(FnId(0)).param_names);
        let emitter = SpirvEmitter { target: SpirvTarget::COMMON, sources: None };
        let blob = emitter.emit(&module, FnId(0)).unwrap();
        let text = disassemble(&words(bytes(&blob.code))).unwrap();
        for wanted in &plan.has {
            assert!(text.contains(wanted), "{}: no `{wanted}` in\n{text}", path.display());
        }
        for unwanted in &plan.lacks {
            assert!(!text.contains(unwanted), "{}: `{unwanted}` in\n{text}", path.display());
        }
    }
}

#[test]
fn text_can_be_assembled_again() {
    for path in files() {
        let (_, module) = read(&path);
        let emitter = SpirvEmitter { target: SpirvTarget::COMMON, sources: None };
        let blob = emitter.emit(&module, FnId(0)).unwrap();
        let text = disassemble(&words(bytes(&blob.code))).unwrap();
        let Some(assembled) = support::assemble(&text) else { return };
        // Ids that have a name get other numbers, so the texts are compared.
        let again = disassemble(&words(&assembled)).unwrap();
        let body = |text: &str| text.split_once('\n').unwrap().1.to_string();
        assert_eq!(body(&again), body(&text), "{}", path.display());
    }
}
