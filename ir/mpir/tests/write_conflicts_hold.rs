//! What `write_conflicts` says is so: random kernels are run in the reference interpreter, with
//! stores replaced by a record of who wrote which element.
//!
//! Each store has a log with a word for each element, in which an invocation sets its bit. A store
//! that is unique shares no element with another invocation; of two that collide, the second wrote
//! the element if the first did.

use magpie_diag::FileId;
use magpie_interp::{Argument, Buffer, Launch, run_kernel};
use magpie_mpir::analysis::{
    Invocation, LaunchDomain, StoreConflicts, WriteAnswer, write_conflicts,
};
use magpie_mpir::testing::Rng;
use magpie_mpir::{FnId, Module, Stage, parse, verify_module};
use std::fmt::Write;

/// Elements of the array that is written.
const BUFFER_LEN: u64 = 1024;
const SHARED_LEN: u64 = 32;
const MAX_STORES: usize = 4;
const SHAPES: [[u32; 3]; 7] =
    [[4, 1, 1], [8, 1, 1], [3, 1, 1], [2, 2, 1], [4, 2, 1], [1, 1, 1], [2, 2, 2]];
const GRIDS: [[u32; 3]; 7] =
    [[1, 1, 1], [2, 1, 1], [5, 1, 1], [8, 1, 1], [2, 2, 1], [1, 3, 1], [2, 1, 2]];

/// A kernel in the making. Stores stand in its text as lines `STORE number index value segment`.
struct Sketch {
    rng: Rng,
    ty: &'static str,
    text: String,
    /// Values of type `ty`.
    pool: Vec<String>,
    names: usize,
    block: String,
    stores: usize,
    is_shared: bool,
    /// Barriers passed.
    segment: usize,
}

