//! MSL as C++ that the runtime's CPU device can call: arguments are found by their attributes, and
//! arrays of the workgroup become static.

use magpie_types::kernel::{KernelLayout, ParamLayout};
use std::fmt::Write;

/// A kernel's source in a namespace of its own, with a function `run_NUMBER` around it that has the
/// signature of a host kernel.
pub(crate) fn wrap(number: usize, source: &str, layout: &KernelLayout) -> String {
    let mut out = format!("namespace kernel_{number} {{\n");
    for line in source.lines() {
        match shared_array(line) {
            Some(array) => out.push_str(&array),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    let waits = source.contains("threadgroup_barrier(") || source.contains("simd_");
    let arguments = arguments(source, layout).join(", ");
    let entry = &layout.entry;
    let _ = write!(
        out,
        "extern \"C\" void run_{number}(const magpie::Launch* launch, uint64_t first, uint64_t last, uint8_t*) {{
    magpie::run(*launch, first, last, {waits}, [](const magpie::Launch& magpie_launch, const magpie::Ids& magpie_ids) {{
        (void)magpie_ids;
        {entry}({arguments});
    }});
}}
}}
"
    );
    out
}

/// The declaration `threadgroup TYPE NAME[LEN];` as one that clang takes: static, and of bytes, since
/// structures cannot be made in an address space.
fn shared_array(line: &str) -> Option<String> {
    let declaration = line.trim_start().strip_prefix("threadgroup ")?.strip_suffix("];")?;
    let (ty, rest) = declaration.split_once(' ')?;
    let (name, len) = rest.split_once('[')?;
    Some(format!(
        "static thread_local threadgroup uint4 {name}_bytes[(sizeof({ty}) * {len} + 15) / 16]; \
         threadgroup {ty}* const {name} = (threadgroup {ty}*){name}_bytes;"
    ))
}

/// Kernels for one compiler process.
pub(crate) fn join(kernels: &[String]) -> String {
    let faults = "extern \"C\" int magpie_take_faults() {
    int out = magpie::faults[1] | magpie::faults[2] << 1;
    magpie::faults[1] = magpie::faults[2] = 0;
    return out;
}
";
    format!("#include <metal_stdlib>\n{faults}{}", kernels.concat())
}

/// The arguments of a call, one for each parameter of the kernel function.
fn arguments(source: &str, layout: &KernelLayout) -> Vec<String> {
    let head = format!("kernel void {}(\n", layout.entry);
    let list = source.split_once(&head).expect("a kernel function").1;
    let list = list.split_once(")\n{").expect("a body").0;
    let parameters = list.split(",\n").map(str::trim).filter(|p| !p.is_empty());
    parameters.map(|parameter| argument(parameter, layout)).collect()
}

/// The argument for `TYPE NAME [[ATTRIBUTE]]`.
fn argument(parameter: &str, layout: &KernelLayout) -> String {
    let (declaration, attribute) = parameter.split_once(" [[").expect("an attribute");
    let attribute = attribute.strip_suffix("]]").expect("an attribute");
    let (ty, _) = declaration.rsplit_once(' ').expect("a type and a name");
    let Some(slot) = attribute.strip_prefix("buffer(") else {
        assert!(ty == "uint3" || ty == "uint" && attribute.contains("simdgroup"), "{parameter}");
        return format!("magpie_ids.{attribute}");
    };
    let slot: usize = slot.strip_suffix(')').expect("a slot").parse().expect("a number");
    let buffers = layout.num_buffers();
    let mut scalars = layout.params.iter().filter_map(|p| match p {
        ParamLayout::Scalar { offset, .. } => Some(offset),
        ParamLayout::Buffer(_) => None,
    });
    let ty = ty.strip_prefix("MAY_ALIAS ").unwrap_or(ty);
    if slot < buffers {
        assert!(ty.contains("device "), "{parameter}");
        return format!("({ty})magpie_launch.buffers[{slot}].data");
    }
    match scalars.nth(slot - buffers) {
        Some(offset) => {
            let ty = ty.strip_suffix('&').expect("a reference");
            assert!(ty.starts_with("constant "), "{parameter}");
            format!("*({ty}*)(magpie_launch.scalars + {offset})")
        }
        None => {
            assert_eq!(ty, "constant ulong*", "{parameter}");
            format!("({ty})(magpie_launch.scalars + {})", layout.scalar_size)
        }
    }
}
