//! Code in memory: a Cranelift module with the runtime's symbols, and the functions it holds.

use crate::helpers::Helper;
use crate::pure::Calls;
use crate::runtime::Runtime;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{self, AbiParam, InstBuilder, Signature, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module as _, ModuleError};
use magpie_types::abi::{AbiReturn, AbiType, RtFn};
use std::sync::OnceLock;

/// Why code could not be made.
#[derive(Debug)]
pub struct JitError(pub String);

impl std::fmt::Display for JitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot generate machine code: {}", self.0)
    }
}

impl std::error::Error for JitError {}

impl From<ModuleError> for JitError {
    fn from(e: ModuleError) -> JitError {
        match e {
            // The inner error prints the whole function without this.
            ModuleError::Compilation(e) => JitError(format!("{e:?}")),
            e => JitError(e.to_string()),
        }
    }
}

/// This processor, or with `MAGPIE_CPU=baseline` any of its architecture.
fn isa() -> Result<OwnedTargetIsa, JitError> {
    static ISA: OnceLock<Result<OwnedTargetIsa, String>> = OnceLock::new();
    let made = ISA.get_or_init(|| {
        let mut flags = settings::builder();
        let verify = if cfg!(debug_assertions) { "true" } else { "false" };
        for (name, value) in [
            ("opt_level", "speed"),
            ("enable_verifier", verify),
            ("is_pic", "false"),
            ("use_colocated_libcalls", "false"),
            ("unwind_info", "false"),
            // Several results of a call by address, when they are too many for registers.
            ("enable_multi_ret_implicit_sret", "true"),
        ] {
            flags.set(name, value).map_err(|e| e.to_string())?;
        }
        let here = std::env::var_os("MAGPIE_CPU").is_none_or(|cpu| cpu != "baseline");
        cranelift_native::builder_with_options(here)?
            .finish(settings::Flags::new(flags))
            .map_err(|e| e.to_string())
    });
    made.clone().map_err(JitError)
}

/// A module under construction. References to callees are made once a function.
pub(crate) struct Code<'r> {
    pub(crate) jit: JITModule,
    pub(crate) runtime: &'r mut dyn Runtime,
    rt_ids: Vec<Option<FuncId>>,
    helper_ids: [Option<FuncId>; Helper::COUNT],
    /// Detours to runtime functions ([`Code::detour`]), and those used in this function.
    detours: Vec<(RtFn, FuncId)>,
    detour_refs: Vec<(RtFn, ir::FuncRef)>,
    rt_refs: Vec<Option<ir::FuncRef>>,
    helper_refs: [Option<ir::FuncRef>; Helper::COUNT],
}

