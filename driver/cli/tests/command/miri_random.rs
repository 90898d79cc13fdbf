//! Random Miri: a loop on the host and the same body as a kernel compute the same.

use std::fmt::Write;

use crate::support::{Place, has_vulkan};

/// A generator of numbers that gives the same ones every time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    /// An `i32` of the names in scope.
    fn number(&mut self, depth: usize, names: &[&str]) -> String {
        if depth == 0 {
            let constants = ["0", "1", "-1", "7", "-13", "65537", "2147483647", "-2147483648"];
            return match self.below(3) {
                0 => format!("({} as i32)", self.pick(&constants)),
                _ => self.pick(names).to_string(),
            };
        }
        let a = self.number(depth - 1, names);
        let b = self.number(depth - 1, names);
        match self.below(9) {
            0..3 => format!("({a} {} {b})", self.pick(&["+", "-", "*"])),
            3 => format!("({a} {} {b})", self.pick(&["&", "|", "^"])),
            4 => format!("({a} {} ({b} | 1))", self.pick(&["/", "%"])),
            5 => format!("({a} if {} else {b})", self.condition(depth - 1, names)),
            6 => format!("{}({a}, {b})", self.pick(&["min", "max"])),
            7 => format!("(({a} as u32) {} ({b} as u32)) as i32", self.pick(&["+", "*", "^"])),
            _ => format!("(({a} as f32) * 0.5) as i32"),
        }
    }

    fn condition(&mut self, depth: usize, names: &[&str]) -> String {
        let (a, b) = (self.number(depth, names), self.number(depth, names));
        let simple = format!("{a} {} {b}", self.pick(&["<", "<=", ">", ">=", "==", "!="]));
        match self.below(4) {
            0 => format!("not ({simple})"),
            1 => format!("({simple} and {a} != 3)"),
            2 => format!("({simple} or {b} > {a})"),
            _ => format!("({simple})"),
        }
    }

    /// Statements that end in a variable `t`.
    fn statements(&mut self) -> String {
        let names = ["x", "y", "t"];
        let mut text =
            String::from("    let x = i as i32 - 9\n    let y = x * 1103515245 + 12345\n");
        writeln!(text, "    var t = {}", self.number(2, &names[..2])).unwrap();
        for _ in 0..3 {
            let (condition, number) = (self.condition(1, &names), self.number(2, &names));
            match self.below(4) {
                0 => writeln!(text, "    if {condition}: t = {number}").unwrap(),
                1 => {
                    writeln!(text, "    for k in 0..4\n        t = {number} - (k as i32)").unwrap()
                }
                2 => writeln!(
                    text,
                    "    for k in 0..5\n        break if {condition}\n        t = {number}"
                )
                .unwrap(),
                _ => writeln!(text, "    t += {number}").unwrap(),
            }
        }
        text
    }
}

/// Loops in one program, and programs.
const LOOPS: usize = 12;
const PROGRAMS: u64 = 4;

#[test]
fn host_loops_and_kernels_agree() {
    let place = Place::new();
    let devices: &[&str] =
        if has_vulkan() { &["cpu", "interp", "vulkan"] } else { &["cpu", "interp"] };
    for seed in 0..PROGRAMS {
        let mut random = Random(seed);
        let mut text = String::new();
        for n in 0..LOOPS {
            let body = random.statements();
            let inner = body.replace("\n    ", "\n        ").trim_end().to_string();
            write!(
                text,
                "fn loop{n}() bool
    var host = Array<i32, 40>()
    for i in 0..40
    {inner}
        host[i] = t
    gpu var device = Array<i32, 40>()
    forall i in 0..40
    {inner}
        device[i] = t
    let back = device
    for v, i in back
        if v != host[i]
            println(f\"loop{n} at {{i}}: {{host[i]}} {{v}}\")
            return false
    true

"
            )
            .unwrap();
        }
        text += "fn main()\n";
        for n in 0..LOOPS {
            writeln!(text, "    println(f\"{{loop{n}()}}\")").unwrap();
        }
        place.write("random.mi", &text);
        for device in devices {
            let ended = place.run(&["run", "--device", device, "random.mi"]);
            let expected = "true\n".repeat(LOOPS);
            assert_eq!((ended.code, &*ended.stdout), (0, &*expected), "{}\n{text}", ended.stderr);
        }
    }
}
