//! The module of a kernel: declarations, functions, entry point.

use crate::functions::Functions;
use crate::interface::{Builtin, Interface};
use crate::language::Wgsl;
use crate::memory::Memory;
use crate::uniform_loads::UniformLoads;
use magpie_gpu::structurize::StructuredBody;
use magpie_gpu::text::{Emit, Shape, Text, write_body};
use magpie_mpir::{MpirFn, ValueDef};
use magpie_types::kernel::{DeviceFeatures, KernelLayout, ParamLayout};
use magpie_types::{PrimType, TypeCtx, TypeKind};

/// What Chrome wants to see before subgroup operations. Other implementations do not know these
/// lines; the native driver leaves them out.
const SUBGROUPS: &str = "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n";

/// The module of the kernel whose structured form is `body`, and the features it needs.
pub(crate) fn write_module(
    types: &TypeCtx,
    f: &MpirFn,
    layout: &KernelLayout,
    body: &StructuredBody,
) -> Emit<(String, DeviceFeatures)> {
    let mut text = Text::new::<Wgsl>(types, f, layout);
    let is_written = |object| match f.def(object) {
        ValueDef::Param(n) => match &layout.params[n as usize] {
            ParamLayout::Buffer(b) => b.writes,
            ParamLayout::Scalar { .. } => false,
        },
        ValueDef::Inst(_) => true,
        ValueDef::Const(_) => false,
    };
    let mut wgsl = Wgsl {
        functions: Functions::default(),
        interface: Interface::default(),
        memory: Memory::default(),
        uniform_loads: UniformLoads::find(f, types, body, is_written),
        needs: needed_types(f, types),
    };
    let names: Vec<String> = f.param_names.iter().map(|name| text.take_name(&wgsl, name)).collect();
    wgsl.declare_scalars(&mut text, &names)?;
    wgsl.declare_buffers(&mut text, &names)?;
    write_body(&mut wgsl, &mut text, body)?;

    let mut prologue = String::new();
    if wgsl.interface.uses_zero {
        let groups = wgsl.interface.builtin(Builtin::NumWorkgroups);
        // A launch without workgroups would have another.
        prologue = format!("    let zero = select(0u, 1u, {groups}.x == 0u);\n");
    }
    let mut out = String::with_capacity(text.out.len() + 1024);
    if wgsl.needs.contains(DeviceFeatures::SUBGROUP) {
        out.push_str(SUBGROUPS);
    }
    if wgsl.needs.contains(DeviceFeatures::FLOAT16) {
        out.push_str("enable f16;\n");
    }
    out.push_str(&wgsl.memory.declarations);
    out.push_str(&wgsl.scalar_block(&text)?);
    out.push_str(wgsl.functions.text());
    let [x, y, z] = layout.workgroup;
    let entry = &layout.entry;
    let parameters = wgsl.interface.entry_parameters();
    out.push_str(&format!(
        "\n@compute @workgroup_size({x}, {y}, {z})\nfn {entry}({parameters}) {{\n"
    ));
    out.push_str(&prologue);
    out.push_str(&text.prologue);
    out.push_str(&text.out);
    out.push_str("}\n");
    Ok((out, wgsl.needs))
}

/// Features behind the types of a kernel. f16 stands in it only where the target has it.
fn needed_types(f: &MpirFn, types: &TypeCtx) -> DeviceFeatures {
    let is_half = |ty| Shape::of_type(types, ty).is_some_and(|shape| shape.prim == PrimType::F16);
    let has_half = |ty| match types.kind(ty) {
        TypeKind::Buffer(elem) | TypeKind::SharedArray(elem, _) | TypeKind::LocalArray(elem, _) => {
            types.leaves(elem).iter().any(|leaf| is_half(leaf.ty))
        }
        _ => types.leaves(ty).iter().any(|leaf| is_half(leaf.ty)),
    };
    match f.locals.iter().any(|local| has_half(local.ty)) {
        true => DeviceFeatures::FLOAT16,
        false => DeviceFeatures::default(),
    }
}
