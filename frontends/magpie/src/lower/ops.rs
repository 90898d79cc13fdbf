//! Which part of the lowering an instruction belongs to.

use super::body::{Annotation, Body};
use super::*;
use magpie_mpir::{Const as MpirConst, Flags};

impl Body<'_, '_> {
    /// Lowers an instruction that is no phi.
    pub(super) fn instruction(&mut self, instr: &Instr, want: Annotation) -> Lower {
        match instr.op {
            Op::Const(id) => self.constant_instruction(id),
            Op::Regular { op, type_args, args, .. } => {
                let ast = self.ast;
                self.regular(op, &ast[type_args], &ast[args], want, instr)
            }
            Op::Call { form, callee, type_args, args } => {
                self.call(instr, form, callee, type_args, args)
            }
            Op::CallIndirect { form, callee, args } => self.call_indirect(form, callee, args),
            Op::TryCall { callee, type_args, args } => self.try_call(callee, type_args, args),
            Op::TryBranch { value, .. } => self.try_branch(value),
            Op::Capture { callee, args } => self.capture(callee, args, want),
            Op::New { ty, args } => self.new_struct(ty, args),
            // Phis are made by `phi`.
            Op::Phi { .. } => Err(Poisoned),
        }
    }

    /// A constant with a name: no instruction, the name stands for the constant.
    fn constant_instruction(&mut self, id: ConstId) -> Lower {
        let v = self.constant(id)?;
        if self.on_device && self.f.ty(v) == fixed::STR {
            let message = "`Str` does not exist in kernels";
            let help = "print constant text with `gpu.print`, and keep other strings on the host";
            let finding = Diagnostic::new(Code::MPG_CORE_1104, self.span, message).with_help(help);
            self.cx.kernel_findings.push(finding);
        }
        // A text with a name is owned under that name, whatever other texts say the same.
        Ok(Out::Value(match self.f.as_const(v) {
            Some(text @ MpirConst::Str(_)) => self.f.distinct_constant(fixed::STR, text),
            _ => v,
        }))
    }

    /// Picks the host form of an operation whose overflow panics there and wraps in kernels.
    fn trapping(&self, host: MpirOp, device: MpirOp) -> MpirOp {
        if self.on_device { device } else { host }
    }

    /// Reports a device operation in a function for the host.
    fn device_only(&mut self, op: AstOp) -> Lower<()> {
        if self.on_device {
            return Ok(());
        }
        let message = format!("`{}` exists only while a kernel runs", op.name());
        let help = "move it into a `gpu fn`, or into a function that only kernels call";
        Err(self.error(Code::MPS0026, message, help))
    }

