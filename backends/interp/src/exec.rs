//! One instruction of one invocation, and subgroup operations of several.

use crate::machine::{Activation, Fault, Group, Invocation, current, is_subgroup_op, new_frame};
use crate::memory;
use crate::value::{ArrayRef, Val, prim, read};
use magpie_diag::Span;
use magpie_mpir::eval::{AtomicOp, SubgroupOp, eval, int_value};
use magpie_mpir::{Block, Const, Flags, Inst, MpirFn, Op, Terminator, Value};
use magpie_types::print::text_of;
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind};

/// Why an invocation does not run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// It does.
    Running,
    /// At a barrier, which has been passed.
    Barrier(Span),
    /// Before a subgroup operation.
    Subgroup,
    /// Returned from the kernel.
    Ended,
}

/// Deepest nesting of calls.
const MAX_CALLS: usize = 4096;

/// Executes the next instruction or terminator.
pub(crate) fn step(group: &mut Group, inv: &mut Invocation) -> Result<Stop, Fault> {
    inv.steps += 1;
    let Some(top) = inv.stack.last() else { return Ok(Stop::Ended) };
    if inv.steps > group.launch.max_steps {
        let f = group.module.func(top.func);
        return Err(fault(group, inv, f.block(top.block).term_span, "does not end"));
    }
    let Some((f, i)) = current(group.module, inv) else { return terminator(group, inv) };
    let data = f.inst(i);
    if is_subgroup_op(data.op) {
        return Ok(Stop::Subgroup);
    }
    if let Some(top) = inv.stack.last_mut() {
        top.next += 1;
    }
    match data.op {
        Op::GpuBarrier => return Ok(Stop::Barrier(data.span)),
        Op::Call => call(group, inv, f, i)?,
        _ => {
            let value = inst(group, inv, f, i)?;
            if let (Some(v), Some(top)) = (data.result(), inv.stack.last_mut()) {
                top.values[v.index()] = value;
            }
        }
    }
    Ok(Stop::Running)
}

fn fault(group: &Group, inv: &Invocation, span: Span, what: &str) -> Fault {
    Fault {
        span,
        message: format!("invocation {:?} of workgroup {:?} {what}", inv.thread, group.workgroup),
    }
}

fn value(inv: &Invocation, v: Value) -> Val {
    inv.stack.last().map_or(Val::Bits(0), |top| read(&top.values, v))
}

fn call(group: &Group, inv: &mut Invocation, f: &MpirFn, i: Inst) -> Result<(), Fault> {
    let data = f.inst(i);
    if inv.stack.len() >= MAX_CALLS {
        return Err(fault(group, inv, data.span, "calls too deep"));
    }
    let callee = group.module.func(data.func());
    let args: Vec<Val> = f.args(i).iter().map(|&v| value(inv, v)).collect();
    let values = new_frame(group.module, callee, args.into_iter());
    let func = data.func();
    inv.stack.push(Activation { func, block: Block(0), next: 0, values, result: data.result() });
    Ok(())
}

fn terminator(group: &Group, inv: &mut Invocation) -> Result<Stop, Fault> {
    let Some(top) = inv.stack.last() else { return Ok(Stop::Ended) };
    let f = group.module.func(top.func);
    let block = f.block(top.block);
    let target = match &block.term {
        Terminator::Ret(v) => {
            let result = v.map(|v| value(inv, v));
            let into = inv.stack.pop().and_then(|done| done.result);
            return Ok(match inv.stack.last_mut() {
                None => Stop::Ended,
                Some(caller) => {
                    if let Some(into) = into {
                        caller.values[into.index()] = result;
                    }
                    Stop::Running
                }
            });
        }
        Terminator::Br(b) => *b,
        Terminator::Cbr { cond, then, else_ } => {
            if value(inv, *cond).bits() & 1 == 1 {
                *then
            } else {
                *else_
            }
        }
        Terminator::Switch { value: v, cases, default } => {
            let bits = value(inv, *v).bits();
            cases.iter().find(|(c, _)| *c == bits).map_or(*default, |&(_, b)| b)
        }
        Terminator::Unreachable => {
            return Err(fault(group, inv, block.term_span, "reaches `unreachable`"));
        }
    };
    // All phis read the values of the edge before any is written.
    let from = top.block;
    let phis: Vec<(Value, Val)> = f
        .phis(target)
        .filter_map(|p| {
            let v = f.phi_value(p, from)?;
            Some((f.inst(p).result()?, value(inv, v)))
        })
        .collect();
    if let Some(top) = inv.stack.last_mut() {
        top.next = phis.len();
        for (phi, v) in phis {
            top.values[phi.index()] = Some(v);
        }
        top.block = target;
    }
    Ok(Stop::Running)
}

