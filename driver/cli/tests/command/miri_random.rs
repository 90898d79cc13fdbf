//! Random Miri: a loop on the host and the same body as a kernel compute the same, and a copy of a
//! list is one, whatever loops do with the original.

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
            // Where kernels are interpreted, host code is as the front end made it.
            let level = if *device == "interp" { "0" } else { "2" };
            let args = ["run", "--device", device, "--opt-level", level, "random.mi"];
            let ended = place.run(&args);
            let expected = "true\n".repeat(LOOPS);
            assert_eq!((ended.code, &*ended.stdout), (0, &*expected), "{}\n{text}", ended.stderr);
        }
    }
}

/// Lists that the statements below change, each of four elements or more.
const LISTS: [&str; 4] = ["a", "b", "c", "d"];

/// Lists in a list of lists, each of four elements or more too.
const ROWS: usize = 3;

/// Lists of such lists.
const TABLES: usize = 2;

/// An index: a constant, or the variable of the loop at a depth.
#[derive(Clone, Copy)]
enum Index {
    Constant(usize),
    Loop(usize),
}

/// Something that a program does with lists, and that the test does too.
enum Statement {
    Copy {
        to: usize,
        from: usize,
    },
    Set {
        to: usize,
        at: Index,
        from: usize,
        from_at: Index,
        more: i64,
    },
    Push {
        to: usize,
        from: usize,
        at: Index,
    },
    Remember(usize),
    /// `rows[row][at] = from[from_at] + more`
    SetInRow {
        row: usize,
        at: Index,
        from: usize,
        from_at: Index,
        more: i64,
    },
    PutRow {
        row: usize,
        from: usize,
    },
    TakeRow {
        to: usize,
        row: usize,
    },
    /// A name for a row, and an element of it at the end.
    Name {
        row: usize,
        body: Vec<Statement>,
        to: usize,
        at: Index,
        from_at: Index,
    },
    /// `tables[table][row][at] = from[from_at] + more`
    SetInTable {
        table: usize,
        row: usize,
        at: Index,
        from: usize,
        from_at: Index,
        more: i64,
    },
    /// Names for a table and a row of it, and an element of that at the end.
    NameRow {
        table: usize,
        row: usize,
        body: Vec<Statement>,
        to: usize,
        at: Index,
        from_at: Index,
    },
    If {
        list: usize,
        at: Index,
        above: i64,
        then: Vec<Statement>,
    },
    Loop {
        rounds: usize,
        body: Vec<Statement>,
    },
    Break {
        list: usize,
        at: Index,
        above: i64,
    },
}

impl Random {
    fn index(&mut self, depth: usize) -> Index {
        match self.below(depth + 2).checked_sub(2) {
            None => Index::Constant(self.below(4)),
            Some(at) => Index::Loop(at),
        }
    }

    fn list_statements(&mut self, depth: usize) -> Vec<Statement> {
        (0..2 + self.below(4)).map(|_| self.list_statement(depth, depth >= 3)).collect()
    }

    /// A few statements that have none inside.
    fn plain_statements(&mut self, depth: usize) -> Vec<Statement> {
        (0..1 + self.below(3)).map(|_| self.list_statement(depth, true)).collect()
    }

    fn list_statement(&mut self, depth: usize, is_plain: bool) -> Statement {
        let (to, from) = (self.below(LISTS.len()), self.below(LISTS.len()));
        let (at, from_at) = (self.index(depth), self.index(depth));
        let number = self.below(9) as i64 - 3;
        let (table, row) = (self.below(TABLES), self.below(ROWS));
        match self.below(if is_plain { 12 } else { 20 }) {
            11 => Statement::SetInTable { table, row, at, from, from_at, more: number },
            12..14 => {
                let body = self.plain_statements(depth);
                Statement::NameRow { table, row, body, to, at, from_at }
            }
            8 => Statement::SetInRow { row, at, from, from_at, more: number },
            9 => Statement::PutRow { row, from },
            10 => Statement::TakeRow { to, row },
            14..16 => {
                let body = self.plain_statements(depth);
                Statement::Name { row, body, to, at, from_at }
            }
            0 => Statement::Copy { to, from },
            1 => Statement::Remember(to),
            2 => Statement::Push { to, from, at },
            3 if depth > 0 => Statement::Break { list: to, at, above: number + 8 },
            3..8 => Statement::Set { to, at, from, from_at, more: number },
            16 => {
                let then = self.list_statements(depth);
                Statement::If { list: to, at, above: number, then }
            }
            _ => {
                let body = self.list_statements(depth + 1);
                Statement::Loop { rounds: self.below(5), body }
            }
        }
    }
}

