//! Subgroup operations: a subgroup is a warp or a wavefront.
//!
//! On NVIDIA GPUs every operation names the lanes that take part. In a block that all invocations
//! of the workgroup execute together these are all that have not returned; elsewhere those that
//! happen to be here together.

use crate::emitter::{Emit, Emitter, Operand, line};
use crate::flavor::Flavor;
use crate::types::{Shape, scalar};
use magpie_mpir::{Flags, Inst, Op};
use magpie_types::PrimType;

/// How lanes find each other.
#[derive(Clone, Copy)]
pub(super) enum Exchange {
    /// By number.
    Index,
    /// By the bits in which numbers differ.
    Butterfly,
    /// That many lanes below.
    Up,
    /// That many lanes above.
    Down,
}

/// How values of lanes become one.
#[derive(Clone, Copy)]
pub(super) enum Reduction {
    Sum,
    Min,
    Max,
}

/// Whether an op is written as a loop over lanes, which takes basic blocks of its own.
pub(crate) fn is_lane_loop(op: Op) -> bool {
    matches!(
        op,
        Op::GpuSubgroupSum | Op::GpuSubgroupMin | Op::GpuSubgroupMax | Op::GpuSubgroupPrefixSum
    )
}

/// A set of lanes in PTX.
const ALL_LANES: &str = "-1";

