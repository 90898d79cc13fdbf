//! One written type.

use super::extent::Extent;
use super::*;
use crate::builtins;
use crate::resolve::TypeName;
use crate::symbols;
use magpie_diag::closest;
use magpie_types::{Category, PrimType, RefMode, TypeKind, fixed};

/// What is said when copies of generic items never end.
pub(crate) const ENDLESS: &str =
    "this needs more copies of generic functions and types than may be made";
/// The way out.
pub(crate) const ENDLESS_HELP: &str = "a generic function or type that uses itself with a larger type never ends; otherwise raise `max_mono_instances` in `[build]`";

/// Built-in types that need no arguments.
const SIMPLE: &[(&str, TypeId)] = &[
    ("TStrBuilder", fixed::STR_BUILDER),
    ("gpu.TDevice", fixed::GPU_DEVICE),
    ("gpu.TFence", fixed::GPU_FENCE),
    ("gpu.TError", fixed::GPU_ERROR),
    ("gpu.ErrorKind", fixed::GPU_ERROR_KIND),
    ("gpu.TProfileSession", fixed::GPU_PROFILE_SESSION),
    ("gpu.TProfileEvent", fixed::GPU_PROFILE_EVENT),
    ("gpu.TMemoryStats", fixed::GPU_MEMORY_STATS),
];

/// Built-in types with arguments, and how many.
const GENERIC: &[(&str, usize)] = &[
    ("Array", 1),
    ("Map", 2),
    ("TOption", 1),
    ("TResult", 2),
    ("TCallable", 1),
    ("gpu.TBuffer", 1),
    ("rawptr", 1),
];

/// Types of the language that this release does not have.
const UNSUPPORTED: &[&str] =
    &["TMutex", "TRwLock", "TCell", "TFuture", "TChannelSend", "TChannelRecv"];

/// Whether a type of the language has this name. Those that this release lacks leave theirs to the
/// program.
pub(crate) fn is_language_type(name: &str) -> bool {
    SIMPLE.iter().any(|&(known, _)| known == name)
        || GENERIC.iter().any(|&(known, _)| known == name)
}

impl Types {
    /// What a written type of a module is.
    pub(crate) fn resolve(
        &mut self,
        cx: &mut TypeWork<'_>,
        module: ModuleId,
        id: TypeExprId,
        scope: Scope<'_>,
    ) -> Written {
        if !scope.params.is_empty() {
            return self.resolve_new(cx, module, id, scope);
        }
        if let Some(known) = self.written[module.0 as usize][id.index()] {
            return known;
        }
        let written = self.resolve_new(cx, module, id, scope);
        self.written[module.0 as usize][id.index()] = Some(written);
        written
    }

    fn resolve_new(
        &mut self,
        cx: &mut TypeWork<'_>,
        module: ModuleId,
        id: TypeExprId,
        scope: Scope<'_>,
    ) -> Written {
        let written = self.unchecked(cx, module, id, scope);
        let (Written::Type(ty) | Written::DeviceOnly(ty, _)) = written else { return written };
        if self.extent(cx.ctx, ty).fits() {
            return written;
        }
        match scope.args {
            [] => self.fault(
                Code::MPP0003,
                "the type is nested too deeply, or has too many parts",
                "name an inner part by a struct",
            ),
            _ => self.fault(Code::MPL2020, ENDLESS, ENDLESS_HELP),
        }
    }

    /// The type of a written type that has been resolved without faults, without scope.
    #[inline]
    pub(crate) fn known(&self, module: ModuleId, id: TypeExprId) -> Option<TypeId> {
        match self.written[module.0 as usize][id.index()] {
            Some(Written::Type(ty)) => Some(ty),
            _ => None,
        }
    }

