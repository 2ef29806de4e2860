//! Time is whole nanoseconds in a u64; an angle is a 64-bit fraction of a turn, which wraps as the disk does.

/// Milliseconds as whole ns, the nearest.
pub(crate) fn milliseconds(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

/// ns as seconds.
pub(crate) fn in_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A fraction of a turn, in 2^-64.
pub(crate) type Angle = u64;

/// Angles that a head may be past a sector's begin and still get it, ns: the rounding of times must not cost a turn.
const TOLERANCE_NS: u64 = 4;

/// The rotation: where the disk stands at a time, and how long until it stands elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation {
    period_ns: f64,
    angle_per_ns: u64,
    /// 2^-20 ns.
    period_fixed: u64,
    tolerance: Angle,
}

impl Rotation {
    pub(crate) fn new(rpm: f64) -> Self {
        let period_ns = 60e9 / rpm;
        let angle_per_ns = (2f64.powi(64) / period_ns).round() as u64;
        Self { period_ns, angle_per_ns, period_fixed: (period_ns * f64::from(1 << 20)).round() as u64, tolerance: angle_per_ns * TOLERANCE_NS }
    }

    pub(crate) fn period_ns(&self) -> f64 {
        self.period_ns
    }

    #[inline]
    pub(crate) fn at(&self, ns: u64) -> Angle {
        ns.wrapping_mul(self.angle_per_ns)
    }

    /// Whole ns, rounded up, from `from` until `to` comes under the head: less than a turn.
    #[inline]
    pub(crate) fn until(&self, from: Angle, to: Angle) -> u64 {
        let angle = to.wrapping_sub(from);
        if angle > u64::MAX - self.tolerance {
            return 0;
        }
        let fixed = (u128::from(angle) * u128::from(self.period_fixed)) >> 64;
        (fixed as u64).div_ceil(1 << 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_takes_a_period() {
        let rotation = Rotation::new(15_020.0);
        let period = 60e9f64 / 15_020.0;
        assert!((rotation.at(period.round() as u64).cast_signed() as f64 / 2f64.powi(64)).abs() < 1e-6);
        assert_eq!(rotation.until(0, 1 << 63), (period / 2.0).ceil() as u64);
        assert!(rotation.until(1 << 40, 0) as f64 <= period + 1.0);
    }

    #[test]
    fn being_late_by_a_rounding_costs_no_turn() {
        let rotation = Rotation::new(5400.0);
        assert_eq!(rotation.until(rotation.at(1_000_003), rotation.at(1_000_000)), 0);
        assert!(rotation.until(rotation.at(1_000_009), rotation.at(1_000_000)) > 11_000_000);
    }
}
