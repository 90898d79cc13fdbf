//! Instructions.

use super::Translator;
use super::counts::counts_up;
use super::signature::{machine_prim, machine_type, signature_by_address};
use crate::pure::{Calls, Pure, constant};
use crate::terminators::Terminators;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, BlockArg, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, TrapCode, types,
};
use cranelift_module::Module as _;
use magpie_diag::Span;
use magpie_mpir::{FnId, Inst, Op};
use magpie_types::abi::{PanicKind, RtFn};
use magpie_types::{PrimType, TypeId};

impl Translator<'_, '_, '_> {
    pub(super) fn inst(&mut self, i: Inst) -> Option<ir::Value> {
        let f = self.f;
        let data = f.inst(i);
        let trusted = MemFlagsData::trusted();
        match data.op {
            Op::MemLoad => {
                let address = self.value(f.arg(i, 0));
                let ty = machine_type(&self.module.types, data.ty);
                Some(self.b.ins().load(ty, trusted, address, data.imm as i64 as i32))
            }
            Op::MemStore => {
                let args = self.args(i);
                self.b.ins().store(trusted, args[1], args[0], data.imm as i64 as i32);
                None
            }
            Op::PtrAdd => {
                let args = self.args(i);
                Some(self.b.ins().iadd(args[0], args[1]))
            }
            Op::StackSlot => {
                let align = data.imm_hi().max(1).next_power_of_two().trailing_zeros() as u8;
                let slot = self.b.create_sized_stack_slot(StackSlotData::new(
                    StackSlotKind::ExplicitSlot,
                    data.imm_lo(),
                    align,
                ));
                Some(self.b.ins().stack_addr(types::I64, slot, 0))
            }
            Op::FnAddr => {
                let r = self.fn_ref(data.func())?;
                Some(self.b.ins().func_addr(types::I64, r))
            }
            Op::TypeInfoAddr => {
                let address = self.code.runtime.type_info(TypeId(data.imm_lo()), data.imm_hi());
                Some(self.b.ins().iconst(types::I64, address as i64))
            }
            Op::RtRaw if self.counts_in_place() && counts_up(data.rt()) => {
                let object = self.value(f.arg(i, 0));
                self.retain(object);
                data.result().map(|_| object)
            }
            Op::RtRaw if self.counts_in_place() && data.rt() == RtFn::Release => {
                let object = self.value(f.arg(i, 0));
                self.release(object);
                None
            }
            Op::RtRaw if data.rt() == RtFn::ArrGrow => {
                let args = self.args(i);
                let r = self.code.detour(self.b.func, data.rt());
                self.b.ins().call(r, &args);
                None
            }
            Op::RtRaw => {
                let mut args = self.args(i);
                // The registers of a call that is made once should not decide where the numbers
                // that it shows are kept in a loop.
                if data.rt() == RtFn::PanicBuiltin {
                    let shown = self.through_memory(&args[2..]);
                    args.truncate(2);
                    args.extend(shown);
                }
                let r = self.code.rt(self.b.func, data.rt());
                let call = self.b.ins().call(r, &args);
                self.b.inst_results(call).first().copied()
            }
            Op::Call => {
                let args = self.args(i);
                let r = self.fn_ref(data.func())?;
                let call = self.b.ins().call(r, &args);
                self.results(i, call)
            }
            Op::CallAddr => {
                let args = self.args(i);
                let params = f.args(i)[1..].iter().map(|&v| f.ty(v));
                let sig = signature_by_address(self.code, &self.module.types, params, data.ty);
                let sig = self.b.import_signature(sig);
                let call = self.b.ins().call_indirect(sig, args[0], &args[1..]);
                self.results(i, call)
            }
            Op::StructNew => {
                let values = self.args(i);
                self.groups.insert(data.result()?, values);
                None
            }
            Op::StructGet => {
                let values = self.groups.get(&f.arg(i, 0))?;
                values.get(data.imm_lo() as usize).copied()
            }
            Op::IAddTrap | Op::ISubTrap | Op::IMulTrap => {
                let args = self.args(i);
                let p = self.prim(f.arg(i, 0));
                let (value, outside) = Pure { b: &mut self.b, calls: self.code }
                    .overflow(data.op, p, args[0], args[1]);
                self.panic_if(outside, PanicKind::Overflow, data.span);
                Some(value)
            }
            Op::ISdivTrap | Op::IUdivTrap | Op::ISremTrap | Op::IUremTrap => {
                Some(self.checked_division(i))
            }
            Op::ISdiv | Op::IUdiv | Op::ISrem | Op::IUrem => {
                let args = self.args(i);
                Some(self.division(data.op, self.prim(f.arg(i, 0)), &args))
            }
            op => {
                let args = self.args(i);
                // `select` has its condition first.
                let first = f.args(i).get((op == Op::Select) as usize);
                let from = first.map_or(PrimType::U64, |&v| self.prim(v));
                let to = machine_prim(&self.module.types, data.ty);
                Pure { b: &mut self.b, calls: self.code }.emit(op, from, to, &args)
            }
        }
    }

    /// What a call gives back: the value, if it is one.
    fn results(&mut self, i: Inst, call: ir::Inst) -> Option<ir::Value> {
        let results = self.b.inst_results(call);
        match (self.f.inst(i).result(), results) {
            (Some(v), [_, _, ..]) => {
                self.groups.insert(v, results.to_vec());
                None
            }
            _ => results.first().copied(),
        }
    }

    fn fn_ref(&mut self, f: FnId) -> Option<ir::FuncRef> {
        let id = self.ids[f.index()]?;
        Some(self.code.jit.declare_func_in_func(id, self.b.func))
    }

    fn checked_division(&mut self, i: Inst) -> ir::Value {
        let data = self.f.inst(i);
        let args = self.args(i);
        let p = self.prim(self.f.arg(i, 0));
        let zero = self.b.ins().icmp_imm_s(IntCC::Equal, args[1], 0);
        self.panic_if(zero, PanicKind::DivisionByZero, data.span);
        let total = match data.op {
            Op::ISdivTrap => {
                let min = constant(&mut self.b, p, 1 << (p.bit_width() - 1));
                let is_min = self.b.ins().icmp(IntCC::Equal, args[0], min);
                let minus = self.b.ins().icmp_imm_s(IntCC::Equal, args[1], -1);
                let outside = self.b.ins().band(is_min, minus);
                self.panic_if(outside, PanicKind::Overflow, data.span);
                Op::ISdiv
            }
            Op::ISremTrap => Op::ISrem,
            Op::IUdivTrap => Op::IUdiv,
            _ => Op::IUrem,
        };
        self.division(total, p, &args)
    }

    /// A division that gives a result for all operands. Processors take much longer for numbers of
    /// 64 bits, and most numbers are small: those are divided as what they are.
    fn division(&mut self, op: Op, p: PrimType, args: &[ir::Value]) -> ir::Value {
        let &[x, y] = args else { return args[0] };
        let pure = |t: &mut Self, p, args: &[ir::Value]| {
            Pure { b: &mut t.b, calls: t.code }.emit(op, p, p, args).unwrap_or(args[0])
        };
        let is_constant = |v| {
            self.b
                .func
                .dfg
                .value_def(v)
                .inst()
                .is_some_and(|i| self.b.func.dfg.insts[i].opcode() == ir::Opcode::Iconst)
        };
        if p.bit_width() != 64 || is_constant(y) {
            return pure(self, p, args);
        }
        let unsigned = match op {
            Op::ISdiv | Op::IUdiv => Op::IUdiv,
            _ => Op::IUrem,
        };
        let (small, large) = (self.b.create_block(), self.b.create_block());
        let done = self.b.create_block();
        let result = self.b.append_block_param(done, types::I64);
        let both = self.b.ins().bor(x, y);
        let high = self.b.ins().ushr_imm_u(both, 32);
        self.b.ins().brif(high, large, &[], small, &[]);
        self.b.switch_to_block(small);
        let (a, d) = (self.b.ins().ireduce(types::I32, x), self.b.ins().ireduce(types::I32, y));
        let calls = &mut *self.code;
        let v =
            Pure { b: &mut self.b, calls }.emit(unsigned, PrimType::U32, PrimType::U32, &[a, d]);
        let v = v.unwrap_or(a);
        let v = self.b.ins().uextend(types::I64, v);
        self.b.ins().jump(done, &[BlockArg::Value(v)]);
        self.b.switch_to_block(large);
        let v = pure(self, p, args);
        self.b.ins().jump(done, &[BlockArg::Value(v)]);
        self.b.switch_to_block(done);
        result
    }

    /// Goes on when `condition` is false; else panics in a block off the hot path.
    fn panic_if(&mut self, condition: ir::Value, kind: PanicKind, span: Span) {
        let (cold, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(cold);
        self.b.ins().brif(condition, cold, &[], next, &[]);
        self.b.switch_to_block(cold);
        let place = match self.code.runtime.describe(span) {
            Some(text) => self.code.runtime.c_string(&text),
            None => std::ptr::null(),
        };
        let kind = self.b.ins().iconst(types::I32, kind as i64);
        let place = self.b.ins().iconst(types::I64, place as i64);
        let none = self.b.ins().iconst(types::I64, 0);
        let r = self.code.rt(self.b.func, RtFn::PanicBuiltin);
        self.b.ins().call(r, &[kind, place, none, none]);
        self.b.ins().trap(TrapCode::unwrap_user(1));
        self.b.switch_to_block(next);
    }
}
