//! How much host memory transfers go through.
//!
//! Drivers pin this memory, which takes time for each of its pages: a program that moves a few
//! numbers should not wait for memory that makes large transfers fast.

/// Size of the memory for the way to the device while only small pieces go there.
const SMALL_UPLOAD: u64 = 1 << 20;

/// Its size from the first larger piece on.
const UPLOAD: u64 = 32 << 20;

/// Bytes of a transfer to the device that are copied at a time: while the device fetches some, the
/// host copies the next ones.
pub(super) const UPLOAD_PIECE: usize = 4 << 20;

/// Size of each of the two halves of the memory for the way back while transfers are small.
const SMALL_READBACK_HALF: u64 = 256 << 10;

/// Its size from the first larger transfer on.
const READBACK_HALF: u64 = 8 << 20;

/// The memory for the way to the device that a piece wants: several pieces of its size fit in.
pub(super) fn upload_size(piece: usize) -> u64 {
    if piece as u64 <= SMALL_UPLOAD / 8 { SMALL_UPLOAD } else { UPLOAD }
}

/// The half of the memory for the way back that a transfer wants.
pub(super) fn readback_half(bytes: usize) -> u64 {
    if bytes as u64 <= SMALL_READBACK_HALF { SMALL_READBACK_HALF } else { READBACK_HALF }
}
