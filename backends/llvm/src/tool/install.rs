//! What to say when no LLVM is found.

use super::{Target, ToolError};
use crate::flavor::MIN_LLVM;

/// How to get LLVM on this platform.
fn instructions(target: Target) -> String {
    let how = if cfg!(target_os = "macos") {
        "install it with `brew install llvm`".to_string()
    } else if cfg!(target_os = "windows") {
        "install it with `winget install LLVM.LLVM`".to_string()
    } else {
        linux_instructions(&std::fs::read_to_string("/etc/os-release").unwrap_or_default())
    };
    let instead = match target {
        Target::Nvptx => "set `codegen = \"direct\"` under [gpu.ptx], which needs no LLVM",
        Target::Amdgpu => "name a ROCm installation's `llc` under [gpu.tools]",
    };
    format!("{how}, or {instead}")
}

/// The command of a Linux distribution, from its `os-release`.
fn linux_instructions(os_release: &str) -> String {
    let value = |key: &str| {
        let line = os_release.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"').to_string()
    };
    let words = format!("{} {}", value("ID"), value("ID_LIKE"));
    let is = |names: &[&str]| words.split_whitespace().any(|w| names.contains(&w));
    let command = if is(&["debian", "ubuntu"]) {
        "apt install llvm-19 lld-19"
    } else if is(&["fedora", "rhel", "centos"]) {
        "dnf install llvm lld"
    } else if is(&["arch"]) {
        "pacman -S llvm lld"
    } else if is(&["suse", "opensuse"]) {
        "zypper install llvm lld"
    } else if is(&["alpine"]) {
        "apk add llvm lld"
    } else {
        return format!("install LLVM {MIN_LLVM} or newer with its `llc` and `ld.lld`");
    };
    format!("install it with `{command}`")
}

/// No LLVM with the target.
pub(super) fn not_found(target: Target, rejected: Vec<String>) -> ToolError {
    let message = format!(
        "no LLVM {MIN_LLVM} or newer with the {} target was found (`llc`, or libLLVM)",
        target.name()
    );
    ToolError::missing(message, rejected, instructions(target))
}

/// No linker for objects of AMD GPUs.
pub(super) fn no_linker(rejected: Vec<String>) -> ToolError {
    let message = "no `ld.lld` was found to link code for AMD GPUs".to_string();
    ToolError::missing(message, rejected, instructions(Target::Amdgpu))
}

/// What was named explicitly does not do.
pub(super) fn unsuitable(target: Target, why: String, named_by: &str) -> ToolError {
    let help = format!("correct {named_by}, or remove it and {}", instructions(target));
    ToolError { is_named: true, ..ToolError::missing(why, Vec::new(), help) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distribution_has_its_command() {
        let of = |text: &str| linux_instructions(text);
        assert!(of("ID=ubuntu\nID_LIKE=debian\n").contains("apt install"));
        assert!(of("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n").contains("dnf install"));
        assert!(of("ID=arch\n").contains("pacman"));
        assert!(of("ID=nixos\n").contains("16 or newer"));
    }
}
