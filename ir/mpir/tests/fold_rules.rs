//! Every rule of folding against the meaning of the ops: small expressions over one parameter or
//! two, full of constants at the ends of their types, before and after.

use magpie_diag::Span;
use magpie_mpir::eval::{eval, float_bits, float_value};
use magpie_mpir::passes::{PassContext, fold};
use magpie_mpir::testing::Rng;
use magpie_mpir::{
    Class, Domain, Flags, Memory, MpirFn, Op, Signature, Terminator, Value, ValueDef,
};
use magpie_types::{PrimType, Sid, SidKind, TypeCtx, fixed};

const TYPES: [PrimType; 14] = {
    use PrimType::*;
    [Bool, I8, I16, I32, I64, U8, U16, U32, U64, U1, F16, Bf16, F32, F64]
};

fn belongs(p: PrimType, class: Class) -> bool {
    match class {
        Class::Int => p.is_int(),
        Class::IntOrBool => p.is_int() || p == PrimType::Bool,
        Class::Float => p.is_float(),
        Class::FloatVec => false,
    }
}

fn bits(rng: &mut Rng, p: PrimType) -> u64 {
    if p.is_float() {
        let inf = f64::INFINITY;
        // Of 2^15 and 2^127 the inverse is subnormal in one format or another.
        let (p15, p127) = (32768.0, 2f64.powi(127));
        let values =
            [0.0, -0.0, 1.0, -1.0, 2.0, 0.25, 3.0, -7.5, p15, p127, inf, -inf, f64::NAN, 1e-40];
        return float_bits(p, rng.pick(&values).unwrap_or(0.0));
    }
    let w = p.bit_width() as u64;
    let top = p.mask() >> 1;
    let values = [0, 1, 2, 3, 5, 8, w - 1, w, w + 1, 2 * w, top, top + 1, p.mask(), p.mask() - 1];
    match rng.chance(80) {
        true => rng.pick(&values).unwrap_or(0) & p.mask(),
        false => rng.bits() & p.mask(),
    }
}

/// A function that computes a few values from two parameters of each type.
fn expressions(rng: &mut Rng) -> MpirFn {
    let sid = Sid::new(SidKind::Function, "t.@f");
    let mut f = MpirFn::new(sid, "t.@f", fixed::UNIT, Domain::Device);
    for p in TYPES.iter().chain(&TYPES) {
        f.add_param("x", p.id(), Span::NONE);
    }
    let b = f.add_block();
    f.block_mut(b).term = Terminator::Ret(None);
    let ops: Vec<Op> = Op::ALL
        .iter()
        .copied()
        .filter(|op| {
            let pure = op.info().memory == Memory::None && op.is_pure();
            let known = match op.info().signature {
                Signature::Same(_, class) => class != Class::FloatVec,
                Signature::Compare(_) => true,
                Signature::Convert | Signature::Leaf | Signature::Own => {
                    matches!(op, Op::Cast | Op::BitsCast | Op::Select)
                }
            };
            pure && known
        })
        .collect();
    // One type in most of an expression, so that operations follow each other.
    let mostly = TYPES[rng.below(TYPES.len())];
    // And few operations, so that one meets itself and its opposite.
    let fits = |op: &Op| match op.info().signature {
        Signature::Same(_, class) | Signature::Compare(class) => belongs(mostly, class),
        Signature::Convert | Signature::Leaf | Signature::Own => true,
    };
    let fitting: Vec<Op> = ops.iter().copied().filter(fits).collect();
    let mut favourites: Vec<Op> = (0..3).filter_map(|_| rng.pick(&fitting)).collect();
    if rng.chance(30) {
        favourites.extend([Op::Cast, Op::Cast, Op::Cast]);
    }
    if rng.chance(30) {
        favourites.push(Op::IXor);
    }
    let mut values: Vec<Value> = f.params.iter().map(|p| p.0).collect();
    for _ in 0..6 {
        let favourite = rng.chance(80);
        let Some(op) = rng.pick(if favourite { &favourites } else { &ops }) else { break };
        let pick_type = |rng: &mut Rng| match rng.chance(80) {
            true => mostly,
            false => TYPES[rng.below(TYPES.len())],
        };
        let mut p = pick_type(rng);
        // Of a truth there is little to compute but its opposite.
        if op == Op::IXor && rng.chance(50) {
            p = PrimType::Bool;
        }
        let types_vary = favourites.contains(&Op::Cast) && rng.chance(50);
        if types_vary && op == Op::Cast {
            p = TYPES[rng.below(TYPES.len())];
        }
        let operand = |rng: &mut Rng, f: &mut MpirFn, p: PrimType| {
            if rng.chance(45) {
                let bits = bits(rng, p);
                return f.const_bits(p.id(), bits);
            }
            let fitting: Vec<Value> =
                values.iter().copied().filter(|&v| f.ty(v) == p.id()).collect();
            // Late values most often.
            let back = rng.below(fitting.len()).min(rng.below(fitting.len()));
            fitting[fitting.len() - 1 - back]
        };
        let (ty, args) = match op.info().signature {
            Signature::Same(n, class) if belongs(p, class) => {
                (p, (0..n).map(|_| operand(rng, &mut f, p)).collect::<Vec<_>>())
            }
            Signature::Compare(class) if belongs(p, class) => {
                (PrimType::Bool, (0..2).map(|_| operand(rng, &mut f, p)).collect())
            }
            _ if op == Op::Select => {
                let cond = operand(rng, &mut f, PrimType::Bool);
                (p, vec![cond, operand(rng, &mut f, p), operand(rng, &mut f, p)])
            }
            _ if op == Op::Cast || op == Op::BitsCast => {
                let to = if types_vary { TYPES[rng.below(TYPES.len())] } else { pick_type(rng) };
                let to_truth = matches!(to, PrimType::Bool | PrimType::U1);
                if op == Op::Cast && p.is_float() && to_truth
                    || op == Op::BitsCast && (p.bit_width() != to.bit_width() || p.is_float())
                {
                    continue;
                }
                (to, vec![operand(rng, &mut f, p)])
            }
            _ => continue,
        };
        values.extend(f.append(b, op, Flags::NONE, ty.id(), &args, 0, Span::NONE));
    }
    f
}

