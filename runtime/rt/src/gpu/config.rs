//! How the devices of a program are chosen.

use super::properties::DriverKind;
use magpie_types::kernel::{DeviceFeatures, GpuBackend};
use std::time::Duration;

/// What `--device` (or `MAGPIE_DEVICE`) asks for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum DeviceChoice {
    /// The best GPU; the CPU device when there is none and [`GpuConfig::cpu_fallback`] is set.
    #[default]
    Auto,
    /// A hardware GPU, never the CPU device or a software adapter.
    Gpu,
    /// The devices of one driver, software adapters included.
    Driver(DriverKind),
    /// The device with this number in the list of all devices.
    Index(u32),
}

impl DeviceChoice {
    /// Reads `auto`, `gpu`, a driver name, a back-end word or a number.
    ///
    /// # Errors
    /// A sentence that lists what is accepted.
    pub fn parse(text: &str) -> Result<DeviceChoice, String> {
        match text {
            "auto" => return Ok(DeviceChoice::Auto),
            "gpu" => return Ok(DeviceChoice::Gpu),
            _ => {}
        }
        if let Some(driver) = DriverKind::from_name(text) {
            return Ok(DeviceChoice::Driver(driver));
        }
        text.parse().map(DeviceChoice::Index).map_err(|_| {
            format!(
                "unknown device `{text}`: expected auto, gpu, cpu, a driver (cuda, hip, metal, \
                 vulkan, webgpu, interp, mock), a back end (ptx, hip, msl, spv, wgsl) or the \
                 number of a device"
            )
        })
    }
}

/// The settings of the GPU runtime. They apply to devices that are looked up afterwards.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct GpuConfig {
    /// The command line's or environment's choice; stronger than the manifest's keys below.
    pub device: DeviceChoice,
    /// `[gpu] backend`: only devices with this back end.
    pub backend: Option<GpuBackend>,
    /// `[gpu] device_index`: only this device of those that are admitted; `None` for `-1`.
    pub device_index: Option<u32>,
    /// `[gpu] fallback = "cpu"`: the CPU device counts as a device.
    pub cpu_fallback: bool,
    /// The one device is the mock device. Wins over everything else.
    pub mock: bool,
    /// Threads of the CPU device; `None` for one a core.
    pub cpu_threads: Option<usize>,
    /// Features that GPUs pretend to lack, to test how kernels do without.
    pub hidden_features: DeviceFeatures,
    /// Longest time that a launch or synchronisation waits for the device; `None` waits until it
    /// is done. A launch on the CPU device that runs in the calling thread has no limit.
    pub wait_limit: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_words() {
        let driver = |d| Ok(DeviceChoice::Driver(d));
        assert_eq!(DeviceChoice::parse("auto"), Ok(DeviceChoice::Auto));
        assert_eq!(DeviceChoice::parse("gpu"), Ok(DeviceChoice::Gpu));
        assert_eq!(DeviceChoice::parse("cpu"), driver(DriverKind::Cpu));
        assert_eq!(DeviceChoice::parse("spv"), driver(DriverKind::Vulkan));
        assert_eq!(DeviceChoice::parse("vulkan"), driver(DriverKind::Vulkan));
        assert_eq!(DeviceChoice::parse("ptx"), driver(DriverKind::Cuda));
        assert_eq!(DeviceChoice::parse("3"), Ok(DeviceChoice::Index(3)));
        for bad in ["", "-1", "GPU", "4294967296", "1.0", "nvidia"] {
            let error = DeviceChoice::parse(bad).unwrap_err();
            assert!(error.contains(&format!("`{bad}`")) && error.contains("vulkan"), "{error}");
        }
    }
}
