//! Compilers of a machine with the CUDA toolkit: NVRTC in process, nvcc as the process that it is,
//! Triton in a Python process that stays. NVRTC and nvcc make PTX for compute capability 9.0; Triton
//! has no way to stop there and makes machine code.

use std::ffi::{c_char, c_int, c_void};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use libloading::Library;

use super::folder::Folder;
use super::{NVRTC, sources};
use crate::harness::Contender;

/// NVRTC (`nvrtc.h`).
pub(super) struct Nvrtc {
    /// Ends with a zero.
    source: Vec<u8>,
    functions: Functions,
    bytes: usize,
}

const LIBRARIES: [&str; 3] = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"];
const FOLDER: &str = "/usr/local/cuda/lib64";

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    program: *mut Program,
    text: *const c_char,
    name: *const c_char,
    headers: c_int,
    header_texts: *const *const c_char,
    header_names: *const *const c_char,
) -> c_int;

struct Functions {
    create: Create,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    /// The functions live as long as this.
    _library: Library,
}

impl Nvrtc {
    /// # Panics
    /// When the library is missing: then there is nothing to compare with.
    pub(super) fn new(ops: usize) -> Nvrtc {
        let mut source = sources::cuda(ops).into_bytes();
        source.push(0);
        let paths =
            LIBRARIES.iter().flat_map(|name| [name.to_string(), format!("{FOLDER}/{name}")]);
        // SAFETY: starting the library runs nothing but its own initialisers.
        let library = paths.into_iter().find_map(|path| unsafe { Library::new(path) }.ok());
        let library = library.unwrap_or_else(|| panic!("this benchmark needs libnvrtc"));
        // SAFETY: the types are those of the header, and the library is kept with the functions.
        let functions = unsafe {
            let missing = |error: libloading::Error| -> ! { panic!("libnvrtc: {error}") };
            Functions {
                create: *library.get(b"nvrtcCreateProgram").unwrap_or_else(|e| missing(e)),
                compile: *library.get(b"nvrtcCompileProgram").unwrap_or_else(|e| missing(e)),
                size: *library.get(b"nvrtcGetPTXSize").unwrap_or_else(|e| missing(e)),
                destroy: *library.get(b"nvrtcDestroyProgram").unwrap_or_else(|e| missing(e)),
                _library: library,
            }
        };
        Nvrtc { source, functions, bytes: 0 }
    }
}

impl Contender for Nvrtc {
    fn name(&self) -> &str {
        NVRTC
    }

    fn run(&mut self) {
        let Functions { create, compile, size, destroy, .. } = self.functions;
        let options = [c"--gpu-architecture=compute_90".as_ptr()];
        let (mut program, mut bytes) = (std::ptr::null_mut(), 0);
        let no_headers = std::ptr::null();
        // SAFETY: the text and the option end with a zero and live through the calls; the program is
        // destroyed once, after its last use.
        unsafe {
            let text = self.source.as_ptr().cast();
            let name = c"chain.cu".as_ptr();
            let code = create(&mut program, text, name, 0, no_headers, no_headers);
            assert_eq!(code, 0, "nvrtcCreateProgram");
            assert_eq!(compile(program, 1, options.as_ptr()), 0, "nvrtcCompileProgram");
            assert_eq!(size(program, &mut bytes), 0, "nvrtcGetPTXSize");
            destroy(&mut program);
        }
        self.bytes = bytes;
    }

    fn checksum(&self) -> f64 {
        self.bytes as f64
    }
}

pub(super) struct Nvcc {
    folder: Folder,
}

impl Nvcc {
    pub(super) fn new(ops: usize) -> Nvcc {
        Nvcc { folder: Folder::new("nvcc", "chain.cu", &sources::cuda(ops)) }
    }
}

impl Contender for Nvcc {
    fn name(&self) -> &str {
        "nvcc"
    }

    fn run(&mut self) {
        let mut nvcc = Command::new("nvcc");
        nvcc.current_dir(self.folder.path()).args(["-O3", "-arch=compute_90", "-ptx", "chain.cu"]);
        let status = nvcc.status().unwrap_or_else(|error| panic!("nvcc: {error}"));
        assert!(status.success(), "nvcc refuses the kernel");
    }

    fn checksum(&self) -> f64 {
        self.folder.size_of("chain.ptx")
    }
}

/// Python with Triton: it compiles the kernel once for every line it reads, and answers with the
/// size of the machine code.
pub(super) struct Triton {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    bytes: f64,
    _folder: Folder,
}

const SERVER: &str = include_str!("../../cuda/triton_server.py");

impl Triton {
    /// # Panics
    /// When `python3` has no Triton: then there is nothing to compare with.
    pub(super) fn new(ops: usize) -> Triton {
        let folder = Folder::new("triton", "chain.py", &sources::triton(ops));
        let mut process = Command::new("python3")
            .args(["-c", SERVER])
            .current_dir(folder.path())
            .env("TRITON_ALWAYS_COMPILE", "1")
            .env("TRITON_CACHE_DIR", folder.path().join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("python3: {error}"));
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            panic!("python3 has no pipes")
        };
        Triton { process, requests, answers: BufReader::new(answers), bytes: 0.0, _folder: folder }
    }
}

impl Contender for Triton {
    fn name(&self) -> &str {
        "triton"
    }

    fn run(&mut self) {
        let mut answer = String::new();
        let asked = writeln!(self.requests, "compile").and_then(|()| self.requests.flush());
        asked
            .and_then(|()| self.answers.read_line(&mut answer))
            .unwrap_or_else(|error| panic!("triton: {error}"));
        self.bytes = answer.trim().parse().unwrap_or_else(|_| panic!("triton: `{answer}`"));
    }

    fn checksum(&self) -> f64 {
        self.bytes
    }
}

impl Drop for Triton {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
