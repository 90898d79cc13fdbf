//! Clones of handles that are only looked at.
//!
//! In a language of values `let p = people[i]` is a copy: another handle of the object, so that a
//! later change of `people` does not reach it. Where nothing changes what it is a part of, as long
//! as it is looked at, a view serves as well, and nothing is counted:
//!
//! ```text
//! %v = arr.get %people, %i                %v = arr.get %people, %i
//! %p = rt.call handle_clone %v       ⇒
//! %a = getfield field=1 %p                %a = getfield field=1 %v
//! ```
//!
//! So does the value itself: in `xs[xs.length() - 1]` another handle of `xs` waits for the index.
//!
//! What is changed in place has one handle, so an object can only be changed through the value that
//! owns it, directly or through views that come from it. So it is enough to look at the uses of that
//! value and of its views, between the clone and its last use: none of them may change it or give
//! it away.

use super::PassContext;
use crate::analysis::{Cfg, User, Uses};
use crate::{Block, Domain, Inst, Module, MpirFn, Op, Value, ownership};
use magpie_types::abi::RtFn;
use magpie_types::{RefMode, TypeKind, fixed};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Blocks in which a clone is needed, at most: of longer lives it is not asked what happens there.
const MAX_BLOCKS: usize = 64;
/// Values that show parts of a clone, at most.
const MAX_VIEWS: usize = 256;

/// Replaces clones by the original, or views of it, where that means the same. Works on host functions that
/// are not lowered, before `lower_arc`; `m` has the heads of the functions that are called.
pub fn elide_clones(f: &mut MpirFn, m: &Module, ctx: &mut PassContext) -> bool {
    let clones = |&&i: &&Inst| is_clone(f, m, i);
    if f.domain != Domain::Host || !f.blocks.iter().flat_map(|b| &b.insts).any(|i| clones(&i)) {
        return false;
    }
    let PassContext { cfg, uses, replacements, .. } = ctx;
    cfg.compute(f);
    uses.compute(f);
    replacements.start(f);
    let mut finder = Finder::new(f, m, cfg, uses);
    let mut gone = FxHashSet::default();
    for &b in cfg.rpo() {
        for &i in &f.block(b).insts {
            if !is_clone(f, m, i) || !finder.can_be_view(i) {
                continue;
            }
            if let Some(clone) = f.inst(i).result() {
                replacements.set(clone, f.arg(i, 0));
                finder.root[clone.index()] = finder.root_of(f.arg(i, 0));
                gone.insert(i);
            }
        }
    }
    if gone.is_empty() {
        return false;
    }
    for block in &mut f.blocks {
        block.insts.retain(|i| !gone.contains(i));
    }
    replacements.apply(f);
    true
}

fn is_clone(f: &MpirFn, m: &Module, i: Inst) -> bool {
    let data = f.inst(i);
    let is_plain = || match m.types.kind(f.ty(f.arg(i, 0))) {
        TypeKind::Ref(RefMode::Borrow, shown) => shown == data.ty,
        _ => f.ty(f.arg(i, 0)) == data.ty,
    };
    data.op == Op::RtCall && data.rt() == RtFn::HandleClone && is_plain()
}

/// Where an instruction stands.
type Place = (Block, u32);

struct Finder<'a> {
    f: &'a MpirFn,
    m: &'a Module,
    cfg: &'a Cfg,
    uses: &'a Uses,
    /// The value that owns what each value is or shows, or one that shows it too.
    root: Vec<Value>,
    place: Vec<Place>,
    /// Where the values with a root are changed or given away, sorted, as far as it was asked for.
    changes: FxHashMap<Value, Option<Rc<[Place]>>>,
    /// The values with a root, by root.
    shown: FxHashMap<Value, Vec<Value>>,
}

