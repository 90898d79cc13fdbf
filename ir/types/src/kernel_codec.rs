//! The bytes of a [`KernelBlob`], for registration through the C ABI and for caches.
//!
//! A container is a header (magic, version, back end, length, FNV-1a hash of the payload) and a
//! payload of fixed-width little-endian fields in the order of the types in [`crate::kernel`];
//! lists are preceded by their length. Reading checks everything and never trusts a length: a
//! truncated or corrupt container is an error, whatever its bytes.

use crate::kernel::{
    BlobCode, BufferParam, DeviceFeatures, GpuBackend, HiddenLength, KernelBlob, KernelLayout,
    ParamLayout, PreOp, Precondition, ScalarTransport,
};
use crate::print::{PrintPart, PrintSite};
use crate::{PrimType, TypeId, fnv1a};
use std::fmt;

/// The first bytes of every container.
pub const MAGIC: [u8; 4] = *b"MPGK";

/// The version this code writes and reads. Any change of the format increments it.
pub const VERSION: u16 = 2;

/// Magic, version, back end, a reserved byte, payload length, payload hash.
const HEADER: usize = 4 + 2 + 1 + 1 + 8 + 8;

/// Why a container cannot be written or read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodecError {
    /// The code is an address of this process.
    HostCode,
    /// The bytes do not start with [`MAGIC`].
    NotAContainer,
    /// The container has another version.
    Version(u16),
    /// The number of an unknown back end.
    Backend(u8),
    /// The bytes end early, or do not end where they should.
    Length {
        /// Bytes that the container says it has.
        expected: u64,
        /// Bytes that are there.
        actual: u64,
    },
    /// The payload differs from what was written.
    Corrupt,
    /// The payload is intact but says something impossible.
    Malformed(&'static str),
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodecError::HostCode => f.write_str("code in the memory of a process has no bytes"),
            CodecError::NotAContainer => f.write_str("not a kernel container"),
            CodecError::Version(v) => {
                write!(f, "kernel container of version {v}; this runtime reads {VERSION}")
            }
            CodecError::Backend(n) => write!(f, "kernel container for unknown back end {n}"),
            CodecError::Length { expected, actual } => {
                write!(f, "kernel container of {expected} bytes has {actual}")
            }
            CodecError::Corrupt => f.write_str("kernel container is corrupt"),
            CodecError::Malformed(what) => write!(f, "kernel container with malformed {what}"),
        }
    }
}

impl std::error::Error for CodecError {}

/// The container of a blob.
///
/// # Errors
/// [`CodecError::HostCode`] for code in memory.
pub fn encode(blob: &KernelBlob) -> Result<Vec<u8>, CodecError> {
    let mut out = vec![0; HEADER];
    write_layout(&mut out, &blob.layout);
    write_code(&mut out, &blob.code)?;
    out.push(u8::from(blob.unchecked.is_some()));
    if let Some(code) = &blob.unchecked {
        write_code(&mut out, code)?;
    }
    let payload = &out[HEADER..];
    let (length, hash) = (payload.len() as u64, fnv1a(payload));
    out[..4].copy_from_slice(&MAGIC);
    out[4..6].copy_from_slice(&VERSION.to_le_bytes());
    out[6] = blob.backend as u8;
    out[8..16].copy_from_slice(&length.to_le_bytes());
    out[16..24].copy_from_slice(&hash.to_le_bytes());
    Ok(out)
}

/// The bytes of a layout alone, for code that lives in memory.
pub fn encode_layout(layout: &KernelLayout) -> Vec<u8> {
    let mut out = Vec::new();
    write_layout(&mut out, layout);
    out
}

