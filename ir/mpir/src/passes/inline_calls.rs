//! Inlining of functions: kernels are closed before they go to a back end.
//!
//! Device functions stay as they are; their bodies are copied into the kernels, calls inside them
//! included. Calls of recursive functions remain. Instructions keep their place in the source of
//! the callee.

use super::context::refill;
use super::replacements::Replacements;
use crate::analysis::CallGraph;
use crate::{Block, Domain, Flags, FnId, Inst, Module, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_diag::{Code, Diagnostic};
use magpie_types::{RefMode, TypeKind};
use rustc_hash::FxHashMap;

/// A kernel with its callees has at most this many instructions.
pub const MAX_KERNEL_SIZE: u64 = 1 << 18;

/// Replaces the calls in every kernel by the bodies of the called functions. A kernel that would
/// become larger than [`MAX_KERNEL_SIZE`] is left alone and reported.
pub fn inline_calls(module: &mut Module, errors: &mut Vec<Diagnostic>) -> bool {
    let graph = CallGraph::new(module);
    let sizes = closed_sizes(module, &graph);
    let mut scratch = Scratch::default();
    let mut changed = false;
    for id in module.fn_ids() {
        let f = module.func(id);
        if !f.is_kernel() || graph.callees(id).is_empty() {
            continue;
        }
        if sizes[id.index()] > MAX_KERNEL_SIZE {
            errors.push(too_large(module, id, &sizes));
            continue;
        }
        let may = |id: FnId| may_be_copied(module, &graph, id);
        let expandable: Vec<bool> = module.fn_ids().map(may).collect();
        changed |= inline_into(module, id, &|id| expandable[id.index()], &mut scratch);
    }
    changed
}

/// Replaces the calls in a function of those functions for which `may` holds by their bodies. They
/// do not call the function.
pub(super) fn inline_into(
    module: &mut Module,
    id: FnId,
    may: &dyn Fn(FnId) -> bool,
    scratch: &mut Scratch,
) -> bool {
    let f = module.func(id);
    let empty = MpirFn::new(f.sid.clone(), "", f.ret_ty, f.domain);
    let mut f = std::mem::replace(&mut module.fns[id.index()], empty);
    scratch.replacements.start(&f);
    let changed = Inliner { module, may, f: &mut f, s: scratch }.run();
    module.fns[id.index()] = f;
    changed
}

/// Whether the body of a function can be copied.
fn may_be_copied(module: &Module, graph: &CallGraph, id: FnId) -> bool {
    !graph.is_recursive(id) && !module.func(id).blocks.is_empty()
}

/// Number of instructions of each function with those of its callees.
fn closed_sizes(module: &Module, graph: &CallGraph) -> Vec<u64> {
    let mut sizes = vec![0u64; module.fns.len()];
    for &id in graph.bottom_up() {
        let f = module.func(id);
        let insts = f.blocks.iter().flat_map(|b| &b.insts);
        sizes[id.index()] = insts.fold(0, |size, &i| {
            let called = callee(f, i).filter(|&c| may_be_copied(module, graph, c));
            let more = called.map_or(1, |c| sizes[c.index()]);
            size.saturating_add(more)
        });
    }
    sizes
}

/// The function that a call instruction calls.
pub(super) fn callee(f: &MpirFn, i: Inst) -> Option<FnId> {
    let inst = f.inst(i);
    (inst.op == Op::Call).then(|| inst.func())
}

fn too_large(module: &Module, kernel: FnId, sizes: &[u64]) -> Diagnostic {
    let f = module.func(kernel);
    let calls = f.blocks.iter().flat_map(|b| &b.insts).filter(|&&i| f.inst(i).op == Op::Call);
    let largest = calls.max_by_key(|&&i| sizes.get(f.inst(i).func().index()).copied());
    let (span, what) = match largest {
        Some(&i) => (f.inst(i).span, module.func(f.inst(i).func()).name.as_str()),
        None => (f.span, f.name.as_str()),
    };
    Diagnostic::new(
        Code::MPG_CORE_1304,
        span,
        format!(
            "kernel {} has more than {MAX_KERNEL_SIZE} instructions with all its calls expanded; \
             most come from {what}",
            f.name
        ),
    )
    .with_note("device functions are copied to every place that calls them")
    .with_help("call it in a loop instead of many times, or split the kernel")
}

/// Working memory.
#[derive(Default)]
pub(super) struct Scratch {
    replacements: Replacements,
    /// Values and blocks of the callee in the kernel.
    values: Vec<u32>,
    blocks: Vec<Block>,
    copies: Vec<Inst>,
    /// The block that took over the end of a block.
    moved_to: Vec<Block>,
    /// Blocks that may hold calls.
    work: Vec<Block>,
    /// Instructions of the current block that are still to be looked at, the next one last.
    pending: Vec<Inst>,
}

struct Inliner<'a> {
    module: &'a Module,
    /// Whether calls of a function are expanded.
    may: &'a dyn Fn(FnId) -> bool,
    f: &'a mut MpirFn,
    s: &'a mut Scratch,
}

