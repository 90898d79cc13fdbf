//! The first comments of a test file.

use crate::pattern::{Check, CheckKind, Pattern};
use crate::toolchain::Device;

/// The line that separates the text before a pass from the text after it.
pub(crate) const AFTER: &str = "; after:";

/// What is to happen to a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Run,
    Error,
    Check,
    Pass(Vec<String>),
    Emit(String),
    Support,
}

/// Everything the first comments of a file say.
#[derive(Debug, Default)]
pub(crate) struct Directives {
    /// `None` when the comments are prose.
    pub(crate) kind: Option<Kind>,
    pub(crate) wait: Option<String>,
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) devices: Option<Vec<Device>>,
    pub(crate) checks: Vec<Check>,
}

/// Reads the comment lines before the first other line of a file.
///
/// Without a `test:` among them they are prose. With one, every line that begins with a word and a
/// colon must be a directive that its kind of test knows.
pub(crate) fn parse(text: &str) -> Result<Directives, String> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let is_comment = line.starts_with(';') || line.starts_with("//");
        if line == AFTER || !(line.is_empty() || is_comment) {
            break;
        }
        if let Some((key, value)) = key_value(line) {
            lines.push((index + 1, key, value));
        }
    }
    let mut directives = Directives::default();
    for &(line, key, value) in &lines {
        if key == "test" {
            if directives.kind.is_some() {
                return Err(format!("line {line}: a second `test:`"));
            }
            directives.kind = Some(parse_kind(value).map_err(|e| format!("line {line}: {e}"))?);
        }
    }
    let Some(kind) = directives.kind.clone() else {
        return Ok(directives);
    };
    for (line, key, value) in lines {
        directives.set(&kind, line, key, value).map_err(|e| format!("line {line}: {e}"))?;
    }
    Ok(directives)
}

/// `; key: value` or `// key: value`, where the key is one lower-case word.
fn key_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.trim_start_matches([';', '/']).trim_start().split_once(':')?;
    let is_key = !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase());
    is_key.then_some((key, value.trim()))
}

fn parse_kind(value: &str) -> Result<Kind, String> {
    let (word, rest) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
    let rest = rest.trim();
    let kind = match word {
        "pass" => {
            let names: Vec<String> = rest.split(',').map(|name| name.trim().to_owned()).collect();
            if names.iter().any(|name| name.is_empty() || name.contains(char::is_whitespace)) {
                return Err("`test: pass` needs the names of passes with commas between".into());
            }
            return Ok(Kind::Pass(names));
        }
        "emit" => {
            if rest.is_empty() || rest.contains(char::is_whitespace) {
                return Err("`test: emit` needs the name of one target".into());
            }
            return Ok(Kind::Emit(rest.to_owned()));
        }
        "run" => Kind::Run,
        "error" => Kind::Error,
        "check" => Kind::Check,
        "support" => Kind::Support,
        _ => {
            return Err(format!(
                "unknown kind of test `{word}`; known are run, error, check, pass, emit and support"
            ));
        }
    };
    if rest.is_empty() { Ok(kind) } else { Err(format!("`{rest}` after `test: {word}`")) }
}

impl Directives {
    fn set(&mut self, kind: &Kind, line: usize, key: &str, value: &str) -> Result<(), String> {
        match (kind, key) {
            (_, "test") => {}
            (Kind::Support, _) => return Err(format!("a support file has no `{key}:`")),
            (_, "wait") if value.is_empty() => return Err("`wait:` needs a reason".into()),
            (_, "wait") => self.wait = Some(value.to_owned()),
            (Kind::Run, "exit") => {
                let code = value.parse::<u8>();
                let code = code.map_err(|_| format!("`{value}` is no exit code from 0 to 255"))?;
                self.exit = Some(code.into());
            }
            (Kind::Run, "stdout") => {
                let stdout = self.stdout.get_or_insert_default();
                stdout.push_str(value);
                stdout.push('\n');
            }
            (Kind::Run, "args") => {
                self.args.extend(value.split_whitespace().map(str::to_owned));
            }
            (Kind::Run, "devices") => self.devices = Some(parse_devices(value)?),
            (Kind::Emit(_), "check" | "next" | "not") => {
                let kind = match key {
                    "check" => CheckKind::Check,
                    "next" => CheckKind::Next,
                    _ => CheckKind::Not,
                };
                self.checks.push(Check { line, kind, pattern: Pattern::parse(value)? });
            }
            _ => return Err(format!("this kind of test has no `{key}:`")),
        }
        Ok(())
    }
}

