//! Random loops of lowered host code over memory.

use super::Rng;
use magpie_types::PrimType;
use std::fmt::Write;

/// A module with a function `@main(a, b, c, three lengths, from, to) -> i64`, as text.
#[derive(Clone, Debug)]
pub struct LoopProgram {
    #[allow(missing_docs)]
    pub text: String,
    /// The element type of the arrays `a` and `b`.
    pub first: PrimType,
    /// The element type of the array `c`.
    pub second: PrimType,
}

const TYPES: &[PrimType] = &[
    PrimType::I8,
    PrimType::U8,
    PrimType::I16,
    PrimType::U16,
    PrimType::I32,
    PrimType::U32,
    PrimType::I64,
    PrimType::U64,
    PrimType::F32,
    PrimType::F64,
    PrimType::I32,
    PrimType::I64,
    PrimType::F32,
    PrimType::F64,
];
const INT_OPS: &[&str] = &[
    "i.add", "i.sub", "i.mul", "i.and", "i.or", "i.xor", "i.smin", "i.smax", "i.umin", "i.umax",
    "i.add", "i.sub",
];
const SHIFTS: &[&str] = &["i.shl", "i.lshr", "i.ashr"];
const FLOAT_OPS: &[&str] = &["f.add", "f.sub", "f.mul", "f.div", "f.min", "f.max"];
const FLOAT_UNARY: &[&str] =
    &["f.neg", "f.abs", "f.sqrt", "f.floor", "f.ceil", "f.trunc", "f.round"];
const REDUCTIONS: &[&str] =
    &["i.add", "i.mul", "i.and", "i.or", "i.xor", "i.smin", "i.smax", "i.umin", "i.umax"];
const INT_COMPARES: &[&str] = &[
    "icmp.eq", "icmp.ne", "icmp.slt", "icmp.sgt", "icmp.sle", "icmp.sge", "icmp.ult", "icmp.ugt",
    "icmp.ule", "icmp.uge",
];
const FLOAT_COMPARES: &[&str] = &[
    "fcmp.oeq", "fcmp.olt", "fcmp.ogt", "fcmp.ole", "fcmp.oge", "fcmp.une", "fcmp.ord", "fcmp.uno",
    "fcmp.ult", "fcmp.one",
];

/// The loop of a seed: `for i in from..to` over statements that store, reduce or choose.
pub fn random_loop(seed: u64) -> LoopProgram {
    let mut rng = Rng::new(seed);
    let first = rng.pick(TYPES).unwrap_or(PrimType::I64);
    let second = match rng.below(100) {
        0..50 => first,
        50..60 => PrimType::Bool,
        _ => rng.pick(TYPES).unwrap_or(first),
    };
    let mut g = Generator {
        rng,
        body: String::new(),
        ends: String::new(),
        block: "body".to_owned(),
        values: 0,
        blocks: 0,
        types: [first, first, second],
    };
    let mut carried = Vec::new();
    for _ in 0..1 + g.rng.below(3) {
        g.statement(&mut carried);
    }
    LoopProgram { text: g.finish(&carried), first, second }
}

/// A value that the loop carries: its name, type, first value, and the value behind a round.
struct Carried {
    name: String,
    ty: PrimType,
    first: String,
    last: String,
}

struct Generator {
    rng: Rng,
    body: String,
    /// The blocks in which checks end the program.
    ends: String,
    /// The current block.
    block: String,
    values: usize,
    blocks: usize,
    /// Of the arrays.
    types: [PrimType; 3],
}

impl Generator {
    fn inst(&mut self, ty: PrimType, text: &str) -> String {
        self.values += 1;
        let name = format!("%v{}", self.values);
        let _ = writeln!(self.body, "  {name}: {} = {text}", ty.name());
        name
    }

