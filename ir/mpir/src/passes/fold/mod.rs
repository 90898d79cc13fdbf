//! Constant folding and algebra.
//!
//! Rules are grouped by topic, one file each. The laws they keep:
//! - a rule gives nothing worse than what it replaces;
//! - float rules are exact, NaN and signed zeros included, unless a flag allows more;
//! - a constant operand of a commutative op stands second.

mod address;
mod compare;
mod convert;
mod float;
mod integer;
mod select;
mod vector;

use super::PassContext;
use super::replacements::Replacements;
use crate::eval::eval;
use crate::{Domain, Inst, MpirFn, Op, Value};
use magpie_types::{PrimType, TypeCtx, TypeId};

/// Evaluates ops on constants with [`crate::eval`] and simplifies others by algebra.
pub fn fold(f: &mut MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> bool {
    if f.domain == Domain::Host {
        return false;
    }
    let PassContext { cfg, replacements, insts: out, .. } = ctx;
    cfg.compute(f);
    replacements.start(f);
    let mut changed = false;
    for &b in cfg.rpo() {
        let mut insts = std::mem::take(&mut f.block_mut(b).insts);
        out.clear();
        for &i in &insts {
            replacements.resolve_args(f, i);
            let mut folder = Folder { f, types, out };
            changed |= folder.fold(i, replacements);
        }
        insts.clear();
        insts.extend_from_slice(out);
        let block = f.block_mut(b);
        block.insts = insts;
        if let Some(v) = block.term.operand_mut() {
            *v = replacements.get(*v);
        }
    }
    // Phis may read values that were folded behind them.
    replacements.apply(f);
    changed
}

/// The rules for one instruction are tried again on what they made of it, this often.
const MAX_STEPS: usize = 8;

/// What a rule made of an instruction.
enum Outcome {
    /// Nothing.
    Keep,
    /// It was rewritten in place.
    Rewritten,
    /// Its result is this value.
    Value(Value),
}

/// A function during folding, with the list of what is left of the block.
struct Folder<'a> {
    f: &'a mut MpirFn,
    types: &'a TypeCtx,
    out: &'a mut Vec<Inst>,
}

