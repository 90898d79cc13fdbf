//! Structs, enums and signatures: declared first, so that they may refer to each other, then given
//! their members.

use super::*;
use crate::resolve::DeclRef;
use magpie_types::{
    Category, Field as TypeField, RefMode, TypeKind, Variant as TypeVariant, fixed,
};

/// Declares and defines every struct, enum and signature of the program that has no type
/// parameters.
pub(crate) fn define_all(types: &mut Types, cx: &mut TypeWork<'_>) {
    for n in 0..cx.program.types.len() {
        let declared = declare(types, cx, cx.program.types[n]);
        types.declared.push(declared);
    }
    for n in 0..cx.program.types.len() {
        let at = cx.program.types[n];
        match (&cx.program.decl(at).kind, types.declared[n]) {
            (DeclKind::Type(_), Declared::Type(ty)) => {
                types.define(cx, TypeDeclId(n as u32), ty, Scope::default());
            }
            (DeclKind::Type(decl), Declared::Generic) => check_generic(types, cx, at, decl),
            (DeclKind::Sig(decl), Declared::Sig(sig)) => define_sig(types, cx, at, decl, sig),
            _ => {}
        }
    }
    types.define_instances(cx);
    contains_itself(types, cx);
}

fn declare(types: &mut Types, cx: &mut TypeWork<'_>, at: DeclRef) -> Declared {
    let module = cx.program.module(at.module);
    match &cx.program.decl(at).kind {
        DeclKind::Type(decl) => {
            let is_enum = matches!(decl.kind, TypeDeclKind::Enum(_));
            if is_enum && !decl.is_heap {
                cx.diagnostics.push(
                    Diagnostic::new(
                        Code::MPT1020,
                        module.span(decl.name.range),
                        format!("`{}` is a value enum", module.name(decl.name.symbol)),
                    )
                    .with_help("write `heap enum`"),
                );
                return Declared::Failed;
            }
            if !decl.type_params.is_empty() {
                return Declared::Generic;
            }
            let name = format!("{}.{}", module.path, module.name(decl.name.symbol));
            Declared::Type(types.new_type(cx, at, decl, name))
        }
        DeclKind::Sig(decl) => {
            let name = format!("{}.{}", module.path, module.name(decl.name.symbol));
            Declared::Sig(cx.ctx.define_sig(name, Vec::new(), fixed::UNIT))
        }
        _ => Declared::Failed,
    }
}

/// Checks the member types of a generic type as far as they do not depend on its parameters.
fn check_generic(types: &mut Types, cx: &mut TypeWork<'_>, at: DeclRef, decl: &TypeDecl) {
    let ast = cx.program.module(at.module).ast();
    let params: Vec<Symbol> = ast[decl.type_params].iter().map(|p| p.name.symbol).collect();
    let scope = Scope { params: &params, args: &[] };
    let fields: Vec<Field> = match decl.kind {
        TypeDeclKind::Struct(fields) => ast[fields].to_vec(),
        TypeDeclKind::Enum(variants) => {
            ast[variants].iter().flat_map(|v| &ast[v.fields]).copied().collect()
        }
    };
    for field in fields {
        types.of_use(cx, at.module, field.ty, scope, false);
    }
}

fn define_sig(types: &mut Types, cx: &mut TypeWork<'_>, at: DeclRef, decl: &SigDecl, sig: SigId) {
    let ast = cx.program.module(at.module).ast();
    let mut of = |ty: TypeUse| {
        types.of_use(cx, at.module, ty, Scope::default(), false).unwrap_or(fixed::UNIT)
    };
    let params = ast[decl.params].iter().map(|&ty| of(ty)).collect();
    let ret = of(decl.result);
    if let TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, _) = cx.ctx.kind(ret) {
        let span = cx.program.module(at.module).span(decl.result.range);
        cx.diagnostics.push(
            Diagnostic::new(Code::MPHIR03, span, "a callable cannot return a borrow")
                .with_help("return an owned value"),
        );
    }
    cx.ctx.set_sig(sig, params, ret);
}

