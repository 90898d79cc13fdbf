//! [`MemoryClasses`]: which accesses may touch the same memory.

use super::own_arrays::OwnArrays;
use crate::{Domain, Flags, Inst, Memory, MpirFn, Op, Value};
use magpie_types::{TypeCtx, TypeId, TypeKind};

/// A set of memory classes; accesses of different classes never touch the same memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ClassSet(pub u64);

impl ClassSet {
    /// No memory.
    pub const NONE: ClassSet = ClassSet(0);
    /// All memory.
    pub const ALL: ClassSet = ClassSet(u64::MAX);

    /// The memory of either.
    pub fn union(self, other: ClassSet) -> ClassSet {
        ClassSet(self.0 | other.0)
    }

    /// Whether a class is in both.
    pub fn intersects(self, other: ClassSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no class is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The numbers of the classes.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let next = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(next)
        })
    }
}

/// What an instruction does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Effects {
    /// Classes it may read.
    pub reads: ClassSet,
    /// Classes it may write, or order against accesses of others.
    pub writes: ClassSet,
}

/// The memory of a function, divided into classes.
///
/// Buffers with the same element type are one class: two parameters may be one buffer. Every
/// shared and every local array is a class of its own, unless arrays come in as parameters; then
/// all arrays of that space are one. When there are too many classes, the last ones are one. Host
/// memory is two classes, what describes objects ([`Flags::HEADER`]) and all else, and two for each
/// array that only the function itself reaches: the object, and its elements.
#[derive(Clone, Default, Debug)]
pub struct MemoryClasses {
    of_value: Vec<u8>,
    elements: Vec<TypeId>,
    count: u32,
    /// Classes that only one invocation sees; fences do not order them.
    private: ClassSet,
    is_host: bool,
    own_arrays: OwnArrays,
}

const MAX_CLASSES: u32 = 64;
const UNKNOWN: u8 = u8::MAX;
/// Host memory but for the headers of objects.
const HOST: ClassSet = ClassSet(1);
const HOST_HEADERS: ClassSet = ClassSet(2);
/// Classes of the host before those of the function's own arrays.
const HOST_CLASSES: usize = 2;

/// The object of an array that only the function reaches.
fn own_object(array: usize) -> ClassSet {
    ClassSet(1 << (HOST_CLASSES + 2 * array))
}

/// The elements of such an array.
fn own_elements(array: usize) -> ClassSet {
    ClassSet(2 << (HOST_CLASSES + 2 * array))
}

impl MemoryClasses {
    /// The classes of a function.
    pub fn new(f: &MpirFn, types: &TypeCtx) -> MemoryClasses {
        let mut m = MemoryClasses::default();
        m.compute(f, types);
        m
    }

    /// Recomputes the classes, reusing memory.
    pub fn compute(&mut self, f: &MpirFn, types: &TypeCtx) {
        self.of_value.clear();
        self.of_value.resize(f.locals.len(), UNKNOWN);
        self.elements.clear();
        self.count = 0;
        self.private = ClassSet::NONE;
        self.is_host = f.domain != Domain::Device;
        if self.is_host {
            self.own_arrays.compute(f);
            self.count = (HOST_CLASSES + 2 * self.own_arrays.count()) as u32;
            return;
        }
        self.own_arrays.clear();
        let (mut shared, mut local) = (None, None);
        for &(v, ty) in &f.params {
            let class = match types.kind(ty) {
                TypeKind::Buffer(elem) => match self.elements.iter().position(|&e| e == elem) {
                    Some(class) => class as u8,
                    None => {
                        self.elements.push(elem);
                        self.new_class()
                    }
                },
                TypeKind::SharedArray(..) => *shared.get_or_insert_with(|| self.new_class()),
                TypeKind::LocalArray(..) => *local.get_or_insert_with(|| self.new_class()),
                _ => continue,
            };
            self.of_value[v.index()] = class;
        }
        for &i in f.blocks.iter().flat_map(|b| &b.insts) {
            let inst = f.inst(i);
            if inst.op != Op::GpuShared && inst.op != Op::GpuLocal {
                continue;
            }
            let class = if inst.op == Op::GpuShared { shared } else { local };
            let class = class.unwrap_or_else(|| self.new_class());
            if inst.op == Op::GpuLocal {
                self.private = self.private.union(ClassSet(1 << class));
            }
            if let Some(v) = inst.result() {
                self.of_value[v.index()] = class;
            }
        }
        // The last class is many things when the numbers have run out.
        if self.count == MAX_CLASSES {
            self.private.0 &= !(1 << (MAX_CLASSES - 1));
        }
    }

