//! Memory that values name: buffers, shared arrays of the workgroup, private arrays. How their
//! elements are declared, and how an element gets in and out of a register.

use crate::interface::Builtin;
use crate::language::Wgsl;
use crate::packed::{PackedPlace, Packing, has_narrow_parts};
use crate::types::{Scalar, type_name};
use magpie_gpu::text::{Emit, Shape, Text};
use magpie_mpir::{Flags, Inst, Memory as Effect, MpirFn, Op, Value};
use magpie_types::kernel::{BufferParam, ParamLayout};
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The objects of a kernel and their declarations.
#[derive(Default)]
pub(crate) struct Memory {
    objects: FxHashMap<Value, Object>,
    /// Structures, buffers and shared arrays.
    pub(crate) declarations: String,
    structures: u32,
    arrays: u32,
    /// Bytes of private arrays.
    private_bytes: u64,
    /// Number of words through which loads go that are to be uniform.
    staged: u32,
}

/// Bytes of private variables that WGSL promises a function (section 2.4 of its specification).
const MAX_PRIVATE_BYTES: u64 = 8192;

/// Where an object lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Space {
    Buffer,
    Shared,
    Private,
}

/// A buffer, a shared array or a private array.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) space: Space,
    name: String,
    /// Whether an element is a structure of `leaves`.
    is_struct: bool,
    leaves: Vec<ElementLeaf>,
    /// How elements lie in words, if they have parts that WGSL cannot reach.
    packing: Option<Packing>,
    /// Elements of an array; the number of a buffer.
    length: u32,
}

/// One scalar (or vector) of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ElementLeaf {
    /// What the kernel computes with.
    pub(crate) value: Shape,
    pub(crate) stored: Stored,
}

/// What lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stored {
    /// The value.
    Value,
    /// 1 or 0 in the lowest byte of a word.
    BoolWord,
    /// An f16 in the lower half of a word.
    HalfWord,
    /// An `atomic` of the value.
    Atomic,
    /// An `atomic` of the bits of a float.
    AtomicBits,
    /// Some bytes of words, this far from the start of the element.
    Packed(u32),
}

impl ElementLeaf {
    fn stored_type(self) -> &'static str {
        match self.stored {
            Stored::Value => type_name(self.value),
            Stored::BoolWord | Stored::HalfWord => "u32",
            Stored::AtomicBits => "atomic<u32>",
            // A buffer of words has no elements of its own.
            Stored::Packed(_) => "u32",
            Stored::Atomic if Scalar::of(self.value.prim) == Scalar::I32 => "atomic<i32>",
            Stored::Atomic => "atomic<u32>",
        }
    }
}

/// Bytes of the shared arrays of a kernel: bools and small integers take words.
pub(crate) fn shared_bytes(f: &MpirFn, types: &TypeCtx) -> u32 {
    let mut total = 0u64;
    for &i in f.blocks.iter().flat_map(|b| &b.insts) {
        let TypeKind::SharedArray(elem, length) = types.kind(f.inst(i).ty) else { continue };
        let leaves = types.leaves(elem);
        let word = |p: PrimType| if p == PrimType::F16 { 2 } else { p.size().max(4) };
        let sizes = leaves.iter().filter_map(|leaf| Shape::of_type(types, leaf.ty)).map(|shape| {
            let lanes = if shape.lanes == 3 && leaves.len() == 1 { 4 } else { shape.lanes };
            u64::from(word(shape.prim) * lanes as u32)
        });
        let size: u64 = sizes.sum();
        total =
            total.next_multiple_of(16) + size.max(u64::from(types.stride(elem))) * length as u64;
    }
    u32::try_from(total).unwrap_or(u32::MAX)
}

impl Wgsl {
    // ----- declarations -----

    /// Declares the buffer parameters, used or not: what the text shows is what the driver binds.
    pub(crate) fn declare_buffers(&mut self, text: &mut Text<'_>, names: &[String]) -> Emit {
        let (f, layout) = (text.f, text.layout);
        let mut is_atomic = FxHashMap::default();
        for &i in f.blocks.iter().flat_map(|b| &b.insts) {
            if f.inst(i).op.info().memory == Effect::Atomic {
                is_atomic.extend(f.args(i).first().map(|&object| (object, ())));
            }
        }
        for (n, (param, &(value, ty))) in layout.params.iter().zip(&f.params).enumerate() {
            let ParamLayout::Buffer(buffer) = param else { continue };
            // Legalisation may have given the elements another type of the same layout.
            let elem = match text.types.kind(ty) {
                TypeKind::Buffer(elem) => elem,
                _ => buffer.elem,
            };
            self.declare_buffer(
                text,
                value,
                elem,
                buffer,
                &names[n],
                is_atomic.contains_key(&value),
            )?;
        }
        for &i in f.blocks.iter().flat_map(|b| &b.insts) {
            if matches!(f.inst(i).op, Op::GpuShared | Op::GpuLocal) {
                let is_atomic = f.inst(i).result().is_some_and(|v| is_atomic.contains_key(&v));
                self.declare_array(text, i, is_atomic)?;
            }
        }
        Ok(())
    }

