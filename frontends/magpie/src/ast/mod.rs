//! The syntax of one module: flat pools, 4-byte ids, byte ranges.
//!
//! The law of this tree:
//! * Everything that repeats lives in a pool of [`Ast`] and is named by an id or by a [`Slice`];
//!   indexing the `Ast` with one gives the thing.
//! * Blocks, instructions and arguments stand in their pools in the order of the text, so that a
//!   function's blocks and a block's instructions are contiguous.
//! * Spelling variants are gone: a bare string is a `Str` constant, aliases of argument keys are
//!   replaced by the keys, the arguments of a regular operation stand in the order of its row in
//!   the operation table. What an instruction was written like is in the source text, by range.
//! * A tree from a text with errors has holes (empty names, missing terminators); only
//!   [`crate::ParsedModule::has_errors`] tells whether a tree is whole.

mod op_table;
mod pool;
mod types;

pub use op_table::{ArgShape, AstOp, Key, Keys, OpRow, TypeArgs};
pub(crate) use op_table::MAX_KEYS;
pub(crate) use pool::Pools;
pub use pool::{Ast, ConstId, FnRefId, Slice};
pub use types::{Modifier, TypeExpr, TypeExprId, TypeExprs};

use crate::interner::Symbol;

/// A half-open range of bytes of the module's text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ByteRange {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl ByteRange {
    /// From the start of `self` to the end of `last`.
    pub fn to(self, last: ByteRange) -> ByteRange {
        ByteRange { start: self.start, end: last.end }
    }

    /// The text of the range.
    pub fn of(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }
}

/// A name and where it is written. Sigils (`@`, `%`) belong to the range, not to the symbol.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The name, or a dotted path as one text.
    pub symbol: Symbol,
    /// Where.
    pub range: ByteRange,
}

/// A comment, from `;` to the last character that is not space.
#[derive(Clone, Copy, Debug)]
pub struct Comment {
    /// Where.
    pub range: ByteRange,
    /// Whether nothing but space stands before it on its line.
    pub own_line: bool,
}

impl Comment {
    /// Whether it documents the declaration that follows: `;;;` on a line of its own.
    pub fn is_doc(&self, text: &str) -> bool {
        self.own_line && self.range.of(text).starts_with(";;;")
    }
}

/// The four parts at the top of a module.
#[derive(Clone, Debug)]
pub struct Header {
    /// The module's dotted path.
    pub module: Name,
    /// The symbols that other modules may use.
    pub exports: Slice<Export>,
    /// The modules that this one names.
    pub imports: Slice<Import>,
    /// What stands after `digest`: the contents of the string or the hexadecimal digits.
    pub digest: Symbol,
    /// Where each part stands, its first word included, in the order of the fields above.
    pub parts: [ByteRange; 4],
}

/// The kinds of symbols that a module can export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExportKind {
    /// `@name`: a function or a global.
    Function,
    /// `TName`: a type or a signature.
    Type,
}

/// A symbol in `exports` or in the braces of an import.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// Whether it is written `@name` or `TName`.
    pub kind: ExportKind,
    /// The name.
    pub name: Name,
}

/// One group of `imports`.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    /// The module's dotted path.
    pub path: Name,
    /// The symbols that may be used by their short names; `None` for a bare path.
    pub items: Option<Slice<Export>>,
}

/// A declaration.
#[derive(Clone, Debug)]
pub struct Decl {
    /// The whole of it, without comments before it.
    pub range: ByteRange,
    /// The comments between the declaration before it and this one; those that are
    /// [`Comment::is_doc`] document it.
    pub comments: Slice<Comment>,
    /// What is declared.
    pub kind: DeclKind,
}

/// What is declared.
#[derive(Clone, Debug)]
pub enum DeclKind {
    /// `fn`, `async fn`, `unsafe fn`, `gpu fn`, `unsafe gpu fn`
    Fn(FnDecl),
    /// `heap struct`, `value struct`, `heap enum`, `value enum`
    Type(TypeDecl),
    /// `extern "abi" module name { … }`
    Extern(ExternDecl),
    /// `global @NAME: T = const.T literal`
    Global(GlobalDecl),
    /// `impl hash for T = @f`
    Impl(ImplDecl),
    /// `sig TName(T, …) -> T`
    Sig(SigDecl),
}

/// A function or a kernel.
#[derive(Clone, Debug)]
pub struct FnDecl {
    /// From the first word to the name: `unsafe gpu fn @k`.
    pub head: ByteRange,
    /// The name.
    pub name: Name,
    /// Whether it is `async`.
    pub is_async: bool,
    /// Whether it is `unsafe`.
    pub is_unsafe: bool,
    /// The clauses of a `gpu fn`; `None` for a host function.
    pub gpu: Option<GpuClauses>,
    /// `<T: type, …>`
    pub type_params: Slice<TypeParam>,
    /// The parameters.
    pub params: Slice<Param>,
    /// The result type.
    pub result: TypeUse,
    /// The `meta` block.
    pub meta: Option<Meta>,
    /// From `{` to `}`.
    pub body: ByteRange,
    /// The blocks; the first is the entry.
    pub blocks: Slice<Block>,
    /// The outermost `unsafe { … }` groups of the body, from `unsafe` to `}`.
    pub unsafe_groups: Slice<ByteRange>,
}

