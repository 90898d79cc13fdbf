//! Explicit bounds checks.
//!
//! What is not marked `unchecked` is compared with the length: a load goes to element 0 when it
//! would go outside, and its result is replaced by zero; stores and atomics are branched around.
//! So a buffer that a kernel loads from must have memory for one element even when it is empty.

use super::PassContext;
use super::bounds::{Access, access};
use crate::{Block, Domain, Flags, Inst, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_diag::Span;
use magpie_types::{TypeCtx, TypeId, TypeKind, fixed};
use rustc_hash::FxHashMap;

/// How 32-bit indices are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexWidth {
    /// In 32 bits. No buffer has more than 2^32 - 1 elements on the target.
    Bits32,
    /// In 64 bits.
    Bits64,
}

/// Makes every access of device memory an unchecked one.
pub fn lower_bounds_checks(
    f: &mut MpirFn,
    types: &TypeCtx,
    width: IndexWidth,
    ctx: &mut PassContext,
) -> bool {
    if f.domain != Domain::Device {
        return false;
    }
    let blocks = f.blocks.len();
    let PassContext { blocks: last_piece, insts: out, .. } = ctx;
    last_piece.clear();
    last_piece.extend(f.block_ids());
    out.clear();
    let mut lowering = Lowering {
        f,
        types,
        width,
        limits: FxHashMap::default(),
        checks: FxHashMap::default(),
        clamped: FxHashMap::default(),
        entry: Vec::new(),
        out,
        current: Block(0),
        span: Span::NONE,
    };
    let mut changed = false;
    for (b, last) in last_piece.iter_mut().enumerate() {
        if lowering.has_checks(Block::new(b)) {
            *last = lowering.block(Block::new(b));
            changed = true;
        }
    }
    let entry = std::mem::take(&mut lowering.entry);
    f.block_mut(Block(0)).insts.splice(0..0, entry);
    // The phis of new blocks name pieces already.
    for b in (0..blocks).map(Block::new) {
        let mut n = 0;
        while let Some(&i) = f.block(b).insts.get(n).filter(|&&i| f.inst(i).op == Op::Phi) {
            f.map_phi_blocks(i, |p| last_piece.get(p.index()).copied().unwrap_or(p));
            n += 1;
        }
    }
    changed
}

struct Lowering<'a> {
    f: &'a mut MpirFn,
    types: &'a TypeCtx,
    width: IndexWidth,
    /// The lengths of buffers, computed in the entry block in the type of the index.
    limits: FxHashMap<(Value, TypeId), Value>,
    /// What the current block has already: whether an index is below a limit, and an index that
    /// is inside by that comparison.
    checks: FxHashMap<(Value, Value), Value>,
    clamped: FxHashMap<(Value, Value), Value>,
    entry: Vec<Inst>,
    out: &'a mut Vec<Inst>,
    current: Block,
    span: Span,
}

