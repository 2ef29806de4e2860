//! When requests arrive: gaps between them, each drawn for itself from a law with a given mean.

use serde::Deserialize;
use stripewise_chance::SplitMix64;

use crate::Error;

/// A law of inter-arrival times, ms.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(tag = "law", rename_all = "lowercase", deny_unknown_fields)]
pub enum Arrivals {
    /// Always the mean.
    Fixed { mean_ms: f64 },
    /// Normal; a gap below 0 counts as 0 (thesis, chapters 4.6.2 and 5.3.3).
    Normal { mean_ms: f64, deviation_ms: f64 },
    /// Exponential: a Poisson process.
    Exponential { mean_ms: f64 },
    /// Bursts: hyperexponential of two phases with balanced means, so that standard deviation over mean is `variation`, above 1.
    Bursty {
        mean_ms: f64,
        /// Coefficient of variation.
        variation: f64,
    },
}

/// A gap of more is a slip of the unit.
const MEAN_MS_MAX: f64 = 1e9;
const VARIATION_MAX: f64 = 1e3;
const MS_NS: f64 = 1e6;

impl Arrivals {
    fn check(&self) -> Result<(), Error> {
        let (Arrivals::Fixed { mean_ms } | Arrivals::Normal { mean_ms, .. } | Arrivals::Exponential { mean_ms } | Arrivals::Bursty { mean_ms, .. }) =
            *self;
        if !(0.0..=MEAN_MS_MAX).contains(&mean_ms) {
            return Err(Error::Invalid(format!("arrivals.mean_ms = {mean_ms} is not from 0 to 1e9; correct it")));
        }
        match *self {
            Arrivals::Normal { deviation_ms, .. } if !(0.0..=MEAN_MS_MAX).contains(&deviation_ms) => {
                Err(Error::Invalid(format!("arrivals.deviation_ms = {deviation_ms} is not from 0 to 1e9; correct it")))
            }
            Arrivals::Bursty { variation, .. } if !(variation > 1.0 && variation <= VARIATION_MAX) => Err(Error::Invalid(format!(
                "arrivals.variation = {variation} is not above 1 and up to 1000; take the law normal or exponential for less"
            ))),
            _ => Ok(()),
        }
    }
}

/// The time of the latest arrival; the first is at 0.
pub(super) struct Clock {
    law: Arrivals,
    random: SplitMix64,
    /// ns; the whole sum, so that no rounding adds up.
    now_ns: u64,
    started: bool,
}

impl Clock {
    pub(super) fn new(law: &Arrivals, random: SplitMix64) -> Result<Clock, Error> {
        law.check()?;
        Ok(Clock { law: law.clone(), random, now_ns: 0, started: false })
    }

    /// When the next request arrives, ns.
    pub(super) fn tick(&mut self) -> u64 {
        if self.started {
            let gap_ms = self.gap_ms();
            self.now_ns = self.now_ns.saturating_add((gap_ms * MS_NS).round() as u64);
        }
        self.started = true;
        self.now_ns
    }

    fn gap_ms(&mut self) -> f64 {
        match self.law {
            Arrivals::Fixed { mean_ms } => mean_ms,
            Arrivals::Normal { mean_ms, deviation_ms } => (mean_ms + deviation_ms * self.random.normal()).max(0.0),
            Arrivals::Exponential { mean_ms } => mean_ms * self.random.exponential(),
            Arrivals::Bursty { mean_ms, variation } => {
                let square = variation * variation;
                let quick = 0.5 * (1.0 + ((square - 1.0) / (square + 1.0)).sqrt());
                let share = if self.random.unit() < quick { quick } else { 1.0 - quick };
                mean_ms / (2.0 * share) * self.random.exponential()
            }
        }
    }
}
