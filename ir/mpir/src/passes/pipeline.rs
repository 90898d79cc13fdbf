//! The order of the passes.

use super::inline_calls::Scratch;
use super::inline_small_calls::{Callees, inline_changing_calls, inline_small_calls};
use super::preconditions::elide_or_find;
use super::*;
use crate::analysis::{CallGraph, LaunchFacts};
use crate::verify::{Stage, verify_fn};
use crate::{Domain, FnId, Module, MpirFn};
use magpie_types::TypeCtx;
use std::time::{Duration, Instant};

/// One step of a pipeline.
struct Step {
    name: &'static str,
    run: fn(&mut MpirFn, &TypeCtx, &mut PassContext) -> bool,
}

macro_rules! steps {
    ($($name:ident $(($types:ident))?),* $(,)?) => {
        &[$(Step {
            name: stringify!($name),
            run: |f, _types, ctx| $name(f, $({ let $types = _types; $types },)? ctx),
        }),*]
    };
}

/// Host functions that are not lowered.
const OWNERSHIP: &[Step] = steps![hoist_uniqueness(types), hoist_views(types)];

/// Lowered host functions: everything is a value.
const HOST: &[Step] =
    steps![lower_structs(types), promote_slots, simplify_cfg, fold(types), gvn(types)];

/// Branches past branches; the steps behind the first are taken only when that changes something.
const THREAD: &[Step] = steps![thread_jumps(types), simplify_cfg, fold(types), gvn(types)];

/// A branch may lead past as many others.
const MAX_THREADED: usize = 4;

/// Loops that need no calls where texts are ASCII; the steps behind are taken only when that changes
/// something.
const UNSWITCH: &[Step] = steps![unswitch_loops, simplify_cfg, fold(types), gvn(types)];

/// Loops of very few rounds; what is constant in a round makes it smaller.
const HOST_UNROLL: &[Step] = steps![unroll, simplify_cfg, fold(types), simplify_cfg, gvn(types)];

/// Then, before loops are widened.
const HOST_LOOPS: &[Step] = steps![
    use_ranges,
    elide_index_checks,
    sccp,
    simplify_cfg,
    fuse_branches,
    simplify_cfg,
    fuse_range_tests,
    fold(types),
    licm(types),
    carry_loads(types)
];

/// Behind searches that became looks into tables.
const SEARCHED: &[Step] = steps![simplify_cfg, fold(types), gvn(types), licm(types)];

/// And after it.
const WIDENED: &[Step] =
    steps![simplify_cfg, share_divisions, fold(types), gvn(types), dce, simplify_cfg];

/// At last, branches of loops that only choose; ways that become empty may be parts of another way.
const HOST_CHOICES: &[Step] = steps![if_convert_loops, simplify_cfg, fold(types), dce];

/// Sums that go from round to round are made short when nothing else changes any more.
const CHAINS: &[Step] = steps![shorten_chains, dce];

/// Such branches stand inside each other, this many levels.
const MAX_CHOICES: usize = 3;

/// Kernels and device functions: from closed to scalar and simple.
const DEVICE: &[Step] = steps![simplify_cfg, lower_structs(types), fold(types), gvn(types)];

/// What constants and the known ways of branches open up.
const BRANCHES: &[Step] = steps![sccp, if_convert, simplify_cfg];

/// Loops of constant length; the steps behind the first are taken only when that changes something.
const UNROLL: &[Step] = steps![unroll, simplify_cfg, fold(types), gvn(types)];

/// The same, of loops with barriers too.
const UNROLL_BARRIERS: &[Step] = steps![unroll_barriers, simplify_cfg, fold(types), gvn(types)];

/// Loops inside loops are unrolled from the inside, this many levels.
const MAX_UNROLLED_LEVELS: usize = 3;

/// What does not change in the loops that remain.
const LOOPS: &[Step] = steps![licm(types)];

/// Again, when something has changed since: what was moved and joined may be equal now.
const AGAIN: &[Step] = steps![fold(types), gvn(types)];

/// Leaves nothing unused behind.
const CLEAN: &[Step] = steps![dce];

/// Blocks that became empty.
const EMPTY: &[Step] = steps![if_convert, simplify_cfg];

/// Runs the passes over functions, with memory that is reused from one to the next.
///
/// In debug builds the verifier runs after every pass, and a fault is a panic that names the pass.
#[derive(Default)]
pub struct Pipeline {
    ctx: PassContext,
    times: Option<Vec<(&'static str, Duration)>>,
}

impl Pipeline {
    /// A pipeline that does not measure.
    pub fn new() -> Pipeline {
        Pipeline::default()
    }

