//! Versions of LLVM.

use std::fmt;

/// A version: major, minor, patch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// The version in front of anything that is no digit or dot.
    pub fn parse(text: &str) -> Option<Version> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut parts = text[..end].split('.').map(str::parse);
        let major = parts.next()?.ok()?;
        let mut next = || parts.next().and_then(Result::ok).unwrap_or(0);
        Some(Version { major, minor: next(), patch: next() })
    }

    /// The version that a tool of LLVM prints.
    pub(super) fn printed(output: &str) -> Option<Version> {
        let (_, rest) = output.split_once("LLVM version ")?;
        Version::parse(rest)
    }

    /// The version in the file name of libLLVM: `libLLVM.so.19.1`, `libLLVM-18.so.1`,
    /// `libLLVM-16.0.6.so.1`.
    pub(super) fn of_library(name: &str) -> Option<Version> {
        let rest = name.strip_prefix("libLLVM")?;
        match rest.strip_prefix('-') {
            Some(version) => Version::parse(version),
            None => Version::parse(rest.strip_prefix(".so.")?),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let v = |major, minor, patch| Some(Version { major, minor, patch });
        assert_eq!(Version::printed("Debian LLVM version 19.1.7\n  Optimized build"), v(19, 1, 7));
        assert_eq!(Version::printed("LLVM version 22.1.0git"), v(22, 1, 0));
        assert_eq!(Version::printed("Hello"), None);
        assert_eq!(Version::of_library("libLLVM.so.19.1"), v(19, 1, 0));
        assert_eq!(Version::of_library("libLLVM-18.so.1"), v(18, 0, 0));
        assert_eq!(Version::of_library("libLLVM-14.0.6.so.1"), v(14, 0, 6));
        assert_eq!(Version::of_library("libLLVM.so"), None);
        assert!(v(19, 1, 0) < v(22, 0, 0));
    }
}
