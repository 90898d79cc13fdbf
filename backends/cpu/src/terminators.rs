//! Terminators: the same jumps, branches and switches for host functions, for kernels, and for
//! several lanes of a kernel that go one way.

use crate::pure::constant;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, TrapCode};
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
                let cond = self.decider(cond);
                let (then, then_args) = self.edge(from, then);
                let (else_, else_args) = self.edge(from, else_);
                self.builder().ins().brif(cond, then, &then_args, else_, &else_args);
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
