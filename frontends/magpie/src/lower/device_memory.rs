//! Device operations: invocation ids, buffers and arrays, atomics, subgroups.

use super::body::{Annotation, Body};
use super::constant::global_bits;
use super::*;
use crate::resolve::FunctionName;
use crate::types::is_buffer_element;
use magpie_mpir::{Flags, Value as MpirValue};
use magpie_types::{PrimType, TypeKind};

/// The most that an invocation may have in one array: what CUDA has for each.
const MAX_PRIVATE_BYTES: u64 = 512 << 10;

impl Body<'_, '_> {
    // ----- ids -----

    pub(super) fn invocation_id(&mut self, op: AstOp, args: &[Arg], mpir: MpirOp) -> Lower {
        self.require_device(op)?;
        let [arg] = args else { return Err(Poisoned) };
        let dim = match arg.kind {
            ArgKind::Value(Value::Const(id)) => {
                let v = self.constant(id)?;
                let is_int = PrimType::from_id(self.f.ty(v)).is_some_and(PrimType::is_int);
                self.f.as_bits(v).filter(|_| is_int)
            }
            _ => None,
        };
        match dim {
            Some(dim @ 0..=2) => Ok(self.emit(mpir, fixed::U32, &[], dim)),
            _ => {
                let message = format!("`dim` of `{}` is not the constant 0, 1 or 2", op.name());
                let help = "write `dim=const.u32 0`, `1` or `2` for x, y or z";
                Err(self.error(Code::MPS0001, message, help))
            }
        }
    }

    // ----- buffers and arrays -----

    fn access_flags(&self) -> Flags {
        if self.in_unsafe { Flags::UNCHECKED } else { Flags::NONE }
    }

    /// Checks the memory that an operation names, and the element type it writes.
    fn memory(&mut self, op: AstOp, v: MpirValue, written: Option<TypeId>) -> Lower<TypeId> {
        let found = self.f.ty(v);
        let (TypeKind::Buffer(element)
        | TypeKind::SharedArray(element, _)
        | TypeKind::LocalArray(element, _)) = self.kind(found)
        else {
            let name = self.type_name(found);
            let message = format!("`{}` needs a buffer or a `ptr`, not `{name}`", op.name());
            let help = match self.kind(found) {
                TypeKind::RawPtr(_) => {
                    "take a `gpu.TBuffer<T>` parameter; raw pointers have `ptr.load` and `ptr.store`"
                }
                _ => "give a `gpu.TBuffer<T>`, or the result of `gpu.shared` or `gpu.local`",
            };
            return Err(self.error(Code::MPT2003, message, help));
        };
        if let Some(written) = written.filter(|&ty| ty != element) {
            let (written, element) = (self.type_name(written), self.type_name(element));
            let message = format!("`{}<{written}>` on elements of type `{element}`", op.name());
            let help = format!("write `{}<{element}>`", op.name());
            return Err(self.error(Code::MPT2003, message, help));
        }
        Ok(element)
    }

    fn element_index(&mut self, op: AstOp, v: MpirValue) -> Lower<()> {
        let found = self.f.ty(v);
        if matches!(found, fixed::U32 | fixed::U64 | fixed::I32 | fixed::I64) {
            return Ok(());
        }
        let name = self.type_name(found);
        let message = format!("the index of `{}` is a `{name}`", op.name());
        Err(self.error(Code::MPT2003, message, "give a `u32`, `u64`, `i32` or `i64`"))
    }

