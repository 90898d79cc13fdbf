//! What differs between the formats: polynomials and constants; and the steps that all functions
//! share.
//!
//! The polynomials minimise the largest relative error of the function on their interval (Remez
//! exchange); the comments give it.

use super::super::format::{F32, F64, Format};
use super::super::seq::Seq;
use magpie_mpir::eval::float_bits;
use magpie_mpir::{Op, Value};
use magpie_types::PrimType;

/// The functions of one float format.
pub(super) struct Library {
    pub(super) format: Format,
    /// The signed integer of the same width.
    pub(super) signed: PrimType,
    /// `e^r = 1 + r + r² p(r)` up to half of log 2.
    pub(super) exp: &'static [f64],
    /// `sin r = r + r z p(z)` up to π/4, with `z = r²`.
    pub(super) sin: &'static [f64],
    /// `cos r = 1 - z/2 + z² p(z)` up to π/4.
    pub(super) cos: &'static [f64],
    /// `log((1 + q) / (1 - q)) = 2 q + q z p(z)` for quotients between the root of ½ and of 2.
    pub(super) log: &'static [f64],
    /// `atan r = r + r z p(z)` up to 1.
    pub(super) atan: &'static [f64],
    /// `asin r = r + r z p(z)` up to ½.
    pub(super) asin: &'static [f64],
    /// `sinh r = r + r z p(z)` up to 1.
    pub(super) sinh: &'static [f64],
    /// `tanh r = r + r z p(z)` up to 0.6.
    pub(super) tanh: &'static [f64],
    /// Where e^x is 0, and where it is infinite.
    pub(super) exp_range: [f64; 2],
    /// The same for 2^x; half of either end is the exponent of a normal number.
    pub(super) exp2_range: [f64; 2],
    /// The bits of 2/π behind the point, after some zeros: see `trigonometry.rs`.
    pub(super) two_over_pi: &'static [u64],
}

/// Constants as a sum of two numbers of the format: bits of f64 and f32.
#[derive(Clone, Copy)]
pub(super) struct Split {
    f32: [u32; 2],
    f64: [u64; 2],
}

pub(super) const LN_2: Split =
    Split { f32: [0x3f31_7218, 0xb102_e308], f64: [0x3fe6_2e42_fefa_39ef, 0x3c7a_bc9e_3b39_803f] };
pub(super) const LOG2_E: Split =
    Split { f32: [0x3fb8_aa3b, 0x32a5_7060], f64: [0x3ff7_1547_652b_82fe, 0x3c77_77d0_ffda_0d24] };
pub(super) const HALF_PI: Split =
    Split { f32: [0x3fc9_0fdb, 0xb33b_bd2e], f64: [0x3ff9_21fb_5444_2d18, 0x3c91_a626_3314_5c07] };
pub(super) const PI: Split =
    Split { f32: [0x4049_0fdb, 0xb3bb_bd2e], f64: [0x4009_21fb_5444_2d18, 0x3ca1_a626_3314_5c07] };

/// The first coefficient of [`Library::log`], with the digits that the format does not hold.
pub(super) const LOG_FIRST: Split =
    Split { f32: [0x3f2a_aaab, 0xb2b4_76d4], f64: [0x3fe5_5555_5555_5555, 0x3c85_5555_5555_5555] };

static SINGLE: Library = Library {
    format: F32,
    signed: PrimType::I32,
    // 2^-28.3
    exp: &[
        0.4999999343324963,
        0.16666520397975662,
        0.04166839046747569,
        0.008368745257324445,
        0.0013814559288734588,
    ],
    // 2^-28.0
    sin: &[-0.16666654571267325, 0.008332158326147407, -0.00019514948766745631],
    // 2^-33.0
    cos: &[0.04166664562175662, -0.0013887313179192582, 2.443279602227873e-05],
    // 2^-29.7 of a part that is at most 1.5 % of the whole
    log: &[0.6666666655260869, 0.40000123090506895, 0.2855069897010335, 0.2333341875083631],
    // 2^-28.5
    atan: &[
        -0.3333329909230331,
        0.1999854826123352,
        -0.14264241058895114,
        0.10952182066237781,
        -0.08403439744263684,
        0.057957426397767874,
        -0.031177696025102338,
        0.010914534276053631,
        -0.0017936075926762317,
    ],
    // 2^-31.8
    asin: &[
        0.16666659990938526,
        0.07500504186989967,
        0.04451695613372009,
        0.03180770373583226,
        0.014438677315709959,
        0.03751633173733292,
    ],
    // 2^-34.2
    sinh: &[
        0.16666666497562246,
        0.008333350058353905,
        0.0001983615972513911,
        2.8169515658763376e-06,
    ],
    // 2^-28.4
    tanh: &[
        -0.33333298005532186,
        0.13331924224889258,
        -0.053783839136260066,
        0.020796002879092394,
        -0.00589519535280111,
    ],
    exp_range: [-105.0, 90.0],
    exp2_range: [-160.0, 130.0],
    two_over_pi: &[
        0x0000_0028_be60_db93,
        0x9105_4a7f_09d5_f47d,
        0x4d37_7036_d8a5_664f,
        0x10e4_107f_9458_eaf7,
        0xaef1_586d_c91b_8e90,
    ],
};

