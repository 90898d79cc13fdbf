//! Launches: buffers of bindings, the call of the runtime, and what it refuses.

use super::body::Body;
use crate::cost::CostClass;
use magpie_diag::Span;
use magpie_mpir::{FnId, Op, Value, imm_pair};
use magpie_types::abi::RtFn;
use magpie_types::{TypeKind, fixed};

/// `Unsupported` of `gpu.ErrorKind`.
const UNSUPPORTED: i32 = 7;

impl Body<'_, '_, '_> {
    /// The buffer of a resident binding on the device.
    pub(super) fn device_buffer(&mut self, handle: Value, span: Span) -> Value {
        let id = self.b.ty(handle);
        let buffer = match self.cx.module.types.kind(id) {
            TypeKind::Ref(_, t) => t,
            _ => id,
        };
        let place = self.place(span);
        self.rt_value(RtFn::GpuResidentBuffer, buffer, &[handle, place])
    }

    /// Queues a launch; one that is refused ends the program.
    pub(super) fn dispatch(&mut self, kernel: FnId, sizes: &[Value], args: &[Value], span: Span) {
        self.at(span);
        self.cx.cost(CostClass::Launch, span, None);
        let place = self.place(span);
        let device = self.rt_value(RtFn::GpuDeviceOrStop, fixed::GPU_DEVICE, &[place]);
        let mut operands = vec![device];
        operands.extend(sizes);
        operands.extend(args);
        if let Some(&offset) = self.cx.shuffles.get(&kernel) {
            self.check_warp(device, offset, place);
        }
        let result = self.cx.intern(TypeKind::Result(fixed::GPU_FENCE, fixed::GPU_ERROR));
        let launched = self.b.value(Op::GpuLaunchAsync, result, &operands, imm_pair(kernel.0, 0));
        let refused = super::clone::enum_is(self, launched, 1);
        let (stop, go_on) = (self.new_block(), self.new_block());
        self.b.cbr(refused, stop, go_on);
        self.enter(stop);
        let err = self.b.value(Op::EnumPayload, fixed::GPU_ERROR, &[launched], imm_pair(1, 0));
        self.rt(RtFn::GpuStop, fixed::UNIT, &[err, place]);
        self.b.unreachable();
        self.enter(go_on);
    }

    /// A device whose warps are too small for a shuffle of the kernel is refused.
    pub(super) fn check_warp(&mut self, device: Value, offset: u32, place: Value) {
        let warp = self.rt_value(RtFn::GpuDeviceWarpSize, fixed::U32, &[device]);
        let needed = self.b.func().const_u32(offset);
        let small = self.b.compare(Op::IcmpUle, warp, needed);
        let (stop, go_on) = (self.new_block(), self.new_block());
        self.b.cbr(small, stop, go_on);
        self.enter(stop);
        let kind = self.i32(UNSUPPORTED);
        let text = |body: &mut Self, text: &str| {
            let id = body.cx.module.intern_str(text);
            let ty = body.cx.intern(TypeKind::RawPtr(fixed::U8));
            body.b.func().constant(ty, magpie_mpir::Const::Str(id))
        };
        let backend = text(self, "");
        let message = format!(
            "the kernel exchanges values over {offset} lanes, but the warps of this device are smaller"
        );
        let message = text(self, &message);
        let code = self.i32(0);
        let err =
            self.rt_value(RtFn::GpuErrorNew, fixed::GPU_ERROR, &[kind, backend, message, code]);
        self.rt(RtFn::GpuStop, fixed::UNIT, &[err, place]);
        self.b.unreachable();
        self.enter(go_on);
    }
}
