//! Memory that values name: buffers, shared arrays of the workgroup, private arrays. Where their
//! elements lie, and how an element gets in and out of a register.

use crate::emitter::{Emit, Emitter, Operand, line};
use crate::flavor::{Flavor, Space};
use crate::types::Shape;
use magpie_mpir::{Flags, Inst, Value, ValueDef};
use magpie_types::kernel::CUDA_STATIC_SHARED;
use magpie_types::{TypeId, TypeKind};
use std::fmt::Write;

/// Alignment of arrays, for vector accesses.
const ARRAY_ALIGN: u32 = 16;

/// Arrays that were declared, by the value that names them.
#[derive(Default)]
pub(crate) struct Memory {
    arrays: Vec<(Value, String)>,
    /// Bytes in the dynamic shared array so far, when shared arrays lie in one.
    dynamic: Option<u32>,
}

/// Where an access goes.
pub(crate) struct Place {
    pub(crate) space: Space,
    /// Pointer type and pointer.
    pub(crate) pointer: String,
    pub(crate) shape: Shape,
    pub(crate) align: u32,
}

/// The alignment of what lies some bytes behind something aligned.
pub(crate) fn alignment(start: u32, offset: u32) -> u32 {
    match offset {
        0 => start.max(1),
        _ => start.clamp(1, 1 << offset.trailing_zeros()),
    }
}