impl Folder<'_> {
    /// Folds an instruction and lists what is left of it; whether something changed.
    fn fold(&mut self, i: Inst, replacements: &mut Replacements) -> bool {
        let is_shorter = address::shorten(self, i);
        let Some(result) = self.f.inst(i).result() else {
            self.out.push(i);
            return is_shorter;
        };
        for step in 0..MAX_STEPS {
            match self.simplify(i, result) {
                Outcome::Keep => {
                    self.out.push(i);
                    return is_shorter || step > 0;
                }
                Outcome::Rewritten => {}
                Outcome::Value(v) => {
                    replacements.set(result, v);
                    return true;
                }
            }
        }
        self.out.push(i);
        true
    }

    fn simplify(&mut self, i: Inst, result: Value) -> Outcome {
        let op = self.f.inst(i).op;
        if op == Op::Phi {
            return self.phi(i, result);
        }
        if !op.is_pure() {
            return Outcome::Keep;
        }
        if let Some(bits) = self.evaluate(i) {
            return Outcome::Value(self.f.const_bits(self.f.inst(i).ty, bits));
        }
        if is_commutative(op) && self.is_const(self.f.arg(i, 0)) && !self.is_const(self.f.arg(i, 1))
        {
            self.f.args_mut(i).swap(0, 1);
        }
        self.rules(i)
    }

    /// A phi of one value. Operands that come from behind may still be replaced; that is left to
    /// the next run.
    fn phi(&mut self, i: Inst, result: Value) -> Outcome {
        let mut only = None;
        for &v in self.f.args(i) {
            if v != result && *only.get_or_insert(v) != v {
                return Outcome::Keep;
            }
        }
        only.map_or(Outcome::Keep, Outcome::Value)
    }

    /// The bits of the result when all operands are scalar constants.
    fn evaluate(&self, i: Inst) -> Option<u64> {
        let inst = self.f.inst(i);
        let to = PrimType::from_id(inst.ty)?;
        let args = self.f.args(i);
        let mut bits = [0; 3];
        if args.is_empty() || args.len() > bits.len() {
            return None;
        }
        for (bits, &v) in bits.iter_mut().zip(args) {
            *bits = self.f.as_bits(v)?;
        }
        let typed = if inst.op == Op::Select { args.get(1)? } else { args.first()? };
        let from = PrimType::from_id(self.f.ty(*typed))?;
        eval(inst.op, from, to, &bits[..args.len()])
    }

    fn rules(&mut self, i: Inst) -> Outcome {
        match self.f.inst(i).op {
            Op::IAdd => integer::add(self, i),
            Op::ISub => integer::sub(self, i),
            Op::IMul => integer::mul(self, i),
            Op::ISdiv => integer::sdiv(self, i),
            Op::IUdiv => integer::udiv(self, i),
            Op::ISrem => integer::srem(self, i),
            Op::IUrem => integer::urem(self, i),
            Op::IMulHiS | Op::IMulHiU => integer::mulhi(self, i),
            Op::IAnd => integer::and(self, i),
            Op::IOr => integer::or(self, i),
            Op::IXor => integer::xor(self, i),
            Op::IShl => integer::shl(self, i),
            Op::ILshr => integer::lshr(self, i),
            Op::IAshr => integer::ashr(self, i),
            Op::IRotl | Op::IRotr => integer::rotate(self, i),
            Op::ISmin | Op::ISmax => integer::signed_min_max(self, i),
            Op::IUmin | Op::IUmax => integer::unsigned_min_max(self, i),
            Op::IAddOverflows | Op::ISubOverflows | Op::IMulOverflows => {
                integer::overflows(self, i)
            }

            Op::FAdd => float::add(self, i),
            Op::FSub => float::sub(self, i),
            Op::FMul => float::mul(self, i),
            Op::FDiv => float::div(self, i),
            Op::FNeg => float::neg(self, i),
            Op::FAbs => float::abs(self, i),
            Op::FMin | Op::FMax => float::min_max(self, i),
            Op::FFma => float::fma(self, i),

            Op::IcmpEq
            | Op::IcmpNe
            | Op::IcmpSlt
            | Op::IcmpSgt
            | Op::IcmpSle
            | Op::IcmpSge
            | Op::IcmpUlt
            | Op::IcmpUgt
            | Op::IcmpUle
            | Op::IcmpUge => compare::simplify(self, i),

            Op::Cast => convert::cast(self, i),
            Op::BitsCast => convert::bits_cast(self, i),
            Op::Select => select::simplify(self, i),

            Op::PtrAdd => address::ptr_add(self, i),

            Op::VecExtract => vector::extract(self, i),
            Op::VecInsert => vector::insert(self, i),
            Op::StructGet => vector::member(self, i),
            Op::GpuBufferLen => vector::len(self, i),

            crate::trap_ops!()
            | crate::fcmp_ops!()
            | crate::id_ops!()
            | crate::atomic_ops!()
            | crate::subgroup_ops!()
            | crate::access_ops!()
            | crate::ownership_ops!()
            | crate::object_ops!()
            | crate::launch_ops!()
            | Op::MemLoad
            | Op::MemStore
            | Op::StackSlot
            | Op::FnAddr
            | Op::TypeInfoAddr
            | Op::RtRaw
            | Op::CallAddr
            | Op::IPopcount
            | Op::IClz
            | Op::ICtz
            | Op::FRem
            | Op::FSqrt
            | Op::FFloor
            | Op::FCeil
            | Op::FTrunc
            | Op::FRound
            | Op::FExp
            | Op::FExp2
            | Op::FLog
            | Op::FLog2
            | Op::FSin
            | Op::FCos
            | Op::FTan
            | Op::FAsin
            | Op::FAcos
            | Op::FAtan
            | Op::FSinh
            | Op::FCosh
            | Op::FTanh
            | Op::FAtan2
            | Op::FPow
            | Op::Phi
            | Op::VecNew
            | Op::VecSplat
            | Op::VecDot
            | Op::VecCross
            | Op::VecLength
            | Op::VecNormalize
            | Op::VecReflect
            | Op::VecMix
            | Op::VecAny
            | Op::VecAll
            | Op::StructNew
            | Op::LeafGet
            | Op::GpuShared
            | Op::GpuLocal
            | Op::GpuBarrier
            | Op::GpuPrint
            | Op::Call
            | Op::RtCall
            | Op::CallIndirect
            | Op::CallableCapture
            | Op::Panic => Outcome::Keep,
        }
    }

    // ----- reading -----

    fn args<const N: usize>(&self, i: Inst) -> [Value; N] {
        std::array::from_fn(|n| self.f.arg(i, n))
    }

    fn bits(&self, v: Value) -> Option<u64> {
        self.f.as_bits(v)
    }

    fn is_const(&self, v: Value) -> bool {
        self.f.as_const(v).is_some()
    }

    fn prim(&self, v: Value) -> Option<PrimType> {
        PrimType::from_id(self.f.ty(v))
    }

    /// The operands of the instruction that defines `v`, when its op is `op`.
    fn operands<const N: usize>(&self, v: Value, op: Op) -> Option<[Value; N]> {
        let i = self.f.def_inst(v)?;
        (self.f.inst(i).op == op).then(|| self.args(i))
    }

    // ----- writing -----

    fn rewrite(&mut self, i: Inst, op: Op, args: &[Value]) -> Outcome {
        self.f.rewrite(i, op, args, 0);
        Outcome::Rewritten
    }

    fn constant(&mut self, ty: TypeId, bits: u64) -> Outcome {
        Outcome::Value(self.f.const_bits(ty, bits))
    }
}

/// Whether operands 0 and 1 may be exchanged.
pub(super) fn is_commutative(op: Op) -> bool {
    matches!(
        op,
        Op::IAdd
            | Op::IMul
            | Op::IMulHiS
            | Op::IMulHiU
            | Op::IAnd
            | Op::IOr
            | Op::IXor
            | Op::ISmin
            | Op::ISmax
            | Op::IUmin
            | Op::IUmax
            | Op::IAddOverflows
            | Op::IMulOverflows
            | Op::IcmpEq
            | Op::IcmpNe
            | Op::FAdd
            | Op::FMul
            | Op::FMin
            | Op::FMax
            | Op::FFma
    )
}
