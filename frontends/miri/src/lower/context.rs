//! The objects `kernel` and `frame`, which exist in the bodies of kernels.

use super::Lower;
use super::body::{Body, Val};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, Value};
use magpie_types::fixed;

/// Fields of the frame context with their types.
const FRAME_FIELDS: &[(&str, Ty)] = &[
    ("time", ty::F32),
    ("dt", ty::F32),
    ("index", ty::I32),
    ("mouse_x", ty::F32),
    ("mouse_y", ty::F32),
    ("mouse_down", ty::BOOL),
    ("drag_dx", ty::F32),
    ("drag_dy", ty::F32),
    ("wheel", ty::F32),
    ("clicked", ty::BOOL),
    ("double_clicked", ty::BOOL),
    ("move_x", ty::F32),
    ("move_y", ty::F32),
    ("hovering", ty::BOOL),
];

/// The operation of a part of `kernel` with three components.
fn position(name: &str) -> Option<Op> {
    Some(match name {
        "thread_idx" => Op::GpuThreadId,
        "block_idx" => Op::GpuWorkgroupId,
        "block_dim" => Op::GpuWorkgroupSize,
        "grid_dim" => Op::GpuNumWorkgroups,
        "global_idx" => Op::GpuGlobalId,
        _ => return None,
    })
}

impl Body<'_, '_, '_> {
    /// `kernel.global_idx.x`, `kernel.warp.size`, `frame.time`
    pub(super) fn context_member(
        &mut self,
        base: ExprId,
        name: Ident,
        span: Span,
    ) -> Lower<Option<Val>> {
        let program = self.cx.program;
        let text = program.name(name.sym).to_string();
        if self.free_name(base) == Some("frame") {
            return self.frame_field(&text, span).map(Some);
        }
        if self.free_name(base) == Some("kernel") {
            self.need_kernel(span)?;
            if let Some(op) = position(&text) {
                let parts = [0, 1, 2].map(|dim| self.position(op, dim));
                let t = self.cx.tys.intern(TyKind::Vector(ty::I32, 3));
                return Ok(Some(self.vector_of(t, parts.to_vec())));
            }
            let message = format!("`kernel.{text}` is no value");
            let help = "write `kernel.global_idx.x`, `kernel.warp.lane_id` or `kernel.barrier()`";
            return Err(self.error(Code::MIR0201, span, message, help));
        }
        let ExprKind::Member(root, group) = program.ast[base].kind else { return Ok(None) };
        if self.free_name(root) != Some("kernel") {
            return Ok(None);
        }
        self.need_kernel(span)?;
        let dim = ["x", "y", "z"].iter().position(|&d| d == text);
        let group = program.name(group.sym);
        let (op, dim) = match (group, text.as_str(), position(group).zip(dim)) {
            ("warp", "size", _) => (Op::GpuSubgroupSize, 0),
            ("warp", "lane_id", _) => (Op::GpuSubgroupLaneId, 0),
            (_, _, Some(of)) => of,
            _ => {
                let message = format!("there is no `kernel.{group}.{text}`");
                let help = "there are thread_idx, block_idx, block_dim, grid_dim and global_idx with x, y, z, \
                            and warp.size and warp.lane_id";
                return Err(self.error(Code::MIR0201, span, message, help));
            }
        };
        let v = self.position(op, dim);
        Ok(Some(self.val(ty::I32, v)))
    }

    /// A number of the geometry as an `int`.
    fn position(&mut self, op: Op, dim: usize) -> Value {
        let v = self.b.value(op, fixed::U32, &[], dim as u64);
        self.b.cast(v, fixed::I32)
    }

    pub(super) fn need_kernel(&mut self, span: Span) -> Lower<()> {
        if self.kernel.is_some() {
            return Ok(());
        }
        let message = "`kernel` exists only in the body of a kernel";
        let help = match self.device {
            true => "pass the index to the function",
            false => "use it in a `forall` or a `gpu fn`",
        };
        Err(self.error(Code::MIR0201, span, message, help))
    }

    /// A field of the frame context. The one frame that runs natively has all of them zero.
    pub(super) fn frame_field(&mut self, name: &str, span: Span) -> Lower<Val> {
        if !self.kernel.is_some_and(|k| k.frame) {
            let message = "`frame` exists only in the body of a `gpu frame`";
            let help = "read it in a pass of a frame";
            return Err(self.error(Code::MIR2404, span, message, help));
        }
        match FRAME_FIELDS.iter().find(|f| f.0 == name) {
            Some(&(_, t)) => Ok(self.const_val(t, 0)),
            None => {
                let names: Vec<&str> = FRAME_FIELDS.iter().map(|f| f.0).collect();
                let help = format!("its fields are {}", names.join(", "));
                Err(self.error(Code::MIR2405, span, format!("`frame` has no field `{name}`"), help))
            }
        }
    }

    /// `kernel.barrier()`, `kernel.warp.shuffle_down(v, n)`
    pub(super) fn context_call(
        &mut self,
        base: ExprId,
        name: Ident,
        args: &[Arg],
        span: Span,
    ) -> Lower<Option<Val>> {
        let program = self.cx.program;
        let text = program.name(name.sym);
        if self.free_name(base) == Some("kernel") && text == "barrier" {
            self.need_kernel(span)?;
            let [] = self.plain_args("barrier", args, span)?;
            self.b.effect(Op::GpuBarrier, &[], 0);
            return Ok(Some(self.unit()));
        }
        let ExprKind::Member(root, group) = program.ast[base].kind else { return Ok(None) };
        let is_warp = self.free_name(root) == Some("kernel") && program.name(group.sym) == "warp";
        if !is_warp || text != "shuffle_down" {
            return Ok(None);
        }
        self.need_kernel(span)?;
        let [value, offset] = self.plain_args(text, args, span)?;
        let val = self.expr(value, None)?;
        let known = self.known_int(offset);
        let Some(n) = known.filter(|n| (0..128).contains(n)) else {
            let at = self.expr_span(offset);
            let message = "the offset of `shuffle_down` is no constant from 0 to 127";
            return Err(self.error(Code::MIR2104, at, message, "write a literal"));
        };
        if !self.scalar(val.ty).is_some_and(|p| p.bit_width() <= 32 && p.bit_width() > 1) {
            let message = format!("a `{}` cannot be exchanged", self.cx.ty_name(val.ty));
            return Err(self.error(
                Code::MIR0202,
                span,
                message,
                "exchange numbers of at most 32 bits",
            ));
        }
        let id = self.machine(val.ty);
        self.cx.shuffle_offset = self.cx.shuffle_offset.max(n as u32);
        let n = self.b.func().const_u32(n as u32);
        self.at(span);
        let v = self.b.value(Op::GpuSubgroupShuffleDown, id, &[val.v, n], 0);
        Ok(Some(self.val(val.ty, v)))
    }
}
