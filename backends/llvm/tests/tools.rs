//! Finding LLVM and running it: the order of the search, and tools that are missing, old, broken or
//! something else. Tools that misbehave are scripts.

#![cfg(unix)]

use magpie_codegen_llvm::tool::{
    Environment, Job, Linker, Llvm, Output, Target, ToolError, ToolPaths,
};
use magpie_diag::{Code, Span};
use magpie_kernel_tests::{skip, write_script};
use std::path::{Path, PathBuf};

/// Surroundings without any tool.
fn nowhere() -> Environment {
    Environment { libllvm: Some("off".into()), ..Environment::default() }
}

/// A folder of scripts.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        write_script(&path, text);
        path
    }

    /// An `llc` that tells a version and targets, and then does `work`.
    fn llc(&self, name: &str, version: &str, targets: &str, work: &str) -> PathBuf {
        let text = format!(
            "if [ \"$1\" = --version ]; then\n\
             echo 'LLVM (http://llvm.org/):'; echo '  LLVM version {version}'\n\
             echo '  Registered Targets:'\n\
             for t in {targets}; do echo \"    $t - something\"; done; exit 0; fi\n{work}"
        );
        self.script(name, &text)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn places(&self) -> Vec<PathBuf> {
        vec![self.0.path().to_path_buf()]
    }
}

fn find(env: &Environment) -> Result<Llvm, ToolError> {
    Llvm::find(Target::Nvptx, &ToolPaths::default(), env)
}

const MODULE: &str = "target triple = \"nvptx64-nvidia-cuda\"\n\
                      define ptx_kernel void @k(ptr addrspace(1) %p) {\n  \
                      store i32 7, ptr addrspace(1) %p, align 4\n  ret void\n}\n";

fn job(ir: &str) -> Job<'_> {
    Job {
        ir,
        triple: "nvptx64-nvidia-cuda",
        cpu: "sm_70",
        features: "+ptx65",
        output: Output::Assembly,
    }
}

#[test]
fn nothing_found_says_how_to_install() {
    let e = find(&nowhere()).unwrap_err();
    assert!(e.is_missing && !e.is_named && e.message.contains("NVPTX"), "{e:?}");
    assert!(e.help.contains("install") && e.help.contains("direct"), "{e:?}");
    let d = e.to_diagnostic(Code::MPG_PTX_2002, Span::NONE);
    assert_eq!(d.code, Code::MPG_CORE_1301);
    let e = Linker::new(&ToolPaths::default(), nowhere()).link(b"x").unwrap_err();
    assert!(e.is_missing && e.message.contains("ld.lld"), "{e:?}");
}

#[test]
fn a_named_tool_is_used_and_nothing_else() {
    let folder = Folder::new();
    let from_manifest = folder.llc("mine", "17.0.1", "nvptx64", "");
    let from_variable = folder.llc("theirs", "18.0.1", "nvptx64", "");
    let newest = folder.llc("llc", "21.0.0", "nvptx64", "");
    let mut env = Environment { path: folder.places(), ..nowhere() };
    assert_eq!(find(&env).unwrap().path(), newest);
    env.llc = Some(from_variable.clone());
    assert_eq!(find(&env).unwrap().path(), from_variable);
    let tools = ToolPaths { llc: Some(from_manifest.clone()), lld: None };
    let llvm = Llvm::find(Target::Nvptx, &tools, &env).unwrap();
    assert_eq!(llvm.path(), from_manifest);
    assert_eq!(llvm.version().major, 17);
}

#[test]
fn a_named_tool_that_does_not_do_is_an_error() {
    let folder = Folder::new();
    folder.llc("llc", "21.0.0", "nvptx64", "");
    let refused = |llc: PathBuf, why: &str| {
        let env = Environment { path: folder.places(), llc: Some(llc), ..nowhere() };
        let e = find(&env).unwrap_err();
        assert!(e.message.contains(why), "{e:?}");
        assert!(e.is_named && e.help.contains("MAGPIE_LLC_PATH"), "{e:?}");
    };
    refused(folder.path("nothing"), "nothing");
    refused(folder.llc("old", "15.0.7", "nvptx64", ""), "older than 16");
    refused(folder.llc("x86", "19.1.7", "x86 x86-64", ""), "no NVPTX target");
    refused(folder.script("cat", "echo Hello"), "no LLVM tool");
    refused(folder.script("fails", "exit 3"), "failed");
}

#[test]
fn old_and_strange_tools_are_passed_over_and_told() {
    let folder = Folder::new();
    folder.llc("llc-14", "14.0.6", "nvptx64", "");
    folder.llc("llc-18", "18.1.8", "x86", "");
    folder.script("llc", "kill -SEGV $$");
    folder.script("llc-wrapper", "echo LLVM version 99.0.0");
    let env = Environment { path: folder.places(), ..nowhere() };
    let e = find(&env).unwrap_err();
    assert_eq!(e.notes.len(), 3, "{e:?}");
    for (note, why) in e.notes.iter().zip(["failed", "older", "no NVPTX"]) {
        assert!(note.contains(why), "{e:?}");
    }
    folder.llc("llc-17", "17.0.6", "amdgcn nvptx64", "");
    assert_eq!(find(&env).unwrap().version().major, 17);
}