impl<'r> Code<'r> {
    pub(crate) fn new(runtime: &'r mut dyn Runtime) -> Result<Code<'r>, JitError> {
        let mut builder = JITBuilder::with_isa(isa()?, cranelift_module::default_libcall_names());
        for &f in RtFn::ALL {
            builder.symbol(f.symbol(), runtime.function(f));
        }
        for h in [
            Helper::F16ToF32,
            Helper::F32ToF16,
            Helper::F64ToF16,
            Helper::F64ToBf16,
            Helper::I64ToBf16,
            Helper::U64ToBf16,
            Helper::F16Fma,
            Helper::Bf16Fma,
            Helper::Subgroup,
        ] {
            builder.symbol(h.symbol(), h.address());
        }
        #[cfg(target_arch = "x86_64")]
        builder.symbol(crate::helpers::PICK_BYTES, crate::helpers::pick_bytes as *const u8);
        Ok(Code {
            jit: JITModule::new(builder),
            runtime,
            rt_ids: vec![None; RtFn::ALL.len()],
            helper_ids: [None; Helper::COUNT],
            detours: Vec::new(),
            detour_refs: Vec::new(),
            rt_refs: vec![None; RtFn::ALL.len()],
            helper_refs: [None; Helper::COUNT],
        })
    }

    /// Forgets the references of the function before.
    pub(crate) fn start_function(&mut self) {
        self.detour_refs.clear();
        self.rt_refs.fill(None);
        self.helper_refs.fill(None);
    }

    fn rt_signature(&self, f: RtFn) -> Signature {
        let mut sig = self.jit.make_signature();
        sig.params.extend(f.params().iter().map(|&(_, t)| abi_param(t)));
        let ptr = AbiParam::new(types::I64);
        match f.ret() {
            AbiReturn::Void | AbiReturn::Never => {}
            AbiReturn::Value(t) => sig.returns.push(abi_param(t)),
            AbiReturn::Status => {
                sig.params.push(ptr);
                sig.returns.push(AbiParam::new(types::I32));
            }
            AbiReturn::StatusOut(_) => {
                sig.params.extend([ptr, ptr]);
                sig.returns.push(AbiParam::new(types::I32));
            }
            AbiReturn::Maybe(_) => {
                sig.params.push(ptr);
                sig.returns.push(abi_param(AbiType::Bool));
            }
        }
        sig
    }

    /// Calls a runtime function that gives nothing back and leaves all registers as they are. What is
    /// called seldom should not decide what a loop around it keeps in registers.
    pub(crate) fn detour(&mut self, func: &mut ir::Function, f: RtFn) -> ir::FuncRef {
        if let Some(&(_, known)) = self.detour_refs.iter().find(|known| known.0 == f) {
            return known;
        }
        let id = match self.detours.iter().find(|known| known.0 == f) {
            Some(&(_, id)) => id,
            None => {
                let name = format!("mp$0$DETOUR${}", f.symbol());
                let sig = self.detour_signature(f);
                let declared = self.jit.declare_function(&name, Linkage::Local, &sig);
                let id = declared.expect("detours are declared once");
                self.detours.push((f, id));
                id
            }
        };
        let r = self.jit.declare_func_in_func(id, func);
        self.detour_refs.push((f, r));
        r
    }

    fn detour_signature(&self, f: RtFn) -> Signature {
        debug_assert!(matches!(f.ret(), AbiReturn::Void));
        Signature { call_conv: CallConv::PreserveAll, ..self.rt_signature(f) }
    }

    /// Makes the detours that were asked for.
    pub(crate) fn define_detours(
        &mut self,
        ctx: &mut Context,
        scratch: &mut FunctionBuilderContext,
    ) -> Result<(), JitError> {
        for (f, id) in std::mem::take(&mut self.detours) {
            self.start_function();
            ctx.func.signature = self.detour_signature(f);
            ctx.func.name = ir::UserFuncName::user(0, id.as_u32());
            let mut b = FunctionBuilder::new(&mut ctx.func, scratch);
            let entry = b.create_block();
            b.append_block_params_for_function_params(entry);
            b.switch_to_block(entry);
            let params = b.block_params(entry).to_vec();
            let callee = self.rt(b.func, f);
            b.ins().call(callee, &params);
            b.ins().return_(&[]);
            b.seal_all_blocks();
            b.finalize(self.jit.target_config());
            self.jit.define_function(id, ctx)?;
            self.jit.clear_context(ctx);
        }
        Ok(())
    }

    fn rt_id(&mut self, f: RtFn) -> FuncId {
        if let Some(id) = self.rt_ids[f as usize] {
            return id;
        }
        let sig = self.rt_signature(f);
        let id = self
            .jit
            .declare_function(f.symbol(), Linkage::Import, &sig)
            .expect("runtime symbols are declared once");
        self.rt_ids[f as usize] = Some(id);
        id
    }
}

impl Calls for Code<'_> {
    fn rt(&mut self, func: &mut ir::Function, f: RtFn) -> ir::FuncRef {
        if let Some(r) = self.rt_refs[f as usize] {
            return r;
        }
        let id = self.rt_id(f);
        let r = self.jit.declare_func_in_func(id, func);
        self.rt_refs[f as usize] = Some(r);
        r
    }

    fn helper(&mut self, func: &mut ir::Function, h: Helper) -> ir::FuncRef {
        let slot = h as usize;
        if let Some(r) = self.helper_refs[slot] {
            return r;
        }
        let id = self.helper_ids[slot].unwrap_or_else(|| {
            let sig = h.signature(self.jit.make_signature());
            self.jit
                .declare_function(h.symbol(), Linkage::Import, &sig)
                .expect("helper symbols are declared once")
        });
        self.helper_ids[slot] = Some(id);
        let r = self.jit.declare_func_in_func(id, func);
        self.helper_refs[slot] = Some(r);
        r
    }
}

/// A parameter or result of the C ABI: `bool` is extended, as C callers do.
fn abi_param(t: AbiType) -> AbiParam {
    match t {
        AbiType::Bool => AbiParam::new(types::I8).uext(),
        AbiType::I32 => AbiParam::new(types::I32),
        AbiType::I64 | AbiType::Ptr => AbiParam::new(types::I64),
        AbiType::F32 => AbiParam::new(types::F32),
        AbiType::F64 => AbiParam::new(types::F64),
    }
}

/// Finished machine code; freed when dropped.
pub struct Executable {
    jit: Option<JITModule>,
}

impl Executable {
    pub(crate) fn new(jit: JITModule) -> Executable {
        Executable { jit: Some(jit) }
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        if let Some(jit) = self.jit.take() {
            // SAFETY: whoever holds an address of this code also holds the `Executable`; it is
            // dropped when no call can be running.
            unsafe { jit.free_memory() };
        }
    }
}
