//! How the parameters of a kernel travel to a device: computes [`KernelLayout`].

use magpie_mpir::{Flags, Memory, MpirFn, Op, Value, ValueDef};
use magpie_types::kernel::{
    BufferParam, DeviceFeatures, HiddenLength, KernelLayout, ParamLayout, ScalarTransport,
};
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind, fixed};

/// Where a target takes scalar arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalarRule {
    /// As arguments of the kernel function.
    Arguments,
    /// In push constants while they fit, else in a uniform buffer at the binding after the last
    /// buffer.
    PushConstants {
        /// Bytes the device has for them.
        limit: u32,
    },
    /// In a uniform buffer at the binding after the last buffer.
    Uniform,
}

/// What a target decides about the layout of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayoutRules {
    /// Where scalars go.
    pub scalars: ScalarRule,
    /// Buffers can hold 8-bit elements; else elements of 1 byte take 4.
    pub storage8: bool,
    /// Buffers can hold 16-bit elements; else elements of 2 bytes take 4.
    pub storage16: bool,
    /// Bytes of a hidden length word (4 or 8); 0 where kernels find lengths without one.
    pub hidden_length: u32,
    /// A launch cannot choose another workgroup size.
    pub fixed_workgroup: bool,
}

impl LayoutRules {
    /// Targets whose kernels are functions with parameters: every scalar is one, and the lengths of
    /// buffers follow, 8 bytes each.
    pub const ARGUMENTS: LayoutRules = LayoutRules {
        scalars: ScalarRule::Arguments,
        storage8: true,
        storage16: true,
        hidden_length: 8,
        fixed_workgroup: false,
    };
}

/// The largest alignment of a member of the scalar block, in bytes.
const MAX_SCALAR_ALIGN: u32 = 16;

/// The layout of a kernel for a target: from the parameter types, from the buffers whose length
/// the body reads or has to check indices against, and from the shared arrays it makes. Features
/// and preconditions are left empty for the passes that know them.
pub fn compute_layout(f: &MpirFn, types: &TypeCtx, rules: &LayoutRules) -> KernelLayout {
    let (writes, needs_length) = buffer_uses(f);
    let mut params = Vec::with_capacity(f.params.len());
    let mut hidden_buffers = Vec::new();
    let (mut buffers, mut offset) = (0, 0u32);
    for (n, &(_, ty)) in f.params.iter().enumerate() {
        params.push(match types.kind(ty) {
            TypeKind::Buffer(elem) => {
                if needs_length[n] {
                    hidden_buffers.push(buffers);
                }
                let host_stride = types.stride(elem);
                buffers += 1;
                ParamLayout::Buffer(BufferParam {
                    index: buffers - 1,
                    binding: buffers - 1,
                    elem,
                    host_stride,
                    device_stride: device_stride(types, elem, rules),
                    writes: writes[n],
                })
            }
            _ => {
                let layout = types.layout(ty);
                offset = offset.next_multiple_of(layout.align.min(MAX_SCALAR_ALIGN));
                let at = offset;
                offset += layout.size;
                ParamLayout::Scalar { offset: at, size: layout.size, ty }
            }
        });
    }
    let scalar_size = offset.next_multiple_of(16);
    let size = rules.hidden_length;
    let mut hidden = Vec::new();
    if size > 0 {
        for (n, &buffer) in hidden_buffers.iter().enumerate() {
            hidden.push(HiddenLength { buffer, offset: scalar_size + n as u32 * size, size });
        }
    }
    let block_size = (scalar_size + hidden.len() as u32 * size).next_multiple_of(16);
    let uniform = ScalarTransport::Uniform { binding: buffers };
    KernelLayout {
        entry: entry_name(f),
        params,
        scalar_size,
        hidden,
        block_size,
        transport: match rules.scalars {
            _ if block_size == 0 => ScalarTransport::None,
            ScalarRule::Arguments => ScalarTransport::Arguments,
            ScalarRule::PushConstants { limit } if block_size <= limit => {
                ScalarTransport::PushConstants
            }
            ScalarRule::PushConstants { .. } | ScalarRule::Uniform => uniform,
        },
        workgroup: f.gpu_meta.as_ref().map_or([64, 1, 1], |m| m.workgroup),
        fixed_workgroup: rules.fixed_workgroup,
        shared_bytes: shared_bytes(f, types),
        features: DeviceFeatures::default(),
        preconditions: Vec::new(),
        prints: f.prints.clone(),
    }
}

/// The name of a kernel without its module: what entry points are called.
pub fn entry_name(f: &MpirFn) -> String {
    let name = f.name.rsplit('@').next().unwrap_or(&f.name);
    let mut out: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.insert(0, 'k');
    }
    out
}

