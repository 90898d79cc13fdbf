//! Callables that are known where they are called.
//!
//! A call of a callable goes through its code address and a thunk, and nothing of the callee is
//! seen on the other side. Mostly the callable was made in the same function, or it was handed to a
//! function that calls it, as `xs.map(fn(x int) int: x * k)` does. Then
//!
//! - `call.indirect` of a callable that was made here is a `call` with the captures as arguments;
//! - a function that calls a parameter is copied for each callable that it is given: the copy has
//!   the captures as parameters instead, and its calls of the parameter are direct;
//! - a small function that returns a callable becomes a part of its callers before, so that what it
//!   makes is made there;
//! - a callable that nobody reads after that is not made.
//!
//! It is done here and not in a front end because a callable may come through calls, captures of
//! other callables and clones of its handle, which are all plain to see in rich MPIR, and because
//! it then serves every language. Whatever is not known (a callable out of a list, one that a branch
//! has chosen) stays as it is.
//!
//! Each step alone leaves the function right: a copy begins by making the callable of its captures,
//! and is then rewritten like any other function.

use super::inline_calls::Scratch;
use super::inline_small_calls::{Callees, inline_small_calls};
use crate::analysis::CallGraph;
use crate::{Domain, Flags, FnId, Inst, Module, MpirFn, Op, Value, ValueDef, imm_pair};
use magpie_diag::Span;
use magpie_types::abi::RtFn;
use magpie_types::{RefMode, Sid, SidKind, TypeCtx, TypeId, TypeKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// Copies of functions in a module, at most.
const MAX_COPIES: usize = 1000;
/// Instructions of all copies together, at most.
const MAX_COPIED: usize = 100_000;
/// Callables captured by callables captured by …, as far as it is looked at.
const MAX_DEPTH: usize = 4;
/// Parameters of a copy, at most.
const MAX_PARAMS: usize = 64;

/// Makes calls of known callables direct, in the host functions of a module that are not lowered,
/// before `lower_arc`.
pub fn specialize_callables(m: &mut Module) -> bool {
    if !m.fns.iter().any(|f| f.domain == Domain::Host && makes_callables(f)) {
        return false;
    }
    let graph = CallGraph::new(m);
    inline_makers(m, &graph);
    let mut specializer = Specializer {
        called: called_params(m),
        m,
        copies: FxHashMap::default(),
        work: graph.bottom_up().iter().rev().copied().collect(),
        copied: 0,
        changed: false,
    };
    while let Some(id) = specializer.work.pop() {
        specializer.rewrite(id);
    }
    specializer.changed
}

fn makes_callables(f: &MpirFn) -> bool {
    f.blocks.iter().flat_map(|b| &b.insts).any(|&i| f.inst(i).op == Op::CallableCapture)
}

/// Makes small functions that return callables parts of their callers.
fn inline_makers(m: &mut Module, graph: &CallGraph) {
    let mut makers = Callees::new(m, graph);
    let mut scratch = Scratch::default();
    for &id in graph.bottom_up() {
        if m.func(id).domain != Domain::Host {
            continue;
        }
        inline_small_calls(m, id, &makers, &mut scratch);
        let f = m.func(id);
        let is_maker = signature_of(&m.types, f.ret_ty).is_some() && makes_callables(f);
        if is_maker && !graph.is_recursive(id) {
            makers.learn(f, id);
        }
    }
}

/// The type of the callable that a value of a type is or shows.
fn signature_of(types: &TypeCtx, ty: TypeId) -> Option<TypeId> {
    let seen = match types.kind(ty) {
        TypeKind::Ref(RefMode::Borrow, seen) => seen,
        _ => ty,
    };
    matches!(types.kind(seen), TypeKind::Callable(_)).then_some(seen)
}

/// The bound parameters of a capture, in the order of its operands.
fn bound_params(bits: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |n| bits >> n & 1 == 1)
}

