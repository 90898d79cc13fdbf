//! Views before loops: a part that a loop looks at or changes in every round is found once.
//!
//! `rows[i][j] = 0.0` finds the row in each round of a loop over `j`. Where the way to it is the
//! same in every round and nothing in the loop leads it elsewhere, the row is found in front of the
//! loop, and made the only handle of its object there:
//!
//! ```text
//! bb1: %row = arr.place %rows, %i              bb0: %row = arr.place [speculative] %rows, %i
//!      arr.set %row, %j, …                 ⇒   bb1: arr.get %rows, %i          // the check
//!                                                   arr.set %row, %j, …
//! ```
//!
//! Parts that a loop looks at or changes several times are found once: `xs[i]` and `xs[j] = v` show one
//! array. What is found early does not panic: where there is no such part it gives nothing, and the loop
//! still checks the index when it comes there. Like [`super::hoist_uniqueness`], it may copy an
//! object that the loop would not have come to.

use super::PassContext;
use super::insert_preheaders::loops_with_preheaders;
use super::replacements::Replacements;
use crate::analysis::{LoopId, Loops, Positions};
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Value, ownership};
use magpie_diag::Span;
use magpie_types::abi::RtFn;
use magpie_types::{RefMode, TypeCtx, TypeId, TypeKind, fixed};
use rustc_hash::FxHashMap;

/// Finds parts in front of loops, as far out as possible. Works on host functions that are not
/// lowered, before `lower_arc`.
pub fn hoist_views(f: &mut MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> bool {
    let is_candidate = |&i: &Inst| shows_object(f, types, i);
    if f.domain != Domain::Host || !f.blocks.iter().flat_map(|b| &b.insts).any(is_candidate) {
        return false;
    }
    let mut changed = loops_with_preheaders(f, ctx);
    let PassContext { cfg, loops, positions, replacements, insts: gone, .. } = ctx;
    if !loops.is_reducible() {
        return changed;
    }
    positions.compute(f);
    replacements.start(f);
    // From the inside: what leaves a loop may leave the next one too.
    for l in loops.ids().rev() {
        let Some(preheader) = loops.preheader(cfg, l) else { continue };
        let effects = Effects::of(f, types, loops.blocks(l));
        if effects.unknown {
            continue;
        }
        gone.clear();
        let found = FxHashMap::default();
        let mut motion =
            Motion { f, types, loops, positions, replacements, l, preheader, effects, found, gone };
        // A place may lead elsewhere what is looked at: reading comes behind.
        motion.run(true);
        motion.run(false);
        if gone.is_empty() {
            continue;
        }
        changed = true;
        gone.sort_unstable();
        for &b in loops.blocks(l) {
            f.block_mut(b).insts.retain(|i| gone.binary_search(i).is_err());
        }
    }
    replacements.apply(f);
    changed
}

/// Whether an instruction shows an object with parts that is a part of another one; a text is only
/// looked at.
fn shows_object(f: &MpirFn, types: &TypeCtx, i: Inst) -> bool {
    let data = f.inst(i);
    let has_parts = |t| match types.kind(t) {
        TypeKind::Array(_) | TypeKind::Struct(_) => types.is_heap(t),
        TypeKind::Str => matches!(data.op, Op::ArrGet | Op::GetField),
        _ => false,
    };
    let shows = matches!(data.op, Op::ArrGet | Op::GetField | Op::ArrPlace | Op::FieldPlace);
    shows && ownership::is_view(types, data.ty) && has_parts(behind(types, data.ty))
}

/// The type behind a view or a shared handle; others as they are.
fn behind(types: &TypeCtx, ty: TypeId) -> TypeId {
    match types.kind(ty) {
        TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow | RefMode::Shared, t) => t,
        _ => ty,
    }
}

/// Where parts of objects of one type are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Elements(TypeId),
    Field(TypeId, u32),
    Values(TypeId),
}

impl Slot {
    /// What an operation on an object reads or changes.
    fn of(f: &MpirFn, types: &TypeCtx, i: Inst) -> Slot {
        let object = behind(types, f.ty(f.arg(i, 0)));
        match types.kind(object) {
            TypeKind::Map(..) => Slot::Values(object),
            TypeKind::Struct(_) => Slot::Field(object, f.inst(i).imm_lo()),
            _ => Slot::Elements(object),
        }
    }
}

/// What a loop does to the parts of objects, by their types.
#[derive(Default)]
struct Effects {
    /// Anything may happen.
    unknown: bool,
    /// Objects of any type may get another handle.
    clones: bool,
    /// Objects of these types may get another handle.
    cloned: Vec<TypeId>,
    /// Slots that may get other content.
    changed: Vec<Slot>,
    /// Slots that may get a copy of what they hold, made by a place that stays in the loop.
    copied: Vec<Slot>,
}

