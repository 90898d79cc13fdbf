//! Launches: the checks that every device needs, the choice of the body, the hidden lengths.
//!
//! After a kernel's first launch a further one allocates nothing: arguments are collected in
//! vectors that the kernel keeps. Kernels that print are the exception.

use super::buffer::Buffer;
use super::context::{Context, Fence};
use super::device::{DeviceKernel, Dispatch, Serial};
use super::error::{ErrorKind, GpuError, GpuResult};
use super::precondition::{LaunchShape, all_hold};
use super::prints;
use super::profile::recorder::Detail;
use magpie_types::kernel::{BufferParam, KernelBlob, KernelLayout};
use std::sync::{Arc, Mutex, PoisonError};

/// Workgroups of a launch in all dimensions together. More would not end.
const MAX_GROUPS: u64 = 1 << 53;

/// Number and size of the workgroups of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchSize {
    /// Number of workgroups in each dimension.
    pub grid: [u32; 3],
    /// Invocations of a workgroup in each dimension.
    pub block: [u32; 3],
}

/// Arguments of a launch while it is prepared.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) scalars: Vec<u8>,
}

/// A kernel on one device, ready to launch.
pub(crate) struct LoadedKernel {
    name: Arc<str>,
    code: Option<Code>,
    arguments: Mutex<Vec<Arguments>>,
    context: Arc<Context>,
}

struct Code {
    kernel: Box<dyn DeviceKernel>,
    layout: KernelLayout,
    buffers: Vec<BufferParam>,
    has_unchecked: bool,
}

impl LoadedKernel {
    pub(crate) fn new(
        context: &Arc<Context>,
        name: &Arc<str>,
        blob: KernelBlob,
        kernel: Box<dyn DeviceKernel>,
    ) -> LoadedKernel {
        let buffers = blob.layout.buffers().cloned().collect();
        let has_unchecked = blob.unchecked.is_some();
        let code = Some(Code { kernel, layout: blob.layout, buffers, has_unchecked });
        LoadedKernel {
            name: Arc::clone(name),
            code,
            arguments: Mutex::default(),
            context: Arc::clone(context),
        }
    }

    /// A kernel for the mock device of which nothing but the name is known.
    pub(crate) fn without_layout(context: &Arc<Context>, name: &str) -> LoadedKernel {
        let context = Arc::clone(context);
        LoadedKernel { name: Arc::from(name), code: None, arguments: Mutex::default(), context }
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The layout; unknown for some kernels of the mock device.
    pub(crate) fn layout(&self) -> Option<&KernelLayout> {
        self.code.as_ref().map(|code| &code.layout)
    }

    /// Which buffer parameters the kernel may store to.
    pub(crate) fn writes(&self) -> impl Iterator<Item = bool> + '_ {
        self.code.iter().flat_map(|code| code.buffers.iter().map(|b| b.writes))
    }

    /// Empty arguments, to be filled and given to [`LoadedKernel::launch`].
    pub(crate) fn arguments(&self) -> Arguments {
        let mut spare = self.arguments.lock().unwrap_or_else(PoisonError::into_inner);
        spare.pop().unwrap_or_default()
    }

    /// Launches and waits.
    ///
    /// # Errors
    /// See [`LoadedKernel::queue`]; faults of the launch and of those queued before.
    pub(crate) fn launch(&self, size: LaunchSize, arguments: Arguments) -> GpuResult<()> {
        self.dispatch(size, arguments, true).map(drop)
    }

    /// Queues a launch.
    ///
    /// # Errors
    /// [`ErrorKind::LaunchFailed`] for impossible sizes or arguments, [`ErrorKind::BufferError`]
    /// for buffers of another device or element, [`ErrorKind::ResourceExhausted`] for limits,
    /// [`ErrorKind::ValidationFailed`] for a workgroup size that the kernel was not made for, and
    /// what the driver says.
    pub(crate) fn queue(&self, size: LaunchSize, arguments: Arguments) -> GpuResult<Fence> {
        let serial = self.dispatch(size, arguments, false)?;
        Ok(Fence::new(Arc::clone(&self.context), serial))
    }

    fn dispatch(
        &self,
        size: LaunchSize,
        mut arguments: Arguments,
        blocking: bool,
    ) -> GpuResult<Serial> {
        let launched = self.check_and_launch(size, &mut arguments, blocking);
        arguments.buffers.clear();
        arguments.scalars.clear();
        self.arguments.lock().unwrap_or_else(PoisonError::into_inner).push(arguments);
        launched
    }

    fn check_and_launch(
        &self,
        size: LaunchSize,
        arguments: &mut Arguments,
        blocking: bool,
    ) -> GpuResult<Serial> {
        self.check_size(size)?;
        let Some(code) = &self.code else { return Ok(Serial(0)) };
        self.check_workgroup(size, &code.layout)?;
        self.check_arguments(code, arguments)?;
        let prints = self.print_buffer(code)?;
        let Arguments { buffers, scalars } = arguments;
        buffers.extend(prints.clone());
        let blocking = blocking || prints.is_some();
        let shape = LaunchShape { grid: size.grid, block: size.block, scalars };
        let len = |index: u32| buffers.get(index as usize).map(Buffer::len);
        let unchecked = code.has_unchecked && all_hold(&code.layout.preconditions, &shape, len);
        append_lengths(&code.layout, buffers, scalars);
        let detail = Detail::Launch { grid: size.grid, block: size.block, unchecked };
        let timing = self.context.recorder.begin(&self.name, detail);
        let launched = code.kernel.launch(&Dispatch {
            grid: size.grid,
            block: size.block,
            unchecked,
            buffers,
            scalars,
            blocking,
            timing,
        });
        let done = match launched {
            Ok(serial) if blocking => self.context.settle(serial).map(|()| serial),
            other => other,
        };
        self.context.recorder.end(timing);
        if let (Some(prints), Ok(_)) = (prints, &done) {
            prints::print(&self.name, &code.layout.prints, &prints, size)?;
        }
        done
    }

