//! [`Body`]: one function on its way to MPIR.
//!
//! First the [skeleton](super::skeleton): names, blocks, edges. Then the instructions, block by
//! block in reverse postorder, so that what dominates comes first; unreachable blocks come last and
//! are dropped in the end. Phis get their arms when everything else is there.

use super::names::{Local, LocalState, SymbolMap};
use super::*;
use crate::resolve::ModuleScope;
use crate::symbols;
use crate::types::{Scope, Written, display_name};
use magpie_diag::Span;
use magpie_mpir::analysis::{Cfg, Dominators};
use magpie_mpir::{Block, Domain, Flags, Inst, MpirFn, Op as MpirOp, Value};
use magpie_types::TypeKind;

/// Memory that is used for one function after the other.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) names: SymbolMap,
    pub(super) labels: SymbolMap,
    pub(super) locals: Vec<Local>,
    /// By MPIR block: the source block it is part of.
    pub(super) source_blocks: Vec<u32>,
    /// The parts that each `try` starts, in source order: where its error goes, where it goes on.
    pub(super) splits: Vec<Split>,
    /// By source block: the first of its splits.
    pub(super) first_split: Vec<u32>,
    /// By source block: the MPIR block that ends with its terminator.
    pub(super) last_part: Vec<Block>,
    /// Edges of the source, by target.
    pub(super) edges: Vec<Edge>,
    /// By source block: the first edge into it.
    pub(super) first_edge: Vec<u32>,
    pub(super) unsorted_edges: Vec<Edge>,
    /// Phis that wait for their arms.
    pub(super) phis: Vec<PendingPhi>,
    pub(super) cfg: Cfg,
    pub(super) dominators: Dominators,
    pub(super) order: Vec<Block>,
    /// By source block, for [`super::phi`]: round, and the next edge of the block.
    pub(super) edge_cursor: Vec<(u32, u32)>,
    pub(super) edge_round: u32,
    pub(super) phi_arms: Vec<(Block, Value)>,
}

/// What a `try` splits its block into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    /// Runs when the result is `Err`.
    pub(super) error: Block,
    /// Runs when it is `Ok`.
    pub(super) next: Block,
    /// The name that is taken apart, when it is a name and not a call.
    pub(super) tried: Option<Symbol>,
    /// The error that the error block takes out.
    pub(super) payload: Option<Value>,
}

/// Control goes from a source block to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// The source block that control goes to.
    pub(super) target: u32,
    /// The source block that control comes from.
    pub(super) source: u32,
    /// The last MPIR block before the target.
    pub(super) pred: Block,
    /// The `try` that it belongs to; `u32::MAX` for a terminator.
    pub(super) split: u32,
}

/// A phi whose arms are not there yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingPhi {
    /// Where it is written.
    pub(super) range: ByteRange,
    /// The MPIR phi; none for a phi of type `unit`.
    pub(super) inst: Option<Inst>,
    /// `None` when the type is poisoned.
    pub(super) ty: Option<TypeId>,
    /// The source block that it stands in.
    pub(super) block: u32,
    pub(super) arms: Slice<PhiArm>,
}

/// One function being lowered.
pub(super) struct Body<'a, 'p> {
    pub(super) cx: &'a mut Lowering<'p>,
    pub(super) module: ModuleId,
    pub(super) scope: &'p ModuleScope,
    pub(super) ast: &'p Ast,
    pub(super) decl: &'p FnDecl,
    pub(super) type_params: Vec<Symbol>,
    pub(super) type_args: Vec<TypeId>,
    pub(super) on_device: bool,
    /// The result type; `None` when it is poisoned.
    pub(super) result: Option<TypeId>,
    pub(super) f: MpirFn,
    pub(super) s: Scratch,
    /// The MPIR block that instructions go to.
    pub(super) block: Block,
    /// The source block.
    pub(super) source: u32,
    /// Where the current instruction stands.
    pub(super) span: Span,
    /// Whether the current instruction may do what only unsafe code may.
    pub(super) in_unsafe: bool,
    pub(super) next_split: u32,
    /// How many of the errors are about ownership: the types are sound in spite of them.
    ownership_errors: usize,
}

use crate::interner::Symbol;

