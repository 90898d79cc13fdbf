//! What kernels print: the buffer of a launch, and the lines that come of it.

use super::buffer::{Buffer, Element};
use super::context::Context;
use super::device::MemoryHint;
use super::error::GpuResult;
use super::launch::LaunchSize;
use crate::io;
use magpie_types::fixed;
use magpie_types::print::{PrintSite, RECORD_HEAD, WORDS};
use std::sync::Arc;

/// An empty buffer for a launch of a kernel that prints.
pub(crate) fn new_buffer(context: &Arc<Context>) -> GpuResult<Buffer> {
    let word = Element { ty: fixed::U32, size: 4 };
    Buffer::new(context, word, u64::from(WORDS), 0, MemoryHint::Auto)
}

/// Prints what a launch that has ended put into its buffer.
///
/// # Errors
/// Those of the transfer.
pub(crate) fn print(
    kernel: &str,
    sites: &[PrintSite],
    buffer: &Buffer,
    size: LaunchSize,
) -> GpuResult<()> {
    let mut counter = [0; 4];
    buffer.read(0, &mut counter)?;
    let wanted = u32::from_ne_bytes(counter);
    let mut bytes = vec![0; wanted.min(WORDS - 1) as usize * 4];
    buffer.read(1, &mut bytes)?;
    let words: Vec<u32> =
        bytes.as_chunks().0.iter().map(|&word| u32::from_ne_bytes(word)).collect();
    lines(sites, &words, size).iter().for_each(|line| io::print_line(line));
    if wanted >= WORDS {
        let room = WORDS >> 18;
        io::eprint_line(&format!(
            "note: a launch of `{kernel}` printed more than its buffer of {room} MiB holds; the rest is lost"
        ));
    }
    Ok(())
}

/// The lines of the records in `words`, workgroup by workgroup, there invocation by invocation, and
/// those of one invocation in its order. A record that is cut off has none.
fn lines(sites: &[PrintSite], mut words: &[u32], size: LaunchSize) -> Vec<String> {
    let mut records = Vec::new();
    while let [number, x, y, z, rest @ ..] = words {
        let Some(site) = sites.get(*number as usize) else { break };
        let Some(values) = rest.get(..(site.record_words() - RECORD_HEAD) as usize) else { break };
        records.push((place([*x, *y, *z], size), site, values));
        words = &rest[values.len()..];
    }
    // Stable: records of an invocation stay in their order.
    records.sort_by_key(|&(place, ..)| place);
    records.iter().map(|(_, site, values)| site.line(values)).collect()
}

/// The linear numbers of the workgroup and of the invocation in it.
fn place(id: [u32; 3], size: LaunchSize) -> [u64; 2] {
    let linear = |at: [u32; 3], of: [u32; 3]| {
        let [x, y, z] = at.map(u64::from);
        let [width, height, _] = of.map(u64::from);
        (z.wrapping_mul(height).wrapping_add(y)).wrapping_mul(width).wrapping_add(x)
    };
    let each = |f: fn(u32, u32) -> u32| [0, 1, 2].map(|d| f(id[d], size.block[d]));
    [linear(each(|n, by| n / by), size.grid), linear(each(|n, by| n % by), size.block)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_types::PrimType;
    use magpie_types::print::PrintPart;

    const SIZE: LaunchSize = LaunchSize { grid: [2, 2, 1], block: [2, 1, 2] };

    fn sites() -> [PrintSite; 2] {
        let text = PrintPart::Text("at".into());
        let value = PrintPart::Value(PrimType::I32);
        [PrintSite { parts: vec![text, value] }, PrintSite { parts: Vec::new() }]
    }

    #[test]
    fn lines_come_in_the_order_of_invocations() {
        let words = [
            [0, 3, 1, 0, 4], // The last workgroup.
            [0, 0, 0, 1, 2],
            [0, 1, 0, 0, 1],
            [0, 2, 0, 0, 3],
            [0, 0, 0, 1, u32::MAX],
        ];
        let lines = lines(&sites(), words.as_flattened(), SIZE);
        assert_eq!(lines, ["at 1", "at 2", "at -1", "at 3", "at 4"]);
    }

    #[test]
    fn what_is_cut_off_or_broken_is_left_out() {
        let sites = sites();
        let whole = [1, 0, 0, 0];
        assert_eq!(lines(&sites, &whole, SIZE), [""]);
        for rest in [&[0, 0, 0, 0][..], &[1, 0, 0], &[2, 0, 0, 0, 0]] {
            assert_eq!(lines(&sites, &[&whole, rest].concat(), SIZE), [""]);
        }
        assert!(lines(&[], &whole, SIZE).is_empty());
    }
}
