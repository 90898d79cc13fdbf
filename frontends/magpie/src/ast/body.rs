//! Function bodies: blocks, instructions, operands.

use super::*;

/// A basic block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// The label, without the colon.
    pub label: Name,
    /// The instructions, phis included, in order.
    pub instrs: Slice<Instr>,
    /// How the block ends.
    pub terminator: Terminator,
    /// Where the terminator stands.
    pub terminator_range: ByteRange,
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instr {
    /// The whole of it.
    pub range: ByteRange,
    /// Its result.
    pub result: Option<ResultDef>,
    /// Whether it stands in an `unsafe { … }` group.
    pub in_unsafe: bool,
    /// What it does.
    pub op: Op,
}

/// `%name: T =`. The name starts where the instruction does.
#[derive(Clone, Copy, Debug)]
pub struct ResultDef {
    /// The name.
    pub name: Symbol,
    /// The type.
    pub ty: TypeUse,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// `const.T literal`
    Const(ConstId),
    /// `name<types> { key=value, … }`
    Regular {
        /// Which operation.
        op: AstOp,
        /// Where its name stands.
        name: ByteRange,
        /// What stands between `<` and `>`, of the kinds that the table asks for.
        type_args: Slice<TypeArg>,
        /// The arguments. For [`Keys::Fixed`] argument `i` belongs to key `i` of the row and has
        /// its shape; optional keys that were not given are missing at the end.
        args: Slice<Arg>,
    },
    /// A call of a function by name.
    Call {
        /// How it is written.
        form: CallForm,
        /// The function.
        callee: FnRefId,
        /// `<T, …>`
        type_args: Slice<TypeUse>,
        /// The arguments in the written order: named ones, or one `args=[…]`.
        args: Slice<Arg>,
    },
    /// `call.indirect %f { … }`, `call_void.indirect %f { … }`, `suspend.call %f { … }`
    CallIndirect {
        /// How it is written.
        form: IndirectForm,
        /// The callable.
        callee: Value,
        /// The arguments in the written order: values, or one `args=[…]`.
        args: Slice<Arg>,
    },
    /// `try @f { … }`: the payload, or return the error.
    TryCall {
        /// The function.
        callee: FnRefId,
        /// `<T, …>`
        type_args: Slice<TypeUse>,
        /// The arguments in the written order: named ones, or one `args=[…]`.
        args: Slice<Arg>,
    },
    /// `try %r bb_x`: the payload, or go to `bb_x`.
    TryBranch {
        /// The result that is taken apart.
        value: Symbol,
        /// Where an error leads.
        target: Target,
    },
    /// `callable.capture @f { … }`
    Capture {
        /// The function.
        callee: FnRefId,
        /// The bound parameters, values only, in the written order.
        args: Slice<Arg>,
    },
    /// `new T { … }`
    New {
        /// The struct.
        ty: TypeUse,
        /// The fields, values only, in the written order.
        args: Slice<Arg>,
    },
    /// `phi T { [bb0: %a], … }`
    Phi {
        /// The type, where it is written.
        ty: Option<TypeUse>,
        /// The arms in the written order.
        arms: Slice<PhiArm>,
    },
}

/// How a call by name is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallForm {
    /// `call @f { … }`
    Call,
    /// `call_void @f { … }`: never has a result name.
    CallVoid,
    /// `@f { … }`
    Direct,
    /// `suspend.call @f { … }`
    Suspend,
}

/// How a call of a callable is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndirectForm {
    /// `call.indirect %f { … }`
    Call,
    /// `call_void.indirect %f { … }`: never has a result name.
    CallVoid,
    /// `suspend.call %f { … }`
    Suspend,
}

/// What stands between the `<` and `>` of a regular operation.
#[derive(Clone, Copy, Debug)]
pub enum TypeArg {
    /// A type.
    Type(TypeUse),
    /// A length or the number of a variant.
    Int(u64),
    /// A length: the name of a global constant.
    Global(FnRefId),
    /// The name of a variant.
    Variant(Name),
}

