//! The tables of a manifest, one function each.

use super::read::{Entry, Reader, Unknown};
use super::{Dependency, GpuKeys, LintLevel, Manifest, PtxCodegen, PtxKeys, Tools};
use crate::options::Fallback;
use magpie_diag::{Code, Diagnostic, FileId, closest};
use magpie_types::kernel::GpuBackend;
use std::path::PathBuf;
use toml::de::DeTable;

const PATH_HELP: &str = "write a path in quotes";

pub(super) fn manifest(text: &str, file: FileId) -> (Manifest, Vec<Diagnostic>) {
    let mut reader = Reader::new(file);
    let mut manifest = Manifest::default();
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = reader.span(error.span().unwrap_or(0..0));
        let message = format!("the manifest is not valid TOML: {}", error.message());
        reader.refuse(span, message, "https://toml.io describes the format".to_string());
    }
    // What follows from broken text would only repeat it.
    if reader.findings.is_empty() {
        root(&mut reader, document.get_ref(), &mut manifest);
    }
    (manifest, reader.findings)
}

fn root(r: &mut Reader, document: &DeTable<'_>, manifest: &mut Manifest) {
    const KNOWN: &[&str] = &["package", "build", "dependencies", "gpu", "mlx", "lint"];
    for entry in r.entries("", document) {
        if !KNOWN.contains(&entry.key) {
            r.unknown(&entry, KNOWN, Unknown::Warn);
            continue;
        }
        let Some(table) = r.table(&entry) else { continue };
        let entries = r.entries(&entry.path, table);
        match entry.key {
            "package" => package(r, entries, manifest),
            "build" => build(r, entries, manifest),
            "dependencies" => dependencies(r, entries, manifest),
            "gpu" => gpu(r, entries, manifest),
            "mlx" => mlx(r, entries, manifest),
            _ => lint(r, entries, manifest),
        }
    }
}

fn package(r: &mut Reader, entries: Vec<Entry<'_>>, manifest: &mut Manifest) {
    const KNOWN: &[&str] = &["name", "version", "edition"];
    for entry in entries {
        match entry.key {
            "name" => manifest.package = package_name(r, &entry),
            "version" => {
                r.string(&entry, "write a version such as \"0.1.0\"");
            }
            "edition" => {
                r.word(&entry, &[("2026", ())]);
            }
            _ => r.unknown(&entry, KNOWN, Unknown::Warn),
        }
    }
}

fn package_name(r: &mut Reader, entry: &Entry<'_>) -> Option<String> {
    let name = r.string(entry, "write the name in quotes")?;
    if !is_package_name(name) {
        let message = format!("`{}` cannot be {name:?}", entry.path);
        let help = "a package name starts with a letter or `_` and has letters, digits and `_`; \
                    `std`, `gpu` and `mlx` are taken";
        r.refuse(entry.span, message, help.to_string());
        return None;
    }
    Some(name.to_string())
}

/// Whether a word may be the first of a module path.
pub(crate) fn is_package_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !matches!(name, "std" | "gpu" | "mlx")
}

fn build(r: &mut Reader, entries: Vec<Entry<'_>>, manifest: &mut Manifest) {
    const KNOWN: &[&str] = &["entry", "profile_default", "max_mono_instances"];
    for entry in entries {
        match entry.key {
            "entry" => manifest.entry = r.string(&entry, PATH_HELP).map(PathBuf::from),
            "profile_default" => {
                let help = "write the name of a profile, such as \"dev\"";
                manifest.profile_default = r.string(&entry, help).map(str::to_string);
            }
            "max_mono_instances" => {
                if let Some(n) = r.integer(&entry, 1, u32::MAX.into()) {
                    manifest.max_mono_instances = n as u32;
                }
            }
            _ => r.unknown(&entry, KNOWN, Unknown::Warn),
        }
    }
}

fn dependencies(r: &mut Reader, entries: Vec<Entry<'_>>, manifest: &mut Manifest) {
    const KNOWN: &[&str] = &["path", "version", "git", "rev", "branch", "tag", "features"];
    for dependency in entries {
        let name = dependency.key;
        let mut path = None;
        if !Reader::is_string(&dependency) {
            let Some(table) = r.table(&dependency) else { continue };
            for entry in r.entries(&dependency.path, table) {
                match entry.key {
                    "path" => path = r.string(&entry, PATH_HELP).map(PathBuf::from),
                    "version" => {
                        r.string(&entry, "write a version such as \"^0.1\"");
                    }
                    word if KNOWN.contains(&word) => {}
                    _ => r.unknown(&entry, &KNOWN[..2], Unknown::Warn),
                }
            }
        }
        // The standard library comes with the compiler, whatever its version.
        if name == "std" {
            continue;
        }
        match path {
            Some(_) if !is_package_name(name) => {
                let message = format!("`{name}` cannot be the name of a package");
                let help = "modules of the package could not be named: use letters, digits and `_`";
                r.refuse(dependency.key_span, message, help.to_string());
            }
            Some(path) => manifest.dependencies.push(Dependency {
                name: name.to_string(),
                path,
                span: dependency.key_span,
            }),
            None => {
                let message = format!("dependency `{name}` has no `path`");
                let help = format!(
                    "this release finds packages in folders only: {name} = {{ path = \"../{name}\" }}"
                );
                r.refuse(dependency.key_span, message, help);
            }
        }
    }
}

