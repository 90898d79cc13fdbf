//! Execution modes that pin down float arithmetic, where the device offers them.

use crate::builder::Id;
use crate::emitter::Emitter;
use crate::types::{Scalar, Shape};
use magpie_types::kernel::DeviceFeatures;
use spirv::{Capability, ExecutionMode};

/// The float widths a kernel computes with, as a set.
#[derive(Clone, Copy, Default)]
pub(crate) struct FloatWidths(u8);

impl FloatWidths {
    fn bit(scalar: Scalar) -> u8 {
        match scalar {
            Scalar::Float16 => 1,
            Scalar::Float32 => 2,
            Scalar::Float64 => 4,
            Scalar::Bool | Scalar::Int8 | Scalar::Int16 | Scalar::Int32 | Scalar::Int64 => 0,
        }
    }
}

/// By width: keeping zeros, infinities and NaN; rounding to nearest even; keeping subnormals.
const MODES: [(Scalar, [DeviceFeatures; 3]); 3] = [
    (
        Scalar::Float16,
        [
            DeviceFeatures::FLOAT16_CONTROLS,
            DeviceFeatures::FLOAT16_RTE,
            DeviceFeatures::FLOAT16_DENORMS,
        ],
    ),
    (
        Scalar::Float32,
        [
            DeviceFeatures::FLOAT32_CONTROLS,
            DeviceFeatures::FLOAT32_RTE,
            DeviceFeatures::FLOAT32_DENORMS,
        ],
    ),
    (
        Scalar::Float64,
        [
            DeviceFeatures::FLOAT64_CONTROLS,
            DeviceFeatures::FLOAT64_RTE,
            DeviceFeatures::FLOAT64_DENORMS,
        ],
    ),
];

/// What each of the three needs in the module.
const DECLARATIONS: [(Capability, ExecutionMode); 3] = [
    (Capability::SignedZeroInfNanPreserve, ExecutionMode::SignedZeroInfNanPreserve),
    (Capability::RoundingModeRTE, ExecutionMode::RoundingModeRTE),
    (Capability::DenormPreserve, ExecutionMode::DenormPreserve),
];

impl Emitter<'_> {
    /// Notes that the kernel computes with a float type.
    #[inline]
    pub(crate) fn used_float(&mut self, shape: Shape) {
        self.floats.0 |= FloatWidths::bit(shape.scalar);
    }

    /// Declares the modes of the widths in use.
    pub(crate) fn declare_float_controls(&mut self, main: Id) {
        for (scalar, features) in MODES {
            if self.floats.0 & FloatWidths::bit(scalar) == 0 {
                continue;
            }
            for (feature, (capability, mode)) in features.into_iter().zip(DECLARATIONS) {
                if self.features.contains(feature) {
                    self.b.capability(capability);
                    let words = [main, mode as u32, scalar.width()];
                    self.b.modes.op(spirv::Op::ExecutionMode, &words);
                    self.needs |= feature;
                }
            }
        }
    }
}
