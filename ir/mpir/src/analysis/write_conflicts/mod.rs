//! [`write_conflicts`]: whether invocations of a kernel write the same element.
//!
//! Three ways lead to an answer, for each pair of stores to one array and for each store with
//! itself:
//!
//! 1. A proof that holds for every launch ([`apart`]), from the indices as sums of digits of ids
//!    ([`forms`]) and the comparisons around the stores ([`facts`]).
//! 2. For launches that are known and small, and for shared arrays, all invocations one by one.
//! 3. Two invocations that do write the same element, among the first of the launch
//!    ([`invocations`]).

mod apart;
mod facts;
mod forms;
mod invocations;
mod paths;
mod polynomial;

use super::guards::Guards;
use super::{Cfg, Dominators, Loops, Positions};
use crate::{Block, Inst, MpirFn, Op, Value};
use apart::are_apart;
use facts::StoreFacts;
use forms::Forms;
use invocations::{Execution, Runs, Word};
use magpie_types::{PrimType, TypeCtx, TypeKind};
use paths::{Path, Paths};
use rustc_hash::FxHashMap;

/// What is known of the launches of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchDomain {
    /// The size of a workgroup.
    pub workgroup: [u32; 3],
    /// The number of workgroups in each dimension, when it is always the same.
    pub grid: Option<[u32; 3]>,
}

impl LaunchDomain {
    /// The declared workgroup size, and any number of workgroups.
    pub fn of(f: &MpirFn) -> LaunchDomain {
        let workgroup = f.gpu_meta.as_ref().map_or([64, 1, 1], |meta| meta.workgroup);
        LaunchDomain { workgroup, grid: None }
    }
}

/// One invocation of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Invocation {
    /// The position of its workgroup in the grid.
    pub workgroup: [u32; 3],
    /// Its position in the workgroup.
    pub thread: [u32; 3],
}

impl Invocation {
    /// Its global id in a dimension.
    pub fn global(&self, domain: LaunchDomain, dim: usize) -> u32 {
        self.workgroup[dim].wrapping_mul(domain.workgroup[dim]).wrapping_add(self.thread[dim])
    }
}

/// Two invocations that write one element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collision {
    /// The invocation that executes the store.
    pub first: Invocation,
    /// The other one.
    pub second: Invocation,
    /// The store that the other one executes, perhaps the same.
    pub other: Inst,
    /// The element, when it does not depend on the launch.
    pub element: Option<u64>,
    /// Whether both write the same value, so that the result is the same whichever comes last.
    pub is_same_value: bool,
}

/// What is known of the elements that a store writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteAnswer {
    /// No other invocation writes an element that this store writes.
    Unique,
    /// Whenever the first invocation executes the store, the second writes the same element, with
    /// no barrier that orders the two. (Unless the element lies outside of the array.)
    Collision(Collision),
    /// Neither is proved.
    Unknown,
}

/// The answer for a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreConflicts {
    /// The instruction.
    pub store: Inst,
    #[allow(missing_docs)]
    pub answer: WriteAnswer,
}

/// Arrays with more stores are not looked at.
const MAX_STORES: usize = 32;

