//! [`MpRtTypeInfo`]: what the runtime knows of a type, and its construction from compiler types.
//!
//! An info describes either a value as it lies in an array, a map or a field, or the payload of a
//! heap object. Both say where the counted handles are, so that copies and drops need no code of
//! the program.

use crate::gpu_error;
use crate::object::MpRtHeader;
use magpie_types::{Layout, RefMode, TypeCtx, TypeId, TypeKind, fixed};
use rustc_hash::FxHashMap;
use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Releases what an object holds besides the handles its info lists. Called once, when the last
/// strong handle is gone; weak handles may still exist.
pub type DropFn = unsafe extern "C" fn(obj: *mut MpRtHeader);

/// Flag of [`MpRtTypeInfo`]: the payload is a `u64` and that many bytes more (`Str`).
pub const FLAG_LENGTH_PREFIXED: u32 = 1;

/// The description of a type. Infos live as long as the process.
#[repr(C)]
pub struct MpRtTypeInfo {
    /// Run-time type id (language reference, section 5.2).
    pub type_id: u32,
    /// [`FLAG_LENGTH_PREFIXED`] or 0.
    pub flags: u32,
    /// Bytes of a value, or of the payload of an object.
    pub size: u32,
    /// Alignment in bytes, a power of two of at most 32 for objects.
    pub align: u32,
    /// Number of entries of `strong`.
    pub num_strong: u32,
    /// Number of entries of `weak`.
    pub num_weak: u32,
    /// Byte offsets of counted handles from the start of the value or payload.
    pub strong: *const u32,
    /// Byte offsets of weak handles.
    pub weak: *const u32,
    /// Called before the handles of a dying object are released; null for values.
    pub drop_fn: Option<DropFn>,
    /// Canonical type name, a C string.
    pub name: *const c_char,
}

// SAFETY: an info is never written to after its construction, and what it points to is immutable
// and lives as long as the process.
unsafe impl Send for MpRtTypeInfo {}
// SAFETY: as above.
unsafe impl Sync for MpRtTypeInfo {}

static HANDLE_AT_START: [u32; 1] = [0];

impl MpRtTypeInfo {
    /// A type without handles.
    pub const fn plain(id: TypeId, size: u32, align: u32, name: &'static CStr) -> MpRtTypeInfo {
        MpRtTypeInfo {
            type_id: id.0,
            flags: 0,
            size,
            align,
            num_strong: 0,
            num_weak: 0,
            strong: ptr::null(),
            weak: ptr::null(),
            drop_fn: None,
            name: name.as_ptr(),
        }
    }

    /// A counted handle to an object of the given type.
    pub const fn handle(id: TypeId, name: &'static CStr) -> MpRtTypeInfo {
        let plain = MpRtTypeInfo::plain(id, 8, 8, name);
        MpRtTypeInfo { num_strong: 1, strong: HANDLE_AT_START.as_ptr(), ..plain }
    }

    /// An object whose payload only `drop_fn` understands.
    pub const fn opaque(
        id: TypeId,
        size: usize,
        align: usize,
        drop_fn: DropFn,
        name: &'static CStr,
    ) -> MpRtTypeInfo {
        let plain = MpRtTypeInfo::plain(id, size as u32, align as u32, name);
        MpRtTypeInfo { drop_fn: Some(drop_fn), ..plain }
    }

    /// Bytes from one element of an array to the next.
    #[inline]
    pub fn stride(&self) -> usize {
        let mask = self.align as usize - 1;
        (self.size as usize + mask) & !mask
    }

    /// Whether copies and drops of a value have to count.
    #[inline]
    pub fn has_handles(&self) -> bool {
        self.num_strong | self.num_weak != 0
    }

    /// Byte offsets of counted handles.
    #[inline]
    pub fn strong_offsets(&self) -> &'static [u32] {
        // SAFETY: `strong` points to `num_strong` offsets that live as long as the process.
        unsafe { offsets(self.strong, self.num_strong) }
    }

    /// Byte offsets of weak handles.
    #[inline]
    pub fn weak_offsets(&self) -> &'static [u32] {
        // SAFETY: `weak` points to `num_weak` offsets that live as long as the process.
        unsafe { offsets(self.weak, self.num_weak) }
    }
}

unsafe fn offsets(start: *const u32, count: u32) -> &'static [u32] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller passes the start and the number of immutable offsets.
    unsafe { std::slice::from_raw_parts(start, count as usize) }
}

