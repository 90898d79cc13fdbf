//! Rules of calls, callables and launches.

use super::inst::InstCheck;
use super::{Check, Fault, Stage};
use crate::ownership::{is_derived_param, is_view, operand_params};
use crate::{Domain, MpirFn, Op};
use magpie_types::abi::{AbiReturn, AbiType, RtFn};
use magpie_types::{Category, OpaqueKind, RefMode, SigDef, TypeId, TypeKind, fixed};

impl InstCheck<'_, '_> {
    /// Whether a value of type `arg` may be given for a parameter of type `param`: the same type,
    /// or anything that can be looked at as the parameter's view asks.
    fn passes(&self, arg: TypeId, param: TypeId) -> bool {
        if arg == param {
            return true;
        }
        match (self.types().kind(param), self.types().kind(arg)) {
            (TypeKind::Ref(RefMode::Borrow, want), TypeKind::Ref(mode, have)) => {
                want == have && mode != RefMode::Weak
            }
            (TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, want), _) => want == arg,
            _ => false,
        }
    }

    fn pass(&self, n: usize, arg: TypeId, param: TypeId) -> Check {
        match self.passes(arg, param) {
            true => Ok(()),
            false => self.same(n, arg, param),
        }
    }

    /// The operands from `first` on are passed for the parameters.
    fn pass_all(&self, first: usize, params: &[TypeId]) -> Check {
        self.count_is(first + params.len())?;
        let mut pairs = params.iter().enumerate();
        pairs.try_for_each(|(n, &param)| self.pass(first + n, self.ty(first + n), param))
    }

    fn callee(&self) -> &MpirFn {
        self.v.m.func(self.data.func())
    }

    pub(super) fn call(&self) -> Check {
        self.no_bits()?;
        let callee = self.callee();
        if callee.domain != self.v.f.domain {
            let message = format!("`{}` belongs to another domain", callee.name);
            return Err(Fault::structure(message));
        }
        // A kernel that calls a kernel is refused with the rules of the language.
        let not_yet_refused = self.v.stage == Stage::Surface && self.v.f.domain == Domain::Device;
        if callee.is_kernel() && !not_yet_refused {
            return Err(Fault::structure(format!("kernel `{}` can only be launched", callee.name)));
        }
        let params: Vec<TypeId> = callee.params.iter().map(|p| p.1).collect();
        self.pass_all(0, &params)?;
        self.result_is(callee.ret_ty)
    }

    fn no_bits(&self) -> Check {
        match self.data.imm_hi() {
            0 => Ok(()),
            bits => Err(Fault::structure(format!("`bits={bits}` mean nothing here"))),
        }
    }

    // ----- runtime functions -----

    pub(super) fn rt_call(&self) -> Check {
        let rt = self.data.rt();
        let params: Vec<usize> = operand_params(rt).collect();
        self.count_is(params.len())?;
        for (n, &param) in params.iter().enumerate() {
            self.abi_operand(n, rt.params()[param].1)?;
            if rt.consumes(param) && is_view(self.types(), self.ty(n)) {
                return Err(self.wrong_operand(n, self.ty(n), "a value to be given away"));
            }
        }
        self.rt_call_result(rt)
    }

    /// Operand `n` travels as a machine type.
    fn abi_operand(&self, n: usize, abi: AbiType) -> Check {
        let ty = self.ty(n);
        if self.travels_as(ty, abi) {
            return Ok(());
        }
        Err(self.wrong_operand(n, ty, &format!("a value that is passed as {abi:?}")))
    }

    fn travels_as(&self, ty: TypeId, abi: AbiType) -> bool {
        match (abi, self.types().kind(ty)) {
            (AbiType::Bool, _) => ty == fixed::BOOL,
            (AbiType::I32, TypeKind::Enum(e)) => {
                self.types().enum_def(e).category == Category::Value
            }
            (AbiType::I32, _) => matches!(ty, fixed::I32 | fixed::U32),
            (AbiType::I64, _) => matches!(ty, fixed::I64 | fixed::U64),
            (AbiType::F32, _) => ty == fixed::F32,
            (AbiType::F64, _) => ty == fixed::F64,
            (AbiType::Ptr, TypeKind::RawPtr(_)) => true,
            // Views of values that are no objects are addresses of their storage.
            (AbiType::Ptr, TypeKind::Ref(..)) => true,
            (AbiType::Ptr, _) => self.types().is_heap(ty),
        }
    }

    fn rt_call_result(&self, rt: RtFn) -> Check {
        let ty = self.data.ty;
        let kind = self.types().kind(ty);
        let fits = match (rt.ret(), kind) {
            (AbiReturn::Void | AbiReturn::Never, _) => ty == fixed::UNIT,
            (AbiReturn::Value(abi), _) => self.travels_as(ty, abi),
            (AbiReturn::Status, TypeKind::Result(t, e)) => {
                t == fixed::UNIT && self.types().is_heap(e)
            }
            (AbiReturn::StatusOut(abi), TypeKind::Result(t, e)) => {
                self.travels_as(t, abi) && self.types().is_heap(e)
            }
            // An error leaves an empty array.
            (AbiReturn::StatusOut(AbiType::Ptr), TypeKind::Array(_)) => true,
            (AbiReturn::Maybe(abi), TypeKind::Option(t)) => self.travels_as(t, abi),
            (AbiReturn::Status | AbiReturn::StatusOut(_) | AbiReturn::Maybe(_), _) => false,
        };
        let wanted = || format!("what `{}` gives back as {:?}", rt.symbol(), rt.ret());
        if !fits {
            return Err(self.wrong_result(&wanted()));
        }
        match self.derived_element(rt) {
            Ok(()) => Ok(()),
            Err(wanted) => Err(self.wrong_result(wanted)),
        }
    }

    /// The derived parameters need an element type: of an array or a buffer in the result.
    fn derived_element(&self, rt: RtFn) -> Result<(), &'static str> {
        if !rt.params().iter().any(|(name, _)| is_derived_param(name)) {
            return Ok(());
        }
        let object = match self.types().kind(self.data.ty) {
            TypeKind::Result(t, _) => t,
            _ => self.data.ty,
        };
        match self.types().kind(object) {
            TypeKind::Array(_) | TypeKind::Buffer(_) => Ok(()),
            _ => Err("an array or a buffer, whose element type is passed on"),
        }
    }

    pub(super) fn panic(&self) -> Check {
        let [text] = self.operands()?;
        match self.types().kind(text) {
            TypeKind::Str => {}
            TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow | RefMode::Shared, fixed::STR) => {}
            _ => return Err(self.wrong_operand(0, text, "`Str`")),
        }
        self.result_is(fixed::UNIT)
    }

    // ----- callables -----

    /// The signature of the callable that operand `n` is or shows.
    pub(super) fn callable(&self, n: usize) -> Check<&SigDef> {
        let ty = self.ty(n);
        match self.types().kind(self.seen_through(ty)) {
            TypeKind::Callable(sig) => Ok(self.types().sig_def(sig)),
            _ => Err(self.wrong_operand(n, ty, "a callable")),
        }
    }

    pub(super) fn call_indirect(&self) -> Check {
        if self.args().is_empty() {
            return Err(Fault::ill_typed("it has no operands, expected a callable"));
        }
        let sig = self.callable(0)?;
        self.pass_all(1, &sig.params)?;
        self.result_is(sig.ret)
    }

    pub(super) fn callable_capture(&self) -> Check {
        let callee = self.callee();
        if callee.domain != self.v.f.domain && callee.domain != Domain::Host || callee.is_kernel() {
            return Err(Fault::structure(format!("`{}` is no host function", callee.name)));
        }
        let TypeKind::Callable(sig) = self.types().kind(self.data.ty) else {
            return Err(self.wrong_result("a callable"));
        };
        let bound = self.data.imm_hi();
        if callee.params.len() < 32 && bound >> callee.params.len() != 0 {
            return Err(Fault::structure(format!("`bits={bound}` name missing parameters")));
        }
        let is_bound = |n: usize| n < 32 && bound >> n & 1 == 1;
        let params = callee.params.iter().map(|p| p.1).enumerate();
        let (taken, left): (Vec<_>, Vec<_>) = params.partition(|&(n, _)| is_bound(n));
        self.count_is(taken.len())?;
        for (n, &(_, param)) in taken.iter().enumerate() {
            let arg = self.ty(n);
            if is_view(self.types(), arg) {
                return Err(self.wrong_operand(n, arg, "a value that can be stored"));
            }
            self.pass(n, arg, param)?;
        }
        let sig = self.types().sig_def(sig);
        let left: Vec<TypeId> = left.into_iter().map(|p| p.1).collect();
        if sig.params != left || sig.ret != callee.ret_ty {
            let (sig, callee) = (&sig.name, &callee.name);
            let message =
                format!("the parameters left and the result of `{callee}` are not `{sig}`");
            return Err(Fault::ill_typed(message));
        }
        Ok(())
    }

    // ----- launches -----

    pub(super) fn launch(&self) -> Check {
        let kernel = self.callee();
        if !kernel.is_kernel() {
            return Err(Fault::structure(format!("`{}` is no kernel", kernel.name)));
        }
        let fallback = u32::from(self.data.op == Op::GpuLaunch);
        if self.data.imm_hi() > fallback {
            return Err(Fault::structure(format!("`bits={}` mean nothing", self.data.imm_hi())));
        }
        let heads: &[OpaqueKind] = match self.data.op {
            Op::GpuLaunchProfiled => &[OpaqueKind::GpuProfileSession, OpaqueKind::GpuDevice],
            _ => &[OpaqueKind::GpuDevice],
        };
        let first_arg = heads.len() + 6;
        self.count_is(first_arg + kernel.params.len())?;
        for (n, &head) in heads.iter().enumerate() {
            let ty = self.ty(n);
            if self.types().kind(self.seen_through(ty)) != TypeKind::Opaque(head) {
                let name = if n + 1 == heads.len() { "the device" } else { "the session" };
                return Err(self.wrong_operand(n, ty, name));
            }
        }
        for n in heads.len()..first_arg {
            self.same(n, self.ty(n), fixed::U32)?;
        }
        for (n, &(_, param)) in kernel.params.iter().enumerate() {
            let n = first_arg + n;
            match self.types().kind(param) {
                TypeKind::Buffer(_) => self.same(n, self.seen_through(self.ty(n)), param)?,
                _ => self.same(n, self.ty(n), param)?,
            }
        }
        let ok = match self.data.op {
            Op::GpuLaunchAsync => fixed::GPU_FENCE,
            _ => fixed::UNIT,
        };
        match self.types().lookup(TypeKind::Result(ok, fixed::GPU_ERROR)) {
            Some(result) => self.result_is(result),
            None => Err(self.wrong_result("a `TResult` with `gpu.TError`")),
        }
    }
}