fn gpu(r: &mut Reader, entries: Vec<Entry<'_>>, manifest: &mut Manifest) {
    const KNOWN: &[&str] =
        &["backend", "fallback", "device_index", "mock_in_tests", "profiles", "tools", "ptx"];
    for entry in entries {
        match entry.key {
            "profiles" => {
                let Some(table) = r.table(&entry) else { continue };
                for profile in r.entries(&entry.path, table) {
                    let Some(table) = r.table(&profile) else { continue };
                    let mut keys = GpuKeys::default();
                    for entry in r.entries(&profile.path, table) {
                        if !gpu_key(r, &entry, &mut keys) {
                            r.unknown(&entry, &KNOWN[..4], Unknown::Refuse);
                        }
                    }
                    manifest.gpu_profiles.push((profile.key.to_string(), keys));
                }
            }
            "tools" => {
                let Some(table) = r.table(&entry) else { continue };
                manifest.tools = tools(r, &entry, table);
            }
            "ptx" => {
                let Some(table) = r.table(&entry) else { continue };
                manifest.ptx = ptx(r, &entry, table);
            }
            _ => {
                if !gpu_key(r, &entry, &mut manifest.gpu) {
                    r.unknown(&entry, KNOWN, Unknown::Refuse);
                }
            }
        }
    }
}

/// Reads a key that `[gpu]` and its profiles share; false when it is none.
fn gpu_key(r: &mut Reader, entry: &Entry<'_>, keys: &mut GpuKeys) -> bool {
    match entry.key {
        "backend" => {
            let words = GpuBackend::TARGETS.map(|backend| (backend.name(), backend));
            keys.backend = r.word(entry, &words);
        }
        "fallback" => keys.fallback = r.word(entry, &FALLBACKS),
        "device_index" => {
            let index = r.integer(entry, -1, u32::MAX.into());
            keys.device_index = index.map(|n| u32::try_from(n).ok());
        }
        "mock_in_tests" => keys.mock_in_tests = r.boolean(entry),
        _ => return false,
    }
    true
}

/// The words of `fallback`.
const FALLBACKS: [(&str, Fallback); 2] = [("none", Fallback::None), ("cpu", Fallback::Cpu)];

fn tools(r: &mut Reader, at: &Entry<'_>, table: &DeTable<'_>) -> Tools {
    let mut tools = Tools::default();
    for entry in r.entries(&at.path, table) {
        match entry.key {
            "llc" => tools.llc = r.string(&entry, PATH_HELP).map(PathBuf::from),
            "lld" => tools.lld = r.string(&entry, PATH_HELP).map(PathBuf::from),
            _ => r.unknown(&entry, &["llc", "lld"], Unknown::Refuse),
        }
    }
    tools
}

fn ptx(r: &mut Reader, at: &Entry<'_>, table: &DeTable<'_>) -> PtxKeys {
    let mut keys = PtxKeys::default();
    for entry in r.entries(&at.path, table) {
        match entry.key {
            "shared_opt_in" => keys.shared_opt_in = r.boolean(&entry).unwrap_or_default(),
            "codegen" => {
                let words = [
                    ("auto", PtxCodegen::Auto),
                    ("llvm", PtxCodegen::Llvm),
                    ("direct", PtxCodegen::Direct),
                ];
                keys.codegen = r.word(&entry, &words).unwrap_or_default();
            }
            _ => r.unknown(&entry, &["shared_opt_in", "codegen"], Unknown::Refuse),
        }
    }
    keys
}

fn mlx(r: &mut Reader, entries: Vec<Entry<'_>>, manifest: &mut Manifest) {
    for entry in entries {
        match entry.key {
            "enabled" => manifest.mlx_enabled = r.boolean(&entry).unwrap_or_default(),
            _ => r.unknown(&entry, &["enabled"], Unknown::Refuse),
        }
    }
}

fn lint(r: &mut Reader, entries: Vec<Entry<'_>>, manifest: &mut Manifest) {
    let levels =
        [("allow", LintLevel::Allow), ("warn", LintLevel::Warn), ("deny", LintLevel::Deny)];
    for entry in entries {
        let Some(code) = Code::parse(entry.key) else {
            let known: Vec<&str> = Code::all().map(Code::as_str).collect();
            let near: Vec<&str> = closest(entry.key, known).into_iter().collect();
            r.unknown(&entry, &near, Unknown::Warn);
            continue;
        };
        if let Some(level) = r.word(&entry, &levels) {
            manifest.lints.push((code, level));
        }
    }
}
