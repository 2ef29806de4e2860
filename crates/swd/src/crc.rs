//! CRC-32C, which tells a whole record or track from a torn one.

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let (mut value, mut bit) = (index as u32, 0);
        while bit < 8 {
            value = if value & 1 == 1 { 0x82f6_3b78 ^ value >> 1 } else { value >> 1 };
            bit += 1;
        }
        #[allow(clippy::indexing_slicing)]
        {
            table[index] = value;
        }
        index += 1;
    }
    table
};

/// The checksum of `bytes`.
pub(crate) fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, &byte| TABLE.get((sum as u8 ^ byte) as usize).copied().unwrap_or(0) ^ sum >> 8)
}

/// Four bytes at `at`, little endian; 0 beyond the end.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|part| part.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// Eight bytes at `at`, little endian; 0 beyond the end.
pub(crate) fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_crc_32c() {
        assert_eq!(super::crc(b"123456789"), 0xe306_9283);
    }
}
