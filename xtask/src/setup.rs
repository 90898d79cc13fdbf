//! `cargo xtask setup`: installs the tools that the tests need.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{Failure, output, run};
use crate::wheels;

/// A program or library that tests use and that is not a Rust crate.
struct Tool {
    name: &'static str,
    found_by: FoundBy,
    /// The package of Debian and Ubuntu.
    package: &'static str,
    used_for: &'static str,
}

/// How to tell that a tool is installed.
enum FoundBy {
    /// A program on the `PATH`.
    Program(&'static str),
    /// A shared library in the usual folders or on `LD_LIBRARY_PATH`.
    Library(&'static str),
    /// A file in this folder below `/usr/share`, `/usr/local/share` or `/etc`, whose name starts so.
    DataFile(&'static str, &'static str),
    /// A module of Python 3.
    PythonModule(&'static str),
}

/// Every tool, in the order of installation. A back end that needs one more adds a row.
const TOOLS: &[Tool] = &[
    Tool {
        name: "Vulkan loader",
        found_by: FoundBy::Library("libvulkan.so.1"),
        package: "libvulkan1",
        used_for: "opening Vulkan devices",
    },
    Tool {
        name: "lavapipe",
        found_by: FoundBy::DataFile("vulkan/icd.d", "lvp_icd"),
        package: "mesa-vulkan-drivers",
        used_for: "running kernels on Vulkan without a GPU",
    },
    Tool {
        name: "Vulkan validation layers",
        found_by: FoundBy::DataFile("vulkan/explicit_layer.d", "VkLayer_khronos_validation"),
        package: "vulkan-validationlayers",
        used_for: "checking every call of the Vulkan driver",
    },
    Tool {
        name: "spirv-val",
        found_by: FoundBy::Program("spirv-val"),
        package: "spirv-tools",
        used_for: "validating every emitted SPIR-V module",
    },
    Tool {
        name: "LLVM",
        found_by: FoundBy::Program("llc-19"),
        package: "llvm-19",
        used_for: "kernels for NVIDIA and AMD GPUs by LLVM",
    },
    Tool {
        name: "lld",
        found_by: FoundBy::Program("ld.lld-19"),
        package: "lld-19",
        used_for: "linking kernels for AMD GPUs",
    },
    Tool {
        name: "clang",
        found_by: FoundBy::Program("clang++-19"),
        package: "clang-19",
        used_for: "compiling and running emitted MSL on the CPU",
    },
    Tool {
        name: "Chromium",
        found_by: FoundBy::Program("chromium"),
        package: "chromium",
        used_for: "running emitted WGSL in a browser",
    },
    Tool {
        name: "pip",
        found_by: FoundBy::PythonModule("pip"),
        package: "python3-pip",
        used_for: "fetching tools that are no packages",
    },
];

/// Installs what is missing; does nothing when everything is there.
pub(crate) fn setup() -> Result<(), Failure> {
    packages()?;
    wheels::fetch()
}

fn packages() -> Result<(), Failure> {
    let missing = missing_tools();
    if missing.is_empty() {
        println!("setup: all {} packages are installed", TOOLS.len());
        return Ok(());
    }
    println!("setup: installing {} of {} tools", missing.len(), TOOLS.len());
    for tool in &missing {
        println!("  {} (package {}): {}", tool.name, tool.package, tool.used_for);
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    let by_hand = format!("apt-get install {}", packages.join(" "));
    if !on_path("apt-get") {
        return Err(Failure::missing(format!(
            "setup knows Debian and Ubuntu only, and there is no apt-get here; install {} by hand",
            packages.join(", ")
        )));
    }
    let sudo = if is_root()? {
        false
    } else if on_path("sudo") {
        true
    } else {
        return Err(Failure::missing(format!(
            "setup must install packages, is not run by root and finds no sudo; as root, run: {by_hand}"
        )));
    };
    apt(sudo, &["update", "-q"], &by_hand)?;
    let mut install = vec!["install", "-y", "-q", "--no-install-recommends"];
    install.extend(packages);
    apt(sudo, &install, &by_hand)?;
    let still_missing: Vec<&str> = missing_tools().iter().map(|tool| tool.name).collect();
    if still_missing.is_empty() {
        return Ok(());
    }
    Err(Failure::missing(format!(
        "apt-get succeeded, and yet these are not found: {}",
        still_missing.join(", ")
    )))
}

fn apt(sudo: bool, arguments: &[&str], by_hand: &str) -> Result<(), Failure> {
    let mut command = Command::new(if sudo { "sudo" } else { "env" });
    if sudo {
        // sudo clears the environment, so the setting is given behind it.
        command.arg("env");
    }
    // Another apt may be at work on a machine that has just started.
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=120"]);
    run(&format!("apt-get {}", arguments[0]), command.args(arguments)).map_err(|failure| {
        Failure::missing(format!("{}; by hand, as root: {by_hand}", failure.message))
    })
}

fn is_root() -> Result<bool, Failure> {
    Ok(output("id -u", Command::new("id").arg("-u"))?.trim() == "0")
}

fn missing_tools() -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| !tool.found_by.found()).collect()
}

impl FoundBy {
    fn found(&self) -> bool {
        match self {
            FoundBy::Program(name) => on_path(name),
            FoundBy::Library(name) => library_dirs().iter().any(|dir| dir.join(name).exists()),
            FoundBy::DataFile(dir, prefix) => ["/usr/share", "/usr/local/share", "/etc"]
                .iter()
                .any(|base| has_file(&Path::new(base).join(dir), prefix)),
            FoundBy::PythonModule(name) => {
                let import = format!("import {name}");
                let python = Command::new("python3").args(["-c", &import]).output();
                python.is_ok_and(|output| output.status.success())
            }
        }
    }
}

fn on_path(program: &str) -> bool {
    env_dirs("PATH").iter().any(|dir| dir.join(program).is_file())
}

fn library_dirs() -> Vec<PathBuf> {
    let mut dirs = env_dirs("LD_LIBRARY_PATH");
    for base in ["/lib", "/usr/lib", "/usr/local/lib", "/usr/lib64"] {
        dirs.push(base.into());
        dirs.push(Path::new(base).join(format!("{}-linux-gnu", std::env::consts::ARCH)));
    }
    dirs
}

fn env_dirs(variable: &str) -> Vec<PathBuf> {
    std::env::var_os(variable)
        .map_or_else(Vec::new, |value| std::env::split_paths(&value).collect())
}

fn has_file(dir: &Path, prefix: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(dir) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_table_differ() {
        for (index, tool) in TOOLS.iter().enumerate() {
            assert!(!tool.used_for.is_empty());
            for other in &TOOLS[..index] {
                assert_ne!(tool.name, other.name);
                assert_ne!(tool.package, other.package);
            }
        }
    }

    #[test]
    fn programs_and_files_are_found() {
        assert!(FoundBy::Program("sh").found());
        assert!(!FoundBy::Program("no-such-program-here").found());
        assert!(!FoundBy::Library("libno-such-library.so.1").found());
        assert!(!FoundBy::DataFile("no/such/folder", "x").found());
        assert!(!FoundBy::PythonModule("no_such_module").found());
        assert!(has_file(Path::new(env!("CARGO_MANIFEST_DIR")), "Cargo"));
        assert!(!has_file(Path::new(env!("CARGO_MANIFEST_DIR")), "argo"));
    }
}
