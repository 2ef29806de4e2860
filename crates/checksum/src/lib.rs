//! CRC-32C (Castagnoli; RFC 3720, appendix B.4), the checksum of everything that the project writes: layouts, journals, logs, sums, tracks of shingled disks.
//! From tables, without asking the processor what it can: the preloaded library has no place to keep the answer.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::indexing_slicing))]

use crc::{CRC_32_ISCSI, Crc, Table};

static CASTAGNOLI: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// CRC-32C of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    CASTAGNOLI.checksum(bytes)
}

/// CRC-32C of the parts, one after the other.
#[must_use]
pub fn crc32c_of(parts: &[&[u8]]) -> u32 {
    let mut digest = CASTAGNOLI.digest();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}

/// CRC-32C of `bytes` with the four at `at` taken as zero: the checksum of a file that holds it at `at`.
#[must_use]
pub fn crc32c_without(bytes: &[u8], at: usize) -> u32 {
    let before = bytes.get(..at).unwrap_or(bytes);
    let after = bytes.get(at.saturating_add(4)..).unwrap_or(&[]);
    crc32c_of(&[before, &[0; 4], after])
}

#[cfg(test)]
mod tests {
    use super::{crc32c, crc32c_of, crc32c_without};

    #[test]
    fn castagnoli_check_values_of_rfc_3720_b_4() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn parts_are_one_after_the_other_and_a_place_may_be_left_out() {
        assert_eq!(crc32c_of(&[b"1234", b"", b"56789"]), 0xe306_9283);
        let mut bytes = *b"0123456789";
        let sum = crc32c_without(&bytes, 3);
        bytes[3..7].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(crc32c_without(&bytes, 3), sum);
        assert_eq!(sum, crc32c(b"012\0\0\0\x00789"));
    }
}
