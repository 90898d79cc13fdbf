//! Constants.

use super::body::Body;
use super::*;
use crate::types::{Scope, Written};
use magpie_mpir::{Const as MpirConst, Value as MpirValue};
use magpie_types::PrimType;

/// The bits of an integer literal in a type, if it fits.
pub(super) fn int_bits(negative: bool, magnitude: u128, prim: PrimType) -> Option<u64> {
    let width = prim.bit_width();
    if !prim.is_int() || width == 0 {
        return None;
    }
    let largest = match (prim.is_signed(), negative) {
        (true, true) => 1u128 << (width - 1),
        (true, false) => (1u128 << (width - 1)) - 1,
        (false, false) => u128::MAX >> (128 - width),
        (false, true) => 0,
    };
    if magnitude > largest {
        return None;
    }
    let value = if negative { magnitude.wrapping_neg() } else { magnitude };
    Some(value as u64 & prim.mask())
}

/// What is wrong with a constant.
struct ConstFault {
    code: Code,
    message: String,
    help: String,
}

/// The bits of a literal of a primitive type.
fn literal_bits(
    module: &crate::parser::ParsedModule,
    literal: Literal,
    prim: PrimType,
) -> Result<u64, ConstFault> {
    let name = prim.name();
    let misfit = |what: &str| ConstFault {
        code: Code::MPT2015,
        message: format!("{what} is no value of type `{name}`"),
        help: match prim {
            PrimType::Bool => "write `const.bool true` or `const.bool false`".to_string(),
            PrimType::Unit => "write `const.unit unit`".to_string(),
            _ if prim.is_float() => format!("write `const.{name} 1.5`"),
            _ => format!("write `const.{name} 1`"),
        },
    };
    let format = match prim {
        PrimType::F16 => Some(FloatFormat::F16),
        PrimType::F32 => Some(FloatFormat::F32),
        PrimType::F64 => Some(FloatFormat::F64),
        PrimType::Bf16 => Some(FloatFormat::Bf16),
        _ => None,
    };
    match (literal, format) {
        (Literal::Unit, None) if prim == PrimType::Unit => Ok(0),
        (Literal::Bool(b), None) if prim == PrimType::Bool => Ok(b as u64),
        (Literal::Int { negative, magnitude }, None) if prim.is_int() => {
            int_bits(negative, magnitude, prim).ok_or_else(|| {
                let sign = if negative { "-" } else { "" };
                ConstFault {
                    code: Code::MPT2015,
                    message: format!("`{sign}{magnitude}` does not fit `{name}`"),
                    help: range_help(prim),
                }
            })
        }
        (Literal::Int { negative, magnitude }, Some(format)) => {
            if let (FloatFormat::F32 | FloatFormat::F64, true) = (format, magnitude < 1 << 53) {
                let value = if negative { -(magnitude as f64) } else { magnitude as f64 };
                return Ok(match format {
                    FloatFormat::F32 => (value as f32).to_bits() as u64,
                    _ => value.to_bits(),
                });
            }
            let sign = if negative { "-" } else { "" };
            format.parse(&format!("{sign}{magnitude}")).ok_or_else(|| misfit("the number"))
        }
        (Literal::Float { suffix: Some(suffix), .. }, Some(format)) if suffix != format => {
            Err(ConstFault {
                code: Code::MPT2014,
                message: format!("a `{}` literal for a constant of type `{name}`", suffix.name()),
                help: "leave the suffix out, or write the same type twice".to_string(),
            })
        }
        (Literal::Float { digits, .. }, Some(format)) => {
            format.parse(module.name(digits)).ok_or_else(|| misfit("the number"))
        }
        (Literal::Float { digits, .. }, None) => Err(misfit(&format!("`{}`", module.name(digits)))),
        (Literal::Int { .. }, None) => Err(misfit("a number")),
        (Literal::Bool(b), _) => Err(misfit(&format!("`{b}`"))),
        (Literal::Unit, _) => Err(misfit("`unit`")),
        (Literal::Str(_), _) => Err(misfit("a string")),
    }
}

fn range_help(prim: PrimType) -> String {
    let width = prim.bit_width();
    let name = prim.name();
    match (prim.is_signed(), width) {
        (_, 128) => format!("`{name}` has 128 bits"),
        (true, _) => {
            let half = 1i128 << (width - 1);
            format!("`{name}` holds numbers from {} to {}", -half, half - 1)
        }
        (false, _) => format!("`{name}` holds numbers from 0 to {}", prim.mask()),
    }
}

