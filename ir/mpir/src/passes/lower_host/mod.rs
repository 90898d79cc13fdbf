//! `lower_host`: rich host code becomes addresses, memory, calls and control flow.
//!
//! Runs once over a module whose host functions passed [`super::lower_arc`]. Every
//! [`Domain::Host`] function becomes a [`Domain::LowHost`] one under the same id; thunks are added
//! behind the functions. `docs/internals/pipeline.md` lists what remains afterwards.
//!
//! Law of the lowered form:
//! - A value of a type is its leaves ([`TypeCtx::leaves`]), each a scalar, a vector or an address.
//!   `Str` and handles of it keep the type `Str` (a constant text is its object); every other
//!   handle and address is `rawptr<u8>`; a value enum is its tag, an `i32`.
//! - A view of a heap object is the object's handle. A view of anything else is the address of its
//!   storage: a field, an element, or a stack slot that holds a copy.
//! - A parameter of several leaves is several parameters. A result of a few leaves is returned, as a
//!   struct of them that is taken apart where it arrives; more are stored at the address that an
//!   additional first parameter gives. In calls by name, what an exclusive view shows comes and goes
//!   by value when it is a few leaves ([`convention`]).
//! - The code of a callable is a thunk `(result address,) payload address, leaves of the parameters
//!   left`.
//! - Payloads of inactive variants are zero, so they may be released.

mod aggregates;
mod arrays;
mod callables;
mod calls;
mod comparators;
mod convention;
mod counts;
mod enums;
mod launches;
mod loops;
mod maps;
mod memory;
mod objects;
mod ops;
mod text_facts;
mod texts;

use crate::analysis::{Cfg, Uses};
use crate::{
    Block, Builder, Const, Domain, FnId, Inst, Module, MpirFn, Op, Terminator, Value, Variable,
    ownership,
};
use convention::Convention;
use magpie_diag::Span;
use magpie_types::abi::{AbiReturn, PanicKind, RtFn};
use magpie_types::{Category, Leaf, Sid, SidKind, TypeCtx, TypeId, TypeKind, fixed};
use memory::Slots;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use text_facts::KnownTexts;

/// Lowers all host functions of a module. `place` describes a source place as
/// `file:line:column`, for the messages of panics.
pub fn lower_host(m: &mut Module, place: &dyn Fn(Span) -> Option<String>) {
    let conventions = m.fns.iter().map(|f| Rc::new(Convention::of(m, f))).collect();
    let address = m.types.intern(TypeKind::RawPtr(fixed::U8));
    let mut l = Lowering {
        m,
        place,
        conventions,
        groups: FxHashMap::default(),
        address,
        leaves: FxHashMap::default(),
        callable_thunks: FxHashMap::default(),
        comparator_thunks: FxHashMap::default(),
        capture_types: FxHashMap::default(),
    };
    for n in 0..l.conventions.len() {
        if l.m.fns[n].domain == Domain::Host {
            let id = FnId::new(n);
            let empty = l.empty_fn(id);
            let old = std::mem::replace(&mut l.m.fns[n], empty);
            l.m.fns[n] = lower_fn(&mut l, id, &old);
        }
    }
}

/// What all functions of the module share.
struct Lowering<'a> {
    m: &'a mut Module,
    place: &'a dyn Fn(Span) -> Option<String>,
    conventions: Vec<Rc<Convention>>,
    /// The struct of these values, for functions that return several.
    groups: FxHashMap<Vec<TypeId>, TypeId>,
    /// `rawptr<u8>`.
    address: TypeId,
    leaves: FxHashMap<TypeId, Rc<[Leaf]>>,
    callable_thunks: FxHashMap<callables::ThunkKey, FnId>,
    comparator_thunks: FxHashMap<comparators::ThunkKey, FnId>,
    /// The struct whose fields are the captures of a callable.
    capture_types: FxHashMap<Vec<TypeId>, TypeId>,
}

