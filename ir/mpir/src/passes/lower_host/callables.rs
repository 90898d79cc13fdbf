//! Callables: objects with a code address and captured values, and the thunks behind them.

use super::convention::give_back;
use super::counts::Counted;
use super::{FnLowering, Lowering};
use crate::{Builder, FnId, Inst, Op, Value};
use magpie_diag::Span;
use magpie_types::abi::RtFn;
use magpie_types::abi::object_layout::{CALLABLE_CODE, HEADER_SIZE};
use magpie_types::{Category, Field, Leaf, TypeId, TypeKind, fixed};

/// A function, its bound parameters as bits, and the types of the values bound to them.
pub(super) type ThunkKey = (FnId, u32, Vec<TypeId>);

/// A callable that is about to be called.
pub(super) struct Callee {
    code: Value,
    payload: Value,
    pub(super) params: Vec<TypeId>,
    pub(super) ret: TypeId,
}

impl FnLowering<'_, '_, '_> {
    /// Loads what is needed to call a callable.
    pub(super) fn callee(&mut self, callable: Value) -> Callee {
        let ty = self.ty(callable);
        let types = self.l.types();
        let TypeKind::Callable(sig) = types.kind(self.view_target(ty).unwrap_or(ty)) else {
            unreachable!("the verifier asks for a callable");
        };
        let sig = types.sig_def(sig);
        let (params, ret) = (sig.params.clone(), sig.ret);
        let object = self.one(callable);
        let code = self.load_low(self.l.address, object, CALLABLE_CODE);
        let payload = self.offset(object, HEADER_SIZE);
        Callee { code, payload, params, ret }
    }

    /// Calls a callable with the leaves of its arguments.
    pub(super) fn call_callee(&mut self, callee: &Callee, args: &[Value]) -> Vec<Value> {
        let args = [&[callee.payload], args].concat();
        self.call_by_address(callee.code, &args, callee.ret)
    }

    pub(super) fn call_indirect(&mut self, i: Inst) -> Vec<Value> {
        let old = self.old;
        let callee = self.callee(old.arg(i, 0));
        let pairs = old.args(i)[1..].iter().zip(&callee.params);
        let args: Vec<Value> = pairs.flat_map(|(&v, &param)| self.pass(v, param)).collect();
        self.call_callee(&callee, &args)
    }

    pub(super) fn callable_capture(&mut self, i: Inst) -> Vec<Value> {
        let old = self.old;
        let data = old.inst(i);
        let captures: Vec<TypeId> = old.args(i).iter().map(|&v| self.ty(v)).collect();
        let thunk = self.l.callable_thunk((data.func(), data.imm_hi(), captures.clone()));
        let described = self.l.capture_type(&captures);
        let info = self.type_info(described, 2);
        let code = self.b.value(Op::FnAddr, self.l.address, &[], thunk.0 as u64);
        let object = self.rt_value(RtFn::CallableNew, self.l.address, &[info, code]);
        let offsets = self.l.types().callable_layout(&captures).fields.remove(0);
        for (&v, offset) in old.args(i).iter().zip(offsets) {
            let leaves = self.get(v);
            self.store(self.ty(v), object, HEADER_SIZE + offset, &leaves);
        }
        vec![object]
    }
}

impl Lowering<'_> {
    /// The struct that tells the runtime what a callable captures.
    fn capture_type(&mut self, captures: &[TypeId]) -> TypeId {
        if let Some(&ty) = self.capture_types.get(captures) {
            return ty;
        }
        let names: Vec<String> = captures.iter().map(|&ty| self.types().name(ty)).collect();
        let name = format!("captures<{}>", names.join(", "));
        let ty = self.m.types.declare_struct(name, Category::Heap);
        let fields = captures.iter().enumerate();
        let fields = fields.map(|(n, &ty)| Field { name: format!("c{n}"), ty }).collect();
        if let TypeKind::Struct(id) = self.m.types.kind(ty) {
            self.m.types.define_struct(id, fields);
        }
        self.capture_types.insert(captures.to_vec(), ty);
        ty
    }

    /// The function `(result address,) payload address, leaves of the parameters left` that calls
    /// a function with its captured values put in. A captured value stays the callable's: the
    /// callee gets a view of it, or another count.
    fn callable_thunk(&mut self, key: ThunkKey) -> FnId {
        if let Some(&id) = self.callable_thunks.get(&key) {
            return id;
        }
        let (callee, bound, captures) = &key;
        let convention = self.conventions[callee.index()].clone();
        let params = &convention.params;
        let mut f = self.new_thunk(*callee, "callable", self.callable_thunks.len());
        let result_address = self.set_result(&mut f, convention.ret);
        let payload = f.add_param("payload", self.address, Span::NONE);
        let is_bound = |n: usize| n < 32 && bound >> n & 1 == 1;
        let mut left = Vec::new();
        for (n, &param) in params.iter().enumerate() {
            if !is_bound(n) {
                left.push(self.add_params(&mut f, &format!("p{n}"), param, Span::NONE));
            }
        }
        let offsets = self.types().callable_layout(captures).fields.remove(0);
        let mut captured = captures.iter().zip(offsets);
        let mut left = left.into_iter();
        let mut args: Vec<Vec<Value>> = Vec::new();
        let mut b = Builder::new(&mut f);
        for (n, &param) in params.iter().enumerate() {
            if is_bound(n) {
                let Some((&ty, offset)) = captured.next() else { continue };
                args.push(self.captured_argument(&mut b, payload, offset, ty, param));
            } else {
                args.push(left.next().unwrap_or_default());
            }
        }
        let result = self.call_by_name(&mut b, *callee, &args, result_address);
        give_back(&mut b, &result);
        b.finish();
        let id = self.m.add_fn(f);
        self.callable_thunks.insert(key, id);
        id
    }

    fn captured_argument(
        &mut self,
        b: &mut Builder<'_>,
        payload: Value,
        offset: u32,
        ty: TypeId,
        param: TypeId,
    ) -> Vec<Value> {
        if ty != param && !self.types().is_heap(ty) && !self.is_handle(ty) {
            let bytes = b.const_bits(fixed::I64, offset as u64);
            return vec![b.value(Op::PtrAdd, self.address, &[payload, bytes], 0)];
        }
        let leaves = self.leaves(ty);
        let load = |leaf: &Leaf| {
            let at = (offset + leaf.offset) as u64;
            let v = b.value(Op::MemLoad, self.low(leaf.ty), &[payload], at);
            let rt = match self.counted(leaf.ty).filter(|_| ty == param) {
                Some(Counted::Strong) => RtFn::Retain,
                Some(Counted::Weak) => RtFn::WeakRetain,
                None => return v,
            };
            b.effect(Op::RtRaw, &[v], rt as u64);
            v
        };
        leaves.iter().map(load).collect()
    }

    fn is_handle(&self, ty: TypeId) -> bool {
        matches!(self.types().kind(ty), TypeKind::Ref(..))
    }
}