/// Lowers the body of an instance.
pub(super) fn lower_body(cx: &mut Lowering<'_>, id: InstanceId) {
    let program = cx.program;
    let instance = &cx.instances[id.0 as usize];
    let (module, decl) = program.function(instance.function);
    let fn_id = instance.fn_id;
    let stand_in = {
        let f = &cx.module.fns[fn_id.index()];
        // Calls look at the head while the body is away.
        let mut head = MpirFn::new(f.sid.clone(), f.name.clone(), f.ret_ty, f.domain);
        head.span = f.span;
        head.gpu_meta = f.gpu_meta.clone();
        for (n, &(_, ty)) in f.params.iter().enumerate() {
            head.add_param(f.param_names[n].clone(), ty, f.param_spans[n]);
        }
        head
    };
    let f = std::mem::replace(&mut cx.module.fns[fn_id.index()], stand_in);
    let head = Head {
        module,
        decl,
        type_args: instance.type_args.clone(),
        on_device: instance.on_device,
        params: instance.params.clone(),
        result: instance.result,
    };
    let f = lower_function(cx, head, f);
    cx.module.fns[fn_id.index()] = f;
}

/// Checks a generic function that nothing calls, as far as it does not depend on its type
/// parameters.
pub(super) fn check_generic(cx: &mut Lowering<'_>, function: FunctionId) {
    let (module, decl) = cx.program.function(function);
    let scope = cx.program.module(module);
    let params: Vec<Symbol> = scope.ast()[decl.type_params].iter().map(|p| p.name.symbol).collect();
    let type_scope = Scope { params: &params, args: &[] };
    let mut of = |ty| cx.with_types(|types, cx| types.of_use(cx, module, ty, type_scope, false));
    let param_types: Vec<_> = scope.ast()[decl.params].iter().map(|p| of(p.ty)).collect();
    let result = of(decl.result);
    let name = cx.program.function_name(function);
    let sid = magpie_types::Sid::new(magpie_types::SidKind::Function, &name);
    let mut f = MpirFn::new(sid, name, result.unwrap_or(fixed::UNIT), Domain::Host);
    for ty in &param_types {
        f.add_param("", ty.unwrap_or(fixed::UNIT), Span::NONE);
    }
    let type_args = Vec::new();
    let head = Head { module, decl, type_args, on_device: false, params: param_types, result };
    // What was made of it is incomplete and not kept.
    lower_function(cx, head, f);
}

/// What is known of a function before its body is looked at.
struct Head<'p> {
    module: ModuleId,
    decl: &'p FnDecl,
    type_args: Vec<TypeId>,
    on_device: bool,
    /// `None` where an error about the type was reported.
    params: Vec<Option<TypeId>>,
    result: Option<TypeId>,
}

/// Lowers a body into `f`, which has its parameters and no blocks.
fn lower_function<'p>(cx: &mut Lowering<'p>, head: Head<'p>, f: MpirFn) -> MpirFn {
    let Head { module, decl, type_args, on_device, params, result } = head;
    let scope = cx.program.module(module);
    let ast = scope.ast();
    let mut body = Body {
        module,
        scope,
        ast,
        decl,
        type_params: ast[decl.type_params].iter().map(|p| p.name.symbol).collect(),
        type_args,
        on_device,
        result,
        f,
        s: std::mem::take(&mut cx.scratch),
        block: Block(0),
        source: 0,
        span: scope.span(decl.head),
        in_unsafe: false,
        next_split: 0,
        ownership_errors: 0,
        cx,
    };
    body.lower(&params);
    let Body { cx, f, s, .. } = body;
    cx.scratch = s;
    f
}

