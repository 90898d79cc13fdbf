//! Calls of functions of the module and of the runtime.

use super::FnLowering;
use crate::{Inst, Op, Value, ownership};
use magpie_types::abi::object_layout::INFO_TYPE_ID;
use magpie_types::abi::{AbiReturn, RtFn};
use magpie_types::{TypeId, TypeKind, fixed};

impl FnLowering<'_, '_, '_> {
    pub(super) fn call(&mut self, i: Inst) -> Vec<Value> {
        let old = self.old;
        let callee = old.inst(i).func();
        let convention = self.l.conventions[callee.index()].clone();
        let pairs = old.args(i).iter().zip(&convention.params);
        let args: Vec<Vec<Value>> = pairs.map(|(&v, &param)| self.pass(v, param)).collect();
        if self.l.is_stored(convention.ret) {
            let slot = self.result_slot(convention.ret);
            self.l.call_by_name(&mut self.b, callee, &args, Some(slot));
            return self.load(convention.ret, slot, 0);
        }
        self.l.call_by_name(&mut self.b, callee, &args, None)
    }

    // ----- runtime functions -----

    pub(super) fn rt_call(&mut self, i: Inst) -> Vec<Value> {
        let old = self.old;
        let data = old.inst(i);
        let rt = data.rt();
        if self.moves.contains_key(&i) {
            return self.get(old.arg(i, 0)).to_vec();
        }
        let mut operands = old.args(i).iter();
        let args: Vec<Value> = rt
            .params()
            .iter()
            .map(|&(name, _)| match ownership::is_derived_param(name) {
                true => self.derived_argument(name, data.ty),
                false => {
                    let &operand = operands.next().expect("the verifier counted the operands");
                    self.one(operand)
                }
            })
            .collect();
        if rt == RtFn::HandleUnique && self.is_address(data.ty) {
            return vec![self.unique(args[0], self.is_object(old.arg(i, 0)))];
        }
        if rt == RtFn::HandleClone && self.literal(args[0]).is_some() {
            return args;
        }
        if rt == RtFn::HandleClone && self.is_counted_object(old.arg(i, 0), data.ty) {
            self.count_once_more(args[0]);
            return args;
        }
        if let Some(leaves) = self.text_in_place(i, rt, &args) {
            return leaves;
        }
        self.rt_result(rt, &args, data.ty)
    }

    /// What the runtime wants to know of the elements of a result.
    fn derived_argument(&mut self, name: &str, result: TypeId) -> Value {
        let types = self.l.types();
        let object = match types.kind(result) {
            TypeKind::Result(ok, _) => ok,
            _ => result,
        };
        let (TypeKind::Array(element) | TypeKind::Buffer(element)) = types.kind(object) else {
            unreachable!("the verifier asks for an array or a buffer");
        };
        if name == "elem_size" {
            let stride = types.stride(element);
            return self.b.const_bits(fixed::U32, stride as u64);
        }
        let info = self.type_info(element, 0);
        match name {
            "elem_type_id" => self.load_low(fixed::U32, info, INFO_TYPE_ID),
            _ => info,
        }
    }

    /// Calls a runtime function whose result is a value of type `result` of the program. Out
    /// storage is zero before, so payloads that do not come are.
    pub(super) fn rt_result(&mut self, rt: RtFn, args: &[Value], result: TypeId) -> Vec<Value> {
        match (rt.ret(), self.l.types().kind(result)) {
            (AbiReturn::Void | AbiReturn::Never, _) => {
                self.rt(rt, args);
                Vec::new()
            }
            (AbiReturn::Value(_), _) => {
                let low = self.l.low(result);
                vec![self.rt_value(rt, low, args)]
            }
            (AbiReturn::Maybe(_), TypeKind::Option(payload)) => {
                let out = self.zeroed(payload);
                let there = self.rt_value(rt, fixed::BOOL, &[args, &[out]].concat());
                let tag = self.b.cast(there, fixed::I32);
                let mut leaves = vec![tag];
                leaves.extend(self.load(payload, out, 0));
                leaves
            }
            (AbiReturn::Status, TypeKind::Result(_, error)) => {
                let out_err = self.zeroed(error);
                let status = self.rt_value(rt, fixed::I32, &[args, &[out_err]].concat());
                let mut leaves = vec![self.result_tag(status)];
                leaves.extend(self.load(error, out_err, 0));
                leaves
            }
            (AbiReturn::StatusOut(_), TypeKind::Result(ok, error)) => {
                let (out, out_err) = (self.zeroed(ok), self.zeroed(error));
                let status = self.rt_value(rt, fixed::I32, &[args, &[out, out_err]].concat());
                let mut leaves = vec![self.result_tag(status)];
                leaves.extend(self.load(ok, out, 0));
                leaves.extend(self.load(error, out_err, 0));
                leaves
            }
            (AbiReturn::StatusOut(_), TypeKind::Array(element)) => {
                self.array_or_empty(rt, args, result, element)
            }
            (AbiReturn::Maybe(_) | AbiReturn::Status | AbiReturn::StatusOut(_), kind) => {
                unreachable!("the verifier refuses {kind:?} for {rt:?}")
            }
        }
    }

    /// `Ok` is 0, `Err` is 1; a status is 0 or -1.
    fn result_tag(&mut self, status: Value) -> Value {
        let zero = self.i32(0);
        let failed = self.b.compare(Op::IcmpNe, status, zero);
        self.b.cast(failed, fixed::I32)
    }

    /// Where the language has no error, a failure gives an empty array.
    fn array_or_empty(
        &mut self,
        rt: RtFn,
        args: &[Value],
        array: TypeId,
        element: TypeId,
    ) -> Vec<Value> {
        // All handles are one address, so the storage of either serves for both.
        let (out, out_err) = (self.zeroed(array), self.zeroed(array));
        let status = self.rt_value(rt, fixed::I32, &[args, &[out, out_err]].concat());
        let zero = self.i32(0);
        let failed = self.b.compare(Op::IcmpNe, status, zero);
        let result = self.b.declare(self.l.address);
        let found = self.load_low(self.l.address, out, 0);
        self.b.write(result, found);
        let (empty, done) = (self.b.create_block(), self.b.create_block());
        self.b.cbr(failed, empty, done);
        self.b.seal(empty);
        self.b.switch_to(empty);
        let error = self.load_low(self.l.address, out_err, 0);
        self.rt(RtFn::Release, &[error]);
        let none = self.i64(0);
        let made = self.new_array(element, none);
        self.b.write(result, made);
        self.b.br(done);
        self.b.seal(done);
        self.b.switch_to(done);
        vec![self.b.read(result)]
    }
}