impl Types {
    fn new_type(
        &mut self,
        cx: &mut TypeWork<'_>,
        at: DeclRef,
        decl: &TypeDecl,
        name: String,
    ) -> TypeId {
        let category = if decl.is_heap { Category::Heap } else { Category::Value };
        let ty = match decl.kind {
            TypeDeclKind::Struct(_) => cx.ctx.declare_struct(name, category),
            TypeDeclKind::Enum(_) => cx.ctx.declare_enum(name, category),
        };
        self.places.insert(ty, cx.program.module(at.module).span(decl.name.range));
        ty
    }

    /// The type that a copy of a generic type is.
    pub(super) fn declare_instance(
        &mut self,
        cx: &mut TypeWork<'_>,
        id: TypeDeclId,
        args: &[TypeId],
    ) -> TypeId {
        let at = cx.program.types[id.0 as usize];
        let DeclKind::Type(decl) = &cx.program.decl(at).kind else { return fixed::UNIT };
        let module = cx.program.module(at.module);
        let args: Vec<String> = args.iter().map(|&ty| cx.ctx.name(ty)).collect();
        let name = module.name(decl.name.symbol);
        let name = format!("{}.{name}<{}>", module.path, args.join(", "));
        self.new_type(cx, at, decl, name)
    }

    /// Gives the copies of generic types made so far their members, and those that this makes.
    pub(crate) fn define_instances(&mut self, cx: &mut TypeWork<'_>) {
        while let Some((decl, args, ty)) = self.undefined.pop() {
            let at = cx.program.types[decl.0 as usize];
            let DeclKind::Type(declared) = &cx.program.decl(at).kind else { continue };
            let ast = cx.program.module(at.module).ast();
            let params: Vec<Symbol> =
                ast[declared.type_params].iter().map(|p| p.name.symbol).collect();
            self.define(cx, decl, ty, Scope { params: &params, args: &args });
        }
    }

    fn define(&mut self, cx: &mut TypeWork<'_>, id: TypeDeclId, ty: TypeId, scope: Scope<'_>) {
        let at = cx.program.types[id.0 as usize];
        let DeclKind::Type(decl) = &cx.program.decl(at).kind else { return };
        match (decl.kind, cx.ctx.kind(ty)) {
            (TypeDeclKind::Struct(fields), TypeKind::Struct(id)) => {
                let fields = self.fields(cx, at, fields, ty, 0, decl.is_heap, scope);
                cx.ctx.define_struct(id, fields);
            }
            (TypeDeclKind::Enum(variants), TypeKind::Enum(id)) => {
                let module = cx.program.module(at.module);
                let mut defined: Vec<TypeVariant> = Vec::new();
                let mut seen: FxHashSet<Symbol> = FxHashSet::default();
                for (n, variant) in module.ast()[variants].iter().enumerate() {
                    let name = module.name(variant.name.symbol);
                    if !seen.insert(variant.name.symbol) {
                        cx.diagnostics.push(
                            Diagnostic::new(
                                Code::MPS0021,
                                module.span(variant.range),
                                format!("variant `{name}` is declared twice"),
                            )
                            .with_help("rename one of the two"),
                        );
                    }
                    let fields = self.fields(cx, at, variant.fields, ty, n as u32, true, scope);
                    defined.push(TypeVariant { name: name.to_string(), fields });
                }
                cx.ctx.define_enum(id, defined);
            }
            _ => {}
        }
    }

    /// The fields of a struct or of a variant.
    #[allow(clippy::too_many_arguments)]
    fn fields(
        &mut self,
        cx: &mut TypeWork<'_>,
        at: DeclRef,
        fields: Slice<Field>,
        owner: TypeId,
        variant: u32,
        is_heap: bool,
        scope: Scope<'_>,
    ) -> Vec<TypeField> {
        let module = cx.program.module(at.module);
        let mut defined: Vec<TypeField> = Vec::new();
        let mut seen: FxHashSet<Symbol> = FxHashSet::default();
        for (n, field) in module.ast()[fields].iter().enumerate() {
            let name = module.name(field.name.symbol).to_string();
            let span = module.span(field.range);
            if !seen.insert(field.name.symbol) {
                cx.diagnostics.push(
                    Diagnostic::new(Code::MPT2016, span, format!("field `{name}` stands twice"))
                        .with_help("rename one of the two"),
                );
            }
            let ty = self
                .of_use(cx, at.module, field.ty, scope, false)
                .filter(|&ty| check_field(cx, &name, ty, is_heap, span));
            if ty.is_none() {
                self.failed_members.insert((owner, variant, n as u32));
            }
            defined.push(TypeField { name, ty: ty.unwrap_or(fixed::UNIT) });
        }
        defined
    }
}