    fn fault(
        &mut self,
        code: Code,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Written {
        self.faults.push(Fault { code, message: message.into(), help: help.into() });
        Written::Fault(FaultId(self.faults.len() as u32 - 1))
    }

    fn device_only(&mut self, ty: TypeId, code: Code, message: String, help: &str) -> Written {
        match self.fault(code, message, help) {
            Written::Fault(fault) => Written::DeviceOnly(ty, fault),
            other => other,
        }
    }

    /// A type whose size is not looked at.
    fn unchecked(
        &mut self,
        cx: &mut TypeWork<'_>,
        module: ModuleId,
        id: TypeExprId,
        scope: Scope<'_>,
    ) -> Written {
        let types = &cx.program.module(module).ast().types;
        let expr = types[id];
        let base = self.base(cx, module, &expr, scope);
        let mode = match expr.modifier {
            Modifier::None => return base,
            Modifier::Shared => RefMode::Shared,
            Modifier::Borrow => RefMode::Borrow,
            Modifier::MutBorrow => RefMode::MutBorrow,
            Modifier::Weak => RefMode::Weak,
        };
        let (ty, device_only) = match base {
            Written::Type(ty) => (ty, None),
            Written::DeviceOnly(ty, fault) => (ty, Some(fault)),
            Written::Ptr => {
                return self.fault(
                    Code::MPT0001,
                    format!("`{} ptr` is no type", mode.name()),
                    "a `ptr` is used as it is",
                );
            }
            Written::Fault(_) => return base,
        };
        if let Some(fault) = self.check_mode(cx, mode, ty) {
            return fault;
        }
        let ty = cx.ctx.intern(TypeKind::Ref(mode, ty));
        match device_only {
            Some(fault) => Written::DeviceOnly(ty, fault),
            None => Written::Type(ty),
        }
    }

    /// Whether a type may be held in a mode; the fault when it may not.
    fn check_mode(&mut self, cx: &mut TypeWork<'_>, mode: RefMode, ty: TypeId) -> Option<Written> {
        let name = display_name(cx.ctx, ty);
        let word = mode.name();
        if let TypeKind::Ref(..) = cx.ctx.kind(ty) {
            // Only through a type parameter: one word stands before a type.
            let message = format!("`{word}` of `{name}`, which is a handle already");
            return Some(self.fault(Code::MPT2015, message, "give a type without such a word"));
        }
        let counted = matches!(mode, RefMode::Shared | RefMode::Weak);
        if !counted {
            return None;
        }
        let help = "share the value inside, or put it into a `heap struct` and share that";
        match cx.ctx.kind(ty) {
            TypeKind::Option(_) => {
                Some(self.fault(Code::MPT0002, format!("`{name}` cannot be {word}"), help))
            }
            TypeKind::Result(..) => {
                Some(self.fault(Code::MPT0003, format!("`{name}` cannot be {word}"), help))
            }
            _ if !cx.ctx.is_heap(ty) => Some(self.fault(
                Code::MPT2015,
                format!("`{name}` is copied and cannot be {word}"),
                "use it as it is, or put it into a `heap struct`",
            )),
            _ => None,
        }
    }

    /// A type without the word before it.
    fn base(
        &mut self,
        cx: &mut TypeWork<'_>,
        module: ModuleId,
        expr: &TypeExpr,
        scope: Scope<'_>,
    ) -> Written {
        if (symbols::UNIT..=symbols::STR).contains(&expr.path) && expr.args.is_empty() {
            return self.primitive(cx, module, expr.path);
        }
        let program = cx.program;
        let text = program.module(module).name(expr.path);
        if let Some(n) = scope.params.iter().position(|&p| p == expr.path) {
            return match (expr.args.is_empty(), scope.args.get(n)) {
                (true, Some(&ty)) => Written::Type(ty),
                (true, None) => self.reported(),
                (false, _) => self.no_arguments(text),
            };
        }
        if expr.path == symbols::PTR && expr.args.is_empty() {
            return Written::Ptr;
        }
        if let Some(&(_, ty)) = SIMPLE.iter().find(|(name, _)| *name == text) {
            return match expr.args.is_empty() {
                true => Written::Type(ty),
                false => self.no_arguments(text),
            };
        }
        if text == "gpu.MemoryHint" && expr.args.is_empty() {
            return Written::Type(builtins::memory_hint(cx.ctx));
        }
        if let Some(&(_, count)) = GENERIC.iter().find(|(name, _)| *name == text) {
            let args = program.module(module).ast().types.args(expr);
            if args.len() != count {
                return self.wrong_count(text, count, args.len());
            }
            return self.builtin_generic(cx, module, text, args, scope);
        }
        if (symbols::UNIT..=symbols::STR).contains(&expr.path) || expr.path == symbols::PTR {
            return self.no_arguments(text);
        }
        self.declared_type(cx, module, expr, scope)
    }

    fn no_arguments(&mut self, name: &str) -> Written {
        self.fault(
            Code::MPT0001,
            format!("`{name}` takes no type arguments"),
            format!("write `{name}`"),
        )
    }

    fn wrong_count(&mut self, name: &str, wanted: usize, found: usize) -> Written {
        let args = ["A", "B", "C"][..wanted.min(3)].join(", ");
        let dots = if wanted > 3 { ", …" } else { "" };
        self.fault(
            Code::MPT0001,
            format!("`{name}` takes {wanted} type arguments, found {found}"),
            format!("write `{name}<{args}{dots}>`"),
        )
    }

    fn primitive(&mut self, cx: &TypeWork<'_>, module: ModuleId, symbol: Symbol) -> Written {
        if symbol == symbols::STR {
            return Written::Type(fixed::STR);
        }
        let name = cx.program.module(module).name(symbol);
        let Some(prim) = PrimType::from_name(name) else {
            return self.fault(Code::MPT0001, format!("unknown type `{name}`"), "check the name");
        };
        match prim {
            PrimType::I128 | PrimType::U128 | PrimType::U1 => self.device_only(
                prim.id(),
                Code::MPT2050,
                format!("`{name}` is not supported"),
                "use an integer type of 8 to 64 bits, or `bool`",
            ),
            _ => Written::Type(prim.id()),
        }
    }

    /// The type of an argument of a generic type: something that can be stored.
    fn argument(
        &mut self,
        cx: &mut TypeWork<'_>,
        module: ModuleId,
        id: TypeExprId,
        scope: Scope<'_>,
    ) -> Result<(TypeId, Option<FaultId>), Written> {
        let (ty, device_only) = match self.resolve(cx, module, id, scope) {
            Written::Type(ty) => (ty, None),
            Written::DeviceOnly(ty, fault) => (ty, Some(fault)),
            Written::Ptr => {
                return Err(self.fault(
                    Code::MPT0001,
                    "`ptr` is the type of a local only",
                    "give the type of the elements, such as `u32`",
                ));
            }
            fault @ Written::Fault(_) => return Err(fault),
        };
        if let TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, _) = cx.ctx.kind(ty) {
            let message =
                format!("`{}` is a borrow and cannot be stored", display_name(cx.ctx, ty));
            let help = "store an owned value or a `shared` handle";
            return Err(self.fault(Code::MPO0003, message, help));
        }
        Ok((ty, device_only))
    }

