//! The list of devices over drivers that only pretend.

use super::*;
use crate::gpu::cpu::HOST_LIMITS;
use crate::gpu::device::{DeviceKernel, DeviceMemory, MemoryHint, Serial, Timing};
use crate::gpu::properties::PciAddress;
use magpie_types::kernel::{DeviceFeatures, KernelBlob};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A device of which only the properties matter.
struct Shell(DeviceProperties);

impl Device for Shell {
    fn properties(&self) -> &DeviceProperties {
        &self.0
    }
    fn memory_available(&self) -> u64 {
        0
    }
    fn allocate(&self, _: u64, _: MemoryHint) -> GpuResult<DeviceMemory> {
        Err(refusal("allocate"))
    }
    fn free(&self, _: &DeviceMemory) {}
    fn upload(&self, _: &DeviceMemory, _: u64, _: &[u8]) -> GpuResult<()> {
        Err(refusal("upload"))
    }
    fn download(&self, _: &DeviceMemory, _: u64, _: &mut [u8]) -> GpuResult<()> {
        Err(refusal("download"))
    }
    fn copy(&self, _: &DeviceMemory, _: &DeviceMemory, _: u64) -> GpuResult<()> {
        Err(refusal("copy"))
    }
    fn fill_zero(&self, _: &DeviceMemory, _: u64) -> GpuResult<()> {
        Err(refusal("fill"))
    }
    fn load_kernel(&self, _: &str, _: u64, _: &KernelBlob) -> GpuResult<Box<dyn DeviceKernel>> {
        Err(refusal("load"))
    }
    fn newest(&self) -> Serial {
        Serial(0)
    }
    fn wait(&self, _: Serial, _: Option<Duration>) -> GpuResult<bool> {
        Ok(true)
    }
    fn take_timings(&self, _: &mut Vec<Timing>) {}
}

fn refusal(what: &str) -> GpuError {
    GpuError::new(ErrorKind::DriverError, "spv", what)
}

/// A driver with the given devices, or one that is missing.
struct Pretended {
    kind: DriverKind,
    adapters: Result<Vec<DeviceProperties>, &'static str>,
    probes: Arc<AtomicU32>,
    refuses: Option<usize>,
}

impl Driver for Pretended {
    fn kind(&self) -> DriverKind {
        self.kind
    }

    fn adapters(&mut self) -> GpuResult<Vec<DeviceProperties>> {
        self.probes.fetch_add(1, Ordering::Relaxed);
        self.adapters.clone().map_err(|why| {
            let backend = self.kind.backend_name();
            GpuError::new(ErrorKind::BackendUnavailable, backend, why).with_code(-3)
        })
    }

    fn open(&mut self, adapter: usize) -> GpuResult<Box<dyn Device>> {
        if self.refuses == Some(adapter) {
            return Err(refusal("the device is busy"));
        }
        let adapters = self.adapters.as_ref().map_err(|&why| refusal(why))?;
        Ok(Box::new(Shell(adapters[adapter].clone())))
    }
}

fn properties(driver: DriverKind, name: &str, device_type: DeviceType) -> DeviceProperties {
    DeviceProperties {
        name: name.to_string(),
        driver,
        driver_info: String::new(),
        architecture: String::new(),
        device_type,
        uuid: None,
        pci: None,
        features: DeviceFeatures::default(),
        limits: HOST_LIMITS,
        subgroup_size: 32,
        memory_total: 0,
    }
}

fn uuid(mut properties: DeviceProperties, uuid: u8) -> DeviceProperties {
    properties.uuid = Some([uuid; 16]);
    properties
}

/// A machine: a list over pretended drivers and how often each was asked.
struct Machine {
    list: Discovery,
    probes: Vec<(DriverKind, Arc<AtomicU32>)>,
}

