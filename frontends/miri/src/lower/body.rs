//! [`Body`]: the function that is being lowered.

use super::locals::{Local, LocalKind};
use super::moves::Moved;
use super::types::Subst;
use super::{Cx, Form, Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Block as MpirBlock, Builder, Const, Flags, Op, Value, Variable};
use magpie_types::abi::RtFn;
use magpie_types::{TypeId, TypeKind, fixed};
use rustc_hash::FxHashMap;

/// A value of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Val {
    pub(super) ty: Ty,
    pub(super) v: Value,
    /// Whether the value is a temporary that may be given away. Others belong to a variable or are
    /// views, and are cloned when they are kept.
    pub(super) owned: bool,
}

/// A loop around the present place.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    pub(super) on_break: MpirBlock,
    pub(super) on_continue: MpirBlock,
    /// Whether leaving it would leave the body of a `forall`.
    pub(super) is_forall: bool,
    /// Locals below this one are declared outside of it.
    pub(super) outer_locals: u32,
    /// What was moved when it began, and when a `break` left it.
    pub(super) before: Moved,
    pub(super) at_breaks: Moved,
}

/// What a block declares.
#[derive(Default)]
pub(super) struct Scope {
    names: Vec<Sym>,
    /// Constants that were there before it.
    consts: usize,
}

/// What `return` does.
#[derive(Clone, Debug, Default)]
pub(super) struct Returns {
    /// Type of the result.
    pub(super) ty: Option<Ty>,
    /// `out` parameters: the variable and the cell that gets its value.
    pub(super) outs: Vec<(Variable, Value, TypeId)>,
    /// Inside the body of a `forall` on the host: where the next index starts.
    pub(super) next_index: Option<MpirBlock>,
}

/// One function.
pub(super) struct Body<'c, 'p, 'f> {
    pub(super) cx: &'c mut Cx<'p>,
    pub(super) b: Builder<'f>,
    pub(super) device: bool,
    /// Whether it is the body of a kernel itself, in which `kernel.*` is known to work.
    pub(super) kernel: Option<super::kernel::Kernel>,
    pub(super) subst: Subst,
    pub(super) locals: Vec<Local>,
    /// By name: the local it means and, under it, those that it hides.
    pub(super) names: FxHashMap<Sym, Vec<u32>>,
    pub(super) scopes: Vec<Scope>,
    pub(super) loops: Vec<Loop>,
    pub(super) moved: Moved,
    pub(super) returns: Returns,
    pub(super) span: Span,
    /// Locals below this one stand outside of the innermost `forall`.
    pub(super) forall_base: Option<(u32, Span)>,
    /// In the operands of a division in a kernel.
    pub(super) in_division: bool,
    /// Float literals without a type are `f32`: the initializer of a device-resident binding.
    pub(super) resident_literals: bool,
    /// In a copy of a function for device-resident arguments: where it is called.
    pub(super) resident_call: Option<Span>,
    /// Whether the top of a script is lowered.
    pub(super) is_script: bool,
}

