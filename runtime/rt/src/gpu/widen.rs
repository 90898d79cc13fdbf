//! Elements of 1 or 2 bytes on devices that cannot address them in buffers.
//!
//! Such a device stores each element in the low-order bytes of a 4-byte word. Transfers to the
//! device clear the upper bytes; kernels may leave anything in them; transfers to the host drop
//! them.

use magpie_types::TypeId;
use magpie_types::fixed;
use magpie_types::kernel::DeviceFeatures;

/// Bytes between elements in buffers of a device with these features.
///
/// Only scalar elements are widened: a value struct keeps its layout, and kernels that use one
/// with small members need the device feature.
pub(crate) fn device_stride(features: DeviceFeatures, elem: TypeId, elem_size: u32) -> u32 {
    let (scalar, needed) = match elem_size {
        1 => ([fixed::BOOL, fixed::I8, fixed::U8].contains(&elem), DeviceFeatures::STORAGE8),
        2 => {
            let scalars = [fixed::I16, fixed::U16, fixed::F16, fixed::BF16];
            (scalars.contains(&elem), DeviceFeatures::STORAGE16)
        }
        _ => (false, DeviceFeatures::default()),
    };
    if scalar && !features.contains(needed) { 4 } else { elem_size }
}

/// Spreads `src`, elements of `size` bytes, over the 4-byte words of `dst`.
pub(crate) fn widen(size: usize, src: &[u8], dst: &mut [u8]) {
    for (elem, word) in src.chunks_exact(size).zip(dst.chunks_exact_mut(4)) {
        word.fill(0);
        word[..size].copy_from_slice(elem);
    }
}

/// Collects the elements of `size` bytes from the 4-byte words of `src`.
pub(crate) fn narrow(size: usize, src: &[u8], dst: &mut [u8]) {
    for (word, elem) in src.chunks_exact(4).zip(dst.chunks_exact_mut(size)) {
        elem.copy_from_slice(&word[..size]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stride_depends_on_the_device_for_small_scalars_only() {
        let none = DeviceFeatures::default();
        let all = DeviceFeatures::STORAGE8 | DeviceFeatures::STORAGE16;
        for (elem, size) in [(fixed::BOOL, 1), (fixed::I8, 1), (fixed::F16, 2), (fixed::BF16, 2)] {
            assert_eq!(device_stride(none, elem, size), 4);
            assert_eq!(device_stride(all, elem, size), size);
        }
        assert_eq!(device_stride(DeviceFeatures::STORAGE8, fixed::U16, 2), 4);
        assert_eq!(device_stride(none, fixed::F32, 4), 4);
        assert_eq!(device_stride(none, fixed::F64, 8), 8);
        assert_eq!(device_stride(none, TypeId(1000), 1), 1);
        assert_eq!(device_stride(none, TypeId(1000), 2), 2);
    }

    #[test]
    fn widening_round_trips_and_ignores_upper_bytes() {
        let src: Vec<u8> = (0..64).collect();
        for size in [1, 2] {
            let mut wide = vec![0xFF; src.len() / size * 4];
            widen(size, &src, &mut wide);
            assert!(wide.chunks(4).all(|w| w[size..].iter().all(|&b| b == 0)));
            wide.chunks_mut(4).for_each(|w| w[size..].fill(0xAA));
            let mut back = vec![0; src.len()];
            narrow(size, &wide, &mut back);
            assert_eq!(back, src);
        }
    }
}
