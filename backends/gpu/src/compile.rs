//! From a kernel of the pipeline to a blob: what every back end repeats.

use crate::BackendEmitter;
use crate::legalize::{LegalOps, keeps_vectors, legalize};
use crate::prints::{lower_prints, prints};
use magpie_diag::{Code, Diagnostic};
use magpie_mpir::analysis::{Cfg, Dominators, Loops};
use magpie_mpir::passes::{
    IndexWidth, PassContext, Pipeline, Unchecked, callees_of, lower_vectors,
};
use magpie_mpir::{Flags, FnId, Inst, Module, MpirFn};
use magpie_types::TypeCtx;
use magpie_types::kernel::{BlobCode, DeviceFeatures, GpuBackend, KernelBlob, KernelLayout};

/// The code of one body of a kernel.
#[derive(Clone, Debug)]
pub struct CompiledBody {
    /// What the driver loads.
    pub code: Vec<u8>,
    /// What the device must offer.
    pub features: DeviceFeatures,
}

/// A back end that compiles one body of a kernel at a time. Everything else that
/// [`BackendEmitter`] and callers want is derived from it.
pub trait BodyCompiler: Sync {
    /// The number of the back end.
    const BACKEND: GpuBackend;
    /// File extension of an emitted kernel, without the dot.
    const EXTENSION: &'static str;

    /// How arguments reach the kernel.
    fn layout(&self, kernel: &MpirFn, types: &TypeCtx) -> KernelLayout;

    /// Compiles a body.
    ///
    /// # Errors
    /// What the target cannot run.
    fn compile_body(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<CompiledBody, Vec<Diagnostic>>;

    /// Compiles a kernel of a module: closed by inlining, optimised, without aggregate values
    /// besides its parameters. Equal input gives equal bytes.
    ///
    /// # Errors
    /// What the target cannot run.
    fn emit(&self, module: &Module, kernel: FnId) -> Result<KernelBlob, Vec<Diagnostic>> {
        let f = module.func(kernel);
        if prints(f) {
            let mut lowered = module.clone();
            lower_prints(&mut lowered, kernel);
            return self.emit(&lowered, kernel);
        }
        let callees = callees_of(module, kernel);
        if callees.is_empty() {
            return self.emit_bodies(f, None, &module.types);
        }
        let mut f = f.clone();
        f.callees = callees;
        self.emit_bodies(&f, None, &module.types)
    }

    /// Whether a body takes so long that two are compiled at the same time, and a second only if it
    /// saves many checks.
    fn is_slow(&self) -> bool {
        false
    }

    /// As [`BodyCompiler::emit`], with a second body for launches that meet preconditions.
    ///
    /// # Errors
    /// What the target cannot run.
    fn emit_bodies(
        &self,
        robust: &MpirFn,
        unchecked: Option<&Unchecked>,
        types: &TypeCtx,
    ) -> Result<KernelBlob, Vec<Diagnostic>> {
        let unchecked = unchecked.filter(|u| !self.is_slow() || saves_much(robust, &u.body));
        let mut layout = self.layout(robust, types);
        let compile = |body: &MpirFn| self.compile_body(body, types, &layout);
        let (robust, second) = match unchecked {
            None => (compile(robust), None),
            Some(u) if self.is_slow() => at_once(|| compile(robust), || Some(compile(&u.body))),
            Some(u) => (compile(robust), Some(compile(&u.body))),
        };
        let CompiledBody { code, mut features } = robust?;
        let second = second.transpose()?;
        if let Some(u) = unchecked {
            layout.preconditions.clone_from(&u.preconditions);
        }
        let unchecked = second.map(|body| {
            features |= body.features;
            BlobCode::Bytes(body.code)
        });
        layout.features = features;
        let code = BlobCode::Bytes(code);
        Ok(KernelBlob { backend: Self::BACKEND, layout, code, unchecked })
    }
}

/// As many checks that each run once do not slow a kernel down: they are done while it waits for
/// memory.
const FREE_CHECKS: usize = 8;

/// Whether a body without checks leaves out some that run again and again, or many.
fn saves_much(robust: &MpirFn, unchecked: &MpirFn) -> bool {
    let cfg = Cfg::new(robust);
    let loops = Loops::new(&cfg, &Dominators::new(&cfg));
    let mut saved = 0;
    for b in robust.block_ids() {
        let is_left_out = |&&i: &&Inst| {
            let flags = |f: &MpirFn| f.inst(i).flags;
            flags(unchecked).contains(Flags::UNCHECKED) && flags(robust) != flags(unchecked)
        };
        let left_out = robust.block(b).insts.iter().filter(is_left_out).count();
        let may_repeat = !loops.is_reducible() || loops.depth_of(b) > 0;
        if may_repeat && left_out > 0 {
            return true;
        }
        saved += left_out;
    }
    saved > FREE_CHECKS
}

/// Bytes of stack of a thread that compiles: code generators recurse over what they are given, as
/// deep as on the main thread.
pub const STACK: usize = 8 << 20;

/// Does two things at the same time, if the system has another thread for it.
fn at_once<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, &second);
        let first = first();
        let second = match other.map(|thread| thread.join()) {
            Ok(Ok(second)) => second,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => second(),
        };
        (first, second)
    })
}

