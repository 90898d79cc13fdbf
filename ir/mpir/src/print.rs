//! The text form of MPIR (`.mpir`), writing half. [`crate::parse`] reads it.
//!
//! ```text
//! file 0 "src/main.mp"
//! value struct demo.TPair { x: f32, y: f32 }
//! heap enum demo.TShape { Circle { r: f64 }, Empty }
//! sig demo.TPick(i32, Str) -> bool
//!
//! gpu fn demo.@scale(%0 x: gpu.TBuffer<f32>, %1 n: u32) -> unit target(spv) workgroup(64, 1, 1) {
//! bb0:
//!   %2: u32 = gpu.global_id dim=0 !0:120-145
//!   %3: bool = icmp.ult %2, %1
//!   cbr %3, bb1, bb2
//! bb1:
//!   %4: f32 = gpu.buffer_load %0, %2
//!   %5: f32 = f.mul [contract] %4, f32 0x40000000
//!   gpu.buffer_store %0, %2, %5
//!   br bb2
//! bb2:
//!   ret
//! }
//! ```
//!
//! - A line holds one instruction: result and type, op, flags, immediates (`key=value`, as the op
//!   table says), operands, source bytes (`!FILE:START-END`). A phi is `phi [bb0: %1], [bb2: %4]`.
//! - A constant is its type and its bits: `i32 -5`, `f32 0x3f800000`, `bool true`, `Str "text"`,
//!   `unit`, and `T zero` for any type. Reading also takes decimal numbers for floats.
//! - Heads are `fn` (host), `lowhost fn`, `device fn` and `gpu fn` (kernel), each after `async` or
//!   `unsafe` where they apply. `sid("F:…")` stands only when it does not follow from the name.
//! - A name that is not a plain dotted word is written as a string.
//!
//! Output depends on the module alone. Nothing here fails: a malformed function is printed as far
//! as it makes sense, because diagnostics show such functions.

use crate::{
    Block, Const, Domain, Flags, FnId, ImmKind, Inst, Module, MpirFn, MpirGpuMeta, Op, Terminator,
    Value, ValueDef,
};
use magpie_diag::Span;
use magpie_types::abi::RtFn;
use magpie_types::{Category, Field, PrimType, Sid, SidKind, TypeCtx, TypeId, TypeKind};
use rustc_hash::FxHashMap;
use std::fmt::Write;
use std::sync::OnceLock;

/// The text of a whole module.
pub fn print_module(m: &Module) -> String {
    let mut p = Printer::new(m);
    p.definitions();
    for (n, f) in m.fns.iter().enumerate() {
        if n > 0 || !p.out.is_empty() {
            p.out.push('\n');
        }
        p.function(f);
    }
    p.out
}

/// The text of one function of `m`.
pub fn print_fn(m: &Module, f: &MpirFn) -> String {
    let mut p = Printer::new(m);
    p.function(f);
    p.out
}

/// The text of one instruction, without its source place.
pub fn print_inst(m: &Module, f: &MpirFn, i: Inst) -> String {
    let mut p = Printer::new(m);
    p.inst(f, i);
    p.out
}

/// The text of a type as `.mpir` writes it: the canonical name, with names that are no plain words
/// in quotes.
pub fn print_type(types: &TypeCtx, ty: TypeId) -> String {
    let mut out = String::new();
    write_type(types, ty, &mut out);
    out
}

/// Whether `text` can stand unquoted where the text form expects a name.
pub(crate) fn is_word(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(is_word_start) && bytes.all(is_word_part)
}

pub(crate) fn is_word_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || matches!(b, b'_' | b'@' | b'$')
}

pub(crate) fn is_word_part(b: u8) -> bool {
    is_word_start(b) || b.is_ascii_digit() || b == b'.'
}

/// Number of structs and enums that every context defines by itself; they are not printed.
pub(crate) fn builtin_definitions() -> (usize, usize) {
    static COUNTS: OnceLock<(usize, usize)> = OnceLock::new();
    *COUNTS.get_or_init(|| {
        let types = TypeCtx::new();
        (types.structs().count(), types.enums().count())
    })
}

/// Words that name no defined type unless quoted: the built-in types besides the scalars, the
/// modes of handles, and the words that start a definition.
pub(crate) const TYPE_WORDS: [&str; 27] = [
    "vec",
    "Str",
    "TStrBuilder",
    "Array",
    "Map",
    "TOption",
    "TResult",
    "TCallable",
    "rawptr",
    "shared_array",
    "local_array",
    "gpu.TBuffer",
    "gpu.TDevice",
    "gpu.TFence",
    "gpu.TProfileSession",
    "gpu.TKernel",
    "mlx.TArray",
    "mlx.nn.TLayerHandle",
    "mlx.optim.TOptimizerHandle",
    "borrow",
    "mutborrow",
    "shared",
    "weak",
    "fn",
    "struct",
    "enum",
    "sig",
];

