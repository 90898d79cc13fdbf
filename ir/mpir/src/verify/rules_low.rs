//! Rules of lowered host code: addresses, memory, calls by address.

use super::inst::InstCheck;
use super::{Check, Fault};
use crate::Domain;
use magpie_types::abi::{AbiReturn, AbiType};
use magpie_types::{Category, TypeId, TypeKind, fixed};

impl InstCheck<'_, '_> {
    fn address(&self, n: usize, ty: TypeId) -> Check {
        match self.is_address(ty) {
            true => Ok(()),
            false => Err(self.wrong_operand(n, ty, "an address")),
        }
    }

    /// Raw pointers and handles of objects.
    fn is_address(&self, ty: TypeId) -> bool {
        match self.types().kind(ty) {
            TypeKind::RawPtr(_) | TypeKind::Ref(..) => true,
            _ => self.types().is_heap(ty),
        }
    }

    fn address_result(&self) -> Check {
        match self.types().kind(self.data.ty) {
            TypeKind::RawPtr(_) => Ok(()),
            _ => Err(self.wrong_result("a raw pointer")),
        }
    }

    pub(super) fn mem_load(&self) -> Check {
        let [address] = self.operands()?;
        self.address(0, address)?;
        match self.data.ty {
            fixed::UNIT => Err(self.wrong_result("a value")),
            _ => Ok(()),
        }
    }

    pub(super) fn mem_store(&self) -> Check {
        let [address, value] = self.operands()?;
        self.address(0, address)?;
        if value == fixed::UNIT {
            return Err(self.wrong_operand(1, value, "a value"));
        }
        self.result_is(fixed::UNIT)
    }

    pub(super) fn ptr_add(&self) -> Check {
        let [address, bytes] = self.operands()?;
        self.address(0, address)?;
        self.same(1, bytes, fixed::I64)?;
        self.address_result()
    }

    pub(super) fn stack_slot(&self) -> Check {
        let (size, align) = (self.data.imm_lo(), self.data.imm_hi());
        if size == 0 || size > 1 << 20 || !align.is_power_of_two() || align > 64 {
            let message = "a slot has 1 byte to 1 MiB, aligned to a power of two of at most 64";
            return Err(Fault::structure(message));
        }
        self.address_result()
    }

    pub(super) fn fn_addr(&self) -> Check {
        if self.data.imm_hi() != 0 {
            return Err(Fault::structure("`bits` mean nothing here"));
        }
        let f = self.v.m.func(self.data.func());
        if f.domain != Domain::LowHost {
            return Err(Fault::structure(format!("`{}` is no lowered host function", f.name)));
        }
        self.address_result()
    }

    pub(super) fn type_info_addr(&self) -> Check {
        let described = TypeId(self.data.imm_lo());
        let is_heap_struct = match self.types().kind(described) {
            TypeKind::Struct(s) => self.types().struct_def(s).category == Category::Heap,
            _ => false,
        };
        let fits = match self.data.imm_hi() {
            0 => true,
            1 => self.types().object_layout(described).is_some(),
            2 => is_heap_struct,
            _ => false,
        };
        if !fits {
            let (name, object) = (self.name(described), self.data.imm_hi());
            return Err(Fault::structure(format!("`{name}` has no description `object={object}`")));
        }
        self.address_result()
    }

    pub(super) fn rt_raw(&self) -> Check {
        let rt = self.data.rt();
        let out: &[AbiType] = match rt.ret() {
            AbiReturn::Void | AbiReturn::Never | AbiReturn::Value(_) => &[],
            AbiReturn::Status | AbiReturn::Maybe(_) => &[AbiType::Ptr],
            AbiReturn::StatusOut(_) => &[AbiType::Ptr, AbiType::Ptr],
        };
        let params: Vec<AbiType> =
            rt.params().iter().map(|p| p.1).chain(out.iter().copied()).collect();
        self.count_is(params.len())?;
        for (n, &param) in params.iter().enumerate() {
            if !self.is_machine(self.ty(n), param) {
                let wanted = format!("a value that is passed as {param:?}");
                return Err(self.wrong_operand(n, self.ty(n), &wanted));
            }
        }
        let ty = self.data.ty;
        let fits = match rt.ret() {
            AbiReturn::Void | AbiReturn::Never => ty == fixed::UNIT,
            AbiReturn::Value(abi) => self.is_machine(ty, abi),
            AbiReturn::Status | AbiReturn::StatusOut(_) => ty == fixed::I32,
            AbiReturn::Maybe(_) => ty == fixed::BOOL,
        };
        let wanted = || format!("what `{}` gives back as {:?}", rt.symbol(), rt.ret());
        if fits { Ok(()) } else { Err(self.wrong_result(&wanted())) }
    }

    fn is_machine(&self, ty: TypeId, abi: AbiType) -> bool {
        match abi {
            AbiType::Bool => ty == fixed::BOOL,
            AbiType::I32 => matches!(ty, fixed::I32 | fixed::U32),
            AbiType::I64 => matches!(ty, fixed::I64 | fixed::U64),
            AbiType::F32 => ty == fixed::F32,
            AbiType::F64 => ty == fixed::F64,
            AbiType::Ptr => self.is_address(ty),
        }
    }

    pub(super) fn call_addr(&self) -> Check {
        let Some(first) = self.args().first() else {
            return Err(Fault::ill_typed("it has no operands, expected an address"));
        };
        self.address(0, self.v.f.ty(*first))?;
        match (1..self.args().len()).find(|&n| self.ty(n) == fixed::UNIT) {
            Some(n) => Err(self.wrong_operand(n, fixed::UNIT, "a value")),
            None => Ok(()),
        }
    }
}
