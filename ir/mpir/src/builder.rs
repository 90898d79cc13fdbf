//! [`Builder`]: writes a function block by block and puts mutable variables into SSA form on the
//! way (Braun et al., "Simple and Efficient Construction of Static Single Assignment Form", 2013).
//!
//! Law:
//! - Instructions go to the end of the current block ([`Builder::switch_to`]) until a terminator
//!   ends it.
//! - A block is *sealed* when all branches to it are made. Reading a variable in a block that is
//!   not sealed leaves a phi whose arms come with [`Builder::seal`].
//! - Phis stand in their blocks after [`Builder::finish`], which also removes those that choose
//!   between one value and themselves. A value read from a variable stays valid for further
//!   building.
//! - Nothing recurses: chains of blocks may be long.

use crate::analysis::Cfg;
use crate::{Block, Flags, FnId, Inst, MpirFn, Op, Terminator, Value};
use magpie_diag::Span;
use magpie_types::{TypeId, fixed};
use rustc_hash::FxHashMap;

/// A mutable variable of the source program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Variable(u32);

#[derive(Default)]
struct BlockState {
    sealed: bool,
    ended: bool,
    /// The last walk that came by.
    walked: u32,
    /// Each block that branches here, once, in the order of the branches.
    preds: Vec<Block>,
    phis: Vec<Inst>,
    /// Phis that wait for the predecessors.
    incomplete: Vec<(Variable, Inst)>,
}

/// A phi whose arms are being read.
struct Frame {
    phi: Inst,
    block: Block,
    arms: Vec<(Block, Value)>,
}

/// Writes one function.
pub struct Builder<'f> {
    f: &'f mut MpirFn,
    current: Block,
    span: Span,
    flags: Flags,
    blocks: Vec<BlockState>,
    variables: Vec<TypeId>,
    walk: u32,
    definitions: FxHashMap<(Block, Variable), Value>,
    /// A removed phi's value and what stands for it.
    replaced: FxHashMap<Value, Value>,
    /// Phis that have the value of a phi among their arms.
    phi_users: FxHashMap<Value, Vec<Inst>>,
}

