//! The flat map against the layout crate's, which has its own oracle.

use std::collections::BTreeMap;

use proptest::prelude::*;
use stripewise_layout as layout;
use stripewise_layout::GRANULE;

use super::*;

const SERVERS: u32 = 5;

fn stripes() -> impl Strategy<Value = Vec<Stripe>> {
    let servers = Just((0..SERVERS).collect::<Vec<_>>()).prop_shuffle();
    let widths = prop_oneof![
        prop::collection::vec(1..6u64, SERVERS as usize),
        (0..4u32).prop_map(|s| vec![1 << s; SERVERS as usize]),
        (1..6u64).prop_map(|w| vec![w; SERVERS as usize]),
    ];
    (servers, widths, 1..=SERVERS as usize).prop_map(|(servers, widths, n)| {
        servers.into_iter().zip(widths).take(n).map(|(server, width)| Stripe { server, width_bytes: width * GRANULE }).collect()
    })
}

/// Cycles, and regions of any or of equal length that begin them anywhere.
fn file() -> impl Strategy<Value = (Vec<Vec<Stripe>>, Vec<RegionSpec>)> {
    let rows = prop::collection::vec((1..40u64, 0..3u32, any::<u32>()), 1..7);
    (prop::collection::vec(stripes(), 3), rows, prop::option::of(1..33u64)).prop_map(|(cycles, rows, equal)| {
        let mut start = 0;
        let mut regions = Vec::new();
        for (len, cycle, first) in rows {
            let len = equal.unwrap_or(len) * GRANULE;
            regions.push(RegionSpec { start, len, cycle, first: first % cycles[cycle as usize].len() as u32 });
            start += len;
        }
        (cycles, regions)
    })
}

fn as_layout(cycles: &[Vec<Stripe>], regions: &[RegionSpec]) -> Vec<u8> {
    let region = |r: &RegionSpec| {
        let cycle = &cycles[r.cycle as usize];
        let turned = (0..cycle.len()).map(|i| cycle[(i + r.first as usize) % cycle.len()]);
        let stripes = turned.map(|s| layout::Stripe { target: s.server, width_bytes: s.width_bytes }).collect();
        layout::Region { start: r.start, len: r.len, generation: 0, placement: layout::Placement::Striped(stripes) }
    };
    layout::Layout { regions: regions.iter().map(region).collect(), ..layout::Layout::default() }.encode().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn pieces_are_the_extents_of_the_layout((cycles, regions) in file(), from in 0..300 * GRANULE, len in 1..200 * GRANULE) {
        let spec = FileSpec { name: "f".into(), size_bytes: 0, regions };
        let encoded = as_layout(&cycles, &spec.regions);
        let mut expected: Vec<_> = layout::View::parse(&encoded).unwrap()
            .extents(layout::Logical(from), len)
            .map(|e| (e.region().start, e.target, e.object_offset, e.len))
            .collect();
        let map = FileMap::new(&spec, 0);
        let cycles: Vec<Cycle> = cycles.iter().map(|c| Cycle::new(c)).collect();
        let mut got = Vec::new();
        let mut at = from;
        while at < from + len {
            let (home, end) = map.window(at);
            let to = end.min(from + len);
            home.pieces(&cycles, at, to, |p| got.push((home.start, p.server, p.address, p.bytes)));
            at = to;
        }
        expected.sort_unstable();
        got.sort_unstable();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn moved_spans_are_found_at_their_newest_home(spans in prop::collection::vec((0..60u64, 1..30u64), 1..8), from in 0..80u64, len in 1..40u64) {
        let stripes = [Stripe { server: 0, width_bytes: 4 }, Stripe { server: 1, width_bytes: 8 }];
        let spec = FileSpec { name: "f".into(), size_bytes: 0, regions: vec![RegionSpec { start: 0, len: 17, cycle: 0, first: 0 }] };
        let mut map = FileMap::new(&spec, 0);
        let cycles = [Cycle::new(&stripes)];
        let mut newest = BTreeMap::new();
        for (i, (start, len)) in spans.into_iter().enumerate() {
            let base = 1_000_000 * (i as u64 + 1);
            map.settle(start, start + len, Home { start, cycle: 0, first: 0, base });
            newest.extend((start..start + len).map(|byte| (byte, base)));
        }
        let mut bytes = 0;
        map.pieces(&cycles, from, from + len, |p| bytes += p.bytes);
        prop_assert_eq!(bytes, len);
        for byte in from..from + len {
            map.pieces(&cycles, byte, byte + 1, |p| assert_eq!(p.address / 1_000_000 * 1_000_000, newest.get(&byte).copied().unwrap_or(0)));
        }
    }
}
