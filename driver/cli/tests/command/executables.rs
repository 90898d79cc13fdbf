//! Executables: what `magpie build` makes without `--emit`.

use crate::support::{Ended, Place, program};
use std::process::Command;

/// Calls an executable of a folder, in a folder below it.
fn call(place: &Place, name: &str, device: &str, args: &[&str]) -> Ended {
    std::fs::create_dir_all(place.path("elsewhere")).unwrap();
    let mut command = Command::new(place.path(name));
    command.args(args).env("MAGPIE_DEVICE", device).env("MAGPIE_CACHE_DIR", place.path("cache"));
    Ended::from(command.current_dir(place.path("elsewhere")).output().unwrap())
}

#[test]
fn an_executable_needs_neither_sources_nor_the_command() {
    let place = Place::new();
    place.write("scale.mp", std::fs::read(program("scale.mp")).unwrap());
    let written = place.run(&["build", "scale.mp"]).succeeds();
    let name = written.lines().last().unwrap();
    let below = format!("target/{}/dev/scale", magpie_driver::TRIPLE);
    assert_eq!(name, format!("{below}{}", std::env::consts::EXE_SUFFIX));
    std::fs::remove_file(place.path("scale.mp")).unwrap();
    for device in ["cpu", "interp"] {
        assert_eq!(call(&place, name, device, &[]).succeeds(), "4.5\n", "{device}");
    }
    // It passes flags on, and its own trouble is told as that of the command.
    assert_eq!(call(&place, name, "cpu", &["--version", "--", "-x"]).succeeds(), "4.5\n");
    let text = call(&place, name, "abacus", &[]).fails(2);
    assert!(text.starts_with("error[MPL0006]: MAGPIE_DEVICE: "), "{text}");
    // A byte of the program is another one.
    let mut bytes = std::fs::read(place.path(name)).unwrap();
    let place_of_change = bytes.len() - 200;
    bytes[place_of_change] ^= 1;
    place.write(name, bytes);
    let text = call(&place, name, "cpu", &[]).fails(1);
    assert!(text.starts_with("error[MPL0004]: this file is damaged\n"), "{text}");
}

#[test]
fn executables_of_miri_take_arguments_and_name_the_line_where_they_stop() {
    let place = Place::new();
    place.write(
        "add.mi",
        "use system.os\n\n\
         gpu let a = [1.0, 2.0]\n\
         gpu var c = [0.0, 0.0]\n\
         gpu forall i in 0..2\n    c[i] = a[i] + 1.5\n\
         let r = c\n\
         let at = 5 if args().length() > 1 else args().length()\n\
         println(f\"é {r[at]}\")\n",
    );
    // The profile of the guide's `--release`, a name of one's own, and fast compilation.
    for (level, name) in [("0", "first"), ("3", "second")] {
        let args = ["build", "--release", "--opt-level", level, "-o", name, "add.mi"];
        let written = place.run(&args).succeeds();
        assert!(written.ends_with(&format!("{name}\n")), "{written}");
        assert_eq!(call(&place, name, "cpu", &["one"]).succeeds(), "é 3.5\n");
        let text = call(&place, name, "cpu", &["one", "two"]).fails(101);
        assert!(text.contains("add.mi:9:"), "{text}");
        std::fs::remove_file(place.path(name)).unwrap();
    }
}

#[test]
fn what_no_executable_can_be_made_of_is_refused() {
    let place = Place::new();
    place.write("scale.mp", std::fs::read(program("scale.mp")).unwrap());
    let text = place.run(&["build", "--emit", "spv", "-o", "x", "scale.mp"]).fails(2);
    assert!(text.starts_with("error[MPL0006]: `--out` names an executable"), "{text}");
    let text = place.run(&["build", "--out", "missing/x", "scale.mp"]).fails(1);
    assert!(text.starts_with("error[MPL0004]: cannot write `missing/x`"), "{text}");
    let text = place.run(&["build", "--opt-level", "4", "scale.mp"]).fails(2);
    assert!(text.contains("opt-level"), "{text}");
    place.write(
        "library.mp",
        "module a.library\nexports { @f }\nimports { }\ndigest \"\"\n\n\
         fn @f() -> i64 {\nbb0:\n  ret const.i64 1\n}\n",
    );
    let text = place.run(&["build", "library.mp"]).fails(1);
    assert!(text.contains("error[MPL0005]: the program has no `@main`"), "{text}");
    assert!(!place.files("").iter().any(|file| file.contains("missing")));
}
