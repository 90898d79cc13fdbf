//! Blocks, terminators and the arms of phis.

use super::{Check, Fault, Stage, Verifier};
use crate::analysis::Cfg;
use crate::ownership::is_view;
use crate::{Block, Domain, Inst, Op, Terminator, Value, print_type};
use magpie_types::{TypeId, TypeKind, fixed};
use rustc_hash::FxHashSet;

impl Verifier<'_> {
    /// Ids are in range, every instruction stands in one place, phis first. After this the function
    /// can be walked.
    pub(super) fn check_graph(&mut self) {
        let f = self.f;
        if f.blocks.is_empty() {
            self.head_fault("a function has at least one block");
        }
        let mut listed = vec![false; f.num_insts()];
        for b in f.block_ids() {
            let block = f.block(b);
            let mut after_phis = false;
            for &i in &block.insts {
                if i.index() >= listed.len() {
                    self.block_fault(b, Fault::structure(format!("{i:?} does not exist")));
                    continue;
                }
                if std::mem::replace(&mut listed[i.index()], true) {
                    self.inst_fault(b, i, Fault::structure("it stands in two places"));
                    continue;
                }
                let is_phi = f.inst(i).op == Op::Phi;
                if is_phi && after_phis {
                    let message = "phis come before all other instructions of a block";
                    self.inst_fault(b, i, Fault::structure(message));
                }
                after_phis |= !is_phi;
                if let Err(fault) = self.check_names(i) {
                    self.inst_fault(b, i, fault);
                }
            }
            let mut fault = None;
            block.term.for_each_target(|target| match target {
                Block(0) => fault = Some("the first block has no predecessors".to_string()),
                t if t.index() >= f.blocks.len() => fault = Some(format!("{t:?} does not exist")),
                _ => {}
            });
            if let Some(v) = block.term.operand().filter(|v| v.index() >= f.locals.len()) {
                fault = Some(format!("{v:?} does not exist"));
            }
            if let Some(message) = fault {
                self.block_fault(b, Fault::structure(message));
            }
            if self.is_full() {
                return;
            }
        }
    }

    /// Operands and result of an instruction are values of the function.
    fn check_names(&self, i: Inst) -> Check {
        let f = self.f;
        let data = f.inst(i);
        if let Some(v) = f.args(i).iter().find(|v| v.index() >= f.locals.len()) {
            return Err(Fault::structure(format!("{v:?} does not exist")));
        }
        if !self.m.types.contains(data.ty) {
            return Err(Fault::structure(format!("type {} does not exist", data.ty.0)));
        }
        let names_itself = match data.result() {
            None => data.ty == fixed::UNIT,
            Some(v) => f.locals.get(v.index()).is_some_and(|l| {
                l.ty == data.ty && l.def == crate::ValueDef::Inst(i) && l.ty != fixed::UNIT
            }),
        };
        if !names_itself {
            return Err(Fault::structure("its result and its type do not agree"));
        }
        if data.op == Op::Phi
            && let Some((b, _)) = f.phi_arms(i).find(|(b, _)| b.index() >= f.blocks.len())
        {
            return Err(Fault::structure(format!("{b:?} does not exist")));
        }
        Ok(())
    }

    /// Phis, terminators and dominance.
    pub(super) fn check_flow(&mut self) {
        let cfg = Cfg::new(self.f);
        let mut arm_of = vec![u32::MAX; self.f.blocks.len()];
        for b in self.f.block_ids() {
            if self.is_full() {
                return;
            }
            for i in self.f.phis(b).collect::<Vec<_>>() {
                if let Err(fault) = self.check_phi(&cfg, b, i, &mut arm_of) {
                    self.inst_fault(b, i, fault);
                }
            }
            if let Err(fault) = self.check_terminator(&self.f.block(b).term) {
                self.block_fault(b, fault);
            }
        }
        self.check_dominance(&cfg);
    }

    /// `arm_of` holds the last phi that had an arm for a block.
    fn check_phi(&self, cfg: &Cfg, b: Block, i: Inst, arm_of: &mut [u32]) -> Check {
        let f = self.f;
        let ty = f.inst(i).ty;
        self.may_be_merged(ty)?;
        let arms = f.phi_arms(i);
        let count = arms.len();
        for (pred, v) in arms {
            if std::mem::replace(&mut arm_of[pred.index()], i.0) == i.0 {
                return Err(Fault::structure(format!("{pred:?} has two arms")));
            }
            if f.ty(v) != ty {
                let types = &self.m.types;
                let (found, wanted) = (print_type(types, f.ty(v)), print_type(types, ty));
                let message =
                    format!("the arm of {pred:?} has type `{found}`, expected `{wanted}`");
                return Err(Fault::ill_typed(message));
            }
        }
        let preds = cfg.preds(b);
        if let Some(missing) = preds.iter().find(|p| arm_of[p.index()] != i.0) {
            return Err(Fault::structure(format!("predecessor {missing:?} has no arm")));
        }
        if count != preds.len() {
            return Err(Fault::structure(format!(
                "there are {count} arms for {} predecessors",
                preds.len()
            )));
        }
        Ok(())
    }

    /// Whether a phi or a `select` may choose between values of the type.
    pub(super) fn may_be_merged(&self, ty: TypeId) -> Check {
        if ty == fixed::UNIT {
            return Err(Fault::ill_typed("`unit` has one value: there is nothing to choose"));
        }
        let names_memory = self.f.domain == Domain::Device && self.names_device_memory(ty);
        if names_memory && self.stage == Stage::Core {
            return Err(Fault::ill_typed("values that name memory are not merged"));
        }
        if self.f.domain == Domain::Host && is_view(&self.m.types, ty) {
            return Err(Fault::ill_typed("views are not merged"));
        }
        Ok(())
    }

    pub(super) fn names_device_memory(&self, ty: TypeId) -> bool {
        matches!(
            self.m.types.kind(ty),
            TypeKind::Buffer(_) | TypeKind::SharedArray(..) | TypeKind::LocalArray(..)
        )
    }

    fn check_terminator(&self, term: &Terminator) -> Check {
        let name = |ty: TypeId| print_type(&self.m.types, ty);
        let expect = |v: Value, ty: TypeId| {
            let found = self.f.ty(v);
            if found == ty {
                return Ok(());
            }
            let (found, wanted) = (name(found), name(ty));
            Err(Fault::ill_typed(format!("{v:?} has type `{found}`, expected `{wanted}`")))
        };
        let ret_ty = self.f.ret_ty;
        match term {
            Terminator::Ret(None) if ret_ty == fixed::UNIT => Ok(()),
            Terminator::Ret(None) => {
                Err(Fault::ill_typed(format!("`ret` needs a value of type `{}`", name(ret_ty))))
            }
            Terminator::Ret(Some(_)) if ret_ty == fixed::UNIT => {
                Err(Fault::ill_typed("`ret` of a `unit` function has no value"))
            }
            Terminator::Ret(Some(v)) => expect(*v, ret_ty),
            Terminator::Cbr { cond, .. } => expect(*cond, fixed::BOOL),
            Terminator::Switch { value, cases, .. } => {
                let ty = self.f.ty(*value);
                let prim = self.m.types.prim(ty).filter(|p| !p.is_float());
                let Some(prim) = prim.filter(|p| (1..=64).contains(&p.bit_width())) else {
                    let message = format!("`switch` of a value of type `{}`", name(ty));
                    return Err(Fault::ill_typed(message));
                };
                let mut seen = FxHashSet::default();
                for &(bits, _) in cases {
                    if bits & !prim.mask() != 0 {
                        let message = format!("case {bits} does not fit `{}`", prim.name());
                        return Err(Fault::ill_typed(message));
                    }
                    if !seen.insert(bits) {
                        return Err(Fault::structure(format!("case {bits} stands twice")));
                    }
                }
                Ok(())
            }
            Terminator::Br(_) | Terminator::Unreachable => Ok(()),
        }
    }
}
