//! What a test expects: `.expected` files, `.error` files and `;~` comments.

use std::collections::BTreeSet;
use std::fmt;

use magpie_diag::{Code, Severity};

use crate::toolchain::Finding;

/// The end of a run, from `NAME.expected`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpectedRun {
    /// The exit code.
    pub exit: i32,
    /// All of standard output.
    pub stdout: Vec<u8>,
}

impl ExpectedRun {
    /// Reads `exit: N`, a line `---`, then standard output to the last byte.
    pub fn parse(bytes: &[u8]) -> Result<ExpectedRun, String> {
        let (first, rest) = split_line(bytes);
        let exit = std::str::from_utf8(first).ok().and_then(|line| line.strip_prefix("exit:"));
        let exit = exit.and_then(|code| code.trim().parse().ok());
        let exit = exit.ok_or("line 1 must be `exit: N`")?;
        let (second, stdout) = split_line(rest);
        if second != b"---" {
            return Err("line 2 must be `---`".into());
        }
        Ok(ExpectedRun { exit, stdout: stdout.to_vec() })
    }
}

fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|&b| b == b'\n');
    let (line, rest) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 1..]));
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

/// A diagnostic that must be reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpectedFinding {
    /// How bad it is.
    pub severity: Severity,
    /// Its code.
    pub code: Code,
    /// Its line, from 1.
    pub line: u32,
}

impl fmt::Display for ExpectedFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} at line {}", self.severity.name(), self.code, self.line)
    }
}

/// Reads `NAME.error`: one `SEVERITY CODE LINE` a line.
pub(crate) fn parse_error_file(text: &str) -> Result<Vec<ExpectedFinding>, String> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let finding = match words[..] {
            [severity, code, line] => {
                let line = line.parse().map_err(|_| format!("`{line}` is no line number"));
                line.and_then(|line| finding(severity, code, line))
            }
            _ => Err("must be `SEVERITY CODE LINE`".into()),
        };
        findings.push(finding.map_err(|error| format!("line {}: {error}", index + 1))?);
    }
    Ok(findings)
}

/// Reads the comments `;~ SEVERITY CODE` of a source; each `^` after `;~` means a line further up.
pub(crate) fn parse_marks(source: &str) -> Result<Vec<ExpectedFinding>, String> {
    let mut findings = Vec::new();
    for (index, line) in source.lines().enumerate() {
        for mark in line.split(";~").skip(1) {
            let text = mark.trim_start_matches('^');
            let up = mark.len() - text.len();
            let words: Vec<&str> = text.split_whitespace().collect();
            let finding = match (words.as_slice(), (index + 1).checked_sub(up)) {
                (&[severity, code], Some(line)) if line > 0 => finding(severity, code, line as u32),
                (_, Some(line)) if line > 0 => Err("must be `;~ SEVERITY CODE`".into()),
                _ => Err("means a line before the first".into()),
            };
            findings.push(finding.map_err(|error| format!("line {}: {error}", index + 1))?);
        }
    }
    Ok(findings)
}

fn finding(severity: &str, code: &str, line: u32) -> Result<ExpectedFinding, String> {
    let severity = [Severity::Error, Severity::Warning, Severity::Info, Severity::Hint]
        .into_iter()
        .find(|known| known.name() == severity)
        .ok_or_else(|| format!("unknown severity `{severity}`"))?;
    let code = Code::all().find(|known| known.as_str() == code);
    let code = code.ok_or("unknown code")?;
    Ok(ExpectedFinding { severity, code, line })
}

