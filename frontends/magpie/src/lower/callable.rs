//! Callables.

use super::body::{Annotation, Body};
use super::*;
use crate::resolve::FunctionName;
use crate::symbols;
use magpie_mpir::imm_pair;
use magpie_types::TypeKind;

/// How many parameters a function may have to be captured: the bound ones are bits.
const MAX_CAPTURE_PARAMS: usize = 32;

impl Body<'_, '_> {
    /// `callable.capture @f { … }`
    pub(super) fn capture(&mut self, callee: FnRefId, args: Slice<Arg>, want: Annotation) -> Lower {
        let name = self.scope.name(self.ast[callee].name);
        let (fn_id, names, params, result) = match self.callee(callee)? {
            FunctionName::Function(function) => {
                let (module, decl) = self.cx.program.function(function);
                if decl.gpu.is_some() {
                    let message = format!("`@{name}` is a kernel and cannot be captured");
                    let help = "capture a plain function that launches it";
                    return Err(self.error(Code::MPS0026, message, help));
                }
                if decl.is_unsafe && !self.in_unsafe {
                    let message = format!("`@{name}` is unsafe and is captured in safe code");
                    let help = "capture it in `unsafe { … }`";
                    return Err(self.error(Code::MPS0025, message, help));
                }
                // A callable runs on the host, wherever it is made.
                let on_device = std::mem::replace(&mut self.on_device, false);
                let instance = self.instance_for(function, Slice::EMPTY);
                self.on_device = on_device;
                let instance = &self.cx.instances[instance?.0 as usize];
                let scope = self.cx.program.module(module);
                let list = &scope.ast()[decl.params];
                let names: Vec<String> =
                    list.iter().map(|p| scope.name(p.name.symbol).to_string()).collect();
                (instance.fn_id, names, instance.params.clone(), instance.result)
            }
            FunctionName::Builtin(id) => {
                let row = id.row();
                if row.generic || row.lowering == crate::builtins::Lowering::ProfiledLaunch {
                    let message = format!("`{}` cannot be captured", row.full_name());
                    let help = "write a function that calls it, and capture that";
                    return Err(self.error(Code::MPT2050, message, help));
                }
                let (params, result) = self.builtin_signature(row, None);
                let fn_id = self.cx.builtin_function(id, None);
                let names = row.params.iter().map(|p| p.0.to_string()).collect();
                (fn_id, names, params.into_iter().map(Some).collect(), Some(result))
            }
            _ => {
                let message = format!("`@{name}` is no function of this program");
                return Err(self.error(Code::MPT2004, message, "capture a function"));
            }
        };
        if names.len() > MAX_CAPTURE_PARAMS {
            let message = format!("`@{name}` has more than {MAX_CAPTURE_PARAMS} parameters");
            return Err(self.error(Code::MPT2050, message, "pass a struct"));
        }
        let ast = self.ast;
        let mut bound = vec![None; names.len()];
        let mut poisoned = false;
        for arg in &ast[args] {
            let key = self.scope.name(arg.key);
            let Some(n) = names.iter().position(|name| name == key) else {
                let message = format!("`@{name}` has no parameter `{key}`");
                let help = match names.is_empty() {
                    true => "it has no parameters: write `{ }`".to_string(),
                    false => format!("the parameters are {}", names.join(", ")),
                };
                return Err(self.error(Code::MPT2001, message, help));
            };
            let (Ok(v), Some(param)) = (self.arg(arg), params[n]) else {
                poisoned = true;
                continue;
            };
            if self.is_view(self.f.ty(v)) || self.is_view(param) && !self.is_counted(self.f.ty(v)) {
                let found = self.type_name(self.f.ty(v));
                let message = format!("a callable cannot hold a borrow, `{found}`");
                let help = "bind an owned value or a `shared` handle";
                self.ownership_error(Code::MPO0003, message, help);
                poisoned = true;
            } else if !self.passes(self.f.ty(v), param) {
                let (found, wanted) = (self.type_name(self.f.ty(v)), self.type_name(param));
                let message = format!(
                    "parameter `{key}` has the type `{wanted}`, but the argument is `{found}`"
                );
                self.error(Code::MPT2003, message, format!("give a `{wanted}`"));
                poisoned = true;
            }
            bound[n] = Some(v);
        }
        let Some(ty) = want.ty() else {
            if want == Annotation::Poisoned || poisoned {
                return Err(Poisoned);
            }
            let help = "name the result: `%c: TCallable<TSig> = callable.capture @f { }`";
            return Err(self.error(Code::MPT2014, "nothing says which signature is meant", help));
        };
        self.check_signature(name, ty, &bound, &params, result)?;
        if poisoned {
            return Err(Poisoned);
        }
        let bits =
            (0..bound.len()).filter(|&n| bound[n].is_some()).fold(0, |bits, n| bits | 1 << n);
        let values: Vec<_> = bound.into_iter().flatten().collect();
        Ok(self.emit(MpirOp::CallableCapture, ty, &values, imm_pair(fn_id.0, bits)))
    }

