//! Passes by name, for tests and tools.

use super::inline_small_calls::inline_changing_calls;
use super::*;
use crate::analysis::LaunchFacts;
use crate::{Module, MpirFn};
use magpie_types::TypeCtx;

/// What a name stands for.
#[derive(Clone, Copy)]
enum Pass {
    Function(fn(&mut MpirFn, &TypeCtx, &mut PassContext) -> bool),
    Typed(fn(&mut MpirFn, &mut TypeCtx, &mut PassContext) -> bool),
    Module(fn(&mut Module) -> Result<(), String>),
}

const PASSES: &[(&str, Pass)] = &[
    ("carry_loads", Pass::Function(carry_loads)),
    ("dce", Pass::Function(|f, _, ctx| dce(f, ctx))),
    (
        "elide_bounds_checks",
        Pass::Function(|f, types, ctx| elide_bounds_checks(f, types, LaunchFacts::of(f), ctx)),
    ),
    ("elide_clones", Pass::Module(|m| each(m, |f, m, ctx| elide_clones(f, m, ctx)))),
    ("elide_index_checks", Pass::Function(|f, _, ctx| elide_index_checks(f, ctx))),
    ("fold", Pass::Function(fold)),
    ("fuse_branches", Pass::Function(|f, _, ctx| fuse_branches(f, ctx))),
    ("fuse_range_tests", Pass::Function(|f, _, ctx| fuse_range_tests(f, ctx))),
    ("gvn", Pass::Function(gvn)),
    ("hoist_uniqueness", Pass::Function(hoist_uniqueness)),
    ("hoist_views", Pass::Function(hoist_views)),
    ("if_convert", Pass::Function(|f, _, ctx| if_convert(f, ctx))),
    ("if_convert_loops", Pass::Function(|f, _, ctx| if_convert_loops(f, ctx))),
    ("inline_calls", Pass::Module(inline)),
    (
        "inline_changing_calls",
        Pass::Module(|m| {
            inline_changing_calls(m, &mut PassContext::new());
            Ok(())
        }),
    ),
    ("insert_preheaders", Pass::Function(|f, _, ctx| insert_preheaders(f, ctx))),
    ("licm", Pass::Function(licm)),
    (
        "lower_arc",
        Pass::Module(|m| {
            lower_arc(m);
            Ok(())
        }),
    ),
    (
        "lower_bounds_checks",
        Pass::Function(|f, types, ctx| lower_bounds_checks(f, types, IndexWidth::Bits32, ctx)),
    ),
    (
        "lower_bounds_checks_64",
        Pass::Function(|f, types, ctx| lower_bounds_checks(f, types, IndexWidth::Bits64, ctx)),
    ),
    (
        "lower_host",
        Pass::Module(|m| {
            // There is no source text here: bytes stand for lines.
            lower_host(m, &|at| at.is_some().then(|| format!("{}:{}", at.file.0, at.start)));
            Ok(())
        }),
    ),
    ("lower_structs", Pass::Function(lower_structs)),
    ("lower_vectors", Pass::Function(lower_vectors)),
    ("optimize", Pass::Module(optimize)),
    ("promote_cells", Pass::Function(promote_cells)),
    ("promote_slots", Pass::Function(|f, _, ctx| promote_slots(f, ctx))),
    ("read_literals", Pass::Module(|m| each(m, |f, m, ctx| read_literals(f, m, ctx)))),
    ("sccp", Pass::Function(|f, _, ctx| sccp(f, ctx))),
    ("search_literals", Pass::Module(|m| each(m, search_literals))),
    ("share_divisions", Pass::Function(|f, _, ctx| share_divisions(f, ctx))),
    ("shorten_chains", Pass::Function(|f, _, ctx| shorten_chains(f, ctx))),
    ("simplify_cfg", Pass::Function(|f, _, ctx| simplify_cfg(f, ctx))),
    (
        "specialize_callables",
        Pass::Module(|m| {
            specialize_callables(m);
            Ok(())
        }),
    ),
    ("tail_calls", Pass::Module(all_tail_calls)),
    ("thread_jumps", Pass::Function(thread_jumps)),
    (
        "unbox_characters",
        Pass::Module(|m| {
            unbox_characters(m);
            Ok(())
        }),
    ),
    ("unroll", Pass::Function(|f, _, ctx| unroll(f, ctx))),
    ("unroll_barriers", Pass::Function(|f, _, ctx| unroll_barriers(f, ctx))),
    ("unswitch_loops", Pass::Function(|f, _, ctx| unswitch_loops(f, ctx))),
    ("use_ranges", Pass::Function(|f, _, ctx| use_ranges(f, ctx))),
    ("widen_counted", Pass::Typed(widen_counted)),
];

/// Runs the pass of a name over a module: over each function, when it is a pass over functions.
/// Whatever no block lists any more is dropped.
///
/// # Errors
/// The name is unknown, or the pass reports a fault of the module.
pub fn run_named_pass(module: &mut Module, name: &str) -> Result<(), String> {
    let Some(&(_, pass)) = PASSES.iter().find(|p| p.0 == name) else {
        let names: Vec<&str> = PASSES.iter().map(|p| p.0).collect();
        return Err(format!("there is no pass `{name}`; there are {}", names.join(", ")));
    };
    match pass {
        Pass::Module(run) => run(module)?,
        Pass::Function(run) => {
            let mut ctx = PassContext::new();
            let Module { types, fns, .. } = module;
            for f in fns {
                run(f, types, &mut ctx);
            }
        }
        Pass::Typed(run) => {
            let mut ctx = PassContext::new();
            let Module { types, fns, .. } = module;
            for f in fns {
                run(f, types, &mut ctx);
            }
        }
    }
    module.fns.iter_mut().for_each(|f| f.compact(|_| true));
    Ok(())
}

/// Runs a pass that looks at the module over each of its functions.
fn each(
    module: &mut Module,
    run: fn(&mut MpirFn, &mut Module, &mut PassContext) -> bool,
) -> Result<(), String> {
    let mut ctx = PassContext::new();
    for id in module.fn_ids() {
        let mut f = module.func(id).clone();
        run(&mut f, module, &mut ctx);
        module.fns[id.index()] = f;
    }
    Ok(())
}

fn inline(module: &mut Module) -> Result<(), String> {
    let mut faults = Vec::new();
    inline_calls(module, &mut faults);
    match faults.first() {
        Some(fault) => Err(fault.message.clone()),
        None => Ok(()),
    }
}

fn all_tail_calls(module: &mut Module) -> Result<(), String> {
    for id in module.fn_ids() {
        let Module { types, fns, .. } = module;
        tail_calls(&mut fns[id.index()], id, types);
    }
    Ok(())
}

fn optimize(module: &mut Module) -> Result<(), String> {
    let mut pipeline = Pipeline::new();
    pipeline.optimize_host(module);
    for id in module.fn_ids() {
        if module.func(id).domain == crate::Domain::Device {
            pipeline.optimize_device(module, id);
        }
    }
    Ok(())
}
