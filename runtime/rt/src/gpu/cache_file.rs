//! Files in which drivers keep what they have compiled between processes.
//!
//! A file is written whole and then renamed. One that is missing, of another format or damaged
//! counts as not there, never as an error.

use std::path::{Path, PathBuf};

/// First bytes of a file: what it holds, with the version of the format.
pub(crate) type Magic = [u8; 8];

/// Magic, BLAKE3 hash of the data, length of the data.
const HEADER: usize = 8 + 32 + 8;
/// A file that is larger is not read: something went wrong.
const MAX_FILE: u64 = 256 << 20;

/// `$XDG_CACHE_HOME/magpie` or `$HOME/.cache/magpie`.
pub(crate) fn user_cache_folder() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("magpie"))
}

/// Writes a file. A failure only costs time later.
pub(crate) fn write(magic: &Magic, path: &Path, data: &[u8]) {
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    if let Some(path) = path.to_str() {
        let _ = crate::fs::write(path, &container(magic, data));
    }
}

/// The data in a file if it is there and intact.
pub(crate) fn read(magic: &Magic, path: &Path) -> Option<Vec<u8>> {
    if std::fs::metadata(path).ok()?.len() > MAX_FILE {
        return None;
    }
    open_container(magic, std::fs::read(path).ok()?)
}

fn container(magic: &Magic, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + data.len());
    bytes.extend_from_slice(magic);
    bytes.extend_from_slice(blake3::hash(data).as_bytes());
    bytes.extend_from_slice(&(data.len() as u64).to_le_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn open_container(expected: &Magic, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let (header, data) = bytes.split_at_checked(HEADER)?;
    let (magic, rest) = header.split_at_checked(expected.len())?;
    let (hash, length) = rest.split_at_checked(32)?;
    let intact = magic == expected
        && length == (data.len() as u64).to_le_bytes()
        && hash == blake3::hash(data).as_bytes();
    intact.then(|| bytes.split_off(HEADER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAGIC: &Magic = b"MPGTEST1";

    #[test]
    fn only_intact_files_are_opened() {
        let data = b"what the driver wrote".to_vec();
        let file = container(MAGIC, &data);
        assert_eq!(open_container(MAGIC, file.clone()), Some(data));
        assert_eq!(open_container(b"MPGTEST2", file.clone()), None);
        for at in 0..file.len() {
            let mut bent = file.clone();
            bent[at] ^= 1;
            assert_eq!(open_container(MAGIC, bent), None, "byte {at}");
            assert_eq!(open_container(MAGIC, file[..at].to_vec()), None);
        }
    }

    proptest! {
        #[test]
        fn any_file_gives_an_answer(bytes: Vec<u8>) {
            prop_assert_eq!(open_container(MAGIC, bytes), None);
        }
    }

    #[test]
    fn files_that_cannot_be_written_are_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("file");
        assert_eq!(read(MAGIC, &path), None);
        write(MAGIC, &path, b"data");
        assert_eq!(read(MAGIC, &path).as_deref(), Some(&b"data"[..]));
        // A folder of this name stands in the way.
        write(MAGIC, folder.path(), b"data");
        assert_eq!(read(MAGIC, folder.path()), None);
    }
}
