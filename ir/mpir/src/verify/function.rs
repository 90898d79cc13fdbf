//! Heads, values and constants.

use super::{MAX_ERRORS, Stage, Verifier};
use crate::{Const, Domain, Module, Value, ValueDef, print_type};
use magpie_diag::{Code, Diagnostic};
use magpie_types::{Category, PrimType, TypeId, TypeKind, fixed};
use rustc_hash::FxHashSet;

/// What functions see of each other: names, and types of parameters and results that exist.
pub(super) fn check_heads(m: &Module, errors: &mut Vec<Diagnostic>) {
    let mut seen = FxHashSet::default();
    for f in &m.fns {
        let types = f.params.iter().map(|p| p.1).chain([f.ret_ty]);
        let missing = types.into_iter().find(|&ty| !m.types.contains(ty));
        let message = if !seen.insert(f.name.as_str()) {
            format!("function `{}` is defined twice", f.name)
        } else if let Some(ty) = missing {
            format!("in `{}`: type {} does not exist", f.name, ty.0)
        } else {
            continue;
        };
        if errors.len() < MAX_ERRORS {
            errors.push(Diagnostic::new(Code::MPS0032, f.span, message));
        }
    }
}

impl Verifier<'_> {
    pub(super) fn check_head(&mut self) {
        let f = self.f;
        let count = f.params.len();
        if f.param_names.len() != count || f.param_spans.len() != count {
            self.head_fault("as many names and places of parameters as parameters are needed");
        }
        if let Err(message) = self.check_type(f.ret_ty) {
            self.head_fault(format!("the result: {message}"));
        }
        for (n, &(v, ty)) in f.params.iter().enumerate() {
            let matches = f
                .locals
                .get(v.index())
                .is_some_and(|l| l.ty == ty && l.def == ValueDef::Param(n as u32));
            if !matches {
                self.head_fault(format!("parameter {n} is not the value {v:?}"));
            }
            // Such a parameter has no place in an argument block or a register.
            let is_machine = f.domain == Domain::LowHost || f.is_kernel();
            if ty == fixed::UNIT && is_machine && self.stage == Stage::Core {
                self.head_fault(format!("parameter {n} has type `unit`"));
            }
            if f.domain == Domain::LowHost && self.is_vector(ty) {
                self.head_fault(format!("parameter {n} is a vector of host code"));
            }
            if f.domain == Domain::LowHost && self.is_several(ty) {
                self.head_fault(format!("parameter {n} is several values"));
            }
        }
        if f.domain == Domain::LowHost && self.is_vector(f.ret_ty) {
            self.head_fault("the result is a vector of host code");
        }
        let Some(meta) = &f.gpu_meta else { return };
        if f.domain != Domain::Device {
            self.head_fault("a kernel belongs to the device");
        }
        if f.ret_ty != fixed::UNIT {
            self.head_fault("a kernel returns `unit`");
        }
        if meta.workgroup.contains(&0) {
            self.head_fault("the workgroup size is at least 1 in each dimension");
        }
    }

    /// Every value: its origin and its type. Results are compared with their instruction here, the
    /// instruction with the list of its block in the control-flow check.
    pub(super) fn check_values(&mut self) {
        let f = self.f;
        let mut sound = FxHashSet::default();
        for (n, local) in f.locals.iter().enumerate() {
            let v = Value::new(n);
            if !sound.contains(&local.ty) {
                if let Err(message) = self.check_type(local.ty) {
                    self.head_fault(format!("{v:?}: {message}"));
                    continue;
                }
                sound.insert(local.ty);
            }
            let fault = match local.def {
                ValueDef::Param(at) => {
                    let is_param = f.params.get(at as usize).is_some_and(|p| p.0 == v);
                    (!is_param).then(|| format!("{v:?} is not parameter {at}"))
                }
                ValueDef::Inst(i) => {
                    let matches = i.index() < f.num_insts() && {
                        let data = f.inst(i);
                        data.result() == Some(v) && data.ty == local.ty
                    };
                    (!matches).then(|| format!("{v:?} is not the result of {i:?}"))
                }
                ValueDef::Const(c) => self.check_constant(local.ty, c).err(),
            };
            if let Some(message) = fault {
                self.head_fault(message);
            }
            if self.is_full() {
                return;
            }
        }
    }

    fn check_constant(&self, ty: TypeId, c: Const) -> Result<(), String> {
        let kind = self.m.types.kind(ty);
        let fits = match c {
            Const::Unit => ty == fixed::UNIT,
            Const::Zero => !matches!(kind, TypeKind::Prim(_)),
            Const::Str(s) => {
                s.index() < self.m.num_strings()
                    && matches!(kind, TypeKind::Str | TypeKind::RawPtr(fixed::U8))
            }
            Const::Bits(bits) => match kind {
                TypeKind::Prim(PrimType::Unit) => false,
                TypeKind::Prim(p) => bits & !p.mask() == 0,
                TypeKind::Enum(e) => {
                    let def = self.m.types.enum_def(e);
                    def.category == Category::Value && bits < def.variants.len() as u64
                }
                _ => false,
            },
        };
        if fits {
            return Ok(());
        }
        let name = print_type(&self.m.types, ty);
        Err(format!("a constant of type `{name}` has the payload {c:?}"))
    }

    pub(super) fn is_vector(&self, ty: TypeId) -> bool {
        self.m.types.contains(ty) && matches!(self.m.types.kind(ty), TypeKind::Vec(..))
    }

    /// Whether values of a type are what a lowered function returns when that is several values.
    pub(super) fn is_several(&self, ty: TypeId) -> bool {
        let types = &self.m.types;
        let is_one = |ty: &TypeId| *ty != fixed::UNIT && !types.is_aggregate(*ty);
        let is_struct = types.contains(ty) && matches!(types.kind(ty), TypeKind::Struct(_));
        is_struct && types.members(ty).is_some_and(|m| m.len() > 1 && m.iter().all(is_one))
    }

    /// Whether values of the type may exist here.
    pub(super) fn check_type(&self, ty: TypeId) -> Result<(), String> {
        let types = &self.m.types;
        if !types.contains(ty) {
            return Err(format!("type {} does not exist", ty.0));
        }
        if self.stage == Stage::Surface && self.f.domain == Domain::Device {
            return Ok(());
        }
        let name = || print_type(types, ty);
        let wide = |p: PrimType| p.bit_width() > 64 || p == PrimType::U1;
        match (self.f.domain, types.kind(ty)) {
            (Domain::Device, _) if self.is_device_value(ty) => Ok(()),
            (Domain::Device, _) => Err(format!("`{}` is no type of device code", name())),
            (_, TypeKind::Prim(p) | TypeKind::Vec(p, _)) if wide(p) => {
                Err(format!("`{}` is not supported", name()))
            }
            (Domain::LowHost, TypeKind::Vec(p, n)) if fills_registers(p, n) => Ok(()),
            (Domain::LowHost, TypeKind::Vec(..)) => {
                Err(format!("`{}` does not fill registers of 128 bits", name()))
            }
            (_, TypeKind::Vec(..) | TypeKind::SharedArray(..) | TypeKind::LocalArray(..)) => {
                Err(format!("`{}` is a type of device code", name()))
            }
            (Domain::LowHost, _) if types.is_aggregate(ty) && !self.is_several(ty) => {
                Err(format!("lowered host code has no aggregates such as `{}`", name()))
            }
            (Domain::Host | Domain::LowHost, _) => Ok(()),
        }
    }

    fn is_device_value(&self, ty: TypeId) -> bool {
        match self.m.types.kind(ty) {
            TypeKind::Buffer(t) | TypeKind::SharedArray(t, _) | TypeKind::LocalArray(t, _) => {
                self.is_device_element(t)
            }
            // The text of `gpu.print`.
            TypeKind::Str => true,
            _ => ty == fixed::UNIT || self.is_device_element(ty),
        }
    }

    /// Whether device memory can hold the type: scalars, vectors, value structs of them.
    fn is_device_element(&self, ty: TypeId) -> bool {
        let types = &self.m.types;
        let mut rest = vec![ty];
        while let Some(ty) = rest.pop() {
            match types.kind(ty) {
                TypeKind::Prim(PrimType::Unit | PrimType::U1) => return false,
                TypeKind::Prim(p) | TypeKind::Vec(p, _) if p.bit_width() > 64 => return false,
                TypeKind::Vec(_, n) if n > 4 => return false,
                TypeKind::Prim(_) | TypeKind::Vec(..) => {}
                TypeKind::Struct(s) if types.struct_def(s).category == Category::Value => {
                    rest.extend(types.struct_def(s).fields.iter().map(|f| f.ty));
                }
                _ => return false,
            }
        }
        true
    }
}

/// Whether vectors of a type are whole registers of 128 bits. Those of `bool` are as wide as what
/// was compared.
fn fills_registers(p: PrimType, n: u8) -> bool {
    let is_float = matches!(p, PrimType::F32 | PrimType::F64);
    let bits = u32::from(n) * p.bit_width();
    p == PrimType::Bool && n.is_power_of_two()
        || (p.is_int() || is_float) && bits.is_multiple_of(128)
}
