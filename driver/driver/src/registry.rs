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
    pub(crate) blobs: &'a [KernelBlob],
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
            layout.visible_params().len(),
            layout.num_arguments(),
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
    let visible = layout.visible_params().iter().map(|p| match p {
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

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_mpir::Domain;
    use magpie_types::kernel::{
        BlobCode, BufferParam, DeviceFeatures, GpuBackend, ScalarTransport,
    };
    use magpie_types::{Sid, SidKind};

    fn blob() -> KernelBlob {
        let buffer = BufferParam {
            index: 0,
            binding: 0,
            elem: fixed::F32,
            host_stride: 4,
            device_stride: 4,
            writes: true,
        };
        let layout = KernelLayout {
            entry: "main".into(),
            params: vec![
                ParamLayout::Buffer(buffer),
                ParamLayout::Scalar { offset: 0, size: 4, ty: fixed::U32 },
            ],
            scalar_size: 16,
            hidden: vec![HiddenLength { buffer: 0, offset: 16, size: 4 }],
            block_size: 32,
            transport: ScalarTransport::PushConstants,
            workgroup: [64, 1, 1],
            fixed_workgroup: false,
            shared_bytes: 0,
            features: DeviceFeatures::default(),
            preconditions: Vec::new(),
            prints: Vec::new(),
        };
        let code = BlobCode::Bytes(b"\x03\x02\"\\a".to_vec());
        KernelBlob { backend: GpuBackend::Spv, layout, code, unchecked: None }
    }

    #[test]
    fn every_kernel_with_a_blob_is_an_entry() {
        let kernel = |name| {
            MpirFn::new(Sid::new(SidKind::Function, name), name, fixed::UNIT, Domain::Device)
        };
        let (with, without) = (kernel("demo.main.@kernel_add"), kernel("demo.main.@k"));
        let blobs = [blob()];
        let entries =
            [Entry { kernel: &with, blobs: &blobs }, Entry { kernel: &without, blobs: &[] }];
        let text = text(&TypeCtx::new(), &entries);
        let container = kernel_codec::encode(&blob()).unwrap().len();
        // The hash of the kernel as a signed number, then the counts of blobs, parameters, buffers
        // and scalar bytes.
        let hash = 12394533262257085662u64 as i64;
        for expected in [
            format!(
                "@blob.F_23R834YQS8.spv = private unnamed_addr constant [{container} x i8] c\"MPGK"
            ),
            "\\03\\02\\22\\5Ca".to_string(),
            format!(
                "[1 x %MpRtGpuKernelBlob] [%MpRtGpuKernelBlob {{ i8 1, ptr @blob.F_23R834YQS8.spv, i32 {container} }}]"
            ),
            "[3 x %MpRtGpuParam] [%MpRtGpuParam { i8 1, i8 0, i16 0, i32 14, i32 0, i32 4 }, \
             %MpRtGpuParam { i8 2, i8 0, i16 0, i32 9, i32 0, i32 4 }, \
             %MpRtGpuParam { i8 3, i8 0, i16 0, i32 9, i32 16, i32 4 }]"
                .to_string(),
            format!(
                "%MpRtGpuKernelEntry {{ i64 {hash}, i32 1, ptr @blobs.F_23R834YQS8, i32 2, ptr @params.F_23R834YQS8, i32 1, i32 16 }}"
            ),
            "@mp_gpu_kernels = private constant [1 x %MpRtGpuKernelEntry]".to_string(),
            "call void @mp_rt_gpu_register_kernels(ptr @mp_gpu_kernels, i32 1)".to_string(),
        ] {
            assert!(text.contains(&expected), "{expected}\n{text}");
        }
        assert!(!text.contains("XB76HQ4FB2"), "{text}");
    }

    #[test]
    fn no_kernels_are_an_empty_list() {
        let text = text(&TypeCtx::new(), &[]);
        assert!(text.contains("constant [0 x %MpRtGpuKernelEntry] [\n\n]"), "{text}");
    }
}
