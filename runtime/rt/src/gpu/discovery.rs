//! The unified list of devices.
//!
//! Drivers are asked in platform order and only when the answer is needed: choosing the default
//! device stops at the first acceptable one, and a driver that cannot be meant by the
//! configuration is never loaded. Hardware that two drivers report is one entry with two back
//! ends. Numbers of devices do not depend on what was asked before, because entries are only
//! appended, driver by driver.

use super::config::{DeviceChoice, GpuConfig};
use super::context::Context;
use super::device::Device;
use super::error::{ErrorKind, GpuError, GpuResult};
use super::properties::{DeviceProperties, DeviceType, DriverKind};
use magpie_types::kernel::GpuBackend;
use std::sync::Arc;

/// A driver that may have devices.
pub(crate) trait Driver: Send {
    /// Which one.
    fn kind(&self) -> DriverKind;

    /// Loads the driver and describes its devices, preferred ones first.
    ///
    /// # Errors
    /// [`ErrorKind::BackendUnavailable`] when the driver is missing or does not start.
    fn adapters(&mut self) -> GpuResult<Vec<DeviceProperties>>;

    /// Opens the device with this position among [`Driver::adapters`].
    ///
    /// # Errors
    /// What the driver says.
    fn open(&mut self, adapter: usize) -> GpuResult<Box<dyn Device>>;
}

/// A device as listings show it.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceSummary {
    /// Its number among all devices.
    pub index: u32,
    /// As its first driver describes it.
    pub properties: DeviceProperties,
    /// Every driver that offers it, preferred ones first.
    pub drivers: Vec<DriverKind>,
}

struct Source {
    driver: Box<dyn Driver>,
    probed: bool,
    failure: Option<GpuError>,
}

/// A device through one driver.
struct Offer {
    source: usize,
    adapter: usize,
    properties: DeviceProperties,
}

/// A physical device.
struct Entry {
    offers: Vec<Offer>,
}

impl Entry {
    fn properties(&self) -> &DeviceProperties {
        &self.offers[0].properties
    }

    /// Whether a device of a driver that this entry has no device of is this hardware.
    fn is_same_hardware(&self, other: &DeviceProperties) -> bool {
        let mut mine = self.offers.iter().map(|offer| &offer.properties);
        mine.clone().all(|mine| mine.driver != other.driver)
            && mine.any(|mine| mine.is_same_hardware(other))
    }
}

/// The list of devices, as far as it is known.
pub(crate) struct Discovery {
    config: GpuConfig,
    sources: Vec<Source>,
    entries: Vec<Entry>,
    opened: Vec<(usize, usize, Arc<Context>)>,
}

impl Discovery {
    /// A list over drivers in platform order. With [`GpuConfig::mock`], `drivers` is the mock
    /// driver alone.
    pub(crate) fn new(config: GpuConfig, drivers: Vec<Box<dyn Driver>>) -> Discovery {
        let source = |driver| Source { driver, probed: false, failure: None };
        let sources = drivers.into_iter().map(source).collect();
        Discovery { config, sources, entries: Vec::new(), opened: Vec::new() }
    }

    fn probe(&mut self, source: usize) {
        let state = &mut self.sources[source];
        if std::mem::replace(&mut state.probed, true) {
            return;
        }
        match state.driver.adapters() {
            Err(failure) => state.failure = Some(failure),
            Ok(adapters) => {
                for (adapter, properties) in adapters.into_iter().enumerate() {
                    let known = self.entries.iter_mut().find(|e| e.is_same_hardware(&properties));
                    let offer = Offer { source, adapter, properties };
                    match known {
                        Some(entry) => entry.offers.push(offer),
                        None => self.entries.push(Entry { offers: vec![offer] }),
                    }
                }
            }
        }
    }

    /// The one driver that the configuration names, if it names one.
    fn named_driver(&self) -> Option<DriverKind> {
        match (self.config.mock, self.config.device) {
            (true, _) => Some(DriverKind::Mock),
            (_, DeviceChoice::Driver(driver)) => Some(driver),
            (_, DeviceChoice::Auto | DeviceChoice::Gpu | DeviceChoice::Index(_)) => None,
        }
    }

