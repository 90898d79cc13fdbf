//! The driver on a real CUDA device. Without one the tests say `skipped: needs a CUDA device`.

use super::{StreamDriver, StreamOptions, Vendor, layout};
use crate::gpu::discovery::Driver;
use crate::gpu::runtime::Runtime;
use crate::gpu::tests::conformance::Subject;
use crate::gpu::tests::support::{
    EMPTY, NEXT, SCALE, SPIN, bytes, line, only, signature, word, words,
};
use crate::gpu::{Buffer, Element, ErrorKind};
use magpie_types::fixed;
use magpie_types::kernel::{BlobCode, GpuBackend, KernelBlob};

const U32: Element = Element { ty: fixed::U32, size: 4 };

/// `%rd0` becomes the address of element `%r0`, the invocation's, of the buffer that is parameter
/// `n`; `done` is where invocations beyond its length, parameter `len`, go.
fn element(n: u32, len: u32, address: &str) -> String {
    format!(
        "ld.param.u64 %rd1, [p{len}];
         cvt.u64.u32 %rd2, %r0;
         setp.ge.u64 %p0, %rd2, %rd1;
         @%p0 bra done;
         ld.param.u64 %rd1, [p{n}];
         cvta.to.global.u64 %rd1, %rd1;
         mad.wide.u32 {address}, %r0, 4, %rd1;\n"
    )
}

/// A kernel of `support` in PTX.
fn ptx(kernel: u64) -> String {
    let (name, _) = signature(kernel);
    let (params, body) = match kernel {
        SCALE => (
            ".param .u64 p0, .param .u32 p1, .param .u64 p2",
            element(0, 2, "%rd3")
                + "ld.global.u32 %r1, [%rd3];
                   ld.param.u32 %r2, [p1];
                   mad.lo.s32 %r1, %r1, %r2, 1;
                   st.global.u32 [%rd3], %r1;\n",
        ),
        NEXT => (
            ".param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3",
            element(0, 2, "%rd3")
                + &element(1, 3, "%rd4")
                + "ld.global.u32 %r1, [%rd3];
                   add.s32 %r1, %r1, 1;
                   st.global.u32 [%rd4], %r1;\n",
        ),
        EMPTY => ("", String::new()),
        _ => (
            ".param .u64 p0, .param .u32 p1, .param .u64 p2",
            element(0, 2, "%rd3")
                + "ld.param.u32 %r2, [p1];
                   mov.u32 %r3, 0;
                   again:
                   setp.ge.u32 %p1, %r3, %r2;
                   @%p1 bra done;
                   ld.volatile.global.u32 %r1, [%rd3];
                   add.s32 %r1, %r1, %r3;
                   st.volatile.global.u32 [%rd3], %r1;
                   add.s32 %r3, %r3, 1;
                   bra again;\n",
        ),
    };
    format!(
        ".version 6.5\n.target sm_70\n.address_size 64
         .visible .entry {name}({params})
         .maxntid 64, 1, 1
         {{
         .reg .pred %p<4>;
         .reg .b32 %r<8>;
         .reg .b64 %rd<8>;
         mov.u32 %r1, %ctaid.x;
         mov.u32 %r2, %ntid.x;
         mov.u32 %r3, %tid.x;
         mad.lo.s32 %r0, %r1, %r2, %r3;
         {body}
         done:
         ret;
         }}\n"
    )
}

fn subject(options: StreamOptions) -> Option<Subject> {
    let mut driver = StreamDriver::new(Vendor::Cuda, options.clone());
    if driver.adapters().map_or(0, |adapters| adapters.len()) == 0 {
        println!("skipped: needs a CUDA device");
        return None;
    }
    let runtime = Runtime::with_drivers(only(Vendor::Cuda.driver()), vec![Box::new(driver)]);
    for kernel in [SCALE, NEXT, EMPTY, SPIN] {
        let code = BlobCode::Bytes(ptx(kernel).into_bytes());
        let layout = layout(kernel);
        let blob = KernelBlob { backend: GpuBackend::Ptx, layout, code, unchecked: None };
        runtime.register_kernel(kernel, signature(kernel).0, vec![blob], None);
    }
    Some(Subject::new(runtime))
}

#[test]
fn conforms() {
    for own_pool in [false, true] {
        let options = StreamOptions { own_pool, ..StreamOptions::default() };
        if let Some(subject) = subject(options) {
            subject.check_all();
        }
    }
}

#[test]
fn assembled_kernels_are_found_again() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let cache_folder = Some(folder.path().to_path_buf());
        let options = StreamOptions { cache_folder, ..StreamOptions::default() };
        let Some(subject) = subject(options) else { return };
        let context = &subject.context;
        let buffer = Buffer::from_bytes(context, U32, &bytes(&[1; 200]), 0).unwrap();
        // Another block: another register budget.
        let size = crate::gpu::LaunchSize { grid: [1, 1, 1], block: [200, 1, 1] };
        subject.runtime.launch(context, SCALE, size, &[&buffer], &word(4)).unwrap();
        assert_eq!(words(&buffer.read_all().unwrap()), [5; 200]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

#[test]
fn text_that_is_no_ptx_is_refused_with_what_the_assembler_says() {
    let Some(subject) = subject(StreamOptions::default()) else { return };
    let text = ptx(SCALE).replace("add.s32", "ad.s32").replace("mad.lo.s32", "mud.lo.s32");
    let (layout, code) = (layout(SCALE), BlobCode::Bytes(text.into_bytes()));
    let blob = KernelBlob { backend: GpuBackend::Ptx, layout, code, unchecked: None };
    subject.runtime.register_kernel(9, "bad", vec![blob], None);
    let buffer = Buffer::from_bytes(&subject.context, U32, &bytes(&[1]), 0).unwrap();
    let launched = subject.runtime.launch(&subject.context, 9, line(1), &[&buffer], &word(1));
    let error = launched.unwrap_err();
    assert_eq!(error.kind, ErrorKind::CompilationFailed, "{error}");
    assert!(error.code != 0 && error.message.contains("mud"), "{error}");
}
