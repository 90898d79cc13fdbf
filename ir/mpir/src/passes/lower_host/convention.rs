//! How values travel in calls.
//!
//! A few leaves come back as values; more are stored where an additional first parameter says. What
//! an exclusive view shows travels by value too, when it is a few leaves: they come as parameters
//! and go back behind those of the result. Nobody sees the difference, because nobody else sees
//! what the view shows while the callee has it.

use super::{FnLowering, Lowering};
use crate::{Builder, FnId, Module, MpirFn, Op, Value, ownership};
use magpie_diag::Span;
use magpie_types::{Category, Field, Leaf, RefMode, TypeCtx, TypeId, TypeKind, fixed};
use std::rc::Rc;

/// Leaves that a call gives back as values. Processors have this many registers for them.
const MAX_RETURNED: usize = 8;

/// How the values of a function travel when it is called by its name.
pub(super) struct Convention {
    /// Parameter types of the program.
    pub(super) params: Vec<TypeId>,
    /// Result type of the program.
    pub(super) ret: TypeId,
    /// By parameter: what the view shows, if that travels by value.
    exchanged: Vec<Option<TypeId>>,
}

impl Convention {
    pub(super) fn of(m: &Module, f: &MpirFn) -> Convention {
        let params: Vec<TypeId> = f.params.iter().map(|p| p.1).collect();
        let mut count = m.types.leaves(f.ret_ty).len();
        if count > MAX_RETURNED {
            count = 0;
        }
        let may_exchange = !f.is_async && !shows_something(&m.types, f.ret_ty);
        let kept = if may_exchange { kept_views(f) } else { Vec::new() };
        let mut exchange = |n: usize| {
            let shown = shown_value(&m.types, params[n]).filter(|_| kept.get(n) == Some(&false))?;
            if shows_something(&m.types, shown) {
                return None;
            }
            let more = m.types.leaves(shown).len();
            let fits = count + more <= MAX_RETURNED;
            count += if fits { more } else { 0 };
            fits.then_some(shown)
        };
        let exchanged = (0..params.len()).map(&mut exchange).collect();
        Convention { params, ret: f.ret_ty, exchanged }
    }

    /// What a parameter shows, if that travels by value.
    pub(super) fn exchanged(&self, n: usize) -> Option<TypeId> {
        self.exchanged[n]
    }
}

/// What an exclusive view shows that is no object: values, handles, or both.
fn shown_value(types: &TypeCtx, param: TypeId) -> Option<TypeId> {
    match types.kind(param) {
        TypeKind::Ref(RefMode::MutBorrow, shown) if !types.is_heap(shown) => Some(shown),
        _ => None,
    }
}

/// Whether a value holds views, which might be of a parameter.
fn shows_something(types: &TypeCtx, ty: TypeId) -> bool {
    types.leaves(ty).iter().any(|leaf| ownership::is_view(types, leaf.ty))
}

/// By parameter: whether its address may be kept somewhere.
fn kept_views(f: &MpirFn) -> Vec<bool> {
    let mut number = vec![None; f.locals.len()];
    for (n, &(v, _)) in f.params.iter().enumerate() {
        number[v.index()] = Some(n);
    }
    let mut kept = vec![f.blocks.is_empty(); f.params.len()];
    for &i in f.blocks.iter().flat_map(|b| &b.insts) {
        let op = f.inst(i).op;
        let passes = matches!(op, Op::Call | Op::CallIndirect);
        let looks = matches!(
            op,
            Op::GetField
                | Op::SetField
                | Op::FieldPlace
                | Op::EnumTag
                | Op::EnumIs
                | Op::EnumPayload
                | Op::MemLoad
                | Op::MemStore
        );
        for (at, &v) in f.args(i).iter().enumerate() {
            if let Some(n) = number[v.index()].filter(|_| !(passes || looks && at == 0)) {
                kept[n] = true;
            }
        }
    }
    for n in f.blocks.iter().filter_map(|b| number[b.term.operand()?.index()]) {
        kept[n] = true;
    }
    kept
}

