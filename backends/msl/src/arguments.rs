//! The arguments of the kernel function: buffers, scalars, lengths, ids and sizes.

use crate::language::Msl;
use crate::memory::{Object, Space};
use crate::types::{Structs, stored, type_name};
use magpie_gpu::text::{Emit, Text};
use magpie_mpir::{Inst, Op};
use magpie_types::kernel::{DeviceFeatures, ParamLayout};
use magpie_types::{PrimType, TypeKind};
use std::fmt::Write;

/// Slots that Metal has for the arguments of a kernel.
pub(crate) const MAX_ARGUMENTS: usize = 31;

/// Marks buffers that may be one.
const MAY_ALIAS: &str = "MAY_ALIAS";

/// The argument list, as far as it is known.
#[derive(Default)]
pub(crate) struct Arguments {
    list: Vec<String>,
    /// By parameter: the name of a scalar; empty for buffers.
    scalars: Vec<String>,
    lengths: String,
    builtins: Vec<(Builtin, String)>,
}

/// An argument that the device fills.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builtin {
    GlobalId,
    ThreadId,
    WorkgroupId,
    WorkgroupSize,
    NumWorkgroups,
    LaneId,
    SimdWidth,
}

impl Builtin {
    /// Type, name and attribute.
    fn declaration(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Builtin::GlobalId => ("uint3", "gid", "thread_position_in_grid"),
            Builtin::ThreadId => ("uint3", "tid", "thread_position_in_threadgroup"),
            Builtin::WorkgroupId => ("uint3", "wgid", "threadgroup_position_in_grid"),
            Builtin::WorkgroupSize => ("uint3", "wgsz", "threads_per_threadgroup"),
            Builtin::NumWorkgroups => ("uint3", "groups", "threadgroups_per_grid"),
            Builtin::LaneId => ("uint", "lane", "thread_index_in_simdgroup"),
            Builtin::SimdWidth => ("uint", "width", "threads_per_simdgroup"),
        }
    }
}

impl Arguments {
    /// Writes the list.
    pub(crate) fn write(&self, out: &mut String) {
        let builtins = self.builtins.iter().map(|(builtin, name)| {
            let (ty, _, attribute) = builtin.declaration();
            format!("{ty} {name} [[{attribute}]]")
        });
        for (n, argument) in self.list.iter().cloned().chain(builtins).enumerate() {
            if n > 0 {
                out.push_str(",\n");
            }
            out.push_str("    ");
            out.push_str(&argument);
        }
    }
}