/// The clauses after the result type of a `gpu fn`.
#[derive(Clone, Copy, Debug)]
pub struct GpuClauses {
    /// The word in `target( )`.
    pub target: Name,
    /// The whole `target( )` clause.
    pub target_clause: ByteRange,
    /// `workgroup(x, y, z)`
    pub workgroup: Option<Workgroup>,
    /// `requires(capability, …)`
    pub requires: Option<Requires>,
}

/// `workgroup(x, y, z)`
#[derive(Clone, Copy, Debug)]
pub struct Workgroup {
    /// Invocations in each dimension, as written.
    pub size: [u32; 3],
    /// The whole clause.
    pub range: ByteRange,
}

/// `requires(capability, …)`
#[derive(Clone, Copy, Debug)]
pub struct Requires {
    /// The capabilities: paths of one or more words.
    pub capabilities: Slice<Name>,
    /// The whole clause.
    pub range: ByteRange,
}

/// `T: type`
#[derive(Clone, Copy, Debug)]
pub struct TypeParam {
    /// The name.
    pub name: Name,
    /// What an argument must offer.
    pub bound: Bound,
}

/// What the argument for a type parameter must offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the variants are the words of the language")]
pub enum Bound {
    Type,
    Send,
    Sync,
    Hash,
    Eq,
    Ord,
}

/// `%name: T`
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The name.
    pub name: Name,
    /// The type.
    pub ty: TypeUse,
}

impl Param {
    /// From the name to the end of the type.
    pub fn range(&self) -> ByteRange {
        self.name.range.to(self.ty.range)
    }
}

/// A type as written at one place.
#[derive(Clone, Copy, Debug)]
pub struct TypeUse {
    /// The type; equal types of a module have equal ids.
    pub id: TypeExprId,
    /// Where.
    pub range: ByteRange,
}

/// `meta { uses { … } effects { … } cost { … } }`: kept, and not checked by the parser.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// The whole block.
    pub range: ByteRange,
    /// What the function refers to.
    pub uses: Slice<MetaUse>,
    /// What kinds of effects it has.
    pub effects: Slice<Name>,
    /// What it costs.
    pub cost: Slice<MetaCost>,
}

/// An entry of `uses`.
#[derive(Clone, Copy, Debug)]
pub enum MetaUse {
    /// A function or a global.
    Function(FnRefId),
    /// A type or a module.
    Path(Name),
}

/// An entry of `cost`.
#[derive(Clone, Copy, Debug)]
pub struct MetaCost {
    /// What is counted.
    pub key: Name,
    /// How many.
    pub amount: Literal,
}

/// A struct or an enum.
#[derive(Clone, Debug)]
pub struct TypeDecl {
    /// The name.
    pub name: Name,
    /// Whether it is a `heap` type; a `value` type otherwise.
    pub is_heap: bool,
    /// `<T: type, …>`
    pub type_params: Slice<TypeParam>,
    /// From `{` to `}`.
    pub body: ByteRange,
    /// The fields or the variants.
    pub kind: TypeDeclKind,
}

/// The fields of a struct or the variants of an enum.
#[derive(Clone, Copy, Debug)]
pub enum TypeDeclKind {
    /// `struct`
    Struct(Slice<Field>),
    /// `enum`
    Enum(Slice<Variant>),
}

/// `field name: T`
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// From `field` to the end of the type.
    pub range: ByteRange,
    /// The name.
    pub name: Name,
    /// The type.
    pub ty: TypeUse,
}

/// `variant Name { field … }`
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// From `variant` to `}`.
    pub range: ByteRange,
    /// The name.
    pub name: Name,
    /// The fields.
    pub fields: Slice<Field>,
}

/// `extern "abi" module name { fn … }`
#[derive(Clone, Debug)]
pub struct ExternDecl {
    /// The contents of the string.
    pub abi: Name,
    /// The name of the foreign module.
    pub module: Name,
    /// From `{` to `}`.
    pub body: ByteRange,
    /// The functions.
    pub functions: Slice<ExternFn>,
}

/// A foreign function.
#[derive(Clone, Copy, Debug)]
pub struct ExternFn {
    /// From `fn` to the end.
    pub range: ByteRange,
    /// The name.
    pub name: Name,
    /// The parameters.
    pub params: Slice<Param>,
    /// The result type.
    pub result: TypeUse,
    /// `attrs { key="value" … }`
    pub attributes: Slice<Attribute>,
}

/// `key="value"`
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// The key.
    pub key: Name,
    /// The contents of the string.
    pub value: Name,
}

/// `global @NAME: T = const.T literal`
#[derive(Clone, Debug)]
pub struct GlobalDecl {
    /// The name.
    pub name: Name,
    /// The type.
    pub ty: TypeUse,
    /// The value.
    pub value: ConstId,
}

/// The interfaces that a function can implement for a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the variants are the words of the language")]
pub enum Interface {
    Hash,
    Eq,
    Ord,
}

/// `impl hash for T = @f`
#[derive(Clone, Debug)]
pub struct ImplDecl {
    /// What is implemented.
    pub interface: Interface,
    /// For which type.
    pub ty: TypeUse,
    /// By which function.
    pub function: FnRefId,
}

/// `sig TName(T, …) -> T`
#[derive(Clone, Debug)]
pub struct SigDecl {
    /// The name.
    pub name: Name,
    /// The parameter types.
    pub params: Slice<TypeUse>,
    /// The result type.
    pub result: TypeUse,
}

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
