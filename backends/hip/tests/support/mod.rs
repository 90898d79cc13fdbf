//! What the tests share: an LLVM with its linker and disassembler, and the back end as a subject of
//! comparison. There is no AMD GPU to run anything on: code objects are made, linked and read back.

// Each test file uses a part of it.
#![allow(dead_code)]

use magpie_codegen_llvm::tool::{Environment, Linker, Llvm, Target, ToolPaths};
use magpie_gpu_hip::{HipEmitter, HipTarget};
use magpie_kernel_tests::{Subject, run_tool, skip};
use std::path::PathBuf;

/// The processors that are tested: two generations with wavefronts of 64 lanes, two with 32.
pub(crate) const PROCESSORS: [&str; 4] = ["gfx90a", "gfx942", "gfx1030", "gfx1100"];

/// What makes code objects.
pub(crate) struct Toolchain {
    pub(crate) llvm: Llvm,
    /// None: kernels need nothing but the own link step.
    pub(crate) linker: Linker,
}

impl Toolchain {
    /// The tools of the machine, if there are any.
    pub(crate) fn find() -> Option<Toolchain> {
        let (tools, env) = (ToolPaths::default(), Environment::of_process());
        let Ok(llvm) = Llvm::find(Target::Amdgpu, &tools, &env) else {
            skip("LLVM with AMDGPU");
            return None;
        };
        Some(Toolchain { llvm, linker: Linker::new(&tools, Environment::default()) })
    }

    /// The disassembly of a code object; `None` without a disassembler.
    pub(crate) fn disassemble(&self, code: &[u8], processor: &str) -> Option<String> {
        self.show("llvm-objdump", &["-d", &format!("--mcpu={processor}")], code)
    }

    /// What a tool of LLVM prints about a code object; `None` when it is not there.
    pub(crate) fn show(&self, tool: &str, arguments: &[&str], code: &[u8]) -> Option<String> {
        let lld = Linker::new(&ToolPaths::default(), Environment::of_process());
        let beside = lld.path().ok()?.canonicalize().ok()?.with_file_name(tool);
        let tool = if beside.is_file() { beside } else { PathBuf::from(tool) };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kernel.hsaco");
        std::fs::write(&file, code).unwrap();
        let arguments = [arguments, &[file.to_str().unwrap()]].concat();
        Some(String::from_utf8(run_tool(tool, &arguments, &[])?.unwrap()).unwrap())
    }
}

/// The back end without a device. The emitter itself reads back what it has made.
pub(crate) fn subject<'a>(
    tools: &'a Toolchain,
    target: &'a HipTarget,
) -> Subject<'a, HipEmitter<'a>> {
    Subject {
        name: target.name().to_string(),
        compiler: HipEmitter { target, sources: None, llvm: &tools.llvm, linker: &tools.linker },
        validate: &|what, code| assert!(code.starts_with(b"\x7fELF"), "{what}"),
        gpu: None,
    }
}
