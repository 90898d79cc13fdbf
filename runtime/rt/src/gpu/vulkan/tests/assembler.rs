//! The kernels of the tests as SPIR-V, put together by hand so that nothing but this file decides
//! what they are.

use crate::gpu::tests::support::{EMPTY, NEXT, SCALE, layout, signature};
use magpie_types::kernel::{BlobCode, GpuBackend, KernelBlob, KernelLayout, ScalarTransport};
use spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel,
    FunctionControl, LoopControl, MemoryModel, Op, SelectionControl, StorageClass,
};

type Id = u32;

/// A module under construction: instructions by the section they belong to.
pub(super) struct Module {
    next: Id,
    modes: Vec<u32>,
    annotations: Vec<u32>,
    types: Vec<u32>,
    body: Vec<u32>,
    interface: Vec<Id>,
    entry: String,
    ids: Ids,
}

/// Ids that every kernel needs.
#[derive(Clone, Copy, Default)]
struct Ids {
    void: Id,
    bool: Id,
    u32: Id,
    function: Id,
    main: Id,
    global_id: Id,
    buffers: [Id; 2],
    buffer_pointer: Id,
    block: Id,
    block_pointer: Id,
}

fn push(section: &mut Vec<u32>, op: Op, operands: &[u32]) {
    section.push((operands.len() as u32 + 1) << 16 | op as u32);
    section.extend_from_slice(operands);
}

fn text(name: &str) -> Vec<u32> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(bytes.len() / 4 * 4 + 4, 0);
    bytes.as_chunks::<4>().0.iter().map(|&w| u32::from_le_bytes(w)).collect()
}

impl Module {
    /// A kernel with `u32` buffers at their bindings and a block of `u32` words.
    pub(super) fn new(layout: &KernelLayout) -> Module {
        let mut m = Module {
            next: 1,
            modes: vec![],
            annotations: vec![],
            types: vec![],
            body: vec![],
            interface: vec![],
            entry: layout.entry.clone(),
            ids: Ids::default(),
        };
        m.ids.void = m.ty(Op::TypeVoid, &[]);
        m.ids.bool = m.ty(Op::TypeBool, &[]);
        m.ids.u32 = m.ty(Op::TypeInt, &[32, 0]);
        m.ids.function = m.ty(Op::TypeFunction, &[m.ids.void]);
        m.workgroup_size();
        m.global_id();
        let element = m.ty(Op::TypePointer, &[StorageClass::StorageBuffer as u32, m.ids.u32]);
        m.ids.buffer_pointer = element;
        m.buffers(layout);
        m.block(layout);
        m
    }

    fn id(&mut self) -> Id {
        self.next += 1;
        self.next - 1
    }

    fn ty(&mut self, op: Op, operands: &[u32]) -> Id {
        let id = self.id();
        push(&mut self.types, op, &[&[id], operands].concat());
        id
    }

    pub(super) fn constant(&mut self, value: u32) -> Id {
        let id = self.id();
        push(&mut self.types, Op::Constant, &[self.ids.u32, id, value]);
        id
    }

    fn decorate(&mut self, target: Id, decoration: Decoration, operands: &[u32]) {
        let all = [&[target, decoration as u32], operands].concat();
        push(&mut self.annotations, Op::Decorate, &all);
    }

    fn variable(&mut self, pointer: Id, class: StorageClass) -> Id {
        let id = self.id();
        push(&mut self.types, Op::Variable, &[pointer, id, class as u32]);
        self.interface.push(id);
        id
    }

    /// `LocalSizeId` with specialisation constants 0, 1, 2.
    fn workgroup_size(&mut self) {
        self.ids.main = self.id();
        let mut operands = vec![self.ids.main, ExecutionMode::LocalSizeId as u32];
        for (spec, size) in [64, 1, 1].into_iter().enumerate() {
            let id = self.id();
            push(&mut self.types, Op::SpecConstant, &[self.ids.u32, id, size]);
            self.decorate(id, Decoration::SpecId, &[spec as u32]);
            operands.push(id);
        }
        push(&mut self.modes, Op::ExecutionModeId, &operands);
    }

    fn global_id(&mut self) {
        let vector = self.ty(Op::TypeVector, &[self.ids.u32, 3]);
        let pointer = self.ty(Op::TypePointer, &[StorageClass::Input as u32, vector]);
        let variable = self.variable(pointer, StorageClass::Input);
        self.decorate(variable, Decoration::BuiltIn, &[BuiltIn::GlobalInvocationId as u32]);
        self.ids.global_id = variable;
        // The type of the load is the vector, which stands right before the pointer.
    }

