//! From the capabilities a module declares to the features its device must offer.

use magpie_types::kernel::DeviceFeatures;
use spirv::Capability;

/// The features behind the capabilities that kernels use.
pub(crate) fn features_of(capabilities: &[Capability]) -> DeviceFeatures {
    let feature = |c: &Capability| match c {
        Capability::Int8 => DeviceFeatures::INT8,
        Capability::Int16 => DeviceFeatures::INT16,
        Capability::Int64 => DeviceFeatures::INT64,
        Capability::Float16 => DeviceFeatures::FLOAT16,
        Capability::Float64 => DeviceFeatures::FLOAT64,
        Capability::StorageBuffer8BitAccess => DeviceFeatures::STORAGE8,
        Capability::StorageBuffer16BitAccess => DeviceFeatures::STORAGE16,
        Capability::Int64Atomics => DeviceFeatures::ATOMIC_INT64,
        Capability::AtomicFloat32AddEXT => DeviceFeatures::ATOMIC_FLOAT32_ADD,
        Capability::AtomicFloat64AddEXT => DeviceFeatures::ATOMIC_FLOAT64_ADD,
        Capability::AtomicFloat32MinMaxEXT => DeviceFeatures::ATOMIC_FLOAT32_MINMAX,
        Capability::GroupNonUniform
        | Capability::GroupNonUniformVote
        | Capability::GroupNonUniformArithmetic
        | Capability::GroupNonUniformBallot
        | Capability::GroupNonUniformShuffle
        | Capability::GroupNonUniformShuffleRelative => DeviceFeatures::SUBGROUP,
        _ => DeviceFeatures::default(),
    };
    capabilities.iter().map(feature).fold(DeviceFeatures::default(), DeviceFeatures::union)
}
