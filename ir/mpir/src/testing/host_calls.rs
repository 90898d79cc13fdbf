//! Random host functions that call themselves and each other.

use super::Rng;
use std::fmt::Write;

/// What a function of such a program returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Returns {
    Number,
    Option,
    Pair,
    Result,
    Truth,
}

impl Returns {
    fn ty(self) -> &'static str {
        match self {
            Returns::Number => "i64",
            Returns::Option => "TOption<i64>",
            Returns::Pair => "m.TPair",
            Returns::Result => "TResult<i64, i64>",
            Returns::Truth => "bool",
        }
    }
}

/// A module with a function `@main(fuel, a) -> i64`, as text. Functions give options, results and
/// pairs, change what an exclusive view shows, call each other with less fuel, and often do so last.
pub fn random_calls(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let kinds = [Returns::Number, Returns::Option, Returns::Pair, Returns::Result, Returns::Truth];
    let count = 1 + rng.below(4);
    let functions: Vec<Returns> =
        (0..count).map(|_| rng.pick(&kinds).unwrap_or(Returns::Number)).collect();
    let mut text = String::from(
        "value struct m.TPair { x: i64, y: i64 }\nvalue struct m.TCell { v: i64, w: i64 }\n",
    );
    for n in 0..count {
        let mut g =
            Generator { rng: &mut rng, functions: &functions, body: String::new(), next: 0 };
        g.function(n);
        text.push_str(&g.body);
    }
    text.push_str(
        "fn @main(%fuel: i64, %a: i64) -> i64 {\ne:\n  %cell: mutborrow m.TCell = borrow.mut m.TCell \
         zero\n",
    );
    let mut g = Generator { rng: &mut rng, functions: &functions, body: String::new(), next: 0 };
    let mut sum = "%a".to_owned();
    for n in 0..count {
        let v = g.called(n, "%fuel", "%a");
        let scaled = g.value("i64", &format!("i.mul {sum}, i64 31"));
        sum = g.value("i64", &format!("i.add {scaled}, {v}"));
    }
    for field in 0..2 {
        let v = g.value("i64", &format!("getfield field={field} %cell"));
        sum = g.value("i64", &format!("i.xor {sum}, {v}"));
    }
    let _ = writeln!(g.body, "  ret {sum}\n}}");
    text.push_str(&g.body);
    text
}

const JOINS: &[&str] = &["i.add", "i.mul", "i.xor", "i.and", "i.or", "i.sub"];
const COMPARES: &[&str] = &["icmp.slt", "icmp.sgt", "icmp.eq", "icmp.ne", "icmp.ult", "icmp.sle"];

struct Generator<'a> {
    rng: &'a mut Rng,
    functions: &'a [Returns],
    body: String,
    next: usize,
}

