//! The driver's pipeline cache, kept on disk between processes.
//!
//! One file a device and driver version, `vulkan-<uuid>.bin` in the user's cache folder, written
//! whole and then renamed. A file that is missing, of another format, damaged or refused by the
//! driver means an empty cache, never an error.

use super::adapter::Adapter;
use ash::vk;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// First bytes of a file, with the version of the format.
const MAGIC: &[u8; 8] = b"MPGVKPC1";
/// Magic, BLAKE3 hash of the data, length of the data.
const HEADER: usize = 8 + 32 + 8;
/// A cache file that is larger is not read: something went wrong.
const MAX_FILE: u64 = 256 << 20;

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
        let data = path.as_deref().and_then(read).unwrap_or_default();
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
        if let Some(folder) = path.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        if let Some(path) = path.to_str() {
            let _ = crate::fs::write(path, &container(&data));
        }
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

/// `$XDG_CACHE_HOME/magpie` or `$HOME/.cache/magpie`.
pub(super) fn user_cache_folder() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("magpie"))
}

fn file_name(uuid: &[u8; 16]) -> String {
    let mut name = "vulkan-".to_string();
    for byte in uuid {
        let _ = write!(name, "{byte:02x}");
    }
    name + ".bin"
}

fn container(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + data.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(blake3::hash(data).as_bytes());
    bytes.extend_from_slice(&(data.len() as u64).to_le_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn read(path: &Path) -> Option<Vec<u8>> {
    if std::fs::metadata(path).ok()?.len() > MAX_FILE {
        return None;
    }
    open_container(std::fs::read(path).ok()?)
}

/// The data in a file if it is intact.
fn open_container(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let (header, data) = bytes.split_at_checked(HEADER)?;
    let (magic, rest) = header.split_at_checked(MAGIC.len())?;
    let (hash, length) = rest.split_at_checked(32)?;
    let intact = magic == MAGIC
        && length == (data.len() as u64).to_le_bytes()
        && hash == blake3::hash(data).as_bytes();
    intact.then(|| bytes.split_off(HEADER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_intact_files_are_opened() {
        let data = b"what the driver wrote".to_vec();
        let file = container(&data);
        assert_eq!(open_container(file.clone()), Some(data));
        for at in 0..file.len() {
            let mut bent = file.clone();
            bent[at] ^= 1;
            assert_eq!(open_container(bent), None, "byte {at}");
            assert_eq!(open_container(file[..at].to_vec()), None);
        }
    }

    proptest! {
        #[test]
        fn any_file_gives_an_answer(bytes: Vec<u8>) {
            prop_assert_eq!(open_container(bytes), None);
        }
    }

    #[test]
    fn names_have_the_uuid() {
        let mut uuid = [0; 16];
        (uuid[0], uuid[15]) = (0xAB, 0x01);
        assert_eq!(file_name(&uuid), "vulkan-ab000000000000000000000000000001.bin");
    }
}
