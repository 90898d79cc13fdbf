//! [`Wgsl`]: the state of emitting one kernel, and what WGSL writes in its own way.

use crate::functions::{Function, Functions};
use crate::interface::Interface;
use crate::keywords::is_reserved;
use crate::memory::Memory;
use crate::types::{Scalar, type_name};
use crate::uniform_loads::UniformLoads;
use magpie_diag::Code;
use magpie_gpu::text::{Emit, Language, Shape, Text};
use magpie_mpir::Inst;
use magpie_types::kernel::DeviceFeatures;
use std::fmt::Write;

/// A kernel on its way to WGSL.
pub(crate) struct Wgsl {
    pub(crate) functions: Functions,
    pub(crate) interface: Interface,
    pub(crate) memory: Memory,
    pub(crate) uniform_loads: UniformLoads,
    /// What the device must offer.
    pub(crate) needs: DeviceFeatures,
}

impl Language for Wgsl {
    const NAME: &'static str = "WGSL";
    const CODE: Code = Code::MPG_WGSL_1101;
    /// Section 2.4 of the WGSL specification; the function itself takes one.
    const MAX_NESTING: u32 = 127;
    const MAX_CASES: usize = 16_383;
    const LOOP: &'static str = "loop {";
    const END_CASE: &'static str = "}";

    fn is_reserved(&self, word: &str) -> bool {
        is_reserved(word)
    }

    fn type_name(&self, shape: Shape) -> &'static str {
        type_name(shape)
    }

    fn declare_constant(&self, text: &mut Text<'_>, name: &str, _: Shape) {
        let _ = write!(text.out, "let {name} = ");
    }

    fn declare_variable(&self, name: &str, shape: Shape) -> String {
        format!("var {name}: {};", type_name(shape))
    }

    fn literal(&mut self, text: &mut Text<'_>, shape: Shape, bits: u64) -> Emit {
        if shape.lanes > 1 {
            let _ = write!(text.out, "{}()", type_name(shape));
            return Ok(());
        }
        let single = bits as u32;
        // Writing to a string does not fail.
        let _ = match Scalar::of(shape.prim) {
            Scalar::Bool => write!(text.out, "{}", bits != 0),
            Scalar::U32 => write!(text.out, "{single}u"),
            Scalar::I32 => match magpie_mpir::eval::sign_extend(bits, shape.prim.bit_width()) {
                // The positive number is none.
                n if n == i32::MIN as i64 => write!(text.out, "i32(0x80000000u)"),
                n if n < 0 => write!(text.out, "i32({n})"),
                n => write!(text.out, "{n}i"),
            },
            Scalar::F32 => {
                self.float_literal(text, single);
                Ok(())
            }
            Scalar::F16 => {
                let single = magpie_types::float16::f16_to_f32(bits as u16).to_bits();
                text.out.push_str("f16(");
                self.float_literal(text, single);
                write!(text.out, ")")
            }
        };
        Ok(())
    }

    fn parameter(&mut self, text: &mut Text<'_>, param: u32, leaf: u32) -> Emit<String> {
        self.scalar_parameter(text, param, leaf)
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
        text.out.push_str("case ");
        for (n, &bits) in labels.iter().enumerate() {
            if n > 0 {
                text.out.push_str(", ");
            }
            self.literal(text, shape, bits)?;
        }
        text.out.push_str(": {");
        Ok(())
    }

    fn end_loop(&mut self, text: &mut Text<'_>, has_exit: bool) {
        if !has_exit {
            // A loop must have a way out.
            let zero = self.zero();
            text.line(&format!("if ({zero} == 1u) {{ break; }}"));
        }
    }
}

impl Wgsl {
    /// A float from its bits. Constant expressions may be neither infinite nor NaN.
    fn float_literal(&mut self, text: &mut Text<'_>, bits: u32) {
        let value = f32::from_bits(bits);
        let _ = if bits == 0 {
            write!(text.out, "0f")
        } else if !value.is_finite() {
            let zero = self.zero();
            write!(text.out, "bitcast<f32>(0x{bits:08x}u ^ {zero})")
        } else if value.is_normal() && bits >> 31 == 0 {
            // A hexadecimal float: the significand has 23 bits, which are 6 digits less one bit.
            let exponent = (bits >> 23) as i32 - 127;
            let digits = format!("{:06x}", (bits & 0x7f_ffff) << 1);
            match digits.trim_end_matches('0') {
                "" => write!(text.out, "0x1p{exponent:+}f"),
                digits => write!(text.out, "0x1.{digits}p{exponent:+}f"),
            }
        } else {
            write!(text.out, "bitcast<f32>(0x{bits:08x}u)")
        };
    }

    /// A `u32` that is zero, which no compiler knows: a launch has workgroups.
    pub(crate) fn zero(&mut self) -> &'static str {
        self.interface.uses_zero = true;
        "zero"
    }

    /// Writes a call of a function of the module up to its operands.
    pub(crate) fn open_call(&mut self, text: &mut Text<'_>, function: Function, shape: Shape) {
        let name = self.functions.name(function, shape);
        let _ = write!(text.out, "{name}(");
    }
}
