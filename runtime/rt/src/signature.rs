//! [`Entry`]: a C function with its signature in C, taken from its Rust type. So the table of rows
//! can be checked against the functions, and the header cannot say anything else than they do.

use crate::object::MpRtHeader;
use crate::typeinfo::MpRtTypeInfo;
use magpie_types::abi::AbiType;
use std::ffi::{c_char, c_void};

/// A C function.
pub(crate) struct Entry {
    pub(crate) address: *const (),
    /// Parameters, those for results included.
    pub(crate) params: &'static [CTypeInfo],
    /// What comes back; `None` when the function does not.
    pub(crate) ret: Option<CTypeInfo>,
}

/// A type of a parameter or result.
#[derive(Clone, Copy)]
pub(crate) struct CTypeInfo {
    /// The machine type; `None` for `void`.
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with the table in tests"))]
    pub(crate) abi: Option<AbiType>,
    /// The type in C text.
    pub(crate) name: fn() -> String,
}

/// A Rust type that a C function takes or gives back.
pub(crate) trait CType {
    const ABI: Option<AbiType>;
    fn name() -> String;
}

impl CTypeInfo {
    const fn of<T: CType>() -> CTypeInfo {
        CTypeInfo { abi: T::ABI, name: T::name }
    }
}

macro_rules! scalars {
    ($($rust:ty => $abi:expr, $name:literal;)*) => {
        $(impl CType for $rust {
            const ABI: Option<AbiType> = $abi;
            fn name() -> String {
                $name.to_string()
            }
        })*
    };
}

scalars! {
    () => None, "void";
    bool => Some(AbiType::Bool), "bool";
    i32 => Some(AbiType::I32), "int32_t";
    u32 => Some(AbiType::I32), "uint32_t";
    i64 => Some(AbiType::I64), "int64_t";
    u64 => Some(AbiType::I64), "uint64_t";
    f32 => Some(AbiType::F32), "float";
    f64 => Some(AbiType::F64), "double";
}

/// What an address of the C ABI may point to.
pub(crate) trait Pointee {
    /// What stands before the name where Rust says `*const`.
    const CONST: &'static str = "const ";
    fn name() -> String;
}

macro_rules! pointees {
    ($($rust:ty => $name:literal;)*) => {
        $(impl Pointee for $rust {
            fn name() -> String {
                $name.to_string()
            }
        })*
    };
}

pointees! {
    MpRtTypeInfo => "MpRtTypeInfo";
    c_char => "char";
    c_void => "void";
    // Memory of a type that only the program knows.
    u8 => "void";
    bool => "bool";
    i64 => "int64_t";
    u64 => "uint64_t";
    f64 => "double";
}

/// The counts of an object change behind every handle, so no handle is `const`.
impl Pointee for MpRtHeader {
    const CONST: &'static str = "";
    fn name() -> String {
        "MpRtHeader".to_string()
    }
}

impl<T: Pointee> Pointee for *mut T {
    fn name() -> String {
        <*mut T as CType>::name()
    }
}

impl<T: Pointee> CType for *const T {
    const ABI: Option<AbiType> = Some(AbiType::Ptr);
    fn name() -> String {
        format!("{}{}*", T::CONST, <T as Pointee>::name())
    }
}

impl<T: Pointee> CType for *mut T {
    const ABI: Option<AbiType> = Some(AbiType::Ptr);
    fn name() -> String {
        format!("{}*", <T as Pointee>::name())
    }
}

macro_rules! constructors {
    ($($name:ident($($param:ident),*);)*) => {
        $(pub(crate) fn $name<$($param: CType,)* R: CType>(
            function: unsafe extern "C" fn($($param),*) -> R,
        ) -> Entry {
            let params = const { &[$(CTypeInfo::of::<$param>()),*] };
            Entry { address: function as *const (), params, ret: Some(CTypeInfo::of::<R>()) }
        })*
    };
}

macro_rules! never_constructors {
    ($($name:ident($($param:ident),*);)*) => {
        $(pub(crate) fn $name<$($param: CType,)*>(
            function: unsafe extern "C" fn($($param),*) -> !,
        ) -> Entry {
            let params = const { &[$(CTypeInfo::of::<$param>()),*] };
            Entry { address: function as *const (), params, ret: None }
        })*
    };
}

impl Entry {
    constructors! {
        of0();
        of1(A);
        of2(A, B);
        of3(A, B, C);
        of4(A, B, C, D);
        of5(A, B, C, D, E);
        of6(A, B, C, D, E, F);
        of8(A, B, C, D, E, F, G, H);
        of11(A, B, C, D, E, F, G, H, I, J, K);
        of12(A, B, C, D, E, F, G, H, I, J, K, L);
    }

    // Functions that do not come back.
    never_constructors! {
        never1(A);
        never2(A, B);
        never4(A, B, C, D);
    }
}
