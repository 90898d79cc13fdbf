//! The op table: the single definition of every MPIR operation.
//!
//! A row gives the name in text form, the signature rule, the immediate it carries, its effect on
//! memory, whether it is convergent, where it may stand, and one sentence of meaning. Printer,
//! parser, verifier, folding ([`crate::eval`]), dead-code elimination, the passes and the
//! reference page are driven by it.
//!
//! To add an op: one row here, an arm in [`crate::eval`] when it is a pure scalar function, and one
//! arm in each back end. No `match` over [`Op`] has a wildcard arm, so the compiler lists the
//! places.

/// What types the operands and the result of an op have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signature {
    /// This many operands of one type of the class; the result has that type.
    Same(u8, Class),
    /// Two operands of one type of the class; the result is `bool`, or a vector of `bool`.
    Compare(Class),
    /// One operand of the class; the result type is checked by the op's own rule.
    Convert,
    /// No operands; the result type is checked by the op's own rule.
    Leaf,
    /// The verifier has a rule of its own for the op.
    Own,
}

/// A set of types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Integers and vectors of them.
    Int,
    /// Integers, `bool`, and vectors of them.
    IntOrBool,
    /// Floats and vectors of them.
    Float,
    /// Vectors of floats only.
    FloatVec,
}

/// What the immediate of an instruction holds, and how the text form writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Immediate {
    /// Nothing; it is 0.
    None,
    /// `dim=N`, N below 3.
    Dim,
    /// `lane=N`: a vector component.
    Lane,
    /// `field=N`: a member of a struct.
    Field,
    /// `leaf=N`: a scalar of a flattened value ([`magpie_types::TypeCtx::leaves`]).
    Leaf,
    /// `variant=N`, or `variant=N field=M` (low half, high half; field 0 is not written).
    Variant,
    /// `fn=NAME`, or `fn=NAME bits=N`: a function of the module (low half), with op-specific bits
    /// in the high half.
    Func,
    /// `hash=NAME eq=NAME`: optional functions, stored plus one (low half, high half).
    HashEqFuncs,
    /// `eq=NAME`: an optional function, stored plus one.
    EqFunc,
    /// `ord=NAME`: an optional function, stored plus one.
    OrdFunc,
    /// `rt=SYMBOL`: a runtime function.
    Rt,
    /// `offset=N`: signed bytes; 0 is not written.
    Offset,
    /// `len=N`: how many elements the array certainly has; 0, which is not written, when that is not
    /// known.
    Length,
    /// `size=N align=M` (low half, high half).
    SizeAlign,
    /// `type=T`, `type=T object=1` or `type=T object=2`: whose description (low half), and of what
    /// (high half): of a value as it lies in memory, of the payload of a heap object, of the payload
    /// of a callable that captures the fields of struct T.
    TypeInfo,
}

/// What one part of an immediate is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImmKind {
    /// An unsigned number.
    Number,
    /// A signed 64-bit number, the whole immediate.
    Signed,
    /// A function of the module.
    Func,
    /// A function of the module plus one, or 0 for none.
    OptionalFunc,
    /// A runtime function, by its C symbol.
    Rt,
    /// A type.
    Type,
}

/// One `key=value` of an instruction in the text form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImmPart {
    /// The word before `=`.
    pub key: &'static str,
    /// What stands behind `=`.
    pub kind: ImmKind,
    /// Whether it is the high half of the immediate.
    pub high: bool,
    /// Whether it is not written when it is 0.
    pub optional: bool,
}

impl Immediate {
    /// The parts of the immediate in the order of the text form.
    pub fn parts(self) -> &'static [ImmPart] {
        const fn part(key: &'static str, kind: ImmKind) -> ImmPart {
            ImmPart { key, kind, high: false, optional: false }
        }
        const fn optional(key: &'static str, kind: ImmKind, high: bool) -> ImmPart {
            ImmPart { key, kind, high, optional: true }
        }
        use ImmKind::*;
        match self {
            Immediate::None => &[],
            Immediate::Dim => const { &[part("dim", Number)] },
            Immediate::Lane => const { &[part("lane", Number)] },
            Immediate::Field => const { &[part("field", Number)] },
            Immediate::Leaf => const { &[part("leaf", Number)] },
            Immediate::Variant => {
                const { &[part("variant", Number), optional("field", Number, true)] }
            }
            Immediate::Func => const { &[part("fn", Func), optional("bits", Number, true)] },
            Immediate::HashEqFuncs => {
                const { &[optional("hash", OptionalFunc, false), optional("eq", OptionalFunc, true)] }
            }
            Immediate::EqFunc => const { &[optional("eq", OptionalFunc, false)] },
            Immediate::OrdFunc => const { &[optional("ord", OptionalFunc, false)] },
            Immediate::Rt => const { &[part("rt", Rt)] },
            Immediate::Offset => const { &[optional("offset", Signed, false)] },
            Immediate::Length => const { &[optional("len", Number, false)] },
            Immediate::SizeAlign => {
                const {
                    &[
                        part("size", Number),
                        ImmPart { key: "align", kind: Number, high: true, optional: false },
                    ]
                }
            }
            Immediate::TypeInfo => {
                const { &[part("type", Type), optional("object", Number, true)] }
            }
        }
    }
}

