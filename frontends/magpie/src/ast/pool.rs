//! The pools of a module, and the ids and slices that name their entries.

use super::*;
use std::marker::PhantomData;
use std::ops::Index;

/// A run of entries of the pool that holds `T`.
pub struct Slice<T> {
    start: u32,
    len: u32,
    entry: PhantomData<fn() -> T>,
}

impl<T> Slice<T> {
    /// No entries.
    pub const EMPTY: Slice<T> = Slice { start: 0, len: 0, entry: PhantomData };

    pub(crate) fn new(start: usize, end: usize) -> Slice<T> {
        Slice { start: start as u32, len: (end - start) as u32, entry: PhantomData }
    }

    /// How many entries.
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

impl<T> Clone for Slice<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slice<T> {}

impl<T> std::fmt::Debug for Slice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.range())
    }
}

/// Names a [`Const`] of the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConstId(u32);

/// Names a [`FnRef`] of the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FnRefId(u32);

/// The syntax tree of a module.
#[derive(Clone, Debug)]
pub struct Ast {
    /// The four parts at the top.
    pub header: Header,
    /// The declarations in the order of the text.
    pub decls: Vec<Decl>,
    /// Every comment in the order of the text.
    pub comments: Vec<Comment>,
    /// The types that the module writes.
    pub types: TypeExprs,
    pub(crate) pools: Pools,
}

/// What ids and slices point into.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pools {
    pub(crate) consts: Vec<Const>,
    pub(crate) fn_refs: Vec<FnRef>,
    pub(crate) exports: Vec<Export>,
    pub(crate) imports: Vec<Import>,
    pub(crate) names: Vec<Name>,
    pub(crate) type_params: Vec<TypeParam>,
    pub(crate) params: Vec<Param>,
    pub(crate) meta_uses: Vec<MetaUse>,
    pub(crate) meta_costs: Vec<MetaCost>,
    pub(crate) fields: Vec<Field>,
    pub(crate) variants: Vec<Variant>,
    pub(crate) extern_fns: Vec<ExternFn>,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) type_uses: Vec<TypeUse>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) unsafe_groups: Vec<ByteRange>,
    pub(crate) instrs: Vec<Instr>,
    pub(crate) type_args: Vec<TypeArg>,
    pub(crate) args: Vec<Arg>,
    pub(crate) list_items: Vec<ListItem>,
    pub(crate) phi_arms: Vec<PhiArm>,
    pub(crate) cases: Vec<Case>,
}

impl Pools {
    /// Empty pools with room for the usual amount of code in a text of `len` bytes.
    pub(crate) fn for_text(len: usize) -> Pools {
        Pools {
            instrs: Vec::with_capacity(len / 48),
            args: Vec::with_capacity(len / 32),
            ..Pools::default()
        }
    }

    pub(crate) fn add_const(&mut self, constant: Const) -> ConstId {
        self.consts.push(constant);
        ConstId(self.consts.len() as u32 - 1)
    }

    pub(crate) fn add_fn_ref(&mut self, fn_ref: FnRef) -> FnRefId {
        self.fn_refs.push(fn_ref);
        FnRefId(self.fn_refs.len() as u32 - 1)
    }
}

impl Index<ConstId> for Ast {
    type Output = Const;

    fn index(&self, id: ConstId) -> &Const {
        &self.pools.consts[id.0 as usize]
    }
}

impl Index<FnRefId> for Ast {
    type Output = FnRef;

    fn index(&self, id: FnRefId) -> &FnRef {
        &self.pools.fn_refs[id.0 as usize]
    }
}

impl Index<TypeExprId> for Ast {
    type Output = TypeExpr;

    fn index(&self, id: TypeExprId) -> &TypeExpr {
        &self.types[id]
    }
}

impl Index<Slice<Comment>> for Ast {
    type Output = [Comment];

    fn index(&self, slice: Slice<Comment>) -> &[Comment] {
        &self.comments[slice.range()]
    }
}

macro_rules! index_pools {
    ($($pool:ident: $entry:ty;)*) => {
        $(impl Index<Slice<$entry>> for Ast {
            type Output = [$entry];

            fn index(&self, slice: Slice<$entry>) -> &[$entry] {
                &self.pools.$pool[slice.range()]
            }
        })*
    };
}

index_pools! {
    exports: Export;
    imports: Import;
    names: Name;
    type_params: TypeParam;
    params: Param;
    meta_uses: MetaUse;
    meta_costs: MetaCost;
    fields: Field;
    variants: Variant;
    extern_fns: ExternFn;
    attributes: Attribute;
    type_uses: TypeUse;
    blocks: Block;
    unsafe_groups: ByteRange;
    instrs: Instr;
    type_args: TypeArg;
    args: Arg;
    list_items: ListItem;
    phi_arms: PhiArm;
    cases: Case;
}