    fn new_class(&mut self) -> u8 {
        self.count = (self.count + 1).min(MAX_CLASSES);
        self.count as u8 - 1
    }

    /// Number of classes, at most 64.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// The memory that a buffer or array names; everything when that is not known.
    pub fn of(&self, v: Value) -> ClassSet {
        match self.of_value.get(v.index()) {
            Some(&class) if class != UNKNOWN => ClassSet(1 << class),
            _ if self.is_host => HOST,
            _ => ClassSet::ALL,
        }
    }

    /// Whether an address is the handle of an object that only the function reaches: what is accessed
    /// there belongs to the object itself.
    pub(crate) fn is_own_object(&self, address: Value) -> bool {
        self.own_arrays.of_handle(address).is_some()
    }

    /// What an instruction of the host does to memory that only the function reaches; `None` when it
    /// does something to other memory.
    fn own_effects(&self, f: &MpirFn, i: Inst) -> Option<Effects> {
        let own = &self.own_arrays;
        if let Some(array) = own.is_all_that_changes(f, i) {
            let writes = own_object(array).union(own_elements(array));
            return Some(Effects { reads: ClassSet::ALL, writes });
        }
        let is_access = matches!(f.inst(i).op, Op::MemLoad | Op::MemStore);
        let address = *f.args(i).first().filter(|_| is_access)?;
        let class = match own.of_handle(address) {
            Some(array) => own_object(array),
            None => own_elements(own.of_element(f, address)?),
        };
        Some(match f.inst(i).op {
            Op::MemLoad => Effects { reads: class, writes: ClassSet::NONE },
            _ => Effects { reads: ClassSet::NONE, writes: class },
        })
    }

    /// What may change in a host function where anything may happen: of arrays that only the function
    /// reaches, those that it gives for that.
    fn reached(&self, f: &MpirFn, i: Inst) -> ClassSet {
        let inst = f.inst(i);
        let others = match inst.op {
            Op::RtRaw if inst.rt().keeps_headers() => HOST,
            _ => HOST.union(HOST_HEADERS),
        };
        let given = f.args(i).iter().filter_map(|&v| self.own_arrays.of_handle(v));
        given.fold(others, |all, array| all.union(own_object(array)).union(own_elements(array)))
    }

    /// What an instruction does.
    pub fn effects(&self, f: &MpirFn, i: Inst) -> Effects {
        let inst = f.inst(i);
        if self.own_arrays.count() > 0
            && let Some(effects) = self.own_effects(f, i)
        {
            return effects;
        }
        if inst.flags.contains(Flags::HEADER) {
            // A load of a header that is not marked may follow.
            let both = HOST.union(HOST_HEADERS);
            return match inst.op.info().memory {
                Memory::Read => Effects { reads: HOST_HEADERS, writes: ClassSet::NONE },
                _ => Effects { reads: ClassSet::NONE, writes: both },
            };
        }
        if inst.op == Op::RtRaw && inst.rt().only_reads() {
            return Effects { reads: ClassSet::ALL, writes: ClassSet::NONE };
        }
        let named = || match (inst.op, f.args(i).first()) {
            (Op::GpuLocal, _) => inst.result().map_or(ClassSet::ALL, |v| self.of(v)),
            (_, Some(&v)) => self.of(v),
            (_, None) => ClassSet::ALL,
        };
        match inst.op.info().memory {
            Memory::None => Effects::default(),
            Memory::Read => Effects { reads: named(), writes: ClassSet::NONE },
            Memory::Write => Effects { reads: ClassSet::NONE, writes: named() },
            Memory::Atomic => Effects { reads: named(), writes: named() },
            Memory::Fence => {
                let visible = ClassSet(!self.private.0);
                Effects { reads: visible, writes: visible }
            }
            Memory::Any if self.is_host => {
                Effects { reads: ClassSet::ALL, writes: self.reached(f, i) }
            }
            Memory::Any => Effects { reads: ClassSet::ALL, writes: ClassSet::ALL },
        }
    }
}
