//! Stripe counts of new files (section 3.5.2, step 1).

/// What became of a stripe count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// As asked for.
    Kept(u32),
    /// More than there are targets.
    Cut(u32),
    /// Few numbers of aggregators divide it, or are a multiple: the nearest power of two.
    Rounded(u32),
}

impl Count {
    /// The count in force.
    pub fn count(self) -> u32 {
        match self {
            Count::Kept(count) | Count::Cut(count) | Count::Rounded(count) => count,
        }
    }
}

/// The stripe count of a new file for which `asked` was given, at most `targets`; both from 1 on.
///
/// A prime, and twice or three times a prime above 3 ("a small multiple"), becomes the nearest power of two, of two the larger, as far as there are targets.
/// What is looked at is the count that the targets allow: 64 stripes on 61 targets are 61.
pub fn advised_count(asked: u32, targets: u32) -> Count {
    let targets = targets.max(1);
    let possible = asked.clamp(1, targets);
    if is_awkward(possible) && !possible.is_power_of_two() {
        return Count::Rounded(nearest_power(possible, targets));
    }
    if possible == asked { Count::Kept(asked) } else { Count::Cut(possible) }
}

/// Whether a stripe count is a prime or a small multiple of one.
fn is_awkward(count: u32) -> bool {
    let is_multiple = |of: u32| count.is_multiple_of(of) && count / of > 3 && is_prime(count / of);
    is_prime(count) || is_multiple(2) || is_multiple(3)
}

fn is_prime(number: u32) -> bool {
    number > 1 && (2u64..).take_while(|factor| factor * factor <= u64::from(number)).all(|factor| !u64::from(number).is_multiple_of(factor))
}

/// The power of two nearest to `number`, of two the larger; at most `most`.
fn nearest_power(number: u32, most: u32) -> u32 {
    let below = 1u32 << number.ilog2();
    match below.checked_mul(2) {
        Some(above) if above - number <= number - below && above <= most => above,
        _ => below,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn primes_and_their_small_multiples_become_powers_of_two() {
        let counts = [
            (1, 1),
            (2, 2),
            (3, 4),
            (5, 4),
            (7, 8),
            (10, 8),
            (11, 8),
            (13, 16),
            (14, 16),
            (15, 16),
            (21, 16),
            (22, 16),
            (23, 16),
            (61, 64),
            (97, 128),
        ];
        for (asked, advised) in counts {
            assert_eq!(advised_count(asked, 160).count(), advised, "{asked}");
        }
        for kept in [4, 6, 8, 9, 12, 16, 18, 20, 24, 25, 27, 28, 30, 32, 40, 48, 60, 64] {
            assert_eq!(advised_count(kept, 160), Count::Kept(kept));
        }
    }

    #[test]
    fn targets_are_the_most() {
        assert_eq!(advised_count(64, 61), Count::Rounded(32));
        assert_eq!(advised_count(64, 60), Count::Cut(60));
        assert_eq!(advised_count(3, 3), Count::Rounded(2));
        assert_eq!(advised_count(7, 7), Count::Rounded(4));
        assert_eq!(advised_count(0, 0), Count::Cut(1));
        assert_eq!(advised_count(u32::MAX, u32::MAX), Count::Kept(u32::MAX));
        assert_eq!(advised_count(4_294_967_291, u32::MAX), Count::Rounded(1 << 31));
    }

    proptest! {
        #[test]
        fn what_is_advised_stays_and_is_near(asked in 1u32..5000, targets in 1u32..5000) {
            let advised = advised_count(asked, targets);
            prop_assert!(advised.count() >= 1 && advised.count() <= targets);
            prop_assert_eq!(advised_count(advised.count(), targets), Count::Kept(advised.count()));
            if let Count::Rounded(count) = advised {
                let possible = asked.min(targets);
                prop_assert!(count.is_power_of_two() && (possible.div_ceil(2)..=possible * 4 / 3).contains(&count));
            }
        }
    }
}
