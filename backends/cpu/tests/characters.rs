//! Random functions that go through texts mean the same with codes in the place of characters: they
//! return the same text and leave no object behind.

mod host_support;

use host_support::Process;
use magpie_codegen_cpu::compile_host;
use magpie_diag::FileId;
use magpie_mpir::passes::{Pipeline, lower_arc, lower_host, unbox_characters};
use magpie_mpir::testing::Rng;
use magpie_mpir::{Module, Stage, parse, print_module, verify_module};
use magpie_rt::object::{MpRtHeader, live_objects, release};
use magpie_rt::string::{as_str, new_str};
use magpie_types::abi::{RtFn, object_layout};
use std::fmt::Write;

/// Programs of the usual run.
const PROGRAMS: u64 = 250;

const CHARACTERS: [&str; 12] =
    ["a", "b", "7", "0", " ", "Z", "~", "ß", "é", "日", "\u{d7ff}", "🍏"];

/// A function over two texts, put together block by block.
struct Program<'r> {
    rng: &'r mut Rng,
    text: String,
    /// The block that is written now.
    block: String,
    /// Texts of at most one character that are known here, and one or two that are longer.
    known: Vec<String>,
    /// The text that grows.
    out: String,
    names: u32,
}

impl Program<'_> {
    fn name(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what}{}", self.names)
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "  {line}").unwrap();
    }

    fn start(&mut self, block: String) {
        writeln!(self.text, "{block}:").unwrap();
        self.block = block;
    }

    /// A new value.
    fn value(&mut self, ty: &str, of: std::fmt::Arguments<'_>) -> String {
        let v = format!("%{}", self.name("v"));
        self.line(format_args!("{v}: {ty} = {of}"));
        v
    }

    fn rt(&mut self, ty: &str, f: RtFn, args: &str) -> String {
        self.value(ty, format_args!("rt.call rt={} {args}", f.symbol()))
    }

    /// Takes the text that grows over.
    fn append(&mut self, f: RtFn, piece: &str) {
        let out = self.out.clone();
        self.out = self.rt("Str", f, &format!("{out}, {piece}"));
    }

    fn literal(&mut self) -> String {
        let text = match self.rng.below(10) {
            0 => "".to_string(),
            1 => "ab".to_string(),
            2 => "7ß".to_string(),
            _ => CHARACTERS[self.rng.below(CHARACTERS.len())].to_string(),
        };
        format!("Str {text:?}")
    }

    fn operand(&mut self) -> String {
        if self.rng.chance(25) {
            return self.literal();
        }
        self.known[self.rng.below(self.known.len())].clone()
    }

    fn step(&mut self, depth: u32) {
        let x = self.operand();
        match self.rng.below(15) {
            0 | 1 => self.append(RtFn::StrAppend, &x),
            2 => {
                let n = self.rt("i64", RtFn::StrLen, &x);
                self.append(RtFn::StrAppendI64, &n);
            }
            3 => {
                let n = self.rt("i64", RtFn::StrCount, &x);
                self.append(RtFn::StrAppendI64, &n);
            }
            4 => {
                let whole = match self.rng.below(4) {
                    0 => "Str \"0123456789\"".to_string(),
                    1 => "Str \"a ~Zb7\"".to_string(),
                    2 => "Str \"aß日\"".to_string(),
                    _ => "%t".to_string(),
                };
                let holds = self.rt("bool", RtFn::StrContains, &format!("{whole}, {x}"));
                self.append(RtFn::StrAppendBool, &holds);
            }
            5 => {
                let number = self.rt("TOption<i64>", RtFn::StrToI64, &x);
                let is = self.value("bool", format_args!("enum.is variant=1 {number}"));
                self.append(RtFn::StrAppendBool, &is);
                let [some, none, done] = ["some", "none", "done"].map(|what| self.name(what));
                self.line(format_args!("cbr {is}, {some}, {none}"));
                self.start(some);
                let n = self.value("i64", format_args!("enum.payload variant=1 {number}"));
                self.line(format_args!("br {done}"));
                let some = std::mem::take(&mut self.block);
                self.start(none.clone());
                self.line(format_args!("br {done}"));
                self.start(done);
                let n = self.value("i64", format_args!("phi [{some}: {n}], [{none}: i64 -1]"));
                self.append(RtFn::StrAppendI64, &n);
            }
            6 => {
                let how = self.rng.below(3);
                let changed = self.rt("Str", RtFn::StrTransform, &format!("{x}, i32 {how}"));
                self.append(RtFn::StrAppend, &changed);
            }
            7 => {
                let copy = self.rt("Str", RtFn::HandleClone, &x);
                self.known.push(copy);
            }
            8 => {
                let view = self.value("borrow Str", format_args!("borrow.shared {x}"));
                let helper = ["@is", "@other", "@first"][self.rng.below(3)];
                if helper == "@is" {
                    let is = self.value("bool", format_args!("call fn=@is {view}"));
                    self.append(RtFn::StrAppendBool, &is);
                } else {
                    let given = self.value("Str", format_args!("call fn={helper} {view}"));
                    self.known.push(given);
                }
            }
            9 => {
                let y = self.operand();
                let (a, b) =
                    (self.rt("Str", RtFn::HandleClone, &x), self.rt("Str", RtFn::HandleClone, &y));
                let both = self.rt("Str", RtFn::StrConcat, &format!("{a}, {b}"));
                self.append(RtFn::StrAppend, &both);
            }
            10 | 11 if depth < 2 => {
                let y = self.operand();
                let equal = self.rt("bool", RtFn::StrEq, &format!("{x}, {y}"));
                self.branch(&equal, depth);
            }
            12 if depth < 2 => self.repeat(depth),
            13 => {
                let y = self.operand();
                let order = self.rt("i32", RtFn::StrCompare, &format!("{x}, {y}"));
                let op = ["slt", "sge", "eq"][self.rng.below(3)];
                let is = self.value("bool", format_args!("icmp.{op} {order}, i32 0"));
                self.append(RtFn::StrAppendBool, &is);
            }
            _ => {
                let y = self.operand();
                let equal = self.rt("bool", RtFn::StrEq, &format!("{x}, {y}"));
                self.append(RtFn::StrAppendBool, &equal);
            }
        }
    }

    fn steps(&mut self, depth: u32) {
        for _ in 0..1 + self.rng.below(4) {
            self.step(depth);
        }
    }

    /// Two ways, and a text that comes from either.
    fn branch(&mut self, cond: &str, depth: u32) {
        let [then, other, done] = ["then", "else", "done"].map(|what| self.name(what));
        self.line(format_args!("cbr {cond}, {then}, {other}"));
        let (known, out) = (self.known.clone(), self.out.clone());
        let mut arms = Vec::new();
        for way in [then, other] {
            (self.known, self.out) = (known.clone(), out.clone());
            self.start(way);
            self.steps(depth + 1);
            let x = self.operand();
            let picked = match self.rng.below(3) {
                0 => self.literal(),
                _ => self.rt("Str", RtFn::HandleClone, &x),
            };
            self.line(format_args!("br {done}"));
            arms.push((self.block.clone(), picked, self.out.clone()));
        }
        (self.known, self.out) = (known, out);
        self.start(done);
        let [(a, x, p), (b, y, q)] = &arms[..] else { unreachable!("there are two ways") };
        let picked = self.value("Str", format_args!("phi [{a}: {x}], [{b}: {y}]"));
        self.out = self.value("Str", format_args!("phi [{a}: {p}], [{b}: {q}]"));
        self.known.push(picked);
    }

    /// A few rounds.
    fn repeat(&mut self, depth: u32) {
        let [head, body, done, n, next, out] =
            ["head", "body", "done", "n", "next", "out"].map(|what| self.name(what));
        let (from, entering, known) = (self.block.clone(), self.out.clone(), self.known.clone());
        self.line(format_args!("br {head}"));
        // The head is written when it is known what comes round.
        let before = std::mem::take(&mut self.text);
        self.out = format!("%{out}");
        self.start(body);
        let body = self.block.clone();
        self.steps(depth + 1);
        let last = self.block.clone();
        self.line(format_args!("%{next}: i64 = i.add %{n}, i64 1"));
        self.line(format_args!("br {head}"));
        let inside = std::mem::replace(&mut self.text, before);
        let round = std::mem::replace(&mut self.out, format!("%{out}"));
        self.start(head);
        self.line(format_args!("%{n}: i64 = phi [{from}: i64 0], [{last}: %{next}]"));
        self.line(format_args!("%{out}: Str = phi [{from}: {entering}], [{last}: {round}]"));
        let rounds = self.rng.below(3);
        self.line(format_args!("%{n}m: bool = icmp.slt %{n}, i64 {rounds}"));
        self.line(format_args!("cbr %{n}m, {body}, {done}"));
        self.text += &inside;
        self.known = known;
        self.start(done);
    }
}

