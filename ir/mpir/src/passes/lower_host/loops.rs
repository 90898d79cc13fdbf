//! Operations that call a callable for each element of an array.

use super::FnLowering;
use crate::{Inst, Op, Value};
use magpie_types::{TypeId, fixed};

impl FnLowering<'_, '_, '_> {
    /// Runs `body` with the address of each element, in order. The callable may not change the
    /// array, but the length is read anew anyway, so no access leaves it.
    fn for_each_element(
        &mut self,
        array: Value,
        element: TypeId,
        body: impl FnOnce(&mut Self, Value),
    ) {
        let index = self.b.declare(fixed::I64);
        let zero = self.i64(0);
        self.b.write(index, zero);
        let (head, inside) = (self.b.create_block(), self.b.create_block());
        let done = self.b.create_block();
        self.b.br(head);
        self.b.switch_to(head);
        let at = self.b.read(index);
        let len = self.array_len(array);
        let more = self.b.compare(Op::IcmpSlt, at, len);
        self.b.cbr(more, inside, done);
        self.b.seal(inside);
        self.b.switch_to(inside);
        let address = self.element_address(array, element, at);
        body(self, address);
        let one = self.i64(1);
        let next = self.b.same(Op::IAdd, &[at, one]);
        self.b.write(index, next);
        self.b.br(head);
        self.b.seal(head);
        self.b.seal(done);
        self.b.switch_to(done);
    }

    pub(super) fn arr_map(&mut self, i: Inst) -> Vec<Value> {
        let (v, callable) = (self.old.arg(i, 0), self.old.arg(i, 1));
        let element = self.element_type(v);
        let (array, callee) = (self.one(v), self.callee(callable));
        let (param, ret) = (callee.params[0], callee.ret);
        let len = self.array_len(array);
        let results = self.new_array(ret, len);
        self.for_each_element(array, element, |f, address| {
            let argument = f.show(element, param, address, 0);
            let result = f.call_callee(&callee, &argument);
            f.push(results, ret, &result);
        });
        vec![results]
    }

    pub(super) fn arr_filter(&mut self, i: Inst) -> Vec<Value> {
        let (v, callable) = (self.old.arg(i, 0), self.old.arg(i, 1));
        let element = self.element_type(v);
        let (array, callee) = (self.one(v), self.callee(callable));
        let zero = self.i64(0);
        let kept = self.new_array(element, zero);
        self.for_each_element(array, element, |f, address| {
            let argument = f.show(element, callee.params[0], address, 0);
            let keep = f.call_callee(&callee, &argument)[0];
            let (copy, next) = (f.b.create_block(), f.b.create_block());
            f.b.cbr(keep, copy, next);
            f.b.seal(copy);
            f.b.switch_to(copy);
            let leaves = f.load(element, address, 0);
            f.retain(element, &leaves);
            f.push(kept, element, &leaves);
            f.b.br(next);
            f.b.seal(next);
            f.b.switch_to(next);
        });
        vec![kept]
    }

    pub(super) fn arr_reduce(&mut self, i: Inst) -> Vec<Value> {
        let &[v, init, callable] = self.old.args(i) else { unreachable!("it has 3 operands") };
        let element = self.element_type(v);
        let (array, callee) = (self.one(v), self.callee(callable));
        let init = self.get(init);
        let so_far = self.variables(&init);
        self.for_each_element(array, element, |f, address| {
            let mut arguments: Vec<Value> = so_far.iter().map(|&var| f.b.read(var)).collect();
            arguments.extend(f.show(element, callee.params[1], address, 0));
            let result = f.call_callee(&callee, &arguments);
            so_far.iter().zip(result).for_each(|(&var, leaf)| f.b.write(var, leaf));
        });
        so_far.iter().map(|&var| self.b.read(var)).collect()
    }

    pub(super) fn arr_foreach(&mut self, i: Inst) -> Vec<Value> {
        let (v, callable) = (self.old.arg(i, 0), self.old.arg(i, 1));
        let element = self.element_type(v);
        let (array, callee) = (self.one(v), self.callee(callable));
        self.for_each_element(array, element, |f, address| {
            let argument = f.show(element, callee.params[0], address, 0);
            f.call_callee(&callee, &argument);
        });
        Vec::new()
    }
}
