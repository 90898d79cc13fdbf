//! The statements of a kernel, in the order of the structured tree.

use super::plan::{Plan, Written};
use super::{Emit, Language, Shape, Text};
use crate::structurize::{Event, PhiCopies, PhiCopy, StructuredBody, phi_copies};
use magpie_mpir::{Block, Op, Value};
use std::fmt::Write;

/// Writes the whole body: declarations of variables to the front of [`Text::prologue`], statements
/// to [`Text::out`].
///
/// # Errors
/// What the language does not have, at its place in the source.
pub fn write_body<L: Language>(
    language: &mut L,
    text: &mut Text<'_>,
    body: &StructuredBody,
) -> Emit {
    let copies = phi_copies(text.f, body);
    let plan = Plan::new(text.f, body, &copies);
    let mut variables = declare_variables(language, text, &plan)?;
    let mut temporaries = Vec::with_capacity(copies.temporaries.len());
    for &ty in &copies.temporaries {
        let (name, shape) = (text.next_name(), text.shape_of_type(ty)?);
        push_declaration(&mut variables, &language.declare_variable(&name, shape));
        temporaries.push(name);
    }
    let mut walk = Walk {
        language,
        text,
        plan,
        copies,
        temporaries,
        loops: Vec::new(),
        switches: Vec::new(),
        pending: Pending::Nothing,
    };
    let mut outcome = Ok(());
    body.walk(|event| {
        if outcome.is_ok() {
            outcome = walk.step(event);
        }
    });
    outcome?;
    text.prologue.insert_str(0, &variables);
    Ok(())
}

fn push_declaration(variables: &mut String, declaration: &str) {
    variables.push_str("    ");
    variables.push_str(declaration);
    variables.push('\n');
}

/// Names phis that are read, and values that are read outside the braces around them.
fn declare_variables<L: Language>(language: &L, text: &mut Text<'_>, plan: &Plan) -> Emit<String> {
    let f = text.f;
    let mut variables = String::new();
    for b in f.block_ids() {
        for &i in &f.block(b).insts {
            let Some(v) = f.inst(i).result() else { continue };
            let op = f.inst(i).op;
            let names_memory = matches!(op, Op::GpuShared | Op::GpuLocal);
            if names_memory || !(plan.escapes(v) || op == Op::Phi && plan.is_used(v)) {
                continue;
            }
            let shape = text.shape_of_result(i)?;
            let name = text.number(v);
            push_declaration(&mut variables, &language.declare_variable(&name, shape));
        }
    }
    Ok(variables)
}

/// What is written only when something follows it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pending {
    Nothing,
    /// The head of an if, whose first arm may be empty.
    If(Value),
    /// `continue`, which the end of a loop's body does by itself.
    Continue,
}

struct OpenLoop {
    latch: Block,
    has_exit: bool,
}

struct Walk<'w, 'a, L> {
    language: &'w mut L,
    text: &'w mut Text<'a>,
    plan: Plan,
    copies: PhiCopies,
    temporaries: Vec<String>,
    loops: Vec<OpenLoop>,
    /// What the open switches select by, and their labels so far.
    switches: Vec<(Shape, usize)>,
    pending: Pending,
}

