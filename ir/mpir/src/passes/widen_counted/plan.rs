//! Whether a loop means the same on vectors, and how it is done.

use super::choice::Choice;
use super::find::{Counted, LoopView};
use super::memory::Accesses;
use super::reduction::{Reduction, Step};
use crate::{Inst, Memory, MpirFn, Op, Value};
use magpie_types::{PrimType, TypeId, fixed};

/// Bits of a vector register.
const REGISTER: u32 = 128;
/// Registers for a value of the widest type.
const REGISTERS: u32 = 4;
/// The same in loops with more than [`SMALL_SIZE`] operations on vectors.
const REGISTERS_OF_LARGE: u32 = 2;
const SMALL_SIZE: usize = 10;
/// Components whose whole is put together behind the loop.
const MAX_REDUCED_LANES: u32 = 16;

/// A loop that is done on vectors.
pub(super) struct Plan {
    /// Rounds at once: the components of all vectors.
    pub(super) lanes: u8,
    /// The instructions that are done on vectors, in order, without those of reductions.
    pub(super) order: Vec<(Inst, Option<Choice>)>,
    pub(super) accesses: Accesses,
    pub(super) reductions: Vec<Reduction>,
}

/// The plan for a loop, if it can be done on vectors.
pub(super) fn plan(view: &LoopView, counted: &Counted) -> Option<Plan> {
    let f = view.f;
    if !counted.is_covered {
        return None;
    }
    let header = counted.candidate.header;
    let blocks = view.cfg.rpo().iter().filter(|&&b| view.loops.contains(view.l, b));
    let is_carried = |b, i: Inst| b == header && f.inst(i).op == Op::Phi;
    let order: Vec<Inst> = blocks
        .flat_map(|&b| f.block(b).insts.iter().copied().filter(move |&i| !is_carried(b, i)))
        .collect();
    let is_plain = |&i: &Inst| {
        let info = f.inst(i).op.info();
        !info.may_trap && matches!(info.memory, Memory::None | Memory::Read | Memory::Write)
    };
    if !order.iter().all(is_plain) {
        return None;
    }
    let accesses = Accesses::find(view, counted, &order)?;
    if accesses.groups.iter().all(|g| g.address.step == 0) {
        return None;
    }
    let is_counter = |&i: &Inst| f.inst(i).result() == Some(counted.counter);
    let phis = f.phis(header).filter(|i| !is_counter(i));
    let reductions: Option<Vec<Reduction>> =
        phis.map(|phi| Reduction::find(view, counted, phi, &order)).collect();
    let reductions = reductions?;

    let mut needed = Needed { widths: Widths::default(), work: Vec::new() };
    for access in accesses.accesses.iter().filter(|a| f.inst(a.inst).op == Op::MemStore) {
        let value = f.arg(access.inst, 1);
        needed.widths.note_in_memory(f.ty(value))?;
        needed.work.push(value);
        needed.work.extend(access.conditions.iter().map(|c| c.value));
    }
    for reduction in &reductions {
        needed.widths.note(reduction.ty)?;
        for &(i, step) in &reduction.steps {
            match step {
                Step::Combine { other, .. } | Step::Subtract { other, .. } => {
                    needed.work.push(other)
                }
                Step::Choose(choice) => needed.work.push(choice.cond),
            }
            let op = f.inst(i).op;
            let ty = PrimType::from_id(reduction.ty)?;
            if matches!(op, Op::IMul) && !has_vector_form(f, i, op, ty) {
                return None;
            }
        }
    }
    let insts = needed.collect(view, counted, &reductions)?;
    let is_store = |i: Inst| f.inst(i).op == Op::MemStore;
    let is_needed = |i: &Inst| is_store(*i) || insts.contains(i);
    let order: Vec<_> =
        order.into_iter().filter(is_needed).map(|i| (i, Choice::of(view, i))).collect();
    let steps: usize = reductions.iter().map(|r| r.steps.len()).sum();
    let widths = &needed.widths;
    let lanes = widths.lanes(order.len() + steps, !reductions.is_empty(), accesses.max_rounds)?;
    if let (Some(from), Some(to)) = (f.as_bits(counted.first), f.as_bits(counted.bound))
        && to.wrapping_sub(from) < u64::from(lanes)
    {
        return None;
    }
    Some(Plan { lanes, order, accesses, reductions })
}

/// The values that are needed as vectors.
struct Needed {
    widths: Widths,
    work: Vec<Value>,
}