    /// Whether devices of the driver can be admitted at all.
    fn may_admit(&self, driver: DriverKind) -> bool {
        if let Some(named) = self.named_driver() {
            return driver == named;
        }
        match driver {
            DriverKind::Mock => false,
            DriverKind::Interp => matches!(self.config.device, DeviceChoice::Index(_)),
            DriverKind::Cpu => match self.config.device {
                DeviceChoice::Auto => self.config.cpu_fallback,
                DeviceChoice::Gpu | DeviceChoice::Driver(_) => false,
                DeviceChoice::Index(_) => true,
            },
            DriverKind::Cuda
            | DriverKind::Hip
            | DriverKind::Metal
            | DriverKind::Vulkan
            | DriverKind::WebGpu => match self.config.device {
                // The command line is stronger than the manifest.
                DeviceChoice::Index(_) | DeviceChoice::Driver(_) => true,
                DeviceChoice::Auto | DeviceChoice::Gpu => {
                    self.config.backend.is_none_or(|b| DriverKind::of_backend(b) == driver)
                }
            },
        }
    }

    /// Whether the program sees the entry.
    fn admits(&self, index: usize, entry: &Entry) -> bool {
        let admitted = entry.offers.iter().any(|o| self.may_admit(o.properties.driver));
        match self.config.device {
            _ if self.config.mock => admitted,
            DeviceChoice::Auto | DeviceChoice::Driver(_) => admitted,
            DeviceChoice::Gpu => admitted && entry.properties().device_type.is_hardware(),
            DeviceChoice::Index(n) => index == n as usize,
        }
    }

    /// Positions of the entries that the program sees, in order.
    fn visible(&self) -> Vec<usize> {
        let entries = self.entries.iter().enumerate();
        let visible: Vec<usize> =
            entries.filter(|&(i, e)| self.admits(i, e)).map(|(i, _)| i).collect();
        match (self.config.device, self.config.device_index) {
            (DeviceChoice::Auto | DeviceChoice::Gpu, Some(n)) => {
                visible.get(n as usize).map_or(Vec::new(), |&entry| vec![entry])
            }
            _ => visible,
        }
    }

    /// Whether the entry may be chosen without being named: hardware first, the CPU device when
    /// it is enabled, a software adapter never.
    fn may_default(&self, entry: &Entry) -> bool {
        let named = self.named_driver().is_some()
            || matches!(self.config.device, DeviceChoice::Index(_))
            || self.config.device_index.is_some();
        named || entry.properties().device_type != DeviceType::Software
    }

    /// Asks drivers in order until `enough` says so or all that can matter have been asked.
    fn probe_until(&mut self, mut enough: impl FnMut(&Discovery) -> bool) {
        for source in 0..self.sources.len() {
            if enough(self) {
                return;
            }
            let driver = self.sources[source].driver.kind();
            // Numbers count all devices before the one that is meant.
            let counts = matches!(self.config.device, DeviceChoice::Index(_)) && !self.config.mock;
            if counts || self.may_admit(driver) {
                self.probe(source);
            }
        }
    }

    /// Number of devices that the program sees.
    pub(crate) fn count(&mut self) -> usize {
        self.probe_until(|_| false);
        self.visible().len()
    }

    /// Every device of every driver, whatever the configuration admits.
    pub(crate) fn summaries(&mut self) -> Vec<DeviceSummary> {
        (0..self.sources.len()).for_each(|source| self.probe(source));
        let summary = |(index, entry): (usize, &Entry)| DeviceSummary {
            index: index as u32,
            properties: entry.properties().clone(),
            drivers: entry.offers.iter().map(|o| o.properties.driver).collect(),
        };
        self.entries.iter().enumerate().map(summary).collect()
    }

    /// What drivers that were asked said when they could not be used.
    pub(crate) fn failures(&self) -> Vec<GpuError> {
        self.sources.iter().filter_map(|s| s.failure.clone()).collect()
    }