    fn regular(
        &mut self,
        op: AstOp,
        types: &[TypeArg],
        args: &[Arg],
        want: Annotation,
        instr: &Instr,
    ) -> Lower {
        use AstOp as A;
        use MpirOp as M;
        match op {
            A::IAdd => self.integers(op, args, self.trapping(M::IAddTrap, M::IAdd)),
            A::ISub => self.integers(op, args, self.trapping(M::ISubTrap, M::ISub)),
            A::IMul => self.integers(op, args, self.trapping(M::IMulTrap, M::IMul)),
            A::IAddWrap => self.integers(op, args, M::IAdd),
            A::ISubWrap => self.integers(op, args, M::ISub),
            A::IMulWrap => self.integers(op, args, M::IMul),
            A::IAddChecked => self.checked(op, args, M::IAdd, M::IAddOverflows),
            A::ISubChecked => self.checked(op, args, M::ISub, M::ISubOverflows),
            A::IMulChecked => self.checked(op, args, M::IMul, M::IMulOverflows),
            A::ISdiv => self.integers(op, args, self.trapping(M::ISdivTrap, M::ISdiv)),
            A::IUdiv => self.integers(op, args, self.trapping(M::IUdivTrap, M::IUdiv)),
            A::ISrem => self.integers(op, args, self.trapping(M::ISremTrap, M::ISrem)),
            A::IUrem => self.integers(op, args, self.trapping(M::IUremTrap, M::IUrem)),
            A::IAnd => self.bits(op, args, M::IAnd),
            A::IOr => self.bits(op, args, M::IOr),
            A::IXor => self.bits(op, args, M::IXor),
            A::IShl => self.integers(op, args, M::IShl),
            A::ILshr => self.integers(op, args, M::ILshr),
            A::IAshr => self.integers(op, args, M::IAshr),
            A::IRotl => self.integers(op, args, M::IRotl),
            A::IRotr => self.integers(op, args, M::IRotr),
            A::IPopcount => self.integer(op, args, M::IPopcount),
            A::IClz => self.integer(op, args, M::IClz),
            A::ICtz => self.integer(op, args, M::ICtz),

            A::FAdd => self.floats(op, args, M::FAdd, Flags::NONE),
            A::FSub => self.floats(op, args, M::FSub, Flags::NONE),
            A::FMul => self.floats(op, args, M::FMul, Flags::NONE),
            A::FDiv => self.floats(op, args, M::FDiv, Flags::NONE),
            A::FRem => self.floats(op, args, M::FRem, Flags::NONE),
            A::FAddFast => self.floats(op, args, M::FAdd, Flags::FAST),
            A::FSubFast => self.floats(op, args, M::FSub, Flags::FAST),
            A::FMulFast => self.floats(op, args, M::FMul, Flags::FAST),
            A::FDivFast => self.floats(op, args, M::FDiv, Flags::FAST),
            A::FFma => self.fma(op, args),
            A::FNeg => self.float(op, args, M::FNeg),
            A::FAbs => self.float(op, args, M::FAbs),
            A::FSqrt => self.float(op, args, M::FSqrt),
            A::FMin => self.floats(op, args, M::FMin, Flags::NONE),
            A::FMax => self.floats(op, args, M::FMax, Flags::NONE),
            A::Bf16Add => self.bf16s(op, args, M::FAdd),
            A::Bf16Sub => self.bf16s(op, args, M::FSub),
            A::Bf16Mul => self.bf16s(op, args, M::FMul),
            A::Bf16Div => self.bf16s(op, args, M::FDiv),
            A::Bf16ToF32 => self.convert(op, args, fixed::BF16, fixed::F32),
            A::F32ToBf16 => self.convert(op, args, fixed::F32, fixed::BF16),

            A::IcmpEq => self.compare_integers(op, args, M::IcmpEq),
            A::IcmpNe => self.compare_integers(op, args, M::IcmpNe),
            A::IcmpSlt => self.compare_integers(op, args, M::IcmpSlt),
            A::IcmpSgt => self.compare_integers(op, args, M::IcmpSgt),
            A::IcmpSle => self.compare_integers(op, args, M::IcmpSle),
            A::IcmpSge => self.compare_integers(op, args, M::IcmpSge),
            A::IcmpUlt => self.compare_integers(op, args, M::IcmpUlt),
            A::IcmpUgt => self.compare_integers(op, args, M::IcmpUgt),
            A::IcmpUle => self.compare_integers(op, args, M::IcmpUle),
            A::IcmpUge => self.compare_integers(op, args, M::IcmpUge),
            A::FcmpOeq => self.compare_floats(op, args, M::FcmpOeq),
            A::FcmpOne => self.compare_floats(op, args, M::FcmpOne),
            A::FcmpOlt => self.compare_floats(op, args, M::FcmpOlt),
            A::FcmpOgt => self.compare_floats(op, args, M::FcmpOgt),
            A::FcmpOle => self.compare_floats(op, args, M::FcmpOle),
            A::FcmpOge => self.compare_floats(op, args, M::FcmpOge),

            A::Cast => self.cast(types, args),
            A::BitsCast => self.bits_cast(types, args),
            A::Select => self.select(args),

            A::Getfield => self.get_field(args, want),
            A::Setfield => self.set_field(args),
            A::EnumNew => self.enum_new(types, args, want),
            A::EnumTag => self.enum_tag(args),
            A::EnumIs => self.enum_is(types, args),
            A::EnumPayload => self.enum_payload(types, args, want),

            A::ArrNew => self.arr_new(types, args, want),
            A::ArrLen => self.arr_len(args, want),
            A::ArrGet => self.arr_get(args, want),
            A::ArrSet => self.arr_set(args),
            A::ArrPush => self.arr_push(args),
            A::ArrPop => self.arr_pop(args),
            A::ArrSlice => self.arr_slice(args),
            A::ArrContains => self.arr_contains(args),
            A::ArrSort => self.arr_sort(args),
            A::ArrMap => self.arr_map(args),
            A::ArrFilter => self.arr_filter(args),
            A::ArrReduce => self.arr_reduce(args),
            A::ArrForeach => self.arr_foreach(args),

            A::MapNew => self.map_new(types),
            A::MapLen => self.map_len(args, want),
            A::MapGet => self.map_get(args),
            A::MapGetRef => self.map_get_ref(args, want),
            A::MapSet => self.map_set(args),
            A::MapContainsKey => self.map_contains_key(args),
            A::MapDelete => self.map_delete(args),
            A::MapDeleteVoid => self.map_delete_void(args),
            A::MapKeys => self.map_list(args, true),
            A::MapValues => self.map_list(args, false),

            A::StrConcat => self.str_concat(args),
            A::StrLen => self.str_len(args, want),
            A::StrEq => self.str_eq(args),
            A::StrSlice => self.str_slice(args),
            A::StrBytes => self.str_bytes(args),
            A::StrBuilderNew => self.builder_new(),
            A::StrBuilderBuild => self.builder_build(args),
            A::StrBuilderAppendStr => self.append_str(args),
            A::StrBuilderAppendI64 | A::StrBuilderAppendI32 | A::StrBuilderAppendU64 => {
                self.append_number(op, args)
            }
            A::StrBuilderAppendF64 | A::StrBuilderAppendBool => self.append_number(op, args),
            A::StrParseI64 | A::StrParseU64 | A::StrParseF64 | A::StrParseBool => {
                self.str_parse(op, args)
            }
            A::JsonEncode | A::JsonDecode => Err(self.error(
                Code::MPT2050,
                format!("`{}` is not supported by this release", op.name()),
                "write and read the text with `str.builder.*` and `str.parse_*`",
            )),

            A::BorrowShared => self.borrow(args, M::BorrowShared),
            A::BorrowMut => self.borrow(args, M::BorrowMut),
            A::Share => self.share(args),
            A::CloneShared => self.clone_shared(args),
            A::CloneWeak => self.clone_weak(args),
            A::WeakDowngrade => self.weak_downgrade(args),
            A::WeakUpgrade => self.weak_upgrade(args),

            A::PtrNull | A::PtrAddr | A::PtrFromAddr | A::PtrAdd | A::PtrLoad | A::PtrStore => {
                self.pointer(op, types, args)
            }

            A::Panic => self.panic(args),
            A::SuspendAwait => Err(self.suspend()),

            A::GpuThreadId => self.invocation_id(op, args, M::GpuThreadId),
            A::GpuWorkgroupId => self.invocation_id(op, args, M::GpuWorkgroupId),
            A::GpuWorkgroupSize => self.invocation_id(op, args, M::GpuWorkgroupSize),
            A::GpuGlobalId => self.invocation_id(op, args, M::GpuGlobalId),
            A::GpuNumWorkgroups => self.invocation_id(op, args, M::GpuNumWorkgroups),

            A::GpuBufferLoad => self.buffer_load(op, types, args),
            A::GpuBufferStore => self.buffer_store(op, types, args),
            A::GpuBufferLen => self.buffer_len(op, types, args, want),
            A::GpuShared => self.array_memory(op, types),
            A::GpuLocal => self.array_memory(op, types),
            A::GpuBarrier => {
                self.device_only(op)?;
                Ok(self.emit(M::GpuBarrier, fixed::UNIT, &[], 0))
            }
            A::GpuPrint => self.gpu_print(op, args),

            A::GpuAtomicAdd => self.atomic(op, types, args, M::GpuAtomicAdd),
            A::GpuAtomicSub => self.atomic(op, types, args, M::GpuAtomicSub),
            A::GpuAtomicMin => self.atomic(op, types, args, M::GpuAtomicMin),
            A::GpuAtomicMax => self.atomic(op, types, args, M::GpuAtomicMax),
            A::GpuAtomicAnd => self.atomic(op, types, args, M::GpuAtomicAnd),
            A::GpuAtomicOr => self.atomic(op, types, args, M::GpuAtomicOr),
            A::GpuAtomicXor => self.atomic(op, types, args, M::GpuAtomicXor),
            A::GpuAtomicExchange => self.atomic(op, types, args, M::GpuAtomicExchange),
            A::GpuAtomicCas => self.atomic(op, types, args, M::GpuAtomicCas),

            A::GpuSubgroupSize => self.subgroup_id(op, M::GpuSubgroupSize),
            A::GpuSubgroupLaneId => self.subgroup_id(op, M::GpuSubgroupLaneId),
            A::GpuSubgroupShuffle => self.shuffle(op, types, args, M::GpuSubgroupShuffle),
            A::GpuSubgroupShuffleDown => self.shuffle(op, types, args, M::GpuSubgroupShuffleDown),
            A::GpuSubgroupShuffleUp => self.shuffle(op, types, args, M::GpuSubgroupShuffleUp),
            A::GpuSubgroupShuffleXor => self.shuffle(op, types, args, M::GpuSubgroupShuffleXor),
            A::GpuSubgroupBroadcast => self.shuffle(op, types, args, M::GpuSubgroupBroadcast),
            A::GpuSubgroupSum => self.subgroup(op, types, args, M::GpuSubgroupSum),
            A::GpuSubgroupMin => self.subgroup(op, types, args, M::GpuSubgroupMin),
            A::GpuSubgroupMax => self.subgroup(op, types, args, M::GpuSubgroupMax),
            A::GpuSubgroupPrefixSum => self.subgroup(op, types, args, M::GpuSubgroupPrefixSum),
            A::GpuSubgroupAny => self.vote(op, args, M::GpuSubgroupAny, fixed::BOOL),
            A::GpuSubgroupAll => self.vote(op, args, M::GpuSubgroupAll, fixed::BOOL),
            A::GpuSubgroupBallot => self.vote(op, args, M::GpuSubgroupBallot, fixed::U64),
            A::GpuMetalSimdShuffle => self.shuffle(op, types, args, M::GpuMetalSimdShuffle),
            A::GpuMetalSimdSum => self.subgroup(op, types, args, M::GpuMetalSimdSum),
            A::GpuMetalSimdPrefixSum => self.subgroup(op, types, args, M::GpuMetalSimdPrefixSum),
            A::GpuMetalImageblock | A::GpuMetalTileMemory => {
                self.device_only(op)?;
                Err(self.error(
                    Code::MPT2050,
                    format!("`{}` is not supported by this release", op.name()),
                    "use `gpu.shared<N, T>` for memory of a workgroup",
                ))
            }

            A::GpuLaunch => self.launch(args, M::GpuLaunch, instr),
            A::GpuLaunchAsync => self.launch(args, M::GpuLaunchAsync, instr),
        }
    }

    /// Checks that a device operation stands in device code.
    pub(super) fn require_device(&mut self, op: AstOp) -> Lower<()> {
        self.device_only(op)
    }

    /// Reports an operation that suspends its function.
    pub(super) fn suspend(&mut self) -> Poisoned {
        if self.decl.is_async {
            // Refused with the function.
            return Poisoned;
        }
        self.error(
            Code::MPAS0001,
            "only an `async fn` can be suspended",
            "call the function with `call`; this release has no `async fn`",
        )
    }
}
