//! The artifact cache: compiled kernels on disk, found by what they were made from.
//!
//! An entry is a file whose name is the BLAKE3 hash of everything that decides its content: the
//! canonical text of the kernel, the back end, the device features, the compiler. It is written
//! whole, holds its own name and a hash of its content, and is believed only when all of that fits;
//! anything else is replaced. So processes may share a folder, and deleting it costs time only.

use crate::options::Options;
use crate::session::Log;
use magpie_types::kernel::{DeviceFeatures, GpuBackend, KernelBlob};
use magpie_types::kernel_codec;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

/// A file that is larger is not read: something went wrong.
const MAX_ENTRY: u64 = 256 << 20;
const HASH: usize = blake3::OUT_LEN;

/// What an entry was made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key([u8; HASH]);

impl Key {
    /// The key of a kernel: its canonical text, which is closed (it names no other function), for a
    /// back end, the features of a device, and what else `target` says about it.
    pub(crate) fn new(
        text: &str,
        backend: GpuBackend,
        features: DeviceFeatures,
        target: &str,
    ) -> Key {
        let mut hasher = blake3::Hasher::new();
        for part in [compiler_identity().as_bytes(), text.as_bytes(), target.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.update(&[backend as u8]);
        hasher.update(&features.0.to_le_bytes());
        Key(*hasher.finalize().as_bytes())
    }

    fn file_name(self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

/// Version of the compiler, and size and time of its program: two builds of one version may differ.
fn compiler_identity() -> &'static str {
    static IDENTITY: OnceLock<String> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let program = std::env::current_exe().and_then(std::fs::metadata);
        let build = program.ok().map(|file| {
            let time = file.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
            (file.len(), time.unwrap_or_default().as_nanos())
        });
        format!("{} {build:?}", env!("CARGO_PKG_VERSION"))
    })
}

/// The folder of compiled kernels.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: Option<PathBuf>,
    log: Log,
}

impl Cache {
    /// The cache that the options name, else the user's: `$XDG_CACHE_HOME/magpie/kernels` or
    /// `$HOME/.cache/magpie/kernels`. Touches nothing.
    pub(crate) fn new(options: &Options, log: Log) -> Cache {
        let absolute = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let users = || {
            let cache = absolute("XDG_CACHE_HOME")
                .or_else(|| absolute("HOME").map(|home| home.join(".cache")));
            cache.map(|cache| cache.join("magpie"))
        };
        let folder = options.cache_dir.clone().or_else(users);
        Cache { folder: folder.map(|folder| folder.join("kernels")), log }
    }

    /// A cache that keeps nothing.
    pub(crate) fn none(log: Log) -> Cache {
        Cache { folder: None, log }
    }

    /// The folder of the entries, if there is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The entry of a key. `name` is for messages. `None` when there is none, or one that is not
    /// what was written.
    pub(crate) fn get(&self, key: Key, name: &str) -> Option<KernelBlob> {
        let path = self.folder.as_ref()?.join(key.file_name());
        let found = match read(&path) {
            Ok(bytes) => decode(key, &bytes),
            Err(_) => None,
        };
        self.log.say(|| {
            let result = if found.is_some() { "hit" } else { "miss" };
            format!("kernel `{name}`: cache {result}")
        });
        found
    }