    fn builtin_generic(
        &mut self,
        cx: &mut TypeWork<'_>,
        module: ModuleId,
        name: &str,
        args: &[TypeExprId],
        scope: Scope<'_>,
    ) -> Written {
        if name == "TCallable" {
            return self.callable(cx, module, args[0], scope);
        }
        let mut types = [fixed::UNIT; 2];
        let mut device_only = None;
        for (slot, &arg) in types.iter_mut().zip(args) {
            match self.argument(cx, module, arg, scope) {
                Ok((ty, fault)) => {
                    *slot = ty;
                    device_only = device_only.or(fault);
                }
                Err(fault) => return fault,
            }
        }
        let [a, b] = types;
        let ty = cx.ctx.intern(match name {
            "Array" => TypeKind::Array(a),
            "Map" => TypeKind::Map(a, b),
            "TOption" => TypeKind::Option(a),
            "TResult" => TypeKind::Result(a, b),
            "gpu.TBuffer" => TypeKind::Buffer(a),
            _ => TypeKind::RawPtr(a),
        });
        match device_only {
            Some(fault) => Written::DeviceOnly(ty, fault),
            None if name == "gpu.TBuffer" && !is_buffer_element(cx.ctx, a) => self.device_only(
                ty,
                Code::MPT2015,
                format!("a buffer cannot hold `{}`", display_name(cx.ctx, a)),
                "the elements of a buffer are primitives or value structs",
            ),
            None => Written::Type(ty),
        }
    }

    fn callable(
        &mut self,
        cx: &mut TypeWork<'_>,
        module: ModuleId,
        arg: TypeExprId,
        scope: Scope<'_>,
    ) -> Written {
        let program = cx.program;
        let expr = program.module(module).ast().types[arg];
        let decl = match program.resolve_type(module, expr.path) {
            Ok(TypeName::Decl(decl)) if expr.args.is_empty() && expr.modifier == Modifier::None => {
                self.sig(decl)
            }
            _ => None,
        };
        if let Some(sig) = decl {
            return Written::Type(cx.ctx.intern(TypeKind::Callable(sig)));
        }
        // An unknown name is the better thing to complain about.
        if let fault @ Written::Fault(_) = self.resolve(cx, module, arg, scope)
            && program.resolve_type(module, expr.path).is_err()
        {
            return fault;
        }
        let name = program.module(module).name(expr.path);
        self.fault(
            Code::MPT0001,
            format!("`{name}` is no signature"),
            format!("declare one, such as `sig {name}(i32) -> i32`, and write `TCallable<{name}>`"),
        )
    }

