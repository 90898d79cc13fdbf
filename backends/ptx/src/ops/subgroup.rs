//! Subgroup operations: a subgroup is a warp.
//!
//! Every operation names the lanes that take part, and waits for them. In a block that all
//! invocations of the workgroup execute together these are all lanes that have not returned; in
//! others those that happen to be here together.

use crate::emitter::{Emit, Emitter, ptx};
use crate::operand::{Class, Operand, Reg};
use crate::params::Special;
use magpie_mpir::Inst;
use magpie_types::PrimType;

/// All lanes of a warp.
const FULL: &str = "0xffffffff";

impl Emitter<'_, '_> {
    /// A register with the lanes that take part, made once a block.
    fn members(&mut self) -> Reg {
        if let Some(reg) = self.members {
            return reg;
        }
        let reg = self.fresh(Class::B32);
        if self.uniformity.is_uniform_block(self.here) {
            let yes = self.fresh(Class::Pred);
            ptx!(self, "setp.eq.s32 {yes}, 0, 0");
            ptx!(self, "vote.sync.ballot.b32 {reg}, {yes}, {FULL}");
        } else {
            ptx!(self, "activemask.b32 {reg}");
        }
        self.members = Some(reg);
        reg
    }

    /// One exchange of bits in a register of 32 or 64 bits.
    fn exchange(&mut self, mode: &str, v: Reg, lane: Operand, members: Reg) -> Reg {
        // Up stops at lane 0, the others at lane 31.
        let clamp = if mode == "up" { 0 } else { 31 };
        let d = self.fresh(v.class);
        if v.class == Class::B32 {
            ptx!(self, "shfl.sync.{mode}.b32 {d}, {v}, {lane}, {clamp}, {members}");
            return d;
        }
        let [low, high, new_low, new_high]: [Reg; 4] =
            std::array::from_fn(|_| self.fresh(Class::B32));
        ptx!(self, "mov.b64 {{{low}, {high}}}, {v}");
        ptx!(self, "shfl.sync.{mode}.b32 {new_low}, {low}, {lane}, {clamp}, {members}");
        ptx!(self, "shfl.sync.{mode}.b32 {new_high}, {high}, {lane}, {clamp}, {members}");
        ptx!(self, "mov.b64 {d}, {{{new_low}, {new_high}}}");
        d
    }

    /// One exchange of a value of any class.
    fn exchange_value(&mut self, mode: &str, v: Reg, lane: Operand, members: Reg) -> Reg {
        let bits = match self.as_bits(v.into(), v.class) {
            Operand::Reg(r) => r,
            Operand::Int(_) | Operand::F32(_) | Operand::F64(_) => v,
        };
        let moved = self.exchange(mode, bits, lane, members);
        if moved.class == v.class {
            return moved;
        }
        let d = self.fresh(v.class);
        self.put_bits(moved, d);
        d
    }

    /// A shuffle of operand 0 by operand 1. A broadcast is one too.
    pub(super) fn subgroup_shuffle(&mut self, i: Inst, mode: &str) -> Emit {
        let v = self.first_reg(i)?;
        let Some(&lane) = self.f.args(i).get(1) else {
            return Err(self.broken_at(i, "operands are missing"));
        };
        let (lane, members) = (self.value(lane)?, self.members());
        let d = self.exchange_value(mode, v, lane, members);
        self.set_result(i, d.into())
    }

    pub(super) fn subgroup_vote(&mut self, i: Inst, what: &str) -> Emit {
        let (v, members, d) = (self.first_reg(i)?, self.members(), self.result(i)?);
        ptx!(self, "vote.sync.{what}.pred {d}, {v}, {members}");
        Ok(())
    }

    pub(super) fn subgroup_ballot(&mut self, i: Inst) -> Emit {
        let (v, members) = (self.first_reg(i)?, self.members());
        let (mask, d) = (self.fresh(Class::B32), self.result(i)?);
        ptx!(self, "vote.sync.ballot.b32 {mask}, {v}, {members}");
        ptx!(self, "cvt.u64.u32 {d}, {mask}");
        Ok(())
    }

