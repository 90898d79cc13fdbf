//! Instructions against the op table, and the choice of an op's own rule.

use super::{Check, Fault, Stage, Verifier};
use crate::{
    Class, Domain, Flags, ImmKind, Inst, InstData, Memory, Op, Place, Signature, Value, print_type,
};
use magpie_diag::Code;
use magpie_types::abi::RtFn;
use magpie_types::{PrimType, RefMode, TypeCtx, TypeId, TypeKind, fixed};

impl Verifier<'_> {
    pub(super) fn check_insts(&mut self) {
        for b in self.f.block_ids() {
            for &i in &self.f.block(b).insts {
                if self.is_full() {
                    return;
                }
                let checked = InstCheck { v: self, i, data: self.f.inst(i) }.check();
                if let Err(fault) = checked {
                    self.inst_fault(b, i, fault);
                }
            }
        }
    }
}

/// One instruction under its rule.
pub(super) struct InstCheck<'v, 'a> {
    pub(super) v: &'v Verifier<'a>,
    i: Inst,
    pub(super) data: &'v InstData,
}

impl InstCheck<'_, '_> {
    fn check(&self) -> Check {
        let op = self.data.op;
        self.check_place()?;
        self.check_vectors()?;
        self.check_several()?;
        self.check_flags()?;
        if op != Op::Phi {
            self.check_immediate()?;
        }
        match op.info().signature {
            Signature::Same(count, class) => {
                let types = self.operand_types(count as usize)?;
                self.is_of(types[0], class)?;
                types.iter().enumerate().try_for_each(|(n, &ty)| self.same(n, ty, types[0]))?;
                self.result_is(types[0])?;
            }
            Signature::Compare(class) => {
                let types = self.operand_types(2)?;
                self.is_of(types[0], class)?;
                self.same(1, types[1], types[0])?;
                self.result_is(self.truth_type(types[0])?)?;
            }
            Signature::Convert => _ = self.operand_types(1)?,
            Signature::Leaf => _ = self.operand_types(0)?,
            Signature::Own => {}
        }
        self.own_rule()
    }

    fn check_place(&self) -> Check {
        let domain = self.v.f.domain;
        let (fits, where_) = match self.data.op.info().place {
            Place::Both => (true, ""),
            Place::Device => (domain == Domain::Device, "in device code"),
            Place::LowHost => (domain == Domain::LowHost, "in lowered host code"),
            Place::Host => (domain == Domain::Host, "in host code that is not lowered"),
            Place::AnyHost => (domain != Domain::Device, "in host code"),
        };
        let not_yet_refused = domain == Domain::Device
            && self.v.stage == Stage::Surface
            && self.data.op.info().place != Place::Device;
        if fits || not_yet_refused {
            return Ok(());
        }
        Err(Fault::structure(format!("`{}` stands only {where_}", self.data.op.name())))
    }

    /// On the host, vectors are several rounds of a loop: what a loop does with scalars there is.
    fn check_vectors(&self) -> Check {
        let (op, f) = (self.data.op, self.v.f);
        let by_component = op.is_pure() && !matches!(op, crate::lowered_vector_ops!());
        let is_known = matches!(op, Op::Phi | Op::MemLoad | Op::MemStore | Op::VecSplat);
        if f.domain != Domain::LowHost || by_component || is_known {
            return Ok(());
        }
        let is_vector = |ty| self.v.is_vector(ty);
        if !is_vector(self.data.ty) && !self.args().iter().any(|&v| is_vector(f.ty(v))) {
            return Ok(());
        }
        Err(Fault::structure(format!("host code has no `{}` of vectors", op.name())))
    }

    /// In lowered host code, several values are one only on their way out of a function.
    fn check_several(&self) -> Check {
        let (op, f) = (self.data.op, self.v.f);
        let travels = matches!(op, Op::Call | Op::CallAddr | Op::StructNew);
        if f.domain != Domain::LowHost {
            return Ok(());
        }
        if self.v.is_several(self.data.ty) && !travels {
            return Err(Fault::structure(format!("`{}` gives one value", op.name())));
        }
        let takes = op != Op::StructGet && self.args().iter().any(|&v| self.v.is_several(f.ty(v)));
        match takes {
            true => Err(Fault::structure(format!("`{}` takes single values", op.name()))),
            false => Ok(()),
        }
    }