    fn buffers(&mut self, layout: &KernelLayout) {
        let class = StorageClass::StorageBuffer;
        let array = self.ty(Op::TypeRuntimeArray, &[self.ids.u32]);
        self.decorate(array, Decoration::ArrayStride, &[4]);
        let block = self.ty(Op::TypeStruct, &[array]);
        self.decorate(block, Decoration::Block, &[]);
        let offset = [block, 0, Decoration::Offset as u32, 0];
        push(&mut self.annotations, Op::MemberDecorate, &offset);
        let pointer = self.ty(Op::TypePointer, &[class as u32, block]);
        for buffer in layout.buffers() {
            let variable = self.variable(pointer, class);
            self.decorate(variable, Decoration::DescriptorSet, &[0]);
            self.decorate(variable, Decoration::Binding, &[buffer.binding]);
            self.ids.buffers[buffer.index as usize] = variable;
        }
    }

    fn block(&mut self, layout: &KernelLayout) {
        let class = match layout.transport {
            ScalarTransport::PushConstants => StorageClass::PushConstant,
            ScalarTransport::Uniform { .. } => StorageClass::Uniform,
            ScalarTransport::None | ScalarTransport::Arguments => return,
        };
        let words = layout.block_size / 4;
        let block = self.ty(Op::TypeStruct, &vec![self.ids.u32; words as usize]);
        self.decorate(block, Decoration::Block, &[]);
        for word in 0..words {
            let offset = [block, word, Decoration::Offset as u32, word * 4];
            push(&mut self.annotations, Op::MemberDecorate, &offset);
        }
        let pointer = self.ty(Op::TypePointer, &[class as u32, block]);
        self.ids.block = self.variable(pointer, class);
        self.ids.block_pointer = self.ty(Op::TypePointer, &[class as u32, self.ids.u32]);
        if let ScalarTransport::Uniform { binding } = layout.transport {
            self.decorate(self.ids.block, Decoration::DescriptorSet, &[0]);
            self.decorate(self.ids.block, Decoration::Binding, &[binding]);
        }
    }

    fn value(&mut self, op: Op, ty: Id, operands: &[u32]) -> Id {
        let id = self.id();
        push(&mut self.body, op, &[&[ty, id], operands].concat());
        id
    }

    fn binary(&mut self, op: Op, a: Id, b: Id) -> Id {
        self.value(op, self.ids.u32, &[a, b])
    }

    fn effect(&mut self, op: Op, operands: &[u32]) {
        push(&mut self.body, op, operands);
    }

    fn label(&mut self, id: Id) {
        self.effect(Op::Label, &[id]);
    }

    /// The word at a byte offset of the block.
    fn word(&mut self, offset: u32) -> Id {
        let index = self.constant(offset / 4);
        let pointer = self.value(Op::AccessChain, self.ids.block_pointer, &[self.ids.block, index]);
        self.value(Op::Load, self.ids.u32, &[pointer])
    }

    /// The address of an element.
    fn element(&mut self, buffer: usize, index: Id) -> Id {
        let member = self.constant(0);
        let base = self.ids.buffers[buffer];
        self.value(Op::AccessChain, self.ids.buffer_pointer, &[base, member, index])
    }

    fn begin(&mut self) {
        let (void, main, function) = (self.ids.void, self.ids.main, self.ids.function);
        self.effect(Op::Function, &[void, main, FunctionControl::NONE.bits(), function]);
        let start = self.id();
        self.label(start);
    }

    /// `gl_GlobalInvocationID.x`.
    fn global_x(&mut self) -> Id {
        let zero = self.constant(0);
        let class = StorageClass::Input as u32;
        let pointer = self.ty(Op::TypePointer, &[class, self.ids.u32]);
        let address = self.value(Op::AccessChain, pointer, &[self.ids.global_id, zero]);
        self.value(Op::Load, self.ids.u32, &[address])
    }

    /// Runs `then` where `index` is below the lengths of the first `buffers` buffers.
    fn guarded(&mut self, layout: &KernelLayout, index: Id, then: impl FnOnce(&mut Module)) {
        let mut inside = None;
        for hidden in &layout.hidden {
            let len = self.word(hidden.offset);
            let below = self.value(Op::ULessThan, self.ids.bool, &[index, len]);
            inside = Some(match inside {
                None => below,
                Some(all) => self.value(Op::LogicalAnd, self.ids.bool, &[all, below]),
            });
        }
        let (body, merge) = (self.id(), self.id());
        self.effect(Op::SelectionMerge, &[merge, SelectionControl::NONE.bits()]);
        self.effect(Op::BranchConditional, &[inside.unwrap_or_default(), body, merge]);
        self.label(body);
        then(self);
        self.effect(Op::Branch, &[merge]);
        self.label(merge);
    }

