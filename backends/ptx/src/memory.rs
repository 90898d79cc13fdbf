//! Memory that values name: buffers, shared arrays of the workgroup, private arrays. Where their
//! elements lie, and how an element gets in and out of registers.

use crate::emitter::{Emit, Emitter, ptx};
use crate::operand::{Class, Operand, Reg, lanes_of};
use magpie_mpir::{Flags, Inst, Op, Value};
use magpie_types::kernel::{CUDA_STATIC_SHARED, ParamLayout};
use magpie_types::{PrimType, TypeId, TypeKind};
use std::fmt::{self, Write};

/// Bytes of a private array up to which it is zeroed by one store after the other.
const UNROLLED_ZEROING: u32 = 256;

/// Alignment of arrays, for vector accesses.
const ARRAY_ALIGN: u32 = 16;

/// The largest access in bytes.
const MAX_ACCESS: u32 = 16;

/// The objects of a kernel.
#[derive(Default)]
pub(crate) struct Memory {
    /// By the number that [`Emitter::object_index`] gives.
    objects: Vec<Object>,
    /// Where shared arrays lie in the dynamic one, when they are dynamic.
    dynamic: Option<Vec<(Value, u32)>>,
}

/// A state space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Space {
    Global,
    Shared,
    Local,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
        })
    }
}

/// A buffer, a shared array or a private array.
struct Object {
    space: Space,
    /// Where the first element lies.
    start: Address,
    /// The same in a register, when something has asked for it.
    start_reg: Option<Reg>,
    stride: u32,
    align: u32,
    /// The scalars (or vectors) of an element.
    leaves: Vec<Leaf>,
    length: Length,
    /// Of arrays.
    bytes: u32,
}

#[derive(Clone, Copy)]
struct Leaf {
    prim: PrimType,
    lanes: u32,
    offset: u32,
}

#[derive(Clone, Copy)]
enum Length {
    /// Of an array: known.
    Fixed(u32),
    /// Of the buffer parameter with this position: told at launch.
    OfBuffer(u32),
}

/// An address as instructions write it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    base: Base,
    offset: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Base {
    Reg(Reg),
    /// The array of the object with this number.
    Array(Space, u32),
    /// The one dynamic shared array.
    Dynamic,
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Base::Reg(r) => r.fmt(f),
            Base::Array(space, n) => write!(f, "{space}{n}"),
            Base::Dynamic => f.write_str("_dynamic_shared"),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            0 => write!(f, "[{}]", self.base),
            offset => write!(f, "[{}+{offset}]", self.base),
        }
    }
}

impl Address {
    /// The address some bytes further.
    fn plus(self, bytes: u32) -> Address {
        Address { offset: self.offset + bytes, ..self }
    }
}

/// Where an access goes.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) space: Space,
    pub(crate) address: Address,
    pub(crate) prim: PrimType,
    lanes: u32,
    /// What the address is a multiple of.
    align: u32,
}

/// The type of a scalar in memory.
#[derive(Clone, Copy)]
pub(crate) struct MemoryType(PrimType);

impl MemoryType {
    pub(crate) const fn of(p: PrimType) -> MemoryType {
        MemoryType(p)
    }
}

impl fmt::Display for MemoryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            PrimType::F32 => "f32",
            PrimType::F64 => "f64",
            PrimType::F16 | PrimType::Bf16 => "b16",
            p => match p.bit_width() {
                1 | 8 => "u8",
                16 => "u16",
                64 => "u64",
                _ => "u32",
            },
        })
    }
}

/// The register class in which a scalar travels to and from memory: a bool as a number.
pub(crate) fn cell_of(p: PrimType) -> Class {
    match Class::of(p) {
        Some(Class::Pred) | None => Class::B32,
        Some(class) => class,
    }
}

