//! Phis: made when their block is lowered, given their arms when all values exist.

use super::body::{Annotation, Body, PendingPhi};
use super::names::LocalState;
use super::*;
use crate::symbols;
use magpie_mpir::{Block as MpirBlock, Terminator as MpirTerminator, Value as MpirValue};
use magpie_types::TypeKind;

impl Body<'_, '_> {
    /// Makes a phi without arms.
    pub(super) fn phi(&mut self, instr: &Instr, after_others: bool) {
        let Op::Phi { ty: written, arms } = instr.op else { return };
        if after_others {
            self.error(
                Code::MPS0010,
                "a phi stands after another instruction",
                "move it to the start of the block: all phis read their values on the way in",
            );
        }
        let ty = self.phi_type(instr, written);
        let inst = ty.filter(|&ty| ty != fixed::UNIT).map(|ty| {
            let inst = self.f.make_phi(ty, &[], self.span);
            let block = &mut self.f.block_mut(self.block).insts;
            // Phis come first, whatever was written before this one.
            let at = match after_others {
                true => 0,
                false => block.len(),
            };
            block.insert(at, inst);
            inst
        });
        if let Some(result) = instr.result {
            let state = match (ty, inst) {
                (Some(_), Some(inst)) => {
                    self.f.inst(inst).result().map_or(LocalState::Poisoned, LocalState::Value)
                }
                (Some(_), None) => LocalState::Value(self.f.zero(fixed::UNIT)),
                (None, _) => LocalState::Poisoned,
            };
            self.set_local(result.name, instr.range, state);
        }
        let block = self.source;
        self.s.phis.push(PendingPhi { range: instr.range, inst, ty, block, arms });
    }

    /// The type of a phi, written after the word or for its result.
    fn phi_type(&mut self, instr: &Instr, written: Option<TypeUse>) -> Option<TypeId> {
        let annotation = self.annotation(instr);
        let is_ptr = |ty: TypeUse| self.ast[ty.id].path == symbols::PTR;
        if annotation == Annotation::Ptr || written.is_some_and(is_ptr) {
            self.error(
                Code::MPG_CORE_1304,
                "a `ptr` cannot be joined by a phi",
                "use the array where it was made, and join indices instead",
            );
            return None;
        }
        let after_word = match written {
            Some(ty) => Some(self.type_use(ty).ok()?),
            None => None,
        };
        let ty = match (annotation, after_word) {
            (Annotation::Poisoned | Annotation::Ptr, _) => return None,
            (Annotation::Type(result), Some(ty)) if result != ty => {
                let (result, ty) = (self.type_name(result), self.type_name(ty));
                let message = format!("a phi of type `{ty}` is annotated `{result}`");
                self.error(Code::MPT2014, message, "write one type, or leave it out after `phi`");
                return None;
            }
            (Annotation::Type(ty), _) | (Annotation::None, Some(ty)) => ty,
            (Annotation::None, None) => {
                self.error(Code::MPT2014, "the phi has no type", "write `%name: T = phi { … }`");
                return None;
            }
        };
        Some(ty)
    }

    /// Gives every phi its arms.
    pub(super) fn complete_phis(&mut self) {
        let phis = std::mem::take(&mut self.s.phis);
        for phi in &phis {
            self.split_edges(phi);
        }
        for phi in &phis {
            self.complete(phi);
        }
        self.s.phis = phis;
    }

    /// The position among all edges of the edge that each arm is for; reports arms that are for
    /// none, and edges without an arm.
    fn match_arms(&mut self, phi: &PendingPhi, report: bool) -> Option<Vec<u32>> {
        let blocks = self.ast[self.decl.blocks].len();
        let s = &mut self.s;
        s.edge_round += 1;
        let round = s.edge_round;
        if s.edge_cursor.len() < blocks {
            s.edge_cursor.resize(blocks, (0, 0));
        }
        let first = s.first_edge[phi.block as usize];
        let end = s.first_edge[phi.block as usize + 1];
        for at in (first..end).rev() {
            s.edge_cursor[s.edges[at as usize].source as usize] = (round, at);
        }
        let mut matched = Vec::with_capacity(phi.arms.len());
        let ast = self.ast;
        for arm in &ast[phi.arms] {
            let source = self.s.labels.get(arm.label.symbol);
            let found = source.and_then(|source| {
                let (seen, at) = self.s.edge_cursor[source as usize];
                let is_edge =
                    seen == round && at < end && self.s.edges[at as usize].source == source;
                is_edge.then_some((source, at))
            });
            let Some((source, at)) = found else {
                if report {
                    self.report_arm(phi, arm);
                }
                return None;
            };
            self.s.edge_cursor[source as usize] = (round, at + 1);
            matched.push(at);
        }
        if matched.len() < (end - first) as usize {
            if report {
                let missing = (first..end).find(|at| !matched.contains(at));
                self.report_missing_arm(phi, missing.unwrap_or(first));
            }
            return None;
        }
        Some(matched)
    }

    #[cold]
    fn report_arm(&mut self, phi: &PendingPhi, arm: &PhiArm) {
        self.span = self.scope.span(phi.range);
        let label = self.scope.name(arm.label.symbol);
        let block = self.block_label(phi.block);
        let (message, help) = match self.s.labels.get(arm.label.symbol) {
            None => (
                format!("the phi has an arm for `{label}`, which does not exist"),
                "name the blocks that branch here".to_string(),
            ),
            Some(_) => (
                format!("the phi has an arm for `{label}` that no branch to `{block}` needs"),
                format!("give one arm for each block that branches to `{block}`"),
            ),
        };
        let span = self.scope.span(arm.range);
        let error = Diagnostic::new(Code::MPS0010, self.span, message).with_help(help);
        self.cx.report(error.with_secondary(span, "this arm"));
    }

