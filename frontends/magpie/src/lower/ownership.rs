//! The ownership check of a host function, with what it needs to know of the source.

use super::body::Body;
use super::names::LocalState;
use crate::own::{Source, check_ownership};
use magpie_mpir::Value;

impl Body<'_, '_> {
    /// Checks the function as it stands, unreachable blocks included.
    pub(super) fn check_ownership(&mut self) {
        let name = |v: Value| {
            let local = self.s.locals.iter().find(|l| l.state == LocalState::Value(v));
            match local {
                Some(local) => format!("%{}", self.scope.name(local.name)),
                None => "the value".to_string(),
            }
        };
        let source = Source { source_block: &self.s.source_blocks, name: &name };
        let findings = check_ownership(&self.cx.module, &self.f, &self.s.cfg, &source);
        self.cx.diagnostics.extend(findings);
    }
}
