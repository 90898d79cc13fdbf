//! What drivers and tools read: tables of symbols, of their hashes and names, and of these tables.

use super::input::Symbol;
use super::output::Output;
use object::elf::{self, Dyn64, GnuHashHeader, HashHeader, Sym64};
use object::pod::bytes_of;
use object::{LittleEndian as LE, U16, U32, U64};

/// Bytes of an entry of a symbol table.
pub(super) const SYMBOL_SIZE: u64 = size_of::<Sym64<LE>>() as u64;
/// Bytes of an entry of the dynamic section.
pub(super) const DYNAMIC_ENTRY_SIZE: u64 = size_of::<Dyn64<LE>>() as u64;

/// Texts that end in a zero, one behind the other; the first is empty.
pub(super) struct Strings(Vec<u8>);

impl Default for Strings {
    fn default() -> Strings {
        Strings(vec![0])
    }
}

impl Strings {
    /// Adds a text; where it is.
    pub(super) fn add(&mut self, text: &[u8]) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let start = self.0.len() as u32;
        self.0.extend_from_slice(text);
        self.0.push(0);
        start
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Bytes of a table of so many symbols.
pub(super) fn symbols_size(count: usize) -> usize {
    // The first entry is nothing.
    (count + 1) * SYMBOL_SIZE as usize
}

/// A table of symbols with names at these places.
pub(super) fn symbols(symbols: &[&Symbol<'_>], names: &[u32], output: &Output<'_>) -> Vec<u8> {
    let mut table = vec![0; SYMBOL_SIZE as usize];
    for (symbol, name) in symbols.iter().zip(names) {
        let (value, section) = output.resolve(symbol);
        table.extend_from_slice(bytes_of(&Sym64::<LE> {
            st_name: U32::new(LE, *name),
            st_shndx: U16::new(LE, section),
            st_value: U64::new(LE, value),
            ..symbol.entry
        }));
    }
    table
}

fn words(table: &mut Vec<u8>, words: impl IntoIterator<Item = u32>) {
    words.into_iter().for_each(|word| table.extend_from_slice(&word.to_le_bytes()));
}

/// The hash table of the ELF standard for symbols 1 to `count`. There are two symbols a kernel, so
/// one bucket with all of them is as good as several.
pub(super) fn hash_table(count: usize) -> Vec<u8> {
    let count = count as u32;
    let header = HashHeader { bucket_count: U32::new(LE, 1), chain_count: U32::new(LE, count + 1) };
    let mut table = bytes_of(&header).to_vec();
    words(&mut table, [u32::from(count > 0), 0]);
    // Each symbol leads to the next, the last to none.
    words(&mut table, (1..=count).map(|n| if n == count { 0 } else { n + 1 }));
    table
}

/// The hash table of GNU for the same symbols, with one bucket, too.
pub(super) fn gnu_hash_table(symbols: &[&Symbol<'_>]) -> Vec<u8> {
    const SHIFT: u32 = 26;
    let hashes: Vec<u32> = symbols.iter().map(|s| elf::gnu_hash(s.name)).collect();
    let one = U32::new(LE, 1);
    let header = GnuHashHeader {
        bucket_count: one,
        symbol_base: one,
        bloom_count: one,
        bloom_shift: U32::new(LE, SHIFT),
    };
    let bloom = hashes.iter().fold(0u64, |set, h| set | 1 << (h % 64) | 1 << ((h >> SHIFT) % 64));
    let mut table = bytes_of(&header).to_vec();
    table.extend_from_slice(&bloom.to_le_bytes());
    words(&mut table, [u32::from(!symbols.is_empty())]);
    // The lowest bit is set in the last.
    let last = hashes.len().saturating_sub(1);
    words(&mut table, hashes.iter().enumerate().map(|(n, h)| h & !1 | u32::from(n == last)));
    table
}

/// Bytes of a dynamic section that tells where so many sections are.
pub(super) fn dynamic_size(sections: usize) -> usize {
    (sections + 3) * DYNAMIC_ENTRY_SIZE as usize
}

/// The dynamic section: where sections are, and sizes.
pub(super) fn dynamic(sections: &[(u32, u32)], names: u32, output: &Output<'_>) -> Vec<u8> {
    let section = |n: u32| &output.sections[n as usize];
    let addresses = sections.iter().map(|&(tag, n)| (tag, section(n).address));
    let sizes = [
        (elf::DT_SYMENT, SYMBOL_SIZE),
        (elf::DT_STRSZ, section(names).data.len() as u64),
        (elf::DT_NULL, 0),
    ];
    let mut table = Vec::new();
    for (tag, value) in addresses.chain(sizes) {
        let (d_tag, d_val) = (U64::new(LE, tag.into()), U64::new(LE, value));
        table.extend_from_slice(bytes_of(&Dyn64::<LE> { d_tag, d_val }));
    }
    table
}
