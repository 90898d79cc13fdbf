//! The C header of the runtime: structs as they stand in `header/prelude.h`, enums and functions
//! from the tables and the functions themselves.

use crate::symbols;
use magpie_types::abi::{AbiReturn, MathFn, PanicKind, RtFn, ScalarClass};
use magpie_types::kernel::GpuBackend;
use magpie_types::{ERROR_KINDS, MEMORY_HINTS};
use std::fmt::{Debug, Write};

/// The text of `magpie_rt.h`, which is kept at `runtime/rt/include/magpie_rt.h`.
pub fn c_header() -> String {
    let mut out = include_str!("header/prelude.h").to_string();
    let numbered = |names: &[&str]| -> Vec<(String, u64)> {
        names.iter().map(|name| name.to_string()).zip(0..).collect()
    };
    let panics: Vec<_> = PanicKind::ALL.map(|kind| variant(kind, kind as u64)).into();
    let classes = (0..64).filter_map(|id| Some(variant(ScalarClass::from_u64(id)?, id)));
    let math: Vec<_> = MathFn::ALL.map(|op| variant(op, op as u64)).into();
    let backends: Vec<_> = GpuBackend::ALL.map(|backend| variant(backend, backend as u64)).into();
    push_enum(&mut out, "MpRtPanicKind", "MP_RT_PANIC", &panics);
    push_enum(&mut out, "MpRtScalarClass", "MP_RT_CLASS", &classes.collect::<Vec<_>>());
    push_enum(&mut out, "MpRtMathFn", "MP_RT_MATH", &math);
    push_enum(&mut out, "MpRtGpuErrorKind", "MP_RT_GPU_ERROR", &numbered(&ERROR_KINDS));
    push_enum(&mut out, "MpRtGpuMemoryHint", "MP_RT_GPU_HINT", &numbered(&MEMORY_HINTS));
    push_enum(&mut out, "MpRtGpuBackend", "MP_RT_GPU_BACKEND", &backends);
    for &f in RtFn::ALL {
        push_function(&mut out, f);
    }
    out + include_str!("header/postlude.h")
}

fn variant(name: impl Debug, value: u64) -> (String, u64) {
    (format!("{name:?}"), value)
}

fn push_enum(out: &mut String, name: &str, prefix: &str, variants: &[(String, u64)]) {
    let _ = write!(out, "\ntypedef enum {name} {{\n");
    for (variant, value) in variants {
        let _ = writeln!(out, "    {prefix}_{} = {value},", screaming_snake(variant));
    }
    out.truncate(out.trim_end_matches(",\n").len());
    let _ = write!(out, "\n}} {name};\n");
}

/// `OutOfMemory` to `OUT_OF_MEMORY`.
fn screaming_snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

fn push_function(out: &mut String, f: RtFn) {
    // The symbol table's own test finds a row without a function.
    let Some(entry) = symbols::any_entry(f) else { return };
    let doc = f.doc();
    if !doc.is_empty() {
        // What the documentation links to has a prefix in C.
        let doc = doc.replace("[`", "`MpRt").replace("`]", "`").replace('\n', "\n   ");
        let _ = write!(out, "\n/* {doc} */\n");
    }
    let outs: &[&str] = match f.ret() {
        AbiReturn::Void | AbiReturn::Never | AbiReturn::Value(_) => &[],
        AbiReturn::Status => &["out_err"],
        AbiReturn::StatusOut(_) => &["out", "out_err"],
        AbiReturn::Maybe(_) => &["out"],
    };
    let names = f.params().iter().map(|&(name, _)| name).chain(outs.iter().copied());
    let params: Vec<String> = entry
        .params
        .iter()
        .zip(names)
        .map(|(ty, name)| format!("{} {name}", (ty.name)()))
        .collect();
    let ret = match entry.ret {
        Some(ty) => (ty.name)(),
        None => "MP_RT_NORETURN void".to_string(),
    };
    let params = if params.is_empty() { vec!["void".to_string()] } else { params };
    push_declaration(out, &format!("{ret} {}(", f.symbol()), &params);
}

/// Writes `head`, the parameters and the end, over several lines where one is too long.
fn push_declaration(out: &mut String, head: &str, params: &[String]) {
    const WIDTH: usize = 100;
    out.push_str(head);
    let mut column = head.len();
    for (i, param) in params.iter().enumerate() {
        let separator = if i == 0 { "" } else { "," };
        // The end of the last line needs two characters.
        if column + separator.len() + 1 + param.len() + 2 > WIDTH {
            let _ = write!(out, "{separator}\n    {param}");
            column = 4 + param.len();
        } else {
            let space = if i == 0 { "" } else { " " };
            let _ = write!(out, "{separator}{space}{param}");
            column += separator.len() + space.len() + param.len();
        }
    }
    out.push_str(");\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_header_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/include/magpie_rt.h");
        let header = c_header();
        if std::env::var_os("MAGPIE_UPDATE").is_some_and(|value| value == "1") {
            std::fs::write(path, &header).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == header,
            "{path} is out of date: run the test once with MAGPIE_UPDATE=1"
        );
    }
}