impl Body<'_, '_> {
    /// The value of a constant.
    pub(super) fn constant(&mut self, id: ConstId) -> Lower<MpirValue> {
        let Const { ty, literal, .. } = self.ast[id];
        let known = self.cx.types.known(self.module, ty);
        let ty = match known {
            Some(ty) => ty,
            None => self.const_type(ty)?,
        };
        if let Some(prim) = PrimType::from_id(ty) {
            return match literal_bits(&self.scope.parsed, literal, prim) {
                Ok(_) if prim == PrimType::Unit => Ok(self.f.zero(fixed::UNIT)),
                Ok(bits) => Ok(self.f.const_bits(ty, bits)),
                Err(fault) => Err(self.error(fault.code, fault.message, fault.help)),
            };
        }
        match (ty, literal) {
            (fixed::STR, Literal::Str(text)) => {
                let text = self.cx.module.intern_str(self.scope.name(text));
                Ok(self.f.constant(fixed::STR, MpirConst::Str(text)))
            }
            (fixed::STR, _) => {
                let help = "write `const.Str \"text\"`";
                Err(self.error(Code::MPT2015, "a `Str` constant is a text between quotes", help))
            }
            _ => {
                let name = self.type_name(ty);
                let help = "constants are primitives and `Str`; build other values by operations";
                Err(self.error(
                    Code::MPT2015,
                    format!("there are no constants of type `{name}`"),
                    help,
                ))
            }
        }
    }

    fn const_type(&mut self, id: TypeExprId) -> Lower<TypeId> {
        // The type of a constant has no place of its own: the instruction stands for it.
        let range = ByteRange { start: self.span.start, end: self.span.end };
        self.type_use(TypeUse { id, range })
    }
}

/// Checks the type and the value of a global.
pub(super) fn check_global(cx: &mut Lowering<'_>, module: ModuleId, global: &GlobalDecl) {
    global_bits(cx, module, global, true);
}

/// The type and the bits of a global; `None` for a `Str`, and where something is wrong.
pub(super) fn global_bits(
    cx: &mut Lowering<'_>,
    module: ModuleId,
    global: &GlobalDecl,
    report: bool,
) -> Option<(PrimType, u64)> {
    let scope = cx.program.module(module);
    let value = scope.ast()[global.value];
    let span = scope.span(global.name.range);
    let push = |cx: &mut Lowering<'_>, d: Diagnostic| {
        if report {
            cx.report(d);
        }
    };
    let annotated = match report {
        true => cx.with_types(|types, work| {
            types.of_use(work, module, global.ty, Scope::default(), false)
        }),
        false => cx.types.known(module, global.ty.id),
    }?;
    let written =
        cx.with_types(|types, work| types.resolve(work, module, value.ty, Scope::default()));
    let Written::Type(ty) = written else {
        let (Written::Fault(fault) | Written::DeviceOnly(_, fault)) = written else { return None };
        let program = cx.program;
        let report = cx.types.report(program, module, fault, span);
        if let Some(d) = report {
            push(cx, d);
        }
        return None;
    };
    if ty != annotated {
        let (ty, annotated) = (cx.types().name(ty), cx.types().name(annotated));
        let message = format!("the global is a `{annotated}`, but its value is a `{ty}`");
        let d = Diagnostic::new(Code::MPT2014, span, message);
        push(cx, d.with_help("write one type twice"));
        return None;
    }
    match (PrimType::from_id(ty), value.literal) {
        (Some(prim), literal) => match literal_bits(&scope.parsed, literal, prim) {
            Ok(bits) => Some((prim, bits)),
            Err(fault) => {
                let d = Diagnostic::new(fault.code, span, fault.message);
                push(cx, d.with_help(fault.help));
                None
            }
        },
        (None, Literal::Str(_)) if ty == fixed::STR => None,
        (None, _) => {
            let name = cx.types().name(ty);
            let d = Diagnostic::new(
                Code::MPT2015,
                span,
                format!("a global of type `{name}` cannot have this value"),
            );
            push(cx, d.with_help("globals are primitives and `Str`, given by a literal"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_fit_or_not() {
        let cases = [
            (false, 127, PrimType::I8, Some(127)),
            (false, 128, PrimType::I8, None),
            (true, 128, PrimType::I8, Some(0x80)),
            (true, 129, PrimType::I8, None),
            (false, 255, PrimType::U8, Some(255)),
            (false, 256, PrimType::U8, None),
            (true, 1, PrimType::U8, None),
            (true, 0, PrimType::U8, Some(0)),
            (true, 1 << 63, PrimType::I64, Some(1 << 63)),
            (false, 1 << 63, PrimType::I64, None),
            (false, u64::MAX as u128, PrimType::U64, Some(u64::MAX)),
            (false, 1 << 64, PrimType::U64, None),
            (false, 1, PrimType::F32, None),
            (false, 1, PrimType::Bool, None),
        ];
        for (negative, magnitude, prim, bits) in cases {
            assert_eq!(
                int_bits(negative, magnitude, prim),
                bits,
                "{negative} {magnitude} {prim:?}"
            );
        }
    }
}
