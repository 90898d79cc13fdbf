//! `meta` blocks: kept as they are written, or completed.

use super::*;
use std::collections::BTreeSet;

impl Printer<'_> {
    pub(super) fn meta(&mut self, function: &FnDecl) {
        let written = function.meta;
        let mut uses: Vec<String> = Vec::new();
        let mut effects: Vec<String> = Vec::new();
        if let Some(meta) = &written {
            uses.extend(self.ast[meta.uses].iter().map(|entry| match *entry {
                MetaUse::Function(id) => self.function_text(self.ast[id]),
                MetaUse::Path(path) => self.name(path.symbol).to_string(),
            }));
            effects.extend(self.ast[meta.effects].iter().map(|e| self.name(e.symbol).to_string()));
        }
        if self.completes_meta {
            self.complete(function, &mut uses, &mut effects);
        }
        let cost = written.map_or(Slice::EMPTY, |meta| meta.cost);
        if written.is_none() && uses.is_empty() && effects.is_empty() {
            return;
        }
        self.out.push_str(" meta {");
        for (word, entries) in [(" uses ", &uses), (" effects ", &effects)] {
            if !entries.is_empty() {
                self.out.push_str(word);
                let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
                self.braced(&entries, |p, entry| p.out.push_str(entry));
            }
        }
        if !cost.is_empty() {
            self.out.push_str(" cost ");
            self.braced(&self.ast[cost], |p, cost| {
                p.out.push_str(p.name(cost.key.symbol));
                p.out.push('=');
                p.literal(cost.amount, None);
            });
        }
        self.out.push_str(" }");
    }

    /// A reference to a function as it is written.
    fn function_text(&self, fn_ref: FnRef) -> String {
        let name = self.name(fn_ref.name);
        match fn_ref.path {
            Some(path) => format!("{}.@{name}", self.name(path)),
            None => format!("@{name}"),
        }
    }

    /// Adds what the body of a function uses and is not listed.
    fn complete(&self, function: &FnDecl, uses: &mut Vec<String>, effects: &mut Vec<String>) {
        let mut used: BTreeSet<String> = BTreeSet::new();
        let mut kinds: BTreeSet<&str> = BTreeSet::new();
        for block in &self.ast[function.blocks] {
            for instr in &self.ast[block.instrs] {
                let named = match instr.op {
                    Op::Call { callee, .. }
                    | Op::TryCall { callee, .. }
                    | Op::Capture { callee, .. } => Some(callee),
                    Op::Regular { op: AstOp::GpuLaunch | AstOp::GpuLaunchAsync, args, .. } => {
                        kinds.insert("gpu");
                        self.ast[args].iter().find_map(|arg| match arg.kind {
                            ArgKind::Function(kernel) => Some(kernel),
                            ArgKind::Value(_) | ArgKind::Word(_) | ArgKind::List(_) => None,
                        })
                    }
                    Op::Const(_)
                    | Op::Regular { .. }
                    | Op::CallIndirect { .. }
                    | Op::TryBranch { .. }
                    | Op::New { .. }
                    | Op::Phi { .. } => None,
                };
                let Some(fn_ref) = named.map(|id| self.ast[id]) else { continue };
                let module = self.callee_module(fn_ref);
                kinds.extend(module.and_then(effect_of));
                let name = self.name(fn_ref.name);
                used.insert(match module {
                    Some(module) => format!("{module}.@{name}"),
                    None => format!("@{name}"),
                });
            }
        }
        uses.extend(used.into_iter().filter(|entry| !uses.contains(entry)).collect::<Vec<_>>());
        let kinds = kinds.into_iter().map(str::to_string);
        effects.extend(kinds.filter(|kind| !effects.contains(kind)).collect::<Vec<_>>());
    }
}

/// What kind of effect the functions of a module of the language have.
fn effect_of(module: &str) -> Option<&'static str> {
    match module {
        "std.io" | "std.fs" | "std.os" | "std.time" => Some("io"),
        "gpu.host" | "gpu.profile" => Some("gpu"),
        _ => None,
    }
}
