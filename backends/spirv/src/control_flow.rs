//! Control flow: blocks in the order of the structured tree, with the merge instructions.
//!
//! `structurize` has made the graph itself structured, so every terminator is printed as it is and
//! every phi is an `OpPhi`; the tree only says which blocks head a selection or a loop.

use crate::emitter::{Emit, Emitter};
use crate::types::{Scalar, Shape};
use magpie_gpu::structurize::{Event, StructuredBody};
use magpie_mpir::{Block, Inst, Op, Terminator, Value};
use spirv::{LoopControl, Op as Spv, SelectionControl};

/// Deepest nesting of structured control flow that every consumer must take (universal limits of
/// SPIR-V, section 2.17).
const MAX_NESTING: u32 = 1023;

/// Most cases of an `OpSwitch` that every consumer must take.
const MAX_CASES: usize = 16_383;

/// Where the walk stands.
#[derive(Default)]
struct Walk {
    /// A block whose instructions are written and whose terminator is not.
    open: Option<Block>,
    nesting: u32,
}

impl Emitter<'_> {
    /// Emits every block.
    pub(crate) fn emit_body(&mut self, body: &StructuredBody) -> Emit {
        let mut walk = Walk::default();
        let mut outcome = Ok(());
        body.walk(|event| {
            if outcome.is_ok() {
                outcome = self.step(body, &mut walk, event);
            }
        });
        outcome?;
        self.close(&mut walk)
    }

    fn step(&mut self, body: &StructuredBody, walk: &mut Walk, event: Event<'_>) -> Emit {
        match event {
            Event::Block(block) => {
                self.close(walk)?;
                self.emit_insts(body, block)?;
                walk.open = Some(block);
                Ok(())
            }
            Event::If { merge, .. } | Event::Switch { merge, .. } => {
                self.enter(walk)?;
                let label = self.label(merge);
                let control = SelectionControl::NONE.bits();
                self.body.op(Spv::SelectionMerge, &[label, control]);
                match walk.open.take() {
                    Some(head) => self.emit_selection(head),
                    None => Err(self.broken("a selection without a head")),
                }
            }
            Event::Loop { header, latch, merge } => {
                self.close(walk)?;
                self.enter(walk)?;
                self.emit_insts(body, header)?;
                let labels = [self.label(merge), self.label(latch)];
                let control = LoopControl::NONE.bits();
                self.body.op(Spv::LoopMerge, &[labels[0], labels[1], control]);
                self.emit_terminator(header)
            }
            Event::Continuing { latch } => {
                self.close(walk)?;
                self.emit_insts(body, latch)?;
                walk.open = Some(latch);
                Ok(())
            }
            Event::EndIf | Event::EndSwitch | Event::EndLoop => {
                walk.nesting -= 1;
                self.close(walk)
            }
            Event::Else
            | Event::Case { .. }
            | Event::Default
            | Event::EndCase
            | Event::Break
            | Event::Continue
            | Event::Return
            | Event::Unreachable => self.close(walk),
        }
    }

    fn enter(&self, walk: &mut Walk) -> Emit {
        walk.nesting += 1;
        if walk.nesting <= MAX_NESTING {
            return Ok(());
        }
        let message =
            format!("control flow of kernel `{}` is nested deeper than {MAX_NESTING}", self.f.name);
        Err(self.refuse_kernel(message, "move inner parts to a kernel of their own"))
    }

    /// Writes the terminator of the open block.
    fn close(&mut self, walk: &mut Walk) -> Emit {
        match walk.open.take() {
            Some(block) => self.emit_terminator(block),
            None => Ok(()),
        }
    }

    fn emit_insts(&mut self, body: &StructuredBody, block: Block) -> Emit {
        let label = self.label(block);
        if block.index() == 0 {
            // Its head is the variables and the prologue; see `Emitter::module`.
            self.here = label;
        } else {
            self.begin_block(label);
        }
        let f = self.f;
        for &i in &f.block(block).insts {
            self.note_line(f.inst(i).span);
            match f.inst(i).op {
                Op::Phi => self.emit_phi(body, i)?,
                _ => self.emit_inst(i)?,
            }
        }
        if let Some(exit) = self.split_exit(block) {
            self.body.op(Spv::Branch, &[exit]);
            self.begin_block(exit);
        }
        Ok(())
    }

    fn emit_phi(&mut self, body: &StructuredBody, i: Inst) -> Emit {
        let (shape, _) = self.shape_of_result(i)?;
        let ty = self.b.shape(shape);
        let id = self.result(i);
        let f = self.f;
        let mut words = Vec::with_capacity(2 + 2 * f.args(i).len());
        words.extend([ty, id]);
        for (pred, v) in f.phi_arms(i) {
            let value = match body.is_undefined(i, pred) {
                true => self.b.undefined(ty),
                false => self.value(v)?,
            };
            words.extend([value, self.exit_label(pred)]);
        }
        self.body.op_iter(Spv::Phi, words);
        Ok(())
    }

    /// The end of a block that heads no selection.
    fn emit_terminator(&mut self, block: Block) -> Emit {
        match self.f.block(block).term {
            Terminator::Ret(_) => self.body.op(Spv::Return, &[]),
            Terminator::Br(target) => {
                let label = self.label(target);
                self.body.op(Spv::Branch, &[label]);
            }
            Terminator::Unreachable => self.body.op(Spv::Unreachable, &[]),
            Terminator::Cbr { .. } | Terminator::Switch { .. } => {
                return Err(self.broken("a branch outside structured control flow"));
            }
        }
        Ok(())
    }

    /// The end of a block that heads an if or a switch, behind the merge instruction.
    fn emit_selection(&mut self, block: Block) -> Emit {
        match &self.f.block(block).term {
            Terminator::Cbr { cond, then, else_ } => {
                let words = [self.value(*cond)?, self.label(*then), self.label(*else_)];
                self.body.op(Spv::BranchConditional, &words);
                Ok(())
            }
            Terminator::Switch { value, cases, default } => {
                self.emit_switch(*value, cases, *default)
            }
            Terminator::Ret(_) | Terminator::Br(_) | Terminator::Unreachable => {
                Err(self.broken("a selection that does not branch"))
            }
        }
    }

    fn emit_switch(&mut self, value: Value, cases: &[(u64, Block)], default: Block) -> Emit {
        if cases.len() > MAX_CASES {
            let message = format!(
                "a switch of kernel `{}` has {} cases; SPIR-V allows {MAX_CASES}",
                self.f.name,
                cases.len()
            );
            return Err(self.refuse_kernel(message, "split the switch"));
        }
        let (shape, prim) = self.shape_of_value(value)?;
        let mut selector = self.value(value)?;
        // Selectors below 32 bits are widened: drivers know 32 and 64.
        let wide = shape.scalar == Scalar::Int64;
        match shape.scalar {
            Scalar::Int8 | Scalar::Int16 => {
                let ty = self.b.u32_ty();
                selector = self.emit(Spv::UConvert, ty, &[selector]);
            }
            Scalar::Bool => selector = self.bool_to_number(selector, Shape::U32),
            Scalar::Int32 | Scalar::Int64 => {}
            Scalar::Float16 | Scalar::Float32 | Scalar::Float64 => {
                return Err(self.broken(&format!("a switch over {}", prim.name())));
            }
        }
        let mut words = Vec::with_capacity(2 + 3 * cases.len());
        words.extend([selector, self.label(default)]);
        for &(bits, block) in cases {
            words.push(bits as u32);
            if wide {
                words.push((bits >> 32) as u32);
            }
            words.push(self.label(block));
        }
        self.body.op_iter(Spv::Switch, words);
        Ok(())
    }
}
