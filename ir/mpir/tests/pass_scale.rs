//! Large and lopsided functions go through all passes in a time that grows with their size.

use magpie_mpir::analysis::{Cfg, LaunchFacts, Liveness, Uniformity};
use magpie_mpir::passes::{IndexWidth, Pipeline, run_named_pass};
use magpie_mpir::{FnId, Module, Stage, parse, verify_module};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Far above what is needed: what is quadratic takes minutes.
const LIMIT: Duration = Duration::from_secs(20);

fn kernel(body: &str) -> Module {
    let text = format!(
        "gpu fn t.@k(%a: gpu.TBuffer<u32>, %b: gpu.TBuffer<u32>, %n: u32) -> unit {{\n{body}\nret\n}}\n"
    );
    let module = parse(&text, magpie_diag::FileId(0)).unwrap_or_else(|e| panic!("{:?}", e[0]));
    verify_module(&module, Stage::Core).unwrap_or_else(|e| panic!("{}", e[0].message));
    module
}

fn all_passes(what: &str, module: &Module) {
    let start = Instant::now();
    let mut optimized = module.clone();
    let mut pipeline = Pipeline::with_times();
    pipeline.optimize_device(&mut optimized, FnId(0));
    let mut f = optimized.func(FnId(0)).clone();
    let facts = LaunchFacts::of(&f);
    pipeline.prove_bounds(&optimized, &mut f, facts);
    pipeline.lower_bounds_checks(&optimized, &mut f, IndexWidth::Bits64);
    let cfg = Cfg::new(&f);
    Uniformity::new(&f, &optimized.types, &cfg);
    Liveness::new(&f, &cfg);
    for pass in ["licm", "unroll", "lower_vectors", "lower_structs", "insert_preheaders"] {
        run_named_pass(&mut module.clone(), pass).unwrap();
    }
    let spent = start.elapsed();
    assert!(spent < LIMIT, "{what} took {spent:?}: {:?}", pipeline.times());
}

#[test]
fn wide_switch() {
    let mut body = String::from("bb0:\nswitch %n");
    let cases = 8000;
    for c in 0..cases {
        let _ = write!(body, ", [{c}: c{c}]");
    }
    body.push_str(", else out\n");
    for c in 0..cases {
        let _ = writeln!(body, "c{c}:\nbr out");
    }
    body.push_str("out:\n%x: u32 = phi [bb0: u32 1]");
    for c in 0..cases {
        let _ = write!(body, ", [c{c}: u32 {c}]");
    }
    body.push_str("\ngpu.buffer_store %a, %n, %x");
    all_passes("a wide switch", &kernel(&body));
}

#[test]
fn many_ways_round_a_loop() {
    let mut body = String::from("bb0:\nbr head\n");
    let ways = 4000;
    body.push_str("head:\n%i: u32 = phi [bb0: u32 0]");
    for w in 0..ways {
        let _ = write!(body, ", [w{w}: %n{w}]");
    }
    body.push_str("\nbr w0\n");
    for w in 0..ways {
        let next = if w + 1 == ways { "out".to_string() } else { format!("w{}", w + 1) };
        let _ = writeln!(
            body,
            "w{w}:\n%n{w}: u32 = i.add %i, u32 {w}\n%c{w}: bool = icmp.ult %n{w}, %n\n\
             gpu.buffer_store %a, %n{w}, %i\ncbr %c{w}, head, {next}"
        );
    }
    body.push_str("out:");
    all_passes("many ways round a loop", &kernel(&body));
}

#[test]
fn deep_nest_of_loops() {
    let depth = 600;
    let mut body = String::from("bb0:\nbr h0\n");
    for d in 0..depth {
        let before = if d == 0 { "bb0".to_string() } else { format!("h{}", d - 1) };
        let inside = if d + 1 == depth { "core".to_string() } else { format!("h{}", d + 1) };
        let after = if d == 0 { "out".to_string() } else { format!("l{}", d - 1) };
        let _ = writeln!(
            body,
            "h{d}:\n%i{d}: u32 = phi [{before}: u32 0], [l{d}: %n{d}]\n\
             %c{d}: bool = icmp.ult %i{d}, %n\ncbr %c{d}, {inside}, {after}"
        );
    }
    let last = depth - 1;
    let _ = writeln!(body, "core:\n%x: u32 = i.mul %n, u32 5\ngpu.buffer_store %a, %x, %i{last}");
    let _ = writeln!(body, "br l{last}");
    for d in (0..depth).rev() {
        let _ = writeln!(body, "l{d}:\n%n{d}: u32 = i.add %i{d}, u32 1\nbr h{d}");
    }
    body.push_str("out:");
    all_passes("a deep nest of loops", &kernel(&body));
}

#[test]
fn deep_nest_of_branches_and_long_chains() {
    let depth = 3000;
    let mut body = String::from("bb0:\n%g: u32 = gpu.global_id dim=0\nbr t0\n");
    for d in 0..depth {
        let inside = if d + 1 == depth { "core".to_string() } else { format!("t{}", d + 1) };
        let _ =
            writeln!(body, "t{d}:\n%c{d}: bool = icmp.ugt %g, u32 {d}\ncbr %c{d}, {inside}, j{d}");
    }
    let _ = writeln!(body, "core:\nbr j{}", depth - 1);
    for d in (0..depth).rev() {
        let from = if d + 1 == depth { "core".to_string() } else { format!("j{}", d + 1) };
        let value = if d + 1 == depth { "u32 7".to_string() } else { format!("%s{}", d + 1) };
        let next = if d == 0 { "out".to_string() } else { format!("j{}", d - 1) };
        let _ = writeln!(
            body,
            "j{d}:\n%p{d}: u32 = phi [t{d}: u32 {d}], [{from}: {value}]\n\
             %s{d}: u32 = i.add %p{d}, %g\nbr {next}"
        );
    }
    body.push_str("out:\n%v0: u32 = gpu.buffer_load %a, %s0\n");
    for k in 1..20_000 {
        let _ = writeln!(body, "%v{k}: u32 = i.xor %v{}, %v{}", k - 1, k / 2);
    }
    body.push_str("gpu.buffer_store %a, %v19999, %g");
    all_passes("a deep nest of branches", &kernel(&body));
}

#[test]
fn many_divergent_exits() {
    let exits = 6000;
    let mut body = String::from("bb0:\n%g: u32 = gpu.global_id dim=0\nbr e0\n");
    for e in 0..exits {
        let next = if e + 1 == exits { "out".to_string() } else { format!("e{}", e + 1) };
        let _ = writeln!(
            body,
            "e{e}:\n%x{e}: u32 = gpu.buffer_load %a, %g\n%c{e}: bool = icmp.eq %x{e}, u32 {e}\n\
             gpu.buffer_store %b, %g, %x{e}\ncbr %c{e}, out, {next}"
        );
    }
    body.push_str("out:");
    all_passes("many divergent exits", &kernel(&body));
}