    fn declare_buffer(
        &mut self,
        text: &Text<'_>,
        value: Value,
        elem: TypeId,
        buffer: &BufferParam,
        name: &str,
        is_atomic: bool,
    ) -> Emit {
        let is_widened = buffer.device_stride != buffer.host_stride;
        let is_packed = !is_widened && has_narrow_parts(text, elem)?;
        let store = |value: Shape, offset: u32| match value.prim {
            _ if is_packed => Some(Stored::Packed(offset)),
            PrimType::Bool if value.lanes == 1 => Some(Stored::BoolWord),
            PrimType::F16 if value.lanes == 1 && is_widened => Some(Stored::HalfWord),
            PrimType::F16 => Some(Stored::Value),
            p if p.size() == 4 => Some(Stored::Value),
            // A small integer in a word of its own.
            p if p.size() < 4 && value.lanes == 1 && is_widened => Some(Stored::Value),
            _ => None,
        };
        let mut object = self.object_of(text, elem, is_atomic, store)?;
        let element = if is_packed {
            let packing = Packing { stride: buffer.device_stride, is_written: buffer.writes };
            object.packing = Some(packing);
            packing.word().to_string()
        } else {
            self.element_type(text, elem, &object, Some(buffer.device_stride))
        };
        let access = if buffer.writes { "read_write" } else { "read" };
        let _ = writeln!(
            self.memory.declarations,
            "@group(0) @binding({}) var<storage, {access}> {name}: array<{element}>;",
            buffer.binding
        );
        let object = Object { name: name.to_string(), length: buffer.index, ..object };
        self.memory.objects.insert(value, object);
        Ok(())
    }

    /// `gpu.shared` and `gpu.local`.
    fn declare_array(&mut self, text: &mut Text<'_>, i: Inst, is_atomic: bool) -> Emit {
        let inst = text.f.inst(i);
        let (elem, length, space, prefix) = match text.types.kind(inst.ty) {
            TypeKind::SharedArray(elem, len) => (elem, len, Space::Shared, "shared"),
            TypeKind::LocalArray(elem, len) => (elem, len, Space::Private, "array"),
            _ => return Err(text.broken_at(i, "not an array")),
        };
        let Some(value) = inst.result() else { return Ok(()) };
        let object = self.object_of(text, elem, is_atomic, |_, _| Some(Stored::Value))?;
        let element = self.element_type(text, elem, &object, None);
        self.memory.arrays += 1;
        let name = text.take_name(self, &format!("{prefix}_{}", self.memory.arrays));
        match space {
            Space::Shared => {
                let _ = writeln!(
                    self.memory.declarations,
                    "var<workgroup> {name}: array<{element}, {length}>;"
                );
            }
            Space::Private | Space::Buffer => {
                // Zero, and in the entry block, which runs once.
                let _ = writeln!(text.prologue, "    var {name}: array<{element}, {length}>;");
                self.memory.private_bytes += text.types.stride(elem) as u64 * length as u64;
                if self.memory.private_bytes > MAX_PRIVATE_BYTES {
                    let message = format!(
                        "the private arrays of kernel `{}` take {} bytes; wgsl allows \
                         {MAX_PRIVATE_BYTES}",
                        text.f.name, self.memory.private_bytes
                    );
                    return Err(text.refuse_kernel(message, "use a buffer, or shorter arrays"));
                }
            }
        }
        self.memory.objects.insert(value, Object { name, length, space, ..object });
        Ok(())
    }

    /// An object without name and length.
    fn object_of(
        &self,
        text: &Text<'_>,
        elem: TypeId,
        is_atomic: bool,
        store: impl Fn(Shape, u32) -> Option<Stored>,
    ) -> Emit<Object> {
        let leaves = text.types.leaves(elem);
        if leaves.is_empty() {
            return Err(text.broken("elements without content"));
        }
        let leaves = leaves.iter().map(|leaf| {
            let value = text.shape_of_type(leaf.ty)?;
            let Some(stored) = store(value, leaf.offset) else {
                return Err(text.broken("an element that no buffer holds"));
            };
            let stored = match Scalar::of(value.prim) {
                _ if !is_atomic => stored,
                Scalar::F32 => Stored::AtomicBits,
                Scalar::I32 | Scalar::U32 => Stored::Atomic,
                Scalar::Bool | Scalar::F16 => stored,
            };
            Ok(ElementLeaf { value, stored })
        });
        Ok(Object {
            space: Space::Buffer,
            name: String::new(),
            is_struct: text.types.is_aggregate(elem),
            leaves: leaves.collect::<Emit<_>>()?,
            packing: None,
            length: 0,
        })
    }

