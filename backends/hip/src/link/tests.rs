//! Objects of LLVM, linked here and by `ld.lld`; and objects that are refused.

use super::link;
use magpie_codegen_llvm::tool::{Environment, Job, Linker, Llvm, Output, Target, ToolPaths};
use magpie_kernel_tests::files::read_folder;
use magpie_kernel_tests::skip;
use object::elf::{self, ProgramHeader64};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{
    LittleEndian as LE, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, SymbolFlags,
};
use std::path::Path;
use std::process::Command;

use crate::{HipEmitter, HipTarget};
use magpie_gpu::compile::BodyCompiler;

const PROCESSORS: [&str; 4] = ["gfx90a", "gfx942", "gfx1030", "gfx1100"];

struct Tools {
    llvm: Llvm,
    lld: Linker,
}

impl Tools {
    fn find() -> Option<Tools> {
        let (tools, env) = (ToolPaths::default(), Environment::of_process());
        let llvm = Llvm::find(Target::Amdgpu, &tools, &env);
        let lld = Linker::new(&tools, env);
        match (llvm, lld.path()) {
            (Ok(llvm), Ok(_)) => Some(Tools { llvm, lld }),
            _ => {
                skip("LLVM with AMDGPU, and ld.lld");
                None
            }
        }
    }

    /// The object of a module.
    fn object(&self, ir: &str, processor: &str) -> Vec<u8> {
        let ir = format!("target triple = \"amdgcn-amd-amdhsa\"\n{ir}{VERSION}");
        let output = Output::Object;
        let triple = "amdgcn-amd-amdhsa";
        let job = Job { ir: &ir, triple, cpu: processor, features: "", output };
        self.llvm.compile(&job).unwrap()
    }

    /// What a tool of LLVM prints about a file; it has nothing to warn of.
    fn show(&self, tool: &str, arguments: &[&str], code: &[u8]) -> Option<String> {
        let beside = self.lld.path().unwrap().canonicalize().unwrap().with_file_name(tool);
        let tool = if beside.is_file() { beside.as_path() } else { Path::new(tool) };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kernel.hsaco");
        std::fs::write(&file, code).unwrap();
        let arguments = [arguments, &[file.to_str().unwrap()]].concat();
        let Ok(done) = Command::new(tool).args(arguments).output() else {
            skip(&tool.to_string_lossy());
            return None;
        };
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.success() && said.is_empty(), "{said}");
        let text = String::from_utf8(done.stdout).unwrap();
        // Those that name the file differ.
        Some(
            text.lines()
                .filter(|l| !l.contains("kernel.hsaco"))
                .fold(String::new(), |t, l| t + l + "\n"),
        )
    }
}

const VERSION: &str =
    "!llvm.module.flags = !{!0}\n!0 = !{i32 1, !\"amdhsa_code_object_version\", i32 500}\n";

/// A kernel that reads a table of constants.
const TABLE: &str = "\
@table = internal addrspace(4) constant [4 x i32] [i32 11, i32 22, i32 33, i32 44]
@other = internal addrspace(4) constant [3 x i64] [i64 5, i64 6, i64 7], align 256
define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %n) #0 {
  %m = and i32 %n, 3
  %at = getelementptr i32, ptr addrspace(4) @table, i32 %m
  %v = load i32, ptr addrspace(4) %at
  %too = getelementptr i64, ptr addrspace(4) @other, i32 %m
  %w = load volatile i64, ptr addrspace(4) %too
  store i64 %w, ptr addrspace(1) %p
  store i32 %v, ptr addrspace(1) %p
  ret void
}
attributes #0 = { \"amdgpu-flat-work-group-size\"=\"1,64\" }
";

type File<'a> = ElfFile64<'a, LE>;

/// Name, size, info, other of each dynamic symbol.
fn dynamic_symbols<'a>(file: &File<'a>) -> Vec<(&'a str, u64, u8, u8)> {
    let facts = |s: object::read::elf::ElfSymbol64<'a, '_, LE>| {
        let SymbolFlags::Elf { st_info, st_other } = s.flags() else { panic!("flags") };
        (s.name().unwrap(), s.size(), st_info, st_other)
    };
    file.dynamic_symbols().map(facts).collect()
}

fn section<'a>(file: &File<'a>, name: &str) -> &'a [u8] {
    file.section_by_name(name).unwrap().data().unwrap()
}

/// The bytes in memory at an address.
fn memory<'a>(file: &File<'a>, address: u64) -> &'a [u8] {
    let s = file
        .sections()
        .find(|s| s.address() != 0 && (s.address()..s.address() + s.size()).contains(&address))
        .unwrap_or_else(|| panic!("nothing at {address:#x}"));
    &s.data().unwrap()[(address - s.address()) as usize..]
}