    #[cold]
    fn report_missing_arm(&mut self, phi: &PendingPhi, edge: u32) {
        self.span = self.scope.span(phi.range);
        let source = self.block_label(self.s.edges[edge as usize].source);
        let block = self.block_label(phi.block);
        self.error(
            Code::MPS0010,
            format!("the phi has no arm for `{source}`, which branches to `{block}`"),
            format!("add `[{source}: %value]`"),
        );
    }

    fn block_label(&self, block: u32) -> &str {
        self.scope.name(self.ast[self.decl.blocks][block as usize].label.symbol)
    }

    /// Gives the edges on which a payload is taken out a block of their own.
    fn split_edges(&mut self, phi: &PendingPhi) {
        let ast = self.ast;
        if ast[phi.arms].iter().all(|arm| arm.projection.is_none()) {
            return;
        }
        let Some(matched) = self.match_arms(phi, false) else { return };
        for (arm, at) in ast[phi.arms].iter().zip(matched) {
            let edge = self.s.edges[at as usize];
            let is_shared =
                edge.split == u32::MAX && edge.pred == self.s.last_part[edge.source as usize];
            if arm.projection.is_none() || !is_shared {
                continue;
            }
            let between = self.f.add_block();
            self.s.source_blocks.push(edge.source);
            let target = MpirBlock(edge.target);
            let span = self.f.block(edge.pred).term_span;
            let term = &mut self.f.block_mut(edge.pred).term;
            term.map_targets(|t| if t == target { between } else { t });
            let block = self.f.block_mut(between);
            block.term = MpirTerminator::Br(target);
            block.term_span = span;
            self.s.edges[at as usize].pred = between;
        }
    }

    fn complete(&mut self, phi: &PendingPhi) {
        let Some(matched) = self.match_arms(phi, true) else { return };
        let span = self.scope.span(phi.range);
        let mut arms = std::mem::take(&mut self.s.phi_arms);
        arms.clear();
        let ast = self.ast;
        for (arm, at) in ast[phi.arms].iter().zip(matched) {
            self.span = span;
            let value = self.phi_arm(arm, at, phi.ty);
            if let (Ok(v), Some(_)) = (value, phi.inst) {
                arms.push((self.s.edges[at as usize].pred, v));
            } else if let (Err(Poisoned), Some(ty), Some(_)) = (value, phi.ty, phi.inst) {
                let stand_in = self.f.zero(ty);
                arms.push((self.s.edges[at as usize].pred, stand_in));
            }
        }
        if let Some(inst) = phi.inst {
            self.f.set_phi_arms(inst, &arms);
        }
        self.s.phi_arms = arms;
    }

    fn phi_arm(&mut self, arm: &PhiArm, at: u32, wanted: Option<TypeId>) -> Lower<MpirValue> {
        let pred = self.s.edges[at as usize].pred;
        // A block that splits an edge is not in the graph that dominance was computed for.
        let known = if pred.index() < self.s.cfg.num_blocks() {
            pred
        } else {
            self.s.last_part[self.s.edges[at as usize].source as usize]
        };
        let v = match arm.value {
            Value::Ssa(name) => self.ssa_at(name, known, self.span)?,
            Value::Const(id) => self.constant(id)?,
        };
        let v = match arm.projection {
            None => v,
            Some(projection) => self.projection(arm, v, projection, at)?,
        };
        let Some(wanted) = wanted else { return Err(Poisoned) };
        let found = self.f.ty(v);
        if found != wanted {
            let label = self.scope.name(arm.label.symbol);
            let (found, wanted) = (self.type_name(found), self.type_name(wanted));
            let message =
                format!("the phi has the type `{wanted}`, but its arm for `{label}` is `{found}`");
            let error = Diagnostic::new(Code::MPS0008, self.span, message)
                .with_secondary(self.scope.span(arm.range), "this arm")
                .with_help(format!("give a value of type `{wanted}`"));
            self.cx.report(error);
            return Err(Poisoned);
        }
        Ok(v)
    }

    /// Takes the payload of a result out on an edge.
    fn projection(
        &mut self,
        arm: &PhiArm,
        v: MpirValue,
        projection: Projection,
        at: u32,
    ) -> Lower<MpirValue> {
        let (word, variant) = match projection {
            Projection::Ok => ("ok", 0),
            Projection::Err => ("err", 1),
        };
        let TypeKind::Result(ok, err) = self.kind(self.f.ty(v)) else {
            let found = self.type_name(self.f.ty(v));
            let message = format!("`.{word}` of a value of type `{found}`");
            let help = "only a `TResult` has `.ok` and `.err`";
            return Err(self.error(Code::MPT2015, message, help));
        };
        let ty = if projection == Projection::Ok { ok } else { err };
        if ty == fixed::UNIT {
            return Ok(self.f.zero(fixed::UNIT));
        }
        let edge = self.s.edges[at as usize];
        if edge.split != u32::MAX && projection == Projection::Err {
            let split = self.s.splits[edge.split as usize];
            let is_tried = matches!(arm.value, Value::Ssa(name) if split.tried == Some(name));
            if let (true, Some(payload)) = (is_tried, split.payload) {
                return Ok(payload);
            }
        }
        let span = self.span;
        let block = std::mem::replace(&mut self.block, edge.pred);
        self.span = self.scope.span(arm.range);
        let payload = self.emit_value(MpirOp::EnumPayload, ty, &[v], variant);
        self.block = block;
        self.span = span;
        payload
    }
}
