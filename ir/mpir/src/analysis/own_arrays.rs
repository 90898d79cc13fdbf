//! [`OwnArrays`]: arrays and structs of a lowered host function that nobody else can reach.
//!
//! A list that a function makes and keeps in a variable is an array whose handle goes from the runtime
//! function that made it through phis, and through `mp_rt_handle_unique`, to the operations on it. As long
//! as the handle is not stored, copied or given away, what is done by other handles and addresses is done
//! to other memory: a list that grows in a loop does not change where the elements of another one are.
//! The same goes for the fields of a struct, which is an array without elements here.

use crate::{Inst, MpirFn, Op, Value, ValueDef};
use magpie_types::abi::RtFn;
use magpie_types::abi::object_layout::ARR_DATA;

/// Arrays that are told apart, at most.
pub(super) const MAX_OWN_ARRAYS: usize = 15;

const NONE: u32 = u32::MAX;

/// Which values are handles of which array. Arrays whose handles meet in a phi count as one.
#[derive(Clone, Default, Debug)]
pub(super) struct OwnArrays {
    /// By value: the next value of its set, towards the one that stands for it.
    toward: Vec<u32>,
    /// By value that stands for a set: its number.
    number: Vec<u32>,
    /// By value that stands for a set: whether others may reach an array of it.
    is_shared: Vec<bool>,
    /// By number: whether addresses of elements are used for more than accesses.
    shows_elements: Vec<bool>,
    /// By number: whether it is an array indeed.
    has_elements: Vec<bool>,
}

impl OwnArrays {
    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.shows_elements.clear();
        self.has_elements.clear();
    }

    /// Finds the arrays of a function, reusing memory.
    pub(super) fn compute(&mut self, f: &MpirFn) {
        self.clear();
        self.toward.clear();
        let insts = || f.blocks.iter().flat_map(|b| &b.insts).copied();
        if !insts().any(|i| makes_object(f, i)) {
            return;
        }
        let count = f.locals.len();
        self.toward.extend(0..count as u32);
        self.number.clear();
        self.number.resize(count, NONE);
        self.is_shared.clear();
        self.is_shared.resize(count, false);
        for i in insts() {
            if let (Some(v), true) = (f.inst(i).result(), passes_on(f, i)) {
                let from = f.args(i).iter().filter(|&&from| f.as_const(from).is_none());
                from.for_each(|&from| self.join(v, from));
            }
        }
        // Whoever stands for a set comes first in it.
        for v in 0..count {
            self.toward[v] = self.toward[self.toward[v] as usize];
        }
        for i in insts() {
            let is_object = makes_object(f, i) || passes_on(f, i);
            if let Some(v) = f.inst(i).result().filter(|_| !is_object) {
                self.share(v);
            }
            for (n, &v) in f.args(i).iter().enumerate() {
                if !keeps_to_itself(f, i, n) {
                    self.share(v);
                }
            }
        }
        f.params.iter().for_each(|&(v, _)| self.share(v));
        // Arrays come first, when there are too many.
        let (structs, arrays): (Vec<Inst>, Vec<Inst>) =
            insts().filter(|&i| makes_object(f, i)).partition(|&i| makes_struct(f, i));
        for &i in arrays.iter().chain(&structs) {
            let Some(v) = f.inst(i).result() else { continue };
            let set = self.set_of(v);
            if !self.is_shared[set] && self.number[set] == NONE && self.count() < MAX_OWN_ARRAYS {
                self.number[set] = self.count() as u32;
                self.shows_elements.push(false);
                self.has_elements.push(!makes_struct(f, i));
            }
        }
        for i in insts() {
            for (n, &v) in f.args(i).iter().enumerate() {
                let is_access = matches!(f.inst(i).op, Op::PtrAdd | Op::MemLoad | Op::MemStore);
                if let (Some(array), false) = (self.with_elements_at(f, v), is_access && n == 0) {
                    self.shows_elements[array] = true;
                }
            }
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.shows_elements.len()
    }

    /// The array that a value is a handle of.
    pub(super) fn of_handle(&self, v: Value) -> Option<usize> {
        if self.count() == 0 || v.index() >= self.toward.len() {
            return None;
        }
        match self.number[self.set_of(v)] {
            NONE => None,
            n => Some(n as usize),
        }
    }

    /// The array whose elements an address leads to, if all of that array's are known.
    pub(super) fn of_element(&self, f: &MpirFn, address: Value) -> Option<usize> {
        let array = self.with_elements_at(f, address)?;
        (!self.shows_elements[array]).then_some(array)
    }

    /// The array from which the address of an element comes.
    fn with_elements_at(&self, f: &MpirFn, mut address: Value) -> Option<usize> {
        if self.count() == 0 {
            return None;
        }
        while let ValueDef::Inst(i) = f.def(address) {
            let inst = f.inst(i);
            match inst.op {
                Op::PtrAdd => address = f.arg(i, 0),
                Op::MemLoad if inst.imm == u64::from(ARR_DATA) => {
                    return self.of_handle(f.arg(i, 0)).filter(|&n| self.has_elements[n]);
                }
                _ => return None,
            }
        }
        None
    }

    /// The array that a runtime function gets, if that is all that it changes.
    pub(super) fn is_all_that_changes(&self, f: &MpirFn, i: Inst) -> Option<usize> {
        let grows = || matches!(f.inst(i).rt(), RtFn::ArrPush | RtFn::ArrGrow);
        let is_growth = f.inst(i).op == Op::RtRaw && grows();
        let array = self.of_handle(*f.args(i).first().filter(|_| is_growth)?)?;
        (!self.shows_elements[array]).then_some(array)
    }

    /// The value that stands for the set of a value, when all sets are joined.
    fn set_of(&self, v: Value) -> usize {
        self.toward[v.index()] as usize
    }

    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.find(a), self.find(b));
        self.toward[a.max(b)] = a.min(b) as u32;
    }

    fn find(&mut self, v: Value) -> usize {
        let mut at = v.index();
        while self.toward[at] as usize != at {
            self.toward[at] = self.toward[self.toward[at] as usize];
            at = self.toward[at] as usize;
        }
        at
    }

    fn share(&mut self, v: Value) {
        let set = self.set_of(v);
        self.is_shared[set] = true;
    }
}

