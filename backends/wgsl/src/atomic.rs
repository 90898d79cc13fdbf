//! Atomic operations on buffers and shared arrays.
//!
//! Those on floats are loops around a compare-and-swap of their bits, and so is the exchange with
//! a comparison, because WGSL's own may fail without a reason.

use crate::functions::Function;
use crate::language::Wgsl;
use crate::memory::{Place, Space, Stored};
use magpie_gpu::text::{Emit, Shape, Text};
use magpie_mpir::Inst;
use magpie_types::PrimType;
use std::fmt::Write;

const F32: Shape = Shape::one(PrimType::F32);

/// How a loop computes the new value.
#[derive(Clone, Copy)]
enum Update {
    Sum(char),
    Extremum(Function),
}

impl Wgsl {
    /// Sum or difference.
    pub(crate) fn atomic_sum(
        &mut self,
        text: &mut Text<'_>,
        i: Inst,
        integers: &str,
        sign: char,
    ) -> Emit {
        let (place, is_float) = self.atomic_place(text, i)?;
        match is_float {
            true => self.atomic_loop(text, i, &place, Update::Sum(sign)),
            false => self.atomic_call(text, i, &place, integers, false),
        }
    }

    /// Smaller or larger.
    pub(crate) fn atomic_extremum(
        &mut self,
        text: &mut Text<'_>,
        i: Inst,
        integers: &str,
        floats: Function,
    ) -> Emit {
        let (place, is_float) = self.atomic_place(text, i)?;
        match is_float {
            true => self.atomic_loop(text, i, &place, Update::Extremum(floats)),
            false => self.atomic_call(text, i, &place, integers, false),
        }
    }

    /// What works on bits, whatever they mean.
    pub(crate) fn atomic_bits(&mut self, text: &mut Text<'_>, i: Inst, function: &str) -> Emit {
        let (place, is_float) = self.atomic_place(text, i)?;
        self.atomic_call(text, i, &place, function, is_float)
    }

    /// Where an atomic operation goes, and whether its elements are the bits of floats.
    fn atomic_place(&self, text: &Text<'_>, i: Inst) -> Emit<(Place, bool)> {
        let place = self.place(text, i, 0)?;
        if place.space == Space::Private {
            return Err(text.broken_at(i, "an atomic operation on a private array"));
        }
        match place.element.stored {
            Stored::Atomic => Ok((place, false)),
            Stored::AtomicBits => Ok((place, true)),
            Stored::Value | Stored::BoolWord | Stored::HalfWord | Stored::Packed(_) => {
                Err(text.broken_at(i, "elements that no atomic operation takes"))
            }
        }
    }

    fn atomic_call(
        &mut self,
        text: &mut Text<'_>,
        i: Inst,
        place: &Place,
        function: &str,
        is_float: bool,
    ) -> Emit {
        text.open_result(self, i)?;
        let _ = write!(text.out, "{}{function}(&", if is_float { "bitcast<f32>(" } else { "" });
        self.write_place(text, i, place)?;
        text.out.push_str(", ");
        self.write_bits(text, i, 2, is_float)?;
        text.out.push_str(if is_float { "))" } else { ")" });
        text.end_statement();
        Ok(())
    }

    /// Writes operand `n` as it lies in memory.
    fn write_bits(&mut self, text: &mut Text<'_>, i: Inst, n: usize, is_float: bool) -> Emit {
        let v = text.arg(i, n)?;
        if !is_float {
            return text.argument(self, v);
        }
        text.out.push_str("bitcast<u32>(");
        text.argument(self, v)?;
        text.out.push(')');
        Ok(())
    }

    /// Tries until the exchange happens or the element differs.
    pub(crate) fn atomic_cas(&mut self, text: &mut Text<'_>, i: Inst) -> Emit {
        let (place, is_float) = self.atomic_place(text, i)?;
        let place = &place;
        let shape = text.shape_of_result(i)?;
        let bits = if is_float { Shape::U32 } else { shape };
        let [wanted, seen, outcome] = [0; 3].map(|_| text.next_name());
        text.indent();
        let _ = write!(text.out, "let {wanted} = ");
        self.write_bits(text, i, 2, is_float)?;
        text.end_statement();
        text.line(&format!("var {seen}: {};", crate::types::type_name(bits)));
        text.open::<Wgsl>("loop {")?;
        text.indent();
        let _ = write!(text.out, "let {outcome} = atomicCompareExchangeWeak(&");
        self.write_place(text, i, place)?;
        let _ = write!(text.out, ", {wanted}, ");
        self.write_bits(text, i, 3, is_float)?;
        text.out.push(')');
        text.end_statement();
        text.line(&format!("{seen} = {outcome}.old_value;"));
        text.line(&format!("if ({outcome}.exchanged || {seen} != {wanted}) {{ break; }}"));
        text.close("}");
        self.set_old(text, i, &seen, is_float)
    }

    /// Computes the new value from the one seen last until nobody has changed it meanwhile.
    fn atomic_loop(&mut self, text: &mut Text<'_>, i: Inst, place: &Place, update: Update) -> Emit {
        let [seen, outcome] = [0; 2].map(|_| text.next_name());
        text.indent();
        let _ = write!(text.out, "var {seen} = atomicLoad(&");
        self.write_place(text, i, place)?;
        text.out.push(')');
        text.end_statement();
        text.open::<Wgsl>("loop {")?;
        text.indent();
        let _ = write!(text.out, "let {outcome} = atomicCompareExchangeWeak(&");
        self.write_place(text, i, place)?;
        let _ = write!(text.out, ", {seen}, bitcast<u32>(");
        let operand = text.arg(i, 2)?;
        match update {
            Update::Extremum(function) => {
                self.open_call(text, function, F32);
                let _ = write!(text.out, "bitcast<f32>({seen}), ");
                text.argument(self, operand)?;
                text.out.push(')');
            }
            Update::Sum(sign) => {
                let _ = write!(text.out, "bitcast<f32>({seen}) {sign} ");
                text.operand(self, operand)?;
            }
        }
        text.out.push_str("))");
        text.end_statement();
        text.line(&format!("if ({outcome}.exchanged) {{ break; }}"));
        text.line(&format!("{seen} = {outcome}.old_value;"));
        text.close("}");
        self.set_old(text, i, &seen, true)
    }

    /// Gives the element seen last as the result.
    fn set_old(&mut self, text: &mut Text<'_>, i: Inst, seen: &str, is_float: bool) -> Emit {
        if !text.is_read(i) {
            return Ok(());
        }
        text.open_result(self, i)?;
        let _ = match is_float {
            true => write!(text.out, "bitcast<f32>({seen})"),
            false => write!(text.out, "{seen}"),
        };
        text.end_statement();
        Ok(())
    }
}
