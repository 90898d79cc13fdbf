//! A second opinion: programs of others that check what back ends emit, when the environment names
//! them. A module that one of them refuses is not used.
//!
//! | variable | program | checks |
//! | --- | --- | --- |
//! | `MAGPIE_SPIRV_VAL` | `spirv-val` of SPIRV-Tools | `spv` |
//! | `MAGPIE_METAL` | `metal`, Apple's compiler (`xcrun -f metal`) | `msl` |

use magpie_codegen_llvm::tool::run_tool;
use magpie_diag::{Code, Diagnostic, Span};
use magpie_types::kernel::{BlobCode, GpuBackend, KernelBlob};
use std::path::{Path, PathBuf};

/// What checks the code of a back end.
struct Checker {
    variable: &'static str,
    /// It reads the code from its standard input.
    arguments: &'static [&'static str],
    refused: Code,
    /// What it reads.
    language: &'static str,
}

const SPIRV_VAL: Checker = Checker {
    variable: "MAGPIE_SPIRV_VAL",
    arguments: &["--target-env", "vulkan1.3"],
    refused: Code::MPG_SPV_2002,
    language: "SPIR-V",
};

const METAL: Checker = Checker {
    variable: "MAGPIE_METAL",
    arguments: &["-std=metal2.4", "-fno-fast-math", "-x", "metal", "-c", "-", "-o", "/dev/null"],
    refused: Code::MPG_MSL_2002,
    language: "MSL",
};

/// Checks the bodies of a kernel, if there is a program for it.
///
/// # Errors
/// It refuses one, or cannot be run.
pub(super) fn check(blob: &KernelBlob, name: &str, at: Span) -> Result<(), Vec<Diagnostic>> {
    let checker = match blob.backend {
        GpuBackend::Spv => &SPIRV_VAL,
        GpuBackend::Msl => &METAL,
        GpuBackend::Ptx
        | GpuBackend::Hip
        | GpuBackend::Wgsl
        | GpuBackend::Cpu
        | GpuBackend::Interp => return Ok(()),
    };
    match std::env::var_os(checker.variable).filter(|v| !v.is_empty()).map(PathBuf::from) {
        Some(program) => checker.check(&program, blob, name, at).map_err(|d| vec![*d]),
        None => Ok(()),
    }
}

impl Checker {
    fn check(
        &self,
        program: &Path,
        blob: &KernelBlob,
        name: &str,
        at: Span,
    ) -> Result<(), Box<Diagnostic>> {
        for code in std::iter::once(&blob.code).chain(&blob.unchecked) {
            let BlobCode::Bytes(code) = code else { continue };
            run_tool(program, self.arguments, code).map_err(|e| {
                let message = format!("the {} of kernel `{name}`: {}", self.language, e.message);
                let mut d = Diagnostic::new(self.refused, at, message);
                d.notes = e.notes;
                let variable = self.variable;
                Box::new(d.with_help(format!(
                    "this is a fault of the compiler, or {variable} names another program: please \
                     report it with the program; without {variable} nothing is checked"
                )))
            })?;
        }
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use magpie_diag::FileId;
    use magpie_types::kernel::{DeviceFeatures, KernelLayout, ScalarTransport};
    use std::process::Command;

    fn blob(backend: GpuBackend) -> KernelBlob {
        let layout = KernelLayout {
            entry: "k".into(),
            params: Vec::new(),
            scalar_size: 0,
            hidden: Vec::new(),
            block_size: 0,
            transport: ScalarTransport::None,
            workgroup: [1, 1, 1],
            fixed_workgroup: false,
            shared_bytes: 0,
            features: DeviceFeatures::default(),
            preconditions: Vec::new(),
            prints: Vec::new(),
        };
        let code = |text: &str| BlobCode::Bytes(text.as_bytes().to_vec());
        KernelBlob { backend, layout, code: code("good"), unchecked: Some(code("bad")) }
    }

    /// What a checker says that is a script.
    fn said(checker: &Checker, backend: GpuBackend, script: &str) -> Result<(), Box<Diagnostic>> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("checker");
        // A file that is open for writing, be it in a process that is starting, cannot be run: a
        // shell writes it.
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod +x \"$0\"";
        let status = Command::new("sh").args(["-c", write]).arg(&program).arg(script).status();
        assert!(status.unwrap().success());
        let at = Span { file: FileId(0), start: 3, end: 9 };
        checker.check(&program, &blob(backend), "k", at)
    }

    #[test]
    fn what_a_checker_refuses_is_told_with_what_it_said() {
        let reads =
            "read what; [ \"$what\" = bad ] && echo 'error: no such id' >&2 && exit 1; exit 0";
        let of = [(SPIRV_VAL, GpuBackend::Spv), (METAL, GpuBackend::Msl)];
        for (checker, backend) in &of {
            assert_eq!(said(checker, *backend, "cat >/dev/null"), Ok(()));
            let d = said(checker, *backend, reads).unwrap_err();
            assert_eq!((d.code, d.primary.start), (checker.refused, 3));
            assert_eq!(d.notes, ["error: no such id"]);
            assert!(d.message.contains("kernel `k`") && d.help.is_some(), "{d:?}");
        }
        let codes = of.map(|(checker, _)| checker.refused);
        assert_eq!(codes, [Code::MPG_SPV_2002, Code::MPG_MSL_2002]);
    }

    #[test]
    fn a_checker_that_is_missing_or_crashes_is_told() {
        let d = SPIRV_VAL.check(Path::new("/nowhere/val"), &blob(GpuBackend::Spv), "k", Span::NONE);
        assert!(d.unwrap_err().message.contains("`/nowhere/val` cannot be run"));
        let d = said(&METAL, GpuBackend::Msl, "kill -SEGV $$").unwrap_err();
        assert!(d.message.contains("failed"), "{d:?}");
    }
}