impl Index {
    fn text(self) -> String {
        match self {
            Index::Constant(n) => n.to_string(),
            Index::Loop(depth) => format!("i{depth}"),
        }
    }

    fn value(self, loops: &[usize]) -> usize {
        match self {
            Index::Constant(n) => n,
            Index::Loop(depth) => loops[depth],
        }
    }
}

/// The statements as Miri, with this indentation; `names` have names so far.
fn print(
    statements: &[Statement],
    depth: usize,
    indent: usize,
    names: &mut usize,
    text: &mut String,
) {
    for statement in statements {
        text.push_str(&" ".repeat(indent));
        let name = *names;
        let line = match statement {
            Statement::Copy { to, from } => match to > from {
                true => format!("give({}, {})", LISTS[*to], LISTS[*from]),
                false => format!("{} = {}", LISTS[*to], LISTS[*from]),
            },
            Statement::Set { to, at, from, from_at, more } => {
                let (at, from_at) = (at.text(), from_at.text());
                match more % 2 {
                    0 => format!("{}[{at}] = {}[{from_at}] + {more}", LISTS[*to], LISTS[*from]),
                    _ => format!("put({}, {at}, {}[{from_at}] + {more})", LISTS[*to], LISTS[*from]),
                }
            }
            Statement::Push { to, from, at } => match to > from {
                true => format!("append({}, {}[{}])", LISTS[*to], LISTS[*from], at.text()),
                false => format!("{}.push({}[{}])", LISTS[*to], LISTS[*from], at.text()),
            },
            Statement::Remember(list) => format!("seen.push({})", LISTS[*list]),
            Statement::SetInRow { row, at, from, from_at, more } => {
                let (at, from_at) = (at.text(), from_at.text());
                format!("rows[{row}][{at}] = {}[{from_at}] + {more}", LISTS[*from])
            }
            Statement::PutRow { row, from } => format!("rows[{row}] = {}", LISTS[*from]),
            Statement::TakeRow { to, row } => format!("{} = rows[{row}]", LISTS[*to]),
            Statement::Name { row, .. } => format!("let row{name} = rows[{row}]"),
            Statement::SetInTable { table, row, at, from, from_at, more } => {
                let (at, from_at) = (at.text(), from_at.text());
                format!("tables[{table}][{row}][{at}] = {}[{from_at}] + {more}", LISTS[*from])
            }
            Statement::NameRow { table, row, .. } => {
                let indent = " ".repeat(indent);
                format!(
                    "let table{name} = tables[{table}]\n{indent}let row{name} = table{name}[{row}]"
                )
            }
            Statement::If { list, at, above, .. } => {
                format!("if {}[{}] > {above}", LISTS[*list], at.text())
            }
            Statement::Loop { rounds, .. } => format!("for i{depth} in 0..{rounds}"),
            Statement::Break { list, at, above } => {
                format!("break if {}[{}] > {above}", LISTS[*list], at.text())
            }
        };
        text.push_str(&line);
        text.push('\n');
        match statement {
            Statement::If { then, .. } => print(then, depth, indent + 4, names, text),
            Statement::Loop { body, .. } => print(body, depth + 1, indent + 4, names, text),
            Statement::Name { body, to, at, from_at, .. }
            | Statement::NameRow { body, to, at, from_at, .. } => {
                *names += 1;
                print(body, depth, indent, names, text);
                let (to, at, from_at) = (LISTS[*to], at.text(), from_at.text());
                writeln!(text, "{}{to}[{at}] = row{name}[{from_at}]", " ".repeat(indent)).unwrap();
            }
            _ => {}
        }
    }
}

/// Functions that change lists of their callers.
const CHANGES: &str = "
fn give(to out List<int>, from List<int>)
    to = from

fn put(list out List<int>, at int, value int)
    if list.length() <= at
        list.push(value)
        return
    list[at] = value