/// Executes an instruction that concerns one invocation alone.
fn inst(
    group: &mut Group,
    inv: &mut Invocation,
    f: &MpirFn,
    i: Inst,
) -> Result<Option<Val>, Fault> {
    let types = &group.module.types;
    let data = f.inst(i);
    let args: Vec<Val> = f.args(i).iter().map(|&v| value(inv, v)).collect();
    let dim = (data.dim() as usize).min(2);
    let id = |v: u32| Ok(Some(Val::Bits(v as u64)));
    match data.op {
        Op::GpuThreadId => id(inv.thread[dim]),
        Op::GpuWorkgroupId => id(group.workgroup[dim]),
        Op::GpuWorkgroupSize => id(group.launch.block[dim]),
        Op::GpuNumWorkgroups => id(group.launch.grid[dim]),
        Op::GpuGlobalId => {
            let base = group.workgroup[dim].wrapping_mul(group.launch.block[dim]);
            id(base.wrapping_add(inv.thread[dim]))
        }
        Op::GpuSubgroupSize => id(group.launch.subgroup_size),
        Op::GpuSubgroupLaneId => id(inv.lane),

        Op::GpuBufferLen => {
            let len = array_len(group, inv, f, i);
            let most = prim(types, data.ty).mask();
            Ok(Some(Val::Bits(len.min(most))))
        }
        Op::GpuBufferLoad | Op::GpuLeafLoad => {
            let ty = data.ty;
            let Some((array, offset)) = locate(group, inv, f, i, &args)? else {
                return Ok(Some(Val::zero(types, ty)));
            };
            Ok(Some(memory::load(bytes(group, inv, array), types, ty, offset)))
        }
        Op::GpuBufferStore | Op::GpuLeafStore => {
            if let Some((array, offset)) = locate(group, inv, f, i, &args)? {
                let ty = f.ty(f.arg(i, 2));
                let types = &group.module.types;
                memory::store(bytes(group, inv, array), types, ty, offset, &args[2]);
            }
            Ok(None)
        }
        Op::GpuShared => {
            let key = (inv.stack.last().map_or(magpie_mpir::FnId(0), |t| t.func), i);
            let found = group.shared.iter().position(|(k, _)| *k == key);
            let n = found.unwrap_or_else(|| {
                // Contents are undefined at the start: nothing should depend on this pattern.
                group.shared.push((key, vec![0xa5; array_bytes(types, data.ty)]));
                group.shared.len() - 1
            });
            Ok(Some(Val::Array(ArrayRef::Shared(n))))
        }
        Op::GpuLocal => {
            inv.locals.push(vec![0; array_bytes(types, data.ty)]);
            Ok(Some(Val::Array(ArrayRef::Local(inv.locals.len() - 1))))
        }
        Op::GpuAtomicAdd => atomic(group, inv, f, i, &args, AtomicOp::Add),
        Op::GpuAtomicSub => atomic(group, inv, f, i, &args, AtomicOp::Sub),
        Op::GpuAtomicMin => atomic(group, inv, f, i, &args, AtomicOp::Min),
        Op::GpuAtomicMax => atomic(group, inv, f, i, &args, AtomicOp::Max),
        Op::GpuAtomicAnd => atomic(group, inv, f, i, &args, AtomicOp::And),
        Op::GpuAtomicOr => atomic(group, inv, f, i, &args, AtomicOp::Or),
        Op::GpuAtomicXor => atomic(group, inv, f, i, &args, AtomicOp::Xor),
        Op::GpuAtomicExchange => atomic(group, inv, f, i, &args, AtomicOp::Exchange),
        Op::GpuAtomicCas => atomic(group, inv, f, i, &args, AtomicOp::Cas),
        Op::GpuPrint => {
            let words = f.args(i).iter().zip(&args).map(|(&v, a)| match f.as_const(v) {
                Some(Const::Str(s)) => group.module.str(s).to_string(),
                Some(Const::Bits(_) | Const::Unit | Const::Zero) | None => {
                    text_of(prim(types, f.ty(v)), a.bits())
                }
            });
            let texts: Vec<String> = words.collect();
            let [x, y, z] = inv.thread;
            let [width, height, _] = group.launch.block;
            group.printed.push(((z * height + y) * width + x, texts.join(" ")));
            Ok(None)
        }

        Op::StructNew | Op::VecNew => Ok(Some(Val::Many(args))),
        Op::VecSplat => {
            let n = types.lanes(data.ty).unwrap_or(1) as usize;
            Ok(Some(Val::Many(vec![args[0].clone(); n])))
        }
        Op::StructGet => Ok(Some(args[0].member(data.imm_lo() as usize))),
        Op::VecExtract => Ok(Some(args[0].member(data.imm_lo() as usize))),
        Op::LeafGet => Ok(Some(args[0].leaf(types, f.ty(f.arg(i, 0)), data.imm_lo() as usize))),
        Op::VecInsert => {
            let mut v = args[0].clone();
            if let Val::Many(m) = &mut v
                && let Some(slot) = m.get_mut(data.imm_lo() as usize)
            {
                *slot = args[1].clone();
            }
            Ok(Some(v))
        }
        Op::VecDot
        | Op::VecLength
        | Op::VecNormalize
        | Op::VecCross
        | Op::VecReflect
        | Op::VecMix => Ok(Some(vector(types, f, i, &args))),
        Op::VecAny | Op::VecAll => {
            let n = types.lanes(f.ty(f.arg(i, 0))).unwrap_or(1) as usize;
            let mut truths = (0..n).map(|c| args[0].member(c).bits() & 1 == 1);
            let all = data.op == Op::VecAll;
            let truth = if all { truths.all(|t| t) } else { truths.any(|t| t) };
            Ok(Some(Val::Bits(truth as u64)))
        }
        Op::Select => {
            if let Val::Many(_) = args[0] {
                let n = types.lanes(data.ty).unwrap_or(1) as usize;
                let pick = |c| {
                    let from = if args[0].member(c).bits() & 1 == 1 { &args[1] } else { &args[2] };
                    from.member(c)
                };
                return Ok(Some(Val::Many((0..n).map(pick).collect())));
            }
            Ok(Some(args[if args[0].bits() & 1 == 1 { 1 } else { 2 }].clone()))
        }

        op => {
            let from = f.args(i).first().map_or(PrimType::U64, |&v| prim(types, f.ty(v)));
            match componentwise(types, op, from, data.ty, &args) {
                Some(v) => Ok(Some(v)),
                None => Err(fault(group, inv, data.span, &format!("cannot execute {}", op.name()))),
            }
        }
    }
}