impl<T: BodyCompiler> BackendEmitter for T {
    fn backend_id(&self) -> GpuBackend {
        T::BACKEND
    }

    fn validate_kernel(&self, kernel: &MpirFn, types: &TypeCtx) -> Result<(), Vec<Diagnostic>> {
        self.compile_body(kernel, types, &self.layout(kernel, types)).map(drop)
    }

    fn compute_layout(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
    ) -> Result<KernelLayout, Vec<Diagnostic>> {
        Ok(self.layout(kernel, types))
    }

    fn emit_kernel(
        &self,
        kernel: &MpirFn,
        types: &TypeCtx,
        layout: &KernelLayout,
    ) -> Result<BlobCode, Vec<Diagnostic>> {
        Ok(BlobCode::Bytes(self.compile_body(kernel, types, layout)?.code))
    }

    fn artifact_extension(&self) -> &'static str {
        T::EXTENSION
    }
}

/// A copy of a kernel in the form that a target's emitter takes, with its types in a module that
/// has the heads of the functions that it carries.
pub fn lower_for_target(
    kernel: &MpirFn,
    types: &TypeCtx,
    legal: &LegalOps,
    width: IndexWidth,
) -> (MpirFn, Module) {
    let mut scratch = Module::with_types(types.clone());
    for (id, callee) in &kernel.callees {
        while scratch.fns.len() <= id.index() {
            scratch.fns.push(callee.head());
        }
        scratch.fns[id.index()] = callee.head();
    }
    (lower(kernel, &mut scratch, legal, width), scratch)
}

/// The functions that a kernel carries, lowered as it was; `scratch` is the module that came with it.
pub fn lower_callees(
    kernel: &MpirFn,
    scratch: &mut Module,
    legal: &LegalOps,
    width: IndexWidth,
) -> Vec<(FnId, MpirFn)> {
    let callees = kernel.callees.iter();
    callees.map(|(id, callee)| (*id, lower(callee, scratch, legal, width))).collect()
}

fn lower(f: &MpirFn, scratch: &mut Module, legal: &LegalOps, width: IndexWidth) -> MpirFn {
    let mut f = f.clone();
    if !keeps_vectors(&f, &scratch.types, legal) {
        lower_vectors(&mut f, &scratch.types, &mut PassContext::default());
    }
    legalize(&mut f, &mut scratch.types, legal);
    Pipeline::new().lower_bounds_checks(scratch, &mut f, width);
    f
}

/// Refuses a kernel that needs more than the device offers.
///
/// # Errors
/// What is missing.
pub fn check_features(
    f: &MpirFn,
    needed: DeviceFeatures,
    offered: DeviceFeatures,
    code: Code,
) -> Result<(), Vec<Diagnostic>> {
    let missing = needed.minus(offered);
    if missing == DeviceFeatures::default() {
        return Ok(());
    }
    let message = format!(
        "kernel `{}` needs what the device does not offer: {}",
        f.name,
        missing.names().join(", ")
    );
    let d = Diagnostic::new(code, f.span, message);
    Err(vec![d.with_help("run it on another device, such as `--device cpu`")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_diag::FileId;
    use magpie_mpir::parse;

    /// Whether a body that checks nothing is worth it for a kernel.
    fn unchecked_saves_much(body: &str) -> bool {
        let head = "gpu fn m.@k(%x: gpu.TBuffer<u32>) -> unit workgroup(64, 1, 1)";
        let module = parse(&format!("{head} {{\n{body}}}\n"), FileId(0)).unwrap();
        let robust = module.func(FnId(0));
        let mut unchecked = robust.clone();
        for b in robust.block_ids() {
            for &i in &robust.block(b).insts {
                if robust.inst(i).op == magpie_mpir::Op::GpuBufferStore {
                    unchecked.inst_mut(i).flags = Flags::UNCHECKED;
                }
            }
        }
        saves_much(robust, &unchecked)
    }

    #[test]
    fn checks_in_loops_and_many_checks_are_worth_a_body_without_them() {
        let stores = |count: usize| {
            let store = |n| format!("  gpu.buffer_store %x, %i, u32 {n}\n");
            (0..count).map(store).collect::<String>()
        };
        let straight = |body| format!("bb0:\n  %i: u32 = gpu.global_id dim=0\n{body}  ret\n");
        assert!(!unchecked_saves_much(&straight(String::new())));
        assert!(!unchecked_saves_much(&straight(stores(FREE_CHECKS))));
        assert!(unchecked_saves_much(&straight(stores(FREE_CHECKS + 1))));
        let in_loop = |body: String| {
            format!(
                "bb0:\n  br bb1\nbb1:\n  %i: u32 = phi [bb0: u32 0], [bb1: %next]\n{body}  \
                 %next: u32 = i.add %i, u32 1\n  %more: bool = icmp.ult %next, u32 9\n  \
                 cbr %more, bb1, bb2\nbb2:\n  ret\n"
            )
        };
        assert!(unchecked_saves_much(&in_loop(stores(1))));
        assert!(!unchecked_saves_much(&in_loop(String::new())));
    }
}
