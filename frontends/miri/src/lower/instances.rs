//! Functions of the module: a copy of a source function for each way in which it is used.

use super::body::{Body, Returns, Val};
use super::locals::LocalKind;
use super::types::Subst;
use super::{Cx, Form, Poisoned};
use crate::ast::*;
use crate::needs_device::needs_device;
use crate::ty::{Ty, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Builder, Domain, FnId, MpirFn, Op};
use magpie_types::abi::RtFn;
use magpie_types::{Category, Field, RefMode, Sid, SidKind, TypeId, TypeKind, fixed};
use rustc_hash::{FxHashMap, FxHashSet};

/// What makes an instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    pub(super) decl: FnDeclId,
    pub(super) device: bool,
    pub(super) args: Vec<Ty>,
    /// Which parameters are device-resident, with the types of their arguments.
    pub(super) resident: Vec<Option<Ty>>,
}

/// A copy of a function.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub(super) decl: FnDeclId,
    pub(super) device: bool,
    pub(super) subst: Subst,
    pub(super) resident: Vec<Option<Ty>>,
    pub(super) params: Vec<Ty>,
    pub(super) ret: Ty,
    pub(super) fn_id: FnId,
    /// Whether it works on the device with some parameter, or should.
    launches: bool,
    /// Then, its first call.
    pub(super) call: Option<Span>,
    /// Whether its head is wrong, so that calls are skipped.
    pub(super) poisoned: bool,
}

/// All instances, in the order in which they were asked for.
#[derive(Default)]
pub(super) struct Instances {
    ids: FxHashMap<Key, usize>,
    list: Vec<Instance>,
    next: usize,
}

/// The number of the counter of launches.
const LAUNCHES: i32 = 1;

/// Copies of generic functions at most.
const MAX_INSTANCES: usize = 4096;

/// Types in types, in the arguments of a generic function.
const MAX_TYPE_DEPTH: u32 = 24;

