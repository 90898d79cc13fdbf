//! Device functions that random kernels call.

use super::kernel::Generator;
use super::{KernelConfig, Rng};
use crate::{Domain, FnId, Module, MpirFn, Op, Terminator};
use magpie_diag::Span;
use magpie_types::{PrimType, Sid, SidKind, TypeId, fixed};

/// A function that can be called.
#[derive(Clone)]
pub(super) struct DeviceFn {
    id: FnId,
    params: Vec<TypeId>,
    ret: TypeId,
}

/// Makes a few functions; later ones may call earlier ones.
pub(super) fn device_fns(
    module: &mut Module,
    rng: &mut Rng,
    config: &KernelConfig,
    types: &[PrimType],
) -> Vec<DeviceFn> {
    let mut made: Vec<DeviceFn> = Vec::new();
    for n in 0..rng.below(3) {
        let ret = rng.pick(types).unwrap_or(PrimType::U32);
        let name = format!("random.@f{n}");
        let sid = Sid::new(SidKind::Function, &name);
        let mut f = MpirFn::new(sid, name, ret.id(), Domain::Device);
        let mut params = Vec::new();
        for p in 0..rng.below(4) {
            let ty = rng.pick(types).unwrap_or(PrimType::U32).id();
            f.add_param(format!("p{p}"), ty, Span::NONE);
            params.push(ty);
        }
        let current = f.add_block();
        let mut g = Generator::new(module, rng, config, types.to_vec(), f, current);
        g.is_uniform = false;
        g.callees = made.clone();
        g.values = g.f.params.iter().map(|p| p.0).collect();
        let size = 4 + g.rng.below(12);
        g.statements(config.depth.min(1), size);
        // Several ways out now and then.
        if config.control_flow && g.rng.chance(40) {
            let cond = g.scalar(PrimType::Bool);
            let (a, b) = (g.f.add_block(), g.f.add_block());
            g.f.block_mut(g.current).term = Terminator::Cbr { cond, then: a, else_: b };
            let early = g.scalar(ret);
            g.f.block_mut(a).term = Terminator::Ret(Some(early));
            g.current = b;
        }
        let v = g.scalar(ret);
        g.f.block_mut(g.current).term = Terminator::Ret(Some(v));
        let f = g.f;
        made.push(DeviceFn { id: module.add_fn(f), params, ret: ret.id() });
    }
    made
}

impl Generator<'_> {
    pub(super) fn call(&mut self) {
        let n = self.rng.below(self.callees.len());
        let Some(DeviceFn { id, params, ret }) = self.callees.get(n).cloned() else { return };
        let args: Vec<_> = params.iter().map(|&ty| self.any_value(ty)).collect();
        let v = self.emit_imm(Op::Call, ret, &args, id.0 as u64);
        debug_assert_ne!(ret, fixed::UNIT);
        self.values.push(v);
    }
}
