//! Calls of the functions that a kernel carries, and what those give back.

use crate::emitter::{Emit, Emitter, ptx};
use crate::memory::{MemoryType, cell_of};
use crate::operand::{Class, Operand, lanes_of};
use magpie_mpir::{Inst, Value};
use magpie_types::kernel::ParamLayout;
use magpie_types::{PrimType, TypeId, fixed};
use std::fmt::Write;

/// How addresses and lengths travel.
const ADDRESS: MemoryType = MemoryType::of(PrimType::U64);

impl Emitter<'_, '_> {
    /// How a single number travels to and from a function: nothing narrower than 32 bits does.
    pub(crate) fn scalar_type(&self, ty: TypeId) -> Emit<MemoryType> {
        match lanes_of(self.types, ty) {
            Some((PrimType::Bool, 1)) => Ok(MemoryType::of(PrimType::U32)),
            Some((p, 1)) => Ok(MemoryType::of(p)),
            _ => {
                let name = self.types.name(ty);
                Err(self.broken(&format!("a value of type `{name}` in a call")))
            }
        }
    }

    /// `call`.
    pub(crate) fn call_function(&mut self, i: Inst) -> Emit {
        let (f, functions) = (self.f, self.functions);
        let id = f.inst(i).func();
        let Some(callee) = functions.iter().find(|function| function.id == id) else {
            return Err(self.broken_at(i, "a function that the kernel does not carry"));
        };
        let (params, hidden) = (&callee.layout.params, &callee.layout.hidden);
        let mut args: Vec<(MemoryType, Operand)> = Vec::new();
        let mut lengths = vec![None; hidden.len()];
        for (n, param) in params.iter().enumerate() {
            let Some(&v) = f.args(i).get(n) else {
                return Err(self.broken_at(i, "operands are missing"));
            };
            args.push(match param {
                ParamLayout::Scalar { .. } => {
                    let (operand, p) = (self.value(v)?, self.prim(v)?);
                    (self.scalar_type(f.ty(v))?, self.in_cell(operand, p))
                }
                ParamLayout::Buffer(buffer) => {
                    let Some((start, position)) = self.buffer(v) else {
                        return Err(self.broken_at(i, "an operand is no buffer"));
                    };
                    if let Some(at) = hidden.iter().position(|h| h.buffer == buffer.index) {
                        lengths[at] = Some(self.hidden_length(position)?);
                    }
                    let generic = self.fresh(Class::B64);
                    ptx!(self, "cvta.global.u64 {generic}, {start}");
                    (ADDRESS, generic.into())
                }
            });
        }
        args.extend(lengths.into_iter().flatten().map(|reg| (ADDRESS, reg.into())));
        let result = match callee.f.ret_ty {
            fixed::UNIT => None,
            ty => Some(self.scalar_type(ty)?),
        };
        self.emit_call(i, &callee.layout.entry, &args, result)
    }

    /// The call itself: parameters and the result are declared in a scope of their own.
    fn emit_call(
        &mut self,
        i: Inst,
        name: &str,
        args: &[(MemoryType, Operand)],
        result: Option<MemoryType>,
    ) -> Emit {
        self.body.push_str("\t{\n");
        let mut list = String::new();
        for (n, (ty, operand)) in args.iter().enumerate() {
            ptx!(self, ".param .{ty} arg{n}");
            ptx!(self, "st.param.{ty} [arg{n}], {operand}");
            let comma = if n == 0 { "" } else { ", " };
            let _ = write!(list, "{comma}arg{n}");
        }
        match result {
            None => ptx!(self, "call {name}, ({list})"),
            Some(ty) => {
                ptx!(self, ".param .{ty} result");
                ptx!(self, "call (result), {name}, ({list})");
                let d = self.result(i)?;
                match d.class {
                    Class::Pred => {
                        let cell = self.fresh(cell_of(self.result_prim(i)?));
                        ptx!(self, "ld.param.{ty} {cell}, [result]");
                        ptx!(self, "setp.ne.s32 {d}, {cell}, 0");
                    }
                    _ => ptx!(self, "ld.param.{ty} {d}, [result]"),
                }
            }
        }
        self.body.push_str("\t}\n");
        Ok(())
    }

    /// The end of a function; a kernel gives nothing.
    pub(crate) fn emit_return(&mut self, v: Option<Value>) -> Emit {
        if let Some(v) = v.filter(|_| self.f.ret_ty != fixed::UNIT) {
            let (ty, p) = (self.scalar_type(self.f.ret_ty)?, self.prim(v)?);
            let operand = self.value(v)?;
            let cell = self.in_cell(operand, p);
            let entry = &self.layout.entry;
            ptx!(self, "st.param.{ty} [{entry}_result], {cell}");
        }
        ptx!(self, "ret");
        Ok(())
    }
}