impl Memory {
    /// Declares the dynamic array, outside the entry.
    pub(crate) fn declare_dynamic(&self, out: &mut String) {
        if self.dynamic.is_some() {
            let _ =
                write!(out, ".extern .shared .align {ARRAY_ALIGN} .b8 {}[];\n\n", Base::Dynamic);
        }
    }

    /// Declares the arrays, inside the entry.
    pub(crate) fn declare_arrays(&self, out: &mut String) {
        for object in &self.objects {
            if let Address { base: base @ Base::Array(space, _), .. } = object.start {
                let bytes = object.bytes.max(1);
                let _ = writeln!(out, "\t.{space} .align {ARRAY_ALIGN} .b8 {base}[{bytes}];");
            }
        }
    }
}

impl Emitter<'_, '_> {
    // ----- declarations -----

    /// Makes objects of the buffer parameters.
    pub(crate) fn declare_buffers(&mut self) -> Emit {
        let (f, layout) = (self.f, self.layout);
        for (n, (param, &(value, ty))) in layout.params.iter().zip(&f.params).enumerate() {
            let ParamLayout::Buffer(buffer) = param else { continue };
            // Legalisation may have given the elements another type of the same layout.
            let elem = match self.types.kind(ty) {
                TypeKind::Buffer(elem) => elem,
                _ => buffer.elem,
            };
            let start = Address { base: Base::Reg(self.load_address(n)), offset: 0 };
            let length = Length::OfBuffer(buffer.index);
            self.add_object(value, Space::Global, start, elem, length)?;
        }
        Ok(())
    }

    /// Decides where shared arrays lie. Those with the largest alignment come first, so that there
    /// are no gaps.
    pub(crate) fn place_shared_arrays(&mut self) -> Emit {
        if self.layout.shared_bytes <= CUDA_STATIC_SHARED {
            return Ok(());
        }
        let f = self.f;
        let mut arrays: Vec<(u32, u32, Value)> = Vec::new();
        for b in f.block_ids() {
            for &i in &f.block(b).insts {
                if let (Op::GpuShared, Some(v)) = (f.inst(i).op, f.inst(i).result())
                    && let TypeKind::SharedArray(elem, len) = self.types.kind(f.inst(i).ty)
                {
                    let bytes = self.types.stride(elem).saturating_mul(len);
                    arrays.push((self.types.layout(elem).align, bytes, v));
                }
            }
        }
        arrays.sort_by_key(|&(align, ..)| std::cmp::Reverse(align));
        let mut offset = 0u32;
        let mut places = Vec::with_capacity(arrays.len());
        for (_, bytes, v) in arrays {
            places.push((v, offset));
            offset = offset.saturating_add(bytes);
        }
        self.memory.dynamic = Some(places);
        Ok(())
    }

    /// `gpu.shared` and `gpu.local`. A private array is zeroed here.
    pub(crate) fn emit_array(&mut self, i: Inst, space: Space) -> Emit {
        let inst = self.f.inst(i);
        let (elem, len) = match self.types.kind(inst.ty) {
            TypeKind::SharedArray(elem, len) | TypeKind::LocalArray(elem, len) => (elem, len),
            _ => return Err(self.broken_at(i, "not an array")),
        };
        let Some(value) = inst.result() else { return Ok(()) };
        let place = |places: &Vec<(Value, u32)>| places.iter().find(|p| p.0 == value).map(|p| p.1);
        let start = match self.memory.dynamic.as_ref().and_then(place) {
            Some(offset) if space == Space::Shared => Address { base: Base::Dynamic, offset },
            _ => {
                let base = Base::Array(space, self.memory.objects.len() as u32);
                Address { base, offset: 0 }
            }
        };
        self.add_object(value, space, start, elem, Length::Fixed(len))?;
        match space {
            Space::Local => self.zero(start, self.types.stride(elem).saturating_mul(len)),
            Space::Global | Space::Shared => Ok(()),
        }
    }