static DOUBLE: Library = Library {
    format: F64,
    signed: PrimType::I64,
    // 2^-64.0
    exp: &[
        0.5,
        0.16666666666666682,
        0.041666666666666095,
        0.008333333333316985,
        0.001388888888911642,
        0.00019841269896507242,
        2.4801586925559984e-05,
        2.755723473539941e-06,
        2.755758244797663e-07,
        2.51120819800387e-08,
        2.0826523369688663e-09,
    ],
    // 2^-68.7
    sin: &[
        -0.16666666666666666,
        0.008333333333333323,
        -0.00019841269841254722,
        2.7557319214024103e-06,
        -2.5052104871106145e-08,
        1.605836177843425e-10,
        -7.578470679641551e-13,
    ],
    // 2^-64.0
    cos: &[
        0.041666666666666595,
        -0.0013888888888872978,
        2.480158728880059e-05,
        -2.755731416412366e-07,
        2.0875698727011398e-09,
        -1.1358424413628376e-11,
    ],
    // 2^-58.8 of a part that is at most 1.5 % of the whole
    log: &[
        0.6666666666666666,
        0.4000000000000089,
        0.28571428570794766,
        0.22222222393603783,
        0.1818179544827098,
        0.15386249681084868,
        0.13268516288443394,
        0.13089219145858638,
    ],
    // 2^-60.2
    atan: &[
        -0.33333333333333287,
        0.19999999999990425,
        -0.1428571428503553,
        0.11111111086418084,
        -0.09090908546771193,
        0.07692299706370108,
        -0.06666583679794613,
        0.05881715901479962,
        -0.052594326660249685,
        0.047449222721246416,
        -0.04286380652310417,
        0.03820984865198426,
        -0.032785073345255884,
        0.026151206703634862,
        -0.018613735902205136,
        0.011317293010206512,
        -0.005612180195041326,
        0.002151501147707544,
        -0.0005928684413266224,
        0.0001038676066286053,
        -8.653870016621546e-06,
    ],
    // 2^-59.9
    asin: &[
        0.1666666666666676,
        0.07499999999970762,
        0.04464285717464112,
        0.03038194270660714,
        0.022372215016156258,
        0.01735161156460069,
        0.013980825341867557,
        0.011398876809852108,
        0.010780434136090986,
        0.0037057765969923033,
        0.021708878327860563,
        -0.02100096043507413,
        0.03262974257074695,
    ],
    // 2^-73.8
    sinh: &[
        0.16666666666666666,
        0.008333333333333333,
        0.000198412698412696,
        2.755731922411629e-06,
        2.505210834650914e-08,
        1.6059050601266318e-10,
        7.646482894306806e-13,
        2.848233070087608e-15,
    ],
    // 2^-57.8
    tanh: &[
        -0.33333333333333126,
        0.1333333333329966,
        -0.05396825394929434,
        0.02186948800254066,
        -0.008863226777268307,
        0.0035920373785512092,
        -0.0014552153626232907,
        0.0005871884140337179,
        -0.00023039684520104425,
        7.931400723658146e-05,
        -1.717876114139527e-05,
    ],
    exp_range: [-750.0, 711.0],
    exp2_range: [-1100.0, 1030.0],
    two_over_pi: &[
        0x0000_0000_0000_0145,
        0xf306_dc9c_882a_53f8,
        0x4eaf_a3ea_69bb_81b6,
        0xc52b_3278_8720_83fc,
        0xa2c7_57bd_778a_c36e,
        0x48dc_7484_9ba5_c00c,
        0x925d_d413_a324_39fc,
        0x3bd6_3962_534e_7dd1,
        0x046b_ea5d_7689_09d3,
        0x38e0_4d68_befc_8273,
        0x23ac_7306_a673_e939,
        0x08bf_177b_f250_763f,
        0xf12f_ffbc_0b30_1fde,
        0x5e23_16b4_14da_3eda,
        0x6cfd_9e4f_9613_6e9e,
        0x8c7e_cd3c_bfd4_5aea,
        0x4f75_8fd7_cbe2_f67a,
        0x0e73_ef14_a525_d4d7,
        0xf6bf_623f_1aba_10ac,
        0x0660_8df8_f6d7_57e1,
    ],
};

