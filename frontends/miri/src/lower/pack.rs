//! Host arrays as devices have them, and back: `int` in 32 bits, `float` as `f32`, members of
//! structs likewise.

use super::body::{Body, Val};
use super::stop::Word;
use super::{Cx, Form, Helper};
use crate::ast::Sym;
use crate::ty::{Ty, TyKind, TyList, fixed as ty};
use magpie_diag::Span;
use magpie_mpir::{Builder, Domain, FnId, MpirFn, Op, Value};
use magpie_types::abi::RtFn;
use magpie_types::{Sid, SidKind, TypeId, TypeKind, fixed};

/// What is converted for a device, for messages.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    /// An element of a collection that is bound, by what messages call its binding and its index.
    Element { of: Value, index: Value, is_whole: bool },
    /// A value that is bound, or a part of it.
    Bound { name: Sym, is_whole: bool },
    /// The value of a name that a launch needs.
    Local(Sym),
    /// Something without a name.
    Unnamed(&'static str),
}

impl Cx<'_> {
    /// The buffers of a device-resident value: type of the elements, and which field it is.
    pub(super) fn parts_of(&mut self, t: Ty) -> Vec<(Ty, Option<u32>)> {
        match self.tys.kind(t) {
            TyKind::Array(e, _) | TyKind::List(e) => vec![(e, None)],
            TyKind::Struct(n, args) if self.has_collection(n, args) => {
                let fields = self.fields(n, args);
                let part = |(at, f): (usize, &(crate::ast::Sym, Ty))| match self.tys.kind(f.1) {
                    TyKind::Array(e, _) | TyKind::List(e) => (e, Some(at as u32)),
                    _ => (f.1, Some(at as u32)),
                };
                fields.iter().enumerate().map(part).collect()
            }
            _ => vec![(t, None)],
        }
    }

    /// Whether a struct has fields that are collections: each is a buffer of its own.
    fn has_collection(&mut self, n: u32, args: TyList) -> bool {
        let fields = self.fields(n, args);
        fields.iter().any(|f| self.tys.element(f.1).is_some())
    }

    /// The machine type of a buffer of elements of a type.
    pub(super) fn buffer_type(&mut self, element: Ty) -> TypeId {
        let e = self.element_machine(element);
        self.intern(TypeKind::Buffer(e))
    }

    /// The machine type of elements in memory of kernels: vectors are structs there.
    pub(super) fn element_machine(&mut self, element: Ty) -> TypeId {
        match self.tys.kind(element) {
            TyKind::Vector(..) => self.machine(element, Form::Packed),
            _ => self.machine(element, Form::Device),
        }
    }

    /// The element type that a device-resident binding has: floats are `f32`.
    pub(super) fn resident_type(&mut self, t: Ty) -> Ty {
        let kind = match self.tys.kind(t) {
            TyKind::Float => return ty::F32,
            TyKind::Array(e, n) => TyKind::Array(self.resident_type(e), n),
            TyKind::List(e) => TyKind::List(self.resident_type(e)),
            _ => return t,
        };
        self.tys.intern(kind)
    }

    /// The host type of elements read back.
    pub(super) fn read_back_type(&mut self, t: Ty) -> Ty {
        let kind = match self.tys.kind(t) {
            TyKind::Atomic(t) => return t,
            TyKind::Array(e, n) => TyKind::Array(self.read_back_type(e), n),
            TyKind::List(e) => TyKind::List(self.read_back_type(e)),
            _ => return t,
        };
        self.tys.intern(kind)
    }

    /// Whether elements lie in host arrays as they do on devices.
    fn is_packed(&mut self, element: Ty) -> bool {
        self.machine(element, Form::Host) == self.machine(element, Form::Packed)
    }

    /// `fn(view of Array<host>) Array<packed>`, or the contrary. `None` when they are the same.
    fn pack_helper(&mut self, element: Ty, unpack: bool) -> Option<FnId> {
        if self.is_packed(element) {
            return None;
        }
        let helper = if unpack { Helper::Unpack } else { Helper::Pack };
        if let Some(&id) = self.helpers.get(&(helper, element)) {
            return Some(id);
        }
        let word = if unpack { "unpack" } else { "pack" };
        let name = format!("miri.@{word}.{}", self.ty_name(element));
        let fn_id = self.reserve(&name);
        self.helpers.insert((helper, element), fn_id);
        let host = self.machine(element, Form::Host);
        let packed = self.machine(element, Form::Packed);
        let (from, to) = if unpack { (packed, host) } else { (host, packed) };
        let from_array = self.intern(TypeKind::Array(from));
        let to_array = self.intern(TypeKind::Array(to));
        let view = self.view(from_array);
        let name_view = self.view(fixed::STR);
        let mut f = MpirFn::new(Sid::new(SidKind::Function, &name), name, to_array, Domain::Host);
        let param = f.add_param("from", view, Span::NONE);
        let name = f.add_param("name", name_view, Span::NONE);
        let mut body = Body::new(self, Builder::new(&mut f), false, Vec::new());
        let len = body.array_len(param);
        let out = body.b.value(Op::ArrNew, to_array, &[len], 0);
        body.count_to(len, &mut |body, i| {
            let v = match unpack {
                true => {
                    let v = body.b.value(Op::ArrGet, from, &[param, i], 0);
                    body.unpacked(v, element).v
                }
                false => {
                    let list = body.cx.tys.intern(TyKind::List(element));
                    let array = Val { ty: list, v: param, owned: false };
                    let item = body.element(array, i, element, Span::NONE);
                    let is_whole = element == ty::INT;
                    body.packed(item, Origin::Element { of: name, index: i, is_whole })
                }
            };
            body.b.effect(Op::ArrPush, &[out, v], 0);
        });
        body.b.ret(Some(out));
        body.b.finish();
        self.finish_fn(fn_id, f);
        Some(fn_id)
    }
}

