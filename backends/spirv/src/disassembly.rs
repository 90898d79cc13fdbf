//! SPIR-V as text, in the notation of the SPIR-V assembly language, so that nobody needs another
//! tool to look at a kernel.

use rspirv::binary::{Consumer, Disassemble, ParseAction, parse_words};
use rspirv::dr::{Instruction, ModuleHeader, Operand};
use rustc_hash::{FxHashMap, FxHashSet};
use spirv::{GlslStd450Op, Op};
use std::fmt::Write;

/// Columns before the `=` of a result.
const RESULT_WIDTH: usize = 24;

/// The text of a module.
///
/// # Errors
/// What makes `words` no SPIR-V.
pub fn disassemble(words: &[u32]) -> Result<String, String> {
    let mut names = Names::default();
    parse_words(words, &mut names).map_err(|e| e.to_string())?;
    let mut text = Text { names, out: String::new() };
    parse_words(words, &mut text).map_err(|e| e.to_string())?;
    Ok(text.out)
}

/// The names that a module gives its ids, each made a unique word.
#[derive(Default)]
struct Names {
    by_id: FxHashMap<u32, String>,
    taken: FxHashSet<String>,
    float_types: FxHashSet<u32>,
}

impl Consumer for Names {
    fn initialize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn finalize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn consume_header(&mut self, _: ModuleHeader) -> ParseAction {
        ParseAction::Continue
    }

    fn consume_instruction(&mut self, inst: Instruction) -> ParseAction {
        match (inst.class.opcode, inst.operands.as_slice()) {
            (Op::Name, [Operand::IdRef(id), Operand::LiteralString(name), ..]) => {
                let word = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
                self.give(*id, word.collect());
            }
            (opcode, operands) => {
                if opcode == Op::TypeFloat {
                    self.float_types.extend(inst.result_id);
                }
                if let (Some(id), Some(name)) =
                    (inst.result_id, self.descriptive(opcode, inst.result_type, operands))
                {
                    self.give(id, name);
                }
            }
        }
        ParseAction::Continue
    }
}

impl Names {
    /// Names an id by a word, or by one like it that is still free.
    fn give(&mut self, id: u32, mut word: String) {
        // A number would look like an id without a name.
        if word.bytes().all(|b| b.is_ascii_digit()) || self.taken.contains(&word) {
            let _ = write!(word, "_{id}");
        }
        self.taken.insert(word.clone());
        self.by_id.entry(id).or_insert(word);
    }

    /// What types and integer constants are called.
    fn descriptive(&self, op: Op, ty: Option<u32>, operands: &[Operand]) -> Option<String> {
        Some(match (op, operands) {
            (Op::TypeVoid, _) => "void".to_string(),
            (Op::TypeBool, _) => "bool".to_string(),
            (Op::TypeInt, [Operand::LiteralBit32(width), ..]) => format!("u{width}"),
            (Op::TypeFloat, [Operand::LiteralBit32(width), ..]) => format!("f{width}"),
            (Op::TypeVector, [Operand::IdRef(of), Operand::LiteralBit32(n)]) => {
                format!("vec{n}_{}", self.by_id.get(of)?)
            }
            (Op::TypePointer, [Operand::StorageClass(class), Operand::IdRef(to)]) => {
                format!("{class:?}_{}", self.by_id.get(to)?)
            }
            (Op::ConstantTrue, _) => "true".to_string(),
            (Op::ConstantFalse, _) => "false".to_string(),
            (Op::Constant, [value]) => {
                let ty = self.by_id.get(&ty?).filter(|name| name.starts_with('u'))?;
                match value {
                    Operand::LiteralBit32(n) => format!("{ty}_{n}"),
                    Operand::LiteralBit64(n) => format!("{ty}_{n}"),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }
}

/// The text of the instructions seen so far.
struct Text {
    names: Names,
    out: String,
}

impl Text {
    fn id(&mut self, id: u32) {
        let _ = match self.names.by_id.get(&id) {
            Some(name) => write!(self.out, "%{name}"),
            None => write!(self.out, "%{id}"),
        };
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::IdRef(id) | Operand::IdScope(id) | Operand::IdMemorySemantics(id) => {
                self.id(*id);
            }
            Operand::LiteralString(text) => _ = write!(self.out, "{text:?}"),
            Operand::LiteralExtInstInteger(number) => {
                let _ = match GlslStd450Op::from_u32(*number) {
                    Some(op) => write!(self.out, "{op:?}"),
                    None => write!(self.out, "{number}"),
                };
            }
            other => self.out.push_str(&other.disassemble()),
        }
    }
}

impl Consumer for Text {
    fn initialize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn finalize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn consume_header(&mut self, header: ModuleHeader) -> ParseAction {
        let (major, minor) = header.version();
        let _ = writeln!(self.out, "; SPIR-V {major}.{minor}, ids below {}", header.bound);
        ParseAction::Continue
    }

    fn consume_instruction(&mut self, inst: Instruction) -> ParseAction {
        let start = self.out.len();
        if let Some(id) = inst.result_id {
            self.id(id);
            let width = self.out.len() - start;
            let pad = " ".repeat(RESULT_WIDTH.saturating_sub(width));
            self.out.insert_str(start, &pad);
            self.out.push_str(" = ");
        } else {
            self.out.push_str(&" ".repeat(RESULT_WIDTH + 3));
        }
        let _ = write!(self.out, "Op{}", inst.class.opname);
        if let Some(ty) = inst.result_type {
            self.out.push(' ');
            self.id(ty);
        }
        let is_float = inst.result_type.is_some_and(|ty| self.names.float_types.contains(&ty));
        for operand in &inst.operands {
            self.out.push(' ');
            match (inst.class.opcode, operand) {
                // Bits, word by word.
                (Op::Constant, Operand::LiteralBit32(bits)) if is_float => {
                    let _ = write!(self.out, "!{bits:#010x}");
                }
                (Op::Constant, Operand::LiteralBit64(bits)) if is_float => {
                    let _ = write!(self.out, "!{:#010x} !{:#010x}", *bits as u32, bits >> 32);
                }
                _ => self.operand(operand),
            }
        }
        self.out.push('\n');
        ParseAction::Continue
    }
}
