//! Kernels as text of a C-like language with structured control flow: what WGSL and MSL share.
//!
//! A back end implements [`Language`] and calls [`write_body`]; it gets the statements of the
//! kernel's function, which it puts between the declarations it has gathered meanwhile.
//!
//! # Contract
//!
//! The kernel is legalised, its bounds checks are explicit, and [`structurize`](mod@crate::structurize)
//! has made it structured; nothing may change it afterwards. Then:
//!
//! - Every value has one form, decided here. A pure value that is read once, in its own block, is
//!   written where it is read. Other values get a name `v1`, `v2`, … in the order of the text: a
//!   constant declared where it is computed ([`Language::declare_constant`]), or, when a use stands
//!   outside the braces around it, a variable of the whole function ([`Language::declare_variable`]).
//!   Values that nobody reads are not written unless computing them does something.
//! - Phis are such variables. They are assigned at the ends of blocks and before `continue`, so a
//!   language needs neither a continuing part nor blocks with arguments.
//! - Constants are literals ([`Language::literal`]); scalar parameters are read through
//!   [`Language::parameter`], once each. Buffers and arrays are the language's own business: it
//!   remembers under their [`Value`] how to access them.
//! - Pure instructions ([`Op::is_pure`]) go to [`Language::expression`], which appends an expression
//!   to [`Text::out`] (mostly by [`Text::expand`] with a template) and nothing else: it may be
//!   called in the middle of a statement. All others go to [`Language::statement`], which writes
//!   whole statements ([`Text::open_result`], [`Text::line`]).
//! - Expressions nest up to a fixed depth, and braces up to [`Language::MAX_NESTING`].
//!
//! Nothing is written twice, so the text is as long as the kernel.

mod control_flow;
mod names;
mod plan;
mod shape;
mod spelling;
mod template;

pub use control_flow::write_body;
pub use shape::Shape;
pub use spelling::common_spelling;

use magpie_diag::{Code, Diagnostic, Span};
use magpie_mpir::{Block, Const, Inst, Memory, MpirFn, Op, Value, ValueDef};
use magpie_types::TypeCtx;
use magpie_types::kernel::KernelLayout;
use names::Names;
use plan::{MAX_EXPRESSION_DEPTH, Plan, Written};
use std::fmt::Write;

/// The result of an emission step.
pub type Emit<T = ()> = Result<T, Box<Diagnostic>>;

/// What a language writes in its own way. Methods append to [`Text::out`].
pub trait Language: Sized {
    /// The name of the language in messages.
    const NAME: &'static str;
    /// The code of refusals and of faults of earlier stages.
    const CODE: Code;
    /// Deepest nesting of braces.
    const MAX_NESTING: u32;
    /// Most labels of a `switch`.
    const MAX_CASES: usize = usize::MAX;
    /// The head of a loop without a condition, with its brace: `loop {`.
    const LOOP: &'static str;
    /// How an arm of a `switch` ends, with its brace.
    const END_CASE: &'static str;

    /// Whether an identifier means something to the language or to the code around the body.
    fn is_reserved(&self, word: &str) -> bool;

    /// The name of a type in a register.
    fn type_name(&self, shape: Shape) -> &'static str;