const NONE: u32 = u32::MAX;

impl Inliner<'_> {
    fn run(&mut self) -> bool {
        let mut shared = FxHashMap::default();
        let mut entry_arrays = Vec::new();
        self.s.moved_to.clear();
        self.s.moved_to.extend(self.f.block_ids());
        self.s.work.clear();
        self.s.work.extend(self.f.block_ids().rev());
        let mut changed = false;
        while let Some(b) = self.s.work.pop() {
            let is_call = |&i: &Inst| callee(self.f, i).is_some_and(self.may);
            if self.f.block(b).insts.iter().any(is_call) {
                self.expand(b, &mut shared, &mut entry_arrays);
                changed = true;
            }
        }
        if changed {
            self.f.block_mut(Block(0)).insts.splice(0..0, entry_arrays);
            self.rename_phi_arms();
            self.s.replacements.apply(self.f);
        }
        changed
    }

    /// Expands the calls of a block, also those inside what it expands to.
    fn expand(
        &mut self,
        b: Block,
        shared: &mut FxHashMap<(FnId, Inst), Value>,
        entry_arrays: &mut Vec<Inst>,
    ) {
        let mut current = b;
        let mut pending = std::mem::take(&mut self.s.pending);
        pending.clear();
        pending.extend(self.f.block_mut(b).insts.drain(..).rev());
        while let Some(i) = pending.pop() {
            let Some(id) = callee(self.f, i).filter(|&id| (self.may)(id)) else {
                self.f.block_mut(current).insts.push(i);
                continue;
            };
            let body = self.module.func(id);
            self.show_arguments(body, i, current);
            self.copy_values(id, body, i, shared, entry_arrays);
            let result = self.f.inst(i).result();
            if let [only] = &body.blocks[..]
                && let Terminator::Ret(value) = only.term
            {
                let copies = &self.s.copies;
                pending.extend(copies.iter().rev());
                if let Some((result, value)) = result.zip(value) {
                    let value = self.value(body, value);
                    self.s.replacements.set(result, value);
                }
                continue;
            }
            current = self.copy_blocks(body, current, result);
        }
        self.s.pending = pending;
    }

    /// Makes the operands of a call what the callee calls them: views, where it may look at what it
    /// is given.
    fn show_arguments(&mut self, body: &MpirFn, call: Inst, current: Block) {
        for (n, &(_, ty)) in body.params.iter().enumerate() {
            let arg = self.f.args(call)[n];
            if self.f.domain != Domain::Host || self.f.ty(arg) == ty {
                continue;
            }
            let op = match self.module.types.kind(ty) {
                TypeKind::Ref(RefMode::MutBorrow, _) => Op::BorrowMut,
                _ => Op::BorrowShared,
            };
            let span = self.f.inst(call).span;
            let view = self.f.make_inst(op, Flags::NONE, ty, &[arg], 0, span);
            self.f.block_mut(current).insts.push(view);
            if let Some(view) = self.f.inst(view).result() {
                self.f.args_mut(call)[n] = view;
            }
        }
    }

    /// Makes copies of all instructions of a callee, with their operands. They are listed in
    /// `copies` in block order.
    fn copy_values(
        &mut self,
        id: FnId,
        body: &MpirFn,
        call: Inst,
        shared: &mut FxHashMap<(FnId, Inst), Value>,
        entry_arrays: &mut Vec<Inst>,
    ) {
        refill(&mut self.s.values, body.locals.len(), NONE);
        self.s.blocks.clear();
        self.s.copies.clear();
        for (&(param, _), &arg) in body.params.iter().zip(self.f.args(call)) {
            self.s.values[param.index()] = self.s.replacements.get(arg).0;
        }
        if body.blocks.len() > 1 || !matches!(body.blocks[0].term, Terminator::Ret(_)) {
            for _ in &body.blocks {
                let copy = self.f.add_block();
                self.s.blocks.push(copy);
                self.s.moved_to.push(copy);
            }
        }
        for &i in body.blocks.iter().flat_map(|b| &b.insts) {
            let inst = *body.inst(i);
            let copy = match inst.op {
                Op::Phi => self.f.make_phi(inst.ty, &[], inst.span),
                op => self.f.make_inst(op, inst.flags, inst.ty, &[], inst.imm, inst.span),
            };
            let mut copied = self.f.inst(copy).result();
            // A shared array is one for all calls, in the source and so here.
            if inst.op == Op::GpuShared
                && let Some(array) = copied
            {
                copied = Some(*shared.entry((id, i)).or_insert_with(|| {
                    entry_arrays.push(copy);
                    array
                }));
            } else {
                self.s.copies.push(copy);
            }
            if let Some((v, copied)) = inst.result().zip(copied) {
                self.s.values[v.index()] = copied.0;
            }
        }
        let mut next = 0;
        let (mut args, mut arms) = (Vec::new(), Vec::new());
        for &i in body.blocks.iter().flat_map(|b| &b.insts) {
            let inst = *body.inst(i);
            if inst.op == Op::GpuShared {
                continue;
            }
            let copy = self.s.copies[next];
            next += 1;
            if inst.op == Op::Phi {
                arms.clear();
                for (p, v) in body.phi_arms(i) {
                    arms.push((self.s.blocks[p.index()], self.value(body, v)));
                }
                self.f.set_phi_arms(copy, &arms);
            } else if !body.args(i).is_empty() {
                args.clear();
                for &v in body.args(i) {
                    args.push(self.value(body, v));
                }
                self.f.rewrite(copy, inst.op, &args, inst.imm);
            }
        }
    }

    /// The copy of a value of the callee.
    fn value(&mut self, body: &MpirFn, v: Value) -> Value {
        let slot = self.s.values[v.index()];
        if slot != NONE {
            return Value(slot);
        }
        let ty = body.ty(v);
        let copy = match body.def(v) {
            ValueDef::Const(c) => self.f.constant(ty, c),
            // Of the parameters and instructions every one has a copy.
            ValueDef::Param(_) | ValueDef::Inst(_) => self.f.zero(ty),
        };
        self.s.values[v.index()] = copy.0;
        copy
    }

    /// Puts the copies into blocks between `current` and a new block, which takes over the rest of
    /// `current` and is returned.
    fn copy_blocks(&mut self, body: &MpirFn, current: Block, result: Option<Value>) -> Block {
        let rest = self.f.add_block();
        self.s.moved_to.push(rest);
        self.s.moved_to[current.index()] = rest;
        let mut copies = std::mem::take(&mut self.s.copies).into_iter();
        let mut returned = Vec::new();
        for (n, block) in body.blocks.iter().enumerate() {
            let copied = |i: &&Inst| body.inst(**i).op != Op::GpuShared;
            let count = block.insts.iter().filter(copied).count();
            let mut term = block.term.clone();
            if let Some(v) = term.operand_mut() {
                *v = self.value(body, *v);
            }
            let copy = self.s.blocks[n];
            if let Terminator::Ret(v) = term {
                returned.extend(v.map(|v| (copy, v)));
                term = Terminator::Br(rest);
            } else {
                term.map_targets(|t| self.s.blocks[t.index()]);
            }
            let target = self.f.block_mut(copy);
            target.insts.extend(copies.by_ref().take(count));
            target.term = term;
            target.term_span = block.term_span;
            self.s.work.push(copy);
        }
        let (first, span) = (self.s.blocks[0], self.f.block(current).term_span);
        let branch = Terminator::Br(first);
        let term = std::mem::replace(&mut self.f.block_mut(current).term, branch);
        if let Some(result) = result {
            let value = match returned[..] {
                [] => Some(self.f.zero(self.f.ty(result))),
                [(_, value)] => Some(value),
                _ => {
                    let phi = self.f.make_phi(self.f.ty(result), &returned, span);
                    self.f.block_mut(rest).insts.push(phi);
                    self.f.inst(phi).result()
                }
            };
            if let Some(value) = value {
                self.s.replacements.set(result, value);
            }
        }
        let block = self.f.block_mut(rest);
        block.term = term;
        block.term_span = span;
        rest
    }

    fn rename_phi_arms(&mut self) {
        for b in self.f.block_ids() {
            let mut n = 0;
            while let Some(&i) = self.f.block(b).insts.get(n) {
                if self.f.inst(i).op != Op::Phi {
                    break;
                }
                self.f.map_phi_blocks(i, |p| {
                    let mut at = p;
                    while self.s.moved_to[at.index()] != at {
                        let next = self.s.moved_to[at.index()];
                        self.s.moved_to[at.index()] = self.s.moved_to[next.index()];
                        at = next;
                    }
                    at
                });
                n += 1;
            }
        }
    }
}
