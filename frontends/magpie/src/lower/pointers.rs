//! Raw pointers: integers of 64 bits that remember a type.

use super::body::Body;
use super::*;
use magpie_mpir::Value as MpirValue;
use magpie_types::{PrimType, TypeKind};

impl Body<'_, '_> {
    pub(super) fn pointer(&mut self, op: AstOp, types: &[TypeArg], args: &[Arg]) -> Lower {
        if !self.in_unsafe {
            let message = format!("`{}` stands outside of unsafe code", op.name());
            let help = "put it into `unsafe { … }`, and make sure that the address is good";
            return Err(self.error(Code::MPS0024, message, help));
        }
        let [TypeArg::Type(target)] = *types else { return Err(Poisoned) };
        let target = self.type_use(target)?;
        let pointer = self.intern(TypeKind::RawPtr(target));
        match op {
            AstOp::PtrNull => {
                let zero = self.f.const_bits(fixed::U64, 0);
                Ok(self.emit(MpirOp::BitsCast, pointer, &[zero], 0))
            }
            AstOp::PtrAddr => {
                let [p] = self.pointer_operands::<1>(op, args, pointer)?;
                Ok(self.emit(MpirOp::BitsCast, fixed::U64, &[p], 0))
            }
            AstOp::PtrFromAddr => {
                let [address] = self.args::<1>(args)?;
                if self.f.ty(address) != fixed::U64 {
                    let name = self.type_name(self.f.ty(address));
                    let message = format!("the address is a `{name}`");
                    return Err(self.error(Code::MPT2015, message, "give a `u64`"));
                }
                Ok(self.emit(MpirOp::BitsCast, pointer, &[address], 0))
            }
            AstOp::PtrAdd => self.pointer_add(op, args, target, pointer),
            AstOp::PtrLoad => {
                let [p] = self.pointer_operands::<1>(op, args, pointer)?;
                self.pointed_at(op, target)?;
                Ok(self.emit(MpirOp::MemLoad, target, &[p], 0))
            }
            _ => {
                let [p, v] = self.pointer_operands::<2>(op, args, pointer)?;
                self.pointed_at(op, target)?;
                if self.f.ty(v) != target {
                    let (found, target) = (self.type_name(self.f.ty(v)), self.type_name(target));
                    let message = format!("`ptr.store<{target}>` of a `{found}`");
                    return Err(self.error(Code::MPT2014, message, format!("give a `{target}`")));
                }
                Ok(self.emit(MpirOp::MemStore, fixed::UNIT, &[p, v], 0))
            }
        }
    }

    /// The operands, of which the first is a pointer of the type.
    fn pointer_operands<const N: usize>(
        &mut self,
        op: AstOp,
        args: &[Arg],
        pointer: TypeId,
    ) -> Lower<[MpirValue; N]> {
        let values = self.args::<N>(args)?;
        let found = self.f.ty(values[0]);
        if found != pointer {
            let (found, wanted) = (self.type_name(found), self.type_name(pointer));
            let message = format!("`{}` needs a `{wanted}`, not `{found}`", op.name());
            return Err(self.error(Code::MPT2014, message, format!("give a `{wanted}`")));
        }
        Ok(values)
    }

    /// Checks that a value of the type can be read and written through a pointer.
    fn pointed_at(&mut self, op: AstOp, target: TypeId) -> Lower<()> {
        let is_scalar = PrimType::from_id(target).is_some_and(|p| p != PrimType::Unit);
        if is_scalar || matches!(self.kind(target), TypeKind::RawPtr(_)) {
            return Ok(());
        }
        let name = self.type_name(target);
        let message = format!("`{}` of a `{name}` is not supported", op.name());
        let help = "read and write primitives; add offsets with `ptr.add<u8>`";
        Err(self.error(Code::MPT2050, message, help))
    }

    /// `ptr.add<T> { p, count }`: an address `count` elements further.
    fn pointer_add(&mut self, op: AstOp, args: &[Arg], target: TypeId, pointer: TypeId) -> Lower {
        let [p, count] = self.pointer_operands::<2>(op, args, pointer)?;
        self.index(op, count)?;
        let count = match self.f.ty(count) {
            fixed::I64 => count,
            _ => self.emit_value(MpirOp::Cast, fixed::I64, &[count], 0)?,
        };
        let stride = u64::from(self.cx.module.types.stride(target));
        let stride = self.f.const_bits(fixed::I64, stride);
        let bytes = self.emit_value(MpirOp::IMul, fixed::I64, &[count, stride], 0)?;
        Ok(self.emit(MpirOp::PtrAdd, pointer, &[p, bytes], 0))
    }
}
