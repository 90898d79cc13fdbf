//! Compilers from shader languages to SPIR-V: naga, and glslang where it is installed.

use std::process::Command;

use super::folder::Folder;
use super::{PEER, sources};
use crate::harness::Contender;

pub(super) struct Naga {
    source: String,
    words: usize,
}

impl Naga {
    pub(super) fn new(ops: usize) -> Naga {
        Naga { source: sources::wgsl(ops), words: 0 }
    }
}

impl Contender for Naga {
    fn name(&self) -> &str {
        PEER
    }

    fn run(&mut self) {
        let module = naga::front::wgsl::parse_str(&self.source).unwrap_or_else(|e| panic!("{e}"));
        let flags = naga::valid::ValidationFlags::all();
        let mut validator = naga::valid::Validator::new(flags, naga::valid::Capabilities::all());
        let info = validator.validate(&module).unwrap_or_else(|error| panic!("{error}"));
        let options = naga::back::spv::Options { lang_version: (1, 6), ..Default::default() };
        let words = naga::back::spv::write_vec(&module, &info, &options, None);
        self.words = words.unwrap_or_else(|error| panic!("{error}")).len();
    }

    fn checksum(&self) -> f64 {
        self.words as f64
    }
}

/// glslang's command, a process for every compile, without its optimiser.
pub(super) struct Glslang {
    folder: Folder,
}

impl Glslang {
    /// `None` where the command is not installed.
    pub(super) fn find(ops: usize) -> Option<Glslang> {
        let folder = Folder::new(&format!("glslang-{ops}"), "chain.comp", &sources::glsl(ops));
        let found = Command::new(COMMAND).arg("--version").output();
        found.is_ok().then_some(Glslang { folder })
    }
}

const COMMAND: &str = "glslangValidator";

impl Contender for Glslang {
    fn name(&self) -> &str {
        "glslang, a process"
    }

    fn run(&mut self) {
        let mut glslang = Command::new(COMMAND);
        glslang.current_dir(self.folder.path()).args(["-V", "-o", "chain.spv", "chain.comp"]);
        let output = glslang.output().unwrap_or_else(|error| panic!("{COMMAND}: {error}"));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "glslang refuses the kernel: {said}");
    }

    fn checksum(&self) -> f64 {
        self.folder.size_of("chain.spv")
    }
}
