//! The operations of the language as the parser sees them: one row an operation.
//!
//! A row says how an operation is written and nothing about what it means: its name, what stands
//! between `<` and `>`, and which arguments it takes. The parser, the messages about wrong
//! arguments and the formatter are driven by it.

use crate::interner::Symbol;
use crate::symbols::*;

/// What stands between `<` and `>` after the name of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeArgs {
    /// Nothing.
    None,
    /// `<T>`
    One,
    /// `<T>` or nothing.
    OptionalOne,
    /// `<A, B>`
    Two,
    /// `<N, T>`: a length, given by a number or by the name of a global constant, and a type.
    LengthAndType,
    /// `<Variant>`
    Variant,
    /// `<Variant>`, or `<Type, N>` with the number of the variant.
    VariantOrIndex,
}

/// What an argument may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgShape {
    /// A value: `%x`, `const.T literal` or a string.
    Value,
    /// A plain word, such as a field name.
    Word,
    /// One of these words.
    Choice(&'static [Symbol]),
    /// A function: `@f` or `path.@f`.
    Function,
    /// Three values in brackets.
    Triple,
    /// Any number of values in brackets.
    List,
}

/// A named argument of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: Symbol,
    /// Another name for it; an instruction uses either the names or the aliases.
    pub alias: Option<Symbol>,
    /// What it may be.
    pub shape: ArgShape,
    /// Whether it must be given. Optional keys stand after all others in their row.
    pub required: bool,
}

/// Which arguments an operation takes.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// Exactly these. The parser puts them in this order.
    Fixed(&'static [Key]),
    /// The fields of the variant that is made: any names, values only, in the written order.
    Fields,
    /// `cap=N`, or the elements `v0=A, v1=B, …`, which the parser puts in the order of their
    /// numbers.
    CapacityOrElements,
    /// Anything: operations that the language names without saying how they are written.
    Unspecified,
}

/// How an operation is written.
#[derive(Clone, Copy, Debug)]
pub struct OpRow {
    /// The dotted name.
    pub name: &'static str,
    /// What stands between `<` and `>`.
    pub type_args: TypeArgs,
    /// The arguments.
    pub keys: Keys,
    /// Whether the canonical form has an argument block although there are no arguments.
    pub empty_block: bool,
}

const fn value(name: Symbol) -> Key {
    Key { name, alias: None, shape: ArgShape::Value, required: true }
}

const fn aliased(name: Symbol, alias: Symbol) -> Key {
    Key { alias: Some(alias), ..value(name) }
}

const fn shaped(name: Symbol, shape: ArgShape) -> Key {
    Key { shape, ..value(name) }
}

const fn optional(name: Symbol, shape: ArgShape) -> Key {
    Key { required: false, ..shaped(name, shape) }
}

const LAUNCH: &[Key] = &[
    value(DEVICE),
    shaped(KERNEL, ArgShape::Function),
    shaped(GRID, ArgShape::Triple),
    shaped(BLOCK, ArgShape::Triple),
    shaped(ARGS, ArgShape::List),
    optional(FALLBACK, ArgShape::Choice(&[CPU, NO_FALLBACK])),
];

macro_rules! keys {
    ({ }) => { Keys::Fixed(&[]) };
    ({ lhs rhs }) => { Keys::Fixed(&[aliased(LHS, A), aliased(RHS, B)]) };
    ({ $($key:expr),+ }) => { Keys::Fixed(&[$($key),+]) };
    (fields) => { Keys::Fields };
    (elements) => { Keys::CapacityOrElements };
    (launch) => { Keys::Fixed(LAUNCH) };
    (unspecified) => { Keys::Unspecified };
}

macro_rules! empty_block {
    () => {
        true
    };
    (no_block) => {
        false
    };
}

