//! Uses of values that their definition does not dominate.

use super::ssa::At;
use super::variables::Transfers;
use magpie_mpir::analysis::{Cfg, Dominators};
use magpie_mpir::{Block, Inst, MpirFn, Op, Terminator, Value};

/// A place that holds a value.
#[derive(Clone, Copy)]
pub(super) enum Site {
    Operand(Inst, u32),
    Terminator(Block),
    /// A definition of a slot.
    Slot(u32, u32),
}

pub(super) struct Use {
    value: Value,
    pub(super) block: Block,
    pub(super) at: At,
    pub(super) site: Site,
}

/// The uses that their definition does not dominate.
pub(super) struct Escapes {
    pub(super) def_block: Vec<Option<Block>>,
    pub(super) uses: Vec<Use>,
}

impl Escapes {
    pub(super) fn find(f: &MpirFn, cfg: &Cfg, dom: &Dominators, transfers: &Transfers) -> Escapes {
        let mut def_block = vec![None; f.locals.len()];
        for b in f.block_ids() {
            for &i in &f.block(b).insts {
                if let Some(v) = f.inst(i).result() {
                    def_block[v.index()] = Some(b);
                }
            }
        }
        for (b, v) in transfers.slot_reads() {
            def_block[v.index()] = Some(b);
        }
        let mut uses = Vec::new();
        let mut check = |value: Value, block: Block, at: At, site: Site| {
            if let Some(def) = def_block[value.index()]
                && !dom.dominates(def, block)
            {
                uses.push(Use { value, block, at, site });
            }
        };
        for &b in cfg.rpo() {
            for &i in &f.block(b).insts {
                if f.inst(i).op == Op::Phi {
                    for (n, (p, v)) in f.phi_arms(i).enumerate() {
                        check(v, p, At::End, Site::Operand(i, n as u32));
                    }
                } else {
                    for (n, &v) in f.args(i).iter().enumerate() {
                        check(v, b, At::Start, Site::Operand(i, n as u32));
                    }
                }
            }
            match &f.block(b).term {
                Terminator::Ret(Some(v))
                | Terminator::Cbr { cond: v, .. }
                | Terminator::Switch { value: v, .. } => {
                    check(*v, b, At::Start, Site::Terminator(b));
                }
                Terminator::Ret(None) | Terminator::Br(_) | Terminator::Unreachable => {}
            }
        }
        for (slot, defs) in transfers.slot_defs().enumerate() {
            for (n, &(b, v)) in defs.iter().enumerate() {
                check(v, b, At::End, Site::Slot(slot as u32, n as u32));
            }
        }
        uses.sort_by_key(|u| u.value);
        Escapes { def_block, uses }
    }

    pub(super) fn by_value(&self) -> impl Iterator<Item = (Value, &[Use])> {
        self.uses.chunk_by(|a, b| a.value == b.value).map(|uses| (uses[0].value, uses))
    }
}
