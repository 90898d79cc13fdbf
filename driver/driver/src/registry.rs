//! `<stem>.gpu_registry.ll`: the kernels of a program as LLVM IR, for programs that are linked
//! (GPU specification, section 10).
//!
//! The structures are those of `mp_rt_gpu_register_kernels` (`magpie_rt`, `gpu::abi`); LLVM lays
//! them out as C does. Each blob is a container that holds the layout beside the code.

use magpie_mpir::MpirFn;
use magpie_types::kernel::{HiddenLength, KernelBlob, KernelLayout, ParamLayout};
use magpie_types::{TypeCtx, TypeId, fixed, kernel_codec};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// A kernel and its blobs, one a back end. CPU blobs are linked in another way.
pub(crate) struct Entry<'a> {
    pub(crate) kernel: &'a MpirFn,
    pub(crate) blobs: Vec<KernelBlob>,
}

const HEAD: &str = "\
%MpRtGpuKernelBlob = type { i8, ptr, i32 }
%MpRtGpuParam = type { i8, i8, i16, i32, i32, i32 }
%MpRtGpuKernelEntry = type { i64, i32, ptr, i32, ptr, i32, i32 }

declare void @mp_rt_gpu_register_kernels(ptr, i32)
";

/// The text of the registry. Kernels without a blob are left out: nothing could launch them.
pub(crate) fn text(types: &TypeCtx, entries: &[Entry<'_>]) -> String {
    let ids = types.runtime_ids();
    let mut out = HEAD.to_string();
    let mut list = Vec::new();
    for Entry { kernel, blobs } in entries {
        let Some(first) = blobs.first() else { continue };
        let name = kernel.sid.file_name();
        let _ = write!(out, "\n; {}\n", kernel.name);
        let blobs = write_blobs(&mut out, &name, blobs);
        let params = write_params(&mut out, &name, &first.layout, &ids);
        let layout = &first.layout;
        list.push(format!(
            "  %MpRtGpuKernelEntry {{ i64 {}, i32 {blobs}, ptr @blobs.{name}, i32 {}, ptr {params}, i32 {}, i32 {} }}",
            kernel.sid.hash() as i64,
            layout.params.len(),
            layout.num_buffers(),
            layout.scalar_size,
        ));
    }
    let count = list.len();
    let _ = write!(
        out,
        "\n@mp_gpu_kernels = private constant [{count} x %MpRtGpuKernelEntry] [\n{}\n]\n\n\
         define void @mp_gpu_register_all_kernels() {{\n  \
         call void @mp_rt_gpu_register_kernels(ptr @mp_gpu_kernels, i32 {count})\n  \
         ret void\n}}\n",
        list.join(",\n"),
    );
    out
}

/// Writes the containers of a kernel and their list; gives their number.
fn write_blobs(out: &mut String, name: &str, blobs: &[KernelBlob]) -> usize {
    let mut list = Vec::new();
    for blob in blobs {
        let Ok(container) = kernel_codec::encode(blob) else { continue };
        let global = format!("@blob.{name}.{}", blob.backend.name());
        let len = container.len();
        let _ = write!(out, "{global} = private unnamed_addr constant [{len} x i8] c\"");
        for byte in container {
            match byte {
                b' '..=b'~' if byte != b'"' && byte != b'\\' => out.push(byte as char),
                _ => {
                    let _ = write!(out, "\\{byte:02X}");
                }
            }
        }
        out.push_str("\", align 16\n");
        list.push(format!(
            "%MpRtGpuKernelBlob {{ i8 {}, ptr {global}, i32 {len} }}",
            blob.backend as u8
        ));
    }
    let count = list.len();
    let _ = writeln!(
        out,
        "@blobs.{name} = private constant [{count} x %MpRtGpuKernelBlob] [{}]",
        list.join(", ")
    );
    count
}

/// Writes the parameters of a kernel, hidden lengths behind them; gives the operand that names them.
fn write_params(
    out: &mut String,
    name: &str,
    layout: &KernelLayout,
    ids: &FxHashMap<TypeId, u32>,
) -> String {
    let param = |kind: u8, ty: TypeId, at: u32, size: u32| {
        let id = ids.get(&ty).copied().unwrap_or(ty.0);
        format!("%MpRtGpuParam {{ i8 {kind}, i8 0, i16 0, i32 {id}, i32 {at}, i32 {size} }}")
    };
    let visible = layout.params.iter().map(|p| match p {
        ParamLayout::Buffer(b) => param(1, b.elem, b.binding, b.host_stride),
        ParamLayout::Scalar { offset, size, ty } => param(2, *ty, *offset, *size),
    });
    let hidden = layout.hidden.iter().map(|&HiddenLength { offset, size, .. }| {
        param(3, if size == 8 { fixed::U64 } else { fixed::U32 }, offset, size)
    });
    let list: Vec<String> = visible.chain(hidden).collect();
    if list.is_empty() {
        return "null".to_string();
    }
    let _ = writeln!(
        out,
        "@params.{name} = private constant [{} x %MpRtGpuParam] [{}]",
        list.len(),
        list.join(", ")
    );
    format!("@params.{name}")
}