    fn type_arg(&mut self, types: &[TypeArg]) -> Lower<Option<TypeId>> {
        match types.first() {
            Some(&TypeArg::Type(ty)) => self.type_use(ty).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn buffer_load(&mut self, op: AstOp, types: &[TypeArg], args: &[Arg]) -> Lower {
        self.require_device(op)?;
        let (written, values) = (self.type_arg(types), self.args::<2>(args));
        let (written, values) = (written?, values?);
        let element = self.memory(op, values[0], written)?;
        self.element_index(op, values[1])?;
        Ok(self.emit_flags(MpirOp::GpuBufferLoad, self.access_flags(), element, &values, 0))
    }

    pub(super) fn buffer_store(&mut self, op: AstOp, types: &[TypeArg], args: &[Arg]) -> Lower {
        self.require_device(op)?;
        let (written, values) = (self.type_arg(types), self.args::<3>(args));
        let (written, values) = (written?, values?);
        let element = self.memory(op, values[0], written)?;
        self.element_index(op, values[1])?;
        self.element_value(op, values[2], element)?;
        let flags = self.access_flags();
        Ok(self.emit_flags(MpirOp::GpuBufferStore, flags, fixed::UNIT, &values, 0))
    }

    fn element_value(&mut self, op: AstOp, v: MpirValue, element: TypeId) -> Lower<()> {
        let found = self.f.ty(v);
        if found == element {
            return Ok(());
        }
        let (found, element) = (self.type_name(found), self.type_name(element));
        let message = format!("`{}` of a `{found}` on elements of type `{element}`", op.name());
        Err(self.error(Code::MPT2003, message, format!("give a `{element}`")))
    }

    pub(super) fn buffer_len(
        &mut self,
        op: AstOp,
        types: &[TypeArg],
        args: &[Arg],
        want: Annotation,
    ) -> Lower {
        self.require_device(op)?;
        let (written, values) = (self.type_arg(types), self.args::<1>(args));
        let (written, values) = (written?, values?);
        self.memory(op, values[0], written)?;
        let ty = if want.ty() == Some(fixed::U64) { fixed::U64 } else { fixed::U32 };
        Ok(self.emit(MpirOp::GpuBufferLen, ty, &values, 0))
    }

    /// `gpu.shared<N, T>` and `gpu.local<N, T>`.
    pub(super) fn array_memory(&mut self, op: AstOp, types: &[TypeArg]) -> Lower {
        self.require_device(op)?;
        let [length, TypeArg::Type(element)] = *types else { return Err(Poisoned) };
        let (length, element) = (self.length(op, length), self.type_use(element));
        let (length, element) = (length?, element?);
        if !is_buffer_element(&self.cx.module.types, element) {
            let name = self.type_name(element);
            let message = format!("`{}` cannot hold `{name}`", op.name());
            let help = "the elements are primitives or value structs";
            return Err(self.error(Code::MPT2015, message, help));
        }
        let (mpir, kind) = match op {
            AstOp::GpuShared => (MpirOp::GpuShared, TypeKind::SharedArray(element, length)),
            _ => {
                self.private_size(element, length)?;
                (MpirOp::GpuLocal, TypeKind::LocalArray(element, length))
            }
        };
        let ty = self.intern(kind);
        Ok(self.emit(mpir, ty, &[], 0))
    }

    /// Checks that an invocation may have so large an array.
    fn private_size(&mut self, element: TypeId, length: u32) -> Lower<()> {
        let bytes = u64::from(self.cx.module.types.stride(element)) * u64::from(length);
        if bytes <= MAX_PRIVATE_BYTES {
            return Ok(());
        }
        let message = format!(
            "the array of each invocation takes {bytes} bytes; {MAX_PRIVATE_BYTES} are allowed"
        );
        let help = "make it shorter, or give each invocation a part of a buffer";
        Err(self.error(Code::MPT2015, message, help))
    }

    /// A length: a number from 1, or an integer global.
    fn length(&mut self, op: AstOp, length: TypeArg) -> Lower<u32> {
        let number = match length {
            TypeArg::Int(n) => Some(n),
            TypeArg::Global(id) => {
                let fn_ref = self.ast[id];
                let found = self.cx.program.resolve_function(self.module, fn_ref);
                let at = match found {
                    Ok(FunctionName::Global(at)) => at,
                    Ok(FunctionName::Failed) => return Err(Poisoned),
                    Ok(_) | Err(_) => {
                        let name = self.scope.name(fn_ref.name);
                        let message = format!("there is no global `@{name}`");
                        let help = format!("declare it: `global @{name}: u32 = const.u32 256`");
                        return Err(self.error(Code::MPS0002, message, help));
                    }
                };
                let DeclKind::Global(global) = &self.cx.program.decl(at).kind else {
                    return Err(Poisoned);
                };
                let is_text = self.cx.types.known(at.module, global.ty.id) == Some(fixed::STR);
                match global_bits(self.cx, at.module, global, false) {
                    Some((prim, bits)) if prim.is_int() => {
                        let sign = prim.is_signed() && bits >> (prim.bit_width() - 1) == 1;
                        (!sign).then_some(bits)
                    }
                    Some(_) => None,
                    None if is_text => None,
                    // What is wrong with the global was said there.
                    None => return Err(Poisoned),
                }
            }
            TypeArg::Type(_) | TypeArg::Variant(_) => return Err(Poisoned),
        };
        match number.filter(|&n| n > 0) {
            // No target has so much memory, so that what is longer still is as much too long.
            Some(n) => Ok(n.try_into().unwrap_or(u32::MAX)),
            None => {
                let message = format!("the length of `{}` is not an integer from 1", op.name());
                let help = format!("write `{}<256, f32>`", op.name());
                Err(self.error(Code::MPT2015, message, help))
            }
        }
    }

    pub(super) fn gpu_print(&mut self, op: AstOp, args: &[Arg]) -> Lower {
        self.require_device(op)?;
        let [Arg { kind: ArgKind::List(items), .. }] = args else { return Err(Poisoned) };
        let values = self.list_values(*items)?;
        Ok(self.emit(MpirOp::GpuPrint, fixed::UNIT, &values, 0))
    }

    /// The values of a list.
    pub(super) fn list_values(&mut self, items: Slice<ListItem>) -> Lower<Vec<MpirValue>> {
        let ast = self.ast;
        let mut values = Vec::with_capacity(items.len());
        for item in &ast[items] {
            if let ListItemKind::Value(value) = item.kind {
                values.extend(self.value(value).ok());
            }
        }
        if values.len() == items.len() { Ok(values) } else { Err(Poisoned) }
    }

    // ----- atomics -----

    pub(super) fn atomic(
        &mut self,
        op: AstOp,
        types: &[TypeArg],
        args: &[Arg],
        mpir: MpirOp,
    ) -> Lower {
        self.require_device(op)?;
        let mut values = [MpirValue(0); 4];
        let count = args.len().min(4);
        let written = self.type_arg(types);
        let mut poisoned = false;
        for (slot, arg) in values.iter_mut().zip(args) {
            match self.arg(arg) {
                Ok(v) => *slot = v,
                Err(Poisoned) => poisoned = true,
            }
        }
        let written = written?;
        if poisoned {
            return Err(Poisoned);
        }
        let element = self.memory(op, values[0], written)?;
        self.element_index(op, values[1])?;
        for &v in &values[2..count] {
            self.element_value(op, v, element)?;
        }
        let bitwise = matches!(
            op,
            AstOp::GpuAtomicAnd | AstOp::GpuAtomicOr | AstOp::GpuAtomicXor | AstOp::GpuAtomicCas
        );
        let fits = match element {
            fixed::I32 | fixed::U32 | fixed::I64 | fixed::U64 => true,
            fixed::F32 | fixed::F64 => !bitwise,
            _ => false,
        };
        let is_local = matches!(self.kind(self.f.ty(values[0])), TypeKind::LocalArray(..));
        if !fits || is_local {
            let name = self.type_name(element);
            let (message, help) = match is_local {
                true => (
                    format!("`{}` on a private array", op.name()),
                    "nobody else sees it: use `gpu.buffer_load` and `gpu.buffer_store`",
                ),
                false if bitwise => (
                    format!("`{}` on elements of type `{name}`", op.name()),
                    "it works on `i32`, `u32`, `i64` and `u64`",
                ),
                false => (
                    format!("`{}` on elements of type `{name}`", op.name()),
                    "it works on `i32`, `u32`, `i64`, `u64`, `f32` and `f64`",
                ),
            };
            return Err(self.error(Code::MPT2015, message, help));
        }
        Ok(self.emit_flags(mpir, self.access_flags(), element, &values[..count], 0))
    }

    // ----- subgroups -----

    pub(super) fn subgroup_id(&mut self, op: AstOp, mpir: MpirOp) -> Lower {
        self.require_device(op)?;
        Ok(self.emit(mpir, fixed::U32, &[], 0))
    }

    /// Checks the value that a subgroup operation works on.
    fn subgroup_value(
        &mut self,
        op: AstOp,
        types: &[TypeArg],
        v: MpirValue,
        fits: fn(PrimType) -> bool,
        wanted: &str,
    ) -> Lower<TypeId> {
        let written = self.type_arg(types)?;
        let found = self.f.ty(v);
        let name = self.type_name(found);
        if let Some(written) = written.filter(|&ty| ty != found) {
            let written = self.type_name(written);
            let message = format!("`{}<{written}>` of a `{name}`", op.name());
            let help = format!("write `{}<{name}>`", op.name());
            return Err(self.error(Code::MPT2014, message, help));
        }
        if !PrimType::from_id(found).is_some_and(fits) {
            let message = format!("`{}` needs {wanted}, not `{name}`", op.name());
            return Err(self.error(Code::MPT2015, message, format!("give {wanted}")));
        }
        Ok(found)
    }

    pub(super) fn shuffle(
        &mut self,
        op: AstOp,
        types: &[TypeArg],
        args: &[Arg],
        mpir: MpirOp,
    ) -> Lower {
        self.require_device(op)?;
        let values = self.args::<2>(args)?;
        let is_scalar = |p: PrimType| p != PrimType::Unit;
        let ty = self.subgroup_value(op, types, values[0], is_scalar, "a scalar")?;
        let lane = self.f.ty(values[1]);
        if lane != fixed::U32 {
            let name = self.type_name(lane);
            let message = format!("the lane of `{}` is a `{name}`", op.name());
            return Err(self.error(Code::MPT2015, message, "give a `u32`"));
        }
        Ok(self.emit(mpir, ty, &values, 0))
    }

    pub(super) fn subgroup(
        &mut self,
        op: AstOp,
        types: &[TypeArg],
        args: &[Arg],
        mpir: MpirOp,
    ) -> Lower {
        self.require_device(op)?;
        let values = self.args::<1>(args)?;
        let is_number = |p: PrimType| p.is_int() || p.is_float();
        let ty = self.subgroup_value(op, types, values[0], is_number, "a number")?;
        Ok(self.emit(mpir, ty, &values, 0))
    }

    pub(super) fn vote(&mut self, op: AstOp, args: &[Arg], mpir: MpirOp, result: TypeId) -> Lower {
        self.require_device(op)?;
        let values = self.args::<1>(args)?;
        self.subgroup_value(op, &[], values[0], |p| p == PrimType::Bool, "a `bool`")?;
        Ok(self.emit(mpir, result, &values, 0))
    }
}
