//! The published header and the static library, seen from C and C++.

use magpie_types::abi::RtFn;
use std::path::{Path, PathBuf};
use std::process::Command;

const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c_abi.c");

/// A compiler with its language options. None: it is not installed, which is an error where all
/// tools are there.
fn compiler(name: &str, options: &[&str]) -> Option<Command> {
    if Command::new(name).arg("--version").output().is_err() {
        let ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
        assert!(!ci, "{name} is missing");
        eprintln!("skipped: needs {name}");
        return None;
    }
    let mut command = Command::new(name);
    command.args(options).args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-I", INCLUDE]);
    Some(command)
}

fn c() -> Option<Command> {
    compiler("gcc", &["-std=c11", "-x", "c"])
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{message}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The static library that was built together with this test.
fn static_library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libmagpie_rt") && name.ends_with(".a")
    };
    let age = |path: &PathBuf| std::fs::metadata(path).unwrap().modified().unwrap();
    std::fs::read_dir(test.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(is_library)
        .max_by_key(age)
        .expect("cargo builds the static library with its tests")
}

fn link_and_run(mut compiler: Command, source: &Path, folder: &Path) -> String {
    let program = folder.join("program");
    compiler.arg(source).args(["-x", "none"]).arg(static_library()).arg("-o").arg(&program);
    run(compiler.args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]));
    run(&mut Command::new(program))
}

#[test]
fn a_c_program_uses_the_runtime() {
    let Some(compiler) = c() else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = link_and_run(compiler, Path::new(PROGRAM), folder.path());
    assert_eq!(output, "-1234\n0.5\n");
}

#[test]
fn a_cpp_program_uses_the_runtime() {
    let Some(compiler) = compiler("g++", &["-std=c++17", "-x", "c++"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = link_and_run(compiler, Path::new(PROGRAM), folder.path());
    assert_eq!(output, "-1234\n0.5\n");
}

#[test]
fn every_declared_function_is_in_the_library() {
    let Some(compiler) = c() else { return };
    let extra = [
        "mp_rt_gpu_register_kernels",
        "mp_rt_gpu_error_drop",
        "mp_rt_gpu_device_count",
        "mp_rt_gpu_device_default",
        "mp_rt_gpu_buffer_new",
    ];
    let mut source = "#include \"magpie_rt.h\"\ntypedef void (*Function)(void);\n".to_string();
    source += "Function volatile functions[] = {\n";
    for symbol in RtFn::ALL.iter().map(|f| f.symbol()).chain(extra) {
        source += &format!("    (Function){symbol},\n");
    }
    source += "};\nint main(void) { return functions[0] == 0; }\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.c");
    std::fs::write(&path, source).unwrap();
    link_and_run(compiler, &path, folder.path());
}