fn append(list out List<int>, value int)
    if value == 1234567
        panic(f\"{list.length()}\")
    list.push(value)

";

/// The lists of a program and what it has remembered.
struct Lists {
    lists: Vec<Vec<i64>>,
    rows: Vec<Vec<i64>>,
    tables: Vec<Vec<Vec<i64>>>,
    seen: Vec<Vec<i64>>,
}

impl Lists {
    /// Does what the statements say; whether the innermost loop is left.
    fn execute(&mut self, statements: &[Statement], loops: &mut Vec<usize>) -> bool {
        for statement in statements {
            match statement {
                Statement::Copy { to, from } => self.lists[*to] = self.lists[*from].clone(),
                Statement::Set { to, at, from, from_at, more } => {
                    let value = self.lists[*from][from_at.value(loops)];
                    self.lists[*to][at.value(loops)] = value.wrapping_add(*more);
                }
                Statement::Push { to, from, at } => {
                    let value = self.lists[*from][at.value(loops)];
                    self.lists[*to].push(value);
                }
                Statement::Remember(list) => self.seen.push(self.lists[*list].clone()),
                Statement::SetInRow { row, at, from, from_at, more } => {
                    let value = self.lists[*from][from_at.value(loops)];
                    self.rows[*row][at.value(loops)] = value.wrapping_add(*more);
                }
                Statement::PutRow { row, from } => self.rows[*row] = self.lists[*from].clone(),
                Statement::TakeRow { to, row } => self.lists[*to] = self.rows[*row].clone(),
                Statement::SetInTable { table, row, at, from, from_at, more } => {
                    let value = self.lists[*from][from_at.value(loops)];
                    self.tables[*table][*row][at.value(loops)] = value.wrapping_add(*more);
                }
                Statement::NameRow { table, row, body, to, at, from_at } => {
                    let named = self.tables[*table][*row].clone();
                    if self.execute(body, loops) {
                        return true;
                    }
                    self.lists[*to][at.value(loops)] = named[from_at.value(loops)];
                }
                Statement::Name { row, body, to, at, from_at } => {
                    let named = self.rows[*row].clone();
                    if self.execute(body, loops) {
                        return true;
                    }
                    self.lists[*to][at.value(loops)] = named[from_at.value(loops)];
                }
                Statement::If { list, at, above, then } => {
                    if self.lists[*list][at.value(loops)] > *above && self.execute(then, loops) {
                        return true;
                    }
                }
                Statement::Loop { rounds, body } => {
                    for round in 0..*rounds {
                        loops.push(round);
                        let is_left = self.execute(body, loops);
                        loops.pop();
                        if is_left {
                            break;
                        }
                    }
                }
                Statement::Break { list, at, above } => {
                    if self.lists[*list][at.value(loops)] > *above {
                        return true;
                    }
                }
            }
        }
        false
    }
}

#[test]
fn copies_of_lists_stay_what_they_are() {
    let place = Place::new();
    let mut random = Random(1);
    let (mut text, mut calls, mut expected) = (String::new(), String::new(), String::new());
    for n in 0..150 {
        let statements: Vec<Statement> = (0..2).flat_map(|_| random.list_statements(0)).collect();
        write!(text, "fn program{n}()\n    var seen = List<List<int>>()\n").unwrap();
        for (k, list) in LISTS.iter().enumerate() {
            writeln!(text, "    var {list} = List([{k}, {}, 5, -{k}])", k + 1).unwrap();
        }
        text +=
            "    var rows = List([List([1, 2, 3, 4]), List([5, 6, 7, 8]), List([9, 0, 1, 2])])\n";
        text += "    var tables = List([rows, rows])\n";
        print(&statements, 0, 4, &mut 0, &mut text);
        text += "    for list in [a, b, c, d]\n        seen.push(list)\n";
        text += "    for row in rows\n        seen.push(row)\n";
        text += "    for table in tables\n        for row in table\n            seen.push(row)\n";
        text +=
            "    for list in seen\n        for v in list: print(f\" {v}\")\n        print(\";\")\n";
        text += "    println(\"\")\n\n";
        writeln!(calls, "    program{n}()").unwrap();
        let lists = (0..LISTS.len() as i64).map(|k| vec![k, k + 1, 5, -k]).collect();
        let rows = vec![vec![1, 2, 3, 4], vec![5, 6, 7, 8], vec![9, 0, 1, 2]];
        let tables = vec![rows.clone(); TABLES];
        let mut model = Lists { lists, rows, tables, seen: Vec::new() };
        model.execute(&statements, &mut Vec::new());
        for list in model
            .seen
            .iter()
            .chain(&model.lists)
            .chain(&model.rows)
            .chain(model.tables.iter().flatten())
        {
            list.iter().for_each(|v| write!(expected, " {v}").unwrap());
            expected.push(';');
        }
        expected.push('\n');
    }
    text += &format!("{CHANGES}fn main()\n{calls}");
    place.write("lists.mi", &text);
    let ended = place.run(&["run", "lists.mi"]);
    assert_eq!(ended.code, 0, "{}\n{text}", ended.stderr);
    for (n, (found, expected)) in ended.stdout.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "program{n}\n{text}");
    }
    assert_eq!(ended.stdout.len(), expected.len());
}
