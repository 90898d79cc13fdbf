//! Surface rules: what a language may write in a kernel for a target.
//!
//! They run on MPIR as the front end made it, before anything else. What a back end can express
//! is wider and another matter ([`crate::legalize`]): a rule here is a promise of the language,
//! such as "this kernel runs on every target".
//!
//! A kernel is checked together with the functions that it reaches, each instruction once, in the
//! order in which it would be reached; a finding stands at the line of the callee.

mod barriers;
mod bounds_guards;
mod clauses;
mod host_ops;
mod shared_races;
mod types;
mod walk;
mod write_races;

pub use barriers::{check_barriers, check_barriers_strictly};
pub use bounds_guards::check_bounds_guards;
pub use shared_races::check_shared_races;
pub use write_races::{Collisions, check_unproved_writes, check_write_collisions};

use crate::capability::Capability;
use crate::target::TargetLimits;
use magpie_diag::{Code, Diagnostic, Span, sort_diagnostics};
use magpie_mpir::{FnId, Module, MpirFn};
use magpie_types::TypeId;
use magpie_types::kernel::{CUDA_MOST_SHARED, GpuBackend};
use rustc_hash::FxHashSet;

/// A set of rules, each named by what it forbids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuleSet(u16);

impl RuleSet {
    /// Types and operations of the host: heap, ownership, dynamic calls (`MPG_CORE_1100`–`1102`,
    /// `1104`–`1107`, `1304`), and a kernel result (`1303`).
    pub const HOST_FEATURES: RuleSet = RuleSet(1);
    /// Functions that call themselves, without `requires(recursion)` (`MPG_CORE_1103`).
    pub const RECURSION: RuleSet = RuleSet(1 << 1);
    /// Capabilities that are unknown, missing on the target, or used without being listed
    /// (`MPG_CORE_1200`–`1202`, `MPG_MSL_2003`, `MPG_WGSL_1004`).
    pub const UNDECLARED_CAPABILITIES: RuleSet = RuleSet(1 << 2);
    /// Raw pointers where they are missing, or in a kernel that is not `unsafe`
    /// (`MPG_WGSL_1002`, `MPG_SPV_1101`, `MPG_CORE_1200`, `1201`).
    pub const RAW_POINTERS: RuleSet = RuleSet(1 << 3);
    /// Scalar types that the target lacks (`MPG_WGSL_1001`, `1003`, `MPG_CORE_1200`).
    pub const MISSING_SCALARS: RuleSet = RuleSet(1 << 4);
    /// Value structs in memory on `wgsl` (`MPG_WGSL_1001`).
    pub const WGSL_STRUCT_ELEMENTS: RuleSet = RuleSet(1 << 5);
    /// Sizes over the limits of the target (`MPG_CORE_1302`, `MPG_WGSL_1005`, `1006`,
    /// `MPG_<BACKEND>_2001`).
    pub const EXCESS: RuleSet = RuleSet(1 << 6);
    /// Irreducible control flow on `msl` and `wgsl` (`MPG_MSL_1001`, `MPG_WGSL_1001`).
    pub const IRREDUCIBLE_FLOW: RuleSet = RuleSet(1 << 7);
    /// Buffer elements with padding on `spv`; a warning (`MPG_SPV_2003`).
    pub const PADDED_ELEMENTS: RuleSet = RuleSet(1 << 8);

    /// Shared memory on `ptx` that devices have only when they are asked for it
    /// (`MPG_PTX_2001`; `[gpu.ptx] shared_opt_in` lifts it).
    pub const LARGE_SHARED: RuleSet = RuleSet(1 << 9);

    /// The rules of Magpie (`.mp`): all.
    pub const MAGPIE: RuleSet = RuleSet((1 << 10) - 1);

