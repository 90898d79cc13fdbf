//! A module's meaning as text: everything of the tree but places, with the freedom of spelling
//! taken out independently of the formatter.

use magpie_lang::ast::*;
use magpie_lang::{ParsedModule, Symbol};
use std::collections::HashMap;
use std::fmt::Write;

/// Two modules with equal dumps mean the same, comments included (but not where they stand).
pub(crate) fn dump(module: &ParsedModule, text: &str) -> String {
    let mut dump = Dump { module, ast: &module.ast, out: String::new(), labels: HashMap::new() };
    dump.header();
    for decl in &module.ast.decls {
        let docs: Vec<_> = module.ast[decl.comments]
            .iter()
            .filter(|comment| comment.is_doc(text))
            .map(|comment| comment.range.of(text))
            .collect();
        let _ = writeln!(dump.out, "docs {docs:?}");
        dump.decl(decl);
    }
    let mut comments: Vec<_> = module.ast.comments.iter().map(|c| c.range.of(text)).collect();
    comments.sort_unstable();
    let _ = writeln!(dump.out, "comments {comments:?}");
    dump.out
}

struct Dump<'m> {
    module: &'m ParsedModule,
    ast: &'m Ast,
    out: String,
    labels: HashMap<Symbol, String>,
}

impl<'m> Dump<'m> {
    fn name(&self, symbol: Symbol) -> &'m str {
        self.module.interner.resolve(symbol)
    }

    fn put(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
    }

    fn exports(&self, exports: Slice<Export>) -> Vec<String> {
        let mut names: Vec<_> = self.ast[exports]
            .iter()
            .map(|export| format!("{:?} {}", export.kind, self.name(export.name.symbol)))
            .collect();
        names.sort();
        names
    }

    fn header(&mut self) {
        let header = &self.ast.header;
        let mut imports: Vec<_> = self.ast[header.imports]
            .iter()
            .map(|import| {
                let items = import.items.map(|items| self.exports(items));
                format!("{} {items:?}", self.name(import.path.symbol))
            })
            .collect();
        imports.sort();
        let module = self.name(header.module.symbol);
        let exports = self.exports(header.exports);
        let _ = writeln!(self.out, "module {module} exports {exports:?} imports {imports:?}");
    }

    fn ty(&self, id: TypeExprId) -> String {
        let ty = &self.ast[id];
        let args: Vec<_> = self.ast.types.args(ty).iter().map(|&arg| self.ty(arg)).collect();
        format!("{:?} {}{args:?}", ty.modifier, self.name(ty.path))
    }

    fn fn_ref(&self, id: FnRefId) -> String {
        let fn_ref = self.ast[id];
        let path = fn_ref.path.map(|path| self.name(path));
        format!("{path:?}@{}", self.name(fn_ref.name))
    }

    fn params(&self, params: Slice<Param>) -> Vec<String> {
        self.ast[params]
            .iter()
            .map(|param| format!("{}: {}", self.name(param.name.symbol), self.ty(param.ty.id)))
            .collect()
    }

    fn type_params(&self, params: Slice<TypeParam>) -> Vec<String> {
        self.ast[params]
            .iter()
            .map(|param| format!("{}: {:?}", self.name(param.name.symbol), param.bound))
            .collect()
    }

    fn fields(&self, fields: Slice<Field>) -> Vec<String> {
        self.ast[fields]
            .iter()
            .map(|field| format!("{}: {}", self.name(field.name.symbol), self.ty(field.ty.id)))
            .collect()
    }

    fn decl(&mut self, decl: &Decl) {
        let text = match &decl.kind {
            DeclKind::Fn(function) => return self.function(function),
            DeclKind::Type(ty) => {
                let kind = match ty.kind {
                    TypeDeclKind::Struct(fields) => format!("struct {:?}", self.fields(fields)),
                    TypeDeclKind::Enum(variants) => {
                        let variants: Vec<_> = self.ast[variants]
                            .iter()
                            .map(|v| {
                                format!("{} {:?}", self.name(v.name.symbol), self.fields(v.fields))
                            })
                            .collect();
                        format!("enum {variants:?}")
                    }
                };
                let type_params = self.type_params(ty.type_params);
                format!("{} heap={} {type_params:?} {kind}", self.name(ty.name.symbol), ty.is_heap)
            }
            DeclKind::Extern(decl) => {
                let functions: Vec<_> = self.ast[decl.functions]
                    .iter()
                    .map(|f| {
                        let attributes: Vec<_> = self.ast[f.attributes]
                            .iter()
                            .map(|a| {
                                format!(
                                    "{}={:?}",
                                    self.name(a.key.symbol),
                                    self.name(a.value.symbol)
                                )
                            })
                            .collect();
                        let params = self.params(f.params);
                        let result = self.ty(f.result.id);
                        format!("{} {params:?} {result} {attributes:?}", self.name(f.name.symbol))
                    })
                    .collect();
                let abi = self.name(decl.abi.symbol);
                format!("extern {abi:?} {} {functions:?}", self.name(decl.module.symbol))
            }
            DeclKind::Global(global) => {
                let value = self.constant(global.value);
                format!(
                    "global {}: {} = {value}",
                    self.name(global.name.symbol),
                    self.ty(global.ty.id)
                )
            }
            DeclKind::Impl(decl) => {
                let function = self.fn_ref(decl.function);
                format!("impl {:?} for {} = {function}", decl.interface, self.ty(decl.ty.id))
            }
            DeclKind::Sig(sig) => {
                let params: Vec<_> = self.ast[sig.params].iter().map(|ty| self.ty(ty.id)).collect();
                format!(
                    "sig {} {params:?} -> {}",
                    self.name(sig.name.symbol),
                    self.ty(sig.result.id)
                )
            }
        };
        self.put(text);
        self.put("\n");
    }

    fn function(&mut self, function: &FnDecl) {
        let gpu = function.gpu.map(|gpu| {
            let requires = gpu.requires.map(|requires| {
                self.ast[requires.capabilities]
                    .iter()
                    .map(|c| self.name(c.symbol))
                    .collect::<Vec<_>>()
            });
            let workgroup = gpu.workgroup.map(|workgroup| workgroup.size);
            format!("{} {workgroup:?} {requires:?}", self.name(gpu.target.symbol))
        });
        let meta = function.meta.map(|meta| {
            let uses: Vec<_> = self.ast[meta.uses]
                .iter()
                .map(|entry| match entry {
                    MetaUse::Function(id) => self.fn_ref(*id),
                    MetaUse::Path(path) => self.name(path.symbol).to_string(),
                })
                .collect();
            let effects: Vec<_> =
                self.ast[meta.effects].iter().map(|effect| self.name(effect.symbol)).collect();
            let cost: Vec<_> = self.ast[meta.cost]
                .iter()
                .map(|cost| format!("{} {:?}", self.name(cost.key.symbol), cost.amount))
                .collect();
            format!("{uses:?} {effects:?} {cost:?}")
        });
        let _ = writeln!(
            self.out,
            "fn {} async={} unsafe={} {gpu:?} {meta:?} {:?} {:?} -> {}",
            self.name(function.name.symbol),
            function.is_async,
            function.is_unsafe,
            self.type_params(function.type_params),
            self.params(function.params),
            self.ty(function.result.id),
        );
        let blocks = &self.ast[function.blocks];
        self.labels = blocks
            .iter()
            .enumerate()
            .map(|(i, block)| (block.label.symbol, format!("#{i}")))
            .collect();
        if self.labels.len() < blocks.len() {
            self.labels.clear();
        }
        for block in blocks {
            let label = self.label(block.label.symbol);
            let _ = writeln!(self.out, " block {label}");
            for instr in &self.ast[block.instrs] {
                self.instr(instr);
            }
            self.terminator(&block.terminator);
        }
    }

    fn label(&self, label: Symbol) -> String {
        match self.labels.get(&label) {
            Some(number) => number.clone(),
            None => format!("unknown {}", self.name(label)),
        }
    }

    fn value(&self, value: Value) -> String {
        match value {
            Value::Ssa(symbol) => format!("%{}", self.name(symbol)),
            Value::Const(id) => self.constant(id),
        }
    }

    fn constant(&self, id: ConstId) -> String {
        let constant = self.ast[id];
        let ty = self.ty(constant.ty);
        let format = match ty.as_str() {
            "None f16[]" => Some(FloatFormat::F16),
            "None f32[]" => Some(FloatFormat::F32),
            "None f64[]" => Some(FloatFormat::F64),
            "None bf16[]" => Some(FloatFormat::Bf16),
            _ => None,
        };
        let literal = match (constant.literal, format) {
            (Literal::Int { negative, magnitude }, Some(format)) => {
                let sign = if negative { "-" } else { "" };
                format!("{:x?}", format.parse(&format!("{sign}{magnitude}")))
            }
            (Literal::Float { digits, suffix }, Some(format))
                if suffix.is_none_or(|s| s == format) =>
            {
                format!("{:x?}", format.parse(self.name(digits)))
            }
            (Literal::Float { digits, suffix }, _) => format!("{} {suffix:?}", self.name(digits)),
            (Literal::Str(contents), _) => format!("{:?}", self.name(contents)),
            (Literal::Int { magnitude: 0, .. }, None) => "0".to_string(),
            (literal, _) => format!("{literal:?}"),
        };
        format!("const {ty} {literal}")
    }

    fn args(&self, args: Slice<Arg>, sorted: bool) -> String {
        let mut args: Vec<_> = self.ast[args]
            .iter()
            .map(|arg| {
                let value = match arg.kind {
                    ArgKind::Value(value) => self.value(value),
                    ArgKind::Function(id) => self.fn_ref(id),
                    ArgKind::Word(word) => self.name(word).to_string(),
                    ArgKind::List(items) => {
                        let items: Vec<_> = self.ast[items]
                            .iter()
                            .map(|item| match item.kind {
                                ListItemKind::Value(value) => self.value(value),
                                ListItemKind::Function(id) => self.fn_ref(id),
                            })
                            .collect();
                        format!("{items:?}")
                    }
                };
                format!("{}={value}", self.name(arg.key))
            })
            .collect();
        if sorted {
            args.sort();
        }
        format!("{args:?}")
    }

    fn type_args(&self, type_args: Slice<TypeArg>) -> String {
        let args: Vec<_> = self.ast[type_args]
            .iter()
            .map(|arg| match arg {
                TypeArg::Type(ty) => self.ty(ty.id),
                TypeArg::Int(number) => number.to_string(),
                TypeArg::Global(id) => self.fn_ref(*id),
                TypeArg::Variant(name) => self.name(name.symbol).to_string(),
            })
            .collect();
        format!("{args:?}")
    }

    fn call(&self, callee: FnRefId, type_args: Slice<TypeUse>, args: Slice<Arg>) -> String {
        let types: Vec<_> = self.ast[type_args].iter().map(|ty| self.ty(ty.id)).collect();
        format!("{} {types:?} {}", self.fn_ref(callee), self.args(args, true))
    }

    fn instr(&mut self, instr: &Instr) {
        let result = instr
            .result
            .map(|result| format!("%{}: {}", self.name(result.name), self.ty(result.ty.id)));
        let op = match instr.op {
            Op::Const(id) => self.constant(id),
            Op::Regular { op: AstOp::EnumNew, type_args, args, .. } => {
                self.enum_new(type_args, args)
            }
            Op::Regular { op, type_args, args, .. } => {
                let sorted = !matches!(op.row().keys, Keys::CapacityOrElements | Keys::Unspecified);
                format!("{op:?} {} {}", self.type_args(type_args), self.args(args, sorted))
            }
            Op::Call { form, callee, type_args, args } => {
                let suspend = form == CallForm::Suspend;
                format!("call suspend={suspend} {}", self.call(callee, type_args, args))
            }
            Op::CallIndirect { form, callee, args } => {
                let suspend = form == IndirectForm::Suspend;
                format!(
                    "indirect suspend={suspend} {} {}",
                    self.value(callee),
                    self.args(args, false)
                )
            }
            Op::TryCall { callee, type_args, args } => {
                format!("try {}", self.call(callee, type_args, args))
            }
            Op::TryBranch { value, target } => {
                format!("try %{} {}", self.name(value), self.label(target.label))
            }
            Op::Capture { callee, args } => {
                format!("capture {}", self.call(callee, Slice::EMPTY, args))
            }
            Op::New { ty, args } => format!("new {} {}", self.ty(ty.id), self.args(args, true)),
            Op::Phi { ty, arms } => {
                let arms: Vec<_> = self.ast[arms]
                    .iter()
                    .map(|arm| {
                        let label = self.label(arm.label.symbol);
                        format!("{label} {} {:?}", self.value(arm.value), arm.projection)
                    })
                    .collect();
                let ty = ty.or(instr.result.map(|result| result.ty)).map(|ty| self.ty(ty.id));
                format!("phi {ty:?} {arms:?}")
            }
        };
        let _ = writeln!(self.out, "  {result:?} unsafe={} {op}", instr.in_unsafe);
    }

    /// The two forms of `enum.new` are the same for enums that are built in or of the module; the
    /// keys of the one by number mean nothing.
    fn enum_new(&self, type_args: Slice<TypeArg>, args: Slice<Arg>) -> String {
        let by_name = |name: &str, keys: &[&str]| {
            let mut args: Vec<_> = self.ast[args]
                .iter()
                .zip(keys)
                .map(|(arg, key)| match arg.kind {
                    ArgKind::Value(value) => format!("{key}={}", self.value(value)),
                    _ => format!("{key}={:?}", arg.kind),
                })
                .collect();
            args.sort();
            format!("enum.new {:?} {args:?}", [name])
        };
        if let [TypeArg::Type(ty), TypeArg::Int(index)] = self.ast[type_args] {
            match (self.ty(ty.id).as_str(), index) {
                ("None TOption[]", 0) => return by_name("None", &[]),
                ("None TOption[]", 1) => return by_name("Some", &["v"]),
                ("None TResult[]", 0) => return by_name("Ok", &["v"]),
                ("None TResult[]", 1) => return by_name("Err", &["e"]),
                _ => {}
            }
            let path = self.ast[ty.id].path;
            let variants = self.ast.decls.iter().find_map(|decl| match &decl.kind {
                DeclKind::Type(TypeDecl { name, kind: TypeDeclKind::Enum(variants), .. }) => {
                    (name.symbol == path).then_some(*variants)
                }
                _ => None,
            });
            let variant = variants.and_then(|v| self.ast[v].get(index as usize));
            if let Some(variant) = variant {
                let fields = self.ast[variant.fields].iter();
                let keys: Vec<&str> = fields.map(|field| self.name(field.name.symbol)).collect();
                return by_name(self.name(variant.name.symbol), &keys);
            }
        }
        format!("enum.new {} {}", self.type_args(type_args), self.args(args, true))
    }

    fn terminator(&mut self, terminator: &Terminator) {
        let text = match *terminator {
            Terminator::Ret(value) => format!("ret {:?}", value.map(|value| self.value(value))),
            Terminator::Br(target) => format!("br {}", self.label(target.label)),
            Terminator::Cbr { condition, then_target, else_target } => format!(
                "cbr {} {} {}",
                self.value(condition),
                self.label(then_target.label),
                self.label(else_target.label)
            ),
            Terminator::Switch { value, cases, default, .. } => {
                let cases: Vec<_> = self.ast[cases]
                    .iter()
                    .map(|case| format!("{:?} {}", case.literal, self.label(case.target.label)))
                    .collect();
                format!("switch {} {cases:?} {}", self.value(value), self.label(default.label))
            }
            Terminator::Unreachable => "unreachable".to_string(),
            Terminator::Missing => "missing".to_string(),
        };
        let _ = writeln!(self.out, "  {text}");
    }
}
