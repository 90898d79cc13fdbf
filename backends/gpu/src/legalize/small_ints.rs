//! 8- and 16-bit integers on targets without arithmetic for them: values are carried in 32 bits,
//! extended as their type says, and brought back into range after operations that leave it.
//! Memory keeps the small types; loads and stores convert.

use super::retype::const_bits;
use super::seq::Seq;
use magpie_mpir::analysis::Cfg;
use magpie_mpir::eval::sign_extend;
use magpie_mpir::{Flags, Inst, MpirFn, Op, Value};
use magpie_types::PrimType;
use rustc_hash::FxHashMap;

/// Rewrites a kernel without struct and vector values. `lacks` says which integer types the target
/// cannot compute with.
pub fn legalize_small_ints(f: &mut MpirFn, lacks: &dyn Fn(PrimType) -> bool) -> bool {
    let is_small = |p: PrimType| p.is_int() && p.bit_width() < 32 && lacks(p);
    let small: Vec<Option<PrimType>> =
        f.locals.iter().map(|l| PrimType::from_id(l.ty).filter(|&p| is_small(p))).collect();
    if small.iter().all(Option::is_none) {
        return false;
    }
    let mut r = Rewriter { small, map: FxHashMap::default() };
    let params = r.params(f);
    let order = Cfg::new(f).rpo().to_vec();
    for b in order {
        let old = std::mem::take(&mut f.block_mut(b).insts);
        let mut out = Vec::with_capacity(old.len());
        let phis = old.iter().take_while(|&&i| f.inst(i).op == Op::Phi).count();
        for &i in &old[..phis] {
            r.phi(f, i);
            out.push(i);
        }
        for &i in &old[phis..] {
            let touched = f.inst(i).result().is_some_and(|v| r.of(v).is_some())
                || f.args(i).iter().any(|&v| r.of(v).is_some());
            if !touched {
                out.push(i);
                continue;
            }
            let (span, flags) = (f.inst(i).span, f.inst(i).flags);
            let result = f.inst(i).result();
            let mut s = Seq { f, out: &mut out, span, flags };
            if let (Some(old), Some(new)) = (result, r.inst(&mut s, i)) {
                r.map.insert(old, new);
            }
        }
        f.block_mut(b).insts = out;
        r.switch(f, b);
    }
    f.replace_uses(&r.map);
    // Only now, because their operands are to stay what they are.
    f.block_mut(magpie_mpir::Block(0)).insts.splice(0..0, params);
    true
}

struct Rewriter {
    small: Vec<Option<PrimType>>,
    map: FxHashMap<Value, Value>,
}

fn wide(p: PrimType) -> PrimType {
    if p.is_signed() { PrimType::I32 } else { PrimType::U32 }
}

fn wide_bits(p: PrimType, bits: u64) -> u64 {
    match p.is_signed() {
        true => sign_extend(bits, p.bit_width()) as u32 as u64,
        false => bits & p.mask(),
    }
}

impl Rewriter {
    fn of(&self, v: Value) -> Option<PrimType> {
        self.small.get(v.index()).copied().flatten()
    }

    /// Conversions of the parameters, to stand before everything else.
    fn params(&mut self, f: &mut MpirFn) -> Vec<Inst> {
        let mut out = Vec::new();
        for n in 0..f.params.len() {
            let v = f.params[n].0;
            if let Some(p) = self.of(v) {
                let (ty, span) = (wide(p).id(), f.param_spans[n]);
                let i = f.make_inst(Op::Cast, Flags::NONE, ty, &[v], 0, span);
                self.map.extend(f.inst(i).result().map(|new| (v, new)));
                out.push(i);
            }
        }
        out
    }

    fn phi(&mut self, f: &mut MpirFn, i: Inst) {
        let Some(p) = f.inst(i).result().and_then(|v| self.of(v)) else { return };
        let arms: Vec<_> = f.phi_arms(i).collect();
        let arms: Vec<_> = arms.into_iter().map(|(b, v)| (b, self.constant(f, v, p))).collect();
        f.set_phi_arms(i, &arms);
        let ty = wide(p).id();
        f.inst_mut(i).ty = ty;
        if let Some(v) = f.inst(i).result() {
            f.locals[v.index()].ty = ty;
        }
    }

    fn constant(&self, f: &mut MpirFn, v: Value, p: PrimType) -> Value {
        match const_bits(f, v) {
            Some(bits) => f.const_bits(wide(p).id(), wide_bits(p, bits)),
            None => v,
        }
    }