impl<'f> Builder<'f> {
    /// Starts with an entry block, sealed and current. `f` has its parameters and no blocks.
    pub fn new(f: &'f mut MpirFn) -> Builder<'f> {
        let mut b = Builder::resume(f);
        b.current = b.create_block();
        b.seal(b.current);
        b
    }

    /// Goes on with a function that has blocks. The blocks so far count as sealed and their
    /// branches are known; the current block is the first, if there is one.
    pub fn resume(f: &'f mut MpirFn) -> Builder<'f> {
        let mut blocks: Vec<BlockState> = f.blocks.iter().map(|_| BlockState::default()).collect();
        for b in f.block_ids() {
            blocks[b.index()].sealed = true;
            f.block(b).term.for_each_target(|t| add_pred(&mut blocks, t, b));
        }
        Builder {
            f,
            current: Block(0),
            span: Span::NONE,
            flags: Flags::NONE,
            blocks,
            variables: Vec::new(),
            walk: 0,
            definitions: FxHashMap::default(),
            replaced: FxHashMap::default(),
            phi_users: FxHashMap::default(),
        }
    }

    /// The function as it stands; phis are missing until [`Builder::finish`].
    pub fn func(&mut self) -> &mut MpirFn {
        self.f
    }

    /// The type of a value.
    pub fn ty(&self, v: Value) -> TypeId {
        self.f.ty(v)
    }

    // ----- blocks -----

    /// Adds a block that is not sealed.
    pub fn create_block(&mut self) -> Block {
        self.blocks.push(BlockState::default());
        self.f.add_block()
    }

    /// Further instructions go to the end of `b`.
    pub fn switch_to(&mut self, b: Block) {
        self.current = b;
    }

    /// The block that instructions go to.
    pub fn current(&self) -> Block {
        self.current
    }

    /// Whether the current block has its terminator.
    pub fn is_ended(&self) -> bool {
        self.blocks[self.current.index()].ended
    }

    /// Whether a branch to `b` was made so far.
    pub fn has_preds(&self, b: Block) -> bool {
        !self.blocks[b.index()].preds.is_empty()
    }

    /// States that no further branches to `b` will be made.
    pub fn seal(&mut self, b: Block) {
        let state = &mut self.blocks[b.index()];
        if std::mem::replace(&mut state.sealed, true) {
            return;
        }
        for (var, phi) in std::mem::take(&mut state.incomplete) {
            self.complete(Frame { phi, block: b, arms: Vec::new() }, var);
        }
    }

    // ----- variables -----

    /// A new variable of a type. Read before it is written on some path, it is zero there.
    pub fn declare(&mut self, ty: TypeId) -> Variable {
        self.variables.push(ty);
        Variable(self.variables.len() as u32 - 1)
    }

    /// Writes a variable in the current block.
    pub fn write(&mut self, var: Variable, v: Value) {
        debug_assert_eq!(self.f.ty(v), self.variables[var.0 as usize]);
        self.definitions.insert((self.current, var), v);
    }

    /// The value of a variable at this point of the current block.
    pub fn read(&mut self, var: Variable) -> Value {
        if self.variables[var.0 as usize] == fixed::UNIT {
            return self.f.zero(fixed::UNIT);
        }
        match self.find(self.current, var) {
            Found::Value(v) => v,
            Found::Phi(frame) => self.complete(frame, var),
        }
    }

    /// Walks up the only way to `b` until the variable is known. Where ways meet, a phi stands for
    /// it.
    fn find(&mut self, b: Block, var: Variable) -> Found {
        self.walk += 1;
        let mut walked = Vec::new();
        let mut at = b;
        let mut frame = None;
        let value = loop {
            if let Some(&v) = self.definitions.get(&(at, var)) {
                break self.resolve(v);
            }
            walked.push(at);
            let state = &mut self.blocks[at.index()];
            // A cycle of blocks with one predecessor each cannot be reached.
            let first_visit = std::mem::replace(&mut state.walked, self.walk) != self.walk;
            match (state.sealed, state.preds.as_slice()) {
                (true, &[pred]) if first_visit => at = pred,
                (true, [] | [_]) => break self.f.zero(self.variables[var.0 as usize]),
                (sealed, _) => {
                    let (phi, v) = self.new_phi(var);
                    let state = &mut self.blocks[at.index()];
                    state.phis.push(phi);
                    match sealed {
                        true => frame = Some(Frame { phi, block: at, arms: Vec::new() }),
                        false => state.incomplete.push((var, phi)),
                    }
                    break v;
                }
            }
        };
        for block in walked {
            self.definitions.insert((block, var), value);
        }
        frame.map_or(Found::Value(value), Found::Phi)
    }

    fn new_phi(&mut self, var: Variable) -> (Inst, Value) {
        let ty = self.variables[var.0 as usize];
        let phi = self.f.make_phi(ty, &[], self.span);
        (phi, self.phi_result(phi))
    }

    fn phi_result(&self, phi: Inst) -> Value {
        self.f.inst(phi).result().expect("variables of type unit have no phis")
    }

    /// Reads the variable in every predecessor; phis met on the way come first. Returns what the
    /// phi amounts to.
    fn complete(&mut self, frame: Frame, var: Variable) -> Value {
        let mut frames = vec![frame];
        loop {
            let top = frames.last_mut().expect("the loop ends with the first frame");
            let pred = self.blocks[top.block.index()].preds.get(top.arms.len()).copied();
            let (pred, value) = match pred {
                Some(pred) => match self.find(pred, var) {
                    Found::Value(v) => (pred, v),
                    Found::Phi(frame) => {
                        frames.push(frame);
                        continue;
                    }
                },
                None => {
                    let done = frames.pop().expect("it was looked at above");
                    self.f.set_phi_arms(done.phi, &done.arms);
                    for &(_, v) in &done.arms {
                        self.note_phi_user(v, done.phi);
                    }
                    let value = self.simplify(done.phi);
                    let Some(below) = frames.last() else { return value };
                    let preds = &self.blocks[below.block.index()].preds;
                    (preds[below.arms.len()], value)
                }
            };
            let top = frames.last_mut().expect("a frame waits for the arm");
            top.arms.push((pred, value));
        }
    }

    fn note_phi_user(&mut self, v: Value, user: Inst) {
        if self.f.def_op(v) == Some(Op::Phi) {
            self.phi_users.entry(v).or_default().push(user);
        }
    }

    /// Replaces a phi that chooses between one value and itself by that value, and then phis that
    /// became so. Returns what stands for the phi.
    fn simplify(&mut self, phi: Inst) -> Value {
        let mut work = vec![phi];
        while let Some(phi) = work.pop() {
            let itself = self.phi_result(phi);
            if self.replaced.contains_key(&itself) {
                continue;
            }
            let mut only = None;
            let mut several = false;
            let arms: Vec<Value> = self.f.phi_arms(phi).map(|(_, v)| v).collect();
            // Without arms the phi still waits for its predecessors.
            several |= arms.is_empty();
            for v in arms {
                let v = self.resolve(v);
                several |= v != itself && only.is_some_and(|o| o != v);
                if v != itself {
                    only = Some(v);
                }
            }
            if several {
                continue;
            }
            let ty = self.f.ty(itself);
            // Nothing but itself: no path leads here.
            let value = only.unwrap_or_else(|| self.f.zero(ty));
            self.replaced.insert(itself, value);
            let users = self.phi_users.remove(&itself).unwrap_or_default();
            for &user in &users {
                self.note_phi_user(value, user);
            }
            work.extend(users);
        }
        self.resolve(self.phi_result(phi))
    }

    /// Follows replacements and shortens the way for the next time.
    fn resolve(&mut self, v: Value) -> Value {
        let mut end = v;
        while let Some(&next) = self.replaced.get(&end) {
            end = next;
        }
        let mut at = v;
        while let Some(next) = self.replaced.get_mut(&at) {
            at = std::mem::replace(next, end);
        }
        end
    }

    // ----- instructions -----

    /// Source place of the instructions and terminators that follow.
    pub fn at(&mut self, span: Span) {
        self.span = span;
    }

    /// Flags of the instructions that follow.
    pub fn set_flags(&mut self, flags: Flags) {
        self.flags = flags;
    }

    /// An instruction with everything given; its result when its type is not `unit`.
    pub fn inst(&mut self, op: Op, ty: TypeId, args: &[Value], imm: u64) -> Option<Value> {
        debug_assert!(!self.is_ended(), "{:?} has its terminator", self.current);
        self.f.append(self.current, op, self.flags, ty, args, imm, self.span)
    }

    /// An instruction with a result; `ty` is not `unit`.
    pub fn value(&mut self, op: Op, ty: TypeId, args: &[Value], imm: u64) -> Value {
        self.inst(op, ty, args, imm).expect("the type of a result is not unit")
    }

    /// An instruction without result.
    pub fn effect(&mut self, op: Op, args: &[Value], imm: u64) {
        self.inst(op, fixed::UNIT, args, imm);
    }

    /// An op on operands of one type with a result of that type.
    pub fn same(&mut self, op: Op, args: &[Value]) -> Value {
        let ty = self.f.ty(args[0]);
        self.value(op, ty, args, 0)
    }

    /// A comparison of two scalars.
    pub fn compare(&mut self, op: Op, a: Value, b: Value) -> Value {
        self.value(op, fixed::BOOL, &[a, b], 0)
    }

    /// A conversion; the value itself when it has the type.
    pub fn cast(&mut self, v: Value, ty: TypeId) -> Value {
        if self.f.ty(v) == ty { v } else { self.value(Op::Cast, ty, &[v], 0) }
    }

    /// `a` when `cond`, else `b`.
    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let ty = self.f.ty(a);
        self.value(Op::Select, ty, &[cond, a, b], 0)
    }

    /// A call of a function of the module that returns `ret_ty`.
    pub fn call(&mut self, callee: FnId, ret_ty: TypeId, args: &[Value]) -> Option<Value> {
        self.inst(Op::Call, ret_ty, args, callee.0 as u64)
    }

    /// A phi whose arms are known. It comes before all other instructions of the current block.
    pub fn phi(&mut self, ty: TypeId, arms: &[(Block, Value)]) -> Value {
        let phi = self.f.make_phi(ty, arms, self.span);
        for &(_, v) in arms {
            self.note_phi_user(v, phi);
        }
        self.blocks[self.current.index()].phis.push(phi);
        self.phi_result(phi)
    }

    /// A scalar constant.
    pub fn const_bits(&mut self, ty: TypeId, bits: u64) -> Value {
        self.f.const_bits(ty, bits)
    }

    // ----- terminators -----

    fn end(&mut self, term: Terminator) {
        let b = self.current;
        debug_assert!(!self.is_ended(), "{b:?} has its terminator");
        term.for_each_target(|t| {
            debug_assert!(!self.blocks[t.index()].sealed, "{t:?} is sealed");
            add_pred(&mut self.blocks, t, b);
        });
        self.blocks[b.index()].ended = true;
        let block = self.f.block_mut(b);
        block.term = term;
        block.term_span = self.span;
    }

    /// Ends the block: goes on in `target`.
    pub fn br(&mut self, target: Block) {
        self.end(Terminator::Br(target));
    }

    /// Ends the block with a choice.
    pub fn cbr(&mut self, cond: Value, then: Block, else_: Block) {
        self.end(Terminator::Cbr { cond, then, else_ });
    }

    /// Ends the block with a choice between distinct bits.
    pub fn switch(&mut self, value: Value, cases: Vec<(u64, Block)>, default: Block) {
        self.end(Terminator::Switch { value, cases, default });
    }

    /// Ends the block: returns.
    pub fn ret(&mut self, v: Option<Value>) {
        self.end(Terminator::Ret(v));
    }

    /// Ends the block: cannot be reached.
    pub fn unreachable(&mut self) {
        self.end(Terminator::Unreachable);
    }

    /// Seals what is not sealed, puts the phis into their blocks and replaces those that are none.
    /// Blocks that cannot be reached lose their code, in which values may depend on themselves.
    pub fn finish(mut self) {
        for n in 0..self.blocks.len() {
            self.seal(Block::new(n));
        }
        for n in 0..self.blocks.len() {
            let phis = std::mem::take(&mut self.blocks[n].phis);
            let kept = phis.into_iter().filter(|&phi| {
                let result = self.f.inst(phi).result();
                !result.is_some_and(|v| self.replaced.contains_key(&v))
            });
            let kept: Vec<Inst> = kept.collect();
            self.f.blocks[n].insts.splice(0..0, kept);
        }
        self.f.replace_uses(&self.replaced);
        clear_unreachable_blocks(self.f);
    }
}

fn clear_unreachable_blocks(f: &mut MpirFn) {
    let cfg = Cfg::new(f);
    for b in f.block_ids() {
        if !cfg.is_reachable(b) {
            let block = f.block_mut(b);
            block.insts.clear();
            block.term = Terminator::Unreachable;
        } else if cfg.preds(b).iter().any(|&p| !cfg.is_reachable(p)) {
            for phi in f.phis(b).collect::<Vec<_>>() {
                let arms: Vec<(Block, Value)> =
                    f.phi_arms(phi).filter(|&(p, _)| cfg.is_reachable(p)).collect();
                f.set_phi_arms(phi, &arms);
            }
        }
    }
}

enum Found {
    Value(Value),
    /// A phi whose arms are to be read.
    Phi(Frame),
}

/// A block branches to another through one terminator, so its repetitions are adjacent.
fn add_pred(blocks: &mut [BlockState], target: Block, source: Block) {
    let preds = &mut blocks[target.index()].preds;
    if preds.last() != Some(&source) {
        preds.push(source);
    }
}

#[cfg(test)]
mod tests;
