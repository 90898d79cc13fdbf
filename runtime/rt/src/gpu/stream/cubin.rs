//! From PTX to machine code of a device, kept on disk between processes.
//!
//! One file a kernel body, device, driver version and register budget:
//! `cuda-<hash>.cubin` in the user's cache folder.

use super::adapter::Adapter;
use super::api::{Handle, Linker};
use super::core::Core;
use super::cuda::{ERROR_LOG, ERROR_LOG_BYTES, INPUT_PTX};
use super::error::error;
use crate::gpu::cache_file::{self, Magic};
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use std::ffi::{CString, c_int, c_void};
use std::path::{Path, PathBuf};

const MAGIC: &Magic = b"MPGCUBN1";

/// Room for what the assembler has to say.
const LOG_BYTES: usize = 8192;

/// The directive that says how many invocations share the registers.
const BUDGET: &str = ".maxntid";

/// Where machine code is kept.
pub(super) struct Cubins {
    folder: Option<PathBuf>,
    /// Hash of what the machine code depends on besides the text.
    device: blake3::Hasher,
}

impl Cubins {
    pub(super) fn new(folder: Option<&Path>, adapter: &Adapter, version: c_int) -> Cubins {
        let mut device = blake3::Hasher::new();
        device.update(&adapter.properties.uuid.unwrap_or_default());
        device.update(adapter.properties.name.as_bytes());
        device.update(&version.to_le_bytes());
        Cubins { folder: folder.map(Path::to_path_buf), device }
    }

    fn path(&self, text: &[u8]) -> Option<PathBuf> {
        let mut hasher = self.device.clone();
        hasher.update(text);
        let name = format!("cuda-{}.cubin", &hasher.finalize().to_hex()[..32]);
        self.folder.as_ref().map(|folder| folder.join(name))
    }

    /// The machine code of a PTX text, from disk or from the driver's assembler.
    pub(super) fn assemble(&self, core: &Core, name: &str, text: &[u8]) -> GpuResult<Vec<u8>> {
        let path = self.path(text);
        if let Some(known) = path.as_deref().and_then(|path| cache_file::read(MAGIC, path)) {
            return Ok(known);
        }
        let Some(linker) = &core.api.linker else {
            // The driver assembles when it loads.
            let mut image = text.to_vec();
            image.push(0);
            return Ok(image);
        };
        let code = link(core, linker, name, text)?;
        if let Some(path) = path {
            cache_file::write(MAGIC, &path, &code);
        }
        Ok(code)
    }

    /// Forgets machine code that the device did not take.
    pub(super) fn forget(&self, text: &[u8]) {
        if let Some(path) = self.path(text) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Has the driver's assembler make machine code for the current device.
fn link(core: &Core, linker: &Linker, name: &str, text: &[u8]) -> GpuResult<Vec<u8>> {
    let call = |code: c_int, log: &[u8]| {
        core.check(code, String::new).map_err(|failure| {
            let end = log.iter().position(|&c| c == 0).unwrap_or(log.len());
            let said = String::from_utf8_lossy(&log[..end]);
            let said = said.trim();
            let (label, code) = (core.adapter.properties.label(), core.api.name_of(code));
            let mut message = format!("cannot assemble kernel `{name}` for {label}: {code}");
            if !said.is_empty() {
                message = format!("{message}: {said}");
            }
            let kind = match failure.kind {
                ErrorKind::OutOfMemory | ErrorKind::DeviceLost => failure.kind,
                _ => ErrorKind::CompilationFailed,
            };
            GpuError { kind, message, ..failure }
        })
    };
    let mut log = vec![0u8; LOG_BYTES];
    let mut options = [ERROR_LOG, ERROR_LOG_BYTES];
    // Numbers travel as pointers.
    let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
    let mut state: Handle = 0;
    let mut image = text.to_vec();
    image.push(0);
    let label = CString::new(name).unwrap_or_default();
    // SAFETY: options, values and the log live until the state is destroyed; the image has the
    // bytes that are told; the result is copied before the state goes.
    unsafe {
        let made = (linker.create)(2, options.as_mut_ptr(), values.as_mut_ptr(), &raw mut state);
        call(made, &log)?;
        let added = (linker.add)(
            state,
            INPUT_PTX,
            image.as_mut_ptr().cast(),
            image.len(),
            label.as_ptr(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        );
        let (mut code, mut bytes) = (std::ptr::null_mut(), 0usize);
        let finished = call(added, &log)
            .and_then(|()| call((linker.complete)(state, &raw mut code, &raw mut bytes), &log));
        let copied = finished.and_then(|()| {
            if code.is_null() || bytes == 0 {
                let message = format!("the assembler gave no code for kernel `{name}`");
                return Err(error(core.api.vendor, ErrorKind::CompilationFailed, message));
            }
            Ok(std::slice::from_raw_parts(code.cast::<u8>(), bytes).to_vec())
        });
        (linker.destroy)(state);
        copied
    }
}

/// The text with registers shared out among this many invocations.
pub(super) fn with_budget(text: &[u8], invocations: u32) -> Vec<u8> {
    let Some(at) = find(text, BUDGET.as_bytes()) else { return text.to_vec() };
    let rest = &text[at + BUDGET.len()..];
    let is_number = |c: &u8| c.is_ascii_digit() || matches!(c, b' ' | b',' | b'\t');
    let length = rest.iter().take_while(|c| is_number(c)).count();
    let new = format!("{BUDGET} {invocations}, 1, 1");
    [&text[..at], new.as_bytes(), &rest[length..]].concat()
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|w| w == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_replaced() {
        let text = b".entry k()\n.maxntid 64, 1, 1\n{ ret; }";
        assert_eq!(with_budget(text, 512), b".entry k()\n.maxntid 512, 1, 1\n{ ret; }");
        assert_eq!(with_budget(b".maxntid 64", 8), b".maxntid 8, 1, 1");
        assert_eq!(with_budget(b"{ ret; }", 8), b"{ ret; }");
    }
}
