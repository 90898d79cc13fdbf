//! The kernel as a whole: parameters, arguments, body.

use super::device_fn::{DeviceFn, device_fns};
use super::memory::Output;
use super::{KernelConfig, RandomArgument, RandomBuffer, RandomKernel, Rng};
use crate::{Block, Domain, Flags, Module, MpirFn, MpirGpuMeta, Op, Terminator, Value};
use magpie_diag::Span;
use magpie_types::kernel::GpuBackend;
use magpie_types::{Category, Field, PrimType, Sid, SidKind, TypeId, TypeKind, fixed};

/// Elements of each output buffer that belong to one invocation.
pub(super) const SLOTS: u32 = 4;

/// Makes a random kernel.
pub fn random_kernel(seed: u64, config: &KernelConfig) -> RandomKernel {
    let mut rng = Rng::new(seed);
    let mut module = Module::new();
    let mut types = config.types.clone();
    types.extend([PrimType::U32, PrimType::Bool]);
    types.sort();
    types.dedup();
    let callees = match config.calls {
        true => device_fns(&mut module, &mut rng, config, &types),
        false => Vec::new(),
    };
    let shapes = [([8, 1, 1], [2, 1, 1]), ([4, 2, 1], [2, 1, 1]), ([2, 2, 2], [1, 2, 1])];
    let (block, grid) = shapes[rng.below(shapes.len())];
    let name = "random.@kernel";
    let mut f = MpirFn::new(Sid::new(SidKind::Function, name), name, fixed::UNIT, Domain::Device);
    f.gpu_meta = Some(MpirGpuMeta {
        target: GpuBackend::Spv,
        workgroup: block,
        is_unsafe: false,
        requires: Vec::new(),
        spans: Default::default(),
    });
    let current = f.add_block();
    let mut g = Generator::new(&mut module, &mut rng, config, types, f, current);
    g.callees = callees;
    let invocations = (0..3).map(|d| block[d] * grid[d]).product();
    let (arguments, buffers) = g.parameters(invocations);
    g.ids();
    g.statements(config.depth, config.size);
    g.store_results();
    g.f.block_mut(g.current).term = Terminator::Ret(None);
    let f = g.f;
    let kernel = module.add_fn(f);
    RandomKernel { module, kernel, grid, block, arguments, buffers }
}

/// A function in the making.
pub(super) struct Generator<'a> {
    pub(super) module: &'a mut Module,
    pub(super) rng: &'a mut Rng,
    pub(super) config: &'a KernelConfig,
    /// The scalar types in use.
    pub(super) types: Vec<PrimType>,
    pub(super) f: MpirFn,
    pub(super) current: Block,
    /// Values that may be used here, scalars and vectors and structs.
    pub(super) values: Vec<Value>,
    /// Values that are the same for all invocations of a workgroup.
    pub(super) uniform: Vec<Value>,
    /// Own elements that were accessed before: output and index.
    pub(super) places: Vec<(Output, Value)>,
    /// Whether all invocations of the workgroup are here together.
    pub(super) is_uniform: bool,
    /// Whether some invocations have returned.
    pub(super) returned: bool,
    /// Number of loops around that all invocations go round together.
    pub(super) uniform_loops: usize,
    pub(super) callees: Vec<DeviceFn>,
    pub(super) inputs: Vec<(Value, TypeId)>,
    pub(super) outputs: Vec<Output>,
    pub(super) counters: Option<(Value, Op)>,
    pub(super) struct_ty: Option<TypeId>,
    /// Position of the invocation in its workgroup and in the launch.
    pub(super) local_id: Value,
    pub(super) global_id: Value,
}