impl Sketch {
    fn new(seed: u64) -> Sketch {
        let mut rng = Rng::new(seed);
        let ty = rng.pick(&["u32", "u32", "i32", "u64"]).unwrap();
        let is_shared = rng.chance(30);
        let mut s = Sketch {
            rng,
            ty,
            text: String::new(),
            pool: Vec::new(),
            names: 0,
            block: "bb0".to_owned(),
            stores: 0,
            is_shared,
            segment: 0,
        };
        let ids = ["gpu.global_id dim=0", "gpu.global_id dim=1", "gpu.global_id dim=2"];
        let parts = ["gpu.thread_id dim=0", "gpu.workgroup_id dim=0", "gpu.thread_id dim=1"];
        let leaf = |s: &mut Sketch, op: &str| {
            let v = s.define("u32", op);
            let v = if ty == "u32" { v } else { s.define(ty, &format!("cast {v}")) };
            s.pool.push(v);
        };
        let number = if s.rng.chance(50) { 1 } else { 2 };
        for _ in 0..number {
            let op = match s.rng.below(10) {
                0..5 => ids[0],
                5 | 6 => ids[1 + s.rng.below(2)],
                _ => parts[s.rng.below(3)],
            };
            leaf(&mut s, op);
        }
        for param in ["%n", "%m"] {
            let v =
                if ty == "u32" { param.to_owned() } else { s.define(ty, &format!("cast {param}")) };
            s.pool.push(v);
        }
        if s.rng.chance(15) {
            leaf(&mut s, "gpu.num_workgroups dim=0");
        }
        s
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn define(&mut self, ty: &str, op: &str) -> String {
        let v = self.name();
        self.line(&format!("{v}: {ty} = {op}"));
        v
    }

    fn begin(&mut self, block: &str) {
        self.line(&format!("{block}:"));
        self.block = block.to_owned();
    }

    fn label(&mut self) -> String {
        self.names += 1;
        format!("bb{}", self.names)
    }

    fn constant(&mut self) -> String {
        let c = match self.rng.below(3) {
            0 => self.rng.below(4),
            1 => self.rng.below(17),
            _ => 1 << self.rng.below(5),
        };
        format!("{} {c}", self.ty)
    }

    fn value(&mut self) -> String {
        // The first are the ids, the last what was computed just now.
        let len = self.pool.len();
        let n = if self.rng.chance(40) {
            len - 1 - self.rng.below(len.min(2))
        } else {
            self.rng.below(len)
        };
        self.pool[n].clone()
    }

    fn any(&mut self) -> String {
        if self.rng.chance(35) { self.constant() } else { self.value() }
    }

    fn condition(&mut self) -> String {
        let signed = self.ty == "i32";
        let ops = match signed {
            true => ["icmp.eq", "icmp.slt", "icmp.sle", "icmp.sgt", "icmp.sge", "icmp.ne"],
            false => ["icmp.eq", "icmp.ult", "icmp.ule", "icmp.ugt", "icmp.uge", "icmp.ne"],
        };
        let op = if self.rng.chance(40) { ops[1] } else { self.rng.pick(&ops).unwrap() };
        let (x, y) = (self.value(), self.any());
        let c = self.define("bool", &format!("{op} {x}, {y}"));
        if self.rng.chance(25) {
            let other = self.condition();
            let join = if self.rng.chance(60) { "i.and" } else { "i.or" };
            return self.define("bool", &format!("{join} {c}, {other}"));
        }
        c
    }

    fn compute(&mut self) {
        let ty = self.ty;
        let signed = ty == "i32";
        let x = self.value();
        let op = match self.rng.below(16) {
            0..4 => format!("i.add {x}, {}", self.any()),
            4 => format!("i.sub {x}, {}", self.any()),
            5..8 => format!("i.mul {x}, {}", self.any()),
            8 => format!("i.shl {x}, {ty} {}", self.rng.below(4)),
            9 => format!("{} {x}, {}", if signed { "i.ashr" } else { "i.lshr" }, {
                format!("{ty} {}", self.rng.below(4))
            }),
            10 => format!("{} {x}, {}", if signed { "i.sdiv" } else { "i.udiv" }, self.constant()),
            11 => format!("{} {x}, {}", if signed { "i.srem" } else { "i.urem" }, self.constant()),
            12 => format!("i.and {x}, {ty} {}", self.rng.pick(&[1, 3, 7, 15, 12, 6]).unwrap()),
            13 => format!("i.or {x}, {}", self.any()),
            14 => match self.rng.below(4) {
                0 => {
                    let narrow = self.define("u8", &format!("cast {x}"));
                    format!("cast {narrow}")
                }
                1 => format!("i.xor {x}, {}", self.constant()),
                2 => format!("i.umin {x}, {}", self.any()),
                _ => {
                    let c = self.condition();
                    let y = self.any();
                    format!("select {c}, {x}, {y}")
                }
            },
            _ => {
                let loaded = self.define("u32", &format!("gpu.buffer_load %d, {x}"));
                if ty == "u32" {
                    self.pool.push(loaded);
                    return;
                }
                format!("cast {loaded}")
            }
        };
        let v = self.define(ty, &op);
        self.pool.push(v);
    }

    /// Row and column, or quotient and remainder, or some operations.
    fn index(&mut self) -> String {
        let ty = self.ty;
        let (x, y) = (self.pool[0].clone(), self.value());
        match self.rng.below(10) {
            0 | 1 => {
                let width = self.any();
                let row = self.define(ty, &format!("i.mul {y}, {width}"));
                self.define(ty, &format!("i.add {row}, {x}"))
            }
            2 => {
                let c = self.rng.pick(&[2, 3, 4, 8]).unwrap();
                let factor = c + self.rng.below(2) - self.rng.below(2);
                let (q, r) = match ty {
                    "i32" => ("i.sdiv", "i.srem"),
                    _ => ("i.udiv", "i.urem"),
                };
                let q = self.define(ty, &format!("{q} {x}, {ty} {c}"));
                let r = self.define(ty, &format!("{r} {x}, {ty} {c}"));
                let q = self.define(ty, &format!("i.mul {q}, {ty} {factor}"));
                self.define(ty, &format!("i.add {q}, {r}"))
            }
            3 => x,
            4 => self.constant(),
            _ => {
                for _ in 0..1 + self.rng.below(4) {
                    self.compute();
                }
                self.value()
            }
        }
    }

    fn store(&mut self) {
        if self.stores == MAX_STORES {
            return;
        }
        let index = self.index();
        let (n, segment) = (self.stores, self.segment);
        let value = if self.rng.chance(50) { "u32 1" } else { "%n" };
        self.line(&format!("STORE {n} {segment} {value} @ {index}"));
        self.stores += 1;
    }

    /// Something with stores in it, with values of its own.
    fn statement(&mut self, depth: usize) {
        let pool = self.pool.len();
        match self.rng.below(if depth == 0 { 1 } else { 8 }) {
            0..3 => self.store(),
            3 | 4 => self.branch(depth, false),
            5 => self.branch(depth, true),
            6 => self.counted(depth),
            _ if self.is_shared => self.store(),
            _ => {
                // Some are done.
                let (c, done, on) = (self.condition(), self.label(), self.label());
                self.line(&format!("cbr {c}, {done}, {on}"));
                self.begin(&done);
                self.line("ret");
                self.begin(&on);
                self.store();
            }
        }
        self.pool.truncate(pool);
    }

    fn branch(&mut self, depth: usize, has_else: bool) {
        let (then, other, join) = (self.label(), self.label(), self.label());
        let c = self.condition();
        let pool = self.pool.len();
        let no = if has_else { &other } else { &join };
        self.line(&format!("cbr {c}, {then}, {no}"));
        self.begin(&then);
        self.statement(depth - 1);
        self.pool.truncate(pool);
        self.line(&format!("br {join}"));
        if has_else {
            self.begin(&other);
            self.statement(depth - 1);
            self.pool.truncate(pool);
            self.line(&format!("br {join}"));
        }
        self.begin(&join);
    }

    fn counted(&mut self, depth: usize) {
        let ty = self.ty;
        let (head, body, end) = (self.label(), self.label(), self.label());
        let start = if self.rng.chance(50) { format!("{ty} 0") } else { self.any() };
        let params = self.pool.iter().position(|v| v == "%n").map_or(0, |n| n + 1);
        let bound = match self.rng.below(3) {
            0 if params > 0 => "%n".to_owned(),
            _ => format!("{ty} {}", self.rng.below(9)),
        };
        let step = match self.rng.below(4) {
            0 => {
                let from = self.value();
                self.define(ty, &format!("i.add {from}, {ty} 1"))
            }
            1 => format!("{ty} {}", 1 + self.rng.below(9)),
            _ => format!("{ty} 1"),
        };
        let (before, j, next, c) = (self.block.clone(), self.name(), self.name(), self.name());
        self.line(&format!("br {head}"));
        self.begin(&head);
        let less = if ty == "i32" { "icmp.slt" } else { "icmp.ult" };
        // The block in which the body ends is known later.
        self.line(&format!("{j}: {ty} = phi [{before}: {start}], [LATCH{j}: {next}]"));
        self.line(&format!("{c}: bool = {less} {j}, {bound}"));
        self.line(&format!("cbr {c}, {body}, {end}"));
        self.begin(&body);
        self.pool.push(j.clone());
        self.statement(depth - 1);
        let latch = self.block.clone();
        self.text = self.text.replace(&format!("LATCH{j}:"), &format!("{latch}:"));
        self.line(&format!("{next}: {ty} = i.add {j}, {step}"));
        self.line(&format!("br {head}"));
        self.begin(&end);
    }

    fn finish(mut self) -> Kernel {
        for _ in 0..1 + self.rng.below(2) {
            self.statement(2);
            if self.is_shared && self.rng.chance(40) {
                self.line("gpu.barrier");
                self.segment += 1;
            }
        }
        self.store();
        self.line("ret");
        let segments = self.segment + 1;
        let workgroup = self.rng.pick(&SHAPES).unwrap();
        Kernel {
            body: self.text,
            workgroup,
            ty: self.ty,
            is_shared: self.is_shared,
            segments,
            rng: self.rng,
        }
    }
}

struct Kernel {
    body: String,
    workgroup: [u32; 3],
    ty: &'static str,
    is_shared: bool,
    segments: usize,
    rng: Rng,
}

impl Kernel {
    fn module(&self, first: &str, store: impl Fn(&str, &str, &str, &str) -> String) -> Module {
        let [x, y, z] = self.workgroup;
        let mut text = String::from("gpu fn t.@k(%o: gpu.TBuffer<u32>, %d: gpu.TBuffer<u32>");
        for n in 0..MAX_STORES {
            let _ = write!(text, ", %log{n}: gpu.TBuffer<u64>");
        }
        let _ =
            write!(text, ", %n: u32, %m: u32) -> unit workgroup({x}, {y}, {z}) {{\nbb0:\n{first}");
        for line in self.body.lines() {
            match line.strip_prefix("STORE ") {
                Some(what) => {
                    let (what, index) = what.split_once(" @ ").unwrap();
                    let mut words = what.splitn(3, ' ');
                    let mut word = || words.next().unwrap();
                    let (n, segment, value) = (word(), word(), word());
                    text.push_str(&store(n, segment, value, index));
                }
                None => text.push_str(line),
            }
            text.push('\n');
        }
        text.push_str("}\n");
        let module = parse(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        verify_module(&module, Stage::Core).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        module
    }

    fn answers(&self, grid: Option<[u32; 3]>) -> Vec<StoreConflicts> {
        let first = match self.is_shared {
            true => format!("%s: shared_array<{SHARED_LEN}, u32> = gpu.shared\n"),
            false => String::new(),
        };
        let array = if self.is_shared { "%s" } else { "%o" };
        let module = self.module(&first, |_, _, value, index| {
            format!("gpu.buffer_store {array}, {index}, {value}")
        });
        let domain = LaunchDomain { workgroup: self.workgroup, grid };
        write_conflicts(&module.fns[0], &module.types, domain)
    }

    /// Elements of the array.
    fn len(&self) -> u64 {
        if self.is_shared { SHARED_LEN } else { BUFFER_LEN }
    }

    /// The log of each store: for each element of each copy of the array who wrote it. `None` when
    /// the kernel does not come to an end.
    fn run(&self, grid: [u32; 3], numbers: [u32; 2], data: &[u8]) -> Option<Vec<Vec<u64>>> {
        let ([x, y, z], [gx, gy, gz]) = (self.workgroup, grid);
        let groups = (gx * gy * gz) as u64;
        let mut first = String::new();
        for (name, op) in [("t", "thread_id"), ("g", "workgroup_id")] {
            for d in 0..3 {
                let _ = writeln!(first, "%{name}{d}: u32 = gpu.{op} dim={d}");
            }
        }
        let _ = writeln!(
            first,
            "%a0: u32 = i.mul %t2, u32 {y}\n%a1: u32 = i.add %a0, %t1
             %a2: u32 = i.mul %a1, u32 {x}\n%local: u32 = i.add %a2, %t0
             %b0: u32 = i.mul %g2, u32 {gy}\n%b1: u32 = i.add %b0, %g1
             %b2: u32 = i.mul %b1, u32 {gx}\n%group: u32 = i.add %b2, %g0
             %c0: u32 = i.mul %group, u32 {}\n%linear: u32 = i.add %c0, %local
             %who: u64 = cast {}\n%bit: u64 = i.shl u64 1, %who\n%copy: u64 = cast %group",
            x * y * z,
            if self.is_shared { "%local" } else { "%linear" }
        );
        let len = self.len();
        let module = self.module(&first, |n, segment, _, index| {
            let copy = match self.is_shared {
                true => format!(
                    "%s{n}a: u64 = i.add %copy, u64 {}\n%s{n}b: u64 = i.mul %s{n}a, u64 {len}",
                    segment.parse::<u64>().unwrap() * groups
                ),
                false => format!("%s{n}b: u64 = i.mul %copy, u64 0"),
            };
            let wide = match self.ty {
                "u64" => format!("i.add {index}, u64 0"),
                _ => format!("cast {index}"),
            };
            format!(
                "{copy}
                 %s{n}w: u64 = {wide}
                 %s{n}in: bool = icmp.ult %s{n}w, u64 {len}
                 %s{n}at: u64 = i.add %s{n}b, %s{n}w
                 %s{n}e: u64 = select %s{n}in, %s{n}at, u64 {}
                 %s{n}r: u64 = gpu.atomic.or %log{n}, %s{n}e, %bit",
                u64::MAX
            )
        });
        let copies = if self.is_shared { groups * self.segments as u64 } else { 1 };
        let mut bytes = vec![vec![0; 4], data.to_vec()];
        bytes.resize(2 + MAX_STORES, vec![0; (len * copies * 8) as usize]);
        let mut arguments: Vec<Argument> = (0..bytes.len()).map(Argument::Buffer).collect();
        arguments.extend(numbers.map(|n| Argument::Scalar(n.to_le_bytes().to_vec())));
        let mut buffers: Vec<Buffer> = bytes.iter_mut().map(|bytes| Buffer { bytes }).collect();
        let launch = Launch { max_steps: 20_000, ..Launch::new(grid, self.workgroup) };
        run_kernel(&module, FnId(0), launch, &arguments, &mut buffers, &mut |_| {}).ok()?;
        let word = |w: &[u8]| u64::from_le_bytes(w.try_into().unwrap());
        Some(bytes[2..].iter().map(|log| log.chunks(8).map(word).collect()).collect())
    }

    /// The bit of an invocation in the logs.
    fn bit(&self, i: Invocation, grid: [u32; 3]) -> u64 {
        let linear = |at: [u32; 3], size: [u32; 3]| (at[2] * size[1] + at[1]) * size[0] + at[0];
        let local = linear(i.thread, self.workgroup);
        let before = linear(i.workgroup, grid) * self.workgroup.iter().product::<u32>();
        1 << (if self.is_shared { local } else { before + local })
    }
}

#[derive(Default, Debug)]
struct Counts {
    unique: usize,
    collisions: usize,
    unknown: usize,
    /// Collisions of which both writes were seen.
    seen: usize,
    launches: usize,
}

fn check(
    k: &Kernel,
    answers: &[StoreConflicts],
    logs: &[Vec<u64>],
    grid: [u32; 3],
    counts: &mut Counts,
) {
    for (n, s) in answers.iter().enumerate() {
        let elements = 0..logs[n].len();
        match s.answer {
            WriteAnswer::Unique => {
                for (m, e) in (0..answers.len()).flat_map(|m| elements.clone().map(move |e| (m, e)))
                {
                    let (a, b) = (logs[n][e], logs[m][e]);
                    let is_apart = a == 0 || b == 0 || (a == b && a.is_power_of_two());
                    assert!(is_apart, "store {n}, with {m} at {e}: {a:b} {b:b}, grid {grid:?}");
                }
            }
            WriteAnswer::Collision(c) => {
                let m = answers.iter().position(|other| other.store == c.other).unwrap();
                let (p, q) = (k.bit(c.first, grid), k.bit(c.second, grid));
                assert_ne!(p, q, "{c:?}");
                // In every workgroup, for shared memory.
                for e in elements {
                    if c.element.is_none_or(|wanted| e as u64 % k.len() == wanted)
                        && logs[n][e] & p != 0
                        && (c.element.is_some() || logs[m][e] & q != 0)
                    {
                        assert_ne!(logs[m][e] & q, 0, "store {n} at {e}: {c:?}, grid {grid:?}");
                        counts.seen += 1;
                    }
                }
                let wrote = |log: &[u64], bit: u64| log.iter().any(|w| w & bit != 0);
                if wrote(&logs[n], p) && c.element.is_none_or(|e| e < k.len()) {
                    assert!(wrote(&logs[m], q), "store {n}: {c:?}, grid {grid:?}");
                }
            }
            WriteAnswer::Unknown => {}
        }
    }
}

#[test]
fn answers_hold() {
    let mut counts = Counts::default();
    for seed in 0..6000 {
        let mut k = Sketch::new(seed).finish();
        let reads = |d: usize| {
            ["global_id", "workgroup_id"]
                .iter()
                .any(|id| k.body.contains(&format!("gpu.{id} dim={d}")))
        };
        let is_read = [true, reads(1), reads(2)];
        let knows_grid = k.rng.chance(40);
        let mut answers = if knows_grid { Vec::new() } else { k.answers(None) };
        for _ in 0..3 {
            let grid = k.rng.pick(&GRIDS).unwrap();
            let total: u32 = grid.iter().chain(&k.workgroup).product();
            let is_expected = knows_grid || (0..3).all(|d| is_read[d] || grid[d] == 1);
            if total > 64 || !is_expected {
                continue;
            }
            if knows_grid {
                answers = k.answers(Some(grid));
            }
            let numbers = [k.rng.below(10) as u32, k.rng.below(10) as u32];
            let data: Vec<u8> =
                (0..40).flat_map(|_| (k.rng.below(20) as u32).to_le_bytes()).collect();
            let Some(logs) = k.run(grid, numbers, &data) else { continue };
            counts.launches += 1;
            let result = std::panic::catch_unwind(|| {
                let mut seen = Counts::default();
                check(&k, &answers, &logs, grid, &mut seen);
                seen.seen
            });
            match result {
                Ok(seen) => counts.seen += seen,
                Err(_) => panic!(
                    "seed {seed}, workgroup {:?}, grid {grid:?} (known: {knows_grid}), n, m = \
                     {numbers:?}, shared: {}\n{}",
                    k.workgroup, k.is_shared, k.body
                ),
            }
        }
        for s in &answers {
            match s.answer {
                WriteAnswer::Unique => counts.unique += 1,
                WriteAnswer::Collision(_) => counts.collisions += 1,
                WriteAnswer::Unknown => counts.unknown += 1,
            }
        }
    }
    let enough = counts.unique > 1000 && counts.collisions > 1000 && counts.seen > 1000;
    assert!(enough && counts.launches > 5000, "{counts:?}");
}