/// Whether a field may have the type.
fn check_field(cx: &mut TypeWork<'_>, name: &str, ty: TypeId, is_heap: bool, span: Span) -> bool {
    let type_name = display_name(cx.ctx, ty);
    let error = match cx.ctx.kind(ty) {
        TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, _) => Diagnostic::new(
            Code::MPO0003,
            span,
            format!("field `{name}` would store a borrow, `{type_name}`"),
        )
        .with_help("store an owned value or a `shared` handle"),
        TypeKind::Prim(_) => return true,
        TypeKind::Struct(s) if cx.ctx.struct_def(s).category == Category::Value => return true,
        _ if is_heap => return true,
        _ => Diagnostic::new(
            Code::MPT1005,
            span,
            format!("field `{name}` of a value struct has the type `{type_name}`"),
        )
        .with_help("value structs hold primitives and value structs; declare a `heap struct`"),
    };
    cx.diagnostics.push(error);
    false
}

/// Reports value structs that contain themselves, and cuts them open so that they have a size.
fn contains_itself(types: &mut Types, cx: &mut TypeWork<'_>) {
    let value_structs: Vec<_> = cx
        .ctx
        .structs()
        .filter(|(_, def)| def.category == Category::Value)
        .map(|(id, def)| (id, def.ty))
        .collect();
    let mut state: FxHashMap<TypeId, bool> = FxHashMap::default();
    for (_, root) in value_structs {
        // A struct on the path, and the next field to look at.
        let mut path: Vec<(TypeId, u32)> = Vec::new();
        if state.contains_key(&root) {
            continue;
        }
        state.insert(root, false);
        path.push((root, 0));
        while let Some((ty, field)) = path.last_mut() {
            let TypeKind::Struct(id) = cx.ctx.kind(*ty) else { break };
            let (at, n) = (*ty, *field);
            let Some(member) = cx.ctx.struct_def(id).fields.get(n as usize).map(|f| f.ty) else {
                state.insert(at, true);
                path.pop();
                continue;
            };
            *field += 1;
            let is_value = cx.ctx.is_aggregate(member);
            match state.get(&member) {
                _ if !is_value => {}
                Some(true) => {}
                None => {
                    state.insert(member, false);
                    path.push((member, 0));
                }
                Some(false) => {
                    let span = types.field_place(cx, at, n);
                    let name = display_name(cx.ctx, member);
                    let message = format!("value struct `{name}` contains itself");
                    cx.diagnostics.push(
                        Diagnostic::new(Code::MPT1010, span, message).with_help(
                            "declare a `heap struct`, or refer to other elements by index",
                        ),
                    );
                    let mut fields = cx.ctx.struct_def(id).fields.clone();
                    fields[n as usize].ty = fixed::UNIT;
                    cx.ctx.define_struct(id, fields);
                    types.failed_members.insert((at, 0, n));
                }
            }
        }
    }
}

impl Types {
    /// Where a field of a struct is written.
    fn field_place(&self, cx: &TypeWork<'_>, ty: TypeId, field: u32) -> Span {
        let plain = self.declared.iter().position(|d| matches!(d, Declared::Type(t) if *t == ty));
        let instance = self.instances.iter().find(|(_, t)| **t == ty).map(|((decl, _), _)| decl);
        let decl = plain.map(|n| n as u32).or(instance.map(|decl| decl.0));
        let Some(at) = decl.map(|n| cx.program.types[n as usize]) else { return Span::NONE };
        let module = cx.program.module(at.module);
        match &cx.program.decl(at).kind {
            DeclKind::Type(TypeDecl { kind: TypeDeclKind::Struct(fields), .. }) => module.ast()
                [*fields]
                .get(field as usize)
                .map_or(Span::NONE, |f| module.span(f.range)),
            _ => Span::NONE,
        }
    }
}