impl<'c, 'p, 'f> Body<'c, 'p, 'f> {
    pub(super) fn new(
        cx: &'c mut Cx<'p>,
        b: Builder<'f>,
        device: bool,
        subst: Subst,
    ) -> Body<'c, 'p, 'f> {
        Body {
            cx,
            b,
            device,
            kernel: None,
            subst,
            locals: Vec::new(),
            names: FxHashMap::default(),
            scopes: vec![Scope::default()],
            loops: Vec::new(),
            moved: Moved::new(),
            returns: Returns::default(),
            span: Span::NONE,
            forall_base: None,
            in_division: false,
            resident_literals: false,
            resident_call: None,
            is_script: false,
        }
    }

    // ----- reports -----

    pub(super) fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Poisoned {
        self.cx.error(code, span, message, help)
    }

    pub(super) fn unsupported(&mut self, span: Span, what: &str, help: &str) -> Poisoned {
        self.error(Code::MIR0103, span, format!("{what} is not supported"), help)
    }

    pub(super) fn mismatch(&mut self, span: Span, found: Ty, wanted: Ty) -> Poisoned {
        if found == ty::ERROR || wanted == ty::ERROR {
            return Poisoned;
        }
        let (f, w) = (self.cx.ty_name(found), self.cx.ty_name(wanted));
        let numbers = self.cx.tys.is_number(found) && self.cx.tys.is_number(wanted);
        let help = match numbers {
            true => format!("convert it: `… as {w}`"),
            false => format!("give a `{w}`"),
        };
        self.error(Code::MIR0202, span, format!("expected `{w}`, found `{f}`"), help)
    }

    pub(super) fn at(&mut self, span: Span) {
        self.span = span;
        self.b.at(span);
    }

    pub(super) fn expr_span(&self, e: ExprId) -> Span {
        self.cx.program.ast[e].span
    }

    // ----- types -----

    /// `int` and `float` are the 32-bit types in kernels.
    pub(super) fn norm(&mut self, t: Ty) -> Ty {
        if !self.device {
            return t;
        }
        self.cx.device_type(t)
    }

    pub(super) fn resolve(&mut self, id: TypeExprId) -> Lower<Ty> {
        let subst = std::mem::take(&mut self.subst);
        let t = self.cx.resolve(id, &subst);
        self.subst = subst;
        Ok(self.norm(t?))
    }

    pub(super) fn form(&self) -> Form {
        if self.device { Form::Device } else { Form::Host }
    }

    pub(super) fn machine(&mut self, t: Ty) -> TypeId {
        let form = self.form();
        self.cx.machine(t, form)
    }

    pub(super) fn is_copy(&mut self, t: Ty) -> bool {
        let id = self.machine(t);
        self.cx.module.types.is_copy(id)
    }

    // ----- values -----

    pub(super) fn val(&self, ty: Ty, v: Value) -> Val {
        Val { ty, v, owned: true }
    }

    pub(super) fn unit(&mut self) -> Val {
        let v = self.b.func().zero(fixed::UNIT);
        self.val(ty::UNIT, v)
    }

    pub(super) fn const_val(&mut self, t: Ty, bits: u64) -> Val {
        let id = self.machine(t);
        let v = self.b.const_bits(id, bits);
        self.val(t, v)
    }

    pub(super) fn i64(&mut self, n: i64) -> Value {
        self.b.const_bits(fixed::I64, n as u64)
    }

    pub(super) fn i32(&mut self, n: i32) -> Value {
        self.b.const_bits(fixed::I32, u64::from(n as u32))
    }

    /// A text that is known.
    pub(super) fn text(&mut self, text: &str) -> Val {
        let id = self.cx.module.intern_str(text);
        let v = self.b.func().constant(fixed::STR, Const::Str(id));
        self.val(ty::STR, v)
    }

    /// The place of a construct as a C string, for messages at run time.
    pub(super) fn place(&mut self, span: Span) -> Value {
        let text = self.cx.place_text(span);
        let id = self.cx.module.intern_str(&text);
        let ty = self.cx.intern(TypeKind::RawPtr(fixed::U8));
        self.b.func().constant(ty, Const::Str(id))
    }

    pub(super) fn rt(&mut self, f: RtFn, ret: TypeId, args: &[Value]) -> Option<Value> {
        let n = RtFn::ALL.iter().position(|&row| row == f).unwrap_or_default();
        self.b.inst(Op::RtCall, ret, args, n as u64)
    }

    pub(super) fn rt_value(&mut self, f: RtFn, ret: TypeId, args: &[Value]) -> Value {
        self.rt(f, ret, args).unwrap_or_else(|| self.b.func().zero(fixed::UNIT))
    }

    /// Ends the program with a message.
    pub(super) fn panic(&mut self, text: &str) {
        let text = self.text(text);
        self.b.inst(Op::Panic, fixed::UNIT, &[text.v], 0);
        self.b.unreachable();
    }

    /// Ends the program with a message when `bad` is true.
    pub(super) fn panic_if(&mut self, bad: Value, text: &str) {
        let (stop, go_on) = (self.b.create_block(), self.b.create_block());
        self.b.cbr(bad, stop, go_on);
        self.b.seal(stop);
        self.b.seal(go_on);
        self.b.switch_to(stop);
        let text = format!("{text} at {}", self.cx.place_text(self.span));
        self.panic(&text);
        self.b.switch_to(go_on);
    }

    /// Float operations of kernels may be fused.
    pub(super) fn float_op(&mut self, op: Op, args: &[Value]) -> Value {
        if self.device {
            self.b.set_flags(Flags::CONTRACT);
        }
        let v = self.b.same(op, args);
        self.b.set_flags(Flags::NONE);
        v
    }

    // ----- control -----

    /// A new block to which nothing leads: what stands behind a `return`.
    pub(super) fn begin_dead(&mut self) {
        let dead = self.b.create_block();
        self.b.seal(dead);
        self.b.switch_to(dead);
    }

    /// Whether the present place can be reached.
    pub(super) fn is_live(&self) -> bool {
        let current = self.b.current();
        !self.b.is_ended() && (current == MpirBlock(0) || self.b.has_preds(current))
    }

    /// Branches when the block has not ended.
    pub(super) fn go_to(&mut self, target: MpirBlock) {
        if !self.b.is_ended() {
            self.b.br(target);
        }
    }

    pub(super) fn new_block(&mut self) -> MpirBlock {
        self.b.create_block()
    }

    /// Seals a block and goes on in it.
    pub(super) fn enter(&mut self, block: MpirBlock) {
        self.b.seal(block);
        self.b.switch_to(block);
    }

    // ----- scopes -----

    pub(super) fn push_scope(&mut self) {
        self.scopes.push(Scope { names: Vec::new(), consts: self.cx.local_consts.len() });
    }

    pub(super) fn pop_scope(&mut self) {
        let scope = self.scopes.pop().unwrap_or_default();
        self.cx.local_consts.truncate(scope.consts);
        for name in scope.names {
            if let Some(list) = self.names.get_mut(&name) {
                list.pop();
            }
        }
    }

    pub(super) fn lookup(&self, name: Sym) -> Option<u32> {
        self.names.get(&name)?.last().copied()
    }

    pub(super) fn add_local(&mut self, local: Local) -> u32 {
        let id = self.locals.len() as u32;
        let name = local.name;
        self.locals.push(local);
        self.names.entry(name).or_default().push(id);
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.push(name);
        }
        id
    }

    /// Declares a variable that owns a value.
    pub(super) fn declare(&mut self, name: Ident, t: Ty, mutable: bool, value: Value) -> u32 {
        let id = self.machine(t);
        let var = self.b.declare(id);
        if id != fixed::UNIT {
            self.b.write(var, value);
        }
        self.add_local(Local {
            name: name.sym,
            ty: t,
            mutable,
            span: name.span,
            kind: LocalKind::Var(var),
        })
    }

    /// Declares an immutable name for a value.
    pub(super) fn declare_value(&mut self, name: Sym, span: Span, t: Ty, v: Value) -> u32 {
        self.add_local(Local { name, ty: t, mutable: false, span, kind: LocalKind::Value(v) })
    }
}
