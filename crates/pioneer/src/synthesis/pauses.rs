//! Long slacks of ranks that pause on their own: drawn by each rank from all of the operation's, where those of other programs are one number for all ranks.

use std::collections::BTreeMap;

use stripewise_workpath::Distribution;

use super::arguments::Request;

/// From here on a slack is a pause, as in a profile's characteristics, ns.
const LONG_NS: u64 = 1_000_000;
/// Quantiles of a distribution, at most.
const QUANTILES_MAX: usize = 257;

/// Pauses of one length: the next one is no longer than this many times the one before, and than that many times the first.
const NEXT: f64 = 1.5;
const SPAN: f64 = 3.0;

/// The distributions of pauses: of each operation one for each length.
#[derive(Debug, Default)]
pub struct Pauses {
    /// By operation: the longest pause of a length, and the distribution's number; 0: there is one pause of that length.
    lengths: BTreeMap<u8, Vec<(u64, u32)>>,
    /// By number, from 1 on.
    pub distributions: Vec<Distribution>,
}

impl Pauses {
    /// Those of a path's requests.
    #[must_use]
    pub fn of(requests: &[Request]) -> Self {
        let mut by_operation: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
        for request in requests.iter().filter(|request| request.slack_ns >= LONG_NS) {
            by_operation.entry(request.op.number()).or_default().push(request.slack_ns);
        }
        let mut found = Self::default();
        for (operation, mut all) in by_operation {
            all.sort_unstable();
            let mut rest = all.as_slice();
            while let Some(&first) = rest.first() {
                let ends = |(before, next): (&u64, &u64)| *next as f64 > NEXT * *before as f64 || *next as f64 > SPAN * first as f64;
                let count = rest.iter().zip(rest.iter().skip(1)).position(ends).map_or(rest.len(), |at| at + 1);
                let (alike, others) = rest.split_at(count);
                found.add(operation, alike);
                rest = others;
            }
        }
        found
    }

    fn add(&mut self, operation: u8, alike: &[u64]) {
        let (last, steps) = (alike.len() - 1, (alike.len() - 1).min(QUANTILES_MAX - 1));
        let mut number = 0;
        if steps > 0 {
            let quantiles = (0..=steps).filter_map(|step| alike.get(step * last / steps).copied()).collect();
            self.distributions.push(Distribution::Quantiles(quantiles));
            number = self.distributions.len() as u32;
        }
        let longest = alike.last().copied().unwrap_or(0);
        self.lengths.entry(operation).or_default().push((longest, number));
    }

    /// The distribution that a request draws from.
    #[must_use]
    pub fn number(&self, request: &Request) -> Option<u32> {
        let lengths = self.lengths.get(&request.op.number()).filter(|_| request.slack_ns >= LONG_NS)?;
        lengths.iter().find(|(longest, _)| request.slack_ns <= *longest).map(|(_, number)| *number).filter(|number| *number > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stripewise_workpath::{Op, Who};

    fn request(op: Op, slack_ns: u64) -> Request {
        Request { op, who: Who::All, comm: 0, view: 0, file: 0, other: None, session: None, offset: 0, shift: 0, size: 0, slack_ns }
    }

    #[test]
    fn pauses_of_one_length_are_drawn_from_each_other_and_short_ones_stay() {
        let pauses = [10, 4_000_000, 5_000_000, 4_100_000, 150_000_000, 160_000_000, 900_000_000];
        let mut requests: Vec<Request> = pauses.iter().map(|&slack_ns| request(Op::Pread, slack_ns)).collect();
        requests.push(request(Op::Pwrite, 4_000_000));
        let found = Pauses::of(&requests);
        let numbers: Vec<Option<u32>> = requests.iter().map(|request| found.number(request)).collect();
        assert_eq!(numbers, [None, Some(1), Some(1), Some(1), Some(2), Some(2), None, None]);
        let quantiles = |of: &[u64]| Distribution::Quantiles(of.to_vec());
        assert_eq!(found.distributions, [quantiles(&[4_000_000, 4_100_000, 5_000_000]), quantiles(&[150_000_000, 160_000_000])]);
    }
}