/// What an op does to memory. The address space follows from the type of operand 0
/// ([`crate::MpirFn::space`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Nothing.
    None,
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes atomically, relaxed.
    Atomic,
    /// Orders all accesses of the workgroup before it against those after it.
    Fence,
    /// Anything: calls, host runtime operations.
    Any,
}

/// Where an op may stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Host and device code.
    Both,
    /// Kernels and device functions only.
    Device,
    /// Host code only, before host lowering.
    Host,
    /// Host code only, after host lowering.
    LowHost,
    /// Host code only, before and after host lowering.
    AnyHost,
}

/// Which operands an op takes over from the function that executes it (host ownership).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consumes {
    /// None: operands are borrowed or copied.
    None,
    /// All.
    All,
    /// All but operand 0 (the receiver).
    Rest,
    /// Operand 0 only.
    First,
    /// Operand 1 only.
    Second,
    /// As the callee, the callable's signature or the runtime function declares:
    /// [`crate::ownership::consumes`].
    Callee,
}

/// The columns of a row.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Name in the text form.
    pub name: &'static str,
    /// Types of operands and result.
    pub signature: Signature,
    /// What the immediate means.
    pub immediate: Immediate,
    /// Effect on memory.
    pub memory: Memory,
    /// May not gain or lose control dependence.
    pub convergent: bool,
    /// May end the program instead of giving a result.
    pub may_trap: bool,
    /// Where it may stand.
    pub place: Place,
    /// Which operands it takes over.
    pub consumes: Consumes,
    /// One sentence of meaning.
    pub doc: &'static str,
}

macro_rules! flag {
    ($list:ident, $name:ident) => {
        has(stringify!($list), stringify!($name))
    };
}