    /// The buffer for what a kernel prints, if it prints. Its launches wait for their end.
    fn print_buffer(&self, code: &Code) -> GpuResult<Option<Buffer>> {
        let prints = !code.layout.prints.is_empty();
        prints.then(|| prints::new_buffer(&self.context)).transpose()
    }

    fn error(&self, kind: ErrorKind, why: String) -> GpuError {
        let device = self.context.properties().label();
        self.context.error(kind, format!("launch of `{}` on {device}: {why}", self.name))
    }

    fn check_size(&self, size: LaunchSize) -> GpuResult<()> {
        let LaunchSize { grid, block } = size;
        let failed = |why: String| Err(self.error(ErrorKind::LaunchFailed, why));
        if grid.contains(&0) || block.contains(&0) {
            return failed(format!(
                "grid {grid:?}, block {block:?}: no size may be 0 (unused dimensions are 1)"
            ));
        }
        let limits = &self.context.properties().limits;
        for dim in 0..3 {
            let axis = ['x', 'y', 'z'][dim];
            if block[dim] > limits.workgroup_size[dim] {
                let limit = limits.workgroup_size[dim];
                return failed(format!(
                    "block {block:?}: {} invocations in {axis}; the device allows {limit}",
                    block[dim]
                ));
            }
            if grid[dim] > limits.workgroup_count[dim] {
                let limit = limits.workgroup_count[dim];
                return failed(format!(
                    "grid {grid:?}: {} workgroups in {axis}; the device allows {limit}",
                    grid[dim]
                ));
            }
        }
        let product = |sizes: [u32; 3]| sizes.iter().map(|&n| u128::from(n)).product::<u128>();
        let (invocations, groups) = (product(block), product(grid));
        if invocations > u128::from(limits.workgroup_invocations) {
            let limit = limits.workgroup_invocations;
            return failed(format!(
                "block {block:?}: {invocations} invocations; the device allows {limit}"
            ));
        }
        if groups > u128::from(MAX_GROUPS) {
            return failed(format!(
                "grid {grid:?}: {groups} workgroups; the runtime allows {MAX_GROUPS}"
            ));
        }
        Ok(())
    }

    fn check_workgroup(&self, size: LaunchSize, layout: &KernelLayout) -> GpuResult<()> {
        if !layout.fixed_workgroup || layout.workgroup == size.block {
            return Ok(());
        }
        let why = format!(
            "block {:?}; the kernel was compiled for workgroup {:?} and its back end cannot change it",
            size.block, layout.workgroup
        );
        Err(self.error(ErrorKind::ValidationFailed, why))
    }

    fn check_arguments(&self, code: &Code, arguments: &Arguments) -> GpuResult<()> {
        let (given, expected) = (arguments.buffers.len(), code.layout.num_arguments());
        if given != expected {
            let why = format!("{given} buffers; the kernel has {expected} buffer parameters");
            return Err(self.error(ErrorKind::LaunchFailed, why));
        }
        let (given, expected) = (arguments.scalars.len(), code.layout.scalar_size as usize);
        if given != expected {
            let why = format!("a scalar block of {given} bytes; the kernel's has {expected}");
            return Err(self.error(ErrorKind::LaunchFailed, why));
        }
        let limit = self.context.properties().limits.buffer_bytes;
        for (param, buffer) in code.buffers.iter().zip(&arguments.buffers) {
            let index = param.index;
            if !Arc::ptr_eq(buffer.context(), &self.context) {
                let other = buffer.context().properties().label();
                let why = format!("buffer {index} belongs to {other}");
                return Err(self.error(ErrorKind::BufferError, why));
            }
            let (element, stride) = (buffer.element().size, buffer.device_stride());
            if (element, stride) != (param.host_stride, param.device_stride) {
                let why = format!(
                    "buffer {index} has elements of {element} bytes; the kernel's have {}",
                    param.host_stride
                );
                return Err(self.error(ErrorKind::BufferError, why));
            }
            let bytes = buffer.bound_bytes();
            if bytes > limit {
                let why = format!(
                    "buffer {index} has {bytes} bytes; kernels on this device see at most {limit}"
                );
                return Err(self.error(ErrorKind::ResourceExhausted, why));
            }
        }
        Ok(())
    }
}

/// Appends the lengths that the kernel reads behind its scalars.
fn append_lengths(layout: &KernelLayout, buffers: &[Buffer], block: &mut Vec<u8>) {
    block.resize(layout.block_size as usize, 0);
    for hidden in &layout.hidden {
        let len = buffers.get(hidden.buffer as usize).map_or(0, Buffer::len);
        let start = hidden.offset as usize;
        let Some(word) = block.get_mut(start..start + hidden.size as usize) else { continue };
        match hidden.size {
            4 => word.copy_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_ne_bytes()),
            _ => word.copy_from_slice(&len.to_ne_bytes()),
        }
    }
}