fn parse_devices(value: &str) -> Result<Vec<Device>, String> {
    let mut devices = Vec::new();
    for name in value.split_whitespace() {
        let device = Device::parse(name).ok_or_else(|| {
            format!("unknown device `{name}`; known are interp, cpu, vulkan, webgpu, cuda and none")
        })?;
        if devices.contains(&device) {
            return Err(format!("device `{name}` twice"));
        }
        devices.push(device);
    }
    if devices.is_empty() { Err("`devices:` names none".into()) } else { Ok(devices) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_no_directive() {
        for text in [
            "; portable: two kernels\nmodule a",
            "; config: fallback = \"none\"\n; exit: 3",
            "module a\n; test: run\n",
            "",
        ] {
            let directives = parse(text).unwrap();
            assert!(directives.kind.is_none() && directives.exit.is_none(), "{text}");
        }
    }

    #[test]
    fn run_with_everything() {
        let text = "; What it shows: prose with a colon.\n;; test: run\n\n; exit: 7\n; stdout: a b\n; stdout:\n; args: -x 1\n; args: 2\n; devices: cpu none\n; wait: for it: all\nmodule a\n; exit: 9\n";
        let directives = parse(text).unwrap();
        assert_eq!(directives.kind, Some(Kind::Run));
        assert_eq!(directives.exit, Some(7));
        assert_eq!(directives.stdout.as_deref(), Some("a b\n\n"));
        assert_eq!(directives.args, ["-x", "1", "2"]);
        assert_eq!(directives.devices, Some(vec![Device::Cpu, Device::Absent]));
        assert_eq!(directives.wait.as_deref(), Some("for it: all"));
    }

    #[test]
    fn passes_and_targets() {
        let directives = parse("; test: pass simplify_cfg, dce\n; after:\n; exit: 1\n").unwrap();
        assert_eq!(directives.kind, Some(Kind::Pass(vec!["simplify_cfg".into(), "dce".into()])));
        let directives =
            parse("; test: emit spv\n; check: OpIAdd\n; not: OpISub\n; next: OpReturn\n").unwrap();
        assert_eq!(directives.kind, Some(Kind::Emit("spv".into())));
        let kinds: Vec<CheckKind> = directives.checks.iter().map(|check| check.kind).collect();
        assert_eq!(kinds, [CheckKind::Check, CheckKind::Not, CheckKind::Next]);
        assert_eq!(directives.checks[2].line, 4);
    }

    #[test]
    fn mistakes_are_refused_with_their_line() {
        for (text, message) in [
            ("; test: runn", "line 1: unknown kind"),
            ("; test: run fast", "line 1: `fast` after"),
            ("; test: pass", "line 1: `test: pass` needs"),
            ("; test: pass a,,b", "line 1: `test: pass` needs"),
            ("; test: emit", "line 1: `test: emit` needs"),
            ("; test: run\n; test: check", "line 2: a second"),
            ("; test: run\n; exti: 1", "line 2: this kind of test has no `exti:`"),
            ("; exit: 300\n; test: run", "line 1: `300` is no exit code"),
            ("; test: run\n; devices: gpu", "line 2: unknown device `gpu`"),
            ("; test: run\n; devices:", "line 2: `devices:` names none"),
            ("; test: run\n; devices: cpu cpu", "line 2: device `cpu` twice"),
            ("; test: check\n; stdout: x", "line 2: this kind"),
            ("; test: check\n; wait:", "line 2: `wait:` needs"),
            ("; test: support\n; wait: x", "line 2: a support file"),
            ("; test: emit spv\n; check:", "line 2: an empty pattern"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