impl Library {
    /// The functions of f32 or f64.
    pub(super) fn of(p: PrimType) -> Option<&'static Library> {
        match p {
            PrimType::F32 => Some(&SINGLE),
            PrimType::F64 => Some(&DOUBLE),
            _ => None,
        }
    }

    /// A constant.
    pub(super) fn number(&self, s: &mut Seq, v: f64) -> Value {
        let p = self.format.float;
        s.f.const_bits(p.id(), float_bits(p, v))
    }

    /// A constant from its bits.
    pub(super) fn raw(&self, s: &mut Seq, bits: u64) -> Value {
        s.f.const_bits(self.format.float.id(), bits)
    }

    /// The two numbers whose sum is a constant.
    pub(super) fn split(&self, s: &mut Seq, c: Split) -> [Value; 2] {
        let bits = match self.format.float {
            PrimType::F32 => c.f32.map(u64::from),
            _ => c.f64,
        };
        bits.map(|b| self.raw(s, b))
    }

    /// The value of a polynomial, lowest coefficient first.
    pub(super) fn polynomial(&self, s: &mut Seq, coefficients: &[f64], x: Value) -> Value {
        let mut higher = None;
        for &c in coefficients.iter().rev() {
            let c = self.number(s, c);
            higher = Some(match higher {
                None => c,
                Some(sum) => fma(s, sum, x, c),
            });
        }
        higher.unwrap_or(x)
    }

    /// `r + r z p(z)` with `z = r²`.
    pub(super) fn odd(&self, s: &mut Seq, coefficients: &[f64], r: Value) -> Value {
        let z = mul(s, r, r);
        self.odd_of_square(s, coefficients, r, z)
    }

    /// The same where the square is known already.
    pub(super) fn odd_of_square(
        &self,
        s: &mut Seq,
        coefficients: &[f64],
        r: Value,
        z: Value,
    ) -> Value {
        let p = self.polynomial(s, coefficients, z);
        let rz = mul(s, r, z);
        fma(s, rz, p, r)
    }

    /// The sign of a number, as bits with the others zero.
    pub(super) fn sign_of(&self, s: &mut Seq, x: Value) -> Value {
        let bits = s.bits(x, self.format.int);
        s.mask(bits, self.format.sign())
    }

    /// A number with its sign flipped where `sign` has the sign's bit.
    pub(super) fn flip(&self, s: &mut Seq, x: Value, sign: Value) -> Value {
        let bits = s.bits(x, self.format.int);
        let bits = s.xor(bits, sign);
        s.bits(bits, self.format.float)
    }

    /// `c - x` for a constant that has more digits than the format.
    pub(super) fn less_than(&self, s: &mut Seq, c: Split, x: Value) -> Value {
        let [high, low] = self.split(s, c);
        let r = sub(s, high, x);
        add(s, r, low)
    }

    /// A number held between two ends; NaN stays.
    pub(super) fn clamp(&self, s: &mut Seq, x: Value, [low, high]: [f64; 2]) -> Value {
        let (low, high) = (self.number(s, low), self.number(s, high));
        let below = s.cmp(Op::FcmpOlt, x, low);
        let x = s.select(below, low, x);
        let above = s.cmp(Op::FcmpOgt, x, high);
        s.select(above, high, x)
    }
}

pub(super) fn add(s: &mut Seq, a: Value, b: Value) -> Value {
    s.same(Op::FAdd, &[a, b])
}

pub(super) fn sub(s: &mut Seq, a: Value, b: Value) -> Value {
    s.same(Op::FSub, &[a, b])
}

pub(super) fn mul(s: &mut Seq, a: Value, b: Value) -> Value {
    s.same(Op::FMul, &[a, b])
}

pub(super) fn neg(s: &mut Seq, a: Value) -> Value {
    s.same(Op::FNeg, &[a])
}

pub(super) fn abs(s: &mut Seq, a: Value) -> Value {
    s.same(Op::FAbs, &[a])
}

/// `a b + c` with one rounding.
pub(super) fn fma(s: &mut Seq, a: Value, b: Value, c: Value) -> Value {
    s.same(Op::FFma, &[a, b, c])
}