/// Bytes of static shared memory: the arrays one behind the other at natural alignment.
pub fn shared_bytes(f: &MpirFn, types: &TypeCtx) -> u32 {
    let mut total = 0u64;
    for block in &f.blocks {
        for &i in &block.insts {
            if f.inst(i).op == Op::GpuShared {
                total = add_shared(total, types, f.inst(i).ty, 1);
            }
        }
    }
    u32::try_from(total).unwrap_or(u32::MAX)
}

/// `total` bytes and one more shared array behind them, where a `bool` takes `bool_size` bytes.
pub(crate) fn add_shared(total: u64, types: &TypeCtx, array: TypeId, bool_size: u32) -> u64 {
    let TypeKind::SharedArray(elem, len) = types.kind(array) else { return total };
    let (stride, align) = match elem {
        fixed::BOOL => (bool_size, bool_size),
        _ => (types.stride(elem), types.layout(elem).align),
    };
    total.next_multiple_of(align.max(1) as u64) + stride as u64 * len as u64
}

/// Bytes between elements on the device.
fn device_stride(types: &TypeCtx, elem: TypeId, rules: &LayoutRules) -> u32 {
    let widened = match types.prim(elem).map(PrimType::size) {
        Some(1) => !rules.storage8,
        Some(2) => !rules.storage16,
        _ => false,
    };
    if widened { 4 } else { types.stride(elem) }
}