impl Effects {
    fn of(f: &MpirFn, types: &TypeCtx, blocks: &[Block]) -> Effects {
        let mut effects = Effects::default();
        for &i in blocks.iter().flat_map(|&b| &f.block(b).insts) {
            effects.add(f, types, i);
        }
        effects
    }

    fn add(&mut self, f: &MpirFn, types: &TypeCtx, i: Inst) {
        let data = f.inst(i);
        match data.op {
            crate::integer_ops!()
            | crate::trap_ops!()
            | crate::float_ops!()
            | crate::icmp_ops!()
            | crate::fcmp_ops!()
            | crate::vector_ops!()
            | Op::Cast
            | Op::BitsCast
            | Op::Select
            | Op::Phi
            | Op::StructNew
            | Op::StructGet
            | Op::LeafGet
            | Op::Panic
            | Op::CallableCapture
            | Op::BorrowShared
            | Op::New
            | Op::EnumNew
            | Op::EnumTag
            | Op::EnumIs
            | Op::EnumPayload
            | Op::ArrNew
            | Op::ArrFrom
            | Op::ArrLen
            | Op::ArrContains
            | Op::MapNew
            | Op::MapLen
            | Op::MapContainsKey => {}
            Op::ArrGet | Op::GetField | Op::MapGetRef => {
                self.clones |= !types.is_copy(data.ty) && !ownership::is_view(types, data.ty);
            }
            Op::ArrSet
            | Op::ArrPush
            | Op::ArrPop
            | Op::ArrSort
            | Op::SetField
            | Op::MapSet
            | Op::MapDelete
            | Op::MapDeleteVoid => self.changed.push(Slot::of(f, types, i)),
            // These are looked at one by one.
            Op::ArrPlace | Op::FieldPlace => {}
            Op::MapPlace => self.copied.push(Slot::of(f, types, i)),
            Op::ArrSlice
            | Op::ArrMap
            | Op::ArrFilter
            | Op::ArrReduce
            | Op::ArrForeach
            | Op::MapGet
            | Op::MapKeys
            | Op::MapValues
            | Op::Share
            | Op::CloneShared
            | Op::CloneWeak
            | Op::WeakDowngrade
            | Op::WeakUpgrade => self.clones = true,
            Op::RtCall if data.rt() == RtFn::HandleClone => self.cloned.push(data.ty),
            // A copy is another object, and nobody leads to it from here.
            Op::RtCall if data.rt() == RtFn::HandleUnique => {}
            Op::Call | Op::RtCall | Op::CallIndirect => {
                self.clones |= !types.is_copy(data.ty) && data.ty != fixed::STR;
                let gives = |&v: &Value| may_be_changed(types, f.ty(v));
                let args = f.args(i).iter();
                self.unknown |= args.skip((data.op == Op::CallIndirect) as usize).any(gives);
            }
            Op::BorrowMut
            | Op::Retain
            | Op::Release
            | Op::GpuBufferLen
            | Op::GpuShared
            | Op::GpuLocal
            | Op::GpuBarrier
            | Op::GpuPrint
            | crate::id_ops!()
            | crate::atomic_ops!()
            | crate::subgroup_ops!()
            | crate::access_ops!()
            | crate::launch_ops!()
            | crate::low_host_ops!() => self.unknown = true,
        }
    }
}

/// Whether who gets a value may change an object that it leads to: one that is given away, or
/// shown to be changed.
pub(super) fn may_be_changed(types: &TypeCtx, ty: TypeId) -> bool {
    match types.kind(ty) {
        TypeKind::Ref(RefMode::Borrow, _) => false,
        TypeKind::Ref(..) => true,
        _ => !types.is_copy(ty) && ty != fixed::STR,
    }
}

/// A part of an object: whether it is an element, the operands of what shows it, and the immediate.
type Part = (bool, Vec<Value>, u64);

/// The way out of one loop.
struct Motion<'a> {
    f: &'a mut MpirFn,
    types: &'a TypeCtx,
    loops: &'a Loops,
    positions: &'a mut Positions,
    replacements: &'a mut Replacements,
    l: LoopId,
    preheader: Block,
    effects: Effects,
    /// What was found in front of the loop, by what is asked for.
    found: FxHashMap<Part, Value>,
    /// Instructions that no longer stand in the loop.
    gone: &'a mut Vec<Inst>,
}

