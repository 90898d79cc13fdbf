//! A SPIR-V module under construction: ids, capabilities, types, constants and the sections in
//! the order that SPIR-V's logical layout wants.
//!
//! Ids are given out in order of first use and everything is kept in lists and small tables that
//! are indexed or searched in order, so equal input gives equal words.

use crate::section::Section;
use crate::types::{Scalar, Shape};
use rustc_hash::FxHashMap;
use spirv::{
    AddressingModel, Capability, Decoration, ExecutionModel, GlslStd450Op as Glsl, MemoryModel, Op,
    StorageClass,
};

/// The id of a type, a constant, a value, a label: never 0.
pub(crate) type Id = u32;

/// The version of every module: 1.6.
const VERSION: u32 = 1 << 16 | 6 << 8;

/// The largest id bound that every consumer must take (universal limits of SPIR-V, section 2.17).
const MAX_BOUND: u32 = 4_194_303;

/// A module under construction.
pub(crate) struct Builder {
    bound: Id,
    capabilities: Vec<Capability>,
    extensions: Vec<&'static str>,
    glsl: Id,
    void: Id,
    shapes: [[Id; 4]; Scalar::COUNT],
    pointers: Vec<(StorageClass, Id, Id)>,
    arrays: Vec<(Id, u32, Id)>,
    pairs: Vec<(Id, Id)>,
    constants: FxHashMap<(Id, u64), Id>,
    nulls: Vec<(Id, Id)>,
    undefined: Vec<(Id, Id)>,
    interface: Vec<Id>,
    /// Execution modes of the entry point.
    pub(crate) modes: Section,
    /// Source files.
    pub(crate) sources: Section,
    names: Section,
    /// Decorations.
    pub(crate) decorations: Section,
    /// Types, constants and module-scope variables.
    pub(crate) globals: Section,
}

impl Builder {
    /// An empty module that declares `Shader`.
    pub(crate) fn new() -> Builder {
        Builder {
            bound: 1,
            capabilities: vec![Capability::Shader],
            extensions: Vec::new(),
            glsl: 0,
            void: 0,
            shapes: [[0; 4]; Scalar::COUNT],
            pointers: Vec::new(),
            arrays: Vec::new(),
            pairs: Vec::new(),
            constants: FxHashMap::default(),
            nulls: Vec::new(),
            undefined: Vec::new(),
            interface: Vec::new(),
            modes: Section::default(),
            sources: Section::default(),
            names: Section::default(),
            decorations: Section::default(),
            globals: Section::with_capacity(512),
        }
    }

    /// A fresh id.
    #[inline]
    pub(crate) fn id(&mut self) -> Id {
        let id = self.bound;
        self.bound += 1;
        id
    }

    /// Declares a capability, once.
    pub(crate) fn capability(&mut self, c: Capability) {
        if !self.capabilities.contains(&c) {
            self.capabilities.push(c);
        }
    }

    /// The capabilities of the module, when everything else is complete.
    pub(crate) fn capabilities(&mut self) -> &[Capability] {
        // Types of 8 and 16 bits may be there for loads, stores and conversions only; then it is
        // enough that buffers hold them.
        for scalar in [Scalar::Int8, Scalar::Int16, Scalar::Float16] {
            let storage = match scalar.width() {
                8 => Capability::StorageBuffer8BitAccess,
                _ => Capability::StorageBuffer16BitAccess,
            };
            let is_used = self.shapes[scalar as usize].iter().any(|&id| id != 0);
            if let Some(c) = scalar.capability().filter(|_| is_used)
                && !self.capabilities.contains(&storage)
            {
                self.capability(c);
            }
        }
        &self.capabilities
    }

    /// Declares an extension, once.
    pub(crate) fn extension(&mut self, name: &'static str) {
        if !self.extensions.contains(&name) {
            self.extensions.push(name);
        }
    }

    /// The import of the extended instructions `GLSL.std.450`.
    pub(crate) fn glsl(&mut self) -> Id {
        if self.glsl == 0 {
            self.glsl = self.id();
        }
        self.glsl
    }

    // ----- types -----

    /// The type `void`.
    pub(crate) fn void(&mut self) -> Id {
        if self.void == 0 {
            self.void = self.id();
            self.globals.op(Op::TypeVoid, &[self.void]);
        }
        self.void
    }