impl Msl<'_> {
    /// Declares buffers, scalars and lengths, used or not: what the source shows is what the
    /// driver binds.
    pub(crate) fn declare_arguments(&mut self, text: &mut Text<'_>) -> Emit {
        let (f, layout) = (text.f, text.layout);
        let alias = if may_alias(text) { "MAY_ALIAS " } else { "" };
        let mut scalars = Vec::new();
        for (n, (param, &(value, ty))) in layout.params.iter().zip(&f.params).enumerate() {
            let name = f.param_names.get(n).map_or("p", String::as_str);
            let name = text.take_name(self, name);
            self.arguments.scalars.push(String::new());
            match param {
                ParamLayout::Buffer(buffer) => {
                    // Legalisation may have given the elements another type of the same layout.
                    let TypeKind::Buffer(elem) = text.types.kind(ty) else {
                        return Err(text.broken("a buffer of another type"));
                    };
                    let element = self.element(text, elem)?;
                    let access = if buffer.writes { "" } else { "const " };
                    self.arguments.list.push(format!(
                        "{alias}{access}device {}* {name} [[buffer({})]]",
                        element.type_name, buffer.binding
                    ));
                    let space = Space::Buffer { index: buffer.index };
                    self.memory.add(value, Object { name, space, element });
                }
                ParamLayout::Scalar { .. } => scalars.push((n, name, ty)),
            }
        }
        for (n, name, ty) in scalars {
            let element = self.element(text, ty)?;
            let slot = self.arguments.list.len();
            let argument = format!("constant {}& {name} [[buffer({slot})]]", element.type_name);
            self.arguments.list.push(argument);
            self.arguments.scalars[n] = name;
        }
        if !layout.hidden.is_empty() {
            self.arguments.lengths = text.take_name(self, "lengths");
            let slot = self.arguments.list.len();
            let argument = format!("constant ulong* {} [[buffer({slot})]]", self.arguments.lengths);
            self.arguments.list.push(argument);
        }
        match self.arguments.list.len() {
            0..=MAX_ARGUMENTS => Ok(()),
            n => {
                let name = &f.name;
                let message = format!(
                    "kernel `{name}` has {n} arguments for buffers, scalars and lengths; Metal \
                     has room for {MAX_ARGUMENTS}"
                );
                Err(text.refuse_kernel(message, "put scalars together in a value struct"))
            }
        }
    }

    /// Defines the mark of buffers that may be one, where there is any.
    pub(crate) fn write_alias_macro(&self, text: &Text<'_>, out: &mut String) {
        if may_alias(text) {
            let _ = writeln!(out, "#ifndef {MAY_ALIAS}\n#define {MAY_ALIAS}\n#endif\n");
        }
    }

    /// The element of a buffer, array or argument of a type.
    pub(crate) fn element(
        &mut self,
        text: &mut Text<'_>,
        ty: magpie_types::TypeId,
    ) -> Emit<crate::types::Element> {
        let mut structs: Structs = std::mem::take(&mut self.structs);
        let element = structs.element(text, ty, |text, word| {
            // The kernel function would hide a structure of its name.
            let suffix = if word == text.layout.entry { "_type" } else { "" };
            text.take_name(self, &format!("{word}{suffix}"))
        });
        self.structs = structs;
        element
    }

    /// An atomic expression for leaf `leaf` of a scalar parameter.
    pub(crate) fn read_argument(
        &mut self,
        text: &mut Text<'_>,
        param: u32,
        leaf: u32,
    ) -> Emit<String> {
        let Some(&(_, ty)) = text.f.params.get(param as usize) else {
            return Err(text.broken("a parameter that does not exist"));
        };
        let name = self.arguments.scalars.get(param as usize).filter(|name| !name.is_empty());
        let Some(name) = name.cloned() else { return Err(text.broken("a buffer as a value")) };
        let element = self.element(text, ty)?;
        let Some(&of_leaf) = element.leaves.get(leaf as usize) else {
            return Err(text.broken("a member that its parameter does not have"));
        };
        let place = match element.is_struct {
            true => format!("{name}.m{leaf}"),
            false => name,
        };
        let ty = type_name(of_leaf.value);
        Ok(match () {
            () if of_leaf.is_array => format!("{ty}({place}[0], {place}[1], {place}[2])"),
            () if stored(of_leaf.value) != of_leaf.value => format!("{ty}({place})"),
            () => place,
        })
    }

    /// Writes the length of the buffer parameter with a position among them, an `ulong`.
    pub(crate) fn write_length(&mut self, text: &mut Text<'_>, buffer: u32) -> Emit {
        let Some(n) = text.layout.hidden.iter().position(|h| h.buffer == buffer) else {
            return Err(text.broken("a buffer length that the layout does not carry"));
        };
        let _ = write!(text.out, "{}[{n}]", self.arguments.lengths);
        Ok(())
    }

    /// The name of an argument that the device fills.
    pub(crate) fn builtin(&mut self, text: &mut Text<'_>, builtin: Builtin) -> String {
        if let Some((_, name)) = self.arguments.builtins.iter().find(|(b, _)| *b == builtin) {
            return name.clone();
        }
        if matches!(builtin, Builtin::LaneId | Builtin::SimdWidth) {
            self.features |= DeviceFeatures::SUBGROUP;
        }
        let name = text.take_name(self, builtin.declaration().1);
        self.arguments.builtins.push((builtin, name.clone()));
        name
    }

    /// Writes an argument that the device fills.
    pub(crate) fn write_builtin(&mut self, text: &mut Text<'_>, builtin: Builtin) -> Emit {
        let name = self.builtin(text, builtin);
        text.out.push_str(&name);
        Ok(())
    }

    /// Writes a component of an id or a size.
    pub(crate) fn write_id(&mut self, text: &mut Text<'_>, i: Inst, builtin: Builtin) -> Emit {
        let name = self.builtin(text, builtin);
        let component = ["x", "y", "z"][text.f.inst(i).dim().min(2) as usize];
        let _ = write!(text.out, "{name}.{component}");
        Ok(())
    }

    /// Writes `gpu.buffer_len`.
    pub(crate) fn write_buffer_len(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let is_wide = text.shape_of_result(i)?.prim == PrimType::U64;
        debug_assert!(text.f.inst(i).op == Op::GpuBufferLen);
        match self.memory.object(text, i)?.space {
            Space::Buffer { index } if is_wide => self.write_length(text, index),
            Space::Buffer { index } => {
                text.out.push_str("uint(min(");
                self.write_length(text, index)?;
                text.out.push_str(", 4294967295ul))");
                Ok(())
            }
            Space::Array { len, .. } => {
                let _ = write!(text.out, "{len}{}", if is_wide { "ul" } else { "u" });
                Ok(())
            }
        }
    }
}

/// Whether two buffers of a kernel may be one that it writes.
fn may_alias(text: &Text<'_>) -> bool {
    text.layout.num_buffers() > 1 && text.layout.buffers().any(|b| b.writes)
}
