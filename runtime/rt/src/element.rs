//! How elements of arrays and keys of maps are copied, compared, hashed and ordered: by a built-in
//! class or by a function of the program.

use crate::merge_sort;
use crate::object::MpRtHeader;
use crate::panic::die;
use crate::string;
use magpie_types::abi::ScalarClass;
use magpie_types::float16::{bf16_to_f32, f16_to_f32};
use std::cmp::Ordering;

/// `bool (*)(const void*, const void*)`: whether two elements are equal.
pub(crate) type EqFn = unsafe extern "C" fn(*const u8, *const u8) -> bool;
/// `uint64_t (*)(const void*)`: equal elements have equal hashes.
pub(crate) type HashFn = unsafe extern "C" fn(*const u8) -> u64;
/// `int32_t (*)(const void*, const void*)`: negative, zero or positive.
pub(crate) type OrdFn = unsafe extern "C" fn(*const u8, *const u8) -> i32;

/// What an `eq`, `hash` or `ord` word of the C ABI says: a [`ScalarClass`] below 64, the address of
/// a function `F` above.
#[derive(Clone, Copy)]
pub(crate) enum Operation<F> {
    Class(ScalarClass),
    Function(F),
}

impl<F: Copy> Operation<F> {
    /// # Safety
    /// `word` is below 64 or the address of a function of type `F`.
    pub(crate) unsafe fn from_word(word: u64) -> Operation<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        if word >= 64 {
            let address = std::ptr::with_exposed_provenance::<()>(word as usize);
            // SAFETY: the caller says that a function of type `F` is there.
            return Operation::Function(unsafe { std::mem::transmute_copy(&address) });
        }
        match ScalarClass::from_u64(word) {
            Some(class) => Operation::Class(class),
            None => die(format_args!("error inside the runtime: no element class {word}")),
        }
    }
}

/// Copies a value of `size` bytes.
///
/// # Safety
/// Both addresses have `size` bytes, which do not overlap.
#[inline]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, size: usize) {
    // SAFETY: forwarded from the caller. The common sizes are single moves.
    unsafe {
        match size {
            1 => to.write(from.read()),
            2 => to.cast::<u16>().write_unaligned(from.cast::<u16>().read_unaligned()),
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            _ => to.copy_from_nonoverlapping(from, size),
        }
    }
}

/// An element of a built-in class.
#[derive(Clone, Copy)]
enum Scalar<'a> {
    Unsigned(u64),
    Signed(i64),
    /// Every float class fits `f64` exactly.
    Float(f64),
    Text(&'a str),
}

/// # Safety
/// `element` is the address of an element of the class that lives during `'a`.
#[inline]
unsafe fn load<'a>(class: ScalarClass, element: *const u8) -> Scalar<'a> {
    // SAFETY: the caller says what is there; elements are aligned for their class.
    unsafe {
        match class {
            ScalarClass::Bool | ScalarClass::U8 => Scalar::Unsigned(element.read().into()),
            ScalarClass::U16 => Scalar::Unsigned(element.cast::<u16>().read().into()),
            ScalarClass::U32 => Scalar::Unsigned(element.cast::<u32>().read().into()),
            ScalarClass::U64 => Scalar::Unsigned(element.cast::<u64>().read()),
            ScalarClass::I8 => Scalar::Signed(element.cast::<i8>().read().into()),
            ScalarClass::I16 => Scalar::Signed(element.cast::<i16>().read().into()),
            ScalarClass::I32 => Scalar::Signed(element.cast::<i32>().read().into()),
            ScalarClass::I64 => Scalar::Signed(element.cast::<i64>().read()),
            ScalarClass::F16 => Scalar::Float(f16_to_f32(element.cast::<u16>().read()).into()),
            ScalarClass::Bf16 => Scalar::Float(bf16_to_f32(element.cast::<u16>().read()).into()),
            ScalarClass::F32 => Scalar::Float(element.cast::<f32>().read().into()),
            ScalarClass::F64 => Scalar::Float(element.cast::<f64>().read()),
            ScalarClass::Str => {
                Scalar::Text(string::as_str(element.cast::<*mut MpRtHeader>().read()))
            }
        }
    }
}

