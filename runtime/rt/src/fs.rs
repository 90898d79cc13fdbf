//! `std.fs`: whole files. A write is complete or leaves the old file.

use crate::object::MpRtHeader;
use crate::panic::guarded;
use crate::string::as_str;
use crate::typeinfo::MpRtTypeInfo;
use crate::{array, status, string};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::ptr;
use tempfile::NamedTempFile;

/// What went wrong, without the system's error number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((reason, _)) => reason.to_string(),
        None => text,
    }
}

fn cannot_read(path: &str, error: &io::Error) -> String {
    format!("cannot read {path:?}: {}", reason(error))
}

/// A whole file as an array of bytes, which `info` describes.
fn read_bytes(path: &str, info: &'static MpRtTypeInfo) -> Result<*mut MpRtHeader, String> {
    let read = || {
        let mut file = File::open(path)?;
        let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        array::read_from(info, size, &mut file)
    };
    read().map_err(|error| cannot_read(path, &error))
}

fn read_text(path: &str) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| cannot_read(path, &error))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("cannot read {path:?} as text: byte {at} is not valid UTF-8")
    })
}

/// [`write_whole`] with an error that names the file.
pub(crate) fn write(path: &str, content: &[u8]) -> Result<(), String> {
    if path.ends_with(std::path::is_separator) {
        return Err(format!("cannot write {path:?}: it names a folder"));
    }
    write_whole(Path::new(path), content).map_err(|why| format!("cannot write {path:?}: {why}"))
}

/// Writes a whole file: complete, or the old file stays.
///
/// # Errors
/// Why not.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), String> {
    // A write to a symbolic link goes to the file behind it.
    let resolved = fs::canonicalize(path);
    let target = resolved.as_deref().unwrap_or(path);
    match fs::metadata(target) {
        Ok(old) => overwrite(target, &old, content),
        Err(error) if error.kind() == ErrorKind::NotFound => replace(target, None, content),
        Err(error) => Err(reason(&error)),
    }
}

/// Writes a file that can be executed; otherwise as [`write_whole`].
///
/// # Errors
/// Why not.
pub fn write_program(path: &Path, content: &[u8]) -> Result<(), String> {
    write_whole(path, content)?;
    make_executable(path).map_err(|error| {
        // Nobody takes it for what it is not.
        let _ = fs::remove_file(path);
        reason(&error)
    })
}

/// Whoever may read a file may execute it.
#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path)?.permissions().mode();
    fs::set_permissions(path, Permissions::from_mode(mode | mode >> 2 & 0o111))
}

/// The name of a file decides.
#[cfg(not(unix))]
fn make_executable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Gives an existing file new content, if it may be written to.
fn overwrite(target: &Path, old: &Metadata, content: &[u8]) -> Result<(), String> {
    if old.is_dir() {
        return Err("it is a folder".to_string());
    }
    // The rename below asks the folder for permission only; the file has a say too, and its
    // read-only mark counts even where the system would let an administrator pass.
    if old.permissions().readonly() {
        return Err("the file is read-only".to_string());
    }
    let mut file = File::options().write(true).open(target).map_err(|error| reason(&error))?;
    if old.is_file() {
        return replace(target, Some(old.permissions()), content);
    }
    // A terminal, a pipe or another device takes bytes and cannot be replaced.
    file.write_all(content).map_err(|error| reason(&error))
}

/// Writes a new file under a temporary name in the same folder and renames it.
fn replace(target: &Path, permissions: Option<Permissions>, content: &[u8]) -> Result<(), String> {
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Some(name) = target.file_name() else { return Err("it is not a file name".to_string()) };
    // Few file systems take names of more than 255 bytes.
    let name: String = name.to_string_lossy().chars().take(40).collect();
    let mut builder = tempfile::Builder::new();
    let prefix = format!("{name}.tmp");
    builder.prefix(&prefix);
    #[cfg(unix)]
    let mode: Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    #[cfg(unix)] // The system takes away what the user's mask forbids.
    builder.permissions(mode);
    let mut file = builder.tempfile_in(folder).map_err(|error| {
        format!("no file can be made in the folder {folder:?}: {}", reason(&error))
    })?;
    // A file that is not renamed is removed when it goes out of scope.
    fill(&mut file, permissions, content).map_err(|error| reason(&error))?;
    file.persist(target).map_err(|error| reason(&error.error))?;
    Ok(())
}

fn fill(
    file: &mut NamedTempFile,
    permissions: Option<Permissions>,
    content: &[u8],
) -> io::Result<()> {
    file.write_all(content)?;
    match permissions {
        Some(permissions) => file.as_file().set_permissions(permissions),
        None => Ok(()),
    }
}