/// The values that a function computes, by value.
fn execute(f: &MpirFn, params: &[u64]) -> Vec<Option<u64>> {
    let mut known: Vec<Option<u64>> = f
        .locals
        .iter()
        .enumerate()
        .map(|(v, local)| match local.def {
            ValueDef::Param(n) => Some(params[n as usize]),
            ValueDef::Const(_) => f.as_bits(Value::new(v)),
            ValueDef::Inst(_) => None,
        })
        .collect();
    for &i in &f.blocks[0].insts {
        let inst = f.inst(i);
        let args: Vec<u64> = f.args(i).iter().map(|v| known[v.index()].unwrap()).collect();
        let typed = if inst.op == Op::Select { f.arg(i, 1) } else { f.arg(i, 0) };
        let from = PrimType::from_id(f.ty(typed)).unwrap();
        let to = PrimType::from_id(inst.ty).unwrap();
        known[inst.result().unwrap().index()] = Some(eval(inst.op, from, to, &args).unwrap());
    }
    known
}

#[test]
fn folding_keeps_every_value() {
    let types = TypeCtx::new();
    let mut ctx = PassContext::new();
    for seed in 0..150_000 {
        let mut rng = Rng::new(seed);
        let before = expressions(&mut rng);
        let Some(&last) = before.blocks[0].insts.last() else { continue };
        let result = before.inst(last).result().unwrap();
        let mut after = before.clone();
        // The last value is what counts; the terminator keeps it through folding.
        after.block_mut(magpie_mpir::Block(0)).term = Terminator::Ret(Some(result));
        fold(&mut after, &types, &mut ctx);
        let Terminator::Ret(Some(folded)) = after.blocks[0].term else { unreachable!() };
        assert_eq!(after.ty(folded), before.ty(result));
        for _ in 0..4 {
            let params: Vec<u64> = TYPES.iter().chain(&TYPES).map(|&p| bits(&mut rng, p)).collect();
            let wanted = execute(&before, &params)[result.index()].unwrap();
            let got = execute(&after, &params)[folded.index()].unwrap();
            let p = PrimType::from_id(before.ty(result)).unwrap();
            let nan = |v| p.is_float() && float_value(p, v).is_nan();
            assert!(
                wanted == got || nan(wanted) && nan(got),
                "seed {seed}: {wanted:#x} became {got:#x} for {params:x?}\n{:?}\n{:?}",
                listing(&before),
                listing(&after),
            );
        }
    }
}

fn listing(f: &MpirFn) -> Vec<String> {
    let show = |v: &Value| match f.as_bits(*v) {
        Some(bits) => format!("{bits:#x}"),
        None => format!("{v:?}"),
    };
    f.blocks[0]
        .insts
        .iter()
        .map(|&i| {
            let args: Vec<String> = f.args(i).iter().map(show).collect();
            let ty = PrimType::from_id(f.inst(i).ty).map_or("", PrimType::name);
            format!("{:?}: {ty} = {} {}", f.inst(i).result(), f.inst(i).op.name(), args.join(", "))
        })
        .collect()
}
