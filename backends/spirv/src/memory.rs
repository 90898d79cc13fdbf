//! Memory that values name: buffers, shared arrays of the workgroup, private arrays. How their
//! elements are declared, and how an element gets in and out of a register.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::types::{Scalar, Shape};
use magpie_mpir::{Flags, Inst, Op as Mpir, Value};
use magpie_types::kernel::{BufferParam, DeviceFeatures, ParamLayout};
use magpie_types::{PrimType, TypeId, TypeKind};
use spirv::{Capability, Decoration, Op, StorageClass};

/// The objects of a kernel.
#[derive(Default)]
pub(crate) struct Memory {
    /// By the number that [`Emitter::object_index`] gives.
    objects: Vec<Object>,
    /// Objects whose float elements are kept as integers for the sake of atomic operations.
    bitwise: Vec<Value>,
}

/// A buffer, a shared array or a private array.
struct Object {
    class: StorageClass,
    variable: Id,
    /// Whether an element is a structure of `leaves`.
    is_struct: bool,
    /// The scalars (or vectors) of an element.
    leaves: Vec<ElementLeaf>,
    length: Length,
}

#[derive(Clone, Copy)]
enum Length {
    /// Of an array: known.
    Fixed(u32),
    /// Of the buffer parameter with this position: told at launch.
    OfBuffer(u32),
}

/// One scalar (or vector) of an element.
#[derive(Clone, Copy)]
pub(crate) struct ElementLeaf {
    /// What the kernel computes with.
    pub(crate) value: Shape,
    /// What lies in memory.
    pub(crate) stored: Shape,
}

/// Where an access goes.
pub(crate) struct Place {
    pub(crate) class: StorageClass,
    pub(crate) pointer: Id,
    pub(crate) leaf: ElementLeaf,
}

