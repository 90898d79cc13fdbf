//! [`TypeCtx`]: all types of a build, interned.

use crate::PrimType;
use rustc_hash::FxHashMap;
use std::fmt::Write;
use std::sync::{Arc, LazyLock};

/// A type of a [`TypeCtx`]. Ids below 1000 are fixed ([`fixed`]); equal ids mean equal types.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TypeId(pub u32);

/// A struct definition of a [`TypeCtx`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StructId(pub u32);

/// An enum definition of a [`TypeCtx`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EnumId(pub u32);

/// A function signature of a [`TypeCtx`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SigId(pub u32);

/// Fixed type ids (language reference, sections 5.1 and 5.2; GPU specification, section 3.5).
pub mod fixed {
    use super::TypeId;
    #[allow(missing_docs)]
    pub const UNIT: TypeId = TypeId(0);
    #[allow(missing_docs)]
    pub const BOOL: TypeId = TypeId(1);
    #[allow(missing_docs)]
    pub const I8: TypeId = TypeId(2);
    #[allow(missing_docs)]
    pub const I16: TypeId = TypeId(3);
    #[allow(missing_docs)]
    pub const I32: TypeId = TypeId(4);
    #[allow(missing_docs)]
    pub const I64: TypeId = TypeId(5);
    #[allow(missing_docs)]
    pub const U8: TypeId = TypeId(7);
    #[allow(missing_docs)]
    pub const U16: TypeId = TypeId(8);
    #[allow(missing_docs)]
    pub const U32: TypeId = TypeId(9);
    #[allow(missing_docs)]
    pub const U64: TypeId = TypeId(10);
    #[allow(missing_docs)]
    pub const F16: TypeId = TypeId(13);
    #[allow(missing_docs)]
    pub const F32: TypeId = TypeId(14);
    #[allow(missing_docs)]
    pub const F64: TypeId = TypeId(15);
    #[allow(missing_docs)]
    pub const BF16: TypeId = TypeId(16);
    #[allow(missing_docs)]
    pub const STR: TypeId = TypeId(20);
    #[allow(missing_docs)]
    pub const STR_BUILDER: TypeId = TypeId(21);
    /// Base of `Array<?>`; the run-time id of every array.
    pub const ARRAY: TypeId = TypeId(22);
    /// Base of `Map<?,?>`.
    pub const MAP: TypeId = TypeId(23);
    /// Base of `TOption<?>`.
    pub const OPTION: TypeId = TypeId(24);
    /// Base of `TResult<?,?>`.
    pub const RESULT: TypeId = TypeId(25);
    /// Base of `TCallable<?>`.
    pub const CALLABLE: TypeId = TypeId(26);
    #[allow(missing_docs)]
    pub const GPU_DEVICE: TypeId = TypeId(30);
    /// Base of `gpu.TBuffer<?>`.
    pub const GPU_BUFFER: TypeId = TypeId(31);
    #[allow(missing_docs)]
    pub const GPU_FENCE: TypeId = TypeId(32);
    #[allow(missing_docs)]
    pub const GPU_ERROR: TypeId = TypeId(33);
    #[allow(missing_docs)]
    pub const GPU_ERROR_KIND: TypeId = TypeId(34);
    #[allow(missing_docs)]
    pub const GPU_PROFILE_SESSION: TypeId = TypeId(35);
    #[allow(missing_docs)]
    pub const GPU_PROFILE_EVENT: TypeId = TypeId(36);
    #[allow(missing_docs)]
    pub const GPU_MEMORY_STATS: TypeId = TypeId(37);
    /// Base of `mlx.TArray<?>`.
    pub const MLX_ARRAY: TypeId = TypeId(38);
    #[allow(missing_docs)]
    pub const MLX_LAYER: TypeId = TypeId(39);
    #[allow(missing_docs)]
    pub const MLX_OPTIMIZER: TypeId = TypeId(40);
    /// Run time only; cannot be named in source.
    pub const GPU_KERNEL: TypeId = TypeId(50);
    /// A device-resident binding of Miri. Run time only: MPIR sees it as a `gpu.TBuffer`.
    pub const GPU_RESIDENT: TypeId = TypeId(51);
    /// The first id of a type without a fixed one.
    pub const FIRST_DYNAMIC: u32 = 1000;
}

