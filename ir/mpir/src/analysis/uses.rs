//! [`Uses`]: who reads a value.

use crate::{Block, Inst, MpirFn, Value};

/// The reader of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum User {
    /// The operand of this position of an instruction. For a phi it is the position of the arm.
    Inst(Inst, u32),
    /// The terminator of a block.
    Terminator(Block),
}

/// The users of every value, in block order.
#[derive(Clone, Default, Debug)]
pub struct Uses {
    start: Vec<u32>,
    users: Vec<User>,
}

impl Uses {
    /// The uses in a function.
    pub fn new(f: &MpirFn) -> Uses {
        let mut u = Uses::default();
        u.compute(f);
        u
    }

    /// Recomputes the uses, reusing memory.
    pub fn compute(&mut self, f: &MpirFn) {
        let n = f.locals.len();
        self.start.clear();
        self.start.resize(n + 1, 0);
        let mut total = 0;
        for_each_use(f, |v, _| {
            self.start[v.index() + 1] += 1;
            total += 1;
        });
        for v in 0..n {
            self.start[v + 1] += self.start[v];
        }
        self.users.clear();
        self.users.resize(total, User::Terminator(Block(0)));
        for_each_use(f, |v, user| {
            let slot = &mut self.start[v.index()];
            self.users[*slot as usize] = user;
            *slot += 1;
        });
        self.start.copy_within(0..n, 1);
        self.start[0] = 0;
    }

    /// The users of a value; one that reads it twice is listed twice.
    pub fn of(&self, v: Value) -> &[User] {
        &self.users[self.start[v.index()] as usize..self.start[v.index() + 1] as usize]
    }
}

fn for_each_use(f: &MpirFn, mut visit: impl FnMut(Value, User)) {
    for b in f.block_ids() {
        let block = f.block(b);
        for &i in &block.insts {
            for (n, &v) in f.args(i).iter().enumerate() {
                visit(v, User::Inst(i, n as u32));
            }
        }
        if let Some(v) = block.term.operand() {
            visit(v, User::Terminator(b));
        }
    }
}