/// The bits of [`Flags::FAST`] print as one word.
pub(crate) const FAST_WORD: &str = "fast";

struct Printer<'a> {
    m: &'a Module,
    out: String,
    type_names: FxHashMap<TypeId, String>,
}

impl<'a> Printer<'a> {
    fn new(m: &'a Module) -> Printer<'a> {
        Printer { m, out: String::new(), type_names: FxHashMap::default() }
    }

    fn definitions(&mut self) {
        for (n, name) in self.m.files.iter().enumerate() {
            let _ = write!(self.out, "file {n} ");
            self.quoted(name);
            self.out.push('\n');
        }
        let m = self.m;
        let (structs, enums) = builtin_definitions();
        for (_, def) in m.types.structs().skip(structs) {
            self.out.push_str(category_word(def.category));
            self.out.push_str(" struct ");
            self.name(&def.name);
            self.fields(&def.fields);
            self.out.push('\n');
        }
        for (_, def) in m.types.enums().skip(enums) {
            self.out.push_str(category_word(def.category));
            self.out.push_str(" enum ");
            self.name(&def.name);
            self.out.push_str(" {");
            for (n, variant) in def.variants.iter().enumerate() {
                self.out.push_str(if n == 0 { " " } else { ", " });
                self.name(&variant.name);
                if !variant.fields.is_empty() {
                    self.fields(&variant.fields);
                }
            }
            self.out.push_str(" }\n");
        }
        for (_, def) in m.types.sigs() {
            self.out.push_str("sig ");
            self.name(&def.name);
            self.out.push('(');
            for (n, &ty) in def.params.iter().enumerate() {
                if n > 0 {
                    self.out.push_str(", ");
                }
                self.ty(ty);
            }
            self.out.push_str(") -> ");
            self.ty(def.ret);
            self.out.push('\n');
        }
    }

    fn fields(&mut self, fields: &[Field]) {
        self.out.push_str(" {");
        for (n, field) in fields.iter().enumerate() {
            self.out.push_str(if n == 0 { " " } else { ", " });
            self.name(&field.name);
            self.out.push_str(": ");
            self.ty(field.ty);
        }
        self.out.push_str(" }");
    }

    // ----- functions -----

    fn function(&mut self, f: &MpirFn) {
        self.head(f);
        self.out.push_str(" {\n");
        for b in f.block_ids() {
            let _ = writeln!(self.out, "bb{}:", b.0);
            let block = f.block(b);
            for &i in &block.insts {
                self.out.push_str("  ");
                self.inst(f, i);
                if i.index() < f.num_insts() {
                    self.span(f.inst(i).span);
                }
                self.out.push('\n');
            }
            self.out.push_str("  ");
            self.terminator(f, &block.term);
            self.span(block.term_span);
            self.out.push('\n');
        }
        self.out.push_str("}\n");
    }

    fn head(&mut self, f: &MpirFn) {
        if f.is_async {
            self.out.push_str("async ");
        }
        self.out.push_str(match (&f.gpu_meta, f.domain) {
            (Some(meta), _) if meta.is_unsafe => "unsafe gpu fn ",
            (Some(_), _) => "gpu fn ",
            (None, Domain::Host) => "fn ",
            (None, Domain::LowHost) => "lowhost fn ",
            (None, Domain::Device) => "device fn ",
        });
        self.name(&f.name);
        self.out.push('(');
        for (n, &(v, ty)) in f.params.iter().enumerate() {
            if n > 0 {
                self.out.push_str(", ");
            }
            let _ = write!(self.out, "%{}", v.0);
            if let Some(name) = f.param_names.get(n).filter(|name| !name.is_empty()) {
                self.out.push(' ');
                self.name(name);
            }
            self.out.push_str(": ");
            self.ty(ty);
            self.span(f.param_spans.get(n).copied().unwrap_or_default());
        }
        self.out.push_str(") -> ");
        self.ty(f.ret_ty);
        if let Some(meta) = &f.gpu_meta {
            self.kernel_clauses(meta);
        }
        if f.sid != Sid::new(SidKind::Function, &f.name) {
            let _ = write!(self.out, " sid(\"{}\")", f.sid);
        }
        self.span(f.span);
    }

    fn kernel_clauses(&mut self, meta: &MpirGpuMeta) {
        if meta.spans.head.is_some() {
            self.out.push_str(" head");
            self.span(meta.spans.head);
        }
        let _ = write!(self.out, " target({})", meta.target.name());
        self.span(meta.spans.target);
        let [x, y, z] = meta.workgroup;
        let _ = write!(self.out, " workgroup({x}, {y}, {z})");
        self.span(meta.spans.workgroup);
        if !meta.requires.is_empty() || meta.spans.requires.is_some() {
            self.out.push_str(" requires(");
            for (n, name) in meta.requires.iter().enumerate() {
                if n > 0 {
                    self.out.push_str(", ");
                }
                self.name(name);
            }
            self.out.push(')');
            self.span(meta.spans.requires);
        }
    }

    // ----- instructions -----

    fn inst(&mut self, f: &MpirFn, i: Inst) {
        if i.index() >= f.num_insts() {
            let _ = write!(self.out, "{i:?}?");
            return;
        }
        let data = f.inst(i);
        if let Some(v) = data.result() {
            let _ = write!(self.out, "%{}: ", v.0);
            self.ty(data.ty);
            self.out.push_str(" = ");
        }
        self.out.push_str(data.op.name());
        if data.op == Op::Phi {
            for (n, (b, v)) in f.phi_arms(i).enumerate() {
                let _ = write!(self.out, "{}[bb{}: ", if n == 0 { " " } else { ", " }, b.0);
                self.operand(f, v);
                self.out.push(']');
            }
            return;
        }
        self.flags(data.flags);
        for part in data.op.info().immediate.parts() {
            let bits = match part.kind {
                ImmKind::Signed => data.imm,
                _ if part.high => data.imm_hi() as u64,
                _ => data.imm_lo() as u64,
            };
            if part.optional && bits == 0 {
                continue;
            }
            let _ = write!(self.out, " {}=", part.key);
            match part.kind {
                ImmKind::Number => _ = write!(self.out, "{bits}"),
                ImmKind::Signed => _ = write!(self.out, "{}", bits as i64),
                ImmKind::Func => self.fn_name(FnId(bits as u32)),
                ImmKind::OptionalFunc => self.fn_name(FnId((bits as u32).wrapping_sub(1))),
                ImmKind::Rt => match RtFn::ALL.get(bits as usize) {
                    Some(rt) => self.out.push_str(rt.symbol()),
                    None => _ = write!(self.out, "?{bits}"),
                },
                ImmKind::Type => self.ty(TypeId(bits as u32)),
            }
        }
        for (n, &v) in f.args(i).iter().enumerate() {
            self.out.push_str(if n == 0 { " " } else { ", " });
            self.operand(f, v);
        }
    }

    fn flags(&mut self, flags: Flags) {
        if flags == Flags::NONE {
            return;
        }
        self.out.push_str(" [");
        let mut rest = flags;
        let mut separator = "";
        if flags.contains(Flags::FAST) {
            self.out.push_str(FAST_WORD);
            rest = Flags(flags.0 & !Flags::FAST.0);
            separator = " ";
        }
        for (n, name) in Flags::NAMES.iter().enumerate() {
            if rest.0 >> n & 1 == 1 {
                let _ = write!(self.out, "{separator}{name}");
                separator = " ";
            }
        }
        self.out.push(']');
    }

    fn operand(&mut self, f: &MpirFn, v: Value) {
        match f.locals.get(v.index()).map(|l| (l.ty, l.def)) {
            Some((ty, ValueDef::Const(c))) => self.constant(ty, c),
            Some((_, ValueDef::Param(_) | ValueDef::Inst(_))) | None => {
                let _ = write!(self.out, "%{}", v.0);
            }
        }
    }

    fn constant(&mut self, ty: TypeId, c: Const) {
        self.ty(ty);
        let prim = self.m.types.prim(ty);
        match c {
            Const::Unit if ty == magpie_types::fixed::UNIT => {}
            Const::Unit => self.out.push_str(" unit"),
            Const::Zero => self.out.push_str(" zero"),
            Const::Str(s) => {
                let m = self.m;
                match s.index() < m.num_strings() {
                    true => {
                        self.out.push(' ');
                        self.quoted(m.str(s));
                    }
                    false => _ = write!(self.out, " ?{}", s.0),
                }
            }
            Const::Bits(bits) => {
                let _ = match prim {
                    Some(p) if p.is_float() => {
                        let digits = p.size() as usize * 2;
                        write!(self.out, " 0x{bits:0digits$x}")
                    }
                    Some(PrimType::Bool) if bits < 2 => {
                        write!(self.out, " {}", bits == 1)
                    }
                    Some(p) if p.is_signed() && p.bit_width() <= 64 => {
                        write!(self.out, " {}", crate::eval::sign_extend(bits, p.bit_width()))
                    }
                    _ => write!(self.out, " {bits}"),
                };
            }
        }
    }

    fn terminator(&mut self, f: &MpirFn, term: &Terminator) {
        match term {
            Terminator::Ret(None) => self.out.push_str("ret"),
            Terminator::Ret(Some(v)) => {
                self.out.push_str("ret ");
                self.operand(f, *v);
            }
            Terminator::Br(b) => {
                self.out.push_str("br ");
                self.label(*b);
            }
            Terminator::Cbr { cond, then, else_ } => {
                self.out.push_str("cbr ");
                self.operand(f, *cond);
                self.out.push_str(", ");
                self.label(*then);
                self.out.push_str(", ");
                self.label(*else_);
            }
            Terminator::Switch { value, cases, default } => {
                self.out.push_str("switch ");
                self.operand(f, *value);
                for &(bits, b) in cases {
                    let _ = write!(self.out, ", [{bits}: bb{}]", b.0);
                }
                self.out.push_str(", else ");
                self.label(*default);
            }
            Terminator::Unreachable => self.out.push_str("unreachable"),
        }
    }

    // ----- words -----

    fn label(&mut self, b: Block) {
        let _ = write!(self.out, "bb{}", b.0);
    }

    fn fn_name(&mut self, id: FnId) {
        let m = self.m;
        match m.fns.get(id.index()) {
            Some(f) => self.name(&f.name),
            None => _ = write!(self.out, "?{}", id.0),
        }
    }

    fn span(&mut self, span: Span) {
        if span.is_some() {
            let _ = write!(self.out, " !{}:{}-{}", span.file.0, span.start, span.end);
        }
    }

    fn name(&mut self, text: &str) {
        write_name(text, &mut self.out);
    }

    fn quoted(&mut self, text: &str) {
        write_quoted(text, &mut self.out);
    }

    fn ty(&mut self, ty: TypeId) {
        let types = &self.m.types;
        let name = self.type_names.entry(ty).or_insert_with(|| print_type(types, ty));
        self.out.push_str(name);
    }
}

fn category_word(c: Category) -> &'static str {
    match c {
        Category::Heap => "heap",
        Category::Value => "value",
    }
}

