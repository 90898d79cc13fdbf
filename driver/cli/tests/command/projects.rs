//! `new`, and the commands inside a project: `run`, `test`, `fmt`.

use crate::support::Place;

#[test]
fn a_new_project_runs_is_tested_and_is_canonical() {
    let place = Place::new();
    let text = place.run(&["new", "app"]).succeeds();
    assert_eq!(text, "made `app`; run it with: cd app && magpie run\n");
    assert_eq!(place.run_in("app", &["run", "--gpu-fallback=cpu"]).succeeds(), "2\n4\n6\n");
    assert_eq!(place.run_in("app", &["check"]).succeeds(), "");
    assert_eq!(place.run_in("app", &["fmt", "--check"]).succeeds(), "");
    let text = place.run_in("app/src", &["test"]).succeeds();
    let line = "test app.scale_test.@test_every_value_is_scaled ... ok\n";
    assert_eq!(text, format!("{line}\nok: 1 passed, 0 failed, 0 left out\n"));
    place.run_in("app", &["build", "--emit", "spv"]).succeeds();
    assert!(place.files("app/target").iter().any(|file| file.ends_with(".spv")));
}

#[test]
fn names_of_projects_are_checked() {
    let place = Place::new();
    let text = place.run(&["new", "my-app"]).fails(2);
    assert!(text.starts_with("error[MPL0006]: `my-app` cannot be the name of a project"), "{text}");
    place.write("file", "");
    let text = place.run(&["new", "file"]).fails(2);
    assert!(text.starts_with("error[MPL0006]: `file` already exists"), "{text}");
    let text = place.run(&["new", "file/app"]).fails(1);
    assert!(text.starts_with("error[MPL0004]: cannot make the project `file/app`"), "{text}");
    assert_eq!(place.files(""), ["file"]);
}

/// A module of tests, one of which fails in each way.
const TESTS: &str = r#"module app.main
exports { @main }
imports { std.io::{@println}, std.os::{@exit}, std.test::{@assert} }
digest ""

fn @main() -> i64 {
bb0:
  ret const.i64 0
}

fn @test_good() -> unit {
bb0:
  call_void @println { s="not shown" }
  ret
}

fn @test_panic() -> unit {
bb0:
  call_void @assert { cond=const.bool false, msg="wrong answer" }
  ret
}

fn @test_exit() -> unit {
bb0:
  call_void @exit { code=const.i32 3 }
  ret
}

fn @test_helper(%x: i64) -> unit {
bb0:
  ret
}

fn @testing() -> unit {
bb0:
  ret
}
"#;

#[test]
fn tests_run_in_processes_of_their_own() {
    let place = Place::new();
    place.write("Magpie.toml", "[package]\nname = 'app'\n");
    place.write("src/main.mp", TESTS);
    let ended = place.run(&["test", "-j", "2"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""), "{}", ended.stdout);
    assert_eq!(
        ended.stdout,
        "test app.main.@test_good ... ok\n\
         test app.main.@test_panic ... FAILED\n    panic: wrong answer\n    exit status: 101\n\
         test app.main.@test_exit ... FAILED\n    exit status: 3\n\
         \nFAILED: 1 passed, 2 failed, 0 left out\n"
    );
    let text = place.run(&["test", "--filter", "goo"]).succeeds();
    assert_eq!(text, "test app.main.@test_good ... ok\n\nok: 1 passed, 0 failed, 2 left out\n");
    let text = place.run(&["test", "--filter", "none"]).succeeds();
    assert_eq!(text, "\nok: 0 passed, 0 failed, 3 left out\n");
    let ended = place.run(&["test", "--output", "json"]);
    assert_eq!(ended.code, 1);
    let report = ended.json();
    assert_eq!((&report["tests"]["failed"], &report["success"]), (&2.into(), &false.into()));
    assert_eq!(report["tests"]["results"][0]["name"], "app.main.@test_good");
}

#[test]
fn test_modules_must_compile() {
    let place = Place::new();
    place.write("Magpie.toml", "[package]\nname = 'app'\n");
    place.write("src/main.mp", TESTS);
    place.write("tests/b.mp", "module app.b");
    let text = place.run(&["test"]).fails(1);
    assert!(text.starts_with("tests/b.mp:1:"), "{text}");
}

/// Whether the kernel ran shows in the element it writes.
const DEVICE_TEST: &str = r#"module app.main
exports { }
imports { std.test::{@assert_eq, @fail} }
digest ""

gpu fn @one(%data: gpu.TBuffer<i64>) -> unit target(spv) workgroup(1, 1, 1) {
bb0:
  gpu.buffer_store<i64> { buf=%data, idx=const.u32 0, v=const.i64 1 }
  ret
}

