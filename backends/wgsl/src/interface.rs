//! What a kernel sees of its launch: built-in values and the scalar block.

use crate::language::Wgsl;
use crate::packed::from_bits;
use crate::types::type_name;
use magpie_gpu::text::{Emit, Shape, Text};
use magpie_types::kernel::{ParamLayout, ScalarTransport};
use std::fmt::Write;

/// A built-in value, as the entry point names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Builtin {
    LocalId,
    WorkgroupId,
    GlobalId,
    NumWorkgroups,
    LocalIndex,
    SubgroupSize,
    SubgroupLane,
}

/// Name of the parameter, name in WGSL, type; in the order of the enumeration.
const BUILTINS: [(&str, &str, &str); 7] = [
    ("local_id", "local_invocation_id", "vec3<u32>"),
    ("workgroup_id", "workgroup_id", "vec3<u32>"),
    ("global_id", "global_invocation_id", "vec3<u32>"),
    ("num_workgroups", "num_workgroups", "vec3<u32>"),
    ("local_index", "local_invocation_index", "u32"),
    ("subgroup_size", "subgroup_size", "u32"),
    ("subgroup_lane", "subgroup_invocation_id", "u32"),
];

/// What the launch fills.
#[derive(Default)]
pub(crate) struct Interface {
    /// By built-in value: whether the kernel reads it.
    used: [bool; 7],
    pub(crate) uses_zero: bool,
    members: Vec<Member>,
}

/// A member of the scalar block.
struct Member {
    offset: u32,
    bytes: u32,
    ty: &'static str,
    name: String,
}

impl Interface {
    /// The name of a built-in value.
    pub(crate) fn builtin(&mut self, builtin: Builtin) -> &'static str {
        self.used[builtin as usize] = true;
        BUILTINS[builtin as usize].0
    }

    /// The parameters of the entry point.
    pub(crate) fn entry_parameters(&self) -> String {
        let used = BUILTINS.iter().zip(self.used).filter(|(_, used)| *used);
        let parameter = |((name, builtin, ty), _): (&(&str, &str, &str), bool)| {
            format!("    @builtin({builtin}) {name}: {ty},\n")
        };
        let parameters: String = used.map(parameter).collect();
        if parameters.is_empty() { parameters } else { format!("\n{parameters}") }
    }

    fn add(&mut self, offset: u32, shape: Shape, name: String) {
        let bytes = shape.prim.size() * shape.lanes as u32;
        self.members.push(Member { offset, bytes, ty: type_name(shape), name });
    }
}

/// Whether scalars of a type lie in the block as such; others are parts of words.
fn is_whole(shape: Shape) -> bool {
    shape.prim.size() == 4
}

impl Wgsl {
    /// Gathers the members of the scalar block, read or not: what the text shows is what the driver
    /// fills.
    pub(crate) fn declare_scalars(&mut self, text: &mut Text<'_>, names: &[String]) -> Emit {
        let (f, layout) = (text.f, text.layout);
        let mut words = Vec::new();
        for (n, (param, &(_, ty))) in layout.params.iter().zip(&f.params).enumerate() {
            let &ParamLayout::Scalar { offset, .. } = param else { continue };
            let leaves = text.types.leaves(ty);
            for (k, leaf) in leaves.iter().enumerate() {
                let shape = text.shape_of_type(leaf.ty)?;
                let at = offset + leaf.offset;
                if is_whole(shape) {
                    let name = match leaves.len() {
                        1 => names[n].clone(),
                        _ => text.take_name(self, &format!("{}_{k}", names[n])),
                    };
                    self.interface.add(at, shape, name);
                } else {
                    let end = at + shape.prim.size() * shape.lanes as u32;
                    words.extend((at / 4..end.div_ceil(4)).map(|word| word * 4));
                }
            }
        }
        words.sort_unstable();
        words.dedup();
        for at in words {
            let name = text.take_name(self, &format!("word_{at}"));
            self.interface.add(at, Shape::U32, name);
        }
        for hidden in &layout.hidden {
            let name = layout.params.iter().zip(names).find_map(|(param, name)| match param {
                ParamLayout::Buffer(b) if b.index == hidden.buffer => Some(name),
                ParamLayout::Buffer(_) | ParamLayout::Scalar { .. } => None,
            });
            let Some(name) = name.filter(|_| hidden.size == 4) else {
                return Err(text.broken("a hidden length of another form"));
            };
            let name = text.take_name(self, &format!("len_{name}"));
            self.interface.add(hidden.offset, Shape::U32, name);
        }
        self.interface.members.sort_by_key(|m| m.offset);
        Ok(())
    }

