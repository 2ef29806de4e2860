//! Requests, regions and stripes: how they contend (section 3.5.2), and the stripe size that goes with both (sections 3.5.2 and 3.7).

/// How the requests of one I/O cycle lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Those of all processes interleave.
    Strided,
    /// Each process has a region of its own, of many requests.
    Contiguous,
}

/// Sizes in bytes, from 1 on: of a request (RS), of what one process has in one piece (RE; of strided requests RS), of a stripe (SS).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Regions {
    pub request: u64,
    pub region: u64,
    pub stripe: u64,
}

/// How processes meet on stripes, from the best to the worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Contention {
    /// RS < SS < RE: a stripe is one process's.
    Least,
    /// A request is a stripe, where requests are aligned to stripes.
    Aligned,
    /// Regions are larger than stripes, and requests no smaller: a request goes to several servers.
    Moderate,
    /// Strided requests above the stripe: at their ends two processes meet.
    AtEnds,
    /// Several processes on every stripe.
    Most,
}

impl Regions {
    /// How processes meet.
    pub fn contention(self, pattern: Pattern, is_aligned: bool) -> Contention {
        let Regions { request, region, stripe } = self;
        match pattern {
            Pattern::Strided if request < stripe => Contention::Most,
            Pattern::Strided if request.is_multiple_of(stripe) && is_aligned => Contention::Aligned,
            Pattern::Strided => Contention::AtEnds,
            Pattern::Contiguous if region <= stripe => Contention::Most,
            Pattern::Contiguous if request < stripe => Contention::Least,
            Pattern::Contiguous => Contention::Moderate,
        }
    }
}

/// What a file is for, as its user knows beforehand (section 3.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    Write,
    Read,
}

/// The largest stripe that is advised, where a region is larger still: a choice of ours.
pub const STRIPE_BYTES_MAX: u64 = 64 << 20;
/// Stripes are whole pages.
const STEP: u64 = 4096;

impl Intent {
    /// The stripe size, in bytes, with RS < SS < RE; none where there is no power of two between them. A file that is read has the largest, one that is
    /// written the nearest to the default `stripe` (section 3.7: reads gain by larger stripes, writes by more of them).
    pub fn stripe_bytes(self, sizes: Regions) -> Option<u64> {
        let Regions { request, region, stripe } = sizes;
        let least = (request + 1).checked_next_power_of_two()?.max(STEP);
        let most = (region.saturating_sub(1)).checked_ilog2().map(|bits| 1u64 << bits)?.min(STRIPE_BYTES_MAX.max(least));
        if least > most || least >= region {
            return None;
        }
        Some(match self {
            Intent::Read => most,
            Intent::Write if request < stripe && stripe < region => stripe,
            Intent::Write => {
                if stripe <= request {
                    least
                } else {
                    most
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn of(request: u64, region: u64, stripe: u64) -> Regions {
        Regions { request, region, stripe }
    }

    #[test]
    fn the_cases_of_the_text() {
        let strided = |request| of(request, request, MIB).contention(Pattern::Strided, true);
        assert_eq!([strided(64 * KIB), strided(MIB), strided(3 * MIB / 2)], [Contention::Most, Contention::Aligned, Contention::AtEnds]);
        assert_eq!(of(MIB, MIB, MIB).contention(Pattern::Strided, false), Contention::AtEnds);
        let contiguous = |request, region| of(request, region, MIB).contention(Pattern::Contiguous, true);
        assert_eq!(contiguous(64 * KIB, 16 * MIB), Contention::Least);
        assert_eq!(contiguous(2 * MIB, 16 * MIB), Contention::Moderate);
        assert_eq!(contiguous(MIB, 16 * MIB), Contention::Moderate);
        assert_eq!(contiguous(64 * KIB, 640 * KIB), Contention::Most);
    }

    #[test]
    fn stripes_lie_between_requests_and_regions() {
        assert_eq!(Intent::Write.stripe_bytes(of(64 * KIB, 16 * MIB, MIB)), Some(MIB));
        assert_eq!(Intent::Read.stripe_bytes(of(64 * KIB, 16 * MIB, MIB)), Some(8 * MIB));
        assert_eq!(Intent::Write.stripe_bytes(of(2 * MIB, 20 * MIB, MIB)), Some(4 * MIB));
        assert_eq!(Intent::Write.stripe_bytes(of(4 * KIB, 40 * KIB, MIB)), Some(32 * KIB));
        assert_eq!(Intent::Read.stripe_bytes(of(4 * KIB, 1 << 40, MIB)), Some(STRIPE_BYTES_MAX));
        assert_eq!(Intent::Read.stripe_bytes(of(128 * MIB, 1 << 40, MIB)), Some(256 * MIB));
        assert_eq!(Intent::Read.stripe_bytes(of(MIB, MIB, MIB)), None);
        assert_eq!(Intent::Write.stripe_bytes(of(1000, 3000, MIB)), None);
    }

    proptest! {
        #[test]
        fn a_stripe_that_is_advised_contends_least(request in 1u64..1 << 34, times in 1u64..10_000, stripe in 1u64..1 << 20, reads: bool) {
            let sizes = of(request, request * times, stripe * 4096);
            let intent = if reads { Intent::Read } else { Intent::Write };
            if let Some(bytes) = intent.stripe_bytes(sizes) {
                prop_assert_eq!(Regions { stripe: bytes, ..sizes }.contention(Pattern::Contiguous, true), Contention::Least);
                prop_assert!(bytes.is_multiple_of(4096));
            } else {
                prop_assert!((request + 1).next_power_of_two().max(4096) >= sizes.region);
            }
        }
    }
}