    /// A scalar or vector type, without the capability to compute with it.
    pub(crate) fn storage_shape(&mut self, shape: Shape) -> Id {
        let known = self.shapes[shape.scalar as usize][shape.lanes as usize - 1];
        if known != 0 {
            return known;
        }
        let id = if shape.lanes == 1 {
            // Types of 64 bits need their capability even where they are only loaded and stored.
            if let Some(c) = shape.scalar.capability().filter(|_| shape.scalar.width() == 64) {
                self.capability(c);
            }
            let id = self.id();
            match shape.scalar {
                Scalar::Bool => self.globals.op(Op::TypeBool, &[id]),
                s if s.is_float() => self.globals.op(Op::TypeFloat, &[id, s.width()]),
                s => self.globals.op(Op::TypeInt, &[id, s.width(), 0]),
            }
            id
        } else {
            let scalar = self.storage_shape(Shape::one(shape.scalar));
            let id = self.id();
            self.globals.op(Op::TypeVector, &[id, scalar, shape.lanes as u32]);
            id
        };
        self.shapes[shape.scalar as usize][shape.lanes as usize - 1] = id;
        id
    }

    /// A scalar or vector type to compute with.
    #[inline]
    pub(crate) fn shape(&mut self, shape: Shape) -> Id {
        if let Some(c) = shape.scalar.capability() {
            self.capability(c);
        }
        self.storage_shape(shape)
    }

    /// The type `u32`.
    pub(crate) fn u32_ty(&mut self) -> Id {
        self.storage_shape(Shape::U32)
    }

    /// A pointer type.
    pub(crate) fn pointer(&mut self, class: StorageClass, to: Id) -> Id {
        if let Some(&(.., id)) = self.pointers.iter().find(|p| p.0 == class && p.1 == to) {
            return id;
        }
        let id = self.id();
        self.globals.op(Op::TypePointer, &[id, class as u32, to]);
        self.pointers.push((class, to, id));
        id
    }

    /// An array type without layout, as workgroup and function memory use it.
    pub(crate) fn array(&mut self, elem: Id, len: u32) -> Id {
        if let Some(&(.., id)) = self.arrays.iter().find(|a| a.0 == elem && a.1 == len) {
            return id;
        }
        let len_id = self.u32(len);
        let id = self.id();
        self.globals.op(Op::TypeArray, &[id, elem, len_id]);
        self.arrays.push((elem, len, id));
        id
    }

    /// A structure of two members of one type, as the extended multiplications give.
    pub(crate) fn pair(&mut self, member: Id) -> Id {
        if let Some(&(_, id)) = self.pairs.iter().find(|p| p.0 == member) {
            return id;
        }
        let id = self.structure(&[member, member]);
        self.pairs.push((member, id));
        id
    }

    /// A new structure type.
    pub(crate) fn structure(&mut self, members: &[Id]) -> Id {
        let id = self.id();
        self.globals.op_iter(Op::TypeStruct, [id].into_iter().chain(members.iter().copied()));
        id
    }

    // ----- constants -----

    /// A scalar constant from its bits, zero-extended; for a vector shape the constant is in every
    /// lane.
    pub(crate) fn constant(&mut self, shape: Shape, bits: u64) -> Id {
        let ty = self.shape(shape);
        if let Some(&id) = self.constants.get(&(ty, bits)) {
            return id;
        }
        let id = if shape.lanes > 1 {
            let lane = self.constant(Shape::one(shape.scalar), bits);
            let id = self.id();
            self.globals.op(
                Op::ConstantComposite,
                &[ty, id, lane, lane, lane, lane][..2 + shape.lanes as usize],
            );
            id
        } else {
            let id = self.id();
            match shape.scalar {
                Scalar::Bool if bits & 1 == 1 => self.globals.op(Op::ConstantTrue, &[ty, id]),
                Scalar::Bool => self.globals.op(Op::ConstantFalse, &[ty, id]),
                s if s.width() == 64 => {
                    self.globals.op(Op::Constant, &[ty, id, bits as u32, (bits >> 32) as u32])
                }
                _ => self.globals.op(Op::Constant, &[ty, id, bits as u32]),
            }
            id
        };
        self.constants.insert((ty, bits), id);
        id
    }