impl Lowering<'_> {
    fn types(&self) -> &TypeCtx {
        &self.m.types
    }

    /// The leaves of a type. Their types are those of the program; [`Lowering::low`] maps them.
    fn leaves(&mut self, ty: TypeId) -> Rc<[Leaf]> {
        let types = &self.m.types;
        self.leaves.entry(ty).or_insert_with(|| types.leaves(ty).into()).clone()
    }

    /// The type of a leaf in lowered code.
    fn low(&self, leaf: TypeId) -> TypeId {
        match self.types().kind(leaf) {
            TypeKind::Prim(_) | TypeKind::Vec(..) => leaf,
            TypeKind::Str | TypeKind::Ref(_, fixed::STR) => fixed::STR,
            TypeKind::Enum(e) if self.types().enum_def(e).category == Category::Value => fixed::I32,
            TypeKind::Enum(_)
            | TypeKind::Struct(_)
            | TypeKind::Opaque(_)
            | TypeKind::Array(_)
            | TypeKind::Map(..)
            | TypeKind::Option(_)
            | TypeKind::Result(..)
            | TypeKind::Callable(_)
            | TypeKind::Buffer(_)
            | TypeKind::MlxArray(_)
            | TypeKind::RawPtr(_)
            | TypeKind::SharedArray(..)
            | TypeKind::LocalArray(..)
            | TypeKind::Ref(..) => self.address,
        }
    }

    /// The types of the leaves of a type in lowered code.
    fn low_types(&mut self, ty: TypeId) -> Vec<TypeId> {
        let leaves = self.leaves(ty);
        leaves.iter().map(|leaf| self.low(leaf.ty)).collect()
    }

    fn empty_fn(&self, id: FnId) -> MpirFn {
        let f = self.m.func(id);
        MpirFn::new(f.sid.clone(), f.name.clone(), f.ret_ty, f.domain)
    }

    /// A lowered function named after another, with a number that makes the name its own.
    fn new_thunk(&self, f: FnId, what: &str, number: usize) -> MpirFn {
        let name = format!("{}.{what}{number}", self.m.func(f).name);
        let sid = Sid::new(SidKind::Function, &name);
        MpirFn::new(sid, name, fixed::UNIT, Domain::LowHost)
    }

    /// Adds a parameter for each leaf of `ty`.
    fn add_params(&mut self, f: &mut MpirFn, name: &str, ty: TypeId, span: Span) -> Vec<Value> {
        let low = self.low_types(ty);
        let is_aggregate = self.types().is_aggregate(ty);
        let add = |(n, &ty): (usize, &TypeId)| match is_aggregate {
            true => f.add_param(format!("{name}.{n}"), ty, span),
            false => f.add_param(name, ty, span),
        };
        low.iter().enumerate().map(add).collect()
    }
}

/// One function on its way.
struct FnLowering<'f, 'l, 'a> {
    l: &'l mut Lowering<'a>,
    old: &'f MpirFn,
    b: Builder<'f>,
    /// The leaves of each value of the old function, by its id.
    values: Vec<Option<Rc<[Value]>>>,
    slots: Slots,
    /// See [`FnLowering::empty_array`].
    empty_array: Option<Value>,
    /// The two halves of moves, each with the other: an `mp_rt_handle_clone` that gives the handle
    /// itself, and the release of the other handle that is none.
    moves: FxHashMap<Inst, Inst>,
    /// Where the values of maps lie that views of the old function show.
    map_places: FxHashMap<Value, Value>,
    /// See [`maps::replaced_values`].
    replaced_values: FxHashMap<Inst, Value>,
    /// See [`maps::repeated_lookups`].
    repeated_lookups: FxHashMap<Inst, Inst>,
    /// Where the entries lie that instructions of the old function found, or null.
    entries: FxHashMap<Inst, Value>,
    /// The lengths of characters whose codes were found in place.
    code_lengths: FxHashMap<Value, Value>,
    texts: KnownTexts,
    /// Who uses what in the old function, when somebody has asked for it.
    uses: Option<Uses>,
    convention: Rc<Convention>,
    /// Where a result goes that is stored.
    result_address: Option<Value>,
    /// Source place of the old instruction.
    span: Span,
    /// Whether an instruction of the old block does not come back.
    never: bool,
}

fn lower_fn(l: &mut Lowering<'_>, id: FnId, old: &MpirFn) -> MpirFn {
    let mut new = MpirFn::new(old.sid.clone(), old.name.clone(), old.ret_ty, Domain::LowHost);
    new.is_async = old.is_async;
    new.span = old.span;
    let convention = l.conventions[id.index()].clone();
    let result_address = l.set_head(&mut new, &convention);
    let mut values = vec![None; old.locals.len()];
    for (n, &(v, ty)) in old.params.iter().enumerate() {
        let (name, span) = (&old.param_names[n], old.param_spans[n]);
        let ty = convention.exchanged(n).unwrap_or(ty);
        values[v.index()] = Some(Rc::from(l.add_params(&mut new, name, ty, span)));
    }
    let b = Builder::new(&mut new);
    let slots = Slots::new(b.current());
    let mut f = FnLowering {
        l,
        old,
        slots,
        empty_array: None,
        moves: moves(old),
        convention,
        map_places: FxHashMap::default(),
        replaced_values: maps::replaced_values(old),
        repeated_lookups: maps::repeated_lookups(old),
        entries: FxHashMap::default(),
        code_lengths: FxHashMap::default(),
        texts: KnownTexts::new(old),
        uses: None,
        result_address,
        b,
        values,
        span: old.span,
        never: false,
    };
    f.receive();
    f.learn_parameters();
    f.body();
    f.b.finish();
    new
}

