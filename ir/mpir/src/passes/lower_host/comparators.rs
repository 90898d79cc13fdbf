//! Functions of the program that the runtime calls to hash, compare and order elements.

use super::convention::give_back;
use super::{FnLowering, Lowering};
use crate::{Builder, FnId, Op, Value};
use magpie_diag::Span;
use magpie_types::{TypeId, fixed};

/// A function and the type of the elements it gets.
pub(super) type ThunkKey = (FnId, TypeId);

impl FnLowering<'_, '_, '_> {
    /// The argument that names a comparison: the address of a function of the module (its id plus
    /// one), or for 0 the built-in one of the element type.
    pub(super) fn comparator(&mut self, slot: u32, element: TypeId) -> Value {
        let Some(id) = slot.checked_sub(1) else {
            return self.i64(element.0 as i64);
        };
        let thunk = self.l.comparator_thunk((FnId(id), element));
        let address = self.b.value(Op::FnAddr, self.l.address, &[], thunk.0 as u64);
        self.b.value(Op::BitsCast, fixed::I64, &[address], 0)
    }
}

impl Lowering<'_> {
    /// A function that takes the addresses of elements and calls one that takes the elements or
    /// views of them.
    fn comparator_thunk(&mut self, key: ThunkKey) -> FnId {
        if let Some(&id) = self.comparator_thunks.get(&key) {
            return id;
        }
        let (callee, element) = key;
        let convention = self.conventions[callee.index()].clone();
        let params = &convention.params;
        let mut f = self.new_thunk(callee, "elements", self.comparator_thunks.len());
        self.set_result(&mut f, convention.ret);
        let name = |n: usize| format!("p{n}");
        let addresses: Vec<Value> =
            (0..params.len()).map(|n| f.add_param(name(n), self.address, Span::NONE)).collect();
        let mut b = Builder::new(&mut f);
        let mut args = Vec::new();
        for (&param, address) in params.iter().zip(addresses) {
            if param != element && !self.types().is_heap(element) {
                args.push(vec![address]);
            } else {
                args.push(self.load(&mut b, element, address, 0));
            }
        }
        let result = self.call_by_name(&mut b, callee, &args, None);
        give_back(&mut b, &result);
        b.finish();
        let id = self.m.add_fn(f);
        self.comparator_thunks.insert(key, id);
        id
    }
}