/// Answers for each store of a closed kernel to a buffer or a shared array, in the order of the
/// text, whether another invocation writes the same element. For shared arrays that means another
/// invocation of the workgroup, with no barrier between. Atomic operations are no stores.
///
/// What the answers take for granted:
/// - Two parameters are two buffers.
/// - Index arithmetic with numbers that the launch decides does not wrap round, nor does an index
///   that grows with the size of the launch.
/// - When the grid is not known, the launch has one workgroup in the second and third dimension
///   unless the kernel reads the id there. In the first it has any number of them.
pub fn write_conflicts(f: &MpirFn, types: &TypeCtx, domain: LaunchDomain) -> Vec<StoreConflicts> {
    let stores: Vec<(Block, usize, Inst)> = f
        .block_ids()
        .flat_map(|b| f.block(b).insts.iter().enumerate().map(move |(n, &i)| (b, n, i)))
        .filter(|&(.., i)| matches!(f.inst(i).op, Op::GpuBufferStore | Op::GpuLeafStore))
        .collect();
    if stores.is_empty() {
        return Vec::new();
    }
    let cfg = Cfg::new(f);
    let dom = Dominators::new(&cfg);
    let loops = Loops::new(&cfg, &dom);
    let paths = Paths { f, cfg: &cfg, dom: &dom, loops: &loops };
    let barriers = paths.barriers_before();
    let mut arrays: Vec<(Value, Vec<Store>)> = Vec::new();
    for (block, n, inst) in stores.into_iter().filter(|&(b, ..)| cfg.is_reachable(b)) {
        let &[array, index, value] = f.args(inst) else { continue };
        let len = match types.kind(f.ty(array)) {
            TypeKind::Buffer(_) => None,
            TypeKind::SharedArray(_, len) => Some(len as u64),
            _ => continue,
        };
        let data = f.inst(inst);
        let is_signed = PrimType::from_id(f.ty(index)).is_some_and(|p| p.is_signed());
        let width = PrimType::from_id(f.ty(index)).map_or(64, |p| p.bit_width());
        let store = Store {
            inst,
            block,
            index,
            value,
            leaf: (data.op == Op::GpuLeafStore).then_some(data.imm),
            interval: barriers[block.index()].map(|before| before + paths.barriers(block, n)),
            len,
            sign: if is_signed { 1 << (width - 1) } else { 0 },
        };
        match arrays.iter_mut().find(|a| a.0 == array) {
            Some(known) => known.1.push(store),
            None => arrays.push((array, vec![store])),
        }
    }
    let positions = Positions::new(f);
    let mut guards = Guards::default();
    guards.compute(f, &cfg, &dom);
    let graph = Graph { paths, guards, positions, domain };
    let mut answers: Vec<StoreConflicts> = Vec::new();
    for (_, stores) in &arrays {
        if stores.len() > MAX_STORES || !loops.is_reducible() {
            let unknown =
                |s: &Store| StoreConflicts { store: s.inst, answer: WriteAnswer::Unknown };
            answers.extend(stores.iter().map(unknown));
        } else {
            answers.extend(graph.array(stores));
        }
    }
    let order: FxHashMap<Inst, usize> =
        f.blocks.iter().flat_map(|b| &b.insts).enumerate().map(|(n, &i)| (i, n)).collect();
    answers.sort_by_key(|a| order.get(&a.store).copied());
    answers
}

/// A store to an array.
struct Store {
    inst: Inst,
    block: Block,
    index: Value,
    value: Value,
    /// The scalar of a struct element, if only one is written.
    leaf: Option<u64>,
    /// The number of barriers before it, see [`Paths::barriers_before`].
    interval: Option<u32>,
    /// The length of a shared array.
    len: Option<u64>,
    /// The bit that makes an index negative.
    sign: u64,
}

impl Store {
    /// Whether an index may be that of an element.
    fn may_write(&self, index: Word) -> bool {
        let limit = self.len.unwrap_or(u32::MAX as u64);
        match index {
            Word::Bits(bits) => bits < limit && bits & self.sign == 0,
            Word::Name(_) => true,
        }
    }
}

struct Graph<'a> {
    paths: Paths<'a>,
    guards: Guards,
    positions: Positions,
    domain: LaunchDomain,
}

