//! Arithmetic on floats.

use crate::emitter::{Emit, Emitter, Operand};
use crate::flavor::Flavor;
use crate::types::suffix;
use magpie_mpir::{Flags, Inst};
use magpie_types::PrimType;

/// The first LLVM that has one instruction for `minimumnum` and `maximumnum` on GPUs.
const ORDERED_EXTREMA: u32 = 22;

/// The fast-math flags of an instruction, each with a space behind it.
pub(crate) fn fast_math(flags: Flags) -> String {
    let words = [
        (Flags::CONTRACT, "contract "),
        (Flags::REASSOC, "reassoc "),
        (Flags::AFN, "afn arcp "),
        (Flags::NNAN, "nnan "),
        (Flags::NSZ, "nsz "),
    ];
    words.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, word)| *word).collect()
}

impl Emitter<'_> {
    pub(super) fn float_binary(&mut self, i: Inst, name: &str) -> Emit {
        let (shape, flags) = (self.result_shape(i)?, fast_math(self.f.inst(i).flags));
        let (a, b) = (self.arg(i, 0)?, self.arg(i, 1)?);
        self.define(i, format_args!("{name} {flags}{shape} {a}, {b}"))
    }

    pub(super) fn float_negate(&mut self, i: Inst) -> Emit {
        let (shape, v) = (self.result_shape(i)?, self.arg(i, 0)?);
        self.define(i, format_args!("fneg {shape} {v}"))
    }

    /// An intrinsic whose operands and result have one type.
    pub(super) fn float_intrinsic(&mut self, i: Inst, name: &str) -> Emit {
        let (p, flags) = (self.result_shape(i)?.prim, fast_math(self.f.inst(i).flags));
        let args = self.operands(i)?;
        let args: Vec<&Operand> = args.iter().collect();
        let (name, ty) = (format!("llvm.{name}.{}", suffix(p)), crate::types::scalar(p));
        let call = self.call(&name, ty, ty, &args);
        self.define(i, format_args!("call {flags}{call}"))
    }

    /// Division, square root and elementary functions as fast as the hardware has them; `name` is
    /// the intrinsic of NVIDIA GPUs for f32.
    fn approximate(&mut self, i: Inst, name: &str) -> Emit {
        let args = self.operands(i)?;
        let args: Vec<&Operand> = args.iter().collect();
        let call = self.call(&format!("llvm.nvvm.{name}.approx.f"), "float", "float", &args);
        self.define(i, format_args!("call {call}"))
    }

    fn is_approximate(&self, i: Inst) -> Emit<bool> {
        let is_fast = self.f.inst(i).flags.contains(Flags::AFN);
        let is_nvidia = matches!(self.flavor, Flavor::Nvptx { .. });
        Ok(is_fast && is_nvidia && self.result_shape(i)?.prim == PrimType::F32)
    }

    pub(super) fn divide(&mut self, i: Inst) -> Emit {
        match self.is_approximate(i)? {
            true => self.approximate(i, "div"),
            false => self.float_binary(i, "fdiv"),
        }
    }

    pub(super) fn square_root(&mut self, i: Inst) -> Emit {
        match self.is_approximate(i)? {
            true => self.approximate(i, "sqrt"),
            false => self.float_intrinsic(i, "sqrt"),
        }
    }

    /// One of the four elementary functions that hardware has; the others are legalised.
    pub(super) fn elementary(&mut self, i: Inst, nvidia: &str, name: &str) -> Emit {
        if !self.f.inst(i).flags.contains(Flags::AFN) {
            return Err(self.broken_at(i, "must be lowered before emission"));
        }
        match self.is_approximate(i)? {
            true => self.approximate(i, nvidia),
            false => self.float_intrinsic(i, name),
        }
    }

    /// Minimum or maximum, with -0 below +0.
    pub(super) fn float_extremum(&mut self, i: Inst, name: &str, join: &str) -> Emit {
        let p = self.result_shape(i)?.prim;
        let (a, b) = (self.arg(i, 0)?, self.arg(i, 1)?);
        let v = self.extremum(p, name, join, self.f.inst(i).flags, [&a, &b]);
        let shape = self.result_shape(i)?;
        self.define_as(i, shape, &v)
    }

    /// The same for operands at hand. Newer intrinsics order zeros; older ones may take either, and
    /// equal operands are joined bit by bit.
    pub(super) fn extremum(
        &mut self,
        p: PrimType,
        name: &str,
        join: &str,
        flags: Flags,
        [a, b]: [&Operand; 2],
    ) -> Operand {
        let (ty, int) = (crate::types::scalar(p), crate::types::scalar(p.bits_type()));
        let words = fast_math(flags.intersect(Flags::NNAN.union(Flags::NSZ)));
        let is_ordered = self.llvm >= ORDERED_EXTREMA;
        let name = match (is_ordered, name) {
            (true, "minnum") => "minimumnum",
            (true, _) => "maximumnum",
            (false, _) => name,
        };
        let call = self.call(&format!("llvm.{name}.{}", suffix(p)), ty, ty, &[a, b]);
        let v = self.emit(format_args!("call {words}{call}"));
        if is_ordered || flags.contains(Flags::NSZ) {
            return v;
        }
        let equal = self.emit(format_args!("fcmp oeq {ty} {a}, {b}"));
        let [x, y] = [a, b].map(|v| self.emit(format_args!("bitcast {ty} {v} to {int}")));
        let joined = self.emit(format_args!("{join} {int} {x}, {y}"));
        let joined = self.emit(format_args!("bitcast {int} {joined} to {ty}"));
        self.emit(format_args!("select i1 {equal}, {ty} {joined}, {ty} {v}"))
    }

    pub(super) fn float_compare(&mut self, i: Inst, predicate: &str) -> Emit {
        let shape = self.shape_of(self.arg_value(i, 0)?)?;
        let (a, b) = (self.arg(i, 0)?, self.arg(i, 1)?);
        self.define(i, format_args!("fcmp {predicate} {shape} {a}, {b}"))
    }

    /// The operands of an instruction that are floats.
    fn operands(&self, i: Inst) -> Emit<Vec<Operand>> {
        self.f.args(i).iter().map(|&v| self.value(v)).collect()
    }
}