/// The value that a view or another handle of a callable comes from.
fn origin(f: &MpirFn, mut v: Value) -> Value {
    while let Some(i) = f.def_inst(v).filter(|&i| is_alias(f, i)) {
        v = f.arg(i, 0);
    }
    v
}

/// Whether an instruction gives the object of its operand another name.
fn is_alias(f: &MpirFn, i: Inst) -> bool {
    let data = f.inst(i);
    data.op == Op::BorrowShared || data.op == Op::RtCall && data.rt() == RtFn::HandleClone
}

/// The parameters that are called: in their function, in one that gets them as an argument, or in
/// one that is made a callable with them.
fn called_params(m: &Module) -> FxHashSet<(FnId, usize)> {
    // From a parameter to those that are given as that parameter.
    let mut given: FxHashMap<(FnId, usize), Vec<(FnId, usize)>> = FxHashMap::default();
    let mut work = Vec::new();
    for id in m.fn_ids() {
        let f = m.func(id);
        let takes_some = f.params.iter().any(|p| signature_of(&m.types, p.1).is_some());
        if f.domain != Domain::Host || !takes_some {
            continue;
        }
        let param = |v: Value| match f.def(origin(f, v)) {
            ValueDef::Param(n) => signature_of(&m.types, f.ty(v)).map(|_| (id, n as usize)),
            ValueDef::Inst(_) | ValueDef::Const(_) => None,
        };
        for &i in f.blocks.iter().flat_map(|b| &b.insts) {
            let data = f.inst(i);
            if data.op == Op::CallIndirect {
                work.extend(param(f.arg(i, 0)));
            }
            let mut give = |n: usize, v: Value| {
                if let Some(from) = param(v) {
                    given.entry((data.func(), n)).or_default().push(from);
                }
            };
            if data.op == Op::Call {
                f.args(i).iter().enumerate().for_each(|(n, &v)| give(n, v));
            }
            if data.op == Op::CallableCapture {
                bound_params(data.imm_hi()).zip(f.args(i)).for_each(|(n, &v)| give(n, v));
            }
        }
    }
    let mut called = FxHashSet::default();
    while let Some(param) = work.pop() {
        if called.insert(param) {
            work.extend(given.get(&param).into_iter().flatten());
        }
    }
    called
}

/// A callable as far as it is known: its function, and which captures are known callables.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Shape {
    func: FnId,
    /// The bound parameters of the function.
    bits: u32,
    parts: Vec<Option<Shape>>,
}

impl Shape {
    /// The captures that are values.
    fn leaves(&self) -> usize {
        self.parts.iter().map(|part| part.as_ref().map_or(1, Shape::leaves)).sum()
    }
}

/// A function, and the callables that its parameters are.
type Key = (FnId, Vec<Option<Shape>>);

struct Specializer<'m> {
    m: &'m mut Module,
    /// Parameters that are called.
    called: FxHashSet<(FnId, usize)>,
    copies: FxHashMap<Key, FnId>,
    /// Functions that are to be looked at.
    work: Vec<FnId>,
    /// Instructions of all copies.
    copied: usize,
    changed: bool,
}

/// What is written while a function is rewritten.
#[derive(Default)]
struct Rewriting {
    /// The instructions of the current block.
    insts: Vec<Inst>,
    /// Captured values that are read beside their callable.
    read: FxHashSet<Value>,
    changed: bool,
}

