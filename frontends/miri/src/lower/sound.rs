//! What an error does not reach: kernels that can be checked although the program is refused.

use super::body::Body;
use super::{Cx, Lower};
use magpie_mpir::passes::reached_by_calls;
use magpie_mpir::{Domain, FnId, MpirFn};
use magpie_types::{Sid, SidKind, fixed};
use rustc_hash::FxHashSet;

impl Cx<'_> {
    /// Notes a function that was begun when there were so many holes, if there are more now.
    pub(super) fn note_soundness(&mut self, id: FnId, holes_before: u32) {
        if self.holes != holes_before {
            self.unsound.insert(id);
        }
    }

    /// Leaves the kernels without holes, and what they call.
    pub(super) fn keep_sound_kernels(&mut self) {
        let mut kept = FxHashSet::default();
        let (module, unsound) = (&self.module, &self.unsound);
        let mut keep = |&id: &FnId| {
            let reached = reached_by_calls(module, id);
            let is_sound = !unsound.contains(&id) && !reached.iter().any(|f| unsound.contains(f));
            if is_sound {
                kept.insert(id);
                kept.extend(reached);
            }
            is_sound
        };
        self.kernels.retain(&mut keep);
        self.unlaunched.retain(&mut keep);
        self.doubtful_writes.retain(|(id, _)| kept.contains(id));
        for id in self.module.fn_ids().filter(|id| !kept.contains(id)) {
            let name = self.module.func(id).name.clone();
            let sid = Sid::new(SidKind::Function, &name);
            self.module.fns[id.index()] = MpirFn::new(sid, name, fixed::UNIT, Domain::Host);
        }
    }
}

impl Body<'_, '_, '_> {
    /// Goes on behind what may have been reported.
    pub(super) fn skip<T>(&mut self, done: Lower<T>) {
        self.cx.holes += u32::from(done.is_err());
    }
}
