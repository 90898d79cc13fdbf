//! Every pure scalar op on every type it takes, run on the device and compared bit for bit with
//! its meaning in `magpie_mpir::eval`.

#[path = "support/vulkan.rs"]
mod vulkan;

use magpie_diag::Span;
use magpie_gpu_spirv::{SpirvEmitter, SpirvTarget};
use magpie_mpir::Module;
use magpie_mpir::eval::{eval, float_value};
use magpie_mpir::{
    Block, Class, Domain, Flags, MpirFn, MpirGpuMeta, Op, Place, Signature, Terminator, Value,
};
use magpie_types::kernel::BlobCode;
use magpie_types::kernel::{DeviceFeatures, GpuBackend};
use magpie_types::{PrimType, Sid, SidKind, TypeCtx, TypeKind, fixed};
use std::collections::BTreeMap;

/// Invocations of a run.
const N: usize = 4096;

const TYPES: [PrimType; 13] = {
    use PrimType::*;
    [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64, Bf16]
};

#[derive(Clone, Copy, Debug)]
struct Case {
    op: Op,
    to: PrimType,
}

fn accepts(class: Class, p: PrimType) -> bool {
    match class {
        Class::Int => p.is_int(),
        Class::IntOrBool => p.is_int() || p == PrimType::Bool,
        Class::Float => p.is_float(),
        Class::FloatVec => false,
    }
}

/// The cases by their operand types.
fn cases() -> BTreeMap<Vec<PrimType>, Vec<Case>> {
    let mut out: BTreeMap<Vec<PrimType>, Vec<Case>> = BTreeMap::new();
    for &op in Op::ALL {
        let info = op.info();
        if info.place != Place::Both || info.may_trap || op == Op::Phi {
            continue;
        }
        for t in TYPES {
            let mut add = |operands: &[PrimType], to| {
                let zeros = vec![0; operands.len()];
                if eval(op, operands[operands.len().min(2) - 1], to, &zeros).is_some() {
                    out.entry(operands.to_vec()).or_default().push(Case { op, to });
                }
            };
            match info.signature {
                Signature::Same(n, class) if accepts(class, t) => add(&vec![t; n as usize], t),
                Signature::Compare(class) if accepts(class, t) => add(&[t, t], PrimType::Bool),
                Signature::Convert => TYPES.into_iter().for_each(|to| add(&[t], to)),
                Signature::Own if op == Op::Select => add(&[PrimType::Bool, t, t], t),
                _ => {}
            }
        }
    }
    out
}

fn edges(p: PrimType) -> Vec<u64> {
    let w = p.bit_width();
    let mut v: Vec<u64> = Vec::new();
    if p.is_float() {
        let (mant, exp_bits) = match p {
            PrimType::F16 => (10, 5),
            PrimType::Bf16 => (7, 8),
            PrimType::F32 => (23, 8),
            _ => (52, 11),
        };
        let bias = (1u64 << (exp_bits - 1)) - 1;
        let inf = ((1u64 << exp_bits) - 1) << mant;
        let exps = [
            0,
            1,
            2,
            bias - 2,
            bias - 1,
            bias,
            bias + 1,
            bias + 2,
            bias + 7,
            bias + 10,
            (bias + 31).min(2 * bias),
            (bias + 32).min(2 * bias),
            (bias + 63).min(2 * bias),
            2 * bias,
        ];
        for e in exps {
            for m in [0, 1, (1 << mant) - 1, 1 << (mant - 1), (1 << (mant - 1)) + 1] {
                v.push(e << mant | m);
            }
        }
        v.extend([inf, inf | 1 << (mant - 1), inf | 1]);
        let signed: Vec<u64> = v.iter().map(|&b| b | 1 << (w - 1)).collect();
        v.extend(signed);
    } else if w == 1 {
        v = vec![0, 1];
    } else {
        let max = p.mask();
        v = vec![0, 1, 2, 3, 5, 7, 10, 31, 32, 33, 63, 64, 100, 127, 128, 255];
        for s in 0..w {
            v.extend([1 << s, (1 << s) - 1, !(1u64 << s)]);
        }
        v.extend([max, max - 1, max - 2, max >> 1, (max >> 1) - 1, (max >> 1) + 1, (max >> 1) + 2]);
        v.iter_mut().for_each(|b| *b &= max);
        v.sort_unstable();
        v.dedup();
    }
    v
}

