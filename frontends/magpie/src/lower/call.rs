//! Calls by name: which function, which arguments.

use super::body::Body;
use super::*;
use crate::resolve::FunctionName;
use crate::symbols;
use magpie_mpir::Value as MpirValue;
use magpie_types::{RefMode, TypeKind};

/// The names of the parameters of a callee.
pub(super) enum ParamNames<'p> {
    /// Of a function of the program.
    Source(&'p crate::resolve::ModuleScope, &'p [Param]),
    /// Of a built-in function.
    Builtin(&'static crate::builtins::Builtin),
}

/// Up to this many names are compared one by one.
const FEW: usize = 16;

/// Finds parameters by name.
enum Finder<'n, 'p> {
    Few(&'n ParamNames<'p>),
    Many(FxHashMap<&'n str, usize>),
}

impl<'n, 'p> Finder<'n, 'p> {
    fn new(names: &'n ParamNames<'p>) -> Finder<'n, 'p> {
        match names.len() {
            0..=FEW => Finder::Few(names),
            len => Finder::Many((0..len).map(|n| (names.name(n), n)).collect()),
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        match self {
            Finder::Few(names) => (0..names.len()).find(|&n| names.name(n) == name),
            Finder::Many(index) => index.get(name).copied(),
        }
    }
}

impl ParamNames<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            ParamNames::Source(_, params) => params.len(),
            ParamNames::Builtin(row) => row.params.len(),
        }
    }

    pub(super) fn name(&self, n: usize) -> &str {
        match self {
            ParamNames::Source(scope, params) => scope.name(params[n].name.symbol),
            ParamNames::Builtin(row) => row.params[n].0,
        }
    }

    pub(super) fn all(&self) -> Vec<String> {
        (0..self.len()).map(|n| format!("`{}`", self.name(n))).collect()
    }
}

