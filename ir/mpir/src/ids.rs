//! Dense ids of the things a function or a module owns.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of a table index.
            pub fn new(index: usize) -> $name {
                $name(index as u32)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id! {
    /// An SSA value of a function: a parameter, the result of an instruction, or a constant.
    /// Index into [`crate::MpirFn::locals`].
    Value, "%"
}
id! {
    /// An instruction of a function.
    Inst, "inst"
}
id! {
    /// A basic block of a function; block 0 is the entry.
    Block, "bb"
}
id! {
    /// A function of a module.
    FnId, "fn"
}
id! {
    /// An interned text of a module.
    StrId, "str"
}