impl Graph<'_> {
    /// The answers for the stores to one array.
    fn array(&self, stores: &[Store]) -> Vec<StoreConflicts> {
        let is_shared = stores.iter().any(|s| s.len.is_some());
        let suspects = self.not_proved(stores, is_shared);
        let mut answers: Vec<WriteAnswer> = vec![WriteAnswer::Unique; stores.len()];
        if !suspects.is_empty() {
            let Paths { f, cfg, loops, .. } = self.paths;
            let mut runs = Runs::new(f, cfg, loops, &self.positions, self.domain, is_shared);
            let paths: Vec<Path> = stores.iter().map(|s| self.paths.of(s.block)).collect();
            let is_suspect = |n: usize| suspects.iter().any(|&(x, y)| x == n || y == n);
            let (mut certain, mut all) = (Vec::new(), Vec::new());
            for (n, store) in stores.iter().enumerate() {
                let is_suspect = is_suspect(n);
                all.push(is_suspect.then(|| runs.all(store, &paths[n])).flatten());
                certain.push(match is_suspect {
                    true => runs.certain(store, &paths[n]),
                    false => Vec::new(),
                });
            }
            for (x, y) in suspects {
                if let (Some(a), Some(b)) = (&all[x], &all[y])
                    && have_no_element_in_common(a, b)
                {
                    continue;
                }
                let interval = |n: usize| stores[n].interval;
                let is_ordered = x != y && (interval(x).is_none() || interval(x) != interval(y));
                let found = collision(&certain[x], &certain[y], is_ordered);
                let swapped = found.map(|(a, b)| (b, a));
                for (n, other, found) in [(y, x, swapped), (x, y, found)] {
                    if matches!(answers[n], WriteAnswer::Collision(_)) {
                        continue;
                    }
                    answers[n] = found.map_or(WriteAnswer::Unknown, |(a, b)| {
                        WriteAnswer::Collision(described(a, b, stores[other].inst))
                    });
                }
            }
        }
        let answers = stores.iter().zip(answers);
        answers.map(|(s, answer)| StoreConflicts { store: s.inst, answer }).collect()
    }

    /// The pairs of stores of which it is not proved that different invocations write different
    /// elements.
    fn not_proved(&self, stores: &[Store], is_shared: bool) -> Vec<(usize, usize)> {
        let Paths { f, cfg, dom, loops } = self.paths;
        let mut forms = Forms::new(f, cfg, self.domain, loops, &self.positions, is_shared);
        let facts = loop {
            let gather =
                |s: &Store| StoreFacts::gather(f, &mut forms, &self.guards, dom, s.block, s.index);
            let facts: Vec<StoreFacts> = stores.iter().map(gather).collect();
            if !forms.must_repeat() {
                break facts;
            }
        };
        let open = forms.open_sources();
        let mut suspects = Vec::new();
        for y in 0..stores.len() {
            for x in 0..=y {
                let (a, b) = (&stores[x], &stores[y]);
                let other_leaf = a.leaf.is_some() && b.leaf.is_some() && a.leaf != b.leaf;
                let is_settled = other_leaf
                    || is_shared && self.has_barrier_between(a, b)
                    || are_apart(&mut forms, &facts[x], &facts[y], &open);
                if !is_settled {
                    suspects.push((x, y));
                }
            }
        }
        suspects
    }

    /// Whether a barrier always separates two stores.
    fn has_barrier_between(&self, a: &Store, b: &Store) -> bool {
        let loops = self.paths.loops;
        let is_around_both = |l| loops.contains(l, a.block) && loops.contains(l, b.block);
        a.interval.is_some()
            && b.interval.is_some()
            && a.interval != b.interval
            && !loops.ids().any(is_around_both)
    }
}

fn have_no_element_in_common(a: &[(Invocation, u64)], b: &[(Invocation, u64)]) -> bool {
    // The writer of an element; `None` when there are several.
    let mut writer: FxHashMap<u64, Option<Invocation>> = FxHashMap::default();
    for &(invocation, element) in a {
        let known = writer.entry(element).or_insert(Some(invocation));
        *known = known.filter(|&known| known == invocation);
    }
    b.iter()
        .all(|(invocation, element)| writer.get(element).is_none_or(|w| *w == Some(*invocation)))
}

/// Two executions by different invocations that write the same element, one of each list.
/// `is_ordered` says that those of one workgroup do not count.
fn collision<'e>(
    first: &'e [Execution],
    second: &'e [Execution],
    is_ordered: bool,
) -> Option<(&'e Execution, &'e Execution)> {
    /// Writers of an element that are kept.
    const FEW: usize = 4;
    /// On which conditions something is written, and where.
    type Written<'e> = (&'e [(u32, u64)], Word);
    let mut writers: FxHashMap<Written, Vec<&Execution>> = FxHashMap::default();
    for e in first {
        let known = writers.entry((&e.conditions, e.index)).or_default();
        // Of several in one workgroup two are enough.
        let alike = known.iter().filter(|k| k.invocation.workgroup == e.invocation.workgroup);
        if alike.count() < 2 && known.len() < FEW {
            known.push(e);
        }
    }
    second.iter().find_map(|b| {
        let known = writers.get(&(&b.conditions[..], b.index))?;
        let (p, q) = (b.invocation, |a: &&&Execution| a.invocation);
        let meets = |a: &&&Execution| q(a) != p && !(is_ordered && q(a).workgroup == p.workgroup);
        known.iter().find(meets).map(|&a| (a, b))
    })
}

fn described(first: &Execution, second: &Execution, other: Inst) -> Collision {
    Collision {
        first: first.invocation,
        second: second.invocation,
        other,
        element: match first.index {
            Word::Bits(bits) => Some(bits),
            Word::Name(_) => None,
        },
        is_same_value: first.value.is_some() && first.value == second.value,
    }
}
