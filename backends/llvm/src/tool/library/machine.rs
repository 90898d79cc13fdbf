//! Target machines: processors that code is generated for. They are kept, for making one costs as
//! much as a small kernel.

use super::Library;
use super::api::Guard;
use crate::tool::{Job, ToolError};
use std::ffi::{CString, c_char, c_int};
use std::sync::{Mutex, PoisonError};

/// Values of C enumerations.
const LEVEL_AGGRESSIVE: c_int = 3;
const RELOC_PIC: c_int = 2;
const CODE_MODEL_DEFAULT: c_int = 0;

/// More than are at work at once is seldom needed again.
const MAX_KEPT: usize = 16;

/// A processor with its features.
#[derive(Clone, PartialEq, Eq)]
struct Processor {
    triple: String,
    cpu: String,
    features: String,
}

/// A target machine, in use by one compilation.
pub(super) struct Machine {
    of: Processor,
    pub(super) handle: Guard,
}

// SAFETY: a target machine belongs to no thread and no context; one compilation at a time uses it.
unsafe impl Send for Machine {}

/// Target machines that are not in use.
#[derive(Default)]
pub(super) struct Machines(Mutex<Vec<Machine>>);

impl Machines {
    fn take(&self, processor: &Processor) -> Option<Machine> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|machine| machine.of == *processor)?;
        Some(kept.swap_remove(at))
    }

    /// Keeps a machine for later.
    pub(super) fn keep(&self, machine: Machine) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_KEPT {
            kept.push(machine);
        }
    }
}

impl Library {
    /// A machine for a job.
    pub(super) fn machine(&self, job: &Job<'_>) -> Result<Machine, ToolError> {
        let [triple, cpu, features] = [job.triple, job.cpu, job.features].map(String::from);
        let of = Processor { triple, cpu, features };
        if let Some(machine) = self.machines.take(&of) {
            return Ok(machine);
        }
        let api = &self.api;
        let text = |s: &str| CString::new(s).map_err(|_| self.failed("got a zero byte", s));
        let (triple, cpu, features) = (text(job.triple)?, text(job.cpu)?, text(job.features)?);
        let mut message: *mut c_char = std::ptr::null_mut();
        let mut target = std::ptr::null_mut();
        // SAFETY: strings that end in a zero, and two places to write to.
        let failed =
            unsafe { (api.LLVMGetTargetFromTriple)(triple.as_ptr(), &mut target, &mut message) };
        if failed != 0 {
            return Err(self.failed("does not know the target", &self.take(message)));
        }
        // SAFETY: the target was found just now.
        let handle = unsafe {
            (api.LLVMCreateTargetMachine)(
                target,
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                LEVEL_AGGRESSIVE,
                RELOC_PIC,
                CODE_MODEL_DEFAULT,
            )
        };
        if handle.is_null() {
            return Err(self.failed("cannot generate code for the target", job.cpu));
        }
        Ok(Machine { of, handle: Guard(handle, api.LLVMDisposeTargetMachine) })
    }
}
