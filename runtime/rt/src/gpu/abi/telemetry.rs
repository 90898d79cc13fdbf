//! `mp_rt_gpu_telemetry_*`: the counters of device-resident bindings.

use crate::gpu::telemetry::{self, Cost};

/// See [`magpie_types::abi::RtFn::GpuTelemetryReset`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mp_rt_gpu_telemetry_reset() {
    telemetry::reset();
}

/// See [`magpie_types::abi::RtFn::GpuTelemetryLaunch`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mp_rt_gpu_telemetry_launch() {
    telemetry::count(Cost::Launch);
}

/// See [`magpie_types::abi::RtFn::GpuTelemetry`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mp_rt_gpu_telemetry(which: i32) -> i64 {
    telemetry::get(which)
}
