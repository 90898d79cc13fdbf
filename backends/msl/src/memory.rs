//! Memory that values name: buffers, shared arrays of the workgroup, private arrays.

use crate::language::Msl;
use crate::types::{Element, Leaf, stored, type_name};
use magpie_gpu::text::{Emit, Text};
use magpie_mpir::{Flags, Inst, MpirFn, Value};
use magpie_types::TypeKind;
use std::fmt::Write;

/// A buffer or an array.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) name: String,
    pub(crate) space: Space,
    pub(crate) element: Element,
}

/// Where an object lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// A buffer parameter with this position among them.
    Buffer { index: u32 },
    /// An array of so many elements.
    Array { len: u32, is_shared: bool },
}

/// The objects of a kernel.
pub(crate) struct Memory {
    objects: Vec<Object>,
    /// By value: one more than the position of its object, or 0.
    of_value: Vec<u32>,
}

impl Memory {
    pub(crate) fn new(f: &MpirFn) -> Memory {
        Memory { objects: Vec::new(), of_value: vec![0; f.locals.len()] }
    }

    /// Remembers what a value names.
    pub(crate) fn add(&mut self, v: Value, object: Object) {
        self.objects.push(object);
        self.of_value[v.index()] = self.objects.len() as u32;
    }

    /// The object that operand 0 of an instruction names.
    pub(crate) fn object(&self, text: &Text<'_>, i: Inst) -> Emit<&Object> {
        let index = self.of_value[text.arg(i, 0)?.index()].checked_sub(1);
        match index.and_then(|n| self.objects.get(n as usize)) {
            Some(object) => Ok(object),
            None => Err(text.broken_at(i, "operand 0 names no memory")),
        }
    }
}

/// An element, or a member of one.
struct Place {
    object: String,
    leaf: Leaf,
    /// `.m0` for a member.
    member: String,
}

impl Msl<'_> {
    /// Declares the array of a `gpu.shared` or `gpu.local`. A private one is zeroed here.
    pub(crate) fn write_array(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let (elem, len, is_shared) = match text.types.kind(text.f.inst(i).ty) {
            TypeKind::SharedArray(elem, len) => (elem, len, true),
            TypeKind::LocalArray(elem, len) => (elem, len, false),
            _ => return Err(text.broken_at(i, "not an array")),
        };
        let Some(value) = text.f.inst(i).result() else { return Ok(()) };
        let element = self.element(text, elem)?;
        let name = text.take_name(self, if is_shared { "shared" } else { "local" });
        let ty = &element.type_name;
        text.line(&match is_shared {
            true => format!("threadgroup {ty} {name}[{len}];"),
            false => format!("{ty} {name}[{len}] = {{}};"),
        });
        self.memory.add(value, Object { name, space: Space::Array { len, is_shared }, element });
        Ok(())
    }

    fn place(&self, text: &Text<'_>, i: Inst, leaf: u32) -> Emit<Place> {
        if !text.f.inst(i).flags.contains(Flags::UNCHECKED) {
            return Err(text.broken_at(i, "a bounds check that is not lowered"));
        }
        let object = self.memory.object(text, i)?;
        let Some(&of_leaf) = object.element.leaves.get(leaf as usize) else {
            return Err(text.broken_at(i, "no such member"));
        };
        let member = match object.element.is_struct {
            true => format!(".m{leaf}"),
            false => String::new(),
        };
        Ok(Place { object: object.name.clone(), leaf: of_leaf, member })
    }

    /// The index of an access as a name or literal, for text that repeats it.
    fn named_index(&mut self, text: &mut Text<'_>, i: Inst) -> Emit<String> {
        let index = text.arg(i, 1)?;
        let shape = text.shape_of(index)?;
        let name = text.next_name();
        text.indent();
        let _ = write!(text.out, "{} {name} = ", type_name(shape));
        text.argument(self, index)?;
        text.end_statement();
        Ok(name)
    }

    /// Writes `object[index]`.
    fn write_element(&mut self, text: &mut Text<'_>, i: Inst, object: &str) -> Emit {
        text.out.push_str(object);
        text.out.push('[');
        let index = text.arg(i, 1)?;
        text.argument(self, index)?;
        text.out.push(']');
        Ok(())
    }

    /// A load of a whole element, or of one leaf of it.
    pub(crate) fn write_load(&mut self, text: &mut Text<'_>, i: Inst, leaf: u32) -> Emit {
        let Place { object, leaf, member } = self.place(text, i, leaf)?;
        let ty = type_name(leaf.value);
        if leaf.is_array {
            let index = self.named_index(text, i)?;
            text.open_result(self, i)?;
            let part = |n: u32| format!("{object}[{index}]{member}[{n}]");
            let _ = write!(text.out, "{ty}({}, {}, {})", part(0), part(1), part(2));
            text.end_statement();
            return Ok(());
        }
        let converts = stored(leaf.value) != leaf.value;
        text.open_result(self, i)?;
        if converts {
            text.out.push_str(ty);
            text.out.push('(');
        }
        self.write_element(text, i, &object)?;
        text.out.push_str(&member);
        if converts {
            text.out.push(')');
        }
        text.end_statement();
        Ok(())
    }

    /// A store of operand 2 to a whole element, or to one leaf of it.
    pub(crate) fn write_store(&mut self, text: &mut Text<'_>, i: Inst, leaf: u32) -> Emit {
        let Place { object, leaf, member } = self.place(text, i, leaf)?;
        let value = text.arg(i, 2)?;
        let memory = stored(leaf.value);
        let converts = memory != leaf.value;
        if leaf.is_array {
            let index = self.named_index(text, i)?;
            let name = text.next_name();
            text.indent();
            let _ = write!(text.out, "{} {name} = ", type_name(leaf.value));
            text.argument(self, value)?;
            text.end_statement();
            for n in 0..3 {
                text.line(&format!("{object}[{index}]{member}[{n}] = {name}[{n}];"));
            }
            return Ok(());
        }
        text.indent();
        self.write_element(text, i, &object)?;
        text.out.push_str(&member);
        text.out.push_str(" = ");
        if converts {
            text.out.push_str(type_name(memory));
            text.out.push('(');
        }
        text.argument(self, value)?;
        if converts {
            text.out.push(')');
        }
        text.end_statement();
        Ok(())
    }

    /// Writes a pointer to the atomic that an element of 32 bits is. `atomic` is its type.
    pub(crate) fn write_atomic_place(
        &mut self,
        text: &mut Text<'_>,
        i: Inst,
        atomic: &str,
    ) -> Emit {
        let space = match self.memory.object(text, i)?.space {
            Space::Buffer { .. } => "device",
            Space::Array { is_shared: true, .. } => "threadgroup",
            Space::Array { is_shared: false, .. } => {
                return Err(text.broken_at(i, "an atomic operation on a private array"));
            }
        };
        let Place { object, member, .. } = self.place(text, i, 0)?;
        let _ = write!(text.out, "({space} {atomic}*)&");
        self.write_element(text, i, &object)?;
        text.out.push_str(&member);
        Ok(())
    }
}
