//! The link step: from the relocatable object that LLVM makes of a kernel to the shared object that
//! drivers load, without a process for it.
//!
//! Of what linkers do a kernel needs little. Its sections are laid out in segments, the places that
//! refer to others are filled in, and its symbols get the tables in which drivers find them. An object
//! with anything else in it is refused; `ld.lld` knows the rest.

mod input;
mod output;
mod tables;
#[cfg(test)]
mod tests;

use input::{Input, InputSection, Symbol};
use object::elf;
use output::{Output, Section};
use tables::{Strings, gnu_hash_table, hash_table};

/// Links one object. Equal input gives equal output.
///
/// # Errors
/// What about the object this linker does not know.
pub(crate) fn link(object: &[u8]) -> Result<Vec<u8>, String> {
    let input = Input::read(object)?;
    let exported: Vec<&Symbol<'_>> = input.symbols.iter().filter(|s| s.is_exported()).collect();
    let mut names = Strings::default();
    let dynamic_names: Vec<u32> = exported.iter().map(|s| names.add(s.name)).collect();

    // Notes come first, so that they are next to each other.
    let mut output = Output::new(input.header, input.sections.len());
    let of_kind = |kind: u32, access: u64| {
        move |s: &&InputSection<'_>| (s.section.kind, s.section.flags & ACCESS) == (kind, access)
    };
    input.sections.iter().filter(of_kind(elf::SHT_NOTE, READ)).for_each(|s| output.place(s));
    let dynsym = output.add(Section {
        entry_size: tables::SYMBOL_SIZE,
        info: 1,
        align: 8,
        data: vec![0; tables::symbols_size(exported.len())].into(),
        ..Section::new(b".dynsym", elf::SHT_DYNSYM, READ)
    });
    let gnu_hash = output.add(Section {
        link: dynsym,
        align: 8,
        data: gnu_hash_table(&exported).into(),
        ..Section::new(b".gnu.hash", elf::SHT_GNU_HASH, READ)
    });
    let hash = output.add(Section {
        link: dynsym,
        align: 4,
        entry_size: 4,
        data: hash_table(exported.len()).into(),
        ..Section::new(b".hash", elf::SHT_HASH, READ)
    });
    let dynstr = output.add(Section {
        data: names.into_bytes().into(),
        ..Section::new(b".dynstr", elf::SHT_STRTAB, READ)
    });
    input.sections.iter().filter(of_kind(elf::SHT_PROGBITS, READ)).for_each(|s| output.place(s));
    input.sections.iter().filter(of_kind(elf::SHT_PROGBITS, CODE)).for_each(|s| output.place(s));
    let tags = [
        (elf::DT_SYMTAB, dynsym),
        (elf::DT_STRTAB, dynstr),
        (elf::DT_GNU_HASH, gnu_hash),
        (elf::DT_HASH, hash),
    ];
    let dynamic = output.add(Section {
        link: dynstr,
        align: 8,
        entry_size: tables::DYNAMIC_ENTRY_SIZE,
        data: vec![0; tables::dynamic_size(tags.len())].into(),
        ..Section::new(b".dynamic", elf::SHT_DYNAMIC, WRITABLE)
    });
    input.sections.iter().filter(of_kind(elf::SHT_PROGBITS, 0)).for_each(|s| output.place(s));

    // Local symbols stand in front of the others.
    let (mut listed, globals): (Vec<&Symbol<'_>>, Vec<_>) =
        input.symbols.iter().filter(|s| s.is_listed()).partition(|s| s.is_local());
    let first_global = listed.len() as u32 + 1;
    listed.extend(globals);
    let mut names = Strings::default();
    let listed_names: Vec<u32> = listed.iter().map(|s| names.add(s.name)).collect();
    let symtab = output.add(Section {
        align: 8,
        entry_size: tables::SYMBOL_SIZE,
        info: first_global,
        data: vec![0; tables::symbols_size(listed.len())].into(),
        ..Section::new(b".symtab", elf::SHT_SYMTAB, 0)
    });
    let strtab = output.add(Section {
        data: names.into_bytes().into(),
        ..Section::new(b".strtab", elf::SHT_STRTAB, 0)
    });
    output.sections[dynsym as usize].link = dynstr;
    output.sections[symtab as usize].link = strtab;
    output.lay_out()?;

    output.fill(dynsym, tables::symbols(&exported, &dynamic_names, &output));
    output.fill(symtab, tables::symbols(&listed, &listed_names, &output));
    output.fill(dynamic, tables::dynamic(&tags, dynstr, &output));
    for relocation in &input.relocations {
        output.relocate(relocation, &input.symbols[relocation.symbol])?;
    }
    output.write()
}

/// What memory a section becomes part of.
const READ: u64 = elf::SHF_ALLOC as u64;
const CODE: u64 = (elf::SHF_ALLOC | elf::SHF_EXECINSTR) as u64;
const WRITABLE: u64 = (elf::SHF_ALLOC | elf::SHF_WRITE) as u64;
const ACCESS: u64 = CODE | WRITABLE;
