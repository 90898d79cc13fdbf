//! Bodies of generic functions that nothing uses, and of methods that traits provide.

use super::Cx;
use super::instances::Key;
use crate::ast::*;
use crate::needs_device::needs_device;
use crate::ty::fixed as ty;

impl Cx<'_> {
    /// Reports what is wrong with generic functions that nothing uses, whatever their type
    /// parameters are. Comes last: the functions that it makes are dropped.
    ///
    /// A type parameter is lowered as a type about which an error was reported. So what depends on
    /// it is skipped in silence, and the rest is checked.
    pub(super) fn check_generic_bodies(&mut self) {
        let program = self.program;
        let used = self.used_functions();
        let methods = program.structs.iter().flat_map(|decl| &decl.methods);
        let provided = program.traits.iter().flat_map(|decl| &decl.provided);
        let all = program.fns.iter().chain(methods).chain(provided);
        let is_open = |id: &FnDeclId| {
            let decl = &program.ast[*id];
            !decl.generics.is_empty()
                && !decl.gpu
                && decl.name.span.file != program.library
                && !used.contains(id)
                && !needs_device(program, *id)
        };
        let open: Vec<FnDeclId> = all.copied().filter(is_open).collect();
        if open.is_empty() {
            return;
        }
        let module = self.module.clone();
        let kernels = self.kernels.len();
        let doubtful_writes = self.doubtful_writes.len();
        let costs = self.costs.len();
        for decl in open {
            let args = vec![ty::ERROR; program.ast[decl].generics.len()];
            let resident = vec![None; program.ast[decl].params.len()];
            self.instance(Key { decl, device: false, args, resident });
        }
        self.lower_instances();
        self.module = module;
        self.kernels.truncate(kernels);
        self.doubtful_writes.truncate(doubtful_writes);
        self.costs.truncate(costs);
    }
}