#[test]
fn the_newest_wins_and_then_the_nearest() {
    let [beside_clang, in_path, of_platform] = std::array::from_fn(|_| Folder::new());
    let clang = beside_clang.script("clang", "exit 0");
    std::os::unix::fs::symlink(&clang, in_path.path("clang")).unwrap();
    let env =
        Environment { path: in_path.places(), program_places: of_platform.places(), ..nowhere() };
    let platform = of_platform.llc("llc", "19.1.7", "nvptx64", "");
    assert_eq!(find(&env).unwrap().path(), platform);
    let path = in_path.llc("llc-19", "19.1.7", "nvptx64", "");
    assert_eq!(find(&env).unwrap().path(), path);
    let beside = beside_clang.llc("llc", "19.1.7", "nvptx64", "");
    assert_eq!(find(&env).unwrap().path(), beside.canonicalize().unwrap());
    let newer = of_platform.llc("llc", "20.1.0", "nvptx64", "");
    assert_eq!(find(&env).unwrap().path(), newer);
}

#[test]
fn a_tool_that_fails_is_told_with_what_it_said() {
    let folder = Folder::new();
    let compile = |work: &str| {
        let llc = folder.llc("llc", "19.1.7", "nvptx64", work);
        let env = Environment { llc: Some(llc), ..nowhere() };
        find(&env).unwrap().compile(&job(MODULE)).unwrap_err()
    };
    let e = compile("echo 'Cannot select: f128' >&2; exit 1");
    assert!(!e.is_missing && e.message.contains("llc"), "{e:?}");
    assert!(e.notes[0].contains("Cannot select"), "{e:?}");
    assert_eq!(e.to_diagnostic(Code::MPG_PTX_2002, Span::NONE).code, Code::MPG_PTX_2002);
    assert!(compile("kill -SEGV $$").message.contains("failed"));
    assert!(compile("cat >/dev/null").message.contains("gave no code"));
    assert!(compile("printf '\\377\\376'").message.contains("gave no code"));
}

#[test]
fn a_linker_that_makes_nothing_is_told() {
    let folder = Folder::new();
    let tools = ToolPaths { llc: None, lld: Some(folder.script("ld.lld", "exit 0")) };
    let linker = Linker::new(&tools, nowhere());
    assert!(linker.link(b"x").unwrap_err().message.contains("gave no code object"));
    folder.script("ld.lld", "echo 'unknown file type' >&2; exit 1");
    assert!(linker.link(b"x").unwrap_err().notes[0].contains("unknown file type"));
    let tools = ToolPaths { llc: None, lld: Some(folder.path("nothing")) };
    assert!(Linker::new(&tools, nowhere()).path().unwrap_err().help.contains("[gpu.tools]"));
}

/// What a library and the programs of this machine do.
fn engines() -> Vec<Llvm> {
    let real = Environment::of_process();
    let programs = Environment { libllvm: Some("off".into()), ..real.clone() };
    let found: Vec<Llvm> = [real, programs].iter().filter_map(|env| find(env).ok()).collect();
    if found.len() < 2 {
        skip("libLLVM and llc");
    }
    found
}

#[test]
fn real_tools_compile() {
    for llvm in engines() {
        let text = String::from_utf8(llvm.compile(&job(MODULE)).unwrap()).unwrap();
        assert!(text.contains(".entry k("), "{llvm:?}: {text}");
        assert_eq!(text.as_bytes(), llvm.compile(&job(MODULE)).unwrap(), "{llvm:?}");
    }
}

#[test]
fn real_tools_refuse_what_is_malformed() {
    for llvm in engines() {
        for bad in ["define void @k(", "define i32 @k() {\n  ret float 0.0\n}\n", "nonsense"] {
            let e = llvm.compile(&job(bad)).unwrap_err();
            assert!(!e.is_missing && !e.help.is_empty(), "{llvm:?}: {e:?}");
        }
    }
}

#[test]
fn a_named_library_must_be_llvms() {
    let of = |libllvm: &Path| {
        find(&Environment { libllvm: Some(libllvm.into()), ..nowhere() }).unwrap_err()
    };
    let folder = Folder::new();
    assert!(of(&folder.path("nothing.so")).message.contains("nothing.so"));
    let text = folder.script("text.so", "");
    let e = of(&text);
    assert!(e.message.contains("cannot be loaded"), "{e:?}");
    assert!(e.help.contains("MAGPIE_LIBLLVM_PATH"), "{e:?}");
    // The C library of this process is a library, and not LLVM's.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let libc =
        maps.lines().find_map(|l| l.split_whitespace().last().filter(|p| p.contains("libc.so")));
    if let Some(libc) = libc {
        let e = of(Path::new(libc));
        assert!(e.message.contains("lacks `LLVMGetVersion`"), "{e:?}");
    }
}

/// A search that has found a library gives the same one again, and others that look elsewhere are not
/// given it.
#[test]
fn a_library_is_found_once() {
    let real = Environment::of_process();
    let Ok(first) = find(&real) else { return skip("libLLVM") };
    if !first.is_in_process() {
        return skip("libLLVM");
    }
    assert_eq!(find(&real).unwrap().path(), first.path());
    let elsewhere = Environment { libllvm: None, ..nowhere() };
    assert!(find(&elsewhere).unwrap_err().is_missing);
    let named = Environment { libllvm: Some(first.path().into()), ..nowhere() };
    assert_eq!(find(&named).unwrap().path(), first.path());
}

/// Code does not depend on what was compiled before on the same machine.
#[test]
fn target_machines_are_used_again() {
    let Ok(llvm) = find(&Environment::of_process()) else { return skip("libLLVM") };
    let other = MODULE.replace("i32 7", "i32 9").replace("@k", "@other");
    let fresh = [MODULE, &other].map(|ir| llvm.compile(&job(ir)).unwrap());
    assert!(llvm.compile(&job("nonsense")).is_err());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(llvm.compile(&job(&other)).unwrap(), fresh[1]);
                    assert_eq!(llvm.compile(&job(MODULE)).unwrap(), fresh[0]);
                }
            });
        }
    });
}
