//! [`Kernels`]: the device side of a program, checked and closed, from which blobs are made when a
//! device or an artifact needs them.

use crate::frontend::{Program, short_name};
use crate::miri::MiriChecks;
use crate::session::{Session, Stop};
use magpie_diag::{Diagnostic, SourceMap};
use magpie_gpu::prints::{lower_prints, print_buffer, prints};
use magpie_gpu::surface::{Collisions, check_closed_kernels, check_kernels, check_surface_for};
use magpie_mpir::passes::{Pipeline, carry_callees, inline_calls, reached_by_calls};
use magpie_mpir::verify::{Stage, verify_fn};
use magpie_mpir::{Domain, FnId, Module, MpirFn, Op, print_fn, print_module};
use magpie_types::kernel::GpuBackend;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The kernels of a program. Each is closed: it calls nothing but recursive device functions.
#[derive(Debug)]
pub(crate) struct Kernels {
    /// The module with closed kernels, as the interpreter runs them.
    pub(crate) module: Module,
    /// Every kernel.
    pub(crate) ids: Vec<FnId>,
    /// For places in messages of blobs that are made late.
    pub(crate) sources: SourceMap,
    by_hash: FxHashMap<u64, FnId>,
    optimized: Mutex<Optimized>,
    /// See [`Kernels::canonical_text`].
    definitions: OnceLock<String>,
}

/// A copy of the module in which functions are optimised one by one, when they are needed.
#[derive(Debug, Default)]
struct Optimized {
    module: Option<Module>,
    done: Vec<bool>,
}

impl Kernels {
    /// Checks the rules of the language and of the targets, and closes the kernels. `None` when
    /// the program has none.
    ///
    /// # Errors
    /// The program is refused.
    pub(crate) fn prepare(
        session: &mut Session,
        program: &Program,
    ) -> Result<Option<Kernels>, Stop> {
        let checks_others = program.miri.as_ref().is_some_and(|m| !m.unlaunched.is_empty());
        if program.kernels.is_empty() && !checks_others {
            return Ok(None);
        }
        let mut module = program.module.clone();
        session.time("kernels", |session| {
            check_rules(session, program)?;
            close(session, &mut module)?;
            session.report_all(match &program.miri {
                Some(checks) => checks.findings(&module, &program.kernels),
                None => check_closed_kernels(&module, &program.kernels, Collisions::Harmful),
            });
            session.stop_on_errors()
        })?;
        Ok(Kernels::of_closed(session, module, &program.kernels))
    }

    /// The kernels of a program that was checked when it was built.
    ///
    /// # Errors
    /// They cannot be closed.
    pub(crate) fn of_checked(
        session: &mut Session,
        program: &Program,
    ) -> Result<Option<Kernels>, Stop> {
        let mut module = program.module.clone();
        close(session, &mut module)?;
        Ok(Kernels::of_closed(session, module, &program.kernels))
    }

    fn of_closed(session: &Session, mut module: Module, ids: &[FnId]) -> Option<Kernels> {
        if ids.is_empty() {
            return None;
        }
        // Kernels are lowered late, and make no types then.
        if ids.iter().any(|&id| prints(module.func(id))) {
            print_buffer(&mut module.types);
        }
        let ids = ids.to_vec();
        let by_hash = ids.iter().map(|&id| (module.func(id).sid.hash(), id)).collect();
        let sources = session.sources.clone();
        Some(Kernels {
            module,
            ids,
            sources,
            by_hash,
            optimized: Mutex::default(),
            definitions: OnceLock::new(),
        })
    }

    /// A kernel.
    pub(crate) fn func(&self, id: FnId) -> &MpirFn {
        self.module.func(id)
    }

    /// The target that a kernel declares.
    pub(crate) fn target(&self, id: FnId) -> Option<GpuBackend> {
        self.func(id).gpu_meta.as_ref().map(|meta| meta.target)
    }

    /// The kernel with this hash of its stable id.
    pub(crate) fn by_hash(&self, hash: u64) -> Option<FnId> {
        self.by_hash.get(&hash).copied()
    }

    /// The number by which the runtime knows a kernel.
    pub(crate) fn hash(&self, id: FnId) -> u64 {
        self.func(id).sid.hash()
    }

    /// The name of a kernel in messages.
    pub(crate) fn name(&self, id: FnId) -> &str {
        short_name(self.func(id))
    }