    /// Sum, smallest or largest.
    pub(super) fn subgroup_reduce(&mut self, i: Inst, op: &str) -> Emit {
        let (p, v, members) = (self.result_prim(i)?, self.first_reg(i)?, self.members());
        if self.target.sm >= 80 && p.is_int() && p.bit_width() == 32 {
            let (sign, d) = (if p.is_signed() { 's' } else { 'u' }, self.result(i)?);
            ptx!(self, "redux.sync.{op}.{sign}32 {d}, {v}, {members}");
            return Ok(());
        }
        let combine = Combine::of(self, i, p, op)?;
        let total = self.fresh(v.class);
        let (partial, done) = (self.fresh_label(), self.fresh_label());
        let is_partial = self.fresh(Class::Pred);
        ptx!(self, "setp.ne.s32 {is_partial}, {members}, {FULL}");
        ptx!(self, "@{is_partial} bra.uni $L{partial}");
        // All lanes: each step joins with the lane whose number differs in one bit.
        let mut sum = v;
        for step in [16, 8, 4, 2, 1] {
            let other = self.exchange_value("bfly", sum, Operand::Int(step), members);
            sum = combine.emit(self, sum, other);
        }
        ptx!(self, "mov.{} {total}, {sum}", total.class.ty());
        ptx!(self, "bra.uni $L{done}");
        self.place_label(partial);
        self.for_each_member(members, |e, lane, is_first| {
            let other = e.exchange_value("idx", v, lane.into(), members);
            let joined = combine.emit(e, total, other);
            ptx!(e, "selp.{} {total}, {other}, {joined}, {is_first}", total.class.ty());
        });
        self.place_label(done);
        self.set_result(i, total.into())
    }

    /// The sum over the lanes before this one.
    pub(super) fn subgroup_prefix_sum(&mut self, i: Inst) -> Emit {
        let (p, v, members) = (self.result_prim(i)?, self.first_reg(i)?, self.members());
        let combine = Combine::of(self, i, p, "add")?;
        let me = self.special(Special::LaneId);
        let (total, zero) = (self.fresh(v.class), self.constant(p, 0));
        let ty = total.class.ty();
        ptx!(self, "mov.{ty} {total}, {zero}");
        self.for_each_member(members, |e, lane, _| {
            let other = e.exchange_value("idx", v, lane.into(), members);
            let joined = combine.emit(e, total, other);
            let is_before = e.fresh(Class::Pred);
            ptx!(e, "setp.lt.u32 {is_before}, {lane}, {me}");
            ptx!(e, "selp.{ty} {total}, {joined}, {total}, {is_before}");
        });
        self.set_result(i, total.into())
    }

    /// A loop over the members in ascending order; `body` gets the lane, and whether it is the
    /// first. All members go through it together.
    fn for_each_member(&mut self, members: Reg, body: impl FnOnce(&mut Self, Reg, Reg)) {
        let [left, less, reversed, lane]: [Reg; 4] =
            std::array::from_fn(|_| self.fresh(Class::B32));
        let [is_first, more] = [self.fresh(Class::Pred), self.fresh(Class::Pred)];
        let again = self.fresh_label();
        ptx!(self, "mov.b32 {left}, {members}");
        self.place_label(again);
        ptx!(self, "brev.b32 {reversed}, {left}");
        ptx!(self, "clz.b32 {lane}, {reversed}");
        ptx!(self, "setp.eq.s32 {is_first}, {left}, {members}");
        body(self, lane, is_first);
        ptx!(self, "add.s32 {less}, {left}, -1");
        ptx!(self, "and.b32 {left}, {left}, {less}");
        ptx!(self, "setp.ne.s32 {more}, {left}, 0");
        ptx!(self, "@{more} bra $L{again}");
    }
}

/// How two values become one.
struct Combine {
    /// The instruction on values; on 16-bit floats it is that on f32.
    instruction: String,
    prim: PrimType,
}

impl Combine {
    fn of(e: &Emitter<'_, '_>, i: Inst, prim: PrimType, op: &str) -> Emit<Combine> {
        let sign = if prim.is_signed() || op == "add" { 's' } else { 'u' };
        let instruction = match prim {
            PrimType::F64 if op == "add" => "add.rn.f64".to_string(),
            PrimType::F64 => format!("{op}.f64"),
            p if p.is_float() && op == "add" => "add.rn.f32".to_string(),
            p if p.is_float() => format!("{op}.f32"),
            p if p.is_int() && p.bit_width() >= 32 => format!("{op}.{sign}{}", p.bit_width()),
            p => return Err(e.broken_at(i, &format!("a reduction of {}", p.name()))),
        };
        Ok(Combine { instruction, prim })
    }

    fn emit(&self, e: &mut Emitter<'_, '_>, a: Reg, b: Reg) -> Reg {
        let (instruction, d) = (&self.instruction, e.fresh(a.class));
        if a.class == Class::B16 {
            // The sum of two, rounded to f32, rounds to the right one.
            let [x, y] = [a, b].map(|v| e.widen(self.prim, v.into()));
            let single = e.fresh(Class::F32);
            ptx!(e, "{instruction} {single}, {x}, {y}");
            e.narrow(self.prim, single, d);
        } else {
            ptx!(e, "{instruction} {d}, {a}, {b}");
        }
        d
    }
}
