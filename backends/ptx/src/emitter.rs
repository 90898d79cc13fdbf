//! The state of emitting one function: which register or constant stands for which MPIR value, and
//! the text under construction.

use crate::lines::Lines;
use crate::memory::Memory;
use crate::operand::{Class, Operand, Reg, lanes_of};
use crate::params::Params;
use crate::target::PtxTarget;
use magpie_diag::{Code, Diagnostic, SourceMap, Span};
use magpie_gpu::structurize::PhiCopies;
use magpie_mpir::analysis::{Cfg, Uniformity};
use magpie_mpir::{Block, Const, FnId, Inst, MpirFn, Op, Value, ValueDef};
use magpie_types::kernel::KernelLayout;
use magpie_types::{PrimType, TypeCtx};
use std::fmt::{self, Write};

/// The result of an emission step.
pub(crate) type Emit<T = ()> = Result<T, Box<Diagnostic>>;

/// What a value is.
#[derive(Clone, Copy)]
enum Slot {
    /// Not seen yet.
    None,
    Scalar(Operand),
    /// The components of a vector, from this position of [`Emitter::lanes`].
    Lanes(u32),
    /// Memory: the position of an object.
    Object(u32),
}

/// A function with how it gets its parameters.
pub(crate) struct Function<'a> {
    pub(crate) id: FnId,
    pub(crate) f: &'a MpirFn,
    pub(crate) layout: KernelLayout,
}

/// The pieces of a module, from all its functions.
pub(crate) struct ModuleText<'a> {
    pub(crate) lines: Lines<'a>,
    /// Heads of functions, and the dynamic shared array.
    declarations: String,
    functions: String,
}

impl<'a> ModuleText<'a> {
    /// An empty module; `sources` are for source locations.
    pub(crate) fn new(sources: Option<&'a SourceMap>) -> ModuleText<'a> {
        let (declarations, functions) = (String::new(), String::new());
        ModuleText { lines: Lines::new(sources), declarations, functions }
    }

    /// The whole text.
    pub(crate) fn finish(self, target: &PtxTarget) -> String {
        let (sm, version) = target.architecture();
        let mut out = String::with_capacity(self.functions.len() + 1024);
        let _ = write!(out, ".version {version}\n.target sm_{sm}\n.address_size 64\n\n");
        self.lines.declare_files(&mut out);
        out.push_str(&self.declarations);
        out.push_str(&self.functions);
        out
    }
}

/// A function on its way to PTX.
pub(crate) struct Emitter<'a, 'm> {
    pub(crate) types: &'a TypeCtx,
    pub(crate) f: &'a MpirFn,
    pub(crate) layout: &'a KernelLayout,
    /// The functions that calls name.
    pub(crate) functions: &'a [Function<'a>],
    pub(crate) target: &'a PtxTarget,
    pub(crate) cfg: Cfg,
    pub(crate) uniformity: Uniformity,
    pub(crate) copies: &'a PhiCopies,
    /// What runs once at the start: parameters, special registers, constants that need one.
    pub(crate) prologue: String,
    pub(crate) body: String,
    pub(crate) memory: Memory,
    pub(crate) params: Params,
    pub(crate) module: &'m mut ModuleText<'a>,
    /// The lanes that take part in subgroup operations of the block under construction.
    pub(crate) members: Option<Reg>,
    /// The block under construction.
    pub(crate) here: Block,
    /// Registers in use, by class.
    counts: [u32; Class::ALL.len()],
    /// By value.
    slots: Vec<Slot>,
    lanes: Vec<Operand>,
    /// By value: whether anything reads it.
    is_read: Vec<bool>,
    labels: u32,
}

/// Appends an instruction to the body: `ptx!(self, "add.s32 {d}, {a}, {b}")`.
macro_rules! ptx {
    ($emitter:expr, $($part:tt)*) => {
        $emitter.instruction(format_args!($($part)*))
    };
}
pub(crate) use ptx;