    /// The device that a program gets when it does not ask for one. `runs` tells whether the
    /// program's kernels can run on a driver.
    ///
    /// # Errors
    /// [`ErrorKind::BackendUnavailable`] that says what was found and how to get a device.
    pub(crate) fn default_device(
        &mut self,
        runs: impl Fn(DriverKind) -> bool,
    ) -> GpuResult<Arc<Context>> {
        let mut failures = Vec::new();
        // First a device for which the program has kernels, then any: the launch then says which
        // blob is missing.
        for all in [false, true] {
            let mut refused = Vec::new();
            loop {
                let mut found = None;
                self.probe_until(|this| {
                    found = this.best(&refused, |driver| all || runs(driver));
                    found.is_some()
                });
                found = found.or_else(|| self.best(&refused, |driver| all || runs(driver)));
                let Some((entry, offer)) = found else { break };
                match self.open(entry, offer) {
                    Ok(context) => return Ok(context),
                    Err(failure) => {
                        failures.push(failure);
                        refused.push((entry, offer));
                    }
                }
            }
        }
        Err(self.nothing_acceptable(failures))
    }

    /// The first acceptable entry and the offer to open it through: hardware and named devices
    /// before software adapters.
    fn best(
        &self,
        refused: &[(usize, usize)],
        runs: impl Fn(DriverKind) -> bool,
    ) -> Option<(usize, usize)> {
        let offer = |index: &usize| {
            let entry = &self.entries[*index];
            let usable = |&(n, offer): &(usize, &Offer)| {
                let driver = offer.properties.driver;
                self.may_admit(driver) && runs(driver) && !refused.contains(&(*index, n))
            };
            let found = entry.offers.iter().enumerate().find(usable)?;
            self.may_default(entry).then_some((*index, found.0))
        };
        let visible = self.visible();
        let software =
            |index: &&usize| self.entries[**index].properties().device_type == DeviceType::Software;
        let hardware = visible.iter().filter(|i| !software(i)).find_map(offer);
        hardware.or_else(|| visible.iter().filter(software).find_map(offer))
    }

    /// The device with a number among those that the program sees.
    ///
    /// # Errors
    /// [`ErrorKind::BackendUnavailable`] when there are fewer.
    pub(crate) fn device(
        &mut self,
        number: u32,
        runs: impl Fn(DriverKind) -> bool,
    ) -> GpuResult<Arc<Context>> {
        self.probe_until(|this| this.visible().len() > number as usize);
        let visible = self.visible();
        let Some(&index) = visible.get(number as usize) else {
            let count = visible.len();
            let message = match count {
                0 => format!("there is no device {number}: {}", self.no_device(&[])),
                1 => format!("there is no device {number}: the only device is number 0"),
                _ => {
                    format!("there is no device {number}: devices are numbered 0 to {}", count - 1)
                }
            };
            return Err(GpuError::new(ErrorKind::BackendUnavailable, self.backend_word(), message));
        };
        let offers = &self.entries[index].offers;
        let usable = |all: bool| {
            offers.iter().position(|o| {
                let driver = o.properties.driver;
                self.may_admit(driver) && (all || runs(driver))
            })
        };
        let offer = usable(false).or_else(|| usable(true)).unwrap_or(0);
        self.open(index, offer)
    }

    /// The CPU device, for launches that may fall back to it, whatever the configuration admits.
    ///
    /// # Errors
    /// [`ErrorKind::BackendUnavailable`] when this list has no CPU driver.
    pub(crate) fn cpu_device(&mut self) -> GpuResult<Arc<Context>> {
        let cpu = self.sources.iter().position(|s| s.driver.kind() == DriverKind::Cpu);
        let Some(source) = cpu else {
            let message = "the CPU device is not available to this program";
            return Err(GpuError::new(ErrorKind::BackendUnavailable, "cpu", message));
        };
        self.open_adapter(source, 0)
    }

    fn open(&mut self, entry: usize, offer: usize) -> GpuResult<Arc<Context>> {
        let Offer { source, adapter, .. } = self.entries[entry].offers[offer];
        self.open_adapter(source, adapter)
    }

