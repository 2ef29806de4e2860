//! CRC-32C (Castagnoli), the checksum of every file of the store.
//!
//! Written here, eight table look-ups per eight bytes, because this crate has no dependencies and no run-time feature detection.
//! Source: RFC 3720, appendix B.4 (the check values in the tests are from there).

const POLY: u32 = 0x82f6_3b78;

// Runs at compile time: a wrong index would not build.
#[allow(clippy::indexing_slicing)]
const fn table() -> [[u32; 256]; 8] {
    let mut t = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut c = i as u32;
        let mut bit = 0;
        while bit < 8 {
            c = if c & 1 == 1 { (c >> 1) ^ POLY } else { c >> 1 };
            bit += 1;
        }
        t[0][i] = c;
        i += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut i = 0;
        while i < 256 {
            let prev = t[k - 1][i];
            t[k][i] = (prev >> 8) ^ t[0][(prev & 255) as usize];
            i += 1;
        }
        k += 1;
    }
    t
}

static TABLE: [[u32; 256]; 8] = table();

#[inline]
fn look(table: &[u32; 256], byte: u8) -> u32 {
    table.get(usize::from(byte)).copied().unwrap_or(0)
}

/// Continues a CRC: `state` is the raw register (all ones at the start, complemented at the end).
pub(crate) fn update(mut state: u32, bytes: &[u8]) -> u32 {
    let [t0, t1, t2, t3, t4, t5, t6, t7] = &TABLE;
    let mut rest = bytes;
    while let Some(([a, b, c, d, e, f, g, h], tail)) = rest.split_first_chunk::<8>() {
        let [s0, s1, s2, s3] = state.to_le_bytes();
        state = look(t7, a ^ s0) ^ look(t6, b ^ s1) ^ look(t5, c ^ s2) ^ look(t4, d ^ s3) ^ look(t3, *e) ^ look(t2, *f) ^ look(t1, *g) ^ look(t0, *h);
        rest = tail;
    }
    for byte in rest {
        let [low, ..] = state.to_le_bytes();
        state = (state >> 8) ^ look(t0, low ^ byte);
    }
    state
}

/// CRC-32C of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    !update(!0, bytes)
}

/// CRC-32C of `bytes` with the four at `at` taken as zero: the checksum of a file that holds it at `at`.
#[must_use]
pub fn crc32c_without(bytes: &[u8], at: usize) -> u32 {
    let before = bytes.get(..at).unwrap_or(bytes);
    let after = bytes.get(at.saturating_add(4)..).unwrap_or(&[]);
    !update(update(update(!0, before), &[0; 4]), after)
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[test]
    fn castagnoli_check_values_of_rfc_3720_b_4() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }
}