impl Specializer<'_> {
    /// Makes the calls of known callables in a function direct.
    fn rewrite(&mut self, id: FnId) {
        let f = self.m.func(id);
        if f.domain != Domain::Host || !makes_callables(f) {
            return;
        }
        // A copy, for the function may be needed to make copies of it.
        let mut f = f.clone();
        let mut r = Rewriting::default();
        for b in f.block_ids() {
            for i in std::mem::take(&mut f.block_mut(b).insts) {
                if matches!(f.inst(i).op, Op::Call | Op::CallIndirect) {
                    self.rewrite_call(&mut f, i, &mut r);
                }
                r.insts.push(i);
            }
            f.block_mut(b).insts = std::mem::take(&mut r.insts);
        }
        if !r.changed {
            return;
        }
        remove_unused(&mut f);
        self.keep_captures(&mut f, &r.read);
        f.compact(|_| true);
        self.m.fns[id.index()] = f;
        self.changed = true;
    }

    fn rewrite_call(&mut self, f: &mut MpirFn, i: Inst, r: &mut Rewriting) {
        let is_indirect = f.inst(i).op == Op::CallIndirect;
        let (callee, bits, operands) = if is_indirect {
            let Some(capture) = self.known_capture(f, f.arg(i, 0)) else { return };
            let (callee, bits) = (f.inst(capture).func(), f.inst(capture).imm_hi());
            let mut captured = f.args(capture).iter();
            let mut given = f.args(i)[1..].iter();
            let operands: Option<Vec<Value>> = (0..self.m.func(callee).params.len())
                .map(|n| if n < 32 && bits >> n & 1 == 1 { captured.next() } else { given.next() })
                .map(|v| v.copied())
                .collect();
            let Some(operands) = operands else { return };
            (callee, bits, operands)
        } else {
            (f.inst(i).func(), 0, f.args(i).to_vec())
        };
        let shape = |(n, &v): (usize, &Value)| match self.called.contains(&(callee, n)) {
            true => self.shape(f, v, MAX_DEPTH),
            false => None,
        };
        let mut shapes: Vec<Option<Shape>> = operands.iter().enumerate().map(shape).collect();
        let mut target = callee;
        if shapes.iter().any(Option::is_some) {
            match self.copy_for(callee, &shapes) {
                Some(copy) => target = copy,
                None => shapes.fill(None),
            }
        }
        if target == callee && !is_indirect {
            return;
        }
        let mut args = Vec::with_capacity(operands.len());
        for (n, (&v, shape)) in operands.iter().zip(&shapes).enumerate() {
            match shape {
                Some(shape) => self.leaves(f, v, shape, r, &mut args),
                None if n < 32 && bits >> n & 1 == 1 => {
                    args.push(self.captured(f, v, (callee, n), r));
                }
                None => args.push(v),
            }
        }
        f.rewrite(i, Op::Call, &args, target.0.into());
        r.changed = true;
    }

    /// The instruction that makes a callable, if its function can be called with the captures: each
    /// is copied, or looked at and can be cloned.
    fn known_capture(&self, f: &MpirFn, v: Value) -> Option<Inst> {
        let i = f.def_inst(origin(f, v)).filter(|&i| f.inst(i).op == Op::CallableCapture)?;
        let callee = self.m.func(f.inst(i).func());
        let types = &self.m.types;
        let fits = |(n, &v): (usize, &Value)| {
            let (ty, param) = (f.ty(v), callee.params[n].1);
            match types.kind(param) {
                TypeKind::Ref(RefMode::Borrow, seen) => seen == ty && types.is_heap(ty),
                _ => param == ty && types.is_copy(ty),
            }
        };
        let is_host = callee.domain == Domain::Host && !callee.blocks.is_empty();
        let fit = bound_params(f.inst(i).imm_hi()).zip(f.args(i)).all(fits);
        (is_host && fit).then_some(i)
    }

    /// What is known of a callable.
    fn shape(&self, f: &MpirFn, v: Value, depth: usize) -> Option<Shape> {
        let i = self.known_capture(f, v)?;
        let depth = depth.checked_sub(1)?;
        let (func, bits) = (f.inst(i).func(), f.inst(i).imm_hi());
        let part = |(n, &v): (usize, &Value)| match self.called.contains(&(func, n)) {
            true => self.shape(f, v, depth),
            false => None,
        };
        let parts = bound_params(bits).zip(f.args(i)).map(part).collect();
        Some(Shape { func, bits, parts })
    }

    /// Adds the captures of a callable that are values to the arguments of a call.
    fn leaves(
        &self,
        f: &mut MpirFn,
        v: Value,
        shape: &Shape,
        r: &mut Rewriting,
        args: &mut Vec<Value>,
    ) {
        let Some(i) = f.def_inst(origin(f, v)) else { return };
        let captures = f.args(i).to_vec();
        for ((n, v), part) in bound_params(shape.bits).zip(captures).zip(&shape.parts) {
            match part {
                Some(part) => self.leaves(f, v, part, r, args),
                None => args.push(self.captured(f, v, (shape.func, n), r)),
            }
        }
    }

    /// A captured value as the argument of a parameter.
    fn captured(&self, f: &mut MpirFn, v: Value, of: (FnId, usize), r: &mut Rewriting) -> Value {
        let param = self.m.func(of.0).params[of.1].1;
        if f.ty(v) == param {
            return v;
        }
        // What a parameter of this function shows is there all the time.
        if let Some(i) = f.def_inst(v).filter(|&i| is_alias(f, i)) {
            let shown = f.arg(i, 0);
            if f.ty(shown) == param && matches!(f.def(shown), ValueDef::Param(_)) {
                return shown;
            }
        }
        r.read.insert(v);
        let span = f.def_inst(v).map_or(Span::NONE, |i| f.inst(i).span);
        let view = f.make_inst(Op::BorrowShared, Flags::NONE, param, &[v], 0, span);
        r.insts.push(view);
        f.inst(view).result().unwrap_or(v)
    }

    /// Callables that are still made get handles of their own of what is read beside them.
    fn keep_captures(&self, f: &mut MpirFn, read: &FxHashSet<Value>) {
        for b in f.block_ids() {
            let mut insts = Vec::new();
            for i in std::mem::take(&mut f.block_mut(b).insts) {
                if f.inst(i).op == Op::CallableCapture {
                    let span = f.inst(i).span;
                    for n in 0..f.args(i).len() {
                        let v = f.arg(i, n);
                        if read.contains(&v) {
                            let clone = clone_handle(f, v, f.ty(v), span);
                            insts.push(clone);
                            f.args_mut(i)[n] = f.inst(clone).result().unwrap_or(v);
                        }
                    }
                }
                insts.push(i);
            }
            f.block_mut(b).insts = insts;
        }
    }

    /// The copy of a function whose parameters are callables that are known.
    fn copy_for(&mut self, id: FnId, shapes: &[Option<Shape>]) -> Option<FnId> {
        let key = (id, shapes.to_vec());
        if let Some(&copy) = self.copies.get(&key) {
            return Some(copy);
        }
        let f = self.m.func(id);
        let params: usize = shapes.iter().map(|s| s.as_ref().map_or(1, Shape::leaves)).sum();
        let size = f.live_inst_count() + f.blocks.len();
        let fits = self.copies.len() < MAX_COPIES
            && self.copied + size <= MAX_COPIED
            && params <= MAX_PARAMS;
        if f.domain != Domain::Host || f.blocks.is_empty() || !fits {
            return None;
        }
        let copy = self.copy_with(f, shapes);
        self.copied += size;
        let copy = self.m.add_fn(copy);
        self.copies.insert(key, copy);
        self.work.push(copy);
        Some(copy)
    }

    /// A copy of a function that makes the callables of their captures.
    fn copy_with(&self, original: &MpirFn, shapes: &[Option<Shape>]) -> MpirFn {
        let mut f = original.clone();
        f.name = format!("{}.known{}", original.name, self.copies.len());
        f.sid = Sid::new(SidKind::Function, &f.name);
        f.params.clear();
        f.param_names.clear();
        f.param_spans.clear();
        let mut made = FxHashMap::default();
        let mut insts = Vec::new();
        for (n, &(v, ty)) in original.params.iter().enumerate() {
            let (name, span) = (&original.param_names[n], original.param_spans[n]);
            match &shapes[n] {
                Some(shape) => {
                    let callable = self.make(&mut f, shape, ty, (name, span), &mut insts);
                    made.insert(v, callable);
                }
                None => {
                    let new = f.add_param(name.as_str(), ty, span);
                    made.insert(v, new);
                }
            }
        }
        f.replace_uses(&made);
        // Nothing leads back to the first block, so it has no phis.
        f.blocks[0].insts.splice(0..0, insts);
        f.compact(|_| true);
        f
    }

    /// A callable of type `ty`, made of captures that are new parameters.
    fn make(
        &self,
        f: &mut MpirFn,
        shape: &Shape,
        ty: TypeId,
        from: (&str, Span),
        insts: &mut Vec<Inst>,
    ) -> Value {
        let types = &self.m.types;
        let (name, span) = from;
        let callee = self.m.func(shape.func);
        let mut captures = Vec::with_capacity(shape.parts.len());
        for (n, part) in bound_params(shape.bits).zip(&shape.parts) {
            let param = callee.params[n].1;
            let seen = match types.kind(param) {
                TypeKind::Ref(_, seen) => seen,
                _ => param,
            };
            let v = match part {
                Some(part) => self.make(f, part, seen, from, insts),
                None => {
                    let v = f.add_param(format!("{name}.{}", callee.param_names[n]), param, span);
                    if seen == param {
                        v
                    } else {
                        let clone = clone_handle(f, v, seen, span);
                        insts.push(clone);
                        f.inst(clone).result().unwrap_or(v)
                    }
                }
            };
            captures.push(v);
        }
        let imm = imm_pair(shape.func.0, shape.bits);
        let callable = signature_of(types, ty).unwrap_or(ty);
        let i = f.make_inst(Op::CallableCapture, Flags::NONE, callable, &captures, imm, span);
        insts.push(i);
        let made = f.inst(i).result().unwrap_or(Value(0));
        if callable == ty {
            return made;
        }
        let view = f.make_inst(Op::BorrowShared, Flags::NONE, ty, &[made], 0, span);
        insts.push(view);
        f.inst(view).result().unwrap_or(made)
    }
}

