//! One placement: the cycle of (target, width) pairs over which a region's bytes go round robin.
//!
//! Offsets here are local to a region's window (`l = L - s`) and to a target's slice. Equal widths that are powers of two take
//! shifts instead of divisions: those are nearly all layouts.

use crate::format::{EQUAL, ORIGINAL_KIND, PLACEMENT, STRIPE, div_rem, record, u32_at, u64_at};

/// Cycles of up to so many stripes are scanned, longer ones searched.
const FEW: u32 = 16;

/// The sections that all region lists of a file share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub placements: &'a [u8],
    pub stripes: &'a [u8],
}

impl<'a> Places<'a> {
    #[inline]
    pub fn get(&self, index: u32) -> Cycle<'a> {
        let r = record::<PLACEMENT>(self.placements, index as usize);
        let first = u32_at(r, 8) as usize * STRIPE;
        Cycle {
            bytes: u64_at(r, 0),
            count: u32_at(r, 12),
            kind: u32_at(r, 16),
            flags: u32_at(r, 20),
            stripes: self.stripes.get(first..).unwrap_or(&[]),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle<'a> {
    pub bytes: u64,
    pub count: u32,
    kind: u32,
    flags: u32,
    stripes: &'a [u8],
}

/// One (target, width) of a cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StripeRef {
    pub width: u64,
    pub start: u64,
    pub target: u32,
}

/// Where a byte of a window lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Number of the stripe in the cycle.
    pub stripe: u32,
    pub target: u32,
    /// Offset in the target's slice.
    pub local: u64,
    /// Bytes from here to the end of this stripe.
    pub run: u64,
}

impl<'a> Cycle<'a> {
    #[inline]
    pub fn is_original(&self) -> bool {
        self.kind == ORIGINAL_KIND
    }

    #[inline]
    pub fn stripe(&self, i: u32) -> StripeRef {
        let r = record::<STRIPE>(self.stripes, i as usize);
        StripeRef { width: u64_at(r, 0), start: u64_at(r, 8), target: u32_at(r, 16) }
    }

    #[inline]
    fn width_shift(&self) -> u32 {
        self.flags >> 8 & 63
    }

    #[inline]
    fn cycle_shift(&self) -> u32 {
        self.flags >> 16 & 63
    }

    /// Cycle number and offset in the cycle.
    #[inline]
    pub fn split(&self, l: u64) -> (u64, u64) {
        let shift = self.cycle_shift();
        if shift != 0 { (l >> shift, l & ((1 << shift) - 1)) } else { div_rem(l, self.bytes) }
    }

    /// The stripe that holds offset `l` of the window.
    #[inline]
    pub fn locate(&self, l: u64) -> Slot {
        let shift = self.width_shift();
        if shift != 0 {
            let within = l & ((1 << shift) - 1);
            let number = l >> shift;
            let cycle_shift = self.cycle_shift();
            let (q, i) = if cycle_shift != 0 {
                (l >> cycle_shift, number & ((1 << (cycle_shift - shift)) - 1))
            } else {
                div_rem(number, u64::from(self.count))
            };
            let stripe = i as u32;
            let target = self.stripe(stripe).target;
            return Slot { stripe, target, local: (q << shift) + within, run: (1 << shift) - within };
        }
        let (q, r) = div_rem(l, self.bytes);
        let stripe = self.search(r);
        let s = self.stripe(stripe);
        let within = r - s.start;
        Slot { stripe, target: s.target, local: q * s.width + within, run: s.width - within }
    }

    /// The last stripe with `start <= r`.
    #[inline]
    fn search(&self, r: u64) -> u32 {
        if self.flags & EQUAL != 0 {
            return div_rem(r, self.stripe(0).width).0 as u32;
        }
        if self.count <= FEW {
            // Counting without a branch beats a search whose branches no processor can predict.
            return (1..self.count).map(|i| u32::from(self.stripe(i).start <= r)).sum();
        }
        let (mut lo, mut hi) = (0, self.count.saturating_sub(1));
        while lo < hi {
            let mid = lo + (hi - lo).div_ceil(2);
            if self.stripe(mid).start <= r {
                lo = mid;
            } else {
                hi = mid - 1;
            }
        }
        lo
    }

    /// Bytes of stripe `s` among the first `l` bytes of the window, where `(q, r)` is `split(l)`.
    #[inline]
    pub fn below(s: StripeRef, (q, r): (u64, u64)) -> u64 {
        q * s.width + r.saturating_sub(s.start).min(s.width)
    }

    /// Offset in the window of byte `local` of stripe `s`'s slice.
    #[inline]
    pub fn window_offset(&self, s: StripeRef, local: u64) -> u64 {
        let (q, r) = div_rem(local, s.width);
        q * self.bytes + s.start + r
    }

    /// The stripe on `target`: a target stands at most once in a cycle.
    pub fn find(&self, target: u32) -> Option<StripeRef> {
        (0..self.count).map(|i| self.stripe(i)).find(|s| s.target == target)
    }
}
