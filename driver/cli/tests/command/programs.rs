//! `magpie run`.

use crate::support::{Place, case, has_vulkan, json, program};
use std::io::Read;
use std::process::Stdio;

#[test]
fn output_and_exit_code_are_those_of_the_program() {
    let place = Place::new();
    let ended = place.run(&["run", &program("hello.mp")]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (7, "hello\n", ""));
    assert!(place.files("").is_empty(), "running writes nothing");
}

#[test]
fn arguments_behind_the_dashes_are_the_programs() {
    let place = Place::new();
    let ended = place.run(&["run", &program("args.mp"), "--", "-v", "--device", "", "ä b"]);
    assert_eq!(ended.succeeds(), "-v\n--device\n\nä b\n");
    let ended = place.run(&["run", &program("args.mp")]);
    assert_eq!(ended.succeeds(), "");
}

#[test]
fn panics_are_101() {
    let ended = Place::new().run(&["run", &case("h18_panic_user")]);
    assert_eq!(ended.code, 101);
    assert!(ended.stderr.starts_with("panic: "), "{}", ended.stderr);
}

#[test]
fn calls_nested_too_deep_are_101() {
    let ended = Place::new().run(&["run", &program("deep.mp")]);
    assert_eq!((ended.code, ended.stdout.as_str()), (101, "going down\n"));
    assert_eq!(ended.stderr, "panic: stack overflow: calls are nested too deep\n");
}

#[test]
fn a_miri_program_that_stops_says_where() {
    let place = Place::new();
    let stops = [
        ("let l = List([1])\nlet s = l.slice(0..4)", "slice out of bounds at {}:2:9: 0 .. 4 of 1"),
        (
            "gpu let a = [1, 2, 3]\nvar e = 5\nlet s = a.slice(1..e)",
            "slice out of bounds at {}:3:9: 1 .. 5 of 3",
        ),
        ("var l = List<int>()\nl.insert(3, 1)", "insertion out of bounds at {}:2:1: 0 .. 3 of 0"),
        (
            "let n = 3000000000\ngpu let g = [1, n]\nforall i in 0..2\n    let x = g[i]",
            "element 1 of `g` at {}:2:13 is 3000000000, but an `int` on a device has 32 bits, \
             where a kernel needs it: {}:3:1",
        ),
        ("fn f()\n    panic(\"no\")\nf()", "panic: no at {}:2:5"),
        (
            "gpu var g = [1]\nvar n = 3000000000\nforall i in 0..n\n    g[i] = i",
            "a bound of the launch is 3000000000, but an `int` on a device has 32 bits at {}:3:1",
        ),
    ];
    for (text, message) in stops {
        let file = place.write("stops.mi", text);
        let ended = place.run(&["run", "--device", "cpu", &file]);
        let message = message.replace("{}", "stops.mi");
        assert_eq!((ended.code, ended.stdout.as_str()), (101, ""), "{text}");
        assert!(ended.stderr.contains(&message), "{} instead of {message}", ended.stderr);
    }
}

#[test]
fn mpir_programs_run_too() {
    let place = Place::new();
    let text = "fn a.@main() -> i32 {\nbb0:\n  rt.call rt=mp_rt_println Str \"from mpir\"\n  ret i32 -1\n}\n";
    let ended = place.run(&["run", &place.write("a.mpir", text)]);
    assert_eq!((ended.code, ended.stdout.as_str()), (255, "from mpir\n"));
    let unit = "fn @main() -> unit {\nbb0:\n  ret\n}\n";
    assert_eq!(place.run(&["run", &place.write("b.mpir", unit)]).succeeds(), "");
}

#[test]
fn every_device_gives_the_same() {
    let place = Place::new();
    let scale = program("scale.mp");
    for device in ["cpu", "interp"] {
        assert_eq!(place.run(&["run", "--device", device, &scale]).succeeds(), "4.5\n");
    }
    if has_vulkan() {
        assert_eq!(place.run(&["--device", "vulkan", "run", &scale]).succeeds(), "4.5\n");
    }
    let mut command = place.command(["run", &scale]);
    let ended = command.env("MAGPIE_DEVICE", "interp").output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0));
}

#[test]
fn the_cpu_stands_in_for_a_gpu_and_that_is_said_once() {
    let place = Place::new();
    // Without a driver to load there is no GPU, whatever the machine.
    let no_gpu = |args: &[&str]| {
        let mut command = place.command(args);
        command.env("VK_DRIVER_FILES", "/nothing").env("VK_ICD_FILENAMES", "/nothing");
        crate::support::Ended::from(command.output().unwrap())
    };
    let scale = program("scale.mp");
    let ended = no_gpu(&["run", &scale]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "4.5\n"));
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("kernels run on the CPU"), "{}", ended.stderr);

    // The program sees that there is none.
    let ended = no_gpu(&["run", &scale, "--gpu-fallback", "none"]);
    assert_eq!(ended.code, 9);
    assert!(ended.stdout.starts_with("no GPU"), "{}", ended.stdout);

    // A device that was named must be there.
    for device in ["gpu", "vulkan", "cuda", "7"] {
        let message = no_gpu(&["run", "--device", device, &scale]).fails(3);
        assert!(message.starts_with("error[MPL0007]: no "), "{message}");
        assert!(message.contains("help: `magpie devices` lists"), "{message}");
    }
    // A program without kernels needs none.
    assert_eq!(no_gpu(&["run", "--device", "gpu", &program("args.mp")]).succeeds(), "");

    // In a project the fallback must be asked for.
    place.write("app/Magpie.toml", "[package]\nname = 'app'\n");
    place.write("app/src/main.mp", std::fs::read(&scale).unwrap());
    assert_eq!(no_gpu(&["run", "app/src/main.mp"]).code, 9);
    place.write("app/Magpie.toml", "[gpu]\nfallback = 'cpu'\n");
    assert_eq!(no_gpu(&["run", "app/src/main.mp"]).succeeds(), "4.5\n");
    let manifest = "[gpu]\nfallback = 'cpu'\n[gpu.profiles.release]\nfallback = 'none'\n";
    place.write("app/Magpie.toml", manifest);
    assert_eq!(no_gpu(&["run", "app/src/main.mp", "--profile", "release"]).code, 9);
}

