//! Where a character is in a literal: a look into a table.
//!
//! A loop that compares the characters of a literal with another one until one is equal finds the
//! same place for the same character each time, so the places of all are noted once, in another
//! literal:
//!
//! ```text
//! head: %i = phi [e: 0], [next: %i1]            head: %i = places[%c], or the end
//!       cbr %i < 26, body, none                       cbr %i < 26, body, none
//! body: cbr "abc…"[%i] == %c, found, next   ⇒   body: br found
//! next: %i1 = %i + 1; br head
//! ```

use super::PassContext;
use super::insert_preheaders::loops_with_preheaders;
use crate::analysis::{Cfg, LoopId, Loops, Positions};
use crate::{
    Block, Const, Domain, Flags, Inst, Memory, Module, MpirFn, Op, StrId, Terminator, Value,
};
use magpie_types::abi::object_layout::STR_BYTES;
use magpie_types::{TypeId, fixed};

/// A place is a character of the table, and all of these are ASCII.
const CHARACTERS: u64 = 128;

/// Replaces such loops in lowered host code.
pub fn search_literals(f: &mut MpirFn, m: &mut Module, ctx: &mut PassContext) -> bool {
    let is_part = |&i: &Inst| literal_of(f, i).is_some();
    if f.domain != Domain::LowHost || !f.blocks.iter().flat_map(|b| &b.insts).any(is_part) {
        return false;
    }
    let changed = loops_with_preheaders(f, ctx);
    let PassContext { cfg, loops, positions, replacements, .. } = ctx;
    if !loops.is_reducible() {
        return changed;
    }
    positions.compute(f);
    let view = View { f, m, cfg, loops, positions };
    let found: Vec<Search> =
        loops.ids().filter(|&l| loops.is_innermost(l)).filter_map(|l| view.search(l)).collect();
    replacements.start(f);
    for search in &found {
        let place = look(f, m, search);
        replacements.set(search.counter, place);
    }
    replacements.apply(f);
    changed || !found.is_empty()
}

/// The literal to whose address an instruction adds.
fn literal_of(f: &MpirFn, i: Inst) -> Option<StrId> {
    match f.as_const(*f.args(i).first()?) {
        Some(Const::Str(text)) if f.inst(i).op == Op::PtrAdd => Some(text),
        _ => None,
    }
}

/// A loop that searches.
struct Search {
    header: Block,
    body: Block,
    /// What only leads to the next round.
    latch: Option<Block>,
    phi: Inst,
    counter: Value,
    /// What is searched for: a code or a byte.
    wanted: Value,
    found: Block,
    none: Block,
    end: u64,
    /// The type of addresses in texts.
    address: TypeId,
    /// For each character its place, or the end.
    table: String,
}

struct View<'a> {
    f: &'a MpirFn,
    m: &'a Module,
    cfg: &'a Cfg,
    loops: &'a Loops,
    positions: &'a Positions,
}

