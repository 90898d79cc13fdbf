use magpie_mpir::*; use magpie_types::*; use magpie_diag::*; use std::time::Instant;
fn main() {
    let mut types = TypeCtx::new();
    let mut f = MpirFn::new(Sid::new(SidKind::Function, "m.@k"), "m.@k", fixed::UNIT, Domain::Device);
    f.gpu_meta = Some(MpirGpuMeta { target: kernel::GpuBackend::Spv, workgroup: [64,1,1], is_unsafe: false, requires: vec![], spans: Default::default() });
    let ty = types.intern(TypeKind::Buffer(fixed::F32));
    let buf = f.add_param("x", ty, Span::NONE);
    let b = f.add_block();
    let gid = f.append(b, Op::GpuGlobalId, Flags::NONE, fixed::U32, &[], 0, Span::NONE).unwrap();
    let mut v = f.append(b, Op::GpuBufferLoad, Flags::UNCHECKED, fixed::F32, &[buf, gid], 0, Span::NONE).unwrap();
    let n: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut at = gid;
    for k in 0..n {
        let c = f.const_u32(k & 255);
        at = f.append(b, Op::IAdd, Flags::NONE, fixed::U32, &[at, c], 0, Span::NONE).unwrap();
        let w = f.append(b, Op::GpuBufferLoad, Flags::UNCHECKED, fixed::F32, &[buf, at], 0, Span::NONE).unwrap();
        v = f.append(b, Op::FMul, Flags::NONE, fixed::F32, &[v, w], 0, Span::NONE).unwrap();
        v = f.append(b, Op::FAdd, Flags::NONE, fixed::F32, &[v, w], 0, Span::NONE).unwrap();
        f.append(b, Op::GpuBufferStore, Flags::UNCHECKED, fixed::UNIT, &[buf, at, v], 0, Span::NONE);
    }
    f.block_mut(b).term = Terminator::Ret(None);
    let rules = magpie_gpu::layout::LayoutRules { scalars: magpie_gpu::layout::ScalarRule::PushConstants{limit:128}, storage8: true, storage16: true, hidden_length: 4, fixed_workgroup: false };
    let layout = magpie_gpu::layout::compute_layout(&f, &types, &rules);
    let mut best = f64::MAX; let mut bests = f64::MAX;
    for _ in 0..20 {
        let t = Instant::now();
        let mut g = f.clone();
        magpie_gpu::structurize::structurize(&mut g, &types).ok();
        let s = t.elapsed().as_secs_f64();
        let t = Instant::now();
        let w = magpie_gpu_spirv::emit_words(&f, &types, &layout, Default::default(), None).unwrap();
        let e = t.elapsed().as_secs_f64();
        best = best.min(e); bests = bests.min(s); std::hint::black_box(w);
    }
    let insts = 5 * n + 2;
    println!("{insts} insts: emit incl clone+structurize {:.1} us = {:.1} ns/inst; clone+structurize {:.1} us", best*1e6, best*1e9/insts as f64, bests*1e6);
}
