//! Built-in functions that become functions of the module: those with bodies of their own, and any
//! that is captured in a callable.

use super::*;
use crate::builtins::{Body as BuiltinBody, Lowering as Row};
use magpie_diag::Span;
use magpie_mpir::{Builder, Domain, MpirFn};
use magpie_types::{Sid, SidKind};

impl Lowering<'_> {
    /// The host function that a built-in one becomes.
    pub(super) fn builtin_function(&mut self, id: BuiltinId, param: Option<TypeId>) -> FnId {
        if let Some(&known) = self.builtin_functions.get(&(id, param)) {
            return known;
        }
        let row = id.row();
        let types = &mut self.module.types;
        let params: Vec<TypeId> =
            row.params.iter().map(|(_, ty)| ty.instantiate(types, param)).collect();
        let result = row.result.instantiate(types, param);
        let mut name = row.full_name();
        if let Some(param) = param {
            name = format!("{name}<{}>", types.name(param));
        }
        let sid = Sid::new(SidKind::Function, &name);
        let mut f = MpirFn::new(sid, name, result, Domain::Host);
        let mut values = Vec::with_capacity(params.len());
        for ((name, _), &ty) in row.params.iter().zip(&params) {
            values.push(f.add_param(*name, ty, Span::NONE));
        }
        let mut b = Builder::new(&mut f);
        match row.lowering {
            Row::Runtime(function) => {
                let wide: Vec<_> = magpie_mpir::ownership::operand_params(function)
                    .zip(&values)
                    .map(|(at, &v)| {
                        let is_wide = function.params()[at].1 == magpie_types::abi::AbiType::I64;
                        let is_narrow = matches!(b.ty(v), fixed::I32 | fixed::U32);
                        if is_wide && is_narrow { b.cast(v, fixed::I64) } else { v }
                    })
                    .collect();
                let out = b.inst(MpirOp::RtCall, result, &wide, function as u64);
                b.ret(out);
            }
            Row::Op(op) => {
                let out = b.inst(op, result, &values, 0);
                b.ret(out);
            }
            Row::Abs => {
                let zero = b.const_bits(result, 0);
                let is_negative = b.compare(MpirOp::IcmpSlt, values[0], zero);
                let negated = b.same(MpirOp::ISubTrap, &[zero, values[0]]);
                let out = b.select(is_negative, negated, values[0]);
                b.ret(Some(out));
            }
            Row::Function(body) => check_body(&mut b, body, &values),
            // Not a value: a launch is written where it happens.
            Row::ProfiledLaunch => b.unreachable(),
        }
        b.finish();
        let function = self.module.add_fn(f);
        self.builtin_functions.insert((id, param), function);
        function
    }
}

/// Panics with the last parameter when the check fails.
fn check_body(b: &mut Builder<'_>, body: BuiltinBody, params: &[magpie_mpir::Value]) {
    let [checked @ .., message] = params else { return b.unreachable() };
    let holds = match (body, checked) {
        (BuiltinBody::Assert, &[cond]) => Some(cond),
        (BuiltinBody::AssertEq, &[lhs, rhs]) => Some(b.compare(MpirOp::IcmpEq, lhs, rhs)),
        (BuiltinBody::AssertNe, &[lhs, rhs]) => Some(b.compare(MpirOp::IcmpNe, lhs, rhs)),
        _ => None,
    };
    if let Some(holds) = holds {
        let (pass, fail) = (b.create_block(), b.create_block());
        b.cbr(holds, pass, fail);
        b.seal(pass);
        b.seal(fail);
        b.switch_to(pass);
        b.ret(None);
        b.switch_to(fail);
    }
    b.effect(MpirOp::Panic, &[*message], 0);
    b.unreachable();
}
