//! Memory as bytes, with the layouts of [`TypeCtx`].

use crate::value::Val;
use magpie_types::{PrimType, TypeCtx, TypeId, TypeKind, fixed, place};

/// A device buffer: its elements in host layout, little endian.
pub struct Buffer<'a> {
    /// The elements' bytes.
    pub bytes: &'a mut [u8],
}

fn get(bytes: &[u8], offset: usize, size: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(from) = bytes.get(offset..offset + size) {
        word[..size].copy_from_slice(from);
    }
    u64::from_le_bytes(word)
}

fn put(bytes: &mut [u8], offset: usize, size: usize, v: u64) {
    if let Some(to) = bytes.get_mut(offset..offset + size) {
        to.copy_from_slice(&v.to_le_bytes()[..size]);
    }
}

/// Reads a value of type `ty` at a byte offset.
pub(crate) fn load(bytes: &[u8], types: &TypeCtx, ty: TypeId, offset: usize) -> Val {
    if let Some(members) = types.members(ty) {
        let (offsets, _) = place(members.iter().map(|&m| types.layout(m)));
        let members = members.iter().zip(offsets);
        return Val::Many(
            members.map(|(&m, o)| load(bytes, types, m, offset + o as usize)).collect(),
        );
    }
    match types.kind(ty) {
        TypeKind::Vec(p, n) => {
            let size = p.size() as usize;
            Val::Many((0..n as usize).map(|i| scalar(bytes, p, offset + i * size)).collect())
        }
        _ if ty == fixed::UNIT => Val::Bits(0),
        _ => scalar(bytes, crate::value::prim(types, ty), offset),
    }
}

fn scalar(bytes: &[u8], p: PrimType, offset: usize) -> Val {
    let bits = get(bytes, offset, p.size() as usize);
    Val::Bits(if p == PrimType::Bool { (bits != 0) as u64 } else { bits })
}

/// Writes a value of type `ty` at a byte offset. Padding keeps its content.
pub(crate) fn store(bytes: &mut [u8], types: &TypeCtx, ty: TypeId, offset: usize, v: &Val) {
    if let Some(members) = types.members(ty) {
        let (offsets, _) = place(members.iter().map(|&m| types.layout(m)));
        for (n, (&m, o)) in members.iter().zip(offsets).enumerate() {
            store(bytes, types, m, offset + o as usize, &v.member(n));
        }
        return;
    }
    match types.kind(ty) {
        TypeKind::Vec(p, n) => {
            let size = p.size() as usize;
            for i in 0..n as usize {
                put(bytes, offset + i * size, size, v.member(i).bits());
            }
        }
        _ if ty == fixed::UNIT => {}
        _ => put(bytes, offset, crate::value::prim(types, ty).size() as usize, v.bits()),
    }
}
