//! Which devices a program may use: command line and environment over the manifest
//! (`magpie_rt` chooses among them).

use crate::manifest::GpuKeys;
use crate::options::{Fallback, Options};
use magpie_rt::gpu::{DeviceChoice, GpuConfig};

/// The configuration of the GPU runtime, and how the CPU came to be allowed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct DeviceConfig {
    pub(crate) runtime: GpuConfig,
    /// Nobody asked for the CPU device; when it is used for want of a GPU, that is said.
    pub(crate) announces_cpu: bool,
}

/// The configuration of a program. Outside a project `run` may use the CPU device when there is no
/// GPU; everywhere else that must be asked for.
pub(crate) fn device_config(
    options: &Options,
    keys: &GpuKeys,
    has_manifest: bool,
    is_test: bool,
) -> DeviceConfig {
    let fallback = options.gpu_fallback.or(keys.fallback);
    let device = options.device.unwrap_or_default();
    let is_free = fallback.is_none() && device == DeviceChoice::Auto;
    let announces_cpu = is_free && !has_manifest && options.command == "run";
    let runtime = GpuConfig {
        device,
        backend: keys.backend,
        device_index: keys.device_index.flatten(),
        cpu_fallback: announces_cpu || fallback == Some(Fallback::Cpu),
        mock: is_test && keys.mock_in_tests == Some(true),
        cpu_threads: None,
        ..GpuConfig::default()
    };
    DeviceConfig { runtime, announces_cpu }
}

/// The word that [`DeviceChoice::parse`] reads as this choice.
pub(crate) fn device_word(choice: DeviceChoice) -> String {
    match choice {
        DeviceChoice::Auto => "auto".to_string(),
        DeviceChoice::Gpu => "gpu".to_string(),
        DeviceChoice::Driver(driver) => driver.name().to_string(),
        DeviceChoice::Index(number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_types::kernel::GpuBackend;

    #[test]
    fn the_cpu_is_a_fallback_where_it_is_asked_for_or_nobody_was_asked() {
        let keys = |fallback| GpuKeys { fallback, ..GpuKeys::default() };
        let config = |command, flag, key, has_manifest| {
            let options = Options { gpu_fallback: flag, ..Options::new(command) };
            let config = device_config(&options, &keys(key), has_manifest, false);
            (config.runtime.cpu_fallback, config.announces_cpu)
        };
        let (none, cpu) = (Some(Fallback::None), Some(Fallback::Cpu));
        assert_eq!(config("run", None, None, false), (true, true));
        assert_eq!(config("run", None, None, true), (false, false));
        assert_eq!(config("test", None, None, false), (false, false));
        assert_eq!(config("run", none, None, false), (false, false));
        assert_eq!(config("run", cpu, none, true), (true, false));
        assert_eq!(config("run", none, cpu, true), (false, false));
        assert_eq!(config("run", None, cpu, true), (true, false));
        let named = Options { device: Some(DeviceChoice::Gpu), ..Options::new("run") };
        let config = device_config(&named, &GpuKeys::default(), false, false);
        assert_eq!((config.runtime.cpu_fallback, config.announces_cpu), (false, false));
    }

    #[test]
    fn keys_of_the_manifest_are_passed_on() {
        let keys = GpuKeys {
            backend: Some(GpuBackend::Spv),
            fallback: None,
            device_index: Some(Some(2)),
            mock_in_tests: Some(true),
        };
        let options = Options { device: Some(DeviceChoice::Gpu), ..Options::new("run") };
        let config = device_config(&options, &keys, true, false).runtime;
        assert_eq!((config.backend, config.device_index), (Some(GpuBackend::Spv), Some(2)));
        assert_eq!((config.device, config.mock), (DeviceChoice::Gpu, false));
        assert!(device_config(&options, &keys, true, true).runtime.mock);
        let auto = GpuKeys { device_index: Some(None), ..GpuKeys::default() };
        assert_eq!(device_config(&options, &auto, true, false).runtime.device_index, None);
    }

    #[test]
    fn choices_have_words() {
        for word in ["auto", "gpu", "cpu", "vulkan", "interp", "7"] {
            assert_eq!(DeviceChoice::parse(word).map(device_word).as_deref(), Ok(word));
        }
    }
}