/// An argument: `key=…`.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    /// The key.
    pub key: Symbol,
    /// Where the key starts.
    pub key_start: u32,
    /// What is given.
    pub kind: ArgKind,
    /// Where that stands.
    pub value_range: ByteRange,
}

impl Arg {
    /// From the key to the end of the value.
    pub fn range(&self) -> ByteRange {
        ByteRange { start: self.key_start, end: self.value_range.end }
    }
}

/// What an argument gives.
#[derive(Clone, Copy, Debug)]
pub enum ArgKind {
    /// A value.
    Value(Value),
    /// A function.
    Function(FnRefId),
    /// A plain word.
    Word(Symbol),
    /// Values or functions in brackets.
    List(Slice<ListItem>),
}

/// An entry of a list.
#[derive(Clone, Copy, Debug)]
pub struct ListItem {
    /// What is given.
    pub kind: ListItemKind,
    /// Where that stands.
    pub range: ByteRange,
}

/// What an entry of a list gives.
#[derive(Clone, Copy, Debug)]
pub enum ListItemKind {
    /// A value.
    Value(Value),
    /// A function.
    Function(FnRefId),
}

/// An operand.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// `%name`
    Ssa(Symbol),
    /// `const.T literal`, or a string.
    Const(ConstId),
}

/// `[bb0: %a]`
#[derive(Clone, Copy, Debug)]
pub struct PhiArm {
    /// From `[` to `]`.
    pub range: ByteRange,
    /// The block from which control comes.
    pub label: Name,
    /// The value.
    pub value: Value,
    /// Which payload of the value is taken.
    pub projection: Option<Projection>,
}

/// A payload of a `TResult`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Projection {
    /// `%r.ok`
    Ok,
    /// `%r.err`
    Err,
}

/// How a block ends.
#[derive(Clone, Copy, Debug)]
pub enum Terminator {
    /// `ret`, `ret value`
    Ret(Option<Value>),
    /// `br bb1`
    Br(Target),
    /// `cbr value bb1 bb2`
    Cbr {
        /// The condition.
        condition: Value,
        /// Where true leads.
        then_target: Target,
        /// Where false leads.
        else_target: Target,
    },
    /// `switch value { case … } else bb1`
    Switch {
        /// What is compared.
        value: Value,
        /// From `{` to `}`.
        body: ByteRange,
        /// The cases in the written order.
        cases: Slice<Case>,
        /// Where no case matches.
        default: Target,
    },
    /// `unreachable`
    Unreachable,
    /// An error has been reported.
    Missing,
}

/// A label where control may go.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The label.
    pub label: Symbol,
    /// Where it stands.
    pub range: ByteRange,
}

/// `case literal -> bb1`
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// From `case` to the label.
    pub range: ByteRange,
    /// What the value is compared with.
    pub literal: Literal,
    /// Where equality leads.
    pub target: Target,
}

/// `const.T literal`
#[derive(Clone, Copy, Debug)]
pub struct Const {
    /// The type.
    pub ty: TypeExprId,
    /// The literal; whether it suits the type is not checked by the parser.
    pub literal: Literal,
    /// Where the literal stands.
    pub literal_range: ByteRange,
}

/// A literal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Literal {
    /// An integer; `-0` keeps its sign, which a float constant needs.
    Int {
        /// Whether a minus stands before it.
        negative: bool,
        /// Its absolute value.
        magnitude: u128,
    },
    /// A number with a fraction, an exponent or a suffix, or more digits than fit an integer
    /// where a float is wanted.
    Float {
        /// The number as written, without the suffix.
        digits: Symbol,
        /// The type written after it.
        suffix: Option<FloatFormat>,
    },
    /// The contents of a string.
    Str(Symbol),
    /// `true`, `false`
    Bool(bool),
    /// `unit`
    Unit,
}

/// The float types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the variants are the types of the language")]
pub enum FloatFormat {
    F16,
    F32,
    F64,
    Bf16,
}

/// `@f` or `path.@f`
#[derive(Clone, Copy, Debug)]
pub struct FnRef {
    /// The dotted path of the module; `None` for a short name.
    pub path: Option<Symbol>,
    /// The name.
    pub name: Symbol,
    /// From the path to the end of the name.
    pub range: ByteRange,
}
