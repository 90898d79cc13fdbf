//! Syntax trees: nodes in arenas, referred to by ids.

use magpie_diag::Span;
use rustc_hash::FxHashMap;

/// An interned name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Sym(pub(crate) u32);

/// Names and their ids, shared by all files of a program.
#[derive(Default, Debug)]
pub(crate) struct Interner {
    ids: FxHashMap<String, Sym>,
    names: Vec<String>,
}

impl Interner {
    /// The id of a name.
    pub(crate) fn intern(&mut self, name: &str) -> Sym {
        if let Some(&sym) = self.ids.get(name) {
            return sym;
        }
        let sym = Sym(self.names.len() as u32);
        self.names.push(name.to_string());
        self.ids.insert(name.to_string(), sym);
        sym
    }

    /// The id of a name that occurs.
    pub(crate) fn find(&self, name: &str) -> Option<Sym> {
        self.ids.get(name).copied()
    }

    /// The name of an id.
    pub(crate) fn name(&self, sym: Sym) -> &str {
        &self.names[sym.0 as usize]
    }
}

/// A name where it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ident {
    pub(crate) sym: Sym,
    pub(crate) span: Span,
}

macro_rules! arena {
    ($($id:ident $field:ident $node:ident;)*) => {
        $(#[doc = concat!("A `", stringify!($node), "` of the trees.")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub(crate) struct $id(u32);)*

        /// The nodes of all files of a program.
        #[derive(Default, Debug)]
        pub(crate) struct Ast {
            $($field: Vec<$node>,)*
        }

        $(impl std::ops::Index<$id> for Ast {
            type Output = $node;
            fn index(&self, id: $id) -> &$node {
                &self.$field[id.0 as usize]
            }
        }

        impl std::ops::IndexMut<$id> for Ast {
            fn index_mut(&mut self, id: $id) -> &mut $node {
                &mut self.$field[id.0 as usize]
            }
        }

        impl Add<$node> for Ast {
            type Id = $id;
            fn add(&mut self, node: $node) -> $id {
                self.$field.push(node);
                $id(self.$field.len() as u32 - 1)
            }
        })*
    };
}

/// Adding a node to its arena.
pub(crate) trait Add<N> {
    type Id;
    fn add(&mut self, node: N) -> Self::Id;
}

arena! {
    ExprId exprs Expr;
    StmtId stmts Stmt;
    TypeExprId types TypeExpr;
    PatternId patterns Pattern;
    FnDeclId fns FnDecl;
}

/// An expression.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    /// What could not be parsed; reported.
    Error,
    Int(u64),
    /// The decimal text, without `_`.
    Float(Sym),
    Bool(bool),
    Str(Sym),
    Format(Vec<FormatPart>),
    None,
    Name(Sym),
    /// A type with arguments where a value stands: `Array<f32, 4>(…)`.
    Type(TypeExprId),
    Member(ExprId, Ident),
    Field(ExprId, u32),
    Index(ExprId, ExprId),
    Call(ExprId, Vec<Arg>),
    Unary(UnaryOp, ExprId),
    Binary(BinaryOp, ExprId, ExprId),
    Cast(ExprId, TypeExprId),
    /// `then if cond else otherwise`
    Cond {
        cond: ExprId,
        then: ExprId,
        otherwise: ExprId,
    },
    Range {
        start: ExprId,
        end: ExprId,
        inclusive: bool,
    },
    List(Vec<ExprId>),
    Map(Vec<(ExprId, ExprId)>),
    Set(Vec<ExprId>),
    Tuple(Vec<ExprId>),
    Lambda(FnDeclId),
    Match {
        scrutinee: ExprId,
        arms: Vec<Arm>,
    },
}

#[derive(Debug)]
pub(crate) enum FormatPart {
    Text(Sym),
    Value(ExprId),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Arg {
    pub(crate) name: Option<Ident>,
    pub(crate) value: ExprId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnaryOp {
    Neg,
    Plus,
    Not,
    BitNot,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    In,
    Coalesce,
}

impl BinaryOp {
    /// The sign or word.
    pub(crate) fn text(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
            BinaryOp::In => "in",
            BinaryOp::Coalesce => "??",
        }
    }

    /// `+ - * / %`
    pub(crate) fn is_arithmetic(self) -> bool {
        use BinaryOp::*;
        matches!(self, Add | Sub | Mul | Div | Rem)
    }
}

/// A list of statements.
#[derive(Clone, Default, Debug)]
pub(crate) struct Block {
    pub(crate) stmts: Vec<StmtId>,
}

#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) patterns: Vec<PatternId>,
    pub(crate) guard: Option<ExprId>,
    pub(crate) body: ArmBody,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum ArmBody {
    Value(ExprId),
    Block(Block),
}

#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) kind: PatternKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum PatternKind {
    Wildcard,
    /// A literal, possibly negated.
    Literal(ExprId),
    /// A name to bind, or a variant without payload.
    Name(Sym),
    /// `E.V`, `E.V(…)`, `Some(…)`
    Variant {
        path: Vec<Ident>,
        fields: Vec<PatternId>,
    },
    Tuple(Vec<PatternId>),
}