    /// An operand in 32 bits; other operands as they are. Rewritten values have been given their
    /// wide type already, either in place (phis) or through the map.
    fn operand(&self, s: &mut Seq, v: Value) -> Value {
        match self.of(v) {
            Some(p) => {
                let v = self.constant(s.f, v, p);
                self.map.get(&v).copied().unwrap_or(v)
            }
            None => v,
        }
    }

    /// Brings 32 bits back into the range of `p`.
    fn fit(&self, s: &mut Seq, v: Value, p: PrimType) -> Value {
        let n = 32 - p.bit_width();
        let v = s.bits(v, wide(p));
        if p.is_signed() {
            let high = s.shl(v, n);
            s.ashr(high, n)
        } else {
            s.mask(v, p.mask())
        }
    }

    /// An operand read as signed or unsigned whatever its type.
    fn read(&self, s: &mut Seq, v: Value, p: PrimType, signed: bool) -> Value {
        let x = self.operand(s, v);
        if p.is_signed() == signed {
            return x;
        }
        let n = 32 - p.bit_width();
        let high = s.shl(x, n);
        if signed { s.ashr(high, n) } else { s.lshr(high, n) }
    }

    fn inst(&mut self, s: &mut Seq, i: Inst) -> Option<Value> {
        let data = *s.f.inst(i);
        let args: Vec<Value> = s.f.args(i).to_vec();
        let to = data.result().and_then(|v| self.of(v));
        let first = args.first().and_then(|&v| self.of(v));
        match data.op {
            // Memory keeps small elements.
            Op::GpuBufferLoad | Op::GpuLeafLoad | Op::LeafGet | Op::VecExtract => {
                let wide_args: Vec<Value> = args.iter().map(|&v| self.operand(s, v)).collect();
                let new =
                    s.f.make_inst(data.op, data.flags, data.ty, &wide_args, data.imm, data.span);
                s.out.push(new);
                let v = s.f.inst(new).result()?;
                Some(match to {
                    Some(p) => s.cast(v, wide(p)),
                    None => v,
                })
            }
            Op::GpuBufferStore | Op::GpuLeafStore => {
                let mut wide_args: Vec<Value> = args.iter().map(|&v| self.operand(s, v)).collect();
                if let Some(p) = self.of(args[2]) {
                    wide_args[2] = s.cast(wide_args[2], p);
                }
                let new =
                    s.f.make_inst(data.op, data.flags, data.ty, &wide_args, data.imm, data.span);
                s.out.push(new);
                None
            }
            // Vectors come from memory and go there.
            Op::VecNew => {
                let lanes: Vec<Value> = args
                    .iter()
                    .map(|&v| {
                        let lane = self.operand(s, v);
                        self.of(v).map_or(lane, |p| s.cast(lane, p))
                    })
                    .collect();
                let new = s.f.make_inst(data.op, data.flags, data.ty, &lanes, data.imm, data.span);
                s.out.push(new);
                s.f.inst(new).result()
            }
            Op::Cast => {
                let v = self.operand(s, args[0]);
                let Some(p) = to else {
                    return Some(s.cast(v, PrimType::from_id(data.ty)?));
                };
                if s.prim(v).is_float() {
                    // Saturates at the small type's ends.
                    let n = s.cast(v, wide(p));
                    let (low, high) = match p.is_signed() {
                        true => (wide_bits(p, 1 << (p.bit_width() - 1)), (p.mask() >> 1)),
                        false => (0, p.mask()),
                    };
                    let (low, high) = (s.like(n, low), s.like(n, high));
                    return Some(match p.is_signed() {
                        true => {
                            let n = s.smax(n, low);
                            s.smin(n, high)
                        }
                        false => s.same(Op::IUmin, &[n, high]),
                    });
                }
                let n = s.cast(v, wide(p));
                Some(self.fit(s, n, p))
            }
            Op::BitsCast => {
                let v = self.operand(s, args[0]);
                match (first, to) {
                    (Some(_), Some(p)) => Some(self.fit(s, v, p)),
                    (Some(p), None) => {
                        let v = s.cast(v, p);
                        Some(s.bits(v, PrimType::from_id(data.ty)?))
                    }
                    (None, Some(p)) => {
                        let v = s.bits(v, p);
                        Some(s.cast(v, wide(p)))
                    }
                    (None, None) => None,
                }
            }
            op => self.arithmetic(s, op, &data, &args, first, to),
        }
    }

