//! Which values are characters.

use crate::analysis::Cfg;
use crate::{Const, Domain, FnId, ImmKind, Inst, Module, MpirFn, Op, Terminator, Value, ValueDef};
use magpie_types::abi::RtFn;
use magpie_types::{RefMode, TypeCtx, TypeId, TypeKind, fixed};

/// Whether an instruction takes a character out of a text.
fn is_source(f: &MpirFn, i: Inst) -> bool {
    let data = f.inst(i);
    data.op == Op::RtCall && matches!(data.rt(), RtFn::StrCharAt | RtFn::StrCharFrom)
}

fn host_fns(m: &Module) -> impl Iterator<Item = FnId> {
    m.fn_ids().filter(|&id| m.func(id).domain == Domain::Host)
}

/// Whether there is anything to do.
pub(super) fn has_characters(m: &Module) -> bool {
    host_fns(m).any(|id| {
        let f = m.func(id);
        f.blocks.iter().flat_map(|b| &b.insts).any(|&i| is_source(f, i))
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

/// The code of a literal of at most one character.
pub(super) fn literal_code(text: &str) -> Option<i32> {
    use magpie_types::abi::object_layout::CODE_EMPTY;
    let mut chars = text.chars();
    let first = chars.next().map_or(CODE_EMPTY, |c| c as i32);
    chars.as_str().is_empty().then_some(first)
}

/// The values of all functions that are codes. Each value has a node, and so has what a function
/// returns.
pub(super) struct Characters {
    /// The first node of each function.
    start: Vec<usize>,
    is_code: Vec<bool>,
    params: Vec<Vec<Value>>,
}

impl Characters {
    /// Whether a value of the module, as it was looked at, becomes a code.
    pub(super) fn is_code(&self, f: FnId, v: Value) -> bool {
        let node = self.start[f.index()] + v.index();
        node < self.result(f) && self.is_code[node]
    }

    /// Whether parameter `n` of a function is a code.
    pub(super) fn takes_code(&self, f: FnId, n: usize) -> bool {
        self.params[f.index()].get(n).is_some_and(|&v| self.is_code(f, v))
    }

    /// Whether a function returns a code.
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
        let mut flow = Flow { fits: vec![false; nodes], sources: Vec::new(), edges: Vec::new() };
        let is_open = only_called(m);
        for id in host_fns(m) {
            flow.add_function(m, &characters, id, &is_open);
        }
        flow.edges.sort_unstable();
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
    /// Nodes of characters taken out of texts.
    sources: Vec<u32>,
    /// From a node to one that takes its text over.
    edges: Vec<(u32, u32)>,
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
        for &(v, ty) in &f.params {
            self.fits[node(v)] = is_open[id.index()] && is_text(&m.types, ty);
        }
        self.fits[c.result(id)] = is_open[id.index()] && f.ret_ty == fixed::STR;
        for block in &f.blocks {
            for &i in &block.insts {
                self.add_inst(m, c, id, i, is_open);
            }
            if let Terminator::Ret(Some(v)) = block.term {
                self.edges.push((node(v) as u32, c.result(id) as u32));
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
        let Some(result) = data.result().filter(|_| is_text(&m.types, data.ty)) else { return };
        let result = node(result);
        let is_source = is_source(f, i);
        let from: &[Value] = match data.op {
            Op::Phi | Op::BorrowShared => f.args(i),
            Op::RtCall if data.rt() == RtFn::HandleClone => f.args(i),
            Op::Call if is_open[data.func().index()] => {
                self.edges.push((c.result(data.func()) as u32, result as u32));
                &[]
            }
            _ if is_source => &[],
            _ => return,
        };
        self.fits[result] = true;
        self.edges.extend(from.iter().map(|&v| (node(v) as u32, result as u32)));
        if is_source {
            self.sources.push(result as u32);
        }
    }

    /// Marks the nodes that a character comes to and nothing longer.
    fn find(mut self, is_code: &mut [bool]) {
        let targets = |from: u32| {
            let start = self.edges.partition_point(|edge| edge.0 < from);
            self.edges[start..].iter().take_while(move |edge| edge.0 == from).map(|edge| edge.1)
        };
        let mut work: Vec<u32> =
            (0..self.fits.len() as u32).filter(|&n| !self.fits[n as usize]).collect();
        while let Some(n) = work.pop() {
            for to in targets(n) {
                if std::mem::replace(&mut self.fits[to as usize], false) {
                    work.push(to);
                }
            }
        }
        work.extend(self.sources.iter().filter(|&&n| self.fits[n as usize]));
        work.iter().for_each(|&n| is_code[n as usize] = true);
        while let Some(n) = work.pop() {
            for to in targets(n) {
                let fits = self.fits[to as usize];
                if fits && !std::mem::replace(&mut is_code[to as usize], true) {
                    work.push(to);
                }
            }
        }
    }
}