/// A function that goes through `%s` and keeps a character from round to round.
fn program(rng: &mut Rng) -> String {
    let by_index = rng.chance(50);
    let first = if rng.chance(50) { "Str \"\"" } else { "Str \"a\"" };
    let mut p = Program {
        rng,
        text: String::new(),
        block: "body".to_string(),
        known: vec!["%c".to_string(), "%last".to_string()],
        out: "%out".to_string(),
        names: 0,
    };
    if p.rng.chance(40) {
        p.known.push("%t".to_string());
    }
    p.steps(0);
    let kept = p.operand();
    // What is kept may be longer than a character: then nothing that it goes to is one.
    let longer = p.rng.chance(15);
    let kept = match longer {
        true => p.rt("Str", RtFn::StrTransform, &format!("{kept}, i32 0")),
        false => p.rt("Str", RtFn::HandleClone, &kept),
    };
    let (body, block, out) = (p.text, p.block, p.out);
    let (limit, read, step) = match by_index {
        true => ("mp_rt_str_count", "mp_rt_str_char_at %s, %at, rawptr<u8> zero", "i64 1"),
        false => ("mp_rt_str_len", "mp_rt_str_char_from %s, %at", "%width"),
    };
    format!(
        "fn @is(%c: borrow Str) -> bool {{
        e:
          %a: bool = rt.call rt=mp_rt_str_eq %c, Str \"a\"
          cbr %a, end, more
        more:
          %b: bool = rt.call rt=mp_rt_str_eq %c, Str \"ß\"
          br end
        end:
          %r: bool = phi [e: bool true], [more: %b]
          ret %r
        }}
        fn @other(%c: borrow Str) -> Str {{
        e:
          %a: bool = rt.call rt=mp_rt_str_eq %c, Str \"7\"
          cbr %a, yes, no
        yes:
          ret Str \"日\"
        no:
          %r: Str = rt.call rt=mp_rt_handle_clone %c
          ret %r
        }}
        fn @first(%c: borrow Str) -> Str {{
        e:
          %n: i64 = rt.call rt=mp_rt_str_count %c
          %empty: bool = icmp.eq %n, i64 0
          cbr %empty, yes, no
        yes:
          ret Str \"\"
        no:
          %r: Str = rt.call rt=mp_rt_str_char_at %c, i64 0, rawptr<u8> zero
          ret %r
        }}
        fn @main(%s: borrow Str, %t: borrow Str) -> Str {{
        e:
          %len: i64 = rt.call rt={limit} %s
          br head
        head:
          %at: i64 = phi [e: i64 0], [{block}: %next]
          %last: Str = phi [e: {first}], [{block}: {kept}]
          %out: Str = phi [e: Str \"\"], [{block}: {out}]
          %more: bool = icmp.slt %at, %len
          cbr %more, body, end
        body:
          %c: Str = rt.call rt={read}
          %width: i64 = rt.call rt=mp_rt_str_len %c
        {body}
          %next: i64 = i.add %at, {step}
          br head
        end:
          ret %out
        }}"
    )
}

