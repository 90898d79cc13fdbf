//! Functions: blocks, instructions, terminators.

use super::*;
use crate::builtins::BuiltinId;
use crate::symbols;

/// Where labels, instructions and what is nested in them start.
const LABEL_INDENT: usize = 2;
const INSTR_INDENT: usize = 4;
const NESTED_INDENT: usize = 6;

impl<'m> Printer<'m> {
    pub(super) fn function(&mut self, range: ByteRange, function: &'m FnDecl) {
        let ast = self.ast;
        self.number_labels(function);
        let head = ByteRange { start: range.start, end: function.body.start + 1 };
        self.head_line(0, head, |p| p.fn_head(function));
        let mut groups = &ast[function.unsafe_groups];
        for block in &ast[function.blocks] {
            let label = ByteRange { end: self.colon_end(block.label.range), ..block.label.range };
            self.line(LABEL_INDENT, label, |p| {
                p.label(block.label.symbol);
                p.out.push(':');
            });
            groups = self.instrs(&ast[block.instrs], groups);
            self.terminator(block);
        }
        self.close_line(function.body, INSTR_INDENT);
    }

    /// The end of the colon behind a label.
    fn colon_end(&self, label: ByteRange) -> u32 {
        let rest = &self.text[label.end as usize..];
        match rest.trim_start().starts_with(':') {
            true => label.end + (rest.len() - rest.trim_start().len()) as u32 + 1,
            // A comment stands between the two.
            false => label.end,
        }
    }

    /// Numbers the labels in the order of the text. Where a label is defined twice or not at all,
    /// which a later stage reports, all stay as written: no number may be taken for another.
    fn number_labels(&mut self, function: &FnDecl) {
        let ast = self.ast;
        self.labels.clear();
        let blocks = &ast[function.blocks];
        for (i, block) in blocks.iter().enumerate() {
            self.labels.insert(block.label.symbol, i);
        }
        let all_known = blocks.iter().all(|block| {
            ast[block.instrs].iter().all(|instr| self.labels_known(instr))
                && self.targets_known(&block.terminator)
        });
        if self.labels.len() < blocks.len() || !all_known {
            self.labels.clear();
        }
    }

    fn labels_known(&self, instr: &Instr) -> bool {
        match instr.op {
            Op::TryBranch { target, .. } => self.labels.contains_key(&target.label),
            Op::Phi { arms, .. } => {
                self.ast[arms].iter().all(|arm| self.labels.contains_key(&arm.label.symbol))
            }
            Op::Const(_)
            | Op::Regular { .. }
            | Op::Call { .. }
            | Op::CallIndirect { .. }
            | Op::TryCall { .. }
            | Op::Capture { .. }
            | Op::New { .. } => true,
        }
    }

    fn targets_known(&self, terminator: &Terminator) -> bool {
        let known = |target: &Target| self.labels.contains_key(&target.label);
        match terminator {
            Terminator::Br(target) => known(target),
            Terminator::Cbr { then_target, else_target, .. } => {
                known(then_target) && known(else_target)
            }
            Terminator::Switch { cases, default, .. } => {
                known(default) && self.ast[*cases].iter().all(|case| known(&case.target))
            }
            Terminator::Ret(_) | Terminator::Unreachable | Terminator::Missing => true,
        }
    }

    fn label(&mut self, label: Symbol) {
        match self.labels.get(&label) {
            Some(number) => self.out.push_str(&format!("bb{number}")),
            None => self.out.push_str(self.name(label)),
        }
    }

