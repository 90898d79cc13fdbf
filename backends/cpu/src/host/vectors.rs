//! Vectors of host functions: several rounds of a loop at once
//! ([`magpie_mpir::passes::widen_counted`]). A vector is as many registers as its components fill.

use super::Translator;
use crate::pure::{Pure, clif_type, constant};
use crate::simd;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, ConstantData, InstBuilder, MemFlagsData, types};
use magpie_mpir::{Const, Inst, Op, Value};
use magpie_types::{PrimType, TypeId, TypeKind};

/// Bits of a register.
const REGISTER: u32 = 128;
/// Vectors in memory are aligned to their components only.
const UNALIGNED: MemFlagsData = MemFlagsData::new().with_notrap();

impl Translator<'_, '_, '_> {
    /// Component type and number of components of a vector type.
    fn vector(&self, ty: TypeId) -> Option<(PrimType, u32)> {
        match self.module.types.kind(ty) {
            TypeKind::Vec(p, n) => Some((p, u32::from(n))),
            _ => None,
        }
    }

    /// Whether an instruction makes or takes a vector.
    pub(crate) fn is_of_vectors(&self, i: Inst) -> bool {
        let is_vector = |ty| TypeId(1000) <= ty && self.vector(ty).is_some();
        is_vector(self.f.inst(i).ty) || self.f.args(i).iter().any(|&v| is_vector(self.f.ty(v)))
    }

    /// The registers of a vector type.
    pub(crate) fn registers_of(&self, ty: TypeId) -> Vec<ir::Type> {
        let Some((p, n)) = self.vector(ty) else { return Vec::new() };
        let (register, bits) = match simd::register(p) {
            Some(register) => (register, p.bit_width()),
            // Masks that nothing was compared for have as many bits as fill a register.
            None => {
                let bits = mask_bits(n);
                (simd::register_of_bits(bits).unwrap_or(types::I8X16), bits)
            }
        };
        vec![register; (n * bits / REGISTER) as usize]
    }

    /// The registers of a vector.
    pub(crate) fn registers(&mut self, v: Value) -> Vec<ir::Value> {
        if let Some(registers) = self.vectors.get(&v) {
            return registers.clone();
        }
        debug_assert!(matches!(self.f.as_const(v), Some(Const::Zero)));
        let registers = self.registers_of(self.f.ty(v)).into_iter();
        registers.map(|ty| simd::bytes(&mut self.b, ty, vec![0; 16])).collect()
    }

    /// The registers of a vector that a phi takes.
    pub(crate) fn registers_for_phi(&mut self, v: Value) -> Vec<ir::Value> {
        match self.vector(self.f.ty(v)) {
            Some((PrimType::Bool, n)) => self.mask(v, mask_bits(n)),
            _ => self.registers(v),
        }
    }

    /// Emits an instruction that makes or takes a vector.
    pub(crate) fn vector_inst(&mut self, i: Inst) {
        let f = self.f;
        let data = f.inst(i);
        match data.op {
            Op::MemStore => {
                let address = self.value(f.arg(i, 0));
                for (n, register) in (0..).zip(self.stored(f.arg(i, 1))) {
                    self.b.ins().store(UNALIGNED, register, address, data.imm as i32 + 16 * n);
                }
            }
            Op::VecExtract => {
                let component = self.component(f.arg(i, 0), data.imm_lo());
                if let Some(v) = data.result() {
                    self.values[v.index()] = Some(component);
                }
            }
            _ => {
                let registers = match self.in_registers(i) {
                    Some(registers) => registers,
                    None => self.by_component(i),
                };
                if let Some(v) = data.result() {
                    self.vectors.insert(v, registers);
                }
            }
        }
    }

    /// The registers of a vector as they are in memory, where a `bool` is 0 or 1.
    fn stored(&mut self, v: Value) -> Vec<ir::Value> {
        match self.vector(self.f.ty(v)) {
            Some((PrimType::Bool, _)) => {
                let one = simd::bytes(&mut self.b, types::I8X16, vec![1; 16]);
                let mask = self.mask(v, 8).into_iter();
                mask.map(|m| self.b.ins().band(m, one)).collect()
            }
            _ => self.registers(v),
        }
    }

    /// The result of an instruction, where the machine has it for whole registers.
    fn in_registers(&mut self, i: Inst) -> Option<Vec<ir::Value>> {
        let f = self.f;
        let data = f.inst(i);
        let (to, n) = self.vector(data.ty)?;
        let first = f.arg(i, 0);
        match data.op {
            Op::MemLoad => {
                let address = self.value(first);
                if to == PrimType::Bool {
                    let zero = simd::bytes(&mut self.b, types::I8X16, vec![0; 16]);
                    let load = |k: i32| {
                        let at = data.imm as i32 + 16 * k;
                        let bytes = self.b.ins().load(types::I8X16, UNALIGNED, address, at);
                        self.b.ins().icmp(IntCC::NotEqual, bytes, zero)
                    };
                    return Some((0..n as i32 / 16).map(load).collect());
                }
                let registers = (0..).zip(self.registers_of(data.ty));
                let load =
                    |(k, ty)| self.b.ins().load(ty, UNALIGNED, address, data.imm as i32 + 16 * k);
                return Some(registers.map(load).collect());
            }
            Op::VecSplat => {
                let mut v = self.value(first);
                let registers = self.registers_of(data.ty);
                let &register = registers.first()?;
                if to == PrimType::Bool {
                    let lane = register.lane_type();
                    let word = if lane == types::I8 { v } else { self.b.ins().uextend(lane, v) };
                    v = self.b.ins().ineg(word);
                }
                let splat = self.b.ins().splat(register, v);
                return Some(vec![splat; registers.len()]);
            }
            Op::VecNew => return self.constants(i, to),
            Op::Select => {
                let [then, other] = [1, 2].map(|k| self.registers(f.arg(i, k)));
                let pairs = then.into_iter().zip(other);
                if self.vector(f.ty(first)).is_none() {
                    let cond = self.value(first);
                    return Some(pairs.map(|(x, y)| self.b.ins().select(cond, x, y)).collect());
                }
                let mask = self.mask(first, to.bit_width());
                if let Some(Const::Zero) = f.as_const(f.arg(i, 2)) {
                    let pairs = mask.into_iter().zip(pairs);
                    return Some(pairs.map(|(m, (x, _))| self.only_where(m, x)).collect());
                }
                let choose = |(m, (x, y))| simd::choose(&mut self.b, m, x, y);
                return Some(mask.into_iter().zip(pairs).map(choose).collect());
            }
            Op::Cast | Op::BitsCast => {
                let (from, _) = self.vector(f.ty(first))?;
                return self.cast_registers(data.op, from, to, first);
            }
            Op::IShl | Op::ILshr | Op::IAshr => {
                let amount = f.def_inst(f.arg(i, 1)).filter(|&d| f.inst(d).op == Op::VecSplat)?;
                let amount = self.value(f.arg(amount, 0));
                let registers = self.registers(first).into_iter();
                return registers.map(|x| simd::shift(&mut self.b, data.op, x, amount)).collect();
            }
            _ => {}
        }
        if self.vector(f.ty(first))?.0 == PrimType::Bool {
            let bits = self.bits_of(first, n);
            let (x, y) = (self.mask(first, bits), self.mask(f.args(i).get(1).copied()?, bits));
            let op = |(x, y)| simd::mask_op(&mut self.b, data.op, x, y);
            return x.into_iter().zip(y).map(op).collect();
        }
        simd::register(self.vector(f.ty(first))?.0)?;
        let args: Vec<Vec<ir::Value>> = f.args(i).iter().map(|&v| self.registers(v)).collect();
        let registers = args.first()?.len();
        (0..registers)
            .map(|k| {
                let args: Vec<ir::Value> = args.iter().filter_map(|a| a.get(k).copied()).collect();
                match args[..] {
                    [x, y] if to == PrimType::Bool => simd::compare(&mut self.b, data.op, x, y),
                    _ => simd::arithmetic(&mut self.b, data.op, &args),
                }
            })
            .collect()
    }

    /// A register where a mask is set, else zero.
    fn only_where(&mut self, mask: ir::Value, v: ir::Value) -> ir::Value {
        let ty = self.b.func.dfg.value_type(v);
        let mask = simd::bits_as(&mut self.b, mask, ty);
        self.b.ins().band(mask, v)
    }

    /// A vector of constants.
    fn constants(&mut self, i: Inst, p: PrimType) -> Option<Vec<ir::Value>> {
        simd::register(p)?;
        let bits: Option<Vec<u64>> = self.f.args(i).iter().map(|&v| self.f.as_bits(v)).collect();
        let size = p.size() as usize;
        let bytes = bits?.into_iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(size));
        let bytes: Vec<u8> = bytes.collect();
        let registers = self.registers_of(self.f.inst(i).ty);
        let parts = bytes.chunks(16).zip(registers);
        Some(parts.map(|(part, ty)| simd::bytes(&mut self.b, ty, part.to_vec())).collect())
    }

    /// One component of a vector.
    fn component(&mut self, vector: Value, n: u32) -> ir::Value {
        let registers = self.registers(vector);
        let lanes = self.b.func.dfg.value_type(registers[0]).lane_count();
        let part = self.b.ins().extractlane(registers[(n / lanes) as usize], (n % lanes) as u8);
        match self.vector(self.f.ty(vector)) {
            Some((PrimType::Bool, _)) => {
                let bit = self.b.ins().band_imm_u(part, 1);
                let is_wide = self.b.func.dfg.value_type(bit) != types::I8;
                if is_wide { self.b.ins().ireduce(types::I8, bit) } else { bit }
            }
            _ => part,
        }
    }

    /// The result of an instruction, one component after the other.
    fn by_component(&mut self, i: Inst) -> Vec<ir::Value> {
        let f = self.f;
        let data = f.inst(i);
        let Some((to, n)) = self.vector(data.ty) else { return Vec::new() };
        let typed = f.arg(i, usize::from(data.op == Op::Select));
        let from = self.vector(f.ty(typed)).map_or(to, |v| v.0);
        let components: Vec<ir::Value> = (0..n)
            .map(|k| {
                if data.op == Op::VecNew {
                    return self.value(f.arg(i, k as usize));
                }
                let args: Vec<ir::Value> = (0..f.args(i).len())
                    .map(|a| match self.vector(f.ty(f.arg(i, a))) {
                        Some(_) => self.component(f.arg(i, a), k),
                        None => self.value(f.arg(i, a)),
                    })
                    .collect();
                let one = Pure { b: &mut self.b, calls: self.code }.emit(data.op, from, to, &args);
                one.unwrap_or_else(|| constant(&mut self.b, to, 0))
            })
            .collect();
        let registers = self.registers_of(data.ty);
        let Some(&ty) = registers.first() else { return Vec::new() };
        let lanes = ty.lane_count() as usize;
        components
            .chunks(lanes)
            .map(|part| {
                let mut register = simd::bytes(&mut self.b, ty, vec![0; 16]);
                for (n, &v) in (0..).zip(part) {
                    let v = match to {
                        PrimType::Bool => {
                            let lane = ty.lane_type();
                            let is_narrow = lane == types::I8;
                            let word = if is_narrow { v } else { self.b.ins().uextend(lane, v) };
                            self.b.ins().ineg(word)
                        }
                        _ => v,
                    };
                    register = self.b.ins().insertlane(register, v, n);
                }
                register
            })
            .collect()
    }

    // ----- widths -----

    /// The bits of a component of a mask of `n`.
    fn bits_of(&mut self, mask: Value, n: u32) -> u32 {
        self.registers(mask).len() as u32 * REGISTER / n
    }

    /// A mask with components of so many bits.
    fn mask(&mut self, v: Value, bits: u32) -> Vec<ir::Value> {
        let n = self.vector(self.f.ty(v)).map_or(1, |vector| vector.1);
        let from = self.bits_of(v, n);
        let registers = self.registers(v);
        self.resize(registers, from, bits, true)
    }

    /// Integers of another width.
    fn resize(
        &mut self,
        mut registers: Vec<ir::Value>,
        mut from: u32,
        to: u32,
        signed: bool,
    ) -> Vec<ir::Value> {
        while from < to {
            let ty = simd::register_of_bits(from).unwrap_or(types::I8X16);
            let mut wide = Vec::with_capacity(2 * registers.len());
            for v in registers {
                let v = simd::bits_as(&mut self.b, v, ty);
                wide.extend(match signed {
                    true => [self.b.ins().swiden_low(v), self.b.ins().swiden_high(v)],
                    false => [self.b.ins().uwiden_low(v), self.b.ins().uwiden_high(v)],
                });
            }
            (registers, from) = (wide, 2 * from);
        }
        while from > to {
            let (whole, half) = ((from / 8) as u8, (from / 16) as u8);
            let lower = (0..32).filter(|byte| byte % whole < half).collect();
            let pairs = registers.chunks(2).map(|pair| (pair[0], *pair.last().unwrap_or(&pair[0])));
            let pairs: Vec<_> = pairs.collect();
            registers = pairs.into_iter().map(|(x, y)| self.pick(x, y, &lower)).collect();
            from /= 2;
        }
        let ty = simd::register_of_bits(to).unwrap_or(types::I8X16);
        registers.into_iter().map(|v| simd::bits_as(&mut self.b, v, ty)).collect()
    }

    /// Bytes of two registers, those of the second from 16.
    fn pick(&mut self, x: ir::Value, y: ir::Value, which: &Vec<u8>) -> ir::Value {
        let [x, y] = [x, y].map(|v| simd::bits_as(&mut self.b, v, types::I8X16));
        let which = self.b.func.dfg.immediates.push(ConstantData::from(which.as_slice()));
        self.b.ins().shuffle(x, y, which)
    }

    /// The numbers, or the bits, of a vector as another type.
    fn cast_registers(
        &mut self,
        op: Op,
        from: PrimType,
        to: PrimType,
        v: Value,
    ) -> Option<Vec<ir::Value>> {
        let register = simd::register(to)?;
        let (bits, to_bits) = (from.bit_width(), to.bit_width());
        let signed = from.is_signed();
        let mut registers = self.registers(v);
        if from == PrimType::Bool {
            if op == Op::BitsCast || to.is_float() {
                return None;
            }
            let one = constant(&mut self.b, to, 1);
            debug_assert_eq!(clif_type(to), register.lane_type());
            let one = self.b.ins().splat(register, one);
            let mask = self.mask(v, to_bits);
            return Some(mask.into_iter().map(|m| self.b.ins().band(m, one)).collect());
        }
        simd::register(from)?;
        if op == Op::BitsCast {
            return Some(registers.into_iter().map(|r| self.as_register(r, register)).collect());
        }
        match (from.is_float(), to.is_float()) {
            (false, false) => Some(self.resize(registers, bits, to_bits, signed)),
            (false, true) if to == PrimType::F32 && bits <= 32 => {
                if bits < 32 {
                    registers = self.resize(registers, bits, 32, signed);
                }
                // Narrow unsigned numbers are positive as signed ones.
                let is_signed = signed || bits < 32;
                let convert = |r| match is_signed {
                    true => self.b.ins().fcvt_from_sint(register, r),
                    false => self.b.ins().fcvt_from_uint(register, r),
                };
                Some(registers.into_iter().map(convert).collect())
            }
            (true, false) if from == PrimType::F32 && to_bits == 32 => {
                let convert = |r| match to.is_signed() {
                    true => self.b.ins().fcvt_to_sint_sat(register, r),
                    false => self.b.ins().fcvt_to_uint_sat(register, r),
                };
                Some(registers.into_iter().map(convert).collect())
            }
            (true, true) if bits < to_bits => {
                let upper = (8..16).chain(8..16).collect();
                let mut wide = Vec::with_capacity(2 * registers.len());
                for r in registers {
                    let high = self.pick(r, r, &upper);
                    let high = simd::bits_as(&mut self.b, high, types::F32X4);
                    wide.extend([r, high].map(|r| self.b.ins().fvpromote_low(r)));
                }
                Some(wide)
            }
            (true, true) if bits > to_bits => {
                let lower = (0..8).chain(16..24).collect();
                let mut narrow = Vec::with_capacity(registers.len().div_ceil(2));
                for pair in registers.chunks(2) {
                    let [x, y] = [pair[0], *pair.last()?].map(|r| self.b.ins().fvdemote(r));
                    let both = self.pick(x, y, &lower);
                    narrow.push(simd::bits_as(&mut self.b, both, types::F32X4));
                }
                Some(narrow)
            }
            (true, true) => Some(registers),
            (false, true) | (true, false) => None,
        }
    }

    fn as_register(&mut self, v: ir::Value, ty: ir::Type) -> ir::Value {
        simd::bits_as(&mut self.b, v, ty)
    }
}

/// The bits of a component of a mask that has `n` and fills a register, or more than one.
fn mask_bits(n: u32) -> u32 {
    (REGISTER / n.max(1)).clamp(8, 64)
}
