//! Workgroups, invocations and where they wait for each other.

use crate::exec::{self, Stop};
use crate::memory::Buffer;
use crate::value::{ArrayRef, Frame, Val};
use magpie_diag::Span;
use magpie_mpir::analysis::{Cfg, meeting_order};
use magpie_mpir::{Block, Const, FnId, Inst, Module, MpirFn, Op, Value, ValueDef};
use magpie_types::TypeId;
use magpie_types::kernel::HOST_SUBGROUP_SIZE;
use rustc_hash::FxHashMap;

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A buffer, by its number in the list given to [`run_kernel`]. Two arguments may name one.
    Buffer(usize),
    /// The bytes of a scalar or value struct in host layout.
    Scalar(Vec<u8>),
}

/// Sizes and limits of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// Number of workgroups in each dimension.
    pub grid: [u32; 3],
    /// Invocations of a workgroup in each dimension.
    pub block: [u32; 3],
    /// Invocations of a subgroup.
    pub subgroup_size: u32,
    /// Instructions that one invocation may execute before it counts as hung.
    pub max_steps: u64,
}

impl Launch {
    /// A launch with the subgroups of the CPU device and no limit that a sane kernel meets.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Launch {
        Launch { grid, block, subgroup_size: HOST_SUBGROUP_SIZE, max_steps: 1 << 32 }
    }
}

/// Behaviour that no device defines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Where in the source.
    pub span: Span,
    /// What happened, with the invocation.
    pub message: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// A call in progress.
pub(crate) struct Activation {
    pub(crate) func: FnId,
    pub(crate) block: Block,
    /// Position of the next instruction in the block.
    pub(crate) next: usize,
    pub(crate) values: Frame,
    /// The caller's value for the result.
    pub(crate) result: Option<Value>,
}

/// One invocation of a workgroup.
pub(crate) struct Invocation {
    pub(crate) thread: [u32; 3],
    pub(crate) lane: u32,
    pub(crate) stack: Vec<Activation>,
    pub(crate) locals: Vec<Vec<u8>>,
    pub(crate) steps: u64,
    pub(crate) stop: Stop,
}

/// What all invocations of a workgroup see.
pub(crate) struct Group<'m, 'b> {
    pub(crate) module: &'m Module,
    pub(crate) launch: Launch,
    pub(crate) workgroup: [u32; 3],
    pub(crate) buffers: &'m mut [Buffer<'b>],
    /// Shared arrays with the instruction that names each.
    pub(crate) shared: Vec<((FnId, Inst), Vec<u8>)>,
    /// What was printed, with the number of the invocation that did.
    pub(crate) printed: Vec<(u32, String)>,
    /// For each function that a subgroup met in, the order of its blocks.
    pub(crate) orders: &'m mut Orders,
}

/// The [`meeting_order`] of functions, found when it is needed.
#[derive(Default)]
pub(crate) struct Orders(FxHashMap<FnId, Vec<u32>>);

impl Orders {
    fn place(&mut self, module: &Module, func: FnId, block: Block) -> u32 {
        let find = || meeting_order(&Cfg::new(module.func(func)));
        self.0.entry(func).or_insert_with(find)[block.index()]
    }
}

/// Runs a kernel. `print` receives the lines of `gpu.print`, those of a workgroup when it ends and
/// ordered by invocation.
pub fn run_kernel(
    module: &Module,
    kernel: FnId,
    launch: Launch,
    arguments: &[Argument],
    buffers: &mut [Buffer],
    print: &mut dyn FnMut(&str),
) -> Result<(), Fault> {
    let [gx, gy, gz] = launch.grid;
    let mut orders = Orders::default();
    for z in 0..gz {
        for y in 0..gy {
            for x in 0..gx {
                let mut group = Group {
                    module,
                    launch,
                    workgroup: [x, y, z],
                    buffers: &mut *buffers,
                    shared: Vec::new(),
                    printed: Vec::new(),
                    orders: &mut orders,
                };
                let done = run_workgroup(&mut group, kernel, arguments);
                // Stable: lines of an invocation stay in their order.
                group.printed.sort_by_key(|&(invocation, _)| invocation);
                group.printed.iter().for_each(|(_, line)| print(line));
                done?;
            }
        }
    }
    Ok(())
}

