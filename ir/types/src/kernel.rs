//! What the runtime must know to launch a compiled kernel: the contract between a back end and a
//! driver.
//!
//! The caller's argument block is the same for every device: 8 bytes a buffer parameter (handles,
//! in parameter order), then the scalar block: scalar parameters in order, each at its natural
//! alignment, the total rounded up to 16 bytes. A [`KernelLayout`] says how a driver passes them
//! on: which binding a buffer has, what follows the scalars, what must hold before launch.

use crate::TypeId;
use crate::print::PrintSite;

/// Back-end numbers (GPU specification, section 3.3); `0x40` and up are ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum GpuBackend {
    /// SPIR-V for Vulkan.
    Spv = 1,
    /// Metal Shading Language.
    Msl = 2,
    /// PTX for CUDA.
    Ptx = 3,
    /// HSACO for HIP.
    Hip = 4,
    /// WGSL for WebGPU.
    Wgsl = 5,
    /// Machine code of the host.
    Cpu = 0x40,
    /// MPIR for the reference interpreter.
    Interp = 0x41,
}

impl GpuBackend {
    /// Every back end.
    pub const ALL: [GpuBackend; 7] = [
        GpuBackend::Spv,
        GpuBackend::Msl,
        GpuBackend::Ptx,
        GpuBackend::Hip,
        GpuBackend::Wgsl,
        GpuBackend::Cpu,
        GpuBackend::Interp,
    ];

    /// The five that source text may name in `target()`.
    pub const TARGETS: [GpuBackend; 5] =
        [GpuBackend::Spv, GpuBackend::Msl, GpuBackend::Ptx, GpuBackend::Hip, GpuBackend::Wgsl];

    /// The back-end word: `spv msl ptx hip wgsl cpu interp`.
    pub fn name(self) -> &'static str {
        match self {
            GpuBackend::Spv => "spv",
            GpuBackend::Msl => "msl",
            GpuBackend::Ptx => "ptx",
            GpuBackend::Hip => "hip",
            GpuBackend::Wgsl => "wgsl",
            GpuBackend::Cpu => "cpu",
            GpuBackend::Interp => "interp",
        }
    }

    /// The back end of a word.
    pub fn from_name(name: &str) -> Option<GpuBackend> {
        GpuBackend::ALL.into_iter().find(|b| b.name() == name)
    }

    /// The back end of a number.
    pub fn from_u8(number: u8) -> Option<GpuBackend> {
        GpuBackend::ALL.into_iter().find(|&b| b as u8 == number)
    }
}

/// Bytes of shared memory that a kernel for CUDA can declare. One that needs more takes all of its
/// shared memory at launch, as dynamic shared memory.
pub const CUDA_STATIC_SHARED: u32 = 48 << 10;

/// The most bytes of shared memory that a workgroup has on any CUDA device. A device that has less
/// refuses the launch.
pub const CUDA_MOST_SHARED: u32 = 227 << 10;

/// How one kernel parameter travels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParamLayout {
    /// A buffer.
    Buffer(BufferParam),
    /// A scalar or value struct by value.
    Scalar {
        /// Bytes from the start of the scalar block.
        offset: u32,
        /// Size in bytes.
        size: u32,
        /// The type.
        ty: TypeId,
    },
}

/// A buffer parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferParam {
    /// Position among the buffer parameters.
    pub index: u32,
    /// Binding or slot number on the device.
    pub binding: u32,
    /// Element type.
    pub elem: TypeId,
    /// Bytes between elements in host arrays.
    pub host_stride: u32,
    /// Bytes between elements on the device. It differs from `host_stride` when the device lacks
    /// 8- or 16-bit storage: scalars of 1 or 2 bytes are then widened to 4 in transfers. The
    /// element is in the low-order bytes of its word; kernels may leave anything in the others
    /// and must not rely on them.
    pub device_stride: u32,
    /// Whether the kernel may store to it.
    pub writes: bool,
}

/// A word the driver appends after the scalars: the number of elements of a buffer argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HiddenLength {
    /// Position among the buffer parameters.
    pub buffer: u32,
    /// Bytes from the start of the scalar block.
    pub offset: u32,
    /// 4 or 8 bytes. A 4-byte word saturates.
    pub size: u32,
}

