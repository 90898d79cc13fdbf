//! `fallback=cpu` of a launch: a kernel that its device cannot run runs on the CPU device, on
//! copies of its buffers.

use super::buffer::Buffer;
use super::error::{ErrorKind, GpuError, GpuResult};
use super::launch::{Arguments, LaunchSize, LoadedKernel};

/// Whether an error says that the device cannot run the kernel, as against a launch that is wrong
/// on every device.
pub(crate) fn may_fall_back(error: &GpuError) -> bool {
    match error.kind {
        ErrorKind::InvalidKernel
        | ErrorKind::BackendUnavailable
        | ErrorKind::Unsupported
        | ErrorKind::CompilationFailed
        | ErrorKind::ResourceExhausted => true,
        ErrorKind::DeviceLost
        | ErrorKind::OutOfMemory
        | ErrorKind::LaunchFailed
        | ErrorKind::BufferError
        | ErrorKind::TimeoutExpired
        | ErrorKind::DriverError
        | ErrorKind::ValidationFailed => false,
    }
}

/// Runs a launch on the CPU device of `kernel` with buffers of another device, and copies back what
/// the kernel may have written. Arguments that are one buffer stay one.
///
/// # Errors
/// Those of the transfers and of the launch.
pub(crate) fn launch_on_cpu(
    kernel: &LoadedKernel,
    size: LaunchSize,
    arguments: Arguments,
) -> GpuResult<()> {
    let cpu = kernel.context();
    let mut copies: Vec<(&Buffer, Buffer)> = Vec::with_capacity(arguments.buffers.len());
    for buffer in &arguments.buffers {
        let known = copies.iter().find(|(original, _)| original.same(buffer));
        let copy = match known {
            Some((_, copy)) => copy.clone(),
            None => Buffer::from_bytes(cpu, buffer.element(), &buffer.read_all()?, 0)?,
        };
        copies.push((buffer, copy));
    }
    let buffers = copies.iter().map(|(_, copy)| copy.clone()).collect();
    kernel.launch(size, Arguments { buffers, scalars: arguments.scalars })?;
    for ((original, copy), writes) in copies.iter().zip(kernel.writes()) {
        if writes {
            original.write(0, &copy.read_all()?)?;
        }
    }
    Ok(())
}