    /// Writes instructions and the `unsafe` groups around some of them; gives back the groups
    /// that come later.
    fn instrs(&mut self, instrs: &[Instr], mut groups: &'m [ByteRange]) -> &'m [ByteRange] {
        let mut open = None;
        for instr in instrs {
            self.close_finished_group(&mut open, instr.range.start);
            if let Some((&group, rest)) = groups.split_first()
                && group.start < instr.range.start
            {
                groups = rest;
                open = Some(group);
                let head = ByteRange { start: group.start, end: self.brace_end(group.start) };
                self.head_line(INSTR_INDENT, head, |p| p.out.push_str("unsafe {"));
            }
            let indent = if open.is_some() { NESTED_INDENT } else { INSTR_INDENT };
            self.line(indent, instr.range, |p| p.instr(instr));
        }
        self.close_finished_group(&mut open, u32::MAX);
        groups
    }

    fn close_finished_group(&mut self, open: &mut Option<ByteRange>, next: u32) {
        if let Some(group) = open.take_if(|group| group.end <= next) {
            let close = ByteRange { start: group.end - 1, end: group.end };
            self.comments_before(close.start, NESTED_INDENT);
            self.line(INSTR_INDENT, close, |p| p.out.push('}'));
        }
    }

    /// The end of the `{` behind the word `unsafe` at `start`.
    fn brace_end(&self, start: u32) -> u32 {
        let behind = start + "unsafe".len() as u32;
        let rest = &self.text[behind as usize..];
        match rest.trim_start().starts_with('{') {
            true => behind + (rest.len() - rest.trim_start().len()) as u32 + 1,
            // A comment stands between the two.
            false => behind,
        }
    }

    fn instr(&mut self, instr: &Instr) {
        if let Some(result) = instr.result {
            self.ssa(result.name);
            self.out.push_str(": ");
            self.ty(result.ty.id);
            self.out.push_str(" = ");
        }
        self.op(instr);
    }

    fn op(&mut self, instr: &Instr) {
        match instr.op {
            Op::Const(id) => self.constant(id),
            Op::Regular { op: AstOp::EnumNew, type_args, args, .. } => {
                self.enum_new(type_args, args);
            }
            Op::Regular { op, type_args, args, .. } => self.regular(op, type_args, args),
            Op::Call { form, callee, type_args, args } => {
                self.out.push_str(match form {
                    CallForm::Suspend => "suspend.call ",
                    CallForm::Call | CallForm::CallVoid | CallForm::Direct => {
                        if instr.result.is_some() { "call " } else { "call_void " }
                    }
                });
                self.call(callee, type_args, args);
            }
            Op::CallIndirect { form, callee, args } => {
                self.out.push_str(match form {
                    IndirectForm::Suspend => "suspend.call ",
                    IndirectForm::Call | IndirectForm::CallVoid => {
                        if instr.result.is_some() {
                            "call.indirect "
                        } else {
                            "call_void.indirect "
                        }
                    }
                });
                self.value(callee);
                self.out.push(' ');
                self.args(&self.ast[args]);
            }
            Op::TryCall { callee, type_args, args } => {
                self.out.push_str("try ");
                self.call(callee, type_args, args);
            }
            Op::TryBranch { value, target } => {
                self.out.push_str("try ");
                self.ssa(value);
                self.out.push(' ');
                self.label(target.label);
            }
            Op::Capture { callee, args } => {
                self.out.push_str("callable.capture ");
                self.call(callee, Slice::EMPTY, args);
            }
            Op::New { ty, args } => {
                self.out.push_str("new ");
                self.ty(ty.id);
                self.out.push(' ');
                self.args_by_key(&self.ast[args]);
            }
            Op::Phi { ty, arms } => {
                self.out.push_str("phi ");
                if let Some(ty) = ty.or(instr.result.map(|result| result.ty)) {
                    self.ty(ty.id);
                    self.out.push(' ');
                }
                self.braced(&self.ast[arms], |p, arm| p.phi_arm(&arm));
            }
        }
    }

    fn phi_arm(&mut self, arm: &PhiArm) {
        self.out.push('[');
        self.label(arm.label.symbol);
        self.out.push_str(": ");
        self.value(arm.value);
        self.out.push_str(match arm.projection {
            None => "",
            Some(Projection::Ok) => ".ok",
            Some(Projection::Err) => ".err",
        });
        self.out.push(']');
    }

    fn regular(&mut self, op: AstOp, type_args: Slice<TypeArg>, args: Slice<Arg>) {
        self.out.push_str(op.name());
        self.type_args(type_args);
        let args = &self.ast[args];
        let row = op.row();
        if args.is_empty() && !row.empty_block {
            return;
        }
        self.out.push(' ');
        match row.keys {
            Keys::Fixed(_) | Keys::Fields => self.args_by_key(args),
            Keys::CapacityOrElements | Keys::Unspecified => self.args(args),
        }
    }

    fn type_args(&mut self, type_args: Slice<TypeArg>) {
        if type_args.is_empty() {
            return;
        }
        self.out.push('<');
        self.separated(&self.ast[type_args], ", ", |p, arg| match arg {
            TypeArg::Type(ty) => p.ty(ty.id),
            TypeArg::Int(number) => p.out.push_str(&number.to_string()),
            TypeArg::Global(id) => p.fn_ref(id),
            TypeArg::Variant(name) => p.out.push_str(p.name(name.symbol)),
        });
        self.out.push('>');
    }

    /// `enum.new`; the form with the number of a variant is replaced by the one with its name
    /// where the enum is known.
    fn enum_new(&mut self, type_args: Slice<TypeArg>, args: Slice<Arg>) {
        let written = &self.ast[args];
        let [TypeArg::Type(ty), TypeArg::Int(index)] = self.ast[type_args] else {
            return self.regular(AstOp::EnumNew, type_args, args);
        };
        let Some((variant, fields)) = self.numbered_variant(ty.id, index) else {
            self.out.push_str("enum.new");
            self.type_args(type_args);
            self.out.push(' ');
            return self.args(written);
        };
        self.out.push_str("enum.new<");
        self.out.push_str(self.name(variant));
        self.out.push_str("> ");
        if fields.len() == written.len() {
            let renamed: Vec<Arg> =
                written.iter().zip(fields).map(|(arg, key)| Arg { key, ..*arg }).collect();
            self.args_by_key(&renamed);
        } else {
            self.args(written);
        }
    }

    /// The name and the fields of variant `index`, when the enum is built in or of this module.
    fn numbered_variant(&self, ty: TypeExprId, index: u64) -> Option<(Symbol, Vec<Symbol>)> {
        let index = usize::try_from(index).ok()?;
        match (self.ast[ty].path, index) {
            (symbols::T_OPTION, 0) => Some((symbols::NONE, vec![])),
            (symbols::T_OPTION, 1) => Some((symbols::SOME, vec![symbols::V])),
            (symbols::T_RESULT, 0) => Some((symbols::OK, vec![symbols::V])),
            (symbols::T_RESULT, 1) => Some((symbols::ERR, vec![symbols::E])),
            (path, index) => {
                let variant = self.ast[*self.enums.get(&path)?].get(index)?;
                let fields = self.ast[variant.fields].iter().map(|field| field.name.symbol);
                Some((variant.name.symbol, fields.collect()))
            }
        }
    }

    fn call(&mut self, callee: FnRefId, type_args: Slice<TypeUse>, args: Slice<Arg>) {
        self.fn_ref(callee);
        if !type_args.is_empty() {
            self.out.push('<');
            self.separated(&self.ast[type_args], ", ", |p, ty| p.ty(ty.id));
            self.out.push('>');
        }
        self.out.push(' ');
        let args = &self.ast[args];
        match self.in_parameter_order(callee, args) {
            Some(ordered) => self.args(&ordered),
            None => self.args(args),
        }
    }

    /// Named arguments in the order of the parameters, when the function is built in or one of this
    /// module and every name is that of a parameter.
    fn in_parameter_order(&self, callee: FnRefId, args: &[Arg]) -> Option<Vec<Arg>> {
        let fn_ref = self.ast[callee];
        let names: Vec<&str> = match self.callee_module(fn_ref) {
            None => {
                let function = self.functions.get(&fn_ref.name)?;
                let params = self.ast[function.params].iter();
                params.map(|param| self.name(param.name.symbol)).collect()
            }
            Some(module) => BuiltinId::find(module, self.name(fn_ref.name))?.row().param_names(),
        };
        let mut by_key = args.to_vec();
        by_key.sort_by_key(|arg| self.name(arg.key));
        let ordered: Vec<Arg> = names
            .iter()
            .filter_map(|name| {
                let i = by_key.binary_search_by_key(name, |arg| self.name(arg.key)).ok()?;
                Some(by_key[i])
            })
            .collect();
        (ordered.len() == args.len()).then_some(ordered)
    }

    /// The path of the module of a function; `None` for this module.
    pub(super) fn callee_module(&self, fn_ref: FnRef) -> Option<&'m str> {
        let path = match fn_ref.path {
            Some(path) => Some(path),
            None if self.functions.contains_key(&fn_ref.name) => None,
            None => self.imported.get(&fn_ref.name).copied(),
        };
        path.filter(|&path| path != self.ast.header.module.symbol).map(|path| self.name(path))
    }

