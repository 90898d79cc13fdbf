//! Which methods change their receiver: `self` is an `out` parameter of those.

use crate::ast::*;
use crate::program::{Item, Program};
use crate::walk::{Node, walk_block};

/// Methods of collections that change them.
pub(crate) fn changes_collection(name: &str) -> bool {
    matches!(
        name,
        "push"
            | "pop"
            | "insert"
            | "remove"
            | "remove_at"
            | "clear"
            | "set"
            | "sort"
            | "reverse"
            | "add"
    )
}

/// Makes `self` an `out` parameter of the methods that change it, directly or through others.
pub(crate) fn mark(program: &mut Program) {
    let mut methods: Vec<(FnDeclId, Owner)> = Vec::new();
    for (n, decl) in program.structs.iter().enumerate() {
        methods.extend(decl.methods.iter().map(|&id| (id, Owner::Struct(n as u32))));
    }
    for (n, decl) in program.traits.iter().enumerate() {
        methods.extend(decl.provided.iter().map(|&id| (id, Owner::Trait(n as u32))));
    }
    loop {
        let before = methods.len();
        let mut changing = Vec::new();
        methods.retain(|&(id, owner)| {
            let changes = Search { program, owner }.changes(&program.ast[id].body);
            if changes {
                changing.push(id);
            }
            !changes
        });
        for id in changing {
            program.ast[id].params[0].out = true;
        }
        if methods.len() == before {
            return;
        }
    }
}

/// Whose method it is.
#[derive(Clone, Copy)]
enum Owner {
    Struct(u32),
    /// The receiver is one of the structs that implement it.
    Trait(u32),
}

/// The search through one method.
struct Search<'a> {
    program: &'a Program,
    owner: Owner,
}

impl Search<'_> {
    fn changes(&self, body: &Block) -> bool {
        let ast = &self.program.ast;
        let mut found = false;
        walk_block(ast, body, &mut |node| {
            found |= match node {
                Node::Stmt(stmt) => match ast[stmt].kind {
                    StmtKind::Assign { target, .. } => self.is_part_of_self(target),
                    _ => false,
                },
                Node::Expr(e) => match &ast[e].kind {
                    ExprKind::Call(callee, args) => self.call_changes(*callee, args),
                    _ => false,
                },
                Node::Open | Node::Close | Node::Declare(_) => false,
            };
        });
        found
    }

    fn is_self(&self, e: ExprId) -> bool {
        matches!(self.program.ast[e].kind, ExprKind::Name(name) if self.program.name(name) == "self")
    }

    fn is_part_of_self(&self, mut e: ExprId) -> bool {
        loop {
            match self.program.ast[e].kind {
                ExprKind::Member(base, _) | ExprKind::Index(base, _) => e = base,
                _ => return self.is_self(e),
            }
        }
    }

    fn call_changes(&self, callee: ExprId, args: &[Arg]) -> bool {
        let program = self.program;
        match program.ast[callee].kind {
            ExprKind::Member(base, name) if self.is_part_of_self(base) => {
                match self.struct_of(base) {
                    Some(owner) => program
                        .method(owner, name.sym)
                        .is_some_and(|id| program.ast[id].params[0].out),
                    None => match self.owner {
                        Owner::Trait(of) if self.is_self(base) => self.any_changes(of, name.sym),
                        _ => changes_collection(program.name(name.sym)),
                    },
                }
            }
            ExprKind::Name(name) => match program.item(name, program.ast[callee].span) {
                Some(Item::Fn(id)) => {
                    let params = &program.ast[id].params;
                    args.iter().zip(params).any(|(arg, p)| p.out && self.is_self(arg.value))
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether a struct that implements a trait has a method of this name that changes it.
    fn any_changes(&self, of: u32, name: Sym) -> bool {
        let program = self.program;
        let implements = |decl: &StructDecl| {
            let mut traits = decl.implements.iter().map(|t| program.item(t.sym, t.span));
            traits.any(|item| item == Some(Item::Trait(of)))
        };
        let all = program.structs.iter().enumerate().filter(|(_, decl)| implements(decl));
        all.filter_map(|(n, _)| program.method(n as u32, name))
            .any(|id| program.ast[id].params[0].out)
    }

    /// The struct that a part of `self` is, if it is one.
    fn struct_of(&self, e: ExprId) -> Option<u32> {
        if self.is_self(e) {
            return match self.owner {
                Owner::Struct(n) => Some(n),
                Owner::Trait(_) => None,
            };
        }
        let ty = &self.program.ast[self.type_of(e)?];
        match ty.kind {
            TypeExprKind::Name(name, _) => match self.program.item(name, ty.span)? {
                Item::Struct(n) => Some(n),
                _ => None,
            },
            _ => None,
        }
    }

    /// The type of a part of `self` as it is written.
    fn type_of(&self, e: ExprId) -> Option<TypeExprId> {
        let program = self.program;
        match program.ast[e].kind {
            ExprKind::Member(base, name) => {
                let owner = self.struct_of(base)?;
                let fields = &program.structs[owner as usize].fields;
                fields.iter().find(|f| f.0.sym == name.sym).map(|f| f.1)
            }
            ExprKind::Index(base, _) => match &program.ast[self.type_of(base)?].kind {
                &(TypeExprKind::List(t) | TypeExprKind::Array(t, _) | TypeExprKind::Map(_, t)) => {
                    Some(t)
                }
                TypeExprKind::Name(name, args) => match (program.name(*name), &args[..]) {
                    ("List" | "Array", &[TypeArg::Type(t), ..])
                    | ("Map", &[_, TypeArg::Type(t)]) => Some(t),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }
}
