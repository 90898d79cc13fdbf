//! Elements that two invocations write.

use magpie_diag::{Code, Diagnostic, sort_diagnostics};
use magpie_mpir::analysis::{
    Collision, Invocation, LaunchDomain, StoreConflicts, WriteAnswer, write_conflicts,
};
use magpie_mpir::{Inst, MpirFn, ValueDef};
use magpie_types::{TypeCtx, TypeKind};

/// Which writes of one element by two invocations a language forbids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Collisions {
    /// All.
    Any,
    /// Those of values that are not known to be the same, so that the result depends on which comes
    /// last.
    Harmful,
}

/// Reports each store of a closed kernel that writes an element which another invocation writes as
/// well (`MPG_CORE_1400`), in every launch of the declared workgroup size.
pub fn check_write_collisions(
    kernel: &MpirFn,
    types: &TypeCtx,
    forbidden: Collisions,
) -> Vec<Diagnostic> {
    let domain = LaunchDomain::of(kernel);
    let answers = write_conflicts(kernel, types, domain);
    let mut out: Vec<Diagnostic> = Vec::new();
    let mut reported: Vec<Inst> = Vec::new();
    for StoreConflicts { store, answer } in answers {
        let WriteAnswer::Collision(c) = answer else { continue };
        if c.is_same_value && forbidden == Collisions::Harmful {
            continue;
        }
        // Two stores that collide are one finding.
        if c.other == store || !reported.contains(&c.other) {
            reported.push(store);
            out.push(collision(kernel, types, store, &c));
        }
    }
    sort_diagnostics(&mut out);
    out
}

/// Reports each store of a closed kernel of which it is not known whether another invocation writes
/// the same element (`MPG_CORE_1403`).
pub fn check_unproved_writes(kernel: &MpirFn, types: &TypeCtx) -> Vec<Diagnostic> {
    let answers = write_conflicts(kernel, types, LaunchDomain::of(kernel));
    let unknown = answers.iter().filter(|s| s.answer == WriteAnswer::Unknown);
    let mut out: Vec<Diagnostic> = unknown
        .map(|s| {
            let message = format!(
                "it is not proved that different invocations write different elements of {}",
                array(kernel, types, s.store)
            );
            Diagnostic::new(Code::MPG_CORE_1403, kernel.inst(s.store).span, message)
                .with_note("what is computed from invocation ids is proved, what is loaded is not")
                .with_help(
                    "make sure that the indices differ, or use an atomic operation where they may \
                     repeat",
                )
        })
        .collect();
    sort_diagnostics(&mut out);
    out
}

fn collision(f: &MpirFn, types: &TypeCtx, store: Inst, c: &Collision) -> Diagnostic {
    let is_shared = is_shared(f, types, store);
    let element = c.element.map_or("the same element".to_owned(), |e| format!("element {e}"));
    let message = format!(
        "invocations {} and {} both write {element} of {}",
        name(c.first, is_shared),
        name(c.second, is_shared),
        array(f, types, store)
    );
    let mut d = Diagnostic::new(Code::MPG_CORE_1400, f.inst(store).span, message);
    if c.other != store {
        d = d.with_secondary(f.inst(c.other).span, "the second one writes it here");
    }
    d = d.with_note(match c.is_same_value {
        true => "both write the same value, so the result is the same whichever comes last",
        false => "which of the two values stays depends on which comes last",
    });
    d.with_help(
        "let each invocation write an element of its own, let one invocation write, or use an \
         atomic operation",
    )
}

/// An invocation as a message calls it.
fn name(i: Invocation, is_shared: bool) -> String {
    let triple = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
    match is_shared || i.workgroup == [0; 3] {
        true => triple(i.thread),
        false => format!("{} of workgroup {}", triple(i.thread), triple(i.workgroup)),
    }
}

fn is_shared(f: &MpirFn, types: &TypeCtx, store: Inst) -> bool {
    matches!(types.kind(f.ty(f.arg(store, 0))), TypeKind::SharedArray(..))
}

/// The array of a store as a message calls it.
fn array(f: &MpirFn, types: &TypeCtx, store: Inst) -> String {
    let name = match f.def(f.arg(store, 0)) {
        ValueDef::Param(n) => f.param_names.get(n as usize),
        ValueDef::Inst(_) | ValueDef::Const(_) => None,
    };
    match name {
        Some(name) => format!("`%{name}`"),
        None if is_shared(f, types, store) => "a shared array".to_owned(),
        None => "a buffer".to_owned(),
    }
}
