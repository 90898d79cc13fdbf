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

fn read(path: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {path:?}: {}", reason(&error)))
}

fn read_text(path: &str) -> Result<String, String> {
    String::from_utf8(read(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("cannot read {path:?} as text: byte {at} is not valid UTF-8")
    })
}

fn write(path: &str, content: &[u8]) -> Result<(), String> {
    // A write to a symbolic link goes to the file behind it.
    let resolved = fs::canonicalize(path);
    let target = resolved.as_deref().unwrap_or(Path::new(path));
    let written = match fs::metadata(target) {
        Ok(old) => overwrite(target, &old, content),
        Err(error) if error.kind() == ErrorKind::NotFound => replace(target, None, content),
        Err(error) => Err(reason(&error)),
    };
    written.map_err(|why| format!("cannot write {path:?}: {why}"))
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
    let prefix: String = name.to_string_lossy().chars().take(40).collect();
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
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
        let path = as_str(path);
        let array = read(path).and_then(|bytes| {
            array::try_from_bytes(&*info, &bytes)
                .map_err(|error| format!("cannot read {path:?}: {error}"))
        });
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
