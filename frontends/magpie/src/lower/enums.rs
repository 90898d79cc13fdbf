//! Enums, `TOption` and `TResult`.

use super::body::{Annotation, Body};
use super::*;
use crate::interner::Symbol;
use magpie_mpir::{Const as MpirConst, Value as MpirValue, imm_pair};
use magpie_types::{Category, RefMode, TypeKind};

/// A variant of an enum type.
struct VariantOf {
    /// The enum.
    ty: TypeId,
    index: u32,
    /// Names and types of its fields.
    fields: Vec<(String, TypeId)>,
}

impl Body<'_, '_> {
    /// The names of the variants of an enum type, in order.
    fn variant_names(&self, ty: TypeId) -> Option<Vec<&str>> {
        let types = &self.cx.module.types;
        match types.kind(ty) {
            TypeKind::Option(_) => Some(vec!["None", "Some"]),
            TypeKind::Result(..) => Some(vec!["Ok", "Err"]),
            TypeKind::Enum(e) => {
                Some(types.enum_def(e).variants.iter().map(|v| v.name.as_str()).collect())
            }
            _ => None,
        }
    }

    fn variant_at(&self, ty: TypeId, index: u32) -> VariantOf {
        let types = &self.cx.module.types;
        let fields = match (types.kind(ty), index) {
            (TypeKind::Option(t), 1) => vec![("v".to_string(), t)],
            (TypeKind::Result(t, _), 0) => vec![("v".to_string(), t)],
            (TypeKind::Result(_, e), 1) => vec![("e".to_string(), e)],
            (TypeKind::Enum(e), _) => {
                let variant = types.enum_def(e).variants.get(index as usize);
                let fields = variant.into_iter().flat_map(|v| &v.fields);
                fields.map(|f| (f.name.clone(), f.ty)).collect()
            }
            _ => Vec::new(),
        };
        VariantOf { ty, index, fields }
    }