impl View<'_> {
    fn search(&self, l: LoopId) -> Option<Search> {
        let &View { f, cfg, loops, .. } = self;
        let (header, preheader) = (loops.header(l), loops.preheader(cfg, l)?);
        let mut phis = f.phis(header);
        let (phi, None) = (phis.next()?, phis.next()) else { return None };
        let counter = f.inst(phi).result()?;
        let Terminator::Cbr { cond, then: body, else_: none } = f.block(header).term else {
            return None;
        };
        let &[less_than, end] = self.args(cond, Op::IcmpSlt)? else { return None };
        let first = f.as_bits(f.phi_value(phi, preheader)?)?;
        let end = f.as_bits(end)?;
        let is_counted = less_than == counter && f.ty(counter) == fixed::I64 && first <= end;
        let Terminator::Cbr { cond, then, else_ } = f.block(body).term else { return None };
        let (equal, found, next) = match self.args(cond, Op::IcmpEq) {
            Some(equal) => (equal, then, else_),
            None => (self.args(cond, Op::IcmpNe)?, else_, then),
        };
        let latch = (next != header).then_some(next);
        let from = latch.unwrap_or(body);
        let &[a, one] = self.args(f.phi_value(phi, from)?, Op::IAdd)? else { return None };
        let blocks = loops.blocks(l);
        let is_loop = blocks.len() == 2 + usize::from(latch.is_some())
            && [Some(body), latch].iter().flatten().all(|b| blocks.contains(b))
            && latch.is_none_or(|b| matches!(f.block(b).term, Terminator::Br(to) if to == header))
            && latch.is_none_or(|b| f.phis(b).next().is_none())
            && f.phis(body).next().is_none()
            && body != header
            && !loops.contains(l, none)
            && !loops.contains(l, found);
        let is_next = a == counter && f.as_bits(one) == Some(1);
        if !(is_counted && is_loop && is_next && blocks.iter().all(|&b| self.only_looks(b))) {
            return None;
        }
        let &[a, b] = equal else { return None };
        let ((text, address), wanted) =
            match (self.character(a, counter), self.character(b, counter)) {
                (Some(text), None) => (text, b),
                (None, Some(text)) => (text, a),
                _ => return None,
            };
        let is_outside = |b| !loops.contains(l, b);
        let is_steady = self.positions.def_block(f, wanted).is_none_or(is_outside);
        let text = self.m.str(text);
        if !is_steady || !text.is_ascii() || end > text.len() as u64 || end >= CHARACTERS {
            return None;
        }
        let searched = &text.as_bytes()[first as usize..end as usize];
        let place = |code: u8| {
            let at = searched.iter().position(|&byte| byte == code);
            char::from(at.map_or(end as usize, |at| first as usize + at) as u8)
        };
        let table = (0..CHARACTERS as u8).map(place).collect();
        Some(Search { header, body, latch, phi, counter, wanted, found, none, end, address, table })
    }

    /// The operands of what defines a value, if that is this operation.
    fn args(&self, v: Value, op: Op) -> Option<&[Value]> {
        let i = self.f.def_inst(v).filter(|&i| self.f.inst(i).op == op)?;
        Some(self.f.args(i))
    }

    /// Whether nothing in a block changes anything.
    fn only_looks(&self, b: Block) -> bool {
        self.f.block(b).insts.iter().all(|&i| {
            let info = self.f.inst(i).op.info();
            !info.may_trap && matches!(info.memory, Memory::None | Memory::Read)
        })
    }

    /// The literal of which a value is the character at `index`, as a code or a byte, and the type of
    /// its address.
    fn character(&self, v: Value, index: Value) -> Option<(StrId, TypeId)> {
        let f = self.f;
        let byte = match self.args(v, Op::Cast) {
            Some(&[byte]) if f.ty(v) == fixed::I32 => byte,
            _ => v,
        };
        let load = f.def_inst(byte).filter(|&i| f.inst(i).op == Op::MemLoad)?;
        let is_byte = f.ty(byte) == fixed::U8 && f.inst(load).imm == u64::from(STR_BYTES);
        let address = f.def_inst(f.arg(load, 0)).filter(|_| is_byte)?;
        let text = literal_of(f, address).filter(|_| f.arg(address, 1) == index)?;
        Some((text, f.inst(address).ty))
    }
}

/// Looks into the table in the place of the loop; gives the place, or the end.
fn look(f: &mut MpirFn, m: &mut Module, search: &Search) -> Value {
    let &Search { header, body, wanted, .. } = search;
    let span = f.block(header).term_span;
    let ty = f.ty(wanted);
    let mut old = std::mem::take(&mut f.block_mut(header).insts);
    old.retain(|&i| i != search.phi);
    let push = |f: &mut MpirFn, op, ty, args: &[Value], imm| {
        let i = f.make_inst(op, Flags::NONE, ty, args, imm, span);
        f.block_mut(header).insts.push(i);
        f.inst(i).result().unwrap_or(args[0])
    };
    let table = f.constant(fixed::STR, Const::Str(m.intern_str(&search.table)));
    let (bits, unsigned) = match ty {
        fixed::I32 => (push(f, Op::BitsCast, fixed::U32, &[wanted], 0), fixed::U32),
        _ => (wanted, ty),
    };
    let characters = f.const_bits(unsigned, CHARACTERS);
    let is_ascii = push(f, Op::IcmpUlt, fixed::BOOL, &[bits, characters], 0);
    let mask = f.const_bits(unsigned, CHARACTERS - 1);
    let code = push(f, Op::IAnd, unsigned, &[bits, mask], 0);
    let code = push(f, Op::Cast, fixed::I64, &[code], 0);
    let at = push(f, Op::PtrAdd, search.address, &[table, code], 0);
    let place = push(f, Op::MemLoad, fixed::U8, &[at], STR_BYTES.into());
    let place = push(f, Op::Cast, fixed::I64, &[place], 0);
    let end = f.const_bits(fixed::I64, search.end);
    let place = push(f, Op::Select, fixed::I64, &[is_ascii, place, end], 0);
    let is_found = push(f, Op::IcmpSlt, fixed::BOOL, &[place, end], 0);
    f.block_mut(header).insts.extend(old);
    let term = Terminator::Cbr { cond: is_found, then: body, else_: search.none };
    f.block_mut(header).term = term;
    f.block_mut(body).term = Terminator::Br(search.found);
    if let Some(latch) = search.latch {
        f.block_mut(latch).insts.clear();
        f.block_mut(latch).term = Terminator::Unreachable;
    }
    place
}
