//! `magpie doctor`: what this command can use on this machine, and how to get the rest.

use crate::cache::Cache;
use crate::devices::{DeviceList, devices, table};
use crate::session::Session;
use magpie_codegen_llvm::tool::{Environment, Llvm, Target, ToolPaths};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// One thing that was looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Check {
    name: &'static str,
    /// What it is good for.
    purpose: &'static str,
    /// Which one was found, or why none was.
    found: Result<String, String>,
    /// How to get it.
    remedy: &'static str,
}

/// Everything that was looked for.
#[derive(Clone, Debug)]
pub struct Checkup {
    checks: Vec<Check>,
}

/// Looks for devices, drivers and tools. Nothing that is missing is an error: programs run on the
/// CPU device everywhere.
pub fn doctor(session: &mut Session) -> Checkup {
    let list = devices(session);
    let checks = vec![
        Check {
            name: "CPU device",
            purpose: "kernels on the processor",
            found: device(&list, |d| d["drivers"] == json!(["cpu"])),
            remedy: "it is part of this command",
        },
        Check {
            name: "GPU",
            purpose: "kernels on a graphics card",
            found: device(&list, |d| d["type"] != "host" && d["type"] != "software"),
            remedy: "install the driver of your graphics card",
        },
        Check {
            name: "Vulkan",
            purpose: "`--device vulkan`",
            found: driver(&list, "vulkan", "spv"),
            remedy: "Debian, Ubuntu: apt install libvulkan1 mesa-vulkan-drivers",
        },
        Check {
            name: "CUDA",
            purpose: "`--device cuda`",
            found: driver(&list, "cuda", "ptx"),
            remedy: "on a machine with an NVIDIA GPU, install NVIDIA's driver",
        },
        Check {
            name: "HIP",
            purpose: "`--device hip`",
            found: driver(&list, "hip", "hip"),
            remedy: "on a machine with an AMD GPU, install ROCm's HIP runtime",
        },
        Check {
            name: "WebGPU",
            purpose: "`--device webgpu`",
            found: driver(&list, "webgpu", "wgsl"),
            remedy: "set MAGPIE_WGPU_LIBRARY to the library of wgpu-native",
        },
        Check {
            name: "LLVM for NVIDIA GPUs",
            purpose: "PTX by LLVM instead of the built-in writer",
            found: llvm(Target::Nvptx),
            remedy: "Debian, Ubuntu: apt install llvm-19",
        },
        Check {
            name: "LLVM for AMD GPUs",
            purpose: "kernels for AMD GPUs",
            found: llvm(Target::Amdgpu),
            remedy: "Debian, Ubuntu: apt install llvm-19 lld-19",
        },
        Check {
            name: "Vulkan validation",
            purpose: "MAGPIE_VK_VALIDATE=1",
            found: data_file("vulkan/explicit_layer.d", "VkLayer_khronos_validation"),
            remedy: "Debian, Ubuntu: apt install vulkan-validationlayers",
        },
        Check {
            name: "spirv-val",
            purpose: "checking of emitted SPIR-V by the tests",
            found: program("spirv-val"),
            remedy: "Debian, Ubuntu: apt install spirv-tools",
        },
        Check {
            name: "kernel cache",
            purpose: "faster second runs",
            found: cache_folder(session),
            remedy: "name a folder that can be written to: --cache-dir or MAGPIE_CACHE_DIR",
        },
    ];
    Checkup { checks }
}