impl Needed {
    /// The instructions of the loop that make them.
    fn collect(
        &mut self,
        view: &LoopView,
        counted: &Counted,
        reductions: &[Reduction],
    ) -> Option<Vec<Inst>> {
        let f = view.f;
        let mut insts = Vec::new();
        while let Some(v) = self.work.pop() {
            self.widths.note(f.ty(v))?;
            if !view.is_inside(v) || v == counted.counter {
                continue;
            }
            let i = f.def_inst(v)?;
            if reductions.iter().any(|r| r.holds(v)) {
                return None;
            }
            if insts.contains(&i) {
                continue;
            }
            insts.push(i);
            let op = f.inst(i).op;
            if let Some(Choice { cond, then, else_ }) = Choice::of(view, i) {
                PrimType::from_id(f.ty(v)).filter(|&p| p != PrimType::Bool)?;
                self.work.extend([cond, then, else_]);
            } else if op == Op::MemLoad {
                self.widths.note_in_memory(f.ty(v))?;
            } else {
                let &first = f.args(i).first()?;
                let from = PrimType::from_id(f.ty(first))?;
                // One amount for all components.
                let is_shift = matches!(op, Op::IShl | Op::ILshr | Op::IAshr);
                if !has_vector_form(f, i, op, from) || is_shift && view.is_inside(f.arg(i, 1)) {
                    return None;
                }
                self.work.extend_from_slice(f.args(i));
            }
        }
        Some(insts)
    }
}

/// The widths of the components.
#[derive(Default)]
struct Widths {
    least: Option<u32>,
    largest: Option<u32>,
}

impl Widths {
    /// Takes a type into account, if there are vectors of it.
    fn note(&mut self, ty: TypeId) -> Option<()> {
        let prim = PrimType::from_id(ty)?;
        if prim == PrimType::Bool {
            return Some(());
        }
        let is_known = prim.is_int() && prim != PrimType::U1 && prim.bit_width() <= 64
            || matches!(prim, PrimType::F32 | PrimType::F64);
        if !is_known {
            return None;
        }
        self.note_bits(prim.bit_width());
        Some(())
    }

    /// The same of what is loaded or stored: a `bool` is a byte there.
    fn note_in_memory(&mut self, ty: TypeId) -> Option<()> {
        if ty == fixed::BOOL {
            self.note_bits(8);
        }
        self.note(ty)
    }

    fn note_bits(&mut self, width: u32) {
        self.least = Some(self.least.map_or(width, |w| w.min(width)));
        self.largest = Some(self.largest.map_or(width, |w| w.max(width)));
    }

    /// How many components there are, for so many operations, at most so many.
    fn lanes(&self, size: usize, is_reduced: bool, most: u64) -> Option<u8> {
        let (least, largest) = (self.least?, self.largest?);
        let registers = if size > SMALL_SIZE { REGISTERS_OF_LARGE } else { REGISTERS };
        let fewest = REGISTER / least;
        let mut lanes = fewest.max(registers * REGISTER / largest);
        if is_reduced {
            lanes = lanes.min(MAX_REDUCED_LANES).max(fewest);
        }
        while u64::from(lanes) > most {
            lanes /= 2;
        }
        (lanes >= fewest).then_some(lanes as u8)
    }
}

/// Whether an operation whose first operand has the type `from` can be done on vectors: not on
/// every width is it faster.
fn has_vector_form(f: &MpirFn, i: Inst, op: Op, from: PrimType) -> bool {
    let is_float = matches!(from, PrimType::F32 | PrimType::F64);
    let is_int = from.is_int();
    let width = from.bit_width();
    if matches!(op, Op::IAdd | Op::ISub | Op::ISmin | Op::ISmax | Op::IUmin | Op::IUmax) {
        return is_int;
    }
    if matches!(op, Op::IAnd | Op::IOr | Op::IXor) {
        return is_int || from == PrimType::Bool;
    }
    if matches!(op, Op::IMul) {
        return is_int && matches!(width, 16 | 32);
    }
    if matches!(op, Op::IShl | Op::ILshr | Op::IAshr) {
        return is_int && matches!(width, 16 | 32 | 64);
    }
    if matches!(op, crate::icmp_ops!()) {
        return is_int;
    }
    let is_float_op = matches!(
        op,
        Op::FAdd
            | Op::FSub
            | Op::FMul
            | Op::FDiv
            | Op::FNeg
            | Op::FAbs
            | Op::FMin
            | Op::FMax
            | Op::FSqrt
            | Op::FFloor
            | Op::FCeil
            | Op::FTrunc
            | Op::FRound
            | Op::FcmpOeq
            | Op::FcmpOlt
            | Op::FcmpOgt
            | Op::FcmpOle
            | Op::FcmpOge
            | Op::FcmpOrd
            | Op::FcmpUne
            | Op::FcmpUno
    );
    if is_float_op {
        return is_float;
    }
    let Some(to) = PrimType::from_id(f.inst(i).ty) else { return false };
    if op == Op::BitsCast {
        return (is_int || is_float) && (to.is_int() || to.is_float());
    }
    op == Op::Cast && is_vector_cast(from, to)
}

fn is_vector_cast(from: PrimType, to: PrimType) -> bool {
    let (width, to_width) = (from.bit_width(), to.bit_width());
    match (from.is_float(), to.is_float()) {
        // From `bool` too.
        (false, false) => to != PrimType::Bool,
        // Narrow numbers have 32 bits on the way.
        (false, true) => from != PrimType::Bool && width <= 32 && to == PrimType::F32,
        (true, false) => from == PrimType::F32 && to_width == 32,
        (true, true) => true,
    }
}
