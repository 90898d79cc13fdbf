codes! {
    // Text and syntax.
    MPP0001 Error "unreadable file or bad character";
    MPP0002 Error "syntax error";
    MPP0003 Error "nesting too deep";
    MPP0010 Warning "digest mismatch";
    // Names, SSA, structure.
    MPS0001 Error "value defined twice or invalid operand";
    MPS0002 Error "unknown name";
    MPS0003 Error "definition does not dominate use";
    MPS0004 Error "import clashes with a local name";
    MPS0008 Error "bad branch target or phi operand";
    MPS0009 Error "label used twice";
    MPS0010 Error "malformed control flow or phi";
    MPS0016 Error "function reference used as a value";
    MPS0017 Error "branch condition is not bool";
    MPS0020 Error "function or global defined twice";
    MPS0021 Error "type defined twice";
    MPS0023 Error "signature defined twice";
    MPS0024 Error "pointer operation outside unsafe";
    MPS0025 Error "unsafe function called from safe code";
    MPS0026 Error "device operation outside a kernel";
    MPS0030 Error "malformed MPIR text";
    MPS0031 Error "ill-typed MPIR instruction";
    MPS0032 Error "MPIR structure violated";
    // Types.
    MPT0001 Error "unknown type";
    MPT0002 Error "shared or weak on TOption";
    MPT0003 Error "shared or weak on TResult";
    MPT1005 Error "heap field in a value struct";
    MPT1010 Error "value struct contains itself";
    MPT1020 Error "value enum is not supported";
    MPT1022 Error "slice needs copyable elements";
    MPT1023 Error "missing impl of hash, eq or ord";
    MPT1030 Error "suspend.call on a callable";
    MPT2001 Error "wrong number or names of arguments";
    MPT2003 Error "wrong argument type";
    MPT2004 Error "unknown function";
    MPT2011 Error "invalid cast";
    MPT2014 Error "operand types differ";
    MPT2015 Error "operand of the wrong kind or literal out of range";
    MPT2016 Error "field given twice";
    MPT2017 Error "unknown field";
    MPT2019 Error "wrong field type";
    MPT2020 Error "missing field";
    MPT2040 Error "try in a function without a matching error type";
    MPT2050 Error "feature not supported";
    // Borrow forms and ownership.
    MPHIR01 Error "getfield needs a borrow";
    MPHIR02 Error "setfield needs a mutable borrow";
    MPHIR03 Error "borrow returned";
    MPO0003 Error "borrow stored";
    MPO0004 Error "mutation through a shared handle";
    MPO0007 Error "use of a moved value";
    MPO0011 Error "move while borrowed";
    MPO0012 Error "conflicting borrow";
    MPO0101 Error "borrow used in another block";
    MPO0102 Error "borrow in a phi";
    MPO0103 Error "map.get needs a copyable value";
    // Foreign functions.
    MPF0001 Error "rawptr result without ownership attribute";
    // Lints and limits.
    MPL0001 Error "unknown emit name";
    MPL0002 Error "invalid manifest";
    MPL0003 Warning "unknown manifest key";
    MPL0004 Error "cannot write artifact";
    MPL0005 Error "no entry point";
    MPL0006 Error "wrong use of the command";
    MPL0007 Error "missing from this machine";
    MPL2011 Warning "result not used";
    MPL2012 Warning "unreachable block";
    MPL2020 Error "too many instances of generic items";
    MPAS0001 Error "suspend outside async fn";
    // GPU, all back ends.
    MPG_CORE_1100 Error "heap allocation in gpu fn";
    MPG_CORE_1101 Error "ARC operation in gpu fn";
    MPG_CORE_1102 Error "dynamic dispatch in gpu fn";
    MPG_CORE_1103 Error "recursion in gpu fn";
    MPG_CORE_1104 Error "Str type in gpu fn";
    MPG_CORE_1105 Error "Array type in gpu fn";
    MPG_CORE_1106 Error "Map type in gpu fn";
    MPG_CORE_1107 Error "TCallable type in gpu fn";
    MPG_CORE_1200 Error "unsupported capability for target";
    MPG_CORE_1201 Error "non-portable feature without requires()";
    MPG_CORE_1202 Warning "unsafe gpu fn is non-portable";
    MPG_CORE_1300 Error "backend not available at compile time";
    MPG_CORE_1301 Error "llc invocation failed";
    MPG_CORE_1302 Error "invalid workgroup size";
    MPG_CORE_1303 Error "kernel result is not unit";
    MPG_CORE_1304 Error "type or operation not allowed in gpu fn";
    MPG_CORE_1400 Warning "write collision between invocations";
    MPG_CORE_1401 Error "barrier in divergent control flow";
    MPG_CORE_1402 Warning "shared access without a barrier";
    MPG_CORE_1403 Info "write not proved safe";
    MPG_CORE_1404 Info "access with no visible bounds guard";
    // SPIR-V.
    MPG_SPV_1101 Error "operation not available on spv";
    MPG_SPV_2001 Error "shared memory exceeds device limit";
    MPG_SPV_2002 Error "SPIR-V validation failed";
    MPG_SPV_2003 Warning "suboptimal buffer layout";
    // Metal.
    MPG_MSL_1001 Error "irreducible control flow (cannot structure for MSL)";
    MPG_MSL_1101 Error "operation not available on msl";
    MPG_MSL_2001 Error "shared memory exceeds 32KB limit";
    MPG_MSL_2002 Error "MSL compilation failed";
    MPG_MSL_2003 Error "Metal-specific op without requires() annotation";
    // PTX.
    MPG_PTX_2001 Error "shared memory exceeds limit";
    MPG_PTX_2002 Error "PTX compilation via llc failed";
    MPG_PTX_2003 Warning "compute capability too low for feature";
    // HIP.
    MPG_HIP_2001 Error "shared memory exceeds LDS limit";
    MPG_HIP_2002 Error "HSACO generation via llc failed";
    // WGSL.
    MPG_WGSL_1001 Error "pattern not supported in WGSL";
    MPG_WGSL_1002 Error "pointer operation (unsupported in WGSL)";
    MPG_WGSL_1003 Error "bf16 type (unsupported in WGSL)";
    MPG_WGSL_1004 Error "requires() capability (unsupported in WGSL)";
    MPG_WGSL_1005 Error "too many storage buffers (max 8)";
    MPG_WGSL_1006 Error "workgroup size exceeds 256 per dimension";
    MPG_WGSL_1101 Error "operation not available on wgsl";
    MPG_WGSL_2001 Error "shared memory exceeds 16KB limit";
    // MLX.
    MPG_MLX_1001 Error "MLX not available";
    MPG_MLX_1002 Error "unsupported element type for MLX array";
    MPG_MLX_1003 Error "shape mismatch in MLX operation";
    MPG_MLX_1004 Warning "MLX operation on CPU (no GPU acceleration)";
    // Profiling.
    MPG_PROF_1001 Warning "vendor counters not available on this backend";
    MPG_PROF_1002 Error "profiling session already active";
    MPG_PROF_1003 Warning "counter not supported on this device";
}