/// Finds clones that are moves: of a handle that is released right behind, and of a part that is
/// looked at and whose place null then takes. The count that the clone adds is the one that goes.
fn moves(f: &MpirFn) -> FxHashMap<Inst, Inst> {
    let is_clone = |i: Inst| ownership::is_clone(f, i);
    let mut moves = FxHashMap::default();
    if !f.blocks.iter().flat_map(|b| &b.insts).any(|&i| is_clone(i)) {
        return moves;
    }
    let uses = Uses::new(f);
    for block in &f.blocks {
        for (n, &clone) in block.insts.iter().enumerate().filter(|(_, i)| is_clone(**i)) {
            let behind = &block.insts[n + 1..];
            let mut releases = behind.iter().take_while(|&&i| f.inst(i).op == Op::Release);
            let end = match releases.find(|&&i| f.args(i) == f.args(clone)) {
                Some(&release) => Some(release),
                None => {
                    let takes = |&store: &Inst| ownership::taken_out(f, &uses, clone, store);
                    behind.first().copied().filter(|store| takes(store).is_some())
                }
            };
            if let Some(end) = end {
                moves.extend([(clone, end), (end, clone)]);
            }
        }
    }
    moves
}

impl FnLowering<'_, '_, '_> {
    /// Blocks in reverse postorder, so that definitions come before their uses. A phi is a variable
    /// for each leaf, which the predecessors write; the builder makes phis of them again.
    fn body(&mut self) {
        let old = self.old;
        let cfg = Cfg::new(old);
        let mut blocks = vec![Block(0); old.blocks.len()];
        let mut phis: FxHashMap<Inst, Vec<Variable>> = FxHashMap::default();
        // The phis that read a value at the end of a block.
        let mut readers: Vec<Vec<(Inst, Value)>> = vec![Vec::new(); old.blocks.len()];
        for &b in cfg.rpo() {
            blocks[b.index()] = self.b.create_block();
            for i in old.phis(b) {
                let low = self.l.low_types(old.inst(i).ty);
                phis.insert(i, low.into_iter().map(|ty| self.b.declare(ty)).collect());
                old.phi_arms(i).for_each(|(pred, v)| readers[pred.index()].push((i, v)));
            }
        }
        for &b in cfg.rpo() {
            self.b.switch_to(blocks[b.index()]);
            self.never = false;
            for &i in &old.block(b).insts {
                self.set_span(old.inst(i).span);
                self.slots.reuse();
                match phis.get(&i) {
                    Some(variables) => {
                        let read = variables.iter().map(|&var| self.b.read(var)).collect();
                        self.define(i, read);
                    }
                    None => self.inst(i),
                }
            }
            for &(phi, v) in &readers[b.index()] {
                let leaves = self.get(v);
                for (&var, &leaf) in phis[&phi].iter().zip(leaves.iter()) {
                    self.b.write(var, leaf);
                }
            }
            self.set_span(old.block(b).term_span);
            self.slots.reuse();
            self.terminator(&old.block(b).term, &blocks);
        }
        // The entry holds the stack slots, which are known now.
        self.b.switch_to(self.slots.entry());
        self.b.at(old.span);
        self.b.br(blocks[0]);
    }

    fn set_span(&mut self, span: Span) {
        self.span = span;
        self.b.at(span);
    }

    fn terminator(&mut self, term: &Terminator, blocks: &[Block]) {
        match term {
            Terminator::Ret(v) => {
                let leaves = v.map(|v| self.get(v));
                self.return_leaves(leaves);
            }
            Terminator::Br(t) => self.b.br(blocks[t.index()]),
            Terminator::Cbr { cond, then, else_ } => {
                let cond = self.one(*cond);
                self.b.cbr(cond, blocks[then.index()], blocks[else_.index()]);
            }
            Terminator::Switch { value, cases, default } => {
                let value = self.one(*value);
                let cases = cases.iter().map(|&(bits, t)| (bits, blocks[t.index()])).collect();
                self.b.switch(value, cases, blocks[default.index()]);
            }
            Terminator::Unreachable if self.never => self.b.unreachable(),
            Terminator::Unreachable => self.panic(PanicKind::Unreachable, None),
        }
    }

    // ----- values -----

    /// The type of a value of the old function.
    fn ty(&self, v: Value) -> TypeId {
        self.old.ty(v)
    }

    /// The leaves of a value of the old function.
    fn get(&mut self, v: Value) -> Rc<[Value]> {
        if let Some(leaves) = &self.values[v.index()] {
            return leaves.clone();
        }
        let leaves: Rc<[Value]> = match self.old.as_const(v) {
            Some(c) => {
                let ty = self.ty(v);
                self.constant_leaves(ty, c).into()
            }
            None => unreachable!("{v:?} is defined before its uses"),
        };
        self.values[v.index()] = Some(leaves.clone());
        leaves
    }

    fn constant_leaves(&mut self, ty: TypeId, c: Const) -> Vec<Value> {
        let low = self.l.low_types(ty);
        let f = self.b.func();
        match c {
            Const::Unit => Vec::new(),
            Const::Zero => low.into_iter().map(|ty| f.zero(ty)).collect(),
            Const::Bits(_) | Const::Str(_) => low.into_iter().map(|ty| f.constant(ty, c)).collect(),
        }
    }

    /// The only leaf of a value of the old function.
    fn one(&mut self, v: Value) -> Value {
        self.get(v)[0]
    }

    /// The leaves of an instruction's result.
    fn define(&mut self, i: Inst, leaves: Vec<Value>) {
        if let Some(v) = self.old.inst(i).result() {
            self.values[v.index()] = Some(leaves.into());
            self.learn_text(v);
        }
    }

    /// An `i64` constant.
    fn i64(&mut self, v: i64) -> Value {
        self.b.const_bits(fixed::I64, v as u64)
    }

    /// An `i32` constant.
    fn i32(&mut self, v: i32) -> Value {
        self.b.const_bits(fixed::I32, v as u32 as u64)
    }

    /// The zeros of the leaves of a type.
    fn zeros(&mut self, ty: TypeId) -> Vec<Value> {
        self.constant_leaves(ty, Const::Zero)
    }

    /// Variables that hold these leaves.
    fn variables(&mut self, leaves: &[Value]) -> Vec<Variable> {
        let hold = |&leaf: &Value| {
            let var = self.b.declare(self.b.ty(leaf));
            self.b.write(var, leaf);
            var
        };
        leaves.iter().map(hold).collect()
    }

    // ----- runtime calls and panics -----

    /// A call of a runtime function without result.
    fn rt(&mut self, rt: RtFn, args: &[Value]) {
        debug_assert!(matches!(rt.ret(), AbiReturn::Void | AbiReturn::Never));
        self.b.effect(Op::RtRaw, args, rt as u64);
        self.never |= rt.ret() == AbiReturn::Never;
    }

    /// A call of a runtime function that gives a value of a lowered type.
    fn rt_value(&mut self, rt: RtFn, ty: TypeId, args: &[Value]) -> Value {
        self.b.value(Op::RtRaw, ty, args, rt as u64)
    }

    /// Ends the current block with a panic that shows two numbers.
    fn panic(&mut self, kind: PanicKind, shown: Option<(Value, Value)>) {
        let place = match (self.l.place)(self.span) {
            Some(text) => {
                let text = self.l.m.intern_str(&text);
                self.b.func().constant(self.l.address, Const::Str(text))
            }
            None => self.b.func().zero(self.l.address),
        };
        self.panic_at(kind, place, shown);
    }

    /// The same, with a place that is given as a C string.
    fn panic_at(&mut self, kind: PanicKind, place: Value, shown: Option<(Value, Value)>) {
        let zero = self.i64(0);
        let (a, b) = shown.unwrap_or((zero, zero));
        let kind = self.i32(kind as i32);
        self.b.effect(Op::RtRaw, &[kind, place, a, b], RtFn::PanicBuiltin as u64);
        self.b.unreachable();
    }

    /// Goes on only when `holds`.
    fn require(&mut self, holds: Value, kind: PanicKind, shown: Option<(Value, Value)>) {
        let (go_on, fail) = (self.b.create_block(), self.b.create_block());
        self.b.cbr(holds, go_on, fail);
        self.b.seal(go_on);
        self.b.seal(fail);
        self.b.switch_to(fail);
        self.panic(kind, shown);
        self.b.switch_to(go_on);
    }
}