impl<L: Language> Walk<'_, '_, L> {
    fn step(&mut self, event: Event<'_>) -> Emit {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => {}
            Pending::If(cond) => match event {
                Event::Else => return self.open_if("if (!", cond),
                // Neither arm does anything.
                Event::EndIf => return Ok(()),
                _ => self.open_if("if (", cond)?,
            },
            Pending::Continue => match event {
                Event::Continuing { .. } => {}
                _ => self.text.line("continue;"),
            },
        }
        match event {
            Event::Block(b) => {
                self.text.instructions(self.language, &self.plan, b)?;
                self.copy(b)
            }
            Event::If { cond, .. } => {
                self.pending = Pending::If(cond);
                Ok(())
            }
            Event::Else => {
                self.text.nesting -= 1;
                self.text.open::<L>("} else {")
            }
            Event::EndIf => {
                self.text.close("}");
                Ok(())
            }
            Event::EndSwitch => {
                self.switches.pop();
                self.text.close("}");
                Ok(())
            }
            Event::Loop { header, latch, .. } => {
                self.loops.push(OpenLoop { latch, has_exit: false });
                self.language.open_loop(self.text, header)?;
                self.copy(header)
            }
            Event::Continuing { .. } => Ok(()),
            Event::EndLoop => {
                let has_exit = self.loops.pop().is_some_and(|l| l.has_exit);
                self.language.end_loop(self.text, has_exit);
                self.text.close("}");
                Ok(())
            }
            Event::Switch { value, .. } => {
                self.text.indent();
                self.text.out.push_str("switch (");
                self.text.argument(self.language, value)?;
                self.text.out.push_str(") {\n");
                self.text.enter::<L>()?;
                self.switches.push((self.text.shape_of(value)?, 0));
                Ok(())
            }
            Event::Case { labels } => self.case(Some(labels)),
            Event::Default => self.case(None),
            Event::EndCase => {
                self.text.close(L::END_CASE);
                Ok(())
            }
            Event::Break => {
                if let Some(open) = self.loops.last_mut() {
                    open.has_exit = true;
                }
                self.text.line("break;");
                Ok(())
            }
            Event::Continue => {
                let latch = self.loops.last().map(|l| l.latch);
                self.pending = Pending::Continue;
                latch.map_or(Ok(()), |latch| self.copy(latch))
            }
            Event::Return | Event::Unreachable => {
                self.loops.iter_mut().for_each(|l| l.has_exit = true);
                // At the end of the function it returns anyway.
                if self.text.nesting > 1 {
                    self.text.line("return;");
                }
                Ok(())
            }
        }
    }

    fn open_if(&mut self, head: &str, cond: Value) -> Emit {
        let text = &mut *self.text;
        text.indent();
        text.out.push_str(head);
        match head.ends_with('!') {
            true => text.operand(self.language, cond)?,
            false => text.argument(self.language, cond)?,
        }
        text.out.push_str(") {\n");
        text.enter::<L>()
    }

    fn case(&mut self, labels: Option<&[u64]>) -> Emit {
        let Some((shape, cases)) = self.switches.last_mut() else {
            return Err(self.text.broken("an arm without a switch"));
        };
        *cases += labels.map_or(0, <[u64]>::len);
        if *cases > L::MAX_CASES {
            let (kernel, most) = (&self.text.f.name, L::MAX_CASES);
            let message = format!(
                "a switch of kernel `{kernel}` has {cases} cases or more; {} allows {most}",
                L::NAME
            );
            return Err(self.text.refuse_kernel(message, "split the switch"));
        }
        let shape = *shape;
        self.text.indent();
        self.language.case(self.text, shape, labels)?;
        self.text.out.push('\n');
        self.text.enter::<L>()
    }

    /// Writes the assignments at the end of a block.
    fn copy(&mut self, block: Block) -> Emit {
        for &copy in self.copies.at(block) {
            let text = &mut *self.text;
            match copy {
                PhiCopy::Assign { phi, source } => {
                    let Written::Number(n) = text.written[phi.index()] else { continue };
                    text.indent();
                    let _ = write!(text.out, "v{n} = ");
                    text.argument(self.language, source)?;
                }
                PhiCopy::Save { temporary, phi } => {
                    text.indent();
                    let _ = write!(text.out, "{} = ", self.temporaries[temporary as usize]);
                    text.argument(self.language, phi)?;
                }
                PhiCopy::Restore { phi, temporary } => {
                    text.indent();
                    let temporary = &self.temporaries[temporary as usize];
                    text.argument(self.language, phi)?;
                    let _ = write!(text.out, " = {temporary}");
                }
            }
            text.end_statement();
        }
        Ok(())
    }
}