/// Where the scalar block with its hidden words lives on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalarTransport {
    /// There are no scalars and no hidden words.
    None,
    /// Vulkan push constants.
    PushConstants,
    /// A uniform buffer at this binding of set 0.
    Uniform {
        /// Binding number.
        binding: u32,
    },
    /// Arguments of the kernel function, or host memory (CPU).
    Arguments,
}

/// One step of a [`Precondition`], a postfix program over unsigned 128-bit numbers that saturates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreOp {
    /// A constant.
    Const(u64),
    /// An unsigned scalar argument: offset and size in the scalar block.
    Scalar {
        /// Bytes from the start of the scalar block.
        offset: u32,
        /// 1, 2, 4 or 8.
        size: u32,
    },
    /// Number of invocations of the launch in a dimension: grid × block.
    Extent(u8),
    /// Number of workgroups in a dimension.
    Grid(u8),
    /// Workgroup size in a dimension.
    Block(u8),
    /// Number of elements of the buffer argument at this position among the buffer parameters.
    Length(u32),
    /// Sum of the two topmost values.
    Add,
    /// The value below the topmost minus the topmost, at least 0.
    Sub,
    /// Product of the two topmost values.
    Mul,
    /// Smaller of the two topmost values.
    Min,
    /// Larger of the two topmost values.
    Max,
    /// Topmost minus one, at least 0.
    Dec,
}

/// `bound ≤ len(buffer)`; when all hold for a launch, no access of the kernel can leave its buffer
/// and the body without bounds checks may run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Precondition {
    /// One past the largest index accessed.
    pub bound: Vec<PreOp>,
    /// Position among the buffer parameters.
    pub buffer: u32,
}

/// What a device must offer to run a blob.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct DeviceFeatures(pub u32);

impl DeviceFeatures {
    #[allow(missing_docs)]
    pub const INT8: DeviceFeatures = DeviceFeatures(1 << 0);
    #[allow(missing_docs)]
    pub const INT16: DeviceFeatures = DeviceFeatures(1 << 1);
    #[allow(missing_docs)]
    pub const INT64: DeviceFeatures = DeviceFeatures(1 << 2);
    #[allow(missing_docs)]
    pub const FLOAT16: DeviceFeatures = DeviceFeatures(1 << 3);
    #[allow(missing_docs)]
    pub const FLOAT64: DeviceFeatures = DeviceFeatures(1 << 4);
    /// 8-bit elements in storage buffers.
    pub const STORAGE8: DeviceFeatures = DeviceFeatures(1 << 5);
    /// 16-bit elements in storage buffers.
    pub const STORAGE16: DeviceFeatures = DeviceFeatures(1 << 6);
    /// 8-bit members of the scalar block.
    pub const SCALAR8: DeviceFeatures = DeviceFeatures(1 << 7);
    /// 16-bit members of the scalar block.
    pub const SCALAR16: DeviceFeatures = DeviceFeatures(1 << 8);
    #[allow(missing_docs)]
    pub const ATOMIC_INT64: DeviceFeatures = DeviceFeatures(1 << 9);
    #[allow(missing_docs)]
    pub const ATOMIC_FLOAT32_ADD: DeviceFeatures = DeviceFeatures(1 << 10);
    #[allow(missing_docs)]
    pub const ATOMIC_FLOAT64_ADD: DeviceFeatures = DeviceFeatures(1 << 11);
    /// Subgroup operations: basic, vote, ballot, arithmetic, shuffle, shuffle relative.
    pub const SUBGROUP: DeviceFeatures = DeviceFeatures(1 << 12);
    /// Float controls: keep NaN, infinities and signed zero of f32.
    pub const FLOAT32_CONTROLS: DeviceFeatures = DeviceFeatures(1 << 13);
    /// Float controls of f16.
    pub const FLOAT16_CONTROLS: DeviceFeatures = DeviceFeatures(1 << 14);
    /// Float controls of f64.
    pub const FLOAT64_CONTROLS: DeviceFeatures = DeviceFeatures(1 << 15);
    /// Preserves subnormals of f32.
    pub const FLOAT32_DENORMS: DeviceFeatures = DeviceFeatures(1 << 16);
    /// Rounds f32 to nearest even.
    pub const FLOAT32_RTE: DeviceFeatures = DeviceFeatures(1 << 17);
    /// Preserves subnormals of f16.
    pub const FLOAT16_DENORMS: DeviceFeatures = DeviceFeatures(1 << 18);
    /// Rounds f16 to nearest even.
    pub const FLOAT16_RTE: DeviceFeatures = DeviceFeatures(1 << 19);
    /// Preserves subnormals of f64.
    pub const FLOAT64_DENORMS: DeviceFeatures = DeviceFeatures(1 << 20);
    /// Rounds f64 to nearest even.
    pub const FLOAT64_RTE: DeviceFeatures = DeviceFeatures(1 << 21);
    #[allow(missing_docs)]
    pub const ATOMIC_FLOAT32_MINMAX: DeviceFeatures = DeviceFeatures(1 << 22);

