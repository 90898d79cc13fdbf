//! `magpie build --emit`.

use crate::support::{Place, case, program};
use std::process::Command;

const OUT: &str = "target/x86_64-unknown-linux-gnu/dev";

fn out() -> String {
    let triple = magpie_driver::TRIPLE;
    OUT.replace("x86_64-unknown-linux-gnu", triple)
}

/// The program in a folder of its own.
fn scale() -> Place {
    let place = Place::new();
    place.write("scale.mp", std::fs::read(program("scale.mp")).unwrap());
    place
}

#[test]
fn artifacts_lie_below_the_project() {
    let place = scale();
    let ended = place.run(&["build", "--emit", "mpir,spv,spv-text", "scale.mp"]);
    let written: Vec<String> = ended.succeeds().lines().map(str::to_owned).collect();
    let files = place.files("target");
    let [spv, text, registry, mpir] = &files[..] else { panic!("{files:?}") };
    assert!(spv.contains("/gpu/F_") && spv.ends_with(".spv"), "{spv}");
    assert_eq!(*text, spv.replace(".spv", ".spvasm"));
    assert!(registry.ends_with("/scale.gpu_registry.ll") && mpir.ends_with("/scale.mpir"));
    assert_eq!(written.len(), files.len());
    assert!(place.read(&format!("target/{mpir}")).contains("gpu fn demo.scale.@scale("));
    assert!(place.read(&format!("target/{text}")).contains("OpEntryPoint GLCompute"));
    let registry = place.read(&format!("target/{registry}"));
    assert!(registry.contains("define void @mp_gpu_register_all_kernels()"), "{registry}");
    assert!(registry.contains("[1 x %MpRtGpuKernelBlob] [%MpRtGpuKernelBlob { i8 1, ptr @blob.F_"));
}