    fn open_adapter(&mut self, source: usize, adapter: usize) -> GpuResult<Arc<Context>> {
        let opened = self.opened.iter().find(|&&(s, a, _)| (s, a) == (source, adapter));
        if let Some((.., context)) = opened {
            return Ok(Arc::clone(context));
        }
        let device = self.sources[source].driver.open(adapter)?;
        let context = Context::new(device, self.config.wait_limit);
        self.opened.push((source, adapter, Arc::clone(&context)));
        Ok(context)
    }

    /// The drivers of every entry that is the same hardware as an opened device.
    pub(crate) fn drivers_of(&self, context: &Arc<Context>) -> Vec<DriverKind> {
        let opened = self.opened.iter().find(|(.., c)| Arc::ptr_eq(c, context));
        let Some(&(source, adapter, _)) = opened else { return Vec::new() };
        let is_this = |o: &Offer| (o.source, o.adapter) == (source, adapter);
        let entry = self.entries.iter().find(|e| e.offers.iter().any(is_this));
        entry.map_or(Vec::new(), |e| e.offers.iter().map(|o| o.properties.driver).collect())
    }

    /// Every opened device.
    pub(crate) fn opened(&self) -> impl Iterator<Item = &Arc<Context>> {
        self.opened.iter().map(|(.., context)| context)
    }

    /// The back end that an error about a missing device names.
    fn backend_word(&self) -> &'static str {
        if let Some(driver) = self.named_driver() {
            return driver.backend_name();
        }
        if let Some(backend) = self.config.backend {
            return backend.name();
        }
        self.sources.first().map_or(GpuBackend::Spv.name(), |s| s.driver.kind().backend_name())
    }

    fn nothing_acceptable(&self, failures: Vec<GpuError>) -> GpuError {
        let message = self.no_device(&failures);
        let code = failures.first().map_or(0, |f| f.code);
        GpuError::new(ErrorKind::BackendUnavailable, self.backend_word(), message).with_code(code)
    }

    /// Why there is no device and what to do.
    fn no_device(&self, failures: &[GpuError]) -> String {
        let what = match (self.named_driver(), self.config.device, self.config.backend) {
            (Some(driver), ..) => format!("no {} device", driver.name()),
            (None, DeviceChoice::Index(n), _) => {
                let count = self.entries.len();
                format!("no device with number {n} (there are {count}; see `magpie devices`)")
            }
            (None, _, Some(backend)) => format!("no GPU for back end {}", backend.name()),
            (None, ..) => "no GPU".to_string(),
        };
        let known = self.sources.iter().filter_map(|s| s.failure.as_ref()).chain(failures);
        let mut parts: Vec<String> = known.map(|f| f.message.clone()).collect();
        let has_driver = self
            .named_driver()
            .is_none_or(|named| self.sources.iter().any(|s| s.driver.kind() == named));
        if !has_driver {
            parts.push("this build of the runtime has no such driver on this system".to_string());
        }
        let software = self.entries.iter().map(Entry::properties);
        let software: Vec<&str> = software
            .filter(|p| p.device_type == DeviceType::Software)
            .map(|p| p.name.as_str())
            .collect();
        let chooses_freely = matches!(self.config.device, DeviceChoice::Auto | DeviceChoice::Gpu);
        if chooses_freely && !software.is_empty() {
            let names = software.join(", ");
            parts.push(format!("{names} is software and must be named (--device vulkan)"));
        }
        let reasons =
            if parts.is_empty() { String::new() } else { format!(": {}", parts.join("; ")) };
        let way_out = match self.config.device {
            DeviceChoice::Auto => {
                ". Kernels can run on the CPU with --device cpu or `fallback = \"cpu\"` under [gpu]"
            }
            DeviceChoice::Gpu => ". Without --device gpu kernels can run on the CPU",
            DeviceChoice::Driver(_) | DeviceChoice::Index(_) => "",
        };
        format!("{what}{reasons}{way_out}")
    }
}

#[cfg(test)]
mod tests;