/// Laws of segments: congruent, apart in memory, and every section in the memory of its segment.
fn check_segments(file: &File<'_>) {
    let loads: Vec<&ProgramHeader64<LE>> =
        file.elf_program_headers().iter().filter(|p| p.p_type(LE) == elf::PT_LOAD).collect();
    assert_eq!(loads.len(), 3);
    let mut end = 0;
    for p in &loads {
        assert_eq!(p.p_offset(LE) % p.p_align(LE), p.p_vaddr(LE) % p.p_align(LE));
        assert!(p.p_vaddr(LE) >= end, "segments overlap");
        end = (p.p_vaddr(LE) + p.p_memsz(LE)).next_multiple_of(0x1000);
        assert_ne!(p.p_flags(LE) & (elf::PF_W | elf::PF_X), elf::PF_W | elf::PF_X);
    }
    for s in file.sections() {
        let header = s.elf_section_header();
        if header.sh_flags(LE) & u64::from(elf::SHF_ALLOC) == 0 {
            assert_eq!(s.address(), 0);
            continue;
        }
        assert_eq!(s.address() % s.align(), 0, "{:?}", s.name());
        let is_home = |p: &&ProgramHeader64<LE>| {
            (p.p_vaddr(LE)..p.p_vaddr(LE) + p.p_memsz(LE)).contains(&s.address())
        };
        let p = loads.iter().find(|p| is_home(p)).unwrap();
        assert_eq!(s.address() - p.p_vaddr(LE), header.sh_offset(LE) - p.p_offset(LE));
        assert!(s.address() + s.size() <= p.p_vaddr(LE) + p.p_memsz(LE));
    }
}

/// Both hash tables lead to every dynamic symbol.
fn check_hashes(file: &File<'_>) {
    let data = file.data();
    let sections = file.elf_section_table();
    let symbols = file.elf_dynamic_symbol_table();
    let (hash, _) = sections.hash(LE, data).unwrap().unwrap();
    let (gnu, _) = sections.gnu_hash(LE, data).unwrap().unwrap();
    for symbol in file.dynamic_symbols() {
        let name = symbol.name_bytes().unwrap();
        let by_hash = hash.find(LE, name, elf::hash(name), None, symbols, &Default::default());
        let by_gnu = gnu.find(LE, name, elf::gnu_hash(name), None, symbols, &Default::default());
        for found in [by_hash, by_gnu] {
            assert_eq!(found.unwrap().0, symbol.index(), "{:?}", symbol.name());
        }
    }
}