#[test]
fn spirv_is_valid() {
    if Command::new("spirv-val").arg("--version").output().is_err() {
        let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        assert!(!ci, "spirv-val must be there when CI is set");
        eprintln!("skipped: needs spirv-val");
        return;
    }
    let place = Place::new();
    for name in
        ["k05_ids", "k06_reduce_shared", "k16_bf16", "k19_struct_buffer", "k22_matmul_tiled"]
    {
        place.write(&format!("{name}.mp"), std::fs::read(case(name)).unwrap());
        // That bf16 is slow on old NVIDIA GPUs is told, and is no error.
        let ended = place.run(&["build", "--emit", "spv", &format!("{name}.mp")]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }
    let modules: Vec<String> =
        place.files("target").into_iter().filter(|file| file.ends_with(".spv")).collect();
    assert!(modules.len() >= 5);
    for module in modules {
        let path = place.path(&format!("target/{module}"));
        let checked =
            Command::new("spirv-val").args(["--target-env", "vulkan1.3"]).arg(path).output();
        let checked = checked.unwrap();
        assert!(checked.status.success(), "{module}: {}", String::from_utf8_lossy(&checked.stderr));
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let (first, second) = (scale(), scale());
    let emit = "--emit=mpir,spv,spv-text";
    first.run(&["build", emit, "scale.mp"]).succeeds();
    // From another folder, without the cache.
    std::fs::create_dir(second.path("elsewhere")).unwrap();
    let args = ["build", emit, "../scale.mp", "--cache-dir", "cache", "--jobs", "1"];
    second.run_in("elsewhere", &args).succeeds();
    assert_eq!(first.files("target"), second.files("target"));
    for file in first.files("target") {
        let bytes = |place: &Place| std::fs::read(place.path(&format!("target/{file}"))).unwrap();
        assert!(bytes(&first) == bytes(&second), "{file}");
    }
}

#[test]
fn names_that_are_unknown_or_not_made_here_are_refused() {
    let place = scale();
    for (emit, message) in [
        (
            "spv-txt",
            "error[MPL0001]: unknown emit name `spv-txt`\nhelp: did you mean `spv-text`?\n",
        ),
        ("", "error[MPL0001]: unknown emit name ``\n"),
        ("object", "error[MPT2050]: `--emit object` is not supported by this build\n"),
        ("ast", "error[MPT2050]: `--emit ast` is not supported by this build\n"),
    ] {
        let text = place.run(&["build", "--emit", emit, "scale.mp"]).fails(1);
        assert!(text.starts_with(message), "{text}");
    }
    let text = place.run(&["build", "--emit", "mpir,x,y", "scale.mp"]).fails(1);
    assert_eq!(text.matches("error[MPL0001]").count(), 2);
    let text = place.run(&["build", "--emit", "mpir", "--target", "wasm32", "scale.mp"]).fails(1);
    assert!(text.starts_with("error[MPT2050]: this build makes programs for"), "{text}");
    assert_eq!(place.files(""), ["scale.mp"], "nothing is written");
}

#[test]
fn refused_programs_leave_no_artifacts() {
    let place = Place::new();
    place.write(
        "bad.mp",
        "module a\nexports { }\nimports { }\ndigest \"\"\nfn @main() -> i64 {\nbb0:\n  ret %x\n}\n",
    );
    let text = place.run(&["build", "--emit", "mpir,spv", "bad.mp"]).fails(1);
    assert!(text.starts_with("bad.mp:7:3: error[MPS0002]"), "{text}");
    assert_eq!(place.files(""), ["bad.mp"]);
}

#[test]
fn what_cannot_be_written_is_said_and_nothing_is_half_written() {
    let place = scale();
    place.write("target", "a file in the way");
    let text = place.run(&["build", "--emit", "mpir", "scale.mp"]).fails(1);
    assert!(text.starts_with("error[MPL0004]: cannot write `"), "{text}");
    assert_eq!(place.files(""), ["scale.mp", "target"]);

    // A read-only file stays, and so does a folder of that name.
    let place = scale();
    place.run(&["build", "--emit", "mpir", "scale.mp"]).succeeds();
    let mpir = format!("{}/scale.mpir", out());
    place.write(&mpir, "old");
    let mut permissions = std::fs::metadata(place.path(&mpir)).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(place.path(&mpir), permissions).unwrap();
    let text = place.run(&["build", "--emit", "mpir", "scale.mp"]).fails(1);
    assert!(text.contains("scale.mpir`: the file is read-only\n"), "{text}");
    assert_eq!(place.read(&mpir), "old");
    std::fs::remove_file(place.path(&mpir)).unwrap();
    std::fs::create_dir(place.path(&mpir)).unwrap();
    let text = place.run(&["build", "--emit", "mpir", "scale.mp"]).fails(1);
    assert!(text.contains("scale.mpir`: it is a folder\n"), "{text}");
}

#[test]
fn reports_list_artifacts_relative_to_the_project() {
    let place = scale();
    let ended = place.run(&["build", "--emit", "mpir", "--output", "json", "scale.mp"]);
    let report = ended.json();
    assert_eq!(report["artifacts"][0], format!("{}/scale.mpir", out()));
    assert_eq!((&report["command"], &report["success"]), (&"build".into(), &true.into()));
    let ended = place.run(&["build", "--emit", "mpir", "--output", "jsonl", "scale.mp"]);
    let events: Vec<serde_json::Value> =
        ended.succeeds().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["event"], "artifact");
    assert_eq!(events.last().unwrap()["event"], "finish");
}

#[test]
fn emitted_mpir_runs_again() {
    let place = scale();
    place.run(&["build", "--emit", "mpir", "scale.mp"]).succeeds();
    let mpir = format!("{}/scale.mpir", out());
    assert_eq!(place.run(&["mpir", "verify", &mpir]).succeeds(), "");
    assert_eq!(place.run(&["run", "--device", "cpu", &mpir]).succeeds(), "4.5\n");
}