impl Emitter<'_> {
    // ----- declarations -----

    /// Declares the buffer parameters, used or not: what the disassembly shows is what the driver
    /// binds.
    pub(crate) fn declare_buffers(&mut self) -> Emit {
        let has_barrier = self.survey();
        let (f, layout) = (self.f, self.layout);
        let may_alias = layout.num_buffers() > 1 && layout.buffers().any(|b| b.writes);
        for (param, (&(value, _), name)) in
            layout.params.iter().zip(f.params.iter().zip(&f.param_names))
        {
            let ParamLayout::Buffer(buffer) = param else { continue };
            let variable = self.declare_buffer(value, buffer)?;
            self.b.name(variable, name);
            if may_alias {
                // Without it the device may assume that parameters are different buffers.
                self.b.decorate(variable, Decoration::Aliased, &[]);
            }
            if !buffer.writes {
                self.b.decorate(variable, Decoration::NonWritable, &[]);
            } else if has_barrier {
                // Under the GLSL450 memory model this is what lets the workgroup see stores to
                // buffers after a barrier.
                self.b.decorate(variable, Decoration::Coherent, &[]);
            }
        }
        Ok(())
    }

    /// Notes the objects whose floats are handled as bits; returns whether there is a barrier.
    fn survey(&mut self) -> bool {
        let f = self.f;
        let mut has_barrier = false;
        for block in f.block_ids() {
            for &i in &f.block(block).insts {
                let op = f.inst(i).op;
                has_barrier |= op == Mpir::GpuBarrier;
                if op.info().memory == magpie_mpir::Memory::Atomic && self.is_bitwise(i) {
                    self.memory.bitwise.extend(f.args(i).first());
                }
            }
        }
        // What is bits for one operation is bits for all of them, and those that compute become
        // loops.
        for block in f.block_ids() {
            let insts = &f.block(block).insts;
            if insts.iter().any(|&i| self.is_atomic_loop(i)) {
                self.split_block(block);
            }
        }
        has_barrier
    }

    /// Whether an atomic operation on floats has to work on their bits on this device.
    fn is_bitwise(&self, i: Inst) -> bool {
        let inst = self.f.inst(i);
        let is_extremum = matches!(inst.op, Mpir::GpuAtomicMin | Mpir::GpuAtomicMax);
        let native = match self.types.prim(inst.ty) {
            Some(PrimType::F32) if is_extremum => DeviceFeatures::ATOMIC_FLOAT32_MINMAX,
            Some(PrimType::F32) => DeviceFeatures::ATOMIC_FLOAT32_ADD,
            Some(PrimType::F64) if !is_extremum => DeviceFeatures::ATOMIC_FLOAT64_ADD,
            prim => return prim.is_some_and(PrimType::is_float),
        };
        !self.features.contains(native)
    }

    /// Whether an instruction becomes a loop around a compare-and-swap.
    pub(crate) fn is_atomic_loop(&self, i: Inst) -> bool {
        let inst = self.f.inst(i);
        matches!(
            inst.op,
            Mpir::GpuAtomicAdd | Mpir::GpuAtomicSub | Mpir::GpuAtomicMin | Mpir::GpuAtomicMax
        ) && self.types.prim(inst.ty).is_some_and(PrimType::is_float)
            && self.f.args(i).first().is_some_and(|object| self.memory.bitwise.contains(object))
    }

    fn declare_buffer(&mut self, value: Value, buffer: &BufferParam) -> Emit<Id> {
        let class = StorageClass::StorageBuffer;
        // Legalisation may have given the elements another type of the same layout.
        let elem = match self.types.kind(self.f.ty(value)) {
            TypeKind::Buffer(elem) => elem,
            _ => buffer.elem,
        };
        let widened = buffer.device_stride != buffer.host_stride;
        let as_bits = self.memory.bitwise.contains(&value);
        let store = |memory: Shape| match memory.scalar {
            _ if widened => memory.of(Scalar::Int32),
            Scalar::Bool => memory.of(Scalar::Int8),
            s if as_bits && s.is_float() => memory.of(Scalar::int(s.width())),
            _ => memory,
        };
        let (leaves, is_struct) = self.element_leaves(elem, store)?;
        for leaf in &leaves {
            self.storage_capability(leaf.stored.scalar);
        }
        let element = self.element_type(&leaves, is_struct);
        if is_struct {
            for (n, leaf) in self.types.leaves(elem).iter().enumerate() {
                self.b.member_offset(element, n as u32, leaf.offset);
            }
        }
        let array = self.b.id();
        self.b.globals.op(Op::TypeRuntimeArray, &[array, element]);
        self.b.decorate(array, Decoration::ArrayStride, &[buffer.device_stride]);
        let block = self.b.structure(&[array]);
        self.b.decorate(block, Decoration::Block, &[]);
        self.b.member_offset(block, 0, 0);
        let variable = self.b.variable(class, block);
        self.b.decorate(variable, Decoration::DescriptorSet, &[0]);
        self.b.decorate(variable, Decoration::Binding, &[buffer.binding]);
        let length = Length::OfBuffer(buffer.index);
        self.add_object(value, Object { class, variable, is_struct, leaves, length });
        Ok(variable)
    }

    /// `gpu.shared` and `gpu.local`: declares the array. A private one is zeroed here.
    pub(crate) fn emit_array(&mut self, i: Inst, class: StorageClass) -> Emit {
        let inst = self.f.inst(i);
        let (elem, len) = match self.types.kind(inst.ty) {
            TypeKind::SharedArray(elem, len) | TypeKind::LocalArray(elem, len) => (elem, len),
            _ => return Err(self.broken_at(i, "not an array")),
        };
        let Some(value) = inst.result() else { return Ok(()) };
        let as_bits = self.memory.bitwise.contains(&value);
        let store = |memory: Shape| match memory.scalar {
            s if as_bits && s.is_float() => memory.of(Scalar::int(s.width())),
            s => memory.of(self.carrier(s)),
        };
        let (leaves, is_struct) = self.element_leaves(elem, store)?;
        for leaf in &leaves {
            if let Some(c) = leaf.stored.scalar.capability() {
                self.b.capability(c);
            }
        }
        let element = self.element_type(&leaves, is_struct);
        let array = self.b.array(element, len);
        let variable = if class == StorageClass::Function {
            let pointer = self.b.pointer(class, array);
            let variable = self.b.id();
            self.variables.op(Op::Variable, &[pointer, variable, class as u32]);
            let zero = self.b.null(array);
            self.body.op(Op::Store, &[variable, zero]);
            variable
        } else {
            self.b.variable(class, array)
        };
        let length = Length::Fixed(len);
        self.add_object(value, Object { class, variable, is_struct, leaves, length });
        Ok(())
    }

    fn add_object(&mut self, value: Value, object: Object) {
        self.set_object(value, self.memory.objects.len() as u32);
        self.memory.objects.push(object);
    }

    /// The leaves of an element type, stored as `store` says for their shape in memory, and whether
    /// there is a structure around them.
    fn element_leaves(
        &self,
        elem: TypeId,
        store: impl Fn(Shape) -> Shape,
    ) -> Emit<(Vec<ElementLeaf>, bool)> {
        let leaves = self.types.leaves(elem);
        if leaves.is_empty() {
            return Err(self.broken("elements without content"));
        }
        let leaves = leaves.iter().map(|leaf| {
            let (memory, _) = self.memory_shape(leaf.ty)?;
            let (value, _) = self.shape_of_type(leaf.ty)?;
            Ok(ElementLeaf { value, stored: store(memory) })
        });
        Ok((leaves.collect::<Emit<_>>()?, self.types.is_aggregate(elem)))
    }

    fn element_type(&mut self, leaves: &[ElementLeaf], is_struct: bool) -> Id {
        let mut members: Vec<Id> = leaves.iter().map(|l| self.b.storage_shape(l.stored)).collect();
        match (is_struct, members.pop()) {
            (false, Some(only)) => only,
            (_, last) => {
                members.extend(last);
                self.b.structure(&members)
            }
        }
    }

    fn storage_capability(&mut self, stored: Scalar) {
        match stored.width() {
            8 => self.b.capability(Capability::StorageBuffer8BitAccess),
            16 => self.b.capability(Capability::StorageBuffer16BitAccess),
            _ => {}
        }
    }

    // ----- accesses -----

    fn object(&self, i: Inst) -> Emit<&Object> {
        let index = self.f.args(i).first().and_then(|&v| self.object_index(v));
        match index.and_then(|n| self.memory.objects.get(n as usize)) {
            Some(object) => Ok(object),
            None => Err(self.broken_at(i, "operand 0 names no memory")),
        }
    }

    /// The place of leaf `leaf` of element operand 1 of the object that is operand 0.
    pub(crate) fn place(&mut self, i: Inst, leaf: u32) -> Emit<Place> {
        if !self.f.inst(i).flags.contains(Flags::UNCHECKED) {
            return Err(self.broken_at(i, "a bounds check that is not lowered"));
        }
        let object = self.object(i)?;
        let (class, variable, is_struct) = (object.class, object.variable, object.is_struct);
        let Some(&leaf_data) = object.leaves.get(leaf as usize) else {
            return Err(self.broken_at(i, "no such member"));
        };
        let Some(&index) = self.f.args(i).get(1) else {
            return Err(self.broken_at(i, "operands are missing"));
        };
        let (shape, _) = self.shape_of_value(index)?;
        let mut index = self.value(index)?;
        if shape.scalar == Scalar::Int64 {
            // No buffer has 2^32 elements, and the index lies inside.
            let ty = self.b.u32_ty();
            index = self.emit(Op::UConvert, ty, &[index]);
        }
        let (mut chain, mut len) = ([variable, 0, 0, 0], 1);
        let mut push = |id| {
            chain[len] = id;
            len += 1;
        };
        if class == StorageClass::StorageBuffer {
            push(self.b.u32(0));
        }
        push(index);
        if is_struct {
            push(self.b.u32(leaf));
        }
        let to = self.b.storage_shape(leaf_data.stored);
        let ty = self.b.pointer(class, to);
        let pointer = self.emit(Op::AccessChain, ty, &chain[..len]);
        Ok(Place { class, pointer, leaf: leaf_data })
    }

    /// A load of a whole element, or of one leaf of it.
    pub(crate) fn emit_load(&mut self, i: Inst, leaf: u32) -> Emit {
        let place = self.place(i, leaf)?;
        let ElementLeaf { value, stored, .. } = place.leaf;
        let ty = self.b.storage_shape(stored);
        if value == stored {
            let id = self.result(i);
            self.body.value(Op::Load, ty, id, &[place.pointer]);
            return Ok(());
        }
        let raw = self.emit(Op::Load, ty, &[place.pointer]);
        let id = self.decode(raw, stored, value);
        let ty = self.b.storage_shape(value);
        self.set_result(i, ty, id);
        Ok(())
    }

    /// A store of operand 2 to a whole element, or to one leaf of it.
    pub(crate) fn emit_store(&mut self, i: Inst, leaf: u32) -> Emit {
        let place = self.place(i, leaf)?;
        let Some(&value) = self.f.args(i).get(2) else {
            return Err(self.broken_at(i, "operands are missing"));
        };
        let value = self.value(value)?;
        let raw = self.encode(value, place.leaf.value, place.leaf.stored);
        self.body.op(Op::Store, &[place.pointer, raw]);
        Ok(())
    }

    /// From what lies in memory to the value.
    pub(crate) fn decode(&mut self, raw: Id, stored: Shape, value: Shape) -> Id {
        if stored == value {
            return raw;
        }
        match value.scalar {
            Scalar::Bool => {
                let word = self.resize_int(raw, stored, value.of(Scalar::Int32));
                let ty = self.b.shape(value);
                let zero = self.b.constant(value.of(Scalar::Int32), 0);
                self.emit(Op::INotEqual, ty, &[word, zero])
            }
            Scalar::Float16 if stored.scalar == Scalar::Int32 => {
                let halves = self.b.shape(Shape { lanes: 2, ..value });
                let ty = self.b.shape(value);
                let both = self.emit(Op::Bitcast, halves, &[raw]);
                self.emit(Op::CompositeExtract, ty, &[both, 0])
            }
            s if s.is_float() => {
                let ty = self.b.shape(value);
                self.emit(Op::Bitcast, ty, &[raw])
            }
            _ => self.resize_int(raw, stored, value),
        }
    }

    /// From a value to what lies in memory.
    pub(crate) fn encode(&mut self, value: Id, shape: Shape, stored: Shape) -> Id {
        if stored == shape {
            return value;
        }
        match shape.scalar {
            Scalar::Bool => {
                let word_shape = shape.of(Scalar::Int32);
                let word = self.bool_to_number(value, word_shape);
                self.resize_int(word, word_shape, stored)
            }
            Scalar::Float16 if stored.scalar == Scalar::Int32 => {
                let zero = self.b.constant(shape, 0);
                let halves = self.b.shape(Shape { lanes: 2, ..shape });
                let both = self.emit(Op::CompositeConstruct, halves, &[value, zero]);
                let ty = self.b.u32_ty();
                self.emit(Op::Bitcast, ty, &[both])
            }
            s if s.is_float() => {
                let ty = self.b.shape(stored);
                self.emit(Op::Bitcast, ty, &[value])
            }
            _ => self.resize_int(value, shape, stored),
        }
    }

    /// Zero-extends or truncates. Types of 8 and 16 bits need no arithmetic capability for this.
    fn resize_int(&mut self, value: Id, from: Shape, to: Shape) -> Id {
        if from == to {
            return value;
        }
        let ty = self.b.storage_shape(to);
        self.emit(Op::UConvert, ty, &[value])
    }

    /// 1 or 0 for a bool.
    pub(crate) fn bool_to_number(&mut self, value: Id, to: Shape) -> Id {
        let ty = self.b.shape(to);
        let (one, zero) = (self.b.constant(to, to.scalar.one()), self.b.constant(to, 0));
        self.emit(Op::Select, ty, &[value, one, zero])
    }

    /// `gpu.buffer_len`.
    pub(crate) fn emit_length(&mut self, i: Inst) -> Emit {
        let length = self.object(i)?.length;
        let (shape, _) = self.shape_of_result(i)?;
        let ty = self.b.shape(shape);
        let id = match length {
            Length::Fixed(n) => self.b.constant(shape, n as u64),
            Length::OfBuffer(n) => match self.hidden_length(n)? {
                (id, scalar) if scalar == shape.scalar => id,
                (id, Scalar::Int32) => self.emit(Op::UConvert, ty, &[id]),
                (id, wide) => {
                    let wide_ty = self.b.shape(Shape::one(wide));
                    let max = self.b.constant(Shape::one(wide), u32::MAX as u64);
                    let least = self.emit_ext(spirv::GlslStd450Op::UMin, wide_ty, &[id, max]);
                    self.emit(Op::UConvert, ty, &[least])
                }
            },
        };
        self.set_result(i, ty, id);
        Ok(())
    }
}
