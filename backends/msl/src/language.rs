//! [`Msl`]: a kernel on its way to MSL, and what [`Language`] asks of it.

use crate::arguments::Arguments;
use crate::functions::Functions;
use crate::memory::Memory;
use crate::types::{Structs, type_name};
use crate::words::is_reserved;
use magpie_diag::Code;
use magpie_gpu::structurize::StructuredBody;
use magpie_gpu::text::{Emit, Language, Shape, Text, write_body};
use magpie_mpir::{Block, Flags, Inst, MpirFn, Op};
use magpie_types::PrimType;
use magpie_types::TypeCtx;
use magpie_types::kernel::{DeviceFeatures, KernelLayout};
use rustc_hash::FxHashSet;
use std::fmt::Write;

/// The state of emitting one kernel.
pub(crate) struct Msl<'a> {
    pub(crate) arguments: Arguments,
    pub(crate) memory: Memory,
    pub(crate) structs: Structs,
    pub(crate) functions: Functions,
    /// What the device must offer.
    pub(crate) features: DeviceFeatures,
    /// Counters of loops that end.
    finite: &'a FxHashSet<Inst>,
    /// A variable that is true, which the compiler does not know.
    going: Option<String>,
}

/// The source of a kernel, with the features it needs. `finite` are the counters of loops that end.
pub(crate) fn write_source(
    types: &TypeCtx,
    f: &MpirFn,
    layout: &KernelLayout,
    body: &StructuredBody,
    finite: &FxHashSet<Inst>,
) -> Emit<(String, DeviceFeatures)> {
    let mut text = Text::new::<Msl>(types, f, layout);
    let mut msl = Msl {
        arguments: Arguments::default(),
        memory: Memory::new(f),
        structs: Structs::default(),
        functions: Functions::default(),
        features: DeviceFeatures::default(),
        finite,
        going: None,
    };
    msl.declare_arguments(&mut text)?;
    write_body(&mut msl, &mut text, body)?;
    let room = text.prologue.len() + text.out.len() + msl.structs.text.len() + 2048;
    let mut out = String::with_capacity(room);
    out.push_str("#include <metal_stdlib>\nusing namespace metal;\n");
    let contract = if contracts(f) { "fast" } else { "off" };
    // Writing to a string does not fail.
    let _ = writeln!(out, "#pragma METAL fp contract({contract})\n");
    msl.write_alias_macro(&text, &mut out);
    out.push_str(&msl.structs.text);
    msl.functions.write(&mut out);
    let _ = writeln!(out, "kernel void {}(", layout.entry);
    msl.arguments.write(&mut out);
    out.push_str(")\n{\n");
    out.push_str(&text.prologue);
    out.push_str(&text.out);
    out.push_str("}\n");
    Ok((out, msl.features))
}

/// Whether every sum, difference and product of floats may be part of a fused operation.
fn contracts(f: &MpirFn) -> bool {
    let mut sums = f.blocks.iter().flat_map(|b| &b.insts).map(|&i| f.inst(i)).filter(|inst| {
        let adds = matches!(inst.op, Op::FAdd | Op::FSub | Op::FMul);
        // Written in terms of sums and products.
        let is_geometric =
            matches!(inst.op, Op::VecDot | Op::VecCross | Op::VecReflect | Op::VecMix);
        adds || is_geometric || matches!(inst.op, Op::VecLength | Op::VecNormalize)
    });
    let mut any = false;
    let all = sums.by_ref().all(|inst| {
        any = true;
        inst.flags.contains(Flags::CONTRACT)
    });
    any && all
}

