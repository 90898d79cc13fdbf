//! The built-in structs and enums that have fields or variants.

use crate::{Category, Field, TypeCtx, TypeKind, ctx::value_variants, fixed};

/// Variant names of `gpu.ErrorKind`, in tag order (GPU specification, section 4.3).
pub const ERROR_KINDS: [&str; 12] = [
    "DeviceLost",
    "OutOfMemory",
    "LaunchFailed",
    "InvalidKernel",
    "BackendUnavailable",
    "BufferError",
    "TimeoutExpired",
    "Unsupported",
    "CompilationFailed",
    "DriverError",
    "ResourceExhausted",
    "ValidationFailed",
];

/// Variant names of `gpu.MemoryHint`, in tag order (GPU specification, section 9.3).
pub const MEMORY_HINTS: [&str; 5] = ["Auto", "DeviceLocal", "Unified", "Staging", "Cached"];

fn field(name: &str, ty: crate::TypeId) -> Field {
    Field { name: name.to_string(), ty }
}

/// Defines the built-in types that are structs or enums. Their layouts are those of the C ABI.
pub(crate) fn define(ctx: &mut TypeCtx) {
    ctx.declare_fixed_enum(fixed::GPU_ERROR_KIND, "gpu.ErrorKind", &ERROR_KINDS);
    ctx.declare_fixed_struct(
        fixed::GPU_ERROR,
        "gpu.TError",
        vec![
            field("kind", fixed::GPU_ERROR_KIND),
            field("backend", fixed::STR),
            field("message", fixed::STR),
            field("code", fixed::I32),
        ],
    );
    let metadata = ctx.intern(TypeKind::Map(fixed::STR, fixed::STR));
    ctx.declare_fixed_struct(
        fixed::GPU_PROFILE_EVENT,
        "gpu.TProfileEvent",
        vec![
            field("name", fixed::STR),
            field("start_ns", fixed::U64),
            field("end_ns", fixed::U64),
            field("metadata", metadata),
        ],
    );
    ctx.declare_fixed_struct(
        fixed::GPU_MEMORY_STATS,
        "gpu.TMemoryStats",
        vec![
            field("allocated_bytes", fixed::U64),
            field("peak_allocated_bytes", fixed::U64),
            field("num_allocations", fixed::U64),
            field("num_frees", fixed::U64),
            field("device_total_bytes", fixed::U64),
            field("device_available_bytes", fixed::U64),
        ],
    );
    let hint = ctx.declare_enum("gpu.MemoryHint", Category::Value);
    if let TypeKind::Enum(id) = ctx.kind(hint) {
        ctx.define_enum(id, value_variants(&MEMORY_HINTS));
    }
}
