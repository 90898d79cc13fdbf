//! Which values are characters.

use crate::analysis::Cfg;
use crate::{Const, Domain, FnId, ImmKind, Inst, Module, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_types::abi::RtFn;
use magpie_types::{RefMode, TypeCtx, TypeId, TypeKind, fixed};
use rustc_hash::FxHashSet;

/// Values between literals and the place where one of them is appended, at most.
const MAX_CHOSEN: usize = 32;

/// Whether an instruction takes a character out of a text.
fn is_source(f: &MpirFn, i: Inst) -> bool {
    let data = f.inst(i);
    data.op == Op::RtCall && matches!(data.rt(), RtFn::StrCharAt | RtFn::StrCharFrom)
}

fn host_fns(m: &Module) -> impl Iterator<Item = FnId> {
    m.fn_ids().filter(|&id| m.func(id).domain == Domain::Host)
}

/// What an instruction appends to a text.
fn appended(f: &MpirFn, i: Inst) -> Option<Value> {
    let data = f.inst(i);
    let appends = data.op == Op::RtCall && data.rt() == RtFn::StrAppend;
    appends.then(|| f.arg(i, 1))
}

/// Whether there is anything to do.
pub(super) fn has_characters(m: &Module) -> bool {
    host_fns(m).any(|id| {
        let f = m.func(id);
        let chosen = |v| matches!(f.def_op(v), Some(Op::Phi | Op::Call));
        let mut insts = f.blocks.iter().flat_map(|b| &b.insts);
        insts.any(|&i| is_source(f, i) || appended(f, i).is_some_and(chosen))
    })
}

/// Blocks that cannot be reached would hold uses without a place.
pub(super) fn drop_unreachable_blocks(m: &mut Module) {
    for f in m.fns.iter_mut().filter(|f| f.domain == Domain::Host) {
        let cfg = Cfg::new(f);
        if f.block_ids().any(|b| !cfg.is_reachable(b)) {
            f.compact(|b| cfg.is_reachable(b));
        }
    }
}

/// Whether values of a type are texts or views of them.
pub(super) fn is_text(types: &TypeCtx, ty: TypeId) -> bool {
    ty == fixed::STR || types.kind(ty) == TypeKind::Ref(RefMode::Borrow, fixed::STR)
}

/// Whether values of a type are lists or options of texts, or of such, or views of them.
pub(super) fn holds_texts(types: &TypeCtx, ty: TypeId) -> bool {
    match types.kind(ty) {
        TypeKind::Array(t) | TypeKind::Option(t) => t == fixed::STR || holds_texts(types, t),
        TypeKind::Ref(RefMode::Borrow | RefMode::MutBorrow, t) => holds_texts(types, t),
        _ => false,
    }
}

/// The type of what holds codes in the place of texts.
pub(super) fn with_codes(types: &mut TypeCtx, ty: TypeId) -> TypeId {
    let kind = match types.kind(ty) {
        TypeKind::Str => return fixed::I32,
        TypeKind::Array(t) => TypeKind::Array(with_codes(types, t)),
        TypeKind::Option(t) => TypeKind::Option(with_codes(types, t)),
        TypeKind::Ref(mode, t) => TypeKind::Ref(mode, with_codes(types, t)),
        _ => return ty,
    };
    types.intern(kind)
}

/// The code of a literal of at most one character.
pub(super) fn literal_code(text: &str) -> Option<i32> {
    use magpie_types::abi::object_layout::CODE_EMPTY;
    let mut chars = text.chars();
    let first = chars.next().map_or(CODE_EMPTY, |c| c as i32);
    chars.as_str().is_empty().then_some(first)
}

/// The values of all functions that are codes. Each value has a node, and so has what a function
/// returns. That of a list or an option of texts stands for all texts in it.
pub(super) struct Characters {
    /// The first node of each function.
    start: Vec<usize>,
    is_code: Vec<bool>,
    params: Vec<Vec<Value>>,
}

impl Characters {
    /// Whether a value of the module, as it was looked at, becomes a code, or holds codes.
    pub(super) fn is_code(&self, f: FnId, v: Value) -> bool {
        let node = self.start[f.index()] + v.index();
        node < self.result(f) && self.is_code[node]
    }

    /// Whether parameter `n` of a function is a code, or holds codes.
    pub(super) fn takes_code(&self, f: FnId, n: usize) -> bool {
        self.params[f.index()].get(n).is_some_and(|&v| self.is_code(f, v))
    }

    /// Whether a function returns a code, or what holds codes.
    pub(super) fn returns_code(&self, f: FnId) -> bool {
        self.is_code[self.result(f)]
    }

    fn result(&self, f: FnId) -> usize {
        self.start[f.index() + 1] - 1
    }

    pub(super) fn find(m: &Module) -> Characters {
        let mut start = vec![0];
        for f in &m.fns {
            start.push(start[start.len() - 1] + f.locals.len() + 1);
        }
        let nodes = start[m.fns.len()];
        let params = m.fns.iter().map(|f| f.params.iter().map(|p| p.0).collect()).collect();
        let mut characters = Characters { start, is_code: vec![false; nodes], params };
        let mut flow = Flow {
            fits: vec![false; nodes],
            sources: Vec::new(),
            appended: Vec::new(),
            made_of: Vec::new(),
            edges: Vec::new(),
            wishes: Vec::new(),
        };
        let is_open = only_called(m);
        for id in host_fns(m) {
            flow.add_function(m, &characters, id, &is_open);
        }
        flow.add_chosen(m, &characters);
        flow.find(&mut characters.is_code);
        // Literals stay what they are.
        for id in host_fns(m) {
            for (n, local) in m.func(id).locals.iter().enumerate() {
                if matches!(local.def, ValueDef::Const(_)) {
                    let node = characters.start[id.index()] + n;
                    characters.is_code[node] = false;
                }
            }
        }
        characters
    }
}

/// Whether all that uses a function are calls, so that its parameters and its result may change.
fn only_called(m: &Module) -> Vec<bool> {
    let mut is_called = vec![false; m.fns.len()];
    let mut is_named = vec![false; m.fns.len()];
    for f in &m.fns {
        for &i in f.blocks.iter().flat_map(|b| &b.insts) {
            let data = f.inst(i);
            for part in data.op.info().immediate.parts() {
                let half = if part.high { data.imm_hi() } else { data.imm_lo() };
                let named = match part.kind {
                    ImmKind::Func => Some(half),
                    ImmKind::OptionalFunc => half.checked_sub(1),
                    ImmKind::Number | ImmKind::Signed | ImmKind::Rt | ImmKind::Type => None,
                };
                let Some(named) = named.filter(|&n| (n as usize) < m.fns.len()) else { continue };
                let list = if data.op == Op::Call { &mut is_called } else { &mut is_named };
                list[named as usize] = true;
            }
        }
    }
    let is_open = |(n, f): (usize, &MpirFn)| {
        is_called[n] && !is_named[n] && f.domain == Domain::Host && !f.is_async
    };
    m.fns.iter().enumerate().map(is_open).collect()
}

/// How texts pass from one value to another.
struct Flow {
    /// Whether a node can only be the text of one character or none, as far as it is known.
    fits: Vec<bool>,
    /// Nodes of characters taken out of texts, and of those chosen among literals to be appended.
    sources: Vec<u32>,
    /// Nodes of texts that are appended to others.
    appended: Vec<u32>,
    /// From a node that is another one, or one of several, to those.
    made_of: Vec<(u32, u32)>,
    /// From a node to one that takes its text over. Lists and options that must have one type have
    /// edges both ways.
    edges: Vec<(u32, u32)>,
    /// From a node to that of a list or an option which had better hold codes too, if it can.
    wishes: Vec<(u32, u32)>,
}

/// The ends of the edges that begin at a node; the edges are in order.
fn targets(edges: &[(u32, u32)], from: u32) -> impl Iterator<Item = u32> + '_ {
    let start = edges.partition_point(|edge| edge.0 < from);
    edges[start..].iter().take_while(move |edge| edge.0 == from).map(|edge| edge.1)
}

