//! Operations that read the same in every C-like language for GPUs.

use magpie_mpir::Op;

/// The template (see [`super::Text::expand`]) of an op that WGSL and MSL write the same way.
///
/// What it says holds for legalised kernels: no divisor is zero and no quotient leaves its type, and
/// shift amounts lie below the width. Sums, differences and products of signed integers are not
/// here (they are undefined in MSL when they leave the type), nor are operations on floats of which
/// a language must keep the compiler from changing the result.
pub fn common_spelling(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::IUdiv | Op::ISdiv => "$0 / $1",
        Op::IUrem => "$0 % $1",
        Op::IAnd => "$0 & $1",
        Op::IOr => "$0 | $1",
        Op::IXor => "$0 ^ $1",
        Op::ISmin | Op::IUmin => "min(#0, #1)",
        Op::ISmax | Op::IUmax => "max(#0, #1)",
        Op::IcmpEq | Op::FcmpOeq => "$0 == $1",
        Op::IcmpNe | Op::FcmpUne => "$0 != $1",
        Op::IcmpSlt | Op::IcmpUlt | Op::FcmpOlt => "$0 < $1",
        Op::IcmpSgt | Op::IcmpUgt | Op::FcmpOgt => "$0 > $1",
        Op::IcmpSle | Op::IcmpUle | Op::FcmpOle => "$0 <= $1",
        Op::IcmpSge | Op::IcmpUge | Op::FcmpOge => "$0 >= $1",
        Op::FNeg => "-$0",
        Op::FAbs => "abs(#0)",
        Op::FFloor => "floor(#0)",
        Op::FCeil => "ceil(#0)",
        Op::FTrunc => "trunc(#0)",
        Op::FSqrt => "sqrt(#0)",
        Op::FExp => "exp(#0)",
        Op::FExp2 => "exp2(#0)",
        Op::FLog => "log(#0)",
        Op::FLog2 => "log2(#0)",
        Op::FSin => "sin(#0)",
        Op::FCos => "cos(#0)",
        Op::FTan => "tan(#0)",
        Op::FAsin => "asin(#0)",
        Op::FAcos => "acos(#0)",
        Op::FAtan => "atan(#0)",
        Op::FSinh => "sinh(#0)",
        Op::FCosh => "cosh(#0)",
        Op::FTanh => "tanh(#0)",
        // Both languages take the value for `false` first.
        Op::Select => "select(#2, #1, #0)",
        Op::VecSplat => "$T(#0)",
        Op::VecAny => "any(#0)",
        Op::VecAll => "all(#0)",
        // What differs.
        magpie_mpir::integer_ops!()
        | magpie_mpir::float_ops!()
        | magpie_mpir::fcmp_ops!()
        | magpie_mpir::vector_ops!()
        | magpie_mpir::struct_ops!()
        | magpie_mpir::id_ops!()
        | magpie_mpir::atomic_ops!()
        | magpie_mpir::subgroup_ops!()
        | magpie_mpir::access_ops!()
        | magpie_mpir::trap_ops!()
        | magpie_mpir::ownership_ops!()
        | magpie_mpir::object_ops!()
        | magpie_mpir::launch_ops!()
        | magpie_mpir::low_host_ops!()
        | Op::Cast
        | Op::BitsCast
        | Op::Phi
        | Op::GpuBufferLen
        | Op::GpuShared
        | Op::GpuLocal
        | Op::GpuBarrier
        | Op::GpuPrint
        | Op::Call
        | Op::RtCall
        | Op::CallIndirect
        | Op::CallableCapture
        | Op::Panic => return None,
    })
}
