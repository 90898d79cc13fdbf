//! Functions that a closed kernel still calls, the recursive ones, travel with it.

use crate::{FnId, Module, MpirFn, Op};

/// Sets [`MpirFn::callees`] of a kernel.
pub fn carry_callees(module: &mut Module, kernel: FnId) {
    module.fns[kernel.index()].callees = callees_of(module, kernel);
}

/// Copies of the functions that a kernel reaches by calls, in the order in which they are met.
pub fn callees_of(module: &Module, kernel: FnId) -> Vec<(FnId, MpirFn)> {
    let reached = reached_by_calls(module, kernel);
    reached.into_iter().map(|id| (id, module.func(id).clone())).collect()
}

/// The functions that a function reaches by calls, itself only when it is one of them.
pub fn reached_by_calls(module: &Module, from: FnId) -> Vec<FnId> {
    let mut is_known = vec![false; module.fns.len()];
    let mut reached: Vec<FnId> = Vec::new();
    let mut next = Some(from);
    let mut done = 0;
    while let Some(id) = next {
        for callee in calls(module.func(id)) {
            if callee.index() < is_known.len()
                && !std::mem::replace(&mut is_known[callee.index()], true)
            {
                reached.push(callee);
            }
        }
        next = reached.get(done).copied();
        done += 1;
    }
    reached
}

/// What a function calls, once a call.
fn calls(f: &MpirFn) -> impl Iterator<Item = FnId> {
    let insts = f.blocks.iter().flat_map(|b| &b.insts).map(|&i| f.inst(i));
    insts.filter(|inst| inst.op == Op::Call).map(|inst| inst.func())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use magpie_diag::FileId;

    #[test]
    fn a_kernel_carries_what_it_reaches() {
        let text = "device fn m.@a(%n: u32) -> u32 {
bb0:
  %r: u32 = call fn=m.@b %n
  ret %r
}
device fn m.@b(%n: u32) -> u32 {
bb0:
  %r: u32 = call fn=m.@a %n
  ret %r
}
device fn m.@c(%n: u32) -> u32 {
bb0:
  ret %n
}
gpu fn m.@k(%n: u32) -> unit workgroup(64, 1, 1) {
bb0:
  %r: u32 = call fn=m.@b %n
  ret
}
";
        let mut m = parse(text, FileId(0)).unwrap();
        let kernel = FnId(3);
        assert_eq!(reached_by_calls(&m, kernel), [FnId(1), FnId(0)]);
        assert_eq!(reached_by_calls(&m, FnId(0)), [FnId(1), FnId(0)]);
        assert_eq!(reached_by_calls(&m, FnId(2)), []);
        carry_callees(&mut m, kernel);
        let names: Vec<&str> = m.func(kernel).callees.iter().map(|c| c.1.name.as_str()).collect();
        assert_eq!(names, ["m.@b", "m.@a"]);
    }
}