impl Lowering<'_> {
    /// The kind of a checked access.
    fn checked(&self, i: Inst) -> Option<Access> {
        let inst = self.f.inst(i);
        access(inst.op).filter(|_| !inst.flags.contains(Flags::UNCHECKED))
    }

    fn has_checks(&self, b: Block) -> bool {
        self.f.block(b).insts.iter().any(|&i| self.checked(i).is_some())
    }

    /// Lowers a block; returns the piece of it that ends as it did.
    fn block(&mut self, b: Block) -> Block {
        self.checks.clear();
        self.clamped.clear();
        self.out.clear();
        self.current = b;
        let insts = std::mem::take(&mut self.f.block_mut(b).insts);
        let placeholder = Terminator::Unreachable;
        let term = std::mem::replace(&mut self.f.block_mut(b).term, placeholder);
        let term_span = self.f.block(b).term_span;
        let mut n = 0;
        while let Some(&i) = insts.get(n) {
            n += 1;
            self.span = self.f.inst(i).span;
            match self.checked(i) {
                None => self.out.push(i),
                Some(Access::Load) => self.load(i),
                Some(Access::Atomic) => self.atomic(i),
                Some(Access::Store) => {
                    // Stores to one place follow each other when an element has several leaves.
                    let place = |i: Inst| (self.f.arg(i, 0), self.f.arg(i, 1));
                    let first = n - 1;
                    while insts.get(n).is_some_and(|&next| {
                        self.checked(next) == Some(Access::Store) && place(next) == place(i)
                    }) {
                        n += 1;
                    }
                    self.stores(&insts[first..n]);
                }
            }
        }
        let last = self.f.block_mut(self.current);
        last.insts.append(self.out);
        last.term = term;
        last.term_span = term_span;
        self.current
    }

    fn load(&mut self, i: Inst) {
        let inst = *self.f.inst(i);
        let (array, index) = (self.f.arg(i, 0), self.f.arg(i, 1));
        let is_inside = self.check(array, index);
        let clamped = self.clamped(index, is_inside);
        let flags = inst.flags.union(Flags::UNCHECKED);
        let load =
            self.f.make_inst(inst.op, flags, inst.ty, &[array, clamped], inst.imm, inst.span);
        self.out.push(load);
        let zero = self.f.zero(inst.ty);
        if let Some(loaded) = self.f.inst(load).result() {
            // The access becomes the choice, so that its uses see that.
            self.f.rewrite(i, Op::Select, &[is_inside, loaded, zero], 0);
            self.f.inst_mut(i).flags = Flags::NONE;
            self.out.push(i);
        }
    }

    fn stores(&mut self, stores: &[Inst]) {
        let Some(&first) = stores.first() else { return };
        let is_inside = self.check(self.f.arg(first, 0), self.f.arg(first, 1));
        self.branch_around(is_inside, stores);
        for &i in stores {
            self.mark_unchecked(i);
        }
    }

    fn atomic(&mut self, i: Inst) {
        let inst = *self.f.inst(i);
        let is_inside = self.check(self.f.arg(i, 0), self.f.arg(i, 1));
        let args = self.f.args(i).to_vec();
        let flags = inst.flags.union(Flags::UNCHECKED);
        let atomic = self.f.make_inst(inst.op, flags, inst.ty, &args, inst.imm, inst.span);
        let before = self.current;
        let inside = self.branch_around(is_inside, &[atomic]);
        if let Some(old) = self.f.inst(atomic).result() {
            let zero = self.f.zero(inst.ty);
            self.f.rewrite(i, Op::Phi, &[], 0);
            self.f.inst_mut(i).flags = Flags::NONE;
            self.f.set_phi_arms(i, &[(before, zero), (inside, old)]);
            self.out.push(i);
        }
    }

    /// Ends the current piece with a branch to a block with `insts` or past it; returns that block.
    fn branch_around(&mut self, is_inside: Value, insts: &[Inst]) -> Block {
        let (inside, behind) = (self.f.add_block(), self.f.add_block());
        let span = self.span;
        let piece = self.f.block_mut(self.current);
        piece.insts.append(self.out);
        piece.term = Terminator::Cbr { cond: is_inside, then: inside, else_: behind };
        piece.term_span = span;
        let block = self.f.block_mut(inside);
        block.insts.extend_from_slice(insts);
        block.term = Terminator::Br(behind);
        block.term_span = span;
        self.current = behind;
        inside
    }

    fn mark_unchecked(&mut self, i: Inst) {
        let inst = self.f.inst_mut(i);
        inst.flags = inst.flags.union(Flags::UNCHECKED);
    }

    /// Whether an index is inside an array.
    fn check(&mut self, array: Value, index: Value) -> Value {
        let narrow = matches!(self.f.ty(index), fixed::U32 | fixed::I32);
        let is_buffer = matches!(self.types.kind(self.f.ty(array)), TypeKind::Buffer(_));
        let widen = narrow && is_buffer && self.width == IndexWidth::Bits64;
        let ty = if widen { fixed::U64 } else { self.f.ty(index) };
        let limit = self.limit(array, ty);
        if let Some(&is_inside) = self.checks.get(&(index, limit)) {
            return is_inside;
        }
        let number = if widen { self.emit(Op::Cast, ty, &[index]) } else { index };
        // Unsigned: a negative index is larger than any limit.
        let is_inside = self.emit(Op::IcmpUlt, fixed::BOOL, &[number, limit]);
        self.checks.insert((index, limit), is_inside);
        is_inside
    }

    /// The index, or 0 when it is outside.
    fn clamped(&mut self, index: Value, is_inside: Value) -> Value {
        if let Some(&clamped) = self.clamped.get(&(index, is_inside)) {
            return clamped;
        }
        let ty = self.f.ty(index);
        let zero = self.f.zero(ty);
        let clamped = self.emit(Op::Select, ty, &[is_inside, index, zero]);
        self.clamped.insert((index, is_inside), clamped);
        clamped
    }

    /// The number of elements in the type of an index, for an unsigned comparison.
    fn limit(&mut self, array: Value, ty: TypeId) -> Value {
        if let TypeKind::SharedArray(_, n) | TypeKind::LocalArray(_, n) =
            self.types.kind(self.f.ty(array))
        {
            return self.f.const_bits(ty, n as u64);
        }
        if let Some(&limit) = self.limits.get(&(array, ty)) {
            return limit;
        }
        let is_param = matches!(self.f.def(array), ValueDef::Param(_));
        let unsigned = if matches!(ty, fixed::U64 | fixed::I64) { fixed::U64 } else { fixed::U32 };
        // What the entry block computes is there for all.
        let here = is_param.then(|| std::mem::replace(self.out, std::mem::take(&mut self.entry)));
        let mut limit = self.emit(Op::GpuBufferLen, unsigned, &[array]);
        if ty == fixed::I32 {
            // No 32-bit signed index reaches further.
            let most = self.f.const_u32(1 << 31);
            limit = self.emit(Op::IUmin, fixed::U32, &[limit, most]);
        }
        if ty != unsigned {
            limit = self.emit(Op::Cast, ty, &[limit]);
        }
        if let Some(here) = here {
            self.entry = std::mem::replace(self.out, here);
            self.limits.insert((array, ty), limit);
        }
        limit
    }

    fn emit(&mut self, op: Op, ty: TypeId, args: &[Value]) -> Value {
        let i = self.f.make_inst(op, Flags::NONE, ty, args, 0, self.span);
        self.out.push(i);
        match self.f.inst(i).result() {
            Some(v) => v,
            None => self.f.zero(ty),
        }
    }
}