/// A pure scalar op, or one on each component of vectors.
fn componentwise(types: &TypeCtx, op: Op, from: PrimType, ty: TypeId, args: &[Val]) -> Option<Val> {
    let to = prim(types, ty);
    let scalar = |args: Vec<u64>| eval(op, from, to, &args).map(Val::Bits);
    match types.kind(ty) {
        TypeKind::Vec(_, n) => (0..n as usize)
            .map(|c| scalar(args.iter().map(|a| a.member(c).bits()).collect()))
            .collect::<Option<Vec<_>>>()
            .map(Val::Many),
        _ => scalar(args.iter().map(Val::bits).collect()),
    }
}

/// Vector operations, each spelled out in scalar steps: that is their definition.
fn vector(types: &TypeCtx, f: &MpirFn, i: Inst, args: &[Val]) -> Val {
    let op = f.inst(i).op;
    let ty = f.ty(f.arg(i, 0));
    let p = prim(types, ty);
    let n = types.lanes(ty).unwrap_or(1) as usize;
    let s = |op, args: &[u64]| eval(op, p, p, args).unwrap_or(0);
    let at = |v: &Val, c: usize| v.member(c).bits();
    let each = |g: &dyn Fn(usize) -> u64| Val::Many((0..n).map(|c| Val::Bits(g(c))).collect());
    let dot = |a: &Val, b: &Val| {
        let products = (0..n).map(|c| s(Op::FMul, &[at(a, c), at(b, c)]));
        products.reduce(|x, y| s(Op::FAdd, &[x, y])).unwrap_or(0)
    };
    let length = |a: &Val| s(Op::FSqrt, &[dot(a, a)]);
    let a = &args[0];
    let b = args.get(1).unwrap_or(a);
    match op {
        Op::VecDot => Val::Bits(dot(a, b)),
        Op::VecLength => Val::Bits(length(a)),
        Op::VecNormalize => {
            let l = length(a);
            each(&|c| s(Op::FDiv, &[at(a, c), l]))
        }
        Op::VecCross => each(&|c| {
            let (j, k) = ((c + 1) % 3, (c + 2) % 3);
            let (x, y) = (s(Op::FMul, &[at(a, j), at(b, k)]), s(Op::FMul, &[at(a, k), at(b, j)]));
            s(Op::FSub, &[x, y])
        }),
        Op::VecReflect => {
            let two = magpie_mpir::eval::float_bits(p, 2.0);
            let d = s(Op::FMul, &[two, dot(b, a)]);
            each(&|c| s(Op::FSub, &[at(a, c), s(Op::FMul, &[d, at(b, c)])]))
        }
        // x * (1 - t) + y * t
        _ => {
            let one = magpie_mpir::eval::float_bits(p, 1.0);
            let t = args.get(2).unwrap_or(a);
            each(&|c| {
                let rest = s(Op::FSub, &[one, at(t, c)]);
                let x = s(Op::FMul, &[at(a, c), rest]);
                let y = s(Op::FMul, &[at(b, c), at(t, c)]);
                s(Op::FAdd, &[x, y])
            })
        }
    }
}

