//! Division by a number that stays the same for millions of dividends: a product with its reciprocal, corrected by one.

/// Dividends below this are exact as doubles, so that the estimate is off by one at most.
const EXACT: u64 = 1 << 53;

/// A divisor and its reciprocal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Divisor {
    divisor: u64,
    reciprocal: f64,
}

impl Divisor {
    pub fn new(divisor: u64) -> Self {
        Self { divisor, reciprocal: 1.0 / divisor as f64 }
    }

    /// Quotient and rest; (0, dividend) for the divisor 0.
    #[inline]
    pub fn divide(self, dividend: u64) -> (u64, u64) {
        if dividend < self.divisor || self.divisor == 0 {
            return (0, dividend);
        }
        if dividend >= EXACT {
            return (dividend / self.divisor, dividend % self.divisor);
        }
        // Signed, because that conversion is one instruction; both fit.
        let estimate = (dividend as i64 as f64 * self.reciprocal) as i64 as u64;
        let rest = dividend.wrapping_sub(estimate.wrapping_mul(self.divisor));
        if rest < self.divisor {
            (estimate, rest)
        } else if rest > u64::MAX / 2 {
            (estimate - 1, rest.wrapping_add(self.divisor))
        } else {
            (estimate + 1, rest - self.divisor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn it_is_division(divisor in prop_oneof![1u64..200, 1u64..1 << 62], dividend in prop_oneof![0u64..1000, 0u64..1 << 53, 0u64..1 << 63]) {
            prop_assert_eq!(Divisor::new(divisor).divide(dividend), (dividend / divisor, dividend % divisor));
        }

        #[test]
        fn it_is_division_beside_multiples(divisor in 1u64..1 << 30, quotient in 0u64..1 << 23, beside in 0u64..3) {
            let dividend = (divisor * quotient + beside).saturating_sub(1);
            prop_assert_eq!(Divisor::new(divisor).divide(dividend), (dividend / divisor, dividend % divisor));
        }
    }
}