fn verify(m: &Module, text: &str) {
    if let Err(errors) = verify_module(m, Stage::Core) {
        panic!("{}\n{}\n{text}", errors[0].message, print_module(m));
    }
}

/// What `@main` returns for each pair of texts.
fn results(text: &str, unboxed: bool, optimised: bool, inputs: &[[String; 2]]) -> Vec<String> {
    let mut m = parse(text, FileId(0)).unwrap_or_else(|e| panic!("{}\n{text}", e[0].message));
    verify(&m, text);
    if unboxed {
        assert!(unbox_characters(&mut m));
        verify(&m, text);
    }
    lower_arc(&mut m);
    lower_host(&mut m, &|_| None);
    verify(&m, text);
    if optimised {
        Pipeline::new().optimize_host(&mut m);
    }
    let main = m.find_fn("@main").unwrap();
    let code = compile_host(&m, &[main], &mut Process(&m.types)).unwrap();
    type Entry = extern "C" fn(*mut MpRtHeader, *mut MpRtHeader) -> *mut MpRtHeader;
    // SAFETY: the function was compiled with these parameters and this result.
    let entry: Entry = unsafe { std::mem::transmute(code.address(main).unwrap()) };
    let run = |[s, t]: &[String; 2]| {
        let before = live_objects();
        let (s, t) = (new_str(s), new_str(t));
        let out = entry(s, t);
        // SAFETY: the texts are ours, and live until they are released.
        let found = unsafe {
            let found = as_str(out).to_string();
            assert_eq!(is_marked_ascii(out), found.is_ascii());
            for text in [s, t, out] {
                release(text);
            }
            found
        };
        assert_eq!(live_objects(), before, "{text}");
        found
    };
    inputs.iter().map(run).collect()
}

/// Whether a text has the flag that says that it is ASCII.
///
/// # Safety
/// `text` is a live `Str`.
unsafe fn is_marked_ascii(text: *mut MpRtHeader) -> bool {
    // SAFETY: forwarded from the caller; the flags are a word of the header.
    let flags = unsafe { text.byte_add(object_layout::FLAGS as usize).cast::<u32>().read() };
    flags & object_layout::FLAG_ASCII != 0
}

#[test]
fn codes_mean_what_characters_mean() {
    for seed in 0..PROGRAMS {
        let mut rng = Rng::new(seed);
        let text = program(&mut rng);
        let count = if rng.chance(50) { CHARACTERS.len() } else { 7 };
        let mut input = |most| -> String {
            (0..rng.below(most)).map(|_| CHARACTERS[rng.below(count)]).collect()
        };
        let mut inputs: Vec<[String; 2]> = (0..4).map(|_| [input(12), input(4)]).collect();
        inputs.push([String::new(), "a".to_string()]);
        let expected = results(&text, false, false, &inputs);
        for optimised in [false, true] {
            let found = results(&text, true, optimised, &inputs);
            assert_eq!(found, expected, "seed {seed}, {optimised}\n{text}\n{inputs:?}");
        }
    }
}