/// How a handle to a heap object is held (language reference, section 5.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RefMode {
    /// A read-only view that owns nothing.
    Borrow,
    /// An exclusive view that owns nothing.
    MutBorrow,
    /// A counted handle that others may hold too.
    Shared,
    /// A handle that does not keep the object alive.
    Weak,
}

impl RefMode {
    /// The word in source text.
    pub fn name(self) -> &'static str {
        match self {
            RefMode::Borrow => "borrow",
            RefMode::MutBorrow => "mutborrow",
            RefMode::Shared => "shared",
            RefMode::Weak => "weak",
        }
    }
}

/// Runtime objects that the language sees only as handles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OpaqueKind {
    #[allow(missing_docs)]
    StrBuilder,
    #[allow(missing_docs)]
    GpuDevice,
    #[allow(missing_docs)]
    GpuFence,
    #[allow(missing_docs)]
    GpuProfileSession,
    #[allow(missing_docs)]
    GpuKernel,
    #[allow(missing_docs)]
    MlxLayer,
    #[allow(missing_docs)]
    MlxOptimizer,
}

/// The structure of a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TypeKind {
    /// A scalar.
    Prim(PrimType),
    /// 2, 3 or 4 components of one scalar type; in lowered host code as many as are done at once, up
    /// to 64.
    Vec(PrimType, u8),
    /// Immutable UTF-8 text on the heap.
    Str,
    /// A runtime object seen only as a handle.
    Opaque(OpaqueKind),
    /// A growable array on the heap.
    Array(TypeId),
    /// An insertion-ordered hash map on the heap.
    Map(TypeId, TypeId),
    /// `None` or `Some { v }`: an aggregate, not a heap object.
    Option(TypeId),
    /// `Ok { v }` or `Err { e }`: an aggregate, not a heap object.
    Result(TypeId, TypeId),
    /// A function with captured values, on the heap.
    Callable(SigId),
    /// `gpu.TBuffer<T>`.
    Buffer(TypeId),
    /// `mlx.TArray<T>`.
    MlxArray(TypeId),
    /// An untyped machine address on the host, or the source type `rawptr<T>`.
    RawPtr(TypeId),
    /// An array of `len` elements private to a workgroup (`gpu.shared`).
    SharedArray(TypeId, u32),
    /// An array of `len` elements private to an invocation (`gpu.local`).
    LocalArray(TypeId, u32),
    /// A user or built-in struct.
    Struct(StructId),
    /// A user or built-in enum.
    Enum(EnumId),
    /// A borrowed, shared or weak handle.
    Ref(RefMode, TypeId),
}

/// Whether values live on the heap or are copied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Category {
    /// A counted object.
    Heap,
    /// Copied bits.
    Value,
}

/// A named member of a struct or a variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    #[allow(missing_docs)]
    pub name: String,
    #[allow(missing_docs)]
    pub ty: TypeId,
}

/// A struct definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StructDef {
    /// Canonical name: `module.path.TName`, with type arguments for an instance.
    pub name: String,
    #[allow(missing_docs)]
    pub category: Category,
    /// In declaration order, which is memory order.
    pub fields: Vec<Field>,
    /// The type itself.
    pub ty: TypeId,
}

/// One alternative of an enum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    #[allow(missing_docs)]
    pub name: String,
    #[allow(missing_docs)]
    pub fields: Vec<Field>,
}

/// An enum definition. Tags count from 0 in declaration order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnumDef {
    /// Canonical name.
    pub name: String,
    /// Value enums have no fields and are their tag: an `i32`.
    pub category: Category,
    #[allow(missing_docs)]
    pub variants: Vec<Variant>,
    /// The type itself.
    pub ty: TypeId,
}

/// Parameter and result types of a callable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SigDef {
    /// Canonical name.
    pub name: String,
    #[allow(missing_docs)]
    pub params: Vec<TypeId>,
    #[allow(missing_docs)]
    pub ret: TypeId,
}

