//! Type expressions → types → machine types.

use super::consts::{Const, ConstValue};
use super::{Cx, Lower};
use crate::ast::*;
use crate::program::{Item, Module};
use crate::ty::{Ty, TyKind, TyList, fixed as ty, size_of_param};
use magpie_diag::{Code, Span};
use magpie_types::PrimType;

/// What type parameters stand for.
pub(super) type Subst = Vec<(Sym, Ty)>;

/// Types of the language.
pub(super) const BUILTIN: &[&str] = &[
    "int", "float", "bool", "String", "Array", "List", "Map", "Set", "Vec2", "Vec3", "Vec4",
    "Atomic", "Result", "Option", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16",
    "f32", "f64",
];

/// How the type of this name is used where a value was expected.
pub(super) fn use_of_type(name: &str) -> Option<String> {
    if !BUILTIN.contains(&name) {
        return None;
    }
    Some(match name {
        "String" => "a text of a value is written `f\"{x}\"`".to_string(),
        "Vec2" | "Vec3" | "Vec4" => format!("say of what: `{name}<f32>(…)`"),
        "Array" | "List" | "Map" | "Set" | "Atomic" | "Result" | "Option" => {
            format!("`{name}` is a type: the guide shows how its values are made")
        }
        _ => format!("`{name}` is a type: numbers are converted by `x as {name}`"),
    })
}

/// What a type about which an error was reported is called. No message shows it, see
/// [`Cx::report`].
pub(super) const UNKNOWN_TYPE: &str = "⟨unknown⟩";

/// Longest array: indices are `int`s of kernels.
const MAX_ARRAY: i128 = i32::MAX as i128;

