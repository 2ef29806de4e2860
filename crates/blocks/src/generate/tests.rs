//! Generated workloads have the numbers that they are described by.

use serde_json::json;

use super::*;
use crate::statistics::{Measure, Summary, gather};
use crate::{BlockRequest, BlockWorkload};

fn opened(workload: &serde_json::Value, space_blocks: Option<u64>) -> Result<Vec<BlockRequest>, crate::Error> {
    let workload: BlockWorkload = serde_json::from_value(workload.clone()).map_err(|error| crate::Error::Invalid(error.to_string()))?;
    workload.open(space_blocks)?.collect()
}

fn summary(workload: &serde_json::Value, space_blocks: Option<u64>) -> Summary {
    let workload: BlockWorkload = serde_json::from_value(workload.clone()).unwrap();
    gather(workload.open(space_blocks).unwrap(), Measure::default()).unwrap()
}

fn is_near(measured: f64, wanted: f64, tolerance: f64) -> bool {
    (measured - wanted).abs() <= tolerance * wanted
}

#[test]
fn look_alikes_have_the_statistics_of_the_tables() {
    for of in PUBLISHED {
        let workload = json!({ "version": 1, "from": { "kind": "look-alike", "name": of.name }, "requests": 100_000, "seed": 5 });
        let made = summary(&workload, None);
        // The mean of bursts settles slowly: its standard error here is 10 / sqrt(100000).
        assert!(is_near(made.interarrival_ms, of.interarrival_ms, if of.variation > 1.0 { 0.07 } else { 0.02 }), "{}: {made:?}", of.name);
        assert!(is_near(made.interarrival_variation, of.variation, 0.1), "{}: {made:?}", of.name);
        assert!(is_near(made.distance_blocks, of.distance_blocks, 0.03), "{}: {made:?}", of.name);
        assert!(is_near(made.lba_max as f64, of.lba_max as f64, 0.01) && made.lba_max <= of.lba_max, "{}: {made:?}", of.name);
        assert!(is_near(made.request_blocks, of.request_blocks, 0.05), "{}: {made:?}", of.name);
        assert!(of.request_blocks_max.is_none_or(|most| most == made.request_blocks_max), "{}: {made:?}", of.name);
        assert!(is_near(made.write_share, of.write_share, 0.02), "{}: {made:?}", of.name);
        assert!(is_near(made.write_distances.near_share, of.near_share, 0.08), "{}: {made:?}", of.name);
    }
}

/// Share of repeated updates with a stack distance below `tracks`.
fn within(summary: &Summary, tracks: u64) -> f64 {
    summary.stack_distances.steps.iter().rev().find(|step| step.below <= tracks).map_or(0.0, |step| step.share)
}

#[test]
fn look_alikes_update_recent_tracks_far_more_often_than_uniform_requests_do() {
    for name in ["mds_0", "usr_0", "stg_0", "web_1"] {
        let of = published(name).unwrap();
        let alike = json!({ "version": 1, "from": { "kind": "look-alike", "name": name }, "requests": 50_000 });
        let uniform = json!({ "version": 1, "from": { "kind": "uniform" }, "requests": 50_000 });
        let (alike, uniform) = (summary(&alike, None), summary(&uniform, Some(of.lba_max + 1)));
        assert!(within(&alike, 1024) > 0.5 && within(&uniform, 1024) < 0.1, "{name}: {} {}", within(&alike, 1024), within(&uniform, 1024));
    }
}

#[test]
fn the_units_of_table_5_2_are_those_of_volumes_of_whole_gibibytes() {
    for (name, gib) in [("mds_0", 33.9), ("usr_0", 15.9), ("stg_0", 10.8), ("web_1", 67.8)] {
        let bytes = published(name).unwrap().lba_max * crate::BLOCK_BYTES;
        assert!(is_near(bytes as f64 / f64::from(1 << 30), gib, 0.01), "{name}");
    }
}

#[test]
fn syn_writes_every_block_once_and_then_ends() {
    let syn = json!({ "version": 1, "from": { "kind": "syn" } });
    let made = summary(&syn, Some(240_000));
    assert_eq!((made.requests, made.distance_blocks, made.lba_max, made.request_blocks_max, made.write_share), (30_000, 0.0, 239_999, 8, 1.0));
    assert!(is_near(made.interarrival_ms, 50.0, 0.01) && is_near(made.interarrival_variation, 0.2, 0.03), "{made:?}");
    let again = json!({ "version": 1, "from": { "kind": "syn", "again": true }, "requests": 50_000 });
    assert_eq!(summary(&again, Some(240_000)).requests, 50_000);
}

