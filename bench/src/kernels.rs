//! Kernels of `examples/magpie` on a device of the runtime.

use std::path::Path;
use std::sync::Arc;

use magpie_driver::{LoadedKernels, Options, Session, load_kernels};
use magpie_rt::gpu::{
    Buffer, Context, DeviceChoice, DriverKind, Element, LaunchSize, MemoryHint, Runtime,
};
use magpie_types::{TypeId, fixed};

/// The kernels of an example, and the device they run on.
pub(crate) struct Kernels {
    kernels: LoadedKernels,
    context: Arc<Context>,
}

/// Loads the kernels of an example for the first device of a driver.
///
/// # Panics
/// When the example does not compile or there is no device: then there is nothing to measure.
pub(crate) fn load(example: &str, driver: DriverKind) -> Kernels {
    let mut session = session(example, driver);
    let kernels = load_kernels(&mut session);
    let kernels = kernels.unwrap_or_else(|_| panic!("{example}: {:?}", session.take_findings()));
    let context = Runtime::global().default_device().unwrap_or_else(|error| panic!("{error}"));
    Kernels { kernels, context }
}

/// A session with an example.
pub(crate) fn session(example: &str, driver: DriverKind) -> Session {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/magpie");
    Session::new(Options {
        entry: Some(root.join(example)),
        device: Some(DeviceChoice::Driver(driver)),
        ..Options::new("bench")
    })
}

impl Kernels {
    /// A buffer with these numbers.
    pub(crate) fn buffer(&self, numbers: &[f32]) -> Buffer {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
        Buffer::from_bytes(&self.context, element(fixed::F32, 4), &bytes, 0)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A buffer of structures of four numbers.
    pub(crate) fn quads(&self, quads: &[[f32; 4]]) -> Buffer {
        let bytes: Vec<u8> = quads.iter().flatten().flat_map(|n| n.to_ne_bytes()).collect();
        Buffer::from_bytes(&self.context, element(fixed::UNIT, 16), &bytes, 0)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A buffer of zeros.
    pub(crate) fn zeros(&self, len: usize) -> Buffer {
        self.empty(element(fixed::F32, 4), len)
    }

    /// A buffer of zero words.
    pub(crate) fn words(&self, len: usize) -> Buffer {
        self.empty(element(fixed::U32, 4), len)
    }

    fn empty(&self, element: Element, len: usize) -> Buffer {
        Buffer::new(&self.context, element, len as u64, 0, MemoryHint::Auto)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// The number of a kernel.
    pub(crate) fn hash(&self, kernel: &str) -> u64 {
        self.kernels.hash(kernel).unwrap_or_else(|| panic!("no kernel `{kernel}`"))
    }

    /// Launches a kernel and waits. Scalars are 4 bytes each.
    pub(crate) fn launch(
        &self,
        kernel: &str,
        grid: [usize; 2],
        block: [u32; 2],
        buffers: &[&Buffer],
        scalars: &[[u8; 4]],
    ) {
        self.launch_hash(self.hash(kernel), grid, block, buffers, scalars);
    }

    /// As [`Kernels::launch`], of any kernel of the runtime.
    pub(crate) fn launch_hash(
        &self,
        hash: u64,
        grid: [usize; 2],
        block: [u32; 2],
        buffers: &[&Buffer],
        scalars: &[[u8; 4]],
    ) {
        let size = LaunchSize {
            grid: [grid[0] as u32, grid[1] as u32, 1],
            block: [block[0], block[1], 1],
        };
        let mut block = [0; 16];
        for (to, from) in block.chunks_exact_mut(4).zip(scalars) {
            to.copy_from_slice(from);
        }
        let scalars = if scalars.is_empty() { &[][..] } else { &block[..] };
        Runtime::global()
            .launch(&self.context, hash, size, buffers, scalars)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The numbers in a buffer.
pub(crate) fn floats(buffer: &Buffer) -> Vec<f32> {
    words(buffer).map(f32::from_bits).collect()
}

/// The 4-byte words in a buffer.
pub(crate) fn words(buffer: &Buffer) -> impl Iterator<Item = u32> {
    let bytes = buffer.read_all().unwrap_or_else(|error| panic!("{error}"));
    let word = |b: &[u8]| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]);
    bytes.chunks_exact(4).map(word).collect::<Vec<u32>>().into_iter()
}

fn element(ty: TypeId, size: u32) -> Element {
    Element { ty, size }
}