    /// Zeroes a private array: its size rounded up to words lies inside, because of its alignment.
    fn zero(&mut self, start: Address, bytes: u32) -> Emit {
        let words = bytes.div_ceil(4);
        if bytes <= UNROLLED_ZEROING {
            for n in 0..words {
                let at = start.plus(n * 4);
                ptx!(self, "st.local.u32 {at}, 0");
            }
            return Ok(());
        }
        let [at, end] = [self.fresh(Class::B64), self.fresh(Class::B64)];
        let (again, more) = (self.fresh_label(), self.fresh(Class::Pred));
        ptx!(self, "mov.u64 {at}, {}", start.base);
        ptx!(self, "add.s64 {end}, {at}, {}", words * 4);
        self.place_label(again);
        ptx!(self, "st.local.u32 [{at}], 0");
        ptx!(self, "add.s64 {at}, {at}, 4");
        ptx!(self, "setp.ne.s64 {more}, {at}, {end}");
        ptx!(self, "@{more} bra.uni $L{again}");
        Ok(())
    }

    fn add_object(
        &mut self,
        value: Value,
        space: Space,
        start: Address,
        elem: TypeId,
        length: Length,
    ) -> Emit {
        let leaves = self.types.leaves(elem);
        if leaves.is_empty() {
            return Err(self.broken("elements without content"));
        }
        let leaves = leaves.iter().map(|leaf| match lanes_of(self.types, leaf.ty) {
            Some((prim, lanes)) => Ok(Leaf { prim, lanes, offset: leaf.offset }),
            None => Err(self.broken("elements that no register holds")),
        });
        let leaves = leaves.collect::<Emit<Vec<Leaf>>>()?;
        let (stride, align) = (self.types.stride(elem), self.types.layout(elem).align);
        let bytes = match length {
            Length::Fixed(len) => stride.saturating_mul(len).next_multiple_of(4),
            Length::OfBuffer(_) => 0,
        };
        self.set_object(value, self.memory.objects.len() as u32);
        let start_reg = match start.base {
            Base::Reg(r) => Some(r),
            Base::Array(..) | Base::Dynamic => None,
        };
        let object = Object { space, start, start_reg, stride, align, leaves, length, bytes };
        self.memory.objects.push(object);
        Ok(())
    }

    /// The address of a buffer, and its position among them.
    pub(crate) fn buffer(&self, v: Value) -> Option<(Reg, u32)> {
        let object = &self.memory.objects[self.object_index(v)? as usize];
        match object.length {
            Length::OfBuffer(position) => Some((object.start_reg?, position)),
            Length::Fixed(_) => None,
        }
    }

    // ----- places -----

    fn object_of(&self, i: Inst) -> Emit<usize> {
        let index = self.f.args(i).first().and_then(|&v| self.object_index(v));
        index.map(|n| n as usize).ok_or_else(|| self.broken_at(i, "operand 0 names no memory"))
    }

    /// The place of leaf `leaf` of element operand 1 of the object that is operand 0.
    pub(crate) fn place(&mut self, i: Inst, leaf: u32) -> Emit<Place> {
        if !self.f.inst(i).flags.contains(Flags::UNCHECKED) {
            return Err(self.broken_at(i, "a bounds check that is not lowered"));
        }
        let object_index = self.object_of(i)?;
        let object = &self.memory.objects[object_index];
        let Some(&Leaf { prim, lanes, offset }) = object.leaves.get(leaf as usize) else {
            return Err(self.broken_at(i, "no such member"));
        };
        let (space, stride, start) = (object.space, object.stride, object.start);
        // What all elements and the leaf in them are aligned to.
        let align = object.align.min(1 << offset.trailing_zeros().min(4)).min(MAX_ACCESS);
        let Some(&index) = self.f.args(i).get(1) else {
            return Err(self.broken_at(i, "operands are missing"));
        };
        let near = |n: i64| {
            let bytes = u64::try_from(n).ok()?.checked_mul(u64::from(stride))?;
            // Offsets in addresses are signed.
            let total = bytes.checked_add(u64::from(start.offset) + u64::from(offset))?;
            i32::try_from(total).ok().map(|total| total as u32)
        };
        let index = self.value(index)?;
        let known = match index {
            Operand::Int(n) => near(n),
            Operand::Reg(_) | Operand::F32(_) | Operand::F64(_) => None,
        };
        let address = match known {
            Some(offset) => Address { base: start.base, offset },
            None => {
                let base = Base::Reg(self.element_address(i, object_index, index)?);
                Address { base, offset }
            }
        };
        Ok(Place { space, address, prim, lanes, align })
    }

