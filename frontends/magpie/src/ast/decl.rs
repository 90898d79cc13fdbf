//! Declarations.

use super::*;

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