/// For each parameter: whether the body may write to it, and whether it needs its length.
fn buffer_uses(f: &MpirFn) -> (Vec<bool>, Vec<bool>) {
    let mut writes = vec![false; f.params.len()];
    let mut needs_length = vec![false; f.params.len()];
    let param = |v: Value| match f.def(v) {
        ValueDef::Param(n) => Some(n as usize),
        ValueDef::Inst(_) | ValueDef::Const(_) => None,
    };
    for block in &f.blocks {
        for &i in &block.insts {
            let op = f.inst(i).op;
            let (is_write, is_access) = match op.info().memory {
                Memory::Write | Memory::Atomic => (true, true),
                Memory::Read => (false, true),
                Memory::Any => (true, false),
                Memory::None | Memory::Fence => (false, false),
            };
            let is_checked = is_access && !f.inst(i).flags.contains(Flags::UNCHECKED);
            // A call may write to every buffer it is given; an access names it first.
            let named = if op.info().memory == Memory::Any { f.args(i).len() } else { 1 };
            for &v in f.args(i).iter().take(named) {
                if let Some(n) = param(v) {
                    writes[n] |= is_write;
                    needs_length[n] |= is_checked || matches!(op, Op::GpuBufferLen | Op::Call);
                }
            }
        }
    }
    (writes, needs_length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_diag::Span;
    use magpie_mpir::{Domain, Terminator};
    use magpie_types::{Category, Field, Sid, SidKind};

    const VULKAN: LayoutRules = LayoutRules {
        scalars: ScalarRule::PushConstants { limit: 128 },
        storage8: true,
        storage16: true,
        hidden_length: 0,
        fixed_workgroup: false,
    };

    fn kernel(params: &[TypeId]) -> MpirFn {
        let sid = Sid::new(SidKind::Function, "m.@k");
        let mut f = MpirFn::new(sid, "m.@k", fixed::UNIT, Domain::Device);
        for (n, &ty) in params.iter().enumerate() {
            f.add_param(format!("p{n}"), ty, Span::NONE);
        }
        let b = f.add_block();
        f.block_mut(b).term = Terminator::Ret(None);
        f
    }

    fn scalar_offsets(layout: &KernelLayout) -> Vec<u32> {
        let offset = |p: &ParamLayout| match p {
            ParamLayout::Scalar { offset, .. } => Some(*offset),
            ParamLayout::Buffer(_) => None,
        };
        layout.params.iter().filter_map(offset).collect()
    }

    #[test]
    fn scalars_lie_at_natural_alignment() {
        let mut types = TypeCtx::new();
        let buffer = types.intern(TypeKind::Buffer(fixed::F32));
        let vec3 = types.intern(TypeKind::Vec(PrimType::F32, 3));
        let pair = types.declare_struct("m.TPair", Category::Value);
        let TypeKind::Struct(id) = types.kind(pair) else { panic!("a struct was declared") };
        let field = |ty| Field { name: String::new(), ty };
        types.define_struct(id, vec![field(fixed::U8), field(fixed::F64)]);
        let f = kernel(&[fixed::U8, buffer, fixed::U32, pair, fixed::BOOL, vec3]);
        let layout = compute_layout(&f, &types, &VULKAN);
        assert_eq!(scalar_offsets(&layout), [0, 4, 8, 24, 32]);
        assert_eq!((layout.scalar_size, layout.block_size), (48, 48));
        assert_eq!(layout.transport, ScalarTransport::PushConstants);
        assert_eq!(layout.entry, "k");
    }

    #[test]
    fn many_scalars_move_to_a_uniform_buffer() {
        let mut types = TypeCtx::new();
        let buffer = types.intern(TypeKind::Buffer(fixed::F32));
        let mut params = vec![buffer, buffer];
        params.extend([fixed::F64; 16]);
        let layout = compute_layout(&kernel(&params), &types, &VULKAN);
        assert_eq!(layout.transport, ScalarTransport::PushConstants);
        params.push(fixed::U8);
        let layout = compute_layout(&kernel(&params), &types, &VULKAN);
        assert_eq!(layout.transport, ScalarTransport::Uniform { binding: 2 });
        assert_eq!(layout.block_size, 144);
    }

    #[test]
    fn no_scalars_take_no_room() {
        let layout = compute_layout(&kernel(&[]), &TypeCtx::new(), &VULKAN);
        assert_eq!(layout.transport, ScalarTransport::None);
        assert_eq!(layout.block_size, 0);
    }

    #[test]
    fn narrow_elements_widen_where_there_is_no_narrow_storage() {
        let mut types = TypeCtx::new();
        let elems = [fixed::BOOL, fixed::I8, fixed::F16, fixed::BF16, fixed::U16, fixed::F32];
        let params = elems.map(|e| types.intern(TypeKind::Buffer(e)));
        let strides = |storage8, storage16| -> Vec<u32> {
            let rules = LayoutRules { storage8, storage16, ..VULKAN };
            let layout = compute_layout(&kernel(&params), &types, &rules);
            layout.buffers().map(|b| b.device_stride).collect()
        };
        assert_eq!(strides(true, true), [1, 1, 2, 2, 2, 4]);
        assert_eq!(strides(false, true), [4, 4, 2, 2, 2, 4]);
        assert_eq!(strides(true, false), [1, 1, 4, 4, 4, 4]);
    }

    #[test]
    fn hidden_lengths_follow_the_scalars_of_buffers_whose_length_is_needed() {
        let mut types = TypeCtx::new();
        let buffer = types.intern(TypeKind::Buffer(fixed::F32));
        let mut f = kernel(&[buffer, fixed::U32, buffer, buffer]);
        let (b, none) = (magpie_mpir::Block(0), Span::NONE);
        let arg = [f.params[2].0];
        f.append(b, Op::GpuBufferLen, Flags::NONE, fixed::U64, &arg, 0, none);
        let zero = f.const_u32(0);
        let store = [f.params[3].0, zero, f.zero(fixed::F32)];
        f.append(b, Op::GpuBufferStore, Flags::UNCHECKED, fixed::UNIT, &store, 0, none);
        let load = [f.params[0].0, zero];
        f.append(b, Op::GpuBufferLoad, Flags::NONE, fixed::F32, &load, 0, none);
        let rules = LayoutRules { hidden_length: 8, scalars: ScalarRule::Arguments, ..VULKAN };
        let layout = compute_layout(&f, &types, &rules);
        let expected =
            [(0, 16), (1, 24)].map(|(buffer, offset)| HiddenLength { buffer, offset, size: 8 });
        assert_eq!(layout.hidden, expected);
        assert_eq!((layout.scalar_size, layout.block_size), (16, 32));
        assert_eq!(layout.transport, ScalarTransport::Arguments);
        let writes: Vec<bool> = layout.buffers().map(|b| b.writes).collect();
        assert_eq!(writes, [false, false, true]);
    }

    #[test]
    fn shared_arrays_add_up() {
        let mut types = TypeCtx::new();
        let mut f = kernel(&[]);
        for (elem, len) in [(fixed::U8, 3), (fixed::F64, 2)] {
            let ty = types.intern(TypeKind::SharedArray(elem, len));
            f.append(magpie_mpir::Block(0), Op::GpuShared, Flags::NONE, ty, &[], 0, Span::NONE);
        }
        assert_eq!(compute_layout(&f, &types, &VULKAN).shared_bytes, 8 + 16);
    }

    #[test]
    fn entry_names_are_identifiers() {
        let mut f = kernel(&[]);
        for (name, entry) in [("a.b.@scale_2", "scale_2"), ("k<f32>", "k_f32_"), ("m.@9", "k9")] {
            f.name = name.to_string();
            assert_eq!(entry_name(&f), entry);
        }
    }
}