impl Cx<'_> {
    /// The host copy of a function without type parameters.
    pub(super) fn host_instance(&mut self, decl: FnDeclId) -> Instance {
        let resident = vec![None; self.program.ast[decl].params.len()];
        self.instance(Key { decl, device: false, args: Vec::new(), resident })
    }

    /// The copy of a function for a use of it.
    pub(super) fn instance(&mut self, key: Key) -> Instance {
        if let Some(&id) = self.instances.ids.get(&key) {
            return self.instances.list[id].clone();
        }
        let program = self.program;
        let decl = &program.ast[key.decl];
        let subst: Subst =
            decl.generics.iter().map(|g| g.sym).zip(key.args.iter().copied()).collect();
        let mut poisoned = false;
        let mut params = Vec::with_capacity(decl.params.len());
        for (n, param) in decl.params.iter().enumerate() {
            let t = self.resolve(param.ty, &subst);
            poisoned |= t.is_err();
            let resident = key.resident.get(n).copied().flatten();
            params.push(resident.unwrap_or(t.unwrap_or(ty::ERROR)));
        }
        let ret = match decl.result.map(|t| self.resolve(t, &subst)) {
            Some(Ok(t)) => t,
            Some(Err(Poisoned)) => {
                poisoned = true;
                ty::ERROR
            }
            None => ty::UNIT,
        };
        let count = self.instances.list.len();
        let grows = key.args.iter().any(|&t| self.is_deep(t, MAX_TYPE_DEPTH));
        if grows || count == MAX_INSTANCES {
            let message = "too many copies of a generic function";
            let help = "the type arguments of a recursive function must not grow";
            self.error(Code::MIR0103, decl.head, message, help);
        }
        poisoned |= grows || count >= MAX_INSTANCES;
        let mut name = format!("miri.@{}", program.prefix(decl.name.span));
        if let Some(owner) = program.owner(key.decl) {
            name.push_str(&format!("{}.", program.name(owner)));
        }
        name.push_str(program.name(decl.name.sym));
        for t in &key.args {
            name.push_str(&format!(".{}", self.ty_name(*t)));
        }
        for (n, t) in key.resident.iter().enumerate() {
            if let Some(t) = t {
                name.push_str(&format!(".gpu{n}.{}", self.ty_name(*t)));
            }
        }
        if key.device {
            name.push_str(".device");
        }
        let is_own_main = name == "miri.@main";
        let fn_id = self.reserve(if is_own_main { "miri.@program_main" } else { &name });
        let instance = Instance {
            decl: key.decl,
            device: key.device,
            subst,
            resident: key.resident.clone(),
            params,
            ret,
            fn_id,
            launches: !key.device
                && (key.resident.iter().any(Option::is_some) || needs_device(program, key.decl)),
            call: None,
            poisoned,
        };
        self.instances.ids.insert(key, count);
        self.instances.list.push(instance.clone());
        instance
    }

    /// The functions of which there is a copy.
    pub(super) fn used_functions(&self) -> FxHashSet<FnDeclId> {
        self.instances.list.iter().map(|instance| instance.decl).collect()
    }

    /// Notes where a copy is called that works on the device.
    pub(super) fn note_call(&mut self, key: &Key, span: Span) {
        if let Some(&id) = self.instances.ids.get(key)
            && self.instances.list[id].launches
        {
            self.instances.list[id].call.get_or_insert(span);
        }
    }

    /// Lowers all instances that were asked for, and those that this asks for.
    pub(super) fn lower_instances(&mut self) {
        while self.instances.next < self.instances.list.len() {
            let instance = self.instances.list[self.instances.next].clone();
            self.instances.next += 1;
            if instance.poisoned || self.instances.next > MAX_INSTANCES {
                self.unsound.insert(instance.fn_id);
                continue;
            }
            let holes = self.holes;
            self.lower_instance(&instance);
            self.note_soundness(instance.fn_id, holes);
        }
    }

    /// The memory through which an `out` parameter comes back.
    pub(super) fn cell(&mut self, t: Ty) -> TypeId {
        if let Some(&id) = self.cells.get(&t) {
            return id;
        }
        let member = self.machine(t, Form::Host);
        let name = format!("miri.Cell.{}", self.ty_name(t));
        let id = self.module.types.declare_struct(name, Category::Value);
        if let TypeKind::Struct(s) = self.module.types.kind(id) {
            let fields = vec![Field { name: "value".to_string(), ty: member }];
            self.module.types.define_struct(s, fields);
        }
        self.cells.insert(t, id);
        id
    }

    fn lower_instance(&mut self, instance: &Instance) {
        let program = self.program;
        let decl = &program.ast[instance.decl];
        let name = self.module.func(instance.fn_id).name.clone();
        let form = if instance.device { Form::Device } else { Form::Host };
        let domain = if instance.device { Domain::Device } else { Domain::Host };
        let ret = self.machine(instance.ret, form);
        let mut f = MpirFn::new(Sid::new(SidKind::Function, &name), name, ret, domain);
        f.span = decl.head;
        let mut values = Vec::new();
        for (n, param) in decl.params.iter().enumerate() {
            let text = program.name(param.name.sym);
            let t = instance.params[n];
            let tys: Vec<TypeId> = if instance.resident[n].is_some() {
                let parts = self.parts_of(t);
                parts.iter().map(|p| self.view_of_buffer(p.0)).collect()
            } else if instance.device {
                vec![self.machine(t, form)]
            } else if param.out {
                let cell = self.cell(t);
                vec![self.intern(TypeKind::Ref(RefMode::MutBorrow, cell))]
            } else {
                vec![self.param_machine(t)]
            };
            let vs: Vec<_> = tys.iter().map(|&t| f.add_param(text, t, param.name.span)).collect();
            values.push(vs);
        }
        let mut body =
            Body::new(self, Builder::new(&mut f), instance.device, instance.subst.clone());
        body.at(decl.head);
        body.resident_call = instance.call;
        let mut returns = Returns {
            ty: (instance.ret != ty::UNIT).then_some(instance.ret),
            ..Returns::default()
        };
        if let Some(t) = returns.ty {
            returns.ty = Some(body.norm(t));
        }
        for (n, param) in decl.params.iter().enumerate() {
            let t = instance.params[n];
            if instance.resident[n].is_some() {
                body.declare_resident(param.name, t, param.out, &values[n]);
            } else if param.out {
                body.out_param(param.name, t, values[n][0], &mut returns);
            } else {
                let t = body.norm(t);
                body.declare_value(param.name.sym, param.name.span, t, values[n][0]);
            }
        }
        body.returns = returns;
        body.function_body(&decl.body, decl.head);
        body.b.finish();
        self.finish_fn(instance.fn_id, f);
    }

    fn view_of_buffer(&mut self, element: Ty) -> TypeId {
        let buffer = self.buffer_type(element);
        self.view(buffer)
    }

    /// The function that the program starts with.
    pub(super) fn main_function(&mut self, main: Option<FnDeclId>) -> FnId {
        let program = self.program;
        let name = "miri.@main";
        let fn_id = self.reserve(name);
        let mut f = MpirFn::new(Sid::new(SidKind::Function, name), name, fixed::UNIT, Domain::Host);
        let mut body = Body::new(self, Builder::new(&mut f), false, Subst::new());
        body.is_script = true;
        body.rt(RtFn::GpuInit, fixed::UNIT, &[]);
        for &stmt in &program.script {
            if main.is_some()
                && !matches!(program.ast[stmt].kind, StmtKind::Let { .. } | StmtKind::Error)
            {
                let span = program.ast[stmt].span;
                let message = "statements beside `fn main` are not executed";
                body.error(Code::MIR0215, span, message, "move the statement into `fn main`");
                continue;
            }
            body.stmt(stmt);
        }
        if let Some(main) = main {
            if body.b.is_ended() {
                body.begin_dead();
            }
            let decl = &program.ast[main];
            if !decl.params.is_empty() || decl.result.is_some() || !decl.generics.is_empty() {
                let message = "`main` takes no parameters and has no result";
                let help = "write `fn main()`; arguments come from `args()` of `system.os`";
                body.error(Code::MIR0202, decl.head, message, help);
            } else {
                let instance = body.cx.host_instance(main);
                body.b.call(instance.fn_id, fixed::UNIT, &[]);
            }
        }
        if !body.b.is_ended() {
            body.await_launches();
            body.rt(RtFn::EndLine, fixed::UNIT, &[]);
            body.b.ret(None);
        }
        body.b.finish();
        self.finish_fn(fn_id, f);
        fn_id
    }
}

