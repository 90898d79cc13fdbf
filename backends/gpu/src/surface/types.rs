//! Rules about the types of values.

use super::{Checker, RuleSet};
use magpie_diag::{Code, Diagnostic, Span};
use magpie_types::kernel::GpuBackend;
use magpie_types::{PrimType, RefMode, TypeId, TypeKind};

/// Why values of a type may not exist in a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TypeFault {
    pub(super) code: Code,
    /// Without the thing that has the type.
    text: String,
    help: &'static str,
}

impl TypeFault {
    fn new(code: Code, text: impl Into<String>, help: &'static str) -> Option<TypeFault> {
        Some(TypeFault { code, text: text.into(), help })
    }

    /// Whether the type is missing on the target only.
    pub(super) fn is_of_target(&self) -> bool {
        let of_host = [
            Code::MPG_CORE_1104,
            Code::MPG_CORE_1105,
            Code::MPG_CORE_1106,
            Code::MPG_CORE_1107,
            Code::MPG_CORE_1304,
        ];
        !of_host.contains(&self.code)
    }
}

impl Checker<'_> {
    /// What is wrong with a type, if anything is.
    pub(super) fn type_fault(&mut self, ty: TypeId) -> Option<TypeFault> {
        if let Some(known) = self.type_faults.get(&ty) {
            return known.clone();
        }
        let fault = self.find_fault(ty);
        self.type_faults.insert(ty, fault.clone());
        fault
    }

    /// Reports the fault of a type at the thing that has it.
    pub(super) fn report_type(&mut self, fault: TypeFault, at: Span, thing: &str, note: &str) {
        let d = Diagnostic::new(fault.code, at, format!("{thing}: {}", fault.text));
        let d = if note.is_empty() { d } else { d.with_note(note) };
        self.report(d.with_help(fault.help));
    }

    fn find_fault(&self, ty: TypeId) -> Option<TypeFault> {
        let types = &self.module.types;
        match types.kind(ty) {
            TypeKind::Prim(p) | TypeKind::Vec(p, _) => self.scalar_fault(p),
            TypeKind::RawPtr(_) => self.pointer_fault(ty),
            TypeKind::Buffer(elem) => self.element_fault(elem, "a buffer"),
            TypeKind::SharedArray(elem, _) => self.element_fault(elem, "shared memory"),
            TypeKind::LocalArray(elem, _) => self.element_fault(elem, "a local array"),
            TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, inner) => {
                self.find_fault(inner).or_else(|| self.host_fault(ty))
            }
            _ if self.is_plain(ty) => {
                types.leaves(ty).iter().find_map(|leaf| self.find_fault(leaf.ty))
            }
            _ => self.host_fault(ty),
        }
    }

    /// Whether the type is a value struct made of nothing but scalars, vectors and such structs.
    fn is_plain(&self, ty: TypeId) -> bool {
        let types = &self.module.types;
        let is_struct = matches!(types.kind(ty), TypeKind::Struct(_)) && types.is_aggregate(ty);
        is_struct
            && types
                .leaves(ty)
                .iter()
                .all(|leaf| matches!(types.kind(leaf.ty), TypeKind::Prim(_) | TypeKind::Vec(..)))
    }

    fn element_fault(&self, elem: TypeId, place: &str) -> Option<TypeFault> {
        let types = &self.module.types;
        let is_wgsl = self.target == GpuBackend::Wgsl;
        match types.kind(elem) {
            TypeKind::Prim(PrimType::Unit) => {
                let text = format!("`unit` cannot be an element of {place}");
                TypeFault::new(Code::MPG_CORE_1304, text, "use a type that has values")
            }
            TypeKind::Struct(_) if self.is_plain(elem) => {
                if is_wgsl && self.forbids(RuleSet::WGSL_STRUCT_ELEMENTS) {
                    let text =
                        format!("wgsl has no value struct `{}` in {place}", types.name(elem));
                    return TypeFault::new(
                        Code::MPG_WGSL_1001,
                        text,
                        "use one buffer a field, or another target",
                    );
                }
                self.find_fault(elem)
            }
            TypeKind::Prim(_) | TypeKind::Vec(..) => self.find_fault(elem),
            _ => self.find_fault(elem).or_else(|| self.host_fault(elem)),
        }
    }

    fn scalar_fault(&self, p: PrimType) -> Option<TypeFault> {
        if !self.forbids(RuleSet::MISSING_SCALARS) {
            return None;
        }
        let name = p.name();
        let text = format!("{} has no `{name}`", self.target.name());
        match p {
            PrimType::I128 | PrimType::U128 | PrimType::U1 => TypeFault::new(
                Code::MPG_CORE_1200,
                format!("no target has `{name}`"),
                "use an integer of 8 to 64 bits",
            ),
            PrimType::F64 if self.target == GpuBackend::Msl => {
                TypeFault::new(Code::MPG_CORE_1200, text, "use `f32`, or another target")
            }
            PrimType::Bf16 if self.target == GpuBackend::Wgsl => {
                TypeFault::new(Code::MPG_WGSL_1003, text, "use `f16` or `f32`")
            }
            PrimType::I8
            | PrimType::U8
            | PrimType::I16
            | PrimType::U16
            | PrimType::I64
            | PrimType::U64
            | PrimType::F64
                if self.target == GpuBackend::Wgsl =>
            {
                TypeFault::new(Code::MPG_WGSL_1001, text, "use a 32-bit number, or another target")
            }
            PrimType::Unit
            | PrimType::Bool
            | PrimType::I8
            | PrimType::I16
            | PrimType::I32
            | PrimType::I64
            | PrimType::U8
            | PrimType::U16
            | PrimType::U32
            | PrimType::U64
            | PrimType::F16
            | PrimType::F32
            | PrimType::F64
            | PrimType::Bf16 => None,
        }
    }

    fn pointer_fault(&self, ty: TypeId) -> Option<TypeFault> {
        if !self.forbids(RuleSet::RAW_POINTERS) {
            return None;
        }
        let target = self.target.name();
        let text =
            format!("{target} has no raw pointers, such as `{}`", self.module.types.name(ty));
        let help = "use buffers and indices";
        let is_unsafe = self.kernel.gpu_meta.as_ref().is_some_and(|m| m.is_unsafe);
        match self.target {
            GpuBackend::Wgsl => TypeFault::new(Code::MPG_WGSL_1002, text, help),
            _ if !is_unsafe => {
                TypeFault::new(Code::MPG_CORE_1201, "raw pointers are not portable", help)
            }
            GpuBackend::Spv => TypeFault::new(Code::MPG_SPV_1101, text, help),
            GpuBackend::Msl => TypeFault::new(Code::MPG_CORE_1200, text, help),
            GpuBackend::Ptx | GpuBackend::Hip | GpuBackend::Cpu | GpuBackend::Interp => {
                TypeFault::new(
                    Code::MPG_CORE_1304,
                    "this build has no raw pointers in kernels",
                    help,
                )
            }
        }
    }

    fn host_fault(&self, ty: TypeId) -> Option<TypeFault> {
        if !self.forbids(RuleSet::HOST_FEATURES) {
            return None;
        }
        let types = &self.module.types;
        let (code, help) = match types.kind(ty) {
            TypeKind::Ref(_, inner) => {
                let inner = self.host_fault(inner);
                let (code, help) = match &inner {
                    Some(fault) => (fault.code, fault.help),
                    None => (Code::MPG_CORE_1304, "pass the value itself"),
                };
                (code, help)
            }
            TypeKind::Str => {
                (Code::MPG_CORE_1104, "handle text on the host; pass bytes in a `gpu.TBuffer<u8>`")
            }
            TypeKind::Array(_) => {
                (Code::MPG_CORE_1105, "copy it into a buffer with `gpu.host.@buffer_from_array`")
            }
            TypeKind::Map(..) => (
                Code::MPG_CORE_1106,
                "pass sorted keys and their values in two buffers, and search in the kernel",
            ),
            TypeKind::Callable(_) => (
                Code::MPG_CORE_1107,
                "call functions by name, or pass a number and `switch` over it",
            ),
            TypeKind::Prim(_)
            | TypeKind::Vec(..)
            | TypeKind::Buffer(_)
            | TypeKind::SharedArray(..)
            | TypeKind::LocalArray(..)
            | TypeKind::RawPtr(_)
            | TypeKind::Opaque(_)
            | TypeKind::Option(_)
            | TypeKind::Result(..)
            | TypeKind::MlxArray(_)
            | TypeKind::Struct(_)
            | TypeKind::Enum(_) => {
                (Code::MPG_CORE_1304, "use primitives, value structs of primitives, and buffers")
            }
        };
        TypeFault::new(code, format!("`{}` does not exist in kernels", types.name(ty)), help)
    }
}