impl Lowering<'_> {
    /// The type of what a lowered function returns: nothing, one value, or a struct of several.
    fn returned(&mut self, types: &[TypeId]) -> TypeId {
        match *types {
            [] => return fixed::UNIT,
            [one] => return one,
            _ => {}
        }
        if let Some(&ty) = self.groups.get(types) {
            return ty;
        }
        let names: Vec<String> = types.iter().map(|&ty| self.types().name(ty)).collect();
        let name = format!("returned<{}>", names.join(", "));
        let ty = self.m.types.declare_struct(name, Category::Value);
        let fields = types.iter().enumerate();
        let fields = fields.map(|(n, &ty)| Field { name: format!("r{n}"), ty }).collect();
        if let TypeKind::Struct(id) = self.m.types.kind(ty) {
            self.m.types.define_struct(id, fields);
        }
        self.groups.insert(types.to_vec(), ty);
        ty
    }

    /// Whether a result is stored instead of returned.
    pub(super) fn is_stored(&mut self, ret: TypeId) -> bool {
        self.leaves(ret).len() > MAX_RETURNED
    }

    /// The lowered types of what a call by name gives back.
    fn returned_types(&mut self, convention: &Convention) -> Vec<TypeId> {
        let mut types = Vec::new();
        if !self.is_stored(convention.ret) {
            types.extend(self.low_types(convention.ret));
        }
        for &shown in convention.exchanged.iter().flatten() {
            types.extend(self.low_types(shown));
        }
        types
    }

    /// Sets the result type of a lowered function that is called by its address and returns `ret`;
    /// the parameter for the address of a result that is stored.
    pub(super) fn set_result(&mut self, f: &mut MpirFn, ret: TypeId) -> Option<Value> {
        if self.is_stored(ret) {
            f.ret_ty = fixed::UNIT;
            return Some(f.add_param("result", self.address, Span::NONE));
        }
        let types = self.low_types(ret);
        f.ret_ty = self.returned(&types);
        None
    }

    /// The same of one that is called by its name.
    pub(super) fn set_head(&mut self, f: &mut MpirFn, convention: &Convention) -> Option<Value> {
        let address = self.set_result(f, convention.ret);
        let types = self.returned_types(convention);
        f.ret_ty = self.returned(&types);
        address
    }

    /// Calls a function of the module by its name. `args` are the leaves of each argument, where a
    /// view is an address; `address` says where a result goes that is stored. Gives the leaves of
    /// one that is not.
    pub(super) fn call_by_name(
        &mut self,
        b: &mut Builder<'_>,
        callee: FnId,
        args: &[Vec<Value>],
        address: Option<Value>,
    ) -> Vec<Value> {
        let convention = self.conventions[callee.index()].clone();
        let mut operands: Vec<Value> = address.into_iter().collect();
        for (n, leaves) in args.iter().enumerate() {
            match convention.exchanged(n) {
                Some(shown) => operands.extend(self.load(b, shown, leaves[0], 0)),
                None => operands.extend(leaves),
            }
        }
        let types = self.returned_types(&convention);
        let ret = self.returned(&types);
        let given = b.inst(Op::Call, ret, &operands, callee.0 as u64);
        let mut given = take_apart(b, given, &types).into_iter();
        let count = if address.is_some() { 0 } else { self.leaves(convention.ret).len() };
        let result = given.by_ref().take(count).collect();
        for (n, leaves) in args.iter().enumerate() {
            if let Some(shown) = convention.exchanged(n) {
                let count = self.leaves(shown).len();
                let changed: Vec<Value> = given.by_ref().take(count).collect();
                self.store(b, shown, leaves[0], 0, &changed);
            }
        }
        result
    }

    /// Loads the leaves of a value from `address + offset`.
    pub(super) fn load(
        &mut self,
        b: &mut Builder<'_>,
        ty: TypeId,
        address: Value,
        offset: u32,
    ) -> Vec<Value> {
        let leaves = self.leaves(ty);
        let load = |leaf: &Leaf| {
            let low = self.low(leaf.ty);
            b.value(Op::MemLoad, low, &[address], (offset + leaf.offset) as u64)
        };
        leaves.iter().map(load).collect()
    }

    /// Stores the leaves of a value at `address + offset`.
    pub(super) fn store(
        &mut self,
        b: &mut Builder<'_>,
        ty: TypeId,
        address: Value,
        offset: u32,
        leaves: &[Value],
    ) {
        for (leaf, &v) in self.leaves(ty).iter().zip(leaves) {
            b.effect(Op::MemStore, &[address, v], (offset + leaf.offset) as u64);
        }
    }
}

/// The values in what a call returned.
fn take_apart(b: &mut Builder<'_>, given: Option<Value>, types: &[TypeId]) -> Vec<Value> {
    match (given, types) {
        (Some(given), &[_]) => vec![given],
        (Some(given), _) => {
            let part = |(n, &ty)| b.value(Op::StructGet, ty, &[given], n as u64);
            types.iter().enumerate().map(part).collect()
        }
        (None, _) => Vec::new(),
    }
}

/// Ends the current block with these values as what the function returns.
pub(super) fn give_back(b: &mut Builder<'_>, values: &[Value]) {
    let ret_ty = b.func().ret_ty;
    let whole = match *values {
        [] => None,
        [one] => Some(one),
        _ => Some(b.value(Op::StructNew, ret_ty, values, 0)),
    };
    b.ret(whole);
}

impl FnLowering<'_, '_, '_> {
    /// Calls code at an address: its operand, and what else it takes.
    pub(super) fn call_by_address(
        &mut self,
        code: Value,
        args: &[Value],
        ret: TypeId,
    ) -> Vec<Value> {
        if self.l.is_stored(ret) {
            let slot = self.result_slot(ret);
            self.b.effect(Op::CallAddr, &[&[code, slot], args].concat(), 0);
            return self.load(ret, slot, 0);
        }
        let types = self.l.low_types(ret);
        let returned = self.l.returned(&types);
        let given = self.b.inst(Op::CallAddr, returned, &[&[code], args].concat(), 0);
        take_apart(&mut self.b, given, &types)
    }

    /// Puts what parameters show into memory of this function, where that came by value.
    pub(super) fn receive(&mut self) {
        let convention = self.convention.clone();
        for (n, &(param, _)) in self.old.params.iter().enumerate() {
            let Some(shown) = convention.exchanged(n) else { continue };
            let leaves = self.get(param);
            let layout = self.l.types().layout(shown);
            let address = self.l.address;
            let l = &mut *self.l;
            let write = |b: &mut Builder<'_>, slot| l.store(b, shown, slot, 0, &leaves);
            let slot = self.slots.make_initialised(&mut self.b, address, layout, write);
            self.values[param.index()] = Some([slot].into());
        }
    }

    /// Ends the current block: the function returns.
    pub(super) fn return_leaves(&mut self, result: Option<Rc<[Value]>>) {
        let mut values = result.map(|leaves| leaves.to_vec()).unwrap_or_default();
        if let Some(address) = self.result_address {
            self.store(self.old.ret_ty, address, 0, &values);
            values.clear();
        }
        let convention = self.convention.clone();
        for (n, &(param, _)) in self.old.params.iter().enumerate() {
            if let Some(shown) = convention.exchanged(n) {
                let slot = self.one(param);
                values.extend(self.load(shown, slot, 0));
            }
        }
        give_back(&mut self.b, &values);
    }
}
