//! What a kernel sees of its launch: parameters and special registers. Each is read once, at the
//! start.
//!
//! Parameters are those of the kernel in order, then the hidden lengths.

use crate::emitter::{Emit, Emitter};
use crate::memory::{MemoryType, cell_of};
use crate::operand::{Class, Operand, Reg, lanes_of};
use magpie_mpir::Inst;
use magpie_types::kernel::ParamLayout;
use magpie_types::{PrimType, fixed};
use std::fmt::Write;

/// A special register of 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    Tid(u8),
    Ctaid(u8),
    Ntid(u8),
    Nctaid(u8),
    LaneId,
}

/// What has been read so far.
#[derive(Default)]
pub(crate) struct Params {
    specials: Vec<(Special, Reg)>,
    /// Parameter, offset, type and what holds it.
    loads: Vec<(u32, u32, PrimType, Reg)>,
}

impl Emitter<'_, '_> {
    /// The head of the entry.
    pub(crate) fn declare_entry(&self, out: &mut String) {
        let _ = write!(out, ".visible .entry {}(", self.layout.entry);
        self.declare_params(out);
        let [x, y, z] = self.layout.workgroup;
        let _ = write!(out, "\n)\n.maxntid {x}, {y}, {z}\n");
    }

    /// The head of a function that kernels call.
    pub(crate) fn function_head(&self) -> Emit<String> {
        let entry = &self.layout.entry;
        let mut out = ".func ".to_string();
        if self.f.ret_ty != fixed::UNIT {
            let ty = self.scalar_type(self.f.ret_ty)?;
            let _ = write!(out, "(.param .{ty} {entry}_result) ");
        }
        let _ = write!(out, "{entry}(");
        self.declare_params(&mut out);
        out.push_str("\n)");
        Ok(out)
    }