/// What drivers do with a descriptor: its code lies at an offset from it.
fn check_descriptors(file: &File<'_>) {
    let table = file.dynamic_symbol_table().unwrap();
    let mut count = 0;
    for descriptor in table.symbols() {
        let Some(kernel) = descriptor.name().unwrap().strip_suffix(".kd") else { continue };
        let code = table.symbols().find(|s| s.name() == Ok(kernel)).unwrap();
        // `kernel_code_entry_byte_offset`.
        let bytes = memory(file, descriptor.address())[16..24].try_into().unwrap();
        let entry = descriptor.address().wrapping_add_signed(i64::from_le_bytes(bytes));
        assert_eq!(entry, code.address(), "{kernel}");
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn kernels_are_linked_as_by_lld() {
    let Some(tools) = Tools::find() else { return };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../spirv/tests/kernels");
    let kernels = ["reduction", "atomics", "structs"];
    for processor in PROCESSORS {
        let target = HipTarget::new(processor).unwrap();
        let emitter =
            HipEmitter { target: &target, sources: None, llvm: &tools.llvm, linker: &tools.lld };
        let modules = read_folder(folder).into_iter().filter(|file| {
            kernels.contains(&file.path.file_stem().and_then(|s| s.to_str()).unwrap())
        });
        let mut objects: Vec<Vec<u8>> = modules
            .map(|file| {
                let (kernel, types) = (&file.module.fns[0], &file.module.types);
                let layout = emitter.layout(kernel, types);
                let ir = emitter.write_ir(kernel, types, &layout).unwrap();
                let triple = target.flavor().triple();
                let (cpu, output) = (processor, Output::Object);
                let job = Job { ir: &ir, triple, cpu, features: "", output };
                tools.llvm.compile(&job).unwrap()
            })
            .collect();
        assert_eq!(objects.len(), kernels.len());
        objects.push(tools.object(TABLE, processor));
        for object in &objects {
            check_linked(&tools, object, processor);
        }
    }
}

fn check_linked(tools: &Tools, object: &[u8], processor: &str) {
    let (own, other) = (link(object).unwrap(), tools.lld.link(object).unwrap());
    assert_eq!(own, link(object).unwrap());
    let (ours, theirs) = (File::parse(&*own).unwrap(), File::parse(&*other).unwrap());
    let header = |file: &File<'_>| {
        let h = file.elf_header();
        (h.e_ident, h.e_type(LE), h.e_machine(LE), h.e_version(LE), h.e_entry(LE), h.e_flags(LE))
    };
    assert_eq!(format!("{:?}", header(&ours)), format!("{:?}", header(&theirs)));
    assert_eq!(section(&ours, ".note"), section(&theirs, ".note"));
    let sorted = |file: &File<'_>| {
        let mut symbols: Vec<_> =
            dynamic_symbols(file).into_iter().map(|s| (s.0.to_string(), s.1, s.2, s.3)).collect();
        symbols.sort();
        symbols
    };
    assert_eq!(sorted(&ours), sorted(&theirs));
    assert!(ours.dynamic_relocations().is_none_or(|mut r| r.next().is_none()));
    check_segments(&ours);
    check_hashes(&ours);
    check_descriptors(&ours);

    let cpu = format!("--mcpu={processor}");
    let arguments = ["-d", "--no-leading-addr", "--no-show-raw-insn", &cpu];
    let Some(text) = tools.show("llvm-objdump", &arguments, &own) else { return };
    let theirs = tools.show("llvm-objdump", &arguments, &other).unwrap();
    // Comments have addresses, and literals distances to constants.
    let code = |text: &str| {
        text.lines()
            .map(|l| l.split("//").next().unwrap_or_default().trim_end())
            .map(|l| match l.contains("s_add") {
                true => l.rsplit_once(", 0x").map_or(l, |s| s.0),
                false => l,
            })
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(text.contains("s_endpgm"), "{text}");
    assert_eq!(code(&text), code(&theirs));

    let arguments = ["-aW"];
    let said = tools.show("llvm-readelf", &arguments, &own).unwrap();
    assert!(said.contains("amdhsa.kernels"), "{said}");
}

/// The distances in the code lead to the constants.
#[test]
fn references_to_constants_are_filled_in() {
    let Some(tools) = Tools::find() else { return };
    for processor in PROCESSORS {
        let object = tools.object(TABLE, processor);
        let input = super::Input::read(&object).unwrap();
        let linked = link(&object).unwrap();
        let file = File::parse(&*linked).unwrap();
        let text = file.section_by_name(".text").unwrap();
        let word = |offset: u64| {
            let at = offset as usize;
            u32::from_le_bytes(text.data().unwrap()[at..at + 4].try_into().unwrap())
        };
        let in_text =
            |r: &&super::input::Relocation| input.sections[r.section].section.name == b".text";
        let places: Vec<u64> = input.relocations.iter().filter(in_text).map(|r| r.offset).collect();
        // Pairs: `s_getpc_b64`, then `s_add_u32` with the low half and `s_addc_u32` with the high one.
        let targets = places.chunks(2).map(|pair| {
            let distance = u64::from(word(pair[0])) | u64::from(word(pair[1])) << 32;
            // The first instruction gives the address of the second, whose literal is 4 bytes in.
            (text.address() + pair[0] - 4).wrapping_add(distance)
        });
        let mut tables: Vec<[u32; 3]> = targets
            .map(|target| {
                let bytes = memory(&file, target);
                [0, 4, 8].map(|n| u32::from_le_bytes(bytes[n..n + 4].try_into().unwrap()))
            })
            .collect();
        tables.sort_unstable();
        assert_eq!(tables, [[5, 0, 6], [11, 22, 33]], "{processor}");
    }
}

#[test]
fn what_is_not_known_is_refused() {
    let Some(tools) = Tools::find() else { return };
    let refused = |ir: &str, why: &str| {
        let object = tools.object(ir, "gfx90a");
        let e = link(&object).unwrap_err();
        assert!(e.contains(why), "{e}");
        object
    };
    let kernel = |global: &str, body: &str| {
        format!(
            "{global}\ndefine amdgpu_kernel void @k(ptr addrspace(1) %p) {{\n{body}\n  ret void\n}}\n"
        )
    };
    let load = "%v = load i32, ptr addrspace(1) @g\n  store i32 %v, ptr addrspace(1) %p";
    // What these lack lld knows.
    let data =
        refused(&kernel("@g = addrspace(1) global i32 7", load), "`.data` that kernels write");
    assert!(tools.lld.link(&data).is_ok());
    let zeros = refused(&kernel("@g = addrspace(1) global i32 0", load), "`.bss` of another kind");
    assert!(tools.lld.link(&zeros).is_ok());
    let addresses = "@g = internal addrspace(4) constant [2 x ptr addrspace(4)] \
                     [ptr addrspace(4) @h, ptr addrspace(4) null]\n\
                     @h = addrspace(4) constant i32 4";
    let body = "%v = load volatile i64, ptr addrspace(4) @g\n  store i64 %v, ptr addrspace(1) %p";
    let absolute = refused(&kernel(addresses, body), "");
    assert!(tools.lld.link(&absolute).is_ok());
    // Nobody knows what is defined nowhere.
    let undefined =
        refused(&kernel("@g = external addrspace(1) global i32", load), "`g`, which is not");
    assert!(tools.lld.link(&undefined).is_err());
}

/// Objects that are cut off, or have one byte changed, are linked or refused.
#[test]
fn broken_objects_do_no_harm() {
    let Some(tools) = Tools::find() else { return };
    let object = tools.object(TABLE, "gfx1030");
    assert!(link(&object).is_ok() && link(b"").is_err() && link(b"\x7fELF").is_err());
    for end in 0..object.len() {
        let _ = link(&object[..end]);
    }
    for at in 0..object.len() {
        for value in [0, 1, 0x7f, 0xff, object[at] ^ 0x10] {
            let mut broken = object.clone();
            broken[at] = value;
            let _ = link(&broken);
        }
    }
}