#[test]
fn reports_of_a_run_go_to_standard_error() {
    let place = Place::new();
    let ended = place.run(&["run", "--output", "json", &program("hello.mp")]);
    assert_eq!((ended.code, ended.stdout.as_str()), (7, "hello\n"));
    let report = json(&ended.stderr);
    assert_eq!((&report["command"], &report["success"]), (&"run".into(), &true.into()));
    assert!(report["timing_ms"]["frontend"].is_number());
}

#[test]
fn files_that_are_no_programs_are_refused() {
    let place = Place::new();
    place.write("folder.mp/x", "");
    for (file, code, message) in [
        ("none.mp", 1, "error[MPP0001]: cannot read `none.mp`: no such file or directory"),
        ("folder.mp", 1, "error[MPP0001]: cannot read `folder.mp`: it is a folder"),
        ("program", 2, "error[MPL0006]: `program` is no source file"),
        ("a.txt", 2, "error[MPL0006]: `a.txt` is no source file"),
        ("a.nupp", 1, "error[MPT2050]: Nupp (`.nupp`) programs are not supported by this build"),
    ] {
        let text = place.run(&["run", file]).fails(code);
        assert!(text.starts_with(message) && text.contains("\nhelp: "), "{text}");
    }
    place.write("empty.mp", "");
    let text = place.run(&["run", "empty.mp"]).fails(1);
    assert!(text.starts_with("empty.mp:1:1: error[MPP0002]"), "{text}");
    place.write("latin.mp", b"module \xe9");
    let text = place.run(&["run", "latin.mp"]).fails(1);
    assert!(text.starts_with("latin.mp:1:8: error[MPP0001]"), "{text}");
    place.write("empty.mpir", "");
    let text = place.run(&["run", "empty.mpir"]).fails(1);
    assert!(
        text.starts_with("empty.mpir:1:1: error[MPL0005]: the program has no `@main`"),
        "{text}"
    );
    place.write("two.mpir", "fn a.@main() {\nb:\n  ret\n}\nfn b.@main() {\nb:\n  ret\n}\n");
    let text = place.run(&["run", "two.mpir"]).fails(1);
    assert!(text.starts_with("two.mpir:5:1: error[MPL0005]"), "{text}");
    place.write("taking.mpir", "fn @main(%x: i64) -> i64 {\nb:\n  ret %x\n}\n");
    let text = place.run(&["run", "taking.mpir"]).fails(1);
    assert!(text.starts_with("taking.mpir:1:1: error[MPL0005]"), "{text}");
    let text = place.run(&["run"]).fails(2);
    assert!(text.starts_with("error[MPL0006]: no file given, and no Magpie.toml here"), "{text}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let place = Place::new();
    place.write("forever.mp", FOREVER);
    for args in [vec!["run", "forever.mp"], vec!["explain", "MPT2014"], vec!["--help"]] {
        let mut command = place.command(&args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut messages = String::new();
        child.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
        let code = child.wait().unwrap().code();
        // Short texts may have been written before the reader left.
        let may_have_ended = args[0] != "run" && code == Some(0);
        assert!(code == Some(141) || may_have_ended, "{args:?}: {code:?}");
        assert_eq!(messages, "", "{args:?}");
    }
}

const FOREVER: &str = r#"module a
exports { }
imports { std.io::{@println} }
digest ""

fn @main() -> i64 {
bb0:
  br bb1
bb1:
  call_void @println { s="more" }
  br bb1
}
"#;

#[test]
fn compiled_kernels_are_kept() {
    if !has_vulkan() {
        return;
    }
    let place = Place::new();
    let scale = program("scale.mp");
    let run = || {
        let args = ["run", "-v", "--device", "vulkan", "--cache-dir", "cache", &scale];
        let ended = place.run(&args);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "4.5\n"));
        ended.stderr
    };
    assert!(run().contains("magpie: kernel `scale`: cache miss\n"));
    assert!(run().contains("magpie: kernel `scale`: cache hit\n"));
    let [entry] = &place.files("cache/kernels")[..] else { panic!("one entry") };
    let path = format!("cache/kernels/{entry}");
    let whole = std::fs::read(place.path(&path)).unwrap();
    place.write(&path, &whole[..whole.len() / 2]);
    assert!(run().contains("cache miss\n"), "a damaged entry is not believed");
    assert_eq!(std::fs::read(place.path(&path)).unwrap(), whole, "and is replaced");
    // A folder that cannot be written to costs time only.
    place.write("file", "");
    let args = ["run", "-v", "--device", "vulkan", "--cache-dir", "file", &scale];
    let ended = place.run(&args);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "4.5\n"));
    assert!(ended.stderr.contains("not cached in file/kernels"), "{}", ended.stderr);
}
