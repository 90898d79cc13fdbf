//! Typed lowering: syntax trees → rich MPIR.
//!
//! [`Cx`] knows the program; [`body::Body`] lowers one function. A source function is lowered once
//! for each use that differs: for the host or for kernels, for each list of type arguments, and
//! for each residency of its buffer arguments.
//!
//! The law of this stage: what an error was reported about is *poisoned*; what depends on it is
//! skipped in silence. Kernels without such holes are there all the same ([`Cx::keep_sound_kernels`]),
//! so that what is wrong with them is reported beside it. Heap values are counted handles that are shared until they are changed:
//! a variable owns a handle of its own, and a change first makes the handle the only one.

mod accelerable;
mod assign;
mod binary;
mod body;
mod call;
mod call_fn;
mod change;
mod check_structs;
mod clone;
mod collection_changes;
mod collection_methods;
mod collections;
mod construct;
mod consts;
mod context;
mod device_calls;
mod dispatch;
mod equality;
mod exhaustive;
mod expr;
mod forall;
mod format;
mod frame;
mod generic_bodies;
mod generics;
mod gpu_fn;
mod grid;
mod inline_arrays;
mod instances;
mod kernel;
mod lambda;
pub(crate) mod library;
mod library_calls;
mod literal;
mod locals;
mod loops;
mod machine;
mod math;
mod methods;
mod moves;
mod option_methods;
mod pack;
mod pattern;
mod place;
mod reduce;
mod residency_errors;
mod resident;
mod resident_args;
mod resident_scalars;
mod sound;
mod stmt;
mod stop;
mod text_methods;
mod types;
mod vector;

use crate::ast::*;
use crate::cost::{Cost, CostClass};
use crate::needs_device::needs_device;
use crate::program::Program;
use crate::ty::{Ty, TyKind, Types};
use instances::Instances;
use magpie_diag::{Code, Diagnostic, FileId, Span};
use magpie_mpir::{FnId, Module, MpirFn};
use magpie_types::{Sid, SidKind, TypeId};
use rustc_hash::{FxHashMap, FxHashSet};

/// More findings than this are not kept.
const MAX_FINDINGS: usize = 500;

/// Something about which an error was reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Poisoned;

pub(crate) type Lower<T> = Result<T, Poisoned>;

/// Where a type is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Form {
    /// Values and array elements of host code.
    Host,
    /// Values in kernels.
    Device,
    /// Elements of host arrays that are uploaded as they are.
    Packed,
}

/// What lowering made.
pub(crate) struct Lowered {
    pub(crate) module: Module,
    pub(crate) main: Option<FnId>,
    pub(crate) kernels: Vec<FnId>,
    pub(crate) unlaunched: Vec<FnId>,
    pub(crate) doubtful_writes: Vec<Diagnostic>,
    pub(crate) costs: Vec<Cost>,
}

/// Names places of the program in messages at run time.
#[derive(Default)]
pub(crate) struct Places<'a> {
    files: FxHashMap<FileId, PlacedFile<'a>>,
}

struct PlacedFile<'a> {
    name: &'a str,
    text: &'a str,
    /// Where its lines start.
    lines: Vec<u32>,
}

impl<'a> Places<'a> {
    pub(crate) fn add(&mut self, file: FileId, name: &'a str, text: &'a str) {
        let newlines = text.bytes().enumerate().filter(|&(_, b)| b == b'\n');
        let lines = [0].into_iter().chain(newlines.map(|(n, _)| n as u32 + 1)).collect();
        self.files.insert(file, PlacedFile { name, text, lines });
    }

    /// The number of the line that a place stands in, from 1.
    fn line(&self, span: Span) -> usize {
        let file = self.files.get(&span.file);
        file.map_or(0, |file| file.lines.partition_point(|&start| start <= span.start))
    }

    /// `file:line:column`
    fn describe(&self, span: Span) -> String {
        let Some(file) = self.files.get(&span.file) else { return String::new() };
        let line = self.line(span).max(1);
        let start = file.lines[line - 1] as usize;
        let before = file.text.get(start..span.start as usize).unwrap_or("");
        format!("{}:{line}:{}", file.name, before.chars().count() + 1)
    }

    /// The text of a place.
    fn text(&self, span: Span) -> &'a str {
        let file = self.files.get(&span.file);
        file.and_then(|file| file.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }
}

/// The state of lowering a program.
pub(crate) struct Cx<'p> {
    program: &'p Program,
    places: &'p Places<'p>,
    tys: Types,
    module: Module,
    diagnostics: Vec<Diagnostic>,
    /// With the kernels that they stand in.
    doubtful_writes: Vec<(FnId, Diagnostic)>,
    costs: Vec<Cost>,
    instances: Instances,
    kernels: Vec<FnId>,
    unlaunched: Vec<FnId>,
    machine: FxHashMap<(Ty, Form), TypeId>,
    /// Other names of types that are being resolved.
    open_aliases: Vec<TypeExprId>,
    /// Structs whose machine types are being made.
    open: Vec<Ty>,
    helpers: FxHashMap<(Helper, Ty), FnId>,
    cells: FxHashMap<Ty, TypeId>,
    /// Constants, and `None` while one is being evaluated.
    consts: FxHashMap<StmtId, Option<consts::Const>>,
    /// Constants of the functions around the present place.
    local_consts: Vec<(Sym, StmtId)>,
    /// Texts of constants that are made of other texts.
    joined_texts: Vec<String>,
    /// Block shapes of launched kernels, with the first launch.
    blocks: FxHashMap<FnDeclId, ([u32; 3], Span)>,
    lambdas: u32,
    script: bool,
    /// The largest offset of a `shuffle_down` in the kernel being lowered.
    shuffle_offset: u32,
    /// By kernel, where it is not 0.
    shuffles: FxHashMap<FnId, u32>,
    /// Counts the errors and what was skipped because of one.
    holes: u32,
    /// Functions with such holes.
    unsound: FxHashSet<FnId>,
}

