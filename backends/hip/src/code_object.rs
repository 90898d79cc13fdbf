//! Reading a code object back: what the driver will find in it.

use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{LittleEndian, Object, ObjectSymbol};

/// The machine number of AMD GPUs in ELF files.
const EM_AMDGPU: u16 = 224;
/// The type of the note with the metadata of kernels.
const NT_AMDGPU_METADATA: u32 = 32;

/// A kernel in a code object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelFacts {
    /// Its name.
    pub name: String,
    /// Bytes of its arguments, with those that the driver adds.
    pub kernarg_size: u64,
    /// Offset, size and kind of each argument, in order.
    pub args: Vec<ArgFacts>,
    /// The largest workgroup.
    pub max_workgroup: u64,
    /// Bytes of static shared memory.
    pub shared_bytes: u64,
    /// Lanes of a wavefront.
    pub wavefront: u64,
    /// Vector registers.
    pub vgprs: u64,
    /// Registers that were moved to memory for want of room.
    pub spills: u64,
}

/// An argument of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArgFacts {
    #[allow(missing_docs)]
    pub offset: u64,
    #[allow(missing_docs)]
    pub size: u64,
    /// `global_buffer`, `by_value`, `hidden_block_count_x`, …
    pub kind: String,
}

impl ArgFacts {
    /// Whether the driver adds it.
    pub fn is_hidden(&self) -> bool {
        self.kind.starts_with("hidden_")
    }
}

/// The facts about the kernel of a code object.
///
/// # Errors
/// What is not as it should be.
pub fn read(object: &[u8], name: &str) -> Result<KernelFacts, String> {
    let file = ElfFile64::<LittleEndian>::parse(object).map_err(|e| format!("no ELF file: {e}"))?;
    let header = file.elf_header();
    let endian = file.endian();
    if header.e_machine(endian) != EM_AMDGPU {
        return Err(format!("machine {}, not {EM_AMDGPU}", header.e_machine(endian)));
    }
    // The driver looks for the kernel's descriptor.
    let descriptor = format!("{name}.kd");
    if !file.dynamic_symbols().any(|s| s.name() == Ok(&descriptor) && s.is_definition()) {
        return Err(format!("no symbol `{descriptor}`"));
    }
    if let Some(missing) = file.dynamic_symbols().find(|s| s.is_undefined() && s.name() != Ok("")) {
        return Err(format!("an undefined symbol `{}`", missing.name().unwrap_or("?")));
    }
    let bad = |e: object::read::Error| format!("malformed: {e}");
    let sections = header.sections(endian, object).map_err(bad)?;
    for section in sections.iter() {
        let Some(mut notes) = section.notes(endian, object).map_err(bad)? else { continue };
        while let Some(note) = notes.next().map_err(bad)? {
            if note.n_type(endian) == NT_AMDGPU_METADATA && note.name() == b"AMDGPU" {
                return facts(note.desc(), name);
            }
        }
    }
    Err("no metadata".to_string())
}

/// Reads the metadata, a MessagePack document.
fn facts(document: &[u8], name: &str) -> Result<KernelFacts, String> {
    let document = crate::message_pack::parse(document)?;
    let kernels = document.get("amdhsa.kernels").and_then(|k| k.list()).unwrap_or_default();
    let kernel = kernels
        .iter()
        .find(|k| k.get(".name").and_then(|n| n.text()) == Some(name))
        .ok_or_else(|| format!("no metadata of a kernel `{name}`"))?;
    let number = |key: &str| {
        let value = kernel.get(key).and_then(|v| v.number());
        value.ok_or_else(|| format!("no `{key}` in the metadata"))
    };
    let args = kernel.get(".args").and_then(|a| a.list()).unwrap_or_default();
    let arg = |a: &crate::message_pack::Item<'_>| {
        let number = |key| a.get(key).and_then(|v| v.number());
        let kind = a.get(".value_kind")?.text()?.to_string();
        Some(ArgFacts { offset: number(".offset")?, size: number(".size")?, kind })
    };
    Ok(KernelFacts {
        name: name.to_string(),
        kernarg_size: number(".kernarg_segment_size")?,
        args: args
            .iter()
            .map(|a| arg(a).ok_or("an argument without size"))
            .collect::<Result<_, _>>()?,
        max_workgroup: number(".max_flat_workgroup_size")?,
        shared_bytes: number(".group_segment_fixed_size")?,
        wavefront: number(".wavefront_size")?,
        vgprs: number(".vgpr_count")?,
        spills: number(".vgpr_spill_count")?,
    })
}
