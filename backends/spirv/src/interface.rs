//! What a kernel sees of its launch: the workgroup size, built-in variables and the scalar block.
//! Each is read once, at the start of the function.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::types::{Scalar, Shape};
use magpie_types::kernel::{ParamLayout, ScalarTransport};
use spirv::{BuiltIn, Decoration, ExecutionMode, Op, StorageClass};

/// What the launch fills, as far as the kernel has asked for it.
#[derive(Default)]
pub(crate) struct Interface {
    /// Specialization constants 0, 1, 2.
    workgroup_size: [Id; 3],
    builtins: Vec<BuiltinRead>,
    block: Option<ScalarBlock>,
    /// What was read from the scalar block: byte offset, shape and value.
    block_reads: Vec<(u32, Shape, Id)>,
}

struct BuiltinRead {
    builtin: BuiltIn,
    /// The value, a vector for the three-dimensional ones.
    whole: Id,
    components: [Id; 3],
}

/// The scalars and hidden lengths of a launch: a structure in push constants or a uniform buffer.
struct ScalarBlock {
    variable: Id,
    class: StorageClass,
    members: Vec<Member>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Member {
    offset: u32,
    shape: Shape,
}

impl Emitter<'_> {
    /// The workgroup size: specialization constants, so that a launch with another size only needs
    /// another pipeline. Called once, before anything reads it.
    pub(crate) fn declare_workgroup_size(&mut self, main: Id) {
        let ty = self.b.u32_ty();
        for (dim, size) in self.layout.workgroup.into_iter().enumerate() {
            let id = self.b.id();
            self.b.globals.op(Op::SpecConstant, &[ty, id, size]);
            self.b.decorate(id, Decoration::SpecId, &[dim as u32]);
            self.b.name(id, ["workgroup_size_x", "workgroup_size_y", "workgroup_size_z"][dim]);
            self.interface.workgroup_size[dim] = id;
        }
        let [x, y, z] = self.interface.workgroup_size;
        let mode = ExecutionMode::LocalSizeId as u32;
        self.b.modes.op(Op::ExecutionModeId, &[main, mode, x, y, z]);
    }

    /// The workgroup size in a dimension below 3.
    pub(crate) fn workgroup_size(&self, dim: usize) -> Id {
        self.interface.workgroup_size[dim]
    }

    /// A component of a built-in `uvec3`.
    pub(crate) fn builtin_component(&mut self, builtin: BuiltIn, dim: usize) -> Id {
        let n = self.builtin_read(builtin, Shape { scalar: Scalar::Int32, lanes: 3 });
        let read = &self.interface.builtins[n];
        if read.components[dim] != 0 {
            return read.components[dim];
        }
        let (whole, ty, id) = (read.whole, self.b.u32_ty(), self.b.id());
        self.prologue.value(Op::CompositeExtract, ty, id, &[whole, dim as u32]);
        self.interface.builtins[n].components[dim] = id;
        id
    }

    /// A built-in `u32`.
    pub(crate) fn builtin_scalar(&mut self, builtin: BuiltIn) -> Id {
        let n = self.builtin_read(builtin, Shape::U32);
        self.interface.builtins[n].whole
    }

    fn builtin_read(&mut self, builtin: BuiltIn, shape: Shape) -> usize {
        if let Some(n) = self.interface.builtins.iter().position(|r| r.builtin == builtin) {
            return n;
        }
        let ty = self.b.shape(shape);
        let variable = self.b.variable(StorageClass::Input, ty);
        self.b.decorate(variable, Decoration::BuiltIn, &[builtin as u32]);
        let whole = self.b.id();
        self.prologue.value(Op::Load, ty, whole, &[variable]);
        self.interface.builtins.push(BuiltinRead { builtin, whole, components: [0; 3] });
        self.interface.builtins.len() - 1
    }

    // ----- scalars -----

    /// A scalar of parameter `n`: the parameter itself, or leaf `leaf` of an aggregate.
    pub(crate) fn scalar_param(&mut self, n: u32, leaf: u32) -> Emit<Id> {
        let Some(&ParamLayout::Scalar { offset, .. }) = self.layout.params.get(n as usize) else {
            return Err(self.broken("a buffer as a value"));
        };
        // Legalisation may have given the parameter another type of the same layout.
        let leaves = self.types.leaves(self.f.params[n as usize].1);
        let Some(leaf) = leaves.get(leaf as usize) else {
            return Err(self.broken("a member that its parameter does not have"));
        };
        let (memory, _) = self.memory_shape(leaf.ty)?;
        self.read_scalar(offset + leaf.offset, memory)
    }

    /// The number of elements of a buffer parameter, in a hidden word of 4 or 8 bytes.
    pub(crate) fn hidden_length(&mut self, buffer: u32) -> Emit<(Id, Scalar)> {
        let Some(&hidden) = self.layout.hidden.iter().find(|h| h.buffer == buffer) else {
            return Err(self.broken("a buffer length that the layout does not carry"));
        };
        let scalar = Scalar::int(hidden.size * 8);
        Ok((self.read_scalar(hidden.offset, Shape::one(scalar))?, scalar))
    }