impl<'a, 'm> Emitter<'a, 'm> {
    pub(crate) fn new(
        types: &'a TypeCtx,
        f: &'a MpirFn,
        copies: &'a PhiCopies,
        layout: &'a KernelLayout,
        functions: &'a [Function<'a>],
        target: &'a PtxTarget,
        module: &'m mut ModuleText<'a>,
    ) -> Emitter<'a, 'm> {
        let cfg = Cfg::new(f);
        let uniformity = Uniformity::new(f, types, &cfg);
        let mut is_read = vec![false; f.locals.len()];
        for &b in cfg.rpo() {
            let block = f.block(b);
            for &i in &block.insts {
                f.args(i).iter().for_each(|v| is_read[v.index()] = true);
            }
            if let Some(v) = block.term.operand() {
                is_read[v.index()] = true;
            }
        }
        Emitter {
            types,
            f,
            layout,
            functions,
            target,
            cfg,
            uniformity,
            copies,
            prologue: String::with_capacity(1024),
            body: String::with_capacity(f.num_insts() * 40),
            memory: Memory::default(),
            params: Params::default(),
            module,
            members: None,
            here: Block(0),
            counts: [0; Class::ALL.len()],
            slots: vec![Slot::None; f.locals.len()],
            lanes: Vec::new(),
            is_read,
            labels: 0,
        }
    }

    /// Adds the function to the module.
    pub(crate) fn write(mut self) -> Emit {
        self.declare_buffers()?;
        self.place_shared_arrays()?;
        self.emit_blocks()?;
        let mut out = String::with_capacity(self.prologue.len() + self.body.len() + 1024);
        match self.f.is_kernel() {
            true => self.declare_entry(&mut out),
            false => {
                let head = self.function_head()?;
                let _ = write!(self.module.declarations, "{head};\n\n");
                out = head;
                out.push('\n');
            }
        }
        out.push_str("{\n");
        for (class, &count) in Class::ALL.into_iter().zip(&self.counts) {
            if count > 0 {
                let _ = writeln!(out, "\t.reg .{} {}<{count}>;", class.ty(), class.prefix());
            }
        }
        self.memory.declare_arrays(&mut out);
        out.push_str(&self.prologue);
        out.push_str(&self.body);
        out.push_str("}\n");
        self.memory.declare_dynamic(&mut self.module.declarations);
        self.module.functions.push_str(&out);
        Ok(())
    }

    // ----- text -----

    pub(crate) fn instruction(&mut self, text: fmt::Arguments<'_>) {
        append(&mut self.body, text);
    }

    /// Appends an instruction to the start of the kernel.
    pub(crate) fn at_start(&mut self, text: fmt::Arguments<'_>) {
        append(&mut self.prologue, text);
    }

    /// A label that nothing else has.
    pub(crate) fn fresh_label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    /// Puts a label of [`Emitter::fresh_label`] here.
    pub(crate) fn place_label(&mut self, label: u32) {
        let _ = writeln!(self.body, "$L{label}:");
    }

    // ----- values -----

    pub(crate) fn fresh(&mut self, class: Class) -> Reg {
        let count = &mut self.counts[class as usize];
        *count += 1;
        Reg { class, number: *count - 1 }
    }

    /// Scalar type of a value, which must be no vector.
    pub(crate) fn prim(&self, v: Value) -> Emit<PrimType> {
        match lanes_of(self.types, self.f.ty(v)) {
            Some((p, 1)) => Ok(p),
            _ => {
                let name = self.types.name(self.f.ty(v));
                Err(self.broken(&format!("a value of type `{name}`")))
            }
        }
    }

    /// The register class of a value.
    pub(crate) fn class(&self, v: Value) -> Emit<Class> {
        let p = self.prim(v)?;
        Class::of(p).ok_or_else(|| self.broken("a value that no register holds"))
    }

    /// Scalar type of operand 0.
    pub(crate) fn operand_prim(&self, i: Inst) -> Emit<PrimType> {
        match self.f.args(i).first() {
            Some(&v) => self.prim(v),
            None => Err(self.broken_at(i, "operands are missing")),
        }
    }

    /// Scalar type of the result.
    pub(crate) fn result_prim(&self, i: Inst) -> Emit<PrimType> {
        match self.f.inst(i).result() {
            Some(v) => self.prim(v),
            None => Err(self.broken_at(i, "no result")),
        }
    }

    /// A scalar as an operand: its register, or the constant it is.
    pub(crate) fn value(&mut self, v: Value) -> Emit<Operand> {
        match self.slots[v.index()] {
            Slot::Scalar(operand) => Ok(operand),
            Slot::None => self.first_use(v),
            Slot::Lanes(_) | Slot::Object(_) => Err(self.broken("a vector or buffer as a scalar")),
        }
    }

    fn first_use(&mut self, v: Value) -> Emit<Operand> {
        let operand = match self.f.def(v) {
            ValueDef::Inst(_) => Operand::Reg(self.fresh(self.class(v)?)),
            ValueDef::Param(n) => Operand::Reg(self.load_param(n, 0, 0)?),
            ValueDef::Const(c) => {
                let p = self.prim(v)?;
                match c {
                    Const::Bits(bits) => self.constant(p, bits),
                    Const::Zero => self.constant(p, 0),
                    Const::Unit | Const::Str(_) => {
                        return Err(self.broken("a constant that no register holds"));
                    }
                }
            }
        };
        self.slots[v.index()] = Slot::Scalar(operand);
        Ok(operand)
    }

    /// A constant. Those that instructions cannot hold are put into a register at the start.
    pub(crate) fn constant(&mut self, p: PrimType, bits: u64) -> Operand {
        match Class::of(p) {
            Some(Class::Pred) => {
                let d = self.fresh(Class::Pred);
                self.at_start(format_args!("mov.pred {d}, {bits}"));
                d.into()
            }
            Some(Class::B16) => {
                let d = self.fresh(Class::B16);
                self.at_start(format_args!("mov.b16 {d}, {bits:#06x}"));
                d.into()
            }
            Some(Class::F32) => Operand::F32(bits as u32),
            Some(Class::F64) => Operand::F64(bits),
            Some(Class::B64) => Operand::Int(bits.cast_signed()),
            Some(Class::B32) | None => Operand::Int(i64::from((bits as u32).cast_signed())),
        }
    }

    /// A scalar in a register.
    pub(crate) fn value_reg(&mut self, v: Value) -> Emit<Reg> {
        let operand = self.value(v)?;
        match operand {
            Operand::Reg(r) => Ok(r),
            Operand::Int(_) | Operand::F32(_) | Operand::F64(_) => {
                let d = self.fresh(self.class(v)?);
                let ty = d.class.ty();
                self.at_start(format_args!("mov.{ty} {d}, {operand}"));
                self.slots[v.index()] = Slot::Scalar(d.into());
                Ok(d)
            }
        }
    }

    /// The first `N` operands.
    pub(crate) fn operands<const N: usize>(&mut self, i: Inst) -> Emit<[Operand; N]> {
        let f = self.f;
        let args = f.args(i);
        if args.len() < N {
            return Err(self.broken_at(i, "operands are missing"));
        }
        let mut operands = [Operand::Int(0); N];
        for (operand, &v) in operands.iter_mut().zip(args) {
            *operand = self.value(v)?;
        }
        Ok(operands)
    }

    /// The first operand, in a register.
    pub(crate) fn first_reg(&mut self, i: Inst) -> Emit<Reg> {
        match self.f.args(i).first() {
            Some(&v) => self.value_reg(v),
            None => Err(self.broken_at(i, "operands are missing")),
        }
    }

    /// The register of the result of an instruction.
    pub(crate) fn result(&mut self, i: Inst) -> Emit<Reg> {
        match self.f.inst(i).result() {
            Some(v) => match self.value(v)? {
                Operand::Reg(r) => Ok(r),
                Operand::Int(_) | Operand::F32(_) | Operand::F64(_) => {
                    Err(self.broken_at(i, "a result that is a constant"))
                }
            },
            None => Err(self.broken_at(i, "no result")),
        }
    }

    /// Whether anything reads the result of an instruction.
    pub(crate) fn is_result_read(&self, i: Inst) -> bool {
        self.f.inst(i).result().is_some_and(|v| self.is_read[v.index()])
    }

    /// Lets the result be what a value is. Registers of phis change, so their content is copied.
    pub(crate) fn set_result_to_value(&mut self, i: Inst, v: Value) -> Emit {
        let operand = self.value(v)?;
        if self.f.def_op(v) == Some(Op::Phi) {
            let d = self.result(i)?;
            let ty = d.class.ty();
            ptx!(self, "mov.{ty} {d}, {operand}");
            return Ok(());
        }
        self.set_result(i, operand)
    }

    /// Lets the result be an operand that never changes and has the result's register class.
    pub(crate) fn set_result(&mut self, i: Inst, operand: Operand) -> Emit {
        let Some(v) = self.f.inst(i).result() else { return Ok(()) };
        match self.slots[v.index()] {
            Slot::Scalar(Operand::Reg(promised)) => {
                let ty = promised.class.ty();
                ptx!(self, "mov.{ty} {promised}, {operand}");
            }
            _ => self.slots[v.index()] = Slot::Scalar(operand),
        }
        Ok(())
    }

    // ----- vectors -----

    /// The components of a vector.
    pub(crate) fn lanes(&self, v: Value) -> Emit<&[Operand]> {
        let count = lanes_of(self.types, self.f.ty(v)).map_or(0, |(_, n)| n as usize);
        match self.slots[v.index()] {
            Slot::Lanes(first) => Ok(&self.lanes[first as usize..][..count]),
            _ => Err(self.broken("a vector without components")),
        }
    }

    /// Sets the components of the vector that an instruction gives.
    pub(crate) fn set_lanes(&mut self, i: Inst, lanes: &[Operand]) {
        let Some(v) = self.f.inst(i).result() else { return };
        self.slots[v.index()] = Slot::Lanes(self.lanes.len() as u32);
        self.lanes.extend_from_slice(lanes);
    }

    /// Sets the components of a vector parameter.
    pub(crate) fn set_param_lanes(&mut self, v: Value, lanes: &[Operand]) {
        self.slots[v.index()] = Slot::Lanes(self.lanes.len() as u32);
        self.lanes.extend_from_slice(lanes);
    }

    /// Whether the components of a vector are known.
    pub(crate) fn has_lanes(&self, v: Value) -> bool {
        matches!(self.slots[v.index()], Slot::Lanes(_))
    }

    // ----- memory -----

    /// Remembers the object that a value names.
    pub(crate) fn set_object(&mut self, v: Value, index: u32) {
        self.slots[v.index()] = Slot::Object(index);
    }

    /// The object that a value names.
    pub(crate) fn object_index(&self, v: Value) -> Option<u32> {
        match self.slots[v.index()] {
            Slot::Object(index) => Some(index),
            Slot::None | Slot::Scalar(_) | Slot::Lanes(_) => None,
        }
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
        let message = format!("kernel `{}` is not in the form PTX needs: {what}", self.f.name);
        let d = Diagnostic::new(Code::MPG_PTX_1101, span, message);
        Box::new(d.with_help("this is a fault of the compiler: please report it with the program"))
    }
}

fn append(out: &mut String, text: fmt::Arguments<'_>) {
    out.push('\t');
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
    out.push_str(";\n");
}