/// Reads a container.
///
/// # Errors
/// What is wrong with the bytes.
pub fn decode(bytes: &[u8]) -> Result<KernelBlob, CodecError> {
    let length_error = |expected: u64| CodecError::Length { expected, actual: bytes.len() as u64 };
    if !bytes.starts_with(&MAGIC) {
        return Err(CodecError::NotAContainer);
    }
    let Some((header, payload)) = bytes.split_at_checked(HEADER) else {
        return Err(length_error(HEADER as u64));
    };
    let mut header = Reader { bytes: &header[MAGIC.len()..] };
    let version = header.u16()?;
    if version != VERSION {
        return Err(CodecError::Version(version));
    }
    let number = header.u8()?;
    let backend = GpuBackend::from_u8(number).ok_or(CodecError::Backend(number))?;
    header.u8()?;
    let (length, hash) = (header.u64()?, header.u64()?);
    if payload.len() as u64 != length {
        return Err(length_error(length.saturating_add(HEADER as u64)));
    }
    if fnv1a(payload) != hash {
        return Err(CodecError::Corrupt);
    }
    let mut reader = Reader { bytes: payload };
    let layout = reader.layout()?;
    let code = BlobCode::Bytes(reader.blob()?);
    let unchecked = match reader.bool()? {
        true => Some(BlobCode::Bytes(reader.blob()?)),
        false => None,
    };
    reader.end()?;
    Ok(KernelBlob { backend, layout, code, unchecked })
}

/// Reads what [`encode_layout`] wrote.
///
/// # Errors
/// What is wrong with the bytes.
pub fn decode_layout(bytes: &[u8]) -> Result<KernelLayout, CodecError> {
    let mut reader = Reader { bytes };
    let layout = reader.layout()?;
    reader.end()?;
    Ok(layout)
}

fn write_u32s(out: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|w| out.extend_from_slice(&w.to_le_bytes()));
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn write_code(out: &mut Vec<u8>, code: &BlobCode) -> Result<(), CodecError> {
    match code {
        BlobCode::Bytes(bytes) => write_bytes(out, bytes),
        BlobCode::Host(_) => return Err(CodecError::HostCode),
    }
    Ok(())
}

fn write_layout(out: &mut Vec<u8>, layout: &KernelLayout) {
    write_bytes(out, layout.entry.as_bytes());
    write_u32s(out, &[layout.params.len() as u32]);
    for param in &layout.params {
        match param {
            ParamLayout::Buffer(b) => {
                out.push(0);
                let BufferParam { index, binding, elem, host_stride, device_stride, writes } = *b;
                write_u32s(out, &[index, binding, elem.0, host_stride, device_stride]);
                out.push(u8::from(writes));
            }
            ParamLayout::Scalar { offset, size, ty } => {
                out.push(1);
                write_u32s(out, &[*offset, *size, ty.0]);
            }
        }
    }
    write_u32s(out, &[layout.scalar_size, layout.hidden.len() as u32]);
    for hidden in &layout.hidden {
        write_u32s(out, &[hidden.buffer, hidden.offset, hidden.size]);
    }
    write_u32s(out, &[layout.block_size]);
    let (tag, binding) = match layout.transport {
        ScalarTransport::None => (0, 0),
        ScalarTransport::PushConstants => (1, 0),
        ScalarTransport::Uniform { binding } => (2, binding),
        ScalarTransport::Arguments => (3, 0),
    };
    out.push(tag);
    write_u32s(out, &[binding]);
    write_u32s(out, &layout.workgroup);
    out.push(u8::from(layout.fixed_workgroup));
    write_u32s(out, &[layout.shared_bytes, layout.features.0]);
    write_u32s(out, &[layout.preconditions.len() as u32]);
    for precondition in &layout.preconditions {
        write_u32s(out, &[precondition.buffer, precondition.bound.len() as u32]);
        for op in &precondition.bound {
            write_op(out, op);
        }
    }
    write_u32s(out, &[layout.prints.len() as u32]);
    for site in &layout.prints {
        write_u32s(out, &[site.parts.len() as u32]);
        for part in &site.parts {
            match part {
                PrintPart::Text(text) => {
                    out.push(0);
                    write_bytes(out, text.as_bytes());
                }
                PrintPart::Value(prim) => {
                    out.push(1);
                    write_u32s(out, &[prim.id().0]);
                }
            }
        }
    }
}

