//! `magpie build --emit exe`: a program that needs nothing but itself.
//!
//! An executable is this command with a program behind it: a head in JSON, the program in MPIR and
//! the kernels that were compiled for it, then a trailer by which the command finds them when it
//! starts. Machine code is made at the start, for the processor at hand, and a kernel that no blob
//! fits is compiled for the device at hand: one file works on every device. The sources are not in
//! it, only where their lines end, so that messages name places.

use crate::frontend::{Program, attached};
use crate::manifest::{FILE_NAME, Manifest};
use crate::options::{Fallback, Options};
use crate::project::Project;
use crate::run::Blobs;
use crate::session::{Session, Stop};
use magpie_diag::{Code, SourceMap, Span};
use magpie_mpir::{FnId, Module, parse, print_module};
use magpie_types::kernel::KernelBlob;
use magpie_types::kernel_codec;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Last bytes of an executable with a program, with the version of the format.
const MAGIC: &[u8; 8] = b"MPGEXE01";

/// Hash and length of the program, then [`MAGIC`].
const TRAILER: usize = blake3::OUT_LEN + 8 + MAGIC.len();

/// What is said of a program before its parts.
#[derive(Serialize, Deserialize, Debug)]
struct Head {
    /// Name of the function that it starts with.
    main: String,
    /// The name of each source, and its outline.
    sources: Vec<(String, String)>,
    manifest: Option<String>,
    profile: String,
    opt_level: u8,
    cpu_fallback: Option<bool>,
    /// Bytes of the program in MPIR.
    module: usize,
    /// Hash of the stable id of each kernel, and bytes of its blobs.
    kernels: Vec<(u64, Vec<usize>)>,
}

/// The executable for a program: this command with the program behind it.
///
/// # Errors
/// Why this command cannot be read, or a kernel not be stored.
pub(crate) fn executable(
    options: &Options,
    project: &Project,
    program: &Program,
    main: &str,
    sources: &SourceMap,
    kernels: &[(u64, Vec<KernelBlob>)],
) -> Result<Vec<u8>, String> {
    let manifest = project.root.join(FILE_NAME);
    let manifest = match project.has_manifest {
        true => Some(std::fs::read_to_string(manifest).map_err(|error| error.to_string())?),
        false => None,
    };
    let module = print_module(&program.module);
    let mut blobs = Vec::new();
    let mut sizes = Vec::new();
    for (hash, of_kernel) in kernels {
        let mut lengths = Vec::new();
        for blob in of_kernel {
            let bytes = kernel_codec::encode(blob).map_err(|error| error.to_string())?;
            lengths.push(bytes.len());
            blobs.extend(bytes);
        }
        sizes.push((*hash, lengths));
    }
    let head = Head {
        main: main.to_string(),
        sources: sources.iter().map(|(_, file)| (file.name.clone(), outline(&file.text))).collect(),
        manifest,
        profile: project.profile.clone(),
        opt_level: options.opt_level,
        cpu_fallback: options.gpu_fallback.map(|fallback| fallback == Fallback::Cpu),
        module: module.len(),
        kernels: sizes,
    };
    let head = serde_json::to_vec(&head).map_err(|error| error.to_string())?;
    let mut image = (head.len() as u64).to_le_bytes().to_vec();
    image.extend(head);
    image.extend(module.as_bytes());
    image.extend(blobs);

    let mut bytes = own_file().and_then(std::fs::read).map_err(|error| {
        format!("this command, of which executables are made, cannot be read: {error}")
    })?;
    let hash = blake3::hash(&image);
    let length = (image.len() as u64).to_le_bytes();
    bytes.extend(image);
    bytes.extend(hash.as_bytes());
    bytes.extend(length);
    bytes.extend(MAGIC);
    Ok(bytes)
}

fn own_file() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// An invisible character of four bytes; no white space has as many.
const FOUR_BYTES: char = '\u{E0020}';

/// A text of which only the lengths of lines and characters are left.
fn outline(text: &str) -> String {
    let plain = |c: char| match (c, c.len_utf8()) {
        ('\n' | '\r', _) => c,
        (_, 1) => ' ',
        (_, 2) => '\u{A0}',
        (_, 3) => '\u{2003}',
        _ => FOUR_BYTES,
    };
    text.chars().map(plain).collect()
}

/// The program behind this command, as bytes.
#[derive(Debug)]
pub struct AttachedProgram(Vec<u8>);