/// `u8` as an element.
pub static U8: MpRtTypeInfo = MpRtTypeInfo::plain(fixed::U8, 1, 1, c"u8");
/// `f64` as an element.
pub static F64: MpRtTypeInfo = MpRtTypeInfo::plain(fixed::F64, 8, 8, c"f64");
/// `Str` as an element: a handle.
pub static STR: MpRtTypeInfo = MpRtTypeInfo::handle(fixed::STR, c"Str");

/// Makes infos from the types of a program.
///
/// Equal infos are one, also those of different programs, so running a program again in one
/// process takes no more memory.
pub struct TypeInfos<'a> {
    ctx: &'a TypeCtx,
    ids: FxHashMap<TypeId, u32>,
}

impl<'a> TypeInfos<'a> {
    /// For the types of `ctx`, with their stable ids ([`TypeCtx::runtime_ids`]).
    pub fn new(ctx: &'a TypeCtx) -> TypeInfos<'a> {
        TypeInfos { ctx, ids: ctx.runtime_ids() }
    }

    /// A value of type `ty` as an element or field: a handle for heap types, the leaves of an
    /// aggregate.
    pub fn for_value(&self, ty: TypeId) -> &'static MpRtTypeInfo {
        let mut handles = Handles::default();
        handles.add(self.ctx, ty, 0);
        intern(self.describe(ty, self.ctx.layout(ty), handles))
    }

    /// The payload of a heap struct or heap enum ([`TypeCtx::object_layout`]). `None` for all other
    /// types: their objects, if any, are made by the runtime.
    pub fn for_object(&self, ty: TypeId) -> Option<&'static MpRtTypeInfo> {
        if ty == fixed::GPU_ERROR {
            return Some(gpu_error::info());
        }
        let layout = self.ctx.object_layout(ty)?;
        let mut handles = Handles::default();
        let mut add = |fields: &[magpie_types::Field], offsets: &[u32]| {
            for (field, &offset) in fields.iter().zip(offsets) {
                handles.add(self.ctx, field.ty, offset);
            }
        };
        match self.ctx.kind(ty) {
            TypeKind::Enum(e) => {
                for (variant, offsets) in self.ctx.enum_def(e).variants.iter().zip(&layout.fields) {
                    add(&variant.fields, offsets);
                }
            }
            TypeKind::Struct(s) => add(&self.ctx.struct_def(s).fields, &layout.fields[0]),
            _ => return None,
        }
        Some(intern(self.describe(ty, layout.payload, handles)))
    }

    /// The payload of a callable that captures values of the given types
    /// ([`TypeCtx::callable_layout`]).
    pub fn for_callable(&self, captures: &[TypeId]) -> &'static MpRtTypeInfo {
        let layout = self.ctx.callable_layout(captures);
        let mut handles = Handles::default();
        for (&ty, &offset) in captures.iter().zip(&layout.fields[0]) {
            handles.add(self.ctx, ty, offset);
        }
        intern(Description {
            type_id: fixed::CALLABLE.0,
            layout: (layout.payload.size, layout.payload.align),
            handles,
            name: c"TCallable".into(),
        })
    }

    fn describe(&self, ty: TypeId, layout: Layout, handles: Handles) -> Description {
        // A canonical name holds no NUL; were there one, the name would be empty.
        let name = CString::new(self.ctx.name(ty)).unwrap_or_default();
        let type_id = self.ids.get(&ty).copied().unwrap_or(ty.0);
        Description { type_id, layout: (layout.size, layout.align), handles, name }
    }
}

/// Byte offsets of the handles in a value or payload.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Handles {
    strong: Vec<u32>,
    weak: Vec<u32>,
}

impl Handles {
    fn add(&mut self, ctx: &TypeCtx, ty: TypeId, offset: u32) {
        for leaf in ctx.leaves(ty) {
            match ctx.kind(leaf.ty) {
                TypeKind::Ref(RefMode::Shared, _) => self.strong.push(offset + leaf.offset),
                TypeKind::Ref(RefMode::Weak, _) => self.weak.push(offset + leaf.offset),
                _ if ctx.is_heap(leaf.ty) => self.strong.push(offset + leaf.offset),
                _ => {}
            }
        }
    }
}

/// What tells infos apart.
#[derive(PartialEq, Eq, Hash)]
struct Description {
    type_id: u32,
    layout: (u32, u32),
    handles: Handles,
    name: CString,
}