/// The list or option that a text was read from.
fn holder(f: &MpirFn, mut text: Value) -> Option<Value> {
    loop {
        let i = f.def_inst(text)?;
        let of = *f.args(i).first()?;
        match f.inst(i).op {
            Op::BorrowShared => text = of,
            Op::RtCall if f.inst(i).rt() == RtFn::HandleClone => text = of,
            Op::ArrGet | Op::EnumPayload => return f.as_const(of).is_none().then_some(of),
            _ => return None,
        }
    }
}

/// Whether an operation on lists and options does the same with codes in the place of texts.
fn works_with_codes(f: &MpirFn, i: Inst) -> bool {
    let data = f.inst(i);
    match data.op {
        Op::RtCall => {
            matches!(data.rt(), RtFn::HandleClone | RtFn::HandleUnique | RtFn::ArrReverse)
        }
        // With the comparison of the elements' own type; codes have the order of their texts.
        Op::ArrContains | Op::ArrSort => data.imm_lo() == 0,
        op => matches!(
            op,
            Op::Phi
                | Op::BorrowShared
                | Op::BorrowMut
                | Op::ArrNew
                | Op::ArrFrom
                | Op::ArrLen
                | Op::ArrGet
                | Op::ArrSet
                | Op::ArrPlace
                | Op::ArrPush
                | Op::ArrPop
                | Op::ArrSlice
                | Op::EnumNew
                | Op::EnumTag
                | Op::EnumIs
                | Op::EnumPayload
        ),
    }
}

