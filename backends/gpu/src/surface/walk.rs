//! The walk from a kernel through everything it reaches.

use super::host_ops::{POINTER_OPS, host_inst};
use super::{Checker, RuleSet, short_name};
use crate::capability::{ATOMICS, Capability};
use crate::layout::add_shared;
use crate::structurize::StructurizeError;
use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::analysis::{Cfg, Dominators, Loops};
use magpie_mpir::{FnId, Inst, MpirFn, Op, Value, ValueDef};
use magpie_types::kernel::GpuBackend;
use magpie_types::{PrimType, TypeKind};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Not,
    /// Its calls are being followed.
    Open,
    Done,
}

/// A function whose instructions are being checked.
struct Place {
    id: FnId,
    block: usize,
    inst: usize,
}

impl Checker<'_> {
    /// Checks the kernel and the functions it reaches, each once, in the order of execution: a
    /// callee at its first call.
    pub(super) fn walk(&mut self, kernel: FnId) {
        let mut visits = vec![Visit::Not; self.module.fns.len()];
        let mut stack = vec![self.open(kernel, kernel, &mut visits)];
        while let Some(place) = stack.last_mut() {
            let f = self.module.func(place.id);
            let Some(block) = f.blocks.get(place.block) else {
                visits[place.id.index()] = Visit::Done;
                stack.pop();
                continue;
            };
            let Some(&i) = block.insts.get(place.inst) else {
                place.block += 1;
                place.inst = 0;
                if let Some(v) = block.term.operand() {
                    self.constant_operand(f, v, block.term_span);
                }
                continue;
            };
            place.inst += 1;
            self.inst(f, i);
            let callee = f.inst(i).func();
            if f.inst(i).op == Op::Call && callee.index() < visits.len() {
                match visits[callee.index()] {
                    Visit::Not => stack.push(self.open(callee, kernel, &mut visits)),
                    Visit::Open => self.recursion(f, i, callee),
                    Visit::Done => {}
                }
            }
        }
    }

    fn open(&mut self, id: FnId, kernel: FnId, visits: &mut [Visit]) -> Place {
        visits[id.index()] = Visit::Open;
        let f = self.module.func(id);
        let note = if id == kernel { String::new() } else { self.reached_note(f) };
        for (n, &(_, ty)) in f.params.iter().enumerate() {
            if let Some(fault) = self.type_fault(ty) {
                let at = f.param_spans.get(n).copied().unwrap_or(Span::NONE);
                let name = f.param_names.get(n).map_or("", String::as_str);
                self.report_type(fault, at, &format!("parameter `%{name}`"), &note);
            }
        }
        self.flow(f);
        Place { id, block: 0, inst: 0 }
    }

    fn reached_note(&self, f: &MpirFn) -> String {
        format!("kernel `{}` reaches `{}`", short_name(self.kernel), short_name(f))
    }

    /// The note for a finding in `f`; empty in the kernel itself.
    fn note(&self, f: &MpirFn) -> String {
        if std::ptr::eq(f, self.kernel) { String::new() } else { self.reached_note(f) }
    }

    fn recursion(&mut self, f: &MpirFn, call: Inst, callee: FnId) {
        if !self.forbids(RuleSet::RECURSION) || self.allows(Capability::Recursion) {
            return;
        }
        let (caller, callee) = (short_name(f), short_name(self.module.func(callee)));
        let message = match caller == callee {
            true => format!("`{caller}` calls itself"),
            false => format!("this call of `{callee}` in `{caller}` closes a circle of calls"),
        };
        let d = Diagnostic::new(Code::MPG_CORE_1103, f.inst(call).span, message);
        let note = self.note(f);
        let d = if note.is_empty() { d } else { d.with_note(note) };
        self.report(d.with_help("write a loop"));
    }

    fn flow(&mut self, f: &MpirFn) {
        let is_structured = matches!(self.target, GpuBackend::Msl | GpuBackend::Wgsl);
        if !is_structured || !self.forbids(RuleSet::IRREDUCIBLE_FLOW) || f.blocks.is_empty() {
            return;
        }
        let cfg = Cfg::new(f);
        if !Loops::new(&cfg, &Dominators::new(&cfg)).is_reducible() {
            let mut d = StructurizeError::find(f, &cfg).to_diagnostic(f, self.target);
            d.primary = self.head();
            let note = self.note(f);
            self.report(if note.is_empty() { d } else { d.with_note(note) });
        }
    }

    fn inst(&mut self, f: &MpirFn, i: Inst) {
        let data = *f.inst(i);
        let host = host_inst(&data).filter(|_| self.forbids(RuleSet::HOST_FEATURES));
        let specific = host.is_some_and(|h| h.code != Code::MPG_CORE_1304);
        let mut has_type_fault = false;
        if let Some(fault) = self.type_fault(data.ty)
            && !(specific && fault.code == Code::MPG_CORE_1304)
        {
            has_type_fault = true;
            let thing = format!("the result of `{}`", data.op.name());
            let note = self.note(f);
            self.report_type(fault, data.span, &thing, &note);
        }
        // Constants have no place of their own. Text may be printed.
        let is_pointer = matches!(self.module.types.kind(data.ty), TypeKind::RawPtr(_));
        for &v in f.args(i) {
            let is_text = matches!(self.module.types.kind(f.ty(v)), TypeKind::Str);
            let is_printed = is_text && data.op == Op::GpuPrint;
            if is_printed || (host.is_some() || is_pointer) && self.is_of_target(f, v) {
                continue;
            }
            // What is wrong with an operand is said where it is made; what a panic does is wrong
            // as well.
            let is_faulty = self.constant_operand(f, v, data.span) || self.is_of_host(f, v);
            has_type_fault |= is_faulty && data.op != Op::Panic;
        }
        if let Some(host) = host.filter(|h| h.code != Code::MPG_CORE_1304 || !has_type_fault) {
            let message = format!("`{}` {}", data.op.name(), host.text);
            let d = Diagnostic::new(host.code, data.span, message);
            let note = self.note(f);
            let d = if note.is_empty() { d } else { d.with_note(note) };
            self.report(d.with_help(host.help));
        }
        if POINTER_OPS.contains(&data.op) || data.op == Op::BitsCast {
            self.pointer_operand(f, i);
        }
        self.capability(f, i);
        if data.op == Op::GpuShared {
            self.shared(f, i);
        }
    }

    /// Whether the type of a value is missing on the target only.
    fn is_of_target(&mut self, f: &MpirFn, v: Value) -> bool {
        self.type_fault(f.ty(v)).is_some_and(|fault| fault.is_of_target())
    }

    /// Whether the type of a value exists on the host only.
    fn is_of_host(&mut self, f: &MpirFn, v: Value) -> bool {
        self.type_fault(f.ty(v)).is_some_and(|fault| !fault.is_of_target())
    }

    /// Reports a constant whose type may not exist, at the place that uses it.
    fn constant_operand(&mut self, f: &MpirFn, v: Value, at: Span) -> bool {
        if !matches!(f.def(v), ValueDef::Const(_)) {
            return false;
        }
        let Some(fault) = self.type_fault(f.ty(v)) else { return false };
        let thing = format!("a constant of type `{}`", self.module.types.name(f.ty(v)));
        let note = self.note(f);
        self.report_type(fault, at, &thing, &note);
        true
    }

    /// Raw pointers: the instruction that uses one is a fault of its own.
    fn pointer_operand(&mut self, f: &MpirFn, i: Inst) {
        let Some(&v) = f.args(i).first() else { return };
        if !matches!(self.module.types.kind(f.ty(v)), TypeKind::RawPtr(_)) {
            return;
        }
        if let Some(fault) = self.type_fault(f.ty(v)) {
            let thing = format!("an operand of `{}`", f.inst(i).op.name());
            let note = self.note(f);
            self.report_type(fault, f.inst(i).span, &thing, &note);
        }
    }

    fn capability(&mut self, f: &MpirFn, i: Inst) {
        if !self.forbids(RuleSet::UNDECLARED_CAPABILITIES) {
            return;
        }
        let data = *f.inst(i);
        let is_atomic = ATOMICS.contains(&data.op);
        let elem = match is_atomic {
            true => self.module.types.element_prim(data.ty),
            false => None,
        };
        let note = self.note(f);
        let add_note = |d: Diagnostic| if note.is_empty() { d } else { d.with_note(&*note) };
        if is_atomic && !is_atomic_type(data.op, elem) {
            let name = self.module.types.name(data.ty);
            let message = format!("`{}` does not work on `{name}`", data.op.name());
            let d = Diagnostic::new(Code::MPG_CORE_1304, data.span, message);
            self.report(add_note(d).with_help("use `i32`, `u32`, `i64` or `u64`"));
            return;
        }
        let Some(needed) = Capability::of(data.op, elem) else { return };
        if self.allows(needed) {
            return;
        }
        let code = match needed.is_metal() {
            true => Code::MPG_MSL_2003,
            false => Code::MPG_CORE_1201,
        };
        let word = needed.word();
        let message = format!("`{}` needs the capability `{word}`", data.op.name());
        let is_unsafe = self.kernel.gpu_meta.as_ref().is_some_and(|m| m.is_unsafe);
        let help = match is_unsafe {
            true => format!("add `{word}` to the `requires` clause of the kernel"),
            false => format!("write `unsafe gpu fn` with `requires({word})`"),
        };
        let d = add_note(Diagnostic::new(code, data.span, message));
        self.report(d.with_help(help));
    }

    fn shared(&mut self, f: &MpirFn, i: Inst) {
        if !self.forbids(RuleSet::EXCESS) || self.exceeds_shared {
            return;
        }
        self.shared_bytes =
            add_shared(self.shared_bytes, &self.module.types, f.inst(i).ty, self.bool_size());
        let limit = self.limits.shared_bytes as u64;
        if self.shared_bytes > limit {
            self.exceeds_shared = true;
            let code = match self.target {
                GpuBackend::Msl => Code::MPG_MSL_2001,
                GpuBackend::Ptx => Code::MPG_PTX_2001,
                GpuBackend::Hip => Code::MPG_HIP_2001,
                GpuBackend::Wgsl => Code::MPG_WGSL_2001,
                GpuBackend::Spv | GpuBackend::Cpu | GpuBackend::Interp => Code::MPG_SPV_2001,
            };
            let message = format!(
                "with this array kernel `{}` takes {} bytes of shared memory; {} allows {limit}",
                short_name(self.kernel),
                self.shared_bytes,
                self.target.name()
            );
            let note = self.note(f);
            let d = Diagnostic::new(code, f.inst(i).span, message);
            let d = if note.is_empty() { d } else { d.with_note(note) };
            self.report(d.with_help("work in smaller tiles, or use a narrower element type"));
        }
    }

    /// Bytes of a `bool` in shared memory: WGSL keeps it in a word.
    fn bool_size(&self) -> u32 {
        if self.target == GpuBackend::Wgsl { 4 } else { 1 }
    }
}

/// Whether an atomic exists on a scalar type.
fn is_atomic_type(op: Op, elem: Option<PrimType>) -> bool {
    let is_bitwise = matches!(op, Op::GpuAtomicAnd | Op::GpuAtomicOr | Op::GpuAtomicXor);
    match elem {
        Some(PrimType::I32 | PrimType::U32 | PrimType::I64 | PrimType::U64) => true,
        Some(PrimType::F32 | PrimType::F64) => !is_bitwise,
        _ => false,
    }
}