    /// Adds or replaces an entry. A folder that cannot be written to costs time only.
    pub(crate) fn put(&self, key: Key, name: &str, blob: &KernelBlob) {
        let Some(folder) = &self.folder else { return };
        let Some(bytes) = encode(key, blob) else { return };
        let written = std::fs::create_dir_all(folder).map_err(|error| error.to_string());
        let path = folder.join(key.file_name());
        let written = written.and_then(|()| magpie_rt::fs::write_whole(&path, &bytes));
        if let Err(why) = written {
            self.log.say(|| format!("kernel `{name}`: not cached in {}: {why}", folder.display()));
        }
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_ENTRY).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Hash of the rest, key, container.
fn encode(key: Key, blob: &KernelBlob) -> Option<Vec<u8>> {
    let container = kernel_codec::encode(blob).ok()?;
    let mut rest = key.0.to_vec();
    rest.extend_from_slice(&container);
    let mut bytes = blake3::hash(&rest).as_bytes().to_vec();
    bytes.append(&mut rest);
    Some(bytes)
}

fn decode(key: Key, bytes: &[u8]) -> Option<KernelBlob> {
    let (hash, rest) = bytes.split_at_checked(HASH)?;
    let container = rest.strip_prefix(&key.0)?;
    if hash != blake3::hash(rest).as_bytes() {
        return None;
    }
    let blob = kernel_codec::decode(container).ok()?;
    blob.layout.check().is_ok().then_some(blob)
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_types::kernel::{BlobCode, KernelLayout, ScalarTransport};

    fn blob(code: &[u8]) -> KernelBlob {
        let layout = KernelLayout {
            entry: "k".into(),
            params: Vec::new(),
            scalar_size: 0,
            hidden: Vec::new(),
            block_size: 0,
            transport: ScalarTransport::None,
            workgroup: [64, 1, 1],
            fixed_workgroup: false,
            shared_bytes: 0,
            features: DeviceFeatures::default(),
            preconditions: Vec::new(),
            prints: Vec::new(),
        };
        let code = BlobCode::Bytes(code.to_vec());
        KernelBlob { backend: GpuBackend::Spv, layout, code, unchecked: None }
    }

    fn cache(dir: &Path) -> Cache {
        let options = Options { cache_dir: Some(dir.to_path_buf()), ..Options::new("run") };
        let log = crate::Session::new(options.clone()).log();
        Cache::new(&options, log)
    }

    fn key(text: &str) -> Key {
        Key::new(text, GpuBackend::Spv, DeviceFeatures::default(), "")
    }

    #[test]
    fn keys_depend_on_everything() {
        let base = key("k");
        assert_eq!(base, key("k"));
        assert_ne!(base, key("k "));
        assert_ne!(base, Key::new("k", GpuBackend::Ptx, DeviceFeatures::default(), ""));
        assert_ne!(base, Key::new("k", GpuBackend::Spv, DeviceFeatures::INT8, ""));
        assert_ne!(base, Key::new("k", GpuBackend::Spv, DeviceFeatures::default(), "sm_90"));
    }

    #[test]
    fn what_is_put_is_found_by_later_processes() {
        let dir = tempfile::tempdir().unwrap();
        let first = cache(dir.path());
        assert_eq!(first.get(key("k"), "k"), None);
        first.put(key("k"), "k", &blob(b"code"));
        assert_eq!(cache(dir.path()).get(key("k"), "k"), Some(blob(b"code")));
        assert_eq!(first.get(key("other"), "k"), None);
    }

    #[test]
    fn damaged_entries_are_ignored_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache(dir.path());
        cache.put(key("k"), "k", &blob(b"code"));
        let path = dir.path().join("kernels").join(key("k").file_name());
        let whole = std::fs::read(&path).unwrap();
        for len in 0..whole.len() {
            std::fs::write(&path, &whole[..len]).unwrap();
            assert_eq!(cache.get(key("k"), "k"), None, "{len} bytes");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(cache.get(key("k"), "k"), None, "byte {at}");
        }
        // The entry of another key under this name.
        cache.put(key("other"), "k", &blob(b"wrong"));
        let other = dir.path().join("kernels").join(key("other").file_name());
        std::fs::copy(other, &path).unwrap();
        assert_eq!(cache.get(key("k"), "k"), None);
        cache.put(key("k"), "k", &blob(b"code"));
        assert_eq!(cache.get(key("k"), "k"), Some(blob(b"code")));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("kernels"), "a file").unwrap();
        let cache = cache(dir.path());
        cache.put(key("k"), "k", &blob(b"code"));
        assert_eq!(cache.get(key("k"), "k"), None);
    }

    #[test]
    fn processes_share_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..8u8 {
                let cache = cache(dir.path());
                scope.spawn(move || {
                    for _ in 0..50 {
                        cache.put(key("k"), "k", &blob(&[n; 1000]));
                        let found = cache.get(key("k"), "k").expect("entries are whole");
                        let BlobCode::Bytes(code) = found.code else { panic!("bytes were put") };
                        assert!(code.windows(2).all(|pair| pair[0] == pair[1]));
                    }
                });
            }
        });
    }
}
