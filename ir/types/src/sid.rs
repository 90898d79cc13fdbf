//! Stable ids and the hash by which kernels are found (language reference, section 12).

/// A stable id: a kind letter, a colon and ten Crockford base-32 characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sid(String);

/// What a stable id names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SidKind {
    /// A module: `path`.
    Module,
    /// A function: `path.@name`.
    Function,
    /// A type: `path.TName`.
    Type,
    /// A global: `path.@name`.
    Global,
    /// A foreign module.
    Extern,
}

impl Sid {
    /// The id of a thing with the given full name.
    pub fn new(kind: SidKind, full_name: &str) -> Sid {
        const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        let (letter, word) = match kind {
            SidKind::Module => ('M', "module"),
            SidKind::Function => ('F', "fn"),
            SidKind::Type => ('T', "type"),
            SidKind::Global => ('G', "global"),
            SidKind::Extern => ('E', "extern"),
        };
        let hash = blake3::hash(format!("magpie:sid:v0.1|{word}|{full_name}").as_bytes());
        let mut text = String::with_capacity(12);
        text.push(letter);
        text.push(':');
        let mut bits = u64::from_be_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default());
        for _ in 0..10 {
            text.push(ALPHABET[(bits >> 59) as usize] as char);
            bits <<= 5;
        }
        Sid(text)
    }

    /// Takes a text of the right shape as an id.
    pub fn parse(text: &str) -> Option<Sid> {
        let rest = text.get(2..)?;
        let ok = text.len() == 12
            && matches!(&text[..2], "M:" | "F:" | "T:" | "G:" | "E:")
            && rest.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
        ok.then(|| Sid(text.to_string()))
    }

    /// The id as text, `F:XXXXXXXXXX`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as part of a file name: the colon becomes `_`.
    pub fn file_name(&self) -> String {
        self.0.replace(':', "_")
    }

    /// The key of the kernel registry: 64-bit FNV-1a of the id's text.
    pub fn hash(&self) -> u64 {
        fnv1a(self.0.as_bytes())
    }
}

impl std::fmt::Display for Sid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// 64-bit FNV-1a.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ b as u64).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values() {
        for (name, sid, hash) in [
            ("demo.main.@kernel_add", "F:23R834YQS8", 12394533262257085662),
            ("demo.main.@k", "F:XB76HQ4FB2", 14474626976443753539),
        ] {
            let s = Sid::new(SidKind::Function, name);
            assert_eq!(s.as_str(), sid);
            assert_eq!(s.hash(), hash);
        }
        assert_eq!(Sid::new(SidKind::Module, "demo.main").as_str(), "M:XH937J52CY");
    }
}
