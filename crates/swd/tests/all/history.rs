//! Seeded histories of every scheme that promises what a flush promises, on a medium that destroys, tears and reorders: writes, trims, flushes,
//! checkpoints, collection, new disks in place of old ones, and the power going at any write of any of these, also while a disk is opened.
//!
//! A seed tells all of a history: `STRIPEWISE_SEED=n` runs it again. `STRIPEWISE_SOAK=1` runs a million, from STRIPEWISE_SEED on;
//! STRIPEWISE_HISTORIES asks for another number.

use crate::common::{Checked, Safe, medium_with};
use stripewise_chance::SplitMix64;
use stripewise_swd::{CheckingMedium, InPlace, MediumError, Order, Policy, Scan, SwdError, TrackLayer, TrackParameters, Zone};

struct Random(SplitMix64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.bits()
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Says which history failed, and what it had done.
struct Trace {
    seed: u64,
    lines: Vec<String>,
}

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let tail = self.lines.len().saturating_sub(60);
            eprintln!("STRIPEWISE_SEED={} fails after\n{}", self.seed, self.lines[tail..].join("\n"));
        }
    }
}

/// Sectors of records of so many bytes.
fn sectors_of(bytes: u64, sector_bytes: u64) -> u64 {
    bytes.div_ceil(sector_bytes)
}

fn zones(random: &mut Random, tracks: u64) -> Vec<Zone> {
    (0..random.below(2) + 1).map(|_| Zone { tracks: (tracks + random.below(2)) as u32, sectors: random.below(3) as u32 + 1 }).collect()
}

fn layer_parameters(random: &mut Random, policy: Policy, scan: Scan, band_tracks: u64) -> TrackParameters {
    TrackParameters {
        policy,
        band_tracks: band_tracks as u32,
        first_tracks: random.below(4) as u32,
        spread_tracks: random.below(4) as u32,
        gc_threshold: random.pick(&[0.0, 0.3, 0.5, 0.8, 1.0]),
        alternate_limit: random.pick(&[0.0, 0.3, 0.5, 1.0]),
        checkpoint_writes: random.below(20) as u32 + 1,
        victims_by_band: random.below(2) == 0,
        declares_pools: scan == Scan::Pools || random.below(2) == 0,
        ..TrackParameters::default()
    }
}

fn layer(random: &mut Random, trace: &mut Trace) -> u64 {
    let (policy, scan) = random.pick(&[
        (Policy::Greedy, Scan::All),
        (Policy::Smart, Scan::All),
        (Policy::Smart, Scan::Pools),
        (Policy::Adaptive, Scan::All),
        (Policy::Adaptive, Scan::Pools),
    ]);
    let head_tracks = random.below(3) + 1;
    let band_tracks = 2 * head_tracks + 1 + random.below(6);
    let bands_tracks = band_tracks * (random.below(2) + 1);
    let (zones, sector_bytes) = (zones(random, bands_tracks), random.pick(&[16, 32, 64]));
    // Half of the zone holds a checkpoint of all tracks and at least one record more.
    let tracks: u64 = zones.iter().map(|zone| u64::from(zone.tracks)).sum();
    let half = sectors_of(36 + 8 * tracks, sector_bytes) + sectors_of(44, sector_bytes) * (1 + random.below(8));
    let medium = medium_with(&zones, head_tracks as u32, sector_bytes as u32, 2 * half as u32);
    let parameters = layer_parameters(random, policy, scan, band_tracks);
    trace.lines.push(format!("W {head_tracks}, {zones:?}, sectors of {sector_bytes}, {half} of them half of the zone, {scan:?}, {parameters:?}"));
    let checked = Checked::<TrackLayer<CheckingMedium>>::new(medium, (parameters, scan));
    run(checked, random, trace, |random| (layer_parameters(random, policy, scan, band_tracks), scan))
}