    /// A register with the address of an element.
    fn element_address(&mut self, i: Inst, object: usize, index: Operand) -> Emit<Reg> {
        let start = self.start_of(object);
        let stride = self.memory.objects[object].stride;
        let wide = match self.f.args(i).get(1) {
            Some(&v) => self.class(v)? == Class::B64,
            None => return Err(self.broken_at(i, "operands are missing")),
        };
        let d = self.fresh(start.class);
        match (start.class, wide) {
            (Class::B64, true) => ptx!(self, "mad.lo.s64 {d}, {index}, {stride}, {start}"),
            (Class::B64, false) => {
                // A constant is meant unsigned.
                let index = match index {
                    Operand::Int(n) => Operand::Int(i64::from(n as u32)),
                    other => other,
                };
                ptx!(self, "mad.wide.u32 {d}, {index}, {stride}, {start}");
            }
            (_, true) => {
                let low = self.low_half(index);
                ptx!(self, "mad.lo.s32 {d}, {low}, {stride}, {start}");
            }
            (_, false) => ptx!(self, "mad.lo.s32 {d}, {index}, {stride}, {start}"),
        }
        Ok(d)
    }

    /// The lower 32 bits of a 64-bit operand.
    pub(crate) fn low_half(&mut self, v: Operand) -> Operand {
        match v {
            Operand::Int(n) => Operand::Int(i64::from((n as u32).cast_signed())),
            other => {
                let d = self.fresh(Class::B32);
                ptx!(self, "cvt.u32.u64 {d}, {other}");
                d.into()
            }
        }
    }

    /// A register with the address of the first element: shared memory has addresses of 32 bits.
    fn start_of(&mut self, object: usize) -> Reg {
        let Object { space, start, start_reg, .. } = self.memory.objects[object];
        if let Some(reg) = start_reg {
            return reg;
        }
        let class = if space == Space::Shared { Class::B32 } else { Class::B64 };
        let (reg, ty) = (self.fresh(class), class.ty());
        self.at_start(format_args!("mov.{ty} {reg}, {}", start.base));
        if start.offset != 0 {
            let offset = start.offset;
            self.at_start(format_args!("add.s32 {reg}, {reg}, {offset}"));
        }
        self.memory.objects[object].start_reg = Some(reg);
        reg
    }

    // ----- accesses -----

    /// A load of a whole element, or of one leaf of it.
    pub(crate) fn emit_load(&mut self, i: Inst, leaf: u32) -> Emit {
        let place = self.place(i, leaf)?;
        let (class, prim) = (cell_of(place.prim), place.prim);
        let mut cells: [Operand; 4] = [Operand::Int(0); 4];
        let count = place.lanes.min(4) as usize;
        if count == 1 && prim != PrimType::Bool {
            cells[0] = self.result(i)?.into();
        } else {
            cells[..count].iter_mut().for_each(|c| *c = self.fresh(class).into());
        }
        self.move_lanes("ld", &place, &cells[..count]);
        if prim == PrimType::Bool {
            for cell in &mut cells[..count] {
                let d = match count {
                    1 => self.result(i)?,
                    _ => self.fresh(Class::Pred),
                };
                ptx!(self, "setp.ne.s32 {d}, {cell}, 0");
                *cell = d.into();
            }
        }
        if count > 1 {
            self.set_lanes(i, &cells[..count]);
        }
        Ok(())
    }