    /// The bytes of the module.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.effect(Op::Return, &[]);
        self.effect(Op::FunctionEnd, &[]);
        let mut words = vec![spirv::MAGIC_NUMBER, 0x0001_0600, 0, self.next, 0];
        push(&mut words, Op::Capability, &[Capability::Shader as u32]);
        let model = [AddressingModel::Logical as u32, MemoryModel::GLSL450 as u32];
        push(&mut words, Op::MemoryModel, &model);
        let mut entry = vec![ExecutionModel::GLCompute as u32, self.ids.main];
        entry.extend(text(&self.entry));
        entry.extend(&self.interface);
        push(&mut words, Op::EntryPoint, &entry);
        for section in [&self.modes, &self.annotations, &self.types, &self.body] {
            words.extend(section);
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

fn scale(layout: &KernelLayout) -> Vec<u8> {
    let mut m = Module::new(layout);
    m.begin();
    let i = m.global_x();
    m.guarded(layout, i, |m| {
        let address = m.element(0, i);
        let old = m.value(Op::Load, m.ids.u32, &[address]);
        let factor = m.word(0);
        let product = m.binary(Op::IMul, old, factor);
        let one = m.constant(1);
        let new = m.binary(Op::IAdd, product, one);
        m.effect(Op::Store, &[address, new]);
    });
    m.finish()
}

fn next(layout: &KernelLayout) -> Vec<u8> {
    let mut m = Module::new(layout);
    m.begin();
    let i = m.global_x();
    m.guarded(layout, i, |m| {
        let from = m.element(0, i);
        let old = m.value(Op::Load, m.ids.u32, &[from]);
        let one = m.constant(1);
        let new = m.binary(Op::IAdd, old, one);
        let to = m.element(1, i);
        m.effect(Op::Store, &[to, new]);
    });
    m.finish()
}

fn empty(layout: &KernelLayout) -> Vec<u8> {
    let mut m = Module::new(layout);
    m.begin();
    m.finish()
}

/// A loop that adds its counter to the element in memory.
fn spin(layout: &KernelLayout) -> Vec<u8> {
    let mut m = Module::new(layout);
    m.begin();
    let i = m.global_x();
    m.guarded(layout, i, |m| {
        let address = m.element(0, i);
        let rounds = m.word(0);
        let (zero, one) = (m.constant(0), m.constant(1));
        let [before, header, body, latch, merge] = std::array::from_fn(|_| m.id());
        let increased = m.id();
        m.effect(Op::Branch, &[before]);
        m.label(before);
        m.effect(Op::Branch, &[header]);
        m.label(header);
        let round = m.value(Op::Phi, m.ids.u32, &[zero, before, increased, latch]);
        let more = m.value(Op::ULessThan, m.ids.bool, &[round, rounds]);
        m.effect(Op::LoopMerge, &[merge, latch, LoopControl::NONE.bits()]);
        m.effect(Op::BranchConditional, &[more, body, merge]);
        m.label(body);
        let old = m.value(Op::Load, m.ids.u32, &[address]);
        let new = m.binary(Op::IAdd, old, round);
        m.effect(Op::Store, &[address, new]);
        m.effect(Op::Branch, &[latch]);
        m.label(latch);
        let ty = m.ids.u32;
        push(&mut m.body, Op::IAdd, &[ty, increased, round, one]);
        m.effect(Op::Branch, &[header]);
        m.label(merge);
    });
    m.finish()
}

/// The SPIR-V blob of a kernel for a layout.
pub(super) fn assemble(kernel: u64, layout: KernelLayout) -> KernelBlob {
    let code = match kernel {
        SCALE => scale(&layout),
        NEXT => next(&layout),
        EMPTY => empty(&layout),
        _ => spin(&layout),
    };
    let code = BlobCode::Bytes(code);
    KernelBlob { backend: GpuBackend::Spv, layout, code, unchecked: None }
}

/// The SPIR-V blob of a kernel, scalars in push constants or in a uniform block.
pub(super) fn spirv_blob(kernel: u64, uniform: bool) -> KernelBlob {
    let (name, params) = signature(kernel);
    let mut layout = layout(name, params, GpuBackend::Spv);
    if uniform && layout.block_size > 0 {
        layout.transport = ScalarTransport::Uniform { binding: layout.num_buffers() as u32 };
    }
    assemble(kernel, layout)
}
