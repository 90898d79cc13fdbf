//! Typed lowering: syntax trees → rich MPIR.
//!
//! [`Lowering`] knows the functions of the program; [`body::Body`] lowers one. Kernels and what
//! they reach come first, as device functions; then every plain function for the host. Generic
//! functions are copied for each list of type arguments, when a call asks for it.
//!
//! The law of this stage: an operand or a type about which an error was reported is *poisoned*;
//! what depends on it is skipped in silence.

mod arithmetic;
mod arrays;
mod body;
mod builtin_bodies;
mod builtin_call;
mod call;
mod callable;
mod constant;
mod control;
mod declarations;
mod device_memory;
mod enums;
mod impls;
mod instances;
mod launch;
mod maps;
mod names;
mod ops;
mod ownership;
mod phi;
mod pointers;
mod skeleton;
mod strings;
mod structs;
mod terminators;

use crate::ast::*;
use crate::builtins::BuiltinId;
use crate::resolve::{FunctionId, ModuleId, Program};
use crate::types::{TypeWork, Types};
use impls::Impls;
use instances::{Instance, InstanceId};
use magpie_diag::{Code, Diagnostic};
use magpie_mpir::{Domain, FnId, Module, Op as MpirOp, Place};
use magpie_types::{TypeCtx, TypeId, fixed};
use rustc_hash::FxHashMap;

/// More errors than this, or more other findings, are not kept.
const MAX_FINDINGS: usize = 1000;
/// Behind this many findings no similar names are looked for.
pub(crate) const MAX_SUGGESTING: usize = 50;

/// What lowering made.
pub(crate) struct Lowered {
    pub(crate) module: Module,
    pub(crate) main: Option<FnId>,
    pub(crate) kernels: Vec<FnId>,
    pub(crate) tests: Vec<FnId>,
    /// See [`crate::Output::kernel_findings`].
    pub(crate) kernel_findings: Vec<Diagnostic>,
    /// See [`crate::Output::lints`].
    pub(crate) lints: Vec<Diagnostic>,
}

/// Something about which an error was reported.
#[derive(Clone, Copy, Debug)]
struct Poisoned;

type Lower<T = Out> = Result<T, Poisoned>;

/// What an instruction gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Out {
    Value(magpie_mpir::Value),
    /// Nothing: its type is `unit`.
    Unit,
}

impl From<Option<magpie_mpir::Value>> for Out {
    fn from(value: Option<magpie_mpir::Value>) -> Out {
        value.map_or(Out::Unit, Out::Value)
    }
}

/// The state of lowering a program.
struct Lowering<'p> {
    program: &'p Program,
    types: Types,
    module: Module,
    diagnostics: Vec<Diagnostic>,
    kernel_findings: Vec<Diagnostic>,
    lints: Vec<Diagnostic>,
    /// How many errors and how many other findings this stage has kept.
    errors: usize,
    warnings: usize,
    /// In the order in which they were asked for.
    instances: Vec<Instance>,
    /// By [`FunctionId`]: the host copy of a function without type parameters.
    host: Vec<Option<InstanceId>>,
    /// By [`FunctionId`]: the kernel, or the device copy of a function without type parameters.
    device: Vec<Option<InstanceId>>,
    generic: FxHashMap<(FunctionId, bool, Vec<TypeId>), Option<InstanceId>>,
    /// By [`FunctionId`]: whether only kernels can run it.
    device_only: Vec<bool>,
    /// The functions made for built-in ones.
    builtin_functions: FxHashMap<(BuiltinId, Option<TypeId>), FnId>,
    impls: Impls,
    /// Memory that function bodies use one after the other.
    scratch: body::Scratch,
    /// The next instance whose body is to be lowered.
    next: usize,
}

/// Lowers a program. Diagnostics of this stage are added; when one of all of them is an error, the
/// module is not to be used.
pub(crate) fn lower(
    program: &Program,
    max_instances: u32,
    diagnostics: &mut Vec<Diagnostic>,
) -> Lowered {
    let mut lowering = Lowering {
        program,
        types: Types::new(program, max_instances),
        module: Module::new(),
        diagnostics: std::mem::take(diagnostics),
        kernel_findings: Vec::new(),
        lints: Vec::new(),
        errors: 0,
        warnings: 0,
        instances: Vec::new(),
        host: vec![None; program.functions.len()],
        device: vec![None; program.functions.len()],
        generic: FxHashMap::default(),
        device_only: vec![false; program.functions.len()],
        builtin_functions: FxHashMap::default(),
        impls: Impls::default(),
        scratch: body::Scratch::default(),
        next: 0,
    };
    let (main, kernels, tests) = lowering.run().unwrap_or_default();
    let Lowering { module, kernel_findings, lints, .. } = lowering;
    *diagnostics = lowering.diagnostics;
    Lowered { module, main, kernels, tests, kernel_findings, lints }
}

/// `@main`, the kernels, and the tests of a program.
type Roots = (Option<FnId>, Vec<FnId>, Vec<FnId>);

impl<'p> Lowering<'p> {
    /// Lowers everything; gives up when types do not fit.
    fn run(&mut self) -> Option<Roots> {
        let program = self.program;
        self.with_types(crate::types::define_all);
        if !self.check_type_sizes() {
            return None;
        }
        self.check_declarations();
        self.collect_impls();
        let kernels: Vec<FunctionId> =
            program.function_ids().filter(|&id| program.function(id).1.gpu.is_some()).collect();
        let kernels: Vec<FnId> = kernels.iter().filter_map(|&id| self.kernel(id)).collect();
        self.lower_bodies();
        self.find_device_only();
        for id in program.function_ids() {
            let decl = program.function(id).1;
            if decl.gpu.is_none() && decl.type_params.is_empty() && !self.device_only[id.0 as usize]
            {
                self.host_function(id);
            }
        }
        self.lower_bodies();
        let mut is_copied = vec![false; program.functions.len()];
        self.instances.iter().for_each(|i| is_copied[i.function.0 as usize] = true);
        for id in program.function_ids() {
            let is_generic = !program.function(id).1.type_params.is_empty();
            if is_generic && !is_copied[id.0 as usize] {
                body::check_generic(self, id);
            }
        }
        self.lower_bodies();
        self.with_types(|types, cx| types.define_instances(cx));
        self.check_type_sizes();
        Some((self.main(), kernels, self.tests()))
    }