impl Flow {
    fn add_function(&mut self, m: &Module, c: &Characters, id: FnId, is_open: &[bool]) {
        let f = m.func(id);
        let node = |v: Value| c.start[id.index()] + v.index();
        for (n, local) in f.locals.iter().enumerate() {
            if let ValueDef::Const(Const::Str(text)) = local.def {
                let is_one = is_text(&m.types, local.ty) && literal_code(m.str(text)).is_some();
                self.fits[c.start[id.index()] + n] = is_one;
            }
        }
        let nothing = |def| matches!(def, ValueDef::Const(Const::Zero));
        for (n, local) in f.locals.iter().enumerate().filter(|(_, local)| nothing(local.def)) {
            self.fits[c.start[id.index()] + n] |= holds_texts(&m.types, local.ty);
        }
        let may_be = |ty| is_text(&m.types, ty) || holds_texts(&m.types, ty);
        for &(v, ty) in &f.params {
            self.fits[node(v)] = is_open[id.index()] && may_be(ty);
        }
        self.fits[c.result(id)] = is_open[id.index()] && may_be(f.ret_ty);
        // What is made in the function; that all of it fits is taken back below.
        for &i in f.blocks.iter().flat_map(|b| &b.insts) {
            let data = f.inst(i);
            if let Some(v) = data.result().filter(|_| holds_texts(&m.types, data.ty)) {
                let is_call = data.op == Op::Call && is_open[data.func().index()];
                self.fits[node(v)] = is_call || works_with_codes(f, i);
            }
        }
        for block in &f.blocks {
            for &i in &block.insts {
                self.add_inst(m, c, id, i, is_open);
                self.add_held(m, c, id, i, is_open);
            }
            if let Terminator::Ret(Some(v)) = block.term {
                let ends = (node(v) as u32, c.result(id) as u32);
                self.edges.push(ends);
                self.made_of.push((ends.1, ends.0));
                if holds_texts(&m.types, f.ty(v)) && f.as_const(v).is_none() {
                    self.edges.push((ends.1, ends.0));
                }
            }
        }
    }

    fn add_inst(&mut self, m: &Module, c: &Characters, id: FnId, i: Inst, is_open: &[bool]) {
        let f = m.func(id);
        let data = f.inst(i);
        let node = |v: Value| c.start[id.index()] + v.index();
        if data.op == Op::Call && is_open[data.func().index()] {
            let callee = m.func(data.func());
            for (&v, &(param, _)) in f.args(i).iter().zip(&callee.params) {
                let param = c.start[data.func().index()] + param.index();
                self.edges.push((node(v) as u32, param as u32));
            }
        }
        if data.op == Op::RtCall && matches!(data.rt(), RtFn::StrEq | RtFn::StrCompare) {
            let &[a, b] = f.args(i) else { return };
            for (text, other) in [(a, b), (b, a)] {
                let holder = holder(f, other).filter(|&v| holds_texts(&m.types, f.ty(v)));
                self.wishes.extend(holder.map(|v| (node(text) as u32, node(v) as u32)));
            }
        }
        self.appended.extend(appended(f, i).map(|v| node(v) as u32));
        let Some(result) = data.result().filter(|_| is_text(&m.types, data.ty)) else { return };
        let result = node(result);
        let is_source = is_source(f, i);
        let from: &[Value] = match data.op {
            Op::Phi | Op::BorrowShared => f.args(i),
            Op::RtCall if data.rt() == RtFn::HandleClone => f.args(i),
            Op::ArrGet | Op::EnumPayload if holds_texts(&m.types, f.ty(f.arg(i, 0))) => {
                &f.args(i)[..1]
            }
            Op::Call if is_open[data.func().index()] => {
                self.edges.push((c.result(data.func()) as u32, result as u32));
                self.made_of.push((result as u32, c.result(data.func()) as u32));
                &[]
            }
            _ if is_source => &[],
            _ => return,
        };
        self.fits[result] = true;
        if !matches!(data.op, Op::ArrGet | Op::EnumPayload) {
            self.made_of.extend(from.iter().map(|&v| (result as u32, node(v) as u32)));
        }
        self.edges.extend(from.iter().map(|&v| (node(v) as u32, result as u32)));
        if is_source {
            self.sources.push(result as u32);
        }
    }