/// The program behind this command. `None` when it is the command itself.
///
/// # Errors
/// The file was damaged.
pub fn attached_program() -> Option<Result<AttachedProgram, String>> {
    // A command that cannot read itself goes on as the command.
    let mut file = own_file().and_then(File::open).ok()?;
    read_attached(&mut file).ok()?
}

fn read_attached(file: &mut File) -> io::Result<Option<Result<AttachedProgram, String>>> {
    let mut trailer = [0; TRAILER];
    let end = file.seek(SeekFrom::End(0))?;
    let Some(start) = end.checked_sub(TRAILER as u64) else { return Ok(None) };
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut trailer)?;
    let (hash, rest) = trailer.split_at(blake3::OUT_LEN);
    let (length, magic) = rest.split_at(8);
    if magic != MAGIC {
        return Ok(None);
    }
    let damaged = || Ok(Some(Err("this file is damaged".to_string())));
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    let Some(from) = start.checked_sub(length) else { return damaged() };
    let mut image = vec![0; length as usize];
    file.seek(SeekFrom::Start(from))?;
    file.read_exact(&mut image)?;
    if blake3::hash(&image).as_bytes() != hash {
        return damaged();
    }
    Ok(Some(Ok(AttachedProgram(image))))
}

/// The parts of an attached program.
pub(crate) struct Parts {
    pub(crate) program: Program,
    pub(crate) main: FnId,
    pub(crate) project: Project,
    pub(crate) blobs: Blobs,
}

impl AttachedProgram {
    /// Takes the program apart; the choices made when it was built hold unless the session's
    /// options say otherwise.
    ///
    /// # Errors
    /// It was made by another version of the command.
    pub(crate) fn parts(&self, session: &mut Session) -> Result<Parts, Stop> {
        self.read(session).map_err(|why| {
            let message = format!("the program in this file cannot be read: {why}");
            session.refuse(Code::MPL0004, message, "build it again")
        })
    }

    fn read(&self, session: &mut Session) -> Result<Parts, String> {
        let cut = || "it is cut off".to_string();
        let mut rest = self.0.as_slice();
        let mut take = |count: usize| {
            let (part, behind) = rest.split_at_checked(count).ok_or_else(cut)?;
            rest = behind;
            Ok::<&[u8], String>(part)
        };
        let length = take(8)?.try_into().map(u64::from_le_bytes).unwrap_or_default();
        let head = take(usize::try_from(length).map_err(|_| cut())?)?;
        let head: Head = serde_json::from_slice(head).map_err(|error| error.to_string())?;
        let text = std::str::from_utf8(take(head.module)?).map_err(|error| error.to_string())?;
        let mut blobs = Blobs::default();
        for (hash, lengths) in &head.kernels {
            for &length in lengths {
                let blob =
                    kernel_codec::decode(take(length)?).map_err(|error| error.to_string())?;
                blobs.entry(*hash).or_default().push(blob);
            }
        }
        for (name, outline) in &head.sources {
            session.sources.add(name, outline);
        }
        let module = read_module(text)?;
        let (program, main) = attached(module, &head.main).ok_or("it has no beginning")?;
        let options = &mut session.options;
        options.opt_level = head.opt_level;
        options.gpu_fallback = options.gpu_fallback.or(head.cpu_fallback.map(|cpu| match cpu {
            true => Fallback::Cpu,
            false => Fallback::None,
        }));
        let has_manifest = head.manifest.is_some();
        // What is wrong with the manifest was said when the program was built.
        let manifest = head
            .manifest
            .map_or_else(Manifest::default, |text| Manifest::parse(&text, Span::NONE.file).0);
        let entry = PathBuf::new();
        let root = PathBuf::new();
        let project = Project { entry, root, has_manifest, manifest, profile: head.profile };
        Ok(Parts { program, main, project, blobs })
    }
}

fn read_module(text: &str) -> Result<Module, String> {
    parse(text, Span::NONE.file)
        .map_err(|errors| errors.first().map_or_else(String::new, |error| error.message.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_and_texts_go() {
        let text = "let é = 1\r\n\tx = \u{1F426} + 你\n";
        let (mut before, mut after) = (SourceMap::new(), SourceMap::new());
        let file = before.add("a.mi", text);
        assert_eq!(after.add("a.mi", outline(text)), file);
        for (at, _) in text.char_indices() {
            let span = Span::new(file, at as u32, at as u32);
            assert_eq!(before.describe(span), after.describe(span), "{at}");
        }
        let is_blank = |c: char| c.is_whitespace() || c == FOUR_BYTES;
        assert!(outline(text).chars().all(is_blank));
    }
}