    /// Whether the rules of the language let a kernel exist for a back end: a portable one for all,
    /// an unsafe one for its target, and for the host unless it uses what only its target has.
    pub(crate) fn may_exist_for(&self, id: FnId, backend: GpuBackend) -> bool {
        let f = self.func(id);
        let Some(meta) = &f.gpu_meta else { return false };
        match backend {
            GpuBackend::Cpu | GpuBackend::Interp => !uses_vendor_ops(f),
            GpuBackend::Spv
            | GpuBackend::Msl
            | GpuBackend::Ptx
            | GpuBackend::Hip
            | GpuBackend::Wgsl => meta.target == backend || !meta.is_unsafe,
        }
    }

    /// Everything that decides what a kernel compiles to, as text: the names of the sources, the
    /// definitions of types, the kernel itself.
    pub(crate) fn canonical_text(&self, id: FnId) -> String {
        let mut text = self
            .definitions
            .get_or_init(|| {
                let mut heads = Module::with_types(self.module.types.clone());
                heads.files = self.sources.iter().map(|(_, file)| file.name.clone()).collect();
                print_module(&heads)
            })
            .clone();
        text.push_str(&print_fn(&self.module, self.func(id)));
        for callee in reached_by_calls(&self.module, id) {
            text.push_str(&print_fn(&self.module, self.func(callee)));
        }
        text
    }

    /// Calls `use_it` with a module in which a kernel is optimised.
    pub(crate) fn with_optimized<R>(
        &self,
        id: FnId,
        use_it: impl FnOnce(&Module, &mut Pipeline) -> R,
    ) -> R {
        let mut state = self.optimized.lock().unwrap_or_else(PoisonError::into_inner);
        let Optimized { module, done } = &mut *state;
        let module = module.get_or_insert_with(|| self.module.clone());
        done.resize(module.fns.len(), false);
        let mut pipeline = Pipeline::new();
        if !std::mem::replace(&mut done[id.index()], true) {
            lower_prints(module, id);
            pipeline.optimize_device(module, id);
            for callee in reached_by_calls(module, id) {
                if !std::mem::replace(&mut done[callee.index()], true) {
                    pipeline.optimize_device(module, callee);
                }
            }
            carry_callees(module, id);
        }
        use_it(module, &mut pipeline)
    }
}

/// Reports what is wrong with kernels of a Miri program that is refused for something else.
pub(crate) fn check_beside_errors(
    session: &mut Session,
    mut module: Module,
    kernels: &[FnId],
    checks: &MiriChecks,
) {
    if close_calls(&mut module).is_empty() {
        session.report_all(checks.findings(&module, kernels));
    }
}

/// The rules of the language, for the declared target and for those of `--blobs`.
fn check_rules(session: &mut Session, program: &Program) -> Result<(), Stop> {
    let Program { module, kernels, rules, .. } = program;
    session.report_all(check_kernels(module, kernels, *rules));
    for &id in kernels {
        let meta = module.func(id).gpu_meta.as_ref().filter(|meta| !meta.is_unsafe);
        let Some(meta) = meta else { continue };
        for target in session.options.blobs.clone() {
            if target != meta.target {
                session.report_all(check_surface_for(module, id, *rules, target));
            }
        }
    }
    session.stop_on_errors()
}

/// Copies the device functions that kernels call into them.
fn close(session: &mut Session, module: &mut Module) -> Result<(), Stop> {
    session.report_all(close_calls(module));
    session.stop_on_errors()
}

/// As [`close`]; gives what is wrong.
fn close_calls(module: &mut Module) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    inline_calls(module, &mut errors);
    for id in module.fn_ids().filter(|&id| module.func(id).domain == Domain::Device) {
        errors.extend(verify_fn(module, module.func(id), Stage::Core).err().unwrap_or_default());
    }
    errors
}

/// Whether a kernel has operations of one vendor.
fn uses_vendor_ops(f: &MpirFn) -> bool {
    let ops = f.blocks.iter().flat_map(|block| &block.insts).map(|&i| f.inst(i).op);
    ops.into_iter().any(|op| {
        matches!(op, Op::GpuMetalSimdShuffle | Op::GpuMetalSimdSum | Op::GpuMetalSimdPrefixSum)
    })
}
