//! Every sequence of three operations on a tiny disk, with the power going at every write and flush of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{Checked, medium};
use stripewise_swd::{MediumError, Policy, Scan, Scheme, SwdError, TrackParameters, Zone};

const OPERATIONS: usize = 8;

fn run(checked: &mut Checked, operation: usize) -> Result<(), SwdError> {
    match operation {
        0 => checked.flush(),
        1 => checked.trim(2, 2),
        2 => checked.disk().collect_band(0).map(drop),
        3 => checked.disk().checkpoint(),
        4 => checked.write(0, 1),
        5 => checked.write(1, 2),
        6 => checked.write(2, 2),
        _ => checked.write(4, 1),
    }
}

/// The states that sequences start from: nothing written, all written, and fragmented by updates.
fn starts(parameters: TrackParameters) -> Vec<Checked> {
    let empty = Checked::new(medium(&[Zone { tracks: 8, sectors: 2 }], 2), parameters);
    let mut full = empty.clone();
    full.write(0, 8).unwrap();
    full.flush().unwrap();
    let mut fragmented = full.clone();
    for lba in [1, 4, 0, 6, 2] {
        fragmented.write(lba, 1).unwrap();
    }
    vec![empty, full, fragmented]
}

#[test]
fn no_cut_in_any_three_operations_loses_flushed_data() {
    let mut cuts = 0;
    for (policy, scan, alternate_limit) in [(Policy::Greedy, Scan::All), (Policy::Smart, Scan::Pools), (Policy::Adaptive, Scan::Pools)]
        .into_iter()
        .flat_map(|(policy, scan)| [(policy, scan, 0.5), (policy, scan, 0.0)])
    {
        let parameters = TrackParameters { policy, band_tracks: 8, alternate_limit, ..TrackParameters::default() };
        for start in starts(parameters) {
            for sequence in 0..OPERATIONS.pow(3) {
                let operations = [sequence % OPERATIONS, sequence / OPERATIONS % OPERATIONS, sequence / OPERATIONS / OPERATIONS];
                for cut in 0.. {
                    let mut checked = start.clone();
                    checked.disk().medium_mut().cut_after(cut);
                    let result = operations.iter().try_for_each(|&operation| run(&mut checked, operation));
                    if result.is_ok() {
                        checked.holds_the_last_writes();
                        break;
                    }
                    assert_eq!(result, Err(SwdError::Medium(MediumError::PowerLost)), "{operations:?} cut at {cut}");
                    checked.crash(cut ^ (sequence as u64) << 8, scan);
                    checked.write(0, 8).unwrap();
                    checked.holds_the_last_writes();
                    cuts += 1;
                }
            }
        }
    }
    assert!(cuts > 10_000, "only {cuts} cuts");
}
