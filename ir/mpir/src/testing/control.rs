//! Sequences, branches, loops, early returns.

use super::kernel::Generator;
use crate::{Block, Op, Terminator, Value};
use magpie_diag::Span;
use magpie_types::{PrimType, TypeId, fixed};

impl Generator<'_> {
    /// Some statements, of about `size` instructions.
    pub(super) fn statements(&mut self, depth: usize, size: usize) {
        let end = self.f.num_insts() + size;
        // Some attempts come to nothing.
        for _ in 0..4 * size {
            let left = end.saturating_sub(self.f.num_insts());
            if left == 0 {
                break;
            }
            let control = self.config.control_flow && depth > 0 && left > 4;
            match self.rng.below(20) {
                0..7 => self.computation(),
                7..11 => self.memory_access(),
                11 if self.config.vectors => self.vector_computation(),
                12 if self.config.structs => self.struct_computation(),
                13 if self.config.shared_memory && self.is_uniform => self.exchange(),
                14 if self.config.local_memory => self.private_array(),
                15 if !self.callees.is_empty() => self.call(),
                16 if self.config.subgroups && self.is_uniform => self.subgroup_operation(),
                17 if control => self.counted_loop(depth - 1, left / 2),
                18 if control => self.branch(depth - 1, left / 2),
                19 if control && self.rng.chance(50) => self.switch(depth - 1, left / 2),
                19 if control && self.rng.chance(20) => self.early_return(),
                _ => self.computation(),
            }
        }
    }

    /// A condition, and whether it is the same for all invocations.
    fn condition(&mut self) -> (Value, bool) {
        let numbers: Vec<Value> = self
            .uniform
            .iter()
            .copied()
            .filter(|&v| PrimType::from_id(self.f.ty(v)).is_some_and(|p| p.is_int()))
            .collect();
        match self.rng.pick(&numbers) {
            Some(x) if self.rng.chance(40) => {
                let p = PrimType::from_id(self.f.ty(x)).unwrap_or(PrimType::U32);
                let y = self.constant(p);
                (self.emit(Op::IcmpUlt, fixed::BOOL, &[x, y]), true)
            }
            _ => (self.scalar(PrimType::Bool), false),
        }
    }

    /// What is known in one arm of a branch is forgotten behind it.
    fn arm<T>(&mut self, block: Block, body: impl FnOnce(&mut Self) -> T) -> (Block, T) {
        let scope = self.open_scope();
        self.current = block;
        let result = body(self);
        self.close_scope(scope);
        (self.current, result)
    }

    /// How much is known now.
    fn open_scope(&self) -> [usize; 3] {
        [self.values.len(), self.uniform.len(), self.places.len()]
    }

    /// Forgets what was learnt since.
    fn close_scope(&mut self, [values, uniform, places]: [usize; 3]) {
        self.values.truncate(values);
        self.uniform.truncate(uniform);
        self.places.truncate(places);
    }

    /// `if cond { then }`: the value of `then` and a constant meet behind it.
    pub(super) fn branch_on(&mut self, cond: Value, then: impl FnOnce(&mut Self) -> Option<Value>) {
        let (from, inside, behind) = (self.current, self.f.add_block(), self.f.add_block());
        self.f.block_mut(from).term = Terminator::Cbr { cond, then: inside, else_: behind };
        let (end, value) = self.arm(inside, then);
        self.f.block_mut(end).term = Terminator::Br(behind);
        self.current = behind;
        if let Some(v) = value {
            let ty = self.f.ty(v);
            let other = self.f.zero(ty);
            self.phi(ty, &[(from, other), (end, v)]);
        }
    }

    fn phi(&mut self, ty: TypeId, arms: &[(Block, Value)]) -> Value {
        let phi = self.f.make_phi(ty, arms, Span::NONE);
        self.f.block_mut(self.current).insts.push(phi);
        let v = self.f.inst(phi).result().unwrap_or(arms[0].1);
        self.values.push(v);
        v
    }

    /// Types of the values that meet at a join.
    fn joined_types(&mut self) -> Vec<TypeId> {
        let mut types: Vec<TypeId> =
            (0..1 + self.rng.below(2)).map(|_| self.random_prim().id()).collect();
        types.extend(self.struct_ty.filter(|_| self.rng.chance(20)));
        types
    }

    fn branch(&mut self, depth: usize, size: usize) {
        let (cond, uniform) = self.condition();
        let types = self.joined_types();
        let (then, else_, behind) = (self.f.add_block(), self.f.add_block(), self.f.add_block());
        self.f.block_mut(self.current).term = Terminator::Cbr { cond, then, else_ };
        let was_uniform = self.is_uniform;
        let mut arms = Vec::new();
        for block in [then, else_] {
            self.is_uniform = was_uniform && uniform;
            let body = |g: &mut Self| {
                // The second arm is empty now and then.
                if block == then || g.rng.chance(60) {
                    g.statements(depth, size / 2);
                }
                types.iter().map(|&ty| g.any_value(ty)).collect::<Vec<Value>>()
            };
            let (end, values) = self.arm(block, body);
            self.f.block_mut(end).term = Terminator::Br(behind);
            arms.push((end, values));
        }
        self.is_uniform = was_uniform && self.still_uniform();
        self.join(behind, &types, &arms);
    }

    /// Early returns divide a workgroup for good.
    fn still_uniform(&self) -> bool {
        !self.returned
    }

    fn join(&mut self, behind: Block, types: &[TypeId], arms: &[(Block, Vec<Value>)]) {
        self.current = behind;
        for (n, &ty) in types.iter().enumerate() {
            let arms: Vec<(Block, Value)> = arms.iter().map(|(b, v)| (*b, v[n])).collect();
            self.phi(ty, &arms);
        }
    }

    fn switch(&mut self, depth: usize, size: usize) {
        let p = [PrimType::U32, PrimType::I32].into_iter().find(|p| self.types.contains(p));
        let p = p.unwrap_or(PrimType::U32);
        let v = self.scalar(p);
        let mask = self.f.const_bits(p.id(), 3);
        let value = self.emit(Op::IAnd, p.id(), &[v, mask]);
        let types = self.joined_types();
        let behind = self.f.add_block();
        let blocks: Vec<Block> = (0..3).map(|_| self.f.add_block()).collect();
        let mut cases = vec![(0, blocks[0]), (1, blocks[1])];
        if self.rng.chance(50) {
            cases.push((3, blocks[0]));
        }
        self.f.block_mut(self.current).term =
            Terminator::Switch { value, cases, default: blocks[2] };
        let was_uniform = self.is_uniform;
        let mut arms = Vec::new();
        for block in blocks {
            self.is_uniform = false;
            let body = |g: &mut Self| {
                g.statements(depth, size / 3);
                types.iter().map(|&ty| g.any_value(ty)).collect::<Vec<Value>>()
            };
            let (end, values) = self.arm(block, body);
            self.f.block_mut(end).term = Terminator::Br(behind);
            arms.push((end, values));
        }
        self.is_uniform = was_uniform && self.still_uniform();
        self.join(behind, &types, &arms);
    }

    /// A loop whose counter goes up to a small number, down to zero, or is halved until it is zero;
    /// with values that go round, sometimes a way out in the middle, and sometimes two ways back.
    fn counted_loop(&mut self, depth: usize, size: usize) {
        let (bound, uniform) = self.bound();
        let goes_up = self.rng.chance(60);
        let zero = self.f.const_u32(0);
        let start = match goes_up {
            true => self.f.const_bits(fixed::U32, self.rng.below(3) as u64),
            false => bound,
        };
        let types = self.joined_types();
        let init: Vec<Value> = types.iter().map(|&ty| self.any_value(ty)).collect();
        let (from, header, body, exit) =
            (self.current, self.f.add_block(), self.f.add_block(), self.f.add_block());
        self.f.block_mut(from).term = Terminator::Br(header);
        let scope = self.open_scope();
        let was_uniform = self.is_uniform;
        self.current = header;
        let counter = self.phi(fixed::U32, &[(from, start)]);
        let carried: Vec<Value> =
            types.iter().zip(&init).map(|(&ty, &v)| self.phi(ty, &[(from, v)])).collect();
        let goes_on = match goes_up {
            true => self.emit(Op::IcmpUlt, fixed::BOOL, &[counter, bound]),
            false => self.emit(Op::IcmpNe, fixed::BOOL, &[counter, zero]),
        };
        self.f.block_mut(header).term = Terminator::Cbr { cond: goes_on, then: body, else_: exit };
        self.current = body;
        self.is_uniform = was_uniform && uniform;
        if self.is_uniform {
            self.uniform.push(counter);
        }
        let together = self.is_uniform;
        self.uniform_loops += together as usize;
        self.statements(depth, size);
        self.uniform_loops -= together as usize;
        // Where no barrier can be, invocations may go different ways.
        let mut exits = vec![(header, carried.clone())];
        if !together && self.rng.chance(40) {
            exits.push(self.side_way(exit, &types));
        }
        let mut rounds = vec![(from, std::iter::once(start).chain(init).collect::<Vec<_>>())];
        if !together && self.rng.chance(30) {
            let next = self.next_count(counter, goes_up);
            let (block, mut values) = self.side_way(header, &types);
            values.insert(0, next);
            rounds.push((block, values));
        }
        let next = self.next_count(counter, goes_up);
        let values = types.iter().map(|&ty| self.any_value(ty));
        let values: Vec<Value> = std::iter::once(next).chain(values).collect();
        rounds.push((self.current, values));
        self.f.block_mut(self.current).term = Terminator::Br(header);
        let phis: Vec<_> = self.f.phis(header).collect();
        for (n, phi) in phis.into_iter().enumerate() {
            let arms: Vec<_> = rounds.iter().map(|(b, values)| (*b, values[n])).collect();
            self.f.set_phi_arms(phi, &arms);
        }
        self.close_scope(scope);
        self.is_uniform = was_uniform && self.still_uniform();
        self.join(exit, &types, &exits);
        // What the header defines is there behind the loop too.
        self.values.push(counter);
        self.values.extend(carried);
    }

    /// The counter of the next round.
    fn next_count(&mut self, counter: Value, goes_up: bool) -> Value {
        let step = self.f.const_bits(fixed::U32, 1 + self.rng.below(3) as u64);
        let one = self.f.const_u32(1);
        match (goes_up, self.rng.chance(50)) {
            (true, _) => self.emit(Op::IAdd, fixed::U32, &[counter, step]),
            (false, true) => self.emit(Op::ISub, fixed::U32, &[counter, one]),
            (false, false) => self.emit(Op::ILshr, fixed::U32, &[counter, one]),
        }
    }

    /// A branch to `target` or on; returns its block and what `target` gets from there.
    fn side_way(&mut self, target: Block, types: &[TypeId]) -> (Block, Vec<Value>) {
        let cond = self.scalar(PrimType::Bool);
        let values = types.iter().map(|&ty| self.any_value(ty)).collect();
        let (from, goes_on) = (self.current, self.f.add_block());
        self.f.block_mut(from).term = Terminator::Cbr { cond, then: target, else_: goes_on };
        self.current = goes_on;
        self.computation();
        (from, values)
    }

    fn bound(&mut self) -> (Value, bool) {
        match self.rng.below(3) {
            0 => (self.f.const_bits(fixed::U32, self.rng.below(6) as u64), true),
            1 => {
                let numbers: Vec<Value> =
                    self.uniform.iter().copied().filter(|&v| self.f.ty(v) == fixed::U32).collect();
                let v = self.rng.pick(&numbers).unwrap_or(self.global_id);
                let mask = self.f.const_u32(7);
                (self.emit(Op::IAnd, fixed::U32, &[v, mask]), v != self.global_id)
            }
            _ => {
                let v = self.scalar(PrimType::U32);
                let mask = self.f.const_u32(3);
                (self.emit(Op::IAnd, fixed::U32, &[v, mask]), false)
            }
        }
    }

    fn early_return(&mut self) {
        if self.f.ret_ty != fixed::UNIT {
            return;
        }
        let (cond, uniform) = self.condition();
        let together = uniform && self.is_uniform;
        // The next round of a loop with barriers needs everyone.
        if self.uniform_loops > 0 && !together {
            return;
        }
        let (out, behind) = (self.f.add_block(), self.f.add_block());
        self.f.block_mut(self.current).term = Terminator::Cbr { cond, then: out, else_: behind };
        self.current = out;
        self.store_results();
        self.f.block_mut(self.current).term = Terminator::Ret(None);
        self.current = behind;
        if !together {
            self.returned = true;
            self.is_uniform = false;
        }
    }

    fn subgroup_operation(&mut self) {
        let prims: Vec<PrimType> = self
            .types
            .iter()
            .copied()
            .filter(|p| matches!(p, PrimType::I32 | PrimType::U32))
            .collect();
        let Some(p) = self.rng.pick(&prims) else { return };
        let v = self.scalar(p);
        let ops = [Op::GpuSubgroupSum, Op::GpuSubgroupMin, Op::GpuSubgroupMax];
        let v = match self.rng.pick(&ops) {
            Some(op) if self.rng.chance(70) => self.emit(op, p.id(), &[v]),
            _ => {
                let lane = self.f.const_u32(1);
                self.emit(Op::GpuSubgroupShuffleXor, p.id(), &[v, lane])
            }
        };
        self.values.push(v);
    }
}