impl<'p> Body<'_, 'p> {
    fn lower(&mut self, params: &[Option<TypeId>]) {
        let reports = self.cx.diagnostics.len();
        self.skeleton(params);
        if self.f.blocks.is_empty() {
            return;
        }
        self.s.cfg.compute(&self.f);
        self.s.dominators.compute(&self.s.cfg);
        let mut order = std::mem::take(&mut self.s.order);
        order.clear();
        order.extend_from_slice(self.s.cfg.rpo());
        let all = self.f.block_ids();
        order.extend(all.filter(|&b| !self.s.cfg.is_reachable(b)));
        let blocks = self.ast[self.decl.blocks].len() as u32;
        for &b in &order {
            // Parts of a block that follow a `try` are lowered with it; dominance holds, because
            // they come after it in the order.
            if b.0 < blocks {
                self.source_block(b);
            }
        }
        self.s.order = order;
        self.complete_phis();
        if self.s.cfg.num_blocks() < self.f.blocks.len() {
            self.s.cfg.compute(&self.f);
        }
        let errors = self.cx.diagnostics[reports..].iter().filter(|d| d.is_error()).count();
        if errors == self.ownership_errors {
            self.report_unreachable();
            if !self.on_device {
                self.check_ownership();
            }
        }
        self.drop_unreachable();
    }

    /// Warns about blocks that no path leads to.
    fn report_unreachable(&mut self) {
        for (n, block) in self.ast[self.decl.blocks].iter().enumerate() {
            if !self.s.cfg.is_reachable(Block(n as u32)) {
                let label = self.scope.name(block.label.symbol);
                let message = format!("no path leads to `{label}`; it is left out");
                let span = self.scope.span(block.label.range);
                let warning = Diagnostic::new(Code::MPL2012, span, message);
                self.cx.report(warning.with_help("branch to it, or remove it"));
            }
        }
    }

    fn drop_unreachable(&mut self) {
        if self.s.cfg.rpo().len() < self.f.blocks.len() {
            let cfg = &self.s.cfg;
            self.f.compact(|b| cfg.is_reachable(b));
        }
    }

    /// Lowers a source block.
    fn source_block(&mut self, b: Block) {
        self.block = b;
        self.source = b.0;
        self.next_split = self.s.first_split[b.index()];
        let block = &self.ast[self.decl.blocks][b.index()];
        let mut after_phis = false;
        for instr in &self.ast[block.instrs] {
            self.span = self.scope.span(instr.range);
            self.in_unsafe = instr.in_unsafe || self.decl.is_unsafe;
            if let Op::Phi { .. } = instr.op {
                self.phi(instr, after_phis);
                continue;
            }
            after_phis = true;
            let want = self.annotation(instr);
            let out = self.instruction(instr, want);
            self.bind(instr, want, out);
        }
        self.span = self.scope.span(block.terminator_range);
        self.in_unsafe = self.decl.is_unsafe;
        self.terminator(&block.terminator);
    }

    // ----- results -----

    /// The type written for the result of an instruction.
    pub(super) fn annotation(&mut self, instr: &Instr) -> Annotation {
        let Some(result) = instr.result else { return Annotation::None };
        if self.type_params.is_empty()
            && let Some(ty) = self.cx.types.known(self.module, result.ty.id)
        {
            return Annotation::Type(ty);
        }
        match self.written(result.ty.id) {
            Written::Type(ty) => Annotation::Type(ty),
            Written::DeviceOnly(ty, _) if self.on_device => Annotation::Type(ty),
            Written::Ptr => Annotation::Ptr,
            Written::DeviceOnly(_, fault) | Written::Fault(fault) => {
                let span = self.scope.span(result.ty.range);
                let report = self.cx.types.report(self.cx.program, self.module, fault, span);
                self.cx.report_all(report);
                Annotation::Poisoned
            }
        }
    }

    fn written(&mut self, id: TypeExprId) -> Written {
        let module = self.module;
        let scope = Scope { params: &self.type_params, args: &self.type_args };
        let cx = &mut *self.cx;
        let mut work = TypeWork {
            program: cx.program,
            ctx: &mut cx.module.types,
            diagnostics: &mut cx.diagnostics,
        };
        let written = cx.types.resolve(&mut work, module, id, scope);
        cx.types.define_instances(&mut work);
        written
    }

    /// A type that an instruction writes.
    pub(super) fn type_use(&mut self, ty: TypeUse) -> Lower<TypeId> {
        if self.type_params.is_empty()
            && let Some(ty) = self.cx.types.known(self.module, ty.id)
        {
            return Ok(ty);
        }
        let module = self.module;
        let on_device = self.on_device;
        let scope = Scope { params: &self.type_params, args: &self.type_args };
        let cx = &mut *self.cx;
        let mut work = TypeWork {
            program: cx.program,
            ctx: &mut cx.module.types,
            diagnostics: &mut cx.diagnostics,
        };
        let found = cx.types.of_use(&mut work, module, ty, scope, on_device);
        cx.types.define_instances(&mut work);
        found.ok_or(Poisoned)
    }

    /// Gives the result of an instruction its name.
    fn bind(&mut self, instr: &Instr, want: Annotation, out: Lower) {
        let Some(result) = &instr.result else { return };
        let state = match (out, want) {
            (Err(Poisoned), _) | (_, Annotation::Poisoned) => LocalState::Poisoned,
            (Ok(Out::Value(v)), Annotation::Type(ty)) if self.f.ty(v) == ty => LocalState::Value(v),
            (Ok(Out::Value(v)), Annotation::Ptr) if self.is_array_memory(v) => LocalState::Value(v),
            (Ok(Out::Unit), Annotation::Type(fixed::UNIT)) => {
                LocalState::Value(self.f.zero(fixed::UNIT))
            }
            (Ok(out), _) => {
                self.report_annotation(result, out);
                LocalState::Poisoned
            }
        };
        self.set_local(result.name, instr.range, state);
    }

    pub(super) fn set_local(&mut self, name: Symbol, range: ByteRange, state: LocalState) {
        if let Some(n) = self.s.names.get(name)
            && let local = &mut self.s.locals[n as usize]
            // A second definition of the name was reported and is not used.
            && local.range == range
        {
            local.state = state;
        }
    }

    #[cold]
    fn report_annotation(&mut self, result: &ResultDef, out: Out) {
        let name = self.scope.name(result.name);
        let written = self.scope.parsed.ast.types[result.ty.id].path;
        let found = match out {
            Out::Value(v) => self.type_name(self.f.ty(v)),
            Out::Unit => "unit".to_string(),
        };
        let (message, help) = if written == symbols::PTR {
            (
                format!("`%{name}` has the type `{found}`, not `ptr`"),
                format!("write `%{name}: {found}`; `ptr` belongs to `gpu.shared` and `gpu.local`"),
            )
        } else {
            let Ok(wanted) = self.type_use(result.ty) else { return };
            let wanted = self.type_name(wanted);
            match out {
                Out::Unit => (
                    format!("`%{name}` has the type `{wanted}`, but the operation has no result"),
                    format!("remove `%{name}: {wanted} =`"),
                ),
                Out::Value(_) => (
                    format!("`%{name}` has the type `{wanted}`, but the value is `{found}`"),
                    format!("write `%{name}: {found}`, or change the operation"),
                ),
            }
        };
        self.error(Code::MPT2014, message, help);
    }

    /// Whether a value is a shared or a private array.
    pub(super) fn is_array_memory(&self, v: Value) -> bool {
        matches!(self.kind(self.f.ty(v)), TypeKind::SharedArray(..) | TypeKind::LocalArray(..))
    }

    // ----- values -----

    /// The value of a name at the current place.
    #[inline]
    pub(super) fn ssa(&mut self, name: Symbol) -> Lower<Value> {
        if let Some(n) = self.s.names.get(name) {
            let local = &self.s.locals[n as usize];
            if let LocalState::Value(v) = local.state
                && (local.block == self.block || self.dominates(local.block, self.block))
            {
                return Ok(v);
            }
        }
        self.ssa_slow(name, self.block, self.span)
    }

    fn dominates(&self, a: Block, b: Block) -> bool {
        a.0 == 0 || self.s.dominators.dominates(a, b) || !self.s.cfg.is_reachable(b)
    }

    /// The value of a name at the end of a block, for a use at `span`.
    pub(super) fn ssa_at(&mut self, name: Symbol, end_of: Block, span: Span) -> Lower<Value> {
        if let Some(n) = self.s.names.get(name) {
            let local = &self.s.locals[n as usize];
            if let LocalState::Value(v) = local.state
                && (local.block == end_of || self.dominates(local.block, end_of))
            {
                return Ok(v);
            }
        }
        self.ssa_slow(name, end_of, span)
    }

    #[cold]
    fn ssa_slow(&mut self, name: Symbol, at: Block, span: Span) -> Lower<Value> {
        let text = self.scope.name(name);
        let Some(n) = self.s.names.get(name) else {
            let names = self.s.locals.iter().map(|l| self.scope.name(l.name));
            let may = self.cx.may_suggest();
            let similar = magpie_diag::closest(text, names.take_while(|_| may));
            let help = match similar {
                Some(similar) => format!("did you mean `%{similar}`?"),
                None => format!("define it before: `%{text}: T = …`"),
            };
            let error = Diagnostic::new(Code::MPS0002, span, format!("`%{text}` is not defined"));
            self.cx.report(error.with_help(help));
            return Err(Poisoned);
        };
        let local = self.s.locals[n as usize];
        // In a block that no path leads to, what comes later in the order may be missing.
        if local.state == LocalState::Poisoned || !self.s.cfg.is_reachable(at) {
            return Err(Poisoned);
        }
        let defined = self.scope.span(local.range);
        let (message, place, help) = match local.block == at {
            true => (
                format!("`%{text}` is used before it is defined"),
                "defined here",
                "move the definition up",
            ),
            false => (
                format!("`%{text}` is used where it may not have been defined"),
                "defined here, which not every path passes",
                "define it before the paths part, or join values with a `phi`",
            ),
        };
        let error = Diagnostic::new(Code::MPS0003, span, message);
        self.cx.report(error.with_secondary(defined, place).with_help(help));
        Err(Poisoned)
    }

    /// An operand.
    #[inline]
    pub(super) fn value(&mut self, value: crate::ast::Value) -> Lower<Value> {
        match value {
            crate::ast::Value::Ssa(name) => self.ssa(name),
            crate::ast::Value::Const(id) => self.constant(id),
        }
    }

    /// The value that an argument gives.
    #[inline]
    pub(super) fn arg(&mut self, arg: &Arg) -> Lower<Value> {
        match arg.kind {
            ArgKind::Value(value) => self.value(value),
            // The parser has refused these.
            ArgKind::Function(_) | ArgKind::Word(_) | ArgKind::List(_) => Err(Poisoned),
        }
    }

    /// The values of the first arguments; all are looked at before one that is poisoned counts.
    #[inline]
    pub(super) fn args<const N: usize>(&mut self, args: &[Arg]) -> Lower<[Value; N]> {
        let mut values = [Value(0); N];
        let mut poisoned = args.len() < N;
        for (slot, arg) in values.iter_mut().zip(args) {
            match self.arg(arg) {
                Ok(v) => *slot = v,
                Err(Poisoned) => poisoned = true,
            }
        }
        if poisoned { Err(Poisoned) } else { Ok(values) }
    }

    // ----- types -----

    pub(super) fn kind(&self, ty: TypeId) -> TypeKind {
        self.cx.module.types.kind(ty)
    }

    pub(super) fn intern(&mut self, kind: TypeKind) -> TypeId {
        self.cx.module.types.intern(kind)
    }

    /// A type as messages name it.
    pub(super) fn type_name(&self, ty: TypeId) -> String {
        match self.kind(ty) {
            TypeKind::SharedArray(..) | TypeKind::LocalArray(..) => "ptr".to_string(),
            _ => display_name(&self.cx.module.types, ty),
        }
    }

    // ----- instructions -----

    /// Appends an instruction to the current block.
    pub(super) fn emit(&mut self, op: MpirOp, ty: TypeId, args: &[Value], imm: u64) -> Out {
        self.emit_flags(op, Flags::NONE, ty, args, imm)
    }

    /// As [`Body::emit`], with flags.
    pub(super) fn emit_flags(
        &mut self,
        op: MpirOp,
        flags: Flags,
        ty: TypeId,
        args: &[Value],
        imm: u64,
    ) -> Out {
        self.f.append(self.block, op, flags, ty, args, imm, self.span).into()
    }

    /// Appends an instruction whose type is not `unit`.
    pub(super) fn emit_value(
        &mut self,
        op: MpirOp,
        ty: TypeId,
        args: &[Value],
        imm: u64,
    ) -> Lower<Value> {
        match self.emit(op, ty, args, imm) {
            Out::Value(v) => Ok(v),
            Out::Unit => Err(Poisoned),
        }
    }

    // ----- reports -----

    /// Reports an error at the current instruction.
    #[cold]
    pub(super) fn error(
        &mut self,
        code: Code,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Poisoned {
        let error = Diagnostic::new(code, self.span, message).with_help(help);
        self.cx.report(error);
        Poisoned
    }

    /// Reports that the current instruction breaks a rule of ownership; lowering goes on, so that the
    /// others of the function are found too.
    #[cold]
    pub(super) fn ownership_error(
        &mut self,
        code: Code,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.error(code, message, help);
        self.ownership_errors += 1;
    }
}

/// The type written for a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Annotation {
    /// The instruction names no result.
    None,
    Type(TypeId),
    /// `ptr`
    Ptr,
    /// An error about it has been reported.
    Poisoned,
}

impl Annotation {
    /// The type, if one is known.
    pub(super) fn ty(self) -> Option<TypeId> {
        match self {
            Annotation::Type(ty) => Some(ty),
            Annotation::None | Annotation::Ptr | Annotation::Poisoned => None,
        }
    }
}