    /// A pipeline that measures the time of each pass.
    pub fn with_times() -> Pipeline {
        Pipeline { times: Some(Vec::new()), ..Pipeline::default() }
    }

    /// The time that each pass took so far, in order of first use; empty when it is not measured.
    pub fn times(&self) -> &[(&'static str, Duration)] {
        self.times.as_deref().unwrap_or_default()
    }

    /// Optimises what host functions do with the handles that they own, before `lower_arc`.
    pub fn optimize_ownership(&mut self, module: &mut Module) {
        let start = self.times.is_some().then(Instant::now);
        specialize_callables(module);
        self.note("specialize_callables", start);
        let start = self.times.is_some().then(Instant::now);
        inline_changing_calls(module, &mut self.ctx);
        self.note("inline_changing_calls", start);
        for f in module.fns.iter().filter(|f| f.domain == Domain::Host) {
            self.check(module, f, "inline_changing_calls");
        }
        let start = self.times.is_some().then(Instant::now);
        unbox_characters(module);
        self.note("unbox_characters", start);
        for f in module.fns.iter().filter(|f| f.domain == Domain::Host) {
            self.check(module, f, "unbox_characters");
        }
        for id in module.fn_ids() {
            if module.func(id).domain == Domain::Host {
                self.with_fn(module, id, |pipeline, module, f| {
                    pipeline.check(module, f, "specialize_callables");
                    let start = pipeline.times.is_some().then(Instant::now);
                    elide_clones(f, module, &mut pipeline.ctx);
                    pipeline.after(module, f, "elide_clones", start);
                    pipeline.run_all(module, f, OWNERSHIP);
                });
            }
        }
    }

    /// Optimises all lowered host functions of a module. Small ones become parts of their callers.
    pub fn optimize_host(&mut self, module: &mut Module) {
        let graph = CallGraph::new(module);
        let mut callees = Callees::new(module, &graph);
        let mut scratch = Scratch::default();
        for &id in graph.bottom_up() {
            if module.func(id).domain != Domain::LowHost {
                continue;
            }
            let start = self.times.is_some().then(Instant::now);
            inline_small_calls(module, id, &callees, &mut scratch);
            self.note("inline_small_calls", start);
            self.optimize_host_function(module, id);
            callees.learn(module.func(id), id);
        }
    }

    fn optimize_host_function(&mut self, module: &mut Module, id: FnId) {
        self.with_fn(module, id, |pipeline, module, f| {
            let start = pipeline.times.is_some().then(Instant::now);
            // Values of several parts, which came with the inlined functions, are taken apart next.
            read_literals(f, module, &mut pipeline.ctx);
            pipeline.note("read_literals", start);
            pipeline.run_all(module, f, HOST);
            pipeline.repeat(module, f, THREAD, MAX_THREADED);
            let start = pipeline.times.is_some().then(Instant::now);
            let is_loop_now = tail_calls(f, id, &module.types);
            pipeline.after(module, f, "tail_calls", start);
            if is_loop_now {
                pipeline.run_all(module, f, &THREAD[1..]);
            }
            pipeline.repeat(module, f, UNSWITCH, 1);
            pipeline.repeat(module, f, HOST_UNROLL, MAX_UNROLLED_LEVELS);
            pipeline.run_all(module, f, HOST_LOOPS);
            let start = pipeline.times.is_some().then(Instant::now);
            let has_searched = search_literals(f, module, &mut pipeline.ctx);
            pipeline.after(module, f, "search_literals", start);
            if has_searched {
                pipeline.run_all(module, f, SEARCHED);
            }
            let start = pipeline.times.is_some().then(Instant::now);
            widen_counted(f, &mut module.types, &mut pipeline.ctx);
            pipeline.after(module, f, "widen_counted", start);
            pipeline.run_all(module, f, WIDENED);
            pipeline.repeat(module, f, HOST_CHOICES, MAX_CHOICES);
            pipeline.repeat(module, f, CHAINS, 1);
            f.compact(|_| true);
        });
    }

    /// Optimises a kernel, or a device function that a recursive kernel needs: aggregates are
    /// flattened, loops unrolled, everything is computed once.
    pub fn optimize_device(&mut self, module: &mut Module, id: FnId) {
        self.with_fn(module, id, |pipeline, module, f| {
            pipeline.run_all(module, f, DEVICE);
            let mut changed = pipeline.run_all(module, f, BRANCHES);
            if pipeline.repeat(module, f, UNROLL, MAX_UNROLLED_LEVELS) {
                changed = false;
            }
            changed |= pipeline.run_all(module, f, LOOPS);
            if changed {
                pipeline.run_all(module, f, AGAIN);
            }
            pipeline.run_all(module, f, CLEAN);
            if pipeline.run_all(module, f, EMPTY) {
                pipeline.run_all(module, f, CLEAN);
            }
            f.compact(|_| true);
        });
    }

    /// Unrolls loops with barriers of an optimised kernel, for code generation that treats what is
    /// between barriers each for itself ([`unroll_barriers`]).
    pub fn unroll_barriers(&mut self, module: &Module, f: &mut MpirFn) {
        if self.repeat(module, f, UNROLL_BARRIERS, MAX_UNROLLED_LEVELS) {
            self.run_all(module, f, AGAIN);
            self.run_all(module, f, CLEAN);
            f.compact(|_| true);
        }
    }

    /// Takes steps as long as the first changes something, at most `times`; whether it did.
    fn repeat(&mut self, module: &Module, f: &mut MpirFn, steps: &[Step], times: usize) -> bool {
        let mut done = 0;
        while done < times && self.run(module, f, &steps[0]) {
            self.run_all(module, f, &steps[1..]);
            done += 1;
        }
        done > 0
    }

    /// Elides the bounds checks of an optimised kernel that are proved; and finds preconditions for
    /// the others, with the body for launches that meet them. Both bodies still need
    /// [`Pipeline::lower_bounds_checks`]. `facts` must hold for every launch of the code.
    pub fn prove_bounds(
        &mut self,
        module: &Module,
        f: &mut MpirFn,
        facts: LaunchFacts,
    ) -> Option<Unchecked> {
        let start = self.times.is_some().then(Instant::now);
        let unchecked = elide_or_find(f, &module.types, facts, &mut self.ctx);
        self.after(module, f, "preconditions", start);
        unchecked
    }

    /// Makes the bounds checks of a kernel explicit and removes what they have in common. `f` is
    /// the copy of a kernel for one target, already legalised.
    pub fn lower_bounds_checks(&mut self, module: &Module, f: &mut MpirFn, width: IndexWidth) {
        let start = self.times.is_some().then(Instant::now);
        let changed = lower_bounds_checks(f, &module.types, width, &mut self.ctx);
        self.after(module, f, "lower_bounds_checks", start);
        if changed {
            self.run(module, f, &AGAIN[1]);
        }
    }

    fn with_fn(
        &mut self,
        module: &mut Module,
        id: FnId,
        body: impl FnOnce(&mut Pipeline, &mut Module, &mut MpirFn),
    ) {
        let slot = &mut module.fns[id.index()];
        let name = slot.name.clone();
        let mut stand_in = MpirFn::new(slot.sid.clone(), name, slot.ret_ty, slot.domain);
        // What a recursive call is checked against.
        stand_in.params = slot.params.clone();
        let mut f = std::mem::replace(slot, stand_in);
        body(self, module, &mut f);
        module.fns[id.index()] = f;
    }

    fn run_all(&mut self, module: &Module, f: &mut MpirFn, steps: &[Step]) -> bool {
        steps.iter().fold(false, |changed, step| self.run(module, f, step) | changed)
    }

    fn run(&mut self, module: &Module, f: &mut MpirFn, step: &Step) -> bool {
        let start = self.times.is_some().then(Instant::now);
        let changed = (step.run)(f, &module.types, &mut self.ctx);
        self.after(module, f, step.name, start);
        changed
    }

    /// Takes the time.
    fn note(&mut self, name: &'static str, start: Option<Instant>) {
        if let (Some(times), Some(start)) = (&mut self.times, start) {
            let spent = start.elapsed();
            match times.iter_mut().find(|t| t.0 == name) {
                Some(time) => time.1 += spent,
                None => times.push((name, spent)),
            }
        }
    }

    /// Takes the time and, in debug builds, looks at what the pass left.
    fn after(&mut self, module: &Module, f: &MpirFn, name: &'static str, start: Option<Instant>) {
        self.note(name, start);
        self.check(module, f, name);
    }

    /// In debug builds, verifies what a pass left.
    fn check(&self, module: &Module, f: &MpirFn, name: &'static str) {
        if cfg!(debug_assertions)
            && let Err(faults) = verify_fn(module, f, Stage::Core)
        {
            let faults: Vec<&str> = faults.iter().map(|d| d.message.as_str()).collect();
            panic!("{name} broke {}:\n{}", f.name, faults.join("\n"));
        }
    }
}