    /// A store of operand 2 to a whole element, or to one leaf of it.
    pub(crate) fn emit_store(&mut self, i: Inst, leaf: u32) -> Emit {
        let place = self.place(i, leaf)?;
        let Some(&value) = self.f.args(i).get(2) else {
            return Err(self.broken_at(i, "operands are missing"));
        };
        let mut cells = match place.lanes {
            1 => vec![self.value(value)?],
            _ => self.vector(value)?,
        };
        if cells.len() != place.lanes as usize {
            return Err(self.broken_at(i, "components are missing"));
        }
        for cell in &mut cells {
            *cell = self.in_cell(*cell, place.prim);
        }
        self.move_lanes("st", &place, &cells);
        Ok(())
    }

    /// A scalar in a register in which it can travel.
    pub(crate) fn in_cell(&mut self, v: Operand, p: PrimType) -> Operand {
        let d = match (p, v) {
            (PrimType::Bool, _) => {
                let d = self.fresh(Class::B32);
                ptx!(self, "selp.b32 {d}, 1, 0, {v}");
                d
            }
            (_, Operand::Reg(_)) => return v,
            (_, Operand::Int(_) | Operand::F32(_) | Operand::F64(_)) => {
                let d = self.fresh(cell_of(p));
                ptx!(self, "mov.{} {d}, {v}", d.class.ty());
                d
            }
        };
        d.into()
    }

    /// Loads or stores components, as many at a time as their alignment allows.
    fn move_lanes(&mut self, op: &str, place: &Place, cells: &[Operand]) {
        let Place { space, address, prim, align, .. } = *place;
        let (ty, size) = (MemoryType::of(prim), prim.size());
        let mut done = 0;
        while done < cells.len() {
            let left = &cells[done..];
            let offset = done as u32 * size;
            let aligned = align.min(1 << offset.trailing_zeros().min(4));
            let fits = |n: u32| left.len() as u32 >= n && n * size <= aligned;
            let at = address.plus(offset);
            let count = match left {
                [a, b, c, d, ..] if fits(4) => {
                    self.move_cells(
                        op,
                        space,
                        ".v4",
                        ty,
                        at,
                        format_args!("{{{a}, {b}, {c}, {d}}}"),
                    );
                    4
                }
                [a, b, ..] if fits(2) => {
                    self.move_cells(op, space, ".v2", ty, at, format_args!("{{{a}, {b}}}"));
                    2
                }
                [a, ..] => {
                    self.move_cells(op, space, "", ty, at, format_args!("{a}"));
                    1
                }
                [] => 1,
            };
            done += count;
        }
    }

    fn move_cells(
        &mut self,
        op: &str,
        space: Space,
        vector: &str,
        ty: MemoryType,
        at: Address,
        cells: fmt::Arguments<'_>,
    ) {
        match op {
            "ld" => ptx!(self, "ld.{space}{vector}.{ty} {cells}, {at}"),
            _ => ptx!(self, "st.{space}{vector}.{ty} {at}, {cells}"),
        }
    }

    /// `gpu.buffer_len`.
    pub(crate) fn emit_length(&mut self, i: Inst) -> Emit {
        let object = self.object_of(i)?;
        let wide = self.result_prim(i)?.bit_width() == 64;
        match self.memory.objects[object].length {
            Length::Fixed(n) => {
                let p = self.result_prim(i)?;
                let n = self.constant(p, u64::from(n));
                self.set_result(i, n)
            }
            Length::OfBuffer(buffer) => {
                let length = self.hidden_length(buffer)?;
                if wide {
                    return self.set_result(i, length.into());
                }
                let (least, d) = (self.fresh(Class::B64), self.result(i)?);
                ptx!(self, "min.u64 {least}, {length}, 4294967295");
                ptx!(self, "cvt.u32.u64 {d}, {least}");
                Ok(())
            }
        }
    }
}
