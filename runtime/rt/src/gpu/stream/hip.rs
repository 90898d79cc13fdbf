//! What is HIP's own: the library's names and numbers of its interface.

use super::adapter::Attributes;

/// The library's names, the newest one first.
pub(super) const LIBRARIES: &[&str] = if cfg!(windows) {
    &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"]
} else {
    &["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"]
};

/// The functions that fill a structure of properties. Its layout has changed with the name.
pub(super) const PROPERTIES: &[&str] = &["hipGetDevicePropertiesR0600", "hipGetDeviceProperties"];

/// `hipDeviceAttribute*`, as they are since ROCm 5.
pub(super) const ATTRIBUTES: Attributes = Attributes {
    invocations: 56,
    block: [26, 27, 28],
    grid: [29, 30, 31],
    shared: 74,
    shared_opt_in: None,
    subgroup: 87,
    integrated: 16,
    pci_domain: 69,
    pci_bus: 67,
    pci_device: 68,
    capability: [23, 61],
    memory_pools: 88,
};

/// The name of the architecture (`gfx90a`) in a structure of properties, wherever it lies there.
pub(super) fn architecture(properties: &[u8]) -> Option<String> {
    let starts = properties.windows(3).enumerate().filter(|(_, w)| *w == b"gfx");
    starts
        .filter(|&(at, _)| at == 0 || properties[at - 1] == 0)
        .map(|(at, _)| {
            let rest = &properties[at..];
            let is_name = |c: &&u8| c.is_ascii_alphanumeric();
            rest.iter().take_while(is_name).map(|&c| char::from(c)).collect::<String>()
        })
        .find(|name| name.len() >= 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_found_in_any_layout() {
        let mut properties = vec![0u8; 1024];
        properties[..4].copy_from_slice(b"card");
        assert_eq!(architecture(&properties), None);
        properties[700..716].copy_from_slice(b"gfx90a:sramecc+:");
        assert_eq!(architecture(&properties).as_deref(), Some("gfx90a"));
        assert_eq!(architecture(b"gfx1100\0").as_deref(), Some("gfx1100"));
        assert_eq!(architecture(b"my gfx900 card\0"), None);
        assert_eq!(architecture(b""), None);
    }
}
