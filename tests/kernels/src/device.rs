//! A device to run kernels on.

use crate::skip;
use magpie_rt::gpu::{
    Buffer, Context, DeviceChoice, DeviceProperties, DriverKind, Element, GpuConfig, LaunchSize,
    Runtime,
};
use magpie_types::fixed;
use magpie_types::kernel::{KernelBlob, ParamLayout};
use std::sync::Arc;

/// Turns a blob into one that the device runs.
pub type Translate = Box<dyn Fn(KernelBlob) -> KernelBlob>;

/// A device of a driver.
pub struct Gpu {
    runtime: Runtime,
    context: Arc<Context>,
    subgroup_size: u32,
    translate: Option<Translate>,
}

impl Gpu {
    /// The first device of a driver, if there is one.
    pub fn find(driver: DriverKind) -> Option<Gpu> {
        let device = DeviceChoice::Driver(driver);
        let runtime = Runtime::new(GpuConfig { device, ..GpuConfig::default() });
        let context = runtime.device(0).ok()?;
        let subgroup_size = context.properties().subgroup_size;
        Some(Gpu { runtime, context, subgroup_size, translate: None })
    }

    /// The first device of a driver, for blobs that are not its own; `subgroup_size` is what the
    /// kernels see.
    pub fn translated(driver: DriverKind, subgroup_size: u32, translate: Translate) -> Option<Gpu> {
        let gpu = Gpu::find(driver)?;
        Some(Gpu { subgroup_size, translate: Some(translate), ..gpu })
    }

    /// The first device of a driver; says so when there is none.
    pub fn open(driver: DriverKind) -> Option<Gpu> {
        let gpu = Gpu::find(driver);
        if gpu.is_none() {
            skip(&format!("a {} device", driver.name()));
        }
        gpu
    }

    /// What the device is.
    pub fn properties(&self) -> &DeviceProperties {
        self.context.properties()
    }

    /// Invocations of a subgroup.
    pub fn subgroup_size(&self) -> u32 {
        self.subgroup_size
    }

    /// Runs a kernel on one buffer a parameter, given in host layout.
    pub fn run(
        &self,
        blob: &KernelBlob,
        buffers: &mut [Vec<u8>],
        scalars: &[u8],
        size: LaunchSize,
    ) {
        let named: Vec<usize> = (0..buffers.len()).collect();
        self.run_named(blob, buffers, &named, scalars, size);
    }

    /// Runs a kernel whose buffer parameters name buffers by number; several may name one.
    ///
    /// The blob may be for a device that lacks small elements: they are widened here then, since
    /// the device at hand has them.
    pub fn run_named(
        &self,
        blob: &KernelBlob,
        buffers: &mut [Vec<u8>],
        named: &[usize],
        scalars: &[u8],
        size: LaunchSize,
    ) {
        let mut blob = match &self.translate {
            Some(translate) => translate(blob.clone()),
            None => blob.clone(),
        };
        let mut uploaded: Vec<Option<(Buffer, Option<usize>)>> = vec![None; buffers.len()];
        let params = blob.layout.params.iter_mut().filter_map(|p| match p {
            ParamLayout::Buffer(b) => Some(b),
            ParamLayout::Scalar { .. } => None,
        });
        for (b, &n) in params.zip(named) {
            let small = (b.host_stride != b.device_stride).then_some(b.host_stride as usize);
            if small.is_some() {
                (b.elem, b.host_stride) = (fixed::U32, b.device_stride);
            }
            if uploaded[n].is_none() {
                let element = Element { ty: b.elem, size: b.host_stride };
                let bytes = small.map_or_else(|| buffers[n].clone(), |s| widen(&buffers[n], s));
                let buffer = Buffer::from_bytes(&self.context, element, &bytes, 0);
                uploaded[n] = Some((buffer.expect("a buffer"), small));
            }
        }
        self.runtime.register_kernel(1, "test", vec![blob], None);
        let arguments: Vec<&Buffer> =
            named.iter().filter_map(|&n| uploaded[n].as_ref().map(|u| &u.0)).collect();
        let launched = self.runtime.launch(&self.context, 1, size, &arguments, scalars);
        launched.unwrap_or_else(|error| panic!("{error}"));
        for (uploaded, bytes) in uploaded.iter().zip(buffers) {
            if let Some((buffer, small)) = uploaded {
                let read = buffer.read_all().unwrap_or_else(|error| panic!("{error}"));
                *bytes = small.map_or(read.clone(), |s| narrow(&read, s));
            }
        }
    }
}

/// Elements of `size` bytes, each in a word of its own.
pub fn widen(bytes: &[u8], size: usize) -> Vec<u8> {
    bytes.chunks(size).flat_map(|e| [e, &[0, 0, 0, 0][size..]].concat()).collect()
}

/// The elements of `size` bytes in words.
pub fn narrow(bytes: &[u8], size: usize) -> Vec<u8> {
    bytes.chunks(4).flat_map(|word| &word[..size]).copied().collect()
}
