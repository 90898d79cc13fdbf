//! Reading the object that is linked.

use super::output::Section;
use super::{ACCESS, CODE, READ};
use object::elf::{self, FileHeader64, SectionHeader64, Sym64};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};
use object::{LittleEndian as LE, SectionIndex};

/// What of an object is linked.
pub(super) struct Input<'a> {
    pub(super) header: FileHeader64<LE>,
    pub(super) sections: Vec<InputSection<'a>>,
    /// The symbols, in the order of the object; the first one is nothing.
    pub(super) symbols: Vec<Symbol<'a>>,
    pub(super) relocations: Vec<Relocation>,
}

/// A section that the output has, too.
pub(super) struct InputSection<'a> {
    /// Its place among the sections of the input.
    pub(super) number: usize,
    pub(super) section: Section<'a>,
}

/// A symbol.
pub(super) struct Symbol<'a> {
    pub(super) name: &'a [u8],
    pub(super) entry: Sym64<LE>,
    pub(super) home: Home,
}

/// What the value of a symbol counts from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// A section of the input that the output has.
    Section(usize),
    /// A section that the output does not have.
    Dropped,
    /// Nothing: the value is a number.
    Absolute,
}

/// A place in a section that refers to a symbol.
pub(super) struct Relocation {
    /// The section of the input.
    pub(super) section: usize,
    pub(super) offset: u64,
    pub(super) kind: u32,
    pub(super) symbol: usize,
    pub(super) addend: i64,
}

impl Symbol<'_> {
    pub(super) fn is_local(&self) -> bool {
        self.entry.st_bind() == elf::STB_LOCAL
    }

    /// Whether drivers find it.
    pub(super) fn is_exported(&self) -> bool {
        let is_visible =
            matches!(self.entry.st_visibility(), elf::STV_DEFAULT | elf::STV_PROTECTED);
        !self.is_local() && is_visible
    }

    /// Whether the full symbol table has it.
    pub(super) fn is_listed(&self) -> bool {
        let is_named = !matches!(self.entry.st_type(), elf::STT_SECTION | elf::STT_FILE);
        is_named && !self.name.is_empty() && self.home != Home::Dropped
    }
}

impl<'a> Input<'a> {
    pub(super) fn read(object: &'a [u8]) -> Result<Input<'a>, String> {
        let bad = |e: object::read::Error| format!("malformed object: {e}");
        let header = FileHeader64::<LE>::parse(object).map_err(bad)?;
        if header.e_type(LE) != elf::ET_REL || header.e_machine(LE) != elf::EM_AMDGPU {
            return Err("no relocatable object for AMD GPUs".to_string());
        }
        let table = header.sections(LE, object).map_err(bad)?;
        let mut input = Input {
            header: *header,
            sections: Vec::new(),
            symbols: Vec::new(),
            relocations: Vec::new(),
        };
        // The place of each section of the object among those that are kept.
        let mut numbers = vec![None; table.len()];
        for (index, header) in table.enumerate() {
            let name = table.section_name(LE, header).map_err(bad)?;
            if is_kept(name, header)? {
                let number = input.sections.len();
                numbers[index.0] = Some(number);
                let section = Section {
                    flags: header.sh_flags(LE),
                    align: header.sh_addralign(LE).max(1),
                    entry_size: header.sh_entsize(LE),
                    data: header.data(LE, object).map_err(bad)?.into(),
                    ..Section::new(name, header.sh_type(LE), 0)
                };
                input.sections.push(InputSection { number, section });
            }
        }
        let symbols = table.symbols(LE, object, elf::SHT_SYMTAB).map_err(bad)?;
        for (index, entry) in symbols.enumerate() {
            let name = symbols.symbol_name(LE, entry).map_err(bad)?;
            let home = match entry.st_shndx(LE) {
                elf::SHN_UNDEF if index.0 == 0 => Home::Dropped,
                elf::SHN_ABS => Home::Absolute,
                elf::SHN_UNDEF | elf::SHN_LORESERVE.. => {
                    let name = String::from_utf8_lossy(name);
                    return Err(format!("the symbol `{name}`, which is not defined"));
                }
                n => numbers
                    .get(usize::from(n))
                    .copied()
                    .flatten()
                    .map_or(Home::Dropped, Home::Section),
            };
            let symbol = Symbol { name, entry: *entry, home };
            if symbol.is_exported() && home == Home::Dropped && index.0 != 0 {
                let name = String::from_utf8_lossy(name);
                return Err(format!("the symbol `{name}` in a section that is not linked"));
            }
            input.symbols.push(symbol);
        }
        for header in table.iter() {
            input.read_relocations(&table, header, &numbers, object)?;
        }
        Ok(input)
    }

    /// Adds the relocations of a section, if it has any, that are about sections that are kept.
    fn read_relocations(
        &mut self,
        table: &SectionTable<'a, FileHeader64<LE>>,
        header: &'a SectionHeader64<LE>,
        numbers: &[Option<usize>],
        object: &'a [u8],
    ) -> Result<(), String> {
        let bad = |e: object::read::Error| format!("malformed object: {e}");
        let target = SectionIndex(header.sh_info(LE) as usize);
        let Some((entries, _)) = header.rela(LE, object).map_err(bad)? else { return Ok(()) };
        table.section(target).map_err(bad)?;
        let Some(section) = numbers[target.0] else { return Ok(()) };
        for entry in entries {
            let symbol = entry.r_sym(LE, false) as usize;
            if self.symbols.get(symbol).is_none_or(|s| s.home == Home::Dropped) {
                return Err("a reference to something that is not linked".to_string());
            }
            self.relocations.push(Relocation {
                section,
                offset: entry.r_offset.get(LE),
                kind: entry.r_type(LE, false),
                symbol,
                addend: entry.r_addend.get(LE),
            });
        }
        Ok(())
    }
}

/// Whether the output has a section of the object.
fn is_kept(name: &[u8], header: &SectionHeader64<LE>) -> Result<bool, String> {
    let (kind, flags) = (header.sh_type(LE), header.sh_flags(LE));
    let refuse = |why: &str| {
        let name = String::from_utf8_lossy(name);
        Err(format!("the section `{name}` {why}"))
    };
    let known = ACCESS | u64::from(elf::SHF_MERGE | elf::SHF_STRINGS | elf::SHF_INFO_LINK);
    match kind {
        _ if header.sh_size(LE) == 0 => Ok(false),
        elf::SHT_NULL | elf::SHT_SYMTAB | elf::SHT_STRTAB | elf::SHT_RELA => Ok(false),
        // Nothing that tells tools about code is needed, except its places in the source.
        elf::SHT_PROGBITS if flags & ACCESS == 0 => {
            let is_plain = flags & !known == 0;
            Ok(is_plain && name.starts_with(b".debug_"))
        }
        elf::SHT_NOTE if flags == READ => Ok(true),
        elf::SHT_PROGBITS if flags & !known != 0 => refuse("with attributes of another kind"),
        elf::SHT_PROGBITS if matches!(flags & ACCESS, READ | CODE) => Ok(true),
        elf::SHT_PROGBITS => refuse("that kernels write to"),
        _ => refuse("of another kind"),
    }
}
