//! Machine code that is kept on disk.

use super::fake::Fake;
use super::{StreamOptions, Vendor, subject};
use crate::gpu::tests::support::{NEXT, SCALE, bytes, line, word, words};
use crate::gpu::{Buffer, Element};
use magpie_types::fixed;
use std::path::{Path, PathBuf};

const U32: Element = Element { ty: fixed::U32, size: 4 };

/// Runs two kernels in a new process, so to say; gives how many were assembled.
fn run(folder: &Path) -> u32 {
    let fake = Fake::new();
    let cache_folder = Some(folder.to_path_buf());
    let options = StreamOptions { cache_folder, ..StreamOptions::default() };
    let subject = subject(&fake, Vendor::Cuda, options);
    let (runtime, context) = (&subject.runtime, &subject.context);
    let buffer = Buffer::from_bytes(context, U32, &bytes(&[5; 64]), 0).unwrap();
    runtime.launch(context, SCALE, line(1), &[&buffer], &word(2)).unwrap();
    runtime.launch(context, NEXT, line(1), &[&buffer, &buffer], &[]).unwrap();
    assert_eq!(words(&buffer.read_all().unwrap()), [12; 64]);
    drop((buffer, subject));
    fake.assert_clean();
    fake.calls("cuLinkComplete")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn kernels_are_assembled_once() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path()), 2);
    assert_eq!(files(folder.path()).len(), 2);
    assert_eq!(run(folder.path()), 0);
}

#[test]
fn damaged_files_are_assembled_anew() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    for path in files(folder.path()) {
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    }
    assert_eq!(run(folder.path()), 2);
    assert_eq!(run(folder.path()), 0);
    for path in files(folder.path()) {
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(run(folder.path()), 2);
}

#[test]
fn a_folder_that_cannot_be_written_costs_time_only() {
    let folder = tempfile::tempdir().unwrap();
    // A file stands where the folder should be.
    let path = folder.path().join("file");
    std::fs::write(&path, "").unwrap();
    assert_eq!(run(&path), 2);
    assert_eq!(run(&path), 2);
}

/// Not even an administrator can make a file there.
#[cfg(target_os = "linux")]
#[test]
fn a_read_only_folder_costs_time_only() {
    let folder = Path::new("/proc/self/magpie");
    assert_eq!(run(folder), 2);
    assert!(!folder.exists());
}

/// Processes that start at the same time each make what they need, and leave whole files.
#[test]
fn a_folder_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| run(folder.path()));
        }
    });
    assert_eq!(files(folder.path()).len(), 2);
    assert_eq!(run(folder.path()), 0);
}
