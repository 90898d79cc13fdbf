//! Control flow: the blocks of the graph in reverse postorder, with the assignments of phis at
//! their ends.

use crate::emitter::{Emit, Emitter, ptx};
use crate::operand::{Class, Operand, Reg};
use magpie_gpu::structurize::PhiCopy;
use magpie_mpir::{Block, Op, Terminator, Value};
use std::fmt::Write;

/// Cases of a switch that are compared one after the other; more are halved first.
const LINEAR_CASES: usize = 4;

impl Emitter<'_, '_> {
    /// Emits every block that can be reached.
    pub(crate) fn emit_blocks(&mut self) -> Emit {
        let order = self.cfg.rpo().to_vec();
        let mut temporaries = vec![None; self.copies.temporaries.len()];
        for (n, &block) in order.iter().enumerate() {
            self.here = block;
            self.members = None;
            if n > 0 {
                let _ = writeln!(self.body, "$B{}:", block.index());
            }
            let f = self.f;
            for &i in &f.block(block).insts {
                self.note_line(f.inst(i).span);
                if f.inst(i).op != Op::Phi {
                    self.emit_inst(i)?;
                }
            }
            self.note_line(f.block(block).term_span);
            self.assign_phis(block, &mut temporaries)?;
            self.emit_terminator(block, order.get(n + 1).copied())?;
        }
        Ok(())
    }

    /// Gives the phis of the next block their values.
    fn assign_phis(&mut self, block: Block, temporaries: &mut [Option<Reg>]) -> Emit {
        let copies = self.copies;
        for &copy in copies.at(block) {
            match copy {
                PhiCopy::Assign { phi, source } => {
                    let source = self.value(source)?;
                    self.assign(phi, source)?;
                }
                PhiCopy::Save { temporary, phi } => {
                    let source = self.value(phi)?;
                    let d = self.fresh(self.class(phi)?);
                    temporaries[temporary as usize] = Some(d);
                    ptx!(self, "mov.{} {d}, {source}", d.class.ty());
                }
                PhiCopy::Restore { phi, temporary } => match temporaries[temporary as usize] {
                    Some(reg) => self.assign(phi, reg.into())?,
                    None => return Err(self.broken("a phi from an empty temporary")),
                },
            }
        }
        Ok(())
    }

    fn assign(&mut self, phi: Value, source: Operand) -> Emit {
        let d = self.value(phi)?;
        let ty = self.class(phi)?.ty();
        ptx!(self, "mov.{ty} {d}, {source}");
        Ok(())
    }

    /// The end of a block; `next` is the block behind it.
    fn emit_terminator(&mut self, block: Block, next: Option<Block>) -> Emit {
        let uniform = !self.uniformity.is_divergent_branch(block);
        match &self.f.block(block).term {
            &Terminator::Ret(v) => self.emit_return(v)?,
            Terminator::Unreachable => ptx!(self, "trap"),
            &Terminator::Br(target) => self.go(target, next),
            &Terminator::Cbr { cond, then, else_ } => {
                let cond = self.value(cond)?;
                match (Some(then) == next, then == else_) {
                    (_, true) => {}
                    (true, false) => self.branch(format_args!("!{cond}"), else_, uniform),
                    (false, false) => self.branch(format_args!("{cond}"), then, uniform),
                }
                match Some(then) == next {
                    true => {}
                    false => self.go(else_, next),
                }
            }
            Terminator::Switch { value, cases, default } => {
                let mut cases = cases.clone();
                cases.sort_unstable_by_key(|c| c.0);
                let p = self.prim(*value)?;
                let (selector, class) = match p.bit_width() {
                    1 => {
                        let (d, v) = (self.fresh(Class::B32), self.value(*value)?);
                        ptx!(self, "selp.b32 {d}, 1, 0, {v}");
                        (Operand::Reg(d), Class::B32)
                    }
                    _ => (Operand::Reg(self.value_reg(*value)?), self.class(*value)?),
                };
                let width = if class == Class::B64 { 64 } else { 32 };
                self.select_case(selector, width, &cases, *default, uniform);
                self.go(*default, next);
            }
        }
        Ok(())
    }

    /// Goes on in a block.
    fn go(&mut self, target: Block, next: Option<Block>) {
        if Some(target) != next {
            ptx!(self, "bra.uni $B{}", target.index());
        }
    }

    fn branch(&mut self, condition: std::fmt::Arguments<'_>, target: Block, uniform: bool) {
        let uni = if uniform { ".uni" } else { "" };
        ptx!(self, "@{condition} bra{uni} $B{}", target.index());
    }

    /// Goes to the case that is equal, by halving; falls through to what follows, or goes to
    /// `default`, when there is none. The depth is logarithmic.
    fn select_case(
        &mut self,
        selector: Operand,
        width: u32,
        cases: &[(u64, Block)],
        default: Block,
        uniform: bool,
    ) {
        if cases.len() <= LINEAR_CASES {
            for &(bits, target) in cases {
                let p = self.fresh(Class::Pred);
                let bits = immediate(bits, width);
                ptx!(self, "setp.eq.s{width} {p}, {selector}, {bits}");
                self.branch(format_args!("{p}"), target, uniform);
            }
            return;
        }
        let (low, high) = cases.split_at(cases.len() / 2);
        let (upper, p) = (self.fresh_label(), self.fresh(Class::Pred));
        let bits = immediate(high[0].0, width);
        let uni = if uniform { ".uni" } else { "" };
        ptx!(self, "setp.ge.u{width} {p}, {selector}, {bits}");
        ptx!(self, "@{p} bra{uni} $L{upper}");
        self.select_case(selector, width, low, default, uniform);
        ptx!(self, "bra.uni $B{}", default.index());
        self.place_label(upper);
        self.select_case(selector, width, high, default, uniform);
    }
}

fn immediate(bits: u64, width: u32) -> i64 {
    match width {
        64 => bits.cast_signed(),
        _ => i64::from((bits as u32).cast_signed()),
    }
}
