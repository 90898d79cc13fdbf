//! The loop on vectors:
//!
//! ```text
//! before: what is the same in all rounds, in all components
//! main:   i = phi [before: first], [main: i + lanes]
//!         total = phi [before: 0], [main: total + x]
//!         x = load …
//!         if i + lanes < end: main else after
//! after:  the components of total put together
//! ```

use super::append;
use super::choice::Choice;
use super::enter::{Entrance, enter, join};
use super::find::Counted;
use super::plan::Plan;
use super::reduction::{Reduction, Step};
use crate::{Block, Flags, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind, fixed};
use rustc_hash::FxHashMap;

/// Makes the loop; gives back its size.
pub(super) fn build(f: &mut MpirFn, types: &mut TypeCtx, counted: &Counted, plan: &Plan) -> usize {
    let before_size = f.num_insts();
    let c = &counted.candidate;
    let span = f.block(c.header).term_span;
    let mut entrance = enter(f, counted, u64::from(plan.lanes));
    entrance.may_enter = plan.accesses.are_apart(f, &entrance, counted.first);
    let [before, main, after] = [(); 3].map(|()| {
        let b = f.add_block();
        f.block_mut(b).term_span = span;
        b
    });
    let phi = f.make_phi(fixed::I64, &[], span);
    f.block_mut(main).insts.push(phi);
    let counter = f.inst(phi).result().unwrap_or(counted.counter);
    let values = FxHashMap::default();
    let addresses = Vec::new();
    let mut body = Body { f, types, counted, plan, before, main, counter, values, addresses };
    let totals = body.start_reductions();
    body.addresses();
    body.instructions();

    let lanes = body.f.const_bits(fixed::I64, u64::from(plan.lanes));
    let next = append(body.f, main, Op::IAdd, fixed::I64, &[counter, lanes]);
    let more = append(body.f, main, Op::IcmpSlt, fixed::BOOL, &[next, entrance.end]);
    let totals = body.end_reductions(totals, after);
    f.set_phi_arms(phi, &[(before, counted.first), (main, next)]);
    f.block_mut(before).term = Terminator::Br(main);
    f.block_mut(main).term = Terminator::Cbr { cond: more, then: main, else_: after };
    f.block_mut(after).term = Terminator::Br(c.header);
    let left = left(f, counted, &entrance, plan, &totals);
    join(f, counted, &entrance, before, (after, &left));
    f.num_insts() - before_size
}

/// What the phis of the loop itself begin with behind the loop on vectors.
fn left(
    f: &MpirFn,
    counted: &Counted,
    entrance: &Entrance,
    plan: &Plan,
    totals: &[Value],
) -> Vec<Value> {
    let total = |phi: Inst| {
        let n = plan.reductions.iter().position(|r| r.phi == phi);
        n.map_or(entrance.end, |n| totals[n])
    };
    f.phis(counted.candidate.header).map(total).collect()
}

struct Body<'a> {
    f: &'a mut MpirFn,
    types: &'a mut TypeCtx,
    counted: &'a Counted,
    plan: &'a Plan,
    before: Block,
    main: Block,
    counter: Value,
    /// The vector for a value of the loop.
    values: FxHashMap<Value, Value>,
    /// By group of accesses.
    addresses: Vec<Value>,
}

