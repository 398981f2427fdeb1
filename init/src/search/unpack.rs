//! Unpacks compressed or encoded text at any offset.

use std::io::Read;

/// Minimum number of base64 characters in a row, not counting line ends, that are worth decoding.
const RUN: usize = 64;

/// Whether packed text may begin with this byte.
pub(super) fn may_begin(byte: u8) -> bool {
    matches!(byte, 0x1f | 0x78 | 0x28 | 0xfd | b'B' | b'P')
}

/// Whether `bytes` begin like packed text, judging by the first few of them.
pub(super) fn begins(bytes: &[u8]) -> bool {
    match bytes {
        // In a zlib header, the first two bytes form a multiple of 31.
        [0x78, flags, ..] => (0x7800 + u16::from(*flags)).is_multiple_of(31) && flags & 0x20 == 0,
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] => true,
        _ => [&[0x1f, 0x8b, 8][..], &[0x28, 0xb5, 0x2f, 0xfd], b"\xfd7zXZ\0", b"PK\x03\x04"]
            .into_iter()
            .any(|magic| bytes.starts_with(magic)),
    }
}

/// Unpacks the packed text with which `bytes` begin, up to the first error and to at most `most` bytes.
pub(super) fn unpacked(bytes: &[u8], most: u64) -> Vec<u8> {
    match bytes {
        [0x1f, ..] => all(flate2::read::GzDecoder::new(bytes), most),
        [0x78, ..] => all(flate2::read::ZlibDecoder::new(bytes), most),
        [0x28, ..] => ruzstd::decoding::StreamingDecoder::new(bytes).map_or_else(|_| Vec::new(), |it| all(it, most)),
        [0xfd, ..] => all(lzma_rust2::XzReader::new(bytes, true), most),
        [b'B', ..] => all(bzip2::read::BzDecoder::new(bytes), most),
        _ => member(bytes, most).unwrap_or_default(),
    }
}

/// Unpacks a member of a zip archive. `bytes` begins with the member's own header.
fn member(bytes: &[u8], most: u64) -> Option<Vec<u8>> {
    let number = |at: usize| Some(usize::from(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])));
    let start = 30 + number(26)? + number(28)?;
    let data = bytes.get(start..)?;
    match number(8)? {
        8 => Some(all(flate2::read::DeflateDecoder::new(data), most)),
        12 => Some(all(bzip2::read::BzDecoder::new(data), most)),
        // Members in other formats begin with magic bytes, by which [`begins`] finds them.
        _ => None,
    }
}

/// Reads until the end or the first error.
fn all(mut from: impl Read, most: u64) -> Vec<u8> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    while (bytes.len() as u64) < most {
        match from.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    bytes
}

/// Decodes runs of base64 characters. Tries each of the four offsets at which a group of four characters may begin.
pub(super) fn base64(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut run: Vec<u8> = Vec::new();
    let mut is_new_line = false;
    for byte in bytes.iter().copied().chain([0]) {
        match value(byte) {
            Some(value) => {
                run.push(value);
                is_new_line = false;
            }
            None if (byte == b'\n' || byte == b'\r') && !is_new_line && !run.is_empty() => is_new_line = byte == b'\n',
            None => {
                if run.len() >= RUN {
                    found.extend((0..4).map(|from| decode(&run[from..])));
                }
                run.clear();
                is_new_line = false;
            }
        }
    }
    found
}

fn value(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

fn decode(values: &[u8]) -> Vec<u8> {
    let groups = values.chunks(4).filter(|group| group.len() > 1);
    groups
        .flat_map(|group| {
            let bits = (0..4).fold(0_u32, |bits, at| bits << 6 | u32::from(group.get(at).copied().unwrap_or(0)));
            bits.to_be_bytes()[1..group.len()].to_vec()
        })
        .collect()
}
