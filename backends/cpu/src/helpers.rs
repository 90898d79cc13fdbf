//! Functions that generated code calls: conversions of 16-bit floats, exact with one rounding, and
//! what a subgroup computes.

use cranelift_codegen::ir::{AbiParam, Signature, Type, types};
use magpie_mpir::{Op, eval};
use magpie_types::PrimType;
use magpie_types::float16;

/// A function of this module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(crate) enum Helper {
    F16ToF32,
    F32ToF16,
    F64ToF16,
    F64ToBf16,
    I64ToBf16,
    U64ToBf16,
    F16Fma,
    Bf16Fma,
    /// [`crate::kernel::execute_subgroup`].
    Subgroup,
}

impl Helper {
    pub(crate) const COUNT: usize = 9;

    /// The symbol under which generated code finds it.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Helper::F16ToF32 => "mp_cpu_f16_to_f32",
            Helper::F32ToF16 => "mp_cpu_f32_to_f16",
            Helper::F64ToF16 => "mp_cpu_f64_to_f16",
            Helper::F64ToBf16 => "mp_cpu_f64_to_bf16",
            Helper::I64ToBf16 => "mp_cpu_i64_to_bf16",
            Helper::U64ToBf16 => "mp_cpu_u64_to_bf16",
            Helper::F16Fma => "mp_cpu_f16_fma",
            Helper::Bf16Fma => "mp_cpu_bf16_fma",
            Helper::Subgroup => "mp_cpu_subgroup",
        }
    }

    pub(crate) fn address(self) -> *const u8 {
        match self {
            Helper::F16ToF32 => f16_to_f32 as *const u8,
            Helper::F32ToF16 => f32_to_f16 as *const u8,
            Helper::F64ToF16 => f64_to_f16 as *const u8,
            Helper::F64ToBf16 => f64_to_bf16 as *const u8,
            Helper::I64ToBf16 => i64_to_bf16 as *const u8,
            Helper::U64ToBf16 => u64_to_bf16 as *const u8,
            Helper::F16Fma => f16_fma as *const u8,
            Helper::Bf16Fma => bf16_fma as *const u8,
            Helper::Subgroup => crate::kernel::execute_subgroup as *const u8,
        }
    }

    pub(crate) fn signature(self, mut sig: Signature) -> Signature {
        let (params, ret): (&[Type], Type) = match self {
            Helper::Subgroup => {
                sig.params.extend([types::I64; 7].map(AbiParam::new));
                return sig;
            }
            Helper::F16ToF32 => (&[types::I16], types::F32),
            Helper::F32ToF16 => (&[types::F32], types::I16),
            Helper::F64ToF16 | Helper::F64ToBf16 => (&[types::F64], types::I16),
            Helper::I64ToBf16 | Helper::U64ToBf16 => (&[types::I64], types::I16),
            Helper::F16Fma | Helper::Bf16Fma => (&[types::I16, types::I16, types::I16], types::I16),
        };
        sig.params.extend(params.iter().map(|&t| AbiParam::new(t)));
        sig.returns.push(AbiParam::new(ret));
        sig
    }
}

extern "C" fn f16_to_f32(v: u16) -> f32 {
    float16::f16_to_f32(v)
}

extern "C" fn f32_to_f16(v: f32) -> u16 {
    float16::f32_to_f16(v)
}

extern "C" fn f64_to_f16(v: f64) -> u16 {
    float16::f64_to_f16(v)
}

extern "C" fn f64_to_bf16(v: f64) -> u16 {
    float16::f64_to_bf16(v)
}

extern "C" fn i64_to_bf16(v: i64) -> u16 {
    float16::i128_to_bf16(v as i128)
}

extern "C" fn u64_to_bf16(v: u64) -> u16 {
    float16::i128_to_bf16(v as i128)
}

fn fma(p: PrimType, a: u16, b: u16, c: u16) -> u16 {
    eval::eval(Op::FFma, p, p, &[a as u64, b as u64, c as u64]).unwrap_or(0) as u16
}

extern "C" fn f16_fma(a: u16, b: u16, c: u16) -> u16 {
    fma(PrimType::F16, a, b, c)
}

extern "C" fn bf16_fma(a: u16, b: u16, c: u16) -> u16 {
    fma(PrimType::Bf16, a, b, c)
}

/// The symbol under which code for processors without SSSE3 finds [`pick_bytes`].
#[cfg(target_arch = "x86_64")]
pub(crate) const PICK_BYTES: &str = "__cranelift_x86_pshufb";

/// What the instruction `pshufb` does: the bytes at these places, zero where the top bit is set.
#[cfg(target_arch = "x86_64")]
#[expect(improper_ctypes_definitions, reason = "generated code passes the same registers")]
pub(crate) extern "C" fn pick_bytes(
    bytes: std::arch::x86_64::__m128i,
    places: std::arch::x86_64::__m128i,
) -> std::arch::x86_64::__m128i {
    // SAFETY: registers of 16 bytes, any of which may have any value.
    let [bytes, places]: [[u8; 16]; 2] = unsafe { std::mem::transmute([bytes, places]) };
    let picked = places.map(|at| if at < 128 { bytes[usize::from(at & 15)] } else { 0 });
    // SAFETY: as above.
    unsafe { std::mem::transmute(picked) }
}
