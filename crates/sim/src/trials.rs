//! Runs at hand, simulated under one layout after another: what a search asks for thousands of times.
//!
//! Requests are read once, and a layout is a table; what a run costs is then its requests. Of the report only what a search looks at is told.

use stripewise_threads::{numbered, wanted};

use crate::scenario::{MoveSpec, RegionSpec, Scenario, Stripe};
use crate::source::Listed;
use crate::{Error, simulate};

/// Fewer requests are not worth another thread.
const WORTH_THREADS: usize = 20_000;

/// Runs over the same files on the same servers.
pub struct Trials {
    scenario: Scenario,
    runs: Vec<Listed>,
}

/// What a scenario lacks of a layout.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Cycles of stripes that regions share.
    pub cycles: Vec<Vec<Stripe>>,
    /// Regions and the file of each, those of a file in order.
    pub regions: Vec<(u32, RegionSpec)>,
    /// Spans that get a new home during the run.
    pub moves: Vec<MoveSpec>,
}

/// What became of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// When its last request was done.
    pub seconds: f64,
    /// What every server's channels were busy for together, in the scenario's order.
    pub busy_s: Vec<f64>,
}

impl Trials {
    /// The servers, network and files of a scenario (cycles, regions and moves it need not have), and the requests of every run.
    ///
    /// # Errors
    /// [`Error::Invalid`] for text that is no scenario.
    pub fn new(scenario_json: &str, runs: Vec<Listed>) -> Result<Self, Error> {
        Ok(Trials { scenario: Scenario::unchecked(scenario_json)?, runs })
    }

    /// Runs number `which` under a layout.
    ///
    /// # Errors
    /// As [`simulate`], and [`Error::Invalid`] for a file or run that there is not.
    pub fn run(&self, layout: Layout, which: &[usize]) -> Result<Vec<Outcome>, Error> {
        let scenario = self.laid_out(layout)?;
        let chosen: Vec<&Listed> = which.iter().filter_map(|&number| self.runs.get(number)).collect();
        if chosen.len() < which.len() {
            return Err(Error::Invalid(format!("runs {which:?} are not among {}; name those that there are", self.runs.len())));
        }
        let requests: u64 = chosen.iter().map(|run| run.requests()).sum();
        let threads = wanted(usize::try_from(requests).unwrap_or(usize::MAX), WORTH_THREADS);
        let one = |run: &Listed| -> Result<Outcome, Error> {
            let report = simulate(&scenario, &mut run.begin(), &mut |_| true)?;
            Ok(Outcome { seconds: report.seconds, busy_s: report.servers.iter().map(|server| server.busy_s).collect() })
        };
        numbered(chosen.len(), threads, || (), |(), number| chosen.get(number).map(|run| one(run))).into_iter().flatten().collect()
    }

    /// The seconds of run number `which` with any read under way and those with any write, added.
    ///
    /// # Errors
    /// As [`Trials::run`].
    pub fn in_flight_s(&self, layout: Layout, which: usize) -> Result<f64, Error> {
        let scenario = Scenario { in_flight: true, ..self.laid_out(layout)? };
        let run =
            self.runs.get(which).ok_or_else(|| Error::Invalid(format!("run {which} is not among {}; name one that there is", self.runs.len())))?;
        Ok(simulate(&scenario, &mut run.begin(), &mut |_| true)?.in_flight_s.unwrap_or_default())
    }

    fn laid_out(&self, layout: Layout) -> Result<Scenario, Error> {
        let mut scenario = self.scenario.clone();
        (scenario.cycles, scenario.moves) = (layout.cycles, layout.moves);
        let files = scenario.files.len();
        for (file, region) in layout.regions {
            let Some(file) = scenario.files.get_mut(file as usize) else {
                return Err(Error::Invalid(format!("a region is of file {file} of {files}; name one that there is")));
            };
            file.regions.push(region);
        }
        Ok(scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(cycles: &str, regions: &str) -> String {
        format!(
            r#"{{"version": 1, "cycles": {cycles}, "timeline_buckets": 2, "files": [{{"name": "f", "size_bytes": 65536, "regions": {regions}}}],
            "servers": [{{"name": "a", "device": {{"read": {{"startup_s": 0.01, "per_byte_s": 1e-6}}, "write": {{"startup_s": 0.01, "per_byte_s": 1e-6}}}}}},
                        {{"name": "b", "device": {{"read": {{"startup_s": 0.002, "per_byte_s": 1e-7}}, "write": {{"startup_s": 0.002, "per_byte_s": 1e-7}}}}}}]}}"#
        )
    }

