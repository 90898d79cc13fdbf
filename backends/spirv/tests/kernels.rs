//! Kernels in text form, run on the device and compared with the reference interpreter.

#[path = "support/vulkan.rs"]
mod vulkan;

use magpie_diag::FileId;
use magpie_gpu_spirv::{SpirvEmitter, SpirvTarget};
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::{FnId, Module, Stage, parse_with_own_places, verify_module};
use magpie_types::kernel::{BlobCode, DeviceFeatures, ParamLayout, ScalarTransport};
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};

struct Rng(u64);
impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51afd7ed558ccd) >> 20
    }
}

/// Plain values of a type: small integers, floats with few digits.
fn fill(types: &TypeCtx, ty: TypeId, bytes: &mut [u8], rng: &mut Rng) {
    for leaf in types.leaves(ty) {
        let (prim, lanes) = match types.kind(leaf.ty) {
            TypeKind::Vec(p, n) => (p, n as usize),
            _ => (types.prim(leaf.ty).unwrap_or(PrimType::I32), 1),
        };
        for lane in 0..lanes {
            let n = rng.next() % 256;
            let bits = match prim {
                PrimType::Bool | PrimType::U1 => n & 1,
                p if p.is_float() => magpie_mpir::eval::float_bits(p, n as f64 / 8.0 - 16.0),
                _ => n,
            };
            let size = prim.size() as usize;
            let at = leaf.offset as usize + lane * size;
            bytes[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        }
    }
}

fn run(path: &std::path::Path, gpu: &vulkan::Gpu, features: DeviceFeatures) {
    let text = std::fs::read_to_string(path).unwrap();
    let m: Module = match parse_with_own_places(&text, FileId(0)) {
        Ok(m) => m,
        Err(e) => panic!("{}: {e:?}", path.display()),
    };
    if let Err(e) = verify_module(&m, Stage::Core) {
        panic!(
            "{}: {:?}",
            path.display(),
            e.iter()
                .map(|d| format!(
                    "{} at {}",
                    d.message,
                    &text[d.primary.start as usize..d.primary.end as usize]
                ))
                .collect::<Vec<_>>()
        );
    }
    let f = m.func(FnId(0));
    let emitter =
        SpirvEmitter { target: SpirvTarget { features, push_constant_bytes: 128 }, sources: None };
    let blob = emitter.emit(&m, FnId(0)).unwrap();
    let layout = blob.layout;
    let mut grid = [1u32; 3];
    let mut lens: Vec<u64> = vec![0; f.params.len()];
    let mut given: Vec<Option<f64>> = vec![None; f.params.len()];
    for line in text.lines().filter_map(|l| l.strip_prefix("; ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["grid", x, y, z] => grid = [x, y, z].map(|w| w.parse().unwrap()),
            ["arg", name, rest @ ..] => {
                let n = f.param_names.iter().position(|p| p == name).unwrap();
                match rest {
                    ["=", v] => given[n] = Some(v.parse().unwrap()),
                    [len] => lens[n] = len.parse().unwrap(),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    let mut rng = Rng(7);
    let mut buffers: Vec<Vec<u8>> = Vec::new();
    let mut args = Vec::new();
    let mut block = vec![0u8; layout.block_size as usize];
    for (n, p) in layout.params.iter().enumerate() {
        match p {
            ParamLayout::Buffer(b) => {
                let stride = b.host_stride as usize;
                let mut bytes = vec![0; lens[n] as usize * stride];
                bytes.chunks_mut(stride).for_each(|c| fill(&m.types, b.elem, c, &mut rng));
                args.push(Argument::Buffer(buffers.len()));
                buffers.push(bytes);
                if let Some(h) = layout.hidden.iter().find(|h| h.buffer == b.index) {
                    block[h.offset as usize..][..4]
                        .copy_from_slice(&(lens[n] as u32).to_le_bytes());
                }
            }
            ParamLayout::Scalar { offset, size, ty } => {
                let bytes = &mut block[*offset as usize..][..*size as usize];
                match (given[n], m.types.prim(*ty)) {
                    (Some(v), Some(p)) if p.is_float() => {
                        let bits = magpie_mpir::eval::float_bits(p, v);
                        bytes.copy_from_slice(&bits.to_le_bytes()[..*size as usize]);
                    }
                    (Some(v), Some(_)) => {
                        bytes.copy_from_slice(&(v as i64).to_le_bytes()[..*size as usize])
                    }
                    _ => fill(&m.types, *ty, bytes, &mut rng),
                }
                args.push(Argument::Scalar(bytes.to_vec()));
            }
        }
    }
    let mut expected = buffers.clone();
    {
        let mut views: Vec<Buffer> = expected.iter_mut().map(|b| Buffer { bytes: b }).collect();
        let mut launch = Launch::new(grid, layout.workgroup);
        launch.subgroup_size = 8;
        run_kernel(&m, FnId(0), launch, &args, &mut views, &mut |_| {}).unwrap();
    }
    println!("{} needs {:?}", path.display(), layout.features.names());
    let BlobCode::Bytes(bytes) = blob.code else { panic!() };
    let words: Vec<u32> =
        bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect();
    let out = std::env::temp_dir().join("magpie_kernel.spv");
    std::fs::write(&out, &bytes).unwrap();
    let r = std::process::Command::new("spirv-val")
        .args(["--target-env", "vulkan1.3"])
        .arg(&out)
        .output()
        .unwrap();
    assert!(r.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&r.stderr));
    let uniform = matches!(layout.transport, ScalarTransport::Uniform { .. });
    let push: &[u8] = if uniform { &[] } else { &block };
    gpu.run(&words, &mut buffers, push, uniform.then_some(&block[..]), grid);
    for (n, (got, want)) in buffers.iter().zip(&expected).enumerate() {
        if got != want {
            let at = got.iter().zip(want).position(|(a, b)| a != b).unwrap();
            panic!(
                "{}: buffer {n} differs at byte {at}: got {:x?} want {:x?}",
                path.display(),
                &got[at & !7..][..8.min(got.len() - (at & !7))],
                &want[at & !7..][..8.min(got.len() - (at & !7))]
            );
        }
    }
}

#[test]
fn kernels_do_what_the_interpreter_does() {
    let gpu = vulkan::Gpu::open();
    let all = DeviceFeatures(0x7fffff & !(1 << 11)).minus(DeviceFeatures(0x1ff << 13 & !(1 << 22)));
    let mut paths: Vec<_> =
        std::fs::read_dir("tests/kernels").unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        run(&path, &gpu, all);
        run(
            &path,
            &gpu,
            all.minus(DeviceFeatures::ATOMIC_FLOAT32_ADD | DeviceFeatures::ATOMIC_FLOAT32_MINMAX),
        );
    }
}