impl Emitter<'_> {
    /// `gpu.shared`.
    pub(crate) fn shared_array(&mut self, i: Inst) -> Emit {
        let Some(value) = self.f.inst(i).result() else { return Ok(()) };
        let (elem, len) = self.array_type(value)?;
        let bytes = self.types.stride(elem).saturating_mul(len).max(1);
        let is_large = self.layout.shared_bytes > CUDA_STATIC_SHARED;
        let name = if is_large && matches!(self.flavor, Flavor::Nvptx { .. }) {
            // More than static memory may be: all arrays lie in one that the launch makes.
            let at = match self.memory.dynamic {
                Some(at) => at,
                None => {
                    self.globals
                        .push_str("@shared = external addrspace(3) global [0 x i8], align 16\n\n");
                    0
                }
            };
            let at = at.next_multiple_of(self.types.layout(elem).align.max(1));
            self.memory.dynamic = Some(at.saturating_add(bytes));
            format!("getelementptr (i8, ptr addrspace(3) @shared, i32 {at})")
        } else {
            let name = format!("@shared{}", value.0);
            let _ = writeln!(
                self.globals,
                "{name} = internal addrspace(3) global [{bytes} x i8] undef, align {ARRAY_ALIGN}\n"
            );
            name
        };
        self.memory.arrays.push((value, name));
        Ok(())
    }

    /// `gpu.local`: room at the start of the function, zeroed here.
    pub(crate) fn private_array(&mut self, i: Inst) -> Emit {
        let Some(value) = self.f.inst(i).result() else { return Ok(()) };
        let (elem, len) = self.array_type(value)?;
        let bytes = self.types.stride(elem).saturating_mul(len).max(1);
        let ty = self.flavor.pointer(Space::Private);
        let (space, suffix) = match self.flavor {
            Flavor::Nvptx { .. } => ("", "p0"),
            Flavor::Amdgcn { .. } => (", addrspace(5)", "p5"),
        };
        let name = self
            .emit_at_start(format_args!("alloca [{bytes} x i8], align {ARRAY_ALIGN}{space}"))
            .to_string();
        let memset = format!("llvm.memset.{suffix}.i64");
        self.intrinsics.declare(&memset, "void", &format!("{ty}, i8, i64, i1"));
        line!(
            self,
            "call void @{memset}({ty} align {ARRAY_ALIGN} {name}, i8 0, i64 {bytes}, i1 false)"
        );
        self.memory.arrays.push((value, name));
        Ok(())
    }

    fn array_type(&self, v: Value) -> Emit<(TypeId, u32)> {
        match self.types.kind(self.f.ty(v)) {
            TypeKind::SharedArray(elem, len) | TypeKind::LocalArray(elem, len) => Ok((elem, len)),
            _ => Err(self.broken("something else than an array")),
        }
    }

    /// Space, address and element type of the object that is operand 0.
    fn object(&self, i: Inst) -> Emit<(Space, String, TypeId)> {
        let v = self.arg_value(i, 0)?;
        let (space, elem) = match self.types.kind(self.f.ty(v)) {
            TypeKind::Buffer(elem) => (Space::Global, elem),
            TypeKind::SharedArray(elem, _) => (Space::Shared, elem),
            TypeKind::LocalArray(elem, _) => (Space::Private, elem),
            _ => return Err(self.broken_at(i, "operand 0 names no memory")),
        };
        if let ValueDef::Param(_) = self.f.def(v) {
            return Ok((space, format!("%v{}", v.0), elem));
        }
        match self.memory.arrays.iter().find(|a| a.0 == v) {
            Some((_, name)) => Ok((space, name.clone(), elem)),
            None => Err(self.broken_at(i, "operand 0 names no memory")),
        }
    }

    /// The place of leaf `leaf` of element operand 1 of the object that is operand 0.
    pub(crate) fn place(&mut self, i: Inst, leaf: u32) -> Emit<Place> {
        if !self.f.inst(i).flags.contains(Flags::UNCHECKED) {
            return Err(self.broken_at(i, "a bounds check that is not lowered"));
        }
        let (space, start, elem) = self.object(i)?;
        let Some(&leaf) = self.types.leaves(elem).get(leaf as usize) else {
            return Err(self.broken_at(i, "no such member"));
        };
        let shape = self.shape_of_type(leaf.ty)?;
        let stride = self.types.stride(elem);
        let align = alignment(self.types.layout(elem).align, leaf.offset);
        let index = self.arg_value(i, 1)?;
        let width = self.shape_of(index)?.prim.bit_width();
        let mut index = self.value(index)?;
        // Addresses of arrays have 32 bits; indices are inside, so they are not negative.
        let address = if space == Space::Global { 64 } else { 32 };
        if width < address {
            index = self.emit(format_args!("zext i{width} {index} to i{address}"));
        } else if width > address {
            index = self.emit(format_args!("trunc i{width} {index} to i{address}"));
        }
        let ty = self.flavor.pointer(space);
        let mut at = self.emit(format_args!(
            "getelementptr inbounds [{stride} x i8], {ty} {start}, i{address} {index}"
        ));
        if leaf.offset != 0 {
            let offset = leaf.offset;
            at = self.emit(format_args!("getelementptr inbounds i8, {ty} {at}, i32 {offset}"));
        }
        Ok(Place { space, pointer: format!("{ty} {at}"), shape, align })
    }

    /// A load of a whole element, or of one leaf of it.
    pub(crate) fn emit_load(&mut self, i: Inst, leaf: u32) -> Emit {
        let Place { pointer, shape, align, .. } = self.place(i, leaf)?;
        let stored = shape.stored();
        if stored == shape {
            return self.define(i, format_args!("load {shape}, {pointer}, align {align}"));
        }
        let raw = self.emit(format_args!("load {stored}, {pointer}, align {align}"));
        let zero = if shape.lanes == 1 { "0" } else { "zeroinitializer" };
        self.define(i, format_args!("icmp ne {stored} {raw}, {zero}"))
    }

    /// A store of operand 2 to a whole element, or to one leaf of it.
    pub(crate) fn emit_store(&mut self, i: Inst, leaf: u32) -> Emit {
        let Place { pointer, shape, align, .. } = self.place(i, leaf)?;
        let mut value = self.arg(i, 2)?;
        let stored = shape.stored();
        if stored != shape {
            value = self.emit(format_args!("zext {shape} {value} to {stored}"));
        }
        line!(self, "store {stored} {value}, {pointer}, align {align}");
        Ok(())
    }

    /// `gpu.buffer_len`.
    pub(crate) fn emit_length(&mut self, i: Inst) -> Emit {
        let v = self.arg_value(i, 0)?;
        let shape = self.result_shape(i)?;
        if let TypeKind::SharedArray(_, len) | TypeKind::LocalArray(_, len) =
            self.types.kind(self.f.ty(v))
        {
            return self.define(i, format_args!("bitcast {shape} {len} to {shape}"));
        }
        let length = self.buffer_length(i, v)?;
        if shape.prim.bit_width() == 64 {
            return self.define(i, format_args!("bitcast i64 {length} to i64"));
        }
        let (length, most) = (Operand::Text(length), Operand::Text(u32::MAX.to_string()));
        let call = self.call("llvm.umin.i64", "i64", "i64", &[&length, &most]);
        let least = self.emit(format_args!("call {call}"));
        self.define(i, format_args!("trunc i64 {least} to i32"))
    }

    // ----- atomic operations -----

    /// A read-modify-write: relaxed, at the scope that the memory has. `names` are LLVM's for signed
    /// integers, unsigned ones and floats. Floats go through the integer of their width where
    /// nothing is computed with them.
    pub(crate) fn atomic(&mut self, i: Inst, names: [&str; 3]) -> Emit {
        let v = self.arg(i, 2)?;
        self.read_modify_write(i, names, v)
    }

    /// `gpu.atomic.sub`: of floats, hardware has sums only.
    pub(crate) fn atomic_sub(&mut self, i: Inst) -> Emit {
        let (shape, mut v) = (self.result_shape(i)?, self.arg(i, 2)?);
        if shape.prim.is_float() {
            v = self.emit(format_args!("fneg {shape} {v}"));
        }
        self.read_modify_write(i, ["sub", "sub", "fadd"], v)
    }

    /// The place of an atomic operation.
    fn atomic_place(&mut self, i: Inst) -> Emit<Place> {
        let place = self.place(i, 0)?;
        let Shape { prim, lanes } = place.shape;
        match lanes == 1 && prim.bit_width() >= 32 && place.space != Space::Private {
            true => Ok(place),
            false => Err(self.broken_at(i, "elements that no atomic operation takes")),
        }
    }

    fn read_modify_write(&mut self, i: Inst, names: [&str; 3], mut v: Operand) -> Emit {
        let place = self.atomic_place(i)?;
        let p = place.shape.prim;
        let bits = place.shape.with(p.bits_type());
        let scope = self.flavor.scope(place.space);
        let [signed, unsigned, float] = names;
        let name = match (p.is_float(), p.is_signed()) {
            (true, _) => float,
            (false, true) => signed,
            (false, false) => unsigned,
        };
        let is_moved = name == "xchg" && p.is_float();
        let shape = if is_moved { bits } else { place.shape };
        if is_moved {
            v = self.emit(format_args!("bitcast {} {v} to {bits}", place.shape));
        }
        let text = format!(
            "atomicrmw {name} {}, {shape} {v} syncscope(\"{scope}\") monotonic, align {}",
            place.pointer, place.align
        );
        if is_moved {
            let old = self.emit(format_args!("{text}"));
            return self.define(i, format_args!("bitcast {bits} {old} to {}", place.shape));
        }
        self.define(i, format_args!("{text}"))
    }

    /// `gpu.atomic.cas`.
    pub(crate) fn compare_and_swap(&mut self, i: Inst) -> Emit {
        let place = self.atomic_place(i)?;
        let bits = place.shape.with(place.shape.prim.bits_type());
        let scope = self.flavor.scope(place.space);
        let mut operands = [self.arg(i, 2)?, self.arg(i, 3)?];
        if place.shape.prim.is_float() {
            for v in &mut operands {
                *v = self.emit(format_args!("bitcast {} {v} to {bits}", place.shape));
            }
        }
        let [old, new] = operands;
        let pair = self.emit(format_args!(
            "cmpxchg {}, {bits} {old}, {bits} {new} syncscope(\"{scope}\") monotonic monotonic, \
             align {}",
            place.pointer, place.align
        ));
        let seen = self.emit(format_args!("extractvalue {{ {bits}, i1 }} {pair}, 0"));
        self.define(i, format_args!("bitcast {bits} {seen} to {}", place.shape))
    }
}