const fn has(word: &str, name: &str) -> bool {
    let (a, b) = (word.as_bytes(), name.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

macro_rules! ops {
    ($($op:ident $name:literal $sig:expr, $imm:ident, $mem:ident, $mark:ident, $place:ident, $consumes:ident, $doc:literal;)*) => {
        /// An operation. Terminators are not ops: see [`crate::Terminator`].
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Op { $(#[doc = $doc] $op,)* }

        impl Op {
            /// Every op, in table order.
            pub const ALL: &'static [Op] = &[$(Op::$op,)*];
        }

        static TABLE: &[OpInfo] = &[$(OpInfo {
            name: $name,
            signature: {
                #[allow(unused_imports)]
                use {Class::*, Signature::*};
                $sig
            },
            immediate: Immediate::$imm,
            memory: Memory::$mem,
            convergent: flag!($mark, convergent),
            may_trap: flag!($mark, traps),
            place: Place::$place,
            consumes: Consumes::$consumes,
            doc: $doc,
        },)*];
    };
}

ops! {
    // Integers. Wrapping and total on every target: see the numeric table.
    IAdd "i.add" Same(2, Int), None, None, pure, Both, None, "Sum modulo 2^N.";
    ISub "i.sub" Same(2, Int), None, None, pure, Both, None, "Difference modulo 2^N.";
    IMul "i.mul" Same(2, Int), None, None, pure, Both, None, "Product modulo 2^N.";
    ISdiv "i.sdiv" Same(2, Int), None, None, pure, Both, None, "Signed quotient toward zero; x / 0 = x, MIN / -1 = MIN.";
    IUdiv "i.udiv" Same(2, Int), None, None, pure, Both, None, "Unsigned quotient; x / 0 = x.";
    ISrem "i.srem" Same(2, Int), None, None, pure, Both, None, "Signed remainder with the sign of the dividend; x % 0 = 0, MIN % -1 = 0.";
    IUrem "i.urem" Same(2, Int), None, None, pure, Both, None, "Unsigned remainder; x % 0 = 0.";
    IMulHiS "i.mulhi.s" Same(2, Int), None, None, pure, Both, None, "Upper half of the signed double-width product.";
    IMulHiU "i.mulhi.u" Same(2, Int), None, None, pure, Both, None, "Upper half of the unsigned double-width product.";
    IAnd "i.and" Same(2, IntOrBool), None, None, pure, Both, None, "Bitwise and.";
    IOr "i.or" Same(2, IntOrBool), None, None, pure, Both, None, "Bitwise or.";
    IXor "i.xor" Same(2, IntOrBool), None, None, pure, Both, None, "Bitwise exclusive or.";
    IShl "i.shl" Same(2, Int), None, None, pure, Both, None, "Shift left; the amount, unsigned, is taken modulo N.";
    ILshr "i.lshr" Same(2, Int), None, None, pure, Both, None, "Shift right filling with zeros; amount modulo N.";
    IAshr "i.ashr" Same(2, Int), None, None, pure, Both, None, "Shift right filling with the top bit; amount modulo N.";
    IRotl "i.rotl" Same(2, Int), None, None, pure, Both, None, "Rotate left; amount modulo N.";
    IRotr "i.rotr" Same(2, Int), None, None, pure, Both, None, "Rotate right; amount modulo N.";
    ISmin "i.smin" Same(2, Int), None, None, pure, Both, None, "Smaller, signed.";
    ISmax "i.smax" Same(2, Int), None, None, pure, Both, None, "Larger, signed.";
    IUmin "i.umin" Same(2, Int), None, None, pure, Both, None, "Smaller, unsigned.";
    IUmax "i.umax" Same(2, Int), None, None, pure, Both, None, "Larger, unsigned.";
    IPopcount "i.popcount" Same(1, Int), None, None, pure, Both, None, "Number of one bits.";
    IClz "i.clz" Same(1, Int), None, None, pure, Both, None, "Number of leading zero bits; N for 0.";
    ICtz "i.ctz" Same(1, Int), None, None, pure, Both, None, "Number of trailing zero bits; N for 0.";
    IAddOverflows "i.add.overflows" Compare(Int), None, None, pure, Both, None, "Whether the exact sum lies outside the type.";
    ISubOverflows "i.sub.overflows" Compare(Int), None, None, pure, Both, None, "Whether the exact difference lies outside the type.";
    IMulOverflows "i.mul.overflows" Compare(Int), None, None, pure, Both, None, "Whether the exact product lies outside the type.";

    // Host arithmetic that panics instead of wrapping. Signedness is the type's.
    IAddTrap "i.add.trap" Same(2, Int), None, None, traps, AnyHost, None, "Exact sum; panics outside the type.";
    ISubTrap "i.sub.trap" Same(2, Int), None, None, traps, AnyHost, None, "Exact difference; panics outside the type.";
    IMulTrap "i.mul.trap" Same(2, Int), None, None, traps, AnyHost, None, "Exact product; panics outside the type.";
    ISdivTrap "i.sdiv.trap" Same(2, Int), None, None, traps, AnyHost, None, "Signed quotient; panics on a zero divisor and on MIN / -1.";
    IUdivTrap "i.udiv.trap" Same(2, Int), None, None, traps, AnyHost, None, "Unsigned quotient; panics on a zero divisor.";
    ISremTrap "i.srem.trap" Same(2, Int), None, None, traps, AnyHost, None, "Signed remainder; panics on a zero divisor; MIN % -1 = 0.";
    IUremTrap "i.urem.trap" Same(2, Int), None, None, traps, AnyHost, None, "Unsigned remainder; panics on a zero divisor.";

    // Floats. Without flags every op is IEEE 754 with one rounding to nearest even.
    FAdd "f.add" Same(2, Float), None, None, pure, Both, None, "Sum.";
    FSub "f.sub" Same(2, Float), None, None, pure, Both, None, "Difference.";
    FMul "f.mul" Same(2, Float), None, None, pure, Both, None, "Product.";
    FDiv "f.div" Same(2, Float), None, None, pure, Both, None, "Quotient.";
    FRem "f.rem" Same(2, Float), None, None, pure, Both, None, "Exact remainder with the sign of the dividend.";
    FNeg "f.neg" Same(1, Float), None, None, pure, Both, None, "Sign flipped.";
    FAbs "f.abs" Same(1, Float), None, None, pure, Both, None, "Sign cleared.";
    FMin "f.min" Same(2, Float), None, None, pure, Both, None, "Smaller; the other operand when one is NaN; -0 below +0.";
    FMax "f.max" Same(2, Float), None, None, pure, Both, None, "Larger; the other operand when one is NaN; -0 below +0.";
    FFma "f.fma" Same(3, Float), None, None, pure, Both, None, "a * b + c with one rounding.";
    FSqrt "f.sqrt" Same(1, Float), None, None, pure, Both, None, "Square root.";
    FFloor "f.floor" Same(1, Float), None, None, pure, Both, None, "Largest integer not above.";
    FCeil "f.ceil" Same(1, Float), None, None, pure, Both, None, "Smallest integer not below.";
    FTrunc "f.trunc" Same(1, Float), None, None, pure, Both, None, "Integer part.";
    FRound "f.round" Same(1, Float), None, None, pure, Both, None, "Nearest integer, ties to even.";
    FExp "f.exp" Same(1, Float), None, None, pure, Both, None, "e^x, within the target's accuracy.";
    FExp2 "f.exp2" Same(1, Float), None, None, pure, Both, None, "2^x, within the target's accuracy.";
    FLog "f.log" Same(1, Float), None, None, pure, Both, None, "Natural logarithm, within the target's accuracy.";
    FLog2 "f.log2" Same(1, Float), None, None, pure, Both, None, "Base-2 logarithm, within the target's accuracy.";
    FSin "f.sin" Same(1, Float), None, None, pure, Both, None, "Sine, within the target's accuracy.";
    FCos "f.cos" Same(1, Float), None, None, pure, Both, None, "Cosine, within the target's accuracy.";
    FTan "f.tan" Same(1, Float), None, None, pure, Both, None, "Tangent, within the target's accuracy.";
    FAsin "f.asin" Same(1, Float), None, None, pure, Both, None, "Arc sine, within the target's accuracy.";
    FAcos "f.acos" Same(1, Float), None, None, pure, Both, None, "Arc cosine, within the target's accuracy.";
    FAtan "f.atan" Same(1, Float), None, None, pure, Both, None, "Arc tangent, within the target's accuracy.";
    FSinh "f.sinh" Same(1, Float), None, None, pure, Both, None, "Hyperbolic sine, within the target's accuracy.";
    FCosh "f.cosh" Same(1, Float), None, None, pure, Both, None, "Hyperbolic cosine, within the target's accuracy.";
    FTanh "f.tanh" Same(1, Float), None, None, pure, Both, None, "Hyperbolic tangent, within the target's accuracy.";
    FAtan2 "f.atan2" Same(2, Float), None, None, pure, Both, None, "Angle of the point (x = operand 1, y = operand 0), within the target's accuracy.";
    FPow "f.pow" Same(2, Float), None, None, pure, Both, None, "x^y, within the target's accuracy.";

    // Comparisons.
    IcmpEq "icmp.eq" Compare(IntOrBool), None, None, pure, Both, None, "Equal.";
    IcmpNe "icmp.ne" Compare(IntOrBool), None, None, pure, Both, None, "Different.";
    IcmpSlt "icmp.slt" Compare(IntOrBool), None, None, pure, Both, None, "Less, signed.";
    IcmpSgt "icmp.sgt" Compare(IntOrBool), None, None, pure, Both, None, "Greater, signed.";
    IcmpSle "icmp.sle" Compare(IntOrBool), None, None, pure, Both, None, "Less or equal, signed.";
    IcmpSge "icmp.sge" Compare(IntOrBool), None, None, pure, Both, None, "Greater or equal, signed.";
    IcmpUlt "icmp.ult" Compare(IntOrBool), None, None, pure, Both, None, "Less, unsigned.";
    IcmpUgt "icmp.ugt" Compare(IntOrBool), None, None, pure, Both, None, "Greater, unsigned.";
    IcmpUle "icmp.ule" Compare(IntOrBool), None, None, pure, Both, None, "Less or equal, unsigned.";
    IcmpUge "icmp.uge" Compare(IntOrBool), None, None, pure, Both, None, "Greater or equal, unsigned.";
    FcmpOeq "fcmp.oeq" Compare(Float), None, None, pure, Both, None, "Neither is NaN and equal.";
    FcmpOne "fcmp.one" Compare(Float), None, None, pure, Both, None, "Neither is NaN and different.";
    FcmpOlt "fcmp.olt" Compare(Float), None, None, pure, Both, None, "Neither is NaN and less.";
    FcmpOgt "fcmp.ogt" Compare(Float), None, None, pure, Both, None, "Neither is NaN and greater.";
    FcmpOle "fcmp.ole" Compare(Float), None, None, pure, Both, None, "Neither is NaN and less or equal.";
    FcmpOge "fcmp.oge" Compare(Float), None, None, pure, Both, None, "Neither is NaN and greater or equal.";
    FcmpOrd "fcmp.ord" Compare(Float), None, None, pure, Both, None, "Neither is NaN.";
    FcmpUeq "fcmp.ueq" Compare(Float), None, None, pure, Both, None, "Either is NaN or equal.";
    FcmpUne "fcmp.une" Compare(Float), None, None, pure, Both, None, "Either is NaN or different.";
    FcmpUlt "fcmp.ult" Compare(Float), None, None, pure, Both, None, "Either is NaN or less.";
    FcmpUgt "fcmp.ugt" Compare(Float), None, None, pure, Both, None, "Either is NaN or greater.";
    FcmpUle "fcmp.ule" Compare(Float), None, None, pure, Both, None, "Either is NaN or less or equal.";
    FcmpUge "fcmp.uge" Compare(Float), None, None, pure, Both, None, "Either is NaN or greater or equal.";
    FcmpUno "fcmp.uno" Compare(Float), None, None, pure, Both, None, "Either is NaN.";

    // Conversion and choice.
    Cast "cast" Convert, None, None, pure, Both, None, "Converts between scalars (or vectors of them) as section 8.5 of the language reference says.";
    BitsCast "bits.cast" Convert, None, None, pure, Both, None, "The same bits as another type of the same width; also between raw pointers and 64-bit integers.";
    Select "select" Own, None, None, pure, Both, None, "Operand 1 when operand 0 is true, else operand 2; component-wise for a vector of bool.";
    Phi "phi" Own, None, None, pure, Both, All, "The value for the edge taken; see MpirFn::phi_arms.";

    // Vectors.
    VecNew "vec.new" Own, None, None, pure, Both, None, "A vector of the operands.";
    VecSplat "vec.splat" Own, None, None, pure, Both, None, "A vector with one value in all components.";
    VecExtract "vec.extract" Own, Lane, None, pure, Both, None, "One component.";
    VecInsert "vec.insert" Own, Lane, None, pure, Both, None, "Operand 0 with one component replaced by operand 1.";
    VecDot "vec.dot" Own, None, None, pure, Both, None, "Sum of products of the components, added from the first to the last.";
    VecCross "vec.cross" Same(2, FloatVec), None, None, pure, Both, None, "Cross product of 3-vectors.";
    VecLength "vec.length" Own, None, None, pure, Both, None, "Square root of the dot product with itself.";
    VecNormalize "vec.normalize" Same(1, FloatVec), None, None, pure, Both, None, "Each component divided by the length.";
    VecReflect "vec.reflect" Same(2, FloatVec), None, None, pure, Both, None, "i - 2 * dot(n, i) * n for incident i and normal n.";
    VecMix "vec.mix" Same(3, FloatVec), None, None, pure, Both, None, "x * (1 - t) + y * t, component-wise.";
    VecAny "vec.any" Own, None, None, pure, Both, None, "Whether a component is true.";
    VecAll "vec.all" Own, None, None, pure, Both, None, "Whether all components are true.";

    // Value structs.
    StructNew "struct.new" Own, None, None, pure, Both, All, "A value struct (or another aggregate) of its members in order.";
    StructGet "struct.get" Own, Field, None, pure, Both, None, "A member of an aggregate.";
    LeafGet "leaf.get" Own, Leaf, None, pure, Both, None, "A scalar of an aggregate parameter, by position in its flattened form.";

    // Device: ids.
    GpuThreadId "gpu.thread_id" Leaf, Dim, None, pure, Device, None, "Position of the invocation in its workgroup.";
    GpuWorkgroupId "gpu.workgroup_id" Leaf, Dim, None, pure, Device, None, "Position of the workgroup in the grid.";
    GpuWorkgroupSize "gpu.workgroup_size" Leaf, Dim, None, pure, Device, None, "Invocations of a workgroup in a dimension.";
    GpuGlobalId "gpu.global_id" Leaf, Dim, None, pure, Device, None, "workgroup_id * workgroup_size + thread_id, modulo 2^32.";
    GpuNumWorkgroups "gpu.num_workgroups" Leaf, Dim, None, pure, Device, None, "Workgroups of the grid in a dimension.";

    // Device: memory. An access outside is harmless unless the instruction is marked unchecked.
    GpuBufferLoad "gpu.buffer_load" Own, None, Read, pure, Device, None, "Element operand 1 of a buffer or array; zero outside.";
    GpuBufferStore "gpu.buffer_store" Own, None, Write, pure, Device, None, "Stores operand 2 to element operand 1; dropped outside.";
    GpuLeafLoad "gpu.leaf_load" Own, Leaf, Read, pure, Device, None, "One scalar of a struct element; zero outside.";
    GpuLeafStore "gpu.leaf_store" Own, Leaf, Write, pure, Device, None, "Stores one scalar of a struct element; dropped outside.";
    GpuBufferLen "gpu.buffer_len" Own, None, None, pure, Device, None, "Number of elements of a buffer or array, as u32 (saturated) or u64.";
    GpuShared "gpu.shared" Leaf, None, None, pure, Device, None, "An array of the workgroup, one for each instruction; contents undefined at the start.";
    GpuLocal "gpu.local" Leaf, None, Write, pure, Device, None, "An array of the invocation, zeroed where it stands.";
    GpuBarrier "gpu.barrier" Leaf, None, Fence, convergent, Device, None, "Waits for the workgroup and orders its accesses to shared and buffer memory.";
    GpuAtomicAdd "gpu.atomic.add" Own, None, Atomic, pure, Device, None, "Adds operand 2 to element operand 1; gives the old value; zero outside.";
    GpuAtomicSub "gpu.atomic.sub" Own, None, Atomic, pure, Device, None, "Subtracts; gives the old value.";
    GpuAtomicMin "gpu.atomic.min" Own, None, Atomic, pure, Device, None, "Keeps the smaller; signedness is the type's.";
    GpuAtomicMax "gpu.atomic.max" Own, None, Atomic, pure, Device, None, "Keeps the larger; signedness is the type's.";
    GpuAtomicAnd "gpu.atomic.and" Own, None, Atomic, pure, Device, None, "Bitwise and.";
    GpuAtomicOr "gpu.atomic.or" Own, None, Atomic, pure, Device, None, "Bitwise or.";
    GpuAtomicXor "gpu.atomic.xor" Own, None, Atomic, pure, Device, None, "Bitwise exclusive or.";
    GpuAtomicExchange "gpu.atomic.exchange" Own, None, Atomic, pure, Device, None, "Stores operand 2; gives the old value.";
    GpuAtomicCas "gpu.atomic.cas" Own, None, Atomic, pure, Device, None, "Stores operand 3 when the element equals operand 2; gives the old value.";

    // Device: subgroups. Only active invocations take part.
    GpuSubgroupSize "gpu.subgroup.size" Leaf, None, None, pure, Device, None, "Invocations of a subgroup.";
    GpuSubgroupLaneId "gpu.subgroup.lane_id" Leaf, None, None, pure, Device, None, "Position of the invocation in its subgroup.";
    GpuSubgroupShuffle "gpu.subgroup.shuffle" Own, None, None, convergent, Device, None, "Operand 0 of the invocation with lane id operand 1.";
    GpuSubgroupShuffleDown "gpu.subgroup.shuffle_down" Own, None, None, convergent, Device, None, "Operand 0 of the lane id plus operand 1.";
    GpuSubgroupShuffleUp "gpu.subgroup.shuffle_up" Own, None, None, convergent, Device, None, "Operand 0 of the lane id minus operand 1.";
    GpuSubgroupShuffleXor "gpu.subgroup.shuffle_xor" Own, None, None, convergent, Device, None, "Operand 0 of the lane id xor operand 1.";
    GpuSubgroupBroadcast "gpu.subgroup.broadcast" Own, None, None, convergent, Device, None, "Operand 0 of lane operand 1, which is the same for the subgroup.";
    GpuSubgroupSum "gpu.subgroup.sum" Own, None, None, convergent, Device, None, "Sum over the active invocations.";
    GpuSubgroupMin "gpu.subgroup.min" Own, None, None, convergent, Device, None, "Smallest over the active invocations.";
    GpuSubgroupMax "gpu.subgroup.max" Own, None, None, convergent, Device, None, "Largest over the active invocations.";
    GpuSubgroupPrefixSum "gpu.subgroup.prefix_sum" Own, None, None, convergent, Device, None, "Sum over the active invocations with a smaller lane id.";
    GpuSubgroupAny "gpu.subgroup.any" Own, None, None, convergent, Device, None, "Whether operand 0 is true for an active invocation.";
    GpuSubgroupAll "gpu.subgroup.all" Own, None, None, convergent, Device, None, "Whether operand 0 is true for all active invocations.";
    GpuSubgroupBallot "gpu.subgroup.ballot" Own, None, None, convergent, Device, None, "Bit i of the u64 is operand 0 of the active lane i.";
    GpuMetalSimdShuffle "gpu.metal.simd_shuffle" Own, None, None, convergent, Device, None, "Metal simd_shuffle: operand 0 of lane operand 1.";
    GpuMetalSimdSum "gpu.metal.simd_sum" Own, None, None, convergent, Device, None, "Metal simd_sum.";
    GpuMetalSimdPrefixSum "gpu.metal.simd_prefix_sum" Own, None, None, convergent, Device, None, "Metal simd_prefix_exclusive_sum.";
    GpuPrint "gpu.print" Own, None, Any, pure, Device, None, "Prints the operands, separated by spaces, as one line.";

    // Calls.
    Call "call" Own, Func, Any, traps, Both, Callee, "Calls a function of the module.";
    RtCall "rt.call" Own, Rt, Any, traps, Host, Callee, "Calls a runtime function with language values. Its parameters `info`, `elem_type_id` and `elem_size` are no operands: they follow from the result type.";
    CallIndirect "call.indirect" Own, None, Any, traps, Host, Callee, "Calls callable operand 0 with the other operands.";
    CallableCapture "callable.capture" Own, Func, Any, pure, Host, All, "A callable with bound parameters: bit i of the high half is set when parameter i is bound.";
    Panic "panic" Own, None, Any, traps, Host, None, "Ends the program with a message.";

    // Host: ownership.
    BorrowShared "borrow.shared" Own, None, None, pure, Host, None, "A read-only view of operand 0.";
    BorrowMut "borrow.mut" Own, None, None, pure, Host, None, "An exclusive view of operand 0.";
    Share "arc.share" Own, None, None, pure, Host, All, "A counted handle from an owned value.";
    CloneShared "arc.clone_shared" Own, None, Any, pure, Host, None, "Another counted handle.";
    WeakDowngrade "arc.weak_downgrade" Own, None, Any, pure, Host, None, "A weak handle to the object of a shared one.";
    WeakUpgrade "arc.weak_upgrade" Own, None, Any, pure, Host, None, "TOption of a shared handle: None when the object is gone.";
    CloneWeak "arc.clone_weak" Own, None, Any, pure, Host, None, "Another weak handle.";
    Retain "arc.retain" Own, None, Any, pure, Host, None, "One more count for every handle in the value.";
    Release "arc.release" Own, None, Any, pure, Host, All, "One count less for every handle in the value.";

    // Host: heap structs, enums.
    New "new" Own, None, Any, pure, Host, All, "A heap struct with its fields in order.";
    GetField "getfield" Own, Field, Read, pure, Host, None, "A copyable field, or a view of a heap field.";
    SetField "setfield" Own, Field, Any, pure, Host, Rest, "Replaces a field of operand 0; the old content is released.";
    FieldPlace "field.place" Own, Field, Any, pure, Host, None, "An exclusive view of a field; a counted one becomes the only handle of its object.";
    EnumNew "enum.new" Own, Variant, Any, pure, Host, All, "A variant with its fields in order.";
    EnumTag "enum.tag" Own, None, Read, pure, Host, None, "The variant's number as i32.";
    EnumIs "enum.is" Own, Variant, Read, pure, Host, None, "Whether the variant is active.";
    EnumPayload "enum.payload" Own, Variant, Any, traps, Host, First, "A field of the active variant; panics for another variant.";

    // Host: arrays, maps.
    ArrNew "arr.new" Own, None, Any, traps, Host, None, "An empty array with room for operand 0 elements.";
    ArrFrom "arr.from" Own, None, Any, pure, Host, All, "An array of the operands.";
    ArrLen "arr.len" Own, None, Read, pure, Host, None, "Number of elements.";
    ArrGet "arr.get" Own, Length, Read, traps, Host, None, "A copyable element, or a view of it; panics outside.";
    ArrSet "arr.set" Own, Length, Any, traps, Host, Rest, "Replaces an element; panics outside.";
    ArrPlace "arr.place" Own, Length, Any, traps, Host, None, "An exclusive view of an element; a counted one becomes the only handle of its object; panics outside.";
    ArrPush "arr.push" Own, None, Any, traps, Host, Rest, "Appends.";
    ArrPop "arr.pop" Own, None, Any, pure, Host, None, "Removes the last element, if any.";
    ArrSlice "arr.slice" Own, None, Any, traps, Host, None, "A new array of elements start .. end.";
    ArrContains "arr.contains" Own, EqFunc, Any, pure, Host, None, "Whether an equal element exists.";
    ArrSort "arr.sort" Own, OrdFunc, Any, pure, Host, None, "Stable ascending sort.";
    ArrMap "arr.map" Own, None, Any, traps, Host, None, "A new array of the results of callable operand 1.";
    ArrFilter "arr.filter" Own, None, Any, traps, Host, None, "A new array of the elements for which callable operand 1 is true.";
    ArrReduce "arr.reduce" Own, None, Any, traps, Host, Second, "Folds from operand 1 with callable operand 2, which is called with the value so far and an element.";
    ArrForeach "arr.foreach" Own, None, Any, traps, Host, None, "Calls callable operand 1 for each element.";
    MapNew "map.new" Own, HashEqFuncs, Any, pure, Host, None, "An empty map.";
    MapSet "map.set" Own, None, Any, pure, Host, Rest, "Adds or replaces.";
    MapGet "map.get" Own, None, Any, pure, Host, None, "TOption of a copy of the value.";
    MapGetRef "map.get_ref" Own, None, Read, traps, Host, None, "The value, or a view of it; panics when the key is missing.";
    MapPlace "map.place" Own, None, Any, traps, Host, None, "An exclusive view of the value; a counted one becomes the only handle of its object; panics when the key is missing.";
    MapLen "map.len" Own, None, Read, pure, Host, None, "Number of entries.";
    MapContainsKey "map.contains_key" Own, None, Read, pure, Host, None, "Whether the key exists.";
    MapDelete "map.delete" Own, None, Any, pure, Host, None, "Removes an entry; TOption of its value.";
    MapDeleteVoid "map.delete_void" Own, None, Any, pure, Host, None, "Removes an entry and releases its value.";
    MapKeys "map.keys" Own, None, Any, pure, Host, None, "A new array of the keys in insertion order.";
    MapValues "map.values" Own, None, Any, pure, Host, None, "A new array of the values in insertion order.";

    // Host: launches. Operands: [session,] device, grid x y z, block x y z, kernel arguments.
    GpuLaunch "gpu.launch" Own, Func, Any, pure, Host, None, "Launches a kernel and waits; bit 0 of the high half allows the CPU device.";
    GpuLaunchAsync "gpu.launch_async" Own, Func, Any, pure, Host, None, "Launches a kernel and gives a fence.";
    GpuLaunchProfiled "gpu.launch_profiled" Own, Func, Any, pure, Host, None, "Launches a kernel inside the profiling session that is operand 0.";

    // Raw memory: unsafe host code, and host code after lowering.
    MemLoad "mem.load" Own, Offset, Read, pure, AnyHost, None, "A value at an address.";
    MemStore "mem.store" Own, Offset, Write, pure, AnyHost, None, "Stores operand 1 at an address.";
    PtrAdd "ptr.add" Own, None, None, pure, AnyHost, None, "An address plus bytes (i64).";

    // Host code after lowering: storage, addresses, calls by address.
    StackSlot "stack.slot" Leaf, SizeAlign, None, pure, LowHost, None, "The address of memory that lives as long as the call; one for each instruction.";
    FnAddr "fn.addr" Leaf, Func, None, pure, LowHost, None, "The address of a function.";
    TypeInfoAddr "typeinfo.addr" Leaf, TypeInfo, None, pure, LowHost, None, "The address of a run-time type description.";
    RtRaw "rt.raw" Own, Rt, Any, traps, LowHost, None, "Calls a runtime function with its C parameters.";
    CallAddr "call.addr" Own, None, Any, traps, LowHost, None, "Calls the code at operand 0 with the other operands.";
}

impl Op {
    /// The row.
    pub fn info(self) -> &'static OpInfo {
        &TABLE[self as usize]
    }

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Finds an op by its name.
    pub fn from_name(name: &str) -> Option<Op> {
        use rustc_hash::FxHashMap;
        use std::sync::OnceLock;
        static BY_NAME: OnceLock<FxHashMap<&'static str, Op>> = OnceLock::new();
        BY_NAME
            .get_or_init(|| Op::ALL.iter().map(|&op| (op.name(), op)).collect())
            .get(name)
            .copied()
    }

    /// Whether an instruction of this op may be removed when its result is not used.
    pub fn is_removable(self) -> bool {
        let i = self.info();
        matches!(i.memory, Memory::None | Memory::Read) && !i.may_trap && !i.convergent
    }

    /// Whether the result depends on the operands and the immediate alone, so that equal
    /// instructions have equal results (and the op may be moved freely).
    pub fn is_pure(self) -> bool {
        let i = self.info();
        i.memory == Memory::None
            && !i.may_trap
            && !i.convergent
            // Each of these names an object of its own.
            && !matches!(self, Op::GpuShared | Op::GpuLocal | Op::StackSlot | Op::Phi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for &op in Op::ALL {
            assert_eq!(Op::from_name(op.name()), Some(op));
        }
    }
}
