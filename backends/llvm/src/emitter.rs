//! The state of writing one function: names of values and blocks, and the pieces of the module.

use crate::flavor::Flavor;
use crate::intrinsics::Intrinsics;
use crate::lines::Lines;
use crate::memory::Memory;
use crate::types::{Shape, constant};
use magpie_diag::{Code, Diagnostic, SourceMap, Span};
use magpie_mpir::analysis::{Cfg, Uniformity};
use magpie_mpir::{Block, Const, FnId, Inst, MpirFn, Terminator, Value, ValueDef};
use magpie_types::kernel::{GpuBackend, KernelLayout};
use magpie_types::{PrimType, TypeCtx, TypeId, fixed};
use std::fmt::{self, Write};

/// The result of an emission step.
pub(crate) type Emit<T = ()> = Result<T, Box<Diagnostic>>;

/// An operand as text: a name or a constant, without its type.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// `%v`: the result of an instruction, or a scalar parameter.
    Value(u32),
    /// `%t`: something in between.
    Temp(u32),
    /// A constant.
    Text(String),
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Value(n) => write!(f, "%v{n}"),
            Operand::Temp(n) => write!(f, "%t{n}"),
            Operand::Text(text) => f.write_str(text),
        }
    }
}

/// Appends one line to the body.
macro_rules! line {
    ($e:expr, $($arg:tt)*) => {
        $e.push_line(format_args!($($arg)*))
    };
}
pub(crate) use line;

/// A function with how it gets its parameters.
pub(crate) struct Function<'a> {
    pub(crate) id: FnId,
    pub(crate) f: &'a MpirFn,
    pub(crate) layout: KernelLayout,
}

/// The pieces of a module, from all its functions.
#[derive(Default)]
pub(crate) struct ModuleText {
    intrinsics: Intrinsics,
    /// Definitions in front of the functions.
    globals: String,
    functions: String,
    /// Places in the source.
    line_metadata: String,
}

impl ModuleText {
    /// The whole module; `tail` is attributes and metadata.
    pub(crate) fn finish(self, name: &str, flavor: Flavor, tail: &str) -> String {
        let ModuleText { intrinsics, globals, functions, line_metadata } = self;
        format!(
            "source_filename = \"{name}\"\ntarget triple = \"{}\"\n\n{globals}{functions}{}\n{tail}{line_metadata}",
            flavor.triple(),
            intrinsics.text(),
        )
    }
}

