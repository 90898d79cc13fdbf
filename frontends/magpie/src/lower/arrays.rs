//! Arrays.

use super::body::{Annotation, Body};
use super::*;
use crate::symbols;
use magpie_mpir::Value as MpirValue;
use magpie_types::abi::ScalarClass;
use magpie_types::{PrimType, RefMode, TypeKind};

impl Body<'_, '_> {
    /// Checks an array that an operation reads or changes; gives its element type.
    fn array(&mut self, op: AstOp, v: MpirValue, changes: bool) -> Lower<TypeId> {
        let found = self.f.ty(v);
        let object = self.seen_through(found);
        let TypeKind::Array(element) = self.kind(object) else {
            let name = self.type_name(found);
            let message = format!("`{}` needs an array, not `{name}`", op.name());
            let help = match self.kind(object) {
                TypeKind::Map(..) => "maps have `map.get`, `map.set`, …",
                TypeKind::Buffer(_) => {
                    "copy the buffer to an array with `gpu.host.@buffer_to_array`"
                }
                TypeKind::Ref(RefMode::Weak, _) => "make a shared handle with `weak.upgrade` first",
                _ => "give an `Array<T>` or a borrow of one",
            };
            return Err(self.error(Code::MPT2015, message, help));
        };
        if changes {
            self.changed(v, object, op.name());
        }
        Ok(element)
    }

    /// Checks an index or a length.
    pub(super) fn index(&mut self, op: AstOp, v: MpirValue) -> Lower<()> {
        let found = self.f.ty(v);
        if PrimType::from_id(found).is_some_and(PrimType::is_int) {
            return Ok(());
        }
        let name = self.type_name(found);
        let message = format!("`{}` needs an integer, not `{name}`", op.name());
        Err(self.error(Code::MPT2015, message, "give an index of any integer type"))
    }

    /// The type of a length, which the annotation chooses.
    pub(super) fn length_type(&mut self, op: AstOp, want: Annotation) -> Lower<TypeId> {
        match want.ty() {
            None => Ok(fixed::U64),
            Some(ty @ (fixed::I32 | fixed::U32 | fixed::I64 | fixed::U64)) => Ok(ty),
            Some(ty) => {
                let name = self.type_name(ty);
                let message = format!("the result of `{}` cannot be a `{name}`", op.name());
                Err(self.error(Code::MPT2014, message, "write `i32`, `u32`, `i64` or `u64`"))
            }
        }
    }

