//! [`Provider`]: compiles kernels when the runtime first launches them on a device.

use crate::cache::Cache;
use crate::kernels::Kernels;
use crate::session::{Log, note};
use crate::targets::{self, BACKENDS};
use magpie_diag::Diagnostic;
use magpie_rt::gpu::{BlobProvider, ErrorKind, GpuError, GpuResult};
use magpie_types::kernel::{DeviceFeatures, GpuBackend, KernelBlob};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Where the runtime gets the kernels of a program from.
pub(crate) struct Provider {
    kernels: Arc<Kernels>,
    cache: Cache,
    log: Log,
    /// Whether the first use of the CPU device is to be said.
    announce_cpu: AtomicBool,
}

impl Provider {
    pub(crate) fn new(
        kernels: Arc<Kernels>,
        cache: Cache,
        log: Log,
        announces_cpu: bool,
    ) -> Provider {
        Provider { kernels, cache, log, announce_cpu: AtomicBool::new(announces_cpu) }
    }
}

impl BlobProvider for Provider {
    fn can_provide(&self, kernel: u64, backend: GpuBackend) -> bool {
        let id = self.kernels.by_hash(kernel);
        let exists = id.is_some_and(|id| self.kernels.may_exist_for(id, backend));
        exists && BACKENDS.contains(&backend)
    }

    fn provide(
        &self,
        kernel: u64,
        backend: GpuBackend,
        features: DeviceFeatures,
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
        let blob = targets::compile(&self.kernels, id, backend, features, &self.cache);
        self.log.say(|| {
            let ms = start.elapsed().as_secs_f64() * 1e3;
            format!("kernel `{name}`: ready for {} in {ms:.2} ms", backend.name())
        });
        blob.map_err(|errors| {
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
