//! Vectors. The geometric functions are spelt out in the order of their definition unless the
//! flags allow the device's own.

use crate::builder::Id;
use crate::emitter::{Emit, Emitter};
use crate::types::Shape;
use magpie_mpir::{Flags, Inst};
use spirv::{GlslStd450Op as Glsl, Op};

/// What lets a device's own geometric function stand for the definition.
const LOOSE: Flags = Flags(Flags::CONTRACT.0 | Flags::REASSOC.0);

impl Emitter<'_> {
    pub(super) fn vec_new(&mut self, i: Inst) -> Emit {
        let (shape, _) = self.shape_of_result(i)?;
        let f = self.f;
        let mut lanes = [0; 4];
        if f.args(i).len() != shape.lanes as usize {
            return Err(self.broken_at(i, "operands are missing"));
        }
        for (id, &v) in lanes.iter_mut().zip(f.args(i)) {
            *id = self.value(v)?;
        }
        self.construct(i, shape, lanes)
    }

    pub(super) fn vec_splat(&mut self, i: Inst) -> Emit {
        let (shape, _) = self.shape_of_result(i)?;
        let [value] = self.operands(i)?;
        self.construct(i, shape, [value; 4])
    }

    fn construct(&mut self, i: Inst, shape: Shape, lanes: [Id; 4]) -> Emit {
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(Op::CompositeConstruct, ty, id, &lanes[..shape.lanes as usize]);
        Ok(())
    }

    pub(super) fn vec_extract(&mut self, i: Inst) -> Emit {
        let (shape, _) = self.shape_of_result(i)?;
        let [value] = self.operands(i)?;
        let lane = self.f.inst(i).imm_lo();
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(Op::CompositeExtract, ty, id, &[value, lane]);
        Ok(())
    }

    pub(super) fn vec_insert(&mut self, i: Inst) -> Emit {
        let (shape, _) = self.shape_of_result(i)?;
        let [vector, value] = self.operands(i)?;
        let lane = self.f.inst(i).imm_lo();
        let (ty, id) = (self.b.shape(shape), self.result(i));
        self.body.value(Op::CompositeInsert, ty, id, &[value, vector, lane]);
        Ok(())
    }

    pub(super) fn vec_reduce_bool(&mut self, i: Inst, op: Op) -> Emit {
        let [value] = self.operands(i)?;
        let (ty, id) = (self.b.shape(Shape::BOOL), self.result(i));
        self.body.value(op, ty, id, &[value]);
        Ok(())
    }

    pub(super) fn vec_dot(&mut self, i: Inst) -> Emit {
        let (shape, _) = self.shape_of_operand(i, 0)?;
        let [a, b] = self.operands(i)?;
        let dot = self.dot(i, shape, a, b)?;
        let ty = self.b.shape(Shape::one(shape.scalar));
        self.set_result(i, ty, dot);
        Ok(())
    }

    /// The sum of the products, from the first to the last component.
    fn dot(&mut self, i: Inst, shape: Shape, a: Id, b: Id) -> Emit<Id> {
        let ty = self.b.shape(Shape::one(shape.scalar));
        let is_float = shape.scalar.is_float();
        if is_float {
            self.used_float(shape);
            if self.f.inst(i).flags.contains(LOOSE) {
                return Ok(self.emit(Op::Dot, ty, &[a, b]));
            }
        }
        let (mul, add) = if is_float { (Op::FMul, Op::FAdd) } else { (Op::IMul, Op::IAdd) };
        let mut sum = 0;
        for lane in 0..shape.lanes as u32 {
            let x = self.emit(Op::CompositeExtract, ty, &[a, lane]);
            let y = self.emit(Op::CompositeExtract, ty, &[b, lane]);
            let product = self.exact(i, mul, ty, &[x, y]);
            sum = if lane == 0 { product } else { self.exact(i, add, ty, &[sum, product]) };
        }
        Ok(sum)
    }

    /// Appends an arithmetic instruction that is not fused with others unless `i` allows it.
    fn exact(&mut self, i: Inst, op: Op, ty: Id, operands: &[Id]) -> Id {
        let id = self.emit(op, ty, operands);
        if matches!(op, Op::FAdd | Op::FSub | Op::FMul | Op::FDiv) {
            self.keep_exact(i, id);
        }
        id
    }

    pub(super) fn vec_cross(&mut self, i: Inst) -> Emit {
        if self.f.inst(i).flags.contains(LOOSE) {
            return self.float_function(i, Glsl::Cross);
        }
        let shape = self.float_shape(i)?;
        self.used_float(shape);
        let [a, b] = self.operands(i)?;
        let ty = self.b.shape(shape);
        let mut turn = |v, order: [u32; 3]| {
            self.emit(Op::VectorShuffle, ty, &[v, v, order[0], order[1], order[2]])
        };
        let (a1, b1) = (turn(a, [1, 2, 0]), turn(b, [2, 0, 1]));
        let (a2, b2) = (turn(a, [2, 0, 1]), turn(b, [1, 2, 0]));
        let first = self.exact(i, Op::FMul, ty, &[a1, b1]);
        let second = self.exact(i, Op::FMul, ty, &[a2, b2]);
        let cross = self.exact(i, Op::FSub, ty, &[first, second]);
        self.set_result(i, ty, cross);
        Ok(())
    }

    /// Square root of the dot product with itself.
    pub(super) fn vec_length(&mut self, i: Inst) -> Emit {
        let (shape, _) = self.shape_of_operand(i, 0)?;
        let [v] = self.operands(i)?;
        let length = self.length(i, shape, v)?;
        let ty = self.b.shape(Shape::one(shape.scalar));
        self.set_result(i, ty, length);
        Ok(())
    }

    fn length(&mut self, i: Inst, shape: Shape, v: Id) -> Emit<Id> {
        let square = self.dot(i, shape, v, v)?;
        let ty = self.b.shape(Shape::one(shape.scalar));
        Ok(self.emit_ext(Glsl::Sqrt, ty, &[square]))
    }

    /// Each component divided by the length.
    pub(super) fn vec_normalize(&mut self, i: Inst) -> Emit {
        let shape = self.float_shape(i)?;
        let [v] = self.operands(i)?;
        let length = self.length(i, shape, v)?;
        let lengths = self.splat(shape, length);
        let ty = self.b.shape(shape);
        let unit = self.exact(i, Op::FDiv, ty, &[v, lengths]);
        self.set_result(i, ty, unit);
        Ok(())
    }

    /// v - 2 * dot(n, v) * n.
    pub(super) fn vec_reflect(&mut self, i: Inst) -> Emit {
        let shape = self.float_shape(i)?;
        let [v, n] = self.operands(i)?;
        let dot = self.dot(i, shape, n, v)?;
        let lane_ty = self.b.shape(Shape::one(shape.scalar));
        // Doubling is exact.
        let twice = self.exact(i, Op::FAdd, lane_ty, &[dot, dot]);
        let factors = self.splat(shape, twice);
        let ty = self.b.shape(shape);
        let change = self.exact(i, Op::FMul, ty, &[factors, n]);
        let reflected = self.exact(i, Op::FSub, ty, &[v, change]);
        self.set_result(i, ty, reflected);
        Ok(())
    }

    /// x * (1 - t) + y * t.
    pub(super) fn vec_mix(&mut self, i: Inst) -> Emit {
        let shape = self.float_shape(i)?;
        self.used_float(shape);
        let [x, y, t] = self.operands(i)?;
        let ty = self.b.shape(shape);
        let one = self.b.constant(shape, shape.scalar.one());
        let rest = self.exact(i, Op::FSub, ty, &[one, t]);
        let from_x = self.exact(i, Op::FMul, ty, &[x, rest]);
        let from_y = self.exact(i, Op::FMul, ty, &[y, t]);
        let mixed = self.exact(i, Op::FAdd, ty, &[from_x, from_y]);
        self.set_result(i, ty, mixed);
        Ok(())
    }

    fn splat(&mut self, shape: Shape, v: Id) -> Id {
        let ty = self.b.shape(shape);
        self.emit(Op::CompositeConstruct, ty, &[v; 4][..shape.lanes as usize])
    }
}
