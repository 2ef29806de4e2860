//! Whatever the bins: sums over any level are those of the requests, and each request lies in the bins that it covers.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;
use stripewise_view::{Bins, Columns, Kind, bucket_low, by_file, distribution, heat, perfetto, phases, raster, timeline};

fn requests() -> impl Strategy<Value = Columns> {
    let row = (0..1_000_000i64, 0..200_000i64, 0..5u32, 0..3u32, 0..2u8, -1..(1i64 << 40), 0..(1i64 << 30));
    prop::collection::vec(row, 1..60).prop_map(|rows| {
        let mut columns = Columns::default();
        for (start, length, process, file, write, offset, size) in rows {
            columns.start_ns.push(start);
            columns.end_ns.push(start + length);
            columns.process.push(process);
            columns.file.push(file);
            columns.write.push(write);
            columns.offset.push(offset);
            columns.size.push(size);
        }
        columns
    })
}

proptest! {
    #[test]
    fn every_level_of_a_timeline_sums_to_the_requests(columns in requests(), limit in 1usize..300) {
        let bins = Bins::over(1_200_000, limit);
        prop_assert!(bins.count <= limit);
        let mut grid = timeline(columns.iter(), 5, bins, |process| process as usize);
        let busy: i64 = columns.end_ns.iter().zip(&columns.start_ns).map(|(end, start)| end - start).sum();
        let bytes = |write: u8| columns.size.iter().zip(&columns.write).filter(|(_, w)| **w == write).map(|(size, _)| *size as u64).sum::<u64>();
        loop {
            prop_assert_eq!(grid.total(0), busy as u64);
            prop_assert_eq!(grid.total(1), bytes(0));
            prop_assert_eq!(grid.total(2), bytes(1));
            if grid.bins.count == 1 {
                break;
            }
            grid = grid.coarser();
        }
    }

    #[test]
    fn a_bin_holds_the_time_of_each_request_inside_it(start in 0u64..10_000, length in 1u64..10_000, limit in 1usize..100) {
        let bins = Bins::over(20_000, limit);
        let columns = Columns { start_ns: vec![start as i64], end_ns: vec![(start + length) as i64], process: vec![0], file: vec![0], write: vec![0], offset: vec![0], size: vec![7] };
        let grid = timeline(columns.iter(), 1, bins, |_| 0);
        for bin in 0..bins.count {
            let (low, high) = (bin as u64 * bins.width, (bin as u64 + 1) * bins.width);
            let inside = (start + length).min(high).saturating_sub(start.max(low));
            prop_assert_eq!(grid.cells[bin], inside);
        }
    }

    #[test]
    fn rasters_and_heat_hold_each_byte_where_it_lies(columns in requests(), times in 1usize..40, places in 1usize..200) {
        let known = |write: u8| -> u64 {
            (0..columns.len()).filter(|&row| columns.write[row] == write && columns.offset[row] >= 0).map(|row| columns.size[row] as u64).sum()
        };
        let (time, offsets) = (Bins::over(1_000_000, times), Bins::over((1 << 40) + (1 << 30), places));
        let (grid, flat) = (raster(columns.iter(), time, offsets), heat(columns.iter(), offsets));
        for layer in 0..2 {
            prop_assert_eq!(grid.total(layer), known(layer as u8));
            prop_assert_eq!(grid.coarser().total(layer), known(layer as u8));
            prop_assert_eq!(flat.total(layer), known(layer as u8));
            for bin in 0..offsets.count {
                let over_time: u64 = (0..time.count).map(|row| grid.cells[(layer * time.count + row) * offsets.count + bin]).sum();
                prop_assert_eq!(over_time, flat.cells[layer * offsets.count + bin]);
                let (low, high) = (bin as u64 * offsets.width, (bin as u64 + 1) * offsets.width);
                let expected: u64 = columns.iter().filter(|r| usize::from(r.is_write) == layer).filter_map(|r| {
                    r.offset.map(|at| (at + r.size).min(high).saturating_sub(at.max(low)))
                }).sum();
                prop_assert_eq!(flat.cells[layer * offsets.count + bin], expected);
            }
        }
    }

    #[test]
    fn distributions_count_every_request_once(columns in requests()) {
        let rows = by_file(&columns.file, 3);
        prop_assert_eq!(rows.iter().map(Vec::len).sum::<usize>(), columns.len());
        let whole = distribution(columns.iter());
        let parts: Vec<_> = rows.iter().map(|rows| distribution(columns.of(rows))).collect();
        for op in 0..2 {
            prop_assert_eq!(whole.size[op].iter().sum::<u64>(), whole.requests[op]);
            prop_assert_eq!(whole.latency[op].iter().sum::<u64>(), whole.requests[op]);
            prop_assert_eq!(parts.iter().map(|part| part.bytes[op]).sum::<u64>(), whole.bytes[op]);
        }
    }

    #[test]
    fn latencies_lie_between_the_bounds_of_their_bucket(ns in 1u64..u64::MAX / 4) {
        let one = Columns { start_ns: vec![0], end_ns: vec![ns as i64], process: vec![0], file: vec![0], write: vec![0], offset: vec![0], size: vec![0] };
        let found = distribution(one.iter());
        let bucket = found.latency[0].iter().position(|&count| count == 1).unwrap();
        prop_assert!(bucket_low(bucket) <= ns);
        prop_assert!(ns < bucket_low(bucket + 1) || bucket_low(bucket + 1) == bucket_low(bucket));
    }

    #[test]
    fn requests_of_a_lane_do_not_overlap(mut times in prop::collection::vec((0u64..1000, 0u64..50), 1..60)) {
        times.sort_unstable();
        let times: Vec<(u64, u64)> = times.into_iter().map(|(start, length)| (start, start + length)).collect();
        let lanes = perfetto::lanes(times.iter().copied());
        for (row, &lane) in lanes.iter().enumerate() {
            let before = (0..row).rev().find(|&other| lanes[other] == lane);
            prop_assert!(before.is_none_or(|other| times[other].1 <= times[row].0));
        }
    }
}

#[test]
fn phases_end_with_quiet_and_with_a_change_of_what_is_done() {
    let written = [9, 9, 9, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let read = [0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 0, 0];
    let busy = written.map(|bytes| u64::from(bytes > 0)).iter().zip(read).map(|(busy, read)| busy + read).collect::<Vec<_>>();
    let found = phases(&busy, &read, &written, 2);
    let told: Vec<_> = found.iter().map(|phase| (phase.begin, phase.end, phase.kind, phase.read, phase.written)).collect();
    assert_eq!(told, [(0, 5, Kind::Write, 0, 36), (8, 12, Kind::Read, 20, 0)]);
}

#[test]
fn alternating_reads_and_writes_are_one_phase_of_both() {
    let (read, written): (Vec<u64>, Vec<u64>) = (0..20).map(|bin| if bin % 2 == 0 { (4, 0) } else { (0, 4) }).unzip();
    let found = phases(&[1; 20], &read, &written, 2);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].kind, found[0].begin, found[0].end), (Kind::Both, 0, 20));
}
