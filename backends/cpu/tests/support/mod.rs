//! Running a kernel as machine code.

use magpie_codegen_cpu::{KernelBody, KernelCode, Runtime, compile_kernel};
use magpie_diag::Span;
use magpie_gpu::layout::{LayoutRules, ScalarRule, compute_layout};
use magpie_interp::Argument;
use magpie_mpir::{FnId, Module};
use magpie_types::TypeId;
use magpie_types::abi::RtFn;
use magpie_types::kernel::{
    HostBuffer, HostKernel, HostKernelFn, HostLaunch, KernelLayout, ParamLayout,
};

struct NoHost;

impl Runtime for NoHost {
    fn function(&self, f: RtFn) -> *const u8 {
        magpie_rt::symbol_address(f)
    }
    fn str_object(&mut self, _: &str) -> *const u8 {
        std::ptr::null()
    }
    fn c_string(&mut self, _: &str) -> *const u8 {
        std::ptr::null()
    }
    fn type_info(&mut self, _: TypeId, _: u32) -> *const u8 {
        std::ptr::null()
    }
    fn describe(&self, _: Span) -> Option<String> {
        None
    }
}

const RULES: LayoutRules = LayoutRules {
    scalars: ScalarRule::Arguments,
    storage8: true,
    storage16: true,
    hidden_length: 0,
    fixed_workgroup: false,
};

/// A launch: sizes, arguments in parameter order, and the buffers they name.
pub(crate) struct Case<'a> {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) arguments: &'a [Argument],
    pub(crate) buffers: &'a [Vec<u8>],
}

/// The buffers after the launch as machine code: of the code for workgroups of any size and of that
/// for those of the launch, which give the same. The kernel has unchecked accesses only.
pub(crate) fn execute(module: &Module, kernel: FnId, case: &Case) -> Vec<Vec<u8>> {
    let f = module.func(kernel);
    let layout = compute_layout(f, &module.types, &RULES);
    let bodies = [None, Some(case.block)].map(|workgroup| KernelBody { code: f, workgroup });
    let code = compile_kernel(module, &bodies, &layout, &mut NoHost).expect("compiles");
    let [any, fixed] = [0, 1].map(|n| run_body(&code, code.bodies[n], &layout, case));
    assert_eq!(any, fixed, "the code for workgroups of any size and of this one differ");
    any
}

/// The buffers after the launch of a body, in two calls of half the workgroups each.
fn run_body(
    code: &KernelCode,
    body: HostKernel,
    layout: &KernelLayout,
    case: &Case,
) -> Vec<Vec<u8>> {
    // Aligned copies: a buffer of the runtime is.
    let mut memory: Vec<Vec<u128>> =
        case.buffers.iter().map(|b| vec![0; b.len() / 16 + 1]).collect();
    for (words, bytes) in memory.iter_mut().zip(case.buffers) {
        // SAFETY: the words have room for the bytes.
        unsafe {
            let to = words.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }
    let mut host = Vec::new();
    let mut scalars = vec![0u8; layout.scalar_size.max(16) as usize];
    for (p, a) in layout.params.iter().zip(case.arguments) {
        match (p, a) {
            (ParamLayout::Buffer(b), Argument::Buffer(n)) => host.push(HostBuffer {
                data: memory[*n].as_mut_ptr().cast(),
                len: case.buffers[*n].len() as u64 / b.host_stride.max(1) as u64,
            }),
            (ParamLayout::Scalar { offset, size, .. }, Argument::Scalar(bytes)) => {
                let at = *offset as usize;
                scalars[at..at + *size as usize].copy_from_slice(&bytes[..*size as usize]);
            }
            _ => panic!("arguments fit the parameters"),
        }
    }
    let (grid, block) = (case.grid, case.block);
    let mut deep = 0;
    let launch = HostLaunch {
        buffers: host.as_ptr(),
        scalars: scalars.as_ptr(),
        grid,
        block,
        fault: &mut deep,
    };
    let invocations: u32 = block.iter().product();
    let bytes = code.shared_bytes.next_multiple_of(64) + body.frame_bytes * invocations;
    let mut scratch = vec![0x5au64; bytes as usize / 8 + 16];
    let start = scratch.as_mut_ptr().cast::<u8>();
    // SAFETY: the padding of 128 bytes has room for the alignment.
    let aligned = unsafe { start.add(start.align_offset(64)) };
    let groups: u64 = grid.iter().map(|&g| g as u64).product();
    // SAFETY: the entry was compiled with this signature, and all memory lives until after the call.
    unsafe {
        let entry: HostKernelFn = std::mem::transmute(body.entry);
        entry(&launch, 0, groups / 2, aligned);
        entry(&launch, groups / 2, groups, aligned);
    }
    assert_eq!(deep, 0, "calls became too deep");
    let bytes_of = |(words, bytes): (&Vec<u128>, &Vec<u8>)| {
        words.iter().flat_map(|w| w.to_le_bytes()).take(bytes.len()).collect()
    };
    memory.iter().zip(case.buffers).map(bytes_of).collect()
}