impl<'a> Finder<'a> {
    fn new(f: &'a MpirFn, m: &'a Module, cfg: &'a Cfg, uses: &'a Uses) -> Finder<'a> {
        let mut root: Vec<Value> = (0..f.locals.len()).map(Value::new).collect();
        let mut place = vec![(Block(0), 0); f.num_insts()];
        let mut shown: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        for &b in cfg.rpo() {
            for (at, &i) in f.block(b).insts.iter().enumerate() {
                place[i.index()] = (b, at as u32);
                let Some(v) = f.inst(i).result() else { continue };
                // Storage of its own is reached through the view alone.
                let is_storage = f.inst(i).op == Op::BorrowMut && f.as_const(f.arg(i, 0)).is_some();
                if let Some(of) = ownership::shows(&m.types, f, v).filter(|_| !is_storage) {
                    let r = root[of.index()];
                    root[v.index()] = r;
                    shown.entry(r).or_default().push(v);
                }
            }
        }
        Finder { f, m, cfg, uses, root, place, changes: FxHashMap::default(), shown }
    }

    /// The value that owns what a value is or shows. A clone that became a view owns nothing.
    fn root_of(&self, v: Value) -> Value {
        let mut at = self.root[v.index()];
        while self.root[at.index()] != at {
            at = self.root[at.index()];
        }
        at
    }

    /// Whether a view, or the value itself, serves as well as a clone.
    fn can_be_view(&mut self, clone: Inst) -> bool {
        let Some(users) = self.lookers(clone) else { return false };
        let root = self.root_of(self.f.arg(clone, 0));
        // What a parameter shows does not change during the call.
        let is_shown_to_us =
            matches!(self.m.types.kind(self.f.ty(root)), TypeKind::Ref(RefMode::Borrow, _))
                && self.f.def_inst(root).is_none();
        if is_shown_to_us {
            return true;
        }
        // A view that comes from several ones has no owner here.
        if ownership::is_view(&self.m.types, self.f.ty(root))
            && self.f.def_op(root) == Some(Op::Phi)
        {
            return false;
        }
        let Some(changes) = self.changes_of(root) else { return false };
        changes.is_empty() || self.is_apart(clone, &users, &changes)
    }

    /// The places where a clone and views of its parts are looked at; nothing if one of them is
    /// anything but looked at.
    fn lookers(&self, clone: Inst) -> Option<Vec<Place>> {
        let mut views = vec![self.f.inst(clone).result()?];
        let mut places = Vec::new();
        let mut at = 0;
        while let Some(&v) = views.get(at) {
            at += 1;
            for &user in self.uses.of(v) {
                let User::Inst(i, n) = user else { return None };
                if !self.looks(i, n as usize) {
                    return None;
                }
                places.push(self.place[i.index()]);
                let is_view = |&r: &Value| ownership::shows(&self.m.types, self.f, r) == Some(v);
                views.extend(self.f.inst(i).result().filter(is_view));
            }
            if views.len() > MAX_VIEWS {
                return None;
            }
        }
        Some(places)
    }

    /// Whether an instruction only reads operand `n`, an object or a view of one.
    fn looks(&self, i: Inst, n: usize) -> bool {
        let (f, m) = (self.f, self.m);
        if ownership::takes_over(m, f, i, n) {
            return false;
        }
        let data = f.inst(i);
        let is_view = |ty| matches!(m.types.kind(ty), TypeKind::Ref(RefMode::Borrow, _));
        if data.op == Op::Call {
            let params = &m.func(data.func()).params;
            return params.get(n).is_some_and(|p| is_view(p.1));
        }
        if data.op == Op::CallIndirect || data.op == Op::RtCall {
            let ty = f.ty(f.arg(i, n));
            let is_text = ty == fixed::STR
                || matches!(m.types.kind(ty), TypeKind::Ref(RefMode::Borrow, fixed::STR));
            return is_text || data.op == Op::RtCall && data.rt() == RtFn::HandleClone;
        }
        matches!(data.op, crate::object_reads!() | Op::BorrowShared | Op::Panic)
    }

    /// Where a value, or what it shows, is changed or given away; nothing when an exclusive view of it
    /// may be changed under another name.
    fn changes_of(&mut self, root: Value) -> Option<Rc<[Place]>> {
        if let Some(known) = self.changes.get(&root) {
            return known.clone();
        }
        let views = self.shown.get(&root).into_iter().flatten();
        let (mut changes, mut is_known) = (Vec::new(), true);
        for &v in [root].iter().chain(views) {
            let is_place =
                matches!(self.m.types.kind(self.f.ty(v)), TypeKind::Ref(RefMode::MutBorrow, _));
            for &user in self.uses.of(v) {
                let place = match user {
                    User::Inst(i, n) if self.f.inst(i).op == Op::Phi => {
                        is_known &= !is_place;
                        // It is given away at the end of the block that it comes from.
                        let arm = self.f.phi_arms(i).nth(n as usize);
                        arm.map(|(pred, _)| (pred, u32::MAX))
                    }
                    User::Inst(i, n) => (!self.looks(i, n as usize)).then(|| self.place[i.index()]),
                    User::Terminator(b) => Some((b, u32::MAX)),
                };
                changes.extend(place);
            }
        }
        changes.sort_unstable();
        let changes = is_known.then(|| Rc::from(changes));
        self.changes.insert(root, changes.clone());
        changes
    }

    /// Whether none of the changes comes between a clone and where it is looked at.
    fn is_apart(&self, clone: Inst, users: &[Place], changes: &[Place]) -> bool {
        let (home, made) = self.place[clone.index()];
        // The blocks that the clone lives into, and those that it lives out of.
        let (mut into, mut out_of) = (FxHashSet::default(), FxHashSet::default());
        let mut work: Vec<Block> = Vec::new();
        for &(b, _) in users {
            if b != home && into.insert(b) {
                work.push(b);
            }
        }
        while let Some(b) = work.pop() {
            for &p in self.cfg.preds(b).iter().filter(|&&p| self.cfg.is_reachable(p)) {
                if out_of.insert(p) && p != home && into.insert(p) {
                    work.push(p);
                }
            }
            if into.len() > MAX_BLOCKS {
                return false;
            }
        }
        let is_changed = |b: Block, after: Option<u32>| {
            let last_use = users.iter().filter(|u| u.0 == b).map(|u| u.1).max();
            let end = if out_of.contains(&b) { Some(u32::MAX) } else { last_use };
            let Some(end) = end else { return false };
            let first = changes.partition_point(|&c| match after {
                Some(after) => c <= (b, after),
                None => c < (b, 0),
            });
            changes.get(first).is_some_and(|&c| c <= (b, end))
        };
        !is_changed(home, Some(made)) && !into.iter().any(|&b| is_changed(b, None))
    }
}
