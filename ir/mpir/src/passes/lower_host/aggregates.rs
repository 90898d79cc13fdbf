//! Scalars, choice, and values of several leaves.

use super::FnLowering;
use crate::{Inst, Op, Value};
use magpie_types::TypeKind;

impl FnLowering<'_, '_, '_> {
    /// An op on scalars and vectors stays what it is.
    pub(super) fn scalar_op(&mut self, i: Inst) -> Vec<Value> {
        let old = self.old;
        let data = *old.inst(i);
        let args: Vec<Value> = old.args(i).iter().map(|&v| self.one(v)).collect();
        self.b.set_flags(data.flags);
        let result = self.b.inst(data.op, data.ty, &args, data.imm);
        self.b.set_flags(crate::Flags::NONE);
        result.into_iter().collect()
    }

    /// Accesses by raw pointers stay; addresses have one type now.
    pub(super) fn raw_memory(&mut self, i: Inst) -> Vec<Value> {
        let old = self.old;
        let data = *old.inst(i);
        let args: Vec<Value> = old.args(i).iter().map(|&v| self.one(v)).collect();
        let low = self.l.low(data.ty);
        self.b.inst(data.op, low, &args, data.imm).into_iter().collect()
    }

    /// Addresses have one type now; other casts stay.
    pub(super) fn bits_cast(&mut self, i: Inst) -> Vec<Value> {
        let (from, to) = (self.ty(self.old.arg(i, 0)), self.old.inst(i).ty);
        let is_address = |ty| matches!(self.l.types().kind(ty), TypeKind::RawPtr(_));
        if is_address(from) && is_address(to) {
            return self.get(self.old.arg(i, 0)).to_vec();
        }
        let low = self.l.low(to);
        let v = self.one(self.old.arg(i, 0));
        vec![self.b.value(Op::BitsCast, low, &[v], 0)]
    }

    pub(super) fn select(&mut self, i: Inst) -> Vec<Value> {
        let &[cond, a, b] = self.old.args(i) else { unreachable!("select has three operands") };
        let (cond, a, b) = (self.one(cond), self.get(a), self.get(b));
        a.iter().zip(b.iter()).map(|(&a, &b)| self.b.select(cond, a, b)).collect()
    }

    pub(super) fn struct_new(&mut self, i: Inst) -> Vec<Value> {
        let old = self.old;
        old.args(i).iter().flat_map(|&v| self.get(v).to_vec()).collect()
    }

    pub(super) fn struct_get(&mut self, i: Inst) -> Vec<Value> {
        let aggregate = self.old.arg(i, 0);
        let field = self.old.inst(i).imm_lo();
        let (first, count) = self.l.types().member_leaves(self.ty(aggregate), field);
        self.get(aggregate)[first..first + count].to_vec()
    }

    pub(super) fn leaf_get(&mut self, i: Inst) -> Vec<Value> {
        let leaf = self.old.inst(i).imm_lo() as usize;
        vec![self.get(self.old.arg(i, 0))[leaf]]
    }
}
