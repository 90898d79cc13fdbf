//! The functions of the language's own modules: `std.*`, `gpu.host`, `gpu.profile`.
//!
//! One table says everything about them: path, type parameter, parameters, result, and how a call
//! becomes MPIR. A package adds its functions by adding rows.

mod table;

use magpie_mpir::Op;
use magpie_types::abi::RtFn;
use magpie_types::{RefMode, TypeCtx, TypeId, TypeKind};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// A built-in function: an index into the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct BuiltinId(u16);

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Builtin {
    /// The dotted path of the module.
    pub(crate) module: &'static str,
    /// The name without `@`.
    pub(crate) name: &'static str,
    /// Whether it takes a type argument.
    pub(crate) generic: bool,
    /// Names and types of the parameters.
    pub(crate) params: &'static [(&'static str, Ty)],
    /// The result.
    pub(crate) result: Ty,
    /// What a call becomes.
    pub(crate) lowering: Lowering,
}

/// What a call of a built-in function becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lowering {
    /// A call of the runtime with the arguments in order.
    Runtime(RtFn),
    /// An operation on the arguments.
    Op(Op),
    /// The absolute value of an integer; the host panics when it does not fit.
    Abs,
    /// A call of a function that is made of MPIR when it is first needed.
    Function(Body),
    /// A kernel launch; its arguments are those of `gpu.launch` and a session.
    ProfiledLaunch,
}

/// Functions whose bodies the front end makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// Panics unless its first parameter is true.
    Assert,
    /// Panics unless its first two parameters are equal.
    AssertEq,
    /// Panics when its first two parameters are equal.
    AssertNe,
    /// Panics.
    Fail,
}

/// A type in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ty {
    /// A type that needs no arguments.
    Fixed(TypeId),
    /// `gpu.MemoryHint`
    MemoryHint,
    /// The type argument.
    Param,
    /// `borrow T`
    Borrow(&'static Ty),
    /// `mutborrow T`
    MutBorrow(&'static Ty),
    /// `Array<T>`
    Array(&'static Ty),
    /// `Map<K, V>`
    Map(&'static Ty, &'static Ty),
    /// `TOption<T>`
    Option(&'static Ty),
    /// `TResult<T, E>`
    Result(&'static Ty, &'static Ty),
    /// `gpu.TBuffer<T>`
    Buffer(&'static Ty),
}

impl Ty {
    /// The type, with `param` for the type argument.
    pub(crate) fn instantiate(self, types: &mut TypeCtx, param: Option<TypeId>) -> TypeId {
        let mut of = |t: &Ty| t.instantiate(types, param);
        let kind = match self {
            Ty::Fixed(ty) => return ty,
            Ty::Param => return param.unwrap_or(magpie_types::fixed::UNIT),
            Ty::MemoryHint => return memory_hint(types),
            Ty::Borrow(t) => TypeKind::Ref(RefMode::Borrow, of(t)),
            Ty::MutBorrow(t) => TypeKind::Ref(RefMode::MutBorrow, of(t)),
            Ty::Array(t) => TypeKind::Array(of(t)),
            Ty::Map(k, v) => TypeKind::Map(of(k), of(v)),
            Ty::Option(t) => TypeKind::Option(of(t)),
            Ty::Result(t, e) => TypeKind::Result(of(t), of(e)),
            Ty::Buffer(t) => TypeKind::Buffer(of(t)),
        };
        types.intern(kind)
    }
}

/// The type `gpu.MemoryHint`, which has no fixed id.
pub(crate) fn memory_hint(types: &TypeCtx) -> TypeId {
    let found = types.enums().find(|(_, def)| def.name == "gpu.MemoryHint");
    found.map_or(magpie_types::fixed::U32, |(_, def)| def.ty)
}

static BY_NAME: LazyLock<FxHashMap<(&'static str, &'static str), BuiltinId>> =
    LazyLock::new(|| {
        let rows = table::ROWS.iter().enumerate();
        rows.map(|(i, row)| ((row.module, row.name), BuiltinId(i as u16))).collect()
    });

impl BuiltinId {
    /// The function of a module and a name without `@`.
    pub(crate) fn find(module: &str, name: &str) -> Option<BuiltinId> {
        BY_NAME.get(&(module, name)).copied()
    }

    /// Its row.
    pub(crate) fn row(self) -> &'static Builtin {
        &table::ROWS[self.0 as usize]
    }
}

/// The parameters of `gpu.profile.@launch_profiled`; the last four have no types of the language.
pub(crate) const PROFILED_LAUNCH_PARAMS: [&str; 6] =
    ["session", "dev", "kernel", "grid", "block", "args"];

impl Builtin {
    /// The names of the parameters, in order.
    pub(crate) fn param_names(&self) -> Vec<&'static str> {
        match self.lowering {
            Lowering::ProfiledLaunch => PROFILED_LAUNCH_PARAMS.to_vec(),
            Lowering::Runtime(_) | Lowering::Op(_) | Lowering::Abs | Lowering::Function(_) => {
                self.params.iter().map(|(name, _)| *name).collect()
            }
        }
    }

    /// `path.@name`
    pub(crate) fn full_name(&self) -> String {
        format!("{}.@{}", self.module, self.name)
    }
}

/// Whether the path starts with the name of a package of the language itself.
pub(crate) fn is_language_module(path: &str) -> bool {
    matches!(path.split('.').next(), Some("std" | "gpu" | "mlx"))
}

/// Whether the path belongs to the package `mlx`.
pub(crate) fn is_mlx(path: &str) -> bool {
    path.split('.').next() == Some("mlx")
}

/// Every path of a module of the language, for suggestions.
pub(crate) fn module_paths() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    table::ROWS.iter().filter_map(move |row| {
        let is_new = row.module != last;
        last = row.module;
        is_new.then_some(row.module)
    })
}

/// The names of the functions of a module, without `@`.
pub(crate) fn names_in(module: &str) -> impl Iterator<Item = &'static str> {
    table::ROWS.iter().filter(move |row| row.module == module).map(|row| row.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_mpir::ownership::operand_params;

    #[test]
    fn rows_have_distinct_names_and_stand_by_module() {
        assert_eq!(BY_NAME.len(), table::ROWS.len());
        let mut paths: Vec<_> = module_paths().collect();
        let count = paths.len();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), count, "the rows of a module stand together");
    }

    #[test]
    fn arguments_of_runtime_functions_are_complete() {
        for row in table::ROWS {
            if let Lowering::Runtime(rt) = row.lowering {
                assert_eq!(operand_params(rt).count(), row.params.len(), "{}", row.full_name());
            }
        }
    }
}
