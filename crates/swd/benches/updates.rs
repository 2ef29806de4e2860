//! Updates of 8 sectors per second on a medium that costs nothing, at the size of a disk of 146 GB: T-STL at fills from 30 to 95 %, beside the
//! static map of a plain disk.
//!
//! Prints one JSON line, of Smart's slowest; details go to stderr. Arguments: updates to measure for each row, and as many percents as wanted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use stripewise_chance::SplitMix64;
use stripewise_swd::{
    BlankMedium, Geometry, InPlace, Indirection, IndirectionParameters, Medium, Order, Policy, Scheme, TrackLayer, TrackParameters, Zone,
};

/// Tracks and their sectors, outer to inner, as on a disk of 15,000 revolutions per minute; 2 GB of random access zone.
const ZONES: [(u32, u32); 4] = [(80_000, 1160), (80_000, 1050), (80_000, 920), (48_680, 760)];
const RANDOM_ACCESS_SECTORS: u32 = 4 << 20;
const UPDATE_SECTORS: u64 = 8;

fn medium(head_tracks: u32) -> BlankMedium {
    let zones = ZONES.map(|(tracks, sectors)| Zone { tracks, sectors });
    BlankMedium::new(&Geometry::new(&zones, head_tracks, 0, RANDOM_ACCESS_SECTORS).unwrap()).unwrap()
}

/// Seconds that this thread has had a core, so that others on the machine do not count.
fn core_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Addresses drawn beforehand: uniform, or by Zipf's law of exponent 1 over extents of 1,024 sectors that are scattered over the disk.
fn addresses(is_zipf: bool, end: u64, count: usize) -> Vec<u64> {
    let mut random = SplitMix64::at(7);
    let last = end - UPDATE_SECTORS + 1;
    let extents = (last / 1024).max(1);
    let mut draw = || {
        if !is_zipf {
            return random.below(last);
        }
        let uniform = random.below(1 << 53) as f64 / (1u64 << 53) as f64;
        let rank = ((extents as f64).powf(uniform) as u64).min(extents - 1);
        (rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % extents * 1024 + random.below(1024)).min(last - 1)
    };
    (0..count).map(|_| draw()).collect()
}

/// Updates per second after a fill and as many updates to warm up, with the amplification while measured.
fn measure<S: Scheme>(mut scheme: S, percent: u64, is_zipf: bool, updates: usize) -> (f64, f64, f64) {
    let end = scheme.capacity_sectors() * percent / 100;
    let begin = core_seconds();
    scheme.fill(end).unwrap();
    let fill_s = core_seconds() - begin;
    let addresses = addresses(is_zipf, end, 2 * updates);
    let (warm, measured) = addresses.split_at(updates);
    warm.iter().for_each(|&lba| scheme.write(lba, UPDATE_SECTORS, &[]).unwrap());
    let before = scheme.counters();
    let begin = core_seconds();
    measured.iter().for_each(|&lba| scheme.write(lba, UPDATE_SECTORS, &[]).unwrap());
    let seconds = core_seconds() - begin;
    let after = scheme.counters();
    let extra = (after.extra_reads + after.extra_writes) - (before.extra_reads + before.extra_writes);
    (updates as f64 / seconds, 1.0 + extra as f64 / (after.own_writes - before.own_writes) as f64, fill_s)
}

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let updates = numbers.first().map_or(300_000, |&updates| updates as usize);
    let percents = numbers.get(1..).filter(|percents| !percents.is_empty()).unwrap_or(&[30, 65, 85, 90]);
    let (plain, _, _) = measure(InPlace::new(medium(1), Order::Hdd, 1, 0).unwrap(), 85, false, updates);
    let mut slowest = (f64::INFINITY, 0);
    for &percent in percents {
        for (policy, keeps_flushed) in [(Policy::Smart, false), (Policy::Greedy, false), (Policy::Smart, true)] {
            for is_zipf in [false, true] {
                let parameters = TrackParameters { policy, keeps_flushed, ..TrackParameters::default() };
                let layer = TrackLayer::create(medium(2), parameters).unwrap();
                let (speed, amplification, fill_s) = measure(layer, percent, is_zipf, updates);
                let law = if is_zipf { "zipf" } else { "uniform" };
                eprintln!(
                    "{percent:3} % {policy:?} {law:8} safe {keeps_flushed:5}: {speed:10.0} updates/s, amplification {amplification:.2}, filled in {fill_s:.2} s"
                );
                if policy == Policy::Smart && !keeps_flushed && percent <= 90 && speed < slowest.0 {
                    slowest = (speed, percent);
                }
            }
        }
        let parameters = IndirectionParameters::default();
        let (speed, amplification, fill_s) = measure(Indirection::new(medium(2), parameters).unwrap(), percent, false, updates / 10);
        eprintln!("{percent:3} % is uniform: {speed:10.0} updates/s, amplification {amplification:.2}, filled in {fill_s:.2} s");
    }
    assert_eq!(medium(2).geometry().tracks(), 288_680);
    println!(
        r#"{{"name":"swd.smart_updates_per_s","value":{:.0},"unit":"1/s","baseline":"static map of a plain disk: {plain:.0}/s","ratio":{:.3},"fill_percent":{}}}"#,
        slowest.0,
        slowest.0 / plain,
        slowest.1
    );
}
