//! Rules about the head of a kernel: its clauses, result and parameters as a whole.

use super::{Checker, RuleSet, short_name};
use crate::capability::Capability;
use magpie_diag::{Code, Diagnostic, Span, closest};
use magpie_types::kernel::GpuBackend;
use magpie_types::{TypeKind, fixed};

impl Checker<'_> {
    pub(super) fn clauses(&mut self) {
        if self.forbids(RuleSet::HOST_FEATURES) && self.kernel.ret_ty != fixed::UNIT {
            let name = short_name(self.kernel);
            let message = format!("kernel `{name}` has a result");
            let d = Diagnostic::new(Code::MPG_CORE_1303, self.head(), message);
            self.report(d.with_help("write `-> unit`, and store results in a buffer"));
        }
        if self.forbids(RuleSet::UNDECLARED_CAPABILITIES) {
            self.capabilities();
        }
        if self.forbids(RuleSet::EXCESS) {
            self.workgroup();
            self.buffer_count();
        }
        if self.forbids(RuleSet::PADDED_ELEMENTS) && self.target == GpuBackend::Spv {
            self.padding();
        }
    }

    /// The place of a clause, or of the head when the clause is not written.
    fn clause(&self, span: Span) -> Span {
        if span.is_some() { span } else { self.head() }
    }

    fn capabilities(&mut self) {
        let Some(meta) = &self.kernel.gpu_meta else { return };
        let name = short_name(self.kernel);
        if meta.is_unsafe {
            let message = format!(
                "kernel `{name}` is `unsafe`: it is compiled for {} only",
                meta.target.name()
            );
            let d = Diagnostic::new(Code::MPG_CORE_1202, self.head(), message);
            self.report(d.with_help("drop `unsafe` if it shall run on every device"));
        }
        if meta.is_unsafe && meta.requires.is_empty() {
            let message = format!("`unsafe gpu fn {name}` has no `requires` clause");
            let d = Diagnostic::new(Code::MPG_CORE_1201, self.head(), message);
            self.report(d.with_help(
                "list the capabilities it uses, as in `requires(subgroups)`, or drop `unsafe`",
            ));
        }
        for word in &meta.requires {
            let at = self.clause(meta.spans.requires);
            let target = self.target.name();
            match Capability::from_word(word) {
                None => self.out.push(unknown_capability(word, at)),
                Some(capability) if capability.is_on(self.target) => {}
                Some(_) if self.target == GpuBackend::Wgsl => {
                    let message = format!("wgsl has no capability `{word}`");
                    let d = Diagnostic::new(Code::MPG_WGSL_1004, at, message);
                    self.out.push(
                        d.with_help("only `f16_arithmetic` exists there; use another target"),
                    );
                }
                Some(capability) => {
                    let message = format!("{target} has no capability `{word}`");
                    let d = Diagnostic::new(Code::MPG_CORE_1200, at, message);
                    self.out.push(d.with_help(format!(
                        "declare a target that has it ({}), or do without",
                        names(capability.targets())
                    )));
                }
            }
        }
    }

    fn workgroup(&mut self) {
        let Some(meta) = &self.kernel.gpu_meta else { return };
        let at = self.clause(meta.spans.workgroup);
        let [x, y, z] = meta.workgroup;
        let limits = self.limits;
        let target = self.target.name();
        let invocations = meta.workgroup.iter().fold(1u128, |n, &d| n * d as u128);
        let too_wide = meta.workgroup.iter().position(|&d| d > 256);
        let fault = if meta.workgroup.contains(&0) {
            let message = format!("workgroup({x}, {y}, {z}) has a dimension of 0");
            Some((Code::MPG_CORE_1302, message, "dimensions that are not used are 1".to_string()))
        } else if let (GpuBackend::Wgsl, Some(dim)) = (self.target, too_wide) {
            let message = format!(
                "workgroup({x}, {y}, {z}) has {} invocations in dimension {dim}; wgsl allows 256",
                meta.workgroup[dim]
            );
            let help = "make the workgroup smaller and launch more of them".to_string();
            Some((Code::MPG_WGSL_1006, message, help))
        } else if invocations > limits.workgroup_size as u128 {
            let message = format!(
                "workgroup({x}, {y}, {z}) has {invocations} invocations; {target} allows {}",
                limits.workgroup_size
            );
            let help = "make the workgroup smaller and launch more of them".to_string();
            Some((Code::MPG_CORE_1302, message, help))
        } else {
            let dim = (0..3).find(|&n| meta.workgroup[n] > limits.workgroup_dims[n]);
            dim.map(|dim| {
                let message = format!(
                    "workgroup({x}, {y}, {z}) has {} invocations in dimension {dim}; {target} \
                     allows {}",
                    meta.workgroup[dim], limits.workgroup_dims[dim]
                );
                let help = "put the larger sizes into the first dimensions".to_string();
                (Code::MPG_CORE_1302, message, help)
            })
        };
        if let Some((code, message, help)) = fault {
            self.report(Diagnostic::new(code, at, message).with_help(help));
        }
    }

    fn buffer_count(&mut self) {
        let is_buffer =
            |&(_, ty): &(_, _)| matches!(self.module.types.kind(ty), TypeKind::Buffer(_));
        let count = self.kernel.params.iter().filter(|p| is_buffer(p)).count();
        if count > self.limits.buffers as usize {
            let message = format!(
                "kernel `{}` has {count} buffers; {} guarantees {}",
                short_name(self.kernel),
                self.target.name(),
                self.limits.buffers
            );
            let d = Diagnostic::new(Code::MPG_WGSL_1005, self.head(), message);
            self.report(d.with_help(
                "put several arrays into one buffer and pass where each begins, or split the kernel",
            ));
        }
    }

    fn padding(&mut self) {
        let types = &self.module.types;
        for (n, &(_, ty)) in self.kernel.params.iter().enumerate() {
            let TypeKind::Buffer(elem) = types.kind(ty) else { continue };
            if !types.is_aggregate(elem) {
                continue;
            }
            let used: u32 = types.leaves(elem).iter().map(|l| types.layout(l.ty).size).sum();
            let stride = types.stride(elem);
            if used < stride {
                let message = format!(
                    "elements of `{}` take {stride} bytes in a buffer, {} of them unused",
                    types.name(elem),
                    stride - used
                );
                let at = self.kernel.param_spans.get(n).copied().unwrap_or(Span::NONE);
                let d = Diagnostic::new(Code::MPG_SPV_2003, at, message);
                self.report(
                    d.with_help("order the fields from wide to narrow, or use fields of one width"),
                );
            }
        }
    }
}

fn unknown_capability(word: &str, at: Span) -> Diagnostic {
    let d = Diagnostic::new(Code::MPG_CORE_1200, at, format!("there is no capability `{word}`"));
    match closest(word, Capability::ALL.iter().map(|c| c.word())) {
        Some(known) => d.with_help(format!("did you mean `{known}`?")),
        None => {
            let known: Vec<&str> = Capability::ALL.iter().map(|c| c.word()).collect();
            d.with_help(format!("the capabilities are {}", known.join(", ")))
        }
    }
}

fn names(targets: impl Iterator<Item = GpuBackend>) -> String {
    targets.map(|t| format!("`{}`", t.name())).collect::<Vec<_>>().join(", ")
}
