//! Vectors at the borders of a kernel: what loads and parameters give and stores take
//! ([`magpie_mpir::passes::lower_vectors`]). The value of a vector that comes in is its address: its
//! components are taken out before anything is stored.

use super::emit::{Emitter, prim_of};
use crate::pure::clif_type;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData};
use magpie_mpir::{Inst, Op, Value};
use magpie_types::{PrimType, TypeId, TypeKind};

const COMPONENT: MemFlagsData = MemFlagsData::trusted();

impl Emitter<'_, '_, '_> {
    /// Component type and number of components of a vector type.
    pub(crate) fn vector(&self, ty: TypeId) -> Option<(PrimType, u32)> {
        match self.module.types.kind(ty) {
            TypeKind::Vec(p, n) => Some((p, u32::from(n))),
            _ => None,
        }
    }

    /// A component of a vector that came in.
    pub(crate) fn vector_component(&mut self, i: Inst) -> ir::Value {
        let (vector, lane) = (self.f.arg(i, 0), self.f.inst(i).imm_lo());
        let prim = prim_of(self.module, self.f.inst(i).ty);
        let made = self.f.def_inst(vector).filter(|&d| self.f.inst(d).op == Op::VecNew);
        if let Some(made) = made {
            let component = self.f.arg(made, lane as usize);
            return self.value(component);
        }
        let address = self.value(vector);
        self.b.ins().load(clif_type(prim), COMPONENT, address, (lane * prim.size()) as i32)
    }

    /// Stores the components of a vector.
    pub(crate) fn store_vector(&mut self, address: ir::Value, vector: Value, p: PrimType, n: u32) {
        let made = self.f.def_inst(vector).filter(|&d| self.f.inst(d).op == Op::VecNew);
        let components: Vec<ir::Value> = match made {
            Some(made) => (0..n as usize).map(|k| self.value(self.f.arg(made, k))).collect(),
            None => {
                let from = self.value(vector);
                let load = |k| {
                    let at = (k * p.size()) as i32;
                    self.b.ins().load(clif_type(p), COMPONENT, from, at)
                };
                (0..n).map(load).collect()
            }
        };
        for (k, v) in (0u32..).zip(components) {
            self.b.ins().store(COMPONENT, v, address, (k * p.size()) as i32);
        }
    }
}