fn write_op(out: &mut Vec<u8>, op: &PreOp) {
    match *op {
        PreOp::Const(value) => {
            out.push(0);
            out.extend_from_slice(&value.to_le_bytes());
        }
        PreOp::Scalar { offset, size } => {
            out.push(1);
            write_u32s(out, &[offset, size]);
        }
        PreOp::Extent(dim) => out.extend_from_slice(&[2, dim]),
        PreOp::Grid(dim) => out.extend_from_slice(&[3, dim]),
        PreOp::Block(dim) => out.extend_from_slice(&[4, dim]),
        PreOp::Add => out.push(5),
        PreOp::Mul => out.push(6),
        PreOp::Min => out.push(7),
        PreOp::Max => out.push(8),
        PreOp::Dec => out.push(9),
        PreOp::Sub => out.push(10),
        PreOp::Length(buffer) => {
            out.push(11);
            out.extend_from_slice(&buffer.to_le_bytes());
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], CodecError> {
        let taken = usize::try_from(count).ok().and_then(|n| self.bytes.split_at_checked(n));
        let Some((taken, rest)) = taken else { return Err(CodecError::Malformed("length")) };
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        self.take(N as u64)?.try_into().map_err(|_| CodecError::Malformed("length"))
    }

    fn u8(&mut self) -> Result<u8, CodecError> {
        Ok(self.array::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, CodecError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, CodecError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, CodecError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn bool(&mut self) -> Result<bool, CodecError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(CodecError::Malformed("truth value")),
        }
    }

    fn blob(&mut self) -> Result<Vec<u8>, CodecError> {
        let length = self.u64()?;
        Ok(self.take(length)?.to_vec())
    }

    /// A list of elements that take at least one byte each, so a wrong length ends at the end of
    /// the bytes.
    fn list<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, CodecError>,
    ) -> Result<Vec<T>, CodecError> {
        let count = self.u32()? as usize;
        let mut list = Vec::with_capacity(count.min(self.bytes.len()));
        for _ in 0..count {
            list.push(element(self)?);
        }
        Ok(list)
    }

    fn end(&self) -> Result<(), CodecError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(CodecError::Malformed("end")) }
    }

    fn layout(&mut self) -> Result<KernelLayout, CodecError> {
        let entry = String::from_utf8(self.blob()?);
        let layout = KernelLayout {
            entry: entry.map_err(|_| CodecError::Malformed("entry point name"))?,
            params: self.list(Reader::param)?,
            scalar_size: self.u32()?,
            hidden: self.list(|r| {
                Ok(HiddenLength { buffer: r.u32()?, offset: r.u32()?, size: r.u32()? })
            })?,
            block_size: self.u32()?,
            transport: self.transport()?,
            workgroup: [self.u32()?, self.u32()?, self.u32()?],
            fixed_workgroup: self.bool()?,
            shared_bytes: self.u32()?,
            features: DeviceFeatures(self.u32()?),
            preconditions: self
                .list(|r| Ok(Precondition { buffer: r.u32()?, bound: r.list(Reader::op)? }))?,
            prints: self.list(|r| Ok(PrintSite { parts: r.list(Reader::print_part)? }))?,
        };
        Ok(layout)
    }

    fn param(&mut self) -> Result<ParamLayout, CodecError> {
        match self.u8()? {
            0 => Ok(ParamLayout::Buffer(BufferParam {
                index: self.u32()?,
                binding: self.u32()?,
                elem: TypeId(self.u32()?),
                host_stride: self.u32()?,
                device_stride: self.u32()?,
                writes: self.bool()?,
            })),
            1 => Ok(ParamLayout::Scalar {
                offset: self.u32()?,
                size: self.u32()?,
                ty: TypeId(self.u32()?),
            }),
            _ => Err(CodecError::Malformed("parameter")),
        }
    }

    fn transport(&mut self) -> Result<ScalarTransport, CodecError> {
        match (self.u8()?, self.u32()?) {
            (0, _) => Ok(ScalarTransport::None),
            (1, _) => Ok(ScalarTransport::PushConstants),
            (2, binding) => Ok(ScalarTransport::Uniform { binding }),
            (3, _) => Ok(ScalarTransport::Arguments),
            _ => Err(CodecError::Malformed("scalar transport")),
        }
    }

    fn print_part(&mut self) -> Result<PrintPart, CodecError> {
        let malformed = CodecError::Malformed("printed part");
        match self.u8()? {
            0 => match String::from_utf8(self.blob()?) {
                Ok(text) => Ok(PrintPart::Text(text)),
                Err(_) => Err(malformed),
            },
            1 => PrimType::from_id(TypeId(self.u32()?)).map(PrintPart::Value).ok_or(malformed),
            _ => Err(malformed),
        }
    }

    fn op(&mut self) -> Result<PreOp, CodecError> {
        Ok(match self.u8()? {
            0 => PreOp::Const(self.u64()?),
            1 => PreOp::Scalar { offset: self.u32()?, size: self.u32()? },
            2 => PreOp::Extent(self.u8()?),
            3 => PreOp::Grid(self.u8()?),
            4 => PreOp::Block(self.u8()?),
            5 => PreOp::Add,
            6 => PreOp::Mul,
            7 => PreOp::Min,
            8 => PreOp::Max,
            9 => PreOp::Dec,
            10 => PreOp::Sub,
            11 => PreOp::Length(self.u32()?),
            _ => return Err(CodecError::Malformed("precondition")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A layout of zeros and empty lists.
    const EMPTY_LAYOUT: [u8; 58] = [0; 58];

    fn op() -> impl Strategy<Value = PreOp> {
        prop_oneof![
            any::<u64>().prop_map(PreOp::Const),
            any::<(u32, u32)>().prop_map(|(offset, size)| PreOp::Scalar { offset, size }),
            any::<u8>().prop_map(PreOp::Extent),
            any::<u8>().prop_map(PreOp::Grid),
            any::<u8>().prop_map(PreOp::Block),
            any::<u32>().prop_map(PreOp::Length),
            Just(PreOp::Add),
            Just(PreOp::Sub),
            Just(PreOp::Mul),
            Just(PreOp::Min),
            Just(PreOp::Max),
            Just(PreOp::Dec),
        ]
    }

    fn print_part() -> impl Strategy<Value = PrintPart> {
        prop_oneof![
            any::<String>().prop_map(PrintPart::Text),
            prop::sample::select(vec![PrimType::I8, PrimType::F16, PrimType::U64])
                .prop_map(PrintPart::Value),
        ]
    }

    fn param() -> impl Strategy<Value = ParamLayout> {
        let buffer = any::<([u32; 5], bool)>().prop_map(|(w, writes)| {
            let [index, binding, elem, host_stride, device_stride] = w;
            let elem = TypeId(elem);
            let buffer = BufferParam { index, binding, elem, host_stride, device_stride, writes };
            ParamLayout::Buffer(buffer)
        });
        let scalar = any::<[u32; 3]>().prop_map(|[offset, size, ty]| ParamLayout::Scalar {
            offset,
            size,
            ty: TypeId(ty),
        });
        prop_oneof![buffer, scalar]
    }

    prop_compose! {
        fn layout()(
            entry: String,
            params in vec(param(), 0..6),
            hidden in vec(any::<[u32; 3]>(), 0..4),
            transport in prop_oneof![
                Just(ScalarTransport::None),
                Just(ScalarTransport::PushConstants),
                any::<u32>().prop_map(|binding| ScalarTransport::Uniform { binding }),
                Just(ScalarTransport::Arguments),
            ],
            words: [u32; 7],
            fixed_workgroup: bool,
            preconditions in vec((any::<u32>(), vec(op(), 0..6)), 0..4),
            prints in vec(vec(print_part(), 0..4), 0..3),
        ) -> KernelLayout {
            let [scalar_size, block_size, x, y, z, shared_bytes, features] = words;
            let hidden_length = |[buffer, offset, size]: [u32; 3]| HiddenLength { buffer, offset, size };
            let precondition = |(buffer, bound): (u32, Vec<PreOp>)| Precondition { bound, buffer };
            KernelLayout {
                entry,
                params,
                scalar_size,
                hidden: hidden.into_iter().map(hidden_length).collect(),
                block_size,
                transport,
                workgroup: [x, y, z],
                fixed_workgroup,
                shared_bytes,
                features: DeviceFeatures(features),
                preconditions: preconditions.into_iter().map(precondition).collect(),
                prints: prints.into_iter().map(|parts| PrintSite { parts }).collect(),
            }
        }
    }

    prop_compose! {
        fn blob()(
            backend in proptest::sample::select(GpuBackend::ALL.to_vec()),
            layout in layout(),
            code: Vec<u8>,
            unchecked: Option<Vec<u8>>,
        ) -> KernelBlob {
            let unchecked = unchecked.map(BlobCode::Bytes);
            KernelBlob { backend, layout, code: BlobCode::Bytes(code), unchecked }
        }
    }

    proptest! {
        #[test]
        fn blobs_round_trip(blob in blob()) {
            prop_assert_eq!(decode(&encode(&blob).unwrap()), Ok(blob));
        }

        #[test]
        fn layouts_round_trip(layout in layout()) {
            prop_assert_eq!(decode_layout(&encode_layout(&layout)), Ok(layout));
        }

        #[test]
        fn every_truncation_and_extension_is_an_error(blob in blob(), cut: prop::sample::Index) {
            let mut bytes = encode(&blob).unwrap();
            prop_assert!(decode(&bytes[..cut.index(bytes.len())]).is_err());
            bytes.push(0);
            prop_assert!(decode(&bytes).is_err());
        }

        #[test]
        fn every_changed_payload_byte_is_found(blob in blob(), at: prop::sample::Index, flip in 1..=255u8) {
            let mut bytes = encode(&blob).unwrap();
            let at = HEADER + at.index(bytes.len() - HEADER);
            bytes[at] ^= flip;
            prop_assert_eq!(decode(&bytes), Err(CodecError::Corrupt));
        }

        #[test]
        fn any_payload_with_a_right_header_gives_an_answer(payload: Vec<u8>) {
            let mut bytes = MAGIC.to_vec();
            bytes.extend_from_slice(&VERSION.to_le_bytes());
            bytes.extend_from_slice(&[GpuBackend::Spv as u8, 0]);
            bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
            bytes.extend_from_slice(&fnv1a(&payload).to_le_bytes());
            bytes.extend_from_slice(&payload);
            let _ = decode(&bytes);
            let _ = decode_layout(&payload);
        }
    }

    #[test]
    fn wrong_headers_are_told_apart() {
        let blob = KernelBlob {
            backend: GpuBackend::Spv,
            layout: decode_layout(&EMPTY_LAYOUT).unwrap(),
            code: BlobCode::Bytes(vec![1, 2, 3]),
            unchecked: None,
        };
        let good = encode(&blob).unwrap();
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            decode(&bytes).unwrap_err()
        };
        assert_eq!(with(0, b'X'), CodecError::NotAContainer);
        assert_eq!(with(4, 9), CodecError::Version(9));
        assert_eq!(with(6, 99), CodecError::Backend(99));
        assert!(matches!(with(8, 0xFF), CodecError::Length { .. }));
        assert_eq!(with(16, good[16] ^ 1), CodecError::Corrupt);
        assert_eq!(decode(&[]), Err(CodecError::NotAContainer));
    }

    #[test]
    fn host_code_has_no_bytes() {
        let kernel = crate::kernel::HostKernel { entry: 1, frame_bytes: 0 };
        let blob = KernelBlob {
            backend: GpuBackend::Cpu,
            layout: decode_layout(&EMPTY_LAYOUT).unwrap(),
            code: BlobCode::Host(kernel),
            unchecked: None,
        };
        assert_eq!(encode(&blob), Err(CodecError::HostCode));
    }
}