    fn pick(&mut self, things: &[&'static str]) -> &'static str {
        self.rng.pick(things).unwrap_or(things[0])
    }

    fn new_block(&mut self) -> String {
        self.blocks += 1;
        format!("b{}", self.blocks)
    }

    fn start(&mut self, block: String) {
        let _ = writeln!(self.body, "{block}:");
        self.block = block;
    }

    fn constant(&mut self, ty: PrimType) -> String {
        let number = self.rng.below(24) as i64 - 6;
        let bits = match ty {
            PrimType::F32 => u64::from((number as f32 * 1.5).to_bits()),
            PrimType::F64 => (number as f64 * 1.5).to_bits(),
            _ => number as u64 & ty.mask(),
        };
        match ty {
            PrimType::F32 => format!("f32 0x{bits:08x}"),
            PrimType::F64 => format!("f64 0x{bits:016x}"),
            _ if ty.is_signed() => {
                let shift = 64 - ty.bit_width();
                format!("{} {}", ty.name(), (bits << shift) as i64 >> shift)
            }
            _ => format!("{} {bits}", ty.name()),
        }
    }

    /// The address of an element near that of the counter, behind a check of its index.
    fn element(&mut self, array: usize) -> String {
        let index = match self.rng.below(100) {
            0..60 => "%i".to_owned(),
            60..88 => {
                let distance = 1 + self.rng.below(6);
                let op = if self.rng.chance(50) { "i.add" } else { "i.sub" };
                self.inst(PrimType::I64, &format!("{op} %i, i64 {distance}"))
            }
            88..92 => {
                let last = self.inst(PrimType::I64, "i.sub %to, i64 1");
                self.inst(PrimType::I64, &format!("i.sub {last}, %i"))
            }
            92..96 => self.inst(PrimType::I64, "i.mul %i, i64 2"),
            _ => format!("i64 {}", self.rng.below(4)),
        };
        let length = format!("%l{array}");
        let inside = self.inst(PrimType::Bool, &format!("icmp.ult {index}, {length}"));
        let (next, end) = (self.new_block(), self.new_block());
        let _ = writeln!(self.body, "  cbr {inside}, {next}, {end}");
        let _ = writeln!(
            self.ends,
            "{end}:\n  rt.raw rt=mp_rt_panic_builtin i32 2, rawptr<u8> zero, {index}, {length}\n  \
             unreachable"
        );
        self.start(next);
        let size = self.types[array].size();
        let bytes = self.inst(PrimType::I64, &format!("i.mul {index}, i64 {size}"));
        self.values += 1;
        let address = format!("%v{}", self.values);
        let _ = writeln!(self.body, "  {address}: rawptr<u8> = ptr.add %a{array}, {bytes}");
        address
    }

    /// A value of a type.
    fn value(&mut self, ty: PrimType, depth: usize) -> String {
        if ty == PrimType::Bool {
            return self.condition(depth);
        }
        let choice = if depth == 0 { self.rng.below(50) } else { self.rng.below(100) };
        let is_float = ty.is_float();
        match choice {
            0..35 => {
                let arrays: Vec<usize> = (0..3).filter(|&a| self.types[a] == ty).collect();
                match self.rng.pick(&arrays) {
                    Some(array) => {
                        let address = self.element(array);
                        self.inst(ty, &format!("mem.load {address}"))
                    }
                    None => {
                        let from = self.types[self.rng.below(3)];
                        let x = self.value(from, 0);
                        if from == ty { x } else { self.inst(ty, &format!("cast {x}")) }
                    }
                }
            }
            35..45 => self.constant(ty),
            45..50 if ty == PrimType::I64 => "%i".to_owned(),
            45..50 => self.inst(ty, "cast %i"),
            50..56 if is_float => {
                let op = self.pick(FLOAT_UNARY);
                let x = self.value(ty, depth - 1);
                self.inst(ty, &format!("{op} {x}"))
            }
            50..56 => {
                let op = self.pick(SHIFTS);
                let x = self.value(ty, depth - 1);
                let amount = self.rng.below(ty.bit_width() as usize + 2);
                self.inst(ty, &format!("{op} {x}, {} {amount}", ty.name()))
            }
            56..68 => {
                let (x, y) = (self.value(ty, depth - 1), self.value(ty, depth - 1));
                let cond = self.condition(depth - 1);
                self.inst(ty, &format!("select {cond}, {x}, {y}"))
            }
            68..76 => {
                let (x, y) = (self.value(ty, depth - 1), self.value(ty, depth - 1));
                let cond = self.condition(0);
                self.meet(ty, &cond, &x, &y)
            }
            _ => {
                let op = self.pick(if is_float { FLOAT_OPS } else { INT_OPS });
                let (x, y) = (self.value(ty, depth - 1), self.value(ty, depth - 1));
                self.inst(ty, &format!("{op} {x}, {y}"))
            }
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let array = self.rng.below(3);
        let of = self.types[array];
        let cond = if of == PrimType::Bool {
            let address = self.element(array);
            self.inst(of, &format!("mem.load {address}"))
        } else {
            let op = self.pick(if of.is_float() { FLOAT_COMPARES } else { INT_COMPARES });
            let (x, y) = (self.value(of, 0), self.value(of, 0));
            self.inst(PrimType::Bool, &format!("{op} {x}, {y}"))
        };
        if depth == 0 || self.rng.chance(70) {
            return cond;
        }
        let other = self.condition(depth - 1);
        let op = self.pick(&["i.and", "i.or", "i.xor"]);
        self.inst(PrimType::Bool, &format!("{op} {cond}, {other}"))
    }

    /// The phi behind a branch: `x` when the condition is true, else `y`.
    fn meet(&mut self, ty: PrimType, cond: &str, x: &str, y: &str) -> String {
        let (way, meet) = (self.new_block(), self.new_block());
        let from = self.block.clone();
        let _ = writeln!(self.body, "  cbr {cond}, {way}, {meet}\n{way}:\n  br {meet}");
        self.start(meet);
        self.inst(ty, &format!("phi [{way}: {x}], [{from}: {y}]"))
    }

    fn statement(&mut self, carried: &mut Vec<Carried>) {
        if self.rng.chance(55) {
            let array = self.rng.below(3);
            let depth = 1 + self.rng.below(2);
            let value = self.value(self.types[array], depth);
            let address = self.element(array);
            if self.rng.chance(70) {
                let _ = writeln!(self.body, "  mem.store {address}, {value}");
                return;
            }
            // In some rounds only; in some of the programs it is looked at in all.
            if self.rng.chance(80) {
                self.inst(self.types[array], &format!("mem.load {address}"));
            }
            let cond = self.condition(1);
            let (way, meet) = (self.new_block(), self.new_block());
            let ways = if self.rng.chance(50) { [&way, &meet] } else { [&meet, &way] };
            let _ = writeln!(self.body, "  cbr {cond}, {}, {}\n{way}:", ways[0], ways[1]);
            let _ = writeln!(self.body, "  mem.store {address}, {value}\n  br {meet}");
            self.start(meet);
            return;
        }
        let is_float = self.rng.chance(10);
        let ints: Vec<PrimType> = self.types.iter().copied().filter(|p| p.is_int()).collect();
        let ty = match self.rng.pick(&ints).filter(|_| self.rng.chance(70)) {
            _ if is_float => PrimType::F64,
            Some(ty) => ty,
            None => PrimType::I64,
        };
        let name = format!("%c{}", carried.len());
        let first = self.constant(ty);
        let x = self.value(ty, 1);
        let last = match self.rng.below(100) {
            _ if is_float => self.inst(ty, &format!("f.add {name}, {x}")),
            // The largest or least by a branch.
            0..25 => {
                let op = self.pick(INT_COMPARES);
                let cond = self.inst(PrimType::Bool, &format!("{op} {x}, {name}"));
                self.meet(ty, &cond, &x, &name)
            }
            25..50 => {
                let op = self.pick(REDUCTIONS);
                let cond = self.condition(0);
                let next = self.inst(ty, &format!("{op} {name}, {x}"));
                self.meet(ty, &cond, &next, &name)
            }
            50..60 => self.inst(ty, &format!("i.sub {name}, {x}")),
            _ => {
                let op = self.pick(REDUCTIONS);
                self.inst(ty, &format!("{op} {name}, {x}"))
            }
        };
        carried.push(Carried { name, ty, first, last });
    }

    fn finish(self, carried: &[Carried]) -> String {
        let mut out = String::from(
            "lowhost fn @main(%a0: rawptr<u8>, %a1: rawptr<u8>, %a2: rawptr<u8>, %l0: i64, \
             %l1: i64, %l2: i64, %from: i64, %to: i64) -> i64 {\ne:\n  br head\nhead:\n",
        );
        let latch = &self.block;
        let _ = writeln!(out, "  %i: i64 = phi [e: %from], [{latch}: %next]");
        for c in carried {
            let (name, ty) = (&c.name, c.ty.name());
            let _ = writeln!(out, "  {name}: {ty} = phi [e: {}], [{latch}: {}]", c.first, c.last);
        }
        out.push_str("  %more: bool = icmp.slt %i, %to\n  cbr %more, body, done\nbody:\n");
        out.push_str(&self.body);
        out.push_str("  %next: i64 = i.add %i, i64 1\n  br head\ndone:\n");
        let mut result = "%i".to_owned();
        for (n, c) in carried.iter().enumerate() {
            let (name, ty) = (&c.name, c.ty);
            let word = match ty {
                PrimType::I64 => name.clone(),
                PrimType::F64 => {
                    let _ = writeln!(out, "  %w{n}: i64 = bits.cast {name}");
                    format!("%w{n}")
                }
                _ => {
                    let _ = writeln!(out, "  %w{n}: i64 = cast {name}");
                    format!("%w{n}")
                }
            };
            let _ = writeln!(out, "  %p{n}: i64 = i.mul {result}, i64 31");
            let _ = writeln!(out, "  %r{n}: i64 = i.add %p{n}, {word}");
            result = format!("%r{n}");
        }
        let _ = writeln!(out, "  ret {result}");
        out.push_str(&self.ends);
        out.push_str("}\n");
        out
    }
}
