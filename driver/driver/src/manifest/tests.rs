use super::*;
use magpie_diag::{SourceMap, render};

fn read(text: &str) -> (Manifest, Vec<Diagnostic>, SourceMap) {
    let mut sources = SourceMap::new();
    let file = sources.add("Magpie.toml", text);
    let (manifest, findings) = Manifest::parse(text, file);
    (manifest, findings, sources)
}

/// First line and help of the one finding.
fn finding(text: &str) -> String {
    let (_, findings, sources) = read(text);
    assert_eq!(findings.len(), 1, "{text}: {findings:#?}");
    let text = render(&findings[0], &sources, false);
    let head = text.lines().next().unwrap_or_default();
    let help = text.lines().find_map(|line| line.strip_prefix("help: ")).unwrap_or_default();
    format!("{head} | {help}")
}

#[test]
fn everything_is_read() {
    let (manifest, findings, _) = read(
        r#"
[package]
name = "vec"
version = "0.1.0"
edition = "2026"

[build]
entry = "src/app.mp"
profile_default = "release"
max_mono_instances = 77

[dependencies]
std = { version = "^0.1" }
util = { path = "../util" }

[gpu]
backend = "ptx"
fallback = "cpu"
device_index = 1
mock_in_tests = false

[gpu.profiles.release]
fallback = "none"
device_index = -1

[gpu.profiles.test]
mock_in_tests = true

[gpu.tools]
llc = "/opt/llvm/bin/llc"
lld = "/opt/llvm/bin/ld.lld"

[gpu.ptx]
shared_opt_in = true
codegen = "direct"

[mlx]
enabled = true

[lint]
MPL2011 = "allow"
MPG1103 = "deny"
"#,
    );
    assert!(findings.is_empty(), "{findings:#?}");
    assert_eq!(manifest.package.as_deref(), Some("vec"));
    assert_eq!(manifest.entry, Some("src/app.mp".into()));
    assert_eq!(manifest.profile_default.as_deref(), Some("release"));
    assert_eq!(manifest.max_mono_instances, 77);
    let [util] = &manifest.dependencies[..] else { panic!("{:?}", manifest.dependencies) };
    assert_eq!((util.name.as_str(), util.path.to_str()), ("util", Some("../util")));
    assert_eq!(manifest.tools.llc, Some("/opt/llvm/bin/llc".into()));
    assert_eq!(manifest.ptx, PtxKeys { shared_opt_in: true, codegen: PtxCodegen::Direct });
    assert!(manifest.mlx_enabled);
    let lints = [(Code::MPG_CORE_1103, LintLevel::Deny), (Code::MPL2011, LintLevel::Allow)];
    assert_eq!(manifest.lints, lints);

    let dev = manifest.gpu_for("dev");
    assert_eq!(dev, manifest.gpu);
    assert_eq!(dev.backend, Some(GpuBackend::Ptx));
    assert_eq!((dev.fallback, dev.device_index), (Some(Fallback::Cpu), Some(Some(1))));
    let release = manifest.gpu_for("release");
    assert_eq!((release.fallback, release.device_index), (Some(Fallback::None), Some(None)));
    assert_eq!(release.backend, Some(GpuBackend::Ptx));
    assert_eq!(manifest.gpu_for("test").mock_in_tests, Some(true));
}

#[test]
fn an_empty_manifest_has_every_default() {
    for text in ["", "\n# nothing\n", "[package]\n[gpu]\n"] {
        let (manifest, findings, _) = read(text);
        assert_eq!((manifest, findings.len()), (Manifest::default(), 0));
    }
}