    fn arithmetic(
        &mut self,
        s: &mut Seq,
        op: Op,
        data: &magpie_mpir::InstData,
        args: &[Value],
        first: Option<PrimType>,
        to: Option<PrimType>,
    ) -> Option<Value> {
        let w = |p: PrimType| p.bit_width();
        let signed_op = match op {
            Op::ISdiv
            | Op::ISrem
            | Op::IAshr
            | Op::ISmin
            | Op::ISmax
            | Op::IMulHiS
            | Op::IcmpSlt
            | Op::IcmpSgt
            | Op::IcmpSle
            | Op::IcmpSge => Some(true),
            Op::IUdiv
            | Op::IUrem
            | Op::ILshr
            | Op::IUmin
            | Op::IUmax
            | Op::IMulHiU
            | Op::IcmpUlt
            | Op::IcmpUgt
            | Op::IcmpUle
            | Op::IcmpUge
            | Op::IPopcount
            | Op::IClz
            | Op::ICtz
            | Op::IRotl
            | Op::IRotr => Some(false),
            _ => None,
        };
        let Some(p) = first.filter(|_| op != Op::Select) else {
            // A small result or a small operand behind the first: select, atomics, subgroups.
            let wide_args: Vec<Value> = args.iter().map(|&v| self.operand(s, v)).collect();
            let ty = to.map_or(data.ty, |p| wide(p).id());
            let new = s.f.make_inst(op, data.flags, ty, &wide_args, data.imm, data.span);
            s.out.push(new);
            return s.f.inst(new).result();
        };
        let read = |s: &mut Seq, v| match signed_op {
            Some(signed) => self.read(s, v, p, signed),
            None => self.operand(s, v),
        };
        let mut x: Vec<Value> = args.iter().map(|&v| read(s, v)).collect();
        let limit = w(p) as u64 - 1;
        match op {
            Op::IShl | Op::ILshr | Op::IAshr => {
                x[1] = s.mask(x[1], limit);
            }
            Op::IRotl | Op::IRotr => {
                let n = s.mask(x[1], limit);
                let width = s.like(n, w(p) as u64);
                let back = s.sub(width, n);
                let (left, right) = if op == Op::IRotl { (n, back) } else { (back, n) };
                let high = s.same(Op::IShl, &[x[0], left]);
                let low = s.same(Op::ILshr, &[x[0], right]);
                let both = s.or(high, low);
                return Some(self.fit(s, both, p));
            }
            Op::IMulHiS | Op::IMulHiU => {
                let product = s.mul(x[0], x[1]);
                let high = s.ashr(product, w(p));
                return Some(self.fit(s, high, p));
            }
            Op::IClz => {
                let n = s.same(Op::IClz, &[x[0]]);
                let n = s.plus(n, w(p) as i64 - 32);
                return Some(self.fit(s, n, p));
            }
            Op::ICtz => {
                let stop = s.like(x[0], 1 << w(p));
                let v = s.or(x[0], stop);
                let n = s.same(Op::ICtz, &[v]);
                return Some(self.fit(s, n, p));
            }
            Op::IAddOverflows | Op::ISubOverflows | Op::IMulOverflows => {
                let exact = match op {
                    Op::IAddOverflows => s.add(x[0], x[1]),
                    Op::ISubOverflows => s.sub(x[0], x[1]),
                    _ => s.mul(x[0], x[1]),
                };
                let back = self.fit(s, exact, p);
                return Some(s.cmp(Op::IcmpNe, exact, back));
            }
            _ => {}
        }
        let ty = match to {
            Some(_) => s.f.ty(x[0]),
            None => data.ty,
        };
        let new = s.f.make_inst(op, data.flags, ty, &x, data.imm, data.span);
        s.out.push(new);
        let v = s.f.inst(new).result()?;
        Some(match to {
            Some(p) => self.fit(s, v, p),
            None => v,
        })
    }

    /// A switch on a small value compares its wide form.
    fn switch(&mut self, f: &mut MpirFn, b: magpie_mpir::Block) {
        let magpie_mpir::Terminator::Switch { value, .. } = f.block(b).term else { return };
        let Some(p) = self.of(value) else { return };
        let constant = self.constant(f, value, p);
        if let magpie_mpir::Terminator::Switch { value, cases, .. } = &mut f.block_mut(b).term {
            *value = constant;
            cases.iter_mut().for_each(|(bits, _)| *bits = wide_bits(p, *bits));
        }
    }
}
