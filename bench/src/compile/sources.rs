//! One kernel of any number of operations, in the language of every contender.

use std::fmt::Write;

/// One step of the kernel: an operation on the last value and one of the loaded ones. None folds
/// away.
#[derive(Clone, Copy)]
enum Step {
    Scale,
    Add,
    SubtractFrom,
    Max,
}

const STEPS: [Step; 4] = [Step::Scale, Step::Add, Step::SubtractFrom, Step::Max];

/// The steps that follow the first sum, each with its number.
fn steps(ops: usize) -> impl Iterator<Item = (usize, Step)> {
    (1..ops).map(|op| (op, STEPS[op % STEPS.len()]))
}

/// `module bench.chain` with the kernel `@chain`.
pub(super) fn magpie(ops: usize) -> String {
    let mut text = "module bench.chain
exports { @chain }
imports { }
digest \"0000000000000000\"

gpu fn @chain(%x: gpu.TBuffer<f32>, %y: gpu.TBuffer<f32>) -> unit target(spv) workgroup(64, 1, 1) {
bb0:
  %i: u32 = gpu.global_id { dim=const.u32 0 }
  %a: f32 = gpu.buffer_load<f32> { buf=%x, idx=%i }
  %b: f32 = gpu.buffer_load<f32> { buf=%y, idx=%i }
  %v0: f32 = f.add { lhs=%a, rhs=%b }
"
    .to_string();
    for (op, step) in steps(ops) {
        let last = op - 1;
        let _ = match step {
            Step::Scale => writeln!(text, "  %v{op}: f32 = f.mul {{ lhs=%v{last}, rhs=%a }}"),
            Step::Add => writeln!(text, "  %v{op}: f32 = f.add {{ lhs=%v{last}, rhs=%b }}"),
            Step::SubtractFrom => {
                writeln!(text, "  %v{op}: f32 = f.sub {{ lhs=%b, rhs=%v{last} }}")
            }
            Step::Max => writeln!(text, "  %v{op}: f32 = f.max {{ lhs=%v{last}, rhs=%a }}"),
        };
    }
    let last = ops - 1;
    let _ = write!(text, "  gpu.buffer_store<f32> {{ buf=%y, idx=%i, v=%v{last} }}\n  ret\n}}\n");
    text
}

/// What the steps look like in the languages of shaders and in CUDA C++: `head`, a declaration for
/// each value, and a store.
fn like_c(head: &str, declare: &str, max: &str, tail: &str, ops: usize) -> String {
    let mut text = format!("{head}  {declare} v0 = a + b;\n");
    for (op, step) in steps(ops) {
        let last = op - 1;
        let _ = match step {
            Step::Scale => writeln!(text, "  {declare} v{op} = v{last} * a;"),
            Step::Add => writeln!(text, "  {declare} v{op} = v{last} + b;"),
            Step::SubtractFrom => writeln!(text, "  {declare} v{op} = b - v{last};"),
            Step::Max => writeln!(text, "  {declare} v{op} = {max}(v{last}, a);"),
        };
    }
    let _ = write!(text, "  y[i] = v{};\n{tail}", ops - 1);
    text
}

/// A compute shader with the entry `chain`.
pub(super) fn wgsl(ops: usize) -> String {
    const HEAD: &str = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn chain(@builtin(global_invocation_id) gid: vec3<u32>) {
  let i = gid.x;
  let a = x[i];
  let b = y[i];
";
    like_c(HEAD, "let", "max", "}\n", ops)
}

/// A compute shader.
pub(super) fn glsl(ops: usize) -> String {
    const HEAD: &str = "#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  float a = x[i];
  float b = y[i];
";
    like_c(HEAD, "float", "max", "}\n", ops)
}

/// CUDA C++ with the kernel `chain`, which checks its bounds as ours does.
pub(super) fn cuda(ops: usize) -> String {
    const HEAD: &str = "
extern \"C\" __global__ void chain(const float* x, float* y, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
  float a = x[i];
  float b = y[i];
";
    like_c(HEAD, "float", "fmaxf", "  }\n}\n", ops)
}

/// A Python module with the Triton kernel `chain`.
pub(super) fn triton(ops: usize) -> String {
    let mut text = "import triton
import triton.language as tl


@triton.jit
def chain(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask)
    b = tl.load(y + i, mask=mask)
    v0 = a + b
"
    .to_string();
    for (op, step) in steps(ops) {
        let last = op - 1;
        let _ = match step {
            Step::Scale => writeln!(text, "    v{op} = v{last} * a"),
            Step::Add => writeln!(text, "    v{op} = v{last} + b"),
            Step::SubtractFrom => writeln!(text, "    v{op} = b - v{last}"),
            Step::Max => writeln!(text, "    v{op} = tl.maximum(v{last}, a)"),
        };
    }
    let _ = writeln!(text, "    tl.store(y + i, v{}, mask=mask)", ops - 1);
    text
}