/// See [`magpie_types::abi::RtFn::FsReadBytes`].
///
/// # Safety
/// `path` is a live `Str`, `info` describes `u8` and lives as long as the process, `out` and
/// `out_err` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_fs_read_bytes(
    path: *const MpRtHeader,
    info: *const MpRtTypeInfo,
    out: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe {
        let array = read_bytes(as_str(path), &*info);
        status::value(array, ptr::null_mut(), out, out_err)
    })
}

/// See [`magpie_types::abi::RtFn::FsWriteBytes`].
///
/// # Safety
/// `path` is a live `Str`, `data` a live `Array<u8>`, `out_err` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_fs_write_bytes(
    path: *const MpRtHeader,
    data: *const MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { status::unit(write(as_str(path), array::bytes(data)), out_err) })
}

/// See [`magpie_types::abi::RtFn::FsReadText`].
///
/// # Safety
/// `path` is a live `Str`; `out` and `out_err` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_fs_read_text(
    path: *const MpRtHeader,
    out: *mut *mut MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe {
        let path = as_str(path);
        let text = read_text(path).and_then(|text| {
            string::try_new_str(&text).map_err(|error| format!("cannot read {path:?}: {error}"))
        });
        status::value(text, ptr::null_mut(), out, out_err)
    })
}