impl Language for Msl<'_> {
    const NAME: &'static str = "MSL";
    const CODE: Code = Code::MPG_MSL_1101;
    // Clang allows 256 brackets of all kinds.
    const MAX_NESTING: u32 = 200;
    const LOOP: &'static str = "for (;;) {";
    const END_CASE: &'static str = "} break;";

    fn is_reserved(&self, word: &str) -> bool {
        is_reserved(word)
    }

    fn type_name(&self, shape: Shape) -> &'static str {
        type_name(shape)
    }

    fn declare_constant(&self, text: &mut Text<'_>, name: &str, shape: Shape) {
        let _ = write!(text.out, "{} {name} = ", type_name(shape));
    }

    fn declare_variable(&self, name: &str, shape: Shape) -> String {
        format!("{} {name};", type_name(shape))
    }

    fn literal(&mut self, text: &mut Text<'_>, shape: Shape, bits: u64) -> Emit {
        if shape.lanes > 1 {
            let _ = write!(text.out, "{}(0)", type_name(shape));
            return Ok(());
        }
        let literal = scalar_literal(shape.prim, bits);
        let literal = literal
            .ok_or_else(|| text.broken(&format!("a constant of type `{}`", shape.prim.name())))?;
        text.out.push_str(&literal);
        Ok(())
    }

    fn parameter(&mut self, text: &mut Text<'_>, param: u32, leaf: u32) -> Emit<String> {
        self.read_argument(text, param, leaf)
    }

    fn expression(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        self.write_expression(text, i)
    }

    fn statement(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        self.write_statement(text, i)
    }

    fn case(&mut self, text: &mut Text<'_>, shape: Shape, labels: Option<&[u64]>) -> Emit {
        let Some(labels) = labels else {
            text.out.push_str("default: {");
            return Ok(());
        };
        for &label in labels {
            text.out.push_str("case ");
            self.literal(text, shape, label)?;
            text.out.push_str(": ");
        }
        text.out.push('{');
        Ok(())
    }

    fn open_loop(&mut self, text: &mut Text<'_>, header: Block) -> Emit {
        if text.f.phis(header).any(|phi| self.finite.contains(&phi)) {
            return text.open::<Self>(Self::LOOP);
        }
        let name = match self.going.take() {
            Some(name) => name,
            None => {
                let name = text.take_name(self, "going");
                let _ = writeln!(text.prologue, "    volatile bool {name} = true;");
                name
            }
        };
        let opened = text.open::<Self>(&format!("while ({name}) {{"));
        self.going = Some(name);
        opened
    }

    fn end_loop(&mut self, _text: &mut Text<'_>, _has_exit: bool) {}
}

/// An atomic expression for the bits of a scalar. Floats are written as their bits.
fn scalar_literal(prim: PrimType, bits: u64) -> Option<String> {
    let small = |name: &str, value: i64| format!("{name}({value})");
    Some(match prim {
        PrimType::Bool | PrimType::U1 => (bits != 0).to_string(),
        PrimType::I8 => small("char", i64::from(bits as i8)),
        PrimType::I16 => small("short", i64::from(bits as i16)),
        PrimType::U8 => small("uchar", i64::from(bits as u8)),
        PrimType::U16 => small("ushort", i64::from(bits as u16)),
        PrimType::U32 => format!("{}u", bits as u32),
        PrimType::U64 => format!("{bits}ul"),
        // The literal behind the sign would be too large.
        PrimType::I32 if bits as u32 == 1 << 31 => "int(2147483648u)".to_string(),
        PrimType::I64 if bits == 1 << 63 => "long(9223372036854775808ul)".to_string(),
        PrimType::I32 => match bits as i32 {
            n if n < 0 => format!("({n})"),
            n => n.to_string(),
        },
        PrimType::I64 => match bits as i64 {
            n if n < 0 => format!("({n}l)"),
            n => format!("{n}l"),
        },
        PrimType::F16 => format!("as_type<half>(ushort({:#06x}))", bits as u16),
        PrimType::Bf16 => format!("as_type<bfloat>(ushort({:#06x}))", bits as u16),
        PrimType::F32 => format!("as_type<float>({:#010x}u)", bits as u32),
        PrimType::F64 | PrimType::I128 | PrimType::U128 | PrimType::Unit => return None,
    })
}