    pub(super) fn arr_new(&mut self, types: &[TypeArg], args: &[Arg], want: Annotation) -> Lower {
        let written = match *types {
            [TypeArg::Type(ty)] => Some(self.type_use(ty)?),
            _ => None,
        };
        if let Some(element) = written.filter(|&ty| self.is_view(ty)) {
            let name = self.type_name(element);
            let message = format!("an array cannot hold a borrow, `{name}`");
            return Err(self.error(
                Code::MPO0003,
                message,
                "store owned values or `shared` handles",
            ));
        }
        let ty = match (written, want.ty()) {
            (Some(element), _) => self.intern(TypeKind::Array(element)),
            (None, Some(ty)) if matches!(self.kind(ty), TypeKind::Array(_)) => ty,
            (None, Some(ty)) => {
                let name = self.type_name(ty);
                let message = format!("`arr.new` makes an array, not a `{name}`");
                return Err(self.error(Code::MPT2014, message, "annotate the result `Array<T>`"));
            }
            (None, None) => {
                let help = "write `arr.new<T> { … }`, or annotate the result `Array<T>`";
                return Err(self.error(Code::MPT2014, "nothing says what the array holds", help));
            }
        };
        let TypeKind::Array(element) = self.kind(ty) else { return Err(Poisoned) };
        if let [arg] = args
            && arg.key == symbols::CAP
        {
            let v = self.arg(arg)?;
            self.index(AstOp::ArrNew, v)?;
            return Ok(self.emit(MpirOp::ArrNew, ty, &[v], 0));
        }
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            let Ok(v) = self.arg(arg) else { continue };
            let key = arg.key;
            let what = |b: &Self| format!("element `{}`", b.scope.name(key));
            if self.stored(v, element, Code::MPT2014, what).is_ok() {
                values.push(v);
            }
        }
        if values.len() < args.len() {
            return Err(Poisoned);
        }
        Ok(self.emit(MpirOp::ArrFrom, ty, &values, 0))
    }

    pub(super) fn arr_len(&mut self, args: &[Arg], want: Annotation) -> Lower {
        let [v] = self.args::<1>(args)?;
        self.array(AstOp::ArrLen, v, false)?;
        let ty = self.length_type(AstOp::ArrLen, want)?;
        Ok(self.emit(MpirOp::ArrLen, ty, &[v], 0))
    }

    pub(super) fn arr_get(&mut self, args: &[Arg], want: Annotation) -> Lower {
        let values = self.args::<2>(args)?;
        let element = self.array(AstOp::ArrGet, values[0], false)?;
        self.index(AstOp::ArrGet, values[1])?;
        let shown = self.shown(element, want);
        Ok(self.emit(MpirOp::ArrGet, shown, &values, 0))
    }

    pub(super) fn arr_set(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<3>(args)?;
        let element = self.array(AstOp::ArrSet, values[0], true)?;
        self.index(AstOp::ArrSet, values[1])?;
        self.stored(values[2], element, Code::MPT2014, |_| "the element".to_string())?;
        Ok(self.emit(MpirOp::ArrSet, fixed::UNIT, &values, 0))
    }

    pub(super) fn arr_push(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        let element = self.array(AstOp::ArrPush, values[0], true)?;
        self.stored(values[1], element, Code::MPT2014, |_| "the element".to_string())?;
        Ok(self.emit(MpirOp::ArrPush, fixed::UNIT, &values, 0))
    }

    pub(super) fn arr_pop(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<1>(args)?;
        let element = self.array(AstOp::ArrPop, values[0], true)?;
        let ty = self.intern(TypeKind::Option(element));
        Ok(self.emit(MpirOp::ArrPop, ty, &values, 0))
    }

    pub(super) fn arr_slice(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<3>(args)?;
        let element = self.array(AstOp::ArrSlice, values[0], false)?;
        self.index(AstOp::ArrSlice, values[1])?;
        self.index(AstOp::ArrSlice, values[2])?;
        if !self.is_copied(element) {
            let name = self.type_name(element);
            let message = format!("the elements, `{name}`, cannot be copied into a slice");
            let help = "keep `shared` handles in the array, or move elements out with `arr.pop`";
            return Err(self.error(Code::MPT1022, message, help));
        }
        let ty = self.intern(TypeKind::Array(element));
        Ok(self.emit(MpirOp::ArrSlice, ty, &values, 0))
    }

    /// Whether a second value can be made of one: copied values, and counted handles.
    pub(super) fn is_copied(&self, ty: TypeId) -> bool {
        self.cx.module.types.is_copy(ty)
            || matches!(self.kind(ty), TypeKind::Ref(RefMode::Shared | RefMode::Weak, _))
    }

    pub(super) fn arr_contains(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        let element = self.array(AstOp::ArrContains, values[0], false)?;
        self.looked_at(AstOp::ArrContains, values[1], element)?;
        let eq = self.comparator(Interface::Eq, element)?;
        Ok(self.emit(MpirOp::ArrContains, fixed::BOOL, &values, eq as u64))
    }

    /// Checks a value that is compared with something of type `wanted`.
    pub(super) fn looked_at(&mut self, op: AstOp, v: MpirValue, wanted: TypeId) -> Lower<()> {
        let found = self.f.ty(v);
        if found == wanted || self.seen_through(found) == wanted {
            return Ok(());
        }
        let (found, wanted) = (self.type_name(found), self.type_name(wanted));
        let message = format!("`{}` needs a `{wanted}`, not `{found}`", op.name());
        Err(self.error(Code::MPT2014, message, format!("give a `{wanted}`")))
    }

    pub(super) fn arr_sort(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<1>(args)?;
        let element = self.array(AstOp::ArrSort, values[0], true)?;
        let ord = self.comparator(Interface::Ord, element)?;
        Ok(self.emit(MpirOp::ArrSort, fixed::UNIT, &values, ord as u64))
    }

    /// The function that hashes or compares values of a type, plus one; 0 when that is built in.
    pub(super) fn comparator(&mut self, interface: Interface, ty: TypeId) -> Lower<u32> {
        if ScalarClass::from_u64(ty.0 as u64).is_some() {
            return Ok(0);
        }
        match self.cx.implementation(interface, ty) {
            Some(function) => Ok(function.0 + 1),
            None => {
                let name = self.type_name(ty);
                let word = impls::interface_word(interface);
                let message = format!("`{name}` has no `{word}`");
                let help = format!("write `impl {word} for {name} = @function`");
                Err(self.error(Code::MPT1023, message, help))
            }
        }
    }

    // ----- with callables -----

    /// The signature of a callable.
    pub(super) fn callable_sig(&mut self, op: &str, v: MpirValue) -> Lower<(Vec<TypeId>, TypeId)> {
        let found = self.f.ty(v);
        match self.kind(self.seen_through(found)) {
            TypeKind::Callable(sig) => {
                let sig = self.cx.module.types.sig_def(sig);
                Ok((sig.params.clone(), sig.ret))
            }
            _ => {
                let name = self.type_name(found);
                let message = format!("`{op}` needs a callable, not `{name}`");
                let help = "make one with `callable.capture @f { }`";
                Err(self.error(Code::MPT2015, message, help))
            }
        }
    }

    /// Checks that a callable takes `first` and then an element, and returns `ret` if that is given.
    fn element_callable(
        &mut self,
        op: AstOp,
        v: MpirValue,
        first: Option<TypeId>,
        element: TypeId,
        ret: Option<TypeId>,
    ) -> Lower<TypeId> {
        let (params, found_ret) = self.callable_sig(op.name(), v)?;
        let takes_element = |b: &Self, param: TypeId| {
            (param == element && b.cx.module.types.is_copy(element))
                || b.kind(param) == TypeKind::Ref(RefMode::Borrow, element)
        };
        let fits = match (params.as_slice(), first) {
            (&[param], None) => takes_element(self, param),
            (&[acc, param], Some(first)) => acc == first && takes_element(self, param),
            _ => false,
        } && ret.is_none_or(|ret| ret == found_ret);
        if fits {
            return Ok(found_ret);
        }
        let element_name = self.type_name(element);
        let taken = match self.cx.module.types.is_copy(element) {
            true => element_name,
            false => format!("borrow {element_name}"),
        };
        let first = first.map(|ty| format!("{}, ", self.type_name(ty))).unwrap_or_default();
        let ret = ret.map_or("T".to_string(), |ty| self.type_name(ty));
        let message = format!("the callable of `{}` has another signature", op.name());
        let help = format!("its signature must be `({first}{taken}) -> {ret}`");
        Err(self.error(Code::MPT2003, message, help))
    }

    pub(super) fn arr_map(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        let element = self.array(AstOp::ArrMap, values[0], false)?;
        let result = self.element_callable(AstOp::ArrMap, values[1], None, element, None)?;
        let ty = self.intern(TypeKind::Array(result));
        Ok(self.emit(MpirOp::ArrMap, ty, &values, 0))
    }

    pub(super) fn arr_filter(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        let element = self.array(AstOp::ArrFilter, values[0], false)?;
        self.element_callable(AstOp::ArrFilter, values[1], None, element, Some(fixed::BOOL))?;
        if !self.is_copied(element) {
            let name = self.type_name(element);
            let message = format!("the elements, `{name}`, cannot be copied into a new array");
            let help = "keep `shared` handles in the array";
            return Err(self.error(Code::MPT1022, message, help));
        }
        let ty = self.intern(TypeKind::Array(element));
        Ok(self.emit(MpirOp::ArrFilter, ty, &values, 0))
    }

    pub(super) fn arr_reduce(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<3>(args)?;
        let element = self.array(AstOp::ArrReduce, values[0], false)?;
        let init = self.f.ty(values[1]);
        let op = AstOp::ArrReduce;
        self.element_callable(op, values[2], Some(init), element, Some(init))?;
        Ok(self.emit(MpirOp::ArrReduce, init, &values, 0))
    }

    pub(super) fn arr_foreach(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        let element = self.array(AstOp::ArrForeach, values[0], false)?;
        self.element_callable(AstOp::ArrForeach, values[1], None, element, Some(fixed::UNIT))?;
        Ok(self.emit(MpirOp::ArrForeach, fixed::UNIT, &values, 0))
    }
}
