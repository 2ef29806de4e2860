//! Facts of the adaptive policy beside the seed's, by counters alone.

use stripewise_swd::{BlankMedium, Counters, Geometry, Policy, Scheme, TrackLayer, TrackParameters, Zone};

const BANDS: u32 = 4;
const SECTORS: u64 = 16;

fn filled(policy: Policy, percent: u64) -> (TrackLayer<BlankMedium>, u64) {
    let medium = BlankMedium::new(&Geometry::new(&[Zone { tracks: 100 * BANDS, sectors: SECTORS as u32 }], 2, 0, 10_000).unwrap()).unwrap();
    let mut layer =
        TrackLayer::create(medium, TrackParameters { policy, first_tracks: 4, keeps_flushed: false, ..TrackParameters::default() }).unwrap();
    let end = layer.capacity_sectors() * percent / 100;
    layer.fill(end).unwrap();
    (layer, end)
}

fn between(before: Counters, after: Counters) -> f64 {
    let extra = (after.extra_reads + after.extra_writes) - (before.extra_reads + before.extra_writes);
    1.0 + extra as f64 / (after.own_writes - before.own_writes) as f64
}

/// Write amplification of updates of one sector of the tracks that are drawn, after as many to warm up.
fn amplification(policy: Policy, percent: u64, draw: impl Fn(u64, u64) -> u64) -> f64 {
    let (mut layer, end) = filled(policy, percent);
    let (tracks, count) = (end / SECTORS, 20_000u64);
    let mut warm = Counters::default();
    for update in 0..2 * count {
        if update == count {
            warm = layer.counters();
        }
        layer.write(draw(update.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16, tracks) * SECTORS, 1, &[]).unwrap();
    }
    between(warm, layer.counters())
}

#[test]
fn hot_tracks_fewer_than_free_ones_are_mostly_updated_in_place() {
    // The first 12 of 77 used tracks of each band are written; 23 are free.
    let hot = |random: u64, _: u64| random % (u64::from(BANDS) * 12);
    let [adaptive, greedy, smart] = [Policy::Adaptive, Policy::Greedy, Policy::Smart].map(|policy| amplification(policy, 80, hot));
    assert!(adaptive < 1.5 && greedy > 2.0 && smart > 3.0, "adaptive {adaptive:.3}, greedy {greedy:.3}, smart {smart:.3}");
}

#[test]
fn uniform_updates_of_a_disk_used_to_three_quarters_take_a_third_less_than_under_greedy_and_smart() {
    let uniform = |random: u64, tracks: u64| random % tracks;
    let adaptive = amplification(Policy::Adaptive, 75, uniform);
    for policy in [Policy::Greedy, Policy::Smart] {
        let other = amplification(policy, 75, uniform);
        assert!(adaptive < other * 2.0 / 3.0, "adaptive {adaptive:.2}, {policy:?} {other:.2}");
    }
}

#[test]
fn an_idle_step_moves_one_track_or_a_whole_small_element_and_ends_with_free_tracks_for_copies() {
    let (mut layer, end) = filled(Policy::Adaptive, 90);
    for update in 0..2_000u64 {
        layer.write(update.wrapping_mul(7919) % end, 1, &[]).unwrap();
    }
    let (mut steps, before) = (0, layer.counters());
    while layer.idle_step().unwrap() {
        steps += 1;
        assert!(steps < 1_000, "an idle disk comes to rest");
    }
    let idle = layer.counters();
    assert!(steps > 0 && idle.collected_tracks - before.collected_tracks <= 3 * (idle.collections - before.collections));
    for band in 0..BANDS {
        // A track of each band in the middle of the used ones, whatever it holds.
        let lba = (0..end).find(|&lba| layer.locate(lba).is_some_and(|at| at.track == band * 100 + 50));
        if let Some(lba) = lba {
            layer.write(lba, 1, &[]).unwrap();
        }
    }
    assert_eq!(layer.counters().collections, idle.collections, "the next copy needs no collection");
}
