//! Calls of built-in functions.

use super::body::Body;
use super::call::ParamNames;
use super::*;
use crate::builtins::{Builtin, Lowering as Row};
use magpie_mpir::Value as MpirValue;
use magpie_types::PrimType;
use magpie_types::abi::{AbiType, RtFn};

impl Body<'_, '_> {
    pub(super) fn call_builtin(
        &mut self,
        id: BuiltinId,
        type_args: Slice<TypeUse>,
        args: Slice<Arg>,
    ) -> Lower {
        let row = id.row();
        if row.lowering == Row::ProfiledLaunch {
            return self.profiled_launch(args);
        }
        let param = self.builtin_type_arg(row, type_args)?;
        let (params, result) = self.builtin_signature(row, param);
        let wanted: Vec<Option<TypeId>> = params.into_iter().map(Some).collect();
        let values = self.arguments(&ParamNames::Builtin(row), &wanted, args)?;
        match row.lowering {
            Row::Runtime(function) => self.runtime_call(function, result, values),
            Row::Op(op) => Ok(self.emit(op, result, &values, 0)),
            Row::Abs => self.absolute(result, values[0]),
            Row::Function(_) if self.on_device => {
                let message = format!("`{}` exists on the host only", row.full_name());
                let help = "check on the host, after the launch";
                Err(self.error(Code::MPG_CORE_1304, message, help))
            }
            Row::Function(_) => {
                let function = self.cx.builtin_function(id, param);
                Ok(self.emit(MpirOp::Call, result, &values, u64::from(function.0)))
            }
            Row::ProfiledLaunch => Err(Poisoned),
        }
    }

    /// The type argument of a built-in function, if it takes one.
    pub(super) fn builtin_type_arg(
        &mut self,
        row: &'static Builtin,
        type_args: Slice<TypeUse>,
    ) -> Lower<Option<TypeId>> {
        let ast = self.ast;
        match (row.generic, &ast[type_args]) {
            (false, []) => Ok(None),
            (true, &[ty]) => {
                let ty = self.type_use(ty)?;
                // Only functions on buffers are generic.
                if !crate::types::is_buffer_element(&self.cx.module.types, ty) {
                    let name = self.type_name(ty);
                    let message = format!("a buffer cannot hold `{name}`");
                    let help = "the elements of a buffer are primitives or value structs";
                    return Err(self.error(Code::MPT2003, message, help));
                }
                Ok(Some(ty))
            }
            (_, found) => {
                let wanted = usize::from(row.generic);
                let found = found.len();
                let name = row.full_name();
                let message = format!("`{name}` takes {wanted} type arguments, found {found}");
                let help = match row.generic {
                    true => format!("write `{name}<T>` with the type of the elements"),
                    false => format!("write `{name}`"),
                };
                Err(self.error(Code::MPT2001, message, help))
            }
        }
    }

    /// The types of the parameters and of the result.
    pub(super) fn builtin_signature(
        &mut self,
        row: &'static Builtin,
        param: Option<TypeId>,
    ) -> (Vec<TypeId>, TypeId) {
        let types = &mut self.cx.module.types;
        let params = row.params.iter().map(|(_, ty)| ty.instantiate(types, param)).collect();
        (params, row.result.instantiate(types, param))
    }

    /// Calls the runtime; narrow integers are widened where it takes 64 bits.
    fn runtime_call(
        &mut self,
        function: RtFn,
        result: TypeId,
        mut values: Vec<MpirValue>,
    ) -> Lower {
        let params = magpie_mpir::ownership::operand_params(function);
        for (v, at) in values.iter_mut().zip(params) {
            let wide = function.params()[at].1 == AbiType::I64;
            if wide && PrimType::from_id(self.f.ty(*v)).is_some_and(PrimType::is_int) {
                *v = self.widened(*v)?;
            }
        }
        Ok(self.runtime(function, result, &values))
    }

    /// The absolute value of an integer.
    fn absolute(&mut self, ty: TypeId, v: MpirValue) -> Lower {
        let zero = self.f.zero(ty);
        let op = if self.on_device { MpirOp::ISub } else { MpirOp::ISubTrap };
        let is_negative = self.emit_value(MpirOp::IcmpSlt, fixed::BOOL, &[v, zero], 0)?;
        // Of a number that is not negative the negation always fits.
        let negated = self.emit_value(op, ty, &[zero, v], 0)?;
        Ok(self.emit(MpirOp::Select, ty, &[is_negative, negated, v], 0))
    }
}