impl Motion<'_> {
    /// Moves what can be moved: places, or what only looks; and the arithmetic that leads there.
    fn run(&mut self, places: bool) {
        let loops = self.loops;
        for &b in loops.blocks(self.l) {
            for n in 0..self.f.block(b).insts.len() {
                let i = self.f.block(b).insts[n];
                if self.positions.block(i) != Some(b) || self.is_found(i) {
                    continue;
                }
                let op = self.f.inst(i).op;
                let is_place = matches!(op, Op::ArrPlace | Op::FieldPlace);
                let is_wanted = is_place == places && shows_object(self.f, self.types, i);
                if is_wanted && self.is_same_each_round(i) && self.may_leave(i, is_place) {
                    self.find_early(i);
                } else if places && is_place {
                    self.effects.copied.push(Slot::of(self.f, self.types, i));
                } else if self.is_arithmetic(i) && self.is_same_each_round(i) {
                    self.carry_out(i);
                }
            }
        }
    }

    /// Whether only the check of an instruction is left.
    fn is_found(&mut self, i: Inst) -> bool {
        self.f.inst(i).result().is_some_and(|v| self.replacements.get(v) != v)
    }

    fn is_arithmetic(&self, i: Inst) -> bool {
        let data = self.f.inst(i);
        data.op.is_pure() && data.op != Op::Phi && self.types.is_copy(data.ty)
    }

    /// Whether all operands come from outside of the loop.
    fn is_same_each_round(&mut self, i: Inst) -> bool {
        self.f.args(i).iter().all(|&v| {
            let block = self.positions.def_block(self.f, self.replacements.get(v));
            block.is_none_or(|b| !self.loops.contains(self.l, b))
        })
    }

    /// Whether the part is the same object in every round; for a place, whether it has one handle.
    fn may_leave(&self, i: Inst, is_place: bool) -> bool {
        let effects = &self.effects;
        let slot = Slot::of(self.f, self.types, i);
        let part = behind(self.types, self.f.inst(i).ty);
        let stays = !effects.changed.contains(&slot);
        stays
            && match is_place {
                true => !effects.clones && !effects.cloned.contains(&part),
                false => !effects.copied.contains(&slot),
            }
    }

    /// Moves an instruction as it is.
    fn carry_out(&mut self, i: Inst) {
        self.replacements.resolve_args(self.f, i);
        self.f.block_mut(self.preheader).insts.push(i);
        self.positions.set(i, self.preheader);
        self.gone.push(i);
    }

    /// Finds a part in front of the loop. What checks an index goes on doing so where it is.
    fn find_early(&mut self, i: Inst) {
        let data = *self.f.inst(i);
        self.replacements.resolve_args(self.f, i);
        let args = self.f.args(i).to_vec();
        let part = (matches!(data.op, Op::ArrGet | Op::ArrPlace), args.clone(), data.imm);
        let again = self.found.get(&part).copied().and_then(|known| self.seen_as(known, data.ty));
        let is_early = data.flags.contains(Flags::SPECULATIVE);
        let early = match again {
            Some(known) => known,
            None if is_early => {
                self.carry_out(i);
                self.found.extend(data.result().map(|v| (part, v)));
                return;
            }
            None => {
                let flags = data.flags.union(Flags::SPECULATIVE);
                let early = self.f.make_inst(data.op, flags, data.ty, &args, data.imm, data.span);
                let Some(v) = self.put_in_front(early) else { return };
                self.found.insert(part, v);
                v
            }
        };
        if let Some(old) = data.result() {
            self.replacements.set(old, early);
        }
        match data.op {
            Op::ArrPlace if !is_early => self.f.rewrite(i, Op::ArrGet, &args, data.imm),
            Op::ArrGet if !is_early => {}
            _ => self.gone.push(i),
        }
    }

    /// What was found, as a view of type `ty`; a place shows what is looked at too.
    fn seen_as(&mut self, known: Value, ty: TypeId) -> Option<Value> {
        let has = self.f.ty(known);
        if has == ty {
            return Some(known);
        }
        let is_place = matches!(self.types.kind(has), TypeKind::Ref(RefMode::MutBorrow, _));
        let is_look = matches!(self.types.kind(ty), TypeKind::Ref(RefMode::Borrow, _));
        if !is_place || !is_look {
            return None;
        }
        let span = self.f.def_inst(known).map_or(Span::NONE, |i| self.f.inst(i).span);
        let view = self.f.make_inst(Op::BorrowShared, Flags::NONE, ty, &[known], 0, span);
        self.put_in_front(view)
    }

    fn put_in_front(&mut self, i: Inst) -> Option<Value> {
        self.f.block_mut(self.preheader).insts.push(i);
        self.positions.set(i, self.preheader);
        self.f.inst(i).result()
    }
}
