//! Functions of the module: which copies of source functions exist, and their heads.

use super::*;
use crate::types::{ENDLESS, ENDLESS_HELP, Scope, is_buffer_element};
use magpie_diag::Span;
use magpie_mpir::{Domain, KernelSpans, MpirFn, MpirGpuMeta};
use magpie_types::kernel::GpuBackend;
use magpie_types::{RefMode, Sid, SidKind, TypeKind};

/// Names an [`Instance`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct InstanceId(pub(super) u32);

/// A copy of a source function: for the host or for the device, and for a list of type arguments.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) function: FunctionId,
    pub(super) type_args: Vec<TypeId>,
    pub(super) on_device: bool,
    pub(super) fn_id: FnId,
    /// `None` where an error about the type was reported.
    pub(super) params: Vec<Option<TypeId>>,
    /// `None` when an error about the type was reported.
    pub(super) result: Option<TypeId>,
}

/// The workgroup size of a kernel that declares none.
const DEFAULT_WORKGROUP: [u32; 3] = [64, 1, 1];

impl Lowering<'_> {
    /// The host copy of a function without type parameters.
    pub(super) fn host_function(&mut self, function: FunctionId) -> InstanceId {
        match self.host[function.0 as usize] {
            Some(known) => known,
            None => {
                let id = self.add_instance(function, Vec::new(), false, None);
                self.host[function.0 as usize] = Some(id);
                id
            }
        }
    }

    /// The device copy of a function without type parameters, or the kernel.
    pub(super) fn device_function(&mut self, function: FunctionId) -> InstanceId {
        match self.device[function.0 as usize] {
            Some(known) => known,
            None => {
                let id = self.add_instance(function, Vec::new(), true, None);
                self.device[function.0 as usize] = Some(id);
                id
            }
        }
    }

    /// The copy of a generic function for a list of type arguments; `None` when there are too many
    /// copies, which is reported once.
    pub(super) fn generic_function(
        &mut self,
        function: FunctionId,
        type_args: Vec<TypeId>,
        on_device: bool,
        span: Span,
    ) -> Option<InstanceId> {
        let key = (function, on_device, type_args);
        if let Some(&known) = self.generic.get(&key) {
            return known;
        }
        let id = if self.types.instances_left == 0 {
            self.report(Diagnostic::new(Code::MPL2020, span, ENDLESS).with_help(ENDLESS_HELP));
            None
        } else {
            self.types.instances_left -= 1;
            Some(self.add_instance(function, key.2.clone(), on_device, None))
        };
        self.generic.insert(key, id);
        id
    }

    /// Adds a kernel; `None` when it cannot be one, which is reported.
    pub(super) fn kernel(&mut self, function: FunctionId) -> Option<FnId> {
        let (module, decl) = self.program.function(function);
        let scope = self.program.module(module);
        let clauses = decl.gpu.as_ref()?;
        let mut errors = Vec::new();
        if !decl.type_params.is_empty() {
            errors.push(
                Diagnostic::new(Code::MPT2050, scope.span(decl.head), "a kernel cannot be generic")
                    .with_help("write a kernel for each type, and a generic function they call"),
            );
        }
        let word = scope.name(clauses.target.symbol);
        let target = GpuBackend::from_name(word).filter(|t| GpuBackend::TARGETS.contains(t));
        if target.is_none() {
            errors.push(
                Diagnostic::new(
                    Code::MPG_CORE_1300,
                    scope.span(clauses.target_clause),
                    format!("there is no back end `{word}`"),
                )
                .with_help("write `spv`, `msl`, `ptx`, `hip` or `wgsl`"),
            );
        }
        let mut workgroup = clauses.workgroup.map_or(DEFAULT_WORKGROUP, |w| w.size);
        if let Some(clause) = clauses.workgroup.filter(|_| workgroup.contains(&0)) {
            workgroup = DEFAULT_WORKGROUP;
            self.kernel_findings.push(
                Diagnostic::new(
                    Code::MPG_CORE_1302,
                    scope.span(clause.range),
                    "a workgroup has at least one invocation in each dimension",
                )
                .with_help("write 1 for a dimension that is not used"),
            );
        }
        let capabilities = clauses.requires.iter().flat_map(|r| &scope.ast()[r.capabilities]);
        let meta = MpirGpuMeta {
            target: target.unwrap_or(GpuBackend::Spv),
            workgroup,
            is_unsafe: decl.is_unsafe,
            requires: capabilities.map(|name| scope.name(name.symbol).to_string()).collect(),
            spans: KernelSpans {
                head: scope.span(decl.head),
                target: scope.span(clauses.target_clause),
                workgroup: clauses.workgroup.map_or(Span::NONE, |w| scope.span(w.range)),
                requires: clauses.requires.map_or(Span::NONE, |r| scope.span(r.range)),
            },
        };
        let failed = !errors.is_empty();
        self.report_all(errors);
        if failed && !decl.type_params.is_empty() {
            return None;
        }
        let id = self.add_instance(function, Vec::new(), true, Some(meta));
        self.device[function.0 as usize] = Some(id);
        let instance = &self.instances[id.0 as usize];
        let fn_id = instance.fn_id;
        if instance.result.is_some_and(|ty| ty != fixed::UNIT) {
            let span = scope.span(decl.result.range);
            self.report(
                Diagnostic::new(Code::MPG_CORE_1303, span, "a kernel has no result")
                    .with_help("write `-> unit`, and store results in a buffer"),
            );
        }
        Some(fn_id)
    }

    /// Adds a function with its head; the body is lowered later.
    fn add_instance(
        &mut self,
        function: FunctionId,
        type_args: Vec<TypeId>,
        on_device: bool,
        meta: Option<MpirGpuMeta>,
    ) -> InstanceId {
        let program = self.program;
        let (module, decl) = program.function(function);
        let scope = program.module(module);
        let ast = scope.ast();
        let params: Vec<_> = ast[decl.type_params].iter().map(|p| p.name.symbol).collect();
        let type_scope = Scope { params: &params, args: &type_args };
        if decl.is_async {
            self.report(
                Diagnostic::new(
                    Code::MPT2050,
                    scope.span(decl.head),
                    "`async fn` is not supported by this release",
                )
                .with_help("write `fn`; GPU work overlaps with `gpu.launch_async`"),
            );
        }
        let mut param_types = Vec::with_capacity(decl.params.len());
        for param in &ast[decl.params] {
            let ty = self
                .with_types(|types, cx| types.of_use(cx, module, param.ty, type_scope, on_device));
            param_types.push(ty.map(|ty| self.device_type(ty, on_device)));
        }
        let result = self
            .with_types(|types, cx| types.of_use(cx, module, decl.result, type_scope, on_device));
        let source_name = scope.full_function_name(decl.name.symbol);
        let mut name = source_name;
        if !type_args.is_empty() {
            let args: Vec<String> =
                type_args.iter().map(|&ty| self.module.types.name(ty)).collect();
            name = format!("{name}<{}>", args.join(", "));
        }
        let sid = Sid::new(SidKind::Function, &name);
        if on_device && meta.is_none() {
            name.push_str(".device");
        }
        let domain = if on_device { Domain::Device } else { Domain::Host };
        let is_kernel = meta.is_some();
        let ret_ty = if is_kernel { fixed::UNIT } else { result.unwrap_or(fixed::UNIT) };
        let mut f = MpirFn::new(sid, name, ret_ty, domain);
        f.span = scope.span(decl.head);
        f.gpu_meta = meta;
        for (param, ty) in ast[decl.params].iter().zip(&param_types) {
            let name = scope.name(param.name.symbol);
            f.add_param(name, ty.unwrap_or(fixed::UNIT), scope.span(param.range()));
        }
        let fn_id = self.module.add_fn(f);
        self.instances.push(Instance {
            function,
            type_args,
            on_device,
            fn_id,
            params: param_types,
            result,
        });
        InstanceId(self.instances.len() as u32 - 1)
    }

    /// A parameter type as device code has it: nothing is counted there, so that a borrow of a
    /// buffer or of a copied value is the thing itself.
    fn device_type(&self, ty: TypeId, on_device: bool) -> TypeId {
        let types = &self.module.types;
        match types.kind(ty) {
            TypeKind::Ref(RefMode::Borrow, t) if on_device && is_device_value(types, t) => t,
            TypeKind::Ref(RefMode::MutBorrow, t)
                if on_device && matches!(types.kind(t), TypeKind::Buffer(_)) =>
            {
                t
            }
            _ => ty,
        }
    }
}

fn is_device_value(types: &TypeCtx, ty: TypeId) -> bool {
    matches!(types.kind(ty), TypeKind::Buffer(_)) || is_buffer_element(types, ty)
}
