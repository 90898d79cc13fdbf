//! Strings and string builders: calls of the runtime.

use super::body::{Annotation, Body};
use super::*;
use magpie_mpir::Value as MpirValue;
use magpie_types::TypeKind;
use magpie_types::abi::RtFn;

impl Body<'_, '_> {
    /// Calls a runtime function.
    pub(super) fn runtime(&mut self, function: RtFn, ty: TypeId, args: &[MpirValue]) -> Out {
        self.emit(MpirOp::RtCall, ty, args, function as u64)
    }

    /// Checks text that is looked at.
    pub(super) fn text(&mut self, op: AstOp, v: MpirValue) -> Lower<()> {
        let found = self.f.ty(v);
        if self.seen_through(found) == fixed::STR {
            return Ok(());
        }
        let name = self.type_name(found);
        let message = format!("`{}` needs a `Str`, not `{name}`", op.name());
        Err(self.error(Code::MPT2015, message, "give a `Str`, a borrow of one, or a literal"))
    }

    pub(super) fn str_concat(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        for v in values {
            self.text(AstOp::StrConcat, v)?;
            if self.f.ty(v) != fixed::STR {
                let name = self.type_name(self.f.ty(v));
                let message =
                    format!("`str.concat` takes its operands over, but one is a `{name}`");
                let help = "append borrowed text to a builder: `str.builder.append_str`";
                return Err(self.error(Code::MPT2015, message, help));
            }
        }
        Ok(self.runtime(RtFn::StrConcat, fixed::STR, &values))
    }

    pub(super) fn str_len(&mut self, args: &[Arg], want: Annotation) -> Lower {
        let values = self.args::<1>(args)?;
        self.text(AstOp::StrLen, values[0])?;
        let ty = self.length_type(AstOp::StrLen, want)?;
        let wide = if ty == fixed::I64 { ty } else { fixed::U64 };
        let Out::Value(len) = self.runtime(RtFn::StrLen, wide, &values) else {
            return Err(Poisoned);
        };
        if ty == wide {
            return Ok(Out::Value(len));
        }
        Ok(self.emit(MpirOp::Cast, ty, &[len], 0))
    }

    pub(super) fn str_eq(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        self.text(AstOp::StrEq, values[0])?;
        self.text(AstOp::StrEq, values[1])?;
        Ok(self.runtime(RtFn::StrEq, fixed::BOOL, &values))
    }

    pub(super) fn str_slice(&mut self, args: &[Arg]) -> Lower {
        let [text, start, end] = self.args::<3>(args)?;
        self.text(AstOp::StrSlice, text)?;
        self.index(AstOp::StrSlice, start)?;
        self.index(AstOp::StrSlice, end)?;
        let start = self.widened(start)?;
        let end = self.widened(end)?;
        Ok(self.runtime(RtFn::StrSlice, fixed::STR, &[text, start, end]))
    }

    /// An integer as 64 bits.
    pub(super) fn widened(&mut self, v: MpirValue) -> Lower<MpirValue> {
        match self.f.ty(v) {
            fixed::I64 | fixed::U64 => Ok(v),
            _ => self.emit_value(MpirOp::Cast, fixed::I64, &[v], 0),
        }
    }

    pub(super) fn str_bytes(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<1>(args)?;
        self.text(AstOp::StrBytes, values[0])?;
        let ty = self.intern(TypeKind::Array(fixed::U8));
        Ok(self.runtime(RtFn::StrBytes, ty, &values))
    }

    pub(super) fn str_parse(&mut self, op: AstOp, args: &[Arg]) -> Lower {
        let values = self.args::<1>(args)?;
        self.text(op, values[0])?;
        let (function, ty) = match op {
            AstOp::StrParseI64 => (RtFn::StrParseI64, fixed::I64),
            AstOp::StrParseU64 => (RtFn::StrParseU64, fixed::U64),
            AstOp::StrParseF64 => (RtFn::StrParseF64, fixed::F64),
            _ => (RtFn::StrParseBool, fixed::BOOL),
        };
        let ty = self.intern(TypeKind::Result(ty, fixed::STR));
        Ok(self.runtime(function, ty, &values))
    }

    // ----- builders -----

    pub(super) fn builder_new(&mut self) -> Lower {
        Ok(self.runtime(RtFn::SbNew, fixed::STR_BUILDER, &[]))
    }

    /// Checks a builder that is appended to.
    fn builder(&mut self, op: AstOp, v: MpirValue) -> Lower<()> {
        let found = self.f.ty(v);
        if self.seen_through(found) != fixed::STR_BUILDER {
            let name = self.type_name(found);
            let message = format!("`{}` needs a `TStrBuilder`, not `{name}`", op.name());
            let help = "make one with `str.builder.new { }`";
            return Err(self.error(Code::MPT2015, message, help));
        }
        self.changed(v, fixed::STR_BUILDER, op.name());
        Ok(())
    }

    pub(super) fn builder_build(&mut self, args: &[Arg]) -> Lower {
        let [v] = self.args::<1>(args)?;
        if self.f.ty(v) != fixed::STR_BUILDER {
            let name = self.type_name(self.f.ty(v));
            let message = format!("`str.builder.build` takes over a `TStrBuilder`, not `{name}`");
            let help = "give the owned builder, made with `str.builder.new { }`";
            return Err(self.error(Code::MPT2015, message, help));
        }
        Ok(self.runtime(RtFn::SbBuild, fixed::STR, &[v]))
    }

    pub(super) fn append_str(&mut self, args: &[Arg]) -> Lower {
        let values = self.args::<2>(args)?;
        self.builder(AstOp::StrBuilderAppendStr, values[0])?;
        self.text(AstOp::StrBuilderAppendStr, values[1])?;
        Ok(self.runtime(RtFn::SbAppendStr, fixed::UNIT, &values))
    }

    /// The forms of `append` for numbers and `bool`.
    pub(super) fn append_number(&mut self, op: AstOp, args: &[Arg]) -> Lower {
        let [builder, v] = self.args::<2>(args)?;
        self.builder(op, builder)?;
        let (function, wanted) = match op {
            AstOp::StrBuilderAppendI64 => (RtFn::SbAppendI64, fixed::I64),
            AstOp::StrBuilderAppendI32 => (RtFn::SbAppendI64, fixed::I32),
            AstOp::StrBuilderAppendU64 => (RtFn::SbAppendU64, fixed::U64),
            AstOp::StrBuilderAppendF64 => (RtFn::SbAppendF64, fixed::F64),
            _ => (RtFn::SbAppendBool, fixed::BOOL),
        };
        let found = self.f.ty(v);
        if found != wanted {
            let (found, wanted) = (self.type_name(found), self.type_name(wanted));
            let message = format!("`{}` needs a `{wanted}`, not `{found}`", op.name());
            let help = format!("convert it: `cast<{found}, {wanted}> {{ v=… }}`");
            return Err(self.error(Code::MPT2014, message, help));
        }
        let v = if wanted == fixed::I32 { self.widened(v)? } else { v };
        Ok(self.runtime(function, fixed::UNIT, &[builder, v]))
    }
}