/// Functions that lowering writes itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Helper {
    /// Another owned value like one that is looked at.
    Clone,
    /// A host array as it is uploaded.
    Pack,
    /// An uploaded array as the host has it.
    Unpack,
    /// Equality of two values that are looked at.
    Equal,
    /// The kernel of a reduction, with `+`, `*`, `min` or `max`.
    Reduce(u8),
}

/// Lowers a program. When an error is among the diagnostics the module has only the kernels without
/// one, and what they call.
pub(crate) fn lower(
    program: &Program,
    places: &Places<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Lowered {
    let mut cx = Cx {
        program,
        places,
        tys: Types::new(),
        module: Module::new(),
        diagnostics: std::mem::take(diagnostics),
        doubtful_writes: Vec::new(),
        costs: Vec::new(),
        instances: Instances::default(),
        kernels: Vec::new(),
        unlaunched: Vec::new(),
        machine: FxHashMap::default(),
        open_aliases: Vec::new(),
        open: Vec::new(),
        helpers: FxHashMap::default(),
        cells: FxHashMap::default(),
        consts: FxHashMap::default(),
        local_consts: Vec::new(),
        joined_texts: Vec::new(),
        blocks: FxHashMap::default(),
        lambdas: 0,
        script: false,
        shuffle_offset: 0,
        shuffles: FxHashMap::default(),
        holes: 0,
        unsound: FxHashSet::default(),
    };
    let main = cx.run();
    cx.check_generic_bodies();
    *diagnostics = std::mem::take(&mut cx.diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        cx.keep_sound_kernels();
    }
    Lowered {
        module: cx.module,
        main,
        kernels: cx.kernels,
        unlaunched: cx.unlaunched,
        doubtful_writes: cx.doubtful_writes.into_iter().map(|(_, d)| d).collect(),
        costs: cx.costs,
    }
}

impl<'p> Cx<'p> {
    fn run(&mut self) -> Option<FnId> {
        self.check_consts();
        self.check_structs();
        let program = self.program;
        let main_decl = program.fns.iter().copied().find(|&id| {
            let decl = &program.ast[id];
            let own = decl.name.span.file == program.entry;
            own && !decl.gpu && program.name(decl.name.sym) == "main"
        });
        self.script = main_decl.is_none();
        let main = self.main_function(main_decl);
        self.lower_instances();
        for &id in &program.fns {
            let decl = &program.ast[id];
            let is_plain = !decl.gpu && decl.generics.is_empty() && Some(id) != main_decl;
            if is_plain && !needs_device(program, id) {
                self.host_instance(id);
            }
        }
        for decl in &program.structs {
            for &id in &decl.methods {
                if program.ast[id].generics.is_empty() && !needs_device(program, id) {
                    self.host_instance(id);
                }
            }
        }
        self.lower_instances();
        for &id in &program.fns {
            if program.ast[id].gpu {
                self.gpu_function(id);
            }
        }
        self.lower_instances();
        Some(main)
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.holes += u32::from(diagnostic.is_error());
        // What is wrong with an unknown type follows from what was reported about it.
        let is_consequence = diagnostic.message.contains(types::UNKNOWN_TYPE);
        if !is_consequence && self.diagnostics.len() < MAX_FINDINGS {
            self.diagnostics.push(diagnostic);
        }
    }

    fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Poisoned {
        self.report(Diagnostic::new(code, span, message).with_help(help));
        Poisoned
    }

    /// Notes what an operation costs; `t` is what travels.
    fn cost(&mut self, class: CostClass, span: Span, t: Option<Ty>) {
        let bytes = t.and_then(|t| self.resident_bytes(t));
        let cost = Cost { span, class, bytes };
        // A function that is lowered several times has one text.
        if !self.costs.contains(&cost) && self.costs.len() < MAX_FINDINGS {
            self.costs.push(cost);
        }
    }

    /// Bytes of a resident value on the device, where its type says how many elements it has.
    fn resident_bytes(&mut self, t: Ty) -> Option<u64> {
        let (element, count) = match self.tys.kind(t) {
            TyKind::Array(e, n) => (e, n),
            TyKind::List(_) => return None,
            _ if self.is_element(t) => (t, 1),
            _ => return None,
        };
        let id = self.element_machine(element);
        count.checked_mul(u64::from(self.module.types.stride(id)))
    }

    /// `file:line:column` of a place of the program.
    fn place_text(&self, span: Span) -> String {
        self.places.describe(span)
    }

    /// The number of the line that a place stands in, from 1.
    fn line(&self, span: Span) -> usize {
        self.places.line(span)
    }

    /// Reserves a function of the module; [`Cx::finish_fn`] gives it its body.
    fn reserve(&mut self, name: &str) -> FnId {
        let sid = Sid::new(SidKind::Function, name);
        let f = MpirFn::new(sid, name, magpie_types::fixed::UNIT, magpie_mpir::Domain::Host);
        self.module.add_fn(f)
    }

    fn finish_fn(&mut self, id: FnId, f: MpirFn) {
        self.module.fns[id.index()] = f;
    }
}