/// The values of parameters and constants; results come as the function runs.
pub(crate) fn new_frame(module: &Module, f: &MpirFn, params: impl Iterator<Item = Val>) -> Frame {
    let mut frame: Frame = vec![None; f.locals.len()];
    for (n, local) in f.locals.iter().enumerate() {
        frame[n] = match local.def {
            ValueDef::Const(Const::Bits(bits)) => Some(Val::Bits(bits)),
            ValueDef::Const(_) => Some(Val::zero(&module.types, local.ty)),
            ValueDef::Param(_) | ValueDef::Inst(_) => None,
        };
    }
    for (&(v, _), value) in f.params.iter().zip(params) {
        frame[v.index()] = Some(value);
    }
    frame
}

fn argument(module: &Module, ty: TypeId, a: &Argument) -> Val {
    match a {
        Argument::Buffer(n) => Val::Array(ArrayRef::Buffer(*n)),
        Argument::Scalar(bytes) => crate::memory::load(bytes, &module.types, ty, 0),
    }
}

fn run_workgroup(group: &mut Group, kernel: FnId, arguments: &[Argument]) -> Result<(), Fault> {
    let module = group.module;
    let f = module.func(kernel);
    let params = f.params.iter().zip(arguments).map(|(&(_, ty), a)| argument(module, ty, a));
    let frame = new_frame(module, f, params);
    let [bx, by, bz] = group.launch.block;
    let mut invocations = Vec::new();
    for z in 0..bz {
        for y in 0..by {
            for x in 0..bx {
                let linear = (z * by + y) * bx + x;
                invocations.push(Invocation {
                    thread: [x, y, z],
                    lane: linear % group.launch.subgroup_size,
                    stack: vec![Activation {
                        func: kernel,
                        block: Block(0),
                        next: 0,
                        values: frame.clone(),
                        result: None,
                    }],
                    locals: Vec::new(),
                    steps: 0,
                    stop: Stop::Running,
                });
            }
        }
    }
    loop {
        for chunk in invocations.chunks_mut(group.launch.subgroup_size as usize) {
            run_subgroup(group, chunk)?;
        }
        let waiting = invocations.iter().filter(|i| matches!(i.stop, Stop::Barrier(_))).count();
        if waiting == 0 {
            return Ok(());
        }
        if let Some(Stop::Barrier(span)) = invocations
            .iter()
            .map(|i| &i.stop)
            .find(|s| waiting < invocations.len() && matches!(s, Stop::Barrier(_)))
        {
            return Err(Fault {
                span: *span,
                message: format!(
                    "barrier reached by {waiting} of {} invocations of workgroup {:?}",
                    invocations.len(),
                    group.workgroup
                ),
            });
        }
        for i in &mut invocations {
            i.stop = Stop::Running;
        }
    }
}

/// Runs the invocations of a subgroup until each waits at a barrier or has ended.
fn run_subgroup(group: &mut Group, lanes: &mut [Invocation]) -> Result<(), Fault> {
    loop {
        for i in lanes.iter_mut() {
            while matches!(i.stop, Stop::Running) {
                i.stop = exec::step(group, i)?;
            }
        }
        // Of the subgroup operations waited for, the first in program order goes on.
        let mut places: Vec<Option<MeetingPoint>> = Vec::new();
        for lane in lanes.iter() {
            places.push(meeting_point(group, lane));
        }
        let Some(first) = places.iter().flatten().min() else { return Ok(()) };
        let members: Vec<usize> =
            (0..lanes.len()).filter(|&n| places[n].as_ref() == Some(first)).collect();
        exec::subgroup(group, lanes, &members);
        for &n in &members {
            lanes[n].stop = Stop::Running;
        }
    }
}

/// From the kernel to the innermost call: the place of the block in its order, and the position of
/// the call or the operation in the block.
type MeetingPoint = Vec<(u32, usize)>;

fn meeting_point(group: &mut Group, i: &Invocation) -> Option<MeetingPoint> {
    let (top, callers) = i.stack.split_last().filter(|_| matches!(i.stop, Stop::Subgroup))?;
    let mut at = |a: &Activation, next| (group.orders.place(group.module, a.func, a.block), next);
    // A caller's next instruction is the one behind the call.
    let mut point: MeetingPoint = callers.iter().map(|a| at(a, a.next - 1)).collect();
    point.push(at(top, top.next));
    Some(point)
}

/// The instruction an invocation stands before.
pub(crate) fn current<'m>(module: &'m Module, i: &Invocation) -> Option<(&'m MpirFn, Inst)> {
    let top = i.stack.last()?;
    let f = module.func(top.func);
    f.block(top.block).insts.get(top.next).map(|&inst| (f, inst))
}

/// Whether an op needs the other invocations of the subgroup.
pub(crate) fn is_subgroup_op(op: Op) -> bool {
    op.info().convergent && op != Op::GpuBarrier
}