#[test]
fn uniform_requests_are_a_third_of_the_space_apart() {
    let uniform = json!({ "version": 1, "from": { "kind": "uniform", "write_share": 0.25 }, "requests": 50_000 });
    let made = summary(&uniform, Some(8_000_000));
    assert!(is_near(made.distance_blocks, 8e6 / 3.0, 0.02) && is_near(made.write_share, 0.25, 0.03), "{made:?}");
    assert!(is_near(made.interarrival_ms, 5.0, 0.01), "{made:?}");
}

#[test]
fn the_hottest_chunk_of_zipf_has_its_share() {
    let zipf = json!({ "version": 1, "from": { "kind": "zipf", "alpha": 1.0 }, "requests": 50_000 });
    let requests = opened(&zipf, Some(1_000_500)).unwrap();
    let mut counts = std::collections::HashMap::new();
    requests.iter().for_each(|request| *counts.entry(request.lba / 1000).or_insert(0u32) += 1);
    let hottest = f64::from(*counts.values().max().unwrap()) / 50_000.0;
    let wanted = 1.0 / (1..=1000).map(|rank| 1.0 / f64::from(rank)).sum::<f64>();
    assert!(is_near(hottest, wanted, 0.05), "{hottest} {wanted}");
    assert!(requests.iter().all(|request| request.lba % 8 == 0 && request.end() <= 1_000_000));
}

#[test]
fn bursts_have_the_variation_that_is_asked_for() {
    let bursty = json!({ "law": "bursty", "mean_ms": 3.0, "variation": 4.0 });
    let workload = json!({ "version": 1, "from": { "kind": "uniform", "arrivals": bursty }, "requests": 100_000 });
    let made = summary(&workload, Some(1000));
    assert!(is_near(made.interarrival_ms, 3.0, 0.04) && is_near(made.interarrival_variation, 4.0, 0.06), "{made:?}");
}

#[test]
fn a_seed_makes_one_workload_and_another_seed_another() {
    for from in [json!({ "kind": "uniform" }), json!({ "kind": "zipf" }), json!({ "kind": "look-alike", "name": "hp_c2247" })] {
        let of = |seed: u64| opened(&json!({ "version": 1, "from": from, "requests": 100, "seed": seed }), Some(3_000_000)).unwrap();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}

#[test]
fn a_workload_that_cannot_be_is_told_with_its_key() {
    let told = |from: serde_json::Value, more: serde_json::Value, space| {
        let mut workload = json!({ "version": 1, "from": from, "requests": 10 });
        workload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        opened(&workload, space).unwrap_err().to_string()
    };
    let normal = |mean: f64| json!({ "law": "normal", "mean_ms": mean, "deviation_ms": 1.0 });
    for (from, more, space, wanted) in [
        (json!({ "kind": "uniform", "request_blocks": 0 }), json!({}), Some(100), "request_blocks = 0"),
        (json!({ "kind": "uniform", "request_blocks": 101 }), json!({}), Some(100), "request_blocks = 101"),
        (json!({ "kind": "uniform", "write_share": 1.5 }), json!({}), Some(100), "write_share = 1.5"),
        (json!({ "kind": "uniform", "arrivals": normal(-1.0) }), json!({}), Some(100), "arrivals.mean_ms = -1"),
        (
            json!({ "kind": "uniform", "arrivals": { "law": "bursty", "mean_ms": 1.0, "variation": 0.5 } }),
            json!({}),
            Some(100),
            "arrivals.variation = 0.5",
        ),
        (json!({ "kind": "uniform" }), json!({}), None, "the workload needs a space"),
        (json!({ "kind": "uniform" }), json!({ "requests": null }), Some(100), "requests is missing"),
        (json!({ "kind": "uniform" }), json!({ "requests": 0 }), Some(100), "requests = 0"),
        (json!({ "kind": "uniform" }), json!({ "stretch": -1.0 }), Some(100), "stretch = -1"),
        (json!({ "kind": "uniform" }), json!({ "lba_factor": 0 }), Some(100), "lba_factor = 0"),
        (json!({ "kind": "uniform" }), json!({ "version": 2 }), Some(100), "version = 2"),
        (json!({ "kind": "uniform", "alpa": 1 }), json!({}), Some(100), "unknown field `alpa`"),
        (json!({ "kind": "zipf", "chunk_blocks": 4 }), json!({}), Some(100), "chunk_blocks = 4"),
        (json!({ "kind": "zipf", "chunk_blocks": 8, "alpha": -1.0 }), json!({}), Some(100), "alpha = -1"),
        (json!({ "kind": "look-alike", "name": "hm_0" }), json!({}), Some(100), "look-alike:hm_0: its statistics are not known"),
        (json!({ "kind": "trace", "path": "/nowhere" }), json!({}), Some(100), "/nowhere: cannot be opened"),
    ] {
        let sentence = told(from, more, space);
        assert!(sentence.starts_with(wanted), "{sentence}");
    }
}