    /// The variant of a name.
    fn variant(&mut self, ty: TypeId, name: Symbol) -> Lower<VariantOf> {
        let text = self.scope.name(name);
        let Some(names) = self.variant_names(ty) else {
            let found = self.type_name(ty);
            let message = format!("`{found}` is no enum and has no variant `{text}`");
            let help = "enums are `heap enum` types, `TOption`, `TResult`, `gpu.ErrorKind` and `gpu.MemoryHint`";
            return Err(self.error(Code::MPT2015, message, help));
        };
        if let Some(index) = names.iter().position(|n| *n == text) {
            return Ok(self.variant_at(ty, index as u32));
        }
        let help = match magpie_diag::closest(text, names.iter().copied()) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => format!("the variants are {}", names.join(", ")),
        };
        let message = format!("`{}` has no variant `{text}`", self.type_name(ty));
        Err(self.error(Code::MPT2017, message, help))
    }

    /// The variant that `enum.new` makes.
    fn new_variant(&mut self, types: &[TypeArg], want: Annotation) -> Lower<VariantOf> {
        let Some(ty) = want.ty() else {
            if want == Annotation::Poisoned {
                return Err(Poisoned);
            }
            let help = "name the result and its type: `%x: TOption<i32> = enum.new<None> { }`";
            return Err(self.error(Code::MPT2014, "nothing says which enum is made", help));
        };
        match *types {
            [TypeArg::Variant(name)] => self.variant(ty, name.symbol),
            [TypeArg::Type(written), TypeArg::Int(index)] => {
                self.check_enum_name(written, ty)?;
                let count = self.variant_names(ty).map_or(0, |names| names.len());
                if index >= count as u64 {
                    let name = self.type_name(ty);
                    let message = format!("`{name}` has no variant {index}");
                    let help = format!("its {count} variants are numbered from 0");
                    return Err(self.error(Code::MPT2017, message, help));
                }
                Ok(self.variant_at(ty, index as u32))
            }
            _ => Err(Poisoned),
        }
    }

    /// Checks that the type written in `enum.new<Type, N>` is the one that is made, or its generic
    /// name.
    fn check_enum_name(&mut self, written: TypeUse, ty: TypeId) -> Lower<()> {
        let expr = self.ast[written.id];
        let name = self.scope.name(expr.path);
        if expr.args.is_empty() && expr.modifier == Modifier::None {
            let base = match self.kind(ty) {
                TypeKind::Option(_) => "TOption",
                TypeKind::Result(..) => "TResult",
                TypeKind::Enum(e) => {
                    let full = &self.cx.module.types.enum_def(e).name;
                    let full = full.split('<').next().unwrap_or(full);
                    if full == name { name } else { full.rsplit('.').next().unwrap_or(full) }
                }
                _ => "",
            };
            if base == name {
                return Ok(());
            }
            if matches!(name, "TOption" | "TResult") {
                return Err(self.report_enum_name(name.to_string(), ty));
            }
        }
        let found = self.type_use(written)?;
        if found == ty {
            return Ok(());
        }
        let found = self.type_name(found);
        Err(self.report_enum_name(found, ty))
    }

    fn report_enum_name(&mut self, found: String, ty: TypeId) -> Poisoned {
        let wanted = self.type_name(ty);
        let message = format!("`enum.new<{found}, …>` for a result of type `{wanted}`");
        self.error(Code::MPT2014, message, "write the type of the result")
    }

    pub(super) fn enum_new(&mut self, types: &[TypeArg], args: &[Arg], want: Annotation) -> Lower {
        let by_index = matches!(types, [_, _]);
        let variant = self.new_variant(types, want);
        let mut values = Vec::with_capacity(args.len());
        let mut poisoned = false;
        for arg in args {
            let value = self.arg(arg);
            poisoned |= value.is_err();
            values.push(value);
        }
        let variant = variant?;
        let ordered = self.variant_args(&variant, args, &values, by_index)?;
        if poisoned {
            return Err(Poisoned);
        }
        if let TypeKind::Enum(e) = self.kind(variant.ty)
            && self.cx.module.types.enum_def(e).category == Category::Value
        {
            let bits = MpirConst::Bits(variant.index as u64);
            return Ok(Out::Value(self.f.constant(variant.ty, bits)));
        }
        Ok(self.emit(MpirOp::EnumNew, variant.ty, &ordered, variant.index as u64))
    }

    /// The values for the fields of a variant, in the order of the fields.
    fn variant_args(
        &mut self,
        variant: &VariantOf,
        args: &[Arg],
        values: &[Lower<MpirValue>],
        by_index: bool,
    ) -> Lower<Vec<MpirValue>> {
        let mut slots: Vec<Option<Lower<MpirValue>>> = vec![None; variant.fields.len()];
        let mut failed = false;
        for (n, arg) in args.iter().enumerate() {
            let key = self.scope.name(arg.key);
            let slot = match by_index {
                true => (n < slots.len()).then_some(n),
                false => variant.fields.iter().position(|(name, _)| name == key),
            };
            let Some(slot) = slot else {
                let names: Vec<&str> = variant.fields.iter().map(|f| f.0.as_str()).collect();
                let help = match names[..] {
                    [] => "it has no fields".to_string(),
                    _ => format!("its fields are {}", names.join(", ")),
                };
                let message = format!("the variant has no field `{key}`");
                self.error(Code::MPT2017, message, help);
                failed = true;
                continue;
            };
            if slots[slot].is_some() {
                let message = format!("field `{key}` is given twice");
                self.error(Code::MPT2016, message, "give each field one value");
                failed = true;
                continue;
            }
            slots[slot] = Some(values[n]);
            if self.cx.types.is_failed_member(variant.ty, variant.index, slot as u32) {
                failed = true;
            } else if let Ok(v) = values[n] {
                let (name, wanted) = &variant.fields[slot];
                let what = |_: &Self| format!("field `{name}`");
                failed |= self.stored(v, *wanted, Code::MPT2019, what).is_err();
            }
        }
        let missing: Vec<String> = variant
            .fields
            .iter()
            .zip(&slots)
            .filter(|(_, slot)| slot.is_none())
            .map(|((name, _), _)| format!("`{name}`"))
            .collect();
        if !missing.is_empty() && !failed {
            let message = format!("the variant needs {}", missing.join(", "));
            return Err(self.error(Code::MPT2020, message, "give every field a value"));
        }
        if failed {
            return Err(Poisoned);
        }
        slots.into_iter().map(|slot| slot.unwrap_or(Err(Poisoned))).collect()
    }

    /// The operand of an operation on an enum, and the enum type.
    fn enum_operand(&mut self, op: AstOp, args: &[Arg]) -> Lower<(MpirValue, TypeId)> {
        let Some(first) = args.first() else { return Err(Poisoned) };
        let v = self.arg(first)?;
        let found = self.f.ty(v);
        let ty = self.seen_through(found);
        if self.variant_names(ty).is_none() {
            let name = self.type_name(found);
            let message = format!("`{}` of `{name}`, which is no enum", op.name());
            let help = match self.kind(found) {
                TypeKind::Ref(RefMode::Weak, _) => "make a shared handle with `weak.upgrade` first",
                _ => "give a `heap enum`, a `TOption`, a `TResult` or an enum of the runtime",
            };
            return Err(self.error(Code::MPT2015, message, help));
        }
        Ok((v, ty))
    }

    pub(super) fn enum_tag(&mut self, args: &[Arg]) -> Lower {
        let (v, _) = self.enum_operand(AstOp::EnumTag, args)?;
        Ok(self.emit(MpirOp::EnumTag, fixed::I32, &[v], 0))
    }

    pub(super) fn enum_is(&mut self, types: &[TypeArg], args: &[Arg]) -> Lower {
        let (v, ty) = self.enum_operand(AstOp::EnumIs, args)?;
        let [TypeArg::Variant(name)] = *types else { return Err(Poisoned) };
        let variant = self.variant(ty, name.symbol)?;
        Ok(self.emit(MpirOp::EnumIs, fixed::BOOL, &[v], variant.index as u64))
    }

    pub(super) fn enum_payload(
        &mut self,
        types: &[TypeArg],
        args: &[Arg],
        want: Annotation,
    ) -> Lower {
        let (v, ty) = self.enum_operand(AstOp::EnumPayload, args)?;
        let [TypeArg::Variant(name)] = *types else { return Err(Poisoned) };
        let variant = self.variant(ty, name.symbol)?;
        let field = match args.get(1).map(|arg| arg.kind) {
            Some(ArgKind::Word(field)) => {
                let text = self.scope.name(field);
                let Some(n) = variant.fields.iter().position(|(name, _)| name == text) else {
                    let names: Vec<&str> = variant.fields.iter().map(|f| f.0.as_str()).collect();
                    let help = format!("its fields are {}", names.join(", "));
                    let message = format!("the variant has no field `{text}`");
                    return Err(self.error(Code::MPT2017, message, help));
                };
                n
            }
            _ if variant.fields.len() == 1 => 0,
            _ => {
                let variant_name = self.scope.name(name.symbol);
                let count = variant.fields.len();
                let message = format!("variant `{variant_name}` has {count} fields, not one");
                let names: Vec<&str> = variant.fields.iter().map(|f| f.0.as_str()).collect();
                let help = match names.first() {
                    Some(first) => format!("name the field: `{{ v=…, field={first} }}`"),
                    None => "ask for the variant with `enum.is`".to_string(),
                };
                return Err(self.error(Code::MPT2020, message, help));
            }
        };
        if self.cx.types.is_failed_member(ty, variant.index, field as u32) {
            return Err(Poisoned);
        }
        let part = variant.fields[field].1;
        let is_seen_through = ty != self.f.ty(v);
        let shown = if is_seen_through { self.shown(part, want) } else { part };
        let imm = imm_pair(variant.index, field as u32);
        Ok(self.emit(MpirOp::EnumPayload, shown, &[v], imm))
    }
}
