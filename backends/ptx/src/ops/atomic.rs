//! Atomic operations on buffers and shared arrays: relaxed, at the scope that the memory has.

use crate::emitter::{Emit, Emitter, ptx};
use crate::memory::{Place, Space};
use crate::operand::{Class, Operand, Reg};
use magpie_mpir::Inst;
use magpie_types::PrimType;

impl Emitter<'_, '_> {
    /// `gpu.atomic.add` and `gpu.atomic.sub`.
    pub(super) fn atomic_add(&mut self, i: Inst, negate: bool) -> Emit {
        let place = self.atomic_place(i)?;
        let mut v = self.atomic_operand(i, 2)?;
        let ty = match place.prim {
            PrimType::F32 => "f32",
            PrimType::F64 => "f64",
            p if p.bit_width() == 64 => "u64",
            _ => "u32",
        };
        if negate {
            let d = self.fresh(v.class);
            let signed = ty.replace('u', "s");
            ptx!(self, "neg.{signed} {d}, {v}");
            v = d;
        }
        self.atomic(i, &place, "add", ty, v)
    }

    /// `gpu.atomic.min` and `gpu.atomic.max`.
    pub(super) fn atomic_extremum(&mut self, i: Inst, op: &str) -> Emit {
        let place = self.atomic_place(i)?;
        let v = self.atomic_operand(i, 2)?;
        let p = place.prim;
        let ty = match (p.is_float(), p.is_signed(), p.bit_width()) {
            (true, ..) => return self.float_extremum_loop(i, &place, op, v),
            (_, true, 64) => "s64",
            (_, true, _) => "s32",
            (_, false, 64) => "u64",
            (_, false, _) => "u32",
        };
        self.atomic(i, &place, op, ty, v)
    }

    /// An operation on bits.
    pub(super) fn atomic_bits(&mut self, i: Inst, op: &str) -> Emit {
        let place = self.atomic_place(i)?;
        let (v, ty) = (self.atomic_operand(i, 2)?, bits_type(place.prim));
        if op != "exch" {
            return self.atomic(i, &place, op, ty, v);
        }
        // There is no `red` that exchanges.
        let d = self.result(i)?;
        let Place { space, address, .. } = place;
        ptx!(self, "atom.{}.{space}.exch.{ty} {d}, {address}, {v}", semantics(space));
        Ok(())
    }

    /// `gpu.atomic.cas`.
    pub(super) fn atomic_cas(&mut self, i: Inst) -> Emit {
        let place = self.atomic_place(i)?;
        let (compare, replacement) = (self.atomic_operand(i, 2)?, self.atomic_operand(i, 3)?);
        let d = self.result(i)?;
        self.compare_exchange(&place, d, compare, replacement);
        Ok(())
    }

    fn compare_exchange(&mut self, place: &Place, old: Reg, compare: Reg, replacement: Reg) {
        let (Place { space, address, .. }, ty) = (*place, bits_type(place.prim));
        let how = semantics(space);
        ptx!(self, "atom.{how}.{space}.cas.{ty} {old}, {address}, {compare}, {replacement}");
    }

    fn atomic(&mut self, i: Inst, place: &Place, op: &str, ty: &str, v: Reg) -> Emit {
        let Place { space, address, .. } = *place;
        let how = semantics(space);
        if self.is_result_read(i) {
            let d = self.result(i)?;
            ptx!(self, "atom.{how}.{space}.{op}.{ty} {d}, {address}, {v}");
        } else {
            ptx!(self, "red.{how}.{space}.{op}.{ty} {address}, {v}");
        }
        Ok(())
    }

    /// Computes the new value from the one seen last until nobody has changed it meanwhile.
    fn float_extremum_loop(&mut self, i: Inst, place: &Place, op: &str, v: Reg) -> Emit {
        let (Place { space, address, .. }, class) = (*place, v.class);
        let (ty, how) = (bits_type(place.prim), semantics(space));
        let int = if class == Class::F64 { Class::B64 } else { Class::B32 };
        let (old, new) = (self.fresh(class), self.fresh(class));
        let [expected, seen, wanted]: [Reg; 3] = std::array::from_fn(|_| self.fresh(int));
        let (again, more) = (self.fresh_label(), self.fresh(Class::Pred));
        ptx!(self, "ld.{how}.{space}.{ty} {seen}, {address}");
        self.place_label(again);
        ptx!(self, "mov.{ty} {expected}, {seen}");
        ptx!(self, "mov.{ty} {old}, {expected}");
        ptx!(self, "{op}.{} {new}, {old}, {v}", class.ty());
        ptx!(self, "mov.{ty} {wanted}, {new}");
        self.compare_exchange(place, seen, expected, wanted);
        ptx!(self, "setp.ne.{} {more}, {seen}, {expected}", ty.replace('b', "s"));
        ptx!(self, "@{more} bra $L{again}");
        self.set_result(i, old.into())
    }

    fn atomic_place(&mut self, i: Inst) -> Emit<Place> {
        let place = self.place(i, 0)?;
        if place.space == Space::Local {
            return Err(self.broken_at(i, "an atomic operation on a private array"));
        }
        if !matches!(place.prim.bit_width(), 32 | 64) {
            return Err(self.broken_at(i, "elements that no atomic operation takes"));
        }
        Ok(place)
    }

    /// An operand in a register.
    fn atomic_operand(&mut self, i: Inst, n: usize) -> Emit<Reg> {
        match self.f.args(i).get(n) {
            Some(&v) => match self.value(v)? {
                Operand::Reg(r) => Ok(r),
                Operand::Int(_) | Operand::F32(_) | Operand::F64(_) => self.value_reg(v),
            },
            None => Err(self.broken_at(i, "operands are missing")),
        }
    }
}

fn bits_type(p: PrimType) -> &'static str {
    if p.bit_width() == 64 { "b64" } else { "b32" }
}

fn semantics(space: Space) -> &'static str {
    match space {
        Space::Shared => "relaxed.cta",
        Space::Global | Space::Local => "relaxed.gpu",
    }
}