/// All types of a build. Types without a fixed id get ids from 1000 up in the order of first use;
/// [`TypeCtx::runtime_ids`] gives the stable ids of section 5.2.
#[derive(Clone, Debug)]
pub struct TypeCtx {
    fixed: Vec<Option<TypeKind>>,
    dynamic: Vec<TypeKind>,
    interned: FxHashMap<TypeKind, TypeId>,
    // Copies of a context share the definitions.
    structs: Vec<Arc<StructDef>>,
    enums: Vec<Arc<EnumDef>>,
    sigs: Vec<Arc<SigDef>>,
}

impl Default for TypeCtx {
    fn default() -> Self {
        TypeCtx::new()
    }
}

impl TypeCtx {
    /// A context that holds the built-in types only.
    pub fn new() -> TypeCtx {
        static BUILT_IN: LazyLock<TypeCtx> = LazyLock::new(TypeCtx::built_in);
        BUILT_IN.clone()
    }

    fn built_in() -> TypeCtx {
        let mut ctx = TypeCtx {
            fixed: vec![None; 64],
            dynamic: Vec::new(),
            interned: FxHashMap::default(),
            structs: Vec::new(),
            enums: Vec::new(),
            sigs: Vec::new(),
        };
        for prim in PrimType::ALL {
            ctx.fix(prim.id(), TypeKind::Prim(prim));
        }
        ctx.fix(fixed::STR, TypeKind::Str);
        ctx.fix(fixed::STR_BUILDER, TypeKind::Opaque(OpaqueKind::StrBuilder));
        ctx.fix(fixed::GPU_DEVICE, TypeKind::Opaque(OpaqueKind::GpuDevice));
        ctx.fix(fixed::GPU_FENCE, TypeKind::Opaque(OpaqueKind::GpuFence));
        ctx.fix(fixed::GPU_PROFILE_SESSION, TypeKind::Opaque(OpaqueKind::GpuProfileSession));
        ctx.fix(fixed::GPU_KERNEL, TypeKind::Opaque(OpaqueKind::GpuKernel));
        ctx.fix(fixed::MLX_LAYER, TypeKind::Opaque(OpaqueKind::MlxLayer));
        ctx.fix(fixed::MLX_OPTIMIZER, TypeKind::Opaque(OpaqueKind::MlxOptimizer));
        crate::builtin::define(&mut ctx);
        ctx
    }

    fn fix(&mut self, id: TypeId, kind: TypeKind) {
        self.fixed[id.0 as usize] = Some(kind);
        self.interned.insert(kind, id);
    }

    /// The id of a type, made on first use.
    pub fn intern(&mut self, kind: TypeKind) -> TypeId {
        if let Some(&id) = self.interned.get(&kind) {
            return id;
        }
        let id = TypeId(fixed::FIRST_DYNAMIC + self.dynamic.len() as u32);
        self.dynamic.push(kind);
        self.interned.insert(kind, id);
        id
    }

    /// The id of a type that is already known.
    pub fn lookup(&self, kind: TypeKind) -> Option<TypeId> {
        self.interned.get(&kind).copied()
    }

    /// The structure of a type. Every id that this context handed out has one.
    pub fn kind(&self, id: TypeId) -> TypeKind {
        let slot = id.0 as usize;
        if slot < self.fixed.len() {
            self.fixed[slot].expect("ids come from this context")
        } else {
            self.dynamic[slot - fixed::FIRST_DYNAMIC as usize]
        }
    }

    /// Whether `id` belongs to this context.
    pub fn contains(&self, id: TypeId) -> bool {
        let slot = id.0 as usize;
        match self.fixed.get(slot) {
            Some(kind) => kind.is_some(),
            None => {
                slot >= fixed::FIRST_DYNAMIC as usize
                    && slot - (fixed::FIRST_DYNAMIC as usize) < self.dynamic.len()
            }
        }
    }

    /// Every type in id order.
    pub fn iter(&self) -> impl Iterator<Item = (TypeId, TypeKind)> {
        let fixed = self.fixed.iter().enumerate().filter_map(|(i, k)| k.map(|k| (i as u32, k)));
        let dynamic =
            self.dynamic.iter().enumerate().map(|(i, &k)| (fixed::FIRST_DYNAMIC + i as u32, k));
        fixed.chain(dynamic).map(|(i, k)| (TypeId(i), k))
    }