    fn declare_params(&self, out: &mut String) {
        let (types, entry) = (self.types, &self.layout.entry);
        let mut declared = Vec::new();
        for (param, &(_, ty)) in self.layout.params.iter().zip(&self.f.params) {
            declared.push(match param {
                ParamLayout::Buffer(_) => (".u64".to_string(), String::new()),
                &ParamLayout::Scalar { size, .. } => match lanes_of(types, ty) {
                    Some((PrimType::Bool, 1)) if !self.f.is_kernel() => {
                        (".u32".to_string(), String::new())
                    }
                    Some((p, 1)) => (format!(".{}", MemoryType::of(p)), String::new()),
                    _ => {
                        let align = types.layout(ty).align.clamp(1, 16);
                        (format!(".align {align} .b8"), format!("[{size}]"))
                    }
                },
            });
        }
        declared.extend(self.layout.hidden.iter().map(|_| (".u64".to_string(), String::new())));
        for (n, (ty, array)) in declared.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            let _ = write!(out, "{comma}\n\t.param {ty} {entry}_param_{n}{array}");
        }
    }

    /// Component `lane` of leaf `leaf` of a scalar parameter.
    pub(crate) fn load_param(&mut self, n: u32, leaf: u32, lane: u32) -> Emit<Reg> {
        let Some(ParamLayout::Scalar { .. }) = self.layout.params.get(n as usize) else {
            return Err(self.broken("a buffer as a value"));
        };
        // Legalisation may have given the parameter another type of the same layout.
        let leaves = self.types.leaves(self.f.params[n as usize].1);
        let Some(leaf) = leaves.get(leaf as usize) else {
            return Err(self.broken("a member that its parameter does not have"));
        };
        let Some((p, _)) = lanes_of(self.types, leaf.ty) else {
            return Err(self.broken("a parameter of a type that no register holds"));
        };
        let offset = leaf.offset + lane * p.size();
        let known = self.params.loads.iter().find(|l| (l.0, l.1, l.2) == (n, offset, p));
        if let Some(&(.., reg)) = known {
            return Ok(reg);
        }
        let (ty, cell) = (MemoryType::of(p), self.fresh(cell_of(p)));
        let entry = &self.layout.entry;
        self.at_start(format_args!("ld.param.{ty} {cell}, [{entry}_param_{n}+{offset}]"));
        let reg = match p {
            PrimType::Bool => {
                let d = self.fresh(Class::Pred);
                self.at_start(format_args!("setp.ne.s32 {d}, {cell}, 0"));
                d
            }
            _ => cell,
        };
        self.params.loads.push((n, offset, p, reg));
        Ok(reg)
    }

    /// `leaf.get`: a scalar or vector of an aggregate parameter.
    pub(crate) fn leaf_get(&mut self, i: Inst) -> Emit {
        let f = self.f;
        let param = match f.args(i).first().map(|&v| f.def(v)) {
            Some(magpie_mpir::ValueDef::Param(n)) => n,
            _ => return Err(self.broken_at(i, "operand 0 is no parameter")),
        };
        let leaf = f.inst(i).imm_lo();
        match lanes_of(self.types, f.inst(i).ty) {
            Some((_, 1)) => {
                let reg = self.load_param(param, leaf, 0)?;
                self.set_result(i, reg.into())
            }
            Some((_, count)) => {
                let lanes = self.param_lanes(param, leaf, count)?;
                self.set_lanes(i, &lanes);
                Ok(())
            }
            None => Err(self.broken_at(i, "not a leaf")),
        }
    }

    /// The components of leaf `leaf` of a parameter.
    pub(crate) fn param_lanes(&mut self, n: u32, leaf: u32, count: u32) -> Emit<Vec<Operand>> {
        (0..count).map(|lane| Ok(self.load_param(n, leaf, lane)?.into())).collect()
    }

    /// The address of a buffer parameter.
    pub(crate) fn load_address(&mut self, n: usize) -> Reg {
        let (generic, global) = (self.fresh(Class::B64), self.fresh(Class::B64));
        let entry = &self.layout.entry;
        self.at_start(format_args!("ld.param.u64 {generic}, [{entry}_param_{n}]"));
        self.at_start(format_args!("cvta.to.global.u64 {global}, {generic}"));
        global
    }

    /// The number of elements of the buffer parameter with this position.
    pub(crate) fn hidden_length(&mut self, buffer: u32) -> Emit<Reg> {
        let Some(at) = self.layout.hidden.iter().position(|h| h.buffer == buffer) else {
            return Err(self.broken("a buffer length that the layout does not carry"));
        };
        let n = (self.layout.params.len() + at) as u32;
        let known = self.params.loads.iter().find(|l| l.0 == n);
        if let Some(&(.., reg)) = known {
            return Ok(reg);
        }
        let (reg, entry) = (self.fresh(Class::B64), &self.layout.entry);
        self.at_start(format_args!("ld.param.u64 {reg}, [{entry}_param_{n}]"));
        self.params.loads.push((n, 0, PrimType::U64, reg));
        Ok(reg)
    }

    /// A special register.
    pub(crate) fn special(&mut self, special: Special) -> Reg {
        let known = self.params.specials.iter().find(|s| s.0 == special);
        if let Some(&(_, reg)) = known {
            return reg;
        }
        let reg = self.fresh(Class::B32);
        let axis = |dim: u8| ["x", "y", "z"][usize::from(dim.min(2))];
        match special {
            Special::Tid(dim) => self.at_start(format_args!("mov.u32 {reg}, %tid.{}", axis(dim))),
            Special::Ctaid(dim) => {
                self.at_start(format_args!("mov.u32 {reg}, %ctaid.{}", axis(dim)));
            }
            Special::Ntid(dim) => self.at_start(format_args!("mov.u32 {reg}, %ntid.{}", axis(dim))),
            Special::Nctaid(dim) => {
                self.at_start(format_args!("mov.u32 {reg}, %nctaid.{}", axis(dim)));
            }
            Special::LaneId => self.at_start(format_args!("mov.u32 {reg}, %laneid")),
        }
        self.params.specials.push((special, reg));
        reg
    }
}
