//! Latencies of any number of requests in a fixed space: quantiles from a high-dynamic-range histogram, mean and maximum exact.

use hdrhistogram::Histogram;

use crate::Error;
use crate::report::Latency;
use crate::time::in_seconds;

pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
    max_ns: u64,
}

impl Latencies {
    /// Quantiles to three digits.
    pub(crate) fn new() -> Result<Self, Error> {
        let histogram =
            Histogram::new_with_bounds(1, u64::MAX >> 1, 3).map_err(|e| Error::Invalid(format!("latencies cannot be counted: {e}; report this")))?;
        Ok(Latencies { histogram, sum_ns: 0, max_ns: 0 })
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
        self.histogram.saturating_record(ns);
    }

    pub(crate) fn report(&self) -> Option<Latency> {
        let count = self.histogram.len();
        let at = |quantile: f64| in_seconds(self.histogram.value_at_quantile(quantile).min(self.max_ns));
        (count > 0).then(|| Latency {
            mean: self.sum_ns as f64 / count as f64 / 1e9,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: in_seconds(self.max_ns),
        })
    }
}