impl Emitter<'_> {
    pub(super) fn subgroup_size(&mut self, i: Inst) -> Emit {
        let lanes = self.flavor.lanes();
        self.define(i, format_args!("bitcast i32 {lanes} to i32"))
    }

    pub(super) fn subgroup_lane_id(&mut self, i: Inst) -> Emit {
        let lane = self.lane_id();
        self.define(i, format_args!("bitcast i32 {lane} to i32"))
    }

    fn lane_id(&mut self) -> Operand {
        if let Flavor::Nvptx { .. } = self.flavor {
            return self.read("llvm.nvvm.read.ptx.sreg.laneid", "i32");
        }
        let (all, zero) = (Operand::Text("-1".into()), Operand::Text("0".into()));
        let low = self.call("llvm.amdgcn.mbcnt.lo", "i32", "i32", &[&all, &zero]);
        let low = self.emit(format_args!("call {low}"));
        match self.flavor.lanes() {
            64 => {
                let high = self.call("llvm.amdgcn.mbcnt.hi", "i32", "i32", &[&all, &low]);
                self.emit(format_args!("call {high}"))
            }
            _ => low,
        }
    }

    /// The lanes that take part, found once a block.
    fn members(&mut self) -> Operand {
        if let Some(members) = &self.members {
            return members.clone();
        }
        let members = match self.flavor {
            Flavor::Amdgcn { .. } => self.lanes_where(&Operand::Text("true".into())),
            Flavor::Nvptx { .. } if self.uniformity.is_uniform_block(self.here) => {
                self.vote("ballot", "i32", ALL_LANES, &Operand::Text("true".into()))
            }
            Flavor::Nvptx { .. } => self
                .emit(format_args!("call i32 asm sideeffect \"activemask.b32 $0;\", \"=r\"() #1")),
        };
        self.members = Some(members.clone());
        members
    }

    fn vote(&mut self, what: &str, ty: &str, members: &str, v: &Operand) -> Operand {
        let name = format!("llvm.nvvm.vote.{what}.sync");
        self.intrinsics.declare(&name, ty, "i32, i1");
        self.emit(format_args!("call {ty} @{name}(i32 {members}, i1 {v})"))
    }

    /// The set of active lanes for which something holds, as AMD GPUs have it.
    fn lanes_where(&mut self, v: &Operand) -> Operand {
        let mask = self.flavor.lane_mask();
        let name = format!("llvm.amdgcn.ballot.{mask}");
        self.intrinsics.declare(&name, mask, "i1");
        self.emit(format_args!("call {mask} @{name}(i1 {v})"))
    }

    pub(super) fn subgroup_ballot(&mut self, i: Inst) -> Emit {
        let v = self.arg(i, 0)?;
        let lanes = match self.flavor {
            Flavor::Nvptx { .. } => {
                let members = self.members().to_string();
                self.vote("ballot", "i32", &members, &v)
            }
            Flavor::Amdgcn { .. } => self.lanes_where(&v),
        };
        match self.flavor.lane_mask() {
            "i64" => self.define(i, format_args!("bitcast i64 {lanes} to i64")),
            mask => self.define(i, format_args!("zext {mask} {lanes} to i64")),
        }
    }

    pub(super) fn subgroup_vote(&mut self, i: Inst, all: bool) -> Emit {
        let v = self.arg(i, 0)?;
        let members = self.members();
        if let Flavor::Nvptx { .. } = self.flavor {
            let what = if all { "all" } else { "any" };
            let r = self.vote(what, "i1", &members.to_string(), &v);
            return self.define(i, format_args!("bitcast i1 {r} to i1"));
        }
        let lanes = self.lanes_where(&v);
        let mask = self.flavor.lane_mask();
        match all {
            true => self.define(i, format_args!("icmp eq {mask} {lanes}, {members}")),
            false => self.define(i, format_args!("icmp ne {mask} {lanes}, 0")),
        }
    }

    /// A shuffle of operand 0 by operand 1. A broadcast is one too.
    pub(super) fn subgroup_shuffle(&mut self, i: Inst, exchange: Exchange) -> Emit {
        let (shape, v, lane) = (self.result_shape(i)?, self.arg(i, 0)?, self.arg(i, 1)?);
        let moved = self.exchange(shape.prim, exchange, &v, &lane);
        self.define_as(i, shape, &moved)
    }

    // ----- exchange -----

    /// The value of another lane; where there is none, any value.
    fn exchange(
        &mut self,
        p: PrimType,
        exchange: Exchange,
        v: &Operand,
        lane: &Operand,
    ) -> Operand {
        let (ty, bits) = (scalar(p), p.bit_width());
        let int = if p == PrimType::Bool { "i1" } else { scalar(p.bits_type()) };
        let raw = match p.is_float() {
            true => self.emit(format_args!("bitcast {ty} {v} to {int}")),
            false => v.clone(),
        };
        let moved = match bits {
            64 => {
                let low = self.emit(format_args!("trunc i64 {raw} to i32"));
                let high = self.emit(format_args!("lshr i64 {raw}, 32"));
                let high = self.emit(format_args!("trunc i64 {high} to i32"));
                let [low, high] = [low, high].map(|v| {
                    let v = self.exchange_word(exchange, &v, lane);
                    self.emit(format_args!("zext i32 {v} to i64"))
                });
                let high = self.emit(format_args!("shl i64 {high}, 32"));
                self.emit(format_args!("or i64 {high}, {low}"))
            }
            32 => self.exchange_word(exchange, &raw, lane),
            _ => {
                let word = self.emit(format_args!("zext {int} {raw} to i32"));
                let word = self.exchange_word(exchange, &word, lane);
                self.emit(format_args!("trunc i32 {word} to {int}"))
            }
        };
        match p.is_float() {
            true => self.emit(format_args!("bitcast {int} {moved} to {ty}")),
            false => moved,
        }
    }

    fn exchange_word(&mut self, exchange: Exchange, v: &Operand, lane: &Operand) -> Operand {
        if let Flavor::Nvptx { .. } = self.flavor {
            // Up stops at lane 0, the others at lane 31.
            let (mode, clamp) = match exchange {
                Exchange::Index => ("idx", 31),
                Exchange::Butterfly => ("bfly", 31),
                Exchange::Up => ("up", 0),
                Exchange::Down => ("down", 31),
            };
            let members = self.members();
            let name = format!("llvm.nvvm.shfl.sync.{mode}.i32");
            self.intrinsics.declare(&name, "i32", "i32, i32, i32, i32");
            return self.emit(format_args!(
                "call i32 @{name}(i32 {members}, i32 {v}, i32 {lane}, i32 {clamp})"
            ));
        }
        let own = self.lane_id();
        let from = match exchange {
            Exchange::Index => lane.clone(),
            Exchange::Butterfly => self.emit(format_args!("xor i32 {own}, {lane}")),
            Exchange::Up => self.emit(format_args!("sub i32 {own}, {lane}")),
            Exchange::Down => self.emit(format_args!("add i32 {own}, {lane}")),
        };
        // Lanes have the addresses of words; addresses outside wrap around.
        let address = self.emit(format_args!("shl i32 {from}, 2"));
        let call = self.call("llvm.amdgcn.ds.bpermute", "i32", "i32", &[&address, v]);
        let moved = self.emit(format_args!("call {call}"));
        let lanes = self.flavor.lanes();
        let inside = self.emit(format_args!("icmp ult i32 {from}, {lanes}"));
        self.emit(format_args!("select i1 {inside}, i32 {moved}, i32 {v}"))
    }

    // ----- reductions -----

    /// Sum, smallest or largest over the members.
    pub(super) fn subgroup_reduce(&mut self, i: Inst, op: Reduction) -> Emit {
        let (shape, v) = (self.result_shape(i)?, self.arg(i, 0)?);
        let p = shape.prim;
        if p == PrimType::Bool {
            return Err(self.broken_at(i, "arithmetic on bool"));
        }
        let members = self.members();
        if let (Flavor::Nvptx { sm: 80.. }, true, 32) = (self.flavor, p.is_int(), p.bit_width()) {
            let name = match (op, p.is_signed()) {
                (Reduction::Sum, _) => "add",
                (Reduction::Min, true) => "min",
                (Reduction::Min, false) => "umin",
                (Reduction::Max, true) => "max",
                (Reduction::Max, false) => "umax",
            };
            let call =
                self.call(&format!("llvm.nvvm.redux.sync.{name}"), "i32", "i32", &[&v, &members]);
            return self.define(i, format_args!("call {call}"));
        }
        let n = self.begin_whole_or_part(&members);
        // All lanes: each step joins with the lane whose number differs in one bit.
        let mut sum = v.clone();
        for bit in (0..self.flavor.lanes().ilog2()).rev() {
            let step = Operand::Text((1u32 << bit).to_string());
            let other = self.exchange(p, Exchange::Butterfly, &sum, &step);
            sum = self.combine(p, op, [&sum, &other]);
        }
        let whole = self.begin_part(n, &sum, shape);
        let first = self.first_lane(&members);
        let start = self.exchange(p, Exchange::Index, &v, &first);
        let total = self.for_other_members(n, &members, shape, &start, |e, total, lane| {
            let other = e.exchange(p, Exchange::Index, &v, lane);
            e.combine(p, op, [total, &other])
        });
        self.end_part(i, n, shape, [&whole, &total])
    }

    /// The sum over the members before this one.
    pub(super) fn subgroup_prefix_sum(&mut self, i: Inst) -> Emit {
        let (shape, v) = (self.result_shape(i)?, self.arg(i, 0)?);
        let (p, op) = (shape.prim, Reduction::Sum);
        if p == PrimType::Bool {
            return Err(self.broken_at(i, "arithmetic on bool"));
        }
        let members = self.members();
        let own = self.lane_id();
        let zero = crate::types::constant(p, 0);
        let n = self.begin_whole_or_part(&members);
        // All lanes: sums of twice as many lanes with each step, then those of the lane before.
        let mut sum = v.clone();
        for bit in 0..self.flavor.lanes().ilog2() {
            let step = 1u32 << bit;
            let before = self.exchange(p, Exchange::Up, &sum, &Operand::Text(step.to_string()));
            let joined = self.combine(p, op, [&before, &sum]);
            let has = self.emit(format_args!("icmp uge i32 {own}, {step}"));
            sum = self.emit(format_args!("select i1 {has}, {shape} {joined}, {shape} {sum}"));
        }
        let before = self.exchange(p, Exchange::Up, &sum, &Operand::Text("1".into()));
        let is_first = self.emit(format_args!("icmp eq i32 {own}, 0"));
        let sum = self.emit(format_args!("select i1 {is_first}, {shape} {zero}, {shape} {before}"));
        let whole = self.begin_part(n, &sum, shape);
        let first = self.first_lane(&members);
        let of_first = self.exchange(p, Exchange::Index, &v, &first);
        let is_first = self.emit(format_args!("icmp eq i32 {own}, {first}"));
        let start =
            self.emit(format_args!("select i1 {is_first}, {shape} {zero}, {shape} {of_first}"));
        let total = self.for_other_members(n, &members, shape, &start, |e, total, lane| {
            let other = e.exchange(p, Exchange::Index, &v, lane);
            let joined = e.combine(p, op, [total, &other]);
            let is_before = e.emit(format_args!("icmp ult i32 {lane}, {own}"));
            e.emit(format_args!("select i1 {is_before}, {shape} {joined}, {shape} {total}"))
        });
        self.end_part(i, n, shape, [&whole, &total])
    }

    fn combine(&mut self, p: PrimType, op: Reduction, [a, b]: [&Operand; 2]) -> Operand {
        let ty = scalar(p);
        let name = match (op, p.is_float(), p.is_signed()) {
            (Reduction::Sum, true, _) => return self.emit(format_args!("fadd {ty} {a}, {b}")),
            (Reduction::Sum, false, _) => return self.emit(format_args!("add {ty} {a}, {b}")),
            (Reduction::Min, true, _) => {
                return self.extremum(p, "minnum", "or", Flags::NONE, [a, b]);
            }
            (Reduction::Max, true, _) => {
                return self.extremum(p, "maxnum", "and", Flags::NONE, [a, b]);
            }
            (Reduction::Min, false, true) => "smin",
            (Reduction::Min, false, false) => "umin",
            (Reduction::Max, false, true) => "smax",
            (Reduction::Max, false, false) => "umax",
        };
        let call = self.call(&format!("llvm.{name}.{ty}"), ty, ty, &[a, b]);
        self.emit(format_args!("call {call}"))
    }

    // ----- basic blocks of a reduction: `whole` for all lanes, `part` and a loop for some -----

    /// Branches on whether all lanes are members; what follows is for all.
    fn begin_whole_or_part(&mut self, members: &Operand) -> u32 {
        let (n, mask) = (self.fresh_label(), self.flavor.lane_mask());
        let is_whole = self.emit(format_args!("icmp eq {mask} {members}, -1"));
        line!(self, "br i1 {is_whole}, label %whole{n}, label %part{n}");
        self.place_label(&format!("whole{n}"));
        n
    }

    /// Ends what is for all lanes with its result; what follows is for some.
    fn begin_part(&mut self, n: u32, result: &Operand, shape: Shape) -> Operand {
        let result = self.emit(format_args!("bitcast {shape} {result} to {shape}"));
        line!(self, "br label %joined{n}");
        self.place_label(&format!("part{n}"));
        result
    }

    /// The least member.
    fn first_lane(&mut self, members: &Operand) -> Operand {
        let mask = self.flavor.lane_mask();
        let name = format!("llvm.cttz.{mask}");
        self.intrinsics.declare(&name, mask, &format!("{mask}, i1 immarg"));
        let lane = self.emit(format_args!("call {mask} @{name}({mask} {members}, i1 false)"));
        match mask {
            "i64" => self.emit(format_args!("trunc i64 {lane} to i32")),
            _ => lane,
        }
    }

    /// A set of lanes without its least.
    fn without_first(&mut self, lanes: &Operand) -> Operand {
        let mask = self.flavor.lane_mask();
        let less = self.emit(format_args!("add {mask} {lanes}, -1"));
        self.emit(format_args!("and {mask} {lanes}, {less}"))
    }

    /// A loop over the members behind the first in ascending order, which all go through together;
    /// `body` gives the next total from the last one and a lane.
    fn for_other_members(
        &mut self,
        n: u32,
        members: &Operand,
        shape: Shape,
        start: &Operand,
        body: impl FnOnce(&mut Self, &Operand, &Operand) -> Operand,
    ) -> Operand {
        let mask = self.flavor.lane_mask();
        let others = self.without_first(members);
        let [left, total, next_left, next_total] = std::array::from_fn(|_| self.temp());
        line!(self, "br label %members{n}");
        self.place_label(&format!("members{n}"));
        line!(self, "{left} = phi {mask} [ {others}, %part{n} ], [ {next_left}, %member{n} ]");
        line!(self, "{total} = phi {shape} [ {start}, %part{n} ], [ {next_total}, %member{n} ]");
        let done = self.emit(format_args!("icmp eq {mask} {left}, 0"));
        line!(self, "br i1 {done}, label %joined{n}, label %member{n}");
        self.place_label(&format!("member{n}"));
        let lane = self.first_lane(&left);
        let new = body(self, &total, &lane);
        line!(self, "{next_total} = bitcast {shape} {new} to {shape}");
        let rest = self.without_first(&left);
        line!(self, "{next_left} = bitcast {mask} {rest} to {mask}");
        line!(self, "br label %members{n}");
        total
    }

    fn end_part(&mut self, i: Inst, n: u32, shape: Shape, [whole, part]: [&Operand; 2]) -> Emit {
        self.place_label(&format!("joined{n}"));
        self.define(i, format_args!("phi {shape} [ {whole}, %whole{n} ], [ {part}, %members{n} ]"))
    }
}