    /// Whether every feature of `other` is here.
    pub fn contains(self, other: DeviceFeatures) -> bool {
        self.0 & other.0 == other.0
    }

    /// The features of either.
    pub fn union(self, other: DeviceFeatures) -> DeviceFeatures {
        DeviceFeatures(self.0 | other.0)
    }

    /// The features of `self` that `other` lacks.
    pub fn minus(self, other: DeviceFeatures) -> DeviceFeatures {
        DeviceFeatures(self.0 & !other.0)
    }

    /// The words used in messages.
    pub fn names(self) -> Vec<&'static str> {
        const NAMES: [&str; 23] = [
            "int8",
            "int16",
            "int64",
            "float16",
            "float64",
            "storage8",
            "storage16",
            "scalar8",
            "scalar16",
            "atomic_int64",
            "atomics_f32",
            "atomics_f64",
            "subgroups",
            "float32_controls",
            "float16_controls",
            "float64_controls",
            "float32_denorms",
            "float32_rte",
            "float16_denorms",
            "float16_rte",
            "float64_denorms",
            "float64_rte",
            "atomics_f32_minmax",
        ];
        NAMES.iter().enumerate().filter(|(i, _)| self.0 >> i & 1 == 1).map(|(_, n)| *n).collect()
    }
}

impl std::ops::BitOr for DeviceFeatures {
    type Output = DeviceFeatures;
    fn bitor(self, other: DeviceFeatures) -> DeviceFeatures {
        self.union(other)
    }
}

impl std::ops::BitOrAssign for DeviceFeatures {
    fn bitor_assign(&mut self, other: DeviceFeatures) {
        *self = self.union(other);
    }
}

/// How to launch one blob of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelLayout {
    /// Entry point in the blob.
    pub entry: String,
    /// In kernel parameter order.
    pub params: Vec<ParamLayout>,
    /// Size of the caller's scalar block in bytes, a multiple of 16.
    pub scalar_size: u32,
    /// Lengths that follow the scalars.
    pub hidden: Vec<HiddenLength>,
    /// Size in bytes of scalars and hidden words together, a multiple of 16.
    pub block_size: u32,
    /// Where that block goes.
    pub transport: ScalarTransport,
    /// The workgroup size the kernel was compiled for.
    pub workgroup: [u32; 3],
    /// Whether a launch with another size is impossible (WGSL) instead of merely slower.
    pub fixed_workgroup: bool,
    /// Static shared memory in bytes.
    pub shared_bytes: u32,
    /// What the device must offer.
    pub features: DeviceFeatures,
    /// When all hold, [`KernelBlob::unchecked`] may run.
    pub preconditions: Vec<Precondition>,
    /// What the kernel prints. If there is any, its last buffer parameter is that of
    /// [`crate::print`], for which callers have no argument.
    pub prints: Vec<PrintSite>,
}

impl KernelLayout {
    /// Number of buffer parameters.
    pub fn num_buffers(&self) -> usize {
        self.buffers().count()
    }

    /// The parameters for which callers have arguments.
    pub fn visible_params(&self) -> &[ParamLayout] {
        match self.params.split_last() {
            Some((_, visible)) if !self.prints.is_empty() => visible,
            _ => &self.params,
        }
    }

    /// Number of buffers that a caller passes.
    pub fn num_arguments(&self) -> usize {
        let is_buffer = |p: &&ParamLayout| matches!(p, ParamLayout::Buffer(_));
        self.visible_params().iter().filter(is_buffer).count()
    }

