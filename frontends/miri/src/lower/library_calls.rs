//! Calls of the functions that the library has in the compiler.

use super::body::{Body, Val};
use super::stop::Word;
use super::{Lower, Poisoned};
use crate::ast::*;
use crate::ty::{Ty, TyKind, fixed as ty};
use magpie_diag::{Code, Span};
use magpie_mpir::{Op, imm_pair};
use magpie_types::abi::RtFn;
use magpie_types::{TypeKind, fixed};

impl Body<'_, '_, '_> {
    pub(super) fn call_library(
        &mut self,
        name: &'static str,
        args: &[Arg],
        want: Option<Ty>,
        span: Span,
    ) -> Lower<Val> {
        if super::library::is_io(name) && self.device {
            let (code, message) = match self.kernel.is_some() {
                true => (Code::MIR1801, format!("`{name}` in a kernel")),
                false => (Code::MIR1803, format!("`{name}` in a function that a kernel calls")),
            };
            let help = "print on the host, after a readback";
            return Err(self.error(code, span, message, help));
        }
        self.check_names(name, args)?;
        if !self.device && !name.starts_with("atomic_") {
            self.refuse_resident_args(args)?;
        }
        match name {
            "print" | "println" | "eprint" | "eprintln" | "panic" => self.print(name, args, span),
            "Some" => {
                let [e] = self.plain_args(name, args, span)?;
                self.no_alloc(span, "an option")?;
                let inner = match want.map(|t| self.cx.tys.kind(t)) {
                    Some(TyKind::Option(t)) => self.expr_as(e, t)?,
                    _ => self.expr(e, None)?,
                };
                let option = self.cx.tys.intern(TyKind::Option(inner.ty));
                Ok(self.some(inner, option))
            }
            "Ok" | "Err" => self.new_result(name, args, want, span),
            "List" => {
                let [items] = self.plain_args(name, args, span)?;
                self.list_of(items, want, span)
            }
            "gpu_reset_telemetry" => {
                let [] = self.plain_args(name, args, span)?;
                self.on_host(name, span)?;
                self.rt(RtFn::GpuTelemetryReset, fixed::UNIT, &[]);
                Ok(self.unit())
            }
            "gpu_uploads" | "gpu_launches" | "gpu_readbacks" | "gpu_fences" | "gpu_releases" => {
                let [] = self.plain_args(name, args, span)?;
                self.on_host(name, span)?;
                let all =
                    ["gpu_uploads", "gpu_launches", "gpu_readbacks", "gpu_fences", "gpu_releases"];
                let which = all.iter().position(|&n| n == name).unwrap_or_default();
                let which = self.i32(which as i32);
                let v = self.rt_value(RtFn::GpuTelemetry, fixed::I64, &[which]);
                Ok(self.val(ty::INT, v))
            }
            "is_gpu_available" => {
                let [] = self.plain_args(name, args, span)?;
                self.on_host(name, span)?;
                let v = self.rt_value(RtFn::GpuIsAvailable, fixed::BOOL, &[]);
                Ok(self.val(ty::BOOL, v))
            }
            "args" => {
                let [] = self.plain_args(name, args, span)?;
                let t = self.cx.tys.intern(TyKind::List(ty::STR));
                let id = self.machine(t);
                let v = self.rt_value(RtFn::OsArgs, id, &[]);
                Ok(self.val(t, v))
            }
            "__find" => {
                let [s, part, from] = self.plain_args(name, args, span)?;
                let (s, part) = (self.expr_as(s, ty::STR)?, self.expr_as(part, ty::STR)?);
                let from = self.expr_as(from, ty::INT)?;
                let v = self.rt_value(RtFn::StrFind, fixed::I64, &[s.v, part.v, from.v]);
                Ok(self.val(ty::INT, v))
            }
            "__part" => {
                let [s, a, b] = self.plain_args(name, args, span)?;
                let s = self.expr_as(s, ty::STR)?;
                let (a, b) = (self.expr_as(a, ty::INT)?, self.expr_as(b, ty::INT)?);
                let v = self.rt_value(RtFn::StrSlice, fixed::STR, &[s.v, a.v, b.v]);
                Ok(self.val(ty::STR, v))
            }
            "__bytes" => {
                let [s] = self.plain_args(name, args, span)?;
                let s = self.expr_as(s, ty::STR)?;
                let v = self.rt_value(RtFn::StrLen, fixed::I64, &[s.v]);
                Ok(self.val(ty::INT, v))
            }
            // A list of so many elements that are written next.
            "__zeroed" => {
                let [len] = self.plain_args(name, args, span)?;
                let len = self.expr_as(len, ty::INT)?;
                let t = want.unwrap_or(ty::ERROR);
                let id = self.machine(t);
                let v = self.rt_value(RtFn::ArrZeroed, id, &[len.v]);
                Ok(self.val(t, v))
            }
            "read_bytes" | "read_text" | "write_bytes" | "write_text" => {
                self.file(name, args, span)
            }
            "dot" | "length" | "normalize" | "cross" | "reflect" => {
                self.vector_builtin(name, args, span)
            }
            _ if name.starts_with("atomic_") => self.atomic(name, args, span),
            _ => self.math(name, args, want, span),
        }
    }

    fn on_host(&mut self, name: &str, span: Span) -> Lower<()> {
        if !self.device {
            return Ok(());
        }
        let message = format!("`{name}` runs on the host only");
        Err(self.error(Code::MIR1803, span, message, "call it outside of the kernel"))
    }

    fn print(&mut self, name: &str, args: &[Arg], span: Span) -> Lower<Val> {
        let value = match args {
            [] if name.ends_with("ln") => self.text(""),
            _ => {
                let [e] = self.plain_args(name, args, span)?;
                let val = self.expr(e, Some(ty::STR))?;
                if val.ty != ty::STR {
                    if val.ty == ty::ERROR {
                        return Err(Poisoned);
                    }
                    let at = self.expr_span(e);
                    let message =
                        format!("`{name}` takes a `String`, not a `{}`", self.cx.ty_name(val.ty));
                    let help = "write it into a text: `f\"{value}\"`";
                    return Err(self.error(Code::MIR0202, at, message, help));
                }
                val
            }
        };
        self.at(span);
        let f = match name {
            "print" => RtFn::Print,
            "println" => RtFn::Println,
            "eprint" => RtFn::Eprint,
            "eprintln" => RtFn::Eprintln,
            _ => {
                let place = self.cx.place_text(span);
                // Nobody wrote the library's own lines.
                let place = match place.starts_with(crate::LIBRARY_NAME) {
                    true => String::new(),
                    false => format!(" at {place}"),
                };
                self.stop(&[Word::Str(value.v), Word::Text(&place)]);
                self.begin_dead();
                return Ok(self.unit());
            }
        };
        self.rt(f, fixed::UNIT, &[value.v]);
        Ok(self.unit())
    }

    fn new_result(&mut self, name: &str, args: &[Arg], want: Option<Ty>, span: Span) -> Lower<Val> {
        self.no_alloc(span, "a result")?;
        let [e] = self.plain_args(name, args, span)?;
        let want = want.or(self.returns.ty);
        let Some(TyKind::Result(t, error)) = want.map(|t| self.cx.tys.kind(t)) else {
            let message = format!("nothing says of which `Result` this is the `{name}`");
            let help = "declare the type: `let r Result<int, String> = Ok(1)`";
            return Err(self.error(Code::MIR0202, span, message, help));
        };
        let (part, variant) = if name == "Ok" { (t, 0) } else { (error, 1) };
        let val = self.expr_as(e, part)?;
        let v = self.own(val);
        let result = self.cx.tys.intern(TyKind::Result(t, error));
        let id = self.machine(result);
        let v = self.b.value(Op::EnumNew, id, &[v], variant);
        Ok(self.val(result, v))
    }

    /// A list with the elements of an array or a list.
    pub(super) fn list_of(&mut self, items: ExprId, want: Option<Ty>, span: Span) -> Lower<Val> {
        self.no_alloc(span, "a list")?;
        let wanted = want.filter(|&t| matches!(self.cx.tys.kind(t), TyKind::List(_)));
        let val = self.expr(items, wanted)?;
        let Some(element) = self.cx.tys.element(val.ty) else {
            let message = format!("a list is not made of a `{}`", self.cx.ty_name(val.ty));
            return Err(self.error(Code::MIR0202, span, message, "write `List([1, 2, 3])`"));
        };
        let t = self.cx.tys.intern(TyKind::List(element));
        Ok(Val { ty: t, ..val })
    }

    fn file(&mut self, name: &str, args: &[Arg], span: Span) -> Lower<Val> {
        let reads = name.starts_with("read");
        let bytes = name.ends_with("bytes");
        let list = {
            let byte = self.cx.tys.prim(magpie_types::PrimType::U8);
            self.cx.tys.intern(TyKind::List(byte))
        };
        let content = if bytes { list } else { ty::STR };
        let (f, operands, ok) = if reads {
            let [path] = self.plain_args(name, args, span)?;
            let path = self.expr_as(path, ty::STR)?;
            let f = if bytes { RtFn::FsReadBytes } else { RtFn::FsReadText };
            (f, vec![path.v], content)
        } else {
            let [path, data] = self.plain_args(name, args, span)?;
            let (path, data) = (self.expr_as(path, ty::STR)?, self.expr_as(data, content)?);
            let f = if bytes { RtFn::FsWriteBytes } else { RtFn::FsWriteText };
            (f, vec![path.v, data.v], ty::BOOL)
        };
        let ok_machine = if reads { self.machine(ok) } else { fixed::UNIT };
        let raw = self.cx.intern(TypeKind::Result(ok_machine, fixed::STR));
        let v = self.rt_value(f, raw, &operands);
        let t = self.cx.tys.intern(TyKind::Result(ok, ty::STR));
        if reads {
            return Ok(self.val(t, v));
        }
        // Nothing becomes `true`.
        let id = self.machine(t);
        let result = self.b.declare(id);
        let is_err = super::clone::enum_is(self, v, 1);
        let (bad, good, join) = (self.new_block(), self.new_block(), self.new_block());
        self.b.cbr(is_err, bad, good);
        self.enter(bad);
        let why = self.b.value(Op::EnumPayload, fixed::STR, &[v], imm_pair(1, 0));
        let err = self.b.value(Op::EnumNew, id, &[why], 1);
        self.b.write(result, err);
        self.b.br(join);
        self.enter(good);
        let yes = self.b.func().const_bool(true);
        let fine = self.b.value(Op::EnumNew, id, &[yes], 0);
        self.b.write(result, fine);
        self.b.br(join);
        self.enter(join);
        let v = self.b.read(result);
        Ok(self.val(t, v))
    }
}
