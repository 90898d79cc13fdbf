//! The shared object: where its sections lie, and its bytes.

use super::input::{Home, InputSection, Relocation, Symbol};
use super::tables::Strings;
use super::{ACCESS, CODE, READ, WRITABLE};
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::pod::bytes_of;
use object::{LittleEndian as LE, U16, U32, U64};
use std::borrow::Cow;

/// Memory is mapped in pages of this size.
const PAGE: u64 = 0x1000;

/// The kinds of memory in the order of their segments.
const SEGMENTS: [(u64, u32); 3] =
    [(READ, elf::PF_R), (CODE, elf::PF_R | elf::PF_X), (WRITABLE, elf::PF_R | elf::PF_W)];
/// The segments, and the headers, `.dynamic`, the stack and the notes.
const PROGRAM_HEADERS: usize = SEGMENTS.len() + 4;
/// What precedes the first section.
const HEADERS_SIZE: u64 =
    (size_of::<FileHeader64<LE>>() + PROGRAM_HEADERS * size_of::<ProgramHeader64<LE>>()) as u64;

/// Relocations of AMD GPUs that are known.
const R_AMDGPU_ABS64: u32 = 3;
const R_AMDGPU_REL32: u32 = 4;
const R_AMDGPU_REL64: u32 = 5;
const R_AMDGPU_ABS32: u32 = 6;
const R_AMDGPU_REL32_LO: u32 = 10;
const R_AMDGPU_REL32_HI: u32 = 11;

/// A section of the output.
pub(super) struct Section<'a> {
    pub(super) name: &'a [u8],
    pub(super) kind: u32,
    pub(super) flags: u64,
    pub(super) align: u64,
    pub(super) entry_size: u64,
    /// The section that it goes with.
    pub(super) link: u32,
    pub(super) info: u32,
    pub(super) data: Cow<'a, [u8]>,
    pub(super) offset: u64,
    /// Zero outside memory.
    pub(super) address: u64,
}

impl<'a> Section<'a> {
    /// An empty section.
    pub(super) fn new(name: &'a [u8], kind: u32, flags: u64) -> Section<'a> {
        Section {
            name,
            kind,
            flags,
            align: 1,
            entry_size: 0,
            link: 0,
            info: 0,
            data: Cow::Borrowed(&[]),
            offset: 0,
            address: 0,
        }
    }

    fn is_in_memory(&self) -> bool {
        self.flags & READ != 0
    }

    fn size(&self) -> u64 {
        self.data.len() as u64
    }

    fn header(&self, name: u32) -> SectionHeader64<LE> {
        SectionHeader64 {
            sh_name: U32::new(LE, name),
            sh_type: U32::new(LE, self.kind),
            sh_flags: U64::new(LE, self.flags),
            sh_addr: U64::new(LE, self.address),
            sh_offset: U64::new(LE, self.offset),
            sh_size: U64::new(LE, self.size()),
            sh_link: U32::new(LE, self.link),
            sh_info: U32::new(LE, self.info),
            sh_addralign: U64::new(LE, self.align),
            sh_entsize: U64::new(LE, self.entry_size),
        }
    }
}

/// The shared object.
pub(super) struct Output<'a> {
    /// That of the object.
    header: FileHeader64<LE>,
    /// In the order of the file; the first is nothing.
    pub(super) sections: Vec<Section<'a>>,
    /// Where each section of the input is among them.
    places: Vec<u32>,
}