/// Ascending order by value: `-0` and `0` are equal, every NaN comes last.
#[inline]
fn order_floats<T: PartialOrd + Copy>(a: T, b: T) -> Ordering {
    // Only a NaN is not equal to itself.
    #[expect(clippy::eq_op)]
    let is_nan = |v: T| v != v;
    a.partial_cmp(&b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
}

/// Ascending order: numbers by value ([`order_floats`]), text by bytes.
fn order(a: Scalar<'_>, b: Scalar<'_>) -> Ordering {
    match (a, b) {
        (Scalar::Unsigned(a), Scalar::Unsigned(b)) => a.cmp(&b),
        (Scalar::Signed(a), Scalar::Signed(b)) => a.cmp(&b),
        (Scalar::Float(a), Scalar::Float(b)) => order_floats(a, b),
        (Scalar::Text(a), Scalar::Text(b)) => a.cmp(b),
        // Both come from one class.
        (Scalar::Unsigned(_) | Scalar::Signed(_) | Scalar::Float(_) | Scalar::Text(_), _) => {
            Ordering::Equal
        }
    }
}

impl Operation<EqFn> {
    /// Whether two elements are equal. A NaN equals nothing.
    ///
    /// # Safety
    /// Both are addresses of live elements of this class or of the function's type.
    #[inline]
    pub(crate) unsafe fn equal(self, a: *const u8, b: *const u8) -> bool {
        // SAFETY: forwarded from the caller.
        unsafe {
            match self {
                Operation::Function(eq) => eq(a, b),
                Operation::Class(class) => match (load(class, a), load(class, b)) {
                    (Scalar::Float(a), Scalar::Float(b)) => a == b,
                    (a, b) => order(a, b) == Ordering::Equal,
                },
            }
        }
    }

    /// Whether two map keys are the same. Unlike [`Operation::equal`], all NaNs are one key, so
    /// that a NaN that was put in can be found and deleted.
    ///
    /// # Safety
    /// As [`Operation::equal`].
    #[inline]
    pub(crate) unsafe fn same_key(self, a: *const u8, b: *const u8) -> bool {
        // SAFETY: forwarded from the caller.
        unsafe {
            match self {
                Operation::Function(eq) => eq(a, b),
                // The usual keys, without the way through all classes.
                Operation::Class(ScalarClass::I64 | ScalarClass::U64) => {
                    a.cast::<u64>().read() == b.cast::<u64>().read()
                }
                Operation::Class(ScalarClass::Str) => {
                    let text = |at: *const u8| at.cast::<*mut MpRtHeader>().read();
                    text(a) == text(b) || string::mp_rt_str_eq(text(a), text(b))
                }
                Operation::Class(class) => order(load(class, a), load(class, b)) == Ordering::Equal,
            }
        }
    }
}

impl Operation<HashFn> {
    /// The hash of a map key; keys that are [`Operation::same_key`] have the same.
    ///
    /// # Safety
    /// `key` is the address of a live element of this class or of the function's type.
    #[inline]
    pub(crate) unsafe fn hash(self, key: *const u8) -> u64 {
        // SAFETY: forwarded from the caller.
        unsafe {
            let class = match self {
                Operation::Function(hash) => return hash(key),
                // The usual keys, without the way through all classes.
                Operation::Class(ScalarClass::I64 | ScalarClass::U64) => {
                    return key.cast::<u64>().read();
                }
                Operation::Class(ScalarClass::Str) => {
                    return string::hash(string::as_str(key.cast::<*mut MpRtHeader>().read()));
                }
                Operation::Class(class) => class,
            };
            match load(class, key) {
                Scalar::Unsigned(value) => value,
                Scalar::Signed(value) => value as u64,
                Scalar::Float(value) if value.is_nan() => f64::NAN.to_bits(),
                // Adding a positive zero turns -0 into 0.
                Scalar::Float(value) => (value + 0.0).to_bits(),
                Scalar::Text(text) => string::hash(text),
            }
        }
    }
}

/// Whether one of `len` elements is equal to another ([`Operation::equal`]).
///
/// # Safety
/// `data` is the address of `len` elements, `stride` bytes apart, of the class or of the
/// function's type, and `wanted` that of one more.
pub(crate) unsafe fn contains(
    data: *const u8,
    len: usize,
    stride: usize,
    wanted: *const u8,
    eq: Operation<EqFn>,
) -> bool {
    macro_rules! among {
        ($ty:ty) => {
            // SAFETY: the caller says that elements of this type are there.
            unsafe {
                let elements = std::slice::from_raw_parts(data.cast::<$ty>(), len);
                let wanted = wanted.cast::<$ty>().read();
                // Without a way out between, several are compared at once.
                let has = |part: &[$ty]| part.iter().fold(false, |has, &x| has | (x == wanted));
                elements.chunks(64).any(has)
            }
        };
    }
    let one_by_one = || {
        // SAFETY: forwarded from the caller.
        (0..len).any(|i| unsafe { eq.equal(data.add(i * stride), wanted) })
    };
    match eq {
        Operation::Function(_) => one_by_one(),
        Operation::Class(class) => match class {
            ScalarClass::Bool | ScalarClass::U8 | ScalarClass::I8 => among!(u8),
            ScalarClass::U16 | ScalarClass::I16 => among!(u16),
            ScalarClass::U32 | ScalarClass::I32 => among!(u32),
            ScalarClass::U64 | ScalarClass::I64 => among!(u64),
            ScalarClass::F32 => among!(f32),
            ScalarClass::F64 => among!(f64),
            ScalarClass::F16 | ScalarClass::Bf16 | ScalarClass::Str => one_by_one(),
        },
    }
}

/// Neighbouring elements of any type that change their places.
pub(crate) struct Run {
    data: *mut u8,
    len: usize,
    stride: usize,
}

impl Run {
    /// # Safety
    /// `data` is the address of `len` elements, `stride` bytes apart, that nobody else uses as long
    /// as this is used.
    pub(crate) unsafe fn new(data: *mut u8, len: usize, stride: usize) -> Run {
        Run { data, len, stride }
    }

    /// The bytes of all elements.
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `new` says that they are there.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len * self.stride) }
    }

    /// The first element becomes the last.
    pub(crate) fn rotate_left(mut self) {
        let stride = self.stride;
        self.bytes().rotate_left(stride);
    }

    /// The last element becomes the first.
    pub(crate) fn rotate_right(mut self) {
        let stride = self.stride;
        self.bytes().rotate_right(stride);
    }

    /// The last element becomes the first, and so on.
    ///
    /// # Safety
    /// The elements begin at an address that is aligned to 16 bytes.
    pub(crate) unsafe fn reverse(mut self) {
        macro_rules! elements {
            ($ty:ty) => {
                // SAFETY: elements of this size are there, and aligned to it like the first.
                unsafe { std::slice::from_raw_parts_mut(self.data.cast::<$ty>(), self.len) }
            };
        }
        match self.stride {
            1 => elements!(u8).reverse(),
            2 => elements!(u16).reverse(),
            4 => elements!(u32).reverse(),
            8 => elements!(u64).reverse(),
            16 => elements!(u128).reverse(),
            0 => {}
            stride => {
                let (mut low, mut high) = (0, self.len);
                let bytes = self.bytes();
                while low + 1 < high {
                    high -= 1;
                    let (head, tail) = bytes.split_at_mut(high * stride);
                    head[low * stride..][..stride].swap_with_slice(&mut tail[..stride]);
                    low += 1;
                }
            }
        }
    }
}