/// Whether an instruction gives the first handle of an object.
fn makes_object(f: &MpirFn, i: Inst) -> bool {
    let makes_array = || matches!(f.inst(i).rt(), RtFn::ArrNew | RtFn::ArrZeroed | RtFn::ArrSlice);
    makes_struct(f, i) || f.inst(i).op == Op::RtRaw && makes_array()
}

fn makes_struct(f: &MpirFn, i: Inst) -> bool {
    f.inst(i).op == Op::RtRaw && f.inst(i).rt() == RtFn::Alloc
}

/// Whether the result of an instruction is (a copy of) one of its operands.
fn passes_on(f: &MpirFn, i: Inst) -> bool {
    let inst = f.inst(i);
    inst.op == Op::Phi || inst.op == Op::RtRaw && inst.rt() == RtFn::HandleUnique
}

/// Whether nobody else gets operand `n` of an instruction, when that is the handle of an array.
fn keeps_to_itself(f: &MpirFn, i: Inst, n: usize) -> bool {
    let inst = f.inst(i);
    let works_on_it = || {
        matches!(
            inst.rt(),
            RtFn::Release
                | RtFn::HandleUnique
                | RtFn::ArrPush
                | RtFn::ArrGrow
                | RtFn::ArrPop
                | RtFn::ArrSlice
                | RtFn::ArrMove
                | RtFn::ArrReverse
                | RtFn::ArrContains
                | RtFn::ArrSort
        )
    };
    match inst.op {
        // Bits of a handle are compared with null.
        Op::Phi | Op::BitsCast => true,
        Op::MemLoad | Op::MemStore => n == 0,
        Op::RtRaw => n == 0 && works_on_it(),
        _ => false,
    }
}
