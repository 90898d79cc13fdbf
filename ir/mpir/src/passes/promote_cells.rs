//! Cells become values: storage through which a function gives a value of its own to others to be
//! changed, where none is left to get it.
//!
//! A call that changes a value in place takes it out of its variable, puts it into a cell, and takes
//! out of the cell what the callee has put there. When the callee is inlined, all that happens to the
//! cell is seen:
//!
//! ```text
//! %c = borrow.mut Cell zero
//! setfield field=0 %c, %s
//! %v = getfield field=0 %c                 ⇒   uses of %h are uses of %s
//! %h = rt.call handle_clone %v
//! setfield field=0 %c, zero
//! ```
//!
//! What is in a cell is owned by the value that it was put there as. What was overwritten is released
//! because nothing uses that value any more.

use super::PassContext;
use super::locations::{Access, Locations};
use crate::analysis::{User, Uses};
use crate::{Domain, Inst, MpirFn, Op, Value, ownership};
use magpie_types::{Category, RefMode, StructDef, TypeCtx, TypeKind};

/// Replaces what is read of cells by what was put there, with phis where ways meet. Works on host
/// functions that are not lowered, before `lower_arc`.
pub fn promote_cells(f: &mut MpirFn, types: &TypeCtx, ctx: &mut PassContext) -> bool {
    let is_cell = |&i: &Inst| cell(f, types, i).is_some();
    if f.domain != Domain::Host || !f.blocks.iter().flat_map(|b| &b.insts).any(is_cell) {
        return false;
    }
    ctx.uses.compute(f);
    locations(f, types, &ctx.uses).promote(f, ctx)
}

/// The storage that an instruction makes: of a value struct whose fields are null.
fn cell<'t>(f: &MpirFn, types: &'t TypeCtx, i: Inst) -> Option<(Value, &'t StructDef)> {
    let data = f.inst(i);
    let TypeKind::Ref(RefMode::MutBorrow, shown) = types.kind(data.ty) else { return None };
    let TypeKind::Struct(id) = types.kind(shown) else { return None };
    let is_made = data.op == Op::BorrowMut && f.as_const(f.arg(i, 0)).is_some();
    let def = types.struct_def(id);
    data.result().filter(|_| is_made && def.category == Category::Value).map(|v| (v, def))
}

/// The fields of the cells of which all accesses are known.
fn locations(f: &MpirFn, types: &TypeCtx, uses: &Uses) -> Locations {
    let mut locations = Locations::default();
    for &i in f.blocks.iter().flat_map(|b| &b.insts) {
        // A cell of several fields would be emptied in several places at once.
        let Some((cell, [field])) = cell(f, types, i).map(|(v, def)| (v, &def.fields[..])) else {
            continue;
        };
        if !uses.of(cell).iter().all(|&user| is_access(f, user)) || !locations.has_room_for(1, f) {
            continue;
        }
        let n = locations.add(field.ty);
        locations.note(i, Access::Clear(n));
        for &user in uses.of(cell) {
            let User::Inst(i, _) = user else { continue };
            let access = match f.inst(i).op {
                Op::SetField => Access::Write(n),
                _ => Access::Read(n),
            };
            locations.note(i, access);
        }
    }
    // What is taken out needs no view.
    for block in &f.blocks {
        for pair in block.insts.windows(2) {
            let (clone, store) = (pair[0], pair[1]);
            if let Some(look) = ownership::taken_out(f, uses, clone, store)
                && let Some(read) = locations.access(look)
            {
                locations.note(clone, read);
                locations.note(look, Access::Nothing);
            }
        }
    }
    locations
}

/// Whether a user of a cell looks at its field, or replaces it.
fn is_access(f: &MpirFn, user: User) -> bool {
    let User::Inst(i, 0) = user else { return false };
    matches!(f.inst(i).op, Op::GetField | Op::SetField)
}