fn in_place(random: &mut Random, trace: &mut Trace) -> u64 {
    let order = random.pick(&Order::ALL);
    let head_tracks = if order == Order::Hdd { 1 } else { random.below(3) + 1 };
    let band_tracks = random.below(6) + 1;
    let pitch = band_tracks + head_tracks - 1;
    let bands_tracks = pitch * (random.below(3) + 1);
    let (zones, sector_bytes) = (zones(random, bands_tracks), random.pick(&[16, 32, 64]));
    let tracks: u64 = zones.iter().map(|zone| u64::from(zone.tracks)).sum();
    let longest = zones.iter().map(|zone| u64::from(zone.sectors)).max().unwrap() * band_tracks;
    let journal = sectors_of(36 + 12 * band_tracks, sector_bytes) + longest + random.below(30);
    let medium = medium_with(&zones, head_tracks as u32, sector_bytes as u32, (4 * sectors_of(36 + 16 * tracks, sector_bytes) + journal) as u32);
    trace.lines.push(format!("W {head_tracks}, {zones:?}, sectors of {sector_bytes}, {journal} of them the journal, {order:?}, N {band_tracks}"));
    let checked = Checked::<InPlace<CheckingMedium>>::new(medium, (order, band_tracks as u32));
    run(checked, random, trace, |_| (order, band_tracks as u32))
}

/// Runs a history to its end; how often the power went.
fn run<S: Safe>(mut checked: Checked<S>, random: &mut Random, trace: &mut Trace, another: impl Fn(&mut Random) -> S::Parameters) -> u64 {
    let mut cuts = 0;
    let operations = random.below(40) + 1;
    // Some disks are full at the start, most never.
    if random.below(3) == 0 {
        let capacity = checked.capacity();
        checked.write(0, capacity).unwrap();
    }
    for _ in 0..operations {
        let capacity = checked.capacity();
        let lba = random.below(capacity);
        let sectors = (random.below(6) + 1).min(capacity - lba);
        let (what, number) = (random.below(32), random.next());
        trace.lines.push(format!("operation {what} on {sectors} sectors from {lba}, number {number}"));
        let result = match what {
            0..16 => checked.write(lba, sectors),
            16..20 => checked.trim(lba, sectors),
            20..23 => checked.flush(),
            23..26 => checked.disk().upkeep(number),
            26 => {
                checked.holds_the_last_writes();
                Ok(())
            }
            27 => {
                cuts += 1;
                checked.crash(number);
                Ok(())
            }
            28 if number % 4 == 0 => {
                let parameters = another(random);
                trace.lines.push(format!("a new disk, {parameters:?}"));
                checked.create_anew(parameters);
                Ok(())
            }
            _ => {
                checked.disk().medium_mut().cut_after(number % 24);
                Ok(())
            }
        };
        if result == Err(SwdError::Medium(MediumError::PowerLost)) {
            trace.lines.push(format!("the power went: {}", number));
            cuts += 1;
            checked.crash(number);
        } else {
            assert_eq!(result, Ok(()));
        }
    }
    checked.holds_the_last_writes();
    checked.crash(random.next());
    cuts + 1
}

fn number(key: &str) -> Option<u64> {
    std::env::var(key).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{key}: {text} is not a number")))
}

#[test]
fn no_history_loses_flushed_data() {
    let (seed, is_soak) = (number("STRIPEWISE_SEED"), std::env::var_os("STRIPEWISE_SOAK").is_some());
    let histories = number("STRIPEWISE_HISTORIES").unwrap_or(match (is_soak, seed) {
        (true, _) => 1_000_000,
        (false, Some(_)) => 1,
        (false, None) => 20_000,
    });
    let first = seed.unwrap_or(1);
    println!("{histories} histories from STRIPEWISE_SEED={first} on");
    let mut cuts = 0;
    for seed in first..first + histories {
        let (mut random, mut trace) = (Random(SplitMix64::at(seed)), Trace { seed, lines: Vec::new() });
        cuts += if random.below(3) == 0 { in_place(&mut random, &mut trace) } else { layer(&mut random, &mut trace) };
    }
    println!("the power went {cuts} times");
}
