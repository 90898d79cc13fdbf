//! What Miri says about closed kernels: findings under its own codes, and the last word on writes
//! that its syntactic rule does not accept.

use magpie_diag::{Code, Diagnostic, Severity, Span};
use magpie_gpu::surface::{Collisions, check_barriers_strictly, check_closed_kernels};
use magpie_mpir::analysis::{LaunchDomain, WriteAnswer, write_conflicts};
use magpie_mpir::{FnId, Module};
use rustc_hash::FxHashMap;

/// What the front end leaves to be checked on closed kernels.
#[derive(Debug)]
pub(crate) struct MiriChecks {
    /// Kernels that nothing launches.
    pub(crate) unlaunched: Vec<FnId>,
    /// Writes that are refused unless they are proved to be unique.
    pub(crate) doubtful_writes: Vec<Diagnostic>,
    /// What its lines cost.
    pub(crate) costs: Vec<magpie_miri::Cost>,
}

impl MiriChecks {
    /// What is wrong with the closed kernels of a program.
    pub(crate) fn findings(&self, module: &Module, launched: &[FnId]) -> Vec<Diagnostic> {
        let kernels = [launched, &self.unlaunched].concat();
        let mut out: Vec<Diagnostic> = check_closed_kernels(module, &kernels, Collisions::Any)
            .into_iter()
            .map(in_miri)
            .collect();
        for &id in &kernels {
            let found = check_barriers_strictly(module.func(id), &module.types);
            out.extend(found.into_iter().map(in_miri));
        }
        out.sort_by_key(|d| (d.primary.file, d.primary.start));
        out.dedup_by(|a, b| a.code == b.code && a.primary == b.primary);
        if self.doubtful_writes.is_empty() {
            return out;
        }
        // A statement may stand in several kernels: it must be unique in each.
        let mut unique: FxHashMap<Span, bool> = FxHashMap::default();
        for &id in &kernels {
            let f = module.func(id);
            for conflict in write_conflicts(f, &module.types, LaunchDomain::of(f)) {
                let is_unique = conflict.answer == WriteAnswer::Unique;
                *unique.entry(f.inst(conflict.store).span).or_insert(true) &= is_unique;
            }
        }
        let proved = |d: &Diagnostic| unique.get(&d.primary).copied().unwrap_or(false);
        let reported: Vec<Span> =
            out.iter().filter(|d| d.code == Code::MIR1707).map(|d| d.primary).collect();
        let doubtful = self.doubtful_writes.iter();
        out.extend(doubtful.filter(|d| !proved(d) && !reported.contains(&d.primary)).cloned());
        out
    }
}

/// A finding about any kernel as one of Miri.
fn in_miri(mut d: Diagnostic) -> Diagnostic {
    let code = match d.code {
        Code::MPG_CORE_1400 => Code::MIR1707,
        Code::MPG_CORE_1401 => Code::MIR1908,
        _ => return d,
    };
    d.code = code;
    // Names of Miri have no sigil.
    d.message = d.message.replace("`%", "`").replace("`@", "`").replace(".unused`", "`");
    d.severity = Severity::Error;
    d
}