    /// The type of elements; a structure for those of several scalars, laid out as on the host when
    /// `stride` says how far apart elements are.
    fn element_type(
        &mut self,
        text: &Text<'_>,
        elem: TypeId,
        object: &Object,
        stride: Option<u32>,
    ) -> String {
        if !object.is_struct {
            return object.leaves[0].stored_type().to_string();
        }
        self.memory.structures += 1;
        let name = format!("Element{}", self.memory.structures);
        let _ = writeln!(self.memory.declarations, "struct {name} {{");
        let places = text.types.leaves(elem);
        for (n, (leaf, place)) in object.leaves.iter().zip(&places).enumerate() {
            let size = leaf.value.prim.size() * leaf.value.lanes as u32;
            let end = places.get(n + 1).map_or(stride, |next| Some(next.offset));
            let room = end.map_or(size, |end| end.saturating_sub(place.offset));
            let attribute = if room > size { format!("@size({room}) ") } else { String::new() };
            let ty = leaf.stored_type();
            let _ = writeln!(self.memory.declarations, "    {attribute}m{n}: {ty},");
        }
        self.memory.declarations.push_str("}\n");
        name
    }

    // ----- accesses -----

    /// The object that is operand 0, and leaf `leaf` of its elements.
    pub(crate) fn place(&self, text: &Text<'_>, i: Inst, leaf: u32) -> Emit<Place> {
        if !text.f.inst(i).flags.contains(Flags::UNCHECKED) {
            return Err(text.broken_at(i, "a bounds check that is not lowered"));
        }
        let object = self.object(text, i)?;
        let Some(&element) = object.leaves.get(leaf as usize) else {
            return Err(text.broken_at(i, "no such member"));
        };
        let length = match object.space {
            Space::Buffer => u32::MAX,
            Space::Shared | Space::Private => object.length,
        };
        let (space, name) = (object.space, object.name.clone());
        let (member, packing) = (object.is_struct.then_some(leaf), object.packing);
        Ok(Place { space, name, member, element, packing, length })
    }

    fn object(&self, text: &Text<'_>, i: Inst) -> Emit<&Object> {
        let object = text.f.args(i).first().and_then(|v| self.memory.objects.get(v));
        object.ok_or_else(|| text.broken_at(i, "operand 0 names no memory"))
    }

    /// Writes the element at operand 1.
    pub(crate) fn write_place(&mut self, text: &mut Text<'_>, i: Inst, place: &Place) -> Emit {
        let _ = write!(text.out, "{}[", place.name);
        self.write_index(text, i, place)?;
        text.out.push(']');
        if let Some(member) = place.member {
            let _ = write!(text.out, ".m{member}");
        }
        Ok(())
    }

    /// Writes operand 1, an index.
    fn write_index(&mut self, text: &mut Text<'_>, i: Inst, place: &Place) -> Emit {
        let index = text.arg(i, 1)?;
        match is_outside(text, index, place.length) {
            // Nobody comes here, but a constant outside is an error.
            true => text.out.push_str("0u"),
            false => text.argument(self, index)?,
        }
        Ok(())
    }

    /// The words that operand 1 and a leaf of its element name; writes a line for where they begin.
    fn packed_place(&mut self, text: &mut Text<'_>, i: Inst, place: &Place) -> Emit<PackedPlace> {
        let (Some(packing), Stored::Packed(offset)) = (place.packing, place.element.stored) else {
            return Err(text.broken_at(i, "memory that is not packed"));
        };
        let at = text.next_name();
        text.indent();
        let _ = write!(text.out, "let {at} = u32(");
        self.write_index(text, i, place)?;
        let _ = write!(text.out, ") * {}u + {offset}u", packing.stride);
        text.end_statement();
        let (buffer, shape) = (place.name.clone(), place.element.value);
        Ok(PackedPlace { buffer, at, shape, packing })
    }