    /// Whether all types made so far are small enough; those that are not are reported.
    fn check_type_sizes(&mut self) -> bool {
        let entry = self.program.module(ModuleId(0));
        let header = entry.span(entry.ast().header.module.range);
        let mut findings = Vec::new();
        crate::types::check_limits(&self.types, &self.module.types, header, &mut findings);
        let all_fit = findings.is_empty();
        self.diagnostics.append(&mut findings);
        all_fit
    }

    /// Adds a finding, unless there are so many that nobody reads them.
    fn report(&mut self, finding: Diagnostic) {
        let kept = if finding.is_error() { &mut self.errors } else { &mut self.warnings };
        if *kept < MAX_FINDINGS {
            *kept += 1;
            self.diagnostics.push(finding);
        }
    }

    fn report_all(&mut self, findings: impl IntoIterator<Item = Diagnostic>) {
        findings.into_iter().for_each(|finding| self.report(finding));
    }

    /// Whether an error may look for a name like the wrong one: that takes time, and helps nobody
    /// among many errors.
    fn may_suggest(&self) -> bool {
        self.diagnostics.len() < MAX_SUGGESTING
    }

    fn types(&mut self) -> &mut TypeCtx {
        &mut self.module.types
    }

    fn with_types<R>(&mut self, f: impl FnOnce(&mut Types, &mut TypeWork<'_>) -> R) -> R {
        let mut cx = TypeWork {
            program: self.program,
            ctx: &mut self.module.types,
            diagnostics: &mut self.diagnostics,
        };
        f(&mut self.types, &mut cx)
    }

    /// Lowers the bodies of all instances that were asked for, and of those that this asks for.
    fn lower_bodies(&mut self) {
        while self.next < self.instances.len() && self.errors < MAX_FINDINGS {
            let id = InstanceId(self.next as u32);
            self.next += 1;
            self.with_types(|types, cx| types.define_instances(cx));
            body::lower_body(self, id);
        }
    }

    /// Marks plain functions that use device operations, themselves or through others, among those
    /// that kernels reach.
    fn find_device_only(&mut self) {
        let count = self.module.fns.len();
        let mut callers: Vec<Vec<u32>> = vec![Vec::new(); count];
        let mut work = Vec::new();
        let mut marked = vec![false; count];
        let device = |f: &magpie_mpir::MpirFn| f.domain == Domain::Device && !f.is_kernel();
        for (n, f) in self.module.fns.iter().enumerate().filter(|(_, f)| device(f)) {
            for block in &f.blocks {
                for &i in &block.insts {
                    let data = f.inst(i);
                    if data.op == MpirOp::Call {
                        callers[data.func().index()].push(n as u32);
                    } else if data.op.info().place == Place::Device && !marked[n] {
                        marked[n] = true;
                        work.push(n as u32);
                    }
                }
            }
        }
        while let Some(callee) = work.pop() {
            for caller in std::mem::take(&mut callers[callee as usize]) {
                if !std::mem::replace(&mut marked[caller as usize], true) {
                    work.push(caller);
                }
            }
        }
        for instance in &self.instances {
            if instance.on_device && marked[instance.fn_id.index()] {
                self.device_only[instance.function.0 as usize] = true;
            }
        }
    }

    fn main(&mut self) -> Option<FnId> {
        let program = self.program;
        let id = program.function_ids().find(|&id| {
            let (module, decl) = program.function(id);
            module == ModuleId(0) && program.module(module).name(decl.name.symbol) == "main"
        })?;
        let (module, decl) = program.function(id);
        let span = program.module(module).span(decl.head);
        let Some(instance) = self.host[id.0 as usize] else {
            let is_plain = decl.gpu.is_none() && decl.type_params.is_empty();
            if !is_plain {
                self.report_main(span);
            }
            return None;
        };
        let instance = &self.instances[instance.0 as usize];
        let fits = instance.params.is_empty()
            && !decl.is_unsafe
            && matches!(instance.result, None | Some(fixed::UNIT | fixed::I32 | fixed::I64));
        let fn_id = instance.fn_id;
        if !fits {
            self.report_main(span);
        }
        Some(fn_id)
    }

    fn report_main(&mut self, span: magpie_diag::Span) {
        let message =
            "`@main` is a plain function without parameters that returns i64, i32 or unit";
        self.report(
            Diagnostic::new(Code::MPL0005, span, message)
                .with_help("write `fn @main() -> i64`; program arguments come from `std.os.@args`"),
        );
    }

    fn tests(&self) -> Vec<FnId> {
        let program = self.program;
        let is_test = |&id: &FunctionId| {
            let (module, decl) = program.function(id);
            let name = program.module(module).name(decl.name.symbol);
            name.starts_with("test_") && decl.params.is_empty() && !decl.is_unsafe
        };
        let hosts =
            program.function_ids().filter(is_test).filter_map(|id| self.host[id.0 as usize]);
        let instances = hosts.map(|id| &self.instances[id.0 as usize]);
        instances.filter(|i| i.result == Some(fixed::UNIT)).map(|i| i.fn_id).collect()
    }
}