    fn check_flags(&self) -> Check {
        const { assert!(Flags::NAMES.len() == 8, "every bit has a name") };
        let info = self.data.op.info();
        let accesses = info.place == Place::Device
            && matches!(info.memory, Memory::Read | Memory::Write | Memory::Atomic);
        if self.data.flags.contains(Flags::UNCHECKED) && !accesses {
            return Err(Fault::structure("`unchecked` belongs to accesses of device memory"));
        }
        let of_host = matches!(self.data.op, Op::MemLoad | Op::MemStore);
        if self.data.flags.contains(Flags::HEADER) && !of_host {
            return Err(Fault::structure("`header` belongs to loads and stores of host memory"));
        }
        if self.data.flags.contains(Flags::SPECULATIVE) && !self.shows_object() {
            return Err(Fault::structure("`speculative` belongs to views of objects in objects"));
        }
        Ok(())
    }

    /// Whether the result is a view of an array, a heap struct or a text that is an element or a
    /// field.
    fn shows_object(&self) -> bool {
        let shows =
            matches!(self.data.op, Op::ArrGet | Op::GetField | Op::ArrPlace | Op::FieldPlace);
        match self.types().kind(self.data.ty) {
            TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, part) => {
                let has_parts = match self.types().kind(part) {
                    TypeKind::Array(_) | TypeKind::Struct(_) => self.types().is_heap(part),
                    TypeKind::Str => matches!(self.data.op, Op::ArrGet | Op::GetField),
                    _ => false,
                };
                shows && has_parts
            }
            _ => false,
        }
    }

    fn check_immediate(&self) -> Check {
        let mut unused = self.data.imm;
        for part in self.data.op.info().immediate.parts() {
            let bits = match part.high {
                true => self.data.imm_hi(),
                false => self.data.imm_lo(),
            };
            let m = self.v.m;
            let fits = match part.kind {
                ImmKind::Number | ImmKind::Signed => true,
                ImmKind::Func => (bits as usize) < m.fns.len(),
                ImmKind::OptionalFunc => bits as usize <= m.fns.len(),
                ImmKind::Rt => (bits as usize) < RtFn::ALL.len(),
                ImmKind::Type => m.types.contains(TypeId(bits)),
            };
            if !fits {
                return Err(Fault::structure(format!("`{}` names nothing", part.key)));
            }
            unused &= match (part.kind, part.high) {
                (ImmKind::Signed, _) => 0,
                (_, true) => u32::MAX as u64,
                (_, false) => (u32::MAX as u64) << 32,
            };
        }
        if unused != 0 {
            return Err(Fault::structure("its immediate has bits that the op does not use"));
        }
        Ok(())
    }

    /// The rules of ops that the table gives no full signature.
    fn own_rule(&self) -> Check {
        match self.data.op {
            crate::integer_ops!()
            | crate::trap_ops!()
            | crate::float_ops!()
            | crate::icmp_ops!()
            | crate::fcmp_ops!()
            | Op::VecNormalize
            | Op::VecReflect
            | Op::VecMix => Ok(()),
            // The arms are checked with the control flow.
            Op::Phi => Ok(()),

            Op::Cast => self.cast(),
            Op::BitsCast => self.bits_cast(),
            Op::Select => self.select(),
            Op::VecNew => self.vec_new(),
            Op::VecSplat => self.vec_splat(),
            Op::VecExtract => self.vec_extract(),
            Op::VecInsert => self.vec_insert(),
            Op::VecDot => self.vec_dot(),
            Op::VecCross => self.vec_cross(),
            Op::VecLength => self.vec_length(),
            Op::VecAny | Op::VecAll => self.vec_any(),
            Op::StructNew => self.struct_new(),
            Op::StructGet => self.struct_get(),
            Op::LeafGet => self.leaf_get(),

            Op::GpuThreadId
            | Op::GpuWorkgroupId
            | Op::GpuWorkgroupSize
            | Op::GpuGlobalId
            | Op::GpuNumWorkgroups => self.invocation_id(),
            Op::GpuSubgroupSize | Op::GpuSubgroupLaneId => self.result_is(fixed::U32),
            Op::GpuBufferLoad => self.buffer_load(),
            Op::GpuBufferStore => self.buffer_store(),
            Op::GpuLeafLoad => self.leaf_load(),
            Op::GpuLeafStore => self.leaf_store(),
            Op::GpuBufferLen => self.buffer_len(),
            Op::GpuShared => self.shared_array(),
            Op::GpuLocal => self.local_array(),
            Op::GpuBarrier => self.result_is(fixed::UNIT),
            Op::GpuAtomicAdd
            | Op::GpuAtomicSub
            | Op::GpuAtomicMin
            | Op::GpuAtomicMax
            | Op::GpuAtomicExchange => self.atomic(3, true),
            Op::GpuAtomicAnd | Op::GpuAtomicOr | Op::GpuAtomicXor => self.atomic(3, false),
            Op::GpuAtomicCas => self.atomic(4, false),
            Op::GpuSubgroupShuffle
            | Op::GpuSubgroupShuffleDown
            | Op::GpuSubgroupShuffleUp
            | Op::GpuSubgroupShuffleXor
            | Op::GpuSubgroupBroadcast
            | Op::GpuMetalSimdShuffle => self.shuffle(),
            Op::GpuSubgroupSum
            | Op::GpuSubgroupMin
            | Op::GpuSubgroupMax
            | Op::GpuSubgroupPrefixSum
            | Op::GpuMetalSimdSum
            | Op::GpuMetalSimdPrefixSum => self.subgroup_reduction(),
            Op::GpuSubgroupAny | Op::GpuSubgroupAll => self.subgroup_vote(fixed::BOOL),
            Op::GpuSubgroupBallot => self.subgroup_vote(fixed::U64),
            Op::GpuPrint => self.print(),

            Op::Call => self.call(),
            Op::RtCall => self.rt_call(),
            Op::CallIndirect => self.call_indirect(),
            Op::CallableCapture => self.callable_capture(),
            Op::Panic => self.panic(),
            Op::GpuLaunch | Op::GpuLaunchAsync | Op::GpuLaunchProfiled => self.launch(),

            Op::BorrowShared | Op::BorrowMut => self.borrow(),
            Op::Share => self.share(),
            Op::CloneShared => self.clone_shared(),
            Op::WeakDowngrade => self.weak_downgrade(),
            Op::WeakUpgrade => self.weak_upgrade(),
            Op::CloneWeak => self.clone_weak(),
            Op::Retain | Op::Release => self.count(),
            Op::New => self.new_object(),
            Op::GetField => self.get_field(),
            Op::SetField => self.set_field(),
            Op::FieldPlace => self.field_place(),
            Op::EnumNew => self.enum_new(),
            Op::EnumTag => self.enum_tag(),
            Op::EnumIs => self.enum_is(),
            Op::EnumPayload => self.enum_payload(),
            Op::ArrNew => self.arr_new(),
            Op::ArrFrom => self.arr_from(),
            Op::ArrLen => self.arr_len(),
            Op::ArrGet => self.arr_get(),
            Op::ArrPlace => self.arr_place(),
            Op::ArrSet => self.arr_set(),
            Op::ArrPush => self.arr_push(),
            Op::ArrPop => self.arr_pop(),
            Op::ArrSlice => self.arr_slice(),
            Op::ArrContains => self.arr_contains(),
            Op::ArrSort => self.arr_sort(),
            Op::ArrMap => self.arr_map(),
            Op::ArrFilter => self.arr_filter(),
            Op::ArrReduce => self.arr_reduce(),
            Op::ArrForeach => self.arr_foreach(),
            Op::MapNew => self.map_new(),
            Op::MapSet => self.map_set(),
            Op::MapGet | Op::MapDelete => self.map_get(),
            Op::MapGetRef => self.map_get_ref(),
            Op::MapPlace => self.map_place(),
            Op::MapLen => self.map_len(),
            Op::MapContainsKey => self.map_contains_key(),
            Op::MapDeleteVoid => self.map_delete_void(),
            Op::MapKeys => self.map_list(true),
            Op::MapValues => self.map_list(false),

            Op::MemLoad => self.mem_load(),
            Op::MemStore => self.mem_store(),
            Op::PtrAdd => self.ptr_add(),
            Op::StackSlot => self.stack_slot(),
            Op::FnAddr => self.fn_addr(),
            Op::TypeInfoAddr => self.type_info_addr(),
            Op::RtRaw => self.rt_raw(),
            Op::CallAddr => self.call_addr(),
        }
    }

    // ----- what rules are made of -----

    pub(super) fn types(&self) -> &TypeCtx {
        &self.v.m.types
    }

    pub(super) fn name(&self, ty: TypeId) -> String {
        print_type(self.types(), ty)
    }

    pub(super) fn args(&self) -> &[Value] {
        self.v.f.args(self.i)
    }

    /// The type of operand `n`, which exists.
    pub(super) fn ty(&self, n: usize) -> TypeId {
        self.v.f.ty(self.args()[n])
    }

    /// The types of all operands, which are `count`.
    pub(super) fn operand_types(&self, count: usize) -> Check<Vec<TypeId>> {
        self.count_is(count)?;
        Ok((0..count).map(|n| self.ty(n)).collect())
    }

    /// The types of all operands, which are `N`.
    pub(super) fn operands<const N: usize>(&self) -> Check<[TypeId; N]> {
        self.count_is(N)?;
        Ok(std::array::from_fn(|n| self.ty(n)))
    }

    pub(super) fn count_is(&self, count: usize) -> Check {
        let found = self.args().len();
        if found == count {
            return Ok(());
        }
        Err(Fault::ill_typed(format!("it has {found} operands, expected {count}")))
    }

    /// Operand `n`, of type `found`, has type `wanted`.
    pub(super) fn same(&self, n: usize, found: TypeId, wanted: TypeId) -> Check {
        if found == wanted {
            return Ok(());
        }
        let wanted = self.name(wanted);
        Err(self.wrong_operand(n, found, &format!("`{wanted}`")))
    }

    pub(super) fn wrong_operand(&self, n: usize, found: TypeId, wanted: &str) -> Fault {
        let found = self.name(found);
        Fault::ill_typed(format!("operand {n} has type `{found}`, expected {wanted}"))
    }

    pub(super) fn result_is(&self, wanted: TypeId) -> Check {
        if self.data.ty == wanted {
            return Ok(());
        }
        let wanted = self.name(wanted);
        Err(self.wrong_result(&format!("`{wanted}`")))
    }

    pub(super) fn wrong_result(&self, wanted: &str) -> Fault {
        let found = self.name(self.data.ty);
        Fault::ill_typed(format!("the result has type `{found}`, expected {wanted}"))
    }

    fn is_of(&self, ty: TypeId, class: Class) -> Check {
        let is_vec = matches!(self.types().kind(ty), TypeKind::Vec(..));
        let prim = self.types().element_prim(ty);
        let (fits, wanted) = match class {
            Class::Int => (prim.is_some_and(PrimType::is_int), "an integer or a vector of them"),
            Class::IntOrBool => (
                prim.is_some_and(|p| p.is_int() || p == PrimType::Bool),
                "an integer, `bool`, or a vector of them",
            ),
            Class::Float => (prim.is_some_and(PrimType::is_float), "a float or a vector of them"),
            Class::FloatVec => {
                (is_vec && prim.is_some_and(PrimType::is_float), "a vector of floats")
            }
        };
        if fits { Ok(()) } else { Err(self.wrong_operand(0, ty, wanted)) }
    }

    /// `bool`, or the vector of `bool` with the components of `ty`.
    pub(super) fn truth_type(&self, ty: TypeId) -> Check<TypeId> {
        let TypeKind::Vec(_, lanes) = self.types().kind(ty) else { return Ok(fixed::BOOL) };
        let truth = self.types().lookup(TypeKind::Vec(PrimType::Bool, lanes));
        truth.ok_or_else(|| self.wrong_result("a vector of `bool`"))
    }

    /// Operand `n` is an integer of any type (an index, a length).
    pub(super) fn is_int(&self, n: usize, ty: TypeId) -> Check {
        let is_int = self.types().prim(ty).is_some_and(PrimType::is_int);
        if is_int { Ok(()) } else { Err(self.wrong_operand(n, ty, "an integer")) }
    }

    /// The number in the low half of the immediate is below `limit`.
    pub(super) fn below(&self, key: &str, limit: usize) -> Check<usize> {
        let n = self.data.imm_lo() as usize;
        if n < limit {
            return Ok(n);
        }
        Err(Fault::structure(format!("`{key}={n}`, but there are {limit}")))
    }

    /// Ids have dimensions 0 to 2.
    fn invocation_id(&self) -> Check {
        if self.data.imm_lo() >= 3 {
            let message = format!("`dim={}` is not 0, 1 or 2", self.data.imm_lo());
            return Err(Fault { code: Code::MPS0001, message });
        }
        self.result_is(fixed::U32)
    }
}
