//! Counting of handles, in place.
//!
//! A call of the runtime costs several times as much as the addition that it makes. The code belongs
//! to a program whose objects no other thread uses ([`super::compile_host`]), so a count is loaded and
//! stored like any other number. Where that is done once, a call is less code.

use super::Translator;
use crate::pure::Calls as _;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use magpie_types::abi::RtFn;
use magpie_types::abi::object_layout::{FLAG_IMMORTAL, FLAGS, STRONG};

/// Whether a runtime function only adds to the strong count of what it gets, and may give it back.
pub(super) fn counts_up(rt: RtFn) -> bool {
    matches!(rt, RtFn::Retain | RtFn::HandleClone)
}

impl Translator<'_, '_, '_> {
    /// Whether what counts is worth its code here.
    pub(super) fn counts_in_place(&self) -> bool {
        self.here.is_some() || !self.runs_once
    }

    /// One more strong count, of an object that is counted; null is not.
    pub(super) fn retain(&mut self, object: ir::Value) {
        let next = self.b.create_block();
        let strong = self.strong_count(object, next);
        let more = self.b.ins().iadd_imm_s(strong, 1);
        self.b.ins().store(MemFlagsData::trusted(), more, object, STRONG as i32);
        self.b.ins().jump(next, &[]);
        self.b.switch_to_block(next);
    }

    /// One strong count less; the runtime drops the object when it is the last.
    pub(super) fn release(&mut self, object: ir::Value) {
        let (less, last) = (self.b.create_block(), self.b.create_block());
        let next = self.b.create_block();
        let strong = self.strong_count(object, next);
        let is_last = self.b.ins().icmp_imm_s(IntCC::Equal, strong, 1);
        self.b.ins().brif(is_last, last, &[], less, &[]);
        self.b.switch_to_block(less);
        let fewer = self.b.ins().iadd_imm_s(strong, -1);
        self.b.ins().store(MemFlagsData::trusted(), fewer, object, STRONG as i32);
        self.b.ins().jump(next, &[]);
        self.b.switch_to_block(last);
        let release = self.code.rt(self.b.func, RtFn::Release);
        self.b.ins().call(release, &[object]);
        self.b.ins().jump(next, &[]);
        self.b.switch_to_block(next);
    }

    /// The strong count of an object; what has none leads to `next`.
    fn strong_count(&mut self, object: ir::Value, next: ir::Block) -> ir::Value {
        let (look, count) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(object, look, &[], next, &[]);
        self.b.switch_to_block(look);
        let trusted = MemFlagsData::trusted();
        let flags = self.b.ins().load(types::I32, trusted, object, FLAGS as i32);
        let is_immortal = self.b.ins().band_imm_u(flags, FLAG_IMMORTAL as i64);
        self.b.ins().brif(is_immortal, next, &[], count, &[]);
        self.b.switch_to_block(count);
        self.b.ins().load(types::I64, trusted, object, STRONG as i32)
    }
}
