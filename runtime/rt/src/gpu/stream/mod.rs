//! CUDA and HIP: one driver for two interfaces that are twins.
//!
//! `api` holds the functions, whatever they are called; `cuda` and `hip` say how that is, and where
//! the two differ otherwise. All work of a device goes through one stream, which is its order of
//! work: `queue` counts it and holds its events, `memory` allocates in the order of the stream,
//! `staging` is the way of transfers, `kernel` and `cubin` load code and launch it.
//!
//! The library is opened at run time and stays: vendors' libraries do not like to be unloaded.

mod adapter;
mod api;
mod core;
mod cubin;
mod cuda;
mod device;
mod error;
mod hip;
mod kernel;
mod memory;
mod queue;
mod staging;
#[cfg(test)]
mod tests;

use super::cache_file::user_cache_folder;
use super::device::Device;
use super::discovery::Driver;
use super::error::{ErrorKind, GpuResult};
use super::properties::{DeviceProperties, DriverKind};
use adapter::{Adapter, adapters};
use api::Api;
use device::StreamDevice;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Whose interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vendor {
    Cuda,
    Hip,
}

impl Vendor {
    pub(crate) fn driver(self) -> DriverKind {
        match self {
            Vendor::Cuda => DriverKind::Cuda,
            Vendor::Hip => DriverKind::Hip,
        }
    }

    /// The back-end word in errors.
    fn backend(self) -> &'static str {
        self.driver().backend_name()
    }

    /// How messages call the interface.
    fn name(self) -> &'static str {
        match self {
            Vendor::Cuda => "CUDA",
            Vendor::Hip => "HIP",
        }
    }
}

/// How to start a driver.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamOptions {
    /// This library instead of the system's.
    pub(crate) library: Option<PathBuf>,
    /// Allocate through a pool of our own even where the interface has one.
    pub(crate) own_pool: bool,
    /// Where to keep assembled kernels between processes, if anywhere.
    pub(crate) cache_folder: Option<PathBuf>,
}

/// The driver as discovery sees it.
pub(crate) struct StreamDriver {
    vendor: Vendor,
    options: StreamOptions,
    /// Whether the library is the one of the process.
    is_shared: bool,
    /// The library with its devices, when it was started.
    started: Option<(Arc<Api>, Vec<Adapter>)>,
}

impl StreamDriver {
    /// The driver with a library of its own.
    #[cfg(test)]
    pub(crate) fn new(vendor: Vendor, options: StreamOptions) -> StreamDriver {
        StreamDriver { vendor, options, is_shared: false, started: None }
    }

    /// The driver as programs use it.
    pub(crate) fn of_process(vendor: Vendor) -> StreamDriver {
        let options = StreamOptions { cache_folder: user_cache_folder(), ..Default::default() };
        StreamDriver { vendor, options, is_shared: true, started: None }
    }

    fn api(&self) -> GpuResult<Arc<Api>> {
        static SHARED: Mutex<[Option<Arc<Api>>; 2]> = Mutex::new([None, None]);
        let load = || Api::load(self.vendor, self.options.library.as_deref()).map(Arc::new);
        if !self.is_shared {
            return load();
        }
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = &mut shared[self.vendor as usize];
        if let Some(api) = slot {
            return Ok(Arc::clone(api));
        }
        Ok(Arc::clone(slot.insert(load()?)))
    }
}

impl Driver for StreamDriver {
    fn kind(&self) -> DriverKind {
        self.vendor.driver()
    }

    fn adapters(&mut self) -> GpuResult<Vec<DeviceProperties>> {
        let api = self.api()?;
        let adapters = adapters(&api)?;
        let properties = adapters.iter().map(|adapter| adapter.properties.clone()).collect();
        self.started = Some((api, adapters));
        Ok(properties)
    }

    fn open(&mut self, adapter: usize) -> GpuResult<Box<dyn Device>> {
        let started = self.started.as_ref();
        let found = started.and_then(|(api, list)| Some((api, list.get(adapter)?)));
        let Some((api, adapter)) = found else {
            let message = format!("{} has no device {adapter}", self.vendor.name());
            return Err(error::error(self.vendor, ErrorKind::BackendUnavailable, message));
        };
        Ok(Box::new(StreamDevice::open(api, adapter, &self.options)?))
    }
}