impl<'a> Output<'a> {
    /// An output without sections, from an object with some.
    pub(super) fn new(header: FileHeader64<LE>, inputs: usize) -> Output<'a> {
        let sections = vec![Section { align: 0, ..Section::new(b"", elf::SHT_NULL, 0) }];
        Output { header, sections, places: vec![0; inputs] }
    }

    /// Adds a section; its number.
    pub(super) fn add(&mut self, section: Section<'a>) -> u32 {
        self.sections.push(section);
        self.sections.len() as u32 - 1
    }

    /// Adds a section of the input.
    pub(super) fn place(&mut self, input: &InputSection<'a>) {
        let s = &input.section;
        let (flags, align, entry_size) = (s.flags, s.align, s.entry_size);
        let section = Section {
            align,
            entry_size,
            data: s.data.clone(),
            ..Section::new(s.name, s.kind, flags)
        };
        self.places[input.number] = self.add(section);
    }

    /// Where in memory a symbol is, and the number of its section.
    pub(super) fn resolve(&self, symbol: &Symbol<'_>) -> (u64, u16) {
        let value = symbol.entry.st_value.get(LE);
        match symbol.home {
            Home::Section(n) => {
                let place = self.places[n];
                (self.sections[place as usize].address.wrapping_add(value), place as u16)
            }
            Home::Absolute => (value, elf::SHN_ABS),
            Home::Dropped => (0, elf::SHN_UNDEF),
        }
    }

    /// Gives every section its place in the file and in memory. Each kind of memory begins on a page
    /// of its own: its addresses are a page further from the places in the file than those before.
    pub(super) fn lay_out(&mut self) -> Result<(), String> {
        let mut end = HEADERS_SIZE;
        for section in self.sections.iter_mut().skip(1) {
            if !section.align.is_power_of_two() || section.align > PAGE {
                return Err(format!("an alignment of {}", section.align));
            }
            section.offset = end.next_multiple_of(section.align);
            end = section.offset + section.size();
            if section.is_in_memory() {
                let kind = SEGMENTS.iter().position(|s| s.0 == section.flags & ACCESS);
                section.address = section.offset + PAGE * kind.unwrap_or(0) as u64;
            }
        }
        Ok(())
    }

    /// Replaces what a section holds by something of the same size.
    pub(super) fn fill(&mut self, section: u32, data: Vec<u8>) {
        let section = &mut self.sections[section as usize];
        debug_assert_eq!(section.data.len(), data.len());
        section.data = data.into();
    }

    /// Writes to a place what it refers to.
    pub(super) fn relocate(&mut self, r: &Relocation, symbol: &Symbol<'_>) -> Result<(), String> {
        let (value, _) = self.resolve(symbol);
        let section = &mut self.sections[self.places[r.section] as usize];
        let target = value.wrapping_add_signed(r.addend);
        let distance = target.wrapping_sub(section.address.wrapping_add(r.offset));
        let fits = i32::try_from(distance as i64).is_ok();
        let bytes = match r.kind {
            R_AMDGPU_REL64 => distance.to_le_bytes().to_vec(),
            R_AMDGPU_REL32 if fits => (distance as u32).to_le_bytes().to_vec(),
            R_AMDGPU_REL32_LO => (distance as u32).to_le_bytes().to_vec(),
            R_AMDGPU_REL32_HI => ((distance >> 32) as u32).to_le_bytes().to_vec(),
            // An address in memory is known only when the object is loaded.
            R_AMDGPU_ABS64 if !section.is_in_memory() => target.to_le_bytes().to_vec(),
            R_AMDGPU_ABS32 if !section.is_in_memory() && target <= u64::from(u32::MAX) => {
                (target as u32).to_le_bytes().to_vec()
            }
            kind => return Err(format!("a relocation of type {kind}")),
        };
        let start = usize::try_from(r.offset).map_err(|e| e.to_string())?;
        let place = start
            .checked_add(bytes.len())
            .and_then(|end| section.data.to_mut().get_mut(start..end));
        place.ok_or("a relocation outside its section")?.copy_from_slice(&bytes);
        Ok(())
    }

    /// The bytes of the file.
    pub(super) fn write(mut self) -> Result<Vec<u8>, String> {
        let segments = self.program_headers()?;
        // Names of sections, that of their own section among them.
        let mut names = Strings::default();
        let last = Section::new(b".shstrtab", elf::SHT_STRTAB, 0);
        let end = self.sections.last().map_or(0, |s| s.offset + s.size());
        self.add(Section { offset: end, ..last });
        let section_names: Vec<u32> = self.sections.iter().map(|s| names.add(s.name)).collect();
        let names = names.into_bytes();
        let table = (end + names.len() as u64).next_multiple_of(8);
        self.sections.last_mut().ok_or("no section")?.data = names.into();

        let mut file = bytes_of(&self.file_header(table)).to_vec();
        segments.iter().for_each(|segment| file.extend_from_slice(bytes_of(segment)));
        for section in self.sections.iter().skip(1) {
            file.resize(section.offset as usize, 0);
            file.extend_from_slice(&section.data);
        }
        file.resize(table as usize, 0);
        for (section, name) in self.sections.iter().zip(section_names) {
            file.extend_from_slice(bytes_of(&section.header(name)));
        }
        Ok(file)
    }

    /// The header of the object, as far as it does not say where things are.
    fn file_header(&self, section_table: u64) -> FileHeader64<LE> {
        FileHeader64 {
            e_type: U16::new(LE, elf::ET_DYN),
            e_phoff: U64::new(LE, size_of::<FileHeader64<LE>>() as u64),
            e_shoff: U64::new(LE, section_table),
            e_phentsize: U16::new(LE, size_of::<ProgramHeader64<LE>>() as u16),
            e_phnum: U16::new(LE, PROGRAM_HEADERS as u16),
            e_shnum: U16::new(LE, self.sections.len() as u16),
            e_shstrndx: U16::new(LE, self.sections.len() as u16 - 1),
            ..self.header
        }
    }

    fn program_headers(&self) -> Result<[ProgramHeader64<LE>; PROGRAM_HEADERS], String> {
        let (file, table) = (size_of::<FileHeader64<LE>>() as u64, HEADERS_SIZE);
        let [read, code, writable] = SEGMENTS;
        let of_access = |access: (u64, u32)| {
            self.span(|s| s.flags & ACCESS == access.0).ok_or("no code or no constants")
        };
        let note = self.span(|s| s.kind == elf::SHT_NOTE).ok_or("no notes")?;
        let dynamic = of_access(writable)?;
        // What is read only begins with the headers.
        let constants = Span { start: 0, end: of_access(read)?.end, address: 0 };
        let headers = Span { start: file, end: table, address: file };
        let nothing = Span { start: 0, end: 0, address: 0 };
        Ok([
            headers.segment(elf::PT_PHDR, read.1, 8),
            constants.segment(elf::PT_LOAD, read.1, PAGE),
            of_access(code)?.segment(elf::PT_LOAD, code.1, PAGE),
            dynamic.segment(elf::PT_LOAD, writable.1, PAGE),
            dynamic.segment(elf::PT_DYNAMIC, writable.1, 8),
            nothing.segment(elf::PT_GNU_STACK, writable.1, 0),
            note.segment(elf::PT_NOTE, read.1, 4),
        ])
    }

    /// What sections that are next to each other take up.
    fn span(&self, is_part: impl Fn(&Section<'_>) -> bool) -> Option<Span> {
        let mut parts = self.sections.iter().filter(|s| is_part(s));
        let first = parts.next()?;
        let last = parts.next_back().unwrap_or(first);
        let end = last.offset + last.size();
        Some(Span { start: first.offset, end, address: first.address })
    }
}

/// A piece of the file.
struct Span {
    start: u64,
    end: u64,
    address: u64,
}

impl Span {
    fn segment(&self, kind: u32, flags: u32, align: u64) -> ProgramHeader64<LE> {
        let size = U64::new(LE, self.end - self.start);
        let address = U64::new(LE, self.address);
        ProgramHeader64 {
            p_type: U32::new(LE, kind),
            p_flags: U32::new(LE, flags),
            p_offset: U64::new(LE, self.start),
            p_vaddr: address,
            p_paddr: address,
            p_filesz: size,
            p_memsz: size,
            p_align: U64::new(LE, align),
        }
    }
}
