//! The part of MessagePack that the metadata of code objects uses: maps, arrays, text, numbers.

/// How deep documents nest; metadata stays far below.
const MAX_DEPTH: u32 = 16;

/// A piece of a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Item<'a> {
    Number(u64),
    Text(&'a str),
    List(Vec<Item<'a>>),
    Map(Vec<(Item<'a>, Item<'a>)>),
}

impl<'a> Item<'a> {
    /// The value of a key of a map.
    pub(crate) fn get(&self, key: &str) -> Option<&Item<'a>> {
        match self {
            Item::Map(entries) => {
                entries.iter().find(|(k, _)| k.text() == Some(key)).map(|(_, v)| v)
            }
            Item::Number(_) | Item::Text(_) | Item::List(_) => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        match self {
            Item::Text(text) => Some(text),
            Item::Number(_) | Item::List(_) | Item::Map(_) => None,
        }
    }

    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Item::Number(n) => Some(*n),
            Item::Text(_) | Item::List(_) | Item::Map(_) => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Item<'a>]> {
        match self {
            Item::List(items) => Some(items),
            Item::Number(_) | Item::Text(_) | Item::Map(_) => None,
        }
    }
}

/// Reads a document.
pub(crate) fn parse(bytes: &[u8]) -> Result<Item<'_>, String> {
    Reader { bytes }.item(0)
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (head, rest) = self.bytes.split_at_checked(count).ok_or("metadata is cut off")?;
        self.bytes = rest;
        Ok(head)
    }

    /// A big-endian number.
    fn unsigned(&mut self, size: usize) -> Result<u64, String> {
        Ok(self.take(size)?.iter().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    fn text(&mut self, len: u64) -> Result<Item<'a>, String> {
        let len = usize::try_from(len).map_err(|e| e.to_string())?;
        let text = std::str::from_utf8(self.take(len)?).map_err(|e| e.to_string())?;
        Ok(Item::Text(text))
    }

    fn list(&mut self, len: u64, depth: u32) -> Result<Item<'a>, String> {
        (0..len).map(|_| self.item(depth + 1)).collect::<Result<_, _>>().map(Item::List)
    }

    fn map(&mut self, len: u64, depth: u32) -> Result<Item<'a>, String> {
        let mut entry = |_| Ok((self.item(depth + 1)?, self.item(depth + 1)?));
        (0..len).map(&mut entry).collect::<Result<_, String>>().map(Item::Map)
    }

    fn item(&mut self, depth: u32) -> Result<Item<'a>, String> {
        if depth > MAX_DEPTH {
            return Err("metadata nests too deeply".to_string());
        }
        let tag = self.unsigned(1)?;
        match tag {
            0x00..=0x7f => Ok(Item::Number(tag)),
            0x80..=0x8f => self.map(tag & 0xf, depth),
            0x90..=0x9f => self.list(tag & 0xf, depth),
            0xa0..=0xbf => self.text(tag & 0x1f),
            0xc0 | 0xc2 => Ok(Item::Number(0)),
            0xc3 => Ok(Item::Number(1)),
            0xcc..=0xcf => Ok(Item::Number(self.unsigned(1 << (tag - 0xcc))?)),
            // Signed numbers that are not negative; others do not occur.
            0xd0..=0xd3 => Ok(Item::Number(self.unsigned(1 << (tag - 0xd0))?)),
            0xd9..=0xdb => {
                let len = self.unsigned(1 << (tag - 0xd9))?;
                self.text(len)
            }
            0xdc | 0xdd => {
                let len = self.unsigned(2 << (tag - 0xdc))?;
                self.list(len, depth)
            }
            0xde | 0xdf => {
                let len = self.unsigned(2 << (tag - 0xde))?;
                self.map(len, depth)
            }
            _ => Err(format!("metadata has something with the tag {tag:#x}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read() {
        let bytes = b"\x82\xa1a\x93\x01\xcd\x01\x00\xc3\xa1b\xd9\x03xyz";
        let document = parse(bytes).unwrap();
        let numbers: Vec<_> =
            document.get("a").unwrap().list().unwrap().iter().map(|i| i.number()).collect();
        assert_eq!(numbers, [Some(1), Some(256), Some(1)]);
        assert_eq!(document.get("b").unwrap().text(), Some("xyz"));
        assert_eq!(document.get("c"), None);
    }

    #[test]
    fn what_is_cut_off_or_deep_or_strange_is_an_error() {
        let whole = b"\x82\xa1a\x93\x01\xcd\x01\x00\xc3\xa1b\xd9\x03xyz";
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).is_err(), "{end}");
        }
        assert!(parse(&[0x91; 64]).is_err());
        assert!(parse(&[0xc1]).is_err());
        assert!(parse(b"\xdd\xff\xff\xff\xff").is_err());
    }
}