#[derive(Debug)]
pub(crate) struct TypeExpr {
    pub(crate) kind: TypeExprKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum TypeExprKind {
    Name(Sym, Vec<TypeArg>),
    /// `module.Name<…>`
    Qualified(Ident, Sym, Vec<TypeArg>),
    List(TypeExprId),
    Array(TypeExprId, ExprId),
    Set(TypeExprId),
    Map(TypeExprId, TypeExprId),
    Tuple(Vec<TypeExprId>),
    Fn(Vec<TypeExprId>, Option<TypeExprId>),
    Option(TypeExprId),
}

/// A type argument: `Array<f32, W * H>`. A plain name may be either.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TypeArg {
    Type(TypeExprId),
    Value(ExprId),
}

#[derive(Debug)]
pub(crate) struct Stmt {
    pub(crate) kind: StmtKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum StmtKind {
    Error,
    Let { gpu: bool, mutable: bool, binders: Vec<Binder> },
    Const(Binder),
    Shared { name: Ident, ty: TypeExprId },
    Assign { target: ExprId, op: Option<BinaryOp>, value: ExprId },
    Expr(ExprId),
    If { arms: Vec<(Cond, Block)>, otherwise: Option<Block> },
    While { cond: Cond, body: Block },
    DoWhile { body: Block, cond: Cond },
    Forever(Block),
    For { names: Vec<Ident>, iter: ExprId, body: Block },
    Forall(Forall),
    Frame { passes: Block },
    Return(Option<ExprId>),
    Break,
    Continue,
}

/// A condition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cond {
    /// `expr`, or with `unless` and `until` its contrary.
    Value { expr: ExprId, negated: bool },
    /// `let pattern = expr`
    Let(PatternId, ExprId),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Binder {
    pub(crate) name: Ident,
    pub(crate) ty: Option<TypeExprId>,
    pub(crate) init: Option<ExprId>,
}

#[derive(Debug)]
pub(crate) struct Forall {
    /// `gpu forall`, or the body of `gpu frame i in …`.
    pub(crate) gpu: bool,
    pub(crate) names: Vec<Ident>,
    pub(crate) ranges: Vec<ExprId>,
    pub(crate) body: Block,
    /// The head.
    pub(crate) head: Span,
}

/// Where an argument must live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Residency {
    Host,
    Gpu,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Param {
    pub(crate) name: Ident,
    pub(crate) out: bool,
    pub(crate) residency: Option<Residency>,
    pub(crate) ty: TypeExprId,
    pub(crate) default: Option<ExprId>,
}

/// A function, a kernel or a lambda.
#[derive(Debug)]
pub(crate) struct FnDecl {
    pub(crate) name: Ident,
    pub(crate) gpu: bool,
    pub(crate) generics: Vec<Ident>,
    pub(crate) params: Vec<Param>,
    pub(crate) result: Option<TypeExprId>,
    pub(crate) body: Block,
    /// From `fn` to the end of the head.
    pub(crate) head: Span,
}

#[derive(Debug)]
pub(crate) struct StructDecl {
    pub(crate) name: Ident,
    pub(crate) generics: Vec<Ident>,
    pub(crate) implements: Vec<Ident>,
    pub(crate) fields: Vec<(Ident, TypeExprId)>,
    /// Functions whose first parameter is `self`.
    pub(crate) methods: Vec<FnDeclId>,
    pub(crate) head: Span,
}

/// A trait. Its methods have a type parameter for the type that implements it.
#[derive(Debug)]
pub(crate) struct TraitDecl {
    pub(crate) name: Ident,
    /// Methods that implementers must have; their bodies are empty.
    pub(crate) required: Vec<FnDeclId>,
    /// Methods that implementers have without writing them.
    pub(crate) provided: Vec<FnDeclId>,
}

#[derive(Debug)]
pub(crate) struct EnumDecl {
    pub(crate) name: Ident,
    pub(crate) generics: Vec<Ident>,
    pub(crate) variants: Vec<(Ident, Vec<TypeExprId>)>,
}

/// `use a.b.{c, d as e}`
#[derive(Debug)]
pub(crate) struct UseDecl {
    pub(crate) path: Vec<Ident>,
    /// `None`: the module; else the names, with their own names here.
    pub(crate) names: Option<Vec<(Ident, Ident)>>,
    pub(crate) alias: Option<Ident>,
    pub(crate) span: Span,
}

/// A file.
#[derive(Default, Debug)]
pub(crate) struct File {
    pub(crate) uses: Vec<UseDecl>,
    pub(crate) fns: Vec<FnDeclId>,
    pub(crate) structs: Vec<StructDecl>,
    pub(crate) enums: Vec<EnumDecl>,
    pub(crate) traits: Vec<TraitDecl>,
    pub(crate) aliases: Vec<(Ident, TypeExprId)>,
    /// Where the names of private declarations stand.
    pub(crate) private: Vec<Span>,
    /// In source order, constants included.
    pub(crate) stmts: Vec<StmtId>,
}
