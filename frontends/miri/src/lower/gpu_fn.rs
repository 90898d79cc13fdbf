//! `gpu fn` and `.launch(grid, block)`.

use super::body::{Body, Val};
use super::kernel::Kernel;
use super::locals::{Local, LocalKind};
use super::pack::Origin;
use super::{Cx, Form, Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use crate::writes;
use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::{Builder, FnId, Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::fixed;

/// Words that shading languages keep to themselves.
const RESERVED: &str = " alias break case const const_assert continue continuing default diagnostic discard else \
enable false fn for if let loop override requires return struct switch true var while NULL Self abstract active \
alignas alignof as asm asm_fragment async attribute auto await become binding_array cast catch class co_await \
co_return co_yield coherent column_major common compile compile_fragment concept const_cast consteval constexpr \
constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit export extends \
extern external fallthrough filter final finally friend from fxgroup get goto groupshared highp impl implements \
import inline instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut mutable \
namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null nullptr of \
operator package packoffset partition pass patch pixelfragment precise precision premerge priv protected pub \
public readonly ref regardless register reinterpret_cast require resource restrict self set shared sizeof smooth \
snorm static static_assert static_cast std subroutine super target template this thread_local throw trait try \
type typedef typeid typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl \
where with writeonly yield ";

/// Most invocations of a workgroup.
const MAX_BLOCK: u64 = 1024;

/// What a parameter of a kernel is.
enum ParamKind {
    Buffer,
    Value,
}

impl Cx<'_> {
    /// Checks a `gpu fn`, and compiles it if nothing launches it as it should.
    pub(super) fn gpu_function(&mut self, id: FnDeclId) {
        let name = self.kernel_name(id);
        if self.module.find_fn(&name).is_none() && self.check_gpu_head(id).is_ok() {
            let kernel = self.build_gpu_fn(id, [1, 1, 1], &format!("{name}.unused"));
            self.unlaunched.push(kernel);
        }
    }

    fn kernel_name(&self, id: FnDeclId) -> String {
        let name = self.program.ast[id].name;
        format!("miri.@{}{}", self.program.prefix(name.span), self.program.name(name.sym))
    }

    fn check_gpu_head(&mut self, id: FnDeclId) -> Lower<()> {
        let program = self.program;
        let decl = &program.ast[id];
        let text = program.name(decl.name.sym);
        let mut fine = Ok(());
        if text.starts_with("__") || RESERVED.contains(&format!(" {text} ")) {
            let why = if text.starts_with("__") {
                "starts with two underscores"
            } else {
                "is reserved in shading languages"
            };
            let message = format!("the kernel name `{text}` {why}");
            fine = Err(self.error(Code::MIR1902, decl.name.span, message, "choose another name"));
        }
        if decl.result.is_some() {
            let message = format!("the kernel `{text}` has a result");
            let help = "write it to an `out` parameter";
            fine = Err(self.error(Code::MIR1901, decl.head, message, help));
        }
        if !decl.generics.is_empty() {
            let message = "a `gpu fn` with type parameters is not supported";
            fine = Err(self.error(Code::MIR0103, decl.head, message, "write it for one type"));
        }
        for param in &decl.params {
            let name = program.name(param.name.sym);
            if param.residency == Some(Residency::Host) {
                let message = format!("parameter `{name}` of a kernel cannot be on the host");
                fine = Err(self.error(Code::MIR1901, param.name.span, message, "leave `host` out"));
                continue;
            }
            match self.resolve(param.ty, &Vec::new()) {
                Ok(t) if self.param_kind(t).is_none() => {
                    let message = format!(
                        "parameter `{name}` is a `{}`, which has no form on a device",
                        self.ty_name(t)
                    );
                    let help = "use arrays of accelerable elements, numbers and vectors";
                    fine = Err(self.error(Code::MIR1901, decl.head, message, help));
                }
                Ok(t) if param.out && self.buffer_parts(t).is_none() => {
                    let message = format!("parameter `{name}` is `out`, but no buffer");
                    let help = "give the result to an element of an array";
                    fine = Err(self.error(Code::MIR1901, decl.head, message, help));
                }
                Ok(_) => {}
                Err(Poisoned) => fine = Err(Poisoned),
            }
        }
        fine
    }

    fn param_kind(&mut self, t: Ty) -> Option<ParamKind> {
        match self.tys.kind(t) {
            TyKind::Array(e, _) | TyKind::List(e) => {
                self.is_element(e).then_some(ParamKind::Buffer)
            }
            TyKind::Atomic(_) => None,
            TyKind::Vector(..) => Some(ParamKind::Value),
            _ if self.buffer_parts(t).is_some() => Some(ParamKind::Buffer),
            _ if self.is_parameter(t) || self.is_element(t) => Some(ParamKind::Value),
            _ => None,
        }
    }

    /// The buffers of a parameter that is given as such: a collection, or a struct of collections.
    fn buffer_parts(&mut self, t: Ty) -> Option<Vec<(Ty, Option<u32>)>> {
        let is_struct = matches!(self.tys.kind(t), TyKind::Struct(..))
            && !self.is_element(t)
            && self.is_accelerable(t);
        (is_struct || self.tys.element(t).is_some()).then(|| self.parts_of(t))
    }

    fn build_gpu_fn(&mut self, id: FnDeclId, block: [u32; 3], name: &str) -> FnId {
        // Constants of the function that launches it mean nothing here.
        let outer = std::mem::take(&mut self.local_consts);
        let kernel = self.lower_gpu_fn(id, block, name);
        self.local_consts = outer;
        kernel
    }

    fn lower_gpu_fn(&mut self, id: FnDeclId, block: [u32; 3], name: &str) -> FnId {
        let program = self.program;
        let decl = &program.ast[id];
        let fn_id = self.reserve(name);
        let mut f = self.kernel_fn(name, block, decl.head);
        let mut params = Vec::new();
        let mut checked = Vec::new();
        for param in &decl.params {
            let t = self.resolve(param.ty, &Vec::new()).unwrap_or(ty::ERROR);
            let text = program.name(param.name.sym);
            let parts = self.buffer_parts(t);
            let ids = match (&parts, self.tys.kind(t)) {
                (Some(parts), _) => {
                    if !self.is_atomic_array(t) {
                        checked.push(param.name.sym);
                    }
                    parts.iter().map(|part| self.buffer_type(part.0)).collect()
                }
                (None, TyKind::Vector(c, n)) => vec![self.machine(c, Form::Device); n as usize],
                (None, _) => vec![self.machine(t, Form::Device)],
            };
            let values = ids.into_iter().map(|id| f.add_param(text, id, param.name.span)).collect();
            params.push((t, parts, values));
        }
        let doubtful = writes::check(program, &decl.body, &checked);
        self.doubtful_writes.extend(doubtful.into_iter().map(|d| (fn_id, d)));
        let holes = self.holes;
        let mut body = Body::new(self, Builder::new(&mut f), true, Vec::new());
        body.at(decl.head);
        body.kernel = Some(Kernel { named: true, frame: false, inside: None });
        for (param, (t, parts, values)) in decl.params.iter().zip(params) {
            let values: Vec<Value> = values;
            if let Some(parts) = parts {
                let local = Local {
                    name: param.name.sym,
                    ty: t,
                    mutable: param.out,
                    span: param.name.span,
                    kind: LocalKind::Value(values[0]),
                };
                body.declare_buffers(param.name.sym, &local, param.out, &parts, &values);
                continue;
            }
            let v = match body.cx.tys.kind(t) {
                TyKind::Vector(..) => {
                    let id = body.machine(t);
                    body.b.value(Op::VecNew, id, &values, 0)
                }
                _ => values[0],
            };
            let t = body.norm(t);
            body.declare_value(param.name.sym, param.name.span, t, v);
        }
        body.block(&decl.body);
        if !body.b.is_ended() {
            body.b.ret(None);
        }
        body.b.finish();
        self.note_soundness(fn_id, holes);
        self.finish_kernel(fn_id, f);
        fn_id
    }
}

impl Body<'_, '_, '_> {
    /// `kernel(args).launch(grid, block)`
    pub(super) fn launch(
        &mut self,
        id: FnDeclId,
        args: &[Arg],
        shape: &[Arg],
        span: Span,
    ) -> Lower<Val> {
        let program = self.cx.program;
        if self.device {
            let help = "launch it from host code";
            return Err(self.error(Code::MIR1803, span, "a kernel launches a kernel", help));
        }
        let [grid, block] = self.plain_args("launch", shape, span)?;
        let block = self.block_shape(block)?;
        let first = *self.cx.blocks.entry(id).or_insert((block, span));
        if first.0 != block {
            let text = program.name(program.ast[id].name.sym);
            let message = format!("`{text}` is launched with different block shapes");
            self.cx.report(
                Diagnostic::new(Code::MIR1903, span, message)
                    .with_secondary(first.1, "launched here first")
                    .with_help("use one shape: it is part of the compiled kernel"),
            );
            return Err(Poisoned);
        }
        self.cx.check_gpu_head(id)?;
        let decl = &program.ast[id];
        let args = self.ordered_args(program.name(decl.name.sym), &decl.params, args, span)?;
        let mut operands = Vec::new();
        let mut given: Vec<(u32, bool)> = Vec::new();
        let mut failed = false;
        for (&arg, param) in args.iter().zip(&decl.params) {
            match self.launch_arg(arg, param, &mut given) {
                Ok(values) => operands.extend(values),
                Err(Poisoned) => failed = true,
            }
        }
        if failed {
            return Err(Poisoned);
        }
        let dims = self.grid(grid)?;
        self.at(span);
        let name = self.cx.kernel_name(id);
        let kernel = match self.cx.module.find_fn(&name) {
            Some(kernel) => kernel,
            None => {
                let kernel = self.cx.build_gpu_fn(id, block, &name);
                self.cx.kernels.push(kernel);
                kernel
            }
        };
        self.rt(RtFn::GpuTelemetryLaunch, fixed::UNIT, &[]);
        let mut sizes: Vec<Value> = Vec::new();
        let done = self.new_block();
        let zero = self.i64(0);
        for size in dims {
            let bad = self.b.compare(Op::IcmpSlt, size, zero);
            self.panic_if(bad, "the grid of a launch has a negative size");
            let narrow = self.packed_int(size);
            sizes.push(self.b.cast(narrow, fixed::U32));
            // Without workgroups nothing runs.
            if self.b.func().as_bits(size).is_none_or(|bits| bits == 0) {
                let some = self.b.compare(Op::IcmpNe, size, zero);
                let go_on = self.new_block();
                self.b.cbr(some, go_on, done);
                self.enter(go_on);
            }
        }
        sizes.extend(block.map(|n| self.b.func().const_u32(n)));
        self.dispatch(kernel, &sizes, &operands, span);
        self.b.br(done);
        self.enter(done);
        Ok(self.unit())
    }

    fn launch_arg(
        &mut self,
        e: ExprId,
        param: &Param,
        given: &mut Vec<(u32, bool)>,
    ) -> Lower<Vec<Value>> {
        let span = self.expr_span(e);
        let t = self.cx.resolve(param.ty, &Vec::new())?;
        let program = self.cx.program;
        let name = program.name(param.name.sym).to_string();
        if self.cx.buffer_parts(t).is_none() {
            if let Some(id) = self.resident_of(e) {
                let text = program.name(self.locals[id as usize].name);
                let message = format!(
                    "`{text}` is device-resident, and parameter `{name}` is a value of the host"
                );
                let help = format!("read it back first: `let h = {text}`, then give `h`");
                return Err(self.error(Code::MIR1904, span, message, help));
            }
            let val = self.expr_as(e, t)?;
            self.at(span);
            if let TyKind::Vector(c, n) = self.cx.tys.kind(t) {
                return Ok((0..n).map(|i| self.field(val, i.into(), c).v).collect());
            }
            return Ok(vec![self.packed(val, Origin::Local(param.name.sym))]);
        }
        let Some(id) = self.resident_of(e) else {
            let message = format!("the argument for `{name}` is no device-resident binding");
            let help = "bind the array with `gpu let` or `gpu var`";
            return Err(self.error(Code::MIR1904, span, message, help));
        };
        let local = self.locals[id as usize].clone();
        let text = program.name(local.name).to_string();
        if self.moved.contains_key(&id) {
            return Err(self.read_back(id, span).err().unwrap_or(Poisoned));
        }
        if !self.cx.same_on_device(local.ty, t) {
            return Err(self.mismatch(span, local.ty, t));
        }
        if param.out && !local.mutable {
            let message = format!("`{text}` is a `gpu let`, but parameter `{name}` is `out`");
            return Err(self.error(Code::MIR0203, span, message, "bind it with `gpu var`"));
        }
        if given.iter().any(|&(other, out)| other == id && (out || param.out)) {
            let message = format!("`{text}` is given twice, and the kernel writes to it");
            return Err(self.error(Code::MIR1904, span, message, "give two bindings"));
        }
        given.push((id, param.out));
        let handles = self.resident_operands(id);
        Ok(handles.into_iter().map(|h| self.device_buffer(h, span)).collect())
    }

    /// The number of workgroups in each dimension, as `i64`s.
    fn grid(&mut self, e: ExprId) -> Lower<Vec<Value>> {
        let val = self.expr(e, None)?;
        let span = self.expr_span(e);
        if self.cx.ty_name(val.ty) != "Dim3" {
            let message = format!("the grid is a `{}`, not a `Dim3`", self.cx.ty_name(val.ty));
            return Err(self.error(Code::MIR0202, span, message, "write `Dim3(x, y, z)`"));
        }
        Ok((0..3).map(|n| self.field(val, n, ty::INT).v).collect())
    }

    /// `Dim3` of positive constants.
    fn block_shape(&mut self, e: ExprId) -> Lower<[u32; 3]> {
        let program = self.cx.program;
        let span = self.expr_span(e);
        let mut sizes = Vec::new();
        if let ExprKind::Call(callee, args) = &program.ast[e].kind
            && self.free_name(*callee) == Some("Dim3")
        {
            let axes: Vec<Option<Sym>> =
                ["x", "y", "z"].iter().map(|axis| program.names.find(axis)).collect();
            // Arguments by name stand in any order.
            let by_name = |axis: &Option<Sym>| {
                args.iter().find(|a| a.name.is_some_and(|name| Some(name.sym) == *axis))
            };
            let named: Vec<&Arg> = axes.iter().filter_map(by_name).collect();
            let args = if named.is_empty() { args.iter().collect() } else { named };
            for arg in args {
                sizes.extend(self.known_int(arg.value));
            }
        }
        let help = "write `Dim3(16, 16, 1)`: the shape is part of the compiled kernel";
        let Ok(sizes) = <[i128; 3]>::try_from(sizes) else {
            let message = "the block shape is no `Dim3` of constants";
            return Err(self.error(Code::MIR1903, span, message, help));
        };
        let total: i128 = sizes.iter().map(|&n| n.clamp(0, 1 << 20)).product();
        if sizes.iter().any(|&n| n < 1) || total > i128::from(MAX_BLOCK) {
            let message = format!(
                "a block of {} × {} × {} invocations: each number is at least 1, and there are at most {MAX_BLOCK} in all",
                sizes[0], sizes[1], sizes[2]
            );
            return Err(self.error(Code::MIR1903, span, message, help));
        }
        Ok(sizes.map(|n| n as u32))
    }
}