impl Cx<'_> {
    /// The type that an expression names.
    pub(super) fn resolve(&mut self, id: TypeExprId, subst: &Subst) -> Lower<Ty> {
        let program = self.program;
        let node = &program.ast[id];
        let kind = match &node.kind {
            TypeExprKind::Name(name, args) => {
                return self.resolve_name(*name, args, node.span, subst);
            }
            TypeExprKind::Qualified(module, name, args) => {
                return self.resolve_qualified(*module, *name, args, node.span, subst);
            }
            &TypeExprKind::List(t) => TyKind::List(self.resolve(t, subst)?),
            &TypeExprKind::Array(t, n) => {
                TyKind::Array(self.resolve(t, subst)?, self.array_size(n, subst)?)
            }
            &TypeExprKind::Set(t) => TyKind::Set(self.resolve(t, subst)?),
            &TypeExprKind::Map(k, v) => {
                TyKind::Map(self.resolve(k, subst)?, self.resolve(v, subst)?)
            }
            TypeExprKind::Tuple(items) => {
                let items =
                    items.iter().map(|&t| self.resolve(t, subst)).collect::<Lower<Vec<_>>>()?;
                match items[..] {
                    [one] => return Ok(one),
                    _ => TyKind::Tuple(self.tys.list(&items)),
                }
            }
            TypeExprKind::Fn(params, result) => {
                let params =
                    params.iter().map(|&t| self.resolve(t, subst)).collect::<Lower<Vec<_>>>()?;
                let result = match *result {
                    Some(t) => self.resolve(t, subst)?,
                    None => ty::UNIT,
                };
                TyKind::Fn(self.tys.list(&params), result)
            }
            &TypeExprKind::Option(t) => TyKind::Option(self.resolve(t, subst)?),
        };
        Ok(self.tys.intern(kind))
    }

    /// `module.Name<…>`
    fn resolve_qualified(
        &mut self,
        module: Ident,
        name: Sym,
        args: &[TypeArg],
        span: Span,
        subst: &Subst,
    ) -> Lower<Ty> {
        let program = self.program;
        let file = match program.module(module.sym, module.span) {
            Some(Module::Library) => return self.resolve_name(name, args, span, subst),
            Some(Module::File(file)) => file,
            None => {
                let message = format!("there is no module `{}` here", program.name(module.sym));
                let help = "write `use local.name` at the top of the file";
                return Err(self.error(Code::MIR0201, module.span, message, help));
            }
        };
        match program.exported(file, name) {
            Some(item) => self.resolve_item(name, item, args, span, subst),
            None => {
                let (of, text) = (program.name(module.sym), program.name(name));
                let message = format!("`{of}` has no public type `{text}`");
                Err(self.error(Code::MIR0201, span, message, "correct its spelling"))
            }
        }
    }

    fn resolve_name(
        &mut self,
        name: Sym,
        args: &[TypeArg],
        span: Span,
        subst: &Subst,
    ) -> Lower<Ty> {
        if let Some(&(_, t)) = subst.iter().find(|(param, _)| *param == name) {
            return Ok(t);
        }
        let program = self.program;
        // A function may have the name of a type of the language.
        let is_type = |item: &Item| !matches!(item, Item::Fn(_) | Item::Const(_));
        let known = BUILTIN.contains(&program.name(program.library_name(name, span)));
        if let Some(item) = program.item(name, span).filter(|item| is_type(item) || !known) {
            return self.resolve_item(name, item, args, span, subst);
        }
        let text = program.name(program.library_name(name, span));
        let count = match text {
            "Array" | "Map" | "Result" => 2,
            "List" | "Set" | "Vec2" | "Vec3" | "Vec4" | "Atomic" | "Option" => 1,
            _ => 0,
        };
        let kind = match text {
            "int" => TyKind::Int,
            "float" => TyKind::Float,
            "bool" => TyKind::Bool,
            "String" => TyKind::Str,
            "Array" | "Map" | "Result" | "List" | "Set" | "Vec2" | "Vec3" | "Vec4" | "Atomic"
            | "Option" => {
                if args.len() != count {
                    let message =
                        format!("`{text}` takes {count} type arguments, not {}", args.len());
                    let help = match text {
                        "Array" => "write `Array<f32, 4>`".to_string(),
                        "Map" | "Result" => format!("write `{text}<int, String>`"),
                        _ => format!("write `{text}<i32>`"),
                    };
                    return Err(self.error(Code::MIR0202, span, message, help));
                }
                return self.resolve_builtin(text, args, span, subst);
            }
            "i128" | "u128" => {
                let message = format!("`{text}` is not supported");
                return Err(self.error(
                    Code::MIR0103,
                    span,
                    message,
                    "use a type of at most 64 bits",
                ));
            }
            _ => match PrimType::from_name(text).filter(|p| p.is_int() || p.is_float()) {
                Some(p) if p != PrimType::U1 && p != PrimType::Bf16 => TyKind::Prim(p),
                _ => {
                    let message = format!("there is no type `{text}`");
                    let help = "declare it, or correct its spelling";
                    return Err(self.error(Code::MIR0201, span, message, help));
                }
            },
        };
        if !args.is_empty() {
            let message = format!("`{text}` takes no type arguments");
            return Err(self.error(Code::MIR0202, span, message, "leave them out"));
        }
        Ok(self.tys.intern(kind))
    }

    fn resolve_builtin(
        &mut self,
        text: &str,
        args: &[TypeArg],
        span: Span,
        subst: &Subst,
    ) -> Lower<Ty> {
        let first = self.type_arg(args[0], subst)?;
        let kind = match text {
            "Array" => {
                let size = match args[1] {
                    TypeArg::Value(e) => self.array_size(e, subst)?,
                    TypeArg::Type(t) => self.size_by_name(t, subst)?,
                };
                TyKind::Array(first, size)
            }
            "Map" => TyKind::Map(first, self.type_arg(args[1], subst)?),
            "Result" => TyKind::Result(first, self.type_arg(args[1], subst)?),
            "List" => TyKind::List(first),
            "Set" => TyKind::Set(first),
            "Option" => TyKind::Option(first),
            "Atomic" => {
                let fits = matches!(
                    self.tys.kind(first),
                    TyKind::Prim(PrimType::I32 | PrimType::U32) | TyKind::Error
                );
                if !fits {
                    let message = format!("there is no `Atomic<{}>`", self.ty_name(first));
                    let help = "the atomic types are `Atomic<i32>` and `Atomic<u32>`";
                    return Err(self.error(Code::MIR2101, span, message, help));
                }
                TyKind::Atomic(first)
            }
            _ => {
                let lanes = text.as_bytes()[3] - b'0';
                let fits = match self.tys.kind(first) {
                    TyKind::Int | TyKind::Float | TyKind::Error | TyKind::Param(_) => true,
                    TyKind::Prim(p) => {
                        matches!(p, PrimType::F32 | PrimType::I32 | PrimType::U32 | PrimType::F16)
                    }
                    _ => false,
                };
                if !fits {
                    let message =
                        format!("`{text}` has no components of type `{}`", self.ty_name(first));
                    let help =
                        "components are `f32`, `f16`, `i32` or `u32`: devices have no others";
                    return Err(self.error(Code::MIR2201, span, message, help));
                }
                // Components are as wide on the host as on devices.
                let first = match self.tys.kind(first) {
                    TyKind::Int => ty::I32,
                    TyKind::Float => ty::F32,
                    _ => first,
                };
                TyKind::Vector(first, lanes)
            }
        };
        Ok(self.tys.intern(kind))
    }

    fn resolve_item(
        &mut self,
        name: Sym,
        item: Item,
        args: &[TypeArg],
        span: Span,
        subst: &Subst,
    ) -> Lower<Ty> {
        let program = self.program;
        let text = program.name(name);
        let generics = match item {
            Item::Struct(n) => &program.structs[n as usize].generics,
            Item::Enum(n) => &program.enums[n as usize].generics,
            Item::Alias(t) => return self.resolve_alias(t, span, subst),
            Item::Fn(_) | Item::Trait(_) | Item::Const(_) => {
                let message = format!("`{text}` is no type");
                return Err(self.error(Code::MIR0202, span, message, "name a struct or an enum"));
            }
        };
        if generics.len() != args.len() {
            let message =
                format!("`{text}` takes {} type arguments, not {}", generics.len(), args.len());
            return Err(self.error(Code::MIR0202, span, message, "write one for each parameter"));
        }
        let args = args.iter().map(|&a| self.type_arg(a, subst)).collect::<Lower<Vec<_>>>()?;
        let list = self.tys.list(&args);
        Ok(self.tys.intern(match item {
            Item::Struct(n) => TyKind::Struct(n, list),
            Item::Enum(n) => TyKind::Enum(n, list),
            Item::Fn(_) | Item::Trait(_) | Item::Const(_) | Item::Alias(_) => TyKind::Error,
        }))
    }

    /// What another name of a type stands for.
    pub(super) fn resolve_alias(&mut self, t: TypeExprId, span: Span, subst: &Subst) -> Lower<Ty> {
        if self.open_aliases.contains(&t) {
            let message = "this name of a type stands for itself";
            return Err(self.error(Code::MIR0202, span, message, "name another type"));
        }
        self.open_aliases.push(t);
        let resolved = self.resolve(t, subst);
        self.open_aliases.pop();
        resolved
    }

    fn type_arg(&mut self, arg: TypeArg, subst: &Subst) -> Lower<Ty> {
        match arg {
            TypeArg::Type(t) => {
                // A constant may stand for its number.
                if self.constant_of_type(t).is_some() {
                    let n = self.size_by_name(t, subst)?;
                    return Ok(self.tys.intern(TyKind::Number(n)));
                }
                self.resolve(t, subst)
            }
            TypeArg::Value(e) => {
                let n = self.array_size(e, subst)?;
                Ok(self.tys.intern(TyKind::Number(n)))
            }
        }
    }

    /// The constant that a name where a type may stand is.
    fn constant_of_type(&mut self, id: TypeExprId) -> Option<Const> {
        let program = self.program;
        let node = &program.ast[id];
        match &node.kind {
            TypeExprKind::Name(name, args) if args.is_empty() => self.constant(*name, node.span),
            TypeExprKind::Qualified(module, name, args) if args.is_empty() => {
                let Module::File(file) = program.module(module.sym, module.span)? else {
                    return None;
                };
                match program.exported(file, *name)? {
                    Item::Const(id) => self.constant_of(id),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The size that a type parameter stands for, known or not.
    fn size_of_name(&self, name: Sym, subst: &Subst) -> Option<u64> {
        match self.tys.kind(subst.iter().find(|(param, _)| *param == name)?.1) {
            TyKind::Number(n) => Some(n),
            TyKind::Param(name) => Some(size_of_param(name)),
            // Whatever it is.
            TyKind::Error => Some(size_of_param(name)),
            _ => None,
        }
    }

    fn size_by_name(&mut self, id: TypeExprId, subst: &Subst) -> Lower<u64> {
        let node = &self.program.ast[id];
        if let TypeExprKind::Name(name, _) = node.kind
            && let Some(size) = self.size_of_name(name, subst)
        {
            return Ok(size);
        }
        match self.constant_of_type(id).map(|known| known.value) {
            Some(ConstValue::Int(n)) => self.checked_size(n, node.span),
            _ => Err(self.size_error(node.span)),
        }
    }

    fn size_error(&mut self, span: Span) -> super::Poisoned {
        let message = "the size of an array is no constant";
        let help = "write a literal or a `const`, or use a `List`";
        self.error(Code::MIR0207, span, message, help)
    }

    fn array_size(&mut self, e: ExprId, subst: &Subst) -> Lower<u64> {
        let span = self.program.ast[e].span;
        if let ExprKind::Name(name) = self.program.ast[e].kind
            && let Some(size) = self.size_of_name(name, subst)
        {
            return Ok(size);
        }
        match self.const_int(e, subst) {
            Some(n) => self.checked_size(n, span),
            None => Err(self.size_error(span)),
        }
    }

    fn checked_size(&mut self, n: i128, span: Span) -> Lower<u64> {
        if (0..=MAX_ARRAY).contains(&n) {
            return Ok(n as u64);
        }
        let message = format!("an array cannot have {n} elements");
        Err(self.error(Code::MIR0207, span, message, "use a size from 0 to 2147483647"))
    }

    // ----- names and parts -----

    /// The type as the program writes it.
    pub(super) fn ty_name(&self, t: Ty) -> String {
        let list = |items: &[Ty]| -> String {
            let names: Vec<String> = items.iter().map(|&t| self.ty_name(t)).collect();
            names.join(", ")
        };
        let named = |name: Ident, args: &[Ty]| {
            let text = format!("{}{}", self.program.prefix(name.span), self.program.name(name.sym));
            match args {
                [] => text,
                _ => format!("{text}<{}>", list(args)),
            }
        };
        match self.tys.kind(t) {
            TyKind::Error => UNKNOWN_TYPE.to_string(),
            TyKind::Unit => "nothing".to_string(),
            TyKind::Bool => "bool".to_string(),
            TyKind::Int => "int".to_string(),
            TyKind::Float => "float".to_string(),
            TyKind::Prim(p) => p.name().to_string(),
            TyKind::Str => "String".to_string(),
            TyKind::Range => "range".to_string(),
            TyKind::Array(t, n) => format!("Array<{}, {n}>", self.ty_name(t)),
            TyKind::List(t) => format!("List<{}>", self.ty_name(t)),
            TyKind::Set(t) => format!("Set<{}>", self.ty_name(t)),
            TyKind::Map(k, v) => format!("Map<{}, {}>", self.ty_name(k), self.ty_name(v)),
            TyKind::Tuple(items) => format!("({})", list(self.tys.items(items))),
            TyKind::Struct(n, args) => {
                named(self.program.structs[n as usize].name, self.tys.items(args))
            }
            TyKind::Enum(n, args) => {
                named(self.program.enums[n as usize].name, self.tys.items(args))
            }
            TyKind::Option(t) => format!("{}?", self.ty_name(t)),
            TyKind::Result(t, e) => format!("Result<{}, {}>", self.ty_name(t), self.ty_name(e)),
            TyKind::Fn(params, ret) => {
                let params = list(self.tys.items(params));
                match ret {
                    ty::UNIT => format!("fn({params})"),
                    _ => format!("fn({params}) {}", self.ty_name(ret)),
                }
            }
            TyKind::Vector(t, n) => format!("Vec{n}<{}>", self.ty_name(t)),
            TyKind::Atomic(t) => format!("Atomic<{}>", self.ty_name(t)),
            TyKind::Number(n) => n.to_string(),
            TyKind::Param(name) => self.program.name(name).to_string(),
        }
    }

    pub(super) fn subst_of(&self, generics: &[Ident], args: TyList) -> Subst {
        let args = self.tys.items(args);
        generics.iter().map(|g| g.sym).zip(args.iter().copied()).collect()
    }

    /// Names and types of the fields of a struct.
    pub(super) fn fields(&mut self, n: u32, args: TyList) -> Vec<(Sym, Ty)> {
        let program = self.program;
        let decl = &program.structs[n as usize];
        let subst = self.subst_of(&decl.generics, args);
        let mut fields = Vec::with_capacity(decl.fields.len());
        for &(name, t) in &decl.fields {
            fields.push((name.sym, self.resolve(t, &subst).unwrap_or(ty::ERROR)));
        }
        fields
    }

    /// The types of the members of a struct or a tuple.
    pub(super) fn members_of(&mut self, t: Ty) -> Vec<Ty> {
        match self.tys.kind(t) {
            TyKind::Tuple(items) => self.tys.items(items).to_vec(),
            TyKind::Struct(n, args) => self.fields(n, args).into_iter().map(|f| f.1).collect(),
            _ => Vec::new(),
        }
    }

    /// The variants of an enum with the types of their fields.
    pub(super) fn variants(&mut self, n: u32, args: TyList) -> Vec<(Sym, Vec<Ty>)> {
        let program = self.program;
        let decl = &program.enums[n as usize];
        let subst = self.subst_of(&decl.generics, args);
        let mut variants = Vec::with_capacity(decl.variants.len());
        for (name, fields) in &decl.variants {
            let fields =
                fields.iter().map(|&t| self.resolve(t, &subst).unwrap_or(ty::ERROR)).collect();
            variants.push((name.sym, fields));
        }
        variants
    }

    // ----- devices -----
}