    /// What an instruction does with lists and options of texts.
    fn add_held(&mut self, m: &Module, c: &Characters, id: FnId, i: Inst, is_open: &[bool]) {
        let f = m.func(id);
        let data = f.inst(i);
        let node = |v: Value| (c.start[id.index()] + v.index()) as u32;
        let holds = |v: Value| holds_texts(&m.types, f.ty(v)) && f.as_const(v).is_none();
        let held = |v: &Value| holds(*v);
        let result = data.result().filter(held);
        if data.op == Op::Call && is_open[data.func().index()] {
            // That they fit goes both ways: parameters, results and arguments have one type.
            let callee = m.func(data.func());
            let params = f.args(i).iter().zip(&callee.params).filter(|(v, _)| holds(**v));
            self.edges.extend(params.map(|(&v, &(param, _))| {
                ((c.start[data.func().index()] + param.index()) as u32, node(v))
            }));
            if let Some(v) = result {
                let returned = c.result(data.func()) as u32;
                self.edges.extend([(returned, node(v)), (node(v), returned)]);
            }
            return;
        }
        let mut holders = f.args(i).iter().copied().filter(held).chain(result);
        let Some(first) = holders.next() else { return };
        let of_what = match data.op {
            Op::ArrNew | Op::ArrFrom | Op::EnumNew => data.ty,
            _ => f.args(i).first().map_or(data.ty, |&v| f.ty(v)),
        };
        if !works_with_codes(f, i) || !holds_texts(&m.types, of_what) {
            std::iter::once(first).chain(holders).for_each(|v| self.fits[node(v) as usize] = false);
            return;
        }
        for v in holders {
            self.edges.extend([(node(first), node(v)), (node(v), node(first))]);
        }
        for &v in f.args(i).iter().filter(|&&v| is_text(&m.types, f.ty(v))) {
            match data.op {
                Op::ArrContains => self.wishes.push((node(v), node(first))),
                _ => self.edges.push((node(v), node(first))),
            }
        }
    }

    /// Adds what is chosen among literals, and appended, to the sources: a code is appended without
    /// looking at a text.
    fn add_chosen(&mut self, m: &Module, c: &Characters) {
        self.made_of.sort_unstable();
        let is_literal = |n: u32| {
            let id = c.start.partition_point(|&start| start <= n as usize) - 1;
            let local = m.fns[id].locals.get(n as usize - c.start[id]);
            local.is_some_and(|local| matches!(local.def, ValueDef::Const(_)))
        };
        let mut seen = FxHashSet::default();
        for &appended in &self.appended {
            let mut nodes = vec![appended];
            let mut at = 0;
            let mut is_chosen = !seen.contains(&appended) && !is_literal(appended);
            while is_chosen && at < nodes.len() {
                let before = nodes.len();
                for from in targets(&self.made_of, nodes[at]) {
                    if !is_literal(from) && !nodes[..before].contains(&from) {
                        nodes.push(from);
                    }
                }
                let is_made = targets(&self.made_of, nodes[at]).next().is_some();
                is_chosen = is_made && nodes.len() <= MAX_CHOSEN;
                at += 1;
            }
            seen.insert(appended);
            if is_chosen {
                self.sources.extend(nodes);
            }
        }
    }

    /// Marks the nodes that a character comes to and nothing longer.
    fn find(mut self, is_code: &mut [bool]) {
        self.edges.sort_unstable();
        self.wishes.sort_unstable();
        let mut work: Vec<u32> =
            (0..self.fits.len() as u32).filter(|&n| !self.fits[n as usize]).collect();
        while let Some(n) = work.pop() {
            for to in targets(&self.edges, n) {
                if std::mem::replace(&mut self.fits[to as usize], false) {
                    work.push(to);
                }
            }
        }
        work.extend(self.sources.iter().filter(|&&n| self.fits[n as usize]));
        work.iter().for_each(|&n| is_code[n as usize] = true);
        while let Some(n) = work.pop() {
            for to in targets(&self.edges, n).chain(targets(&self.wishes, n)) {
                let fits = self.fits[to as usize];
                if fits && !std::mem::replace(&mut is_code[to as usize], true) {
                    work.push(to);
                }
            }
        }
    }
}
