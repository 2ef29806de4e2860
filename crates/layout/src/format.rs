//! Where each field of the layout file lies, and how it is read without alignment, `unsafe` or panics.
//!
//! Reads outside a slice give 0: after [`crate::View::parse`] there are none, and before it zeros are refused like any
//! other wrong value.

pub(crate) const MAGIC: &[u8; 8] = b"SWLAYOUT";
/// The version that is written. In version 1 every object that a home region names was there from the start; since then one may lack whose first byte
/// ([`crate::View::first_bytes`]) the file does not reach.
pub(crate) const VERSION: u32 = 2;
pub(crate) const VERSION_AT: usize = 8;
pub(crate) const HEADER: usize = 128;
pub(crate) const REGION: usize = 32;
pub(crate) const PLACEMENT: usize = 24;
pub(crate) const STRIPE: usize = 24;
pub(crate) const REPLICA: usize = 64;
pub(crate) const DIM: usize = 16;
pub(crate) const INDEX: usize = 4;

pub(crate) const REPEATS: u32 = 1;
pub(crate) const ORIGINAL_KIND: u32 = 1;
pub(crate) const EQUAL: u32 = 1;
pub(crate) const HOME: u32 = 1;
/// Of a replica: writes of the file leave it stale where they are.
pub(crate) const INVALIDATED: u32 = 2;

/// Offset of the checksum, the one field that the checksum takes as zero.
pub(crate) const CRC_AT: usize = 12;
pub(crate) const ID_AT: usize = 96;
/// Whose layout it is ([`crate::Origin`]).
pub(crate) const ORIGIN_AT: usize = 112;

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk::<4>) {
        Some(c) => u32::from_le_bytes(*c),
        None => 0,
    }
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        Some(c) => u64::from_le_bytes(*c),
        None => 0,
    }
}

/// Record `i` of a section of records of `N` bytes.
#[inline]
pub(crate) fn record<const N: usize>(section: &[u8], i: usize) -> &[u8; N] {
    match section.get(i * N..).and_then(<[u8]>::first_chunk::<N>) {
        Some(r) => r,
        None => &[0; N],
    }
}

/// Quotient and remainder; 32-bit division where both fit, because that is three times as fast on many processors.
#[inline]
pub(crate) fn div_rem(a: u64, b: u64) -> (u64, u64) {
    if b == 0 {
        return (0, 0);
    }
    if (a | b) >> 32 == 0 {
        let (a, b) = (a as u32, b as u32);
        return (u64::from(a / b), u64::from(a % b));
    }
    (a / b, a % b)
}

/// The flags word of a placement (docs/formats.md): what makes the mapping free of divisions.
pub(crate) fn placement_flags(width_if_equal: Option<u64>, cycle: u64) -> u32 {
    let Some(width) = width_if_equal else {
        return 0;
    };
    if !width.is_power_of_two() {
        return EQUAL;
    }
    let cycle_shift = if cycle.is_power_of_two() { cycle.trailing_zeros() } else { 0 };
    EQUAL | width.trailing_zeros() << 8 | cycle_shift << 16
}