    /// The scalar type, if it is one.
    pub fn prim(&self, id: TypeId) -> Option<PrimType> {
        PrimType::from_id(id)
    }

    /// The scalar type of a scalar or of the components of a vector.
    pub fn element_prim(&self, id: TypeId) -> Option<PrimType> {
        match self.kind(id) {
            TypeKind::Prim(p) | TypeKind::Vec(p, _) => Some(p),
            _ => None,
        }
    }

    /// Number of components: 1 for a scalar, at least 2 for a vector, `None` otherwise.
    pub fn lanes(&self, id: TypeId) -> Option<u8> {
        match self.kind(id) {
            TypeKind::Prim(_) => Some(1),
            TypeKind::Vec(_, n) => Some(n),
            _ => None,
        }
    }

    /// Starts a struct; its fields are set later, so that definitions may refer to each other.
    pub fn declare_struct(&mut self, name: impl Into<String>, category: Category) -> TypeId {
        let id = StructId(self.structs.len() as u32);
        let ty = self.intern(TypeKind::Struct(id));
        let def = StructDef { name: name.into(), category, fields: Vec::new(), ty };
        self.structs.push(Arc::new(def));
        ty
    }

    pub(crate) fn declare_fixed_struct(&mut self, ty: TypeId, name: &str, fields: Vec<Field>) {
        let id = StructId(self.structs.len() as u32);
        self.fix(ty, TypeKind::Struct(id));
        let (name, category) = (name.to_string(), Category::Heap);
        self.structs.push(Arc::new(StructDef { name, category, fields, ty }));
    }

    pub(crate) fn declare_fixed_enum(&mut self, ty: TypeId, name: &str, variants: &[&str]) {
        let id = EnumId(self.enums.len() as u32);
        self.fix(ty, TypeKind::Enum(id));
        let variants = value_variants(variants);
        let (name, category) = (name.to_string(), Category::Value);
        self.enums.push(Arc::new(EnumDef { name, category, variants, ty }));
    }

    /// Gives a declared struct its fields.
    pub fn define_struct(&mut self, id: StructId, fields: Vec<Field>) {
        Arc::make_mut(&mut self.structs[id.0 as usize]).fields = fields;
    }

    /// Starts an enum; its variants are set later.
    pub fn declare_enum(&mut self, name: impl Into<String>, category: Category) -> TypeId {
        let id = EnumId(self.enums.len() as u32);
        let ty = self.intern(TypeKind::Enum(id));
        let def = EnumDef { name: name.into(), category, variants: Vec::new(), ty };
        self.enums.push(Arc::new(def));
        ty
    }

    /// Gives a declared enum its variants.
    pub fn define_enum(&mut self, id: EnumId, variants: Vec<Variant>) {
        Arc::make_mut(&mut self.enums[id.0 as usize]).variants = variants;
    }

    /// Adds a signature.
    pub fn define_sig(
        &mut self,
        name: impl Into<String>,
        params: Vec<TypeId>,
        ret: TypeId,
    ) -> SigId {
        let id = SigId(self.sigs.len() as u32);
        self.sigs.push(Arc::new(SigDef { name: name.into(), params, ret }));
        id
    }

    /// Gives a signature other types, so that definitions may refer to each other.
    pub fn set_sig(&mut self, id: SigId, params: Vec<TypeId>, ret: TypeId) {
        let sig = Arc::make_mut(&mut self.sigs[id.0 as usize]);
        (sig.params, sig.ret) = (params, ret);
    }

    /// The definition of a struct.
    pub fn struct_def(&self, id: StructId) -> &StructDef {
        &self.structs[id.0 as usize]
    }

    /// The definition of an enum.
    pub fn enum_def(&self, id: EnumId) -> &EnumDef {
        &self.enums[id.0 as usize]
    }

    /// The definition of a signature.
    pub fn sig_def(&self, id: SigId) -> &SigDef {
        &self.sigs[id.0 as usize]
    }

    /// Every struct definition, in declaration order.
    pub fn structs(&self) -> impl Iterator<Item = (StructId, &StructDef)> {
        self.structs.iter().enumerate().map(|(i, d)| (StructId(i as u32), &**d))
    }

