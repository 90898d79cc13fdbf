//! The words of the language as constant symbols.
//!
//! Every interner starts with the operation names, in the order of the operation table, and then
//! the words below: comparing a word with one of them is comparing two integers.

use crate::ast::AstOp;
use crate::interner::Symbol;

macro_rules! words {
    ($($name:ident $text:literal)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Index { $($name),* }
        $(#[doc = concat!("`", $text, "`")]
        pub const $name: Symbol = word(Index::$name as u32);)*
        const WORDS: &[&str] = &[$($text),*];
    };
}

const fn word(index: u32) -> Symbol {
    Symbol::from_index(AstOp::ALL.len() as u32 + index)
}

words! {
    // What a program that could not be parsed has in the place of a name.
    EMPTY ""

    // Reserved words, `MODULE` to `ELSE`.
    MODULE "module"
    EXPORTS "exports"
    IMPORTS "imports"
    DIGEST "digest"
    FN "fn"
    ASYNC "async"
    META "meta"
    USES "uses"
    EFFECTS "effects"
    COST "cost"
    HEAP "heap"
    VALUE "value"
    STRUCT "struct"
    ENUM "enum"
    EXTERN "extern"
    GLOBAL "global"
    UNSAFE "unsafe"
    GPU "gpu"
    TARGET "target"
    WORKGROUP "workgroup"
    REQUIRES "requires"
    SIG "sig"
    IMPL "impl"
    FIELD "field"
    VARIANT "variant"
    CASE "case"
    ELSE "else"

    // Words that start an instruction with a form of its own, `CALL` to `PHI`.
    CALL "call"
    CALL_VOID "call_void"
    CALL_INDIRECT "call.indirect"
    CALL_VOID_INDIRECT "call_void.indirect"
    SUSPEND_CALL "suspend.call"
    TRY "try"
    CALLABLE_CAPTURE "callable.capture"
    NEW "new"
    PHI "phi"

    // Terminators, `RET` to `UNREACHABLE`.
    RET "ret"
    BR "br"
    CBR "cbr"
    SWITCH "switch"
    UNREACHABLE "unreachable"

    // Type modifiers, `SHARED` to `WEAK`.
    SHARED "shared"
    BORROW "borrow"
    MUTBORROW "mutborrow"
    WEAK "weak"

    // Types that a constant may have, `UNIT` to `STR`; `unit` is a literal too.
    UNIT "unit"
    BOOL "bool"
    I1 "i1"
    I8 "i8"
    I16 "i16"
    I32 "i32"
    I64 "i64"
    I128 "i128"
    U1 "u1"
    U8 "u8"
    U16 "u16"
    U32 "u32"
    U64 "u64"
    U128 "u128"
    F16 "f16"
    F32 "f32"
    F64 "f64"
    BF16 "bf16"
    STR "Str"
    // The same in the same order, as constants.
    CONST_UNIT "const.unit"
    CONST_BOOL "const.bool"
    CONST_I1 "const.i1"
    CONST_I8 "const.i8"
    CONST_I16 "const.i16"
    CONST_I32 "const.i32"
    CONST_I64 "const.i64"
    CONST_I128 "const.i128"
    CONST_U1 "const.u1"
    CONST_U8 "const.u8"
    CONST_U16 "const.u16"
    CONST_U32 "const.u32"
    CONST_U64 "const.u64"
    CONST_U128 "const.u128"
    CONST_F16 "const.f16"
    CONST_F32 "const.f32"
    CONST_F64 "const.f64"
    CONST_BF16 "const.bf16"
    CONST_STR "const.Str"

    CONST "const"
    TRUE "true"
    FALSE "false"
    PTR "ptr"

    // Built-in generic types and their variants and fields.
    T_OPTION "TOption"
    T_RESULT "TResult"
    NONE "None"
    SOME "Some"
    OK "Ok"
    ERR "Err"
    OK_PROJECTION "ok"
    ERR_PROJECTION "err"

    // Words of declarations that are not reserved.
    TYPE "type"
    SEND "send"
    SYNC "sync"
    HASH "hash"
    EQ "eq"
    ORD "ord"
    FOR "for"
    ATTRS "attrs"

    // Argument keys, and words given for them, that are not reserved words.
    ADDR "addr"
    ARGS "args"
    ARR "arr"
    A "a"
    B "b"
    BLOCK "block"
    BUF "buf"
    C "c"
    CAP "cap"
    CMP "cmp"
    COND "cond"
    COUNT "count"
    CPU "cpu"
    DEVICE "device"
    DIM "dim"
    E "e"
    END "end"
    FALLBACK "fallback"
    FUT "fut"
    GRID "grid"
    IDX "idx"
    INIT "init"
    KERNEL "kernel"
    KEY "key"
    LANE "lane"
    LHS "lhs"
    MAP "map"
    MSG "msg"
    NO_FALLBACK "none"
    OBJ "obj"
    P "p"
    RHS "rhs"
    S "s"
    START "start"
    THEN "then"
    V "v"
    VAL "val"
}

/// The texts of the first symbols of every interner, in order.
pub(crate) fn predefined() -> impl Iterator<Item = &'static str> {
    AstOp::ALL.iter().map(|op| op.name()).chain(WORDS.iter().copied())
}

/// Words that cannot name a variant, a type parameter, a foreign module or a module of one word.
pub fn is_reserved(symbol: Symbol) -> bool {
    (MODULE..=ELSE).contains(&symbol)
}

/// Words that end a block.
pub(crate) fn is_terminator(symbol: Symbol) -> bool {
    (RET..=UNREACHABLE).contains(&symbol)
}

/// The names of the special forms and of the terminators, for suggestions.
pub(crate) fn statement_words() -> impl Iterator<Item = &'static str> {
    let first = CALL.index() - AstOp::ALL.len();
    let last = UNREACHABLE.index() - AstOp::ALL.len();
    WORDS[first..=last].iter().copied()
}

/// The type of `const.T` when it is one of the types that a constant may have.
pub(crate) fn const_type(symbol: Symbol) -> Option<Symbol> {
    if !(CONST_UNIT..=CONST_STR).contains(&symbol) {
        return None;
    }
    Some(Symbol::from_index((symbol.index() - CONST_UNIT.index() + UNIT.index()) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interner;

    #[test]
    fn constants_agree_with_the_interner() {
        let interner = Interner::new();
        assert_eq!(interner.len(), predefined().count());
        for (symbol, text) in
            [(MODULE, "module"), (ELSE, "else"), (LHS, "lhs"), (VAL, "val"), (EMPTY, "")]
        {
            assert_eq!(interner.lookup(text), Some(symbol));
        }
        for index in CONST_UNIT.index()..=CONST_STR.index() {
            let constant = Symbol::from_index(index as u32);
            let ty = const_type(constant).map(|ty| interner.resolve(ty));
            assert_eq!(ty, interner.resolve(constant).strip_prefix("const."));
        }
        assert_eq!(const_type(CONST), None);
    }

    #[test]
    fn word_classes() {
        assert!(is_reserved(FN) && is_reserved(MODULE) && is_reserved(ELSE));
        assert!(!is_reserved(CALL) && !is_reserved(TYPE));
        assert!(is_terminator(RET) && is_terminator(UNREACHABLE) && !is_terminator(PHI));
        let words: Vec<_> = statement_words().collect();
        assert_eq!((words.first(), words.last()), (Some(&"call"), Some(&"unreachable")));
    }
}