    fn run(seed: i64) -> Vec<u8> {
        (0..200_i64)
            .flat_map(|n| {
                let mut row = Vec::new();
                for value in [n, n + 1] {
                    row.extend_from_slice(&value.to_le_bytes());
                }
                row.extend_from_slice(&((n % 3) as i32).to_le_bytes());
                row.extend_from_slice(&[u8::from(n % 5 == 0), 0, 0, 0]);
                row.extend_from_slice(&((n * 7919 * seed) % 14 * 4096).to_le_bytes());
                row.extend_from_slice(&8192_i64.to_le_bytes());
                row
            })
            .collect()
    }

    fn listed(seed: i64) -> Listed {
        Listed::new([&run(seed)[..]], 1000).unwrap()
    }

    const CYCLES: &str = "[[[0, 4096]], [[1, 4096]], [[0, 4096], [1, 12288]]]";
    const REGIONS: &str = "[[0, 8192, 0, 0], [8192, 8192, 0, 0], [16384, 16384, 1, 0], [32768, 32768, 2, 1]]";

    fn layout() -> Layout {
        let stripe = |server, width_bytes| Stripe { server, width_bytes };
        let region = |start, len, cycle, first| (0, RegionSpec { start, len, cycle, first });
        Layout {
            cycles: vec![vec![stripe(0, 4096)], vec![stripe(1, 4096)], vec![stripe(0, 4096), stripe(1, 12288)]],
            regions: vec![region(0, 8192, 0, 0), region(8192, 8192, 0, 0), region(16384, 16384, 1, 0), region(32768, 32768, 2, 1)],
            moves: vec![MoveSpec { at_s: 0.2, file: 0, start: 4096, len: 8192, cycle: 1, first: 0 }],
        }
    }

    #[test]
    fn a_trial_tells_what_a_simulation_does() {
        let trials = Trials::new(&scenario("[]", "[]"), vec![listed(1), listed(2), listed(3)]).unwrap();
        let found = trials.run(layout(), &[2, 0]).unwrap();
        let mut whole = Scenario::from_json(&scenario(CYCLES, REGIONS)).unwrap();
        whole.moves = layout().moves;
        for (outcome, seed) in found.iter().zip([3, 1]) {
            let report = simulate(&whole, &mut listed(seed).begin(), &mut |_| true).unwrap();
            assert_eq!(outcome.seconds, report.seconds);
            assert_eq!(outcome.busy_s, report.servers.iter().map(|server| server.busy_s).collect::<Vec<f64>>());
        }
        assert_ne!(found[0], found[1]);
    }

    #[test]
    fn seconds_in_flight_leave_out_what_a_program_thinks() {
        // One process reads for 10 + 4.096 ms at hdd speed, then thinks for 1 s, then reads again.
        let mut rows = Vec::new();
        for (start, end) in [(0_i64, 1_000_i64), (1_000_001_000, 1_000_002_000)] {
            rows.extend_from_slice(&start.to_le_bytes());
            rows.extend_from_slice(&end.to_le_bytes());
            rows.extend_from_slice(&[0; 8]);
            rows.extend_from_slice(&0_i64.to_le_bytes());
            rows.extend_from_slice(&4096_i64.to_le_bytes());
        }
        let trials = Trials::new(&scenario("[]", "[]"), vec![Listed::new([&rows[..]], 1000).unwrap(), listed(1)]).unwrap();
        let (seconds, run) = (trials.in_flight_s(layout(), 0).unwrap(), trials.run(layout(), &[0]).unwrap());
        assert!((seconds - 2.0 * 0.014_096).abs() < 1e-6, "{seconds}");
        assert!((run[0].seconds - 1.0 - seconds).abs() < 1e-6, "{seconds} of {}", run[0].seconds);
        // Of many processes that hardly think, reads and writes are each under way nearly all the time.
        let (many, run) = (trials.in_flight_s(layout(), 1).unwrap(), trials.run(layout(), &[1]).unwrap());
        assert!(many > 0.0 && many <= 2.0 * run[0].seconds, "{many} of {}", run[0].seconds);
        assert!(trials.in_flight_s(layout(), 2).unwrap_err().to_string().contains("run 2"));
    }

    #[test]
    fn a_layout_that_cannot_be_and_a_run_that_is_not_there_are_refused() {
        let trials = Trials::new(&scenario("[]", "[]"), vec![listed(1)]).unwrap();
        let refused = |layout: Layout, which: &[usize]| trials.run(layout, which).unwrap_err().to_string();
        assert!(refused(layout(), &[1]).contains("runs [1]"));
        assert!(refused(Layout { regions: Vec::new(), ..layout() }, &[0]).contains("is empty"));
        assert!(refused(Layout { cycles: layout().cycles.split_off(2), ..layout() }, &[0]).contains("names cycle"));
        let elsewhere = layout().regions.into_iter().map(|(_, region)| (1, region)).collect();
        assert!(refused(Layout { regions: elsewhere, ..layout() }, &[0]).contains("file 1 of 1"));
    }
}
