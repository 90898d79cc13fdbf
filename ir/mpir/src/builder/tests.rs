use super::*;
use crate::{Domain, Module, Stage, print_fn, verify_fn};
use magpie_types::{Sid, SidKind};

fn new_fn() -> MpirFn {
    MpirFn::new(Sid::new(SidKind::Function, "@t"), "@t", fixed::I32, Domain::Device)
}

fn text(mut f: MpirFn) -> String {
    let m = Module::new();
    verify_fn(&m, &f, Stage::Core).unwrap();
    f.compact(|_| true);
    let text = print_fn(&m, &f);
    text.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_loop_has_the_phis_it_needs() {
    let mut f = new_fn();
    let n = f.add_param("n", fixed::I32, Span::NONE);
    let mut b = Builder::new(&mut f);
    let (i, sum, same) = (b.declare(fixed::I32), b.declare(fixed::I32), b.declare(fixed::I32));
    let (zero, one) = (b.const_bits(fixed::I32, 0), b.const_bits(fixed::I32, 1));
    b.write(i, zero);
    b.write(sum, zero);
    b.write(same, n);
    let (head, body, done) = (b.create_block(), b.create_block(), b.create_block());
    b.br(head);
    b.switch_to(head);
    let (at, limit) = (b.read(i), b.read(same));
    let more = b.compare(Op::IcmpSlt, at, limit);
    b.cbr(more, body, done);
    b.seal(body);
    b.switch_to(body);
    let (at, so_far) = (b.read(i), b.read(sum));
    let next = b.same(Op::IAdd, &[so_far, at]);
    b.write(sum, next);
    let next = b.same(Op::IAdd, &[at, one]);
    b.write(i, next);
    b.br(head);
    b.seal(head);
    b.switch_to(done);
    let result = b.read(sum);
    b.ret(Some(result));
    b.finish();
    // No phi for `same`, which the loop does not write.
    let expected = "bb0:
br bb1
bb1:
%1: i32 = phi [bb0: i32 0], [bb2: %5]
%2: i32 = phi [bb0: i32 0], [bb2: %4]
%3: bool = icmp.slt %1, %0
cbr %3, bb2, bb3
bb2:
%4: i32 = i.add %2, %1
%5: i32 = i.add %1, i32 1
br bb1
bb3:
ret %2
}";
    assert_eq!(text(f), expected);
}

#[test]
fn nested_loops_keep_no_trivial_phi() {
    let mut f = new_fn();
    let n = f.add_param("n", fixed::I32, Span::NONE);
    let c = f.add_param("c", fixed::BOOL, Span::NONE);
    let mut b = Builder::new(&mut f);
    let var = b.declare(fixed::I32);
    b.write(var, n);
    let (outer, inner, latch, done) =
        (b.create_block(), b.create_block(), b.create_block(), b.create_block());
    b.br(outer);
    b.switch_to(outer);
    b.br(inner);
    b.switch_to(inner);
    b.read(var);
    b.cbr(c, inner, latch);
    b.switch_to(latch);
    b.cbr(c, outer, done);
    b.switch_to(done);
    let v = b.read(var);
    b.ret(Some(v));
    b.finish();
    assert!(!text(f).contains("phi"));
}

#[test]
fn several_branches_between_two_blocks_are_one_arm() {
    let mut f = new_fn();
    let n = f.add_param("n", fixed::I32, Span::NONE);
    let mut b = Builder::new(&mut f);
    let var = b.declare(fixed::I32);
    let (a, z) = (b.create_block(), b.create_block());
    b.write(var, n);
    b.switch(n, vec![(1, z), (2, z), (3, a)], z);
    b.switch_to(a);
    let twice = b.same(Op::IAdd, &[n, n]);
    b.write(var, twice);
    b.br(z);
    b.switch_to(z);
    let v = b.read(var);
    b.ret(Some(v));
    b.finish();
    assert!(text(f).contains("phi [bb0: %0], [bb1: %1]"));
}

#[test]
fn unreachable_code_and_missing_writes_read_zero() {
    let mut f = new_fn();
    let mut b = Builder::new(&mut f);
    let var = b.declare(fixed::I32);
    let (lost, lost2) = (b.create_block(), b.create_block());
    let v = b.read(var);
    b.ret(Some(v));
    b.switch_to(lost);
    b.br(lost2);
    b.switch_to(lost2);
    let (v, one) = (b.read(var), b.const_bits(fixed::I32, 1));
    let next = b.same(Op::IAdd, &[v, one]);
    b.write(var, next);
    b.br(lost);
    b.seal(lost);
    b.seal(lost2);
    b.finish();
    assert!(text(f).starts_with("bb0:\nret i32 0"));
}

#[test]
fn long_chains_and_many_loops_need_no_recursion() {
    let mut f = new_fn();
    let n = f.add_param("n", fixed::I32, Span::NONE);
    let c = f.add_param("c", fixed::BOOL, Span::NONE);
    let mut b = Builder::new(&mut f);
    let var = b.declare(fixed::I32);
    b.write(var, n);
    for k in 0..100_000 {
        let next = b.create_block();
        if k % 2 == 0 {
            b.br(next);
        } else {
            let other = b.create_block();
            b.cbr(c, next, other);
            b.seal(other);
            b.switch_to(other);
            b.br(next);
        }
        b.seal(next);
        b.switch_to(next);
    }
    let v = b.read(var);
    assert_eq!(v, n);
    b.ret(Some(v));
    b.finish();
    verify_fn(&Module::new(), &f, Stage::Core).unwrap();
}