/// See [`magpie_types::abi::RtFn::FsWriteText`].
///
/// # Safety
/// `path` and `text` are live `Str`s, `out_err` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_fs_write_text(
    path: *const MpRtHeader,
    text: *const MpRtHeader,
    out_err: *mut *mut MpRtHeader,
) -> i32 {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { status::unit(write(as_str(path), as_str(text).as_bytes()), out_err) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::testing::without_leaks;
    use crate::typeinfo;
    use std::path::PathBuf;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn text(path: PathBuf) -> String {
        path.to_str().unwrap().to_string()
    }

    fn names_in(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn bytes_and_text_come_back() {
        without_leaks(|| {
            let folder = folder();
            let path = string::new_str(&text(folder.path().join("grün.txt")));
            let content = string::new_str("Zeile\nÄ");
            let (mut bytes, mut back) = (ptr::null_mut(), ptr::null_mut());
            let mut error = ptr::dangling_mut();
            // SAFETY: all objects are live until released.
            unsafe {
                assert_eq!(mp_rt_fs_write_text(path, content, &mut error), 0);
                assert!(error.is_null());
                let status = mp_rt_fs_read_bytes(path, &typeinfo::U8, &mut bytes, &mut error);
                assert_eq!((status, array::bytes(bytes)), (0, "Zeile\nÄ".as_bytes()));
                assert_eq!(mp_rt_fs_write_bytes(path, bytes, &mut error), 0);
                assert_eq!(mp_rt_fs_read_text(path, &mut back, &mut error), 0);
                assert_eq!(as_str(back), "Zeile\nÄ");
                for obj in [path, content, bytes, back] {
                    object::release(obj);
                }
            }
            assert_eq!(names_in(folder.path()), ["grün.txt"]);
        });
    }

    #[test]
    fn errors_name_the_path_and_the_reason() {
        without_leaks(|| {
            let folder = folder();
            let missing = text(folder.path().join("missing.pgm"));
            let path = string::new_str(&missing);
            let (mut out, mut error) = (ptr::dangling_mut(), ptr::null_mut());
            // SAFETY: all objects are live until released.
            unsafe {
                assert_eq!(mp_rt_fs_read_text(path, &mut out, &mut error), -1);
                assert!(out.is_null());
                let expected = format!("cannot read {missing:?}: No such file or directory");
                assert_eq!(as_str(error), expected);
                object::release(path);
                object::release(error);
            }
        });
    }

    #[test]
    fn what_cannot_be_read_or_written_says_why() {
        let folder = folder();
        let here = text(folder.path().to_path_buf());
        let latin1 = text(folder.path().join("latin1"));
        fs::write(&latin1, b"ok\xff").unwrap();
        let below = text(folder.path().join("missing/out"));
        let inside_file = text(folder.path().join("latin1/out"));
        let cases = [
            (read_text(&here).unwrap_err(), "Is a directory"),
            (read_bytes(&here, &typeinfo::U8).unwrap_err(), "Is a directory"),
            (read_text(&latin1).unwrap_err(), "as text: byte 2 is not valid UTF-8"),
            (read_text("nul\0").unwrap_err(), "NUL byte"),
            (write(&here, b"").unwrap_err(), "it is a folder"),
            (write(&below, b"").unwrap_err(), "missing\": No such file or directory"),
            (write(&inside_file, b"").unwrap_err(), "Not a directory"),
            (write("nul\0", b"").unwrap_err(), "NUL byte"),
            (write("", b"").unwrap_err(), "it is not a file name"),
            (write(&format!("{below}/"), b"").unwrap_err(), "it names a folder"),
        ];
        for (message, end) in cases {
            assert!(message.starts_with("cannot "), "{message}");
            assert!(message.contains(end), "{message}");
        }
        assert_eq!(names_in(folder.path()), ["latin1"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn files_are_read_to_their_end_whatever_their_size_says() {
        without_leaks(|| {
            // The system says that these have no bytes.
            let expected = fs::read("/proc/self/maps").unwrap();
            assert!(expected.len() > 1000);
            let array = read_bytes("/proc/self/maps", &typeinfo::U8).unwrap();
            // SAFETY: the array is live until its release.
            unsafe {
                let lines = array::bytes(array).split(|&byte| byte == b'\n').count();
                assert!(lines > 10);
                object::release(array);
            }
            let empty = read_bytes("/dev/null", &typeinfo::U8).unwrap();
            // SAFETY: as above.
            unsafe {
                assert_eq!(array::len(empty), 0);
                object::release(empty);
            }
        });
    }

    #[test]
    #[cfg(unix)]
    fn a_file_too_large_for_memory_is_an_error() {
        without_leaks(|| {
            let folder = folder();
            let path = text(folder.path().join("sparse"));
            File::create(&path).unwrap().set_len(1 << 43).unwrap();
            for message in
                [read_bytes(&path, &typeinfo::U8).unwrap_err(), read_text(&path).unwrap_err()]
            {
                assert!(message.contains("out of memory"), "{message}");
            }
        });
    }

    #[test]
    fn long_names_are_possible() {
        let folder = folder();
        let name = "ä".repeat(127);
        write(&text(folder.path().join(&name)), b"x").unwrap();
        assert_eq!(names_in(folder.path()), [name]);
        assert!(write(&text(folder.path().join("x".repeat(256))), b"x").is_err());
        assert_eq!(names_in(folder.path()).len(), 1);
    }

    #[cfg(unix)]
    mod permissions {
        use super::*;
        use crate::testing::children;
        use std::os::unix::fs::{PermissionsExt, symlink};
        use std::os::unix::process::CommandExt;

        fn mode(path: &str) -> u32 {
            fs::metadata(path).unwrap().permissions().mode() & 0o777
        }

        fn set_mode(path: &str, mode: u32) {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }

        #[test]
        fn an_overwritten_file_keeps_its_mode() {
            let folder = folder();
            let path = text(folder.path().join("run.sh"));
            let fresh = text(folder.path().join("fresh"));
            write(&path, b"old").unwrap();
            fs::write(&fresh, b"").unwrap();
            assert_eq!(mode(&path), mode(&fresh));
            set_mode(&path, 0o751);
            write(&path, b"new").unwrap();
            assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o751, b"new".to_vec()));
        }

        #[test]
        fn a_read_only_file_stays_as_it_is() {
            let folder = folder();
            let path = text(folder.path().join("kept"));
            write(&path, b"old").unwrap();
            set_mode(&path, 0o444);
            let message = write(&path, b"new").unwrap_err();
            assert_eq!(message, format!("cannot write {path:?}: the file is read-only"));
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert_eq!(names_in(folder.path()), ["kept"]);
        }

        #[test]
        fn links_and_devices_are_written_through() {
            let folder = folder();
            let (path, link) = (text(folder.path().join("file")), text(folder.path().join("link")));
            write(&path, b"old").unwrap();
            symlink("file", &link).unwrap();
            write(&link, b"new").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            write("/dev/null", b"gone").unwrap();
            assert!(!fs::metadata("/dev/null").unwrap().is_file());
        }

        /// An administrator may write anywhere, so the write is tried as a user without rights.
        #[test]
        fn a_read_only_folder_gives_an_error_and_no_leftovers() {
            const FOLDER: &str = "MAGPIE_RT_TEST_FOLDER";
            const NOBODY: u32 = 65534;
            let cases: [fn(); 1] = [|| {
                let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
                for name in ["old", "new"] {
                    let path = text(folder.join(name));
                    let message = write(&path, b"x").unwrap_err();
                    let reason = format!(
                        "cannot write {path:?}: no file can be made in the folder {folder:?}: \
                         Permission denied"
                    );
                    assert_eq!(message, reason);
                }
            }];
            let test = "fs::tests::permissions::a_read_only_folder_gives_an_error_and_no_leftovers";
            let mut command = children(test, &cases).remove(0);
            let folder = folder();
            let (here, old) = (text(folder.path().to_path_buf()), text(folder.path().join("old")));
            write(&old, b"old").unwrap();
            set_mode(&old, 0o666);
            set_mode(&here, 0o555);
            if std::os::unix::fs::MetadataExt::uid(&fs::metadata(&here).unwrap()) == 0 {
                command.uid(NOBODY);
            }
            let output = command.env(FOLDER, &here).output().unwrap();
            set_mode(&here, 0o755);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{stderr}");
            assert_eq!(fs::read(&old).unwrap(), b"old");
            assert_eq!(names_in(folder.path()), ["old"]);
        }
    }
}
