//! Every sequence of three operations on a tiny disk, with the power going at every write and flush of them, for every scheme that promises flushes.

use crate::common::{Checked, Safe, medium_with};
use stripewise_swd::{CheckingMedium, InPlace, MediumError, Order, Policy, Scan, SwdError, TrackLayer, TrackParameters, Zone};

/// What a sequence is made of. Upkeep 0 is a checkpoint and 2 a step of garbage collection.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Flush,
    Trim(u64, u64),
    Upkeep(u64),
    Write(u64, u64),
}

fn run<S: Safe>(checked: &mut Checked<S>, operation: Operation) -> Result<(), SwdError> {
    match operation {
        Operation::Flush => checked.flush(),
        Operation::Trim(lba, sectors) => checked.trim(lba, sectors),
        Operation::Upkeep(what) => checked.disk().upkeep(what),
        Operation::Write(lba, sectors) => checked.write(lba, sectors),
    }
}

/// The states that sequences start from: nothing written, all written, and fragmented by updates.
fn starts<S: Safe>(medium: CheckingMedium, parameters: S::Parameters) -> Vec<Checked<S>> {
    let empty = Checked::<S>::new(medium, parameters);
    let capacity = empty.capacity();
    let mut full = empty.clone();
    full.write(0, capacity).unwrap();
    full.flush().unwrap();
    let mut updated = full.clone();
    for lba in [1, 4, 0, 6, 2] {
        updated.write(lba % capacity, 1).unwrap();
    }
    vec![empty, full, updated]
}

/// Cuts at every write of every sequence; how many cuts that were.
fn cut_everywhere<S: Safe>(medium: &CheckingMedium, parameters: S::Parameters, operations: &[Operation]) -> u64 {
    let (count, mut cuts) = (operations.len(), 0);
    for start in starts::<S>(medium.clone(), parameters) {
        for sequence in 0..count.pow(3) {
            let sequence_of = [sequence % count, sequence / count % count, sequence / count / count].map(|index| operations[index]);
            for cut in 0.. {
                let mut checked = start.clone();
                checked.disk().medium_mut().cut_after(cut);
                let result = sequence_of.iter().try_for_each(|&operation| run(&mut checked, operation));
                if result.is_ok() {
                    checked.holds_the_last_writes();
                    break;
                }
                assert_eq!(result, Err(SwdError::Medium(MediumError::PowerLost)), "{sequence_of:?} cut at {cut}");
                checked.crash(cut ^ (sequence as u64) << 8);
                let capacity = checked.capacity();
                checked.write(0, capacity).unwrap();
                checked.holds_the_last_writes();
                cuts += 1;
            }
        }
    }
    cuts
}

#[test]
fn no_cut_in_any_three_operations_of_a_track_layer_loses_flushed_data() {
    use Operation::{Flush, Trim, Upkeep, Write};
    let operations = [Flush, Trim(2, 2), Upkeep(0), Upkeep(2), Write(0, 1), Write(1, 2), Write(2, 2), Write(4, 1)];
    let medium = medium_with(&[Zone { tracks: 8, sectors: 2 }], 2, 64, 48);
    let mut cuts = 0;
    for (policy, scan) in [(Policy::Greedy, Scan::All), (Policy::Smart, Scan::Pools), (Policy::Adaptive, Scan::Pools)] {
        for alternate_limit in [0.5, 0.0] {
            let parameters = TrackParameters { policy, band_tracks: 8, alternate_limit, ..TrackParameters::default() };
            cuts += cut_everywhere::<TrackLayer<CheckingMedium>>(&medium, (parameters, scan), &operations);
        }
    }
    assert!(cuts > 10_000, "only {cuts} cuts");
}

#[test]
fn no_cut_in_any_three_operations_of_a_static_map_loses_flushed_data() {
    use Operation::{Flush, Trim, Write};
    let operations = [Flush, Trim(2, 2), Trim(1, 1), Write(0, 1), Write(1, 2), Write(2, 2), Write(5, 1), Write(7, 1)];
    let medium = |head_tracks| medium_with(&[Zone { tracks: 5, sectors: 2 }], head_tracks, 64, 40);
    let mut cuts = 0;
    for order in Order::ALL {
        let medium = medium(if order == Order::Hdd { 1 } else { 2 });
        cuts += cut_everywhere::<InPlace<CheckingMedium>>(&medium, (order, 4), &operations);
    }
    assert!(cuts > 10_000, "only {cuts} cuts");
}