fn write_name(text: &str, out: &mut String) {
    if is_word(text) {
        out.push_str(text);
    } else {
        write_quoted(text, out);
    }
}

/// A defined type whose name is a word of the type grammar is written in quotes.
fn write_type_name(text: &str, out: &mut String) {
    if TYPE_WORDS.contains(&text) || PrimType::from_name(text).is_some() {
        write_quoted(text, out);
    } else {
        write_name(text, out);
    }
}

fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            c if c.is_control() => _ = write!(out, "\\u{{{:x}}}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn write_type(types: &TypeCtx, ty: TypeId, out: &mut String) {
    let list = |out: &mut String, base: &str, args: &[TypeId]| {
        out.push_str(base);
        for (n, &arg) in args.iter().enumerate() {
            out.push_str(if n == 0 { "<" } else { ", " });
            write_type(types, arg, out);
        }
        out.push('>');
    };
    if !types.contains(ty) {
        let _ = write!(out, "?{}", ty.0);
        return;
    }
    match types.kind(ty) {
        TypeKind::Prim(_) | TypeKind::Vec(..) | TypeKind::Str | TypeKind::Opaque(_) => {
            types.write_name(ty, out);
        }
        TypeKind::Array(t) => list(out, "Array", &[t]),
        TypeKind::Map(k, v) => list(out, "Map", &[k, v]),
        TypeKind::Option(t) => list(out, "TOption", &[t]),
        TypeKind::Result(t, e) => list(out, "TResult", &[t, e]),
        TypeKind::Buffer(t) => list(out, "gpu.TBuffer", &[t]),
        TypeKind::MlxArray(t) => list(out, "mlx.TArray", &[t]),
        TypeKind::RawPtr(t) => list(out, "rawptr", &[t]),
        TypeKind::SharedArray(t, len) => {
            let _ = write!(out, "shared_array<{len}, ");
            write_type(types, t, out);
            out.push('>');
        }
        TypeKind::LocalArray(t, len) => {
            let _ = write!(out, "local_array<{len}, ");
            write_type(types, t, out);
            out.push('>');
        }
        TypeKind::Callable(sig) => {
            out.push_str("TCallable<");
            write_name(&types.sig_def(sig).name, out);
            out.push('>');
        }
        TypeKind::Struct(s) => write_type_name(&types.struct_def(s).name, out),
        TypeKind::Enum(e) => write_type_name(&types.enum_def(e).name, out),
        TypeKind::Ref(mode, t) => {
            out.push_str(mode.name());
            out.push(' ');
            write_type(types, t, out);
        }
    }
}