    /// A `u32` constant.
    pub(crate) fn u32(&mut self, value: u32) -> Id {
        self.constant(Shape::U32, value as u64)
    }

    /// A value of the type that nobody reads.
    pub(crate) fn undefined(&mut self, ty: Id) -> Id {
        if let Some(&(_, id)) = self.undefined.iter().find(|u| u.0 == ty) {
            return id;
        }
        let id = self.id();
        self.globals.op(Op::Undef, &[ty, id]);
        self.undefined.push((ty, id));
        id
    }

    /// The zero of any type.
    pub(crate) fn null(&mut self, ty: Id) -> Id {
        if let Some(&(_, id)) = self.nulls.iter().find(|n| n.0 == ty) {
            return id;
        }
        let id = self.id();
        self.globals.op(Op::ConstantNull, &[ty, id]);
        self.nulls.push((ty, id));
        id
    }

    // ----- variables, names, decorations -----

    /// A module-scope variable of a type; it becomes part of the entry point's interface.
    pub(crate) fn variable(&mut self, class: StorageClass, ty: Id) -> Id {
        let pointer = self.pointer(class, ty);
        let id = self.id();
        self.globals.op(Op::Variable, &[pointer, id, class as u32]);
        self.interface.push(id);
        id
    }

    /// Decorates an id.
    #[inline]
    pub(crate) fn decorate(&mut self, id: Id, decoration: Decoration, operands: &[u32]) {
        let head = [id, decoration as u32];
        self.decorations.op_iter(Op::Decorate, head.into_iter().chain(operands.iter().copied()));
    }

    /// Sets the byte offset of a member of a structure.
    pub(crate) fn member_offset(&mut self, structure: Id, member: u32, offset: u32) {
        let words = [structure, member, Decoration::Offset as u32, offset];
        self.decorations.op(Op::MemberDecorate, &words);
    }

    /// Names an id.
    pub(crate) fn name(&mut self, id: Id, name: &str) {
        self.names.op_text(Op::Name, &[id], name, &[]);
    }

    /// Appends an extended instruction to `to`.
    #[inline]
    pub(crate) fn ext(&mut self, to: &mut Section, ty: Id, id: Id, op: Glsl, operands: &[Id]) {
        let head = [ty, id, self.glsl(), op as u32];
        to.op_iter(Op::ExtInst, head.into_iter().chain(operands.iter().copied()));
    }

    /// Joins the sections to a module with the one function `main`, given in pieces, which is the
    /// compute entry point `entry`.
    pub(crate) fn finish(
        self,
        entry: &str,
        main: Id,
        function: &[&Section],
    ) -> Result<Vec<u32>, &'static str> {
        if self.bound > MAX_BOUND {
            return Err("it has more values than consumers must take");
        }
        let mut head = Section::with_capacity(64);
        // The order of declaration follows the order of first use; sorted, it reads better.
        let mut capabilities = self.capabilities;
        capabilities.sort_unstable();
        for c in capabilities {
            head.op(Op::Capability, &[c as u32]);
        }
        let mut extensions = self.extensions;
        extensions.sort_unstable();
        for name in extensions {
            head.op_text(Op::Extension, &[], name, &[]);
        }
        if self.glsl != 0 {
            head.op_text(Op::ExtInstImport, &[self.glsl], "GLSL.std.450", &[]);
        }
        head.op(Op::MemoryModel, &[AddressingModel::Logical as u32, MemoryModel::GLSL450 as u32]);
        let model = [ExecutionModel::GLCompute as u32, main];
        head.op_text(Op::EntryPoint, &model, entry, &self.interface);
        let sections =
            [&head, &self.modes, &self.sources, &self.names, &self.decorations, &self.globals];
        let sections = || sections.into_iter().chain(function.iter().copied());
        if sections().any(Section::too_long) {
            return Err("an instruction has more operands than can be counted");
        }
        let len: usize = sections().map(|s| s.words().len()).sum();
        let mut words = Vec::with_capacity(5 + len);
        // The generator number 0 is for tools without a registered one.
        words.extend([spirv::MAGIC_NUMBER, VERSION, 0, self.bound, 0]);
        sections().for_each(|s| words.extend_from_slice(s.words()));
        Ok(words)
    }
}