macro_rules! operations {
    ($($name:literal $op:ident <$types:ident> $keys:tt $($block:ident)?;)*) => {
        /// An operation that is written in the regular form `name<types> { key=value, … }`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u16)]
        pub enum AstOp {
            $(#[doc = concat!("`", $name, "`")] $op,)*
        }

        impl AstOp {
            /// Every operation, in table order.
            pub const ALL: &'static [AstOp] = &[$(AstOp::$op),*];
        }

        static ROWS: &[OpRow] = &[$(OpRow {
            name: $name,
            type_args: TypeArgs::$types,
            keys: keys!($keys),
            empty_block: empty_block!($($block)?),
        }),*];
    };
}

operations! {
    // Integers.
    "i.add" IAdd <None> { lhs rhs };
    "i.sub" ISub <None> { lhs rhs };
    "i.mul" IMul <None> { lhs rhs };
    "i.add.wrap" IAddWrap <None> { lhs rhs };
    "i.sub.wrap" ISubWrap <None> { lhs rhs };
    "i.mul.wrap" IMulWrap <None> { lhs rhs };
    "i.add.checked" IAddChecked <None> { lhs rhs };
    "i.sub.checked" ISubChecked <None> { lhs rhs };
    "i.mul.checked" IMulChecked <None> { lhs rhs };
    "i.sdiv" ISdiv <None> { lhs rhs };
    "i.udiv" IUdiv <None> { lhs rhs };
    "i.srem" ISrem <None> { lhs rhs };
    "i.urem" IUrem <None> { lhs rhs };
    "i.and" IAnd <None> { lhs rhs };
    "i.or" IOr <None> { lhs rhs };
    "i.xor" IXor <None> { lhs rhs };
    "i.shl" IShl <None> { lhs rhs };
    "i.lshr" ILshr <None> { lhs rhs };
    "i.ashr" IAshr <None> { lhs rhs };
    "i.rotl" IRotl <None> { lhs rhs };
    "i.rotr" IRotr <None> { lhs rhs };
    "i.popcount" IPopcount <None> { value(V) };
    "i.clz" IClz <None> { value(V) };
    "i.ctz" ICtz <None> { value(V) };

    // Floats.
    "f.add" FAdd <None> { lhs rhs };
    "f.sub" FSub <None> { lhs rhs };
    "f.mul" FMul <None> { lhs rhs };
    "f.div" FDiv <None> { lhs rhs };
    "f.rem" FRem <None> { lhs rhs };
    "f.add.fast" FAddFast <None> { lhs rhs };
    "f.sub.fast" FSubFast <None> { lhs rhs };
    "f.mul.fast" FMulFast <None> { lhs rhs };
    "f.div.fast" FDivFast <None> { lhs rhs };
    "f.fma" FFma <None> { value(A), value(B), value(C) };
    "f.neg" FNeg <None> { value(V) };
    "f.abs" FAbs <None> { value(V) };
    "f.sqrt" FSqrt <None> { value(V) };
    "f.min" FMin <None> { lhs rhs };
    "f.max" FMax <None> { lhs rhs };
    "bf16.add" Bf16Add <None> { lhs rhs };
    "bf16.sub" Bf16Sub <None> { lhs rhs };
    "bf16.mul" Bf16Mul <None> { lhs rhs };
    "bf16.div" Bf16Div <None> { lhs rhs };
    "bf16.to_f32" Bf16ToF32 <None> { value(V) };
    "f32.to_bf16" F32ToBf16 <None> { value(V) };

    // Comparisons.
    "icmp.eq" IcmpEq <None> { lhs rhs };
    "icmp.ne" IcmpNe <None> { lhs rhs };
    "icmp.slt" IcmpSlt <None> { lhs rhs };
    "icmp.sgt" IcmpSgt <None> { lhs rhs };
    "icmp.sle" IcmpSle <None> { lhs rhs };
    "icmp.sge" IcmpSge <None> { lhs rhs };
    "icmp.ult" IcmpUlt <None> { lhs rhs };
    "icmp.ugt" IcmpUgt <None> { lhs rhs };
    "icmp.ule" IcmpUle <None> { lhs rhs };
    "icmp.uge" IcmpUge <None> { lhs rhs };
    "fcmp.oeq" FcmpOeq <None> { lhs rhs };
    "fcmp.one" FcmpOne <None> { lhs rhs };
    "fcmp.olt" FcmpOlt <None> { lhs rhs };
    "fcmp.ogt" FcmpOgt <None> { lhs rhs };
    "fcmp.ole" FcmpOle <None> { lhs rhs };
    "fcmp.oge" FcmpOge <None> { lhs rhs };

    // Conversions and choice.
    "cast" Cast <Two> { value(V) };
    "bits.cast" BitsCast <Two> { value(V) };
    "select" Select <None> { value(COND), value(THEN), value(ELSE) };

    // Structs and enums; `new` has a form of its own.
    "getfield" Getfield <None> { value(OBJ), shaped(FIELD, ArgShape::Word) };
    "setfield" Setfield <None> { value(OBJ), shaped(FIELD, ArgShape::Word), value(VAL) };
    "enum.new" EnumNew <VariantOrIndex> fields;
    "enum.tag" EnumTag <None> { value(V) };
    "enum.is" EnumIs <Variant> { value(V) };
    "enum.payload" EnumPayload <Variant> { value(V), optional(FIELD, ArgShape::Word) };

    // Arrays.
    "arr.new" ArrNew <OptionalOne> elements;
    "arr.len" ArrLen <None> { value(ARR) };
    "arr.get" ArrGet <None> { value(ARR), value(IDX) };
    "arr.set" ArrSet <None> { value(ARR), value(IDX), value(VAL) };
    "arr.push" ArrPush <None> { value(ARR), value(VAL) };
    "arr.pop" ArrPop <None> { value(ARR) };
    "arr.slice" ArrSlice <None> { value(ARR), value(START), value(END) };
    "arr.contains" ArrContains <None> { value(ARR), value(VAL) };
    "arr.sort" ArrSort <None> { value(ARR) };
    "arr.map" ArrMap <None> { value(ARR), value(FN) };
    "arr.filter" ArrFilter <None> { value(ARR), value(FN) };
    "arr.reduce" ArrReduce <None> { value(ARR), value(INIT), value(FN) };
    "arr.foreach" ArrForeach <None> { value(ARR), value(FN) };

    // Maps.
    "map.new" MapNew <Two> { };
    "map.len" MapLen <None> { value(MAP) };
    "map.get" MapGet <None> { value(MAP), value(KEY) };
    "map.get_ref" MapGetRef <None> { value(MAP), value(KEY) };
    "map.set" MapSet <None> { value(MAP), value(KEY), value(VAL) };
    "map.contains_key" MapContainsKey <None> { value(MAP), value(KEY) };
    "map.delete" MapDelete <None> { value(MAP), value(KEY) };
    "map.delete_void" MapDeleteVoid <None> { value(MAP), value(KEY) };
    "map.keys" MapKeys <None> { value(MAP) };
    "map.values" MapValues <None> { value(MAP) };

    // Strings.
    "str.concat" StrConcat <None> { value(A), value(B) };
    "str.len" StrLen <None> { value(S) };
    "str.eq" StrEq <None> { value(A), value(B) };
    "str.slice" StrSlice <None> { value(S), value(START), value(END) };
    "str.bytes" StrBytes <None> { value(S) };
    "str.builder.new" StrBuilderNew <None> { };
    "str.builder.build" StrBuilderBuild <None> { value(B) };
    "str.builder.append_str" StrBuilderAppendStr <None> { value(B), value(S) };
    "str.builder.append_i64" StrBuilderAppendI64 <None> { value(B), value(V) };
    "str.builder.append_i32" StrBuilderAppendI32 <None> { value(B), value(V) };
    "str.builder.append_u64" StrBuilderAppendU64 <None> { value(B), value(V) };
    "str.builder.append_f64" StrBuilderAppendF64 <None> { value(B), value(V) };
    "str.builder.append_bool" StrBuilderAppendBool <None> { value(B), value(V) };
    "str.parse_i64" StrParseI64 <None> { value(S) };
    "str.parse_u64" StrParseU64 <None> { value(S) };
    "str.parse_f64" StrParseF64 <None> { value(S) };
    "str.parse_bool" StrParseBool <None> { value(S) };
    "json.encode" JsonEncode <One> { value(V) };
    "json.decode" JsonDecode <One> { value(S) };

    // Ownership.
    "borrow.shared" BorrowShared <None> { value(V) };
    "borrow.mut" BorrowMut <None> { value(V) };
    "share" Share <None> { value(V) };
    "clone.shared" CloneShared <None> { value(V) };
    "clone.weak" CloneWeak <None> { value(V) };
    "weak.downgrade" WeakDowngrade <None> { value(V) };
    "weak.upgrade" WeakUpgrade <None> { value(V) };

    // Raw pointers.
    "ptr.null" PtrNull <One> { } no_block;
    "ptr.addr" PtrAddr <One> { value(P) };
    "ptr.from_addr" PtrFromAddr <One> { value(ADDR) };
    "ptr.add" PtrAdd <One> { value(P), value(COUNT) };
    "ptr.load" PtrLoad <One> { value(P) };
    "ptr.store" PtrStore <One> { value(P), value(V) };

    // Panic and suspension.
    "panic" Panic <None> { value(MSG) };
    "suspend.await" SuspendAwait <None> { value(FUT) };

    // Kernels: invocation ids.
    "gpu.thread_id" GpuThreadId <None> { value(DIM) };
    "gpu.workgroup_id" GpuWorkgroupId <None> { value(DIM) };
    "gpu.workgroup_size" GpuWorkgroupSize <None> { value(DIM) };
    "gpu.global_id" GpuGlobalId <None> { value(DIM) };
    "gpu.num_workgroups" GpuNumWorkgroups <None> { value(DIM) };

    // Kernels: memory.
    "gpu.buffer_load" GpuBufferLoad <One> { value(BUF), value(IDX) };
    "gpu.buffer_store" GpuBufferStore <One> { value(BUF), value(IDX), value(V) };
    "gpu.buffer_len" GpuBufferLen <One> { value(BUF) };
    "gpu.shared" GpuShared <LengthAndType> { } no_block;
    "gpu.local" GpuLocal <LengthAndType> { } no_block;
    "gpu.barrier" GpuBarrier <None> { } no_block;
    "gpu.print" GpuPrint <None> { shaped(ARGS, ArgShape::List) };

    // Kernels: atomics.
    "gpu.atomic.add" GpuAtomicAdd <One> { value(BUF), value(IDX), value(V) };
    "gpu.atomic.sub" GpuAtomicSub <One> { value(BUF), value(IDX), value(V) };
    "gpu.atomic.min" GpuAtomicMin <One> { value(BUF), value(IDX), value(V) };
    "gpu.atomic.max" GpuAtomicMax <One> { value(BUF), value(IDX), value(V) };
    "gpu.atomic.and" GpuAtomicAnd <One> { value(BUF), value(IDX), value(V) };
    "gpu.atomic.or" GpuAtomicOr <One> { value(BUF), value(IDX), value(V) };
    "gpu.atomic.xor" GpuAtomicXor <One> { value(BUF), value(IDX), value(V) };
    "gpu.atomic.exchange" GpuAtomicExchange <One> { value(BUF), value(IDX), value(V) };
    "gpu.atomic.cas" GpuAtomicCas <One> { value(BUF), value(IDX), value(CMP), value(V) };

    // Kernels: subgroups.
    "gpu.subgroup.size" GpuSubgroupSize <None> { };
    "gpu.subgroup.lane_id" GpuSubgroupLaneId <None> { };
    "gpu.subgroup.shuffle" GpuSubgroupShuffle <One> { value(V), value(LANE) };
    "gpu.subgroup.shuffle_down" GpuSubgroupShuffleDown <One> { value(V), value(LANE) };
    "gpu.subgroup.shuffle_up" GpuSubgroupShuffleUp <One> { value(V), value(LANE) };
    "gpu.subgroup.shuffle_xor" GpuSubgroupShuffleXor <One> { value(V), value(LANE) };
    "gpu.subgroup.broadcast" GpuSubgroupBroadcast <One> { value(V), value(LANE) };
    "gpu.subgroup.sum" GpuSubgroupSum <One> { value(V) };
    "gpu.subgroup.min" GpuSubgroupMin <One> { value(V) };
    "gpu.subgroup.max" GpuSubgroupMax <One> { value(V) };
    "gpu.subgroup.prefix_sum" GpuSubgroupPrefixSum <One> { value(V) };
    "gpu.subgroup.any" GpuSubgroupAny <None> { value(V) };
    "gpu.subgroup.all" GpuSubgroupAll <None> { value(V) };
    "gpu.subgroup.ballot" GpuSubgroupBallot <None> { value(V) };

    // Kernels: Metal only.
    "gpu.metal.simd_shuffle" GpuMetalSimdShuffle <None> { value(V), value(LANE) };
    "gpu.metal.simd_sum" GpuMetalSimdSum <None> { value(V) };
    "gpu.metal.simd_prefix_sum" GpuMetalSimdPrefixSum <None> { value(V) };
    "gpu.metal.imageblock" GpuMetalImageblock <OptionalOne> unspecified;
    "gpu.metal.tile_memory" GpuMetalTileMemory <OptionalOne> unspecified;

    // Launches.
    "gpu.launch" GpuLaunch <None> launch;
    "gpu.launch_async" GpuLaunchAsync <None> launch;
}

/// The most keys that a row has.
pub(crate) const MAX_KEYS: usize = LAUNCH.len();

impl AstOp {
    /// How the operation is written.
    pub fn row(self) -> &'static OpRow {
        &ROWS[self as usize]
    }

    /// The dotted name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The operation of this name. The first symbols of every interner are the names of the
    /// operations, in table order.
    pub fn from_symbol(symbol: Symbol) -> Option<AstOp> {
        AstOp::ALL.get(symbol.index()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interner;

    #[test]
    fn names_and_symbols_agree() {
        let interner = Interner::new();
        for &op in AstOp::ALL {
            let symbol = interner.lookup(op.name()).unwrap();
            assert_eq!(AstOp::from_symbol(symbol), Some(op));
        }
        assert_eq!(AstOp::from_symbol(LHS), None);
    }

    #[test]
    fn rows_are_well_formed() {
        for row in ROWS {
            let Keys::Fixed(keys) = row.keys else { continue };
            assert!(keys.len() <= MAX_KEYS, "{}: too many keys", row.name);
            let required = keys.iter().take_while(|key| key.required).count();
            assert!(
                keys[required..].iter().all(|key| !key.required),
                "{}: required key after an optional one",
                row.name
            );
            for (i, key) in keys.iter().enumerate() {
                assert!(
                    keys[..i].iter().all(|other| other.name != key.name),
                    "{}: key twice",
                    row.name
                );
            }
        }
    }
}
