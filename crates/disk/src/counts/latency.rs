//! Times of any number of requests in a fixed space: quantiles from a high-dynamic-range histogram, mean and maximum exact.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::error::Error;
use crate::time::in_seconds;

/// Times as they come.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
    max_ns: u64,
}

/// Distribution of a time, seconds; mean and max exact, quantiles to three digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

impl Latencies {
    /// None yet.
    ///
    /// # Errors
    /// A histogram that cannot be.
    pub fn new() -> Result<Self, Error> {
        let histogram =
            Histogram::new_with_bounds(1, u64::MAX >> 1, 3).map_err(|e| Error::Invalid(format!("latencies cannot be counted: {e}; report this")))?;
        Ok(Self { histogram, sum_ns: 0, max_ns: 0 })
    }

    /// One more.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
        self.histogram.saturating_record(ns);
    }

    /// All of `other` too.
    pub fn add(&mut self, other: &Self) {
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        // Histograms of equal bounds always add.
        let _ = self.histogram.add(&other.histogram);
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether there were none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their sum, s.
    #[must_use]
    pub fn sum_s(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// Their distribution; `None` of none.
    #[must_use]
    pub fn report(&self) -> Option<Latency> {
        let at = |quantile: f64| in_seconds(self.histogram.value_at_quantile(quantile).min(self.max_ns));
        (!self.is_empty()).then(|| Latency {
            mean: self.sum_ns as f64 / self.len() as f64 / 1e9,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: in_seconds(self.max_ns),
        })
    }
}