struct Rng(u64);
impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0;
        (x ^ (x >> 33)).wrapping_mul(0xff51afd7ed558ccd) ^ (x >> 29)
    }
}

fn operands(types: &[PrimType]) -> Vec<Vec<u64>> {
    let mut rng = Rng(42);
    let all: Vec<Vec<u64>> = types.iter().map(|&t| edges(t)).collect();
    let total: usize = all.iter().map(Vec::len).product();
    (0..N)
        .map(|n| {
            let mut k = if total <= N { n } else { rng.next() as usize };
            types
                .iter()
                .zip(&all)
                .map(|(&t, e)| {
                    if total <= N && n < total || rng.next() % 4 != 0 && total > N {
                        let v = e[k % e.len()];
                        k /= e.len();
                        v
                    } else {
                        rng.next() & t.mask()
                    }
                })
                .collect()
        })
        .collect()
}

fn kernel(types: &mut TypeCtx, operand_types: &[PrimType], cases: &[Case]) -> MpirFn {
    let sid = Sid::new(SidKind::Function, "m.@k");
    let mut f = MpirFn::new(sid, "m.@k", fixed::UNIT, Domain::Device);
    f.gpu_meta = Some(MpirGpuMeta {
        target: GpuBackend::Spv,
        workgroup: [64, 1, 1],
        is_unsafe: false,
        requires: Vec::new(),
        spans: Default::default(),
    });
    let none = Span::NONE;
    let inputs: Vec<Value> = operand_types
        .iter()
        .enumerate()
        .map(|(n, p)| {
            let ty = types.intern(TypeKind::Buffer(p.id()));
            f.add_param(format!("in{n}"), ty, none)
        })
        .collect();
    let mut outs: BTreeMap<PrimType, (Value, u32)> = BTreeMap::new();
    for c in cases {
        if !outs.contains_key(&c.to) {
            let ty = types.intern(TypeKind::Buffer(c.to.id()));
            outs.insert(c.to, (f.add_param(format!("out_{}", c.to.name()), ty, none), 0));
        }
    }
    let b = f.add_block();
    let un = Flags::UNCHECKED;
    let gid = f.append(b, Op::GpuGlobalId, Flags::NONE, fixed::U32, &[], 0, none).unwrap();
    let args: Vec<Value> = inputs
        .iter()
        .zip(operand_types)
        .map(|(&buf, p)| f.append(b, Op::GpuBufferLoad, un, p.id(), &[buf, gid], 0, none).unwrap())
        .collect();
    for c in cases {
        let r = f.append(b, c.op, Flags::NONE, c.to.id(), &args, 0, none).unwrap();
        let (buf, slot) = outs.get_mut(&c.to).unwrap();
        let offset = f.const_u32(*slot * N as u32);
        *slot += 1;
        let at = f.append(b, Op::IAdd, Flags::NONE, fixed::U32, &[gid, offset], 0, none).unwrap();
        f.append(b, Op::GpuBufferStore, un, fixed::UNIT, &[*buf, at, r], 0, none);
    }
    f.block_mut(Block(0)).term = Terminator::Ret(None);
    f
}