fn intern(description: Description) -> &'static MpRtTypeInfo {
    type Interned = FxHashMap<&'static Description, &'static MpRtTypeInfo>;
    static INTERNED: LazyLock<Mutex<Interned>> = LazyLock::new(Mutex::default);
    let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(info) = interned.get(&description) {
        return info;
    }
    let kept: &'static Description = Box::leak(Box::new(description));
    let info: &'static MpRtTypeInfo = Box::leak(Box::new(MpRtTypeInfo {
        type_id: kept.type_id,
        flags: 0,
        size: kept.layout.0,
        align: kept.layout.1,
        num_strong: kept.handles.strong.len() as u32,
        num_weak: kept.handles.weak.len() as u32,
        strong: kept.handles.strong.as_ptr(),
        weak: kept.handles.weak.as_ptr(),
        drop_fn: None,
        name: kept.name.as_ptr(),
    }));
    interned.insert(kept, info);
    info
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_types::{Category, Field, Variant};

    fn field(name: &str, ty: TypeId) -> Field {
        Field { name: name.into(), ty }
    }

    #[test]
    fn values_list_their_handles() {
        let mut ctx = TypeCtx::new();
        let weak_str = ctx.intern(TypeKind::Ref(RefMode::Weak, fixed::STR));
        let shared_str = ctx.intern(TypeKind::Ref(RefMode::Shared, fixed::STR));
        let result = ctx.intern(TypeKind::Result(fixed::I64, fixed::STR));
        let array = ctx.intern(TypeKind::Array(fixed::I32));
        let infos = TypeInfos::new(&ctx);
        let of = |ty| {
            let info = infos.for_value(ty);
            (info.size, info.strong_offsets(), info.weak_offsets())
        };
        assert_eq!(of(fixed::F32), (4, &[][..], &[][..]));
        assert_eq!(of(fixed::UNIT), (0, &[][..], &[][..]));
        assert_eq!(of(fixed::STR), (8, &[0][..], &[][..]));
        assert_eq!(of(array), (8, &[0][..], &[][..]));
        assert_eq!(of(shared_str), (8, &[0][..], &[][..]));
        assert_eq!(of(weak_str), (8, &[][..], &[0][..]));
        // Tag, ok, err.
        assert_eq!(of(result), (24, &[16][..], &[][..]));
    }

    #[test]
    fn objects_list_the_handles_of_all_variants() {
        let mut ctx = TypeCtx::new();
        let ty = ctx.declare_enum("m.TTree", Category::Heap);
        let TypeKind::Enum(id) = ctx.kind(ty) else { panic!("an enum was declared") };
        let weak = ctx.intern(TypeKind::Ref(RefMode::Weak, ty));
        let leaf = Variant { name: "Leaf".into(), fields: vec![field("text", fixed::STR)] };
        let node = Variant {
            name: "Node".into(),
            fields: vec![field("n", fixed::I32), field("left", ty), field("up", weak)],
        };
        ctx.define_enum(id, vec![leaf, node]);
        let info = TypeInfos::new(&ctx).for_object(ty).unwrap();
        assert_eq!(info.strong_offsets(), [8, 24]);
        assert_eq!(info.weak_offsets(), [32]);
        assert_eq!((info.size, info.align), (40, 8));
        // SAFETY: the name of an info is a C string.
        let name = unsafe { CStr::from_ptr(info.name) };
        assert_eq!(name, c"m.TTree");
    }

    #[test]
    fn equal_infos_are_one() {
        let ctx = TypeCtx::new();
        let (first, second) = (TypeInfos::new(&ctx), TypeInfos::new(&ctx));
        assert!(ptr::eq(first.for_value(fixed::STR), second.for_value(fixed::STR)));
        let captures = [fixed::STR, fixed::I32];
        assert!(ptr::eq(first.for_callable(&captures), second.for_callable(&captures)));
        assert!(!ptr::eq(first.for_callable(&captures), second.for_callable(&[])));
    }

    #[test]
    fn callables_keep_the_code_address_in_front() {
        let info = TypeInfos::new(&TypeCtx::new()).for_callable(&[fixed::BOOL, fixed::STR]);
        assert_eq!((info.size, info.strong_offsets()), (24, &[16][..]));
        assert_eq!(info.type_id, fixed::CALLABLE.0);
    }

    #[test]
    fn objects_of_the_runtime_have_no_program_info() {
        let ctx = TypeCtx::new();
        let infos = TypeInfos::new(&ctx);
        assert!(infos.for_object(fixed::STR).is_none());
        assert!(infos.for_object(fixed::I32).is_none());
        assert!(ptr::eq(infos.for_object(fixed::GPU_ERROR).unwrap(), gpu_error::info()));
    }
}