    /// A load of a whole element, or of one leaf of it.
    pub(crate) fn load(&mut self, text: &mut Text<'_>, i: Inst, leaf: u32) -> Emit {
        let place = self.place(text, i, leaf)?;
        if !self.uniform_loads.contains(i) {
            let packed = self.packed_load(text, i, &place)?;
            text.open_result(self, i)?;
            self.write_load(text, i, &place, packed)?;
            text.end_statement();
            return Ok(());
        }
        let in_place = place.space == Space::Shared && place.element.stored == Stored::Value;
        if in_place {
            text.open_result(self, i)?;
            text.out.push_str("workgroupUniformLoad(&");
            self.write_place(text, i, &place)?;
        } else {
            self.memory.staged += 1;
            let name = text.take_name(self, &format!("uniform_{}", self.memory.staged));
            let ty = type_name(place.element.value);
            let _ = writeln!(self.memory.declarations, "var<workgroup> {name}: {ty};");
            let index = self.interface.builtin(Builtin::LocalIndex);
            text.open::<Wgsl>(&format!("if ({index} == 0u) {{"))?;
            let packed = self.packed_load(text, i, &place)?;
            text.indent();
            let _ = write!(text.out, "{name} = ");
            self.write_load(text, i, &place, packed)?;
            text.end_statement();
            text.close("}");
            text.open_result(self, i)?;
            let _ = write!(text.out, "workgroupUniformLoad(&{name}");
        }
        text.out.push(')');
        text.end_statement();
        Ok(())
    }

    /// The value of something packed; writes a line for it.
    fn packed_load(&mut self, text: &mut Text<'_>, i: Inst, place: &Place) -> Emit<Option<String>> {
        match place.packing {
            Some(_) => Ok(Some(self.packed_place(text, i, place)?.load())),
            None => Ok(None),
        }
    }

    fn write_load(
        &mut self,
        text: &mut Text<'_>,
        i: Inst,
        place: &Place,
        packed: Option<String>,
    ) -> Emit {
        if let Some(value) = packed {
            text.out.push_str(&value);
            return Ok(());
        }
        let (before, after) = match place.element.stored {
            Stored::Value | Stored::Packed(_) => ("", ""),
            Stored::BoolWord => ("(", " & 0xffu) != 0u"),
            Stored::HalfWord => ("f16(unpack2x16float(", ").x)"),
            Stored::Atomic => ("atomicLoad(&", ")"),
            Stored::AtomicBits => ("bitcast<f32>(atomicLoad(&", "))"),
        };
        text.out.push_str(before);
        self.write_place(text, i, place)?;
        text.out.push_str(after);
        Ok(())
    }

    /// A store of operand 2 to a whole element, or to one leaf of it.
    pub(crate) fn store(&mut self, text: &mut Text<'_>, i: Inst, leaf: u32) -> Emit {
        let place = self.place(text, i, leaf)?;
        let value = text.arg(i, 2)?;
        if place.packing.is_some() {
            let packed = self.packed_place(text, i, &place)?;
            let name = text.next_name();
            text.indent();
            let _ = write!(text.out, "let {name} = {}(", type_name(place.element.value));
            text.argument(self, value)?;
            text.out.push(')');
            text.end_statement();
            packed.store(&name).iter().for_each(|line| text.line(line));
            return Ok(());
        }
        text.indent();
        let (before, between, after) = match place.element.stored {
            Stored::Value | Stored::Packed(_) => ("", " = ", ""),
            Stored::BoolWord => ("", " = select(0u, 1u, ", ")"),
            Stored::HalfWord => ("", " = pack2x16float(vec2<f32>(f32(", "), 0.0))"),
            Stored::Atomic => ("atomicStore(&", ", ", ")"),
            Stored::AtomicBits => ("atomicStore(&", ", bitcast<u32>(", "))"),
        };
        text.out.push_str(before);
        self.write_place(text, i, &place)?;
        text.out.push_str(between);
        text.argument(self, value)?;
        text.out.push_str(after);
        text.end_statement();
        Ok(())
    }

    /// Writes the number of elements of an object.
    pub(crate) fn write_length(&self, text: &mut Text<'_>, i: Inst) -> Emit {
        let object = self.object(text, i)?;
        let length = match object.space {
            Space::Buffer => self.hidden_length(text, object.length)?,
            Space::Shared | Space::Private => format!("{}u", object.length),
        };
        text.out.push_str(&length);
        Ok(())
    }
}

/// Where an access goes.
pub(crate) struct Place {
    pub(crate) space: Space,
    name: String,
    member: Option<u32>,
    pub(crate) element: ElementLeaf,
    packing: Option<Packing>,
    /// Elements, as far as they are known.
    length: u32,
}

/// Whether an index is a constant that no array of the length has.
fn is_outside(text: &Text<'_>, index: Value, length: u32) -> bool {
    let (Some(bits), Some(p)) = (text.f.as_bits(index), text.types.prim(text.f.ty(index))) else {
        return false;
    };
    let n = magpie_mpir::eval::int_value(p, bits);
    n < 0 || n >= i128::from(length)
}
