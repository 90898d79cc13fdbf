//! [`Parts`]: values that are taken apart, and the values of their parts.

use super::context::refill;
use crate::{Block, Inst, MpirFn, Value};
use magpie_types::TypeId;

const NONE: u32 = u32::MAX;

/// For each value that is taken apart its parts, in one list; and the phis of parts, whose arms
/// are made when all parts are known.
#[derive(Clone, Default, Debug)]
pub(super) struct Parts {
    first: Vec<u32>,
    pool: Vec<Value>,
    phis: Vec<(Inst, usize)>,
}

impl Parts {
    pub(super) fn start(&mut self, f: &MpirFn) {
        refill(&mut self.first, f.locals.len(), NONE);
        self.pool.clear();
        self.phis.clear();
    }

    /// The `count` parts of a value, when they were set.
    pub(super) fn get(&self, v: Value, count: usize) -> Option<&[Value]> {
        let first = *self.first.get(v.index()).filter(|&&n| n != NONE)? as usize;
        self.pool.get(first..first + count)
    }

    pub(super) fn set(&mut self, v: Value, parts: impl IntoIterator<Item = Value>) {
        if v.index() >= self.first.len() {
            self.first.resize(v.index() + 1, NONE);
        }
        self.first[v.index()] = self.pool.len() as u32;
        self.pool.extend(parts);
    }

    /// Makes a phi for each part of the phi `whole` and lists them in `out`. Their arms come with
    /// [`Parts::finish_phis`].
    pub(super) fn split_phi(
        &mut self,
        f: &mut MpirFn,
        whole: Inst,
        types: &[TypeId],
        out: &mut Vec<Inst>,
    ) {
        let span = f.inst(whole).span;
        let phis: Vec<Inst> = types.iter().map(|&ty| f.make_phi(ty, &[], span)).collect();
        out.extend_from_slice(&phis);
        if let Some(result) = f.inst(whole).result() {
            self.set(result, phis.iter().filter_map(|&i| f.inst(i).result()));
            self.phis.push((whole, types.len()));
        }
    }

    /// Gives the phis of parts their arms, reading constants with `constant`.
    pub(super) fn finish_phis(
        &mut self,
        f: &mut MpirFn,
        mut constant: impl FnMut(&mut MpirFn, Value, usize) -> Value,
    ) {
        let mut arms: Vec<(Block, Value)> = Vec::new();
        for (whole, count) in std::mem::take(&mut self.phis) {
            let wholes: Vec<(Block, Value)> = f.phi_arms(whole).collect();
            for n in 0..count {
                arms.clear();
                for &(b, v) in &wholes {
                    let part = match self.get(v, count) {
                        Some(parts) => parts[n],
                        None => constant(f, v, n),
                    };
                    arms.push((b, part));
                }
                let result = f.inst(whole).result();
                let phi = result.and_then(|v| self.get(v, count)).and_then(|p| f.def_inst(p[n]));
                if let Some(phi) = phi {
                    f.set_phi_arms(phi, &arms);
                }
            }
        }
    }
}