#[test]
fn every_op_on_every_type() {
    let gpu = vulkan::Gpu::open();
    let features =
        DeviceFeatures(0x7fffff & !(1 << 11)).minus(DeviceFeatures(0x1ff << 13 & !(1 << 22)));
    let emitter =
        SpirvEmitter { target: SpirvTarget { features, push_constant_bytes: 128 }, sources: None };
    let only = std::env::var("ONLY").ok();
    let mut bad_cases = 0;
    for (operand_types, cases) in cases() {
        let cases: Vec<Case> = cases
            .into_iter()
            .filter(|c| only.as_deref().is_none_or(|o| c.op.name() == o))
            .collect();
        // One kernel a case first, to find refusals.
        let values = operands(&operand_types);
        let mut ok = Vec::new();
        for c in cases {
            let mut m = Module::new();
            let f = kernel(&mut m.types, &operand_types, &[c]);
            let id = m.add_fn(f);
            match emitter.emit(&m, id) {
                Ok(_) => ok.push(c),
                Err(d) => println!(
                    "refused {:?} {:?}->{:?}: {}",
                    c.op.name(),
                    operand_types,
                    c.to,
                    d[0].message
                ),
            }
        }
        if ok.is_empty() {
            continue;
        }
        let mut m = Module::new();
        let f = kernel(&mut m.types, &operand_types, &ok);
        let id = m.add_fn(f);
        let BlobCode::Bytes(bytes) = emitter.emit(&m, id).unwrap().code else { panic!() };
        let words: Vec<u32> =
            bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect();
        let path = std::env::temp_dir().join("magpie_ops.spv");
        std::fs::write(&path, words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>())
            .unwrap();
        let r = std::process::Command::new("spirv-val")
            .args(["--target-env", "vulkan1.3"])
            .arg(&path)
            .output()
            .unwrap();
        if !r.status.success() {
            println!("INVALID {operand_types:?} {}", String::from_utf8_lossy(&r.stderr));
            continue;
        }
        let mut buffers: Vec<Vec<u8>> = Vec::new();
        for (k, p) in operand_types.iter().enumerate() {
            buffers.push(
                values
                    .iter()
                    .flat_map(|v| v[k].to_le_bytes()[..p.size() as usize].to_vec())
                    .collect(),
            );
        }
        let mut counts: Vec<(PrimType, usize)> = Vec::new();
        for c in &ok {
            match counts.iter_mut().find(|x| x.0 == c.to) {
                Some(x) => x.1 += 1,
                None => counts.push((c.to, 1)),
            }
        }
        for &(t, n) in &counts {
            buffers.push(vec![0xcc; n * N * t.size() as usize]);
        }
        if std::env::var("NORUN").is_ok() {
            continue;
        }
        println!("run {operand_types:?}");
        gpu.run(&words, &mut buffers, &[], None, [(N / 64) as u32, 1, 1]);
        let mut slots: BTreeMap<PrimType, usize> = BTreeMap::new();
        for c in &ok {
            let slot = slots.entry(c.to).or_default();
            let at = *slot * N;
            *slot += 1;
            let pos = counts.iter().position(|x| x.0 == c.to).unwrap();
            let out = &buffers[operand_types.len() + pos];
            let size = c.to.size() as usize;
            let mut bad = 0;
            for (n, v) in values.iter().enumerate() {
                let mut bytes = [0; 8];
                bytes[..size].copy_from_slice(&out[(at + n) * size..][..size]);
                let got = u64::from_le_bytes(bytes);
                let Some(want) = eval(c.op, operand_types[operand_types.len().min(2) - 1], c.to, v)
                else {
                    continue;
                };
                let same = got == want
                    || c.to.is_float()
                        && float_value(c.to, got).is_nan()
                        && float_value(c.to, want).is_nan();
                if !same {
                    bad += 1;
                    if bad <= 3 {
                        println!(
                            "{} {operand_types:?}->{:?} {v:x?}: got {got:x} want {want:x}",
                            c.op.name(),
                            c.to
                        );
                    }
                }
            }
            if bad > 0 {
                bad_cases += 1;
                println!("BAD {} {operand_types:?}->{:?} {bad}", c.op.name(), c.to);
            }
        }
    }
    println!("bad cases {bad_cases}");
}
