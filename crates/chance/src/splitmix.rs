//! Chance that is the same on every machine and in every version: SplitMix64 (Steele, Lea, Flood 2014), written here because reproducible
//! streams are part of what a seed promises.

/// A stream of random numbers; streams of different keys are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser: a bijection whose every output bit depends on every input bit.
pub(crate) const fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl SplitMix64 {
    /// Stream `key` of `seed`.
    #[must_use]
    pub const fn new(seed: u64, key: u64) -> Self {
        SplitMix64 { state: mixed(seed.wrapping_add(GOLDEN)) ^ mixed(key.wrapping_mul(GOLDEN).wrapping_add(1)) }
    }

    /// The one stream of the reference implementation that begins with `state`.
    #[must_use]
    pub const fn at(state: u64) -> Self {
        SplitMix64 { state }
    }

    /// 64 random bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mixed(self.state)
    }

    /// Uniform on `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform on `[0, n)`, for n > 0; biased by less than n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller, 1958; the second of the pair is left).
    #[inline]
    pub fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (core::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // First outputs of the reference implementation for state 0.
        let mut random = SplitMix64::at(0);
        assert_eq!([random.bits(), random.bits()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn means_are_what_they_are_called() {
        let mut random = SplitMix64::new(1, 2);
        let n = 100_000;
        let unit: f64 = (0..n).map(|_| random.unit()).sum::<f64>() / f64::from(n);
        let exponential: f64 = (0..n).map(|_| random.exponential()).sum::<f64>() / f64::from(n);
        assert!((unit - 0.5).abs() < 0.005 && (exponential - 1.0).abs() < 0.02, "{unit} {exponential}");
        assert!((0..1000).all(|_| random.below(7) < 7));
        let normal: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let (mean, square) = (normal.iter().sum::<f64>() / f64::from(n), normal.iter().map(|x| x * x).sum::<f64>() / f64::from(n));
        assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.02, "{mean} {square}");
    }
}
