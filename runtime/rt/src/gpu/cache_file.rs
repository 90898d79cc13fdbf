//! Files in which drivers keep what they have compiled between processes.
//!
//! A file is written whole and then renamed. One that is missing, of another format or damaged
//! counts as not there, never as an error. Files of one kind together have a largest size: what was
//! not used for longest goes when more is written. Processes share a folder without knowing of each
//! other: a file that another one takes away is made anew.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// First bytes of a file: what it holds, with the version of the format.
pub(crate) type Magic = [u8; 8];

/// Magic, BLAKE3 hash of the data, length of the data.
const HEADER: usize = 8 + 32 + 8;
/// Bytes of all files of a kind. One that is larger is not read: something went wrong.
const MAX_BYTES: u64 = 256 << 20;

/// `$XDG_CACHE_HOME/magpie` or `$HOME/.cache/magpie`.
pub(crate) fn user_cache_folder() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("magpie"))
}

/// Writes a file. A failure only costs time later.
pub(crate) fn write(magic: &Magic, path: &Path, data: &[u8]) {
    write_bounded(magic, path, data, MAX_BYTES);
}

fn write_bounded(magic: &Magic, path: &Path, data: &[u8], most: u64) {
    let Some(folder) = path.parent() else { return };
    let _ = std::fs::create_dir_all(folder);
    if crate::fs::write_whole(path, &container(magic, data)).is_ok() {
        prune(folder, path, most);
    }
}

/// The data in a file if it is there and intact.
pub(crate) fn read(magic: &Magic, path: &Path) -> Option<Vec<u8>> {
    if std::fs::metadata(path).ok()?.len() > MAX_BYTES {
        return None;
    }
    let data = open_container(magic, std::fs::read(path).ok()?)?;
    // A folder that is read-only is not pruned either.
    let used = std::fs::File::options().write(true).open(path);
    let _ = used.and_then(|file| file.set_modified(SystemTime::now()));
    Some(data)
}

/// What comes before the first `-` of a name and behind the last dot.
fn kind(path: &Path) -> Option<(&str, &str)> {
    let (prefix, rest) = path.file_name()?.to_str()?.split_once('-')?;
    Some((prefix, rest.rsplit_once('.')?.1))
}

/// Removes the files of the kind of `newest` that were not used for longest, until a quarter of what
/// all may have is free; nothing when they have no more than that.
fn prune(folder: &Path, newest: &Path, most: u64) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let of_kind = entries.flatten().map(|entry| entry.path()).filter(|p| kind(p) == kind(newest));
    let mut files: Vec<(SystemTime, PathBuf, u64)> = of_kind
        .filter_map(|path| {
            let about = std::fs::metadata(&path).ok()?;
            Some((about.modified().ok()?, path, about.len()))
        })
        .collect();
    let mut total: u64 = files.iter().map(|f| f.2).sum();
    if total <= most {
        return;
    }
    files.sort();
    for (_, path, bytes) in files.iter().filter(|f| f.1 != newest) {
        if total <= most - most / 4 {
            return;
        }
        // Another process may have been faster.
        let _ = std::fs::remove_file(path);
        total -= bytes;
    }
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
    use std::fs::File;
    use std::time::Duration;

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

    /// Writes files of 1000 bytes and more; each is older than the next.
    fn fill(folder: &Path, names: &[&str]) {
        for (age, name) in names.iter().rev().enumerate() {
            write(MAGIC, &folder.join(name), &[7; 1000]);
            let file = File::options().write(true).open(folder.join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(60 + age as u64)).unwrap();
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_not_used_for_longest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fill(folder, &["cuda-0.cubin", "cuda-1.cubin", "cuda-2.cubin", "cuda-3.cubin"]);
        fill(folder, &["vulkan-0.bin", "cuda-notes.txt", "README"]);
        // The oldest is used again.
        assert!(read(MAGIC, &folder.join("cuda-0.cubin")).is_some());
        write_bounded(MAGIC, &folder.join("cuda-4.cubin"), &[7; 1000], 4500);
        let left = ["README", "cuda-0.cubin", "cuda-3.cubin", "cuda-4.cubin", "cuda-notes.txt"];
        assert_eq!(names(folder), [&left[..], &["vulkan-0.bin"]].concat());
        // There is room, and what was written stays even if there is none for it.
        write_bounded(MAGIC, &folder.join("cuda-5.cubin"), &[7; 100], 4500);
        assert_eq!(names(folder).len(), 7);
        write_bounded(MAGIC, &folder.join("cuda-6.cubin"), &[7; 9000], 4500);
        assert_eq!(names(folder), ["README", "cuda-6.cubin", "cuda-notes.txt", "vulkan-0.bin"]);
    }

    #[test]
    fn many_may_write_read_and_prune_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::thread::scope(|scope| {
            for n in 0..4u8 {
                scope.spawn(move || {
                    for round in 0..40u8 {
                        let own = folder.join(format!("cuda-{n}{round}.cubin"));
                        write_bounded(MAGIC, &own, &[n; 500], 4000);
                        for other in 0..4u8 {
                            let path = folder.join(format!("cuda-{other}{round}.cubin"));
                            let found = read(MAGIC, &path);
                            assert!(found.is_none_or(|data| data == [other; 500]));
                        }
                    }
                });
            }
        });
        write_bounded(MAGIC, &folder.join("cuda-last.cubin"), &[9; 500], 4000);
        let bytes = |name: &String| std::fs::metadata(folder.join(name)).unwrap().len();
        let names = names(folder);
        assert!(names.iter().map(bytes).sum::<u64>() <= 4000, "{names:?}");
        assert!(names.iter().all(|name| name.ends_with(".cubin")), "{names:?}");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_in_a_read_only_folder_is_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cuda-0.cubin");
        write(MAGIC, &path, b"data");
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&path, 0o444);
        mode(folder.path(), 0o555);
        assert_eq!(read(MAGIC, &path).as_deref(), Some(&b"data"[..]));
        write(MAGIC, &folder.path().join("cuda-1.cubin"), b"more");
        mode(folder.path(), 0o755);
        assert_eq!(read(MAGIC, &path).as_deref(), Some(&b"data"[..]));
    }
}
