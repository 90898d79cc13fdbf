//! Reading source files.

use crate::session::{Session, Stop};
use magpie_diag::{Code, Diagnostic, FileId, MAX_SOURCE_LEN, Span};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a text file into the session. `name` is how messages call it.
///
/// # Errors
/// `MPP0001` was reported: the file is missing, a folder, too long, not UTF-8.
pub(crate) fn read(session: &mut Session, path: &Path, name: &str) -> Result<FileId, Stop> {
    let bytes = match read_bytes(path) {
        Ok(bytes) => bytes,
        Err(why) => {
            let message = format!("cannot read `{name}`: {why}");
            return Err(session.refuse(Code::MPP0001, message, "name a file that can be read"));
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(session.sources.add(name, text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(at);
            let before = String::from_utf8(bytes).unwrap_or_default();
            let file = session.sources.add(name, before);
            let span = Span::new(file, at as u32, at as u32);
            let message = format!("`{name}` is not a text file: byte {at} is not valid UTF-8");
            session.report(Diagnostic::new(Code::MPP0001, span, message).with_help(
                "save the file as UTF-8; only strings and comments need more than ASCII",
            ));
            Err(Stop::Refused)
        }
    }
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    if path.is_dir() {
        return Err("it is a folder".to_string());
    }
    let file = File::open(path).map_err(|error| reason(&error))?;
    let mut bytes = Vec::new();
    let limit = MAX_SOURCE_LEN as u64;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    if bytes.len() > MAX_SOURCE_LEN {
        return Err(format!("it has more than {} MiB", MAX_SOURCE_LEN >> 20));
    }
    Ok(bytes)
}

/// What went wrong, in lower case and without the system's error number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split_once(" (os error ").map_or(text.as_str(), |(reason, _)| reason);
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => "unknown error".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn message_of(path: &Path) -> String {
        let mut session = Session::new(Options::new("check"));
        assert_eq!(read(&mut session, path, "x.mp"), Err(Stop::Refused));
        let findings = session.take_findings();
        assert_eq!(findings.shown[0].code, Code::MPP0001);
        magpie_diag::render(&findings.shown[0], &session.sources, false)
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let missing = message_of(&dir.path().join("none.mp"));
        assert!(missing.contains("cannot read `x.mp`: no such file or directory\n"), "{missing}");
        assert!(message_of(dir.path()).contains("it is a folder"));
        assert!(message_of(&dir.path().join("a\0b")).contains("cannot read `x.mp`: "));
        let latin = dir.path().join("latin.mp");
        std::fs::write(&latin, b"; ok\n; \xe4\n").unwrap();
        let text = message_of(&latin);
        assert!(text.starts_with("x.mp:2:3: error[MPP0001]: `x.mp` is not a text file"), "{text}");
    }

    #[test]
    #[cfg(unix)]
    fn endless_files_end() {
        assert!(message_of(Path::new("/dev/zero")).contains("more than 256 MiB"));
    }

    #[test]
    fn text_becomes_a_source() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.mp");
        std::fs::write(&path, "module a\n").unwrap();
        let mut session = Session::new(Options::new("check"));
        let file = read(&mut session, &path, "a.mp").unwrap();
        assert_eq!(session.sources.file(file).map(|f| f.text.as_str()), Some("module a\n"));
        assert!(!session.has_errors());
    }
}