/// Sorts `len` elements in ascending order; equal ones keep their order.
///
/// # Safety
/// `data` is the address of `len` elements, `stride` bytes apart, of the class or of the
/// function's type, that nobody else uses during the call.
pub(crate) unsafe fn sort(data: *mut u8, len: usize, stride: usize, ord: Operation<OrdFn>) {
    macro_rules! elements {
        ($ty:ty) => {
            // SAFETY: the caller says that elements of this type are there.
            unsafe { std::slice::from_raw_parts_mut(data.cast::<$ty>(), len) }
        };
    }
    let class = match ord {
        Operation::Class(class) => class,
        Operation::Function(ord) => {
            // SAFETY: the sort hands out addresses of elements.
            let greater = |a, b| unsafe { ord(a, b) > 0 };
            // SAFETY: forwarded from the caller.
            return unsafe { merge_sort::sort_elements(data, len, stride, greater) };
        }
    };
    match class {
        // Equal integers cannot be told apart, so sorting them need not be stable.
        ScalarClass::Bool | ScalarClass::U8 => elements!(u8).sort_unstable(),
        ScalarClass::U16 => elements!(u16).sort_unstable(),
        ScalarClass::U32 => elements!(u32).sort_unstable(),
        ScalarClass::U64 => elements!(u64).sort_unstable(),
        ScalarClass::I8 => elements!(i8).sort_unstable(),
        ScalarClass::I16 => elements!(i16).sort_unstable(),
        ScalarClass::I32 => elements!(i32).sort_unstable(),
        ScalarClass::I64 => elements!(i64).sort_unstable(),
        ScalarClass::F16 => {
            elements!(u16).sort_by(|&a, &b| order_floats(f16_to_f32(a), f16_to_f32(b)));
        }
        ScalarClass::Bf16 => {
            elements!(u16).sort_by(|&a, &b| order_floats(bf16_to_f32(a), bf16_to_f32(b)));
        }
        ScalarClass::F32 => elements!(f32).sort_by(|&a, &b| order_floats(a, b)),
        ScalarClass::F64 => elements!(f64).sort_by(|&a, &b| order_floats(a, b)),
        ScalarClass::Str => elements!(*mut MpRtHeader).sort_by(|&a, &b| {
            // SAFETY: the elements are handles of live `Str`s.
            unsafe { string::as_str(a).cmp(string::as_str(b)) }
        }),
    }
}
