//! Types: what is written → [`TypeId`].
//!
//! [`Types`] resolves each written type of a module once. What is wrong with a type is kept as a
//! [`Fault`] and reported where the type is used, because equal types of a module are one entry of
//! its tree.

mod declare;
mod extent;
mod limits;
mod resolve;

use crate::ast::*;
use crate::interner::Symbol;
use crate::resolve::{ModuleId, Program, TypeDeclId};
use magpie_diag::{Code, Diagnostic, Span};
use magpie_types::{SigId, TypeCtx, TypeId};
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use declare::define_all;
pub(crate) use limits::check_limits;
pub(crate) use resolve::{ENDLESS, ENDLESS_HELP, is_buffer_element, is_language_type};

/// The type arguments that stand for the type parameters in scope. Without arguments nothing is
/// known of the parameters: types that mention them are poisoned in silence, others are checked.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Scope<'a> {
    /// The names of the parameters.
    pub(crate) params: &'a [Symbol],
    /// As many types, or none.
    pub(crate) args: &'a [TypeId],
}

/// What a written type is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Written {
    /// A type.
    Type(TypeId),
    /// A type that only device code may mention; elsewhere the fault is reported.
    DeviceOnly(TypeId, FaultId),
    /// `ptr`: the array that the defining instruction makes.
    Ptr,
    /// Not a type.
    Fault(FaultId),
}

/// Names a [`Fault`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FaultId(u32);

/// What is wrong with a written type.
#[derive(Clone, Debug)]
struct Fault {
    code: Code,
    message: String,
    help: String,
}

/// A declared type.
#[derive(Clone, Copy, Debug)]
enum Declared {
    Type(TypeId),
    Sig(SigId),
    /// Has type parameters: there is one type for each list of arguments.
    Generic,
    /// An error about the declaration has been reported.
    Failed,
}

/// All types of a program.
#[derive(Debug)]
pub(crate) struct Types {
    /// By module and [`TypeExprId`].
    written: Vec<Vec<Option<Written>>>,
    faults: Vec<Fault>,
    /// By [`TypeDeclId`].
    declared: Vec<Declared>,
    instances: FxHashMap<(TypeDeclId, Vec<TypeId>), TypeId>,
    /// Of types with parts.
    extents: FxHashMap<TypeId, extent::Extent>,
    /// Instances whose members are not resolved yet.
    undefined: Vec<(TypeDeclId, Vec<TypeId>, TypeId)>,
    /// Members whose type is not known: an error has been reported.
    failed_members: FxHashSet<(TypeId, u32, u32)>,
    /// Where each struct and enum is declared.
    places: FxHashMap<TypeId, Span>,
    /// How many more copies of generic functions and types may be made.
    pub(crate) instances_left: u32,
    /// Modules in which the missing package has been reported.
    missing_package_reported: FxHashSet<ModuleId>,
}

impl Types {
    /// No types of a program are known yet.
    pub(crate) fn new(program: &Program, max_instances: u32) -> Types {
        Types {
            written: program.modules.iter().map(|m| vec![None; m.ast().types.len()]).collect(),
            faults: Vec::new(),
            declared: Vec::new(),
            instances: FxHashMap::default(),
            extents: FxHashMap::default(),
            undefined: Vec::new(),
            failed_members: FxHashSet::default(),
            places: FxHashMap::default(),
            instances_left: max_instances,
            missing_package_reported: FxHashSet::default(),
        }
    }

    /// The report of a fault at the place where the type is used, unless it was made before.
    pub(crate) fn report(
        &mut self,
        program: &Program,
        module: ModuleId,
        fault: FaultId,
        span: Span,
    ) -> Option<Diagnostic> {
        // A fault that is not in the list was reported with a declaration.
        let fault = self.faults.get(fault.0 as usize)?;
        if fault.message.is_empty() {
            // The missing package: once a module.
            let is_first = self.missing_package_reported.insert(module);
            let reported = program.imports_mlx(module) || !is_first;
            return (!reported).then(|| crate::resolve::missing_mlx(span));
        }
        Some(Diagnostic::new(fault.code, span, fault.message.clone()).with_help(fault.help.clone()))
    }

    /// Whether the first mention of the missing package in a module is still to be reported.
    pub(crate) fn report_missing_package(
        &mut self,
        program: &Program,
        module: ModuleId,
        span: Span,
    ) -> Option<Diagnostic> {
        let is_first = self.missing_package_reported.insert(module);
        (is_first && !program.imports_mlx(module)).then(|| crate::resolve::missing_mlx(span))
    }

    /// The type of a use, with a report when there is none or when it is no type of host code.
    pub(crate) fn of_use(
        &mut self,
        cx: &mut TypeWork<'_>,
        module: ModuleId,
        ty: TypeUse,
        scope: Scope<'_>,
        on_device: bool,
    ) -> Option<TypeId> {
        match self.resolve(cx, module, ty.id, scope) {
            Written::Type(id) => Some(id),
            Written::DeviceOnly(id, _) if on_device => Some(id),
            Written::DeviceOnly(_, fault) | Written::Fault(fault) => {
                let span = cx.program.module(module).span(ty.range);
                let report = self.report(cx.program, module, fault, span);
                cx.diagnostics.extend(report);
                None
            }
            Written::Ptr => {
                let span = cx.program.module(module).span(ty.range);
                cx.diagnostics.push(
                    Diagnostic::new(Code::MPT0001, span, "`ptr` is the type of a local only")
                        .with_help("only results of `gpu.shared` and `gpu.local` have it; buffers are `gpu.TBuffer<T>`"),
                );
                None
            }
        }
    }

    /// Whether an error about the type of a member has been reported.
    pub(crate) fn is_failed_member(&self, ty: TypeId, variant: u32, field: u32) -> bool {
        self.failed_members.contains(&(ty, variant, field))
    }

    /// The signature of a name, if it is one.
    pub(crate) fn sig(&self, decl: TypeDeclId) -> Option<SigId> {
        match self.declared[decl.0 as usize] {
            Declared::Sig(sig) => Some(sig),
            Declared::Type(_) | Declared::Generic | Declared::Failed => None,
        }
    }
}

/// What resolving a type works on.
pub(crate) struct TypeWork<'a> {
    pub(crate) program: &'a Program,
    pub(crate) ctx: &'a mut TypeCtx,
    pub(crate) diagnostics: &'a mut Vec<Diagnostic>,
}

/// The longest name of a type in a message, in characters.
const MAX_NAME: usize = 100;

/// A type as messages name it.
pub(crate) fn display_name(ctx: &TypeCtx, ty: TypeId) -> String {
    let mut name = ctx.name(ty);
    if let Some((end, _)) = name.char_indices().nth(MAX_NAME) {
        name.truncate(end);
        name.push('…');
    }
    name
}