    /// Whether values of a type are owned handles.
    fn is_counted(&self, ty: TypeId) -> bool {
        !self.cx.module.types.is_copy(ty)
    }

    /// Checks that the parameters that are left and the result are those of the signature.
    fn check_signature(
        &mut self,
        name: &str,
        ty: TypeId,
        bound: &[Option<magpie_mpir::Value>],
        params: &[Option<TypeId>],
        result: Option<TypeId>,
    ) -> Lower<()> {
        let TypeKind::Callable(sig) = self.kind(ty) else {
            let found = self.type_name(ty);
            let message = format!("`callable.capture` makes a callable, not a `{found}`");
            let help = "annotate the result `TCallable<TSig>`";
            return Err(self.error(Code::MPT2014, message, help));
        };
        let result = result.ok_or(Poisoned)?;
        let mut left = Vec::new();
        for (param, bound) in params.iter().zip(bound) {
            let param = param.ok_or(Poisoned)?;
            if bound.is_none() {
                left.push(param);
            }
        }
        let def = self.cx.module.types.sig_def(sig);
        if def.params == left && def.ret == result {
            return Ok(());
        }
        let list = |types: &[TypeId]| {
            let names: Vec<String> = types.iter().map(|&ty| self.type_name(ty)).collect();
            names.join(", ")
        };
        let wanted = format!("({}) -> {}", list(&def.params), self.type_name(def.ret));
        let found = format!("({}) -> {}", list(&left), self.type_name(result));
        let sig = def.name.rsplit('.').next().unwrap_or(&def.name).to_string();
        let message = format!("`{sig}` is `{wanted}`, but `@{name}` with these bound is `{found}`");
        let help = format!("declare a signature `{found}`, or bind other parameters");
        Err(self.error(Code::MPT2003, message, help))
    }

    pub(super) fn call_indirect(
        &mut self,
        form: IndirectForm,
        callee: Value,
        args: Slice<Arg>,
    ) -> Lower {
        if form == IndirectForm::Suspend {
            let message = "a callable cannot be suspended";
            let help = "call it with `call.indirect`";
            return Err(self.error(Code::MPT1030, message, help));
        }
        let ast = self.ast;
        let callee = self.value(callee);
        let values = match ast[args] {
            [Arg { key: symbols::ARGS, kind: ArgKind::List(items), .. }] => self.list_values(items),
            _ => self.written_order(&ast[args]),
        };
        let (callee, values) = (callee?, values?);
        let (params, ret) = self.callable_sig("call.indirect", callee)?;
        if params.len() != values.len() {
            let message = format!(
                "the call gives {} arguments, but the callable takes {}",
                values.len(),
                params.len()
            );
            let list: Vec<String> = params.iter().map(|&ty| self.type_name(ty)).collect();
            let help = format!("its parameters are ({})", list.join(", "));
            return Err(self.error(Code::MPT2001, message, help));
        }
        let mut operands = Vec::with_capacity(values.len() + 1);
        operands.push(callee);
        for (n, (&v, &param)) in values.iter().zip(&params).enumerate() {
            let found = self.f.ty(v);
            if !self.passes(found, param) {
                let (found, wanted) = (self.type_name(found), self.type_name(param));
                let message = format!("argument {} is a `{found}`, not a `{wanted}`", n + 1);
                return Err(self.error(Code::MPT2003, message, format!("give a `{wanted}`")));
            }
            operands.push(v);
        }
        Ok(self.emit(MpirOp::CallIndirect, ret, &operands, 0))
    }

    fn written_order(&mut self, args: &[Arg]) -> Lower<Vec<magpie_mpir::Value>> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.extend(self.arg(arg).ok());
        }
        if values.len() == args.len() { Ok(values) } else { Err(Poisoned) }
    }
}
