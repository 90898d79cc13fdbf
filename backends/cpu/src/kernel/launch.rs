//! What a work-group function reads of its launch, once, at its start.

use super::emit::prim_of;
use super::memory::Memory;
use super::vector::MAX_NEAR_LEN;
use crate::pure::clif_type;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, types};
use cranelift_frontend::FunctionBuilder;
use magpie_mpir::Module;
use magpie_types::kernel::{HostBuffer, HostLaunch, ParamLayout};
use std::mem::{offset_of, size_of};

/// Data and length of a buffer argument.
#[derive(Clone, Copy)]
pub(crate) struct BufferArg {
    pub(crate) data: ir::Value,
    pub(crate) len: ir::Value,
}

/// Values that are the same for a whole launch.
pub(crate) struct Launch {
    /// The address of the [`HostLaunch`].
    pub(crate) launch: ir::Value,
    /// In a function that a kernel calls: the address of what it knows of its invocation.
    pub(crate) context: Option<ir::Value>,
    pub(crate) buffers: Vec<BufferArg>,
    /// The address of the list of buffers.
    buffer_list: ir::Value,
    /// Where the address of scratch memory is kept to be read again.
    scratch_slot: ir::StackSlot,
    /// Where values are stored that nobody reads, so that they are computed before.
    pub(crate) pin: ir::StackSlot,
    pub(crate) scalars: ir::Value,
    /// The arguments that are one scalar, by parameter.
    pub(crate) scalar_args: Vec<Option<ir::Value>>,
    /// Whether no buffer is so long that a 32-bit index could wrap between elements that are near
    /// each other.
    pub(crate) lanes_ok: ir::Value,
    pub(crate) grid: [ir::Value; 3],
    pub(crate) block: [ir::Value; 3],
    pub(crate) invocations: ir::Value,
    pub(crate) scratch: ir::Value,
    pub(crate) frame: ir::Value,
}

impl Launch {
    /// What a function that a kernel calls sees of the launch: it has neither shared memory nor a
    /// frame, and its parameters are its own.
    pub(super) fn of_call(
        b: &mut FunctionBuilder,
        [launch, context]: [ir::Value; 2],
        buffers: Vec<BufferArg>,
        scalar_args: Vec<Option<ir::Value>>,
    ) -> Launch {
        let (grid, block) = sizes(b, launch);
        let none = b.ins().iconst(types::I64, 0);
        let no = b.ins().iconst(types::I8, 0);
        let slot = b.create_sized_stack_slot(word());
        Launch {
            launch,
            context: Some(context),
            buffers,
            buffer_list: none,
            scratch_slot: slot,
            pin: slot,
            scalars: none,
            scalar_args,
            lanes_ok: no,
            grid,
            block,
            invocations: none,
            scratch: none,
            frame: none,
        }
    }

    /// Reads the address of a buffer's data at this point.
    pub(crate) fn fetch_data(&self, b: &mut FunctionBuilder, buffer: u32) -> ir::Value {
        let at = buffer as usize * size_of::<HostBuffer>() + offset_of!(HostBuffer, data);
        b.ins().load(types::I64, MemFlagsData::trusted(), self.buffer_list, at as i32)
    }

    /// Reads the address of scratch memory at this point.
    pub(crate) fn fetch_scratch(&self, b: &mut FunctionBuilder) -> ir::Value {
        b.ins().stack_load(types::I64, types::I64, self.scratch_slot, 0)
    }
}

/// A place on the stack for an address or a number.
fn word() -> StackSlotData {
    StackSlotData::new(StackSlotKind::ExplicitSlot, types::I64.bytes(), 3)
}

/// The sizes of the grid and of workgroups.
fn sizes(b: &mut FunctionBuilder, launch: ir::Value) -> ([ir::Value; 3], [ir::Value; 3]) {
    let flags = MemFlagsData::trusted().with_readonly();
    let mut three =
        |base: usize| [0, 4, 8].map(|o| b.ins().load(types::I32, flags, launch, (base + o) as i32));
    (three(offset_of!(HostLaunch, grid)), three(offset_of!(HostLaunch, block)))
}

pub(crate) fn load_launch(
    b: &mut FunctionBuilder,
    entry: ir::Block,
    module: &Module,
    params: &[ParamLayout],
    workgroup: Option<[u32; 3]>,
    memory: &Memory,
) -> Launch {
    let (launch, scratch) = {
        let p = b.block_params(entry);
        (p[0], p[3])
    };
    let flags = MemFlagsData::trusted().with_readonly();
    let at = |offset: usize| offset as i32;
    let buffers = b.ins().load(types::I64, flags, launch, at(offset_of!(HostLaunch, buffers)));
    let scalars = b.ins().load(types::I64, flags, launch, at(offset_of!(HostLaunch, scalars)));
    let (grid, mut block) = sizes(b, launch);
    let args: Vec<BufferArg> = params
        .iter()
        .filter(|p| matches!(p, ParamLayout::Buffer(_)))
        .enumerate()
        .map(|(n, _)| {
            let base = n * size_of::<HostBuffer>();
            BufferArg {
                data: b.ins().load(
                    types::I64,
                    flags,
                    buffers,
                    at(base + offset_of!(HostBuffer, data)),
                ),
                len: b.ins().load(
                    types::I64,
                    flags,
                    buffers,
                    at(base + offset_of!(HostBuffer, len)),
                ),
            }
        })
        .collect();
    let scalar_args = params
        .iter()
        .map(|p| match *p {
            ParamLayout::Scalar { offset, ty, .. } if !module.types.is_aggregate(ty) => {
                let ty = clif_type(prim_of(module, ty));
                Some(b.ins().load(ty, flags, scalars, offset as i32))
            }
            ParamLayout::Scalar { .. } | ParamLayout::Buffer(_) => None,
        })
        .collect();
    let mut lanes_ok = b.ins().iconst(types::I8, 1);
    let invocations;
    if let Some(size) = workgroup {
        block = size.map(|n| b.ins().iconst(types::I32, i64::from(n)));
        let number: i64 = size.into_iter().map(i64::from).product();
        invocations = b.ins().iconst(types::I64, number);
    } else {
        for arg in &args {
            let most = b.ins().iconst(types::I64, MAX_NEAR_LEN as i64);
            let short = b.ins().icmp(IntCC::UnsignedLessThanOrEqual, arg.len, most);
            lanes_ok = b.ins().band(lanes_ok, short);
        }
        let xy = b.ins().imul(block[0], block[1]);
        let xyz = b.ins().imul(xy, block[2]);
        invocations = b.ins().uextend(types::I64, xyz);
    }
    let shared = memory.shared_bytes.next_multiple_of(64);
    let frame = b.ins().iadd_imm_s(scratch, shared as i64);
    let scratch_slot = b.create_sized_stack_slot(word());
    let pin = b.create_sized_stack_slot(word());
    b.ins().stack_store(types::I64, scratch, scratch_slot, 0);
    Launch {
        launch,
        context: None,
        buffers: args,
        buffer_list: buffers,
        scratch_slot,
        pin,
        scalars,
        scalar_args,
        lanes_ok,
        grid,
        block,
        invocations,
        scratch,
        frame,
    }
}
