//! `magpie devices`: every device that can run kernels.

use crate::device_config::device_config;
use crate::manifest::GpuKeys;
use crate::project::Project;
use crate::session::Session;
use magpie_rt::gpu::{DeviceSummary, DeviceType, DriverKind, GpuError, Runtime};
use serde_json::{Value, json};
use std::fmt::Write;

/// The devices of this machine.
#[derive(Clone, Debug)]
pub struct DeviceList {
    devices: Vec<DeviceSummary>,
    /// Position of the device that `run` uses here.
    chosen: Option<usize>,
    failures: Vec<GpuError>,
}

/// Looks for devices with every driver, and for the one that `run` would use in this folder.
pub fn devices(session: &mut Session) -> DeviceList {
    let project = manifest_here(session);
    let (keys, has_manifest) =
        project.as_ref().map_or((GpuKeys::default(), false), |p| (p.gpu(), p.has_manifest));
    let mut options = session.options.clone();
    options.command = "run";
    let config = device_config(&options, &keys, has_manifest, false).runtime;
    let runtime = Runtime::new(config);
    let (devices, failures) = runtime.devices();
    let chosen = runtime.default_device().ok();
    let chosen = chosen.and_then(|context| {
        let opened = context.properties();
        devices.iter().position(|device| {
            device.properties.name == opened.name && device.drivers.contains(&opened.driver)
        })
    });
    DeviceList { devices, chosen, failures }
}

/// The project of the working directory; a listing does not depend on one.
fn manifest_here(session: &mut Session) -> Option<Project> {
    let mut probe = Session::new(session.options.clone());
    Project::find(&mut probe).ok()
}

impl DeviceList {
    /// One line a device; the chosen one has a star.
    pub fn table(&self) -> String {
        let mut rows = vec![["", "#", "name", "drivers", "type", "memory"].map(String::from)];
        for (n, device) in self.devices.iter().enumerate() {
            let properties = &device.properties;
            rows.push([
                if self.chosen == Some(n) { "*" } else { "" }.to_string(),
                device.index.to_string(),
                properties.name.clone(),
                names(&device.drivers).join(", "),
                properties.device_type.name().to_string(),
                size(properties.memory_total),
            ]);
        }
        let mut out = table(&rows);
        match self.chosen {
            Some(_) => {
                out.push_str("* `magpie run` uses this one here; --device chooses another\n")
            }
            None => out.push_str("`magpie run` uses none of them here unless --device names it\n"),
        }
        let software = |d: &&DeviceSummary| d.properties.device_type == DeviceType::Software;
        if self.devices.iter().any(|d| software(&d)) {
            out.push_str("software devices are used only when they are named: --device vulkan\n");
        }
        for failure in &self.failures {
            let _ = writeln!(out, "{}: {}", failure.backend, failure.message);
        }
        out
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let device = |(n, device): (usize, &DeviceSummary)| {
            let properties = &device.properties;
            json!({
                "chosen": self.chosen == Some(n),
                "driver_info": properties.driver_info,
                "drivers": names(&device.drivers),
                "features": properties.features.names(),
                "index": device.index,
                "max_workgroup_invocations": properties.limits.workgroup_invocations,
                "memory_bytes": properties.memory_total,
                "name": properties.name,
                "shared_bytes": properties.limits.shared_bytes,
                "subgroup_size": properties.subgroup_size,
                "type": properties.device_type.name(),
            })
        };
        let devices: Vec<Value> = self.devices.iter().enumerate().map(device).collect();
        let failure =
            |failure: &GpuError| json!({ "backend": failure.backend, "message": failure.message });
        let failures: Vec<Value> = self.failures.iter().map(failure).collect();
        json!({ "failures": failures, "list": devices })
    }
}

fn names(drivers: &[DriverKind]) -> Vec<&'static str> {
    drivers.iter().map(|driver| driver.name()).collect()
}

fn size(bytes: u64) -> String {
    match bytes >> 20 {
        mib if mib >= 10 << 10 => format!("{} GiB", mib >> 10),
        mib => format!("{mib} MiB"),
    }
}

/// Rows with aligned columns.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn the_cpu_is_always_there() {
        let mut session = Session::new(Options::new("devices"));
        let list = devices(&mut session);
        let json = list.json();
        let all = json["list"].as_array().unwrap();
        assert!(all.iter().any(|d| d["drivers"] == json!(["cpu"]) && d["type"] == "host"));
        assert!(all.iter().filter(|d| d["chosen"] == true).count() <= 1);
        let table = list.table();
        assert!(table.starts_with("   #  name"), "{table}");
        assert!(table.lines().all(|line| line == line.trim_end()));
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "bé", "c"], ["aa", "b", ""]].map(|row| row.map(String::from));
        assert_eq!(table(&rows), "a   bé  c\naa  b\n");
    }
}