impl Body<'_, '_, '_> {
    /// Waits for launches that are still queued when the program ends, so that their faults are
    /// told and no device is left in the middle of its work.
    fn await_launches(&mut self) {
        let which = self.i32(LAUNCHES);
        let count = self.rt_value(RtFn::GpuTelemetry, fixed::I64, &[which]);
        let zero = self.i64(0);
        let some = self.b.compare(Op::IcmpSgt, count, zero);
        let (wait, fault, done) = (self.new_block(), self.new_block(), self.new_block());
        self.b.cbr(some, wait, done);
        self.enter(wait);
        let text = self.cx.intern(TypeKind::RawPtr(fixed::U8));
        let place = self.b.func().zero(text);
        let device = self.rt_value(RtFn::GpuDeviceOrStop, fixed::GPU_DEVICE, &[place]);
        let result = self.cx.intern(TypeKind::Result(fixed::UNIT, fixed::GPU_ERROR));
        let synced = self.rt_value(RtFn::GpuDeviceSync, result, &[device]);
        let failed = super::clone::enum_is(self, synced, 1);
        self.b.cbr(failed, fault, done);
        self.enter(fault);
        let imm = magpie_mpir::imm_pair(1, 0);
        let err = self.b.value(Op::EnumPayload, fixed::GPU_ERROR, &[synced], imm);
        self.rt(RtFn::GpuStop, fixed::UNIT, &[err, place]);
        self.b.unreachable();
        self.enter(done);
    }

    /// The statements of a function, and the return at their end.
    pub(super) fn function_body(&mut self, block: &Block, head: Span) {
        match self.returns.ty {
            Some(t) => {
                let live_end = match self.block_value(block, t) {
                    Ok(Some(val)) => {
                        let v = self.own(val);
                        if !self.b.is_ended() {
                            self.ret(Some(v));
                        }
                        return;
                    }
                    Ok(None) => !self.b.is_ended() && self.is_live(),
                    Err(Poisoned) => {
                        self.cx.holes += 1;
                        false
                    }
                };
                if live_end {
                    let message = format!("a value of type `{}` is missing", self.cx.ty_name(t));
                    let help = "end every path with a value, or with `return value`";
                    self.error(Code::MIR0210, head, message, help);
                }
                if !self.b.is_ended() {
                    self.b.unreachable();
                }
            }
            None => {
                self.block(block);
                if !self.b.is_ended() {
                    self.ret(None);
                }
            }
        }
    }

    /// An `out` parameter: its value is taken out of the cell, and put back at every return.
    fn out_param(&mut self, name: Ident, t: Ty, cell: magpie_mpir::Value, returns: &mut Returns) {
        let val = self.take_cell(cell, t);
        let id = self.declare(name, t, true, val);
        if let LocalKind::Var(var) = self.locals[id as usize].kind {
            let cell_ty = self.cx.cell(t);
            returns.outs.push((var, cell, cell_ty));
        }
    }

    /// A cell on the stack with an owned value.
    pub(super) fn new_cell(&mut self, v: magpie_mpir::Value, t: Ty) -> magpie_mpir::Value {
        let cell = self.empty_cell(t);
        self.b.effect(Op::SetField, &[cell, v], 0);
        cell
    }

    /// A cell on the stack with a null.
    pub(super) fn empty_cell(&mut self, t: Ty) -> magpie_mpir::Value {
        let id = self.cx.cell(t);
        let view = self.cx.intern(TypeKind::Ref(RefMode::MutBorrow, id));
        // What the cell is made of stays a null: its content is nobody's but the cell's.
        let empty = self.b.func().zero(id);
        self.b.value(Op::BorrowMut, view, &[empty], 0)
    }

    /// The value of a cell, which is left with a null.
    pub(super) fn take_cell(&mut self, cell: magpie_mpir::Value, t: Ty) -> magpie_mpir::Value {
        let id = self.machine(t);
        if self.is_copy(t) {
            return self.b.value(Op::GetField, id, &[cell], 0);
        }
        let view = self.cx.view(id);
        let v = self.b.value(Op::GetField, view, &[cell], 0);
        let v = self.own(Val { ty: t, v, owned: false });
        let null = self.b.func().zero(id);
        self.b.effect(Op::SetField, &[cell, null], 0);
        v
    }
}