    /// Whether the layout is consistent: every offset inside its block, buffers numbered in
    /// order, every named buffer there.
    ///
    /// # Errors
    /// What is wrong, for a message about the kernel.
    pub fn check(&self) -> Result<(), String> {
        let inside = |offset: u32, size: u32, end: u32| {
            offset.checked_add(size).is_some_and(|last| last <= end)
        };
        let (scalars, block) = (self.scalar_size, self.block_size);
        if !scalars.is_multiple_of(16) || !block.is_multiple_of(16) || scalars > block {
            return Err(format!("scalar block of {scalars} bytes in {block} bytes"));
        }
        if self.transport == ScalarTransport::None && block != 0 {
            return Err(format!("{block} bytes of scalars without a transport"));
        }
        if self.workgroup.contains(&0) {
            return Err(format!("workgroup {:?}", self.workgroup));
        }
        for (n, buffer) in self.buffers().enumerate() {
            if buffer.index as usize != n {
                return Err(format!("buffer parameter {n} has index {}", buffer.index));
            }
            if buffer.host_stride == 0 || buffer.device_stride == 0 {
                return Err(format!("buffer parameter {n} has elements without bytes"));
            }
        }
        for param in &self.params {
            if let ParamLayout::Scalar { offset, size, .. } = *param
                && !inside(offset, size, scalars)
            {
                return Err(format!("scalar of {size} bytes at {offset} in {scalars} bytes"));
            }
        }
        let buffers = self.num_buffers();
        for hidden in &self.hidden {
            let HiddenLength { buffer, offset, size } = *hidden;
            if buffer as usize >= buffers || !matches!(size, 4 | 8) {
                return Err(format!("length of buffer {buffer} in {size} bytes"));
            }
            if offset < scalars || !inside(offset, size, block) {
                return Err(format!("length of buffer {buffer} at {offset} in {block} bytes"));
            }
        }
        let is_words =
            |p: &ParamLayout| matches!(p, ParamLayout::Buffer(b) if b.device_stride == 4);
        if !self.prints.is_empty() && !self.params.last().is_some_and(is_words) {
            return Err("it prints without a buffer for that".to_string());
        }
        match self.preconditions.iter().find(|p| p.buffer as usize >= buffers) {
            Some(p) => Err(format!("precondition on buffer {}, of {buffers}", p.buffer)),
            None => Ok(()),
        }
    }

    /// The buffer parameters in order.
    pub fn buffers(&self) -> impl Iterator<Item = &BufferParam> {
        self.params.iter().filter_map(|p| match p {
            ParamLayout::Buffer(b) => Some(b),
            ParamLayout::Scalar { .. } => None,
        })
    }
}

/// The code of a blob.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlobCode {
    /// SPIR-V words, PTX text, and so on, as the driver takes them.
    Bytes(Vec<u8>),
    /// A host function that is already in memory.
    Host(HostKernel),
}

/// A kernel as machine code of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostKernel {
    /// Address of a [`HostKernelFn`].
    pub entry: usize,
    /// Scratch memory a workgroup needs besides shared memory, in bytes for each invocation.
    pub frame_bytes: u32,
}

/// Invocations of a subgroup on the CPU device and in the interpreter: neighbours by their linear
/// position in the workgroup. The last subgroup of a workgroup may have fewer.
pub const HOST_SUBGROUP_SIZE: u32 = 32;

/// The signature of a kernel on the CPU: runs the workgroups with linear numbers
/// `first .. last` (x fastest) of a launch.
///
/// `scratch` is 64-byte aligned memory of this thread, `shared_bytes` rounded up to 64 and then
/// `frame_bytes` × invocations of a workgroup; its content is arbitrary.
pub type HostKernelFn =
    unsafe extern "C" fn(launch: *const HostLaunch, first: u64, last: u64, scratch: *mut u8);

/// What a kernel on the CPU sees of a launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostLaunch {
    /// One entry a buffer parameter.
    pub buffers: *const HostBuffer,
    /// The caller's scalar block, 16-byte aligned.
    pub scalars: *const u8,
    /// Number of workgroups.
    pub grid: [u32; 3],
    /// Invocations of a workgroup.
    pub block: [u32; 3],
    /// Set to 1, atomically, by a kernel whose calls become too deep; 0 before.
    pub fault: *mut u32,
}

/// A buffer argument on the CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostBuffer {
    /// First element; 64-byte aligned, never null. An empty buffer has memory for one element.
    pub data: *mut u8,
    /// Number of elements.
    pub len: u64,
}

/// A compiled kernel for one back end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelBlob {
    /// For which back end.
    pub backend: GpuBackend,
    /// How to launch it.
    pub layout: KernelLayout,
    /// The robust body: out-of-bounds accesses are harmless.
    pub code: BlobCode,
    /// The body for launches that meet the preconditions.
    pub unchecked: Option<BlobCode>,
}
