//! `docs/reference/mpir-ops.md` is the op table as a page. `MAGPIE_UPDATE=1` writes it anew.

use magpie_mpir::{Class, Consumes, ImmKind, Memory, Op, Place, Signature};
use std::fmt::Write;
use std::path::Path;

const INTRODUCTION: &str = "# MPIR operations

This page is written from the op table (`ir/mpir/src/op.rs`) by a test; change the table, then run
`MAGPIE_UPDATE=1 cargo test -p magpie_mpir --test ops_reference`.

- **Types**: operands and result. *int*, *float* and *bool* stand for scalars and vectors of them;
  *own rule* means that the verifier (`ir/mpir/src/verify`) has a rule for the op alone.
- **Immediate**: the `key=value` parts of the text form; parts in brackets may be left out.
- **Effects**: memory touched; *traps* may end the program; *convergent* may not gain or lose
  control dependence. An op without effects depends on its operands alone.
- **Stands in**: *any* code, *device* code, *host* code before lowering, *lowered* host code, or *any
  host* code.
- **Consumes**: operands whose ownership passes to the op in host code.
";

fn class(c: Class) -> &'static str {
    match c {
        Class::Int => "int",
        Class::IntOrBool => "int or bool",
        Class::Float => "float",
        Class::FloatVec => "float vector",
    }
}

fn types(signature: Signature) -> String {
    match signature {
        Signature::Same(n, c) => format!("{} → same", vec![class(c); n as usize].join(", ")),
        Signature::Compare(c) => format!("{0}, {0} → bool", class(c)),
        Signature::Convert => "one → own rule".into(),
        Signature::Leaf => "→ own rule".into(),
        Signature::Own => "own rule".into(),
    }
}

fn immediate(op: Op) -> String {
    let parts = op.info().immediate.parts().iter().map(|part| {
        let value = match part.kind {
            ImmKind::Number | ImmKind::Signed => "N",
            ImmKind::Func | ImmKind::OptionalFunc => "NAME",
            ImmKind::Rt => "SYMBOL",
            ImmKind::Type => "TYPE",
        };
        let text = format!("`{}={value}`", part.key);
        if part.optional { format!("[{text}]") } else { text }
    });
    parts.collect::<Vec<_>>().join(" ")
}

fn effects(op: Op) -> String {
    let info = op.info();
    let memory = match info.memory {
        Memory::None => None,
        Memory::Read => Some("reads"),
        Memory::Write => Some("writes"),
        Memory::Atomic => Some("atomic"),
        Memory::Fence => Some("fence"),
        Memory::Any => Some("any memory"),
    };
    let traps = info.may_trap.then_some("traps");
    let convergent = info.convergent.then_some("convergent");
    [memory, traps, convergent].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn place(p: Place) -> &'static str {
    match p {
        Place::Both => "any",
        Place::Device => "device",
        Place::Host => "host",
        Place::LowHost => "lowered",
        Place::AnyHost => "any host",
    }
}

fn consumes(c: Consumes) -> &'static str {
    match c {
        Consumes::None => "",
        Consumes::All => "all",
        Consumes::Rest => "all but the first",
        Consumes::First => "the first",
        Consumes::Second => "the second",
        Consumes::Callee => "as the callee says",
    }
}

/// Ops of one dotted family stand together, in the order of the table.
fn page() -> String {
    let family = |op: Op| op.name().split_once('.').map_or("", |(family, _)| family);
    let mut families: Vec<&str> = Vec::new();
    for &op in Op::ALL {
        if !families.contains(&family(op)) {
            families.push(family(op));
        }
    }
    let mut out = INTRODUCTION.to_string();
    for name in families {
        match name {
            "" => out.push_str("\n## Without a family\n\n"),
            name => _ = writeln!(out, "\n## `{name}`\n"),
        }
        out.push_str("| Op | Types | Immediate | Effects | Stands in | Consumes | Meaning |\n");
        out.push_str("|---|---|---|---|---|---|---|\n");
        for &op in Op::ALL.iter().filter(|&&op| family(op) == name) {
            let info = op.info();
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} | {} | {} | {} |",
                info.name,
                types(info.signature),
                immediate(op),
                effects(op),
                place(info.place),
                consumes(info.consumes),
                info.doc.replace('|', "\\|"),
            );
        }
    }
    out
}

#[test]
fn the_reference_page_is_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/mpir-ops.md");
    let page = page();
    if std::env::var_os("MAGPIE_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/reference/mpir-ops.md is stale; MAGPIE_UPDATE=1 writes it anew"
    );
}
