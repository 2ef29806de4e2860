//! CRC-32C (Castagnoli), byte by byte from a table: used on headers and names only, a few hundred bytes at a time.

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0u32; 256];
    let mut i = 0;
    while i < 256 {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0x82f6_3b78 } else { value >> 1 };
            bit += 1;
        }
        // A const context offers nothing but indexing; i < 256 is the array's length.
        #[allow(clippy::indexing_slicing)]
        {
            table[i] = value;
        }
        i += 1;
    }
    table
}

/// CRC-32C of the parts, one after the other.
pub(crate) fn crc32c(parts: &[&[u8]]) -> u32 {
    let mut crc = !0u32;
    for part in parts {
        for &byte in *part {
            // The index is masked to a byte, so `get` always answers.
            let entry = TABLE.get(((crc ^ u32::from(byte)) & 0xff) as usize).copied().unwrap_or(0);
            crc = crc >> 8 ^ entry;
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_castagnoli_polynomial() {
        // RFC 3720, appendix B.4 (32 zero bytes) and the catalogue's "123456789".
        assert_eq!(super::crc32c(&[b"1234", b"56789"]), 0xe306_9283);
        assert_eq!(super::crc32c(&[&[0; 32]]), 0x8a91_36aa);
    }
}