impl<'a> Generator<'a> {
    pub(super) fn new(
        module: &'a mut Module,
        rng: &'a mut Rng,
        config: &'a KernelConfig,
        types: Vec<PrimType>,
        mut f: MpirFn,
        current: Block,
    ) -> Generator<'a> {
        let zero = f.const_u32(0);
        Generator {
            module,
            rng,
            config,
            types,
            f,
            current,
            values: Vec::new(),
            uniform: Vec::new(),
            places: Vec::new(),
            is_uniform: true,
            returned: false,
            uniform_loops: 0,
            callees: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            counters: None,
            struct_ty: None,
            local_id: zero,
            global_id: zero,
        }
    }

    fn parameters(&mut self, invocations: u32) -> (Vec<RandomArgument>, Vec<RandomBuffer>) {
        let (mut arguments, mut buffers) = (Vec::new(), Vec::new());
        if self.config.structs {
            self.struct_ty = Some(self.declare_struct());
        }
        let mut elements: Vec<TypeId> = Vec::new();
        for _ in 0..1 + self.rng.below(3) {
            elements.push(self.random_prim().id());
        }
        elements.extend(self.struct_ty.filter(|_| self.rng.chance(60)));
        if self.config.vectors && self.rng.chance(50) {
            elements.extend(self.vector_type());
        }
        elements.retain(|&ty| ty != fixed::BOOL);
        for (n, &element) in elements.iter().enumerate() {
            let ty = self.module.types.intern(TypeKind::Buffer(element));
            let v = self.f.add_param(format!("in{n}"), ty, Span::NONE);
            self.inputs.push((v, element));
            let len = 3 + self.rng.below(30);
            arguments.push(RandomArgument::Buffer(buffers.len()));
            let bytes = (0..len).flat_map(|_| self.random_bytes(element)).collect();
            buffers.push(RandomBuffer { element, bytes });
        }
        let mut out_elements = elements.clone();
        out_elements.push(fixed::U32);
        out_elements.sort();
        out_elements.dedup();
        for (n, &element) in out_elements.iter().enumerate() {
            let ty = self.module.types.intern(TypeKind::Buffer(element));
            // Sometimes the last invocations find no room.
            let missing = if self.rng.chance(30) { self.rng.below(7) as u32 } else { 0 };
            let len = (invocations * SLOTS).saturating_sub(missing);
            let buffer = buffers.len();
            let bytes = (0..len).flat_map(|_| self.random_bytes(element)).collect();
            buffers.push(RandomBuffer { element, bytes });
            let twice = self.config.aliasing && self.rng.chance(20);
            for name in ["out", "alias"].into_iter().take(1 + twice as usize) {
                let v = self.f.add_param(format!("{name}{n}"), ty, Span::NONE);
                self.outputs.push(Output { array: v, element });
                arguments.push(RandomArgument::Buffer(buffer));
            }
        }
        if self.config.atomics {
            let element = if self.rng.chance(50) { fixed::U32 } else { fixed::I32 };
            let ops = [Op::GpuAtomicAdd, Op::GpuAtomicMin, Op::GpuAtomicMax, Op::GpuAtomicXor];
            let ty = self.module.types.intern(TypeKind::Buffer(element));
            let v = self.f.add_param("counters", ty, Span::NONE);
            self.counters = self.rng.pick(&ops).map(|op| (v, op));
            arguments.push(RandomArgument::Buffer(buffers.len()));
            let bytes = (0..8).flat_map(|_| self.random_bytes(element)).collect();
            buffers.push(RandomBuffer { element, bytes });
        }
        for n in 0..2 + self.rng.below(3) {
            let ty = match self.struct_ty {
                Some(ty) if self.rng.chance(20) => ty,
                _ => self.random_prim().id(),
            };
            let v = self.f.add_param(format!("s{n}"), ty, Span::NONE);
            self.values.push(v);
            self.uniform.push(v);
            arguments.push(RandomArgument::Scalar(self.random_bytes(ty)));
        }
        // A number that loops and guards may use.
        let v = self.f.add_param("n", fixed::U32, Span::NONE);
        self.values.push(v);
        self.uniform.push(v);
        let n = self.rng.below(invocations as usize + 8) as u32;
        arguments.push(RandomArgument::Scalar(n.to_le_bytes().to_vec()));
        (arguments, buffers)
    }

    fn declare_struct(&mut self) -> TypeId {
        let types = &mut self.module.types;
        let ty = types.declare_struct("random.TPair", Category::Value);
        let mut fields = Vec::new();
        for n in 0..2 + self.rng.below(2) {
            let p = self.rng.pick(&self.types).unwrap_or(PrimType::U32);
            let p = if p == PrimType::Bool { PrimType::U32 } else { p };
            fields.push(Field { name: format!("f{n}"), ty: p.id() });
        }
        if let TypeKind::Struct(id) = types.kind(ty) {
            types.define_struct(id, fields);
        }
        ty
    }

    /// The linear ids of the invocation.
    fn ids(&mut self) {
        let id = |g: &mut Self, op, dim| g.emit_imm(op, fixed::U32, &[], dim);
        let mut local = id(self, Op::GpuThreadId, 2);
        let mut global = id(self, Op::GpuGlobalId, 2);
        for dim in [1, 0] {
            let size = id(self, Op::GpuWorkgroupSize, dim);
            let groups = id(self, Op::GpuNumWorkgroups, dim);
            let thread = id(self, Op::GpuThreadId, dim);
            let scaled = self.emit(Op::IMul, fixed::U32, &[local, size]);
            local = self.emit(Op::IAdd, fixed::U32, &[scaled, thread]);
            let invocation = id(self, Op::GpuGlobalId, dim);
            let extent = self.emit(Op::IMul, fixed::U32, &[size, groups]);
            let scaled = self.emit(Op::IMul, fixed::U32, &[global, extent]);
            global = self.emit(Op::IAdd, fixed::U32, &[scaled, invocation]);
        }
        // One dimension is common enough to be written plainly.
        let meta = self.f.gpu_meta.as_ref().map(|m| m.workgroup);
        if meta.is_some_and(|w| w[1..] == [1, 1]) {
            local = id(self, Op::GpuThreadId, 0);
            global = id(self, Op::GpuGlobalId, 0);
        }
        self.local_id = local;
        self.global_id = global;
        self.values.extend([local, global]);
        let group = id(self, Op::GpuWorkgroupId, 0);
        self.values.push(group);
        self.uniform.push(group);
    }

    // ----- small things -----

    pub(super) fn random_prim(&mut self) -> PrimType {
        self.rng.pick(&self.types).unwrap_or(PrimType::U32)
    }

    pub(super) fn vector_type(&mut self) -> Option<TypeId> {
        let prims: Vec<PrimType> = self
            .types
            .iter()
            .copied()
            .filter(|p| matches!(p, PrimType::F32 | PrimType::I32 | PrimType::U32 | PrimType::F64))
            .collect();
        let p = self.rng.pick(&prims)?;
        let lanes = 2 + self.rng.below(3) as u8;
        Some(self.module.types.intern(TypeKind::Vec(p, lanes)))
    }

    pub(super) fn emit(&mut self, op: Op, ty: TypeId, args: &[Value]) -> Value {
        self.emit_imm(op, ty, args, 0)
    }

    pub(super) fn emit_imm(&mut self, op: Op, ty: TypeId, args: &[Value], imm: u64) -> Value {
        let v = self.f.append(self.current, op, Flags::NONE, ty, args, imm, Span::NONE);
        v.unwrap_or_else(|| self.f.zero(ty))
    }

    fn random_bytes(&mut self, ty: TypeId) -> Vec<u8> {
        let mut bytes = vec![0; self.module.types.stride(ty) as usize];
        for leaf in self.module.types.leaves(ty) {
            let (p, lanes) = match self.module.types.kind(leaf.ty) {
                TypeKind::Vec(p, n) => (p, n as usize),
                _ => (self.module.types.prim(leaf.ty).unwrap_or(PrimType::U8), 1),
            };
            for lane in 0..lanes {
                let size = p.size() as usize;
                let at = leaf.offset as usize + lane * size;
                let bits = self.random_bits(p).to_le_bytes();
                bytes[at..at + size].copy_from_slice(&bits[..size]);
            }
        }
        bytes
    }
}
