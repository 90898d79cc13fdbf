//! From a body as written to the tables of [`MpirFn`].

use super::Parser;
use super::function::{Body, PendingTerm};
use super::inst::Operand;
use crate::{Block, Inst, MpirFn, Op, Terminator, Value};

impl<'a> Parser<'a> {
    /// Fills `f`, which has its parameters. Values are numbered as [`MpirFn::compact`] does:
    /// parameters, results in order of appearance, constants in order of use.
    pub(super) fn resolve(&mut self, f: &mut MpirFn, body: &Body<'a>) {
        if !self.names_are_defined(body) {
            return;
        }
        let mut blocks = vec![Block(0); body.labels.len()];
        for block in &body.blocks {
            blocks[block.label.0 as usize] = f.add_block();
        }
        let mut values = vec![Value(0); body.values.len()];
        for (&name, &(v, _)) in body.params.iter().zip(&f.params) {
            values[name.0 as usize] = v;
        }
        let first = f.num_insts();
        for inst in &body.insts {
            let i = match inst.op {
                Op::Phi => f.make_phi(inst.ty, &[], inst.span),
                op => f.make_inst(op, inst.flags, inst.ty, &[], inst.imm, inst.span),
            };
            if let (Some(name), Some(v)) = (inst.result, f.inst(i).result()) {
                values[name.0 as usize] = v;
            }
        }
        let value = |f: &mut MpirFn, operand: Operand| match operand {
            Operand::Name(name) => values[name.0 as usize],
            Operand::Const(ty, c) => f.constant(ty, c),
        };
        let mut args = Vec::new();
        for (n, block) in body.blocks.iter().enumerate() {
            for at in block.insts.clone() {
                let inst = &body.insts[at];
                let i = Inst::new(first + at);
                args.clear();
                for &operand in &body.operands[inst.operands.clone()] {
                    args.push(value(f, operand));
                }
                if inst.op == Op::Phi {
                    let labels = body.arm_labels[inst.arm_labels.clone()].iter();
                    let preds = labels.map(|label| blocks[label.0 as usize]);
                    let arms: Vec<(Block, Value)> = preds.zip(args.iter().copied()).collect();
                    f.set_phi_arms(i, &arms);
                } else {
                    f.rewrite(i, inst.op, &args, inst.imm);
                }
                f.blocks[n].insts.push(i);
            }
            let target = |label: super::function::LabelId| blocks[label.0 as usize];
            f.blocks[n].term = match &block.term {
                PendingTerm::Ret(v) => Terminator::Ret(v.map(|v| value(f, v))),
                PendingTerm::Br(b) => Terminator::Br(target(*b)),
                PendingTerm::Cbr(cond, then, else_) => Terminator::Cbr {
                    cond: value(f, *cond),
                    then: target(*then),
                    else_: target(*else_),
                },
                PendingTerm::Switch(v, cases, default) => {
                    let value = value(f, *v);
                    let ty = f.ty(value);
                    let bits = |&(tok, label)| (self.case_bits(tok, ty), target(label));
                    let cases = cases.iter().map(bits).collect();
                    Terminator::Switch { value, cases, default: target(*default) }
                }
                PendingTerm::Unreachable => Terminator::Unreachable,
            };
            f.blocks[n].term_span = block.term_span;
        }
    }

    /// Reports names without definition. After other errors it stays silent: what was skipped may
    /// have defined them.
    fn names_are_defined(&mut self, body: &Body<'a>) -> bool {
        if !self.errors.is_empty() {
            return false;
        }
        for value in body.values.iter().filter(|v| !v.defined) {
            let name = self.slice(value.first);
            self.error(value.first, format!("value `{name}` is not defined"));
        }
        for label in body.labels.iter().filter(|l| !l.defined) {
            let name = self.slice(label.first);
            self.error(label.first, format!("there is no block `{name}`"));
        }
        self.errors.is_empty()
    }
}