#[test]
fn unknown_keys_warn_or_refuse() {
    for (text, expected) in [
        (
            "[build]\nentri = 'a'\n",
            "Magpie.toml:2:1: warning[MPL0003]: unknown key `build.entri` | did you mean `entry`?",
        ),
        (
            "[pakage]\n",
            "Magpie.toml:1:2: warning[MPL0003]: unknown key `pakage` | did you mean `package`?",
        ),
        (
            "[package]\nauthors = []\n",
            "Magpie.toml:2:1: warning[MPL0003]: unknown key `package.authors` | known here: name, version, edition",
        ),
        (
            "[gpu]\nfalback = 'cpu'\n",
            "Magpie.toml:2:1: error[MPL0002]: unknown key `gpu.falback` | did you mean `fallback`?",
        ),
        (
            "[gpu.profiles.dev]\nmock = true\n",
            "Magpie.toml:2:1: error[MPL0002]: unknown key `gpu.profiles.dev.mock` | known here: backend, fallback, device_index, mock_in_tests",
        ),
        (
            "[gpu.tools]\nllcc = 'x'\n",
            "Magpie.toml:2:1: error[MPL0002]: unknown key `gpu.tools.llcc` | did you mean `llc`?",
        ),
        (
            "[mlx]\nenable = true\n",
            "Magpie.toml:2:1: error[MPL0002]: unknown key `mlx.enable` | did you mean `enabled`?",
        ),
        (
            "[lint]\nMPL2111 = 'allow'\n",
            "Magpie.toml:2:1: warning[MPL0003]: unknown key `lint.MPL2111` | did you mean `MPL2011`?",
        ),
    ] {
        assert_eq!(finding(text), expected);
    }
}

#[test]
fn wrong_types_and_values_name_the_key() {
    for (text, expected) in [
        (
            "gpu = 3\n",
            "Magpie.toml:1:7: error[MPL0002]: `gpu` must be a table, not an integer | write its keys below a line `[gpu]`",
        ),
        (
            "[gpu]\nfallback = true\n",
            "Magpie.toml:2:12: error[MPL0002]: `gpu.fallback` must be a string, not a boolean | it is one of \"none\", \"cpu\"",
        ),
        (
            "[gpu]\nfallback = 'gpu'\n",
            "Magpie.toml:2:12: error[MPL0002]: `gpu.fallback` cannot be \"gpu\" | did you mean \"cpu\"?",
        ),
        (
            "[gpu]\nbackend = 'vulkan'\n",
            "Magpie.toml:2:11: error[MPL0002]: `gpu.backend` cannot be \"vulkan\" | it is one of \"spv\", \"msl\", \"ptx\", \"hip\", \"wgsl\"",
        ),
        (
            "[gpu]\ndevice_index = -2\n",
            "Magpie.toml:2:16: error[MPL0002]: `gpu.device_index` is -2, which is out of range | it must lie between -1 and 4294967295",
        ),
        (
            "[build]\nmax_mono_instances = 99999999999999999999\n",
            "Magpie.toml:2:22: error[MPL0002]: `build.max_mono_instances` is 99999999999999999999, which is out of range | it must lie between 1 and 4294967295",
        ),
        (
            "[gpu.profiles.dev]\nmock_in_tests = 'yes'\n",
            "Magpie.toml:2:17: error[MPL0002]: `gpu.profiles.dev.mock_in_tests` must be true or false, not a string | write `true` or `false` without quotes",
        ),
        (
            "[build]\nentry = ['a']\n",
            "Magpie.toml:2:9: error[MPL0002]: `build.entry` must be a string, not an array | write a path in quotes",
        ),
        (
            "[package]\nedition = '2024'\n",
            "Magpie.toml:2:11: error[MPL0002]: `package.edition` cannot be \"2024\" | did you mean \"2026\"?",
        ),
        (
            "[package]\nname = 'my-app'\n",
            "Magpie.toml:2:8: error[MPL0002]: `package.name` cannot be \"my-app\" | a package name starts with a letter or `_` and has letters, digits and `_`; `std`, `gpu` and `mlx` are taken",
        ),
        (
            "[dependencies]\nx = { git = 'u' }\n",
            "Magpie.toml:2:1: error[MPL0002]: dependency `x` has no `path` | this release finds packages in folders only: x = { path = \"../x\" }",
        ),
        (
            "[dependencies]\nx = '1'\n",
            "Magpie.toml:2:1: error[MPL0002]: dependency `x` has no `path` | this release finds packages in folders only: x = { path = \"../x\" }",
        ),
    ] {
        assert_eq!(finding(text), expected);
    }
}

#[test]
fn broken_text_is_refused_at_its_place() {
    let text = finding("[gpu\nfallback = 'cpu'\n");
    assert!(text.starts_with("Magpie.toml:1:5: error[MPL0002]: the manifest is not valid TOML: "));
    let (_, findings, _) = read("a = 1\na = 2\n[x]\n=\n");
    assert!(findings.len() >= 2, "{findings:#?}");
    for text in ["\0", "a = \"", "[[[[", &"[".repeat(10_000), &"a.".repeat(10_000)] {
        assert!(!read(text).1.is_empty(), "{text}");
    }
    read(&format!("a = {}", "[".repeat(100_000)));
}