    /// Every enum definition, in declaration order.
    pub fn enums(&self) -> impl Iterator<Item = (EnumId, &EnumDef)> {
        self.enums.iter().enumerate().map(|(i, d)| (EnumId(i as u32), &**d))
    }

    /// Every signature, in declaration order.
    pub fn sigs(&self) -> impl Iterator<Item = (SigId, &SigDef)> {
        self.sigs.iter().enumerate().map(|(i, d)| (SigId(i as u32), &**d))
    }

    /// The canonical text of a type: what diagnostics, `.mpir` and the id order use.
    pub fn name(&self, id: TypeId) -> String {
        let mut out = String::new();
        self.write_name(id, &mut out);
        out
    }

    /// Appends the canonical text of a type.
    pub fn write_name(&self, id: TypeId, out: &mut String) {
        let generic = |out: &mut String, base: &str, args: &[TypeId]| {
            out.push_str(base);
            out.push('<');
            for (i, &a) in args.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                self.write_name(a, out);
            }
            out.push('>');
        };
        match self.kind(id) {
            TypeKind::Prim(p) => out.push_str(p.name()),
            TypeKind::Vec(p, n) => {
                let _ = write!(out, "vec<{}, {n}>", p.name());
            }
            TypeKind::Str => out.push_str("Str"),
            TypeKind::Opaque(k) => out.push_str(match k {
                OpaqueKind::StrBuilder => "TStrBuilder",
                OpaqueKind::GpuDevice => "gpu.TDevice",
                OpaqueKind::GpuFence => "gpu.TFence",
                OpaqueKind::GpuProfileSession => "gpu.TProfileSession",
                OpaqueKind::GpuKernel => "gpu.TKernel",
                OpaqueKind::MlxLayer => "mlx.nn.TLayerHandle",
                OpaqueKind::MlxOptimizer => "mlx.optim.TOptimizerHandle",
            }),
            TypeKind::Array(t) => generic(out, "Array", &[t]),
            TypeKind::Map(k, v) => generic(out, "Map", &[k, v]),
            TypeKind::Option(t) => generic(out, "TOption", &[t]),
            TypeKind::Result(t, e) => generic(out, "TResult", &[t, e]),
            TypeKind::Callable(s) => {
                let _ = write!(out, "TCallable<{}>", self.sig_def(s).name);
            }
            TypeKind::Buffer(t) => generic(out, "gpu.TBuffer", &[t]),
            TypeKind::MlxArray(t) => generic(out, "mlx.TArray", &[t]),
            TypeKind::RawPtr(t) => generic(out, "rawptr", &[t]),
            TypeKind::SharedArray(t, n) => {
                let _ = write!(out, "shared_array<{n}, ");
                self.write_name(t, out);
                out.push('>');
            }
            TypeKind::LocalArray(t, n) => {
                let _ = write!(out, "local_array<{n}, ");
                self.write_name(t, out);
                out.push('>');
            }
            TypeKind::Struct(s) => out.push_str(&self.struct_def(s).name),
            TypeKind::Enum(e) => out.push_str(&self.enum_def(e).name),
            TypeKind::Ref(m, t) => {
                out.push_str(m.name());
                out.push(' ');
                self.write_name(t, out);
            }
        }
    }

    /// The stable ids of a build: fixed ids as they are, all others from 1000 up in the
    /// lexicographic order of their canonical text.
    pub fn runtime_ids(&self) -> FxHashMap<TypeId, u32> {
        let mut named: Vec<(String, TypeId)> = self
            .iter()
            .filter(|(id, _)| id.0 >= fixed::FIRST_DYNAMIC)
            .map(|(id, _)| (self.name(id), id))
            .collect();
        named.sort();
        let mut ids: FxHashMap<TypeId, u32> = self.iter().map(|(id, _)| (id, id.0)).collect();
        for (i, (_, id)) in named.into_iter().enumerate() {
            ids.insert(id, fixed::FIRST_DYNAMIC + i as u32);
        }
        ids
    }
}

pub(crate) fn value_variants(names: &[&str]) -> Vec<Variant> {
    names.iter().map(|n| Variant { name: n.to_string(), fields: Vec::new() }).collect()
}