/// A function on its way to LLVM IR.
pub(crate) struct Emitter<'a> {
    pub(crate) types: &'a TypeCtx,
    pub(crate) f: &'a MpirFn,
    pub(crate) layout: &'a KernelLayout,
    /// The functions that calls name.
    pub(crate) functions: &'a [Function<'a>],
    pub(crate) flavor: Flavor,
    /// The major version of the LLVM that reads the text.
    pub(crate) llvm: u32,
    pub(crate) uniformity: Uniformity,
    pub(crate) intrinsics: Intrinsics,
    pub(crate) memory: Memory,
    pub(crate) lines: Lines<'a>,
    /// Definitions in front of the functions.
    pub(crate) globals: String,
    /// What runs once at the start.
    pub(crate) prologue: String,
    pub(crate) body: String,
    temps: u32,
    labels: u32,
    /// The block under construction.
    pub(crate) here: Block,
    /// The lanes that take part in subgroup operations of this block, once they are known.
    pub(crate) members: Option<Operand>,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        types: &'a TypeCtx,
        f: &'a MpirFn,
        layout: &'a KernelLayout,
        functions: &'a [Function<'a>],
        flavor: Flavor,
        llvm: u32,
        sources: Option<&'a SourceMap>,
    ) -> Emitter<'a> {
        Emitter {
            types,
            f,
            layout,
            functions,
            flavor,
            llvm,
            uniformity: Uniformity::new(f, types, &Cfg::new(f)),
            intrinsics: Intrinsics::default(),
            memory: Memory::default(),
            lines: Lines::new(sources, f.span),
            globals: String::new(),
            prologue: String::new(),
            body: String::with_capacity(f.num_insts() * 48),
            temps: 0,
            labels: 0,
            here: Block(0),
            members: None,
        }
    }

    /// Adds the function to a module.
    pub(crate) fn write(mut self, module: &mut ModuleText) -> Emit {
        self.intrinsics = std::mem::take(&mut module.intrinsics);
        self.globals = std::mem::take(&mut module.globals);
        let head = match self.f.is_kernel() {
            true => self.kernel_head()?,
            false => self.function_head()?,
        };
        for b in self.f.block_ids() {
            self.block(b)?;
        }
        let _ = write!(
            module.functions,
            "{head} #0{} {{\nstart:\n{}  br label %b0\n{}}}\n\n",
            self.subprogram(),
            self.prologue,
            self.body,
        );
        module.line_metadata.push_str(&self.line_metadata());
        module.intrinsics = self.intrinsics;
        module.globals = self.globals;
        Ok(())
    }

    // ----- blocks -----

    fn block(&mut self, b: Block) -> Emit {
        let f = self.f;
        self.here = b;
        self.members = None;
        self.place_label(&format!("b{}", b.0));
        for &i in &f.block(b).insts {
            self.note_line(f.inst(i).span);
            match f.inst(i).op {
                magpie_mpir::Op::Phi => self.phi(i)?,
                _ => self.emit_inst(i)?,
            }
        }
        if self.splits(b) {
            let exit = self.exit_label(b);
            line!(self, "br label %{exit}");
            self.place_label(&exit);
        }
        self.terminator(b)
    }

    /// Whether a block becomes several, because it holds loops of subgroup operations.
    fn splits(&self, b: Block) -> bool {
        let f = self.f;
        f.block(b).insts.iter().any(|&i| crate::ops::is_lane_loop(f.inst(i).op))
    }

    /// The label of the last piece of a block.
    fn exit_label(&self, b: Block) -> String {
        match self.splits(b) {
            true => format!("x{}", b.0),
            false => format!("b{}", b.0),
        }
    }

    fn phi(&mut self, i: Inst) -> Emit {
        let f = self.f;
        let shape = self.result_shape(i)?;
        let mut arms = String::new();
        for (from, v) in f.phi_arms(i) {
            let v = self.value(v)?;
            let label = self.exit_label(from);
            // LLVM wants an arm for each edge.
            for _ in 0..self.edges(from, self.here) {
                let comma = if arms.is_empty() { "" } else { "," };
                let _ = write!(arms, "{comma} [ {v}, %{label} ]");
            }
        }
        let name = self.result(i)?;
        line!(self, "{name} = phi {shape}{arms}");
        Ok(())
    }

    /// The number of edges between two blocks in the text.
    fn edges(&self, from: Block, to: Block) -> usize {
        let term = &self.f.block(from).term;
        let mut count = 0;
        term.for_each_target(|b| count += usize::from(b == to));
        match term {
            Terminator::Switch { .. } => count,
            Terminator::Ret(_)
            | Terminator::Br(_)
            | Terminator::Cbr { .. }
            | Terminator::Unreachable => count.min(1),
        }
    }

    fn terminator(&mut self, b: Block) -> Emit {
        let f = self.f;
        self.note_line(f.block(b).term_span);
        match &f.block(b).term {
            &Terminator::Ret(Some(v)) if f.ret_ty != fixed::UNIT => {
                let (shape, v) = (self.shape_of(v)?, self.value(v)?);
                line!(self, "ret {shape} {v}");
            }
            Terminator::Ret(_) => line!(self, "ret void"),
            Terminator::Unreachable => line!(self, "unreachable"),
            Terminator::Br(to) => line!(self, "br label %b{}", to.0),
            Terminator::Cbr { then, else_, .. } if then == else_ => {
                line!(self, "br label %b{}", then.0);
            }
            &Terminator::Cbr { cond, then, else_ } => {
                let cond = self.value(cond)?;
                line!(self, "br i1 {cond}, label %b{}, label %b{}", then.0, else_.0);
            }
            Terminator::Switch { value, cases, default } => {
                let shape = self.shape_of(*value)?;
                let v = self.value(*value)?;
                let mut text = format!("switch {shape} {v}, label %b{} [", default.0);
                for &(bits, to) in cases {
                    let bits = constant(shape.prim, bits);
                    let _ = write!(text, " {shape} {bits}, label %b{}", to.0);
                }
                line!(self, "{text} ]");
            }
        }
        Ok(())
    }

    /// Begins a basic block.
    pub(crate) fn place_label(&mut self, label: &str) {
        let _ = writeln!(self.body, "{label}:");
    }

    /// A fresh number for labels inside a block.
    pub(crate) fn fresh_label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    pub(crate) fn push_line(&mut self, line: fmt::Arguments<'_>) {
        let _ = match self.lines.suffix() {
            Some(at) => writeln!(self.body, "  {line}, !dbg !{at}"),
            None => writeln!(self.body, "  {line}"),
        };
    }

    // ----- values -----

    /// A name for something in between.
    pub(crate) fn temp(&mut self) -> Operand {
        self.temps += 1;
        Operand::Temp(self.temps)
    }

    /// Appends an instruction with a result of its own.
    pub(crate) fn emit(&mut self, text: fmt::Arguments<'_>) -> Operand {
        let t = self.temp();
        line!(self, "{t} = {text}");
        t
    }

    /// The same at the start of the function.
    pub(crate) fn emit_at_start(&mut self, text: fmt::Arguments<'_>) -> Operand {
        let t = self.temp();
        let _ = writeln!(self.prologue, "  {t} = {text}");
        t
    }

    /// The text of a value.
    pub(crate) fn value(&self, v: Value) -> Emit<Operand> {
        match self.f.def(v) {
            ValueDef::Inst(_) | ValueDef::Param(_) => Ok(Operand::Value(v.0)),
            ValueDef::Const(c) => {
                let shape = self.shape_of(v)?;
                match (c, shape.lanes) {
                    (Const::Bits(bits), _) => Ok(Operand::Text(constant(shape.prim, bits))),
                    (Const::Zero, 1) => Ok(Operand::Text(constant(shape.prim, 0))),
                    (Const::Zero, _) => Ok(Operand::Text("zeroinitializer".to_string())),
                    (Const::Unit | Const::Str(_), _) => {
                        Err(self.broken("a constant that no register holds"))
                    }
                }
            }
        }
    }

    /// Operand `n` of an instruction.
    pub(crate) fn arg(&self, i: Inst, n: usize) -> Emit<Operand> {
        self.value(self.arg_value(i, n)?)
    }

    pub(crate) fn arg_value(&self, i: Inst, n: usize) -> Emit<Value> {
        let v = self.f.args(i).get(n).copied();
        v.ok_or_else(|| self.broken_at(i, "operands are missing"))
    }

    /// The name of the result of an instruction.
    pub(crate) fn result(&self, i: Inst) -> Emit<Operand> {
        match self.f.inst(i).result() {
            Some(v) => Ok(Operand::Value(v.0)),
            None => Err(self.broken_at(i, "a result is missing")),
        }
    }

    /// Appends an instruction that defines the result of `i`.
    pub(crate) fn define(&mut self, i: Inst, text: fmt::Arguments<'_>) -> Emit {
        let name = self.result(i)?;
        line!(self, "{name} = {text}");
        Ok(())
    }

    /// Lets the result of `i` be something that has a name already.
    pub(crate) fn define_as(&mut self, i: Inst, shape: Shape, v: &Operand) -> Emit {
        self.define(i, format_args!("bitcast {shape} {v} to {shape}"))
    }

    // ----- types -----

    /// The shape that holds values of a type.
    pub(crate) fn shape_of_type(&self, ty: TypeId) -> Emit<Shape> {
        Shape::of(self.types, ty)
            .ok_or_else(|| self.broken(&format!("a value of type `{}`", self.types.name(ty))))
    }

    pub(crate) fn shape_of(&self, v: Value) -> Emit<Shape> {
        self.shape_of_type(self.f.ty(v))
    }

    pub(crate) fn result_shape(&self, i: Inst) -> Emit<Shape> {
        self.shape_of_type(self.f.inst(i).ty)
    }

    /// The scalar type of operand 0.
    pub(crate) fn first_prim(&self, i: Inst) -> Emit<PrimType> {
        Ok(self.shape_of(self.arg_value(i, 0)?)?.prim)
    }

    // ----- calls -----

    /// The text of a call of an intrinsic whose operands all have the type `ty`.
    pub(crate) fn call(&mut self, name: &str, result: &str, ty: &str, args: &[&Operand]) -> String {
        let params = vec![ty; args.len()].join(", ");
        self.intrinsics.declare(name, result, &params);
        let mut text = format!("{result} @{name}(");
        for (n, arg) in args.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}{ty} {arg}");
        }
        text.push(')');
        text
    }

    // ----- refusals -----

    /// The report of a fault of an earlier stage: something came through that it removes.
    pub(crate) fn broken(&self, what: &str) -> Box<Diagnostic> {
        self.broken_span(self.f.span, what)
    }

    /// As [`Emitter::broken`], at an instruction.
    pub(crate) fn broken_at(&self, i: Inst, what: &str) -> Box<Diagnostic> {
        let inst = self.f.inst(i);
        self.broken_span(inst.span, &format!("`{}`: {what}", inst.op.name()))
    }

    fn broken_span(&self, span: Span, what: &str) -> Box<Diagnostic> {
        let code = match self.flavor.backend() {
            GpuBackend::Hip => Code::MPG_HIP_2002,
            _ => Code::MPG_PTX_2002,
        };
        let message = format!("kernel `{}` is not in the form LLVM needs: {what}", self.f.name);
        let d = Diagnostic::new(code, span, message);
        Box::new(d.with_help("this is a fault of the compiler: please report it with the program"))
    }
}