fn @test_device() -> unit {
bb0:
  %dev_r: TResult<gpu.TDevice, gpu.TError> = gpu.host.@device_default { }
  %dev: gpu.TDevice = try %dev_r bb1
  %zero: Array<i64> = arr.new<i64> { v0=const.i64 0 }
  %data_r: TResult<gpu.TBuffer<i64>, gpu.TError> = gpu.host.@buffer_from_array<i64> { dev=%dev, src=%zero, usage_flags=const.u32 0 }
  %data: gpu.TBuffer<i64> = try %data_r bb1
  %launched_r: TResult<unit, gpu.TError> = gpu.launch { device=%dev, kernel=@one, grid=[const.u32 1, const.u32 1, const.u32 1], block=[const.u32 1, const.u32 1, const.u32 1], args=[%data] }
  %launched: unit = try %launched_r bb1
  %result_r: TResult<Array<i64>, gpu.TError> = gpu.host.@buffer_to_array<i64> { buf=%data }
  %result: Array<i64> = try %result_r bb1
  %x: i64 = arr.get { arr=%result, idx=const.u64 0 }
  call_void @assert_eq { lhs=%x, rhs=const.i64 EXPECTED, msg="element" }
  ret
bb1:
  %error: gpu.TError = phi gpu.TError { [bb0: %dev_r.err], [bb0: %data_r.err], [bb0: %launched_r.err], [bb0: %result_r.err] }
  call_void @fail { msg="no device" }
  ret
}
"#;

#[test]
fn test_profiles_choose_the_device() {
    let place = Place::new();
    let test = |manifest: &str, expected: &str, flags: &[&str]| {
        place.write("Magpie.toml", manifest);
        place.write("src/main.mp", DEVICE_TEST.replace("EXPECTED", expected));
        let args = [&["test"], flags].concat();
        let mut command = place.command(args);
        command.env("VK_DRIVER_FILES", "/nothing").env("VK_ICD_FILENAMES", "/nothing");
        command.output().unwrap().status.code()
    };
    assert_eq!(test("", "1", &[]), Some(1), "there is no device");
    assert_eq!(test("", "1", &["--gpu-fallback", "cpu"]), Some(0));
    assert_eq!(test("", "1", &["--device", "interp"]), Some(0));
    assert_eq!(test("[gpu.profiles.test]\nfallback = 'cpu'\n", "1", &[]), Some(0));
    assert_eq!(test("[gpu.profiles.dev]\nfallback = 'cpu'\n", "1", &[]), Some(1));
    // The mock device takes launches and does nothing; it wins over the fallback.
    let mock = "[gpu]\nfallback = 'cpu'\n[gpu.profiles.test]\nmock_in_tests = true\n";
    assert_eq!(test(mock, "0", &[]), Some(0));
}

#[test]
fn formatting_changes_what_is_not_canonical() {
    let place = Place::new();
    let canonical = {
        place.run(&["new", "app"]).succeeds();
        place.read("app/src/scale.mp")
    };
    place.write("app/src/scale.mp", canonical.replace("  %", "       %"));
    let ended = place.run_in("app", &["fmt", "--check"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, "src/scale.mp would change\n"));
    assert_ne!(place.read("app/src/scale.mp"), canonical);
    assert_eq!(place.run_in("app", &["fmt"]).succeeds(), "");
    assert_eq!(place.read("app/src/scale.mp"), canonical);
    assert_eq!(place.run_in("app", &["fmt", "--fix-meta"]).succeeds(), "");
    let completed = place.read("app/src/scale.mp");
    assert!(completed.contains(" meta {") && !canonical.contains(" meta {"), "{completed}");
    assert_eq!(place.run_in("app", &["fmt", "--check", "--fix-meta"]).code, 0);
    place.run_in("app", &["check"]).succeeds();
    let text = place.run(&["fmt", "none.mp"]).fails(1);
    assert!(text.starts_with("error[MPP0001]: cannot read `none.mp`"), "{text}");
}

#[test]
fn modules_are_found_across_packages() {
    let place = Place::new();
    place.write(
        "app/Magpie.toml",
        "[package]\nname = 'app'\n[dependencies]\nutil = { path = '../util' }\n",
    );
    let main = "module app.main\nexports { @main }\nimports { util.sums::{@sum} }\ndigest \"\"\n\
                fn @main() -> i64 {\nbb0:\n  %x: i64 = call @sum { a=const.i64 40, b=const.i64 2 }\n  ret %x\n}\n";
    place.write("app/src/main.mp", main);
    let sums = "module util.sums\nexports { @sum }\nimports { }\ndigest \"\"\n\
                fn @sum(%a: i64, %b: i64) -> i64 {\nbb0:\n  %x: i64 = i.add { lhs=%a, rhs=%b }\n  ret %x\n}\n";
    place.write("util/src/sums.mp", sums);
    assert_eq!(place.run_in("app", &["run"]).code, 42);
    std::fs::remove_file(place.path("util/src/sums.mp")).unwrap();
    let text = place.run_in("app", &["run"]).fails(1);
    assert!(text.starts_with("src/main.mp:3:11: error[MPS0002]"), "{text}");
}
