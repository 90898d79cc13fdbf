//! [`Provider`]: compiles kernels when the runtime first launches them on a device.

use crate::kernels::Kernels;
use crate::session::{Log, note};
use crate::targets::Compiler;
use magpie_diag::Diagnostic;
use magpie_rt::gpu::{BlobProvider, DeviceProperties, ErrorKind, GpuError, GpuResult};
use magpie_types::kernel::{GpuBackend, KernelBlob};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Where the runtime gets the kernels of a program from.
pub(crate) struct Provider {
    kernels: Arc<Kernels>,
    compiler: Compiler,
    log: Log,
    /// Whether the first use of the CPU device is to be said.
    announce_cpu: AtomicBool,
}

impl Provider {
    pub(crate) fn new(
        kernels: Arc<Kernels>,
        compiler: Compiler,
        log: Log,
        announces_cpu: bool,
    ) -> Provider {
        Provider { kernels, compiler, log, announce_cpu: AtomicBool::new(announces_cpu) }
    }
}

impl BlobProvider for Provider {
    fn can_provide(&self, kernel: u64, backend: GpuBackend) -> bool {
        let id = self.kernels.by_hash(kernel);
        id.is_some_and(|id| self.kernels.may_exist_for(id, backend))
    }

    fn provide(
        &self,
        kernel: u64,
        backend: GpuBackend,
        device: &DeviceProperties,
    ) -> GpuResult<Option<KernelBlob>> {
        let Some(id) = self.kernels.by_hash(kernel) else { return Ok(None) };
        if !self.kernels.may_exist_for(id, backend) {
            return Ok(None);
        }
        if backend == GpuBackend::Cpu && self.announce_cpu.swap(false, Ordering::Relaxed) {
            note("no GPU was found, so kernels run on the CPU (--device gpu refuses that)");
        }
        let start = Instant::now();
        let name = self.kernels.name(id);
        let blob = self.compiler.compile(&self.kernels, id, backend, Some(device));
        self.log.say(|| {
            let ms = start.elapsed().as_secs_f64() * 1e3;
            format!("kernel `{name}`: ready for {} in {ms:.2} ms", backend.name())
        });
        if blob.is_ok()
            && let Some(warning) = self.compiler.warning(&self.kernels, id, backend, Some(device))
        {
            self.log.say(|| self.describe(&warning));
        }
        blob.map(Some).map_err(|errors| {
            let texts: Vec<String> = errors.iter().map(|d| self.describe(d)).collect();
            let message = format!("kernel `{name}` cannot be compiled: {}", texts.join("; "));
            GpuError::new(ErrorKind::CompilationFailed, backend.name(), message)
        })
    }
}

impl Provider {
    fn describe(&self, diagnostic: &Diagnostic) -> String {
        let place = self.kernels.sources.describe(diagnostic.primary);
        let place = place.map_or_else(String::new, |place| format!("{place}: "));
        format!("{place}{} [{}]", diagnostic.message, diagnostic.code)
    }
}
