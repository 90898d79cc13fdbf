//! PTX by LLVM: the kernel as LLVM IR, optimised and turned into PTX by an LLVM of the machine.

use crate::target::PtxTarget;
use magpie_codegen_llvm::tool::{Job, Llvm, Output, ToolError};
use magpie_codegen_llvm::{Flavor, write_kernel};
use magpie_diag::{Code, Diagnostic, SourceMap};
use magpie_mpir::MpirFn;
use magpie_types::TypeCtx;
use magpie_types::kernel::KernelLayout;

/// The newest architecture that each LLVM knows, with its newest version of PTX: by the first
/// version of LLVM.
const KNOWN: [(u32, u32, &str); 4] =
    [(16, 90, "7.8"), (20, 120, "8.7"), (21, 121, "8.8"), (22, 121, "9.0")];

/// The architecture to ask an LLVM for, and the version of PTX: the newest that both device and
/// LLVM know.
fn architecture(target: &PtxTarget, llvm: u32) -> (u32, &'static str) {
    let known = KNOWN.iter().rev().find(|k| k.0 <= llvm).unwrap_or(&KNOWN[0]);
    let (sm, version) = PtxTarget { sm: target.sm.min(known.1), ..*target }.architecture();
    match version_number(version) <= version_number(known.2) {
        true => (sm, version),
        // The architecture came after the LLVM.
        false => PtxTarget { sm: 90, ..*target }.architecture(),
    }
}

/// A version of PTX as a number: 78 for 7.8.
fn version_number(version: &str) -> u32 {
    version.bytes().filter(u8::is_ascii_digit).fold(0, |n, b| n * 10 + u32::from(b - b'0'))
}

/// The flavour of LLVM IR for a target.
pub(crate) fn flavor(target: &PtxTarget, llvm: &Llvm) -> Flavor {
    Flavor::Nvptx { sm: architecture(target, llvm.version().major).0 }
}

/// The PTX of a kernel, as [`crate::PtxEmitter`] takes it. Its entry, parameters and shared memory are
/// those of the direct writer.
///
/// # Errors
/// What the target cannot run; an LLVM that fails.
pub fn emit_ptx_llvm(
    kernel: &MpirFn,
    types: &TypeCtx,
    layout: &KernelLayout,
    target: &PtxTarget,
    llvm: &Llvm,
    sources: Option<&SourceMap>,
) -> Result<String, Vec<Diagnostic>> {
    let major = llvm.version().major;
    let (sm, version) = architecture(target, major);
    let flavor = flavor(target, llvm);
    let ir = write_kernel(kernel, types, layout, flavor, major, sources)?;
    let job = Job {
        ir: &ir,
        triple: flavor.triple(),
        cpu: &format!("sm_{sm}"),
        features: &format!("+ptx{}", version_number(version)),
        output: Output::Assembly,
    };
    let failed = |mut e: ToolError| {
        e.help += "; or set `codegen = \"direct\"` under [gpu.ptx], which needs no LLVM";
        vec![e.to_diagnostic(Code::MPG_PTX_2002, kernel.span)]
    };
    let text = llvm.compile(&job).map_err(failed)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let entry = format!(".entry {}(", layout.entry);
    if text.contains(".version") && text.contains(&entry) {
        return Ok(text);
    }
    let message =
        format!("`{}` gave no PTX with an entry `{}`", llvm.path().display(), layout.entry);
    let d = Diagnostic::new(Code::MPG_PTX_2002, kernel.span, message);
    Err(vec![d.with_help("install LLVM anew, or set `codegen = \"direct\"` under [gpu.ptx]")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_and_llvm_agree_on_an_architecture() {
        let of = |sm, llvm| architecture(&PtxTarget { sm, ..PtxTarget::DEFAULT }, llvm);
        assert_eq!(of(70, 16), (70, "6.5"));
        assert_eq!(of(90, 19), (90, "7.8"));
        assert_eq!(of(120, 19), (90, "7.8"));
        assert_eq!(of(100, 20), (100, "8.6"));
        assert_eq!(of(121, 22), (121, "8.8"));
        assert_eq!(of(110, 21), (90, "7.8"), "newer than PTX 8.8");
        assert_eq!(of(110, 22), (110, "9.0"));
    }
}