/// Compares reported diagnostics with the expected ones.
///
/// Every expected one must be reported at its line. Other errors and warnings may stand only at
/// expected lines, and an error only when one is expected at all. Infos and hints are free.
pub(crate) fn compare_findings(
    expected: &[ExpectedFinding],
    reported: &[Finding],
) -> Result<(), String> {
    let mut used = vec![false; reported.len()];
    let mut problems = Vec::new();
    for want in expected {
        let matching = reported.iter().zip(&used).position(|(got, used)| {
            !used
                && got.code == want.code
                && got.severity == want.severity
                && got.line == Some(want.line)
        });
        match matching {
            Some(index) => used[index] = true,
            None => problems.push(format!("missing:    {want}")),
        }
    }
    let lines: BTreeSet<u32> = expected.iter().map(|want| want.line).collect();
    let may_fail = expected.iter().any(|want| want.severity == Severity::Error);
    for (got, used) in reported.iter().zip(used) {
        let counts = matches!(got.severity, Severity::Error | Severity::Warning);
        let allowed = got.line.is_some_and(|line| lines.contains(&line))
            && (may_fail || got.severity != Severity::Error);
        if !used && counts && !allowed {
            problems.push(format!("unexpected: {got}"));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    problems.push("reported:".into());
    problems.extend(reported.iter().map(|got| format!("  {got}")));
    Err(problems.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_run() {
        let run = ExpectedRun::parse(b"exit: 101\n---\nline\n\xff").unwrap();
        assert_eq!((run.exit, run.stdout.as_slice()), (101, &b"line\n\xff"[..]));
        assert_eq!(ExpectedRun::parse(b"exit: 0\n---").unwrap().stdout, b"");
        assert_eq!(ExpectedRun::parse(b"exit: 0\r\n---\r\nx\r\n").unwrap().stdout, b"x\r\n");
        for bad in ["", "exit: x\n---\n", "exit: 0\nhello", "hello"] {
            assert!(ExpectedRun::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn error_files() {
        let findings = parse_error_file("error MPT2014 10\nwarning MPG_CORE_1202 7\n\n").unwrap();
        assert_eq!(findings[0].to_string(), "error MPT2014 at line 10");
        assert_eq!(findings[1].to_string(), "warning MPG_CORE_1202 at line 7");
        assert!(parse_error_file("").unwrap().is_empty());
        for (bad, message) in [
            ("error MPT2014", "line 1: must be"),
            ("error MPT2014 x", "line 1: `x` is no"),
            ("\nfault MPT2014 1", "line 2: unknown severity"),
            ("error MPT9999 1", "line 1: unknown code"),
        ] {
            assert!(parse_error_file(bad).unwrap_err().starts_with(message), "{bad}");
        }
    }

    #[test]
    fn marks() {
        let source = "a ;~ error MPT2014\nb\nc ;~^ warning MPL2011 ;~^^ error MPS0001\n";
        let texts: Vec<String> =
            parse_marks(source).unwrap().iter().map(ExpectedFinding::to_string).collect();
        assert_eq!(
            texts,
            ["error MPT2014 at line 1", "warning MPL2011 at line 2", "error MPS0001 at line 1"]
        );
        assert!(parse_marks(";~^ error MPT2014").unwrap_err().contains("before the first"));
        assert!(parse_marks("x ;~ MPT2014").unwrap_err().starts_with("line 1: must be"));
    }

    fn got(severity: Severity, code: Code, line: impl Into<Option<u32>>) -> Finding {
        Finding { severity, code, line: line.into(), message: "text".into() }
    }

    #[test]
    fn comparison() {
        use Severity::{Error, Info, Warning};
        let expected =
            parse_error_file("error MPT2014 10\nerror MPT2014 10\nwarning MPL2011 4").unwrap();
        let (a, b) = (got(Error, Code::MPT2014, 10), got(Warning, Code::MPL2011, 4));
        let all = [a.clone(), b.clone(), a.clone()];
        assert_eq!(compare_findings(&expected, &all), Ok(()));

        let beside = got(Error, Code::MPS0002, 4);
        let free = got(Info, Code::MPG_CORE_1404, 99);
        assert_eq!(compare_findings(&expected, &[&all[..], &[beside, free]].concat()), Ok(()));

        let error = compare_findings(&expected, &[a.clone(), b.clone()]).unwrap_err();
        assert!(error.starts_with("missing:    error MPT2014 at line 10\nreported:"), "{error}");
        let elsewhere = got(Warning, Code::MPL2012, 11);
        let error = compare_findings(&expected, &[&all[..], &[elsewhere]].concat()).unwrap_err();
        assert!(error.starts_with("unexpected: warning MPL2012 at line 11: text"), "{error}");
        let nowhere = got(Error, Code::MPL0005, None);
        assert!(compare_findings(&expected, &[&all[..], &[nowhere]].concat()).is_err());
    }

    #[test]
    fn only_warnings_expected_means_no_error_anywhere() {
        let expected = parse_error_file("warning MPG_CORE_1202 7").unwrap();
        let warning = got(Severity::Warning, Code::MPG_CORE_1202, 7);
        let error = got(Severity::Error, Code::MPG_CORE_1201, 7);
        assert_eq!(compare_findings(&expected, std::slice::from_ref(&warning)), Ok(()));
        assert!(compare_findings(&expected, &[warning, error]).is_err());
    }
}
