//! Every pure scalar op on every type it takes: kernels of one op, and operands worth trying.

use crate::eval::{eval, float_bits, float_value};
use crate::{Class, Domain, Flags, FnId, Module, MpirFn, MpirGpuMeta, Op, Signature, Terminator};
use magpie_diag::Span;
use magpie_types::kernel::GpuBackend;
use magpie_types::{PrimType, Sid, SidKind, TypeKind, fixed};

/// Scalar types of at most 64 bits that values can have.
pub const SCALARS: [PrimType; 13] = {
    use PrimType::*;
    [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, Bf16, F32, F64]
};

/// An op on certain types.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpCase {
    #[allow(missing_docs)]
    pub op: Op,
    /// Types of the operands.
    pub from: Vec<PrimType>,
    /// Type of the result.
    pub to: PrimType,
}

impl OpCase {
    /// The result for operands given as bits.
    pub fn eval(&self, operands: &[u64]) -> u64 {
        let from = self.from[(self.op == Op::Select) as usize];
        eval(self.op, from, self.to, operands).unwrap_or(0)
    }

    /// Whether two results mean the same: equal bits, or both NaN.
    pub fn agree(&self, a: u64, b: u64) -> bool {
        let nan = |v| self.to.is_float() && float_value(self.to, v).is_nan();
        a == b || nan(a) && nan(b)
    }
}

/// Every op that is a pure function of scalars and never traps, on every type it takes.
pub fn op_cases() -> Vec<OpCase> {
    let accepts = |class, p: PrimType| match class {
        Class::Int => p.is_int(),
        Class::IntOrBool => p.is_int() || p == PrimType::Bool,
        Class::Float => p.is_float(),
        Class::FloatVec => false,
    };
    let mut cases = Vec::new();
    for &op in Op::ALL {
        let info = op.info();
        if info.may_trap {
            continue;
        }
        for p in SCALARS {
            let mut add = |from: Vec<PrimType>, to| {
                let case = OpCase { op, from, to };
                let first = case.from[(op == Op::Select) as usize];
                if eval(op, first, to, &vec![0; case.from.len()]).is_some() {
                    cases.push(case);
                }
            };
            match info.signature {
                Signature::Same(n, class) if accepts(class, p) => add(vec![p; n as usize], p),
                Signature::Compare(class) if accepts(class, p) => add(vec![p; 2], PrimType::Bool),
                Signature::Convert => SCALARS.into_iter().for_each(|to| add(vec![p], to)),
                Signature::Own if op == Op::Select => add(vec![PrimType::Bool, p, p], p),
                _ => {}
            }
        }
    }
    cases
}

/// A kernel with a buffer for each operand and one for the result, which applies the op to
/// corresponding elements. Invocation `i` handles element `i`; accesses are checked.
pub fn op_kernel(case: &OpCase) -> (Module, FnId) {
    let mut m = Module::new();
    let name = "ops.@kernel";
    let mut f = MpirFn::new(Sid::new(SidKind::Function, name), name, fixed::UNIT, Domain::Device);
    f.gpu_meta = Some(MpirGpuMeta {
        target: GpuBackend::Spv,
        workgroup: [64, 1, 1],
        is_unsafe: false,
        requires: Vec::new(),
        spans: Default::default(),
    });
    let mut buffers = Vec::new();
    for (n, p) in case.from.iter().chain([&case.to]).enumerate() {
        let ty = m.types.intern(TypeKind::Buffer(p.id()));
        buffers.push(f.add_param(format!("b{n}"), ty, Span::NONE));
    }
    let b = f.add_block();
    let add =
        |f: &mut MpirFn, op, ty, args: &[_]| f.append(b, op, Flags::NONE, ty, args, 0, Span::NONE);
    let at = add(&mut f, Op::GpuGlobalId, fixed::U32, &[]);
    let args: Vec<_> = case
        .from
        .iter()
        .zip(&buffers)
        .filter_map(|(p, &buffer)| add(&mut f, Op::GpuBufferLoad, p.id(), &[buffer, at?]))
        .collect();
    let value = add(&mut f, case.op, case.to.id(), &args);
    if let (Some(at), Some(value), Some(&out)) = (at, value, buffers.last()) {
        add(&mut f, Op::GpuBufferStore, fixed::UNIT, &[out, at, value]);
    }
    f.block_mut(b).term = Terminator::Ret(None);
    let id = m.add_fn(f);
    (m, id)
}

/// Values at which operations on a type go wrong first.
pub fn edge_values(p: PrimType) -> Vec<u64> {
    if p == PrimType::Bool {
        return vec![0, 1];
    }
    let w = p.bit_width();
    let mut v: Vec<u64> = vec![0, 1, 2, 3, 7, w as u64, w as u64 - 1, p.mask(), p.mask() - 1];
    v.extend([1 << (w - 1), (1 << (w - 1)) - 1, (1 << (w - 1)) + 1, 0x55, 0x80, 0xff]);
    if p.is_float() {
        for x in [
            0.0,
            1.0,
            1.5,
            3.0,
            0.1,
            1e-3,
            255.5,
            65519.9,
            65520.0,
            2147483520.0,
            2147483648.0,
            4294967296.0,
            9.3e18,
            1.9e19,
            1e-40,
            1e-45,
            6e-8,
            6.1e-5,
            1e30,
            3.4e38,
            f64::INFINITY,
            f64::NAN,
        ] {
            let bits = float_bits(p, x);
            v.extend([bits, bits ^ 1 << (w - 1)]);
        }
    }
    v.iter_mut().for_each(|x| *x &= p.mask());
    v
}

/// Operands for a case, one row each: edges with edges, and `random` random rows.
pub fn operand_rows(case: &OpCase, random: usize) -> Vec<Vec<u64>> {
    let mut rows: Vec<Vec<u64>> = vec![Vec::new()];
    for (n, &p) in case.from.iter().enumerate() {
        // A third operand takes every fifth edge: rows grow as the product.
        let edges = edge_values(p);
        let step = if n < 2 || edges.len() < 8 { 1 } else { 5 };
        rows = rows
            .iter()
            .flat_map(|row| {
                edges.iter().step_by(step).map(|&e| {
                    let mut row = row.clone();
                    row.push(e);
                    row
                })
            })
            .collect();
    }
    let mut rng = super::Rng::new(1 + case.op as u64);
    for n in 0..random {
        let mut row: Vec<u64> = case.from.iter().map(|p| rng.bits() & p.mask()).collect();
        // Floats near each other: what rounding, remainders and comparisons are about.
        if let [p, q, ..] = case.from[..]
            && p == q
            && p.is_float()
            && n % 2 == 0
        {
            let low = p.mask() >> (p.bit_width() / 2 + 2);
            row[1] = row[0] & !low | row[1] & low;
        }
        rows.push(row);
    }
    rows
}
