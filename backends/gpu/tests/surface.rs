//! Surface rules on `.mpir` files: every finding, at its line, and no other.
//!
//! A comment `;~ error CODE` (or `warning`, `info`) at the end of a line expects a finding there;
//! a line may have several. All kernels of a file are checked.

use magpie_diag::{Diagnostic, FileId, SourceMap};
use magpie_gpu::surface::{
    Collisions, RuleSet, check_barriers, check_bounds_guards, check_shared_races, check_surface,
    check_unproved_writes, check_write_collisions,
};
use magpie_mpir::{Module, Stage, parse_with_own_places, verify_module};
use std::path::Path;

fn expected(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (n, line) in text.lines().enumerate() {
        for marker in line.split(";~").skip(1) {
            out.push(format!("{}: {}", n + 1, marker.trim()));
        }
    }
    out.sort();
    out
}

/// Runs a check on every kernel of a file and compares.
fn run(path: &Path, check: &dyn Fn(&Module, magpie_mpir::FnId) -> Vec<Diagnostic>) {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let mut sources = SourceMap::new();
    let file: FileId = sources.add(path.display().to_string(), text.clone());
    let module = parse_with_own_places(&text, file).unwrap_or_else(|e| panic!("{path:?}: {e:#?}"));
    verify_module(&module, Stage::Surface).unwrap_or_else(|e| panic!("{path:?}: {e:#?}"));
    let mut found = Vec::new();
    for id in module.fn_ids().filter(|&id| module.func(id).is_kernel()) {
        for d in check(&module, id) {
            let at = sources.file(d.primary.file).expect("a place").line_col(d.primary.start);
            found.push(format!("{}: {} {}", at.line, d.severity.name(), d.code));
            assert!(!d.message.is_empty() && d.help.is_some(), "{d:?}");
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(found, expected(&text), "{}", path.display());
}

fn files(folder: &str) -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/surface").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder");
    let mut files: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn rules() {
    for path in files("rules") {
        run(&path, &|module, kernel| check_surface(module, kernel, RuleSet::MAGPIE));
    }
}

#[test]
fn barriers() {
    for path in files("barriers") {
        run(&path, &|module, kernel| check_barriers(module.func(kernel), &module.types));
    }
}

#[test]
fn shared_races() {
    for path in files("shared_races") {
        run(&path, &|module, kernel| check_shared_races(module.func(kernel), &module.types));
    }
}

#[test]
fn bounds_guards() {
    for path in files("bounds_guards") {
        run(&path, &|module, kernel| check_bounds_guards(module.func(kernel), &module.types));
    }
}

/// A set of rules finds nothing that it does not forbid.
#[test]
fn sets_of_rules_are_independent() {
    let text = "\
unsafe gpu fn @k(%s: Str, %d: f64) -> u32 target(msl) workgroup(2048, 1, 1) requires(nonsense) {
b:
  call fn=@f
  ret u32 1
}
device fn @f() {
b:
  call fn=@f
  ret
}
";
    let module = parse_with_own_places(text, FileId(0)).expect("well-formed text");
    let kernel = module.find_fn("k").or(module.find_fn("@k")).expect("the kernel");
    let codes = |rules| {
        let found = check_surface(&module, kernel, rules);
        found.iter().map(|d| d.code.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(codes(RuleSet::HOST_FEATURES), "MPG_CORE_1303 MPG_CORE_1104");
    assert_eq!(codes(RuleSet::RECURSION), "MPG_CORE_1103");
    assert_eq!(codes(RuleSet::UNDECLARED_CAPABILITIES), "MPG_CORE_1202 MPG_CORE_1200");
    assert_eq!(codes(RuleSet::MISSING_SCALARS), "MPG_CORE_1200");
    assert_eq!(codes(RuleSet::EXCESS), "MPG_CORE_1302");
    assert_eq!(codes(RuleSet::MAGPIE.without(RuleSet::MAGPIE)), "");
}

/// Devices for CUDA have more shared memory than kernels get without asking for it.
#[test]
fn large_shared_arrays_are_a_choice() {
    let text = "\
gpu fn @k() target(ptx) workgroup(64, 1, 1) {
b:
  %s: shared_array<20000, f32> = gpu.shared
  ret
}
";
    let module = parse_with_own_places(text, FileId(0)).expect("well-formed text");
    let kernel = module.find_fn("k").or(module.find_fn("@k")).expect("the kernel");
    let found = |rules| check_surface(&module, kernel, rules);
    assert_eq!(found(RuleSet::MAGPIE)[0].code.as_str(), "MPG_PTX_2001");
    assert_eq!(found(RuleSet::MAGPIE.without(RuleSet::LARGE_SHARED)), []);
}

#[test]
fn write_races() {
    for path in files("write_races") {
        run(&path, &|module, kernel| {
            let (f, types) = (module.func(kernel), &module.types);
            [check_write_collisions(f, types, Collisions::Any), check_unproved_writes(f, types)]
                .concat()
        });
    }
}
