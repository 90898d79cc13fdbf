//! The state of emitting one kernel: which SPIR-V id stands for which MPIR value, and the pieces
//! of the function under construction.

use crate::builder::{Builder, Id};
use crate::capabilities::features_of;
use crate::float_controls::FloatWidths;
use crate::interface::Interface;
use crate::lines::Lines;
use crate::memory::Memory;
use crate::opaque::Opaque;
use crate::section::Section;
use crate::types::{Scalar, Shape};
use magpie_diag::{Code, Diagnostic, SourceMap, Span};
use magpie_gpu::structurize::StructuredBody;
use magpie_mpir::{Block, Const, Inst, MpirFn, Value, ValueDef};
use magpie_types::kernel::{DeviceFeatures, KernelLayout};
use magpie_types::{PrimType, TypeCtx, TypeId};
use spirv::{GlslStd450Op as Glsl, Op};

/// The result of an emission step.
pub(crate) type Emit<T = ()> = Result<T, Box<Diagnostic>>;

/// A kernel on its way to SPIR-V.
pub(crate) struct Emitter<'a> {
    pub(crate) types: &'a TypeCtx,
    pub(crate) f: &'a MpirFn,
    pub(crate) layout: &'a KernelLayout,
    /// What the device offers.
    pub(crate) features: DeviceFeatures,
    pub(crate) b: Builder,
    /// Variables of the function; they head its first block.
    pub(crate) variables: Section,
    /// What runs once at the start: loads of parameters and built-in variables.
    pub(crate) prologue: Section,
    /// The rest of the function.
    pub(crate) body: Section,
    pub(crate) interface: Interface,
    pub(crate) memory: Memory,
    pub(crate) lines: Lines<'a>,
    pub(crate) opaque: Opaque,
    /// The float widths computed with.
    pub(crate) floats: FloatWidths,
    /// Features in use that no capability tells.
    pub(crate) needs: DeviceFeatures,
    /// By value: its id, or 0. For buffers and arrays: see [`Emitter::set_object`].
    values: Vec<Id>,
    /// By block: its label, or 0.
    labels: Vec<Id>,
    /// By block: the label of the last of several SPIR-V blocks it becomes, or 0.
    exits: Vec<Id>,
    /// The label of the SPIR-V block under construction.
    pub(crate) here: Id,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        types: &'a TypeCtx,
        f: &'a MpirFn,
        layout: &'a KernelLayout,
        features: DeviceFeatures,
        sources: Option<&'a SourceMap>,
    ) -> Emitter<'a> {
        Emitter {
            types,
            f,
            layout,
            features,
            b: Builder::new(),
            variables: Section::default(),
            prologue: Section::default(),
            body: Section::with_capacity(f.num_insts() * 8),
            interface: Interface::default(),
            memory: Memory::default(),
            lines: Lines::new(sources),
            opaque: Opaque::default(),
            floats: FloatWidths::default(),
            needs: DeviceFeatures::default(),
            values: vec![0; f.locals.len()],
            labels: vec![0; f.blocks.len()],
            exits: vec![0; f.blocks.len()],
            here: 0,
        }
    }

    /// The module of the kernel whose structured form is `body`, and the features it needs.
    pub(crate) fn module(mut self, body: &StructuredBody) -> Emit<(Vec<u32>, DeviceFeatures)> {
        let main = self.b.id();
        self.b.sources.op(Op::Source, &[spirv::SourceLanguage::Unknown as u32, 0]);
        self.b.name(main, &self.layout.entry);
        self.declare_workgroup_size(main);
        self.declare_buffers()?;
        self.emit_body(body)?;
        self.declare_float_controls(main);
        let void = self.b.void();
        let (ty, first) = (self.b.id(), self.label(Block(0)));
        self.b.globals.op(Op::TypeFunction, &[ty, void]);
        let mut head = Section::default();
        let control = spirv::FunctionControl::NONE.bits();
        head.op(Op::Function, &[void, main, control, ty]);
        head.op(Op::Label, &[first]);
        self.body.op(Op::FunctionEnd, &[]);
        let features = features_of(self.b.capabilities()).union(self.needs);
        let too_large = |why| {
            let message = format!("kernel `{}` is too large for SPIR-V: {why}", self.f.name);
            let d = Diagnostic::new(Code::MPG_SPV_1101, self.f.span, message);
            Box::new(d.with_help("split it into several kernels"))
        };
        let function = [&head, &self.variables, &self.prologue, &self.body];
        let words = self.b.finish(&self.layout.entry, main, &function).map_err(too_large)?;
        Ok((words, features))
    }

    // ----- ids -----

    /// The label of a block.
    pub(crate) fn label(&mut self, block: Block) -> Id {
        let label = &mut self.labels[block.index()];
        if *label == 0 {
            *label = self.b.id();
        }
        *label
    }

    /// Announces that a block becomes several SPIR-V blocks; the last one begins behind its last
    /// instruction.
    pub(crate) fn split_block(&mut self, block: Block) {
        self.exits[block.index()] = self.b.id();
    }

    /// The label of the last SPIR-V block of a block that becomes several.
    pub(crate) fn split_exit(&self, block: Block) -> Option<Id> {
        Some(self.exits[block.index()]).filter(|&id| id != 0)
    }

    /// The label that the terminator of a block belongs to.
    pub(crate) fn exit_label(&mut self, block: Block) -> Id {
        self.split_exit(block).unwrap_or_else(|| self.label(block))
    }

    /// Begins a SPIR-V block.
    pub(crate) fn begin_block(&mut self, label: Id) {
        self.here = label;
        self.body.op(Op::Label, &[label]);
        self.reset_line();
    }

    /// The id of a value: a constant, a parameter, a result, or the id a result will have.
    #[inline]
    pub(crate) fn value(&mut self, v: Value) -> Emit<Id> {
        match self.values[v.index()] {
            0 => self.first_use(v),
            id => Ok(id),
        }
    }

    fn first_use(&mut self, v: Value) -> Emit<Id> {
        let id = match self.f.def(v) {
            ValueDef::Inst(_) => self.b.id(),
            ValueDef::Param(n) => self.scalar_param(n, 0)?,
            ValueDef::Const(c) => {
                let ty = self.f.ty(v);
                let (shape, _) = self.shape_of_type(ty)?;
                match c {
                    Const::Bits(bits) => self.b.constant(shape, bits),
                    Const::Zero => {
                        let ty = self.b.shape(shape);
                        self.b.null(ty)
                    }
                    Const::Unit | Const::Str(_) => {
                        return Err(self.broken("a constant that no register holds"));
                    }
                }
            }
        };
        self.values[v.index()] = id;
        Ok(id)
    }

    /// The ids of the first `N` operands.
    #[inline]
    pub(crate) fn operands<const N: usize>(&mut self, i: Inst) -> Emit<[Id; N]> {
        let f = self.f;
        let args = f.args(i);
        if args.len() < N {
            return Err(self.broken_at(i, "operands are missing"));
        }
        let mut ids = [0; N];
        for (id, &v) in ids.iter_mut().zip(args) {
            *id = self.value(v)?;
        }
        Ok(ids)
    }

    /// The id of the result of an instruction.
    #[inline]
    pub(crate) fn result(&mut self, i: Inst) -> Id {
        match self.f.inst(i).result() {
            Some(v) => {
                let id = &mut self.values[v.index()];
                if *id == 0 {
                    *id = self.b.id();
                }
                *id
            }
            // Nothing reads it.
            None => self.b.id(),
        }
    }

    /// Lets the result of an instruction be a value that already has an id.
    pub(crate) fn set_result(&mut self, i: Inst, ty: Id, id: Id) {
        let Some(v) = self.f.inst(i).result() else { return };
        match self.values[v.index()] {
            0 => self.values[v.index()] = id,
            // A phi further up has named it already.
            promised => self.body.value(Op::CopyObject, ty, promised, &[id]),
        }
    }

    /// Remembers a number for a value that names memory.
    pub(crate) fn set_object(&mut self, v: Value, index: u32) {
        self.values[v.index()] = index + 1;
    }

    /// The number given to a value that names memory.
    pub(crate) fn object_index(&self, v: Value) -> Option<u32> {
        self.values[v.index()].checked_sub(1)
    }

    // ----- types -----

    /// The shape that carries values of a type, with the primitive type of its lanes.
    ///
    /// Integers of 8 and 16 bits that the device does not compute with are carried in 32 bits of
    /// which the upper ones mean nothing; after legalisation they are only moved and converted.
    #[inline]
    pub(crate) fn shape_of_type(&self, ty: TypeId) -> Emit<(Shape, PrimType)> {
        let (shape, prim) = self.memory_shape(ty)?;
        Ok((shape.of(self.carrier(shape.scalar)), prim))
    }

    /// The shape of a type in memory, with the primitive type of its lanes.
    pub(crate) fn memory_shape(&self, ty: TypeId) -> Emit<(Shape, PrimType)> {
        Shape::of_type(self.types, ty)
            .ok_or_else(|| self.broken(&format!("a value of type `{}`", self.types.name(ty))))
    }

    /// What carries a scalar in a register.
    pub(crate) fn carrier(&self, scalar: Scalar) -> Scalar {
        match scalar {
            Scalar::Int8 if !self.features.contains(DeviceFeatures::INT8) => Scalar::Int32,
            Scalar::Int16 if !self.features.contains(DeviceFeatures::INT16) => Scalar::Int32,
            _ => scalar,
        }
    }

    /// Shape and primitive type of a value.
    #[inline]
    pub(crate) fn shape_of_value(&self, v: Value) -> Emit<(Shape, PrimType)> {
        self.shape_of_type(self.f.ty(v))
    }

    /// Shape and primitive type of operand `n`.
    pub(crate) fn shape_of_operand(&self, i: Inst, n: usize) -> Emit<(Shape, PrimType)> {
        match self.f.args(i).get(n) {
            Some(&v) => self.shape_of_value(v),
            None => Err(self.broken_at(i, "operands are missing")),
        }
    }

    /// Shape and primitive type of the result of an instruction.
    #[inline]
    pub(crate) fn shape_of_result(&self, i: Inst) -> Emit<(Shape, PrimType)> {
        self.shape_of_type(self.f.inst(i).ty)
    }

    // ----- instructions -----

    /// Appends an instruction with a fresh result.
    #[inline]
    pub(crate) fn emit(&mut self, op: Op, ty: Id, operands: &[Id]) -> Id {
        let id = self.b.id();
        self.body.value(op, ty, id, operands);
        id
    }

    /// Appends an extended instruction with a fresh result.
    #[inline]
    pub(crate) fn emit_ext(&mut self, op: Glsl, ty: Id, operands: &[Id]) -> Id {
        let id = self.b.id();
        self.b.ext(&mut self.body, ty, id, op, operands);
        id
    }

    // ----- refusals -----

    /// A refusal of the whole kernel.
    pub(crate) fn refuse_kernel(&self, message: String, help: &str) -> Box<Diagnostic> {
        let d = Diagnostic::new(Code::MPG_SPV_1101, self.f.span, message);
        Box::new(d.with_help(help))
    }

    /// The report of a fault of an earlier stage: something came through that it removes.
    pub(crate) fn broken(&self, what: &str) -> Box<Diagnostic> {
        self.broken_span(self.f.span, what)
    }

    /// As [`Emitter::broken`], at an instruction.
    pub(crate) fn broken_at(&self, i: Inst, what: &str) -> Box<Diagnostic> {
        let inst = self.f.inst(i);
        self.broken_span(inst.span, &format!("`{}`: {what}", inst.op.name()))
    }

    fn broken_span(&self, span: Span, what: &str) -> Box<Diagnostic> {
        let message = format!("kernel `{}` is not in the form SPIR-V needs: {what}", self.f.name);
        let d = Diagnostic::new(Code::MPG_SPV_1101, span, message);
        Box::new(d.with_help("this is a fault of the compiler: please report it with the program"))
    }
}
