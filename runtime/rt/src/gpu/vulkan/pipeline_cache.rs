//! The driver's pipeline cache, kept on disk between processes.
//!
//! One file a device and driver version, `vulkan-<uuid>.bin` in the user's cache folder, written
//! whole and then renamed. A file that is missing, of another format, damaged or refused by the
//! driver means an empty cache, never an error.

use super::adapter::Adapter;
use crate::gpu::cache_file;
use ash::vk;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// First bytes of a file, with the version of the format.
const MAGIC: &[u8; 8] = b"MPGVKPC1";

/// A pipeline cache of a device.
pub(super) struct PipelineCache {
    handle: vk::PipelineCache,
    path: Option<PathBuf>,
    changed: AtomicBool,
}

impl PipelineCache {
    /// The cache with what the last process left in a folder.
    pub(super) fn new(
        device: &ash::Device,
        adapter: &Adapter,
        folder: Option<&Path>,
    ) -> PipelineCache {
        let path = folder.map(|folder| folder.join(file_name(&adapter.cache_uuid)));
        let data =
            path.as_deref().and_then(|path| cache_file::read(MAGIC, path)).unwrap_or_default();
        let create = |data: &[u8]| {
            let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
            // SAFETY: the device is valid; the driver checks its own header in the data.
            unsafe { device.create_pipeline_cache(&info, None) }
        };
        // Without a cache pipelines are made all the same.
        let handle = create(&data).or_else(|_| create(&[])).unwrap_or_default();
        PipelineCache { handle, path, changed: AtomicBool::new(false) }
    }

    pub(super) fn handle(&self) -> vk::PipelineCache {
        self.handle
    }

    /// Notes that a pipeline was made.
    pub(super) fn note_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Writes the file if a pipeline was made since the last time. A failure only costs time.
    pub(super) fn save(&self, device: &ash::Device) {
        if self.handle == vk::PipelineCache::null() || !self.changed.swap(false, Ordering::Relaxed)
        {
            return;
        }
        let Some(path) = &self.path else { return };
        // SAFETY: the cache is a valid handle of the device.
        let Ok(data) = (unsafe { device.get_pipeline_cache_data(self.handle) }) else { return };
        cache_file::write(MAGIC, path, &data);
    }

    /// Destroys the handle.
    ///
    /// # Safety
    /// No pipeline is being made with the cache, and it is not destroyed twice.
    pub(super) unsafe fn destroy(&self, device: &ash::Device) {
        // SAFETY: forwarded from the caller; a null handle is ignored.
        unsafe { device.destroy_pipeline_cache(self.handle, None) };
    }
}

fn file_name(uuid: &[u8; 16]) -> String {
    let mut name = "vulkan-".to_string();
    for byte in uuid {
        let _ = write!(name, "{byte:02x}");
    }
    name + ".bin"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_uuid() {
        let mut uuid = [0; 16];
        (uuid[0], uuid[15]) = (0xAB, 0x01);
        assert_eq!(file_name(&uuid), "vulkan-ab000000000000000000000000000001.bin");
    }
}
