//! Turning a template into a file's layout in place: the preloaded library does this at every create, without an allocator.

use crate::LayoutError;
use crate::format::{CRC_AT, HEADER, ID_AT, MAGIC, VERSION, VERSION_AT, u32_at, u64_at};

/// CRC-32C of a layout file: its own field counts as zero.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    stripewise_checksum::crc32c_without(bytes, CRC_AT)
}

/// Checks what tells a layout file from anything else: length, magic, version, checksum.
pub(crate) fn check_envelope(bytes: &[u8]) -> Result<(), LayoutError> {
    if bytes.len() < HEADER {
        return Err(LayoutError::TooShort { bytes: bytes.len() as u64 });
    }
    if !bytes.starts_with(MAGIC) {
        return Err(LayoutError::Magic);
    }
    let version = u32_at(bytes, VERSION_AT);
    if version > VERSION {
        return Err(LayoutError::Newer { version });
    }
    if version == 0 {
        return Err(LayoutError::Header { reason: "version must be 1 or 2; the file is damaged, run `stripewise store fsck`" });
    }
    let (stated, actual) = (u64_at(bytes, 16), bytes.len() as u64);
    if stated != actual {
        return Err(LayoutError::Length { stated, actual });
    }
    let (stored, computed) = (u32_at(bytes, CRC_AT), checksum(bytes));
    if stored != computed {
        return Err(LayoutError::Checksum { stored, computed });
    }
    Ok(())
}

/// Writes `file_id` and the present version into an encoded layout and renews its checksum. Nothing else changes, nothing is allocated.
///
/// # Errors
/// When `bytes` are no intact layout file: a damaged template must not get a good checksum. The bytes are then unchanged.
pub fn stamp(bytes: &mut [u8], file_id: [u64; 2]) -> Result<(), LayoutError> {
    check_envelope(bytes)?;
    let [low, high] = file_id;
    put(bytes, VERSION_AT, &VERSION.to_le_bytes());
    put(bytes, ID_AT, &low.to_le_bytes());
    put(bytes, ID_AT + 8, &high.to_le_bytes());
    let crc = checksum(bytes);
    put(bytes, CRC_AT, &crc.to_le_bytes());
    Ok(())
}

/// Copies `field` to `at`; nothing when it does not fit.
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}
