//! Terminators: the same jumps, branches and switches for host functions, for kernels, and for
//! several lanes of a kernel that go one way.

use crate::pure::constant;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, InstructionData, TrapCode, types};
use cranelift_frontend::FunctionBuilder;
use magpie_mpir::{Block, Terminator, Value};
use magpie_types::PrimType;

/// A function whose blocks are being emitted.
pub(crate) trait Terminators<'f> {
    fn builder(&mut self) -> &mut FunctionBuilder<'f>;

    /// The scalar type of a value.
    fn prim(&self, v: Value) -> PrimType;

    /// A condition, or what a switch compares.
    fn decider(&mut self, v: Value) -> ir::Value;

    /// Where an edge leads, with the values of the phis there.
    fn edge(&mut self, from: Block, to: Block) -> (ir::Block, Vec<BlockArg>);

    /// Whether an edge leads out of the innermost loop around the block that it comes from.
    fn leaves_loop(&self, _from: Block, _to: Block) -> bool {
        false
    }

    /// Ends a block that nothing follows.
    fn ret(&mut self, v: Option<Value>);

    fn jump(&mut self, from: Block, to: Block) {
        let (to, args) = self.edge(from, to);
        self.builder().ins().jump(to, &args);
    }

    fn terminator(&mut self, from: Block, term: &Terminator) {
        match term {
            &Terminator::Ret(v) => self.ret(v),
            &Terminator::Br(to) => self.jump(from, to),
            &Terminator::Cbr { cond, then, else_ } => {
                let mut cond = self.decider(cond);
                let (mut first, mut second) = (then, else_);
                // What does not change is moved out of a loop as long as Cranelift has not come to a
                // block outside of it, and it comes to the first target of a branch last.
                if self.leaves_loop(from, else_) && !self.leaves_loop(from, then) {
                    cond = negated(self.builder(), cond);
                    (first, second) = (else_, then);
                }
                let (first, first_args) = self.edge(from, first);
                let (second, second_args) = self.edge(from, second);
                self.builder().ins().brif(cond, first, &first_args, second, &second_args);
            }
            Terminator::Switch { value, cases, default } => {
                let p = self.prim(*value);
                let v = self.decider(*value);
                for &(bits, to) in cases {
                    let c = constant(self.builder(), p, bits);
                    let equal = self.builder().ins().icmp(IntCC::Equal, v, c);
                    let (to, args) = self.edge(from, to);
                    let next = self.builder().create_block();
                    self.builder().ins().brif(equal, to, &args, next, &[]);
                    self.builder().seal_block(next);
                    self.builder().switch_to_block(next);
                }
                self.jump(from, *default);
            }
            Terminator::Unreachable => {
                self.builder().ins().trap(TrapCode::unwrap_user(2));
            }
        }
    }
}

/// The contrary of a condition.
fn negated(b: &mut FunctionBuilder<'_>, cond: ir::Value) -> ir::Value {
    let dfg = &b.func.dfg;
    let compared = dfg.value_def(dfg.resolve_aliases(cond)).inst().map(|i| dfg.insts[i]);
    match compared {
        Some(InstructionData::IntCompare { cond, args: [x, y], .. }) => {
            b.ins().icmp(cond.complement(), x, y)
        }
        Some(InstructionData::FloatCompare { cond, args: [x, y], .. }) => {
            b.ins().fcmp(cond.complement(), x, y)
        }
        _ => {
            let no = b.ins().iconst(types::I8, 0);
            b.ins().icmp(IntCC::Equal, cond, no)
        }
    }
}