    /// Whether every rule of `other` is here.
    pub fn contains(self, other: RuleSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// The rules of either.
    pub const fn union(self, other: RuleSet) -> RuleSet {
        RuleSet(self.0 | other.0)
    }

    /// The rules that `other` lacks.
    pub const fn without(self, other: RuleSet) -> RuleSet {
        RuleSet(self.0 & !other.0)
    }
}

/// Checks a kernel against rules for the target it declares.
pub fn check_surface(module: &Module, kernel: FnId, rules: RuleSet) -> Vec<Diagnostic> {
    let target = module.func(kernel).gpu_meta.as_ref().map_or(GpuBackend::Interp, |m| m.target);
    check_surface_for(module, kernel, rules, target)
}

/// Checks a kernel against rules for another target than it declares: a portable kernel that is
/// compiled for that one as well.
pub fn check_surface_for(
    module: &Module,
    kernel: FnId,
    rules: RuleSet,
    target: GpuBackend,
) -> Vec<Diagnostic> {
    let mut checker = Checker {
        module,
        kernel: module.func(kernel),
        target,
        limits: match target {
            GpuBackend::Ptx if !rules.contains(RuleSet::LARGE_SHARED) => {
                TargetLimits { shared_bytes: CUDA_MOST_SHARED, ..TargetLimits::of(target) }
            }
            _ => TargetLimits::of(target),
        },
        rules,
        shared_bytes: 0,
        exceeds_shared: false,
        type_faults: Default::default(),
        out: Vec::new(),
        seen: FxHashSet::default(),
    };
    checker.clauses();
    checker.walk(kernel);
    let mut out = checker.out;
    sort_diagnostics(&mut out);
    out
}

/// Checks several kernels, each for the target it declares. What several kernels reach is
/// reported once.
pub fn check_kernels(module: &Module, kernels: &[FnId], rules: RuleSet) -> Vec<Diagnostic> {
    once(kernels.iter().map(|&k| check_surface(module, k, rules)))
}

/// Checks several closed kernels: barriers in divergent control flow (`MPG_CORE_1401`), shared
/// memory read without a barrier (`MPG_CORE_1402`), writes that collide (`MPG_CORE_1400`).
pub fn check_closed_kernels(
    module: &Module,
    kernels: &[FnId],
    forbidden: Collisions,
) -> Vec<Diagnostic> {
    once(kernels.iter().map(|&k| {
        let mut out = check_barriers(module.func(k), &module.types);
        out.extend(check_shared_races(module.func(k), &module.types));
        out.extend(check_write_collisions(module.func(k), &module.types, forbidden));
        out
    }))
}

/// All findings, each code at each place once.
fn once(findings: impl Iterator<Item = Vec<Diagnostic>>) -> Vec<Diagnostic> {
    let mut out: Vec<Diagnostic> = findings.flatten().collect();
    sort_diagnostics(&mut out);
    let mut seen = FxHashSet::default();
    out.retain(|d| !d.primary.is_some() || seen.insert((d.code, d.primary, d.message.clone())));
    out
}

/// A check of one kernel.
struct Checker<'a> {
    module: &'a Module,
    kernel: &'a MpirFn,
    target: GpuBackend,
    limits: TargetLimits,
    rules: RuleSet,
    /// Shared memory met so far.
    shared_bytes: u64,
    exceeds_shared: bool,
    /// What is wrong with a type, once found out.
    type_faults: rustc_hash::FxHashMap<TypeId, Option<types::TypeFault>>,
    out: Vec<Diagnostic>,
    seen: FxHashSet<(Code, Span)>,
}

impl Checker<'_> {
    fn forbids(&self, rule: RuleSet) -> bool {
        self.rules.contains(rule)
    }

    /// Reports a finding; the same code at the same place only once.
    fn report(&mut self, d: Diagnostic) {
        if !d.primary.is_some() || self.seen.insert((d.code, d.primary)) {
            self.out.push(d);
        }
    }

    /// The place of the words `gpu fn` and the name.
    fn head(&self) -> Span {
        let head = self.kernel.gpu_meta.as_ref().map_or(Span::NONE, |m| m.spans.head);
        if head.is_some() { head } else { self.kernel.span }
    }

    /// Whether the kernel may use a capability: it is `unsafe` and lists it.
    fn allows(&self, capability: Capability) -> bool {
        self.kernel
            .gpu_meta
            .as_ref()
            .is_some_and(|m| m.is_unsafe && m.requires.iter().any(|r| r == capability.word()))
    }
}

/// The name of a function as its author knows it: without module path and without the mark of a
/// copy for the device.
pub(crate) fn short_name(f: &MpirFn) -> &str {
    let name = f.name.strip_suffix(".device").unwrap_or(&f.name);
    name.find('@').map_or(name, |at| &name[at..])
}
