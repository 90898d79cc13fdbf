//! The ownership check of a host function, with what it needs to know of the source.

use super::body::Body;
use super::names::LocalState;
use crate::interner::Symbol;
use crate::own::{Source, check_ownership};
use magpie_mpir::{Const, Value};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

impl Body<'_, '_> {
    /// Checks the function as it stands, unreachable blocks included.
    pub(super) fn check_ownership(&mut self) {
        // Only messages need the names of values.
        let names: OnceCell<FxHashMap<Value, Symbol>> = OnceCell::new();
        let name = |v: Value| {
            let names = names.get_or_init(|| {
                let locals = self.s.locals.iter().rev();
                let named = locals.filter_map(|local| match local.state {
                    LocalState::Value(v) => Some((v, local.name)),
                    LocalState::Pending | LocalState::Poisoned => None,
                });
                named.collect()
            });
            match names.get(&v) {
                Some(&name) => format!("%{}", self.scope.name(name)),
                None => "the value".to_string(),
            }
        };
        let texts = self.s.locals.iter().filter_map(|local| match local.state {
            LocalState::Value(v) if matches!(self.f.as_const(v), Some(Const::Str(_))) => {
                Some((v, local.block))
            }
            LocalState::Value(_) | LocalState::Pending | LocalState::Poisoned => None,
        });
        let texts = texts.collect();
        let source = Source { source_block: &self.s.source_blocks, name: &name, texts };
        let findings = check_ownership(&self.cx.module, &self.f, &self.s.cfg, &source);
        self.cx.report_all(findings);
    }
}