impl<'p> Body<'_, 'p> {
    pub(super) fn call(
        &mut self,
        instr: &Instr,
        form: CallForm,
        callee: FnRefId,
        type_args: Slice<TypeUse>,
        args: Slice<Arg>,
    ) -> Lower {
        if form == CallForm::Suspend {
            return Err(self.suspend());
        }
        let out = self.call_by_name(callee, type_args, args)?;
        if let (None, Out::Value(_)) = (instr.result, out) {
            let name = self.scope.name(self.ast[callee].name);
            match form {
                CallForm::Call => {
                    let warning = self.unused_result(&format!("call @{name}"), name);
                    self.cx.report(warning);
                }
                // The short form may drop a result.
                CallForm::Direct => {
                    let lint = self.unused_result(&format!("@{name}"), name);
                    self.cx.lints.push(lint);
                }
                CallForm::CallVoid | CallForm::Suspend => {}
            }
        }
        Ok(out)
    }

    /// A warning about a result that nobody takes.
    fn unused_result(&self, what: &str, callee: &str) -> Diagnostic {
        let message = format!("the result of `{what}` is not used");
        let help = format!("name the result, or write `call_void @{callee}`");
        Diagnostic::new(Code::MPL2011, self.span, message).with_help(help)
    }

    /// What a reference to a function means here; what means nothing is reported.
    pub(super) fn callee(&mut self, id: FnRefId) -> Lower<FunctionName> {
        let fn_ref = self.ast[id];
        match self.cx.program.resolve_function(self.module, fn_ref) {
            Ok(FunctionName::Failed) => Err(Poisoned),
            Ok(FunctionName::MissingPackage) => {
                let span = self.scope.span(fn_ref.range);
                let program = self.cx.program;
                let report = self.cx.types.report_missing_package(program, self.module, span);
                self.cx.report_all(report);
                Err(Poisoned)
            }
            Ok(found) => Ok(found),
            Err(reason) => {
                let program = self.cx.program;
                let may = self.cx.may_suggest();
                let report = program.unknown_function(self.module, fn_ref, reason, self.span, may);
                self.cx.report(report);
                Err(Poisoned)
            }
        }
    }

    /// A call of a function; its result.
    pub(super) fn call_by_name(
        &mut self,
        callee: FnRefId,
        type_args: Slice<TypeUse>,
        args: Slice<Arg>,
    ) -> Lower {
        match self.callee(callee)? {
            FunctionName::Function(function) => {
                let instance = self.called_instance(function, type_args)?;
                self.call_instance(instance, args)
            }
            FunctionName::Builtin(id) => self.call_builtin(id, type_args, args),
            FunctionName::Global(_) => {
                let name = self.scope.name(self.ast[callee].name);
                let message = format!("`@{name}` is a global, not a function");
                Err(self.error(Code::MPT2004, message, "call a function"))
            }
            FunctionName::Extern(_) => {
                let name = self.scope.name(self.ast[callee].name);
                let message =
                    format!("`@{name}` is a foreign function, and this release calls none");
                let help = "use `std.*`, or embed the program in a host through the C interface";
                Err(self.error(Code::MPT2050, message, help))
            }
            FunctionName::MissingPackage | FunctionName::Failed => Err(Poisoned),
        }
    }

    /// The copy of a function that a call from here reaches.
    fn called_instance(
        &mut self,
        function: FunctionId,
        type_args: Slice<TypeUse>,
    ) -> Lower<InstanceId> {
        let (_, decl) = self.cx.program.function(function);
        if decl.gpu.is_some() && !self.on_device {
            let name = self.cx.program.function_name(function);
            let message = format!("`{name}` is a kernel and cannot be called");
            let help =
                "launch it: `gpu.launch { device=…, kernel=…, grid=[…], block=[…], args=[…] }`";
            return Err(self.error(Code::MPS0026, message, help));
        }
        if decl.is_unsafe && decl.gpu.is_none() && !self.in_unsafe {
            let name = self.cx.program.function_name(function);
            let message = format!("`{name}` is unsafe and is called from safe code");
            let help = "make sure that what it asks for holds, and call it in `unsafe { … }`";
            return Err(self.error(Code::MPS0025, message, help));
        }
        self.instance_for(function, type_args)
    }

    /// The copy of a function for the side at hand and a list of type arguments.
    pub(super) fn instance_for(
        &mut self,
        function: FunctionId,
        type_args: Slice<TypeUse>,
    ) -> Lower<InstanceId> {
        let (_, decl) = self.cx.program.function(function);
        let params = decl.type_params.len();
        if params != type_args.len() {
            let name = self.cx.program.function_name(function);
            let message =
                format!("`{name}` takes {params} type arguments, found {}", type_args.len());
            let help = match params {
                0 => "leave `<…>` out".to_string(),
                _ => "write the type arguments between `<` and `>`".to_string(),
            };
            return Err(self.error(Code::MPT2001, message, help));
        }
        if !self.on_device && self.cx.device_only[function.0 as usize] {
            let name = self.cx.program.function_name(function);
            let message = format!("`{name}` uses device operations and runs only in kernels");
            let help = "call it from a `gpu fn`";
            return Err(self.error(Code::MPS0026, message, help));
        }
        if params == 0 {
            return Ok(match self.on_device {
                true => self.cx.device_function(function),
                false => self.cx.host_function(function),
            });
        }
        let ast = self.ast;
        let mut types = Vec::with_capacity(params);
        for &ty in &ast[type_args] {
            let found = self.type_use(ty)?;
            if self.is_view(found) {
                let name = self.type_name(found);
                let help = "give the type without `borrow`, and borrow in the parameter types";
                let message = format!("a type argument cannot be a borrow, `{name}`");
                return Err(self.error(Code::MPO0003, message, help));
            }
            types.push(found);
        }
        let (on_device, span) = (self.on_device, self.span);
        self.cx.generic_function(function, types, on_device, span).ok_or(Poisoned)
    }

    fn call_instance(&mut self, instance: InstanceId, args: Slice<Arg>) -> Lower {
        let program = self.cx.program;
        let found = &self.cx.instances[instance.0 as usize];
        let (fn_id, result) = (found.fn_id, found.result);
        let params = found.params.clone();
        let (module, decl) = program.function(found.function);
        let scope = program.module(module);
        let names = ParamNames::Source(scope, &scope.ast()[decl.params]);
        let values = self.arguments(&names, &params, args)?;
        let result = result.ok_or(Poisoned)?;
        Ok(self.emit(MpirOp::Call, result, &values, u64::from(fn_id.0)))
    }

    /// The values for the parameters, in their order: named, or one list.
    pub(super) fn arguments(
        &mut self,
        names: &ParamNames<'_>,
        params: &[Option<TypeId>],
        args: Slice<Arg>,
    ) -> Lower<Vec<MpirValue>> {
        let ast = self.ast;
        let mut slots: Vec<Option<Lower<MpirValue>>> = vec![None; params.len()];
        if let [Arg { key: symbols::ARGS, kind: ArgKind::List(items), .. }] = ast[args] {
            let items = &ast[items];
            if items.len() != params.len() {
                return Err(self.wrong_count(names, items.len()));
            }
            for (slot, item) in slots.iter_mut().zip(items) {
                *slot = Some(match item.kind {
                    ListItemKind::Value(value) => self.value(value),
                    ListItemKind::Function(_) => Err(self.function_as_value(item.range)),
                });
            }
        } else {
            let finder = Finder::new(names);
            for arg in &ast[args] {
                let Some(n) = finder.find(self.scope.name(arg.key)) else {
                    return Err(self.unknown_argument(names, arg));
                };
                slots[n] = Some(match arg.kind {
                    ArgKind::Value(value) => self.value(value),
                    ArgKind::Function(_) => Err(self.function_as_value(arg.value_range)),
                    ArgKind::Word(_) | ArgKind::List(_) => Err(self.list_as_value(arg)),
                });
            }
        }
        let mut missing = (0..slots.len()).filter(|&n| slots[n].is_none()).peekable();
        if missing.peek().is_some() {
            let missing: Vec<String> = missing.map(|n| format!("`{}`", names.name(n))).collect();
            let message = format!("the call gives no {}", missing.join(", "));
            let help = format!("the parameters are {}", names.all().join(", "));
            return Err(self.error(Code::MPT2001, message, help));
        }
        let mut values = Vec::with_capacity(slots.len());
        for (n, slot) in slots.into_iter().enumerate() {
            let (Some(Ok(v)), Some(param)) = (slot, params[n]) else { continue };
            if self.passes(self.f.ty(v), param) {
                values.push(v);
            } else {
                self.wrong_argument(names.name(n), v, param);
            }
        }
        if values.len() == params.len() { Ok(values) } else { Err(Poisoned) }
    }

    #[cold]
    fn wrong_count(&mut self, names: &ParamNames<'_>, found: usize) -> Poisoned {
        let message = format!("the call gives {found} arguments for {} parameters", names.len());
        let help = match names.len() {
            0 => "write `{ }`".to_string(),
            _ => format!("the parameters are {}", names.all().join(", ")),
        };
        self.error(Code::MPT2001, message, help)
    }

    #[cold]
    fn unknown_argument(&mut self, names: &ParamNames<'_>, arg: &Arg) -> Poisoned {
        let key = self.scope.name(arg.key);
        let message = format!("the function has no parameter `{key}`");
        let known: Vec<&str> = (0..names.len()).map(|n| names.name(n)).collect();
        let help = match (magpie_diag::closest(key, known.iter().copied()), known.is_empty()) {
            (Some(similar), _) => format!("did you mean `{similar}`?"),
            (None, true) => "it takes no arguments: write `{ }`".to_string(),
            (None, false) => format!("the parameters are {}", names.all().join(", ")),
        };
        self.error(Code::MPT2001, message, help)
    }

    #[cold]
    pub(super) fn function_as_value(&mut self, range: ByteRange) -> Poisoned {
        let span = self.scope.span(range);
        let error = Diagnostic::new(Code::MPS0016, self.span, "a function is no value")
            .with_secondary(span, "a value is wanted here")
            .with_help("make a callable with `callable.capture` and give that");
        self.cx.report(error);
        Poisoned
    }

    #[cold]
    pub(super) fn list_as_value(&mut self, arg: &Arg) -> Poisoned {
        let key = self.scope.name(arg.key);
        let message = format!("`{key}` takes one value");
        let help = "make an array with `arr.new` and give that; `args=[…]` stands alone";
        self.error(Code::MPT2001, message, help)
    }

    #[cold]
    fn wrong_argument(&mut self, name: &str, v: MpirValue, param: TypeId) {
        let (found, wanted) = (self.type_name(self.f.ty(v)), self.type_name(param));
        let message =
            format!("parameter `{name}` has the type `{wanted}`, but the argument is `{found}`");
        let help = match (self.kind(param), self.kind(self.f.ty(v))) {
            (TypeKind::Ref(RefMode::MutBorrow, t), TypeKind::Ref(RefMode::Borrow, u)) if t == u => {
                "a read-only borrow does not allow changes: pass a `mutborrow`".to_string()
            }
            (_, TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, t)) if t == param => {
                "the function takes the value over: pass the owned value".to_string()
            }
            _ => format!("give a `{wanted}`"),
        };
        self.error(Code::MPT2003, message, help);
    }

    /// Whether a value of type `arg` may be given for a parameter: one of its type, or what can be
    /// looked at as the parameter's borrow asks.
    pub(super) fn passes(&self, arg: TypeId, param: TypeId) -> bool {
        if arg == param {
            return true;
        }
        match (self.kind(param), self.kind(arg)) {
            (TypeKind::Ref(RefMode::Borrow, want), TypeKind::Ref(mode, have)) => {
                want == have && mode != RefMode::Weak
            }
            (TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, want), _) => want == arg,
            // Device code looks through borrows of what is not counted there.
            (_, TypeKind::Ref(RefMode::Borrow, have)) if self.on_device => have == param,
            _ => false,
        }
    }
}