type Drivers = Vec<(DriverKind, Result<Vec<DeviceProperties>, &'static str>)>;

impl Machine {
    fn new(config: GpuConfig, drivers: Drivers) -> Machine {
        Machine::refusing(config, drivers, None)
    }

    /// A machine whose driver `refuses.0` cannot open its device `refuses.1`.
    fn refusing(
        config: GpuConfig,
        drivers: Drivers,
        refuses: Option<(DriverKind, usize)>,
    ) -> Machine {
        let mut probes = Vec::new();
        let mut boxed: Vec<Box<dyn Driver>> = Vec::new();
        for (kind, adapters) in drivers {
            let counter = Arc::new(AtomicU32::new(0));
            probes.push((kind, Arc::clone(&counter)));
            let refuses = refuses.filter(|&(driver, _)| driver == kind).map(|(_, a)| a);
            boxed.push(Box::new(Pretended { kind, adapters, probes: counter, refuses }));
        }
        Machine { list: Discovery::new(config, boxed), probes }
    }

    fn default_name(&mut self) -> Result<String, GpuError> {
        self.list.default_device(|_| true).map(|c| c.properties().name.clone())
    }

    fn name_of(&mut self, number: u32) -> Result<String, GpuError> {
        self.list.device(number, |_| true).map(|c| c.properties().name.clone())
    }

    fn probes(&self, driver: DriverKind) -> u32 {
        let counter = self.probes.iter().find(|(kind, _)| *kind == driver);
        counter.map_or(0, |(_, probes)| probes.load(Ordering::Relaxed))
    }
}

use DeviceType::{Discrete, Host, Integrated, Software};
use DriverKind::{Cpu, Cuda, Interp, Vulkan, WebGpu};

fn cpu() -> (DriverKind, Result<Vec<DeviceProperties>, &'static str>) {
    (Cpu, Ok(vec![properties(Cpu, "cores", Host)]))
}

/// One NVIDIA card under two drivers, an integrated GPU, a software adapter.
fn workstation() -> Drivers {
    let card = |driver| uuid(properties(driver, "card", Discrete), 7);
    vec![
        (Cuda, Ok(vec![card(Cuda)])),
        (
            Vulkan,
            Ok(vec![
                card(Vulkan),
                properties(Vulkan, "chip", Integrated),
                properties(Vulkan, "llvmpipe", Software),
            ]),
        ),
        cpu(),
        (Interp, Ok(vec![properties(Interp, "interpreter", Host)])),
    ]
}

/// Vulkan with a software adapter only.
fn server() -> Drivers {
    vec![(Vulkan, Ok(vec![properties(Vulkan, "llvmpipe", Software)])), cpu()]
}

fn config(device: DeviceChoice) -> GpuConfig {
    GpuConfig { device, ..GpuConfig::default() }
}

#[test]
fn the_default_is_the_first_in_platform_order_and_stops_there() {
    let mut machine = Machine::new(GpuConfig::default(), workstation());
    assert_eq!(machine.default_name().unwrap(), "card");
    assert_eq!((machine.probes(Cuda), machine.probes(Vulkan)), (1, 0));
    let first = machine.list.default_device(|_| true).unwrap();
    assert!(Arc::ptr_eq(&first, &machine.list.device(0, |_| true).unwrap()));
    assert_eq!(machine.probes(Vulkan), 0);
}

#[test]
fn hardware_under_two_drivers_is_one_device() {
    let mut machine = Machine::new(GpuConfig::default(), workstation());
    let context = machine.list.default_device(|_| true).unwrap();
    assert_eq!(machine.list.count(), 3);
    assert_eq!(machine.list.drivers_of(&context), [Cuda, Vulkan]);
    let list = machine.list.summaries();
    let names: Vec<&str> = list.iter().map(|d| d.properties.name.as_str()).collect();
    assert_eq!(names, ["card", "chip", "llvmpipe", "cores", "interpreter"]);
    assert_eq!(list[0].drivers, [Cuda, Vulkan]);
    assert!(list.iter().enumerate().all(|(n, d)| d.index as usize == n));
    assert_eq!(machine.probes(Cuda), 1, "drivers are asked once");

    let at = |bus| Some(PciAddress { domain: 0, bus, device: 0, function: 0 });
    let same = |bus| DeviceProperties { pci: at(bus), ..properties(Vulkan, "card", Discrete) };
    let cuda = DeviceProperties { pci: at(1), ..properties(Cuda, "card", Discrete) };
    let drivers = vec![(Cuda, Ok(vec![cuda])), (Vulkan, Ok(vec![same(2), same(1)]))];
    let mut machine = Machine::new(GpuConfig::default(), drivers);
    assert_eq!(machine.list.count(), 2);
    // Two equal cards of one driver are two devices.
    let twins = vec![(Vulkan, Ok(vec![same(1), same(1)]))];
    assert_eq!(Machine::new(GpuConfig::default(), twins).list.count(), 2);
}

#[test]
fn webgpu_devices_are_known_by_their_names() {
    let vulkan = |bus| {
        let pci = Some(PciAddress { domain: 0, bus, device: 0, function: 0 });
        DeviceProperties { pci, ..properties(Vulkan, "card", Discrete) }
    };
    let card = || properties(WebGpu, "card", Discrete);
    let chip = || properties(WebGpu, "chip", Integrated);
    let drivers = |webgpu| vec![(Vulkan, Ok(vec![vulkan(1), vulkan(2)])), (WebGpu, Ok(webgpu))];
    let lists = |webgpu| -> Vec<Vec<DriverKind>> {
        let mut machine = Machine::new(GpuConfig::default(), drivers(webgpu));
        machine.list.summaries().into_iter().map(|d| d.drivers).collect()
    };
    // Equal cards are told apart by their number.
    let both = vec![Vulkan, WebGpu];
    assert_eq!(lists(vec![card(), card()]), [both.clone(), both.clone()]);
    assert_eq!(lists(vec![card(), chip()]), [both, vec![Vulkan], vec![WebGpu]]);
}

#[test]
fn a_named_cpu_device_starts_no_gpu_driver() {
    let mut machine = Machine::new(config(DeviceChoice::Driver(Cpu)), workstation());
    assert_eq!(machine.default_name().unwrap(), "cores");
    assert_eq!(machine.list.count(), 1);
    assert_eq!(machine.name_of(0).unwrap(), "cores");
    assert_eq!((machine.probes(Cuda), machine.probes(Vulkan)), (0, 0));
}

#[test]
fn software_adapters_are_listed_and_chosen_only_when_named() {
    let mut machine = Machine::new(GpuConfig::default(), server());
    assert_eq!(machine.list.count(), 1);
    let error = machine.default_name().unwrap_err();
    assert_eq!(error.kind, ErrorKind::BackendUnavailable);
    assert!(error.message.contains("llvmpipe is software and must be named"), "{error}");
    assert!(error.message.contains("--device cpu"), "{error}");
    assert_eq!(machine.name_of(0).unwrap(), "llvmpipe");
    for device in [DeviceChoice::Driver(Vulkan), DeviceChoice::Index(0)] {
        assert_eq!(Machine::new(config(device), server()).default_name().unwrap(), "llvmpipe");
    }
    let manifest = GpuConfig { device_index: Some(0), ..GpuConfig::default() };
    assert_eq!(Machine::new(manifest, server()).default_name().unwrap(), "llvmpipe");
    // Hardware of the named driver comes first.
    let vulkan = config(DeviceChoice::Driver(Vulkan));
    assert_eq!(Machine::new(vulkan, workstation()).default_name().unwrap(), "card");
}

#[test]
fn the_cpu_device_is_a_fallback_that_must_be_enabled() {
    let fallback = GpuConfig { cpu_fallback: true, ..GpuConfig::default() };
    let mut machine = Machine::new(fallback.clone(), server());
    assert_eq!(machine.default_name().unwrap(), "cores");
    assert_eq!(machine.list.count(), 2);
    assert_eq!(Machine::new(fallback.clone(), workstation()).default_name().unwrap(), "card");
    // `gpu` means hardware.
    let gpu = GpuConfig { device: DeviceChoice::Gpu, ..fallback };
    let mut machine = Machine::new(gpu.clone(), server());
    assert_eq!(machine.default_name().unwrap_err().kind, ErrorKind::BackendUnavailable);
    assert_eq!(machine.list.count(), 0);
    assert_eq!(Machine::new(gpu, workstation()).list.count(), 2);
}

#[test]
fn a_number_names_a_device_of_the_whole_list() {
    for (number, name) in [(0, "card"), (2, "llvmpipe"), (3, "cores"), (4, "interpreter")] {
        let mut machine = Machine::new(config(DeviceChoice::Index(number)), workstation());
        assert_eq!(machine.default_name().unwrap(), name);
        assert_eq!(machine.list.count(), 1);
        assert_eq!(machine.name_of(0).unwrap(), name);
    }
    let mut machine = Machine::new(config(DeviceChoice::Index(9)), workstation());
    let error = machine.default_name().unwrap_err();
    assert!(error.message.contains("no device with number 9 (there are 5"), "{error}");
    let mut first = Machine::new(config(DeviceChoice::Index(0)), workstation());
    first.default_name().unwrap();
    assert_eq!(first.probes(Vulkan), 0);
}

#[test]
fn manifest_keys_narrow_the_list() {
    let spv = GpuConfig { backend: Some(GpuBackend::Spv), ..GpuConfig::default() };
    let mut machine = Machine::new(spv.clone(), workstation());
    let context = machine.list.default_device(|_| true).unwrap();
    assert_eq!(context.properties().driver, Vulkan);
    assert_eq!(machine.probes(Cuda), 0);
    let second = GpuConfig { device_index: Some(1), ..spv };
    assert_eq!(Machine::new(second, workstation()).default_name().unwrap(), "chip");
    let ptx = GpuConfig { backend: Some(GpuBackend::Ptx), ..GpuConfig::default() };
    let error = Machine::new(ptx.clone(), server()).default_name().unwrap_err();
    assert_eq!((error.kind, error.backend), (ErrorKind::BackendUnavailable, "ptx"));
    assert!(error.message.contains("no GPU for back end ptx"), "{error}");
    let or_cpu = GpuConfig { cpu_fallback: true, ..ptx };
    assert_eq!(Machine::new(or_cpu, server()).default_name().unwrap(), "cores");
}

#[test]
fn a_missing_driver_is_named_with_its_reason() {
    let drivers = vec![(Vulkan, Err("cannot load libvulkan.so.1")), cpu()];
    let mut machine = Machine::new(GpuConfig::default(), drivers.clone());
    let error = machine.default_name().unwrap_err();
    assert_eq!((error.kind, error.backend), (ErrorKind::BackendUnavailable, "spv"));
    assert!(error.message.contains("cannot load libvulkan.so.1"), "{error}");
    assert_eq!(machine.list.count(), 0);
    assert_eq!(machine.list.failures().len(), 1);
    assert!(machine.name_of(0).unwrap_err().message.contains("there is no device 0"));

    let named = config(DeviceChoice::Driver(Cuda));
    let error = Machine::new(named, drivers).default_name().unwrap_err();
    assert_eq!((error.kind, error.backend), (ErrorKind::BackendUnavailable, "ptx"));
    assert!(error.message.contains("no cuda device"), "{error}");
}

#[test]
fn a_device_that_does_not_open_is_passed_over() {
    let mut machine = Machine::refusing(GpuConfig::default(), workstation(), Some((Cuda, 0)));
    let context = machine.list.default_device(|_| true).unwrap();
    assert_eq!(context.properties().driver, Vulkan);
    let only = config(DeviceChoice::Driver(Cuda));
    let mut machine = Machine::refusing(only, workstation(), Some((Cuda, 0)));
    assert!(machine.default_name().unwrap_err().message.contains("the device is busy"));
}

#[test]
fn devices_that_can_run_the_program_come_first() {
    let mut machine = Machine::new(GpuConfig::default(), workstation());
    let context = machine.list.default_device(|driver| driver == Vulkan).unwrap();
    assert_eq!((&*context.properties().name, context.properties().driver), ("card", Vulkan));
    // None can: the launch will say why.
    let mut machine = Machine::new(GpuConfig::default(), workstation());
    let context = machine.list.default_device(|_| false).unwrap();
    assert_eq!(context.properties().driver, Cuda);
    let fallback = GpuConfig { cpu_fallback: true, ..GpuConfig::default() };
    let mut machine = Machine::new(fallback, workstation());
    let context = machine.list.default_device(|driver| driver == Cpu).unwrap();
    assert_eq!(context.properties().name, "cores");
}

#[test]
fn the_cpu_device_can_be_had_for_a_fallback_of_a_launch() {
    let mut machine = Machine::new(config(DeviceChoice::Gpu), workstation());
    assert_eq!(machine.list.cpu_device().unwrap().properties().driver, Cpu);
    assert_eq!(machine.probes(Cpu), 0);
}