    /// Reads a scalar or vector, with this shape in memory, at a byte offset of the block.
    fn read_scalar(&mut self, offset: u32, memory: Shape) -> Emit<Id> {
        let known = self.interface.block_reads.iter().find(|r| r.0 == offset && r.1 == memory);
        if let Some(&(.., id)) = known {
            return Ok(id);
        }
        let bytes = memory.scalar.memory_bytes();
        let id = if bytes >= 4 {
            self.read_member(Member { offset, shape: memory })?
        } else {
            let mut lanes = [0; 4];
            for (lane, id) in lanes[..memory.lanes as usize].iter_mut().enumerate() {
                *id = self.read_part(offset + lane as u32 * bytes, memory.scalar)?;
            }
            if memory.lanes == 1 {
                lanes[0]
            } else {
                let ty = self.b.shape(memory.of(self.carrier(memory.scalar)));
                let lanes = &lanes[..memory.lanes as usize];
                self.in_prologue(Op::CompositeConstruct, ty, lanes)
            }
        };
        self.interface.block_reads.push((offset, memory, id));
        Ok(id)
    }

    /// Reads a scalar of 1 or 2 bytes out of the word it lies in, so that the device need not have
    /// small types in push constants.
    fn read_part(&mut self, offset: u32, scalar: Scalar) -> Emit<Id> {
        let word = self.read_scalar(offset & !3, Shape::U32)?;
        let shift = offset % 4 * 8;
        let u32_ty = self.b.u32_ty();
        if scalar == Scalar::Float16 {
            let halves = self.b.shape(Shape { scalar, lanes: 2 });
            let ty = self.b.shape(Shape::one(scalar));
            let both = self.in_prologue(Op::Bitcast, halves, &[word]);
            return Ok(self.in_prologue(Op::CompositeExtract, ty, &[both, shift / 16]));
        }
        let mut part = word;
        if shift != 0 {
            let amount = self.b.u32(shift);
            part = self.in_prologue(Op::ShiftRightLogical, u32_ty, &[part, amount]);
        }
        match self.carrier(scalar) {
            Scalar::Bool => {
                let (mask, zero) = (self.b.u32(0xff), self.b.u32(0));
                let ty = self.b.shape(Shape::BOOL);
                let part = self.in_prologue(Op::BitwiseAnd, u32_ty, &[part, mask]);
                Ok(self.in_prologue(Op::INotEqual, ty, &[part, zero]))
            }
            Scalar::Int32 => Ok(part),
            carrier => {
                let ty = self.b.shape(Shape::one(carrier));
                Ok(self.in_prologue(Op::UConvert, ty, &[part]))
            }
        }
    }

    fn read_member(&mut self, member: Member) -> Emit<Id> {
        if self.interface.block.is_none() {
            let block = self.declare_block()?;
            self.interface.block = Some(block);
        }
        let found = self.interface.block.as_ref().and_then(|b| {
            let index = b.members.iter().position(|&m| m == member)?;
            Some((b.variable, b.class, index as u32))
        });
        let Some((variable, class, index)) = found else {
            return Err(self.broken("a scalar that the layout does not carry"));
        };
        let ty = self.b.shape(member.shape);
        let pointer = self.b.pointer(class, ty);
        let index = self.b.u32(index);
        let place = self.in_prologue(Op::AccessChain, pointer, &[variable, index]);
        Ok(self.in_prologue(Op::Load, ty, &[place]))
    }

    /// Declares the block with all its members, used or not: what the disassembly shows is what
    /// the driver fills.
    fn declare_block(&mut self) -> Emit<ScalarBlock> {
        let (class, binding) = match self.layout.transport {
            ScalarTransport::PushConstants => (StorageClass::PushConstant, None),
            ScalarTransport::Uniform { binding } => (StorageClass::Uniform, Some(binding)),
            ScalarTransport::None | ScalarTransport::Arguments => {
                return Err(self.broken("scalars without a way to pass them"));
            }
        };
        let members = self.block_members()?;
        let mut types = Vec::with_capacity(members.len());
        for m in &members {
            types.push(self.b.shape(m.shape));
        }
        let structure = self.b.structure(&types);
        self.b.decorate(structure, Decoration::Block, &[]);
        for (n, m) in members.iter().enumerate() {
            self.b.member_offset(structure, n as u32, m.offset);
        }
        self.b.name(structure, "Scalars");
        let variable = self.b.variable(class, structure);
        self.b.name(variable, "scalars");
        if let Some(binding) = binding {
            self.b.decorate(variable, Decoration::DescriptorSet, &[0]);
            self.b.decorate(variable, Decoration::Binding, &[binding]);
        }
        Ok(ScalarBlock { variable, class, members })
    }

    fn block_members(&self) -> Emit<Vec<Member>> {
        let mut members = Vec::new();
        for (param, &(_, ty)) in self.layout.params.iter().zip(&self.f.params) {
            let &ParamLayout::Scalar { offset, .. } = param else { continue };
            for leaf in self.types.leaves(ty) {
                let (shape, _) = self.memory_shape(leaf.ty)?;
                let at = offset + leaf.offset;
                let bytes = shape.scalar.memory_bytes();
                if bytes >= 4 {
                    members.push(Member { offset: at, shape });
                } else {
                    let words = at / 4..(at + bytes * shape.lanes as u32).div_ceil(4);
                    members.extend(words.map(|w| Member { offset: w * 4, shape: Shape::U32 }));
                }
            }
        }
        for hidden in &self.layout.hidden {
            let shape = Shape::one(Scalar::int(hidden.size * 8));
            members.push(Member { offset: hidden.offset, shape });
        }
        members.sort_by_key(|m| m.offset);
        members.dedup();
        Ok(members)
    }

    /// Appends an instruction to the start of the function.
    pub(crate) fn in_prologue(&mut self, op: Op, ty: Id, operands: &[Id]) -> Id {
        let id = self.b.id();
        self.prologue.value(op, ty, id, operands);
        id
    }
}