    /// Writes a declaration up to the value: `let v1 = `. The type is there for languages that
    /// need it.
    fn declare_constant(&self, text: &mut Text<'_>, name: &str, shape: Shape);

    /// A declaration of a variable of the function, complete: `var v1: u32;`. Its content does
    /// not matter.
    fn declare_variable(&self, name: &str, shape: Shape) -> String;

    /// Writes a scalar constant, or the zero vector (`bits` is 0 then), as an atomic expression.
    ///
    /// # Errors
    /// Types without literals.
    fn literal(&mut self, text: &mut Text<'_>, shape: Shape, bits: u64) -> Emit;

    /// An atomic expression for a scalar parameter, or leaf `leaf` of an aggregate one; asked once
    /// for each. What has to be computed for it goes to [`Text::prologue`].
    ///
    /// # Errors
    /// Types that the language cannot take.
    fn parameter(&mut self, text: &mut Text<'_>, param: u32, leaf: u32) -> Emit<String>;

    /// Writes the expression of a pure instruction.
    ///
    /// # Errors
    /// What the language does not have.
    fn expression(&mut self, text: &mut Text<'_>, i: Inst) -> Emit;

    /// Writes an instruction that does more than compute a value from its operands.
    ///
    /// # Errors
    /// What the language does not have.
    fn statement(&mut self, text: &mut Text<'_>, i: Inst) -> Emit;

    /// Writes the head of an arm of a `switch` over values of a shape, with its brace:
    /// `case 1u, 2u: {`. `None` is the default arm.
    ///
    /// # Errors
    /// Selectors that the language does not have.
    fn case(&mut self, text: &mut Text<'_>, shape: Shape, labels: Option<&[u64]>) -> Emit;

    /// Opens a loop whose first block is `header`, where its phis are. Languages in which a loop
    /// may be assumed to end keep that from happening here.
    ///
    /// # Errors
    /// What [`Text::open`] says.
    fn open_loop(&mut self, text: &mut Text<'_>, header: Block) -> Emit {
        let _ = header;
        text.open::<Self>(Self::LOOP)
    }

    /// Called at the end of the body of a loop, inside its braces; `has_exit` tells whether
    /// anything leaves the loop.
    fn end_loop(&mut self, text: &mut Text<'_>, has_exit: bool);
}

/// The body of a kernel under construction.
pub struct Text<'a> {
    #[allow(missing_docs)]
    pub types: &'a TypeCtx,
    #[allow(missing_docs)]
    pub f: &'a MpirFn,
    #[allow(missing_docs)]
    pub layout: &'a KernelLayout,
    /// Statements that run once, in front of all others.
    pub prologue: String,
    /// The statements so far.
    pub out: String,
    nesting: u32,
    names: Names,
    /// What [`Written::Name`] counts.
    named: Vec<String>,
    written: Vec<Written>,
    next_number: u32,
    parameters: Vec<((u32, u32), u32)>,
    code: Code,
    language: &'static str,
}

impl<'a> Text<'a> {
    /// A text without statements. `prologue` and statements are indented by one level.
    pub fn new<L: Language>(types: &'a TypeCtx, f: &'a MpirFn, layout: &'a KernelLayout) -> Self {
        Text {
            types,
            f,
            layout,
            prologue: String::new(),
            out: String::with_capacity(f.num_insts() * 32),
            nesting: 1,
            names: Names::default(),
            named: Vec::new(),
            written: vec![Written::Not; f.locals.len()],
            next_number: 1,
            parameters: Vec::new(),
            code: L::CODE,
            language: L::NAME,
        }
    }

    // ----- names -----

    /// An identifier that looks like `source`, for the language's own use.
    pub fn take_name(&mut self, language: &impl Language, source: &str) -> String {
        self.names.take(source, |word| language.is_reserved(word))
    }

    /// The next name of the form `v1`, for a value the language makes itself.
    pub fn next_name(&mut self) -> String {
        let name = format!("v{}", self.next_number);
        self.next_number += 1;
        name
    }

    fn number(&mut self, v: Value) -> String {
        self.written[v.index()] = Written::Number(self.next_number);
        self.next_name()
    }

    // ----- operands -----

    /// Writes a value so that it can be an operand of anything: in parentheses when it needs them.
    ///
    /// # Errors
    /// Constants and parameters that the language does not have; values without a register.
    pub fn operand(&mut self, language: &mut impl Language, v: Value) -> Emit {
        let start = self.out.len();
        self.argument(language, v)?;
        let is_expression = matches!(self.written[v.index()], Written::Expression(..));
        if is_expression && !template::is_atomic(&self.out[start..]) {
            self.out.insert(start, '(');
            self.out.push(')');
        }
        Ok(())
    }

    /// Writes a value where it needs no parentheses: as an argument, as an index, behind `=`.
    ///
    /// # Errors
    /// As [`Text::operand`].
    pub fn argument(&mut self, language: &mut impl Language, v: Value) -> Emit {
        match self.written[v.index()] {
            Written::Number(n) => {
                // Writing to a string does not fail.
                let _ = write!(self.out, "v{n}");
                Ok(())
            }
            Written::Name(n) => {
                self.out.push_str(&self.named[n as usize]);
                Ok(())
            }
            Written::Expression(i, _) => language.expression(self, i),
            Written::Not | Written::Unread => self.first_use(language, v),
        }
    }

    fn first_use(&mut self, language: &mut impl Language, v: Value) -> Emit {
        match self.f.def(v) {
            ValueDef::Inst(i) => Err(self.broken_at(i, "read before it is computed")),
            ValueDef::Param(n) => {
                let name = self.parameter(language, n, 0)?;
                self.out.push_str(&self.named[name as usize]);
                self.written[v.index()] = Written::Name(name);
                Ok(())
            }
            ValueDef::Const(c) => {
                let shape = self.shape_of(v)?;
                match c {
                    Const::Bits(bits) => language.literal(self, shape, bits),
                    Const::Zero => language.literal(self, shape, 0),
                    Const::Unit | Const::Str(_) => {
                        Err(self.broken("a constant that no register holds"))
                    }
                }
            }
        }
    }

    /// The number of the name of a scalar parameter.
    fn parameter(&mut self, language: &mut impl Language, param: u32, leaf: u32) -> Emit<u32> {
        let known = self.parameters.iter().find(|p| p.0 == (param, leaf));
        if let Some(&(_, name)) = known {
            return Ok(name);
        }
        let name = language.parameter(self, param, leaf)?;
        self.named.push(name);
        let number = self.named.len() as u32 - 1;
        self.parameters.push(((param, leaf), number));
        Ok(number)
    }

    /// Writes the scalar of an aggregate parameter that a `leaf.get` names.
    ///
    /// # Errors
    /// As [`Language::parameter`].
    pub fn leaf_get(&mut self, language: &mut impl Language, i: Inst) -> Emit {
        let v = self.arg(i, 0)?;
        let ValueDef::Param(param) = self.f.def(v) else {
            return Err(self.broken_at(i, "operand 0 is no parameter"));
        };
        let name = self.parameter(language, param, self.f.inst(i).imm_lo())?;
        self.out.push_str(&self.named[name as usize]);
        Ok(())
    }

    /// Operand `n` of an instruction.
    ///
    /// # Errors
    /// There is none.
    pub fn arg(&self, i: Inst, n: usize) -> Emit<Value> {
        let arg = self.f.args(i).get(n).copied();
        arg.ok_or_else(|| self.broken_at(i, "operands are missing"))
    }

    // ----- shapes -----

    /// The shape of a value.
    ///
    /// # Errors
    /// No register holds it.
    pub fn shape_of(&self, v: Value) -> Emit<Shape> {
        self.shape_of_type(self.f.ty(v))
    }

    /// The shape of a type.
    ///
    /// # Errors
    /// No register holds it.
    pub fn shape_of_type(&self, ty: magpie_types::TypeId) -> Emit<Shape> {
        Shape::of_type(self.types, ty)
            .ok_or_else(|| self.broken(&format!("a value of type `{}`", self.types.name(ty))))
    }

    /// The shape of operand `n`.
    ///
    /// # Errors
    /// There is none, or no register holds it.
    pub fn shape_of_operand(&self, i: Inst, n: usize) -> Emit<Shape> {
        self.shape_of(self.arg(i, n)?)
    }

    /// The shape of the result of an instruction.
    ///
    /// # Errors
    /// No register holds it.
    pub fn shape_of_result(&self, i: Inst) -> Emit<Shape> {
        self.shape_of_type(self.f.inst(i).ty)
    }

    // ----- statements -----

    /// Writes the indentation of a statement.
    pub fn indent(&mut self) {
        for _ in 0..self.nesting {
            self.out.push_str("    ");
        }
    }

    /// Writes a line.
    pub fn line(&mut self, line: &str) {
        self.indent();
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// Writes a line that opens a brace.
    ///
    /// # Errors
    /// Too many are open.
    pub fn open<L: Language>(&mut self, line: &str) -> Emit {
        self.line(line);
        self.enter::<L>()
    }

    fn enter<L: Language>(&mut self) -> Emit {
        self.nesting += 1;
        if self.nesting <= L::MAX_NESTING {
            return Ok(());
        }
        let message = format!(
            "control flow of kernel `{}` is nested deeper than {}",
            self.f.name,
            L::MAX_NESTING
        );
        Err(self.refuse_kernel(message, "move inner parts to a kernel of their own"))
    }

    /// Writes a line that closes a brace.
    pub fn close(&mut self, line: &str) {
        self.nesting -= 1;
        self.line(line);
    }

    /// Begins the statement that computes the result of an instruction: writes the declaration or
    /// assignment up to the value. When nothing reads the result, only the indentation. The caller
    /// writes the value and [`Text::end_statement`].
    ///
    /// # Errors
    /// No register holds the result.
    pub fn open_result(&mut self, language: &impl Language, i: Inst) -> Emit {
        self.indent();
        let Some(v) = self.f.inst(i).result() else { return Ok(()) };
        match self.written[v.index()] {
            // A variable that is declared already.
            Written::Number(n) => {
                let _ = write!(self.out, "v{n} = ");
            }
            Written::Unread | Written::Name(_) | Written::Expression(..) => {}
            Written::Not => {
                let shape = self.shape_of_result(i)?;
                let name = self.number(v);
                language.declare_constant(self, &name, shape);
            }
        }
        Ok(())
    }

    /// Ends a statement.
    pub fn end_statement(&mut self) {
        self.out.push_str(";\n");
    }

    /// Whether anything reads the result of the instruction that is being written.
    pub fn is_read(&self, i: Inst) -> bool {
        let result = self.f.inst(i).result();
        result.is_some_and(|v| self.written[v.index()] != Written::Unread)
    }

    /// Writes the instructions of a block but for the phis.
    fn instructions(&mut self, language: &mut impl Language, plan: &Plan, block: Block) -> Emit {
        let f = self.f;
        for &i in &f.block(block).insts {
            let inst = f.inst(i);
            let is_read = inst.result().is_some_and(|v| plan.is_used(v));
            if let Some(v) = inst.result().filter(|_| !is_read) {
                self.written[v.index()] = Written::Unread;
            }
            let (op, memory) = (inst.op, inst.op.info().memory);
            // Memory that a value names is declared even when nobody reads it.
            let does_nothing =
                !is_read && matches!(memory, Memory::None | Memory::Read) && op != Op::GpuShared;
            if op == Op::Phi || does_nothing {
                continue;
            }
            match op.is_pure() {
                true => self.pure(language, plan, block, i)?,
                false => language.statement(self, i)?,
            }
        }
        Ok(())
    }

    fn pure(&mut self, language: &mut impl Language, plan: &Plan, block: Block, i: Inst) -> Emit {
        let Some(v) = self.f.inst(i).result() else { return Ok(()) };
        let depth = self.depth_of_operands(i) + 1;
        let is_declared = matches!(self.written[v.index()], Written::Number(_));
        if !is_declared && plan.is_used_once_in(v, block) && depth <= MAX_EXPRESSION_DEPTH {
            self.written[v.index()] = Written::Expression(i, depth);
            return Ok(());
        }
        self.open_result(language, i)?;
        language.expression(self, i)?;
        self.end_statement();
        Ok(())
    }

    fn depth_of_operands(&self, i: Inst) -> u8 {
        let depth = |&v: &Value| match self.written[v.index()] {
            Written::Expression(_, depth) => depth,
            Written::Not | Written::Unread | Written::Number(_) | Written::Name(_) => 0,
        };
        self.f.args(i).iter().map(depth).max().unwrap_or(0)
    }

    // ----- refusals -----

    /// A refusal of the whole kernel.
    pub fn refuse_kernel(&self, message: String, help: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::new(self.code, self.f.span, message).with_help(help))
    }

    /// The report of a fault of an earlier stage: something came through that it removes.
    pub fn broken(&self, what: &str) -> Box<Diagnostic> {
        self.broken_span(self.f.span, what)
    }

    /// As [`Text::broken`], at an instruction.
    pub fn broken_at(&self, i: Inst, what: &str) -> Box<Diagnostic> {
        let inst = self.f.inst(i);
        self.broken_span(inst.span, &format!("`{}`: {what}", inst.op.name()))
    }

    fn broken_span(&self, span: Span, what: &str) -> Box<Diagnostic> {
        let (kernel, language) = (&self.f.name, self.language);
        let message = format!("kernel `{kernel}` is not in the form {language} needs: {what}");
        let d = Diagnostic::new(self.code, span, message);
        Box::new(d.with_help("this is a fault of the compiler: please report it with the program"))
    }
}
