//! Machine types: how values of a type lie in host code, in kernels and in uploaded arrays.

use super::{Cx, Form};
use crate::ty::{Ty, TyKind, TyList, fixed as ty};
use magpie_types::{Category, Field, PrimType, TypeId, TypeKind, Variant, fixed};

/// Members of the value struct that an enum with fields is, at most: larger ones are objects.
const MAX_ENUM_PARTS: usize = 9;

/// The members of the value struct that an enum with fields is.
pub(super) struct EnumParts {
    /// The number of the variant, and places for fields.
    pub(super) types: Vec<TypeId>,
    /// For each variant, the member that each field is.
    pub(super) members: Vec<Vec<u32>>,
}

impl Cx<'_> {
    pub(super) fn intern(&mut self, kind: TypeKind) -> TypeId {
        self.module.types.intern(kind)
    }

    /// The type that kernels have for a type: `int` and `float` are the 32-bit types there.
    pub(super) fn device_type(&mut self, t: Ty) -> Ty {
        let kind = match self.tys.kind(t) {
            TyKind::Int => return ty::I32,
            TyKind::Float => return ty::F32,
            TyKind::Array(e, n) => TyKind::Array(self.device_type(e), n),
            TyKind::List(e) => TyKind::List(self.device_type(e)),
            TyKind::Tuple(items) => TyKind::Tuple(self.device_types(items)),
            TyKind::Struct(n, args) => TyKind::Struct(n, self.device_types(args)),
            _ => return t,
        };
        self.tys.intern(kind)
    }

    pub(super) fn device_types(&mut self, list: TyList) -> TyList {
        let items = self.tys.items(list).to_vec();
        let items: Vec<Ty> = items.into_iter().map(|t| self.device_type(t)).collect();
        self.tys.list(&items)
    }

    /// The machine type of a type.
    pub(super) fn machine(&mut self, t: Ty, form: Form) -> TypeId {
        let t = if form == Form::Host { t } else { self.device_type(t) };
        if let Some(&id) = self.machine.get(&(t, form)) {
            return id;
        }
        let id = self.make_machine(t, form);
        self.machine.insert((t, form), id);
        id
    }

    pub(super) fn make_machine(&mut self, t: Ty, form: Form) -> TypeId {
        let kind = self.tys.kind(t);
        if let Some(p) = self.tys.scalar(t, form != Form::Host) {
            return p.id();
        }
        match kind {
            TyKind::Unit => fixed::UNIT,
            // Of what was reported: any type that values have.
            TyKind::Error | TyKind::Number(_) | TyKind::Param(_) => fixed::BOOL,
            TyKind::Str => fixed::STR,
            TyKind::Range => {
                let int = self.machine(ty::INT, form);
                self.aggregate("miri.Range", &[int, int], true)
            }
            TyKind::Array(..) if form == Form::Device && self.is_inline_array(t) => {
                self.machine(t, Form::Packed)
            }
            TyKind::Array(element, n) if form == Form::Packed && self.is_inline_array(t) => {
                let member = self.member_machine(element);
                let name = format!("miri.{}.inline", self.ty_name(t));
                self.aggregate(&name, &vec![member; n as usize], true)
            }
            TyKind::Array(t, _) | TyKind::List(t) => {
                let element = self.machine(t, form);
                self.intern(TypeKind::Array(element))
            }
            TyKind::Set(k) => {
                let key = self.machine(k, form);
                self.intern(TypeKind::Map(key, fixed::BOOL))
            }
            TyKind::Map(k, v) => {
                let (key, value) = (self.machine(k, form), self.machine(v, form));
                self.intern(TypeKind::Map(key, value))
            }
            TyKind::Option(t) => {
                let t = self.machine(t, form);
                self.intern(TypeKind::Option(t))
            }
            TyKind::Result(t, e) => {
                let (t, e) = (self.machine(t, form), self.machine(e, form));
                self.intern(TypeKind::Result(t, e))
            }
            TyKind::Fn(params, ret) => {
                let params = self.tys.items(params).to_vec();
                let params: Vec<TypeId> = params.iter().map(|&p| self.param_machine(p)).collect();
                let ret = self.machine(ret, Form::Host);
                let name = format!("miri.sig.{}", self.ty_name(t));
                let sig = self.module.types.define_sig(name, params, ret);
                self.intern(TypeKind::Callable(sig))
            }
            TyKind::Vector(component, n) => {
                let t_whole = t;
                let p = self.tys.scalar(component, true).unwrap_or(PrimType::F32);
                match form {
                    Form::Device => self.intern(TypeKind::Vec(p, n)),
                    // A 3-vector takes the room of a 4-vector.
                    Form::Packed => self.machine(t_whole, Form::Host),
                    Form::Host => {
                        let slots = if n == 3 { 4 } else { n };
                        let name = format!("miri.Vec{n}.{}", p.name());
                        self.aggregate(&name, &vec![p.id(); slots as usize], true)
                    }
                }
            }
            TyKind::Atomic(t) => self.machine(t, form),
            TyKind::Tuple(items) => {
                let items = self.tys.items(items).to_vec();
                self.struct_machine(t, &items, form)
            }
            TyKind::Struct(n, args) => {
                let fields: Vec<Ty> = self.fields(n, args).into_iter().map(|f| f.1).collect();
                self.struct_machine(t, &fields, form)
            }
            TyKind::Enum(n, args) => self.enum_machine(t, n, args, form),
            TyKind::Bool | TyKind::Int | TyKind::Float | TyKind::Prim(_) => fixed::UNIT,
        }
    }

    /// A parameter of a host function: what is not copied is looked at.
    pub(super) fn param_machine(&mut self, t: Ty) -> TypeId {
        let id = self.machine(t, Form::Host);
        match self.module.types.is_copy(id) {
            true => id,
            false => self.view(id),
        }
    }

    /// A view of values of a type.
    pub(super) fn view(&mut self, id: TypeId) -> TypeId {
        self.intern(TypeKind::Ref(magpie_types::RefMode::Borrow, id))
    }

    /// A value struct.
    pub(super) fn aggregate(&mut self, name: &str, fields: &[TypeId], value: bool) -> TypeId {
        let category = if value { Category::Value } else { Category::Heap };
        let id = self.module.types.declare_struct(name, category);
        self.set_fields(id, fields);
        id
    }

    pub(super) fn set_fields(&mut self, id: TypeId, fields: &[TypeId]) {
        let field = |(n, &ty): (usize, &TypeId)| Field { name: format!("f{n}"), ty };
        let fields = fields.iter().enumerate().map(field).collect();
        if let TypeKind::Struct(s) = self.module.types.kind(id) {
            self.module.types.define_struct(s, fields);
        }
    }

    /// Members of a struct in kernels: vectors are structs of their components, truth values words.
    pub(super) fn struct_machine(&mut self, t: Ty, fields: &[Ty], form: Form) -> TypeId {
        if form != Form::Host {
            if let Some(&id) = self.machine.get(&(t, Form::Packed)) {
                return id;
            }
            let members: Vec<TypeId> = fields.iter().map(|&f| self.member_machine(f)).collect();
            let name = format!("miri.{}.device", self.ty_name(t));
            let id = self.aggregate(&name, &members, true);
            self.machine.insert((t, Form::Packed), id);
            self.machine.insert((t, Form::Device), id);
            return id;
        }
        let name = format!("miri.{}", self.ty_name(t));
        let is_value = self.is_copied(t);
        let category = if is_value { Category::Value } else { Category::Heap };
        let id = self.module.types.declare_struct(name, category);
        // Fields may lead back here.
        self.machine.insert((t, Form::Host), id);
        let members: Vec<TypeId> = fields.iter().map(|&f| self.machine(f, Form::Host)).collect();
        self.set_fields(id, &members);
        id
    }

    /// A member of a struct as devices have it.
    pub(super) fn member_machine(&mut self, t: Ty) -> TypeId {
        match self.tys.kind(t) {
            TyKind::Bool => fixed::U32,
            _ => self.machine(t, Form::Packed),
        }
    }

    /// Whether a type is an enum of variants without fields.
    pub(super) fn is_plain_enum(&mut self, t: Ty) -> bool {
        match self.tys.kind(t) {
            TyKind::Enum(n, args) => self.variants(n, args).iter().all(|v| v.1.is_empty()),
            _ => false,
        }
    }

    pub(super) fn enum_machine(&mut self, t: Ty, n: u32, args: TyList, form: Form) -> TypeId {
        let variants = self.variants(n, args);
        let is_value = variants.iter().all(|v| v.1.is_empty());
        if form != Form::Host {
            // The number of the variant.
            return if is_value { fixed::I32 } else { fixed::UNIT };
        }
        if !is_value && self.is_copied(t) {
            let parts = self.enum_parts(n, args).types;
            let name = format!("miri.{}", self.ty_name(t));
            return self.aggregate(&name, &parts, true);
        }
        let category = if is_value { Category::Value } else { Category::Heap };
        let name = format!("miri.{}", self.ty_name(t));
        let id = self.module.types.declare_enum(name, category);
        self.machine.insert((t, Form::Host), id);
        let mut defs = Vec::with_capacity(variants.len());
        for (name, fields) in variants {
            let name = self.program.name(name).to_string();
            let mut members = Vec::with_capacity(fields.len());
            for (n, f) in fields.into_iter().enumerate() {
                let ty = self.machine(f, Form::Host);
                members.push(Field { name: format!("f{n}"), ty });
            }
            defs.push(Variant { name, fields: members });
        }
        if let TypeKind::Enum(e) = self.module.types.kind(id) {
            self.module.types.define_enum(e, defs);
        }
        id
    }

    /// How the values of an enum lie in a value struct. Fields of different variants share a member
    /// where their types are the same.
    pub(super) fn enum_parts(&mut self, n: u32, args: TyList) -> EnumParts {
        let mut parts = EnumParts { types: vec![fixed::I32], members: Vec::new() };
        for (_, fields) in self.variants(n, args) {
            let mut members: Vec<u32> = Vec::with_capacity(fields.len());
            for field in fields {
                let ty = self.machine(field, Form::Host);
                let is_free =
                    |&at: &usize| parts.types[at] == ty && !members.contains(&(at as u32));
                let at = (1..parts.types.len()).find(is_free).unwrap_or(parts.types.len());
                if at == parts.types.len() {
                    parts.types.push(ty);
                }
                members.push(at as u32);
            }
            parts.members.push(members);
        }
        parts
    }

    /// Whether values of a type are copied rather than counted.
    pub(super) fn is_copied(&mut self, t: Ty) -> bool {
        // A type that contains itself is counted.
        if self.open.contains(&t) {
            return false;
        }
        self.open.push(t);
        let copied = match self.tys.kind(t) {
            TyKind::Str
            | TyKind::Array(..)
            | TyKind::List(_)
            | TyKind::Set(_)
            | TyKind::Map(..)
            | TyKind::Fn(..) => false,
            TyKind::Option(t) => self.is_copied(t),
            TyKind::Result(t, e) => self.is_copied(t) && self.is_copied(e),
            TyKind::Tuple(items) => {
                let items = self.tys.items(items).to_vec();
                items.iter().all(|&t| self.is_copied(t))
            }
            TyKind::Struct(n, args) => {
                let fields = self.fields(n, args);
                fields.iter().all(|f| self.is_copied(f.1))
            }
            TyKind::Enum(n, args) => {
                let variants = self.variants(n, args);
                variants.iter().flat_map(|v| &v.1).all(|&f| self.is_copied(f))
                    && self.enum_parts(n, args).types.len() <= MAX_ENUM_PARTS
            }
            _ => true,
        };
        self.open.pop();
        copied
    }
}