    fn args_by_key(&mut self, args: &[Arg]) {
        let mut sorted = args.to_vec();
        sorted.sort_by_key(|arg| self.name(arg.key));
        self.args(&sorted);
    }

    fn args(&mut self, args: &[Arg]) {
        self.braced(args, |p, arg| {
            p.out.push_str(p.name(arg.key));
            p.out.push('=');
            match arg.kind {
                ArgKind::Value(value) => p.value(value),
                ArgKind::Function(id) => p.fn_ref(id),
                ArgKind::Word(word) => p.out.push_str(p.name(word)),
                ArgKind::List(items) => {
                    p.out.push('[');
                    p.separated(&p.ast[items], ", ", |p, item| match item.kind {
                        ListItemKind::Value(value) => p.value(value),
                        ListItemKind::Function(id) => p.fn_ref(id),
                    });
                    p.out.push(']');
                }
            }
        });
    }

    fn terminator(&mut self, block: &Block) {
        let range = block.terminator_range;
        match block.terminator {
            Terminator::Switch { value, body, cases, default } => {
                let head = ByteRange { start: range.start, end: body.start + 1 };
                self.head_line(INSTR_INDENT, head, |p| {
                    p.out.push_str("switch ");
                    p.value(value);
                    p.out.push_str(" {");
                });
                for case in &self.ast[cases] {
                    self.line(NESTED_INDENT, case.range, |p| {
                        p.out.push_str("case ");
                        p.literal(case.literal, None);
                        p.out.push_str(" -> ");
                        p.label(case.target.label);
                    });
                }
                self.comments_before(range.end, NESTED_INDENT);
                let tail = ByteRange { start: body.end - 1, end: range.end };
                self.line(INSTR_INDENT, tail, |p| {
                    p.out.push_str("} else ");
                    p.label(default.label);
                });
            }
            Terminator::Ret(value) => self.line(INSTR_INDENT, range, |p| {
                p.out.push_str("ret");
                if let Some(value) = value {
                    p.out.push(' ');
                    p.value(value);
                }
            }),
            Terminator::Br(target) => self.line(INSTR_INDENT, range, |p| {
                p.out.push_str("br ");
                p.label(target.label);
            }),
            Terminator::Cbr { condition, then_target, else_target } => {
                self.line(INSTR_INDENT, range, |p| {
                    p.out.push_str("cbr ");
                    p.value(condition);
                    p.out.push(' ');
                    p.label(then_target.label);
                    p.out.push(' ');
                    p.label(else_target.label);
                });
            }
            Terminator::Unreachable => {
                self.line(INSTR_INDENT, range, |p| p.out.push_str("unreachable"));
            }
            // A module without errors has none.
            Terminator::Missing => {}
        }
    }
}