impl Body<'_> {
    fn vector_type(&mut self, of: TypeId) -> TypeId {
        let prim = PrimType::from_id(of).unwrap_or(PrimType::I64);
        self.types.intern(TypeKind::Vec(prim, self.plan.lanes))
    }

    /// Appends an operation to the loop.
    fn emit(&mut self, op: Op, flags: Flags, ty: TypeId, args: &[Value], like: Inst) -> Value {
        let ty = self.vector_type(ty);
        let span = self.f.inst(like).span;
        self.f.append(self.main, op, flags, ty, args, 0, span).unwrap_or(args[0])
    }

    fn splat(&mut self, v: Value) -> Value {
        let ty = self.vector_type(self.f.ty(v));
        append(self.f, self.before, Op::VecSplat, ty, &[v])
    }

    /// The vector for a value.
    fn vector(&mut self, v: Value) -> Value {
        if let Some(&vector) = self.values.get(&v) {
            return vector;
        }
        let vector = match v == self.counted.counter {
            true => self.counters(),
            // Whatever the loop makes was met before.
            false => self.splat(v),
        };
        self.values.insert(v, vector);
        vector
    }

    /// The counters of the rounds.
    fn counters(&mut self) -> Value {
        let ty = self.vector_type(fixed::I64);
        let steps: Vec<Value> =
            (0..u64::from(self.plan.lanes)).map(|n| self.f.const_bits(fixed::I64, n)).collect();
        let steps = append(self.f, self.before, Op::VecNew, ty, &steps);
        let first = append(self.f, self.main, Op::VecSplat, ty, &[self.counter]);
        append(self.f, self.main, Op::IAdd, ty, &[first, steps])
    }

    /// The phis of the loop on vectors with what they begin with.
    fn start_reductions(&mut self) -> Vec<Inst> {
        let plan = self.plan;
        let start = |r: &Reduction| {
            let ty = self.vector_type(r.ty);
            let neutral = self.f.const_bits(r.ty, u64::from(r.op == Op::IMul));
            let begin = self.first_of(r).filter(|_| r.is_idempotent()).unwrap_or(neutral);
            let begin = self.splat(begin);
            let phi = self.f.make_phi(ty, &[(self.before, begin)], self.f.inst(r.phi).span);
            self.f.block_mut(self.main).insts.push(phi);
            if let Some((of, vector)) = self.f.inst(r.phi).result().zip(self.f.inst(phi).result()) {
                self.values.insert(of, vector);
            }
            phi
        };
        plan.reductions.iter().map(start).collect()
    }

    fn first_of(&self, r: &Reduction) -> Option<Value> {
        self.f.phi_value(r.phi, self.counted.candidate.preheader)
    }

    fn addresses(&mut self) {
        for group in &self.plan.accesses.groups {
            let base = group.address.base(self.f, self.before);
            let address = group.address.at(self.f, self.main, base, self.counter);
            self.addresses.push(address);
        }
    }

    fn instructions(&mut self) {
        let plan = self.plan;
        let mut steps: Vec<(Inst, &Reduction, Step)> = Vec::new();
        for r in &plan.reductions {
            steps.extend(r.steps.iter().map(|&(i, step)| (i, r, step)));
        }
        for &(i, choice) in &plan.order {
            self.instruction(i, choice);
        }
        // They read what the others have made, and nothing reads them but themselves.
        for (i, r, step) in steps {
            self.step(i, r, step);
        }
    }

    fn instruction(&mut self, i: Inst, choice: Option<Choice>) {
        let inst = *self.f.inst(i);
        if let Some(access) = self.plan.accesses.accesses.iter().find(|a| a.inst == i) {
            let (address, offset) = (self.addresses[access.group], access.offset as u64);
            let is_one_place = self.plan.accesses.groups[access.group].address.step == 0;
            let span = inst.span;
            match inst.result() {
                None => {
                    let mut value = self.vector(self.f.arg(i, 1));
                    if !access.conditions.is_empty() {
                        // The other rounds store what is there.
                        let ty = self.f.ty(value);
                        let args = [address];
                        let load = self.f.append(
                            self.main,
                            Op::MemLoad,
                            inst.flags,
                            ty,
                            &args,
                            offset,
                            span,
                        );
                        let there = load.unwrap_or(value);
                        for condition in &access.conditions {
                            let cond = self.vector(condition.value);
                            let (then, else_) =
                                if condition.is { (value, there) } else { (there, value) };
                            let args = [cond, then, else_];
                            value = append(self.f, self.main, Op::Select, ty, &args);
                        }
                    }
                    let args = [address, value];
                    self.f.append(self.main, inst.op, inst.flags, inst.ty, &args, offset, span);
                }
                Some(v) if is_one_place => {
                    let args = [address];
                    let load = self.f.append(
                        self.before,
                        inst.op,
                        inst.flags,
                        inst.ty,
                        &args,
                        offset,
                        span,
                    );
                    let vector = self.splat(load.unwrap_or(v));
                    self.values.insert(v, vector);
                }
                Some(v) => {
                    let ty = self.vector_type(inst.ty);
                    let args = [address];
                    let load =
                        self.f.append(self.main, inst.op, inst.flags, ty, &args, offset, span);
                    self.values.insert(v, load.unwrap_or(v));
                }
            }
            return;
        }
        let Some(v) = inst.result() else { return };
        let args = match choice {
            Some(Choice { cond, then, else_ }) => vec![cond, then, else_],
            None => self.f.args(i).to_vec(),
        };
        let op = if inst.op == Op::Phi { Op::Select } else { inst.op };
        let args: Vec<Value> = args.into_iter().map(|v| self.vector(v)).collect();
        let vector = self.emit(op, inst.flags, inst.ty, &args, i);
        self.values.insert(v, vector);
    }

    fn step(&mut self, i: Inst, r: &Reduction, step: Step) {
        let Some(v) = self.f.inst(i).result() else { return };
        let vector = match step {
            Step::Combine { carried, other } => {
                let args = [self.vector(carried), self.vector(other)];
                self.emit(r.op, Flags::NONE, r.ty, &args, i)
            }
            Step::Subtract { carried, other } => {
                let args = [self.vector(carried), self.vector(other)];
                self.emit(Op::ISub, Flags::NONE, r.ty, &args, i)
            }
            Step::Choose(Choice { cond, then, else_ }) => match r.addition(self.f, then, else_) {
                // Nothing is added in the other rounds.
                Some((op, other)) => {
                    let other = self.vector(other);
                    let nothing = self.f.zero(self.f.ty(other));
                    let args = [self.vector(cond), other, nothing];
                    let other = self.emit(Op::Select, Flags::NONE, r.ty, &args, i);
                    let args = [self.vector(else_), other];
                    self.emit(op, Flags::NONE, r.ty, &args, i)
                }
                None => {
                    let args = [cond, then, else_].map(|v| self.vector(v));
                    self.emit(Op::Select, Flags::NONE, r.ty, &args, i)
                }
            },
        };
        self.values.insert(v, vector);
    }

    /// Closes the phis, and puts the components together behind the loop.
    fn end_reductions(&mut self, phis: Vec<Inst>, after: Block) -> Vec<Value> {
        let plan = self.plan;
        let mut totals = Vec::with_capacity(phis.len());
        for (r, phi) in plan.reductions.iter().zip(phis) {
            let last = self.vector(r.last);
            let mut arms: Vec<_> = self.f.phi_arms(phi).collect();
            arms.push((self.main, last));
            self.f.set_phi_arms(phi, &arms);
            let span = self.f.inst(r.phi).span;
            let lane =
                |n| self.f.append(after, Op::VecExtract, Flags::NONE, r.ty, &[last], n, span);
            let lanes: Vec<Value> = (0..u64::from(plan.lanes)).filter_map(lane).collect();
            let first = self.first_of(r).filter(|_| !r.is_idempotent());
            let parts = first.into_iter().chain(lanes);
            let total = parts.reduce(|x, y| append(self.f, after, r.op, r.ty, &[x, y]));
            totals.push(total.unwrap_or(last));
        }
        totals
    }
}