    /// The declarations of the scalar block.
    pub(crate) fn scalar_block(&self, text: &Text<'_>) -> Emit<String> {
        let members = &self.interface.members;
        let binding = match text.layout.transport {
            ScalarTransport::Uniform { binding } => binding,
            ScalarTransport::None => return Ok(String::new()),
            ScalarTransport::PushConstants | ScalarTransport::Arguments => {
                return Err(text.broken("scalars without a way to pass them"));
            }
        };
        let mut out = "\nstruct Scalars {\n".to_string();
        for (n, member) in members.iter().enumerate() {
            let end = members.get(n + 1).map_or(text.layout.block_size, |next| next.offset);
            let room = end.saturating_sub(member.offset);
            if room > member.bytes {
                let _ = writeln!(out, "    @size({room}) {}: {},", member.name, member.ty);
            } else {
                let _ = writeln!(out, "    {}: {},", member.name, member.ty);
            }
        }
        out.push_str("}\n");
        let _ = writeln!(out, "@group(0) @binding({binding}) var<uniform> scalars: Scalars;");
        Ok(out)
    }

    /// The expression for a scalar of a parameter.
    pub(crate) fn scalar_parameter(
        &mut self,
        text: &mut Text<'_>,
        param: u32,
        leaf: u32,
    ) -> Emit<String> {
        let (f, layout) = (text.f, text.layout);
        let Some(&ParamLayout::Scalar { offset, .. }) = layout.params.get(param as usize) else {
            return Err(text.broken("a buffer as a value"));
        };
        // Legalisation may have given the parameter another type of the same layout.
        let leaves = text.types.leaves(f.params[param as usize].1);
        let Some(leaf) = leaves.get(leaf as usize) else {
            return Err(text.broken("a member that its parameter does not have"));
        };
        let (shape, at) = (text.shape_of_type(leaf.ty)?, offset + leaf.offset);
        if is_whole(shape) {
            return self.member(text, at, shape);
        }
        let size = shape.prim.size();
        let parts = (0..shape.lanes as u32).map(|lane| self.part(text, shape, at + lane * size));
        let parts: Vec<String> = parts.collect::<Emit<_>>()?;
        let value = match shape.lanes {
            1 => parts.concat(),
            _ => format!("{}({})", type_name(shape), parts.join(", ")),
        };
        let name = text.next_name();
        let _ = writeln!(text.prologue, "    let {name} = {value};");
        Ok(name)
    }

    /// The expression for the number of elements of a buffer.
    pub(crate) fn hidden_length(&self, text: &Text<'_>, buffer: u32) -> Emit<String> {
        match text.layout.hidden.iter().find(|h| h.buffer == buffer) {
            Some(hidden) => self.member(text, hidden.offset, Shape::U32),
            None => Err(text.broken("a buffer length that the layout does not carry")),
        }
    }

    /// A scalar of 1 or 2 bytes out of the word it lies in.
    fn part(&self, text: &Text<'_>, shape: Shape, at: u32) -> Emit<String> {
        let word = self.member(text, at & !3, Shape::U32)?;
        let bits = match at % 4 * 8 {
            0 => word,
            shift => format!("({word} >> {shift}u)"),
        };
        Ok(from_bits(shape.prim, &bits))
    }

    /// The member at a byte offset of the block.
    fn member(&self, text: &Text<'_>, at: u32, shape: Shape) -> Emit<String> {
        let ty = type_name(shape);
        match self.interface.members.iter().find(|m| m.offset == at && m.ty == ty) {
            Some(member) => Ok(format!("scalars.{}", member.name)),
            None => Err(text.broken("a scalar that the layout does not carry")),
        }
    }
}