/// Makes another handle of an object of type `ty`.
fn clone_handle(f: &mut MpirFn, v: Value, ty: TypeId, span: Span) -> Inst {
    f.make_inst(Op::RtCall, Flags::NONE, ty, &[v], RtFn::HandleClone as u64, span)
}

/// Drops callables, views and clones of handles that nothing reads.
fn remove_unused(f: &mut MpirFn) {
    let mut uses = vec![0u32; f.locals.len()];
    let mut work: Vec<Inst> = Vec::new();
    for block in &f.blocks {
        let args = block.insts.iter().flat_map(|&i| f.args(i));
        args.copied().chain(block.term.operand()).for_each(|v| uses[v.index()] += 1);
    }
    let is_light = |i: Inst| f.inst(i).op == Op::CallableCapture || is_alias(f, i);
    let is_unused =
        |uses: &[u32], i: Inst| f.inst(i).result().is_some_and(|v| uses[v.index()] == 0);
    for &i in f.blocks.iter().flat_map(|b| &b.insts) {
        if is_light(i) && is_unused(&uses, i) {
            work.push(i);
        }
    }
    let mut gone = FxHashSet::default();
    while let Some(i) = work.pop() {
        gone.insert(i);
        for &v in f.args(i) {
            uses[v.index()] -= 1;
            if let Some(def) = f.def_inst(v).filter(|&def| is_light(def) && is_unused(&uses, def)) {
                work.push(def);
            }
        }
    }
    for block in &mut f.blocks {
        block.insts.retain(|i| !gone.contains(i));
    }
}