fn device(list: &DeviceList, wanted: impl Fn(&Value) -> bool) -> Result<String, String> {
    let json = list.json();
    let devices = json["list"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = devices.iter().filter(|d| wanted(d)).filter_map(|d| d["name"].as_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() { Err("none".to_string()) } else { Ok(names.join("; ")) }
}

/// The LLVM that is used for a target.
fn llvm(target: Target) -> Result<String, String> {
    let found = Llvm::find(target, &ToolPaths::default(), &Environment::of_process());
    let llvm = found.map_err(|_| "none is found".to_string())?;
    Ok(format!("{} ({})", llvm.version(), llvm.path().display()))
}

/// The devices of a driver, or what it says when it is there but has none.
fn driver(list: &DeviceList, name: &str, backend: &str) -> Result<String, String> {
    let is_driven =
        |d: &Value| d["drivers"].as_array().is_some_and(|all| all.contains(&json!(name)));
    device(list, is_driven).map_err(|none| {
        let json = list.json();
        let failures = json["failures"].as_array().map(Vec::as_slice).unwrap_or_default();
        let reason = failures.iter().find(|f| f["backend"] == backend);
        reason.and_then(|f| f["message"].as_str()).map_or(none, str::to_string)
    })
}

/// A program on the `PATH`.
fn program(name: &str) -> Result<String, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file());
    found.map(|path| path.display().to_string()).ok_or_else(|| "not on the PATH".to_string())
}

/// A file whose name starts with `prefix` in a folder where packages put data.
fn data_file(folder: &str, prefix: &str) -> Result<String, String> {
    let bases = ["/usr/share", "/usr/local/share", "/etc"];
    let inside = |dir: PathBuf| -> Option<PathBuf> {
        let entries = std::fs::read_dir(dir).ok()?;
        let names = entries.flatten().map(|entry| entry.path());
        names.filter(|path| starts_with(path, prefix)).min()
    };
    let found = bases.iter().find_map(|base| inside(Path::new(base).join(folder)));
    found.map(|path| path.display().to_string()).ok_or_else(|| "not installed".to_string())
}

fn starts_with(path: &Path, prefix: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
}

fn cache_folder(session: &Session) -> Result<String, String> {
    let cache = Cache::new(&session.options, session.log());
    let Some(folder) = cache.folder() else {
        return Err("there is no HOME".to_string());
    };
    // A folder that is not there yet is made in the nearest one that is.
    let existing = folder.ancestors().find(|dir| dir.exists()).unwrap_or(folder);
    match tempfile::tempfile_in(existing) {
        Ok(_) => Ok(folder.display().to_string()),
        Err(error) => Err(format!(
            "{} cannot be written to: {}",
            folder.display(),
            crate::source_file::reason(&error)
        )),
    }
}

impl Checkup {
    /// One line a thing, and what to do about those that are missing.
    pub fn text(&self) -> String {
        let row = |check: &Check| {
            let (mark, detail) = match &check.found {
                Ok(found) => ("found", found),
                Err(why) => ("missing", why),
            };
            [mark, check.name, detail].map(String::from)
        };
        let mut out = table(&self.checks.iter().map(row).collect::<Vec<_>>());
        for check in self.checks.iter().filter(|check| check.found.is_err()) {
            let Check { name, purpose, remedy, .. } = check;
            let _ = write!(out, "\n{name} (for {purpose}): {remedy}");
        }
        if self.checks.iter().any(|check| check.found.is_err()) {
            out.push('\n');
        }
        out
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let check = |check: &Check| {
            json!({
                "detail": check.found.as_ref().unwrap_or_else(|why| why),
                "found": check.found.is_ok(),
                "name": check.name,
                "purpose": check.purpose,
                "remedy": check.remedy,
            })
        };
        self.checks.iter().map(check).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn what_is_missing_comes_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let options = Options { cache_dir: Some(file), ..Options::new("doctor") };
        let checkup = doctor(&mut Session::new(options));
        let text = checkup.text();
        assert!(text.contains("found    CPU device"), "{text}");
        assert!(text.contains("missing  kernel cache"), "{text}");
        assert!(text.contains("kernel cache (for faster second runs): name a folder"), "{text}");
        let json = checkup.json();
        assert_eq!(json.as_array().map(Vec::len), Some(checkup.checks.len()));
        assert_eq!(json[0]["found"], true);
    }

    #[test]
    fn programs_and_files_are_looked_for() {
        assert!(program("sh").is_ok());
        assert!(program("no-such-program").is_err());
        assert!(data_file("no/such/folder", "x").is_err());
    }
}