impl Body<'_, '_, '_> {
    /// An array of elements of a binding as it is uploaded.
    pub(super) fn pack_array(&mut self, array: Val, element: Ty, name: Sym) -> Value {
        let Some(helper) = self.cx.pack_helper(element, false) else { return array.v };
        let packed = self.cx.machine(element, Form::Packed);
        let id = self.cx.intern(TypeKind::Array(packed));
        let at = self.cx.place_text(self.span);
        let text = format!("`{}` at {at}", self.cx.program.name(name));
        self.convert(helper, id, array.v, &text)
    }

    /// An array that was read back, as the host has it.
    pub(super) fn unpack_array(&mut self, array: Value, element: Ty, name: Sym) -> Value {
        let Some(helper) = self.cx.pack_helper(element, true) else { return array };
        let host = self.cx.machine(element, Form::Host);
        let id = self.cx.intern(TypeKind::Array(host));
        let text = self.cx.program.name(name).to_string();
        self.convert(helper, id, array, &text)
    }

    fn convert(&mut self, helper: FnId, to: TypeId, array: Value, name: &str) -> Value {
        let name = self.text(name);
        let name = self.look_at(name);
        self.b.value(Op::Call, to, &[array, name], helper.0.into())
    }

    /// A host value as devices have it. An `int` must fit 32 bits.
    pub(super) fn packed(&mut self, val: Val, of: Origin) -> Value {
        let Val { ty: t, v, .. } = val;
        let to = self.cx.machine(t, Form::Packed);
        match self.cx.tys.kind(t) {
            TyKind::Int => {
                let narrow = self.b.cast(v, fixed::I32);
                let back = self.b.cast(narrow, fixed::I64);
                let bad = self.b.compare(Op::IcmpNe, back, v);
                let (stop, go_on) = (self.new_block(), self.new_block());
                self.b.cbr(bad, stop, go_on);
                self.enter(stop);
                self.report_range(v, of);
                self.go_to(go_on);
                self.enter(go_on);
                narrow
            }
            TyKind::Tuple(_) | TyKind::Struct(..) => {
                let fields = self.cx.members_of(t);
                let mut parts = Vec::with_capacity(fields.len());
                for (n, f) in fields.into_iter().enumerate() {
                    let member = self.field(val, n as u32, f);
                    parts.push(match f {
                        ty::BOOL => self.b.cast(member.v, fixed::U32),
                        _ => self.packed(member, of),
                    });
                }
                self.b.value(Op::StructNew, to, &parts, 0)
            }
            TyKind::Array(element, _) => self.pack_inline(val, element, of),
            TyKind::Enum(..) => self.enum_tag(val).unwrap_or(v),
            _ if self.scalar(t).is_some() => self.b.cast(v, to),
            _ => v,
        }
    }

    /// An `i64` of the launch itself in 32 bits.
    pub(super) fn packed_int(&mut self, v: Value) -> Value {
        let val = self.val(ty::INT, v);
        self.packed(val, Origin::Unnamed("a bound of the launch"))
    }

    /// A value that was on a device as the host has it.
    fn unpacked(&mut self, v: Value, t: Ty) -> Val {
        let to = self.cx.machine(t, Form::Host);
        match self.cx.tys.kind(t) {
            TyKind::Tuple(_) | TyKind::Struct(..) => {
                let from = self.b.ty(v);
                let members = self.cx.module.types.members(from).unwrap_or_default();
                let fields = self.cx.members_of(t);
                let mut vals = Vec::with_capacity(fields.len());
                for (n, f) in fields.into_iter().enumerate() {
                    let member = self.b.value(Op::StructGet, members[n], &[v], n as u64);
                    vals.push(self.unpacked_member(member, f));
                }
                self.new_struct(t, &vals)
            }
            TyKind::Array(element, _) => self.unpack_inline(v, t, element),
            _ if self.scalar(t).is_some() => {
                let v = self.b.cast(v, to);
                self.val(t, v)
            }
            _ => self.val(t, v),
        }
    }

    /// As [`Body::unpacked`], for a member of a struct: truth values are words there.
    pub(super) fn unpacked_member(&mut self, v: Value, t: Ty) -> Val {
        if t != ty::BOOL {
            return self.unpacked(v, t);
        }
        let zero = self.b.func().zero(fixed::U32);
        let v = self.b.compare(Op::IcmpNe, v, zero);
        self.val(t, v)
    }

    /// An `int` does not fit the 32 bits of devices. Bindings note it until a kernel needs them;
    /// in a launch it ends the program.
    fn report_range(&mut self, v: Value, of: Origin) {
        let mut end = ", but an `int` on a device has 32 bits".to_string();
        if self.span.is_some() {
            end.push_str(&format!(" at {}", self.cx.place_text(self.span)));
        }
        let (is, end) = (Word::Text(" is "), Word::Text(&end));
        let (message, whole) = match of {
            Origin::Element { of: name, index, is_whole } => {
                let [element, of] = ["element ", " of "].map(Word::Text);
                let words = [element, Word::Int(index), of, Word::Str(name), is, Word::Int(v), end];
                (self.message(&words), is_whole.then_some(index))
            }
            Origin::Bound { name, is_whole } => {
                let name = format!("`{}`", self.cx.program.name(name));
                let message = self.message(&[Word::Text(&name), is, Word::Int(v), end]);
                let zero = self.i64(0);
                (message, is_whole.then_some(zero))
            }
            Origin::Local(name) => {
                let name = format!("`{}`", self.cx.program.name(name));
                return self.stop(&[Word::Text(&name), is, Word::Int(v), end]);
            }
            Origin::Unnamed(what) => {
                return self.stop(&[Word::Text(what), is, Word::Int(v), end]);
            }
        };
        let index = whole.unwrap_or_else(|| self.i64(-1));
        self.rt(RtFn::GpuResidentUnfit, fixed::UNIT, &[message, index, v]);
    }
}