fn array_bytes(types: &TypeCtx, ty: TypeId) -> usize {
    match types.kind(ty) {
        TypeKind::SharedArray(elem, n) | TypeKind::LocalArray(elem, n) => {
            types.stride(elem) as usize * n as usize
        }
        _ => 0,
    }
}

fn element(types: &TypeCtx, ty: TypeId) -> TypeId {
    match types.kind(ty) {
        TypeKind::Buffer(t) | TypeKind::SharedArray(t, _) | TypeKind::LocalArray(t, _) => t,
        _ => ty,
    }
}

fn bytes<'g>(group: &'g mut Group, inv: &'g mut Invocation, array: ArrayRef) -> &'g mut [u8] {
    match array {
        ArrayRef::Buffer(n) => group.buffers.get_mut(n).map_or(&mut [], |b| &mut *b.bytes),
        ArrayRef::Shared(n) => group.shared.get_mut(n).map_or(&mut [], |(_, b)| b),
        ArrayRef::Local(n) => inv.locals.get_mut(n).map_or(&mut [], |b| b),
    }
}

fn array_len(group: &mut Group, inv: &mut Invocation, f: &MpirFn, i: Inst) -> u64 {
    let module = group.module;
    let v = f.arg(i, 0);
    let Val::Array(array) = value(inv, v) else { return 0 };
    let stride = module.types.stride(element(&module.types, f.ty(v))).max(1);
    bytes(group, inv, array).len() as u64 / stride as u64
}

/// Array and byte offset of an access, or `None` when a robust access goes outside.
fn locate(
    group: &mut Group,
    inv: &mut Invocation,
    f: &MpirFn,
    i: Inst,
    args: &[Val],
) -> Result<Option<(ArrayRef, usize)>, Fault> {
    let module = group.module;
    let data = f.inst(i);
    let elem = element(&module.types, f.ty(f.arg(i, 0)));
    let index = int_value(prim(&module.types, f.ty(f.arg(i, 1))), args[1].bits());
    let len = array_len(group, inv, f, i);
    let Val::Array(array) = args[0] else { return Ok(None) };
    if index < 0 || index >= len as i128 {
        if data.flags.contains(Flags::UNCHECKED) {
            let what = format!("accesses element {index} of {len} without a check");
            return Err(fault(group, inv, data.span, &what));
        }
        return Ok(None);
    }
    let leaf = match data.op {
        Op::GpuLeafLoad | Op::GpuLeafStore => {
            module.types.leaves(elem).get(data.imm_lo() as usize).map_or(0, |l| l.offset)
        }
        _ => 0,
    };
    Ok(Some((array, index as usize * module.types.stride(elem) as usize + leaf as usize)))
}

fn atomic(
    group: &mut Group,
    inv: &mut Invocation,
    f: &MpirFn,
    i: Inst,
    args: &[Val],
    op: AtomicOp,
) -> Result<Option<Val>, Fault> {
    let ty = f.inst(i).ty;
    let Some((array, offset)) = locate(group, inv, f, i, args)? else {
        return Ok(Some(Val::Bits(0)));
    };
    let module = group.module;
    let p = prim(&module.types, ty);
    let memory = bytes(group, inv, array);
    let old = memory::load(memory, &module.types, ty, offset);
    let replacement = args.get(3).map_or(0, Val::bits);
    let new = op.apply(p, old.bits(), args[2].bits(), replacement);
    memory::store(memory, &module.types, ty, offset, &Val::Bits(new));
    Ok(Some(old))
}

/// Executes a subgroup operation for the invocations that meet at it.
pub(crate) fn subgroup(group: &mut Group, lanes: &mut [Invocation], members: &[usize]) {
    let module = group.module;
    let Some((f, i)) = members.first().and_then(|&n| current(module, &lanes[n])) else { return };
    let data = f.inst(i);
    let Some(op) = SubgroupOp::of(data.op) else { return };
    let p = f.args(i).first().map_or(PrimType::U32, |&v| prim(&module.types, f.ty(v)));
    let operand = |n: usize, a: usize| f.args(i).get(a).map_or(0, |&v| value(&lanes[n], v).bits());
    let mut operands = vec![None; lanes.len()];
    for &n in members {
        operands[n] = Some([operand(n, 0), operand(n, 1)]);
    }
    let mut results = vec![0; lanes.len()];
    op.apply(p, &operands, &mut results);
    for &n in members {
        if let Some(top) = lanes[n].stack.last_mut() {
            top.next += 1;
            if let Some(v) = data.result() {
                top.values[v.index()] = Some(Val::Bits(results[n]));
            }
        }
    }
}
