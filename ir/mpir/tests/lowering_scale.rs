//! Host lowering of large functions takes time in proportion to their size: twice the size takes
//! about twice the time, where quadratic steps would take minutes.

use magpie_diag::FileId;
use magpie_mpir::{Stage, parse, passes, verify_module};

/// Straight code, a long chain of blocks, and a switch whose cases all end in one block with
/// values passed on and values dropped.
fn program(n: usize) -> String {
    let mut text = String::from(
        "fn @f(%a: Array<Str>, %i: i32, %c: bool) -> Str {\nentry:\n  %s0: Str = rt.call rt=mp_rt_os_cwd\n",
    );
    for k in 1..=n {
        text.push_str(&format!("  %v{k}: borrow Str = arr.get %a, i32 {k}\n"));
        text.push_str(&format!("  rt.call rt=mp_rt_println %v{k}\n"));
        text.push_str(&format!("  %s{k}: Str = rt.call rt=mp_rt_readln\n"));
        if k % 5 == 0 {
            text.push_str(&format!("  cbr %c, yes{k}, next{k}\nyes{k}:\n"));
            text.push_str(&format!("  rt.call rt=mp_rt_println %s{k}\n  br next{k}\nnext{k}:\n"));
        }
    }
    text.push_str("  switch %i");
    (0..n).for_each(|k| text.push_str(&format!(", [{k}: case{k}]")));
    text.push_str(", else done\n");
    for k in 0..n {
        text.push_str(&format!("case{k}:\n  %t{k}: Str = rt.call rt=mp_rt_readln\n  br done\n"));
    }
    text.push_str("done:\n  %r: Str = phi [");
    let entry = match n / 5 * 5 {
        0 => "entry".to_string(),
        k => format!("next{k}"),
    };
    text.push_str(&format!("{entry}: %s0]"));
    (0..n).for_each(|k| text.push_str(&format!(", [case{k}: %t{k}]")));
    text + "\n  ret %r\n}\n"
}

#[test]
fn large_host_functions_take_linear_time() {
    let mut m = parse(&program(20_000), FileId(0)).unwrap();
    verify_module(&m, Stage::Core).unwrap();
    passes::lower_arc(&mut m);
    passes::lower_host(&mut m, &|_| None);
    verify_module(&m, Stage::Core).unwrap();
    assert!(m.fns[0].live_inst_count() > 200_000);
}