impl Generator<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.body, "  {text}");
    }

    fn value(&mut self, ty: &str, text: &str) -> String {
        self.next += 1;
        let name = format!("%v{}", self.next);
        let _ = writeln!(self.body, "  {name}: {ty} = {text}");
        name
    }

    fn start(&mut self, block: &str) {
        let _ = writeln!(self.body, "{block}:");
    }

    fn pick(&mut self, things: &[&'static str]) -> &'static str {
        self.rng.pick(things).unwrap_or(things[0])
    }

    fn number(&mut self, numbers: &[String]) -> String {
        if self.rng.chance(20) {
            return format!("i64 {}", self.rng.below(7) as i64 - 3);
        }
        numbers[self.rng.below(numbers.len())].clone()
    }

    fn condition(&mut self, numbers: &[String]) -> String {
        let (op, x) = (self.pick(COMPARES), self.number(numbers));
        let y = if self.rng.chance(50) { "i64 0".to_owned() } else { self.number(numbers) };
        self.value("bool", &format!("{op} {x}, {y}"))
    }

    /// Two ways that meet: what each computes, and the phis of that.
    fn choose(
        &mut self,
        condition: &str,
        types: &[&str],
        mut way: impl FnMut(&mut Self, bool) -> Vec<String>,
    ) -> Vec<String> {
        self.next += 1;
        let n = self.next;
        self.line(&format!("cbr {condition}, y{n}, n{n}"));
        let mut arms = Vec::new();
        for (holds, block) in [(true, "y"), (false, "n")] {
            self.start(&format!("{block}{n}"));
            arms.push(way(self, holds));
            // The way may have ended in another block.
            self.line(&format!("br {block}{n}.end"));
            self.start(&format!("{block}{n}.end"));
            self.line(&format!("br m{n}"));
        }
        self.start(&format!("m{n}"));
        let phi = |(k, ty): (usize, &&str)| {
            let text = format!("phi [y{n}.end: {}], [n{n}.end: {}]", arms[0][k], arms[1][k]);
            self.value(ty, &text)
        };
        types.iter().enumerate().map(phi).collect()
    }

    fn function(&mut self, n: usize) {
        let ty = self.functions[n].ty();
        let _ = writeln!(
            self.body,
            "fn @f{n}(%fuel: i64, %a: i64, %cell: mutborrow m.TCell) -> {ty} {{\ne:\n  \
             %stop: bool = icmp.sle %fuel, i64 0\n  cbr %stop, base, go\nbase:"
        );
        let mut numbers = vec!["%a".to_owned(), "%fuel".to_owned()];
        self.give(n, &numbers);
        self.start("go");
        self.line("%less: i64 = i.sub %fuel, i64 1");
        for _ in 0..1 + self.rng.below(3) {
            let v = self.statement(&numbers);
            numbers.push(v);
        }
        if self.rng.chance(40) {
            let call = self.rng.below(self.functions.len());
            let a = self.number(&numbers);
            let v = self.called(call, "%less", &a);
            numbers.push(v);
        }
        if self.rng.chance(40) {
            let condition = self.condition(&numbers);
            self.line(&format!("cbr {condition}, early, late"));
            self.start("early");
            self.end(n, &numbers);
            self.start("late");
        }
        self.end(n, &numbers);
        self.body.push_str("}\n");
    }

    /// Computes a number, changes what the view shows, or chooses twice by one tag.
    fn statement(&mut self, numbers: &[String]) -> String {
        match self.rng.below(4) {
            0 => {
                let (x, divisor) = (self.number(numbers), 1 + self.rng.below(5));
                let op = self.pick(&["i.srem", "i.sdiv", "i.and"]);
                self.value("i64", &format!("{op} {x}, i64 {divisor}"))
            }
            1 => {
                let field = self.rng.below(2);
                let before = self.value("i64", &format!("getfield field={field} %cell"));
                let (op, x) = (self.pick(JOINS), self.number(numbers));
                let after = self.value("i64", &format!("{op} {before}, {x}"));
                self.line(&format!("setfield field={field} %cell, {after}"));
                before
            }
            2 => {
                let (op, x, y) = (self.pick(JOINS), self.number(numbers), self.number(numbers));
                self.value("i64", &format!("{op} {x}, {y}"))
            }
            _ => {
                let condition = self.condition(numbers);
                let tag = self.rng.below(2);
                let numbers = numbers.to_vec();
                let met = self.choose(&condition, &["i32", "i64"], |g, holds| {
                    let (x, y) = (g.number(&numbers), g.number(&numbers));
                    let v = g.value("i64", &format!("i.add {x}, {y}"));
                    vec![format!("i32 {}", usize::from(holds) ^ tag), v]
                });
                let is = self.value("bool", &format!("icmp.eq {}, i32 1", met[0]));
                let chosen = self.choose(&is, &["i64"], |g, holds| match holds {
                    true => vec![g.value("i64", &format!("i.mul {}, i64 3", met[1]))],
                    false => vec![g.number(&numbers)],
                });
                chosen[0].clone()
            }
        }
    }

    /// A call, and what it gives as one number.
    fn called(&mut self, n: usize, fuel: &str, a: &str) -> String {
        let returns = self.functions[n];
        let v = self.value(returns.ty(), &format!("call fn=@f{n} {fuel}, {a}, %cell"));
        match returns {
            Returns::Number => v,
            Returns::Truth => self.value("i64", &format!("cast {v}")),
            Returns::Pair => {
                let x = self.value("i64", &format!("struct.get field=0 {v}"));
                let y = self.value("i64", &format!("struct.get field=1 {v}"));
                let three = self.value("i64", &format!("i.mul {x}, i64 3"));
                self.value("i64", &format!("i.sub {three}, {y}"))
            }
            Returns::Option | Returns::Result => {
                let is = self.value("bool", &format!("enum.is variant=1 {v}"));
                let number = self.choose(&is, &["i64"], |g, holds| match (holds, returns) {
                    (false, Returns::Option) => vec!["i64 7".to_owned()],
                    _ => {
                        let variant = usize::from(holds);
                        let text = format!("enum.payload variant={variant} {v}");
                        let payload = g.value("i64", &text);
                        vec![g.value("i64", &format!("i.add {payload}, i64 {variant}"))]
                    }
                });
                number[0].clone()
            }
        }
    }

    /// Returns something made of the numbers.
    fn give(&mut self, n: usize, numbers: &[String]) {
        let returns = self.functions[n];
        let (x, y) = (self.number(numbers), self.number(numbers));
        let ty = returns.ty();
        let v = match returns {
            Returns::Number => x,
            Returns::Truth => self.condition(numbers),
            Returns::Pair => self.value(ty, &format!("struct.new {x}, {y}")),
            Returns::Option if self.rng.chance(40) => format!("{ty} zero"),
            Returns::Option => self.value(ty, &format!("enum.new variant=1 {x}")),
            Returns::Result => {
                let variant = self.rng.below(2);
                self.value(ty, &format!("enum.new variant={variant} {x}"))
            }
        };
        self.line(&format!("ret {v}"));
    }

    /// Returns, often what a call gives.
    fn end(&mut self, n: usize, numbers: &[String]) {
        let returns = self.functions[n];
        let same: Vec<usize> =
            (0..self.functions.len()).filter(|&f| self.functions[f] == returns).collect();
        if self.rng.chance(25) {
            return self.give(n, numbers);
        }
        let callee = if self.rng.chance(60) { n } else { self.rng.pick(&same).unwrap_or(n) };
        let (a, ty) = (self.number(numbers), returns.ty());
        let v = self.value(ty, &format!("call fn=@f{callee} %less, {a}, %cell"));
        let joined = match returns {
            Returns::Number if self.rng.chance(60) => {
                let (op, x) = (self.pick(JOINS), self.number(numbers));
                let text =
                    if self.rng.chance(50) { format!("{v}, {x}") } else { format!("{x}, {v}") };
                self.value(ty, &format!("{op} {text}"))
            }
            Returns::Pair if self.rng.chance(60) => {
                let op = self.pick(JOINS);
                let x = self.value("i64", &format!("struct.get field=0 {v}"));
                let y = self.value("i64", &format!("struct.get field=1 {v}"));
                let by = self.number(numbers);
                let x = self.value("i64", &format!("{op} {x}, {by}"));
                let (x, y) = if self.rng.chance(30) { (y, x) } else { (x, y) };
                self.value(ty, &format!("struct.new {x}, {y}"))
            }
            _ => v,
        };
        self.line(&format!("ret {joined}"));
    }
}