    /// A struct or enum of a module.
    fn declared_type(
        &mut self,
        cx: &mut TypeWork<'_>,
        module: ModuleId,
        expr: &TypeExpr,
        scope: Scope<'_>,
    ) -> Written {
        let program = cx.program;
        let text = program.module(module).name(expr.path);
        let decl = match program.resolve_type(module, expr.path) {
            Ok(TypeName::Decl(decl)) => decl,
            Ok(TypeName::Failed) => return self.reported(),
            Ok(TypeName::MissingPackage) => return self.fault(Code::MPT2050, "", ""),
            Err(reason) => {
                if UNSUPPORTED.contains(&text) {
                    let message = format!("`{text}` is not supported by this release");
                    let help = "share data with `share` and `clone.shared`";
                    return self.fault(Code::MPT2050, message, help);
                }
                return self.unknown_type(cx, module, text, reason);
            }
        };
        let args = program.module(module).ast().types.args(expr);
        match self.declared[decl.0 as usize] {
            Declared::Failed => self.reported(),
            Declared::Sig(_) => self.fault(
                Code::MPT0001,
                format!("`{text}` is a signature, not a type"),
                format!("a callable with this signature has the type `TCallable<{text}>`"),
            ),
            Declared::Type(ty) => match args.is_empty() {
                true => Written::Type(ty),
                false => self.no_arguments(text),
            },
            Declared::Generic => self.instance(cx, module, decl, text, args, scope),
        }
    }

    /// Stands for a type about which everything has been said.
    fn reported(&mut self) -> Written {
        Written::Fault(FaultId(u32::MAX))
    }

    fn unknown_type(
        &mut self,
        cx: &TypeWork<'_>,
        module: ModuleId,
        text: &str,
        reason: crate::resolve::Unresolved,
    ) -> Written {
        if let Some((path, name)) = text.rsplit_once('.')
            && !builtins::is_language_module(path)
        {
            let help = "check the path, and the `exports` of that module";
            return self.fault(Code::MPT0001, reason.message(name, path), help);
        }
        let prims = PrimType::ALL.iter().map(|p| p.name());
        let known = prims
            .chain(std::iter::once("Str"))
            .chain(SIMPLE.iter().map(|t| t.0))
            .chain(GENERIC.iter().map(|t| t.0))
            .chain(cx.program.type_names(module));
        let may = cx.diagnostics.len() < crate::lower::MAX_SUGGESTING;
        let help = match closest(text, known.take_while(|_| may)) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "declare it, or import it from the module that does".to_string(),
        };
        self.fault(Code::MPT0001, format!("unknown type `{text}`"), help)
    }

    /// The copy of a generic type for a list of arguments.
    fn instance(
        &mut self,
        cx: &mut TypeWork<'_>,
        module: ModuleId,
        decl: TypeDeclId,
        text: &str,
        args: &[TypeExprId],
        scope: Scope<'_>,
    ) -> Written {
        let DeclKind::Type(declared) = &cx.program.decl(cx.program.types[decl.0 as usize]).kind
        else {
            return self.reported();
        };
        let count = declared.type_params.len();
        if args.len() != count {
            return self.wrong_count(text, count, args.len());
        }
        let mut types = Vec::with_capacity(count);
        let mut device_only = None;
        for &arg in args {
            match self.argument(cx, module, arg, scope) {
                Ok((ty, fault)) => {
                    types.push(ty);
                    device_only = device_only.or(fault);
                }
                Err(fault) => return fault,
            }
        }
        if let Some(&ty) = self.instances.get(&(decl, types.clone())) {
            return Written::Type(ty);
        }
        let parts = types.iter().map(|&ty| self.extent(cx.ctx, ty));
        let extent = Extent::around(parts.collect::<Vec<_>>());
        if self.instances_left == 0 || !extent.fits() {
            return self.fault(Code::MPL2020, ENDLESS, ENDLESS_HELP);
        }
        self.instances_left -= 1;
        let ty = self.declare_instance(cx, decl, &types);
        self.extents.insert(ty, extent);
        self.instances.insert((decl, types.clone()), ty);
        self.undefined.push((decl, types, ty));
        match device_only {
            Some(fault) => Written::DeviceOnly(ty, fault),
            None => Written::Type(ty),
        }
    }
}

/// Whether device memory can hold the type.
pub(crate) fn is_buffer_element(ctx: &TypeCtx, ty: TypeId) -> bool {
    match ctx.kind(ty) {
        TypeKind::Prim(p) => p != PrimType::Unit,
        TypeKind::Struct(s) => ctx.struct_def(s).category == Category::Value,
        _ => false,
    }
}
